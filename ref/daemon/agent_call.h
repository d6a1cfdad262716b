/* SPDX-License-Identifier: Apache-2.0 */
/* Store calls of the adapter protocol: their arguments to an operation of the client, its outcome to a result. */
#ifndef MOON_DAEMON_AGENT_CALL_H
#define MOON_DAEMON_AGENT_CALL_H

#include "ref/base/json.h"
#include "ref/store/client.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_AGENT_KEYS_MAX = 65536 }; /* of one call */

/* A call by name; setup is not among them. */
struct moon_agent_call;
const struct moon_agent_call *moon_agent_call_find(const char *name); /* NULL: none */
extern const char *const moon_agent_call_names[];                     /* setup among them; NULL ends */

/* Fills kind, batched, force and items of `operation` from `args`; all it needs lives in `arena`. Errors as
 * moon_store_value_read, with the member's place. *want_hex: get asks for bytes, not for a digest. */
int moon_agent_call_read(const struct moon_agent_call *call, struct moon_arena *arena, const char *source,
                         const struct moon_json *args, const char *folder, struct moon_client_operation *operation,
                         bool *want_hex, struct moon_error *error);
/* The result of an operation that has ended, in `arena`. Never NULL; broken when memory was refused. */
struct moon_json *moon_agent_call_result(const struct moon_agent_call *call, struct moon_arena *arena,
                                         const struct moon_client_operation *operation, bool want_hex);

#ifdef __cplusplus
}
#endif
#endif
