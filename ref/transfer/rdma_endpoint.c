/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints: a pair of queue pairs towards a peer's device, and the handshake that joins them, asked and answered. */
#include "ref/transfer/rdma_internal.h"

#include "ref/base/number.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* RDMA-024. Seven retries would be for ever with rxe, and of RNR with every device. */
enum {
    PSN = 0,
    MTU_BYTES_MAX = 4096,
    TIMEOUT = 14,
    RETRIES = 6,
    RNR_RETRIES = 6,
    RNR_TIMER = 12,
    READS = 16,
    HOP_LIMIT = 64
};

/* ---- life of an endpoint */

struct moon_rdma_endpoint *moon_rdma_endpoint_find(const struct moon_rdma *rdma, const char *path) {
    for (struct moon_list *link = rdma->endpoints.next; link != &rdma->endpoints; link = link->next)
        if (strcmp(moon_rdma_endpoint_of(link)->path, path) == 0)
            return moon_rdma_endpoint_of(link);
    return NULL;
}

bool moon_rdma_path_fits(const char *path) {
    const char *at = strchr(path, '@');
    return at && at > path && at[1] && strlen(path) < MOON_RDMA_PATH_BYTES;
}

static bool has_jobs(const struct moon_rdma_endpoint *endpoint) {
    return !moon_list_empty(&endpoint->waiting) || !moon_list_empty(&endpoint->posted);
}

/* True if nothing of this side needs it. */
static bool idle(const struct moon_rdma_endpoint *endpoint) {
    return !has_jobs(endpoint) && endpoint->phase == MOON_RDMA_NONE;
}

static void answered(struct moon_handshake_question *question, const char *json, size_t length);

struct moon_rdma_endpoint *moon_rdma_endpoint_add(struct moon_rdma *rdma, const char *path) {
    struct moon_memory *memory = rdma->environment->memory;
    if (rdma->endpoint_count == MOON_RDMA_ENDPOINTS_MAX) {
        struct moon_list *oldest = rdma->endpoints.next;
        while (oldest != &rdma->endpoints && !idle(moon_rdma_endpoint_of(oldest)))
            oldest = oldest->next;
        if (oldest == &rdma->endpoints)
            return NULL;
        moon_rdma_endpoint_remove(moon_rdma_endpoint_of(oldest));
    }
    struct moon_rdma_endpoint *endpoint = memory->resize(memory, NULL, 0, sizeof *endpoint);
    if (!endpoint)
        return NULL;
    *endpoint = (struct moon_rdma_endpoint){.rdma = rdma, .question = {.done = answered}};
    snprintf(endpoint->path, sizeof endpoint->path, "%s", path);
    snprintf(endpoint->name, sizeof endpoint->name, "%s", path);
    *strchr(endpoint->name, '@') = '\0';
    moon_list_open(&endpoint->waiting);
    moon_list_open(&endpoint->posted);
    moon_list_add(&rdma->endpoints, &endpoint->link);
    rdma->endpoint_count++;
    return endpoint;
}

void moon_rdma_endpoint_remove(struct moon_rdma_endpoint *endpoint) {
    struct moon_rdma *rdma = endpoint->rdma;
    struct moon_memory *memory = rdma->environment->memory;
    moon_rdma_endpoint_break(endpoint);
    moon_list_remove(&endpoint->link);
    rdma->endpoint_count--;
    memory->resize(memory, endpoint, sizeof *endpoint, 0);
}

/* Ends jobs of a list: those that have begun, or all. */
static void end_jobs(struct moon_list *jobs, bool all) {
    for (struct moon_list *link = jobs->next, *next; link != jobs; link = next) {
        next = link->next;
        if (all || moon_rdma_job_of(link)->started)
            moon_rdma_work_end(moon_rdma_job_of(link), MOON_STORE_TRANSFER_FAIL);
    }
}

static void destroy_pairs(struct moon_rdma_endpoint *endpoint) {
    struct moon_verbs *verbs = endpoint->rdma->settings.verbs;
    for (size_t i = 0; endpoint->created && i < MOON_RDMA_QUEUE_PAIRS; i++)
        verbs->destroy(verbs, endpoint->numbers[i]);
    endpoint->created = endpoint->connected = false;
}

void moon_rdma_endpoint_break(struct moon_rdma_endpoint *endpoint) {
    if (endpoint->phase == MOON_RDMA_ASKING || endpoint->phase == MOON_RDMA_ACKING)
        moon_handshake_cancel(endpoint->rdma->settings.client, &endpoint->question);
    endpoint->phase = MOON_RDMA_NONE;
    destroy_pairs(endpoint);
    moon_rdma_work_forget(endpoint);
    end_jobs(&endpoint->posted, false);
    end_jobs(&endpoint->waiting, false);
}

void moon_rdma_endpoint_fail(struct moon_rdma_endpoint *endpoint) {
    moon_rdma_endpoint_break(endpoint);
    end_jobs(&endpoint->waiting, true);
    endpoint->attempts = 0;
}

void moon_rdma_endpoint_want(struct moon_rdma_endpoint *endpoint) {
    if (moon_list_empty(&endpoint->waiting) || endpoint->connected || endpoint->phase != MOON_RDMA_NONE)
        return;
    endpoint->phase = MOON_RDMA_PAUSED;
    endpoint->retry_ns = endpoint->rdma->environment->now_ns;
}

bool moon_rdma_endpoint_usable(const struct moon_rdma_endpoint *endpoint) {
    return endpoint->connected && endpoint->phase != MOON_RDMA_ACKING;
}

/* ---- queue pairs */

static bool create_pairs(struct moon_rdma_endpoint *endpoint) {
    struct moon_verbs *verbs = endpoint->rdma->settings.verbs;
    for (size_t i = 0; !endpoint->created && i < MOON_RDMA_QUEUE_PAIRS; i++)
        if (verbs->create(verbs, MOON_RDMA_DEPTH, &endpoint->numbers[i])) {
            while (i-- > 0)
                verbs->destroy(verbs, endpoint->numbers[i]);
            return false;
        }
    endpoint->created = true;
    return true;
}

/* Joins both queue pairs to the peer's. Returns 0 or what the device said; then they can only be destroyed. */
static int connect_pairs(struct moon_rdma_endpoint *endpoint, const uint32_t numbers[], const uint8_t gid[],
                         uint16_t lid) {
    struct moon_verbs *verbs = endpoint->rdma->settings.verbs;
    struct moon_verbs_path path = {.peer = {.lid = lid},
                                   .mtu_bytes = (uint32_t)moon_smaller(verbs->mtu_bytes, MTU_BYTES_MAX),
                                   .psn = PSN,
                                   .timeout = TIMEOUT,
                                   .retries = RETRIES,
                                   .rnr_retries = RNR_RETRIES,
                                   .rnr_timer = RNR_TIMER,
                                   .reads = READS,
                                   .hop_limit = HOP_LIMIT};
    memcpy(path.peer.gid, gid, sizeof path.peer.gid);
    assert(endpoint->created && !endpoint->connected);
    for (size_t i = 0; i < MOON_RDMA_QUEUE_PAIRS; i++) {
        path.peer.qp_num = endpoint->peer_numbers[i] = numbers[i];
        int status = verbs->connect(verbs, endpoint->numbers[i], &path);
        if (status)
            return status;
    }
    endpoint->connected = true;
    if (endpoint->phase == MOON_RDMA_PAUSED)
        endpoint->phase = MOON_RDMA_NONE;
    endpoint->progress_ns = endpoint->rdma->environment->now_ns;
    return 0;
}

static bool numbers_equal(const struct moon_rdma_endpoint *endpoint, const struct moon_rdma_connection *peer) {
    return peer->number_count == MOON_RDMA_QUEUE_PAIRS &&
           memcmp(peer->numbers, endpoint->peer_numbers, sizeof endpoint->peer_numbers) == 0;
}

/* The fields that tell a peer of this side's end. `gid_text` holds the text as long as the message lives. */
static void tell(const struct moon_rdma_endpoint *endpoint, char gid_text[MOON_GID_TEXT_BYTES],
                 struct moon_rdma_connection *message) {
    const struct moon_verbs *verbs = endpoint->rdma->settings.verbs;
    moon_gid_write(verbs->gid, gid_text);
    message->gid = gid_text;
    message->lid = verbs->lid;
    message->local_path = endpoint->rdma->path;
    message->peer_path = endpoint->path;
    message->number_count = endpoint->created ? MOON_RDMA_QUEUE_PAIRS : 0;
    memcpy(message->numbers, endpoint->numbers, sizeof endpoint->numbers);
}

/* ---- asking */

static bool ask(struct moon_rdma_endpoint *endpoint, bool ready_ack) {
    struct moon_rdma *rdma = endpoint->rdma;
    struct moon_rdma_connection question = {.reply = "", .ready_ack = ready_ack};
    struct moon_arena arena;
    struct moon_text line;
    char gid[MOON_GID_TEXT_BYTES];
    if (!create_pairs(endpoint))
        return false;
    moon_arena_open(&arena, rdma->environment->memory);
    moon_text_open(&line, rdma->environment->memory);
    tell(endpoint, gid, &question);
    moon_rdma_write_connection(&arena, &question, &line);
    bool asked = !line.failed && moon_handshake_ask(rdma->settings.client, &endpoint->question, endpoint->name,
                                                    MOON_WIRE_HANDSHAKE_CONNECTION, line.data, line.length) == MOON_OK;
    if (asked)
        endpoint->phase = ready_ack ? MOON_RDMA_ACKING : MOON_RDMA_ASKING;
    moon_text_close(&line);
    moon_arena_close(&arena);
    return asked;
}

static void ready(struct moon_rdma_endpoint *endpoint) {
    endpoint->attempts = 0;
    endpoint->progress_ns = endpoint->rdma->environment->now_ns;
    moon_rdma_work_pump(endpoint);
}

/* A connection that came about on the peer's question stands, whatever became of our own. */
static void attempt_failed(struct moon_rdma_endpoint *endpoint, bool accepted) {
    if (accepted) {
        ready(endpoint);
        return;
    }
    moon_rdma_endpoint_break(endpoint);
    if (++endpoint->attempts >= MOON_RDMA_CONNECT_ATTEMPTS || moon_list_empty(&endpoint->waiting)) {
        moon_rdma_endpoint_fail(endpoint);
        return;
    }
    moon_rdma_endpoint_want(endpoint);
    endpoint->retry_ns += MOON_RDMA_ATTEMPT_PAUSE_MS * MOON_NS_PER_MS;
}

static void first_round(struct moon_rdma_endpoint *endpoint) {
    if (!ask(endpoint, false))
        attempt_failed(endpoint, false);
}

/* Takes what the answer to the first round says. False: it does not do. */
static bool take_answer(struct moon_rdma_endpoint *endpoint, const struct moon_rdma_connection *answer) {
    uint8_t gid[MOON_GID_BYTES];
    uint16_t lid = answer->lid;
    if (answer->reply[0] || answer->numbers_bad || answer->number_count != MOON_RDMA_QUEUE_PAIRS ||
        strcmp(answer->local_path, endpoint->path) != 0 || strcmp(answer->peer_path, endpoint->rdma->path) != 0)
        return false;
    if (answer->gid[0] == '\0') {
        memcpy(gid, endpoint->gid, sizeof gid);
        lid = endpoint->lid;
    } else if (!moon_gid_read(answer->gid, gid)) {
        return false;
    }
    if (!endpoint->connected)
        return connect_pairs(endpoint, answer->numbers, gid, lid) == 0;
    /* The peer asked meanwhile: it must have answered with the numbers that it asked with. */
    if (!numbers_equal(endpoint, answer)) {
        moon_rdma_endpoint_break(endpoint);
        return false;
    }
    return true;
}

static void answered(struct moon_handshake_question *question, const char *json, size_t length) {
    struct moon_rdma_endpoint *endpoint = MOON_HOLDER(question, struct moon_rdma_endpoint, question);
    struct moon_rdma *rdma = endpoint->rdma;
    struct moon_rdma_connection answer;
    struct moon_arena arena;
    bool first = endpoint->phase == MOON_RDMA_ASKING, accepted = first && endpoint->connected;
    endpoint->phase = MOON_RDMA_NONE;
    moon_arena_open(&arena, rdma->environment->memory);
    bool good = json && moon_rdma_read_connection(&arena, json, length, &answer, NULL) == MOON_OK &&
                (first ? take_answer(endpoint, &answer) : answer.reply[0] == '\0');
    if (!good)
        attempt_failed(endpoint, accepted && endpoint->connected);
    else if (!first || answer.ready_ack < 0)
        ready(endpoint);
    else if (!ask(endpoint, true))
        attempt_failed(endpoint, false);
    moon_arena_close(&arena);
    moon_rdma_work_settle(rdma);
}

/* ---- time */

static moon_ns stall_ns(const struct moon_rdma_endpoint *endpoint) {
    moon_ns at;
    if (!has_jobs(endpoint) ||
        __builtin_add_overflow(endpoint->progress_ns, endpoint->rdma->settings.stall_timeout_ns, &at))
        return MOON_NS_NEVER;
    return at;
}

moon_ns moon_rdma_endpoint_deadline(const struct moon_rdma_endpoint *endpoint) {
    moon_ns retry = endpoint->phase == MOON_RDMA_PAUSED ? endpoint->retry_ns : MOON_NS_NEVER;
    return moon_smaller(retry, stall_ns(endpoint));
}

void moon_rdma_endpoint_tick(struct moon_rdma_endpoint *endpoint) {
    moon_ns now = endpoint->rdma->environment->now_ns;
    if (now >= stall_ns(endpoint))
        moon_rdma_endpoint_fail(endpoint);
    if (endpoint->phase == MOON_RDMA_PAUSED && now >= endpoint->retry_ns) {
        endpoint->phase = MOON_RDMA_NONE;
        first_round(endpoint);
    }
}

/* ---- answering */

/* Refuses with a text, NULL if there was no memory for it (then the whole answer fails). */
static void refuse(struct moon_rdma_connection *answer, const char *text) {
    answer->reply = text;
}

/* The rules about names. True: refused. */
static bool refuse_paths(const struct moon_rdma *rdma, struct moon_arena *arena,
                         const struct moon_rdma_connection *asked, struct moon_rdma_connection *answer) {
    const char *at = strchr(asked->peer_path, '@'), *device = rdma->settings.verbs->name;
    if (!at)
        refuse(answer, moon_arena_format(arena, "Invalid peer_nic_path in handshake: %s", asked->peer_path));
    else if (strcmp(at + 1, device) != 0)
        refuse(answer, moon_arena_format(arena, "Local RDMA context not found for handshake NIC: %s", at + 1));
    else if (asked->local_path[0] == '\0')
        refuse(answer, moon_arena_format(arena, "Local RDMA endpoint unavailable for %s <- ", device));
    else if (strcmp(asked->peer_path, rdma->path) != 0)
        refuse(answer, moon_arena_format(arena,
                                         "Invalid argument: peer nic path inconsistency, expect %s + %s, while got "
                                         "%s + %s",
                                         rdma->path, asked->local_path, asked->peer_path, asked->local_path));
    else if (!moon_rdma_path_fits(asked->local_path))
        refuse(answer, moon_arena_format(arena, "Parse peer nic path failed: %s", asked->local_path));
    else
        return false;
    return true;
}

/* Tells the asker of this side's end. The answer outlives an endpoint that is removed after a refusal. */
static void tell_asker(const struct moon_rdma_endpoint *endpoint, struct moon_arena *arena,
                       const struct moon_rdma_connection *asked, struct moon_rdma_connection *answer) {
    char *gid = moon_arena_alloc(arena, MOON_GID_TEXT_BYTES);
    if (gid)
        tell(endpoint, gid, answer);
    answer->gid = gid; /* without memory for it the whole answer fails */
    answer->peer_path = asked->local_path;
    answer->ready_ack = 0;
}

/* A second round changes nothing; it is refused if there is nothing that it could be about. */
static void answer_ready_ack(const struct moon_rdma_endpoint *endpoint, const struct moon_rdma_connection *asked,
                             struct moon_rdma_connection *answer) {
    if (!endpoint || !endpoint->connected)
        refuse(answer, "Received RDMA ready ACK for unconnected endpoint");
    else if (!numbers_equal(endpoint, asked))
        refuse(answer, "Received stale RDMA ready ACK with mismatched peer QP numbers");
}

/* Connects the endpoint as asked; queue pairs that are joined to other numbers go first. */
static void answer_connect(struct moon_rdma_endpoint *endpoint, struct moon_arena *arena,
                           const struct moon_rdma_connection *asked, struct moon_rdma_connection *answer) {
    uint8_t gid[MOON_GID_BYTES];
    int status = 0;
    bool count_good = asked->number_count == MOON_RDMA_QUEUE_PAIRS, gid_good = moon_gid_read(asked->gid, gid);
    if (count_good && gid_good && endpoint->connected)
        moon_rdma_endpoint_break(endpoint);
    if (!create_pairs(endpoint)) {
        refuse(answer, moon_arena_format(arena, "Local RDMA endpoint unavailable for %s <- %s",
                                         endpoint->rdma->settings.verbs->name, endpoint->path));
        return;
    }
    tell_asker(endpoint, arena, asked, answer);
    if (!count_good)
        refuse(answer, "QP count mismatch in peer and local endpoints, check MC_MAX_EP_PER_CTX");
    else if (!gid_good)
        refuse(answer, moon_arena_format(arena, "Invalid peer GID: %s", asked->gid));
    else
        status = connect_pairs(endpoint, asked->numbers, gid, asked->lid);
    if (status) {
        const char *why = strerrordesc_np(-status);
        refuse(answer, moon_arena_format(arena,
                                         "Failed to modify QP to RTR, check mtu, gid, peer lid, peer qp num: "
                                         "%s",
                                         why ? why : "unknown error"));
        moon_rdma_endpoint_break(endpoint);
    }
}

static void answer_question(struct moon_rdma *rdma, struct moon_arena *arena, const struct moon_rdma_connection *asked,
                            struct moon_rdma_connection *answer) {
    if (refuse_paths(rdma, arena, asked, answer))
        return;
    struct moon_rdma_endpoint *endpoint = moon_rdma_endpoint_find(rdma, asked->local_path);
    if (asked->ready_ack == 1) {
        answer_ready_ack(endpoint, asked, answer);
        return;
    }
    if (asked->numbers_bad) {
        refuse(answer, "Invalid qp_num in handshake");
        return;
    }
    if (asked->gid[0] == '\0') {
        refuse(answer, moon_arena_format(arena, "Peer nic not found in that server: %s", asked->local_path));
        return;
    }
    if (!endpoint)
        endpoint = moon_rdma_endpoint_add(rdma, asked->local_path);
    if (!endpoint) {
        refuse(answer, moon_arena_format(arena, "Local RDMA endpoint unavailable for %s <- %s",
                                         rdma->settings.verbs->name, asked->local_path));
        return;
    }
    if (endpoint->connected && numbers_equal(endpoint, asked)) {
        tell_asker(endpoint, arena, asked, answer);
        return;
    }
    answer_connect(endpoint, arena, asked, answer);
    if (endpoint->connected)
        moon_rdma_work_pump(endpoint);
    else if (idle(endpoint))
        moon_rdma_endpoint_remove(endpoint);
    else
        moon_rdma_endpoint_want(endpoint);
}

bool moon_rdma_answer(struct moon_rdma *rdma, const struct moon_wire_handshake *question, struct moon_text *out) {
    struct moon_rdma_connection asked,
        answer = {.gid = "", .local_path = "", .peer_path = "", .reply = "", .ready_ack = -1};
    struct moon_arena arena;
    moon_arena_open(&arena, rdma->environment->memory);
    bool read = moon_rdma_read_connection(&arena, question->json, question->length, &asked, NULL) == MOON_OK;
    if (read) {
        answer_question(rdma, &arena, &asked, &answer);
        moon_rdma_write_connection(&arena, &answer, out);
    }
    moon_arena_close(&arena);
    return read;
}
