/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the queue: order over growth and wrapping, and refused memory. */
#include "ref/connector/ring.h"

#include "ref/base/error.h"
#include "ref/base/random.h"
#include "ref/base/unit.h"

static void elements_come_out_in_the_order_they_went_in(void) {
    struct moon_ring ring;
    struct moon_random random;
    uint32_t pushed = 0, taken = 0, value;
    moon_ring_open(&ring, moon_memory_heap(), sizeof value);
    moon_random_seed(&random, 1);
    for (int i = 0; i < 5000; i++) {
        if (moon_random_chance(&random, i < 2500 ? 3 : 1, 4)) {
            MOON_CHECK_INT(moon_ring_reserve(&ring, 1), 0);
            moon_ring_push(&ring, &pushed);
            pushed++;
        } else if (moon_ring_take(&ring, &value)) {
            MOON_CHECK_INT(value, taken++);
        }
        MOON_CHECK_INT(ring.count, pushed - taken);
        const uint32_t *oldest = moon_ring_oldest(&ring);
        CU_ASSERT_EQUAL(!oldest, pushed == taken);
        if (oldest)
            MOON_CHECK_INT(*oldest, taken);
    }
    moon_ring_close(&ring);
    CU_ASSERT_FALSE(moon_ring_take(&ring, NULL));
}

static void an_element_can_be_dropped(void) {
    struct moon_ring ring;
    moon_ring_open(&ring, moon_memory_heap(), 1);
    MOON_CHECK_INT(moon_ring_reserve(&ring, 2), 0);
    moon_ring_push(&ring, "a");
    moon_ring_push(&ring, "b");
    CU_ASSERT(moon_ring_take(&ring, NULL));
    MOON_CHECK_INT(*(const char *)moon_ring_oldest(&ring), 'b');
    moon_ring_close(&ring);
}

static void refused_memory_leaves_the_queue_as_it_was(void) {
    struct moon_memory_failing failing;
    struct moon_ring ring;
    uint32_t value = 7;
    moon_memory_failing_init(&failing, moon_memory_heap(), 2);
    moon_ring_open(&ring, &failing.memory, sizeof value);
    MOON_CHECK_INT(moon_ring_reserve(&ring, 8), 0);
    moon_ring_push(&ring, &value);
    MOON_CHECK_INT(moon_ring_reserve(&ring, 8), MOON_ERR_MEMORY);
    MOON_CHECK_INT(moon_ring_reserve(&ring, SIZE_MAX), MOON_ERR_MEMORY);
    MOON_CHECK_INT(moon_ring_reserve(&ring, SIZE_MAX / 4), MOON_ERR_MEMORY);
    CU_ASSERT(moon_ring_take(&ring, &value));
    MOON_CHECK_INT(value, 7);
    moon_ring_close(&ring);
    MOON_CHECK_INT(failing.held_bytes, 0);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"elements come out in the order they went in", elements_come_out_in_the_order_they_went_in},
        {"an element can be dropped", an_element_can_be_dropped},
        {"refused memory leaves the queue as it was", refused_memory_leaves_the_queue_as_it_was},
        {NULL, NULL}};
    return moon_unit_main("ring", cases, argc, argv);
}
