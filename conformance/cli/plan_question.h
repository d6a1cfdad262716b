/* SPDX-License-Identifier: Apache-2.0 */
/* Everyday questions to the connector, made from a few numbers instead of JSON. */
#ifndef MOON_CONFORMANCE_PLAN_QUESTION_H
#define MOON_CONFORMANCE_PLAN_QUESTION_H

#include "ref/base/json.h"
#include "ref/key/profile.h"

enum {
    MOON_PLAN_TOKENS_MAX = 1 << 20,
    MOON_PLAN_DECODE_MAX = 4096, /* each token is a step */
    MOON_PLAN_BLOCK_TOKENS_MAX = 1 << 16,
};

/* One request of one engine with one full attention group. 0 and NULL: as the suites have it (sizes 1, 8 KV heads,
 * role kv_both, ...).
 *   ask            "save", "load" or "lookup"
 *   prompt_tokens, decode_tokens  of the request; decoding is asked of "save" only
 *   step_tokens    of the prompt in one step; 0: all
 *   stored_tokens  of the prompt that the store has already, for every rank
 *   local_tokens   that the engine has cached itself
 *   delivered      the prompt comes from another connector: the first step computes its last token alone
 *   store_tp, lcm  store_tp_size as JSON, and prefill_tp_sizes as a JSON array for enable_store_tp_lcm */
struct moon_plan_question {
    const char *ask, *role, *layout, *model, *prefix, *store_tp, *lcm;
    int64_t tp, pp, kv_heads, block_tokens;
    int64_t prompt_tokens, decode_tokens, step_tokens, stored_tokens, local_tokens;
    bool save_decode, delivered;
};

/* `given` of the suite that is asked. Returns 0; MOON_ERR_SYNTAX for an option that is no JSON; what moon_engine_read
 * says of the engine; MOON_ERR_MEMORY. */
int moon_plan_given(struct moon_arena *arena, const struct moon_profile *profile,
                    const struct moon_plan_question *question, struct moon_json **given, struct moon_error *error);

#endif
