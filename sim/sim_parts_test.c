/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the simulator's parts: streams, clocks, memory, faults and records, each by itself. */
#include "ref/base/unit.h"
#include "sim/sim_streams_internal.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a program that only ticks when it is told to */

struct probe {
    struct moon_environment *environment;
    moon_ns deadline_ns;
    unsigned ticks;
    void (*on_tick)(struct probe *probe);
};

static void *probe_boot(const void *settings, struct moon_environment *environment, struct moon_error *error) {
    if (settings) {
        moon_fail(error, MOON_ERR_IO, NULL, "%s", (const char *)settings);
        return NULL;
    }
    struct probe *probe = environment->memory->resize(environment->memory, NULL, 0, sizeof *probe);
    if (probe)
        *probe = (struct probe){.environment = environment, .deadline_ns = MOON_NS_NEVER};
    return probe;
}

static moon_ns probe_deadline(const void *instance) {
    return ((const struct probe *)instance)->deadline_ns;
}

static void probe_tick(void *instance) {
    struct probe *probe = instance;
    probe->ticks++;
    probe->deadline_ns = MOON_NS_NEVER;
    if (probe->on_tick)
        probe->on_tick(probe);
}

static void probe_halt(void *instance) {
    struct probe *probe = instance;
    probe->environment->memory->resize(probe->environment->memory, probe, sizeof *probe, 0);
}

static const struct moon_program probe_program = {"probe", probe_boot, probe_deadline, probe_tick, probe_halt};

/* ---- a user of one stream that remembers */

struct ear {
    struct moon_stream_user user;
    struct moon_stream *stream;
    struct ear *accepts; /* of a listener: who gets the next stream */
    size_t room, got;
    unsigned opened, accepted, sent, closed, asked;
    enum moon_stream_end end;
    char data[64];
    struct moon_sim *sim;
    moon_ns closed_ns, got_ns;
};

static void ear_accepted(struct moon_stream_user *self, struct moon_stream *stream) {
    struct ear *ear = (struct ear *)self;
    ear->accepted++;
    ear->accepts->stream = stream;
    stream->user = &ear->accepts->user;
}

static void ear_opened(struct moon_stream_user *self, struct moon_stream *stream) {
    (void)stream;
    ((struct ear *)self)->opened++;
}

static size_t ear_room(struct moon_stream_user *self, struct moon_stream *stream, void **into) {
    struct ear *ear = (struct ear *)self;
    (void)stream;
    ear->asked++;
    *into = ear->data + ear->got % sizeof ear->data;
    size_t room = sizeof ear->data - ear->got % sizeof ear->data;
    return room < ear->room ? room : ear->room;
}

static void ear_received(struct moon_stream_user *self, struct moon_stream *stream, size_t bytes) {
    (void)stream;
    struct ear *ear = (struct ear *)self;
    ear->got += bytes;
    ear->got_ns = moon_sim_now(ear->sim);
}

static void ear_sent(struct moon_stream_user *self, struct moon_stream *stream) {
    (void)stream;
    ((struct ear *)self)->sent++;
}

static void ear_closed(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end) {
    struct ear *ear = (struct ear *)self;
    (void)stream;
    ear->closed++;
    ear->end = end;
    ear->stream = NULL;
    ear->closed_ns = moon_sim_now(ear->sim);
}

static struct ear new_ear(struct moon_sim *sim) {
    return (struct ear){
        .user = {ear_accepted, ear_opened, ear_room, ear_received, ear_sent, ear_closed}, .sim = sim, .room = 64};
}

/* ---- two nodes, a listener on b, a recorder that keeps the names of what it gets */

struct scene {
    struct moon_recorder recorder; /* first member */
    struct moon_memory_failing memory;
    struct moon_sim *sim;
    struct moon_sim_node *a, *b;
    struct moon_stream *listener;
    struct ear at_listener, at_a, at_b;
    struct moon_text log; /* "name what\n" */
    moon_ns lease_ns;
};

static void scene_record(struct moon_recorder *self, const struct moon_record *record) {
    struct scene *scene = (struct scene *)self;
    moon_text_format(&scene->log, "%.*s%u.%u %s\n", (int)record->node.length, record->node.data, record->boot,
                     (unsigned)record->n, record->what);
    if (record->has & MOON_RECORD_HAS_LEASE)
        scene->lease_ns = record->lease_ns;
}

static struct moon_environment *environment_of(struct moon_sim_node *node) {
    return moon_sim_node_environment(node);
}

static struct moon_stream *listen_on(struct moon_sim_node *node, const char *endpoint, struct ear *ear) {
    struct moon_streams *streams = environment_of(node)->streams;
    return streams->listen(streams, endpoint, &ear->user);
}

static struct moon_stream *open_from(struct moon_sim_node *node, const char *endpoint, struct ear *ear) {
    struct moon_streams *streams = environment_of(node)->streams;
    ear->stream = streams->open(streams, endpoint, &ear->user);
    return ear->stream;
}

static void send_from(struct moon_sim_node *node, struct ear *ear, const void *bytes, size_t length) {
    struct moon_streams *streams = environment_of(node)->streams;
    struct moon_piece piece = {(void *)(uintptr_t)bytes, length};
    streams->send(streams, ear->stream, &piece, 1);
}

static void close_from(struct moon_sim_node *node, struct moon_stream *stream) {
    struct moon_streams *streams = environment_of(node)->streams;
    streams->close(streams, stream);
}

static void scene_open(struct scene *scene) {
    struct moon_sim_settings settings = moon_sim_defaults();
    *scene = (struct scene){.recorder = {scene_record}};
    moon_memory_failing_init(&scene->memory, moon_memory_heap(), 0);
    moon_text_open(&scene->log, moon_memory_heap());
    scene->sim = moon_sim_open(&scene->memory.memory, 11, &settings, &scene->recorder);
    scene->a = moon_sim_add(scene->sim, "a", "10.0.0.1", &probe_program, NULL);
    scene->b = moon_sim_add(scene->sim, "b", "10.0.0.2", &probe_program, NULL);
    MOON_CHECK_INT(moon_sim_boot(scene->a, NULL), 0);
    MOON_CHECK_INT(moon_sim_boot(scene->b, NULL), 0);
    scene->at_listener = scene->at_a = scene->at_b = new_ear(scene->sim);
    scene->at_listener.accepts = &scene->at_b;
    scene->listener = listen_on(scene->b, "0.0.0.0:7000", &scene->at_listener);
    MOON_CHECK_TEXT(scene->listener->local, "10.0.0.2:7000");
}

static void scene_close(struct scene *scene) {
    CU_ASSERT(!moon_sim_failed(scene->sim));
    moon_sim_close(scene->sim);
    moon_text_close(&scene->log);
    MOON_CHECK_INT(scene->memory.held_bytes, 0);
}

/* All events up to and at that time. */
static void go_to(struct scene *scene, moon_ns time_ns) {
    while (moon_heap_deadline(&scene->sim->events) <= time_ns && moon_sim_step(scene->sim))
        ;
    scene->sim->now_ns = time_ns;
}

static void go_on_for(struct scene *scene, moon_ns duration_ns) {
    go_to(scene, moon_sim_now(scene->sim) + duration_ns);
}

static void connect_scene(struct scene *scene) {
    CU_ASSERT_FATAL(open_from(scene->a, "b:7000", &scene->at_a) != NULL);
    MOON_CHECK_TEXT(scene->at_a.stream->local, "");
    go_on_for(scene, 20 * MOON_NS_PER_MS);
    MOON_CHECK_INT(scene->at_a.opened, 1);
    MOON_CHECK_INT(scene->at_listener.accepted, 1);
}

/* ---- streams */

static void both_ends_have_the_same_addresses_and_no_other_connection_has(void) {
    struct scene scene;
    struct ear second;
    scene_open(&scene);
    connect_scene(&scene);
    MOON_CHECK_TEXT(scene.at_a.stream->peer, "10.0.0.2:7000");
    MOON_CHECK_TEXT(scene.at_b.stream->local, scene.at_a.stream->peer);
    MOON_CHECK_TEXT(scene.at_b.stream->peer, scene.at_a.stream->local);
    second = new_ear(scene.sim);
    open_from(scene.a, "10.0.0.2:7000", &second);
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    CU_ASSERT(strcmp(second.stream->local, scene.at_a.stream->local) != 0);
    scene_close(&scene);
}

static void texts_that_are_no_endpoint_are_refused_at_once(void) {
    static const char *const bad[] = {"",        "b",    "b:",       ":7000",     "b:0",
                                      "b:70000", "b:7x", "a:b:7000", "[::1:7000", "[]:7"};
    struct scene scene;
    struct ear ear;
    scene_open(&scene);
    ear = new_ear(scene.sim);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (open_from(scene.a, bad[i], &ear)) {
            fprintf(stderr, "\"%s\" was taken\n", bad[i]);
            CU_FAIL("no endpoint, but taken");
        }
    CU_ASSERT(!listen_on(scene.a, "10.0.0.2:8000", &ear)); /* another node's */
    CU_ASSERT(!listen_on(scene.b, "b:7000", &ear));        /* in use */
    struct moon_stream *any = listen_on(scene.a, "[::]:0", &ear);
    MOON_CHECK_TEXT(any ? any->local : NULL, "10.0.0.1:32768");
    scene_close(&scene);
}

static void connecting_where_nobody_listens_is_refused_after_a_round_trip(void) {
    static const char *const targets[] = {"b:7001", "nobody:7000", "localhost:7000"};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        struct scene scene;
        scene_open(&scene);
        open_from(scene.a, targets[i], &scene.at_a);
        go_on_for(&scene, 20 * MOON_NS_PER_MS);
        MOON_CHECK_INT(scene.at_a.closed, 1);
        MOON_CHECK_INT(scene.at_a.end, MOON_STREAM_END_REFUSED);
        CU_ASSERT(scene.at_a.closed_ns >= 10000 && scene.at_a.closed_ns <= 4 * MOON_NS_PER_MS);
        scene_close(&scene);
    }
}

static void connecting_across_a_partition_times_out(void) {
    struct scene scene;
    scene_open(&scene);
    moon_sim_partition(scene.a, scene.b);
    open_from(scene.a, "b:7000", &scene.at_a);
    go_to(&scene, 5 * MOON_NS_PER_S - 1);
    MOON_CHECK_INT(scene.at_a.closed, 0);
    go_to(&scene, 6 * MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_a.closed_ns, 5 * MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_a.end, MOON_STREAM_END_REFUSED);
    MOON_CHECK_INT(scene.at_listener.accepted, 0);
    scene_close(&scene);
}

static void borrowed_bytes_are_read_when_they_leave(void) {
    struct scene scene;
    char bytes[] = "early";
    scene_open(&scene);
    connect_scene(&scene);
    send_from(scene.a, &scene.at_a, bytes, 5);
    memcpy(bytes, "later", 5); /* a mistake: it is not ours before sent() */
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    MOON_CHECK_INT(scene.at_a.sent, 1);
    MOON_CHECK_TEXT(scene.at_b.data, "later");
    scene_close(&scene);
}

static void bytes_given_before_it_is_open_leave_when_it_is(void) {
    struct scene scene;
    scene_open(&scene);
    open_from(scene.a, "b:7000", &scene.at_a);
    send_from(scene.a, &scene.at_a, "one ", 4);
    send_from(scene.a, &scene.at_a, "two", 3);
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    MOON_CHECK_TEXT(scene.at_b.data, "one two");
    MOON_CHECK_INT(scene.at_a.sent, 1);
    scene_close(&scene);
}

static void who_closes_loses_nothing_that_has_left(void) {
    struct scene scene;
    scene_open(&scene);
    connect_scene(&scene);
    send_from(scene.a, &scene.at_a, "all of it", 9);
    while (scene.at_a.sent == 0 && moon_sim_step(scene.sim))
        ;
    MOON_CHECK_INT(scene.at_b.got, 0);
    close_from(scene.a, scene.at_a.stream);
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    MOON_CHECK_TEXT(scene.at_b.data, "all of it");
    MOON_CHECK_INT(scene.at_b.closed, 1);
    MOON_CHECK_INT(scene.at_b.end, MOON_STREAM_END_PEER);
    MOON_CHECK_INT(scene.at_a.closed, 0);
    CU_ASSERT(!scene.sim->connections);
    scene_close(&scene);
}

static void a_listener_that_closes_breaks_who_waits_to_be_accepted(void) {
    struct scene scene;
    scene_open(&scene);
    moon_sim_stop(scene.b); /* its kernel answers */
    open_from(scene.a, "b:7000", &scene.at_a);
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    MOON_CHECK_INT(scene.at_a.opened, 1);
    MOON_CHECK_INT(scene.at_listener.accepted, 0);
    close_from(scene.b, scene.listener);
    moon_sim_go_on(scene.b);
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    MOON_CHECK_INT(scene.at_a.closed, 1);
    MOON_CHECK_INT(scene.at_a.end, MOON_STREAM_END_BROKEN);
    scene_close(&scene);
}

static void a_receiver_without_room_holds_the_sender_back(void) {
    enum { BYTES = 6 * 1024 * 1024, WINDOW = 4 * 1024 * 1024 };
    struct scene scene;
    scene_open(&scene);
    connect_scene(&scene);
    char *bytes = moon_sim_node_memory(scene.a, BYTES);
    scene.at_b.room = 0;
    send_from(scene.a, &scene.at_a, bytes, BYTES);
    go_on_for(&scene, MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_a.sent, 0);
    MOON_CHECK_INT(scene.at_b.got, 0);
    MOON_CHECK_INT(scene.at_b.asked, 1);
    MOON_CHECK_INT(scene.sim->connections->ends[0].in_flight_bytes, WINDOW);
    scene.at_b.room = 64;
    struct moon_streams *streams = environment_of(scene.b)->streams;
    streams->resume(streams, scene.at_b.stream);
    go_on_for(&scene, MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_a.sent, 1);
    MOON_CHECK_INT(scene.at_b.got, BYTES);
    scene_close(&scene);
}

static void what_is_on_the_wire_outlives_its_sender(void) {
    unsigned ends[3] = {0};
    for (int round = 0; round < 32; round++) {
        struct scene scene;
        scene_open(&scene);
        for (int i = 0; i < round; i++)
            moon_random_u64(&scene.sim->root);
        connect_scene(&scene);
        char *bytes = environment_of(scene.a)->memory->resize(environment_of(scene.a)->memory, NULL, 0, 9);
        memcpy(bytes, "last word", 9);
        send_from(scene.a, &scene.at_a, bytes, 9);
        while (scene.at_a.sent == 0 && moon_sim_step(scene.sim))
            ;
        moon_sim_crash(scene.a);
        CU_ASSERT(!moon_sim_node_instance(scene.a));
        MOON_CHECK_INT(scene.at_b.closed, 0);
        go_on_for(&scene, 20 * MOON_NS_PER_MS);
        MOON_CHECK_TEXT(scene.at_b.data, "last word");
        MOON_CHECK_INT(scene.at_b.closed, 1);
        MOON_CHECK_INT(scene.at_a.closed, 0);
        ends[scene.at_b.end]++;
        scene_close(&scene);
    }
    CU_ASSERT(ends[MOON_STREAM_END_PEER] > 0 && ends[MOON_STREAM_END_BROKEN] > 0);
}

static void connecting_to_a_dead_process_is_refused_and_to_the_next_boot_accepted(void) {
    struct scene scene;
    scene_open(&scene);
    moon_sim_crash(scene.b);
    open_from(scene.a, "b:7000", &scene.at_a);
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    MOON_CHECK_INT(scene.at_a.end, MOON_STREAM_END_REFUSED);
    MOON_CHECK_INT(moon_sim_boot(scene.b, NULL), 0);
    CU_ASSERT(listen_on(scene.b, "b:7000", &scene.at_listener) != NULL);
    connect_scene(&scene);
    MOON_CHECK_TEXT(moon_text_value(&scene.log), "a0.0 boot\nb0.0 boot\nb0.1 kill\nb1.0 boot\n");
    scene_close(&scene);
}

/* ---- partitions */

static void a_partition_holds_what_a_heal_lets_pass(void) {
    struct scene scene;
    scene_open(&scene);
    connect_scene(&scene);
    moon_sim_partition(scene.b, scene.a);
    send_from(scene.a, &scene.at_a, "held", 4);
    go_on_for(&scene, 29 * MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_a.sent, 1);
    MOON_CHECK_INT(scene.at_b.got, 0);
    moon_sim_heal(scene.a, scene.b);
    go_on_for(&scene, 60 * MOON_NS_PER_S);
    MOON_CHECK_TEXT(scene.at_b.data, "held");
    MOON_CHECK_INT(scene.at_b.closed + scene.at_a.closed, 0);
    scene_close(&scene);
}

static void a_partition_that_lasts_breaks_both_ends(void) {
    struct scene scene;
    scene_open(&scene);
    connect_scene(&scene);
    moon_ns start_ns = moon_sim_now(scene.sim);
    moon_sim_partition(scene.a, scene.b);
    moon_sim_partition(scene.a, scene.b); /* it is there already */
    send_from(scene.a, &scene.at_a, "lost", 4);
    go_on_for(&scene, 60 * MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_a.closed_ns - start_ns, 30 * MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_b.closed_ns - start_ns, 30 * MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_a.end, MOON_STREAM_END_BROKEN);
    MOON_CHECK_INT(scene.at_b.end, MOON_STREAM_END_BROKEN);
    moon_sim_heal(scene.b, scene.a);
    moon_sim_heal(scene.b, scene.a); /* nothing to heal */
    go_on_for(&scene, MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_b.got, 0);
    scene_close(&scene);
}

static void each_partition_has_its_own_patience(void) {
    struct scene scene;
    scene_open(&scene);
    struct moon_sim_node *c = moon_sim_add(scene.sim, "c", "10.0.0.3", &probe_program, NULL);
    connect_scene(&scene);
    moon_sim_partition(scene.b, c);
    moon_sim_partition(scene.a, scene.b);
    go_on_for(&scene, 20 * MOON_NS_PER_S);
    moon_sim_heal(scene.a, scene.b);
    moon_sim_partition(scene.a, scene.b);
    moon_ns again_ns = moon_sim_now(scene.sim);
    go_on_for(&scene, 40 * MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_a.closed_ns - again_ns, 30 * MOON_NS_PER_S);
    scene_close(&scene);
}

static void a_crash_behind_a_partition_is_not_seen_before_it_heals(void) {
    struct scene scene;
    scene_open(&scene);
    connect_scene(&scene);
    moon_sim_partition(scene.a, scene.b);
    moon_sim_crash(scene.a);
    go_on_for(&scene, 10 * MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_b.closed, 0);
    moon_sim_heal(scene.a, scene.b);
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    MOON_CHECK_INT(scene.at_b.closed, 1);
    scene_close(&scene);
}

/* ---- stopping */

static void a_stopped_node_gets_all_when_it_goes_on(void) {
    struct scene scene;
    scene_open(&scene);
    connect_scene(&scene);
    struct probe *probe = moon_sim_node_instance(scene.b);
    probe->deadline_ns = environment_of(scene.b)->now_ns + MOON_NS_PER_S;
    moon_sim_touched(scene.b);
    moon_sim_stop(scene.b);
    moon_sim_stop(scene.b);
    send_from(scene.a, &scene.at_a, "patience", 8);
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    close_from(scene.a, scene.at_a.stream);
    go_on_for(&scene, 5 * MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_b.asked + scene.at_b.closed + probe->ticks, 0);
    moon_sim_go_on(scene.b);
    moon_sim_go_on(scene.b);
    go_on_for(&scene, 0);
    MOON_CHECK_TEXT(scene.at_b.data, "patience");
    MOON_CHECK_INT(scene.at_b.closed, 1);
    MOON_CHECK_INT(probe->ticks, 1);
    MOON_CHECK_TEXT(moon_text_value(&scene.log), "a0.0 boot\nb0.0 boot\nb0.1 stop\nb0.2 continue\n");
    scene_close(&scene);
}

static void a_stopped_node_sends_nothing(void) {
    struct scene scene;
    scene_open(&scene);
    connect_scene(&scene);
    send_from(scene.a, &scene.at_a, "waits", 5);
    moon_sim_stop(scene.a);
    go_on_for(&scene, MOON_NS_PER_S);
    MOON_CHECK_INT(scene.at_b.got, 0);
    moon_sim_go_on(scene.a);
    go_on_for(&scene, 20 * MOON_NS_PER_MS);
    MOON_CHECK_INT(scene.at_b.got, 5);
    scene_close(&scene);
}

/* ---- clocks */

static void a_tick_comes_at_the_first_moment_at_which_its_deadline_has_come(void) {
    struct moon_random random;
    moon_random_seed(&random, 3);
    for (int round = 0; round < 2000; round++) {
        struct moon_sim_node node = {.clock_offset_ns = moon_random_between(&random, 0, INT64_C(1) << 50),
                                     .drift_millionths = moon_random_between(&random, -100000, 100000)};
        moon_ns wanted =
            node.clock_offset_ns + (moon_ns)(moon_random_u64(&random) >> moon_random_between(&random, 8, 63));
        moon_ns when = moon_sim_clock_when(&node, wanted);
        CU_ASSERT(moon_sim_clock_at(&node, when) >= wanted);
        CU_ASSERT(when == 0 || moon_sim_clock_at(&node, when - 1) < wanted);
    }
    struct moon_sim_node node = {.clock_offset_ns = 1000};
    MOON_CHECK_INT(moon_sim_clock_when(&node, MOON_NS_NEVER), MOON_NS_NEVER);
    MOON_CHECK_INT(moon_sim_clock_when(&node, 999), 0);
}

static void nodes_have_clocks_of_their_own_that_never_agree_for_long(void) {
    struct scene scene;
    scene_open(&scene);
    moon_ns first_a = environment_of(scene.a)->now_ns, first_b = environment_of(scene.b)->now_ns;
    CU_ASSERT(first_a != first_b);
    struct probe *probe = moon_sim_node_instance(scene.a);
    probe->deadline_ns = first_a + MOON_NS_PER_S;
    moon_sim_touched(scene.a);
    go_on_for(&scene, 2 * MOON_NS_PER_S);
    MOON_CHECK_INT(probe->ticks, 1);
    moon_ns apart = (environment_of(scene.a)->now_ns - first_a) - (environment_of(scene.b)->now_ns - first_b);
    CU_ASSERT(apart != 0 && apart > -400000 && apart < 400000);
    scene_close(&scene);
}

/* ---- memory */

static void all_memory_goes_at_a_crash_and_halt_counts_what_is_left(void) {
    struct scene scene;
    scene_open(&scene);
    struct moon_memory *memory = environment_of(scene.a)->memory;
    unsigned char *piece = memory->resize(memory, NULL, 0, 100);
    MOON_CHECK_INT(piece[99], 0xcd);
    piece[10] = 7;
    piece = memory->resize(memory, piece, 100, 200);
    MOON_CHECK_INT(piece[10], 7);
    CU_ASSERT(memory->resize(memory, NULL, 0, 50) != NULL);
    moon_sim_crash(scene.a);
    MOON_CHECK_INT(scene.a->memory.held_bytes, 0);
    moon_sim_crash(scene.a); /* it is down */
    MOON_CHECK_INT(moon_sim_halt(scene.a), 0);
    MOON_CHECK_INT(moon_sim_boot(scene.a, NULL), 0);
    memory = environment_of(scene.a)->memory;
    CU_ASSERT(memory->resize(memory, NULL, 0, 50) != NULL);
    MOON_CHECK_INT(moon_sim_halt(scene.a), 50);
    MOON_CHECK_TEXT(moon_text_value(&scene.log), "a0.0 boot\nb0.0 boot\na0.1 kill\na1.0 boot\na1.1 halt\n");
    scene_close(&scene);
}

/* True: `run` ends in an assertion. */
static bool aborts(void (*run)(struct moon_memory *memory, struct moon_memory *other)) {
    struct scene scene;
    scene_open(&scene);
    pid_t child = fork();
    if (child == 0) {
        struct moon_environment *other = environment_of(scene.b);
        close(STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        run(environment_of(scene.a)->memory, other->memory);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    scene_close(&scene);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void free_with_wrong_size(struct moon_memory *memory, struct moon_memory *other) {
    (void)other;
    memory->resize(memory, memory->resize(memory, NULL, 0, 16), 17, 0);
}

static void free_anothers(struct moon_memory *memory, struct moon_memory *other) {
    memory->resize(memory, other->resize(other, NULL, 0, 16), 16, 0);
}

static void free_foreign(struct moon_memory *memory, struct moon_memory *other) {
    static uint64_t foreign[64];
    (void)other;
    memory->resize(memory, &foreign[32], 16, 0);
}

static void free_rightly(struct moon_memory *memory, struct moon_memory *other) {
    (void)other;
    memory->resize(memory, memory->resize(memory, NULL, 0, 16), 16, 0);
}

static void wrong_frees_are_noticed(void) {
    CU_ASSERT(aborts(free_with_wrong_size));
    CU_ASSERT(aborts(free_anothers));
    CU_ASSERT(aborts(free_foreign));
    CU_ASSERT(!aborts(free_rightly));
}

static void hardware_memory_stays_and_is_zeroed_at_each_boot(void) {
    struct scene scene;
    scene_open(&scene);
    unsigned char *segment = moon_sim_node_memory(scene.a, 4096);
    MOON_CHECK_INT(segment[100], 0);
    segment[100] = 9;
    moon_sim_crash(scene.a);
    MOON_CHECK_INT(segment[100], 9);
    MOON_CHECK_INT(moon_sim_boot(scene.a, NULL), 0);
    MOON_CHECK_INT(segment[100], 0);
    scene_close(&scene);
}

static void a_simulation_may_close_while_all_goes_on(void) {
    struct scene scene;
    scene_open(&scene);
    connect_scene(&scene);
    struct probe *probe = moon_sim_node_instance(scene.a);
    probe->deadline_ns = environment_of(scene.a)->now_ns + 1;
    moon_sim_touched(scene.a);
    send_from(scene.a, &scene.at_a, "never sent", 10);
    send_from(scene.b, &scene.at_b, "under way", 9);
    while (scene.at_b.sent == 0 && moon_sim_step(scene.sim))
        ;
    probe->deadline_ns = environment_of(scene.a)->now_ns + 1;
    moon_sim_touched(scene.a);
    send_from(scene.a, &scene.at_a, "never sent", 10);
    moon_sim_partition(scene.a, scene.b);
    CU_ASSERT(scene.sim->events.count >= 5); /* a tick, bytes that leave, bytes that arrive, a patience */
    scene_close(&scene);
}

static void a_boot_that_fails_says_why(void) {
    struct scene scene;
    struct moon_error error = {.status = 0};
    scene_open(&scene);
    struct moon_sim_node *node = moon_sim_add(scene.sim, "c", "10.0.0.3", &probe_program, "no luck");
    MOON_CHECK_INT(moon_sim_boot(node, &error), MOON_ERR_IO);
    MOON_CHECK_TEXT(error.message, "no luck");
    CU_ASSERT(!moon_sim_node_instance(node));
    scene_close(&scene);
}

/* ---- records */

static void tell(struct moon_sim_node *node, const char *what) {
    struct moon_recorder *recorder = environment_of(node)->recorder;
    struct moon_record record = {.kind = MOON_RECORD_NOTE, .what = what, .has = MOON_RECORD_HAS_LEASE};
    record.lease_ns = environment_of(node)->now_ns + MOON_NS_PER_S;
    recorder->record(recorder, &record);
}

static void leases_are_recorded_in_simulated_time(void) {
    struct scene scene;
    scene_open(&scene);
    go_to(&scene, 5 * MOON_NS_PER_S);
    tell(scene.a, "lease");
    moon_ns apart = scene.lease_ns - 6 * MOON_NS_PER_S;
    CU_ASSERT(apart > -1000000 && apart < 1000000);
    scene_close(&scene);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"both ends have the same addresses, and no other connection has",
         both_ends_have_the_same_addresses_and_no_other_connection_has},
        {"texts that are no endpoint are refused at once", texts_that_are_no_endpoint_are_refused_at_once},
        {"connecting where nobody listens is refused after a round trip",
         connecting_where_nobody_listens_is_refused_after_a_round_trip},
        {"connecting across a partition times out", connecting_across_a_partition_times_out},
        {"borrowed bytes are read when they leave", borrowed_bytes_are_read_when_they_leave},
        {"bytes given before it is open leave when it is", bytes_given_before_it_is_open_leave_when_it_is},
        {"who closes loses nothing that has left", who_closes_loses_nothing_that_has_left},
        {"a listener that closes breaks who waits to be accepted",
         a_listener_that_closes_breaks_who_waits_to_be_accepted},
        {"a receiver without room holds the sender back", a_receiver_without_room_holds_the_sender_back},
        {"what is on the wire outlives its sender", what_is_on_the_wire_outlives_its_sender},
        {"connecting to a dead process is refused, and to the next boot accepted",
         connecting_to_a_dead_process_is_refused_and_to_the_next_boot_accepted},
        {"a partition holds what a heal lets pass", a_partition_holds_what_a_heal_lets_pass},
        {"a partition that lasts breaks both ends", a_partition_that_lasts_breaks_both_ends},
        {"each partition has its own patience", each_partition_has_its_own_patience},
        {"a crash behind a partition is not seen before it heals",
         a_crash_behind_a_partition_is_not_seen_before_it_heals},
        {"a stopped node gets all when it goes on", a_stopped_node_gets_all_when_it_goes_on},
        {"a stopped node sends nothing", a_stopped_node_sends_nothing},
        {"a tick comes at the first moment at which its deadline has come",
         a_tick_comes_at_the_first_moment_at_which_its_deadline_has_come},
        {"nodes have clocks of their own that never agree for long",
         nodes_have_clocks_of_their_own_that_never_agree_for_long},
        {"all memory goes at a crash, and halt counts what is left",
         all_memory_goes_at_a_crash_and_halt_counts_what_is_left},
        {"wrong frees are noticed", wrong_frees_are_noticed},
        {"hardware memory stays and is zeroed at each boot", hardware_memory_stays_and_is_zeroed_at_each_boot},
        {"a simulation may close while all goes on", a_simulation_may_close_while_all_goes_on},
        {"a boot that fails says why", a_boot_that_fails_says_why},
        {"leases are recorded in simulated time", leases_are_recorded_in_simulated_time},
        {NULL, NULL},
    };
    return moon_unit_main("sim parts", cases, argc, argv);
}
