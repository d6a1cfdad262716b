/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups answered in the same call. */
#include "conformance/suites/lookup_direct.h"

/* Room for one answer a key. */
static int reserve(struct moon_lookup_direct *direct, size_t count, struct moon_error *error) {
    if (count <= direct->values_capacity)
        return 0;
    int64_t *values = direct->memory->resize(direct->memory, direct->values, direct->values_capacity * sizeof *values,
                                             count * sizeof *values);
    if (!values)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for the answers of a store");
    direct->values = values;
    direct->values_capacity = count;
    return 0;
}

static int ask_store(struct moon_lookup_direct *direct, const struct moon_store_call *call, struct moon_error *error) {
    int status = reserve(direct, call->count, error);
    if (status)
        return status;
    status = direct->exist(direct->context, call, direct->values);
    if (status == MOON_ERR_MEMORY)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    if (status == 0)
        return moon_lookup_answer(&direct->lookup, direct->values, call->count, error);
    moon_lookup_raised(&direct->lookup);
    return 0;
}

static int look_up(struct moon_lookup_port *self, const struct moon_request *request, int64_t num_tokens,
                   bool non_block, struct moon_lookup_result *result, bool *pending, struct moon_error *error) {
    struct moon_lookup_direct *direct = (struct moon_lookup_direct *)self;
    const struct moon_store_call *call;
    struct moon_error failure = {0};
    (void)non_block; /* there is nothing to wait for */
    *pending = false;
    int status = moon_lookup_begin(&direct->lookup, num_tokens, &request->hashes, &call, &failure);
    if (!status && call)
        status = ask_store(direct, call, &failure);
    direct->raised = (struct moon_error){.status = MOON_OK};
    if (status == MOON_ERR_REFUSED)
        direct->raised = failure;
    if (status && error)
        *error = failure;
    *result = direct->lookup.result;
    return status;
}

static void discard(struct moon_lookup_port *self, uint32_t slot) {
    (void)self; /* nothing is ever pending */
    (void)slot;
}

static bool reset(struct moon_lookup_port *self) {
    (void)self; /* the store belongs to the caller */
    return true;
}

void moon_lookup_direct_open(struct moon_lookup_direct *direct, const struct moon_connector *connector,
                             struct moon_memory *memory, moon_exist_store *exist, void *context) {
    *direct = (struct moon_lookup_direct){
        .port = {look_up, discard, reset}, .memory = memory, .exist = exist, .context = context};
    moon_lookup_open(&direct->lookup, connector, memory);
}

void moon_lookup_direct_close(struct moon_lookup_direct *direct) {
    direct->memory->resize(direct->memory, direct->values, direct->values_capacity * sizeof *direct->values, 0);
    moon_lookup_close(&direct->lookup);
}
