/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of a suite where the release would raise: {"error":{"class","message"}}. */
#ifndef MOON_CONFORMANCE_SUITES_REFUSAL_H
#define MOON_CONFORMANCE_SUITES_REFUSAL_H

#include "ref/base/json.h"

/* Builds the answer from an error of status MOON_ERR_REFUSED. NULL when memory refused. */
struct moon_json *moon_refusal_answer(struct moon_arena *arena, const struct moon_error *error);

#endif
