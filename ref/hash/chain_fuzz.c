/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes block hash chains: one append, many appends, a batch, and every set of CPU features must agree. */
#include "ref/base/cursor.h"
#include "ref/hash/chain.h"

#include <assert.h>
#include <string.h>

enum { TOKENS_MAX = 2000, ITEMS_MAX = 6, CHAINS = 5, INPUT_BYTES_MAX = 4096 };

/* What the input says. */
struct plan {
    enum moon_hash_algorithm algorithm;
    struct moon_chain_options options;
    struct moon_identity identity;
    struct moon_mm_item items[ITEMS_MAX];
    struct moon_embeds embeds;
    struct moon_string salt;
    int64_t tokens[TOKENS_MAX];
    size_t count;
    bool cuttable; /* the release does not care how the tokens are cut */
};

static const uint8_t none_hash[MOON_DIGEST_BYTES_MAX] = {1, 2, 3};
static const char content[] = "abcdefgh";

static void read_identity(struct moon_cursor *input, struct plan *plan) {
    uint8_t what = moon_cursor_u8(input);
    plan->salt = (struct moon_string){.bytes = content, .length = what & 7};
    plan->embeds = (struct moon_embeds){(const uint8_t *)content, 1, 8};
    plan->identity.cache_salt = what & 8 ? &plan->salt : NULL;
    plan->identity.embeds = what & 16 ? &plan->embeds : NULL;
    plan->identity.lora_name = plan->identity.lora_path = what & 32 ? &plan->salt : NULL;
    plan->identity.mm = plan->items;
    plan->identity.mm_count = what & 64 ? moon_cursor_u8(input) % (ITEMS_MAX + 1) : 0;
    int64_t at = 0;
    for (size_t i = 0; i < plan->identity.mm_count; i++) { /* one behind the other, as the releases expect them */
        at += moon_cursor_u8(input) % 60;
        plan->items[i] = (struct moon_mm_item){
            .identifier = {content, 1 + i % 3, i % 2 ? MOON_IDENTITY_TAGS_END + (uint32_t)(i % 3) : 0},
            .offset = at,
            .length = moon_cursor_u8(input) % 60};
        at += plan->items[i].length;
    }
}

static void read_plan(struct moon_cursor *input, struct plan *plan) {
    size_t profile_count;
    const struct moon_profile *profiles = moon_profiles(&profile_count);
    uint8_t flags = moon_cursor_u8(input);
    memset(plan, 0, sizeof *plan);
    plan->algorithm = (enum moon_hash_algorithm)(flags % 4);
    plan->options.profile = &profiles[moon_cursor_u8(input) % profile_count];
    plan->options.block_tokens = 1 + moon_cursor_u8(input) % 40u;
    plan->options.lookahead_tokens = flags & 16 ? moon_cursor_u8(input) % 7u : 0;
    plan->options.none_hash = none_hash;
    plan->options.none_hash_bytes = flags & 8 ? 32 : 16;
    if (flags & 32)
        read_identity(input, plan);
    plan->options.identity = &plan->identity;
    plan->cuttable = plan->options.profile->mm_resume_overlapping || plan->identity.mm_count == 0;
    plan->count = moon_cursor_u16_le(input) % TOKENS_MAX;
    for (size_t i = 0; i < plan->count; i++) {
        int64_t width = moon_cursor_left(input) > 0 ? moon_cursor_u8(input) : (int64_t)(i * 37 % 19);
        plan->tokens[i] = width == 255 ? INT64_MIN : (INT64_C(1) << width % 37) + (int64_t)i;
    }
}

static void hash(const struct plan *plan, struct moon_cpu cpu, const uint8_t *cuts, size_t cut_count, uint8_t *hashes) {
    static struct moon_hasher hasher;
    struct moon_chain chain;
    size_t at = 0, bytes = moon_hash_algorithm_bytes(plan->algorithm);
    moon_hasher_open(&hasher, plan->algorithm, moon_memory_heap());
    hasher.cpu = cpu;
    moon_chain_open(&chain, &hasher, &plan->options, moon_memory_heap());
    for (size_t i = 0; at < plan->count; i++) {
        size_t step = i < cut_count ? cuts[i] : plan->count - at;
        step = step < plan->count - at ? step : plan->count - at;
        size_t before = (size_t)chain.blocks, promised = moon_chain_blocks_after(&chain, step);
        int status = moon_chain_append(&chain, plan->tokens + at, step, hashes + before * bytes, NULL);
        assert(status == 0 && chain.blocks == before + promised);
        at += step;
    }
    moon_chain_close(&chain);
    moon_hasher_close(&hasher);
}

/* The same tokens in several chains, of which one is the plan's and the others stop earlier. */
static void hash_batch(const struct plan *plan, uint8_t *hashes) {
    static struct moon_hasher hasher;
    static uint8_t others[CHAINS][TOKENS_MAX * MOON_DIGEST_BYTES_MAX];
    struct moon_chain chains[CHAINS];
    struct moon_chain_job jobs[CHAINS];
    moon_hasher_open(&hasher, plan->algorithm, moon_memory_heap());
    for (size_t i = 0; i < CHAINS; i++) {
        moon_chain_open(&chains[i], &hasher, &plan->options, moon_memory_heap());
        jobs[i] = (struct moon_chain_job){&chains[i], plan->tokens, i == 2 ? plan->count : plan->count * i / CHAINS,
                                          i == 2 ? hashes : others[i]};
    }
    int status = moon_chain_append_batch(jobs, CHAINS, NULL);
    assert(status == 0);
    for (size_t i = 0; i < CHAINS; i++) {
        assert(i == 2 ||
               memcmp(others[i], hashes, (size_t)chains[i].blocks * moon_hash_algorithm_bytes(plan->algorithm)) == 0);
        moon_chain_close(&chains[i]);
    }
    moon_hasher_close(&hasher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct plan plan;
    static uint8_t one[TOKENS_MAX * MOON_DIGEST_BYTES_MAX], other[TOKENS_MAX * MOON_DIGEST_BYTES_MAX];
    struct moon_cursor input;
    if (size > INPUT_BYTES_MAX)
        return 0;
    moon_cursor_open(&input, data, size);
    read_plan(&input, &plan);
    memset(one, 0, sizeof one);
    hash(&plan, moon_cpu_detect(), data, 0, one);
    memset(other, 0, sizeof other);
    hash(&plan, (struct moon_cpu){.sha = false}, data, 0, other);
    assert(memcmp(one, other, sizeof one) == 0);
    memset(other, 0, sizeof other);
    hash_batch(&plan, other);
    assert(memcmp(one, other, sizeof one) == 0);
    if (plan.cuttable) {
        memset(other, 0, sizeof other);
        hash(&plan, moon_cpu_detect(), data, size, other);
        assert(memcmp(one, other, sizeof one) == 0);
    }
    return 0;
}
