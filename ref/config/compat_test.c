/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of compat: each reason fires where it should, states agree with the real keys, bad descriptions are refused in
 * place. */
#include "ref/config/compat.h"

#include "ref/base/random.h"
#include "ref/base/unit.h"
#include "ref/config/compat_engine.h"
#include "ref/config/compat_hash.h"
#include "ref/layout/lookup.h"
#include "ref/layout/reach.h"

#include "ref/config/compat_cases.inc"

/* One comparison, closed by the caller. */
struct run {
    struct moon_arena arena;
    struct moon_compat_report *report;
    struct moon_error error;
    int status;
};

/* A description: usual members, then `more`, which may name them again. */
static struct moon_json *read_side(struct run *run, const char *source, const char *more) {
    char *text =
        moon_arena_format(&run->arena, "{\"profile\":\"vllm-0.33\",\"model\":\"org/foo\",\"kv\":{\"heads\":8}%s%s}",
                          more[0] ? "," : "", more);
    struct moon_json *document = NULL;
    int status = text
                     ? moon_json_read(&run->arena, source, text, strlen(text), MOON_JSON_PYTHON, &document, &run->error)
                     : MOON_ERR_MEMORY;
    if (status == MOON_ERR_SYNTAX)
        fprintf(stderr, "test description is broken: %s %s\n", run->error.where, run->error.message);
    return document;
}

static struct run compare_in(struct moon_memory *memory, const char *a, const char *b) {
    struct run run = {.status = MOON_ERR_MEMORY};
    moon_arena_open(&run.arena, memory);
    const struct moon_compat_input inputs[2] = {{.source = "a.json", .document = read_side(&run, "a.json", a)},
                                                {.source = "b.json", .document = read_side(&run, "b.json", b)}};
    if (inputs[0].document && inputs[1].document)
        run.status = moon_compat_compare(&run.arena, inputs, &run.report, &run.error);
    return run;
}

static struct run compare(const char *a, const char *b) {
    struct run run = compare_in(moon_memory_heap(), a, b);
    if (run.status)
        fprintf(stderr, "%s: %s\n", run.error.where, run.error.message);
    CU_ASSERT_EQUAL_FATAL(run.status, 0);
    return run;
}

static const struct moon_compat_finding *find(const struct run *run, enum moon_compat_effect effect,
                                              enum moon_compat_subject subject) {
    for (const struct moon_compat_finding *each = run->report->findings; each; each = each->next)
        if (each->effect == effect && each->subject == subject)
            return each;
    return NULL;
}

static void show(const struct run *run) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_compat_write(run->report, &text);
    fprintf(stderr, "%s\n", moon_text_value(&text));
    moon_text_close(&text);
}

/* ---- each reason ---- */

#define GROUPS(...)   "\"kv\":{\"heads\":8,\"groups\":[" __VA_ARGS__ "]}"
#define SLIDING(more) "{\"kind\":\"sliding_window\",\"sliding_window\":64" more "}"
#define FULL          "{\"kind\":\"full\"}"
#define SEED          "\"hash\":{\"seed\":\"0\"}"
#define OLD(minor)    "\"profile\":\"vllm-0." #minor "\"," SEED
#define STORE(more)   "\"mooncake\":{\"master_server_address\":\"m:1\"" more "}"
#define TP(tp)        "\"parallel\":{\"tp\":" #tp "}"
#define EXTRA(more)   "\"extra_config\":{" more "}"

/* What two descriptions must come to. `first` is the subject of the first reason; COUNT: there is none. */
struct expectation {
    const char *sentence, *a, *b;
    enum moon_compat_verdict verdict;
    enum moon_compat_state states[2];
    enum moon_compat_effect effect;
    enum moon_compat_subject subject;
    unsigned directions;
};
#define FULLY  MOON_COMPAT_FULLY
#define PARTLY MOON_COMPAT_PARTLY
#define NOT    MOON_COMPAT_NOT
#define DANGER MOON_COMPAT_DANGER
#define IDLE   MOON_COMPAT_IDLE
#define NONE   MOON_COMPAT_NONE
#define SOME   MOON_COMPAT_SOME
#define ALL    MOON_COMPAT_ALL
enum { A_B = MOON_COMPAT_A_TO_B, B_A = MOON_COMPAT_B_TO_A, BOTH = MOON_COMPAT_BOTH_WAYS };
#define BLOCKS   MOON_COMPAT_BLOCKS
#define LIMITS   MOON_COMPAT_LIMITS
#define ENDANGER MOON_COMPAT_ENDANGERS
#define WARNS    MOON_COMPAT_WARNS
#define NOTES    MOON_COMPAT_NOTES
#define IDLES    MOON_COMPAT_IDLES

static const struct expectation expectations[] = {
#include "ref/config/compat_expectations.inc"
};

static void check_expectation(const struct expectation *want) {
    struct run run = compare(want->a, want->b);
    const struct moon_compat_finding *finding = find(&run, want->effect, want->subject);
    bool found = want->subject == MOON_COMPAT_SUBJECT_COUNT ||
                 (finding && (finding->directions & want->directions) == want->directions);
    bool right = run.report->verdict == want->verdict && found;
    for (int way = 0; way < 2; way++)
        right &= run.report->directions[way].state == want->states[way];
    if (!right) {
        fprintf(stderr, "\"%s\": expected %s, %s and %s, %s (%s) in directions %u; seen:\n", want->sentence,
                moon_compat_verdict_name(want->verdict), moon_compat_state_name(want->states[0]),
                moon_compat_state_name(want->states[1]), moon_compat_effect_name(want->effect),
                want->subject < MOON_COMPAT_SUBJECT_COUNT ? moon_compat_subject_name(want->subject) : "any",
                want->directions);
        show(&run);
    }
    CU_ASSERT(right);
    CU_ASSERT((run.report->first == NULL) == (run.report->verdict == MOON_COMPAT_FULLY));
    moon_arena_close(&run.arena);
}

static void every_reason_fires_where_it_should(void) {
    bool told[MOON_COMPAT_SUBJECT_COUNT + 1] = {false};
    for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; i++) {
        check_expectation(&expectations[i]);
        told[expectations[i].subject] = true;
    }
    for (int subject = 0; subject < MOON_COMPAT_SUBJECT_COUNT; subject++) {
        if (!told[subject])
            fprintf(stderr, "no case for %s\n", moon_compat_subject_name((enum moon_compat_subject)subject));
        CU_ASSERT(told[subject]);
    }
}

/* ---- order, texts ---- */

static void all_reasons_are_listed_in_their_order(void) {
    struct run run =
        compare("\"mooncake\":{\"master_server_address\":\"m:1\",\"tenant_id\":\"a\"},\"hash\":{\"seed\":\"1\"}",
                "\"mooncake\":{\"master_server_address\":\"m:2\"},\"model\":\"bar\"," TP(2));
    static const enum moon_compat_subject order[] = {MOON_COMPAT_MASTER, MOON_COMPAT_TENANT, MOON_COMPAT_NONE_HASH,
                                                     MOON_COMPAT_MODEL, MOON_COMPAT_RANKS};
    const struct moon_compat_finding *each = run.report->findings;
    CU_ASSERT_PTR_EQUAL(run.report->first, each);
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++, each = each ? each->next : NULL)
        MOON_CHECK_TEXT(each ? moon_compat_subject_name(each->subject) : "nothing", moon_compat_subject_name(order[i]));
    CU_ASSERT_PTR_NULL(each);
    moon_arena_close(&run.arena);
}

static void danger_is_told_before_reasons(void) {
    struct run run = compare(TP(1), TP(2));
    MOON_CHECK_INT(run.report->findings->effect, MOON_COMPAT_ENDANGERS);
    MOON_CHECK_TEXT(
        run.report->findings->text,
        "one key, different bytes: under \"@tp_rank:0\" A holds all of the heads, B holds part 1 of 2 of the heads");
    CU_ASSERT_PTR_NOT_NULL_FATAL(run.report->same_key);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.report->same_key, "foo@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(run.report->directions[0].missing_key);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.report->directions[0].missing_key, "foo@tp_rank:1@"));
    moon_arena_close(&run.arena);
}

static void two_sides_that_store_complete_each_others_blocks(void) {
    struct run run =
        compare(TP(2), "\"parallel\":{\"pp\":2}"); /* neither finds the other's, both store rank 0 of stage 0 */
    MOON_CHECK_INT(run.report->verdict, MOON_COMPAT_DANGER);
    MOON_CHECK_INT(run.report->directions[0].state, MOON_COMPAT_NONE);
    MOON_CHECK_INT(run.report->directions[1].state, MOON_COMPAT_NONE);
    MOON_CHECK_TEXT(
        run.report->first->text,
        "one key, different bytes: under \"@tp_rank:0\" A holds part 1 of 2 of the heads, layers of stage 1 of 1, B "
        "holds all of the heads, layers of stage 1 of 2; a save skips keys that exist, so each fills what the other "
        "left out");
    moon_arena_close(&run.arena);
}

static void context_ranks_are_told(void) {
    struct run run = compare("\"parallel\":{\"tp\":2,\"dcp\":2,\"pcp\":2},\"kv\":{\"heads\":1,\"block_size\":8}",
                             "\"kv\":{\"heads\":1}");
    MOON_CHECK_INT(run.report->verdict, MOON_COMPAT_DANGER);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(run.report->first->text, ", tokens of PCP rank 1 of 2, tokens of DCP rank 1 of 2, B holds"));
    moon_arena_close(&run.arena);
}

static void names_of_the_sides_are_used(void) {
    struct run run = compare("\"name\":\"east\"," TP(1), "\"name\":\"we\\u0007st\",\"kv_role\":\"kv_consumer\"," TP(2));
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_compat_write(run.report, &text);
    CU_ASSERT(strncmp(moon_text_value(&text),
                      "east and we?st: share nothing\nfirst reason: we?st asks for \"@tp_rank:1", 66) == 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&text), "\n  2. not (ranks, east to we?st): "));
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&text), "\n  we?st stores, east finds: idle\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&text),
                                  "\n     rule: COMPAT-017; guide G27, G29; resembles vllm-project/vllm PR #46855\n"));
    moon_text_close(&text);
    moon_arena_close(&run.arena);
    run = compare("\"name\":\"x\"", "\"name\":\"x\"");
    MOON_CHECK_TEXT(run.report->sides[0].name, "A");
    MOON_CHECK_TEXT(run.report->sides[1].name, "B");
    moon_arena_close(&run.arena);
}

static void a_partly_shared_direction_says_what_is_short(void) {
    struct run run = compare(OLD(29) "," GROUPS(FULL "," SLIDING("")), OLD(28) "," GROUPS(FULL "," SLIDING("")));
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_compat_write(run.report, &text);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(moon_text_value(&text), "7 of 8 prefixes are short, the first of 16 tokens: finds 0 instead of 16\n"));
    moon_text_clear(&text);
    run.report->directions[0].prompts = 0;
    moon_json_write(moon_compat_json(&run.arena, run.report), MOON_JSON_COMPACT, &text);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(moon_text_value(&text),
               "\"longest\":null,\"first_short\":{\"prompt_tokens\":16,\"found_tokens\":0,\"own_tokens\":16}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&text), "\"directions\":[\"a_to_b\"]"));
    moon_text_close(&text);
    moon_arena_close(&run.arena);
    run = compare("\"profile\":\"vllm-0.30\"", "");
    moon_text_open(&text, moon_memory_heap());
    moon_compat_write(run.report, &text);
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&text), "    requests: text fully; lora, mm, salt, embeds not\n"));
    moon_text_close(&text);
    moon_arena_close(&run.arena);
}

static void a_side_that_does_not_start_has_no_numbers(void) {
    struct run run =
        compare(EXTRA("\"load_async\":0") ",\"parallel\":{\"tp\":3,\"dcp\":2}", "\"hash\":{\"algo\":\"xxhash\"}");
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_compat_write(run.report, &text);
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&text), "\n  A: vllm-0.33, does not store, does not load\n"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(moon_text_value(&text),
               "\n  B: vllm-0.33, hash block 16, scheduler block 16 tokens, stores, loads, random hashes\n"));
    MOON_CHECK_TEXT(run.report->first->requirement, "COMPAT-027");
    moon_text_close(&text);
    moon_arena_close(&run.arena);
}

/* ---- the file that "mooncake" names; releases given instead ---- */

static struct run compare_files(const char *more, const char *config, const char *release) {
    struct run run = {0};
    moon_arena_open(&run.arena, moon_memory_heap());
    struct moon_compat_input inputs[2];
    for (int side = 0; side < 2; side++)
        inputs[side] = (struct moon_compat_input){.source = "x.json",
                                                  .document = read_side(&run, "x.json", more),
                                                  .config = config,
                                                  .config_length = strlen(config),
                                                  .release = side ? release : NULL};
    run.status = moon_compat_compare(&run.arena, inputs, &run.report, &run.error);
    return run;
}

static void a_configuration_file_is_read_as_the_release_reads_it(void) {
    struct run run = compare_files("\"mooncake\":\"c.json\"", "{\"master_server_address\":\"m:1\"}", NULL);
    MOON_CHECK_INT(run.report->verdict, MOON_COMPAT_FULLY);
    moon_arena_close(&run.arena);
    run = compare_files("\"mooncake\":\"c.json\"", "{", NULL);
    MOON_CHECK_INT(run.report->verdict, MOON_COMPAT_NOT);
    CU_ASSERT_PTR_NOT_NULL(
        strstr(run.report->first->text, "A does not start with vLLM 0.33.0: the configuration file: JSONDecodeError"));
    moon_arena_close(&run.arena);
    run = compare_files("\"mooncake\":\"c.json\"", "{\"master_server_address\":7}", NULL);
    MOON_CHECK_INT(run.report->verdict, MOON_COMPAT_FULLY);
    moon_arena_close(&run.arena);
    char deep[512];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    run = compare_files("\"mooncake\":\"c.json\"", deep, NULL);
    MOON_CHECK_INT(run.status, MOON_ERR_LIMIT);
    moon_arena_close(&run.arena);
}

static void another_release_can_be_asked_about(void) {
    struct run run = compare_files("\"mooncake\":\"c.json\"", "{}", "0.30");
    MOON_CHECK_INT(run.report->verdict, MOON_COMPAT_PARTLY);
    MOON_CHECK_TEXT(run.report->sides[1].release, "vllm-0.30");
    moon_arena_close(&run.arena);
    run = compare_files("\"mooncake\":\"c.json\"", "{}", "0.99");
    MOON_CHECK_INT(run.status, MOON_ERR_UNSUPPORTED);
    moon_arena_close(&run.arena);
}

static void a_path_to_a_configuration_is_told(void) {
    struct run run = {0};
    moon_arena_open(&run.arena, moon_memory_heap());
    MOON_CHECK_TEXT(moon_compat_config_path(read_side(&run, "x", "\"mooncake\":\"a/b.json\"")), "a/b.json");
    CU_ASSERT_PTR_NULL(moon_compat_config_path(read_side(&run, "x", "\"mooncake\":\"a\\u0000b\"")));
    CU_ASSERT_PTR_NULL(moon_compat_config_path(read_side(&run, "x", "\"mooncake\":{}")));
    CU_ASSERT_PTR_NULL(moon_compat_config_path(read_side(&run, "x", "")));
    CU_ASSERT_PTR_NULL(moon_compat_config_path(moon_json_null(&run.arena)));
    moon_arena_close(&run.arena);
}

/* ---- bad descriptions ---- */

struct bad {
    const char *more, *where, *message;
    int status;
};

static const struct bad bads[] = {
    {"\"profil\":1", "b.json:1:68 $.profil", "unknown member \"profil\"; did you mean \"profile\"?", MOON_ERR_SCHEMA},
    {"\"profile\":\"vllm-0.99\"", "$.profile", "no profile \"vllm-0.99\"", MOON_ERR_UNSUPPORTED},
    {"\"profile\":7", "$.profile", "\"profile\" must be a string", MOON_ERR_SCHEMA},
    {"\"model\":null", "$.model", "\"model\" must be a string", MOON_ERR_SCHEMA},
    {"\"parallel\":{\"tp\":0}", "$.parallel.tp", "must be within 1 and 1024", MOON_ERR_RANGE},
    {"\"parallel\":{\"xp\":1}", "$.parallel.xp", "unknown member", MOON_ERR_SCHEMA},
    {"\"parallel\":{\"tp\":1024,\"pp\":5}", "$.parallel", "more than 4096 ranks", MOON_ERR_LIMIT},
    {"\"kv\":{}", "$.kv", "the member \"heads\" is missing", MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"layout\":\"NHD\"}", "$.kv.layout", "LBHNC", MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"groups\":[]}", "$.kv.groups", "holds 1 to 16 groups", MOON_ERR_LIMIT},
    {"\"kv\":{\"heads\":8,\"groups\":[{\"kind\":\"odd\"}]}", "$.kv.groups[0].kind", "must be full, full_with_window",
     MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"groups\":[{\"kind\":\"sliding_window\"}]}", "$.kv.groups[0]",
     "\"sliding_window\" is missing", MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"groups\":[{\"kind\":\"mla\",\"sliding_window\":4}]}", "$.kv.groups[0].sliding_window",
     "belongs to kinds with a window", MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"groups\":[{\"kind\":\"uniform\"}]}", "$.kv.groups[0]", "\"inner\" is missing",
     MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"groups\":[{\"kind\":\"uniform\",\"inner\":[]}]}", "$.kv.groups[0].inner",
     "holds 1 to 16 layers", MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"groups\":[{\"kind\":\"full\",\"inner\":[{\"kind\":\"full\"}]}]}", "$.kv.groups[0].inner",
     "belongs to kind uniform", MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"groups\":[{\"kind\":\"uniform\",\"inner\":[{\"kind\":\"mamba\"}]}]}",
     "$.kv.groups[0].inner[0].kind", "of a layer must be", MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"groups\":[{\"kind\":\"uniform\",\"inner\":[{\"kind\":\"full_with_window\"}]}]}",
     "$.kv.groups[0].inner[0].kind", "of a layer must be", MOON_ERR_SCHEMA},
    {"\"kv\":{\"heads\":8,\"groups\":[{\"kind\":\"uniform\",\"inner\":[{\"kind\":\"no\"}]}]}",
     "$.kv.groups[0].inner[0].kind", "of a layer must be", MOON_ERR_SCHEMA},
    {"\"profile\":\"vllm-0.23\",\"kv\":{\"heads\":8,\"retention_interval\":0}", "$.kv.retention_interval",
     "no retention interval", MOON_ERR_UNSUPPORTED},
    {"\"kv\":{\"heads\":8,\"retention_interval\":-1}", "$.kv.retention_interval", "must be within", MOON_ERR_RANGE},
    {"\"hash\":{\"algo\":\"md5\"}", "$.hash.algo", "md5", MOON_ERR_SCHEMA},
    {"\"hash\":{\"seed\":7}", "$.hash.seed", "must be a string", MOON_ERR_SCHEMA},
    {"\"hash\":{\"seed\":\"\\u0000\"}", "$.hash.seed", "NUL", MOON_ERR_SCHEMA},
    {"\"hash\":{\"seed\":\"1\"},\"env\":{\"PYTHONHASHSEED\":\"2\"}", "$.hash.seed", "differ", MOON_ERR_SCHEMA},
    {"\"env\":{\"A\":1}", "$.env.A", "a string without NUL", MOON_ERR_SCHEMA},
    {"\"env\":{\"A\":\"\\u0000\"}", "$.env.A", "a string without NUL", MOON_ERR_SCHEMA},
    {"\"kv_role\":\"kv_all\"", "$.kv_role", "kv_producer, kv_consumer or kv_both", MOON_ERR_SCHEMA},
    {"\"mooncake\":[]", "$.mooncake", "must be an object", MOON_ERR_SCHEMA},
    {"\"master\":{\"enable_multi_tenants\":1}", "$.master.enable_multi_tenants", "true or false", MOON_ERR_SCHEMA},
    {"\"master\":{\"enable_multi_tenants\":false}", "b.json", "disagree about its enable_multi_tenants",
     MOON_ERR_SCHEMA},
    {"\"request\":{\"tokens\":[1,-1]}", "$.request.tokens[1]", "0 to 2147483647", MOON_ERR_RANGE},
    {"\"request\":{\"tokens\":[2147483648]}", "$.request.tokens[0]", "0 to 2147483647", MOON_ERR_RANGE},
    {"\"request\":{\"tokens\":[99999999999999999999]}", "$.request.tokens[0]", "0 to 2147483647", MOON_ERR_RANGE},
    {"\"request\":{\"tokens\":[1.5]}", "$.request.tokens[0]", "0 to 2147483647", MOON_ERR_RANGE},
    {"\"request\":{\"lora\":{}}", "$.request.lora", "\"name\" is missing", MOON_ERR_SCHEMA},
    {"\"request\":{\"mm_features\":[{\"identifier\":\"i\",\"offset\":5,\"length\":1},{\"identifier\":\"i\",\"offset\":"
     "4,\"length\":1}]}",
     "$.request.mm_features[1]", "sorted by offset", MOON_ERR_RANGE},
    {"\"request\":{\"mm_features\":[{\"identifier\":\"i\",\"offset\":5,\"length\":0}]}",
     "$.request.mm_features[0].length", "must be within", MOON_ERR_RANGE},
};

static void bad_descriptions_are_refused_in_place(void) {
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
        struct run run = compare_in(moon_memory_heap(), "", bads[i].more);
        bool right = run.status == bads[i].status && strstr(run.error.where, bads[i].where) &&
                     strstr(run.error.message, bads[i].message);
        if (!right)
            fprintf(stderr, "%s\n  expected %d %s: %s\n  seen     %d %s: %s\n", bads[i].more, bads[i].status,
                    bads[i].where, bads[i].message, run.status, run.error.where, run.error.message);
        CU_ASSERT(right);
        moon_arena_close(&run.arena);
    }
}

/* A description with a list of `count` equal elements. */
static int compare_list(const char *before, const char *element, size_t count, const char *after) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, before);
    for (size_t i = 0; i < count; i++)
        moon_text_format(&text, "%s%s", i ? "," : "", element);
    moon_text_string(&text, after);
    struct run run = compare_in(moon_memory_heap(), moon_text_value(&text), "");
    moon_arena_close(&run.arena);
    moon_text_close(&text);
    return run.status;
}

static void lists_that_are_too_long_are_refused(void) {
    MOON_CHECK_INT(compare_list("\"kv\":{\"heads\":1,\"groups\":[", FULL, 16, "]}"), 0);
    MOON_CHECK_INT(compare_list("\"kv\":{\"heads\":1,\"groups\":[", FULL, 17, "]}"), MOON_ERR_LIMIT);
    MOON_CHECK_INT(compare_list("\"request\":{\"tokens\":[", "1", (1 << 20) + 1, "]}"), MOON_ERR_LIMIT);
    MOON_CHECK_INT(
        compare_list("\"request\":{\"mm_features\":[", "{\"identifier\":\"i\",\"offset\":0,\"length\":1}", 1025, "]}"),
        MOON_ERR_LIMIT);
}

static void deployments_that_are_too_large_are_refused(void) {
    struct run run = compare_in(moon_memory_heap(), "",
                                "\"parallel\":{\"tp\":1024,\"dcp\":1024},\"kv\":{\"heads\":1,\"groups\":[" FULL "," FULL
                                "," FULL "," FULL "," FULL "]}");
    MOON_CHECK_INT(run.status, MOON_ERR_LIMIT);
    moon_arena_close(&run.arena);
    run = compare_in(moon_memory_heap(), "",
                     "\"parallel\":{\"tp\":1024,\"pp\":4},\"kv\":{\"heads\":1024,\"groups\":[" FULL
                     ",{\"kind\":\"sliding_window\",\"sliding_window\":100000}]}");
    MOON_CHECK_INT(run.status, MOON_ERR_LIMIT);
    moon_arena_close(&run.arena);
    run = compare_in(moon_memory_heap(),
                     "\"kv\":{\"heads\":1,\"groups\":[" FULL ",{\"kind\":\"full\",\"block_size\":65520}]}",
                     "\"kv\":{\"heads\":1,\"groups\":[" FULL ",{\"kind\":\"full\",\"block_size\":65536}]}");
    MOON_CHECK_INT(run.status, MOON_ERR_LIMIT);
    moon_arena_close(&run.arena);
}

static void hashes_that_the_release_refuses_are_an_error(void) {
    struct run run =
        compare_in(moon_memory_heap(), "\"hash\":{\"algo\":\"sha256_cbor\"},\"request\":{\"cache_salt\":\"\\ud800\"}",
                   "\"hash\":{\"algo\":\"sha256_cbor\"}");
    MOON_CHECK_INT(run.status, MOON_ERR_REFUSED);
    moon_arena_close(&run.arena);
}

/* ---- agreement with the real keys ---- */

/* Every key that a side puts of the sample, as text. */
struct key_set {
    struct moon_text *text; /* keys, each followed by a line feed, the first after one */
};

static bool has_key(const struct key_set *set, struct moon_key_text key) {
    char line[1024];
    int length = snprintf(line, sizeof line, "\n%.*s\n", (int)key.length, key.bytes);
    return length < (int)sizeof line && strstr(moon_text_value(set->text), line) != NULL;
}

/* Puts of all ranks by the layout engine, with keys built from scratch. Mamba states of 0.29 on are not among them. */
static void collect_puts(const struct moon_compat_engine *engine, const struct moon_hashes *hashes, int64_t tokens,
                         struct moon_text *out) {
    static int64_t blocks[1 << 16];
    struct moon_block_table tables[MOON_COMPAT_GROUPS_MAX];
    for (int64_t i = 0; i < 1 << 16; i++)
        blocks[i] = i + 1;
    for (size_t i = 0; i < MOON_COMPAT_GROUPS_MAX; i++)
        tables[i] = (struct moon_block_table){blocks, 1 << 16};
    const struct moon_save save = {.tokens = tokens,
                                   .hash_count = tokens / engine->model.hash_block_tokens,
                                   .prefill_end_tokens = tokens + 1,
                                   .tables = tables};
    moon_text_char(out, '\n');
    for (int64_t rank = 0; rank < moon_world_size(&engine->model); rank++) {
        const struct moon_rank at = moon_rank_at(&engine->model, rank);
        struct moon_puts puts;
        struct moon_put put;
        CU_ASSERT_EQUAL_FATAL(
            moon_puts_open(&puts, engine->profile, &engine->model, &engine->selection, &at, &save, NULL), 0);
        while (moon_puts_next(&puts, &put)) {
            const struct moon_pool_key key =
                moon_rank_key(engine->profile, &engine->model, &engine->selection, &at, put.group, put.shard);
            moon_chunk_key(engine->profile, &key, hashes, &put.chunk, out);
            moon_text_char(out, '\n');
        }
    }
}

struct asked {
    struct key_set set;
    size_t present, missing;
};

static void count_key(struct asked *asked, struct moon_key_text key) {
    if (has_key(&asked->set, key))
        asked->present++;
    else
        asked->missing++;
}

/* One side, worked out again outside the comparison. */
struct side {
    struct moon_compat_description description;
    struct moon_compat_engine engine;
    struct moon_hashes hashes;
};

static bool open_again(struct run *run, const struct moon_compat_input *input, int number, int64_t tokens,
                       struct side *out) {
    static int64_t prompt[1 << 16];
    struct moon_compat_request plain = {.given = false};
    for (int64_t i = 0; i < 1 << 16; i++)
        prompt[i] = 7 * i % 50000;
    CU_ASSERT_EQUAL_FATAL(moon_compat_describe(&run->arena, input, "x", &out->description, &run->error), 0);
    CU_ASSERT_EQUAL_FATAL(moon_compat_engine_open(&run->arena, &out->description, input, &out->engine, &run->error), 0);
    if (!out->engine.derived || tokens >= 1 << 16)
        return false;
    CU_ASSERT_EQUAL_FATAL(moon_compat_hashes(&run->arena, &out->description, number, &plain, prompt, (size_t)tokens,
                                             out->engine.model.hash_block_tokens, &out->hashes, &run->error),
                          0);
    return true;
}

/* True if a hit needs every chunk: nothing is sparse or dropped, so the shortest lookup decides. */
static bool needs_every_chunk(const struct moon_compat_engine *engine) {
    for (size_t i = 0; i < engine->model.group_count; i++) {
        enum moon_spec_kind kind = engine->groups[i].spec.kind;
        if (kind != MOON_SPEC_FULL && kind != MOON_SPEC_MLA && kind != MOON_SPEC_UNIFORM)
            return false;
    }
    return !engine->model.speculative;
}

static void check_direction(const struct run *run, int way, const struct side sides[2]) {
    const struct moon_compat_engine *writer = &sides[way].engine, *reader = &sides[!way].engine;
    const struct moon_compat_direction *direction = &run->report->directions[way];
    int64_t saved =
        direction->longest.prompt_tokens / writer->model.scheduler_block_tokens * writer->model.scheduler_block_tokens;
    struct moon_text puts, scratch;
    struct moon_key_list list;
    moon_text_open(&puts, moon_memory_heap());
    moon_text_open(&scratch, moon_memory_heap());
    collect_puts(writer, &sides[way].hashes, saved, &puts);
    struct asked asked = {.set = {&puts}};
    int64_t block = reader->model.scheduler_block_tokens;
    int64_t length = needs_every_chunk(reader) ? block : direction->longest.prompt_tokens;
    CU_ASSERT_EQUAL_FATAL(moon_fine_check(reader->profile, &reader->model, NULL), 0);
    moon_key_list_open(&list, moon_memory_heap());
    moon_lookup_keys(reader->profile, &reader->model, &reader->selection, &sides[!way].hashes, length, &list);
    for (size_t i = 0; i < list.count; i++) {
        moon_text_clear(&scratch);
        moon_key_list_write(&list, i, &scratch);
        count_key(&asked, (struct moon_key_text){scratch.data, scratch.length});
    }
    moon_key_list_close(&list);
    enum moon_compat_state state = direction->kinds[MOON_COMPAT_TEXT];
    bool right = needs_every_chunk(reader) ? (state == MOON_COMPAT_NONE) == (asked.missing > 0)
                                           : state == MOON_COMPAT_NONE || asked.present > 0;
    if (!right) {
        fprintf(stderr, "%s: %zu keys present, %zu missing, but:\n", way ? "B to A" : "A to B", asked.present,
                asked.missing);
        show(run);
    }
    CU_ASSERT(right);
    moon_text_close(&scratch);
    moon_text_close(&puts);
}

static void check_drawn(const struct moon_text texts[2], size_t verdicts[4]) {
    struct run run = {0};
    struct moon_compat_input inputs[2];
    moon_arena_open(&run.arena, moon_memory_heap());
    for (int side = 0; side < 2; side++) {
        struct moon_json *document = NULL;
        CU_ASSERT_EQUAL_FATAL(moon_json_read(&run.arena, "drawn", texts[side].data, texts[side].length,
                                             MOON_JSON_STRICT, &document, &run.error),
                              0);
        inputs[side] = (struct moon_compat_input){.source = "drawn", .document = document};
    }
    run.status = moon_compat_compare(&run.arena, inputs, &run.report, &run.error);
    if (run.status == 0) {
        const struct moon_compat_report *report = run.report;
        verdicts[report->verdict]++;
        struct side sides[2];
        bool both = report->directions[0].prompts > 0 && report->directions[1].prompts > 0 &&
                    report->judged != 1U << MOON_COMPAT_AS_GIVEN;
        int64_t tokens = report->directions[0].longest.prompt_tokens > report->directions[1].longest.prompt_tokens
                             ? report->directions[0].longest.prompt_tokens
                             : report->directions[1].longest.prompt_tokens;
        for (int side = 0; side < 2 && both; side++)
            both = open_again(&run, &inputs[side], side, tokens + 1, &sides[side]);
        for (int way = 0; way < 2 && both; way++)
            if (report->directions[way].state != MOON_COMPAT_IDLE &&
                !find(&run, MOON_COMPAT_BLOCKS, MOON_COMPAT_START) &&
                !find(&run, MOON_COMPAT_BLOCKS, MOON_COMPAT_MASTER) &&
                !find(&run, MOON_COMPAT_BLOCKS, MOON_COMPAT_METADATA_SERVER) &&
                !find(&run, MOON_COMPAT_BLOCKS, MOON_COMPAT_PROTOCOL) &&
                !find(&run, MOON_COMPAT_BLOCKS, MOON_COMPAT_TENANT))
                check_direction(&run, way, sides);
    }
    CU_ASSERT(run.status == 0 || run.status == MOON_ERR_SCHEMA || run.status == MOON_ERR_UNSUPPORTED);
    moon_arena_close(&run.arena);
}

static void verdicts_agree_with_the_real_keys_of_drawn_pairs(void) {
    struct moon_random random;
    size_t verdicts[4] = {0};
    moon_random_seed(&random, 20);
    for (int i = 0; i < 1500; i++) {
        struct moon_text texts[2];
        open_random_cases(&random, texts);
        unsigned before = CU_get_number_of_failures();
        check_drawn(texts, verdicts);
        if (CU_get_number_of_failures() != before)
            fprintf(stderr, "pair %d:\n%s\n%s\n", i, texts[0].data, texts[1].data);
        for (int side = 0; side < 2; side++)
            moon_text_close(&texts[side]);
    }
    for (int verdict = 0; verdict < 4; verdict++) /* the draw covers all answers */
        CU_ASSERT(verdicts[verdict] > 50);
}

/* ---- memory ---- */

static void every_refused_allocation_is_reported(void) {
    static const char *const pairs[][2] = {
        {STORE("") "," EXTRA("\"cache_prefix\":7"), STORE("") "," EXTRA("\"cache_prefix\":7") "," TP(2)},
        {"\"profile\":\"vllm-0.28\",\"model\":\"x/"
         "foo\",\"request\":{\"tokens\":[1,2,3],\"mm_features\":[{\"identifier\":\"i\",\"offset\":0,\"length\":1}],"
         "\"prompt_embeds\":true}",
         EXTRA("\"store_tp_size\":[1]")},
        {OLD(29) "," GROUPS(
             "{\"kind\":\"mla\"},{\"kind\":\"uniform\",\"inner\":[{\"kind\":\"full\"}]},{\"kind\":\"mamba\"}," SLIDING(
                 "")),
         OLD(28) "," GROUPS("{\"kind\":\"mla\"}")},
        {STORE(",\"mode\":\"x\""), "\"parallel\":{\"pp\":2,\"pcp\":2}"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        int status = MOON_ERR_MEMORY;
        for (uint64_t fail_at = 1; status == MOON_ERR_MEMORY && fail_at < 5000; fail_at++) {
            struct moon_memory_failing failing;
            moon_memory_failing_init(&failing, moon_memory_heap(), fail_at);
            struct run run = compare_in(&failing.memory, pairs[i][0], pairs[i][1]);
            status = run.status;
            struct moon_text text;
            moon_text_open(&text, &failing.memory);
            if (status == 0) {
                moon_compat_write(run.report, &text);
                if (text.failed || moon_json_broken(moon_compat_json(&run.arena, run.report)))
                    status = MOON_ERR_MEMORY;
            }
            moon_text_close(&text);
            moon_arena_close(&run.arena);
            MOON_CHECK_INT(failing.held_bytes, 0);
        }
        MOON_CHECK_INT(status, 0);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"every reason fires where it should", every_reason_fires_where_it_should},
        {"all reasons are listed in their order", all_reasons_are_listed_in_their_order},
        {"danger is told before reasons", danger_is_told_before_reasons},
        {"two sides that store complete each other's blocks", two_sides_that_store_complete_each_others_blocks},
        {"context ranks are told", context_ranks_are_told},
        {"names of the sides are used, cleaned", names_of_the_sides_are_used},
        {"a partly shared direction says what is short", a_partly_shared_direction_says_what_is_short},
        {"a side that does not start has no numbers", a_side_that_does_not_start_has_no_numbers},
        {"a configuration file is read as the release reads it", a_configuration_file_is_read_as_the_release_reads_it},
        {"another release can be asked about", another_release_can_be_asked_about},
        {"a path to a configuration is told", a_path_to_a_configuration_is_told},
        {"bad descriptions are refused in place", bad_descriptions_are_refused_in_place},
        {"lists that are too long are refused", lists_that_are_too_long_are_refused},
        {"deployments that are too large are refused", deployments_that_are_too_large_are_refused},
        {"hashes that the release refuses are an error", hashes_that_the_release_refuses_are_an_error},
        {"verdicts agree with the real keys of drawn pairs", verdicts_agree_with_the_real_keys_of_drawn_pairs},
        {"every refused allocation is reported", every_refused_allocation_is_reported},
        {NULL, NULL},
    };
    return moon_unit_main("compat", cases, argc, argv);
}
