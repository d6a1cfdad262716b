/* SPDX-License-Identifier: Apache-2.0 */
/* Compares an answer with what a vector expects, and tells a person where they part. */
#include "conformance/compare.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    SHOWN_BYTES = 160, /* of each side; around the first difference when they are longer */
    BEFORE_BYTES = 40, /* of those, before the first difference */
};

bool moon_compare_message_counts(const char *error_class, const char *message) {
    static const char *const own[] = {"ValueError",   "TypeError",           "AssertionError",
                                      "RuntimeError", "NotImplementedError", NULL};
    /* Beginnings of texts that CPython itself raises as one of those classes; they change between Python releases. */
    static const char *const interpreter[] = {"unsupported operand", "'<' not supported",  "can only concatenate",
                                              "invalid literal for", "could not convert",  "int() argument must be",
                                              "float() argument",    "Exceeds the limit",  "cannot convert float",
                                              "argument of type",    "embedded null byte", "cannot unpack non-iterable",
                                              "expected str, bytes", "unhashable type",    NULL};
    for (size_t i = 0; interpreter[i]; i++)
        if (strncmp(message, interpreter[i], strlen(interpreter[i])) == 0)
            return false;
    for (size_t i = 0; own[i]; i++)
        if (strcmp(error_class, own[i]) == 0)
            return true;
    return false;
}

static const char *text_of(const struct moon_json *object, const char *name) {
    const struct moon_json *value = moon_json_member(object, name);
    return moon_json_is(value, MOON_JSON_STRING) ? value->bytes : "";
}

static bool is_error(const struct moon_json *value) {
    return moon_json_is(value, MOON_JSON_OBJECT) && value->name && strcmp(value->name, "error") == 0 &&
           moon_json_is(moon_json_member(value, "class"), MOON_JSON_STRING);
}

static bool same_error(const struct moon_json *expect, const struct moon_json *answer) {
    const char *class = text_of(expect, "class");
    if (strcmp(class, text_of(answer, "class")) != 0)
        return false;
    return !moon_compare_message_counts(class, text_of(expect, "message")) ||
           moon_json_equal(moon_json_member(expect, "message"), moon_json_member(answer, "message"));
}

static bool listed(const char *const names[], const char *name) {
    for (size_t i = 0; names && names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

/* The two places where a walk in parallel stands; NULL where one side has nothing. */
struct pair {
    const struct moon_json *expect;
    const struct moon_json *answer;
};

/* How much of an object counts. */
struct rules {
    const char *const *optional; /* members that may be missing on either side; NULL: none */
    bool random;                 /* null stands for any value or none, and the answer may tell more */
};

/* First member of one object that the other lacks. */
static bool lacking(const struct moon_json *full, const struct moon_json *other, const struct rules *rules,
                    const struct moon_json **missing) {
    for (const struct moon_json *one = full->first; one; one = one->next) {
        if (rules->random && one->type == MOON_JSON_NULL)
            continue;
        if (!moon_json_member(other, one->name) && !listed(rules->optional, one->name)) {
            *missing = one;
            return true;
        }
    }
    return false;
}

/* Compares one pair without its children. True when different here. *descend: the children are to be looked at. */
static bool differs_here(struct pair at, const struct rules *rules, struct pair *where, bool *descend) {
    const struct moon_json *missing = NULL;
    *where = at;
    *descend = false;
    if (rules->random && at.expect->type == MOON_JSON_NULL)
        return false;
    if (is_error(at.expect) && is_error(at.answer))
        return !same_error(at.expect, at.answer);
    if (at.expect->type != at.answer->type)
        return true;
    if (at.expect->type == MOON_JSON_ARRAY) {
        *descend = true;
        return false; /* a length that differs shows when one side has no next element */
    }
    if (at.expect->type != MOON_JSON_OBJECT)
        return !moon_json_equal(at.expect, at.answer);
    *descend = true;
    if (lacking(at.expect, at.answer, rules, &missing)) {
        *where = (struct pair){missing, NULL};
        return true;
    }
    if (!rules->random && lacking(at.answer, at.expect, rules, &missing)) {
        *where = (struct pair){NULL, missing};
        return true;
    }
    return false;
}

/* The pair after `at` among its siblings: elements by position, members by name, optional ones that the answer lacks
 * left out. */
static struct pair next_pair(const struct moon_json *expect, const struct moon_json *answer_parent,
                             const struct moon_json *answer_element) {
    if (answer_parent->type == MOON_JSON_ARRAY)
        return (struct pair){expect, answer_element};
    while (expect && !moon_json_member(answer_parent, expect->name))
        expect = expect->next;
    return (struct pair){expect, expect ? moon_json_member(answer_parent, expect->name) : NULL};
}

/* Walks both trees in parallel, depth first, until they differ. */
static bool find_difference(const struct moon_json *expect, const struct moon_json *answer, const struct rules *top,
                            struct pair *where) {
    const struct rules members = {NULL, top->random}, inner = {NULL, false};
    struct pair stack[MOON_JSON_DEPTH_MAX + 1];
    size_t depth = 0;
    stack[0] = (struct pair){expect, answer};
    for (;;) {
        struct pair at = stack[depth];
        bool descend = false;
        if (differs_here(at, depth == 0 ? top : depth == 1 ? &members : &inner, where, &descend))
            return true;
        struct pair next = {NULL, NULL};
        if (descend) {
            assert(depth < MOON_JSON_DEPTH_MAX);
            next = next_pair(at.expect->first, at.answer, at.answer->first);
            depth++;
        } else if (depth > 0) {
            next = next_pair(at.expect->next, at.answer->parent, at.answer->next);
        }
        while (depth > 0 && !next.expect && !next.answer) {
            depth--;
            if (depth > 0)
                next = next_pair(stack[depth].expect->next, stack[depth].answer->parent, stack[depth].answer->next);
        }
        if (depth == 0)
            return false;
        if (!next.expect || !next.answer) {
            *where = next;
            return true;
        }
        stack[depth] = next;
    }
}

static size_t common_prefix(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t i = 0;
    while (i < a_length && i < b_length && a[i] == b[i])
        i++;
    return i;
}

/* Appends SHOWN_BYTES of `text` around byte `centre`, cut at whole UTF-8 sequences. */
static void show_part(struct moon_text *out, const char *text, size_t length, size_t centre) {
    size_t start = centre > BEFORE_BYTES && length > SHOWN_BYTES ? centre - BEFORE_BYTES : 0;
    while (start > 0 && (text[start] & 0xC0) == 0x80)
        start--;
    size_t end = length - start > SHOWN_BYTES ? start + SHOWN_BYTES : length;
    while (end < length && (text[end] & 0xC0) == 0x80)
        end++;
    moon_text_string(out, start > 0 ? "..." : "");
    moon_text_bytes(out, text + start, end - start);
    moon_text_string(out, end < length ? "..." : "");
}

/* Appends the path of a value below `root`, which is "$". */
static void show_path(struct moon_text *out, const struct moon_json *value, const struct moon_json *root) {
    struct moon_text path, above;
    moon_text_open(&path, out->memory);
    moon_text_open(&above, out->memory);
    moon_json_path(value, &path);
    moon_json_path(root, &above);
    out->failed |= path.failed || above.failed;
    moon_text_format(out, "$%s", path.failed || above.failed ? "" : path.data + above.length);
    moon_text_close(&path);
    moon_text_close(&above);
}

/* One side as "path: value", or "path: nothing there" when it has none. */
static const char *show_side(struct moon_arena *arena, const struct moon_json *value, const struct moon_json *other,
                             const struct moon_json *root) {
    struct moon_text mine, theirs, line;
    moon_text_open(&mine, arena->memory);
    moon_text_open(&theirs, arena->memory);
    moon_text_open(&line, arena->memory);
    show_path(&line, value ? value : other, root);
    moon_text_string(&line, ": ");
    if (value) {
        moon_json_write(value, MOON_JSON_COMPACT, &mine);
        if (other)
            moon_json_write(other, MOON_JSON_COMPACT, &theirs);
        size_t same = common_prefix(moon_text_value(&mine), mine.length, moon_text_value(&theirs), theirs.length);
        show_part(&line, moon_text_value(&mine), mine.length, other ? same : 0);
    } else {
        moon_text_string(&line, "nothing there");
    }
    line.failed |= mine.failed || theirs.failed;
    const char *shown = line.failed ? NULL : moon_arena_copy(arena, moon_text_value(&line), line.length);
    moon_text_close(&mine);
    moon_text_close(&theirs);
    moon_text_close(&line);
    return shown;
}

/* Keys are parts joined by '@': says which part differs first. */
static const char *hint_key(struct moon_arena *arena, const struct moon_json *expect, const struct moon_json *answer) {
    const char *a = expect->bytes, *b = answer->bytes;
    for (int part = 1;; part++) {
        size_t a_length = strcspn(a, "@"), b_length = strcspn(b, "@");
        if (a_length != b_length || memcmp(a, b, a_length) != 0)
            return moon_arena_format(arena, "part %d of the key differs: \"%.*s\" expected, \"%.*s\" seen", part,
                                     a_length > 120 ? 120 : (int)a_length, a, b_length > 120 ? 120 : (int)b_length, b);
        if (!a[a_length] || !b[b_length])
            return moon_arena_format(arena, "one key goes on after part %d, the other ends there", part);
        a += a_length + 1;
        b += b_length + 1;
    }
}

static const char *hint_hash(struct moon_arena *arena, const struct moon_json *expect, const struct moon_json *answer,
                             const struct moon_json *given, size_t block) {
    int64_t size = 0;
    struct moon_error ignored;
    if (moon_json_get_int("", given, "block_size", false, 1, INT32_MAX, &size, &ignored) != 0)
        size = 0;
    struct moon_text place;
    moon_text_open(&place, arena->memory);
    if (size > 0)
        moon_text_format(&place, " (tokens %lld to %lld)", (long long)block * size, (long long)(block + 1) * size - 1);
    const char *hint;
    if (expect->length != answer->length)
        hint = moon_arena_format(arena, "block %zu%s: a hash of %zu bytes expected, %zu seen: another algorithm", block,
                                 moon_text_value(&place), expect->length / 2, answer->length / 2);
    else if (block == 0)
        hint = moon_arena_format(arena,
                                 "the chain differs from its first block%s on: look at NONE_HASH, the encoding and the "
                                 "extra keys",
                                 moon_text_value(&place));
    else
        hint = moon_arena_format(arena, "block %zu%s is the first that differs; all before it agree", block,
                                 moon_text_value(&place));
    moon_text_close(&place);
    return hint;
}

static const char *hint_bytes(struct moon_arena *arena, const struct moon_json *expect,
                              const struct moon_json *answer) {
    size_t same = common_prefix(expect->bytes, expect->length, answer->bytes, answer->length) / 2;
    return moon_arena_format(arena, "the bytes differ from offset %zu on (%zu bytes expected, %zu seen)", same,
                             expect->length / 2, answer->length / 2);
}

static const char *hint_for(struct moon_arena *arena, const struct moon_json *given, struct pair where) {
    if (!where.expect)
        return "this was not expected";
    if (!where.answer)
        return "this is missing";
    if (where.expect->type != MOON_JSON_STRING || where.answer->type != MOON_JSON_STRING)
        return "";
    const struct moon_json *parent = where.expect->parent;
    const char *list = parent && parent->name ? parent->name : "", *name = where.expect->name ? where.expect->name : "";
    if (strcmp(list, "block_hashes") == 0)
        return hint_hash(arena, where.expect, where.answer, given, where.expect->index);
    if (strcmp(list, "preimages") == 0 || strcmp(name, "none_hash_preimage") == 0)
        return hint_bytes(arena, where.expect, where.answer);
    if (strcmp(name, "none_hash") == 0)
        return "NONE_HASH differs: look at how PYTHONHASHSEED is read, and at the algorithm";
    if (strchr(where.expect->bytes, '@'))
        return hint_key(arena, where.expect, where.answer);
    return "";
}

/* An exception on one side only says more than the first member that is missing for it. */
static bool one_sided_error(const struct moon_json *expect, const struct moon_json *answer, struct pair *where) {
    *where = (struct pair){moon_json_member(expect, "error"), moon_json_member(answer, "error")};
    return (where->expect == NULL) != (where->answer == NULL);
}

const char *moon_difference_seen(struct moon_arena *arena, const struct moon_difference *difference) {
    return difference->hint[0] ? moon_arena_format(arena, "%s (%s)", difference->seen, difference->hint)
                               : difference->seen;
}

int moon_compare(struct moon_arena *arena, const struct moon_suite *suite, const struct moon_json *given,
                 const struct moon_json *expect, const struct moon_json *answer, struct moon_difference *difference) {
    struct pair where;
    const struct moon_json *random = moon_json_member(expect, "random");
    const struct rules rules = {suite->optional, moon_json_is(random, MOON_JSON_BOOL) && random->boolean};
    if (!one_sided_error(expect, answer, &where) && !find_difference(expect, answer, &rules, &where))
        return 0;
    difference->expected = show_side(arena, where.expect, where.answer, where.expect ? expect : answer);
    difference->seen = show_side(arena, where.answer, where.expect, where.answer ? answer : expect);
    difference->hint = hint_for(arena, given, where);
    return difference->expected && difference->seen && difference->hint ? 1 : MOON_ERR_MEMORY;
}
