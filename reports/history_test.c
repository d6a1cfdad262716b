/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of histories: reading nodes' files, putting them in order, the digest; and what is no history. */
#include "ref/base/random.h"
#include "ref/base/unit.h"

#include "reports/history.h"
#include <stdlib.h>

/* One line of a node's file. `msg` 0: none. */
static void line(struct moon_text *file, const char *node, unsigned boot, unsigned n, moon_ns time_ns,
                 const char *clock, enum moon_record_kind kind, uint64_t msg) {
    struct moon_record record = {.kind = kind, .boot = boot, .n = n, .time_ns = time_ns, .msg = msg, .what = "Ping"};
    record.node = moon_bytes_of(node);
    record.clock = moon_bytes_of(clock);
    moon_record_write_json(&record, file);
}

static int read_text(struct moon_history *history, const char *source, const struct moon_text *file,
                     struct moon_error *error) {
    return moon_history_read(history, source, moon_text_value(file), file->length, error);
}

/* "a0.0 a0.1 b0.0" */
static void check_order(const struct moon_history *history, const char *expected) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    for (size_t i = 0; i < history->count; i++) {
        const struct moon_record *record = &history->records[i];
        moon_text_format(&text, "%s%.*s%u.%u", i ? " " : "", (int)record->node.length, record->node.data,
                         (unsigned)record->boot, (unsigned)record->n);
    }
    MOON_CHECK_TEXT(moon_text_value(&text), expected);
    moon_text_close(&text);
}

struct scene {
    struct moon_history history;
    struct moon_text file;
    struct moon_error error;
};

static void scene_open(struct scene *scene) {
    *scene = (struct scene){.error = {.status = 0}};
    moon_history_open(&scene->history, moon_memory_heap());
    moon_text_open(&scene->file, moon_memory_heap());
}

static void scene_close(struct scene *scene) {
    moon_history_close(&scene->history);
    moon_text_close(&scene->file);
}

static void one_clock_orders_by_time_then_node_then_n(void) {
    struct scene s;
    scene_open(&s);
    line(&s.file, "b", 0, 0, 5, "sim", MOON_RECORD_NOTE, 0);
    line(&s.file, "b", 0, 1, 5, "sim", MOON_RECORD_NOTE, 0);
    line(&s.file, "a", 0, 0, 5, "sim", MOON_RECORD_NOTE, 0);
    line(&s.file, "ab", 0, 0, 5, "sim", MOON_RECORD_NOTE, 0);
    line(&s.file, "a", 0, 1, 9, "sim", MOON_RECORD_NOTE, 0);
    line(&s.file, "b", 1, 0, 7, "sim", MOON_RECORD_NOTE, 0);
    MOON_CHECK_INT(read_text(&s.history, "run.jsonl", &s.file, &s.error), 0);
    MOON_CHECK_INT(moon_history_merge(&s.history, &s.error), 0);
    check_order(&s.history, "a0.0 ab0.0 b0.0 b0.1 b1.0 a0.1");
    scene_close(&s);
}

static void where_nothing_takes_time_a_send_is_still_before_its_recv(void) {
    struct scene s;
    scene_open(&s);
    line(&s.file, "a", 0, 0, 5, "sim", MOON_RECORD_RECV, 1);
    line(&s.file, "a", 0, 1, 5, "sim", MOON_RECORD_SEND, 2);
    line(&s.file, "b", 0, 0, 4, "sim", MOON_RECORD_NOTE, 0);
    line(&s.file, "b", 0, 1, 5, "sim", MOON_RECORD_SEND, 1);
    line(&s.file, "b", 0, 2, 5, "sim", MOON_RECORD_RECV, 2);
    line(&s.file, "c", 0, 0, 3, "sim", MOON_RECORD_NOTE, 0);
    MOON_CHECK_INT(read_text(&s.history, "run.jsonl", &s.file, &s.error), 0);
    MOON_CHECK_INT(moon_history_merge(&s.history, &s.error), 0);
    check_order(&s.history, "c0.0 b0.0 b0.1 a0.0 a0.1 b0.2");
    scene_close(&s);
}

static void several_clocks_are_ordered_by_messages_and_names(void) {
    struct scene s;
    scene_open(&s);
    line(&s.file, "b", 0, 0, 100, "b", MOON_RECORD_NOTE, 0);
    line(&s.file, "b", 0, 1, 200, "b", MOON_RECORD_SEND, 0x11);
    line(&s.file, "b", 0, 2, 300, "b", MOON_RECORD_RECV, 0x22);
    MOON_CHECK_INT(read_text(&s.history, "b.jsonl", &s.file, &s.error), 0);
    moon_text_clear(&s.file);
    line(&s.file, "a", 1, 0, 7, "a", MOON_RECORD_NOTE, 0); /* the second boot's file may come first */
    MOON_CHECK_INT(read_text(&s.history, "a1.jsonl", &s.file, &s.error), 0);
    moon_text_clear(&s.file);
    line(&s.file, "a", 0, 0, 900, "a", MOON_RECORD_RECV, 0x11);
    line(&s.file, "a", 0, 1, 901, "a", MOON_RECORD_SEND, 0x22);
    line(&s.file, "a", 0, 2, 902, "a", MOON_RECORD_RECV, 0x33); /* of somebody who tells nothing */
    line(&s.file, "a", 0, 3, 903, "a", MOON_RECORD_SEND, 0x44); /* never received */
    MOON_CHECK_INT(read_text(&s.history, "a0.jsonl", &s.file, &s.error), 0);
    MOON_CHECK_INT(moon_history_merge(&s.history, &s.error), 0);
    check_order(&s.history, "b0.0 b0.1 a0.0 a0.1 a0.2 a0.3 a1.0 b0.2");
    scene_close(&s);
}

static void an_id_that_two_nodes_sent_orders_nothing_and_one_that_a_node_sent_twice_orders_by_the_first(void) {
    struct scene s;
    scene_open(&s);
    line(&s.file, "a", 0, 0, 1, "a", MOON_RECORD_RECV, 1);
    line(&s.file, "a", 0, 1, 2, "a", MOON_RECORD_RECV, 2);
    line(&s.file, "b", 0, 0, 1, "b", MOON_RECORD_SEND, 1);
    line(&s.file, "b", 0, 1, 2, "b", MOON_RECORD_SEND, 2);
    line(&s.file, "b", 0, 2, 3, "b", MOON_RECORD_SEND, 2);
    line(&s.file, "c", 0, 0, 1, "c", MOON_RECORD_SEND, 1);
    MOON_CHECK_INT(read_text(&s.history, "x", &s.file, &s.error), 0);
    MOON_CHECK_INT(moon_history_merge(&s.history, &s.error), 0);
    check_order(&s.history, "a0.0 b0.0 b0.1 a0.1 b0.2 c0.0");
    scene_close(&s);
}

static void a_cycle_is_an_error_and_changes_nothing(void) {
    struct scene s;
    scene_open(&s);
    line(&s.file, "b", 0, 0, 1, "b", MOON_RECORD_RECV, 1);
    line(&s.file, "b", 0, 1, 2, "b", MOON_RECORD_SEND, 2);
    line(&s.file, "a", 0, 0, 1, "a", MOON_RECORD_RECV, 2);
    line(&s.file, "a", 0, 1, 2, "a", MOON_RECORD_SEND, 1);
    MOON_CHECK_INT(read_text(&s.history, "x", &s.file, &s.error), 0);
    MOON_CHECK_INT(moon_history_merge(&s.history, &s.error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(s.error.message, "node a boot 0 record 0 received what can only have been sent later");
    check_order(&s.history, "b0.0 b0.1 a0.0 a0.1");
    scene_close(&s);
}

static void a_record_that_is_there_twice_or_early_is_an_error(void) {
    struct scene s;
    scene_open(&s);
    line(&s.file, "a", 0, 0, 1, "a", MOON_RECORD_NOTE, 0);
    MOON_CHECK_INT(read_text(&s.history, "x", &s.file, &s.error), 0);
    MOON_CHECK_INT(read_text(&s.history, "y", &s.file, &s.error), 0);
    MOON_CHECK_INT(moon_history_merge(&s.history, &s.error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(s.error.message, "node a boot 0 record 0 is there twice");
    scene_close(&s);
    scene_open(&s);
    line(&s.file, "a", 0, 0, 2, "a", MOON_RECORD_NOTE, 0);
    line(&s.file, "a", 0, 1, 1, "a", MOON_RECORD_NOTE, 0);
    MOON_CHECK_INT(read_text(&s.history, "x", &s.file, &s.error), 0);
    MOON_CHECK_INT(moon_history_merge(&s.history, &s.error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(s.error.message, "node a boot 0 record 1 is earlier than the record before it");
    scene_close(&s);
}

static void gaps_cuts_and_doctored_lines_are_told_with_file_and_line(void) {
    static const struct {
        const char *part, *other, *where, *message;
        int status;
    } rows[] = {
        {"{\"n\":1,", "{\"n\":2,", "a.jsonl:2:1 $.n", "record 1 of this node and boot is missing: found 2",
         MOON_ERR_SCHEMA},
        {"{\"n\":0,", "{\"n\":1,", "a.jsonl:1:1 $.n", "record 0 of this node and boot is missing: found 1",
         MOON_ERR_SCHEMA},
        {"\"send\"", "\"sand\"", "a.jsonl:2:53 $.kind", "expected a kind of record, found string", MOON_ERR_SCHEMA},
        {"\"boot\"", "\"boots\"", "a.jsonl:1:27 $.boots", NULL, MOON_ERR_SCHEMA},
        {"{\"n\":1", "{\"n\":1}", "a.jsonl:2:8", NULL, MOON_ERR_SYNTAX},
        {"{\"n\":0,", "\n{\"n\":0,", "a.jsonl:1:1", NULL, MOON_ERR_SYNTAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct scene s;
        struct moon_text doctored;
        scene_open(&s);
        line(&s.file, "a", 0, 0, 1, "a", MOON_RECORD_NOTE, 0);
        line(&s.file, "a", 0, 1, 2, "a", MOON_RECORD_SEND, 1);
        moon_text_open(&doctored, moon_memory_heap());
        const char *part = strstr(s.file.data, rows[i].part);
        moon_text_bytes(&doctored, s.file.data, (size_t)(part - s.file.data));
        moon_text_format(&doctored, "%s%s", rows[i].other, part + strlen(rows[i].part));
        MOON_CHECK_INT(read_text(&s.history, "a.jsonl", &doctored, &s.error), rows[i].status);
        MOON_CHECK_INT(s.history.count, 0);
        MOON_CHECK_INT(strncmp(s.error.where, rows[i].where, strlen(rows[i].where)), 0);
        if (strncmp(s.error.where, rows[i].where, strlen(rows[i].where)) != 0)
            fprintf(stderr, "%s: %s, expected %s\n", s.error.where, s.error.message, rows[i].where);
        if (rows[i].message)
            MOON_CHECK_TEXT(s.error.message, rows[i].message);
        CU_ASSERT(!s.history.failed);
        moon_text_close(&doctored);
        scene_close(&s);
    }
}

static void a_last_line_that_is_cut_is_left_out(void) {
    struct scene s;
    scene_open(&s);
    line(&s.file, "a", 0, 0, 1, "a", MOON_RECORD_NOTE, 0);
    size_t first = s.file.length;
    line(&s.file, "a", 0, 1, 2, "a", MOON_RECORD_NOTE, 0);
    for (size_t length = 0; length <= s.file.length; length++) {
        struct moon_history history;
        moon_history_open(&history, moon_memory_heap());
        MOON_CHECK_INT(moon_history_read(&history, "a", s.file.data, length, &s.error), 0);
        MOON_CHECK_INT(history.count, (length >= first) + (length == s.file.length));
        MOON_CHECK_INT(moon_history_merge(&history, &s.error), 0);
        moon_history_close(&history);
    }
    scene_close(&s);
}

static void what_is_added_is_a_copy_and_comes_back_from_its_lines(void) {
    struct scene s;
    struct moon_history again;
    char key[] = "k\xff", node[] = "node", what[] = "put";
    struct moon_record record = {.kind = MOON_RECORD_OK, .what = what};
    record.has = MOON_RECORD_HAS_KEY | MOON_RECORD_HAS_TENANT | MOON_RECORD_HAS_CAUSE | MOON_RECORD_HAS_EXTENT;
    record.node = record.clock = moon_bytes_of(node);
    record.key = record.tenant = record.cause = record.extent.segment = moon_bytes_of(key);
    scene_open(&s);
    moon_history_open(&again, moon_memory_heap());
    moon_history_add(&s.history, &record);
    record.n = 1;
    moon_history_add(&s.history, &record);
    uint64_t digest = moon_history_digest(&s.history, moon_memory_heap());
    memset(key, 'x', 2);
    memset(node, 'x', 4);
    memset(what, 'x', 3);
    CU_ASSERT_EQUAL(moon_history_digest(&s.history, moon_memory_heap()), digest);
    moon_history_write_json(&s.history, &s.file);
    MOON_CHECK_INT(read_text(&again, "again", &s.file, &s.error), 0);
    CU_ASSERT_EQUAL(moon_history_digest(&again, moon_memory_heap()), digest);
    again.records[1].code = 1;
    CU_ASSERT_EQUAL(moon_history_digest(&again, moon_memory_heap()), digest); /* it has no code */
    again.records[1].has |= MOON_RECORD_HAS_CODE;
    CU_ASSERT_NOT_EQUAL(moon_history_digest(&again, moon_memory_heap()), digest);
    moon_history_close(&again);
    scene_close(&s);
}

/* `count` records of eight nodes that send to each other, each node with its own clock. */
static void draw_history(struct moon_history *history, size_t count, bool one_clock) {
    enum { NODES = 8 };
    struct moon_random random;
    uint64_t n[NODES] = {0};
    char names[NODES][8];
    moon_random_seed(&random, count);
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)moon_random_below(&random, NODES);
        struct moon_record record = {.what = "m", .n = n[at]++, .time_ns = (moon_ns)i};
        snprintf(names[at], sizeof names[at], "n%zu", at);
        record.node = moon_bytes_of(names[at]);
        record.clock = one_clock ? moon_bytes_of("sim") : record.node;
        record.kind = i % 2 ? MOON_RECORD_RECV : MOON_RECORD_SEND;
        record.msg = i / 2 + 1;
        moon_history_add(history, &record);
    }
}

static void a_large_history_merges_with_every_send_before_its_recv(void) {
    enum { RECORDS = 20000 };
    for (int one_clock = 0; one_clock < 2; one_clock++) {
        struct moon_history history;
        moon_history_open(&history, moon_memory_heap());
        draw_history(&history, RECORDS, one_clock);
        MOON_CHECK_INT(moon_history_merge(&history, NULL), 0);
        MOON_CHECK_INT(history.count, RECORDS);
        bool *sent = calloc(RECORDS + 1, sizeof *sent);
        size_t wrong = 0;
        for (size_t i = 0; i < RECORDS; i++) {
            const struct moon_record *record = &history.records[i];
            wrong += record->kind == MOON_RECORD_RECV && !sent[record->msg];
            sent[record->msg] = sent[record->msg] || record->kind == MOON_RECORD_SEND;
            wrong += one_clock && record->time_ns != (moon_ns)i;
        }
        MOON_CHECK_INT(wrong, 0);
        free(sent);
        moon_history_close(&history);
    }
}

/* Everything that takes memory: both orders, reading, writing, the digest. */
static int use_all(struct moon_memory *memory, const void *context) {
    struct moon_history history, again;
    struct moon_text text;
    bool one_clock = context != NULL;
    moon_history_open(&history, memory);
    moon_history_open(&again, memory);
    moon_text_open(&text, memory);
    draw_history(&history, 300, one_clock);
    int status = history.failed ? MOON_ERR_MEMORY : moon_history_merge(&history, NULL);
    if (status == 0 && moon_history_digest(&history, memory) == 0)
        status = MOON_ERR_MEMORY;
    if (status == 0)
        moon_history_write_json(&history, &text);
    if (status == 0)
        status = text.failed ? MOON_ERR_MEMORY : moon_history_read(&again, "x", text.data, 1200, NULL);
    CU_ASSERT(!again.failed || status == MOON_ERR_MEMORY);
    moon_text_close(&text);
    moon_history_close(&again);
    moon_history_close(&history);
    return status;
}

static void refused_memory_is_told_and_nothing_leaks(void) {
    moon_unit_refuse_memory(use_all, NULL);
    moon_unit_refuse_memory(use_all, "one clock");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"one clock orders by time, then node, then n", one_clock_orders_by_time_then_node_then_n},
        {"where nothing takes time a send is still before its recv",
         where_nothing_takes_time_a_send_is_still_before_its_recv},
        {"several clocks are ordered by messages and names", several_clocks_are_ordered_by_messages_and_names},
        {"an id that two nodes sent orders nothing, one that a node sent twice orders by the first",
         an_id_that_two_nodes_sent_orders_nothing_and_one_that_a_node_sent_twice_orders_by_the_first},
        {"a cycle is an error and changes nothing", a_cycle_is_an_error_and_changes_nothing},
        {"a record that is there twice or early is an error", a_record_that_is_there_twice_or_early_is_an_error},
        {"gaps, cuts and doctored lines are told with file and line",
         gaps_cuts_and_doctored_lines_are_told_with_file_and_line},
        {"a last line that is cut is left out", a_last_line_that_is_cut_is_left_out},
        {"what is added is a copy and comes back from its lines",
         what_is_added_is_a_copy_and_comes_back_from_its_lines},
        {"a large history merges with every send before its recv",
         a_large_history_merges_with_every_send_before_its_recv},
        {"refused memory is told and nothing leaks", refused_memory_is_told_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("history", cases, argc, argv);
}
