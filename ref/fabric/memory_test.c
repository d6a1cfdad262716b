/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the streams by memcpy. */
#include "ref/fabric/memory.h"

#include "ref/base/error.h"
#include "ref/base/unit.h"

enum { LOG_BYTES = 512, BUFFER_BYTES = 256, STREAMS = 4 };

/* A user that writes down what it hears, in the order of a test's one log.
 *   room     how many bytes it takes at a time
 *   accepts  user of streams that come in; NULL: they are closed at once
 *   closes   it closes its stream when it has received something */
struct listener_log {
    char text[LOG_BYTES];
    size_t length;
};

struct user {
    struct moon_stream_user user;
    struct moon_environment *environment;
    struct listener_log *log;
    const char *name;
    size_t room;
    struct user *accepts;
    bool closes, closes_in_room;
    struct moon_stream *stream;
    char buffer[BUFFER_BYTES];
    size_t received;
};

static void note(struct user *user, const char *what, int number) {
    struct listener_log *log = user->log;
    int length =
        snprintf(log->text + log->length, LOG_BYTES - log->length, "%s%s.%s", log->length ? " " : "", user->name, what);
    log->length += (size_t)length;
    if (number >= 0)
        log->length += (size_t)snprintf(log->text + log->length, LOG_BYTES - log->length, "%d", number);
}

static void accepted(struct moon_stream_user *self, struct moon_stream *stream) {
    struct user *user = (struct user *)self;
    note(user, "accepted", -1);
    if (!user->accepts) {
        user->environment->streams->close(user->environment->streams, stream);
        return;
    }
    stream->user = &user->accepts->user;
    user->accepts->stream = stream;
}

static void opened(struct moon_stream_user *self, struct moon_stream *stream) {
    (void)stream;
    note((struct user *)self, "opened", -1);
}

static size_t room(struct moon_stream_user *self, struct moon_stream *stream, void **into) {
    struct user *user = (struct user *)self;
    *into = user->buffer + user->received;
    if (user->closes_in_room)
        user->environment->streams->close(user->environment->streams, stream);
    size_t left = BUFFER_BYTES - user->received;
    return user->room < left ? user->room : left;
}

static void received(struct moon_stream_user *self, struct moon_stream *stream, size_t bytes) {
    struct user *user = (struct user *)self;
    user->received += bytes;
    note(user, "received", (int)bytes);
    if (user->closes)
        user->environment->streams->close(user->environment->streams, stream);
}

static void sent(struct moon_stream_user *self, struct moon_stream *stream) {
    (void)stream;
    note((struct user *)self, "sent", -1);
}

static void closed(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end) {
    struct user *user = (struct user *)self;
    note(user, "closed", (int)end);
    if (user->stream == stream)
        user->stream = NULL;
}

/* Two nodes: b listens on port 50051, a opens streams to it. */
struct pair {
    struct moon_memory_failing memory;
    struct moon_memory_fabric *fabric;
    struct moon_environment a, b;
    struct listener_log log;
    struct user near, far, door;
};

static const struct moon_stream_user USER = {accepted, opened, room, received, sent, closed};

static void open_pair(struct pair *pair) {
    memset(pair, 0, sizeof *pair);
    moon_memory_failing_init(&pair->memory, moon_memory_heap(), 0);
    pair->fabric = moon_memory_fabric_open(&pair->memory.memory);
    MOON_CHECK_INT(moon_memory_fabric_attach(pair->fabric, &pair->a, "10.0.0.1"), 0);
    MOON_CHECK_INT(moon_memory_fabric_attach(pair->fabric, &pair->b, "10.0.0.2"), 0);
    pair->near = (struct user){USER, &pair->a, &pair->log, "a", 100, NULL, false, false, NULL, {0}, 0};
    pair->far = (struct user){USER, &pair->b, &pair->log, "b", 100, NULL, false, false, NULL, {0}, 0};
    pair->door = (struct user){USER, &pair->b, &pair->log, "door", 0, &pair->far, false, false, NULL, {0}, 0};
    pair->door.stream = pair->b.streams->listen(pair->b.streams, "10.0.0.2:50051", &pair->door.user);
    pair->near.stream = pair->a.streams->open(pair->a.streams, "10.0.0.2:50051", &pair->near.user);
    CU_ASSERT(pair->door.stream && pair->near.stream);
}

static void close_pair(struct pair *pair) {
    moon_memory_fabric_close(pair->fabric);
    MOON_CHECK_INT(pair->memory.held_bytes, 0);
}

static void run(struct pair *pair) {
    for (int steps = 0; steps < 100 && moon_memory_fabric_step(pair->fabric); steps++)
        continue;
}

static void say(struct user *user, const char *text) {
    struct moon_piece piece = {(void *)(uintptr_t)text, strlen(text)};
    user->environment->streams->send(user->environment->streams, user->stream, &piece, 1);
}

static void hang_up(struct user *user) {
    user->environment->streams->close(user->environment->streams, user->stream);
    user->stream = NULL;
}

static void test_connects(void) {
    struct pair pair;
    open_pair(&pair);
    say(&pair.near, "hello");
    CU_ASSERT_PTR_EQUAL(moon_memory_fabric_step(pair.fabric), &pair.b);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted");
    CU_ASSERT_PTR_EQUAL(moon_memory_fabric_step(pair.fabric), &pair.a);
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.received5 a.sent");
    MOON_CHECK_TEXT(pair.far.buffer, "hello");
    MOON_CHECK_TEXT(pair.near.stream->local, "10.0.0.1:20000");
    MOON_CHECK_TEXT(pair.near.stream->peer, "10.0.0.2:50051");
    MOON_CHECK_TEXT(pair.far.stream->local, "10.0.0.2:50051");
    MOON_CHECK_TEXT(pair.far.stream->peer, "10.0.0.1:20000");
    CU_ASSERT_PTR_NULL(moon_memory_fabric_step(pair.fabric));
    close_pair(&pair);
}

static void test_pieces(void) {
    struct pair pair;
    open_pair(&pair);
    char text[] = "abcdefg";
    struct moon_piece pieces[] = {{text, 2}, {NULL, 0}, {text + 2, 5}, {NULL, 0}};
    pair.far.room = 3;
    pair.a.streams->send(pair.a.streams, pair.near.stream, pieces, 4);
    say(&pair.near, "hi");
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.received3 b.received3 b.received3 a.sent");
    MOON_CHECK_TEXT(pair.far.buffer, "abcdefghi");
    close_pair(&pair);
}

static void test_pause(void) {
    struct pair pair;
    open_pair(&pair);
    pair.far.room = 0;
    say(&pair.near, "one");
    run(&pair);
    say(&pair.near, "two");
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened");
    pair.far.room = 4;
    pair.b.streams->resume(pair.b.streams, pair.far.stream);
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.received4 b.received2 a.sent");
    pair.b.streams->resume(pair.b.streams, pair.far.stream);
    CU_ASSERT_PTR_NULL(moon_memory_fabric_step(pair.fabric));
    close_pair(&pair);
}

static void test_close_keeps_bytes(void) {
    struct pair pair;
    open_pair(&pair);
    pair.far.room = 2;
    run(&pair);
    char text[] = "bye";
    say(&pair.near, text);
    (void)moon_memory_fabric_step(pair.fabric);
    say(&pair.near, "now");
    hang_up(&pair.near);
    memset(text, '-', 3);
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.received2 b.received2 b.received2 b.closed0");
    MOON_CHECK_TEXT(pair.far.buffer, "byenow");
    close_pair(&pair);
}

static void test_close_loses_answers(void) {
    struct pair pair;
    open_pair(&pair);
    run(&pair);
    say(&pair.far, "answer");
    hang_up(&pair.near);
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.closed1");
    close_pair(&pair);
}

static void test_send_to_nobody(void) {
    struct pair pair;
    open_pair(&pair);
    run(&pair);
    pair.far.room = 0;
    say(&pair.near, "never taken");
    run(&pair);
    hang_up(&pair.near);
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened");
    say(&pair.far, "to nobody");
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.closed1");
    close_pair(&pair);
}

static void test_sent_before_close(void) {
    struct pair pair;
    open_pair(&pair);
    pair.far.closes = true;
    say(&pair.near, "x");
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.received1 a.sent a.closed0");
    close_pair(&pair);
    open_pair(&pair);
    pair.far.closes_in_room = true;
    say(&pair.near, "x");
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened a.closed1");
    close_pair(&pair);
}

static void test_sent_only_when_all_is(void) {
    struct pair pair;
    open_pair(&pair);
    run(&pair);
    say(&pair.near, "x");
    (void)moon_memory_fabric_step(pair.fabric);
    say(&pair.near, "y");
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.received1 b.received1 a.sent");
    close_pair(&pair);
}

static void test_refused(void) {
    struct pair pair;
    open_pair(&pair);
    hang_up(&pair.door);
    say(&pair.near, "hello");
    (void)moon_memory_fabric_step(pair.fabric);
    say(&pair.near, "hello");
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "a.closed2");
    CU_ASSERT_PTR_NULL(pair.a.streams->open(pair.a.streams, "nonsense", &pair.near.user));
    CU_ASSERT_PTR_NULL(pair.a.streams->open(pair.a.streams, "host:65536", &pair.near.user));
    CU_ASSERT_PTR_NULL(pair.a.streams->open(
        pair.a.streams, "a-name-that-is-too-long-for-an-address-in-numbers-as-streams-have:1", &pair.near.user));
    close_pair(&pair);
}

static void test_refused_by_user(void) {
    struct pair pair;
    open_pair(&pair);
    pair.door.accepts = NULL;
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened a.closed0");
    close_pair(&pair);
}

static void test_close_before_anything(void) {
    struct pair pair;
    open_pair(&pair);
    say(&pair.near, "hello");
    hang_up(&pair.near);
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "");
    close_pair(&pair);
}

static void test_ports(void) {
    struct pair pair;
    open_pair(&pair);
    struct moon_streams *b = pair.b.streams;
    CU_ASSERT_PTR_NULL(b->listen(b, "10.0.0.2:50051", &pair.door.user));
    CU_ASSERT_PTR_NULL(b->listen(b, "10.0.0.1:4000", &pair.door.user));
    CU_ASSERT_PTR_NULL(b->listen(b, "10.0.0.2", &pair.door.user));
    struct moon_stream *first = b->listen(b, "10.0.0.2:0", &pair.door.user);
    struct moon_stream *second = b->listen(b, "0.0.0.0:20001", &pair.door.user);
    struct moon_stream *third = b->open(b, "10.0.0.2:20001", &pair.near.user);
    MOON_CHECK_TEXT(first->local, "10.0.0.2:20000");
    MOON_CHECK_TEXT(second->local, "10.0.0.2:20001");
    MOON_CHECK_TEXT(third->local, "10.0.0.2:20002");
    close_pair(&pair);
}

static void test_ports_wrap_and_run_out(void) {
    struct pair pair;
    open_pair(&pair);
    struct moon_streams *a = pair.a.streams;
    for (int i = 20001; i <= 65535; i++)
        a->close(a, a->open(a, "10.0.0.2:1", &pair.far.user));
    struct moon_stream *stream = a->open(a, "10.0.0.2:1", &pair.far.user);
    MOON_CHECK_TEXT(stream ? stream->local : NULL, "10.0.0.1:20001");
    close_pair(&pair);
}

static void test_detach(void) {
    struct pair pair;
    open_pair(&pair);
    run(&pair);
    moon_memory_fabric_detach(pair.fabric, &pair.a);
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.closed0");
    CU_ASSERT_PTR_NULL(pair.a.streams);
    MOON_CHECK_INT(moon_memory_fabric_attach(pair.fabric, &pair.a, "10.0.0.1"), 0);
    pair.near.stream = pair.a.streams->open(pair.a.streams, "10.0.0.2:50051", &pair.near.user);
    run(&pair);
    say(&pair.far, "lost");
    moon_memory_fabric_detach(pair.fabric, &pair.b);
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "door.accepted a.opened b.closed0 door.accepted a.opened a.closed1");
    close_pair(&pair);
}

static void test_time(void) {
    struct pair pair;
    open_pair(&pair);
    moon_memory_fabric_advance(pair.fabric, 500);
    moon_memory_fabric_advance(pair.fabric, 400);
    MOON_CHECK_INT(moon_memory_fabric_now(pair.fabric), 500);
    MOON_CHECK_INT(pair.b.now_ns, 0);
    (void)moon_memory_fabric_step(pair.fabric);
    MOON_CHECK_INT(pair.b.now_ns, 500);
    MOON_CHECK_INT(pair.b.wall_ns - 1767225600 * MOON_NS_PER_S, 500);
    close_pair(&pair);
}

/* Any refused request: each side hears of the end or closes itself, nothing is held. */
static void test_memory_refused(void) {
    for (uint64_t fail_at = 1; fail_at <= 4; fail_at++) {
        struct pair pair;
        open_pair(&pair);
        (void)moon_memory_fabric_step(pair.fabric);
        pair.memory.fail_at = pair.memory.requests + fail_at;
        say(&pair.near, "first");
        say(&pair.near, "second");
        if (pair.near.stream)
            hang_up(&pair.near);
        pair.near.stream = pair.a.streams->open(pair.a.streams, "10.0.0.2:50051", &pair.near.user);
        CU_ASSERT_PTR_NULL(pair.near.stream);
        CU_ASSERT_PTR_NULL(pair.a.streams->listen(pair.a.streams, "10.0.0.1:1", &pair.near.user));
        MOON_CHECK_INT(moon_memory_fabric_attach(pair.fabric, &pair.a, "10.0.0.9"), MOON_ERR_MEMORY);
        run(&pair);
        static const char *const logs[] = {
            "door.accepted b.closed0",
            "door.accepted b.closed1",
            "door.accepted b.closed1",
            "door.accepted b.received11 b.closed0",
        };
        MOON_CHECK_TEXT(pair.log.text, logs[fail_at - 1]);
        close_pair(&pair);
    }
    struct moon_memory_failing memory;
    moon_memory_failing_init(&memory, moon_memory_heap(), 1);
    CU_ASSERT_PTR_NULL(moon_memory_fabric_open(&memory.memory));
}

static void test_memory_refused_to_send(void) {
    struct pair pair;
    open_pair(&pair);
    pair.memory.fail_at = pair.memory.requests + 1;
    say(&pair.near, "hello");
    run(&pair);
    MOON_CHECK_TEXT(pair.log.text, "a.closed1");
    close_pair(&pair);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a stream connects, carries bytes sent before that, and names both ends", test_connects},
        {"pieces arrive in order, in portions of the receiver's room", test_pieces},
        {"a receiver without room gets bytes after resume", test_pause},
        {"bytes sent before a close arrive before the end, and are not borrowed any more", test_close_keeps_bytes},
        {"bytes on their way to one who closes are lost, and the stream is broken", test_close_loses_answers},
        {"who sends to nobody hears that the stream is broken, though it takes nothing", test_send_to_nobody},
        {"sent is told before the end", test_sent_before_close},
        {"sent is told when all is taken, once", test_sent_only_when_all_is},
        {"an open to nobody is refused", test_refused},
        {"a stream that its acceptor closes ends for the opener", test_refused_by_user},
        {"a stream closed before it stood is never seen", test_close_before_anything},
        {"ports are given from 20000 up, and one is in use once", test_ports},
        {"ports begin anew and pass over those in use", test_ports_wrap_and_run_out},
        {"a node that is gone ends its streams, and may come back", test_detach},
        {"nodes get the fabric's time with each event", test_time},
        {"refused memory breaks a stream and leaks nothing", test_memory_refused},
        {"a send without memory breaks a stream that does not stand yet", test_memory_refused_to_send},
        {NULL, NULL},
    };
    return moon_unit_main("memory fabric", cases, argc, argv);
}
