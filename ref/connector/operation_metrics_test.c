/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of metrics: status, sums, percentile, and the text that a scraper reads. */
#include "ref/connector/operation_metrics.h"

#include "ref/base/unit.h"

static void the_status_follows_from_the_outcome(void) {
    struct moon_operation_record record = moon_operation_record(MOON_OPERATION_SAVE_PUT, 5, 4, 100, 0, false);
    MOON_CHECK_TEXT(moon_operation_status_name(record.status), "ok");
    record = moon_operation_record(MOON_OPERATION_SAVE_PUT, 5, 4, 100, 1, false);
    MOON_CHECK_TEXT(moon_operation_status_name(record.status), "partial_failure");
    MOON_CHECK_INT(record.failed_keys, 1);
    record = moon_operation_record(MOON_OPERATION_LOOKUP_EXISTS, 5, 4, 0, 0, true);
    MOON_CHECK_TEXT(moon_operation_status_name(record.status), "error");
    MOON_CHECK_INT(record.failed_keys, 4);
    MOON_CHECK_TEXT(moon_operation_name(record.operation), "lookup_exists");
    MOON_CHECK_TEXT(moon_operation_name(MOON_OPERATION_LOAD_GET), "load_get");
    MOON_CHECK_TEXT(moon_operation_name(MOON_OPERATION_SAVE_EXISTS), "save_exists");
    MOON_CHECK_TEXT(moon_operation_name(MOON_OPERATION_SAVE_PUT), "save_put");
}

/* p90 of the durations 0, 1, ... count - 1 ms, shuffled. */
static int64_t p90_ms(size_t count) {
    struct moon_operations operations;
    struct moon_operation_summary summary;
    moon_operations_open(&operations, moon_memory_heap());
    for (size_t i = 0; i < count; i++) {
        size_t value = count % 7 ? i * 7 % count : count - 1 - i; /* a permutation */
        struct moon_operation_record record =
            moon_operation_record(MOON_OPERATION_LOAD_GET, (int64_t)value * 1000000, 1, 0, 0, false);
        CU_ASSERT_EQUAL_FATAL(moon_operations_add(&operations, &record, NULL), 0);
    }
    MOON_CHECK_INT(moon_operations_reduce(&operations, MOON_OPERATION_LOAD_GET, &summary, NULL), 0);
    moon_operations_close(&operations);
    return summary.p90_us / 1000;
}

static void the_percentile_is_a_nearest_rank(void) {
    static const size_t counts[][2] = {{1, 0},   {2, 1},   {3, 2},    {9, 8},         {10, 8},       {11, 9},
                                       {20, 17}, {21, 18}, {100, 89}, {18200, 16379}, {18210, 16389}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        MOON_CHECK_INT(p90_ms(counts[i][0]), counts[i][1]);
}

static void sums_are_of_one_operation(void) {
    struct moon_operations operations;
    struct moon_operation_summary summary;
    moon_operations_open(&operations, moon_memory_heap());
    MOON_CHECK_INT(moon_operations_reduce(&operations, MOON_OPERATION_SAVE_PUT, &summary, NULL), 0);
    MOON_CHECK_INT(summary.count, 0);
    const struct moon_operation_record records[] = {
        moon_operation_record(MOON_OPERATION_SAVE_PUT, 1500, 4, 100, 0, false),
        moon_operation_record(MOON_OPERATION_SAVE_PUT, 3501, 3, 50, 2, false),
        moon_operation_record(MOON_OPERATION_SAVE_PUT, 2500, 5, 70, 0, true),
        moon_operation_record(MOON_OPERATION_SAVE_EXISTS, 9000, 50, 0, 0, false),
    };
    for (size_t i = 0; i < 4; i++)
        MOON_CHECK_INT(moon_operations_add(&operations, &records[i], NULL), 0);
    MOON_CHECK_INT(moon_operations_reduce(&operations, MOON_OPERATION_SAVE_PUT, &summary, NULL), 0);
    MOON_CHECK_INT(summary.count, 3);
    MOON_CHECK_INT(summary.average_us, 3); /* 2.5003 */
    MOON_CHECK_INT(summary.p90_us, 4);
    MOON_CHECK_INT(summary.keys, 12);
    MOON_CHECK_INT(summary.bytes, 220);
    MOON_CHECK_INT(summary.failed_keys, 7);
    MOON_CHECK_INT(summary.errors, 1);
    MOON_CHECK_INT(moon_operations_reduce(&operations, MOON_OPERATION_LOAD_GET, &summary, NULL), 0);
    MOON_CHECK_INT(summary.count, 0);
    moon_operations_clear(&operations);
    MOON_CHECK_INT(moon_operations_add(&operations, &records[2], NULL), 0);
    MOON_CHECK_INT(moon_operations_reduce(&operations, MOON_OPERATION_SAVE_PUT, &summary, NULL), 0);
    MOON_CHECK_INT(summary.average_us, 2); /* 2.5: half to even */
    MOON_CHECK_INT(moon_operations_add(&operations, &records[0], NULL), 0);
    moon_operations_close(&operations);
    moon_operations_close(&operations);
}

static const char expected_text[] =
    "# HELP vllm:mooncake_store_operation_time_seconds Histogram of Mooncake store communication time.\n"
    "# TYPE vllm:mooncake_store_operation_time_seconds histogram\n"
    "vllm:mooncake_store_operation_time_seconds_bucket{engine=\"0\",operation=\"save_put\",status=\"ok\",le=\"0.001\"} "
    "1\n"
    "vllm:mooncake_store_operation_time_seconds_bucket{engine=\"0\",operation=\"save_put\",status=\"ok\",le=\"0.005\"} "
    "2\n";
static const char expected_end[] =
    "_bucket{engine=\"0\",operation=\"save_put\",status=\"ok\",le=\"4.0\"} 2\n"
    "vllm:mooncake_store_operation_time_seconds_bucket{engine=\"0\",operation=\"save_put\",status=\"ok\",le=\"+Inf\"} "
    "3\n"
    "vllm:mooncake_store_operation_time_seconds_count{engine=\"0\",operation=\"save_put\",status=\"ok\"} 3\n"
    "vllm:mooncake_store_operation_time_seconds_sum{engine=\"0\",operation=\"save_put\",status=\"ok\"} 5.002000001\n"
    "# HELP vllm:mooncake_store_operation_total Number of Mooncake store communication operations.\n"
    "# TYPE vllm:mooncake_store_operation_total counter\n"
    "vllm:mooncake_store_operation_total{engine=\"0\",operation=\"save_put\",status=\"ok\"} 3\n"
    "# HELP vllm:mooncake_store_operation_keys_total Number of Mooncake store keys touched by operations.\n"
    "# TYPE vllm:mooncake_store_operation_keys_total counter\n"
    "vllm:mooncake_store_operation_keys_total{engine=\"0\",operation=\"save_put\",status=\"ok\"} 6\n"
    "# HELP vllm:mooncake_store_operation_bytes_total Number of bytes transferred by Mooncake store operations.\n"
    "# TYPE vllm:mooncake_store_operation_bytes_total counter\n"
    "vllm:mooncake_store_operation_bytes_total{engine=\"0\",operation=\"save_put\",status=\"ok\"} 30\n"
    "# HELP vllm:mooncake_store_operation_failed_keys_total Number of Mooncake store keys that failed in operations.\n"
    "# TYPE vllm:mooncake_store_operation_failed_keys_total counter\n"
    "vllm:mooncake_store_operation_failed_keys_total{engine=\"0\",operation=\"save_put\",status=\"ok\"} 0\n";

static void counters_are_written_for_a_scraper(void) {
    static struct moon_operation_counters counters;
    struct moon_text out;
    const int64_t durations_ns[] = {1000000, 1000001, 5000000000};
    for (size_t i = 0; i < 3; i++) {
        struct moon_operation_record record =
            moon_operation_record(MOON_OPERATION_SAVE_PUT, durations_ns[i], 2, 10, 0, false);
        moon_operation_counters_add(&counters, &record);
    }
    moon_text_open(&out, moon_memory_heap());
    moon_operation_counters_write(&counters, "engine=\"0\",", &out);
    const char *text = moon_text_value(&out);
    CU_ASSERT(strncmp(text, expected_text, strlen(expected_text)) == 0);
    const char *end = strstr(text, expected_end);
    CU_ASSERT_PTR_NOT_NULL_FATAL(end);
    MOON_CHECK_TEXT(end, expected_end);
    moon_text_close(&out);
}

static void refused_memory_is_told(void) {
    static struct moon_operation_counters counters;
    struct moon_memory_failing failing;
    struct moon_operation_record record = moon_operation_record(MOON_OPERATION_SAVE_PUT, 1, 1, 1, 0, false);
    struct moon_operation_summary summary;
    int status = MOON_ERR_MEMORY;
    for (uint64_t n = 1; status; n++) {
        struct moon_operations operations;
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_operations_open(&operations, &failing.memory);
        status = 0;
        for (size_t i = 0; i < 20 && !status; i++)
            status = moon_operations_add(&operations, &record, NULL);
        if (!status)
            status = moon_operations_reduce(&operations, MOON_OPERATION_SAVE_PUT, &summary, NULL);
        moon_operations_close(&operations);
        MOON_CHECK_INT(failing.held_bytes, 0);
        CU_ASSERT_FATAL(n < 10);
    }
    moon_operation_counters_add(&counters, &record);
    bool failed = true;
    for (uint64_t n = 1; failed; n++) {
        struct moon_text out;
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_text_open(&out, &failing.memory);
        moon_operation_counters_write(&counters, "", &out);
        failed = out.failed;
        moon_text_close(&out);
        MOON_CHECK_INT(failing.held_bytes, 0);
        CU_ASSERT_FATAL(n < 100);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the status of a record follows from its outcome", the_status_follows_from_the_outcome},
        {"the percentile is a nearest rank", the_percentile_is_a_nearest_rank},
        {"sums are of one operation, rounded half to even", sums_are_of_one_operation},
        {"counters are written for a scraper", counters_are_written_for_a_scraper},
        {"refused memory is told and leaks nothing", refused_memory_is_told},
        {NULL, NULL},
    };
    return moon_unit_main("operation_metrics", cases, argc, argv);
}
