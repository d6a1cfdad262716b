/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of suggestions. */
#include "ref/base/suggest.h"
#include "ref/base/unit.h"

static const char *const names[] = {
    "global_segment_size", "local_buffer_size", "protocol", "device_name", "mode", "tp", NULL};

static void each_kind_of_slip_is_found(void) {
    MOON_CHECK_TEXT(moon_suggest("protocol", names), "protocol");
    MOON_CHECK_TEXT(moon_suggest("protocl", names), "protocol");   /* left out */
    MOON_CHECK_TEXT(moon_suggest("prottocol", names), "protocol"); /* doubled */
    MOON_CHECK_TEXT(moon_suggest("protokol", names), "protocol");  /* replaced */
    MOON_CHECK_TEXT(moon_suggest("porotcol", names), "protocol");  /* two swaps of neighbours */
    MOON_CHECK_TEXT(moon_suggest("rpo", (const char *const[]){"pro", NULL}), "pro");
}

static void case_and_dashes_do_not_matter(void) {
    MOON_CHECK_TEXT(moon_suggest("Global-Segment-Size", names), "global_segment_size");
    MOON_CHECK_TEXT(moon_suggest("LOCAL_BUFFERSIZE", names), "local_buffer_size");
    MOON_CHECK_TEXT(moon_suggest("a_b", (const char *const[]){"A-B", NULL}), "A-B");
}

static void what_is_too_far_is_not_suggested(void) {
    CU_ASSERT_PTR_NULL(moon_suggest("prxtxcxl", names)); /* three edits in eight letters */
    CU_ASSERT_PTR_NULL(moon_suggest("mxdx", names));     /* two in four */
    MOON_CHECK_TEXT(moon_suggest("mxde", names), "mode");
    MOON_CHECK_TEXT(moon_suggest("t", names), "tp"); /* at least one edit is allowed */
    CU_ASSERT_PTR_NULL(moon_suggest("", (const char *const[]){"ab", NULL}));
    /* at most four edits, however long the word */
    MOON_CHECK_TEXT(moon_suggest("glxbxl_sxgmxnt_size", names), "global_segment_size");
    CU_ASSERT_PTR_NULL(moon_suggest("glxbxl_sxgmxnt_sixe", names));
    CU_ASSERT_PTR_NULL(moon_suggest("x", (const char *const[]){NULL}));
}

static void the_first_of_equals_and_the_nearest_win(void) {
    MOON_CHECK_TEXT(moon_suggest("cat", (const char *const[]){"cot", "cut", NULL}), "cot");
    MOON_CHECK_TEXT(moon_suggest("worker", (const char *const[]){"works", "workers", NULL}), "workers");
}

static void long_words_are_left_alone(void) {
    char word[80], near[80];
    memset(word, 'a', sizeof word);
    memset(near, 'a', sizeof near);
    const char *const one[] = {near, NULL};
    near[0] = 'b';
    word[64] = near[64] = '\0';
    CU_ASSERT_PTR_EQUAL(moon_suggest(word, one), near);
    near[64] = 'a';
    near[65] = '\0';
    CU_ASSERT_PTR_NULL(moon_suggest(word, one));
    near[64] = '\0';
    word[64] = 'a';
    word[65] = '\0';
    CU_ASSERT_PTR_NULL(moon_suggest(word, one));
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"each kind of slip is found", each_kind_of_slip_is_found},
        {"case and dashes do not matter", case_and_dashes_do_not_matter},
        {"what is too far is not suggested", what_is_too_far_is_not_suggested},
        {"the first of equals and the nearest win", the_first_of_equals_and_the_nearest_win},
        {"long words are left alone", long_words_are_left_alone},
        {0},
    };
    return moon_unit_main("suggest", cases, argc, argv);
}
