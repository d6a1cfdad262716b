/* SPDX-License-Identifier: Apache-2.0 */
/* For tests only: an engine and a store made of bytes, and what every joint hit search over them must keep. */
#ifndef MOON_CONNECTOR_COORDINATOR_INTERNAL_H
#define MOON_CONNECTOR_COORDINATOR_INTERNAL_H

#include "ref/base/cursor.h"
#include "ref/connector/coordinator.h"

#include <assert.h>
#include <string.h>

enum { HIT_SCENE_GROUPS_MAX = 5, HIT_SCENE_HASHES_MAX = 48 };

struct hit_scene {
    const struct moon_profile *profile;
    struct moon_layout_group groups[HIT_SCENE_GROUPS_MAX];
    struct moon_layout_model model;
    struct moon_connector connector;
    uint8_t present[HIT_SCENE_GROUPS_MAX * HIT_SCENE_HASHES_MAX];
    struct moon_presence presence;
    int64_t limit_tokens;
};

static const struct moon_layer_spec hit_scene_inner[] = {{.kind = MOON_SPEC_MLA}, {.kind = MOON_SPEC_FULL}};

static inline void hit_scene_group(struct hit_scene *scene, size_t at, struct moon_cursor *bytes) {
    struct moon_layout_group *group = &scene->groups[at];
    *group = (struct moon_layout_group){.transferable = true, .prefix_cacheable = true};
    group->spec.kind = (enum moon_spec_kind)(moon_cursor_u8(bytes) % (MOON_SPEC_CHUNKED_LOCAL + 1));
    group->block_tokens = INT64_C(4) << moon_cursor_u8(bytes) % 3;
    if (moon_spec_is_window(&group->spec))
        group->spec.window_tokens = 1 + moon_cursor_u8(bytes) % 70;
    if (group->spec.kind == MOON_SPEC_CHUNKED_LOCAL)
        group->spec.local_tokens = 1 + moon_cursor_u8(bytes) % 40;
    if (group->spec.kind == MOON_SPEC_UNIFORM) {
        group->inner = hit_scene_inner;
        group->inner_count = 2;
    }
    group->is_eagle = moon_cursor_u8(bytes) % 4 == 0;
}

/* Fills a scene; it points into itself. Bytes that are not there are 0. */
static inline void hit_scene_make(struct hit_scene *scene, struct moon_cursor *bytes) {
    size_t profiles;
    const struct moon_profile *all = moon_profiles(&profiles);
    memset(scene, 0, sizeof *scene);
    scene->profile = &all[moon_cursor_u8(bytes) % profiles];
    size_t count = scene->profile->coordinator ? 1 + moon_cursor_u8(bytes) % HIT_SCENE_GROUPS_MAX : 1;
    int64_t sbs = 4, hbs = 1 << 20;
    for (size_t i = 0; i < count; i++) {
        hit_scene_group(scene, i, bytes);
        sbs = scene->groups[i].block_tokens > sbs ? scene->groups[i].block_tokens : sbs;
        hbs = scene->groups[i].block_tokens < hbs ? scene->groups[i].block_tokens : hbs;
    }
    if (!scene->profile->coordinator) {
        scene->groups[0].spec = (struct moon_layer_spec){.kind = MOON_SPEC_FULL};
        hbs = sbs;
    }
    scene->model = (struct moon_layout_model){.tp = 1,
                                              .pp = 1,
                                              .pcp = 1,
                                              .dcp = 1,
                                              .total_kv_heads = 1,
                                              .groups = scene->groups,
                                              .group_count = count,
                                              .scheduler_block_tokens = sbs,
                                              .hash_block_tokens = hbs,
                                              .speculative = moon_cursor_u8(bytes) % 2 == 0};
    const struct moon_connector_options options = {.role = MOON_ROLE_BOTH, .enable_lookup = true};
    int status = moon_connector_open(&scene->connector, scene->profile, &scene->model, &options, NULL);
    assert(status == 0);
    (void)status;
    scene->presence = (struct moon_presence){scene->present, moon_cursor_u8(bytes) % (HIT_SCENE_HASHES_MAX + 1)};
    int64_t align = scene->connector.alignment_tokens, most = scene->presence.hash_count * hbs / align;
    scene->limit_tokens = (int64_t)moon_cursor_u8(bytes) % (most + 1) * align;
    if (moon_cursor_u8(bytes) == 1)
        scene->limit_tokens += align; /* more tokens than hashes */
    for (size_t i = 0; i < count * (size_t)scene->presence.hash_count; i++)
        scene->present[i] = moon_cursor_u8(bytes) % 4 != 0;
}

/* Every chunk that a load of the hit reads is there. */
static inline void hit_scene_check_chunks(const struct hit_scene *scene, int64_t hit) {
    int64_t unit = scene->model.hash_block_tokens;
    for (size_t group = 0; group < scene->model.group_count; group++) {
        int64_t block = scene->groups[group].block_tokens;
        const uint8_t *present = scene->present + (int64_t)group * scene->presence.hash_count;
        for (int64_t chunk = 0; chunk * block < hit; chunk++) {
            if (!moon_load_wanted(&scene->connector, group, chunk, hit))
                continue;
            bool there = false; /* under the hash at its end, or in its middle when it is the last */
            int64_t first = chunk * (block / unit), end = first + block / unit;
            int64_t from = (chunk + 1) * block > hit ? hit / unit - 1 : end - 1;
            for (int64_t hash = from; hash < end && hash < scene->presence.hash_count; hash++)
                there |= present[hash] != 0;
            assert(there);
        }
    }
}

/* True if a release of this scene may promise what it cannot load: Mamba looks beyond the hit (HIT-007), a window of
 * one token with a drafter looks at no chunk (HIT-031), or a chunk of attention begins inside a block (HIT-015). */
static inline bool hit_scene_may_fail(const struct hit_scene *scene) {
    for (size_t i = 0; i < scene->model.group_count; i++) {
        bool drops = moon_layout_group_eagle(&scene->model, i);
        if (drops && scene->profile->mamba_peeks && scene->groups[i].spec.kind == MOON_SPEC_MAMBA)
            return true;
        if (drops && moon_spec_is_window(&scene->groups[i].spec) && scene->groups[i].spec.window_tokens == 1)
            return true;
        if (scene->groups[i].spec.kind == MOON_SPEC_CHUNKED_LOCAL &&
            scene->groups[i].spec.local_tokens % scene->groups[i].block_tokens != 0)
            return true;
    }
    return false;
}

static inline void hit_scene_check(const struct hit_scene *scene) {
    struct moon_error error = {0};
    int64_t hit = -1, tokens[HIT_SCENE_GROUPS_MAX];
    int status = moon_hit_search(&scene->connector, &scene->presence, scene->limit_tokens, &hit, &error);
    assert(status == 0 || status == MOON_ERR_REFUSED);
    if (status)
        return;
    assert(hit >= 0 && hit <= scene->limit_tokens);
    assert(hit % scene->connector.alignment_tokens == 0);
    if (hit == 0 || hit_scene_may_fail(scene))
        return;
    hit_scene_check_chunks(scene, hit);
    status = moon_tail_boundaries(&scene->connector, &scene->presence, hit, tokens, &error);
    assert(status == 0 || status == MOON_ERR_REFUSED);
    for (size_t i = 0; i < scene->model.group_count && !status; i++) {
        assert(tokens[i] >= hit && tokens[i] < hit + scene->groups[i].block_tokens);
        assert(
            scene->present[(int64_t)i * scene->presence.hash_count + tokens[i] / scene->model.hash_block_tokens - 1]);
    }
}

#endif
