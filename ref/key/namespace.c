/* SPDX-License-Identifier: Apache-2.0 */
/* Grammar of the store namespaces. */
#include "ref/key/namespace.h"

#include "ref/key/field.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const layout_names[MOON_KV_LAYOUT_COUNT] = {"LBHNC", "LBNHC", "LHBNC", "BLHNC", "BLNHC", "BHLNC"};

const char *moon_kv_layout_name(enum moon_kv_layout layout) {
    return layout_names[layout];
}

int moon_kv_layout_find(const char *name, enum moon_kv_layout *layout, struct moon_error *error) {
    for (int i = 0; i < MOON_KV_LAYOUT_COUNT; i++)
        if (strcmp(name, layout_names[i]) == 0) {
            *layout = (enum moon_kv_layout)i;
            return 0;
        }
    return moon_fail(error, MOON_ERR_SCHEMA, NULL,
                     "no KV cache layout \"%.32s\"; known: LBHNC, LBNHC, LHBNC, BLHNC, BLNHC, BHLNC", name);
}

size_t moon_store_namespace_write(const struct moon_store_namespace *space, char out[MOON_STORE_NAMESPACE_BYTES]) {
    const char *format = NULL;
    out[0] = '\0';
    switch (space->format) {
    case MOON_STORE_PLAIN:
        return 0;
    case MOON_STORE_MQA:
        return (size_t)snprintf(out, MOON_STORE_NAMESPACE_BYTES, "@store_pp:%" PRId64 "@store_format:tp_shared_mqa",
                                space->pp);
    case MOON_STORE_ISOLATED:
        return (size_t)snprintf(out, MOON_STORE_NAMESPACE_BYTES,
                                "@store_pp:%" PRId64 "@store_format:rank_local_tp%" PRId64 "_layout_%s", space->pp,
                                space->tp, moon_kv_layout_name(space->layout));
    case MOON_STORE_SHARDED_LBHNC:
        format = "tp_shared_lbhnc";
        break;
    case MOON_STORE_SHARDED_LBNHC:
        format = "tp_shared_lbnhc";
        break;
    }
    assert(format);
    return (size_t)snprintf(out, MOON_STORE_NAMESPACE_BYTES,
                            "@store_tp:%" PRId64 "@store_pp:%" PRId64 "@store_format:%s", space->store_tp, space->pp,
                            format);
}

/* "@store_format:..." at the end: fills format, and tp and layout of the isolated one. */
static bool take_format(struct moon_key_text *text, struct moon_store_namespace *space) {
    static const struct {
        const char *label;
        enum moon_store_format format;
    } words[] = {
        {"@store_format:tp_shared_lbhnc", MOON_STORE_SHARDED_LBHNC},
        {"@store_format:tp_shared_lbnhc", MOON_STORE_SHARDED_LBNHC},
        {"@store_format:tp_shared_mqa", MOON_STORE_MQA},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (moon_key_take_label(text, words[i].label)) {
            space->format = words[i].format;
            return true;
        }
    for (int i = 0; i < MOON_KV_LAYOUT_COUNT; i++)
        if (moon_key_take_label(text, layout_names[i])) {
            space->format = MOON_STORE_ISOLATED;
            space->layout = (enum moon_kv_layout)i;
            return moon_key_take_label(text, "_layout_") &&
                   moon_key_take_number(text, "@store_format:rank_local_tp", &space->tp) && space->tp >= 1;
        }
    return false;
}

size_t moon_store_namespace_read(struct moon_key_text text, struct moon_store_namespace *space) {
    struct moon_key_text rest = text;
    *space = (struct moon_store_namespace){0};
    if (!take_format(&rest, space) || !moon_key_take_number(&rest, "@store_pp:", &space->pp) || space->pp < 1)
        return 0;
    bool sharded = space->format == MOON_STORE_SHARDED_LBHNC || space->format == MOON_STORE_SHARDED_LBNHC;
    if (sharded && (!moon_key_take_number(&rest, "@store_tp:", &space->store_tp) || space->store_tp < 1))
        return 0;
    return text.length - rest.length;
}
