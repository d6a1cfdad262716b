/* SPDX-License-Identifier: Apache-2.0 */
/* Buffer of the bytes that arrive on one connection: as large as what has come, not as what was announced. */
#include "ref/store/rpc_internal.h"

#include <assert.h>

int moon_rpc_input_open(struct moon_rpc_input *input, struct moon_memory *memory) {
    *input = (struct moon_rpc_input){.memory = memory};
    input->data = memory->resize(memory, NULL, 0, MOON_RPC_INPUT_BYTES_FIRST);
    input->capacity = input->data ? MOON_RPC_INPUT_BYTES_FIRST : 0;
    return input->data ? MOON_OK : MOON_ERR_MEMORY;
}

void moon_rpc_input_close(struct moon_rpc_input *input) {
    if (input->data)
        input->memory->resize(input->memory, input->data, input->capacity, 0);
    *input = (struct moon_rpc_input){0};
}

size_t moon_rpc_input_room(const struct moon_rpc_input *input, void **into) {
    assert(input->filled < input->capacity);
    *into = input->data + input->filled;
    return input->capacity - input->filled;
}

/* Gives memory back, if that can be done without memory. */
static void shrink(struct moon_rpc_input *input) {
    uint8_t *small = input->memory->resize(input->memory, input->data, input->capacity, MOON_RPC_INPUT_BYTES_FIRST);
    if (!small)
        return;
    input->data = small;
    input->capacity = MOON_RPC_INPUT_BYTES_FIRST;
}

int moon_rpc_input_consume(struct moon_rpc_input *input, size_t used, size_t needed) {
    assert(used <= input->filled);
    input->filled -= used;
    if (used > 0 && input->filled > 0)
        memmove(input->data, input->data + used, input->filled);
    if (input->filled == 0 && used > 0 && input->capacity > MOON_RPC_INPUT_BYTES_FIRST)
        shrink(input);
    if (input->filled < input->capacity)
        return MOON_OK;
    assert(needed > input->capacity); /* otherwise the frame was whole and would have been taken */
    size_t larger = input->capacity * 2 < needed ? input->capacity * 2 : needed;
    uint8_t *grown = input->memory->resize(input->memory, input->data, input->capacity, larger);
    if (!grown)
        return MOON_ERR_MEMORY;
    input->data = grown;
    input->capacity = larger;
    return MOON_OK;
}
