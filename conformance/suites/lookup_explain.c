/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup in words: what is asked, what is missing, how far each group reaches, and what the core is told. */
#include "conformance/suites/lookup.h"
#include "conformance/suites/refusal.h"

#include "ref/layout/lookup.h"

#include <inttypes.h>

enum { SHOWN_MAX = 16 };

struct telling {
    const struct moon_lookup_case *its;
    const struct moon_connector *connector;
    const struct moon_layout_model *model;
    const struct moon_lookup *lookup; /* once it was asked */
    struct moon_text *out;
};

static int exist(void *context, const struct moon_store_call *call, int64_t values[]) {
    const struct moon_lookup_case *its = context;
    struct moon_text key;
    moon_text_open(&key, call->keys->memory);
    for (size_t i = 0; i < call->count && !key.failed; i++) {
        moon_text_clear(&key);
        moon_key_list_write(call->keys, call->first + i, &key);
        values[i] = moon_lookup_case_answer(its, (struct moon_key_text){moon_text_value(&key), key.length});
    }
    bool failed = key.failed;
    moon_text_close(&key);
    return failed ? MOON_ERR_MEMORY : its->raises ? MOON_ERR_IO : 0;
}

/* ---- the engine ---- */

static const char *kind_name(const struct moon_layer_spec *spec) {
    static const char *const names[] = {
        [MOON_SPEC_FULL] = "full attention",
        [MOON_SPEC_SLIDING_WINDOW] = "sliding window",
        [MOON_SPEC_MLA] = "MLA",
        [MOON_SPEC_SLIDING_WINDOW_MLA] = "sliding window MLA",
        [MOON_SPEC_MAMBA] = "Mamba",
        [MOON_SPEC_UNIFORM] = "uniform",
        [MOON_SPEC_CHUNKED_LOCAL] = "chunked local",
    };
    return names[spec->kind];
}

static void tell_group(const struct telling *self, size_t group) {
    const struct moon_layout_group *its = &self->model->groups[group];
    const struct moon_layer_spec *spec = moon_layout_group_spec(its);
    struct moon_namespaces spaces;
    moon_text_format(self->out, "group %zu: %s, block %" PRId64 " tokens", group, kind_name(spec), its->block_tokens);
    if (moon_spec_is_window(spec))
        moon_text_format(self->out, ", window %" PRId64, spec->window_tokens);
    if (spec->kind == MOON_SPEC_CHUNKED_LOCAL)
        moon_text_format(self->out, ", chunks of attention %" PRId64, spec->local_tokens);
    for (size_t i = 0; i < group; i++)
        if (moon_layout_groups_equal(&self->model->groups[i], its)) {
            moon_text_format(self->out, ", searched with group %zu (HIT-001)", i);
            break;
        }
    if (self->connector->profile->coordinator && moon_layout_group_eagle(self->model, group))
        moon_text_string(self->out, spec->kind == MOON_SPEC_MAMBA ? ", EAGLE drops nothing of it (HIT-013)"
                                                                  : ", EAGLE drops its last chunk (HIT-002)");
    moon_namespaces_open(&spaces, self->connector->profile, self->model, &self->connector->selection, group);
    moon_text_format(self->out, "; namespaces that must have a chunk: %" PRId64 " (LOOKUP-012)\n", spaces.end);
}

static void tell_engine(const struct telling *self) {
    const struct moon_profile *profile = self->connector->profile;
    moon_text_format(self->out, "%s (%s)\nscheduler block %" PRId64 " tokens, hash block %" PRId64 "; hits end at ",
                     profile->name, profile->version, self->model->scheduler_block_tokens,
                     self->model->hash_block_tokens);
    moon_text_string(self->out,
                     self->connector->fine_grained ? "hash blocks (LAYOUT-024)\n" : "scheduler blocks (LAYOUT-024)\n");
    for (size_t group = 0; group < self->model->group_count; group++)
        tell_group(self, group);
}

/* ---- the question ---- */

/* Why the store is not asked. */
static const char *not_asked(const struct telling *self) {
    const struct moon_connector *connector = self->connector;
    if (connector->capacity_only)
        return "a consumer that only lends memory looks nothing up (LOOKUP-001)";
    if (!connector->options.enable_lookup)
        return "enable_lookup is false (LOOKUP-001)";
    if (self->its->request.known_tokens < connector->alignment_tokens)
        return "the request is shorter than a block (LOOKUP-001)";
    return "there is no key to ask for (LOOKUP-001)";
}

/* Appends "first to last" tokens of a chunk. */
static void tell_chunk(const struct telling *self, const struct moon_chunk *chunk, size_t *shown) {
    if ((*shown)++ < SHOWN_MAX)
        moon_text_format(self->out, "%s%" PRId64 "-%" PRId64, *shown > 1 ? ", " : "", chunk->start_tokens,
                         chunk->end_tokens);
}

static void end_chunks(const struct telling *self, size_t shown) {
    if (shown > SHOWN_MAX)
        moon_text_format(self->out, " and %zu more", shown - SHOWN_MAX);
    moon_text_string(self->out, shown == 0 ? "none" : "");
}

static bool is_present(const struct telling *self, size_t group, const struct moon_chunk *chunk) {
    return self->lookup
        ->present[group * self->lookup->hashes.count + (size_t)chunk->first_hash + (size_t)chunk->hash_count - 1];
}

/* The chunks of a group that are asked for and there, or not there. */
static void tell_chunks(const struct telling *self, size_t group, bool present) {
    struct moon_asked asked;
    struct moon_chunk chunk;
    size_t at, shown = 0;
    moon_asked_open(&asked, self->connector->profile, self->model, self->lookup->limit_tokens,
                    (int64_t)self->lookup->hashes.count);
    while (moon_asked_next(&asked, &at, &chunk))
        if (at == group && is_present(self, group, &chunk) == present)
            tell_chunk(self, &chunk, &shown);
    end_chunks(self, shown);
}

static const char *finder_rule(const struct telling *self, const struct moon_layer_spec *spec) {
    if (!self->connector->profile->coordinator)
        return "HIT-017";
    if (moon_spec_is_window(spec))
        return "HIT-011";
    if (spec->kind == MOON_SPEC_MAMBA)
        return self->connector->fine_grained ? "HIT-014" : "HIT-013";
    if (spec->kind == MOON_SPEC_CHUNKED_LOCAL)
        return "HIT-015";
    return self->connector->fine_grained ? "HIT-009" : "HIT-008";
}

/* How far the group would reach alone. */
static void tell_reach(const struct telling *self, size_t group) {
    struct moon_layout_group alone = self->model->groups[group];
    struct moon_layout_model model = *self->model;
    struct moon_connector connector = *self->connector;
    struct moon_error raised;
    int64_t hit = 0;
    size_t count = self->lookup->hashes.count;
    const struct moon_presence presence = {self->lookup->present + group * count, (int64_t)count};
    alone.is_eagle = moon_layout_group_eagle(self->model, group);
    model.groups = &alone;
    model.group_count = 1;
    model.speculative = false;
    connector.model = &model;
    connector.notes = NULL;
    if (moon_hit_search(&connector, &presence, self->lookup->limit_tokens, &hit, &raised))
        moon_text_format(self->out, "  alone: %s: %s\n", raised.type, raised.message);
    else
        moon_text_format(self->out, "  alone it reaches %" PRId64 " tokens (%s)\n", hit,
                         finder_rule(self, moon_layout_group_spec(&alone)));
}

/* Only a sliding window leaves chunks out that a hit cannot need. */
static void tell_question(const struct telling *self) {
    moon_text_format(self->out, "asks for tokens 0 to %" PRId64 ": %zu keys in one call (LOOKUP-010, LAYOUT-023)\n",
                     self->lookup->limit_tokens, self->lookup->keys.count);
    if (self->its->raises) {
        moon_text_string(self->out, "the call raises: no hit (LOOKUP-015)\n");
        return;
    }
    for (size_t group = 0; group < self->model->group_count; group++) {
        moon_text_format(self->out, "group %zu: there are ", group);
        tell_chunks(self, group, true);
        moon_text_string(self->out, "; missing in some namespace: ");
        tell_chunks(self, group, false);
        moon_text_char(self->out, '\n');
        tell_reach(self, group);
    }
}

/* ---- the answer ---- */

static void tell_loads(const struct telling *self, const struct moon_match *match) {
    const struct moon_profile *profile = self->connector->profile;
    for (size_t group = 0; group < self->model->group_count; group++) {
        int64_t block = self->model->groups[group].block_tokens;
        size_t shown = 0;
        moon_text_format(self->out, "group %zu loads ", group);
        for (int64_t chunk = self->its->computed_tokens / self->model->scheduler_block_tokens *
                             self->model->scheduler_block_tokens / block;
             chunk * block < match->hit_tokens; chunk++) {
            int64_t end = (chunk + 1) * block < match->hit_tokens ? (chunk + 1) * block : match->hit_tokens;
            const struct moon_chunk its = {.id = chunk, .start_tokens = chunk * block, .end_tokens = end};
            if (moon_load_wanted(self->connector, group, chunk, match->hit_tokens))
                tell_chunk(self, &its, &shown);
        }
        end_chunks(self, shown);
        moon_text_string(self->out, profile->coordinator ? " (HIT-020)" : " (HIT-017)");
        if (group < match->boundary_count)
            moon_text_format(self->out, ", the last under the hash at %" PRId64 " (HIT-030)",
                             match->tail_boundaries[group]);
        moon_text_char(self->out, '\n');
    }
}

static void tell_answer(const struct telling *self, const struct moon_match *match) {
    const struct moon_lookup_result *result = &self->lookup->result;
    int64_t tokens = self->its->request.known_tokens;
    bool searched = self->connector->profile->full_hit == MOON_FULL_HIT_SEARCHED;
    moon_text_format(self->out, "together: a hit of %" PRId64 " tokens (%s)\n", result->hit_tokens,
                     !self->connector->profile->coordinator ? "HIT-017"
                     : self->model->group_count == 1        ? "HIT-004"
                                                            : "HIT-005");
    if (result->hit_tokens == tokens)
        moon_text_string(self->out, "  the last token must be computed: less for the core (PLAN-003)\n");
    else if (searched && tokens % self->connector->alignment_tokens == 0)
        moon_text_string(self->out, "  a hit of the whole request would be searched again (LOOKUP-014)\n");
    moon_text_format(self->out, "the core has %" PRId64 " of %" PRId64 " tokens and is told %" PRId64 " more%s",
                     self->its->computed_tokens, tokens, match->tokens,
                     match->tokens == 0  ? " (LOOKUP-002)\n"
                     : match->load_async ? ", loaded beside other work (LOOKUP-002)\n"
                                         : ", loaded before the step (LOOKUP-002)\n");
    if (match->tokens > 0)
        tell_loads(self, match);
}

int moon_lookup_explain(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                        const struct moon_json *given, struct moon_text *out, struct moon_error *error) {
    struct moon_lookup_case its;
    struct moon_lookup_direct direct;
    struct moon_match match;
    struct moon_error failure;
    int status = moon_lookup_case_read(arena, profile, source, given, &its, &failure);
    bool read = status == 0;
    struct telling self = {&its, &its.its.connector, &its.its.engine.model, NULL, out};
    if (read) {
        tell_engine(&self);
        status = moon_lookup_case_ask(&its, &direct, exist, &its, arena->memory, &match, &failure);
        self.lookup = &direct.lookup;
        if (direct.lookup.keys.count > 0 && status != MOON_ERR_MEMORY)
            tell_question(&self);
        else if (!status)
            moon_text_format(out, "the store is not asked: %s\n", not_asked(&self));
        if (!status)
            tell_answer(&self, &match);
        moon_lookup_direct_close(&direct);
    }
    if (status == MOON_ERR_REFUSED) {
        moon_text_format(out, "%s raises %s: %s%s\n", profile->name, failure.type, failure.message,
                         read ? " (HIT-015, HIT-031, LAYOUT-031): the client gets no answer" : "");
        status = 0;
    }
    return moon_suite_end_explain(status, out, &failure, error);
}
