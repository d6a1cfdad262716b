/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the bounded close, with a clock of their own. */
#include "ref/connector/closing.h"

#include "ref/base/unit.h"

/* Closes with queues that have `jobs` jobs, each of which takes job_ms, from time `now`. Writes what was done. */
static const char *run(const char *release, size_t send, size_t receive, int64_t job_ms, int64_t now) {
    static char log[256];
    struct moon_closing closing;
    size_t unfinished[2] = {send, receive};
    int64_t begun = now, polls = 0;
    moon_closing_begin(&closing, moon_profile_find(release, NULL), now);
    log[0] = 0;
    for (int i = 0; i < MOON_CLOSE_BOUND_MS / MOON_CLOSE_POLL_MS + 2 * 2 + 3; i++) {
        struct moon_closing_step step = moon_closing_next(&closing, unfinished, 2, now);
        char *end = log + strlen(log);
        if (step.act == MOON_CLOSING_WAIT) {
            polls++;
            now += step.wait_ms;
            for (size_t j = 0; j < 2; j++)
                unfinished[j] = (int64_t)(j ? receive : send) * job_ms <= now - begun ? 0 : unfinished[j];
        } else if (step.act == MOON_CLOSING_WARN) {
            sprintf(end, "warn %zu %zu; ", step.queue, step.unfinished);
        } else if (step.act == MOON_CLOSING_CLOSE) {
            sprintf(end, "close after %d ms, %d polls; ", (int)(now - begun), (int)polls);
        } else {
            return log;
        }
    }
    return "never done";
}

static void empty_queues_close_at_once(void) {
    MOON_CHECK_TEXT(run("vllm-0.33", 0, 0, 0, 0), "close after 0 ms, 0 polls; ");
}

static void queues_are_waited_for_in_turn(void) {
    MOON_CHECK_TEXT(run("vllm-0.30", 2, 3, 70, 1000), "close after 250 ms, 5 polls; ");
    MOON_CHECK_TEXT(run("vllm-0.30", 0, 3, 70, -9), "close after 250 ms, 5 polls; ");
}

static void all_waits_together_take_five_seconds(void) {
    MOON_CHECK_TEXT(run("vllm-0.33", 2, 3, 1000000, 77), "warn 0 2; warn 1 3; close after 5000 ms, 100 polls; ");
    MOON_CHECK_TEXT(run("vllm-0.33", 3, 4, 1300, 0), "warn 1 4; close after 5000 ms, 100 polls; ");
    MOON_CHECK_TEXT(run("vllm-0.33", 4, 3, 1300, 0), "warn 0 4; close after 5000 ms, 100 polls; ");
}

static void earlier_releases_do_not_wait(void) {
    MOON_CHECK_TEXT(run("vllm-0.29", 2, 3, 1000000, 0), "close after 0 ms, 0 polls; ");
    MOON_CHECK_TEXT(run("vllm-0.23", 2, 3, 1000000, 0), "");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"empty queues close at once", empty_queues_close_at_once},
        {"queues are waited for in turn, every 50 ms", queues_are_waited_for_in_turn},
        {"all waits together take five seconds, then there are warnings", all_waits_together_take_five_seconds},
        {"up to 0.29 nothing is waited for, up to 0.23 nothing is closed", earlier_releases_do_not_wait},
        {NULL, NULL},
    };
    return moon_unit_main("closing", cases, argc, argv);
}
