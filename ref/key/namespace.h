/* SPDX-License-Identifier: Apache-2.0 */
/* Store namespaces: the text after the model's name that keeps store layouts apart (0.30 on), written and read. */
#ifndef MOON_KEY_NAMESPACE_H
#define MOON_KEY_NAMESPACE_H

#include "ref/key/pool_key.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Order of a KV cache's dimensions, as vLLM names it: layer, block, head, token (N), content. */
enum moon_kv_layout {
    MOON_KV_LBHNC,
    MOON_KV_LBNHC,
    MOON_KV_LHBNC,
    MOON_KV_BLHNC,
    MOON_KV_BLNHC,
    MOON_KV_BHLNC,
    MOON_KV_LAYOUT_COUNT
};
const char *moon_kv_layout_name(enum moon_kv_layout layout); /* "LBHNC" */
/* Finds a layout by name. Returns 0, or MOON_ERR_SCHEMA with the known names. */
int moon_kv_layout_find(const char *name, enum moon_kv_layout *layout, struct moon_error *error);

enum moon_store_format {
    MOON_STORE_PLAIN,         /* rank-local, no namespace: sharing was not asked for */
    MOON_STORE_SHARDED_LBHNC, /* one object a store shard */
    MOON_STORE_SHARDED_LBNHC,
    MOON_STORE_MQA,      /* one KV head, replicated on all ranks */
    MOON_STORE_ISOLATED, /* rank-local in a namespace of its own: sharing was asked for and refused */
};

/* What a namespace says. Members that its format does not have are 0. */
struct moon_store_namespace {
    enum moon_store_format format;
    int64_t store_tp;           /* sharded */
    int64_t pp;                 /* all but plain */
    int64_t tp;                 /* isolated */
    enum moon_kv_layout layout; /* isolated */
};

enum { MOON_STORE_NAMESPACE_BYTES = 128 };
/* Writes the text (LAYOUT-004), NUL-terminated; the plain format writes "". Returns its length. */
size_t moon_store_namespace_write(const struct moon_store_namespace *space, char out[MOON_STORE_NAMESPACE_BYTES]);
/* The namespace that `text` ends with. Returns its length and fills *space, or 0 if the text ends with none. */
size_t moon_store_namespace_read(struct moon_key_text text, struct moon_store_namespace *space);

#ifdef __cplusplus
}
#endif
#endif
