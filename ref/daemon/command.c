/* SPDX-License-Identifier: Apache-2.0 */
/* Help, version and complaints of the daemons. */
#include "ref/daemon/command.h"

#include "ref/base/version.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int moon_daemon_fail(const char *program, const struct moon_error *error) {
    fprintf(stderr, "%s: %s%s%s\n", program, error->where, error->where[0] ? ": " : "", error->message);
    return MOON_DAEMON_BAD;
}

int moon_daemon_complain(const char *program, const char *format, ...) {
    va_list arguments;
    char line[1024];
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s\n", program, line);
    return MOON_DAEMON_BAD;
}

int moon_daemon_print(const char *program, const struct moon_text *text) {
    if (text->failed)
        return moon_daemon_complain(program, "out of memory");
    if (fwrite(moon_text_value(text), 1, text->length, stdout) != text->length || fflush(stdout) != 0)
        return moon_daemon_complain(program, "standard output cannot be written: %s", strerror(errno));
    return MOON_DAEMON_DONE;
}

const struct moon_wire_release *moon_daemon_release(const char *program, const char *name) {
    const struct moon_wire_release *newest = moon_wire_releases[0], *release = newest;
    assert(newest);
    if (name)
        release = moon_wire_release_find(name);
    if (!release)
        moon_daemon_complain(program, "--release: Mooncake %.40s is not known; the newest is %s", name, newest->name);
    return release;
}

static bool asked(int argc, char *const argv[], const char *option) {
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], option) == 0)
            return true;
    return false;
}

int moon_daemon_parse(const char *program, const char *family, const struct moon_command *command, int argc,
                      char *const argv[], const char *operands[], int *count) {
    struct moon_error error;
    struct moon_text text;
    bool help = asked(argc, argv, "--help");
    if (!help && !asked(argc, argv, "--version")) {
        if (moon_options_parse(command, argc, argv, operands, count, &error) == 0)
            return -1;
        return moon_daemon_complain(program, "%s (%s %s --help tells the options)", error.message, family,
                                    command->name);
    }
    moon_text_open(&text, moon_memory_heap());
    if (help)
        moon_options_usage(family, command, &text);
    else
        moon_text_format(&text, "%s " MOON_VERSION "\n", program);
    int status = moon_daemon_print(program, &text);
    moon_text_close(&text);
    return status;
}
