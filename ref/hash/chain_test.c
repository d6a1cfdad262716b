/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of block hash chains and extra keys; pre-images are those of CPython 3.11 and vLLM. */
#include "ref/hash/chain.h"

#include "ref/base/random.h"
#include "ref/base/text.h"
#include "ref/base/unit.h"

#include <stdlib.h>

enum { TOKENS = 4000, CHAINS = 23 };
#define MEMORY ((size_t)CHAINS * TOKENS * 32)

static int64_t tokens[TOKENS];
static const uint8_t none_hash[32] = {0x11, 0x22};
static struct moon_error error;

static void draw_tokens(uint64_t seed) {
    struct moon_random random;
    moon_random_seed(&random, seed);
    for (size_t i = 0; i < TOKENS; i++)
        tokens[i] = moon_random_between(&random, 0, 151935);
}

static struct moon_string string(const char *text) {
    return (struct moon_string){.bytes = text, .length = strlen(text)};
}

/* ---- pre-images of a short request ---- */

struct request {
    const char *release;
    enum moon_hash_algorithm algorithm;
    uint32_t block, ahead;
    struct moon_identity identity;
    size_t appends[4]; /* token counts; 0 ends */
    struct moon_memory *memory;
};

static struct moon_text preimages; /* in hex, one a line */

static void collect(void *context, uint64_t block, const void *bytes, size_t length) {
    uint64_t *last = context;
    for (; *last < block; (*last)++)
        moon_text_char(&preimages, '\n');
    moon_text_hex(&preimages, bytes, length);
}

static int run(const struct request *request, uint8_t *hashes, size_t *blocks) {
    static struct moon_hasher hasher;
    uint64_t last = 0;
    struct moon_memory *memory = request->memory ? request->memory : moon_memory_heap();
    struct moon_chain chain;
    const struct moon_chain_options options = {.profile = moon_profile_find(request->release, &error),
                                               .block_tokens = request->block,
                                               .lookahead_tokens = request->ahead,
                                               .none_hash = none_hash,
                                               .none_hash_bytes = 2,
                                               .identity = &request->identity,
                                               .tap = {collect, &last}};
    int status = 0;
    size_t at = 0;
    *blocks = 0;
    moon_text_open(&preimages, moon_memory_heap());
    moon_hasher_open(&hasher, request->algorithm, memory);
    moon_chain_open(&chain, &hasher, &options, memory);
    for (size_t i = 0; i < 4 && request->appends[i] > 0 && status == 0; i++) {
        size_t more = moon_chain_blocks_after(&chain, request->appends[i]);
        status = moon_chain_append(&chain, tokens + at, request->appends[i],
                                   hashes + *blocks * moon_hash_algorithm_bytes(request->algorithm), &error);
        at += request->appends[i];
        *blocks += more;
        if (status == 0)
            MOON_CHECK_INT(chain.blocks, *blocks);
    }
    moon_chain_close(&chain);
    moon_chain_close(&chain);
    moon_hasher_close(&hasher);
    return status;
}

/* Tokens count from 1; the parent of block 0 is 11 22. Later parents are cut out of the listing. */
static void check_preimages(const struct request *request, const char *expected) {
    uint8_t hashes[64 * 32];
    size_t blocks;
    for (int64_t i = 0; i < TOKENS; i++)
        tokens[i] = i + 1;
    MOON_CHECK_INT(run(request, hashes, &blocks), 0);
    char *text = preimages.data;
    for (size_t i = 0; text && i + 1 < blocks; i++) {
        struct moon_text parent;
        moon_text_open(&parent, moon_memory_heap());
        size_t bytes = moon_hash_algorithm_bytes(request->algorithm);
        moon_text_hex(&parent, hashes + i * bytes, bytes);
        char *found = strstr(text, parent.data);
        CU_ASSERT_PTR_NOT_NULL_FATAL(found);
        found[0] = 'P';
        memmove(found + 1, found + 2 * bytes, strlen(found + 2 * bytes) + 1);
        moon_text_close(&parent);
    }
    MOON_CHECK_TEXT(text ? text : "", expected);
    moon_text_close(&preimages);
}

static void plain_blocks(void) {
    check_preimages(&(struct request){.release = "0.33", .algorithm = MOON_SHA256_CBOR, .block = 2, .appends = {5}},
                    "83421122820102f6\n835820P820304f6");
    check_preimages(
        &(struct request){.release = "0.33", .algorithm = MOON_XXHASH_CBOR, .block = 2, .appends = {1, 2, 1}},
        "83421122820102f6\n8350P820304f6");
    check_preimages(&(struct request){.release = "0.33", .algorithm = MOON_SHA256_CBOR, .block = 6, .appends = {5}},
                    "");
}

static void lora(void) {
    const struct moon_string name = string("n"), path = string("p");
    struct request request = {.release = "0.30",
                              .algorithm = MOON_SHA256_CBOR,
                              .block = 1,
                              .identity = {.lora_name = &name, .lora_path = &path},
                              .appends = {1, 1}};
    check_preimages(&request, "83421122810181616e\n835820P810281616e");
    request.release = "0.31";
    check_preimages(&request, "8342112281018183646c6f7261616e6170\n835820P81028183646c6f7261616e6170");
}

static void salt(void) {
    struct moon_string value = string("s");
    struct request request = {.release = "0.30",
                              .algorithm = MOON_SHA256_CBOR,
                              .block = 1,
                              .identity = {.cache_salt = &value},
                              .appends = {2}};
    check_preimages(&request, "834211228101816173\n835820P8102f6");
    request.release = "0.33";
    check_preimages(&request, "83421122810181826a63616368655f73616c746173\n835820P8102f6");
    value = string("");
    check_preimages(&request, "834211228101f6\n835820P8102f6");
}

/* Items [1,2), [2,5), [5,6) in blocks of 2. */
static const struct moon_mm_item three_items[] = {{{"a", 1, 0}, 1, 1}, {{"b", 1, 0}, 2, 3}, {{"c", 1, 0}, 5, 1}};

static void items(void) {
    struct request request = {.release = "0.30",
                              .algorithm = MOON_SHA256_CBOR,
                              .block = 2,
                              .identity = {.mm = three_items, .mm_count = 3},
                              .appends = {8}};
    check_preimages(
        &request,
        "834211228201028182616101\n835820P8203048182616200\n835820P820506828261622182616301\n835820P820708f6");
    request.release = "0.31";
    request.appends[0] = 2;
    check_preimages(&request, "834211228201028183626d6d616101");
}

/* The whole prompt before, the rest afterwards: block 2 holds b and c, and b is forgotten up to 0.30. */
static void resumed_items(void) {
    struct request request = {.release = "0.30",
                              .algorithm = MOON_SHA256_CBOR,
                              .block = 2,
                              .identity = {.mm = three_items, .mm_count = 3},
                              .appends = {5, 1, 2}};
    check_preimages(&request,
                    "834211228201028182616101\n835820P8203048182616200\n835820P8205068182616301\n835820P820708f6");
    request.release = "0.31";
    check_preimages(&request, "834211228201028183626d6d616101\n835820P8203048183626d6d616200\n835820P8205068283626d6d61"
                              "622183626d6d616301\n835820P820708f6");
}

/* Overlapping and empty items: what the releases do with input that they do not expect. */
static void odd_items(void) {
    static const struct moon_mm_item nested[] = {{{"a", 1, 0}, 0, 3}, {{"b", 1, 0}, 1, 1}, {{"c", 1, 0}, 3, 1}},
                                     empty[] = {{{"a", 1, 0}, 1, 0}};
    struct request request = {.release = "0.30",
                              .algorithm = MOON_SHA256_CBOR,
                              .block = 2,
                              .identity = {.mm = nested, .mm_count = 3},
                              .appends = {4}};
    check_preimages(&request, "834211228201028182616100\n835820P820304828261612182616301");
    request.identity = (struct moon_identity){.mm = empty, .mm_count = 1};
    check_preimages(&request, "834211228201028182616101\n835820P820304f6");
}

static void embeddings(void) {
    static const uint8_t rows[3] = {'a', 'b', 'c'};
    const struct moon_embeds embeds = {rows, 1, 3};
    struct request request = {
        .release = "0.30", .algorithm = MOON_SHA256_CBOR, .block = 3, .identity = {.embeds = &embeds}, .appends = {6}};
    check_preimages(&request,
                    "8342112283010203815820ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
                    "\n835820P83040506815820e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    request.release = "0.33";
    request.appends[0] = 3;
    check_preimages(&request, "834211228301020381826d70726f6d70745f656d626564735820ba7816bf8f01cfea414140de5dae2223b003"
                              "61a396177a9cb410ff61f20015ad");
}

static void order(void) {
    static const uint8_t rows[1] = {0};
    const struct moon_embeds embeds = {rows, 1, 0};
    const struct moon_string name = string("n"), path = string("p"), salt_value = string("s");
    struct request request = {.release = "0.30",
                              .algorithm = MOON_SHA256_CBOR,
                              .block = 2,
                              .identity = {&name, &path, &salt_value, three_items, 1, &embeds},
                              .appends = {2}};
    check_preimages(
        &request,
        "8342112282010284616e8261610161735820e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

/* Pickle of two images: the second tag is a reference. */
static void tags_are_one_object(void) {
    struct request request = {.release = "0.33",
                              .algorithm = MOON_SHA256,
                              .block = 6,
                              .identity = {.mm = three_items, .mm_count = 2},
                              .appends = {6}};
    check_preimages(&request, "80059530000000000000004302112294284b014b024b034b044b054b0674948c026d6d948c0161944b018794"
                              "68028c0162944b028794869487942e");
}

static void look_ahead(void) {
    struct request request = {.release = "0.33",
                              .algorithm = MOON_SHA256_CBOR,
                              .block = 2,
                              .ahead = 1,
                              .identity = {.mm = three_items, .mm_count = 3},
                              .appends = {2, 2, 3}};
    check_preimages(&request, "83421122820102828283626d6d61610183626d6d61620203\n"
                              "835820P820304828183626d6d61620005\n"
                              "835820P820506828283626d6d61622183626d6d61630107");
    request.ahead = 3;
    request.identity.mm_count = 0;
    request.appends[0] = 5;
    request.appends[1] = 0;
    check_preimages(&request, "8342112282010284f6030405");
}

static void masks(void) {
    const bool is_token_ids[] = {true, false, true};
    int64_t prompt[] = {5, 6, 7};
    moon_prompt_mask(moon_profile_find("0.28", &error), prompt, 3, is_token_ids);
    MOON_CHECK_INT(prompt[1], 6);
    moon_prompt_mask(moon_profile_find("0.29", &error), prompt, 3, NULL);
    MOON_CHECK_INT(prompt[1], 6);
    moon_prompt_mask(moon_profile_find("0.29", &error), prompt, 3, is_token_ids);
    MOON_CHECK_INT(prompt[0], 5);
    MOON_CHECK_INT(prompt[1], 0);
    MOON_CHECK_INT(prompt[2], 7);
}

/* ---- streaming and batches ---- */

struct work {
    struct moon_chain chains[CHAINS];
    uint8_t *alone, *together;
    size_t counts[CHAINS], blocks[CHAINS], offsets[CHAINS];
};

static void open_chains(struct work *work, struct moon_hasher *hasher, uint32_t block,
                        const struct moon_identity *identity) {
    for (size_t i = 0; i < CHAINS; i++) {
        const struct moon_chain_options options = {.profile = moon_profile_find("0.33", &error),
                                                   .block_tokens = block,
                                                   .none_hash = none_hash,
                                                   .none_hash_bytes = i % 3 ? 32 : 16,
                                                   .identity = i % 5 == 4 ? identity : NULL};
        moon_chain_open(&work->chains[i], hasher, &options, moon_memory_heap());
    }
}

static void close_chains(struct work *work) {
    for (size_t i = 0; i < CHAINS; i++)
        moon_chain_close(&work->chains[i]);
}

/* Chain i gets counts[i] tokens, its first token replaced by i; in one append. */
static void hash_alone(struct work *work, size_t digest_bytes) {
    size_t offset = 0;
    for (size_t i = 0; i < CHAINS; i++) {
        work->offsets[i] = offset;
        work->blocks[i] = moon_chain_blocks_after(&work->chains[i], work->counts[i]);
        MOON_CHECK_INT(moon_chain_append(&work->chains[i], tokens + i, work->counts[i], work->alone + offset, &error),
                       0);
        offset += work->blocks[i] * digest_bytes;
    }
}

static void hash_together(struct work *work, bool halves) {
    struct moon_chain_job jobs[CHAINS];
    size_t split[CHAINS], done[CHAINS];
    size_t digest_bytes = moon_hash_algorithm_bytes(work->chains[0].hasher->algorithm);
    for (size_t i = 0; i < CHAINS; i++) {
        split[i] = halves ? work->counts[i] / 2 : work->counts[i];
        done[i] = moon_chain_blocks_after(&work->chains[i], split[i]);
        jobs[i] = (struct moon_chain_job){&work->chains[i], tokens + i, split[i], work->together + work->offsets[i]};
    }
    MOON_CHECK_INT(moon_chain_append_batch(jobs, CHAINS, &error), 0);
    for (size_t i = 0; i < CHAINS; i++)
        jobs[i] = (struct moon_chain_job){&work->chains[i], tokens + i + split[i], work->counts[i] - split[i],
                                          work->together + work->offsets[i] + done[i] * digest_bytes};
    MOON_CHECK_INT(moon_chain_append_batch(jobs, halves ? CHAINS : 0, &error), 0);
}

static void batch_equals_single(void) {
    static const uint32_t blocks[] = {1, 3, 4, 16, 17, 256, 1025};
    static struct moon_hasher hasher;
    const struct moon_string salt_value = string("tenant");
    const struct moon_identity identity = {.cache_salt = &salt_value};
    struct work *work = calloc(1, sizeof *work);
    struct moon_random random;
    moon_random_seed(&random, 5);
    work->alone = calloc(MEMORY, 1);
    work->together = calloc(MEMORY, 1);
    for (size_t run_number = 0; run_number < 4 * 4 * 7; run_number++) {
        moon_hasher_open(&hasher, (enum moon_hash_algorithm)(run_number % 4), moon_memory_heap());
        hasher.cpu.sha = hasher.cpu.sha && run_number / 4 % 2 == 0;
        draw_tokens(run_number);
        tokens[50] = run_number % 3 ? 5 : INT64_C(1) << 40; /* one block that is not ordinary */
        for (size_t i = 0; i < CHAINS; i++)
            work->counts[i] =
                (size_t)moon_random_below(&random, i % 7 == 6 ? 4 : 60 * blocks[run_number / 16] % (TOKENS - CHAINS));
        open_chains(work, &hasher, blocks[run_number / 16], &identity);
        hash_alone(work, moon_hash_algorithm_bytes(hasher.algorithm));
        close_chains(work);
        open_chains(work, &hasher, blocks[run_number / 16], &identity);
        hash_together(work, run_number / 8 % 2 == 0);
        close_chains(work);
        CU_ASSERT(memcmp(work->alone, work->together, MEMORY) == 0);
        memset(work->alone, 0, MEMORY);
        memset(work->together, 0, MEMORY);
        moon_hasher_close(&hasher);
    }
    free(work->alone);
    free(work->together);
    free(work);
}

static void any_cut_is_equal(void) {
    uint8_t whole[250 * 32], parts[250 * 32];
    size_t blocks;
    draw_tokens(6);
    MOON_CHECK_INT(run(&(struct request){.release = "0.33", .block = 16, .appends = {4000}}, whole, &blocks), 0);
    MOON_CHECK_INT(blocks, 250);
    moon_text_close(&preimages);
    static const size_t cuts[][4] = {{1, 3999}, {15, 1, 16, 3968}, {16, 16, 17, 3951}, {3999, 1}, {2000, 0}};
    for (size_t i = 0; i < 5; i++) {
        struct request request = {.release = "0.33", .block = 16};
        memcpy(request.appends, cuts[i], sizeof request.appends);
        MOON_CHECK_INT(run(&request, parts, &blocks), 0);
        CU_ASSERT(memcmp(whole, parts, blocks * 32) == 0);
        moon_text_close(&preimages);
    }
}

/* ---- failures ---- */

static void refused_string(void) {
    uint8_t hashes[32];
    size_t blocks;
    const struct moon_string salt_value = string("\xed\xa0\x80");
    struct request request = {.release = "0.33",
                              .algorithm = MOON_SHA256_CBOR,
                              .block = 2,
                              .identity = {.cache_salt = &salt_value},
                              .appends = {1, 1}};
    MOON_CHECK_INT(run(&request, hashes, &blocks), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "UnicodeEncodeError");
    moon_text_close(&preimages);
    request.algorithm = MOON_SHA256;
    MOON_CHECK_INT(run(&request, hashes, &blocks), 0);
    moon_text_close(&preimages);
}

static void memory_refused(void) {
    uint8_t hashes[32 * 8];
    const struct moon_string salt_value = string("s");
    for (int with_ahead = 0; with_ahead < 2; with_ahead++) {
        int status = MOON_ERR_MEMORY;
        for (uint64_t n = 1; status; n++) {
            struct moon_memory_failing failing;
            size_t blocks;
            moon_memory_failing_init(&failing, moon_memory_heap(), n);
            status = run(&(struct request){.release = "0.33",
                                           .block = 1500,
                                           .ahead = with_ahead ? 2 : 0,
                                           .identity = {.cache_salt = &salt_value},
                                           .appends = {1000, 2999},
                                           .memory = &failing.memory},
                         hashes, &blocks);
            moon_text_close(&preimages);
            CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
            MOON_CHECK_INT(failing.held_bytes, 0);
            CU_ASSERT_FATAL(n < 100);
        }
    }
}

/* Three chains of 20 blocks and one token; block `odd_block` of chain `odd_chain` needs the general writer. */
static int run_batch(int odd_chain, int odd_block, bool extensions, struct moon_memory *writer_memory,
                     struct moon_memory *chain_memory) {
    static struct moon_hasher hasher;
    static uint8_t hashes[3][20 * 32];
    static int64_t own_tokens[3][321];
    struct moon_chain chains[3];
    struct moon_chain_job jobs[3];
    const struct moon_chain_options options = {.profile = moon_profile_find("0.33", &error),
                                               .block_tokens = 16,
                                               .none_hash = none_hash,
                                               .none_hash_bytes = 32};
    memset(own_tokens, 0, sizeof own_tokens);
    own_tokens[odd_chain][odd_block * 16] = -1;
    moon_hasher_open(&hasher, MOON_SHA256, writer_memory);
    hasher.cpu.sha = hasher.cpu.sha && extensions;
    for (int i = 0; i < 3; i++) {
        moon_chain_open(&chains[i], &hasher, &options, chain_memory);
        jobs[i] = (struct moon_chain_job){&chains[i], own_tokens[i], 321, hashes[i]};
    }
    int status = moon_chain_append_batch(jobs, 3, &error);
    for (int i = 0; i < 3; i++)
        moon_chain_close(&chains[i]);
    moon_hasher_close(&hasher);
    return status;
}

static void batch_fails(void) {
    static const int blocks[] = {0, 1, 7, 19};
    for (int i = 0; i < 24; i++) {
        struct moon_memory_failing failing;
        int odd_chain = i % 3, odd_block = blocks[i / 3 % 4];
        bool extensions = i < 12;
        moon_memory_failing_init(&failing, moon_memory_heap(), 1);
        MOON_CHECK_INT(run_batch(odd_chain, odd_block, extensions, &failing.memory, moon_memory_heap()),
                       MOON_ERR_MEMORY);
        MOON_CHECK_INT(failing.held_bytes, 0);
        for (uint64_t n = 1; n <= 4; n++) { /* each chain asks once, for its last token */
            moon_memory_failing_init(&failing, moon_memory_heap(), n);
            MOON_CHECK_INT(run_batch(odd_chain, odd_block, extensions, moon_memory_heap(), &failing.memory),
                           n <= 3 ? MOON_ERR_MEMORY : 0);
            MOON_CHECK_INT(failing.held_bytes, 0);
        }
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"plain blocks hash parent, tokens and None; partial blocks do not (HASH-003, HASH-004)", plain_blocks},
        {"LoRA is in every block, tagged with its path from 0.31 on (HASH-061, HASH-062, HASH-064)", lora},
        {"the salt is in block 0 only, an empty one is none (HASH-068)", salt},
        {"items are in every block they overlap, with relative offsets (HASH-065)", items},
        {"hashing that resumes forgets items up to 0.30 only (HASH-066, HASH-067)", resumed_items},
        {"nested and empty items are scanned as the releases scan them (HASH-065)", odd_items},
        {"embeddings are hashed by rows, generated blocks by nothing (HASH-069)", embeddings},
        {"extra keys keep their order (HASH-060)", order},
        {"the second tag in a block is a memo reference (HASH-027)", tags_are_one_object},
        {"look-ahead tokens are part of the hash and delay it (HASH-080)", look_ahead},
        {"masks zero embedding positions from 0.29 on (HASH-071)", masks},
        {"a batch gives what single appends give (HASH-100)", batch_equals_single},
        {"any cut of the tokens gives the same hashes (HASH-100)", any_cut_is_equal},
        {"a string that CBOR refuses fails the append (HASH-042)", refused_string},
        {"refused memory fails the append and leaks nothing", memory_refused},
        {"a failure in a batch is reported", batch_fails},
        {NULL, NULL}};
    return moon_unit_main("chain", cases, argc, argv);
}
