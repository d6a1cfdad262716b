/* SPDX-License-Identifier: Apache-2.0 */
/* What real releases do wrong: the table of deviations.json, and which of it a case shows. */
#include "conformance/deviations.h"

#include "conformance/random_case.h"
#include "conformance/schema.h"
#include "conformance/suites/world.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The file itself becomes part of the program, so that an installed one needs none beside it. A unit test compares the
 * two, because the build does not see this file depend on it. */
__asm__(".pushsection .rodata\n"
        ".balign 8\n"
        ".globl moon_deviations_bytes, moon_deviations_length\n"
        "moon_deviations_length: .quad moon_deviations_end - moon_deviations_bytes\n"
        "moon_deviations_bytes: .incbin \"conformance/deviations.json\"\n"
        "moon_deviations_end:\n"
        ".popsection\n");
extern const char moon_deviations_bytes[];
extern const uint64_t moon_deviations_length;

const char *moon_deviations_text(size_t *length) {
    *length = moon_deviations_length;
    return moon_deviations_bytes;
}

/* ---- the table ---- */

static const char *text_of(const struct moon_json *object, const char *name) {
    const struct moon_json *value = moon_json_member(object, name);
    return value ? value->bytes : "";
}

static int minor_of(const struct moon_json *row, const char *name) {
    return (int)strtol(text_of(row, name) + strlen("vllm-0."), NULL, 10);
}

/* True if an id is the name of a deviation in lower case with dashes. */
static bool is_id_of(const char *id, const char *name) {
    for (; *id && *name; id++, name++)
        if (*id != (*name == '_' ? '-' : *name - 'A' + 'a'))
            return false;
    return *id == *name;
}

static enum moon_deviation find_deviation(const char *id) {
    int at = 0;
    while (at < MOON_DEVIATION_COUNT && !is_id_of(id, moon_deviation_name((enum moon_deviation)at)))
        at++;
    return (enum moon_deviation)at;
}

static int add_row(struct moon_deviation_table *table, const char *source, const struct moon_json *place, bool right,
                   struct moon_error *error) {
    if (table->count == MOON_DEVIATION_ROWS_MAX)
        return moon_json_fail(error, MOON_ERR_LIMIT, source, place, "over %d rows", MOON_DEVIATION_ROWS_MAX);
    struct moon_deviation_row *row = &table->rows[table->count];
    *row = (struct moon_deviation_row){
        .deviation = right ? find_deviation(text_of(place, "id")) : MOON_DEVIATION_COUNT,
        .id = text_of(place, "id"),
        .edge = text_of(place, "edge"),
        .requirement = text_of(place, "requirement"),
        .permitted = text_of(place, "permitted"),
        .why = text_of(place, "why"),
        .strict = text_of(place, right ? "strict" : "reason"),
        .minor_first = minor_of(place, "from"),
        .minor_last = minor_of(place, "to"),
    };
    if (right && row->deviation == MOON_DEVIATION_COUNT)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, moon_json_member(place, "id"),
                              "\"%.40s\" is no deviation of the reference", row->id);
    if (right && moon_deviations_row(table, row->deviation))
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, moon_json_member(place, "id"), "\"%.40s\" is there twice",
                              row->id);
    table->count++;
    return 0;
}

static int check_complete(const struct moon_deviation_table *table, const char *source, struct moon_error *error) {
    for (int i = 0; i < MOON_DEVIATION_COUNT; i++)
        if (!moon_deviations_row(table, (enum moon_deviation)i))
            return moon_fail(error, MOON_ERR_SCHEMA, source, "lacks a row for the deviation %s",
                             moon_deviation_name((enum moon_deviation)i));
    return 0;
}

int moon_deviations_read(struct moon_deviation_table *table, struct moon_arena *arena, const char *source,
                         const char *text, size_t length, struct moon_error *error) {
    struct moon_schema schema;
    struct moon_json *document = NULL;
    *table = (struct moon_deviation_table){.count = 0};
    int status = moon_json_read(arena, source, text, length, MOON_JSON_STRICT, &document, error);
    if (status != 0)
        return status;
    status = moon_schema_open(&schema, arena, "deviations", error);
    if (status == 0)
        status = moon_schema_check(&schema, NULL, source, document, error);
    moon_schema_close(&schema);
    table->document = document;
    static const char *const lists[] = {"deviations", "compat_only"};
    for (size_t i = 0; i < 2 && status == 0; i++)
        for (const struct moon_json *one = moon_json_member(document, lists[i])->first; one && status == 0;
             one = one->next)
            status = add_row(table, source, one, i == 0, error);
    return status == 0 ? check_complete(table, source, error) : status;
}

int moon_deviations_load(struct moon_deviation_table *table, struct moon_arena *arena, struct moon_error *error) {
    size_t length;
    const char *text = moon_deviations_text(&length);
    return moon_deviations_read(table, arena, "deviations.json", text, length, error);
}

const struct moon_deviation_row *moon_deviations_row(const struct moon_deviation_table *table,
                                                     enum moon_deviation deviation) {
    for (size_t i = 0; i < table->count; i++)
        if (table->rows[i].deviation == deviation)
            return &table->rows[i];
    return NULL;
}

/* ---- what a case shows ---- */

/* A question to the reference, and the arena of its answers. */
struct question {
    struct moon_arena *arena;
    const struct moon_suite *suite;
    const struct moon_json *given;
    struct moon_suite_world world;
    bool no_memory;
};

/* The answer of one profile, of a random one what can be compared. NULL where the reference has none. */
static const struct moon_json *answer_as(struct question *question, const struct moon_profile *profile) {
    struct moon_error ignored;
    struct moon_json *answer = NULL;
    int status = question->suite->answer(&question->world, question->arena, profile, "given", question->given, &answer,
                                         &ignored);
    const struct moon_json *fixed = status == 0 ? answer : NULL;
    if (fixed && moon_random_case(fixed))
        fixed = moon_random_expect(question->arena, fixed);
    question->no_memory |= status == MOON_ERR_MEMORY || (status == 0 && (!fixed || moon_json_broken(fixed)));
    return fixed;
}

static bool equal(const struct moon_json *a, const struct moon_json *b) {
    return a && b ? moon_json_equal(a, b) : a == b;
}

/* Turns one deviation right after the other; where that changes the answer, the case shows it. */
static void find_shown(struct question *question, const struct moon_profile *profile, const struct moon_json *answer,
                       struct moon_deviation_notes *notes) {
    struct moon_profile turned = *profile;
    for (int i = 0; i < MOON_DEVIATION_COUNT && !question->no_memory; i++) {
        enum moon_deviation deviation = (enum moon_deviation)i;
        if (!moon_profile_deviates(&turned, deviation))
            continue;
        moon_profile_right(&turned, deviation);
        const struct moon_json *next = answer_as(question, &turned);
        if (!equal(answer, next))
            moon_deviation_note(notes, deviation);
        answer = next;
    }
}

int moon_deviations_of_case(struct moon_arena *arena, const struct moon_suite *suite,
                            const struct moon_profile *profile, const struct moon_json *given,
                            struct moon_deviation_notes *notes, const struct moon_json **strict,
                            struct moon_error *error) {
    struct question question = {.arena = arena, .suite = suite, .given = given, .world = *moon_suite_world_system()};
    struct moon_profile right;
    moon_profile_strict(profile, &right);
    *notes = (struct moon_deviation_notes){.taken = 0};
    question.world.notes = notes;
    const struct moon_json *answer = answer_as(&question, profile);
    question.world.notes = NULL;
    *strict = answer ? answer_as(&question, &right) : NULL;
    if (answer && !equal(answer, *strict))
        find_shown(&question, profile, answer, notes);
    return question.no_memory ? moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory") : 0;
}
