/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of handshake frames, descriptors, and the headers of the data port. */
#include "ref/wire/handshake.h"

#include "ref/base/unit.h"
#include "ref/wire/data.h"

#define BUFFERS "\"buffers\":[{\"addr\":139871364575296,\"length\":16777216,\"name\":\"127.0.0.1:15012\"}]"
static const char newest[] = "{" BUFFERS ",\"name\":\"127.0.0.1:15012\",\"protocol\":\"tcp\",\"rdma_server_name\":\"\","
                             "\"tcp_data_host\":\"127.0.0.1\",\"tcp_data_port\":16637,\"tcp_proto_version\":2,"
                             "\"timestamp\":\"2026-11-29 12:37:58.125307\"}\n";
static const char oldest[] = "{" BUFFERS ",\"name\":\"127.0.0.1:15012\",\"protocol\":\"tcp\",\"tcp_data_port\":16637,"
                             "\"timestamp\":\"2026-11-29 12:37:58.125307\"}\n";

static int read_frame(const void *bytes, size_t length, struct moon_wire_handshake *frame, size_t *used,
                      size_t *needed) {
    struct moon_error error;
    return moon_wire_read_handshake(bytes, length, 100, frame, used, needed, &error);
}

static void frames_are_read_when_they_are_whole(void) {
    static const char stream[] = "\x03\0\0\0\0\0\0\0\x03{}\x03";
    struct moon_wire_handshake frame = {.type = 99};
    size_t used = 1, needed = 0;
    for (size_t cut = 0; cut < 11; cut++) {
        MOON_CHECK_INT(read_frame(stream, cut, &frame, &used, &needed), 0);
        MOON_CHECK_INT(used, 0);
        MOON_CHECK_INT(needed, cut < 8 ? 8 : 11);
        MOON_CHECK_INT(frame.type, 99);
    }
    MOON_CHECK_INT(read_frame(stream, 12, &frame, &used, &needed), 0);
    MOON_CHECK_INT(used, 11);
    MOON_CHECK_INT(frame.type, MOON_WIRE_HANDSHAKE_PROBE);
    MOON_CHECK_INT(frame.old_style, false);
    MOON_CHECK_INT(frame.length, 2);
    MOON_CHECK_INT(frame.json[0], '{');
}

static void a_frame_without_type_is_an_old_connection(void) {
    struct moon_wire_handshake frame;
    size_t used = 0, needed = 0;
    MOON_CHECK_INT(read_frame("\x02\0\0\0\0\0\0\0{}", 10, &frame, &used, &needed), 0);
    MOON_CHECK_INT(frame.type, MOON_WIRE_HANDSHAKE_CONNECTION);
    MOON_CHECK_INT(frame.old_style, true);
    MOON_CHECK_INT(frame.length, 2);
    MOON_CHECK_INT(read_frame("\x01\0\0\0\0\0\0\0\xff", 9, &frame, &used, &needed), 0);
    MOON_CHECK_INT(frame.old_style, true);
    MOON_CHECK_INT(read_frame("\x01\0\0\0\0\0\0\0\x01", 9, &frame, &used, &needed), 0);
    MOON_CHECK_INT(frame.old_style, false);
    MOON_CHECK_INT(frame.length, 0);
}

static void false_lengths_are_refused(void) {
    struct moon_wire_handshake frame;
    size_t used = 0, needed = 0;
    MOON_CHECK_INT(read_frame("\0\0\0\0\0\0\0\0", 8, &frame, &used, &needed), MOON_ERR_RANGE);
    MOON_CHECK_INT(read_frame("\x64\0\0\0\0\0\0\0", 8, &frame, &used, &needed), 0);
    MOON_CHECK_INT(needed, 108);
    MOON_CHECK_INT(read_frame("\x65\0\0\0\0\0\0\0", 8, &frame, &used, &needed), MOON_ERR_LIMIT);
    MOON_CHECK_INT(read_frame("\xff\xff\xff\xff\xff\xff\xff\xff", 8, &frame, &used, &needed), MOON_ERR_LIMIT);
}

static void frames_are_written_with_and_without_type(void) {
    struct moon_wire_handshake frame = {.type = MOON_WIRE_HANDSHAKE_NOTIFY, .json = "{}", .length = 2};
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    moon_wire_write_handshake(&frame, &out);
    MOON_CHECK_INT(out.length, 11);
    MOON_CHECK_INT(memcmp(out.data, "\x03\0\0\0\0\0\0\0\x02{}", 11), 0);
    moon_text_clear(&out);
    frame.old_style = true;
    moon_wire_write_handshake(&frame, &out);
    MOON_CHECK_INT(out.length, 10);
    MOON_CHECK_INT(memcmp(out.data, "\x02\0\0\0\0\0\0\0{}", 10), 0);
    moon_text_close(&out);
}

/* ---- descriptors */

static int read_it(struct moon_arena *arena, const char *json, struct moon_wire_descriptor *descriptor,
                   struct moon_error *error) {
    return moon_wire_read_descriptor(arena, json, strlen(json), descriptor, error);
}

static void descriptors_are_written_as_each_release_does(void) {
    static const struct {
        const char *json;
        unsigned members, version;
        const char *host;
    } rows[] = {{newest, MOON_WIRE_METADATA_PROTOCOL_VERSION | MOON_WIRE_METADATA_SERVER_NAMES, 2, "127.0.0.1"},
                {oldest, 0, 1, ""}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_arena arena;
        struct moon_text out;
        struct moon_wire_descriptor descriptor;
        struct moon_error error;
        moon_arena_open(&arena, moon_memory_heap());
        moon_text_open(&out, moon_memory_heap());
        MOON_CHECK_INT(read_it(&arena, rows[i].json, &descriptor, &error), 0);
        MOON_CHECK_TEXT(descriptor.name, "127.0.0.1:15012");
        MOON_CHECK_TEXT(descriptor.protocol, "tcp");
        MOON_CHECK_TEXT(descriptor.data_host, rows[i].host);
        MOON_CHECK_INT(descriptor.data_port, 16637);
        MOON_CHECK_INT(descriptor.data_version, rows[i].version);
        MOON_CHECK_INT(descriptor.buffer_count, 1);
        MOON_CHECK_INT(descriptor.buffers[0].address, 139871364575296);
        MOON_CHECK_INT(descriptor.buffers[0].length, 16777216);
        moon_wire_write_descriptor(&arena, &descriptor, rows[i].members, &out);
        MOON_CHECK_TEXT(moon_text_value(&out), rows[i].json);
        moon_text_close(&out);
        moon_arena_close(&arena);
    }
}

static void descriptors_are_read_as_the_releases_do(void) {
    static const struct {
        const char *json;
        int status;
        unsigned version;
    } rows[] = {
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1}", 0, 1},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":65535,\"tcp_proto_version\":3,\"new\":[1]}", 0, 2},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1,\"tcp_proto_version\":0,\"buffers\":[]}", 0, 1},
        {"{\"protocol\":\"rdma\",\"devices\":[]}", 0, 1},
        {"{\"tcp_data_port\":1}", MOON_ERR_SCHEMA, 0},
        {"{\"protocol\":\"tcp\"}", MOON_ERR_SCHEMA, 0},
        {"{\"protocol\":[\"tcp\"]}", MOON_ERR_SCHEMA, 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":0}", MOON_ERR_RANGE, 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":65536}", MOON_ERR_RANGE, 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1,\"tcp_proto_version\":\"2\"}", MOON_ERR_SCHEMA, 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1,\"buffers\":{}}", MOON_ERR_SCHEMA, 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1,\"buffers\":[1]}", MOON_ERR_SCHEMA, 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1,\"buffers\":[{}]}", MOON_ERR_SCHEMA, 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1,\"buffers\":[{\"name\":\"\",\"addr\":1,\"length\":1}]}",
         MOON_ERR_RANGE, 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1,\"buffers\":[{\"name\":\"a\",\"addr\":0,\"length\":1}]}",
         MOON_ERR_RANGE, 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1,\"buffers\":[{\"name\":\"a\",\"addr\":1,\"length\":0}]}",
         MOON_ERR_RANGE, 0},
        {"[]", MOON_ERR_SCHEMA, 0},
        {"{", MOON_ERR_SYNTAX, 0},
        {"", MOON_ERR_SYNTAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_arena arena;
        struct moon_wire_descriptor descriptor = {0};
        struct moon_error error = {0};
        moon_arena_open(&arena, moon_memory_heap());
        int status = read_it(&arena, rows[i].json, &descriptor, &error);
        if (status != rows[i].status)
            fprintf(stderr, "%s: %s\n", rows[i].json, error.message);
        MOON_CHECK_INT(status, rows[i].status);
        MOON_CHECK_INT(descriptor.data_version, rows[i].version);
        moon_arena_close(&arena);
    }
}

static int read_and_write(struct moon_memory *memory, const void *context) {
    struct moon_arena arena;
    struct moon_text out;
    struct moon_wire_descriptor descriptor;
    struct moon_error error;
    moon_arena_open(&arena, memory);
    moon_text_open(&out, memory);
    int status = read_it(&arena, context, &descriptor, &error);
    moon_arena_close(&arena); /* what was read is not used any more: the writer starts with an empty arena */
    if (!status) {
        descriptor = (struct moon_wire_descriptor){
            .name = "n", .protocol = "tcp", .data_host = "", .rdma_server_name = "", .timestamp = ""};
        moon_wire_write_descriptor(&arena, &descriptor, MOON_WIRE_METADATA_SERVER_NAMES, &out);
        status = out.failed ? MOON_ERR_MEMORY : MOON_OK;
    }
    moon_text_close(&out);
    moon_arena_close(&arena);
    return status;
}

/* Many buffers, so that their array needs a chunk of memory of its own. */
static void refused_memory_is_reported(void) {
    struct moon_text json;
    moon_unit_refuse_memory(read_and_write, newest);
    moon_text_open(&json, moon_memory_heap());
    moon_text_string(&json, "{\"protocol\":\"tcp\",\"tcp_data_port\":1,\"buffers\":[");
    for (int i = 0; i < 2000; i++)
        moon_text_format(&json, "%s{\"name\":\"a\",\"addr\":1,\"length\":1}", i ? "," : "");
    moon_text_string(&json, "]}");
    moon_unit_refuse_memory(read_and_write, json.data);
    moon_text_close(&json);
}

/* ---- data port */

static void data_requests_keep_every_byte(void) {
    static const struct {
        const char *hex;
        bool write;
        unsigned version;
    } rows[] = {
        {"050000000000000000000051367f00008100000000000000", true, 2},
        {"ffffffffffffffff01000000000000800001020304050607", false, 1},
        {"050000000000000000000051367f00000100000000000000", true, 1},
        {"050000000000000000000051367f00008061626364656667", false, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t bytes[MOON_WIRE_DATA_REQUEST_BYTES];
        struct moon_wire_data_request request;
        struct moon_text out, hex;
        moon_text_open(&out, moon_memory_heap());
        moon_text_open(&hex, moon_memory_heap());
        MOON_CHECK_INT(moon_hex_decode(rows[i].hex, 2 * sizeof bytes, bytes), 0);
        moon_wire_read_data_request(bytes, &request);
        MOON_CHECK_INT(request.write, rows[i].write);
        MOON_CHECK_INT(request.version, rows[i].version);
        moon_wire_write_data_request(&request, &out);
        moon_text_hex(&hex, out.data, out.length);
        MOON_CHECK_TEXT(moon_text_value(&hex), rows[i].hex);
        moon_text_close(&hex);
        moon_text_close(&out);
    }
}

static void an_unknown_opcode_reads(void) {
    uint8_t bytes[MOON_WIRE_DATA_REQUEST_BYTES] = {[16] = 5};
    struct moon_wire_data_request request;
    moon_wire_read_data_request(bytes, &request);
    MOON_CHECK_INT(request.write, false);
    MOON_CHECK_INT(request.opcode, 5);
    bytes[16] = 0x85;
    moon_wire_read_data_request(bytes, &request);
    MOON_CHECK_INT(request.write, false);
    MOON_CHECK_INT(request.version, 2);
}

static void a_status_has_its_mark(void) {
    struct moon_text out;
    struct moon_error error = {0};
    uint32_t status = 9;
    moon_text_open(&out, moon_memory_heap());
    moon_wire_write_data_status(MOON_WIRE_DATA_REJECTED, &out);
    MOON_CHECK_INT(memcmp(out.data, "\x01\0\0\0VTCM", 8), 0);
    MOON_CHECK_INT(moon_wire_read_data_status((const uint8_t *)out.data, &status, &error), 0);
    MOON_CHECK_INT(status, MOON_WIRE_DATA_REJECTED);
    out.data[7] ^= 1;
    MOON_CHECK_INT(moon_wire_read_data_status((const uint8_t *)out.data, &status, &error), MOON_ERR_SYNTAX);
    MOON_CHECK_TEXT(error.message, "0x4c435456 at offset 4, not the mark 0x4d435456 of a status");
    moon_text_close(&out);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"frames are read when they are whole", frames_are_read_when_they_are_whole},
        {"a frame without type is an old connection", a_frame_without_type_is_an_old_connection},
        {"false lengths are refused", false_lengths_are_refused},
        {"frames are written with and without type", frames_are_written_with_and_without_type},
        {"descriptors are written as each release does", descriptors_are_written_as_each_release_does},
        {"descriptors are read as the releases do", descriptors_are_read_as_the_releases_do},
        {"refused memory is reported", refused_memory_is_reported},
        {"data requests keep every byte", data_requests_keep_every_byte},
        {"an unknown opcode reads", an_unknown_opcode_reads},
        {"a status has its mark", a_status_has_its_mark},
        {NULL, NULL},
    };
    return moon_unit_main("handshake", cases, argc, argv);
}
