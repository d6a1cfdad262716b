/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of a history: what was asked of the store, when it began, and how it ended. */
#ifndef MOON_CHECKERS_OPERATIONS_H
#define MOON_CHECKERS_OPERATIONS_H

#include "conformance/checkers/order.h"

enum { MOON_OPERATION_NO_END = -1 };

/* One operation. Texts borrow the history.
 *   invoke, end  places of its records; end -1: it never ended, it may have happened
 *   kind         OK, FAIL or INFO (also without an end)
 *   code, bytes, digest   of its end; put_bytes, put_digest of the invoke of a put */
struct moon_operation {
    struct moon_bytes node, key, tenant;
    uint32_t boot;
    uint64_t op, parent;
    const char *what;
    size_t invoke;
    int64_t end;
    enum moon_record_kind kind;
    int64_t code;
    bool has_digest, has_put_digest;
    uint64_t bytes, digest, put_bytes, put_digest;
};

/* Sorted by tenant, key, and place of the invoke. */
struct moon_operations {
    struct moon_operation *rows;
    size_t count;
};

/* Returns 0 or MOON_ERR_MEMORY. */
int moon_operations_make(struct moon_operations *operations, struct moon_arena *arena,
                         const struct moon_history *history);

/* The rows of that tenant and key: from *first on, this many. A tenant that is empty is "default". */
size_t moon_operations_of(const struct moon_operations *operations, struct moon_bytes tenant, struct moon_bytes key,
                          size_t *first);
/* The tenant that a record tells; none, or an empty one, is "default". */
struct moon_bytes moon_record_tenant(const struct moon_record *record);

bool moon_operation_is(const struct moon_operation *operation, const char *what);

#endif
