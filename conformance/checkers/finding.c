/* SPDX-License-Identifier: Apache-2.0 */
/* Words of findings. */
#include "conformance/checkers/finding_internal.h"

const char *moon_finding_bytes(struct moon_arena *arena, struct moon_bytes bytes) {
    char *out = moon_arena_alloc(arena, 4 * bytes.length + 1), *at = out;
    static const char digits[] = "0123456789abcdef";
    if (!out)
        return "";
    for (size_t i = 0; i < bytes.length; i++) {
        unsigned char c = (unsigned char)bytes.data[i];
        if (c >= 32 && c < 127 && c != '\\') {
            *at++ = (char)c;
        } else {
            *at++ = '\\';
            *at++ = 'x';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        }
    }
    return out;
}

const char *moon_finding_operation(struct moon_arena *arena, const struct moon_operation *operation) {
    const char *text =
        moon_arena_format(arena, "%s of \"%s\" by %s (boot %u, operation %llu)", operation->what,
                          moon_finding_bytes(arena, operation->key), moon_finding_bytes(arena, operation->node),
                          operation->boot, (unsigned long long)operation->op);
    return text ? text : "";
}

void moon_finding_held(struct moon_finding *finding) {
    finding->looked_at++;
    if (finding->verdict == MOON_VERDICT_UNKNOWN && !finding->seen)
        finding->verdict = MOON_VERDICT_PASS;
}

void moon_finding_broken(struct moon_finding *finding, size_t at, const char *done, const char *expected,
                         const char *seen) {
    finding->looked_at++;
    if (finding->verdict == MOON_VERDICT_FAIL)
        return;
    finding->verdict = MOON_VERDICT_FAIL;
    finding->at = at;
    finding->done = done ? done : "";
    finding->expected = expected ? expected : "";
    finding->seen = seen ? seen : "";
}

void moon_finding_unclear(struct moon_finding *finding, size_t at, const char *why) {
    if (finding->verdict == MOON_VERDICT_FAIL || finding->seen)
        return;
    finding->verdict = MOON_VERDICT_UNKNOWN;
    finding->at = at;
    finding->seen = why;
}

bool moon_record_tells(const struct moon_record *record, const char *what) {
    return record->kind == MOON_RECORD_STATE && strcmp(record->what, what) == 0;
}
