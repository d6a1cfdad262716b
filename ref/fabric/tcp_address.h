/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses and the texts that streams name them with. */
#ifndef MOON_FABRIC_TCP_ADDRESS_H
#define MOON_FABRIC_TCP_ADDRESS_H

#include "ref/base/stream.h"

#include <sys/socket.h>

#ifdef __cplusplus
extern "C" {
#endif

/* "127.0.0.1:4711", "[::1]:4711". An IPv4 address that came in through IPv6 is written as the IPv4 address that its
 * owner knows it by: both ends of a stream name it alike. False: neither family. */
bool moon_tcp_address_text(const struct sockaddr *address, char text[MOON_ADDRESS_BYTES]);
/* A numeric host; false for a name. */
bool moon_tcp_address_parse(const char *host, uint16_t port, struct sockaddr_storage *address);

#ifdef __cplusplus
}
#endif
#endif
