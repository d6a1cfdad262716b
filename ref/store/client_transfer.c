/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers of the client: a key's bytes to or from its replicas. */
#include "ref/store/client_internal.h"

#include <assert.h>

bool moon_client_jobs_open(struct moon_client_key *key, size_t count) {
    key->jobs = moon_arena_array(&key->state->arena, count, sizeof *key->jobs);
    return key->jobs != NULL;
}

/* The first key->bytes bytes of the item's pieces: its own array, or a shorter copy of it if there is more room. */
static bool cut_pieces(struct moon_client_key *key, struct moon_transfer_job *job) {
    const struct moon_client_item *item = key->item;
    uint64_t left = key->bytes;
    size_t count = 0;
    while (count < item->piece_count && left >= item->pieces[count].length)
        left -= item->pieces[count++].length;
    job->pieces = item->pieces;
    job->piece_count = count;
    if (left == 0)
        return true;
    assert(count < item->piece_count);
    struct moon_piece *pieces = moon_arena_array(&key->state->arena, count + 1, sizeof *pieces);
    if (!pieces)
        return false;
    memcpy(pieces, item->pieces, (count + 1) * sizeof *pieces);
    pieces[count].length = (size_t)left;
    job->pieces = pieces;
    job->piece_count = count + 1;
    return true;
}

static void done(struct moon_transfer_job *job, int code) {
    struct moon_client_job *its = (struct moon_client_job *)job;
    struct moon_client_key *key = its->key;
    assert(its->running);
    its->running = false;
    key->state->jobs_left--;
    if (!key->code)
        key->code = code;
    if (job->write)
        moon_client_put_moved(key);
    else
        moon_client_get_moved(key);
}

int64_t moon_client_job_add(struct moon_client_key *key, const struct moon_client_replica *replica) {
    struct moon_client_job *job = &key->jobs[key->job_count];
    struct moon_bytes endpoint = replica->endpoint;
    if (endpoint.length == 0 || endpoint.length >= MOON_ENDPOINT_BYTES || memchr(endpoint.data, 0, endpoint.length))
        return MOON_STORE_TRANSFER_FAIL;
    job->key = key;
    job->job = (struct moon_transfer_job){
        .endpoint = moon_arena_copy(&key->state->arena, endpoint.data, endpoint.length),
        .remote = replica->address,
        .write = key->state->operation->kind == MOON_CLIENT_PUT,
        .op = key->op,
        .done = done,
    };
    if (!job->job.endpoint || !cut_pieces(key, &job->job))
        return MOON_STORE_INTERNAL_ERROR;
    key->job_count++;
    return 0;
}

void moon_client_jobs_start(struct moon_client_key *key) {
    struct moon_client_operation_state *state = key->state;
    for (size_t i = 0; i < key->job_count && !key->code; i++) {
        if (moon_transfer_submit(state->client->transfer, &key->jobs[i].job)) {
            key->code = MOON_STORE_INTERNAL_ERROR;
            continue;
        }
        key->jobs[i].running = true;
        state->jobs_left++;
    }
}
