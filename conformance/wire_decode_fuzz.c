/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of mooncheck wire decode: any stream gives words or an error. */
#include "conformance/wire_decode.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { KINDS = MOON_WIRE_DATA_ANSWER + 1 };

/* The first byte says what the stream is taken for, and which release it is of; one choice of five is to try all. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_text input, words;
    struct moon_error error = {0};
    size_t faults = 0;
    if (size == 0)
        return 0;
    moon_text_open(&input, moon_memory_heap());
    moon_text_open(&words, moon_memory_heap());
    moon_text_bytes(&input, data + 1, size - 1);
    int status = moon_wire_unhex(&input, &error);
    if (!status)
        status = moon_wire_decode_stream(moon_text_value(&input), input.length,
                                         (enum moon_wire_kind_of_frame)(data[0] % KINDS),
                                         moon_wire_releases[data[0] / KINDS % 5], &words, &faults, &error);
    if (status ? error.message[0] == '\0' : words.length == 0)
        abort();
    moon_text_close(&words);
    moon_text_close(&input);
    return 0;
}
