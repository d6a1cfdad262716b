/* SPDX-License-Identifier: Apache-2.0 */
/* How the gets of a load are cut to fit the owner's staging memory: cost of a key, and where a batch ends. */
#ifndef MOON_CONNECTOR_STAGING_H
#define MOON_CONNECTOR_STAGING_H

#include "ref/layout/segments.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The owner's staging memory as a rank sees it.
 *   usable_bytes  that several keys of one get may take, 1 or more;  raw_bytes  that one key may take */
struct moon_staging {
    uint64_t usable_bytes, raw_bytes;
};
/* Keys in the order of their gets: key k has buffers k * per_key .. (k + 1) * per_key - 1. Borrowed. */
struct moon_staging_keys {
    const struct moon_buffer *buffers;
    size_t per_key, count;
};

/* Sum of a key's buffers; UINT64_MAX if it does not fit. */
uint64_t moon_staging_data_bytes(const struct moon_staging_keys *keys, size_t key);
/* Staging bytes of a key (LOAD-011); UINT64_MAX if they do not fit. */
uint64_t moon_staging_cost_bytes(const struct moon_staging_keys *keys, size_t key);
/* True if all keys go in one get (LOAD-012). */
bool moon_staging_whole(const struct moon_staging *staging, const struct moon_staging_keys *keys);
/* Of keys that do not: the first that costs more than the raw bytes (LOAD-014), or keys->count. */
size_t moon_staging_oversize(const struct moon_staging *staging, const struct moon_staging_keys *keys);
/* Of keys that must be cut: how many the get takes that begins with key `first`, 1 or more (LOAD-012, LOAD-013). */
size_t moon_staging_batch(const struct moon_staging *staging, const struct moon_staging_keys *keys, size_t first);

#ifdef __cplusplus
}
#endif
#endif
