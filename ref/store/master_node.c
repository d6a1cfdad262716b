/* SPDX-License-Identifier: Apache-2.0 */
/* A master as a program: state, service and server opened and closed together. */
#include "ref/store/master_node.h"

struct moon_master_node {
    struct moon_environment *environment;
    struct moon_master *master;
    struct moon_master_service service;
    struct moon_rpc_server *server;
};

static void halt(void *instance) {
    struct moon_master_node *node = instance;
    struct moon_memory *memory = node->environment->memory;
    moon_rpc_server_close(node->server);
    moon_master_close(node->master);
    memory->resize(memory, node, sizeof *node, 0);
}

static void *boot(const void *settings_, struct moon_environment *environment, struct moon_error *error) {
    const struct moon_master_node_settings *settings = settings_;
    struct moon_master_node *node = environment->memory->resize(environment->memory, NULL, 0, sizeof *node);
    int status = MOON_ERR_MEMORY;
    if (!node) {
        moon_no_memory(error);
        return NULL;
    }
    *node = (struct moon_master_node){.environment = environment};
    node->master = moon_master_open(environment, &settings->master);
    if (node->master) {
        moon_master_service_open(&node->service, node->master, settings->protocol);
        status = moon_rpc_server_open(environment, settings->protocol, &node->service.service, settings->endpoint,
                                      settings->with_text, &node->server, error);
    } else
        moon_no_memory(error);
    if (status) {
        halt(node);
        return NULL;
    }
    return node;
}

static moon_ns deadline(const void *instance) {
    return moon_master_deadline(((const struct moon_master_node *)instance)->master);
}

static void tick(void *instance) {
    moon_master_tick(((struct moon_master_node *)instance)->master);
}

const struct moon_program moon_master_program = {"master", boot, deadline, tick, halt};

struct moon_master *moon_master_node_master(void *instance) {
    return ((struct moon_master_node *)instance)->master;
}

const char *moon_master_node_address(const void *instance) {
    return moon_rpc_server_address(((const struct moon_master_node *)instance)->server);
}
