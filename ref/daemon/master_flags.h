/* SPDX-License-Identifier: Apache-2.0 */
/* Mooncake's flags of the master: those that are known but not implemented are taken out when they ask for nothing. */
#ifndef MOON_DAEMON_MASTER_FLAGS_H
#define MOON_DAEMON_MASTER_FLAGS_H

#include "ref/base/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Goes through the words of a command line (DAEMON-004). Words that it keeps go to out[0..*count), which has room for
 * argc; -flag becomes --flag and --noflag becomes --flag=false, in `arena`. A flag of Mooncake's that `command` does
 * not have is dropped when it has its default value, else it is MOON_ERR_UNSUPPORTED. A flag that nobody knows is
 * MOON_ERR_SCHEMA, with a suggestion. */
int moon_master_flags_take(struct moon_arena *arena, const struct moon_command *command, int argc, char *const argv[],
                           char *out[], int *count, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
