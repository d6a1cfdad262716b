/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the table of deviations: it agrees with the reference and the requirements, and cases show what they do. */
#include "conformance/deviations.h"

#include "conformance/io.h"
#include "conformance/requirements.h"

#include "ref/base/unit.h"

static struct moon_arena arena;
static struct moon_deviation_table table;

static void load(void) {
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_deviations_load(&table, &arena, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
}

/* The build does not see that the program depends on the file. */
static void the_program_holds_the_file_as_it_is(void) {
    struct moon_text file;
    struct moon_error error = {0};
    size_t length;
    const char *text = moon_deviations_text(&length);
    moon_text_open(&file, moon_memory_heap());
    MOON_CHECK_INT(moon_io_read("conformance/deviations.json", 1 << 20, &file, &error), 0);
    bool same = file.length == length && memcmp(file.data, text, length) == 0;
    if (!same)
        fprintf(stderr, "conformance/deviations.json was changed: touch conformance/deviations.c\n");
    CU_ASSERT(same);
    moon_text_close(&file);
}

static void rows_have_the_edges_and_releases_of_the_reference(void) {
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    load();
    for (int i = 0; i < MOON_DEVIATION_COUNT; i++) {
        enum moon_deviation deviation = (enum moon_deviation)i;
        const struct moon_deviation_row *row = moon_deviations_row(&table, deviation);
        CU_ASSERT_PTR_NOT_NULL_FATAL(row);
        MOON_CHECK_TEXT(row->edge, moon_deviation_edge(deviation));
        for (size_t at = 0; at < count; at++) {
            bool stated = all[at].minor >= row->minor_first && all[at].minor <= row->minor_last;
            if (stated != moon_profile_deviates(&all[at], deviation))
                fprintf(stderr, "%s: %s\n", row->id, all[at].name);
            MOON_CHECK_INT(moon_profile_deviates(&all[at], deviation), stated);
        }
    }
}

static const struct moon_requirement *requirement_of(const char *id) {
    for (size_t i = 0; i < moon_requirements_count; i++)
        if (strcmp(moon_requirements[i].id, id) == 0)
            return &moon_requirements[i];
    return NULL;
}

static void rows_have_a_requirement_each(void) {
    size_t rows = 0, requirements = 0;
    load();
    for (size_t i = 0; i < table.count; i++) {
        const struct moon_deviation_row *row = &table.rows[i];
        if (row->deviation == MOON_DEVIATION_COUNT)
            continue;
        rows++;
        const struct moon_requirement *requirement = requirement_of(row->requirement);
        if (!requirement)
            fprintf(stderr, "%s: no requirement %s\n", row->id, row->requirement);
        CU_ASSERT_PTR_NOT_NULL(requirement);
        if (!requirement)
            continue;
        MOON_CHECK_TEXT(requirement->level, "ALT");
        MOON_CHECK_INT(requirement->minor_first, row->minor_first);
        MOON_CHECK_INT(requirement->minor_last, row->minor_last);
    }
    for (size_t i = 0; i < moon_requirements_count; i++)
        requirements += strncmp(moon_requirements[i].id, "DEV-1", 5) == 0;
    MOON_CHECK_INT(requirements, rows);
}

/* Sharp edges of section 9 are numbered without a gap: none is forgotten, none has two verdicts. */
static void every_sharp_edge_has_one_verdict(void) {
    static const char *const lists[] = {"deviations", "compat_only", "no_faults"};
    enum { EDGES = 71 };
    int seen[EDGES + 1] = {0};
    load();
    for (size_t i = 0; i < 3; i++)
        for (const struct moon_json *one = moon_json_member(table.document, lists[i])->first; one; one = one->next) {
            int number = 0;
            if (sscanf(moon_json_member(one, "edge")->bytes, "connector.9.%d", &number) != 1)
                continue;
            CU_ASSERT_FATAL(number >= 1 && number <= EDGES);
            seen[number]++;
        }
    for (int number = 1; number <= EDGES; number++) {
        if (seen[number] != 1)
            fprintf(stderr, "connector.9.%d is there %d times\n", number, seen[number]);
        MOON_CHECK_INT(seen[number], 1);
    }
}

static void check_refused(const char *from, const char *to, const char *message) {
    struct moon_deviation_table other;
    struct moon_error error = {0};
    struct moon_text text;
    size_t length;
    const char *whole = moon_deviations_text(&length), *copy = moon_arena_copy(&arena, whole, length);
    const char *place = strstr(copy, from);
    CU_ASSERT_PTR_NOT_NULL_FATAL(place);
    moon_text_open(&text, moon_memory_heap());
    moon_text_bytes(&text, copy, (size_t)(place - copy));
    moon_text_string(&text, to);
    moon_text_string(&text, place + strlen(from));
    CU_ASSERT(moon_deviations_read(&other, &arena, "d.json", moon_text_value(&text), text.length, &error) < 0);
    MOON_CHECK_TEXT(error.message, message);
    moon_text_close(&text);
}

static void a_table_that_is_wrong_is_refused(void) {
    check_refused("{", "", "expected the end of the input after the document, found ':'");
    check_refused("\"edge\"", "\"edgy\"", "unknown member \"edgy\"; did you mean \"edge\"?");
    check_refused("batches-dropped", "batches-drooped", "\"batches-drooped\" is no deviation of the reference");
    check_refused("batches-dropped", "batches-dropped-all", "\"batches-dropped-all\" is no deviation of the reference");
    check_refused("batches-dropped", "random-none-hash", "\"random-none-hash\" is there twice");
}

static void a_table_that_lacks_a_row_is_refused(void) {
    struct moon_deviation_table other;
    struct moon_error error = {0};
    static const char text[] =
        "{\"schema\":\"mooncheck-deviations/1\",\"deviations\":[],\"compat_only\":[],\"no_faults\":[]}";
    MOON_CHECK_INT(moon_deviations_read(&other, &arena, "d.json", text, sizeof text - 1, &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "lacks a row for the deviation RANDOM_NONE_HASH");
}

/* What a case shows, as names with a space after each. */
static const char *shown(char out[256], const char *suite, const char *profile, const char *given, bool *strict_same) {
    struct moon_deviation_notes notes;
    struct moon_json *document = NULL;
    const struct moon_json *strict = NULL;
    struct moon_error error = {0};
    out[0] = '\0';
    MOON_CHECK_INT(moon_json_read(&arena, "given", given, strlen(given), MOON_JSON_STRICT, &document, &error), 0);
    MOON_CHECK_INT(moon_deviations_of_case(&arena, moon_suite_find(suite), moon_profile_find(profile, NULL), document,
                                           &notes, &strict, &error),
                   0);
    for (int i = 0; i < MOON_DEVIATION_COUNT; i++)
        if (moon_deviation_noted(&notes, (enum moon_deviation)i))
            strcat(strcat(out, moon_deviation_name((enum moon_deviation)i)), " ");
    *strict_same = strict == NULL;
    return out;
}

#define PROMPT ",\"block_size\":4,\"prompt_token_ids\":[1,2,3,4,5,6,7,8]"

static void a_case_shows_what_changes_its_answer(void) {
    char out[256];
    bool none;
    MOON_CHECK_TEXT(shown(out, "hash", "0.30",
                          "{\"algo\":\"sha256\",\"python_hash_seed\":\"0\",\"cache_salt\":\"s\"" PROMPT "}", &none),
                    "UNTAGGED_EXTRAS ");
    MOON_CHECK_TEXT(shown(out, "hash", "0.31",
                          "{\"algo\":\"sha256\",\"python_hash_seed\":\"0\",\"cache_salt\":\"s\"" PROMPT "}", &none),
                    "");
    CU_ASSERT_FALSE(none);
    MOON_CHECK_TEXT(shown(out, "hash", "0.28",
                          "{\"algo\":\"sha256\",\"python_hash_seed\":null,\"cache_salt\":\"s\"" PROMPT "}", &none),
                    "RANDOM_NONE_HASH UNTAGGED_EXTRAS ");
    MOON_CHECK_TEXT(shown(out, "layout", "0.33", "{\"topology\":{\"tp\":1,\"pp\":2,\"pcp\":2,\"dcp\":1}}", &none),
                    "PP_WITHOUT_PCP ");
    MOON_CHECK_TEXT(shown(out, "layout", "0.33", "{\"topology\":{\"tp\":2,\"pp\":2,\"pcp\":1,\"dcp\":1}}", &none), "");
}

static void a_case_that_cannot_be_answered_shows_none(void) {
    char out[256];
    bool none;
    MOON_CHECK_TEXT(shown(out, "hash", "0.30", "{\"algo\":7}", &none), "");
    CU_ASSERT_TRUE(none);
}

static int load_and_compare(struct moon_memory *memory, const void *document) {
    struct moon_arena small;
    struct moon_deviation_table other;
    struct moon_deviation_notes notes;
    const struct moon_json *strict;
    moon_arena_open(&small, memory);
    int status = moon_deviations_load(&other, &small, NULL);
    if (status == 0)
        status = moon_deviations_of_case(&small, moon_suite_find("layout"), moon_profile_newest(), document, &notes,
                                         &strict, NULL);
    moon_arena_close(&small);
    return status;
}

static void refused_memory_is_told(void) {
    static const char given[] = "{\"topology\":{\"tp\":1,\"pp\":2,\"pcp\":2,\"dcp\":1}}";
    struct moon_json *document = NULL;
    MOON_CHECK_INT(moon_json_read(&arena, "g", given, sizeof given - 1, MOON_JSON_STRICT, &document, NULL), 0);
    moon_unit_refuse_memory(load_and_compare, document);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the program holds the file as it is", the_program_holds_the_file_as_it_is},
        {"rows have the edges and releases of the reference", rows_have_the_edges_and_releases_of_the_reference},
        {"each row has a requirement of its own", rows_have_a_requirement_each},
        {"every sharp edge has one verdict", every_sharp_edge_has_one_verdict},
        {"a table that is wrong is refused with its place", a_table_that_is_wrong_is_refused},
        {"a table that lacks a row is refused", a_table_that_lacks_a_row_is_refused},
        {"a case shows the deviations that change its answer", a_case_shows_what_changes_its_answer},
        {"a case that cannot be answered shows none", a_case_that_cannot_be_answered_shows_none},
        {"refused memory is told", refused_memory_is_told},
        {NULL, NULL}};
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_unit_main("conformance/deviations", cases, argc, argv);
    moon_arena_close(&arena);
    return status;
}
