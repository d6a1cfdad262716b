/* SPDX-License-Identifier: Apache-2.0 */
/* Names of deviations, notes of them, and strict profiles. */
#include "ref/key/deviation.h"

#include <assert.h>

#define MOON_DEVIATION_ROW(name, edge, text) {edge, text},
static const struct { const char *edge, *text; } rows[] = {MOON_DEVIATIONS(MOON_DEVIATION_ROW)};
static_assert(MOON_DEVIATION_COUNT <= 64, "one bit each");

void moon_deviation_note(struct moon_deviation_notes *notes, enum moon_deviation deviation) {
    if (notes)
        notes->taken |= UINT64_C(1) << deviation;
}

bool moon_deviation_noted(const struct moon_deviation_notes *notes, enum moon_deviation deviation) {
    return notes->taken >> deviation & 1;
}

const char *moon_deviation_edge(enum moon_deviation deviation) {
    return rows[deviation].edge;
}

const char *moon_deviation_text(enum moon_deviation deviation) {
    return rows[deviation].text;
}

void moon_profile_strict(const struct moon_profile *profile, struct moon_profile *out) {
    *out = *profile;
    out->failed_batch_ends_load = false;
    out->empty_load_raises = false;
}
