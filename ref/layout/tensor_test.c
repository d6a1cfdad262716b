/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the tensor: its checks, the gapless test against counting bytes, and regrouping. */
#include "ref/layout/tensor.h"

#include "ref/base/random.h"
#include "ref/base/unit.h"

static struct moon_tensor make(unsigned dimensions, const uint64_t *shape, const uint64_t *strides) {
    struct moon_tensor tensor = {.dimensions = dimensions, .item_bytes = 1};
    memcpy(tensor.shape, shape, dimensions * sizeof *shape);
    memcpy(tensor.strides, strides, dimensions * sizeof *strides);
    return tensor;
}

static struct moon_tensor tensor_2d(uint64_t rows, uint64_t row_stride, uint64_t columns, uint64_t column_stride) {
    return make(2, (uint64_t[]){rows, columns}, (uint64_t[]){row_stride, column_stride});
}

static void tensor_inside_its_storage_passes(void) {
    struct moon_tensor tensor = tensor_2d(4, 10, 8, 1);
    tensor.item_bytes = 2;
    tensor.offset_bytes = 6;
    /* last element: 3 * 10 + 7 = 37, ends at 6 + 38 * 2 = 82 */
    MOON_CHECK_INT(moon_tensor_check(&tensor, 82, NULL), MOON_OK);
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_tensor_check(&tensor, 81, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "the tensor ends at byte 82, its storage has 81 bytes");
}

static void numbers_without_sense_are_refused(void) {
    struct moon_tensor good = tensor_2d(4, 8, 8, 1), tensor = good;
    MOON_CHECK_INT(moon_tensor_check(&tensor, 32, NULL), MOON_OK);
    tensor.dimensions = 0;
    MOON_CHECK_INT(moon_tensor_check(&tensor, 32, NULL), MOON_ERR_RANGE);
    tensor.dimensions = MOON_TENSOR_DIMENSIONS_GIVEN_MAX + 1;
    MOON_CHECK_INT(moon_tensor_check(&tensor, 32, NULL), MOON_ERR_RANGE);
    tensor = good;
    tensor.shape[1] = 0;
    MOON_CHECK_INT(moon_tensor_check(&tensor, 32, NULL), MOON_ERR_RANGE);
    tensor.shape[1] = MOON_TENSOR_NUMBER_MAX + 1;
    MOON_CHECK_INT(moon_tensor_check(&tensor, 32, NULL), MOON_ERR_RANGE);
    tensor = good;
    tensor.strides[0] = MOON_TENSOR_NUMBER_MAX + 1;
    MOON_CHECK_INT(moon_tensor_check(&tensor, 32, NULL), MOON_ERR_RANGE);
    tensor = good;
    tensor.item_bytes = 0;
    MOON_CHECK_INT(moon_tensor_check(&tensor, 32, NULL), MOON_ERR_RANGE);
    tensor.item_bytes = MOON_TENSOR_NUMBER_MAX + 1;
    MOON_CHECK_INT(moon_tensor_check(&tensor, 32, NULL), MOON_ERR_RANGE);
    tensor = good;
    tensor.offset_bytes = MOON_TENSOR_NUMBER_MAX + 1;
    MOON_CHECK_INT(moon_tensor_check(&tensor, 32, NULL), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_tensor_check(&good, MOON_TENSOR_NUMBER_MAX + 1, NULL), MOON_ERR_RANGE);
}

static void products_that_wrap_are_refused(void) {
    const uint64_t huge = MOON_TENSOR_NUMBER_MAX;
    struct moon_tensor tensor = tensor_2d(1, huge, 1, 1);
    tensor.item_bytes = huge; /* the stride in bytes is 2^106, though it is never walked */
    MOON_CHECK_INT(moon_tensor_check(&tensor, huge, NULL), MOON_ERR_RANGE);
    tensor = tensor_2d(huge, huge, 1, 1); /* the reach is 2^106 */
    MOON_CHECK_INT(moon_tensor_check(&tensor, huge, NULL), MOON_ERR_RANGE);
    /* six reaches of 2^62 each add up to more than 2^64 */
    uint64_t shape[6], strides[6];
    for (int i = 0; i < 6; i++) {
        shape[i] = (UINT64_C(1) << 31) + 1;
        strides[i] = UINT64_C(1) << 31;
    }
    tensor = make(6, shape, strides);
    MOON_CHECK_INT(moon_tensor_check(&tensor, huge, NULL), MOON_ERR_RANGE);
}

static void dimension_order_does_not_matter_for_gapless(void) {
    /* (block, head, token, content) with heads before tokens and tokens before heads */
    struct moon_tensor lbhnc = make(4, (uint64_t[]){8, 2, 16, 4}, (uint64_t[]){128, 64, 4, 1});
    struct moon_tensor lbnhc = make(4, (uint64_t[]){8, 2, 16, 4}, (uint64_t[]){128, 4, 8, 1});
    struct moon_tensor lhbnc = make(4, (uint64_t[]){8, 2, 16, 4}, (uint64_t[]){64, 512, 4, 1});
    CU_ASSERT(moon_tensor_gapless(&lbhnc, 1));
    CU_ASSERT(moon_tensor_gapless(&lbnhc, 1));
    CU_ASSERT(!moon_tensor_gapless(&lhbnc, 1));
    CU_ASSERT(moon_tensor_gapless(&lhbnc, 2));
    CU_ASSERT(moon_tensor_gapless(&lhbnc, 0));
    CU_ASSERT(moon_tensor_gapless(&lhbnc, 4));
}

static void dimensions_of_size_one_do_not_matter_for_gapless(void) {
    struct moon_tensor tensor = make(4, (uint64_t[]){4, 1, 3, 1}, (uint64_t[]){3, 999, 1, 77});
    CU_ASSERT(moon_tensor_gapless(&tensor, 0));
    tensor.shape[1] = 2;
    CU_ASSERT(!moon_tensor_gapless(&tensor, 0));
}

/* Counts how often each byte is an element: gapless means that a range from 0 on is covered once. */
static bool gapless_by_counting(const struct moon_tensor *tensor) {
    enum { BYTES = 4096 };
    static unsigned char hits[BYTES];
    memset(hits, 0, sizeof hits);
    uint64_t index[MOON_TENSOR_DIMENSIONS_MAX] = {0}, elements = 1;
    for (unsigned d = 0; d < tensor->dimensions; d++)
        elements *= tensor->shape[d];
    for (uint64_t n = 0; n < elements; n++) {
        uint64_t at = 0, rest = n;
        for (unsigned d = 0; d < tensor->dimensions; d++) {
            index[d] = rest % tensor->shape[d];
            rest /= tensor->shape[d];
            at += index[d] * tensor->strides[d];
        }
        if (at >= BYTES || hits[at]++)
            return false;
    }
    for (uint64_t at = 0; at < elements; at++)
        if (at >= BYTES || hits[at] != 1)
            return false;
    return true;
}

static void gapless_agrees_with_counting_bytes(void) {
    struct moon_random random;
    moon_random_seed(&random, 7);
    unsigned gapless = 0, wrong = 0;
    for (int round = 0; round < 20000; round++) {
        struct moon_tensor tensor = {.dimensions = (unsigned)moon_random_between(&random, 1, 4), .item_bytes = 1};
        uint64_t filled = 1;
        for (unsigned n = 0, d = (unsigned)moon_random_below(&random, tensor.dimensions); n < tensor.dimensions; n++) {
            tensor.shape[d] = (uint64_t)moon_random_between(&random, 1, 4);
            tensor.strides[d] =
                moon_random_chance(&random, 1, 6) ? moon_random_below(&random, 12) : filled; /* mostly right */
            filled *= tensor.shape[d];
            d = (d + 1) % tensor.dimensions;
        }
        bool seen = moon_tensor_gapless(&tensor, 0);
        wrong += seen != gapless_by_counting(&tensor);
        gapless += seen;
    }
    MOON_CHECK_INT(wrong, 0);
    CU_ASSERT(gapless > 1000 && gapless < 19000);
}

static void kernel_blocks_are_grouped_into_blocks(void) {
    struct moon_tensor tensor = tensor_2d(32, 20, 16, 1);
    MOON_CHECK_INT(moon_tensor_regroup(&tensor, 8, NULL), MOON_OK);
    MOON_CHECK_INT(tensor.dimensions, 3);
    MOON_CHECK_INT(tensor.shape[0], 8);
    MOON_CHECK_INT(tensor.shape[1], 4);
    MOON_CHECK_INT(tensor.shape[2], 16);
    MOON_CHECK_INT(tensor.strides[0], 80);
    MOON_CHECK_INT(tensor.strides[1], 20);
    MOON_CHECK_INT(tensor.strides[2], 1);
}

static void matching_first_dimension_is_left_alone(void) {
    struct moon_tensor tensor = tensor_2d(8, 16, 16, 1);
    MOON_CHECK_INT(moon_tensor_regroup(&tensor, 8, NULL), MOON_OK);
    MOON_CHECK_INT(tensor.dimensions, 2);
}

static void first_dimension_that_does_not_divide_raises(void) {
    struct moon_tensor tensor = tensor_2d(33, 16, 16, 1);
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_tensor_regroup(&tensor, 8, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "AssertionError");
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_INT(tensor.dimensions, 2);
    struct moon_tensor kv_outside = tensor_2d(2, 128, 128, 1);
    MOON_CHECK_INT(moon_tensor_regroup(&kv_outside, 8, &error), MOON_ERR_REFUSED);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a tensor inside its storage passes, one byte further does not", tensor_inside_its_storage_passes},
        {"numbers without sense are refused", numbers_without_sense_are_refused},
        {"products that wrap are refused", products_that_wrap_are_refused},
        {"the order of dimensions does not matter for gapless", dimension_order_does_not_matter_for_gapless},
        {"dimensions of size 1 do not matter for gapless", dimensions_of_size_one_do_not_matter_for_gapless},
        {"gapless agrees with counting bytes", gapless_agrees_with_counting_bytes},
        {"kernel blocks are grouped into blocks", kernel_blocks_are_grouped_into_blocks},
        {"a first dimension that matches is left alone", matching_first_dimension_is_left_alone},
        {"a first dimension that does not divide raises", first_dimension_that_does_not_divide_raises},
        {NULL, NULL},
    };
    return moon_unit_main("ref/layout/tensor", cases, argc, argv);
}
