/* SPDX-License-Identifier: Apache-2.0 */
/* Files and standard streams: whole inputs with a limit, outputs that are complete or not there at all. */
#ifndef MOON_CONFORMANCE_IO_H
#define MOON_CONFORMANCE_IO_H

#include "ref/base/error.h"
#include "ref/base/json.h"
#include "ref/base/text.h"

/* Reads all of `path` ("-" is standard input) into `out`, which is cleared first. zstd and gzip content is recognised
 * by its first bytes and unpacked. At most `limit_bytes` are accepted, packed or unpacked, so a small file cannot grow
 * without bound. Returns 0, MOON_ERR_IO (missing, a directory, unreadable), MOON_ERR_LIMIT, MOON_ERR_SYNTAX (packed
 * data is damaged or cut) or MOON_ERR_MEMORY. */
int moon_io_read(const char *path, size_t limit_bytes, struct moon_text *out, struct moon_error *error);

/* Reads a JSON document of at most MOON_JSON_INPUT_BYTES_MAX bytes from a file or "-". Tree in `arena`. Errors of
 * moon_io_read and moon_json_read. */
int moon_io_read_json(struct moon_arena *arena, const char *path, enum moon_json_rules rules, struct moon_json **out,
                      struct moon_error *error);
/* How errors name the input of that path: the path, or "stdin" for "-". */
const char *moon_io_source(const char *path);

/* Writes all bytes to standard output. Returns 0 or MOON_ERR_IO (closed pipe, full disk). SIGPIPE must be ignored. */
int moon_io_print(const void *bytes, size_t length, struct moon_error *error);

/* Replaces `path` by the given bytes: temporary file in the same folder, fsync, rename. When it fails, nothing new
 * stands under `path` and the temporary file is gone. A device or pipe (/dev/full, /dev/stdout) is written in place.
 * Returns 0 or MOON_ERR_IO. */
int moon_io_write(const char *path, const void *bytes, size_t length, struct moon_error *error);

/* Makes a folder and its parents; an existing one is fine. Returns 0 or MOON_ERR_IO. */
int moon_io_make_folder(const char *path, struct moon_error *error);
bool moon_io_is_folder(const char *path);
bool moon_io_is_program(const char *path); /* a regular file that this user may execute */

/* All regular files below `folder`, sorted by path, paths start with `folder`. Symbolic links to folders are not
 * followed. *paths is an arena array of *count strings. Returns 0, MOON_ERR_IO, MOON_ERR_LIMIT (over MOON_IO_FILES_MAX
 * files or MOON_IO_DEPTH_MAX levels) or MOON_ERR_MEMORY. */
enum { MOON_IO_FILES_MAX = 100000, MOON_IO_DEPTH_MAX = 32 };
int moon_io_list(struct moon_arena *arena, const char *folder, const char *const **paths, size_t *count,
                 struct moon_error *error);

/* Folder of the running program, "" when the system does not tell. Arena memory; NULL when memory refused. */
const char *moon_io_program_folder(struct moon_arena *arena);

#endif
