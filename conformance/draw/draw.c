/* SPDX-License-Identifier: Apache-2.0 */
/* New cases from a seed, and the vector file that keeps those that mattered. */
#include "conformance/draw/draw.h"

#include <inttypes.h>
#include <stdio.h>

int moon_draw(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_profile *profile,
              uint64_t seed, uint64_t index, struct moon_json **given) {
    struct moon_random root;
    char name[128];
    moon_random_seed(&root, seed);
    snprintf(name, sizeof name, "%s %s %" PRIu64, suite->name, profile->name, index);
    struct moon_random stream = moon_random_split(&root, name);
    return suite->draw(arena, &stream, profile, given);
}

const char *moon_draw_kind(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_profile *profile,
                           uint64_t seed) {
    return moon_arena_format(arena, "%s.drawn.v%ds%" PRIu64, suite->name, profile->minor, seed);
}

const char *moon_draw_id(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_profile *profile,
                         uint64_t seed, uint64_t index) {
    return moon_arena_format(arena, "%s.drawn.v%ds%" PRIu64 ".%04" PRIu64, suite->name, profile->minor, seed, index);
}

struct moon_json *moon_draw_file(struct moon_arena *arena, const struct moon_suite *suite, const char *name,
                                 const char *version) {
    struct moon_json *file = moon_json_object(arena), *source = moon_json_object(arena);
    moon_json_set(arena, file, "schema", moon_json_string(arena, "mooncheck-vectors/1"));
    moon_json_set(arena, file, "suite", moon_json_string(arena, suite->name));
    moon_json_set(arena, source, "package", moon_json_string(arena, name));
    moon_json_set(arena, source, "version", moon_json_string(arena, version));
    moon_json_push(moon_json_set(arena, file, "source", moon_json_array(arena)), source);
    moon_json_set(arena, file, "cases", moon_json_array(arena));
    return file;
}

void moon_draw_keep(struct moon_arena *arena, struct moon_json *file, const char *id,
                    const struct moon_profile *profile, const struct moon_json *given, const struct moon_json *expect,
                    const char *comment) {
    struct moon_json *one = moon_json_object(arena);
    moon_json_set(arena, one, "id", moon_json_string(arena, id));
    moon_json_set(arena, one, "profile", moon_json_string(arena, profile->name));
    moon_json_set(arena, one, "given", moon_json_clone(arena, given));
    moon_json_set(arena, one, "expect", moon_json_clone(arena, expect));
    moon_json_set(arena, one, "comment", moon_json_string(arena, comment));
    moon_json_push(moon_json_member(file, "cases"), one);
}
