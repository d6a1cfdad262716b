/* SPDX-License-Identifier: Apache-2.0 */
/* A process that runs nodes: one timer a node, re-armed from its deadline after each event. */
#include "ref/daemon/loop.h"

#include "ref/daemon/duration.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>

enum { OPERATIONS_BITS = 40, DRAIN_TURNS = 100 };

/* How long a step of point "after" waits for its sends to be written. */
static const moon_ns AFTER_WAIT_NS = MOON_NS_PER_S;

/* timer: stands for a deadline to come. due: runs while one has come: libuv would let a timer that is due again and
 * again keep the loop from its sockets. handles: of them, how many are not closed.
 * index: of this node among those of the process. armed_ns: what the timer stands for. after_ns: since when a step of
 * point "after" waits for sends to be written, MOON_NS_NEVER: none does. */
struct moon_daemon_node {
    struct moon_recorder recorder;
    struct moon_daemon *daemon;
    struct moon_environment environment;
    struct moon_tcp_fabric *fabric;
    const struct moon_program *program;
    void *instance;
    uv_timer_t timer;
    uv_idle_t due;
    moon_ns armed_ns, after_ns;
    uint64_t index;
    int handles;
};

/* ---- records */

static uint64_t moved(const struct moon_daemon_node *node, uint64_t operation) {
    return operation == 0 ? 0 : operation + (node->index << OPERATIONS_BITS);
}

static void record_event(struct moon_recorder *self, const struct moon_record *record) {
    struct moon_daemon_node *node = (struct moon_daemon_node *)self;
    struct moon_daemon *daemon = node->daemon;
    struct moon_record full = *record;
    full.node = full.clock = moon_bytes_of(daemon->options.node);
    full.boot = (uint32_t)daemon->options.boot;
    full.n = daemon->records++;
    full.time_ns = (moon_ns)uv_hrtime();
    full.op = moved(node, record->op);
    full.parent = moved(node, record->parent);
    moon_text_clear(&daemon->line);
    moon_record_write_json(&full, &daemon->line);
    moon_history_file_write(&daemon->history, &daemon->line);
    if (daemon->history.failed)
        moon_daemon_end(daemon, 2);
    if (!daemon->line.failed)
        moon_control_see(&daemon->control, &full, daemon->line.data, daemon->line.length - 1);
}

/* ---- events */

static void timer_fired(uv_timer_t *timer);
static void turn_begins(uv_idle_t *due);

/* Stops for records of point "after" once their sends are written, or do not get written for too long. */
static void stop_after(struct moon_daemon_node *node) {
    moon_ns now_ns = (moon_ns)uv_hrtime();
    if (node->daemon->control.waiting == 0) {
        node->after_ns = MOON_NS_NEVER;
        return;
    }
    if (node->after_ns == MOON_NS_NEVER)
        node->after_ns = now_ns;
    if (moon_tcp_fabric_unsent(node->fabric) > 0 && now_ns - node->after_ns < AFTER_WAIT_NS)
        return;
    node->after_ns = MOON_NS_NEVER;
    moon_control_after(&node->daemon->control);
}

static void arm_timer(struct moon_daemon_node *node) {
    moon_ns deadline_ns = node->program->deadline(node->instance);
    if (node->after_ns != MOON_NS_NEVER && node->after_ns + AFTER_WAIT_NS < deadline_ns)
        deadline_ns = node->after_ns + AFTER_WAIT_NS;
    if (deadline_ns == node->armed_ns)
        return;
    node->armed_ns = deadline_ns;
    uv_timer_stop(&node->timer);
    uv_idle_stop(&node->due);
    if (deadline_ns == MOON_NS_NEVER)
        return;
    moon_ns left_ns = deadline_ns - (moon_ns)uv_hrtime();
    if (left_ns <= 0) {
        uv_idle_start(&node->due, turn_begins);
        return;
    }
    uv_update_time(&node->daemon->loop);
    uv_timer_start(&node->timer, timer_fired, (uint64_t)((left_ns - 1) / MOON_NS_PER_MS + 1), 0);
}

void moon_daemon_node_enter(struct moon_daemon_node *node) {
    moon_tcp_clocks(&node->environment);
}

void moon_daemon_node_leave(struct moon_daemon_node *node) {
    if (!node->instance)
        return; /* it is being booted */
    stop_after(node);
    arm_timer(node);
}

static void event_ended(void *context) {
    moon_daemon_node_leave(context);
}

static void tick(struct moon_daemon_node *node) {
    node->armed_ns = MOON_NS_NEVER;
    uv_idle_stop(&node->due);
    moon_daemon_node_enter(node);
    node->program->tick(node->instance);
    moon_daemon_node_leave(node);
}

static void timer_fired(uv_timer_t *timer) {
    tick(timer->data);
}

static void turn_begins(uv_idle_t *due) {
    tick(due->data);
}

/* ---- nodes */

static void handle_closed(uv_handle_t *handle) {
    struct moon_memory *memory = moon_memory_heap();
    struct moon_daemon_node *node = handle->data;
    if (--node->handles == 0)
        memory->resize(memory, node, sizeof *node, 0);
}

struct moon_daemon_node *moon_daemon_node_open(struct moon_daemon *daemon, const struct moon_program *program,
                                               const void *settings, struct moon_error *error) {
    struct moon_memory *memory = moon_memory_heap();
    struct moon_daemon_node *node = memory->resize(memory, NULL, 0, sizeof *node);
    if (!node) {
        moon_no_memory(error);
        return NULL;
    }
    *node = (struct moon_daemon_node){.recorder = {record_event},
                                      .daemon = daemon,
                                      .environment = {.memory = memory},
                                      .program = program,
                                      .armed_ns = MOON_NS_NEVER,
                                      .after_ns = MOON_NS_NEVER,
                                      .index = daemon->nodes++};
    moon_random_seed(&node->environment.random, moon_random_u64(&daemon->random));
    if (daemon->options.history || daemon->control.descriptor >= 0)
        node->environment.recorder = &node->recorder;
    uv_timer_init(&daemon->loop, &node->timer);
    uv_idle_init(&daemon->loop, &node->due);
    node->timer.data = node->due.data = node;
    node->handles = 2;
    node->fabric = moon_tcp_fabric_open(&daemon->loop, &node->environment, event_ended, node);
    if (!node->fabric)
        moon_no_memory(error);
    else
        node->instance = program->boot(settings, &node->environment, error);
    if (!node->instance) {
        moon_daemon_node_close(node);
        return NULL;
    }
    moon_daemon_node_leave(node);
    return node;
}

void moon_daemon_node_close(struct moon_daemon_node *node) {
    if (node->instance)
        node->program->halt(node->instance);
    node->instance = NULL;
    if (node->fabric)
        moon_tcp_fabric_close(node->fabric);
    uv_close((uv_handle_t *)&node->timer, handle_closed);
    uv_close((uv_handle_t *)&node->due, handle_closed);
}

void *moon_daemon_node_instance(struct moon_daemon_node *node) {
    return node->instance;
}

/* ---- the process */

static void ask_to_stop(struct moon_daemon *daemon) {
    daemon->asked = true;
    if (daemon->stop)
        daemon->stop(daemon->context);
    else
        moon_daemon_end(daemon, 0);
}

static void signalled(uv_signal_t *handle, int number) {
    (void)number;
    ask_to_stop(handle->data);
}

static void control_readable(uv_poll_t *poll, int status, int events) {
    struct moon_daemon *daemon = poll->data;
    struct moon_error error;
    (void)status;
    (void)events;
    if (moon_control_read(&daemon->control, &error) != 0) {
        fprintf(stderr, "mooncheck: %s: %s\n", error.where, error.message);
        moon_daemon_end(daemon, 2);
    }
    if (daemon->control.lost) {
        uv_poll_stop(poll);
        ask_to_stop(daemon);
    }
}

static int seed_random(struct moon_daemon *daemon, struct moon_error *error) {
    uint64_t seed = 0;
    if (daemon->options.seed) {
        int status = moon_seed_read("seed", daemon->options.seed, &seed, error);
        if (status != 0)
            return status;
    } else if (getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        return moon_fail(error, MOON_ERR_IO, NULL, "no random numbers from the system: %s", strerror(errno));
    }
    moon_random_seed(&daemon->random, seed);
    return 0;
}

static void watch(struct moon_daemon *daemon) {
    uv_signal_init(&daemon->loop, &daemon->terminate);
    uv_signal_init(&daemon->loop, &daemon->interrupt);
    daemon->terminate.data = daemon->interrupt.data = daemon->control_ready.data = daemon;
    uv_signal_start(&daemon->terminate, signalled, SIGTERM);
    uv_signal_start(&daemon->interrupt, signalled, SIGINT);
}

int moon_daemon_open(struct moon_daemon *daemon, const struct moon_daemon_options *options, struct moon_error *error) {
    *daemon = (struct moon_daemon){.options = *options, .history = {.descriptor = -1}, .control = {.descriptor = -1}};
    moon_text_open(&daemon->line, moon_memory_heap());
    signal(SIGPIPE, SIG_IGN);
    int status = seed_random(daemon, error);
    if (status == 0)
        status = moon_history_file_open(&daemon->history, options->history, error);
    if (status == 0)
        status = moon_control_open(&daemon->control, moon_memory_heap(), (int)options->control, error);
    if (status == 0 && uv_loop_init(&daemon->loop) != 0)
        status = moon_fail(error, MOON_ERR_IO, NULL, "no event loop");
    if (status == 0 && options->control >= 0 &&
        uv_poll_init(&daemon->loop, &daemon->control_ready, (int)options->control) != 0) {
        uv_loop_close(&daemon->loop);
        status = moon_fail(error, MOON_ERR_IO, NULL, "--control %d is no socket", (int)options->control);
    }
    if (status != 0) {
        moon_control_close(&daemon->control);
        moon_history_file_close(&daemon->history);
        return status;
    }
    watch(daemon);
    if (options->control >= 0)
        uv_poll_start(&daemon->control_ready, UV_READABLE, control_readable);
    return 0;
}

int moon_daemon_run(struct moon_daemon *daemon) {
    if (!daemon->ending)
        uv_run(&daemon->loop, UV_RUN_DEFAULT);
    return daemon->status;
}

void moon_daemon_end(struct moon_daemon *daemon, int status) {
    if (daemon->ending)
        return;
    daemon->ending = true;
    daemon->status = status;
    uv_stop(&daemon->loop);
}

void moon_daemon_close(struct moon_daemon *daemon) {
    uv_close((uv_handle_t *)&daemon->terminate, NULL);
    uv_close((uv_handle_t *)&daemon->interrupt, NULL);
    if (daemon->options.control >= 0)
        uv_close((uv_handle_t *)&daemon->control_ready, NULL);
    /* A name that is being looked up may take long: the process does not wait for it. */
    for (int i = 0; i < DRAIN_TURNS && uv_run(&daemon->loop, UV_RUN_NOWAIT) != 0; i++)
        continue;
    uv_loop_close(&daemon->loop);
    moon_control_close(&daemon->control);
    moon_history_file_close(&daemon->history);
    moon_text_close(&daemon->line);
}
