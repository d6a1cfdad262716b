/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU at hand can do for hashing, asked at run time. */
#include "ref/hash/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_sha(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1))
        return false; /* GCOVR_EXCL_LINE no such CPU has the SHA extensions */
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA);
}

struct moon_cpu moon_cpu_detect(void) {
    return (struct moon_cpu){.sha = has_sha(),
                             .byte_compress = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                              __builtin_cpu_supports("avx512vbmi2")};
}
#else
struct moon_cpu moon_cpu_detect(void) {
    return (struct moon_cpu){.sha = false};
}
#endif
