/* SPDX-License-Identifier: Apache-2.0 */
/* Suite layout: reading a case. */
#include "conformance/suites/hashes.h"
#include "conformance/suites/layout.h"

static int out_of_memory(struct moon_error *error) {
    return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
}

/* Block table of one group: as given, or 1, 2, 3, ... for all its chunks. */
static int read_table(struct moon_arena *arena, const char *source, const struct moon_json *list, int64_t chunks,
                      struct moon_block_table *out, struct moon_error *error) {
    if (list && list->type != MOON_JSON_ARRAY)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, list,
                              "block_ids holds a list of block numbers for each group");
    size_t count = list ? list->count : (size_t)chunks;
    int64_t *blocks = moon_arena_array(arena, count, sizeof *blocks);
    if (!blocks)
        return out_of_memory(error);
    for (size_t i = 0; !list && i < count; i++)
        blocks[i] = (int64_t)i + 1;
    for (const struct moon_json *each = list ? list->first : NULL; each; each = each->next) {
        if (each->type != MOON_JSON_INTEGER || !each->fits || each->integer < 0)
            return moon_json_fail(error, MOON_ERR_SCHEMA, source, each, "a block number of 0 or more is needed");
        blocks[each->index] = each->integer;
    }
    *out = (struct moon_block_table){blocks, count};
    return 0;
}

static int read_tables(struct moon_arena *arena, const char *source, const struct moon_json *given,
                       struct moon_layout_case *its, struct moon_error *error) {
    const struct moon_layout_model *model = &its->engine.model;
    struct moon_json *lists = NULL;
    int status = moon_json_get(source, given, "block_ids", false, MOON_JSON_ARRAY, &lists, error);
    if (status)
        return status;
    if (lists && lists->count != model->group_count)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, lists, "%zu lists of blocks for %zu groups of the store",
                              lists->count, model->group_count);
    struct moon_block_table *tables = moon_arena_array(arena, model->group_count, sizeof *tables);
    if (!tables)
        return out_of_memory(error);
    const struct moon_json *list = lists ? lists->first : NULL;
    for (size_t i = 0; i < model->group_count && !status; i++) {
        status = read_table(arena, source, list, its->save.tokens / model->groups[i].block_tokens, &tables[i], error);
        list = list ? list->next : NULL;
    }
    its->save.tables = tables;
    return status;
}

int moon_layout_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                          const struct moon_json *given, struct moon_layout_case *out, struct moon_error *error) {
    static const char *const names[] = {MOON_ENGINE_MEMBERS, "num_chunks", "block_hashes", "block_ids", NULL};
    *out = (struct moon_layout_case){0};
    const struct moon_layout_model *model = &out->engine.model;
    int64_t chunks = 1;
    int status = moon_json_closed(source, given, names, error);
    if (!status)
        status = moon_engine_read(arena, profile, source, given, &out->engine, error);
    if (!status)
        status = moon_json_get_int(source, given, "num_chunks", false, 0, MOON_LAYOUT_CHUNKS_MAX, &chunks, error);
    if (status)
        return status;
    out->save.tokens = out->save.prefill_end_tokens = chunks * model->scheduler_block_tokens;
    int64_t needed = out->save.tokens / model->hash_block_tokens;
    status = moon_hashes_read(arena, source, given, false, &out->hashes, error);
    if (!status && !out->hashes.bytes)
        status = moon_hashes_number(arena, needed, &out->hashes, error);
    if (!status && (int64_t)out->hashes.count < needed)
        status = moon_json_fail(error, MOON_ERR_RANGE, source, moon_json_member(given, "block_hashes"),
                                "%lld block hashes are needed for this prompt", (long long)needed);
    if (status)
        return status;
    out->save.hash_count = (int64_t)out->hashes.count;
    moon_store_select(profile, model, &out->selection);
    return read_tables(arena, source, given, out, error);
}

size_t moon_layout_ranks(const struct moon_layout_model *model, int64_t out[MOON_LAYOUT_RANKS_MAX]) {
    int64_t world = moon_world_size(model);
    if (world > MOON_LAYOUT_RANKS_MAX) {
        out[0] = 0;
        out[1] = 1;
        out[2] = world / 2;
        out[3] = world - 1;
        return 4;
    }
    for (int64_t i = 0; i < world; i++)
        out[i] = i;
    return (size_t)world;
}
