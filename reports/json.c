/* SPDX-License-Identifier: Apache-2.0 */
/* Results as JSON, and back. */
#include "reports/result.h"

#include <string.h>

static void set_text(struct moon_arena *arena, struct moon_json *object, const char *name, const char *value) {
    if (value && value[0])
        moon_json_set(arena, object, name, moon_json_string(arena, value));
}

/* Always there, also when empty. */
static void set_always(struct moon_arena *arena, struct moon_json *object, const char *name, const char *value) {
    moon_json_set(arena, object, name, moon_json_string(arena, value ? value : ""));
}

static struct moon_json *case_to_json(struct moon_arena *arena, const struct moon_result_case *one) {
    struct moon_json *object = moon_json_object(arena);
    set_always(arena, object, "id", one->id);
    set_text(arena, object, "suite", one->suite);
    set_text(arena, object, "profile", one->profile);
    set_text(arena, object, "requirement", one->requirement);
    set_text(arena, object, "level", one->level);
    set_text(arena, object, "required", one->required);
    set_always(arena, object, "outcome", moon_outcome_name(one->outcome));
    moon_json_set(arena, object, "seconds", moon_json_real(arena, (double)one->duration_ns / 1e9));
    set_text(arena, object, "reason", one->reason);
    struct moon_json *deviation = NULL;
    for (size_t i = 0; i < one->deviation_count; i++) {
        if (i == 0)
            deviation = moon_json_set(arena, object, "deviation", moon_json_array(arena));
        moon_json_push(deviation, moon_json_string(arena, one->deviations[i]));
    }
    if (one->outcome == MOON_OUTCOME_PASS || one->outcome == MOON_OUTCOME_SKIP)
        return object;
    struct moon_json *failure = moon_json_set(arena, object, "failure", moon_json_object(arena));
    set_text(arena, failure, "done", one->done);
    set_text(arena, failure, "expected", one->expected);
    set_text(arena, failure, "seen", one->seen);
    set_text(arena, failure, "reproduce", one->reproduce);
    set_text(arena, failure, "resembles", one->resembles);
    return object;
}

static struct moon_json *head_to_json(struct moon_arena *arena, const struct moon_result *result) {
    struct moon_json *root = moon_json_object(arena), *harness = moon_json_object(arena),
                     *target = moon_json_object(arena), *counts = moon_json_object(arena);
    set_always(arena, root, "schema", "mooncheck-results/1");
    moon_json_set(arena, root, "harness", harness);
    set_always(arena, harness, "version", result->harness_version);
    set_always(arena, harness, "command", result->command);
    set_always(arena, harness, "host", result->host);
    moon_json_set(arena, root, "target", target);
    set_always(arena, target, "spec", result->target);
    set_text(arena, target, "name", result->target_name);
    set_text(arena, target, "version", result->target_version);
    set_text(arena, target, "homepage", result->target_homepage);
    set_text(arena, root, "mode", result->mode);
    set_text(arena, root, "seed", result->seed);
    set_always(arena, root, "started", result->started);
    moon_json_set(arena, root, "seconds", moon_json_real(arena, (double)result->duration_ns / 1e9));
    set_always(arena, root, "digest", result->digest);
    if (result->incomplete_why[0])
        set_always(arena, root, "incomplete", result->incomplete_why);
    moon_json_set(arena, root, "counts", counts);
    for (int i = 0; i < MOON_OUTCOME_COUNT; i++)
        moon_json_set(arena, counts, moon_outcome_name((enum moon_outcome)i), moon_json_uint(arena, result->counts[i]));
    return root;
}

void moon_report_json(const struct moon_result *result, struct moon_text *out) {
    struct moon_arena arena;
    moon_arena_open(&arena, out->memory);
    struct moon_json *root = head_to_json(&arena, result);
    struct moon_json *cases = moon_json_set(&arena, root, "cases", moon_json_array(&arena));
    for (const struct moon_result_case *one = result->first; one; one = one->next)
        moon_json_push(cases, case_to_json(&arena, one));
    if (moon_json_broken(root))
        out->failed = true;
    else
        moon_json_write(root, MOON_JSON_PRETTY, out);
    moon_text_char(out, '\n');
    moon_arena_close(&arena);
}

/* ---- reading */

/* Where reading stands; the first failure stays in *error. */
struct reader {
    const char *source;
    struct moon_error *error;
    int status;
};

static const char *get_text(struct reader *reader, const struct moon_json *object, const char *name, bool required) {
    const char *value = "";
    if (reader->status == 0)
        reader->status = moon_json_get_string(reader->source, object, name, required, &value, NULL, reader->error);
    return value;
}

static struct moon_json *get(struct reader *reader, const struct moon_json *object, const char *name, bool required,
                             enum moon_json_type type, const char *const names[]) {
    struct moon_json *value = NULL;
    if (reader->status == 0)
        reader->status = moon_json_get(reader->source, object, name, required, type, &value, reader->error);
    if (reader->status == 0 && value && names)
        reader->status = moon_json_closed(reader->source, value, names, reader->error);
    return value;
}

static uint64_t get_duration_ns(struct reader *reader, const struct moon_json *object, const char *name) {
    const struct moon_json *value = moon_json_member(object, name);
    if (reader->status != 0 || !value)
        return 0;
    bool number = value->type == MOON_JSON_REAL || value->type == MOON_JSON_INTEGER;
    if (number && value->real >= 0 && value->real < 1e9)
        return (uint64_t)(value->real * 1e9 + 0.5);
    reader->status = moon_json_fail(reader->error, MOON_ERR_RANGE, reader->source, value, "is no number of seconds");
    return 0;
}

static enum moon_outcome get_outcome(struct reader *reader, const struct moon_json *object) {
    const char *name = get_text(reader, object, "outcome", true);
    for (int i = 0; i < MOON_OUTCOME_COUNT && reader->status == 0; i++)
        if (strcmp(name, moon_outcome_name((enum moon_outcome)i)) == 0)
            return (enum moon_outcome)i;
    if (reader->status == 0)
        reader->status = moon_json_fail(reader->error, MOON_ERR_SCHEMA, reader->source,
                                        moon_json_member(object, "outcome"), "\"%.40s\" is no outcome", name);
    return MOON_OUTCOME_UNKNOWN;
}

static void get_deviations(struct reader *reader, const struct moon_json *object, struct moon_result_case *one,
                           struct moon_arena *arena) {
    const struct moon_json *list = get(reader, object, "deviation", false, MOON_JSON_ARRAY, NULL);
    const char **texts = list ? moon_arena_array(arena, list->count, sizeof *texts) : NULL;
    if (list && !texts)
        reader->status = moon_fail(reader->error, MOON_ERR_MEMORY, reader->source, "out of memory");
    const struct moon_json *text = texts ? list->first : NULL;
    for (; text && reader->status == 0; text = text->next) {
        if (text->type == MOON_JSON_STRING)
            texts[one->deviation_count++] = text->bytes;
        else
            reader->status = moon_json_fail(reader->error, MOON_ERR_SCHEMA, reader->source, text, "is no string");
    }
    one->deviations = texts;
}

static void read_case(struct reader *reader, const struct moon_json *object, struct moon_result *result) {
    static const char *const names[] = {"id",      "suite",   "profile", "requirement", "level",   "required",
                                        "outcome", "seconds", "reason",  "deviation",   "failure", NULL};
    static const char *const failure_names[] = {"done", "expected", "seen", "reproduce", "resembles", NULL};
    reader->status = moon_json_closed(reader->source, object, names, reader->error);
    struct moon_result_case *one = moon_result_add(result);
    if (!one) {
        reader->status = moon_fail(reader->error, MOON_ERR_MEMORY, reader->source, "out of memory");
        return;
    }
    one->id = get_text(reader, object, "id", true);
    one->suite = get_text(reader, object, "suite", false);
    one->profile = get_text(reader, object, "profile", false);
    one->requirement = get_text(reader, object, "requirement", false);
    one->level = get_text(reader, object, "level", false);
    one->required = get_text(reader, object, "required", false);
    one->outcome = get_outcome(reader, object);
    one->duration_ns = get_duration_ns(reader, object, "seconds");
    one->reason = get_text(reader, object, "reason", false);
    get_deviations(reader, object, one, result->arena);
    const struct moon_json *failure = get(reader, object, "failure", false, MOON_JSON_OBJECT, failure_names);
    if (failure) {
        one->done = get_text(reader, failure, "done", false);
        one->expected = get_text(reader, failure, "expected", false);
        one->seen = get_text(reader, failure, "seen", false);
        one->reproduce = get_text(reader, failure, "reproduce", false);
        one->resembles = get_text(reader, failure, "resembles", false);
    }
    moon_result_count(result, one);
}

static void read_head(struct reader *reader, const struct moon_json *document, struct moon_result *result) {
    static const char *const names[] = {"schema",  "harness", "target",     "mode",   "seed",  "started",
                                        "seconds", "digest",  "incomplete", "counts", "cases", NULL};
    static const char *const harness_names[] = {"version", "command", "host", NULL};
    static const char *const target_names[] = {"spec", "name", "version", "homepage", NULL};
    reader->status = moon_json_closed(reader->source, document, names, reader->error);
    if (reader->status == 0 && !moon_json_is_string(moon_json_member(document, "schema"), "mooncheck-results/1"))
        reader->status = moon_fail(reader->error, MOON_ERR_SCHEMA, reader->source,
                                   "is no result file: member \"schema\" is not \"mooncheck-results/1\"");
    const struct moon_json *harness = get(reader, document, "harness", true, MOON_JSON_OBJECT, harness_names);
    result->harness_version = get_text(reader, harness, "version", true);
    result->command = get_text(reader, harness, "command", true);
    result->host = get_text(reader, harness, "host", true);
    const struct moon_json *target = get(reader, document, "target", true, MOON_JSON_OBJECT, target_names);
    result->target = get_text(reader, target, "spec", true);
    result->target_name = get_text(reader, target, "name", false);
    result->target_version = get_text(reader, target, "version", false);
    result->target_homepage = get_text(reader, target, "homepage", false);
    result->mode = get_text(reader, document, "mode", false);
    result->seed = get_text(reader, document, "seed", false);
    result->started = get_text(reader, document, "started", true);
    result->duration_ns = get_duration_ns(reader, document, "seconds");
    result->digest = get_text(reader, document, "digest", true);
    result->incomplete_why = get_text(reader, document, "incomplete", false);
    result->incomplete = result->incomplete_why[0] != '\0';
}

/* The counts that the file states must be those of its cases, or a part of it was lost. */
static void check_counts(struct reader *reader, const struct moon_json *document, const struct moon_result *result) {
    const char *names[MOON_OUTCOME_COUNT + 1] = {NULL};
    for (int i = 0; i < MOON_OUTCOME_COUNT; i++)
        names[i] = moon_outcome_name((enum moon_outcome)i);
    const struct moon_json *counts = get(reader, document, "counts", true, MOON_JSON_OBJECT, names);
    for (int i = 0; i < MOON_OUTCOME_COUNT && reader->status == 0; i++) {
        int64_t count = 0;
        reader->status = moon_json_get_int(reader->source, counts, names[i], true, 0, INT64_MAX, &count, reader->error);
        if (reader->status == 0 && (uint64_t)count != result->counts[i])
            reader->status =
                moon_json_fail(reader->error, MOON_ERR_SCHEMA, reader->source, moon_json_member(counts, names[i]),
                               "says %lld, but the file holds %zu such cases", (long long)count, result->counts[i]);
    }
}

int moon_result_read(struct moon_arena *arena, const char *source, const struct moon_json *document,
                     struct moon_result *result, struct moon_error *error) {
    struct reader reader = {source, error, 0};
    *result = (struct moon_result){.arena = arena};
    read_head(&reader, document, result);
    const struct moon_json *cases = get(&reader, document, "cases", true, MOON_JSON_ARRAY, NULL);
    const struct moon_json *one = cases ? cases->first : NULL;
    for (; one && reader.status == 0; one = one->next)
        read_case(&reader, one, result);
    if (reader.status == 0)
        check_counts(&reader, document, result);
    return reader.status;
}
