/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: kv-transfer-config and kv_connector_extra_config. */
#include "ref/config/kv_transfer.h"

#include "ref/base/unit.h"

static struct moon_arena arena;

static struct moon_json *parse(const char *json) {
    struct moon_json *value = NULL;
    MOON_CHECK_INT(moon_json_read(&arena, "test", json, strlen(json), MOON_JSON_PYTHON, &value, NULL), MOON_OK);
    return value;
}

static struct moon_connector *read_config(const char *json) {
    struct moon_connector *first = NULL;
    MOON_CHECK_INT(moon_kv_transfer_read(&arena, parse(json), &first), MOON_OK);
    return first;
}

static void a_single_connector_is_read(void) {
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_connector *one = read_config("{\"kv_connector\":\"MooncakeStoreConnector\",\"kv_role\":\"kv_both\","
                                             "\"kv_connector_extra_config\":{\"a\":1}}");
    MOON_CHECK_INT(one->kind, MOON_CONNECTOR_STORE);
    MOON_CHECK_INT(one->role, MOON_ROLE_BOTH);
    CU_ASSERT_PTR_NOT_NULL(one->extra);
    CU_ASSERT_PTR_NULL(one->next);
    CU_ASSERT_PTR_NULL(one->refused);
    moon_arena_close(&arena);
}

static void children_follow_level_by_level(void) {
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_connector *one = read_config(
        "{\"kv_connector\":\"MultiConnector\",\"kv_role\":\"kv_producer\",\"kv_connector_extra_config\":{"
        "\"connectors\":["
        "{\"kv_connector\":\"MultiConnector\",\"kv_role\":\"x\",\"kv_connector_extra_config\":{\"connectors\":["
        "{\"kv_connector\":\"Other\"}]}},{\"kv_connector\":\"MooncakeConnector\",\"kv_role\":\"kv_consumer\"}]}}");
    static const char *const names[] = {"MultiConnector", "MultiConnector", "MooncakeConnector", "Other"};
    for (size_t i = 0; i < 4; i++, one = one->next) {
        MOON_CHECK_TEXT(one->name, names[i]);
        MOON_CHECK_TEXT(i == 0 ? "" : one->parent->name, i == 0 ? "" : "MultiConnector");
        MOON_CHECK_INT(one->child, i == 2);
    }
    CU_ASSERT_PTR_NULL(one);
    moon_arena_close(&arena);
}

static void what_the_engine_refuses_is_said(void) {
    static const char *const pairs[][2] = {
        {"[]", "a kv-transfer-config is an object"},
        {"{}", "kv_connector is missing"},
        {"{\"kv_connector\":null}", "kv_connector is missing"},
        {"{\"kv_connector\":5}", "kv_connector must be a text"},
        {"{\"kv_connector\":\"x\",\"kv_connector_extra_config\":[]}", "kv_connector_extra_config must be an object"},
        {"{\"kv_connector\":5,\"kv_connector_extra_config\":[]}", "kv_connector must be a text"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_TEXT(read_config(pairs[i][0])->refused, pairs[i][1]);
        moon_arena_close(&arena);
    }
}

static void a_connector_is_found_by_kind(void) {
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_connector *one =
        read_config("{\"kv_connector\":\"MultiConnector\",\"kv_role\":\"kv_both\","
                    "\"kv_connector_extra_config\":{\"connectors\":[{\"kv_connector\":\"MooncakeConnector\"}]}}");
    CU_ASSERT_PTR_EQUAL(moon_kv_transfer_find(one, MOON_CONNECTOR_P2P), one->next);
    CU_ASSERT_PTR_NULL(moon_kv_transfer_find(one, MOON_CONNECTOR_STORE));
    moon_arena_close(&arena);
}

static void too_many_connectors_are_a_limit(void) {
    struct moon_text text;
    struct moon_connector *first = NULL;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, "{\"kv_connector\":\"MultiConnector\",\"kv_connector_extra_config\":{\"connectors\":[{}");
    for (int i = 0; i < MOON_CONNECTORS_MAX; i++)
        moon_text_string(&text, ",{}");
    moon_text_string(&text, "]}}");
    MOON_CHECK_INT(moon_kv_transfer_read(&arena, parse(moon_text_value(&text)), &first), MOON_ERR_LIMIT);
    moon_text_close(&text);
    moon_arena_close(&arena);
}

static void members_that_newer_releases_dropped_are_known_to_older_ones(void) {
    MOON_CHECK_TEXT(moon_kv_transfer_members(moon_profile_find("vllm-0.30", NULL))[0], "kv_buffer_size");
    MOON_CHECK_TEXT(moon_kv_transfer_members(moon_profile_find("vllm-0.33", NULL))[0], "kv_connector");
    MOON_CHECK_TEXT(moon_kv_connector_names()[0], "MooncakeStoreConnector");
}

/* 1, 0 or -1: read, not read, unknown. */
static int reads(const char *release, const char *key) {
    const struct moon_extra_option *option = moon_extra_option_find(MOON_CONNECTOR_STORE, key);
    return option ? moon_extra_read_by(option, moon_profile_find(release, NULL)) : -1;
}

static void options_are_known_by_release(void) {
    MOON_CHECK_INT(reads("vllm-0.21", "discard_partial_chunks"), 1);
    MOON_CHECK_INT(reads("vllm-0.22", "discard_partial_chunks"), 0);
    MOON_CHECK_INT(reads("vllm-0.28", "enable_cross_layers_blocks"), 1);
    MOON_CHECK_INT(reads("vllm-0.29", "enable_cross_layers_blocks"), 0);
    MOON_CHECK_INT(reads("vllm-0.30", "enable_cross_layers_blocks"), 1);
    MOON_CHECK_INT(reads("vllm-0.29", "store_tp_size"), 0);
    MOON_CHECK_INT(reads("vllm-0.30", "store_tp_size"), 1);
    MOON_CHECK_INT(reads("vllm-0.33", "connectors"), -1);
    CU_ASSERT_PTR_NOT_NULL(moon_extra_option_find(MOON_CONNECTOR_MULTI, "connectors"));
    MOON_CHECK_TEXT(moon_extra_suggest(MOON_CONNECTOR_STORE, "load_asinc"), "load_async");
    MOON_CHECK_TEXT(moon_extra_suggest(MOON_CONNECTOR_P2P, "num_worker"), "num_workers");
    CU_ASSERT_PTR_NULL(moon_extra_suggest(MOON_CONNECTOR_MULTI, "store_tp_size"));
}

static void switches_follow_python_truth(void) {
    moon_arena_open(&arena, moon_memory_heap());
    CU_ASSERT_TRUE(moon_extra_switch(parse("{\"a\":\"false\"}"), "a", false));
    CU_ASSERT_FALSE(moon_extra_switch(parse("{\"a\":null}"), "a", true));
    CU_ASSERT_TRUE(moon_extra_switch(parse("{}"), "a", true));
    CU_ASSERT_FALSE(moon_extra_switch(NULL, "a", false));
    moon_arena_close(&arena);
}

static void layout_options_keep_their_types(void) {
    struct moon_layout_model model = {.tp = 1};
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_extra_layout(&arena,
                                     parse("{\"store_tp_size\":\"4\",\"enable_store_tp_lcm\":true,"
                                           "\"prefill_tp_sizes\":[4,2.0,null,\"x\",{},[],false]}"),
                                     &model),
                   MOON_OK);
    MOON_CHECK_INT(model.store_tp_size.type, MOON_SETTING_STRING);
    MOON_CHECK_INT(model.enable_store_tp_lcm.boolean, true);
    MOON_CHECK_INT(model.prefill_tp_sizes.count, 7);
    MOON_CHECK_INT(model.prefill_tp_sizes.elements[0].type, MOON_SETTING_INTEGER);
    MOON_CHECK_INT(model.prefill_tp_sizes.elements[1].type, MOON_SETTING_REAL);
    MOON_CHECK_INT(model.prefill_tp_sizes.elements[4].type, MOON_SETTING_OBJECT);
    MOON_CHECK_INT(model.prefill_tp_sizes.elements[5].type, MOON_SETTING_ARRAY);
    MOON_CHECK_INT(model.enable_cross_layers_blocks.type, MOON_SETTING_ABSENT);
    moon_arena_close(&arena);
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void) {
    static const char json[] =
        "{\"kv_connector\":\"MultiConnector\",\"kv_connector_extra_config\":{\"prefill_tp_sizes\":[1],"
        "\"connectors\":[{},{}]}}";
    for (uint64_t n = 1; n < 100; n++) {
        struct moon_memory_failing failing;
        struct moon_json *value = NULL;
        struct moon_connector *first = NULL;
        struct moon_layout_model model = {.tp = 1};
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_arena_open(&arena, &failing.memory);
        int status = moon_json_read(&arena, "test", json, sizeof json - 1, MOON_JSON_PYTHON, &value, NULL);
        if (!status) /* fill the arena's chunk, so that the next piece needs a new one */
            while (failing.requests < n && moon_arena_alloc(&arena, 4096))
                continue;
        if (!status)
            status = moon_kv_transfer_read(&arena, value, &first);
        if (!status)
            status = moon_extra_layout(&arena, first->extra, &model);
        moon_arena_close(&arena);
        MOON_CHECK_INT(failing.held_bytes, 0);
        CU_ASSERT(status == MOON_OK || status == MOON_ERR_MEMORY);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a single connector is read", a_single_connector_is_read},
        {"children follow level by level", children_follow_level_by_level},
        {"what the engine refuses is said", what_the_engine_refuses_is_said},
        {"a connector is found by kind", a_connector_is_found_by_kind},
        {"too many connectors are a limit", too_many_connectors_are_a_limit},
        {"members that newer releases dropped are known to older ones",
         members_that_newer_releases_dropped_are_known_to_older_ones},
        {"options are known by release", options_are_known_by_release},
        {"switches follow Python's truth", switches_follow_python_truth},
        {"layout options keep their types", layout_options_keep_their_types},
        {"every refused allocation is reported and nothing leaks",
         every_refused_allocation_is_reported_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("ref/config/kv_transfer", cases, argc, argv);
}
