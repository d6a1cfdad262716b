/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a rank's KV memory: places, checks, objects, poison, refused memory. */
#include "ref/engine/kv_memory.h"

#include "ref/base/unit.h"
#include "ref/engine/token.h"

enum { TOKENS = 5 };

static const struct moon_kv_shape shape = {
    .layers = 2, .first_head = 4, .heads = 2, .block_tokens = 4, .block_count = 3, .half_bytes = 8};

/* Blocks 2 and 1 of five tokens. */
static const int64_t blocks[] = {2, 1};
static uint64_t prefixes[TOKENS];

static struct moon_kv_span span(int64_t first, int64_t end) {
    for (size_t i = 0; i < TOKENS; i++)
        prefixes[i] = moon_token_prefix(i > 0 ? prefixes[i - 1] : 0, (uint32_t)i);
    return (struct moon_kv_span){blocks, 2, prefixes, first, end};
}

static void what_is_written_is_right_and_the_rest_is_not(void) {
    struct moon_kv_memory kv;
    MOON_CHECK_INT(moon_kv_memory_open(&kv, &shape, moon_memory_heap()), 0);
    const struct moon_kv_span all = span(0, TOKENS), some = span(1, TOKENS);
    CU_ASSERT(moon_kv_memory_wrong_bytes(&kv, &all) > 300); /* of 320: a canary may be right by chance */
    moon_kv_memory_write(&kv, &all);
    MOON_CHECK_INT(moon_kv_memory_wrong_bytes(&kv, &all), 0);
    kv.storages[1][0] = 1; /* of block 0: nobody's */
    MOON_CHECK_INT(moon_kv_memory_wrong_bytes(&kv, &all), 0);
    kv.storages[1][kv.storage_bytes / 3 * 2] ^= 1; /* token 0 of block 2 */
    MOON_CHECK_INT(moon_kv_memory_wrong_bytes(&kv, &all), 1);
    MOON_CHECK_INT(moon_kv_memory_wrong_bytes(&kv, &some), 0);
    moon_kv_memory_poison(&kv);
    CU_ASSERT(moon_kv_memory_wrong_bytes(&kv, &all) > 300);
    moon_kv_memory_close(&kv);
    moon_kv_memory_close(&kv);
}

/* The byte at an index of a tensor. */
static const uint8_t *at(const struct moon_kv_memory *kv, const struct moon_tensor *tensor, const uint64_t index[4]) {
    uint64_t offset = 0;
    for (unsigned i = 0; i < 4; i++)
        offset += index[i] * moon_tensor_stride_bytes(tensor, i);
    return kv->storages[tensor->storage] + offset;
}

static void tensors_say_where_cells_are(void) {
    for (int outer = 0; outer < 2; outer++) {
        struct moon_kv_memory kv;
        struct moon_kv_shape its = shape;
        struct moon_error error;
        uint8_t cell[16];
        its.token_outer = outer;
        MOON_CHECK_INT(moon_kv_memory_open(&kv, &its, moon_memory_heap()), 0);
        const struct moon_kv_span all = span(0, TOKENS);
        moon_kv_memory_write(&kv, &all);
        const struct moon_tensor tensor = moon_kv_memory_tensor(&kv, 1);
        MOON_CHECK_INT(moon_tensor_check(&tensor, kv.storage_bytes, &error), 0);
        moon_token_cell(prefixes[2], 1, 5, 8, cell);
        CU_ASSERT(memcmp(at(&kv, &tensor, (const uint64_t[]){2, 1, 2, 0}), cell, sizeof cell) == 0);
        moon_token_cell(prefixes[4], 1, 4, 8, cell);
        CU_ASSERT(memcmp(at(&kv, &tensor, (const uint64_t[]){1, 0, 0, 0}), cell, sizeof cell) == 0);
        MOON_CHECK_INT(moon_tensor_stride_bytes(&tensor, 1), outer ? 16 : 64);
        moon_kv_memory_close(&kv);
    }
}

static void objects_go_out_and_come_back(void) {
    struct moon_kv_memory kv;
    uint8_t object[24];
    MOON_CHECK_INT(moon_kv_memory_open(&kv, &shape, moon_memory_heap()), 0);
    const struct moon_kv_span all = span(0, TOKENS);
    const struct moon_buffer buffers[] = {{0, 256, 16}, {1, 300, 8}};
    moon_kv_memory_write(&kv, &all);
    CU_ASSERT(moon_kv_memory_gather(&kv, buffers, 2, object));
    CU_ASSERT(memcmp(object, kv.storages[0] + 256, 16) == 0 && memcmp(object + 16, kv.storages[1] + 300, 8) == 0);
    moon_kv_memory_poison(&kv);
    CU_ASSERT(moon_kv_memory_scatter(&kv, buffers, 2, object));
    CU_ASSERT(memcmp(object, kv.storages[0] + 256, 16) == 0);
    MOON_CHECK_INT(kv.storages[1][308], MOON_KV_CANARY);
    moon_kv_memory_close(&kv);
}

static void ranges_outside_of_a_storage_are_refused(void) {
    struct moon_kv_memory kv;
    uint8_t object[1024] = {0};
    MOON_CHECK_INT(moon_kv_memory_open(&kv, &shape, moon_memory_heap()), 0);
    const struct moon_buffer bad[] = {{2, 0, 8}, {0, kv.storage_bytes - 7, 8}, {0, 0, kv.storage_bytes + 1}};
    for (size_t i = 0; i < 3; i++) {
        CU_ASSERT(!moon_kv_memory_gather(&kv, &bad[i], 1, object));
        CU_ASSERT(!moon_kv_memory_scatter(&kv, &bad[i], 1, object));
    }
    moon_kv_memory_close(&kv);
}

static void too_much_memory_is_told(void) {
    struct moon_kv_memory kv;
    struct moon_kv_shape large = shape;
    static const uint64_t numbers[] = {UINT64_MAX, UINT64_C(1) << 40};
    for (size_t i = 0; i < 2; i++) {
        uint64_t *const parts[] = {&large.layers, &large.heads, &large.block_tokens, &large.block_count};
        for (size_t k = 0; k < 4; k++) {
            large = shape;
            *parts[k] = numbers[i];
            MOON_CHECK_INT(moon_kv_memory_open(&kv, &large, moon_memory_heap()), MOON_ERR_LIMIT);
            moon_kv_memory_close(&kv);
        }
    }
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    for (uint64_t at_request = 1; at_request <= 4; at_request++) {
        struct moon_memory_failing failing;
        struct moon_kv_memory kv;
        moon_memory_failing_init(&failing, moon_memory_heap(), at_request);
        MOON_CHECK_INT(moon_kv_memory_open(&kv, &shape, &failing.memory), at_request <= 3 ? MOON_ERR_MEMORY : 0);
        moon_kv_memory_close(&kv);
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"what is written is right, and the rest is not", what_is_written_is_right_and_the_rest_is_not},
        {"tensors say where cells are", tensors_say_where_cells_are},
        {"objects go out and come back", objects_go_out_and_come_back},
        {"ranges outside of a storage are refused", ranges_outside_of_a_storage_are_refused},
        {"too much memory is told", too_much_memory_is_told},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("KV memory", cases, argc, argv);
}
