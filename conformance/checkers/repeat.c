/* SPDX-License-Identifier: Apache-2.0 */
/* Two runs of one seed, record by record. */
#include "conformance/checkers/repeat.h"

#include <string.h>

static void differs(struct moon_arena *arena, struct moon_finding *finding, size_t at, const char *first,
                    const char *second) {
    finding->verdict = MOON_VERDICT_FAIL;
    finding->at = at;
    finding->done = moon_arena_format(arena, "the same seed was run twice; record %zu is the first that differs", at);
    finding->expected = first ? moon_arena_format(arena, "%s", first) : "";
    finding->seen = second ? moon_arena_format(arena, "%s", second) : "";
}

int moon_check_repeat(struct moon_arena *arena, const struct moon_history *first, const struct moon_history *second,
                      struct moon_finding *finding) {
    struct moon_text one, other;
    size_t at = 0, count = first->count < second->count ? first->count : second->count;
    bool same = true;
    memset(finding, 0, sizeof *finding);
    finding->verdict = MOON_VERDICT_PASS;
    finding->required = "CHECK-010";
    moon_text_open(&one, arena->memory);
    moon_text_open(&other, arena->memory);
    for (; at < count && same; at++) {
        moon_text_clear(&one);
        moon_text_clear(&other);
        moon_record_write_json(&first->records[at], &one);
        moon_record_write_json(&second->records[at], &other);
        same = one.length == other.length && memcmp(one.data, other.data, one.length) == 0;
        finding->looked_at += same;
    }
    if (!same)
        differs(arena, finding, at - 1, moon_text_value(&one), moon_text_value(&other));
    else if (first->count != second->count)
        differs(arena, finding, count, moon_arena_format(arena, "%zu records", first->count),
                moon_arena_format(arena, "%zu records", second->count));
    int status = one.failed || other.failed ? MOON_ERR_MEMORY : MOON_OK;
    moon_text_close(&one);
    moon_text_close(&other);
    return status;
}
