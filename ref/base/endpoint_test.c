/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of endpoint texts. */
#include "ref/base/endpoint.h"

#include "ref/base/unit.h"

static void check(const char *text, const char *host, int port) {
    char seen[MOON_HOST_BYTES] = "untouched";
    uint16_t seen_port = 7;
    bool is = moon_endpoint_split(text, seen, &seen_port);
    MOON_CHECK_INT(is, host != NULL);
    MOON_CHECK_TEXT(seen, host ? host : "untouched");
    MOON_CHECK_INT(seen_port, host ? port : 7);
}

static void test_split(void) {
    check("127.0.0.1:50051", "127.0.0.1", 50051);
    check("a-name.example:0", "a-name.example", 0);
    check("[::1]:65535", "::1", 65535);
    check("[fe80::1%eth0]:00080", "fe80::1%eth0", 80);
    static const char *const none[] = {"",        "host",    ":1",       "host:",   "host:65536",
                                       "host:-1", "host:1x", "host:1:2", "::1:80",  "[::1]",
                                       "[::1]80", "[]:80",   "[::1:80",  "host: 1", "host:000001"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        check(none[i], NULL, 0);
    char text[MOON_ENDPOINT_BYTES + 16];
    memset(text, 'h', sizeof text);
    memcpy(text + MOON_HOST_BYTES - 1, ":80", 4);
    char host[MOON_HOST_BYTES];
    uint16_t port;
    CU_ASSERT(moon_endpoint_split(text, host, &port));
    memcpy(text + MOON_HOST_BYTES - 1, "h:80", 5);
    CU_ASSERT_FALSE(moon_endpoint_split(text, host, &port));
}

static void test_join(void) {
    char text[17];
    CU_ASSERT(moon_endpoint_join("1.2.3.4", 5, text, sizeof text));
    MOON_CHECK_TEXT(text, "1.2.3.4:5");
    CU_ASSERT(moon_endpoint_join("::1", 65535, text, sizeof text));
    MOON_CHECK_TEXT(text, "[::1]:65535");
    CU_ASSERT(moon_endpoint_join("123456789.1234", 1, text, 17));
    CU_ASSERT_FALSE(moon_endpoint_join("123456789.1234", 1, text, 16));
    MOON_CHECK_TEXT(text, "");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a host and a port are taken apart, and nothing else is", test_split},
        {"a host and a port are put together, with brackets where needed", test_join},
        {NULL, NULL},
    };
    return moon_unit_main("endpoints", cases, argc, argv);
}
