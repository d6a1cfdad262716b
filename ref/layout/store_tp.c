/* SPDX-License-Identifier: Apache-2.0 */
/* The decision between rank-local, TP-sharded and replicated store layouts. */
#include "ref/layout/store_tp.h"

#include <assert.h>
#include <strings.h>

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
    while (b != 0) { /* b falls to its remainder each time */
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* An integer as Python reads it: above 0 or not, its value if int64_t holds it, and its remainder by the local TP. */
struct integer {
    bool positive, large;
    int64_t value, remainder;
};

static struct integer read_integer(struct moon_key_text digits, int64_t tp) {
    struct integer read = {false, false, 0, 0};
    if (digits.length > 0 && digits.bytes[0] == '-')
        return read;
    for (size_t i = 0; i < digits.length; i++) {
        int digit = digits.bytes[i] - '0';
        read.positive |= digit != 0;
        /* tp is a number of processes, far below the range in which this would overflow (see moon_store_tp_resolve). */
        read.remainder = (read.remainder * 10 + digit) % tp;
        read.large |= __builtin_mul_overflow(read.value, 10, &read.value) ||
                      __builtin_add_overflow(read.value, digit, &read.value);
    }
    return read;
}

/* Reason for a value that is no integer above 0, by its type. Rows: list element, single size. */
static enum moon_store_tp_source reason_of(enum moon_setting_type type, bool element) {
    static const enum moon_store_tp_source reasons[2][MOON_SETTING_OBJECT + 1] = {
        {[MOON_SETTING_BOOL] = MOON_STORE_TP_SIZE_BOOL,
         [MOON_SETTING_INTEGER] = MOON_STORE_TP_SIZE_NOT_POSITIVE,
         [MOON_SETTING_REAL] = MOON_STORE_TP_SIZE_REAL,
         [MOON_SETTING_STRING] = MOON_STORE_TP_SIZE_STRING,
         [MOON_SETTING_ARRAY] = MOON_STORE_TP_SIZE_NESTED,
         [MOON_SETTING_OBJECT] = MOON_STORE_TP_SIZE_NESTED},
        {[MOON_SETTING_NULL] = MOON_STORE_TP_ELEMENT_NULL,
         [MOON_SETTING_BOOL] = MOON_STORE_TP_ELEMENT_BOOL,
         [MOON_SETTING_INTEGER] = MOON_STORE_TP_ELEMENT_NOT_POSITIVE,
         [MOON_SETTING_REAL] = MOON_STORE_TP_ELEMENT_REAL,
         [MOON_SETTING_STRING] = MOON_STORE_TP_ELEMENT_STRING,
         [MOON_SETTING_ARRAY] = MOON_STORE_TP_ELEMENT_NESTED,
         [MOON_SETTING_OBJECT] = MOON_STORE_TP_ELEMENT_NESTED}};
    return reasons[element][type];
}

static void resolve_size(const struct moon_setting *size, int64_t tp, struct moon_store_tp *out) {
    struct integer read = {false, false, 0, 0};
    if (size->type == MOON_SETTING_INTEGER)
        read = read_integer(size->text, tp);
    if (!read.positive) {
        out->source = reason_of(size->type, false);
        return;
    }
    *out = (struct moon_store_tp){MOON_STORE_TP_FROM_SIZE,     true, read.large, read.remainder == 0,
                                  read.large ? 0 : read.value, 0};
}

/* Why `list` is no array with elements, or MOON_STORE_TP_FROM_LIST. */
static enum moon_store_tp_source check_list(const struct moon_setting *list) {
    if (list->type == MOON_SETTING_ABSENT)
        return MOON_STORE_TP_LIST_MISSING;
    if (list->type == MOON_SETTING_NULL)
        return MOON_STORE_TP_LIST_NULL;
    if (list->type != MOON_SETTING_ARRAY)
        return MOON_STORE_TP_LIST_NOT_ARRAY;
    return list->count == 0 ? MOON_STORE_TP_LIST_EMPTY : MOON_STORE_TP_FROM_LIST;
}

/* The least common multiple may outgrow int64_t. tp divides it exactly if the multiple of all gcd(element, tp) is tp,
 * which stays small: both are kept. */
static void resolve_list(const struct moon_setting *list, int64_t tp, struct moon_store_tp *out) {
    out->source = check_list(list);
    if (out->source != MOON_STORE_TP_FROM_LIST)
        return;
    int64_t multiple = 1, shared = 1;
    bool large = false;
    for (size_t i = 0; i < list->count; i++) {
        const struct moon_setting *element = &list->elements[i];
        struct integer read = {false, false, 0, 0};
        if (element->type == MOON_SETTING_INTEGER)
            read = read_integer(element->text, tp);
        if (!read.positive) {
            *out = (struct moon_store_tp){.source = reason_of(element->type, true), .bad_element = i};
            return;
        }
        int64_t part = greatest_common_divisor(tp, read.remainder);
        shared = shared / greatest_common_divisor(shared, part) * part;
        large |= read.large;
        if (!large)
            large =
                __builtin_mul_overflow(multiple / greatest_common_divisor(multiple, read.value), read.value, &multiple);
    }
    *out = (struct moon_store_tp){MOON_STORE_TP_FROM_LIST, true, large, shared == tp, large ? 0 : multiple, 0};
}

void moon_store_tp_resolve(const struct moon_layout_model *model, struct moon_store_tp *out) {
    assert(model->tp >= 1 && model->tp <= INT64_MAX / 16);
    const struct moon_setting *flag = &model->enable_store_tp_lcm;
    *out = (struct moon_store_tp){.source = MOON_STORE_TP_NOT_REQUESTED};
    if (flag->type == MOON_SETTING_BOOL && flag->boolean)
        resolve_list(&model->prefill_tp_sizes, model->tp, out);
    else if (model->store_tp_size.type > MOON_SETTING_NULL)
        resolve_size(&model->store_tp_size, model->tp, out);
}

/* str(value).lower() == "true". No character but an ASCII letter becomes one of "true" in lower case. */
static bool says_true(const struct moon_setting *setting) {
    if (setting->type == MOON_SETTING_BOOL)
        return setting->boolean;
    return setting->type == MOON_SETTING_STRING && setting->text.length == 4 &&
           strncasecmp(setting->text.bytes, "true", 4) == 0;
}

/* True if each shard gets the same number of heads. A store TP beyond int64_t is above any number of heads. */
static bool heads_divide(const struct moon_layout_model *model, const struct moon_store_tp *store_tp) {
    assert(store_tp->large || store_tp->size >= 1);
    return !store_tp->large && model->total_kv_heads % store_tp->size == 0;
}

/* The first condition that fails, in the release's order. */
static enum moon_store_refusal refuse(const struct moon_layout_model *model, const struct moon_store_tp *store_tp) {
    if (!store_tp->known)
        return MOON_REFUSAL_STORE_TP_UNKNOWN;
    if (!store_tp->large && store_tp->size < model->tp)
        return MOON_REFUSAL_BELOW_TP;
    if (!store_tp->multiple)
        return MOON_REFUSAL_NOT_MULTIPLE;
    if (model->kv_layout != MOON_KV_LBHNC && model->kv_layout != MOON_KV_LBNHC)
        return MOON_REFUSAL_KV_LAYOUT;
    if (model->pcp != 1)
        return MOON_REFUSAL_PCP;
    if (model->dcp != 1)
        return MOON_REFUSAL_DCP;
    if (model->group_count != 1)
        return MOON_REFUSAL_GROUPS;
    if (model->groups[0].spec.kind != MOON_SPEC_FULL)
        return MOON_REFUSAL_SPEC;
    if (says_true(&model->enable_cross_layers_blocks))
        return MOON_REFUSAL_CROSS_LAYERS;
    return heads_divide(model, store_tp) || model->total_kv_heads == 1 ? MOON_REFUSAL_NONE : MOON_REFUSAL_HEADS;
}

void moon_store_select(const struct moon_profile *profile, const struct moon_layout_model *model,
                       struct moon_store_selection *out) {
    *out = (struct moon_store_selection){.space.format = MOON_STORE_PLAIN};
    if (profile->store_namespace)
        moon_store_tp_resolve(model, &out->store_tp);
    if (out->store_tp.source == MOON_STORE_TP_NOT_REQUESTED)
        return;
    out->refusal = refuse(model, &out->store_tp);
    struct moon_store_namespace *space = &out->space;
    space->pp = model->pp;
    if (out->refusal != MOON_REFUSAL_NONE) {
        space->format = MOON_STORE_ISOLATED;
        space->tp = model->tp;
        space->layout = model->kv_layout;
    } else if (!heads_divide(model, &out->store_tp)) {
        space->format = MOON_STORE_MQA; /* one head, and a store TP above 1 */
    } else {
        space->format = model->kv_layout == MOON_KV_LBHNC ? MOON_STORE_SHARDED_LBHNC : MOON_STORE_SHARDED_LBNHC;
        space->store_tp = out->store_tp.size;
    }
    out->text_length = moon_store_namespace_write(space, out->text);
}

bool moon_store_sharded(const struct moon_store_selection *selection) {
    return selection->space.format == MOON_STORE_SHARDED_LBHNC || selection->space.format == MOON_STORE_SHARDED_LBNHC;
}

const char *moon_store_tp_source_text(enum moon_store_tp_source source) {
    static const char *const texts[MOON_STORE_TP_SOURCE_COUNT] = {
        "sharing is not asked for: no store_tp_size, and enable_store_tp_lcm is not exactly true",
        "store_tp_size",
        "least common multiple of prefill_tp_sizes",
        "enable_store_tp_lcm is on, but there is no prefill_tp_sizes",
        "prefill_tp_sizes is null",
        "prefill_tp_sizes is not a list",
        "prefill_tp_sizes is empty",
        "an element of prefill_tp_sizes is true or false",
        "an element of prefill_tp_sizes is a number with a fraction or exponent",
        "an element of prefill_tp_sizes is a string",
        "an element of prefill_tp_sizes is null",
        "an element of prefill_tp_sizes is a list or an object",
        "an element of prefill_tp_sizes is not above 0",
        "store_tp_size is true or false",
        "store_tp_size is a number with a fraction or exponent",
        "store_tp_size is a string",
        "store_tp_size is a list or an object",
        "store_tp_size is not above 0",
    };
    return texts[source];
}

const char *moon_store_refusal_text(enum moon_store_refusal refusal) {
    static const char *const texts[MOON_REFUSAL_COUNT] = {
        "accepted",
        "the store TP is not known",
        "the store TP is below the local TP",
        "the store TP is not a multiple of the local TP",
        "the KV cache layout is neither LBHNC nor LBNHC",
        "prefill context parallelism is on",
        "decode context parallelism is on",
        "there is not exactly one KV cache group in the store",
        "the group is not plain full attention",
        "enable_cross_layers_blocks is on",
        "the total of KV heads is not a multiple of the store TP",
    };
    return texts[refusal];
}
