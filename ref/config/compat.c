/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing two deployments: the order of the work, the states, the verdict. */
#include "ref/config/compat.h"

#include "ref/config/compat_pair.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What the key, the guide and the public say about each subject. */
static const struct {
    const char *name, *requirement, *guide, *report;
} subjects[MOON_COMPAT_SUBJECT_COUNT] = {
    [MOON_COMPAT_START] = {"start", "COMPAT-027", "", NULL},
    [MOON_COMPAT_MASTER] = {"master", "COMPAT-004", "G5, G8", NULL},
    [MOON_COMPAT_METADATA_SERVER] = {"metadata-server", "COMPAT-005", "G7", NULL},
    [MOON_COMPAT_PROTOCOL] = {"protocol", "COMPAT-005", "G11", "kvcache-ai/Mooncake issue #553"},
    [MOON_COMPAT_TENANT] = {"tenant", "COMPAT-006", "G14, G39", "vllm-project/vllm PR #48069"},
    [MOON_COMPAT_HASH_ALGORITHM] = {"hash-algorithm", "COMPAT-007", "G55", NULL},
    [MOON_COMPAT_NONE_HASH] = {"none-hash", "COMPAT-008", "G55, G56, G57", "vllm-project/vllm PR #51875"},
    [MOON_COMPAT_HASH_BLOCK] = {"hash-block", "COMPAT-009", "G55", "vllm-project/vllm PR #45767"},
    [MOON_COMPAT_EXTRA_KEYS] = {"extra-keys", "COMPAT-010", "G55", "vllm-project/vllm PR #44706"},
    [MOON_COMPAT_REQUEST] = {"request", "COMPAT-010", "G55", NULL},
    [MOON_COMPAT_MODEL] = {"model", "COMPAT-011", "", NULL},
    [MOON_COMPAT_CACHE_PREFIX] = {"cache-prefix", "COMPAT-012", "G52", NULL},
    [MOON_COMPAT_GROUP_FIELD] = {"group-field", "COMPAT-013", "", NULL},
    [MOON_COMPAT_CHUNK_HASH] = {"chunk-hash", "COMPAT-013", "", NULL},
    [MOON_COMPAT_NAMESPACE] = {"namespace", "COMPAT-014", "G21 to G33", "vllm-project/vllm PR #53129"},
    [MOON_COMPAT_GROUPS] = {"groups", "COMPAT-016", "", NULL},
    [MOON_COMPAT_RANKS] = {"ranks", "COMPAT-017", "G27, G29", "vllm-project/vllm PR #46855"},
    [MOON_COMPAT_WINDOW] = {"sliding-window", "COMPAT-018", "", NULL},
    [MOON_COMPAT_EXTRA_WINDOW] = {"extra-window", "COMPAT-019", "", NULL},
    [MOON_COMPAT_MAMBA] = {"mamba", "COMPAT-020", "", NULL},
    [MOON_COMPAT_STORED] = {"stored", "COMPAT-017", "", NULL},
    [MOON_COMPAT_ROLE] = {"role", "COMPAT-021", "G18, G20, G48", NULL},
    [MOON_COMPAT_BYTES] = {"bytes", "COMPAT-015", "G21", "vllm-project/vllm PR #45767"},
    [MOON_COMPAT_CONTENT] = {"content", "COMPAT-022", "G52",
                             "vllm-project/vllm PR #45767, InternLM/lmdeploy issue #4930"},
    [MOON_COMPAT_LORA] = {"lora", "COMPAT-023", "", "vllm-project/vllm issue #44701, issue #42125"},
    [MOON_COMPAT_SEGMENTS] = {"segments", "COMPAT-024", "", NULL},
    [MOON_COMPAT_EXACTNESS] = {"exactness", "COMPAT-025", "G34", NULL},
    [MOON_COMPAT_RESET] = {"reset", "COMPAT-026", "", "vllm-project/vllm PR #42694"},
};

const char *moon_compat_verdict_name(enum moon_compat_verdict verdict) {
    static const char *const names[] = {"fully", "partly", "not", "danger"};
    return names[verdict];
}

const char *moon_compat_state_name(enum moon_compat_state state) {
    static const char *const names[] = {"idle", "not", "partly", "fully"};
    return names[state];
}

const char *moon_compat_effect_name(enum moon_compat_effect effect) {
    static const char *const names[] = {"danger", "not", "partly", "idle", "warning", "note"};
    return names[effect];
}

const char *moon_compat_subject_name(enum moon_compat_subject subject) {
    return subjects[subject].name;
}

const char *moon_compat_kind_name(enum moon_compat_kind kind) {
    static const char *const names[] = {"text", "lora", "mm", "salt", "embeds", "given"};
    return names[kind];
}

/* ---- helpers of the other files ---- */

const char *pair_name(const struct pair *pair, int side) {
    return pair->report->sides[side].name;
}

bool pair_judges(const struct pair *pair, enum moon_compat_kind kind) {
    return (pair->report->judged >> kind & 1) != 0;
}

static void fail_memory(struct pair *pair) {
    if (!pair->status)
        pair->status = moon_fail(pair->error, MOON_ERR_MEMORY, NULL, "no memory for a comparison");
}

const char *pair_text(struct pair *pair, const char *format, ...) {
    char buffer[2 * MOON_ERROR_MESSAGE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    size_t kept = (size_t)length < sizeof buffer ? (size_t)length : sizeof buffer - 1;
    const char *out = moon_arena_copy(pair->arena, buffer, kept);
    if (!out)
        fail_memory(pair);
    return out;
}

void pair_find(struct pair *pair, enum moon_compat_effect effect, enum moon_compat_subject subject, unsigned directions,
               const char *text, const char *fix) {
    struct moon_compat_finding *finding = text ? moon_arena_alloc(pair->arena, sizeof *finding) : NULL;
    if (!finding) {
        fail_memory(pair);
        return;
    }
    *finding = (struct moon_compat_finding){.effect = effect,
                                            .subject = subject,
                                            .directions = directions,
                                            .text = text,
                                            .fix = fix,
                                            .requirement = subjects[subject].requirement,
                                            .guide = subjects[subject].guide,
                                            .report = subjects[subject].report};
    if (pair->last)
        pair->last->next = finding;
    else
        pair->report->findings = finding;
    pair->last = finding;
}

/* ---- sides and requests ---- */

static void open_side(struct pair *pair, int side, const struct moon_compat_input *input) {
    static const char *const default_names[] = {"A", "B"};
    if (!pair->status)
        pair->status =
            moon_compat_describe(pair->arena, input, default_names[side], &pair->descriptions[side], pair->error);
    if (!pair->status)
        pair->status =
            moon_compat_engine_open(pair->arena, &pair->descriptions[side], input, &pair->engines[side], pair->error);
}

static void name_sides(struct pair *pair) {
    static const char *const letters[] = {"A", "B"};
    bool alike = strcmp(pair->descriptions[0].name, pair->descriptions[1].name) == 0;
    for (int side = 0; side < 2; side++) {
        const struct moon_compat_engine *engine = &pair->engines[side];
        bool random = moon_compat_root(engine->description) == MOON_COMPAT_ROOT_RANDOM;
        pair->report->sides[side] = (struct moon_compat_summary){
            .name = alike ? letters[side] : engine->description->name,
            .release = engine->profile->name,
            .key_prefix = engine->head.bytes,
            .store_namespace = engine->selection.text,
            .derived = engine->derived,
            .stores = engine->stores && !engine->refusal,
            .loads = engine->loads && !engine->refusal,
            .random_hashes = random,
            .scheduler_block_tokens = engine->model.scheduler_block_tokens,
            .hash_block_tokens = engine->model.hash_block_tokens,
        };
    }
}

/* The kinds that are judged: the request that a description names (on both sides, if only one names it), or one of each
 * kind. */
static void choose_requests(struct pair *pair) {
    static struct moon_compat_item item = {.identifier = {.bytes = "item", .length = 4}, .offset = 0, .length = 1};
    static const struct moon_compat_request samples[] = {
        [MOON_COMPAT_TEXT] = {.given = false},
        [MOON_COMPAT_WITH_LORA] = {.lora = true,
                                   .lora_name = {.bytes = "adapter", .length = 7},
                                   .lora_path = {.bytes = "/adapter", .length = 8}},
        [MOON_COMPAT_WITH_MM] = {.mm = &item, .mm_count = 1},
        [MOON_COMPAT_WITH_SALT] = {.salt = true, .cache_salt = {.bytes = "salt", .length = 4}},
        [MOON_COMPAT_WITH_EMBEDS] = {.embeds = true},
    };
    const struct moon_compat_request *given[] = {&pair->descriptions[0].request, &pair->descriptions[1].request};
    if (given[0]->given || given[1]->given) {
        pair->report->judged = 1U << MOON_COMPAT_AS_GIVEN;
        for (int side = 0; side < 2; side++)
            pair->requests[MOON_COMPAT_AS_GIVEN][side] = given[side]->given ? *given[side] : *given[!side];
        return;
    }
    pair->report->judged = (1U << MOON_COMPAT_AS_GIVEN) - 1;
    for (int kind = 0; kind < MOON_COMPAT_AS_GIVEN; kind++)
        pair->requests[kind][0] = pair->requests[kind][1] = samples[kind];
}

/* One master cannot both tell tenants apart and not. */
static void check_tenancy(struct pair *pair) {
    const struct moon_compat_description *b = &pair->descriptions[1];
    const struct moon_compat_engine *engines = pair->engines;
    bool told = engines[0].config_told && engines[1].config_told;
    bool one_master = !told || strcmp(engines[0].master, engines[1].master) == 0;
    if (one_master && pair->descriptions[0].tenants != b->tenants)
        pair->status = moon_json_fail(pair->error, MOON_ERR_SCHEMA, b->source, b->document,
                                      "both descriptions name one master, but disagree about its enable_multi_tenants");
}

static void compare_basics(struct pair *pair) {
    const struct moon_compat_engine *a = &pair->engines[0], *b = &pair->engines[1];
    pair->comparable = a->derived && b->derived;
    pair->same_names = moon_compat_texts_equal(a->head, b->head);
    pair->same_blocks = pair->comparable && a->model.hash_block_tokens == b->model.hash_block_tokens;
    for (int way = 0; way < 2; way++) {
        struct pair_direction *direction = &pair->directions[way];
        direction->writer = &pair->engines[way];
        direction->reader = &pair->engines[!way];
        direction->bit = way == 0 ? MOON_COMPAT_A_TO_B : MOON_COMPAT_B_TO_A;
        direction->idle = !direction->writer->stores || !direction->reader->loads;
    }
}

/* ---- states and verdict ---- */

static enum moon_compat_state state_of(const struct pair_direction *direction, const size_t *found) {
    size_t total = 0;
    bool all = true;
    for (size_t k = 0; k < direction->prompts; k++) {
        total += found[k];
        all &= found[k] >= direction->own_hits[k];
    }
    return total == 0 ? MOON_COMPAT_NONE : all ? MOON_COMPAT_ALL : MOON_COMPAT_SOME;
}

/* The first key that the reader asks for in vain. */
static const char *find_missing(struct pair *pair, int way, enum moon_compat_kind kind) {
    const struct pair_direction *direction = &pair->directions[way];
    const struct moon_compat_engine *reader = direction->reader;
    int64_t tokens = (int64_t)direction->prompts * reader->model.scheduler_block_tokens;
    for (size_t group = 0; group < reader->model.group_count; group++)
        for (size_t chunk = 0; chunk < moon_compat_chunks(reader, group, tokens); chunk++) {
            struct moon_namespaces walk;
            struct moon_pool_key key;
            size_t at = 0;
            bool same = pair_chunk_of(direction->writer, reader, group, chunk, &at) && pair->same_names &&
                        pair_hash_equal(pair, kind, direction, group, chunk);
            if (!direction->own.chunks[group][chunk])
                continue; /* not asked for, or not even stored by the reader */
            moon_namespaces_open(&walk, reader->profile, &reader->model, &reader->selection, group);
            while (moon_namespaces_next(&walk, &key)) {
                const struct moon_compat_identity *identity = moon_compat_identity_find(
                    direction->writer, group, key.tp_rank, key.pcp_rank, key.dcp_rank, key.pp_rank);
                if (!same || !identity || !identity->written[at])
                    return pair_key(pair, !way, &key, kind, chunk);
            }
        }
    return NULL;
}

static void fill_hits(struct pair *pair, int way, enum moon_compat_kind kind) {
    const struct pair_direction *direction = &pair->directions[way];
    struct moon_compat_direction *out = &pair->report->directions[way];
    int64_t block = direction->reader->model.scheduler_block_tokens;
    out->prompts = direction->prompts;
    for (size_t k = 0; k < direction->prompts; k++) {
        out->longest = (struct moon_compat_hit){.prompt_tokens = ((int64_t)k + 1) * block,
                                                .found_tokens = (int64_t)direction->found[kind][k] * block,
                                                .own_tokens = (int64_t)direction->own_hits[k] * block};
        if (out->longest.found_tokens < out->longest.own_tokens && out->short_prompts++ == 0)
            out->first_short = out->longest;
    }
    if (out->kinds[kind] != MOON_COMPAT_ALL && !direction->idle)
        out->missing_key = find_missing(pair, way, kind);
}

static void judge_direction(struct pair *pair, int way) {
    const struct pair_direction *direction = &pair->directions[way];
    struct moon_compat_direction *out = &pair->report->directions[way];
    enum moon_compat_state best = MOON_COMPAT_NONE, worst = MOON_COMPAT_ALL;
    int first = -1;
    for (int kind = 0; kind < MOON_COMPAT_KIND_COUNT; kind++) {
        if (!pair_judges(pair, (enum moon_compat_kind)kind))
            continue;
        bool reached = pair->comparable && pair->same_store;
        enum moon_compat_state state = reached ? state_of(direction, direction->found[kind]) : MOON_COMPAT_NONE;
        out->kinds[kind] = direction->idle ? MOON_COMPAT_IDLE : state;
        best = state > best ? state : best;
        worst = state < worst ? state : worst;
        first = first < 0 ? kind : first;
    }
    out->state = direction->idle ? MOON_COMPAT_IDLE : best == worst ? best : MOON_COMPAT_SOME;
    if (pair->comparable)
        fill_hits(pair, way, (enum moon_compat_kind)first);
}

static enum moon_compat_verdict judge(const struct moon_compat_report *report) {
    bool fully = true, anything = false, counted = false;
    for (const struct moon_compat_finding *each = report->findings; each; each = each->next)
        if (each->effect == MOON_COMPAT_ENDANGERS)
            return MOON_COMPAT_DANGER;
    for (int way = 0; way < 2; way++) {
        enum moon_compat_state state = report->directions[way].state;
        counted |= state != MOON_COMPAT_IDLE;
        anything |= state > MOON_COMPAT_NONE;
        fully &= state == MOON_COMPAT_IDLE || state == MOON_COMPAT_ALL;
    }
    if (!anything || !counted)
        return MOON_COMPAT_NOT;
    return fully ? MOON_COMPAT_FULLY : MOON_COMPAT_PARTLY;
}

/* Moves the endangering findings to the front; all others keep their order. */
static void put_dangers_first(struct moon_compat_report *report) {
    struct moon_compat_finding *dangers = NULL, *rest = NULL, **danger_end = &dangers, **rest_end = &rest;
    for (struct moon_compat_finding *each = report->findings; each; each = each->next) {
        struct moon_compat_finding ***end = each->effect == MOON_COMPAT_ENDANGERS ? &danger_end : &rest_end;
        **end = each;
        *end = &each->next;
    }
    *rest_end = NULL;
    *danger_end = rest;
    report->findings = dangers;
}

/* The reason that the verdict is not a better one: by effect, then in order. */
static const struct moon_compat_finding *find_first(const struct moon_compat_report *report) {
    if (report->verdict == MOON_COMPAT_FULLY)
        return NULL;
    for (int effect = MOON_COMPAT_ENDANGERS; effect <= MOON_COMPAT_IDLES; effect++)
        for (const struct moon_compat_finding *each = report->findings; each; each = each->next)
            if (each->effect == (enum moon_compat_effect)effect)
                return each;
    return NULL;
}

/* Every direction that is less than fully has its reason (COMPAT-003). */
static void check_reasons(const struct moon_compat_report *report) {
    for (unsigned way = 0; way < 2; way++) {
        enum moon_compat_state state = report->directions[way].state;
        bool blocked = false, limited = false;
        for (const struct moon_compat_finding *each = report->findings; each; each = each->next) {
            bool here = (each->directions >> way & 1) != 0;
            blocked |= here && each->effect == MOON_COMPAT_BLOCKS;
            limited |= here && each->effect == MOON_COMPAT_LIMITS;
        }
        assert(state == MOON_COMPAT_IDLE || blocked == (state == MOON_COMPAT_NONE));
        assert(state != MOON_COMPAT_SOME || limited);
        assert(state != MOON_COMPAT_ALL || !limited);
    }
    assert(report->verdict == MOON_COMPAT_FULLY || report->first);
}

int moon_compat_compare(struct moon_arena *arena, const struct moon_compat_input inputs[2],
                        struct moon_compat_report **out, struct moon_error *error) {
    struct pair *pair = moon_arena_alloc(arena, sizeof *pair);
    struct moon_compat_report *report = moon_arena_alloc(arena, sizeof *report);
    if (!pair || !report)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for a comparison");
    *pair = (struct pair){.arena = arena, .error = error, .report = report};
    open_side(pair, 0, &inputs[0]);
    open_side(pair, 1, &inputs[1]);
    if (!pair->status)
        check_tenancy(pair);
    if (pair->status)
        return pair->status;
    name_sides(pair);
    choose_requests(pair);
    compare_basics(pair);
    if (pair->comparable)
        pair_sample(pair);
    if (!pair->status && pair->comparable)
        pair_meet(pair);
    if (!pair->status)
        pair_reasons(pair);
    if (!pair->status)
        pair_topology(pair);
    for (int way = 0; way < 2 && !pair->status; way++)
        judge_direction(pair, way);
    if (!pair->status)
        pair_bytes(pair);
    if (pair->status)
        return pair->status;
    put_dangers_first(report);
    report->verdict = judge(report);
    report->first = find_first(report);
    check_reasons(report);
    *out = report;
    return 0;
}
