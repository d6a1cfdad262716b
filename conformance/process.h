/* SPDX-License-Identifier: Apache-2.0 */
/* A child process that is talked to line by line, in a process group of its own, and that never outlives its owner. */
#ifndef MOON_CONFORMANCE_PROCESS_H
#define MOON_CONFORMANCE_PROCESS_H

#include "ref/base/error.h"
#include "ref/base/text.h"

#include <sys/types.h>

enum {
    MOON_PROCESS_LINE_BYTES_MAX = 64 * 1024 * 1024, /* one line of its output */
    MOON_PROCESS_LOG_BYTES = 4096,                  /* of its stderr that are kept: the last ones */
    MOON_PROCESS_LIVE_MAX = 256,                    /* at the same time */
};

/* How to start one. All may be NULL.
 *   folder       working directory
 *   environment  "NAME=VALUE" sets, "NAME" alone removes; NULL ends */
struct moon_process_setting {
    const char *folder;
    const char *const *environment;
};

/* Opaque except for what a caller may read: `pid` while it runs, `ended` (its output is at an end). */
struct moon_process {
    pid_t pid;
    int in, out, err;
    bool ended;
    struct moon_text outgoing; /* not yet written: from outgoing_offset */
    size_t outgoing_offset;
    struct moon_text incoming; /* not yet taken: from incoming_offset; no line end before incoming_scanned */
    size_t incoming_offset, incoming_scanned;
    char log[MOON_PROCESS_LOG_BYTES];
    size_t log_length;
    char fate[96]; /* how it ended, in words, after moon_process_end */
};

/* Starts `/bin/sh -c COMMAND`. It is killed when this process dies or is interrupted. Sets SIGPIPE to be ignored and
 * catches SIGINT, SIGTERM and SIGHUP once, to end all children first. Returns 0, or MOON_ERR_IO. Thread rule: one
 * thread. */
int moon_process_start(struct moon_process *process, const char *command, const struct moon_process_setting *setting,
                       struct moon_error *error);

/* Queues bytes for its standard input; moon_process_wait writes them. */
void moon_process_send(struct moon_process *process, const void *bytes, size_t length);
/* Closes its standard input once all queued bytes are written. */
void moon_process_send_end(struct moon_process *process);

enum moon_process_event {
    MOON_PROCESS_LINE,    /* *line is the next line, without its end, NUL-terminated, valid until the next call */
    MOON_PROCESS_END,     /* it closed its standard output; an unfinished line before that is dropped */
    MOON_PROCESS_SILENT,  /* nothing came until the deadline */
    MOON_PROCESS_TOO_LONG /* a line over MOON_PROCESS_LINE_BYTES_MAX, or out of memory */
};
/* Writes what is queued and waits for the next line until `deadline_ns` of moon_now_ns. */
enum moon_process_event moon_process_wait(struct moon_process *process, uint64_t deadline_ns, char **line,
                                          size_t *length);

/* Ends it: closes its input, gives it `grace_ms` to end by itself, then kills its group. Fills `fate` ("exit status 3",
 * "killed by signal 11 (Segmentation fault)"). Frees everything. Idempotent. */
void moon_process_end(struct moon_process *process, int grace_ms);

/* Names a temporary folder that an interruption removes too, if it is empty: old NULL adds `new`, new NULL takes `old`
 * off. The text is borrowed until then. More than MOON_PROCESS_LIVE_MAX are not remembered. */
void moon_process_folder(const char *old, const char *new);

/* The last bytes of its stderr as a NUL-terminated string. */
const char *moon_process_log(const struct moon_process *process);

/* Monotonic clock. */
uint64_t moon_now_ns(void);

#endif
