/* SPDX-License-Identifier: Apache-2.0 */
/* Lint of tenants: the master's mode, the quota policy, and the tenants of engines and owners. */
#include "ref/config/lint_internal.h"

#include <string.h>
#include <strings.h>

/* ---- sizes as Mooncake writes them ---- */

/* Power of 1024 that a unit stands for, -1 if it is none. The quota policy takes B, KB, MB, GB, TB and nothing; the
 * flags of an owner (`lenient`) take them in any case, after a blank, and without their B. */
static int unit_power(const char *unit, bool lenient) {
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    while (lenient && *unit == ' ')
        unit++;
    if (!*unit)
        return 0;
    for (int power = 0; power < 5; power++) {
        bool letter_only = lenient && !unit[1] && strncasecmp(unit, units[power], 1) == 0;
        if (letter_only || (lenient ? strcasecmp(unit, units[power]) : strcmp(unit, units[power])) == 0)
            return power;
    }
    return -1;
}

/* A number of bytes as Mooncake reads it. Returns false if it is none, or beyond int64_t. */
static bool read_bytes(const char *text, bool lenient, int64_t *out) {
    int64_t value = 0;
    size_t digits = strspn(text, "0123456789");
    int power = unit_power(text + digits, lenient);
    for (size_t i = 0; i < digits; i++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text[i] - '0', &value))
            return false;
    if (digits == 0 || power < 0 || __builtin_mul_overflow(value, INT64_C(1) << (10 * power), &value))
        return false;
    *out = value;
    return true;
}

/* ---- quota policy ---- */

static bool valid_name(const struct moon_json *name) {
    for (size_t i = 0; i < name->length; i++)
        if ((uint8_t)name->bytes[i] < 0x20 || name->bytes[i] == 0x7F)
            return false;
    return name->length > 0 && name->bytes[0] != '_';
}

/* Bytes of an entry's quota; 0 and a finding when the master refuses it. */
static int64_t entry_quota(struct lint *lint, const struct moon_json *entry) {
    const struct moon_json *quota = moon_json_member(entry, "quota");
    int64_t bytes = 0;
    bool text = moon_json_is(quota, MOON_JSON_STRING) || moon_json_is(quota, MOON_JSON_INTEGER);
    if (text && read_bytes(quota->bytes, false, &bytes) && bytes > 0)
        return bytes;
    lint_find(lint, "LINT-136", lint->policy.source, quota ? quota : entry, "quota is %s",
              quota ? lint_show(lint, quota) : "missing");
    return 0;
}

static void check_entry(struct lint *lint, const struct moon_json *list, const struct moon_json *entry) {
    const char *source = lint->policy.source;
    const struct moon_json *name = moon_json_member(entry, "name");
    if (!moon_json_is(name, MOON_JSON_STRING) || !valid_name(name)) {
        lint_find(lint, "LINT-136", source, name ? name : entry, "name is %s",
                  name ? lint_show(lint, name) : "missing");
        return;
    }
    for (const struct moon_json *other = list->first; other != entry; other = other->next)
        if (moon_json_is_string(moon_json_member(other, "name"), name->bytes)) {
            lint_find(lint, "LINT-136", source, name, "tenant %s is there twice", lint_show(lint, name));
            return;
        }
}

static bool is_version_one(const struct moon_json *version) {
    return (moon_json_is(version, MOON_JSON_INTEGER) && version->integer == 1) || moon_json_is_string(version, "1");
}

/* Checks the policy; returns the sum of all quotas, saturated. */
static int64_t check_policy(struct lint *lint) {
    const struct moon_json *policy = lint->policy.json, *list = moon_json_member(policy, "tenants"),
                           *version = moon_json_member(policy, "version");
    int64_t sum = 0;
    if (!is_version_one(version))
        lint_find(lint, "LINT-136", lint->policy.source, version ? version : policy, "version is %s, not 1",
                  version ? lint_show(lint, version) : "missing");
    if (!moon_json_is(list, MOON_JSON_ARRAY)) {
        lint_find(lint, "LINT-136", lint->policy.source, list ? list : policy, "tenants must be a list");
        return 0;
    }
    for (const struct moon_json *entry = list->first; entry && !lint->status; entry = entry->next) {
        check_entry(lint, list, entry);
        if (__builtin_add_overflow(sum, entry_quota(lint, entry), &sum))
            sum = INT64_MAX;
    }
    return sum;
}

static bool is_registered(const struct lint *lint, const char *tenant) {
    const struct moon_json *list = moon_json_member(lint->policy.json, "tenants");
    for (const struct moon_json *entry = list ? list->first : NULL; entry; entry = entry->next)
        if (moon_json_is_string(moon_json_member(entry, "name"), tenant))
            return true;
    return false;
}

/* ---- capacity ---- */

static void check_capacity(struct lint *lint, int64_t promised) {
    double bytes = 0;
    for (const struct lint_daemon *owner = lint->owners; owner; owner = owner->next) {
        int64_t size = 0;
        const char *text = lint_flag_value(LINT_OWNER, owner->flags, "global_segment_size");
        if (!read_bytes(text, true, &size))
            lint_find(lint, "LINT-117", owner->at.source,
                      lint_flag_place(owner->flags, "global_segment_size", owner->at.json),
                      "mooncake_client --global_segment_size is %s", text);
        bytes += (double)size;
    }
    for (const struct lint_engine *engine = lint->engines; engine; engine = engine->next)
        if (engine->config_ok)
            bytes += engine->loaded.global_segment_size->real * (double)(engine->tp > 0 ? engine->tp : 1) *
                     (double)(engine->pp > 0 ? engine->pp : 1);
    if (lint->policy.json && bytes > 0 && (double)promised > bytes)
        lint_find(lint, "LINT-137", lint->policy.source, lint->policy.json,
                  "quotas add up to %lld bytes, lent are %.0f", (long long)promised, bytes);
}

/* ---- tenants of processes ---- */

static const struct moon_json *tenant_place(const struct lint_engine *engine) {
    const struct moon_json *member = moon_json_member(engine->config.json, "tenant_id");
    return member ? member : engine->config.json;
}

static void check_process(struct lint *lint, const char *who, const char *tenant, const char *source,
                          const struct moon_json *at) {
    bool multi = lint_flag_on(LINT_MASTER, lint->master.flags, "enable_multi_tenants");
    if (!lint_master_certain(lint))
        return;
    if (!multi && strcmp(tenant, "default") != 0)
        lint_find(lint, "LINT-131", source, at, "%s has tenant \"%s\", the master has no tenants", who, tenant);
    if (multi && lint->policy.json && !is_registered(lint, tenant))
        lint_find(lint, "LINT-133", source, at, "%s has tenant \"%s\", the policy does not", who, tenant);
}

static void check_owner(struct lint *lint, const struct lint_daemon *owner) {
    const char *tenant = lint_flag_value(LINT_OWNER, owner->flags, "tenant_id");
    const struct moon_json *at = lint_flag_place(owner->flags, "tenant_id", owner->at.json);
    bool any = false, same = false;
    for (const struct lint_engine *engine = lint->engines; engine; engine = engine->next) {
        const char *of_engine = lint_tenant_of(engine);
        any |= of_engine != NULL;
        same |= of_engine && strcmp(of_engine, tenant) == 0;
    }
    if (any && !same)
        lint_find(lint, "LINT-134", owner->at.source, at, "the owner has tenant \"%s\", no engine has", tenant);
    if (strcmp(tenant, "default") != 0)
        check_process(lint, "the owner", tenant, owner->at.source, at);
}

static void check_connector(struct lint *lint) {
    static const char *const types[] = {"file", "etcd"};
    const struct lint_daemon *master = &lint->master;
    const char *type = lint_flag_value(LINT_MASTER, master->flags, "tenant_quota_connector_type");
    const char *uri = lint_flag_value(LINT_MASTER, master->flags, "tenant_quota_connector_uri");
    const struct moon_json *at = lint_flag_place(master->flags, "enable_multi_tenants", master->at.json);
    bool known = strcmp(type, types[0]) == 0 || strcmp(type, types[1]) == 0;
    if (!lint_master_certain(lint) || !lint_flag_on(LINT_MASTER, master->flags, "enable_multi_tenants"))
        return;
    if (!known)
        lint_find(lint, "LINT-132", master->at.source,
                  lint_flag_place(master->flags, "tenant_quota_connector_type", at),
                  "--tenant_quota_connector_type is \"%s\"; file and etcd exist", type);
    else if (strcmp(type, "file") == 0 && (!*uri || strstr(uri, "://")))
        lint_find(lint, "LINT-132", master->at.source, lint_flag_place(master->flags, "tenant_quota_connector_uri", at),
                  *uri ? "--tenant_quota_connector_uri is a URL; it must be a path"
                       : "--tenant_quota_connector_uri is missing");
}

void lint_tenants(struct lint *lint) {
    int64_t promised = lint->policy.json ? check_policy(lint) : 0;
    check_connector(lint);
    check_capacity(lint, promised);
    for (const struct lint_engine *engine = lint->engines; engine; engine = engine->next)
        if (engine->config_ok)
            check_process(lint, engine->name, lint_tenant_of(engine), engine->config.source, tenant_place(engine));
    for (const struct lint_daemon *owner = lint->owners; owner; owner = owner->next)
        check_owner(lint, owner);
}
