/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the supervisor's lines: any bytes arm rows that can be matched, or give an error. */
#include "ref/daemon/control.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_control control;
    struct moon_error error;
    int64_t go;
    if (moon_control_open(&control, moon_memory_heap(), -1, &error) != 0)
        return 0;
    if (moon_control_take(&control, (const char *)data, size, &go, &error) == 0)
        for (size_t i = 0; i < control.count; i++)
            if (control.rows[i].key)
                (void)moon_control_key_matches(control.rows[i].key, moon_bytes_of("model@tp_rank:0"));
    moon_control_close(&control);
    return 0;
}
