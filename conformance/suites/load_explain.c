/* SPDX-License-Identifier: Apache-2.0 */
/* Suite load: the lookup, and each rank's reads, cuts and reports in words. */
#include "conformance/suites/load_case.h"

#include "ref/connector/load_keys.h"

#include <inttypes.h>

enum { KEYS_SHOWN_MAX = 16, BUFFERS_SHOWN_MAX = 4, REPORTS_SHOWN_MAX = 32 };

/* Everything that one function passes to the next.
 *   load        keys of the present rank;  read  how many of them its gets asked for
 *   failed      keys that the rank reports (its profile has judged them)
 *   replicas    the tier log asked before the coming get */
struct telling {
    const struct moon_profile *profile;
    const struct moon_load_case *its;
    struct moon_text *out;
    struct moon_load_keys load;
    size_t read, gets, failed;
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
    for (size_t group = 0; group < match->boundary_count; group++)
        if (match->tail_boundaries[group] != match->hit_tokens)
            moon_text_format(telling->out,
                             "group %zu: the last chunk was stored under the hash at %" PRId64 " (LOAD-005)\n", group,
                             match->tail_boundaries[group]);
}

/* ---- what a rank reads ---- */

/* "group 1: chunks 4 to 5": the chunks of one group among the keys, in the order before the rotation. */
static void tell_group(const struct telling *telling, size_t group, int64_t end_tokens) {
    const struct moon_load_keys *load = &telling->load;
    const struct moon_layout_model *model = telling->its->connector.connector.model;
    uint64_t block = (uint64_t)model->groups[group].block_tokens, first = UINT64_MAX, last = 0;
    uint64_t all = (uint64_t)moon_ceil_divide(end_tokens, (int64_t)block), chunks = 0, before = UINT64_MAX;
    for (size_t i = 0; i < load->count; i++) {
        uint64_t chunk = load->chunks[i].start_tokens / block;
        if (load->groups[i] != group || chunk == before)
            continue;
        first = chunk < first ? chunk : first;
        last = chunk > last ? chunk : last;
        before = chunk;
        chunks++;
    }
    moon_text_format(telling->out, "  group %zu: ", group);
    if (chunks == 0)
        moon_text_string(telling->out, "nothing");
    else if (first == last)
        moon_text_format(telling->out, "chunk %" PRIu64, first);
    else
        moon_text_format(telling->out, "chunks %" PRIu64 " to %" PRIu64, first, last);
    moon_text_format(telling->out,
                     " of %" PRIu64 "; the others are the engine's (LOAD-002) or not needed by its attention "
                     "(LOAD-003)\n",
                     all);
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
    telling->read = telling->gets = telling->failed = 0;
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
        tell_group(telling, group, moon_load_end_tokens(connector, job));
    if (telling->load.count == 0)
        moon_text_string(telling->out, "  NOTHING to read: the division by no keys raises, the load never ends "
                                       "(LOAD-026)\n");
    else
        tell_staging(telling);
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
    telling->failed += result < 0 || (short_read && !telling->profile->short_reads_pass);
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
    if (!results)
        telling->failed += call->count;
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
    struct moon_load_case its;
    struct moon_error failure = {0};
    struct telling telling = {.profile = profile, .its = &its, .out = out};
    const struct moon_load_watch watch = {&telling, tell_match, tell_rank, tell_get, tell_reports};
    moon_text_format(out, "%s (%s)\n", profile->name, profile->version);
    int status = moon_load_case_read(arena, profile, source, given, &its, &failure);
    moon_load_keys_open(&telling.load, arena->memory);
    if (!status)
        status = moon_load_run(arena, source, given, &its, &watch, &failure);
    moon_load_keys_close(&telling.load);
    if (status == MOON_ERR_REFUSED) {
        moon_text_format(out, "raises %s: %s\n", failure.type, failure.message);
        status = 0;
    }
    if (!status && out->failed)
        status = moon_fail(&failure, MOON_ERR_MEMORY, NULL, "out of memory");
    if (status && error)
        *error = failure;
    return status;
}
