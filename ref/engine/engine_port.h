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

/* Functions with an `error` return 0, or a negative status with it filled, which ends the step that called them;
 * MOON_ERR_REFUSED is what a release raises there, and ends the engine. Arguments are borrowed for the call, requests
 * until their finish was told in a step. */
struct moon_engine_port {
    /* Asks what the connector can bring. computed_tokens: the engine's own prefix. */
    int (*match)(struct moon_engine_port *self, const struct moon_request *request, int64_t computed_tokens,
                 struct moon_engine_match *match, struct moon_error *error);
    /* The request got blocks, also for external_tokens of this connector. With tables NULL it is told of no blocks. */
    int (*allocated)(struct moon_engine_port *self, const struct moon_request *request,
                     const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error);
    /* One scheduler step, with the requests that finished or were preempted before it. */
    int (*step)(struct moon_engine_port *self, const struct moon_step *step, struct moon_error *error);
    /* The request has ended. True: its blocks stay until it is reported as sent. */
    bool (*finished)(struct moon_engine_port *self, const struct moon_request *request, bool has_blocks);
    /* `ranks` more ranks completed a job of the connector at place `child`. */
    int (*report)(struct moon_engine_port *self, size_t child, uint64_t job, int64_t ranks, struct moon_error *error);
    /* Empties the external cache; false if that failed. */
    bool (*reset)(struct moon_engine_port *self);
};

#ifdef __cplusplus
}
#endif
#endif
