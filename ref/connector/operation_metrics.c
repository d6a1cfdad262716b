/* SPDX-License-Identifier: Apache-2.0 */
/* Records, sums and counters of calls to the store. */
#include "ref/connector/operation_metrics.h"

#include <inttypes.h>

static const char *const operation_names[MOON_OPERATION_COUNT] = {"load_get", "lookup_exists", "save_exists",
                                                                  "save_put"};
static const char *const status_names[MOON_OPERATION_STATUS_COUNT] = {"ok", "partial_failure", "error"};

const char *moon_operation_name(enum moon_operation operation) {
    return operation_names[operation];
}

const char *moon_operation_status_name(enum moon_operation_status status) {
    return status_names[status];
}

struct moon_operation_record moon_operation_record(enum moon_operation operation, int64_t duration_ns, int64_t keys,
                                                   int64_t bytes, int64_t failed_keys, bool raised) {
    struct moon_operation_record record = {operation, MOON_OPERATION_OK, duration_ns, keys, bytes, failed_keys};
    if (raised) {
        record.status = MOON_OPERATION_ERROR;
        record.failed_keys = keys;
    } else if (failed_keys > 0) {
        record.status = MOON_OPERATION_PARTIAL_FAILURE;
    }
    return record;
}

void moon_operations_open(struct moon_operations *operations, struct moon_memory *memory) {
    *operations = (struct moon_operations){.memory = memory};
}

void moon_operations_close(struct moon_operations *operations) {
    struct moon_memory *memory = operations->memory;
    memory->resize(memory, operations->records, operations->capacity * sizeof *operations->records, 0);
    moon_operations_open(operations, memory);
}

void moon_operations_clear(struct moon_operations *operations) {
    operations->count = 0;
}

int moon_operations_add(struct moon_operations *operations, const struct moon_operation_record *record,
                        struct moon_error *error) {
    struct moon_operation_record *grown = moon_memory_grow(
        operations->memory, operations->records, &operations->capacity, operations->count + 1, sizeof *grown, 16);
    if (!grown)
        return moon_fail(error, MOON_ERR_MEMORY, "metrics", "no memory for %zu records", operations->count + 1);
    operations->records = grown;
    operations->records[operations->count++] = *record;
    return 0;
}

/* Lets values[at] sink to its place in a heap of `count` with the largest on top. */
static void sift(int64_t *values, size_t at, size_t count) {
    while (2 * at + 1 < count) {
        size_t child = 2 * at + 1;
        if (child + 1 < count && values[child + 1] > values[child])
            child++;
        if (values[at] >= values[child])
            return;
        int64_t value = values[at];
        values[at] = values[child];
        values[child] = value;
        at = child;
    }
}

/* Sorts in place; qsort may ask for memory of its own. */
static void sort(int64_t *values, size_t count) {
    for (size_t i = count / 2; i > 0; i--)
        sift(values, i - 1, count);
    for (size_t end = count; end > 1; end--) {
        int64_t largest = values[0];
        values[0] = values[end - 1];
        values[end - 1] = largest;
        sift(values, 0, end - 1);
    }
}

/* trunc(0.9 * count - 1e-12) as doubles give it (METRIC-003): of a whole 0.9 * count the subtraction leaves less, but
 * from 16384 on it is lost in rounding. count 1 or more. */
static size_t p90_rank(size_t count) {
    return (9 * count - (count < 18205)) / 10;
}

/* value / divisor, rounded half to even; both 0 or more. */
static int64_t divide_rounded(int64_t value, int64_t divisor) {
    int64_t quotient = value / divisor, twice = 2 * (value % divisor);
    return quotient + (twice > divisor || (twice == divisor && quotient % 2 != 0));
}

int moon_operations_reduce(const struct moon_operations *operations, enum moon_operation operation,
                           struct moon_operation_summary *summary, struct moon_error *error) {
    struct moon_memory *memory = operations->memory;
    int64_t total_ns = 0;
    size_t used = 0;
    *summary = (struct moon_operation_summary){.count = 0};
    if (operations->count == 0)
        return 0;
    int64_t *durations = memory->resize(memory, NULL, 0, operations->count * sizeof *durations);
    if (!durations)
        return moon_fail(error, MOON_ERR_MEMORY, "metrics", "no memory for %zu durations", operations->count);
    for (size_t i = 0; i < operations->count; i++) {
        const struct moon_operation_record *record = &operations->records[i];
        if (record->operation != operation)
            continue;
        durations[used++] = record->duration_ns;
        total_ns += record->duration_ns;
        summary->keys += record->keys;
        summary->bytes += record->bytes;
        summary->failed_keys += record->failed_keys;
        summary->errors += record->status == MOON_OPERATION_ERROR;
    }
    summary->count = (int64_t)used;
    if (used > 0) {
        sort(durations, used);
        summary->average_us = divide_rounded(total_ns, 1000 * (int64_t)used);
        summary->p90_us = divide_rounded(durations[p90_rank(used)], 1000);
    }
    memory->resize(memory, durations, operations->count * sizeof *durations, 0);
    return 0;
}

/* Upper bounds of the histogram, as numbers and as Prometheus clients write them. */
static const struct {
    int64_t bound_ns;
    const char *text;
} buckets[MOON_OPERATION_BUCKET_COUNT] = {
    {1000000, "0.001"},  {5000000, "0.005"},  {10000000, "0.01"},  {50000000, "0.05"},  {100000000, "0.1"},
    {200000000, "0.2"},  {300000000, "0.3"},  {400000000, "0.4"},  {500000000, "0.5"},  {750000000, "0.75"},
    {1000000000, "1.0"}, {1500000000, "1.5"}, {2000000000, "2.0"}, {3000000000, "3.0"}, {4000000000, "4.0"},
};

void moon_operation_counters_add(struct moon_operation_counters *counters, const struct moon_operation_record *record) {
    struct moon_operation_counter *counter = &counters->counters[record->operation][record->status];
    counter->calls++;
    counter->keys += record->keys;
    counter->bytes += record->bytes;
    counter->failed_keys += record->failed_keys;
    counter->duration_ns += record->duration_ns;
    for (size_t i = 0; i < MOON_OPERATION_BUCKET_COUNT; i++) {
        if (record->duration_ns <= buckets[i].bound_ns) {
            counter->buckets[i]++;
            break;
        }
    }
}

/* One family of counters: its name without the common beginning, its help, and which number it shows. */
static const struct {
    const char *name, *help;
    size_t offset;
} families[] = {
    {"_total", "Number of Mooncake store communication operations.", offsetof(struct moon_operation_counter, calls)},
    {"_keys_total", "Number of Mooncake store keys touched by operations.",
     offsetof(struct moon_operation_counter, keys)},
    {"_bytes_total", "Number of bytes transferred by Mooncake store operations.",
     offsetof(struct moon_operation_counter, bytes)},
    {"_failed_keys_total", "Number of Mooncake store keys that failed in operations.",
     offsetof(struct moon_operation_counter, failed_keys)},
};

#define COMMON "vllm:mooncake_store_operation"

static void write_histogram(const struct moon_operation_counter *counter, const char *labels, struct moon_text *out) {
    int64_t below = 0;
    for (size_t i = 0; i < MOON_OPERATION_BUCKET_COUNT; i++) {
        below += counter->buckets[i];
        moon_text_format(out, COMMON "_time_seconds_bucket{%s,le=\"%s\"} %" PRId64 "\n", labels, buckets[i].text,
                         below);
    }
    moon_text_format(out, COMMON "_time_seconds_bucket{%s,le=\"+Inf\"} %" PRId64 "\n", labels, counter->calls);
    moon_text_format(out, COMMON "_time_seconds_count{%s} %" PRId64 "\n", labels, counter->calls);
    moon_text_format(out, COMMON "_time_seconds_sum{%s} %" PRId64 ".%09" PRId64 "\n", labels,
                     counter->duration_ns / 1000000000, counter->duration_ns % 1000000000);
}

enum { HISTOGRAM = sizeof families / sizeof families[0] };

/* All sets with a call, of one family or of the histogram. */
static void write_family(const struct moon_operation_counters *counters, size_t family, const char *labels,
                         struct moon_text *out) {
    struct moon_text own;
    moon_text_open(&own, out->memory);
    for (size_t i = 0; i < MOON_OPERATION_COUNT; i++) {
        for (size_t j = 0; j < MOON_OPERATION_STATUS_COUNT; j++) {
            const struct moon_operation_counter *counter = &counters->counters[i][j];
            if (counter->calls == 0)
                continue;
            moon_text_clear(&own);
            moon_text_format(&own, "%soperation=\"%s\",status=\"%s\"", labels, operation_names[i], status_names[j]);
            if (family == HISTOGRAM)
                write_histogram(counter, moon_text_value(&own), out);
            else
                moon_text_format(out, COMMON "%s{%s} %" PRId64 "\n", families[family].name, moon_text_value(&own),
                                 *(const int64_t *)((const char *)counter + families[family].offset));
        }
    }
    out->failed |= own.failed;
    moon_text_close(&own);
}

void moon_operation_counters_write(const struct moon_operation_counters *counters, const char *labels,
                                   struct moon_text *out) {
    moon_text_string(out, "# HELP " COMMON "_time_seconds Histogram of Mooncake store communication time.\n"
                          "# TYPE " COMMON "_time_seconds histogram\n");
    write_family(counters, HISTOGRAM, labels, out);
    for (size_t i = 0; i < HISTOGRAM; i++) {
        moon_text_format(out, "# HELP " COMMON "%s %s\n# TYPE " COMMON "%s counter\n", families[i].name,
                         families[i].help, families[i].name);
        write_family(counters, i, labels, out);
    }
}
