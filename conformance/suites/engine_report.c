/* SPDX-License-Identifier: Apache-2.0 */
/* How the suites lookup-async and save-lcm tell calls to the store and hashes. */
#include "conformance/suites/engine_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void moon_engine_report_open(struct moon_engine_report *report) {
    moon_text_open(&report->key, report->arena->memory);
}

void moon_engine_report_close(struct moon_engine_report *report) {
    moon_text_close(&report->key);
}

static struct moon_json *key_text(struct moon_engine_report *report, const struct moon_store_call *call, size_t index) {
    moon_text_clear(&report->key);
    moon_key_list_write(call->keys, call->first + index, &report->key);
    return report->key.failed ? NULL
                              : moon_json_bytes(report->arena, moon_text_value(&report->key), report->key.length);
}

static void tell_check(struct moon_engine_report *report, const struct moon_store_call *call, const int64_t *values) {
    struct moon_arena *arena = report->arena;
    struct moon_json *row = moon_json_push(report->checks, moon_json_object(arena));
    struct moon_json *keys = moon_json_set(arena, row, "keys", moon_json_array(arena));
    struct moon_json *present = moon_json_set(arena, row, "present", moon_json_array(arena));
    for (size_t i = 0; i < call->count; i++) {
        moon_json_push(keys, key_text(report, call, i));
        moon_json_push(present, moon_json_int(arena, values[i]));
    }
}

static void tell_put(struct moon_engine_report *report, struct moon_json *row, const struct moon_store_call *call,
                     size_t index) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < call->buffers_per_key; i++)
        bytes += call->buffers[index * call->buffers_per_key + i].size_bytes;
    moon_json_set(report->arena, row, "bytes", moon_json_uint(report->arena, bytes));
    moon_json_set(report->arena, row, "segments", moon_json_uint(report->arena, call->buffers_per_key));
}

void moon_engine_report_call(struct moon_engine_report *report, int64_t rank, const struct moon_store_call *call,
                             const int64_t *values) {
    struct moon_arena *arena = report->arena;
    if (call->kind == MOON_CALL_EXIST && report->checks)
        tell_check(report, call, values);
    if (call->kind != MOON_CALL_GET && call->kind != MOON_CALL_PUT)
        return;
    bool get = call->kind == MOON_CALL_GET;
    for (size_t i = 0; i < call->count; i++) {
        struct moon_json *row = moon_json_push(get ? report->gets : report->puts, moon_json_object(arena));
        moon_json_set(arena, row, "rank", moon_json_int(arena, rank));
        moon_json_set(arena, row, "key", key_text(report, call, i));
        if (get)
            moon_json_set(arena, row, "result", moon_json_int(arena, values[i]));
        else
            tell_put(report, row, call, i);
    }
}

enum { ROWS_SHOWN_MAX = 16 };

static int64_t number_of(const struct moon_json *row, const char *name) {
    return moon_json_member(row, name)->integer;
}

static void explain_rows(const struct moon_json *rows, bool put, const char *rule, struct moon_text *out) {
    size_t shown = 0;
    for (const struct moon_json *row = rows->first; row && shown < ROWS_SHOWN_MAX; row = row->next, shown++) {
        const char *key = moon_json_member(row, "key")->bytes;
        if (put)
            moon_text_format(out, "  rank %" PRId64 " puts %s: %" PRId64 " bytes, buffers: %" PRId64 " (%s)\n",
                             number_of(row, "rank"), key, number_of(row, "bytes"), number_of(row, "segments"), rule);
        else
            moon_text_format(out, "  rank %" PRId64 " gets %s: %" PRId64 " bytes (%s)\n", number_of(row, "rank"), key,
                             number_of(row, "result"), rule);
    }
    if (rows->count > shown)
        moon_text_format(out, "  and %zu more %s\n", rows->count - shown, put ? "puts" : "gets");
}

void moon_engine_explain_calls(const struct moon_json *gets, const struct moon_json *puts, const char *get_rule,
                               const char *put_rule, struct moon_text *out) {
    explain_rows(gets, false, get_rule, out);
    explain_rows(puts, true, put_rule, out);
}

void moon_engine_name_request(struct moon_error *error, const char *const names[], size_t count) {
    static const char beginning[] = "Missing current block table for store request ";
    char *slot = error->message + sizeof beginning - 1;
    if (error->status != MOON_ERR_REFUSED || strncmp(error->message, beginning, sizeof beginning - 1) != 0)
        return;
    unsigned long number = strtoul(slot, NULL, 10);
    if (number < count)
        snprintf(slot, sizeof error->message - (sizeof beginning - 1), "%s", names[number]);
}

struct moon_json *moon_engine_hashes(struct moon_arena *arena, const struct moon_hashes *hashes) {
    struct moon_json *list = moon_json_array(arena);
    for (size_t i = 0; i < hashes->count; i++)
        moon_json_push(list, moon_json_hex(arena, hashes->bytes + i * hashes->hash_bytes, hashes->hash_bytes));
    return list;
}
