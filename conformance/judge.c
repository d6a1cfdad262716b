/* SPDX-License-Identifier: Apache-2.0 */
/* Judges a target by vectors: which cases are asked, what counts as right, how a failure is told. */
#include "conformance/judge.h"

#include "conformance/random_case.h"
#include "conformance/requirements.h"

#include <fnmatch.h>
#include <string.h>

enum { BATCH = 256, GIVEN_SHOWN_BYTES = 160 };

/* Cases that are asked together. */
struct batch {
    const struct moon_vector *vectors[BATCH];
    struct moon_result_case *cases[BATCH];
    struct moon_question questions[BATCH], seconds[BATCH];
    size_t count;
    struct moon_arena arena; /* answers: given back after each batch */
};

/* A run while it goes on. */
struct judge {
    struct moon_target *target;
    const struct moon_judge_setting *setting;
    struct moon_result *result;
    struct batch batch;
    struct moon_judge_deviations deviations;
    struct moon_error *error;
    size_t done, all;
};

struct moon_result_case *moon_judge_add(struct moon_result *result, const char *id, const char *kind, const char *suite,
                                        const char *profile) {
    const struct moon_requirement *requirement = moon_requirement_of(kind, moon_profile_find(profile, NULL));
    struct moon_result_case *one = moon_result_add(result);
    if (!one)
        return NULL;
    one->id = id;
    one->suite = suite;
    one->profile = profile;
    one->requirement = requirement ? requirement->id : "";
    one->level = requirement ? requirement->level : "MUST";
    one->resembles = requirement ? requirement->resembles : "";
    one->required = requirement ? moon_arena_format(result->arena, "[%s %s] %s", requirement->id, requirement->level,
                                                    requirement->title)
                                : "the answer of the release that the case was recorded from";
    return one->required ? one : NULL;
}

int moon_judge_open_deviations(struct moon_judge_deviations *deviations, struct moon_arena *arena,
                               struct moon_error *error) {
    int status = moon_deviations_load(&deviations->table, arena, error);
    for (int i = 0; i < MOON_DEVIATION_COUNT && status == 0; i++) {
        enum moon_deviation deviation = (enum moon_deviation)i;
        deviations->edges[i] =
            moon_arena_format(arena, "%s %s", moon_deviation_edge(deviation), moon_deviation_text(deviation));
        status = deviations->edges[i] ? 0 : moon_no_memory(error);
    }
    return status;
}

int moon_judge_name_deviations(const struct moon_judge_deviations *deviations, struct moon_arena *arena, bool strict,
                               const struct moon_deviation_notes *notes, struct moon_result_case *one,
                               struct moon_error *error) {
    if (notes->taken == 0 || (strict && one->outcome == MOON_OUTCOME_PASS)) /* what is right deviates in nothing */
        return 0;
    const char **names = moon_arena_array(arena, MOON_DEVIATION_COUNT, sizeof *names);
    for (int i = 0; i < MOON_DEVIATION_COUNT && names; i++)
        if (moon_deviation_noted(notes, (enum moon_deviation)i))
            names[one->deviation_count++] = deviations->edges[i];
    one->deviations = names;
    if (one->outcome == MOON_OUTCOME_PASS)
        one->level = "ALT";
    if (one->outcome == MOON_OUTCOME_FAIL && strict) {
        const struct moon_deviation_row *row =
            moon_deviations_row(&deviations->table, (enum moon_deviation)__builtin_ctzll(notes->taken));
        one->required = moon_arena_format(arena, "[%s ALT] %s", row->requirement, row->strict);
    }
    return names && one->required ? 0 : moon_no_memory(error);
}

void moon_judge_quote(struct moon_text *out, const char *word) {
    if (word[0] &&
        word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-")] == '\0') {
        moon_text_string(out, word);
        return;
    }
    moon_text_char(out, '\'');
    for (; *word; word++) {
        if (*word == '\'')
            moon_text_string(out, "'\\''");
        else
            moon_text_char(out, *word);
    }
    moon_text_char(out, '\'');
}

static const char *keep(struct moon_arena *arena, struct moon_text *text) {
    const char *copy = text->failed ? NULL : moon_arena_copy(arena, moon_text_value(text), text->length);
    moon_text_close(text);
    return copy;
}

static const char *tell_done(struct judge *judge, const struct moon_vector *vector) {
    struct moon_text text, given;
    moon_text_open(&text, moon_memory_heap());
    moon_text_open(&given, moon_memory_heap());
    moon_json_write(vector->given, MOON_JSON_COMPACT, &given);
    moon_text_format(&text, "asked %s as %s: ", vector->suite->name, vector->profile->name);
    if (vector->comment[0])
        moon_text_format(&text, "%s; ", vector->comment);
    size_t shown = given.length < GIVEN_SHOWN_BYTES ? given.length : GIVEN_SHOWN_BYTES;
    while (shown < given.length && (given.data[shown] & 0xC0) == 0x80)
        shown++;
    moon_text_string(&text, "given ");
    moon_text_bytes(&text, moon_text_value(&given), shown);
    moon_text_string(&text, shown < given.length ? "..." : "");
    moon_text_close(&given);
    return keep(judge->result->arena, &text);
}

static const char *tell_reproduce(struct judge *judge, const struct moon_vector *vector) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, "mooncheck vectors ");
    if (strcmp(judge->setting->spec, "ref") != 0) {
        moon_text_string(&text, "--target ");
        moon_judge_quote(&text, judge->setting->spec);
        moon_text_char(&text, ' ');
    }
    moon_text_string(&text, judge->setting->strict ? "--mode strict --only " : "--only ");
    moon_judge_quote(&text, vector->id);
    moon_text_char(&text, ' ');
    moon_judge_quote(&text, vector->file);
    return keep(judge->result->arena, &text);
}

/* Compares an answer with what is required: with what was recorded; in mode strict, of another implementation than the
 * reference, with what is right. */
static int judge_answer(struct judge *judge, const struct moon_vector *vector, const struct moon_question *question,
                        const struct moon_question *second, struct moon_result_case *one) {
    struct moon_arena *arena = judge->result->arena;
    struct moon_difference difference = {"", "", ""};
    struct moon_deviation_notes notes;
    const struct moon_json *expect = vector->expect, *right = NULL;
    int status = moon_deviations_of_case(&judge->batch.arena, vector->suite, vector->profile, vector->given, &notes,
                                         &right, judge->error);
    if (status != 0)
        return status;
    if (judge->setting->strict && notes.taken != 0 && right && strcmp(judge->setting->spec, "ref") != 0)
        expect = right;
    if (!moon_random_case(expect))
        status = moon_compare(arena, vector->suite, vector->given, expect, question->answer, &difference);
    else if (second->reply == MOON_REPLY_RESULT)
        status = moon_random_compare(arena, vector->suite, vector->profile, vector->given, expect, question->answer,
                                     second->answer, &difference);
    else {
        one->outcome = MOON_OUTCOME_ERROR;
        one->reason = moon_arena_format(arena, "a second process is needed for this case, but: %s", second->reason);
        return 0;
    }
    if (status == MOON_ERR_MEMORY)
        return moon_no_memory(judge->error);
    one->outcome = status == 0 ? MOON_OUTCOME_PASS : MOON_OUTCOME_FAIL;
    if (status != 0) {
        one->expected = difference.expected;
        one->seen = moon_difference_seen(arena, &difference);
    }
    return moon_judge_name_deviations(&judge->deviations, arena, judge->setting->strict, &notes, one, judge->error);
}

static enum moon_outcome outcome_of(enum moon_reply reply) {
    switch (reply) {
    case MOON_REPLY_SKIP:
        return MOON_OUTCOME_SKIP;
    case MOON_REPLY_CRASH:
        return MOON_OUTCOME_CRASH;
    case MOON_REPLY_TIMEOUT:
        return MOON_OUTCOME_TIMEOUT;
    default:
        return MOON_OUTCOME_ERROR;
    }
}

void moon_judge_unanswered(struct moon_result *result, const struct moon_question *question,
                           struct moon_result_case *one) {
    one->outcome = outcome_of(question->reply);
    one->reason = moon_arena_copy(result->arena, question->reason, strlen(question->reason));
}

/* A listed case that fails is expected to; one that passes is an error, so that the list stays true. */
static void apply_known(struct judge *judge, struct moon_result_case *one) {
    const struct moon_known_entry *entry =
        moon_known_find(judge->setting->known, one->id, one->profile, judge->setting->today);
    if (!entry || one->outcome == MOON_OUTCOME_SKIP)
        return;
    bool failed = moon_outcome_is_failure(one->outcome);
    one->outcome = failed ? MOON_OUTCOME_XFAIL : MOON_OUTCOME_XPASS;
    one->reason =
        failed
            ? moon_arena_format(judge->result->arena, "%s (%s, until %s)", entry->reason, entry->link, entry->expires)
            : moon_arena_format(judge->result->arena,
                                "passed, but is listed as known to fail in %s:%u (%s): remove "
                                "the entry",
                                judge->setting->known->source, (unsigned)entry->place->line, entry->reason);
}

static int finish_case(struct judge *judge, const struct moon_vector *vector, struct moon_result_case *one) {
    struct moon_arena *arena = judge->result->arena;
    apply_known(judge, one);
    if (moon_outcome_is_failure(one->outcome) || one->outcome == MOON_OUTCOME_XFAIL) {
        one->done = tell_done(judge, vector);
        one->reproduce = tell_reproduce(judge, vector);
        if (one->reason)
            one->reason = moon_arena_copy(arena, one->reason, strlen(one->reason));
    }
    moon_result_count(judge->result, one);
    bool whole = one->reason && one->expected && one->seen && one->done && one->reproduce;
    return whole ? 0 : moon_no_memory(judge->error);
}

/* Asks a second process the random cases of the batch. */
static int ask_seconds(struct judge *judge) {
    struct batch *batch = &judge->batch;
    struct moon_question asked[BATCH];
    size_t places[BATCH], count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        if (!moon_random_case(batch->vectors[i]->expect) || batch->questions[i].reply != MOON_REPLY_RESULT)
            continue;
        asked[count] = (struct moon_question){.suite = batch->questions[i].suite,
                                              .profile = batch->questions[i].profile,
                                              .given = batch->questions[i].given};
        places[count++] = i;
    }
    struct moon_error why;
    int status = count > 0 ? moon_target_ask_second(judge->target, &batch->arena, asked, count, &why) : 0;
    for (size_t i = 0; i < count; i++) {
        if (status != 0) {
            asked[i].reply = MOON_REPLY_ERROR;
            asked[i].reason = moon_arena_format(&batch->arena, "%s", why.message);
        }
        batch->seconds[places[i]] = asked[i];
    }
    return status == MOON_ERR_MEMORY ? moon_no_memory(judge->error) : 0;
}

static int ask_batch(struct judge *judge) {
    struct batch *batch = &judge->batch;
    moon_arena_open(&batch->arena, moon_memory_heap());
    int status = moon_target_ask(judge->target, &batch->arena, batch->questions, batch->count, judge->error);
    if (status == 0)
        status = ask_seconds(judge);
    for (size_t i = 0; i < batch->count && status == 0; i++) {
        const struct moon_question *question = &batch->questions[i];
        struct moon_result_case *one = batch->cases[i];
        one->duration_ns = question->duration_ns;
        if (question->reply == MOON_REPLY_RESULT) {
            status = judge_answer(judge, batch->vectors[i], question, &batch->seconds[i], one);
        } else {
            moon_judge_unanswered(judge->result, question, one);
        }
        if (status == 0)
            status = finish_case(judge, batch->vectors[i], one);
    }
    judge->done += batch->count;
    batch->count = 0;
    moon_arena_close(&batch->arena);
    if (judge->setting->progress)
        judge->setting->progress(judge->done, judge->all);
    return status;
}

static bool selected(const struct moon_judge_setting *setting, const struct moon_vector *vector) {
    return (!setting->only || fnmatch(setting->only, vector->id, 0) == 0) &&
           (!setting->profile || setting->profile == vector->profile);
}

/* Adds a case to the batch, or settles it at once when the target does not offer it. */
static int take_case(struct judge *judge, const struct moon_vector *vector) {
    struct batch *batch = &judge->batch;
    struct moon_result *result = judge->result;
    struct moon_result_case *one =
        moon_judge_add(result, vector->id, vector->kind, vector->suite->name, vector->profile->name);
    if (!one)
        return moon_no_memory(judge->error);
    bool suite = moon_target_offers_suite(judge->target, vector->suite->name);
    if (!suite || !moon_target_offers_profile(judge->target, vector->profile->name)) {
        one->outcome = MOON_OUTCOME_SKIP;
        one->reason = moon_arena_format(result->arena, "the target does not offer %s %s", suite ? "profile" : "suite",
                                        suite ? vector->profile->name : vector->suite->name);
        judge->done++;
        return finish_case(judge, vector, one);
    }
    batch->vectors[batch->count] = vector;
    batch->cases[batch->count] = one;
    batch->questions[batch->count] =
        (struct moon_question){.suite = vector->suite, .profile = vector->profile, .given = vector->given};
    batch->count++;
    return batch->count == BATCH ? ask_batch(judge) : 0;
}

static int add_known_faults(struct judge *judge) {
    const struct moon_known *known = judge->setting->known;
    const struct moon_known_entry *entry = NULL;
    const char *why = NULL;
    struct moon_result *result = judge->result;
    while (known && (entry = moon_known_fault(known, entry, judge->setting->today, result->arena, &why)) != NULL) {
        struct moon_result_case *one = moon_result_add(result);
        if (!one || !why)
            return moon_no_memory(judge->error);
        one->id = moon_arena_format(result->arena, "known.entry.line_%u", (unsigned)entry->place->line);
        one->suite = "known";
        one->level = "MUST";
        one->required = "each entry of a known-failure file is in force and matches a case";
        one->outcome = MOON_OUTCOME_ERROR;
        one->reason = why;
        moon_result_count(result, one);
        if (!one->id)
            return moon_no_memory(judge->error);
    }
    return 0;
}

int moon_judge_vectors(struct moon_target *target, const struct moon_vectors *vectors,
                       const struct moon_judge_setting *setting, struct moon_result *result, struct moon_error *error) {
    struct judge *judge = moon_arena_alloc(result->arena, sizeof *judge);
    if (!judge)
        return moon_no_memory(error);
    *judge = (struct judge){.target = target, .setting = setting, .result = result, .error = error};
    size_t taken = 0;
    int status = moon_judge_open_deviations(&judge->deviations, result->arena, error);
    for (const struct moon_vector *one = vectors->first; one; one = one->next)
        judge->all += selected(setting, one);
    if (setting->limit > 0 && judge->all > setting->limit)
        judge->all = setting->limit;
    for (const struct moon_vector *one = vectors->first; one && status == 0; one = one->next) {
        if (selected(setting, one) && taken < judge->all) {
            taken++;
            status = take_case(judge, one);
        } else if (setting->known) {
            moon_known_find(setting->known, one->id, one->profile->name,
                            setting->today); /* it is there, so not stale */
        }
    }
    if (status == 0 && judge->batch.count > 0)
        status = ask_batch(judge);
    return status == 0 ? add_known_faults(judge) : status;
}
