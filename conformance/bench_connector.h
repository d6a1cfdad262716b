/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the connector: planning steps, lookups, save and load jobs, segments; beside a copy of the same bytes. */
#ifndef MOON_CONFORMANCE_BENCH_CONNECTOR_H
#define MOON_CONFORMANCE_BENCH_CONNECTOR_H

#include "conformance/bench_time.h"
#include "ref/key/profile.h"

#include "ref/base/memory.h"

/* What is measured. The Python side (conformance/adapters/vllm/bench_connector.py) knows the same subjects by name. */
enum moon_bench_subject {
    MOON_BENCH_STEP_PLAIN,  /* one decode step of all requests, no block begins or ends */
    MOON_BENCH_STEP_BLOCK,  /* every request gets a block */
    MOON_BENCH_STEP_SAVE,   /* every request fills a block and gets a save job */
    MOON_BENCH_LOOKUP,      /* keys built, answers taken, hit searched */
    MOON_BENCH_LOOKUP_TEXT, /* the same, with every key written out */
    MOON_BENCH_SAVE,        /* one job: existence check and put, with buffers */
    MOON_BENCH_LOAD,        /* one job: get, with buffers */
    MOON_BENCH_SEGMENTS,    /* buffers of LBNHC shards */
    MOON_BENCH_SUBJECTS
};
enum {
    MOON_BENCH_REQUESTS = 1000,
    MOON_BENCH_PROMPT_TOKENS = 1024,
    MOON_BENCH_BLOCK_TOKENS = 16,
    MOON_BENCH_LOOKUP_TOKENS = 131072,
    MOON_BENCH_SHARDS = 8,
    MOON_BENCH_JOB_TOKENS = 8192,
    MOON_BENCH_LAYERS = 32,
    MOON_BENCH_HEADS = 8,
    MOON_BENCH_SEGMENT_CHUNKS = 64,
};
const char *moon_bench_subject_name(enum moon_bench_subject subject); /* "step.plain" */
const char *moon_bench_subject_text(enum moon_bench_subject subject);

/* One subject, measured.
 *   units, unit  how many of what it handles: "request", "key", "segment"
 *   bytes        what goes in and comes out; `floor` is memcpy of as many */
struct moon_bench_row {
    enum moon_bench_subject subject;
    uint64_t units;
    const char *unit;
    size_t bytes;
    struct moon_bench_spread time, floor;
};

/* Measures all subjects as the release (0.30 or later: one with store shards) does them; each time is that of `runs`
 * runs (1 to MOON_BENCH_RUNS_MAX). Returns 0 or MOON_ERR_MEMORY. Takes the single thread that it is called on for a
 * while. */
int moon_bench_connector(const struct moon_profile *profile, uint32_t runs, struct moon_memory *memory,
                         struct moon_bench_row rows[MOON_BENCH_SUBJECTS], struct moon_error *error);

#endif
