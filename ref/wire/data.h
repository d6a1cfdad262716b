/* SPDX-License-Identifier: Apache-2.0 */
/* Headers on the TCP data port of the transfer engine, versions 1 and 2. */
#ifndef MOON_WIRE_DATA_H
#define MOON_WIRE_DATA_H

#include "ref/base/error.h"
#include "ref/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_WIRE_DATA_REQUEST_BYTES = 24,
    MOON_WIRE_DATA_STATUS_BYTES = 8,
    MOON_WIRE_DATA_PADDING_BYTES = 7,
};

/* A request: `size` bytes at `address` of the server are read, or written with the payload that follows.
 *   opcode   as sent; write, version are made from it: 1 writes, all others read (WIRE-051); bit 7: version 2
 *   padding  as sent: 0.3.13 sends zeros, older releases what was in memory */
struct moon_wire_data_request {
    uint64_t size, address;
    bool write;
    unsigned version; /* 1 or 2 */
    uint8_t opcode;
    uint8_t padding[MOON_WIRE_DATA_PADDING_BYTES];
};

/* Every 24 bytes are a request. */
void moon_wire_read_data_request(const uint8_t bytes[MOON_WIRE_DATA_REQUEST_BYTES],
                                 struct moon_wire_data_request *request);
/* Appends it; opcode comes from write and version. */
void moon_wire_write_data_request(const struct moon_wire_data_request *request, struct moon_text *out);

/* Status frame of version 2: before the data of a read, after a write. */
enum moon_wire_data_status { MOON_WIRE_DATA_OK = 0, MOON_WIRE_DATA_REJECTED = 1 /* the server closes after it */ };
/* Reads it. Returns 0, or MOON_ERR_SYNTAX if it is none. */
int moon_wire_read_data_status(const uint8_t bytes[MOON_WIRE_DATA_STATUS_BYTES], uint32_t *status,
                               struct moon_error *error);
void moon_wire_write_data_status(uint32_t status, struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
