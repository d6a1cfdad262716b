/* SPDX-License-Identifier: Apache-2.0 */
/* mooncake_config.json as a release loads it. */
#include "ref/config/store_config.h"

#include "ref/base/utf8.h"
#include "ref/config/python_number.h"
#include "ref/config/python_repr.h"

#include <stdio.h>
#include <string.h>

#define DEFAULT_SIZE_BYTES (INT64_C(4) * 1024 * 1024 * 1024)
#define EXACT_INTEGER_MAX  (INT64_C(1) << 53) /* vectors write larger ones as text */

/* Newest first, so that what an older release reads is the rest of the list. */
static const char *const names[] = {
    "tenant_id", "mode",        "enable_offload",      "metadata_server",   "master_server_address",
    "protocol",  "device_name", "global_segment_size", "local_buffer_size", NULL,
};
enum { NAMES_BEFORE_28 = 1, NAMES_BEFORE_22 = 3 };

const char *const *moon_store_config_names(const struct moon_profile *profile) {
    return names + (profile->config_tenant ? 0 : profile->config_mode ? NAMES_BEFORE_28 : NAMES_BEFORE_22);
}

int moon_store_config_since(const char *name) {
    for (int i = 0; names[i]; i++)
        if (strcmp(name, names[i]) == 0)
            return i < NAMES_BEFORE_28 ? 28 : i < NAMES_BEFORE_22 ? 22 : 21;
    return 0;
}

/* ---- before the fields ---- */

static const struct moon_json *next_value(const struct moon_json *value, const struct moon_json *root) {
    if (value->first)
        return value->first;
    while (value != root && !value->next)
        value = value->parent;
    return value == root ? NULL : value->next;
}

/* CONFIG-005: the first integer that int() refuses for its length. */
static int refuse_long_integers(struct moon_arena *arena, const struct moon_json *document,
                                struct moon_exception *raised) {
    for (const struct moon_json *value = document; value; value = next_value(value, document)) {
        if (value->type != MOON_JSON_INTEGER)
            continue;
        size_t digits = value->length - (value->bytes[0] == '-');
        if (digits > MOON_JSON_PYTHON_DIGITS_MAX)
            return moon_raise(arena, raised, "ValueError",
                              "Exceeds the limit (%d digits) for integer string conversion: value has %zu digits; use "
                              "sys.set_int_max_str_digits() to increase the limit",
                              MOON_JSON_PYTHON_DIGITS_MAX, digits);
    }
    return MOON_OK;
}

static int refuse_bytes(struct moon_arena *arena, const char *source, const char *bytes, size_t at,
                        struct moon_exception *raised, struct moon_error *error) {
    uint32_t line = 1, column = 1;
    for (size_t i = 0; i < at; i++) {
        column = bytes[i] == '\n' ? 1 : column + 1;
        line += bytes[i] == '\n';
    }
    char where[MOON_ERROR_WHERE_BYTES];
    snprintf(where, sizeof where, "%s:%u:%u", source, line, column);
    moon_fail(error, MOON_ERR_SYNTAX, where, "byte 0x%02x is not UTF-8", (unsigned)(uint8_t)bytes[at]);
    return moon_raise(arena, raised, "UnicodeDecodeError", "'utf-8' codec can't decode byte 0x%02x in position %zu",
                      (unsigned)(uint8_t)bytes[at], at);
}

/* Offset of the first byte that is no UTF-8, `length` if there is none. */
static size_t utf8_prefix(const char *bytes, size_t length) {
    size_t at = 0;
    while (at < length) {
        uint32_t code_point = 0;
        size_t used = moon_utf8_decode(bytes + at, length - at, &code_point);
        if (used == 0 || (code_point >= 0xD800 && code_point <= 0xDFFF))
            break;
        at += used;
    }
    return at;
}

/* ---- fields ---- */

static int load_size(struct moon_arena *arena, const struct moon_json *document, const char *name,
                     const struct moon_json **out, struct moon_exception *raised) {
    const struct moon_json *given = moon_json_member(document, name);
    struct moon_json *size = NULL;
    int status = MOON_OK;
    if (given)
        status = moon_python_size(arena, given, &size, raised);
    else
        size = moon_json_int(arena, DEFAULT_SIZE_BYTES);
    if (status == MOON_ERR_REFUSED)
        raised->member = name;
    *out = size;
    return status || size ? status : MOON_ERR_MEMORY;
}

static int load_tenant(struct moon_arena *arena, const struct moon_json *document, const struct moon_json **out,
                       struct moon_exception *raised) {
    const struct moon_json *given = moon_json_member(document, "tenant_id");
    const char *text = "";
    size_t length = 0;
    if (moon_json_is(given, MOON_JSON_STRING)) {
        text = given->bytes;
        length = given->length;
        moon_python_strip(&text, &length);
    } else if (given && given->type != MOON_JSON_NULL) {
        struct moon_text message;
        moon_text_open(&message, arena->memory);
        moon_text_format(&message, "tenant_id must be a string or null, got %s: ", moon_python_type(given));
        moon_python_repr(given, &message);
        int status = moon_raise_text(arena, raised, "TypeError", &message);
        moon_text_close(&message);
        raised->member = "tenant_id";
        return status;
    }
    *out = length > 0 ? moon_json_bytes(arena, text, length) : moon_json_string(arena, "default");
    return *out ? MOON_OK : MOON_ERR_MEMORY;
}

static const struct moon_json *member_or(struct moon_arena *arena, const struct moon_json *document, const char *name,
                                         const char *otherwise) {
    const struct moon_json *given = moon_json_member(document, name);
    return given ? given : moon_json_string(arena, otherwise);
}

static int load_fields(struct moon_arena *arena, const struct moon_profile *profile, const struct moon_json *document,
                       struct moon_store_config *out, struct moon_exception *raised) {
    out->metadata_server = member_or(arena, document, "metadata_server", "");
    out->master_server_address = member_or(arena, document, "master_server_address", "");
    out->protocol = member_or(arena, document, "protocol", "rdma");
    out->device_name = member_or(arena, document, "device_name", "");
    if (!out->metadata_server || !out->master_server_address || !out->protocol || !out->device_name)
        return MOON_ERR_MEMORY;
    int status = load_size(arena, document, "global_segment_size", &out->global_segment_size, raised);
    if (status == MOON_OK)
        status = load_size(arena, document, "local_buffer_size", &out->local_buffer_size, raised);
    if (status == MOON_OK && profile->config_tenant)
        status = load_tenant(arena, document, &out->tenant_id, raised);
    if (status || !profile->config_mode)
        return status;
    out->mode = member_or(arena, document, "mode", "embedded");
    out->enable_offload = moon_json_bool(arena, moon_python_truth(moon_json_member(document, "enable_offload")));
    return out->mode && out->enable_offload ? MOON_OK : MOON_ERR_MEMORY;
}

static int refuse_mode(struct moon_arena *arena, const struct moon_json *mode, struct moon_exception *raised) {
    struct moon_text message;
    moon_text_open(&message, arena->memory);
    moon_text_string(&message, "unknown Mooncake mode: ");
    moon_python_repr(mode, &message);
    int status = moon_raise_text(arena, raised, "ValueError", &message);
    moon_text_close(&message);
    raised->member = "mode";
    return status;
}

/* What the finished object checks, in the release's order. */
static int check_fields(struct moon_arena *arena, const struct moon_profile *profile,
                        const struct moon_store_config *config, struct moon_exception *raised) {
    bool embedded = moon_json_is_string(config->mode, "embedded");
    if (!embedded && !moon_json_is_string(config->mode, "standalone-store"))
        return refuse_mode(arena, config->mode, raised);
    if (moon_python_sign(config->local_buffer_size) <= 0) {
        raised->member = "local_buffer_size";
        return moon_raise(arena, raised, "ValueError", "local_buffer_size must be > 0");
    }
    int segment = moon_python_sign(config->global_segment_size);
    bool enough = profile->negative_segment ? segment != 0 : segment > 0;
    if (embedded ? enough : segment == 0)
        return MOON_OK;
    raised->member = "global_segment_size";
    return moon_raise(arena, raised, "ValueError",
                      embedded ? "embedded mode requires global_segment_size > 0"
                               : "standalone-store mode requires global_segment_size == 0");
}

int moon_store_config_load(struct moon_arena *arena, const struct moon_profile *profile,
                           const struct moon_json *document, struct moon_store_config *out,
                           struct moon_exception *raised) {
    *out = (struct moon_store_config){0};
    *raised = (struct moon_exception){0};
    int status = refuse_long_integers(arena, document, raised);
    if (status)
        return status;
    if (document->type != MOON_JSON_OBJECT)
        return moon_raise(arena, raised, "AttributeError", "'%s' object has no attribute 'get'",
                          moon_python_type(document));
    status = load_fields(arena, profile, document, out, raised);
    if (status || !profile->config_mode)
        return status;
    return check_fields(arena, profile, out, raised);
}

int moon_store_config_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                           const char *bytes, size_t length, const struct moon_json **document,
                           struct moon_store_config *out, struct moon_exception *raised, struct moon_error *error) {
    struct moon_json *tree = NULL;
    *document = NULL;
    *raised = (struct moon_exception){0};
    size_t good = utf8_prefix(bytes, length);
    if (good < length)
        return refuse_bytes(arena, source, bytes, good, raised, error);
    struct moon_error broken = {0};
    int status = moon_json_read(arena, source, bytes, length, MOON_JSON_PYTHON, &tree, &broken);
    if (status == MOON_ERR_LIMIT && /* perhaps an integer that Python refuses: the strict rules read it, and it is named
                                       below */
        moon_json_read(arena, source, bytes, length, MOON_JSON_STRICT, &tree, NULL) == MOON_OK)
        status = MOON_OK;
    if (status && error)
        *error = broken;
    if (status == MOON_ERR_SYNTAX)
        return moon_raise(arena, raised, "JSONDecodeError", "%s: %s", broken.where, broken.message);
    if (status)
        return status;
    *document = tree;
    return moon_store_config_load(arena, profile, tree, out, raised);
}

/* ---- the answer ---- */

/* A copy in which integers that a double does not hold are texts, at any depth. A number has its text already, so its
 * type is all that changes. */
static struct moon_json *answer_value(struct moon_arena *arena, const struct moon_json *value) {
    struct moon_json *copy = moon_json_clone(arena, value);
    for (struct moon_json *at = copy; at; at = (struct moon_json *)next_value(at, copy)) {
        if (at->type != MOON_JSON_INTEGER)
            continue;
        if (!at->fits || at->integer > EXACT_INTEGER_MAX || at->integer < -EXACT_INTEGER_MAX)
            at->type = MOON_JSON_STRING;
    }
    return copy;
}

struct moon_json *moon_store_config_json(struct moon_arena *arena, const struct moon_store_config *config) {
    const struct {
        const char *name;
        const struct moon_json *value;
    } fields[] = {
        {"metadata_server", config->metadata_server},
        {"master_server_address", config->master_server_address},
        {"protocol", config->protocol},
        {"device_name", config->device_name},
        {"mode", config->mode},
        {"global_segment_size", config->global_segment_size},
        {"local_buffer_size", config->local_buffer_size},
        {"enable_offload", config->enable_offload},
        {"tenant_id", config->tenant_id},
    };
    struct moon_json *object = moon_json_object(arena);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (fields[i].value)
            moon_json_set(arena, object, fields[i].name, answer_value(arena, fields[i].value));
    return moon_json_broken(object) ? NULL : object;
}
