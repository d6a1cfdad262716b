/* SPDX-License-Identifier: Apache-2.0 */
/* A KV cache tensor: checks on its numbers, the gapless test and regrouping of kernel blocks. */
#include "ref/layout/tensor.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static int check_dimension(const struct moon_tensor *tensor, unsigned d, uint64_t *last_bytes,
                           struct moon_error *error) {
    uint64_t size = tensor->shape[d], stride = tensor->strides[d], stride_bytes, reach_bytes;
    if (size < 1 || size > MOON_TENSOR_NUMBER_MAX || stride > MOON_TENSOR_NUMBER_MAX)
        return moon_fail(error, MOON_ERR_RANGE, NULL,
                         "dimension %u has size %" PRIu64 " and stride %" PRIu64
                         "; sizes are 1 to 2^53, strides 0 to 2^53",
                         d, size, stride);
    if (__builtin_mul_overflow(stride, tensor->item_bytes, &stride_bytes) ||
        __builtin_mul_overflow(stride_bytes, size - 1, &reach_bytes) ||
        __builtin_add_overflow(*last_bytes, reach_bytes, last_bytes))
        return moon_fail(error, MOON_ERR_RANGE, NULL,
                         "dimension %u reaches further than 2^64 bytes (size %" PRIu64 ", stride %" PRIu64 ")", d, size,
                         stride);
    return MOON_OK;
}

int moon_tensor_check(const struct moon_tensor *tensor, uint64_t storage_bytes, struct moon_error *error) {
    if (tensor->dimensions < 1 || tensor->dimensions > MOON_TENSOR_DIMENSIONS_GIVEN_MAX)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "a tensor has 1 to %d dimensions, this one %u",
                         MOON_TENSOR_DIMENSIONS_GIVEN_MAX, tensor->dimensions);
    if (tensor->item_bytes < 1 || tensor->item_bytes > MOON_TENSOR_NUMBER_MAX ||
        tensor->offset_bytes > MOON_TENSOR_NUMBER_MAX || storage_bytes > MOON_TENSOR_NUMBER_MAX)
        return moon_fail(error, MOON_ERR_RANGE, NULL,
                         "element size %" PRIu64 " must be 1 to 2^53, offset %" PRIu64 " and storage length %" PRIu64
                         " at most 2^53",
                         tensor->item_bytes, tensor->offset_bytes, storage_bytes);
    uint64_t end_bytes = tensor->offset_bytes + tensor->item_bytes;
    for (unsigned d = 0; d < tensor->dimensions; d++) {
        int status = check_dimension(tensor, d, &end_bytes, error);
        if (status)
            return status;
    }
    if (end_bytes > storage_bytes)
        return moon_fail(error, MOON_ERR_RANGE, NULL,
                         "the tensor ends at byte %" PRIu64 ", its storage has %" PRIu64 " bytes", end_bytes,
                         storage_bytes);
    return MOON_OK;
}

uint64_t moon_tensor_stride_bytes(const struct moon_tensor *tensor, unsigned dimension) {
    assert(dimension < tensor->dimensions);
    return tensor->strides[dimension] * tensor->item_bytes;
}

bool moon_tensor_gapless(const struct moon_tensor *tensor, unsigned first_dimension) {
    /* Builds the run from the inside: the only dimension that can come next has a stride equal to what is filled so
     * far. That grows with each step, so no dimension is taken twice. */
    unsigned left = 0;
    for (unsigned d = first_dimension; d < tensor->dimensions; d++)
        left += tensor->shape[d] > 1;
    uint64_t filled = 1;
    while (left > 0) {
        unsigned next = first_dimension;
        while (next < tensor->dimensions && (tensor->shape[next] == 1 || tensor->strides[next] != filled))
            next++;
        if (next == tensor->dimensions)
            return false;
        bool wrapped = __builtin_mul_overflow(filled, tensor->shape[next], &filled);
        assert(!wrapped); /* (size - 1) * stride fits, and stride is `filled` */
        left--;
    }
    return true;
}

int moon_tensor_regroup(struct moon_tensor *tensor, uint64_t num_blocks, struct moon_error *error) {
    assert(num_blocks >= 1);
    if (tensor->shape[0] == num_blocks)
        return MOON_OK;
    if (tensor->shape[0] % num_blocks != 0)
        return moon_refuse(error, "AssertionError", "%s", "");
    assert(tensor->dimensions <= MOON_TENSOR_DIMENSIONS_GIVEN_MAX);
    /* The tensor reaches over (size - 1) strides and lies in its storage, so twice that fits. */
    uint64_t kernel_blocks = tensor->shape[0] / num_blocks, block_stride = tensor->strides[0] * kernel_blocks;
    memmove(&tensor->shape[1], &tensor->shape[0], tensor->dimensions * sizeof tensor->shape[0]);
    memmove(&tensor->strides[1], &tensor->strides[0], tensor->dimensions * sizeof tensor->strides[0]);
    tensor->shape[0] = num_blocks;
    tensor->shape[1] = kernel_blocks;
    tensor->strides[0] = block_stride;
    tensor->dimensions++;
    return MOON_OK;
}
