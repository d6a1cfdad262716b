/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: environment variables of the connector. */
#include "ref/config/environment.h"

#include "ref/base/unit.h"

static struct moon_arena arena;
static const char *name_set, *value_set; /* the one variable that is set */

static const char *lookup(void *context, const char *name) {
    (void)context;
    return name_set && strcmp(name, name_set) == 0 ? value_set : NULL;
}
static const struct moon_environment environment = {lookup, NULL};

static void set(const char *name, const char *value) {
    name_set = name;
    value_set = value;
}

static void the_configuration_needs_a_path(void) {
    const char *path = NULL;
    struct moon_exception raised = {0};
    moon_arena_open(&arena, moon_memory_heap());
    set(NULL, NULL);
    MOON_CHECK_INT(moon_store_config_path(&arena, &environment, &path, &raised), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(raised.message, "The environment variable 'MOONCAKE_CONFIG_PATH' is not set.");
    set("MOONCAKE_CONFIG_PATH", "");
    MOON_CHECK_INT(moon_store_config_path(&arena, &environment, &path, &raised), MOON_ERR_REFUSED);
    set("MOONCAKE_CONFIG_PATH", " ");
    MOON_CHECK_INT(moon_store_config_path(&arena, &environment, &path, &raised), MOON_OK);
    MOON_CHECK_TEXT(path, " ");
    moon_arena_close(&arena);
}

/* Preferred segment with an extra config, "none", or the class of the exception. */
static const char *segment(const char *extra_json) {
    static char line[64];
    struct moon_json *extra = NULL;
    struct moon_exception raised = {0};
    const char *value = NULL;
    size_t length = 0;
    moon_arena_open(&arena, moon_memory_heap());
    if (extra_json)
        moon_json_read(&arena, "test", extra_json, strlen(extra_json), MOON_JSON_PYTHON, &extra, NULL);
    int status = moon_preferred_segment(&arena, &environment, extra, &value, &length, &raised);
    snprintf(line, sizeof line, "%.*s",
             status  ? 64
             : value ? (int)length
                     : 64,
             status  ? raised.type
             : value ? value
                     : "none");
    moon_arena_close(&arena);
    return line;
}

static void the_option_wins_over_the_variable(void) {
    set("MOONCAKE_PREFERRED_SEGMENT", " h:1\t");
    MOON_CHECK_TEXT(segment(NULL), "h:1");
    MOON_CHECK_TEXT(segment("{}"), "h:1");
    MOON_CHECK_TEXT(segment("{\"preferred_segment\":null}"), "h:1");
    MOON_CHECK_TEXT(segment("{\"preferred_segment\":\" c:2 \"}"), "c:2");
    MOON_CHECK_TEXT(segment("{\"preferred_segment\":\"\"}"), "ValueError");
    MOON_CHECK_TEXT(segment("{\"preferred_segment\":5}"), "ValueError");
    set("MOONCAKE_PREFERRED_SEGMENT", "  ");
    MOON_CHECK_TEXT(segment("{}"), "none");
    set(NULL, NULL);
    MOON_CHECK_TEXT(segment(NULL), "none");
}

static void the_host_name_is_stripped_or_the_address(void) {
    const char *value = NULL;
    size_t length = 0;
    set("MOONCAKE_REQUESTER_LOCAL_HOSTNAME", " node1 ");
    moon_requester_hostname(&environment, "10.0.0.9", &value, &length);
    CU_ASSERT(length == 5 && memcmp(value, "node1", 5) == 0);
    set("MOONCAKE_REQUESTER_LOCAL_HOSTNAME", " ");
    moon_requester_hostname(&environment, "10.0.0.9", &value, &length);
    CU_ASSERT(length == 8 && memcmp(value, "10.0.0.9", 8) == 0);
}

/* The staging budget as digits, or "Class: message". */
static const char *staging(const char *ratio) {
    static char line[256];
    struct moon_json *bytes = NULL;
    struct moon_exception raised = {0};
    set(ratio ? "VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO" : NULL, ratio);
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_disk_staging_usable(&arena, &environment, &bytes, &raised);
    snprintf(line, sizeof line, "%s%s%s", status ? raised.type : bytes->bytes, status ? ": " : "",
             status ? raised.message : "");
    moon_arena_close(&arena);
    return line;
}

static void staging_is_a_share_of_1280_mib_and_never_nothing(void) {
    MOON_CHECK_TEXT(staging(NULL), "1207959552");
    MOON_CHECK_TEXT(staging(" 1 "), "1342177280");
    MOON_CHECK_TEXT(staging("1.5"), "2013265920");
    MOON_CHECK_TEXT(staging("0"), "1");
    MOON_CHECK_TEXT(staging("-3"), "1");
    MOON_CHECK_TEXT(staging("abc"), "ValueError: could not convert string to float: 'abc'");
    MOON_CHECK_TEXT(staging("nan"), "ValueError: cannot convert float NaN to integer");
    MOON_CHECK_TEXT(staging("inf"), "OverflowError: cannot convert float infinity to integer");
}

static void sockets_are_named_after_host_or_user(void) {
    moon_arena_open(&arena, moon_memory_heap());
    set(NULL, NULL);
    MOON_CHECK_TEXT(
        moon_lookup_socket(&arena, moon_profile_find("vllm-0.33", NULL), &environment, "0", "node1", "1000", 2),
        "ipc:///tmp/lookup_rpc_port_0_host_node1_dp_rank2");
    set("VLLM_RPC_BASE_PATH", "/run/a");
    MOON_CHECK_TEXT(
        moon_lookup_socket(&arena, moon_profile_find("vllm-0.21", NULL), &environment, "7", "node1", "1000", 0),
        "ipc:///run/a/lookup_rpc_port_7_uid1000_dp_rank0");
    moon_arena_close(&arena);
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void) {
    static const char *const ratios[] = {"0.9", "0", "abc", "inf"};
    for (size_t i = 0; i < sizeof ratios / sizeof ratios[0]; i++)
        for (uint64_t n = 1; n < 100; n++) {
            struct moon_memory_failing failing;
            struct moon_exception raised = {0};
            struct moon_json *bytes = NULL;
            set("VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO", ratios[i]);
            moon_memory_failing_init(&failing, moon_memory_heap(), n);
            moon_arena_open(&arena, &failing.memory);
            int status = moon_disk_staging_usable(&arena, &environment, &bytes, &raised);
            moon_arena_close(&arena);
            MOON_CHECK_INT(failing.held_bytes, 0);
            if (failing.requests < n)
                break;
            MOON_CHECK_INT(status, MOON_ERR_MEMORY);
        }
    struct moon_memory_failing failing;
    struct moon_exception raised = {0};
    const char *path = NULL;
    set(NULL, NULL);
    moon_memory_failing_init(&failing, moon_memory_heap(), 1);
    moon_arena_open(&arena, &failing.memory);
    MOON_CHECK_INT(moon_store_config_path(&arena, &environment, &path, &raised), MOON_ERR_MEMORY);
    moon_arena_close(&arena);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the configuration needs a path", the_configuration_needs_a_path},
        {"the option wins over the variable", the_option_wins_over_the_variable},
        {"the host name is stripped, or the address", the_host_name_is_stripped_or_the_address},
        {"staging is a share of 1280 MiB and never nothing", staging_is_a_share_of_1280_mib_and_never_nothing},
        {"sockets are named after host or user", sockets_are_named_after_host_or_user},
        {"every refused allocation is reported and nothing leaks",
         every_refused_allocation_is_reported_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("ref/config/environment", cases, argc, argv);
}
