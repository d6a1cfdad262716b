/* SPDX-License-Identifier: Apache-2.0 */
/* What commands that judge share: facts about the run, the reports in every form, the exit status. */
#include "conformance/cli/run_report.h"

#include "conformance/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static int typed_count;
static char *const *typed;
static uint64_t started_ns;

void moon_cli_remember(int argc, char *const argv[]) {
    typed_count = argc;
    typed = argv;
    started_ns = moon_now_ns();
}

static const char *or_empty(const char *text) {
    return text ? text : "";
}

static const char *command_line(struct moon_arena *arena) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_text_string(&text, "mooncheck");
    for (int i = 1; i < typed_count; i++) {
        bool plain = typed[i][0] && !typed[i][strcspn(typed[i], " \t\n'\"\\$*?[]()|&;<>")];
        moon_text_format(&text, " %s%s%s", plain ? "" : "'", typed[i], plain ? "" : "'");
    }
    const char *copy = moon_arena_copy(arena, moon_text_value(&text), text.length);
    moon_text_close(&text);
    return or_empty(copy);
}

/* "model name" of the first CPU, or "". */
static const char *cpu_name(struct moon_arena *arena) {
    char line[256];
    const char *name = "";
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        name = or_empty(moon_arena_copy(arena, colon + 2, strcspn(colon + 2, "\n")));
        break;
    }
    if (file)
        fclose(file);
    return name;
}

#ifdef __clang__
static const char compiler[] = __VERSION__;
#else
static const char compiler[] = "gcc " __VERSION__;
#endif

static const char *host_line(struct moon_arena *arena) {
    struct utsname system;
    if (uname(&system) != 0)
        return "";
    return or_empty(moon_arena_format(arena, "%s %s %s, %s, %ld CPUs, compiled by %s", system.sysname, system.release,
                                      system.machine, cpu_name(arena), sysconf(_SC_NPROCESSORS_ONLN), compiler));
}

static const char *utc(struct moon_arena *arena, bool with_time) {
    char text[80];
    time_t now = time(NULL);
    struct tm parts;
    gmtime_r(&now, &parts);
    snprintf(text, sizeof text, "%04d-%02d-%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
    size_t date = strlen(text);
    if (with_time)
        snprintf(text + date, sizeof text - date, "T%02d:%02d:%02dZ", parts.tm_hour, parts.tm_min, parts.tm_sec);
    return moon_arena_copy(arena, text, strlen(text));
}

const char *moon_cli_today(struct moon_arena *arena) {
    return utc(arena, false);
}

void moon_cli_open_result(struct moon_result *result, struct moon_arena *arena, const char *target) {
    *result = (struct moon_result){.arena = arena, .target = target, .harness_version = MOON_VERSION};
    result->command = command_line(arena);
    result->host = host_line(arena);
    result->started = or_empty(utc(arena, true));
    result->target_name = result->target_version = result->target_homepage = "";
    result->mode = result->seed = result->digest = result->incomplete_why = "";
}

static bool wants_colour(void) {
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !getenv("NO_COLOR") && terminal && strcmp(terminal, "dumb") != 0;
}

static void closing(const struct moon_result *result, struct moon_text *out) {
    moon_result_closing_line(result, out);
    moon_text_char(out, '\n');
}
static void terminal_plain(const struct moon_result *result, struct moon_text *out) {
    moon_report_terminal(result, false, out);
}
static void terminal(const struct moon_result *result, struct moon_text *out) {
    moon_report_terminal(result, wants_colour(), out);
}
static void html(const struct moon_result *result, struct moon_text *out) {
    moon_report_html(&result, 1, out);
}

typedef void (*writer)(const struct moon_result *result, struct moon_text *out);

/* Writes one form to a file of the folder, or to standard output when `folder` is NULL. */
static int write_form(const struct moon_result *result, writer write, const char *folder, const char *file) {
    struct moon_text text;
    struct moon_error error;
    int status = 0;
    moon_text_open(&text, moon_memory_heap());
    write(result, &text);
    if (!folder) {
        status = moon_cli_print(&text);
    } else {
        const char *path = moon_arena_format(result->arena, "%s/%s", folder, file);
        if (text.failed || !path)
            status = moon_cli_complain("out of memory");
        else if (moon_io_write(path, moon_text_value(&text), text.length, &error) != 0)
            status = moon_cli_fail(&error);
    }
    moon_text_close(&text);
    return status;
}

static int write_folder(const struct moon_result *result, const char *folder) {
    static const struct {
        const char *file;
        writer write;
    } forms[] = {{"results.json", moon_report_json}, {"index.html", html},
                 {"results.tap", moon_report_tap},   {"junit.xml", moon_report_junit},
                 {"terminal.txt", terminal_plain},   {"closing.txt", closing}};
    struct moon_error error;
    if (moon_io_make_folder(folder, &error) != 0)
        return moon_cli_fail(&error);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (write_form(result, forms[i].write, folder, forms[i].file) != 0)
            return MOON_EXIT_BAD;
    return 0;
}

int moon_cli_finish(int status, const struct moon_error *error, struct moon_result *result,
                    const struct moon_cli_report *report) {
    const char *format = report->json ? "json" : report->format;
    writer write = strcmp(format, "json") == 0    ? moon_report_json
                   : strcmp(format, "tap") == 0   ? moon_report_tap
                   : strcmp(format, "junit") == 0 ? moon_report_junit
                                                  : terminal;
    if (status != 0)
        return moon_cli_fail(error);
    result->duration_ns = moon_now_ns() - started_ns;
    if (report->out_folder && write_folder(result, report->out_folder) != 0)
        return MOON_EXIT_BAD;
    if (write_form(result, write, NULL, NULL) != 0)
        return MOON_EXIT_BAD;
    return moon_result_exit(result);
}

bool moon_cli_required(const char *name) {
    const char *list = getenv("MOONCHECK_REQUIRE");
    size_t length = strlen(name);
    while (list && *list) {
        size_t word = strcspn(list, ", ");
        if (word == length && strncmp(list, name, length) == 0)
            return true;
        list += word;
        list += strspn(list, ", ");
    }
    return false;
}

void moon_cli_progress(size_t done, size_t all) {
    if (!isatty(STDERR_FILENO))
        return;
    if (done < all)
        fprintf(stderr, "\r%zu of %zu", done, all);
    else
        fputs("\r\033[K", stderr);
    fflush(stderr);
}
