/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a simulated process: all of it goes at a crash, and what is given back wrongly is noticed (SIM-003). */
#include "sim/sim_internal.h"

#include <assert.h>
#include <stdalign.h>

#define BLOCK_MAGIC UINT64_C(0x6d6f6f6e626c6f63)
/* What new and old memory holds: not by chance the same as before, and the same on every machine. */
enum { NEW_BYTE = 0xcd, OLD_BYTE = 0xdd };

/* Header of what is handed out. */
struct moon_sim_block {
    alignas(16) struct moon_sim_block *older;
    struct moon_sim_block *newer;
    struct moon_sim_memory *owner;
    size_t bytes; /* behind the header */
    uint64_t magic;
};

static struct moon_sim_block *allocate(struct moon_sim_memory *self, size_t bytes) {
    struct moon_memory *below = self->sim->memory;
    size_t whole;
    struct moon_sim_block *block = NULL;
    if (!__builtin_add_overflow(bytes, sizeof *block, &whole))
        block = below->resize(below, NULL, 0, whole);
    if (!block) {
        self->sim->failed = true;
        return NULL;
    }
    *block = (struct moon_sim_block){.older = self->blocks, .owner = self, .bytes = bytes, .magic = BLOCK_MAGIC};
    memset(block + 1, NEW_BYTE, bytes);
    if (self->blocks)
        self->blocks->newer = block;
    self->blocks = block;
    self->held_bytes += bytes;
    return block;
}

static void give_back(struct moon_sim_memory *self, struct moon_sim_block *block) {
    if (block->newer)
        block->newer->older = block->older;
    else
        self->blocks = block->older;
    if (block->older)
        block->older->newer = block->newer;
    size_t bytes = block->bytes;
    self->held_bytes -= bytes;
    memset(block, OLD_BYTE, sizeof *block + bytes);
    self->sim->memory->resize(self->sim->memory, block, sizeof *block + bytes, 0);
}

/* A block always moves when it is resized, so that a pointer to where it was is found out. */
static void *resize(struct moon_memory *memory, void *old, size_t old_bytes, size_t new_bytes) {
    struct moon_sim_memory *self = (struct moon_sim_memory *)memory;
    struct moon_sim_block *before = old ? (struct moon_sim_block *)old - 1 : NULL, *after = NULL;
    assert(!before || (before->magic == BLOCK_MAGIC && before->owner == self && before->bytes == old_bytes));
    if (new_bytes > 0) {
        after = allocate(self, new_bytes);
        if (!after)
            return NULL;
    }
    if (before && after)
        memcpy(after + 1, before + 1, old_bytes < new_bytes ? old_bytes : new_bytes);
    if (before)
        give_back(self, before);
    return after ? after + 1 : NULL;
}

void moon_sim_memory_open(struct moon_sim_memory *memory, struct moon_sim *sim) {
    *memory = (struct moon_sim_memory){.memory = {resize}, .sim = sim};
}

void moon_sim_memory_release(struct moon_sim_memory *memory) {
    while (memory->blocks)
        give_back(memory, memory->blocks);
    assert(memory->held_bytes == 0);
}
