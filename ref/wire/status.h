/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Mooncake's error codes: what an expected holds in place of its value. */
#ifndef MOON_WIRE_STATUS_H
#define MOON_WIRE_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Those that the reference decides about (WIRE-031). */
enum moon_store_code {
    MOON_STORE_OK = 0,
    MOON_STORE_INTERNAL_ERROR = -1,
    MOON_STORE_SEGMENT_NOT_FOUND = -101,
    MOON_STORE_SEGMENT_ALREADY_EXISTS = -102,
    MOON_STORE_CLIENT_NOT_FOUND = -103,
    MOON_STORE_NO_AVAILABLE_HANDLE = -200,
    MOON_STORE_INVALID_VERSION = -300,
    MOON_STORE_INVALID_PARAMS = -600,
    MOON_STORE_ILLEGAL_CLIENT = -601,
    MOON_STORE_INVALID_WRITE = -700,
    MOON_STORE_REPLICA_IS_NOT_READY = -703,
    MOON_STORE_OBJECT_NOT_FOUND = -704,
    MOON_STORE_OBJECT_ALREADY_EXISTS = -705,
    MOON_STORE_OBJECT_HAS_LEASE = -706,
    MOON_STORE_LEASE_EXPIRED = -707,
    MOON_STORE_TRANSFER_FAIL = -800,
    MOON_STORE_RPC_FAIL = -900,
    MOON_STORE_RPC_TIMEOUT = -901,
    MOON_STORE_UNAVAILABLE_IN_CURRENT_STATUS = -1010,
};

/* "OBJECT_NOT_FOUND" for -704; "unknown" for a number that is no code (WIRE-031). */
const char *moon_wire_status_name(int64_t code);

#ifdef __cplusplus
}
#endif
#endif
