/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one command: parses its options, answers --help. */
#ifndef MOON_CONFORMANCE_DISPATCH_H
#define MOON_CONFORMANCE_DISPATCH_H

#include "conformance/cli/cli.h"

typedef int (*moon_cli_function)(const char *const operands[], int count);

/* Parses argv[from..argc) by the command's table and calls it; with --help among them prints its usage instead. Ignores
 * SIGPIPE, so that a closed standard output is an error like any other. Returns the exit status. */
int moon_cli_dispatch(const struct moon_command *command, moon_cli_function function, int argc, char *const argv[],
                      int from);

#endif
