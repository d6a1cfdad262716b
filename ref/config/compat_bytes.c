/* SPDX-License-Identifier: Apache-2.0 */
/* Equal keys with different bytes: what each side stores under the keys that both use, and what a key does not protect.
 */
#include "ref/config/compat_pair.h"

#include <string.h>

/* Where the two sides' keys meet.
 *   any        some key of the one is a key of the other
 *   groups     by number in keys
 *   a, b       identities whose parts differ, the first pair met; NULL: none
 *   first, kind, chunk, side  of the first key met, or of that pair */
struct meeting {
    bool any, groups[MOON_COMPAT_GROUPS_MAX];
    const struct moon_compat_identity *a, *b;
    const struct moon_compat_identity *first;
    enum moon_compat_kind kind;
    size_t chunk;
    int side; /* whose chunk */
    unsigned directions;
};

static bool parts_equal(const struct pair *pair, const struct moon_compat_part *a, const struct moon_compat_part *b) {
    const struct moon_layout_model *models[] = {&pair->engines[0].model, &pair->engines[1].model};
    return a->part == b->part && a->parts == b->parts && a->stage == b->stage && models[0]->pp == models[1]->pp &&
           a->pcp_rank == b->pcp_rank && models[0]->pcp == models[1]->pcp && a->dcp_rank == b->dcp_rank &&
           models[0]->dcp == models[1]->dcp;
}

/* True if the writer stores under this identity a chunk whose key the other side also makes; *chunk is the reader's. */
static bool key_met(const struct pair *pair, const struct pair_direction *direction,
                    const struct moon_compat_identity *written, enum moon_compat_kind *kind, size_t *chunk) {
    const struct moon_compat_engine *reader = direction->reader;
    size_t count =
        moon_compat_chunks(reader, written->group, (int64_t)direction->prompts * reader->model.scheduler_block_tokens);
    for (size_t i = 0; i < count; i++) {
        size_t at;
        if (!pair_chunk_of(direction->writer, reader, written->group, i, &at) || !written->written[at])
            continue;
        for (int each = 0; each < MOON_COMPAT_KIND_COUNT; each++)
            if (pair_judges(pair, (enum moon_compat_kind)each) &&
                pair_hash_equal(pair, (enum moon_compat_kind)each, direction, written->group, i)) {
                *kind = (enum moon_compat_kind)each;
                *chunk = i;
                return true;
            }
    }
    return false;
}

static void note_meeting(const struct pair *pair, const struct pair_direction *direction,
                         const struct moon_compat_identity *written, const struct moon_compat_identity *other,
                         struct meeting *out) {
    enum moon_compat_kind kind = MOON_COMPAT_TEXT;
    size_t chunk = 0;
    if (!other || !key_met(pair, direction, written, &kind, &chunk))
        return;
    bool differ = !out->a && !parts_equal(pair, &written->part, &other->part);
    if (!out->any || differ) {
        bool forward = direction->writer == &pair->engines[0];
        out->first = other;
        out->kind = kind;
        out->chunk = chunk;
        out->side = forward;
        if (differ) {
            out->a = forward ? written : other;
            out->b = forward ? other : written;
        }
    }
    out->any = true;
    out->groups[written->group] = true;
    out->directions |= direction->bit;
}

/* Keys meet where the writer stores and the other side would use them: it stores too (what exists is not put again, so
 * the two complete each other's blocks), or it loads and finds something. */
static struct meeting find_meeting(const struct pair *pair) {
    struct meeting out = {0};
    for (int way = 0; way < 2; way++) {
        const struct pair_direction *direction = &pair->directions[way];
        const struct moon_compat_engine *writer = direction->writer, *reader = direction->reader;
        bool finds = reader->loads && pair->report->directions[way].state > MOON_COMPAT_NONE;
        if (!writer->stores || !(reader->stores || finds))
            continue;
        for (size_t i = 0; i < writer->identity_count; i++) {
            const struct moon_compat_identity *each = &writer->identities[i];
            note_meeting(pair, direction, each,
                         moon_compat_identity_find(reader, each->group, each->t, each->pcp, each->dcp, each->pp), &out);
        }
    }
    return out;
}

/* ---- danger: places ---- */

static void endanger(struct pair *pair, const struct meeting *meeting, enum moon_compat_subject subject,
                     const char *text, const char *fix) {
    pair_find(pair, MOON_COMPAT_ENDANGERS, subject, meeting->directions, text, fix);
}

/* What an object of a side holds. Dimensions in which neither side is split go without saying. */
static const char *part_text(struct pair *pair, int side, const struct moon_compat_identity *identity) {
    const struct moon_layout_model *model = &pair->engines[side].model, *other = &pair->engines[!side].model;
    const struct moon_compat_part *part = &identity->part;
    const char *what =
        model->groups[identity->group].spec.kind == MOON_SPEC_MAMBA ? "of the Mamba state" : "of the heads";
    struct moon_text text;
    moon_text_open(&text, pair->arena->memory);
    if (part->parts == 1)
        moon_text_format(&text, "%s holds all %s", pair_name(pair, side), what);
    else
        moon_text_format(&text, "%s holds part %lld of %lld %s", pair_name(pair, side), (long long)part->part + 1,
                         (long long)part->parts, what);
    if (model->pp > 1 || other->pp > 1)
        moon_text_format(&text, ", layers of stage %lld of %lld", (long long)part->stage + 1, (long long)model->pp);
    if (model->pcp > 1 || other->pcp > 1)
        moon_text_format(&text, ", tokens of PCP rank %lld of %lld", (long long)part->pcp_rank + 1,
                         (long long)model->pcp);
    if (model->dcp > 1 || other->dcp > 1)
        moon_text_format(&text, ", tokens of DCP rank %lld of %lld", (long long)part->dcp_rank + 1,
                         (long long)model->dcp);
    const char *out = pair_text(pair, "%s", text.failed ? "" : text.data);
    if (text.failed && !pair->status)
        pair->status = moon_fail(pair->error, MOON_ERR_MEMORY, NULL, "no memory for a finding");
    moon_text_close(&text);
    return out;
}

static void find_parts(struct pair *pair, const struct meeting *meeting) {
    if (!meeting->a)
        return;
    bool found =
        pair->report->directions[0].state > MOON_COMPAT_NONE || pair->report->directions[1].state > MOON_COMPAT_NONE;
    const char *texts[] = {part_text(pair, 0, meeting->a), part_text(pair, 1, meeting->b)};
    if (texts[0] && texts[1])
        endanger(pair, meeting, MOON_COMPAT_BYTES,
                 pair_text(pair, "one key, different bytes: under \"@tp_rank:%lld\" %s, %s%s", (long long)meeting->a->t,
                           texts[0], texts[1],
                           found ? "" : "; a save skips keys that exist, so each fills what the other left out"),
                 "use equal parallel sizes; or the same store_tp_size on both sides (0.30 on); or keep them apart by "
                 "cache_prefix or tenant_id");
}

/* Two ranks of one side that write one key, and find it: up to 0.26 the replication factor of the engine is that of
 * Mamba groups too (LAYOUT-012). */
static void find_clash(struct pair *pair, int side) {
    const struct moon_compat_engine *engine = &pair->engines[side];
    const struct pair_direction *direction = &pair->directions[!side]; /* in which this side reads */
    bool finds = pair->comparable && direction->prompts > 0 && direction->own_hits[direction->prompts - 1] > 0;
    for (size_t i = 0; i < engine->identity_count && engine->stores && finds; i++) {
        const struct moon_compat_identity *each = &engine->identities[i];
        if (!each->clash)
            continue;
        pair_find(pair, MOON_COMPAT_ENDANGERS, MOON_COMPAT_BYTES, side == 0 ? MOON_COMPAT_A_TO_B : MOON_COMPAT_B_TO_A,
                  pair_text(pair,
                            "%s endangers itself: two of its ranks store different bytes under "
                            "\"@tp_rank:%lld@pcp%lld@dcp%lld@pp_rank:%lld\"",
                            pair_name(pair, side), (long long)each->t, (long long)each->pcp, (long long)each->dcp,
                            (long long)each->pp),
                  "run 0.27 or later, or no more ranks than KV heads");
        if (pair->last)
            pair->last->requirement = "LAYOUT-012";
        return;
    }
}

static void find_blocks(struct pair *pair, const struct meeting *meeting) {
    const struct moon_compat_engine *a = &pair->engines[0], *b = &pair->engines[1];
    for (size_t i = 0; i < a->model.group_count && i < b->model.group_count; i++) {
        if (!meeting->groups[i])
            continue;
        const struct moon_layout_group *left = &a->groups[i], *right = &b->groups[i];
        if (left->block_tokens != right->block_tokens)
            endanger(pair, meeting, MOON_COMPAT_CONTENT,
                     pair_text(pair,
                               "one key, different bytes: a block of group %zu has %lld tokens on %s and %lld on %s", i,
                               (long long)left->block_tokens, pair_name(pair, 0), (long long)right->block_tokens,
                               pair_name(pair, 1)),
                     "use the same block sizes, or keep the two apart by cache_prefix");
        else if (left->spec.kind != right->spec.kind)
            endanger(pair, meeting, MOON_COMPAT_CONTENT,
                     pair_text(pair, "one key, different bytes: group %zu is of another kind on each side", i),
                     "run the same model on both sides, and releases that number groups alike");
    }
    if (meeting->any && a->model.group_count != b->model.group_count)
        endanger(
            pair, meeting, MOON_COMPAT_CONTENT,
            pair_text(
                pair,
                "one key, different bytes: an object holds a block of all layers, of %zu groups on %s and %zu on %s",
                a->model.group_count, pair_name(pair, 0), b->model.group_count, pair_name(pair, 1)),
            "run the same model with the same groups on both sides");
}

/* A rank-local object has its bytes in the order of the cache. The namespace names the layout, the plain one does not.
 */
static void find_layout(struct pair *pair, const struct meeting *meeting) {
    const struct moon_layout_model *a = &pair->engines[0].model, *b = &pair->engines[1].model;
    bool plain = pair->engines[0].selection.space.format == MOON_STORE_PLAIN;
    bool one_head = a->total_kv_heads <= a->tp && a->kv_layout <= MOON_KV_LBNHC && b->kv_layout <= MOON_KV_LBNHC;
    if (!meeting->any || !plain || a->kv_layout == b->kv_layout || one_head)
        return;
    endanger(pair, meeting, MOON_COMPAT_CONTENT,
             pair_text(pair, "one key, different bytes: the KV cache layout is %s on %s and %s on %s",
                       moon_kv_layout_name(a->kv_layout), pair_name(pair, 0), moon_kv_layout_name(b->kv_layout),
                       pair_name(pair, 1)),
             "let both sides use the same attention backend and layout, or keep them apart by cache_prefix");
}

/* ---- danger: content ---- */

/* A member that one side or both may not have told; differing ones endanger, half-told ones are warned about. */
static void find_content(struct pair *pair, const struct meeting *meeting, const char *what, const char *a,
                         const char *b) {
    if (a && b && strcmp(a, b) != 0)
        endanger(pair, meeting, MOON_COMPAT_CONTENT,
                 pair_text(pair, "one key, different bytes: %s is %.100s on %s and %.100s on %s", what, a,
                           pair_name(pair, 0), b, pair_name(pair, 1)),
                 "give one of them another cache_prefix or tenant_id, or empty the store when it changes");
    else if (!a != !b)
        pair_find(
            pair, MOON_COMPAT_WARNS, MOON_COMPAT_CONTENT, meeting->directions,
            pair_text(pair, "%s is told of %s only: the key does not protect it", what, pair_name(pair, a ? 0 : 1)),
            "tell it in both descriptions");
}

static void find_number(struct pair *pair, const struct meeting *meeting, const char *what, int64_t a, int64_t b) {
    const char *left = a ? pair_text(pair, "%lld", (long long)a) : NULL;
    const char *right = b ? pair_text(pair, "%lld", (long long)b) : NULL;
    if (!pair->status)
        find_content(pair, meeting, what, left, right);
}

/* Length of the organisation in ORG/NAME; 0 if the name is a path or has no organisation. */
static size_t organisation(struct moon_key_text model) {
    const char *slash = memchr(model.bytes, '/', model.length);
    size_t length = slash ? (size_t)(slash - model.bytes) : 0;
    bool path = length == 0 || model.bytes[0] == '.' || model.bytes[0] == '~' ||
                memchr(slash + 1, '/', model.length - length - 1) != NULL;
    return path ? 0 : length;
}

static void find_model(struct pair *pair, const struct meeting *meeting) {
    const struct moon_compat_description *a = &pair->descriptions[0], *b = &pair->descriptions[1];
    if (!moon_compat_texts_equal(pair->engines[0].name, pair->engines[1].name)) {
        endanger(
            pair, meeting, MOON_COMPAT_CONTENT,
            "one key, different bytes: cache prefix and model differ, but their texts are equal once joined by '@'",
            "use no '@' in cache_prefix and model names");
        return;
    }
    bool known = a->weights_version && b->weights_version && strcmp(a->weights_version, b->weights_version) == 0;
    if (moon_compat_texts_equal(a->model, b->model) || known)
        return;
    size_t left = organisation(a->model), right = organisation(b->model);
    bool foreign = left && right && (left != right || memcmp(a->model.bytes, b->model.bytes, left) != 0);
    const char *text =
        pair_text(pair, "%s \"%.*s\" on %s and \"%.*s\" on %s are one name in keys: only the last part counts",
                  foreign ? "one key, different bytes:" : "models", (int)a->model.length, a->model.bytes,
                  pair_name(pair, 0), (int)b->model.length, b->model.bytes, pair_name(pair, 1));
    if (foreign)
        endanger(pair, meeting, MOON_COMPAT_CONTENT, text, "give one of them another cache_prefix");
    else
        pair_find(pair, MOON_COMPAT_WARNS, MOON_COMPAT_CONTENT, meeting->directions, text,
                  "make sure that both are the same weights, and tell weights_version on both sides");
}

static bool loras_equal(const struct moon_compat_request *a, const struct moon_compat_request *b) {
    if (a->lora != b->lora || !a->lora)
        return a->lora == b->lora;
    return moon_compat_strings_equal(a->lora_name, b->lora_name) &&
           moon_compat_strings_equal(a->lora_path, b->lora_path);
}

static void find_lora(struct pair *pair, const struct meeting *meeting) {
    bool tagged = pair->engines[0].profile->extra_tagged;
    const struct moon_compat_request *given = pair->requests[MOON_COMPAT_AS_GIVEN];
    if (pair_judges(pair, MOON_COMPAT_AS_GIVEN) && !loras_equal(&given[0], &given[1]))
        endanger(pair, meeting, MOON_COMPAT_LORA,
                 "one key, different bytes: the requests use different LoRA weights, but up to 0.30 only a bare name "
                 "is hashed",
                 "run 0.31 or later on both sides, or give each adapter a name of its own that no cache_salt uses");
    else if (!tagged)
        pair_find(pair, MOON_COMPAT_NOTES, MOON_COMPAT_LORA, meeting->directions,
                  "up to 0.30 a LoRA adapter is known by its name alone: equal names must be equal weights",
                  "give each version of an adapter a name of its own");
}

/* ---- warnings and notes ---- */

static void find_unprotected(struct pair *pair, const struct meeting *meeting) {
    const struct moon_compat_description *a = &pair->descriptions[0], *b = &pair->descriptions[1];
    find_content(pair, meeting, "the KV dtype", a->dtype, b->dtype);
    find_content(pair, meeting, "the weights version", a->weights_version, b->weights_version);
    find_content(pair, meeting, "the quantisation", a->quantization, b->quantization);
    find_number(pair, meeting, "the number of KV heads", a->heads, b->heads);
    find_number(pair, meeting, "the head size", a->head_size, b->head_size);
    find_number(pair, meeting, "the number of layers", a->layers, b->layers);
    find_model(pair, meeting);
    find_lora(pair, meeting);
}

static void find_notes(struct pair *pair, const struct meeting *meeting) {
    const struct moon_compat_engine *a = &pair->engines[0], *b = &pair->engines[1];
    if (a->profile->segment_rule != b->profile->segment_rule && a->selection.space.format == MOON_STORE_PLAIN)
        pair_find(
            pair, MOON_COMPAT_WARNS, MOON_COMPAT_SEGMENTS, meeting->directions,
            pair_text(pair,
                      "%s and %s cut a rank's tensors into segments by different rules (per storage up to 0.28, per "
                      "region from 0.29 on): whether objects hold equal bytes depends on the attention backend",
                      a->profile->name, b->profile->name),
            "compare the segments of both releases with mooncheck layout, or run one release");
    if (a->model.tp != b->model.tp && !meeting->a)
        pair_find(pair, MOON_COMPAT_NOTES, MOON_COMPAT_EXACTNESS, meeting->directions,
                  "the sides share across TP sizes: reuse does not promise the same greedy output as recomputing",
                  NULL);
}

static void tell_key(struct pair *pair, const struct meeting *meeting) {
    const struct moon_compat_engine *engine = &pair->engines[meeting->side];
    const struct moon_pool_key key = {
        .cache_prefix = engine->prefix,
        .model_name = engine->name,
        .store_namespace = {engine->selection.text, engine->selection.text_length},
        .tp_rank = meeting->first->t,
        .pcp_rank = meeting->first->pcp,
        .dcp_rank = meeting->first->dcp,
        .pp_rank = meeting->first->pp,
        .group_id = (int64_t)meeting->first->group,
    };
    pair->report->same_key = pair_key(pair, meeting->side, &key, meeting->kind, meeting->chunk);
}

void pair_bytes(struct pair *pair) {
    struct meeting meeting = {0};
    for (int side = 0; side < 2; side++)
        find_clash(pair, side);
    if (pair->comparable && pair->same_store && pair->same_names)
        meeting = find_meeting(pair);
    if (meeting.any) {
        find_parts(pair, &meeting);
        find_blocks(pair, &meeting);
        find_layout(pair, &meeting);
        find_unprotected(pair, &meeting);
        find_notes(pair, &meeting);
        tell_key(pair, &meeting);
    } else if (pair->same_store &&
               (pair->engines[0].profile->reset_removes_keys || pair->engines[1].profile->reset_removes_keys))
        pair_find(
            pair, MOON_COMPAT_NOTES, MOON_COMPAT_RESET, MOON_COMPAT_BOTH_WAYS,
            "the two share no object, but resetting the cache of one removes every key of the tenant, the other's too",
            "give each its own tenant_id if resets are used");
}
