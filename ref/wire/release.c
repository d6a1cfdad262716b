/* SPDX-License-Identifier: Apache-2.0 */
/* Looking up releases and calls; the numbers of a release's calls. */
#include "ref/wire/release.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct moon_wire_release *moon_wire_release_find(const char *name) {
    size_t length = strlen(name);
    for (const struct moon_wire_release *const *one = moon_wire_releases; *one; one++) {
        const char *full = (*one)->name;
        if (strncmp(full, name, length) == 0 && (full[length] == '\0' || strncmp(full + length, ".post", 5) == 0))
            return *one;
    }
    return NULL;
}

static const struct moon_wire_function *row_of(const struct moon_wire_release *release, const char *name) {
    for (; release; release = release->newer)
        for (const struct moon_wire_function *one = release->functions; one->name; one++)
            if (strcmp(one->name, name) == 0)
                return one;
    return NULL;
}

/* "mooncake::WrappedMasterService::Ping", "mooncake::RealClient::release_offload_buffer". */
static uint32_t id_of(const char *name, struct moon_text *text) {
    moon_text_clear(text);
    moon_text_string(text, "mooncake::");
    moon_text_string(text, strstr(name, "::") ? "" : "WrappedMasterService::");
    moon_text_string(text, name);
    return moon_wire_function_id(moon_text_value(text));
}

static void compute(const struct moon_wire_function *function, struct moon_text *text, struct moon_wire_call *call) {
    call->function = function;
    call->id = id_of(function->name, text);
    moon_text_clear(text);
    moon_wire_arguments_text(function->arguments, text);
    call->arguments_hash = text->length > 0 ? moon_wire_type_hash(text->data, text->length) : 0;
    moon_text_clear(text);
    moon_wire_type_text(function->result, text);
    call->result_hash = moon_wire_type_hash(moon_text_value(text), text->length);
}

static int compare_ids(const void *a, const void *b) {
    uint32_t left = ((const struct moon_wire_call *)a)->id, right = ((const struct moon_wire_call *)b)->id;
    return (left > right) - (left < right);
}

static void sort_names(struct moon_wire_protocol *protocol) {
    for (size_t i = 0; i < protocol->count; i++) {
        size_t at = i;
        const char *name = protocol->calls[i].function->name;
        for (; at > 0 && strcmp(protocol->calls[protocol->by_name[at - 1]].function->name, name) > 0; at--)
            protocol->by_name[at] = protocol->by_name[at - 1];
        protocol->by_name[at] = (uint8_t)i;
    }
}

int moon_wire_protocol_open(struct moon_wire_protocol *protocol, const struct moon_wire_release *release,
                            struct moon_memory *memory) {
    struct moon_text text;
    memset(protocol, 0, sizeof *protocol);
    protocol->release = release;
    moon_text_open(&text, memory);
    for (const struct moon_wire_release *from = release; from; from = from->newer)
        for (const struct moon_wire_function *one = from->functions; one->name; one++) {
            if (row_of(release, one->name) != one || !one->result)
                continue;
            assert(protocol->count < MOON_WIRE_CALLS_MAX);
            compute(one, &text, &protocol->calls[protocol->count++]);
        }
    int status = text.failed ? MOON_ERR_MEMORY : MOON_OK;
    moon_text_close(&text);
    qsort(protocol->calls, protocol->count, sizeof *protocol->calls, compare_ids);
    sort_names(protocol);
    return status;
}

const struct moon_wire_call *moon_wire_call_by_id(const struct moon_wire_protocol *protocol, uint32_t id) {
    struct moon_wire_call wanted = {.id = id};
    return bsearch(&wanted, protocol->calls, protocol->count, sizeof *protocol->calls, compare_ids);
}

const struct moon_wire_call *moon_wire_call_by_name(const struct moon_wire_protocol *protocol, const char *name) {
    for (size_t i = 0; i < protocol->count; i++)
        if (strcmp(protocol->calls[i].function->name, name) == 0)
            return &protocol->calls[i];
    return NULL;
}

const struct moon_wire_call *moon_wire_call_by_result(const struct moon_wire_protocol *protocol, uint32_t hash) {
    for (size_t i = 0; i < protocol->count; i++)
        if (protocol->calls[protocol->by_name[i]].result_hash == hash)
            return &protocol->calls[protocol->by_name[i]];
    return NULL;
}
