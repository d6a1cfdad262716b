/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of standard input, be it a pipe, a socket, a terminal or a file, on the daemon's loop. */
#include "ref/daemon/agent.h"

#include <errno.h>
#include <unistd.h>

enum { CHUNK_BYTES = 64 * 1024 };

/* is_file: the system cannot tell when a regular file is readable; it always is. too_long: the rest of a line that was
 * refused is passed over. searched: bytes of the text that hold no end of a line. */
struct input {
    struct moon_agent agent;
    struct moon_daemon *daemon;
    uv_poll_t poll;
    uv_idle_t idle;
    uv_prepare_t prepare;
    struct moon_text text;
    size_t searched;
    int descriptor;
    bool is_file, reading, at_end, too_long;
};

static void readable(uv_poll_t *poll, int status, int events);
static void read_file(uv_idle_t *idle);

static void set_reading(struct input *input, bool reading) {
    if (reading == input->reading)
        return;
    input->reading = reading;
    if (input->is_file && reading)
        uv_idle_start(&input->idle, read_file);
    else if (input->is_file)
        uv_idle_stop(&input->idle);
    else if (reading)
        uv_poll_start(&input->poll, UV_READABLE, readable);
    else
        uv_poll_stop(&input->poll);
}

/* Takes the whole lines that are there, as long as there is room for requests. */
static void take_lines(struct input *input) {
    struct moon_text *text = &input->text;
    size_t used = 0;
    while (used < text->length && !input->agent.stopped && input->agent.request_count < MOON_AGENT_REQUESTS_MAX) {
        const char *line = text->data + used, *from = line + input->searched;
        const char *end = memchr(from, '\n', text->length - used - input->searched);
        input->searched = end || input->at_end ? 0 : text->length - used;
        if (input->searched > 0)
            break;
        size_t length = end ? (size_t)(end - line) : text->length - used;
        if (!input->too_long)
            moon_agent_take(&input->agent, line, length);
        input->too_long = false;
        used += length + (end != NULL);
        moon_agent_reap(&input->agent);
    }
    if (used > 0)
        memmove(text->data, text->data + used, text->length - used);
    text->length -= used;
    if (input->searched > MOON_AGENT_LINE_BYTES_MAX) {
        if (!input->too_long)
            moon_agent_refuse_line(&input->agent);
        input->too_long = true;
        moon_text_clear(text);
        input->searched = 0;
    }
}

/* After any event: clients that are gone, lines that waited, and whether there is more to do. */
static void go_on(struct input *input) {
    moon_agent_reap(&input->agent);
    take_lines(input);
    bool full = input->agent.request_count >= MOON_AGENT_REQUESTS_MAX;
    set_reading(input, !input->at_end && !full && !input->agent.stopped);
    bool idle = input->at_end && input->text.length == 0 && input->agent.request_count == 0;
    if (input->agent.stopped || idle)
        moon_daemon_end(input->daemon, input->text.failed ? 2 : 0);
}

static void read_some(struct input *input) {
    char bytes[CHUNK_BYTES];
    ssize_t count = read(input->descriptor, bytes, sizeof bytes);
    if (count > 0)
        moon_text_bytes(&input->text, bytes, (size_t)count);
    input->at_end = count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN) || input->text.failed;
}

static void readable(uv_poll_t *poll, int status, int events) {
    (void)status;
    (void)events;
    read_some(poll->data);
    go_on(poll->data);
}

static void read_file(uv_idle_t *idle) {
    read_some(idle->data);
    go_on(idle->data);
}

static void timers_ran(uv_prepare_t *prepare) {
    go_on(prepare->data);
}

int moon_agent_run(struct moon_daemon *daemon, const struct moon_wire_protocol *protocol, int in, int out) {
    struct input input = {.daemon = daemon, .descriptor = in};
    moon_agent_open(&input.agent, daemon, protocol, out);
    moon_text_open(&input.text, moon_memory_heap());
    uv_idle_init(&daemon->loop, &input.idle);
    uv_prepare_init(&daemon->loop, &input.prepare);
    input.is_file = uv_poll_init(&daemon->loop, &input.poll, in) != 0;
    input.poll.data = input.idle.data = input.prepare.data = &input;
    uv_prepare_start(&input.prepare, timers_ran); /* operations end in timers */
    go_on(&input);
    int status = moon_daemon_run(daemon);
    moon_agent_close(&input.agent);
    if (!input.is_file)
        uv_close((uv_handle_t *)&input.poll, NULL);
    uv_close((uv_handle_t *)&input.idle, NULL);
    uv_close((uv_handle_t *)&input.prepare, NULL);
    /* The handles are of this function: libuv lets go of them here. A loop that was stopped before it ran only forgets
     * that in its first turn. */
    for (int i = 0; i < 2; i++)
        uv_run(&daemon->loop, UV_RUN_NOWAIT);
    moon_text_close(&input.text);
    return status;
}
