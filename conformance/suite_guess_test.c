/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the guess which suite a question belongs to. */
#include "conformance/suite_guess.h"

#include "ref/base/unit.h"

static int guess(struct moon_arena *arena, const char *given, const struct moon_suite **suite,
                 struct moon_error *error) {
    struct moon_json *document = NULL;
    MOON_CHECK_INT(moon_json_read(arena, "q", given, strlen(given), MOON_JSON_STRICT, &document, NULL), 0);
    *suite = NULL;
    return moon_suite_guess(arena, "q", document, suite, error);
}

static void each_suite_is_told_from_its_members(void) {
    static const struct {
        const char *given, *suite;
    } rows[] = {
        {"{\"num_tokens\":40,\"existing_keys\":[]}", "lookup"},
        {"{\"num_tokens\":40,\"exist_raises\":true}", "lookup"},
        {"{\"num_tokens\":40,\"hit_tokens_in_store\":16}", "load"},
        {"{\"requests\":{},\"steps\":[]}", "save"},
        {"{\"put_results\":{}}", "save"},
        {"{\"max_tokens_per_step\":8,\"steps\":[]}", "lookup-async"},
        {"{\"prompt\":{},\"max_tokens\":3}", "save-lcm"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_arena arena;
        struct moon_error error = {0};
        const struct moon_suite *suite;
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(guess(&arena, rows[i].given, &suite, &error), 0);
        MOON_CHECK_TEXT(suite ? suite->name : error.message, rows[i].suite);
        moon_arena_close(&arena);
    }
}

static void what_cannot_be_told_is_an_error_that_helps(void) {
    static const struct {
        const char *given, *where, *message;
    } rows[] = {
        {"{\"num_tokens\":40}", "q:1:1 $", "is a question of lookup or load: name the suite"},
        {"{\"num_tokens\":40}", "q:1:1 $", "(lookup) or \"block_ids\" (load)"},
        {"{}", "q:1:1 $", "is a question of lookup or save or load or lookup-async or save-lcm"},
        {"{\"num_tokens\":40,\"steps\":[]}", "q:1:26 $.steps", "no suite of the connector has such a member beside"},
        {"{\"num_token\":40}", "q:1:14 $.num_token", "no suite of the connector has such a member"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_arena arena;
        struct moon_error error = {0};
        const struct moon_suite *suite;
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(guess(&arena, rows[i].given, &suite, &error), MOON_ERR_SCHEMA);
        MOON_CHECK_TEXT(error.where, rows[i].where);
        bool said = strstr(error.message, rows[i].message) != NULL;
        if (!said)
            fprintf(stderr, "it says: %s\n", error.message);
        CU_ASSERT(said);
        moon_arena_close(&arena);
    }
}

static void refused_memory_is_told(void) {
    for (uint64_t at = 1;; at++) {
        struct moon_memory_failing failing;
        struct moon_arena input, arena;
        struct moon_error error = {0};
        struct moon_json *document = NULL;
        const struct moon_suite *suite = NULL;
        static const char given[] = "{\"num_tokens\":40}";
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        moon_arena_open(&input, moon_memory_heap());
        moon_arena_open(&arena, &failing.memory);
        MOON_CHECK_INT(moon_json_read(&input, "q", given, sizeof given - 1, MOON_JSON_STRICT, &document, NULL), 0);
        int status = moon_suite_guess(&arena, "q", document, &suite, &error);
        moon_arena_close(&arena);
        moon_arena_close(&input);
        MOON_CHECK_INT(failing.held_bytes, 0);
        MOON_CHECK_INT(status, failing.requests < at ? MOON_ERR_SCHEMA : MOON_ERR_MEMORY);
        if (failing.requests < at)
            break;
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"each suite is told from its members", each_suite_is_told_from_its_members},
        {"what cannot be told is an error that helps", what_cannot_be_told_is_an_error_that_helps},
        {"refused memory is told", refused_memory_is_told},
        {NULL, NULL}};
    return moon_unit_main("conformance/suite_guess", cases, argc, argv);
}
