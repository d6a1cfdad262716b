/* SPDX-License-Identifier: Apache-2.0 */
/* What the daemons' command lines share: --help and --version, one line for what is wrong, exit statuses. */
#ifndef MOON_DAEMON_COMMAND_H
#define MOON_DAEMON_COMMAND_H

#include "ref/base/options.h"
#include "ref/wire/release.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Exit statuses (DAEMON-001). */
enum {
    MOON_DAEMON_DONE = 0,
    MOON_DAEMON_REFUSED = 1, /* the store said no */
    MOON_DAEMON_BAD = 2,     /* usage, bad input, address in use, output that cannot be written */
};

/* Prints "PROGRAM: WHERE: MESSAGE" as one line on stderr; returns MOON_DAEMON_BAD. */
int moon_daemon_fail(const char *program, const struct moon_error *error);
int moon_daemon_complain(const char *program, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints on stdout and flushes. Returns MOON_DAEMON_DONE, or MOON_DAEMON_BAD after a line on stderr. */
int moon_daemon_print(const char *program, const struct moon_text *text);

/* The Mooncake release of a --release, the newest for NULL. NULL after a line on stderr. */
const struct moon_wire_release *moon_daemon_release(const char *program, const char *name);

/* Parses argv[0..argc), answers --help and --version. `family` and the command's name are how it is called
 * ("mooncheck", "master"). operands: room for argc. Returns -1: go on; else the exit status. */
int moon_daemon_parse(const char *program, const char *family, const struct moon_command *command, int argc,
                      char *const argv[], const char *operands[], int *count);

#ifdef __cplusplus
}
#endif
#endif
