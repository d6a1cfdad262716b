/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck plan: what the connector looks up, puts and reads for a request, in words or as vectors have it. */
#include "conformance/cli/engine_options.h"
#include "conformance/cli/plan_question.h"
#include "conformance/cli/run_report.h"
#include "conformance/deviations.h"
#include "conformance/schema.h"
#include "conformance/suite_guess.h"
#include "conformance/suites/engine.h"
#include "conformance/suites/world.h"

#include <string.h>

static struct moon_plan_question asked; /* 0 and NULL: not asked for */
static const char *profile_name, *json, *mode = "compat";
static bool explain, as_question;

static const struct moon_option options[] = {
    MOON_CLI_PROFILE_ROW(profile_name),
    {"ask", MOON_OPTION_CHOICE, &asked.ask, "WHAT", "save|load|lookup", 0, 0,
     "what the flags ask for (default: save, all steps from the prompt to the last token)"},
    MOON_CLI_TP_ROW(asked.tp),
    MOON_CLI_PP_ROW(asked.pp),
    MOON_CLI_HEADS_ROW(asked.kv_heads),
    {"block-size", MOON_OPTION_INTEGER, &asked.block_tokens, "N", NULL, 1, MOON_PLAN_BLOCK_TOKENS_MAX,
     "tokens of a block (default: 16)"},
    MOON_CLI_LAYOUT_ROW(asked.layout),
    MOON_CLI_MODEL_ROW(asked.model),
    MOON_CLI_PREFIX_ROW(asked.prefix),
    {"role", MOON_OPTION_CHOICE, &asked.role, "ROLE", "kv_producer|kv_consumer|kv_both", 0, 0,
     "kv_role of the engine (default: kv_both)"},
    {"store-tp-size", MOON_OPTION_TEXT, &asked.store_tp, "N", NULL, 0, 0,
     "store_tp_size, any JSON value (default: not set)"},
    {"prefill-tp-sizes", MOON_OPTION_TEXT, &asked.lcm, "LIST", NULL, 0, 0,
     "prefill_tp_sizes as a JSON array such as [4,2], with enable_store_tp_lcm (default: not set)"},
    {"save-decode-cache", MOON_OPTION_FLAG, &asked.save_decode, NULL, NULL, 0, 0, "save_decode_cache is on"},
    {"prompt", MOON_OPTION_INTEGER, &asked.prompt_tokens, "N", NULL, 1, MOON_PLAN_TOKENS_MAX, "tokens of the prompt"},
    {"decode", MOON_OPTION_INTEGER, &asked.decode_tokens, "N", NULL, 1, MOON_PLAN_DECODE_MAX,
     "tokens that are generated after the first, a step each (default: 0)"},
    {"step-tokens", MOON_OPTION_INTEGER, &asked.step_tokens, "N", NULL, 1, MOON_PLAN_TOKENS_MAX,
     "tokens of the prompt in one step (default: all)"},
    {"stored", MOON_OPTION_INTEGER, &asked.stored_tokens, "N", NULL, 1, MOON_PLAN_TOKENS_MAX,
     "tokens of the prompt that the store has already, of every rank (default: 0)"},
    {"local", MOON_OPTION_INTEGER, &asked.local_tokens, "N", NULL, 1, MOON_PLAN_TOKENS_MAX,
     "tokens that the engine has cached itself (default: 0)"},
    {"delivered", MOON_OPTION_FLAG, &asked.delivered, NULL, NULL, 0, 0,
     "the prompt comes from another connector, the first step computes its last token alone"},
    {"json", MOON_OPTION_TEXT, &json, "FILE|-", NULL, 0, 0,
     "read one {\"profile\",\"given\"} object in the form of a suite, with \"suite\" where the members leave it open"},
    {"explain", MOON_OPTION_FLAG, &explain, NULL, NULL, 0, 0, "with --json, words instead of the answer"},
    {"question", MOON_OPTION_FLAG, &as_question, NULL, NULL, 0, 0,
     "print the question of the flags for --json, to go on from there"},
    MOON_CLI_MODE_ROW(mode),
    {NULL, MOON_OPTION_FLAG, NULL, NULL, NULL, 0, 0, NULL},
};

const struct moon_command moon_command_plan = {
    "plan",
    "",
    "what the connector looks up, puts and reads for a request, and why",
    "The flags describe one request of an engine with one full attention group; it is told in words what each rank "
    "checks, puts, reads or skips in each step, and by which rule. Example: mooncheck plan --tp 4 --kv-heads 8 "
    "--store-tp-size 4 --role kv_consumer --save-decode-cache --delivered --prompt 40 --decode 20.\n\n"
    "--json takes any question of the suites lookup, save, load, lookup-async and save-lcm (groups, windows, presence "
    "of "
    "keys, preemption, failures, ...), and answers in the form of their vectors.",
    options,
    0,
    0,
};

static bool has_flags(void) {
    return profile_name || asked.ask || asked.tp || asked.pp || asked.kv_heads || asked.block_tokens || asked.layout ||
           asked.model || asked.prefix || asked.role || asked.store_tp || asked.lcm || asked.save_decode ||
           asked.prompt_tokens || asked.decode_tokens || asked.step_tokens || asked.stored_tokens ||
           asked.local_tokens || asked.delivered || as_question;
}

/* What flags say that cannot be; NULL if all is well. */
static const char *flags_fault(void) {
    bool save = strcmp(asked.ask, "save") == 0;
    if (!asked.prompt_tokens)
        return "plan: needs --prompt N (or --json FILE)";
    if (!save && (asked.decode_tokens || asked.step_tokens || asked.delivered))
        return "plan: --decode, --step-tokens and --delivered go with --ask save";
    if (asked.delivered && asked.local_tokens)
        return "plan: --delivered has the whole prompt, --local has no place beside it";
    if (asked.local_tokens >= asked.prompt_tokens || asked.stored_tokens > asked.prompt_tokens)
        return "plan: --local must be below --prompt, --stored not above it";
    return NULL;
}

/* A question, and where it came from. */
struct question {
    const struct moon_suite *suite;
    const struct moon_profile *profile;
    struct moon_json *given;
    const char *source;
};

static int find_suite(struct moon_arena *arena, struct question *question, const char *name, struct moon_error *error) {
    if (!name)
        return moon_suite_guess(arena, question->source, question->given, &question->suite, error);
    for (size_t i = 0; moon_plan_suites[i]; i++)
        if (strcmp(moon_plan_suites[i], name) == 0)
            question->suite = moon_suite_find(name);
    return question->suite ? 0
                           : moon_fail(error, MOON_ERR_SCHEMA, question->source,
                                       "suite \"%.40s\" is none of: lookup, save, load, lookup-async, save-lcm", name);
}

static int check_form(struct moon_arena *arena, const struct question *question, struct moon_error *error) {
    struct moon_schema schema;
    int status = moon_schema_open(&schema, arena, question->suite->name, error);
    if (status == 0)
        status = moon_schema_check(&schema, "given", question->source, question->given, error);
    moon_schema_close(&schema);
    return status;
}

static int read_json(struct moon_arena *arena, struct question *question, struct moon_error *error) {
    const char *name = NULL;
    question->source = moon_io_source(json);
    int status = moon_cli_read_question(arena, json, &name, &question->profile, &question->given, error);
    if (status == 0)
        status = find_suite(arena, question, name, error);
    return status == 0 ? check_form(arena, question, error) : status;
}

static int make_question(struct moon_arena *arena, struct question *question, struct moon_error *error) {
    question->source = "flags";
    question->profile = moon_cli_profile(profile_name, error);
    if (!question->profile)
        return MOON_ERR_UNSUPPORTED;
    question->suite = moon_suite_find(asked.ask);
    return moon_plan_given(arena, question->profile, &asked, &question->given, error);
}

static int print_question(struct moon_arena *arena, const struct question *question) {
    struct moon_json *root = moon_json_object(arena);
    moon_json_set(arena, root, "suite", moon_json_string(arena, question->suite->name));
    moon_json_set(arena, root, "profile", moon_json_string(arena, question->profile->name));
    moon_json_set(arena, root, "given", question->given);
    return moon_cli_print_json(root);
}

static bool strict(void) {
    return strcmp(mode, "strict") == 0;
}

/* The words of the suite, and what of it is wrong in the release. */
static int explain_question(struct moon_arena *arena, const struct question *question,
                            const struct moon_profile *profile, struct moon_text *out, struct moon_error *error) {
    struct moon_deviation_notes notes = {0};
    const struct moon_json *right = NULL;
    int status = question->suite->explain(moon_suite_world_system(), arena, profile, question->source, question->given,
                                          out, error);
    if (status == 0 && !strict())
        status = moon_deviations_of_case(arena, question->suite, profile, question->given, &notes, &right, error);
    for (int i = 0; i < MOON_DEVIATION_COUNT && status == 0; i++)
        if (moon_deviation_noted(&notes, (enum moon_deviation)i))
            moon_text_format(out, "wrong here: %s %s (--mode strict shows what is right)\n",
                             moon_deviation_edge((enum moon_deviation)i), moon_deviation_text((enum moon_deviation)i));
    return status;
}

static int answer(struct moon_arena *arena, const struct question *question, struct moon_text *out) {
    const struct moon_suite_world *world = moon_suite_world_system();
    struct moon_profile profile = *question->profile;
    struct moon_json *result = NULL;
    struct moon_error error;
    if (strict())
        moon_profile_strict(question->profile, &profile);
    if (explain || !json)
        return explain_question(arena, question, &profile, out, &error) == 0 ? moon_cli_print(out)
                                                                             : moon_cli_fail(&error);
    if (question->suite->answer(world, arena, &profile, question->source, question->given, &result, &error) != 0)
        return moon_cli_fail(&error);
    return moon_cli_print_json(result);
}

int moon_cli_plan(const char *const operands[], int count) {
    (void)operands; /* takes none */
    (void)count;
    struct question question = {0};
    struct moon_arena arena;
    struct moon_text out;
    struct moon_error error;
    if (json && has_flags())
        return moon_cli_complain("plan: --json holds the whole question, only --explain and --mode go with it");
    asked.ask = asked.ask ? asked.ask : "save";
    const char *fault = json ? NULL : flags_fault();
    if (fault)
        return moon_cli_complain("%s", fault);
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&out, moon_memory_heap());
    int exit_status;
    if ((json ? read_json(&arena, &question, &error) : make_question(&arena, &question, &error)) != 0)
        exit_status = moon_cli_fail(&error);
    else
        exit_status = as_question ? print_question(&arena, &question) : answer(&arena, &question, &out);
    moon_text_close(&out);
    moon_arena_close(&arena);
    return exit_status;
}
