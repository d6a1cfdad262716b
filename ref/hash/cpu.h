/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU at hand can do for hashing, asked at run time. */
#ifndef MOON_HASH_CPU_H
#define MOON_HASH_CPU_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Instruction groups that fast paths need. All false is always right, only slower. */
struct moon_cpu {
    bool sha;           /* x86 SHA extensions with SSE 4.1 */
    bool byte_compress; /* AVX-512 with BW and VBMI2: many token ids are written at once */
};

/* Asks the CPU and the operating system. Keep the answer. Any thread. */
struct moon_cpu moon_cpu_detect(void);

#ifdef __cplusplus
}
#endif
#endif
