/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of equality and of the first difference. */
#include "ref/base/json.h"
#include "ref/base/unit.h"

static struct moon_json *read_into(struct moon_arena *arena, const char *text) {
    struct moon_json *root = NULL;
    if (text)
        MOON_CHECK_INT(moon_json_read(arena, "t.json", text, strlen(text), MOON_JSON_PYTHON, &root, NULL), 0);
    return root;
}

static void describe(const struct moon_json *value, struct moon_text *text) {
    if (!value) {
        moon_text_string(text, "nothing");
        return;
    }
    moon_json_path(value, text);
    moon_text_char(text, '=');
    moon_json_write(value, MOON_JSON_COMPACT, text);
}

/* `expected` is "" for equal, else "path=value path=value" with "nothing" for a side that lacks it. */
static void check(const char *a, const char *b, const char *expected) {
    struct moon_arena arena;
    struct moon_text seen;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&seen, moon_memory_heap());
    struct moon_json *in_a_tree = read_into(&arena, a), *in_b_tree = read_into(&arena, b);
    const struct moon_json *in_a = NULL, *in_b = NULL;
    if (moon_json_difference(in_a_tree, in_b_tree, &in_a, &in_b)) {
        describe(in_a, &seen);
        moon_text_char(&seen, ' ');
        describe(in_b, &seen);
    }
    MOON_CHECK_TEXT(moon_text_value(&seen), expected);
    MOON_CHECK_INT(moon_json_equal(in_a_tree, in_b_tree), *expected == '\0');
    MOON_CHECK_INT(moon_json_equal(in_b_tree, in_a_tree), *expected == '\0');
    moon_text_close(&seen);
    moon_arena_close(&arena);
}

static void scalars_are_equal_by_value(void) {
    check("null", "null", "");
    check("true", "true", "");
    check("true", "false", "$=true $=false");
    check("12", "12", "");
    check("12", "13", "$=12 $=13");
    check("0", "-0", "");
    check("18446744073709551616", "18446744073709551616", "");
    check("18446744073709551616", "18446744073709551617", "$=18446744073709551616 $=18446744073709551617");
    check("18446744073709551616", "184467440737095516160", "$=18446744073709551616 $=184467440737095516160");
    check("1", "18446744073709551616", "$=1 $=18446744073709551616");
    check("18446744073709551616", "1", "$=18446744073709551616 $=1");
    check("1.50", "15e-1", "");
    check("1.5", "1.25", "$=1.5 $=1.25");
    check("0.0", "-0.0", "");
    check("NaN", "NaN", "");
    check("NaN", "1.0", "$=NaN $=1.0");
    check("1.0", "NaN", "$=1.0 $=NaN");
    check("\"a\\u0000b\"", "\"a\\u0000b\"", "");
    check("\"a\\u0000b\"", "\"a\\u0000c\"", "$=\"a\\u0000b\" $=\"a\\u0000c\"");
    check("\"a\"", "\"ab\"", "$=\"a\" $=\"ab\"");
}

static void types_never_mix(void) {
    check("1", "1.0", "$=1 $=1.0");
    check("1", "true", "$=1 $=true");
    check("0", "false", "$=0 $=false");
    check("null", "false", "$=null $=false");
    check("\"1\"", "1", "$=\"1\" $=1");
    check("[]", "{}", "$=[] $={}");
}

static void nothing_equals_nothing_only(void) {
    check(NULL, NULL, "");
    check(NULL, "null", "nothing $=null");
    check("[1]", NULL, "$=[1] nothing");
}

static void the_order_of_members_does_not_matter(void) {
    check("{}", "{}", "");
    check("{\"a\":1,\"b\":[{\"c\":2,\"d\":3}],\"e\":{}}", "{\"e\":{},\"b\":[{\"d\":3,\"c\":2}],\"a\":1}", "");
    check("{\"a\":1,\"b\":2}", "{\"b\":3,\"a\":1}", "$.b=2 $.b=3");
    check("{\"a\":1,\"b\":2}", "{\"a\":1}", "$.b=2 nothing");
    check("{\"a\":1}", "{\"b\":2,\"a\":1}", "nothing $.b=2");
    check("{}", "{\"b\":2}", "nothing $.b=2");
    check("{\"a\":1}", "{\"b\":1}", "$.a=1 nothing");
    check("{\"a\":1}", "{}", "$.a=1 nothing");
}

static void the_order_of_elements_does(void) {
    check("[]", "[]", "");
    check("[1,2,[3]]", "[1,2,[3]]", "");
    check("[1,2]", "[2,1]", "$[0]=1 $[0]=2");
    check("[1,2]", "[1]", "$[1]=2 nothing");
    check("[1]", "[1,2]", "nothing $[1]=2");
    check("[]", "[1]", "nothing $[0]=1");
    check("[1]", "[]", "$[0]=1 nothing");
    check("[[1],[2]]", "[[1],[2],[3]]", "nothing $[2]=[3]");
}

static void the_first_difference_is_the_first_in_the_order_of_a(void) {
    check("{\"x\":{\"y\":[0,1]},\"z\":5}", "{\"z\":6,\"x\":{\"y\":[0,2]}}", "$.x.y[1]=1 $.x.y[1]=2");
    check("{\"x\":{\"y\":[0]},\"z\":5}", "{\"z\":6,\"x\":{\"y\":[0],\"w\":1}}", "nothing $.x.w=1");
    check("[[[]],1]", "[[[],7],2]", "nothing $[0][1]=7");
}

static void parts_of_trees_compare_as_if_they_were_alone(void) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_json *root =
        read_into(&arena, "{\"p\":{\"a\":[1]},\"q\":{\"a\":[1]},\"r\":{\"a\":[2]},\"n\":1,\"m\":1}");
    const struct moon_json *in_a, *in_b;
    CU_ASSERT(moon_json_equal(moon_json_member(root, "p"), moon_json_member(root, "q")));
    CU_ASSERT(moon_json_equal(moon_json_member(root, "n"), moon_json_member(root, "m")));
    CU_ASSERT(moon_json_difference(moon_json_member(root, "p"), moon_json_member(root, "r"), &in_a, &in_b));
    MOON_CHECK_INT(in_a->integer, 1);
    MOON_CHECK_INT(in_b->integer, 2);
    moon_arena_close(&arena);
}

static void objects_with_many_members_in_opposite_order_are_compared(void) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_json *up = moon_json_object(&arena), *down = moon_json_object(&arena);
    char name[16];
    for (int i = 0; i < 50000; i++) {
        snprintf(name, sizeof name, "%d", i);
        moon_json_set(&arena, up, name, moon_json_int(&arena, i));
        snprintf(name, sizeof name, "%d", 49999 - i);
        moon_json_set(&arena, down, name, moon_json_int(&arena, 49999 - i));
    }
    CU_ASSERT(moon_json_equal(up, down));
    moon_json_set(&arena, down, "extra", moon_json_null(&arena));
    CU_ASSERT(!moon_json_equal(up, down));
    moon_arena_close(&arena);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"scalars are equal by value", scalars_are_equal_by_value},
        {"types never mix", types_never_mix},
        {"nothing equals nothing only", nothing_equals_nothing_only},
        {"the order of members does not matter", the_order_of_members_does_not_matter},
        {"the order of elements does", the_order_of_elements_does},
        {"the first difference is the first in the order of a", the_first_difference_is_the_first_in_the_order_of_a},
        {"parts of trees compare as if they were alone", parts_of_trees_compare_as_if_they_were_alone},
        {"objects with many members in opposite order are compared",
         objects_with_many_members_in_opposite_order_are_compared},
        {0},
    };
    return moon_unit_main("json_compare", cases, argc, argv);
}
