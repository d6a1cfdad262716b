/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of coro_rpc frames: partial and pipelined streams, limits, error answers. */
#include "ref/wire/frame.h"

#include "ref/base/unit.h"
#include "ref/wire/status.h"
#include "ref/wire/type.h"

/* ExistKey("k1", "default"), then ServiceReady, as 0.3.13.post1 sends them. */
static const char exist_hex[] =
    "1500000007000000095f38891700000000000000d91ef97c04fd800c800cff00026b310764656661756c74";
static const char ready_hex[] = "150000000800000056bb817b0000000000000000";
/* The answer to an unknown function. */
static const char unknown_hex[] =
    "15000b001a000000280000000000000077facf9d04800c001f746865207270632066756e6374696f6e206e6f742072656769737465726564";

static size_t bytes_of(const char *hex, uint8_t *out) {
    MOON_CHECK_INT(moon_hex_decode(hex, strlen(hex), out), 0);
    return strlen(hex) / 2;
}

static void frames_in_a_row_are_read_one_by_one(void) {
    uint8_t stream[128];
    struct moon_wire_frame frame;
    struct moon_error error;
    size_t used = 0, needed = 0, first = bytes_of(exist_hex, stream), all = first + bytes_of(ready_hex, stream + first);
    MOON_CHECK_INT(
        moon_wire_read_frame(MOON_WIRE_REQUEST, stream, all, MOON_WIRE_FRAME_BYTES_MAX, &frame, &used, &needed, &error),
        0);
    MOON_CHECK_INT(used, first);
    MOON_CHECK_INT(frame.sequence, 7);
    MOON_CHECK_INT(frame.function_id, 0x89385f09);
    MOON_CHECK_INT(frame.body_length, 23);
    MOON_CHECK_INT(frame.body[0], 0xd9);
    MOON_CHECK_INT(frame.attachment_length, 0);
    MOON_CHECK_INT(moon_wire_read_frame(MOON_WIRE_REQUEST, stream + used, all - used, MOON_WIRE_FRAME_BYTES_MAX, &frame,
                                        &used, &needed, &error),
                   0);
    MOON_CHECK_INT(used, 20);
    MOON_CHECK_INT(frame.sequence, 8);
    MOON_CHECK_INT(frame.body_length, 0);
}

/* A stream cut at every byte, each cut in memory of its own length, so that a sanitizer sees a read past the end. */
static void partial_frames_say_how_much_is_needed(void) {
    static const char *const rows[] = {exist_hex, unknown_hex};
    for (unsigned direction = 0; direction < 2; direction++) {
        uint8_t stream[128];
        size_t length = bytes_of(rows[direction], stream), header = direction ? 16 : 20;
        for (size_t cut = 0; cut < length; cut++) {
            struct moon_memory *heap = moon_memory_heap();
            struct moon_wire_frame frame = {.sequence = 99};
            struct moon_error error;
            size_t used = 1, needed = 0;
            uint8_t *copy = heap->resize(heap, NULL, 0, cut + 1);
            memcpy(copy + 1, stream, cut);
            MOON_CHECK_INT(moon_wire_read_frame((enum moon_wire_direction)direction, copy + 1, cut,
                                                MOON_WIRE_FRAME_BYTES_MAX, &frame, &used, &needed, &error),
                           0);
            MOON_CHECK_INT(used, 0);
            MOON_CHECK_INT(needed, cut < header ? header : length);
            MOON_CHECK_INT(frame.sequence, 99);
            heap->resize(heap, copy, cut + 1, 0);
        }
    }
}

static void a_wrong_start_is_refused_at_its_byte(void) {
    static const struct {
        unsigned offset;
        const char *message;
    } rows[] = {
        {0, "the magic number is 255 at offset 0, not 21"},
        {1, "the protocol version is 255 at offset 1, not 0"},
        {2, "the serialisation is 255 at offset 2, not 0"},
        {3, "the message type is 255 at offset 3, not 0"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t stream[128];
        struct moon_wire_frame frame;
        struct moon_error error = {0};
        size_t used = 0, needed = 0;
        bytes_of(exist_hex, stream);
        stream[rows[i].offset] = 255;
        MOON_CHECK_INT(moon_wire_read_frame(MOON_WIRE_REQUEST, stream, rows[i].offset + 1, MOON_WIRE_FRAME_BYTES_MAX,
                                            &frame, &used, &needed, &error),
                       MOON_ERR_SYNTAX);
        MOON_CHECK_TEXT(error.message, rows[i].message);
    }
}

/* Every length at 0, 1, one below and above what is there, and at its maximum. */
static void false_lengths_are_refused_or_waited_for(void) {
    static const uint32_t lengths[] = {0, 1, 22, 23, 24, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t at = 12; at <= 16; at += 4) {
            uint8_t stream[128];
            struct moon_wire_frame frame;
            struct moon_error error;
            size_t used = 0, needed = 0, length = bytes_of(exist_hex, stream);
            for (size_t byte = 0; byte < 4; byte++)
                stream[at + byte] = (uint8_t)(lengths[i] >> 8 * byte);
            int status = moon_wire_read_frame(MOON_WIRE_REQUEST, stream, length, MOON_WIRE_FRAME_BYTES_MAX, &frame,
                                              &used, &needed, &error);
            size_t whole = 20 + (size_t)lengths[i] + (at == 16 ? 23 : 0);
            MOON_CHECK_INT(status, lengths[i] >= 0x7fffffff ? MOON_ERR_LIMIT : 0);
            if (!status) {
                MOON_CHECK_INT(needed, whole);
                MOON_CHECK_INT(used, whole <= length ? whole : 0);
            }
        }
}

static void the_limit_counts_body_and_attachment(void) {
    uint8_t stream[20];
    struct moon_wire_frame frame;
    struct moon_error error = {0};
    size_t used = 0, needed = 0;
    bytes_of("150000000000000056bb817b0600000005000000", stream);
    MOON_CHECK_INT(moon_wire_read_frame(MOON_WIRE_REQUEST, stream, 20, 11, &frame, &used, &needed, &error), 0);
    MOON_CHECK_INT(needed, 31);
    MOON_CHECK_INT(moon_wire_read_frame(MOON_WIRE_REQUEST, stream, 20, 10, &frame, &used, &needed, &error),
                   MOON_ERR_LIMIT);
    MOON_CHECK_TEXT(error.message, "a body of 6 and an attachment of 5 bytes at offset 12: over 10 together");
}

static void frames_are_written_as_they_were_read(void) {
    uint8_t stream[128];
    struct moon_wire_frame frame;
    struct moon_error error;
    struct moon_text out;
    size_t used = 0, needed = 0;
    size_t length = bytes_of("1500000007000000095f3889020000000300000001020304050607", stream);
    moon_text_open(&out, moon_memory_heap());
    MOON_CHECK_INT(moon_wire_read_frame(MOON_WIRE_REQUEST, stream, length, 100, &frame, &used, &needed, &error), 0);
    MOON_CHECK_INT(frame.attachment[2], 5);
    moon_wire_write_frame(&frame, &out);
    MOON_CHECK_INT(out.length, used);
    MOON_CHECK_INT(memcmp(out.data, stream, used), 0);
    moon_text_close(&out);
}

static int read_failure(struct moon_memory *memory, const char *hex, struct moon_wire_failure *failure, char *message) {
    uint8_t stream[128];
    struct moon_arena arena;
    struct moon_wire_frame frame;
    struct moon_error error;
    size_t used = 0, needed = 0, length = bytes_of(hex, stream);
    moon_arena_open(&arena, memory);
    MOON_CHECK_INT(moon_wire_read_frame(MOON_WIRE_RESPONSE, stream, length, 1000, &frame, &used, &needed, &error), 0);
    int status = moon_wire_read_failure(&arena, &frame, failure, &error);
    if (!status)
        snprintf(message, 64, "%.*s", (int)failure->length, (const char *)failure->message);
    moon_arena_close(&arena);
    return status;
}

static void error_answers_are_read_and_written(void) {
    struct moon_wire_failure failure = {0};
    struct moon_text out, hex;
    char message[64] = "";
    moon_text_open(&out, moon_memory_heap());
    moon_text_open(&hex, moon_memory_heap());
    MOON_CHECK_INT(read_failure(moon_memory_heap(), unknown_hex, &failure, message), 0);
    MOON_CHECK_INT(failure.code, MOON_WIRE_RPC_NOT_REGISTERED);
    MOON_CHECK_TEXT(message, "the rpc function not registered");
    moon_wire_write_failure(0x1a, MOON_WIRE_RPC_NOT_REGISTERED, message, true, &out);
    moon_text_hex(&hex, out.data, out.length);
    MOON_CHECK_TEXT(moon_text_value(&hex), unknown_hex);
    moon_text_close(&hex);
    moon_text_close(&out);
    MOON_CHECK_INT(read_failure(moon_memory_heap(),
                                "15000b001a0000000400000000000000"
                                "77facf9d",
                                &failure, message),
                   MOON_ERR_SYNTAX);
}

/* Code 255: the number is in the body. The hash is computed, so that the test needs no table either. */
static void extended_codes_are_in_the_body(void) {
    struct moon_wire_failure failure = {0};
    char message[64] = "", hex[128];
    static const uint8_t text[] = {0xfd, 0x08, 0x80, 0x0c, 0xff};
    uint32_t hash = __builtin_bswap32(moon_wire_type_hash(text, sizeof text));
    snprintf(hex, sizeof hex,
             "1500ff000000000009000000"
             "00000000"
             "%08x"
             "e803"
             "026869",
             hash);
    MOON_CHECK_INT(read_failure(moon_memory_heap(), hex, &failure, message), 0);
    MOON_CHECK_INT(failure.code, 1000);
    MOON_CHECK_TEXT(message, "hi");
}

static int fail_once(struct moon_memory *memory, const void *context) {
    struct moon_wire_failure failure;
    struct moon_text out;
    char message[64];
    (void)context;
    moon_text_open(&out, memory);
    moon_wire_write_failure(1, MOON_WIRE_RPC_INVALID_ARGUMENTS, "invalid rpc arg", true, &out);
    int status = out.failed ? MOON_ERR_MEMORY : read_failure(memory, unknown_hex, &failure, message);
    moon_text_close(&out);
    return status;
}
static void refused_memory_is_reported(void) {
    moon_unit_refuse_memory(fail_once, NULL);
}

static void codes_have_names(void) {
    MOON_CHECK_TEXT(moon_wire_rpc_error_name(MOON_WIRE_RPC_INVALID_ARGUMENTS), "invalid_rpc_arguments");
    MOON_CHECK_TEXT(moon_wire_rpc_error_name(MOON_WIRE_RPC_NOT_REGISTERED), "function_not_registered");
    MOON_CHECK_TEXT(moon_wire_rpc_error_name(17), "serial_number_conflict");
    MOON_CHECK_TEXT(moon_wire_rpc_error_name(18), "unknown");
    MOON_CHECK_TEXT(moon_wire_status_name(0), "OK");
    MOON_CHECK_TEXT(moon_wire_status_name(-704), "OBJECT_NOT_FOUND");
    MOON_CHECK_TEXT(moon_wire_status_name(-1702), "TENANT_NOT_EMPTY");
    MOON_CHECK_TEXT(moon_wire_status_name(1), "unknown");
    MOON_CHECK_TEXT(moon_wire_status_name(INT64_MIN), "unknown");
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"frames in a row are read one by one", frames_in_a_row_are_read_one_by_one},
        {"partial frames say how much is needed", partial_frames_say_how_much_is_needed},
        {"a wrong start is refused at its byte", a_wrong_start_is_refused_at_its_byte},
        {"false lengths are refused or waited for", false_lengths_are_refused_or_waited_for},
        {"the limit counts body and attachment", the_limit_counts_body_and_attachment},
        {"frames are written as they were read", frames_are_written_as_they_were_read},
        {"error answers are read and written", error_answers_are_read_and_written},
        {"extended codes are in the body", extended_codes_are_in_the_body},
        {"refused memory is reported", refused_memory_is_reported},
        {"codes have names", codes_have_names},
        {NULL, NULL},
    };
    return moon_unit_main("frame", cases, argc, argv);
}
