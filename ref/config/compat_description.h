/* SPDX-License-Identifier: Apache-2.0 */
/* A deployment as a person describes it: the closed form of compat descriptions, read and checked. */
#ifndef MOON_CONFIG_COMPAT_DESCRIPTION_H
#define MOON_CONFIG_COMPAT_DESCRIPTION_H

#include "ref/config/compat.h"
#include "ref/config/store_config.h"
#include "ref/hash/digest.h"
#include "ref/hash/object.h"
#include "ref/layout/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_COMPAT_GROUPS_MAX = 16,
    MOON_COMPAT_ITEMS_MAX = 1024,
    MOON_COMPAT_SIZE_MAX = 1024,          /* of one parallel dimension */
    MOON_COMPAT_BLOCK_TOKENS_MAX = 65536, /* of one group */
    MOON_COMPAT_TOKENS_MAX = 1 << 20,     /* of a prompt, a window, an interval */
};

/* One group as described; block_tokens is the block of one rank. */
struct moon_compat_group {
    struct moon_layout_group layout;
    int64_t retained_tokens; /* extra_retained_tokens of its spec */
    bool dcp_sharded;
};

/* A multimodal item. offset and length in tokens. */
struct moon_compat_item {
    struct moon_string identifier;
    int64_t offset, length;
};

/* A request that is asked about. Strings have identity 0: each is an object of its own. */
struct moon_compat_request {
    bool given;
    const int64_t *tokens; /* NULL: the sample prompt */
    size_t token_count;
    struct moon_string lora_name, lora_path, cache_salt;
    bool lora, salt, embeds;
    struct moon_compat_item *mm;
    size_t mm_count;
};

enum moon_compat_retention { MOON_COMPAT_RETENTION_DEFAULT, MOON_COMPAT_RETENTION_DENSE, MOON_COMPAT_RETENTION_TOKENS };

/* Everything of one description. Borrows the document. Texts that are not given are NULL, sizes 0. */
struct moon_compat_description {
    const char *source;
    const struct moon_json *document;
    const struct moon_profile *profile;
    const char *name;
    struct moon_key_text model;
    const char *weights_version, *quantization, *dtype;
    int64_t tp, pp, pcp, dcp;
    int64_t heads, head_size, layers;
    enum moon_kv_layout layout;
    bool mla, eagle;
    int64_t match_unit;
    enum moon_compat_retention retention;
    int64_t retention_tokens;
    struct moon_compat_group groups[MOON_COMPAT_GROUPS_MAX];
    size_t group_count;
    enum moon_hash_algorithm algorithm;
    const struct moon_json *seed; /* a string, or NULL when it is not set */
    const char *role;             /* kv_producer, kv_consumer or kv_both */
    bool consumer;
    const struct moon_json *extra;
    const struct moon_json *mooncake; /* the configuration as an object; NULL: a file, or not told */
    bool tenants;                     /* the master tells tenants apart */
    struct moon_compat_request request;
};

/* Reads a description. Returns 0, MOON_ERR_SCHEMA, MOON_ERR_RANGE, MOON_ERR_UNSUPPORTED or MOON_ERR_MEMORY.
 * (COMPAT-027) */
int moon_compat_describe(struct moon_arena *arena, const struct moon_compat_input *input, const char *default_name,
                         struct moon_compat_description *out, struct moon_error *error);

/* True if two texts have the same bytes. */
bool moon_compat_texts_equal(struct moon_key_text a, struct moon_key_text b);
bool moon_compat_strings_equal(struct moon_string a, struct moon_string b);

/* A variable of the description's "env", or NULL. Its value holds no NUL. */
const char *moon_compat_variable(const struct moon_compat_description *description, const char *name);

#ifdef __cplusplus
}
#endif
#endif
