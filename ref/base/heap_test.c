/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the heap of deadlines against a search through an array. */
#include "ref/base/error.h"
#include "ref/base/heap.h"
#include "ref/base/random.h"
#include "ref/base/unit.h"

enum { NODES = 400 };

/* The model: what is in, with its time and the number of the call that put it there. */
struct model {
    bool in[NODES];
    moon_ns time_ns[NODES];
    uint64_t order[NODES], calls;
};

static int first_of(const struct model *model) {
    int first = -1;
    for (int i = 0; i < NODES; i++)
        if (model->in[i] && (first < 0 || model->time_ns[i] < model->time_ns[first] ||
                             (model->time_ns[i] == model->time_ns[first] && model->order[i] < model->order[first])))
            first = i;
    return first;
}

static void place(struct model *model, int i, moon_ns time_ns) {
    model->in[i] = true;
    model->time_ns[i] = time_ns;
    model->order[i] = model->calls++;
}

static void random_calls_agree_with_a_search(void) {
    struct moon_memory_failing failing;
    moon_memory_failing_init(&failing, moon_memory_heap(), 0);
    struct moon_heap heap;
    moon_heap_open(&heap, &failing.memory);
    static struct moon_heap_node nodes[NODES];
    static struct model model;
    struct moon_random random;
    moon_random_seed(&random, 1);
    for (int step = 0; step < 40000; step++) {
        int i = (int)moon_random_below(&random, NODES);
        moon_ns time_ns = moon_random_between(&random, -20, 20); /* many equal times */
        bool removing = moon_random_chance(&random, step % 4000 < 2000 ? 1 : 5, 6);
        if (removing) {
            moon_heap_remove(&heap, &nodes[i]);
            model.in[i] = false;
        } else if (model.in[i]) {
            moon_heap_move(&heap, &nodes[i], time_ns);
            place(&model, i, time_ns);
        } else {
            MOON_CHECK_INT(moon_heap_add(&heap, &nodes[i], time_ns), 0);
            place(&model, i, time_ns);
        }
        int first = first_of(&model);
        CU_ASSERT_PTR_EQUAL(moon_heap_first(&heap), first < 0 ? NULL : &nodes[first]);
        MOON_CHECK_INT(moon_heap_deadline(&heap), first < 0 ? MOON_NS_NEVER : model.time_ns[first]);
    }
    for (int first; (first = first_of(&model)) >= 0; model.in[first] = false) {
        CU_ASSERT_PTR_EQUAL(moon_heap_first(&heap), &nodes[first]);
        moon_heap_remove(&heap, moon_heap_first(&heap));
    }
    MOON_CHECK_INT(heap.count, 0);
    moon_heap_close(&heap);
    moon_heap_close(&heap);
    MOON_CHECK_INT(failing.held_bytes, 0);
}

static void equal_times_come_in_the_order_of_their_addition(void) {
    struct moon_heap heap;
    moon_heap_open(&heap, moon_memory_heap());
    struct moon_heap_node nodes[20] = {{0}};
    for (int i = 0; i < 20; i++)
        MOON_CHECK_INT(moon_heap_add(&heap, &nodes[i], 7), 0);
    moon_heap_move(&heap, &nodes[0], 7); /* now the last */
    for (int i = 1; i <= 20; i++) {
        CU_ASSERT_PTR_EQUAL(moon_heap_first(&heap), &nodes[i % 20]);
        moon_heap_remove(&heap, moon_heap_first(&heap));
    }
    moon_heap_remove(&heap, &nodes[3]); /* in none: left alone */
    CU_ASSERT_PTR_NULL(moon_heap_first(&heap));
    CU_ASSERT(moon_heap_deadline(&heap) == MOON_NS_NEVER);
    moon_heap_close(&heap);
}

static int fill_heap(struct moon_memory *memory, const void *context) {
    struct moon_heap heap;
    moon_heap_open(&heap, memory);
    struct moon_heap_node nodes[100] = {{0}};
    int status = 0;
    for (int i = 0; i < 100 && status == 0; i++) {
        status = moon_heap_add(&heap, &nodes[i], *(const moon_ns *)context - i);
        if (status != 0) {
            MOON_CHECK_INT(heap.count, i);
            MOON_CHECK_INT(nodes[i].place, 0);
            CU_ASSERT_PTR_EQUAL(moon_heap_first(&heap), i ? &nodes[i - 1] : NULL);
        }
    }
    moon_heap_close(&heap);
    return status;
}

static void refused_memory_leaves_the_heap_as_it_was(void) {
    moon_ns time_ns = 50;
    moon_unit_refuse_memory(fill_heap, &time_ns);
}

static void after_a_reservation_additions_ask_for_no_memory(void) {
    struct moon_memory_failing failing;
    moon_memory_failing_init(&failing, moon_memory_heap(), 2);
    struct moon_heap heap;
    moon_heap_open(&heap, &failing.memory);
    struct moon_heap_node nodes[100] = {{0}};
    MOON_CHECK_INT(moon_heap_reserve(&heap, 99), 0);
    for (int i = 0; i < 99; i++)
        MOON_CHECK_INT(moon_heap_add(&heap, &nodes[i], i), 0);
    MOON_CHECK_INT(failing.requests, 1);
    MOON_CHECK_INT(moon_heap_reserve(&heap, 1000), MOON_ERR_MEMORY);
    MOON_CHECK_INT(moon_heap_reserve(&heap, SIZE_MAX), MOON_ERR_MEMORY);
    MOON_CHECK_INT(heap.count, 99);
    moon_heap_close(&heap);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"random calls agree with a search", random_calls_agree_with_a_search},
        {"equal times come in the order of their addition", equal_times_come_in_the_order_of_their_addition},
        {"refused memory leaves the heap as it was", refused_memory_leaves_the_heap_as_it_was},
        {"after a reservation additions ask for no memory", after_a_reservation_additions_ask_for_no_memory},
        {0},
    };
    return moon_unit_main("heap", cases, argc, argv);
}
