/* SPDX-License-Identifier: Apache-2.0 */
/* Tests: loading mooncake_config.json as each release does. */
#include "ref/config/store_config.h"

#include "ref/base/unit.h"

#include <stdlib.h>

static struct moon_arena arena;

/* What a release makes of a file: the fields as compact JSON, or "Class: message". */
static const char *load_bytes(const char *release, const char *file, size_t length) {
    static char line[4096];
    const struct moon_json *document = NULL;
    struct moon_store_config config;
    struct moon_exception raised = {0};
    struct moon_error error = {0};
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_store_config_read(&arena, moon_profile_find(release, NULL), "f.json", file, length, &document,
                                        &config, &raised, &error);
    if (status == MOON_ERR_REFUSED) {
        snprintf(line, sizeof line, "%s: %s", raised.type, raised.message);
    } else if (status) {
        snprintf(line, sizeof line, "status %d", status);
    } else {
        struct moon_text text;
        moon_text_open(&text, moon_memory_heap());
        moon_json_write(moon_store_config_json(&arena, &config), MOON_JSON_COMPACT, &text);
        snprintf(line, sizeof line, "%s", moon_text_value(&text));
        moon_text_close(&text);
    }
    moon_arena_close(&arena);
    return line;
}

static const char *load(const char *release, const char *file) {
    return load_bytes(release, file, strlen(file));
}

static void an_empty_object_gives_the_defaults_of_the_release(void) {
    MOON_CHECK_TEXT(
        load("vllm-0.21", "{}"),
        "{\"metadata_server\":\"\",\"master_server_address\":\"\",\"protocol\":\"rdma\",\"device_name\":\"\","
        "\"global_segment_size\":4294967296,\"local_buffer_size\":4294967296}");
    MOON_CHECK_TEXT(
        load("vllm-0.27", "{}"),
        "{\"metadata_server\":\"\",\"master_server_address\":\"\",\"protocol\":\"rdma\",\"device_name\":\"\","
        "\"mode\":\"embedded\",\"global_segment_size\":4294967296,\"local_buffer_size\":4294967296,"
        "\"enable_offload\":false}");
    MOON_CHECK_TEXT(
        load("vllm-0.33", "{}"),
        "{\"metadata_server\":\"\",\"master_server_address\":\"\",\"protocol\":\"rdma\",\"device_name\":\"\","
        "\"mode\":\"embedded\",\"global_segment_size\":4294967296,\"local_buffer_size\":4294967296,"
        "\"enable_offload\":false,\"tenant_id\":\"default\"}");
}

static void connection_members_are_passed_through_and_large_integers_become_text(void) {
    MOON_CHECK_TEXT(load("vllm-0.21",
                         "{\"metadata_server\":null,\"master_server_address\":[9007199254740992,9007199254740993,"
                         "{\"a\":-9007199254740993}],\"protocol\":1.5,\"device_name\":123456789012345678901,"
                         "\"global_segment_size\":true,\"local_buffer_size\":0}"),
                    "{\"metadata_server\":null,\"master_server_address\":[9007199254740992,\"9007199254740993\","
                    "{\"a\":\"-9007199254740993\"}],\"protocol\":1.5,\"device_name\":\"123456789012345678901\","
                    "\"global_segment_size\":true,\"local_buffer_size\":0}");
}

static void errors_come_in_the_order_of_the_release(void) {
    MOON_CHECK_TEXT(
        load("vllm-0.33", "{\"mode\":\"z\",\"tenant_id\":5,\"local_buffer_size\":\"y\",\"global_segment_size\":\"x\"}"),
        "ValueError: Invalid format: 'x'");
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"mode\":\"z\",\"tenant_id\":5,\"local_buffer_size\":\"y\"}"),
                    "ValueError: Invalid format: 'y'");
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"mode\":\"z\",\"tenant_id\":5,\"local_buffer_size\":0}"),
                    "TypeError: tenant_id must be a string or null, got int: 5");
    MOON_CHECK_TEXT(load("vllm-0.27", "{\"mode\":\"z\",\"tenant_id\":5,\"local_buffer_size\":0}"),
                    "ValueError: unknown Mooncake mode: 'z'");
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"mode\":\"standalone-store\",\"local_buffer_size\":0}"),
                    "ValueError: local_buffer_size must be > 0");
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"mode\":\"standalone-store\"}"),
                    "ValueError: standalone-store mode requires global_segment_size == 0");
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"global_segment_size\":false}"),
                    "ValueError: embedded mode requires global_segment_size > 0");
}

static void a_negative_segment_is_loaded_in_embedded_mode_only(void) {
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.33", "{\"global_segment_size\":-5}"), "\"global_segment_size\":-5"));
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"mode\":\"standalone-store\",\"global_segment_size\":-5}"),
                    "ValueError: standalone-store mode requires global_segment_size == 0");
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.33", "{\"mode\":\"standalone-store\",\"global_segment_size\":\"0GB\"}"),
                                  "standalone-store"));
}

static void values_in_messages_are_written_as_python_writes_them(void) {
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"mode\":[null,\"a'b\",{\"k\":1e16}]}"),
                    "ValueError: unknown Mooncake mode: [None, \"a'b\", {'k': 1e+16}]");
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"tenant_id\":{\"a\":true}}"),
                    "TypeError: tenant_id must be a string or null, got dict: {'a': True}");
}

static void tenants_are_stripped_and_blank_means_default(void) {
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.28", "{\"tenant_id\":\"\\u3000 a b\\n\"}"), "\"tenant_id\":\"a b\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.28", "{\"tenant_id\":\" \\t\"}"), "\"tenant_id\":\"default\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.28", "{\"tenant_id\":null}"), "\"tenant_id\":\"default\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.28", "{\"tenant_id\":\"a\"}"), "\"tenant_id\":\"a\""));
}

static void offload_is_the_truth_of_its_value(void) {
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.33", "{\"enable_offload\":\"false\"}"), "\"enable_offload\":true"));
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.33", "{\"enable_offload\":[]}"), "\"enable_offload\":false"));
}

static void other_documents_than_objects_have_no_get(void) {
    MOON_CHECK_TEXT(load("vllm-0.33", "[]"), "AttributeError: 'list' object has no attribute 'get'");
    MOON_CHECK_TEXT(load("vllm-0.21", "null"), "AttributeError: 'NoneType' object has no attribute 'get'");
    MOON_CHECK_TEXT(load("vllm-0.21", "1.5"), "AttributeError: 'float' object has no attribute 'get'");
}

static void broken_files_raise_before_any_field_is_read(void) {
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.33", "{} x"), "JSONDecodeError: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.33", ""), "JSONDecodeError: "));
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.33", "\xEF\xBB\xBF{}"), "JSONDecodeError: "));
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"a\":\"\xFF\"}"),
                    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 6");
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.33", "{\n\"a\":\"\xED\xA0\x80\"}"), "UnicodeDecodeError: "));
    MOON_CHECK_TEXT(load("vllm-0.33", "{\"protocol\":\"tcp\",\"protocol\":\"x\",\"global_segment_size\":\"0.5\"}"),
                    "ValueError: embedded mode requires global_segment_size > 0");
}

static void the_place_of_a_wrong_byte_is_told(void) {
    const struct moon_json *document = NULL;
    struct moon_store_config config;
    struct moon_exception raised = {0};
    struct moon_error error = {0};
    moon_arena_open(&arena, moon_memory_heap());
    moon_store_config_read(&arena, moon_profile_find("vllm-0.33", NULL), "f.json", "{\n \xFF", 4, &document, &config,
                           &raised, &error);
    MOON_CHECK_TEXT(error.where, "f.json:2:2");
    moon_arena_close(&arena);
}

static void integers_of_more_than_4300_digits_are_refused(void) {
    char *file = malloc(5000);
    size_t start = (size_t)sprintf(file, "{\"a\":[{\"b\":-");
    memset(file + start, '7', 4301);
    strcpy(file + start + 4301, "}]}");
    MOON_CHECK_TEXT(
        load("vllm-0.33", file),
        "ValueError: Exceeds the limit (4300 digits) for integer string conversion: value has 4301 digits; use "
        "sys.set_int_max_str_digits() to increase the limit");
    strcpy(file + start + 4300, "}]}");
    CU_ASSERT_PTR_NOT_NULL(strstr(load("vllm-0.33", file), "\"mode\":\"embedded\""));
    free(file);
}

static void a_document_that_is_too_deep_is_left_open(void) {
    char file[400];
    memset(file, '[', 200);
    memset(file + 200, ']', 200);
    char expected[32];
    snprintf(expected, sizeof expected, "status %d", MOON_ERR_LIMIT);
    MOON_CHECK_TEXT(load_bytes("vllm-0.33", file, sizeof file), expected);
}

static void members_are_known_by_release(void) {
    MOON_CHECK_INT(moon_store_config_since("metadata_server"), 21);
    MOON_CHECK_INT(moon_store_config_since("mode"), 22);
    MOON_CHECK_INT(moon_store_config_since("enable_offload"), 22);
    MOON_CHECK_INT(moon_store_config_since("tenant_id"), 28);
    MOON_CHECK_INT(moon_store_config_since("Mode"), 0);
    MOON_CHECK_TEXT(moon_store_config_names(moon_profile_find("vllm-0.28", NULL))[0], "tenant_id");
    MOON_CHECK_TEXT(moon_store_config_names(moon_profile_find("vllm-0.27", NULL))[0], "mode");
    MOON_CHECK_TEXT(moon_store_config_names(moon_profile_find("vllm-0.21", NULL))[0], "metadata_server");
}

static void every_refused_allocation_is_reported_and_nothing_leaks(void) {
    static const char *const files[] = {
        "{\"global_segment_size\":\"1GB\",\"local_buffer_size\":1.5,\"tenant_id\":\"a\",\"protocol\":[1,2]}",
        "{}",
        "{\"mode\":[1,\"x\"]}",
        "{\"tenant_id\":[1,\"x\"]}",
        "{\"global_segment_size\":\"x\"}",
        "{\"local_buffer_size\":\"x\"}",
        "{\"local_buffer_size\":0}",
        "{\"global_segment_size\":0}",
        "[]",
        "[",
        "\xFF",
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (uint64_t n = 1; n < 200; n++) {
            struct moon_memory_failing failing;
            struct moon_exception raised = {0};
            struct moon_store_config config;
            const struct moon_json *document = NULL;
            moon_memory_failing_init(&failing, moon_memory_heap(), n);
            moon_arena_open(&arena, &failing.memory);
            int status = moon_store_config_read(&arena, moon_profile_find("vllm-0.33", NULL), "f", files[i],
                                                strlen(files[i]), &document, &config, &raised, NULL);
            if (status == MOON_OK && !moon_store_config_json(&arena, &config))
                status = MOON_ERR_MEMORY;
            moon_arena_close(&arena);
            MOON_CHECK_INT(failing.held_bytes, 0);
            if (failing.requests < n)
                break;
            MOON_CHECK_INT(status, MOON_ERR_MEMORY);
        }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"an empty object gives the defaults of the release", an_empty_object_gives_the_defaults_of_the_release},
        {"connection members are passed through and large integers become text",
         connection_members_are_passed_through_and_large_integers_become_text},
        {"errors come in the order of the release", errors_come_in_the_order_of_the_release},
        {"a negative segment is loaded in embedded mode only", a_negative_segment_is_loaded_in_embedded_mode_only},
        {"values in messages are written as Python writes them", values_in_messages_are_written_as_python_writes_them},
        {"tenants are stripped and blank means default", tenants_are_stripped_and_blank_means_default},
        {"offload is the truth of its value", offload_is_the_truth_of_its_value},
        {"other documents than objects have no get", other_documents_than_objects_have_no_get},
        {"broken files raise before any field is read", broken_files_raise_before_any_field_is_read},
        {"the place of a wrong byte is told", the_place_of_a_wrong_byte_is_told},
        {"integers of more than 4300 digits are refused", integers_of_more_than_4300_digits_are_refused},
        {"a document that is too deep is left open", a_document_that_is_too_deep_is_left_open},
        {"members are known by release", members_are_known_by_release},
        {"every refused allocation is reported and nothing leaks",
         every_refused_allocation_is_reported_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("ref/config/store_config", cases, argc, argv);
}
