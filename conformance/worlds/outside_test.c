/* SPDX-License-Identifier: Apache-2.0 */
/* Calls as messages, answers, and what the harness records of foreign clients. */
#include "conformance/worlds/outside.h"

#include "ref/base/unit.h"

#include <stdlib.h>
#include <unistd.h>

static const char *const keys[] = {"a", "b"};

static const struct moon_scenario *scenario(void) {
    static struct moon_scenario one;
    one.nodes[0].name = "master";
    one.nodes[1] = (struct moon_scenario_node){"client", 4096};
    one.node_count = 2;
    return &one;
}

static struct moon_world_call call_of(enum moon_scenario_do what, size_t key_count, int64_t *results,
                                      uint64_t *digests) {
    return (struct moon_world_call){.node = 1,
                                    .what = what,
                                    .keys = keys,
                                    .key_count = key_count,
                                    .bytes = 3,
                                    .fill = 7,
                                    .results = results,
                                    .digests = digests};
}

static void check_message(enum moon_scenario_do what, size_t key_count, const char *folder, const char *expected) {
    struct moon_arena arena;
    struct moon_text text;
    struct moon_json *message = NULL;
    struct moon_error error;
    struct moon_world_call call = call_of(what, key_count, NULL, NULL);
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    MOON_CHECK_INT(moon_outside_message(&arena, scenario(), &call, 5, "h:1", folder, &message, &error), 0);
    moon_json_write(message, MOON_JSON_COMPACT, &text);
    MOON_CHECK_TEXT(moon_text_value(&text), expected);
    moon_text_close(&text);
    moon_arena_close(&arena);
}

#define START(call) "{\"do\":\"store\",\"seq\":5,\"client\":\"client\",\"call\":\"" call "\",\"args\":"

static void calls_become_messages(void) {
    check_message(MOON_DO_PUT, 1, NULL, START("put") "{\"key\":\"a\",\"value\":{\"fill\":7,\"bytes\":3}}}");
    check_message(MOON_DO_PUT, 1, "/tmp", START("put") "{\"key\":\"a\",\"value\":{\"hex\":\"e13245\"}}}");
    check_message(MOON_DO_GET, 1, NULL, START("get") "{\"key\":\"a\",\"bytes\":3,\"want\":\"digest\"}}");
    check_message(MOON_DO_EXIST, 1, NULL, START("exist") "{\"keys\":[\"a\"]}}");
    check_message(MOON_DO_REMOVE, 1, NULL, START("remove") "{\"keys\":[\"a\"],\"force\":false}}");
    check_message(MOON_DO_REMOVE_ALL, 0, NULL, START("remove_all") "{\"force\":false}}");
    check_message(MOON_DO_BATCH_GET, 2, NULL, START("batch_get") "{\"keys\":[\"a\",\"b\"],\"bytes\":[3,3]}}");
    check_message(MOON_DO_SETUP, 0, NULL,
                  START("setup") "{\"local_hostname\":\"127.0.0.1\",\"master_server_addr\":\"h:1\","
                                 "\"global_segment_size\":4096,\"local_buffer_size\":67108864,\"protocol\":\"tcp\","
                                 "\"rdma_devices\":\"\",\"tenant_id\":\"default\"}}");
}

static bool read_answer(struct moon_world_call *call, const char *text, const char **why) {
    struct moon_arena arena;
    struct moon_json *answer = NULL;
    struct moon_error error;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_json_read(&arena, "t", text, strlen(text), MOON_JSON_STRICT, &answer, &error), 0);
    bool read = moon_outside_read(call, answer, why);
    moon_arena_close(&arena);
    return read;
}

static void answers_are_read_or_refused(void) {
    int64_t results[2] = {0};
    uint64_t digests[2] = {0};
    const char *why = "";
    struct moon_world_call get = call_of(MOON_DO_GET, 1, results, digests),
                           batch = call_of(MOON_DO_BATCH_GET, 2, results, digests);
    CU_ASSERT(read_answer(&get, "{\"seq\":5,\"result\":{\"code\":3,\"digest\":\"00000000000000ff\"}}", &why));
    MOON_CHECK_INT(results[0], 3);
    MOON_CHECK_INT(digests[0], 255);
    CU_ASSERT(read_answer(&get, "{\"seq\":5,\"result\":{\"code\":-704}}", &why));
    MOON_CHECK_INT(results[0], -704);
    CU_ASSERT(read_answer(&batch, "{\"result\":{\"codes\":[3,-704],\"digests\":[\"00000000000000ff\",null]}}", &why));
    CU_ASSERT_FALSE(read_answer(&get, "{\"seq\":5,\"error\":\"no\"}", &why));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "no \"result\""));
    CU_ASSERT_FALSE(read_answer(&get, "{\"result\":{\"code\":\"3\"}}", &why));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "no number"));
    CU_ASSERT_FALSE(read_answer(&get, "{\"result\":{\"code\":3,\"digest\":\"xx\"}}", &why));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "no digest"));
    CU_ASSERT_FALSE(read_answer(&batch, "{\"result\":{\"codes\":[3]}}", &why));
    CU_ASSERT_PTR_NOT_NULL(strstr(why, "one code for each key"));
}

static void the_harness_records_what_a_foreign_client_was_asked(void) {
    struct moon_outside outside;
    int64_t results[2] = {0, -200};
    uint64_t digests[2] = {0};
    struct moon_world_call put = call_of(MOON_DO_BATCH_PUT, 2, results, digests);
    moon_outside_open(&outside, scenario(), moon_memory_heap());
    moon_outside_invoked(&outside, 0, 1, &put);
    moon_outside_ended(&outside, 0, 1, &put);
    moon_outside_fault(&outside, "stop", "client");
    MOON_CHECK_INT(outside.records.count, 5);
    const struct moon_record *records = outside.records.records;
    MOON_CHECK_INT(records[0].kind, MOON_RECORD_INVOKE);
    MOON_CHECK_TEXT(records[0].what, "put");
    CU_ASSERT(records[0].has & MOON_RECORD_HAS_DIGEST);
    CU_ASSERT(records[0].op == records[2].op && records[1].op == records[3].op && records[0].op != records[1].op);
    MOON_CHECK_INT(records[2].kind, MOON_RECORD_OK);
    MOON_CHECK_INT(records[3].kind, MOON_RECORD_INFO);
    MOON_CHECK_INT(records[3].n, 3);
    MOON_CHECK_TEXT(records[4].what, "stop");
    CU_ASSERT(moon_bytes_equal(records[4].node, moon_bytes_of("harness")));
    moon_outside_close(&outside);
}

static const struct moon_unit_case cases[] = {
    {"calls become messages of the adapter protocol", calls_become_messages},
    {"answers are read, and wrong ones refused with what is wrong", answers_are_read_or_refused},
    {"the harness records what a foreign client was asked and gave",
     the_harness_records_what_a_foreign_client_was_asked},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    return moon_unit_main("outside", cases, argc, argv);
}
