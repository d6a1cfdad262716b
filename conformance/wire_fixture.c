/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded messages of a Mooncake release, judged against the codecs of ref/wire in both directions. */
#include "conformance/wire_fixture.h"

#include "ref/wire/data.h"
#include "ref/wire/frame.h"
#include "ref/wire/handshake.h"
#include "ref/wire/release.h"
#include "ref/wire/value.h"

#include <stdio.h>
#include <string.h>

struct judge {
    struct moon_wire_protocol protocol;
    struct moon_arena arena; /* of one message */
    struct moon_text *report;
    size_t passed, failed;
};

/* One message: its recorded bytes, and what the codecs make of them. `why` is a sentence when they disagree. */
struct message {
    const struct moon_json *json, *fields;
    const uint8_t *bytes;
    size_t length;
    struct moon_text written;
    struct moon_error error;
    const char *why;
};

static bool is_written(struct message *message, size_t count, const char *what) {
    bool same = !message->written.failed && message->written.length == count &&
                (count == 0 || memcmp(message->written.data, message->bytes, count) == 0);
    if (!same)
        message->why = what;
    moon_text_clear(&message->written);
    return same;
}

static bool has_integer(const struct moon_json *object, const char *name, uint64_t value) {
    const struct moon_json *member = moon_json_member(object, name);
    return moon_json_is(member, MOON_JSON_INTEGER) && member->fits && (uint64_t)member->integer == value;
}

/* Writes `value` in `frame` and compares with what was recorded. */
static bool is_rebuilt(struct judge *judge, struct message *message, struct moon_wire_frame frame,
                       const struct moon_wire_value *value, bool with_text, const char *what) {
    struct moon_text body;
    moon_text_open(&body, judge->arena.memory);
    moon_wire_encode(value, frame.direction == MOON_WIRE_REQUEST, with_text, &body);
    frame.body = (const uint8_t *)moon_text_value(&body);
    frame.body_length = (uint32_t)body.length;
    moon_wire_write_frame(&frame, &message->written);
    bool same = is_written(message, message->length, what);
    moon_text_close(&body);
    return same;
}

/* The body without type text means the same. */
static bool is_short_form_read(struct judge *judge, struct message *message, const struct moon_wire_value *value,
                               bool arguments) {
    struct moon_wire_value *again = NULL;
    struct moon_wire_head head;
    moon_wire_encode(value, arguments, false, &message->written);
    int status = moon_wire_decode(&judge->arena, value->type, arguments, moon_text_value(&message->written),
                                  message->written.length, &head, &again, &message->error);
    bool same = !status && !head.text && moon_json_equal(moon_wire_to_json(&judge->arena, again), message->fields);
    if (!same)
        message->why = "the body without type text is read as something else";
    moon_text_clear(&message->written);
    return same;
}

static bool body_passes(struct judge *judge, struct message *message, const struct moon_wire_frame *frame,
                        const struct moon_wire_type *type) {
    bool arguments = frame->direction == MOON_WIRE_REQUEST;
    struct moon_wire_head head;
    struct moon_wire_value *value = NULL, *built = NULL;
    message->why = "the body is refused";
    if (moon_wire_decode(&judge->arena, type, arguments, frame->body, frame->body_length, &head, &value,
                         &message->error))
        return false;
    message->why = "the decoded fields are others";
    if (!moon_json_equal(moon_wire_to_json(&judge->arena, value), message->fields))
        return false;
    message->why = "the fields are refused";
    if (moon_wire_from_json(&judge->arena, type, message->fields, &built, &message->error))
        return false;
    return is_rebuilt(judge, message, *frame, value, head.text != NULL, "what was decoded is encoded otherwise") &&
           is_rebuilt(judge, message, *frame, built, head.text != NULL, "the fields are encoded otherwise") &&
           is_short_form_read(judge, message, value, arguments);
}

/* A response with an error code, or a call that the recorder sent to provoke one. */
static bool failure_passes(struct judge *judge, struct message *message, const struct moon_wire_frame *frame) {
    struct moon_wire_failure failure;
    const struct moon_json *text = moon_json_member(message->fields, "message");
    message->why = "the error answer is refused";
    if (moon_wire_read_failure(&judge->arena, frame, &failure, &message->error))
        return false;
    message->why = "the error answer is another";
    if (!has_integer(message->fields, "rpc_error", failure.code) || !moon_json_is(text, MOON_JSON_STRING) ||
        text->length != failure.length || memcmp(text->bytes, failure.message, failure.length) != 0)
        return false;
    moon_wire_write_failure(frame->sequence, frame->error_code, text->bytes, true, &message->written);
    return is_written(message, message->length, "the error answer is encoded otherwise");
}

static bool provoking_passes(struct judge *judge, struct message *message, const struct moon_wire_frame *frame,
                             const struct moon_wire_call *call) {
    struct moon_wire_value *value;
    message->why = "a call that the release refused is taken";
    if (call && moon_wire_decode(&judge->arena, call->function->arguments, true, frame->body, frame->body_length, NULL,
                                 &value, &message->error) != MOON_ERR_SCHEMA)
        return false;
    moon_wire_write_frame(frame, &message->written);
    return is_written(message, message->length, "the frame is written otherwise");
}

static bool rpc_passes(struct judge *judge, struct message *message) {
    bool is_request = moon_json_is_string(moon_json_member(message->json, "direction"), "request");
    const struct moon_json *name = moon_json_member(message->json, "rpc");
    const struct moon_wire_call *call = moon_wire_call_by_name(&judge->protocol, name->bytes);
    struct moon_wire_frame frame;
    size_t used = 0, needed = 0;
    message->why = "the frame is refused";
    if (moon_wire_read_frame(is_request ? MOON_WIRE_REQUEST : MOON_WIRE_RESPONSE, message->bytes, message->length,
                             MOON_WIRE_FRAME_BYTES_MAX, &frame, &used, &needed, &message->error))
        return false;
    message->why = "the frame has another length, sequence number or function";
    if (used != message->length || !has_integer(message->json, "seq", frame.sequence) ||
        (is_request && moon_wire_call_by_id(&judge->protocol, frame.function_id) != call))
        return false;
    if (frame.error_code)
        return failure_passes(judge, message, &frame);
    if (moon_json_is(message->fields, MOON_JSON_NULL))
        return provoking_passes(judge, message, &frame, call);
    message->why = "the release's table has no such function";
    return call && body_passes(judge, message, &frame, is_request ? call->function->arguments : call->function->result);
}

static bool handshake_passes(struct judge *judge, struct message *message) {
    struct moon_wire_handshake frame;
    struct moon_wire_descriptor descriptor;
    struct moon_json *tree = NULL;
    size_t used = 0, needed = 0;
    message->why = "the handshake is refused";
    if (moon_wire_read_handshake(message->bytes, message->length, MOON_WIRE_HANDSHAKE_BYTES_MAX, &frame, &used, &needed,
                                 &message->error) ||
        moon_wire_read_descriptor(&judge->arena, frame.json, frame.length, &descriptor, &message->error) ||
        moon_json_read(&judge->arena, "handshake", frame.json, frame.length, MOON_JSON_STRICT, &tree, &message->error))
        return false;
    message->why = "the descriptor is another";
    if (used != message->length || frame.type != MOON_WIRE_HANDSHAKE_METADATA ||
        !moon_json_equal(tree, message->fields))
        return false;
    struct moon_text json;
    moon_text_open(&json, judge->arena.memory);
    moon_wire_write_descriptor(&judge->arena, &descriptor, judge->protocol.release->metadata, &json);
    frame.json = moon_text_value(&json);
    frame.length = json.length;
    moon_wire_write_handshake(&frame, &message->written);
    bool same = is_written(message, message->length, "the descriptor is written otherwise");
    moon_text_close(&json);
    return same;
}

static bool data_request_passes(struct judge *judge, struct message *message) {
    struct moon_wire_data_request request;
    message->why = "the data header is cut";
    if (message->length < MOON_WIRE_DATA_REQUEST_BYTES)
        return false;
    moon_wire_read_data_request(message->bytes, &request);
    struct moon_json *seen = moon_json_object(&judge->arena);
    moon_json_set(&judge->arena, seen, "size", moon_json_uint(&judge->arena, request.size));
    moon_json_set(&judge->arena, seen, "addr", moon_json_uint(&judge->arena, request.address));
    moon_json_set(&judge->arena, seen, "opcode", moon_json_uint(&judge->arena, request.opcode));
    moon_json_set(&judge->arena, seen, "version", moon_json_uint(&judge->arena, request.version));
    moon_json_set(&judge->arena, seen, "op", moon_json_string(&judge->arena, request.write ? "WRITE" : "READ"));
    moon_json_set(&judge->arena, seen, "padding",
                  moon_json_hex(&judge->arena, request.padding, sizeof request.padding));
    moon_json_set(&judge->arena, seen, "payload_len",
                  moon_json_uint(&judge->arena, message->length - MOON_WIRE_DATA_REQUEST_BYTES));
    message->why = "the data header is another";
    if (!moon_json_equal(seen, message->fields))
        return false;
    moon_wire_write_data_request(&request, &message->written);
    return is_written(message, MOON_WIRE_DATA_REQUEST_BYTES, "the data header is written otherwise");
}

static bool data_status_passes(struct message *message) {
    uint32_t status = 0;
    message->why = "the status is refused or another";
    if (message->length < MOON_WIRE_DATA_STATUS_BYTES ||
        moon_wire_read_data_status(message->bytes, &status, &message->error) ||
        !has_integer(message->fields, "status", status) ||
        !has_integer(message->fields, "payload_len", message->length - MOON_WIRE_DATA_STATUS_BYTES))
        return false;
    moon_wire_write_data_status(status, &message->written);
    return is_written(message, MOON_WIRE_DATA_STATUS_BYTES, "the status is written otherwise");
}

/* A continuation of raw bytes has no fields, and nothing to judge. */
static bool data_passes(struct judge *judge, struct message *message) {
    if (moon_json_is(message->fields, MOON_JSON_NULL))
        return true;
    return moon_json_is_string(moon_json_member(message->json, "direction"), "request")
               ? data_request_passes(judge, message)
               : data_status_passes(message);
}

static bool message_passes(struct judge *judge, struct message *message) {
    const struct moon_json *hex = moon_json_member(message->json, "hex"), *rpc = moon_json_member(message->json, "rpc");
    message->fields = moon_json_member(message->json, "fields");
    message->why = "the fixture lacks rpc, hex or fields";
    if (!moon_json_is(hex, MOON_JSON_STRING) || !moon_json_is(rpc, MOON_JSON_STRING) || !message->fields)
        return false;
    uint8_t *bytes = moon_arena_alloc(&judge->arena, hex->length / 2);
    if (!bytes || moon_hex_decode(hex->bytes, hex->length, bytes))
        return false;
    message->bytes = bytes;
    message->length = hex->length / 2;
    return strncmp(rpc->bytes, "te-handshake", strlen("te-handshake")) == 0 ? handshake_passes(judge, message)
           : strcmp(rpc->bytes, "te-tcp-data") == 0                         ? data_passes(judge, message)
                                                                            : rpc_passes(judge, message);
}

static void judge_message(struct judge *judge, const char *source, const struct moon_json *json) {
    struct message message = {.json = json};
    moon_arena_open(&judge->arena, moon_memory_heap());
    moon_text_open(&message.written, moon_memory_heap());
    if (message_passes(judge, &message)) {
        judge->passed++;
    } else {
        const struct moon_json *rpc = moon_json_member(json, "rpc");
        judge->failed++;
        moon_text_format(judge->report, "%s:%u: %s: %s%s%s\n", source, json->line, rpc ? rpc->bytes : "?", message.why,
                         message.error.message[0] ? ": " : "", message.error.message);
    }
    moon_text_close(&message.written);
    moon_arena_close(&judge->arena);
}

static bool number_is(const struct moon_json *function, const char *member, uint32_t number) {
    char text[16];
    snprintf(text, sizeof text, "0x%08x", number);
    return moon_json_is_string(moon_json_member(function, member), text);
}

static bool text_is(struct judge *judge, const struct moon_json *function, const char *member,
                    const struct moon_wire_type *type, bool arguments) {
    struct moon_text text, hex;
    moon_text_open(&text, judge->report->memory);
    moon_text_open(&hex, judge->report->memory);
    if (arguments)
        moon_wire_arguments_text(type, &text);
    else
        moon_wire_type_text(type, &text);
    moon_text_hex(&hex, moon_text_value(&text), text.length);
    bool same = moon_json_is_string(moon_json_member(function, member), moon_text_value(&hex));
    moon_text_close(&hex);
    moon_text_close(&text);
    return same;
}

static void judge_function(struct judge *judge, const char *source, const struct moon_json *json) {
    const struct moon_json *name = moon_json_member(json, "name");
    const struct moon_wire_call *call =
        moon_json_is(name, MOON_JSON_STRING) ? moon_wire_call_by_name(&judge->protocol, name->bytes) : NULL;
    bool has_arguments = call && call->arguments_hash != 0;
    if (call && number_is(json, "id", call->id) && number_is(json, "result_hash", call->result_hash) &&
        (!has_arguments || number_is(json, "args_hash", call->arguments_hash)) &&
        text_is(judge, json, "args_text", call->function->arguments, true) &&
        text_is(judge, json, "result_text", call->function->result, false)) {
        judge->passed++;
        return;
    }
    judge->failed++;
    moon_text_format(judge->report, "%s:%u: function %s: id, hash or type text is another\n", source, json->line,
                     moon_json_is(name, MOON_JSON_STRING) ? name->bytes : "?");
}

/* Functions of the master that the table has and the release has not. */
static void judge_count(struct judge *judge, const char *source, const struct moon_json *functions) {
    size_t own = 0;
    for (size_t i = 0; i < judge->protocol.count; i++)
        own += strstr(judge->protocol.calls[i].function->name, "::") == NULL;
    if (own == functions->count) {
        judge->passed++;
        return;
    }
    judge->failed++;
    moon_text_format(judge->report, "%s:%u: %zu functions, but the table has %zu\n", source, functions->line,
                     functions->count, own);
}

int moon_wire_fixture_check(const char *source, const struct moon_json *document, size_t *passed, size_t *failed,
                            struct moon_text *report, struct moon_error *error) {
    struct judge judge = {.report = report};
    const char *name = NULL;
    struct moon_json *functions = NULL, *messages = NULL;
    if (!moon_json_is_string(moon_json_member(document, "schema"), "mooncheck-wire/1"))
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, document, "\"schema\" is not \"mooncheck-wire/1\"");
    int status = moon_json_get_string(source, document, "release", true, &name, NULL, error);
    if (!status)
        status = moon_json_get(source, document, "functions", true, MOON_JSON_ARRAY, &functions, error);
    if (!status)
        status = moon_json_get(source, document, "messages", true, MOON_JSON_ARRAY, &messages, error);
    if (status)
        return status;
    const struct moon_wire_release *release = moon_wire_release_find(name);
    if (!release)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, document, "release \"%s\" is unknown", name);
    if (moon_wire_protocol_open(&judge.protocol, release, report->memory))
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory");
    for (const struct moon_json *one = functions->first; one; one = one->next)
        judge_function(&judge, source, one);
    judge_count(&judge, source, functions);
    for (const struct moon_json *one = messages->first; one; one = one->next)
        judge_message(&judge, source, one);
    *passed += judge.passed;
    *failed += judge.failed;
    return MOON_OK;
}
