/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of the RDMA handshake: descriptors of rdma processes, Connection questions and answers. */
#ifndef MOON_TRANSFER_RDMA_MESSAGE_H
#define MOON_TRANSFER_RDMA_MESSAGE_H

#include "ref/base/json.h"
#include "ref/base/verbs.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_GID_TEXT_BYTES = 3 * MOON_GID_BYTES, /* "00:..:ff", with NUL */
    MOON_RDMA_DEVICES_MAX = 64,               /* of a descriptor */
};

void moon_gid_write(const uint8_t gid[MOON_GID_BYTES], char text[MOON_GID_TEXT_BYTES]);
/* True if `text` is 16 hex bytes with colons between them. */
bool moon_gid_read(const char *text, uint8_t gid[MOON_GID_BYTES]);

struct moon_rdma_device {
    const char *name;
    uint16_t lid;
    uint8_t gid[MOON_GID_BYTES];
};

/* Memory that a process lists: [address, address + length) of a location ("cpu:0", "*").
 *   lkeys, rkeys   one a device; rkeys NULL: peers may not reach it */
struct moon_rdma_buffer {
    const char *location;
    uint64_t address, length;
    const uint32_t *lkeys, *rkeys;
};

/* A row of the priority matrix: devices by their index, the preferred ones first.  */
struct moon_rdma_priority {
    const char *location;
    const size_t *devices;
    size_t device_count;
    size_t preferred; /* of these */
};

/* Texts are NUL-terminated. */
struct moon_rdma_descriptor {
    const char *name, *timestamp;
    const struct moon_rdma_device *devices;
    const struct moon_rdma_buffer *buffers;
    const struct moon_rdma_priority *priorities;
    size_t device_count, buffer_count, priority_count;
};

/* Reads one (RDMA-002). It lives in `arena` and borrows nothing. Returns 0, an error of moon_json_read, MOON_ERR_SCHEMA
 * (something is missing or of the wrong type, counts differ, another protocol), MOON_ERR_RANGE (a number) or
 * MOON_ERR_LIMIT (devices), with the place. */
int moon_rdma_read_descriptor(struct moon_arena *arena, const char *json, size_t length,
                              struct moon_rdma_descriptor *descriptor, struct moon_error *error);
/* Appends it as one line (RDMA-001). Fails only through out->failed. */
void moon_rdma_write_descriptor(struct moon_arena *arena, const struct moon_rdma_descriptor *descriptor,
                                struct moon_text *out);
/* The device and the rkey for [address, address + length) (RDMA-003, RDMA-004). False: there is none. */
bool moon_rdma_reach(const struct moon_rdma_descriptor *descriptor, uint64_t address, uint64_t length, size_t *device,
                     uint32_t *rkey);

enum { MOON_RDMA_NUMBERS_MAX = 16 }; /* of a Connection message; more than any side has queue pairs */

/* A Connection question or answer. Texts are NUL-terminated, "" if absent or no text.
 *   numbers       of the queue pairs; number_count may be beyond the array's length, then only the first ones are there
 *   numbers_bad   qp_num is no array, or holds something that is no number of a queue pair
 *   ready_ack     -1: absent */
struct moon_rdma_connection {
    const char *gid, *local_path, *peer_path, *reply;
    uint16_t lid;
    uint32_t numbers[MOON_RDMA_NUMBERS_MAX];
    size_t number_count;
    bool numbers_bad;
    int ready_ack;
};

/* Reads any JSON value as one; what is absent or of another type is empty. Returns 0, an error of moon_json_read. */
int moon_rdma_read_connection(struct moon_arena *arena, const char *json, size_t length,
                              struct moon_rdma_connection *connection, struct moon_error *error);
/* Appends it as one line (RDMA-010). Fails only through out->failed. */
void moon_rdma_write_connection(struct moon_arena *arena, const struct moon_rdma_connection *connection,
                                struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
