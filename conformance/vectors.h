/* SPDX-License-Identifier: Apache-2.0 */
/* Vector files: a closed form, read from files and folders, plain or packed, each case with its place. */
#ifndef MOON_CONFORMANCE_VECTORS_H
#define MOON_CONFORMANCE_VECTORS_H

#include "conformance/suites/suite.h"

/* One case. Everything lives in the arena of its vectors.
 *   kind     id without its last part: what requirements cite
 *   file     path as found, for the command that repeats the case
 *   place    the case in its file, for messages */
struct moon_vector {
    const char *id;
    const char *kind;
    const char *comment; /* "" when there is none */
    const struct moon_suite *suite;
    const struct moon_profile *profile;
    const struct moon_json *given;
    const struct moon_json *expect;
    const char *file;
    const struct moon_json *place;
    struct moon_vector *next;
};

/* A file that was not used, and why. */
struct moon_vector_skip {
    const char *file;
    const char *reason;
    struct moon_vector_skip *next;
};

struct moon_vectors {
    struct moon_arena *arena;
    struct moon_vector *first, *last;
    size_t count;
    struct moon_vector_skip *first_skip, *last_skip;
    uint64_t digest; /* XXH3-64 over the digests of the unpacked files, in the order of loading */
};

void moon_vectors_open(struct moon_vectors *vectors, struct moon_arena *arena);

/* Loads a file, or every *.json, *.json.zst and *.json.gz below a folder in sorted order. A vector file of a suite that
 * this program does not know is listed as skipped. In a folder, other JSON files are skipped as well; named directly
 * they are an error. Returns 0, MOON_ERR_IO, MOON_ERR_SYNTAX, MOON_ERR_SCHEMA, MOON_ERR_UNSUPPORTED (profile),
 * MOON_ERR_LIMIT or MOON_ERR_MEMORY; the error names file, line, column, member and the case's id. */
int moon_vectors_load(struct moon_vectors *vectors, const char *path, struct moon_error *error);

/* After the last load: ids are unique over all files. Returns 0 or MOON_ERR_SCHEMA with both places. */
int moon_vectors_check_ids(const struct moon_vectors *vectors, struct moon_error *error);

#endif
