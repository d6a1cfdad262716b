/* SPDX-License-Identifier: Apache-2.0 */
/* Equality of JSON trees and the first place where two differ. */
#include "ref/base/json.h"

#include "ref/base/json_internal.h"

#include <math.h>
#include <string.h>

static bool same_bytes(const struct moon_json *a, const struct moon_json *b) {
    return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* Of containers only the type is compared. */
static bool same_here(const struct moon_json *a, const struct moon_json *b) {
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case MOON_JSON_BOOL:
        return a->boolean == b->boolean;
    case MOON_JSON_INTEGER: /* without leading zeros, integers beyond int64_t are equal only as texts */
        return a->fits && b->fits ? a->integer == b->integer : same_bytes(a, b);
    case MOON_JSON_REAL:
        return a->real == b->real || (isnan(a->real) && isnan(b->real));
    case MOON_JSON_STRING:
        return same_bytes(a, b);
    default:
        return true;
    }
}

/* The first child of b that a has none for, when every child of a has one in b. NULL if there is none. */
static const struct moon_json *surplus(const struct moon_json *a, const struct moon_json *b) {
    if (a->count == b->count)
        return NULL;
    const struct moon_json *child = b->first;
    if (b->type == MOON_JSON_ARRAY)
        return moon_json_at(b, a->count);
    while (moon_json_names_find(a, child->name, child->name_length))
        child = child->next;
    return child;
}

bool moon_json_difference(const struct moon_json *a, const struct moon_json *b, const struct moon_json **in_a,
                          const struct moon_json **in_b) {
    const struct moon_json *x = a, *y = b; /* the pair under comparison; y is NULL when x has no partner */
    if (!a) {
        *in_a = NULL;
        *in_b = b;
        return b != NULL;
    }
    while (y && same_here(x, y)) {
        if (x->first) {
            x = x->first;
            y = x->name ? moon_json_names_find(y, x->name, x->name_length) : y->first;
            continue;
        }
        const struct moon_json *extra = surplus(x, y);
        while (!extra && x != a && !x->next) {
            x = x->parent;
            y = y->parent;
            extra = surplus(x, y);
        }
        if (extra) {
            *in_a = NULL;
            *in_b = extra;
            return true;
        }
        if (x == a)
            return false;
        x = x->next;
        y = x->name ? moon_json_names_find(y->parent, x->name, x->name_length) : y->next;
    }
    *in_a = x;
    *in_b = y;
    return true;
}

bool moon_json_equal(const struct moon_json *a, const struct moon_json *b) {
    const struct moon_json *in_a, *in_b;
    return !moon_json_difference(a, b, &in_a, &in_b);
}
