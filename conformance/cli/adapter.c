/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck adapter check: does a program speak the adapter protocol, also when it is asked wrong things? */
#include "conformance/adapter_check.h"
#include "conformance/cli/run_report.h"

#include <string.h>

static struct moon_cli_report report = MOON_CLI_REPORT_DEFAULT;
static int64_t case_timeout_ms = MOON_TARGET_CASE_TIMEOUT_MS_DEFAULT;

static const struct moon_option options[] = {
    MOON_CLI_FORMAT_ROW(report),
    MOON_CLI_CASE_TIMEOUT_ROW(case_timeout_ms, "answer"),
    {.name = NULL},
};

const struct moon_command moon_command_adapter = {
    .name = "adapter",
    .operands = "check COMMAND",
    .summary = "check that a program speaks the adapter protocol",
    .details =
        "Starts COMMAND by /bin/sh -c and looks at the handshake, one case of each suite it offers, what it does with "
        "bad input, "
        "and whether it stops in order. It does not ask whether the answers are right: mooncheck vectors does.\n\n"
        "Exit status: 0 all is well; 1 something is not, told in words; 2 usage.",
    .options = options,
    .operands_min = 2,
    .operands_max = 2,
};

int moon_cli_adapter(const char *const operands[], int count) {
    struct moon_arena arena;
    struct moon_result result;
    struct moon_error error;
    (void)count;
    if (strcmp(operands[0], "check") != 0)
        return moon_cli_complain("adapter: the first operand must be \"check\", not \"%.60s\"", operands[0]);
    moon_arena_open(&arena, moon_memory_heap());
    const char *spec = moon_arena_format(&arena, "cmd:%s", operands[1]);
    const struct moon_target_setting setting = {.case_timeout_ms = case_timeout_ms, .version = MOON_VERSION};
    moon_cli_open_result(&result, &arena, spec ? spec : "");
    int status = spec ? moon_adapter_check(spec, &setting, &result, &error)
                      : moon_fail(&error, MOON_ERR_MEMORY, NULL, "out of memory");
    int exit_status = moon_cli_finish(status, &error, &result, &report);
    moon_arena_close(&arena);
    return exit_status;
}
