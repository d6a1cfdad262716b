/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of store namespaces and of reading fields from the end: written text, text read back, and look-alikes. */
#include "ref/key/field.h"
#include "ref/key/namespace.h"

#include "ref/base/unit.h"

static const struct {
    struct moon_store_namespace space;
    const char *text;
} rows[] = {
    {{MOON_STORE_SHARDED_LBHNC, 4, 1, 0, MOON_KV_LBHNC}, "@store_tp:4@store_pp:1@store_format:tp_shared_lbhnc"},
    {{MOON_STORE_SHARDED_LBNHC, 4, 2, 0, MOON_KV_LBHNC}, "@store_tp:4@store_pp:2@store_format:tp_shared_lbnhc"},
    {{MOON_STORE_MQA, 0, 3, 0, MOON_KV_LBHNC}, "@store_pp:3@store_format:tp_shared_mqa"},
    {{MOON_STORE_ISOLATED, 0, 1, 2, MOON_KV_BLHNC}, "@store_pp:1@store_format:rank_local_tp2_layout_BLHNC"},
    {{MOON_STORE_ISOLATED, 0, 1, 16, MOON_KV_BHLNC}, "@store_pp:1@store_format:rank_local_tp16_layout_BHLNC"},
};

static void spaces_are_written_and_read_back(void) {
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[MOON_STORE_NAMESPACE_BYTES], after_model[256];
        struct moon_store_namespace read;
        MOON_CHECK_INT(moon_store_namespace_write(&rows[i].space, text), strlen(rows[i].text));
        MOON_CHECK_TEXT(text, rows[i].text);
        snprintf(after_model, sizeof after_model, "a@b%s", text);
        MOON_CHECK_INT(moon_store_namespace_read(moon_key_text(after_model), &read), strlen(rows[i].text));
        MOON_CHECK_INT(read.format, rows[i].space.format);
        MOON_CHECK_INT(read.store_tp, rows[i].space.store_tp);
        MOON_CHECK_INT(read.pp, rows[i].space.pp);
        MOON_CHECK_INT(read.tp, rows[i].space.tp);
        MOON_CHECK_INT(read.layout, rows[i].space.layout);
    }
}

static void the_plain_layout_has_no_text(void) {
    const struct moon_store_namespace plain = {.format = MOON_STORE_PLAIN};
    char text[MOON_STORE_NAMESPACE_BYTES];
    MOON_CHECK_INT(moon_store_namespace_write(&plain, text), 0);
    MOON_CHECK_TEXT(text, "");
}

static void the_longest_space_fits_its_buffer(void) {
    const struct moon_store_namespace sharded = {MOON_STORE_SHARDED_LBHNC, INT64_MAX, INT64_MAX, 0, MOON_KV_LBHNC};
    const struct moon_store_namespace isolated = {MOON_STORE_ISOLATED, 0, INT64_MAX, INT64_MAX, MOON_KV_LBHNC};
    char text[MOON_STORE_NAMESPACE_BYTES];
    CU_ASSERT(moon_store_namespace_write(&sharded, text) < MOON_STORE_NAMESPACE_BYTES);
    CU_ASSERT(moon_store_namespace_write(&isolated, text) < MOON_STORE_NAMESPACE_BYTES);
}

static void lookalikes_are_no_space(void) {
    static const char *const texts[] = {
        "",
        "m",
        "@store_format:tp_shared_mqa",
        "@store_pp:@store_format:tp_shared_mqa",
        "@store_pp:0@store_format:tp_shared_mqa",
        "@store_pp:01@store_format:tp_shared_mqa",
        "@store_pp:-1@store_format:tp_shared_mqa",
        "@store_pp:1@store_format:tp_shared_mqa ",
        "@store_pp:1@store_format:tp_shared_lbhnc",
        "@store_tp:0@store_pp:1@store_format:tp_shared_lbhnc",
        "@store_tp:4@store_pp:0@store_format:tp_shared_lbhnc",
        "store_tp:4@store_pp:1@store_format:tp_shared_lbnhc",
        "@store_pp:1@store_format:rank_local_tp0_layout_LBHNC",
        "@store_pp:1@store_format:rank_local_tp2_layout_ABCDE",
        "@store_pp:1@store_format:rank_local_tp_layout_LBHNC",
        "LBHNC",
        "_layout_LBHNC",
        "@store_pp:9223372036854775808@store_format:tp_shared_mqa",
        "@store_pp:99999999999999999999999@store_format:tp_shared_mqa",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct moon_store_namespace space;
        size_t length = moon_store_namespace_read(moon_key_text(texts[i]), &space);
        if (length != 0)
            fprintf(stderr, "\"%s\" was taken for a namespace\n", texts[i]);
        CU_ASSERT_EQUAL(length, 0);
    }
}

static void layouts_are_found_by_name(void) {
    for (int i = 0; i < MOON_KV_LAYOUT_COUNT; i++) {
        enum moon_kv_layout found = MOON_KV_LAYOUT_COUNT;
        MOON_CHECK_INT(moon_kv_layout_find(moon_kv_layout_name((enum moon_kv_layout)i), &found, NULL), 0);
        MOON_CHECK_INT(found, i);
    }
    enum moon_kv_layout found;
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_kv_layout_find("lbhnc", &found, &error), MOON_ERR_SCHEMA);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "BHLNC"));
}

static void numbers_are_taken_from_the_end(void) {
    struct moon_key_text text = moon_key_text("x@dcp17");
    int64_t value = 5;
    CU_ASSERT_FALSE(moon_key_take_number(&text, "@pcp", &value));
    MOON_CHECK_INT(value, 5);
    MOON_CHECK_INT(text.length, 7);
    CU_ASSERT_TRUE(moon_key_take_number(&text, "@dcp", &value));
    MOON_CHECK_INT(value, 17);
    MOON_CHECK_INT(text.length, 1);
    CU_ASSERT_FALSE(moon_key_take_number(&text, "", &value)); /* no digits */
    text = moon_key_text("@dcp9223372036854775807");
    CU_ASSERT_TRUE(moon_key_take_number(&text, "@dcp", &value));
    CU_ASSERT_EQUAL(value, INT64_MAX);
    CU_ASSERT_FALSE(moon_key_take_label(&text, "a"));
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"each namespace is written and read back", spaces_are_written_and_read_back},
        {"the plain layout has no namespace", the_plain_layout_has_no_text},
        {"the longest namespace fits its buffer", the_longest_space_fits_its_buffer},
        {"a text that only resembles a namespace is none", lookalikes_are_no_space},
        {"KV cache layouts are found by their exact name", layouts_are_found_by_name},
        {"numbers are taken from the end with their label", numbers_are_taken_from_the_end},
        {NULL, NULL}};
    return moon_unit_main("namespace", cases, argc, argv);
}
