/* SPDX-License-Identifier: Apache-2.0 */
/* Differential runs: cases drawn from a seed, answered by the reference and by a target; differences shrunk and kept.
 */
#include "conformance/drawn.h"

#include "conformance/draw/draw.h"
#include "conformance/draw/shrink.h"
#include "conformance/io.h"
#include "conformance/judge.h"
#include "conformance/random_case.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 256, GIVEN_SHOWN_BYTES = 300 };

/* One suite of a run. */
struct drawing {
    struct moon_target *reference, *target;
    const struct moon_drawn_setting *setting;
    const struct moon_suite *suite;
    struct moon_result *result;
    const struct moon_judge_deviations *deviations;
    struct moon_error *error;
    const char *kind;
    struct moon_json *file; /* what is kept; NULL until the first difference */
    size_t differences;
};

/* Compares both answers to one case. Returns as moon_compare. */
static int compare(struct drawing *drawing, struct moon_arena *arena, const struct moon_question *ours,
                   const struct moon_question *theirs, struct moon_difference *difference) {
    if (!moon_random_case(ours->answer) || moon_json_member(theirs->answer, "error"))
        return moon_compare(arena, ours->suite, ours->given, ours->answer, theirs->answer, difference);
    struct moon_question second = {.suite = ours->suite, .profile = ours->profile, .given = ours->given};
    const struct moon_json *expect = moon_random_expect(arena, ours->answer);
    if (!expect || moon_target_ask_second(drawing->target, arena, &second, 1, drawing->error) != 0)
        return MOON_ERR_MEMORY;
    if (second.reply != MOON_REPLY_RESULT) {
        *difference = (struct moon_difference){"an answer of a second process", second.reason, ""};
        return 1;
    }
    return moon_random_compare(arena, ours->suite, ours->profile, ours->given, expect, theirs->answer, second.answer,
                               difference);
}

enum { KIND_BYTES = 96, KIND_MESSAGE_BYTES = 24 };

/* What kind of answer it is: "" for a value, else the exception's class and how its message begins. */
static void kind_of(const struct moon_json *answer, char kind[KIND_BYTES]) {
    const struct moon_json *error = moon_json_member(answer, "error"), *class = moon_json_member(error, "class"),
                           *message = moon_json_member(error, "message");
    kind[0] = '\0';
    if (class)
        snprintf(kind, KIND_BYTES, "%.48s: %.*s", class->bytes, KIND_MESSAGE_BYTES, message ? message->bytes : "");
}

/* For the shrinker: do both still answer, in the same kinds, and differ? Other kinds would be another difference. A
 * case keeps its seed, or it would depend on the environment. */
struct shrinking {
    struct drawing *drawing;
    bool seeded;
    char ours[KIND_BYTES], theirs[KIND_BYTES];
};

static bool same_kinds(const struct shrinking *shrinking, const struct moon_question *ours,
                       const struct moon_question *theirs) {
    char kind[KIND_BYTES];
    kind_of(ours->answer, kind);
    if (strcmp(kind, shrinking->ours) != 0)
        return false;
    kind_of(theirs->answer, kind);
    return strcmp(kind, shrinking->theirs) == 0;
}

static bool still_differs(void *context, const struct moon_json *given) {
    const struct shrinking *shrinking = context;
    struct drawing *drawing = shrinking->drawing;
    struct moon_question ours = {.suite = drawing->suite, .profile = drawing->setting->profile, .given = given},
                         theirs = ours;
    struct moon_difference difference;
    struct moon_error ignored;
    struct moon_arena arena;
    if (shrinking->seeded && !moon_json_member(given, "python_hash_seed"))
        return false;
    moon_arena_open(&arena, moon_memory_heap());
    bool differs =
        moon_target_ask(drawing->reference, &arena, &ours, 1, &ignored) == 0 && ours.reply == MOON_REPLY_RESULT &&
        moon_target_ask(drawing->target, &arena, &theirs, 1, &ignored) == 0 && theirs.reply == MOON_REPLY_RESULT &&
        same_kinds(shrinking, &ours, &theirs) && compare(drawing, &arena, &ours, &theirs, &difference) == 1;
    moon_arena_close(&arena);
    return differs;
}

/* Adds a difference to the suite's vector file: shrunk, with what the target answers. */
static int keep(struct drawing *drawing, const char *id, const struct moon_question *ours,
                const struct moon_question *first) {
    const struct moon_json *given = first->given;
    struct moon_arena *arena = drawing->result->arena;
    struct shrinking shrinking = {.drawing = drawing, .seeded = moon_json_member(given, "python_hash_seed") != NULL};
    kind_of(ours->answer, shrinking.ours);
    kind_of(first->answer, shrinking.theirs);
    const struct moon_json *small = given;
    if (drawing->differences < MOON_DRAWN_SHRUNK_MAX)
        small = moon_shrink(arena, given, still_differs, &shrinking, MOON_DRAWN_SHRINK_TRIES);
    struct moon_question theirs = {.suite = drawing->suite, .profile = drawing->setting->profile, .given = small};
    if (!small || moon_target_ask(drawing->target, arena, &theirs, 1, drawing->error) != 0)
        return moon_no_memory(drawing->error);
    if (!drawing->file)
        drawing->file = moon_draw_file(arena, drawing->suite, moon_target_name(drawing->target),
                                       moon_target_version(drawing->target));
    if (theirs.reply == MOON_REPLY_RESULT)
        moon_draw_keep(arena, drawing->file, id, drawing->setting->profile, small, theirs.answer,
                       moon_random_case(theirs.answer) ? "drawn; the reference differs; values are random"
                                                       : "drawn; the reference differs");
    return moon_json_broken(drawing->file) ? moon_no_memory(drawing->error) : 0;
}

static const char *tell_given(struct moon_arena *arena, const struct moon_question *question) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_text_format(&text, "asked %s as %s: given ", question->suite->name, question->profile->name);
    size_t start = text.length;
    moon_json_write(question->given, MOON_JSON_COMPACT, &text);
    size_t end = text.length;
    if (end - start > GIVEN_SHOWN_BYTES) {
        end = start + GIVEN_SHOWN_BYTES;
        while (end > start && (text.data[end] & 0xC0) == 0x80)
            end--;
    }
    const char *told =
        text.failed ? NULL : moon_arena_format(arena, "%.*s%s", (int)end, text.data, end < text.length ? "..." : "");
    moon_text_close(&text);
    return told;
}

static const char *tell_reproduce(struct drawing *drawing, const char *id) {
    const struct moon_drawn_setting *setting = drawing->setting;
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, "mooncheck vectors --target ");
    moon_judge_quote(&text, setting->spec);
    moon_text_string(&text, setting->strict ? " --mode strict" : "");
    moon_text_format(&text, " --draw %" PRIu64 " --seed %" PRIu64 " --suite %s --profile %s --only %s", setting->count,
                     setting->seed, drawing->suite->name, setting->profile->name, id);
    const char *told = text.failed ? NULL : moon_arena_copy(drawing->result->arena, text.data, text.length);
    moon_text_close(&text);
    return told;
}

/* Names what the release does wrong in the case. */
static int name_deviations(struct drawing *drawing, const struct moon_question *question,
                           struct moon_result_case *one) {
    struct moon_deviation_notes notes;
    const struct moon_json *right;
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_deviations_of_case(&arena, question->suite, question->profile, question->given, &notes, &right,
                                         drawing->error);
    if (status == 0)
        status = moon_judge_name_deviations(drawing->deviations, drawing->result->arena, drawing->setting->strict,
                                            &notes, one, drawing->error);
    moon_arena_close(&arena);
    return status;
}

static int judge_case(struct drawing *drawing, const char *id, const struct moon_question *ours,
                      const struct moon_question *theirs) {
    struct moon_result *result = drawing->result;
    struct moon_arena *arena = result->arena;
    const struct moon_drawn_setting *setting = drawing->setting;
    struct moon_difference difference = {"", "", ""};
    struct moon_result_case *one =
        moon_judge_add(result, id, drawing->kind, drawing->suite->name, setting->profile->name);
    if (!one)
        return moon_no_memory(drawing->error);
    one->duration_ns = theirs->duration_ns;
    int status = 0;
    if (ours->reply != MOON_REPLY_RESULT) {
        one->outcome = MOON_OUTCOME_ERROR;
        one->reason = moon_arena_format(arena, "the harness's fault: the reference refuses a case that was drawn: %s",
                                        ours->reason);
    } else if (theirs->reply != MOON_REPLY_RESULT) {
        moon_judge_unanswered(result, theirs, one);
    } else {
        status = compare(drawing, arena, ours, theirs, &difference);
        one->outcome = status == 0 ? MOON_OUTCOME_PASS : MOON_OUTCOME_FAIL;
    }
    if (status == MOON_ERR_MEMORY || !one->reason)
        return moon_no_memory(drawing->error);
    if (name_deviations(drawing, ours, one) != 0)
        return MOON_ERR_MEMORY;
    if (moon_outcome_is_failure(one->outcome)) {
        one->done = tell_given(arena, theirs);
        one->expected = difference.expected;
        one->seen = moon_difference_seen(arena, &difference);
        one->reproduce = tell_reproduce(drawing, id);
        if (!one->done || !one->seen || !one->reproduce)
            return moon_no_memory(drawing->error);
    }
    moon_result_count(result, one);
    if (one->outcome != MOON_OUTCOME_FAIL || drawing->differences >= MOON_DRAWN_KEPT_MAX)
        return 0;
    status = keep(drawing, id, ours, theirs);
    drawing->differences++;
    return status;
}

static int draw_case(struct drawing *drawing, struct moon_arena *arena, uint64_t number, struct moon_json **given) {
    const struct moon_drawn_setting *setting = drawing->setting;
    int status = moon_draw(arena, drawing->suite, setting->profile, setting->seed, number, given);
    if (status == 0 || status == MOON_ERR_MEMORY)
        return status ? moon_no_memory(drawing->error) : 0;
    return moon_fail(drawing->error, status, NULL,
                     "the harness's fault: %s cannot draw case %" PRIu64 " of seed %" PRIu64, drawing->suite->name,
                     number, setting->seed);
}

/* Draws, asks and judges cases [from, to). */
static int judge_batch(struct drawing *drawing, uint64_t from, uint64_t to) {
    const struct moon_drawn_setting *setting = drawing->setting;
    struct moon_question ours[BATCH], theirs[BATCH];
    const char *ids[BATCH];
    size_t count = 0;
    struct moon_arena arena;
    int status = 0;
    moon_arena_open(&arena, moon_memory_heap());
    for (uint64_t i = from; i < to && status == 0; i++) {
        struct moon_json *given = NULL;
        ids[count] = moon_draw_id(drawing->result->arena, drawing->suite, setting->profile, setting->seed, i);
        if (!ids[count])
            status = moon_no_memory(drawing->error);
        else if (setting->only && fnmatch(setting->only, ids[count], 0) != 0)
            continue;
        else
            status = draw_case(drawing, &arena, i, &given);
        ours[count] = (struct moon_question){.suite = drawing->suite, .profile = setting->profile, .given = given};
        theirs[count] = ours[count];
        count++;
    }
    if (status == 0)
        status = moon_target_ask(drawing->reference, &arena, ours, count, drawing->error);
    if (status == 0)
        status = moon_target_ask(drawing->target, &arena, theirs, count, drawing->error);
    for (size_t i = 0; i < count && status == 0; i++)
        status = judge_case(drawing, ids[i], &ours[i], &theirs[i]);
    moon_arena_close(&arena);
    return status;
}

static int write_file(struct drawing *drawing) {
    const struct moon_drawn_setting *setting = drawing->setting;
    struct moon_text text;
    const char *path = moon_arena_format(drawing->result->arena, "%s/drawn-%s-%s-%" PRIu64 ".json", setting->folder,
                                         drawing->suite->name, setting->profile->name, setting->seed);
    if (!path || moon_io_make_folder(setting->folder, drawing->error) != 0)
        return path ? MOON_ERR_IO : moon_no_memory(drawing->error);
    moon_text_open(&text, moon_memory_heap());
    moon_json_write(drawing->file, MOON_JSON_PRETTY, &text);
    moon_text_char(&text, '\n');
    int status =
        text.failed ? moon_no_memory(drawing->error) : moon_io_write(path, text.data, text.length, drawing->error);
    moon_text_close(&text);
    return status;
}

static bool wanted(const struct moon_drawn_setting *setting, const struct moon_suite *suite) {
    bool found = setting->suite_count == 0;
    for (size_t i = 0; i < setting->suite_count; i++)
        found |= strcmp(setting->suites[i], suite->name) == 0;
    return found;
}

static int judge_suite(struct drawing *drawing) {
    const struct moon_drawn_setting *setting = drawing->setting;
    int status = 0;
    if (!moon_target_offers_suite(drawing->target, drawing->suite->name) ||
        !moon_target_offers_profile(drawing->target, setting->profile->name)) {
        struct moon_result_case *one =
            moon_judge_add(drawing->result, drawing->kind, drawing->kind, drawing->suite->name, setting->profile->name);
        if (!one)
            return moon_no_memory(drawing->error);
        one->outcome = MOON_OUTCOME_SKIP;
        one->reason = "the target does not offer this suite or profile";
        moon_result_count(drawing->result, one);
        return 0;
    }
    for (uint64_t from = 0; from < setting->count && status == 0; from += BATCH)
        status = judge_batch(drawing, from, from + BATCH < setting->count ? from + BATCH : setting->count);
    return status == 0 && drawing->file ? write_file(drawing) : status;
}

int moon_drawn_judge(struct moon_target *target, const struct moon_drawn_setting *setting, struct moon_result *result,
                     struct moon_error *error) {
    const struct moon_target_setting plain = {.strict = setting->strict};
    struct moon_target *reference = NULL;
    struct moon_judge_deviations deviations;
    for (size_t i = 0; i < setting->suite_count; i++)
        if (!moon_suite_find(setting->suites[i]))
            return moon_fail(error, MOON_ERR_SCHEMA, NULL, "there is no suite \"%.40s\"", setting->suites[i]);
    int status = moon_judge_open_deviations(&deviations, result->arena, error);
    if (status == 0)
        status = moon_target_open(&reference, "ref", &plain, error);
    for (size_t i = 0; moon_suites()[i] && status == 0; i++) {
        struct drawing drawing = {.reference = reference,
                                  .target = target,
                                  .setting = setting,
                                  .suite = moon_suites()[i],
                                  .result = result,
                                  .deviations = &deviations,
                                  .error = error};
        if (!wanted(setting, drawing.suite))
            continue;
        drawing.kind = moon_draw_kind(result->arena, drawing.suite, setting->profile, setting->seed);
        status = drawing.kind ? judge_suite(&drawing) : moon_no_memory(error);
    }
    moon_target_close(reference);
    return status;
}
