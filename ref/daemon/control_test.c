/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the control channel, with a supervisor at the other end of a socket pair. */
#include "ref/daemon/control.h"

#include "ref/base/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_matching(void) {
    CU_ASSERT(moon_control_key_matches("k*", moon_bytes_of("key")));
    CU_ASSERT(moon_control_key_matches("*", moon_bytes_of("")));
    CU_ASSERT(moon_control_key_matches("m@*@group:?@*", moon_bytes_of("m@tp_rank:0@group:1@ab")));
    CU_ASSERT_FALSE(moon_control_key_matches("k", moon_bytes_of("key")));
    CU_ASSERT_FALSE(moon_control_key_matches("*", ((struct moon_bytes){"a\0b", 3})));
    char longest[5000];
    memset(longest, 'x', sizeof longest);
    CU_ASSERT(moon_control_key_matches("x*x", ((struct moon_bytes){longest, sizeof longest})));
}

static void test_bad_lines(void) {
    static const struct {
        const char *line;
        int status;
        const char *where;
    } rows[] = {
        {"", MOON_ERR_SYNTAX, ""},
        {"[]", MOON_ERR_SCHEMA, "$"},
        {"{}", MOON_ERR_SCHEMA, "$"},
        {"{\"go\":-1}", MOON_ERR_RANGE, "$.go"},
        {"{\"go\":\"1\"}", MOON_ERR_SCHEMA, "$.go"},
        {"{\"gone\":1}", MOON_ERR_SCHEMA, "$.gone"},
        {"{\"arm\":5}", MOON_ERR_SCHEMA, "$.arm"},
        {"{\"arm\":[5]}", MOON_ERR_SCHEMA, "$.arm[0]"},
        {"{\"arm\":[{}]}", MOON_ERR_SCHEMA, "$.arm[0]"},
        {"{\"arm\":[{\"id\":1}]}", MOON_ERR_SCHEMA, "$.arm[0]"},
        {"{\"arm\":[{\"id\":1,\"point\":\"beside\"}]}", MOON_ERR_SCHEMA, "$.arm[0].point"},
        {"{\"arm\":[{\"id\":1,\"point\":\"after\",\"kind\":\"sent\"}]}", MOON_ERR_SCHEMA, "$.arm[0].kind"},
        {"{\"arm\":[{\"id\":1,\"point\":\"after\",\"occurrence\":0}]}", MOON_ERR_RANGE, "$.arm[0].occurrence"},
        {"{\"arm\":[{\"id\":1,\"point\":\"after\",\"what\":5}]}", MOON_ERR_SCHEMA, "$.arm[0].what"},
        {"{\"arm\":[{\"id\":1,\"point\":\"after\",\"key\":{}}]}", MOON_ERR_SCHEMA, "$.arm[0].key"},
        {"{\"arm\":[{\"id\":1,\"point\":\"after\",\"kinds\":null}]}", MOON_ERR_SCHEMA, "$.arm[0].kinds"},
    };
    struct moon_control control;
    int64_t go;
    MOON_CHECK_INT(moon_control_open(&control, moon_memory_heap(), -1, NULL), 0);
    static const char arm[] = "{\"arm\":[{\"id\":4,\"point\":\"after\",\"kind\":null,\"what\":null,\"key\":null}]}";
    MOON_CHECK_INT(moon_control_take(&control, arm, sizeof arm - 1, &go, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_error error = {.where = ""};
        MOON_CHECK_INT(moon_control_take(&control, rows[i].line, strlen(rows[i].line), &go, &error), rows[i].status);
        const char *place = strchr(error.where, '$');
        if (rows[i].where[0])
            MOON_CHECK_TEXT(place, rows[i].where);
        MOON_CHECK_INT(go, -1);
        MOON_CHECK_INT(control.count, 1);
    }
    MOON_CHECK_INT(moon_control_take(&control, "{\"go\":7}", 8, &go, NULL), 0);
    MOON_CHECK_INT(go, 7);
    moon_control_close(&control);
}

static void test_many_rows(void) {
    struct moon_control control;
    struct moon_text text;
    int64_t go;
    moon_control_open(&control, moon_memory_heap(), -1, NULL);
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, "{\"arm\":[1");
    for (int i = 0; i < MOON_CONTROL_ROWS_MAX; i++)
        moon_text_string(&text, ",1");
    moon_text_string(&text, "]}");
    MOON_CHECK_INT(moon_control_take(&control, text.data, text.length, &go, NULL), MOON_ERR_LIMIT);
    moon_text_close(&text);
    moon_control_close(&control);
}

static struct moon_record record_of(enum moon_record_kind kind, const char *what, const char *key) {
    return (struct moon_record){
        .kind = kind, .what = what, .has = key ? MOON_RECORD_HAS_KEY : 0, .key = moon_bytes_of(key)};
}

/* What the node's side does, in a process of its own: six records, two of them with an end of their event. */
static void be_node(int descriptor) {
    char line[16];
    struct moon_control control;
    struct moon_error error;
    if (moon_control_open(&control, moon_memory_heap(), descriptor, &error) != 0)
        _exit(9);
    moon_control_ready(&control, "1.2.3.4:5");
    struct moon_record records[] = {
        record_of(MOON_RECORD_RECV, "PutStart", "other"), record_of(MOON_RECORD_RECV, "PutStart", "k1"),
        record_of(MOON_RECORD_SEND, "PutStart", "k1"),    record_of(MOON_RECORD_RECV, "PutStart", "k2"),
        record_of(MOON_RECORD_STATE, "evict", NULL),      record_of(MOON_RECORD_RECV, "PutStart", "k3"),
    };
    for (size_t i = 0; i < sizeof records / sizeof *records; i++) {
        int length = snprintf(line, sizeof line, "{\"n\":%zu}", i);
        moon_control_see(&control, &records[i], line, (size_t)length);
        moon_control_after(&control);
    }
    moon_control_close(&control);
    _exit(control.waiting == 0 ? 0 : 8);
}

static void say(int to, const char *text) {
    MOON_CHECK_INT(write(to, text, strlen(text)), strlen(text));
}

static void hear(int from, const char *expected) {
    char line[256] = "";
    for (size_t length = 0; length + 1 < sizeof line && (length == 0 || line[length - 1] != '\n'); length++)
        if (read(from, line + length, 1) != 1)
            break;
    MOON_CHECK_TEXT(line, expected);
}

static const char *program; /* this one */

/* Starts a node; its exit status is that of end_node. */
static pid_t start_node(int *supervisor) {
    int pair[2];
    MOON_CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    fflush(NULL);
    pid_t node = fork();
    if (node == 0) { /* a program anew: a checker of memory looks at the tests alone */
        char descriptor[16];
        close(pair[0]);
        alarm(30);
        snprintf(descriptor, sizeof descriptor, "%d", pair[1]);
        execl(program, program, "node", descriptor, (char *)NULL);
        _exit(7);
    }
    close(pair[1]);
    *supervisor = pair[0];
    return node;
}

static int end_node(pid_t node, int supervisor) {
    int status = 0;
    if (supervisor >= 0)
        close(supervisor);
    MOON_CHECK_INT(waitpid(node, &status, 0), node);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_steps(void) {
    int supervisor;
    pid_t node = start_node(&supervisor);
    say(supervisor, "{\"arm\":[{\"id\":1,\"point\":\"before\",\"kind\":\"recv\",\"what\":\"PutStart\",\"key\":\"k*\","
                    "\"occurrence\":2},{\"id\":2,\"point\":\"after\",\"kind\":\"send\"}]}\n");
    hear(supervisor, "{\"ready\":{\"address\":\"1.2.3.4:5\"}}\n");
    hear(supervisor, "{\"step\":{\"id\":2,\"record\":{\"n\":2}}}\n");
    say(supervisor, "{\"go\":1}\n{\"go\":2}\n"); /* another's go changes nothing */
    hear(supervisor, "{\"step\":{\"id\":1,\"record\":{\"n\":3}}}\n");
    say(supervisor,
        "{\"arm\":[{\"id\":3,\"point\":\"before\",\"what\":\"evict\",\"kind\":null,\"key\":null}]}\n{\"go\":1}\n");
    hear(supervisor, "{\"step\":{\"id\":3,\"record\":{\"n\":4}}}\n");
    say(supervisor, "{\"go\":3}\n");
    MOON_CHECK_INT(end_node(node, -1), 0);
    close(supervisor);
}

static void test_lost(void) {
    int supervisor;
    pid_t node = start_node(&supervisor);
    MOON_CHECK_INT(end_node(node, supervisor), 9); /* before the first line */
    node = start_node(&supervisor);
    say(supervisor, "{\"arm\":[{\"id\":1,\"point\":\"before\"}]}\n");
    hear(supervisor, "{\"ready\":{\"address\":\"1.2.3.4:5\"}}\n");
    MOON_CHECK_INT(end_node(node, supervisor), 2); /* while it stands still */
}

static int open_and_arm(struct moon_memory *memory, const void *context) {
    struct moon_control control;
    struct moon_error error;
    int64_t go;
    int status = moon_control_open(&control, memory, -1, &error);
    if (status == 0)
        status = moon_control_take(&control, context, strlen(context), &go, &error);
    moon_control_close(&control);
    return status;
}

static void test_memory(void) {
    moon_unit_refuse_memory(open_and_arm, "{\"arm\":[{\"id\":1,\"point\":\"before\",\"what\":\"a\",\"key\":\"b\"}]}");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"keys are matched by shell patterns", test_matching},
        {"a bad line names its member and changes nothing", test_bad_lines},
        {"there is a limit to the rows", test_many_rows},
        {"a node stops at the armed occurrence, and goes on when told", test_steps},
        {"a node ends when its supervisor is lost", test_lost},
        {"refused memory leaks nothing", test_memory},
        {NULL, NULL},
    };
    signal(SIGPIPE, SIG_IGN);
    if (argc == 3 && strcmp(argv[1], "node") == 0)
        be_node(atoi(argv[2]));
    program = argv[0];
    return moon_unit_main("control channel", cases, argc, argv);
}
