/* SPDX-License-Identifier: Apache-2.0 */
/* The engine around its parts: what is announced and answered, and the jobs from submit to done. */
#include "ref/base/number.h"
#include "ref/transfer/transfer_internal.h"

#include <stdio.h>

enum {
    PORT_TRIES = 500,
    PEERS_MAX = 1024, /* with jobs they may be more */
    TIMESTAMP_BYTES = 64,
    NS_PER_US = 1000,
};

static struct moon_transfer_job_state *state_of(struct moon_list *link) {
    return MOON_HOLDER(link, struct moon_transfer_job_state, link);
}

struct moon_transfer_settings moon_transfer_defaults(void) {
    return (struct moon_transfer_settings){
        .host = "127.0.0.1",
        .release = moon_wire_releases[0],
        .data_version = 2,
        .min_port = 15000,
        .max_port = 17000,
        .stall_timeout_ns = 30 * MOON_NS_PER_S,
    };
}

/* ---- what is announced and answered */

/* "2026-11-29 12:37:58.123294", UTC. The calendar repeats every 400 years of 146097 days; counted from the first of
 * March, a leap day is the last day of its year and the months before it have 153 days in each five. */
static void write_timestamp(moon_ns wall_ns, char text[TIMESTAMP_BYTES]) {
    int64_t seconds = wall_ns / MOON_NS_PER_S, days = seconds / 86400 + 719468; /* since 0000-03-01 */
    int64_t cycle = days / 146097, day = days % 146097;
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    int64_t month = (5 * day + 2) / 153;
    day -= (153 * month + 2) / 5;
    bool next_year = month >= 10;
    snprintf(text, TIMESTAMP_BYTES, "%04d-%02d-%02d %02d:%02d:%02d.%06d", (int)(400 * cycle + year + next_year),
             (int)(next_year ? month - 9 : month + 3), (int)day + 1, (int)(seconds / 3600 % 24),
             (int)(seconds / 60 % 60), (int)(seconds % 60), (int)(wall_ns % MOON_NS_PER_S / NS_PER_US));
}

static void describe_tcp(const struct moon_transfer *transfer, struct moon_arena *arena, const char *timestamp,
                         struct moon_text *out) {
    const struct moon_regions *regions = &transfer->regions;
    struct moon_wire_buffer *buffers = moon_arena_array(arena, regions->count, sizeof *buffers);
    if (!buffers) {
        out->failed = true;
        return;
    }
    for (size_t i = 0; i < regions->count; i++)
        buffers[i] = (struct moon_wire_buffer){transfer->endpoint, regions->rows[i].address, regions->rows[i].length};
    struct moon_wire_descriptor descriptor = {
        .name = transfer->endpoint,
        .protocol = "tcp",
        .data_host = transfer->host,
        .rdma_server_name = "",
        .timestamp = timestamp,
        .data_port = transfer->data_port,
        .data_version = transfer->settings.data_version,
        .buffers = buffers,
        .buffer_count = regions->count,
    };
    moon_wire_write_descriptor(arena, &descriptor, transfer->settings.release->metadata, out);
}

bool moon_transfer_describe(struct moon_transfer *transfer, struct moon_text *out) {
    char timestamp[TIMESTAMP_BYTES];
    struct moon_arena arena;
    write_timestamp(transfer->environment->wall_ns, timestamp);
    moon_arena_open(&arena, transfer->environment->memory);
    if (transfer->rdma)
        moon_rdma_describe(transfer->rdma, &arena, timestamp, out);
    else
        describe_tcp(transfer, &arena, timestamp, out);
    moon_arena_close(&arena);
    return !out->failed;
}

static bool is_json(struct moon_memory *memory, const char *json, size_t length) {
    struct moon_json *tree = NULL;
    struct moon_error error;
    struct moon_arena arena;
    moon_arena_open(&arena, memory);
    bool good = moon_json_read(&arena, "question", json, length, MOON_JSON_PYTHON, &tree, &error) == 0;
    moon_arena_close(&arena);
    return good;
}

static bool answer(struct moon_handshake_responder *self, const struct moon_wire_handshake *question,
                   struct moon_text *out) {
    struct moon_transfer *transfer = (struct moon_transfer *)self;
    if (!is_json(transfer->environment->memory, question->json, question->length))
        return false;
    switch ((enum moon_wire_handshake_type)question->type) {
    case MOON_WIRE_HANDSHAKE_METADATA:
        return moon_transfer_describe(transfer, out);
    case MOON_WIRE_HANDSHAKE_NOTIFY:
        moon_text_string(out, "{\"name\":\"\",\"notify_msg\":\"success\"}\n");
        return true;
    case MOON_WIRE_HANDSHAKE_PROBE:
        moon_text_string(out, "{\"status\":\"success\"}\n");
        return true;
    case MOON_WIRE_HANDSHAKE_CONNECTION:
        break;
    }
    if (transfer->rdma)
        return moon_rdma_answer(transfer->rdma, question, out);
    moon_text_string(out, "{\"local_gid\":\"\",\"local_lid\":0,\"local_nic_path\":\"\",\"payload\":\"\","
                          "\"peer_nic_path\":\"\",\"qp_num\":[],\"reply_msg\":\"\"}\n");
    return true;
}

/* ---- opening */

/* Tries ports until `listen` takes one. Fills `endpoint`. */
static int bind_port(struct moon_transfer *transfer,
                     int (*listen)(struct moon_transfer *transfer, const char *endpoint, struct moon_error *error),
                     char endpoint[MOON_ENDPOINT_BYTES], uint16_t *port, struct moon_error *error) {
    const struct moon_transfer_settings *settings = &transfer->settings;
    const char *host = transfer->host;
    int status = MOON_ERR_IO;
    for (int i = 0; i < PORT_TRIES && status == MOON_ERR_IO; i++) {
        *port = (uint16_t)moon_random_between(&transfer->environment->random, settings->min_port, settings->max_port);
        bool bare = strchr(host, ':') && *host != '[';
        if (snprintf(endpoint, MOON_ENDPOINT_BYTES, bare ? "[%s]:%u" : "%s:%u", host, (unsigned)*port) >=
            MOON_ENDPOINT_BYTES)
            return moon_fail(error, MOON_ERR_RANGE, NULL, "the host name \"%s\" is too long", host);
        status = listen(transfer, endpoint, error);
    }
    return status;
}

static int listen_handshake(struct moon_transfer *transfer, const char *endpoint, struct moon_error *error) {
    return moon_handshake_server_open(transfer->environment, &transfer->responder, endpoint,
                                      &transfer->handshake_server, error);
}

static int listen_data(struct moon_transfer *transfer, const char *endpoint, struct moon_error *error) {
    return moon_data_server_open(transfer->environment, &transfer->regions, transfer->endpoint, endpoint,
                                 &transfer->data_server, error);
}

/* The part that moves bytes. */
static int open_data(struct moon_transfer *transfer, struct moon_error *error) {
    const struct moon_transfer_settings *settings = &transfer->settings;
    char endpoint[MOON_ENDPOINT_BYTES];
    if (!settings->verbs)
        return bind_port(transfer, listen_data, endpoint, &transfer->data_port, error);
    struct moon_rdma_settings rdma = {.name = transfer->endpoint,
                                      .verbs = settings->verbs,
                                      .client = transfer->handshake_client,
                                      .regions = &transfer->regions,
                                      .stall_timeout_ns = settings->stall_timeout_ns};
    transfer->rdma = moon_rdma_open(transfer->environment, &rdma);
    return transfer->rdma ? MOON_OK : moon_no_memory(error);
}

int moon_transfer_open(struct moon_environment *environment, const struct moon_transfer_settings *settings,
                       struct moon_transfer **transfer, struct moon_error *error) {
    struct moon_memory *memory = environment->memory;
    uint16_t port = 0;
    struct moon_transfer *made = memory->resize(memory, NULL, 0, sizeof *made);
    if (!made)
        return moon_no_memory(error);
    *made = (struct moon_transfer){.responder = {.answer = answer}, .environment = environment, .settings = *settings};
    snprintf(made->host, sizeof made->host, "%s", settings->host);
    made->settings.host = made->host;
    moon_regions_open(&made->regions, memory);
    moon_text_open(&made->header, memory);
    moon_list_open(&made->peers);
    moon_list_open(&made->waiting);
    moon_list_open(&made->finished);
    made->handshake_client = moon_handshake_client_open(environment);
    int status = made->handshake_client ? MOON_OK : moon_no_memory(error);
    if (!status)
        status = bind_port(made, listen_handshake, made->endpoint, &port, error);
    if (!status)
        status = open_data(made, error);
    if (status)
        moon_transfer_close(made);
    else
        *transfer = made;
    return status;
}

static void free_state(struct moon_transfer *transfer, struct moon_transfer_job_state *state) {
    struct moon_memory *memory = transfer->environment->memory;
    moon_list_leave(&state->link);
    memory->resize(memory, state, sizeof *state, 0);
}

void moon_transfer_close(struct moon_transfer *transfer) {
    if (!transfer)
        return;
    struct moon_memory *memory = transfer->environment->memory;
    while (!moon_list_empty(&transfer->peers))
        moon_peer_close(MOON_HOLDER(transfer->peers.next, struct moon_peer, link));
    while (!moon_list_empty(&transfer->finished))
        free_state(transfer, state_of(transfer->finished.next));
    moon_rdma_close(transfer->rdma);
    moon_data_server_close(transfer->data_server);
    moon_handshake_server_close(transfer->handshake_server);
    moon_handshake_client_close(transfer->handshake_client);
    if (transfer->settings.verbs)
        for (size_t i = 0; i < transfer->regions.count; i++)
            transfer->settings.verbs->deregister_memory(transfer->settings.verbs, transfer->regions.rows[i].lkey);
    moon_regions_close(&transfer->regions);
    moon_text_close(&transfer->header);
    memory->resize(memory, transfer, sizeof *transfer, 0);
}

const char *moon_transfer_endpoint(const struct moon_transfer *transfer) {
    return transfer->endpoint;
}

const char *moon_transfer_protocol(const struct moon_transfer *transfer) {
    return transfer->settings.verbs ? "rdma" : "tcp";
}

/* ---- memory */

int moon_transfer_register(struct moon_transfer *transfer, void *memory, uint64_t address, size_t length, bool remote) {
    struct moon_verbs *verbs = transfer->settings.verbs;
    struct moon_region region = {.address = address, .memory = memory, .length = length, .remote = remote};
    if (verbs && verbs->register_memory(verbs, memory, address, length, remote, &region.lkey, &region.rkey))
        return MOON_ERR_IO;
    int status = moon_regions_add(&transfer->regions, &region);
    if (status && verbs)
        verbs->deregister_memory(verbs, region.lkey);
    return status;
}

int moon_transfer_unregister(struct moon_transfer *transfer, uint64_t address) {
    struct moon_verbs *verbs = transfer->settings.verbs;
    const struct moon_region *region = moon_regions_find(&transfer->regions, address, 1);
    if (!region || region->address != address)
        return MOON_ERR_RANGE;
    if (verbs)
        verbs->deregister_memory(verbs, region->lkey);
    else
        moon_data_server_leave(transfer->data_server, address);
    return moon_regions_remove(&transfer->regions, address);
}

/* ---- jobs */

static void skip_empty(struct moon_transfer_job_state *state) {
    const struct moon_transfer_job *job = state->job;
    while (state->piece < job->piece_count && job->pieces[state->piece].length == state->offset) {
        state->piece++;
        state->offset = 0;
    }
}

struct moon_lane_request moon_job_take(struct moon_transfer_job_state *state) {
    const struct moon_piece *piece = &state->job->pieces[state->piece];
    struct moon_lane_request request = {{(uint8_t *)piece->data + state->offset, piece->length - state->offset},
                                        state->remote};
    if (state->job->write && request.piece.length > MOON_TRANSFER_TCP_WRITE_BYTES_MAX)
        request.piece.length = MOON_TRANSFER_TCP_WRITE_BYTES_MAX;
    state->offset += request.piece.length;
    state->remote += request.piece.length;
    skip_empty(state);
    return request;
}

void moon_job_record(const struct moon_transfer_job_state *state, uint64_t remote, uint64_t length, int code) {
    const struct moon_transfer_job *job = state->job;
    const struct moon_extent extent = {moon_bytes_of(job->endpoint), remote, length};
    moon_transfer_record_moved(state->transfer->environment, job->write, job->op, &extent, code);
}

void moon_job_finish(struct moon_transfer_job_state *state, int code) {
    state->code = code;
    state->peer = NULL;
    moon_list_move(&state->transfer->finished, &state->link);
}

/* A job on the own endpoint. */
static int copy(struct moon_transfer_job_state *state) {
    int code = MOON_STORE_OK;
    while (moon_job_has_request(state) && !code) {
        struct moon_lane_request request = moon_job_take(state);
        size_t length = request.piece.length;
        const struct moon_region *region = moon_regions_find(&state->transfer->regions, request.remote, length);
        code = region ? MOON_STORE_OK : MOON_STORE_TRANSFER_FAIL;
        if (region) {
            uint8_t *remote = region->memory + (request.remote - region->address);
            memmove(state->job->write ? remote : request.piece.data, state->job->write ? request.piece.data : remote,
                    length);
        }
        moon_job_record(state, request.remote, length, code);
    }
    return code;
}

/* The pieces' lengths fit behind `remote`. */
static bool fits(const struct moon_transfer_job *job) {
    uint64_t end = job->remote;
    for (size_t i = 0; i < job->piece_count; i++)
        if (__builtin_add_overflow(end, job->pieces[i].length, &end))
            return false;
    return true;
}

static struct moon_peer *find_peer(struct moon_transfer *transfer, const char *endpoint) {
    for (struct moon_list *link = transfer->peers.previous; link != &transfer->peers; link = link->previous) {
        struct moon_peer *peer = MOON_HOLDER(link, struct moon_peer, link);
        if (strcmp(peer->endpoint, endpoint) == 0)
            return peer;
    }
    return NULL;
}

/* Forgets the peer without jobs that was used longest ago. */
static void forget_a_peer(struct moon_transfer *transfer) {
    for (struct moon_list *link = transfer->peers.next; link != &transfer->peers; link = link->next) {
        struct moon_peer *peer = MOON_HOLDER(link, struct moon_peer, link);
        if (!moon_list_empty(&peer->jobs))
            continue;
        moon_peer_close(peer);
        transfer->peer_count--;
        return;
    }
}

static struct moon_peer *get_peer(struct moon_transfer *transfer, const char *endpoint) {
    struct moon_peer *peer = find_peer(transfer, endpoint);
    if (!peer) {
        peer = moon_peer_open(transfer, endpoint);
        if (!peer)
            return NULL;
        if (transfer->peer_count++ >= PEERS_MAX)
            forget_a_peer(transfer);
    }
    moon_list_move(&transfer->peers, &peer->link);
    return peer;
}

int moon_transfer_submit(struct moon_transfer *transfer, struct moon_transfer_job *job) {
    struct moon_memory *memory = transfer->environment->memory;
    struct moon_transfer_job_state *state = memory->resize(memory, NULL, 0, sizeof *state);
    if (!state)
        return MOON_ERR_MEMORY;
    *state = (struct moon_transfer_job_state){.transfer = transfer, .job = job, .remote = job->remote};
    skip_empty(state);
    state->local = strcmp(job->endpoint, transfer->endpoint) == 0;
    if (!fits(job) || strlen(job->endpoint) >= MOON_ENDPOINT_BYTES) {
        moon_job_finish(state, MOON_STORE_TRANSFER_FAIL);
    } else if (state->local || !moon_job_has_request(state)) {
        moon_job_finish(state, MOON_STORE_OK);
    } else {
        struct moon_peer *peer = get_peer(transfer, job->endpoint);
        if (!peer) {
            free_state(transfer, state);
            return MOON_ERR_MEMORY;
        }
        moon_peer_submit(peer, state);
    }
    job->state = state;
    return MOON_OK;
}

void moon_transfer_cancel(struct moon_transfer *transfer, struct moon_transfer_job *job) {
    struct moon_transfer_job_state *state = job->state;
    struct moon_peer *peer = state->peer;
    if (peer)
        moon_peer_cancel(peer, state);
    free_state(transfer, state);
    job->state = NULL;
    if (peer)
        moon_peer_pump(peer);
}

/* ---- time */

static struct moon_lane *first_waiting(const struct moon_transfer *transfer) {
    return MOON_HOLDER(transfer->waiting.next, struct moon_lane, waiting);
}

static moon_ns lane_deadline(const struct moon_transfer *transfer) {
    if (moon_list_empty(&transfer->waiting))
        return MOON_NS_NEVER;
    return first_waiting(transfer)->since_ns + transfer->settings.stall_timeout_ns;
}

moon_ns moon_transfer_deadline(const struct moon_transfer *transfer) {
    if (!moon_list_empty(&transfer->finished))
        return transfer->environment->now_ns;
    moon_ns deadline = moon_smaller(moon_handshake_server_deadline(transfer->handshake_server),
                                    moon_handshake_client_deadline(transfer->handshake_client));
    deadline = moon_smaller(deadline, lane_deadline(transfer));
    return moon_smaller(deadline, transfer->rdma ? moon_rdma_deadline(transfer->rdma)
                                                 : moon_data_server_deadline(transfer->data_server));
}

/* Jobs that a done() submits wait for the next tick, so that a tick has an end. */
static void tell_finished(struct moon_transfer *transfer) {
    struct moon_list due;
    moon_list_open(&due);
    while (!moon_list_empty(&transfer->finished))
        moon_list_move(&due, transfer->finished.next);
    while (!moon_list_empty(&due)) {
        struct moon_transfer_job_state *state = state_of(due.next);
        struct moon_transfer_job *job = state->job;
        int code = state->local && !state->code ? copy(state) : state->code;
        free_state(transfer, state);
        job->state = NULL;
        job->done(job, code);
    }
}

void moon_transfer_tick(struct moon_transfer *transfer) {
    moon_handshake_server_tick(transfer->handshake_server);
    moon_handshake_client_tick(transfer->handshake_client);
    if (transfer->rdma)
        moon_rdma_tick(transfer->rdma);
    else
        moon_data_server_tick(transfer->data_server);
    while (lane_deadline(transfer) <= transfer->environment->now_ns)
        moon_lane_lose(first_waiting(transfer));
    tell_finished(transfer);
}
