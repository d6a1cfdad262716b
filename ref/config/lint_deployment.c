/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the description of a deployment: engines, master, owners, quota policy. */
#include "ref/config/lint_internal.h"

#include "ref/base/suggest.h"

#include <string.h>

/* Reports members that are not in the list. */
static void check_closed(struct lint *lint, const char *source, const struct moon_json *object,
                         const char *const names[]) {
    for (const struct moon_json *member = object->first; member; member = member->next) {
        int i = 0;
        while (names[i] && strcmp(names[i], member->name) != 0)
            i++;
        if (!names[i])
            lint_find(lint, "LINT-162", source, member, "\"%s\" is not part of a description%s", member->name,
                      lint_hint(lint, moon_suggest(member->name, names)));
    }
}

static void get_text(struct lint *lint, const char *source, const struct moon_json *object, const char *name,
                     const char **out) {
    const struct moon_json *value = moon_json_member(object, name);
    if (moon_json_is(value, MOON_JSON_STRING))
        *out = value->bytes;
    else if (value)
        lint_find(lint, "LINT-162", source, value, "%s must be a text, not %s", name, lint_show(lint, value));
}

static void get_number(struct lint *lint, const char *source, const struct moon_json *object, const char *name,
                       int64_t min, int64_t *out) {
    const struct moon_json *value = moon_json_member(object, name);
    if (moon_json_is(value, MOON_JSON_INTEGER) && value->fits && value->integer >= min && value->integer <= INT32_MAX)
        *out = value->integer;
    else if (value)
        lint_find(lint, "LINT-162", source, value, "%s must be a whole number from %lld, not %s", name, (long long)min,
                  lint_show(lint, value));
}

static const struct moon_json *get_object(struct lint *lint, const char *source, const struct moon_json *object,
                                          const char *name) {
    const struct moon_json *value = moon_json_member(object, name);
    if (!value || value->type == MOON_JSON_OBJECT)
        return value;
    lint_find(lint, "LINT-162", source, value, "%s must be an object, not %s", name, lint_show(lint, value));
    return NULL;
}

/* ---- parts ---- */

static const struct moon_json *read_env(struct lint *lint, const char *source, const struct moon_json *object) {
    const struct moon_json *env = get_object(lint, source, object, "env");
    for (const struct moon_json *value = env ? env->first : NULL; value; value = value->next)
        if (value->type != MOON_JSON_STRING || memchr(value->bytes, '\0', value->length))
            lint_find(lint, "LINT-162", source, value, "%s must be a text, not %s", value->name,
                      lint_show(lint, value));
    return env;
}

static const struct moon_profile *read_profile(struct lint *lint, const char *source, const struct moon_json *object,
                                               const struct moon_profile *otherwise) {
    const char *name = NULL;
    struct moon_error error = {0};
    get_text(lint, source, object, "profile", &name);
    const struct moon_profile *profile = name ? moon_profile_find(name, &error) : otherwise;
    if (profile)
        return profile;
    lint_find(lint, "LINT-162", source, moon_json_member(object, "profile"), "%s", error.message);
    return otherwise;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The configuration file of that name among the inputs: the same path, else the same last part. */
static const struct moon_lint_input *find_input(const struct lint *lint, const char *path) {
    for (size_t i = 0; i < lint->input_count; i++)
        if (strcmp(lint->inputs[i].name, path) == 0)
            return &lint->inputs[i];
    for (size_t i = 0; i < lint->input_count; i++)
        if (strcmp(base_name(lint->inputs[i].name), base_name(path)) == 0)
            return &lint->inputs[i];
    return NULL;
}

static void read_config_file(struct lint *lint, const char *path, struct lint_engine *engine) {
    const struct moon_lint_input *input = find_input(lint, path);
    struct moon_json *document = NULL;
    if (!input)
        return;
    int status = moon_json_read(lint->arena, "", input->bytes, input->length, MOON_JSON_PYTHON, &document, NULL);
    if (status == MOON_ERR_MEMORY)
        lint->status = status;
    if (!status)
        engine->config = (struct lint_place){input->name, document};
}

static void read_config(struct lint *lint, struct lint_engine *engine) {
    const char *source = engine->at.source;
    const struct moon_json *value = moon_json_member(engine->at.json, "mooncake_config");
    const struct moon_json *path = lint_variable(engine->env, "MOONCAKE_CONFIG_PATH");
    if (moon_json_is(value, MOON_JSON_OBJECT)) {
        engine->config = (struct lint_place){source, value};
    } else if (moon_json_is(value, MOON_JSON_STRING)) {
        read_config_file(lint, value->bytes, engine);
        if (!engine->config.json)
            lint_find(lint, "LINT-162", source, value, "%s is not among the files of this run, or no JSON",
                      lint_show(lint, value));
    } else if (value) {
        lint_find(lint, "LINT-162", source, value, "mooncake_config must be an object or the name of a file");
    } else if (path) {
        read_config_file(lint, path->bytes, engine);
    }
}

static void read_engine(struct lint *lint, const char *source, const struct moon_json *object,
                        const struct moon_profile *profile) {
    static const char *const names[] = {"name",
                                        "profile",
                                        "host",
                                        "http_port",
                                        "dp_index",
                                        "env",
                                        "model",
                                        "hash_algo",
                                        "block_size",
                                        "tp",
                                        "pp",
                                        "pcp",
                                        "dcp",
                                        "kv_heads",
                                        "kv_layout",
                                        "dtype",
                                        "revision",
                                        "kv_cache_dtype",
                                        "quantization",
                                        "kv_events",
                                        "mooncake_config",
                                        "kv_transfer_config",
                                        NULL};
    struct lint_engine *engine = moon_arena_alloc(lint->arena, sizeof *engine);
    const char *name = moon_arena_format(lint->arena, "engine %zu", object->index);
    if (!engine || !name) {
        lint->status = MOON_ERR_MEMORY;
        return;
    }
    if (object->type != MOON_JSON_OBJECT) {
        lint_find(lint, "LINT-162", source, object, "an engine is an object, not %s", lint_show(lint, object));
        return;
    }
    engine->name = name;
    engine->at = (struct lint_place){source, object};
    engine->described = true;
    check_closed(lint, source, object, names);
    get_text(lint, source, object, "name", &engine->name);
    engine->profile = read_profile(lint, source, object, profile);
    engine->env = read_env(lint, source, object);
    engine->env_told = engine->env != NULL;
    engine->host = "";
    get_text(lint, source, object, "host", &engine->host);
    get_text(lint, source, object, "model", &engine->model);
    get_text(lint, source, object, "hash_algo", &engine->hash_algo);
    get_text(lint, source, object, "kv_layout", &engine->kv_layout);
    get_number(lint, source, object, "http_port", 1, &engine->http_port);
    get_number(lint, source, object, "dp_index", 0, &engine->dp_index);
    get_number(lint, source, object, "block_size", 1, &engine->block_size);
    get_number(lint, source, object, "tp", 1, &engine->tp);
    get_number(lint, source, object, "pp", 1, &engine->pp);
    get_number(lint, source, object, "pcp", 1, &engine->pcp);
    get_number(lint, source, object, "dcp", 1, &engine->dcp);
    get_number(lint, source, object, "kv_heads", 1, &engine->kv_heads);
    const struct moon_json *events = moon_json_member(object, "kv_events");
    engine->kv_events = events && events->boolean;
    if (events && events->type != MOON_JSON_BOOL)
        lint_find(lint, "LINT-162", source, events, "kv_events must be true or false");
    engine->transfer = (struct lint_place){source, moon_json_member(object, "kv_transfer_config")};
    read_config(lint, engine);
    lint_engine(lint, engine);
}

static void read_daemon(struct lint *lint, enum lint_program program, const char *source,
                        const struct moon_json *object, struct lint_daemon *out) {
    static const char *const names[] = {"name", "host", "flags", "env", NULL};
    if (object->type != MOON_JSON_OBJECT) {
        lint_find(lint, "LINT-162", source, object, "master and owners are objects, not %s", lint_show(lint, object));
        return;
    }
    check_closed(lint, source, object, names);
    out->present = true;
    out->at = (struct lint_place){source, object};
    out->host = "";
    get_text(lint, source, object, "host", &out->host);
    out->env = read_env(lint, source, object);
    const struct moon_json *flags = moon_json_member(object, "flags");
    if (moon_json_is(flags, MOON_JSON_ARRAY))
        lint_flags_read(lint, program, source, flags, &out->flags);
    else if (flags)
        lint_find(lint, "LINT-162", source, flags, "flags must be a list of texts, as in [\"--port\", \"50051\"]");
}

static void read_owner(struct lint *lint, const char *source, const struct moon_json *object) {
    struct lint_daemon *owner = moon_arena_alloc(lint->arena, sizeof *owner);
    if (!owner || ++lint->owner_count > MOON_LINT_OWNERS_MAX) {
        lint->status = owner ? MOON_ERR_LIMIT : MOON_ERR_MEMORY;
        return;
    }
    read_daemon(lint, LINT_OWNER, source, object, owner);
    if (!owner->present)
        return;
    if (lint->last_owner)
        lint->last_owner->next = owner;
    else
        lint->owners = owner;
    lint->last_owner = owner;
}

/* The children of a list, or nothing and a finding. */
static const struct moon_json *list_of(struct lint *lint, const char *source, const struct moon_json *document,
                                       const char *name) {
    const struct moon_json *list = moon_json_member(document, name);
    if (!list || list->type == MOON_JSON_ARRAY)
        return list ? list->first : NULL;
    lint_find(lint, "LINT-162", source, list, "%s must be a list", name);
    return NULL;
}

void lint_deployment(struct lint *lint, const char *source, const struct moon_json *document) {
    static const char *const names[] = {"profile", "engines", "master", "owners", "tenant_quota_policy",
                                        "comment", NULL};
    check_closed(lint, source, document, names);
    const struct moon_profile *profile = read_profile(lint, source, document, lint->profile);
    const struct moon_json *master = moon_json_member(document, "master");
    const struct moon_json *policy = moon_json_member(document, "tenant_quota_policy");
    for (const struct moon_json *one = list_of(lint, source, document, "engines"); one && !lint->status;
         one = one->next)
        read_engine(lint, source, one, profile);
    if (master)
        read_daemon(lint, LINT_MASTER, source, master, &lint->master);
    if (policy)
        lint->policy = (struct lint_place){source, policy};
    for (const struct moon_json *one = list_of(lint, source, document, "owners"); one && !lint->status; one = one->next)
        read_owner(lint, source, one);
}
