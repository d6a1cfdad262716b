/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck layout: which store layout an engine chooses and why, who puts which key, and what a lookup asks for. */
#include "conformance/cli/cli.h"
#include "conformance/cli/engine_options.h"

#include "conformance/suites/layout.h"
#include "conformance/suites/world.h"

#include <string.h>

static struct {
    const char *profile, *layout, *model, *json, *store_tp;
    int64_t tp, pp, kv_heads, rank, content_bytes;
    bool explain;
} asked = {.rank = -1, .content_bytes = 1}; /* 0 and NULL: not asked for */

#define CONTENT_BYTES_MAX (INT64_C(1) << 24)

static const struct moon_option options[] = {
    MOON_CLI_PROFILE_ROW(asked.profile),
    MOON_CLI_TP_ROW(asked.tp),
    MOON_CLI_PP_ROW(asked.pp),
    MOON_CLI_HEADS_ROW(asked.kv_heads),
    {"store-tp", MOON_OPTION_TEXT, &asked.store_tp, "N", NULL, 0, 0,
     "store_tp_size, any JSON value (default: not set)"},
    MOON_CLI_LAYOUT_ROW(asked.layout),
    MOON_CLI_MODEL_ROW(asked.model),
    {"rank", MOON_OPTION_INTEGER, &asked.rank, "N", NULL, 0, MOON_ENGINE_WORLD_MAX - 1,
     "explain this worker only (implies --explain)"},
    {"content-bytes", MOON_OPTION_INTEGER, &asked.content_bytes, "N", NULL, 1, CONTENT_BYTES_MAX,
     "bytes of K and V of one head and token, for offsets of shards in bytes (implies --explain)"},
    {"json", MOON_OPTION_TEXT, &asked.json, "FILE|-", NULL, 0, 0,
     "read one {\"profile\",\"given\"} object in the form of the suite layout instead of the flags"},
    {"explain", MOON_OPTION_FLAG, &asked.explain, NULL, NULL, 0, 0,
     "show the decision, namespaces, shards and puts with rule and release"},
    {NULL, MOON_OPTION_FLAG, NULL, NULL, NULL, 0, 0, NULL},
};

const struct moon_command moon_command_layout = {
    "layout",
    "",
    "store layout, shards, ownership and lookup namespaces of an engine",
    "Answers in the form of the suite layout. One prompt is saved by every rank into an empty store. What the flags "
    "cannot say "
    "(several KV cache groups, context parallelism, LCM lists) goes into --json.",
    options,
    0,
    0,
};

static void set_size(struct moon_arena *arena, struct moon_json *object, const char *name, int64_t size) {
    if (size)
        moon_json_set(arena, object, name, moon_json_int(arena, size));
}

static void set_text(struct moon_arena *arena, struct moon_json *object, const char *name, const char *text) {
    if (text)
        moon_json_set(arena, object, name, moon_json_string(arena, text));
}

/* `given` as the flags say it; the suite knows the defaults of the rest. `store_tp` is read as JSON, so that "4" with
 * quotes can be told from 4. */
static int given_from_flags(struct moon_arena *arena, struct moon_json **out, struct moon_error *error) {
    struct moon_json *given = moon_json_object(arena), *store_tp = NULL;
    struct moon_json *topology = moon_json_set(arena, given, "topology", moon_json_object(arena));
    set_size(arena, topology, "tp", asked.tp);
    set_size(arena, topology, "pp", asked.pp);
    set_size(arena, given, "total_kv_heads", asked.kv_heads);
    set_text(arena, given, "kv_cache_layout", asked.layout);
    set_text(arena, given, "model", asked.model);
    *out = given;
    if (asked.store_tp) {
        int status = moon_json_read(arena, "--store-tp", asked.store_tp, strlen(asked.store_tp), MOON_JSON_STRICT,
                                    &store_tp, error);
        if (status)
            return status;
        struct moon_json *extra = moon_json_set(arena, given, "extra_config", moon_json_object(arena));
        moon_json_set(arena, extra, "store_tp_size", store_tp);
    }
    return moon_json_broken(given) ? moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory") : 0;
}

/* Reads the question from --json or the flags. */
static int read_question(struct moon_arena *arena, const char **source, const struct moon_profile **profile,
                         struct moon_json **given, struct moon_error *error) {
    *source = asked.json ? moon_io_source(asked.json) : "flags";
    if (asked.json)
        return moon_cli_read_question(arena, asked.json, NULL, profile, given, error);
    int status = given_from_flags(arena, given, error);
    if (status)
        return status;
    *profile = moon_cli_profile(asked.profile, error);
    return *profile ? 0 : error->status;
}

static int answer_question(struct moon_arena *arena, struct moon_text *out) {
    const struct moon_profile *profile = NULL;
    struct moon_json *given = NULL, *answer = NULL;
    struct moon_error error;
    const char *source;
    const struct moon_layout_view view = {asked.rank, asked.content_bytes};
    if (read_question(arena, &source, &profile, &given, &error) != 0)
        return moon_cli_fail(&error);
    if (asked.explain || asked.rank >= 0 || asked.content_bytes > 1)
        return moon_layout_explain(arena, profile, source, given, &view, out, &error) == 0 ? moon_cli_print(out)
                                                                                           : moon_cli_fail(&error);
    if (moon_suite_layout.answer(moon_suite_world_system(), arena, profile, source, given, &answer, &error) != 0)
        return moon_cli_fail(&error);
    return moon_cli_print_json(answer);
}

int moon_cli_layout(const char *const operands[], int count) {
    (void)operands; /* takes none */
    (void)count;
    struct moon_arena arena;
    struct moon_text out;
    if (asked.json &&
        (asked.profile || asked.tp || asked.pp || asked.kv_heads || asked.store_tp || asked.layout || asked.model))
        return moon_cli_complain(
            "--json holds the whole question, only --rank, --content-bytes and --explain go with it");
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&out, moon_memory_heap());
    int exit_status = answer_question(&arena, &out);
    moon_text_close(&out);
    moon_arena_close(&arena);
    return exit_status;
}
