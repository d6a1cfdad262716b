/* SPDX-License-Identifier: Apache-2.0 */
/* A program of a node: what the simulator, the memory world and the daemons start, and run by the same calls. */
#ifndef MOON_BASE_PROGRAM_H
#define MOON_BASE_PROGRAM_H

#include "ref/base/environment.h"
#include "ref/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One kind of program. `settings` are its own kind of settings, alive as long as the instance.
 *   boot      starts it; NULL and `error` if it cannot (address in use, memory)
 *   deadline, tick   as environment.h says
 *   halt      orderly end: gives everything back. A crash is the end without it. */
struct moon_program {
    const char *name;
    void *(*boot)(const void *settings, struct moon_environment *environment, struct moon_error *error);
    moon_ns (*deadline)(const void *instance);
    void (*tick)(void *instance);
    void (*halt)(void *instance);
};

#ifdef __cplusplus
}
#endif
#endif
