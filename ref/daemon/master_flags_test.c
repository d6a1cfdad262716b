/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the master's flags. */
#include "ref/daemon/master_flags.h"

#include "ref/base/unit.h"

static int64_t port;
static bool fast;
static const struct moon_option options[] = {
    {.name = "port", .kind = MOON_OPTION_INTEGER, .into = &port, .value = "N", .max = 65535, .help = ""},
    {.name = "fast", .kind = MOON_OPTION_FLAG, .into = &fast, .help = ""},
    {.name = NULL},
};
static const struct moon_command command = {.name = "master", .operands = "", .summary = "", .options = options};

enum { WORDS = 8 };

/* Takes words that are separated by spaces; what is kept, or the message. */
static void check(const char *words, int expected_status, const char *expected) {
    char copy[256], *argv[WORDS + 1], *out[WORDS + 1], seen[512] = "";
    int argc = 0, count = 0;
    struct moon_arena arena;
    struct moon_error error = {.message = ""};
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok(copy, " "); word && argc < WORDS; word = strtok(NULL, " "))
        argv[argc++] = word;
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_master_flags_take(&arena, &command, argc, argv, out, &count, &error);
    MOON_CHECK_INT(status, expected_status);
    for (int i = 0; status == 0 && i < count; i++)
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s%s", i ? " " : "", out[i]);
    if (status == 0)
        MOON_CHECK_TEXT(seen, expected);
    else if (!strstr(error.message, expected))
        MOON_CHECK_TEXT(error.message, expected);
    moon_arena_close(&arena);
}

static void test_kept(void) {
    check("", 0, "");
    check("--port 5 --fast", 0, "--port 5 --fast");
    check("-port=5 -fast", 0, "--port=5 --fast");
    check("-port -5", 0, "--port -5");
    check("--nofast", 0, "--fast=false");
    check("--fast=false", 0, "--fast=false");
    check("--help --version x", 0, "--help --version x");
}

static void test_defaults(void) {
    check("--enable_ha=false --noenable_offload --rpc_enable_tcp_no_delay -enable_oplog=0", 0, "");
    check("--metrics_port 9003 --metrics_host=0.0.0.0 --rpc_interface=", 0, "");
    check("--nof_eviction_ratio .05 --nof_eviction_high_watermark_ratio=0.900", 0, "");
    check("--global_file_segment_size=9223372036854775807", 0, "");
}

static void test_not_implemented(void) {
    check("--enable_ha", MOON_ERR_UNSUPPORTED, "--enable_ha=true is not implemented yet");
    check("--norpc_enable_tcp_no_delay", MOON_ERR_UNSUPPORTED, "--rpc_enable_tcp_no_delay=false");
    check("--enable_ha=maybe", MOON_ERR_UNSUPPORTED, "--enable_ha=maybe");
    check("--metrics_port=9004", MOON_ERR_UNSUPPORTED, "\"9003\"");
    check("--metrics_port=9003x", MOON_ERR_UNSUPPORTED, "9003x");
    check("--metrics_port=", MOON_ERR_UNSUPPORTED, "metrics_port");
    check("-root_fs_dir /data", MOON_ERR_UNSUPPORTED, "--root_fs_dir=/data");
    check("--metrics_port", MOON_ERR_SCHEMA, "needs a value");
}

static void test_unknown(void) {
    check("--prot=5", MOON_ERR_SCHEMA, "did you mean --port?");
    check("--metric_port=5", MOON_ERR_SCHEMA, "did you mean --metrics_port?");
    check("--completely_other", MOON_ERR_SCHEMA, "unknown option --completely_other");
    check("--noport", MOON_ERR_SCHEMA, "unknown option --noport");
    check("-", MOON_ERR_SCHEMA, "unknown option --");
}

static int take(struct moon_memory *memory, const void *context) {
    char first[] = "-port=5", second[] = "--enable_ha=false", third[] = "--nofast";
    char *argv[] = {first, second, third}, *out[3];
    int count;
    struct moon_arena arena;
    (void)context;
    moon_arena_open(&arena, memory);
    int status = moon_master_flags_take(&arena, &command, 3, argv, out, &count, NULL);
    moon_arena_close(&arena);
    return status;
}

static void test_memory(void) {
    moon_unit_refuse_memory(take, NULL);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the master's own flags are kept, in one spelling", test_kept},
        {"flags that are not implemented may have their default", test_defaults},
        {"any other value of theirs is refused", test_not_implemented},
        {"a flag that nobody knows is refused with a suggestion", test_unknown},
        {"refused memory leaks nothing", test_memory},
        {NULL, NULL},
    };
    return moon_unit_main("master flags", cases, argc, argv);
}
