/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the daemons' loop, with a program that only ticks and records. */
#include "ref/daemon/loop.h"

#include "ref/base/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static char folder[] = "/tmp/mooncheck-loop-XXXXXX";
static char path[sizeof folder + 16];

/* Ticks every `every_ns`, records each tick with op 1; after `ticks` of them asks the process to end, or raises a
 * signal. */
struct ticker_settings {
    struct moon_daemon *daemon;
    moon_ns every_ns;
    int ticks, signal;
    bool refuses;
};

struct ticker {
    const struct ticker_settings *settings;
    struct moon_environment *environment;
    moon_ns next_ns;
    int ticks;
    uint64_t drawn;
};

static struct ticker ticker; /* the last one */
static int halts;

static void *boot(const void *settings, struct moon_environment *environment, struct moon_error *error) {
    const struct ticker_settings *its = settings;
    if (its->refuses) {
        moon_fail(error, MOON_ERR_IO, NULL, "refused");
        return NULL;
    }
    ticker = (struct ticker){its, environment, environment->now_ns + its->every_ns, 0, 0};
    ticker.drawn = moon_random_u64(&environment->random);
    return &ticker;
}

static moon_ns deadline(const void *instance) {
    return ((const struct ticker *)instance)->next_ns;
}

static void tick(void *instance) {
    struct ticker *its = instance;
    if (its->environment->now_ns < its->next_ns)
        return;
    its->ticks++;
    its->next_ns += its->settings->every_ns;
    const struct moon_record record = {.kind = MOON_RECORD_NOTE, .what = "tick", .op = 1};
    if (its->environment->recorder)
        its->environment->recorder->record(its->environment->recorder, &record);
    if (its->ticks != its->settings->ticks)
        return;
    if (its->settings->signal)
        raise(its->settings->signal);
    else
        moon_daemon_end(its->settings->daemon, 5);
}

static void halt(void *instance) {
    (void)instance;
    halts++;
}

static const struct moon_program TICKER = {"ticker", boot, deadline, tick, halt};
static const struct moon_daemon_options PLAIN = {.node = "t", .control = -1};

/* Runs a ticker to its end; the exit status. */
static int run(const struct moon_daemon_options *options, struct ticker_settings settings) {
    struct moon_daemon daemon;
    struct moon_error error;
    MOON_CHECK_INT(moon_daemon_open(&daemon, options, &error), 0);
    settings.daemon = &daemon;
    struct moon_daemon_node *node = moon_daemon_node_open(&daemon, &TICKER, &settings, &error);
    CU_ASSERT_FATAL(node != NULL);
    int status = moon_daemon_run(&daemon);
    moon_daemon_node_close(node);
    moon_daemon_close(&daemon);
    return status;
}

static void test_timer(void) {
    uint64_t begin_ns = uv_hrtime();
    halts = 0;
    MOON_CHECK_INT(run(&PLAIN, (struct ticker_settings){.every_ns = 3 * MOON_NS_PER_MS, .ticks = 5}), 5);
    CU_ASSERT(uv_hrtime() - begin_ns >= 15 * 1000000);
    MOON_CHECK_INT(halts, 1);
    MOON_CHECK_INT(run(&PLAIN, (struct ticker_settings){.every_ns = 1000, .ticks = 50}), 5);
}

static void test_seed(void) {
    struct moon_daemon_options options = PLAIN;
    struct ticker_settings settings = {.every_ns = 1, .ticks = 1};
    options.seed = "42";
    run(&options, settings);
    uint64_t first = ticker.drawn;
    run(&options, settings);
    CU_ASSERT_EQUAL(ticker.drawn, first);
    options.seed = "43";
    run(&options, settings);
    CU_ASSERT_NOT_EQUAL(ticker.drawn, first);
    run(&PLAIN, settings);
    first = ticker.drawn;
    run(&PLAIN, settings);
    CU_ASSERT_NOT_EQUAL(ticker.drawn, first);
}

static void test_signals(void) {
    MOON_CHECK_INT(run(&PLAIN, (struct ticker_settings){.every_ns = 1, .ticks = 1, .signal = SIGTERM}), 0);
    MOON_CHECK_INT(run(&PLAIN, (struct ticker_settings){.every_ns = 1, .ticks = 1, .signal = SIGINT}), 0);
}

static void count_stop(void *context) {
    struct moon_daemon *daemon = context;
    moon_daemon_end(daemon, 7);
}

static void test_stop(void) {
    struct moon_daemon daemon;
    struct moon_error error;
    MOON_CHECK_INT(moon_daemon_open(&daemon, &PLAIN, &error), 0);
    daemon.stop = count_stop;
    daemon.context = &daemon;
    raise(SIGTERM);
    MOON_CHECK_INT(moon_daemon_run(&daemon), 7);
    moon_daemon_end(&daemon, 8); /* the first counts */
    MOON_CHECK_INT(moon_daemon_run(&daemon), 7);
    moon_daemon_close(&daemon);
}

static void test_history(void) {
    struct moon_daemon daemon;
    struct moon_error error;
    struct moon_daemon_options options = PLAIN;
    struct ticker_settings settings = {.daemon = &daemon, .every_ns = MOON_NS_PER_S, .ticks = 3};
    char line[512];
    options.history = path;
    options.boot = 2;
    MOON_CHECK_INT(moon_daemon_open(&daemon, &options, &error), 0);
    struct moon_daemon_node *first = moon_daemon_node_open(&daemon, &TICKER, &settings, &error);
    settings.every_ns = 1;
    struct moon_daemon_node *second = moon_daemon_node_open(&daemon, &TICKER, &settings, &error);
    CU_ASSERT_FATAL(first && second);
    CU_ASSERT_PTR_EQUAL(moon_daemon_node_instance(second), &ticker);
    MOON_CHECK_INT(moon_daemon_run(&daemon), 5);
    moon_daemon_node_close(first);
    moon_daemon_node_close(second);
    moon_daemon_close(&daemon);
    FILE *file = fopen(path, "r");
    CU_ASSERT_FATAL(file != NULL);
    for (uint64_t n = 0; fgets(line, sizeof line, file); n++) {
        struct moon_arena arena;
        struct moon_record record;
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(moon_record_read_json(&arena, line, strlen(line) - 1, &record, &error), 0);
        MOON_CHECK_INT(record.n, n);
        MOON_CHECK_INT(record.boot, 2);
        MOON_CHECK_INT(record.op, ((uint64_t)1 << 40) + 1);
        CU_ASSERT(moon_bytes_equal(record.node, moon_bytes_of("t")) && moon_bytes_equal(record.clock, record.node));
        moon_arena_close(&arena);
    }
    fclose(file);
    unlink(path);
}

static void test_full_disk(void) {
    struct moon_daemon_options options = PLAIN;
    options.history = "/dev/full";
    if (access(options.history, W_OK) == 0)
        MOON_CHECK_INT(run(&options, (struct ticker_settings){.every_ns = 1, .ticks = 5}), 2);
}

static void test_refusals(void) {
    struct moon_daemon daemon;
    struct moon_error error;
    struct moon_daemon_options options = PLAIN;
    options.seed = "x";
    MOON_CHECK_INT(moon_daemon_open(&daemon, &options, &error), MOON_ERR_SCHEMA);
    options = PLAIN;
    options.history = "/nonexistent/history";
    MOON_CHECK_INT(moon_daemon_open(&daemon, &options, &error), MOON_ERR_IO);
    options = PLAIN;
    options.control = 1000;
    MOON_CHECK_INT(moon_daemon_open(&daemon, &options, &error), MOON_ERR_IO);
    MOON_CHECK_INT(moon_daemon_open(&daemon, &PLAIN, &error), 0);
    struct ticker_settings settings = {.refuses = true};
    CU_ASSERT_PTR_NULL(moon_daemon_node_open(&daemon, &TICKER, &settings, &error));
    MOON_CHECK_TEXT(error.message, "refused");
    moon_daemon_close(&daemon);
}

static void say(int to, const char *text) {
    MOON_CHECK_INT(write(to, text, strlen(text)), strlen(text));
}

static void test_control(void) {
    struct moon_daemon_options options = PLAIN;
    struct ticker_settings settings = {.every_ns = 1, .ticks = 5};
    int pair[2];
    char heard[256];
    /* The goes are there before the steps: nobody has to be quick. */
    MOON_CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    options.control = pair[1];
    say(pair[0], "{\"arm\":[{\"id\":1,\"point\":\"before\"},{\"id\":2,\"point\":\"after\",\"occurrence\":2}]}\n");
    say(pair[0], "{\"go\":1}\n{\"go\":2}\n");
    MOON_CHECK_INT(run(&options, settings), 5);
    ssize_t length = recv(pair[0], heard, sizeof heard - 1, MSG_DONTWAIT);
    heard[length > 0 ? length : 0] = '\0';
    CU_ASSERT(strncmp(heard, "{\"step\":{\"id\":1,\"record\":{\"n\":0,", 32) == 0);
    CU_ASSERT(strstr(heard, "{\"step\":{\"id\":2,\"record\":{\"n\":1,") != NULL);
    close(pair[0]);
    close(pair[1]);
    /* A supervisor that hangs up ends it in order. */
    MOON_CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    options.control = pair[1];
    say(pair[0], "{\"arm\":[]}\n");
    close(pair[0]);
    MOON_CHECK_INT(run(&options, (struct ticker_settings){.every_ns = MOON_NS_PER_MS, .ticks = 10000}), 0);
    close(pair[1]);
    /* Nonsense on the channel ends the process. */
    MOON_CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    options.control = pair[1];
    say(pair[0], "{\"arm\":[]}\n");
    struct moon_daemon daemon;
    struct moon_error error;
    MOON_CHECK_INT(moon_daemon_open(&daemon, &options, &error), 0);
    say(pair[0], "nonsense\n");
    MOON_CHECK_INT(moon_daemon_run(&daemon), 2);
    moon_daemon_close(&daemon);
    close(pair[0]);
    close(pair[1]);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the timer follows the deadline", test_timer},
        {"random numbers come from the seed, or from the system", test_seed},
        {"SIGTERM and SIGINT end in order", test_signals},
        {"who wants to do something before the end is asked", test_stop},
        {"records of all nodes are one history, their operations apart", test_history},
        {"a full disk ends the process with status 2", test_full_disk},
        {"what cannot be opened is said, and nothing stays open", test_refusals},
        {"a supervisor stops the node, and its going ends it", test_control},
        {NULL, NULL},
    };
    if (!mkdtemp(folder))
        return 2;
    snprintf(path, sizeof path, "%s/history", folder);
    int status = moon_unit_main("daemon loop", cases, argc, argv);
    rmdir(folder);
    return status;
}
