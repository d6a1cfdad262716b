/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel: a supervisor has the node stop at chosen records, and go on when it says so. */
#ifndef MOON_DAEMON_CONTROL_H
#define MOON_DAEMON_CONTROL_H

#include "ref/base/json.h"
#include "ref/base/record.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MOON_CONTROL_ROWS_MAX = 1024,
    MOON_CONTROL_LINE_BYTES_MAX = 1024 * 1024,
    MOON_CONTROL_FIRST_WAIT_MS = 30 * 1000, /* for the first line of the supervisor */
};

/* An armed row (DAEMON-030). kind -1, what NULL, key NULL: any. seen: matching records since it was armed.
 *   line   at a row of point "after" that has come: its record, until the node stops for it; else NULL */
struct moon_control_row {
    uint64_t id;
    bool before;
    int kind;
    const char *what, *key;
    uint64_t occurrence, seen;
    const char *line;
};

/* Rows and their texts live in `arena`. descriptor -1: there is no supervisor, all functions below do nothing. waiting:
 * rows whose `line` is set. lost: the supervisor is gone. */
struct moon_control {
    struct moon_memory *memory;
    struct moon_arena arena;
    struct moon_control_row *rows;
    size_t count, waiting;
    int descriptor;
    bool lost;
    struct moon_text input; /* bytes behind the last whole line */
};

/* Reads the first line, which must arm (none, perhaps). Returns 0; MOON_ERR_IO: no line in time, or the descriptor is
 * none; or an error of moon_control_arm. */
int moon_control_open(struct moon_control *control, struct moon_memory *memory, int descriptor,
                      struct moon_error *error);
void moon_control_close(struct moon_control *control); /* idempotent; leaves the descriptor open */

/* Takes one line of the supervisor: {"arm":[...]} replaces the rows. *go: id of a {"go":N}, else -1. Returns 0, or an
 * error with the member's place; then nothing has changed. */
int moon_control_take(struct moon_control *control, const char *line, size_t length, int64_t *go,
                      struct moon_error *error);
/* Says {"ready":{"address":...}}. */
void moon_control_ready(struct moon_control *control, const char *address);
/* Takes what the supervisor has written; called when the descriptor is readable. Errors as moon_control_take. */
int moon_control_read(struct moon_control *control, struct moon_error *error);

/* A record of this node, and its line of JSON (without newline). Stops here for each row of point "before" whose
 * occurrence it is; of rows of point "after" it is kept. */
void moon_control_see(struct moon_control *control, const struct moon_record *record, const char *line, size_t length);
/* Stops for all records that are kept. */
void moon_control_after(struct moon_control *control);

/* Whether a row of this key pattern is about the key: fnmatch(3), no flags; a key with a NUL matches nothing. */
bool moon_control_key_matches(const char *pattern, struct moon_bytes key);

#ifdef __cplusplus
}
#endif
#endif
