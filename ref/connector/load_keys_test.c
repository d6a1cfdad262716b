/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the reads of a load: which keys in which order, into which blocks, and jobs that make no sense. */
#include "ref/connector/load_keys.h"

#include "ref/base/unit.h"
#include "ref/connector/load_rig_internal.h"

/* Lists a job and writes "group:hash>block" of each key, with "/shard" where there are several. */
static int list_job(struct rig *rig, struct moon_load_keys *load, const struct moon_job *job, struct moon_text *out,
                    struct moon_error *error) {
    int status = moon_load_keys_list(load, &rig->connector, &rig->rank, &rig->segments, job, error);
    for (size_t i = load->first; !status && i < load->first + load->count; i++) {
        struct moon_key_text hash = moon_key_list_hash_text(&load->keys, i);
        moon_text_format(out, "%zu:%.2s>%d", load->groups[i], hash.bytes, (int)load->blocks[i]);
        if (moon_store_sharded(&rig->connector.selection))
            moon_text_format(out, "/%d", (int)load->shards[i]);
        moon_text_char(out, ' ');
    }
    return status;
}

/* What a change to the job is, before it is listed. */
typedef void rig_change(struct moon_job *job);

static void check_listed(const struct rig_plan *plan, int64_t local, int64_t hit, rig_change *change,
                         const char *expected) {
    struct rig rig;
    struct moon_load_keys load;
    struct moon_text out;
    struct moon_error error = {0};
    rig_open(&rig, plan);
    moon_text_open(&out, moon_memory_heap());
    moon_load_keys_open(&load, moon_memory_heap());
    struct moon_job *job = rig_job(&rig, moon_memory_heap(), 1, local, hit);
    if (change)
        change(job);
    MOON_CHECK_INT(list_job(&rig, &load, job, &out, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_TEXT(moon_text_value(&out), expected);
    moon_job_release(job);
    moon_load_keys_close(&load);
    moon_text_close(&out);
    rig_close(&rig);
}

#define PLAN(...) (&(const struct rig_plan){.release = "0.33", __VA_ARGS__})
#define FULL(block)                                                                                                    \
    { .spec = {.kind = MOON_SPEC_FULL}, .block_tokens = (block) }
#define WINDOW(block, window)                                                                                          \
    { .spec = {.kind = MOON_SPEC_SLIDING_WINDOW, .window_tokens = (window)}, .block_tokens = (block) }
#define MAMBA(block)                                                                                                   \
    { .spec = {.kind = MOON_SPEC_MAMBA}, .block_tokens = (block) }

static void all_chunks_of_the_hit_are_read(void) {
    check_listed(PLAN(.tp = 1), 0, 48, NULL, "0:01>1 0:02>2 0:03>3 ");
    check_listed(PLAN(.tp = 1), 0, 0, NULL, "");
}

static void chunks_of_the_engine_are_not_read(void) {
    check_listed(PLAN(.tp = 1), 16, 48, NULL, "0:02>2 0:03>3 ");
    check_listed(PLAN(.tp = 1), 31, 48, NULL, "0:02>2 0:03>3 ");
    check_listed(PLAN(.tp = 1), 32, 48, NULL, "0:03>3 ");
    check_listed(PLAN(.tp = 1), 48, 48, NULL, "");
}

static void what_the_engine_has_is_rounded_to_scheduler_blocks(void) {
    check_listed(PLAN(.groups = {FULL(32), FULL(16)}, .group_count = 2, .scheduler_block = 32), 48, 96, NULL,
                 "0:04>2 0:06>3 1:03>61 1:04>60 1:05>59 1:06>58 ");
}

static void windows_read_their_tail(void) {
    check_listed(PLAN(.groups = {FULL(16), WINDOW(16, 33)}, .group_count = 2), 0, 64, NULL,
                 "0:01>1 0:02>2 0:03>3 0:04>4 1:03>61 1:04>60 ");
    check_listed(PLAN(.groups = {FULL(16), WINDOW(16, 33)}, .group_count = 2), 48, 64, NULL, "0:04>4 1:04>60 ");
    check_listed(PLAN(.groups = {MAMBA(16), FULL(16)}, .group_count = 2), 0, 48, NULL,
                 "0:03>3 1:01>63 1:02>62 1:03>61 ");
}

static void ranks_begin_at_another_key(void) {
    check_listed(PLAN(.tp = 4, .tp_rank = 1), 0, 48, NULL, "0:02>2 0:03>3 0:01>1 ");
    check_listed(PLAN(.tp = 4, .tp_rank = 3), 0, 48, NULL, "0:01>1 0:02>2 0:03>3 ");
    check_listed(PLAN(.tp = 8, .tp_rank = 7), 0, 32, NULL, "0:02>2 0:01>1 ");
    check_listed(PLAN(.tp = 2, .pp = 2, .pp_rank = 1), 0, 32, NULL, "0:01>1 0:02>2 ");
    check_listed(PLAN(.tp = 8, .tp_rank = 7), 0, 16, NULL, "0:01>1 ");
}

static void a_chunk_has_a_key_for_each_shard_of_the_rank(void) {
    check_listed(PLAN(.tp = 2, .store_tp = "4"), 0, 32, NULL, "0:01>1/0 0:01>1/1 0:02>2/0 0:02>2/1 ");
    check_listed(PLAN(.tp = 2, .tp_rank = 1, .store_tp = "4"), 0, 32, NULL, "0:01>1/3 0:02>2/2 0:02>2/3 0:01>1/2 ");
}

static void set_boundaries(struct moon_job *job) {
    static const int64_t tokens[] = {48, 64};
    MOON_CHECK_INT(moon_job_set_tail_boundaries(job, tokens), 0);
}

static void the_last_chunk_is_keyed_by_its_boundary(void) {
    /* hash blocks of 16, groups of 16 and 64: the hit of 48 ends inside the Mamba block that was stored at 64 */
    const struct rig_plan *plan =
        PLAN(.groups = {FULL(16), MAMBA(64)}, .group_count = 2, .scheduler_block = 64, .hash_block = 16);
    check_listed(plan, 0, 48, set_boundaries, "0:01>1 0:02>2 0:03>3 1:04>63 ");
    check_listed(plan, 0, 48, NULL, "0:01>1 0:02>2 0:03>3 1:03>63 ");
}

static void set_full_boundaries(struct moon_job *job) {
    static const int64_t tokens[] = {80};
    MOON_CHECK_INT(moon_job_set_tail_boundaries(job, tokens), 0);
}

static void only_the_last_chunk_has_the_boundary(void) {
    check_listed(PLAN(.tp = 1), 0, 48, set_full_boundaries, "0:01>1 0:02>2 0:05>3 ");
}

static void save_one_more(struct moon_job *job) {
    job->save = true;
    job->save_tokens = 32;
}

static void release_0_21_reads_a_part_of_the_last_block(void) {
    struct rig rig;
    struct moon_load_keys load;
    rig_open(&rig, &(struct rig_plan){.release = "0.21"});
    moon_load_keys_open(&load, moon_memory_heap());
    struct moon_job *job = rig_job(&rig, moon_memory_heap(), 1, 0, 31);
    MOON_CHECK_INT(moon_load_keys_list(&load, &rig.connector, &rig.rank, &rig.segments, job, NULL), 0);
    MOON_CHECK_INT(load.count, 2);
    MOON_CHECK_INT(load.buffers[0].size_bytes, 1024);
    MOON_CHECK_INT(load.buffers[1].size_bytes, 1024 / 16 * 15);
    save_one_more(job);
    MOON_CHECK_INT(moon_load_end_tokens(&rig.connector, job), 32);
    MOON_CHECK_INT(moon_load_keys_list(&load, &rig.connector, &rig.rank, &rig.segments, job, NULL), 0);
    MOON_CHECK_INT(load.buffers[1].size_bytes, 1024);
    job->load_hit_tokens = 16; /* a whole block is not extended */
    job->save_tokens = 17;
    MOON_CHECK_INT(moon_load_end_tokens(&rig.connector, job), 16);
    moon_job_release(job);
    moon_load_keys_close(&load);
    rig_close(&rig);
}

static void every_segment_of_the_block_is_read(void) {
    struct rig rig;
    struct moon_load_keys load;
    rig_open(&rig, PLAN(.tp = 2, .tp_rank = 1, .layers = 3));
    moon_load_keys_open(&load, moon_memory_heap());
    struct moon_job *job = rig_job(&rig, moon_memory_heap(), 1, 0, 32);
    MOON_CHECK_INT(moon_load_keys_list(&load, &rig.connector, &rig.rank, &rig.segments, job, NULL), 0);
    const struct moon_staging_keys keys = moon_load_staging_keys(&load);
    MOON_CHECK_INT(keys.per_key, 3);
    MOON_CHECK_INT(keys.count, 2);
    for (size_t key = 0; key < 2; key++)
        for (size_t layer = 0; layer < 3; layer++) {
            const struct moon_buffer *buffer = &keys.buffers[key * 3 + layer];
            MOON_CHECK_INT(buffer->storage, layer);
            MOON_CHECK_INT(buffer->offset_bytes, (2 - key) * RIG_PAGE_BYTES); /* rotated: block 2, then 1 */
            MOON_CHECK_INT(buffer->size_bytes, RIG_PAGE_BYTES);
        }
    moon_job_release(job);
    moon_load_keys_close(&load);
    rig_close(&rig);
}

/* ---- jobs that make no sense ---- */

static void cut_table(struct moon_job *job) {
    job->tables->groups[0].count = 2;
}
static void spoil_block(struct moon_job *job) {
    ((int64_t *)(uintptr_t)job->tables->groups[0].blocks)[1] = -1;
}
static void drop_tables(struct moon_job *job) {
    moon_tables_release(job->tables);
    job->tables = NULL;
}
static void drop_group_of_tables(struct moon_job *job) {
    job->tables->group_count = 0;
}
static void add_group(struct moon_job *job) {
    job->group_count = 2;
}
static void cut_hashes(struct moon_job *job) {
    job->hashes.count = 2;
}
static void begin_behind(struct moon_job *job) {
    job->load_local_tokens = 64;
}
static void begin_before(struct moon_job *job) {
    job->load_local_tokens = -16;
}
static void set_boundary(struct moon_job *job, int64_t tokens) {
    MOON_CHECK_INT(moon_job_set_tail_boundaries(job, &tokens), 0);
}
static void boundary_of_nothing(struct moon_job *job) {
    set_boundary(job, 0);
}
static void boundary_inside_a_hash(struct moon_job *job) {
    set_boundary(job, 40);
}
static void boundary_behind_the_hashes(struct moon_job *job) {
    set_boundary(job, 16 * (RIG_HASHES_MAX + 1));
}
static void endless(struct moon_job *job) {
    job->hashes.count = (size_t)MOON_LOAD_KEYS_MAX * 2;
    job->load_hit_tokens = (MOON_LOAD_KEYS_MAX + 1) * INT64_C(16);
}

static void jobs_that_make_no_sense_are_named(void) {
    static const struct {
        rig_change *change;
        int status;
        const char *where;
    } rows[] = {
        {cut_table, MOON_ERR_RANGE, "tables"},
        {spoil_block, MOON_ERR_RANGE, "tables"},
        {drop_tables, MOON_ERR_RANGE, "tables"},
        {drop_group_of_tables, MOON_ERR_RANGE, "tables"},
        {add_group, MOON_ERR_RANGE, "tables"},
        {cut_hashes, MOON_ERR_RANGE, "hashes"},
        {begin_behind, MOON_ERR_RANGE, "load_hit_tokens"},
        {begin_before, MOON_ERR_RANGE, "load_hit_tokens"},
        {boundary_of_nothing, MOON_ERR_RANGE, "tail_boundaries"},
        {boundary_inside_a_hash, MOON_ERR_RANGE, "tail_boundaries"},
        {boundary_behind_the_hashes, MOON_ERR_RANGE, "tail_boundaries"},
        {endless, MOON_ERR_LIMIT, "load_hit_tokens"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig rig;
        struct moon_load_keys load;
        struct moon_error error = {0};
        rig_open(&rig, PLAN(.tp = 1));
        moon_load_keys_open(&load, moon_memory_heap());
        struct moon_job *job = rig_job(&rig, moon_memory_heap(), 1, 0, 48);
        rows[i].change(job);
        MOON_CHECK_INT(moon_load_keys_list(&load, &rig.connector, &rig.rank, &rig.segments, job, &error),
                       rows[i].status);
        MOON_CHECK_TEXT(error.where, rows[i].where);
        job->group_count = 1; /* as it was made */
        if (job->tables)
            job->tables->group_count = 1;
        moon_job_release(job);
        moon_load_keys_close(&load);
        rig_close(&rig);
    }
}

static void a_cut_hit_raises_where_blocks_are_whole(void) {
    struct rig rig;
    struct moon_load_keys load;
    struct moon_error error = {0};
    rig_open(&rig, &(struct rig_plan){.release = "0.24"});
    moon_load_keys_open(&load, moon_memory_heap());
    struct moon_job *job = rig_job(&rig, moon_memory_heap(), 1, 0, 40);
    MOON_CHECK_INT(moon_load_keys_list(&load, &rig.connector, &rig.rank, &rig.segments, job, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "AssertionError");
    moon_job_release(job);
    moon_load_keys_close(&load);
    rig_close(&rig);
}

static void a_load_list_is_used_again_and_survives_refused_memory(void) {
    struct rig rig;
    rig_open(&rig, PLAN(.groups = {FULL(16), WINDOW(16, 33)}, .group_count = 2, .tp = 4, .tp_rank = 3));
    for (uint64_t at = 1;; at++) {
        struct moon_memory_failing failing;
        struct moon_load_keys load;
        struct moon_error error = {0};
        struct moon_text out;
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        moon_load_keys_open(&load, &failing.memory);
        moon_text_open(&out, moon_memory_heap());
        struct moon_job *job = rig_job(&rig, moon_memory_heap(), 1, 0, 320);
        int status = moon_load_keys_list(&load, &rig.connector, &rig.rank, &rig.segments, job, &error);
        CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
        MOON_CHECK_INT(status, failing.requests >= at ? MOON_ERR_MEMORY : 0);
        failing.fail_at = 0;
        job->load_hit_tokens = 32;
        MOON_CHECK_INT(list_job(&rig, &load, job, &out, &error), 0);
        MOON_CHECK_TEXT(moon_text_value(&out), "1:02>62 0:01>1 0:02>2 1:01>63 ");
        moon_job_release(job);
        moon_text_close(&out);
        moon_load_keys_close(&load);
        MOON_CHECK_INT(failing.held_bytes, 0);
        if (status == 0)
            break;
    }
    rig_close(&rig);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"all chunks of the hit are read", all_chunks_of_the_hit_are_read},
        {"chunks of the engine are not read", chunks_of_the_engine_are_not_read},
        {"what the engine has is rounded to scheduler blocks", what_the_engine_has_is_rounded_to_scheduler_blocks},
        {"windows and Mamba read their tail", windows_read_their_tail},
        {"ranks begin at another key", ranks_begin_at_another_key},
        {"a chunk has a key for each shard of the rank", a_chunk_has_a_key_for_each_shard_of_the_rank},
        {"the last chunk is keyed by its boundary", the_last_chunk_is_keyed_by_its_boundary},
        {"only the last chunk has the boundary", only_the_last_chunk_has_the_boundary},
        {"0.21 reads a part of the last block", release_0_21_reads_a_part_of_the_last_block},
        {"every segment of the block is read", every_segment_of_the_block_is_read},
        {"jobs that make no sense are named", jobs_that_make_no_sense_are_named},
        {"a cut hit raises where blocks are whole", a_cut_hit_raises_where_blocks_are_whole},
        {"a load list is used again and survives refused memory",
         a_load_list_is_used_again_and_survives_refused_memory},
        {NULL, NULL},
    };
    return moon_unit_main("load keys", cases, argc, argv);
}
