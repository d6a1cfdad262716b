/* SPDX-License-Identifier: Apache-2.0 */
/* A Python program that measures the same as we do, and answers a line of JSON for a line of JSON. */
#include "conformance/bench_python.h"

#include <string.h>

enum { DEADLINE_S = 120 };

void moon_bench_python_start(struct moon_bench_python *python, struct moon_arena *arena, const char *const words[]) {
    const struct moon_process_setting setting = {.folder = NULL};
    struct moon_error error;
    struct moon_text command;
    bool plain = true;
    *python = (struct moon_bench_python){.arena = arena};
    moon_text_open(&command, moon_memory_heap());
    moon_text_string(&command, "exec");
    for (size_t i = 0; words[i]; i++) {
        plain &= strchr(words[i], '\'') == NULL;
        moon_text_format(&command, " '%s'", words[i]);
    }
    python->started = plain && !command.failed &&
                      moon_process_start(&python->process, moon_text_value(&command), &setting, &error) == 0;
    if (!python->started)
        python->skipped = "it cannot be started";
    moon_text_close(&command);
}

/* The last line that it said on stderr. */
static const char *why_silent(struct moon_bench_python *python) {
    const char *log = moon_process_log(&python->process);
    const char *last = strrchr(log, '\n');
    while (last && last > log && last[1] == 0) /* the last line that is not empty */
        last = memrchr(log, '\n', (size_t)(last - log));
    const char *line = last ? last + 1 : log;
    const char *text = moon_arena_copy(python->arena, line, strcspn(line, "\n"));
    return text && *text ? text : "it does not answer";
}

static const struct moon_json *take_answer(struct moon_bench_python *python, const char *line, size_t length) {
    const char *missing = NULL;
    struct moon_json *answer = NULL;
    struct moon_error error;
    if (moon_json_read(python->arena, "python", line, length, MOON_JSON_STRICT, &answer, &error) != 0 ||
        answer->type != MOON_JSON_OBJECT) {
        python->skipped = "its answer is not JSON";
        return NULL;
    }
    if (moon_json_get_string("python", answer, "missing", true, &missing, NULL, &error) != 0)
        return answer;
    const char *why = moon_arena_format(python->arena, "it has no %s", missing);
    python->skipped = why ? why : "it lacks a module";
    return NULL;
}

const struct moon_json *moon_bench_python_ask(struct moon_bench_python *python, const char *question) {
    uint64_t deadline = moon_now_ns() + (uint64_t)DEADLINE_S * 1000000000;
    char *line;
    size_t length;
    if (python->skipped)
        return NULL;
    moon_process_send(&python->process, question, strlen(question));
    if (moon_process_wait(&python->process, deadline, &line, &length) == MOON_PROCESS_LINE)
        return take_answer(python, line, length);
    python->skipped = why_silent(python);
    return NULL;
}

void moon_bench_python_end(struct moon_bench_python *python) {
    if (python->started)
        moon_process_end(&python->process, 1000);
}
