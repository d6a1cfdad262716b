/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA verbs as state machines see them: the thin operations of one device, and what it tells its user. */
#ifndef MOON_BASE_VERBS_H
#define MOON_BASE_VERBS_H

#include "ref/base/bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_GID_BYTES = 16, MOON_VERBS_NAME_BYTES = 64 };

/* Status of a completion: 0 or the number that the verbs have for it. */
enum moon_verbs_status {
    MOON_VERBS_OK = 0,
    MOON_VERBS_LOCAL_PROTECTION = 4,
    MOON_VERBS_FLUSHED = 5,
    MOON_VERBS_REMOTE_ACCESS = 10,
    MOON_VERBS_RETRIES_EXCEEDED = 12,
};

/* A queue pair's end as the handshake carries it. */
struct moon_verbs_address {
    uint8_t gid[MOON_GID_BYTES];
    uint16_t lid;
    uint32_t qp_num;
};

/* How a queue pair reaches its peer. All of it is decided by the one who connects; the numbers are those of the verbs.
 *   mtu_bytes    256, 512, 1024, 2048 or 4096
 *   psn          first packet number, both ways
 *   timeout      0..31: 4.096 us * 2^timeout without an acknowledgement, then it is sent again
 *   retries      0..6 times, then the work ends with MOON_VERBS_RETRIES_EXCEEDED; 7 is for ever with some devices (rxe)
 *   rnr_retries  0..6; 7 would be for ever
 *   rnr_timer    0..31, code of the peer's pause when it is not ready
 *   reads        READs under way at a time, both ways
 *   hop_limit    of the packets */
struct moon_verbs_path {
    struct moon_verbs_address peer;
    uint32_t mtu_bytes, psn;
    uint8_t timeout, retries, rnr_retries, rnr_timer, reads, hop_limit;
};

/* One one-sided work request. Always signalled: it ends in one completion with its id.
 *   local    address of the first byte as it was registered (register_memory), of the memory with `lkey`
 *   remote   the same on the peer's side, of the memory with `rkey` */
struct moon_verbs_work {
    uint64_t id;
    bool write; /* false: read */
    uint32_t lkey, rkey;
    uint64_t local, remote;
    uint32_t length; /* 1 or more */
};

struct moon_verbs_user {
    /* A work request of queue pair `qp_num` has ended with a status of enum moon_verbs_status (or another number of the
     * verbs). Called between two calls into the node, in the order in which the requests ended. After a status that is
     * not 0 the queue pair is in error: what else it has is flushed, nothing more can be posted. Not called for a queue
     * pair that has been destroyed. */
    void (*completed)(struct moon_verbs_user *self, uint32_t qp_num, uint64_t id, int status);
};

/* Operations of one device. All return 0 or a negative errno; none calls the user.
 *   name, gid, lid, mtu_bytes   constants of the device's port; mtu_bytes: active path MTU
 *   work_max                    work requests, of all queue pairs together, whose completions there is room for: who
 *                               posts more loses completions
 *   user                        set by the one who uses it */
struct moon_verbs {
    char name[MOON_VERBS_NAME_BYTES];
    uint8_t gid[MOON_GID_BYTES];
    uint16_t lid;
    uint32_t mtu_bytes, work_max;
    struct moon_verbs_user *user;
    /* Registers memory under the addresses [address, address + length), which work requests of both sides name; in real
     * processes `address` may be the pointer, but need not: the two agree modulo the page size. remote: peers may read
     * and write it (else only this side's work requests use it). */
    int (*register_memory)(struct moon_verbs *self, void *memory, uint64_t address, size_t length, bool remote,
                           uint32_t *lkey, uint32_t *rkey);
    int (*deregister_memory)(struct moon_verbs *self, uint32_t lkey);
    /* A reliable connected queue pair for at most `depth` work requests at a time, in state INIT when it returns. */
    int (*create)(struct moon_verbs *self, uint32_t depth, uint32_t *qp_num);
    /* INIT to RTR to RTS towards that peer. After an error the queue pair can only be destroyed. */
    int (*connect)(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_path *path);
    /* At once, whatever its state: work under way ends without a completion, and none of this side's memory is touched
     * by it once this has returned. What has reached the peer has reached it. */
    void (*destroy)(struct moon_verbs *self, uint32_t qp_num);
    /* Posts one work request to a connected queue pair; memory is borrowed until its completion or destroy. */
    int (*post)(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_work *work);
};

#ifdef __cplusplus
}
#endif
#endif
