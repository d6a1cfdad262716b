/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the streams over TCP, with real sockets over loopback in one process. */
#include "ref/fabric/tcp.h"

#include "ref/base/unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MIB = 1024 * 1024, BUFFER_BYTES = 256 * 1024, WAIT_S = 60 };

/* A loop, one node on it that plays both sides. */
struct world {
    struct moon_memory_failing memory;
    uv_loop_t loop;
    struct moon_environment environment;
    struct moon_tcp_fabric *fabric;
    bool in_operation; /* an operation of the fabric is running: no callback may come */
    int afters;
};

/* A side of a stream. What it receives is compared with bytes of its place, i * 31 + i / 251.
 *   room_max   0: no room; else 1 to this many are drawn
 *   echo       sends back what it gets
 *   closes_at  closes when so many bytes have come */
struct side {
    struct moon_stream_user user;
    struct world *world;
    struct moon_stream *stream;
    struct side *accepts; /* of a listener: its next side, `accept_count` more */
    size_t accept_count, accepted;
    size_t room_max, closes_at;
    bool asked, echo, closes_in_room, breaks_in_room;
    unsigned char buffer[BUFFER_BYTES + 8], *place; /* place: where the next bytes go, each time another */
    size_t received, wrong, sents, opened, ended;
    enum moon_stream_end end;
};

static unsigned char byte_at(size_t i) {
    return (unsigned char)(i * 31 + i / 251);
}

static void outside(const struct world *world) {
    CU_ASSERT_FALSE(world->in_operation);
}

static void side_close(struct side *side) {
    if (side->stream)
        side->world->environment.streams->close(side->world->environment.streams, side->stream);
    side->stream = NULL;
}

static void side_send(struct side *side, void *bytes, size_t length) {
    struct moon_piece pieces[3] = {{bytes, length / 3},
                                   {(char *)bytes + length / 3, length / 2 - length / 3},
                                   {(char *)bytes + length / 2, length - length / 2}};
    side->world->in_operation = true;
    side->world->environment.streams->send(side->world->environment.streams, side->stream, pieces, 3);
    side->world->in_operation = false;
}

static void accepted(struct moon_stream_user *self, struct moon_stream *stream) {
    struct side *door = (struct side *)self;
    outside(door->world);
    if (door->accepted == door->accept_count) {
        door->world->environment.streams->close(door->world->environment.streams, stream);
        return;
    }
    struct side *side = &door->accepts[door->accepted++];
    side->stream = stream;
    stream->user = &side->user;
}

static void opened(struct moon_stream_user *self, struct moon_stream *stream) {
    struct side *side = (struct side *)self;
    outside(side->world);
    CU_ASSERT(stream->local[0] && stream->peer[0]);
    side->opened++;
}

static size_t room(struct moon_stream_user *self, struct moon_stream *stream, void **into) {
    struct side *side = (struct side *)self;
    (void)stream;
    side->asked = true;
    *into = side->place = side->buffer + side->received % 7;
    if (side->breaks_in_room) {
        side->world->memory.fail_at = side->world->memory.requests + 1;
        side_send(side, side->buffer, BUFFER_BYTES);
        side->world->memory.fail_at = 0;
        return 0;
    }
    if (side->closes_in_room) {
        side_close(side);
        return 0;
    }
    return side->room_max == 0 ? 0 : 1 + moon_random_below(&side->world->environment.random, side->room_max);
}

static void received(struct moon_stream_user *self, struct moon_stream *stream, size_t bytes) {
    struct side *side = (struct side *)self;
    outside(side->world);
    CU_ASSERT(side->asked); /* each time anew */
    side->asked = false;
    CU_ASSERT(side->world->environment.now_ns > 0 && side->world->environment.wall_ns > 0);
    for (size_t i = 0; i < bytes; i++)
        side->wrong += side->place[i] != byte_at(side->received + i);
    side->received += bytes;
    if (side->echo) {
        side->room_max = 0;
        side_send(side, side->place, bytes);
    }
    if (side->closes_at && side->received >= side->closes_at) {
        CU_ASSERT_PTR_EQUAL(side->stream, stream);
        side_close(side);
    }
}

static void sent(struct moon_stream_user *self, struct moon_stream *stream) {
    struct side *side = (struct side *)self;
    outside(side->world);
    side->sents++;
    if (side->echo) {
        side->room_max = 5000;
        side->world->environment.streams->resume(side->world->environment.streams, stream);
    }
}

static void closed(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end) {
    struct side *side = (struct side *)self;
    outside(side->world);
    CU_ASSERT_PTR_EQUAL(side->stream, stream);
    side->stream = NULL;
    side->end = end;
    side->ended++;
}

static void after(void *context) {
    ((struct world *)context)->afters++;
}

static struct side *new_sides(struct world *world, size_t count) {
    struct side *sides = calloc(count, sizeof *sides);
    if (!sides)
        abort();
    for (size_t i = 0; i < count; i++) {
        sides[i].user = (struct moon_stream_user){accepted, opened, room, received, sent, closed};
        sides[i].world = world;
        sides[i].room_max = 5000;
        sides[i].end = (enum moon_stream_end)99;
    }
    return sides;
}

static void open_world(struct world *world) {
    memset(world, 0, sizeof *world);
    moon_memory_failing_init(&world->memory, moon_memory_heap(), 0);
    moon_random_seed(&world->environment.random, 5);
    world->environment.memory = &world->memory.memory;
    CU_ASSERT_EQUAL_FATAL(uv_loop_init(&world->loop), 0);
    world->fabric = moon_tcp_fabric_open(&world->loop, &world->environment, after, world);
}

static void close_world(struct world *world) {
    moon_tcp_fabric_close(world->fabric);
    for (int i = 0; i < 100 && uv_run(&world->loop, UV_RUN_NOWAIT); i++)
        usleep(1000);
    MOON_CHECK_INT(uv_loop_close(&world->loop), 0);
    MOON_CHECK_INT(world->memory.held_bytes, 0);
}

static void wake(uv_timer_t *timer) {
    (void)timer;
}

/* Runs the loop until *counter is at least `goal`; false after a minute. */
static bool run_until(struct world *world, const size_t *counter, size_t goal) {
    uv_timer_t timer;
    uint64_t end_ns = uv_hrtime() + (uint64_t)WAIT_S * 1000000000;
    uv_timer_init(&world->loop, &timer);
    uv_timer_start(&timer, wake, 10, 10);
    while (*counter < goal && uv_hrtime() < end_ns)
        uv_run(&world->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&world->loop, UV_RUN_NOWAIT);
    CU_ASSERT(*counter >= goal);
    return *counter >= goal;
}

static void run_for(struct world *world, unsigned ms) {
    uint64_t end_ns = uv_hrtime() + (uint64_t)ms * 1000000;
    while (uv_hrtime() < end_ns) {
        uv_run(&world->loop, UV_RUN_NOWAIT);
        usleep(500);
    }
}

static struct moon_stream *listen_at(struct side *door, const char *endpoint) {
    struct moon_streams *streams = door->world->environment.streams;
    return door->stream = streams->listen(streams, endpoint, &door->user);
}

static struct moon_stream *open_to(struct side *side, const char *endpoint) {
    struct moon_streams *streams = side->world->environment.streams;
    side->world->in_operation = true;
    side->stream = streams->open(streams, endpoint, &side->user);
    side->world->in_operation = false;
    return side->stream;
}

/* A plain socket that is connected to the address. */
static int plain_socket(const char *address) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1))};
    inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
    int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MOON_CHECK_INT(connect(made, (struct sockaddr *)&to, sizeof to), 0);
    return made;
}

static size_t open_descriptors(void) {
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

/* ---- bytes */

static void test_echo(void) {
    enum { STREAMS = 20, BYTES = 300000 };
    struct world world;
    open_world(&world);
    struct side *sides = new_sides(&world, 1 + 2 * STREAMS), *near = sides + 1, *far = near + STREAMS;
    static unsigned char text[BYTES];
    for (size_t i = 0; i < BYTES; i++)
        text[i] = byte_at(i);
    sides->accepts = far;
    sides->accept_count = STREAMS;
    listen_at(sides, "127.0.0.1:0");
    for (int i = 0; i < STREAMS; i++) {
        far[i].echo = true;
        open_to(&near[i], sides->stream->local);
        for (size_t at = 0, now; at < BYTES; at += now) {
            size_t left = BYTES - at, most = left < 70000 ? left : 70000;
            now = 1 + moon_random_below(&world.environment.random, most);
            side_send(&near[i], text + at, now);
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        run_until(&world, &near[i].received, BYTES);
        MOON_CHECK_INT(near[i].received, BYTES);
        MOON_CHECK_INT(near[i].wrong + far[i].wrong, 0);
        MOON_CHECK_INT(near[i].opened, 1);
        CU_ASSERT(near[i].sents >= 1 && far[i].sents >= 1);
    }
    CU_ASSERT(world.afters > STREAMS * 4);
    close_world(&world);
    free(sides);
}

static void test_large(void) {
    enum { BYTES = 64 * MIB };
    struct world world;
    open_world(&world);
    struct side *sides = new_sides(&world, 3);
    unsigned char *text = malloc(BYTES);
    CU_ASSERT_FATAL(text != NULL);
    for (size_t i = 0; i < BYTES; i++)
        text[i] = byte_at(i);
    sides[0].accepts = &sides[1];
    sides[0].accept_count = 1;
    sides[1].room_max = BUFFER_BYTES;
    listen_at(&sides[0], "127.0.0.1:0");
    open_to(&sides[2], sides[0].stream->local);
    side_send(&sides[2], text, BYTES / 2);
    side_send(&sides[2], text + BYTES / 2, BYTES / 2);
    MOON_CHECK_INT(sides[2].sents, 0);
    run_until(&world, &sides[1].received, BYTES);
    run_until(&world, &sides[2].sents, 1);
    MOON_CHECK_INT(sides[1].received, BYTES);
    MOON_CHECK_INT(sides[1].wrong, 0);
    MOON_CHECK_INT(sides[2].sents, 1);
    close_world(&world);
    free(text);
    free(sides);
}

static void test_pause(void) {
    struct world world;
    open_world(&world);
    struct side *sides = new_sides(&world, 3);
    unsigned char text[] = {byte_at(0), byte_at(1), byte_at(2)};
    sides[0].accepts = &sides[1];
    sides[0].accept_count = 1;
    sides[1].room_max = 0;
    listen_at(&sides[0], "127.0.0.1:0");
    open_to(&sides[2], sides[0].stream->local);
    side_send(&sides[2], text, sizeof text);
    run_until(&world, &sides[2].sents, 1);
    run_for(&world, 20);
    MOON_CHECK_INT(sides[1].received, 0);
    sides[1].room_max = 2;
    world.environment.streams->resume(world.environment.streams, sides[1].stream);
    run_until(&world, &sides[1].received, sizeof text);
    MOON_CHECK_INT(sides[1].wrong, 0);
    close_world(&world);
    free(sides);
}

/* ---- names */

/* host: of the address that both ends name; NULL: the listener's own. */
static void check_names(const char *listens, const char *dials, const char *host) {
    struct world world;
    char endpoint[80], expected[80];
    open_world(&world);
    struct side *sides = new_sides(&world, 5);
    sides[0].accepts = &sides[1];
    sides[0].accept_count = 2;
    if (!listen_at(&sides[0], listens)) {
        fprintf(stderr, "no IPv6 here\n");
        CU_ASSERT(listens[0] == '[');
        close_world(&world);
        free(sides);
        return;
    }
    const char *port = strrchr(sides[0].stream->local, ':');
    snprintf(endpoint, sizeof endpoint, "%s%s", dials, port);
    snprintf(expected, sizeof expected, "%s%s", host ? host : sides[0].stream->local, host ? port : "");
    open_to(&sides[3], endpoint);
    open_to(&sides[4], endpoint);
    run_until(&world, &sides[3].opened, 1);
    run_until(&world, &sides[4].opened, 1);
    run_until(&world, &sides[0].accepted, 2);
    MOON_CHECK_TEXT(sides[3].stream->peer, expected);
    CU_ASSERT(strcmp(sides[3].stream->local, sides[4].stream->local) != 0);
    int same = strcmp(sides[3].stream->local, sides[1].stream->peer) != 0;
    MOON_CHECK_TEXT(sides[1 + same].stream->peer, sides[3].stream->local);
    MOON_CHECK_TEXT(sides[1 + same].stream->local, sides[3].stream->peer);
    close_world(&world);
    free(sides);
}

/* Without it in /etc/hosts the name would be asked of a name server, which is none of a test's business. */
static bool knows_localhost(void) {
    char line[256];
    bool found = false;
    FILE *hosts = fopen("/etc/hosts", "r");
    while (hosts && !found && fgets(line, sizeof line, hosts))
        found = line[0] != '#' && strstr(line, "localhost");
    if (hosts)
        fclose(hosts);
    return found;
}

static void test_names(void) {
    check_names("127.0.0.1:0", "127.0.0.1", "127.0.0.1");
    if (knows_localhost()) {
        check_names("127.0.0.1:0", "localhost", "127.0.0.1");
        check_names("localhost:0", "localhost", NULL); /* ::1 or 127.0.0.1, as the file has it */
    } else {
        fprintf(stderr, "no localhost in /etc/hosts\n");
    }
    check_names("0.0.0.0:0", "127.0.0.2", "127.0.0.2");
    check_names("[::1]:0", "[::1]", "[::1]");
    check_names("[::]:0", "127.0.0.1", "127.0.0.1");
}

/* A resolver before libuv's: the name "twice.test" has two addresses, of which nobody listens at the first. All other
 * names go to libuv. */
static const char TWICE[] = "twice.test";
static uv_timer_t twice_timer;
static uv_getaddrinfo_cb twice_done;

static void twice_answers(uv_timer_t *timer) {
    uv_getaddrinfo_t *request = timer->data;
    struct addrinfo *first = NULL, *second = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    CU_ASSERT_EQUAL_FATAL(getaddrinfo("127.0.0.3", request->service, &hints, &first), 0);
    CU_ASSERT_EQUAL_FATAL(getaddrinfo("127.0.0.1", request->service, &hints, &second), 0);
    first->ai_next = second;
    uv_close((uv_handle_t *)timer, NULL);
    twice_done(request, 0, first);
}

int uv_getaddrinfo(uv_loop_t *loop, uv_getaddrinfo_t *request, uv_getaddrinfo_cb done, const char *node,
                   const char *service, const struct addrinfo *hints) {
    int (*real)(uv_loop_t *, uv_getaddrinfo_t *, uv_getaddrinfo_cb, const char *, const char *,
                const struct addrinfo *) = NULL;
    if (strcmp(node, TWICE) != 0) {
        *(void **)&real = dlsym(RTLD_NEXT, "uv_getaddrinfo");
        return real(loop, request, done, node, service, hints);
    }
    static char port[8];
    snprintf(port, sizeof port, "%s", service);
    request->service = port;
    twice_done = done;
    twice_timer.data = request;
    uv_timer_init(loop, &twice_timer);
    return uv_timer_start(&twice_timer, twice_answers, 0, 0);
}

static void test_second_address(void) {
    struct world world;
    char endpoint[80], text[] = "abc";
    open_world(&world);
    struct side *sides = new_sides(&world, 4);
    for (int i = 0; i < 3; i++)
        text[i] = (char)byte_at((size_t)i);
    sides[0].accepts = &sides[1];
    sides[0].accept_count = 1;
    listen_at(&sides[0], "127.0.0.1:0");
    snprintf(endpoint, sizeof endpoint, "%s%s", TWICE, strrchr(sides[0].stream->local, ':'));
    open_to(&sides[2], endpoint);
    side_send(&sides[2], text, 3);
    run_until(&world, &sides[1].received, 3);
    MOON_CHECK_INT(sides[1].wrong, 0);
    MOON_CHECK_INT(sides[2].opened, 1);
    MOON_CHECK_TEXT(sides[2].stream->peer, sides[0].stream->local);
    /* The first address is refused at once, then the stream is closed, or loses a send, before the second is tried. */
    for (int way = 0; way < 4; way++) {
        size_t held = world.memory.held_bytes;
        open_to(&sides[3], endpoint);
        for (int turn = 0; turn < 1 + way / 2 * 1; turn++)
            uv_run(&world.loop, UV_RUN_ONCE);
        if (way % 2) {
            world.memory.fail_at = world.memory.requests + 1;
            side_send(&sides[3], text, 3);
            world.memory.fail_at = 0;
        } else {
            side_close(&sides[3]);
        }
        run_for(&world, 20);
        side_close(&sides[3]);
        run_for(&world, 5);
        MOON_CHECK_INT(world.memory.held_bytes, held);
    }
    close_world(&world);
    free(sides);
}

/* ---- ends */

static void test_ends(void) {
    enum { HALF, RESET, CLOSED, WAYS };
    for (int way = 0; way < WAYS; way++) {
        struct world world;
        open_world(&world);
        struct side *sides = new_sides(&world, 2);
        unsigned char text[] = {byte_at(0), byte_at(1)};
        sides[0].accepts = &sides[1];
        sides[0].accept_count = 1;
        listen_at(&sides[0], "127.0.0.1:0");
        int plain = plain_socket(sides[0].stream->local);
        run_until(&world, &sides[0].accepted, 1);
        if (way != RESET)
            MOON_CHECK_INT(send(plain, text, sizeof text, 0), sizeof text);
        if (way == HALF)
            shutdown(plain, SHUT_WR);
        const struct linger linger = {1, 0};
        if (way == RESET)
            setsockopt(plain, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
        if (way != HALF)
            close(plain);
        run_until(&world, &sides[1].ended, 1);
        MOON_CHECK_INT(sides[1].end, way == RESET ? MOON_STREAM_END_BROKEN : MOON_STREAM_END_PEER);
        MOON_CHECK_INT(sides[1].received, way == RESET ? 0 : 2);
        if (way == HALF)
            close(plain);
        close_world(&world);
        free(sides);
    }
}

static void test_unread_write_breaks(void) {
    struct world world;
    open_world(&world);
    struct side *sides = new_sides(&world, 2);
    unsigned char *text = calloc(1, 32 * MIB);
    CU_ASSERT_FATAL(text != NULL);
    sides[0].accepts = &sides[1];
    sides[0].accept_count = 1;
    sides[1].room_max = 0;
    listen_at(&sides[0], "127.0.0.1:0");
    int plain = plain_socket(sides[0].stream->local);
    run_until(&world, &sides[0].accepted, 1);
    side_send(&sides[1], text, 32 * MIB);
    run_for(&world, 20);
    MOON_CHECK_INT(sides[1].sents, 0);
    close(plain);
    run_until(&world, &sides[1].ended, 1);
    MOON_CHECK_INT(sides[1].end, MOON_STREAM_END_BROKEN);
    MOON_CHECK_INT(sides[1].sents, 0);
    close_world(&world);
    free(text);
    free(sides);
}

static void test_close_inside(void) {
    struct world world;
    open_world(&world);
    struct side *sides = new_sides(&world, 3);
    unsigned char text[5000];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = byte_at(i);
    sides[0].accepts = &sides[1];
    sides[0].accept_count = 1;
    sides[1].room_max = 10;
    sides[1].closes_at = 30;
    listen_at(&sides[0], "127.0.0.1:0");
    open_to(&sides[2], sides[0].stream->local);
    side_send(&sides[2], text, sizeof text);
    run_until(&world, &sides[2].ended, 1);
    CU_ASSERT(sides[1].received >= 30 && sides[1].received < 40);
    MOON_CHECK_INT(sides[1].ended, 0);
    /* The listener's user has no second side: it closes the stream that comes in. */
    open_to(&sides[2], sides[0].stream->local);
    run_until(&world, &sides[2].ended, 2);
    MOON_CHECK_INT(sides[2].end, MOON_STREAM_END_PEER);
    close_world(&world);
    free(sides);
}

static void test_refused(void) {
    struct world world;
    char nobody[MOON_ADDRESS_BYTES];
    open_world(&world);
    struct side *sides = new_sides(&world, 4);
    listen_at(&sides[0], "127.0.0.1:0");
    snprintf(nobody, sizeof nobody, "%s", sides[0].stream->local);
    CU_ASSERT_PTR_NULL(listen_at(&sides[1], nobody));
    CU_ASSERT_PTR_NULL(listen_at(&sides[1], "203.0.113.9:0"));
    CU_ASSERT_PTR_NULL(listen_at(&sides[1], "no such..name:0"));
    CU_ASSERT_PTR_NULL(listen_at(&sides[1], "nonsense"));
    side_close(&sides[0]);
    CU_ASSERT_PTR_NULL(open_to(&sides[1], "nonsense"));
    char text[] = "abc";
    open_to(&sides[1], nobody);
    side_send(&sides[1], text, 3);
    open_to(&sides[2], "no such..name:1");
    side_send(&sides[2], text, 3);
    char by_name[80];
    snprintf(by_name, sizeof by_name, "localhost%s", strrchr(nobody, ':'));
    open_to(&sides[3], by_name);
    for (int i = 1; i < 4; i++) {
        run_until(&world, &sides[i].ended, 1);
        MOON_CHECK_INT(sides[i].end, MOON_STREAM_END_REFUSED);
        MOON_CHECK_INT(sides[i].opened + sides[i].sents, 0);
    }
    close_world(&world);
    free(sides);
}

static void test_close_early(void) {
    struct world world;
    open_world(&world);
    struct side *sides = new_sides(&world, 4);
    char text[] = "abc";
    listen_at(&sides[0], "127.0.0.1:0");
    open_to(&sides[1], sides[0].stream->local);
    side_send(&sides[1], text, 3);
    side_close(&sides[1]);
    open_to(&sides[2], "localhost:9");
    side_close(&sides[2]);
    open_to(&sides[3], "localhost:9"); /* left to the fabric's close */
    run_for(&world, 50);
    MOON_CHECK_INT(sides[1].opened + sides[1].sents + sides[1].ended + sides[2].ended, 0);
    close_world(&world);
    free(sides);
}

static void test_listen_again(void) {
    struct world world;
    char address[MOON_ADDRESS_BYTES];
    open_world(&world);
    struct side *sides = new_sides(&world, 3);
    sides[0].accepts = &sides[1];
    sides[0].accept_count = 1;
    listen_at(&sides[0], "127.0.0.1:0");
    snprintf(address, sizeof address, "%s", sides[0].stream->local);
    open_to(&sides[2], address);
    run_until(&world, &sides[2].opened, 1);
    side_close(&sides[0]);
    side_close(&sides[1]); /* closed first on this side: the kernel keeps its address in TIME_WAIT */
    run_until(&world, &sides[2].ended, 1);
    CU_ASSERT_PTR_NOT_NULL(listen_at(&sides[0], address));
    close_world(&world);
    free(sides);
}

/* ---- many */

static void test_many(void) {
    enum { ROUNDS = 50, STREAMS = 200 };
    struct world world;
    open_world(&world);
    struct side *sides = new_sides(&world, 1 + 2 * STREAMS);
    unsigned char byte = byte_at(0);
    listen_at(sides, "127.0.0.1:0");
    size_t before = 0;
    for (int round = 0; round < ROUNDS; round++) {
        sides->accepts = sides + 1;
        sides->accept_count = STREAMS;
        sides->accepted = 0;
        for (int i = 1; i <= STREAMS; i++) {
            struct side *near = &sides[i + STREAMS];
            sides[i].received = 0;
            near->ended = 0;
            sides[i].closes_at = 3;
            open_to(near, sides->stream->local);
            unsigned char bytes[3] = {byte, byte_at(1), byte_at(2)};
            memcpy(near->buffer, bytes, 3);
            side_send(near, near->buffer, 3);
        }
        for (int i = 1 + STREAMS; i <= 2 * STREAMS; i++)
            if (!run_until(&world, &sides[i].ended, 1))
                break;
        MOON_CHECK_INT(sides->accepted, STREAMS);
        if (round == 0) /* libuv has opened its own by now */
            before = open_descriptors();
    }
    MOON_CHECK_INT(open_descriptors(), before);
    close_world(&world);
    free(sides);
}

/* Valgrind keeps limits of its own: it lets the kernel accept a connection, and closes it when it is over them. There
 * nothing can wait. */
static bool drops_connections(void) {
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded && strstr(preloaded, "vgpreload");
}

static void test_no_descriptors(void) {
    enum { STREAMS = 12 };
    struct world world;
    struct rlimit limit, low;
    int plain[STREAMS];
    open_world(&world);
    struct side *sides = new_sides(&world, 1 + STREAMS);
    sides->accepts = sides + 1;
    sides->accept_count = STREAMS;
    listen_at(sides, "127.0.0.1:0");
    for (int i = 0; i < STREAMS; i++)
        plain[i] = plain_socket(sides->stream->local);
    getrlimit(RLIMIT_NOFILE, &limit);
    low = limit;
    low.rlim_cur = (rlim_t)plain[STREAMS - 1] + 4;
    setrlimit(RLIMIT_NOFILE, &low);
    run_for(&world, 300);
    CU_ASSERT(sides->accepted >= 1 && sides->accepted < STREAMS);
    setrlimit(RLIMIT_NOFILE, &limit);
    if (!drops_connections()) {
        run_until(&world, &sides->accepted, STREAMS);
        MOON_CHECK_INT(sides->accepted, STREAMS);
    }
    for (int i = 0; i < STREAMS; i++)
        close(plain[i]);
    close_world(&world);
    free(sides);
}

static void test_ask_for_room(void) {
    struct world world;
    open_world(&world);
    struct side *sides = new_sides(&world, 3);
    char text[] = "abc";
    sides[0].accepts = &sides[1];
    sides[0].accept_count = 2;
    sides[1].closes_in_room = true;
    listen_at(&sides[0], "127.0.0.1:0");
    int plain = plain_socket(sides[0].stream->local);
    run_until(&world, &sides[0].accepted, 1);
    MOON_CHECK_INT(send(plain, text, 3, 0), 3);
    run_for(&world, 20);
    CU_ASSERT_PTR_NULL(sides[1].stream);
    MOON_CHECK_INT(sides[1].ended + sides[1].received, 0);
    close(plain);
    /* A full stream, so that a send needs memory. */
    plain = plain_socket(sides[0].stream->local);
    run_until(&world, &sides[0].accepted, 2);
    while (!sides[2].ended) {
        sides[2].breaks_in_room = true;
        MOON_CHECK_INT(send(plain, text, 3, 0), 3);
        run_for(&world, 5);
        if (!sides[2].ended)
            world.environment.streams->resume(world.environment.streams, sides[2].stream);
    }
    MOON_CHECK_INT(sides[2].end, MOON_STREAM_END_BROKEN);
    close(plain);
    close_world(&world);
    free(sides);
}

/* ---- memory */

/* Whatever is refused: nothing hangs, nothing is held. */
static void test_memory_refused(void) {
    for (uint64_t fail_at = 1; fail_at <= 8; fail_at++) {
        struct world world;
        open_world(&world);
        struct side *sides = new_sides(&world, 4);
        static char text[8 * MIB];
        sides[0].accepts = &sides[1];
        sides[0].accept_count = 2;
        world.memory.fail_at = world.memory.requests + fail_at;
        if (listen_at(&sides[0], "127.0.0.1:0") && open_to(&sides[3], sides[0].stream->local)) {
            side_send(&sides[3], text, 3);
            side_send(&sides[3], text, 3);
            run_for(&world, 10);
            if (sides[1].stream)
                side_send(&sides[1], text, sizeof text);
            run_for(&world, 10);
        }
        if (sides[3].ended)
            CU_ASSERT(sides[3].end == MOON_STREAM_END_BROKEN || sides[3].end == MOON_STREAM_END_PEER);
        close_world(&world);
        free(sides);
    }
    struct moon_memory_failing memory;
    moon_memory_failing_init(&memory, moon_memory_heap(), 1);
    struct moon_environment environment = {.memory = &memory.memory};
    CU_ASSERT_PTR_NULL(moon_tcp_fabric_open(NULL, &environment, after, NULL));
}

static void test_send_refused_while_connecting(void) {
    struct world world;
    open_world(&world);
    struct side *sides = new_sides(&world, 3);
    char text[] = "abc";
    listen_at(&sides[0], "127.0.0.1:0");
    open_to(&sides[1], sides[0].stream->local);
    open_to(&sides[2], "localhost:9");
    world.memory.fail_at = world.memory.requests + 1;
    for (int i = 1; i <= 2; i++) {
        side_send(&sides[i], text, 3);
        side_send(&sides[i], text, 3);
    }
    for (int i = 1; i <= 2; i++) {
        run_until(&world, &sides[i].ended, 1);
        MOON_CHECK_INT(sides[i].end, MOON_STREAM_END_BROKEN);
        MOON_CHECK_INT(sides[i].opened, 0);
    }
    close_world(&world);
    free(sides);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"bytes come back as they were sent, in whatever portions", test_echo},
        {"64 MiB go through in two sends, and sent is told once", test_large},
        {"a user without room gets bytes after resume", test_pause},
        {"both ends name a stream alike, over IPv4, IPv6 and names", test_names},
        {"the addresses of a name are tried one after the other", test_second_address},
        {"a close and a half-close end a stream, a reset breaks it", test_ends},
        {"what a peer does not read before it closes is never told as sent", test_unread_write_breaks},
        {"a user may close its stream from within received and accepted", test_close_inside},
        {"a user may close or lose its stream while it is asked for room", test_ask_for_room},
        {"nobody there, no such name, no such address: refused", test_refused},
        {"a stream may be closed before it stands", test_close_early},
        {"an address can be listened at again at once", test_listen_again},
        {"10,000 connections leave no descriptor behind", test_many},
        {"without descriptors connections wait until there are some", test_no_descriptors},
        {"refused memory breaks a stream and leaks nothing", test_memory_refused},
        {"a send without memory breaks a stream that does not stand yet", test_send_refused_while_connecting},
        {NULL, NULL},
    };
    signal(SIGPIPE, SIG_IGN);
    return moon_unit_main("tcp fabric", cases, argc, argv);
}
