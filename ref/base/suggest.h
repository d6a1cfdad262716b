/* SPDX-License-Identifier: Apache-2.0 */
/* "Did you mean": the nearest of some names to a misspelt one. */
#ifndef MOON_BASE_SUGGEST_H
#define MOON_BASE_SUGGEST_H

#ifdef __cplusplus
extern "C" {
#endif

/* The entry of names[] (NULL ends) nearest to `word` by edits (insert, delete, replace, swap of neighbours), case
 * ignored and
 * '-' equal to '_', or NULL if none is within a third of the word's length (at least 1, at most 4 edits). Words of over
 * 64 bytes get NULL. Ties: the first. */
const char *moon_suggest(const char *word, const char *const names[]);

#ifdef __cplusplus
}
#endif
#endif
