/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a program speaks the adapter protocol, in good order and when it is asked wrong things. */
#ifndef MOON_CONFORMANCE_ADAPTER_CHECK_H
#define MOON_CONFORMANCE_ADAPTER_CHECK_H

#include "conformance/target.h"
#include "reports/result.h"

/* Adds one judged case for each thing looked at: adapter.start.*, adapter.smoke.SUITE, adapter.bad.*, adapter.stop.*.
 * What the adapter does wrong is part of the result. Returns 0 or MOON_ERR_MEMORY. */
int moon_adapter_check(const char *spec, const struct moon_target_setting *setting, struct moon_result *result,
                       struct moon_error *error);

#endif
