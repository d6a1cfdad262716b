/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a history: what nodes tell about what they do and see. Plain data, the port they go to, and their two
 * forms as bytes. */
#ifndef MOON_BASE_RECORD_H
#define MOON_BASE_RECORD_H

#include "ref/base/bytes.h"
#include "ref/base/error.h"
#include "ref/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* HIST-001. */
enum moon_record_kind {
    MOON_RECORD_INVOKE,   /* an operation begins */
    MOON_RECORD_OK,       /* it ended, as asked */
    MOON_RECORD_FAIL,     /* it did certainly not happen */
    MOON_RECORD_INFO,     /* it may have happened, or may yet */
    MOON_RECORD_SEND,     /* a message leaves: recorded just before its bytes are handed to the stream */
    MOON_RECORD_RECV,     /* a message is here: recorded before anything is done with it */
    MOON_RECORD_TRANSFER, /* bytes of values were moved */
    MOON_RECORD_STATE,    /* something changed inside: lease, evict, mount, ... */
    MOON_RECORD_FAULT,    /* something was done to the node: kill, stop, ... */
    MOON_RECORD_NOTE,
};

/* Members that a record may lack. */
enum {
    MOON_RECORD_HAS_KEY = 1 << 0,
    MOON_RECORD_HAS_TENANT = 1 << 1,
    MOON_RECORD_HAS_BYTES = 1 << 2,
    MOON_RECORD_HAS_DIGEST = 1 << 3,
    MOON_RECORD_HAS_REPLICA = 1 << 4,
    MOON_RECORD_HAS_EXTENT = 1 << 5,
    MOON_RECORD_HAS_LEASE = 1 << 6,
    MOON_RECORD_HAS_CODE = 1 << 7,
    MOON_RECORD_HAS_CAUSE = 1 << 8,
    MOON_RECORD_HAS_BLOCKS = 1 << 9,
    MOON_RECORD_HAS_TOKENS = 1 << 10,
    MOON_RECORD_HAS_SHARDS = 1 << 11,
};

/* Memory of an owner. segment: the transfer endpoint ("host:port") that the extent is reached at; offset: announced
 * address of its first byte. */
struct moon_extent {
    struct moon_bytes segment;
    uint64_t offset, length;
};

/* One event. Texts are borrowed for the call.
 *   node, boot, n, time_ns, clock   filled by the recorder, not by state machines
 *   op, parent   operation ids, unique in (node, boot); 0: none. An invoke and its end have the same op
 *   msg          message id (moon_message_id), equal in send and recv; 0: none
 *   internal     told by the implementation; false: can be seen from outside (requests, answers, bytes)
 *   what         put, get, exist, size, remove, remove_all; names of remote calls for send and recv ("PutEnd");
 *                lease, evict, mount, unmount, expire, discard, release, reuse, ...
 *   digest       XXH3-64 of the content
 *   lease_ns     until when, on this record's clock
 *   code         0 or Mooncake's negative number
 *   cause        id of what led to it: "msg 0123456789abcdef", a fault, or of a permitted deviation the edge id */
struct moon_record {
    struct moon_bytes node, clock;
    uint32_t boot;
    uint64_t n;
    moon_ns time_ns;
    enum moon_record_kind kind;
    bool internal;
    uint64_t op, parent, msg;
    const char *what;
    unsigned has;
    struct moon_bytes key, tenant, cause;
    uint64_t bytes, digest, replica;
    struct moon_extent extent;
    moon_ns lease_ns;
    int64_t code, blocks, tokens, shards;
};

/* Where records go. A supervisor's hook stands here, too: it may stop the node at a record. */
struct moon_recorder {
    void (*record)(struct moon_recorder *self, const struct moon_record *record);
};

/* Name of a kind ("invoke"), and back; -1 for a text that is none. */
const char *moon_record_kind_name(enum moon_record_kind kind);
int moon_record_kind_find(const char *name, size_t length);

/* Id of the `ordinal`-th frame (from 0) that went from `from` to `to`, the addresses of a stream as moon_stream names
 * them. Both ends compute the same one. Never 0. */
uint64_t moon_message_id(const char *from, const char *to, uint64_t ordinal);

/* Appends the record as one line of JSON with a final newline (formats: integers beyond 2^53 are decimal text, bytes
 * that are no UTF-8 are written as {"hex": ...}). Fails only through out->failed. */
void moon_record_write_json(const struct moon_record *record, struct moon_text *out);
/* Reads one line (without its newline). Members are closed: an unknown one is an error. Texts live in `arena`. Returns
 * 0, an error of moon_json_read, MOON_ERR_SCHEMA or MOON_ERR_RANGE, with the member's name. */
int moon_record_read_json(struct moon_arena *arena, const char *line, size_t length, struct moon_record *record,
                          struct moon_error *error);

/* The compact form: u32 length of what follows, then all members in a fixed order (ref/base/README.md). The digest of a
 * history is XXH3-64 over these. */
void moon_record_write_binary(const struct moon_record *record, struct moon_text *out);
/* Reads the record at the front. *used: its length in bytes. Borrows `bytes`. Returns 0 or MOON_ERR_SYNTAX with the
 * offset. */
int moon_record_read_binary(const void *bytes, size_t length, struct moon_record *record, size_t *used,
                            struct moon_error *error);

#ifdef __cplusplus
}
#endif
#endif
