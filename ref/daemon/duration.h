/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of command lines: durations with a unit, ratios, sizes. */
#ifndef MOON_DAEMON_DURATION_H
#define MOON_DAEMON_DURATION_H

#include "ref/base/bytes.h"
#include "ref/base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DAEMON-003. "10000" counts in `unit_ns`; "500ms", "10s", "5m" and "2h" say their own unit. Digits only, no sign, no
 * fraction. Returns 0, MOON_ERR_SCHEMA (no duration) or MOON_ERR_RANGE (over 2^63 - 1 ns); `name` is that of the flag
 * in the message. */
int moon_duration_read(const char *name, const char *text, moon_ns unit_ns, moon_ns *out, struct moon_error *error);

/* A ratio, 0 to 1 with at most 6 decimals ("0.05", "1"), in millionths. Errors as above. */
int moon_ratio_read(const char *name, const char *text, int64_t *millionths, struct moon_error *error);

/* A size in bytes: "4096", or with a unit "64KiB", "64 MiB", "4GB" (KB, MB, GB, TB count as KiB and so on: Mooncake's
 * convention). Errors as above; the limit is 2^63 - 1. */
int moon_size_read(const char *name, const char *text, int64_t *bytes, struct moon_error *error);

/* A number of 0 to 2^64 - 1 in decimal. */
int moon_seed_read(const char *name, const char *text, uint64_t *out, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
