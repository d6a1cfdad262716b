/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded messages of a Mooncake release, judged against the codecs of ref/wire in both directions. */
#ifndef MOON_CONFORMANCE_WIRE_FIXTURE_H
#define MOON_CONFORMANCE_WIRE_FIXTURE_H

#include "ref/base/json.h"

/* Judges a mooncheck-wire/1 document (fixtures/README.md): every function's id, hashes and type texts, and every
 * message decoded to its fields and encoded from them byte for byte, with and without type text. Counts into *passed
 * and *failed, and appends a line for each failure to `report`. Returns 0, or MOON_ERR_SCHEMA (another kind of
 * document, an unknown release) or MOON_ERR_MEMORY. */
int moon_wire_fixture_check(const char *source, const struct moon_json *document, size_t *passed, size_t *failed,
                            struct moon_text *report, struct moon_error *error);

#endif
