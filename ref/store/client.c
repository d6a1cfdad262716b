/* SPDX-License-Identifier: Apache-2.0 */
/* The store client: its life, and where operations enter and leave. */
#include "ref/store/client.h"

#include "ref/store/client_internal.h"

#include <assert.h>

/* ---- life */

struct moon_client_settings moon_client_defaults(void) {
    return (struct moon_client_settings){
        .hostname = "",
        .master_endpoint = "127.0.0.1:50051",
        .tenant = "default",
        .host_id = "",
        .with_text = true, /* as the published wheels */
        .replica_num = 1,
        .ping_ns = MOON_NS_PER_S,
        .rpc_timeout_ns = 30 * MOON_NS_PER_S,
    };
}

/* Makes *text a copy of its own, NULL becomes "". */
static bool keep_text(struct moon_client *client, const char **text) {
    *text = moon_arena_copy(&client->texts, *text, moon_bytes_of(*text).length);
    return *text != NULL;
}

static bool keep_settings(struct moon_client *client) {
    struct moon_client_settings *settings = &client->settings;
    if (!settings->tenant || !*settings->tenant)
        settings->tenant = "default"; /* what the wheels send */
    return keep_text(client, &settings->hostname) && keep_text(client, &settings->master_endpoint) &&
           keep_text(client, &settings->tenant) && keep_text(client, &settings->host_id) &&
           keep_text(client, &settings->preferred_segment);
}

struct moon_uuid moon_client_draw_uuid(struct moon_random *random) {
    struct moon_uuid uuid;
    uuid.first = moon_random_u64(random);
    uuid.second = moon_random_u64(random) | 1; /* all zero would mean none */
    return uuid;
}

struct moon_client *moon_client_open(struct moon_environment *environment, const struct moon_client_settings *settings,
                                     struct moon_transfer *transfer) {
    struct moon_memory *memory = environment->memory;
    struct moon_client *client = memory->resize(memory, NULL, 0, sizeof *client);
    if (!client)
        return NULL;
    *client = (struct moon_client){.environment = environment, .settings = *settings, .transfer = transfer};
    client->id = moon_client_draw_uuid(&environment->random);
    moon_list_open(&client->operations);
    moon_list_open(&client->ended);
    moon_arena_open(&client->texts, memory);
    moon_table_open(&client->keys, memory, &environment->random);
    moon_client_owner_open(client);
    if (keep_settings(client))
        client->rpc =
            moon_rpc_client_open(environment, settings->protocol,
                                 &(struct moon_rpc_client_settings){.endpoint = client->settings.master_endpoint,
                                                                    .with_text = settings->with_text,
                                                                    .connect_timeout_ns = settings->rpc_timeout_ns,
                                                                    .timeout_ns = settings->rpc_timeout_ns});
    if (!client->rpc) {
        moon_client_close(client);
        return NULL;
    }
    return client;
}

/* The operation that ended first, or that was submitted first. */
static struct moon_client_operation_state *first_of(const struct moon_list *list) {
    return moon_list_empty(list) ? NULL : MOON_HOLDER(list->next, struct moon_client_operation_state, link);
}

/* Parts the operation from the client. */
static struct moon_client_operation *release(struct moon_client_operation_state *state) {
    struct moon_client_operation *operation = state->operation;
    moon_list_remove(&state->link);
    operation->state = NULL;
    moon_client_operation_close(state);
    return operation;
}

static void forget_operations(const struct moon_list *list) {
    for (struct moon_client_operation_state *state; (state = first_of(list));)
        release(state);
}

void moon_client_close(struct moon_client *client) {
    if (!client)
        return;
    struct moon_memory *memory = client->environment->memory;
    if (client->rpc)
        moon_rpc_client_close(client->rpc);
    forget_operations(&client->operations);
    forget_operations(&client->ended);
    moon_client_owner_withdraw(client);
    moon_table_close(&client->keys);
    moon_arena_close(&client->texts);
    if (client->closed)
        *client->closed = true;
    memory->resize(memory, client, sizeof *client, 0);
}

/* ---- time */

moon_ns moon_client_deadline(const struct moon_client *client) {
    if (!moon_list_empty(&client->ended))
        return client->environment->now_ns;
    moon_ns rpc_ns = moon_rpc_client_deadline(client->rpc), owner_ns = moon_client_owner_deadline(client);
    return rpc_ns < owner_ns ? rpc_ns : owner_ns;
}

void moon_client_tick(struct moon_client *client) {
    moon_rpc_client_tick(client->rpc);
    moon_client_owner_tick(client);
    /* Those that end from within done() wait for the next tick, else a user who always asks anew would hold us here. */
    const struct moon_list *last = client->ended.previous;
    for (bool more = last != &client->ended; more;) {
        struct moon_client_operation_state *state = first_of(&client->ended);
        more = &state->link != last;
        struct moon_client_operation *operation = release(state);
        bool closed = false;
        client->closed = &closed; /* cppcheck-suppress autoVariables ; taken back below, or the client is gone */
        operation->done(operation);
        if (closed)
            return;
        client->closed = NULL;
    }
}

/* ---- operations */

static bool may_begin(const struct moon_client *client, const struct moon_client_operation *operation) {
    switch (operation->kind) {
    case MOON_CLIENT_SETUP:
        return client->phase == MOON_CLIENT_NEW;
    case MOON_CLIENT_UNMOUNT:
        return client->phase == MOON_CLIENT_READY && !client->leaving;
    case MOON_CLIENT_REMOVE_ALL:
        return client->phase == MOON_CLIENT_READY;
    default:
        return client->phase == MOON_CLIENT_READY && (operation->batched || operation->item_count == 1);
    }
}

int moon_client_submit(struct moon_client *client, struct moon_client_operation *operation) {
    static void (*const begin[])(struct moon_client_operation_state *) = {
        [MOON_CLIENT_SETUP] = moon_client_setup,
        [MOON_CLIENT_PUT] = moon_client_put,
        [MOON_CLIENT_GET] = moon_client_get,
        [MOON_CLIENT_EXIST] = moon_client_exist,
        [MOON_CLIENT_SIZE] = moon_client_size,
        [MOON_CLIENT_REMOVE] = moon_client_remove,
        [MOON_CLIENT_REMOVE_ALL] = moon_client_remove_all,
        [MOON_CLIENT_UNMOUNT] = moon_client_unmount,
    };
    assert((size_t)operation->kind < sizeof begin / sizeof *begin);
    struct moon_client_operation_state *state = NULL;
    if (!may_begin(client, operation))
        return MOON_ERR_RANGE;
    int status = moon_client_operation_open(client, operation, &state);
    if (status)
        return status;
    operation->state = state;
    operation->result = 0;
    moon_list_add(&client->operations, &state->link);
    moon_client_operation_invoke(state);
    begin[operation->kind](state);
    return MOON_OK;
}
