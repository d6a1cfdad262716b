/* SPDX-License-Identifier: Apache-2.0 */
/* A store client over verbs as a program: opens the device, then boots the client with a transfer engine on it. */
#ifndef MOON_DAEMON_RDMA_NODE_H
#define MOON_DAEMON_RDMA_NODE_H

#include "ref/daemon/loop.h"
#include "ref/fabric/verbs.h"
#include "ref/store/client_node.h"

#ifdef __cplusplus
extern "C" {
#endif

/* verbs.host is also what peers dial. client.transfer.verbs and .host are set by the node. */
struct moon_rdma_node_settings {
    struct moon_verbs_settings verbs;
    struct moon_client_node_settings client;
};

struct moon_rdma_node;

/* Opens device, transfer engine and client; nothing is sent yet. NULL and an error if one of them cannot. `settings`
 * outlive it. */
struct moon_rdma_node *moon_rdma_node_open(struct moon_daemon *daemon, struct moon_rdma_node_settings *settings,
                                           struct moon_error *error);
void moon_rdma_node_close(struct moon_rdma_node *node);
struct moon_client *moon_rdma_node_client(struct moon_rdma_node *node);
struct moon_transfer *moon_rdma_node_transfer(struct moon_rdma_node *node);
/* Around calls into the two from outside. */
void moon_rdma_node_enter(struct moon_rdma_node *node);
void moon_rdma_node_leave(struct moon_rdma_node *node);

#ifdef __cplusplus
}
#endif
#endif
