/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the key reader: any bytes; whatever it reads builds the same key again, for each release that it names. */
#include "ref/key/explain.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Each reading is one that its releases write. */
static void check_reading(const struct moon_key_reading *reading, struct moon_key_text key, struct moon_text *text) {
    for (const struct moon_profile *profile = reading->oldest; profile <= reading->newest; profile++) {
        moon_text_clear(text);
        moon_key_build(profile, &reading->key, reading->hash, text);
        assert(!text->failed && text->length == key.length && memcmp(text->data, key.bytes, key.length) == 0);
    }
    assert(reading->digests_of_16 > 0 || reading->digests_of_32 > 0);
    assert(!reading->uncut == !memchr(reading->key.model_name.bytes, '/', reading->key.model_name.length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1)
        return 0;
    size_t count;
    const struct moon_profile *all = moon_profiles(&count);
    const struct moon_profile *profile = data[0] % (count + 1) == count ? NULL : &all[data[0] % (count + 1)];
    const struct moon_key_text key = {(const char *)data + 1, size - 1};
    struct moon_key_readings readings;
    struct moon_error error;
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    if (moon_key_parse(profile, key, &readings, &error) == 0) {
        assert(readings.count >= 1 && readings.count <= readings.total && readings.possible <= readings.total);
        for (size_t i = 0; i < readings.count; i++)
            check_reading(&readings.list[i], key, &text);
        moon_text_clear(&text);
        moon_key_explain_readings(&readings, &text);
    } else {
        assert(error.status == MOON_ERR_SYNTAX && error.message[0]);
    }
    moon_text_close(&text);
    return 0;
}
