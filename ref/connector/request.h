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
 * the struct and the bytes of hashes and tokens stay where they are (they may grow at the end).
 *   slot           name of the request: below MOON_REQUEST_SLOTS_MAX, small numbers make small tables. Two requests
 * that live at the same time have different ones; reusing one is what reusing a request id is in vLLM prompt_tokens  of
 * the original prompt, 1 or more known_tokens   prompt and accepted output hashes         of known_tokens: one each
 * hash block that is full token_ids      known_tokens of them; only read for KV events; may be NULL */
struct moon_request {
    uint32_t slot;
    int64_t prompt_tokens, known_tokens;
    struct moon_hashes hashes;
    const uint32_t *token_ids;
};

#ifdef __cplusplus
}
#endif
#endif
