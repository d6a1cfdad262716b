/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the store client: its state, and what its files call of each other. For client*.c alone. */
#ifndef MOON_STORE_CLIENT_INTERNAL_H
#define MOON_STORE_CLIENT_INTERNAL_H

#include "ref/base/list.h"
#include "ref/base/table.h"
#include "ref/store/client.h"

/* ---- state */

/* One transfer of a key: a replica is written or read. Endpoint and cut pieces live in the operation's arena. */
struct moon_client_job {
    struct moon_transfer_job job; /* first member */
    struct moon_client_key *key;
    bool running;
};

/* Where a key stands in its operation. */
enum moon_client_step {
    MOON_CLIENT_ASKING,    /* its first question is open */
    MOON_CLIENT_MOVING,    /* its bytes are on their way, or have arrived if `code` is 0 */
    MOON_CLIENT_REVOKING,  /* a put that was granted replicas which could not be written */
    MOON_CLIENT_FOLLOWING, /* a later item of the batch has the same key and acts for both */
    MOON_CLIENT_ENDED,     /* result and record are there */
};

/* One key of an operation.
 *   leader        the item that this one follows
 *   bytes         room for a get, then length of the object; of a put length of the value
 *   lease_end_ns  what a get has read counts only before
 *   code          why its transfers failed: the first reason
 *   end           how it ended, once it has */
struct moon_client_key {
    struct moon_client_operation_state *state;
    struct moon_client_item *item;
    struct moon_client_key *leader;
    struct moon_table_node node; /* in client->keys while the operation is submitted */
    uint64_t op, bytes;
    enum moon_client_step step;
    moon_ns lease_end_ns;
    int64_t code;
    enum moon_record_kind end;
    struct moon_client_job *jobs;
    size_t job_count;
};

/* What came of a question. code 0: `result` is the answer; else a negative code.
 *   arrived   with a code: it says nothing about whether the master did what was asked */
struct moon_client_answer {
    int64_t code;
    bool arrived;
    const struct moon_wire_value *result;
};

/* A question to the master. asked: it is open. */
struct moon_client_question {
    struct moon_rpc_call call; /* first member */
    bool asked;
    void (*answered)(struct moon_client_question *question, const struct moon_client_answer *answer);
};

/* An operation under way: in client->operations, and when it has ended in client->ended, until the next tick.
 *   question    operations ask one question after the other
 *   asked_ns    when the latest was asked
 *   op          of the operation; of a batch the parent of its keys' ops
 *   key_count   0 for operations without keys
 *   jobs_left   transfers that run */
struct moon_client_operation_state {
    struct moon_client_question question; /* first member */
    struct moon_client *client;
    struct moon_client_operation *operation;
    struct moon_list link;
    struct moon_arena arena; /* this structure lives in it, too */
    moon_ns asked_ns;
    uint64_t op;
    struct moon_client_key *keys;
    size_t key_count, jobs_left;
};

enum moon_client_phase { MOON_CLIENT_NEW, MOON_CLIENT_SETTING_UP, MOON_CLIENT_READY };

/* What an owner asks by itself. */
struct moon_client_chore {
    struct moon_client_question question; /* first member */
    struct moon_client *client;
};

/* settings: its texts are copies in `texts`.
 *   keys      finds keys that stand twice in a batch; empty between calls
 *   ops       operation ids that were given
 *   offered   peers may reach the segment; mounted: and the master knows it
 *   leaving   the UNMOUNT that is under way
 *   closed    tells moon_client_tick that done() has closed the client */
struct moon_client {
    struct moon_environment *environment;
    struct moon_client_settings settings;
    struct moon_transfer *transfer;
    struct moon_rpc_client *rpc;
    struct moon_arena texts;
    struct moon_table keys;
    struct moon_uuid id, segment_id;
    enum moon_client_phase phase;
    uint64_t ops;
    struct moon_list operations, ended;
    bool offered, mounted;
    struct moon_client_operation_state *leaving;
    moon_ns next_ping_ns;
    struct moon_client_chore ping, remount, tasks;
    bool *closed;
};

/* ---- client.c */

/* A random id, never the one that means none. */
struct moon_uuid moon_client_draw_uuid(struct moon_random *random);

/* ---- client_operation.c: an operation from its submission to its end */

/* Makes the state of an operation, with ids and keys. *state is NULL on error: MOON_ERR_MEMORY, or MOON_ERR_RANGE
 * (lengths of pieces overflow). */
int moon_client_operation_open(struct moon_client *client, struct moon_client_operation *operation,
                               struct moon_client_operation_state **state);
/* Forgets its transfers and gives its memory back. */
void moon_client_operation_close(struct moon_client_operation_state *state);
/* Records what begins. */
void moon_client_operation_invoke(const struct moon_client_operation_state *state);
/* Ends a key: result and record. */
void moon_client_key_end(struct moon_client_key *key, enum moon_record_kind end, int64_t code);
/* Ends the operation; done() comes at the next tick. */
void moon_client_operation_end(struct moon_client_operation_state *state);
/* Records an event of an operation without keys (mount, unmount, remove_all) or of the owner. */
void moon_client_record(const struct moon_client *client, enum moon_record_kind kind, const char *what, uint64_t op,
                        const int64_t *code);
/* How an operation ends that changes something at the master, by what came of the question that decides. */
enum moon_record_kind moon_client_end_of(int64_t code, bool arrived);

/* ---- client_message.c: questions to the master and their answers */

/* A message under construction. arguments NULL: memory refused. */
struct moon_client_message {
    struct moon_arena arena;
    struct moon_wire_value *arguments;
};
/* Begins the message of a call, with all in it that concerns the client itself: client_id, tenant_id. */
void moon_client_message_open(const struct moon_client *client, struct moon_client_message *message, const char *call);
/* Asks and closes the message. What cannot be asked is answered before the return: INTERNAL_ERROR without memory,
 * RPC_FAIL if it is too long. */
void moon_client_ask(struct moon_client *client, struct moon_client_question *question, uint64_t op, const char *call,
                     struct moon_client_message *message,
                     void (*answered)(struct moon_client_question *question, const struct moon_client_answer *answer));
/* Asks about all keys of an operation that stand at `step`: `single`, or `batch` for a batched operation. Returns
 * false, and asks nothing, if there are none. */
bool moon_client_ask_keys(struct moon_client_operation_state *state, enum moon_client_step step, const char *single,
                          const char *batch,
                          void (*answered)(struct moon_client_question *question,
                                           const struct moon_client_answer *answer));
/* Hands each key at `step` its part of the answer to that question: the value inside of its expected, or a code. */
void moon_client_share(struct moon_client_operation_state *state, enum moon_client_step step,
                       const struct moon_client_answer *answer,
                       void (*part)(struct moon_client_key *key, const struct moon_client_answer *answer));
/* The answer inside of an expected. */
struct moon_client_answer moon_client_expect(const struct moon_client_answer *answer);

/* A replica in memory. Texts borrow the answer. */
struct moon_client_replica {
    uint64_t address, size;
    struct moon_bytes endpoint;
    bool complete;
};
enum moon_client_replica_kind {
    MOON_CLIENT_REPLICA_MEMORY,
    MOON_CLIENT_REPLICA_ELSEWHERE, /* on a disk, ...: *replica says only if it is complete */
    MOON_CLIENT_REPLICA_NONSENSE,  /* its numbers cannot be (CLIENT-041) */
};
enum moon_client_replica_kind moon_client_read_replica(const struct moon_wire_value *descriptor,
                                                       struct moon_client_replica *replica);

/* ---- client_transfer.c: transfers of a key */

/* Makes room for `count` jobs of a key. False: memory refused. */
bool moon_client_jobs_open(struct moon_client_key *key, size_t count);
/* Appends a job that writes the key's bytes to the replica or reads them from it. Returns 0, or the code that the key
 * gets: INTERNAL_ERROR (memory), TRANSFER_FAIL (the endpoint is no text that can be dialled). */
int64_t moon_client_job_add(struct moon_client_key *key, const struct moon_client_replica *replica);
/* Starts the key's jobs. key->code is set if one cannot start; `state->jobs_left` tells how many run. When one has
 * ended, moon_client_put_moved or moon_client_get_moved is called. */
void moon_client_jobs_start(struct moon_client_key *key);

/* ---- client_put.c, client_get.c, client_owner.c: the operations. Each is called once, when all is ready for it. */

void moon_client_put(struct moon_client_operation_state *state);
void moon_client_put_moved(struct moon_client_key *key);
void moon_client_get(struct moon_client_operation_state *state);
void moon_client_get_moved(struct moon_client_key *key);
void moon_client_exist(struct moon_client_operation_state *state);
void moon_client_size(struct moon_client_operation_state *state);
void moon_client_remove(struct moon_client_operation_state *state);
void moon_client_remove_all(struct moon_client_operation_state *state);
void moon_client_setup(struct moon_client_operation_state *state);
void moon_client_unmount(struct moon_client_operation_state *state);

/* Pings and asks for tasks when it is time. */
void moon_client_owner_open(struct moon_client *client);
moon_ns moon_client_owner_deadline(const struct moon_client *client);
void moon_client_owner_tick(struct moon_client *client);
/* Peers do not reach the segment any more. */
void moon_client_owner_withdraw(struct moon_client *client);

#endif
