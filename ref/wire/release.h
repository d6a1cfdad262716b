/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of each Mooncake release as tables, and the numbers that name them on the wire. */
#ifndef MOON_WIRE_RELEASE_H
#define MOON_WIRE_RELEASE_H

#include "ref/base/error.h"
#include "ref/wire/type.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A remote function.
 *   name       "PutStart" of the master's service; "RealClient::..." of a client that owns an SSD tier
 *   arguments  a struct: their names and types in order
 *   result     its type; NULL: the function is gone in this release */
struct moon_wire_function {
    const char *name;
    const struct moon_wire_type *arguments, *result;
};

/* A release: its own rows, and below them those of the next newer release, unless a row of its own has the same name.
 *   version    what ServiceReady answers
 *   metadata   optional members of its transfer-engine descriptor, see handshake.h */
struct moon_wire_release {
    const char *name;
    const char *version;
    unsigned metadata;
    const struct moon_wire_release *newer;
    const struct moon_wire_function *functions; /* sorted by name, a row with name NULL ends */
};

/* All of them, newest first; a NULL ends. */
extern const struct moon_wire_release *const moon_wire_releases[];
/* By full name ("0.3.13.post1") or line ("0.3.13"); NULL if there is none. */
const struct moon_wire_release *moon_wire_release_find(const char *name);

/* A function with its numbers, which are computed from its name and types. */
struct moon_wire_call {
    const struct moon_wire_function *function;
    uint32_t id, arguments_hash, result_hash; /* arguments_hash 0: there are none */
};

enum { MOON_WIRE_CALLS_MAX = 80 };

/* All calls of a release, sorted by id, and in `by_name` by name. Plain data; copy freely. */
struct moon_wire_protocol {
    const struct moon_wire_release *release;
    struct moon_wire_call calls[MOON_WIRE_CALLS_MAX];
    uint8_t by_name[MOON_WIRE_CALLS_MAX];
    size_t count;
};

/* Computes the calls of `release`, with `memory` for type texts (given back before the return). Returns 0 or
 * MOON_ERR_MEMORY. */
int moon_wire_protocol_open(struct moon_wire_protocol *protocol, const struct moon_wire_release *release,
                            struct moon_memory *memory);

/* NULL if there is none. By result: the first by name of those whose result has this hash. */
const struct moon_wire_call *moon_wire_call_by_id(const struct moon_wire_protocol *protocol, uint32_t id);
const struct moon_wire_call *moon_wire_call_by_name(const struct moon_wire_protocol *protocol, const char *name);
const struct moon_wire_call *moon_wire_call_by_result(const struct moon_wire_protocol *protocol, uint32_t hash);

#ifdef __cplusplus
}
#endif
#endif
