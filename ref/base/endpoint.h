/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoint texts: "host:port" and "[v6]:port", taken apart and put together. */
#ifndef MOON_BASE_ENDPOINT_H
#define MOON_BASE_ENDPOINT_H

#include "ref/base/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Room for the host part, with NUL. */
enum { MOON_HOST_BYTES = MOON_ENDPOINT_BYTES - 7 };

/* Takes `text` apart: host (1 to 264 bytes, without brackets; one that has colons must be in brackets) and port (0 to
 * 65535, decimal digits only). False, and nothing is set, for a text that is none. */
bool moon_endpoint_split(const char *text, char host[MOON_HOST_BYTES], uint16_t *port);
/* "host:port", with brackets around a host that has colons. False: `out_bytes` are too few; out is "" then. */
bool moon_endpoint_join(const char *host, uint16_t port, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
