/* SPDX-License-Identifier: Apache-2.0 */
/* Flags of mooncake_master and mooncake_client: names, kinds, defaults, and reading a command line of them. */
#include "ref/config/lint_internal.h"

#include "ref/base/suggest.h"

#include <string.h>
#include <strings.h>

enum flag_kind { SWITCH, WHOLE, REAL, DURATION, TEXT };

struct flag {
    const char *name;
    enum flag_kind kind;
    const char *otherwise;
};

/* Mooncake 0.3.13, mooncake-store/src/master.cpp. */
static const struct flag master_flags[] = {
    {"config_path", TEXT, ""},
    {"port", WHOLE, "50051"},
    {"max_threads", WHOLE, "16"},
    {"rpc_thread_num", WHOLE, "0"},
    {"rpc_port", WHOLE, "0"},
    {"rpc_address", TEXT, "0.0.0.0"},
    {"rpc_interface", TEXT, ""},
    {"rpc_conn_timeout_seconds", WHOLE, "0"},
    {"rpc_enable_tcp_no_delay", SWITCH, "true"},
    {"enable_metric_reporting", SWITCH, "true"},
    {"metrics_port", WHOLE, "9003"},
    {"metrics_host", TEXT, "0.0.0.0"},
    {"default_kv_lease_ttl", DURATION, "10000"},
    {"default_kv_soft_pin_ttl", DURATION, "1800000"},
    {"max_kv_soft_pin_ttl", DURATION, "86400000"},
    {"allow_evict_soft_pinned_objects", SWITCH, "true"},
    {"eviction_ratio", REAL, "0.05"},
    {"eviction_high_watermark_ratio", REAL, "0.90"},
    {"nof_eviction_ratio", REAL, "0.05"},
    {"nof_eviction_high_watermark_ratio", REAL, "0.90"},
    {"enable_ha", SWITCH, "false"},
    {"ha_backend_type", TEXT, "etcd"},
    {"ha_backend_connstring", TEXT, ""},
    {"etcd_endpoints", TEXT, ""},
    {"client_ttl", DURATION, "10"},
    {"cluster_id", TEXT, "mooncake_cluster"},
    {"enable_offload", SWITCH, "false"},
    {"offload_on_evict", SWITCH, "false"},
    {"offload_force_evict", SWITCH, "false"},
    {"offloading_queue_limit", WHOLE, "50000"},
    {"offload_cap_ratio", REAL, "0.5"},
    {"promotion_on_hit", SWITCH, "false"},
    {"promotion_admission_threshold", WHOLE, "2"},
    {"promotion_queue_limit", WHOLE, "50000"},
    {"promotion_max_per_heartbeat", WHOLE, "1"},
    {"dynamic_replication_mode", TEXT, "off"},
    {"dynamic_replication_heat_window_seconds", WHOLE, "10"},
    {"dynamic_replication_admission_qps_threshold", REAL, "0.8"},
    {"dynamic_replication_max_memory_replicas", WHOLE, "2"},
    {"enable_kv_events", SWITCH, "false"},
    {"kv_events_bind_endpoint", TEXT, ""},
    {"kv_events_model_name", TEXT, ""},
    {"kv_events_backend_id", TEXT, ""},
    {"kv_events_tenant_id", TEXT, "default"},
    {"kv_events_additional_salt", TEXT, ""},
    {"kv_events_lora_name", TEXT, ""},
    {"kv_events_block_size", WHOLE, "0"},
    {"kv_events_dp_rank", WHOLE, "0"},
    {"kv_events_emit_legacy_compat", SWITCH, "true"},
    {"kv_events_emit_object_key", SWITCH, "true"},
    {"kv_events_queue_capacity", WHOLE, "65536"},
    {"nof_heartbeat_interval_sec", WHOLE, "10"},
    {"nof_heartbeat_probe_timeout_ms", WHOLE, "1000"},
    {"nof_heartbeat_failures_threshold", WHOLE, "3"},
    {"root_fs_dir", TEXT, ""},
    {"global_file_segment_size", WHOLE, "9223372036854775807"},
    {"enable_oplog", SWITCH, "false"},
    {"oplog_poll_interval_ms", WHOLE, "1000"},
    {"oplog_batch_max_entries", WHOLE, "1024"},
    {"batch_oplog_retry_timeout_sec", WHOLE, "180"},
    {"memory_allocator", TEXT, "offset"},
    {"allocation_strategy", TEXT, "random"},
    {"enable_http_metadata_server", SWITCH, "false"},
    {"http_metadata_server_port", WHOLE, "8080"},
    {"http_metadata_server_host", TEXT, "0.0.0.0"},
    {"enable_metadata_cleanup_on_timeout", SWITCH, "false"},
    {"pod_name", TEXT, ""},
    {"pod_namespace", TEXT, ""},
    {"put_start_discard_timeout_sec", WHOLE, "30"},
    {"put_start_release_timeout_sec", WHOLE, "600"},
    {"enable_disk_eviction", SWITCH, "true"},
    {"quota_bytes", WHOLE, "0"},
    {"enable_multi_tenants", SWITCH, "false"},
    {"tenant_quota_connector_type", TEXT, "file"},
    {"tenant_quota_connector_uri", TEXT, ""},
    {"enable_snapshot", SWITCH, "false"},
    {"enable_snapshot_restore", SWITCH, "false"},
    {"snapshot_interval_seconds", WHOLE, "600"},
    {"snapshot_child_timeout_seconds", WHOLE, "300"},
    {"snapshot_retention_count", WHOLE, "2"},
    {"snapshot_backup_dir", TEXT, ""},
    {"snapshot_object_store_type", TEXT, ""},
    {"snapshot_catalog_store_type", TEXT, ""},
    {"snapshot_catalog_store_connstring", TEXT, ""},
    {"max_total_finished_tasks", WHOLE, "10000"},
    {"max_total_pending_tasks", WHOLE, "10000"},
    {"max_total_processing_tasks", WHOLE, "10000"},
    {"pending_task_timeout_sec", WHOLE, "300"},
    {"processing_task_timeout_sec", WHOLE, "300"},
    {"max_retry_attempts", WHOLE, "10"},
    {"enable_cxl", SWITCH, "false"},
    {"cxl_path", TEXT, "/dev/dax0.0"},
    {"cxl_size", WHOLE, "8589934592"},
};

/* Mooncake 0.3.13, mooncake-store/src/real_client_main.cpp. */
static const struct flag owner_flags[] = {
    {"host", TEXT, "0.0.0.0"},
    {"port", WHOLE, "50052"},
    {"metadata_server", TEXT, "http://127.0.0.1:8080/metadata"},
    {"device_names", TEXT, ""},
    {"master_server_address", TEXT, "127.0.0.1:50051"},
    {"protocol", TEXT, "tcp"},
    {"global_segment_size", TEXT, "4 GB"},
    {"local_buffer_size", TEXT, "0"},
    {"threads", WHOLE, "1"},
    {"tenant_id", TEXT, "default"},
    {"enable_offload", SWITCH, "false"},
    {"start_offload_rpc_server", SWITCH, "true"},
    {"enable_http_server", SWITCH, "false"},
    {"http_port", WHOLE, "9300"},
};

/* Flags of glog and gflags, which every such program takes. */
static const struct flag common_flags[] = {
    {"logtostderr", SWITCH, "false"},
    {"alsologtostderr", SWITCH, "false"},
    {"colorlogtostderr", SWITCH, "false"},
    {"log_dir", TEXT, ""},
    {"log_prefix", SWITCH, "true"},
    {"v", WHOLE, "0"},
    {"vmodule", TEXT, ""},
    {"minloglevel", WHOLE, "0"},
    {"stderrthreshold", WHOLE, "2"},
    {"max_log_size", WHOLE, "1800"},
    {"logbufsecs", WHOLE, "30"},
    {"stop_logging_if_full_disk", SWITCH, "false"},
    {"flagfile", TEXT, ""},
    {"fromenv", TEXT, ""},
    {"tryfromenv", TEXT, ""},
    {"undefok", TEXT, ""},
    {"help", SWITCH, "false"},
    {"version", SWITCH, "false"},
};

enum {
    MASTER_COUNT = sizeof master_flags / sizeof master_flags[0],
    OWNER_COUNT = sizeof owner_flags / sizeof owner_flags[0],
    COMMON_COUNT = sizeof common_flags / sizeof common_flags[0],
    NAME_BYTES_MAX = 64,
};

static const struct flag *flags_of(enum lint_program program, size_t *count) {
    *count = program == LINT_MASTER ? MASTER_COUNT : OWNER_COUNT;
    return program == LINT_MASTER ? master_flags : owner_flags;
}

static const struct flag *find_flag(enum lint_program program, const char *name) {
    size_t count;
    const struct flag *flags = flags_of(program, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(flags[i].name, name) == 0)
            return &flags[i];
    for (size_t i = 0; i < COMMON_COUNT; i++)
        if (strcmp(common_flags[i].name, name) == 0)
            return &common_flags[i];
    return NULL;
}

static const char *suggest_flag(enum lint_program program, const char *name) {
    const char *names[MASTER_COUNT + 1];
    size_t count;
    const struct flag *flags = flags_of(program, &count);
    for (size_t i = 0; i < count; i++)
        names[i] = flags[i].name;
    names[count] = NULL;
    return moon_suggest(name, names);
}

/* ---- values ---- */

/* What gflags takes for a boolean: -1 when it takes it for none. */
static int switch_value(const char *text) {
    static const char *const on[] = {"true", "t", "1", "yes", "y"}, *const off[] = {"false", "f", "0", "no", "n"};
    for (size_t i = 0; i < sizeof on / sizeof on[0]; i++) {
        if (strcasecmp(text, on[i]) == 0)
            return 1;
        if (strcasecmp(text, off[i]) == 0)
            return 0;
    }
    return -1;
}

static bool is_real(const char *text) {
    size_t digits = 0, points = 0;
    for (const char *at = text + (*text == '-'); *at; at++) {
        digits += *at >= '0' && *at <= '9';
        points += *at == '.';
        if (!(*at >= '0' && *at <= '9') && *at != '.')
            return false;
    }
    return digits > 0 && points <= 1;
}

static bool is_duration(const char *text) {
    size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits;
    return digits > 0 && (!*unit || strcmp(unit, "ms") == 0 || strcmp(unit, "s") == 0 || strcmp(unit, "m") == 0 ||
                          strcmp(unit, "h") == 0);
}

static bool is_readable(const struct flag *flag, const char *value) {
    int64_t number = 0;
    switch (flag->kind) {
    case SWITCH:
        return switch_value(value) >= 0;
    case WHOLE:
        return lint_is_number(value, INT64_MIN, INT64_MAX, &number);
    case REAL:
        return is_real(value);
    case DURATION:
        return is_duration(value);
    default:
        return true;
    }
}

/* ---- reading ---- */

/* One word taken apart: --name, --name=value, -name, --noname. */
struct word {
    char name[NAME_BYTES_MAX];
    const char *value; /* NULL: none in this word */
};

static bool split_word(const char *text, struct word *word) {
    const char *name = text + 1 + (text[0] == '-' && text[1] == '-');
    size_t length = strcspn(name, "=");
    if (text[0] != '-' || length == 0 || length >= NAME_BYTES_MAX)
        return false;
    memcpy(word->name, name, length);
    word->name[length] = '\0';
    for (size_t i = 0; i < length; i++) /* gflags takes '-' for '_' */
        if (word->name[i] == '-')
            word->name[i] = '_';
    word->value = name[length] == '=' ? name + length + 1 : NULL;
    return true;
}

static void append_flag(struct lint *lint, const char *name, const char *value, const struct moon_json *at,
                        struct lint_flag ***tail) {
    struct lint_flag *flag = moon_arena_alloc(lint->arena, sizeof *flag);
    if (!flag) {
        lint->status = MOON_ERR_MEMORY;
        return;
    }
    *flag = (struct lint_flag){name, value, at, NULL};
    **tail = flag;
    *tail = &flag->next;
}

/* Reads the flag at `at`; returns the last element used. */
static const struct moon_json *read_flag(struct lint *lint, enum lint_program program, const char *source,
                                         const struct moon_json *at, struct lint_flag ***tail) {
    struct word word = {"", NULL};
    const char *program_name = program == LINT_MASTER ? "mooncake_master" : "mooncake_client";
    if (at->type != MOON_JSON_STRING) {
        lint_find(lint, "LINT-162", source, at, "a flag is a text, not %s", lint_show(lint, at));
        return at;
    }
    if (!split_word(at->bytes, &word))
        return at; /* an operand: gflags leaves it alone */
    const struct flag *flag = find_flag(program, word.name);
    bool negated = !flag && strncmp(word.name, "no", 2) == 0;
    if (negated)
        flag = find_flag(program, word.name + 2);
    if (!flag || (negated && flag->kind != SWITCH)) {
        lint_find(lint, "LINT-116", source, at, "%s has no flag --%s%s", program_name, word.name,
                  lint_hint(lint, suggest_flag(program, word.name)));
        return at;
    }
    const struct moon_json *value_at = at;
    const char *value = negated ? "false" : word.value;
    if (!value && flag->kind == SWITCH) {
        value = "true";
    } else if (!value) {
        value_at = at->next;
        value = moon_json_is(value_at, MOON_JSON_STRING) ? value_at->bytes : NULL;
    }
    if (!value || !is_readable(flag, value))
        lint_find(lint, "LINT-117", source, value ? value_at : at, "%s --%s is %s", program_name, flag->name,
                  value ? value : "without a value");
    append_flag(lint, flag->name, value && is_readable(flag, value) ? value : flag->otherwise, value ? value_at : at,
                tail);
    return value ? value_at : at;
}

void lint_flags_read(struct lint *lint, enum lint_program program, const char *source, const struct moon_json *list,
                     struct lint_flag **out) {
    struct lint_flag **tail = out;
    for (const struct moon_json *at = list->first; at && !lint->status; at = at->next)
        at = read_flag(lint, program, source, at, &tail);
}

/* The last one counts. */
static const struct lint_flag *given_flag(const struct lint_flag *flags, const char *name) {
    const struct lint_flag *found = NULL;
    for (; flags; flags = flags->next)
        if (strcmp(flags->name, name) == 0)
            found = flags;
    return found;
}

const char *lint_flag_value(enum lint_program program, const struct lint_flag *flags, const char *name) {
    const struct lint_flag *given = given_flag(flags, name);
    return given ? given->value : find_flag(program, name)->otherwise;
}

bool lint_flag_on(enum lint_program program, const struct lint_flag *flags, const char *name) {
    return switch_value(lint_flag_value(program, flags, name)) == 1;
}

const struct moon_json *lint_flag_place(const struct lint_flag *flags, const char *name,
                                        const struct moon_json *otherwise) {
    const struct lint_flag *given = given_flag(flags, name);
    return given ? given->at : otherwise;
}
