/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: the types and functions of each Mooncake release. A new release is a new table here and no code. */
#include "ref/wire/release.h"

#include "ref/wire/handshake.h"

/* clang-format off */

#define STRUCT(name, ...)                                                                                              \
    static const struct moon_wire_type name = {                                                                        \
        .kind = MOON_WIRE_STRUCT, .members = (const struct moon_wire_member[]){__VA_ARGS__, {NULL, NULL}}};
#define VARIANT(name, ...)                                                                                             \
    static const struct moon_wire_type name = {                                                                        \
        .kind = MOON_WIRE_VARIANT, .members = (const struct moon_wire_member[]){__VA_ARGS__, {NULL, NULL}}};
#define LIST(name, element) static const struct moon_wire_type name = {.kind = MOON_WIRE_VECTOR, .of = &(element)};
#define OPTIONAL(name, element) static const struct moon_wire_type name = {.kind = MOON_WIRE_OPTIONAL, .of = &(element)};
#define EXPECTED(name, result) static const struct moon_wire_type name = {.kind = MOON_WIRE_EXPECTED, .of = &(result)};
#define MAP(name, key, to) static const struct moon_wire_type name = {.kind = MOON_WIRE_MAP, .of = &(key), .value = &(to)};
#define ARGUMENTS(...)                                                                                                 \
    &(const struct moon_wire_type){.kind = MOON_WIRE_STRUCT,                                                           \
                                   .members = (const struct moon_wire_member[]){__VA_ARGS__, {NULL, NULL}}}

static const struct moon_wire_type nothing = {.kind = MOON_WIRE_VOID};
static const struct moon_wire_type boolean = {.kind = MOON_WIRE_BOOL};
static const struct moon_wire_type u8 = {.kind = MOON_WIRE_U8};
static const struct moon_wire_type u32 = {.kind = MOON_WIRE_U32};
static const struct moon_wire_type u64 = {.kind = MOON_WIRE_U64};
static const struct moon_wire_type i32 = {.kind = MOON_WIRE_I32};
static const struct moon_wire_type i64 = {.kind = MOON_WIRE_I64};
static const struct moon_wire_type uuid = {.kind = MOON_WIRE_UUID};
static const struct moon_wire_type string = {.kind = MOON_WIRE_STRING};

/* ---- types. The number behind a name is the newest release line that has this form: 13 for 0.3.13. */

EXPECTED(expected_boolean, boolean)
STRUCT(buffer, {"size", &u64}, {"address", &u64}, {"protocol", &string}, {"transport_endpoint", &string})
STRUCT(memory_replica, {"buffer", &buffer})
STRUCT(disk_replica, {"file_path", &string}, {"object_size", &u64})
STRUCT(local_disk_replica, {"client_id", &uuid}, {"object_size", &u64}, {"transport_endpoint", &string})
VARIANT(where_10, {"MEMORY", &memory_replica}, {"DISK", &disk_replica}, {"LOCAL_DISK", &local_disk_replica})
STRUCT(descriptor_10, {"id", &u64}, {"where", &where_10}, {"status", &i32})
LIST(list_of_descriptor_10, descriptor_10)
STRUCT(copy_start_10, {"source", &descriptor_10}, {"targets", &list_of_descriptor_10})
EXPECTED(expected_copy_start_10, copy_start_10)
VARIANT(where_12, {"MEMORY", &memory_replica}, {"NOF", &memory_replica}, {"DISK", &disk_replica}, {"LOCAL_DISK", &local_disk_replica})
STRUCT(descriptor_12, {"id", &u64}, {"where", &where_12}, {"status", &i32})
LIST(list_of_descriptor_12, descriptor_12)
STRUCT(copy_start_12, {"source", &descriptor_12}, {"targets", &list_of_descriptor_12})
EXPECTED(expected_copy_start_12, copy_start_12)
STRUCT(dfs_replica, {"file_path", &string}, {"offset", &u64}, {"object_size", &u64}, {"aligned_size", &u64}, {"shard", &i32})
VARIANT(where_13, {"MEMORY", &memory_replica}, {"NOF", &memory_replica}, {"DISK", &disk_replica}, {"LOCAL_DISK", &local_disk_replica},
       {"DFS", &dfs_replica})
STRUCT(descriptor_13, {"id", &u64}, {"where", &where_13}, {"status", &i32})
LIST(list_of_descriptor_13, descriptor_13)
STRUCT(copy_start_13, {"source", &descriptor_13}, {"targets", &list_of_descriptor_13})
EXPECTED(expected_copy_start_13, copy_start_13)
EXPECTED(expected_i32, i32)
EXPECTED(expected_i64, i64)
EXPECTED(expected_list_of_descriptor_10, list_of_descriptor_10)
EXPECTED(expected_list_of_descriptor_12, list_of_descriptor_12)
EXPECTED(expected_list_of_descriptor_13, list_of_descriptor_13)
STRUCT(nof_owner, {"segment_id", &uuid}, {"client_id", &uuid})
LIST(list_of_nof_owner, nof_owner)
EXPECTED(expected_list_of_nof_owner, list_of_nof_owner)
STRUCT(nof_segment, {"id", &uuid}, {"name", &string}, {"base", &u64}, {"size", &u64}, {"te_endpoint", &string})
LIST(list_of_nof_segment, nof_segment)
EXPECTED(expected_list_of_nof_segment, list_of_nof_segment)
STRUCT(offload_task, {"tenant_id", &string}, {"key", &string}, {"size", &i64})
LIST(list_of_offload_task, offload_task)
EXPECTED(expected_list_of_offload_task, list_of_offload_task)
LIST(list_of_string, string)
EXPECTED(expected_list_of_string, list_of_string)
STRUCT(task_assignment, {"id", &uuid}, {"type", &i32}, {"payload", &string}, {"created_at_ms_epoch", &i64},
       {"max_retry_attempts", &u32})
LIST(list_of_task_assignment, task_assignment)
EXPECTED(expected_list_of_task_assignment, list_of_task_assignment)
MAP(map_by_uuid, uuid, list_of_string)
EXPECTED(expected_map_by_uuid, map_by_uuid)
MAP(map_of_i64, string, i64)
EXPECTED(expected_map_of_i64, map_of_i64)
MAP(map_of_list_of_descriptor_10, string, list_of_descriptor_10)
EXPECTED(expected_map_of_list_of_descriptor_10, map_of_list_of_descriptor_10)
MAP(map_of_list_of_descriptor_12, string, list_of_descriptor_12)
EXPECTED(expected_map_of_list_of_descriptor_12, map_of_list_of_descriptor_12)
MAP(map_of_list_of_descriptor_13, string, list_of_descriptor_13)
EXPECTED(expected_map_of_list_of_descriptor_13, map_of_list_of_descriptor_13)
OPTIONAL(optional_descriptor_10, descriptor_10)
STRUCT(move_start_10, {"source", &descriptor_10}, {"target", &optional_descriptor_10})
EXPECTED(expected_move_start_10, move_start_10)
OPTIONAL(optional_descriptor_12, descriptor_12)
STRUCT(move_start_12, {"source", &descriptor_12}, {"target", &optional_descriptor_12})
EXPECTED(expected_move_start_12, move_start_12)
OPTIONAL(optional_descriptor_13, descriptor_13)
STRUCT(move_start_13, {"source", &descriptor_13}, {"target", &optional_descriptor_13})
EXPECTED(expected_move_start_13, move_start_13)
EXPECTED(expected_nothing, nothing)
LIST(list_of_u64, u64)
STRUCT(offload_read, {"batch_id", &u64}, {"pointers", &list_of_u64}, {"transfer_engine_addr", &string}, {"gc_ttl_ms", &u64})
EXPECTED(expected_offload_read, offload_read)
STRUCT(ping_answer, {"view_version_id", &i64}, {"client_status", &i32})
EXPECTED(expected_ping_answer, ping_answer)
STRUCT(promotion_12, {"memory_descriptor", &descriptor_12})
EXPECTED(expected_promotion_12, promotion_12)
STRUCT(promotion_13, {"memory_descriptor", &descriptor_13})
EXPECTED(expected_promotion_13, promotion_13)
STRUCT(replicas_10, {"replicas", &list_of_descriptor_10}, {"lease_ttl_ms", &u64})
EXPECTED(expected_replicas_10, replicas_10)
STRUCT(replicas_12, {"replicas", &list_of_descriptor_12}, {"lease_ttl_ms", &u64})
EXPECTED(expected_replicas_12, replicas_12)
OPTIONAL(optional_u64, u64)
STRUCT(replicas_13, {"replicas", &list_of_descriptor_13}, {"lease_ttl_ms", &u64}, {"object_checksum", &optional_u64})
EXPECTED(expected_replicas_13, replicas_13)
STRUCT(storage_config, {"fsdir", &string}, {"enable_disk_eviction", &boolean}, {"quota_bytes", &u64})
EXPECTED(expected_storage_config, storage_config)
EXPECTED(expected_string, string)
STRUCT(task, {"id", &uuid}, {"type", &i32}, {"status", &i32}, {"created_at_ms_epoch", &i64},
       {"last_updated_at_ms_epoch", &i64}, {"assigned_client", &uuid}, {"message", &string})
EXPECTED(expected_task, task)
EXPECTED(expected_uuid, uuid)
LIST(list_of_expected_boolean, expected_boolean)
LIST(list_of_expected_list_of_descriptor_10, expected_list_of_descriptor_10)
LIST(list_of_expected_list_of_descriptor_12, expected_list_of_descriptor_12)
LIST(list_of_expected_list_of_descriptor_13, expected_list_of_descriptor_13)
LIST(list_of_expected_nothing, expected_nothing)
LIST(list_of_expected_replicas_10, expected_replicas_10)
LIST(list_of_expected_replicas_12, expected_replicas_12)
LIST(list_of_expected_replicas_13, expected_replicas_13)
LIST(list_of_i64, i64)
STRUCT(object_meta, {"key", &string}, {"object_checksum", &optional_u64})
LIST(list_of_object_meta, object_meta)
STRUCT(segment_11, {"id", &uuid}, {"name", &string}, {"base", &u64}, {"size", &u64}, {"te_endpoint", &string},
       {"protocol", &string})
LIST(list_of_segment_11, segment_11)
STRUCT(segment_13, {"id", &uuid}, {"name", &string}, {"base", &u64}, {"size", &u64}, {"te_endpoint", &string},
       {"protocol", &string}, {"host_id", &string})
LIST(list_of_segment_13, segment_13)
STRUCT(stored_object, {"bucket_id", &i64}, {"offset", &i64}, {"key_size", &i64}, {"data_size", &i64},
       {"transport_endpoint", &string})
LIST(list_of_stored_object, stored_object)
LIST(list_of_uuid, uuid)
STRUCT(replicate_config_10, {"replica_num", &u64}, {"with_soft_pin", &boolean}, {"with_hard_pin", &boolean},
       {"preferred_segments", &list_of_string}, {"preferred_segment", &string}, {"prefer_alloc_in_same_node", &boolean})
STRUCT(replicate_config_11, {"replica_num", &u64}, {"nof_replica_num", &u64}, {"with_soft_pin", &boolean},
       {"with_hard_pin", &boolean}, {"preferred_segments", &list_of_string}, {"preferred_segment", &string},
       {"preferred_nof_segments", &list_of_string}, {"prefer_alloc_in_same_node", &boolean}, {"data_type", &u8})
OPTIONAL(optional_list_of_string, list_of_string)
STRUCT(replicate_config_12, {"replica_num", &u64}, {"nof_replica_num", &u64}, {"with_soft_pin", &boolean},
       {"with_hard_pin", &boolean}, {"preferred_segments", &list_of_string}, {"preferred_segment", &string},
       {"preferred_nof_segments", &list_of_string}, {"prefer_alloc_in_same_node", &boolean}, {"data_type", &u8},
       {"host_id", &string}, {"group_ids", &optional_list_of_string})
STRUCT(replicate_config_13, {"replica_num", &u64}, {"nof_replica_num", &u64}, {"dfs_replica_num", &u64},
       {"soft_pin_action", &u8}, {"soft_pin_ttl_ms", &optional_u64}, {"with_hard_pin", &boolean}, {"preferred_segments", &list_of_string},
       {"preferred_segment", &string}, {"preferred_nof_segments", &list_of_string}, {"prefer_alloc_in_same_node", &boolean},
       {"data_type", &u8}, {"host_id", &string}, {"group_ids", &optional_list_of_string})
STRUCT(task_result, {"id", &uuid}, {"status", &i32}, {"message", &string})

static const struct moon_wire_type no_arguments = {
    .kind = MOON_WIRE_STRUCT, .members = (const struct moon_wire_member[]){{NULL, NULL}}};

/* ---- functions: of the newest release all, of each older one what differs from the next newer */

static const struct moon_wire_function functions_13[] = {
    {"BatchEvictDiskReplica", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"tenant_id", &string},
     {"replica_type", &i32}), &list_of_expected_nothing},
    {"BatchExistKey", ARGUMENTS({"keys", &list_of_string}, {"tenant_id", &string}), &list_of_expected_boolean},
    {"BatchGetReplicaList", ARGUMENTS({"keys", &list_of_string}, {"tenant_id", &string}),
     &list_of_expected_replicas_13},
    {"BatchPutEnd", ARGUMENTS({"client_id", &uuid}, {"object_metas", &list_of_object_meta}, {"replica_type", &i32},
     {"tenant_id", &string}), &list_of_expected_nothing},
    {"BatchPutRevoke", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"replica_type", &i32}, {"tenant_id", &string}),
     &list_of_expected_nothing},
    {"BatchPutStart", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"slice_lengths", &list_of_u64},
     {"config", &replicate_config_13}, {"tenant_id", &string}), &list_of_expected_list_of_descriptor_13},
    {"BatchQueryIp", ARGUMENTS({"client_ids", &list_of_uuid}), &expected_map_by_uuid},
    {"BatchRemove", ARGUMENTS({"keys", &list_of_string}, {"force", &boolean}, {"tenant_id", &string}),
     &list_of_expected_nothing},
    {"BatchReplicaClear", ARGUMENTS({"keys", &list_of_string}, {"client_id", &uuid}, {"segment_name", &string}),
     &expected_list_of_string},
    {"BatchUpsertEnd", ARGUMENTS({"client_id", &uuid}, {"object_metas", &list_of_object_meta}, {"tenant_id", &string}),
     &list_of_expected_nothing},
    {"BatchUpsertRevoke", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"tenant_id", &string}),
     &list_of_expected_nothing},
    {"BatchUpsertStart", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"slice_lengths", &list_of_u64},
     {"config", &replicate_config_13}, {"tenant_id", &string}), &list_of_expected_list_of_descriptor_13},
    {"CopyEnd", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}), &expected_nothing},
    {"CopyRevoke", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}), &expected_nothing},
    {"CopyStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}, {"src_segment", &string},
     {"tgt_segments", &list_of_string}), &expected_copy_start_13},
    {"CreateCopyTask", ARGUMENTS({"key", &string}, {"tenant_id", &string}, {"targets", &list_of_string}),
     &expected_uuid},
    {"CreateMoveTask", ARGUMENTS({"key", &string}, {"tenant_id", &string}, {"source", &string}, {"target", &string}),
     &expected_uuid},
    {"DynamicReplicaCopyEnd", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}, {"lease_id", &uuid},
     {"version_epoch", &u64}), &expected_nothing},
    {"DynamicReplicaCopyRevoke", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}, {"lease_id", &uuid},
     {"version_epoch", &u64}), &expected_nothing},
    {"DynamicReplicaCopyStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string},
     {"src_segment", &string}, {"tgt_segments", &list_of_string}, {"lease_id", &uuid}, {"version_epoch", &u64}),
     &expected_copy_start_13},
    {"EvictDiskReplica", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}, {"replica_type", &i32}),
     &expected_nothing},
    {"ExistKey", ARGUMENTS({"key", &string}, {"tenant_id", &string}), &expected_boolean},
    {"FetchTasks", ARGUMENTS({"client_id", &uuid}, {"batch_size", &u64}), &expected_list_of_task_assignment},
    {"GetAllNoFSegments", &no_arguments, &expected_list_of_nof_segment},
    {"GetFsdir", &no_arguments, &expected_string},
    {"GetNoFSegmentsByName", ARGUMENTS({"segment_name", &string}), &expected_list_of_nof_owner},
    {"GetReplicaList", ARGUMENTS({"key", &string}, {"tenant_id", &string}), &expected_replicas_13},
    {"GetReplicaListByRegex", ARGUMENTS({"regex", &string}, {"tenant_id", &string}),
     &expected_map_of_list_of_descriptor_13},
    {"GetStorageConfig", &no_arguments, &expected_storage_config},
    {"GracefulUnmountSegment", ARGUMENTS({"segment_id", &uuid}, {"client_id", &uuid}, {"grace_period_ms", &u64}),
     &expected_nothing},
    {"MarkTaskToComplete", ARGUMENTS({"client_id", &uuid}, {"request", &task_result}), &expected_nothing},
    {"MountLocalDiskSegment", ARGUMENTS({"client_id", &uuid}, {"enable_offloading", &boolean}), &expected_nothing},
    {"MountNoFSegment", ARGUMENTS({"segment", &nof_segment}, {"client_id", &uuid}), &expected_nothing},
    {"MountSegment", ARGUMENTS({"segment", &segment_13}, {"client_id", &uuid}), &expected_nothing},
    {"MoveEnd", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}), &expected_nothing},
    {"MoveRevoke", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}), &expected_nothing},
    {"MoveStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}, {"src_segment", &string},
     {"tgt_segment", &string}), &expected_move_start_13},
    {"NotifyOffloadSuccess", ARGUMENTS({"client_id", &uuid}, {"tasks", &list_of_offload_task}, {"metadatas", &list_of_stored_object}),
     &expected_nothing},
    {"NotifyPromotionFailure", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}),
     &expected_nothing},
    {"NotifyPromotionSuccess", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}),
     &expected_nothing},
    {"OffloadObjectHeartbeat", ARGUMENTS({"client_id", &uuid}, {"enable_offloading", &boolean}),
     &expected_list_of_offload_task},
    {"Ping", ARGUMENTS({"client_id", &uuid}), &expected_ping_answer},
    {"PollRemoveAll", ARGUMENTS({"client_id", &uuid}), &expected_boolean},
    {"PromotionAllocStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}, {"size", &u64},
     {"preferred_segments", &list_of_string}), &expected_promotion_13},
    {"PromotionObjectHeartbeat", ARGUMENTS({"client_id", &uuid}), &expected_list_of_offload_task},
    {"PutEnd", ARGUMENTS({"client_id", &uuid}, {"object_meta", &object_meta}, {"replica_type", &i32}, {"tenant_id", &string}),
     &expected_nothing},
    {"PutRevoke", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"replica_type", &i32}, {"tenant_id", &string}),
     &expected_nothing},
    {"PutStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"slice_length", &u64}, {"config", &replicate_config_13},
     {"tenant_id", &string}), &expected_list_of_descriptor_13},
    {"QuerySegmentStatus", ARGUMENTS({"segment_name", &string}), &expected_i32},
    {"QuerySegmentStatusById", ARGUMENTS({"segment_id", &uuid}), &expected_i32},
    {"QueryTask", ARGUMENTS({"task_id", &uuid}), &expected_task},
    {"ReMountNoFSegment", ARGUMENTS({"segments", &list_of_nof_segment}, {"client_id", &uuid}), &expected_nothing},
    {"ReMountSegment", ARGUMENTS({"segments", &list_of_segment_13}, {"client_id", &uuid}), &expected_nothing},
    {"RealClient::batch_get_offload_object", ARGUMENTS({"keys", &list_of_string}, {"sizes", &list_of_i64}),
     &expected_offload_read},
    {"RealClient::release_offload_buffer", ARGUMENTS({"batch_id", &u64}), &boolean},
    {"Remove", ARGUMENTS({"key", &string}, {"force", &boolean}, {"tenant_id", &string}), &expected_nothing},
    {"RemoveAll", ARGUMENTS({"force", &boolean}, {"tenant_id", &string}), &i64},
    {"RemoveByRegex", ARGUMENTS({"regex", &string}, {"force", &boolean}, {"tenant_id", &string}), &expected_i64},
    {"ReportSsdCapacity", ARGUMENTS({"client_id", &uuid}, {"ssd_total_capacity_bytes", &i64}), &expected_nothing},
    {"ServiceReady", &no_arguments, &expected_string},
    {"UnmountLocalDiskSegment", ARGUMENTS({"client_id", &uuid}), &expected_nothing},
    {"UnmountNoFSegment", ARGUMENTS({"segment_id", &uuid}, {"client_id", &uuid}), &expected_nothing},
    {"UnmountSegment", ARGUMENTS({"segment_id", &uuid}, {"client_id", &uuid}), &expected_nothing},
    {"UpsertEnd", ARGUMENTS({"client_id", &uuid}, {"object_meta", &object_meta}, {"replica_type", &i32}, {"tenant_id", &string}),
     &expected_nothing},
    {"UpsertRevoke", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"replica_type", &i32}, {"tenant_id", &string}),
     &expected_nothing},
    {"UpsertStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"slice_length", &u64}, {"config", &replicate_config_13},
     {"tenant_id", &string}), &expected_list_of_descriptor_13},
    {NULL, NULL, NULL},
};

static const struct moon_wire_function functions_12[] = {
    {"BatchGetReplicaList", ARGUMENTS({"keys", &list_of_string}, {"tenant_id", &string}),
     &list_of_expected_replicas_12},
    {"BatchPutEnd", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"replica_type", &i32}, {"tenant_id", &string}),
     &list_of_expected_nothing},
    {"BatchPutStart", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"slice_lengths", &list_of_u64},
     {"config", &replicate_config_12}, {"tenant_id", &string}), &list_of_expected_list_of_descriptor_12},
    {"BatchUpsertEnd", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"tenant_id", &string}),
     &list_of_expected_nothing},
    {"BatchUpsertStart", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"slice_lengths", &list_of_u64},
     {"config", &replicate_config_12}, {"tenant_id", &string}), &list_of_expected_list_of_descriptor_12},
    {"CopyStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}, {"src_segment", &string},
     {"tgt_segments", &list_of_string}), &expected_copy_start_12},
    {"DynamicReplicaCopyEnd", NULL, NULL},
    {"DynamicReplicaCopyRevoke", NULL, NULL},
    {"DynamicReplicaCopyStart", NULL, NULL},
    {"GetReplicaList", ARGUMENTS({"key", &string}, {"tenant_id", &string}), &expected_replicas_12},
    {"GetReplicaListByRegex", ARGUMENTS({"regex", &string}, {"tenant_id", &string}),
     &expected_map_of_list_of_descriptor_12},
    {"MoveStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}, {"src_segment", &string},
     {"tgt_segment", &string}), &expected_move_start_12},
    {"PromotionAllocStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"tenant_id", &string}, {"size", &u64},
     {"preferred_segments", &list_of_string}), &expected_promotion_12},
    {"PutEnd", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"replica_type", &i32}, {"tenant_id", &string}),
     &expected_nothing},
    {"PutStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"slice_length", &u64}, {"config", &replicate_config_12},
     {"tenant_id", &string}), &expected_list_of_descriptor_12},
    {"UnmountLocalDiskSegment", NULL, NULL},
    {"UpsertEnd", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"replica_type", &i32}, {"tenant_id", &string}),
     &expected_nothing},
    {"UpsertStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"slice_length", &u64}, {"config", &replicate_config_12},
     {"tenant_id", &string}), &expected_list_of_descriptor_12},
    {NULL, NULL, NULL},
};

static const struct moon_wire_function functions_11[] = {
    {"BatchEvictDiskReplica", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"replica_type", &i32}),
     &list_of_expected_nothing},
    {"BatchExistKey", ARGUMENTS({"keys", &list_of_string}), &list_of_expected_boolean},
    {"BatchGetReplicaList", ARGUMENTS({"keys", &list_of_string}), &list_of_expected_replicas_12},
    {"BatchPutEnd", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"replica_type", &i32}),
     &list_of_expected_nothing},
    {"BatchPutRevoke", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"replica_type", &i32}),
     &list_of_expected_nothing},
    {"BatchPutStart", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"slice_lengths", &list_of_u64},
     {"config", &replicate_config_11}), &list_of_expected_list_of_descriptor_12},
    {"BatchRemove", ARGUMENTS({"keys", &list_of_string}, {"force", &boolean}), &list_of_expected_nothing},
    {"BatchUpsertEnd", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}), &list_of_expected_nothing},
    {"BatchUpsertRevoke", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}), &list_of_expected_nothing},
    {"BatchUpsertStart", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"slice_lengths", &list_of_u64},
     {"config", &replicate_config_11}), &list_of_expected_list_of_descriptor_12},
    {"CopyEnd", ARGUMENTS({"client_id", &uuid}, {"key", &string}), &expected_nothing},
    {"CopyRevoke", ARGUMENTS({"client_id", &uuid}, {"key", &string}), &expected_nothing},
    {"CopyStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"src_segment", &string}, {"tgt_segments", &list_of_string}),
     &expected_copy_start_12},
    {"CreateCopyTask", ARGUMENTS({"key", &string}, {"targets", &list_of_string}), &expected_uuid},
    {"CreateMoveTask", ARGUMENTS({"key", &string}, {"source", &string}, {"target", &string}), &expected_uuid},
    {"EvictDiskReplica", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"replica_type", &i32}), &expected_nothing},
    {"ExistKey", ARGUMENTS({"key", &string}), &expected_boolean},
    {"GetReplicaList", ARGUMENTS({"key", &string}), &expected_replicas_12},
    {"GetReplicaListByRegex", ARGUMENTS({"regex", &string}), &expected_map_of_list_of_descriptor_12},
    {"MountSegment", ARGUMENTS({"segment", &segment_11}, {"client_id", &uuid}), &expected_nothing},
    {"MoveEnd", ARGUMENTS({"client_id", &uuid}, {"key", &string}), &expected_nothing},
    {"MoveRevoke", ARGUMENTS({"client_id", &uuid}, {"key", &string}), &expected_nothing},
    {"MoveStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"src_segment", &string}, {"tgt_segment", &string}),
     &expected_move_start_12},
    {"NotifyOffloadSuccess", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"metadatas", &list_of_stored_object}),
     &expected_nothing},
    {"NotifyPromotionFailure", ARGUMENTS({"client_id", &uuid}, {"key", &string}), &expected_nothing},
    {"NotifyPromotionSuccess", ARGUMENTS({"client_id", &uuid}, {"key", &string}), &expected_nothing},
    {"OffloadObjectHeartbeat", ARGUMENTS({"client_id", &uuid}, {"enable_offloading", &boolean}), &expected_map_of_i64},
    {"PollRemoveAll", NULL, NULL},
    {"PromotionAllocStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"size", &u64}, {"preferred_segments", &list_of_string}),
     &expected_promotion_12},
    {"PromotionObjectHeartbeat", ARGUMENTS({"client_id", &uuid}), &expected_map_of_i64},
    {"PutEnd", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"replica_type", &i32}), &expected_nothing},
    {"PutRevoke", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"replica_type", &i32}), &expected_nothing},
    {"PutStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"slice_length", &u64}, {"config", &replicate_config_11}),
     &expected_list_of_descriptor_12},
    {"ReMountSegment", ARGUMENTS({"segments", &list_of_segment_11}, {"client_id", &uuid}), &expected_nothing},
    {"RealClient::batch_get_offload_object", NULL, NULL},
    {"RealClient::release_offload_buffer", NULL, NULL},
    {"Remove", ARGUMENTS({"key", &string}, {"force", &boolean}), &expected_nothing},
    {"RemoveAll", ARGUMENTS({"force", &boolean}), &i64},
    {"RemoveByRegex", ARGUMENTS({"regex", &string}, {"force", &boolean}), &expected_i64},
    {"UpsertEnd", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"replica_type", &i32}), &expected_nothing},
    {"UpsertRevoke", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"replica_type", &i32}), &expected_nothing},
    {"UpsertStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"slice_length", &u64}, {"config", &replicate_config_11}),
     &expected_list_of_descriptor_12},
    {NULL, NULL, NULL},
};

static const struct moon_wire_function functions_10[] = {
    {"BatchGetReplicaList", ARGUMENTS({"keys", &list_of_string}), &list_of_expected_replicas_10},
    {"BatchPutEnd", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}), &list_of_expected_nothing},
    {"BatchPutRevoke", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}), &list_of_expected_nothing},
    {"BatchPutStart", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"slice_lengths", &list_of_u64},
     {"config", &replicate_config_10}), &list_of_expected_list_of_descriptor_10},
    {"BatchUpsertStart", ARGUMENTS({"client_id", &uuid}, {"keys", &list_of_string}, {"slice_lengths", &list_of_u64},
     {"config", &replicate_config_10}), &list_of_expected_list_of_descriptor_10},
    {"CopyStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"src_segment", &string}, {"tgt_segments", &list_of_string}),
     &expected_copy_start_10},
    {"GetAllNoFSegments", NULL, NULL},
    {"GetNoFSegmentsByName", NULL, NULL},
    {"GetReplicaList", ARGUMENTS({"key", &string}), &expected_replicas_10},
    {"GetReplicaListByRegex", ARGUMENTS({"regex", &string}), &expected_map_of_list_of_descriptor_10},
    {"GracefulUnmountSegment", NULL, NULL},
    {"MountNoFSegment", NULL, NULL},
    {"MoveStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"src_segment", &string}, {"tgt_segment", &string}),
     &expected_move_start_10},
    {"NotifyPromotionFailure", NULL, NULL},
    {"NotifyPromotionSuccess", NULL, NULL},
    {"PromotionAllocStart", NULL, NULL},
    {"PromotionObjectHeartbeat", NULL, NULL},
    {"PutStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"slice_length", &u64}, {"config", &replicate_config_10}),
     &expected_list_of_descriptor_10},
    {"QuerySegmentStatus", NULL, NULL},
    {"QuerySegmentStatusById", NULL, NULL},
    {"ReMountNoFSegment", NULL, NULL},
    {"ReportSsdCapacity", NULL, NULL},
    {"UnmountNoFSegment", NULL, NULL},
    {"UpsertStart", ARGUMENTS({"client_id", &uuid}, {"key", &string}, {"slice_length", &u64}, {"config", &replicate_config_10}),
     &expected_list_of_descriptor_10},
    {NULL, NULL, NULL},
};

/* clang-format on */

static const struct moon_wire_release release_13 = {.name = "0.3.13.post1",
                                                    .version = "2.0.0",
                                                    .metadata = MOON_WIRE_METADATA_PROTOCOL_VERSION |
                                                                MOON_WIRE_METADATA_SERVER_NAMES,
                                                    .newer = NULL,
                                                    .functions = functions_13};
static const struct moon_wire_release release_12 = {.name = "0.3.12.post1",
                                                    .version = "2.0.0",
                                                    .metadata = MOON_WIRE_METADATA_PROTOCOL_VERSION,
                                                    .newer = &release_13,
                                                    .functions = functions_12};
static const struct moon_wire_release release_11 = {
    .name = "0.3.11.post1", .version = "2.0.0", .metadata = 0, .newer = &release_12, .functions = functions_11};
static const struct moon_wire_release release_10 = {
    .name = "0.3.10.post2", .version = "2.0.0", .metadata = 0, .newer = &release_11, .functions = functions_10};

const struct moon_wire_release *const moon_wire_releases[] = {&release_13, &release_12, &release_11, &release_10, NULL};
