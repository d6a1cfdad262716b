/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck-client: a store client as a process: shell tool, owner, agent. */
#include "ref/base/endpoint.h"
#include "ref/base/suggest.h"
#include "ref/daemon/agent.h"
#include "ref/daemon/command.h"
#include "ref/daemon/duration.h"
#include "ref/daemon/tool.h"

#include <unistd.h>

static const char PROGRAM[] = "mooncheck-client";

enum work { PUT, GET, EXIST, REMOVE, OWNER, AGENT, WORKS };

/* The command line, of all commands. */
struct line {
    struct moon_daemon_options daemon;
    const char *master, *release, *segment, *host, *hostname, *tenant;
    bool force;
};

static int work_on(enum work work, struct moon_daemon *daemon, const struct line *line,
                   const struct moon_session_settings *settings, const char *const operands[], int count) {
    switch (work) {
    case PUT:
        return moon_tool_put(daemon, settings, operands[0], operands[1]);
    case GET:
        return moon_tool_get(daemon, settings, operands[0], count > 1 ? operands[1] : NULL);
    case EXIST:
        return moon_tool_exist(daemon, settings, operands, count);
    case REMOVE:
        return moon_tool_remove(daemon, settings, operands, count, line->force);
    case OWNER:
        return moon_tool_own(daemon, settings);
    default:
        moon_control_ready(&daemon->control, "");
        return moon_agent_run(daemon, settings->protocol, STDIN_FILENO, STDOUT_FILENO);
    }
}

/* A --hostname with a port is the name as it is; without one it is what peers dial. */
static int read_names(const struct line *line, struct moon_session_settings *settings, char host[MOON_HOST_BYTES],
                      struct moon_error *error) {
    uint16_t port;
    settings->host = line->host;
    settings->hostname = line->hostname;
    if (!line->hostname)
        return 0;
    if (!moon_endpoint_split(line->hostname, host, &port))
        return moon_fail(error, MOON_ERR_SCHEMA, NULL, "--hostname is HOST:PORT, not \"%.80s\"", line->hostname);
    return 0;
}

static int run(enum work work, const struct line *line, const char *const operands[], int count) {
    struct moon_error error = {.message = "out of memory"};
    struct moon_daemon daemon;
    struct moon_wire_protocol protocol;
    struct moon_session_settings settings = {.master = line->master, .tenant = line->tenant, .protocol = &protocol};
    char host[MOON_HOST_BYTES];
    const struct moon_wire_release *release = moon_daemon_release(PROGRAM, line->release);
    if (!release)
        return MOON_DAEMON_BAD;
    if (work == OWNER && !line->segment)
        return moon_daemon_complain(PROGRAM, "owner: --segment is missing: how much memory to lend");
    if ((line->segment && moon_size_read("segment", line->segment, &settings.segment_bytes, &error) != 0) ||
        read_names(line, &settings, host, &error) != 0 ||
        moon_wire_protocol_open(&protocol, release, moon_memory_heap()) != 0 ||
        moon_daemon_open(&daemon, &line->daemon, &error) != 0)
        return moon_daemon_fail(PROGRAM, &error);
    int status = work_on(work, &daemon, line, &settings, operands, count);
    if (daemon.history.failed)
        status = MOON_DAEMON_BAD;
    moon_daemon_close(&daemon);
    return status;
}

static int complain_unknown(const char *name, const struct moon_command commands[]) {
    const char *names[WORKS + 1] = {NULL};
    for (int i = 0; i < WORKS; i++)
        names[i] = commands[i].name;
    const char *near = moon_suggest(name, names);
    if (near)
        return moon_daemon_complain(PROGRAM, "there is no command \"%.60s\"; did you mean \"%s\"?", name, near);
    return moon_daemon_complain(PROGRAM, "there is no command \"%.60s\" (%s --help lists them)", name, PROGRAM);
}

static int print_overview(const struct moon_command commands[]) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_options_overview(PROGRAM, commands, &text);
    int status = moon_daemon_print(PROGRAM, &text);
    moon_text_close(&text);
    return status;
}

static int dispatch(const struct moon_command commands[], const struct line *line, int argc, char *argv[]) {
    const char *name = argc > 1 ? argv[1] : "";
    int work = 0, count = 0;
    if (argc < 2)
        return moon_daemon_complain(PROGRAM, "needs a command (%s --help lists them)", PROGRAM);
    if (strcmp(name, "--help") == 0)
        return print_overview(commands);
    while (work < WORKS && strcmp(commands[work].name, name) != 0)
        work++;
    if (work == WORKS && strcmp(name, "--version") != 0)
        return complain_unknown(name, commands);
    const char **operands = moon_memory_heap()->resize(moon_memory_heap(), NULL, 0, (size_t)argc * sizeof *operands);
    if (!operands)
        return moon_daemon_complain(PROGRAM, "out of memory");
    bool bare = work == WORKS; /* --version in place of a command */
    int status = moon_daemon_parse(PROGRAM, PROGRAM, &commands[bare ? 0 : work], argc - 2 + bare, argv + 2 - bare,
                                   operands, &count);
    if (status < 0)
        status = run((enum work)work, line, operands, count);
    moon_memory_heap()->resize(moon_memory_heap(), (void *)operands, (size_t)argc * sizeof *operands, 0);
    return status;
}

int main(int argc, char *argv[]) {
    struct line line = {.daemon = {.node = "client", .control = -1}, .master = "127.0.0.1:50051", .host = "127.0.0.1"};
#define TEXT(name_, into_, value_, help_)                                                                              \
    { .name = (name_), .kind = MOON_OPTION_TEXT, .into = &line.into_, .value = (value_), .help = (help_) }
#define MASTER  TEXT("master", master, "HOST:PORT", "where the master listens (127.0.0.1:50051)")
#define HOST    TEXT("host", host, "HOST", "address of this machine that owners reach it at (127.0.0.1)")
#define TENANT  TEXT("tenant", tenant, "NAME", "whose keys (default)")
#define RELEASE TEXT("release", release, "R", "Mooncake release whose messages are spoken (the newest)")
#define COMMON  MASTER, HOST, TENANT, RELEASE, MOON_DAEMON_OPTIONS(line.daemon)
    const struct moon_option plain[] = {COMMON, {.name = NULL}};
    const struct moon_option removing[] = {
        {.name = "force", .kind = MOON_OPTION_FLAG, .into = &line.force, .help = "also while readers have a lease"},
        COMMON,
        {.name = NULL}};
    const struct moon_option owning[] = {
        TEXT("segment", segment, "BYTES", "how much memory to lend; also 64MiB, 4GB"),
        TEXT("hostname", hostname, "HOST:PORT", "name of the segment (HOST and a free port)"),
        COMMON,
        {.name = NULL}};
    const struct moon_option agent[] = {RELEASE, MOON_DAEMON_OPTIONS(line.daemon), {.name = NULL}};
#undef COMMON
#undef RELEASE
#undef TENANT
#undef HOST
#undef MASTER
#undef TEXT
    const struct moon_command commands[WORKS + 1] = {
        [PUT] = {"put", "KEY FILE|-", "Stores a file or standard input under a key.", NULL, plain, 2, 2},
        [GET] = {"get", "KEY [FILE|-]", "Writes the object of a key to a file or standard output.", NULL, plain, 1, 2},
        [EXIST] = {"exist", "KEY...", "Tells which keys have an object; status 1 if one has none.", NULL, plain, 1, -1},
        [REMOVE] = {"rm", "KEY...", "Removes objects.", NULL, removing, 1, -1},
        [OWNER] = {"owner", "", "Lends memory to the store until SIGTERM, then gives it back.", NULL, owning, 0, 0},
        [AGENT] = {"agent", "", "Takes store calls as lines of JSON from standard input.",
                   "The adapter protocol: one message a line, one answer a line. An end of the input ends it.", agent,
                   0, 0},
        [WORKS] = {.name = NULL},
    };
    return dispatch(commands, &line, argc, argv);
}
