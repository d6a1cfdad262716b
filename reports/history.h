/* SPDX-License-Identifier: Apache-2.0 */
/* Histories: the records of one run, collected or read from the files of its nodes, put in an order that could have
 * been, and written. */
#ifndef MOON_REPORTS_HISTORY_H
#define MOON_REPORTS_HISTORY_H

#include "ref/base/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Records of one run. As they are added; in a simulation: in (time, node, n) order. After reading from nodes' files: in
 * an order that respects each node's own order and every message's send before its recv. Texts live in `arena`. */
struct moon_history {
    struct moon_arena arena;
    struct moon_record *records;
    size_t count, capacity;
    bool failed; /* memory refused: some records are missing */
};

void moon_history_open(struct moon_history *history, struct moon_memory *memory);
void moon_history_close(struct moon_history *history);
/* Copies a record (with its node, boot, n, time, clock) to the end. Without memory it is left out: `failed`. */
void moon_history_add(struct moon_history *history, const struct moon_record *record);

/* Adds the records of JSON Lines, of one node's file or of a whole history that was written; `source` names it in
 * errors. A last line that is cut (the node was killed while writing) is left out. Errors: of moon_record_read_json
 * with file and line; MOON_ERR_SCHEMA: a boot of a node does not begin with n 0, or there is a gap (HIST-005). */
int moon_history_read(struct moon_history *history, const char *source, const char *bytes, size_t length,
                      struct moon_error *error);
/* Puts it in order (HIST-006). By time, where all have one clock; else by each node's order and message edges, ties by
 * node name, so that the order is the same every time. O(n log n). MOON_ERR_SCHEMA: a recv before its own send (a
 * cycle), a clock that goes back, the same record twice; MOON_ERR_MEMORY. The order is then as it was. */
int moon_history_merge(struct moon_history *history, struct moon_error *error);

/* XXH3-64 over the binary form of all records in their order; as 16 hex digits it names the run. 0 if `memory` refuses.
 */
uint64_t moon_history_digest(const struct moon_history *history, struct moon_memory *memory);

/* Each record as a line. Fails only through out->failed. */
void moon_history_write_json(const struct moon_history *history, struct moon_text *out);

#ifdef __cplusplus
}
#endif
#endif
