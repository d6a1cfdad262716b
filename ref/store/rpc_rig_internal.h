/* SPDX-License-Identifier: Apache-2.0 */
/* Test tool: streams between users in one process, a node with refusing memory and a list of records, a raw peer. */
#ifndef MOON_STORE_RPC_RIG_INTERNAL_H
#define MOON_STORE_RPC_RIG_INTERNAL_H

#include "ref/base/environment.h"
#include "ref/base/text.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- streams */

struct rig_stream {
    struct moon_stream stream; /* first member */
    struct rig *rig;
    struct rig_stream *peer, *before, *after, *next_work;
    struct moon_piece pieces[MOON_STREAM_PIECES_MAX];
    size_t piece_count, piece, offset;
    bool listens, connecting, sent_due, paused, ended, dead, queued;
};

/* chunk: bytes that arrive at once, 0: as many as fit. hold_sent: sent() waits. no_open: open refuses at once.
 * mute_connects: connections never come about. */
struct rig {
    struct moon_streams streams; /* first member */
    struct rig_stream all, *work, **work_end;
    size_t chunk, open_count;
    unsigned next_port;
    bool hold_sent, no_open, mute_connects;
};

static inline void rig_queue(struct rig_stream *s) {
    struct rig *rig = s->rig;
    if (s->queued)
        return;
    s->queued = true;
    s->next_work = NULL;
    *rig->work_end = s;
    rig->work_end = &s->next_work;
}

static inline struct rig_stream *rig_stream_new(struct rig *rig, struct moon_stream_user *user) {
    struct rig_stream *s = calloc(1, sizeof *s);
    assert(s);
    s->rig = rig;
    s->stream.user = user;
    s->before = rig->all.before;
    s->after = &rig->all;
    rig->all.before->after = s;
    rig->all.before = s;
    rig->open_count++;
    return s;
}

/* Dead streams are freed when the work comes to them, so that a step may look at them. */
static inline void rig_kill(struct rig_stream *s) {
    assert(!s->dead);
    s->dead = true;
    s->rig->open_count--;
    if (s->peer) {
        s->peer->peer = NULL;
        s->peer->ended = true;
        rig_queue(s->peer);
    }
    s->peer = NULL;
    rig_queue(s);
}

static inline struct moon_stream *rig_open(struct moon_streams *self, const char *endpoint,
                                           struct moon_stream_user *user) {
    struct rig *rig = (struct rig *)self;
    if (rig->no_open)
        return NULL;
    struct rig_stream *s = rig_stream_new(rig, user);
    snprintf(s->stream.peer, sizeof s->stream.peer, "%.63s", endpoint);
    s->connecting = true;
    rig_queue(s);
    return &s->stream;
}

static inline struct rig_stream *rig_listener(struct rig *rig, const char *endpoint) {
    for (struct rig_stream *s = rig->all.after; s != &rig->all; s = s->after)
        if (s->listens && !s->dead && strcmp(s->stream.local, endpoint) == 0)
            return s;
    return NULL;
}

static inline struct moon_stream *rig_listen(struct moon_streams *self, const char *endpoint,
                                             struct moon_stream_user *user) {
    struct rig *rig = (struct rig *)self;
    if (rig->no_open || rig_listener(rig, endpoint))
        return NULL;
    struct rig_stream *s = rig_stream_new(rig, user);
    snprintf(s->stream.local, sizeof s->stream.local, "%.63s", endpoint);
    s->listens = true;
    return &s->stream;
}

static inline void rig_send(struct moon_streams *self, struct moon_stream *stream, const struct moon_piece *pieces,
                            size_t count) {
    struct rig_stream *s = (struct rig_stream *)stream;
    (void)self;
    assert(!s->dead && count > 0 && s->piece_count + count <= MOON_STREAM_PIECES_MAX);
    for (size_t i = 0; i < count; i++)
        s->pieces[s->piece_count++] = pieces[i];
    rig_queue(s);
}

static inline void rig_resume(struct moon_streams *self, struct moon_stream *stream) {
    struct rig_stream *s = (struct rig_stream *)stream;
    (void)self;
    assert(!s->dead && s->paused);
    s->paused = false;
    if (s->peer)
        rig_queue(s->peer);
}

static inline void rig_close_stream(struct moon_streams *self, struct moon_stream *stream) {
    (void)self;
    rig_kill((struct rig_stream *)stream);
}

static inline void rig_init(struct rig *rig) {
    *rig = (struct rig){.streams = {rig_open, rig_listen, rig_send, rig_resume, rig_close_stream}};
    rig->all.before = rig->all.after = &rig->all;
    rig->work_end = &rig->work;
}

static inline void rig_end(struct rig_stream *s, enum moon_stream_end end) {
    s->stream.user->closed(s->stream.user, &s->stream, end);
    rig_kill(s);
}

static inline void rig_connect(struct rig_stream *s) {
    struct rig *rig = s->rig;
    struct rig_stream *listener = rig_listener(rig, s->stream.peer);
    if (!listener) {
        rig_end(s, MOON_STREAM_END_REFUSED);
        return;
    }
    struct rig_stream *peer = rig_stream_new(rig, NULL);
    s->connecting = false;
    s->peer = peer;
    peer->peer = s;
    snprintf(s->stream.local, sizeof s->stream.local, "10.0.0.9:%u", 20000 + rig->next_port++);
    memcpy(peer->stream.local, s->stream.peer, sizeof peer->stream.local);
    memcpy(peer->stream.peer, s->stream.local, sizeof peer->stream.peer);
    listener->stream.user->accepted(listener->stream.user, &peer->stream);
    s->stream.user->opened(s->stream.user, &s->stream);
    if (!s->dead)
        rig_queue(s);
}

static inline void rig_tell_sent(struct rig_stream *s) {
    if (s->dead || !s->sent_due || s->rig->hold_sent)
        return;
    s->sent_due = false;
    s->stream.user->sent(s->stream.user, &s->stream);
}

static inline void rig_arrive(struct rig_stream *s) {
    struct rig_stream *peer = s->peer;
    struct moon_piece *piece = &s->pieces[s->piece];
    void *into = NULL;
    size_t room = peer->stream.user->room(peer->stream.user, &peer->stream, &into);
    size_t length = piece->length - s->offset;
    if (peer->dead)
        return;
    peer->paused = room == 0;
    if (peer->paused)
        return;
    length = length < room ? length : room;
    length = s->rig->chunk && s->rig->chunk < length ? s->rig->chunk : length;
    memcpy(into, (const char *)piece->data + s->offset, length);
    s->offset += length;
    if (s->offset == piece->length) {
        s->piece++;
        s->offset = 0;
    }
    if (s->piece == s->piece_count) {
        s->piece = s->piece_count = 0;
        s->sent_due = true;
    }
    peer->stream.user->received(peer->stream.user, &peer->stream, length);
    rig_tell_sent(s);
}

/* Does one thing. False: there is nothing to do. */
static inline bool rig_step(struct rig *rig) {
    struct rig_stream *s = rig->work;
    if (!s)
        return false;
    rig->work = s->next_work;
    if (!rig->work)
        rig->work_end = &rig->work;
    s->queued = false;
    if (s->dead) {
        s->before->after = s->after;
        s->after->before = s->before;
        free(s);
    } else if (s->connecting) {
        if (!rig->mute_connects)
            rig_connect(s);
    } else if (s->ended) {
        rig_end(s, MOON_STREAM_END_PEER);
    } else if (s->sent_due) {
        rig_tell_sent(s);
        if (!s->dead && !rig->hold_sent)
            rig_queue(s);
    } else if (s->piece_count > 0 && s->peer && !s->peer->paused) {
        rig_arrive(s);
        if (!s->dead)
            rig_queue(s);
    }
    return true;
}

static inline void rig_run(struct rig *rig) {
    while (rig_step(rig))
        ;
}

/* Lets sent() through again. */
static inline void rig_release_sent(struct rig *rig) {
    rig->hold_sent = false;
    for (struct rig_stream *s = rig->all.after; s != &rig->all; s = s->after)
        rig_queue(s);
}

/* All that is left must be dead by now, or is the caller's leak. */
static inline void rig_close(struct rig *rig) {
    rig_run(rig);
    assert(rig->open_count == 0);
}

/* ---- a node: environment, memory that refuses its n-th request, records */

enum { RIG_RECORDS_MAX = 256, RIG_TEXT_BYTES = 64 };

struct rig_record {
    struct moon_record record; /* its texts point to the copies */
    char what[RIG_TEXT_BYTES], key[RIG_TEXT_BYTES], tenant[RIG_TEXT_BYTES], cause[RIG_TEXT_BYTES],
        segment[RIG_TEXT_BYTES];
};

struct rig_node {
    struct moon_environment environment;
    struct moon_memory_failing memory;
    struct moon_recorder recorder; /* environment.recorder is set by the test that wants it */
    struct rig_record records[RIG_RECORDS_MAX];
    size_t record_count;
};

static inline struct moon_bytes rig_copy(char *into, struct moon_bytes bytes) {
    size_t length = bytes.length < RIG_TEXT_BYTES ? bytes.length : RIG_TEXT_BYTES - 1;
    if (length > 0)
        memcpy(into, bytes.data, length);
    into[length] = '\0';
    return (struct moon_bytes){into, length};
}

static inline void rig_record(struct moon_recorder *self, const struct moon_record *record) {
    struct rig_node *node = (struct rig_node *)((char *)self - offsetof(struct rig_node, recorder));
    struct rig_record *copy = &node->records[node->record_count % RIG_RECORDS_MAX];
    node->record_count++;
    copy->record = *record;
    rig_copy(copy->what, moon_bytes_of(record->what));
    copy->record.what = copy->what;
    copy->record.key = rig_copy(copy->key, record->key);
    copy->record.tenant = rig_copy(copy->tenant, record->tenant);
    copy->record.cause = rig_copy(copy->cause, record->cause);
    copy->record.extent.segment = rig_copy(copy->segment, record->extent.segment);
}

static inline void rig_node_init(struct rig_node *node, struct rig *rig, uint64_t fail_at) {
    *node = (struct rig_node){.recorder = {rig_record}};
    moon_memory_failing_init(&node->memory, moon_memory_heap(), fail_at);
    node->environment.memory = &node->memory.memory;
    node->environment.streams = &rig->streams;
    moon_random_seed(&node->environment.random, 1);
}

/* ---- a raw peer: what it receives is kept; what it sends is borrowed */

/* deaf: takes nothing. stream is NULL when it has ended. */
struct rig_raw {
    struct moon_stream_user user; /* first member */
    struct rig *rig;
    struct moon_stream *stream;
    struct moon_text in;
    char buffer[2048];
    bool opened, deaf, ended, stopped;
    enum moon_stream_end end;
    struct rig_raw *accepts; /* of a listener: who gets the next stream; NULL: it is closed */
};

static inline void rig_raw_accepted(struct moon_stream_user *self, struct moon_stream *stream) {
    struct rig_raw *listener = (struct rig_raw *)self, *raw = listener->accepts;
    if (!raw) {
        listener->rig->streams.close(&listener->rig->streams, stream);
        return;
    }
    listener->accepts = NULL;
    raw->stream = stream;
    raw->opened = true;
    stream->user = &raw->user;
}
static inline void rig_raw_opened(struct moon_stream_user *self, struct moon_stream *stream) {
    (void)stream;
    ((struct rig_raw *)self)->opened = true;
}
static inline size_t rig_raw_room(struct moon_stream_user *self, struct moon_stream *stream, void **into) {
    struct rig_raw *raw = (struct rig_raw *)self;
    (void)stream;
    *into = raw->buffer;
    raw->stopped = raw->deaf;
    return raw->deaf ? 0 : sizeof raw->buffer;
}
static inline void rig_raw_received(struct moon_stream_user *self, struct moon_stream *stream, size_t bytes) {
    struct rig_raw *raw = (struct rig_raw *)self;
    (void)stream;
    moon_text_bytes(&raw->in, raw->buffer, bytes);
}
static inline void rig_raw_sent(struct moon_stream_user *self, struct moon_stream *stream) {
    (void)self, (void)stream;
}
static inline void rig_raw_closed(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end) {
    struct rig_raw *raw = (struct rig_raw *)self;
    (void)stream;
    raw->stream = NULL;
    raw->ended = true;
    raw->end = end;
}

static inline void rig_raw_init(struct rig_raw *raw, struct rig *rig) {
    *raw = (struct rig_raw){
        .user = {rig_raw_accepted, rig_raw_opened, rig_raw_room, rig_raw_received, rig_raw_sent, rig_raw_closed},
        .rig = rig};
    moon_text_open(&raw->in, moon_memory_heap());
}
static inline void rig_raw_open(struct rig_raw *raw, struct rig *rig, const char *endpoint) {
    rig_raw_init(raw, rig);
    raw->stream = rig->streams.open(&rig->streams, endpoint, &raw->user);
}
static inline void rig_raw_listen(struct rig_raw *raw, struct rig *rig, const char *endpoint) {
    rig_raw_init(raw, rig);
    raw->stream = rig->streams.listen(&rig->streams, endpoint, &raw->user);
}
static inline void rig_raw_send(struct rig_raw *raw, const void *bytes, size_t length) {
    struct moon_piece piece = {(void *)(uintptr_t)bytes, length};
    if (raw->stream && length > 0)
        raw->rig->streams.send(&raw->rig->streams, raw->stream, &piece, 1);
}
static inline void rig_raw_listen_again(struct rig_raw *raw) {
    raw->deaf = false;
    if (raw->stopped && raw->stream)
        raw->rig->streams.resume(&raw->rig->streams, raw->stream);
    raw->stopped = false;
}
static inline void rig_raw_close(struct rig_raw *raw) {
    if (raw->stream)
        raw->rig->streams.close(&raw->rig->streams, raw->stream);
    raw->stream = NULL;
    moon_text_close(&raw->in);
}

#endif
