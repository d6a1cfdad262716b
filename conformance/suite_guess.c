/* SPDX-License-Identifier: Apache-2.0 */
/* Which of the connector's suites a question belongs to, told from the members of its `given`. */
#include "conformance/suite_guess.h"

#include "conformance/schema.h"

#include <string.h>

const char *const moon_plan_suites[] = {"lookup", "save", "load", "lookup-async", "save-lcm", NULL};
enum { SUITES_MAX = 8 };

/* Suites that are still possible, with the members that their schemas know. */
struct guess {
    const char *names[SUITES_MAX];
    const struct moon_json *members[SUITES_MAX];
    bool possible[SUITES_MAX];
    size_t count;
};

static int open_suites(struct guess *guess, struct moon_arena *arena, struct moon_error *error) {
    for (size_t i = 0; moon_plan_suites[i]; i++) {
        struct moon_schema schema;
        int status = moon_schema_open(&schema, arena, moon_plan_suites[i], error);
        moon_schema_close(&schema);
        if (status != 0)
            return status;
        const struct moon_json *given = moon_json_member(moon_json_member(schema.root, "$defs"), "given");
        guess->names[guess->count] = moon_plan_suites[i];
        guess->members[guess->count] = moon_json_member(given, "properties");
        guess->possible[guess->count++] = true;
    }
    return 0;
}

static size_t count_possible(const struct guess *guess) {
    size_t count = 0;
    for (size_t i = 0; i < guess->count; i++)
        count += guess->possible[i];
    return count;
}

static bool known_to_any(const struct guess *guess, const char *name) {
    for (size_t i = 0; i < guess->count; i++)
        if (moon_json_member(guess->members[i], name))
            return true;
    return false;
}

/* A member that of the possible suites only this one knows; NULL if there is none. */
static const char *deciding_member(const struct guess *guess, size_t suite) {
    for (const struct moon_json *one = guess->members[suite]->first; one; one = one->next) {
        bool alone = true;
        for (size_t i = 0; i < guess->count; i++)
            alone &= i == suite || !guess->possible[i] || !moon_json_member(guess->members[i], one->name);
        if (alone)
            return one->name;
    }
    return NULL;
}

static int refuse_several(const struct guess *guess, const char *source, const struct moon_json *given,
                          struct moon_arena *arena, struct moon_error *error) {
    struct moon_text names, hints;
    moon_text_open(&names, arena->memory);
    moon_text_open(&hints, arena->memory);
    for (size_t i = 0; i < guess->count; i++) {
        if (!guess->possible[i])
            continue;
        const char *member = deciding_member(guess, i);
        moon_text_format(&names, "%s%s", names.length ? " or " : "", guess->names[i]);
        if (member)
            moon_text_format(&hints, "%s\"%s\" (%s)", hints.length ? " or " : "", member, guess->names[i]);
    }
    int status = names.failed || hints.failed
                     ? moon_fail(error, MOON_ERR_MEMORY, source, "out of memory")
                     : moon_json_fail(error, MOON_ERR_SCHEMA, source, given,
                                      "is a question of %s: name the suite in a member \"suite\" beside \"given\", or "
                                      "give %s",
                                      moon_text_value(&names), moon_text_value(&hints));
    moon_text_close(&hints);
    moon_text_close(&names);
    return status;
}

int moon_suite_guess(struct moon_arena *arena, const char *source, const struct moon_json *given,
                     const struct moon_suite **out, struct moon_error *error) {
    struct guess guess = {.count = 0};
    int status = open_suites(&guess, arena, error);
    if (status != 0)
        return status;
    for (const struct moon_json *member = given->first; member; member = member->next) {
        if (!known_to_any(&guess, member->name))
            return moon_json_fail(error, MOON_ERR_SCHEMA, source, member,
                                  "no suite of the connector has such a member");
        for (size_t i = 0; i < guess.count; i++)
            guess.possible[i] &= moon_json_member(guess.members[i], member->name) != NULL;
        if (count_possible(&guess) == 0)
            return moon_json_fail(error, MOON_ERR_SCHEMA, source, member,
                                  "no suite of the connector has such a member beside those before it");
    }
    if (count_possible(&guess) > 1)
        return refuse_several(&guess, source, given, arena, error);
    size_t found = 0;
    while (!guess.possible[found])
        found++;
    *out = moon_suite_find(guess.names[found]);
    return 0;
}
