/* SPDX-License-Identifier: Apache-2.0 */
/* Records of what transfer engines say to each other and move. */
#ifndef MOON_TRANSFER_MESSAGES_H
#define MOON_TRANSFER_MESSAGES_H

#include "ref/base/environment.h"
#include "ref/wire/handshake.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "handshake-metadata" and the like. */
const char *moon_transfer_question_name(enum moon_wire_handshake_type type);

/* Records that message `ordinal` (from 0, of its direction) of `stream` leaves (MOON_RECORD_SEND) or is here
 * (MOON_RECORD_RECV). op 0: none; extent NULL: none. */
void moon_transfer_record_message(struct moon_environment *environment, enum moon_record_kind kind, const char *what,
                                  const struct moon_stream *stream, uint64_t ordinal, uint64_t op,
                                  const struct moon_extent *extent);
/* Records that the bytes of one request were moved (code 0), or perhaps not (code negative). */
void moon_transfer_record_moved(struct moon_environment *environment, bool write, uint64_t op,
                                const struct moon_extent *extent, int code);

#ifdef __cplusplus
}
#endif
#endif
