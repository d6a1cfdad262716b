/* SPDX-License-Identifier: Apache-2.0 */
/* What the connector reads of a request. The core owns it, and keeps it up to date. */
#ifndef MOON_CONNECTOR_REQUEST_H
#define MOON_CONNECTOR_REQUEST_H

#include "ref/key/chunks.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_REQUEST_SLOTS_MAX = 1 << 20 };

/* Borrowed by the scheduler side until the request's finish was told to it, by jobs until they are released: until then
 * the struct and the bytes of hashes and tokens stay where they are (they may grow at the end). */
struct moon_request {
    /* Name of the request: below MOON_REQUEST_SLOTS_MAX; small numbers make small tables. Two requests that live at the
     * same time have different ones; reusing one is what reusing a request id is in vLLM. */
    uint32_t slot;
    int64_t prompt_tokens;     /* of the original prompt, 1 or more */
    int64_t known_tokens;      /* prompt and accepted output */
    struct moon_hashes hashes; /* of known_tokens: one for each hash block that is full */
    const uint32_t *token_ids; /* known_tokens of them; only read for KV events; may be NULL */
};

#ifdef __cplusplus
}
#endif
#endif
