/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios: nodes of a store, operations on them, actions anchored to events, and what is expected; read from JSON. */
#ifndef MOON_WORLDS_SCENARIO_H
#define MOON_WORLDS_SCENARIO_H

#include "ref/base/json.h"
#include "ref/base/random.h"
#include "ref/base/record.h"
#include "ref/store/master.h"
#include "ref/wire/release.h"

/* Limits of one scenario. Node 0 is always the master. */
enum {
    MOON_SCENARIO_NODES_MAX = 32,
    MOON_SCENARIO_OPERATIONS_MAX = 4096, /* of a mix: in all */
    MOON_SCENARIO_KEYS_MAX = 256,        /* of one operation */
    MOON_SCENARIO_ACTIONS_MAX = 128,
    MOON_SCENARIO_REPEAT_MAX = 10000,
    MOON_SCENARIO_BYTES_MAX = 256 * 1024 * 1024, /* of one value, of one owner's memory */
};

/* memory_bytes: lent to the store; 0 for the master and for requesters. */
struct moon_scenario_node {
    const char *name;
    uint64_t memory_bytes;
};

/* A record that something waits for: the occurrence-th (from 1, counted from the node's last start) of `node` that
 * fits. before  it stands at the record itself (a send has not left); else behind the event that made it kind    of
 * enum moon_record_kind, -1: any key     glob; NULL: any, or none */
struct moon_anchor {
    size_t node;
    bool before;
    int kind;
    const char *what, *key;
    int64_t occurrence;
};

enum moon_condition_kind {
    MOON_CONDITION_OPERATION, /* it has ended, with all its repetitions */
    MOON_CONDITION_ACTION,    /* it has been done */
    MOON_CONDITION_ANCHOR,    /* it has happened */
};
struct moon_condition {
    enum moon_condition_kind kind;
    size_t index; /* into the scenario's operations, actions or anchors */
};

enum moon_scenario_do {
    MOON_DO_PUT,
    MOON_DO_GET,
    MOON_DO_EXIST,
    MOON_DO_SIZE,
    MOON_DO_REMOVE,
    MOON_DO_REMOVE_ALL,
    MOON_DO_BATCH_PUT,
    MOON_DO_BATCH_GET,
    MOON_DO_COUNT,
    MOON_DO_SETUP = MOON_DO_COUNT, /* the runner's own, at each start of a client */
};
const char *moon_scenario_do_name(enum moon_scenario_do what); /* "put", ..., "setup" */

/* One operation, `repeat` times one after the other. In the keys "{i}" stands for the number of the repetition, from 0.
 *   bytes   size of each value; of a get: room for it
 *   fill    of a put: the value of key k in repetition r is moon_fill(fill + r * key_count + k)
 *   pause_ns  waited before it begins, in virtual time only (mix) */
struct moon_scenario_operation {
    const char *id;
    size_t node;
    enum moon_scenario_do what;
    const char *const *keys;
    size_t key_count;
    size_t bytes;
    uint64_t fill;
    bool force;
    const struct moon_condition *after;
    size_t after_count;
    int64_t repeat;
    moon_ns pause_ns;
};

enum moon_scenario_act {
    MOON_ACT_KILL,
    MOON_ACT_STOP,
    MOON_ACT_CONTINUE,
    MOON_ACT_RESTART,
    MOON_ACT_PARTITION,
    MOON_ACT_HEAL,
    MOON_ACT_EXPIRE, /* waits until a lease, or a time that a flag of the store sets, is over */
    MOON_ACT_DROP,   /* breaks all streams between two nodes */
};
const char *moon_scenario_act_name(enum moon_scenario_act what);

/* before: an anchor (after_count is 0 then), or MOON_SCENARIO_NONE. of_ns: of EXPIRE: how long the store's flag says;
 * MOON_NS_NEVER: as long as the lease lasts that the anchored record tells. */
#define MOON_SCENARIO_NONE SIZE_MAX
struct moon_scenario_action {
    const char *id;
    size_t before;
    const struct moon_condition *after;
    size_t after_count;
    enum moon_scenario_act what;
    size_t node, other;
    moon_ns of_ns;
};

/* What faults are drawn at the start of each operation: chances in a thousand. */
struct moon_scenario_faults {
    bool there;
    int64_t crash, stop, partition, drop;
    const size_t *nodes; /* that may be crashed or stopped */
    size_t node_count;
    moon_ns length_max_ns;
};

struct moon_scenario_mix {
    const size_t *clients;
    size_t client_count; /* 0: there is no mix */
    int64_t keys, operations, rates[MOON_DO_COUNT];
    const size_t *sizes;
    size_t size_count;
    moon_ns pause_max_ns;
};

/* Result that stands for an operation whose node died under it. No code of the store is so large. */
#define MOON_CODE_LOST INT64_MAX

/* What the results of an operation may be: any of `allowed` for each; or `each`: the n-th result is the n-th. rising:
 * no result is lower than the one before it. Results are those of all keys of all repetitions, in order. */
struct moon_scenario_codes {
    size_t operation;
    const int64_t *allowed;
    size_t allowed_count;
    bool each, rising;
};
/* Every key that was read held the bytes of one of these fills (plus the key's number, as of a put). */
struct moon_scenario_digests {
    size_t operation;
    const uint64_t *fills;
    size_t fill_count;
};

/* All lives in the arena it was read into. */
struct moon_scenario {
    const char *source, *id, *title;
    const char *const *guide;
    size_t guide_count;
    const struct moon_wire_release *release;
    struct moon_master_settings master;
    bool strict; /* deviations count as broken */
    struct moon_scenario_node nodes[MOON_SCENARIO_NODES_MAX];
    size_t node_count;
    struct moon_scenario_operation *operations;
    size_t operation_count;
    struct moon_scenario_action *actions;
    size_t action_count;
    struct moon_anchor *anchors;
    size_t anchor_count;
    struct moon_scenario_mix mix;
    struct moon_scenario_faults faults;
    struct moon_scenario_codes *codes;
    size_t code_count;
    struct moon_scenario_digests *digests;
    size_t digest_count;
    const char *const *deviations; /* edges that checkers may report */
    size_t deviation_count;
};

/* Reads a scenario; `source` names it in errors. Returns 0, an error of moon_json_read, or MOON_ERR_SCHEMA or
 * MOON_ERR_RANGE with file, line, column, member and what is allowed there; MOON_ERR_MEMORY. */
int moon_scenario_read(struct moon_arena *arena, const char *source, const char *text, size_t length,
                       struct moon_scenario *scenario, struct moon_error *error);
/* The same from a file or "-". */
int moon_scenario_load(struct moon_arena *arena, const char *path, struct moon_scenario *scenario,
                       struct moon_error *error);

/* Appends the operations of the mix, drawn from `random`, to the scenario's own; once. Each client does its part one
 * after the other. Returns 0 or MOON_ERR_MEMORY. */
int moon_scenario_draw(struct moon_arena *arena, struct moon_scenario *scenario, struct moon_random *random,
                       struct moon_error *error);

/* Key of one repetition, in `arena`; NULL when memory refused. */
const char *moon_scenario_key(struct moon_arena *arena, const char *pattern, int64_t repetition);

#endif
