/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzer of the lookup channel: any bytes as request and as reply, of every release; what is read is written back
 * equal.
 */
#include "ref/connector/lookup_server.h"
#include "ref/layout/model_check_internal.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Memory that refuses to be used beyond what the input justifies. */
struct bounded {
    struct moon_memory memory; /* first member */
    size_t largest_bytes;
};

static void *bounded_resize(struct moon_memory *self, void *old, size_t old_bytes, size_t new_bytes) {
    struct bounded *bounded = (struct bounded *)self;
    if (new_bytes > bounded->largest_bytes)
        bounded->largest_bytes = new_bytes;
    return moon_memory_heap()->resize(moon_memory_heap(), old, old_bytes, new_bytes);
}

static void require(bool condition) {
    if (!condition)
        abort();
}

/* Writes what was read, reads it again, and compares. */
static void back_and_forth(const struct moon_profile *profile, const struct moon_rpc_request *request) {
    struct moon_rpc_message message;
    struct moon_rpc_request again;
    moon_rpc_message_open(&message, moon_memory_heap());
    moon_rpc_request_open(&again, moon_memory_heap());
    int status = moon_rpc_encode_lookup(profile, request->num_tokens, &request->hashes, &message, NULL);
    require((status != 0) == (request->num_tokens > UINT32_MAX));
    if (!status) {
        size_t bytes = request->hashes.count * request->hashes.hash_bytes;
        require(moon_rpc_decode_request(profile, message.frames, message.count, &again, NULL) == 0);
        require(again.num_tokens == request->num_tokens && again.hashes.count == request->hashes.count);
        require(bytes == 0 || again.hashes.hash_bytes == request->hashes.hash_bytes);
        require(bytes == 0 || memcmp(again.hashes.bytes, request->hashes.bytes, bytes) == 0);
    }
    moon_rpc_request_close(&again);
    moon_rpc_message_close(&message);
}

/* Cuts the input into frames: a length byte before each (255: the rest). */
static size_t cut(const uint8_t *data, size_t size, struct moon_rpc_frame frames[], size_t frames_max) {
    size_t count = 0;
    while (size > 0 && count < frames_max) {
        size_t length = data[0] == 255 || data[0] > size - 1 ? size - 1 : data[0];
        frames[count++] = (struct moon_rpc_frame){data + 1, length};
        data += length + 1;
        size -= length + 1;
    }
    return count;
}

/* The server takes any frames: it asks the store, replies or has ended. */
static void serve(const struct moon_profile *profile, const struct moon_rpc_frame *frames, size_t count) {
    const struct moon_connector_options options = {.role = MOON_ROLE_BOTH, .enable_lookup = true};
    struct moon_layout_group group = group_of(MOON_SPEC_FULL, 16, 0);
    struct moon_layout_model model = model_of(&group, 1, 1, 1);
    struct moon_connector connector;
    struct moon_lookup_server server;
    require(moon_connector_open(&connector, profile, &model, &options, NULL) == 0);
    moon_lookup_server_open(&server, &connector, moon_memory_heap());
    require(moon_lookup_server_request(&server, frames, count) == 0);
    if (server.need == MOON_SERVER_ASK_STORE)
        require(moon_lookup_server_raised(&server) == 0);
    else if (server.need == MOON_SERVER_DRAIN)
        require(moon_lookup_server_done(&server, false) == 0);
    require(server.need == MOON_SERVER_REPLY || server.need == MOON_SERVER_STOPPED);
    moon_lookup_server_close(&server);
}

static void read_request(const struct moon_profile *profile, const uint8_t *data, size_t size) {
    struct bounded memory = {{bounded_resize}, 0};
    struct moon_rpc_frame frames[6];
    struct moon_rpc_request request;
    struct moon_error error = {0};
    size_t count = cut(data, size, frames, 6);
    moon_rpc_request_open(&request, &memory.memory);
    int status = moon_rpc_decode_request(profile, frames, count, &request, &error);
    require(status == error.status && (status == 0 || strncmp(error.where, "lookup request frame ", 21) == 0));
    require(memory.largest_bytes <= 2 * size + 64);
    if (!status && request.kind == MOON_RPC_LOOKUP) {
        require(request.hashes.count * request.hashes.hash_bytes <= size);
        back_and_forth(profile, &request);
    }
    moon_rpc_request_close(&request);
    serve(profile, frames, count);
}

static void read_reply(const struct moon_profile *profile, const uint8_t *data, size_t size) {
    struct moon_connector connector = {.profile = profile};
    struct moon_lookup_result result, again;
    struct moon_error error = {0};
    int status = moon_rpc_decode_reply(&connector, data, size, &result, &error);
    require(status == error.status);
    require(status == 0 || (result.hit_tokens == 0 && result.boundary_count == 0));
    if (!status && result.hit_tokens <= UINT32_MAX) {
        struct moon_text out;
        moon_text_open(&out, moon_memory_heap());
        require(moon_rpc_encode_reply(profile, &result, &out, NULL) == 0);
        require(moon_rpc_decode_reply(&connector, out.data, out.length, &again, NULL) == 0);
        require(again.hit_tokens == result.hit_tokens && again.boundary_count <= result.boundary_count);
        for (size_t i = 0; i < again.boundary_count; i++)
            require(again.tail_boundaries[i] == result.tail_boundaries[i]);
        moon_text_close(&out);
    }
    moon_rpc_decode_status(data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t count;
    const struct moon_profile *profiles = moon_profiles(&count);
    struct moon_profile strict;
    if (size == 0)
        return 0;
    moon_profile_strict(&profiles[data[0] % count], &strict);
    const struct moon_profile *profile = data[0] & 0x80 ? &strict : &profiles[data[0] % count];
    if (data[0] & 0x40)
        read_reply(profile, data + 1, size - 1);
    else
        read_request(profile, data + 1, size - 1);
    return 0;
}
