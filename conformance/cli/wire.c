/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck wire: shows captured Mooncake streams in words, and judges recorded messages against the codecs. */
#include "conformance/cli/cli.h"

#include "conformance/wire_decode.h"
#include "conformance/wire_fixture.h"

#include <stdio.h>
#include <string.h>

enum { INPUT_BYTES_MAX = 256 * 1024 * 1024 };

static const char *kind_name = "any", *release_name;

static const struct moon_option options[] = {
    {.name = "kind",
     .kind = MOON_OPTION_TEXT,
     .into = &kind_name,
     .value = "KIND",
     .help =
         "what the stream holds: request, response, handshake, data-request, data-answer; default: any, guessed for "
         "each frame"},
    {.name = "release",
     .kind = MOON_OPTION_TEXT,
     .into = &release_name,
     .value = "RELEASE",
     .help = "Mooncake release of both sides, such as 0.3.13; default: the newest that fits each message"},
    {.name = NULL},
};

const struct moon_command moon_command_wire = {
    .name = "wire",
    .operands = "decode FILE|- | check FILE|DIR...",
    .summary = "show a captured Mooncake stream in words",
    .details =
        "decode prints every frame of a stream with its offset, function and fields. FILE holds the bytes of one "
        "direction of a TCP connection, or of single frames one after the other: binary, or as hex digits and white "
        "space. Master and client calls (coro_rpc), the transfer engine's handshake and its TCP data port are "
        "recognised; on the data port --kind is safer than the guess.\n\n"
        "check decodes and encodes recorded messages (fixtures/wire) and compares both ways byte for byte.\n\n"
        "Exit status: 0 all was understood, 1 a frame was not, or a recorded message differs, 2 the input cannot be "
        "read or does not start with a frame.",
    .options = options,
    .operands_min = 2,
    .operands_max = -1,
};

static int find_kind(enum moon_wire_kind_of_frame *kind) {
    static const char *const names[] = {
        [MOON_WIRE_ANY] = "any",
        [MOON_WIRE_RPC_REQUEST] = "request",
        [MOON_WIRE_RPC_RESPONSE] = "response",
        [MOON_WIRE_HANDSHAKE] = "handshake",
        [MOON_WIRE_DATA_REQUEST] = "data-request",
        [MOON_WIRE_DATA_ANSWER] = "data-answer",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(kind_name, names[i]) == 0) {
            *kind = (enum moon_wire_kind_of_frame)i;
            return MOON_OK;
        }
    return moon_cli_complain("--kind %s is none of any, request, response, handshake, data-request, data-answer",
                             kind_name);
}

static int decode(const char *path) {
    enum moon_wire_kind_of_frame kind = MOON_WIRE_ANY;
    const struct moon_wire_release *release = release_name ? moon_wire_release_find(release_name) : NULL;
    struct moon_text input, words;
    struct moon_error error = {0};
    size_t faults = 0;
    if (find_kind(&kind))
        return MOON_EXIT_BAD;
    if (release_name && !release)
        return moon_cli_complain("--release %s is none of 0.3.13, 0.3.12, 0.3.11, 0.3.10", release_name);
    moon_text_open(&input, moon_memory_heap());
    moon_text_open(&words, moon_memory_heap());
    int status = moon_io_read(path, INPUT_BYTES_MAX, &input, &error);
    if (!status)
        status = moon_wire_unhex(&input, &error);
    if (!status)
        status = moon_wire_decode_stream(moon_text_value(&input), input.length, kind, release, &words, &faults, &error);
    if (status && !error.where[0])
        snprintf(error.where, sizeof error.where, "%s", moon_io_source(path));
    int exit_status = status ? moon_cli_fail(&error) : moon_cli_print(&words);
    moon_text_close(&words);
    moon_text_close(&input);
    return exit_status ? exit_status : faults > 0 ? MOON_EXIT_FAILED : MOON_EXIT_PASSED;
}

static int check_file(const char *path, size_t *passed, size_t *failed, struct moon_text *report,
                      struct moon_error *error) {
    struct moon_arena arena;
    struct moon_json *document = NULL;
    moon_arena_open(&arena, moon_memory_heap());
    int status = moon_io_read_json(&arena, path, MOON_JSON_STRICT, &document, error);
    if (!status)
        status = moon_wire_fixture_check(moon_io_source(path), document, passed, failed, report, error);
    moon_arena_close(&arena);
    return status;
}

static int check_operand(struct moon_arena *arena, const char *path, size_t *passed, size_t *failed,
                         struct moon_text *report, struct moon_error *error) {
    const char *const *files = &path;
    size_t count = 1;
    int status = moon_io_is_folder(path) ? moon_io_list(arena, path, &files, &count, error) : MOON_OK;
    for (size_t i = 0; i < count && !status; i++)
        status = check_file(files[i], passed, failed, report, error);
    return status;
}

static int check(const char *const paths[], int count) {
    struct moon_arena arena;
    struct moon_text report;
    struct moon_error error = {0};
    size_t passed = 0, failed = 0;
    int status = MOON_OK;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&report, moon_memory_heap());
    for (int i = 0; i < count && !status; i++)
        status = check_operand(&arena, paths[i], &passed, &failed, &report, &error);
    if (!status && passed + failed == 0)
        status = moon_fail(&error, MOON_ERR_SCHEMA, paths[0], "there is no recorded message");
    moon_text_format(&report, "%zu passed, %zu failed, 0 skipped\n", passed, failed);
    int exit_status = status ? moon_cli_fail(&error) : moon_cli_print(&report);
    moon_text_close(&report);
    moon_arena_close(&arena);
    return exit_status ? exit_status : failed > 0 ? MOON_EXIT_FAILED : MOON_EXIT_PASSED;
}

int moon_cli_wire(const char *const operands[], int count) {
    if (strcmp(operands[0], "decode") == 0 && count == 2)
        return decode(operands[1]);
    if (strcmp(operands[0], "decode") == 0)
        return moon_cli_complain("wire decode takes one file");
    if (strcmp(operands[0], "check") == 0)
        return check(operands + 1, count - 1);
    return moon_cli_complain("wire %s is none of: decode FILE|-, check FILE|DIR...", operands[0]);
}
