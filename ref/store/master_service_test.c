/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the master's remote calls: all releases by the same names, batches, what a configuration may not ask for. */
#include "ref/store/master_service.h"

#include "ref/base/unit.h"
#include "ref/store/rpc_internal.h"
#include "ref/store/rpc_rig_internal.h"
#include "ref/wire/frame.h"

enum { SEGMENT_BYTES = 16 * 1024 * 1024 };

static const struct moon_uuid owner = {1, 2}, writer = {3, 4}, segment_id = {5, 6};

struct world {
    struct rig rig;
    struct rig_node node;
    struct moon_wire_protocol protocol;
    struct moon_master *master;
    struct moon_master_service service;
    struct moon_arena arena;
};

static void open_world(struct world *world, const struct moon_wire_release *release) {
    struct moon_master_settings settings = moon_master_defaults();
    rig_init(&world->rig);
    rig_node_init(&world->node, &world->rig, 0);
    MOON_CHECK_INT(moon_wire_protocol_open(&world->protocol, release, moon_memory_heap()), 0);
    world->master = moon_master_open(&world->node.environment, &settings);
    moon_master_service_open(&world->service, world->master, &world->protocol);
    moon_arena_open(&world->arena, moon_memory_heap());
}

static void close_world(struct world *world) {
    moon_arena_close(&world->arena);
    moon_master_close(world->master);
    MOON_CHECK_INT(world->node.memory.held_bytes, 0);
}

/* The zero of a call's arguments; every release has the functions that the tests name. */
static struct moon_wire_value *arguments_of(struct world *world, const char *name) {
    return moon_wire_zero(&world->arena, moon_wire_call_by_name(&world->protocol, name)->function->arguments);
}

static void set_keys(struct world *world, struct moon_wire_value *arguments, const char *const keys[], size_t count) {
    struct moon_wire_value *list = moon_wire_at(arguments, "keys"), *metas = moon_wire_at(arguments, "object_metas");
    CU_ASSERT(list || metas);
    for (size_t i = 0; i < count; i++) {
        struct moon_wire_value *one = moon_wire_append(&world->arena, list ? list : metas);
        moon_wire_set_bytes(list ? one : moon_wire_at(one, "key"), moon_bytes_of(keys[i]));
    }
}

static void set_key(struct moon_wire_value *arguments, const char *key) {
    struct moon_wire_value *meta = moon_wire_at(arguments, "object_meta");
    struct moon_wire_value *text = meta ? moon_wire_at(meta, "key") : moon_wire_at(arguments, "key");
    CU_ASSERT(text != NULL);
    moon_wire_set_bytes(text, moon_bytes_of(key));
}

/* Asks; the arguments go through the wire's form, so that they are what a client can send. Returns the err_code. */
static int ask(struct world *world, const char *name, const struct moon_wire_value *arguments,
               struct moon_wire_value **result) {
    const struct moon_wire_call *call = moon_wire_call_by_name(&world->protocol, name);
    struct moon_wire_value *decoded = NULL;
    struct moon_error error;
    struct moon_text body;
    moon_text_open(&body, moon_memory_heap());
    moon_wire_encode(arguments, true, true, &body);
    const char *copy = moon_arena_copy(&world->arena, moon_text_value(&body), body.length);
    MOON_CHECK_INT(
        moon_wire_decode(&world->arena, call->function->arguments, true, copy, body.length, NULL, &decoded, &error), 0);
    moon_text_close(&body);
    *result = moon_wire_zero(&world->arena, call->function->result);
    struct moon_rpc_service *service = &world->service.service;
    return service->answer(service, call, decoded, *result, &world->arena);
}

/* Asks and compares the result's JSON. */
static void check(struct world *world, const char *name, const struct moon_wire_value *arguments,
                  const char *expected) {
    struct moon_wire_value *result = NULL;
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    MOON_CHECK_INT(ask(world, name, arguments, &result), 0);
    moon_json_write(moon_wire_to_json(&world->arena, result), MOON_JSON_COMPACT, &text);
    if (strcmp(moon_text_value(&text), expected) != 0)
        fprintf(stderr, "%s of %s:\n", name, world->protocol.release->name);
    MOON_CHECK_TEXT(moon_text_value(&text), expected);
    moon_text_close(&text);
}

static struct moon_wire_value *with_key(struct world *world, const char *name, const char *key) {
    struct moon_wire_value *arguments = arguments_of(world, name);
    set_key(arguments, key);
    moon_wire_set_uuid(moon_wire_at(arguments, "client_id"), writer);
    moon_wire_set_number(moon_wire_at(arguments, "force"), 1);
    return arguments;
}

static struct moon_wire_value *with_keys(struct world *world, const char *name, const char *const keys[],
                                         size_t count) {
    struct moon_wire_value *arguments = arguments_of(world, name);
    set_keys(world, arguments, keys, count);
    moon_wire_set_uuid(moon_wire_at(arguments, "client_id"), writer);
    moon_wire_set_number(moon_wire_at(arguments, "force"), 1);
    return arguments;
}

static void fill_segment(struct moon_wire_value *segment) {
    moon_wire_set_uuid(moon_wire_at(segment, "id"), segment_id);
    moon_wire_set_bytes(moon_wire_at(segment, "name"), moon_bytes_of("10.0.0.1:12345"));
    moon_wire_set_number(moon_wire_at(segment, "base"), 0x100000000);
    moon_wire_set_number(moon_wire_at(segment, "size"), SEGMENT_BYTES);
    moon_wire_set_bytes(moon_wire_at(segment, "te_endpoint"), moon_bytes_of("10.0.0.1:15001"));
    moon_wire_set_bytes(moon_wire_at(segment, "protocol"), moon_bytes_of("tcp"));
}

static void mount_it(struct world *world) {
    struct moon_wire_value *mount = arguments_of(world, "MountSegment"),
                           *remount = arguments_of(world, "ReMountSegment");
    moon_wire_set_uuid(moon_wire_at(mount, "client_id"), owner);
    moon_wire_set_uuid(moon_wire_at(remount, "client_id"), owner);
    fill_segment(moon_wire_at(mount, "segment"));
    fill_segment(moon_wire_append(&world->arena, moon_wire_at(remount, "segments")));
    check(world, "MountSegment", mount, "{\"ok\":null}");
    check(world, "ReMountSegment", remount, "{\"ok\":null}");
}

static void set_up(struct world *world) {
    struct moon_wire_value *ping = arguments_of(world, "Ping");
    moon_wire_set_uuid(moon_wire_at(ping, "client_id"), owner);
    check(world, "ServiceReady", arguments_of(world, "ServiceReady"), "{\"ok\":\"2.0.0\"}");
    check(world, "GetStorageConfig", arguments_of(world, "GetStorageConfig"),
          "{\"ok\":{\"fsdir\":\"\",\"enable_disk_eviction\":true,\"quota_bytes\":0}}");
    check(world, "GetFsdir", arguments_of(world, "GetFsdir"), "{\"ok\":\"\"}");
    check(world, "FetchTasks", arguments_of(world, "FetchTasks"), "{\"ok\":[]}");
    check(world, "Ping", ping, "{\"ok\":{\"view_version_id\":0,\"client_status\":2}}");
    mount_it(world);
    check(world, "Ping", ping, "{\"ok\":{\"view_version_id\":0,\"client_status\":1}}");
}

static struct moon_wire_value *put_start_of(struct world *world, const char *key, uint64_t length) {
    struct moon_wire_value *arguments = with_key(world, "PutStart", key);
    moon_wire_set_number(moon_wire_at(arguments, "slice_length"), length);
    moon_wire_set_number(moon_wire_at(moon_wire_at(arguments, "config"), "replica_num"), 1);
    return arguments;
}

/* What a put start and a query of an only replica say, whatever its number and place are. */
static void check_replica(const struct moon_wire_value *expected, uint64_t status) {
    const struct moon_wire_value *inner = moon_wire_at(expected->first, "replicas");
    const struct moon_wire_value *list = inner ? inner : expected->first;
    CU_ASSERT_FATAL(expected->number == 1 && list->count == 1);
    const struct moon_wire_value *where = moon_wire_at(list->first, "where");
    const struct moon_wire_value *buffer = moon_wire_at(where->first, "buffer");
    MOON_CHECK_TEXT(moon_wire_choice(where), "MEMORY");
    MOON_CHECK_INT(moon_wire_number(moon_wire_at(list->first, "status")), status);
    CU_ASSERT(moon_wire_number(moon_wire_at(list->first, "id")) > 0);
    MOON_CHECK_INT(moon_wire_number(moon_wire_at(buffer, "size")), 100);
    CU_ASSERT(moon_wire_number(moon_wire_at(buffer, "address")) >= 0x100000000);
    CU_ASSERT(moon_bytes_equal(moon_wire_bytes(moon_wire_at(buffer, "protocol")), moon_bytes_of("tcp")));
    CU_ASSERT(
        moon_bytes_equal(moon_wire_bytes(moon_wire_at(buffer, "transport_endpoint")), moon_bytes_of("10.0.0.1:15001")));
}

static void every_release_is_served_by_the_same_names(void) {
    static const char *const both[] = {"b1", "b2"};
    for (const struct moon_wire_release *const *one = moon_wire_releases; *one; one++) {
        struct world world;
        struct moon_wire_value *result = NULL;
        open_world(&world, *one);
        set_up(&world);
        MOON_CHECK_INT(ask(&world, "PutStart", put_start_of(&world, "k", 100), &result), 0);
        check_replica(result, MOON_REPLICA_PROCESSING);
        check(&world, "PutStart", put_start_of(&world, "k", 100), "{\"err\":-705}");
        check(&world, "GetReplicaList", with_key(&world, "GetReplicaList", "k"), "{\"err\":-703}");
        check(&world, "ExistKey", with_key(&world, "ExistKey", "k"), "{\"ok\":false}");
        check(&world, "PutEnd", with_key(&world, "PutEnd", "k"), "{\"ok\":null}");
        check(&world, "PutRevoke", with_key(&world, "PutRevoke", "k"), "{\"err\":-700}");
        check(&world, "ExistKey", with_key(&world, "ExistKey", "k"), "{\"ok\":true}");
        MOON_CHECK_INT(ask(&world, "GetReplicaList", with_key(&world, "GetReplicaList", "k"), &result), 0);
        check_replica(result, MOON_REPLICA_COMPLETE);
        MOON_CHECK_INT(moon_wire_number(moon_wire_at(result->first, "lease_ttl_ms")), 10000);
        MOON_CHECK_INT(moon_wire_number(moon_wire_at(result->first, "object_checksum")), 0);
        struct moon_wire_value *remove = with_key(&world, "Remove", "k");
        moon_wire_set_number(moon_wire_at(remove, "force"), 0);
        check(&world, "Remove", remove, "{\"err\":-706}");
        check(&world, "Remove", with_key(&world, "Remove", "k"), "{\"ok\":null}");

        struct moon_wire_value *start = with_keys(&world, "BatchPutStart", both, 2);
        moon_wire_set_number(moon_wire_at(moon_wire_at(start, "config"), "replica_num"), 1);
        for (int i = 0; i < 2; i++)
            moon_wire_set_number(moon_wire_append(&world.arena, moon_wire_at(start, "slice_lengths")), 100);
        MOON_CHECK_INT(ask(&world, "BatchPutStart", start, &result), 0);
        check_replica(result->first, MOON_REPLICA_PROCESSING);
        check_replica(result->first->next, MOON_REPLICA_PROCESSING);
        check(&world, "BatchPutEnd", with_keys(&world, "BatchPutEnd", both, 1), "[{\"ok\":null}]");
        check(&world, "BatchPutRevoke", with_keys(&world, "BatchPutRevoke", both, 2), "[{\"err\":-700},{\"ok\":null}]");
        check(&world, "BatchExistKey", with_keys(&world, "BatchExistKey", both, 2), "[{\"ok\":true},{\"ok\":false}]");
        MOON_CHECK_INT(ask(&world, "BatchGetReplicaList", with_keys(&world, "BatchGetReplicaList", both, 2), &result),
                       0);
        check_replica(result->first, MOON_REPLICA_COMPLETE);
        MOON_CHECK_INT((int64_t)result->first->next->second, MOON_STORE_OBJECT_NOT_FOUND);
        check(&world, "BatchRemove", with_keys(&world, "BatchRemove", both, 2), "[{\"ok\":null},{\"err\":-704}]");
        check(&world, "BatchRemove", with_keys(&world, "BatchRemove", both, 0), "[]");
        struct moon_wire_value *unmount = arguments_of(&world, "UnmountSegment");
        moon_wire_set_uuid(moon_wire_at(unmount, "client_id"), owner);
        moon_wire_set_uuid(moon_wire_at(unmount, "segment_id"), segment_id);
        check(&world, "UnmountSegment", unmount, "{\"ok\":null}");
        check(&world, "PutStart", put_start_of(&world, "k", 100), "{\"err\":-200}");
        close_world(&world);
    }
}

static void other_functions_are_not_registered(void) {
    static const char *const names[] = {"UpsertStart", "CopyStart", "BatchQueryIp", "QueryTask"};
    struct world world;
    struct moon_wire_value *result = NULL;
    open_world(&world, moon_wire_releases[0]);
    for (size_t i = 0; i < 4; i++)
        MOON_CHECK_INT(ask(&world, names[i], arguments_of(&world, names[i]), &result), MOON_WIRE_RPC_NOT_REGISTERED);
    close_world(&world);
}

static void tenants_are_one(void) {
    struct world world;
    struct moon_wire_value *result = NULL;
    open_world(&world, moon_wire_releases[0]);
    mount_it(&world);
    for (int i = 0; i < 2; i++) {
        struct moon_wire_value *start = put_start_of(&world, i ? "a" : "b", 100);
        moon_wire_set_bytes(moon_wire_at(start, "tenant_id"), moon_bytes_of("tenant-a"));
        MOON_CHECK_INT(ask(&world, "PutStart", start, &result), 0);
        check(&world, "PutEnd", with_key(&world, "PutEnd", i ? "a" : "b"), "{\"ok\":null}");
    }
    struct moon_wire_value *all = arguments_of(&world, "RemoveAll");
    moon_wire_set_bytes(moon_wire_at(all, "tenant_id"), moon_bytes_of("tenant-b"));
    check(&world, "RemoveAll", all, "2");
    close_world(&world);
}

/* ---- what a put may not ask for */

static struct moon_wire_value *config_of(const struct moon_wire_value *arguments, const char *name) {
    return moon_wire_at(moon_wire_at(arguments, "config"), name);
}

static void configurations_are_checked(void) {
    static const struct {
        const char *member;
        uint64_t value, action;
        bool allowed;
    } rows[] = {{"replica_num", 0, 0, false},
                {"nof_replica_num", 1, 0, false},
                {"dfs_replica_num", 1, 0, false},
                {"soft_pin_ttl_ms", 1000, 0, false},
                {"soft_pin_ttl_ms", 1000, 1, true},
                {"soft_pin_ttl_ms", 1000, 2, false},
                {"soft_pin_ttl_ms", 86400000, 1, true},
                {"soft_pin_ttl_ms", 86400001, 1, false},
                {"with_hard_pin", 1, 1, true},
                {"with_hard_pin", 1, 2, true},
                {"with_hard_pin", 1, 3, false},
                {"prefer_alloc_in_same_node", 1, 0, true},
                {"data_type", 1, 0, true}};
    struct world world;
    open_world(&world, moon_wire_releases[0]);
    mount_it(&world);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_wire_value *start = put_start_of(&world, "k", 100), *result = NULL;
        struct moon_wire_value *member = config_of(start, rows[i].member);
        if (member->type->kind == MOON_WIRE_OPTIONAL)
            member = moon_wire_present(&world.arena, member);
        moon_wire_set_number(member, rows[i].value);
        moon_wire_set_number(config_of(start, "soft_pin_action"), rows[i].action);
        MOON_CHECK_INT(ask(&world, "PutStart", start, &result), 0);
        if (result->number != rows[i].allowed)
            fprintf(stderr, "%s %llu\n", rows[i].member, (unsigned long long)rows[i].value);
        MOON_CHECK_INT(result->number, rows[i].allowed);
        if (rows[i].allowed)
            check(&world, "PutRevoke", with_key(&world, "PutRevoke", "k"), "{\"ok\":null}");
        else
            MOON_CHECK_INT((int64_t)result->second, MOON_STORE_INVALID_PARAMS);
    }
    close_world(&world);
}

static void a_batch_has_a_length_and_a_group_for_each_key(void) {
    static const char *const both[] = {"b1", "b2"};
    /* Numbers of lengths and groups; groups -1: there are none. */
    static const struct {
        int lengths, groups;
        bool allowed;
    } rows[] = {{1, -1, false}, {3, -1, false}, {0, -1, false}, {2, 1, false},
                {2, 3, false},  {2, 2, true},   {2, -1, true}};
    struct world world;
    open_world(&world, moon_wire_releases[0]);
    mount_it(&world);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_wire_value *start = with_keys(&world, "BatchPutStart", both, 2), *result = NULL;
        moon_wire_set_number(config_of(start, "replica_num"), 1);
        for (int n = 0; n < rows[i].lengths; n++)
            moon_wire_set_number(moon_wire_append(&world.arena, moon_wire_at(start, "slice_lengths")), 100);
        struct moon_wire_value *groups =
            rows[i].groups < 0 ? NULL : moon_wire_present(&world.arena, config_of(start, "group_ids"));
        for (int n = 0; n < rows[i].groups; n++)
            moon_wire_set_bytes(moon_wire_append(&world.arena, groups), moon_bytes_of("g"));
        if (rows[i].allowed) {
            MOON_CHECK_INT(ask(&world, "BatchPutStart", start, &result), 0);
            MOON_CHECK_INT(result->first->number + result->first->next->number, 2);
            check(&world, "BatchPutRevoke", with_keys(&world, "BatchPutRevoke", both, 2),
                  "[{\"ok\":null},{\"ok\":null}]");
        } else
            check(&world, "BatchPutStart", start, "[{\"err\":-600},{\"err\":-600}]");
    }
    close_world(&world);
}

static void preferred_segments_reach_the_master(void) {
    static const char *const names[] = {"10.0.0.1:1", "10.0.0.1:2", "10.0.0.1:3"};
    struct world world;
    open_world(&world, moon_wire_releases[0]);
    for (uint64_t i = 0; i < 3; i++) {
        struct moon_wire_value *mount = arguments_of(&world, "MountSegment");
        struct moon_wire_value *segment = moon_wire_at(mount, "segment");
        moon_wire_set_uuid(moon_wire_at(mount, "client_id"), owner);
        fill_segment(segment);
        moon_wire_set_uuid(moon_wire_at(segment, "id"), (struct moon_uuid){9, i});
        moon_wire_set_bytes(moon_wire_at(segment, "name"), moon_bytes_of(names[i]));
        moon_wire_set_number(moon_wire_at(segment, "base"), (i + 1) << 32);
        check(&world, "MountSegment", mount, "{\"ok\":null}");
    }
    for (uint64_t i = 0; i < 60; i++) { /* the single one wins over the list */
        char key[16];
        struct moon_wire_value *result = NULL;
        snprintf(key, sizeof key, "k%u", (unsigned)i);
        struct moon_wire_value *start = put_start_of(&world, key, 100);
        uint64_t wanted = i % 3, other = (i + 1) % 3;
        if (i % 2)
            moon_wire_set_bytes(config_of(start, "preferred_segment"), moon_bytes_of(names[wanted]));
        moon_wire_set_bytes(moon_wire_append(&world.arena, config_of(start, "preferred_segments")),
                            moon_bytes_of(names[i % 2 ? other : wanted]));
        MOON_CHECK_INT(ask(&world, "PutStart", start, &result), 0);
        CU_ASSERT_FATAL(result->number == 1);
        const struct moon_wire_value *where = moon_wire_at(result->first->first, "where");
        const struct moon_wire_value *buffer = moon_wire_at(where->first, "buffer");
        MOON_CHECK_INT(moon_wire_number(moon_wire_at(buffer, "address")) >> 32, wanted + 1);
    }
    close_world(&world);
}

/* Arenas that are full before each piece in turn: the call says that memory was refused. */
static void refused_memory_is_told(void) {
    static const char *const names[] = {"ServiceReady", "GetStorageConfig", "FetchTasks",
                                        "Ping",         "ExistKey",         "GetReplicaList",
                                        "PutStart",     "ReMountSegment",   "BatchExistKey"};
    static const char *const keys[] = {"a", "b", "c"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct world world;
        struct moon_wire_value *result = NULL;
        bool refused = false, answered = false;
        open_world(&world, moon_wire_releases[0]);
        set_up(&world);
        MOON_CHECK_INT(ask(&world, "PutStart", put_start_of(&world, "k", 100), &result), 0);
        check(&world, "PutEnd", with_key(&world, "PutEnd", "k"), "{\"ok\":null}");
        const struct moon_wire_call *call = moon_wire_call_by_name(&world.protocol, names[i]);
        struct moon_wire_value *arguments = strncmp(names[i], "Batch", 5) == 0  ? with_keys(&world, names[i], keys, 3)
                                            : strcmp(names[i], "PutStart") == 0 ? put_start_of(&world, "n", 100)
                                                                                : arguments_of(&world, names[i]);
        moon_wire_set_bytes(strcmp(names[i], "PutStart") ? moon_wire_at(arguments, "key") : NULL, moon_bytes_of("k"));
        if (moon_wire_at(arguments, "segments"))
            moon_wire_append(&world.arena, moon_wire_at(arguments, "segments"));
        for (size_t left = 0; left < 3200; left += 16) {
            struct moon_memory_failing failing;
            struct moon_arena arena;
            moon_memory_failing_init(&failing, moon_memory_heap(), 2);
            moon_arena_open(&arena, &failing.memory);
            result = moon_wire_zero(&arena, call->function->result);
            moon_arena_alloc(&arena, 4096 - 32 - left - (size_t)arena.used_bytes);
            int code = world.service.service.answer(&world.service.service, call, arguments, result, &arena);
            CU_ASSERT(code == 0 || code == MOON_ERR_MEMORY);
            refused = refused || code;
            answered = answered || !code;
            moon_arena_close(&arena);
            MOON_CHECK_INT(failing.held_bytes, 0);
        }
        CU_ASSERT(refused && answered);
        close_world(&world);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"every release is served by the same names", every_release_is_served_by_the_same_names},
        {"other functions are not registered", other_functions_are_not_registered},
        {"tenants are one", tenants_are_one},
        {"configurations are checked", configurations_are_checked},
        {"a batch has a length and a group for each key", a_batch_has_a_length_and_a_group_for_each_key},
        {"preferred segments reach the master", preferred_segments_reach_the_master},
        {"refused memory is told", refused_memory_is_told},
        {NULL, NULL},
    };
    return moon_unit_main("master service", cases, argc, argv);
}
