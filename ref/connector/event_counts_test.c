/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of publishing events that enough workers told. */
#include "ref/connector/kv_events.h"

#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"

static struct moon_layout_group group;
static struct moon_layout_model model;
static struct moon_deviation_notes notes;
static struct moon_profile release;
static struct moon_connector connector;
static struct moon_event_counts *counts;
static char published[256];

/* Two KV heads on tp ranks, so tp / 2 ranks share out the puts. */
static void begin(const char *name, int64_t tp) {
    release = *moon_profile_find(name, NULL);
    group = group_of(MOON_SPEC_FULL, 16, 0);
    model = model_of(&group, 1, tp, 2);
    notes.taken = 0;
    connector = (struct moon_connector){.profile = &release, .model = &model, .notes = &notes};
    CU_ASSERT_EQUAL_FATAL(moon_event_counts_open(&counts, &connector, moon_memory_heap(), NULL), 0);
}

static void end(void) {
    moon_event_counts_close(counts);
}

static const uint8_t letters[] = "abcdefghijklmnopqrstuvwxyz";
static const uint32_t tokens[] = {7, 8, 9};

/* The worker tells an event for each letter. Upper case: the same hash with another parent. */
static int tell(const char *text) {
    struct moon_kv_event events[64];
    size_t count = strlen(text);
    for (size_t i = 0; i < count; i++) {
        bool upper = text[i] < 'a';
        events[i] = (struct moon_kv_event){.hash = {&letters[(text[i] | 0x20) - 'a'], 1},
                                           .parent = {letters, upper},
                                           .token_ids = tokens,
                                           .token_count = 3,
                                           .tokens_known = true,
                                           .block_tokens = 16};
    }
    return moon_event_counts_worker(counts, events, count, NULL);
}

static void note(void *context, const struct moon_kv_event *event) {
    char *out = (char *)context;
    size_t used = strlen(out);
    out[used] = (char)(event->parent.length ? event->hash.bytes[0] - 0x20 : event->hash.bytes[0]);
    out[used + 1] = 0;
    MOON_CHECK_INT(event->token_count, 3);
    MOON_CHECK_INT(event->token_ids[2], 9);
}

static void check_published(const char *expected) {
    published[0] = 0;
    MOON_CHECK_INT(moon_event_counts_publish(counts, note, published), strlen(expected));
    MOON_CHECK_TEXT(published, expected);
}

static void what_all_workers_told_is_published_in_order(void) {
    begin("vllm-0.33", 2);
    tell("cab");
    tell("bax");
    check_published("ab");
    end();
    begin("vllm-0.28", 2);
    tell("cab");
    tell("bax");
    check_published("ab");
    end();
}

static void replicas_count_for_one_another(void) {
    begin("vllm-0.33", 4); /* F = 2 */
    tell("ac");
    tell("b");
    tell("a");
    tell("");
    check_published("a");
    end();
    begin("vllm-0.29", 4);
    tell("ac");
    tell("b");
    tell("a");
    tell("");
    check_published("");
    CU_ASSERT_TRUE(moon_deviation_noted(&notes, MOON_DEVIATION_EVENTS_NEVER_COMMON));
    end();
    begin("vllm-0.29", 4);
    moon_profile_strict(moon_profile_find("vllm-0.29", NULL), &release);
    tell("ac");
    tell("b");
    tell("a");
    tell("");
    check_published("a");
    MOON_CHECK_INT(notes.taken, 0);
    end();
}

static void what_is_not_told_by_enough_waits_for_later_steps(void) {
    begin("vllm-0.33", 2);
    tell("ab");
    tell("b");
    check_published("b");
    tell("c"); /* 2 workers still, "a" was told once */
    tell("a");
    check_published("a");
    tell("");
    tell("c");
    check_published("c");
    tell("d"); /* nothing was left: counted anew, one worker */
    check_published("d");
    end();
}

static void up_to_29_it_is_dropped(void) {
    begin("vllm-0.29", 2);
    tell("ab");
    tell("b");
    check_published("b");
    tell("a");
    tell("");
    check_published("a"); /* one worker told anything */
    MOON_CHECK_INT(notes.taken, 0);
    end();
}

static void events_that_differ_are_not_one(void) {
    begin("vllm-0.33", 2);
    tell("aA");
    tell("A");
    check_published("A");
    struct moon_kv_event event = {.hash = {letters, 1}, .token_ids = tokens, .token_count = 3, .block_tokens = 16};
    MOON_CHECK_INT(moon_event_counts_worker(counts, &event, 1, NULL), 0); /* ids unknown */
    event.tokens_known = true;
    event.block_tokens = 8;
    MOON_CHECK_INT(moon_event_counts_worker(counts, &event, 1, NULL), 0);
    event.block_tokens = 16;
    event.token_count = 2;
    MOON_CHECK_INT(moon_event_counts_worker(counts, &event, 1, NULL), 0);
    event.token_count = 3;
    const uint32_t other[] = {7, 8, 10};
    event.token_ids = other;
    MOON_CHECK_INT(moon_event_counts_worker(counts, &event, 1, NULL), 0);
    event.hash.length = 0;
    MOON_CHECK_INT(moon_event_counts_worker(counts, &event, 1, NULL), 0);
    check_published("");
    end();
}

static size_t numbers_published;
static uint32_t first_number;
static void note_number(void *context, const struct moon_kv_event *event) {
    uint32_t number;
    (void)context;
    memcpy(&number, event->hash.bytes, sizeof number);
    if (numbers_published++ == 0)
        first_number = number;
}

static void many_events_are_kept_up_to_a_bound(void) {
    begin("vllm-0.33", 2);
    for (uint32_t worker = 0; worker < 2; worker++) {
        for (uint32_t i = 0; i < MOON_EVENTS_KEPT_MAX + 100; i++) {
            uint8_t bytes[4];
            memcpy(bytes, &i, sizeof bytes);
            struct moon_kv_event event = {.hash = {bytes, 4}};
            MOON_CHECK_INT(moon_event_counts_worker(counts, &event, 1, NULL), 0);
        }
        numbers_published = 0;
        moon_event_counts_publish(counts, note_number, NULL);
        if (worker == 0)
            MOON_CHECK_INT(numbers_published, 0);
    }
    end();
}

static void refused_memory_leaks_nothing(void) {
    struct moon_memory_failing failing;
    begin("vllm-0.33", 2);
    end();
    int status = MOON_ERR_MEMORY;
    for (uint64_t n = 1; status; n++) {
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        status = moon_event_counts_open(&counts, &connector, &failing.memory, NULL);
        if (!status)
            status = tell("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
        if (counts)
            moon_event_counts_publish(counts, note_number, NULL);
        moon_event_counts_close(counts);
        MOON_CHECK_INT(failing.held_bytes, 0);
        CU_ASSERT_FATAL(n < 200);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"what all workers told is published, in order", what_all_workers_told_is_published_in_order},
        {"replicas count for one another", replicas_count_for_one_another},
        {"what not enough workers told waits for later steps", what_is_not_told_by_enough_waits_for_later_steps},
        {"up to 0.29 it is dropped", up_to_29_it_is_dropped},
        {"events that differ in any field are not one", events_that_differ_are_not_one},
        {"many events are kept, up to a bound", many_events_are_kept_up_to_a_bound},
        {"refused memory leaks nothing", refused_memory_leaks_nothing},
        {NULL, NULL},
    };
    return moon_unit_main("event_counts", cases, argc, argv);
}
