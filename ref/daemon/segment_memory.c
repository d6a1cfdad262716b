/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a segment by mmap: more is asked for than needed, and what stands over is given back. */
#include "ref/daemon/segment_memory.h"

#include <sys/mman.h>

void *moon_segment_memory_open(size_t bytes) {
    if (bytes == 0 || bytes > (size_t)MOON_SEGMENT_BYTES_MAX)
        return NULL;
    size_t mapped = bytes + MOON_SEGMENT_ALIGN_BYTES;
    char *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    size_t front = MOON_SEGMENT_ALIGN_BYTES - (uintptr_t)memory % MOON_SEGMENT_ALIGN_BYTES;
    munmap(memory, front);
    /* The end may lie within a page: the kernel frees whole ones behind it. */
    size_t page = 4096, end = (front + bytes + page - 1) / page * page;
    if (end < mapped)
        munmap(memory + end, mapped - end);
    return memory + front;
}

void moon_segment_memory_close(void *memory, size_t bytes) {
    if (memory)
        munmap(memory, bytes);
}
