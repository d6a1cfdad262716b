/* SPDX-License-Identifier: Apache-2.0 */
/* A call to the store that a worker wants made. Who drives the worker makes it, and tells it the results. */
#ifndef MOON_CONNECTOR_STORE_CALL_H
#define MOON_CONNECTOR_STORE_CALL_H

#include "ref/key/key_list.h"
#include "ref/layout/segments.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moon_call_kind {
    MOON_CALL_EXIST,    /* batch_is_exist */
    MOON_CALL_PUT,      /* batch_put_from_multi_buffers */
    MOON_CALL_GET,      /* batch_get_into_multi_buffers */
    MOON_CALL_REPLICAS, /* batch_get_replica_desc, for the tier log */
};

/* Keys first .. first + count - 1 of `keys` make one call. Borrowed, valid until the call is answered.
 *   blocks            per key the block that is read (PUT) or written (GET); NULL for the others
 *   buffers           buffers_per_key a key, in order; NULL when the worker knows no segments
 *   groups            per key its lifecycle group id, in a text of its own; NULL: none is passed */
struct moon_store_call {
    enum moon_call_kind kind;
    const struct moon_key_list *keys;
    size_t first, count;
    const uint64_t *blocks;
    const struct moon_buffer *buffers;
    size_t buffers_per_key;
    const struct moon_key_text *groups;
};

#ifdef __cplusplus
}
#endif
#endif
