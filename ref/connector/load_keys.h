/* SPDX-License-Identifier: Apache-2.0 */
/* What one rank reads for one load: chunks, keys, blocks and buffers, in the order of the gets. */
#ifndef MOON_CONNECTOR_LOAD_KEYS_H
#define MOON_CONNECTOR_LOAD_KEYS_H

#include "ref/connector/connector.h"
#include "ref/connector/job.h"
#include "ref/connector/staging.h"
#include "ref/key/key_list.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_LOAD_KEYS_MAX = 1 << 20 }; /* of one load on one rank */

/* One load on one rank. Owns its memory and keeps it from load to load.
 *   count     keys; key i of the load is key first + i of `keys`, and entry first + i of every array. The rotation
 *             (LOAD-004) is a beginning in the middle: what stands before `first` is repeated at the end
 *   groups, chunks, shards, blocks  what that key is, and the block it is read into
 *   buffers   per_key of them for each entry */
struct moon_load_keys {
    struct moon_memory *memory;
    struct moon_key_list keys;
    size_t first, count, per_key;
    size_t *groups;
    struct moon_token_range *chunks;
    int64_t *shards;
    uint64_t *blocks;
    struct moon_buffer *buffers;
    void *arrays; /* all of the above in one piece */
    size_t array_bytes;
};
void moon_load_keys_open(struct moon_load_keys *load, struct moon_memory *memory);
void moon_load_keys_close(struct moon_load_keys *load);

/* Tokens up to which a job loads: its hit, in 0.21 sometimes one more (LOAD-028). */
int64_t moon_load_end_tokens(const struct moon_connector *connector, const struct moon_job *job);

/* Lists what the rank reads (LOAD-001 to LOAD-008); no key is a load too.
 *   segments  of the rank, for the layout that the connector selected
 * Returns 0; MOON_ERR_MEMORY; MOON_ERR_LIMIT beyond MOON_LOAD_KEYS_MAX; MOON_ERR_RANGE for a job that makes no sense
 * (LOAD-032), with the member in `where`; MOON_ERR_REFUSED where the release raises. */
int moon_load_keys_list(struct moon_load_keys *load, const struct moon_connector *connector,
                        const struct moon_rank *rank, const struct moon_segments *segments, const struct moon_job *job,
                        struct moon_error *error);

/* Keys and their buffers in the order of the gets. Valid until the next list. */
struct moon_staging_keys moon_load_staging_keys(const struct moon_load_keys *load);

#ifdef __cplusplus
}
#endif
#endif
