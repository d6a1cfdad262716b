/* SPDX-License-Identifier: Apache-2.0 */
/* A Python program that measures the same as we do, and answers a line of JSON for a line of JSON. */
#ifndef MOON_CONFORMANCE_BENCH_PYTHON_H
#define MOON_CONFORMANCE_BENCH_PYTHON_H

#include "conformance/process.h"
#include "ref/base/json.h"

/* Where answers come from. `skipped`: why there are none; NULL while it answers. Texts live in the arena. */
struct moon_bench_python {
    struct moon_process process;
    struct moon_arena *arena;
    bool started;
    const char *skipped;
};

/* Starts PROGRAM SCRIPT [arguments], each a NULL-terminated list of words. A failure is told in `skipped`. */
void moon_bench_python_start(struct moon_bench_python *python, struct moon_arena *arena, const char *const words[]);
/* Asks one question. Returns its answer, an object, or NULL: then `skipped` says why. An answer {"missing": module}
 * skips as well. */
const struct moon_json *moon_bench_python_ask(struct moon_bench_python *python, const char *question);
void moon_bench_python_end(struct moon_bench_python *python); /* also one that never started */

#endif
