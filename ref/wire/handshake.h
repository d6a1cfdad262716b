/* SPDX-License-Identifier: Apache-2.0 */
/* Transfer-engine handshake: frames of JSON between two processes, and the descriptor of a process's memory. */
#ifndef MOON_WIRE_HANDSHAKE_H
#define MOON_WIRE_HANDSHAKE_H

#include "ref/base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

enum moon_wire_handshake_type {
    MOON_WIRE_HANDSHAKE_CONNECTION = 0, /* RDMA queue pairs */
    MOON_WIRE_HANDSHAKE_METADATA = 1,   /* descriptors of both sides */
    MOON_WIRE_HANDSHAKE_NOTIFY = 2,
    MOON_WIRE_HANDSHAKE_PROBE = 3,
};

enum {
    MOON_WIRE_HANDSHAKE_BYTES_MAX = 1024 * 1024, /* of type and JSON, by default (MC_HANDSHAKE_MAX_LENGTH) */
    MOON_WIRE_HANDSHAKE_HEADER_BYTES = 8,
};

/* A frame. old_style: without type byte, then the type is Connection and the answer must be old-style too. */
struct moon_wire_handshake {
    unsigned type;
    bool old_style;
    const char *json; /* borrowed from the stream; not NUL-terminated */
    size_t length;
};

/* Reads the frame at the front of a stream; used and needed as in moon_wire_read_frame. Returns 0; MOON_ERR_RANGE
 * (length 0) or MOON_ERR_LIMIT (length over `limit_bytes`), as soon as the length is there: the receiver closes the
 * connection. The JSON is not looked at. */
int moon_wire_read_handshake(const void *stream, size_t length, size_t limit_bytes, struct moon_wire_handshake *frame,
                             size_t *used, size_t *needed, struct moon_error *error);
/* Appends a frame. */
void moon_wire_write_handshake(const struct moon_wire_handshake *frame, struct moon_text *out);

/* Members of a descriptor that not every release writes. */
enum {
    MOON_WIRE_METADATA_PROTOCOL_VERSION = 1, /* tcp_proto_version */
    MOON_WIRE_METADATA_SERVER_NAMES = 2,     /* rdma_server_name, tcp_data_host */
};

/* Memory that a process offers: `length` bytes from `address` in its own address space. */
struct moon_wire_buffer {
    const char *name;
    uint64_t address, length;
};

/* Descriptor of a process (payload of a Metadata frame). Texts are NUL-terminated; "" if absent.
 *   protocol        "tcp", "rdma", ...
 *   data_host       where its data port is; "": the host of the endpoint it was asked at
 *   data_port       1..65535; 0 if the protocol is not tcp
 *   data_version    framing on the data port: 1, or 2 */
struct moon_wire_descriptor {
    const char *name, *protocol, *data_host, *rdma_server_name, *timestamp;
    uint16_t data_port;
    unsigned data_version;
    const struct moon_wire_buffer *buffers;
    size_t buffer_count;
};

/* Reads a descriptor as the releases do (WIRE-042, WIRE-043): unknown members are passed over. It lives in `arena` and
 * borrows nothing. Returns 0, an error of moon_json_read, MOON_ERR_SCHEMA (protocol, or with tcp the data port is
 * missing; a type is wrong), MOON_ERR_RANGE (a number out of range, a buffer without name, address or length). */
int moon_wire_read_descriptor(struct moon_arena *arena, const char *json, size_t length,
                              struct moon_wire_descriptor *descriptor, struct moon_error *error);
/* Appends the JSON line of a tcp process, byte for byte as a release with the optional `members` writes it. `arena` is
 * used on the way. Fails only through out->failed. */
void moon_wire_write_descriptor(struct moon_arena *arena, const struct moon_wire_descriptor *descriptor,
                                unsigned members, struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
