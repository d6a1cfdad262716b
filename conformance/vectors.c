/* SPDX-License-Identifier: Apache-2.0 */
/* Vector files: a closed form, read from files and folders, plain or packed, each case with its place. */
#include "conformance/vectors.h"

#include "conformance/io.h"
#include "conformance/schema.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

static int no_memory(struct moon_error *error, const char *source) {
    return moon_fail(error, MOON_ERR_MEMORY, source, "out of memory");
}

void moon_vectors_open(struct moon_vectors *vectors, struct moon_arena *arena) {
    *vectors = (struct moon_vectors){.arena = arena};
}

/* Adds the id to a failure inside a case, so that the message needs no counting of cases. */
static int in_case(const struct moon_json *one, int status, struct moon_error *error) {
    const struct moon_json *id = moon_json_member(one, "id");
    size_t used = strlen(error->message);
    if (status != 0 && moon_json_is(id, MOON_JSON_STRING))
        snprintf(error->message + used, sizeof error->message - used, " (case %.100s)", id->bytes);
    return status;
}

static const char *string_member(const struct moon_json *object, const char *name) {
    const struct moon_json *value = moon_json_member(object, name);
    return moon_json_is(value, MOON_JSON_STRING) ? value->bytes : "";
}

static int add_case(struct moon_vectors *vectors, const struct moon_suite *suite, const char *file,
                    const struct moon_json *one, struct moon_error *error) {
    struct moon_vector *vector = moon_arena_alloc(vectors->arena, sizeof *vector);
    const char *id = string_member(one, "id"), *dot = strrchr(id, '.');
    if (!vector || !dot)
        return no_memory(error, file);
    vector->id = id;
    vector->kind = moon_arena_copy(vectors->arena, id, (size_t)(dot - id));
    vector->comment = string_member(one, "comment");
    vector->suite = suite;
    struct moon_error why;
    vector->profile = moon_profile_find(string_member(one, "profile"), &why);
    if (!vector->profile)
        return moon_json_fail(error, MOON_ERR_UNSUPPORTED, file, moon_json_member(one, "profile"), "%s", why.message);
    vector->given = moon_json_member(one, "given");
    vector->expect = moon_json_member(one, "expect");
    vector->file = file;
    vector->place = one;
    if (!vector->kind)
        return no_memory(error, file);
    if (vectors->last)
        vectors->last->next = vector;
    else
        vectors->first = vector;
    vectors->last = vector;
    vectors->count++;
    return 0;
}

static int skip(struct moon_vectors *vectors, const char *file, const char *reason, struct moon_error *error) {
    struct moon_vector_skip *one = moon_arena_alloc(vectors->arena, sizeof *one);
    if (!one || !reason)
        return no_memory(error, file);
    one->file = file;
    one->reason = reason;
    if (vectors->last_skip)
        vectors->last_skip->next = one;
    else
        vectors->first_skip = one;
    vectors->last_skip = one;
    return 0;
}

static int add_cases(struct moon_vectors *vectors, const struct moon_suite *suite, const char *file,
                     const struct moon_json *document, struct moon_error *error) {
    struct moon_schema schema;
    int status = moon_schema_open(&schema, vectors->arena, suite->name, error);
    const struct moon_json *one = moon_json_member(document, "cases")->first;
    for (; one && status == 0; one = one->next) {
        status = moon_schema_check(&schema, "given", file, moon_json_member(one, "given"), error);
        if (status == 0)
            status = moon_schema_check(&schema, "expect", file, moon_json_member(one, "expect"), error);
        if (status == 0)
            status = add_case(vectors, suite, file, one, error);
        status = in_case(one, status, error);
    }
    moon_schema_close(&schema);
    return status;
}

/* Checks the outer form. The case that a fault lies in is found from the fault's path, for its id. */
static int check_form(struct moon_vectors *vectors, const char *file, const struct moon_json *document,
                      struct moon_error *error) {
    struct moon_schema schema;
    int status = moon_schema_open(&schema, vectors->arena, "vectors", error);
    if (status == 0)
        status = moon_schema_check(&schema, NULL, file, document, error);
    moon_schema_close(&schema);
    const char *index = status == MOON_ERR_SCHEMA ? strstr(error->where, "$.cases[") : NULL;
    if (index)
        in_case(moon_json_at(moon_json_member(document, "cases"), strtoul(index + strlen("$.cases["), NULL, 10)),
                status, error);
    return status;
}

static bool is_vectors(const struct moon_json *document) {
    static const char prefix[] = "mooncheck-vectors/";
    return strncmp(string_member(document, "schema"), prefix, sizeof prefix - 1) == 0;
}

static int load_document(struct moon_vectors *vectors, const char *file, bool named, const struct moon_json *document,
                         struct moon_error *error) {
    if (!is_vectors(document) && !named)
        return skip(vectors, file, "is no vector file", error);
    if (!is_vectors(document))
        return moon_fail(error, MOON_ERR_SCHEMA, file,
                         "is no vector file: member \"schema\" is not \"mooncheck-vectors/1\"");
    const char *name = string_member(document, "suite");
    const struct moon_suite *suite = moon_suite_find(name);
    if (!suite && name[0])
        return skip(vectors, file, moon_arena_format(vectors->arena, "suite %.40s is not part of this program", name),
                    error);
    int status = check_form(vectors, file, document, error);
    assert(suite || status != 0); /* a name that is missing or empty is refused by the form */
    return status == 0 ? add_cases(vectors, suite, file, document, error) : status;
}

static int load_file(struct moon_vectors *vectors, const char *path, bool named, struct moon_error *error) {
    struct moon_text content;
    struct moon_json *document = NULL;
    moon_text_open(&content, vectors->arena->memory);
    const char *file = moon_arena_copy(vectors->arena, path, strlen(path));
    int status = file ? moon_io_read(path, MOON_JSON_INPUT_BYTES_MAX, &content, error) : no_memory(error, path);
    if (status == 0)
        status = moon_json_read(vectors->arena, moon_io_source(file), moon_text_value(&content), content.length,
                                MOON_JSON_STRICT, &document, error);
    if (status == 0)
        status = load_document(vectors, file, named, document, error);
    if (status == 0) {
        uint64_t parts[2] = {vectors->digest, XXH3_64bits(moon_text_value(&content), content.length)};
        vectors->digest = XXH3_64bits(parts, sizeof parts);
    }
    moon_text_close(&content);
    return status;
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

int moon_vectors_load(struct moon_vectors *vectors, const char *path, struct moon_error *error) {
    if (!moon_io_is_folder(path))
        return load_file(vectors, path, true, error);
    const char *const *files = NULL;
    size_t count = 0;
    int status = moon_io_list(vectors->arena, path, &files, &count, error);
    for (size_t i = 0; i < count && status == 0; i++)
        if (ends_with(files[i], ".json") || ends_with(files[i], ".json.zst") || ends_with(files[i], ".json.gz"))
            status = load_file(vectors, files[i], false, error);
    return status;
}

static int by_id(const void *a, const void *b) {
    return strcmp((*(const struct moon_vector *const *)a)->id, (*(const struct moon_vector *const *)b)->id);
}

int moon_vectors_check_ids(const struct moon_vectors *vectors, struct moon_error *error) {
    const struct moon_vector **sorted = moon_arena_array(vectors->arena, vectors->count + 1, sizeof *sorted);
    if (!sorted)
        return no_memory(error, NULL);
    size_t count = 0;
    for (const struct moon_vector *one = vectors->first; one; one = one->next)
        sorted[count++] = one;
    qsort(sorted, count, sizeof *sorted, by_id);
    for (size_t i = 1; i < count; i++)
        if (strcmp(sorted[i]->id, sorted[i - 1]->id) == 0)
            return moon_json_fail(error, MOON_ERR_SCHEMA, sorted[i]->file, moon_json_member(sorted[i]->place, "id"),
                                  "the id %.100s is used twice, the other time in %s:%u", sorted[i]->id,
                                  sorted[i - 1]->file, (unsigned)sorted[i - 1]->place->line);
    return 0;
}
