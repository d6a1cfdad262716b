/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a case of the suite save from JSON. */
#include "conformance/suites/save_case.h"

#include "conformance/suites/hashes.h"

#include <string.h>

/* Everything that one function passes to the next. */
struct reader {
    struct moon_arena *arena;
    const char *source;
    const struct moon_json *given;
    struct moon_save_case *out;
    struct moon_error *error;
};

static int out_of_memory(const struct reader *r) {
    return moon_fail(r->error, MOON_ERR_MEMORY, NULL, "no memory to read the case");
}

static int get_tokens(const struct reader *r, const struct moon_json *object, const char *name, bool required,
                      int64_t min, int64_t *out) {
    return moon_json_get_int(r->source, object, name, required, min, MOON_SAVE_TOKENS_MAX, out, r->error);
}

/* Opens an array or object: *list stays NULL when it is left out, else *out gets room for one struct an element. */
static int open_list(const struct reader *r, const struct moon_json *object, const char *name, enum moon_json_type type,
                     size_t element_bytes, struct moon_json **list, void **out) {
    int status = moon_json_get(r->source, object, name, false, type, list, r->error);
    if (status || !*list)
        return status;
    *out = moon_arena_array(r->arena, (*list)->count, element_bytes);
    return *out ? 0 : out_of_memory(r);
}

/* ---- requests ---- */

/* Tokens that the steps give to a request. */
static int64_t all_outputs(const struct reader *r, const struct moon_json *request) {
    const struct moon_json *steps = moon_json_member(r->given, "steps");
    int64_t tokens = 0;
    for (const struct moon_json *step = steps ? steps->first : NULL; step; step = step->next) {
        const struct moon_json *more = moon_json_member(moon_json_member(step, "output_tokens"), request->name);
        if (more && more->integer > 0 && tokens <= MOON_SAVE_TOKENS_MAX)
            tokens += more->integer < MOON_SAVE_TOKENS_MAX ? more->integer : MOON_SAVE_TOKENS_MAX;
    }
    return tokens;
}

static int read_request(const struct reader *r, const struct moon_json *place, struct moon_save_request *out) {
    static const char *const names[] = {"prompt_len", "block_hashes", NULL};
    *out = (struct moon_save_request){.place = place};
    int status = moon_json_closed(r->source, place, names, r->error);
    if (!status)
        status = get_tokens(r, place, "prompt_len", true, 1, &out->prompt_tokens);
    if (!status)
        status = moon_hashes_read(r->arena, r->source, place, false, &out->hashes, r->error);
    if (status || out->hashes.bytes)
        return status;
    int64_t tokens = out->prompt_tokens + all_outputs(r, place);
    return moon_hashes_number(r->arena, tokens / r->out->its.engine.model.hash_block_tokens, &out->hashes, r->error);
}

static int read_requests(const struct reader *r) {
    struct moon_json *list = NULL;
    void *requests = NULL;
    int status = open_list(r, r->given, "requests", MOON_JSON_OBJECT, sizeof *r->out->requests, &list, &requests);
    if (status || !list)
        return status;
    r->out->requests = requests;
    if (list->count > MOON_SAVE_REQUESTS_MAX)
        return moon_json_fail(r->error, MOON_ERR_LIMIT, r->source, list, "at most %d requests", MOON_SAVE_REQUESTS_MAX);
    for (const struct moon_json *each = list->first; each && !status; each = each->next)
        status = read_request(r, each, &r->out->requests[r->out->request_count++]);
    return status;
}

/* The slot of a request by its name. */
static int find_request(const struct reader *r, const struct moon_json *place, const char *name, size_t length,
                        uint32_t *slot) {
    for (size_t i = 0; i < r->out->request_count; i++) {
        const struct moon_json *request = r->out->requests[i].place;
        if (request->name_length == length && memcmp(request->name, name, length) == 0) {
            *slot = (uint32_t)i;
            return 0;
        }
    }
    return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, place, "there is no request \"%.*s\"",
                          (int)(length < 64 ? length : 64), name);
}

static int read_names(const struct reader *r, const struct moon_json *step, const char *name, uint32_t **out,
                      size_t *count) {
    struct moon_json *list = NULL;
    void *slots = NULL;
    int status = open_list(r, step, name, MOON_JSON_ARRAY, sizeof **out, &list, &slots);
    *out = slots;
    for (const struct moon_json *each = list ? list->first : NULL; each && !status; each = each->next) {
        if (each->type != MOON_JSON_STRING)
            return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, each, "the name of a request is needed");
        status = find_request(r, each, each->bytes, each->length, &(*out)[(*count)++]);
    }
    return status;
}

/* ---- requests of a step ---- */

static int read_table(const struct reader *r, const struct moon_json *list, struct moon_block_table *out) {
    if (list->type != MOON_JSON_ARRAY)
        return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, list, "a list of block numbers a group is needed");
    int64_t *blocks = moon_arena_array(r->arena, list->count, sizeof *blocks);
    if (!blocks)
        return out_of_memory(r);
    for (const struct moon_json *each = list->first; each; each = each->next) {
        if (each->type != MOON_JSON_INTEGER || !each->fits || each->integer < 0)
            return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, each, "a block number of 0 or more is needed");
        blocks[each->index] = each->integer;
    }
    *out = (struct moon_block_table){blocks, list->count};
    return 0;
}

/* Tables of an entry, one a store group; null when nothing was added. */
static int read_tables(const struct reader *r, const struct moon_json *place, const char *name, bool required,
                       struct moon_block_table **out) {
    const struct moon_json *lists = moon_json_member(place, name);
    size_t groups = r->out->its.engine.model.group_count;
    if (!required && (!lists || lists->type == MOON_JSON_NULL))
        return 0;
    if (!lists || lists->type != MOON_JSON_ARRAY)
        return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, lists ? lists : place,
                              "%s is needed: a list of block numbers for each group", name);
    if (lists->count != groups)
        return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, lists,
                              "%zu lists of blocks for %zu groups of the store", lists->count, groups);
    *out = moon_arena_array(r->arena, groups, sizeof **out);
    if (!*out)
        return out_of_memory(r);
    int status = 0;
    for (const struct moon_json *each = lists->first; each && !status; each = each->next)
        status = read_table(r, each, &(*out)[each->index]);
    return status;
}

static int read_entry(const struct reader *r, const struct moon_json *place, bool fresh, struct moon_save_entry *out) {
    static const char *const fresh_names[] = {"req", "num_computed", "num_scheduled", "block_ids", "prefill_len", NULL};
    static const char *const cached_names[] = {"req",           "num_computed", "num_scheduled",
                                               "new_block_ids", "resumed",      NULL};
    const char *name = NULL;
    size_t length;
    *out = (struct moon_save_entry){.place = place};
    int status = moon_json_closed(r->source, place, fresh ? fresh_names : cached_names, r->error);
    if (!status)
        status = moon_json_get_string(r->source, place, "req", true, &name, &length, r->error);
    if (!status)
        status = find_request(r, moon_json_member(place, "req"), name, length, &out->slot);
    if (!status)
        status = get_tokens(r, place, "num_computed", false, 0, &out->computed_tokens);
    if (!status)
        status = get_tokens(r, place, "num_scheduled", true, 0, &out->scheduled_tokens);
    if (!status && fresh && !moon_json_is(moon_json_member(place, "prefill_len"), MOON_JSON_NULL))
        status = get_tokens(r, place, "prefill_len", false, 1, &out->prefill_tokens);
    if (!status && !fresh)
        status = moon_json_get_bool(r->source, place, "resumed", false, &out->resumed, r->error);
    if (!status)
        status = read_tables(r, place, fresh ? "block_ids" : "new_block_ids", fresh || out->resumed, &out->blocks);
    return status;
}

static int read_entries(const struct reader *r, const struct moon_json *step, bool fresh, struct moon_save_entry **out,
                        size_t *count) {
    struct moon_json *list = NULL;
    void *entries = NULL;
    int status = open_list(r, step, fresh ? "new" : "cached", MOON_JSON_ARRAY, sizeof **out, &list, &entries);
    *out = entries;
    for (const struct moon_json *each = list ? list->first : NULL; each && !status; each = each->next)
        status = read_entry(r, each, fresh, &(*out)[(*count)++]);
    return status;
}

/* ---- the rest of a step ---- */

static int read_outputs(const struct reader *r, const struct moon_json *place, struct moon_save_step *step) {
    struct moon_json *list = NULL;
    void *outputs = NULL;
    int status = open_list(r, place, "output_tokens", MOON_JSON_OBJECT, sizeof *step->outputs, &list, &outputs);
    step->outputs = outputs;
    for (const struct moon_json *each = list ? list->first : NULL; each && !status; each = each->next) {
        struct moon_save_output *output = &step->outputs[step->output_count++];
        output->place = each;
        status = find_request(r, each, each->name, each->name_length, &output->slot);
        if (!status)
            status = get_tokens(r, list, each->name, true, 0, &output->tokens);
    }
    return status;
}

/* [group, block, tokens] */
static int read_boundary(const struct reader *r, const struct moon_json *place, struct moon_step_boundary *out) {
    int64_t numbers[3] = {0, 0, 0};
    const struct moon_json *groups = moon_json_member(r->given, "groups");
    const struct moon_json *each = moon_json_is(place, MOON_JSON_ARRAY) && place->count == 3 ? place->first : NULL;
    for (size_t i = 0; each; each = each->next) {
        if (each->type != MOON_JSON_INTEGER || !each->fits || each->integer < 0)
            break;
        numbers[i++] = each->integer;
        if (i == 1 && (size_t)numbers[0] >= (groups ? groups->count : 1))
            return moon_json_fail(r->error, MOON_ERR_RANGE, r->source, each, "there is no group %lld",
                                  (long long)numbers[0]);
        if (i == 3) {
            out->put = (struct moon_boundary_put){(size_t)numbers[0], numbers[1], numbers[2]};
            return 0;
        }
    }
    return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, each ? each : place,
                          "[group, block, tokens] is needed, each 0 or more");
}

static int read_boundaries(const struct reader *r, const struct moon_json *place, struct moon_save_step *step) {
    struct moon_json *list = NULL;
    size_t total = 0;
    int status = moon_json_get(r->source, place, "boundary_offloads", false, MOON_JSON_OBJECT, &list, r->error);
    for (const struct moon_json *each = list ? list->first : NULL; each && !status; each = each->next) {
        if (each->type != MOON_JSON_ARRAY)
            return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, each, "a list of states is needed");
        total += each->count;
    }
    if (status || !list)
        return status;
    step->boundaries = moon_arena_array(r->arena, total, sizeof *step->boundaries);
    if (!step->boundaries)
        return out_of_memory(r);
    for (const struct moon_json *each = list->first; each; each = each->next)
        for (const struct moon_json *state = each->first; state && !status; state = state->next) {
            struct moon_step_boundary *out = &step->boundaries[step->boundary_count++];
            status = find_request(r, each, each->name, each->name_length, &out->slot);
            if (!status)
                status = read_boundary(r, state, out);
        }
    return status;
}

static int read_step(const struct reader *r, const struct moon_json *place, struct moon_save_step *step) {
    static const char *const names[] = {"new",           "cached",       "preempted",         "finished",
                                        "output_tokens", "process_jobs", "boundary_offloads", NULL};
    *step = (struct moon_save_step){.place = place, .process_jobs = true};
    int status = moon_json_closed(r->source, place, names, r->error);
    if (!status)
        status = read_entries(r, place, true, &step->fresh, &step->fresh_count);
    if (!status)
        status = read_entries(r, place, false, &step->cached, &step->cached_count);
    if (!status)
        status = read_names(r, place, "preempted", &step->preempted, &step->preempted_count);
    if (!status)
        status = read_names(r, place, "finished", &step->finished, &step->finished_count);
    if (!status)
        status = read_outputs(r, place, step);
    if (!status)
        status = moon_json_get_bool(r->source, place, "process_jobs", false, &step->process_jobs, r->error);
    return status ? status : read_boundaries(r, place, step);
}

static int read_steps(const struct reader *r) {
    struct moon_json *list = NULL;
    void *steps = NULL;
    int status = open_list(r, r->given, "steps", MOON_JSON_ARRAY, sizeof *r->out->steps, &list, &steps);
    r->out->steps = steps;
    for (const struct moon_json *each = list ? list->first : NULL; each && !status; each = each->next)
        status = read_step(r, each, &r->out->steps[r->out->step_count++]);
    return status;
}

int moon_save_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                        const struct moon_json *given, struct moon_save_case *out, struct moon_error *error) {
    static const char *const names[] = {MOON_CONNECTOR_MEMBERS, "requests", "existing_keys",
                                        "put_results",          "steps",    NULL};
    *out = (struct moon_save_case){.source = source};
    const struct reader r = {arena, source, given, out, error};
    moon_key_set_open(&out->existing, arena);
    moon_key_set_open(&out->put_results, arena);
    int status = moon_json_closed(source, given, names, error);
    if (!status)
        status = moon_connector_case_read(arena, profile, source, given, &out->its, error);
    if (!status && moon_world_size(&out->its.engine.model) > MOON_SAVE_RANKS_MAX)
        status = moon_json_fail(error, MOON_ERR_LIMIT, source, moon_json_member(given, "topology"), "at most %d ranks",
                                MOON_SAVE_RANKS_MAX);
    if (!status)
        status = moon_key_set_read_list(&out->existing, source, given, "existing_keys", error);
    if (!status)
        status = moon_key_set_read_numbers(&out->put_results, source, given, "put_results", error);
    if (!status)
        status = read_requests(&r);
    return status ? status : read_steps(&r);
}
