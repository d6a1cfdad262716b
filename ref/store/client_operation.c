/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of the client: their state, their records, their end. */
#include "ref/store/client_internal.h"

#include <assert.h>

#define XXH_STATIC_LINKING_ONLY /* the state's size, so that it needs no heap */
#include <xxhash.h>

/* ---- records (CLIENT-042) */

static const char *const whats[] = {
    [MOON_CLIENT_SETUP] = "mount",           [MOON_CLIENT_PUT] = "put",         [MOON_CLIENT_GET] = "get",
    [MOON_CLIENT_EXIST] = "exist",           [MOON_CLIENT_SIZE] = "size",       [MOON_CLIENT_REMOVE] = "remove",
    [MOON_CLIENT_REMOVE_ALL] = "remove_all", [MOON_CLIENT_UNMOUNT] = "unmount",
};

/* XXH3-64 of the first key->bytes bytes of the item's pieces. */
static uint64_t digest(const struct moon_client_key *key) {
    XXH3_state_t state;
    uint64_t left = key->bytes;
    XXH3_64bits_reset(&state);
    for (size_t i = 0; i < key->item->piece_count && left > 0; i++) {
        size_t length = key->item->pieces[i].length < left ? key->item->pieces[i].length : (size_t)left;
        if (length > 0)
            XXH3_64bits_update(&state, key->item->pieces[i].data, length);
        left -= length;
    }
    return XXH3_64bits_digest(&state);
}

static void add_tenant(const struct moon_client *client, struct moon_record *record) {
    if (strcmp(client->settings.tenant, "default") == 0)
        return;
    record->has |= MOON_RECORD_HAS_TENANT;
    record->tenant = moon_bytes_of(client->settings.tenant);
}

static void record_key(const struct moon_client_key *key, enum moon_record_kind kind) {
    const struct moon_client_operation *operation = key->state->operation;
    const struct moon_client *client = key->state->client;
    if (!client->environment->recorder)
        return;
    struct moon_record record = {.kind = kind, .what = whats[operation->kind], .op = key->op, .key = key->item->key};
    record.has = MOON_RECORD_HAS_KEY;
    record.parent = operation->batched ? key->state->op : 0;
    add_tenant(client, &record);
    if ((kind == MOON_RECORD_INVOKE && operation->kind == MOON_CLIENT_PUT) ||
        (kind == MOON_RECORD_OK && operation->kind == MOON_CLIENT_GET)) {
        record.has |= MOON_RECORD_HAS_BYTES | MOON_RECORD_HAS_DIGEST;
        record.bytes = key->bytes;
        record.digest = digest(key);
    }
    if (kind != MOON_RECORD_INVOKE) {
        record.has |= MOON_RECORD_HAS_CODE;
        record.code = key->item->result;
    }
    client->environment->recorder->record(client->environment->recorder, &record);
}

void moon_client_record(const struct moon_client *client, enum moon_record_kind kind, const char *what, uint64_t op,
                        const int64_t *code) {
    if (!client->environment->recorder)
        return;
    struct moon_record record = {.kind = kind, .what = what, .op = op};
    bool is_segment = strcmp(what, "remove_all") != 0;
    if (is_segment) {
        record.has |= MOON_RECORD_HAS_BYTES | MOON_RECORD_HAS_EXTENT;
        record.bytes = client->settings.segment_bytes;
        record.extent.segment = moon_bytes_of(moon_transfer_endpoint(client->transfer));
        record.extent.offset = client->settings.segment_address;
        record.extent.length = client->settings.segment_bytes;
    } else {
        add_tenant(client, &record);
    }
    if (code) {
        record.has |= MOON_RECORD_HAS_CODE;
        record.code = *code;
    }
    client->environment->recorder->record(client->environment->recorder, &record);
}

enum moon_record_kind moon_client_end_of(int64_t code, bool arrived) {
    return code == 0 ? MOON_RECORD_OK : arrived ? MOON_RECORD_INFO : MOON_RECORD_FAIL;
}

/* ---- keys */

/* Sum of the lengths of the pieces. False: it overflows. */
static bool count_bytes(const struct moon_client_item *item, uint64_t *bytes) {
    *bytes = 0;
    for (size_t i = 0; i < item->piece_count; i++)
        if (__builtin_add_overflow(*bytes, item->pieces[i].length, bytes))
            return false;
    return true;
}

static struct moon_client_key *find_same(const struct moon_table *table, struct moon_bytes key, uint64_t hash) {
    for (struct moon_table_node *node = moon_table_find(table, hash); node; node = moon_table_find_next(node)) {
        struct moon_client_key *its = MOON_HOLDER(node, struct moon_client_key, node);
        if (moon_bytes_equal(its->item->key, key))
            return its;
    }
    return NULL;
}

/* Of keys that stand in the batch several times the last one leads (CLIENT-015). Returns 0 or MOON_ERR_MEMORY. */
static int find_leaders(struct moon_client_operation_state *state) {
    struct moon_table *table = &state->client->keys;
    int status = MOON_OK;
    size_t from = state->key_count; /* keys from here on are in the table, or follow one that is */
    while (from > 0 && status == MOON_OK) {
        struct moon_client_key *key = &state->keys[from - 1];
        uint64_t hash = moon_table_hash(table, &key->item->key, 1);
        key->leader = find_same(table, key->item->key, hash);
        if (key->leader)
            key->step = MOON_CLIENT_FOLLOWING;
        else
            status = moon_table_add(table, &key->node, hash);
        from -= status == MOON_OK;
    }
    for (size_t i = from; i < state->key_count; i++)
        if (!state->keys[i].leader)
            moon_table_remove(table, &state->keys[i].node);
    return status;
}

static int open_keys(struct moon_client_operation_state *state) {
    const struct moon_client_operation *operation = state->operation;
    bool moves = operation->kind == MOON_CLIENT_PUT || operation->kind == MOON_CLIENT_GET;
    state->key_count = operation->item_count;
    state->keys = moon_arena_array(&state->arena, state->key_count, sizeof *state->keys);
    if (!state->keys)
        return MOON_ERR_MEMORY;
    for (size_t i = 0; i < state->key_count; i++) {
        struct moon_client_key *key = &state->keys[i];
        *key = (struct moon_client_key){.state = state, .item = &operation->items[i]};
        if (moves && !count_bytes(key->item, &key->bytes))
            return MOON_ERR_RANGE;
    }
    if (operation->kind == MOON_CLIENT_PUT && operation->batched)
        return find_leaders(state);
    return MOON_OK;
}

void moon_client_key_end(struct moon_client_key *key, enum moon_record_kind end, int64_t code) {
    assert(key->step != MOON_CLIENT_ENDED);
    key->step = MOON_CLIENT_ENDED;
    key->end = end;
    key->item->result = code;
    record_key(key, end);
}

/* ---- operations */

static bool has_keys(enum moon_client_do kind) {
    return kind != MOON_CLIENT_SETUP && kind != MOON_CLIENT_UNMOUNT && kind != MOON_CLIENT_REMOVE_ALL;
}

int moon_client_operation_open(struct moon_client *client, struct moon_client_operation *operation,
                               struct moon_client_operation_state **state) {
    struct moon_arena arena;
    moon_arena_open(&arena, client->environment->memory);
    struct moon_client_operation_state *its = moon_arena_alloc(&arena, sizeof *its);
    if (!its)
        return MOON_ERR_MEMORY;
    *its = (struct moon_client_operation_state){.client = client, .operation = operation, .arena = arena};
    int status = has_keys(operation->kind) ? open_keys(its) : MOON_OK;
    if (status) {
        moon_client_operation_close(its);
        return status;
    }
    its->op = ++client->ops;
    for (size_t i = 0; i < its->key_count; i++)
        its->keys[i].op = operation->batched ? ++client->ops : its->op;
    *state = its;
    return MOON_OK;
}

void moon_client_operation_close(struct moon_client_operation_state *state) {
    for (size_t i = 0; i < state->key_count; i++)
        for (size_t j = 0; j < state->keys[i].job_count; j++)
            if (state->keys[i].jobs[j].running)
                moon_transfer_cancel(state->client->transfer, &state->keys[i].jobs[j].job);
    struct moon_arena arena = state->arena;
    moon_arena_close(&arena);
}

void moon_client_operation_invoke(const struct moon_client_operation_state *state) {
    for (size_t i = 0; i < state->key_count; i++)
        record_key(&state->keys[i], MOON_RECORD_INVOKE);
    if (state->operation->kind == MOON_CLIENT_REMOVE_ALL)
        moon_client_record(state->client, MOON_RECORD_INVOKE, whats[MOON_CLIENT_REMOVE_ALL], state->op, NULL);
}

void moon_client_operation_end(struct moon_client_operation_state *state) {
    for (size_t i = 0; i < state->key_count; i++) {
        struct moon_client_key *key = &state->keys[i];
        if (key->step == MOON_CLIENT_FOLLOWING)
            moon_client_key_end(key, key->leader->end, key->leader->item->result);
        assert(key->step == MOON_CLIENT_ENDED);
    }
    moon_list_move(&state->client->ended, &state->link);
}
