/* SPDX-License-Identifier: Apache-2.0 */
/* Several connectors behind one port: who is asked, who loads, who is told, and when a request's blocks may go. */
#include "ref/engine/multi_connector.h"

#include <assert.h>

static struct moon_multi_connector *multi_of(struct moon_engine_port *port) {
    return (struct moon_multi_connector *)port;
}

static int match(struct moon_engine_port *self, const struct moon_request *request, int64_t computed_tokens,
                 struct moon_engine_match *out, struct moon_error *error) {
    struct moon_multi_connector *multi = multi_of(self);
    int status = 0;
    *out = (struct moon_engine_match){0};
    for (size_t i = 0; i < multi->child_count && !status; i++) {
        struct moon_engine_match one = {0};
        status = multi->children[i]->match(multi->children[i], request, computed_tokens, &one, error);
        if (!status && one.pending) { /* children behind it are not asked */
            *out = (struct moon_engine_match){.pending = true};
            return 0;
        }
        if (status || out->tokens > 0 || one.tokens <= 0)
            continue;
        *out = one;
        if (moon_slot_table_set(&multi->winners, request->slot, (uint32_t)i + 1))
            status = moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    }
    return status;
}

static int allocated(struct moon_engine_port *self, const struct moon_request *request,
                     const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error) {
    struct moon_multi_connector *multi = multi_of(self);
    uint32_t winner = moon_slot_table_get(&multi->winners, request->slot);
    int status = 0;
    for (size_t i = 0; i < multi->child_count && !status; i++) {
        bool won = i + 1 == winner;
        status = multi->children[i]->allocated(multi->children[i], request,
                                               won || multi->profile->losers_see_blocks ? tables : NULL,
                                               won ? external_tokens : 0, error);
    }
    return status;
}

static int step(struct moon_engine_port *self, const struct moon_step *what, struct moon_error *error) {
    struct moon_multi_connector *multi = multi_of(self);
    int status = 0;
    for (size_t i = 0; i < multi->child_count && !status; i++)
        status = multi->children[i]->step(multi->children[i], what, error);
    return status;
}

static bool finished(struct moon_engine_port *self, const struct moon_request *request, bool has_blocks) {
    struct moon_multi_connector *multi = multi_of(self);
    uint32_t delayed = 0;
    for (size_t i = 0; i < multi->child_count; i++)
        delayed += multi->children[i]->finished(multi->children[i], request, has_blocks);
    moon_slot_table_set(&multi->winners, request->slot, 0);
    /* One delay needs no counting: its report is the last. Without memory for more the first report counts. */
    if (delayed > 1)
        moon_slot_table_set(&multi->sends, request->slot, delayed);
    return delayed > 0;
}

bool moon_multi_connector_sent(struct moon_multi_connector *multi, uint32_t slot) {
    uint32_t open = moon_slot_table_get(&multi->sends, slot);
    if (open > 0)
        moon_slot_table_set(&multi->sends, slot, --open);
    return open == 0;
}

static int report(struct moon_engine_port *self, size_t child, uint64_t job, int64_t ranks, struct moon_error *error) {
    struct moon_multi_connector *multi = multi_of(self);
    if (child >= multi->child_count)
        return moon_fail(error, MOON_ERR_RANGE, NULL, "a worker reports for connector %zu of %zu", child,
                         multi->child_count);
    return multi->children[child]->report(multi->children[child], 0, job, ranks, error);
}

static bool reset(struct moon_engine_port *self) {
    struct moon_multi_connector *multi = multi_of(self);
    bool good = true;
    for (size_t i = 0; i < multi->child_count; i++) /* all, also after one that failed */
        good = multi->children[i]->reset(multi->children[i]) && good;
    return good;
}

void moon_multi_connector_open(struct moon_multi_connector *multi, const struct moon_profile *profile,
                               struct moon_engine_port *const children[], size_t child_count,
                               struct moon_memory *memory) {
    assert(child_count >= 1 && child_count <= MOON_MULTI_CHILDREN_MAX);
    *multi = (struct moon_multi_connector){
        .port = {match, allocated, step, finished, report, reset}, .profile = profile, .child_count = child_count};
    for (size_t i = 0; i < child_count; i++)
        multi->children[i] = children[i];
    moon_slot_table_open(&multi->winners, memory);
    moon_slot_table_open(&multi->sends, memory);
}

void moon_multi_connector_close(struct moon_multi_connector *multi) {
    moon_slot_table_close(&multi->winners);
    moon_slot_table_close(&multi->sends);
}
