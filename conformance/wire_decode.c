/* SPDX-License-Identifier: Apache-2.0 */
/* A captured Mooncake stream in words: frame by frame, with the names of functions and fields. */
#include "conformance/wire_decode.h"

#include "ref/base/cursor.h"
#include "ref/wire/data.h"
#include "ref/wire/frame.h"
#include "ref/wire/handshake.h"
#include "ref/wire/status.h"
#include "ref/wire/value.h"

#include <string.h>

enum {
    RELEASES_MAX = 8,
    OPEN_CALLS = 4096,    /* requests remembered by the low bits of their number, until the answer comes */
    SHOWN_BYTES_MAX = 64, /* of raw data */
    HANDSHAKE_GUESS_BYTES = 10,
};

/* ---- hex */

static bool is_hex_or_space(const char *bytes, size_t length, size_t *digits) {
    *digits = 0;
    for (size_t i = 0; i < length; i++) {
        bool is_space = bytes[i] != '\0' && strchr(" \t\r\n", bytes[i]);
        bool is_digit = bytes[i] != '\0' && strchr("0123456789abcdefABCDEF", bytes[i]);
        if (!is_space && !is_digit)
            return false;
        *digits += is_digit;
    }
    return true;
}

int moon_wire_unhex(struct moon_text *text, struct moon_error *error) {
    size_t digits = 0, at = 0;
    bool is_hex = is_hex_or_space(moon_text_value(text), text->length, &digits);
    if (is_hex && digits == 0)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "the stream is empty");
    if (is_hex && digits % 2)
        return moon_fail(error, MOON_ERR_SYNTAX, NULL, "hex with an odd number of digits: %zu", digits);
    if (!is_hex)
        return MOON_OK;
    for (size_t i = 0; i < text->length; i++)
        if (!strchr(" \t\r\n", text->data[i]))
            text->data[at++] = text->data[i];
    struct moon_text bytes;
    moon_text_open(&bytes, text->memory);
    moon_text_repeat(&bytes, '\0', digits / 2);
    if (!bytes.failed) {
        moon_hex_decode(text->data, digits, (uint8_t *)bytes.data); /* cannot fail: all are digits */
        moon_text_clear(text);
        moon_text_bytes(text, bytes.data, bytes.length);
    }
    int status = bytes.failed ? moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory") : MOON_OK;
    moon_text_close(&bytes);
    return status;
}

/* ---- one stream */

struct stream {
    const uint8_t *bytes;
    size_t length, at;
    struct moon_text *words;
    size_t faults;
    struct moon_wire_protocol protocols[RELEASES_MAX];
    size_t protocol_count;
    struct {
        uint32_t sequence;
        const char *function; /* NULL: free */
    } open_calls[OPEN_CALLS];
};

static const uint8_t *here(const struct stream *stream) {
    return stream->bytes + stream->at;
}
static size_t left(const struct stream *stream) {
    return stream->length - stream->at;
}

static void tell_fault(struct stream *stream, size_t offset, const struct moon_error *error) {
    stream->faults++;
    moon_text_format(stream->words, "    error in the part that starts at offset %zu: %s%s%s\n", offset, error->where,
                     error->where[0] ? ": " : "", error->message);
}

static void tell_bytes(struct stream *stream, const char *title, const uint8_t *bytes, size_t length) {
    if (length == 0)
        return;
    moon_text_format(stream->words, "    %s: %zu bytes ", title, length);
    moon_text_hex(stream->words, bytes, length < SHOWN_BYTES_MAX ? length : SHOWN_BYTES_MAX);
    moon_text_string(stream->words, length > SHOWN_BYTES_MAX ? "...\n" : "\n");
}

static void tell_json(struct stream *stream, const char *name, const struct moon_json *json) {
    moon_text_format(stream->words, "    %s: ", name);
    if (json)
        moon_json_write(json, MOON_JSON_COMPACT, stream->words);
    else
        stream->words->failed = true;
    moon_text_char(stream->words, '\n');
}

/* The call of the newest release in which this function has these hashes; else of the newest that has it at all. */
static const struct moon_wire_call *find_call(const struct stream *stream, const char *name, uint32_t id, bool result,
                                              uint32_t hash, const struct moon_wire_release **release) {
    const struct moon_wire_call *known = NULL;
    for (size_t i = 0; i < stream->protocol_count; i++) {
        const struct moon_wire_protocol *protocol = &stream->protocols[i];
        const struct moon_wire_call *call = name     ? moon_wire_call_by_name(protocol, name)
                                            : result ? moon_wire_call_by_result(protocol, hash)
                                                     : moon_wire_call_by_id(protocol, id);
        bool same = call && (result ? call->result_hash : call->arguments_hash) == hash;
        if (same || (call && !known)) {
            known = call;
            *release = protocol->release;
        }
        if (same)
            break;
    }
    return known;
}

static bool knows_function(const struct stream *stream, uint32_t id) {
    for (size_t i = 0; i < stream->protocol_count; i++)
        if (moon_wire_call_by_id(&stream->protocols[i], id))
            return true;
    return false;
}

static void tell_value(struct stream *stream, const struct moon_wire_frame *frame, const struct moon_wire_type *type) {
    bool arguments = frame->direction == MOON_WIRE_REQUEST;
    struct moon_arena arena;
    struct moon_error error = {0};
    struct moon_wire_value *value = NULL;
    struct moon_wire_head head;
    moon_arena_open(&arena, moon_memory_heap());
    if (moon_wire_decode(&arena, type, arguments, frame->body, frame->body_length, &head, &value, &error)) {
        tell_fault(stream, (size_t)(frame->body - stream->bytes), &error);
        tell_bytes(stream, "body", frame->body, frame->body_length);
    } else if (arguments) {
        const struct moon_wire_member *member = type->members;
        for (const struct moon_wire_value *one = value->first; one; one = one->next, member++)
            tell_json(stream, member->name, moon_wire_to_json(&arena, one));
    } else if (type->kind == MOON_WIRE_EXPECTED && !value->number) {
        int64_t code = (int64_t)value->second;
        moon_text_format(stream->words, "    error: %lld (%s)\n", (long long)code, moon_wire_status_name(code));
    } else {
        tell_json(stream, "result", moon_wire_to_json(&arena, value));
    }
    moon_arena_close(&arena);
}

static uint32_t hash_of(const struct moon_wire_frame *frame) {
    struct moon_wire_head head = {.hash = 0};
    size_t at = 0;
    return moon_wire_read_head(frame->body, frame->body_length, &head, &at, NULL) ? 0 : head.hash;
}

static void tell_request(struct stream *stream, const struct moon_wire_frame *frame) {
    const struct moon_wire_release *release = NULL;
    const struct moon_wire_call *call = find_call(stream, NULL, frame->function_id, false, hash_of(frame), &release);
    size_t slot = frame->sequence % OPEN_CALLS;
    moon_text_format(stream->words, "offset %zu: request %u, ", stream->at, frame->sequence);
    stream->open_calls[slot].sequence = frame->sequence;
    stream->open_calls[slot].function = call ? call->function->name : NULL;
    if (call) {
        moon_text_format(stream->words, "%s, Mooncake %s\n", call->function->name, release->name);
        tell_value(stream, frame, call->function->arguments);
    } else {
        moon_text_format(stream->words, "unknown function 0x%08x\n", frame->function_id);
        tell_bytes(stream, "body", frame->body, frame->body_length);
    }
}

static void tell_failure(struct stream *stream, const struct moon_wire_frame *frame) {
    struct moon_arena arena;
    struct moon_error error = {0};
    struct moon_wire_failure failure;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_format(stream->words, "offset %zu: response %u, refused with code %u (%s)\n", stream->at, frame->sequence,
                     frame->error_code, moon_wire_rpc_error_name(frame->error_code));
    if (moon_wire_read_failure(&arena, frame, &failure, &error))
        tell_fault(stream, (size_t)(frame->body - stream->bytes), &error);
    else
        tell_json(stream, "message", moon_json_bytes(&arena, (const char *)failure.message, failure.length));
    moon_arena_close(&arena);
}

static void tell_response(struct stream *stream, const struct moon_wire_frame *frame) {
    const struct moon_wire_release *release = NULL;
    size_t slot = frame->sequence % OPEN_CALLS;
    const char *asked = stream->open_calls[slot].sequence == frame->sequence ? stream->open_calls[slot].function : NULL;
    uint32_t hash = hash_of(frame);
    stream->open_calls[slot].function = NULL;
    if (frame->error_code) {
        tell_failure(stream, frame);
        return;
    }
    const struct moon_wire_call *call = find_call(stream, asked, 0, true, hash, &release);
    moon_text_format(stream->words, "offset %zu: response %u, ", stream->at, frame->sequence);
    if (call) {
        moon_text_format(stream->words, asked ? "%s, Mooncake %s\n" : "of the type that %s returns, Mooncake %s\n",
                         call->function->name, release->name);
        tell_value(stream, frame, call->function->result);
    } else {
        moon_text_format(stream->words, "of unknown type 0x%08x\n", hash);
        tell_bytes(stream, "body", frame->body, frame->body_length);
    }
}

/* ---- frames: each teller returns the bytes that it used, 0 if the rest of the stream cannot be read on */

static size_t tell_cut(struct stream *stream, const char *what, size_t needed) {
    struct moon_error error = {0};
    moon_text_format(stream->words, "offset %zu: %s\n", stream->at, what);
    moon_fail(&error, MOON_ERR_SYNTAX, NULL, "cut: %zu bytes of %zu", left(stream), needed);
    tell_fault(stream, stream->at, &error);
    return 0;
}

static size_t tell_rpc(struct stream *stream, enum moon_wire_direction direction) {
    const char *what = direction == MOON_WIRE_REQUEST ? "request" : "response";
    struct moon_wire_frame frame;
    struct moon_error error = {0};
    size_t used = 0, needed = 0;
    if (moon_wire_read_frame(direction, here(stream), left(stream), MOON_WIRE_FRAME_BYTES_MAX, &frame, &used, &needed,
                             &error)) {
        moon_text_format(stream->words, "offset %zu: %s\n", stream->at, what);
        tell_fault(stream, stream->at, &error);
        return 0;
    }
    if (used == 0)
        return tell_cut(stream, what, needed);
    if (direction == MOON_WIRE_REQUEST)
        tell_request(stream, &frame);
    else
        tell_response(stream, &frame);
    tell_bytes(stream, "attachment", frame.attachment, frame.attachment_length);
    return used;
}

static size_t tell_handshake(struct stream *stream) {
    static const char *const types[] = {"Connection", "Metadata", "Notify", "Probe"};
    struct moon_wire_handshake frame;
    struct moon_error error = {0};
    struct moon_arena arena;
    struct moon_json *json = NULL;
    size_t used = 0, needed = 0;
    if (moon_wire_read_handshake(here(stream), left(stream), MOON_WIRE_HANDSHAKE_BYTES_MAX, &frame, &used, &needed,
                                 &error)) {
        moon_text_format(stream->words, "offset %zu: handshake\n", stream->at);
        tell_fault(stream, stream->at, &error);
        return 0;
    }
    if (used == 0)
        return tell_cut(stream, "handshake", needed);
    moon_text_format(stream->words, "offset %zu: handshake, %s%s\n", stream->at, types[frame.type],
                     frame.old_style ? ", old style" : "");
    moon_arena_open(&arena, moon_memory_heap());
    if (moon_json_read(&arena, "handshake", frame.json, frame.length, MOON_JSON_PYTHON, &json, &error))
        tell_fault(stream, (size_t)((const uint8_t *)frame.json - stream->bytes), &error);
    else
        tell_json(stream, "content", json);
    moon_arena_close(&arena);
    return used;
}

static size_t tell_data_request(struct stream *stream) {
    struct moon_wire_data_request request;
    if (left(stream) < MOON_WIRE_DATA_REQUEST_BYTES)
        return tell_cut(stream, "data request", MOON_WIRE_DATA_REQUEST_BYTES);
    moon_wire_read_data_request(here(stream), &request);
    moon_text_format(stream->words,
                     "offset %zu: data request, version %u, opcode %u, %s %llu bytes at address 0x%llx\n", stream->at,
                     request.version, request.opcode, request.write ? "writes" : "reads",
                     (unsigned long long)request.size, (unsigned long long)request.address);
    size_t arrived = left(stream) - MOON_WIRE_DATA_REQUEST_BYTES;
    size_t payload = !request.write ? 0 : request.size < arrived ? (size_t)request.size : arrived;
    tell_bytes(stream, "payload", here(stream) + MOON_WIRE_DATA_REQUEST_BYTES, payload);
    return MOON_WIRE_DATA_REQUEST_BYTES + payload;
}

/* Data after a status has no length of its own: all that is left is shown as data. */
static size_t tell_data_answer(struct stream *stream) {
    struct moon_error error = {0};
    uint32_t status = 0;
    if (left(stream) < MOON_WIRE_DATA_STATUS_BYTES)
        return tell_cut(stream, "data answer", MOON_WIRE_DATA_STATUS_BYTES);
    if (moon_wire_read_data_status(here(stream), &status, &error)) {
        moon_text_format(stream->words, "offset %zu: data answer\n", stream->at);
        tell_fault(stream, stream->at, &error);
        return 0;
    }
    moon_text_format(stream->words, "offset %zu: data answer, status %u (%s)\n", stream->at, status,
                     status == MOON_WIRE_DATA_OK         ? "ok"
                     : status == MOON_WIRE_DATA_REJECTED ? "address rejected"
                                                         : "unknown");
    size_t length = left(stream) - MOON_WIRE_DATA_STATUS_BYTES;
    const uint8_t *data = here(stream) + MOON_WIRE_DATA_STATUS_BYTES;
    uint32_t next = 0;
    if (length >= MOON_WIRE_DATA_STATUS_BYTES && moon_wire_read_data_status(data, &next, NULL) == MOON_OK)
        length = 0; /* the status of a write: the next one follows at once */
    tell_bytes(stream, "data", data, length);
    return MOON_WIRE_DATA_STATUS_BYTES + length;
}

/* ---- what a frame is */

/* A function id that some release knows tells a request; else the lengths of a response must fit the stream. */
static enum moon_wire_kind_of_frame guess_rpc(const struct stream *stream) {
    struct moon_cursor cursor;
    moon_cursor_open(&cursor, here(stream), left(stream));
    moon_cursor_bytes(&cursor, 8);
    uint32_t first = moon_cursor_u32_le(&cursor), second = moon_cursor_u32_le(&cursor);
    if (knows_function(stream, first))
        return MOON_WIRE_RPC_REQUEST;
    uint64_t response = (uint64_t)MOON_WIRE_RESPONSE_HEADER_BYTES + first + second;
    return !cursor.failed && response > left(stream) && here(stream)[2] == 0 ? MOON_WIRE_RPC_REQUEST
                                                                             : MOON_WIRE_RPC_RESPONSE;
}

static bool looks_like_handshake(const uint8_t *at, size_t length) {
    return length >= HANDSHAKE_GUESS_BYTES && at[3] == 0 && at[4] == 0 && at[5] == 0 && at[6] == 0 && at[7] == 0 &&
           (at[8] == '{' || (at[8] <= MOON_WIRE_HANDSHAKE_PROBE && at[9] == '{'));
}

static enum moon_wire_kind_of_frame guess(const struct stream *stream) {
    const uint8_t *at = here(stream);
    size_t length = left(stream);
    uint32_t status = 0;
    if (looks_like_handshake(at, length))
        return MOON_WIRE_HANDSHAKE;
    if (length >= MOON_WIRE_DATA_STATUS_BYTES && moon_wire_read_data_status(at, &status, NULL) == MOON_OK)
        return MOON_WIRE_DATA_ANSWER;
    if (length >= 4 && at[0] == MOON_WIRE_MAGIC && at[1] == 0 && at[3] == 0)
        return guess_rpc(stream);
    if (length >= MOON_WIRE_DATA_REQUEST_BYTES && (at[16] & ~0x80) <= 1)
        return MOON_WIRE_DATA_REQUEST;
    return MOON_WIRE_ANY;
}

static size_t tell_frame(struct stream *stream, enum moon_wire_kind_of_frame kind) {
    switch (kind) {
    case MOON_WIRE_RPC_REQUEST:
        return tell_rpc(stream, MOON_WIRE_REQUEST);
    case MOON_WIRE_RPC_RESPONSE:
        return tell_rpc(stream, MOON_WIRE_RESPONSE);
    case MOON_WIRE_HANDSHAKE:
        return tell_handshake(stream);
    case MOON_WIRE_DATA_REQUEST:
        return tell_data_request(stream);
    case MOON_WIRE_DATA_ANSWER:
        return tell_data_answer(stream);
    default:
        stream->faults++;
        moon_text_format(stream->words, "offset %zu: no frame is known that starts like this\n", stream->at);
        tell_bytes(stream, "rest", here(stream), left(stream));
        return 0;
    }
}

static int open_protocols(struct stream *stream, const struct moon_wire_release *release) {
    for (const struct moon_wire_release *const *one = moon_wire_releases; *one; one++)
        if (!release || *one == release) {
            int status =
                moon_wire_protocol_open(&stream->protocols[stream->protocol_count++], *one, moon_memory_heap());
            if (status)
                return status;
        }
    return MOON_OK;
}

int moon_wire_decode_stream(const void *stream, size_t length, enum moon_wire_kind_of_frame kind,
                            const struct moon_wire_release *release, struct moon_text *words, size_t *faults,
                            struct moon_error *error) {
    struct moon_arena arena;
    size_t used = 1;
    moon_arena_open(&arena, moon_memory_heap());
    struct stream *state = moon_arena_alloc(&arena, sizeof *state); /* too large for the stack */
    int status = state ? open_protocols(state, release) : MOON_ERR_MEMORY;
    if (status) {
        moon_fail(error, status, NULL, "out of memory");
        goto out;
    }
    state->bytes = stream;
    state->length = length;
    state->words = words;
    if (kind == MOON_WIRE_ANY && guess(state) == MOON_WIRE_ANY) {
        status = moon_fail(error, MOON_ERR_SYNTAX, NULL,
                           "no frame is known that starts like the first of these %zu bytes; --kind says what it is",
                           length);
        goto out;
    }
    while (state->at < length && used > 0) {
        used = tell_frame(state, kind == MOON_WIRE_ANY ? guess(state) : kind);
        state->at += used;
    }
    *faults = state->faults;
out:
    moon_arena_close(&arena);
    return status;
}
