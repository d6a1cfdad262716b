/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the judge of recorded Mooncake messages, and the recorded messages themselves. */
#include "conformance/wire_fixture.h"

#include "conformance/io.h"
#include "ref/base/unit.h"

struct outcome {
    size_t passed, failed;
    struct moon_text report;
    struct moon_error error;
    int status;
};

static void judge_tree(const struct moon_json *tree, struct outcome *outcome) {
    memset(outcome, 0, sizeof *outcome);
    moon_text_open(&outcome->report, moon_memory_heap());
    outcome->status =
        moon_wire_fixture_check("fixture", tree, &outcome->passed, &outcome->failed, &outcome->report, &outcome->error);
}

static void judge_text(const char *text, struct outcome *outcome) {
    struct moon_arena arena;
    struct moon_json *tree = NULL;
    struct moon_error error;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_json_read(&arena, "fixture", text, strlen(text), MOON_JSON_STRICT, &tree, &error), 0);
    judge_tree(tree, outcome);
    moon_arena_close(&arena);
}

static void recorded(const char *release, size_t expected) {
    struct moon_arena arena;
    struct moon_json *tree = NULL;
    struct moon_error error = {0};
    struct outcome outcome;
    char path[128];
    snprintf(path, sizeof path, "fixtures/wire/mooncake-%s.json.zst", release);
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_io_read_json(&arena, path, MOON_JSON_STRICT, &tree, &error), 0);
    judge_tree(tree, &outcome);
    MOON_CHECK_INT(outcome.status, 0);
    MOON_CHECK_TEXT(moon_text_value(&outcome.report), "");
    MOON_CHECK_INT(outcome.passed, expected);
    MOON_CHECK_INT(outcome.failed, 0);
    moon_text_close(&outcome.report);
    moon_arena_close(&arena);
}

/* Messages, functions, and one check that the table has no more functions than the release. */
static void newest_release_passes(void) {
    recorded("0.3.13.post1", 669 + 64 + 1);
}
static void older_releases_pass(void) {
    recorded("0.3.12.post1", 643 + 60 + 1);
    recorded("0.3.11.post1", 526 + 59 + 1);
    recorded("0.3.10.post2", 483 + 46 + 1);
}

#define DOCUMENT(functions, messages)                                                                                  \
    "{\"schema\":\"mooncheck-wire/1\",\"release\":\"0.3.13.post1\",\"functions\":[" functions                          \
    "],\"messages\":[" messages "]}"
#define MESSAGE(rpc, direction, hex, fields)                                                                           \
    "{\"rpc\":\"" rpc "\",\"direction\":\"" direction "\",\"seq\":0,\"hex\":\"" hex "\",\"fields\":" fields "}"

/* Each document differs from what the release does in one place, and the judge must say where. */
static void each_difference_is_found(void) {
    static const struct {
        const char *document, *why;
    } rows[] = {
        {DOCUMENT("", MESSAGE("ServiceReady", "request", "150000000000000056bb817b00000000000000", "{}")),
         "another length"},
        {DOCUMENT("", MESSAGE("ServiceReady", "request", "160000000000000056bb817b0000000000000000", "{}")),
         "frame is refused"},
        {DOCUMENT("", MESSAGE("Ping", "request", "150000000000000056bb817b0000000000000000", "{}")), "or function"},
        {DOCUMENT("", MESSAGE("Nothing", "response",
                              "150000000000000006000000"
                              "00000000"
                              "d200e8900101",
                              "{}")),
         "no such function"},
        {DOCUMENT("", MESSAGE("ExistKey", "response",
                              "150000000000000006000000"
                              "00000000"
                              "d200e8900102",
                              "{}")),
         "body is refused"},
        {DOCUMENT("", MESSAGE("ExistKey", "response",
                              "150000000000000006000000"
                              "00000000"
                              "d200e8900101",
                              "{\"ok\":false}")),
         "decoded fields are others"},
        {DOCUMENT("", MESSAGE("ExistKey", "request",
                              "1500000000000000095f38890b00000000000000"
                              "d81ef97c026b310161"
                              "0000",
                              "null")),
         "is taken"},
        {DOCUMENT("", MESSAGE("x", "response",
                              "15000b000000000000000000"
                              "00000000",
                              "{}")),
         "error answer is refused"},
        {DOCUMENT("", MESSAGE("x", "response",
                              "15000b000000000006000000"
                              "00000000"
                              "76facf9d0161",
                              "{\"rpc_error\":11,\"message\":\"b\"}")),
         "error answer is another"},
        {DOCUMENT("", MESSAGE("x", "response",
                              "15000b000000000006000000"
                              "00000000"
                              "76facf9d0161",
                              "{\"rpc_error\":11,\"message\":\"a\"}")),
         "error answer is encoded otherwise"},
        {DOCUMENT("", MESSAGE("te-handshake type 1", "request", "0000000000000000", "{}")), "handshake is refused"},
        {DOCUMENT("", MESSAGE("te-handshake type 1", "request",
                              "1600000000000000"
                              "01"
                              "7b2270726f746f636f6c223a2272646d61227d"
                              "2020",
                              "{}")),
         "descriptor is another"},
        {DOCUMENT("", MESSAGE("te-handshake type 1", "request",
                              "1600000000000000"
                              "01"
                              "7b2270726f746f636f6c223a2272646d61227d"
                              "2020",
                              "{\"protocol\":\"rdma\"}")),
         "descriptor is written otherwise"},
        {DOCUMENT("", MESSAGE("te-tcp-data", "request", "05", "{}")), "data header is cut"},
        {DOCUMENT("", MESSAGE("te-tcp-data", "request", "050000000000000000000051367f00008100000000000000", "{}")),
         "data header is another"},
        {DOCUMENT("", MESSAGE("te-tcp-data", "request", "050000000000000000000051367f00000500000000000000",
                              "{\"size\":5,\"addr\":139871263916032,\"opcode\":5,\"version\":1,\"op\":\"READ\","
                              "\"padding\":\"00000000000000\",\"payload_len\":0}")),
         "data header is written otherwise"},
        {DOCUMENT("", MESSAGE("te-tcp-data", "response", "000000005654434e", "{\"status\":0,\"payload_len\":0}")),
         "status is refused"},
        {DOCUMENT("", "{\"hex\":\"00\"}"), "lacks rpc"},
        {DOCUMENT("", MESSAGE("te-tcp-data", "response", "0", "{}")), "lacks rpc"},
        {DOCUMENT("{\"name\":\"ExistKey\"}", ""), "function ExistKey: id, hash or type text"},
        {DOCUMENT("{}", ""), "function ?: id"},
        {DOCUMENT("", ""), "0 functions, but the table has 64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome outcome;
        judge_text(rows[i].document, &outcome);
        MOON_CHECK_INT(outcome.status, 0);
        if (!strstr(moon_text_value(&outcome.report), rows[i].why))
            fprintf(stderr, "row %zu: \"%s\" is not in:\n%s", i, rows[i].why, moon_text_value(&outcome.report));
        CU_ASSERT(strstr(moon_text_value(&outcome.report), rows[i].why) != NULL);
        moon_text_close(&outcome.report);
    }
}

static void other_documents_are_refused(void) {
    static const char *const documents[] = {
        "{\"schema\":\"mooncheck-vectors/1\"}",
        "{\"schema\":\"mooncheck-wire/1\"}",
        "{\"schema\":\"mooncheck-wire/1\",\"release\":\"9\",\"functions\":[],\"messages\":[]}",
        "{\"schema\":\"mooncheck-wire/1\",\"release\":\"0.3.13\",\"messages\":[]}",
        "{\"schema\":\"mooncheck-wire/1\",\"release\":\"0.3.13\",\"functions\":[]}",
    };
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        struct outcome outcome;
        judge_text(documents[i], &outcome);
        MOON_CHECK_INT(outcome.status, MOON_ERR_SCHEMA);
        moon_text_close(&outcome.report);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"every recorded message of 0.3.13 is decoded and encoded byte for byte", newest_release_passes},
        {"every recorded message of 0.3.12, 0.3.11 and 0.3.10 is decoded and encoded byte for byte",
         older_releases_pass},
        {"each difference is found", each_difference_is_found},
        {"other documents are refused", other_documents_are_refused},
        {NULL, NULL},
    };
    return moon_unit_main("wire_fixture", cases, argc, argv);
}
