/* SPDX-License-Identifier: Apache-2.0 */
/* Each checker on histories that are right, that are doctored, and that do not tell enough. */
#include "conformance/checkers/checker.h"
#include "conformance/checkers/operations.h"
#include "conformance/checkers/repeat.h"
#include "ref/base/unit.h"

/* A history under construction. several: each node has a clock of its own. */
struct story {
    struct moon_memory *memory;
    struct moon_history history;
    bool several;
    uint64_t n[256];
};

static void begin(struct story *story, struct moon_memory *memory, bool several) {
    memset(story, 0, sizeof *story);
    story->memory = memory;
    story->several = several;
    moon_history_open(&story->history, memory);
}

/* Adds a record at that time; the node is a letter. */
static void tell(struct story *story, moon_ns time_ns, char node, struct moon_record record) {
    const char name[2] = {node, 0};
    record.node = moon_bytes_of(name);
    record.clock = story->several ? record.node : moon_bytes_of("sim");
    record.time_ns = time_ns;
    record.n = story->n[(unsigned char)node]++;
    moon_history_add(&story->history, &record);
}

static struct moon_record invoke(const char *what, uint64_t op, const char *key) {
    return (struct moon_record){
        .kind = MOON_RECORD_INVOKE, .what = what, .op = op, .has = MOON_RECORD_HAS_KEY, .key = moon_bytes_of(key)};
}

static struct moon_record ended(enum moon_record_kind kind, const char *what, uint64_t op, int64_t code) {
    return (struct moon_record){.kind = kind, .what = what, .op = op, .has = MOON_RECORD_HAS_CODE, .code = code};
}

static struct moon_record put_of(uint64_t op, const char *key, uint64_t digest) {
    struct moon_record record = invoke("put", op, key);
    record.has |= MOON_RECORD_HAS_BYTES | MOON_RECORD_HAS_DIGEST;
    record.bytes = 100;
    record.digest = digest;
    return record;
}

static struct moon_record got(uint64_t op, uint64_t digest) {
    struct moon_record record = ended(MOON_RECORD_OK, "get", op, 100);
    record.has |= MOON_RECORD_HAS_BYTES | MOON_RECORD_HAS_DIGEST;
    record.bytes = 100;
    record.digest = digest;
    return record;
}

static struct moon_record state(const char *what, const char *key, uint64_t offset, moon_ns lease_ns, bool internal) {
    struct moon_record record = {.kind = MOON_RECORD_STATE,
                                 .what = what,
                                 .internal = internal,
                                 .has = MOON_RECORD_HAS_EXTENT,
                                 .extent = {moon_bytes_of("owner:1"), offset, 100}};
    if (key) {
        record.has |= MOON_RECORD_HAS_KEY;
        record.key = moon_bytes_of(key);
    }
    if (lease_ns) {
        record.has |= MOON_RECORD_HAS_LEASE;
        record.lease_ns = lease_ns;
    }
    return record;
}

static struct moon_record message(enum moon_record_kind kind, const char *what, uint64_t op, const char *key,
                                  uint64_t msg) {
    return (struct moon_record){
        .kind = kind, .what = what, .op = op, .msg = msg, .has = MOON_RECORD_HAS_KEY, .key = moon_bytes_of(key)};
}

static int judge_story(struct story *story, unsigned number, struct moon_arena *arena, struct moon_finding *finding) {
    for (size_t i = 0; moon_checkers[i]; i++)
        if (moon_checkers[i]->number == number)
            return moon_checker_judge(moon_checkers[i], arena, &story->history, finding);
    return MOON_ERR_SCHEMA;
}

/* Ends the story with its judgement. `seen` is part of what the finding says; NULL: anything. */
static void expect(struct story *story, unsigned number, enum moon_verdict verdict, size_t looked_at,
                   const char *seen) {
    struct moon_arena arena;
    struct moon_finding finding;
    moon_arena_open(&arena, story->memory);
    MOON_CHECK_INT(story->history.failed, false);
    MOON_CHECK_INT(judge_story(story, number, &arena, &finding), 0);
    MOON_CHECK_INT(finding.verdict, verdict);
    MOON_CHECK_INT(finding.looked_at, looked_at);
    if (seen && (!finding.seen || !strstr(finding.seen, seen)))
        MOON_CHECK_TEXT(finding.seen, seen);
    moon_arena_close(&arena);
    moon_history_close(&story->history);
}

/* ---- check 1 */

static void put_and_read(struct story *story, uint64_t put_digest, uint64_t read_digest) {
    begin(story, moon_memory_heap(), false);
    tell(story, 1, 'w', put_of(1, "k", put_digest));
    tell(story, 2, 'w', ended(MOON_RECORD_OK, "put", 1, 0));
    tell(story, 3, 'r', invoke("get", 1, "k"));
    tell(story, 4, 'r', got(1, read_digest));
}

static void test_whole_value(void) {
    struct story story;
    put_and_read(&story, 7, 7);
    expect(&story, 1, MOON_VERDICT_PASS, 1, NULL);
}

static void test_torn_value(void) {
    struct story story;
    put_and_read(&story, 7, 8);
    expect(&story, 1, MOON_VERDICT_FAIL, 1, "digest 0000000000000008, which no put of this key has");
}

static void test_value_of_another_key(void) {
    struct story story;
    put_and_read(&story, 7, 9);
    tell(&story, 0, 'v', put_of(1, "other", 9));
    expect(&story, 1, MOON_VERDICT_FAIL, 1, "no put of this key");
}

static void test_value_of_a_later_put(void) {
    struct story story;
    put_and_read(&story, 7, 9);
    tell(&story, 5, 'w', put_of(2, "k", 9));
    expect(&story, 1, MOON_VERDICT_FAIL, 1, NULL);
}

static void test_value_of_a_put_under_way(void) {
    struct story story;
    begin(&story, moon_memory_heap(), false);
    tell(&story, 1, 'w', put_of(1, "k", 7));
    tell(&story, 2, 'r', invoke("get", 1, "k"));
    tell(&story, 3, 'r', got(1, 7));
    tell(&story, 4, 'w', ended(MOON_RECORD_INFO, "put", 1, -900));
    expect(&story, 1, MOON_VERDICT_PASS, 1, NULL);
}

static void removed_then_read(struct story *story, moon_ns read_at) {
    begin(story, moon_memory_heap(), false);
    tell(story, 1, 'w', put_of(1, "k", 7));
    tell(story, 2, 'w', ended(MOON_RECORD_OK, "put", 1, 0));
    if (read_at < 4)
        tell(story, read_at, 'r', invoke("get", 1, "k"));
    tell(story, 3, 'w', invoke("remove", 2, "k"));
    tell(story, 4, 'w', ended(MOON_RECORD_OK, "remove", 2, 0));
    if (read_at > 4)
        tell(story, read_at, 'r', invoke("get", 1, "k"));
    tell(story, 6, 'r', got(1, 7));
}

static void test_removed_value(void) {
    struct story story;
    removed_then_read(&story, 5);
    expect(&story, 1, MOON_VERDICT_FAIL, 1, "removed since put of \"k\" by w");
    removed_then_read(&story, 3);
    expect(&story, 1, MOON_VERDICT_PASS, 1, NULL);
}

static void test_nothing_to_judge(void) {
    for (unsigned number = 1; number <= 3; number++) {
        struct story story;
        begin(&story, moon_memory_heap(), false);
        expect(&story, number, MOON_VERDICT_UNKNOWN, 0, "nothing to judge: it needs");
    }
}

/* ---- check 2 */

/* A put that the master tells of, then a read that misses; between them `between`, if it has a kind to tell. */
static void put_and_miss(struct story *story, bool told, const struct moon_record *between, char by) {
    begin(story, moon_memory_heap(), false);
    tell(story, 10, 'w', put_of(1, "k", 7));
    if (told) {
        tell(story, 11, 'm', state("put-start", "k", 1000, 0, true));
        tell(story, 12, 'm', state("put-end", "k", 1000, 0, true));
    }
    tell(story, 13, 'w', ended(MOON_RECORD_OK, "put", 1, 0));
    if (between)
        tell(story, 14, by, *between);
    tell(story, 15, 'r', invoke("get", 1, "k"));
    tell(story, 16, 'r', ended(MOON_RECORD_FAIL, "get", 1, -704));
}

static void test_miss_without_reason(void) {
    struct story story;
    put_and_miss(&story, true, NULL, 0);
    expect(&story, 2, MOON_VERDICT_FAIL, 1, "a miss (-704)");
}

static void test_miss_of_exist(void) {
    struct story story;
    put_and_miss(&story, true, NULL, 0);
    tell(&story, 17, 'r', invoke("exist", 2, "k"));
    tell(&story, 18, 'r', ended(MOON_RECORD_OK, "exist", 2, 0));
    expect(&story, 2, MOON_VERDICT_FAIL, 2, NULL);
}

/* put_and_miss with what the master tells, and with what a client asked and was answered, in between. */
static void miss_after(const char *told, enum moon_record_kind answer, const char *asked, const char *key,
                       enum moon_verdict verdict) {
    struct story story;
    struct moon_record record = state(told, "k", 1000, 0, true);
    if (strcmp(told, "remove") == 0) { /* by force, so that no lease is asked for */
        record.has |= MOON_RECORD_HAS_CAUSE;
        record.cause = moon_bytes_of("force");
    }
    put_and_miss(&story, true, &record, 'm');
    if (asked)
        tell(&story, 1, 'v', invoke(asked, 9, key));
    if (asked && answer != MOON_RECORD_INVOKE)
        tell(&story, answer == MOON_RECORD_INFO ? 2 : 15, 'v',
             ended(answer, asked, 9, answer == MOON_RECORD_OK ? 0 : -706));
    expect(&story, 2, verdict, 1, NULL);
}

static void test_miss_with_a_reason(void) {
    const struct {
        struct moon_record record;
        char by;
        enum moon_verdict verdict;
        size_t looked_at;
    } rows[] = {
        {state("evict", "k", 1000, 0, true), 'm', MOON_VERDICT_PASS, 2},
        {state("evict", "other", 1000, 0, true), 'm', MOON_VERDICT_FAIL, 2},
        {state("lose", "k", 1000, 11, true), 'm', MOON_VERDICT_PASS, 1},
        {state("lose", "k", 1000, 0, true), 'm', MOON_VERDICT_FAIL, 1},    /* a put that had not ended */
        {state("expire", NULL, 1000, 0, true), 'm', MOON_VERDICT_FAIL, 1}, /* it lost nothing of this key */
        {{.kind = MOON_RECORD_FAULT, .what = "kill"}, 'm', MOON_VERDICT_PASS, 1},
        {{.kind = MOON_RECORD_FAULT, .what = "kill"}, 'o', MOON_VERDICT_FAIL, 1}, /* the master has not given it up */
        {ended(MOON_RECORD_INFO, "remove", 9, -900), 'v', MOON_VERDICT_FAIL, 1},  /* an end without an invoke */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct story story;
        put_and_miss(&story, true, &rows[i].record, rows[i].by);
        expect(&story, 2, rows[i].verdict, rows[i].looked_at, NULL);
    }
}

static void test_removal_is_a_reason_if_it_was_asked_for(void) {
    miss_after("remove", MOON_RECORD_OK, "remove", "k", MOON_VERDICT_PASS);
    miss_after("remove", MOON_RECORD_OK, "remove_all", "", MOON_VERDICT_PASS);
    miss_after("remove", MOON_RECORD_INVOKE, "remove", "k", MOON_VERDICT_PASS);
    miss_after("remove", MOON_RECORD_INFO, "remove", "k", MOON_VERDICT_PASS); /* given up before the put, done after */
    miss_after("remove", MOON_RECORD_FAIL, "remove", "k", MOON_VERDICT_FAIL);
    miss_after("remove", MOON_RECORD_OK, "remove", "other", MOON_VERDICT_FAIL);
    miss_after("remove", MOON_RECORD_OK, NULL, NULL, MOON_VERDICT_FAIL);
    miss_after("lease", MOON_RECORD_OK, "remove", "k", MOON_VERDICT_FAIL); /* asked for, and not done */
}

static void test_end_of_another_put_is_no_reason(void) {
    miss_after("discard", MOON_RECORD_OK, NULL, NULL, MOON_VERDICT_FAIL);
    miss_after("revoke", MOON_RECORD_OK, NULL, NULL, MOON_VERDICT_FAIL);
}

/* The excuse of an older put of the key is none for a younger one. */
static void test_reason_for_an_older_put_only(void) {
    struct story story;
    put_and_miss(&story, true, NULL, 0);
    tell(&story, 1, 'v', put_of(1, "k", 9));
    tell(&story, 2, 'm', state("put-end", "k", 1000, 0, true));
    tell(&story, 3, 'v', ended(MOON_RECORD_OK, "put", 1, 0));
    tell(&story, 4, 'm', state("evict", "k", 1000, 0, true));
    expect(&story, 2, MOON_VERDICT_FAIL, 2, "a miss (-704)");
}

/* The client was granted memory and reports success, but the master never saw its end. */
static void test_put_that_was_never_ended(void) {
    for (int batched = 0; batched <= 1; batched++) {
        struct story story;
        begin(&story, moon_memory_heap(), false);
        tell(&story, 1, 'm', state("put-end", "other", 1000, 0, true));
        struct moon_record put = put_of(2, "k", 7), granted = state("granted", "k", 1000, 0, false);
        put.parent = batched ? 1 : 0;
        granted.op = batched ? 1 : 2;
        tell(&story, 2, 'w', put);
        tell(&story, 3, 'w', granted);
        tell(&story, 4, 'm', state("discard", "k", 1000, 0, true));
        tell(&story, 5, 'w', ended(MOON_RECORD_OK, "put", 2, 0));
        tell(&story, 6, 'r', invoke("get", 1, "k"));
        tell(&story, 7, 'r', ended(MOON_RECORD_FAIL, "get", 1, -704));
        expect(&story, 2, MOON_VERDICT_FAIL, 1, "a miss (-704)");
    }
}

static void test_removal_before_the_put_is_no_reason(void) {
    struct story story;
    put_and_miss(&story, true, NULL, 0);
    tell(&story, 1, 'v', invoke("remove", 1, "k"));
    tell(&story, 2, 'v', ended(MOON_RECORD_OK, "remove", 1, 0));
    expect(&story, 2, MOON_VERDICT_FAIL, 1, NULL);
}

static void test_put_that_stored_nothing(void) {
    struct story story;
    begin(&story, moon_memory_heap(), false);
    tell(&story, 1, 'm', state("put-end", "other", 1000, 0, true));
    tell(&story, 2, 'w', put_of(1, "k", 7)); /* another writer is at it and never ends */
    tell(&story, 3, 'w', ended(MOON_RECORD_OK, "put", 1, 0));
    tell(&story, 4, 'r', invoke("get", 1, "k"));
    tell(&story, 5, 'r', ended(MOON_RECORD_FAIL, "get", 1, -703));
    expect(&story, 2, MOON_VERDICT_UNKNOWN, 0, NULL);
}

static void test_black_box_miss(void) {
    struct story story;
    put_and_miss(&story, false, NULL, 0);
    expect(&story, 2, MOON_VERDICT_UNKNOWN, 0, "nothing tells whether it was evicted");
}

static void test_found(void) {
    struct story story;
    put_and_miss(&story, true, NULL, 0);
    story.history.count -= 1;
    tell(&story, 16, 'r', got(1, 7));
    expect(&story, 2, MOON_VERDICT_PASS, 1, NULL);
}

static void lease_and_end(struct story *story, moon_ns time_ns, struct moon_record end) {
    begin(story, moon_memory_heap(), false);
    tell(story, 1, 'm', state("put-start", "k", 1000, 0, true));
    tell(story, 2, 'm', state("lease", "k", 1000, 50, true));
    tell(story, time_ns, 'm', end);
}

static void test_eviction_under_a_lease(void) {
    struct story story;
    lease_and_end(&story, 49, state("evict", "k", 1000, 0, true));
    expect(&story, 2, MOON_VERDICT_FAIL, 1, "done at 49 ns");
    lease_and_end(&story, 50, state("evict", "k", 1000, 0, true));
    tell(&story, 51, 'm', state("put-start", "k", 2000, 0, true));
    tell(&story, 52, 'm', state("evict", "k", 2000, 0, true));
    expect(&story, 2, MOON_VERDICT_PASS, 2, NULL);
}

static void test_removal_under_a_lease(void) {
    struct story story;
    struct moon_record forced = state("remove", "k", 1000, 0, true);
    lease_and_end(&story, 49, forced);
    expect(&story, 2, MOON_VERDICT_FAIL, 1, "done at 49 ns");
    forced.has |= MOON_RECORD_HAS_CAUSE;
    forced.cause = moon_bytes_of("force");
    lease_and_end(&story, 49, forced);
    expect(&story, 2, MOON_VERDICT_UNKNOWN, 0, NULL);
}

/* Clocks of their own: the read is known to come after the put only if a message says so. */
static void test_clocks_are_not_compared(void) {
    for (int with_message = 0; with_message <= 1; with_message++) {
        struct story story;
        begin(&story, moon_memory_heap(), true);
        tell(&story, 500, 'w', put_of(1, "k", 7));
        tell(&story, 1, 'm', state("put-end", "k", 1000, 0, true));
        tell(&story, 501, 'w', ended(MOON_RECORD_OK, "put", 1, 0));
        if (with_message) {
            tell(&story, 502, 'w', message(MOON_RECORD_SEND, "ExistKey", 2, "k", 77));
            tell(&story, 3, 'r', message(MOON_RECORD_RECV, "ExistKey", 2, "k", 77));
        }
        tell(&story, 4, 'r', invoke("get", 1, "k"));
        tell(&story, 5, 'r', ended(MOON_RECORD_FAIL, "get", 1, -704));
        expect(&story, 2, with_message ? MOON_VERDICT_FAIL : MOON_VERDICT_UNKNOWN, with_message ? 1 : 0, NULL);
    }
}

/* ---- check 3 */

static void lease_and_grant(struct story *story, moon_ns until_ns, uint64_t offset, bool internal) {
    begin(story, moon_memory_heap(), internal);
    tell(story, 1, 'm', state("lease", "k", 1000, until_ns, internal));
    if (!internal)
        tell(story, 2, 'm', message(MOON_RECORD_SEND, "PutStart", 5, "other", 3));
    struct moon_record grant = state(internal ? "put-start" : "granted", "other", offset, 0, internal);
    grant.op = 5;
    tell(story, 40, 'm', grant);
}

static void test_reuse_under_a_lease(void) {
    for (int internal = 0; internal <= 1; internal++) {
        struct story story;
        lease_and_grant(&story, 41, 1050, internal != 0);
        expect(&story, 3, MOON_VERDICT_FAIL, 1, "given at 40 ns");
        lease_and_grant(&story, 40, 1050, internal != 0);
        expect(&story, 3, MOON_VERDICT_PASS, 1, NULL);
        lease_and_grant(&story, 41, 1100, internal != 0);
        expect(&story, 3, MOON_VERDICT_PASS, 1, NULL);
        lease_and_grant(&story, 41, 900, internal != 0);
        expect(&story, 3, MOON_VERDICT_PASS, 1, NULL);
    }
}

/* The lease was told after the question for memory had left: which was first cannot be known. */
static void test_grant_under_way(void) {
    struct story story;
    begin(&story, moon_memory_heap(), false);
    tell(&story, 1, 'w', message(MOON_RECORD_SEND, "PutStart", 5, "other", 3));
    tell(&story, 2, 'r', state("lease", "k", 1000, 90, false));
    struct moon_record grant = state("granted", "other", 1000, 0, false);
    grant.op = 5;
    tell(&story, 3, 'w', grant);
    expect(&story, 3, MOON_VERDICT_PASS, 1, NULL);
}

static void test_many_leases(void) {
    struct story story;
    begin(&story, moon_memory_heap(), false);
    for (moon_ns i = 0; i < 3000; i++)
        tell(&story, i, 'm', state("lease", "k", (uint64_t)(1000 + 100 * i), i == 7 ? 9000 : i + 10, true));
    tell(&story, 5000, 'm', state("put-start", "a", 1600, 0, true));
    tell(&story, 5001, 'm', state("put-start", "b", 1700, 0, true));
    expect(&story, 3, MOON_VERDICT_FAIL, 2, "given at 5001 ns");
}

/* ---- check 10 */

static void test_repeat(void) {
    struct story one, other;
    struct moon_arena arena;
    struct moon_finding finding;
    moon_arena_open(&arena, moon_memory_heap());
    put_and_read(&one, 7, 7);
    put_and_read(&other, 7, 7);
    MOON_CHECK_INT(moon_check_repeat(&arena, &one.history, &other.history, &finding), 0);
    MOON_CHECK_INT(finding.verdict, MOON_VERDICT_PASS);
    MOON_CHECK_INT(finding.looked_at, 4);
    other.history.records[2].time_ns++;
    MOON_CHECK_INT(moon_check_repeat(&arena, &one.history, &other.history, &finding), 0);
    MOON_CHECK_INT(finding.verdict, MOON_VERDICT_FAIL);
    MOON_CHECK_INT(finding.at, 2);
    other.history.records[2].time_ns--;
    other.history.count--;
    MOON_CHECK_INT(moon_check_repeat(&arena, &one.history, &other.history, &finding), 0);
    MOON_CHECK_INT(finding.verdict, MOON_VERDICT_FAIL);
    MOON_CHECK_TEXT(finding.expected, "4 records");
    moon_history_close(&one.history);
    moon_history_close(&other.history);
    moon_arena_close(&arena);
}

/* ---- memory */

static int judge_with(struct moon_memory *memory, const void *context) {
    struct story story;
    struct moon_arena arena;
    struct moon_finding finding;
    put_and_miss(&story, true, NULL, 0);
    tell(&story, 17, 'm', state("lease", "k", 1000, 90, true));
    tell(&story, 18, 'm', state("put-start", "k", 5000, 0, true));
    moon_arena_open(&arena, memory);
    int status = judge_story(&story, *(const unsigned *)context, &arena, &finding);
    moon_arena_close(&arena);
    moon_history_close(&story.history);
    return status;
}

static void test_memory(void) {
    for (unsigned number = 1; number <= 3; number++)
        moon_unit_refuse_memory(judge_with, &number);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a read of what was put passes", test_whole_value},
        {"a mixture of bytes is found", test_torn_value},
        {"the bytes of another key are found", test_value_of_another_key},
        {"bytes that are put only later are found", test_value_of_a_later_put},
        {"a put under way may be read", test_value_of_a_put_under_way},
        {"a removed value may not be read, one that is being removed may", test_removed_value},
        {"an empty history proves nothing", test_nothing_to_judge},
        {"a miss without a reason is found", test_miss_without_reason},
        {"so is one of exist", test_miss_of_exist},
        {"a miss with a reason passes", test_miss_with_a_reason},
        {"a removal is a reason if a client asked for it and the master did it",
         test_removal_is_a_reason_if_it_was_asked_for},
        {"what ends a put that has not ended is no reason", test_end_of_another_put_is_no_reason},
        {"a reason for an older put is none for a younger one", test_reason_for_an_older_put_only},
        {"a put that reports success must have been ended", test_put_that_was_never_ended},
        {"a removal before the put is no reason", test_removal_before_the_put_is_no_reason},
        {"a put that found the key taken promises nothing", test_put_that_stored_nothing},
        {"a black box that misses is not judged", test_black_box_miss},
        {"a hit passes", test_found},
        {"an eviction under a lease is found", test_eviction_under_a_lease},
        {"so is a removal, unless it was forced", test_removal_under_a_lease},
        {"the clocks of two nodes are not compared, messages are", test_clocks_are_not_compared},
        {"memory given under a lease is found", test_reuse_under_a_lease},
        {"a lease that may be younger than the grant proves nothing", test_grant_under_way},
        {"leases that are over are forgotten, others not", test_many_leases},
        {"two runs are compared record by record", test_repeat},
        {"refused memory is an error, and nothing is kept", test_memory},
        {NULL, NULL},
    };
    return moon_unit_main("checkers", cases, argc, argv);
}
