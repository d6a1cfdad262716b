/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers that all commands share: one clear line for a failure, complete output or none. */
#include "conformance/cli/cli.h"

#include <stdarg.h>
#include <stdio.h>

int moon_cli_fail(const struct moon_error *error) {
    if (error->where[0])
        fprintf(stderr, "mooncheck: %s: %s\n", error->where, error->message);
    else
        fprintf(stderr, "mooncheck: %s\n", error->message);
    return MOON_EXIT_BAD;
}

int moon_cli_complain(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("mooncheck: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return MOON_EXIT_BAD;
}

int moon_cli_print(const struct moon_text *text) {
    struct moon_error error;
    if (text->failed)
        return moon_cli_complain("out of memory");
    if (moon_io_print(text->data, text->length, &error) != 0)
        return moon_cli_fail(&error);
    return 0;
}

int moon_cli_print_json(const struct moon_json *value) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_json_write(value, MOON_JSON_PRETTY, &text);
    moon_text_char(&text, '\n');
    int exit_status = moon_json_broken(value) ? moon_cli_complain("out of memory") : moon_cli_print(&text);
    moon_text_close(&text);
    return exit_status;
}
