/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of the calls to the store: one record a call, sums of an interval, and counters for a scraper. */
#ifndef MOON_CONNECTOR_OPERATION_METRICS_H
#define MOON_CONNECTOR_OPERATION_METRICS_H

#include "ref/base/error.h"
#include "ref/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moon_operation {
    MOON_OPERATION_LOAD_GET,
    MOON_OPERATION_LOOKUP_EXISTS,
    MOON_OPERATION_SAVE_EXISTS,
    MOON_OPERATION_SAVE_PUT,
    MOON_OPERATION_COUNT
};
enum moon_operation_status {
    MOON_OPERATION_OK,
    MOON_OPERATION_PARTIAL_FAILURE,
    MOON_OPERATION_ERROR,
    MOON_OPERATION_STATUS_COUNT
};
/* "load_get", ...; "ok", ... (METRIC-001). */
const char *moon_operation_name(enum moon_operation operation);
const char *moon_operation_status_name(enum moon_operation_status status);

/* One call. Build it with moon_operation_record: the status follows from the rest. */
struct moon_operation_record {
    enum moon_operation operation;
    enum moon_operation_status status;
    int64_t duration_ns, keys, bytes, failed_keys;
};
/* raised: the call raised, so all keys failed. failed_keys: else, how many did. */
struct moon_operation_record moon_operation_record(enum moon_operation operation, int64_t duration_ns, int64_t keys,
                                                   int64_t bytes, int64_t failed_keys, bool raised);

/* Records since the interval began. Owns them: 48 bytes a call until moon_operations_clear. */
struct moon_operations {
    struct moon_memory *memory;
    struct moon_operation_record *records;
    size_t count, capacity;
};
void moon_operations_open(struct moon_operations *operations, struct moon_memory *memory);
void moon_operations_close(struct moon_operations *operations); /* idempotent */
void moon_operations_clear(struct moon_operations *operations); /* a new interval */
/* Returns 0 or MOON_ERR_MEMORY. */
int moon_operations_add(struct moon_operations *operations, const struct moon_operation_record *record,
                        struct moon_error *error);

/* Sums of one operation. Times in microseconds, rounded half to even: a release prints them as milliseconds with three
 * places, and where a double decides a half it may print the neighbour. count 0: the release leaves the operation out.
 */
struct moon_operation_summary {
    int64_t count, average_us, p90_us, keys, bytes, failed_keys, errors;
};
/* Sums up (METRIC-003). Returns 0 or MOON_ERR_MEMORY. */
int moon_operations_reduce(const struct moon_operations *operations, enum moon_operation operation,
                           struct moon_operation_summary *summary, struct moon_error *error);

/* Counters of all time, one set for each operation and status. Plain data, zeroed to begin with. */
enum { MOON_OPERATION_BUCKET_COUNT = 15 };
struct moon_operation_counter {
    int64_t calls, keys, bytes, failed_keys, duration_ns;
    int64_t buckets[MOON_OPERATION_BUCKET_COUNT]; /* calls that took at most the bound, and more than the one before */
};
struct moon_operation_counters {
    struct moon_operation_counter counters[MOON_OPERATION_COUNT][MOON_OPERATION_STATUS_COUNT];
};
void moon_operation_counters_add(struct moon_operation_counters *counters, const struct moon_operation_record *record);
/* Appends the counters in Prometheus' text format (METRIC-002). labels: text that precedes the own labels, for example
 * "engine=\"0\","; may be empty. Only sets with a call are written. */
void moon_operation_counters_write(const struct moon_operation_counters *counters, const char *labels,
                                   struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
