/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of reading keys: every reading of an ambiguous key, the releases that could have written it, and what is no
 * key. */
#include "ref/key/parse.h"

#include "ref/base/random.h"
#include "ref/base/unit.h"

#define H32  "0123456789abcdef0123456789abcdef"
#define TAIL "@tp_rank:1@pcp2@dcp3@pp_rank:4@group:5@"

static const struct moon_profile *release(const char *name) {
    return name ? moon_profile_find(name, NULL) : NULL;
}

/* Readings as "prefix|model|space oldest-newest marks; ...": marks are p(lain), u(ncut). */
static const char *readings(char out[1024], const char *profile, const char *key) {
    struct moon_key_readings found;
    struct moon_error error = {0};
    size_t used = 0;
    out[0] = '\0';
    if (moon_key_parse(release(profile), moon_key_text(key), &found, &error) != 0) {
        MOON_CHECK_INT(error.status, MOON_ERR_SYNTAX);
        snprintf(out, 1024, "error: %.900s", error.message);
        return out;
    }
    for (size_t i = 0; i < found.count; i++) {
        const struct moon_key_reading *each = &found.list[i];
        used += (size_t)snprintf(out + used, 1024 - used, "%s%.*s|%.*s|%zu %d-%d%s%s", i ? "; " : "",
                                 (int)each->key.cache_prefix.length, each->key.cache_prefix.bytes,
                                 (int)each->key.model_name.length, each->key.model_name.bytes,
                                 each->key.store_namespace.length, each->oldest->minor, each->newest->minor,
                                 each->plain ? "p" : "", each->uncut ? "u" : "");
    }
    return out;
}

static void a_plain_key_has_one_reading(void) {
    char out[1024];
    struct moon_key_readings found;
    MOON_CHECK_TEXT(readings(out, NULL, "m" TAIL H32), "|m|0 22-33p");
    MOON_CHECK_INT(moon_key_parse(NULL, moon_key_text("m" TAIL H32), &found, NULL), 0);
    MOON_CHECK_INT(found.total, 1);
    MOON_CHECK_INT(found.possible, 1);
    MOON_CHECK_INT(found.list[0].key.tp_rank, 1);
    MOON_CHECK_INT(found.list[0].key.pcp_rank, 2);
    MOON_CHECK_INT(found.list[0].key.dcp_rank, 3);
    MOON_CHECK_INT(found.list[0].key.pp_rank, 4);
    MOON_CHECK_INT(found.list[0].key.group_id, 5);
    MOON_CHECK_INT(found.list[0].hash.length, 32);
}

static void the_form_of_021_is_told_by_its_missing_group(void) {
    char out[1024];
    MOON_CHECK_TEXT(readings(out, NULL, "m@tp_rank:0@pcp0@dcp0@pp_rank:0@" H32), "|m|0 21-21p");
    MOON_CHECK_TEXT(readings(out, "0.22", "m@tp_rank:0@pcp0@dcp0@pp_rank:0@" H32),
                    "error: vllm-0.22 writes keys with a \"@group:\" field");
    MOON_CHECK_TEXT(readings(out, "0.21", "m" TAIL H32), "error: vllm-0.21 writes keys without a \"@group:\" field");
}

static void an_at_sign_gives_every_split(void) {
    char out[1024];
    MOON_CHECK_TEXT(readings(out, NULL, "a@b" TAIL H32), "|a@b|0 22-33; a|b|0 24-33p");
    MOON_CHECK_TEXT(readings(out, "0.33", "a@b@c" TAIL H32), "|a@b@c|0 33-33; a|b@c|0 33-33; a@b|c|0 33-33");
    MOON_CHECK_TEXT(readings(out, "0.23", "a@b@c" TAIL H32), "|a@b@c|0 23-23");
    MOON_CHECK_TEXT(readings(out, "0.28", "a@" TAIL H32), "|a@|0 28-28; a||0 28-28p");
    MOON_CHECK_TEXT(readings(out, "0.28", "@a@m" TAIL H32), "|@a@m|0 28-28; @a|m|0 28-28");
    MOON_CHECK_TEXT(readings(out, "0.28", "" TAIL H32), "||0 28-28p");
}

static void names_like_fields_do_not_confuse(void) {
    char out[1024];
    MOON_CHECK_TEXT(readings(out, "0.22", "m@tp_rank:9@pcp0" TAIL H32), "|m@tp_rank:9@pcp0|0 22-22");
    MOON_CHECK_TEXT(readings(out, "0.23", "x" TAIL H32 TAIL H32), "|x" TAIL H32 "|0 23-23");
}

static void a_namespace_is_one_of_the_readings(void) {
    char out[1024];
    MOON_CHECK_TEXT(readings(out, "0.33", "m@store_pp:1@store_format:tp_shared_mqa" TAIL H32),
                    "|m|38 33-33p; |m@store_pp:1@store_format:tp_shared_mqa|0 33-33; "
                    "m|store_pp:1@store_format:tp_shared_mqa|0 33-33; m@store_pp:1|store_format:tp_shared_mqa|0 33-33");
    MOON_CHECK_TEXT(
        readings(out, NULL, "a@m@store_pp:1@store_format:tp_shared_mqa" TAIL H32),
        "|a@m|38 30-33; a|m|38 30-33p; |a@m@store_pp:1@store_format:tp_shared_mqa|0 22-33; "
        "a|m@store_pp:1@store_format:tp_shared_mqa|0 24-33; a@m|store_pp:1@store_format:tp_shared_mqa|0 24-33; "
        "a@m@store_pp:1|store_format:tp_shared_mqa|0 24-33");
    MOON_CHECK_TEXT(readings(out, "0.23", "m@store_pp:1@store_format:tp_shared_mqa" TAIL H32),
                    "|m@store_pp:1@store_format:tp_shared_mqa|0 23-23");
}

static void names_with_a_slash_come_last(void) {
    char out[1024];
    struct moon_key_readings found;
    MOON_CHECK_TEXT(readings(out, "0.33", "a/b@c" TAIL H32), "a/b|c|0 33-33p; |a/b@c|0 33-33u");
    MOON_CHECK_TEXT(readings(out, "0.33", "a/b" TAIL H32), "|a/b|0 33-33u");
    MOON_CHECK_INT(moon_key_parse(NULL, moon_key_text("a/b" TAIL H32), &found, NULL), 0);
    MOON_CHECK_INT(found.possible, 0);
}

static void joined_hashes_tell_both_digests(void) {
    static const struct {
        const char *profile, *hash;
        int64_t of_16, of_32;
        int oldest, newest;
    } rows[] = {
        {NULL, H32, 1, 0, 22, 33},       {NULL, H32 H32, 2, 1, 22, 33},     {"0.23", H32 H32, 2, 1, 23, 23},
        {"0.24", H32 H32, 0, 1, 24, 24}, {NULL, H32 H32 H32, 3, 0, 22, 23}, {NULL, H32 H32 H32 H32, 4, 2, 22, 23},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char key[512];
        struct moon_key_readings found;
        snprintf(key, sizeof key, "m" TAIL "%s", rows[i].hash);
        MOON_CHECK_INT(moon_key_parse(release(rows[i].profile), moon_key_text(key), &found, NULL), 0);
        MOON_CHECK_INT(found.count, 1);
        MOON_CHECK_INT(found.list[0].digests_of_16, rows[i].of_16);
        MOON_CHECK_INT(found.list[0].digests_of_32, rows[i].of_32);
        MOON_CHECK_INT(found.list[0].oldest->minor, rows[i].oldest);
        MOON_CHECK_INT(found.list[0].newest->minor, rows[i].newest);
    }
}

static void a_prefix_cannot_have_a_joined_hash(void) {
    char out[1024];
    struct moon_key_readings found;
    MOON_CHECK_TEXT(readings(out, NULL, "a@b" TAIL H32 H32 H32), "|a@b|0 22-23");
    MOON_CHECK_INT(moon_key_parse(NULL, moon_key_text("a@b" TAIL H32 H32), &found, NULL), 0);
    MOON_CHECK_INT(found.list[1].digests_of_16, 0); /* the prefix came with 0.24 */
    MOON_CHECK_INT(found.list[1].digests_of_32, 1);
}

static void what_is_no_key_is_told(void) {
    static const char *const rows[][3] = {
        {NULL, "", "error: no \"@\" in the key"},
        {NULL, H32, "error: no \"@\" in the key"},
        {NULL, "m@tp_rank:0@pcp0@dcp0@group:0@" H32, "error: no \"@pp_rank:\" with a decimal number before byte 21"},
        {NULL, "m@tp_rank:0@pcp0@dcp01@pp_rank:0@group:0@" H32,
         "error: no \"@dcp\" with a decimal number before byte 22"},
        {NULL, "m@tp_rank:-1@pcp0@dcp0@pp_rank:0@group:0@" H32,
         "error: no \"@tp_rank:\" with a decimal number before byte 12"},
        {NULL, "m@tp_rank:0@dcp0@pp_rank:0@group:0@" H32, "error: no \"@pcp\" with a decimal number before byte 11"},
        {"0.33", "m" TAIL H32 H32 H32,
         "error: hashes of 96 hex digits are written by 0.22 and 0.23 only, in keys with a \"@group:\" field"},
        {NULL, "m@tp_rank:0@pcp0@dcp0@pp_rank:0@" H32 H32 H32,
         "error: hashes of 96 hex digits are written by 0.22 and 0.23 only, in keys with a \"@group:\" field"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char out[1024];
        MOON_CHECK_TEXT(readings(out, rows[i][0], rows[i][1]), rows[i][2]);
    }
}

static void what_is_no_hash_is_told(void) {
    static const char *const hashes[] = {"",
                                         "abc",
                                         "0123456789ABCDEF0123456789ABCDEF",
                                         "0123456789abcdef0123456789abcde",
                                         "0123456789abcdef0123456789abcdeg",
                                         "0123456789abcdef0123456789abcde/"};
    for (size_t i = 0; i < sizeof hashes / sizeof hashes[0]; i++) {
        char key[512], out[1024];
        snprintf(key, sizeof key, "m" TAIL "%s", hashes[i]);
        readings(out, NULL, key);
        CU_ASSERT_PTR_NOT_NULL(strstr(out, "which are no hash"));
    }
}

static void more_readings_than_fit_are_counted(void) {
    struct moon_key_readings found;
    MOON_CHECK_INT(moon_key_parse(release("0.33"), moon_key_text("a@@@@@@@@@@@@@@@@@@@@b" TAIL H32), &found, NULL), 0);
    MOON_CHECK_INT(found.count, MOON_KEY_READINGS_MAX);
    MOON_CHECK_INT(found.total, 21);
    MOON_CHECK_INT(found.possible, 21);
}

/* Names of a few characters that make trouble. */
static struct moon_key_text draw_name(struct moon_random *random, char buffer[8]) {
    size_t length = moon_random_below(random, 8);
    for (size_t i = 0; i < length; i++)
        buffer[i] = "ab@/:0"[moon_random_below(random, 6)];
    return (struct moon_key_text){buffer, length};
}

static bool same(struct moon_key_text a, struct moon_key_text b) {
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

/* Each reading builds the key again, and the identity that built it is among them. */
static void every_reading_builds_the_key_again(void) {
    struct moon_random random;
    moon_random_seed(&random, 24);
    for (int round = 0; round < 3000; round++) {
        size_t count, hits = 0;
        const struct moon_profile *all = moon_profiles(&count), *profile = &all[moon_random_below(&random, count)];
        char prefix[8], model[8], space_text[MOON_STORE_NAMESPACE_BYTES];
        struct moon_store_namespace space = {(enum moon_store_format)moon_random_below(&random, 5), 4, 2, 3,
                                             MOON_KV_BLHNC};
        moon_store_namespace_write(&space, space_text);
        struct moon_pool_key key = {
            draw_name(&random, prefix), draw_name(&random, model), moon_key_text(space_text), 1, 2, 3, 4, 5};
        if (!profile->cache_prefix)
            key.cache_prefix.length = 0;
        if (!profile->store_namespace)
            key.store_namespace.length = 0;
        struct moon_text built, again;
        moon_text_open(&built, moon_memory_heap());
        moon_text_open(&again, moon_memory_heap());
        moon_key_build(profile, &key, moon_key_text(H32), &built);
        struct moon_key_readings found;
        MOON_CHECK_INT(moon_key_parse(profile, (struct moon_key_text){built.data, built.length}, &found, NULL), 0);
        for (size_t i = 0; i < found.count; i++) {
            const struct moon_pool_key *read = &found.list[i].key;
            moon_text_clear(&again);
            moon_key_build(profile, read, found.list[i].hash, &again);
            MOON_CHECK_TEXT(moon_text_value(&again), moon_text_value(&built));
            hits += same(read->cache_prefix, key.cache_prefix) && same(read->model_name, key.model_name) &&
                    same(read->store_namespace, key.store_namespace);
        }
        CU_ASSERT(hits == 1 || found.total > found.count);
        moon_text_close(&built);
        moon_text_close(&again);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a plain key has one reading", a_plain_key_has_one_reading},
        {"the form of 0.21 is told by its missing group", the_form_of_021_is_told_by_its_missing_group},
        {"an '@' gives every split into prefix and model", an_at_sign_gives_every_split},
        {"names that look like fields do not confuse", names_like_fields_do_not_confuse},
        {"a namespace is one of the readings", a_namespace_is_one_of_the_readings},
        {"readings whose model holds a slash come last", names_with_a_slash_come_last},
        {"a hash that can be two things is told as both", joined_hashes_tell_both_digests},
        {"a prefix cannot stand before a joined hash", a_prefix_cannot_have_a_joined_hash},
        {"what is no key is told with the missing part", what_is_no_key_is_told},
        {"what is no hash is told", what_is_no_hash_is_told},
        {"more readings than fit are counted", more_readings_than_fit_are_counted},
        {"every reading builds the key again, and the writer is among them", every_reading_builds_the_key_again},
        {NULL, NULL}};
    return moon_unit_main("parse", cases, argc, argv);
}
