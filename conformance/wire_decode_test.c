/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of mooncheck wire decode: what is said of each kind of frame, and of what is no frame. */
#include "conformance/wire_decode.h"

#include "ref/base/error.h"
#include "ref/base/unit.h"

#define EXIST   "1500000007000000095f38891700000000000000d91ef97c04fd800c800cff00026b310764656661756c74"
#define EXISTS  "15000000070000000b00000000000000d300e89004870b01000101"
#define UNKNOWN "150000001a000000785634120000000000000000"
#define REFUSED                                                                                                        \
    "15000b001a000000280000000000000077facf9d04800c001f746865207270632066756e6374696f6e206e6f742072656769737465726564"
#define PROBE                                                                                                          \
    "030000000000000003"                                                                                               \
    "7b7d"
#define OLD                                                                                                            \
    "0200000000000000"                                                                                                 \
    "7b7d"
#define WRITE_2 "050000000000000000000051367f0000810000000000000068656c6c6f"
#define READ_1  "050000000000000000000051367f00000000000000000000"
#define STATUS  "000000005654434d"

struct outcome {
    struct moon_text words;
    size_t faults;
    int status;
    struct moon_error error;
};

static void decode_as(const char *hex, enum moon_wire_kind_of_frame kind, const char *release, struct outcome *out) {
    struct moon_text input;
    memset(out, 0, sizeof *out);
    moon_text_open(&input, moon_memory_heap());
    moon_text_open(&out->words, moon_memory_heap());
    moon_text_string(&input, hex);
    out->status = moon_wire_unhex(&input, &out->error);
    if (!out->status)
        out->status = moon_wire_decode_stream(moon_text_value(&input), input.length, kind,
                                              release ? moon_wire_release_find(release) : NULL, &out->words,
                                              &out->faults, &out->error);
    moon_text_close(&input);
}

static void each_frame_is_told_in_words(void) {
    static const struct {
        const char *hex, *words;
        enum moon_wire_kind_of_frame kind;
        size_t faults;
        const char *release;
    } rows[] = {
        {EXIST " " EXISTS,
         "offset 0: request 7, ExistKey, Mooncake 0.3.13.post1\n    key: \"k1\"\n    tenant_id: \"default\"\n"
         "offset 43: response 7, ExistKey, Mooncake 0.3.13.post1\n    result: {\"ok\":true}\n",
         MOON_WIRE_ANY, 0, NULL},
        {EXISTS,
         "offset 0: response 7, of the type that ExistKey returns, Mooncake 0.3.12.post1\n    result: {\"ok\":true}\n",
         MOON_WIRE_ANY, 0, "0.3.12"},
        {"15000000070000000900000000000000"
         "d200e89000"
         "40fdffff",
         "offset 0: response 7, of the type that ExistKey returns, Mooncake 0.3.13.post1\n    error: -704 "
         "(OBJECT_NOT_FOUND)\n",
         MOON_WIRE_ANY, 0, NULL},
        {"1500000001000000095f3889070000000000000076fa\ncf9d026b31",
         "offset 0: request 1, ExistKey, Mooncake 0.3.11.post1\n"
         "    key: \"k1\"\n",
         MOON_WIRE_ANY, 0, NULL},
        {"1500000001000000095f3889070000000000000010111111026b31",
         "offset 0: request 1, ExistKey, Mooncake 0.3.13.post1\n"
         "    error in the part that starts at offset 20: type hash 0x11111110 at offset 0, not 0x7cf91ed8\n"
         "    body: 7 bytes 10111111026b31\n",
         MOON_WIRE_ANY, 1, NULL},
        {UNKNOWN " " REFUSED,
         "offset 0: request 26, unknown function 0x12345678\n"
         "offset 20: response 26, refused with code 11 (function_not_registered)\n"
         "    message: \"the rpc function not registered\"\n",
         MOON_WIRE_ANY, 0, NULL},
        {"1500000005000000040000000200000010111111"
         "aabb",
         "offset 0: response 5, of unknown type 0x11111110\n    body: 4 bytes 10111111\n    attachment: 2 bytes aabb\n",
         MOON_WIRE_RPC_RESPONSE, 0, NULL},
        {"15000b001a0000000400000000000000"
         "77facf9d",
         "offset 0: response 26, refused with code 11 (function_not_registered)\n"
         "    error in the part that starts at offset 16: cut: the body ends at offset 4, inside of its head\n",
         MOON_WIRE_ANY, 1, NULL},
        {PROBE OLD,
         "offset 0: handshake, Probe\n    content: {}\noffset 11: handshake, Connection, old style\n    content: {}\n",
         MOON_WIRE_ANY, 0, NULL},
        {"030000000000000003"
         "7b7b",
         "offset 0: handshake, Probe\n    error in the part that starts at offset 9: handshake:1:2 $: ", MOON_WIRE_ANY,
         1, NULL},
        {"0000000000000000",
         "offset 0: handshake\n    error in the part that starts at offset 0: a frame of length 0 at offset 0\n",
         MOON_WIRE_HANDSHAKE, 1, NULL},
        {WRITE_2 READ_1,
         "offset 0: data request, version 2, opcode 129, writes 5 bytes at address 0x7f3651000000\n"
         "    payload: 5 bytes 68656c6c6f\n"
         "offset 29: data request, version 1, opcode 0, reads 5 bytes at address 0x7f3651000000\n",
         MOON_WIRE_ANY, 0, NULL},
        {STATUS STATUS "68656c6c6f",
         "offset 0: data answer, status 0 (ok)\noffset 8: data answer, status 0 (ok)\n    data: 5 bytes 68656c6c6f\n",
         MOON_WIRE_ANY, 0, NULL},
        {"010000005654434d", "offset 0: data answer, status 1 (address rejected)\n", MOON_WIRE_ANY, 0, NULL},
        {"020000005654434d", "offset 0: data answer, status 2 (unknown)\n", MOON_WIRE_DATA_ANSWER, 0, NULL},
        {"0100000000000000",
         "offset 0: data answer\n    error in the part that starts at offset 0: 0x00000000 at offset 4, not the mark "
         "0x4d435456 of a status\n",
         MOON_WIRE_DATA_ANSWER, 1, NULL},
        {EXISTS "ff", "offset 27: no frame is known that starts like this\n    rest: 1 bytes ff\n", MOON_WIRE_ANY, 1,
         NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome outcome;
        decode_as(rows[i].hex, rows[i].kind, rows[i].release, &outcome);
        MOON_CHECK_INT(outcome.status, 0);
        MOON_CHECK_INT(outcome.faults, rows[i].faults);
        bool told = strstr(moon_text_value(&outcome.words), rows[i].words) != NULL;
        if (!told)
            fprintf(stderr, "row %zu says\n%snot\n%s", i, moon_text_value(&outcome.words), rows[i].words);
        CU_ASSERT(told);
        moon_text_close(&outcome.words);
    }
}

/* Each frame cut at each byte: said as cut, under the kind that it was told to be. */
static void cut_frames_are_said_to_be_cut(void) {
    static const struct {
        const char *hex;
        enum moon_wire_kind_of_frame kind;
    } rows[] = {{EXIST, MOON_WIRE_RPC_REQUEST},
                {EXISTS, MOON_WIRE_RPC_RESPONSE},
                {PROBE, MOON_WIRE_HANDSHAKE},
                {READ_1, MOON_WIRE_DATA_REQUEST},
                {STATUS, MOON_WIRE_DATA_ANSWER}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t cut = 1; cut < strlen(rows[i].hex) / 2; cut++) {
            char hex[256], expected[64];
            struct outcome outcome;
            snprintf(hex, sizeof hex, "%.*s", (int)(2 * cut), rows[i].hex);
            snprintf(expected, sizeof expected, "cut: %zu bytes of ", cut);
            decode_as(hex, rows[i].kind, NULL, &outcome);
            MOON_CHECK_INT(outcome.status, 0);
            MOON_CHECK_INT(outcome.faults, 1);
            CU_ASSERT(strstr(moon_text_value(&outcome.words), expected) != NULL);
            moon_text_close(&outcome.words);
        }
}

static void a_frame_that_is_too_long_ends_the_words(void) {
    struct outcome outcome;
    decode_as("150000000000000056bb817bffffffff00000000", MOON_WIRE_ANY, NULL, &outcome);
    MOON_CHECK_INT(outcome.status, 0);
    MOON_CHECK_INT(outcome.faults, 1);
    CU_ASSERT(strstr(moon_text_value(&outcome.words), "a body of 4294967295") != NULL);
    moon_text_close(&outcome.words);
}

static void a_stream_that_starts_with_no_frame_is_refused(void) {
    static const char *const rows[] = {"",      " \n", "123",
                                       "hello", "ff",  "ffffffffffffffffffffffffffffffffffffffffffffffffff"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome outcome;
        decode_as(rows[i], MOON_WIRE_ANY, NULL, &outcome);
        MOON_CHECK_INT(outcome.status, MOON_ERR_SYNTAX);
        MOON_CHECK_INT(outcome.words.length, 0);
        moon_text_close(&outcome.words);
    }
}

static void a_request_of_an_unknown_function_is_told_from_a_response(void) {
    struct outcome outcome;
    decode_as("150000001a0000007856341203000000"
              "00000000"
              "aabbcc",
              MOON_WIRE_ANY, NULL, &outcome);
    CU_ASSERT(strstr(moon_text_value(&outcome.words), "request 26, unknown function 0x12345678") != NULL);
    CU_ASSERT(strstr(moon_text_value(&outcome.words), "body: 3 bytes aabbcc") != NULL);
    moon_text_close(&outcome.words);
}

static int unhex(struct moon_memory *memory, const void *context) {
    struct moon_text text;
    struct moon_error error;
    moon_text_open(&text, memory);
    moon_text_string(&text, context);
    int status = text.failed ? MOON_ERR_MEMORY : moon_wire_unhex(&text, &error);
    if (!status)
        MOON_CHECK_TEXT(moon_text_value(&text), "hello");
    moon_text_close(&text);
    return status;
}
static void hex_and_binary_are_told_apart(void) {
    moon_unit_refuse_memory(unhex, "68 65\n6C6c\t6f\r\n");
    moon_unit_refuse_memory(unhex, "hello");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"each frame is told in words", each_frame_is_told_in_words},
        {"cut frames are said to be cut", cut_frames_are_said_to_be_cut},
        {"a frame that is too long ends the words", a_frame_that_is_too_long_ends_the_words},
        {"a stream that starts with no frame is refused", a_stream_that_starts_with_no_frame_is_refused},
        {"a request of an unknown function is told from a response",
         a_request_of_an_unknown_function_is_told_from_a_response},
        {"hex and binary are told apart", hex_and_binary_are_told_apart},
        {NULL, NULL},
    };
    return moon_unit_main("wire_decode", cases, argc, argv);
}
