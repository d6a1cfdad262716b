/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the rig share among themselves. Nobody else includes it. */
#ifndef MOON_CONFORMANCE_SUITES_ENGINE_RIG_INTERNAL_H
#define MOON_CONFORMANCE_SUITES_ENGINE_RIG_INTERNAL_H

#include "conformance/suites/engine_rig.h"
#include "conformance/suites/key_set.h"
#include "ref/connector/lookup_client.h"
#include "ref/connector/lookup_server.h"
#include "ref/connector/receiver.h"
#include "ref/connector/sender.h"
#include "ref/engine/delivery.h"
#include "ref/engine/kv_memory.h"
#include "ref/engine/multi_connector.h"
#include "ref/engine/store_child.h"

/* One worker. sender and receiver are NULL where the role has none. */
struct rig_rank {
    struct moon_rank rank;
    struct moon_kv_memory kv;
    struct moon_segments segments;
    struct moon_sender *sender;
    struct moon_receiver *receiver;
};

/* An object of the store. bytes NULL: it was there before, and holds what its key says. */
struct rig_object {
    uint8_t *bytes;
    size_t size;
};
/* Heads of the model that the objects of one identity hold. */
struct rig_identity {
    uint64_t first_head, heads;
};

/* A request beside the core: what stands for each of its tokens. */
struct rig_request {
    uint64_t *prefixes;
    int64_t known;    /* prefixes that are there */
    int64_t received; /* ranks that ended its load */
    int64_t sent;
};

struct moon_rig {
    struct moon_engine_port port; /* between the core and its connector: watches */
    struct moon_arena *arena;
    const struct moon_engine_case *its;
    struct moon_rig_observer *observer;
    struct moon_hasher hasher;
    struct moon_core *core;
    struct moon_engine_port *inner;
    struct moon_store_child child;
    struct moon_scheduler *scheduler;
    struct moon_delivery delivery;
    struct moon_multi_connector multi;
    struct rig_rank *ranks;
    size_t rank_count;
    struct rig_request *requests;
    /* of the step under way: slots that ended or were preempted before it, and what the workers tell with it */
    uint32_t finished[MOON_ENGINE_CASE_REQUESTS_MAX], preempted[MOON_ENGINE_CASE_REQUESTS_MAX];
    size_t finished_count, preempted_count;
    int64_t tokens[MOON_ENGINE_CASE_RUNNING_MAX];
    uint32_t received[MOON_ENGINE_CASE_REQUESTS_MAX], sent[MOON_ENGINE_CASE_REQUESTS_MAX];
    uint32_t failed_requests[MOON_ENGINE_CASE_REQUESTS_MAX];
    uint64_t *failed_blocks;
    struct moon_core_report *reports;
    size_t report_capacity;
    uint64_t wrong_bytes;
    /* the store (engine_rig_store.c) */
    struct moon_key_set identities, keys;
    struct rig_identity *identity_list;
    struct rig_object *objects;
    size_t object_capacity;
    struct moon_text key; /* scratch */
    int64_t *values;
    size_t value_capacity;
    /* the lookup channel (engine_rig_lookup.c) */
    struct moon_lookup_channel channel;
    struct moon_lookup_client *client;
    struct moon_lookup_server server;
    struct moon_text frames[MOON_RPC_FRAMES_MAX];
    size_t frame_count;
    bool arrived, hold, in_step;
    int64_t permits;
    size_t asked_store;
    int lookup_status; /* MOON_ERR_MEMORY that the channel could not return */
};

/* The store. */
int moon_rig_store_open(struct moon_rig *rig, struct moon_error *error);
/* Makes a call to it: fills rig->values. Returns 0 or MOON_ERR_MEMORY. `rank` NULL: of the lookup. */
int moon_rig_store_call(struct moon_rig *rig, struct rig_rank *rank, const struct moon_store_call *call,
                        struct moon_error *error);

/* The channel. */
int moon_rig_lookup_open(struct moon_rig *rig, struct moon_error *error);
void moon_rig_lookup_close(struct moon_rig *rig);
/* Serves what has arrived as far as it may. Returns 0 or MOON_ERR_MEMORY. */
int moon_rig_lookup_serve(struct moon_rig *rig, bool may_answer, struct moon_error *error);

#endif
