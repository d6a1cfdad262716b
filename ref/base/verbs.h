/* SPDX-License-Identifier: Apache-2.0 */
/* RDMA verbs as state machines see them: the thin operations of one device, and what it tells its user. */
#ifndef MOON_BASE_VERBS_H
#define MOON_BASE_VERBS_H

#include "ref/base/bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { MOON_GID_BYTES = 16, MOON_VERBS_NAME_BYTES = 64 };

/* A queue pair's end as the handshake carries it. */
struct moon_verbs_address {
    uint8_t gid[MOON_GID_BYTES];
    uint16_t lid;
    uint32_t qp_num;
};

/* One one-sided work request. id comes back in its completion. */
struct moon_verbs_work {
    uint64_t id;
    bool write; /* false: read */
    void *local;
    uint32_t lkey, rkey;
    uint64_t remote;
    uint32_t length; /* 1 or more */
};

/* Status of a completion: 0, or the verbs number: 5 flushed, 10 remote access error, 12 retries exceeded, ... */
struct moon_verbs_user {
    /* A work request of queue pair `qp_num` has ended. Called between two calls into the node. After a status that is
     * not 0 the queue pair is in error: what else it has is flushed, nothing more can be posted. */
    void (*completed)(struct moon_verbs_user *self, uint32_t qp_num, uint64_t id, int status);
};

/* Operations of one device. All return 0 or a negative errno; none calls the user.
 *   name, gid, lid, mtu_bytes   constants of the device, set before use; mtu_bytes: active path MTU
 *   user                        set by the one who uses it */
struct moon_verbs {
    char name[MOON_VERBS_NAME_BYTES];
    uint8_t gid[MOON_GID_BYTES];
    uint16_t lid;
    uint32_t mtu_bytes;
    struct moon_verbs_user *user;
    /* Registers memory; remote: peers may read and write it (else only this side's work requests use it). */
    int (*register_memory)(struct moon_verbs *self, void *address, size_t length, bool remote, uint32_t *lkey,
                           uint32_t *rkey);
    int (*deregister_memory)(struct moon_verbs *self, uint32_t lkey);
    /* A reliable connected queue pair, in state INIT when it returns. */
    int (*create)(struct moon_verbs *self, uint32_t *qp_num);
    /* INIT to RTR to RTS towards that peer: PSN 0 both ways, MOON's timeouts (transfer/rdma.h). */
    int (*connect)(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_address *peer);
    void (*destroy)(struct moon_verbs *self, uint32_t qp_num);
    /* Posts one work request; memory is borrowed until its completion. */
    int (*post)(struct moon_verbs *self, uint32_t qp_num, const struct moon_verbs_work *work);
};

#ifdef __cplusplus
}
#endif
#endif
