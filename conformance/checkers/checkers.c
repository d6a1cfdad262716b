/* SPDX-License-Identifier: Apache-2.0 */
/* The table of checkers. */
#include "conformance/checkers/checks_internal.h"

#include <string.h>

static const struct moon_checker read_whole = {1, "read-whole", "CHECK-001",
                                               "invoke and end of puts and gets, with digests", moon_check_read};
static const struct moon_checker durable = {
    2, "durable", "CHECK-002", "invoke and end of operations; of the master: put-end, evict, remove, expire",
    moon_check_durable};
static const struct moon_checker no_reuse = {3, "no-reuse", "CHECK-003", "leases and granted memory with their extents",
                                             moon_check_reuse};

const struct moon_checker *const moon_checkers[] = {&read_whole, &durable, &no_reuse, NULL};

int moon_checker_judge(const struct moon_checker *checker, struct moon_arena *arena, const struct moon_history *history,
                       struct moon_finding *finding) {
    memset(finding, 0, sizeof *finding);
    finding->verdict = MOON_VERDICT_UNKNOWN;
    finding->required = checker->requirement;
    int status = checker->judge(arena, history, finding);
    if (!status && finding->verdict == MOON_VERDICT_UNKNOWN && !finding->seen)
        finding->seen = moon_arena_format(arena, "nothing to judge: it needs %s", checker->needs);
    return status;
}
