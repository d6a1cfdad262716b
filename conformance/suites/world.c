/* SPDX-License-Identifier: Apache-2.0 */
/* The world outside the suites as it is on this machine: real environment variables and real random bytes. */
#include "conformance/suites/world.h"

#include <stdlib.h>
#include <sys/random.h>

static const char *environment(void *context, const char *name) {
    (void)context;
    return getenv(name);
}

static int entropy(void *context, void *bytes, size_t length) {
    (void)context;
    return getentropy(bytes, length) == 0 ? 0 : MOON_ERR_IO;
}

const struct moon_suite_world *moon_suite_world_system(void) {
    static const struct moon_suite_world world = {environment, entropy, NULL, NULL};
    return &world;
}
