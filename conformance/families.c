/* SPDX-License-Identifier: Apache-2.0 */
/* The list of families that `mooncheck run` runs. */
#include "conformance/families.h"

const struct moon_family moon_families[] = {
    {"hash.processes", "separate processes, builds, environments and releases hash the same prompts",
     moon_family_processes},
    {NULL, NULL, NULL},
};
