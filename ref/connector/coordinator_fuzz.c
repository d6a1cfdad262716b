/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: joint hit search over any groups and any store never promises what it cannot load. */
#include "ref/connector/coordinator_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct moon_cursor bytes;
    struct hit_scene scene;
    moon_cursor_open(&bytes, data, size);
    hit_scene_make(&scene, &bytes);
    hit_scene_check(&scene);
    return 0;
}
