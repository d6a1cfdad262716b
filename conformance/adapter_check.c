/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a program speaks the adapter protocol, in good order and when it is asked wrong things. */
#include "conformance/adapter_check.h"

#include "conformance/draw/draw.h"

#include <string.h>

/* A check while it goes on. */
struct check {
    struct moon_target *target;
    struct moon_result *result;
    struct moon_arena *arena;
    struct moon_error *error;
    const struct moon_profile *profile; /* the first one offered that this program knows; NULL: none */
    bool lost;                          /* memory refused */
};

/* Adds a case; `why` NULL means that it passed. */
static void tell(struct check *check, const char *id, const char *required, enum moon_outcome otherwise,
                 const char *done, const char *why) {
    struct moon_result_case *one = moon_result_add(check->result);
    if (!one || !id || !done) {
        check->lost = true;
        return;
    }
    one->id = id;
    one->suite = "adapter";
    one->level = "MUST";
    one->required = required;
    one->done = done;
    one->outcome = why ? otherwise : MOON_OUTCOME_PASS;
    one->reason = why ? why : "";
    moon_result_count(check->result, one);
}

static void check_offer(struct check *check) {
    size_t count = 0, known = 0, suites = 0;
    const struct moon_profile *profiles = moon_profiles(&count);
    for (size_t i = 0; i < count; i++) {
        if (!moon_target_offers_profile(check->target, profiles[i].name))
            continue;
        check->profile = check->profile ? check->profile : &profiles[i];
        known++;
    }
    for (size_t i = 0; moon_suites()[i]; i++)
        suites += moon_target_offers_suite(check->target, moon_suites()[i]->name);
    const char *why = known == 0    ? "\"profiles\" names no release that this program knows (such as \"vllm-0.33\")"
                      : suites == 0 ? "\"suites\" names no suite that this program knows (such as \"hash\")"
                                    : NULL;
    tell(check, "adapter.start.offer", "an adapter offers a known release and a known suite", MOON_OUTCOME_FAIL,
         "read the answer to \"start\"", why);
}

static void check_smoke(struct check *check, const struct moon_suite *suite) {
    struct moon_json *given = NULL;
    const char *id = moon_arena_format(check->arena, "adapter.smoke.%s", suite->name);
    const char *done = moon_arena_format(check->arena, "asked one drawn case of suite %s, profile %s", suite->name,
                                         check->profile->name);
    if (moon_draw(check->arena, suite, check->profile, 1, 0, &given) != 0) {
        check->lost = true;
        return;
    }
    struct moon_question question = {.suite = suite, .profile = check->profile, .given = given};
    if (moon_target_ask(check->target, check->arena, &question, 1, check->error) != 0)
        check->lost = true;
    bool skipped = question.reply == MOON_REPLY_SKIP;
    tell(check, id, "an offered suite is answered with a result in its form",
         skipped ? MOON_OUTCOME_SKIP : MOON_OUTCOME_FAIL, done,
         question.reply == MOON_REPLY_RESULT ? NULL : question.reason);
}

/* Sends a wrong message under a seq of its own; it must be answered by error or skip. */
static void check_bad(struct check *check, const char *id, const char *message, long seq, const char *what) {
    const char *why = NULL;
    const char *line = moon_target_raw(check->target, check->arena, message, seq, &why);
    struct moon_json *answer = NULL;
    struct moon_error fault;
    if (line && moon_json_read(check->arena, "line", line, strlen(line), MOON_JSON_STRICT, &answer, &fault) != 0)
        why = moon_arena_format(check->arena, "its answer is no JSON: %s", fault.message);
    else if (line && !moon_json_member(answer, "error") && !moon_json_member(answer, "skip"))
        why = moon_arena_format(check->arena, "it answers %.200s", line);
    tell(check, id, "a wrong message is answered by \"error\" or \"skip\", and the adapter lives on", MOON_OUTCOME_FAIL,
         what, why);
}

/* After input that is no message at all, the next case must be answered. */
static void check_garbage(struct check *check, const char *id, const char *garbage, long seq, const char *what) {
    const char *why = NULL;
    const char *message =
        moon_arena_format(check->arena,
                          "%s\n{\"do\":\"case\",\"seq\":%ld,\"suite\":\"no_such_suite\",\"profile\":\"%s\","
                          "\"given\":{}}",
                          garbage, seq, check->profile->name);
    if (!message || (!moon_target_raw(check->target, check->arena, message, seq, &why) && !why))
        check->lost = true;
    tell(check, id, "a line that is no message does no harm to the next one", MOON_OUTCOME_FAIL, what, why);
}

static void check_bad_input(struct check *check) {
    const char *name = check->profile->name;
    const char *suite = moon_target_offers_suite(check->target, "hash") ? "hash" : "keys";
    check_bad(check, "adapter.bad.unknown_do", "{\"do\":\"sing\",\"seq\":1000001}", 1000001, "sent {\"do\":\"sing\"}");
    check_bad(check, "adapter.bad.unknown_suite",
              moon_arena_format(check->arena,
                                "{\"do\":\"case\",\"seq\":1000002,\"suite\":\"no_such_suite\",\"profile\":\"%s\","
                                "\"given\":{}}",
                                name),
              1000002, "sent a case of a suite that does not exist");
    check_bad(check, "adapter.bad.unknown_profile",
              moon_arena_format(check->arena,
                                "{\"do\":\"case\",\"seq\":1000003,\"suite\":\"%s\",\"profile\":\"vllm-9.99\","
                                "\"given\":{}}",
                                suite),
              1000003, "sent a case of a release that does not exist");
    check_bad(check, "adapter.bad.unknown_member",
              moon_arena_format(check->arena,
                                "{\"do\":\"case\",\"seq\":1000004,\"suite\":\"%s\",\"profile\":\"%s\","
                                "\"given\":{\"no_such_member\":1}}",
                                suite, name),
              1000004, "sent a case with an unknown member in \"given\"");
    check_garbage(check, "adapter.bad.no_json", "{\"do\":", 1000005, "sent half a message, then a whole one");
    check_garbage(check, "adapter.bad.no_utf8", "\xff\xfe\"", 1000006, "sent bytes that are no UTF-8, then a message");
    check_garbage(check, "adapter.bad.no_object", "[1,2]", 1000007, "sent an array, then a message");
}

static void check_stop(struct check *check) {
    struct moon_error why;
    bool good = moon_target_stop(check->target, &why) == 0;
    tell(check, "adapter.stop.orderly", "\"stop\" is answered by {\"ok\":{}}, then the program ends with status 0",
         MOON_OUTCOME_FAIL, "sent \"stop\"", good ? NULL : moon_arena_format(check->arena, "%s", why.message));
}

int moon_adapter_check(const char *spec, const struct moon_target_setting *setting, struct moon_result *result,
                       struct moon_error *error) {
    struct moon_error why;
    struct check check = {.result = result, .arena = result->arena, .error = error};
    int status = moon_target_open(&check.target, spec, setting, &why);
    tell(&check, "adapter.start.handshake", "\"start\" is answered by who the adapter is and what it offers",
         MOON_OUTCOME_FAIL, "started the command and sent \"start\"",
         status == 0 ? NULL : moon_arena_format(check.arena, "%s", why.message));
    if (status == 0) {
        result->target_name = moon_arena_format(check.arena, "%s", moon_target_name(check.target));
        result->target_version = moon_arena_format(check.arena, "%s", moon_target_version(check.target));
        result->target_homepage = moon_arena_format(check.arena, "%s", moon_target_homepage(check.target));
        check.lost |= !result->target_name || !result->target_version || !result->target_homepage;
        check_offer(&check);
    }
    if (status == 0 && check.profile) {
        for (size_t i = 0; moon_suites()[i]; i++)
            if (moon_target_offers_suite(check.target, moon_suites()[i]->name))
                check_smoke(&check, moon_suites()[i]);
        check_bad_input(&check);
    }
    if (status == 0)
        check_stop(&check);
    moon_target_close(check.target);
    return check.lost || status == MOON_ERR_MEMORY ? moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory") : 0;
}
