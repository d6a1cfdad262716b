/* SPDX-License-Identifier: Apache-2.0 */
/* Lint of one engine: its configuration, options, environment and topology together. */
#include "ref/config/lint_internal.h"

#include "ref/config/environment.h"

#include <string.h>

#define BYTES_PER_GIB (1024.0 * 1024 * 1024)

bool lint_uses_rdma(const struct lint_engine *engine) {
    return engine->config_ok && moon_json_is_string(engine->loaded.protocol, "rdma");
}

const char *lint_tenant_of(const struct lint_engine *engine) {
    if (!engine->config_ok)
        return NULL;
    return engine->loaded.tenant_id ? engine->loaded.tenant_id->bytes : "default";
}

bool lint_standalone(const struct lint_engine *engine) {
    return engine->config_ok && moon_json_is_string(engine->loaded.mode, "standalone-store");
}

bool lint_offloads(const struct lint_engine *engine) {
    return engine->config_ok && engine->loaded.enable_offload && engine->loaded.enable_offload->boolean;
}

const char *lint_preferred_segment(struct lint *lint, const struct lint_engine *engine) {
    struct moon_exception raised = {0};
    const char *text = NULL;
    size_t length = 0;
    struct moon_environment environment = {lint_environment_get, (void *)engine->env};
    int status = moon_preferred_segment(lint->arena, &environment, engine->store ? engine->store->extra : NULL, &text,
                                        &length, &raised);
    char *copy = !status && text ? moon_arena_copy(lint->arena, text, length) : NULL;
    if (status == MOON_ERR_MEMORY || (!status && text && !copy))
        lint->status = MOON_ERR_MEMORY;
    return copy; /* a refused option is reported by lint_extra */
}

/* ---- configuration and environment together ---- */

static void check_modes(struct lint *lint, const struct lint_engine *engine) {
    if (!engine->config_ok || !engine->loaded.mode)
        return;
    bool preferred = lint_preferred_segment(lint, engine) != NULL, told = engine->env_told || engine->store;
    const struct moon_json *offload = moon_json_member(engine->config.json, "enable_offload"),
                           *mode = moon_json_member(engine->config.json, "mode");
    const struct moon_json *config = engine->config.json;
    if (lint_standalone(engine)) {
        if (!lint_offloads(engine))
            lint_find(lint, "LINT-029", engine->config.source, mode, "standalone-store without enable_offload");
        return;
    }
    if (lint_offloads(engine) && told && !preferred)
        lint_find(lint, "LINT-028", engine->config.source, offload,
                  "embedded with enable_offload and no preferred segment");
    if (preferred)
        lint_find(lint, "LINT-030", engine->config.source, mode ? mode : config,
                  "embedded mode, and a preferred segment is set");
}

static void check_locked_memory(struct lint *lint, const struct lint_engine *engine) {
    if (!lint_uses_rdma(engine) || engine->tp < 1)
        return;
    const struct moon_json *segment = engine->loaded.global_segment_size, *buffer = engine->loaded.local_buffer_size;
    double bytes = (segment->real + buffer->real) * (double)engine->tp * (double)(engine->pp > 0 ? engine->pp : 1);
    if (bytes > 0)
        lint_find(lint, "LINT-031", engine->config.source, engine->config.json,
                  "%s locks %.1f GiB for segments and buffers, and its KV cache", engine->name, bytes / BYTES_PER_GIB);
}

/* ---- the store layout ---- */

static enum moon_kv_layout layout_of(struct lint *lint, const struct lint_engine *engine) {
    enum moon_kv_layout layout = MOON_KV_LBHNC;
    struct moon_error error = {0};
    if (engine->kv_layout && moon_kv_layout_find(engine->kv_layout, &layout, &error))
        lint_find(lint, "LINT-162", engine->at.source, moon_json_member(engine->at.json, "kv_layout"), "%s",
                  error.message);
    return layout;
}

/* Chooses the layout as the release does; what is not told is taken so that it is no obstacle. */
static void select_layout(struct lint *lint, struct lint_engine *engine) {
    struct moon_layout_group group = {.spec = {.kind = MOON_SPEC_FULL, .num_kv_heads = 1, .head_size = 1},
                                      .block_tokens = 1,
                                      .transferable = true,
                                      .prefix_cacheable = true};
    struct moon_layout_model model = {.tp = engine->tp > 0 ? engine->tp : 1,
                                      .pp = engine->pp > 0 ? engine->pp : 1,
                                      .pcp = engine->pcp > 0 ? engine->pcp : 1,
                                      .dcp = engine->dcp > 0 ? engine->dcp : 1,
                                      .kv_layout = layout_of(lint, engine),
                                      .groups = &group,
                                      .group_count = 1,
                                      .scheduler_block_tokens = 1,
                                      .hash_block_tokens = 1};
    struct moon_store_tp store_tp;
    if (moon_extra_layout(lint->arena, engine->store->extra, &model)) {
        lint->status = MOON_ERR_MEMORY;
        return;
    }
    moon_store_tp_resolve(&model, &store_tp);
    model.total_kv_heads = engine->kv_heads > 0 ? engine->kv_heads : store_tp.size > 0 ? store_tp.size : 1;
    moon_store_select(engine->profile, &model, &engine->selection);
}

static const char *rule_of(enum moon_store_refusal refusal) {
    switch (refusal) {
    case MOON_REFUSAL_BELOW_TP:
    case MOON_REFUSAL_NOT_MULTIPLE:
        return "LINT-055";
    case MOON_REFUSAL_HEADS:
        return "LINT-056";
    case MOON_REFUSAL_KV_LAYOUT:
        return "LINT-058";
    case MOON_REFUSAL_PCP:
    case MOON_REFUSAL_DCP:
    case MOON_REFUSAL_CROSS_LAYERS:
        return "LINT-059";
    default:
        return NULL; /* none; or an unknown size, which lint_extra reports */
    }
}

static void check_layout(struct lint *lint, struct lint_engine *engine) {
    if (!engine->profile->store_namespace)
        return;
    select_layout(lint, engine);
    const struct moon_json *extra = engine->store->extra, *list = moon_json_member(extra, "prefill_tp_sizes"),
                           *size = moon_json_member(extra, "store_tp_size");
    const struct moon_json *at = engine->selection.store_tp.source == MOON_STORE_TP_FROM_LIST ? list : size;
    const char *rule = rule_of(engine->selection.refusal);
    if (rule)
        lint_find(lint, rule, engine->transfer.source, at, "%s: store TP %lld: %s, so keys are %s", engine->name,
                  (long long)engine->selection.store_tp.size, moon_store_refusal_text(engine->selection.refusal),
                  engine->selection.text);
    if (engine->selection.space.format == MOON_STORE_SHARDED_LBNHC)
        lint_find(lint, "LINT-057", engine->transfer.source, at, "%s: the sharded store uses LBNHC", engine->name);
}

/* ---- the model's name ---- */

static void check_model(struct lint *lint, const struct lint_engine *engine) {
    if (!engine->model || !engine->store)
        return;
    const struct moon_json *at = moon_json_member(engine->at.json, "model");
    struct moon_key_text name = moon_model_name(moon_key_text(engine->model));
    if (name.length == 0)
        lint_find(lint, "LINT-153", engine->at.source, at, "model is %s", lint_show(lint, at));
    else if (memchr(name.bytes, '@', name.length))
        lint_find(lint, "LINT-152", engine->at.source, at, "model is %s", lint_show(lint, at));
}

void lint_engine(struct lint *lint, struct lint_engine *engine) {
    if (++lint->engine_count > MOON_LINT_ENGINES_MAX)
        lint->status = MOON_ERR_LIMIT;
    if (lint->status)
        return;
    if (lint->last_engine)
        lint->last_engine->next = engine;
    else
        lint->engines = engine;
    lint->last_engine = engine;
    if (engine->transfer.json)
        lint_kv_transfer(lint, engine);
    if (engine->config.json)
        lint_store_config(lint, engine->profile, engine->config, engine);
    if (lint->status)
        return;
    check_modes(lint, engine);
    check_locked_memory(lint, engine);
    if (engine->store)
        check_layout(lint, engine);
    check_model(lint, engine);
    lint_environment(lint, engine);
}
