/* SPDX-License-Identifier: Apache-2.0 */
/* The store connector's scheduler side as a core scheduler sees it. */
#ifndef MOON_ENGINE_STORE_CHILD_H
#define MOON_ENGINE_STORE_CHILD_H

#include "ref/engine/engine_port.h"

#ifdef __cplusplus
extern "C" {
#endif

/* jobs: of the last step, for the workers to hold; the next step lets go of them. */
struct moon_store_child {
    struct moon_engine_port port; /* first member */
    struct moon_scheduler *scheduler;
    struct moon_step_jobs jobs;
};

/* Borrows the scheduler. Allocates nothing. */
void moon_store_child_open(struct moon_store_child *child, struct moon_scheduler *scheduler,
                           struct moon_memory *memory);
void moon_store_child_close(struct moon_store_child *child);

#ifdef __cplusplus
}
#endif
#endif
