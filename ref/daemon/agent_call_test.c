/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of store calls: arguments to operations, outcomes to results. */
#include "ref/daemon/agent_call.h"

#include "ref/base/unit.h"

/* Reads a call from JSON. */
static int read_call(struct moon_arena *arena, const char *name, const char *args,
                     struct moon_client_operation *operation, bool *want_hex, struct moon_error *error) {
    struct moon_json *value;
    int status = moon_json_read(arena, "t", args, strlen(args), MOON_JSON_STRICT, &value, error);
    return status
               ? status
               : moon_agent_call_read(moon_agent_call_find(name), arena, "t", value, ".", operation, want_hex, error);
}

/* What an operation asks, as text: kind, batched, force, then each key with the sizes of its pieces. */
static void describe(const struct moon_client_operation *operation, struct moon_text *out) {
    moon_text_format(out, "%d%s%s", (int)operation->kind, operation->batched ? " batched" : "",
                     operation->force ? " force" : "");
    for (size_t i = 0; i < operation->item_count; i++) {
        const struct moon_client_item *item = &operation->items[i];
        moon_text_format(out, " %.*s", (int)item->key.length, item->key.data);
        for (size_t j = 0; j < item->piece_count; j++)
            moon_text_format(out, "%c%zu", j ? '+' : ':', item->pieces[j].length);
    }
}

static void check_call(const char *name, const char *args, const char *expected) {
    struct moon_arena arena;
    struct moon_text text;
    struct moon_client_operation operation;
    struct moon_error error = {.message = ""};
    bool want_hex;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    if (read_call(&arena, name, args, &operation, &want_hex, &error) == 0)
        describe(&operation, &text);
    else
        moon_text_string(&text, error.where[0] ? strchr(error.where, '$') : error.message);
    MOON_CHECK_TEXT(moon_text_value(&text), expected);
    moon_text_close(&text);
    moon_arena_close(&arena);
}

static void test_calls(void) {
    check_call("put", "{\"key\":\"k\",\"value\":{\"hex\":\"0011\"}}", "1 k:2");
    check_call("get", "{\"key\":\"k\",\"bytes\":7}", "2 k:7");
    check_call("exist", "{\"keys\":[\"a\"]}", "3 a");
    check_call("exist", "{\"keys\":[\"a\",{\"hex\":\"62\"}]}", "3 batched a b");
    check_call("size", "{\"keys\":[]}", "4");
    check_call("remove", "{\"keys\":[\"a\"],\"force\":true}", "5 force a");
    check_call("remove_all", "{}", "6");
    check_call("batch_put", "{\"keys\":[\"a\"],\"values\":[{\"fill\":1,\"bytes\":9}]}", "1 batched a:9");
    check_call("batch_get", "{\"keys\":[\"a\",\"b\"],\"bytes\":[1,0]}", "2 batched a:1 b:0");
    check_call("multi_put", "{\"keys\":[\"a\"],\"values\":[{\"fill\":1,\"bytes\":9}],\"sizes\":[[4,0,5]]}",
               "1 batched a:4+0+5");
    check_call("multi_get", "{\"keys\":[\"a\",\"b\"],\"sizes\":[[4,5],[]]}", "2 batched a:4+5 b");
    check_call("close", "{}", "7");
    CU_ASSERT_PTR_NULL(moon_agent_call_find("setup"));
    CU_ASSERT_PTR_NULL(moon_agent_call_find("register"));
}

static void test_bad_calls(void) {
    check_call("put", "{}", "$");
    check_call("put", "{\"key\":\"k\"}", "$");
    check_call("put", "{\"key\":\"k\",\"value\":5}", "$.value");
    check_call("put", "{\"key\":5,\"value\":{\"hex\":\"\"}}", "$.key");
    check_call("put", "{\"keys\":[],\"value\":{\"hex\":\"\"}}", "$.keys");
    check_call("get", "{\"key\":\"k\"}", "$");
    check_call("get", "{\"key\":\"k\",\"bytes\":-1}", "$.bytes");
    check_call("get", "{\"key\":\"k\",\"bytes\":\"1\"}", "$.bytes");
    check_call("get", "{\"key\":\"k\",\"bytes\":1073741824}", "$.bytes");
    check_call("get", "{\"key\":\"k\",\"bytes\":1,\"want\":\"all\"}", "$.want");
    check_call("get", "{\"key\":\"k\",\"bytes\":65537,\"want\":\"hex\"}", "$.bytes");
    check_call("exist", "{\"keys\":\"k\"}", "$.keys");
    check_call("remove", "{\"keys\":[\"a\"],\"force\":1}", "$.force");
    check_call("close", "{\"force\":true}", "$.force");
    check_call("batch_put", "{\"keys\":[\"a\"],\"values\":[]}", "$.values");
    check_call("batch_get", "{\"keys\":[\"a\"],\"bytes\":[1,2]}", "$.bytes");
    check_call("batch_get", "{\"keys\":[\"a\",\"b\"],\"bytes\":[536870912,1]}", "$.bytes[1]");
    check_call("multi_get", "{\"keys\":[\"a\"],\"sizes\":[5]}", "$.sizes[0]");
    check_call("multi_get", "{\"keys\":[\"a\"],\"sizes\":[[1e3]]}", "$.sizes[0][0]");
    check_call("multi_put", "{\"keys\":[\"a\"],\"values\":[{\"hex\":\"00\"}],\"sizes\":[[2]]}", "$.sizes[0][0]");
    check_call("multi_put", "{\"keys\":[\"a\"],\"values\":[{\"hex\":\"00\"}],\"sizes\":[[]]}", "$.sizes[0]");
    check_call("multi_put", "{\"keys\":[\"a\"],\"values\":[{\"hex\":\"00\"}],\"sizes\":[[null]]}", "$.sizes[0][0]");
}

static void test_many_keys(void) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, "{\"keys\":[\"a\"");
    for (int i = 0; i < MOON_AGENT_KEYS_MAX; i++)
        moon_text_string(&text, ",\"a\"");
    moon_text_string(&text, "]}");
    check_call("exist", text.data, "$.keys");
    moon_text_close(&text);
}

/* The result of a call whose items ended with these codes. */
static void check_result(const char *name, const char *args, const int64_t codes[], const char *expected) {
    struct moon_arena arena;
    struct moon_text text;
    struct moon_client_operation operation;
    bool want_hex;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    MOON_CHECK_INT(read_call(&arena, name, args, &operation, &want_hex, NULL), 0);
    operation.result = codes[0];
    for (size_t i = 0; i < operation.item_count; i++)
        operation.items[i].result = codes[i];
    const struct moon_json *result = moon_agent_call_result(moon_agent_call_find(name), &arena, &operation, want_hex);
    CU_ASSERT_FALSE(moon_json_broken(result));
    moon_json_write(result, MOON_JSON_COMPACT, &text);
    MOON_CHECK_TEXT(moon_text_value(&text), expected);
    moon_text_close(&text);
    moon_arena_close(&arena);
}

static void test_results(void) {
    check_result("remove_all", "{}", (int64_t[]){5}, "{\"code\":5}");
    check_result("put", "{\"key\":\"k\",\"value\":{\"hex\":\"00\"}}", (int64_t[]){-200}, "{\"code\":-200}");
    check_result("exist", "{\"keys\":[\"a\",\"b\"]}", (int64_t[]){1, -704}, "{\"codes\":[1,-704]}");
    check_result("get", "{\"key\":\"k\",\"bytes\":9}", (int64_t[]){0}, "{\"code\":0,\"digest\":\"2d06800538d394c2\"}");
    check_result("get", "{\"key\":\"k\",\"bytes\":9}", (int64_t[]){-704}, "{\"code\":-704}");
    check_result("get", "{\"key\":\"k\",\"bytes\":9,\"want\":\"hex\"}", (int64_t[]){2},
                 "{\"code\":2,\"hex\":\"0000\"}");
    check_result("batch_get", "{\"keys\":[\"a\",\"b\"],\"bytes\":[1,2]}", (int64_t[]){0, -800},
                 "{\"codes\":[0,-800],\"digests\":[\"2d06800538d394c2\",null]}");
}

static int read_one(struct moon_memory *memory, const void *context) {
    struct moon_arena arena;
    struct moon_client_operation operation;
    struct moon_error error;
    bool want_hex;
    moon_arena_open(&arena, memory);
    int status = read_call(&arena, "multi_put", context, &operation, &want_hex, &error);
    moon_arena_close(&arena);
    return status;
}

static void test_memory(void) {
    moon_unit_refuse_memory(read_one,
                            "{\"keys\":[\"a\"],\"values\":[{\"fill\":1,\"bytes\":100000}],\"sizes\":[[50000,50000]]}");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"each call becomes the operation that it means", test_calls},
        {"a bad argument is named", test_bad_calls},
        {"there is a limit to the keys of a call", test_many_keys},
        {"results have the shape of their call", test_results},
        {"refused memory leaks nothing", test_memory},
        {NULL, NULL},
    };
    return moon_unit_main("store calls", cases, argc, argv);
}
