/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck bench: how fast, as ratios against the limit of the machine and against Python in the same run. */
#include "conformance/bench_hash.h"
#include "conformance/cli/bench_tables.h"

#include <string.h>

static struct moon_cli_bench asked = {.python = "python3", .tokens = 1 << 20, .runs = 7};

static const struct moon_option options[] = {
    {"python", MOON_OPTION_TEXT, &asked.python, "PROGRAM", NULL, 0, 0,
     "Python for the comparison; hash needs cbor2 and xxhash, connector what the vLLM adapter needs (default: "
     "python3)"},
    {"peer", MOON_OPTION_TEXT, &asked.peer, "FILE", NULL, 0, 0,
     "script of the Python side (default: conformance/adapters/python_peer.py, for connector "
     "conformance/adapters/vllm/bench_connector.py)"},
    {"sources", MOON_OPTION_TEXT, &asked.sources, "DIR", NULL, 0, 0,
     "connector: folder of fetched vLLM releases (default: build/deps/vllm)"},
    {"release", MOON_OPTION_TEXT, &asked.release, "VERSION", NULL, 0, 0,
     "connector: release to measure and to compare with (default: the newest)"},
    {"tokens", MOON_OPTION_INTEGER, &asked.tokens, "N", NULL, MOON_BENCH_TOKENS_MIN, MOON_BENCH_TOKENS_MAX,
     "hash: tokens a measurement (default: 1048576)"},
    {"runs", MOON_OPTION_INTEGER, &asked.runs, "N", NULL, 1, MOON_BENCH_RUNS_MAX,
     "each time is the median of so many runs (default: 7)"},
    {"out", MOON_OPTION_TEXT, &asked.out, "FILE", NULL, 0, 0, "write the table as Markdown too"},
    {"json", MOON_OPTION_FLAG, &asked.json, NULL, NULL, 0, 0, "print the measurements as JSON"},
    {NULL, MOON_OPTION_FLAG, NULL, NULL, NULL, 0, 0, NULL},
};

const struct moon_command moon_command_bench = {
    "bench",
    "[hash|connector]",
    "speed of the reference, beside the machine's limit and Python",
    "All times are CPU time of one thread.\n\n"
    "hash (the default): block hash chains, alone and 64 at a time, by algorithm and block size. \"digest\" is the "
    "share of our digest in it. \"/limit\" is the speed as a part of what the fastest call of libcrypto (or XXH3) does "
    "with the same bytes, ready-made and contiguous. \"/python\" is how many times faster than Python with pickle or "
    "cbor2 and hashlib or xxhash.\n\n"
    "connector: planning steps of 1,000 requests, lookups of 131,072 tokens over 8 store shards, jobs of 8,192 tokens, "
    "segments; nothing of it waits for a store. \"each\" is the time a request, key or segment. \"copy\" is memcpy of "
    "the bytes that go in and come out, \"/copy\" how many times longer we take. \"/python\" is how many times faster "
    "than the release's own functions for the same question.",
    options,
    0,
    1,
};

int moon_cli_bench(const char *const operands[], int count) {
    if (count == 0 || strcmp(operands[0], "hash") == 0)
        return moon_cli_bench_hash(&asked);
    if (strcmp(operands[0], "connector") == 0)
        return moon_cli_bench_connector(&asked);
    return moon_cli_complain("%s: there is nothing to measure by that name; there are: hash, connector", operands[0]);
}
