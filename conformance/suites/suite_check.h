/* SPDX-License-Identifier: Apache-2.0 */
/* For tests only: what the tests of several suites check in the same way. */
#ifndef MOON_CONFORMANCE_SUITES_SUITE_CHECK_H
#define MOON_CONFORMANCE_SUITES_SUITE_CHECK_H

#include "conformance/suites/suite.h"
#include "ref/base/unit.h"

/* Reads `given` and asks the suite for its answer. Returns as the suite does. */
static inline int suite_ask(const struct moon_suite *suite, struct moon_arena *arena, const char *profile,
                            const char *given, struct moon_json **result, struct moon_error *error) {
    struct moon_json *document = NULL;
    MOON_CHECK_INT(moon_json_read(arena, "test", given, strlen(given), MOON_JSON_STRICT, &document, error), 0);
    return suite->answer(NULL, arena, moon_profile_find(profile, NULL), "test", document, result, error);
}

/* The answer to `given`, in an arena that is opened here and closed by the caller. */
static inline struct moon_json *suite_answer(const struct moon_suite *suite, struct moon_arena *arena,
                                             const char *profile, const char *given) {
    struct moon_json *result = NULL;
    struct moon_error error = {0};
    moon_arena_open(arena, moon_memory_heap());
    MOON_CHECK_INT(suite_ask(suite, arena, profile, given, &result, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    return result;
}

/* A case in which the release raises: the class, and a part of the message. */
struct suite_raising_case {
    const char *profile, *given, *type, *message;
};

static inline void suite_check_raised(const struct moon_suite *suite, const struct suite_raising_case rows[],
                                      size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct moon_arena arena;
        const struct moon_json *result = suite_answer(suite, &arena, rows[i].profile, rows[i].given);
        const struct moon_json *raised = moon_json_member(result, "error");
        CU_ASSERT_PTR_NOT_NULL_FATAL(raised);
        MOON_CHECK_TEXT(moon_json_member(raised, "class")->bytes, rows[i].type);
        CU_ASSERT_PTR_NOT_NULL(strstr(moon_json_member(raised, "message")->bytes, rows[i].message));
        moon_arena_close(&arena);
    }
}

/* A case that a suite must refuse, and the place that it must name. */
struct suite_bad_case {
    const char *profile, *given;
    int status;
    const char *where;
};

static inline void suite_check_bad_cases(const struct moon_suite *suite, const struct suite_bad_case rows[],
                                         size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct moon_arena arena;
        struct moon_json *result = NULL;
        struct moon_error error = {0};
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(suite_ask(suite, &arena, rows[i].profile, rows[i].given, &result, &error), rows[i].status);
        const char *place = strrchr(error.where, ' ');
        MOON_CHECK_TEXT(place ? place + 1 : "", rows[i].where);
        moon_arena_close(&arena);
    }
}

#define SUITE_PARTS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Looks for parts of a text. */
static inline void suite_check_parts(const struct moon_text *text, const char *const parts[]) {
    for (size_t i = 0; parts[i]; i++) {
        const char *found = strstr(moon_text_value(text), parts[i]);
        if (!found)
            fprintf(stderr, "missing \"%s\" in\n%s\n", parts[i], moon_text_value(text));
        CU_ASSERT_PTR_NOT_NULL(found);
    }
}

/* Explains a case and looks for parts of the text. */
static inline void suite_check_explained(const struct moon_suite *suite, const char *profile, const char *given,
                                         const char *const parts[]) {
    struct moon_arena arena;
    struct moon_json *document = NULL;
    struct moon_text out;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&out, moon_memory_heap());
    MOON_CHECK_INT(moon_json_read(&arena, "test", given, strlen(given), MOON_JSON_STRICT, &document, NULL), 0);
    MOON_CHECK_INT(suite->explain(NULL, &arena, moon_profile_find(profile, NULL), "test", document, &out, NULL), 0);
    suite_check_parts(&out, parts);
    moon_text_close(&out);
    moon_arena_close(&arena);
}

/* Draws for each release, and answers and explains what was drawn. Without `may_raise` no release may raise. */
static inline void suite_check_drawn(const struct moon_suite *suite, bool may_raise) {
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    for (size_t i = 0; i < count * 60; i++) {
        const struct moon_profile *profile = &all[i % count];
        struct moon_arena arena;
        struct moon_random random;
        struct moon_json *given = NULL, *result = NULL;
        struct moon_text out;
        struct moon_error error = {0};
        moon_arena_open(&arena, moon_memory_heap());
        moon_text_open(&out, moon_memory_heap());
        moon_random_seed(&random, i);
        MOON_CHECK_INT(suite->draw(&arena, &random, profile, &given), 0);
        MOON_CHECK_INT(suite->answer(NULL, &arena, profile, "drawn", given, &result, &error), 0);
        CU_ASSERT(may_raise || !moon_json_member(result, "error"));
        MOON_CHECK_INT(suite->explain(NULL, &arena, profile, "drawn", given, &out, &error), 0);
        MOON_CHECK_TEXT(error.message, "");
        CU_ASSERT(out.length > 0);
        moon_text_close(&out);
        moon_arena_close(&arena);
    }
}

/* Answers and explains `given` and draws a case from `seed`, each time with one more allocation before memory is
 * refused: it is told, and nothing leaks. */
static inline void suite_check_refused_memory(const struct moon_suite *suite, const char *given, uint64_t seed) {
    for (uint64_t at = 1;; at++) {
        struct moon_memory_failing failing;
        struct moon_arena input, arena;
        struct moon_json *document = NULL, *result = NULL, *drawn = NULL;
        struct moon_text out;
        struct moon_random random;
        struct moon_error error = {0};
        const struct moon_profile *profile = moon_profile_find("0.33", NULL);
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        moon_arena_open(&input, moon_memory_heap());
        moon_arena_open(&arena, &failing.memory);
        moon_text_open(&out, &failing.memory);
        moon_random_seed(&random, seed);
        MOON_CHECK_INT(moon_json_read(&input, "test", given, strlen(given), MOON_JSON_STRICT, &document, NULL), 0);
        int answered = suite->answer(NULL, &arena, profile, "test", document, &result, &error);
        int explained = suite->explain(NULL, &arena, profile, "test", document, &out, &error);
        int drew = suite->draw(&arena, &random, profile, &drawn);
        moon_text_close(&out);
        moon_arena_close(&arena);
        moon_arena_close(&input);
        MOON_CHECK_INT(failing.held_bytes, 0);
        CU_ASSERT(answered == 0 || answered == MOON_ERR_MEMORY);
        CU_ASSERT(explained == 0 || explained == MOON_ERR_MEMORY);
        CU_ASSERT(drew == 0 || drew == MOON_ERR_MEMORY);
        MOON_CHECK_INT(answered || explained || drew, failing.requests >= at);
        if (failing.requests < at)
            break;
    }
}

#endif
