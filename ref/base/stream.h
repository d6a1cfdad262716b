/* SPDX-License-Identifier: Apache-2.0 */
/* Byte streams as state machines see them: the operations of a fabric, and what the fabric tells its user. */
#ifndef MOON_BASE_STREAM_H
#define MOON_BASE_STREAM_H

#include "ref/base/bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_ENDPOINT_BYTES = 272,  /* "host:port", "[v6]:port", with NUL */
    MOON_ADDRESS_BYTES = 64,    /* the same in numbers */
    MOON_STREAM_PIECES_MAX = 64 /* of one send */
};

struct moon_stream;

/* Why a stream ended. */
enum moon_stream_end {
    MOON_STREAM_END_PEER,    /* the peer closed or died, all that it sent has been received */
    MOON_STREAM_END_BROKEN,  /* reset, or the network gave it up */
    MOON_STREAM_END_REFUSED, /* it never came to be: nobody listens, name unknown, connect timed out */
};

/* What a stream tells the one who uses it. Embedded in the user's object of this stream (or listener). Called by the
 * fabric between two calls into the node, never from within an operation of struct moon_streams. An operation on any
 * stream, closing this one included, is allowed in all of them. */
struct moon_stream_user {
    /* Listeners only: `stream` has come in. Must set stream->user, or close it. */
    void (*accepted)(struct moon_stream_user *self, struct moon_stream *stream);
    /* Opened streams only: it stands, its addresses are known. Bytes may be sent before that, too. */
    void (*opened)(struct moon_stream_user *self, struct moon_stream *stream);
    /* Bytes are about to arrive: where do the next ones go? Sets *into and returns how many fit there, at least 1, or
     * 0: none are taken until moon_streams.resume. The place stays valid until received(), closed() or close(). */
    size_t (*room)(struct moon_stream_user *self, struct moon_stream *stream, void **into);
    /* `bytes` (1 or more) have been written to the place that room() named. */
    void (*received)(struct moon_stream_user *self, struct moon_stream *stream, size_t bytes);
    /* All that was given to send() has left this process; nothing of it is borrowed any more. */
    void (*sent)(struct moon_stream_user *self, struct moon_stream *stream);
    /* It has ended, with unsent bytes lost; it is no stream any more when this returns, and must not be closed. Not
     * called after a close() of the user's own. A listener ends only so if the fabric lost it. */
    void (*closed)(struct moon_stream_user *self, struct moon_stream *stream, enum moon_stream_end end);
};

/* A stream. The fabric's own object begins with it.
 *   user    set by open and listen; for accepted streams by their listener's user
 *   local, peer   numeric addresses, "127.0.0.1:4711"; unique together, so that both sides can name a message
 *                 (record.h); of a listener: local only; "" until known */
struct moon_stream {
    struct moon_stream_user *user;
    char local[MOON_ADDRESS_BYTES], peer[MOON_ADDRESS_BYTES];
};

/* Operations of a fabric. None calls a user. Reliable, ordered bytes; no message borders. */
struct moon_streams {
    /* Begins to connect to `endpoint` ("host:port"). NULL: refused at once (memory, text is no endpoint). */
    struct moon_stream *(*open)(struct moon_streams *self, const char *endpoint, struct moon_stream_user *user);
    /* Accepts streams at `endpoint`; port 0 takes a free one, listener->local tells which. NULL: address in use or not
     * this node's, or no memory. */
    struct moon_stream *(*listen)(struct moon_streams *self, const char *endpoint, struct moon_stream_user *user);
    /* Sends the pieces, in order, behind what was given before: at most MOON_STREAM_PIECES_MAX, at least one byte. The
     * array is copied; the bytes are borrowed until sent() or the stream's end. Without the memory for it the stream
     * ends (closed, BROKEN). */
    void (*send)(struct moon_streams *self, struct moon_stream *stream, const struct moon_piece *pieces, size_t count);
    /* Takes bytes again after room() returned 0. */
    void (*resume)(struct moon_streams *self, struct moon_stream *stream);
    /* Ends a stream or listener at once; unsent bytes are lost, borrowed ones free on return. Nothing is called
     * afterwards, and the pointer is dead. */
    void (*close)(struct moon_streams *self, struct moon_stream *stream);
};

#ifdef __cplusplus
}
#endif
#endif
