/* SPDX-License-Identifier: Apache-2.0 */
/* Command line from one table, which also makes help, man page and shell completion. Long options only, no
 * abbreviations. */
#ifndef MOON_BASE_OPTIONS_H
#define MOON_BASE_OPTIONS_H

#include "ref/base/error.h"
#include "ref/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moon_option_kind {
    MOON_OPTION_FLAG,    /* --name, --name=true|false; `into` is bool* */
    MOON_OPTION_TEXT,    /* --name VALUE, --name=VALUE; `into` is const char** (borrowed from argv) */
    MOON_OPTION_INTEGER, /* the same; `into` is int64_t*, checked against min..max */
    MOON_OPTION_LIST,    /* may be repeated; `into` is struct moon_option_list* */
    MOON_OPTION_CHOICE,  /* one word of `choices` ("a|b|c"); `into` is const char** */
};

enum { MOON_OPTION_LIST_MAX = 64 };
struct moon_option_list {
    const char *values[MOON_OPTION_LIST_MAX];
    size_t count;
};

/* One row; a table has at most 64 and ends with a row whose name is NULL. */
struct moon_option {
    const char *name; /* without the dashes */
    enum moon_option_kind kind;
    void *into;
    const char *value;   /* placeholder in help ("FILE", "N"); NULL for flags */
    const char *choices; /* MOON_OPTION_CHOICE only */
    int64_t min, max;    /* MOON_OPTION_INTEGER only */
    const char *help;    /* one sentence, no final period needed; default value in words */
};

/* A command: `mooncheck NAME`. A table of commands ends with a row whose name is NULL. */
struct moon_command {
    const char *name;
    const char *operands; /* "FILE|DIR...", "" for none */
    const char *summary;  /* one line */
    const char *details;  /* paragraphs for --help and the man page; may be NULL */
    const struct moon_option *options;
    int operands_min, operands_max; /* -1: any number */
};

/* Parses argv[0..argc) (without the program and command words) by the table. Operands are moved, in order, to
 * operands[0..*operand_count), an array of at least argc entries. "--" ends options. Returns 0, MOON_ERR_SCHEMA
 * (unknown option with a suggestion, missing or surplus value, repeated option, wrong number of operands) or
 * MOON_ERR_RANGE; `where` is then the command's name. What `into` points to must hold its default before. --help is
 * left to the caller. */
int moon_options_parse(const struct moon_command *command, int argc, char *const argv[], const char *operands[],
                       int *operand_count, struct moon_error *error);

/* Writers of the same table. */
void moon_options_usage(const char *program, const struct moon_command *command,
                        struct moon_text *out); /* --help of one */
void moon_options_overview(const char *program, const struct moon_command commands[],
                           struct moon_text *out); /* --help of all */
void moon_options_man(const char *program, const char *summary, const struct moon_command commands[],
                      struct moon_text *out); /* mdoc, section 1 */
void moon_options_completion(const char *program, const struct moon_command commands[],
                             struct moon_text *out); /* bash */

#ifdef __cplusplus
}
#endif
#endif
