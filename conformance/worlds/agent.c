/* SPDX-License-Identifier: Apache-2.0 */
/* Processes of world tcp: started with a control channel, talked to by lines, ended by their id. */
#include "conformance/worlds/agent.h"

#include "conformance/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONTROL_BYTES_MAX = 1024 * 1024,
    OBITUARY_BYTES = 600,
    AGENTS_MAX = 64,
    LOOK_NS = 1000000, /* how long the rest of a line may take that has begun */
};

int moon_agent_start(struct moon_agent *agent, const char *name, const char *path_base, const char *command,
                     bool with_control, struct moon_error *error) {
    int pair[2] = {-1, -1};
    struct moon_text line;
    *agent = (struct moon_agent){.control = -1};
    snprintf(agent->name, sizeof agent->name, "%s", name);
    snprintf(agent->path_base, sizeof agent->path_base, "%s", path_base);
    if (with_control && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return moon_fail(error, MOON_ERR_IO, name, "cannot make a control channel: %s", strerror(errno));
    moon_text_open(&line, moon_memory_heap());
    moon_text_open(&agent->control_in, moon_memory_heap());
    moon_text_format(&line, "exec %s", command);
    if (with_control) {
        moon_text_format(&line, " --control %d", pair[1]);
        fcntl(pair[1], F_SETFD, 0); /* the child's end lives through its exec */
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
    }
    int status =
        line.failed ? moon_no_memory(error) : moon_process_start(&agent->process, moon_text_value(&line), NULL, error);
    moon_text_close(&line);
    if (pair[1] >= 0)
        close(pair[1]);
    agent->control = pair[0];
    agent->alive = status == 0;
    return status;
}

static void write_line(const struct moon_json *message, struct moon_text *line) {
    moon_text_open(line, moon_memory_heap());
    moon_json_write(message, MOON_JSON_COMPACT, line);
    moon_text_char(line, '\n');
}

void moon_agent_say(struct moon_agent *agent, const struct moon_json *message) {
    struct moon_text line;
    write_line(message, &line);
    moon_process_send(&agent->process, moon_text_value(&line), line.length);
    moon_text_close(&line);
}

/* What is told on this channel is short, and the process reads it whenever it is held: its buffer is enough. */
int moon_agent_control(struct moon_agent *agent, const struct moon_json *message, struct moon_error *error) {
    struct moon_text line;
    write_line(message, &line);
    ssize_t put = line.failed ? -1 : send(agent->control, line.data, line.length, MSG_NOSIGNAL);
    int status = put == (ssize_t)line.length
                     ? 0
                     : moon_fail(error, MOON_ERR_IO, agent->name, "its control channel takes no line");
    moon_text_close(&line);
    return status;
}

/* ---- taking ---- */

static int parse(struct moon_agent *agent, struct moon_arena *arena, const char *line, size_t length,
                 struct moon_json **message, struct moon_error *error) {
    struct moon_error why;
    if (moon_json_read(arena, agent->name, line, length, MOON_JSON_STRICT, message, &why) == 0 &&
        (*message)->type == MOON_JSON_OBJECT)
        return 0;
    return moon_fail(error, MOON_ERR_SYNTAX, agent->name, "says what is no JSON object: %.100s", line);
}

static void read_control(struct moon_agent *agent) {
    char buffer[16384];
    ssize_t got = recv(agent->control, buffer, sizeof buffer, 0);
    if (got > 0 && agent->control_in.length < CONTROL_BYTES_MAX) {
        moon_text_bytes(&agent->control_in, buffer, (size_t)got);
    } else if (got >= 0 || (errno != EAGAIN && errno != EINTR)) {
        close(agent->control);
        agent->control = -1;
    }
}

/* The next line of the control channel; false: there is none. */
static bool take_control(struct moon_agent *agent, char **line, size_t *length) {
    struct moon_text *text = &agent->control_in;
    size_t left = text->length - agent->control_taken;
    if (left == 0) {
        text->length = agent->control_taken = 0;
        return false;
    }
    char *start = text->data + agent->control_taken, *end = memchr(start, '\n', left);
    if (!end) {
        memmove(text->data, start, left);
        text->length = left;
        agent->control_taken = 0;
        return false;
    }
    *end = '\0';
    *line = start;
    *length = (size_t)(end - start);
    agent->control_taken += *length + 1;
    return true;
}

/* True if moon_process_wait has something to do now. */
static bool has_work(const struct moon_process *process) {
    struct pollfd fds[3] = {
        {.fd = process->ended ? -1 : process->out, .events = POLLIN},
        {.fd = process->err, .events = POLLIN},
        {.fd = process->outgoing.length > process->outgoing_offset ? process->in : -1, .events = POLLOUT},
    };
    return process->ended || process->incoming.length > process->incoming_offset || poll(fds, 3, 0) > 0;
}

int moon_agent_take(struct moon_agent *agent, struct moon_arena *arena, enum moon_agent_event *event,
                    struct moon_json **message, struct moon_error *error) {
    char *line = NULL;
    size_t length = 0;
    *event = MOON_AGENT_CONTROL;
    if (agent->control >= 0)
        read_control(agent);
    if (take_control(agent, &line, &length))
        return parse(agent, arena, line, length, message, error);
    *event = MOON_AGENT_NOTHING;
    if (!has_work(&agent->process))
        return 0;
    enum moon_process_event got = moon_process_wait(&agent->process, moon_now_ns() + LOOK_NS, &line, &length);
    *event = got == MOON_PROCESS_LINE     ? MOON_AGENT_ANSWER
             : got == MOON_PROCESS_SILENT ? MOON_AGENT_NOTHING
                                          : MOON_AGENT_DEAD;
    return got == MOON_PROCESS_LINE && !agent->silent ? parse(agent, arena, line, length, message, error) : 0;
}

void moon_agents_wait(struct moon_agent *const agents[], size_t count, uint64_t deadline_ns) {
    struct pollfd fds[4 * AGENTS_MAX];
    nfds_t used = 0;
    for (size_t i = 0; i < count && i < AGENTS_MAX; i++) {
        const struct moon_agent *agent = agents[i];
        if (!agent || !agent->alive)
            continue;
        const struct moon_process *process = &agent->process;
        bool writing = process->in >= 0 && process->outgoing.length > process->outgoing_offset;
        fds[used++] = (struct pollfd){.fd = process->ended ? -1 : process->out, .events = POLLIN};
        fds[used++] = (struct pollfd){.fd = process->err, .events = POLLIN};
        fds[used++] = (struct pollfd){.fd = writing ? process->in : -1, .events = POLLOUT};
        fds[used++] = (struct pollfd){.fd = agent->control, .events = POLLIN};
    }
    uint64_t now_ns = moon_now_ns(), left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    struct timespec left = {(time_t)(left_ns / 1000000000U), (long)(left_ns % 1000000000U)};
    ppoll(fds, used, &left, NULL);
}

/* ---- the end ---- */

static void keep_log(const struct moon_agent *agent) {
    char path[sizeof agent->path_base + 8];
    struct moon_error ignored;
    const char *log = moon_process_log(&agent->process);
    snprintf(path, sizeof path, "%s.log", agent->path_base);
    if (log[0])
        moon_io_write(path, log, strlen(log), &ignored);
}

void moon_agent_end(struct moon_agent *agent, int grace_ms) {
    if (!agent->alive)
        return;
    moon_process_end(&agent->process, grace_ms);
    agent->alive = false;
    if (agent->control >= 0)
        close(agent->control);
    agent->control = -1;
    moon_text_close(&agent->control_in);
    agent->control_taken = 0;
    keep_log(agent);
}

const char *moon_agent_obituary(const struct moon_agent *agent, struct moon_arena *arena) {
    const char *log = moon_process_log(&agent->process);
    size_t length = strlen(log);
    while (length > 0 && (log[length - 1] == '\n' || log[length - 1] == ' '))
        length--;
    const char *start = length > OBITUARY_BYTES ? log + length - OBITUARY_BYTES : log;
    char *text = moon_arena_format(arena, "the process %s (%s)%s%.*s", agent->name,
                                   agent->alive ? "still there" : agent->process.fate,
                                   length > 0 ? "; its log ends: " : "", (int)(log + length - start), start);
    for (char *c = text; c && *c; c++)
        if (*c == '\n')
            *c = ' ';
    return text ? text : agent->name;
}
