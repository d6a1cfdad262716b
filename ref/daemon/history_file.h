/* SPDX-License-Identifier: Apache-2.0 */
/* A history on disk: one line, one write a record, so that what a killed node has told is there. */
#ifndef MOON_DAEMON_HISTORY_FILE_H
#define MOON_DAEMON_HISTORY_FILE_H

#include "ref/base/error.h"
#include "ref/base/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* failed: a line could not be written, was said on stderr, and nothing more is written. descriptor -1: no file. */
struct moon_history_file {
    const char *path; /* borrowed */
    int descriptor;
    bool failed;
};

/* Opens `path` for appending; NULL: no file. Returns 0 or MOON_ERR_IO. */
int moon_history_file_open(struct moon_history_file *file, const char *path, struct moon_error *error);
void moon_history_file_close(struct moon_history_file *file); /* idempotent */
/* Writes a line, which has its newline. */
void moon_history_file_write(struct moon_history_file *file, const struct moon_text *line);

#ifdef __cplusplus
}
#endif
#endif
