/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of whole simulations: a client and an echo under drawn faults, seed by seed.
 *
 *   usage: sim_test [seeds=N] [SENTENCE]      N: how many seeds are played, 1 to 1000000; without it 20 */
#include "ref/base/unit.h"
#include "sim/sim.h"

#define XXH_STATIC_LINKING_ONLY /* the state's size */
#include <xxhash.h>

enum { BUFFER_BYTES = 32 * 1024, SEEDS_MAX = 1000000 };

static int seeds_asked = 20;

#define RUN_NS    (3 * MOON_NS_PER_S)
#define TICK_NS   (5 * MOON_NS_PER_MS)
#define RETRY_NS  (20 * MOON_NS_PER_MS)
#define SETTLE_NS (100 * MOON_NS_PER_MS)

static void note(struct moon_environment *environment, enum moon_record_kind kind, const char *what, uint64_t bytes) {
    struct moon_record record = {.kind = kind, .what = what, .has = MOON_RECORD_HAS_BYTES, .bytes = bytes};
    if (environment->recorder)
        environment->recorder->record(environment->recorder, &record);
}

static void *allocate(struct moon_environment *environment, size_t bytes) {
    void *piece = environment->memory->resize(environment->memory, NULL, 0, bytes);
    return piece ? memset(piece, 0, bytes) : NULL;
}

static void give_back(struct moon_environment *environment, void *piece, size_t bytes) {
    environment->memory->resize(environment->memory, piece, bytes, 0);
}

/* ---- the echo: sends back what it gets, a buffer at a time */

struct echo {
    struct moon_stream_user user; /* of the listener */
    struct moon_environment *environment;
    struct moon_stream *listener;
    struct echo_stream *streams;
};

struct echo_stream {
    struct moon_stream_user user;
    struct echo *echo;
    struct echo_stream *next;
    struct moon_stream *stream;
    size_t filled;
    bool sending;
    char buffer[4096];
};

static size_t echo_room(struct moon_stream_user *self, struct moon_stream *stream, void **into) {
    struct echo_stream *s = (struct echo_stream *)self;
    (void)stream;
    if (s->sending)
        return 0;
    *into = s->buffer;
    return (size_t)moon_random_below(&s->echo->environment->random, sizeof s->buffer) + 1;
}

static void echo_received(struct moon_stream_user *self, struct moon_stream *stream, size_t bytes) {
    struct echo_stream *s = (struct echo_stream *)self;
    struct moon_environment *environment = s->echo->environment;
    s->sending = true;
    note(environment, MOON_RECORD_SEND, "echo", bytes);
    size_t half = bytes / 2;
    struct moon_piece pieces[] = {{s->buffer, half}, {s->buffer + half, bytes - half}};
    environment->streams->send(environment->streams, stream, pieces, 2);
}

static void echo_sent(struct moon_stream_user *self, struct moon_stream *stream) {
    struct echo_stream *s = (struct echo_stream *)self;
    s->sending = false;
    memset(s->buffer, 0, sizeof s->buffer); /* it is ours again */
    s->echo->environment->streams->resume(s->echo->environment->streams, stream);
}

static void echo_closed(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end) {
    struct echo_stream *s = (struct echo_stream *)self, **at = &s->echo->streams;
    (void)stream, (void)end;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    give_back(s->echo->environment, s, sizeof *s);
}

static void echo_accepted(struct moon_stream_user *self, struct moon_stream *stream) {
    struct echo *echo = (struct echo *)self;
    struct echo_stream *s = allocate(echo->environment, sizeof *s);
    if (!s) {
        echo->environment->streams->close(echo->environment->streams, stream);
        return;
    }
    s->user = (struct moon_stream_user){
        .room = echo_room, .received = echo_received, .sent = echo_sent, .closed = echo_closed};
    s->echo = echo;
    s->stream = stream;
    s->next = echo->streams;
    echo->streams = s;
    stream->user = &s->user;
}

static void *echo_boot(const void *settings, struct moon_environment *environment, struct moon_error *error) {
    struct echo *echo = allocate(environment, sizeof *echo);
    (void)settings;
    if (!echo)
        return NULL;
    echo->environment = environment;
    echo->user.accepted = echo_accepted;
    echo->listener = environment->streams->listen(environment->streams, "0.0.0.0:7000", &echo->user);
    if (echo->listener)
        return echo;
    give_back(environment, echo, sizeof *echo);
    moon_fail(error, MOON_ERR_MEMORY, NULL, "the echo cannot listen");
    return NULL;
}

static moon_ns echo_deadline(const void *instance) {
    (void)instance;
    return MOON_NS_NEVER;
}

static void echo_tick(void *instance) {
    (void)instance;
    CU_FAIL("the echo has no deadline");
}

static void echo_halt(void *instance) {
    struct echo *echo = instance;
    struct moon_streams *streams = echo->environment->streams;
    while (echo->streams) {
        struct echo_stream *s = echo->streams;
        echo->streams = s->next;
        streams->close(streams, s->stream);
        give_back(echo->environment, s, sizeof *s);
    }
    streams->close(streams, echo->listener);
    give_back(echo->environment, echo, sizeof *echo);
}

static const struct moon_program echo_program = {"echo", echo_boot, echo_deadline, echo_tick, echo_halt};

/* ---- the client: sends drawn amounts and checks what comes back; connects again when its stream has ended */

struct client {
    struct moon_stream_user user;
    struct moon_environment *environment;
    struct moon_stream *stream;
    moon_ns tick_ns;
    uint64_t salt, sent, received; /* of this stream */
    uint64_t *echoed;              /* in all, told to the world */
    bool sending, held;
    char out[BUFFER_BYTES], in[BUFFER_BYTES];
};

/* Byte `at` of the stream with that salt. */
static char byte_of(uint64_t salt, uint64_t at) {
    return (char)(unsigned char)((at + salt) * UINT64_C(0x9e3779b97f4a7c15) >> 56);
}

static size_t client_room(struct moon_stream_user *self, struct moon_stream *stream, void **into) {
    struct client *client = (struct client *)self;
    (void)stream;
    client->held = moon_random_chance(&client->environment->random, 1, 8);
    *into = client->in;
    return client->held ? 0 : (size_t)moon_random_below(&client->environment->random, sizeof client->in) + 1;
}

static void client_received(struct moon_stream_user *self, struct moon_stream *stream, size_t bytes) {
    struct client *client = (struct client *)self;
    size_t wrong = 0;
    (void)stream;
    for (size_t i = 0; i < bytes; i++)
        wrong += client->in[i] != byte_of(client->salt, client->received + i);
    MOON_CHECK_INT(wrong, 0);
    client->received += bytes;
    *client->echoed += bytes;
    CU_ASSERT(client->received <= client->sent);
    note(client->environment, MOON_RECORD_RECV, "echo", bytes);
}

static void client_sent(struct moon_stream_user *self, struct moon_stream *stream) {
    struct client *client = (struct client *)self;
    (void)stream;
    client->sending = false;
    memset(client->out, 0, sizeof client->out);
}

static void client_opened(struct moon_stream_user *self, struct moon_stream *stream) {
    struct client *client = (struct client *)self;
    CU_ASSERT(strncmp(stream->local, "10.0.0.2:", 9) == 0);
    MOON_CHECK_TEXT(stream->peer, "10.0.0.1:7000");
    note(client->environment, MOON_RECORD_STATE, stream->local, 0);
}

static void client_closed(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end) {
    struct client *client = (struct client *)self;
    (void)stream;
    client->stream = NULL;
    client->tick_ns = client->environment->now_ns + RETRY_NS;
    note(client->environment, MOON_RECORD_STATE, "closed", (uint64_t)end);
}

static void client_send(struct client *client) {
    struct moon_random *random = &client->environment->random;
    struct moon_piece pieces[4];
    size_t bytes = (size_t)moon_random_below(random, sizeof client->out) + 1, at = 0;
    for (size_t i = 0; i < bytes; i++)
        client->out[i] = byte_of(client->salt, client->sent + i);
    for (size_t i = 0; i < 4; i++) {
        size_t length = i == 3 ? bytes - at : (size_t)moon_random_below(random, bytes - at + 1);
        pieces[i] = (struct moon_piece){client->out + at, length};
        at += length;
    }
    client->sending = true;
    client->sent += bytes;
    note(client->environment, MOON_RECORD_SEND, "echo", bytes);
    client->environment->streams->send(client->environment->streams, client->stream, pieces, 4);
}

static void client_tick(void *instance) {
    struct client *client = instance;
    struct moon_streams *streams = client->environment->streams;
    CU_ASSERT(client->environment->now_ns >= client->tick_ns);
    client->tick_ns = client->environment->now_ns + TICK_NS;
    if (!client->stream) {
        client->salt = moon_random_u64(&client->environment->random);
        client->sent = client->received = 0;
        client->sending = client->held = false;
        client->stream = streams->open(streams, "10.0.0.1:7000", &client->user);
    }
    if (client->stream && client->held)
        streams->resume(streams, client->stream);
    if (client->stream && !client->sending)
        client_send(client);
}

static void *client_boot(const void *settings, struct moon_environment *environment, struct moon_error *error) {
    struct client *client = allocate(environment, sizeof *client);
    (void)error;
    if (!client)
        return NULL;
    client->user = (struct moon_stream_user){.opened = client_opened,
                                             .room = client_room,
                                             .received = client_received,
                                             .sent = client_sent,
                                             .closed = client_closed};
    client->environment = environment;
    client->tick_ns = environment->now_ns;
    memcpy(&client->echoed, settings, sizeof client->echoed);
    return client;
}

static moon_ns client_deadline(const void *instance) {
    return ((const struct client *)instance)->tick_ns;
}

static void client_halt(void *instance) {
    struct client *client = instance;
    if (client->stream)
        client->environment->streams->close(client->environment->streams, client->stream);
    give_back(client->environment, client, sizeof *client);
}

static const struct moon_program client_program = {"client", client_boot, client_deadline, client_tick, client_halt};

/* ---- a recorder: the digest of all records in the order in which they were made */

struct digester {
    struct moon_recorder recorder; /* first member */
    XXH3_state_t state;
    struct moon_text binary;
    uint64_t records;
};

static void digest_record(struct moon_recorder *self, const struct moon_record *record) {
    struct digester *digester = (struct digester *)self;
    moon_text_clear(&digester->binary);
    moon_record_write_binary(record, &digester->binary);
    XXH3_64bits_update(&digester->state, digester->binary.data, digester->binary.length);
    digester->records++;
}

static void digester_open(struct digester *digester) {
    *digester = (struct digester){.recorder = {digest_record}};
    XXH3_64bits_reset(&digester->state);
    moon_text_open(&digester->binary, moon_memory_heap());
}

/* ---- a run */

struct world {
    struct moon_sim *sim;
    struct moon_sim_node *echo, *client;
    struct moon_random random; /* of the faults */
    uint64_t echoed, *echoed_at;
};

static void boot_if_down(struct moon_sim_node *node) {
    if (!moon_sim_node_instance(node) && moon_sim_boot(node, NULL) != 0)
        CU_ASSERT(true); /* no memory: the run has failed */
}

static void draw_fault(void *context) {
    struct world *world = context;
    struct moon_random *random = &world->random;
    struct moon_sim_node *node = moon_random_chance(random, 1, 2) ? world->echo : world->client;
    switch (moon_random_below(random, 8)) {
    case 0:
        moon_sim_crash(node);
        break;
    case 1:
        moon_sim_stop(node);
        break;
    case 2:
        moon_sim_partition(world->echo, world->client);
        break;
    case 3:
        moon_sim_break_streams(world->client, world->echo);
        break;
    case 4:
        moon_sim_heal(world->client, world->echo);
        break;
    case 5:
        moon_sim_go_on(node);
        break;
    default:
        boot_if_down(node);
    }
    moon_ns pause_ns = moon_random_between(random, 0, 80 * MOON_NS_PER_MS);
    moon_sim_at(world->sim, moon_sim_now(world->sim) + pause_ns, draw_fault, world);
}

static void end_faults(void *context) {
    struct world *world = context;
    moon_sim_heal(world->echo, world->client);
    moon_sim_go_on(world->echo);
    moon_sim_go_on(world->client);
    boot_if_down(world->echo);
    boot_if_down(world->client);
}

static void run_until(struct world *world, moon_ns end_ns) {
    while (moon_sim_now(world->sim) < end_ns && moon_sim_step(world->sim))
        ;
}

/* One run of `duration_ns` under faults, and without for as long. Returns 0 or MOON_ERR_MEMORY. */
static int run(struct moon_memory *memory, uint64_t seed, moon_ns duration_ns, struct moon_recorder *recorder) {
    struct world world = {.echoed = 0};
    struct moon_sim_settings settings = moon_sim_defaults();
    settings.connect_timeout_ns = 200 * MOON_NS_PER_MS;
    settings.break_ns = 100 * MOON_NS_PER_MS;
    world.sim = moon_sim_open(memory, seed, &settings, recorder);
    if (!world.sim)
        return MOON_ERR_MEMORY;
    moon_random_seed(&world.random, seed);
    world.echoed_at = &world.echoed;
    world.echo = moon_sim_add(world.sim, "echo", "10.0.0.1", &echo_program, NULL);
    world.client = world.echo ? moon_sim_add(world.sim, "client", "10.0.0.2", &client_program, &world.echoed_at) : NULL;
    if (world.client && moon_sim_boot(world.echo, NULL) == 0 && moon_sim_boot(world.client, NULL) == 0) {
        CU_ASSERT(!moon_sim_add(world.sim, "echo", "10.0.0.3", &echo_program, NULL));
        CU_ASSERT(!moon_sim_add(world.sim, "other", "10.0.0.2", &echo_program, NULL));
        moon_sim_at(world.sim, duration_ns / 16, draw_fault, &world);
        run_until(&world, duration_ns);
        uint64_t before = world.echoed;
        moon_ns rounds = duration_ns / SETTLE_NS + 1; /* a fault may be drawn behind the last end of faults */
        for (moon_ns at = 0; at < rounds && !moon_sim_failed(world.sim); at++) {
            end_faults(&world);
            run_until(&world, duration_ns + (at + 1) * SETTLE_NS);
        }
        CU_ASSERT(moon_sim_failed(world.sim) || world.echoed > before);
        MOON_CHECK_INT(moon_sim_halt(world.client), 0);
        MOON_CHECK_INT(moon_sim_halt(world.echo), 0);
    }
    int status = moon_sim_failed(world.sim) ? MOON_ERR_MEMORY : 0;
    moon_sim_close(world.sim);
    return status;
}

static uint64_t digest_of(uint64_t seed) {
    struct moon_memory_failing memory;
    struct digester digester;
    moon_memory_failing_init(&memory, moon_memory_heap(), 0);
    digester_open(&digester);
    MOON_CHECK_INT(run(&memory.memory, seed, RUN_NS, &digester.recorder), 0);
    MOON_CHECK_INT(memory.held_bytes, 0);
    CU_ASSERT(digester.records > 100);
    moon_text_close(&digester.binary);
    return XXH3_64bits_digest(&digester.state);
}

static void bytes_come_back_exactly_under_every_seed(void) {
    uint64_t last = 0;
    for (uint64_t seed = 1; seed <= (uint64_t)seeds_asked; seed++) {
        uint64_t digest = digest_of(seed);
        CU_ASSERT_NOT_EQUAL(digest, last);
        last = digest;
    }
}

static void a_seed_gives_the_same_history_everywhere(void) {
    char digest[32];
    snprintf(digest, sizeof digest, "%016llx", (unsigned long long)digest_of(7));
    MOON_CHECK_TEXT(digest, "25a9384f25267c9c");
}

static int short_run(struct moon_memory *memory, const void *context) {
    struct digester digester;
    (void)context;
    digester_open(&digester);
    int status = run(memory, 3, 40 * MOON_NS_PER_MS, &digester.recorder);
    moon_text_close(&digester.binary);
    return status;
}

static void refused_memory_fails_the_run_and_leaks_nothing(void) {
    moon_unit_refuse_memory(short_run, NULL);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"bytes come back exactly under every seed", bytes_come_back_exactly_under_every_seed},
        {"a seed gives the same history everywhere", a_seed_gives_the_same_history_everywhere},
        {"refused memory fails the run and leaks nothing", refused_memory_fails_the_run_and_leaks_nothing},
        {NULL, NULL},
    };
    if (argc > 1 && sscanf(argv[1], "seeds=%d", &seeds_asked) == 1) {
        if (seeds_asked < 1 || seeds_asked > SEEDS_MAX) {
            fprintf(stderr, "sim_test: seeds=1 to %d\n", SEEDS_MAX);
            return 2;
        }
        argc--;
        argv++;
    }
    return moon_unit_main("sim", cases, argc, argv);
}
