/* SPDX-License-Identifier: Apache-2.0 */
/* kv_connector_extra_config: keys by release and reader, and values. */
#include "ref/config/extra_config.h"

#include "ref/base/suggest.h"
#include "ref/config/python_repr.h"

#include <string.h>

static const struct moon_extra_option keys[] = {
    {"load_async", MOON_CONNECTOR_STORE, MOON_EXTRA_SWITCH, 21, 0, 0},
    {"lookup_rpc_port", MOON_CONNECTOR_STORE, MOON_EXTRA_VALUE, 21, 0, 0},
    {"discard_partial_chunks", MOON_CONNECTOR_STORE, MOON_EXTRA_SWITCH, 21, 21, 0},
    {"enable_cross_layers_blocks", MOON_CONNECTOR_STORE, MOON_EXTRA_SPELT, 21, 0, 29},
    {"preferred_segment", MOON_CONNECTOR_STORE, MOON_EXTRA_VALUE, 22, 0, 0},
    {"cache_prefix", MOON_CONNECTOR_STORE, MOON_EXTRA_VALUE, 24, 0, 0},
    {"lookup_async", MOON_CONNECTOR_STORE, MOON_EXTRA_SWITCH, 24, 0, 0},
    {"enable_lookup", MOON_CONNECTOR_STORE, MOON_EXTRA_SWITCH, 27, 0, 0},
    {"enable_group_semantics", MOON_CONNECTOR_STORE, MOON_EXTRA_SPELT, 28, 0, 0},
    {"save_decode_cache", MOON_CONNECTOR_STORE, MOON_EXTRA_SWITCH, 29, 0, 0},
    {"store_tp_size", MOON_CONNECTOR_STORE, MOON_EXTRA_VALUE, 30, 0, 0},
    {"enable_store_tp_lcm", MOON_CONNECTOR_STORE, MOON_EXTRA_VALUE, 30, 0, 0},
    {"prefill_tp_sizes", MOON_CONNECTOR_STORE, MOON_EXTRA_VALUE, 30, 0, 0},
    {"custom_mem_pool", MOON_CONNECTOR_STORE, MOON_EXTRA_VALUE, 31, 0, 0},
    {"mooncake_protocol", MOON_CONNECTOR_P2P, MOON_EXTRA_VALUE, 21, 0, 0},
    {"device_name", MOON_CONNECTOR_P2P, MOON_EXTRA_VALUE, 21, 0, 0},
    {"num_workers", MOON_CONNECTOR_P2P, MOON_EXTRA_VALUE, 21, 0, 0},
    {"custom_mem_pool", MOON_CONNECTOR_P2P, MOON_EXTRA_VALUE, 31, 0, 0},
    {"bootstrap_server_address", MOON_CONNECTOR_P2P, MOON_EXTRA_VALUE, 32, 0, 0},
    {"connectors", MOON_CONNECTOR_MULTI, MOON_EXTRA_VALUE, 21, 0, 0},
};
enum { KEY_COUNT = sizeof keys / sizeof keys[0] };

const char *moon_extra_suggest(enum moon_connector_kind reader, const char *name) {
    const char *names[KEY_COUNT + 1];
    int count = 0;
    for (int i = 0; i < KEY_COUNT; i++)
        if (keys[i].reader == reader)
            names[count++] = keys[i].name;
    names[count] = NULL;
    return moon_suggest(name, names);
}

const struct moon_extra_option *moon_extra_option_find(enum moon_connector_kind reader, const char *name) {
    for (int i = 0; i < KEY_COUNT; i++)
        if (keys[i].reader == reader && strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

bool moon_extra_read_by(const struct moon_extra_option *key, const struct moon_profile *profile) {
    return profile->minor >= key->since && (key->until == 0 || profile->minor <= key->until) &&
           profile->minor != key->gap;
}

bool moon_extra_store_reads(const struct moon_profile *profile, const char *name) {
    return moon_extra_read_by(moon_extra_option_find(MOON_CONNECTOR_STORE, name), profile);
}

bool moon_extra_switch(const struct moon_json *extra, const char *name, bool otherwise) {
    const struct moon_json *value = moon_json_member(extra, name);
    return value ? moon_python_truth(value) : otherwise;
}

/* ---- layout options ---- */

/* A value without its elements. */
static struct moon_setting plain_setting(const struct moon_json *value) {
    static const enum moon_setting_type types[] = {MOON_SETTING_NULL,  MOON_SETTING_BOOL,   MOON_SETTING_INTEGER,
                                                   MOON_SETTING_REAL,  MOON_SETTING_STRING, MOON_SETTING_ARRAY,
                                                   MOON_SETTING_OBJECT};
    struct moon_setting setting = {.type = types[value->type], .boolean = value->boolean};
    if (value->type == MOON_JSON_INTEGER || value->type == MOON_JSON_STRING)
        setting.text = (struct moon_key_text){value->bytes, value->length};
    return setting;
}

/* Elements are not followed further: nothing but the type of a nested list counts. */
static int setting_of(struct moon_arena *arena, const struct moon_json *extra, const char *name,
                      struct moon_setting *out) {
    const struct moon_json *value = moon_json_member(extra, name);
    if (!value)
        return MOON_OK;
    *out = plain_setting(value);
    if (value->type != MOON_JSON_ARRAY)
        return MOON_OK;
    struct moon_setting *elements = moon_arena_array(arena, value->count, sizeof *elements);
    if (!elements)
        return MOON_ERR_MEMORY;
    for (const struct moon_json *child = value->first; child; child = child->next)
        elements[child->index] = plain_setting(child);
    out->elements = elements;
    out->count = value->count;
    return MOON_OK;
}

int moon_extra_layout(struct moon_arena *arena, const struct moon_json *extra, struct moon_layout_model *model) {
    int status = setting_of(arena, extra, "store_tp_size", &model->store_tp_size);
    if (!status)
        status = setting_of(arena, extra, "enable_store_tp_lcm", &model->enable_store_tp_lcm);
    if (!status)
        status = setting_of(arena, extra, "prefill_tp_sizes", &model->prefill_tp_sizes);
    if (!status)
        status = setting_of(arena, extra, "enable_cross_layers_blocks", &model->enable_cross_layers_blocks);
    return status;
}
