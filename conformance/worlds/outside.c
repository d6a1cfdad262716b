/* SPDX-License-Identifier: Apache-2.0 */
/* Calls as messages of the adapter protocol, answers, and the harness's own records. */
#include "conformance/worlds/outside.h"

#include "conformance/io.h"
#include "conformance/process.h"
#include "ref/base/fill.h"

#include <assert.h>
#include <string.h>
#include <xxhash.h>

enum { HEX_BYTES_MAX = 64 * 1024, OPS_A_CALL = 1024 };
static_assert((int)OPS_A_CALL > (int)MOON_SCENARIO_KEYS_MAX, "each key of a call is an operation of its own");

static bool is_put(enum moon_scenario_do what) {
    return what == MOON_DO_PUT || what == MOON_DO_BATCH_PUT;
}
static bool is_get(enum moon_scenario_do what) {
    return what == MOON_DO_GET || what == MOON_DO_BATCH_GET;
}
static bool is_removal(enum moon_scenario_do what) {
    return what == MOON_DO_REMOVE || what == MOON_DO_REMOVE_ALL;
}
/* put and get have one key; the others lists, also of one. */
static bool is_single(enum moon_scenario_do what) {
    return what == MOON_DO_PUT || what == MOON_DO_GET;
}

/* ---- messages ---- */

/* A value for a foreign client: hex, or a file of the folder when it is large. */
static struct moon_json *foreign_value(struct moon_arena *arena, uint64_t fill, size_t bytes, const char *folder,
                                       struct moon_error *error) {
    struct moon_json *value = moon_json_object(arena);
    uint8_t *content = moon_arena_alloc(arena, bytes);
    if (!content)
        return NULL;
    moon_fill(fill, 0, content, bytes);
    if (bytes <= HEX_BYTES_MAX) {
        moon_json_set(arena, value, "hex", moon_json_hex(arena, content, bytes));
        return value;
    }
    const char *path = moon_arena_format(arena, "%s/fill-%llu-%zu", folder, (unsigned long long)fill, bytes);
    if (!path || moon_io_write(path, content, bytes, error) != 0)
        return NULL;
    moon_json_set(arena, value, "file", moon_json_string(arena, path));
    moon_json_set(arena, value, "offset", moon_json_int(arena, 0));
    moon_json_set(arena, value, "length", moon_json_uint(arena, bytes));
    return value;
}

static struct moon_json *value_of(struct moon_arena *arena, const struct moon_world_call *call, size_t key,
                                  const char *folder, struct moon_error *error) {
    if (folder)
        return foreign_value(arena, call->fill + key, call->bytes, folder, error);
    struct moon_json *value = moon_json_object(arena);
    moon_json_set(arena, value, "fill", moon_json_uint(arena, call->fill + key));
    moon_json_set(arena, value, "bytes", moon_json_uint(arena, call->bytes));
    return value;
}

static void setup_arguments(struct moon_arena *arena, const struct moon_scenario *scenario,
                            const struct moon_world_call *call, const char *master, struct moon_json *arguments) {
    enum { LOCAL_BUFFER_BYTES = 64 * 1024 * 1024 };
    moon_json_set(arena, arguments, "local_hostname", moon_json_string(arena, "127.0.0.1"));
    moon_json_set(arena, arguments, "master_server_addr", moon_json_string(arena, master));
    moon_json_set(arena, arguments, "global_segment_size",
                  moon_json_uint(arena, scenario->nodes[call->node].memory_bytes));
    moon_json_set(arena, arguments, "local_buffer_size", moon_json_int(arena, LOCAL_BUFFER_BYTES));
    moon_json_set(arena, arguments, "protocol", moon_json_string(arena, "tcp"));
    moon_json_set(arena, arguments, "rdma_devices", moon_json_string(arena, ""));
    moon_json_set(arena, arguments, "tenant_id", moon_json_string(arena, "default"));
}

static void single_arguments(struct moon_arena *arena, const struct moon_world_call *call, const char *folder,
                             struct moon_json *arguments, struct moon_error *error) {
    moon_json_set(arena, arguments, "key", moon_json_string(arena, call->keys[0]));
    if (is_put(call->what)) {
        moon_json_set(arena, arguments, "value", value_of(arena, call, 0, folder, error));
        return;
    }
    moon_json_set(arena, arguments, "bytes", moon_json_uint(arena, call->bytes));
    moon_json_set(arena, arguments, "want", moon_json_string(arena, "digest"));
}

static void list_arguments(struct moon_arena *arena, const struct moon_world_call *call, const char *folder,
                           struct moon_json *arguments, struct moon_error *error) {
    struct moon_json *keys = moon_json_set(arena, arguments, "keys", moon_json_array(arena)), *values = NULL;
    if (is_put(call->what))
        values = moon_json_set(arena, arguments, "values", moon_json_array(arena));
    else if (is_get(call->what))
        values = moon_json_set(arena, arguments, "bytes", moon_json_array(arena));
    for (size_t i = 0; i < call->key_count; i++) {
        moon_json_push(keys, moon_json_string(arena, call->keys[i]));
        if (is_put(call->what))
            moon_json_push(values, value_of(arena, call, i, folder, error));
        else if (is_get(call->what))
            moon_json_push(values, moon_json_uint(arena, call->bytes));
    }
}

int moon_outside_message(struct moon_arena *arena, const struct moon_scenario *scenario,
                         const struct moon_world_call *call, uint64_t seq, const char *master, const char *folder,
                         struct moon_json **message, struct moon_error *error) {
    struct moon_error why = {.status = MOON_OK};
    struct moon_json *root = moon_json_object(arena), *arguments = moon_json_object(arena);
    moon_json_set(arena, root, "do", moon_json_string(arena, "store"));
    moon_json_set(arena, root, "seq", moon_json_uint(arena, seq));
    moon_json_set(arena, root, "client", moon_json_string(arena, scenario->nodes[call->node].name));
    moon_json_set(arena, root, "call", moon_json_string(arena, moon_scenario_do_name(call->what)));
    moon_json_set(arena, root, "args", arguments);
    if (call->what == MOON_DO_SETUP)
        setup_arguments(arena, scenario, call, master, arguments);
    else if (is_single(call->what))
        single_arguments(arena, call, folder, arguments, &why);
    else if (call->what != MOON_DO_REMOVE_ALL)
        list_arguments(arena, call, folder, arguments, &why);
    if (is_removal(call->what))
        moon_json_set(arena, arguments, "force", moon_json_bool(arena, call->force));
    *message = root;
    if (why.status != MOON_OK) {
        *error = why;
        return why.status;
    }
    return moon_json_broken(root) ? moon_no_memory(error) : 0;
}

/* ---- answers ---- */

static bool read_digest(const struct moon_json *digest, uint64_t *out) {
    uint8_t bytes[8];
    if (!digest || digest->type != MOON_JSON_STRING || digest->length != 16 ||
        moon_hex_decode(digest->bytes, digest->length, bytes) != 0)
        return false;
    *out = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        *out = *out << 8 | bytes[i];
    return true;
}

static bool read_one(struct moon_world_call *call, size_t at, const struct moon_json *code,
                     const struct moon_json *digest, const char **why) {
    *why = "gives a code that is no number";
    if (!moon_json_is(code, MOON_JSON_INTEGER) || !code->fits)
        return false;
    call->results[at] = code->integer;
    call->digests[at] = 0;
    *why = "gives no digest (16 hex digits) of what it read";
    return !is_get(call->what) || code->integer < 0 || read_digest(digest, &call->digests[at]);
}

bool moon_outside_read(struct moon_world_call *call, const struct moon_json *answer, const char **why) {
    const struct moon_json *result = moon_json_member(answer, "result");
    *why = "answers a call with no \"result\"";
    if (!moon_json_is(result, MOON_JSON_OBJECT))
        return false;
    if (is_single(call->what) || call->key_count == 0)
        return read_one(call, 0, moon_json_member(result, "code"), moon_json_member(result, "digest"), why);
    const struct moon_json *codes = moon_json_member(result, "codes"), *digests = moon_json_member(result, "digests");
    *why = "does not give one code for each key";
    if (!moon_json_is(codes, MOON_JSON_ARRAY) || codes->count != call->key_count)
        return false;
    const struct moon_json *code = codes->first,
                           *digest = moon_json_is(digests, MOON_JSON_ARRAY) ? digests->first : NULL;
    for (size_t i = 0; i < call->key_count; i++, code = code->next, digest = digest ? digest->next : NULL)
        if (!read_one(call, i, code, digest, why))
            return false;
    return true;
}

/* ---- records ---- */

void moon_outside_open(struct moon_outside *outside, const struct moon_scenario *scenario, struct moon_memory *memory) {
    *outside = (struct moon_outside){.scenario = scenario};
    moon_history_open(&outside->records, memory);
}

void moon_outside_close(struct moon_outside *outside) {
    moon_history_close(&outside->records);
}

static void add(struct moon_outside *outside, size_t node, struct moon_record *record) {
    record->node = moon_bytes_of(node == 0 ? "harness" : outside->scenario->nodes[node].name);
    record->clock = moon_bytes_of("harness");
    record->n = outside->n[node]++;
    record->time_ns = (moon_ns)moon_now_ns();
    moon_history_add(&outside->records, record);
}

void moon_outside_fault(struct moon_outside *outside, const char *what, const char *node) {
    struct moon_record record = {
        .kind = MOON_RECORD_FAULT, .what = what, .has = MOON_RECORD_HAS_CAUSE, .cause = moon_bytes_of(node)};
    add(outside, 0, &record);
}

/* "put" for batch_put: what is done to one key. */
static const char *what_of(enum moon_scenario_do what) {
    return moon_scenario_do_name(what == MOON_DO_BATCH_PUT   ? MOON_DO_PUT
                                 : what == MOON_DO_BATCH_GET ? MOON_DO_GET
                                                             : what);
}

static struct moon_record record_of(uint32_t boot, uint64_t seq, const struct moon_world_call *call, size_t key) {
    struct moon_record record = {.boot = boot, .op = seq * OPS_A_CALL + 1 + key, .what = what_of(call->what)};
    if (call->key_count > 1)
        record.parent = seq * OPS_A_CALL;
    if (call->key_count > 0) {
        record.has = MOON_RECORD_HAS_KEY;
        record.key = moon_bytes_of(call->keys[key]);
    }
    return record;
}

void moon_outside_invoked(struct moon_outside *outside, uint32_t boot, uint64_t seq,
                          const struct moon_world_call *call) {
    struct moon_memory *memory = moon_memory_heap();
    size_t count = call->key_count > 0 ? call->key_count : 1;
    if (call->what == MOON_DO_SETUP)
        return;
    for (size_t i = 0; i < count; i++) {
        struct moon_record record = record_of(boot, seq, call, i);
        record.kind = MOON_RECORD_INVOKE;
        void *value = is_put(call->what) ? memory->resize(memory, NULL, 0, call->bytes) : NULL;
        if (value) {
            moon_fill(call->fill + i, 0, value, call->bytes);
            record.has |= MOON_RECORD_HAS_BYTES | MOON_RECORD_HAS_DIGEST;
            record.bytes = call->bytes;
            record.digest = XXH3_64bits(value, call->bytes);
            memory->resize(memory, value, call->bytes, 0);
        }
        outside->records.failed |= is_put(call->what) && !value;
        add(outside, call->node, &record);
    }
}

/* A failed write may have happened all the same; a read that failed read nothing. */
void moon_outside_ended(struct moon_outside *outside, uint32_t boot, uint64_t seq, const struct moon_world_call *call) {
    size_t count = call->key_count > 0 ? call->key_count : 1;
    if (call->what == MOON_DO_SETUP)
        return;
    for (size_t i = 0; i < count; i++) {
        struct moon_record record = record_of(boot, seq, call, i);
        bool ok = call->results[i] >= 0, changes = is_put(call->what) || is_removal(call->what);
        record.kind = ok ? MOON_RECORD_OK : changes ? MOON_RECORD_INFO : MOON_RECORD_FAIL;
        record.has |= MOON_RECORD_HAS_CODE;
        record.code = call->results[i];
        if (ok && is_get(call->what)) {
            record.has |= MOON_RECORD_HAS_BYTES | MOON_RECORD_HAS_DIGEST;
            record.bytes = (uint64_t)call->results[i];
            record.digest = call->digests[i];
        }
        add(outside, call->node, &record);
    }
}

static size_t node_of(const struct moon_outside *outside, struct moon_bytes name) {
    size_t i = 1;
    while (i < outside->scenario->node_count &&
           !moon_bytes_equal(moon_bytes_of(outside->scenario->nodes[i].name), name))
        i++;
    return i;
}

bool moon_outside_reached(struct moon_outside *outside, struct moon_world *world, size_t *anchor) {
    for (; outside->matched < outside->records.count; outside->matched++, outside->matched_anchor = 0) {
        const struct moon_record *record = &outside->records.records[outside->matched];
        size_t node = node_of(outside, record->node);
        while (outside->matched_anchor < world->scenario->anchor_count) {
            *anchor = outside->matched_anchor++;
            if (moon_world_reaches(world, *anchor, node, record))
                return true;
        }
    }
    return false;
}

void moon_outside_add(const struct moon_outside *outside, struct moon_history *history) {
    for (size_t i = 0; i < outside->records.count; i++)
        moon_history_add(history, &outside->records.records[i]);
    history->failed |= outside->records.failed;
}
