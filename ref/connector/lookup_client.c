/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups and resets as entries of one queue; a table finds the entry of a slot. */
#include "ref/connector/lookup_client.h"

#include <assert.h>

/* Number of an entry; NONE ends a list. */
enum { NONE = UINT32_MAX };

enum entry_state { ENTRY_FREE, ENTRY_QUEUED, ENTRY_OUT, ENTRY_ANSWERED };

/* One lookup, or a reset.
 *   next       in the queue, or in the list of free entries
 *   discarded  nobody waits for it any more; only while it is out
 *   status     of the call when it is answered, with a reason that stands in for the release's exception text
 *   good       a reset succeeded */
struct entry {
    enum entry_state state;
    uint32_t next, slot;
    bool reset, discarded, good;
    int64_t num_tokens;
    struct moon_hashes hashes;
    enum moon_status status;
    const char *reason;
    struct moon_lookup_result result;
};
static_assert(sizeof(struct entry) <= MOON_LOOKUP_ENTRY_BYTES_MAX, "as the header promises");

struct moon_lookup_client {
    struct moon_lookup_port port; /* first member */
    const struct moon_connector *connector;
    struct moon_lookup_channel *channel;
    struct moon_memory *memory;
    struct moon_rpc_message message;
    struct entry *entries;
    uint32_t capacity, free_list;
    uint32_t queue_first, queue_last, out;
    uint32_t *by_slot; /* entry of a slot that the client knows, or NONE */
    uint32_t slot_capacity;
    size_t futures;
};

static struct moon_lookup_client *client_of(struct moon_lookup_port *port) {
    return (struct moon_lookup_client *)port;
}

/* Room for one more entry. */
static int grow_entries(struct moon_lookup_client *client) {
    size_t room = client->capacity;
    struct entry *entries = moon_memory_grow(client->memory, client->entries, &room, room + 1, sizeof *entries, 4);
    if (!entries)
        return MOON_ERR_MEMORY;
    uint32_t capacity = (uint32_t)room;
    for (uint32_t i = client->capacity; i < capacity; i++)
        entries[i] = (struct entry){.next = i + 1 < capacity ? i + 1 : NONE};
    client->free_list = client->capacity;
    client->entries = entries;
    client->capacity = capacity;
    return 0;
}

/* Room for a slot in the table. */
static int grow_slots(struct moon_lookup_client *client, uint32_t slot) {
    size_t room = client->slot_capacity;
    assert(slot < MOON_REQUEST_SLOTS_MAX);
    uint32_t *by_slot = moon_memory_grow(client->memory, client->by_slot, &room, (size_t)slot + 1, sizeof *by_slot, 16);
    if (!by_slot)
        return MOON_ERR_MEMORY;
    uint32_t capacity = (uint32_t)room;
    for (uint32_t i = client->slot_capacity; i < capacity; i++)
        by_slot[i] = NONE;
    client->by_slot = by_slot;
    client->slot_capacity = capacity;
    return 0;
}

static void release(struct moon_lookup_client *client, uint32_t number) {
    client->entries[number] = (struct entry){.next = client->free_list};
    client->free_list = number;
}

/* Ends the call that is out. A lookup that was discarded meanwhile leaves no trace. */
static void answered(struct moon_lookup_client *client, uint32_t number, enum moon_status status, const char *reason) {
    struct entry *entry = &client->entries[number];
    entry->state = ENTRY_ANSWERED;
    entry->status = status;
    entry->reason = reason;
    if (entry->discarded)
        release(client, number);
}

/* Sends what heads the queue, if nothing is out. What cannot be sent has failed, and the next one follows. */
static void pump(struct moon_lookup_client *client) {
    while (client->out == NONE && client->queue_first != NONE) {
        uint32_t number = client->queue_first;
        struct entry *entry = &client->entries[number];
        int status = 0;
        client->queue_first = entry->next;
        if (client->queue_first == NONE)
            client->queue_last = NONE;
        entry->next = NONE;
        if (entry->reset)
            moon_rpc_encode_reset(&client->message);
        else
            status = moon_rpc_encode_lookup(client->connector->profile, entry->num_tokens, &entry->hashes,
                                            &client->message, NULL);
        if (status) {
            /* The text of hashes remembers that memory was refused; the next request starts with a fresh one. */
            moon_rpc_message_close(&client->message);
            moon_rpc_message_open(&client->message, client->memory);
            answered(client, number, status, "the request cannot be written");
            continue;
        }
        status = client->channel->send(client->channel, client->message.frames, client->message.count, NULL);
        if (status) {
            answered(client, number, MOON_ERR_IO, "the request was not sent");
            continue;
        }
        entry->state = ENTRY_OUT;
        client->out = number;
    }
}

/* Appends an entry to the queue. Returns its number, or NONE when memory refused. */
static uint32_t submit(struct moon_lookup_client *client, const struct entry *entry) {
    if (client->free_list == NONE && grow_entries(client))
        return NONE;
    uint32_t number = client->free_list;
    client->free_list = client->entries[number].next;
    client->entries[number] = *entry;
    client->entries[number].state = ENTRY_QUEUED;
    client->entries[number].next = NONE;
    if (client->queue_last == NONE)
        client->queue_first = number;
    else
        client->entries[client->queue_last].next = number;
    client->queue_last = number;
    return number;
}

/* Waits until an entry is answered. Each turn ends one call, and only those queued before it come first. */
static void await(struct moon_lookup_client *client, uint32_t number) {
    while (client->entries[number].state != ENTRY_ANSWERED) {
        struct moon_channel_wait wait;
        uint32_t out = client->out;
        bool waiting = moon_lookup_client_waiting(client, &wait);
        assert(waiting);
        (void)waiting;
        client->channel->wait(client->channel, &wait);
        if (client->out == out)
            moon_lookup_client_time_up(client);
    }
}

static uint32_t entry_of(const struct moon_lookup_client *client, uint32_t slot) {
    return slot < client->slot_capacity ? client->by_slot[slot] : NONE;
}

static int port_lookup(struct moon_lookup_port *port, const struct moon_request *request, int64_t num_tokens,
                       bool non_block, struct moon_lookup_result *result, bool *pending, struct moon_error *error) {
    struct moon_lookup_client *client = client_of(port);
    uint32_t number = entry_of(client, request->slot);
    *pending = false;
    result->hit_tokens = 0;
    result->boundary_count = 0;
    if (number == NONE) {
        struct entry entry = {.slot = request->slot, .num_tokens = num_tokens, .hashes = request->hashes};
        if (request->slot >= client->slot_capacity && grow_slots(client, request->slot))
            return moon_fail(error, MOON_ERR_MEMORY, "lookup", "no memory for slot %u", request->slot);
        number = submit(client, &entry);
        if (number == NONE)
            return moon_fail(error, MOON_ERR_MEMORY, "lookup", "no memory for a lookup");
        client->by_slot[request->slot] = number;
        client->futures++;
        pump(client);
    }
    if (non_block && client->entries[number].state != ENTRY_ANSWERED) {
        *pending = true;
        return 0;
    }
    await(client, number);
    struct entry *entry = &client->entries[number];
    int status = entry->status;
    *result = entry->result;
    if (status)
        moon_fail(error, (enum moon_status)status, "lookup", "%s", entry->reason);
    client->by_slot[request->slot] = NONE;
    client->futures--;
    release(client, number);
    return status;
}

/* Takes an entry out of the queue. */
static void unqueue(struct moon_lookup_client *client, uint32_t number) {
    uint32_t before = NONE, at = client->queue_first;
    while (at != number) {
        before = at;
        at = client->entries[at].next;
    }
    if (before == NONE)
        client->queue_first = client->entries[number].next;
    else
        client->entries[before].next = client->entries[number].next;
    if (client->queue_last == number)
        client->queue_last = before;
}

static void port_discard(struct moon_lookup_port *port, uint32_t slot) {
    struct moon_lookup_client *client = client_of(port);
    uint32_t number = entry_of(client, slot);
    if (number == NONE)
        return;
    client->by_slot[slot] = NONE;
    client->futures--;
    if (client->entries[number].state == ENTRY_OUT) {
        client->entries[number].discarded = true;
        return;
    }
    if (client->entries[number].state == ENTRY_QUEUED)
        unqueue(client, number);
    release(client, number);
}

static bool port_reset(struct moon_lookup_port *port) {
    struct moon_lookup_client *client = client_of(port);
    if (!client->connector->profile->reset_removes_keys)
        return false;
    uint32_t number = submit(client, &(struct entry){.reset = true});
    if (number == NONE)
        return false;
    pump(client);
    await(client, number);
    bool good = client->entries[number].good;
    release(client, number);
    return good;
}

int moon_lookup_client_open(struct moon_lookup_client **out, const struct moon_connector *connector,
                            struct moon_lookup_channel *channel, struct moon_memory *memory, struct moon_error *error) {
    struct moon_lookup_client *client = memory->resize(memory, NULL, 0, sizeof *client);
    *out = client;
    if (!client)
        return moon_fail(error, MOON_ERR_MEMORY, "lookup client", "no memory");
    *client = (struct moon_lookup_client){
        .port = {port_lookup, port_discard, port_reset},
        .connector = connector,
        .channel = channel,
        .memory = memory,
        .free_list = NONE,
        .queue_first = NONE,
        .queue_last = NONE,
        .out = NONE,
    };
    moon_rpc_message_open(&client->message, memory);
    return 0;
}

void moon_lookup_client_close(struct moon_lookup_client *client) {
    if (!client)
        return;
    struct moon_memory *memory = client->memory;
    moon_rpc_message_close(&client->message);
    memory->resize(memory, client->entries, client->capacity * sizeof *client->entries, 0);
    memory->resize(memory, client->by_slot, client->slot_capacity * sizeof *client->by_slot, 0);
    memory->resize(memory, client, sizeof *client, 0);
}

struct moon_lookup_port *moon_lookup_client_port(struct moon_lookup_client *client) {
    return &client->port;
}

void moon_lookup_client_reply(struct moon_lookup_client *client, const void *bytes, size_t length) {
    uint32_t number = client->out;
    enum moon_status status = MOON_OK;
    if (number == NONE)
        return;
    struct entry *entry = &client->entries[number];
    if (entry->reset)
        entry->good = moon_rpc_decode_status(bytes, length);
    else
        status = (enum moon_status)moon_rpc_decode_reply(client->connector, bytes, length, &entry->result, NULL);
    client->out = NONE;
    answered(client, number, status, "the reply cannot be read");
    pump(client);
}

void moon_lookup_client_time_up(struct moon_lookup_client *client) {
    uint32_t number = client->out;
    if (number == NONE)
        return;
    client->out = NONE;
    answered(client, number, MOON_ERR_IO, "no reply within the bound");
    pump(client);
}

bool moon_lookup_client_waiting(const struct moon_lookup_client *client, struct moon_channel_wait *wait) {
    if (client->out == NONE)
        return false;
    if (wait && client->entries[client->out].reset)
        *wait = (struct moon_channel_wait){"reply to a reset", MOON_RESET_WAIT_MS};
    else if (wait)
        *wait = (struct moon_channel_wait){"reply to a lookup", MOON_LOOKUP_WAIT_MS};
    return true;
}

size_t moon_lookup_client_futures(const struct moon_lookup_client *client) {
    return client->futures;
}
