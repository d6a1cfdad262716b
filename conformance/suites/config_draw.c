/* SPDX-License-Identifier: Apache-2.0 */
/* Draws cases for the suite config: sizes, modes, tenants, broken files, odd characters. */
#include "conformance/suites/config.h"

#include "ref/base/utf8.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *choose(struct moon_random *random, const char *const texts[], size_t count) {
    return texts[moon_random_below(random, count)];
}

/* ---- texts ---- */

static void add_character(struct moon_text *text, uint32_t code_point) {
    char bytes[MOON_UTF8_BYTES_MAX];
    moon_text_bytes(text, bytes, moon_utf8_encode(code_point, bytes));
}

/* None, or some white space, now and then of the kinds that only Unicode knows. U+200B and U+180E look like it and are
 * none. */
static void draw_space(struct moon_random *random, struct moon_text *text) {
    static const uint32_t spaces[] = {' ',    ' ',    '\t',   '\n',   '\r',   0x0B,   0x0C,   0x1C,
                                      0x1F,   0x85,   0xA0,   0x1680, 0x2003, 0x2028, 0x2029, 0x202F,
                                      0x205F, 0x3000, 0x200B, 0x180E, 0xFEFF, 0x1B};
    while (moon_random_chance(random, 1, 4))
        add_character(text, spaces[moon_random_below(random, moon_random_chance(random, 1, 8) ? COUNT(spaces) : 18)]);
}

static void draw_digits(struct moon_random *random, struct moon_text *text) {
    static const uint32_t zeros[] = {0x660, 0x6F0, 0x966, 0xE50, 0xFF10, 0x1D7CE, 0x1D7F6, 0x1FBF0, 0x104A0};
    static const char *const numbers[] = {"0",
                                          "1",
                                          "4",
                                          "80",
                                          "512",
                                          "1.5",
                                          ".5",
                                          "5.",
                                          "0.1",
                                          "0.3",
                                          "1024",
                                          "00.7",
                                          ".",
                                          "..",
                                          "1.2.3",
                                          "9007199254740991",
                                          "9007199254740993",
                                          "18446744073709551616",
                                          "0.00000000000000000000000000001",
                                          "179769313486231570814527423731704356798"};
    if (moon_random_chance(random, 2, 3)) {
        moon_text_string(text, choose(random, numbers, COUNT(numbers)));
        return;
    }
    uint64_t count =
        moon_random_chance(random, 1, 50) ? 280 + moon_random_below(random, 60) : moon_random_below(random, 20);
    for (uint64_t i = 0; i < count; i++) {
        uint32_t digit = (uint32_t)moon_random_below(random, 10);
        if (moon_random_chance(random, 1, 12))
            moon_text_char(text, '.');
        else if (moon_random_chance(random, 1, 4))
            add_character(text, zeros[moon_random_below(random, COUNT(zeros))] + digit);
        else
            moon_text_char(text, (char)('0' + digit));
    }
}

static void draw_size_text(struct moon_random *random, struct moon_text *text) {
    static const char *const units[] = {
        "",    "",   "b",  "B",      "kb",  "KB", "Kb", "mb",           "MB",      "gb",    "GB",
        "GiB", "TB", "g",  "K",      "bb",  "bk", "k",  "\u212AB",      "\u212Ab", "GB GB", "e3",
        "_0",  "%",  "gB", "\u00B2", "MiB", "-",  "+",  "\uFF27\uFF22", "b\u0130"};
    static const char *const signs[] = {"-", "+", "0x", "1,", "~", "'", "\"", "\\"};
    draw_space(random, text);
    if (moon_random_chance(random, 1, 20))
        moon_text_string(text, choose(random, signs, COUNT(signs)));
    draw_digits(random, text);
    draw_space(random, text);
    moon_text_string(text, choose(random, units, COUNT(units)));
    draw_space(random, text);
}

static void draw_name_text(struct moon_random *random, struct moon_text *text) {
    static const char *const words[] = {"a",  "team-a",   "default", "h:1", "10.0.0.9", "'",  "\"",
                                        "\\", "\xD1\x82", "_",       "@",   "/",        "b c"};
    static const uint32_t odd[] = {0x00AD, 0x200B, 0xE000, 0xFF, 0xA1,   0x378,  0x10FFFF, 0x1F600,
                                   0x2028, 0x7F,   0x1F,   0x9F, 0x0300, 0xFFFD, 0x061C,   0x1FBFA};
    draw_space(random, text);
    for (uint64_t parts = moon_random_below(random, 4); parts > 0; parts--) {
        moon_text_string(text, choose(random, words, COUNT(words)));
        if (moon_random_chance(random, 1, 6))
            add_character(text, odd[moon_random_below(random, COUNT(odd))]);
    }
    draw_space(random, text);
}

static struct moon_json *drawn_string(struct moon_arena *arena, struct moon_random *random,
                                      void (*draw)(struct moon_random *random, struct moon_text *text)) {
    struct moon_text text;
    moon_text_open(&text, arena->memory);
    draw(random, &text);
    struct moon_json *string = text.failed ? NULL : moon_json_bytes(arena, moon_text_value(&text), text.length);
    moon_text_close(&text);
    return string;
}

/* ---- values ---- */

static struct moon_json *draw_number(struct moon_arena *arena, struct moon_random *random) {
    static const double reals[] = {0.0,          -0.0, 0.5,    -0.5,  1.9,    -1.9,   1e16, 1e22,
                                   123456789.75, 1e-5, 0.0001, 1e300, 5e-324, -2.5e9, 1e15};
    static const char *const integers[] = {"0",
                                           "1",
                                           "-1",
                                           "-5",
                                           "1073741824",
                                           "9007199254740992",
                                           "9007199254740993",
                                           "-9007199254740993",
                                           "9223372036854775808",
                                           "123456789012345678901234567890"};
    if (moon_random_chance(random, 1, 2))
        return moon_json_real(arena, reals[moon_random_below(random, COUNT(reals))]);
    const char *digits = choose(random, integers, COUNT(integers));
    return moon_json_number(arena, digits, strlen(digits));
}

static struct moon_json *draw_scalar(struct moon_arena *arena, struct moon_random *random) {
    switch (moon_random_below(random, 4)) {
    case 0:
        return moon_json_null(arena);
    case 1:
        return moon_json_bool(arena, moon_random_chance(random, 1, 2));
    case 2:
        return draw_number(arena, random);
    default:
        return drawn_string(arena, random, draw_name_text);
    }
}

/* Any JSON value, at most two levels deep. */
static struct moon_json *draw_any(struct moon_arena *arena, struct moon_random *random) {
    uint64_t kind = moon_random_below(random, 6), count = moon_random_below(random, 4);
    if (kind > 1)
        return draw_scalar(arena, random);
    struct moon_json *container = kind == 0 ? moon_json_array(arena) : moon_json_object(arena);
    for (uint64_t i = 0; i < count; i++) {
        struct moon_json *child = draw_scalar(arena, random);
        if (kind == 0) {
            moon_json_push(container, child);
        } else {
            const char *name = moon_arena_format(arena, "k%llu'", (unsigned long long)i);
            moon_json_set(arena, container, name ? name : "", name ? child : NULL);
        }
    }
    return container;
}

static struct moon_json *draw_size(struct moon_arena *arena, struct moon_random *random) {
    uint64_t kind = moon_random_below(random, 10);
    if (kind < 7)
        return drawn_string(arena, random, draw_size_text);
    return kind < 9 ? draw_number(arena, random) : draw_any(arena, random);
}

static struct moon_json *draw_mode(struct moon_arena *arena, struct moon_random *random) {
    static const char *const modes[] = {"embedded",         "embedded", "standalone-store", "standalone-store",
                                        "standalone_store", "Embedded", " embedded",        ""};
    return moon_random_chance(random, 1, 6) ? draw_any(arena, random)
                                            : moon_json_string(arena, choose(random, modes, COUNT(modes)));
}

static struct moon_json *draw_offload(struct moon_arena *arena, struct moon_random *random) {
    static const char *const switches[] = {"false", "true", "", "0", "no"};
    return moon_random_chance(random, 1, 3) ? moon_json_string(arena, choose(random, switches, COUNT(switches)))
                                            : draw_any(arena, random);
}

static struct moon_json *draw_tenant(struct moon_arena *arena, struct moon_random *random) {
    return moon_random_chance(random, 3, 4) ? drawn_string(arena, random, draw_name_text) : draw_any(arena, random);
}

/* ---- files ---- */

static struct moon_json *draw_file_json(struct moon_arena *arena, struct moon_random *random) {
    static const struct {
        const char *name;
        uint64_t of_ten; /* how often the member is there */
        struct moon_json *(*draw)(struct moon_arena *arena, struct moon_random *random);
    } members[] = {
        {"metadata_server", 1, draw_any},
        {"master_server_address", 1, draw_any},
        {"protocol", 1, draw_any},
        {"device_name", 1, draw_any},
        {"global_segment_size", 7, draw_size},
        {"local_buffer_size", 3, draw_size},
        {"mode", 4, draw_mode},
        {"enable_offload", 3, draw_offload},
        {"tenant_id", 5, draw_tenant},
        {"Global_segment_size", 1, draw_size},
        {"comment", 1, draw_any},
    };
    struct moon_json *file = moon_json_object(arena);
    for (size_t i = 0; i < COUNT(members); i++)
        if (moon_random_chance(random, members[i].of_ten, 10))
            moon_json_set(arena, file, members[i].name, members[i].draw(arena, random));
    return file;
}

static struct moon_json *draw_file_text(struct moon_arena *arena, struct moon_random *random) {
    static const char *const texts[] = {
        "",
        " ",
        "{}",
        "{} ",
        "[]",
        "null",
        "true",
        "7",
        "7.5",
        "\"x\"",
        "{",
        "{]",
        "{\"mode\":}",
        "{'mode':'embedded'}",
        "{\"mode\":\"embedded\",}",
        "{\"global_segment_size\":\"1GB\",\"global_segment_size\":\"2GB\"}",
        "{}{}",
        "\xEF\xBB\xBF{}",
        "{\"global_segment_size\":NaN}",
        "{\"global_segment_size\":Infinity}",
        "{\"global_segment_size\":-Infinity}",
        "{\"global_segment_size\":1e400}",
        "{\"global_segment_size\":-0}",
        "{\"global_segment_size\":1E2}",
        "{\"global_segment_size\":01}",
        "{\"tenant_id\":NaN}",
        "{\"tenant_id\":[-Infinity]}",
        "{\"enable_offload\":NaN}",
        "{\"mode\":\"a\tb\"}",
        "{\"tenant_id\":\"\\u00e9\\ud83d\\ude00\"}",
        "{\"mode\":\"\\ud83d\\ude00\\u200b\"}",
        "// x\n{}",
        "{\"local_buffer_size\":\"1GB\" /* x */}",
        "\n{\r\n}\t",
        "NaN",
        "[1,2",
        "{\"a\":{\"a\":{\"a\":[{}]}}}",
    };
    return moon_json_string(arena, choose(random, texts, COUNT(texts)));
}

static void draw_store_config(struct moon_arena *arena, struct moon_random *random, struct moon_json *given) {
    static const char *const values[] = {"", " ", "no/such/file.json"};
    moon_json_set(arena, given, "op", moon_json_string(arena, "store_config"));
    if (moon_random_chance(random, 1, 6))
        moon_json_set(arena, given, "file_text", draw_file_text(arena, random));
    else
        moon_json_set(arena, given, "file_json", draw_file_json(arena, random));
    moon_json_set(arena, given, "env_set", moon_json_bool(arena, !moon_random_chance(random, 1, 40)));
    if (moon_random_chance(random, 1, 40))
        moon_json_set(arena, given, "env_value", moon_json_string(arena, choose(random, values, COUNT(values))));
    if (moon_random_chance(random, 1, 40))
        moon_json_set(arena, given, "file_missing", moon_json_bool(arena, true));
}

/* A text that an environment variable can hold: no NUL is ever drawn. */
static void draw_environment(struct moon_arena *arena, struct moon_random *random, struct moon_json *given,
                             const char *name) {
    struct moon_json *env = moon_json_set(arena, given, "env", moon_json_object(arena));
    if (moon_random_chance(random, 2, 3))
        moon_json_set(arena, env, name, drawn_string(arena, random, draw_name_text));
}

static void draw_segment(struct moon_arena *arena, struct moon_random *random, struct moon_json *given) {
    moon_json_set(arena, given, "op", moon_json_string(arena, "preferred_segment"));
    draw_environment(arena, random, given, "MOONCAKE_PREFERRED_SEGMENT");
    struct moon_json *extra = moon_json_set(arena, given, "extra_config", moon_json_object(arena));
    if (moon_random_chance(random, 1, 2))
        moon_json_set(arena, extra, "preferred_segment", draw_tenant(arena, random));
}

static void draw_hostname(struct moon_arena *arena, struct moon_random *random, struct moon_json *given) {
    moon_json_set(arena, given, "op", moon_json_string(arena, "requester_hostname"));
    draw_environment(arena, random, given, "MOONCAKE_REQUESTER_LOCAL_HOSTNAME");
    moon_json_set(arena, given, "local_ip", moon_json_string(arena, "10.0.0.9"));
}

int moon_config_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                     struct moon_json **given) {
    *given = moon_json_object(arena);
    uint64_t kind = moon_random_below(random, 10);
    if (kind < 8 || !profile->config_mode) /* the other two operations came with 0.22 */
        draw_store_config(arena, random, *given);
    else if (kind == 8)
        draw_segment(arena, random, *given);
    else
        draw_hostname(arena, random, *given);
    return moon_json_broken(*given) ? MOON_ERR_MEMORY : MOON_OK;
}
