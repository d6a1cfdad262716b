/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance with swaps of neighbours (optimal string alignment), row by row. */
#include "ref/base/suggest.h"

#include <stddef.h>
#include <string.h>

enum { WORD_BYTES_MAX = 64, EDITS_MAX = 4 };

static char folded(char c) {
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c == '-' ? '_' : c;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Both lengths are at most WORD_BYTES_MAX. rows: the one being filled, the one above it, and the one above that. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    size_t rows[3][WORD_BYTES_MAX + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            char x = folded(a[i - 1]), y = folded(b[j - 1]);
            row[j] = smaller(above[j - 1] + (x != y), 1 + smaller(above[j], row[j - 1]));
            if (i > 1 && j > 1 && x == folded(b[j - 2]) && folded(a[i - 2]) == y)
                row[j] = smaller(row[j], two_above[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

const char *moon_suggest(const char *word, const char *const names[]) {
    size_t length = strlen(word);
    if (length > WORD_BYTES_MAX)
        return NULL;
    size_t allowed = smaller(length / 3 ? length / 3 : 1, EDITS_MAX);
    const char *nearest = NULL;
    size_t least = allowed + 1;
    for (size_t i = 0; names[i]; i++) {
        size_t name_length = strlen(names[i]);
        if (name_length > WORD_BYTES_MAX)
            continue;
        size_t edits = distance(word, length, names[i], name_length);
        if (edits < least) {
            least = edits;
            nearest = names[i];
        }
    }
    return nearest;
}
