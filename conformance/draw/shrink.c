/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a JSON value smaller, step by step, while some property of it holds. */
#include "conformance/draw/shrink.h"

#include <assert.h>
#include <string.h>

/* A change of one node, which is counted in document order from 0 (the root). */
struct edit {
    size_t node;
    enum { EDIT_CUT, EDIT_STRING, EDIT_INTEGER, EDIT_FALSE } what;
    size_t from, to; /* EDIT_CUT: children that go; EDIT_STRING: bytes [0, to) stay */
    int64_t integer; /* EDIT_INTEGER */
};

static struct moon_json *copy_node(struct moon_arena *arena, const struct moon_json *node, const struct edit *edit) {
    if (edit && edit->what == EDIT_STRING)
        return moon_json_bytes(arena, node->bytes, edit->to);
    if (edit && edit->what == EDIT_INTEGER)
        return moon_json_int(arena, edit->integer);
    if (edit && edit->what == EDIT_FALSE)
        return moon_json_bool(arena, false);
    if (node->type == MOON_JSON_ARRAY)
        return moon_json_array(arena);
    if (node->type == MOON_JSON_OBJECT)
        return moon_json_object(arena);
    return moon_json_clone(arena, node);
}

static void attach(struct moon_arena *arena, struct moon_json *parent, const struct moon_json *node,
                   struct moon_json *copy) {
    if (node->name)
        moon_json_set(arena, parent, node->name, copy);
    else
        moon_json_push(parent, copy);
}

/* A walk through a subtree in document order. */
struct walk {
    const struct moon_json *root, *at;
    size_t depth; /* of `at` below root */
};

/* Goes to the next node, or past the children of this one. False at the end. */
static bool step(struct walk *walk, bool enter) {
    if (enter && walk->at->first) {
        walk->at = walk->at->first;
        walk->depth++;
        return true;
    }
    while (walk->at != walk->root && !walk->at->next) {
        walk->at = walk->at->parent;
        walk->depth--;
    }
    if (walk->at == walk->root)
        return false;
    walk->at = walk->at->next;
    return true;
}

/* Number of nodes in the subtree of `node`. */
static size_t count_nodes(const struct moon_json *node) {
    struct walk walk = {node, node, 0};
    size_t count = 1;
    while (step(&walk, true))
        count++;
    return count;
}

/* A copy of the whole value with one edit. */
static struct moon_json *rebuild(struct moon_arena *arena, const struct moon_json *root, const struct edit *edit) {
    struct moon_json *copies[MOON_JSON_DEPTH_MAX + 1] = {NULL}; /* of the nodes on the way to the walk's place */
    struct walk walk = {root, root, 0};
    const struct moon_json *cut_parent = edit->node == 0 && edit->what == EDIT_CUT ? root : NULL;
    size_t number = 0;
    copies[0] = copy_node(arena, root, edit->node == 0 ? edit : NULL);
    for (bool more = step(&walk, true); more;) {
        const struct moon_json *at = walk.at;
        number++;
        if (at->parent == cut_parent && at->index >= edit->from && at->index < edit->to) {
            number += count_nodes(at) - 1;
            more = step(&walk, false);
            continue;
        }
        assert(walk.depth <= MOON_JSON_DEPTH_MAX);
        copies[walk.depth] = copy_node(arena, at, number == edit->node ? edit : NULL);
        attach(arena, copies[walk.depth - 1], at, copies[walk.depth]);
        if (number == edit->node && edit->what == EDIT_CUT)
            cut_parent = at;
        more = step(&walk, true);
    }
    return copies[0];
}

/* The search: two arenas take turns, one holds the best value, the other the candidate. */
struct search {
    moon_shrink_check still;
    void *context;
    unsigned tries;
    struct moon_arena arenas[2];
    int best_arena;
    struct moon_json *best;
    bool failed;
};

static bool try_edit(struct search *search, const struct edit *edit) {
    if (search->tries == 0 || search->failed)
        return false;
    struct moon_arena *arena = &search->arenas[1 - search->best_arena];
    struct moon_json *candidate = rebuild(arena, search->best, edit);
    search->failed = moon_json_broken(candidate);
    search->tries--;
    if (!search->failed && search->still(search->context, candidate)) {
        moon_arena_close(&search->arenas[search->best_arena]);
        search->best_arena = 1 - search->best_arena;
        search->best = candidate;
        return true;
    }
    moon_arena_close(arena);
    return false;
}

/* The node with this number in the best value, or NULL past the last. */
static const struct moon_json *node_at(const struct search *search, size_t number) {
    struct walk walk = {search->best, search->best, 0};
    for (size_t i = 0; i < number; i++)
        if (!step(&walk, true))
            return NULL;
    return walk.at;
}

/* Removes runs of children: long ones first. */
static bool shrink_children(struct search *search, size_t number) {
    bool any = false;
    for (size_t run = node_at(search, number)->count; run > 0; run /= 2) {
        for (size_t from = 0; from < node_at(search, number)->count;) {
            size_t count = node_at(search, number)->count;
            struct edit edit = {number, EDIT_CUT, from, from + run < count ? from + run : count, 0};
            if (try_edit(search, &edit))
                any = true;
            else
                from += run;
        }
    }
    return any;
}

static bool shrink_string(struct search *search, size_t number) {
    bool any = false;
    for (size_t cut = node_at(search, number)->length; cut > 0;) {
        const struct moon_json *node = node_at(search, number);
        size_t to = node->length > cut ? node->length - cut : 0;
        while (to > 0 && (node->bytes[to] & 0xC0) == 0x80)
            to--;
        struct edit edit = {number, EDIT_STRING, 0, to, 0};
        if (node->length > 0 && try_edit(search, &edit))
            any = true;
        else
            cut /= 2;
    }
    return any;
}

static bool shrink_integer(struct search *search, size_t number) {
    bool any = false;
    for (;;) {
        int64_t value = node_at(search, number)->integer;
        const int64_t ideas[] = {0, value / 2, value > 0 ? value - 1 : value + 1};
        size_t i = 0;
        for (; value != 0 && i < 3; i++) {
            struct edit edit = {number, EDIT_INTEGER, 0, 0, ideas[i]};
            if (try_edit(search, &edit))
                break;
        }
        if (value == 0 || i == 3)
            return any;
        any = true;
    }
}

static bool shrink_node(struct search *search, size_t number) {
    const struct moon_json *node = node_at(search, number);
    struct edit edit = {number, EDIT_FALSE, 0, 0, 0};
    switch (node->type) {
    case MOON_JSON_ARRAY:
    case MOON_JSON_OBJECT:
        return shrink_children(search, number);
    case MOON_JSON_STRING:
        return shrink_string(search, number);
    case MOON_JSON_INTEGER:
        return node->fits && shrink_integer(search, number);
    case MOON_JSON_BOOL:
        return node->boolean && try_edit(search, &edit);
    default:
        return false;
    }
}

struct moon_json *moon_shrink(struct moon_arena *arena, const struct moon_json *value, moon_shrink_check still,
                              void *context, unsigned tries) {
    struct search search = {.still = still, .context = context, .tries = tries};
    moon_arena_open(&search.arenas[0], arena->memory);
    moon_arena_open(&search.arenas[1], arena->memory);
    search.best = moon_json_clone(&search.arenas[0], value);
    search.failed = moon_json_broken(search.best);
    bool smaller = !search.failed;
    while (smaller && search.tries > 0) {
        smaller = false;
        for (size_t number = 0; !search.failed && search.tries > 0 && node_at(&search, number); number++)
            smaller |= shrink_node(&search, number);
    }
    struct moon_json *result = search.failed ? NULL : moon_json_clone(arena, search.best);
    moon_arena_close(&search.arenas[0]);
    moon_arena_close(&search.arenas[1]);
    return moon_json_broken(result) ? NULL : result;
}
