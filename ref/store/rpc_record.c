/* SPDX-License-Identifier: Apache-2.0 */
/* Records of remote calls: messages, and the memory that answers tell of. */
#include "ref/store/rpc_internal.h"

#include <inttypes.h>
#include <stdio.h>

struct moon_rpc_keys moon_rpc_keys_of(const struct moon_wire_value *arguments) {
    static const char *const lists[] = {"keys", "object_metas"}, *const singles[] = {"key", "object_meta"};
    for (size_t i = 0; i < 2; i++) {
        const struct moon_wire_value *list = moon_wire_at(arguments, lists[i]);
        const struct moon_wire_value *single = moon_wire_at(arguments, singles[i]);
        if (list)
            return (struct moon_rpc_keys){list->first, list->count};
        if (single)
            return (struct moon_rpc_keys){single, 1};
    }
    return (struct moon_rpc_keys){NULL, 0};
}

bool moon_rpc_keys_next(struct moon_rpc_keys *keys, struct moon_bytes *key) {
    if (keys->left == 0)
        return false;
    const struct moon_wire_value *meta_key = moon_wire_at(keys->at, "key");
    *key = moon_wire_bytes(meta_key ? meta_key : keys->at);
    keys->at = keys->at->next;
    keys->left--;
    return true;
}

static void set_key(struct moon_record *record, const struct moon_wire_value *arguments, struct moon_bytes key) {
    const struct moon_wire_value *tenant = moon_wire_at(arguments, "tenant_id");
    record->has |= MOON_RECORD_HAS_KEY | (tenant ? MOON_RECORD_HAS_TENANT : 0);
    record->key = key;
    record->tenant = moon_wire_bytes(tenant);
}

uint64_t moon_rpc_record(struct moon_recorder *recorder, const struct moon_rpc_message *message) {
    const struct moon_stream *stream = message->stream;
    bool sent = message->kind == MOON_RECORD_SEND;
    struct moon_record record = {.kind = message->kind, .op = message->op, .what = message->what};
    struct moon_rpc_keys keys = moon_rpc_keys_of(message->arguments);
    struct moon_bytes key;
    record.msg =
        moon_message_id(sent ? stream->local : stream->peer, sent ? stream->peer : stream->local, message->ordinal);
    if (moon_rpc_keys_next(&keys, &key))
        set_key(&record, message->arguments, key);
    const struct moon_wire_value *result = message->result;
    if (result && result->type->kind == MOON_WIRE_EXPECTED && !result->number) {
        record.has |= MOON_RECORD_HAS_CODE;
        record.code = (int64_t)result->second;
    }
    recorder->record(recorder, &record);
    return record.msg;
}

/* One key's part of an answer: an expected list of descriptors, or of a struct that has one and a lease. */
static void record_replicas(struct moon_recorder *recorder, struct moon_record *record,
                            const struct moon_wire_value *expected, moon_ns sent_ns) {
    const struct moon_wire_value *list = expected->first, *replicas = moon_wire_at(list, "replicas");
    record->what = replicas ? "lease" : "granted";
    if (replicas) {
        moon_ns ttl_ns;
        list = replicas;
        if (__builtin_mul_overflow(moon_wire_number(moon_wire_at(expected->first, "lease_ttl_ms")), MOON_NS_PER_MS,
                                   &ttl_ns) ||
            __builtin_add_overflow(sent_ns, ttl_ns, &record->lease_ns))
            record->lease_ns = MOON_NS_NEVER;
        record->has |= MOON_RECORD_HAS_LEASE;
    }
    for (const struct moon_wire_value *one = list ? list->first : NULL; one; one = one->next) {
        const struct moon_wire_value *where = moon_wire_at(one, "where");
        const struct moon_wire_value *buffer = moon_wire_at(where ? where->first : NULL, "buffer");
        if (!buffer || strcmp(moon_wire_choice(where), "MEMORY") != 0)
            continue;
        record->has |= MOON_RECORD_HAS_REPLICA | MOON_RECORD_HAS_EXTENT;
        record->replica = moon_wire_number(moon_wire_at(one, "id"));
        record->extent = (struct moon_extent){moon_wire_bytes(moon_wire_at(buffer, "transport_endpoint")),
                                              moon_wire_number(moon_wire_at(buffer, "address")),
                                              moon_wire_number(moon_wire_at(buffer, "size"))};
        recorder->record(recorder, record);
    }
}

void moon_rpc_record_extents(struct moon_recorder *recorder, const struct moon_rpc_message *message, uint64_t msg,
                             moon_ns sent_ns) {
    static const char *const names[] = {"PutStart", "BatchPutStart", "GetReplicaList", "BatchGetReplicaList"};
    const struct moon_wire_value *expected = message->result;
    struct moon_rpc_keys keys = moon_rpc_keys_of(message->arguments);
    struct moon_bytes key;
    char cause[24];
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(names[i], message->what) != 0)
        i++;
    if (i == sizeof names / sizeof *names)
        return;
    snprintf(cause, sizeof cause, "msg %016" PRIx64, msg);
    if (expected->type->kind == MOON_WIRE_VECTOR)
        expected = expected->first;
    for (; expected && moon_rpc_keys_next(&keys, &key); expected = expected->next) {
        struct moon_record record = {.kind = MOON_RECORD_STATE, .op = message->op, .has = MOON_RECORD_HAS_CAUSE};
        record.cause = moon_bytes_of(cause);
        set_key(&record, message->arguments, key);
        record_replicas(recorder, &record, expected, sent_ns);
    }
}
