/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck hash: the block hashes of a prompt, from flags or a vector's `given`. */
#include "conformance/cli/cli.h"
#include "conformance/cli/engine_options.h"

#include "conformance/suites/hash.h"
#include "conformance/suites/world.h"

#include <string.h>

static struct {
    const char *profile, *algorithm, *seed, *tokens, *salt, *lora, *lora_path, *json;
    int64_t block_size;
    struct moon_option_list items;
    bool no_seed, explain;
} asked = {.algorithm = "sha256", .block_size = 16};

static const struct moon_option options[] = {
    MOON_CLI_PROFILE_ROW(asked.profile),
    {"algo", MOON_OPTION_CHOICE, &asked.algorithm, "NAME", "sha256|sha256_cbor|xxhash|xxhash_cbor", 0, 0,
     "prefix_caching_hash_algo of the engine (default: sha256)"},
    {"seed", MOON_OPTION_TEXT, &asked.seed, "TEXT", NULL, 0, 0,
     "value of PYTHONHASHSEED, as text (default: that of this environment)"},
    {"no-seed", MOON_OPTION_FLAG, &asked.no_seed, NULL, NULL, 0, 0, "PYTHONHASHSEED is not set"},
    {"block-size", MOON_OPTION_INTEGER, &asked.block_size, "N", NULL, 1, MOON_BLOCK_TOKENS_MAX,
     "tokens a hash, the hash block of the engine (default: 16)"},
    {"tokens", MOON_OPTION_TEXT, &asked.tokens, "LIST|A..B|FILE|-", NULL, 0, 0,
     "token ids: \"1,2,3\", all from A to B, or a file with such a list (a JSON array will do)"},
    {"salt", MOON_OPTION_TEXT, &asked.salt, "TEXT", NULL, 0, 0, "cache_salt of the request (default: none)"},
    {"lora", MOON_OPTION_TEXT, &asked.lora, "NAME", NULL, 0, 0, "name of the adapter (default: none)"},
    {"lora-path", MOON_OPTION_TEXT, &asked.lora_path, "PATH", NULL, 0, 0,
     "path of the adapter; needed from 0.31 on, where it is hashed"},
    {"mm", MOON_OPTION_LIST, &asked.items, "ID@OFFSET+LENGTH", NULL, 0, 0,
     "a multimodal item, in tokens; may be repeated, sorted by offset"},
    {"json", MOON_OPTION_TEXT, &asked.json, "FILE|-", NULL, 0, 0,
     "answer one {\"profile\",\"given\"} object in the form of the suite hash"},
    {"explain", MOON_OPTION_FLAG, &asked.explain, NULL, NULL, 0, 0,
     "show each part with its rule and release, and the hashed bytes one by one"},
    {NULL, MOON_OPTION_FLAG, NULL, NULL, NULL, 0, 0, NULL},
};

const struct moon_command moon_command_hash = {
    "hash",
    "",
    "the block hashes of a prompt",
    "Prints the hash of each full block, one a line, as a release of vLLM derives it. With --explain shows NONE_HASH, "
    "the extra "
    "keys and the bytes that are hashed, so that two sides can be compared byte by byte.",
    options,
    0,
    0,
};

/* One integer at *at, which moves behind it. */
static bool take_integer(const char **at, int64_t *out) {
    bool negative = **at == '-';
    const char *digit = *at + negative;
    int64_t value = 0;
    if (*digit < '0' || *digit > '9')
        return false;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, negative ? '0' - *digit : *digit - '0', &value))
            return false;
    *out = value;
    *at = digit;
    return true;
}

static void skip_separators(const char **at) {
    *at += strspn(*at, " \t\r\n,[]");
}

/* A list of integers, or a range of two with both ends, as the JSON that a case has for it. NULL if it is neither. */
static struct moon_json *read_tokens(struct moon_arena *arena, const char *text) {
    struct moon_json *list = moon_json_array(arena);
    int64_t token, last;
    size_t range = 0;
    skip_separators(&text);
    while (*text) {
        if (!take_integer(&text, &token))
            return NULL;
        moon_json_push(list, moon_json_int(arena, token));
        if (strncmp(text, "..", 2) == 0) {
            text += 2;
            if (range++ || !take_integer(&text, &last) || last < token || last - token >= MOON_HASH_CASE_TOKENS_MAX)
                return NULL;
            for (int64_t next = token + 1; next <= last; next++)
                moon_json_push(list, moon_json_int(arena, next));
        }
        skip_separators(&text);
    }
    return list;
}

/* The tokens asked for, from the flag itself or from the file that it names. NULL after a message. */
static struct moon_json *tokens(struct moon_arena *arena) {
    bool inline_list = strspn(asked.tokens, "-0123456789") > 0 && strcmp(asked.tokens, "-") != 0;
    struct moon_json *list = NULL;
    struct moon_error error;
    struct moon_text file;
    moon_text_open(&file, moon_memory_heap());
    if (!inline_list && moon_io_read(asked.tokens, MOON_JSON_INPUT_BYTES_MAX, &file, &error) != 0)
        moon_cli_fail(&error);
    else if (!inline_list && file.length != strlen(moon_text_value(&file)))
        moon_cli_complain("%s: a list of token ids holds no NUL bytes", moon_io_source(asked.tokens));
    else if (!(list = read_tokens(arena, inline_list ? asked.tokens : moon_text_value(&file))))
        moon_cli_complain("%s: not a list of token ids of at most 64 bits, nor a range A..B",
                          inline_list ? "--tokens" : moon_io_source(asked.tokens));
    moon_text_close(&file);
    return list;
}

/* ID@OFFSET+LENGTH; the identifier may hold '@' itself. */
static struct moon_json *read_item(struct moon_arena *arena, const char *text) {
    struct moon_json *item = moon_json_object(arena);
    const char *at = strrchr(text, '@');
    int64_t offset, length;
    if (!at)
        return NULL;
    size_t identifier_bytes = (size_t)(at++ - text);
    if (!take_integer(&at, &offset) || *at++ != '+' || !take_integer(&at, &length) || *at)
        return NULL;
    moon_json_set(arena, item, "identifier", moon_json_bytes(arena, text, identifier_bytes));
    moon_json_set(arena, item, "offset", moon_json_int(arena, offset));
    moon_json_set(arena, item, "length", moon_json_int(arena, length));
    return item;
}

static bool set_items(struct moon_arena *arena, struct moon_json *given) {
    struct moon_json *items = moon_json_array(arena);
    for (size_t i = 0; i < asked.items.count; i++) {
        struct moon_json *item = read_item(arena, asked.items.values[i]);
        if (!item) {
            moon_cli_complain("--mm %s: must be ID@OFFSET+LENGTH, in tokens", asked.items.values[i]);
            return false;
        }
        moon_json_push(items, item);
    }
    moon_json_set(arena, given, "mm_features", items);
    return true;
}

/* What is wrong with the flags together, or NULL. */
static const char *contradiction(const struct moon_profile *profile) {
    if (!asked.tokens)
        return "--tokens is needed (or --json)";
    if (asked.seed && asked.no_seed)
        return "--seed and --no-seed exclude each other";
    if (asked.lora_path && !asked.lora)
        return "--lora-path needs --lora";
    if (asked.lora && !asked.lora_path && profile->extra_tagged)
        return "--lora needs --lora-path: this release hashes the path too";
    return NULL;
}

/* The case that the flags describe. NULL after a message. */
static struct moon_json *given_by_flags(struct moon_arena *arena, const struct moon_profile *profile) {
    struct moon_json *given = moon_json_object(arena), *list;
    const char *wrong = contradiction(profile);
    if (wrong) {
        moon_cli_complain("%s", wrong);
        return NULL;
    }
    list = tokens(arena);
    if (!list || !set_items(arena, given))
        return NULL;
    moon_json_set(arena, given, "algo", moon_json_string(arena, asked.algorithm));
    moon_json_set(arena, given, "block_size", moon_json_int(arena, asked.block_size));
    moon_json_set(arena, given, "prompt_token_ids", list);
    if (asked.seed || asked.no_seed)
        moon_json_set(arena, given, "python_hash_seed",
                      asked.seed ? moon_json_string(arena, asked.seed) : moon_json_null(arena));
    if (asked.salt)
        moon_json_set(arena, given, "cache_salt", moon_json_string(arena, asked.salt));
    if (asked.lora) {
        struct moon_json *lora = moon_json_object(arena);
        moon_json_set(arena, lora, "name", moon_json_string(arena, asked.lora));
        moon_json_set(arena, lora, "path", moon_json_string(arena, asked.lora_path ? asked.lora_path : asked.lora));
        moon_json_set(arena, given, "lora", lora);
    }
    return given;
}

/* Every hash, one a line. */
static int print_hashes(struct moon_arena *arena, const struct moon_profile *profile, const struct moon_json *given,
                        struct moon_text *out, struct moon_error *error) {
    const struct moon_suite_world *world = moon_suite_world_system();
    struct moon_hash_case one;
    struct moon_hash_result result;
    int status = moon_hash_case_read(world, arena, profile, "flags", given, &one, error);
    if (status)
        return status;
    status = moon_hash_case_compute(world, arena, profile, &one, &result, error);
    for (size_t i = 0; status == 0 && i < result.blocks; i++) {
        moon_text_hex(out, result.hashes + i * result.digest_bytes, result.digest_bytes);
        moon_text_char(out, '\n');
    }
    moon_hash_result_close(&result);
    return status;
}

static int answer_flags(struct moon_arena *arena, struct moon_text *out) {
    struct moon_error error;
    const struct moon_profile *profile = moon_cli_profile(asked.profile, &error);
    if (!profile)
        return moon_cli_fail(&error);
    struct moon_json *given = given_by_flags(arena, profile);
    if (!given)
        return MOON_EXIT_BAD;
    if (moon_json_broken(given))
        return moon_cli_complain("out of memory");
    int status = asked.explain
                     ? moon_suite_hash.explain(moon_suite_world_system(), arena, profile, "flags", given, out, &error)
                     : print_hashes(arena, profile, given, out, &error);
    return status ? moon_cli_fail(&error) : moon_cli_print(out);
}

int moon_cli_hash(const char *const operands[], int count) {
    (void)operands; /* takes none */
    (void)count;
    struct moon_arena arena;
    struct moon_text out;
    if (asked.json)
        return moon_cli_answer("hash", asked.json, asked.explain);
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&out, moon_memory_heap());
    int exit_status = answer_flags(&arena, &out);
    moon_text_close(&out);
    moon_arena_close(&arena);
    return exit_status;
}
