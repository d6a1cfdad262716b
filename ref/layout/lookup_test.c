/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of lookups: namespaces and keys in the order in which each release asks for them. */
#include "ref/layout/lookup.h"

#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"
#include "ref/layout/reach.h"

static const struct moon_profile *release(const char *name) {
    return moon_profile_find(name, NULL);
}

static struct moon_layout_model engine(const struct moon_layout_group *groups, size_t count, int64_t tp,
                                       int64_t heads) {
    struct moon_layout_model model = model_of(groups, count, tp, heads);
    model.scheduler_block_tokens = model.hash_block_tokens = groups[0].block_tokens;
    return model;
}

/* Namespaces of group 0 as "T.pcp.dcp.pp ...". */
static const char *spaces(char out[512], const char *profile, const struct moon_layout_model *model) {
    struct moon_store_selection selection;
    struct moon_namespaces walk;
    struct moon_pool_key key;
    size_t used = 0;
    out[0] = '\0';
    moon_store_select(release(profile), model, &selection);
    moon_namespaces_open(&walk, release(profile), model, &selection, 0);
    while (moon_namespaces_next(&walk, &key))
        used += (size_t)snprintf(out + used, 512 - used, "%s%d.%d.%d.%d", used ? " " : "", (int)key.tp_rank,
                                 (int)key.pcp_rank, (int)key.dcp_rank, (int)key.pp_rank);
    CU_ASSERT_FALSE(moon_namespaces_next(&walk, &key));
    return out;
}

static void replicas_are_asked_once(void) {
    char out[512];
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0), mla = group_of(MOON_SPEC_MLA, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 4, 2);
    model.pp = 2;
    MOON_CHECK_TEXT(spaces(out, "0.33", &model), "0.0.0.0 0.0.0.1 1.0.0.0 1.0.0.1");
    MOON_CHECK_TEXT(spaces(out, "0.24", &model), "0.0.0.0 0.0.0.1 1.0.0.0 1.0.0.1");
    model = engine(&full, 1, 4, 8);
    MOON_CHECK_TEXT(spaces(out, "0.33", &model), "0.0.0.0 1.0.0.0 2.0.0.0 3.0.0.0");
    model = engine(&mla, 1, 4, 8);
    MOON_CHECK_TEXT(spaces(out, "0.33", &model), "0.0.0.0");
}

static void dcp_asks_for_every_rank_from_025_on(void) {
    char out[512];
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 4, 8);
    model.dcp = 2;
    MOON_CHECK_TEXT(spaces(out, "0.33", &model), "0.0.0.0 1.0.1.0 2.0.0.0 3.0.1.0");
    MOON_CHECK_TEXT(spaces(out, "0.25", &model), "0.0.0.0 1.0.1.0 2.0.0.0 3.0.1.0");
    MOON_CHECK_TEXT(spaces(out, "0.24", &model), "0.0.0.0 1.0.0.0 2.0.0.0 3.0.0.0");
}

static void pcp_is_outermost_from_025_on(void) {
    char out[512];
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 2, 8);
    model.pcp = 2;
    MOON_CHECK_TEXT(spaces(out, "0.33", &model), "0.0.0.0 1.0.0.0 0.1.0.0 1.1.0.0");
    MOON_CHECK_TEXT(spaces(out, "0.24", &model), "0.0.0.0 1.0.0.0");
}

static void heads_that_do_not_divide_are_asked_short_up_to_026(void) {
    char out[512];
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    const struct moon_layout_model model = engine(&full, 1, 6, 4);
    MOON_CHECK_TEXT(spaces(out, "0.26", &model), "0.0.0.0 1.0.0.0 2.0.0.0 3.0.0.0");
    MOON_CHECK_TEXT(spaces(out, "0.27", &model), "0.0.0.0 1.0.0.0 2.0.0.0 3.0.0.0 4.0.0.0 5.0.0.0");
}

static void shards_come_before_stages(void) {
    char out[512];
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 2, 8);
    model.pp = 2;
    model.store_tp_size = (struct moon_setting){.type = MOON_SETTING_INTEGER, .text = moon_key_text("4")};
    MOON_CHECK_TEXT(spaces(out, "0.33", &model), "0.0.0.0 0.0.0.1 1.0.0.0 1.0.0.1 2.0.0.0 2.0.0.1 3.0.0.0 3.0.0.1");
}

struct collected {
    char text[4096];
    size_t used;
};

enum { HASHES = 8 };
/* Hash i is two bytes of value i, so keys end in 0000, 0101, ... */
static const struct moon_hashes *hashes(void) {
    static uint8_t bytes[HASHES * 2];
    static const struct moon_hashes all = {bytes, 2, HASHES};
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i / 2);
    return &all;
}

static void asked(struct collected *all, const char *profile, const struct moon_layout_model *model, int64_t tokens) {
    struct moon_store_selection selection;
    struct moon_key_list list;
    struct moon_text key;
    *all = (struct collected){.used = 0};
    moon_key_list_open(&list, moon_memory_heap());
    moon_text_open(&key, moon_memory_heap());
    moon_store_select(release(profile), model, &selection);
    moon_lookup_keys(release(profile), model, &selection, hashes(), tokens, &list);
    CU_ASSERT_FALSE(list.failed);
    for (size_t i = 0; i < list.count; i++) {
        moon_text_clear(&key);
        moon_key_list_write(&list, i, &key);
        all->used += (size_t)snprintf(all->text + all->used, sizeof all->text - all->used, "%s\n", key.data);
    }
    moon_text_close(&key);
    moon_key_list_close(&list);
}

static void keys_come_by_group_chunk_and_namespace(void) {
    struct collected all;
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_MAMBA, 16, 0)};
    struct moon_layout_model model = engine(groups, 2, 2, 1);
    asked(&all, "0.33", &model, 32);
    MOON_CHECK_TEXT(all.text, "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@0000\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@0101\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:1@0000\n"
                              "m@tp_rank:1@pcp0@dcp0@pp_rank:0@group:1@0000\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:1@0101\n"
                              "m@tp_rank:1@pcp0@dcp0@pp_rank:0@group:1@0101\n");
}

static void coarse_and_masked_chunks_are_asked_by_release(void) {
    struct collected all;
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 32, 0), group_of(MOON_SPEC_SLIDING_WINDOW, 16, 17)};
    struct moon_layout_model model = engine(groups, 2, 1, 1);
    model.hash_block_tokens = 16;
    asked(&all, "0.33", &model, 32);
    MOON_CHECK_TEXT(all.text, "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@0101\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:1@0101\n");
    asked(&all, "0.23", &model, 32);
    MOON_CHECK_TEXT(all.text, "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@00000101\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:1@0000\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:1@0101\n");
}

static void fine_grained_lookups_ask_for_every_hash_block(void) {
    struct collected all;
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_MAMBA, 32, 0)};
    struct moon_layout_model model = engine(groups, 2, 1, 1);
    model.scheduler_block_tokens = 32;
    asked(&all, "0.33", &model, 48);
    MOON_CHECK_TEXT(all.text, "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@0000\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@0101\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@0202\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:1@0000\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:1@0101\n"
                              "m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:1@0202\n");
}

static void fine_grained_lookups_refuse_wide_windows_up_to_029(void) {
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 16, 0), group_of(MOON_SPEC_MAMBA, 32, 0),
                                         group_of(MOON_SPEC_SLIDING_WINDOW, 32, 17)};
    struct moon_layout_model model = engine(groups, 3, 1, 1);
    struct moon_error error = {0};
    model.scheduler_block_tokens = 32;
    MOON_CHECK_INT(moon_fine_check(release("0.29"), &model, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "AssertionError");
    MOON_CHECK_TEXT(error.message, "SlidingWindowManager does not support fine-grained (partial) cache hits");
    MOON_CHECK_INT(moon_fine_check(release("0.30"), &model, NULL), 0);
    MOON_CHECK_INT(moon_fine_check(release("0.26"), &model, NULL), 0);
    groups[2].block_tokens = 16;
    MOON_CHECK_INT(moon_fine_check(release("0.29"), &model, NULL), 0);
}

/* Number n of the hashes is that of the n-th chunk of the walk, so answers find their chunks. */
static void chunks_and_hashes_have_the_same_numbers(void) {
    struct moon_layout_group groups[] = {group_of(MOON_SPEC_FULL, 32, 0), group_of(MOON_SPEC_SLIDING_WINDOW, 16, 17)};
    struct moon_layout_model model = engine(groups, 2, 2, 1);
    model.hash_block_tokens = 16;
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    for (size_t i = 0; i < count; i++) {
        struct moon_store_selection selection;
        struct moon_key_list list;
        struct moon_asked walk;
        struct moon_chunk chunk;
        size_t group, number = 0;
        model.group_count = all[i].coordinator ? 2 : 1;
        model.hash_block_tokens = all[i].coordinator ? 16 : 32;
        moon_key_list_open(&list, moon_memory_heap());
        moon_store_select(&all[i], &model, &selection);
        moon_lookup_keys(&all[i], &model, &selection, hashes(), 64, &list);
        moon_asked_open(&walk, &all[i], &model, 64, HASHES);
        while (moon_asked_next(&walk, &group, &chunk)) {
            char digits[3];
            size_t first = 0;
            snprintf(digits, sizeof digits, "%02x", (unsigned)(chunk.first_hash + chunk.hash_count - 1));
            while (first < list.count && list.pairs[first].hash != number)
                first++;
            CU_ASSERT_FATAL(first < list.count);
            struct moon_key_text text = moon_key_list_hash_text(&list, first);
            CU_ASSERT(memcmp(text.bytes + text.length - 2, digits, 2) == 0);
            number++;
        }
        MOON_CHECK_INT(number, list.hash_count);
        moon_key_list_close(&list);
    }
}

static void chunks_without_a_hash_are_not_asked_for(void) {
    struct collected all;
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    const struct moon_layout_model model = engine(&full, 1, 1, 1);
    asked(&all, "0.33", &model, 16 * (HASHES + 3));
    int lines = 0;
    for (size_t i = 0; i < all.used; i++)
        lines += all.text[i] == '\n';
    MOON_CHECK_INT(lines, HASHES);
}

static void the_first_release_replaces_text(void) {
    static const struct {
        const char *model;
        const char *keys;
    } rows[] = {
        {"m", "m@tp_rank:0@pcp0@dcp0@pp_rank:0@0000\nm@tp_rank:0@pcp0@dcp0@pp_rank:0@0101\n"
              "m@tp_rank:1@pcp0@dcp0@pp_rank:0@0000\nm@tp_rank:1@pcp0@dcp0@pp_rank:0@0101\n"
              "m@tp_rank:0@pcp0@dcp0@pp_rank:1@0000\nm@tp_rank:0@pcp0@dcp0@pp_rank:1@0101\n"
              "m@tp_rank:1@pcp0@dcp0@pp_rank:1@0000\nm@tp_rank:1@pcp0@dcp0@pp_rank:1@0101\n"},
        /* The name itself is replaced, the field is not: no key of rank 1 is asked for. */
        {"x@pp_rank:0@tp_rank:0y", "x@pp_rank:0@tp_rank:0y@tp_rank:0@pcp0@dcp0@pp_rank:0@0000\nx@pp_rank:0@tp_rank:0y@"
                                   "tp_rank:0@pcp0@dcp0@pp_rank:0@0101\n"
                                   "x@pp_rank:0@tp_rank:1y@tp_rank:0@pcp0@dcp0@pp_rank:0@0000\nx@pp_rank:0@tp_rank:1y@"
                                   "tp_rank:0@pcp0@dcp0@pp_rank:0@0101\n"
                                   "x@pp_rank:1@tp_rank:0y@tp_rank:0@pcp0@dcp0@pp_rank:0@0000\nx@pp_rank:1@tp_rank:0y@"
                                   "tp_rank:0@pcp0@dcp0@pp_rank:0@0101\n"
                                   "x@pp_rank:1@tp_rank:1y@tp_rank:0@pcp0@dcp0@pp_rank:0@0000\nx@pp_rank:1@tp_rank:1y@"
                                   "tp_rank:0@pcp0@dcp0@pp_rank:0@0101\n"},
    };
    for (size_t i = 0; i < 2; i++) {
        struct collected all;
        const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
        struct moon_layout_model model = engine(&full, 1, 4, 2);
        model.pp = 2;
        model.model_name = moon_key_text(rows[i].model);
        asked(&all, "0.21", &model, 32);
        MOON_CHECK_TEXT(all.text, rows[i].keys);
    }
}

static void a_name_with_another_rank_is_left_alone(void) {
    struct collected all;
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 2, 2);
    model.model_name = moon_key_text("@tp_rank:7");
    asked(&all, "0.21", &model, 16);
    MOON_CHECK_TEXT(all.text,
                    "@tp_rank:7@tp_rank:0@pcp0@dcp0@pp_rank:0@0000\n@tp_rank:7@tp_rank:1@pcp0@dcp0@pp_rank:0@0000\n");
}

/* `profile` is a name. */
static int list_keys(struct moon_memory *memory, const void *profile) {
    const struct moon_layout_group full = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = engine(&full, 1, 2, 2);
    model.model_name =
        moon_key_text("a-name-that-is-long-enough-to-make-the-text-grow-once-more-while-a-key-is-built-in-it-"
                      "and-then-some-for-the-second-buffer-of-the-first-release");
    struct moon_store_selection selection;
    struct moon_key_list list;
    moon_key_list_open(&list, memory);
    moon_store_select(release(profile), &model, &selection);
    moon_lookup_keys(release(profile), &model, &selection, hashes(), 16, &list);
    bool failed = list.failed;
    moon_key_list_close(&list);
    return failed ? MOON_ERR_MEMORY : 0;
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    moon_unit_refuse_memory(list_keys, "0.21");
    moon_unit_refuse_memory(list_keys, "0.33");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"ranks that hold the same bytes are asked for once", replicas_are_asked_once},
        {"DCP asks for every rank from 0.25 on", dcp_asks_for_every_rank_from_025_on},
        {"PCP is outermost from 0.25 on and missing before", pcp_is_outermost_from_025_on},
        {"heads that do not divide TP are asked short up to 0.26", heads_that_do_not_divide_are_asked_short_up_to_026},
        {"shards come before pipeline stages", shards_come_before_stages},
        {"keys come by group, chunk and namespace", keys_come_by_group_chunk_and_namespace},
        {"coarse and masked chunks are asked for as the release does", coarse_and_masked_chunks_are_asked_by_release},
        {"fine-grained lookups ask for every hash block", fine_grained_lookups_ask_for_every_hash_block},
        {"up to 0.29 fine-grained lookups refuse windows of wider blocks",
         fine_grained_lookups_refuse_wide_windows_up_to_029},
        {"chunks and hashes have the same numbers", chunks_and_hashes_have_the_same_numbers},
        {"chunks without a hash are not asked for", chunks_without_a_hash_are_not_asked_for},
        {"0.21 replaces text in the keys of rank 0", the_first_release_replaces_text},
        {"0.21 leaves a name with another rank alone", a_name_with_another_rank_is_left_alone},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("lookup", cases, argc, argv);
}
