/* SPDX-License-Identifier: Apache-2.0 */
/* What the core scheduler asks of a KV connector: an injected port, behind which there is one connector or several. */
#ifndef MOON_ENGINE_ENGINE_PORT_H
#define MOON_ENGINE_ENGINE_PORT_H

#include "ref/connector/scheduler.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Answer to "how many tokens beyond the computed ones can you bring?": not known yet, or a number, 0 for none, and
 * whether they come while the request waits. */
struct moon_engine_match {
    bool pending, load_async;
    int64_t tokens;
};

/* The functions return 0 or a negative status with `error` filled, which ends the step that called them;
 * MOON_ERR_REFUSED is what a release raises there, and ends the engine. Arguments are borrowed for the call, requests
 * until their finish was told in a step. match      computed_tokens: the engine's own prefix allocated  the request got
 * blocks, also for external_tokens of this connector; tables NULL: it is told of no blocks step       one scheduler
 * step, with the requests that finished or were preempted before it finished   true: the blocks stay until the request
 * is reported as sent report     `ranks` more ranks completed a job of the connector at place `child` reset empties the
 * external cache; false if that failed */
struct moon_engine_port {
    int (*match)(struct moon_engine_port *self, const struct moon_request *request, int64_t computed_tokens,
                 struct moon_engine_match *match, struct moon_error *error);
    int (*allocated)(struct moon_engine_port *self, const struct moon_request *request,
                     const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error);
    int (*step)(struct moon_engine_port *self, const struct moon_step *step, struct moon_error *error);
    bool (*finished)(struct moon_engine_port *self, const struct moon_request *request, bool has_blocks);
    int (*report)(struct moon_engine_port *self, size_t child, uint64_t job, int64_t ranks, struct moon_error *error);
    bool (*reset)(struct moon_engine_port *self);
};

#ifdef __cplusplus
}
#endif
#endif
