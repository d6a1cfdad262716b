/* SPDX-License-Identifier: Apache-2.0 */
/* Lint of environment variables: seeds of the hash chain, numbers, misspelt names, RDMA settings. */
#include "ref/config/lint_internal.h"

#include "ref/base/suggest.h"
#include "ref/config/environment.h"
#include "ref/config/python_number.h"

#include <string.h>

/* Variables that an engine reads; all others that begin with MOONCAKE_ or VLLM_MOONCAKE_ are unknown. */
static const struct {
    const char *name;
    int since;
    int64_t min, max; /* whole numbers; 0, 0: not one */
} variables[] = {
    {"MOONCAKE_CONFIG_PATH", 21, 0, 0},
    {"MOONCAKE_PREFERRED_SEGMENT", 22, 0, 0},
    {"MOONCAKE_REQUESTER_LOCAL_HOSTNAME", 22, 0, 0},
    {"VLLM_MOONCAKE_STORE_TIER_LOG", 22, 0, 0},
    {"VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO", 22, 0, 0},
    {"VLLM_MOONCAKE_LOAD_RECV_THREADS", 25, 1, 1024},
    {"VLLM_MOONCAKE_BOOTSTRAP_PORT", 21, 1, 65535},
    {"VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT", 21, 1, INT32_MAX},
    {"VLLM_MOONCAKE_CONNECTOR_TIMEOUT", 31, 0, 0},
};
enum { VARIABLE_COUNT = sizeof variables / sizeof variables[0], MTU_BYTES_MAX = 1024 };

/* ---- the root of the hash chain ---- */

static bool python_takes_seed(const char *seed) {
    int64_t value = 0;
    return strcmp(seed, "random") == 0 || !*seed || (!strchr(seed, '_') && lint_is_number(seed, 0, UINT32_MAX, &value));
}

static void check_seed(struct lint *lint, const struct lint_engine *engine) {
    const struct moon_json *seed = lint_variable(engine->env, "PYTHONHASHSEED"),
                           *at = moon_json_member(engine->at.json, "hash_algo");
    const char *algo = engine->hash_algo ? engine->hash_algo : "sha256";
    bool xxhash = strncmp(algo, "xxhash", 6) == 0;
    if (!at)
        at = engine->at.json;
    if (seed && !python_takes_seed(seed->bytes))
        lint_find(lint, "LINT-093", engine->at.source, seed, "PYTHONHASHSEED is %s", lint_show(lint, seed));
    else if (seed && (strcmp(seed->bytes, "random") == 0 || !*seed->bytes))
        lint_find(lint, "LINT-092", engine->at.source, seed, "PYTHONHASHSEED is %s", lint_show(lint, seed));
    if (!seed && xxhash)
        lint_find(lint, "LINT-090", engine->at.source, at, "%s: %s without PYTHONHASHSEED", engine->name, algo);
    else if (!seed && engine->profile->none_hash == MOON_NONE_HASH_RANDOM_BYTES)
        lint_find(lint, "LINT-091", engine->at.source, at, "%s: %s without PYTHONHASHSEED", engine->name,
                  engine->profile->name);
    else if (xxhash)
        lint_find(lint, "LINT-094", engine->at.source, at, "%s: %s for a shared pool", engine->name, algo);
}

static void check_algo(struct lint *lint, const struct lint_engine *engine) {
    static const char *const names[] = {"sha256", "sha256_cbor", "xxhash", "xxhash_cbor", NULL};
    const struct moon_json *at = moon_json_member(engine->at.json, "hash_algo");
    for (int i = 0; engine->hash_algo && names[i]; i++)
        if (strcmp(engine->hash_algo, names[i]) == 0)
            return;
    if (engine->hash_algo)
        lint_find(lint, "LINT-095", engine->at.source, at, "hash_algo is %s%s", lint_show(lint, at),
                  lint_hint(lint, moon_suggest(engine->hash_algo, names)));
}

/* ---- names and numbers ---- */

static bool begins(const char *text, const char *start) {
    return strncmp(text, start, strlen(start)) == 0;
}

/* Variables that only the owner of an SSD tier reads. */
static bool is_owner_variable(const char *name) {
    static const char *const starts[] = {"MOONCAKE_OFFLOAD_",  "MOONCAKE_BUCKET_",        "MOONCAKE_OFFSET_",
                                         "MOONCAKE_USE_URING", "MOONCAKE_DISK_EVICTION_", "MOONCAKE_SCANMETA_",
                                         "MOONCAKE_NVME_KV_",  "MOONCAKE_DISTRIBUTED_",   "MOONCAKE_DFS_"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
        if (begins(name, starts[i]))
            return true;
    return false;
}

static void check_name(struct lint *lint, const struct lint_engine *engine, const struct moon_json *value) {
    const char *names[VARIABLE_COUNT + 1] = {NULL};
    if (is_owner_variable(value->name)) {
        lint_find(lint, "LINT-099", engine->at.source, value, "%s: %s is set for an engine", engine->name, value->name);
        return;
    }
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        names[i] = variables[i].name;
        if (strcmp(value->name, variables[i].name) != 0)
            continue;
        if (engine->profile->minor < variables[i].since)
            lint_find(lint, "LINT-098", engine->at.source, value, "%s does not read %s: it came with 0.%d",
                      engine->profile->name, value->name, variables[i].since);
        return;
    }
    lint_find(lint, "LINT-098", engine->at.source, value, "%s is no variable of the connector%s", value->name,
              lint_hint(lint, moon_suggest(value->name, names)));
}

static void check_numbers(struct lint *lint, const struct lint_engine *engine) {
    int64_t number = 0;
    double seconds = 0;
    for (int i = 0; i < VARIABLE_COUNT; i++) {
        const struct moon_json *value = lint_variable(engine->env, variables[i].name);
        if (value && variables[i].max > 0 && !lint_is_number(value->bytes, variables[i].min, variables[i].max, &number))
            lint_find(lint, "LINT-100", engine->at.source, value, "%s is %s", variables[i].name,
                      lint_show(lint, value));
    }
    const struct moon_json *timeout = lint_variable(engine->env, "VLLM_MOONCAKE_CONNECTOR_TIMEOUT");
    int status = timeout ? moon_python_float(lint->arena, timeout->bytes, timeout->length, &seconds) : MOON_OK;
    if (status == MOON_ERR_MEMORY)
        lint->status = status;
    else if (status || seconds < 0)
        lint_find(lint, "LINT-100", engine->at.source, timeout, "VLLM_MOONCAKE_CONNECTOR_TIMEOUT is %s",
                  lint_show(lint, timeout));
}

static void check_ratio(struct lint *lint, const struct lint_engine *engine) {
    const struct moon_json *value = lint_variable(engine->env, "VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO");
    double ratio = 0;
    if (!value)
        return;
    int status = moon_python_float(lint->arena, value->bytes, value->length, &ratio);
    if (status == MOON_ERR_MEMORY)
        lint->status = status;
    else if (status || !(ratio > 0 && ratio <= 1)) /* NaN too */
        lint_find(lint, "LINT-096", engine->at.source, value, "VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO is %s",
                  lint_show(lint, value));
}

/* ---- addresses ---- */

static void check_addresses(struct lint *lint, const struct lint_engine *engine) {
    const struct moon_json *segment = lint_variable(engine->env, "MOONCAKE_PREFERRED_SEGMENT");
    const struct moon_json *hostname = lint_variable(engine->env, "MOONCAKE_REQUESTER_LOCAL_HOSTNAME");
    const char *text = segment ? segment->bytes : "";
    size_t length = strlen(text);
    moon_python_strip(&text, &length);
    if (length > 0 && !lint_is_host_port(text, length))
        lint_find(lint, "LINT-046", engine->at.source, segment, "MOONCAKE_PREFERRED_SEGMENT is %s",
                  lint_show(lint, segment));
    if (!hostname)
        return;
    text = hostname->bytes;
    length = hostname->length;
    moon_python_strip(&text, &length);
    bool port = lint_is_host_port(text, length), odd = false;
    for (size_t i = 0; i < length; i++)
        odd |= (uint8_t)text[i] <= ' ' || text[i] == '/';
    if (port || odd)
        lint_find(lint, "LINT-101", engine->at.source, hostname, "MOONCAKE_REQUESTER_LOCAL_HOSTNAME is %s",
                  lint_show(lint, hostname));
}

static void check_config_path(struct lint *lint, const struct lint_engine *engine) {
    const struct moon_json *path = lint_variable(engine->env, "MOONCAKE_CONFIG_PATH");
    if (engine->env_told && engine->store && !engine->config.json && (!path || path->length == 0))
        lint_find(lint, "LINT-097", engine->at.source, path ? path : engine->env, "%s: MOONCAKE_CONFIG_PATH is %s",
                  engine->name, path ? "empty" : "not set");
}

void lint_rdma_variables(struct lint *lint, const char *source, const struct moon_json *env, bool rdma) {
    const struct moon_json *gid = lint_variable(env, "MC_GID_INDEX"), *mtu = lint_variable(env, "MC_MTU"),
                           *force = lint_variable(env, "MC_FORCE_TCP");
    int64_t bytes = 0;
    if (gid)
        lint_find(lint, "LINT-102", source, gid, "MC_GID_INDEX is %s", lint_show(lint, gid));
    if (mtu && (!lint_is_number(mtu->bytes, 0, INT32_MAX, &bytes) || bytes > MTU_BYTES_MAX))
        lint_find(lint, "LINT-103", source, mtu, "MC_MTU is %s", lint_show(lint, mtu));
    if (force && force->length > 0 && rdma)
        lint_find(lint, "LINT-104", source, force, "MC_FORCE_TCP is set and the protocol is rdma");
}

void lint_environment(struct lint *lint, const struct lint_engine *engine) {
    const struct moon_json *env = engine->env;
    for (const struct moon_json *value = env ? env->first : NULL; value; value = value->next)
        if (begins(value->name, "MOONCAKE_") || begins(value->name, "VLLM_MOONCAKE_"))
            check_name(lint, engine, value);
    check_numbers(lint, engine);
    if (engine->profile->config_mode)
        check_ratio(lint, engine);
    check_addresses(lint, engine);
    check_config_path(lint, engine);
    lint_rdma_variables(lint, engine->at.source, env, lint_uses_rdma(engine));
    check_algo(lint, engine);
    if (engine->store && engine->described)
        check_seed(lint, engine);
}
