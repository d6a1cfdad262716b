/* SPDX-License-Identifier: Apache-2.0 */
/* Put: start, write every replica, end; revoke what could not be written (CLIENT-010 to CLIENT-015). */
#include "ref/store/client_internal.h"

#include "ref/store/master.h"

/* ---- the last two questions */

static void revoked(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    (void)answer; /* the put has failed either way; the master discards what is left of it after a while */
    for (size_t i = 0; i < state->key_count; i++)
        if (state->keys[i].step == MOON_CLIENT_REVOKING)
            moon_client_key_end(&state->keys[i], MOON_RECORD_FAIL, state->keys[i].code);
    moon_client_operation_end(state);
}

static void revoke(struct moon_client_operation_state *state) {
    if (!moon_client_ask_keys(state, MOON_CLIENT_REVOKING, "PutRevoke", "BatchPutRevoke", revoked))
        moon_client_operation_end(state);
}

static void end_key(struct moon_client_key *key, const struct moon_client_answer *answer) {
    moon_client_key_end(key, moon_client_end_of(answer->code, answer->arrived), answer->code);
}

static void ended(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    moon_client_share(state, MOON_CLIENT_MOVING, answer, end_key);
    revoke(state);
}

/* All transfers are over. */
static void conclude(struct moon_client_operation_state *state) {
    for (size_t i = 0; i < state->key_count; i++)
        if (state->keys[i].step == MOON_CLIENT_MOVING && state->keys[i].code)
            state->keys[i].step = MOON_CLIENT_REVOKING;
    if (!moon_client_ask_keys(state, MOON_CLIENT_MOVING, "PutEnd", "BatchPutEnd", ended))
        revoke(state);
}

/* ---- the first one, and the bytes */

void moon_client_put_moved(struct moon_client_key *key) {
    if (key->state->jobs_left == 0)
        conclude(key->state);
}

/* Makes a job of each replica that was granted. Returns 0 or the key's code; then none is started. */
static int64_t plan(struct moon_client_key *key, const struct moon_wire_value *descriptors) {
    if (descriptors->count == 0 || descriptors->count > MOON_MASTER_REPLICAS_MAX)
        return MOON_STORE_RPC_FAIL;
    if (!moon_client_jobs_open(key, descriptors->count))
        return MOON_STORE_INTERNAL_ERROR;
    for (const struct moon_wire_value *its = descriptors->first; its; its = its->next) {
        struct moon_client_replica replica;
        enum moon_client_replica_kind kind = moon_client_read_replica(its, &replica);
        if (kind != MOON_CLIENT_REPLICA_MEMORY || replica.size != key->bytes)
            return MOON_STORE_RPC_FAIL;
        int64_t code = moon_client_job_add(key, &replica);
        if (code)
            return code;
    }
    return 0;
}

static void start_key(struct moon_client_key *key, const struct moon_client_answer *answer) {
    if (answer->code == MOON_STORE_OBJECT_ALREADY_EXISTS) {
        moon_client_key_end(key, MOON_RECORD_OK, 0);
    } else if (answer->code) {
        moon_client_key_end(key, MOON_RECORD_FAIL, answer->code); /* without an end nobody will ever read it */
    } else {
        key->step = MOON_CLIENT_MOVING;
        key->code = plan(key, answer->result);
        moon_client_jobs_start(key);
    }
}

static void started(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    moon_client_share(state, MOON_CLIENT_ASKING, answer, start_key);
    if (state->jobs_left == 0)
        conclude(state);
}

void moon_client_put(struct moon_client_operation_state *state) {
    if (!moon_client_ask_keys(state, MOON_CLIENT_ASKING, "PutStart", "BatchPutStart", started))
        moon_client_operation_end(state);
}
