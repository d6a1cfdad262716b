/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of explanations: every part is named with its requirement, and ambiguity is said first. */
#include "ref/key/explain.h"

#include "ref/base/unit.h"

#define H32  "0123456789abcdef0123456789abcdef"
#define TAIL "@tp_rank:1@pcp2@dcp3@pp_rank:4@group:5@"

static void check_holds(const char *text, const char *part) {
    if (!strstr(text, part))
        fprintf(stderr, "missing \"%s\" in\n%s\n", part, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
}

static void each_part_has_its_rule(void) {
    static const struct {
        const char *profile;
        const char *parts[6];
    } rows[] = {
        {"0.21", {"key of vllm-0.21 (0.21.0)", "m@tp_rank:1@pcp2@dcp3@pp_rank:4@ab", "KEY-005", "KEY-011", "KEY-023"}},
        {"0.22", {"KEY-016", "0.22 to 0.28", "@group:5@ab"}},
        {"0.29", {"cache_prefix     team", "KEY-008", "among the transferable groups, 0.29", "KEY-015"}},
        {"0.33", {"store_namespace  @store_pp:1", "KEY-010", "prefix-cacheable", "team@m@store_pp:1", "LAYOUT-016"}},
    };
    const struct moon_pool_key key = {
        moon_key_text("team"), moon_key_text("m"), moon_key_text("@store_pp:1"), 1, 2, 3, 4, 5};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_text out;
        moon_text_open(&out, moon_memory_heap());
        moon_key_explain(moon_profile_find(rows[i].profile, NULL), &key, moon_key_text("ab"), &out);
        for (size_t k = 0; k < 6 && rows[i].parts[k]; k++)
            check_holds(moon_text_value(&out), rows[i].parts[k]);
        moon_text_close(&out);
    }
}

static void verdicts_come_first(void) {
    static const struct {
        const char *key, *verdict, *detail;
    } rows[] = {
        {"m" TAIL H32, "one identity gives this key\nreading 1: vllm-0.22 to vllm-0.33, no '@' in a name",
         "1 x 16 bytes (XXH3-128)\n"},
        {"a@b" TAIL H32 H32, "AMBIGUOUS: 2 identities give this key", "1 x 32 bytes (SHA-256) or 2 x 16 bytes"},
        {"a/b" TAIL H32, "no release writes this key", "only if the model's name was not cut at '/'"},
        {"a@@@@@@@@@@@@@@@@@@b" TAIL H32, "AMBIGUOUS: 19 identities", "3 more readings are not shown"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_key_readings readings;
        struct moon_text out;
        moon_text_open(&out, moon_memory_heap());
        MOON_CHECK_INT(moon_key_parse(NULL, moon_key_text(rows[i].key), &readings, NULL), 0);
        moon_key_explain_readings(&readings, &out);
        MOON_CHECK_INT(strncmp(moon_text_value(&out), rows[i].verdict, strlen(rows[i].verdict)), 0);
        check_holds(moon_text_value(&out), rows[i].detail);
        moon_text_close(&out);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"each part of a key is explained with its rule", each_part_has_its_rule},
        {"the verdict on a key comes first", verdicts_come_first},
        {NULL, NULL}};
    return moon_unit_main("explain", cases, argc, argv);
}
