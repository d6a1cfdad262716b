/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the requirement that a kind of case is judged under. */
#include "conformance/requirements.h"

#include <fnmatch.h>
#include <string.h>

const struct moon_requirement *moon_requirement_of(const char *kind, const struct moon_profile *profile) {
    const struct moon_requirement *best = NULL;
    size_t best_length = 0;
    for (size_t i = 0; i < moon_requirements_count; i++) {
        if (profile &&
            (profile->minor < moon_requirements[i].minor_first || profile->minor > moon_requirements[i].minor_last))
            continue;
        for (const char *const *glob = moon_requirements[i].globs; *glob; glob++) {
            if (strlen(*glob) > best_length && fnmatch(*glob, kind, 0) == 0) {
                best = &moon_requirements[i];
                best_length = strlen(*glob);
            }
        }
    }
    return best;
}
