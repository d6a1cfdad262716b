/* SPDX-License-Identifier: Apache-2.0 */
/* The master's remote calls: a table of names, and the members of their arguments and results by name (CALL-020). */
#include "ref/store/master_service.h"

#include "ref/base/list.h"
#include "ref/store/rpc_internal.h"
#include "ref/wire/frame.h"

#include <stdlib.h>

enum { SOFT_PIN_ENABLE = 1, SOFT_PIN_DISABLE = 2, SOFT_PIN_TTL_MS_MAX = 24 * 60 * 60 * 1000 };

/* Every tenant's objects are this one's (CALL-025). */
static const char default_tenant[] = "default";

/* One call. Of those that are asked about keys: refusal is the code that all of them get, 0 if they are done;
 * length is the next key's slice length. */
struct request {
    struct moon_master *master;
    const struct moon_wire_release *release;
    const struct moon_wire_value *arguments;
    struct moon_wire_value *result;
    struct moon_arena *arena;
    struct moon_uuid client;
    struct moon_bytes tenant;
    int refusal;
    const struct moon_wire_value *length;
    struct moon_put_options options;
};

static const struct moon_wire_value *argument(const struct request *request, const char *name) {
    return moon_wire_at(request->arguments, name);
}

/* All functions below that return int: 0, or MOON_ERR_MEMORY when the arena refused. */

/* Fills an expected without a value of its own. */
static int put_code(const struct request *request, struct moon_wire_value *expected, int code) {
    if (code) {
        moon_wire_set_error(expected, code);
        return MOON_OK;
    }
    return moon_wire_present(request->arena, expected) ? MOON_OK : MOON_ERR_MEMORY;
}

/* ---- setup, segments, liveness */

static int put_text(struct request *request, const char *text) {
    struct moon_wire_value *value = moon_wire_present(request->arena, request->result);
    moon_wire_set_bytes(value, moon_bytes_of(text));
    return value ? MOON_OK : MOON_ERR_MEMORY;
}

static int service_ready(struct request *request) {
    return put_text(request, request->release->version);
}

static int get_fsdir(struct request *request) {
    return put_text(request, "");
}

static int get_storage_config(struct request *request) {
    struct moon_wire_value *config = moon_wire_present(request->arena, request->result);
    moon_wire_set_number(moon_wire_at(config, "enable_disk_eviction"), 1);
    return config ? MOON_OK : MOON_ERR_MEMORY;
}

/* A list of tasks, or of what there is none of yet. */
static int put_nothing(struct request *request) {
    return put_code(request, request->result, MOON_STORE_OK);
}

static struct moon_segment segment_of(const struct moon_wire_value *value) {
    return (struct moon_segment){.id = moon_wire_uuid(moon_wire_at(value, "id")),
                                 .name = moon_wire_bytes(moon_wire_at(value, "name")),
                                 .base = moon_wire_number(moon_wire_at(value, "base")),
                                 .size = moon_wire_number(moon_wire_at(value, "size")),
                                 .te_endpoint = moon_wire_bytes(moon_wire_at(value, "te_endpoint")),
                                 .protocol = moon_wire_bytes(moon_wire_at(value, "protocol")),
                                 .host_id = moon_wire_bytes(moon_wire_at(value, "host_id"))};
}

static int mount(struct request *request) {
    struct moon_segment segment = segment_of(argument(request, "segment"));
    return put_code(request, request->result, moon_master_mount(request->master, request->client, &segment));
}

static int remount(struct request *request) {
    const struct moon_wire_value *list = argument(request, "segments");
    struct moon_segment *segments = moon_arena_array(request->arena, list->count, sizeof *segments);
    size_t count = 0;
    if (!segments)
        return MOON_ERR_MEMORY;
    for (const struct moon_wire_value *one = list->first; one; one = one->next)
        segments[count++] = segment_of(one);
    return put_code(request, request->result, moon_master_remount(request->master, request->client, segments, count));
}

static int unmount(struct request *request) {
    struct moon_uuid segment = moon_wire_uuid(argument(request, "segment_id"));
    return put_code(request, request->result, moon_master_unmount(request->master, request->client, segment));
}

static int ping(struct request *request) {
    int64_t view_version = 0;
    int client_status = 0;
    int code = moon_master_ping(request->master, request->client, &view_version, &client_status);
    int status = put_code(request, request->result, code);
    const struct moon_wire_value *answer = request->result->first;
    moon_wire_set_number(moon_wire_at(answer, "view_version_id"), (uint64_t)view_version);
    moon_wire_set_number(moon_wire_at(answer, "client_status"), (uint64_t)(int64_t)client_status);
    return status;
}

static int remove_all(struct request *request) {
    bool force = moon_wire_number(argument(request, "force")) != 0;
    moon_wire_set_number(request->result, (uint64_t)moon_master_remove_all(request->master, request->tenant, force));
    return MOON_OK;
}

/* ---- objects: one key at a time */

static int put_replica(struct moon_arena *arena, struct moon_wire_value *list, const struct moon_replica *replica) {
    struct moon_wire_value *descriptor = moon_wire_append(arena, list);
    struct moon_wire_value *where = moon_wire_at(descriptor, "where");
    struct moon_wire_value *memory = where ? moon_wire_choose(arena, where, "MEMORY") : NULL;
    struct moon_wire_value *buffer = moon_wire_at(memory, "buffer");
    moon_wire_set_number(moon_wire_at(descriptor, "id"), replica->id);
    moon_wire_set_number(moon_wire_at(descriptor, "status"), replica->status);
    moon_wire_set_number(moon_wire_at(buffer, "size"), replica->size);
    moon_wire_set_number(moon_wire_at(buffer, "address"), replica->address);
    moon_wire_set_bytes(moon_wire_at(buffer, "protocol"), replica->protocol);
    moon_wire_set_bytes(moon_wire_at(buffer, "transport_endpoint"), replica->endpoint);
    return buffer ? MOON_OK : MOON_ERR_MEMORY;
}

/* Texts of replicas borrow the master only until its next call, so they are copied. */
static int put_replicas(struct request *request, struct moon_wire_value *list,
                        const struct moon_replica_list *replicas) {
    struct moon_arena *arena = request->arena;
    int status = MOON_OK;
    for (size_t i = 0; i < replicas->count && !status; i++) {
        struct moon_replica replica = replicas->replicas[i];
        replica.protocol.data = moon_arena_copy(arena, replica.protocol.data, replica.protocol.length);
        replica.endpoint.data = moon_arena_copy(arena, replica.endpoint.data, replica.endpoint.length);
        status = replica.protocol.data && replica.endpoint.data ? put_replica(arena, list, &replica) : MOON_ERR_MEMORY;
    }
    return status;
}

static int exist(struct request *request, struct moon_bytes key, struct moon_wire_value *result) {
    bool exists = false;
    int code = moon_master_exist(request->master, request->tenant, key, &exists);
    int status = put_code(request, result, code);
    moon_wire_set_number(result->first, exists);
    return status;
}

static int query(struct request *request, struct moon_bytes key, struct moon_wire_value *result) {
    struct moon_replica_list replicas;
    int code = moon_master_query(request->master, request->tenant, key, &replicas);
    int status = put_code(request, result, code);
    if (code || status)
        return status;
    moon_wire_set_number(moon_wire_at(result->first, "lease_ttl_ms"),
                         (uint64_t)(replicas.lease_ttl_ns / MOON_NS_PER_MS));
    return put_replicas(request, moon_wire_at(result->first, "replicas"), &replicas);
}

static int put_start(struct request *request, struct moon_bytes key, struct moon_wire_value *result) {
    struct moon_replica_list replicas;
    uint64_t length = moon_wire_number(request->length);
    int code = moon_master_put_start(request->master, request->client, request->tenant, key, length, &request->options,
                                     &replicas);
    int status = put_code(request, result, code);
    request->length = request->length->next;
    return code || status ? status : put_replicas(request, result->first, &replicas);
}

/* A release that sends no replica type means MEMORY, which is 0. */
static int replica_type_of(const struct request *request) {
    return (int)moon_wire_number(argument(request, "replica_type"));
}

static int put_end(struct request *request, struct moon_bytes key, struct moon_wire_value *result) {
    return put_code(
        request, result,
        moon_master_put_end(request->master, request->client, request->tenant, key, replica_type_of(request)));
}

static int put_revoke(struct request *request, struct moon_bytes key, struct moon_wire_value *result) {
    return put_code(
        request, result,
        moon_master_put_revoke(request->master, request->client, request->tenant, key, replica_type_of(request)));
}

static int remove_key(struct request *request, struct moon_bytes key, struct moon_wire_value *result) {
    bool force = moon_wire_number(argument(request, "force")) != 0;
    return put_code(request, result, moon_master_remove(request->master, request->tenant, key, force));
}

/* ---- objects: what goes before the keys */

/* CALL-024. */
static bool config_is_allowed(const struct moon_wire_value *config, size_t key_count) {
    const struct moon_wire_value *ttl = moon_wire_at(config, "soft_pin_ttl_ms");
    const struct moon_wire_value *groups = moon_wire_at(config, "group_ids");
    uint64_t action = moon_wire_number(moon_wire_at(config, "soft_pin_action"));
    if (moon_wire_number(moon_wire_at(config, "nof_replica_num")) != 0 ||
        moon_wire_number(moon_wire_at(config, "dfs_replica_num")) != 0 || action > SOFT_PIN_DISABLE)
        return false;
    if (ttl && ttl->first && (action != SOFT_PIN_ENABLE || moon_wire_number(ttl->first) > SOFT_PIN_TTL_MS_MAX))
        return false;
    return !groups || !groups->first || groups->first->count == key_count;
}

static int read_preferred(struct request *request, const struct moon_wire_value *config) {
    const struct moon_wire_value *single = moon_wire_at(config, "preferred_segment");
    const struct moon_wire_value *list = moon_wire_at(config, "preferred_segments");
    bool is_single = moon_wire_bytes(single).length > 0;
    const struct moon_wire_value *one = is_single ? single : list->first;
    size_t count = is_single ? 1 : list->count;
    struct moon_bytes *preferred = moon_arena_array(request->arena, count, sizeof *preferred);
    if (!preferred)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < count; i++, one = one->next)
        preferred[i] = moon_wire_bytes(one);
    request->options.preferred = preferred;
    request->options.preferred_count = count;
    return MOON_OK;
}

static int prepare_put_start(struct request *request, size_t key_count) {
    const struct moon_wire_value *config = argument(request, "config");
    const struct moon_wire_value *lengths = argument(request, "slice_lengths");
    request->length = lengths ? lengths->first : argument(request, "slice_length");
    request->options.replica_num = moon_wire_number(moon_wire_at(config, "replica_num"));
    request->options.with_hard_pin = moon_wire_number(moon_wire_at(config, "with_hard_pin")) != 0;
    if ((lengths && lengths->count != key_count) || !config_is_allowed(config, key_count))
        request->refusal = MOON_STORE_INVALID_PARAMS;
    return read_preferred(request, config);
}

/* ---- the table */

/* A call does `once`, or, for each of its keys, `each`, after `prepare` if there is one. */
struct row {
    const char *name;
    int (*once)(struct request *request);
    int (*each)(struct request *request, struct moon_bytes key, struct moon_wire_value *result);
    int (*prepare)(struct request *request, size_t key_count);
};

/* Sorted by name. */
static const struct row rows[] = {
    {"BatchExistKey", .each = exist},
    {"BatchGetReplicaList", .each = query},
    {"BatchPutEnd", .each = put_end},
    {"BatchPutRevoke", .each = put_revoke},
    {"BatchPutStart", .each = put_start, .prepare = prepare_put_start},
    {"BatchRemove", .each = remove_key},
    {"ExistKey", .each = exist},
    {"FetchTasks", .once = put_nothing},
    {"GetFsdir", .once = get_fsdir},
    {"GetReplicaList", .each = query},
    {"GetStorageConfig", .once = get_storage_config},
    {"MountSegment", .once = mount},
    {"Ping", .once = ping},
    {"PutEnd", .each = put_end},
    {"PutRevoke", .each = put_revoke},
    {"PutStart", .each = put_start, .prepare = prepare_put_start},
    {"ReMountSegment", .once = remount},
    {"Remove", .each = remove_key},
    {"RemoveAll", .once = remove_all},
    {"ServiceReady", .once = service_ready},
    {"UnmountSegment", .once = unmount},
};

static int compare_names(const void *name, const void *row) {
    return strcmp(name, ((const struct row *)row)->name);
}

/* CALL-022. */
static int answer_keys(const struct row *row, struct request *request) {
    struct moon_rpc_keys keys = moon_rpc_keys_of(request->arguments);
    bool batch = request->result->type->kind == MOON_WIRE_VECTOR;
    struct moon_bytes key;
    int status = row->prepare ? row->prepare(request, keys.left) : MOON_OK;
    while (!status && moon_rpc_keys_next(&keys, &key)) {
        struct moon_wire_value *result = batch ? moon_wire_append(request->arena, request->result) : request->result;
        if (!result)
            return MOON_ERR_MEMORY;
        status = request->refusal ? put_code(request, result, request->refusal) : row->each(request, key, result);
    }
    return status;
}

static int answer(struct moon_rpc_service *self, const struct moon_wire_call *call,
                  const struct moon_wire_value *arguments, struct moon_wire_value *result, struct moon_arena *arena) {
    struct moon_master_service *service = MOON_HOLDER(self, struct moon_master_service, service);
    const struct row *row =
        bsearch(call->function->name, rows, sizeof rows / sizeof *rows, sizeof *rows, compare_names);
    if (!row)
        return MOON_WIRE_RPC_NOT_REGISTERED;
    struct request request = {.master = service->master,
                              .release = service->protocol->release,
                              .arguments = arguments,
                              .result = result,
                              .arena = arena,
                              .client = moon_wire_uuid(moon_wire_at(arguments, "client_id")),
                              .tenant = moon_bytes_of(default_tenant)};
    return row->once ? row->once(&request) : answer_keys(row, &request);
}

void moon_master_service_open(struct moon_master_service *service, struct moon_master *master,
                              const struct moon_wire_protocol *protocol) {
    *service = (struct moon_master_service){.service = {answer}, .master = master, .protocol = protocol};
}
