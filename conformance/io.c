/* SPDX-License-Identifier: Apache-2.0 */
/* Files and standard streams: whole inputs with a limit, outputs that are complete or not there at all. */
#include "conformance/io.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { READ_BYTES = 64 * 1024, PATH_BYTES = 4096 };

const char *moon_io_source(const char *path) {
    return strcmp(path, "-") == 0 ? "stdin" : path;
}

static int fail_errno(struct moon_error *error, const char *path, const char *what) {
    return moon_fail(error, MOON_ERR_IO, moon_io_source(path), "%s: %s", what, strerror(errno));
}

static int fail_limit(struct moon_error *error, const char *source, const char *what, size_t limit_bytes) {
    return moon_fail(error, MOON_ERR_LIMIT, source, "%s more than the limit of %zu bytes", what, limit_bytes);
}

static int fail_memory(struct moon_error *error, const char *source) {
    return moon_fail(error, MOON_ERR_MEMORY, source, "out of memory");
}

static int read_all(int fd, const char *path, size_t limit_bytes, struct moon_text *out, struct moon_error *error) {
    char buffer[READ_BYTES];
    for (;;) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_errno(error, path, "cannot read");
        if (got == 0)
            return 0;
        if ((size_t)got > limit_bytes - out->length)
            return fail_limit(error, moon_io_source(path), "holds", limit_bytes);
        moon_text_bytes(out, buffer, (size_t)got);
        if (out->failed)
            return fail_memory(error, moon_io_source(path));
    }
}

static int unpack_zstd(const struct moon_text *packed, const char *source, size_t limit_bytes, struct moon_text *out,
                       struct moon_error *error) {
    int status = 0;
    char buffer[READ_BYTES];
    ZSTD_DStream *stream = ZSTD_createDStream();
    if (!stream)
        return fail_memory(error, source);
    ZSTD_inBuffer in = {packed->data, packed->length, 0};
    size_t wanted = 1;
    bool full = false; /* the last call filled its buffer: more may be waiting although the input is used up */
    while (status == 0 && (in.pos < in.size || (full && wanted != 0))) {
        ZSTD_outBuffer piece = {buffer, sizeof buffer, 0};
        wanted = ZSTD_decompressStream(stream, &piece, &in);
        full = piece.pos == piece.size;
        if (ZSTD_isError(wanted))
            status = moon_fail(error, MOON_ERR_SYNTAX, source, "damaged zstd data: %s", ZSTD_getErrorName(wanted));
        else if (piece.pos > limit_bytes - out->length)
            status = fail_limit(error, source, "unpacks to", limit_bytes);
        else
            moon_text_bytes(out, buffer, piece.pos);
    }
    if (status == 0 && wanted != 0)
        status = moon_fail(error, MOON_ERR_SYNTAX, source, "zstd data ends in the middle");
    ZSTD_freeDStream(stream);
    return status;
}

static int unpack_gzip(const struct moon_text *packed, const char *source, size_t limit_bytes, struct moon_text *out,
                       struct moon_error *error) {
    int status = 0;
    unsigned char buffer[READ_BYTES];
    z_stream stream = {0};
    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
        return fail_memory(error, source);
    stream.next_in = (unsigned char *)packed->data;
    stream.avail_in = (uInt)packed->length;
    int state = Z_OK;
    while (status == 0 && (state == Z_OK || stream.avail_in > 0)) {
        if (state == Z_STREAM_END)
            inflateReset(&stream); /* one member after another is one file */
        stream.next_out = buffer;
        stream.avail_out = sizeof buffer;
        state = inflate(&stream, Z_NO_FLUSH);
        size_t got = sizeof buffer - stream.avail_out;
        if (state == Z_BUF_ERROR)
            status = moon_fail(error, MOON_ERR_SYNTAX, source, "gzip data ends in the middle");
        else if (state != Z_OK && state != Z_STREAM_END)
            status = moon_fail(error, MOON_ERR_SYNTAX, source, "damaged gzip data: %s",
                               stream.msg ? stream.msg : "not understood");
        else if (got > limit_bytes - out->length)
            status = fail_limit(error, source, "unpacks to", limit_bytes);
        else
            moon_text_bytes(out, buffer, got);
    }
    inflateEnd(&stream);
    return status;
}

static int unpack(const char *source, size_t limit_bytes, struct moon_text *content, struct moon_error *error) {
    static const char zstd_magic[] = "\x28\xb5\x2f\xfd", gzip_magic[] = "\x1f\x8b";
    bool zstd = content->length >= 4 && memcmp(content->data, zstd_magic, 4) == 0;
    bool gzip = content->length >= 2 && memcmp(content->data, gzip_magic, 2) == 0;
    if (!zstd && !gzip)
        return 0;
    struct moon_text plain;
    moon_text_open(&plain, content->memory);
    int status = zstd ? unpack_zstd(content, source, limit_bytes, &plain, error)
                      : unpack_gzip(content, source, limit_bytes, &plain, error);
    if (status == 0 && plain.failed)
        status = fail_memory(error, source);
    moon_text_close(content);
    *content = plain;
    return status;
}

int moon_io_read(const char *path, size_t limit_bytes, struct moon_text *out, struct moon_error *error) {
    static_assert(MOON_JSON_INPUT_BYTES_MAX <= UINT32_MAX, "zlib counts input in 32 bits");
    assert(limit_bytes <= MOON_JSON_INPUT_BYTES_MAX);
    moon_text_clear(out);
    bool standard = strcmp(path, "-") == 0;
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(error, path, "cannot open");
    struct stat facts;
    int status = 0;
    if (fstat(fd, &facts) == 0 && S_ISDIR(facts.st_mode))
        status = moon_fail(error, MOON_ERR_IO, moon_io_source(path), "is a directory, not a file");
    if (status == 0)
        status = read_all(fd, path, limit_bytes, out, error);
    if (status == 0)
        status = unpack(moon_io_source(path), limit_bytes, out, error);
    if (!standard)
        close(fd);
    return status;
}

int moon_io_read_json(struct moon_arena *arena, const char *path, enum moon_json_rules rules, struct moon_json **out,
                      struct moon_error *error) {
    struct moon_text content;
    moon_text_open(&content, arena->memory);
    int status = moon_io_read(path, MOON_JSON_INPUT_BYTES_MAX, &content, error);
    if (status == 0)
        status =
            moon_json_read(arena, moon_io_source(path), moon_text_value(&content), content.length, rules, out, error);
    moon_text_close(&content);
    return status;
}

static int write_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t put = write(fd, bytes, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return -1;
        bytes += put;
        length -= (size_t)put;
    }
    return 0;
}

int moon_io_print(const void *bytes, size_t length, struct moon_error *error) {
    if (write_all(STDOUT_FILENO, bytes, length) != 0)
        return moon_fail(error, MOON_ERR_IO, "stdout", "cannot write: %s", strerror(errno));
    return 0;
}

/* Devices and pipes have no final name that could hold half a file. */
static int write_in_place(const char *path, const void *bytes, size_t length, struct moon_error *error) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno(error, path, "cannot open for writing");
    int status = write_all(fd, bytes, length) == 0 ? 0 : fail_errno(error, path, "cannot write");
    if (close(fd) != 0 && status == 0)
        status = fail_errno(error, path, "cannot write");
    return status;
}

int moon_io_write(const char *path, const void *bytes, size_t length, struct moon_error *error) {
    struct stat facts;
    bool exists = stat(path, &facts) == 0;
    if (exists && S_ISDIR(facts.st_mode))
        return moon_fail(error, MOON_ERR_IO, path, "is a directory, not a file");
    if (exists && !S_ISREG(facts.st_mode))
        return write_in_place(path, bytes, length, error);
    char target[PATH_BYTES], temporary[PATH_BYTES + 16];
    if (!exists || !realpath(path, target)) /* a link keeps pointing where it did */
        if (snprintf(target, sizeof target, "%s", path) >= (int)sizeof target)
            return moon_fail(error, MOON_ERR_IO, path, "the path is too long");
    snprintf(temporary, sizeof temporary, "%s.tmp-XXXXXX", target);
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return fail_errno(error, path, "cannot write in this folder");
    mode_t mask = umask(0);
    umask(mask);
    int status = 0;
    if (write_all(fd, bytes, length) != 0 || fchmod(fd, exists ? facts.st_mode & 0777 : 0666 & ~mask) != 0 ||
        fsync(fd) != 0)
        status = fail_errno(error, path, "cannot write");
    if (close(fd) != 0 && status == 0)
        status = fail_errno(error, path, "cannot write");
    if (status == 0 && rename(temporary, target) != 0)
        status = fail_errno(error, path, "cannot put the new file in place");
    if (status != 0)
        unlink(temporary);
    return status;
}

bool moon_io_is_folder(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

bool moon_io_is_program(const char *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

int moon_io_make_folder(const char *path, struct moon_error *error) {
    char step[PATH_BYTES];
    size_t length = strlen(path);
    if (length == 0 || length >= sizeof step)
        return moon_fail(error, MOON_ERR_IO, path, "this is no usable folder name");
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        memcpy(step, path, end);
        step[end] = '\0';
        if (mkdir(step, 0777) != 0 && !moon_io_is_folder(step)) {
            if (errno == EEXIST)
                errno = ENOTDIR;
            return fail_errno(error, step, "cannot make the folder");
        }
    }
    return 0;
}

static int by_path(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Collects up to MOON_IO_FILES_MAX paths into `list`, which has room for them. */
static int walk(struct moon_arena *arena, FTS *tree, const char **list, size_t *count, const char *folder,
                struct moon_error *error) {
    for (FTSENT *entry = fts_read(tree); entry; entry = fts_read(tree)) {
        if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS) {
            errno = entry->fts_errno;
            return fail_errno(error, entry->fts_path, "cannot read");
        }
        if (entry->fts_level > MOON_IO_DEPTH_MAX)
            return moon_fail(error, MOON_ERR_LIMIT, folder, "folders are nested over %d levels", MOON_IO_DEPTH_MAX);
        if (entry->fts_info != FTS_F)
            continue;
        if (*count == MOON_IO_FILES_MAX)
            return moon_fail(error, MOON_ERR_LIMIT, folder, "holds over %d files", MOON_IO_FILES_MAX);
        list[*count] = moon_arena_copy(arena, entry->fts_path, entry->fts_pathlen);
        if (!list[*count])
            return fail_memory(error, folder);
        (*count)++;
    }
    return 0;
}

int moon_io_list(struct moon_arena *arena, const char *folder, const char *const **paths, size_t *count,
                 struct moon_error *error) {
    *count = 0;
    char *root = moon_arena_copy(arena, folder, strlen(folder));
    const char **list = moon_arena_array(arena, MOON_IO_FILES_MAX, sizeof *list);
    if (!root || !list)
        return fail_memory(error, folder);
    for (size_t length = strlen(root); length > 1 && root[length - 1] == '/'; length--)
        root[length - 1] = '\0';
    char *roots[] = {root, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    if (!tree)
        return fail_errno(error, folder, "cannot read");
    int status = walk(arena, tree, list, count, folder, error);
    fts_close(tree);
    qsort(list, *count, sizeof *list, by_path);
    *paths = list;
    return status;
}

const char *moon_io_program_folder(struct moon_arena *arena) {
    char path[PATH_BYTES];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return "";
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    return slash ? moon_arena_copy(arena, path, (size_t)(slash - path)) : "";
}
