/* SPDX-License-Identifier: Apache-2.0 */
/* Values of store calls: from hex digits, from a part of a file, or made from a seed. */
#include "ref/daemon/store_value.h"

#include "ref/base/fill.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* Room for `length` bytes of the call. */
static int take_room(struct moon_arena *arena, const char *source, const struct moon_json *value, uint64_t length,
                     size_t *left, struct moon_piece *out, struct moon_error *error) {
    if (length > *left)
        return moon_json_fail(error, MOON_ERR_LIMIT, source, value, "%" PRIu64 " bytes, of %zu that a call may have",
                              length, MOON_VALUE_CALL_BYTES_MAX);
    *out = (struct moon_piece){moon_arena_alloc(arena, (size_t)length), (size_t)length};
    if (!out->data)
        return moon_json_fail(error, MOON_ERR_MEMORY, source, value, "no memory for %" PRIu64 " bytes", length);
    *left -= (size_t)length;
    return 0;
}

static int read_hex(struct moon_arena *arena, const char *source, const struct moon_json *value, size_t *left,
                    struct moon_piece *out, struct moon_error *error) {
    const char *digits = "";
    size_t length = 0;
    static const char *const names[] = {"hex", NULL};
    int status = moon_json_closed(source, value, names, error);
    if (status == 0)
        status = moon_json_get_string(source, value, "hex", true, &digits, &length, error);
    if (status != 0)
        return status;
    if (length / 2 > MOON_VALUE_HEX_BYTES_MAX)
        return moon_json_fail(error, MOON_ERR_LIMIT, source, value, "over %zu bytes: larger values travel as a file",
                              MOON_VALUE_HEX_BYTES_MAX);
    status = take_room(arena, source, value, length / 2, left, out, error);
    if (status != 0 || moon_hex_decode(digits, length, out->data) == 0)
        return status;
    *left += out->length;
    return moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "\"hex\" is not an even number of hex digits");
}

static int read_fill(struct moon_arena *arena, const char *source, const struct moon_json *value, size_t *left,
                     struct moon_piece *out, struct moon_error *error) {
    const struct moon_json *seed = moon_json_member(value, "fill");
    static const char *const names[] = {"fill", "bytes", NULL};
    int64_t length = 0;
    int status = moon_json_closed(source, value, names, error);
    if (status == 0)
        status = moon_json_get_int(source, value, "bytes", true, 0, INT64_MAX, &length, error);
    if (status != 0)
        return status;
    /* Beyond 2^53 integers are decimal text. */
    bool is_number = moon_json_is(seed, MOON_JSON_INTEGER) || moon_json_is(seed, MOON_JSON_STRING);
    char *end = NULL;
    errno = 0;
    uint64_t number = is_number ? strtoull(seed->bytes, &end, 10) : 0;
    if (!is_number || seed->length == 0 || strspn(seed->bytes, "0123456789") != seed->length || errno != 0)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, seed, "a seed is a number of 0 to 2^64 - 1");
    status = take_room(arena, source, value, (uint64_t)length, left, out, error);
    if (status == 0)
        moon_fill(number, 0, out->data, out->length);
    return status;
}

/* Fills the piece from the file's `offset` on. */
static bool read_all(int file, int64_t offset, const struct moon_piece *out) {
    size_t done = 0;
    while (done < out->length) {
        ssize_t count = pread(file, (char *)out->data + done, out->length - done, offset + (int64_t)done);
        if (count <= 0 && !(count < 0 && errno == EINTR))
            return false;
        done += count > 0 ? (size_t)count : 0;
    }
    return true;
}

static int read_file(struct moon_arena *arena, const char *source, const struct moon_json *value, const char *folder,
                     size_t *left, struct moon_piece *out, struct moon_error *error) {
    static const char *const names[] = {"file", "offset", "length", NULL};
    const char *name = "";
    int64_t offset = 0, length = -1;
    int status = moon_json_closed(source, value, names, error);
    if (status == 0)
        status = moon_json_get_string(source, value, "file", true, &name, NULL, error);
    if (status == 0)
        status = moon_json_get_int(source, value, "offset", false, 0, INT64_MAX, &offset, error);
    if (status == 0)
        status = moon_json_get_int(source, value, "length", false, 0, INT64_MAX, &length, error);
    if (status != 0)
        return status;
    const char *path = name[0] == '/' ? name : moon_arena_format(arena, "%s/%s", folder, name);
    int file = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK /* a pipe without a writer */) : -1;
    struct stat info = {.st_size = 0};
    if (file < 0 || fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
        status = moon_json_fail(error, MOON_ERR_IO, source, value, "cannot open \"%s\"", name);
    else if (offset > info.st_size || (length >= 0 && length > info.st_size - offset))
        status = moon_json_fail(error, MOON_ERR_RANGE, source, value, "\"%s\" has only %jd bytes", name,
                                (intmax_t)info.st_size);
    else
        status =
            take_room(arena, source, value, (uint64_t)(length >= 0 ? length : info.st_size - offset), left, out, error);
    if (status == 0 && !read_all(file, offset, out))
        status = moon_json_fail(error, MOON_ERR_IO, source, value, "cannot read \"%s\"", name);
    if (file >= 0)
        close(file);
    return status;
}

int moon_store_value_read(struct moon_arena *arena, const char *source, const struct moon_json *value,
                          const char *folder, size_t *left, struct moon_piece *out, struct moon_error *error) {
    bool is_object = moon_json_is(value, MOON_JSON_OBJECT);
    if (is_object && moon_json_member(value, "hex"))
        return read_hex(arena, source, value, left, out, error);
    if (is_object && moon_json_member(value, "fill"))
        return read_fill(arena, source, value, left, out, error);
    if (is_object && moon_json_member(value, "file"))
        return read_file(arena, source, value, folder, left, out, error);
    return moon_json_fail(error, MOON_ERR_SCHEMA, source, value, "a value has \"hex\", \"file\" or \"fill\"");
}

int moon_store_key_read(struct moon_arena *arena, const char *source, const struct moon_json *key,
                        struct moon_bytes *out, struct moon_error *error) {
    if (moon_json_is(key, MOON_JSON_STRING)) {
        *out = (struct moon_bytes){key->bytes, key->length};
        return 0;
    }
    if (!moon_json_is(key, MOON_JSON_OBJECT))
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, key, "a key is text or has \"hex\", not %s",
                              moon_json_type_name(key));
    size_t left = MOON_VALUE_CALL_BYTES_MAX;
    struct moon_piece piece;
    int status = read_hex(arena, source, key, &left, &piece, error);
    if (status == 0)
        *out = (struct moon_bytes){piece.data, piece.length};
    return status;
}

void moon_store_digest(const struct moon_piece *pieces, size_t count, size_t length, char out[17]) {
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    for (size_t i = 0; i < count && length > 0; i++) {
        size_t now = pieces[i].length < length ? pieces[i].length : length;
        XXH3_64bits_update(&state, pieces[i].data, now);
        length -= now;
    }
    snprintf(out, 17, "%016" PRIx64, (uint64_t)XXH3_64bits_digest(&state));
}
