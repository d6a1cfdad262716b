/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables that the connector reads. */
#include "ref/config/environment.h"

#include "ref/config/python_number.h"
#include "ref/config/python_repr.h"

#include <string.h>

static const char *variable(const struct moon_environment *environment, const char *name) {
    return environment->get(environment->context, name);
}

/* The variable without white space around it; false when it is not set or blank. */
static bool stripped_variable(const struct moon_environment *environment, const char *name, const char **value,
                              size_t *length) {
    *value = variable(environment, name);
    if (!*value)
        return false;
    *length = strlen(*value);
    moon_python_strip(value, length);
    return *length > 0;
}

int moon_store_config_path(struct moon_arena *arena, const struct moon_environment *environment, const char **path,
                           struct moon_exception *raised) {
    *path = variable(environment, "MOONCAKE_CONFIG_PATH");
    if (!*path || !**path)
        return moon_raise(arena, raised, "ValueError", "The environment variable 'MOONCAKE_CONFIG_PATH' is not set.");
    return MOON_OK;
}

int moon_preferred_segment(struct moon_arena *arena, const struct moon_environment *environment,
                           const struct moon_json *extra, const char **value, size_t *length,
                           struct moon_exception *raised) {
    const struct moon_json *member = moon_json_member(extra, "preferred_segment");
    if (!member || member->type == MOON_JSON_NULL) {
        if (!stripped_variable(environment, "MOONCAKE_PREFERRED_SEGMENT", value, length))
            *value = NULL;
        return MOON_OK;
    }
    if (member->type == MOON_JSON_STRING) {
        *value = member->bytes;
        *length = member->length;
        moon_python_strip(value, length);
        if (*length > 0)
            return MOON_OK;
    }
    raised->member = "preferred_segment";
    return moon_raise(arena, raised, "ValueError", "Mooncake preferred_segment override must be a non-empty string");
}

void moon_requester_hostname(const struct moon_environment *environment, const char *local_ip, const char **value,
                             size_t *length) {
    if (!stripped_variable(environment, "MOONCAKE_REQUESTER_LOCAL_HOSTNAME", value, length)) {
        *value = local_ip;
        *length = strlen(local_ip);
    }
}

static int refuse_float(struct moon_arena *arena, const char *text, struct moon_exception *raised) {
    struct moon_json *given = moon_json_string(arena, text);
    if (!given)
        return MOON_ERR_MEMORY;
    struct moon_text message;
    moon_text_open(&message, arena->memory);
    moon_text_string(&message, "could not convert string to float: ");
    moon_python_repr(given, &message);
    int status = moon_raise_text(arena, raised, "ValueError", &message);
    moon_text_close(&message);
    return status;
}

int moon_disk_staging_usable(struct moon_arena *arena, const struct moon_environment *environment,
                             struct moon_json **bytes, struct moon_exception *raised) {
    const char *text = variable(environment, "VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO");
    double ratio = 0;
    if (!text)
        text = "0.9";
    int status = moon_python_float(arena, text, strlen(text), &ratio);
    if (status == MOON_ERR_MEMORY)
        return status;
    if (status)
        return refuse_float(arena, text, raised);
    status = moon_python_trunc(arena, ratio * MOON_DISK_STAGING_BYTES, bytes, raised);
    if (status == MOON_OK && moon_python_sign(*bytes) <= 0) { /* the release asks for one byte at least */
        *bytes = moon_json_int(arena, 1);
        status = *bytes ? MOON_OK : MOON_ERR_MEMORY;
    }
    return status;
}

const char *moon_lookup_socket(struct moon_arena *arena, const struct moon_profile *profile,
                               const struct moon_environment *environment, const char *rpc_port, const char *hostname,
                               const char *user, int64_t dp_rank) {
    const char *base = variable(environment, "VLLM_RPC_BASE_PATH");
    const char *who = profile->config_mode ? "host_" : "uid";
    return moon_arena_format(arena, "ipc://%s/lookup_rpc_port_%s_%s%s_dp_rank%lld", base ? base : "/tmp", rpc_port, who,
                             profile->config_mode ? hostname : user, (long long)dp_rank);
}
