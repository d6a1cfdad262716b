/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck-report: the command `report` as a program of its own, which mooncheck finds beside itself. */
#include "conformance/cli/dispatch.h"

int main(int argc, char *argv[]) {
    return moon_cli_dispatch(&moon_command_report, moon_cli_report, argc, argv, 1);
}
