/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the fast writer: it must write what the general writer writes, or decline. */
#include "ref/hash/template.h"

#include "ref/base/random.h"
#include "ref/base/text.h"
#include "ref/base/unit.h"

static void collect(void *context, const void *bytes, size_t length) {
    moon_text_bytes(context, bytes, length);
}

static struct moon_text general;

static void write_general(enum moon_serialisation serialisation, const uint8_t *parent, size_t parent_bytes,
                          const int64_t *tokens, size_t count) {
    struct moon_preimage preimage;
    moon_text_clear(&general);
    moon_preimage_open(&preimage, serialisation, moon_memory_heap());
    moon_preimage_begin(&preimage, (struct moon_sink){collect, &general}, NULL);
    moon_preimage_tuple_begin(&preimage, 3);
    moon_preimage_bytes(&preimage, &(struct moon_string){.bytes = (const char *)parent, .length = parent_bytes});
    moon_preimage_tuple_begin(&preimage, count);
    for (size_t i = 0; i < count; i++)
        moon_preimage_int(&preimage, tokens[i]);
    moon_preimage_tuple_end(&preimage, count);
    moon_preimage_none(&preimage);
    moon_preimage_tuple_end(&preimage, 3);
    MOON_CHECK_INT(moon_preimage_finish(&preimage), 0);
    moon_preimage_close(&preimage);
}

static void check_equal(const uint8_t *parent, size_t parent_bytes, const int64_t *tokens, size_t count) {
    uint8_t fast[MOON_TEMPLATE_BYTES];
    const struct moon_cpu cpus[] = {{.sha = false}, moon_cpu_detect()};
    for (int i = 0; i < 4; i++) {
        enum moon_serialisation serialisation = i % 2 ? MOON_CBOR : MOON_PICKLE;
        size_t length = moon_template_write(serialisation, parent_bytes, tokens, count, &cpus[i / 2], fast);
        moon_template_parent(serialisation, parent, parent_bytes, fast);
        write_general(serialisation, parent, parent_bytes, tokens, count);
        MOON_CHECK_INT(length, general.length);
        CU_ASSERT(length == general.length && memcmp(fast, general.data, length) == 0);
    }
}

static void equal_to_general(void) {
    static const int64_t edges[] = {0, 1, 23, 24, 255, 256, 65535, 65536, 16777215, 16777216, INT32_MAX};
    static int64_t tokens[MOON_TEMPLATE_TOKENS_MAX];
    uint8_t parent[32];
    struct moon_random random;
    moon_random_seed(&random, 4);
    moon_text_open(&general, moon_memory_heap());
    for (size_t count = 1; count <= MOON_TEMPLATE_TOKENS_MAX; count += count < 300 ? 1 : 181) {
        moon_random_fill(&random, parent, sizeof parent);
        for (size_t i = 0; i < count; i++)
            tokens[i] = moon_random_chance(&random, 1, 2)
                            ? edges[moon_random_below(&random, sizeof edges / sizeof *edges)]
                            : moon_random_between(&random, 0, INT32_MAX);
        check_equal(parent, count % 2 ? 16 : 32, tokens, count);
    }
    for (size_t i = 0; i < MOON_TEMPLATE_TOKENS_MAX; i++)
        tokens[i] = INT32_MAX;
    check_equal(parent, 32, tokens, MOON_TEMPLATE_TOKENS_MAX);
    moon_text_close(&general);
}

static void declines(void) {
    static const int64_t odd[] = {-1, INT64_C(2147483648), INT64_MAX, INT64_MIN};
    uint8_t fast[MOON_TEMPLATE_BYTES];
    const struct moon_cpu cpu = moon_cpu_detect();
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        int64_t tokens[4] = {1, 2, odd[i], 3};
        MOON_CHECK_INT(moon_template_write(MOON_PICKLE, 32, tokens, 4, &cpu, fast), 0);
        MOON_CHECK_INT(moon_template_write(MOON_CBOR, 32, tokens, 4, &cpu, fast), 0);
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the fast writer writes what the general one writes", equal_to_general},
        {"tokens beyond 31 bits and negative ones are declined", declines},
        {NULL, NULL}};
    return moon_unit_main("template", cases, argc, argv);
}
