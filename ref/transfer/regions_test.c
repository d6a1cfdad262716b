/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the table of offered memory. */
#include "ref/transfer/regions.h"

#include "ref/base/error.h"
#include "ref/base/random.h"
#include "ref/base/unit.h"

static int add(struct moon_regions *regions, uint64_t address, size_t length) {
    static uint8_t memory;
    struct moon_region region = {.address = address, .memory = &memory, .length = length, .remote = true};
    return moon_regions_add(regions, &region);
}

static uint64_t found(const struct moon_regions *regions, uint64_t address, uint64_t length) {
    const struct moon_region *region = moon_regions_find(regions, address, length);
    return region ? region->address : 0;
}

static void finds_what_lies_inside(void) {
    struct moon_regions regions;
    moon_regions_open(&regions, moon_memory_heap());
    MOON_CHECK_INT(found(&regions, 1, 1), 0);
    MOON_CHECK_INT(add(&regions, 0x2000, 0x1000), 0);
    MOON_CHECK_INT(add(&regions, 0x1000, 0x1000), 0);
    MOON_CHECK_INT(found(&regions, 0x1000, 0x1000), 0x1000);
    MOON_CHECK_INT(found(&regions, 0x1fff, 1), 0x1000);
    MOON_CHECK_INT(found(&regions, 0x2000, 1), 0x2000);
    MOON_CHECK_INT(found(&regions, 0x2fff, 1), 0x2000);
    MOON_CHECK_INT(found(&regions, 0x1fff, 2), 0); /* crosses a border */
    MOON_CHECK_INT(found(&regions, 0xfff, 2), 0);
    MOON_CHECK_INT(found(&regions, 0x3000, 1), 0);
    MOON_CHECK_INT(found(&regions, 0x1000, 0), 0);
    MOON_CHECK_INT(found(&regions, 0x1000, UINT64_MAX), 0);
    MOON_CHECK_INT(found(&regions, UINT64_MAX, UINT64_MAX), 0);
    moon_regions_close(&regions);
    moon_regions_close(&regions);
}

static void refuses_overlaps(void) {
    struct moon_regions regions;
    moon_regions_open(&regions, moon_memory_heap());
    MOON_CHECK_INT(add(&regions, 0x1000, 0x1000), 0);
    MOON_CHECK_INT(add(&regions, 0x1000, 0x1000), MOON_ERR_RANGE);
    MOON_CHECK_INT(add(&regions, 0x1fff, 1), MOON_ERR_RANGE);
    MOON_CHECK_INT(add(&regions, 0xfff, 2), MOON_ERR_RANGE);
    MOON_CHECK_INT(add(&regions, 0, 0x10000), MOON_ERR_RANGE);
    MOON_CHECK_INT(add(&regions, 0x5000, 0), MOON_ERR_RANGE);
    MOON_CHECK_INT(add(&regions, UINT64_MAX, 1), MOON_ERR_RANGE);
    MOON_CHECK_INT(add(&regions, 0xfff, 1), 0);
    MOON_CHECK_INT(add(&regions, 0x2000, 1), 0);
    MOON_CHECK_INT(regions.count, 3);
    moon_regions_close(&regions);
}

static void keeps_the_order_of_registration(void) {
    struct moon_regions regions;
    moon_regions_open(&regions, moon_memory_heap());
    MOON_CHECK_INT(add(&regions, 0x3000, 16), 0);
    MOON_CHECK_INT(add(&regions, 0x1000, 16), 0);
    MOON_CHECK_INT(add(&regions, 0x2000, 16), 0);
    MOON_CHECK_INT(moon_regions_remove(&regions, 0x1008), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_regions_remove(&regions, 0x800), MOON_ERR_RANGE);
    MOON_CHECK_INT(moon_regions_remove(&regions, 0x1000), 0);
    MOON_CHECK_INT(regions.rows[0].address, 0x3000);
    MOON_CHECK_INT(regions.rows[1].address, 0x2000);
    MOON_CHECK_INT(found(&regions, 0x2000, 16), 0x2000);
    MOON_CHECK_INT(found(&regions, 0x3000, 16), 0x3000);
    MOON_CHECK_INT(found(&regions, 0x1000, 1), 0);
    moon_regions_close(&regions);
}

enum { CELLS = 64 };

/* Regions of whole cells, against a map of cells. */
static void random_regions_agree_with_a_map(void) {
    struct moon_regions regions;
    struct moon_random random;
    uint64_t map[CELLS] = {0}; /* address of the region there */
    moon_random_seed(&random, 1);
    moon_regions_open(&regions, moon_memory_heap());
    for (int round = 0; round < 20000; round++) {
        uint64_t cell = moon_random_below(&random, CELLS), length = 1 + moon_random_below(&random, 6);
        uint64_t end = cell + length < CELLS ? cell + length : CELLS;
        bool taken = false, same = map[cell] != 0;
        for (uint64_t i = cell; i < end; i++) {
            taken = taken || map[i];
            same = same && map[i] == map[cell];
        }
        MOON_CHECK_INT(found(&regions, (cell + 1) * 16, (end - cell) * 16), same ? map[cell] : 0);
        if (moon_random_chance(&random, 1, 2)) {
            MOON_CHECK_INT(add(&regions, (cell + 1) * 16, (end - cell) * 16), taken ? MOON_ERR_RANGE : 0);
            for (uint64_t i = cell; i < end && !taken; i++)
                map[i] = (cell + 1) * 16;
        } else {
            bool begins = map[cell] == (cell + 1) * 16;
            MOON_CHECK_INT(moon_regions_remove(&regions, (cell + 1) * 16), begins ? 0 : MOON_ERR_RANGE);
            for (uint64_t i = cell; i < CELLS && begins; i++)
                map[i] = map[i] == (cell + 1) * 16 ? 0 : map[i];
        }
    }
    moon_regions_close(&regions);
}

static int add_some(struct moon_memory *memory, const void *context) {
    struct moon_regions regions;
    int status = MOON_OK;
    (void)context;
    moon_regions_open(&regions, memory);
    for (uint64_t i = 1; i <= 40 && !status; i++)
        status = add(&regions, i * 16, 16);
    for (uint64_t i = 1; i <= regions.count; i++)
        MOON_CHECK_INT(found(&regions, i * 16, 16), i * 16);
    moon_regions_close(&regions);
    return status;
}

static void survives_refused_memory(void) {
    moon_unit_refuse_memory(add_some, NULL);
}

int main(int argc, char *argv[]) {
    const struct moon_unit_case cases[] = {
        {"a range is found if all of it lies in one region", finds_what_lies_inside},
        {"an empty, wrapping or overlapping region is refused", refuses_overlaps},
        {"rows stay in the order of registration", keeps_the_order_of_registration},
        {"random additions and removals agree with a map", random_regions_agree_with_a_map},
        {"refused memory leaves the table as it was", survives_refused_memory},
        {NULL, NULL},
    };
    return moon_unit_main("transfer regions", cases, argc, argv);
}
