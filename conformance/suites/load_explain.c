/* SPDX-License-Identifier: Apache-2.0 */
/* Suite load: the lookup, and each rank's reads, cuts and reports in words. */
#include "conformance/suites/load_case.h"
#include "conformance/suites/refusal.h"

#include "ref/connector/load_keys.h"

#include <inttypes.h>

enum { KEYS_SHOWN_MAX = 16, BUFFERS_SHOWN_MAX = 4, REPORTS_SHOWN_MAX = 32 };

/* Everything that one function passes to the next.
 *   load        keys of the present rank;  read  how many of them its gets asked for
 *   gets        how many it made;  refused  the load is not read (LOAD-014) */
struct telling {
    const struct moon_profile *profile;
    const struct moon_load_case *its;
    struct moon_text *out;
    struct moon_load_keys load;
    size_t read, gets;
    bool refused;
    struct moon_error failure;
};

static const char *plural(size_t count) {
    return count == 1 ? "" : "s";
}

static void tell_match(void *context, const struct moon_match *match) {
    struct telling *telling = context;
    const struct moon_load_case *its = telling->its;
    moon_text_format(telling->out,
                     "prompt of %" PRId64 " tokens; the engine has %" PRId64 ", the store can serve %" PRId64 "\n",
                     its->num_tokens, its->computed_tokens, match->hit_tokens);
    if (match->tokens == 0) {
        moon_text_string(telling->out, "no load is issued: nothing is left to load (LOAD-009)\n");
        return;
    }
    moon_text_format(telling->out, "to load: %" PRId64 " tokens, on every rank (LOAD-009)\n", match->tokens);
}

/* ---- what a rank reads ---- */

/* "chunk 4" or "chunks 4 to 5". */
static void tell_chunks(const struct telling *telling, uint64_t first, uint64_t last) {
    if (first == last)
        moon_text_format(telling->out, "chunk %" PRIu64, first);
    else
        moon_text_format(telling->out, "chunks %" PRIu64 " to %" PRIu64, first, last);
}

/* The chunks of one group among the keys, and why others are not: a group's chunks are neighbours. */
static void tell_group(const struct telling *telling, size_t group, const struct moon_job *job) {
    const struct moon_load_keys *load = &telling->load;
    const struct moon_layout_model *model = telling->its->connector.connector.model;
    int64_t block = model->groups[group].block_tokens, whole = model->scheduler_block_tokens;
    uint64_t first = UINT64_MAX, last = 0;
    uint64_t own = (uint64_t)moon_ceil_divide(job->load_local_tokens / whole * whole, block);
    for (size_t i = load->first; i < load->first + load->count; i++) {
        uint64_t chunk = load->chunks[i].start_tokens / (uint64_t)block;
        if (load->groups[i] != group)
            continue;
        first = chunk < first ? chunk : first;
        last = chunk > last ? chunk : last;
    }
    moon_text_format(telling->out, "  group %zu reads ", group);
    if (first == UINT64_MAX) { /* chunked local attention begins anew where the hit ends */
        moon_text_string(telling->out, "nothing: its attention does not need the hit (LOAD-003)\n");
        return;
    }
    tell_chunks(telling, first, last);
    if (own > 0) {
        moon_text_string(telling->out, "; the engine has ");
        tell_chunks(telling, 0, own - 1);
        moon_text_string(telling->out, " (LOAD-002)");
    }
    if (first > own) {
        moon_text_string(telling->out, "; its attention does not need ");
        tell_chunks(telling, own, first - 1);
        moon_text_string(telling->out, " (LOAD-003)");
    }
    moon_text_char(telling->out, '\n');
}

/* The decision of the staging budget. */
static void tell_staging(struct telling *telling) {
    const struct moon_staging_keys keys = moon_load_staging_keys(&telling->load);
    const struct moon_staging *staging = &telling->its->staging;
    if (!telling->profile->batches_split || !telling->its->offload) {
        moon_text_format(telling->out, "  one get: %s (LOAD-010)\n",
                         telling->profile->batches_split ? "no offloading, so no staging budget"
                                                         : "the release knows no staging budget");
        return;
    }
    if (moon_staging_whole(staging, &keys)) {
        moon_text_format(telling->out, "  one get: all keys fit into %" PRIu64 " staging bytes (LOAD-012)\n",
                         staging->usable_bytes);
        return;
    }
    size_t oversize = moon_staging_oversize(staging, &keys);
    telling->refused = oversize < keys.count;
    if (!telling->refused) {
        moon_text_format(telling->out, "  cut to %" PRIu64 " staging bytes a get (LOAD-012, LOAD-013)\n",
                         staging->usable_bytes);
        return;
    }
    moon_text_format(telling->out,
                     "  NOT READ: key %zu takes %" PRIu64 " staging bytes, the owner has %" PRIu64
                     "; all blocks are reported (LOAD-014)\n",
                     oversize, moon_staging_cost_bytes(&keys, oversize), staging->raw_bytes);
}

static void tell_rank(void *context, const struct moon_rank *rank, const struct moon_segments *segments,
                      const struct moon_job *job) {
    struct telling *telling = context;
    const struct moon_connector *connector = &telling->its->connector.connector;
    telling->read = telling->gets = 0;
    telling->refused = false;
    int status = moon_load_keys_list(&telling->load, connector, rank, segments, job, &telling->failure);
    if (status)
        return; /* the run meets it too */
    moon_text_format(telling->out, "rank %" PRId64 ": tp %" PRId64 ", pcp %" PRId64 ", pp %" PRId64 ": %zu key%s",
                     rank->rank, rank->tp, rank->pcp, rank->pp, telling->load.count, plural(telling->load.count));
    if (telling->load.first > 0)
        moon_text_format(telling->out, ", beginning with key %zu (LOAD-004)", telling->load.first);
    moon_text_char(telling->out, '\n');
    for (size_t group = 0; group < connector->model->group_count; group++)
        tell_group(telling, group, job);
    if (telling->load.count > 0)
        tell_staging(telling);
    else
        moon_text_string(telling->out, telling->profile->empty_load_raises
                                           ? "  NO KEY is left: the load raises and never ends (LOAD-026)\n"
                                           : "  no key is left: the load ends at once (LOAD-026)\n");
}

/* ---- gets ---- */

static void tell_buffers(const struct telling *telling, const struct moon_store_call *call, size_t key) {
    for (size_t i = 0; i < call->buffers_per_key && i < BUFFERS_SHOWN_MAX; i++) {
        const struct moon_buffer *buffer = &call->buffers[key * call->buffers_per_key + i];
        moon_text_format(telling->out, "%s%s at %" PRIu64 " +%" PRIu64, i ? ", " : "",
                         telling->its->tensors[buffer->storage], buffer->offset_bytes, buffer->size_bytes);
    }
    if (call->buffers_per_key > BUFFERS_SHOWN_MAX)
        moon_text_format(telling->out, " and %zu more (LOAD-006)", call->buffers_per_key - BUFFERS_SHOWN_MAX);
}

/* What becomes of a key's result. */
static void tell_result(struct telling *telling, int64_t result, uint64_t bytes) {
    bool short_read = result >= 0 && (uint64_t)result < bytes;
    moon_text_format(telling->out, " -> %" PRId64, result);
    if (result < 0)
        moon_text_string(telling->out, telling->profile->load_report == MOON_LOAD_LOGGED
                                           ? " FAILED, only logged (LOAD-024)"
                                           : " FAILED (LOAD-020)");
    else if (short_read)
        moon_text_string(telling->out, telling->profile->short_reads_pass ? " of fewer bytes PASSES (LOAD-021)"
                                                                          : " of fewer bytes FAILED (LOAD-021)");
}

static void tell_get(void *context, const struct moon_store_call *call, const int64_t *results) {
    struct telling *telling = context;
    const struct moon_staging_keys keys = {call->buffers, call->buffers_per_key, call->count};
    if (call->kind == MOON_CALL_REPLICAS) {
        moon_text_format(telling->out, "  replicas of %zu key%s are asked for (LOAD-030)\n", call->count,
                         plural(call->count));
        return;
    }
    telling->read += call->count;
    moon_text_format(telling->out, "  get %zu: %zu key%s%s\n", telling->gets++, call->count, plural(call->count),
                     results ? "" : ", RAISES: all of them fail (LOAD-022)");
    for (size_t i = 0; i < call->count; i++) {
        bool shown = i < KEYS_SHOWN_MAX || (results && results[i] < 0);
        if (shown) {
            moon_text_string(telling->out, "    ");
            moon_key_list_write(call->keys, call->first + i, telling->out);
            moon_text_format(telling->out, "\n      block %" PRIu64 ": ", call->blocks[i]);
            tell_buffers(telling, call, i);
        }
        if (results && shown)
            tell_result(telling, results[i], moon_staging_data_bytes(&keys, i));
        if (shown)
            moon_text_char(telling->out, '\n');
    }
    if (call->count > KEYS_SHOWN_MAX)
        moon_text_format(telling->out, "    and so on, %zu keys in all\n", call->count);
}

/* ---- reports ---- */

static void tell_blocks(const struct telling *telling, struct moon_receiver *receiver) {
    uint64_t block;
    size_t shown = 0;
    while (moon_receiver_take_failed_block(receiver, &block)) {
        if (shown == 0)
            moon_text_string(telling->out, "  reports blocks");
        if (shown++ < REPORTS_SHOWN_MAX)
            moon_text_format(telling->out, " %" PRIu64, block);
    }
    if (shown > REPORTS_SHOWN_MAX)
        moon_text_format(telling->out, " and %zu more", shown - REPORTS_SHOWN_MAX);
    if (shown > 0)
        moon_text_format(telling->out, " as failed (%s)\n",
                         telling->its->groups_of_engine > 1 ? "LOAD-025: they name a block in each group" : "LOAD-020");
}

static void tell_reports(void *context, const struct moon_rank *rank, struct moon_receiver *receiver) {
    static const char id[] = "r";
    struct telling *telling = context;
    struct moon_tier_summary summary;
    uint32_t slot;
    (void)rank;
    if (moon_receiver_take_tiers(receiver, &summary, &slot)) {
        moon_text_string(telling->out, "  log of the last get: ");
        moon_tier_summary_write(&summary, moon_key_text(id), telling->out);
        moon_text_string(telling->out, " (LOAD-031)\n");
    }
    if (telling->read < telling->load.count && !telling->refused && telling->gets > 0)
        moon_text_format(telling->out,
                         "  NEITHER READ NOR REPORTED: the other %zu key%s, after a failed get "
                         "(LOAD-023)\n",
                         telling->load.count - telling->read, plural(telling->load.count - telling->read));
    tell_blocks(telling, receiver);
    while (moon_receiver_take_failed_request(receiver, &slot))
        moon_text_string(telling->out, "  reports the request as failed (LOAD-025)\n");
    while (moon_receiver_take_finished(receiver, &slot))
        moon_text_string(telling->out, "  reports the request as received (LOAD-027)\n");
}

int moon_load_explain(const struct moon_suite_world *world, struct moon_arena *arena,
                      const struct moon_profile *profile, const char *source, const struct moon_json *given,
                      struct moon_text *out, struct moon_error *error) {
    (void)world; /* a load depends on nothing outside the case */
    struct moon_load_case its = {0};
    struct moon_error failure = {0};
    struct telling telling = {.profile = profile, .its = &its, .out = out};
    const struct moon_load_watch watch = {&telling, tell_match, tell_rank, tell_get, tell_reports};
    moon_text_format(out, "%s (%s)\n", profile->name, profile->version);
    int status = moon_load_case_read(arena, profile, source, given, &its, &failure);
    moon_load_keys_open(&telling.load, arena->memory);
    if (!status)
        status = moon_load_run(arena, source, given, &its, &watch, &failure);
    moon_load_keys_close(&telling.load);
    return moon_suite_end_explain(status, out, &failure, error);
}
