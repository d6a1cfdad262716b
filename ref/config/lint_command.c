/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the description of a deployment from command lines: mooncake_master, mooncake_client, vllm serve. */
#include "ref/config/lint_internal.h"

#include <string.h>

/* A word of a shell command: quotes removed, place of its first character.
 *   column of the content, behind an opening quote; `unknown` when it holds a variable that only the shell knows */
struct word {
    const char *text;
    uint32_t line, column;
    bool unknown;
};

enum { WORDS_MAX = 512 }; /* in one command; more are left out */

struct reader {
    struct lint *lint;
    const char *at, *end;
    uint32_t line, column;
    struct word words[WORDS_MAX];
    size_t count;
    struct moon_json *deployment, *engines, *owners, *exported;
};

/* ---- words ---- */

static void step(struct reader *r) {
    if (*r->at == '\n') {
        r->line++;
        r->column = 1;
    } else {
        r->column++;
    }
    r->at++;
}

static bool ends_command(char c) {
    return c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')';
}

/* Blanks, continued lines, and comments up to the end of their line. */
static void skip_blanks(struct reader *r) {
    while (r->at < r->end) {
        bool continued = *r->at == '\\' && r->at + 1 < r->end && (r->at[1] == '\n' || r->at[1] == '\r');
        if (continued) {
            step(r);
            step(r);
        } else if (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
            step(r);
        } else if (*r->at == '#') {
            while (r->at < r->end && *r->at != '\n')
                step(r);
        } else {
            return;
        }
    }
}

/* Text between quotes; the opening one was passed. */
static void quoted(struct reader *r, char quote, struct word *word, struct moon_text *text) {
    while (r->at < r->end && *r->at != quote) {
        if (quote == '"' && *r->at == '\\' && r->at + 1 < r->end)
            step(r);
        else if (quote == '"' && *r->at == '$')
            word->unknown = true;
        moon_text_char(text, *r->at);
        step(r);
    }
    if (r->at < r->end)
        step(r);
}

static void read_word(struct reader *r, struct word *word, struct moon_text *text) {
    *word = (struct word){NULL, r->line, r->column, false};
    while (r->at < r->end && *r->at != ' ' && *r->at != '\t' && *r->at != '\r' && !ends_command(*r->at)) {
        char c = *r->at;
        if (c == '$' || c == '`')
            word->unknown = true;
        if (c == '\'' || c == '"') {
            step(r);
            if (text->length == 0)
                *word = (struct word){NULL, r->line, r->column, word->unknown};
            quoted(r, c, word, text);
            continue;
        }
        if (c == '\\' && r->at + 1 < r->end) {
            step(r);
            if (*r->at == '\n') {
                step(r);
                break;
            }
        }
        moon_text_char(text, *r->at);
        step(r);
    }
}

/* Reads the next command into r->words. */
static void read_command(struct reader *r) {
    r->count = 0;
    for (skip_blanks(r); r->at < r->end && !ends_command(*r->at); skip_blanks(r)) {
        struct moon_text text;
        struct word word;
        moon_text_open(&text, r->lint->arena->memory);
        read_word(r, &word, &text);
        word.text = text.failed ? NULL : moon_arena_copy(r->lint->arena, moon_text_value(&text), text.length);
        moon_text_close(&text);
        if (!word.text)
            r->lint->status = MOON_ERR_MEMORY;
        if (r->lint->status)
            return;
        if (r->count < WORDS_MAX)
            r->words[r->count++] = word;
    }
    if (r->at < r->end)
        step(r);
}

/* ---- values with a place ---- */

static struct moon_json *placed(struct reader *r, struct moon_json *value, const struct word *word) {
    if (!value) {
        r->lint->status = MOON_ERR_MEMORY;
        return NULL;
    }
    value->line = word->line;
    value->column = word->column;
    return value;
}

/* Sets a member; of two equal options the first one is kept. */
static void put(struct reader *r, struct moon_json *object, const char *name, struct moon_json *value) {
    if (!moon_json_member(object, name) && !moon_json_set(r->lint->arena, object, name, value))
        r->lint->status = MOON_ERR_MEMORY;
}

static void put_text(struct reader *r, struct moon_json *object, const char *name, const struct word *word,
                     const char *text) {
    if (!word->unknown)
        put(r, object, name, placed(r, moon_json_string(r->lint->arena, text), word));
}

static void put_number(struct reader *r, struct moon_json *object, const char *name, const struct word *word,
                       const char *text) {
    int64_t number = 0;
    if (lint_is_number(text, INT64_MIN, INT64_MAX, &number) && !word->unknown)
        put(r, object, name, placed(r, moon_json_int(r->lint->arena, number), word));
}

/* Moves the places of a tree that was read out of a word to where they are in the file. */
static void move_places(struct moon_json *tree, const struct word *word) {
    struct moon_json *at = tree;
    for (;;) {
        if (at->line == 1)
            at->column += word->column - 1;
        at->line += word->line - 1;
        if (at->first) {
            at = at->first;
            continue;
        }
        while (at != tree && !at->next)
            at = at->parent;
        if (at == tree)
            return;
        at = at->next;
    }
}

static void put_json(struct reader *r, struct moon_json *object, const char *name, const struct word *word,
                     const char *text) {
    struct moon_json *tree = NULL;
    struct moon_error error = {0};
    if (word->unknown || moon_json_member(object, name))
        return;
    int status = moon_json_read(r->lint->arena, "", text, strlen(text), MOON_JSON_PYTHON, &tree, &error);
    if (status == MOON_ERR_SYNTAX) {
        lint_find_at(r->lint, "LINT-070", r->lint->inputs[r->lint->input_at].name, word->line, word->column,
                     "--kv-transfer-config is no JSON: %s", error.message);
    } else if (status) {
        r->lint->status = status;
    } else {
        move_places(tree, word);
        put(r, object, name, tree);
    }
}

/* ---- commands ---- */

/* Length of NAME in a word NAME=VALUE, 0 for other words. */
static size_t assigned(const char *text) {
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return text[length] == '=' && (text[0] < '0' || text[0] > '9') ? length : 0;
}

static void put_variable(struct reader *r, struct moon_json *env, const struct word *word) {
    size_t length = assigned(word->text);
    char *name = moon_arena_copy(r->lint->arena, word->text, length);
    if (!name)
        r->lint->status = MOON_ERR_MEMORY;
    else
        put_text(r, env, name, word, word->text + length + 1);
}

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_wrapper(const char *text) {
    static const char *const words[] = {"env", "exec", "nohup", "sudo", "time", "python", "python3", "-m"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcmp(last_part(text), words[i]) == 0)
            return true;
    return false;
}

static bool is_program(const char *text) {
    const char *name = last_part(text);
    return strcmp(name, "mooncake_master") == 0 || strcmp(name, "mooncake_client") == 0 || strcmp(name, "vllm") == 0 ||
           strcmp(name, "vllm.entrypoints.openai.api_server") == 0;
}

/* The environment of one command: its own assignments before the exported ones. */
static struct moon_json *environment(struct reader *r, size_t words) {
    struct moon_json *env = moon_json_object(r->lint->arena);
    placed(r, env, &r->words[words]);
    for (size_t i = 0; i < words && !r->lint->status; i++)
        if (assigned(r->words[i].text))
            put_variable(r, env, &r->words[i]);
    for (const struct moon_json *one = r->exported->first; one && !r->lint->status; one = one->next) {
        struct word word = {one->bytes, one->line, one->column, false};
        put_text(r, env, one->name, &word, one->bytes);
    }
    return env;
}

static void read_daemon(struct reader *r, size_t first, struct moon_json *object) {
    struct moon_json *flags = moon_json_array(r->lint->arena);
    put(r, object, "flags", placed(r, flags, &r->words[first]));
    for (size_t i = first + 1; i < r->count && !r->lint->status; i++)
        if (!moon_json_push(flags, placed(r, moon_json_string(r->lint->arena, r->words[i].text), &r->words[i])))
            r->lint->status = MOON_ERR_MEMORY;
}

static const struct {
    const char *option, *member;
    void (*put)(struct reader *r, struct moon_json *object, const char *name, const struct word *word,
                const char *text);
} options[] = {
    {"--model", "model", put_text},
    {"--kv-transfer-config", "kv_transfer_config", put_json},
    {"--tensor-parallel-size", "tp", put_number},
    {"-tp", "tp", put_number},
    {"--pipeline-parallel-size", "pp", put_number},
    {"-pp", "pp", put_number},
    {"--prefill-context-parallel-size", "pcp", put_number},
    {"-pcp", "pcp", put_number},
    {"--decode-context-parallel-size", "dcp", put_number},
    {"-dcp", "dcp", put_number},
    {"--prefix-caching-hash-algo", "hash_algo", put_text},
    {"--port", "http_port", put_number},
    {"--block-size", "block_size", put_number},
    {"--kv-cache-dtype", "kv_cache_dtype", put_text},
    {"--dtype", "dtype", put_text},
    {"--quantization", "quantization", put_text},
    {"-q", "quantization", put_text},
    {"--revision", "revision", put_text},
    {"--data-parallel-rank", "dp_index", put_number},
};

static void read_option(struct reader *r, size_t word, struct moon_json *engine) {
    const char *text = r->words[word].text;
    size_t length = strcspn(text, "=");
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strlen(options[i].option) != length || strncmp(options[i].option, text, length) != 0)
            continue;
        if (text[length] == '=') {
            struct word value = r->words[word];
            value.column += (uint32_t)length + 1;
            options[i].put(r, engine, options[i].member, &value, text + length + 1);
        } else if (word + 1 < r->count) {
            options[i].put(r, engine, options[i].member, &r->words[word + 1], r->words[word + 1].text);
        }
    }
}

static void read_engine(struct reader *r, size_t first, struct moon_json *engine) {
    size_t next = first + 1;
    if (next < r->count && strcmp(r->words[next].text, "serve") == 0)
        next++;
    if (next < r->count && r->words[next].text[0] != '-')
        put_text(r, engine, "model", &r->words[next], r->words[next].text);
    for (size_t i = next; i < r->count && !r->lint->status; i++)
        read_option(r, i, engine);
}

static void read_export(struct reader *r) {
    for (size_t i = 1; i < r->count && !r->lint->status; i++)
        if (assigned(r->words[i].text))
            put_variable(r, r->exported, &r->words[i]);
}

static void take_command(struct reader *r) {
    size_t program = 0;
    if (r->count > 0 && strcmp(r->words[0].text, "export") == 0) {
        read_export(r);
        return;
    }
    while (program < r->count && (assigned(r->words[program].text) || is_wrapper(r->words[program].text)))
        program++;
    if (program == r->count || !is_program(r->words[program].text))
        return;
    const char *name = last_part(r->words[program].text);
    struct moon_json *object = placed(r, moon_json_object(r->lint->arena), &r->words[program]);
    struct moon_json *env = environment(r, program);
    if (r->lint->status)
        return;
    put(r, object, "env", env);
    if (strcmp(name, "mooncake_master") == 0) {
        read_daemon(r, program, object);
        put(r, r->deployment, "master", object);
    } else if (strcmp(name, "mooncake_client") == 0) {
        read_daemon(r, program, object);
        moon_json_push(r->owners, object);
    } else {
        read_engine(r, program, object);
        moon_json_push(r->engines, object);
    }
}

struct moon_json *lint_commands(struct lint *lint, const struct moon_lint_input *input) {
    struct moon_arena *arena = lint->arena;
    struct reader *r = moon_arena_alloc(arena, sizeof *r);
    if (!r) {
        lint->status = MOON_ERR_MEMORY;
        return NULL;
    }
    r->lint = lint;
    r->at = input->bytes;
    r->end = input->bytes + input->length;
    r->line = r->column = 1;
    r->deployment = moon_json_object(arena);
    r->exported = moon_json_object(arena);
    r->engines = moon_json_set(arena, r->deployment, "engines", moon_json_array(arena));
    r->owners = moon_json_set(arena, r->deployment, "owners", moon_json_array(arena));
    if (!r->engines || !r->owners || !r->exported)
        lint->status = MOON_ERR_MEMORY;
    while (r->at < r->end && !lint->status) {
        read_command(r);
        if (!lint->status)
            take_command(r);
    }
    return lint->status ? NULL : r->deployment;
}

bool lint_looks_like_commands(const struct moon_lint_input *input) {
    static const char *const programs[] = {"mooncake_master", "mooncake_client", "vllm ", "vllm.entrypoints"};
    size_t start = 0;
    while (start < input->length && strchr(" \t\r\n", input->bytes[start]) && input->bytes[start])
        start++;
    if (start == input->length || input->bytes[start] == '{' || input->bytes[start] == '[' ||
        input->bytes[start] == '"')
        return false;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++)
        if (memmem(input->bytes, input->length, programs[i], strlen(programs[i])))
            return true;
    return false;
}
