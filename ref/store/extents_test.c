/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the allocator of a segment against a list of used intervals. */
#include "ref/base/error.h"
#include "ref/base/random.h"
#include "ref/base/unit.h"
#include "ref/store/extents.h"

static const uint64_t MiB = 1024 * 1024, GiB = 1024 * 1024 * 1024;

/* The rule in other words: the smallest m * 2^e with m from 8 to 15 that is no less (below 8: the number itself). */
static uint64_t rounded_up(uint64_t quanta) {
    uint64_t step = 1;
    while (quanta > 15 * step)
        step *= 2;
    return (quanta + step - 1) / step * step;
}

static uint64_t rounded_down(uint64_t quanta) {
    uint64_t step = 1;
    while (quanta >= 16 * step)
        step *= 2;
    return quanta / step * step;
}

static uint64_t allocate(struct moon_extents *extents, uint64_t length, struct moon_region **region) {
    struct moon_region *own = NULL;
    region = region ? region : &own;
    int status = moon_extents_allocate(extents, length, region);
    return status ? (uint64_t)(int64_t)status : moon_extents_offset_bytes(extents, *region);
}

static uint64_t length_bytes(const struct moon_extents *extents, const struct moon_region *region) {
    return (uint64_t)region->length << extents->quantum_shift;
}

static void a_segment_of_16_mib_can_be_used_whole(void) {
    struct moon_extents extents;
    struct moon_region *region;
    MOON_CHECK_INT(moon_extents_open(&extents, moon_memory_heap(), 16 * MiB), 0);
    MOON_CHECK_INT(allocate(&extents, 16 * MiB + 1, NULL), MOON_ERR_LIMIT);
    MOON_CHECK_INT(allocate(&extents, 16 * MiB, &region), 0);
    MOON_CHECK_INT(length_bytes(&extents, region), 16 * MiB);
    MOON_CHECK_INT(allocate(&extents, 1, NULL), MOON_ERR_LIMIT);
    moon_extents_free(&extents, region);
    MOON_CHECK_INT(allocate(&extents, 16 * MiB - 1, &region), 0);
    MOON_CHECK_INT(length_bytes(&extents, region), 16 * MiB);
    moon_extents_close(&extents);
    moon_extents_close(&extents);
}

static void objects_of_5000_bytes_are_5120_apart(void) {
    struct moon_extents extents;
    MOON_CHECK_INT(moon_extents_open(&extents, moon_memory_heap(), MiB), 0);
    for (uint64_t i = 0; i < 10; i++)
        MOON_CHECK_INT(allocate(&extents, 5000, NULL), i * 5120);
    MOON_CHECK_INT(allocate(&extents, 4096, NULL), 51200);
    MOON_CHECK_INT(allocate(&extents, 7, NULL), 55296);
    MOON_CHECK_INT(allocate(&extents, 17, NULL), 55303); /* 18 */
    MOON_CHECK_INT(allocate(&extents, 1, NULL), 55321);
    moon_extents_close(&extents);
}

static void a_size_that_no_bin_has_cannot_be_used_whole(void) {
    struct moon_extents extents;
    MOON_CHECK_INT(moon_extents_open(&extents, moon_memory_heap(), 17 * MiB), 0);
    MOON_CHECK_INT(allocate(&extents, 17 * MiB, NULL), MOON_ERR_LIMIT); /* 18 MiB would be needed */
    MOON_CHECK_INT(allocate(&extents, 16 * MiB, NULL), 0);
    MOON_CHECK_INT(allocate(&extents, MiB, NULL), 16 * MiB);
    moon_extents_close(&extents);
}

static void quanta_are_coarser_above_3840_mib(void) {
    static const struct {
        uint64_t size, quantum;
    } rows[] = {
        {3840, 1}, {3841, 2}, {4096, 2}, {7680, 2}, {7681, 4}, {16 * 1024, 8}, {1024 * 1024, 512},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct moon_extents extents;
        MOON_CHECK_INT(moon_extents_open(&extents, moon_memory_heap(), rows[i].size * MiB), 0);
        MOON_CHECK_INT(allocate(&extents, 1, NULL), 0);
        MOON_CHECK_INT(allocate(&extents, 1, NULL), rows[i].quantum);
        MOON_CHECK_INT(allocate(&extents, 3 * GiB, NULL), 2 * rows[i].quantum);
        moon_extents_close(&extents);
    }
    struct moon_extents extents;
    struct moon_region *region;
    MOON_CHECK_INT(moon_extents_open(&extents, moon_memory_heap(), UINT64_MAX), 0);
    MOON_CHECK_INT(allocate(&extents, UINT64_MAX, &region), MOON_ERR_LIMIT);
    MOON_CHECK_INT(allocate(&extents, UINT64_C(15) << 60, &region), 0);
    moon_extents_close(&extents);
}

static void odd_tails_are_left_unused(void) {
    struct moon_extents extents;
    struct moon_region *region;
    MOON_CHECK_INT(moon_extents_open(&extents, moon_memory_heap(), 16 * GiB + 7), 0); /* quantum 8 */
    MOON_CHECK_INT(allocate(&extents, 16 * GiB, &region), 0);
    MOON_CHECK_INT(allocate(&extents, 1, NULL), MOON_ERR_LIMIT);
    moon_extents_close(&extents);
}

/* ---- the model */

enum { LIVE_MAX = 600 };
struct model {
    uint64_t size, quantum; /* size in quanta */
    struct interval {
        uint64_t from, length; /* quanta */
        struct moon_region *region;
    } live[LIVE_MAX];
    size_t count;
};

/* Puts an interval into its place by address. Checks that it touches no other and is inside. */
static void add(struct model *model, uint64_t from, uint64_t length, struct moon_region *region) {
    size_t at = model->count++;
    for (; at > 0 && model->live[at - 1].from > from; at--)
        model->live[at] = model->live[at - 1];
    model->live[at] = (struct interval){from, length, region};
    CU_ASSERT(at == 0 || model->live[at - 1].from + model->live[at - 1].length <= from);
    CU_ASSERT(from + length <= (at + 1 < model->count ? model->live[at + 1].from : model->size));
}

static uint64_t largest_gap(const struct model *model) {
    uint64_t end = 0, largest = 0;
    for (size_t i = 0; i <= model->count; i++) {
        uint64_t from = i < model->count ? model->live[i].from : model->size;
        uint64_t gap = rounded_down(from - end);
        largest = gap > largest ? gap : largest;
        end = i < model->count ? from + model->live[i].length : from;
    }
    return largest;
}

static void step_of_model(struct moon_extents *extents, struct model *model, struct moon_random *random, bool filling) {
    if (model->count > 0 && (model->count == LIVE_MAX || moon_random_chance(random, filling ? 1 : 2, 3))) {
        size_t at = moon_random_below(random, model->count);
        moon_extents_free(extents, model->live[at].region);
        model->count--;
        memmove(&model->live[at], &model->live[at + 1], (model->count - at) * sizeof model->live[0]);
        return;
    }
    uint64_t most = UINT64_C(1) << moon_random_below(random, 63 - (unsigned)__builtin_clzll(model->size * 2));
    uint64_t bytes = moon_random_below(random, most * model->quantum) + 1;
    uint64_t wanted = rounded_up((bytes + model->quantum - 1) / model->quantum);
    struct moon_region *region = NULL;
    int status = moon_extents_allocate(extents, bytes, &region);
    MOON_CHECK_INT(status, wanted <= largest_gap(model) ? 0 : MOON_ERR_LIMIT);
    if (status == 0) {
        MOON_CHECK_INT(length_bytes(extents, region), wanted * model->quantum);
        add(model, moon_extents_offset_bytes(extents, region) / model->quantum, wanted, region);
    }
}

static void random_calls_agree_with_a_list_of_intervals(void) {
    static const struct {
        uint64_t size, quantum;
    } segments[] = {{16 * 1048576, 1}, {1000003, 1}, {37, 1}, {UINT64_C(123456789012), 32}};
    for (size_t s = 0; s < sizeof segments / sizeof segments[0]; s++) {
        struct moon_memory_failing failing;
        moon_memory_failing_init(&failing, moon_memory_heap(), 0);
        struct moon_extents extents;
        static struct model model;
        struct moon_random random;
        moon_random_seed(&random, s);
        model = (struct model){.size = segments[s].size / segments[s].quantum, .quantum = segments[s].quantum};
        MOON_CHECK_INT(moon_extents_open(&extents, &failing.memory, segments[s].size), 0);
        for (int step = 0; step < 30000; step++)
            step_of_model(&extents, &model, &random, step / 3000 % 2 == 0);
        while (model.count > 0)
            moon_extents_free(&extents, model.live[--model.count].region);
        MOON_CHECK_INT(extents.regions, 1); /* merging was complete */
        CU_ASSERT_PTR_NULL(extents.first->after);
        MOON_CHECK_INT(extents.first->length, model.size);
        MOON_CHECK_INT(allocate(&extents, rounded_down(model.size) * model.quantum, NULL), 0);
        moon_extents_close(&extents);
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
}

static void the_number_of_regions_is_bounded(void) {
    struct moon_extents extents;
    MOON_CHECK_INT(moon_extents_open(&extents, moon_memory_heap(), 16 * MiB), 0);
    MOON_CHECK_INT(extents.regions_max, MiB);
    moon_extents_close(&extents);
    MOON_CHECK_INT(moon_extents_open(&extents, moon_memory_heap(), 2048 * MiB), 0);
    MOON_CHECK_INT(extents.regions_max, 2 * MiB);
    moon_extents_close(&extents);
    MOON_CHECK_INT(moon_extents_open(&extents, moon_memory_heap(), 1024 * 1024 * MiB), 0);
    MOON_CHECK_INT(extents.regions_max, 64 * MiB);
    extents.regions_max = 3; /* as if so many were there */
    struct moon_region *first, *second;
    MOON_CHECK_INT(moon_extents_allocate(&extents, 512, &first), 0);
    MOON_CHECK_INT(moon_extents_allocate(&extents, 512, &second), 0);
    MOON_CHECK_INT(moon_extents_allocate(&extents, 512, &second), MOON_ERR_LIMIT);
    moon_extents_free(&extents, first);
    MOON_CHECK_INT(moon_extents_allocate(&extents, 512, &first), 0); /* needs no region more */
    moon_extents_close(&extents);
}

static int use_extents(struct moon_memory *memory, const void *context) {
    struct moon_extents extents;
    struct moon_region *region;
    int status = moon_extents_open(&extents, memory, *(const uint64_t *)context);
    if (status != 0)
        return status;
    for (int i = 0; i < 8 && status == 0; i++)
        status = moon_extents_allocate(&extents, 100, &region);
    if (status != 0 && extents.first->used) { /* nothing has changed: the rest can be freed and the whole be had */
        for (struct moon_region *r = extents.first; r && r->used; r = extents.first)
            moon_extents_free(&extents, r);
    }
    moon_extents_close(&extents);
    return status;
}

static void refused_memory_leaks_nothing(void) {
    uint64_t size = 4096;
    moon_unit_refuse_memory(use_extents, &size);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a segment of 16 MiB can be used whole", a_segment_of_16_mib_can_be_used_whole},
        {"objects of 5000 bytes are 5120 apart", objects_of_5000_bytes_are_5120_apart},
        {"a size that no bin has cannot be used whole", a_size_that_no_bin_has_cannot_be_used_whole},
        {"quanta are coarser above 3840 MiB", quanta_are_coarser_above_3840_mib},
        {"odd tails are left unused", odd_tails_are_left_unused},
        {"random calls agree with a list of intervals", random_calls_agree_with_a_list_of_intervals},
        {"the number of regions is bounded", the_number_of_regions_is_bounded},
        {"refused memory leaks nothing", refused_memory_leaks_nothing},
        {0},
    };
    return moon_unit_main("extents", cases, argc, argv);
}
