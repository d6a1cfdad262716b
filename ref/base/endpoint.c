/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoint texts: the one reader and the one writer of "host:port". */
#include "ref/base/endpoint.h"

#include <stdio.h>

static bool port_of(const char *digits, uint16_t *port) {
    unsigned value = 0;
    size_t length = strlen(digits);
    if (length == 0 || length > 5)
        return false;
    for (const char *at = digits; *at; at++) {
        if (*at < '0' || *at > '9')
            return false;
        value = value * 10 + (unsigned)(*at - '0');
    }
    if (value > UINT16_MAX)
        return false;
    *port = (uint16_t)value;
    return true;
}

bool moon_endpoint_split(const char *text, char host[MOON_HOST_BYTES], uint16_t *port) {
    bool bracketed = text[0] == '[';
    const char *begin = text + bracketed;
    const char *end = strchr(begin, bracketed ? ']' : ':');
    if (!end)
        return false;
    size_t length = (size_t)(end - begin);
    const char *colon = end + bracketed;
    if (length == 0 || length >= MOON_HOST_BYTES || *colon != ':' || !port_of(colon + 1, port))
        return false;
    memcpy(host, begin, length);
    host[length] = '\0';
    return true;
}

bool moon_endpoint_join(const char *host, uint16_t port, char *out, size_t out_bytes) {
    int length = snprintf(out, out_bytes, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, (unsigned)port);
    if (length >= 0 && (size_t)length < out_bytes)
        return true;
    out[0] = '\0';
    return false;
}
