/* SPDX-License-Identifier: Apache-2.0 */
/* Families of harness cases that are no vectors: what `mooncheck run` runs. */
#ifndef MOON_CONFORMANCE_FAMILIES_H
#define MOON_CONFORMANCE_FAMILIES_H

#include "reports/result.h"

/* What a family may use. Strings are borrowed.
 *   only     glob over ids; NULL: all
 *   builds   folders that hold a mooncheck-adapter-example each
 *   mutants  folder that holds NAME/mooncheck-adapter-example for each mutant
 *   peers    commands of adapters of real releases
 *   peers_required  without them the run fails
 *   progress called now and then; NULL: nobody asks */
struct moon_family_setting {
    const char *only;
    const char *const *builds;
    size_t build_count;
    const char *mutants;
    const char *const *peers;
    size_t peer_count;
    bool peers_required;
    void (*progress)(size_t done, size_t all);
};

/* run: adds its cases to `result`. Returns 0, or MOON_ERR_MEMORY, MOON_ERR_IO. */
struct moon_family {
    const char *name; /* "hash.processes": its ids begin so */
    const char *summary;
    int (*run)(const struct moon_family_setting *setting, struct moon_result *result, struct moon_error *error);
};

/* A row with name NULL ends. */
extern const struct moon_family moon_families[];

int moon_family_processes(const struct moon_family_setting *setting, struct moon_result *result,
                          struct moon_error *error);

#endif
