/* SPDX-License-Identifier: Apache-2.0 */
/* repr() of JSON values, as Python writes them into error messages. */
#ifndef MOON_CONFIG_PYTHON_REPR_H
#define MOON_CONFIG_PYTHON_REPR_H

#include "ref/base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Appends repr() of what json.loads makes of `value` (CONFIG-018). Not recursive. Fails only through out->failed. */
void moon_python_repr(const struct moon_json *value, struct moon_text *out);

/* Name of the Python type of `value`: "NoneType", "bool", "int", "float", "str", "list", "dict". Static. */
const char *moon_python_type(const struct moon_json *value);

/* bool(value): what Python calls true (CONFIG-017). A missing value (NULL) is false. */
bool moon_python_truth(const struct moon_json *value);

#ifdef __cplusplus
}
#endif
#endif
