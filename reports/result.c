/* SPDX-License-Identifier: Apache-2.0 */
/* The result of one run: counting, the closing line, the exit status. */
#include "reports/result.h"

#include <assert.h>
#include <string.h>

const char *moon_outcome_name(enum moon_outcome outcome) {
    static const char *const names[MOON_OUTCOME_COUNT] = {"pass", "fail",  "error", "crash",  "timeout",
                                                          "skip", "xfail", "xpass", "unknown"};
    assert(outcome < MOON_OUTCOME_COUNT);
    return names[outcome];
}

bool moon_outcome_is_failure(enum moon_outcome outcome) {
    return outcome == MOON_OUTCOME_FAIL || outcome == MOON_OUTCOME_ERROR || outcome == MOON_OUTCOME_CRASH ||
           outcome == MOON_OUTCOME_TIMEOUT || outcome == MOON_OUTCOME_XPASS;
}

struct moon_result_case *moon_result_add(struct moon_result *result) {
    struct moon_result_case *one = moon_arena_alloc(result->arena, sizeof *one);
    if (!one)
        return NULL;
    one->id = one->suite = one->profile = one->requirement = one->level = one->reason = "";
    one->required = one->done = one->expected = one->seen = one->reproduce = one->resembles = "";
    if (result->last)
        result->last->next = one;
    else
        result->first = one;
    result->last = one;
    return one;
}

void moon_result_count(struct moon_result *result, const struct moon_result_case *one) {
    assert(one->outcome < MOON_OUTCOME_COUNT);
    result->counts[one->outcome]++;
}

static size_t failures(const struct moon_result *result) {
    size_t count = 0;
    for (int i = 0; i < MOON_OUTCOME_COUNT; i++)
        if (moon_outcome_is_failure((enum moon_outcome)i))
            count += result->counts[i];
    return count;
}

void moon_result_closing_line(const struct moon_result *result, struct moon_text *out) {
    moon_text_format(out, "%zu passed, %zu failed, %zu skipped", result->counts[MOON_OUTCOME_PASS], failures(result),
                     result->counts[MOON_OUTCOME_SKIP] + result->counts[MOON_OUTCOME_XFAIL] +
                         result->counts[MOON_OUTCOME_UNKNOWN]);
}

size_t moon_result_deviations(const struct moon_result *result,
                              struct moon_result_deviation out[MOON_RESULT_DEVIATIONS_MAX], size_t *passed_cases) {
    size_t count = 0;
    *passed_cases = 0;
    for (const struct moon_result_case *one = result->first; one; one = one->next) {
        *passed_cases += one->outcome == MOON_OUTCOME_PASS && one->deviation_count > 0;
        for (size_t i = 0; i < one->deviation_count; i++) {
            size_t at = 0;
            while (at < count && strcmp(out[at].text, one->deviations[i]) != 0)
                at++;
            if (at == MOON_RESULT_DEVIATIONS_MAX)
                continue;
            if (at == count)
                out[count++] = (struct moon_result_deviation){.text = one->deviations[i]};
            out[at].passed += one->outcome == MOON_OUTCOME_PASS;
            out[at].failed += moon_outcome_is_failure(one->outcome);
        }
    }
    return count;
}

int moon_result_exit(const struct moon_result *result) {
    enum { PASSED = 0, FAILED = 1, UNKNOWN = 3, SKIPPED = 77 };
    if (failures(result) > 0)
        return FAILED;
    if (result->counts[MOON_OUTCOME_UNKNOWN] > 0 || result->incomplete)
        return UNKNOWN;
    return result->counts[MOON_OUTCOME_PASS] + result->counts[MOON_OUTCOME_XFAIL] > 0 ? PASSED : SKIPPED;
}
