/* SPDX-License-Identifier: Apache-2.0 */
/* Streams over TCP: libuv reads straight into the user's room; what cannot be written at once waits in libuv.
 *
 * What a user must not hear from within its own call (sent, closed) waits in a ring that an idle handle empties at the
 * next turn of the loop. An object is freed when libuv has let go of all its handles and requests; until then it is
 * DEAD and nobody else points to it. */
#include "ref/fabric/tcp.h"

#include "ref/base/endpoint.h"
#include "ref/base/list.h"
#include "ref/fabric/tcp_address.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { BACKLOG = 4096, ACCEPTS_A_TURN = 64, READ_BYTES_MAX = 1 << 30, ACCEPT_PAUSE_MS = 100 };

enum state { RESOLVING, CONNECTING, STANDING, ENDING, DEAD };

/* One send() that was not written at once. */
struct write {
    uv_write_t request;
    struct tcp *tcp;
    struct write *next;
    size_t bytes; /* of this object */
    unsigned count;
    uv_buf_t buffers[];
};

/* What streams and listeners have in common. */
struct item {
    struct moon_stream stream;
    struct moon_tcp_fabric *fabric;
    struct moon_list all;
    bool listening;
};

/* A stream.
 *   holders     handles and requests that libuv still knows
 *   candidates  what the name resolved to; `candidate` is tried next
 *   asking      between give_room and got_bytes, where libuv does not bear that reading stops
 *   retrying    its handle is being closed, to be opened anew for the next candidate
 *   queued      given to send() before the stream stands
 *   writes      all that were given to send() and are not written yet
 *   into, room  where the user wants the next bytes; room 0: not asked yet */
struct tcp {
    struct item item;
    uv_tcp_t handle;
    uv_connect_t connect;
    uv_getaddrinfo_t resolve;
    struct addrinfo *candidates, *candidate;
    enum state state;
    enum moon_stream_end reason;
    struct moon_list pending;
    bool tell_sent, paused, retrying, asking;
    int holders;
    size_t writes;
    struct write *queued, **queued_tail;
    void *into;
    size_t room;
};

struct listener {
    struct item item;
    uv_poll_t poll;
    int socket;
};

struct moon_tcp_fabric {
    struct moon_streams streams;
    struct moon_environment *environment;
    struct moon_memory *memory;
    uv_loop_t *loop;
    uv_idle_t idle;     /* runs while something is pending */
    uv_timer_t accepts; /* runs while listeners are paused */
    void (*after)(void *context);
    void *context;
    struct moon_list all, pending;
    size_t unsent;  /* sends that are not written yet */
    size_t holders; /* items and own handles that are not freed yet */
    bool closed, complained;
};

/* Moves all that is in `from` to the new head `to`. */
static void move_all(struct moon_list *from, struct moon_list *to) {
    moon_list_add(from, to);
    moon_list_remove(from);
    moon_list_open(from);
}

static bool is_pending(const struct tcp *tcp) {
    return tcp->pending.next != NULL;
}

/* ---- the user's turn */

void moon_tcp_clocks(struct moon_environment *environment) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    environment->now_ns = (moon_ns)uv_hrtime();
    environment->wall_ns = wall.tv_sec * MOON_NS_PER_S + wall.tv_nsec;
}

static void begin(struct moon_tcp_fabric *fabric) {
    moon_tcp_clocks(fabric->environment);
}

static void end(struct moon_tcp_fabric *fabric) {
    if (!fabric->closed)
        fabric->after(fabric->context);
}

/* ---- lifetimes */

static void release_fabric(struct moon_tcp_fabric *fabric) {
    if (--fabric->holders == 0)
        fabric->memory->resize(fabric->memory, fabric, sizeof *fabric, 0);
}

static void release(struct tcp *tcp) {
    if (--tcp->holders > 0)
        return;
    struct moon_tcp_fabric *fabric = tcp->item.fabric;
    uv_freeaddrinfo(tcp->candidates);
    fabric->memory->resize(fabric->memory, tcp, sizeof *tcp, 0);
    release_fabric(fabric);
}

static void handle_closed(uv_handle_t *handle) {
    release(handle->data);
}

static void free_write(struct write *write) {
    struct moon_memory *memory = write->tcp->item.fabric->memory;
    write->tcp->writes--;
    write->tcp->item.fabric->unsent--;
    memory->resize(memory, write, write->bytes, 0);
}

/* Nothing of it is called or borrowed from here on. */
static void retire(struct tcp *tcp) {
    tcp->state = DEAD;
    moon_list_remove(&tcp->item.all);
    if (is_pending(tcp))
        moon_list_remove(&tcp->pending);
    while (tcp->queued) {
        struct write *write = tcp->queued;
        tcp->queued = write->next;
        free_write(write);
    }
    if (!tcp->retrying && !tcp->asking)
        uv_close((uv_handle_t *)&tcp->handle, handle_closed);
}

static void tell_pending(uv_idle_t *idle);

static void put_pending(struct tcp *tcp) {
    struct moon_tcp_fabric *fabric = tcp->item.fabric;
    if (is_pending(tcp))
        return;
    moon_list_add(&fabric->pending, &tcp->pending);
    uv_idle_start(&fabric->idle, tell_pending);
}

/* It has ended; its user will hear of it. */
static void finish(struct tcp *tcp, enum moon_stream_end reason) {
    if (tcp->state == ENDING)
        return;
    if (tcp->state == STANDING && !tcp->asking)
        uv_read_stop((uv_stream_t *)&tcp->handle);
    tcp->state = ENDING;
    tcp->reason = reason;
    put_pending(tcp);
}

static void written(struct tcp *tcp) {
    tcp->tell_sent = true;
    put_pending(tcp);
}

static void tell(struct tcp *tcp) {
    struct moon_stream *stream = &tcp->item.stream;
    bool sent = tcp->tell_sent && tcp->writes == 0;
    tcp->tell_sent = false;
    if (sent)
        stream->user->sent(stream->user, stream);
    if (tcp->state != ENDING)
        return;
    retire(tcp);
    stream->user->closed(stream->user, stream, tcp->reason);
}

/* Tells what is pending now; what that brings about waits for the next turn, so that the loop also reads. */
static void tell_pending(uv_idle_t *idle) {
    struct moon_tcp_fabric *fabric = idle->data;
    struct moon_list now;
    move_all(&fabric->pending, &now);
    while (!moon_list_empty(&now)) {
        struct tcp *tcp = MOON_HOLDER(now.next, struct tcp, pending);
        moon_list_remove(&tcp->pending);
        begin(fabric);
        tell(tcp);
        end(fabric);
    }
    if (moon_list_empty(&fabric->pending))
        uv_idle_stop(idle);
}

/* ---- reading */

static void give_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer) {
    struct tcp *tcp = handle->data;
    struct moon_stream *stream = &tcp->item.stream;
    (void)suggested;
    *buffer = uv_buf_init(NULL, 0);
    tcp->asking = true;
    if (tcp->room == 0) {
        begin(tcp->item.fabric);
        size_t room = stream->user->room(stream->user, stream, &tcp->into);
        if (tcp->state != STANDING)
            return;
        tcp->room = room < READ_BYTES_MAX ? room : READ_BYTES_MAX;
    }
    if (tcp->room > 0)
        *buffer = uv_buf_init(tcp->into, (unsigned)tcp->room);
}

/* room() gave none, or it closed or broke the stream: done here what could not be done there. */
static void got_no_room(struct tcp *tcp) {
    uv_read_stop((uv_stream_t *)&tcp->handle);
    tcp->paused = true;
    if (tcp->state == DEAD)
        uv_close((uv_handle_t *)&tcp->handle, handle_closed);
    end(tcp->item.fabric);
}

static void got_bytes(uv_stream_t *handle, ssize_t count, const uv_buf_t *buffer) {
    struct tcp *tcp = handle->data;
    struct moon_stream *stream = &tcp->item.stream;
    (void)buffer;
    tcp->asking = false;
    if (count == UV_ENOBUFS) {
        got_no_room(tcp);
    } else if (count < 0) {
        finish(tcp, count == UV_EOF ? MOON_STREAM_END_PEER : MOON_STREAM_END_BROKEN);
    } else if (count > 0) {
        tcp->room = 0;
        begin(tcp->item.fabric);
        stream->user->received(stream->user, stream, (size_t)count);
        end(tcp->item.fabric);
    }
}

static void start_reading(struct tcp *tcp) {
    tcp->paused = false;
    if (uv_read_start((uv_stream_t *)&tcp->handle, give_room, got_bytes) != 0)
        finish(tcp, MOON_STREAM_END_BROKEN);
}

static void tcp_resume(struct moon_streams *self, struct moon_stream *stream) {
    struct tcp *tcp = (struct tcp *)stream;
    (void)self;
    if (tcp->state == STANDING && tcp->paused)
        start_reading(tcp);
}

/* ---- writing */

static void write_done(uv_write_t *request, int status) {
    struct write *write = (struct write *)request;
    struct tcp *tcp = write->tcp;
    free_write(write);
    if (tcp->state == STANDING && status != 0)
        finish(tcp, MOON_STREAM_END_BROKEN);
    else if (tcp->state == STANDING && tcp->writes == 0)
        written(tcp);
}

static void start_write(struct write *write) {
    struct tcp *tcp = write->tcp;
    if (uv_write(&write->request, (uv_stream_t *)&tcp->handle, write->buffers, write->count, write_done) == 0)
        return;
    free_write(write);
    finish(tcp, MOON_STREAM_END_BROKEN);
}

/* Writes what goes at once, and drops it from the front of the pieces. Returns how many are left, -1 on error. */
static int write_now(struct tcp *tcp, uv_buf_t buffers[], unsigned count) {
    int wrote = uv_try_write((uv_stream_t *)&tcp->handle, buffers, count);
    if (wrote < 0 && wrote != UV_EAGAIN)
        return -1;
    size_t left = wrote > 0 ? (size_t)wrote : 0;
    unsigned first = 0;
    while (first < count && buffers[first].len <= left)
        left -= buffers[first++].len;
    if (first < count) {
        buffers[first].base += left;
        buffers[first].len -= left;
    }
    memmove(buffers, buffers + first, (count - first) * sizeof *buffers);
    return (int)(count - first);
}

static void tcp_send(struct moon_streams *self, struct moon_stream *stream, const struct moon_piece *pieces,
                     size_t count) {
    struct moon_tcp_fabric *fabric = (struct moon_tcp_fabric *)self;
    struct tcp *tcp = (struct tcp *)stream;
    uv_buf_t buffers[MOON_STREAM_PIECES_MAX];
    assert(count >= 1 && count <= MOON_STREAM_PIECES_MAX && !tcp->item.listening);
    if (tcp->state == ENDING)
        return;
    for (size_t i = 0; i < count; i++)
        buffers[i] = (uv_buf_t){pieces[i].data, pieces[i].length};
    int left = (int)count;
    if (tcp->state == STANDING && tcp->writes == 0)
        left = write_now(tcp, buffers, (unsigned)count);
    if (left == 0) {
        written(tcp);
        return;
    }
    size_t bytes = sizeof(struct write) + (size_t)(left < 0 ? 0 : left) * sizeof *buffers;
    struct write *write = left < 0 ? NULL : fabric->memory->resize(fabric->memory, NULL, 0, bytes);
    if (!write) {
        finish(tcp, MOON_STREAM_END_BROKEN);
        return;
    }
    *write = (struct write){.tcp = tcp, .bytes = bytes, .count = (unsigned)left};
    memcpy(write->buffers, buffers, (size_t)left * sizeof *buffers);
    tcp->writes++;
    fabric->unsent++;
    if (tcp->state == STANDING) {
        start_write(write);
        return;
    }
    *tcp->queued_tail = write;
    tcp->queued_tail = &write->next;
}

/* ---- opening */

static struct tcp *new_tcp(struct moon_tcp_fabric *fabric, struct moon_stream_user *user) {
    struct tcp *tcp = fabric->memory->resize(fabric->memory, NULL, 0, sizeof *tcp);
    if (!tcp)
        return NULL;
    *tcp = (struct tcp){.item = {.stream = {.user = user}, .fabric = fabric}, .holders = 1};
    if (uv_tcp_init(fabric->loop, &tcp->handle) != 0) {
        fabric->memory->resize(fabric->memory, tcp, sizeof *tcp, 0);
        return NULL;
    }
    tcp->handle.data = tcp->connect.data = tcp->resolve.data = tcp;
    tcp->queued_tail = &tcp->queued;
    moon_list_add(&fabric->all, &tcp->item.all);
    fabric->holders++;
    return tcp;
}

/* Reads both addresses. False: the stream is gone already, or has met itself (a port that nobody listens at may be the
 * one that the connection was given). */
static bool name_ends(struct tcp *tcp) {
    struct sockaddr_storage local, peer;
    struct moon_stream *stream = &tcp->item.stream;
    int local_bytes = sizeof local, peer_bytes = sizeof peer;
    return uv_tcp_getsockname(&tcp->handle, (struct sockaddr *)&local, &local_bytes) == 0 &&
           uv_tcp_getpeername(&tcp->handle, (struct sockaddr *)&peer, &peer_bytes) == 0 &&
           moon_tcp_address_text((const struct sockaddr *)&local, stream->local) &&
           moon_tcp_address_text((const struct sockaddr *)&peer, stream->peer) &&
           strcmp(stream->local, stream->peer) != 0;
}

static void stand(struct tcp *tcp) {
    tcp->state = STANDING;
    uv_tcp_nodelay(&tcp->handle, 1);
    while (tcp->queued && tcp->state == STANDING) {
        struct write *write = tcp->queued;
        tcp->queued = write->next;
        start_write(write);
    }
    if (tcp->state == STANDING)
        start_reading(tcp);
}

static void try_candidate(struct tcp *tcp, const struct sockaddr *address);

static void handle_closed_for_retry(uv_handle_t *handle) {
    struct tcp *tcp = handle->data;
    tcp->retrying = false;
    if (tcp->state == DEAD) {
        release(tcp);
        return;
    }
    int status = uv_tcp_init(tcp->item.fabric->loop, &tcp->handle);
    assert(status == 0); /* it asks for nothing */
    (void)status;
    if (tcp->state != CONNECTING)
        return;
    const struct addrinfo *candidate = tcp->candidate;
    tcp->candidate = candidate->ai_next;
    try_candidate(tcp, candidate->ai_addr);
}

static void candidate_failed(struct tcp *tcp) {
    if (!tcp->candidate) {
        finish(tcp, MOON_STREAM_END_REFUSED);
        return;
    }
    tcp->retrying = true;
    uv_close((uv_handle_t *)&tcp->handle, handle_closed_for_retry);
}

static void connect_done(uv_connect_t *request, int status) {
    struct tcp *tcp = request->data;
    struct moon_stream *stream = &tcp->item.stream;
    if (tcp->state != CONNECTING)
        return;
    if (status != 0 || !name_ends(tcp)) {
        candidate_failed(tcp);
        return;
    }
    stand(tcp);
    if (tcp->state != STANDING)
        return;
    begin(tcp->item.fabric);
    stream->user->opened(stream->user, stream);
    end(tcp->item.fabric);
}

static void try_candidate(struct tcp *tcp, const struct sockaddr *address) {
    if (uv_tcp_connect(&tcp->connect, &tcp->handle, address, connect_done) != 0)
        candidate_failed(tcp);
}

static void resolve_done(uv_getaddrinfo_t *request, int status, struct addrinfo *result) {
    struct tcp *tcp = request->data;
    tcp->candidates = result;
    if (tcp->state == RESOLVING && status == 0 && result) {
        tcp->state = CONNECTING;
        tcp->candidate = result->ai_next;
        try_candidate(tcp, result->ai_addr);
    } else if (tcp->state == RESOLVING) {
        finish(tcp, MOON_STREAM_END_REFUSED);
    }
    release(tcp);
}

static struct moon_stream *tcp_open(struct moon_streams *self, const char *endpoint, struct moon_stream_user *user) {
    struct moon_tcp_fabric *fabric = (struct moon_tcp_fabric *)self;
    char host[MOON_HOST_BYTES], service[8];
    struct sockaddr_storage address;
    uint16_t port;
    if (!moon_endpoint_split(endpoint, host, &port))
        return NULL;
    struct tcp *tcp = new_tcp(fabric, user);
    if (!tcp)
        return NULL;
    if (moon_tcp_address_parse(host, port, &address)) {
        tcp->state = CONNECTING;
        try_candidate(tcp, (const struct sockaddr *)&address);
        return &tcp->item.stream;
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    snprintf(service, sizeof service, "%u", (unsigned)port);
    if (uv_getaddrinfo(fabric->loop, &tcp->resolve, resolve_done, host, service, &hints) == 0)
        tcp->holders++;
    else
        finish(tcp, MOON_STREAM_END_REFUSED);
    return &tcp->item.stream;
}

/* ---- listening */

/* Takes a connection in. Returns 0, or the error number that accept gave. */
static int accept_one(struct listener *listener) {
    struct moon_tcp_fabric *fabric = listener->item.fabric;
    struct moon_stream_user *user = listener->item.stream.user;
    int socket = accept4(listener->socket, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0)
        return errno;
    struct tcp *tcp = new_tcp(fabric, NULL);
    if (!tcp || uv_tcp_open(&tcp->handle, socket) != 0)
        close(socket);
    if (!tcp)
        return ENOMEM;
    if (!name_ends(tcp)) {
        retire(tcp);
        return 0;
    }
    stand(tcp);
    begin(fabric);
    user->accepted(user, &tcp->item.stream);
    assert(tcp->state == DEAD || tcp->item.stream.user);
    end(fabric);
    return 0;
}

static void listener_ready(uv_poll_t *poll, int status, int events);

static void resume_accepting(uv_timer_t *timer) {
    struct moon_tcp_fabric *fabric = timer->data;
    for (struct moon_list *at = fabric->all.next; at != &fabric->all; at = at->next) {
        struct item *item = MOON_HOLDER(at, struct item, all);
        if (item->listening)
            uv_poll_start(&((struct listener *)item)->poll, UV_READABLE, listener_ready);
    }
}

/* Descriptors or memory have run out: connections wait in the kernel meanwhile. */
static void pause_accepting(struct listener *listener, int reason) {
    struct moon_tcp_fabric *fabric = listener->item.fabric;
    if (!fabric->complained)
        fprintf(stderr, "mooncheck: %s: no connection can be taken in for now: %s\n", listener->item.stream.local,
                strerror(reason));
    fabric->complained = true;
    uv_poll_stop(&listener->poll);
    uv_timer_start(&fabric->accepts, resume_accepting, ACCEPT_PAUSE_MS, 0);
}

static void listener_ready(uv_poll_t *poll, int status, int events) {
    struct listener *listener = poll->data;
    (void)events;
    for (int i = 0; i < ACCEPTS_A_TURN && status == 0; i++) {
        int reason = accept_one(listener);
        if (uv_is_closing((uv_handle_t *)poll) || reason == EAGAIN)
            return;
        if (reason != 0 && reason != EINTR && reason != ECONNABORTED) {
            pause_accepting(listener, reason);
            return;
        }
    }
}

/* A socket that listens at the address, and the address that it got. -1: refused. */
static int listening_socket(const struct sockaddr *address, char text[MOON_ADDRESS_BYTES]) {
    struct sockaddr_storage got;
    socklen_t got_bytes = sizeof got;
    socklen_t bytes = address->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    const int on = 1;
    int made = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made < 0)
        return -1;
    if (setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 && bind(made, address, bytes) == 0 &&
        listen(made, BACKLOG) == 0 && getsockname(made, (struct sockaddr *)&got, &got_bytes) == 0 &&
        moon_tcp_address_text((const struct sockaddr *)&got, text))
        return made;
    close(made);
    return -1;
}

/* The first address of a host; a name is looked up, here and now. */
static bool listen_address(struct moon_tcp_fabric *fabric, const char *host, uint16_t port,
                           struct sockaddr_storage *address) {
    uv_getaddrinfo_t request;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    char service[8];
    if (moon_tcp_address_parse(host, port, address))
        return true;
    snprintf(service, sizeof service, "%u", (unsigned)port);
    if (uv_getaddrinfo(fabric->loop, &request, NULL, host, service, &hints) != 0)
        return false;
    memcpy(address, request.addrinfo->ai_addr, request.addrinfo->ai_addrlen);
    uv_freeaddrinfo(request.addrinfo);
    return true;
}

static struct moon_stream *tcp_listen(struct moon_streams *self, const char *endpoint, struct moon_stream_user *user) {
    struct moon_tcp_fabric *fabric = (struct moon_tcp_fabric *)self;
    char host[MOON_HOST_BYTES];
    struct sockaddr_storage address;
    uint16_t port;
    if (!moon_endpoint_split(endpoint, host, &port) || !listen_address(fabric, host, port, &address))
        return NULL;
    struct listener *listener = fabric->memory->resize(fabric->memory, NULL, 0, sizeof *listener);
    if (!listener)
        return NULL;
    *listener = (struct listener){.item = {.stream = {.user = user}, .fabric = fabric, .listening = true}};
    listener->socket = listening_socket((const struct sockaddr *)&address, listener->item.stream.local);
    if (listener->socket < 0 || uv_poll_init_socket(fabric->loop, &listener->poll, listener->socket) != 0) {
        if (listener->socket >= 0)
            close(listener->socket);
        fabric->memory->resize(fabric->memory, listener, sizeof *listener, 0);
        return NULL;
    }
    listener->poll.data = listener;
    moon_list_add(&fabric->all, &listener->item.all);
    fabric->holders++;
    uv_poll_start(&listener->poll, UV_READABLE, listener_ready);
    return &listener->item.stream;
}

static void listener_closed(uv_handle_t *handle) {
    struct listener *listener = handle->data;
    struct moon_tcp_fabric *fabric = listener->item.fabric;
    fabric->memory->resize(fabric->memory, listener, sizeof *listener, 0);
    release_fabric(fabric);
}

static void close_item(struct item *item) {
    if (!item->listening) {
        retire((struct tcp *)item);
        return;
    }
    struct listener *listener = (struct listener *)item;
    moon_list_remove(&item->all);
    uv_close((uv_handle_t *)&listener->poll, listener_closed);
    close(listener->socket);
}

static void tcp_close(struct moon_streams *self, struct moon_stream *stream) {
    (void)self;
    close_item((struct item *)stream);
}

/* ---- fabric */

struct moon_tcp_fabric *moon_tcp_fabric_open(uv_loop_t *loop, struct moon_environment *environment,
                                             void (*after)(void *context), void *context) {
    struct moon_memory *memory = environment->memory;
    struct moon_tcp_fabric *fabric = memory->resize(memory, NULL, 0, sizeof *fabric);
    if (!fabric)
        return NULL;
    *fabric = (struct moon_tcp_fabric){.streams = {tcp_open, tcp_listen, tcp_send, tcp_resume, tcp_close},
                                       .environment = environment,
                                       .memory = memory,
                                       .loop = loop,
                                       .after = after,
                                       .context = context,
                                       .holders = 2};
    moon_list_open(&fabric->all);
    moon_list_open(&fabric->pending);
    uv_idle_init(loop, &fabric->idle);
    uv_timer_init(loop, &fabric->accepts);
    fabric->idle.data = fabric->accepts.data = fabric;
    environment->streams = &fabric->streams;
    moon_tcp_clocks(environment);
    return fabric;
}

size_t moon_tcp_fabric_unsent(const struct moon_tcp_fabric *fabric) {
    return fabric->unsent;
}

static void own_handle_closed(uv_handle_t *handle) {
    release_fabric(handle->data);
}

void moon_tcp_fabric_close(struct moon_tcp_fabric *fabric) {
    fabric->closed = true;
    fabric->environment->streams = NULL;
    for (struct moon_list *at = fabric->all.next, *next; at != &fabric->all; at = next) {
        next = at->next;
        close_item(MOON_HOLDER(at, struct item, all));
    }
    uv_close((uv_handle_t *)&fabric->idle, own_handle_closed);
    uv_close((uv_handle_t *)&fabric->accepts, own_handle_closed);
}
