/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of files and streams: limits, packed content, output that is complete or not there. */
#include "conformance/io.h"

#include "ref/base/unit.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const void *bytes, size_t length) {
    struct moon_error error = {0};
    MOON_CHECK_INT(moon_io_write(in_folder(name), bytes, length, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
}

/* Reads a file of the folder; the content is compared with `expected` when that is not NULL. */
static int get(const char *name, size_t limit_bytes, const char *expected, struct moon_error *error) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    int status = moon_io_read(in_folder(name), limit_bytes, &text, error);
    if (expected)
        MOON_CHECK_TEXT(moon_text_value(&text), expected);
    moon_text_close(&text);
    return status;
}

static size_t pack_zstd(void *out, size_t room, const char *text, size_t length) {
    return ZSTD_compress(out, room, text, length, 3);
}

static size_t pack_gzip(void *out, size_t room, const char *text, size_t length) {
    z_stream stream = {0};
    deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
    stream.next_in = (unsigned char *)text;
    stream.avail_in = (uInt)length;
    stream.next_out = out;
    stream.avail_out = (uInt)room;
    deflate(&stream, Z_FINISH);
    size_t written = room - stream.avail_out;
    deflateEnd(&stream);
    return written;
}

static void reads_what_was_written(void) {
    struct moon_error error;
    put("plain", "hello\n", 6);
    MOON_CHECK_INT(get("plain", 6, "hello\n", &error), 0);
}

static void refuses_more_than_the_limit(void) {
    struct moon_error error;
    put("plain", "hello\n", 6);
    MOON_CHECK_INT(get("plain", 5, NULL, &error), MOON_ERR_LIMIT);
    MOON_CHECK_TEXT(error.message, "holds more than the limit of 5 bytes");
}

static void says_what_a_path_is_that_it_cannot_read(void) {
    struct moon_error error;
    MOON_CHECK_INT(get("missing", 100, NULL, &error), MOON_ERR_IO);
    MOON_CHECK_TEXT(error.message, "cannot open: No such file or directory");
    MOON_CHECK_INT(get(".", 100, NULL, &error), MOON_ERR_IO);
    MOON_CHECK_TEXT(error.message, "is a directory, not a file");
}

static void unpacks_zstd_and_gzip(void) {
    struct moon_error error;
    char packed[1024];
    put("z", packed, pack_zstd(packed, sizeof packed, "content", 7));
    MOON_CHECK_INT(get("z", 100, "content", &error), 0);
    size_t first = pack_gzip(packed, sizeof packed, "con", 3);
    size_t second = pack_gzip(packed + first, sizeof packed - first, "tent", 4);
    put("g", packed, first + second);
    MOON_CHECK_INT(get("g", 100, "content", &error), 0);
}

static void refuses_packed_data_that_is_cut_or_damaged(void) {
    struct moon_error error;
    char packed[1024];
    size_t length = pack_zstd(packed, sizeof packed, "content content content", 23);
    put("z", packed, length - 3);
    MOON_CHECK_INT(get("z", 100, NULL, &error), MOON_ERR_SYNTAX);
    MOON_CHECK_TEXT(error.message, "zstd data ends in the middle");
    packed[5] ^= 0x55;
    put("z", packed, length);
    MOON_CHECK_INT(get("z", 100, NULL, &error), MOON_ERR_SYNTAX);
    length = pack_gzip(packed, sizeof packed, "content content content", 23);
    put("g", packed, length - 3);
    MOON_CHECK_INT(get("g", 100, NULL, &error), MOON_ERR_SYNTAX);
    MOON_CHECK_TEXT(error.message, "gzip data ends in the middle");
    packed[12] ^= 0x55;
    put("g", packed, length);
    MOON_CHECK_INT(get("g", 100, NULL, &error), MOON_ERR_SYNTAX);
}

static void a_small_file_cannot_unpack_without_bound(void) {
    enum { BOMB = 4 * 1024 * 1024, ROOM = 64 * 1024 };
    struct moon_error error;
    char *zeros = calloc(1, BOMB), *packed = malloc(ROOM);
    CU_ASSERT_PTR_NOT_NULL_FATAL(zeros);
    CU_ASSERT_PTR_NOT_NULL_FATAL(packed);
    put("z", packed, pack_zstd(packed, ROOM, zeros, BOMB));
    MOON_CHECK_INT(get("z", BOMB - 1, NULL, &error), MOON_ERR_LIMIT);
    MOON_CHECK_TEXT(error.message, "unpacks to more than the limit of 4194303 bytes");
    MOON_CHECK_INT(get("z", BOMB, NULL, &error), 0);
    put("g", packed, pack_gzip(packed, ROOM, zeros, BOMB));
    MOON_CHECK_INT(get("g", BOMB - 1, NULL, &error), MOON_ERR_LIMIT);
    MOON_CHECK_INT(get("g", BOMB, NULL, &error), 0);
    free(zeros);
    free(packed);
}

static void writing_replaces_and_keeps_the_mode(void) {
    struct stat facts;
    put("mode", "one", 3);
    chmod(in_folder("mode"), 0640);
    put("mode", "two", 3);
    MOON_CHECK_INT(get("mode", 10, "two", &(struct moon_error){0}), 0);
    MOON_CHECK_INT(stat(in_folder("mode"), &facts), 0);
    MOON_CHECK_INT(facts.st_mode & 0777, 0640);
}

static void a_link_keeps_pointing_where_it_did(void) {
    char link_path[128];
    put("pointed", "one", 3);
    snprintf(link_path, sizeof link_path, "%s", in_folder("link"));
    MOON_CHECK_INT(symlink("pointed", link_path), 0);
    put("link", "two", 3);
    MOON_CHECK_INT(get("pointed", 10, "two", &(struct moon_error){0}), 0);
}

/* Number of files in the folder. */
static size_t count_files(void) {
    struct moon_arena arena;
    struct moon_error error;
    const char *const *paths = NULL;
    size_t count = 0;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_io_list(&arena, folder, &paths, &count, &error), 0);
    moon_arena_close(&arena);
    return count;
}

static void writing_that_fails_leaves_nothing(void) {
    struct moon_error error;
    size_t before = count_files();
    MOON_CHECK_INT(moon_io_write(in_folder("no/such/folder"), "x", 1, &error), MOON_ERR_IO);
    MOON_CHECK_INT(moon_io_write(folder, "x", 1, &error), MOON_ERR_IO);
    MOON_CHECK_TEXT(error.message, "is a directory, not a file");
    MOON_CHECK_INT(moon_io_write("/dev/full", "x", 1, &error), MOON_ERR_IO);
    MOON_CHECK_TEXT(error.message, "cannot write: No space left on device");
    MOON_CHECK_INT(count_files(), before);
}

static void lists_files_in_sorted_order(void) {
    struct moon_arena arena;
    struct moon_error error;
    const char *const *paths = NULL;
    size_t count = 0;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(moon_io_make_folder(in_folder("list/b/c"), &error), 0);
    put("list/z", "", 0);
    put("list/b/c/y", "", 0);
    put("list/a", "", 0);
    MOON_CHECK_INT(moon_io_list(&arena, in_folder("list/"), &paths, &count, &error), 0);
    MOON_CHECK_INT(count, 3);
    if (count == 3) {
        MOON_CHECK_TEXT(paths[0] + strlen(folder), "/list/a");
        MOON_CHECK_TEXT(paths[1] + strlen(folder), "/list/b/c/y");
        MOON_CHECK_TEXT(paths[2] + strlen(folder), "/list/z");
    }
    MOON_CHECK_INT(moon_io_list(&arena, in_folder("nowhere"), &paths, &count, &error), MOON_ERR_IO);
    moon_arena_close(&arena);
}

static void makes_folders_but_not_over_files(void) {
    struct moon_error error;
    MOON_CHECK_INT(moon_io_make_folder(in_folder("d/e/f"), &error), 0);
    MOON_CHECK_INT(moon_io_make_folder(in_folder("d/e/f"), &error), 0);
    CU_ASSERT(moon_io_is_folder(in_folder("d/e/f")));
    put("d/file", "", 0);
    MOON_CHECK_INT(moon_io_make_folder(in_folder("d/file/g"), &error), MOON_ERR_IO);
    MOON_CHECK_INT(moon_io_make_folder("", &error), MOON_ERR_IO);
    CU_ASSERT_FALSE(moon_io_is_program(in_folder("d/file")));
    CU_ASSERT(moon_io_is_program("/bin/sh"));
}

static void json_errors_name_the_file(void) {
    struct moon_arena arena;
    struct moon_error error;
    struct moon_json *document = NULL;
    char where[160];
    moon_arena_open(&arena, moon_memory_heap());
    put("bad.json", "{\n \"a\": tru}", 12);
    MOON_CHECK_INT(moon_io_read_json(&arena, in_folder("bad.json"), MOON_JSON_STRICT, &document, &error),
                   MOON_ERR_SYNTAX);
    snprintf(where, sizeof where, "%s:2:", in_folder("bad.json"));
    CU_ASSERT(strncmp(error.where, where, strlen(where)) == 0);
    MOON_CHECK_TEXT(moon_io_source("-"), "stdin");
    moon_arena_close(&arena);
}

static const struct moon_unit_case cases[] = {
    {"reads what was written", reads_what_was_written},
    {"refuses more than the limit", refuses_more_than_the_limit},
    {"says what a path is that it cannot read", says_what_a_path_is_that_it_cannot_read},
    {"unpacks zstd and gzip", unpacks_zstd_and_gzip},
    {"refuses packed data that is cut or damaged", refuses_packed_data_that_is_cut_or_damaged},
    {"a small file cannot unpack without bound", a_small_file_cannot_unpack_without_bound},
    {"writing replaces and keeps the mode", writing_replaces_and_keeps_the_mode},
    {"a link keeps pointing where it did", a_link_keeps_pointing_where_it_did},
    {"writing that fails leaves nothing", writing_that_fails_leaves_nothing},
    {"lists files in sorted order", lists_files_in_sorted_order},
    {"makes folders but not over files", makes_folders_but_not_over_files},
    {"json errors name the file", json_errors_name_the_file},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    snprintf(folder, sizeof folder, "/tmp/mooncheck-io-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    int status = moon_unit_main("io", cases, argc, argv);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? status : 1;
}
