/* SPDX-License-Identifier: Apache-2.0 */
/* Suite layout in parts: reading a case, answering, explaining any rank, and drawing cases. */
#ifndef MOON_CONFORMANCE_SUITES_LAYOUT_H
#define MOON_CONFORMANCE_SUITES_LAYOUT_H

#include "conformance/suites/engine.h"
#include "conformance/suites/suite.h"
#include "ref/layout/puts.h"

enum { MOON_LAYOUT_CHUNKS_MAX = 1 << 16 }; /* scheduler blocks of the prompt */

/* A case as read: the engine, what it chose, and the prompt that every rank saves. Borrows from arena and document. */
struct moon_layout_case {
    struct moon_engine engine;
    struct moon_store_selection selection;
    struct moon_hashes hashes;
    struct moon_save save;
};
/* Reads `given`. What is left out besides the engine's members: one chunk, hashes 0...01, 0...02, ..., blocks 1, 2, 3,
 * ... Errors as moon_engine_read. */
int moon_layout_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                          const struct moon_json *given, struct moon_layout_case *out, struct moon_error *error);

/* What an explanation shows.
 *   rank           -1: the ranks that the answer lists
 *   content_bytes  K and V of one head and token, for offsets and sizes of shards; 1 shows them in such cells */
struct moon_layout_view {
    int64_t rank;
    int64_t content_bytes;
};
/* The decision, the namespaces of a lookup, and the ranks' shards, segments and puts in words. Returns 0,
 * MOON_ERR_RANGE for a rank that there is not, else as moon_layout_case_read. */
int moon_layout_explain(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                        const struct moon_json *given, const struct moon_layout_view *view, struct moon_text *out,
                        struct moon_error *error);

/* Ranks that an answer lists: all, or of more than 8 a sample (first two, middle, last). Returns how many. */
enum { MOON_LAYOUT_RANKS_MAX = 8 };
size_t moon_layout_ranks(const struct moon_layout_model *model, int64_t out[MOON_LAYOUT_RANKS_MAX]);

/* Draws a case (conformance/suites/layout_draw.c); as moon_suite.draw. */
int moon_layout_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                     struct moon_json **given);

#endif
