/* SPDX-License-Identifier: Apache-2.0 */
/* The implementation under test: the reference in this process, or any program that speaks the adapter protocol. */
#include "conformance/target.h"

#include "conformance/suites/world.h"
#include "conformance/target_process.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct moon_target {
    const char *spec;
    struct moon_target_setting setting;
    bool reference;
    struct moon_adapter adapter; /* unless reference */
    struct moon_target *second;  /* one further process of the same, once it is needed */
};

int moon_target_open(struct moon_target **target, const char *spec, const struct moon_target_setting *setting,
                     struct moon_error *error) {
    static const char prefix[] = "cmd:";
    bool reference = strcmp(spec, "ref") == 0, command = strncmp(spec, prefix, sizeof prefix - 1) == 0;
    *target = NULL;
    if (!reference && (!command || !spec[sizeof prefix - 1]))
        return moon_fail(error, MOON_ERR_SCHEMA, NULL, "target \"%.200s\" is none of: ref, cmd:COMMAND", spec);
    struct moon_target *one = calloc(1, sizeof *one);
    if (!one)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    one->spec = spec;
    one->setting = *setting;
    one->reference = reference;
    int status = reference ? 0 : moon_adapter_open(&one->adapter, spec + sizeof prefix - 1, setting, error);
    if (status == 0)
        *target = one;
    else
        moon_target_close(one);
    return status;
}

void moon_target_close(struct moon_target *target) {
    if (!target)
        return;
    if (target->second) /* has no second of its own */
        moon_adapter_close(&target->second->adapter);
    free(target->second);
    if (!target->reference)
        moon_adapter_close(&target->adapter);
    free(target);
}

static const char *about(const struct moon_target *target, const char *name) {
    const struct moon_json *value = moon_json_member(target->adapter.about, name);
    return moon_json_is(value, MOON_JSON_STRING) ? value->bytes : "";
}

const char *moon_target_name(const struct moon_target *target) {
    return target->reference ? "mooncheck reference" : about(target, "name");
}

const char *moon_target_version(const struct moon_target *target) {
    return !target->reference ? about(target, "version") : target->setting.version ? target->setting.version : "";
}

const char *moon_target_homepage(const struct moon_target *target) {
    return target->reference ? "" : about(target, "homepage");
}

static bool offers(const struct moon_target *target, const char *list, const char *name) {
    if (target->reference)
        return true;
    const struct moon_json *one = moon_json_member(target->adapter.about, list)->first;
    while (one && !moon_json_is_string(one, name))
        one = one->next;
    return one != NULL;
}

bool moon_target_offers_suite(const struct moon_target *target, const char *suite) {
    return offers(target, "suites", suite);
}

bool moon_target_offers_profile(const struct moon_target *target, const char *profile) {
    return offers(target, "profiles", profile);
}

static void ask_reference(const struct moon_target *target, struct moon_arena *arena, struct moon_question *question) {
    struct moon_profile strict;
    struct moon_error error;
    struct moon_json *answer = NULL;
    uint64_t start_ns = moon_now_ns();
    question->reply = MOON_REPLY_RESULT;
    question->reason = "";
    moon_profile_strict(question->profile, &strict);
    if (question->suite->answer(moon_suite_world_system(), arena, target->setting.strict ? &strict : question->profile,
                                "given", question->given, &answer, &error) != 0) {
        question->reply = MOON_REPLY_ERROR;
        question->reason = moon_arena_format(arena, "the reference says: %s: %s", error.where, error.message);
    } else if (moon_json_broken(answer)) {
        question->reply = MOON_REPLY_ERROR;
        question->reason = "out of memory";
    }
    question->answer = answer;
    question->duration_ns = moon_now_ns() - start_ns;
}

int moon_target_ask(struct moon_target *target, struct moon_arena *arena, struct moon_question questions[],
                    size_t count, struct moon_error *error) {
    assert(target);
    if (!target->reference)
        return moon_adapter_ask(&target->adapter, arena, questions, count, error);
    for (size_t i = 0; i < count; i++) {
        ask_reference(target, arena, &questions[i]);
        if (!questions[i].reason)
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    }
    return 0;
}

/* All that a process prints until it ends. */
static bool read_to_end(struct moon_process *process, int64_t timeout_ms, struct moon_text *out) {
    char *line = NULL;
    size_t length = 0;
    uint64_t deadline_ns = moon_now_ns() + (uint64_t)timeout_ms * 1000000U;
    enum moon_process_event event = moon_process_wait(process, deadline_ns, &line, &length);
    for (; event == MOON_PROCESS_LINE; event = moon_process_wait(process, deadline_ns, &line, &length)) {
        moon_text_bytes(out, line, length);
        moon_text_char(out, '\n');
    }
    return event == MOON_PROCESS_END && !out->failed;
}

/* The reference as a second process: `mooncheck SUITE --json -`. */
static void ask_program(const char *program, int64_t timeout_ms, struct moon_arena *arena,
                        struct moon_question *question) {
    struct moon_process process;
    struct moon_text output, input;
    struct moon_error error;
    struct moon_json *answer = NULL;
    moon_text_open(&output, moon_memory_heap());
    moon_text_open(&input, moon_memory_heap());
    question->reply = MOON_REPLY_ERROR;
    question->reason = "the second process of the reference gave no answer";
    moon_text_format(&input, "{\"profile\":\"%s\",\"given\":", question->profile->name);
    moon_json_write(question->given, MOON_JSON_COMPACT, &input);
    moon_text_string(&input, "}");
    const char *command = moon_arena_format(arena, "exec '%s' %s --json -", program, question->suite->name);
    if (command && moon_process_start(&process, command, NULL, &error) == 0) {
        moon_process_send(&process, moon_text_value(&input), input.length);
        moon_process_send_end(&process);
        bool whole = read_to_end(&process, timeout_ms, &output);
        moon_process_end(&process, 1000);
        if (whole && moon_json_read(arena, "second process", moon_text_value(&output), output.length, MOON_JSON_STRICT,
                                    &answer, &error) == 0)
            question->reply = MOON_REPLY_RESULT;
    }
    question->answer = answer;
    moon_text_close(&output);
    moon_text_close(&input);
}

int moon_target_ask_second(struct moon_target *target, struct moon_arena *arena, struct moon_question questions[],
                           size_t count, struct moon_error *error) {
    if (target->reference) {
        for (size_t i = 0; i < count; i++) {
            if (target->setting.program)
                ask_program(target->setting.program, MOON_TARGET_CASE_TIMEOUT_MS_DEFAULT, arena, &questions[i]);
            else
                ask_reference(target, arena, &questions[i]);
        }
        return 0;
    }
    if (!target->second && moon_target_open(&target->second, target->spec, &target->setting, error) != 0)
        return error->status;
    return moon_target_ask(target->second, arena, questions, count, error);
}

int moon_target_stop(struct moon_target *target, struct moon_error *error) {
    return target->reference ? 0 : moon_adapter_stop(&target->adapter, error);
}

const char *moon_target_raw(struct moon_target *target, struct moon_arena *arena, const char *text, int64_t seq,
                            const char **reason) {
    if (target->reference) {
        *reason = "the reference is no process";
        return NULL;
    }
    return moon_adapter_raw(&target->adapter, arena, text, seq, reason);
}
