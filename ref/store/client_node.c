/* SPDX-License-Identifier: Apache-2.0 */
/* A store client as a program: boots the transfer engine and the client on it, ticks both. */
#include "ref/store/client_node.h"

struct moon_client_node {
    struct moon_environment *environment;
    struct moon_transfer *transfer;
    struct moon_client *client;
};

static void halt(void *instance) {
    struct moon_client_node *node = instance;
    struct moon_memory *memory = node->environment->memory;
    moon_client_close(node->client);
    if (node->transfer)
        moon_transfer_close(node->transfer);
    memory->resize(memory, node, sizeof *node, 0);
}

static void *boot(const void *settings, struct moon_environment *environment, struct moon_error *error) {
    const struct moon_client_node_settings *its = settings;
    struct moon_memory *memory = environment->memory;
    struct moon_client_node *node = memory->resize(memory, NULL, 0, sizeof *node);
    if (!node) {
        moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a client");
        return NULL;
    }
    *node = (struct moon_client_node){.environment = environment};
    if (moon_transfer_open(environment, &its->transfer, &node->transfer, error) == 0) {
        node->client = moon_client_open(environment, &its->client, node->transfer);
        if (node->client)
            return node;
        moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a client");
    }
    halt(node);
    return NULL;
}

static moon_ns deadline(const void *instance) {
    const struct moon_client_node *node = instance;
    moon_ns transfer_ns = moon_transfer_deadline(node->transfer), client_ns = moon_client_deadline(node->client);
    return transfer_ns < client_ns ? transfer_ns : client_ns;
}

static void tick(void *instance) {
    struct moon_client_node *node = instance;
    moon_transfer_tick(node->transfer);
    moon_client_tick(node->client);
}

const struct moon_program moon_client_program = {
    .name = "client", .boot = boot, .deadline = deadline, .tick = tick, .halt = halt};

struct moon_client *moon_client_node_client(void *instance) {
    return ((struct moon_client_node *)instance)->client;
}

struct moon_transfer *moon_client_node_transfer(void *instance) {
    return ((struct moon_client_node *)instance)->transfer;
}
