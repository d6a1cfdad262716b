/* SPDX-License-Identifier: Apache-2.0 */
/* Reading compat descriptions: one reader that remembers its first failure, one function an object. */
#include "ref/config/compat_description.h"

#include <assert.h>
#include <string.h>

/* Reads members one after another; after a failure every call is passed over, and `status` holds it. */
struct reader {
    struct moon_arena *arena;
    const char *source;
    struct moon_error *error;
    int status;
};

static bool reads(const struct reader *reader) {
    return reader->status == 0;
}

static void fail_memory(struct reader *reader) {
    reader->status = moon_fail(reader->error, MOON_ERR_MEMORY, NULL, "no memory for a description");
}

static void *allocate(struct reader *reader, size_t count, size_t bytes) {
    void *out = moon_arena_array(reader->arena, count, bytes);
    if (!out)
        fail_memory(reader);
    return out;
}

static void check_closed(struct reader *reader, const struct moon_json *object, const char *const names[]) {
    if (reads(reader) && object)
        reader->status = moon_json_closed(reader->source, object, names, reader->error);
}

static struct moon_json *get(struct reader *reader, const struct moon_json *object, const char *name, bool required,
                             enum moon_json_type type) {
    struct moon_json *out = NULL;
    if (reads(reader))
        reader->status = moon_json_get(reader->source, object, name, required, type, &out, reader->error);
    return out;
}

static bool is_null(const struct moon_json *object, const char *name) {
    return moon_json_is(moon_json_member(object, name), MOON_JSON_NULL);
}

static void get_int(struct reader *reader, const struct moon_json *object, const char *name, bool required, int64_t min,
                    int64_t max, int64_t *out) {
    if (reads(reader))
        reader->status = moon_json_get_int(reader->source, object, name, required, min, max, out, reader->error);
}

/* As get_int, but null leaves *out as it is. */
static void get_int_or_null(struct reader *reader, const struct moon_json *object, const char *name, int64_t max,
                            int64_t *out) {
    if (!is_null(object, name))
        get_int(reader, object, name, false, 1, max, out);
}

static void get_bool(struct reader *reader, const struct moon_json *object, const char *name, bool *out) {
    if (reads(reader))
        reader->status = moon_json_get_bool(reader->source, object, name, false, out, reader->error);
}

/* A text without NUL. */
static void get_text(struct reader *reader, const struct moon_json *object, const char *name, bool required,
                     const char **out) {
    if (reads(reader))
        reader->status = moon_json_get_string(reader->source, object, name, required, out, NULL, reader->error);
}

static void get_text_or_null(struct reader *reader, const struct moon_json *object, const char *name,
                             const char **out) {
    if (!is_null(object, name))
        get_text(reader, object, name, false, out);
}

static void get_string(struct reader *reader, const struct moon_json *object, const char *name, bool required,
                       struct moon_string *out) {
    if (reads(reader))
        reader->status =
            moon_json_get_string(reader->source, object, name, required, &out->bytes, &out->length, reader->error);
}

static void refuse(struct reader *reader, const struct moon_json *value, enum moon_status status, const char *message) {
    if (reads(reader))
        reader->status = moon_json_fail(reader->error, status, reader->source, value, "%s", message);
}

/* ---- kv.groups ---- */

static const char *const kinds[] = {"full",  "full_with_window", "sliding_window", "mla", "sliding_window_mla",
                                    "mamba", "uniform"};
static const enum moon_spec_kind kind_specs[] = {
    MOON_SPEC_FULL,  MOON_SPEC_FULL,   MOON_SPEC_SLIDING_WINDOW, MOON_SPEC_MLA, MOON_SPEC_SLIDING_WINDOW_MLA,
    MOON_SPEC_MAMBA, MOON_SPEC_UNIFORM};
enum { KINDS = sizeof kinds / sizeof kinds[0], WITH_WINDOW = 1, INNER_MAX = 16 };

/* The spec of a group or of a layer in it. `layer` allows only what a uniform group can hold. */
static void read_spec(struct reader *reader, const struct moon_json *object, bool layer,
                      const struct moon_compat_description *of, struct moon_layer_spec *out) {
    const char *name = NULL;
    get_text(reader, object, "kind", true, &name);
    if (!reads(reader))
        return;
    size_t kind = 0;
    while (kind < KINDS && strcmp(kinds[kind], name) != 0)
        kind++;
    bool inner_kind = kind < KINDS && kind != WITH_WINDOW && kind_specs[kind] < MOON_SPEC_MAMBA;
    if (kind == KINDS || (layer && !inner_kind)) {
        refuse(
            reader, moon_json_member(object, "kind"), MOON_ERR_SCHEMA,
            layer
                ? "\"kind\" of a layer must be full, sliding_window, mla or sliding_window_mla"
                : "\"kind\" must be full, full_with_window, sliding_window, mla, sliding_window_mla, mamba or uniform");
        return;
    }
    *out = (struct moon_layer_spec){.kind = kind_specs[kind], .head_size = of->head_size, .num_kv_heads = 1};
    bool mla = out->kind == MOON_SPEC_MLA || out->kind == MOON_SPEC_SLIDING_WINDOW_MLA;
    if (!mla && of->heads > of->tp)
        out->num_kv_heads = of->heads / of->tp;
    bool slides = out->kind == MOON_SPEC_SLIDING_WINDOW || out->kind == MOON_SPEC_SLIDING_WINDOW_MLA;
    get_int(reader, object, "sliding_window", slides || kind == WITH_WINDOW, 1, MOON_COMPAT_TOKENS_MAX,
            &out->window_tokens);
    if (out->window_tokens && !slides && kind != WITH_WINDOW)
        refuse(reader, moon_json_member(object, "sliding_window"), MOON_ERR_SCHEMA,
               "\"sliding_window\" belongs to kinds with a window");
}

static void read_inner(struct reader *reader, const struct moon_json *object, const struct moon_compat_description *of,
                       struct moon_layout_group *out) {
    static const char *const names[] = {"kind", "sliding_window", NULL};
    const struct moon_json *list = get(reader, object, "inner", out->spec.kind == MOON_SPEC_UNIFORM, MOON_JSON_ARRAY);
    if (!list)
        return;
    if (out->spec.kind != MOON_SPEC_UNIFORM || list->count < 1 || list->count > INNER_MAX) {
        refuse(reader, list, MOON_ERR_SCHEMA, "\"inner\" belongs to kind uniform and holds 1 to 16 layers");
        return;
    }
    struct moon_layer_spec *inner = allocate(reader, list->count, sizeof *inner);
    for (const struct moon_json *layer = list->first; layer && reads(reader); layer = layer->next) {
        check_closed(reader, layer, names);
        read_spec(reader, layer, true, of, &inner[layer->index]);
    }
    out->inner = inner;
    out->inner_count = list->count;
}

static void read_group(struct reader *reader, const struct moon_json *object, int64_t block_tokens,
                       const struct moon_compat_description *of, struct moon_compat_group *out) {
    static const char *const names[] = {"kind",  "block_size",  "sliding_window", "extra_retained_tokens",
                                        "eagle", "dcp_sharded", "transferable",   "prefix_cacheable",
                                        "inner", NULL};
    check_closed(reader, object, names);
    *out = (struct moon_compat_group){
        .layout = {.block_tokens = block_tokens, .transferable = true, .prefix_cacheable = true}};
    read_spec(reader, object, false, of, &out->layout.spec);
    out->dcp_sharded = out->layout.spec.kind != MOON_SPEC_MAMBA;
    get_int(reader, object, "block_size", false, 1, MOON_COMPAT_BLOCK_TOKENS_MAX, &out->layout.block_tokens);
    get_int(reader, object, "extra_retained_tokens", false, 0, MOON_COMPAT_TOKENS_MAX, &out->retained_tokens);
    get_bool(reader, object, "eagle", &out->layout.is_eagle);
    get_bool(reader, object, "dcp_sharded", &out->dcp_sharded);
    get_bool(reader, object, "transferable", &out->layout.transferable);
    get_bool(reader, object, "prefix_cacheable", &out->layout.prefix_cacheable);
    read_inner(reader, object, of, &out->layout);
}

static void read_groups(struct reader *reader, const struct moon_json *kv, struct moon_compat_description *out) {
    int64_t block_tokens = 16;
    get_int(reader, kv, "block_size", false, 1, MOON_COMPAT_BLOCK_TOKENS_MAX, &block_tokens);
    const struct moon_json *list = get(reader, kv, "groups", false, MOON_JSON_ARRAY);
    if (list && (list->count < 1 || list->count > MOON_COMPAT_GROUPS_MAX))
        refuse(reader, list, MOON_ERR_LIMIT, "\"groups\" holds 1 to 16 groups");
    if (!reads(reader))
        return;
    out->group_count = list ? list->count : 1;
    out->groups[0] = (struct moon_compat_group){
        .layout = {.spec = {.kind = MOON_SPEC_FULL, .head_size = out->head_size, .num_kv_heads = 1},
                   .block_tokens = block_tokens,
                   .transferable = true,
                   .prefix_cacheable = true},
        .dcp_sharded = true};
    if (list)
        for (const struct moon_json *group = list->first; group && reads(reader); group = group->next)
            read_group(reader, group, block_tokens, out, &out->groups[group->index]);
}

/* ---- kv, parallel, hash ---- */

static void read_retention(struct reader *reader, const struct moon_json *kv, struct moon_compat_description *out) {
    const struct moon_json *value = moon_json_member(kv, "retention_interval");
    if (!value)
        return;
    if (out->profile->store_mask != MOON_STORE_MASK_REACH)
        refuse(reader, value, MOON_ERR_UNSUPPORTED, "this release has no retention interval");
    out->retention = is_null(kv, "retention_interval") ? MOON_COMPAT_RETENTION_DENSE : MOON_COMPAT_RETENTION_TOKENS;
    if (out->retention == MOON_COMPAT_RETENTION_TOKENS)
        get_int(reader, kv, "retention_interval", false, 0, MOON_COMPAT_TOKENS_MAX, &out->retention_tokens);
}

static void read_kv(struct reader *reader, struct moon_compat_description *out) {
    static const char *const names[] = {
        "heads",      "head_size",          "layers", "dtype",  "block_size", "layout", "mla",
        "match_unit", "retention_interval", "eagle",  "groups", NULL};
    const struct moon_json *kv = get(reader, out->document, "kv", true, MOON_JSON_OBJECT);
    check_closed(reader, kv, names);
    get_int(reader, kv, "heads", true, 1, 65536, &out->heads);
    get_int_or_null(reader, kv, "head_size", MOON_COMPAT_TOKENS_MAX, &out->head_size);
    get_int_or_null(reader, kv, "layers", MOON_COMPAT_TOKENS_MAX, &out->layers);
    get_int_or_null(reader, kv, "match_unit", MOON_COMPAT_TOKENS_MAX, &out->match_unit);
    get_text_or_null(reader, kv, "dtype", &out->dtype);
    get_bool(reader, kv, "eagle", &out->eagle);
    const char *layout = "LBHNC";
    get_text(reader, kv, "layout", false, &layout);
    struct moon_error why;
    if (reads(reader) && moon_kv_layout_find(layout, &out->layout, &why) != 0)
        refuse(reader, moon_json_member(kv, "layout"), MOON_ERR_SCHEMA, why.message);
    read_groups(reader, kv, out);
    for (size_t i = 0; i < out->group_count; i++) {
        enum moon_spec_kind kind = out->groups[i].layout.spec.kind;
        out->mla |= kind == MOON_SPEC_MLA || kind == MOON_SPEC_SLIDING_WINDOW_MLA;
    }
    get_bool(reader, kv, "mla", &out->mla);
    if (reads(reader))
        read_retention(reader, kv, out);
}

static void read_parallel(struct reader *reader, struct moon_compat_description *out) {
    static const char *const names[] = {"tp", "pp", "pcp", "dcp", NULL};
    int64_t *const sizes[] = {&out->tp, &out->pp, &out->pcp, &out->dcp};
    const struct moon_json *parallel = get(reader, out->document, "parallel", false, MOON_JSON_OBJECT);
    check_closed(reader, parallel, names);
    for (size_t i = 0; names[i]; i++) {
        *sizes[i] = 1;
        get_int(reader, parallel, names[i], false, 1, MOON_COMPAT_SIZE_MAX, sizes[i]);
    }
}

static void read_hash(struct reader *reader, struct moon_compat_description *out) {
    static const char *const names[] = {"algo", "seed", NULL};
    const struct moon_json *hash = get(reader, out->document, "hash", false, MOON_JSON_OBJECT);
    check_closed(reader, hash, names);
    const char *algorithm = "sha256";
    get_text(reader, hash, "algo", false, &algorithm);
    struct moon_error why;
    if (reads(reader) && moon_hash_algorithm_find(algorithm, &out->algorithm, &why) != 0)
        refuse(reader, moon_json_member(hash, "algo"), MOON_ERR_SCHEMA, why.message);
    const struct moon_json *variable = moon_json_member(moon_json_member(out->document, "env"), "PYTHONHASHSEED");
    if (!is_null(hash, "seed"))
        out->seed = get(reader, hash, "seed", false, MOON_JSON_STRING);
    if (out->seed && memchr(out->seed->bytes, '\0', out->seed->length))
        refuse(reader, out->seed, MOON_ERR_SCHEMA, "no environment variable holds a NUL character");
    if (out->seed && variable && !moon_json_equal(out->seed, variable))
        refuse(reader, out->seed, MOON_ERR_SCHEMA, "\"seed\" and PYTHONHASHSEED in \"env\" differ");
    if (!out->seed)
        out->seed = variable;
}

static void read_environment(struct reader *reader, struct moon_compat_description *out) {
    const struct moon_json *env = get(reader, out->document, "env", false, MOON_JSON_OBJECT);
    for (const struct moon_json *each = env ? env->first : NULL; each && reads(reader); each = each->next)
        if (each->type != MOON_JSON_STRING || memchr(each->bytes, '\0', each->length))
            refuse(reader, each, MOON_ERR_SCHEMA, "an environment variable is a string without NUL characters");
}

/* ---- request ---- */

static void read_tokens(struct reader *reader, const struct moon_json *request, struct moon_compat_request *out) {
    const struct moon_json *list = get(reader, request, "tokens", false, MOON_JSON_ARRAY);
    if (!list)
        return;
    if (list->count > MOON_COMPAT_TOKENS_MAX) {
        refuse(reader, list, MOON_ERR_LIMIT, "at most 1048576 tokens");
        return;
    }
    int64_t *tokens = allocate(reader, list->count, sizeof *tokens);
    for (const struct moon_json *each = list->first; each && reads(reader); each = each->next) {
        if (each->type != MOON_JSON_INTEGER || !each->fits || each->integer < 0 || each->integer > INT32_MAX)
            refuse(reader, each, MOON_ERR_RANGE, "a token is an integer from 0 to 2147483647");
        else
            tokens[each->index] = each->integer;
    }
    out->tokens = tokens;
    out->token_count = list->count;
}

static void read_items(struct reader *reader, const struct moon_json *request, struct moon_compat_request *out) {
    static const char *const names[] = {"identifier", "offset", "length", NULL};
    const struct moon_json *list = get(reader, request, "mm_features", false, MOON_JSON_ARRAY);
    if (!list)
        return;
    if (list->count > MOON_COMPAT_ITEMS_MAX) {
        refuse(reader, list, MOON_ERR_LIMIT, "at most 1024 multimodal items");
        return;
    }
    out->mm = allocate(reader, list->count, sizeof *out->mm);
    for (const struct moon_json *each = list->first; each && reads(reader); each = each->next) {
        struct moon_compat_item *item = &out->mm[each->index];
        check_closed(reader, each, names);
        get_string(reader, each, "identifier", true, &item->identifier);
        get_int(reader, each, "offset", true, 0, MOON_COMPAT_TOKENS_MAX, &item->offset);
        get_int(reader, each, "length", true, 1, MOON_COMPAT_TOKENS_MAX, &item->length);
        if (each->index > 0 && item->offset < item[-1].offset)
            refuse(reader, each, MOON_ERR_RANGE, "multimodal items must be sorted by offset");
    }
    out->mm_count = list->count;
}

static void read_request(struct reader *reader, struct moon_compat_description *out) {
    static const char *const names[] = {"tokens", "lora", "cache_salt", "mm_features", "prompt_embeds", NULL};
    static const char *const lora_names[] = {"name", "path", NULL};
    struct moon_compat_request *request = &out->request;
    const struct moon_json *object = get(reader, out->document, "request", false, MOON_JSON_OBJECT);
    check_closed(reader, object, names);
    if (!object || !reads(reader))
        return;
    request->given = true;
    read_tokens(reader, object, request);
    const struct moon_json *lora = get(reader, object, "lora", false, MOON_JSON_OBJECT);
    check_closed(reader, lora, lora_names);
    request->lora = lora != NULL;
    if (lora) {
        request->lora_path = (struct moon_string){.bytes = "", .length = 0};
        get_string(reader, lora, "name", true, &request->lora_name);
        get_string(reader, lora, "path", false, &request->lora_path);
    }
    get_string(reader, object, "cache_salt", false, &request->cache_salt);
    request->salt = request->cache_salt.length > 0; /* an empty salt is none */
    get_bool(reader, object, "prompt_embeds", &request->embeds);
    read_items(reader, object, request);
}

/* ---- the whole ---- */

static void read_identity(struct reader *reader, const struct moon_compat_input *input,
                          struct moon_compat_description *out) {
    const char *release = NULL;
    get_text(reader, out->document, "profile", true, &release);
    if (!reads(reader))
        return;
    struct moon_error why;
    out->profile = moon_profile_find(input->release ? input->release : release, &why);
    if (!out->profile) {
        reader->status = input->release ? moon_fail(reader->error, why.status, NULL, "%s", why.message)
                                        : moon_json_fail(reader->error, why.status, reader->source,
                                                         moon_json_member(out->document, "profile"), "%s", why.message);
        return;
    }
    get_text(reader, out->document, "name", false, &out->name);
    const char *model = "";
    get_text(reader, out->document, "model", true, &model);
    out->model = moon_key_text(model);
    get_text_or_null(reader, out->document, "weights_version", &out->weights_version);
    get_text_or_null(reader, out->document, "quantization", &out->quantization);
}

static void read_role(struct reader *reader, struct moon_compat_description *out) {
    out->role = "kv_both";
    get_text(reader, out->document, "kv_role", false, &out->role);
    out->consumer = strcmp(out->role, "kv_consumer") == 0;
    if (!out->consumer && strcmp(out->role, "kv_producer") != 0 && strcmp(out->role, "kv_both") != 0)
        refuse(reader, moon_json_member(out->document, "kv_role"), MOON_ERR_SCHEMA,
               "\"kv_role\" must be kv_producer, kv_consumer or kv_both");
}

static void read_store(struct reader *reader, const struct moon_compat_input *input,
                       struct moon_compat_description *out) {
    static const char *const names[] = {"enable_multi_tenants", NULL};
    out->extra = get(reader, out->document, "extra_config", false, MOON_JSON_OBJECT);
    const struct moon_json *master = get(reader, out->document, "master", false, MOON_JSON_OBJECT);
    check_closed(reader, master, names);
    out->tenants = true;
    get_bool(reader, master, "enable_multi_tenants", &out->tenants);
    assert(!input->config == !moon_compat_config_path(out->document));
    if (!input->config)
        out->mooncake = get(reader, out->document, "mooncake", false, MOON_JSON_OBJECT);
}

int moon_compat_describe(struct moon_arena *arena, const struct moon_compat_input *input, const char *default_name,
                         struct moon_compat_description *out, struct moon_error *error) {
    static const char *const names[] = {"name",     "profile", "model", "weights_version", "quantization",
                                        "parallel", "kv",      "hash",  "kv_role",         "extra_config",
                                        "mooncake", "master",  "env",   "request",         NULL};
    struct reader reader = {arena, input->source, error, 0};
    *out = (struct moon_compat_description){.source = input->source, .document = input->document, .name = default_name};
    reader.status = moon_json_closed(input->source, input->document, names, error);
    read_identity(&reader, input, out);
    read_parallel(&reader, out);
    read_kv(&reader, out);
    read_environment(&reader, out);
    read_hash(&reader, out);
    read_role(&reader, out);
    if (reads(&reader))
        read_store(&reader, input, out);
    read_request(&reader, out);
    return reader.status;
}

const char *moon_compat_config_path(const struct moon_json *document) {
    const struct moon_json *value =
        moon_json_is(document, MOON_JSON_OBJECT) ? moon_json_member(document, "mooncake") : NULL;
    bool path = value && value->type == MOON_JSON_STRING && !memchr(value->bytes, '\0', value->length);
    return path ? value->bytes : NULL;
}

bool moon_compat_texts_equal(struct moon_key_text a, struct moon_key_text b) {
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

bool moon_compat_strings_equal(struct moon_string a, struct moon_string b) {
    return moon_compat_texts_equal((struct moon_key_text){a.bytes, a.length},
                                   (struct moon_key_text){b.bytes, b.length});
}

const char *moon_compat_variable(const struct moon_compat_description *description, const char *name) {
    const struct moon_json *value = moon_json_member(moon_json_member(description->document, "env"), name);
    return value ? value->bytes : NULL;
}
