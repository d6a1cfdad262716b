/* SPDX-License-Identifier: Apache-2.0 */
/* Lint between engines: do they share as meant, do they share what they must not, do they take each other's sockets. */
#include "ref/config/lint_internal.h"

#include "ref/config/environment.h"

#include <string.h>

/* ---- what an engine's keys begin with ---- */

static struct moon_key_text model_path(const struct lint_engine *engine) {
    struct moon_key_text path = moon_key_text(engine->model);
    while (path.length > 0 && path.bytes[path.length - 1] == '/')
        path.length--;
    return path;
}

static bool same_text(struct moon_key_text a, struct moon_key_text b) {
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

/* "" for none, and for releases that read none. */
static const char *prefix_of(const struct lint_engine *engine) {
    const struct moon_json *prefix = moon_json_member(engine->store->extra, "cache_prefix");
    return engine->profile->cache_prefix && moon_json_is(prefix, MOON_JSON_STRING) ? prefix->bytes : "";
}

static const char *tenant_of(const struct lint_engine *engine) {
    const char *tenant = lint_tenant_of(engine);
    return tenant ? tenant : "default";
}

/* Text of a member that changes bytes but no key; what is not told is the default. */
static const char *setting_of(const struct lint_engine *engine, const char *name, const char *otherwise) {
    const struct moon_json *value = moon_json_member(engine->at.json, name);
    return moon_json_is(value, MOON_JSON_STRING) ? value->bytes : otherwise;
}

static const struct moon_json *place_of(const struct lint_engine *engine, const char *name) {
    const struct moon_json *value = moon_json_member(engine->at.json, name);
    return value ? value : engine->at.json;
}

/* Value of a store option, else the connector. */
static const struct moon_json *option_place(const struct lint_engine *engine, const char *name) {
    const struct moon_json *value = moon_json_member(engine->store->extra, name);
    return value ? value : engine->store->config;
}

/* ---- two engines whose keys could be equal ---- */

static void check_bytes(struct lint *lint, const struct lint_engine *a, const struct lint_engine *b) {
    static const struct {
        const char *name, *otherwise;
    } settings[] = {{"kv_cache_dtype", "auto"}, {"dtype", "auto"}, {"quantization", "none"}, {"revision", "main"}};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        const char *x = setting_of(a, settings[i].name, settings[i].otherwise);
        const char *y = setting_of(b, settings[i].name, settings[i].otherwise);
        if (strcmp(x, y) != 0)
            lint_find(lint, "LINT-154", b->at.source, place_of(b, settings[i].name), "%s has %s %s, %s has %s", b->name,
                      settings[i].name, y, a->name, x);
    }
}

static void check_hashes(struct lint *lint, const struct lint_engine *a, const struct lint_engine *b) {
    const char *x = a->hash_algo ? a->hash_algo : "sha256", *y = b->hash_algo ? b->hash_algo : "sha256";
    const struct moon_json *s = lint_variable(a->env, "PYTHONHASHSEED"), *t = lint_variable(b->env, "PYTHONHASHSEED");
    if (strcmp(x, y) != 0)
        lint_find(lint, "LINT-150", b->at.source, place_of(b, "hash_algo"), "%s hashes with %s, %s with %s", b->name, y,
                  a->name, x);
    if ((s == NULL) != (t == NULL) || (s && strcmp(s->bytes, t->bytes) != 0))
        lint_find(lint, "LINT-150", b->at.source, t ? t : b->at.json, "%s has PYTHONHASHSEED %s, %s has %s", b->name,
                  t ? t->bytes : "unset", a->name, s ? s->bytes : "unset");
    if (a->block_size && b->block_size && a->block_size != b->block_size)
        lint_find(lint, "LINT-150", b->at.source, place_of(b, "block_size"), "%s has blocks of %lld tokens, %s of %lld",
                  b->name, (long long)b->block_size, a->name, (long long)a->block_size);
}

static void check_releases(struct lint *lint, const struct lint_engine *a, const struct lint_engine *b) {
    const struct moon_profile *p = a->profile, *q = b->profile;
    const char *what = NULL;
    bool seeded = lint_variable(a->env, "PYTHONHASHSEED") || lint_variable(b->env, "PYTHONHASHSEED");
    if ((p->group_numbering == MOON_GROUP_NONE) != (q->group_numbering == MOON_GROUP_NONE))
        what = "only one of them writes the field @group, so no key is equal";
    else if (p->none_hash != q->none_hash && !seeded)
        what = "without PYTHONHASHSEED their chains have different roots";
    else if (p->extra_tagged != q->extra_tagged)
        what = "requests with LoRA, images, salt or prompt embeddings hash differently";
    if (what)
        lint_find(lint, "LINT-156", b->at.source, place_of(b, "profile"), "%s runs %s, %s runs %s: %s", b->name,
                  q->name, a->name, p->name, what);
}

/* Lists of both, when both derive their store TP from one; reports a difference. Returns true if store TP differ. */
static bool lists_differ(struct lint *lint, const struct lint_engine *a, const struct lint_engine *b) {
    const struct moon_store_tp *x = &a->selection.store_tp, *y = &b->selection.store_tp;
    const struct moon_json *list = moon_json_member(a->store->extra, "prefill_tp_sizes"),
                           *other = moon_json_member(b->store->extra, "prefill_tp_sizes");
    if (x->source != MOON_STORE_TP_FROM_LIST || y->source != MOON_STORE_TP_FROM_LIST || moon_json_equal(list, other))
        return false;
    bool differ = x->size != y->size;
    lint_find_as(lint, "LINT-158", differ ? MOON_LINT_ERROR : MOON_LINT_WARNING, b->transfer.source, other,
                 "%s has %s (store TP %lld), %s has %s (%lld)", b->name, lint_show(lint, other), (long long)y->size,
                 a->name, lint_show(lint, list), (long long)x->size);
    return differ;
}

static void check_namespaces(struct lint *lint, const struct lint_engine *a, const struct lint_engine *b) {
    bool plain = a->selection.text_length == 0 && b->selection.text_length == 0;
    int64_t pp_a = a->pp > 0 ? a->pp : 1, pp_b = b->pp > 0 ? b->pp : 1;
    if (!plain && strcmp(a->selection.text, b->selection.text) != 0)
        lint_find(lint, "LINT-159", b->transfer.source, option_place(b, "store_tp_size"),
                  "keys of %s hold \"%s\", of %s \"%s\"", b->name, b->selection.text, a->name, a->selection.text);
    else if (pp_a != pp_b)
        lint_find(lint, "LINT-159", b->at.source, place_of(b, "pp"), "%s has PP %lld, %s has %lld", b->name,
                  (long long)pp_b, a->name, (long long)pp_a);
    if (plain && a->tp > 0 && b->tp > 0 && a->tp != b->tp)
        lint_find(lint, "LINT-157", b->at.source, place_of(b, "tp"), "%s has TP %lld, %s has %lld", b->name,
                  (long long)b->tp, a->name, (long long)a->tp);
}

static void check_pair(struct lint *lint, const struct lint_engine *a, const struct lint_engine *b) {
    if (!same_text(model_path(a), model_path(b))) {
        lint_find(lint, "LINT-151", b->at.source, place_of(b, "model"),
                  "%s serves %s, %s serves %s; keys call both \"%.*s\"", b->name, b->model, a->name, a->model,
                  (int)moon_model_name(moon_key_text(b->model)).length, moon_model_name(moon_key_text(b->model)).bytes);
        return;
    }
    check_bytes(lint, a, b);
    check_hashes(lint, a, b);
    check_releases(lint, a, b);
    if (!lists_differ(lint, a, b))
        check_namespaces(lint, a, b);
}

/* ---- groups ---- */

static bool comparable(const struct lint_engine *engine) {
    return engine->described && engine->store && engine->model;
}

/* An earlier engine that is or is not alike in what keys begin with. */
struct earlier {
    const struct lint_engine *alike;     /* same tenant, prefix, name of model */
    const struct lint_engine *prefix;    /* same tenant and name of model, other prefix */
    const struct lint_engine *tenant;    /* same name of model, other tenant */
    const struct lint_engine *neighbour; /* same tenant, other prefix or name of model */
};

static struct earlier find_earlier(const struct lint *lint, const struct lint_engine *engine) {
    struct earlier found = {NULL, NULL, NULL, NULL};
    for (const struct lint_engine *at = lint->engines; at != engine; at = at->next) {
        if (!comparable(at))
            continue;
        bool name = same_text(moon_model_name(moon_key_text(at->model)), moon_model_name(moon_key_text(engine->model)));
        bool prefix = strcmp(prefix_of(at), prefix_of(engine)) == 0,
             tenant = strcmp(tenant_of(at), tenant_of(engine)) == 0;
        const struct lint_engine **slot = name && prefix && tenant ? &found.alike
                                          : name && tenant         ? &found.prefix
                                          : name                   ? &found.tenant
                                                                   : NULL;
        if (slot && !*slot)
            *slot = at;
        if (tenant && !(name && prefix) && !found.neighbour)
            found.neighbour = at;
    }
    return found;
}

static void check_groups(struct lint *lint) {
    for (const struct lint_engine *at = lint->engines; at && !lint->status; at = at->next) {
        if (!comparable(at))
            continue;
        struct earlier found = find_earlier(lint, at);
        if (found.alike)
            check_pair(lint, found.alike, at);
        else if (found.prefix)
            lint_find(lint, "LINT-163", at->transfer.source, option_place(at, "cache_prefix"),
                      "%s has cache_prefix \"%s\", %s has \"%s\"", at->name, prefix_of(at), found.prefix->name,
                      prefix_of(found.prefix));
        else if (found.tenant)
            lint_find(lint, "LINT-139", at->at.source, at->at.json, "%s is in tenant \"%s\", %s in \"%s\"", at->name,
                      tenant_of(at), found.tenant->name, tenant_of(found.tenant));
        if (found.neighbour)
            lint_find(lint, "LINT-155", at->at.source, at->at.json, "%s and %s share tenant \"%s\"", at->name,
                      found.neighbour->name, tenant_of(at));
    }
}

/* ---- sockets and ports ---- */

static const char *socket_of(struct lint *lint, const struct lint_engine *engine) {
    struct moon_environment environment = {lint_environment_get, (void *)engine->env};
    const struct moon_json *port = moon_json_member(engine->store->extra, "lookup_rpc_port");
    bool text = moon_json_is(port, MOON_JSON_STRING) || moon_json_is(port, MOON_JSON_INTEGER);
    const char *path = moon_lookup_socket(lint->arena, engine->profile, &environment, text ? port->bytes : "0",
                                          engine->host, "0", engine->dp_index);
    if (!path)
        lint->status = MOON_ERR_MEMORY;
    return path;
}

static void check_sockets(struct lint *lint) {
    for (struct lint_engine *b = lint->engines; b && !lint->status; b = b->next) {
        if (!b->store || !b->described)
            continue;
        b->socket = socket_of(lint, b);
        const struct lint_engine *a = lint->engines;
        while (a != b &&
               !(a->socket && b->socket && strcmp(a->host, b->host) == 0 && strcmp(a->socket, b->socket) == 0))
            a = a->next;
        if (a != b)
            lint_find(lint, "LINT-160", b->transfer.source, option_place(b, "lookup_rpc_port"), "%s and %s use %s",
                      b->name, a->name, b->socket);
    }
}

/* A process that listens. */
struct listener {
    const char *host, *who, *what;
    int64_t port;
    const char *source;
    const struct moon_json *at;
    bool bootstrap;
};
enum { LISTENERS_MAX = 2 * MOON_LINT_ENGINES_MAX + MOON_LINT_OWNERS_MAX + 2, BOOTSTRAP_PORT = 8998 };

struct listeners {
    struct lint *lint;
    struct listener *all;
    size_t count;
};

static void listens(struct listeners *set, struct listener one) {
    for (size_t i = 0; i < set->count && one.port > 0; i++) {
        const struct listener *other = &set->all[i];
        if (other->port != one.port || strcmp(other->host, one.host) != 0)
            continue;
        lint_find(set->lint, one.bootstrap && other->bootstrap ? "LINT-161" : "LINT-123", one.source, one.at,
                  "%s (%s) and %s (%s) use port %lld", one.who, one.what, other->who, other->what, (long long)one.port);
        return;
    }
    if (one.port > 0)
        set->all[set->count++] = one;
}

static void listen_bootstrap(struct listeners *set, const struct lint_engine *engine) {
    const struct moon_json *port = lint_variable(engine->env, "VLLM_MOONCAKE_BOOTSTRAP_PORT");
    int64_t number = BOOTSTRAP_PORT;
    if (!engine->p2p || engine->p2p->role == MOON_ROLE_CONSUMER || engine->dp_index > 0 ||
        moon_json_member(engine->p2p->extra, "bootstrap_server_address"))
        return;
    if (port && !lint_is_number(port->bytes, 1, 65535, &number))
        return;
    listens(set, (struct listener){engine->host, engine->name, "bootstrap", number, engine->at.source,
                                   port ? port : engine->at.json, true});
}

static void check_ports(struct lint *lint) {
    struct listeners set = {lint, moon_arena_array(lint->arena, LISTENERS_MAX, sizeof(struct listener)), 0};
    const struct lint_daemon *master = &lint->master;
    if (!set.all) {
        lint->status = MOON_ERR_MEMORY;
        return;
    }
    if (lint_master_certain(lint)) {
        int64_t metrics = 0;
        lint_is_number(lint_flag_value(LINT_MASTER, master->flags, "metrics_port"), 0, 65535, &metrics);
        listens(&set, (struct listener){master->host, "the master", "RPC", lint_master_port(lint), master->at.source,
                                        lint_flag_place(master->flags, "port", master->at.json), false});
        listens(&set, (struct listener){master->host, "the master", "metrics", metrics, master->at.source,
                                        lint_flag_place(master->flags, "metrics_port", master->at.json), false});
    }
    for (const struct lint_daemon *owner = lint->owners; owner; owner = owner->next)
        listens(&set, (struct listener){owner->host, "an owner", "RPC", lint_owner_port(owner), owner->at.source,
                                        lint_flag_place(owner->flags, "port", owner->at.json), false});
    for (const struct lint_engine *engine = lint->engines; engine; engine = engine->next) {
        if (!engine->described)
            continue;
        listens(&set, (struct listener){engine->host, engine->name, "HTTP", engine->http_port, engine->at.source,
                                        place_of(engine, "http_port"), false});
        listen_bootstrap(&set, engine);
    }
}

void lint_cluster(struct lint *lint) {
    check_groups(lint);
    check_sockets(lint);
    check_ports(lint);
}
