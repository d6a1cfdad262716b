/* SPDX-License-Identifier: Apache-2.0 */
/* Names of records and of messages, and the table of a record's members (HIST-001, HIST-002). */
#include "ref/base/record_internal.h"
#include "ref/base/stream.h"
#include "ref/base/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <xxhash.h>

#define MEMBER(name, flag, form, field)                                                                                \
    { name, flag, MOON_RECORD_FORM_##form, offsetof(struct moon_record, field) }

const struct moon_record_member moon_record_members[MOON_RECORD_MEMBERS] = {
    MEMBER("n", MOON_RECORD_ALWAYS, U64, n),
    MEMBER("node", MOON_RECORD_ALWAYS, BYTES, node),
    MEMBER("boot", MOON_RECORD_ALWAYS, U32, boot),
    MEMBER("t", MOON_RECORD_ALWAYS, I64, time_ns),
    MEMBER("clock", MOON_RECORD_ALWAYS, BYTES, clock),
    MEMBER("kind", MOON_RECORD_ALWAYS, KIND, kind),
    MEMBER("op", MOON_RECORD_NOT_ZERO, U64, op),
    MEMBER("parent", MOON_RECORD_NOT_ZERO, U64, parent),
    MEMBER("msg", MOON_RECORD_NOT_ZERO, HEX, msg),
    MEMBER("what", MOON_RECORD_ALWAYS, NAME, what),
    MEMBER("key", MOON_RECORD_HAS_KEY, BYTES, key),
    MEMBER("tenant", MOON_RECORD_HAS_TENANT, BYTES, tenant),
    MEMBER("bytes", MOON_RECORD_HAS_BYTES, U64, bytes),
    MEMBER("digest", MOON_RECORD_HAS_DIGEST, HEX, digest),
    MEMBER("replica", MOON_RECORD_HAS_REPLICA, U64, replica),
    MEMBER("extent", MOON_RECORD_HAS_EXTENT, EXTENT, extent),
    MEMBER("lease_until", MOON_RECORD_HAS_LEASE, I64, lease_ns),
    MEMBER("code", MOON_RECORD_HAS_CODE, I64, code),
    MEMBER("blocks", MOON_RECORD_HAS_BLOCKS, I64, blocks),
    MEMBER("tokens", MOON_RECORD_HAS_TOKENS, I64, tokens),
    MEMBER("shards", MOON_RECORD_HAS_SHARDS, I64, shards),
    MEMBER("source", MOON_RECORD_ALWAYS, SOURCE, internal),
    MEMBER("cause", MOON_RECORD_HAS_CAUSE, BYTES, cause),
};

static const char *const kind_names[] = {
    [MOON_RECORD_INVOKE] = "invoke",     [MOON_RECORD_OK] = "ok",       [MOON_RECORD_FAIL] = "fail",
    [MOON_RECORD_INFO] = "info",         [MOON_RECORD_SEND] = "send",   [MOON_RECORD_RECV] = "recv",
    [MOON_RECORD_TRANSFER] = "transfer", [MOON_RECORD_STATE] = "state", [MOON_RECORD_FAULT] = "fault",
    [MOON_RECORD_NOTE] = "note",
};

const char *moon_record_kind_name(enum moon_record_kind kind) {
    assert((unsigned)kind < sizeof kind_names / sizeof kind_names[0]);
    return kind_names[kind];
}

int moon_record_kind_find(const char *name, size_t length) {
    struct moon_bytes wanted = {name, length};
    for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++)
        if (moon_bytes_equal(wanted, moon_bytes_of(kind_names[i])))
            return (int)i;
    return -1;
}

bool moon_record_is_utf8(struct moon_bytes bytes) {
    for (size_t at = 0; at < bytes.length;) {
        uint32_t code_point;
        size_t used = moon_utf8_decode(bytes.data + at, bytes.length - at, &code_point);
        if (used == 0 || (code_point >= 0xD800 && code_point <= 0xDFFF))
            return false;
        at += used;
    }
    return true;
}

uint64_t moon_message_id(const char *from, const char *to, uint64_t ordinal) {
    char text[2 * MOON_ADDRESS_BYTES + 24];
    int length = snprintf(text, sizeof text, "%s %s %llu", from, to, (unsigned long long)ordinal);
    assert(length > 0 && (size_t)length < sizeof text);
    uint64_t id = XXH3_64bits(text, (size_t)length);
    return id ? id : 1;
}
