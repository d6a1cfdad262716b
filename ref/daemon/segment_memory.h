/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a segment: from the system, aligned as segments must be, untouched pages cost nothing. */
#ifndef MOON_DAEMON_SEGMENT_MEMORY_H
#define MOON_DAEMON_SEGMENT_MEMORY_H

#include "ref/base/error.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_SEGMENT_ALIGN_BYTES = 32 * 1024 * 1024 };
#define MOON_SEGMENT_BYTES_MAX ((int64_t)1 << 40)

/* `bytes` (1 to MOON_SEGMENT_BYTES_MAX) zeroed bytes at a multiple of MOON_SEGMENT_ALIGN_BYTES, to be given back with
 * moon_segment_memory_close. NULL: the system refused, or the number is out of range. */
void *moon_segment_memory_open(size_t bytes);
void moon_segment_memory_close(void *memory, size_t bytes); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
