/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the frames of the lookup channel: bytes of real releases, every way a request or reply can be wrong, memory.
 */
#include "ref/connector/lookup_rpc.h"

#include "ref/base/unit.h"

#include <stdlib.h>

static const struct moon_profile *profile(const char *name) {
    return moon_profile_find(name, NULL);
}

/* Hex digits to bytes; blanks are skipped. Returns their number. */
static size_t bytes_of(const char *hex, uint8_t *out) {
    char digits[1024];
    size_t length = 0;
    for (; *hex; hex++)
        if (*hex != ' ')
            digits[length++] = *hex;
    CU_ASSERT_EQUAL_FATAL(moon_hex_decode(digits, length, out), 0);
    return length / 2;
}

#define H0 "fe8fa5dda3210d0ca2031e37cbe3b001186773cd1c710beb2d45fcb51d434798"
#define H1 "8be7aaa33831156d316f1f463ae57e643deb63f42e633e2d631df88815cc4629"

static struct moon_hashes two_hashes(uint8_t room[64]) {
    bytes_of(H0 H1, room);
    return (struct moon_hashes){room, 32, 2};
}

/* "frame frame ..." in hex. */
static void check_frames(const struct moon_rpc_message *message, const char *expected) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    for (size_t i = 0; i < message->count; i++) {
        if (i > 0)
            moon_text_char(&text, ' ');
        moon_text_hex(&text, message->frames[i].bytes, message->frames[i].length);
    }
    MOON_CHECK_TEXT(moon_text_value(&text), expected);
    moon_text_close(&text);
}

static void check_encoded(const char *release, int64_t tokens, const struct moon_hashes *hashes, const char *expected) {
    struct moon_rpc_message message;
    moon_rpc_message_open(&message, moon_memory_heap());
    MOON_CHECK_INT(moon_rpc_encode_lookup(profile(release), tokens, hashes, &message, NULL), 0);
    check_frames(&message, expected);
    moon_rpc_message_close(&message);
}

static void requests_are_bytes_of_the_release(void) {
    uint8_t room[64];
    struct moon_hashes hashes = two_hashes(room), none = {NULL, 32, 0};
    struct moon_text list;
    moon_text_open(&list, moon_memory_heap());
    moon_text_string(&list, "00000020 92d940");
    moon_text_hex(&list, H0, 64);
    moon_text_string(&list, "d940");
    moon_text_hex(&list, H1, 64);
    check_encoded("vllm-0.21", 32, &hashes, moon_text_value(&list));
    check_encoded("vllm-0.22", 32, &hashes, moon_text_value(&list));
    moon_text_close(&list);
    check_encoded("vllm-0.22", 0, &none, "00000000 90");
    check_encoded("vllm-0.23", 16, &none, "6c6f6f6b7570 00000010 90");
    check_encoded("vllm-0.24", 32, &hashes, "6c6f6f6b7570 00000020 0020 " H0 H1);
    check_encoded("vllm-0.33", 32, &hashes, "6c6f6f6b7570 00000020 0020 " H0 H1);
    check_encoded("vllm-0.33", 4294967295, &none, "6c6f6f6b7570 ffffffff 0000 ");
}

/* Head and length of the list of `count` hashes of `hash_bytes` bytes, as msgspec 0.23 writes them. */
static void check_list(size_t count, size_t hash_bytes, const char *head, size_t length) {
    uint8_t *bytes = calloc(count + 1, hash_bytes), expected[16];
    struct moon_hashes hashes = {bytes, hash_bytes, count};
    struct moon_rpc_message message;
    size_t head_length = bytes_of(head, expected);
    moon_rpc_message_open(&message, moon_memory_heap());
    MOON_CHECK_INT(moon_rpc_encode_lookup(profile("vllm-0.23"), 1, &hashes, &message, NULL), 0);
    MOON_CHECK_INT(message.frames[2].length, length);
    CU_ASSERT(memcmp(message.frames[2].bytes, expected, head_length) == 0);
    struct moon_rpc_request request;
    moon_rpc_request_open(&request, moon_memory_heap());
    MOON_CHECK_INT(moon_rpc_decode_request(profile("vllm-0.23"), message.frames, 3, &request, NULL), 0);
    MOON_CHECK_INT(request.hashes.count, count);
    moon_rpc_request_close(&request);
    moon_rpc_message_close(&message);
    free(bytes);
}

static void lists_have_the_shortest_heads(void) {
    check_list(1, 16, "91d9203030", 35);
    check_list(1, 32, "91d9403030", 67);
    check_list(15, 16, "9fd92030", 511);
    check_list(16, 16, "dc0010d920", 547);
    check_list(300, 16, "dc012cd920", 10203);
    check_list(65535, 1, "dcffffa23030", 196608);
    check_list(65536, 1, "dd00010000a23030", 196613);
    check_list(1, 200, "91da0190", 404);
}

static void numbers_that_do_not_fit_are_refused(void) {
    struct moon_hashes none = {NULL, 16, 0};
    struct moon_rpc_message message;
    struct moon_error error;
    moon_rpc_message_open(&message, moon_memory_heap());
    MOON_CHECK_INT(moon_rpc_encode_lookup(profile("vllm-0.33"), INT64_C(1) << 32, &none, &message, &error),
                   MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.type, "OverflowError");
    MOON_CHECK_TEXT(error.message, "int too big to convert");
    MOON_CHECK_INT(moon_rpc_encode_lookup(profile("vllm-0.33"), -1, &none, &message, &error), MOON_ERR_REFUSED);
    MOON_CHECK_TEXT(error.message, "can't convert negative int to unsigned");
    moon_rpc_message_close(&message);
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    MOON_CHECK_INT(
        moon_rpc_encode_reply(profile("vllm-0.33"), &(struct moon_lookup_result){.hit_tokens = -1}, &out, &error),
        MOON_ERR_REFUSED);
    MOON_CHECK_INT(
        moon_rpc_encode_reply(
            profile("vllm-0.33"),
            &(struct moon_lookup_result){.hit_tokens = 1, .boundary_count = 1, .tail_boundaries = {INT64_C(1) << 32}},
            &out, &error),
        MOON_ERR_REFUSED);
    moon_text_close(&out);
}

static void a_reset_is_one_frame_and_one_byte(void) {
    struct moon_rpc_message message;
    struct moon_rpc_request request;
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    moon_rpc_message_open(&message, moon_memory_heap());
    moon_rpc_encode_reset(&message);
    check_frames(&message, "7265736574");
    moon_rpc_request_open(&request, moon_memory_heap());
    MOON_CHECK_INT(moon_rpc_decode_request(profile("vllm-0.23"), message.frames, 1, &request, NULL), 0);
    MOON_CHECK_INT(request.kind, MOON_RPC_RESET);
    moon_rpc_request_close(&request);
    moon_rpc_message_close(&message);
    moon_rpc_encode_status(true, &out);
    moon_rpc_encode_status(false, &out);
    CU_ASSERT(memcmp(out.data, "\x01\x00", 2) == 0);
    CU_ASSERT_TRUE(moon_rpc_decode_status(out.data, 1));
    CU_ASSERT_FALSE(moon_rpc_decode_status(out.data + 1, 1));
    CU_ASSERT_FALSE(moon_rpc_decode_status(out.data, 2));
    CU_ASSERT_FALSE(moon_rpc_decode_status(out.data, 0));
    moon_text_close(&out);
}

/* Decodes frames given as hex, separated by '/'. */
static int decode(const char *release, const char *hex, struct moon_rpc_request *request, uint8_t *room,
                  struct moon_error *error) {
    struct moon_rpc_frame frames[6];
    char part[600];
    size_t count = 0, used = 0;
    while (*hex) {
        size_t length = strcspn(hex, "/");
        snprintf(part, sizeof part, "%.*s", (int)length, hex);
        frames[count] = (struct moon_rpc_frame){room + used, bytes_of(part, room + used)};
        used += frames[count++].length;
        hex += length + (hex[length] == '/');
    }
    return moon_rpc_decode_request(profile(release), frames, count, request, error);
}

static void check_request(const char *release, const char *hex, enum moon_rpc_kind kind, int64_t tokens,
                          size_t hash_bytes, size_t count, const char *first_hash) {
    struct moon_rpc_request request;
    uint8_t room[1024], expected[64];
    moon_rpc_request_open(&request, moon_memory_heap());
    MOON_CHECK_INT(decode(release, hex, &request, room, NULL), 0);
    MOON_CHECK_INT(request.kind, kind);
    MOON_CHECK_INT(request.num_tokens, tokens);
    MOON_CHECK_INT(request.hashes.count, count);
    if (count > 0) {
        MOON_CHECK_INT(request.hashes.hash_bytes, hash_bytes);
        size_t length = bytes_of(first_hash, expected);
        CU_ASSERT(memcmp(request.hashes.bytes, expected, length) == 0);
    }
    moon_rpc_request_close(&request);
    moon_rpc_request_close(&request);
}

#define LOOKUP "6c6f6f6b7570/"

static void requests_are_read_as_releases_read_them(void) {
    check_request("vllm-0.33", LOOKUP "00000020/0020/" H0 H1, MOON_RPC_LOOKUP, 32, 32, 2, H0);
    check_request("vllm-0.24", LOOKUP "00000021/0010/" H0, MOON_RPC_LOOKUP, 33, 16, 2, "fe8fa5dda3210d0c");
    /* what is left over of the last frame is ignored, as are more frames */
    check_request("vllm-0.33", LOOKUP "20/20/" H0 "ff/ff", MOON_RPC_LOOKUP, 32, 32, 1, H0);
    check_request("vllm-0.33", LOOKUP "20/0005/" H0, MOON_RPC_LOOKUP, 32, 5, 6, "fe8fa5dda3");
    check_request("vllm-0.33", LOOKUP "0000000000000000007fffffff/ffff/" H0, MOON_RPC_LOOKUP, 2147483647, 0, 0, "");
    check_request("vllm-0.33", LOOKUP "20000000000000//" H0, MOON_RPC_LOOKUP, INT64_C(1) << 53, 0, 0, "");
    check_request("vllm-0.33", LOOKUP "20/8000000000000000/" H0, MOON_RPC_LOOKUP, 32, 0, 0, "");
    check_request("vllm-0.33", LOOKUP "20/010000/" H0, MOON_RPC_LOOKUP, 32, 0, 0, "");
    check_request("vllm-0.33", LOOKUP "00000010/0000//", MOON_RPC_LOOKUP, 16, 0, 0, "");
    check_request("vllm-0.33", "7265736574", MOON_RPC_RESET, 0, 0, 0, "");
    check_request("vllm-0.33", "7265736574/00/11", MOON_RPC_RESET, 0, 0, 0, "");
    check_request("vllm-0.33", "6c6f6f6b757000/00/11", MOON_RPC_UNKNOWN, 0, 0, 0, "");
    check_request("vllm-0.23", "6c6f6f6b7501/00/11", MOON_RPC_UNKNOWN, 0, 0, 0, "");
    check_request("vllm-0.22", "00000020/92a26162a26364", MOON_RPC_LOOKUP, 32, 1, 2, "abcd");
    check_request("vllm-0.21", "20/90", MOON_RPC_LOOKUP, 32, 0, 0, "");
    check_request("vllm-0.23", LOOKUP "20/dc0001a441426162", MOON_RPC_LOOKUP, 32, 2, 1, "abab");
    check_request("vllm-0.23", LOOKUP "20/dd00000001d9026162", MOON_RPC_LOOKUP, 32, 1, 1, "ab");
    check_request("vllm-0.23", LOOKUP "20/91da00026162", MOON_RPC_LOOKUP, 32, 1, 1, "ab");
    check_request("vllm-0.23", LOOKUP "20/91db000000026162/ffff", MOON_RPC_LOOKUP, 32, 1, 1, "ab");
    check_request("vllm-0.23", LOOKUP "20/91a7206162090d6364", MOON_RPC_LOOKUP, 32, 2, 1, "abcd");
}

static void check_wrong(const char *release, const char *hex, int status, const char *where, const char *message) {
    struct moon_rpc_request request;
    struct moon_error error = {0};
    uint8_t room[1024];
    moon_rpc_request_open(&request, moon_memory_heap());
    MOON_CHECK_INT(decode(release, hex, &request, room, &error), status);
    MOON_CHECK_TEXT(error.where, where);
    MOON_CHECK_TEXT(error.message, message);
    moon_rpc_request_close(&request);
}

static void wrong_requests_name_frame_and_byte(void) {
    const char *const missing = "the frame is missing", *const early = "the frame ends early";
    check_wrong("vllm-0.33", "", MOON_ERR_SYNTAX, "lookup request frame 0 byte 0", missing);
    check_wrong("vllm-0.33", "6c6f6f6b7570", MOON_ERR_SYNTAX, "lookup request frame 1 byte 0", missing);
    check_wrong("vllm-0.33", LOOKUP "20", MOON_ERR_SYNTAX, "lookup request frame 2 byte 0", missing);
    check_wrong("vllm-0.33", LOOKUP "20/0020", MOON_ERR_SYNTAX, "lookup request frame 3 byte 0", missing);
    check_wrong("vllm-0.33", LOOKUP "20000000000001/20/00", MOON_ERR_LIMIT, "lookup request frame 1 byte 0",
                "more than 2^53 tokens");
    check_wrong("vllm-0.33", LOOKUP "0100000000000000000000/20/00", MOON_ERR_LIMIT, "lookup request frame 1 byte 0",
                "more than 2^53 tokens");
    check_wrong("vllm-0.22", "20", MOON_ERR_SYNTAX, "lookup request frame 1 byte 0", missing);
    check_wrong("vllm-0.22", "20//", MOON_ERR_SYNTAX, "lookup request frame 1 byte 0", early);
    check_wrong("vllm-0.22", "20/dc00", MOON_ERR_SYNTAX, "lookup request frame 1 byte 1", early);
    check_wrong("vllm-0.22", "20/dcffff", MOON_ERR_SYNTAX, "lookup request frame 1 byte 3", early);
    check_wrong("vllm-0.22", "20/91d9", MOON_ERR_SYNTAX, "lookup request frame 1 byte 2", early);
    check_wrong("vllm-0.22", "20/91a461", MOON_ERR_SYNTAX, "lookup request frame 1 byte 2", early);
    check_wrong("vllm-0.22", "20/c0", MOON_ERR_SCHEMA, "lookup request frame 1 byte 0", "the hashes are no array");
    check_wrong("vllm-0.22", "20/80", MOON_ERR_LIMIT, "lookup request frame 1 byte 0", "the hashes are a map");
    check_wrong("vllm-0.22", "20/de0000", MOON_ERR_LIMIT, "lookup request frame 1 byte 0", "the hashes are a map");
    check_wrong("vllm-0.22", "20/df00000000", MOON_ERR_LIMIT, "lookup request frame 1 byte 0", "the hashes are a map");
    check_wrong("vllm-0.22", "20/c1", MOON_ERR_SYNTAX, "lookup request frame 1 byte 0", "the byte begins nothing");
    check_wrong("vllm-0.22", "20/9100", MOON_ERR_SCHEMA, "lookup request frame 1 byte 1", "a hash is no string");
    check_wrong("vllm-0.22", "20/90c0", MOON_ERR_SYNTAX, "lookup request frame 1 byte 1", "bytes follow the array");
    check_wrong("vllm-0.22", "20/91a2617a", MOON_ERR_SCHEMA, "lookup request frame 1 byte 2",
                "a hash is not hexadecimal");
    check_wrong("vllm-0.22", "20/91a3616161", MOON_ERR_SCHEMA, "lookup request frame 1 byte 4",
                "a hash is not hexadecimal");
    check_wrong("vllm-0.22", "20/91a4c3a9ff61", MOON_ERR_SYNTAX, "lookup request frame 1 byte 2",
                "a hash is not hexadecimal");
    check_wrong("vllm-0.22", "20/91a3eda080", MOON_ERR_SYNTAX, "lookup request frame 1 byte 2",
                "a hash is not hexadecimal");
    check_wrong("vllm-0.22", "20/91a2c3a9", MOON_ERR_SCHEMA, "lookup request frame 1 byte 2",
                "a hash is not hexadecimal");
    check_wrong("vllm-0.22", "20/91a120", MOON_ERR_LIMIT, "lookup request frame 1 byte 2",
                "hashes of several lengths, or of none");
    check_wrong("vllm-0.22", "20/92a26161a461616161", MOON_ERR_LIMIT, "lookup request frame 1 byte 5",
                "hashes of several lengths, or of none");
}

static void a_hash_beyond_the_limit_is_refused(void) {
    static uint8_t frame[6 + 131072] = {0x91, 0xdb, 0x00, 0x02, 0x00, 0x00};
    struct moon_rpc_frame frames[2] = {{(const uint8_t *)"\x20", 1}, {frame, sizeof frame}};
    struct moon_rpc_request request;
    struct moon_error error;
    moon_rpc_request_open(&request, moon_memory_heap());
    memset(frame + 6, '0', sizeof frame - 6);
    MOON_CHECK_INT(moon_rpc_decode_request(profile("vllm-0.22"), frames, 2, &request, &error), MOON_ERR_LIMIT);
    MOON_CHECK_TEXT(error.message, "a hash is longer than 65535 bytes");
    moon_rpc_request_close(&request);
    const struct moon_rpc_frame binary[4] = {{(const uint8_t *)"lookup", 6},
                                             {(const uint8_t *)"\x20", 1},
                                             {(const uint8_t *)"\x01\0\0", 3},
                                             {frame, sizeof frame}};
    MOON_CHECK_INT(moon_rpc_decode_request(profile("vllm-0.33"), binary, 4, &request, &error), MOON_ERR_LIMIT);
    MOON_CHECK_TEXT(error.where, "lookup request frame 2 byte 0");
    moon_rpc_request_close(&request);
}

static void check_reply(const char *release, const char *hex, int64_t hit, size_t boundaries, int64_t last) {
    struct moon_deviation_notes notes = {0};
    struct moon_connector connector = {.profile = profile(release), .notes = &notes};
    struct moon_lookup_result result;
    uint8_t room[1024];
    size_t length = bytes_of(hex, room);
    MOON_CHECK_INT(moon_rpc_decode_reply(&connector, room, length, &result, NULL), 0);
    MOON_CHECK_INT(result.hit_tokens, hit);
    MOON_CHECK_INT(result.boundary_count, boundaries);
    if (boundaries > 0)
        MOON_CHECK_INT(result.tail_boundaries[boundaries - 1], last);
    MOON_CHECK_INT(moon_deviation_noted(&notes, MOON_DEVIATION_REPLY_UNCHECKED),
                   connector.profile->reply_unchecked && length != 4);
    if (length % 8 == 4 && boundaries > 0) {
        struct moon_text out;
        moon_text_open(&out, moon_memory_heap());
        MOON_CHECK_INT(moon_rpc_encode_reply(connector.profile, &result, &out, NULL), 0);
        MOON_CHECK_INT(out.length, length);
        CU_ASSERT(memcmp(out.data, room, length) == 0);
        moon_text_close(&out);
    }
}

static void replies_are_read_by_release(void) {
    check_reply("vllm-0.33", "00000010 00000000 00000010", 16, 1, 16);
    check_reply("vllm-0.29", "00000020 00000000 00000020", 32, 1, 32);
    check_reply("vllm-0.30", "00000000", 0, 0, 0);
    check_reply("vllm-0.33", "00000010 00000000 00000010 00000001 00000014", 16, 2, 20);
    check_reply("vllm-0.29", "00000010 00000000 00000010 00000002 00000010", 16, 3, 16); /* group 1 is not stored */
    check_reply("vllm-0.28", "ffffffff", 4294967295, 0, 0);
    check_reply("vllm-0.21", "00000010", 16, 0, 0);
    check_reply("vllm-0.28", "", 0, 0, 0);
    check_reply("vllm-0.28", "0000000010", 16, 0, 0);
    check_reply("vllm-0.28", "7fffffffffffffff", INT64_MAX, 0, 0);
}

static void of_two_entries_for_a_group_the_later_counts(void) {
    struct moon_connector connector = {.profile = profile("vllm-0.33")};
    struct moon_lookup_result result;
    uint8_t room[64];
    size_t length = bytes_of("00000010 00000000 00000010 00000000 00000018", room);
    MOON_CHECK_INT(moon_rpc_decode_reply(&connector, room, length, &result, NULL), 0);
    MOON_CHECK_INT(result.boundary_count, 1);
    MOON_CHECK_INT(result.tail_boundaries[0], 0x18);
}

static void check_wrong_reply(const struct moon_profile *release, const char *hex, int status, const char *where,
                              const char *message) {
    struct moon_connector connector = {.profile = release};
    struct moon_lookup_result result;
    struct moon_error error = {0};
    uint8_t room[1024];
    size_t length = bytes_of(hex, room);
    MOON_CHECK_INT(moon_rpc_decode_reply(&connector, room, length, &result, &error), status);
    MOON_CHECK_TEXT(error.where, where);
    MOON_CHECK_TEXT(error.message, message);
    MOON_CHECK_INT(result.hit_tokens, 0);
    MOON_CHECK_INT(result.boundary_count, 0);
}

static void wrong_replies_are_told(void) {
    const struct moon_profile *newest = profile("vllm-0.33"), *old = profile("vllm-0.28");
    struct moon_profile strict;
    const char *const invalid = "Invalid Mooncake lookup response";
    check_wrong_reply(newest, "0000000000", MOON_ERR_REFUSED, "", invalid);
    check_wrong_reply(newest, "", MOON_ERR_REFUSED, "", invalid);
    check_wrong_reply(newest, "000010", MOON_ERR_REFUSED, "", invalid);
    check_wrong_reply(newest, "0000001000000000", MOON_ERR_REFUSED, "", invalid);
    check_wrong_reply(newest, "00000010 00000000 00000010 00000040 00000010", MOON_ERR_LIMIT, "lookup reply byte 12",
                      "group 64, at most 64 are known");
    check_wrong_reply(old, "8000000000000000", MOON_ERR_RANGE, "lookup reply byte 0", "the hit is beyond 63 bits");
    check_wrong_reply(old, "000000100000000000000010", MOON_ERR_RANGE, "lookup reply byte 0",
                      "the hit is beyond 63 bits");
    moon_profile_strict(old, &strict);
    check_wrong_reply(&strict, "0000000010", MOON_ERR_SYNTAX, "lookup reply byte 0", "the reply has 5 bytes, not 4");
}

static void memory_is_asked_for_only_as_hex_needs_it(void) {
    uint8_t room[64];
    struct moon_hashes hashes = two_hashes(room);
    struct moon_memory_failing failing;
    struct moon_rpc_message message;
    struct moon_rpc_request request;
    moon_memory_failing_init(&failing, moon_memory_heap(), 1);
    moon_rpc_message_open(&message, &failing.memory);
    moon_rpc_request_open(&request, &failing.memory);
    MOON_CHECK_INT(moon_rpc_encode_lookup(profile("vllm-0.33"), 32, &hashes, &message, NULL), 0);
    MOON_CHECK_INT(moon_rpc_decode_request(profile("vllm-0.33"), message.frames, message.count, &request, NULL), 0);
    MOON_CHECK_INT(failing.requests, 0);
    MOON_CHECK_INT(moon_rpc_encode_lookup(profile("vllm-0.22"), 32, &hashes, &message, NULL), MOON_ERR_MEMORY);
    const struct moon_rpc_frame frames[] = {{(const uint8_t *)"\x20", 1},
                                            {(const uint8_t *)"\x91\xa2"
                                                              "ab",
                                             4}};
    MOON_CHECK_INT(moon_rpc_decode_request(profile("vllm-0.22"), frames, 2, &request, NULL), MOON_ERR_MEMORY);
    moon_rpc_message_close(&message);
    moon_rpc_request_close(&request);
    MOON_CHECK_INT(failing.held_bytes, 0);
    struct moon_text out;
    moon_text_open(&out, &failing.memory);
    MOON_CHECK_INT(
        moon_rpc_encode_reply(profile("vllm-0.33"), &(struct moon_lookup_result){.hit_tokens = 1}, &out, NULL),
        MOON_ERR_MEMORY);
    moon_text_close(&out);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a lookup request has the bytes of its release", requests_are_bytes_of_the_release},
        {"a list of hashes has the shortest heads", lists_have_the_shortest_heads},
        {"numbers that do not fit are refused", numbers_that_do_not_fit_are_refused},
        {"a reset is one frame, its reply one byte", a_reset_is_one_frame_and_one_byte},
        {"a request is read as its release reads it", requests_are_read_as_releases_read_them},
        {"a wrong request is answered with frame and byte", wrong_requests_name_frame_and_byte},
        {"a hash beyond the limit is refused", a_hash_beyond_the_limit_is_refused},
        {"a reply is read by release, and written the same", replies_are_read_by_release},
        {"of two entries for a group the later counts", of_two_entries_for_a_group_the_later_counts},
        {"a wrong reply is told, and gives no hit", wrong_replies_are_told},
        {"memory is asked for only for hashes as hex", memory_is_asked_for_only_as_hex_needs_it},
        {NULL, NULL},
    };
    return moon_unit_main("lookup_rpc", cases, argc, argv);
}
