/* SPDX-License-Identifier: Apache-2.0 */
/* Questions of the client to the master, built by member name for every release, and what their answers say. */
#include "ref/store/client_internal.h"

#include "ref/store/master.h"

#include <assert.h>

enum {
    REPLICA_TYPE_MEMORY = 0,
    REPLICA_TYPE_ALL = 4,
};

/* ---- asking */

void moon_client_message_open(const struct moon_client *client, struct moon_client_message *message, const char *call) {
    const struct moon_wire_call *its = moon_wire_call_by_name(client->settings.protocol, call);
    moon_arena_open(&message->arena, client->environment->memory);
    assert(its); /* every release has the calls of a client */
    message->arguments = moon_wire_zero(&message->arena, its->function->arguments);
    moon_wire_set_uuid(moon_wire_at(message->arguments, "client_id"), client->id);
    moon_wire_set_bytes(moon_wire_at(message->arguments, "tenant_id"), moon_bytes_of(client->settings.tenant));
}

static void done(struct moon_rpc_call *call, int status, unsigned rpc_error, const struct moon_wire_value *result) {
    struct moon_client_question *question = (struct moon_client_question *)call;
    struct moon_client_answer answer = {.code = status, .result = result};
    /* A server that answers with an error has not done it; a request that never left has not been heard. */
    answer.arrived = status != 0 && rpc_error == 0 && call->sent_ns != MOON_NS_NEVER;
    question->asked = false;
    question->answered(question, &answer);
}

void moon_client_ask(struct moon_client *client, struct moon_client_question *question, uint64_t op, const char *call,
                     struct moon_client_message *message,
                     void (*answered)(struct moon_client_question *question, const struct moon_client_answer *answer)) {
    assert(!question->asked);
    const struct moon_wire_value *arguments = message->arguments;
    int status = MOON_ERR_MEMORY;
    question->answered = answered;
    question->call = (struct moon_rpc_call){.op = op, .done = done, .sent_ns = MOON_NS_NEVER};
    if (arguments)
        status = moon_rpc_client_ask(client->rpc, &question->call, call, arguments->count ? arguments : NULL);
    moon_arena_close(&message->arena);
    question->asked = status == 0;
    if (status == MOON_ERR_MEMORY)
        answered(question, &(struct moon_client_answer){.code = MOON_STORE_INTERNAL_ERROR});
    else if (status)
        answered(question, &(struct moon_client_answer){.code = MOON_STORE_RPC_FAIL});
}

/* Adds one key. The calls differ in the names of their members, and in whether there is one or a list. */
static bool add_key(struct moon_client_message *message, const struct moon_client_key *key, bool batched) {
    struct moon_wire_value *arguments = message->arguments, *text, *length = NULL;
    if (batched) {
        struct moon_wire_value *keys = moon_wire_at(arguments, "keys"), *lengths;
        text = moon_wire_append(&message->arena, keys ? keys : moon_wire_at(arguments, "object_metas"));
        lengths = moon_wire_at(arguments, "slice_lengths");
        if (!text || (lengths && !(length = moon_wire_append(&message->arena, lengths))))
            return false;
        if (!keys)
            text = moon_wire_at(text, "key");
    } else {
        text = moon_wire_at(arguments, "key");
        text = text ? text : moon_wire_at(moon_wire_at(arguments, "object_meta"), "key");
        length = moon_wire_at(arguments, "slice_length");
    }
    moon_wire_set_bytes(text, key->item->key);
    moon_wire_set_number(length, key->bytes);
    return true;
}

static void add_config(const struct moon_client *client, struct moon_wire_value *config) {
    moon_wire_set_number(moon_wire_at(config, "replica_num"), client->settings.replica_num);
    moon_wire_set_bytes(moon_wire_at(config, "preferred_segment"), moon_bytes_of(client->settings.preferred_segment));
    moon_wire_set_bytes(moon_wire_at(config, "host_id"), moon_bytes_of(client->settings.host_id));
}

static size_t count_keys(const struct moon_client_operation_state *state, enum moon_client_step step) {
    size_t count = 0;
    for (size_t i = 0; i < state->key_count; i++)
        count += state->keys[i].step == step;
    return count;
}

bool moon_client_ask_keys(struct moon_client_operation_state *state, enum moon_client_step step, const char *single,
                          const char *batch,
                          void (*answered)(struct moon_client_question *question,
                                           const struct moon_client_answer *answer)) {
    const struct moon_client_operation *operation = state->operation;
    const char *call = operation->batched ? batch : single;
    struct moon_client_message message;
    if (count_keys(state, step) == 0)
        return false;
    moon_client_message_open(state->client, &message, call);
    bool all = operation->batched || moon_wire_at(message.arguments, "tenant_id"); /* CLIENT-013 */
    moon_wire_set_number(moon_wire_at(message.arguments, "replica_type"), all ? REPLICA_TYPE_ALL : REPLICA_TYPE_MEMORY);
    moon_wire_set_number(moon_wire_at(message.arguments, "force"), operation->force);
    add_config(state->client, moon_wire_at(message.arguments, "config"));
    for (size_t i = 0; message.arguments && i < state->key_count; i++)
        if (state->keys[i].step == step && !add_key(&message, &state->keys[i], operation->batched))
            message.arguments = NULL;
    state->asked_ns = state->client->environment->now_ns;
    moon_client_ask(state->client, &state->question, state->op, call, &message, answered);
    return true;
}

/* ---- answers */

/* An answer that cannot be: the master may have done anything (CLIENT-041). */
static const struct moon_client_answer nonsense = {.code = MOON_STORE_RPC_FAIL, .arrived = true};

/* What an expected holds. */
static struct moon_client_answer open_expected(const struct moon_wire_value *expected) {
    int64_t code = (int64_t)expected->second;
    assert(expected->type->kind == MOON_WIRE_EXPECTED);
    struct moon_client_answer answer = {.code = 0};
    if (moon_wire_number(expected))
        answer.result = expected->first;
    else if (code < 0)
        answer.code = code;
    else
        answer = nonsense;
    return answer;
}

struct moon_client_answer moon_client_expect(const struct moon_client_answer *answer) {
    return answer->code ? *answer : open_expected(answer->result);
}

void moon_client_share(struct moon_client_operation_state *state, enum moon_client_step step,
                       const struct moon_client_answer *answer,
                       void (*part)(struct moon_client_key *key, const struct moon_client_answer *answer)) {
    bool batched = state->operation->batched;
    if (!answer->code && batched && answer->result->count != count_keys(state, step))
        answer = &nonsense;
    const struct moon_wire_value *element = answer->code ? NULL : batched ? answer->result->first : answer->result;
    for (size_t i = 0; i < state->key_count; i++) {
        if (state->keys[i].step != step)
            continue;
        struct moon_client_answer its = element ? open_expected(element) : *answer;
        element = element ? element->next : NULL;
        part(&state->keys[i], &its);
        assert(state->keys[i].step != step);
    }
}

enum moon_client_replica_kind moon_client_read_replica(const struct moon_wire_value *descriptor,
                                                       struct moon_client_replica *replica) {
    const struct moon_wire_value *where = moon_wire_at(descriptor, "where");
    uint64_t end;
    *replica = (struct moon_client_replica){.complete = moon_wire_number(moon_wire_at(descriptor, "status")) ==
                                                        MOON_REPLICA_COMPLETE};
    if (strcmp(moon_wire_choice(where), "MEMORY") != 0)
        return MOON_CLIENT_REPLICA_ELSEWHERE;
    const struct moon_wire_value *buffer = moon_wire_at(where->first, "buffer");
    replica->address = moon_wire_number(moon_wire_at(buffer, "address"));
    replica->size = moon_wire_number(moon_wire_at(buffer, "size"));
    replica->endpoint = moon_wire_bytes(moon_wire_at(buffer, "transport_endpoint"));
    if (replica->size == 0 || replica->size > INT64_MAX ||
        __builtin_add_overflow(replica->address, replica->size, &end))
        return MOON_CLIENT_REPLICA_NONSENSE;
    return MOON_CLIENT_REPLICA_MEMORY;
}
