/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of frames: requests, responses, handshakes with descriptors, headers of the data port; what is read is written
 * back as it was. */
#include "ref/wire/data.h"
#include "ref/wire/frame.h"
#include "ref/wire/handshake.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT_BYTES = 8192 };

static void must(bool holds) {
    if (!holds)
        abort();
}

static void must_be(struct moon_text *out, const uint8_t *bytes, size_t length) {
    must(!out->failed && out->length == length && memcmp(moon_text_value(out), bytes, length) == 0);
    moon_text_close(out);
}

static size_t check_frame(enum moon_wire_direction direction, const uint8_t *data, size_t size) {
    struct moon_wire_frame frame;
    struct moon_wire_failure failure;
    struct moon_error error;
    struct moon_text out;
    struct moon_arena arena;
    size_t used = 0, needed = 0;
    if (moon_wire_read_frame(direction, data, size, LIMIT_BYTES, &frame, &used, &needed, &error) || used == 0)
        return 0;
    must(used <= size && used == needed);
    moon_arena_open(&arena, moon_memory_heap());
    if (frame.error_code)
        moon_wire_read_failure(&arena, &frame, &failure, &error);
    moon_arena_close(&arena);
    moon_text_open(&out, moon_memory_heap());
    moon_wire_write_frame(&frame, &out);
    must_be(&out, data, used);
    return used;
}

static size_t check_handshake(const uint8_t *data, size_t size) {
    struct moon_wire_handshake frame;
    struct moon_wire_descriptor descriptor, again;
    struct moon_error error;
    struct moon_text out;
    struct moon_arena arena;
    size_t used = 0, needed = 0;
    if (moon_wire_read_handshake(data, size, LIMIT_BYTES, &frame, &used, &needed, &error) || used == 0)
        return 0;
    moon_text_open(&out, moon_memory_heap());
    moon_wire_write_handshake(&frame, &out);
    must_be(&out, data, used);
    moon_arena_open(&arena, moon_memory_heap());
    if (moon_wire_read_descriptor(&arena, frame.json, frame.length, &descriptor, &error) == 0 &&
        strcmp(descriptor.protocol, "tcp") == 0) {
        moon_text_open(&out, moon_memory_heap());
        moon_wire_write_descriptor(&arena, &descriptor, 3, &out);
        must(moon_wire_read_descriptor(&arena, moon_text_value(&out), out.length, &again, &error) == 0);
        must(again.buffer_count == descriptor.buffer_count && again.data_port == descriptor.data_port &&
             again.data_version == descriptor.data_version && strcmp(again.name, descriptor.name) == 0);
        moon_text_close(&out);
    }
    moon_arena_close(&arena);
    return used;
}

static size_t check_data(const uint8_t *data, size_t size) {
    struct moon_wire_data_request request;
    struct moon_error error;
    struct moon_text out;
    uint32_t status = 0;
    if (size < MOON_WIRE_DATA_REQUEST_BYTES)
        return 0;
    moon_wire_read_data_request(data, &request);
    moon_text_open(&out, moon_memory_heap());
    moon_wire_write_data_request(&request, &out);
    must((request.opcode & ~0x81) != 0 || memcmp(out.data, data, MOON_WIRE_DATA_REQUEST_BYTES) == 0);
    moon_text_close(&out);
    if (moon_wire_read_data_status(data, &status, &error) == 0) {
        moon_text_open(&out, moon_memory_heap());
        moon_wire_write_data_status(status, &out);
        must_be(&out, data, MOON_WIRE_DATA_STATUS_BYTES);
    }
    return MOON_WIRE_DATA_REQUEST_BYTES;
}

/* The first byte says what the rest is. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    unsigned kind = data[0] & 3;
    for (size_t at = 1, used = 1; used > 0 && at < size; at += used)
        used = kind < 2    ? check_frame((enum moon_wire_direction)kind, data + at, size - at)
               : kind == 2 ? check_handshake(data + at, size - at)
                           : check_data(data + at, size - at);
    return 0;
}
