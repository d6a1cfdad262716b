/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of key lists: the text of a pair, runs, and what happens when memory refuses. */
#include "ref/key/key_list.h"

#include "ref/base/unit.h"

static const struct moon_profile *newest(void) {
    return moon_profile_newest();
}

static const struct moon_hashes *hashes(void) {
    static const uint8_t bytes[] = {0xab, 0x01, 0xcd, 0x02, 0xef, 0x03};
    static const struct moon_hashes all = {bytes, 2, 3};
    return &all;
}

static const struct moon_pool_key *rank(int64_t tp) {
    static struct moon_pool_key key;
    key = (struct moon_pool_key){.model_name = moon_key_text("m"), .tp_rank = tp};
    return &key;
}

/* Checks one key: its text, its length, and its hash. */
static void check_key(const struct moon_key_list *list, size_t index, const char *text, const char *hash) {
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    moon_key_list_write(list, index, &out);
    MOON_CHECK_TEXT(moon_text_value(&out), text);
    MOON_CHECK_INT(moon_key_list_length(list, index), strlen(text));
    struct moon_key_text part = moon_key_list_hash_text(list, index);
    MOON_CHECK_INT(part.length, strlen(hash));
    CU_ASSERT(memcmp(part.bytes, hash, part.length) == 0);
    moon_text_close(&out);
}

static void a_key_is_its_identity_and_its_hash(void) {
    struct moon_key_list list;
    const struct moon_chunk one = {.first_hash = 1, .hash_count = 1}, joined = {.first_hash = 0, .hash_count = 2};
    moon_key_list_open(&list, moon_memory_heap());
    uint32_t zero = moon_key_list_identity(&list, newest(), rank(0));
    uint32_t other = moon_key_list_identity_text(&list, moon_key_text("x@y"));
    uint32_t first = moon_key_list_hash(&list, hashes(), &one), second = moon_key_list_hash(&list, hashes(), &joined);
    moon_key_list_add(&list, zero, second);
    moon_key_list_add(&list, other, first);
    check_key(&list, 0, "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@ab01cd02", "ab01cd02");
    check_key(&list, 1, "x@y@cd02", "cd02");
    MOON_CHECK_INT(list.count, 2);
    moon_key_list_close(&list);
    moon_key_list_close(&list);
}

static void a_run_is_one_hash_under_many_identities(void) {
    struct moon_key_list list;
    moon_key_list_open(&list, moon_memory_heap());
    for (int64_t i = 0; i < 100; i++)
        MOON_CHECK_INT(moon_key_list_identity(&list, newest(), rank(i)), i);
    const struct moon_chunk last = {.first_hash = 2, .hash_count = 1};
    uint32_t hash = moon_key_list_hash(&list, hashes(), &last);
    moon_key_list_add_run(&list, 1, 0, hash);
    MOON_CHECK_INT(list.count, 0);
    moon_key_list_add_run(&list, 1, 99, hash);
    MOON_CHECK_INT(list.count, 99);
    check_key(&list, 0, "m@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0@ef03", "ef03");
    check_key(&list, 98, "m@tp_rank:99@pcp0@dcp0@pp_rank:0@group:0@ef03", "ef03");
    moon_key_list_close(&list);
}

static void a_cleared_list_keeps_its_memory(void) {
    struct moon_memory_failing counting;
    struct moon_key_list list;
    const struct moon_chunk chunk = {.first_hash = 0, .hash_count = 1};
    moon_memory_failing_init(&counting, moon_memory_heap(), 0);
    moon_key_list_open(&list, &counting.memory);
    uint64_t requests = 0;
    for (int round = 0; round < 3; round++) {
        moon_key_list_clear(&list);
        MOON_CHECK_INT(list.count, 0);
        moon_key_list_identity(&list, newest(), rank(round));
        moon_key_list_add(&list, 0, moon_key_list_hash(&list, hashes(), &chunk));
        MOON_CHECK_INT(round > 0 && counting.requests != requests, 0);
        requests = counting.requests;
    }
    moon_key_list_close(&list);
    MOON_CHECK_INT(counting.held_bytes, 0);
}

static int fill(struct moon_memory *memory, const void *context) {
    struct moon_key_list list;
    const struct moon_chunk chunk = {.first_hash = 0, .hash_count = 3};
    (void)context;
    moon_key_list_open(&list, memory);
    for (int64_t i = 0; i < 40; i++) {
        uint32_t identity = moon_key_list_identity(&list, newest(), rank(i));
        uint32_t text = moon_key_list_identity_text(&list, moon_key_text("x"));
        uint32_t hash = moon_key_list_hash(&list, hashes(), &chunk);
        if (!list.failed)
            moon_key_list_add_run(&list, identity, 2, hash);
        (void)text;
    }
    bool failed = list.failed;
    size_t count = list.count;
    moon_key_list_add(&list, 0, 0); /* after a failure nothing changes */
    MOON_CHECK_INT(list.count, failed ? count : count + 1);
    moon_key_list_close(&list);
    return failed ? MOON_ERR_MEMORY : 0;
}

static void cleared_keys_leave_their_identities(void) {
    struct moon_key_list list;
    const struct moon_chunk first = {.first_hash = 0, .hash_count = 2}, second = {.first_hash = 1, .hash_count = 1};
    moon_key_list_open(&list, moon_memory_heap());
    moon_key_list_clear_keys(&list); /* nothing is there */
    uint32_t one = moon_key_list_identity(&list, newest(), rank(1));
    moon_key_list_add(&list, one, moon_key_list_hash(&list, hashes(), &first));
    uint32_t two = moon_key_list_identity(&list, newest(), rank(2));
    size_t longest = list.text.length;
    for (int round = 0; round < 3; round++) {
        moon_key_list_clear_keys(&list);
        MOON_CHECK_INT(list.count, 0);
        uint32_t hash = moon_key_list_hash(&list, hashes(), &second);
        moon_key_list_add(&list, two, hash);
        moon_key_list_add(&list, one, hash);
        check_key(&list, 0, "m@tp_rank:2@pcp0@dcp0@pp_rank:0@group:0@cd02", "cd02");
        check_key(&list, 1, "m@tp_rank:1@pcp0@dcp0@pp_rank:0@group:0@cd02", "cd02");
        MOON_CHECK_INT(list.text.length, longest + 4);
    }
    moon_key_list_close(&list);
}

static void refused_memory_is_remembered_and_leaks_nothing(void) {
    moon_unit_refuse_memory(fill, NULL);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a key is its identity and its hash", a_key_is_its_identity_and_its_hash},
        {"a run is one hash under many identities", a_run_is_one_hash_under_many_identities},
        {"a cleared list keeps its memory", a_cleared_list_keeps_its_memory},
        {"cleared keys leave their identities", cleared_keys_leave_their_identities},
        {"refused memory is remembered and leaks nothing", refused_memory_is_remembered_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("key_list", cases, argc, argv);
}
