/* SPDX-License-Identifier: Apache-2.0 */
/* Frame of the unit tests: one program a file, CUnit inside, a closing line that machines read. Linked into tests only.
 */
#ifndef MOON_BASE_UNIT_H
#define MOON_BASE_UNIT_H

#include "ref/base/memory.h"

#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>

/* A test: a sentence about behaviour, and the function that checks it with CU_ASSERT... or MOON_CHECK... */
struct moon_unit_case {
    const char *sentence;
    void (*run)(void);
};

/* Runs the cases (a row with sentence NULL ends) and returns main's exit status. With arguments runs only those whose
 * sentence contains argv[1]. Last line printed: "N passed, N failed, 0 skipped". */
int moon_unit_main(const char *subject, const struct moon_unit_case cases[], int argc, char *argv[]);

/* Calls `make` with memory that refuses its first request, then with memory that refuses the second, and so on until
 * none is refused. Checks each time that nothing is held at the end, and that `make` returned MOON_ERR_MEMORY, or 0 if
 * nothing was refused. `context` is handed on. */
void moon_unit_refuse_memory(int (*make)(struct moon_memory *memory, const void *context), const void *context);

/* Checks that say what both sides were. */
#define MOON_CHECK_INT(seen, expected)                                                                                 \
    do {                                                                                                               \
        long long moon_seen = (long long)(seen), moon_expected = (long long)(expected);                                \
        if (moon_seen != moon_expected)                                                                                \
            fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", __FILE__, __LINE__, #seen, moon_seen,                \
                    moon_expected);                                                                                    \
        CU_ASSERT_EQUAL(moon_seen, moon_expected);                                                                     \
    } while (0)
#define MOON_CHECK_TEXT(seen, expected)                                                                                \
    do {                                                                                                               \
        const char *moon_seen = (seen), *moon_expected = (expected);                                                   \
        int moon_same = moon_seen && moon_expected && strcmp(moon_seen, moon_expected) == 0;                           \
        if (!moon_same)                                                                                                \
            fprintf(stderr, "%s:%d: %s is\n  \"%s\", expected\n  \"%s\"\n", __FILE__, __LINE__, #seen,                 \
                    moon_seen ? moon_seen : "(null)", moon_expected ? moon_expected : "(null)");                       \
        CU_ASSERT(moon_same);                                                                                          \
    } while (0)

#endif
