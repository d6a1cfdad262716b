/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: what lint does around its findings: reading inputs and command lines, sorting, writing, limits. */
#include "ref/config/lint.h"

#include "ref/base/unit.h"

#define STORE "--kv-transfer-config '{\"kv_connector\":\"MooncakeStoreConnector\",\"kv_role\":\"kv_both\"}'"

static struct moon_arena arena;
static struct moon_lint_report report;

static int run_inputs(const struct moon_lint_input inputs[], size_t count, struct moon_error *error) {
    return moon_lint(&arena, moon_profile_find("vllm-0.33", NULL), inputs, count, &report, error);
}

/* Lints one file; its findings are in `report`, in an arena that the caller closes. */
static void run(const char *name, const char *text) {
    struct moon_lint_input input = {name, text, strlen(text)};
    struct moon_error error = {0};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(run_inputs(&input, 1, &error), MOON_OK);
}

/* The first finding of a kind, NULL if there is none. */
static const struct moon_lint_finding *find(const char *id) {
    const struct moon_lint_finding *at = report.first;
    while (at && strcmp(at->rule->id, id) != 0)
        at = at->next;
    return at;
}

static void expect(const char *id, uint32_t line, uint32_t column, const char *what) {
    const struct moon_lint_finding *finding = find(id);
    CU_ASSERT_PTR_NOT_NULL(finding);
    if (!finding) {
        fprintf(stderr, "%s was not found\n", id);
        return;
    }
    MOON_CHECK_INT(finding->line, line);
    MOON_CHECK_INT(finding->column, column);
    if (what)
        MOON_CHECK_TEXT(finding->what, what);
}

static void rules_are_sorted_and_complete(void) {
    size_t count = 0;
    const struct moon_lint_rule *rules = moon_lint_rules(&count);
    for (size_t i = 0; i < count; i++) {
        CU_ASSERT(i == 0 || strcmp(rules[i - 1].id, rules[i].id) < 0);
        CU_ASSERT(*rules[i].title && *rules[i].why && *rules[i].fix && *rules[i].reference);
        CU_ASSERT_PTR_EQUAL(moon_lint_rule_find(rules[i].id), &rules[i]);
    }
    CU_ASSERT_PTR_EQUAL(moon_lint_rule_find("lint-001"), &rules[0]);
    CU_ASSERT_PTR_NULL(moon_lint_rule_find("LINT-000"));
}

static void inputs_are_told_apart_by_shape(void) {
    run("a", "{\"tenant_quota_policy\":{}}");
    expect("LINT-136", 1, 24, NULL);
    moon_arena_close(&arena);
    run("a", "{\"owners\":5,\"engines\":{}}");
    expect("LINT-162", 1, 11, "owners must be a list");
    moon_arena_close(&arena);
    run("a", "{\"master\":5}");
    expect("LINT-162", 1, 11, "master and owners are objects, not 5");
    moon_arena_close(&arena);
    run("a", "{\"kv_role\":\"kv_both\"}");
    expect("LINT-070", 1, 1, NULL);
    moon_arena_close(&arena);
    run("a", "{\"kv_connector_extra_config\":5}");
    expect("LINT-070", 1, 1, NULL);
    moon_arena_close(&arena);
    run("a", "\"mooncake_master\"");
    expect("LINT-002", 1, 1, NULL);
    moon_arena_close(&arena);
    run("a", "hello");
    expect("LINT-001", 1, 1, NULL);
    moon_arena_close(&arena);
    run("a", "");
    expect("LINT-001", 1, 1, NULL);
    moon_arena_close(&arena);
}

static void bytes_that_are_no_utf8_have_a_place(void) {
    run("a", "{\n  \"mode\": \"\xFF\"}");
    expect("LINT-001", 2, 12, NULL);
    moon_arena_close(&arena);
}

static void findings_are_sorted_by_file_and_place_and_found_once(void) {
    static const char first[] =
        "{\"mode\":\"x\",\n\"protocol\":\"RDMA\",\"device_name\":\"eth0,eth1\",\n\"foo\":1,\"bar\":2}";
    static const char second[] =
        "{\"x\":1,\"engines\":[{\"mooncake_config\":\"one.json\"},{\"mooncake_config\":\"dir/one.json\"}]}";
    struct moon_lint_input inputs[] = {{"two.json", second, sizeof second - 1}, {"one.json", first, sizeof first - 1}};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(run_inputs(inputs, 2, NULL), MOON_OK);
    size_t modes = 0, total = 0;
    for (const struct moon_lint_finding *at = report.first; at; at = at->next) {
        modes += strcmp(at->rule->id, "LINT-004") == 0;
        total++;
        if (!at->next)
            break;
        CU_ASSERT(strcmp(at->source, at->next->source) >= 0); /* two.json was given first */
        if (strcmp(at->source, at->next->source) == 0)
            CU_ASSERT(at->line < at->next->line || (at->line == at->next->line && at->column <= at->next->column));
    }
    MOON_CHECK_INT(modes, 1);
    MOON_CHECK_INT(total, report.counts[0] + report.counts[1] + report.counts[2]);
    moon_arena_close(&arena);
}

static void messages_are_one_line_of_whole_characters(void) {
    static char text[3000];
    for (size_t shift = 0; shift < 3; shift++) { /* the buffer ends at every byte of a character */
        size_t length = (size_t)sprintf(text, "{\"a\\nb%.*s", (int)shift, "xx");
        for (int i = 0; i < 700; i++)
            length += (size_t)sprintf(text + length, "\xE2\x82\xAC");
        strcpy(text + length, "\":1}");
        run("a", text);
        const char *what = find("LINT-008")->what;
        size_t end = strlen(what);
        CU_ASSERT_PTR_NOT_NULL(strstr(what, "a b"));
        CU_ASSERT(end > 1000 && memcmp(what + end - 3, "\xE2\x82\xAC", 3) == 0);
        moon_arena_close(&arena);
    }
}

static void long_values_are_cut_between_characters(void) {
    static char text[400] = "{\"protocol\":\"";
    for (int i = 0; i < 60; i++)
        strcat(text, "\xC3\xA9");
    strcat(text, "\"}");
    run("a", text);
    const char *dots = strstr(find("LINT-022")->what, "...");
    CU_ASSERT_PTR_NOT_NULL(dots);
    CU_ASSERT(((uint8_t)dots[-1] & 0xC0) == 0x80);
    moon_arena_close(&arena);
}

/* ---- command lines ---- */

static void a_script_becomes_a_deployment(void) {
    run("start.sh", "#!/bin/sh\n"
                    "export PYTHONHASHSEED=seven OTHER='x y'\n"
                    "/opt/bin/mooncake_master --port=50051 & # the master\n"
                    "MOONCAKE_OFFLOAD_BUCKET_EVICTION_POLICY=none \\\n"
                    "  mooncake_client -enable_offload --protocol \"rdma\" ; echo done\n"
                    "exec vllm serve org/m@x --port 8100 -tp=4 --kv-transfer-config '{\"kv_connector\": "
                    "\"MooncakeStoreConnector\",\n"
                    "  \"kv_role\": 5}'\n");
    expect("LINT-093", 2, 8, NULL);
    expect("LINT-110", 3, 1, NULL);
    expect("LINT-112", 4, 1, NULL);
    expect("LINT-152", 6, 17, NULL);
    expect("LINT-072", 7, 14, NULL);
    moon_arena_close(&arena);
}

static void python_modules_and_models_by_option_are_engines_too(void) {
    run("start.sh", "env A=1 python3 -m vllm.entrypoints.openai.api_server --model=org/m@y --prefix-caching-hash-algo "
                    "nosuch " STORE);
    expect("LINT-152", 1, 63, NULL);
    expect("LINT-095", 1, 98, NULL);
    moon_arena_close(&arena);
}

static void what_only_the_shell_knows_is_left_out(void) {
    run("start.sh",
        "vllm serve $MODEL@x --port \"$PORT\" --block-size `nproc` --dtype \"a\\\"b\" --kv-transfer-config \"$KV\"\n"
        "echo vllm serve x@y\nVLLM_RPC_BASE_PATH=/x\nexport\n");
    CU_ASSERT_PTR_NULL(find("LINT-152"));
    CU_ASSERT_PTR_NULL(find("LINT-162"));
    CU_ASSERT_PTR_NULL(find("LINT-070"));
    moon_arena_close(&arena);
}

static void broken_json_in_a_script_has_a_place(void) {
    run("start.sh", "vllm serve m --kv-transfer-config '{\"kv_role\"' --kv-transfer-config 5");
    expect("LINT-070", 1, 36, NULL);
    moon_arena_close(&arena);
}

static void words_join_quotes_escapes_and_continued_lines(void) {
    run("start.sh", "vllm serve or'g/m'\\@\"x\" --revision a\\\nb --kv-transfer-config=[] -tp");
    expect("LINT-070", 2, 24, NULL);
    moon_arena_close(&arena);
    run("start.sh", "vllm serve or'g/m'\\@\"x\" --revision a\\\nb " STORE);
    expect("LINT-152", 1, 12, "model is \"org/m@x\"");
    moon_arena_close(&arena);
    run("start.sh", "(vllm serve m@x " STORE "; vllm serve 'unfinished");
    expect("LINT-152", 1, 13, NULL);
    moon_arena_close(&arena);
    run("start.sh", "vllm \\");
    moon_arena_close(&arena);
}

static void flags_have_the_grammar_of_gflags(void) {
    run("start.sh", "mooncake_master --noenable_offload --nosuch --no-enable-ha -v=1 operand --port\n"
                    "mooncake_client --port x --enable-offload=yes --threads=1 --noport --eviction_ratio=0.1 --=x -\n"
                    "mooncake_master --port 1\n");
    expect("LINT-116", 1, 36, NULL);
    expect("LINT-117", 1, 73, "mooncake_master --port is without a value");
    moon_arena_close(&arena);
    run("start.sh",
        "mooncake_master --eviction_ratio=0.1.2 --default_kv_lease_ttl=5s --client_ttl=5x --eviction_ratio=-0.1 "
        "--max_kv_soft_pin_ttl=2h --default_kv_soft_pin_ttl=3m --quota_bytes=a");
    MOON_CHECK_INT(report.counts[MOON_LINT_ERROR], 3);
    moon_arena_close(&arena);
}

/* ---- descriptions ---- */

static void a_malformed_description_is_reported_part_by_part(void) {
    run("d.json", "{\"engines\":[5,{\"name\":1,\"profile\":\"vllm-0.99\",\"env\":[],\"tp\":0,\"kv_events\":1,\"x\":1,"
                  "\"mooncake_config\":\"no.json\"},{\"env\":{\"A\":1},\"mooncake_config\":5,\"kv_layout\":\"ABC\","
                  "\"kv_transfer_config\":{\"kv_connector\":\"MooncakeStoreConnector\",\"kv_role\":\"kv_both\"}}],"
                  "\"master\":{\"flags\":\"--port\"},\"owners\":[1,{\"flags\":[5]}]}");
    size_t count = 0;
    for (const struct moon_lint_finding *at = report.first; at; at = at->next)
        count += strcmp(at->rule->id, "LINT-162") == 0;
    MOON_CHECK_INT(count, 14);
    moon_arena_close(&arena);
}

static void a_file_is_found_by_the_variable_too(void) {
    static const char config[] = "{\"tenant_id\":\"a\",\"mode\":\"embedded\"}";
    static const char script[] =
        "MOONCAKE_CONFIG_PATH=/etc/m.json vllm serve m --kv-transfer-config "
        "'{\"kv_connector\":\"MooncakeStoreConnector\",\"kv_role\":\"kv_both\"}'\nmooncake_master\n";
    struct moon_lint_input inputs[] = {{"start.sh", script, sizeof script - 1}, {"m.json", config, sizeof config - 1}};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(run_inputs(inputs, 2, NULL), MOON_OK);
    expect("LINT-131", 1, 14, NULL);
    moon_arena_close(&arena);
}

static void a_master_with_a_configuration_file_is_not_judged_by_its_defaults(void) {
    run("start.sh", "mooncake_master --config_path=/etc/m.yaml --offload_on_evict\nmooncake_client --enable_offload "
                    "--tenant_id=a\n");
    CU_ASSERT_PTR_NULL(find("LINT-110"));
    CU_ASSERT_PTR_NULL(find("LINT-118"));
    CU_ASSERT_PTR_NULL(find("LINT-131"));
    moon_arena_close(&arena);
}

/* ---- limits and output ---- */

static void too_many_parts_are_a_limit(void) {
    struct moon_text text;
    struct moon_error error = {0};
    struct moon_lint_input input = {"d.json", NULL, 0}, many[MOON_LINT_INPUTS_MAX + 1];
    static const char *const starts[] = {"{\"engines\":[{}", "{\"owners\":[{}"};
    for (size_t i = 0; i < 2; i++) {
        moon_text_open(&text, moon_memory_heap());
        moon_text_string(&text, starts[i]);
        for (int n = 0; n < 256; n++)
            moon_text_string(&text, ",{}");
        moon_text_string(&text, "]}");
        input.bytes = moon_text_value(&text);
        input.length = text.length;
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(run_inputs(&input, 1, &error), MOON_ERR_LIMIT);
        MOON_CHECK_TEXT(error.message, "too many engines, owners or connectors in one run");
        moon_arena_close(&arena);
        moon_text_close(&text);
    }
    for (size_t i = 0; i <= MOON_LINT_INPUTS_MAX; i++)
        many[i] = (struct moon_lint_input){"a", "{}", 2};
    MOON_CHECK_INT(run_inputs(many, MOON_LINT_INPUTS_MAX + 1, &error), MOON_ERR_LIMIT);
    char deep[300];
    memset(deep, '[', sizeof deep);
    input = (struct moon_lint_input){"d.json", deep, sizeof deep};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(run_inputs(&input, 1, &error), MOON_ERR_LIMIT);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.where, "d.json"));
    moon_arena_close(&arena);
}

static void too_many_connectors_in_a_script_are_a_limit(void) {
    struct moon_text text;
    struct moon_error error = {0};
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, "vllm serve m --kv-transfer-config "
                            "'{\"kv_connector\":\"MultiConnector\",\"kv_connector_extra_config\":{\"connectors\":[{}");
    for (int n = 0; n < 64; n++)
        moon_text_string(&text, ",{}");
    moon_text_string(&text, "]}}'");
    struct moon_lint_input input = {"s", moon_text_value(&text), text.length};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(run_inputs(&input, 1, &error), MOON_ERR_LIMIT);
    moon_arena_close(&arena);
    moon_text_close(&text);
    char deep[400] = "vllm serve m --kv-transfer-config '";
    memset(deep + strlen(deep), '[', 300);
    input = (struct moon_lint_input){"s", deep, strlen(deep)};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(run_inputs(&input, 1, &error), MOON_ERR_LIMIT);
    moon_arena_close(&arena);
}

static void the_report_is_written_for_people_and_programs(void) {
    struct moon_text text;
    run("c.json", "[]");
    moon_text_open(&text, moon_memory_heap());
    moon_lint_write(&report, &text);
    MOON_CHECK_TEXT(moon_text_value(&text),
                    "c.json:1:1: error: raises AttributeError: 'list' object has no attribute 'get' [LINT-002]\n"
                    "    why: the release calls .get on it and raises AttributeError\n"
                    "    fix: write an object with the members of guide G6 to G14\n"
                    "    see: SPEC CONFIG-006\n"
                    "1 errors, 0 warnings, 0 notes\n");
    struct moon_json *json = moon_lint_json(&arena, &report);
    const struct moon_json *finding = moon_json_at(moon_json_member(json, "findings"), 0);
    CU_ASSERT_TRUE(moon_json_is_string(moon_json_member(finding, "id"), "LINT-002"));
    CU_ASSERT_TRUE(moon_json_is_string(moon_json_member(finding, "severity"), "error"));
    MOON_CHECK_INT(moon_json_member(json, "errors")->integer, 1);
    moon_text_clear(&text);
    moon_lint_explain(moon_lint_rule_find("LINT-019"), &text);
    CU_ASSERT_PTR_NOT_NULL(strstr(moon_text_value(&text), "LINT-019 note: metadata_server is not P2PHANDSHAKE\n"));
    moon_text_close(&text);
    moon_arena_close(&arena);
}

/* A deployment that most checks have something to say about. */
static const char everything[] =
    "{\"profile\":\"vllm-0.33\",\"master\":{\"flags\":[\"--port\",\"50052\",\"--offload_on_evict\",\"--enable_multi_"
    "tenants\"]},"
    "\"owners\":[{\"env\":{\"MOONCAKE_OFFLOAD_DISK_EVICTION_HIGH_WATERMARK_RATIO\":\"0.1\","
    "\"MOONCAKE_OFFLOAD_LOCAL_BUFFER_SIZE_BYTES\":\"x\",\"MOONCAKE_OFFLOAD_BUCKET_KEYS_LIMIT\":\"0\"},"
    "\"flags\":[\"--enable_offload\",\"--tenant_id=b\",\"--global_segment_size=x\",\"--nosuch\"]}],"
    "\"tenant_quota_policy\":{\"version\":2,\"tenants\":[{\"name\":\"a\",\"quota\":\"1TB\"},{\"name\":\"a\",\"quota\":"
    "9},{}]},"
    "\"engines\":[{\"model\":\"o/m\",\"tp\":2,\"http_port\":8998,\"env\":{\"PYTHONHASHSEED\":\"1\","
    "\"MOONCAKE_PREFERRED_SEGMENT\":\"x:1\",\"VLLM_MOONCAKE_CONNECTOR_TIMEOUT\":\"z\","
    "\"VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO\":\"0\"},\"mooncake_config\":{\"tenant_id\":\"a\",\"enable_offload\":"
    "\"off\","
    "\"metadata_server\":\"x\",\"protocol\":\"rmda\",\"global_segment_size\":\"1.5\",\"master_server_address\":\"h:1\","
    "\"device_name\":\"a, b\"},\"kv_transfer_config\":{\"kv_connector\":\"MultiConnector\",\"kv_role\":\"kv_both\","
    "\"kv_connector_extra_config\":{\"connectors\":[{\"kv_connector\":\"MooncakeStoreConnector\",\"kv_role\":\"kv_"
    "both\","
    "\"kv_connector_extra_config\":{\"enable_store_tp_lcm\":true,\"prefill_tp_sizes\":[2,4],\"lod_async\":1}},"
    "{\"kv_connector\":\"MooncakeConnector\",\"kv_role\":\"kv_both\"}]}}},{\"model\":\"o/"
    "m\",\"tp\":4,\"mooncake_config\":"
    "{\"tenant_id\":\"a\",\"mode\":\"standalone-store\",\"global_segment_size\":0,\"master_server_address\":\"i:1\"},"
    "\"kv_transfer_config\":{\"kv_connector\":\"MooncakeStoreConnector\","
    "\"kv_role\":\"kv_both\",\"kv_connector_extra_config\":{\"enable_store_tp_lcm\":true,\"prefill_tp_sizes\":[4]}}},"
    "{\"model\":\"p/m\",\"kv_transfer_config\":{\"kv_connector\":\"MooncakeStoreConnector\",\"kv_role\":\"kv_both\","
    "\"kv_connector_extra_config\":{\"store_tp_size\":8,\"cache_prefix\":\"q\"}}}]}";

static const char script[] =
    "export A=1\nB=2 vllm serve m -tp 4 --revision=r --kv-transfer-config "
    "'{\"kv_connector\":\"MooncakeStoreConnector\",\"kv_role\":\"kv_both\"}'\nmooncake_client --port 1\n"
    "mooncake_master --port 2\n";

/* Lints with memory that refuses its n-th request, after `used` bytes of the arena's first piece were taken: so the
 * refusal wanders over all places. Returns false when memory never refused. */
static bool run_failing(const char *text, uint64_t n, size_t used) {
    struct moon_memory_failing failing;
    struct moon_lint_input input = {"d", text, strlen(text)};
    struct moon_error error = {0};
    moon_memory_failing_init(&failing, moon_memory_heap(), 0);
    moon_arena_open(&arena, &failing.memory);
    for (size_t taken = 0; taken < used; taken += 16)
        moon_arena_alloc(&arena, 16);
    failing.fail_at = failing.requests + n;
    int status = run_inputs(&input, 1, &error);
    if (status == MOON_OK && !moon_lint_json(&arena, &report))
        status = MOON_ERR_MEMORY;
    bool refused = failing.requests >= failing.fail_at;
    moon_arena_close(&arena);
    MOON_CHECK_INT(status, refused ? MOON_ERR_MEMORY : MOON_OK);
    MOON_CHECK_INT(failing.held_bytes, 0);
    return refused;
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void) {
    static const char *const texts[] = {everything, script, "[",
                                        "{\"local_buffer_size\":\"x\",\"a\":1,\"a\":NaN,\"tenant_id\":5}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        for (size_t used = 0; used < 60000; used += i < 2 ? 80 : 800)
            for (uint64_t n = 1; run_failing(texts[i], n, used); n++)
                continue;
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"rules are sorted and complete", rules_are_sorted_and_complete},
        {"inputs are told apart by shape", inputs_are_told_apart_by_shape},
        {"bytes that are no UTF-8 have a place", bytes_that_are_no_utf8_have_a_place},
        {"findings are sorted by file and place and found once", findings_are_sorted_by_file_and_place_and_found_once},
        {"messages are one line of whole characters", messages_are_one_line_of_whole_characters},
        {"long values are cut between characters", long_values_are_cut_between_characters},
        {"a script becomes a deployment", a_script_becomes_a_deployment},
        {"Python modules and models by option are engines too", python_modules_and_models_by_option_are_engines_too},
        {"what only the shell knows is left out", what_only_the_shell_knows_is_left_out},
        {"broken JSON in a script has a place", broken_json_in_a_script_has_a_place},
        {"words join quotes, escapes and continued lines", words_join_quotes_escapes_and_continued_lines},
        {"flags have the grammar of gflags", flags_have_the_grammar_of_gflags},
        {"a malformed description is reported part by part", a_malformed_description_is_reported_part_by_part},
        {"a file is found by the variable too", a_file_is_found_by_the_variable_too},
        {"a master with a configuration file is not judged by its defaults",
         a_master_with_a_configuration_file_is_not_judged_by_its_defaults},
        {"too many parts are a limit", too_many_parts_are_a_limit},
        {"too many connectors in a script are a limit", too_many_connectors_in_a_script_are_a_limit},
        {"the report is written for people and programs", the_report_is_written_for_people_and_programs},
        {"every refused allocation is reported and nothing leaks",
         every_refused_allocation_is_reported_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("ref/config/lint", cases, argc, argv);
}
