/* SPDX-License-Identifier: Apache-2.0 */
/* Headers on the TCP data port from bytes and to bytes. */
#include "ref/wire/data.h"

#include "ref/base/cursor.h"

#include <string.h>

enum { OPCODE_WRITE = 1, OPCODE_VERSION_2 = 0x80 };
static const uint32_t status_mark = 0x4d435456; /* "VTCM", little endian */

void moon_wire_read_data_request(const uint8_t bytes[MOON_WIRE_DATA_REQUEST_BYTES],
                                 struct moon_wire_data_request *request) {
    struct moon_cursor cursor;
    moon_cursor_open(&cursor, bytes, MOON_WIRE_DATA_REQUEST_BYTES);
    request->size = moon_cursor_u64_le(&cursor);
    request->address = moon_cursor_u64_le(&cursor);
    request->opcode = moon_cursor_u8(&cursor);
    request->write = (request->opcode & ~OPCODE_VERSION_2) == OPCODE_WRITE;
    request->version = request->opcode & OPCODE_VERSION_2 ? 2 : 1;
    memcpy(request->padding, moon_cursor_bytes(&cursor, sizeof request->padding), sizeof request->padding);
}

static void put_number(struct moon_text *out, uint64_t number) {
    for (unsigned i = 0; i < 8; i++)
        moon_text_char(out, (char)(number >> 8 * i & 0xff));
}

void moon_wire_write_data_request(const struct moon_wire_data_request *request, struct moon_text *out) {
    put_number(out, request->size);
    put_number(out, request->address);
    moon_text_char(out, (char)((request->version == 2 ? OPCODE_VERSION_2 : 0) | (request->write ? OPCODE_WRITE : 0)));
    moon_text_bytes(out, request->padding, sizeof request->padding);
}

int moon_wire_read_data_status(const uint8_t bytes[MOON_WIRE_DATA_STATUS_BYTES], uint32_t *status,
                               struct moon_error *error) {
    struct moon_cursor cursor;
    moon_cursor_open(&cursor, bytes, MOON_WIRE_DATA_STATUS_BYTES);
    uint32_t code = moon_cursor_u32_le(&cursor), mark = moon_cursor_u32_le(&cursor);
    if (mark != status_mark)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "0x%08x at offset 4, not the mark 0x%08x of a status", mark,
                         status_mark);
    *status = code;
    return MOON_OK;
}

void moon_wire_write_data_status(uint32_t status, struct moon_text *out) {
    put_number(out, (uint64_t)status_mark << 32 | status);
}
