/* SPDX-License-Identifier: Apache-2.0 */
/* The device lives as long as the client on it: opened at its boot, closed after its halt. */
#include "ref/daemon/rdma_node.h"

struct moon_rdma_node {
    struct moon_daemon *daemon;
    struct moon_rdma_node_settings *settings;
    struct moon_verbs_fabric *fabric;
    struct moon_daemon_node *node; /* NULL while it boots */
    void *client;                  /* instance of moon_client_program */
};

static void event_ended(void *context) {
    struct moon_rdma_node *its = context;
    if (its->node)
        moon_daemon_node_leave(its->node);
}

static void *boot(const void *settings, struct moon_environment *environment, struct moon_error *error) {
    struct moon_rdma_node *its = *(struct moon_rdma_node *const *)settings;
    if (moon_verbs_fabric_open(&its->daemon->loop, environment, &its->settings->verbs, event_ended, its, &its->fabric,
                               error))
        return NULL;
    its->settings->client.transfer.verbs = moon_verbs_fabric_verbs(its->fabric);
    its->settings->client.transfer.host = its->settings->verbs.host;
    its->client = moon_client_program.boot(&its->settings->client, environment, error);
    if (its->client)
        return its;
    moon_verbs_fabric_close(its->fabric);
    return NULL;
}

static moon_ns deadline(const void *instance) {
    return moon_client_program.deadline(((const struct moon_rdma_node *)instance)->client);
}

static void tick(void *instance) {
    moon_client_program.tick(((struct moon_rdma_node *)instance)->client);
}

static void halt(void *instance) {
    struct moon_rdma_node *its = instance;
    moon_client_program.halt(its->client);
    moon_verbs_fabric_close(its->fabric);
}

static const struct moon_program program = {
    .name = "rdma client", .boot = boot, .deadline = deadline, .tick = tick, .halt = halt};

struct moon_rdma_node *moon_rdma_node_open(struct moon_daemon *daemon, struct moon_rdma_node_settings *settings,
                                           struct moon_error *error) {
    struct moon_memory *memory = moon_memory_heap();
    struct moon_rdma_node *its = memory->resize(memory, NULL, 0, sizeof *its);
    if (!its) {
        moon_no_memory(error);
        return NULL;
    }
    *its = (struct moon_rdma_node){.daemon = daemon, .settings = settings};
    its->node = moon_daemon_node_open(daemon, &program, &its, error);
    if (its->node)
        return its;
    memory->resize(memory, its, sizeof *its, 0);
    return NULL;
}

void moon_rdma_node_close(struct moon_rdma_node *its) {
    struct moon_memory *memory = moon_memory_heap();
    moon_daemon_node_close(its->node);
    memory->resize(memory, its, sizeof *its, 0);
}

struct moon_client *moon_rdma_node_client(struct moon_rdma_node *its) {
    return moon_client_node_client(its->client);
}

struct moon_transfer *moon_rdma_node_transfer(struct moon_rdma_node *its) {
    return moon_client_node_transfer(its->client);
}

void moon_rdma_node_enter(struct moon_rdma_node *its) {
    moon_daemon_node_enter(its->node);
}

void moon_rdma_node_leave(struct moon_rdma_node *its) {
    moon_daemon_node_leave(its->node);
}
