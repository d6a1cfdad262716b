/* SPDX-License-Identifier: Apache-2.0 */
/* The control channel: lines of JSON over an inherited socket, with blocking waits at the steps. */
#include "ref/daemon/control.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char SOURCE[] = "control";

/* ---- lines */

/* Writes all of the text, whatever the descriptor's mode. A supervisor that is gone is noticed when it is read from. */
static void say(struct moon_control *control, const struct moon_text *text) {
    size_t done = 0;
    while (!text->failed && done < text->length) {
        ssize_t count = write(control->descriptor, text->data + done, text->length - done);
        if (count < 0 && errno == EAGAIN) {
            struct pollfd wait = {control->descriptor, POLLOUT, 0};
            poll(&wait, 1, 1000);
        } else if (count <= 0 && errno != EINTR) {
            control->lost = true;
            return;
        }
        done += count > 0 ? (size_t)count : 0;
    }
}

/* Reads what there is. False: nothing came in time, or never will. */
static bool read_some(struct moon_control *control, int wait_ms) {
    char bytes[4096];
    struct pollfd wait = {control->descriptor, POLLIN, 0};
    ssize_t count;
    if (control->input.length > MOON_CONTROL_LINE_BYTES_MAX || poll(&wait, 1, wait_ms) == 0)
        return false;
    do
        count = read(control->descriptor, bytes, sizeof bytes);
    while (count < 0 && errno == EINTR);
    if (count < 0 && errno == EAGAIN)
        return true;
    if (count <= 0) {
        control->lost = true;
        return false;
    }
    moon_text_bytes(&control->input, bytes, (size_t)count);
    return !control->input.failed;
}

/* Takes the first whole line of the input, if there is one; *taken tells. */
static int take_line(struct moon_control *control, bool *taken, int64_t *go, struct moon_error *error) {
    const char *end = control->input.length ? memchr(control->input.data, '\n', control->input.length) : NULL;
    *taken = end != NULL;
    *go = -1;
    if (!end)
        return 0;
    size_t length = (size_t)(end - control->input.data);
    int status = moon_control_take(control, control->input.data, length, go, error);
    memmove(control->input.data, end + 1, control->input.length - length - 1);
    control->input.length -= length + 1;
    return status;
}

/* ---- arming */

static int read_row(struct moon_arena *arena, const struct moon_json *value, struct moon_control_row *row,
                    struct moon_error *error) {
    static const char *const names[] = {"id", "point", "kind", "what", "key", "occurrence", NULL};
    const char *point = "", *kind = NULL, *what = NULL, *key = NULL;
    int64_t id = 0, occurrence = 1;
    int status = moon_json_closed(SOURCE, value, names, error);
    if (status == 0)
        status = moon_json_get_int(SOURCE, value, "id", true, 0, INT64_MAX, &id, error);
    if (status == 0)
        status = moon_json_get_int(SOURCE, value, "occurrence", false, 1, INT64_MAX, &occurrence, error);
    if (status == 0)
        status = moon_json_get_string(SOURCE, value, "point", true, &point, NULL, error);
    if (status == 0 && !moon_json_is(moon_json_member(value, "kind"), MOON_JSON_NULL))
        status = moon_json_get_string(SOURCE, value, "kind", false, &kind, NULL, error);
    if (status == 0 && !moon_json_is(moon_json_member(value, "what"), MOON_JSON_NULL))
        status = moon_json_get_string(SOURCE, value, "what", false, &what, NULL, error);
    if (status == 0 && !moon_json_is(moon_json_member(value, "key"), MOON_JSON_NULL))
        status = moon_json_get_string(SOURCE, value, "key", false, &key, NULL, error);
    if (status != 0)
        return status;
    *row = (struct moon_control_row){.id = (uint64_t)id, .occurrence = (uint64_t)occurrence, .kind = -1};
    row->before = strcmp(point, "before") == 0;
    if (!row->before && strcmp(point, "after") != 0)
        return moon_json_fail(error, MOON_ERR_SCHEMA, SOURCE, moon_json_member(value, "point"),
                              "a point is \"before\" or \"after\", not \"%.40s\"", point);
    if (kind && (row->kind = moon_record_kind_find(kind, strlen(kind))) < 0)
        return moon_json_fail(error, MOON_ERR_SCHEMA, SOURCE, moon_json_member(value, "kind"),
                              "\"%.40s\" is no kind of record", kind);
    row->what = what ? moon_arena_copy(arena, what, strlen(what)) : NULL;
    row->key = key ? moon_arena_copy(arena, key, strlen(key)) : NULL;
    return (what && !row->what) || (key && !row->key) ? moon_no_memory(error) : 0;
}

static int arm(struct moon_control *control, const struct moon_json *list, struct moon_error *error) {
    struct moon_arena arena;
    size_t count = 0;
    int status = 0;
    if (list->count > MOON_CONTROL_ROWS_MAX)
        return moon_json_fail(error, MOON_ERR_LIMIT, SOURCE, list, "more than %d rows", MOON_CONTROL_ROWS_MAX);
    moon_arena_open(&arena, control->memory);
    struct moon_control_row *rows = moon_arena_array(&arena, list->count, sizeof *rows);
    if (!rows)
        status = moon_no_memory(error);
    for (const struct moon_json *value = list->first; value && status == 0; value = value->next)
        status = read_row(&arena, value, &rows[count++], error);
    if (status != 0) {
        moon_arena_close(&arena);
        return status;
    }
    moon_arena_close(&control->arena);
    control->arena = arena;
    control->rows = rows;
    control->count = count;
    control->waiting = 0;
    return 0;
}

int moon_control_take(struct moon_control *control, const char *line, size_t length, int64_t *go,
                      struct moon_error *error) {
    static const char *const names[] = {"arm", "go", NULL};
    struct moon_arena arena;
    struct moon_json *message, *list = NULL;
    *go = -1;
    moon_arena_open(&arena, control->memory);
    int status = moon_json_read(&arena, SOURCE, line, length, MOON_JSON_STRICT, &message, error);
    if (status == 0)
        status = moon_json_closed(SOURCE, message, names, error);
    if (status == 0)
        status = moon_json_get(SOURCE, message, "arm", false, MOON_JSON_ARRAY, &list, error);
    if (status == 0)
        status = moon_json_get_int(SOURCE, message, "go", !list, 0, INT64_MAX, go, error);
    if (status == 0 && list)
        status = arm(control, list, error);
    moon_arena_close(&arena);
    return status;
}

/* ---- the channel */

int moon_control_open(struct moon_control *control, struct moon_memory *memory, int descriptor,
                      struct moon_error *error) {
    bool taken = false;
    int64_t go;
    *control = (struct moon_control){.memory = memory, .descriptor = descriptor};
    moon_arena_open(&control->arena, memory);
    moon_text_open(&control->input, memory);
    while (descriptor >= 0 && !taken) {
        int status = take_line(control, &taken, &go, error);
        if (status != 0)
            return status;
        if (!taken && !read_some(control, MOON_CONTROL_FIRST_WAIT_MS))
            return moon_fail(error, MOON_ERR_IO, SOURCE, "no first line from the supervisor");
    }
    return 0;
}

void moon_control_close(struct moon_control *control) {
    moon_arena_close(&control->arena);
    moon_text_close(&control->input);
    control->count = 0;
}

void moon_control_ready(struct moon_control *control, const char *address) {
    if (control->descriptor < 0)
        return;
    struct moon_text text;
    moon_text_open(&text, control->memory);
    moon_text_string(&text, "{\"ready\":{\"address\":");
    moon_json_quote(address, strlen(address), &text);
    moon_text_string(&text, "}}\n");
    say(control, &text);
    moon_text_close(&text);
}

int moon_control_read(struct moon_control *control, struct moon_error *error) {
    bool taken = true;
    int64_t go;
    if (!read_some(control, 0))
        return 0;
    while (taken) {
        int status = take_line(control, &taken, &go, error);
        if (status != 0)
            return status;
    }
    return 0;
}

/* ---- steps */

/* Says the step and stands still until its go. A supervisor that is gone will never give it: this process has no
 * reason to be any more, and no way to go on from here. */
static void step(struct moon_control *control, uint64_t id, const char *line, size_t length) {
    struct moon_text text;
    struct moon_error error = {.message = "the supervisor is gone"};
    bool taken = false;
    int64_t go = -1;
    moon_text_open(&text, control->memory);
    moon_text_format(&text, "{\"step\":{\"id\":%" PRIu64 ",\"record\":", id);
    moon_text_bytes(&text, line, length);
    moon_text_string(&text, "}}\n");
    say(control, &text);
    moon_text_close(&text);
    while (go != (int64_t)id) {
        int status = take_line(control, &taken, &go, &error);
        if (status != 0 || (!taken && !read_some(control, -1))) {
            fprintf(stderr, "mooncheck: %s: while stopped at step %" PRIu64 ": %s\n", SOURCE, id, error.message);
            _exit(2);
        }
    }
}

bool moon_control_key_matches(const char *pattern, struct moon_bytes key) {
    char text[1024], *copy = key.length < sizeof text ? text : malloc(key.length + 1);
    if (!copy)
        return false;
    if (key.length > 0)
        memcpy(copy, key.data, key.length);
    copy[key.length] = '\0';
    bool matches = strlen(copy) == key.length && fnmatch(pattern, copy, 0) == 0;
    if (copy != text)
        free(copy);
    return matches;
}

static bool row_matches(const struct moon_control_row *row, const struct moon_record *record) {
    if (row->kind >= 0 && row->kind != (int)record->kind)
        return false;
    if (row->what && strcmp(row->what, record->what ? record->what : "") != 0)
        return false;
    return !row->key || (record->has & MOON_RECORD_HAS_KEY && moon_control_key_matches(row->key, record->key));
}

void moon_control_see(struct moon_control *control, const struct moon_record *record, const char *line, size_t length) {
    /* A step may bring new rows: they are for later records. */
    const struct moon_control_row *rows = control->rows;
    for (size_t i = 0; i < control->count && rows == control->rows; i++) {
        struct moon_control_row *row = &control->rows[i];
        if (!row_matches(row, record) || ++row->seen != row->occurrence)
            continue;
        if (row->before) {
            step(control, row->id, line, length);
        } else {
            row->line = moon_arena_copy(&control->arena, line, length);
            control->waiting += row->line != NULL;
        }
    }
}

void moon_control_after(struct moon_control *control) {
    const struct moon_control_row *rows = control->rows;
    for (size_t i = 0; control->waiting > 0 && i < control->count && rows == control->rows; i++) {
        struct moon_control_row *row = &control->rows[i];
        const char *line = row->line;
        if (!line)
            continue;
        row->line = NULL;
        control->waiting--;
        step(control, row->id, line, strlen(line));
    }
}
