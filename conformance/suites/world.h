/* SPDX-License-Identifier: Apache-2.0 */
/* The world outside the suites as it is on this machine: real environment variables and real random bytes. */
#ifndef MOON_CONFORMANCE_WORLD_H
#define MOON_CONFORMANCE_WORLD_H

#include "conformance/suites/suite.h"

/* Static, never freed. environment is getenv, entropy is getrandom. */
const struct moon_suite_world *moon_suite_world_system(void);

#endif
