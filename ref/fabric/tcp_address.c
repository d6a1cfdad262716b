/* SPDX-License-Identifier: Apache-2.0 */
/* Socket addresses as text, IPv4 and IPv6. */
#include "ref/fabric/tcp_address.h"

#include "ref/base/endpoint.h"

#include <uv.h>

bool moon_tcp_address_text(const struct sockaddr *address, char text[MOON_ADDRESS_BYTES]) {
    char host[INET6_ADDRSTRLEN];
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
        return uv_ip4_name(four, host, sizeof host) == 0 &&
               moon_endpoint_join(host, ntohs(four->sin_port), text, MOON_ADDRESS_BYTES);
    }
    if (address->sa_family != AF_INET6)
        return false;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six->sin6_port};
        memcpy(&four.sin_addr, six->sin6_addr.s6_addr + 12, sizeof four.sin_addr);
        return moon_tcp_address_text((const struct sockaddr *)&four, text);
    }
    return uv_ip6_name(six, host, sizeof host) == 0 &&
           moon_endpoint_join(host, ntohs(six->sin6_port), text, MOON_ADDRESS_BYTES);
}

bool moon_tcp_address_parse(const char *host, uint16_t port, struct sockaddr_storage *address) {
    memset(address, 0, sizeof *address);
    return uv_ip4_addr(host, port, (struct sockaddr_in *)address) == 0 ||
           uv_ip6_addr(host, port, (struct sockaddr_in6 *)address) == 0;
}
