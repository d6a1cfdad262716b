/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Mooncake's error codes: what an expected holds in place of its value. */
#ifndef MOON_WIRE_STATUS_H
#define MOON_WIRE_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "OBJECT_NOT_FOUND" for -704; "unknown" for a number that is no code (WIRE-031). */
const char *moon_wire_status_name(int64_t code);

#ifdef __cplusplus
}
#endif
#endif
