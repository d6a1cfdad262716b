/* SPDX-License-Identifier: Apache-2.0 */
/* Drawing the core's steps: what a real scheduler could have decided, edges more often than it would. */
#include "conformance/suites/core_draw.h"

#include "ref/base/number.h"
#include "ref/layout/puts.h"

static uint64_t below(const struct moon_drawn_core *core, int64_t bound) {
    return bound > 0 ? moon_random_below(core->random, (uint64_t)bound) : 0;
}

/* True once in `times`. */
static bool once(const struct moon_drawn_core *core, int64_t times) {
    return below(core, times) == 0;
}

static void set_int(const struct moon_drawn_core *core, struct moon_json *object, const char *name, int64_t value) {
    moon_json_set(core->arena, object, name, moon_json_int(core->arena, value));
}

static void push_name(const struct moon_drawn_core *core, const char *list, const struct moon_drawn_request *request) {
    moon_json_push(moon_json_member(core->step, list), moon_json_string(core->arena, request->name));
}

/* ---- blocks ---- */

/* Blocks at the head of a group's table that are null when `computed` tokens are there already: a window has lost them,
 * a Mamba group keeps its last state alone. */
static int64_t null_blocks(const struct moon_drawn_core *core, size_t group, int64_t computed) {
    const struct moon_layout_group *its = &core->connector->model->groups[group];
    int64_t window = its->spec.window_tokens;
    if (its->spec.kind == MOON_SPEC_MAMBA)
        return computed > 0 ? (computed - 1) / its->block_tokens : 0;
    if (its->spec.kind != MOON_SPEC_SLIDING_WINDOW && its->spec.kind != MOON_SPEC_SLIDING_WINDOW_MLA)
        return 0;
    return computed >= window ? (computed - window + 1) / its->block_tokens : 0;
}

/* Blocks that a group's table lacks for `tokens` tokens, as a list; the first `null` of the table are null blocks.
 * Those of a Mamba group between its states are null, too. */
static struct moon_json *more_blocks(struct moon_drawn_core *core, struct moon_drawn_request *request, size_t group,
                                     int64_t tokens, int64_t null, bool sparse) {
    const struct moon_layout_group *its = &core->connector->model->groups[group];
    struct moon_json *list = moon_json_array(core->arena);
    int64_t needed = moon_ceil_divide(tokens, its->block_tokens);
    for (; request->tables[group] < needed && list; request->tables[group]++) {
        bool between = sparse && its->spec.kind == MOON_SPEC_MAMBA && request->tables[group] + 1 < needed;
        bool empty = request->tables[group] < null || between;
        moon_json_push(list, moon_json_int(core->arena, empty ? 0 : core->next_block++));
    }
    return list;
}

/* The whole table of a request that starts or comes back. */
static struct moon_json *whole_table(struct moon_drawn_core *core, struct moon_drawn_request *request, int64_t tokens) {
    struct moon_json *tables = moon_json_array(core->arena);
    bool sparse = once(core, 2);
    for (size_t group = 0; group < core->connector->model->group_count; group++) {
        int64_t null = once(core, 5) ? 0 : null_blocks(core, group, request->computed_tokens);
        request->tables[group] = 0;
        moon_json_push(tables, more_blocks(core, request, group, tokens, null, sparse));
    }
    return tables;
}

/* Blocks that are added for a running request; null when it needs none. */
static struct moon_json *added_blocks(struct moon_drawn_core *core, struct moon_drawn_request *request,
                                      int64_t tokens) {
    struct moon_json *tables = moon_json_array(core->arena);
    bool sparse = once(core, 2);
    size_t added = 0;
    for (size_t group = 0; group < core->connector->model->group_count && tables; group++) {
        struct moon_json *list = moon_json_push(tables, more_blocks(core, request, group, tokens, 0, sparse));
        added += list ? list->count : 0;
    }
    return added ? tables : moon_json_null(core->arena);
}

/* ---- what a request does in a step ---- */

/* A request whose prefill begins: some of it may be cached, or have come from another connector but for its last token.
 */
static int64_t cached_tokens(const struct moon_drawn_core *core, int64_t prefill) {
    int64_t unit = core->connector->alignment_tokens;
    if (once(core, 8))
        return prefill - 1;
    return once(core, 3) ? (int64_t)below(core, (prefill - 1) / unit + 1) * unit : 0;
}

/* Tokens of a prefill that are scheduled: all that is left, or a part that often ends at a block. */
static int64_t chunk_tokens(const struct moon_drawn_core *core, const struct moon_drawn_request *request) {
    int64_t left = request->prefill_tokens - request->computed_tokens;
    int64_t unit =
        once(core, 2) ? core->connector->model->scheduler_block_tokens : core->connector->model->hash_block_tokens;
    if (once(core, 2))
        return left;
    if (once(core, 3))
        return 1 + (int64_t)below(core, left);
    int64_t end = (request->computed_tokens / unit + 1 + (int64_t)below(core, 3)) * unit;
    return moon_smaller(end - request->computed_tokens, left);
}

/* Output of a step, and how far the request is after it: drafts that are not accepted are forgotten. */
static void advance(struct moon_drawn_core *core, struct moon_drawn_request *request, int64_t scheduled) {
    bool decodes = request->computed_tokens >= request->prefill_tokens;
    int64_t accepted = decodes ? 1 + (int64_t)below(core, scheduled) : scheduled;
    request->computed_tokens += accepted;
    if (request->computed_tokens < request->prefill_tokens)
        return;
    int64_t output = decodes ? accepted : 1;
    request->known_tokens += output;
    set_int(core, moon_json_member(core->step, "output_tokens"), request->name, output);
}

static struct moon_json *entry(const struct moon_drawn_core *core, const char *list,
                               const struct moon_drawn_request *request, int64_t scheduled) {
    struct moon_json *object = moon_json_push(moon_json_member(core->step, list), moon_json_object(core->arena));
    moon_json_set(core->arena, object, "req", moon_json_string(core->arena, request->name));
    set_int(core, object, "num_computed", request->computed_tokens);
    set_int(core, object, "num_scheduled", scheduled);
    return object;
}

/* A waiting request is new; one that comes back is new with a longer prefill, or resumed among the cached ones. */
static void start(struct moon_drawn_core *core, struct moon_drawn_request *request) {
    bool again = request->state == MOON_CORE_PREEMPTED, cached = again && once(core, 2);
    request->prefill_tokens = request->known_tokens;
    request->computed_tokens = cached_tokens(core, request->prefill_tokens);
    int64_t scheduled = chunk_tokens(core, request);
    struct moon_json *object = entry(core, cached ? "cached" : "new", request, scheduled);
    struct moon_json *table = whole_table(
        core, request, request->computed_tokens + scheduled + (int64_t)below(core, 2) * request->draft_tokens);
    moon_json_set(core->arena, object, cached ? "new_block_ids" : "block_ids", table);
    if (cached)
        moon_json_set(core->arena, object, "resumed", moon_json_bool(core->arena, true));
    else if (again)
        set_int(core, object, "prefill_len", request->prefill_tokens);
    request->state = MOON_CORE_RUNNING;
    advance(core, request, scheduled);
}

static void go_on(struct moon_drawn_core *core, struct moon_drawn_request *request) {
    bool decodes = request->computed_tokens >= request->prefill_tokens;
    int64_t scheduled = decodes ? 1 + (int64_t)below(core, request->draft_tokens + 1) : chunk_tokens(core, request);
    struct moon_json *object = entry(core, "cached", request, scheduled);
    moon_json_set(core->arena, object, "new_block_ids",
                  added_blocks(core, request, request->computed_tokens + scheduled));
    moon_json_set(core->arena, object, "resumed", moon_json_bool(core->arena, false));
    advance(core, request, scheduled);
    if (once(core, 15))
        request->state = MOON_CORE_ENDED;
}

static void preempt(struct moon_drawn_core *core, struct moon_drawn_request *request) {
    push_name(core, "preempted", request);
    request->state = MOON_CORE_PREEMPTED;
}

static void act(struct moon_drawn_core *core, struct moon_drawn_request *request, bool preempting) {
    switch (request->state) {
    case MOON_CORE_WAITING:
    case MOON_CORE_PREEMPTED:
        if (!preempting && !once(core, 3))
            start(core, request);
        break;
    case MOON_CORE_RUNNING:
        if (preempting && once(core, 2))
            preempt(core, request);
        else if (!once(core, 12))
            go_on(core, request);
        break;
    case MOON_CORE_ENDED:
        if (once(core, 2)) {
            push_name(core, "finished", request);
            request->state = MOON_CORE_GONE;
        }
        break;
    case MOON_CORE_GONE:
        break;
    }
}

/* ---- states that are handed off ---- */

/* A position at which a group's state may be handed off: a block's end, or the last hash boundary of the prompt; from
 * 0.32 on any other hash boundary, where prompts part; up to 0.28 the last one alone. 0: there is none yet. */
static int64_t position(const struct moon_drawn_core *core, const struct moon_drawn_request *request, size_t group) {
    const struct moon_layout_model *model = core->connector->model;
    enum moon_boundary_rule rule = core->connector->profile->boundary_rule;
    int64_t block = model->groups[group].block_tokens, unit = model->hash_block_tokens;
    int64_t computed = request->computed_tokens, tail = moon_tail_tokens(model, request->prompt_tokens);
    tail = tail <= computed ? tail : 0;
    if (rule == MOON_BOUNDARY_TAIL || (tail && once(core, 2)))
        return tail;
    if (once(core, 4) && rule == MOON_BOUNDARY_TAIL_ONCE)
        return (int64_t)below(core, computed / unit + 1) * unit;
    return (int64_t)below(core, computed / block + 1) * block;
}

static bool is_mamba(const struct moon_drawn_core *core, size_t group) {
    return core->connector->model->groups[group].spec.kind == MOON_SPEC_MAMBA;
}

/* A group whose state is handed off; from 0.29 on seldom one that has none, which the connector must notice. */
static size_t state_group(const struct moon_drawn_core *core) {
    int64_t count = (int64_t)core->connector->model->group_count;
    bool any = core->connector->profile->boundary_rule != MOON_BOUNDARY_TAIL && once(core, 10);
    size_t group = (size_t)below(core, count);
    for (int64_t i = 0; i < count && !any && !is_mamba(core, group); i++)
        group = (group + 1) % (size_t)count;
    return group;
}

static void hand_off(struct moon_drawn_core *core, const struct moon_drawn_request *request,
                     struct moon_json *offloads) {
    struct moon_json *list = moon_json_array(core->arena);
    bool nulls = core->connector->profile->boundary_rule != MOON_BOUNDARY_TAIL;
    for (uint64_t i = 1 + below(core, 3); i > 0; i--) {
        size_t group = state_group(core);
        int64_t tokens = position(core, request, group), block = nulls && once(core, 12) ? 0 : core->next_block++;
        if (tokens == 0 && !(nulls && once(core, 8)))
            continue;
        struct moon_json *state = moon_json_push(list, moon_json_array(core->arena));
        moon_json_push(state, moon_json_int(core->arena, (int64_t)group));
        moon_json_push(state, moon_json_int(core->arena, block));
        moon_json_push(state, moon_json_int(core->arena, tokens));
    }
    if (!list || list->count)
        moon_json_set(core->arena, offloads, request->name, list);
}

static bool has_states(const struct moon_drawn_core *core) {
    for (size_t group = 0; group < core->connector->model->group_count; group++)
        if (is_mamba(core, group))
            return core->connector->profile->boundary_rule != MOON_BOUNDARY_NONE;
    return false;
}

static void draw_states(struct moon_drawn_core *core) {
    struct moon_json *offloads = moon_json_object(core->arena);
    for (size_t i = 0; i < core->request_count; i++)
        if (core->requests[i].state == MOON_CORE_RUNNING && once(core, 2))
            hand_off(core, &core->requests[i], offloads);
    if (offloads && offloads->count)
        moon_json_set(core->arena, core->step, "boundary_offloads", offloads);
}

void moon_drawn_core_step(struct moon_drawn_core *core, struct moon_json *steps) {
    static const char *const lists[] = {"new", "cached", "preempted", "finished"};
    core->step = moon_json_push(steps, moon_json_object(core->arena));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        moon_json_set(core->arena, core->step, lists[i], moon_json_array(core->arena));
    moon_json_set(core->arena, core->step, "output_tokens", moon_json_object(core->arena));
    bool preempting = once(core, 7);
    for (size_t i = 0; i < core->request_count; i++)
        act(core, &core->requests[i], preempting);
    if (has_states(core))
        draw_states(core);
    core->late = once(core, core->late ? 2 : 12); /* jobs that wait do so for a while */
    if (core->late)
        moon_json_set(core->arena, core->step, "process_jobs", moon_json_bool(core->arena, false));
}
