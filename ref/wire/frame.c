/* SPDX-License-Identifier: Apache-2.0 */
/* coro_rpc frames from bytes and to bytes. */
#include "ref/wire/frame.h"

#include "ref/base/cursor.h"
#include "ref/wire/value.h"

#include <string.h>

static const char *const names[] = {
    "ok",
    "io_error",
    "not_connected",
    "timed_out",
    "invalid_rpc_arguments",
    "address_in_used",
    "bad_address",
    "open_error",
    "listen_error",
    "operation_canceled",
    "rpc_throw_exception",
    "function_not_registered",
    "protocol_error",
    "unknown_protocol_version",
    "message_too_large",
    "server_has_ran",
    "invalid_rpc_result",
    "serial_number_conflict",
};

const char *moon_wire_rpc_error_name(unsigned code) {
    return code < sizeof names / sizeof *names ? names[code] : "unknown";
}

static int refuse_byte(struct moon_error *error, const char *what, unsigned seen, unsigned offset, unsigned expected) {
    return moon_fail(error, MOON_ERR_SYNTAX, NULL, "%s is %u at offset %u, not %u", what, seen, offset, expected);
}

/* The first four bytes; those that have not arrived are not looked at. */
static int check_start(enum moon_wire_direction direction, const uint8_t *at, size_t length, struct moon_error *error) {
    if (length > 0 && at[0] != MOON_WIRE_MAGIC)
        return refuse_byte(error, "the magic number", at[0], 0, MOON_WIRE_MAGIC);
    if (length > 1 && at[1] != 0)
        return refuse_byte(error, "the protocol version", at[1], 1, 0);
    if (length > 2 && at[2] != 0 && direction == MOON_WIRE_REQUEST)
        return refuse_byte(error, "the serialisation", at[2], 2, 0);
    if (length > 3 && at[3] != 0)
        return refuse_byte(error, "the message type", at[3], 3, 0);
    return MOON_OK;
}

int moon_wire_read_frame(enum moon_wire_direction direction, const void *stream, size_t length, size_t limit_bytes,
                         struct moon_wire_frame *frame, size_t *used, size_t *needed, struct moon_error *error) {
    size_t header = direction == MOON_WIRE_REQUEST ? MOON_WIRE_REQUEST_HEADER_BYTES : MOON_WIRE_RESPONSE_HEADER_BYTES;
    struct moon_wire_frame read = {.direction = direction};
    struct moon_cursor cursor;
    *used = 0;
    *needed = header;
    int status = check_start(direction, stream, length, error);
    if (status || length < header)
        return status;
    moon_cursor_open(&cursor, stream, length);
    uint32_t start = moon_cursor_u32_le(&cursor);
    read.error_code = direction == MOON_WIRE_RESPONSE ? (uint8_t)(start >> 16) : 0;
    read.sequence = moon_cursor_u32_le(&cursor);
    if (direction == MOON_WIRE_REQUEST)
        read.function_id = moon_cursor_u32_le(&cursor);
    read.body_length = moon_cursor_u32_le(&cursor);
    read.attachment_length = moon_cursor_u32_le(&cursor);
    uint64_t content = (uint64_t)read.body_length + read.attachment_length;
    if (content > limit_bytes)
        return moon_fail(error, MOON_ERR_LIMIT, NULL,
                         "a body of %u and an attachment of %u bytes at offset %zu: over %zu together",
                         read.body_length, read.attachment_length, header - 8, limit_bytes);
    *needed = header + (size_t)content;
    if (length < *needed)
        return MOON_OK;
    read.body = moon_cursor_bytes(&cursor, read.body_length);
    read.attachment = moon_cursor_bytes(&cursor, read.attachment_length);
    *used = *needed;
    *frame = read;
    return MOON_OK;
}

static void put_u32(struct moon_text *out, uint32_t number) {
    uint8_t bytes[] = {(uint8_t)number, (uint8_t)(number >> 8), (uint8_t)(number >> 16), (uint8_t)(number >> 24)};
    moon_text_bytes(out, bytes, sizeof bytes);
}

void moon_wire_write_frame(const struct moon_wire_frame *frame, struct moon_text *out) {
    put_u32(out, MOON_WIRE_MAGIC | (uint32_t)frame->error_code << 16);
    put_u32(out, frame->sequence);
    if (frame->direction == MOON_WIRE_REQUEST)
        put_u32(out, frame->function_id);
    put_u32(out, frame->body_length);
    put_u32(out, frame->attachment_length);
    moon_text_bytes(out, frame->body, frame->body_length);
    moon_text_bytes(out, frame->attachment, frame->attachment_length);
}

static const struct moon_wire_type u16 = {.kind = MOON_WIRE_U16};
static const struct moon_wire_type string = {.kind = MOON_WIRE_STRING};
static const struct moon_wire_type extended = {
    .kind = MOON_WIRE_STRUCT,
    .members = (const struct moon_wire_member[]){{"code", &u16}, {"message", &string}, {NULL, NULL}}};

int moon_wire_read_failure(struct moon_arena *arena, const struct moon_wire_frame *frame,
                           struct moon_wire_failure *failure, struct moon_error *error) {
    bool is_extended = frame->error_code == MOON_WIRE_RPC_EXTENDED;
    struct moon_wire_value *value = NULL;
    int status = moon_wire_decode(arena, is_extended ? &extended : &string, false, frame->body, frame->body_length,
                                  NULL, &value, error);
    if (status)
        return status;
    const struct moon_wire_value *message = is_extended ? value->first->next : value;
    failure->code = is_extended ? (unsigned)value->first->number : frame->error_code;
    failure->message = message->bytes;
    failure->length = message->length;
    return MOON_OK;
}

void moon_wire_write_failure(uint32_t sequence, uint8_t code, const char *message, bool with_text,
                             struct moon_text *out) {
    struct moon_wire_value value = {.type = &string, .bytes = (const uint8_t *)message, .length = strlen(message)};
    struct moon_text body;
    moon_text_open(&body, out->memory);
    moon_wire_encode(&value, false, with_text, &body);
    struct moon_wire_frame frame = {.direction = MOON_WIRE_RESPONSE,
                                    .sequence = sequence,
                                    .error_code = code,
                                    .body = (const uint8_t *)moon_text_value(&body),
                                    .body_length = (uint32_t)body.length};
    moon_wire_write_frame(&frame, out);
    out->failed = out->failed || body.failed;
    moon_text_close(&body);
}
