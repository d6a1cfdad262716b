/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the RDMA engine share: its state, its endpoints, and the calls between work and endpoints. */
#ifndef MOON_TRANSFER_RDMA_INTERNAL_H
#define MOON_TRANSFER_RDMA_INTERNAL_H

#include "ref/base/list.h"
#include "ref/transfer/rdma.h"
#include "ref/transfer/rdma_message.h"

enum { MOON_RDMA_PATH_BYTES = MOON_ENDPOINT_BYTES + MOON_VERBS_NAME_BYTES }; /* "host:port@device", with NUL */

/* What this side does to connect an endpoint.
 *   NONE     nothing
 *   PAUSED   asks (again) at retry_ns
 *   ASKING   first round is out
 *   ACKING   second round is out; the queue pairs are connected */
enum moon_rdma_phase { MOON_RDMA_NONE, MOON_RDMA_PAUSED, MOON_RDMA_ASKING, MOON_RDMA_ACKING };

/* One for each NIC path of a peer, whoever asked first (RDMA-016).
 *   path       "name@device" of the peer; name: what is dialled
 *   created    queue pairs exist; connected: they are joined to `peer` (numbers in peer_numbers)
 *   waiting    jobs with slices that are not posted yet; posted: jobs whose slices all are */
struct moon_rdma_endpoint {
    struct moon_list link; /* in rdma->endpoints */
    struct moon_rdma *rdma;
    struct moon_handshake_question question;
    char path[MOON_RDMA_PATH_BYTES], name[MOON_RDMA_PATH_BYTES];
    bool created, connected;
    enum moon_rdma_phase phase;
    unsigned attempts;
    moon_ns retry_ns, progress_ns;
    uint8_t gid[MOON_GID_BYTES]; /* of its descriptor */
    uint16_t lid;
    uint32_t numbers[MOON_RDMA_QUEUE_PAIRS], peer_numbers[MOON_RDMA_QUEUE_PAIRS];
    size_t flying[MOON_RDMA_QUEUE_PAIRS];
    struct moon_list waiting, posted;
};

/* A work request under way. Its id is its index and a round number, so that a late completion finds nothing. */
struct moon_rdma_slot {
    struct moon_rdma_job *job; /* NULL: free */
    uint32_t round;
    unsigned queue_pair;
    uint32_t next_free;
};

struct moon_rdma {
    struct moon_environment *environment;
    struct moon_rdma_settings settings;
    struct moon_verbs_user user;
    char name[MOON_ENDPOINT_BYTES], path[MOON_RDMA_PATH_BYTES]; /* own endpoint; own "name@device" */
    struct moon_list endpoints;                                 /* oldest first */
    size_t endpoint_count;
    struct moon_rdma_slot *slots;
    uint32_t slot_count, slot_free; /* slot_count: none is free */
    struct moon_list ended;         /* jobs whose done() is due */
};

static inline struct moon_rdma_job *moon_rdma_job_of(struct moon_list *link) {
    return MOON_HOLDER(link, struct moon_rdma_job, link);
}

static inline struct moon_rdma_endpoint *moon_rdma_endpoint_of(struct moon_list *link) {
    return MOON_HOLDER(link, struct moon_rdma_endpoint, link);
}

/* ---- endpoints */

/* The endpoint of that path, NULL if there is none. */
struct moon_rdma_endpoint *moon_rdma_endpoint_find(const struct moon_rdma *rdma, const char *path);
/* Is it of form text@text, and not too long? */
bool moon_rdma_path_fits(const char *path);
/* A new one for a path that fits, in place of the oldest idle one if there are too many. NULL: no memory, or all are in
 * use. */
struct moon_rdma_endpoint *moon_rdma_endpoint_add(struct moon_rdma *rdma, const char *path);
/* Gives everything back; its jobs are forgotten. */
void moon_rdma_endpoint_remove(struct moon_rdma_endpoint *endpoint);
/* Destroys its queue pairs and takes its question back. Jobs that had begun fail; the others stay. */
void moon_rdma_endpoint_break(struct moon_rdma_endpoint *endpoint);
/* All of its jobs fail. */
void moon_rdma_endpoint_fail(struct moon_rdma_endpoint *endpoint);
/* Begins to connect if there is work and it is neither connected nor on the way. */
void moon_rdma_endpoint_want(struct moon_rdma_endpoint *endpoint);
/* May work be posted? */
bool moon_rdma_endpoint_usable(const struct moon_rdma_endpoint *endpoint);
moon_ns moon_rdma_endpoint_deadline(const struct moon_rdma_endpoint *endpoint);
void moon_rdma_endpoint_tick(struct moon_rdma_endpoint *endpoint);

/* ---- work */

/* Posts what there is room for. A post that is refused breaks the endpoint. */
void moon_rdma_work_pump(struct moon_rdma_endpoint *endpoint);
/* Forgets the work requests of an endpoint, whose queue pairs are gone. */
void moon_rdma_work_forget(struct moon_rdma_endpoint *endpoint);
/* Ends a job: done(code) is due. */
void moon_rdma_work_end(struct moon_rdma_job *job, int code);
/* Tells the askers of all jobs that have ended. Only from within calls by the driver. */
void moon_rdma_work_settle(struct moon_rdma *rdma);
void moon_rdma_work_completed(struct moon_verbs_user *user, uint32_t qp_num, uint64_t id, int status);

#endif
