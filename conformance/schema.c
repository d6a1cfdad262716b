/* SPDX-License-Identifier: Apache-2.0 */
/* Checks JSON against the schemas in conformance/schema, which are compiled into the program. */
#include "conformance/schema.h"

#include "ref/base/suggest.h"

#include <assert.h>
#include <string.h>

enum { NAMES_MAX = 64, REFERENCES_MAX = 8 };

int moon_schema_open(struct moon_schema *schema, struct moon_arena *arena, const char *name, struct moon_error *error) {
    *schema = (struct moon_schema){0};
    for (size_t i = 0; moon_schema_texts[i].name; i++) {
        if (strcmp(moon_schema_texts[i].name, name) != 0)
            continue;
        struct moon_json *root = NULL;
        const char *text = moon_schema_texts[i].text;
        int status = moon_json_read(arena, name, text, strlen(text), MOON_JSON_STRICT, &root, error);
        assert(status == 0 || status == MOON_ERR_MEMORY);
        schema->root = root;
        return status;
    }
    return moon_fail(error, MOON_ERR_UNSUPPORTED, NULL, "there is no schema called %s", name);
}

void moon_schema_close(struct moon_schema *schema) {
    for (size_t i = 0; i < schema->pattern_count; i++)
        regfree(&schema->compiled[i]);
    schema->pattern_count = 0;
}

static bool matches(struct moon_schema *schema, const char *pattern, const struct moon_json *value) {
    size_t i = 0;
    while (i < schema->pattern_count && strcmp(schema->patterns[i], pattern) != 0)
        i++;
    if (i == schema->pattern_count) {
        assert(i < MOON_SCHEMA_PATTERNS_MAX);
        int status = regcomp(&schema->compiled[i], pattern, REG_EXTENDED | REG_NOSUB);
        assert(status == 0);
        (void)status;
        schema->patterns[i] = pattern;
        schema->pattern_count++;
    }
    return strlen(value->bytes) == value->length && regexec(&schema->compiled[i], value->bytes, 0, NULL, 0) == 0;
}

static bool type_is(const char *type, const struct moon_json *value) {
    if (strcmp(type, "number") == 0)
        return value->type == MOON_JSON_REAL || value->type == MOON_JSON_INTEGER;
    return strcmp(type, moon_json_type_name(value)) == 0;
}

static int check_type(const struct moon_json *types, const char *source, const struct moon_json *value,
                      struct moon_error *error) {
    const struct moon_json *one = types->type == MOON_JSON_ARRAY ? types->first : types;
    char wanted[128] = "";
    for (; one; one = types->type == MOON_JSON_ARRAY ? one->next : NULL) {
        if (type_is(one->bytes, value))
            return 0;
        size_t used = strlen(wanted);
        if (used + one->length + 5 < sizeof wanted) {
            strcat(wanted, used > 0 ? " or " : "");
            strcat(wanted, one->bytes);
        }
    }
    return moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "must be %s, is %s", wanted,
                          moon_json_type_name(value));
}

static int check_choice(const struct moon_json *choices, const char *source, const struct moon_json *value,
                        struct moon_error *error) {
    const char *names[NAMES_MAX + 1];
    size_t count = 0;
    for (const struct moon_json *one = choices->first; one; one = one->next) {
        if (moon_json_equal(one, value))
            return 0;
        if (one->type == MOON_JSON_STRING && count < NAMES_MAX)
            names[count++] = one->bytes;
    }
    names[count] = NULL;
    const char *near = moon_json_is(value, MOON_JSON_STRING) ? moon_suggest(value->bytes, names) : NULL;
    if (near)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, value,
                              "\"%.80s\" is not allowed here; did you mean \"%s\"?", value->bytes, near);
    char list[512] = "";
    for (size_t i = 0; i < count; i++)
        if (strlen(list) + strlen(names[i]) + 3 < sizeof list) {
            strcat(list, i > 0 ? ", " : "");
            strcat(list, names[i]);
        }
    return moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "is none of: %s", list);
}

static int check_constant(const struct moon_json *constant, const char *source, const struct moon_json *value,
                          struct moon_error *error) {
    if (moon_json_equal(constant, value))
        return 0;
    return moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "must be %s", constant->bytes);
}

static int check_required(const struct moon_json *required, const char *source, const struct moon_json *value,
                          struct moon_error *error) {
    for (const struct moon_json *one = required->first; one; one = one->next)
        if (!moon_json_member(value, one->bytes))
            return moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "member \"%s\" is missing", one->bytes);
    return 0;
}

static int check_closed(const struct moon_json *properties, const char *source, const struct moon_json *value,
                        struct moon_error *error) {
    const char *names[NAMES_MAX + 1];
    size_t count = 0;
    for (const struct moon_json *one = properties ? properties->first : NULL; one && count < NAMES_MAX; one = one->next)
        names[count++] = one->name;
    names[count] = NULL;
    return moon_json_closed(source, value, names, error);
}

/* Follows $ref. NULL (anything is allowed) passes through. */
static const struct moon_json *resolve(const struct moon_schema *schema, const struct moon_json *rule) {
    static const char prefix[] = "#/$defs/";
    for (int i = 0; i < REFERENCES_MAX; i++) {
        const struct moon_json *reference = moon_json_member(rule, "$ref");
        if (!reference)
            return rule;
        assert(strncmp(reference->bytes, prefix, sizeof prefix - 1) == 0);
        rule = moon_json_member(moon_json_member(schema->root, "$defs"), reference->bytes + sizeof prefix - 1);
        assert(rule);
    }
    assert(false); /* references of a schema that form a circle */
    return NULL;
}

/* One value against one rule, without its children. Keywords of the rule are looked at in their order. */
static int check_one(struct moon_schema *schema, const struct moon_json *rule, const char *source,
                     const struct moon_json *value, struct moon_error *error) {
    int status = 0;
    for (const struct moon_json *keyword = rule ? rule->first : NULL; keyword && status == 0; keyword = keyword->next) {
        bool object = value->type == MOON_JSON_OBJECT, string = value->type == MOON_JSON_STRING;
        if (strcmp(keyword->name, "type") == 0)
            status = check_type(keyword, source, value, error);
        else if (strcmp(keyword->name, "enum") == 0)
            status = check_choice(keyword, source, value, error);
        else if (strcmp(keyword->name, "const") == 0)
            status = check_constant(keyword, source, value, error);
        else if (object && strcmp(keyword->name, "required") == 0)
            status = check_required(keyword, source, value, error);
        else if (object && strcmp(keyword->name, "additionalProperties") == 0 && keyword->type == MOON_JSON_BOOL)
            status = check_closed(moon_json_member(rule, "properties"), source, value, error);
        else if (string && strcmp(keyword->name, "minLength") == 0 && value->length < (size_t)keyword->integer)
            status = moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "must not be empty");
        else if (string && strcmp(keyword->name, "pattern") == 0 && !matches(schema, keyword->bytes, value))
            status = moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "\"%.80s\" does not have the form %s",
                                    value->bytes, keyword->bytes);
    }
    return status;
}

static const struct moon_json *rule_of_child(const struct moon_schema *schema, const struct moon_json *rule,
                                             const struct moon_json *child) {
    if (!child->name)
        return resolve(schema, moon_json_member(rule, "items"));
    const struct moon_json *property = moon_json_member(moon_json_member(rule, "properties"), child->name);
    if (property)
        return resolve(schema, property);
    const struct moon_json *additional = moon_json_member(rule, "additionalProperties");
    return moon_json_is(additional, MOON_JSON_OBJECT) ? resolve(schema, additional) : NULL;
}

int moon_schema_check(struct moon_schema *schema, const char *definition, const char *source,
                      const struct moon_json *value, struct moon_error *error) {
    const struct moon_json *rules[MOON_JSON_DEPTH_MAX + 1] = {NULL};
    const struct moon_json *root = schema->root, *at = value;
    size_t depth = 0;
    if (definition)
        root = moon_json_member(moon_json_member(root, "$defs"), definition);
    assert(root);
    rules[0] = resolve(schema, root);
    for (;;) {
        int status = check_one(schema, rules[depth], source, at, error);
        if (status != 0)
            return status;
        if (rules[depth] && at->first && depth < MOON_JSON_DEPTH_MAX) {
            at = at->first;
            depth++;
        } else {
            while (at != value && !at->next) {
                at = at->parent;
                depth--;
            }
            if (at == value)
                return 0;
            at = at->next;
        }
        rules[depth] = rule_of_child(schema, rules[depth - 1], at);
    }
}
