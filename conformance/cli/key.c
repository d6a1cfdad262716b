/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck key: the key of a block, from flags or a vector's `given`, and keys read back. */
#include "conformance/cli/cli.h"
#include "conformance/cli/engine_options.h"

#include "ref/key/explain.h"

#include <string.h>

static struct {
    const char *profile, *model, *prefix, *space, *hash, *parse, *json;
    int64_t tp_rank, pcp_rank, dcp_rank, pp_rank, group;
    bool explain;
} asked = {.tp_rank = -1, .pcp_rank = -1, .dcp_rank = -1, .pp_rank = -1, .group = -1}; /* -1 and NULL: not asked for */

#define NUMBER_MAX (INT64_C(1) << 53)

static const struct moon_option options[] = {
    {"profile", MOON_OPTION_TEXT, &asked.profile, "NAME", NULL, 0, 0,
     "vLLM release, as vllm-0.30 or 0.30.0 (default: the newest; with --parse: every one)"},
    MOON_CLI_MODEL_ROW(asked.model),
    MOON_CLI_PREFIX_ROW(asked.prefix),
    {"tp-rank", MOON_OPTION_INTEGER, &asked.tp_rank, "N", NULL, 0, NUMBER_MAX,
     "TP rank divided by the replication factor, or the store shard (default: 0)"},
    {"pcp", MOON_OPTION_INTEGER, &asked.pcp_rank, "N", NULL, 0, NUMBER_MAX,
     "prefill context parallel rank (default: 0)"},
    {"dcp", MOON_OPTION_INTEGER, &asked.dcp_rank, "N", NULL, 0, NUMBER_MAX,
     "decode context parallel rank (default: 0)"},
    {"pp-rank", MOON_OPTION_INTEGER, &asked.pp_rank, "N", NULL, 0, NUMBER_MAX, "pipeline rank (default: 0)"},
    {"group", MOON_OPTION_INTEGER, &asked.group, "N", NULL, 0, NUMBER_MAX, "KV cache group (default: 0)"},
    {"namespace", MOON_OPTION_TEXT, &asked.space, "TEXT", NULL, 0, 0,
     "store namespace, as `mooncheck layout` shows it (default: none)"},
    {"hash", MOON_OPTION_TEXT, &asked.hash, "HEX", NULL, 0, 0, "block hash, as `mooncheck hash` shows it"},
    {"parse", MOON_OPTION_TEXT, &asked.parse, "KEY", NULL, 0, 0, "read a key back: every identity that gives it"},
    {"json", MOON_OPTION_TEXT, &asked.json, "FILE|-", NULL, 0, 0,
     "answer one {\"profile\",\"given\"} object in the form of the suite keys"},
    {"explain", MOON_OPTION_FLAG, &asked.explain, NULL, NULL, 0, 0,
     "show each part with its rule and the releases that have it"},
    {NULL, MOON_OPTION_FLAG, NULL, NULL, NULL, 0, 0, NULL},
};

const struct moon_command moon_command_key = {
    "key",
    "",
    "the store key of a block, or a key taken apart",
    "Builds the key that a release of vLLM gives to one block of one rank. With --parse takes a key apart instead: "
    "nothing "
    "in a key is escaped, so every identity that gives it is shown, with the releases that could have written it.",
    options,
    0,
    0,
};

static int parse_key(struct moon_text *out) {
    struct moon_key_readings readings;
    struct moon_error error;
    const struct moon_profile *profile = asked.profile ? moon_profile_find(asked.profile, &error) : NULL;
    if (asked.profile && !profile)
        return moon_cli_fail(&error);
    if (moon_key_parse(profile, moon_key_text(asked.parse), &readings, &error) != 0)
        return moon_cli_fail(&error);
    moon_key_explain_readings(&readings, out);
    return moon_cli_print(out);
}

/* True if any flag describes a key to build. */
static bool describes_key(void) {
    return asked.model || asked.prefix || asked.space || asked.hash || asked.tp_rank >= 0 || asked.pcp_rank >= 0 ||
           asked.dcp_rank >= 0 || asked.pp_rank >= 0 || asked.group >= 0;
}

static struct moon_key_text text_or(const char *text, const char *otherwise) {
    return moon_key_text(text ? text : otherwise);
}

static int64_t number_or_0(int64_t number) {
    return number >= 0 ? number : 0;
}

static int build_key(struct moon_text *out) {
    struct moon_error error;
    const struct moon_profile *profile = moon_cli_profile(asked.profile, &error);
    if (!asked.hash)
        return moon_cli_complain("--hash is needed (or --parse, or --json)");
    if (!profile)
        return moon_cli_fail(&error);
    const struct moon_pool_key key = {
        .cache_prefix = text_or(asked.prefix, ""),
        .model_name = moon_model_name(text_or(asked.model, "model")),
        .store_namespace = text_or(asked.space, ""),
        .tp_rank = number_or_0(asked.tp_rank),
        .pcp_rank = number_or_0(asked.pcp_rank),
        .dcp_rank = number_or_0(asked.dcp_rank),
        .pp_rank = number_or_0(asked.pp_rank),
        .group_id = number_or_0(asked.group),
    };
    if (asked.explain) {
        moon_key_explain(profile, &key, moon_key_text(asked.hash), out);
    } else {
        moon_key_build(profile, &key, moon_key_text(asked.hash), out);
        moon_text_char(out, '\n');
    }
    return moon_cli_print(out);
}

int moon_cli_key(const char *const operands[], int count) {
    (void)operands; /* takes none */
    (void)count;
    struct moon_text out;
    if (asked.json && (asked.parse || asked.profile || describes_key()))
        return moon_cli_complain("--json holds the whole question, only --explain goes with it");
    if (asked.parse && describes_key())
        return moon_cli_complain("--parse reads a key, it goes with --profile only");
    if (asked.json)
        return moon_cli_answer("keys", asked.json, asked.explain);
    moon_text_open(&out, moon_memory_heap());
    int exit_status = asked.parse ? parse_key(&out) : build_key(&out);
    moon_text_close(&out);
    return exit_status;
}
