/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the events that one rank makes of what it stored. */
#include "ref/connector/kv_events.h"

#include "ref/base/unit.h"

static struct moon_layout_group groups[2];
static struct moon_layout_model model;
static struct moon_deviation_notes notes;
static struct moon_connector connector;
static struct moon_profile release;
static uint8_t digests[8 * 32];
static uint32_t ids[64];
static struct moon_job job;
static struct moon_kv_events events;

/* Hash i is 32 bytes 0x10 + i; token i is 1000 + i. Two groups of 8 and 16 tokens, hash block 8. */
static void begin(const char *name, bool whole) {
    release = *moon_profile_find(name, NULL);
    groups[0] = groups[1] = (struct moon_layout_group){.spec = {.kind = MOON_SPEC_FULL, .num_kv_heads = 1}};
    groups[0].block_tokens = 8;
    groups[1].block_tokens = 16;
    model = (struct moon_layout_model){.tp = 1,
                                       .pp = 1,
                                       .pcp = 2,
                                       .dcp = 2,
                                       .total_kv_heads = 1,
                                       .groups = groups,
                                       .group_count = 2,
                                       .scheduler_block_tokens = 16,
                                       .hash_block_tokens = 8};
    notes.taken = 0;
    connector = (struct moon_connector){.profile = &release, .model = &model, .notes = &notes};
    for (size_t i = 0; i < sizeof digests; i++)
        digests[i] = (uint8_t)(0x10 + i / 32);
    for (size_t i = 0; i < 64; i++)
        ids[i] = (uint32_t)(1000 + i);
    job = (struct moon_job){.hashes = {digests, 32, 8}, .token_ids = ids, .token_id_count = 64, .save_tokens = 64};
    moon_kv_events_open(&events, &connector, whole, moon_memory_heap());
}

/* Chunk `id` of a group, keyed by its last hash or by all of them. */
static struct moon_stored_block block(size_t group, int64_t id, bool failed) {
    int64_t size = groups[group].block_tokens, last = (id + 1) * size / 8 - 1;
    bool joined = release.chunk_hash == MOON_CHUNK_HASH_JOINED;
    return (struct moon_stored_block){
        group, {id, id * size, (id + 1) * size, joined ? id * size / 8 : last, joined ? size / 8 : 1}, failed};
}

static void add(const struct moon_stored_block *blocks, size_t count, bool raised) {
    struct moon_stored stored = {&job, blocks, count, raised};
    MOON_CHECK_INT(moon_kv_events_add(&events, &stored, NULL), 0);
}

/* First byte of a hash, 0 for none, and its length. */
static void check_hash(const struct moon_event_hash *hash, int first, size_t length) {
    MOON_CHECK_INT(hash->length, length);
    MOON_CHECK_INT(hash->length ? hash->bytes[0] : 0, first);
}

static void a_stored_block_is_told_with_its_fields(void) {
    begin("vllm-0.33", false);
    const struct moon_stored_block blocks[] = {block(0, 0, false), block(0, 3, false), block(1, 1, false)};
    add(blocks, 3, false);
    MOON_CHECK_INT(events.count, 3);
    check_hash(&events.events[0].hash, 0x10, 8);
    check_hash(&events.events[0].parent, 0, 0);
    check_hash(&events.events[1].hash, 0x13, 8);
    check_hash(&events.events[1].parent, 0x12, 8); /* although block 2 was not put */
    check_hash(&events.events[2].hash, 0x13, 8);
    check_hash(&events.events[2].parent, 0x11, 8);
    MOON_CHECK_INT(events.events[1].block_tokens, 8);
    MOON_CHECK_INT(events.events[2].block_tokens, 16);
    MOON_CHECK_INT(events.events[2].group, 1);
    CU_ASSERT_TRUE(events.events[1].tokens_known);
    MOON_CHECK_INT(events.events[1].token_count, 8);
    MOON_CHECK_INT(events.events[1].token_ids[0], 1024);
    MOON_CHECK_INT(events.events[2].token_ids[15], 1031);
    moon_kv_events_clear(&events);
    add(blocks, 1, false);
    MOON_CHECK_INT(events.count, 1);
    moon_kv_events_close(&events);
    moon_kv_events_close(&events);
}

static void a_hash_is_told_as_number_or_whole(void) {
    begin("vllm-0.33", true);
    digests[24] = 0x77;
    const struct moon_stored_block blocks[] = {block(0, 0, false)};
    add(blocks, 1, false);
    check_hash(&events.events[0].hash, 0x10, 32);
    moon_kv_events_close(&events);
    begin("vllm-0.33", false);
    digests[24] = 0x77;
    add(blocks, 1, false);
    check_hash(&events.events[0].hash, 0x77, 8);
    moon_kv_events_close(&events);
    begin("vllm-0.23", true);
    const struct moon_stored_block wide[] = {block(1, 0, false)};
    add(wide, 1, false);
    check_hash(&events.events[0].hash, 0x10, 64); /* all hashes of the chunk */
    moon_kv_events_close(&events);
    begin("vllm-0.22", true);
    const struct moon_stored_block second[] = {block(1, 1, false)};
    add(second, 1, false);
    check_hash(&events.events[0].hash, 0x11, 32); /* the second hash, not that of the second chunk */
    CU_ASSERT_TRUE(moon_deviation_noted(&notes, MOON_DEVIATION_EVENT_OF_OTHER_BLOCK));
    moon_kv_events_close(&events);
    begin("vllm-0.22", true);
    moon_profile_strict(moon_profile_find("vllm-0.22", NULL), &release);
    add(second, 1, false);
    MOON_CHECK_INT(events.events[0].hash.length, 64);
    MOON_CHECK_INT(events.events[0].block_tokens, 16);
    MOON_CHECK_INT(notes.taken, 0);
    moon_kv_events_close(&events);
}

static void a_failed_put_is_not_told(void) {
    begin("vllm-0.29", false);
    const struct moon_stored_block blocks[] = {block(0, 0, false), block(0, 1, true), block(0, 2, false)};
    add(blocks, 3, false);
    MOON_CHECK_INT(events.count, 2);
    check_hash(&events.events[1].parent, 0x11, 8);
    add(blocks, 3, true);
    MOON_CHECK_INT(events.count, 2);
    MOON_CHECK_INT(notes.taken, 0);
    moon_kv_events_close(&events);
}

static void up_to_28_a_failed_put_is_told(void) {
    const struct moon_profile *old = moon_profile_find("vllm-0.28", NULL);
    begin("vllm-0.28", false);
    const struct moon_stored_block blocks[] = {block(0, 0, false), block(0, 1, true), block(1, 1, false),
                                               block(0, 3, false)};
    add(blocks, 1, false);
    CU_ASSERT_FALSE(moon_deviation_noted(&notes, MOON_DEVIATION_EVENTS_OF_FAILED_PUTS));
    add(blocks, 4, false);
    MOON_CHECK_INT(events.count, 5);
    CU_ASSERT_TRUE(moon_deviation_noted(&notes, MOON_DEVIATION_EVENTS_OF_FAILED_PUTS));
    check_hash(&events.events[1].parent, 0, 0); /* the put before is another story */
    check_hash(&events.events[2].parent, 0x10, 8);
    check_hash(&events.events[3].parent, 0, 0);
    check_hash(&events.events[4].parent, 0x11, 8);
    add(blocks, 4, true);
    MOON_CHECK_INT(events.count, 9);
    moon_kv_events_close(&events);

    begin("vllm-0.28", false);
    moon_profile_strict(old, &release);
    add(blocks, 4, false);
    MOON_CHECK_INT(events.count, 3);
    check_hash(&events.events[2].parent, 0x10, 8);
    add(blocks, 4, true);
    MOON_CHECK_INT(events.count, 3);
    MOON_CHECK_INT(notes.taken, 0);
    moon_kv_events_close(&events);
}

static void without_ids_the_list_is_unknown(void) {
    begin("vllm-0.33", false);
    job.token_ids = NULL;
    const struct moon_stored_block blocks[] = {block(0, 1, false)};
    add(blocks, 1, false);
    CU_ASSERT_FALSE(events.events[0].tokens_known);
    MOON_CHECK_INT(events.events[0].token_count, 0);
    moon_kv_events_close(&events);
}

static void up_to_28_ids_end_with_the_step_of_the_start(void) {
    const struct moon_stored_block blocks[] = {block(0, 1, false), block(0, 2, false), block(0, 3, false)};
    begin("vllm-0.28", false);
    job.token_id_count = 20;
    add(blocks, 3, false);
    MOON_CHECK_INT(events.events[0].token_count, 8);
    MOON_CHECK_INT(events.events[1].token_count, 4); /* cut */
    MOON_CHECK_INT(events.events[1].token_ids[3], 1019);
    MOON_CHECK_INT(events.events[2].token_count, 0);
    CU_ASSERT_TRUE(events.events[2].tokens_known);
    job.token_id_count = 0; /* after a preemption nothing is known */
    add(blocks, 1, false);
    CU_ASSERT_FALSE(events.events[3].tokens_known);
    CU_ASSERT_TRUE(moon_deviation_noted(&notes, MOON_DEVIATION_EVENT_IDS_CUT));
    moon_kv_events_close(&events);
}

static void up_to_22_the_block_is_the_engines(void) {
    begin("vllm-0.21", false);
    const struct moon_stored_block blocks[] = {block(1, 0, false)};
    add(blocks, 1, false);
    MOON_CHECK_INT(events.events[0].block_tokens, 2); /* 8 tokens of the first group over 4 ranks */
    moon_kv_events_close(&events);
}

static void refused_memory_adds_nothing(void) {
    struct moon_stored_block blocks[40];
    struct moon_memory_failing failing;
    begin("vllm-0.33", false);
    moon_kv_events_close(&events);
    for (size_t i = 0; i < 40; i++)
        blocks[i] = block(i % 2, (int64_t)(i % 4), false);
    struct moon_stored stored = {&job, blocks, 40, false};
    int status = MOON_ERR_MEMORY;
    for (uint64_t n = 1; status; n++) {
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_kv_events_open(&events, &connector, false, &failing.memory);
        status = moon_kv_events_add(&events, &stored, NULL);
        MOON_CHECK_INT(events.count, status ? 0 : 40);
        CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
        moon_kv_events_close(&events);
        MOON_CHECK_INT(failing.held_bytes, 0);
        CU_ASSERT_FATAL(n < 100);
    }
}

/* Pieces larger than a chunk of the arena, so that each copy asks for memory. */
static void each_copy_may_be_refused(void) {
    static uint8_t wide[65536 * 2];
    static uint32_t many[65536];
    struct moon_memory_failing failing;
    begin("vllm-0.33", true);
    moon_kv_events_close(&events);
    job.hashes = (struct moon_hashes){wide, 65536, 2};
    job.token_ids = many;
    job.token_id_count = 65536;
    const struct moon_stored_block blocks[] = {{0, {1, 8, 65536, 1, 1}, false}};
    struct moon_stored stored = {&job, blocks, 1, false};
    for (uint64_t n = 2; n < 5; n++) {
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_kv_events_open(&events, &connector, true, &failing.memory);
        MOON_CHECK_INT(moon_kv_events_add(&events, &stored, NULL), MOON_ERR_MEMORY);
        MOON_CHECK_INT(events.count, 0);
        moon_kv_events_close(&events);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a stored block is told with its fields", a_stored_block_is_told_with_its_fields},
        {"a hash is told as a number, or whole", a_hash_is_told_as_number_or_whole},
        {"a failed put is not told", a_failed_put_is_not_told},
        {"up to 0.28 a failed put is told, strict not", up_to_28_a_failed_put_is_told},
        {"without token ids the list is unknown", without_ids_the_list_is_unknown},
        {"up to 0.28 token ids end with the step in which the request started",
         up_to_28_ids_end_with_the_step_of_the_start},
        {"up to 0.22 the block size is the engine's", up_to_22_the_block_is_the_engines},
        {"refused memory adds nothing and leaks nothing", refused_memory_adds_nothing},
        {"each copy of an event may be refused", each_copy_may_be_refused},
        {NULL, NULL},
    };
    return moon_unit_main("kv_events", cases, argc, argv);
}
