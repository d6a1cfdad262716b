/* SPDX-License-Identifier: Apache-2.0 */
/* Mooncake's flags of the master that are not implemented, with their defaults (Mooncake 0.3.13, mooncake-store
 * src/master.cpp). */
#include "ref/daemon/master_flags.h"

#include "ref/base/suggest.h"

#include <stdlib.h>
#include <string.h>

enum kind { SWITCH, NUMBER, TEXT };

static const struct flag {
    const char *name;
    enum kind kind;
    const char *fallback;
} flags[] = {
    {"config_path", TEXT, ""},
    {"max_threads", NUMBER, "16"},
    {"rpc_thread_num", NUMBER, "0"},
    {"rpc_interface", TEXT, ""},
    {"rpc_conn_timeout_seconds", NUMBER, "0"},
    {"rpc_enable_tcp_no_delay", SWITCH, "true"},
    {"enable_metric_reporting", SWITCH, "true"},
    {"metrics_port", NUMBER, "9003"},
    {"metrics_host", TEXT, "0.0.0.0"},
    {"default_kv_soft_pin_ttl", NUMBER, "1800000"},
    {"max_kv_soft_pin_ttl", NUMBER, "86400000"},
    {"allow_evict_soft_pinned_objects", SWITCH, "true"},
    {"nof_eviction_ratio", NUMBER, "0.05"},
    {"nof_eviction_high_watermark_ratio", NUMBER, "0.90"},
    {"enable_ha", SWITCH, "false"},
    {"ha_backend_type", TEXT, "etcd"},
    {"ha_backend_connstring", TEXT, ""},
    {"etcd_endpoints", TEXT, ""},
    {"cluster_id", TEXT, "mooncake_cluster"},
    {"enable_offload", SWITCH, "false"},
    {"offload_on_evict", SWITCH, "false"},
    {"offload_force_evict", SWITCH, "false"},
    {"offloading_queue_limit", NUMBER, "50000"},
    {"offload_cap_ratio", NUMBER, "0.5"},
    {"promotion_on_hit", SWITCH, "false"},
    {"promotion_admission_threshold", NUMBER, "2"},
    {"promotion_queue_limit", NUMBER, "50000"},
    {"promotion_max_per_heartbeat", NUMBER, "1"},
    {"dynamic_replication_mode", TEXT, "off"},
    {"dynamic_replication_heat_window_seconds", NUMBER, "10"},
    {"dynamic_replication_admission_qps_threshold", NUMBER, "0.8"},
    {"dynamic_replication_max_memory_replicas", NUMBER, "2"},
    {"enable_kv_events", SWITCH, "false"},
    {"kv_events_bind_endpoint", TEXT, ""},
    {"kv_events_model_name", TEXT, ""},
    {"kv_events_backend_id", TEXT, ""},
    {"kv_events_tenant_id", TEXT, "default"},
    {"kv_events_additional_salt", TEXT, ""},
    {"kv_events_lora_name", TEXT, ""},
    {"kv_events_block_size", NUMBER, "0"},
    {"kv_events_dp_rank", NUMBER, "0"},
    {"kv_events_emit_legacy_compat", SWITCH, "true"},
    {"kv_events_emit_object_key", SWITCH, "true"},
    {"kv_events_queue_capacity", NUMBER, "65536"},
    {"nof_heartbeat_interval_sec", NUMBER, "10"},
    {"nof_heartbeat_probe_timeout_ms", NUMBER, "1000"},
    {"nof_heartbeat_failures_threshold", NUMBER, "3"},
    {"root_fs_dir", TEXT, ""},
    {"global_file_segment_size", NUMBER, "9223372036854775807"},
    {"enable_oplog", SWITCH, "false"},
    {"oplog_poll_interval_ms", NUMBER, "1000"},
    {"oplog_batch_max_entries", NUMBER, "1024"},
    {"batch_oplog_retry_timeout_sec", NUMBER, "180"},
    {"memory_allocator", TEXT, "offset"},
    {"allocation_strategy", TEXT, "random"},
    {"enable_http_metadata_server", SWITCH, "false"},
    {"http_metadata_server_port", NUMBER, "8080"},
    {"http_metadata_server_host", TEXT, "0.0.0.0"},
    {"enable_metadata_cleanup_on_timeout", SWITCH, "false"},
    {"pod_name", TEXT, ""},
    {"pod_namespace", TEXT, ""},
    {"enable_disk_eviction", SWITCH, "true"},
    {"quota_bytes", NUMBER, "0"},
    {"enable_multi_tenants", SWITCH, "false"},
    {"tenant_quota_connector_type", TEXT, "file"},
    {"tenant_quota_connector_uri", TEXT, ""},
    {"enable_snapshot", SWITCH, "false"},
    {"enable_snapshot_restore", SWITCH, "false"},
    {"snapshot_interval_seconds", NUMBER, "600"},
    {"snapshot_child_timeout_seconds", NUMBER, "300"},
    {"snapshot_retention_count", NUMBER, "2"},
    {"snapshot_backup_dir", TEXT, ""},
    {"snapshot_object_store_type", TEXT, ""},
    {"snapshot_catalog_store_type", TEXT, ""},
    {"snapshot_catalog_store_connstring", TEXT, ""},
    {"max_total_finished_tasks", NUMBER, "10000"},
    {"max_total_pending_tasks", NUMBER, "10000"},
    {"max_total_processing_tasks", NUMBER, "10000"},
    {"pending_task_timeout_sec", NUMBER, "300"},
    {"processing_task_timeout_sec", NUMBER, "300"},
    {"max_retry_attempts", NUMBER, "10"},
    {"enable_cxl", SWITCH, "false"},
    {"cxl_path", TEXT, "/dev/dax0.0"},
    {"cxl_size", NUMBER, "8589934592"},
};

enum { FLAGS = sizeof flags / sizeof *flags, OPTIONS = 64, NAME_BYTES = 64 };

static const struct flag *flag_find(const char *name) {
    for (size_t i = 0; i < FLAGS; i++)
        if (strcmp(flags[i].name, name) == 0)
            return &flags[i];
    return NULL;
}

static const struct moon_option *option_find(const struct moon_command *command, const char *name) {
    for (const struct moon_option *option = command->options; option->name; option++)
        if (strcmp(option->name, name) == 0)
            return option;
    return NULL;
}

static bool means_true(const char *value) {
    return strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
}

/* Whether a value means the same as the default: numbers may be written in more ways than one. */
static bool is_default(const struct flag *flag, const char *value) {
    if (strcmp(flag->fallback, value) == 0)
        return true;
    if (flag->kind == SWITCH)
        return (means_true(value) || strcmp(value, "0") == 0) && means_true(value) == means_true(flag->fallback);
    char *end = NULL;
    double number = flag->kind == NUMBER ? strtod(value, &end) : 0;
    return end && end != value && *end == '\0' && number == strtod(flag->fallback, NULL);
}

static int unknown(const struct moon_command *command, const char *name, struct moon_error *error) {
    const char *names[OPTIONS + FLAGS + 1] = {NULL};
    size_t count = 0;
    for (const struct moon_option *option = command->options; option->name; option++)
        names[count++] = option->name;
    for (size_t i = 0; i < FLAGS; i++)
        names[count++] = flags[i].name;
    const char *near = moon_suggest(name, names);
    return moon_fail(error, MOON_ERR_SCHEMA, NULL,
                     near ? "unknown option --%.60s; did you mean --%s?" : "unknown option --%.60s%s", name,
                     near ? near : "");
}

/* The word argv[*i]: a flag's name, and what it is to be. *value NULL: it has none in this word. */
static const char *split(struct moon_arena *arena, const struct moon_command *command, const char *word,
                         const char **value) {
    const char *start = word + strspn(word, "-"), *equal = strchr(start, '=');
    char *name = moon_arena_copy(arena, start, equal ? (size_t)(equal - start) : strlen(start));
    *value = equal ? equal + 1 : NULL;
    if (name && strncmp(name, "no", 2) == 0 && !equal && !flag_find(name) && !option_find(command, name)) {
        const struct flag *flag = flag_find(name + 2);
        const struct moon_option *option = option_find(command, name + 2);
        if ((flag && flag->kind == SWITCH) || (option && option->kind == MOON_OPTION_FLAG)) {
            *value = "false";
            return name + 2;
        }
    }
    return name;
}

static int take_flag(const struct flag *flag, const char *value, int argc, char *const argv[], int *i,
                     struct moon_error *error) {
    if (!value && flag->kind == SWITCH)
        value = "true";
    if (!value && *i + 1 == argc)
        return moon_fail(error, MOON_ERR_SCHEMA, NULL, "--%s needs a value", flag->name);
    if (!value)
        value = argv[++*i];
    if (is_default(flag, value))
        return 0;
    return moon_fail(error, MOON_ERR_UNSUPPORTED, NULL,
                     "--%s=%.60s is not implemented yet; only its default is, which is \"%s\"", flag->name, value,
                     flag->fallback);
}

int moon_master_flags_take(struct moon_arena *arena, const struct moon_command *command, int argc, char *const argv[],
                           char *out[], int *count, struct moon_error *error) {
    *count = 0;
    for (int i = 0; i < argc; i++) {
        const char *value, *name = argv[i][0] == '-' ? split(arena, command, argv[i], &value) : NULL;
        if (argv[i][0] != '-') {
            out[(*count)++] = argv[i];
            continue;
        }
        if (!name)
            return moon_no_memory(error);
        const struct flag *flag = flag_find(name);
        const struct moon_option *option = option_find(command, name);
        bool common = strcmp(name, "help") == 0 || strcmp(name, "version") == 0;
        int status = 0;
        if (flag)
            status = take_flag(flag, value, argc, argv, &i, error);
        else if (!option && !common)
            status = unknown(command, name, error);
        if (status != 0)
            return status;
        if (flag)
            continue;
        out[*count] = moon_arena_format(arena, value ? "--%s=%s" : "--%s%s", name, value ? value : "");
        if (!out[(*count)++])
            return moon_no_memory(error);
        if (!value && option && option->kind != MOON_OPTION_FLAG && i + 1 < argc)
            out[(*count)++] = argv[++i];
    }
    return 0;
}
