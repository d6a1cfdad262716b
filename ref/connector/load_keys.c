/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the reads of one load on one rank: counts the keys, makes room once, fills. */
#include "ref/connector/load_keys.h"

#include "ref/connector/coordinator.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Everything that one function passes to the next. */
struct listing {
    struct moon_load_keys *load;
    const struct moon_connector *connector;
    const struct moon_rank *rank;
    const struct moon_segments *segments;
    const struct moon_job *job;
    struct moon_shard_range shards;
    int64_t end_tokens;
    size_t used; /* entries filled */
    struct moon_error *error;
};

void moon_load_keys_open(struct moon_load_keys *load, struct moon_memory *memory) {
    *load = (struct moon_load_keys){.memory = memory};
    moon_key_list_open(&load->keys, memory);
}

void moon_load_keys_close(struct moon_load_keys *load) {
    load->memory->resize(load->memory, load->arrays, load->array_bytes, 0);
    moon_key_list_close(&load->keys);
    moon_load_keys_open(load, load->memory);
}

struct moon_staging_keys moon_load_staging_keys(const struct moon_load_keys *load) {
    const struct moon_buffer *buffers = load->count > 0 ? load->buffers + load->first * load->per_key : NULL;
    return (struct moon_staging_keys){buffers, load->per_key, load->count};
}

int64_t moon_load_end_tokens(const struct moon_connector *connector, const struct moon_job *job) {
    int64_t hit = job->load_hit_tokens;
    bool cut = hit % connector->model->scheduler_block_tokens != 0;
    return hit + (connector->profile->cut_load_extended && cut && hit == job->save_tokens - 1);
}

static int out_of_memory(const struct listing *listing) {
    return moon_fail(listing->error, MOON_ERR_MEMORY, NULL, "no memory for the keys of a load");
}

/* ---- judging the job ---- */

static int check_boundaries(const struct listing *listing) {
    const struct moon_job *job = listing->job;
    int64_t hash_block = listing->connector->model->hash_block_tokens;
    for (size_t group = 0; job->tail_boundaries && group < job->group_count; group++) {
        int64_t tokens = job->tail_boundaries[group];
        if (tokens < 1 || tokens % hash_block != 0 || (uint64_t)(tokens / hash_block) > job->hashes.count)
            return moon_fail(listing->error, MOON_ERR_RANGE, "tail_boundaries",
                             "%" PRId64 " tokens of group %zu are no hash boundary of the prompt", tokens, group);
    }
    return 0;
}

/* LOAD-032, but for the tables: which of their entries count is known later. */
static int check_job(const struct listing *listing) {
    const struct moon_job *job = listing->job;
    const struct moon_layout_model *model = listing->connector->model;
    if (job->group_count != model->group_count || !job->tables || job->tables->group_count != model->group_count)
        return moon_fail(listing->error, MOON_ERR_RANGE, "tables",
                         "a job with a block table for each of %zu groups "
                         "is needed",
                         model->group_count);
    if (job->load_local_tokens < 0 || job->load_hit_tokens < job->load_local_tokens)
        return moon_fail(listing->error, MOON_ERR_RANGE, "load_hit_tokens",
                         "a load from token %" PRId64 " to %" PRId64 " is none", job->load_local_tokens,
                         job->load_hit_tokens);
    if ((uint64_t)(job->load_hit_tokens / model->hash_block_tokens) > job->hashes.count)
        return moon_fail(listing->error, MOON_ERR_RANGE, "hashes",
                         "%zu hashes of %" PRId64 " tokens do not reach to the hit of %" PRId64, job->hashes.count,
                         model->hash_block_tokens, job->load_hit_tokens);
    return check_boundaries(listing);
}

/* ---- which chunks ---- */

static int open_walk(const struct listing *listing, size_t group, struct moon_chunk_walk *walk) {
    const struct moon_layout_model *model = listing->connector->model;
    const struct moon_chunk_query query = {
        .block_size = model->groups[group].block_tokens,
        .hash_block_size = model->hash_block_tokens,
        .token_len = listing->end_tokens,
        .hash_count = (int64_t)listing->job->hashes.count,
        .mask_num = listing->job->load_local_tokens / model->scheduler_block_tokens *
                    model->scheduler_block_tokens, /* LOAD-002 */
        .put_step = 1,
    };
    return moon_chunk_walk_open(walk, listing->connector->profile, &query, listing->error);
}

/* The next chunk that the group's attention needs (LOAD-003). */
static bool next_wanted(const struct listing *listing, size_t group, struct moon_chunk_walk *walk,
                        struct moon_chunk *chunk) {
    while (moon_chunk_walk_next(walk, chunk))
        if (moon_load_wanted(listing->connector, group, chunk->id, listing->end_tokens))
            return true;
    return false;
}

static int count_keys(struct listing *listing) {
    size_t per_chunk = (size_t)listing->shards.count;
    for (size_t group = 0; group < listing->job->group_count; group++) {
        struct moon_chunk_walk walk;
        struct moon_chunk chunk;
        int status = open_walk(listing, group, &walk);
        while (!status && next_wanted(listing, group, &walk, &chunk)) {
            listing->load->count += per_chunk;
            if (listing->load->count > MOON_LOAD_KEYS_MAX)
                status = moon_fail(listing->error, MOON_ERR_LIMIT, "load_hit_tokens",
                                   "a load of more than %d keys on one rank", MOON_LOAD_KEYS_MAX);
        }
        if (status)
            return status;
    }
    return 0;
}

/* ---- room ---- */

static_assert((uint64_t)2 * MOON_LOAD_KEYS_MAX * MOON_SEGMENTS_MAX < SIZE_MAX / 1024, "bytes of all arrays fit");

/* One piece for all arrays of `rows` entries; what was in it is gone. */
static int make_room(struct listing *listing, size_t rows) {
    struct moon_load_keys *load = listing->load;
    size_t buffers = rows * load->per_key;
    size_t bytes = buffers * sizeof *load->buffers +
                   rows * (sizeof *load->chunks + sizeof *load->groups + sizeof *load->shards + sizeof *load->blocks);
    if (bytes > load->array_bytes) {
        load->memory->resize(load->memory, load->arrays, load->array_bytes, 0);
        load->array_bytes = 0;
        load->arrays = load->memory->resize(load->memory, NULL, 0, bytes);
        if (!load->arrays)
            return out_of_memory(listing);
        load->array_bytes = bytes;
    }
    load->buffers = load->arrays;
    load->chunks = (struct moon_token_range *)(load->buffers + buffers);
    load->groups = (size_t *)(load->chunks + rows);
    load->shards = (int64_t *)(load->groups + rows);
    load->blocks = (uint64_t *)(load->shards + rows);
    return 0;
}

/* ---- filling ---- */

/* The hash that keys a chunk: the one at its end, or where the lookup found the group's last (LOAD-005). */
static struct moon_chunk key_chunk(const struct listing *listing, size_t group, const struct moon_chunk *chunk) {
    struct moon_chunk keyed = *chunk;
    if (listing->job->tail_boundaries && chunk->end_tokens == listing->end_tokens) {
        keyed.first_hash = listing->job->tail_boundaries[group] / listing->connector->model->hash_block_tokens - 1;
        keyed.hash_count = 1;
    }
    return keyed;
}

/* One key for each shard of a chunk. */
static void add_chunk(struct listing *listing, size_t group, uint32_t first_identity, const struct moon_chunk *chunk) {
    struct moon_load_keys *load = listing->load;
    const struct moon_chunk keyed = key_chunk(listing, group, chunk);
    uint32_t hash = moon_key_list_hash(&load->keys, &listing->job->hashes, &keyed);
    for (int64_t shard = 0; shard < listing->shards.count; shard++) {
        load->groups[listing->used] = group;
        load->chunks[listing->used] =
            (struct moon_token_range){(uint64_t)chunk->start_tokens, (uint64_t)chunk->end_tokens};
        load->shards[listing->used] = listing->shards.first + shard;
        moon_key_list_add(&load->keys, first_identity + (uint32_t)shard, hash);
        listing->used++;
    }
}

static uint32_t add_identities(struct listing *listing, size_t group) {
    uint32_t first = (uint32_t)listing->load->keys.identity_count;
    for (int64_t shard = 0; shard < listing->shards.count; shard++) {
        const struct moon_pool_key key =
            moon_rank_key(listing->connector->profile, listing->connector->model, &listing->connector->selection,
                          listing->rank, group, listing->shards.first + shard);
        moon_key_list_identity(&listing->load->keys, listing->connector->profile, &key);
    }
    return first;
}

/* Buffers of the group's chunks, which are entries `from` and later. */
static int list_buffers(const struct listing *listing, size_t group, size_t from) {
    struct moon_load_keys *load = listing->load;
    const struct moon_layout_model *model = listing->connector->model;
    const struct moon_block_table *table = &listing->job->tables->groups[group];
    uint64_t block_tokens = (uint64_t)model->groups[group].block_tokens;
    for (size_t i = from; i < listing->used; i++) {
        uint64_t entry = load->chunks[i].start_tokens / block_tokens;
        if (entry >= table->count || table->blocks[entry] < 0)
            return moon_fail(listing->error, MOON_ERR_RANGE, "tables",
                             "group %zu has no block for tokens %" PRIu64 " to %" PRIu64 ", its table has %zu blocks",
                             group, load->chunks[i].start_tokens, load->chunks[i].end_tokens, table->count);
    }
    const struct moon_segment_request request = {
        .block_size_tokens = block_tokens,
        .hash_block_size_tokens = (uint64_t)model->hash_block_tokens,
        .chunks = load->chunks + from,
        .chunk_count = listing->used - from,
        .block_ids = (const uint64_t *)table->blocks, /* none that is read is negative */
        .block_count = table->count,
        .shard_ids = load->shards + from,
        .shard_count = listing->used - from,
    };
    return moon_segments_list(listing->segments, &request, load->buffers + from * load->per_key, load->blocks + from,
                              listing->error);
}

static int add_group(struct listing *listing, size_t group) {
    struct moon_chunk_walk walk;
    struct moon_chunk chunk;
    size_t from = listing->used;
    int status = open_walk(listing, group, &walk);
    assert(status == 0); /* it was opened to count */
    (void)status;
    uint32_t first_identity = add_identities(listing, group);
    while (!listing->load->keys.failed && next_wanted(listing, group, &walk, &chunk))
        add_chunk(listing, group, first_identity, &chunk);
    return listing->load->keys.failed ? out_of_memory(listing) : list_buffers(listing, group, from);
}

/* Repeats the first `first` entries at the end. */
static int rotate(struct listing *listing) {
    struct moon_load_keys *load = listing->load;
    size_t first = load->first, end = load->count;
    for (size_t i = 0; i < first; i++) {
        const struct moon_key_pair pair = load->keys.pairs[i];
        moon_key_list_add(&load->keys, pair.identity, pair.hash);
    }
    memcpy(load->buffers + end * load->per_key, load->buffers, first * load->per_key * sizeof *load->buffers);
    memcpy(load->chunks + end, load->chunks, first * sizeof *load->chunks);
    memcpy(load->groups + end, load->groups, first * sizeof *load->groups);
    memcpy(load->shards + end, load->shards, first * sizeof *load->shards);
    memcpy(load->blocks + end, load->blocks, first * sizeof *load->blocks);
    return load->keys.failed ? out_of_memory(listing) : 0;
}

int moon_load_keys_list(struct moon_load_keys *load, const struct moon_connector *connector,
                        const struct moon_rank *rank, const struct moon_segments *segments, const struct moon_job *job,
                        struct moon_error *error) {
    struct listing listing = {
        .load = load,
        .connector = connector,
        .rank = rank,
        .segments = segments,
        .job = job,
        .shards = moon_local_shards(connector->model, &connector->selection, rank->tp),
        .error = error,
    };
    load->first = load->count = 0;
    load->per_key = segments->per_chunk;
    moon_key_list_clear(&load->keys);
    int status = check_job(&listing);
    if (!status) {
        listing.end_tokens = moon_load_end_tokens(connector, job);
        status = count_keys(&listing);
    }
    if (status || load->count == 0)
        return status;
    load->first = (size_t)rank->tp % load->count;
    status = make_room(&listing, load->count + load->first);
    for (size_t group = 0; group < job->group_count && !status; group++)
        status = add_group(&listing, group);
    return status ? status : rotate(&listing);
}
