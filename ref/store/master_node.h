/* SPDX-License-Identifier: Apache-2.0 */
/* A master as a program: its state, its remote calls and their server. */
#ifndef MOON_STORE_MASTER_NODE_H
#define MOON_STORE_MASTER_NODE_H

#include "ref/base/program.h"
#include "ref/store/master_service.h"

#ifdef __cplusplus
extern "C" {
#endif

struct moon_master_node_settings {
    struct moon_master_settings master;
    const struct moon_wire_protocol *protocol;
    bool with_text;
    const char *endpoint; /* "127.0.0.1:50051"; port 0: a free one */
};

extern const struct moon_program moon_master_program;
struct moon_master *moon_master_node_master(void *instance);
const char *moon_master_node_address(const void *instance); /* where it listens */

#ifdef __cplusplus
}
#endif
#endif
