/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all suites. */
#include "conformance/suites/suite.h"

#include <string.h>

static const struct moon_suite *const suites[] = {
    &moon_suite_hash,
    &moon_suite_keys,
    &moon_suite_layout,
    &moon_suite_segments,
    &moon_suite_config,
    &moon_suite_lookup,
    &moon_suite_save,
    &moon_suite_load,
    &moon_suite_lookup_async,
    &moon_suite_save_lcm,
    NULL,
};

const struct moon_suite *const *moon_suites(void) {
    return suites;
}

const struct moon_suite *moon_suite_find(const char *name) {
    for (size_t i = 0; suites[i]; i++)
        if (strcmp(suites[i]->name, name) == 0)
            return suites[i];
    return NULL;
}
