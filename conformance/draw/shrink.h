/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a JSON value smaller, step by step, while some property of it holds. */
#ifndef MOON_CONFORMANCE_SHRINK_H
#define MOON_CONFORMANCE_SHRINK_H

#include "ref/base/json.h"

/* Whether the property still holds for this candidate. */
typedef bool (*moon_shrink_check)(void *context, const struct moon_json *candidate);

/* Returns the smallest value found, in `arena`, that `still` accepts; at least as small as `value`, which must be
 * accepted. Tries, in a fixed order, until a whole round finds nothing: removing runs of array elements and members of
 * objects, shortening strings from the end (at whole code points), bringing integers to 0, halving and decreasing them,
 * true to false. `still` is called at most `tries` times; candidates live only during the call. NULL when memory
 * refused. */
struct moon_json *moon_shrink(struct moon_arena *arena, const struct moon_json *value, moon_shrink_check still,
                              void *context, unsigned tries);

#endif
