/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup: drawing a request and a store with holes where the hit search turns: at boundaries and tails. */
#include "conformance/suites/engine_draw.h"
#include "conformance/suites/lookup.h"
#include "ref/layout/lookup.h"

enum { TRIES = 16, KEYS_ABOUT = 1500, CHUNKS_MAX = 12 };

/* What a group has up to a boundary; the rest is not there. */
enum pattern { ALL, PREFIX, PREFIX_WITH_HOLE, TAIL, TAILS, MANY, SOME, NONE, PATTERNS };

struct drawing {
    struct moon_arena *arena;
    struct moon_random *random;
    const struct moon_profile *profile;
    struct moon_json *given;
    struct moon_connector_case its;
    struct moon_hashes hashes;
    int64_t tokens, boundary;
    size_t odd; /* group that has holes */
    struct moon_key_list keys;
};

static void set(const struct drawing *drawing, const char *name, struct moon_json *value) {
    moon_json_set(drawing->arena, drawing->given, name, value);
}

/* ---- engine and request ---- */

static void draw_options(const struct drawing *drawing) {
    static const char *const roles[] = {"kv_both", "kv_both", "kv_both", "kv_producer", "kv_consumer"};
    set(drawing, "kv_role", moon_json_string(drawing->arena, roles[moon_random_below(drawing->random, 5)]));
    moon_engine_draw_options(drawing->arena, drawing->random, 16, drawing->given);
}

/* Draws until the release runs the engine, or raises, which is an answer too; at last the engine without any member. */
static int draw_engine(struct drawing *drawing) {
    const struct moon_engine_limits limits = {.world_max = 8, .groups_max = 4};
    struct moon_error error = {0};
    int status = MOON_ERR_UNSUPPORTED;
    for (int i = 0; i < TRIES && status == MOON_ERR_UNSUPPORTED; i++) {
        drawing->given = moon_json_object(drawing->arena);
        moon_engine_draw(drawing->arena, drawing->random, drawing->profile, &limits, drawing->given);
        draw_options(drawing);
        if (moon_json_broken(drawing->given))
            return MOON_ERR_MEMORY;
        status =
            moon_connector_case_read(drawing->arena, drawing->profile, "drawn", drawing->given, &drawing->its, &error);
    }
    if (status != MOON_ERR_UNSUPPORTED && status != MOON_ERR_REFUSED)
        return status;
    if (status == MOON_ERR_UNSUPPORTED)
        drawing->given = moon_json_object(drawing->arena);
    const struct moon_json *plain = moon_json_object(drawing->arena);
    if (!plain)
        return MOON_ERR_MEMORY;
    return moon_connector_case_read(drawing->arena, drawing->profile, "drawn", plain, &drawing->its, &error);
}

/* Lengths near multiples of the scheduler block, where a whole hit turns. */
static int draw_request(struct drawing *drawing) {
    const struct moon_layout_model *model = &drawing->its.engine.model;
    int64_t block = model->scheduler_block_tokens, unit = model->hash_block_tokens;
    uint64_t keys = (uint64_t)(block / unit * model->tp * model->pp) * model->group_count;
    uint64_t chunks = KEYS_ABOUT / keys < CHUNKS_MAX ? KEYS_ABOUT / keys : CHUNKS_MAX;
    drawing->tokens = (int64_t)moon_random_below(drawing->random, chunks + 1) * block;
    if (moon_random_chance(drawing->random, 1, 3))
        drawing->tokens += (int64_t)moon_random_below(drawing->random, (uint64_t)block);
    else if (moon_random_chance(drawing->random, 1, 2))
        drawing->tokens +=
            moon_random_between(drawing->random, -1, 1) + (int64_t)moon_random_below(drawing->random, 2) * unit;
    drawing->tokens =
        drawing->tokens > 0 ? drawing->tokens : 1 + (int64_t)moon_random_below(drawing->random, 2 * (uint64_t)unit);
    size_t count = (size_t)(drawing->tokens / unit), bytes = 16;
    struct moon_json *list = moon_json_array(drawing->arena);
    uint8_t *hashes = moon_arena_array(drawing->arena, count, bytes);
    if (!hashes)
        return MOON_ERR_MEMORY;
    moon_random_fill(drawing->random, hashes, count * bytes);
    for (size_t i = 0; i < count; i++)
        moon_json_push(list, moon_json_hex(drawing->arena, hashes + i * bytes, bytes));
    drawing->hashes = (struct moon_hashes){hashes, bytes, count};
    set(drawing, "num_tokens", moon_json_int(drawing->arena, drawing->tokens));
    set(drawing, "block_hashes", list);
    int64_t computed = 0;
    if (moon_random_chance(drawing->random, 1, 4))
        computed = (int64_t)moon_random_below(drawing->random, (uint64_t)drawing->tokens + 1);
    if (!moon_random_chance(drawing->random, 1, 6))
        computed -= computed % (moon_random_chance(drawing->random, 1, 2) ? block : unit);
    set(drawing, "num_computed_tokens", moon_json_int(drawing->arena, computed));
    return 0;
}

/* ---- the store ---- */

/* Whether a group has its chunks: up to `end`, but for a hole, or only the last `tail` tokens; or of each scheduler
 * block the last ones, up to `end` (lengths: how many, four bits for each of them). */
struct presence {
    enum pattern pattern;
    int64_t end, hole, tail, block, scheduler_block;
    uint64_t lengths;
};

/* Most groups have what a hit at the boundary needs; the others decide. */
static struct presence draw_presence(const struct drawing *drawing, size_t group) {
    const struct moon_layout_model *model = &drawing->its.engine.model;
    int64_t block = model->groups[group].block_tokens, unit = model->hash_block_tokens;
    struct presence out = {.pattern = moon_random_chance(drawing->random, 1, 2) ? ALL : PREFIX,
                           .end = drawing->boundary,
                           .block = block,
                           .scheduler_block = model->scheduler_block_tokens,
                           .lengths = moon_random_u64(drawing->random)};
    if (group != drawing->odd && !moon_random_chance(drawing->random, 1, 5))
        return out;
    bool sparse =
        !moon_spec_is_full(moon_layout_group_spec(&model->groups[group])) && moon_random_chance(drawing->random, 1, 2);
    out.pattern = sparse ? TAILS
                         : (enum pattern)moon_random_below(drawing->random,
                                                           moon_random_chance(drawing->random, 1, 4) ? PATTERNS : MANY);
    out.end += moon_random_between(drawing->random, -1, 1) * (moon_random_chance(drawing->random, 1, 2) ? unit : block);
    out.hole = out.end - (int64_t)moon_random_below(drawing->random, 4) *
                             (moon_random_chance(drawing->random, 1, 2) ? unit : block);
    out.tail = (int64_t)(1 + moon_random_below(drawing->random, 5)) * block;
    return out;
}

static bool in_tails(const struct presence *presence, int64_t end) {
    int64_t number = (end - 1) / presence->scheduler_block, left = (number + 1) * presence->scheduler_block - end;
    int64_t length = (int64_t)(presence->lengths >> (number % 16 * 4) & 15);
    return left < length % (presence->scheduler_block / presence->block + 2) * presence->block;
}

static bool has_chunk(const struct drawing *drawing, const struct presence *presence, int64_t end) {
    switch (presence->pattern) {
    case ALL:
        return true;
    case PREFIX:
        return end <= presence->end;
    case PREFIX_WITH_HOLE:
        return end <= presence->end && end != presence->hole;
    case TAIL:
        return end <= presence->end && end > presence->end - presence->tail;
    case TAILS:
        return end <= presence->end && in_tails(presence, end);
    case MANY:
        return !moon_random_chance(drawing->random, 1, 8);
    case SOME:
        return moon_random_chance(drawing->random, 1, 2);
    default:
        return false;
    }
}

/* Keys in the store: of each chunk that its group has all, or seldom all but one. */
static void draw_store(struct drawing *drawing, const bool *present) {
    struct moon_json *list = moon_json_array(drawing->arena);
    struct moon_json *answers = moon_json_object(drawing->arena);
    bool gaps = moon_random_chance(drawing->random, 1, 6), overrides = moon_random_chance(drawing->random, 1, 8);
    struct moon_text key;
    moon_text_open(&key, drawing->arena->memory);
    for (size_t i = 0; i < drawing->keys.count; i++) {
        static const int64_t values[] = {-1, -800, 0, 2, 1};
        bool exists = present[drawing->keys.pairs[i].hash] && !(gaps && moon_random_chance(drawing->random, 1, 60));
        bool other = overrides && moon_random_chance(drawing->random, 1, 40);
        moon_text_clear(&key);
        moon_key_list_write(&drawing->keys, i, &key);
        if (exists)
            moon_json_push(list, key.failed ? NULL : moon_json_bytes(drawing->arena, key.data, key.length));
        if (other && !key.failed && !moon_json_member(answers, key.data))
            moon_json_set(drawing->arena, answers, key.data,
                          moon_json_int(drawing->arena, values[moon_random_below(drawing->random, 5)]));
    }
    moon_text_close(&key);
    set(drawing, "existing_keys", list);
    set(drawing, "exist_result_override", answers);
    set(drawing, "exist_raises", moon_json_bool(drawing->arena, moon_random_chance(drawing->random, 1, 40)));
}

static int draw_chunks(struct drawing *drawing) {
    const struct moon_connector *connector = &drawing->its.connector;
    int64_t align = connector->alignment_tokens, limit = drawing->tokens / align * align;
    struct presence presence = {.pattern = ALL};
    struct moon_asked asked;
    struct moon_chunk chunk;
    size_t group = 0, last = SIZE_MAX, count = 0;
    moon_lookup_keys(drawing->profile, connector->model, &connector->selection, &drawing->hashes, limit,
                     &drawing->keys);
    bool *present = moon_arena_array(drawing->arena, drawing->keys.hash_count, sizeof *present);
    if (!present || drawing->keys.failed)
        return MOON_ERR_MEMORY;
    drawing->boundary =
        limit - (moon_random_chance(drawing->random, 1, 2)
                     ? (int64_t)moon_random_below(drawing->random, (uint64_t)(limit / align) + 1) * align
                     : 0);
    drawing->odd = moon_random_below(drawing->random, connector->model->group_count);
    bool noise = moon_random_chance(drawing->random, 1, 6);
    moon_asked_open(&asked, drawing->profile, connector->model, limit, (int64_t)drawing->hashes.count);
    for (; moon_asked_next(&asked, &group, &chunk); last = group) {
        if (group != last)
            presence = draw_presence(drawing, group);
        present[count] =
            has_chunk(drawing, &presence, chunk.end_tokens) != (noise && moon_random_chance(drawing->random, 1, 24));
        count++;
    }
    draw_store(drawing, present);
    return 0;
}

int moon_lookup_draw(struct moon_arena *arena, struct moon_random *random, const struct moon_profile *profile,
                     struct moon_json **given) {
    struct drawing drawing = {.arena = arena, .random = random, .profile = profile};
    int status = draw_engine(&drawing);
    if (!status)
        status = draw_request(&drawing);
    moon_key_list_open(&drawing.keys, arena->memory);
    if (!status)
        status = draw_chunks(&drawing);
    moon_key_list_close(&drawing.keys);
    if (!status && moon_json_broken(drawing.given))
        status = MOON_ERR_MEMORY;
    *given = drawing.given;
    return status;
}
