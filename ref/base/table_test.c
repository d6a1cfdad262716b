/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the keyed hash table against a plain array. */
#include "ref/base/error.h"
#include "ref/base/table.h"
#include "ref/base/unit.h"

#include <stdlib.h>

/* Expected numbers: CPython 3.11 with PYTHONHASHSEED=0 (SipHash-1-3, key 0), hash() of the message as bytes. */
static void the_hash_is_siphash_1_3_of_lengths_and_padded_bytes(void) {
    struct moon_table table = {.secret = {0, 0}};
    char long_text[301];
    memset(long_text, 'x', 300), long_text[300] = 0;
    struct moon_bytes empty = {NULL, 0}, a = moon_bytes_of("a"),
                      two[] = {moon_bytes_of("default"), moon_bytes_of("key")},
                      three[] = {moon_bytes_of("12345678"), empty, moon_bytes_of("123456789")},
                      xs = moon_bytes_of(long_text);
    CU_ASSERT_EQUAL(moon_table_hash(&table, &empty, 1), UINT64_C(0xbd60acb658c79e45));
    CU_ASSERT_EQUAL(moon_table_hash(&table, &a, 1), UINT64_C(0xb7c638bc50970583));
    CU_ASSERT_EQUAL(moon_table_hash(&table, two, 2), UINT64_C(0x12e5917ab3f15af0));
    CU_ASSERT_EQUAL(moon_table_hash(&table, three, 3), UINT64_C(0xc2cc514899c85311));
    CU_ASSERT_EQUAL(moon_table_hash(&table, &xs, 1), UINT64_C(0x9a0bb2deddcfe7c8));
}

static void the_secret_and_the_borders_of_parts_change_the_hash(void) {
    struct moon_table table = {.secret = {0, 0}}, other = {.secret = {0, 1}}, third = {.secret = {1, 0}};
    struct moon_bytes ab[] = {moon_bytes_of("ab"), moon_bytes_of("c")},
                      bc[] = {moon_bytes_of("a"), moon_bytes_of("bc")}, zero = {"a\0", 2}, plain = {"a", 1};
    CU_ASSERT(moon_table_hash(&table, ab, 2) != moon_table_hash(&table, bc, 2));
    CU_ASSERT(moon_table_hash(&table, &zero, 1) != moon_table_hash(&table, &plain, 1));
    CU_ASSERT(moon_table_hash(&table, ab, 2) != moon_table_hash(&other, ab, 2));
    CU_ASSERT(moon_table_hash(&table, ab, 2) != moon_table_hash(&third, ab, 2));
    struct moon_random random;
    moon_random_seed(&random, 1);
    struct moon_table drawn;
    moon_table_open(&drawn, moon_memory_heap(), &random);
    CU_ASSERT(drawn.secret[0] != drawn.secret[1]);
    CU_ASSERT_PTR_NULL(moon_table_find(&drawn, 0));
    moon_table_close(&drawn);
}

/* What is kept: number, and whether it is in. */
struct thing {
    struct moon_table_node node;
    uint64_t hash;
    bool in;
};
enum { THINGS = 6000 };

static size_t found(const struct moon_table *table, const struct thing *thing) {
    size_t times = 0;
    for (struct moon_table_node *n = moon_table_find(table, thing->hash); n; n = moon_table_find_next(n))
        times += n == &thing->node;
    return times;
}

static size_t longest_chain(const struct moon_table *table) {
    size_t longest = 0;
    for (size_t i = 0; i < table->buckets; i++) {
        size_t length = 0;
        for (struct moon_table_node *n = table->segments[i / 512][i % 512]; n; n = n->next)
            length++;
        longest = length > longest ? length : longest;
    }
    return longest;
}

static void turn(struct moon_table *table, struct thing *thing, size_t *in) {
    if (thing->in) {
        moon_table_remove(table, &thing->node);
        --*in;
    } else {
        MOON_CHECK_INT(moon_table_add(table, &thing->node, thing->hash), 0);
        ++*in;
    }
    thing->in = !thing->in;
}

static void random_additions_and_removals_agree_with_an_array(void) {
    struct moon_memory_failing failing;
    moon_memory_failing_init(&failing, moon_memory_heap(), 0);
    struct moon_random random;
    moon_random_seed(&random, 2);
    struct moon_table table;
    moon_table_open(&table, &failing.memory, &random);
    struct thing *things = calloc(THINGS, sizeof *things);
    CU_ASSERT_PTR_NOT_NULL_FATAL(things);
    for (int i = 0; i < THINGS; i++) {
        uint64_t drawn = moon_random_u64(&random);
        things[i].hash = i % 3 ? drawn : drawn % 50; /* some share a hash */
    }
    size_t in = 0;
    for (int step = 0; step < 60000; step++) {
        /* It fills, empties and fills again: twice through growing and shrinking. */
        bool filling = step / 15000 % 2 == 0;
        struct thing *thing = &things[moon_random_below(&random, THINGS)];
        if (thing->in == filling && !moon_random_chance(&random, 1, 8))
            continue;
        turn(&table, thing, &in);
        MOON_CHECK_INT(found(&table, thing), thing->in);
        MOON_CHECK_INT(table.count, in);
        CU_ASSERT(table.buckets <= 2 * in + 2 && table.buckets >= in);
        if (step % 5000 == 0)
            for (int i = 0; i < THINGS; i++)
                MOON_CHECK_INT(found(&table, &things[i]), things[i].in);
    }
    for (int i = 0; i < THINGS; i++)
        if (things[i].in)
            turn(&table, &things[i], &in);
    MOON_CHECK_INT(table.count, 0);
    MOON_CHECK_INT(table.buckets, 1);
    CU_ASSERT(failing.held_bytes <= 512 * sizeof(void *) + table.segment_capacity * sizeof(void *));
    moon_table_close(&table);
    moon_table_close(&table);
    MOON_CHECK_INT(failing.held_bytes, 0);
    free(things);
}

static void keys_of_one_pattern_spread(void) {
    struct moon_random random;
    moon_random_seed(&random, 3);
    struct moon_table table;
    moon_table_open(&table, moon_memory_heap(), &random);
    struct thing *things = calloc(THINGS, sizeof *things);
    CU_ASSERT_PTR_NOT_NULL_FATAL(things);
    for (int i = 0; i < THINGS; i++) {
        char text[32];
        snprintf(text, sizeof text, "key-%d", i);
        struct moon_bytes key = moon_bytes_of(text);
        MOON_CHECK_INT(moon_table_add(&table, &things[i].node, moon_table_hash(&table, &key, 1)), 0);
    }
    CU_ASSERT(longest_chain(&table) <= 16);
    moon_table_close(&table);
    free(things);
}

static int fill_table(struct moon_memory *memory, const void *context) {
    struct moon_random random;
    moon_random_seed(&random, *(const uint64_t *)context);
    struct moon_table table;
    moon_table_open(&table, memory, &random);
    struct thing *things = calloc(THINGS, sizeof *things);
    int status = 0;
    for (int i = 0; i < THINGS && status == 0; i++) {
        size_t count = table.count, buckets = table.buckets;
        status = moon_table_add(&table, &things[i].node, (uint64_t)i * 77);
        if (status != 0) {
            MOON_CHECK_INT(table.count, count);
            MOON_CHECK_INT(table.buckets, buckets);
            for (int j = 0; j < i; j++)
                CU_ASSERT_PTR_EQUAL(moon_table_find(&table, (uint64_t)j * 77), &things[j].node);
            if (i > 0) /* still usable */
                moon_table_remove(&table, &things[i - 1].node);
        }
    }
    moon_table_close(&table);
    free(things);
    return status;
}

static void refused_memory_leaves_the_table_as_it_was(void) {
    uint64_t seed = 4;
    moon_unit_refuse_memory(fill_table, &seed);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the hash is SipHash-1-3 of lengths and padded bytes", the_hash_is_siphash_1_3_of_lengths_and_padded_bytes},
        {"the secret and the borders of parts change the hash", the_secret_and_the_borders_of_parts_change_the_hash},
        {"random additions and removals agree with an array", random_additions_and_removals_agree_with_an_array},
        {"keys of one pattern spread", keys_of_one_pattern_spread},
        {"refused memory leaves the table as it was", refused_memory_leaves_the_table_as_it_was},
        {0},
    };
    return moon_unit_main("table", cases, argc, argv);
}
