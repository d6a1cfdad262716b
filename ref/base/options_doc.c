/* SPDX-License-Identifier: Apache-2.0 */
/* Help, man page and shell completion from the tables that parse the command line. */
#include "ref/base/options.h"

#include <string.h>

enum { WIDTH = 80, HELP_COLUMN = 24 };

/* Writes text word by word from column `column`, wrapped at WIDTH, later lines indented to `indent`. A newline in the
 * text stays one. Ends with a newline. */
static void wrap(const char *text, size_t column, size_t indent, struct moon_text *out) {
    bool first = true; /* on its line */
    while (*text) {
        size_t length = strcspn(text, " \n");
        if (length > 0 && !first && column + 1 + length > WIDTH) {
            moon_text_char(out, '\n');
            moon_text_repeat(out, ' ', indent);
            column = indent;
            first = true;
        }
        if (length > 0) {
            moon_text_string(out, first ? "" : " ");
            moon_text_bytes(out, text, length);
            column += length + !first;
            first = false;
        }
        text += length;
        if (*text == '\n') {
            moon_text_char(out, '\n');
            if (text[1] != '\n' && text[1] != '\0')
                moon_text_repeat(out, ' ', indent);
            column = indent;
            first = true;
        }
        text += *text != '\0';
    }
    moon_text_char(out, '\n');
}

/* A left column of `width` that starts at `start`, and help beside it, or below where the left one is too wide. */
static void write_row(struct moon_text *out, size_t start, const char *help) {
    size_t column = out->length - start;
    if (column + 2 > HELP_COLUMN) {
        moon_text_char(out, '\n');
        column = 0;
    }
    moon_text_repeat(out, ' ', HELP_COLUMN - column);
    wrap(help, HELP_COLUMN, HELP_COLUMN, out);
}

void moon_options_usage(const char *program, const struct moon_command *command, struct moon_text *out) {
    moon_text_format(out, "Usage: %s %s%s%s%s\n\n", program, command->name,
                     command->options->name ? " [OPTION]..." : "", *command->operands ? " " : "", command->operands);
    wrap(command->summary, 0, 0, out);
    if (command->details) {
        moon_text_char(out, '\n');
        wrap(command->details, 0, 0, out);
    }
    if (command->options->name)
        moon_text_string(out, "\nOptions:\n");
    for (const struct moon_option *option = command->options; option->name; option++) {
        size_t start = out->length;
        moon_text_format(out, "  --%s", option->name);
        if (option->kind != MOON_OPTION_FLAG)
            moon_text_format(out, " %s", option->value);
        write_row(out, start, option->help);
        if (option->kind == MOON_OPTION_CHOICE) {
            moon_text_repeat(out, ' ', HELP_COLUMN);
            wrap(option->choices, HELP_COLUMN, HELP_COLUMN, out);
        }
    }
}

void moon_options_overview(const char *program, const struct moon_command commands[], struct moon_text *out) {
    moon_text_format(out, "Usage: %s COMMAND [OPTION]... [OPERAND]...\n\nCommands:\n", program);
    for (const struct moon_command *command = commands; command->name; command++) {
        size_t start = out->length;
        moon_text_format(out, "  %s", command->name);
        write_row(out, start, command->summary);
    }
    moon_text_format(out, "\n\"%s COMMAND --help\" tells the options of a command.\n", program);
}

/* Text for a line of mdoc: backslashes are escaped, and so is a dot or quote that would start a request. Words of a
 * text line may hold anything else. Newlines become new lines, empty lines paragraphs. */
static void man_text(const char *text, struct moon_text *out) {
    bool line_start = true;
    for (; *text; text++) {
        if (*text == '\n' && text[1] == '\n') {
            moon_text_string(out, "\n.Pp");
            continue;
        }
        if (line_start && (*text == '.' || *text == '\''))
            moon_text_string(out, "\\&");
        if (*text == '\\')
            moon_text_string(out, "\\e");
        else
            moon_text_char(out, *text);
        /* One sentence a line, as mdoc wants it. */
        if (strchr(".!?", *text) && text[1] == ' ') {
            moon_text_char(out, '\n');
            while (text[1] == ' ')
                text++;
        }
        line_start = out->length > 0 && out->data && out->data[out->length - 1] == '\n';
    }
    moon_text_char(out, '\n');
}

/* A sentence that may lack its period. */
static void man_sentence(const char *text, struct moon_text *out) {
    size_t before = out->length;
    man_text(text, out);
    if (out->length < before + 2 || strchr(".!?", out->data[out->length - 2]))
        return;
    out->data[out->length - 1] = '.';
    moon_text_char(out, '\n');
}

/* Text as one argument of a macro: quoted, because it may hold spaces, and names of macros. */
static void man_argument(const char *text, struct moon_text *out) {
    moon_text_string(out, " \"");
    for (; *text; text++)
        moon_text_string(out, *text == '\\' ? "\\e" : *text == '"' ? "\\(dq" : (const char[]){*text, '\0'});
    moon_text_char(out, '"');
}

static void man_command(const struct moon_command *command, struct moon_text *out) {
    moon_text_format(out, ".Ss %s\n", command->name);
    man_sentence(command->summary, out);
    moon_text_string(out, ".Pp\n.Nm\n");
    moon_text_format(out, ".Cm %s\n", command->name);
    if (command->options->name)
        moon_text_string(out, ".Op Ar option ...\n");
    if (*command->operands) {
        moon_text_string(out, ".Ar");
        man_argument(command->operands, out);
        moon_text_char(out, '\n');
    }
    if (command->details) {
        moon_text_string(out, ".Pp\n");
        man_text(command->details, out);
    }
    if (!command->options->name)
        return;
    moon_text_string(out, ".Bl -tag -width Ds\n");
    for (const struct moon_option *option = command->options; option->name; option++) {
        moon_text_format(out, ".It Fl Fl %s", option->name);
        if (option->kind != MOON_OPTION_FLAG) {
            moon_text_string(out, " Ar");
            man_argument(option->value, out);
        }
        moon_text_char(out, '\n');
        man_sentence(option->help, out);
        if (option->kind == MOON_OPTION_CHOICE) {
            moon_text_string(out, "One of\n.Ql");
            man_argument(option->choices, out);
            moon_text_string(out, " .\n");
        }
    }
    moon_text_string(out, ".El\n");
}

void moon_options_man(const char *program, const char *summary, const struct moon_command commands[],
                      struct moon_text *out) {
    moon_text_string(out, ".\\\" Made from the table of options; not to be edited.\n.Dd November 29, 2026\n.Dt ");
    for (const char *c = program; *c; c++)
        moon_text_char(out, *c >= 'a' && *c <= 'z' ? (char)(*c - 'a' + 'A') : *c);
    moon_text_format(out, " 1\n.Os\n.Sh NAME\n.Nm %s\n.Nd %s\n", program, summary);
    moon_text_string(out, ".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar option ...\n.Op Ar operand ...\n"
                          ".Sh DESCRIPTION\n"
                          "Options are long only and cannot be abbreviated.\n"
                          "A value follows its option as the next word or after an equals sign.\n"
                          "The word\n.Ql --\nends the options.\n"
                          ".Sh COMMANDS\n");
    for (const struct moon_command *command = commands; command->name; command++)
        man_command(command, out);
    moon_text_string(out, ".Sh EXIT STATUS\n"
                          ".Bl -tag -width Ds\n"
                          ".It 0\nAll that is required passed, possibly with skips.\n"
                          ".It 1\nA required case failed.\n"
                          ".It 2\nWrong usage or bad input.\n"
                          ".It 3\nUnknown or incomplete.\n"
                          ".It 77\nNothing ran because everything was skipped.\n"
                          ".El\n");
}

/* The program's name as part of a shell function's name. */
static void shell_name(const char *program, struct moon_text *out) {
    moon_text_char(out, '_');
    for (const char *c = program; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9');
        moon_text_char(out, letter ? *c : '_');
    }
}

/* One command: values of options that are a choice, nothing for numbers, files for the rest, else its options. */
static void complete_command(const struct moon_command *command, struct moon_text *out) {
    moon_text_format(out, "    %s)\n        case $before in\n", command->name);
    for (const struct moon_option *option = command->options; option->name; option++) {
        if (option->kind == MOON_OPTION_CHOICE) {
            moon_text_format(out, "        --%s) words='", option->name);
            for (const char *c = option->choices; *c; c++)
                moon_text_char(out, *c == '|' ? ' ' : *c);
            moon_text_string(out, "' ;;\n");
        } else if (option->kind == MOON_OPTION_INTEGER) {
            moon_text_format(out, "        --%s) return ;;\n", option->name);
        } else if (option->kind != MOON_OPTION_FLAG) {
            moon_text_format(out, "        --%s) files=1 ;;\n", option->name);
        }
    }
    moon_text_string(out, "        *) words='--help");
    for (const struct moon_option *option = command->options; option->name; option++)
        moon_text_format(out, " --%s", option->name);
    moon_text_format(out, "'%s ;;\n        esac\n        ;;\n", *command->operands ? " files=1" : "");
}

void moon_options_completion(const char *program, const struct moon_command commands[], struct moon_text *out) {
    moon_text_format(out, "# bash completion for %s, made from its table of options\n", program);
    shell_name(program, out);
    moon_text_string(out, "()\n{\n"
                          "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                          "    local words= files=\n"
                          "    COMPREPLY=()\n"
                          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                          "        COMPREPLY=($(compgen -W '--help");
    for (const struct moon_command *command = commands; command->name; command++)
        moon_text_format(out, " %s", command->name);
    moon_text_string(out, "' -- \"$current\"))\n"
                          "        return\n"
                          "    fi\n"
                          "    case ${COMP_WORDS[1]} in\n");
    for (const struct moon_command *command = commands; command->name; command++)
        complete_command(command, out);
    moon_text_string(out, "    esac\n"
                          "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
                          "    if [ -n \"$files\" ]; then\n"
                          "        compopt -o filenames 2>/dev/null\n"
                          "        COMPREPLY+=($(compgen -f -- \"$current\"))\n"
                          "    fi\n"
                          "}\ncomplete -F ");
    shell_name(program, out);
    moon_text_format(out, " %s\n", program);
}
