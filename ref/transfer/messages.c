/* SPDX-License-Identifier: Apache-2.0 */
/* Records of messages and moved bytes, built only where somebody listens. */
#include "ref/transfer/messages.h"

const char *moon_transfer_question_name(enum moon_wire_handshake_type type) {
    static const char *const names[] = {"handshake-connection", "handshake-metadata", "handshake-notify",
                                        "handshake-probe"};
    return names[type];
}

void moon_transfer_record_message(struct moon_environment *environment, enum moon_record_kind kind, const char *what,
                                  const struct moon_stream *stream, uint64_t ordinal, uint64_t op,
                                  const struct moon_extent *extent) {
    struct moon_recorder *recorder = environment->recorder;
    if (!recorder)
        return;
    bool leaves = kind == MOON_RECORD_SEND;
    struct moon_record record = {
        .kind = kind,
        .what = what,
        .op = op,
        .msg = moon_message_id(leaves ? stream->local : stream->peer, leaves ? stream->peer : stream->local, ordinal),
    };
    if (extent) {
        record.has = MOON_RECORD_HAS_EXTENT;
        record.extent = *extent;
    }
    recorder->record(recorder, &record);
}

void moon_transfer_record_moved(struct moon_environment *environment, bool write, uint64_t op,
                                const struct moon_extent *extent, int code) {
    struct moon_recorder *recorder = environment->recorder;
    if (!recorder)
        return;
    struct moon_record record = {
        .kind = MOON_RECORD_TRANSFER,
        .what = write ? "write" : "read",
        .op = op,
        .has = MOON_RECORD_HAS_EXTENT | MOON_RECORD_HAS_CODE,
        .extent = *extent,
        .code = code,
    };
    recorder->record(recorder, &record);
}
