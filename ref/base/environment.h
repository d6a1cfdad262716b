/* SPDX-License-Identifier: Apache-2.0 */
/* What a state machine is given instead of an operating system: time, random numbers, memory, streams, a recorder. */
#ifndef MOON_BASE_ENVIRONMENT_H
#define MOON_BASE_ENVIRONMENT_H

#include "ref/base/memory.h"
#include "ref/base/random.h"
#include "ref/base/record.h"
#include "ref/base/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One a node. Whoever drives the node sets both clocks before each call into it; state machines only read them.
 *   now_ns    this node's monotonic clock: never goes back, says nothing about other nodes' clocks
 *   wall_ns   since 1970-01-01 UTC; for time stamps that are shown, never for decisions
 *   random    this node's stream of random numbers
 *   recorder  NULL: nothing is recorded
 *
 * The rules of every state machine on it:
 *   - It does nothing by itself. It acts when called: by its user, by a stream (stream.h), or by its tick.
 *   - It has a function moon_X_deadline: the time of its next tick, MOON_NS_NEVER if there is none; and moon_X_tick,
 *     which does all that is due at now_ns. After any call into a node its driver asks for the deadline again. Ticks
 *     that come early do nothing, ticks that come late do all that is due.
 *   - Callbacks to its user come from within calls by the driver (stream events, ticks), never from within a call by
 *     the user: what could end at once ends at the next tick (deadline now_ns).
 *   - One thread at a time. */
struct moon_environment {
    moon_ns now_ns, wall_ns;
    struct moon_random random;
    struct moon_memory *memory;
    struct moon_streams *streams;
    struct moon_recorder *recorder;
};

#ifdef __cplusplus
}
#endif
#endif
