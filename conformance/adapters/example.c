/* SPDX-License-Identifier: Apache-2.0 */
/* An example adapter: the smallest complete program that speaks the adapter protocol, answering by the reference.
 *
 * To plug in an implementation of your own, keep main and the messages, and replace what `answer_case` calls. The
 * protocol is newline-delimited JSON: one message a line on standard input, one answer a line on standard output,
 * nothing else there.
 *   {"do":"start","protocol":1,"folder":F}                          -> {"ok":{...who you are and what you offer...}}
 *   {"do":"case","seq":N,"suite":S,"profile":P,"given":{...}}       -> {"seq":N,"result":{...}} or "skip" or "error"
 *   {"do":"stop"}                                                   -> {"ok":{}}, then end with status 0
 * Answers may come in any order; what you cannot do is a "skip" with a reason, what you do not understand an "error".
 */
#include "conformance/suites/suite.h"
#include "conformance/suites/world.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROTOCOL = 1 };

/* Writes one answer as one line, at once: the harness waits for it. */
static int say(const struct moon_json *answer) {
    struct moon_text line;
    moon_text_open(&line, moon_memory_heap());
    moon_json_write(answer, MOON_JSON_COMPACT, &line);
    moon_text_char(&line, '\n');
    int status = moon_json_broken(answer) || line.failed || fwrite(line.data, 1, line.length, stdout) != line.length ||
                 fflush(stdout) != 0;
    moon_text_close(&line);
    return status;
}

static struct moon_json *text_member(struct moon_arena *arena, struct moon_json *object, const char *name,
                                     const char *text) {
    return moon_json_set(arena, object, name, moon_json_string(arena, text));
}

/* The handshake: a name for reports, and the releases and suites that cases may ask for. "store" is for adapters of a
 * store. */
static struct moon_json *introduce(struct moon_arena *arena, const struct moon_json *message) {
    int64_t protocol = 0;
    size_t count = 0;
    struct moon_error error;
    struct moon_json *answer = moon_json_object(arena), *profiles = moon_json_array(arena),
                     *suites = moon_json_array(arena);
    if (moon_json_get_int("message", message, "protocol", true, PROTOCOL, PROTOCOL, &protocol, &error) != 0) {
        text_member(arena, answer, "error", error.message);
        return answer;
    }
    struct moon_json *ok = moon_json_set(arena, answer, "ok", moon_json_object(arena));
    text_member(arena, ok, "name", "mooncheck example adapter");
    text_member(arena, ok, "version", "1");
    text_member(arena, ok, "homepage", "");
    const struct moon_profile *known = moon_profiles(&count);
    for (size_t i = 0; i < count; i++)
        moon_json_push(profiles, moon_json_string(arena, known[i].name));
    for (size_t i = 0; moon_suites()[i]; i++)
        moon_json_push(suites, moon_json_string(arena, moon_suites()[i]->name));
    moon_json_set(arena, ok, "profiles", profiles);
    moon_json_set(arena, ok, "suites", suites);
    moon_json_set(arena, ok, "store", moon_json_bool(arena, false));
    return answer;
}

/* One case. What the release itself would raise is a result, {"error":{"class","message"}}; the "error" beside "seq" is
 * for input that makes no sense. */
static void answer_case(struct moon_arena *arena, const struct moon_json *message, struct moon_json *answer) {
    const char *suite_name = "", *profile_name = "";
    struct moon_json *given = NULL, *result = NULL;
    struct moon_error error;
    if (moon_json_get_string("message", message, "suite", true, &suite_name, NULL, &error) != 0 ||
        moon_json_get_string("message", message, "profile", true, &profile_name, NULL, &error) != 0 ||
        moon_json_get("message", message, "given", true, MOON_JSON_OBJECT, &given, &error) != 0) {
        text_member(arena, answer, "error", error.message);
        return;
    }
    const struct moon_suite *suite = moon_suite_find(suite_name);
    const struct moon_profile *profile = moon_profile_find(profile_name, &error);
    if (!suite || !profile)
        text_member(arena, answer, "skip", suite ? error.message : "this suite is not offered");
    else if (suite->answer(moon_suite_world_system(), arena, profile, "message", given, &result, &error) == 0)
        moon_json_set(arena, answer, "result", result);
    else
        text_member(arena, answer, "error", moon_arena_format(arena, "%s: %s", error.where, error.message));
}

/* Answers one line. *stop: no message may follow. */
static struct moon_json *respond(struct moon_arena *arena, const char *line, size_t length, bool *stop) {
    struct moon_json *message = NULL, *answer = moon_json_object(arena);
    struct moon_error error;
    if (moon_json_read(arena, "message", line, length, MOON_JSON_STRICT, &message, &error) != 0) {
        text_member(arena, answer, "error", moon_arena_format(arena, "%s: %s", error.where, error.message));
        return answer;
    }
    const struct moon_json *order = moon_json_is(message, MOON_JSON_OBJECT) ? moon_json_member(message, "do") : NULL;
    if (moon_json_is_string(order, "start"))
        return introduce(arena, message);
    *stop = moon_json_is_string(order, "stop");
    if (*stop) {
        moon_json_set(arena, answer, "ok", moon_json_object(arena));
        return answer;
    }
    const struct moon_json *seq = moon_json_is(message, MOON_JSON_OBJECT) ? moon_json_member(message, "seq") : NULL;
    if (seq) /* given back as it came */
        moon_json_set(arena, answer, "seq", moon_json_clone(arena, seq));
    if (moon_json_is_string(order, "case") && moon_json_is(seq, MOON_JSON_INTEGER))
        answer_case(arena, message, answer);
    else
        text_member(arena, answer, "error", "this message is not understood");
    return answer;
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    bool stop = false;
    int status = 0;
    setlocale(LC_ALL,
              ""); /* hashes and keys must not depend on it: an implementation inside a host program has no say in it */
    while (!stop && status == 0) {
        ssize_t length = getline(&line, &room, stdin);
        if (length < 0)
            break;
        struct moon_arena arena;
        moon_arena_open(&arena, moon_memory_heap());
        status = say(respond(&arena, line, (size_t)length, &stop));
        moon_arena_close(&arena);
    }
    free(line);
    return status;
}
