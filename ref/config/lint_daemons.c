/* SPDX-License-Identifier: Apache-2.0 */
/* Lint of master and owners, and of what they must agree on with the engines: offload, addresses, protocols, ports. */
#include "ref/config/lint_internal.h"

#include "ref/config/environment.h"
#include "ref/config/python_number.h"

#include <string.h>
#include <strings.h>

/* A value of an owner: the variable, or its older name. */
static const struct moon_json *owner_variable(const struct lint_daemon *owner, const char *name, const char *alias) {
    const struct moon_json *value = lint_variable(owner->env, name);
    return value || !alias ? value : lint_variable(owner->env, alias);
}

static const char *master_flag(const struct lint *lint, const char *name) {
    return lint_flag_value(LINT_MASTER, lint->master.flags, name);
}

bool lint_master_certain(const struct lint *lint) {
    return lint->master.present && !*master_flag(lint, "config_path");
}

/* ---- offload in three places ---- */

struct offload {
    const struct lint_engine *engine;  /* first engine that offloads */
    const struct lint_engine *without; /* first engine with a configuration that does not */
    const struct lint_daemon *owner;   /* first owner that offloads */
};

static struct offload find_offload(const struct lint *lint) {
    struct offload found = {NULL, NULL, NULL};
    for (const struct lint_engine *at = lint->engines; at; at = at->next) {
        if (!found.engine && lint_offloads(at))
            found.engine = at;
        if (!found.without && at->config_ok && at->loaded.mode && !lint_offloads(at))
            found.without = at;
    }
    for (const struct lint_daemon *at = lint->owners; at && !found.owner; at = at->next)
        if (lint_flag_on(LINT_OWNER, at->flags, "enable_offload"))
            found.owner = at;
    return found;
}

static void check_offload(struct lint *lint) {
    struct offload found = find_offload(lint);
    const struct lint_daemon *master = &lint->master, *owners = lint->owners;
    bool certain = lint_master_certain(lint), on = lint_flag_on(LINT_MASTER, master->flags, "enable_offload");
    if (certain) {
        const struct moon_json *at = lint_flag_place(master->flags, "enable_offload", master->at.json);
        if (!on && found.engine)
            lint_find(lint, "LINT-110", master->at.source, at, "%s has enable_offload, the master has not",
                      found.engine->name);
        if (!on && found.owner)
            lint_find(lint, "LINT-110", master->at.source, at, "an owner has --enable_offload, the master has not");
        if (on && !found.owner && owners)
            lint_find(lint, "LINT-110", master->at.source, at, "the master has --enable_offload, no owner has");
    }
    if (found.engine && owners && !found.owner)
        lint_find(lint, "LINT-110", owners->at.source, owners->at.json,
                  "%s has enable_offload, no owner has --enable_offload", found.engine->name);
    if (found.owner && found.without) {
        const struct lint_place *config = &found.without->config;
        const struct moon_json *member = moon_json_member(config->json, "enable_offload");
        lint_find(lint, "LINT-110", config->source, member ? member : config->json,
                  "an owner has --enable_offload, the configuration of %s has no enable_offload", found.without->name);
    }
}

/* ---- the disk tier of one owner ---- */

static bool has_parent_part(const char *path) {
    for (const char *at = path; (at = strstr(at, "..")); at += 2)
        if ((at == path || at[-1] == '/'))
            return true;
    return false;
}

static void check_directory(struct lint *lint, const struct lint_daemon *owner) {
    const struct moon_json *path = lint_variable(owner->env, "MOONCAKE_OFFLOAD_FILE_STORAGE_PATH");
    if (!path)
        lint_find_as(lint, "LINT-111", MOON_LINT_WARNING, owner->at.source, owner->at.json,
                     "MOONCAKE_OFFLOAD_FILE_STORAGE_PATH is not set: /data/file_storage is used");
    else if (path->bytes[0] != '/' || has_parent_part(path->bytes))
        lint_find(lint, "LINT-111", owner->at.source, path, "MOONCAKE_OFFLOAD_FILE_STORAGE_PATH is %s",
                  lint_show(lint, path));
}

static void check_eviction(struct lint *lint, const struct lint_daemon *owner) {
    const struct moon_json *policy =
        owner_variable(owner, "MOONCAKE_OFFLOAD_BUCKET_EVICTION_POLICY", "MOONCAKE_BUCKET_EVICTION_POLICY");
    if (!policy)
        lint_find_as(lint, "LINT-112", MOON_LINT_NOTE, owner->at.source, owner->at.json,
                     "the bucket eviction policy is not set: fifo in the code of 0.3.13, none in its documentation");
    else if (strcmp(policy->bytes, "fifo") != 0 && strcmp(policy->bytes, "lru") != 0)
        lint_find(lint, "LINT-112", owner->at.source, policy, "the bucket eviction policy is %s",
                  lint_show(lint, policy));
}

static void check_staging(struct lint *lint, const struct lint_daemon *owner) {
    const struct moon_json *size = lint_variable(owner->env, "MOONCAKE_OFFLOAD_LOCAL_BUFFER_SIZE_BYTES");
    int64_t bytes = 0;
    if (!size)
        return;
    if (!lint_is_number(size->bytes, 0, INT64_MAX, &bytes))
        lint_find_as(lint, "LINT-113", MOON_LINT_WARNING, owner->at.source, size,
                     "MOONCAKE_OFFLOAD_LOCAL_BUFFER_SIZE_BYTES is %s: the default is used", lint_show(lint, size));
    else if (bytes < MOON_DISK_STAGING_BYTES)
        lint_find(lint, "LINT-113", owner->at.source, size, "MOONCAKE_OFFLOAD_LOCAL_BUFFER_SIZE_BYTES is %s",
                  lint_show(lint, size));
}

static void check_limits(struct lint *lint, const struct lint_daemon *owner) {
    static const char *const names[] = {"MOONCAKE_OFFLOAD_BUCKET_KEYS_LIMIT", "MOONCAKE_OFFLOAD_TOTAL_SIZE_LIMIT_BYTES",
                                        "MOONCAKE_OFFLOAD_HEARTBEAT_INTERVAL_SECONDS"};
    int64_t number = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const struct moon_json *value = lint_variable(owner->env, names[i]);
        if (value && lint_is_number(value->bytes, INT64_MIN, 0, &number))
            lint_find(lint, "LINT-114", owner->at.source, value, "%s is %s", names[i], lint_show(lint, value));
    }
    const struct moon_json *high = owner_variable(owner, "MOONCAKE_OFFLOAD_DISK_EVICTION_HIGH_WATERMARK_RATIO",
                                                  "MOONCAKE_DISK_EVICTION_HIGH_WATERMARK_RATIO");
    const struct moon_json *low = owner_variable(owner, "MOONCAKE_OFFLOAD_DISK_EVICTION_LOW_WATERMARK_RATIO",
                                                 "MOONCAKE_DISK_EVICTION_LOW_WATERMARK_RATIO");
    double above = 0.9, below = 0.8;
    int status = high ? moon_python_float(lint->arena, high->bytes, high->length, &above) : MOON_OK;
    if (!status && low)
        status = moon_python_float(lint->arena, low->bytes, low->length, &below);
    if (status == MOON_ERR_MEMORY)
        lint->status = status;
    if (!status && below >= above)
        lint_find(lint, "LINT-114", owner->at.source, low ? low : high,
                  "the low disk watermark is not below the high one");
}

static void check_owner(struct lint *lint, const struct lint_daemon *owner) {
    const struct moon_json *backend = lint_variable(owner->env, "MOONCAKE_OFFLOAD_STORAGE_BACKEND_DESCRIPTOR");
    bool rdma = strcmp(lint_flag_value(LINT_OWNER, owner->flags, "protocol"), "rdma") == 0;
    lint_rdma_variables(lint, owner->at.source, owner->env, rdma);
    if (!lint_flag_on(LINT_OWNER, owner->flags, "enable_offload"))
        return;
    check_directory(lint, owner);
    check_staging(lint, owner);
    check_limits(lint, owner);
    if (backend && strcmp(backend->bytes, "file_per_key_storage_backend") == 0)
        lint_find(lint, "LINT-124", owner->at.source, backend, "the storage backend is %s", lint_show(lint, backend));
    else
        check_eviction(lint, owner);
}

/* ---- master ---- */

static void check_master(struct lint *lint) {
    static const char *const names[] = {"offload_on_evict", "offload_force_evict", "promotion_on_hit"};
    const struct lint_daemon *master = &lint->master;
    bool offload = lint_flag_on(LINT_MASTER, master->flags, "enable_offload");
    if (!lint_master_certain(lint))
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !offload; i++)
        if (lint_flag_on(LINT_MASTER, master->flags, names[i]))
            lint_find(lint, "LINT-118", master->at.source, lint_flag_place(master->flags, names[i], master->at.json),
                      "--%s without --enable_offload", names[i]);
    if (offload && lint_flag_on(LINT_MASTER, master->flags, "offload_on_evict") &&
        !lint_flag_on(LINT_MASTER, master->flags, "offload_force_evict"))
        lint_find(lint, "LINT-118", master->at.source,
                  lint_flag_place(master->flags, "offload_on_evict", master->at.json),
                  "--offload_on_evict without --offload_force_evict");
}

/* ---- agreement ---- */

static int64_t whole_flag(enum lint_program program, const struct lint_daemon *daemon, const char *name) {
    int64_t number = 0;
    lint_is_number(lint_flag_value(program, daemon->flags, name), INT64_MIN, INT64_MAX, &number);
    return number;
}

int64_t lint_owner_port(const struct lint_daemon *owner) {
    return whole_flag(LINT_OWNER, owner, "port");
}

int64_t lint_master_port(const struct lint *lint) {
    int64_t rpc = whole_flag(LINT_MASTER, &lint->master, "rpc_port");
    return rpc ? rpc : whole_flag(LINT_MASTER, &lint->master, "port");
}

/* One address of a process against the master and against the first address seen. */
static void check_address(struct lint *lint, const char *who, const char *address, const char *source,
                          const struct moon_json *at, const char **first) {
    int64_t port = lint_port_of(address);
    if (port == 0)
        return; /* malformed, or a high-availability address */
    if (lint_master_certain(lint) && port != lint_master_port(lint))
        lint_find(lint, "LINT-120", source, at, "%s looks for the master at %s, it listens on port %lld", who, address,
                  (long long)lint_master_port(lint));
    else if (*first && strcmp(*first, address) != 0)
        lint_find_as(lint, "LINT-120", port == lint_port_of(*first) ? MOON_LINT_WARNING : MOON_LINT_ERROR, source, at,
                     "%s looks for the master at %s, another process at %s", who, address, *first);
    if (!*first)
        *first = address;
}

static const struct moon_json *config_place(const struct lint_engine *engine, const char *name) {
    const struct moon_json *member = moon_json_member(engine->config.json, name);
    return member ? member : engine->config.json;
}

static const char *text_of(const struct moon_json *value) {
    return moon_json_is(value, MOON_JSON_STRING) ? value->bytes : "";
}

static void check_addresses(struct lint *lint) {
    const char *first = NULL;
    for (const struct lint_engine *at = lint->engines; at; at = at->next)
        if (at->config_ok)
            check_address(lint, at->name, text_of(at->loaded.master_server_address), at->config.source,
                          config_place(at, "master_server_address"), &first);
    for (const struct lint_daemon *at = lint->owners; at; at = at->next)
        check_address(lint, "an owner", lint_flag_value(LINT_OWNER, at->flags, "master_server_address"), at->at.source,
                      lint_flag_place(at->flags, "master_server_address", at->at.json), &first);
}

/* Reports a text that differs from the first one of its kind. */
static void check_same(struct lint *lint, const char *rule, const char *who, const char *text, const char *source,
                       const struct moon_json *at, const char **first) {
    if (!*text)
        return;
    if (*first && strcmp(*first, text) != 0)
        lint_find(lint, rule, source, at, "%s has %s, another process %s", who, text, *first);
    if (!*first)
        *first = text;
}

static void check_transport(struct lint *lint) {
    const char *protocol = NULL, *metadata = NULL;
    for (const struct lint_engine *at = lint->engines; at; at = at->next) {
        if (!at->config_ok)
            continue;
        check_same(lint, "LINT-121", at->name, text_of(at->loaded.protocol), at->config.source,
                   config_place(at, "protocol"), &protocol);
        check_same(lint, "LINT-119", at->name, text_of(at->loaded.metadata_server), at->config.source,
                   config_place(at, "metadata_server"), &metadata);
    }
    for (const struct lint_daemon *at = lint->owners; at; at = at->next) {
        check_same(lint, "LINT-121", "an owner", lint_flag_value(LINT_OWNER, at->flags, "protocol"), at->at.source,
                   lint_flag_place(at->flags, "protocol", at->at.json), &protocol);
        check_same(lint, "LINT-119", "an owner", lint_flag_value(LINT_OWNER, at->flags, "metadata_server"),
                   at->at.source, lint_flag_place(at->flags, "metadata_server", at->at.json), &metadata);
    }
}

static void check_segments(struct lint *lint) {
    for (const struct lint_engine *engine = lint->engines; engine && lint->owners; engine = engine->next) {
        const char *segment = lint_preferred_segment(lint, engine);
        int64_t port = segment ? lint_port_of(segment) : 0;
        bool found = port == 0;
        for (const struct lint_daemon *owner = lint->owners; owner; owner = owner->next)
            found |= lint_owner_port(owner) == port ||
                     lint_port_of(lint_flag_value(LINT_OWNER, owner->flags, "host")) == port;
        const struct moon_json *option =
            moon_json_member(engine->store ? engine->store->extra : NULL, "preferred_segment");
        const struct moon_json *variable = lint_variable(engine->env, "MOONCAKE_PREFERRED_SEGMENT");
        if (!found)
            lint_find(lint, "LINT-122", engine->at.source, option ? option : variable,
                      "%s prefers %s, no owner has that port", engine->name, segment);
    }
}

static void check_memory(struct lint *lint) {
    const struct lint_engine *lone = NULL;
    for (const struct lint_engine *at = lint->engines; at; at = at->next) {
        if (!lint_standalone(at))
            return; /* it lends memory, or its configuration is not known */
        lone = at;
    }
    if (lone && !lint->owners && (lint->master.present || lone->described))
        lint_find(lint, "LINT-115", lone->config.source, config_place(lone, "mode"),
                  "all engines are in standalone-store mode and there is no owner");
}

void lint_daemons(struct lint *lint) {
    if (lint->master.present)
        check_master(lint);
    for (const struct lint_daemon *at = lint->owners; at; at = at->next)
        check_owner(lint, at);
    check_offload(lint);
    check_addresses(lint);
    check_transport(lint);
    check_segments(lint);
    check_memory(lint);
}
