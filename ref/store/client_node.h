/* SPDX-License-Identifier: Apache-2.0 */
/* A store client as a program: its transfer engine and the client on it. */
#ifndef MOON_STORE_CLIENT_NODE_H
#define MOON_STORE_CLIENT_NODE_H

#include "ref/base/program.h"
#include "ref/store/client.h"

#ifdef __cplusplus
extern "C" {
#endif

struct moon_client_node_settings {
    struct moon_client_settings client;
    struct moon_transfer_settings transfer;
};

extern const struct moon_program moon_client_program;
struct moon_client *moon_client_node_client(void *instance);
struct moon_transfer *moon_client_node_transfer(void *instance);

#ifdef __cplusplus
}
#endif
#endif
