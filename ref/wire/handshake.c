/* SPDX-License-Identifier: Apache-2.0 */
/* Handshake frames and descriptors from bytes and to bytes. */
#include "ref/wire/handshake.h"

#include "ref/base/cursor.h"

#include <string.h>

enum { TYPE_MAX = MOON_WIRE_HANDSHAKE_PROBE, DATA_VERSION_MAX = 2 };
static const char source[] = "descriptor";

/* ---- frames */

int moon_wire_read_handshake(const void *stream, size_t length, size_t limit_bytes, struct moon_wire_handshake *frame,
                             size_t *used, size_t *needed, struct moon_error *error) {
    struct moon_cursor cursor;
    *used = 0;
    *needed = MOON_WIRE_HANDSHAKE_HEADER_BYTES;
    if (length < *needed)
        return MOON_OK;
    moon_cursor_open(&cursor, stream, length);
    uint64_t content = moon_cursor_u64_le(&cursor);
    if (content == 0)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "a frame of length 0 at offset 0");
    if (content > limit_bytes)
        return moon_fail(error, MOON_ERR_LIMIT, NULL, "a frame of length %llu at offset 0, over %zu",
                         (unsigned long long)content, limit_bytes);
    *needed += (size_t)content;
    if (length < *needed)
        return MOON_OK;
    const char *bytes = (const char *)moon_cursor_bytes(&cursor, (size_t)content);
    unsigned type = (unsigned char)bytes[0];
    bool old_style = type > TYPE_MAX;
    *frame = (struct moon_wire_handshake){.type = old_style ? MOON_WIRE_HANDSHAKE_CONNECTION : type,
                                          .old_style = old_style,
                                          .json = old_style ? bytes : bytes + 1,
                                          .length = (size_t)content - !old_style};
    *used = *needed;
    return MOON_OK;
}

void moon_wire_write_handshake(const struct moon_wire_handshake *frame, struct moon_text *out) {
    uint64_t content = (uint64_t)frame->length + !frame->old_style;
    for (unsigned i = 0; i < MOON_WIRE_HANDSHAKE_HEADER_BYTES; i++)
        moon_text_char(out, (char)(content >> 8 * i & 0xff));
    if (!frame->old_style)
        moon_text_char(out, (char)frame->type);
    moon_text_bytes(out, frame->json, frame->length);
}

/* ---- descriptors */

static int read_buffer(const struct moon_json *json, struct moon_wire_buffer *buffer, struct moon_error *error) {
    int64_t address = 0, length = 0;
    int status = moon_json_get_string(source, json, "name", true, &buffer->name, NULL, error);
    if (!status && buffer->name[0] == '\0')
        status = moon_json_fail(error, MOON_ERR_RANGE, source, json, "a buffer without a name");
    if (!status)
        status = moon_json_get_int(source, json, "addr", true, 1, INT64_MAX, &address, error);
    if (!status)
        status = moon_json_get_int(source, json, "length", true, 1, INT64_MAX, &length, error);
    buffer->address = (uint64_t)address;
    buffer->length = (uint64_t)length;
    return status;
}

static int read_buffers(struct moon_arena *arena, const struct moon_json *json, struct moon_wire_descriptor *descriptor,
                        struct moon_error *error) {
    struct moon_json *list = NULL;
    int status = moon_json_get(source, json, "buffers", false, MOON_JSON_ARRAY, &list, error);
    if (status || !list)
        return status;
    struct moon_wire_buffer *buffers = moon_arena_array(arena, list->count, sizeof *buffers);
    if (!buffers)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    for (const struct moon_json *one = list->first; one && !status; one = one->next)
        status = moon_json_is(one, MOON_JSON_OBJECT)
                     ? read_buffer(one, &buffers[one->index], error)
                     : moon_json_fail(error, MOON_ERR_SCHEMA, source, one, "a buffer must be an object, not %s",
                                      moon_json_type_name(one));
    descriptor->buffers = buffers;
    descriptor->buffer_count = list->count;
    return status;
}

static int read_texts(const struct moon_json *json, struct moon_wire_descriptor *descriptor, struct moon_error *error) {
    const struct {
        const char *name;
        const char **into;
        bool required;
    } texts[] = {
        {"name", &descriptor->name, false},
        {"protocol", &descriptor->protocol, true},
        {"tcp_data_host", &descriptor->data_host, false},
        {"rdma_server_name", &descriptor->rdma_server_name, false},
        {"timestamp", &descriptor->timestamp, false},
    };
    int status = MOON_OK;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && !status; i++) {
        *texts[i].into = "";
        status = moon_json_get_string(source, json, texts[i].name, texts[i].required, texts[i].into, NULL, error);
    }
    return status;
}

int moon_wire_read_descriptor(struct moon_arena *arena, const char *json, size_t length,
                              struct moon_wire_descriptor *descriptor, struct moon_error *error) {
    struct moon_wire_descriptor read = {.data_version = 1};
    struct moon_json *tree = NULL;
    int64_t port = 0, version = 1;
    int status = moon_json_read(arena, source, json, length, MOON_JSON_PYTHON, &tree, error);
    if (!status && !moon_json_is(tree, MOON_JSON_OBJECT))
        status = moon_json_fail(error, MOON_ERR_SCHEMA, source, tree, "a descriptor must be an object, not %s",
                                moon_json_type_name(tree));
    if (!status)
        status = read_texts(tree, &read, error);
    if (!status) {
        bool tcp = strcmp(read.protocol, "tcp") == 0; /* others say 0 */
        status = moon_json_get_int(source, tree, "tcp_data_port", tcp, tcp, UINT16_MAX, &port, error);
    }
    if (!status)
        status = moon_json_get_int(source, tree, "tcp_proto_version", false, 0, INT32_MAX, &version, error);
    if (!status)
        status = read_buffers(arena, tree, &read, error);
    if (status)
        return status;
    read.data_port = (uint16_t)port;
    read.data_version = version >= DATA_VERSION_MAX ? DATA_VERSION_MAX : 1;
    *descriptor = read;
    return MOON_OK;
}

void moon_wire_write_descriptor(struct moon_arena *arena, const struct moon_wire_descriptor *descriptor,
                                unsigned members, struct moon_text *out) {
    struct moon_json *object = moon_json_object(arena); /* members in alphabetical order, as jsoncpp sorts them */
    struct moon_json *buffers = moon_json_set(arena, object, "buffers", moon_json_array(arena));
    for (size_t i = 0; i < descriptor->buffer_count; i++) {
        struct moon_json *buffer = moon_json_push(buffers, moon_json_object(arena));
        moon_json_set(arena, buffer, "addr", moon_json_uint(arena, descriptor->buffers[i].address));
        moon_json_set(arena, buffer, "length", moon_json_uint(arena, descriptor->buffers[i].length));
        moon_json_set(arena, buffer, "name", moon_json_string(arena, descriptor->buffers[i].name));
    }
    moon_json_set(arena, object, "name", moon_json_string(arena, descriptor->name));
    moon_json_set(arena, object, "protocol", moon_json_string(arena, descriptor->protocol));
    if (members & MOON_WIRE_METADATA_SERVER_NAMES) {
        moon_json_set(arena, object, "rdma_server_name", moon_json_string(arena, descriptor->rdma_server_name));
        moon_json_set(arena, object, "tcp_data_host", moon_json_string(arena, descriptor->data_host));
    }
    moon_json_set(arena, object, "tcp_data_port", moon_json_uint(arena, descriptor->data_port));
    if (members & MOON_WIRE_METADATA_PROTOCOL_VERSION)
        moon_json_set(arena, object, "tcp_proto_version", moon_json_uint(arena, descriptor->data_version));
    moon_json_set(arena, object, "timestamp", moon_json_string(arena, descriptor->timestamp));
    if (moon_json_broken(object)) {
        out->failed = true;
        return;
    }
    moon_json_write(object, MOON_JSON_COMPACT, out);
    moon_text_char(out, '\n');
}
