/* SPDX-License-Identifier: Apache-2.0 */
/* Reading fields from the end of a key: the one direction in which a key is unambiguous. Shared by the readers of
 * ref/key. */
#ifndef MOON_KEY_FIELD_H
#define MOON_KEY_FIELD_H

#include "ref/key/pool_key.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Cuts `label` off the end of *text. Returns false, and leaves it, if the text does not end so. */
bool moon_key_take_label(struct moon_key_text *text, const char *label);
/* Cuts `label` and the decimal number after it off the end of *text. Returns false, and leaves both, if the text does
 * not end so, or the number is not as Python writes it (no leading zero) or is beyond int64_t. */
bool moon_key_take_number(struct moon_key_text *text, const char *label, int64_t *value);

#ifdef __cplusplus
}
#endif
#endif
