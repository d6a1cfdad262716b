/* SPDX-License-Identifier: Apache-2.0 */
/* The numbered requirements of SPEC.md as a table, made by requirements.awk when the program is built. */
#ifndef MOON_CONFORMANCE_REQUIREMENTS_H
#define MOON_CONFORMANCE_REQUIREMENTS_H

#include "ref/key/profile.h"

#include <stddef.h>

enum { MOON_REQUIREMENT_GLOBS_MAX = 32 };

/* One requirement. Static data. globs are shell patterns over the kind of a case; NULL ends; empty for a rule that unit
 * tests hold. */
struct moon_requirement {
    const char *id;    /* HASH-012 */
    const char *level; /* MUST, SHOULD, MAY, ALT */
    const char *title;
    const char *provenance; /* documented, all releases measured, one release measured, ours */
    const char *profiles;
    const char *source;
    const char *resembles;       /* the public reports among the sources, "" if there is none */
    int minor_first, minor_last; /* release lines it applies to: 24 and 33 for "vllm-0.24 to vllm-0.33" */
    const char *globs[MOON_REQUIREMENT_GLOBS_MAX + 1];
};

extern const struct moon_requirement moon_requirements[];
extern const size_t moon_requirements_count;

/* The requirement that a case of this kind is judged under for a release (NULL: any): of those that apply to it, the
 * one with the longest matching glob, the first of equals; NULL if none matches. */
const struct moon_requirement *moon_requirement_of(const char *kind, const struct moon_profile *profile);

#endif
