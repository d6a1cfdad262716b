/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing a command line by its table. */
#include "ref/base/options.h"

#include "ref/base/suggest.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

enum { OPTIONS_MAX = 64, CHOICES_MAX = 32, CHOICES_BYTES_MAX = 512 };

/* State of one parse: which options were seen, by their row. */
struct parse {
    const struct moon_command *command;
    struct moon_error *error;
    uint64_t seen;
};

static size_t option_count(const struct moon_command *command) {
    size_t count = 0;
    while (command->options[count].name)
        count++;
    assert(count <= OPTIONS_MAX);
    return count;
}

static int unknown_option(const struct parse *p, const char *word, size_t name_length) {
    char name[128];
    const char *names[OPTIONS_MAX + 1] = {NULL};
    for (size_t i = 0; i < option_count(p->command); i++)
        names[i] = p->command->options[i].name;
    const char *start = word + strspn(word, "-");
    size_t length = name_length - (size_t)(start - word);
    if (length >= sizeof name)
        length = sizeof name - 1;
    memcpy(name, start, length);
    name[length] = '\0';
    const char *near = moon_suggest(name, names);
    return moon_fail(p->error, MOON_ERR_SCHEMA, p->command->name,
                     near ? "unknown option %.*s; did you mean --%s?" : "unknown option %.*s%s", (int)name_length, word,
                     near ? near : "");
}

static int set_integer(const struct parse *p, const struct moon_option *option, const char *value) {
    bool negative = value[0] == '-';
    const char *digits = value + negative;
    size_t count = strspn(digits, "0123456789");
    if (count == 0 || digits[count] != '\0')
        return moon_fail(p->error, MOON_ERR_SCHEMA, p->command->name, "--%s takes a whole number, not \"%s\"",
                         option->name, value);
    int64_t number = 0;
    bool fits = true;
    for (size_t i = 0; fits && i < count; i++) {
        int digit = digits[i] - '0';
        fits = !__builtin_mul_overflow(number, 10, &number) &&
               !__builtin_add_overflow(number, negative ? -digit : digit, &number);
    }
    if (!fits || number < option->min || number > option->max)
        return moon_fail(p->error, MOON_ERR_RANGE, p->command->name,
                         "--%s is %s, must be within %" PRId64 " and %" PRId64, option->name, value, option->min,
                         option->max);
    *(int64_t *)option->into = number;
    return MOON_OK;
}

static int set_choice(const struct parse *p, const struct moon_option *option, const char *value) {
    char words[CHOICES_BYTES_MAX];
    const char *names[CHOICES_MAX + 1] = {NULL};
    size_t length = strlen(option->choices), count = 0;
    assert(length < sizeof words);
    memcpy(words, option->choices, length + 1);
    char *state = NULL;
    for (char *word = strtok_r(words, "|", &state); word; word = strtok_r(NULL, "|", &state)) {
        assert(count < CHOICES_MAX);
        names[count++] = word;
        if (strcmp(word, value) == 0) {
            *(const char **)option->into = value;
            return MOON_OK;
        }
    }
    const char *near = moon_suggest(value, names);
    return moon_fail(p->error, MOON_ERR_SCHEMA, p->command->name,
                     near ? "--%s is one of %s, not \"%s\"; did you mean %s?" : "--%s is one of %s, not \"%s\"%s",
                     option->name, option->choices, value, near ? near : "");
}

static int set_flag(const struct parse *p, const struct moon_option *option, const char *value) {
    bool yes = !value || strcmp(value, "true") == 0;
    if (!yes && strcmp(value, "false") != 0)
        return moon_fail(p->error, MOON_ERR_SCHEMA, p->command->name,
                         "--%s takes no value but true or false, not \"%s\"", option->name, value);
    *(bool *)option->into = yes;
    return MOON_OK;
}

static int add_to_list(const struct parse *p, const struct moon_option *option, const char *value) {
    struct moon_option_list *list = option->into;
    if (list->count == MOON_OPTION_LIST_MAX)
        return moon_fail(p->error, MOON_ERR_SCHEMA, p->command->name, "--%s is given more than %d times", option->name,
                         MOON_OPTION_LIST_MAX);
    list->values[list->count++] = value;
    return MOON_OK;
}

static int set(const struct parse *p, const struct moon_option *option, const char *value) {
    switch (option->kind) {
    case MOON_OPTION_FLAG:
        return set_flag(p, option, value);
    case MOON_OPTION_INTEGER:
        return set_integer(p, option, value);
    case MOON_OPTION_LIST:
        return add_to_list(p, option, value);
    case MOON_OPTION_CHOICE:
        return set_choice(p, option, value);
    default:
        *(const char **)option->into = value;
        return MOON_OK;
    }
}

/* The option argv[*i], which begins with '-', and its value. Moves *i to the last word used. */
static int parse_option(struct parse *p, int argc, char *const argv[], int *i) {
    const char *word = argv[*i];
    size_t name_length = strcspn(word, "=");
    size_t count = option_count(p->command), row = 0;
    while (row < count && (strlen(p->command->options[row].name) + 2 != name_length || word[1] != '-' ||
                           memcmp(p->command->options[row].name, word + 2, name_length - 2) != 0))
        row++;
    if (row == count)
        return unknown_option(p, word, name_length);
    const struct moon_option *option = &p->command->options[row];
    if (p->seen >> row & 1 && option->kind != MOON_OPTION_LIST)
        return moon_fail(p->error, MOON_ERR_SCHEMA, p->command->name, "--%s is given twice", option->name);
    p->seen |= UINT64_C(1) << row;
    const char *value = word[name_length] == '=' ? word + name_length + 1 : NULL;
    if (!value && option->kind != MOON_OPTION_FLAG) {
        const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
        if (!next)
            return moon_fail(p->error, MOON_ERR_SCHEMA, p->command->name, "--%s needs a value: %s", option->name,
                             option->value);
        if (strncmp(next, "--", 2) == 0)
            return moon_fail(p->error, MOON_ERR_SCHEMA, p->command->name,
                             "--%s needs a value; if \"%s\" is meant, write --%s=%s", option->name, next, option->name,
                             next);
        value = next;
        ++*i;
    }
    return set(p, option, value);
}

static int check_operands(const struct parse *p, int count) {
    const struct moon_command *command = p->command;
    if (count < command->operands_min)
        return moon_fail(p->error, MOON_ERR_SCHEMA, command->name, "needs %s%s",
                         command->operands_max == command->operands_min ? "" : "at least ", command->operands);
    if (command->operands_max >= 0 && count > command->operands_max)
        return moon_fail(p->error, MOON_ERR_SCHEMA, command->name, "takes %s%s, not %d operand%s",
                         command->operands_max ? "only " : "none", command->operands, count, count == 1 ? "" : "s");
    return MOON_OK;
}

int moon_options_parse(const struct moon_command *command, int argc, char *const argv[], const char *operands[],
                       int *operand_count, struct moon_error *error) {
    struct parse p = {.command = command, .error = error};
    bool options_end = false;
    *operand_count = 0;
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i];
        if (options_end || word[0] != '-' || word[1] == '\0') { /* "-" alone is standard input */
            operands[(*operand_count)++] = word;
        } else if (strcmp(word, "--") == 0) {
            options_end = true;
        } else {
            int rc = parse_option(&p, argc, argv, &i);
            if (rc)
                return rc;
        }
    }
    return check_operands(&p, *operand_count);
}
