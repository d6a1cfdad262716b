/* SPDX-License-Identifier: Apache-2.0 */
/* Block hash chains: append tokens, get the hashes of the blocks that became full; one chain, or a batch of them. */
#include "ref/hash/chain.h"

#include "ref/hash/template.h"

#include <assert.h>
#include <string.h>

static const struct moon_identity no_identity;

void moon_hasher_open(struct moon_hasher *hasher, enum moon_hash_algorithm algorithm, struct moon_memory *memory) {
    hasher->algorithm = algorithm;
    hasher->cpu = moon_cpu_detect();
    moon_preimage_open(&hasher->preimage, moon_hash_algorithm_serialisation(algorithm), memory);
}

void moon_hasher_close(struct moon_hasher *hasher) {
    moon_preimage_close(&hasher->preimage);
}

/* The sink of pre-images that are digested as they are written. */
struct digest_tap {
    struct moon_digest *digest;
    const struct moon_sink *string_tap;
    const struct moon_chain_tap *chain_tap;
    uint64_t block;
};

static void digest_write(void *context, const void *bytes, size_t length) {
    struct digest_tap *tap = context;
    moon_digest_add(tap->digest, bytes, length);
    if (tap->string_tap)
        tap->string_tap->write(tap->string_tap->context, bytes, length);
    if (tap->chain_tap && tap->chain_tap->write)
        tap->chain_tap->write(tap->chain_tap->context, tap->block, bytes, length);
}

int moon_hasher_string(struct moon_hasher *hasher, const struct moon_string *string, const struct moon_sink *tap,
                       uint8_t out[MOON_DIGEST_BYTES_MAX], struct moon_error *error) {
    struct digest_tap context = {.digest = &hasher->digest, .string_tap = tap};
    moon_digest_start(&hasher->digest, hasher->algorithm);
    moon_preimage_begin(&hasher->preimage, (struct moon_sink){digest_write, &context}, error);
    moon_preimage_str(&hasher->preimage, string);
    int status = moon_preimage_finish(&hasher->preimage);
    if (status == 0)
        moon_digest_end(&hasher->digest, out);
    return status;
}

void moon_chain_open(struct moon_chain *chain, struct moon_hasher *hasher, const struct moon_chain_options *options,
                     struct moon_memory *memory) {
    assert(options->block_tokens >= 1 && options->block_tokens <= MOON_BLOCK_TOKENS_MAX);
    assert(options->lookahead_tokens <= MOON_LOOKAHEAD_TOKENS_MAX);
    assert(options->none_hash_bytes <= MOON_DIGEST_BYTES_MAX);
    *chain = (struct moon_chain){.hasher = hasher,
                                 .memory = memory,
                                 .options = *options,
                                 .parent_bytes = options->none_hash_bytes,
                                 .digest_bytes = moon_hash_algorithm_bytes(hasher->algorithm)};
    memcpy(chain->parent, options->none_hash, options->none_hash_bytes);
    if (!chain->options.identity)
        chain->options.identity = &no_identity;
}

/* Tokens that must be there before the next block is hashed. */
static size_t window_tokens(const struct moon_chain *chain) {
    return (size_t)chain->options.block_tokens + chain->options.lookahead_tokens;
}

void moon_chain_close(struct moon_chain *chain) {
    if (chain->pending)
        chain->memory->resize(chain->memory, chain->pending, window_tokens(chain) * sizeof *chain->pending, 0);
    chain->pending = NULL;
    chain->pending_tokens = 0;
}

size_t moon_chain_blocks_after(const struct moon_chain *chain, size_t tokens) {
    size_t have = chain->pending_tokens + tokens, ahead = chain->options.lookahead_tokens;
    return have < ahead ? 0 : (have - ahead) / chain->options.block_tokens;
}

/* Tokens of an append that are not consumed yet. */
struct feed {
    const int64_t *tokens;
    size_t left;
};

/* Points *block at the tokens of the next full block and its look-ahead, in the caller's memory where possible, or sets
 * it to NULL after keeping the rest for the next append. */
static int next_block(struct moon_chain *chain, struct feed *feed, const int64_t **block, struct moon_error *error) {
    size_t window = window_tokens(chain);
    *block = NULL;
    if (chain->pending_tokens == 0 && chain->options.lookahead_tokens == 0 && feed->left >= window) {
        *block = feed->tokens;
        feed->tokens += window;
        feed->left -= window;
        return 0;
    }
    if (feed->left == 0)
        return 0;
    if (!chain->pending) {
        chain->pending = chain->memory->resize(chain->memory, NULL, 0, window * sizeof *chain->pending);
        if (!chain->pending)
            return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a block of %zu tokens", window);
    }
    size_t take = window - chain->pending_tokens < feed->left ? window - chain->pending_tokens : feed->left;
    memcpy(chain->pending + chain->pending_tokens, feed->tokens, take * sizeof *feed->tokens);
    chain->pending_tokens += take;
    feed->tokens += take;
    feed->left -= take;
    if (chain->pending_tokens == window)
        *block = chain->pending;
    return 0;
}

/* Steps over a block whose tokens are no longer needed. */
static void leave_block(struct moon_chain *chain, const int64_t *block) {
    chain->blocks++;
    if (block != chain->pending)
        return;
    size_t ahead = chain->options.lookahead_tokens;
    memmove(chain->pending, chain->pending + chain->options.block_tokens, ahead * sizeof *chain->pending);
    chain->pending_tokens = ahead;
}

static void find_extra(struct moon_chain *chain, struct moon_extra *extra) {
    uint64_t start = chain->blocks * chain->options.block_tokens, end = start + chain->options.block_tokens;
    moon_extra_find(chain->options.identity, start, end + chain->options.lookahead_tokens, &chain->scan, extra);
    if (chain->options.lookahead_tokens > 0)
        moon_extra_rewind(chain->options.identity, end, &chain->scan);
}

/* A block on its way. Making a message does not need the parent, so the next one is made before the hash of this one is
 * computed: the CPU does both at the same time. */
struct message {
    const int64_t *block; /* NULL: the append has no more blocks */
    uint64_t number;
    size_t length;        /* of an ordinary block's pre-image, parent missing; 0: the general writer is needed */
    size_t sha256_blocks; /* of the ordinary message, padded */
    struct moon_extra extra;
    uint8_t bytes[MOON_TEMPLATE_BYTES];
};

/* Takes the next block of the append. An ordinary one is left at once, so the one after it can be made too; another
 * stays the chain's present block until hash_general is done with it. */
static int make_message(struct moon_chain *chain, struct feed *feed, struct message *message,
                        struct moon_error *error) {
    const struct moon_chain_options *options = &chain->options;
    int status = next_block(chain, feed, &message->block, error);
    if (status || !message->block)
        return status;
    message->number = chain->blocks;
    message->length = 0;
    message->extra.count = 0;
    if (options->identity != &no_identity)
        find_extra(chain, &message->extra);
    if (message->extra.count == 0 && options->lookahead_tokens == 0 &&
        options->block_tokens <= MOON_TEMPLATE_TOKENS_MAX)
        message->length = moon_template_write(
            chain->hasher->preimage.serialisation, chain->blocks == 0 ? options->none_hash_bytes : chain->digest_bytes,
            message->block, options->block_tokens, &chain->hasher->cpu, message->bytes);
    if (message->length > 0) {
        leave_block(chain, message->block);
        if (moon_hash_algorithm_is_sha256(chain->hasher->algorithm))
            message->sha256_blocks = moon_sha256_pad(message->bytes, message->length);
    }
    return 0;
}

/* Completes an ordinary message now that its parent is known. */
static void set_parent(struct moon_chain *chain, struct message *message) {
    const struct moon_chain_tap *tap = &chain->options.tap;
    moon_template_parent(chain->hasher->preimage.serialisation, chain->parent, chain->parent_bytes, message->bytes);
    if (tap->write)
        tap->write(tap->context, message->number, message->bytes, message->length);
}

static void hash_ordinary(struct moon_chain *chain, struct message *message) {
    struct moon_sha256 state;
    set_parent(chain, message);
    if (!moon_hash_algorithm_is_sha256(chain->hasher->algorithm)) {
        moon_xxh3_of(message->bytes, message->length, chain->parent);
        return;
    }
    moon_sha256_start(&state);
    moon_sha256_blocks(&state, message->bytes, message->sha256_blocks, chain->hasher->cpu.sha);
    moon_sha256_digest(&state, chain->parent);
}

/* Any block: pre-image through the general writer, digested on the way. */
static int hash_general(struct moon_chain *chain, const struct message *message, struct moon_error *error) {
    const struct moon_chain_options *options = &chain->options;
    struct moon_preimage *preimage = &chain->hasher->preimage;
    struct digest_tap context = {
        .digest = &chain->hasher->digest, .chain_tap = &options->tap, .block = message->number};
    moon_digest_start(&chain->hasher->digest, chain->hasher->algorithm);
    moon_preimage_begin(preimage, (struct moon_sink){digest_write, &context}, error);
    moon_preimage_tuple_begin(preimage, 3);
    moon_preimage_bytes(preimage,
                        &(struct moon_string){.bytes = (const char *)chain->parent, .length = chain->parent_bytes});
    moon_preimage_tuple_begin(preimage, options->block_tokens);
    for (size_t i = 0; i < options->block_tokens; i++)
        moon_preimage_int(preimage, message->block[i]);
    moon_preimage_tuple_end(preimage, options->block_tokens);
    if (options->lookahead_tokens > 0) {
        size_t count = (size_t)options->lookahead_tokens + 1;
        moon_preimage_tuple_begin(preimage, count);
        moon_extra_write(options->profile, options->identity, &message->extra, preimage);
        for (size_t i = 0; i < options->lookahead_tokens; i++)
            moon_preimage_int(preimage, message->block[options->block_tokens + i]);
        moon_preimage_tuple_end(preimage, count);
    } else {
        moon_extra_write(options->profile, options->identity, &message->extra, preimage);
    }
    moon_preimage_tuple_end(preimage, 3);
    int status = moon_preimage_finish(preimage);
    if (status == 0)
        moon_digest_end(&chain->hasher->digest, chain->parent);
    leave_block(chain, message->block);
    return status;
}

/* Notes the digest that stands in chain->parent. */
static uint8_t *give_hash(struct moon_chain *chain, uint8_t *hashes) {
    chain->parent_bytes = chain->digest_bytes;
    if (chain->digest_bytes == MOON_SHA256_BYTES) /* of constant size, so that it is no call */
        memcpy(hashes, chain->parent, MOON_SHA256_BYTES);
    else
        memcpy(hashes, chain->parent, chain->digest_bytes);
    return hashes + chain->digest_bytes;
}

static void begin_append(struct moon_chain *chain) {
    const struct moon_chain_options *options = &chain->options;
    chain->scan = moon_extra_resume(options->profile, options->identity, chain->blocks * options->block_tokens);
}

int moon_chain_append(struct moon_chain *chain, const int64_t *tokens, size_t count, uint8_t *hashes,
                      struct moon_error *error) {
    struct message messages[2];
    struct message *now = &messages[0], *next = &messages[1];
    struct feed feed = {tokens, count};
    begin_append(chain);
    int status = make_message(chain, &feed, now, error);
    while (status == 0 && now->block) {
        struct message *done = now;
        if (now->length > 0) {
            status = make_message(chain, &feed, next, error);
            hash_ordinary(chain, now);
        } else {
            status = hash_general(chain, now, error);
            if (status == 0)
                status = make_message(chain, &feed, next, error);
        }
        hashes = give_hash(chain, hashes);
        now = next;
        next = done;
    }
    return status;
}

/* One of the messages that are compressed side by side, and the one that follows it in its chain. */
struct lane {
    struct moon_chain *chain; /* NULL: the lane has run out of jobs */
    struct feed feed;
    uint8_t *hashes;
    struct moon_sha256 state;
    const uint8_t *at;  /* block of the message that is compressed next */
    size_t blocks_left; /* of the message */
    struct message *now, *next;
    struct message messages[2];
};

/* Jobs that no lane has taken yet. */
struct queue {
    struct moon_chain_job *jobs;
    size_t left;
};

/* Starts the lane's present message; messages that are not ordinary are hashed on the way. now->block is NULL
 * afterwards if the job is done. */
static int lane_start_message(struct lane *lane, struct moon_error *error) {
    struct message *now = lane->now;
    while (now->block && now->length == 0) {
        int status = hash_general(lane->chain, now, error);
        if (status)
            return status;
        lane->hashes = give_hash(lane->chain, lane->hashes);
        status = make_message(lane->chain, &lane->feed, now, error);
        if (status)
            return status;
    }
    if (!now->block)
        return 0;
    set_parent(lane->chain, now);
    lane->at = now->bytes;
    lane->blocks_left = now->sha256_blocks;
    moon_sha256_start(&lane->state);
    return make_message(lane->chain, &lane->feed, lane->next, error);
}

/* Gives the lane a message: from the jobs that are left, the first one that has any. */
static int lane_take_job(struct lane *lane, struct queue *queue, struct moon_error *error) {
    lane->now = &lane->messages[0];
    lane->next = &lane->messages[1];
    while (queue->left > 0) {
        const struct moon_chain_job *job = queue->jobs++;
        queue->left--;
        lane->chain = job->chain;
        lane->feed = (struct feed){job->tokens, job->count};
        lane->hashes = job->hashes;
        begin_append(lane->chain);
        int status = make_message(lane->chain, &lane->feed, lane->now, error);
        if (status == 0)
            status = lane_start_message(lane, error);
        if (status || lane->now->block)
            return status;
    }
    lane->chain = NULL;
    return 0;
}

/* Notes that `blocks` of the message are done; at its end, takes the digest and goes on with the next message. */
static int lane_step(struct lane *lane, size_t blocks, struct queue *queue, struct moon_error *error) {
    lane->at += blocks * MOON_SHA256_BLOCK_BYTES;
    lane->blocks_left -= blocks;
    if (lane->blocks_left > 0)
        return 0;
    moon_sha256_digest(&lane->state, lane->chain->parent);
    lane->hashes = give_hash(lane->chain, lane->hashes);
    struct message *done = lane->now;
    lane->now = lane->next;
    lane->next = done;
    int status = lane_start_message(lane, error);
    return status || lane->now->block ? status : lane_take_job(lane, queue, error);
}

static int append_in_lanes(struct queue *queue, struct moon_error *error) {
    struct lane lanes[2];
    struct lane *a = &lanes[0], *b = &lanes[1];
    b->chain = NULL;
    int status = lane_take_job(a, queue, error);
    if (status == 0)
        status = lane_take_job(b, queue, error);
    while (status == 0 && a->chain && b->chain) {
        size_t blocks = a->blocks_left < b->blocks_left ? a->blocks_left : b->blocks_left;
        moon_sha256_pair(&a->state, a->at, &b->state, b->at, blocks, true);
        status = lane_step(a, blocks, queue, error);
        if (status == 0)
            status = lane_step(b, blocks, queue, error);
    }
    struct lane *last = a->chain ? a : b;
    while (status == 0 && last->chain) {
        moon_sha256_blocks(&last->state, last->at, last->blocks_left, true);
        status = lane_step(last, last->blocks_left, queue, error);
    }
    return status;
}

int moon_chain_append_batch(struct moon_chain_job *jobs, size_t count, struct moon_error *error) {
    if (count == 0)
        return 0;
    const struct moon_hasher *hasher = jobs[0].chain->hasher;
    if (hasher->cpu.sha && moon_hash_algorithm_is_sha256(hasher->algorithm))
        return append_in_lanes(&(struct queue){jobs, count}, error);
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++)
        status = moon_chain_append(jobs[i].chain, jobs[i].tokens, jobs[i].count, jobs[i].hashes, error);
    return status;
}
