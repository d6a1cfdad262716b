/* SPDX-License-Identifier: Apache-2.0 */
/* Type text of a struct_pack type, and the hashes that follow from texts and names. */
/* MD5 identifies types here and protects nothing. The low-level calls need no heap. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include "ref/wire/type.h"

#include <assert.h>
#include <openssl/md5.h>
#include <string.h>

/* Bytes of the type text (WIRE-020). A composite is followed by the texts of its parts, and some by END. */
enum { TEXT_END = 0xff };
static const struct {
    uint8_t bytes[6];
    uint8_t count;
    bool ended;
} texts[] = {
    [MOON_WIRE_VOID] = {{0xfa}, 1, false},
    [MOON_WIRE_BOOL] = {{0x0b}, 1, false},
    [MOON_WIRE_U8] = {{0x06}, 1, false},
    [MOON_WIRE_U16] = {{0x08}, 1, false},
    [MOON_WIRE_U32] = {{0x02}, 1, false},
    [MOON_WIRE_U64] = {{0x04}, 1, false},
    [MOON_WIRE_I32] = {{0x01}, 1, false},
    [MOON_WIRE_I64] = {{0x03}, 1, false},
    [MOON_WIRE_UUID] = {{0xfd, 0x04, 0x04, 0x89, 0x89, 0xff}, 6, false},
    [MOON_WIRE_STRING] = {{0x80, 0x0c}, 2, false},
    [MOON_WIRE_VECTOR] = {{0x84}, 1, false},
    [MOON_WIRE_MAP] = {{0x82}, 1, false},
    [MOON_WIRE_OPTIONAL] = {{0x85}, 1, false},
    [MOON_WIRE_EXPECTED] = {{0x87}, 1, false},
    [MOON_WIRE_VARIANT] = {{0x86}, 1, true},
    [MOON_WIRE_STRUCT] = {{0xfd}, 1, true},
};

static void append(const struct moon_wire_type *type, int depth, struct moon_text *text) {
    assert(depth < MOON_WIRE_TYPE_DEPTH_MAX);
    moon_text_bytes(text, texts[type->kind].bytes, texts[type->kind].count);
    if (type->of)
        append(type->of, depth + 1, text);
    if (type->value)
        append(type->value, depth + 1, text);
    if (type->kind == MOON_WIRE_EXPECTED)
        moon_text_bytes(text, texts[MOON_WIRE_I32].bytes, 1);
    for (const struct moon_wire_member *one = type->members; one && one->name; one++)
        append(one->type, depth + 1, text);
    if (texts[type->kind].ended)
        moon_text_char(text, (char)TEXT_END);
}

void moon_wire_type_text(const struct moon_wire_type *type, struct moon_text *text) {
    append(type, 0, text);
}

void moon_wire_arguments_text(const struct moon_wire_type *arguments, struct moon_text *text) {
    assert(arguments->kind == MOON_WIRE_STRUCT);
    const struct moon_wire_member *first = arguments->members;
    if (!first->name)
        return;
    append(first[1].name ? arguments : first->type, 0, text);
}

uint32_t moon_wire_digest(const void *bytes, size_t length) {
    unsigned char digest[MD5_DIGEST_LENGTH];
    MD5_CTX context;
    MD5_Init(&context);
    MD5_Update(&context, bytes, length);
    MD5_Final(digest, &context);
    return (uint32_t)digest[0] << 24 | (uint32_t)digest[1] << 16 | (uint32_t)digest[2] << 8 | digest[3];
}

uint32_t moon_wire_type_hash(const void *text, size_t length) {
    return moon_wire_digest(text, length) & ~UINT32_C(1);
}

uint32_t moon_wire_function_id(const char *full_name) {
    return moon_wire_digest(full_name, strlen(full_name));
}
