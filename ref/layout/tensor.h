/* SPDX-License-Identifier: Apache-2.0 */
/* A KV cache tensor as the memory sees it: where in which storage, how long each dimension is and how far its steps
 * are. */
#ifndef MOON_LAYOUT_TENSOR_H
#define MOON_LAYOUT_TENSOR_H

#include "ref/base/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_TENSOR_DIMENSIONS_GIVEN_MAX = 7, /* of a cache as registered */
    MOON_TENSOR_DIMENSIONS_MAX = 8,       /* after regrouping, which adds one */
};
/* Every size, stride and offset from outside is at most this: exact in JSON, and products of two are easy to check. */
#define MOON_TENSOR_NUMBER_MAX (UINT64_C(1) << 53)

/* A view of a storage. Plain data, no ownership.
 *   storage      index of the storage
 *   offset_bytes where the first element is, from the start of the storage
 *   dimensions   1..MOON_TENSOR_DIMENSIONS_MAX; shape (elements) and strides (elements, not bytes) have as many entries
 *   item_bytes   size of one element */
struct moon_tensor {
    size_t storage;
    uint64_t offset_bytes;
    unsigned dimensions;
    uint64_t shape[MOON_TENSOR_DIMENSIONS_MAX];
    uint64_t strides[MOON_TENSOR_DIMENSIONS_MAX];
    uint64_t item_bytes;
};

/* A byte range of every block: block b has it at offset_bytes + b * block_stride_bytes of the storage. */
struct moon_segment {
    size_t storage;
    uint64_t offset_bytes, block_stride_bytes, size_bytes;
};

/* Judges numbers from outside: 1 to 7 dimensions of at least 1, element size at least 1, no number above
 * MOON_TENSOR_NUMBER_MAX, every stride in bytes fits 64 bits, and the last element ends inside its storage of
 * `storage_bytes`. Strides of 0 (a dimension that repeats) are allowed.
 * Returns 0 or MOON_ERR_RANGE. The functions below want a tensor that passed. (SEG-027) */
int moon_tensor_check(const struct moon_tensor *tensor, uint64_t storage_bytes, struct moon_error *error);

/* Stride of one dimension in bytes. */
uint64_t moon_tensor_stride_bytes(const struct moon_tensor *tensor, unsigned dimension);

/* True if the elements of the sub-tensor of dimensions first_dimension and later fill one contiguous range, each byte
 * once, in whatever order of dimensions. Dimensions of size 1 do not matter. No dimension left: true. (SEG-009) */
bool moon_tensor_gapless(const struct moon_tensor *tensor, unsigned first_dimension);

/* Makes dimension 0 exactly num_blocks long: r * num_blocks becomes (num_blocks, r). num_blocks >= 1.
 * Doing it again changes nothing.
 * Returns 0, or MOON_ERR_REFUSED (AssertionError, empty message) when dimension 0 is no multiple; the tensor is then
 * unchanged. (SEG-007) */
int moon_tensor_regroup(struct moon_tensor *tensor, uint64_t num_blocks, struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
