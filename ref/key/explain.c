/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in words. */
#include "ref/key/explain.h"

#include <inttypes.h>

/* One line of an explanation. The text is quoted as it stands in the key. */
static void append_part(struct moon_text *out, const char *name, struct moon_key_text text, const char *rule,
                        const char *requirement) {
    moon_text_format(out, "  %-16s ", name);
    moon_text_bytes(out, text.bytes, text.length);
    moon_text_format(out, "\n  %-16s   %s (%s)\n", "", rule, requirement);
}

static void append_number(struct moon_text *out, const char *name, int64_t number, const char *rule,
                          const char *requirement) {
    moon_text_format(out, "  %-16s %" PRId64 "\n  %-16s   %s (%s)\n", name, number, "", rule, requirement);
}

struct rule {
    const char *text, *requirement;
};
static const struct rule group_rules[] = {
    [MOON_GROUP_ALL] = {"position among all KV cache groups, 0.22 to 0.28", "KEY-004"},
    [MOON_GROUP_TRANSFER] = {"position among the transferable groups, 0.29", "KEY-004"},
    [MOON_GROUP_CACHEABLE] = {"position among the transferable and prefix-cacheable groups, 0.30 on", "KEY-004"},
};
static const struct rule hash_rules[] = {
    [MOON_CHUNK_HASH_ONLY] = {"block hash of the chunk", "KEY-011"},
    [MOON_CHUNK_HASH_JOINED] = {"all block hashes of the chunk, joined; 0.22 and 0.23", "KEY-016"},
    [MOON_CHUNK_HASH_LAST] = {"block hash at the end of the chunk; 0.24 on", "KEY-015"},
};

static void append_parts(const struct moon_profile *profile, const struct moon_pool_key *key, struct moon_key_text hash,
                         struct moon_text *out) {
    if (profile->cache_prefix && key->cache_prefix.length)
        append_part(out, "cache_prefix", key->cache_prefix, "extra_config cache_prefix, then \"@\"; 0.24 on",
                    "KEY-008");
    append_part(out, "model_name", key->model_name, "last component of the configured model path", "KEY-005");
    if (profile->store_namespace && key->store_namespace.length)
        append_part(out, "store_namespace", key->store_namespace, "chosen store layout; 0.30 on", "KEY-010");
    append_number(out, "tp_rank", key->tp_rank, "TP rank divided by the replication factor, or the store shard",
                  "KEY-001");
    append_number(out, "pcp", key->pcp_rank, "prefill context parallel rank", "LAYOUT-016");
    append_number(out, "dcp", key->dcp_rank, "decode context parallel rank", "LAYOUT-016");
    append_number(out, "pp_rank", key->pp_rank, "(rank / TP size) modulo PP size", "LAYOUT-016");
    const struct rule *group = &group_rules[profile->group_numbering];
    if (group->text)
        append_number(out, "group", key->group_id, group->text, group->requirement);
    const struct rule *end = &hash_rules[profile->chunk_hash];
    append_part(out, "hash", hash, end->text, end->requirement);
}

void moon_key_explain(const struct moon_profile *profile, const struct moon_pool_key *key, struct moon_key_text hash,
                      struct moon_text *out) {
    moon_text_format(out, "key of %s (%s)\n  ", profile->name, profile->version);
    moon_key_build(profile, key, hash, out);
    moon_text_string(out, "\nparts\n");
    append_parts(profile, key, hash, out);
    moon_text_string(out,
                     "not part of it: KV cache dtype, weight version, revision, quantisation, block size (KEY-023)\n");
}

void moon_key_explain_hash(const struct moon_key_reading *reading, struct moon_text *out) {
    if (reading->digests_of_32)
        moon_text_format(out, "%" PRId64 " x 32 bytes (SHA-256)", reading->digests_of_32);
    if (reading->digests_of_32 && reading->digests_of_16)
        moon_text_string(out, " or ");
    if (reading->digests_of_16)
        moon_text_format(out, "%" PRId64 " x 16 bytes (XXH3-128)%s", reading->digests_of_16,
                         reading->digests_of_32 ? ", joined by 0.22 or 0.23" : "");
}

void moon_key_explain_readings(const struct moon_key_readings *readings, struct moon_text *out) {
    if (readings->possible > 1)
        moon_text_format(out, "AMBIGUOUS: %zu identities give this key, because '@' is not escaped (KEY-007)\n",
                         readings->possible);
    else if (readings->possible == 1)
        moon_text_string(out, "one identity gives this key\n");
    else
        moon_text_string(out, "no release writes this key: the model's name would hold '/' (KEY-005)\n");
    for (size_t i = 0; i < readings->count; i++) {
        const struct moon_key_reading *reading = &readings->list[i];
        moon_text_format(out, "reading %zu: %s to %s%s\n", i + 1, reading->oldest->name, reading->newest->name,
                         reading->uncut   ? ", only if the model's name was not cut at '/'"
                         : reading->plain ? ", no '@' in a name"
                                          : ", a name holds '@'");
        append_parts(reading->newest, &reading->key, reading->hash, out);
        moon_text_format(out, "  %-16s ", "digest");
        moon_key_explain_hash(reading, out);
        moon_text_char(out, '\n');
    }
    if (readings->total > readings->count)
        moon_text_format(out, "%zu more readings are not shown\n", readings->total - readings->count);
}
