/* SPDX-License-Identifier: Apache-2.0 */
/* Get: where the object lies, read it, look at the clock (CLIENT-020 to CLIENT-023); and the questions without bytes.
 */
#include "ref/store/client_internal.h"

/* ---- replicas */

/* Chooses the replica that is read: complete, in memory, at the own endpoint if there is one (CLIENT-020). Returns 0 or
 * the key's code. */
static int64_t choose(const struct moon_client_key *key, const struct moon_wire_value *answer,
                      struct moon_client_replica *chosen) {
    struct moon_bytes own = moon_bytes_of(moon_transfer_endpoint(key->state->client->transfer));
    const struct moon_wire_value *descriptors = moon_wire_at(answer, "replicas");
    int64_t code = MOON_STORE_REPLICA_IS_NOT_READY;
    for (const struct moon_wire_value *its = descriptors->first; its; its = its->next) {
        struct moon_client_replica replica;
        enum moon_client_replica_kind kind = moon_client_read_replica(its, &replica);
        bool is_own = moon_bytes_equal(replica.endpoint, own);
        if (kind == MOON_CLIENT_REPLICA_ELSEWHERE || !replica.complete ||
            (code != MOON_STORE_REPLICA_IS_NOT_READY && !is_own))
            continue;
        code = kind == MOON_CLIENT_REPLICA_NONSENSE ? MOON_STORE_RPC_FAIL : 0;
        *chosen = replica;
        if (is_own)
            break;
    }
    return code;
}

/* ---- get */

void moon_client_get_moved(struct moon_client_key *key) {
    struct moon_client_operation_state *state = key->state;
    if (!key->code && state->client->environment->now_ns >= key->lease_end_ns)
        key->code = MOON_STORE_LEASE_EXPIRED;
    if (key->code)
        moon_client_key_end(key, MOON_RECORD_FAIL, key->code);
    else
        moon_client_key_end(key, MOON_RECORD_OK, (int64_t)key->bytes);
    if (state->jobs_left == 0)
        moon_client_operation_end(state);
}

static moon_ns lease_end(const struct moon_client_operation_state *state, uint64_t lease_ttl_ms) {
    moon_ns ttl_ns, end_ns;
    if (__builtin_mul_overflow(lease_ttl_ms, MOON_NS_PER_MS, &ttl_ns) ||
        __builtin_add_overflow(state->asked_ns, ttl_ns, &end_ns))
        return MOON_NS_NEVER;
    return end_ns;
}

/* Makes the job that reads the object. Returns 0 or the key's code. */
static int64_t plan(struct moon_client_key *key, const struct moon_wire_value *answer) {
    struct moon_client_replica replica;
    int64_t code = choose(key, answer, &replica);
    if (code)
        return code;
    if (replica.size > key->bytes)
        return MOON_STORE_INVALID_PARAMS;
    key->bytes = replica.size;
    key->lease_end_ns = lease_end(key->state, moon_wire_number(moon_wire_at(answer, "lease_ttl_ms")));
    return moon_client_jobs_open(key, 1) ? moon_client_job_add(key, &replica) : MOON_STORE_INTERNAL_ERROR;
}

static void read_key(struct moon_client_key *key, const struct moon_client_answer *answer) {
    key->step = MOON_CLIENT_MOVING;
    key->code = answer->code ? answer->code : plan(key, answer->result);
    moon_client_jobs_start(key);
    if (key->code)
        moon_client_key_end(key, MOON_RECORD_FAIL, key->code);
}

static void located(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    moon_client_share(state, MOON_CLIENT_ASKING, answer, read_key);
    if (state->jobs_left == 0)
        moon_client_operation_end(state);
}

void moon_client_get(struct moon_client_operation_state *state) {
    if (!moon_client_ask_keys(state, MOON_CLIENT_ASKING, "GetReplicaList", "BatchGetReplicaList", located))
        moon_client_operation_end(state);
}

/* ---- one question is all */

static void exist_key(struct moon_client_key *key, const struct moon_client_answer *answer) {
    if (answer->code)
        moon_client_key_end(key, MOON_RECORD_FAIL, answer->code);
    else
        moon_client_key_end(key, MOON_RECORD_OK, (int64_t)moon_wire_number(answer->result));
}

static void size_key(struct moon_client_key *key, const struct moon_client_answer *answer) {
    struct moon_client_replica replica;
    int64_t code = answer->code ? answer->code : choose(key, answer->result, &replica);
    moon_client_key_end(key, code ? MOON_RECORD_FAIL : MOON_RECORD_OK, code ? code : (int64_t)replica.size);
}

static void remove_key(struct moon_client_key *key, const struct moon_client_answer *answer) {
    moon_client_key_end(key, moon_client_end_of(answer->code, answer->arrived), answer->code);
}

static void answered(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    enum moon_client_do kind = state->operation->kind;
    moon_client_share(state, MOON_CLIENT_ASKING, answer,
                      kind == MOON_CLIENT_EXIST  ? exist_key
                      : kind == MOON_CLIENT_SIZE ? size_key
                                                 : remove_key);
    moon_client_operation_end(state);
}

static void ask_once(struct moon_client_operation_state *state, const char *single, const char *batch) {
    if (!moon_client_ask_keys(state, MOON_CLIENT_ASKING, single, batch, answered))
        moon_client_operation_end(state);
}

void moon_client_exist(struct moon_client_operation_state *state) {
    ask_once(state, "ExistKey", "BatchExistKey");
}

void moon_client_size(struct moon_client_operation_state *state) {
    ask_once(state, "GetReplicaList", "BatchGetReplicaList");
}

void moon_client_remove(struct moon_client_operation_state *state) {
    ask_once(state, "Remove", "BatchRemove");
}

static void all_removed(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    int64_t result = answer->code ? answer->code : (int64_t)moon_wire_number(answer->result);
    state->operation->result = result;
    moon_client_record(state->client, result < 0 ? moon_client_end_of(result, answer->arrived) : MOON_RECORD_OK,
                       "remove_all", state->op, &result);
    moon_client_operation_end(state);
}

void moon_client_remove_all(struct moon_client_operation_state *state) {
    struct moon_client_message message;
    moon_client_message_open(state->client, &message, "RemoveAll");
    moon_wire_set_number(moon_wire_at(message.arguments, "force"), state->operation->force);
    moon_client_ask(state->client, &state->question, state->op, "RemoveAll", &message, all_removed);
}
