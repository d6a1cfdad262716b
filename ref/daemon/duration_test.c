/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the numbers of command lines. */
#include "ref/daemon/duration.h"

#include "ref/base/unit.h"

/* A text and what becomes of it: a number, or a status below 0. */
struct row {
    const char *text;
    int64_t expected;
};

static void test_durations(void) {
    static const struct row rows[] = {
        {"0", 0},
        {"10000", 10000 * MOON_NS_PER_MS},
        {"500ms", 500 * MOON_NS_PER_MS},
        {"10s", 10 * MOON_NS_PER_S},
        {"5m", 300 * MOON_NS_PER_S},
        {"2h", 7200 * MOON_NS_PER_S},
        {"9223372036854ms", 9223372036854 * MOON_NS_PER_MS},
        {"9223372036855ms", MOON_ERR_RANGE},
        {"99999999999999999999s", MOON_ERR_RANGE},
        {"", MOON_ERR_SCHEMA},
        {"-1s", MOON_ERR_SCHEMA},
        {"1.5s", MOON_ERR_SCHEMA},
        {"10 parsecs", MOON_ERR_SCHEMA},
        {"s", MOON_ERR_SCHEMA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_error error = {.message = ""};
        moon_ns seen = -1;
        int status = moon_duration_read("client_ttl", rows[i].text, MOON_NS_PER_MS, &seen, &error);
        MOON_CHECK_INT(status ? status : seen, rows[i].expected);
        if (status != 0)
            CU_ASSERT(strstr(error.message, "--client_ttl") != NULL);
    }
}

static void test_ratios(void) {
    static const struct row rows[] = {
        {"0", 0},
        {"1", 1000000},
        {"1.0", 1000000},
        {"0.05", 50000},
        {"0.9", 900000},
        {"0.123456", 123456},
        {"0.1234567", MOON_ERR_SCHEMA},
        {"1.000001", MOON_ERR_RANGE},
        {"2", MOON_ERR_RANGE},
        {"-0.1", MOON_ERR_SCHEMA},
        {".5", MOON_ERR_SCHEMA},
        {"0,5", MOON_ERR_SCHEMA},
        {"99999999999999999999", MOON_ERR_RANGE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t seen = -1;
        int status = moon_ratio_read("eviction_ratio", rows[i].text, &seen, NULL);
        MOON_CHECK_INT(status ? status : seen, rows[i].expected);
    }
}

static void test_sizes(void) {
    static const struct row rows[] = {
        {"4096", 4096},
        {"64KiB", 65536},
        {"64 MiB", 64 << 20},
        {"1gb", 1 << 30},
        {"2T", (int64_t)2 << 40},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775808", MOON_ERR_RANGE},
        {"8388608TiB", MOON_ERR_RANGE},
        {"50%", MOON_ERR_SCHEMA},
        {"x", MOON_ERR_SCHEMA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t seen = -1;
        int status = moon_size_read("segment", rows[i].text, &seen, NULL);
        MOON_CHECK_INT(status ? status : seen, rows[i].expected);
    }
}

static void test_seeds(void) {
    uint64_t seen = 0;
    MOON_CHECK_INT(moon_seed_read("seed", "18446744073709551615", &seen, NULL), 0);
    CU_ASSERT_EQUAL(seen, UINT64_MAX);
    MOON_CHECK_INT(moon_seed_read("seed", "18446744073709551616", &seen, NULL), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_seed_read("seed", "1x", &seen, NULL), MOON_ERR_SCHEMA);
    MOON_CHECK_INT(moon_seed_read("seed", "", &seen, NULL), MOON_ERR_SCHEMA);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"durations have the flag's unit or their own, and a bound", test_durations},
        {"ratios are exact millionths within 0 and 1", test_ratios},
        {"sizes have units, and a bound", test_sizes},
        {"seeds are any 64-bit number", test_seeds},
        {NULL, NULL},
    };
    return moon_unit_main("durations", cases, argc, argv);
}
