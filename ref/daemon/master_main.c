/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck-master: the master as a process, with the flags of mooncake_master. */
#include "ref/base/endpoint.h"
#include "ref/daemon/command.h"
#include "ref/daemon/duration.h"
#include "ref/daemon/loop.h"
#include "ref/daemon/master_flags.h"
#include "ref/store/master_node.h"

#include <stdio.h>

static const char PROGRAM[] = "mooncheck-master";

/* The command line. Ports -1: not given. */
struct line {
    struct moon_daemon_options daemon;
    int64_t port, rpc_port;
    const char *address, *release;
    const char *lease_ttl, *client_ttl, *discard, *hold, *eviction, *watermark;
};

/* Reads what the texts of the line say. */
static int read_settings(const struct line *line, struct moon_master_settings *master, struct moon_error *error) {
    int status = 0;
    *master = moon_master_defaults();
    const struct {
        const char *name, *text;
        moon_ns unit_ns, *into;
    } durations[] = {
        {"default_kv_lease_ttl", line->lease_ttl, MOON_NS_PER_MS, &master->lease_ttl_ns},
        {"client_ttl", line->client_ttl, MOON_NS_PER_S, &master->client_ttl_ns},
        {"put_start_discard_timeout_sec", line->discard, MOON_NS_PER_S, &master->put_start_discard_ns},
        {"put_start_release_timeout_sec", line->hold, MOON_NS_PER_S, &master->put_start_release_ns},
    };
    for (size_t i = 0; i < sizeof durations / sizeof *durations && status == 0; i++)
        if (durations[i].text)
            status = moon_duration_read(durations[i].name, durations[i].text, durations[i].unit_ns, durations[i].into,
                                        error);
    if (status == 0 && line->eviction)
        status = moon_ratio_read("eviction_ratio", line->eviction, &master->eviction_millionths, error);
    if (status == 0 && line->watermark)
        status =
            moon_ratio_read("eviction_high_watermark_ratio", line->watermark, &master->watermark_millionths, error);
    if (status == 0 && master->put_start_release_ns <= master->put_start_discard_ns)
        status = moon_fail(error, MOON_ERR_RANGE, NULL,
                           "--put_start_release_timeout_sec must be more than --put_start_discard_timeout_sec");
    return status;
}

static int read_endpoint(const struct line *line, char endpoint[MOON_ENDPOINT_BYTES], struct moon_error *error) {
    int64_t port = line->rpc_port > 0 ? line->rpc_port : line->port >= 0 ? line->port : line->rpc_port;
    if (!moon_endpoint_join(line->address, (uint16_t)(port >= 0 ? port : 50051), endpoint, MOON_ENDPOINT_BYTES))
        return moon_fail(error, MOON_ERR_RANGE, NULL, "--rpc_address is too long");
    return 0;
}

static int serve(struct moon_daemon *daemon, const struct moon_master_node_settings *settings) {
    struct moon_error error;
    struct moon_daemon_node *node = moon_daemon_node_open(daemon, &moon_master_program, settings, &error);
    if (!node)
        return moon_daemon_fail(PROGRAM, &error);
    const char *address = moon_master_node_address(moon_daemon_node_instance(node));
    printf("%s: listening on %s\n", PROGRAM, address);
    fflush(stdout);
    moon_control_ready(&daemon->control, address);
    int status = moon_daemon_run(daemon);
    moon_daemon_node_close(node);
    return status;
}

static int run(const struct line *line) {
    struct moon_error error = {.message = "out of memory"};
    struct moon_daemon daemon;
    struct moon_wire_protocol protocol;
    struct moon_master_node_settings settings = {.protocol = &protocol, .with_text = true};
    char endpoint[MOON_ENDPOINT_BYTES];
    const struct moon_wire_release *release = moon_daemon_release(PROGRAM, line->release);
    if (!release)
        return MOON_DAEMON_BAD;
    if (read_settings(line, &settings.master, &error) != 0 || read_endpoint(line, endpoint, &error) != 0 ||
        moon_wire_protocol_open(&protocol, release, moon_memory_heap()) != 0 ||
        moon_daemon_open(&daemon, &line->daemon, &error) != 0)
        return moon_daemon_fail(PROGRAM, &error);
    settings.endpoint = endpoint;
    int status = serve(&daemon, &settings);
    moon_daemon_close(&daemon);
    return status;
}

int main(int argc, char *argv[]) {
    struct line line = {.daemon = {.node = "master", .control = -1}, .port = -1, .rpc_port = -1, .address = "0.0.0.0"};
#define TEXT(name_, into_, value_, help_)                                                                              \
    { .name = (name_), .kind = MOON_OPTION_TEXT, .into = &line.into_, .value = (value_), .help = (help_) }
#define PORT(name_, into_, help_)                                                                                      \
    {                                                                                                                  \
        .name = (name_), .kind = MOON_OPTION_INTEGER, .into = &line.into_, .value = "N", .min = 0, .max = UINT16_MAX,  \
        .help = (help_)                                                                                                \
    }
    const struct moon_option options[] = {
        PORT("port", port, "port to listen at; 0 takes a free one (50051)"),
        PORT("rpc_port", rpc_port, "the same; goes before --port if it is not 0"),
        TEXT("rpc_address", address, "HOST", "address to listen at (0.0.0.0)"),
        TEXT("default_kv_lease_ttl", lease_ttl, "MS", "how long a read keeps an object (10000; 10s)"),
        TEXT("client_ttl", client_ttl, "S", "how long an owner may be silent (10; 10s)"),
        TEXT("put_start_discard_timeout_sec", discard, "S", "after which a put under way may be overwritten (30)"),
        TEXT("put_start_release_timeout_sec", hold, "S", "after which its memory is used again (600)"),
        TEXT("eviction_ratio", eviction, "R", "share of the objects that an eviction takes (0.05)"),
        TEXT("eviction_high_watermark_ratio", watermark, "R", "use of memory that begins one (0.90)"),
        TEXT("release", release, "R", "Mooncake release whose messages are spoken (the newest)"),
        MOON_DAEMON_OPTIONS(line.daemon),
        {.name = NULL},
    };
#undef TEXT
#undef PORT
    const struct moon_command command = {
        .name = "master",
        .operands = "",
        .summary = "Runs the master of a store: which objects there are and where they lie.",
        .details =
            "Mooncake's flags are understood in all their spellings; durations also with ms, s, m or h. Flags of "
            "what is not implemented yet are accepted with their default value only.\n"
            "Ends in order on SIGTERM and SIGINT.",
        .options = options,
    };
    struct moon_arena arena;
    struct moon_error error;
    int count = 0, operand_count = 0;
    moon_arena_open(&arena, moon_memory_heap());
    char **words = moon_arena_array(&arena, (size_t)argc * 2, sizeof *words);
    const char **operands = moon_arena_array(&arena, (size_t)argc * 2, sizeof *operands);
    int status;
    if (!words || !operands)
        status = moon_daemon_complain(PROGRAM, "out of memory");
    else if (moon_master_flags_take(&arena, &command, argc - 1, argv + 1, words, &count, &error) != 0)
        status = moon_daemon_complain(PROGRAM, "%s (mooncheck master --help tells the options)", error.message);
    else
        status = moon_daemon_parse(PROGRAM, "mooncheck", &command, count, words, operands, &operand_count);
    if (status < 0)
        status = run(&line);
    moon_arena_close(&arena);
    return status;
}
