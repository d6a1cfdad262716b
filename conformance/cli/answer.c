/* SPDX-License-Identifier: Apache-2.0 */
/* What commands of a suite share: the release asked for, and the --json form, one question read and its answer or
 * explanation printed. */
#include "conformance/cli/cli.h"

#include "conformance/suites/suite.h"
#include "conformance/suites/world.h"

const struct moon_profile *moon_cli_profile(const char *name, struct moon_error *error) {
    return name ? moon_profile_find(name, error) : moon_profile_newest();
}

int moon_cli_read_question(struct moon_arena *arena, const char *path, const char **suite,
                           const struct moon_profile **profile, struct moon_json **given, struct moon_error *error) {
    static const char *const names[] = {"suite", "profile", "given", NULL};
    const char *source = moon_io_source(path), *name = NULL;
    struct moon_json *document = NULL;
    if (moon_io_read_json(arena, path, MOON_JSON_STRICT, &document, error) != 0 ||
        moon_json_closed(source, document, suite ? names : names + 1, error) != 0 ||
        (suite && moon_json_get_string(source, document, "suite", false, suite, NULL, error) != 0) ||
        moon_json_get_string(source, document, "profile", true, &name, NULL, error) != 0 ||
        moon_json_get(source, document, "given", true, MOON_JSON_OBJECT, given, error) != 0)
        return error->status;
    struct moon_error why;
    *profile = moon_profile_find(name, &why);
    if (!*profile)
        return moon_json_fail(error, why.status, source, moon_json_member(document, "profile"), "%s", why.message);
    return 0;
}

int moon_cli_answer(const char *suite_name, const char *path, bool explain) {
    const struct moon_suite *suite = moon_suite_find(suite_name);
    const struct moon_suite_world *world = moon_suite_world_system();
    const struct moon_profile *profile = NULL;
    struct moon_json *given = NULL, *answer = NULL;
    struct moon_error error;
    struct moon_arena arena;
    struct moon_text text;
    int exit_status;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    const char *source = moon_io_source(path);
    if (moon_cli_read_question(&arena, path, NULL, &profile, &given, &error) != 0)
        exit_status = moon_cli_fail(&error);
    else if (explain)
        exit_status = suite->explain(world, &arena, profile, source, given, &text, &error) == 0 ? moon_cli_print(&text)
                                                                                                : moon_cli_fail(&error);
    else
        exit_status = suite->answer(world, &arena, profile, source, given, &answer, &error) == 0
                          ? moon_cli_print_json(answer)
                          : moon_cli_fail(&error);
    moon_text_close(&text);
    moon_arena_close(&arena);
    return exit_status;
}
