/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the frames of the lookup channel. */
#include "ref/connector/lookup_rpc.h"

#include "ref/base/cursor.h"
#include "ref/base/utf8.h"

#include <stdio.h>
#include <string.h>

static const char tag_lookup[] = "lookup", tag_reset[] = "reset";

enum { MOON_RPC_HASH_BYTES_MAX = UINT16_MAX, MOON_RPC_ENTRY_BYTES = 8 };

static struct moon_rpc_frame tag_frame(const char *tag) {
    return (struct moon_rpc_frame){(const uint8_t *)tag, strlen(tag)};
}

static bool tag_equals(const struct moon_rpc_frame *frame, const char *tag) {
    return frame->length == strlen(tag) && memcmp(frame->bytes, tag, frame->length) == 0;
}

static void write_be(uint8_t *out, size_t bytes, uint64_t value) {
    for (size_t i = 0; i < bytes; i++)
        out[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
}

/* Frame number of the token count, and how it goes on. */
static size_t first_frame(const struct moon_profile *profile) {
    return profile->lookup_rpc != MOON_RPC_LIST;
}

static bool hashes_as_list(const struct moon_profile *profile) {
    return profile->lookup_rpc <= MOON_RPC_TAGGED_LIST;
}

void moon_rpc_message_open(struct moon_rpc_message *message, struct moon_memory *memory) {
    *message = (struct moon_rpc_message){.count = 0};
    moon_text_open(&message->list, memory);
}

void moon_rpc_message_close(struct moon_rpc_message *message) {
    moon_text_close(&message->list);
    message->count = 0;
}

/* msgpack head of an array or string: one byte with the number in it, or a byte that tells the width of the number. */
static void list_head(struct moon_text *list, size_t number, unsigned inside, size_t inside_max, unsigned first_wide,
                      unsigned narrowest) {
    uint8_t head[5];
    size_t width = narrowest;
    if (number <= inside_max) {
        moon_text_char(list, (char)(inside | number));
        return;
    }
    head[0] = (uint8_t)first_wide;
    while (width < 4 && number >> 8 * width != 0) {
        width *= 2;
        head[0]++;
    }
    write_be(head + 1, width, number);
    moon_text_bytes(list, head, width + 1);
}

/* One array of hex strings, the way msgspec writes it: each head as short as it can be. */
static int write_list(const struct moon_hashes *hashes, struct moon_text *list, struct moon_error *error) {
    moon_text_clear(list);
    list_head(list, hashes->count, 0x90, 15, 0xdc, 2);
    for (size_t i = 0; i < hashes->count; i++) {
        list_head(list, 2 * hashes->hash_bytes, 0xa0, 31, 0xd9, 1);
        moon_text_hex(list, hashes->bytes + i * hashes->hash_bytes, hashes->hash_bytes);
    }
    return list->failed ? moon_fail(error, MOON_ERR_MEMORY, "lookup request", "no memory for %zu hashes", hashes->count)
                        : 0;
}

int moon_rpc_encode_lookup(const struct moon_profile *profile, int64_t num_tokens, const struct moon_hashes *hashes,
                           struct moon_rpc_message *message, struct moon_error *error) {
    size_t at = first_frame(profile);
    if (num_tokens < 0 || num_tokens > UINT32_MAX)
        return moon_refuse(error, "OverflowError",
                           num_tokens < 0 ? "can't convert negative int to unsigned" : "int too big to convert");
    message->frames[0] = tag_frame(tag_lookup);
    write_be(message->tokens, sizeof message->tokens, (uint64_t)num_tokens);
    message->frames[at++] = (struct moon_rpc_frame){message->tokens, sizeof message->tokens};
    if (hashes_as_list(profile)) {
        int status = write_list(hashes, &message->list, error);
        if (status)
            return status;
        message->frames[at++] = (struct moon_rpc_frame){(const uint8_t *)message->list.data, message->list.length};
    } else {
        write_be(message->hash_bytes, sizeof message->hash_bytes, hashes->count ? hashes->hash_bytes : 0);
        message->frames[at++] = (struct moon_rpc_frame){message->hash_bytes, sizeof message->hash_bytes};
        message->frames[at++] = (struct moon_rpc_frame){hashes->bytes, hashes->count * hashes->hash_bytes};
    }
    message->count = at;
    return 0;
}

void moon_rpc_encode_reset(struct moon_rpc_message *message) {
    message->frames[0] = tag_frame(tag_reset);
    message->count = 1;
}

void moon_rpc_request_open(struct moon_rpc_request *request, struct moon_memory *memory) {
    *request = (struct moon_rpc_request){.kind = MOON_RPC_UNKNOWN};
    moon_text_open(&request->room, memory);
}

void moon_rpc_request_close(struct moon_rpc_request *request) {
    moon_text_close(&request->room);
    request->hashes = (struct moon_hashes){NULL, 0, 0};
}

static int fail_at(struct moon_error *error, enum moon_status status, size_t frame, size_t byte, const char *message) {
    char where[64];
    snprintf(where, sizeof where, "lookup request frame %zu byte %zu", frame, byte);
    return moon_fail(error, status, where, "%s", message);
}

/* A big-endian integer as wide as its frame (RPC-004); what is beyond 63 bits becomes INT64_MAX. */
static int read_number(const struct moon_rpc_frame *frames, size_t count, size_t at, int64_t *number,
                       struct moon_error *error) {
    uint64_t value = 0;
    if (at >= count)
        return fail_at(error, MOON_ERR_SYNTAX, at, 0, "the frame is missing");
    for (size_t i = 0; i < frames[at].length; i++)
        value = value > INT64_MAX >> 8 ? INT64_MAX : value << 8 | frames[at].bytes[i];
    *number = (int64_t)value;
    return 0;
}

/* Length in a msgpack head whose byte has been read: `inside` with its mask carries it, first_wide .. first_wide +
 * widths
 * - 1 are followed by it. False: the byte is another type's. */
static bool head_length(struct moon_cursor *cursor, unsigned head, unsigned inside, unsigned mask, unsigned u8_head,
                        unsigned u16_head, size_t *length) {
    if ((head & mask) == inside)
        *length = head & ~mask & 0xff;
    else if (head == u8_head)
        *length = moon_cursor_u8(cursor);
    else if (head == u16_head)
        *length = moon_cursor_u16_be(cursor);
    else if (head == u16_head + 1)
        *length = moon_cursor_u32_be(cursor);
    else
        return false;
    return true;
}

enum {
    MOON_HEAD_UNUSED = 0xc1,
    MOON_HEAD_NONE = 0x100 /* an array has no head with a length of one byte */
};

/* Blanks that may stand between the bytes of a hash (bytes.fromhex). */
static bool is_blank(char byte) {
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Strings of msgpack are UTF-8; others cannot be decoded. */
static bool is_text(const char *bytes, size_t length) {
    uint32_t code_point;
    for (size_t at = 0, used; at < length; at += used) {
        used = moon_utf8_decode(bytes + at, length - at, &code_point);
        if (used == 0 || (code_point >= 0xd800 && code_point <= 0xdfff))
            return false;
    }
    return true;
}

/* The bytes of one hex string, appended to the request's room. */
static int read_hex(const char *hex, size_t digits, size_t frame, size_t at, struct moon_rpc_request *request,
                    struct moon_error *error) {
    size_t count = 0;
    uint8_t pair;
    for (size_t i = 0; i < digits; count++) {
        while (i < digits && is_blank(hex[i]))
            i++;
        if (i == digits)
            break;
        if (moon_hex_decode(hex + i, digits - i < 2 ? 1 : 2, &pair))
            return fail_at(error, is_text(hex, digits) ? MOON_ERR_SCHEMA : MOON_ERR_SYNTAX, frame, at + i,
                           "a hash is not hexadecimal");
        moon_text_char(&request->room, (char)pair);
        i += 2;
    }
    if (count > MOON_RPC_HASH_BYTES_MAX)
        return fail_at(error, MOON_ERR_LIMIT, frame, at, "a hash is longer than 65535 bytes");
    if (count == 0 || (request->hashes.count > 0 && count != request->hashes.hash_bytes))
        return fail_at(error, MOON_ERR_LIMIT, frame, at, "hashes of several lengths, or of none");
    request->hashes.hash_bytes = count;
    request->hashes.count++;
    return 0;
}

/* One element of the list. */
static int read_hash(struct moon_cursor *cursor, size_t frame, struct moon_rpc_request *request,
                     struct moon_error *error) {
    size_t at = cursor->offset, digits = 0;
    if (!head_length(cursor, moon_cursor_u8(cursor), 0xa0, 0xe0, 0xd9, 0xda, &digits) && !cursor->failed)
        return fail_at(error, MOON_ERR_SCHEMA, frame, at, "a hash is no string");
    at = cursor->offset;
    const char *hex = (const char *)moon_cursor_bytes(cursor, digits);
    if (!hex)
        return fail_at(error, MOON_ERR_SYNTAX, frame, cursor->short_at, "the frame ends early");
    return read_hex(hex, digits, frame, at, request, error);
}

/* What stands in place of the array. The keys of a map are taken for hashes by releases, but not here. */
static int no_array(unsigned head, size_t frame, struct moon_error *error) {
    if (head == MOON_HEAD_UNUSED)
        return fail_at(error, MOON_ERR_SYNTAX, frame, 0, "the byte begins nothing");
    if ((head & 0xf0) == 0x80 || head == 0xde || head == 0xdf)
        return fail_at(error, MOON_ERR_LIMIT, frame, 0, "the hashes are a map");
    return fail_at(error, MOON_ERR_SCHEMA, frame, 0, "the hashes are no array");
}

static int read_list(const struct moon_rpc_frame *frames, size_t count, size_t at, struct moon_rpc_request *request,
                     struct moon_error *error) {
    struct moon_cursor cursor;
    size_t elements = 0;
    unsigned head;
    int status = 0;
    if (at >= count)
        return fail_at(error, MOON_ERR_SYNTAX, at, 0, "the frame is missing");
    moon_cursor_open(&cursor, frames[at].bytes, frames[at].length);
    head = moon_cursor_u8(&cursor);
    if (!head_length(&cursor, head, 0x90, 0xf0, MOON_HEAD_NONE, 0xdc, &elements) && !cursor.failed)
        return no_array(head, at, error);
    if (cursor.failed)
        return fail_at(error, MOON_ERR_SYNTAX, at, cursor.short_at, "the frame ends early");
    /* Each hash takes bytes of the frame, so the loop ends with it, whatever the head claims. */
    for (size_t i = 0; i < elements && !status; i++)
        status = read_hash(&cursor, at, request, error);
    if (status)
        return status;
    if (moon_cursor_left(&cursor) > 0)
        return fail_at(error, MOON_ERR_SYNTAX, at, cursor.offset, "bytes follow the array");
    if (request->room.failed)
        return moon_fail(error, MOON_ERR_MEMORY, "lookup request", "no memory for %zu hashes", elements);
    request->hashes.bytes = (const uint8_t *)request->room.data;
    return 0;
}

static int read_binary(const struct moon_rpc_frame *frames, size_t count, size_t at, struct moon_rpc_request *request,
                       struct moon_error *error) {
    int64_t hash_bytes = 0;
    int status = read_number(frames, count, at, &hash_bytes, error);
    if (status)
        return status;
    if (at + 1 >= count)
        return fail_at(error, MOON_ERR_SYNTAX, at + 1, 0, "the frame is missing");
    if (hash_bytes == 0 || (size_t)hash_bytes > frames[at + 1].length)
        return 0;
    if (hash_bytes > MOON_RPC_HASH_BYTES_MAX)
        return fail_at(error, MOON_ERR_LIMIT, at, 0, "a hash is longer than 65535 bytes");
    request->hashes =
        (struct moon_hashes){frames[at + 1].bytes, (size_t)hash_bytes, frames[at + 1].length / (size_t)hash_bytes};
    return 0;
}

int moon_rpc_decode_request(const struct moon_profile *profile, const struct moon_rpc_frame *frames, size_t count,
                            struct moon_rpc_request *request, struct moon_error *error) {
    size_t at = first_frame(profile);
    request->kind = MOON_RPC_LOOKUP;
    request->num_tokens = 0;
    request->hashes = (struct moon_hashes){NULL, 0, 0};
    moon_text_clear(&request->room);
    if (count == 0)
        return fail_at(error, MOON_ERR_SYNTAX, 0, 0, "the frame is missing");
    if (at > 0 && !tag_equals(&frames[0], tag_lookup)) {
        request->kind = tag_equals(&frames[0], tag_reset) ? MOON_RPC_RESET : MOON_RPC_UNKNOWN;
        return 0;
    }
    int status = read_number(frames, count, at, &request->num_tokens, error);
    if (!status)
        status = hashes_as_list(profile) ? read_list(frames, count, at + 1, request, error)
                                         : read_binary(frames, count, at + 1, request, error);
    if (!status && request->num_tokens > MOON_HIT_TOKENS_MAX)
        status = fail_at(error, MOON_ERR_LIMIT, at, 0, "more than 2^53 tokens");
    return status;
}

static int append_u32(struct moon_text *out, int64_t number, struct moon_error *error) {
    uint8_t bytes[4];
    if (number < 0 || number > UINT32_MAX)
        return moon_refuse(error, "OverflowError",
                           number < 0 ? "can't convert negative int to unsigned" : "int too big to convert");
    write_be(bytes, sizeof bytes, (uint64_t)number);
    moon_text_bytes(out, bytes, sizeof bytes);
    return 0;
}

int moon_rpc_encode_reply(const struct moon_profile *profile, const struct moon_lookup_result *result,
                          struct moon_text *out, struct moon_error *error) {
    int status = append_u32(out, result->hit_tokens, error);
    size_t groups = profile->lookup_rpc == MOON_RPC_TAILS ? result->boundary_count : 0;
    for (size_t i = 0; i < groups && !status; i++) {
        if (result->tail_boundaries[i] == 0)
            continue;
        status = append_u32(out, (int64_t)i, error);
        if (!status)
            status = append_u32(out, result->tail_boundaries[i], error);
    }
    if (!status && out->failed)
        status = moon_fail(error, MOON_ERR_MEMORY, "lookup reply", "no memory");
    return status;
}

void moon_rpc_encode_status(bool good, struct moon_text *out) {
    moon_text_char(out, good ? 1 : 0);
}

/* Up to 0.28: the whole reply is one integer (RPC-007). */
static int decode_integer(const struct moon_connector *connector, struct moon_cursor *reply,
                          struct moon_lookup_result *result, struct moon_error *error) {
    uint64_t value = 0;
    if (reply->length != 4) {
        if (!connector->profile->reply_unchecked)
            return moon_fail(error, MOON_ERR_SYNTAX, "lookup reply byte 0", "the reply has %zu bytes, not 4",
                             reply->length);
        moon_deviation_note(connector->notes, MOON_DEVIATION_REPLY_UNCHECKED);
    }
    while (moon_cursor_left(reply) > 0) {
        if (value > INT64_MAX >> 8)
            return moon_fail(error, MOON_ERR_RANGE, "lookup reply byte 0", "the hit is beyond 63 bits");
        value = value << 8 | moon_cursor_u8(reply);
    }
    result->hit_tokens = (int64_t)value;
    return 0;
}

static int decode_tails(struct moon_cursor *reply, struct moon_lookup_result *result, struct moon_error *error) {
    char where[64];
    if (reply->length < 4 || (reply->length - 4) % MOON_RPC_ENTRY_BYTES != 0)
        return moon_refuse(error, "ValueError", "Invalid Mooncake lookup response");
    result->hit_tokens = moon_cursor_u32_be(reply);
    while (moon_cursor_left(reply) > 0) {
        size_t at = reply->offset;
        uint32_t group = moon_cursor_u32_be(reply), tokens = moon_cursor_u32_be(reply);
        if (group >= MOON_STORE_GROUPS_MAX) {
            snprintf(where, sizeof where, "lookup reply byte %zu", at);
            return moon_fail(error, MOON_ERR_LIMIT, where, "group %u, at most %d are known", group,
                             MOON_STORE_GROUPS_MAX);
        }
        result->tail_boundaries[group] = tokens;
        if (result->boundary_count <= group)
            result->boundary_count = group + 1;
    }
    return 0;
}

int moon_rpc_decode_reply(const struct moon_connector *connector, const void *bytes, size_t length,
                          struct moon_lookup_result *result, struct moon_error *error) {
    struct moon_cursor reply;
    moon_cursor_open(&reply, bytes, length);
    *result = (struct moon_lookup_result){.hit_tokens = 0};
    int status = connector->profile->lookup_rpc == MOON_RPC_TAILS ? decode_tails(&reply, result, error)
                                                                  : decode_integer(connector, &reply, result, error);
    if (status)
        *result = (struct moon_lookup_result){.hit_tokens = 0};
    return status;
}

bool moon_rpc_decode_status(const void *bytes, size_t length) {
    return length == 1 && *(const uint8_t *)bytes == 1;
}
