/* SPDX-License-Identifier: Apache-2.0 */
/* Checks JSON against the schemas in conformance/schema, which are compiled into the program. */
#ifndef MOON_CONFORMANCE_SCHEMA_H
#define MOON_CONFORMANCE_SCHEMA_H

#include "ref/base/json.h"

#include <regex.h>

/* The schema files, made into C by conformance/schema/embed.awk; a row with name NULL ends. */
struct moon_schema_text {
    const char *name; /* "hash" for hash.schema.json */
    const char *text;
};
extern const struct moon_schema_text moon_schema_texts[];

enum { MOON_SCHEMA_PATTERNS_MAX = 16 };

/* One schema, ready for checks. The part of JSON Schema that is understood: type, properties, required,
 * additionalProperties, items, enum, const, minLength, pattern, $ref to a definition of the same file. */
struct moon_schema {
    const struct moon_json *root;
    const char *patterns[MOON_SCHEMA_PATTERNS_MAX];
    regex_t compiled[MOON_SCHEMA_PATTERNS_MAX];
    size_t pattern_count;
};

/* Opens a schema by name; its tree lives in `arena`. Returns 0, MOON_ERR_UNSUPPORTED (no schema of that name) or
 * MOON_ERR_MEMORY. A schema that is itself broken is a bug of the harness: asserted. */
int moon_schema_open(struct moon_schema *schema, struct moon_arena *arena, const char *name, struct moon_error *error);
void moon_schema_close(struct moon_schema *schema);

/* Checks `value` against a definition of the schema ("given"), or against the whole schema when `definition` is NULL.
 * Returns 0, or MOON_ERR_SCHEMA with the place of the first fault, in document order, and a suggestion for a misspelt
 * member. `source` names the document. */
int moon_schema_check(struct moon_schema *schema, const char *definition, const char *source,
                      const struct moon_json *value, struct moon_error *error);

#endif
