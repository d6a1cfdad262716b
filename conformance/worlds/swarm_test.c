/* SPDX-License-Identifier: Apache-2.0 */
/* Swarms of small scenarios: counts, failures in words, resuming, workers that die. */
#include "conformance/worlds/swarm.h"

#include "ref/base/unit.h"

#include <stdlib.h>
#include <unistd.h>

static const char good[] =
    "{\"schema\":\"mooncheck-scenario/1\",\"id\":\"good\",\"title\":\"t\",\"guide\":[],\"store\":"
    "{\"release\":\"mooncake-0.3.13.post1\"},\"owners\":[],\"requesters\":[{\"name\":\"a\"}],"
    "\"operations\":[{\"id\":\"e\",\"node\":\"a\",\"do\":\"exist\",\"key\":\"k\"}],\"expect\":"
    "{\"codes\":{\"e\":%d}}}";

static void load(struct moon_arena *arena, int code, struct moon_scenario *scenario) {
    struct moon_error error;
    char *text = moon_arena_format(arena, good, code);
    MOON_CHECK_INT(moon_scenario_read(arena, "good.json", text, strlen(text), scenario, &error), 0);
}

static void tell(const struct moon_scenario *scenario, const struct moon_play *play, struct moon_text *out) {
    moon_text_format(out, "%s fails: %s\n", scenario->id, play->seen);
}

static void tell_and_die(const struct moon_scenario *scenario, const struct moon_play *play, struct moon_text *out) {
    (void)scenario;
    (void)play;
    (void)out;
    _exit(9);
}

/* Plays seeds 1 to 5 of a scenario that expects this code; 0 is right. */
static void swarm(int code, const char *resume,
                  void (*words)(const struct moon_scenario *, const struct moon_play *, struct moon_text *),
                  struct moon_swarm_result *result) {
    struct moon_arena arena;
    struct moon_scenario scenario;
    struct moon_error error = {.message = ""};
    moon_arena_open(&arena, moon_memory_heap());
    load(&arena, code, &scenario);
    struct moon_swarm_setting setting = {
        .scenarios = &scenario, .scenario_count = 1, .first = 1, .last = 5, .jobs = 2, .resume = resume, .tell = words};
    MOON_CHECK_INT(moon_swarm(&setting, result, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    moon_arena_close(&arena);
}

static void counts_what_passes_and_fails(void) {
    struct moon_swarm_result result;
    swarm(0, NULL, tell, &result);
    MOON_CHECK_INT(result.passed, 5);
    MOON_CHECK_INT(result.failed, 0);
    moon_swarm_close(&result);
    swarm(1, NULL, tell, &result);
    MOON_CHECK_INT(result.failed, 5);
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&result.failures), "good fails: 0"));
    moon_swarm_close(&result);
}

static void a_dead_worker_is_a_failure_of_its_seed(void) {
    struct moon_swarm_result result;
    swarm(1, NULL, tell_and_die, &result);
    MOON_CHECK_INT(result.failed, 5);
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&result.failures), "ended with status 9"));
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&result.failures), "mooncheck sim good.json --seed 4"));
    moon_swarm_close(&result);
}

static void goes_on_where_it_was(void) {
    char path[] = "/tmp/mooncheck-swarm-XXXXXX";
    struct moon_swarm_result result;
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    static const char before[] = "good 2 pass\nother 1 fail\ngood 4 fail\ngood 99 fail\n";
    CU_ASSERT(write(fd, before, sizeof before - 1) == (ssize_t)(sizeof before - 1));
    close(fd);
    swarm(0, path, tell, &result);
    MOON_CHECK_INT(result.resumed, 2);
    MOON_CHECK_INT(result.passed, 4);
    MOON_CHECK_INT(result.failed, 1);
    moon_swarm_close(&result);
    swarm(0, path, tell, &result);
    MOON_CHECK_INT(result.resumed, 5);
    moon_swarm_close(&result);
    unlink(path);
}

static const struct moon_unit_case cases[] = {
    {"passed and failed seeds are counted, failures told", counts_what_passes_and_fails},
    {"a worker that dies is a failure of the seed it played, and the rest is played",
     a_dead_worker_is_a_failure_of_its_seed},
    {"a swarm passes over what its file remembers", goes_on_where_it_was},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    return moon_unit_main("swarm", cases, argc, argv);
}
