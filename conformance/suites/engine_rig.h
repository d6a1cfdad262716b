/* SPDX-License-Identifier: Apache-2.0 */
/* One engine in one piece: core scheduler, store connector, ranks with KV memory, and a modelled store. Step by step.
 */
#ifndef MOON_CONFORMANCE_SUITES_ENGINE_RIG_H
#define MOON_CONFORMANCE_SUITES_ENGINE_RIG_H

#include "conformance/suites/engine_case.h"
#include "ref/connector/store_call.h"
#include "ref/engine/core.h"

/* What is told while it happens. Functions may be NULL.
 *   asked      a question of the core, with the answer
 *   looked_up  an existence call of a lookup was answered, in a step or right after it
 *   called     a call of a rank to the store, with its results, one a key */
struct moon_rig_observer {
    void (*asked)(struct moon_rig_observer *self, const struct moon_request *request, int64_t computed_tokens,
                  const struct moon_engine_match *match);
    void (*looked_up)(struct moon_rig_observer *self, size_t keys);
    void (*called)(struct moon_rig_observer *self, int64_t rank, const struct moon_store_call *call,
                   const int64_t *values);
};

/* `hold`: a lookup's existence call waits for moon_rig_answer; else it is answered after the step. Without lookup_async
 * it is answered at once in any case. The observer is borrowed, and so are its and the arena. */
struct moon_rig;
int moon_rig_open(struct moon_rig **out, struct moon_arena *arena, const struct moon_engine_case *its, bool hold,
                  struct moon_rig_observer *observer, struct moon_error *error);
void moon_rig_close(struct moon_rig *rig); /* NULL: nothing */

/* Returns as moon_core_add.
 *   delivered  another connector brings the prompt; needs behind_multi */
int moon_rig_add(struct moon_rig *rig, uint32_t slot, const struct moon_engine_prompt *prompt, int64_t max_tokens,
                 bool delivered, struct moon_error *error);
void moon_rig_abort(struct moon_rig *rig, uint32_t slot);
/* Empties the local prefix cache, and overwrites the KV memory; false, and nothing is done, while a block is held. */
bool moon_rig_reset(struct moon_rig *rig);
/* Lets up to `count` waiting lookups have their answers. Returns 0 or MOON_ERR_MEMORY. */
int moon_rig_answer(struct moon_rig *rig, int64_t count, struct moon_error *error);
/* One step, the transfers it started, and the lookups it asked for. Returns 0, MOON_ERR_MEMORY, MOON_ERR_REFUSED with
 * what the release raises. *step lives until the next one. */
int moon_rig_step(struct moon_rig *rig, struct moon_core_step *step, struct moon_error *error);

const struct moon_core *moon_rig_core(const struct moon_rig *rig);
/* The same from the connector's side. */
const struct moon_connector *moon_rig_connector(const struct moon_rig *rig);
size_t moon_rig_stored_keys(const struct moon_rig *rig);
/* Bytes, in memory and in objects, that were not those of the model when they were looked at (ENGINE-015). */
uint64_t moon_rig_wrong_bytes(const struct moon_rig *rig);
/* Lookups that the client knows; that wait for an answer; that have reached the store. */
size_t moon_rig_futures(const struct moon_rig *rig);
size_t moon_rig_waiting_lookups(const struct moon_rig *rig);
size_t moon_rig_asked_store(const struct moon_rig *rig);

#endif
