/* SPDX-License-Identifier: Apache-2.0 */
/* Reading an engine that is run step by step, and the prompts of its requests. */
#include "conformance/suites/engine_case.h"

#include <string.h>

/* Everything that one function passes to the next. */
struct reading {
    const char *source;
    const struct moon_json *given;
    struct moon_engine_case *out;
    struct moon_error *error;
};

static int unsupported(const struct reading *reading, const struct moon_json *place, const char *what) {
    return moon_json_fail(reading->error, MOON_ERR_UNSUPPORTED, reading->source, place ? place : reading->given,
                          "not run here: %s", what);
}

static const struct moon_json *first_group(const struct reading *reading) {
    return moon_json_at(moon_json_member(reading->given, "groups"), 0);
}

static int check_engine(const struct reading *reading) {
    const struct moon_layout_model *model = &reading->out->its.engine.model;
    const struct moon_json *given = reading->given;
    if (model->pp > 1 || model->pcp > 1 || model->dcp > 1)
        return unsupported(reading, moon_json_member(given, "topology"), "pp, pcp or dcp above 1");
    if (model->tp > MOON_ENGINE_CASE_TP_MAX)
        return moon_json_fail(reading->error, MOON_ERR_LIMIT, reading->source, moon_json_member(given, "topology"),
                              "tp is at most %d here", MOON_ENGINE_CASE_TP_MAX);
    if (model->group_count != 1 || model->groups[0].spec.kind != MOON_SPEC_FULL)
        return unsupported(reading, moon_json_member(given, "groups"), "anything but one group of full attention");
    if (model->kv_layout != MOON_KV_LBHNC && model->kv_layout != MOON_KV_LBNHC)
        return unsupported(reading, moon_json_member(given, "kv_cache_layout"), "a layout but LBHNC and LBNHC");
    if (model->speculative)
        return unsupported(reading, moon_json_member(given, "speculative"), "speculative decoding");
    if (!reading->out->its.options.load_async)
        return unsupported(reading, moon_json_member(moon_json_member(given, "extra_config"), "load_async"),
                           "load_async false, which ends the workers of a real engine");
    return 0;
}

/* KV heads: each rank has the same number, or each head the same number of ranks. */
static int check_heads(const struct reading *reading) {
    const struct moon_layout_model *model = &reading->out->its.engine.model;
    const struct moon_json *heads = moon_json_member(reading->given, "total_kv_heads");
    if (model->total_kv_heads % model->tp != 0 && model->tp % model->total_kv_heads != 0)
        return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, heads ? heads : reading->given,
                              "%lld KV heads over %lld ranks: neither number divides the other",
                              (long long)model->total_kv_heads, (long long)model->tp);
    int64_t local = model->total_kv_heads > model->tp ? model->total_kv_heads / model->tp : 1;
    const struct moon_json *told = moon_json_member(first_group(reading), "num_kv_heads");
    if (told && told->integer != local)
        return moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, told,
                              "a rank has %lld of the %lld KV heads", (long long)local,
                              (long long)model->total_kv_heads);
    return 0;
}

static int read_layers(const struct reading *reading) {
    const struct moon_json *group = first_group(reading);
    struct moon_json *names = NULL;
    int64_t layers = 1;
    int status = 0;
    if (group)
        status = moon_json_get(reading->source, group, "layer_names", false, MOON_JSON_ARRAY, &names, reading->error);
    if (names)
        layers = (int64_t)names->count;
    if (!status && group)
        status = moon_json_get_int(reading->source, group, "num_layers", false, 1, MOON_ENGINE_CASE_LAYERS_MAX, &layers,
                                   reading->error);
    if (!status && (layers < 1 || layers > MOON_ENGINE_CASE_LAYERS_MAX))
        status = moon_json_fail(reading->error, MOON_ERR_RANGE, reading->source, names, "1 to %d layers are needed",
                                MOON_ENGINE_CASE_LAYERS_MAX);
    reading->out->layers = (uint64_t)layers;
    return status;
}

static int check_memory(const struct reading *reading) {
    const struct moon_layout_model *model = &reading->out->its.engine.model;
    int64_t bytes = 2 * MOON_ENGINE_CASE_HALF_BYTES * (int64_t)reading->out->layers * model->tp;
    int64_t local = model->total_kv_heads > model->tp ? model->total_kv_heads / model->tp : 1;
    if (__builtin_mul_overflow(bytes, local, &bytes) ||
        __builtin_mul_overflow(bytes, model->groups[0].block_tokens, &bytes) ||
        __builtin_mul_overflow(bytes, (int64_t)reading->out->block_count, &bytes) ||
        bytes > MOON_ENGINE_CASE_MEMORY_MAX)
        return moon_json_fail(reading->error, MOON_ERR_LIMIT, reading->source, reading->given,
                              "this engine has more than %d bytes of KV memory", MOON_ENGINE_CASE_MEMORY_MAX);
    return 0;
}

static int read_numbers(const struct reading *reading) {
    struct moon_engine_case *out = reading->out;
    int64_t blocks = 96;
    struct moon_json *stored = NULL;
    out->step_tokens = 256;
    int status = moon_json_get_int(reading->source, reading->given, "num_gpu_blocks", false, 1,
                                   MOON_ENGINE_CASE_BLOCKS_MAX, &blocks, reading->error);
    out->block_count = (size_t)blocks;
    if (!status)
        status = moon_json_get_int(reading->source, reading->given, "max_tokens_per_step", false, 1, 1 << 20,
                                   &out->step_tokens, reading->error);
    if (!status)
        status = moon_json_get_bool(reading->source, reading->given, "behind_multi_connector", false,
                                    &out->behind_multi, reading->error);
    if (!status)
        status = moon_json_get_bool(reading->source, reading->given, "exist_raises", false, &out->exist_raises,
                                    reading->error);
    if (!status)
        status = moon_json_get(reading->source, reading->given, "stored_before", false, MOON_JSON_ARRAY, &stored,
                               reading->error);
    for (const struct moon_json *each = stored ? stored->first : NULL; each && !status; each = each->next)
        if (each->type != MOON_JSON_STRING)
            status = moon_json_fail(reading->error, MOON_ERR_SCHEMA, reading->source, each, "a key is a text");
    out->stored_before = stored;
    return status;
}

int moon_engine_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                          const struct moon_json *given, struct moon_engine_case *out, struct moon_error *error) {
    const struct reading reading = {source, given, out, error};
    *out = (struct moon_engine_case){0};
    int status = moon_connector_case_read(arena, profile, source, given, &out->its, error);
    if (!status)
        status = read_numbers(&reading);
    if (!status)
        status = check_engine(&reading);
    if (!status)
        status = check_heads(&reading);
    if (!status)
        status = read_layers(&reading);
    return status ? status : check_memory(&reading);
}

int moon_engine_prompt_read(struct moon_arena *arena, const char *source, const struct moon_json *object,
                            struct moon_engine_prompt *out, struct moon_error *error) {
    static const char *const names[] = {"start", "step", "mod", "count", NULL};
    struct moon_json *rule = NULL;
    int64_t start = 0, step = 1, mod = 1000, count = 0;
    int status = moon_json_get(source, object, "prompt", true, MOON_JSON_OBJECT, &rule, error);
    if (!status)
        status = moon_json_closed(source, rule, names, error);
    if (!status)
        status = moon_json_get_int(source, rule, "start", false, 0, INT32_MAX, &start, error);
    if (!status)
        status = moon_json_get_int(source, rule, "step", false, 0, INT32_MAX, &step, error);
    if (!status)
        status = moon_json_get_int(source, rule, "mod", false, 1, INT32_MAX, &mod, error);
    if (!status)
        status = moon_json_get_int(source, rule, "count", true, 1, MOON_ENGINE_CASE_PROMPT_MAX, &count, error);
    if (status)
        return status;
    out->count = (size_t)count;
    out->tokens = moon_arena_array(arena, out->count, sizeof *out->tokens);
    if (!out->tokens)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    for (size_t i = 0; i < out->count; i++)
        out->tokens[i] = (uint32_t)((start + step * (int64_t)i) % mod);
    return 0;
}
