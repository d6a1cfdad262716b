/* SPDX-License-Identifier: Apache-2.0 */
/* The harness's side of the adapter protocol: one program under test, its messages checked, its deaths survived. */
#ifndef MOON_CONFORMANCE_TARGET_PROCESS_H
#define MOON_CONFORMANCE_TARGET_PROCESS_H

#include "conformance/process.h"
#include "conformance/schema.h"
#include "conformance/target.h"

/* State of one adapter. Used by target.c alone. */
struct moon_adapter {
    const char *command;
    struct moon_target_setting setting; /* defaults filled in */
    struct moon_arena arena;            /* what it said about itself, schemas */
    struct moon_schema protocol;
    struct moon_schema *suite_schemas; /* in the order of moon_suites() */
    struct moon_process process;
    bool running;
    unsigned deaths; /* in a row */
    char folder[64]; /* for large values; "" until the first start */
    const struct moon_json *about;
};

/* Starts the adapter and asks who it is. Errors as moon_target_open. */
int moon_adapter_open(struct moon_adapter *adapter, const char *command, const struct moon_target_setting *setting,
                      struct moon_error *error);
void moon_adapter_close(struct moon_adapter *adapter);
/* As the functions of moon_target of the same names. */
int moon_adapter_ask(struct moon_adapter *adapter, struct moon_arena *arena, struct moon_question questions[],
                     size_t count, struct moon_error *error);
int moon_adapter_stop(struct moon_adapter *adapter, struct moon_error *error);
const char *moon_adapter_raw(struct moon_adapter *adapter, struct moon_arena *arena, const char *text, int64_t seq,
                             const char **reason);

#endif
