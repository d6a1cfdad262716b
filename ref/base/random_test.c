/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the random streams. The fixed numbers hold for every compiler and machine: a run is repeated by its seed. */
#include "ref/base/random.h"
#include "ref/base/unit.h"

static void the_state_and_the_numbers_are_the_published_ones(void) {
    struct moon_random random;
    moon_random_seed(&random, 1234567); /* splitmix64's well-known outputs for this seed */
    CU_ASSERT_EQUAL(random.state[0], UINT64_C(6457827717110365317));
    CU_ASSERT_EQUAL(random.state[1], UINT64_C(3203168211198807973));
    CU_ASSERT_EQUAL(random.state[2], UINT64_C(9817491932198370423));
    CU_ASSERT_EQUAL(random.state[3], UINT64_C(4593380528125082431));
    random = (struct moon_random){{1, 2, 3, 4}}; /* xoshiro256**'s for this state */
    static const uint64_t expected[] = {11520u, 0, 1509978240u, UINT64_C(1215971899390074240)};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        CU_ASSERT_EQUAL(moon_random_u64(&random), expected[i]);
}

static void streams_are_apart_and_do_not_move_the_parent(void) {
    struct moon_random parent, same, other_parent;
    moon_random_seed(&parent, 1);
    moon_random_seed(&other_parent, 2);
    same = parent;
    struct moon_random a = moon_random_split(&parent, "a"), a_again = moon_random_split(&parent, "a"),
                       b = moon_random_split(&parent, "b"), c = moon_random_split(&other_parent, "a");
    CU_ASSERT(memcmp(&parent, &same, sizeof parent) == 0);
    CU_ASSERT(memcmp(&a, &a_again, sizeof a) == 0);
    uint64_t first = moon_random_u64(&a);
    CU_ASSERT(first != moon_random_u64(&b));
    CU_ASSERT(first != moon_random_u64(&c));
    CU_ASSERT(first != moon_random_u64(&parent));
    CU_ASSERT_EQUAL(first, UINT64_C(11335786358053089570));
}

static void below_stays_below_and_is_uniform(void) {
    struct moon_random random;
    moon_random_seed(&random, 7);
    unsigned counts[6] = {0};
    for (int i = 0; i < 60000; i++)
        counts[moon_random_below(&random, 6)]++;
    for (int i = 0; i < 6; i++)
        CU_ASSERT(counts[i] > 9600 && counts[i] < 10400); /* four standard deviations */
    MOON_CHECK_INT(moon_random_below(&random, 1), 0);
    unsigned upper = 0;
    for (int i = 0; i < 3000; i++) /* with plain modulo the upper half would come a third of the time */
        upper += moon_random_below(&random, UINT64_C(0xC000000000000000)) >= UINT64_C(0x6000000000000000);
    CU_ASSERT(upper > 1390 && upper < 1610);
}

static void between_includes_both_ends(void) {
    struct moon_random random;
    moon_random_seed(&random, 8);
    bool low = false, high = false;
    for (int i = 0; i < 1000; i++) {
        int64_t drawn = moon_random_between(&random, -2, 2);
        CU_ASSERT(drawn >= -2 && drawn <= 2);
        low = low || drawn == -2;
        high = high || drawn == 2;
    }
    CU_ASSERT(low && high);
    MOON_CHECK_INT(moon_random_between(&random, INT64_MIN, INT64_MIN), INT64_MIN);
    MOON_CHECK_INT(moon_random_between(&random, INT64_MAX, INT64_MAX), INT64_MAX);
    bool negative = false, positive = false;
    for (int i = 0; i < 100; i++) {
        int64_t drawn = moon_random_between(&random, INT64_MIN, INT64_MAX);
        negative = negative || drawn < 0;
        positive = positive || drawn > 0;
    }
    CU_ASSERT(negative && positive);
}

static void chance_is_a_fraction(void) {
    struct moon_random random;
    moon_random_seed(&random, 9);
    unsigned hits = 0;
    for (int i = 0; i < 4000; i++) {
        hits += moon_random_chance(&random, 1, 4);
        CU_ASSERT(!moon_random_chance(&random, 0, 3));
        CU_ASSERT(moon_random_chance(&random, 3, 3));
    }
    CU_ASSERT(hits > 880 && hits < 1120);
}

static void fill_takes_each_byte_of_a_word_in_little_endian_order(void) {
    struct moon_random random, same;
    moon_random_seed(&random, 10);
    same = random;
    uint8_t bytes[11] = {0};
    moon_random_fill(&random, bytes, 10);
    uint64_t first = moon_random_u64(&same), second = moon_random_u64(&same);
    for (int i = 0; i < 8; i++)
        MOON_CHECK_INT(bytes[i], first >> (8 * i) & 0xFF);
    MOON_CHECK_INT(bytes[8], second & 0xFF);
    MOON_CHECK_INT(bytes[9], second >> 8 & 0xFF);
    MOON_CHECK_INT(bytes[10], 0);
    moon_random_fill(&random, NULL, 0);
    CU_ASSERT(memcmp(&random, &same, sizeof random) == 0);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the state and the numbers are the published ones", the_state_and_the_numbers_are_the_published_ones},
        {"streams are apart and do not move the parent", streams_are_apart_and_do_not_move_the_parent},
        {"below stays below and is uniform", below_stays_below_and_is_uniform},
        {"between includes both ends", between_includes_both_ends},
        {"chance is a fraction", chance_is_a_fraction},
        {"fill takes each byte of a word in little-endian order",
         fill_takes_each_byte_of_a_word_in_little_endian_order},
        {0},
    };
    return moon_unit_main("random", cases, argc, argv);
}
