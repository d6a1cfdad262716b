/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of command lines, read without floating point. */
#include "ref/daemon/duration.h"

#include <strings.h>

/* Digits at the front of `text`, as a number; *rest: what follows. */
static int digits_read(const char *name, const char *text, uint64_t max, uint64_t *out, const char **rest,
                       struct moon_error *error) {
    uint64_t number = 0;
    size_t count = strspn(text, "0123456789");
    if (count == 0)
        return moon_fail(error, MOON_ERR_SCHEMA, NULL, "--%s takes a number, not \"%.60s\"", name, text);
    for (size_t i = 0; i < count; i++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number) || number > max)
            return moon_fail(error, MOON_ERR_RANGE, NULL, "--%s is %.60s, which is too much", name, text);
    *out = number;
    *rest = text + count;
    return 0;
}

struct unit {
    const char *suffix;
    int64_t factor;
};

/* A number and one of `units`, the first of which has no suffix. */
static int units_read(const char *name, const char *text, const struct unit units[], int64_t *out,
                      struct moon_error *error) {
    uint64_t number = 0;
    const char *rest = text;
    int status = digits_read(name, text, INT64_MAX, &number, &rest, error);
    if (status != 0)
        return status;
    rest += strspn(rest, " ");
    for (; units->suffix; units++)
        if (strcasecmp(units->suffix, rest) == 0) {
            int64_t product;
            if (__builtin_mul_overflow((int64_t)number, units->factor, &product))
                return moon_fail(error, MOON_ERR_RANGE, NULL, "--%s is %.60s, which is too much", name, text);
            *out = product;
            return 0;
        }
    return moon_fail(error, MOON_ERR_SCHEMA, NULL, "--%s: \"%.20s\" is no unit in \"%.60s\"", name, rest, text);
}

int moon_duration_read(const char *name, const char *text, moon_ns unit_ns, moon_ns *out, struct moon_error *error) {
    const struct unit units[] = {{"", unit_ns},
                                 {"ms", MOON_NS_PER_MS},
                                 {"s", MOON_NS_PER_S},
                                 {"m", 60 * MOON_NS_PER_S},
                                 {"h", 3600 * MOON_NS_PER_S},
                                 {NULL, 0}};
    return units_read(name, text, units, out, error);
}

int moon_size_read(const char *name, const char *text, int64_t *bytes, struct moon_error *error) {
    static const int64_t K = 1024;
    const struct unit units[] = {{"", 1},
                                 {"b", 1},
                                 {"k", K},
                                 {"kb", K},
                                 {"kib", K},
                                 {"m", K * K},
                                 {"mb", K * K},
                                 {"mib", K * K},
                                 {"g", K * K * K},
                                 {"gb", K * K * K},
                                 {"gib", K * K * K},
                                 {"t", K * K * K * K},
                                 {"tb", K * K * K * K},
                                 {"tib", K * K * K * K},
                                 {NULL, 0}};
    return units_read(name, text, units, bytes, error);
}

int moon_ratio_read(const char *name, const char *text, int64_t *millionths, struct moon_error *error) {
    uint64_t whole = 0;
    const char *rest = text;
    int status = digits_read(name, text, INT64_MAX, &whole, &rest, error);
    if (status != 0)
        return status;
    int64_t fraction = 0, weight = 100000;
    if (*rest == '.')
        for (rest++; *rest >= '0' && *rest <= '9' && weight > 0; rest++, weight /= 10)
            fraction += (*rest - '0') * weight;
    if (*rest != '\0')
        return moon_fail(error, MOON_ERR_SCHEMA, NULL, "--%s takes a number with at most 6 decimals, not \"%.60s\"",
                         name, text);
    if (whole > 1 || (whole == 1 && fraction > 0))
        return moon_fail(error, MOON_ERR_RANGE, NULL, "--%s is %.60s, must be within 0 and 1", name, text);
    *millionths = (int64_t)whole * 1000000 + fraction;
    return 0;
}

int moon_seed_read(const char *name, const char *text, uint64_t *out, struct moon_error *error) {
    uint64_t number = 0;
    const char *rest = text;
    int status = digits_read(name, text, UINT64_MAX, &number, &rest, error);
    if (status != 0)
        return status;
    if (*rest != '\0')
        return moon_fail(error, MOON_ERR_SCHEMA, NULL, "--%s takes a whole number, not \"%.60s\"", name, text);
    *out = number;
    return 0;
}
