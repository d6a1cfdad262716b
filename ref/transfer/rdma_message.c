/* SPDX-License-Identifier: Apache-2.0 */
/* JSON of the RDMA handshake from bytes and to bytes. */
#include "ref/transfer/rdma_message.h"

#include <string.h>

static const char source[] = "descriptor";
static const uint32_t number_max = (1u << 24) - 1; /* queue pair numbers have 24 bits */

/* ---- GIDs */

void moon_gid_write(const uint8_t gid[MOON_GID_BYTES], char text[MOON_GID_TEXT_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < MOON_GID_BYTES; i++) {
        text[3 * i] = digits[gid[i] >> 4];
        text[3 * i + 1] = digits[gid[i] & 15];
        text[3 * i + 2] = i + 1 < MOON_GID_BYTES ? ':' : '\0';
    }
}

bool moon_gid_read(const char *text, uint8_t gid[MOON_GID_BYTES]) {
    if (strlen(text) != MOON_GID_TEXT_BYTES - 1)
        return false;
    for (size_t i = 0; i < MOON_GID_BYTES; i++)
        if (moon_hex_decode(text + 3 * i, 2, gid + i) || (i + 1 < MOON_GID_BYTES && text[3 * i + 2] != ':'))
            return false;
    return true;
}

/* ---- reading descriptors */

/* The elements of `array` must be objects. */
static int need_object(const struct moon_json *json, const char *what, struct moon_error *error) {
    if (moon_json_is(json, MOON_JSON_OBJECT))
        return MOON_OK;
    return moon_json_fail(error, MOON_ERR_SCHEMA, source, json, "a %s must be an object, not %s", what,
                          moon_json_type_name(json));
}

static int read_device(const struct moon_json *json, struct moon_rdma_device *device, struct moon_error *error) {
    const char *gid = NULL;
    int64_t lid = 0;
    int status = need_object(json, "device", error);
    if (!status)
        status = moon_json_get_string(source, json, "name", true, &device->name, NULL, error);
    if (!status)
        status = moon_json_get_int(source, json, "lid", true, 0, UINT16_MAX, &lid, error);
    if (!status)
        status = moon_json_get_string(source, json, "gid", true, &gid, NULL, error);
    if (!status && !moon_gid_read(gid, device->gid))
        status = moon_json_fail(error, MOON_ERR_SCHEMA, source, json, "\"%s\" is no GID", gid);
    device->lid = (uint16_t)lid;
    return status;
}

static int read_devices(struct moon_arena *arena, const struct moon_json *json, struct moon_rdma_descriptor *into,
                        struct moon_error *error) {
    struct moon_json *list = NULL;
    int status = moon_json_get(source, json, "devices", true, MOON_JSON_ARRAY, &list, error);
    if (status)
        return status;
    if (list->count == 0)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, list, "no device");
    if (list->count > MOON_RDMA_DEVICES_MAX)
        return moon_json_fail(error, MOON_ERR_LIMIT, source, list, "%zu devices, over %d", list->count,
                              MOON_RDMA_DEVICES_MAX);
    struct moon_rdma_device *devices = moon_arena_array(arena, list->count, sizeof *devices);
    if (!devices)
        return moon_no_memory(error);
    for (const struct moon_json *one = list->first; one && !status; one = one->next)
        status = read_device(one, &devices[one->index], error);
    into->devices = devices;
    into->device_count = list->count;
    return status;
}

/* Keys of a buffer: one a device. An absent or empty list gives NULL, which only rkeys may be. */
static int read_keys(struct moon_arena *arena, const struct moon_json *json, const char *name, bool required,
                     size_t devices, const uint32_t **out, struct moon_error *error) {
    struct moon_json *list = NULL;
    int status = moon_json_get(source, json, name, required, MOON_JSON_ARRAY, &list, error);
    if (status || !list || (list->count == 0 && !required))
        return status;
    if (list->count != devices)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, list, "%zu keys for %zu devices", list->count, devices);
    uint32_t *keys = moon_arena_array(arena, list->count, sizeof *keys);
    if (!keys)
        return moon_no_memory(error);
    for (const struct moon_json *one = list->first; one; one = one->next) {
        if (one->type != MOON_JSON_INTEGER || !one->fits || one->integer < 0 || one->integer > UINT32_MAX)
            return moon_json_fail(error, MOON_ERR_RANGE, source, one, "no key");
        keys[one->index] = (uint32_t)one->integer;
    }
    *out = keys;
    return MOON_OK;
}

static int read_buffer(struct moon_arena *arena, const struct moon_json *json, size_t devices,
                       struct moon_rdma_buffer *buffer, struct moon_error *error) {
    int64_t address = 0, length = 0;
    int status = need_object(json, "buffer", error);
    if (!status)
        status = moon_json_get_string(source, json, "name", true, &buffer->location, NULL, error);
    if (!status && buffer->location[0] == '\0')
        status = moon_json_fail(error, MOON_ERR_RANGE, source, json, "a buffer without a name");
    if (!status)
        status = moon_json_get_int(source, json, "addr", true, 1, INT64_MAX, &address, error);
    if (!status)
        status = moon_json_get_int(source, json, "length", true, 1, INT64_MAX, &length, error);
    if (!status)
        status = read_keys(arena, json, "lkey", true, devices, &buffer->lkeys, error);
    if (!status)
        status = read_keys(arena, json, "rkey", false, devices, &buffer->rkeys, error);
    buffer->address = (uint64_t)address;
    buffer->length = (uint64_t)length;
    return status;
}

static int read_buffers(struct moon_arena *arena, const struct moon_json *json, struct moon_rdma_descriptor *into,
                        struct moon_error *error) {
    struct moon_json *list = NULL;
    int status = moon_json_get(source, json, "buffers", false, MOON_JSON_ARRAY, &list, error);
    if (status || !list)
        return status;
    struct moon_rdma_buffer *buffers = moon_arena_array(arena, list->count, sizeof *buffers);
    if (!buffers)
        return moon_no_memory(error);
    for (const struct moon_json *one = list->first; one && !status; one = one->next)
        status = read_buffer(arena, one, into->device_count, &buffers[one->index], error);
    into->buffers = buffers;
    into->buffer_count = list->count;
    return status;
}

/* Appends the devices that one of the two lists of a row names. Room for every element is there. */
static int read_nics(const struct moon_json *list, const struct moon_rdma_descriptor *from, size_t *devices,
                     size_t *count, struct moon_error *error) {
    if (!moon_json_is(list, MOON_JSON_ARRAY))
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, list, "a list of NICs must be an array");
    for (const struct moon_json *nic = list->first; nic; nic = nic->next)
        for (size_t i = 0; i < from->device_count; i++)
            if (moon_json_is_string(nic, from->devices[i].name)) {
                devices[(*count)++] = i;
                break;
            }
    return MOON_OK;
}

static int read_priority(struct moon_arena *arena, const struct moon_json *json,
                         const struct moon_rdma_descriptor *from, struct moon_rdma_priority *row,
                         struct moon_error *error) {
    if (!moon_json_is(json, MOON_JSON_ARRAY) || json->count != 2)
        return moon_json_fail(error, MOON_ERR_SCHEMA, source, json, "a row of the priority matrix must be two lists");
    const struct moon_json *preferred = json->first, *others = preferred->next;
    size_t *devices = moon_arena_array(arena, preferred->count + others->count, sizeof *devices);
    row->location = moon_arena_copy(arena, json->name, json->name_length);
    if (!devices || !row->location)
        return moon_no_memory(error);
    int status = read_nics(preferred, from, devices, &row->preferred, error);
    row->device_count = row->preferred;
    if (!status)
        status = read_nics(others, from, devices, &row->device_count, error);
    row->devices = devices;
    return status;
}

static int read_priorities(struct moon_arena *arena, const struct moon_json *json, struct moon_rdma_descriptor *into,
                           struct moon_error *error) {
    struct moon_json *matrix = NULL;
    int status = moon_json_get(source, json, "priority_matrix", false, MOON_JSON_OBJECT, &matrix, error);
    if (status || !matrix)
        return status;
    struct moon_rdma_priority *rows = moon_arena_array(arena, matrix->count, sizeof *rows);
    if (!rows)
        return moon_no_memory(error);
    for (const struct moon_json *one = matrix->first; one && !status; one = one->next)
        status = read_priority(arena, one, into, &rows[one->index], error);
    into->priorities = rows;
    into->priority_count = matrix->count;
    return status;
}

int moon_rdma_read_descriptor(struct moon_arena *arena, const char *json, size_t length,
                              struct moon_rdma_descriptor *descriptor, struct moon_error *error) {
    struct moon_rdma_descriptor read = {.timestamp = ""};
    struct moon_json *tree = NULL;
    const char *protocol = NULL;
    int status = moon_json_read(arena, source, json, length, MOON_JSON_PYTHON, &tree, error);
    if (!status)
        status = need_object(tree, "descriptor", error);
    if (!status)
        status = moon_json_get_string(source, tree, "protocol", true, &protocol, NULL, error);
    if (!status && strcmp(protocol, "rdma") != 0)
        status = moon_json_fail(error, MOON_ERR_SCHEMA, source, tree, "protocol \"%s\" is not rdma", protocol);
    if (!status)
        status = moon_json_get_string(source, tree, "name", true, &read.name, NULL, error);
    if (!status)
        status = moon_json_get_string(source, tree, "timestamp", false, &read.timestamp, NULL, error);
    if (!status)
        status = read_devices(arena, tree, &read, error);
    if (!status)
        status = read_buffers(arena, tree, &read, error);
    if (!status)
        status = read_priorities(arena, tree, &read, error);
    if (!status)
        *descriptor = read;
    return status;
}

/* ---- writing descriptors */

static struct moon_json *keys_json(struct moon_arena *arena, const uint32_t *keys, size_t count) {
    struct moon_json *list = moon_json_array(arena);
    for (size_t i = 0; keys && i < count; i++)
        moon_json_push(list, moon_json_uint(arena, keys[i]));
    return list;
}

static struct moon_json *buffers_json(struct moon_arena *arena, const struct moon_rdma_descriptor *descriptor) {
    struct moon_json *list = moon_json_array(arena);
    for (size_t i = 0; i < descriptor->buffer_count; i++) {
        const struct moon_rdma_buffer *buffer = &descriptor->buffers[i];
        struct moon_json *one = moon_json_push(list, moon_json_object(arena));
        moon_json_set(arena, one, "addr", moon_json_uint(arena, buffer->address));
        moon_json_set(arena, one, "length", moon_json_uint(arena, buffer->length));
        moon_json_set(arena, one, "lkey", keys_json(arena, buffer->lkeys, descriptor->device_count));
        moon_json_set(arena, one, "name", moon_json_string(arena, buffer->location));
        moon_json_set(arena, one, "rkey", keys_json(arena, buffer->rkeys, descriptor->device_count));
    }
    return list;
}

static struct moon_json *devices_json(struct moon_arena *arena, const struct moon_rdma_descriptor *descriptor) {
    struct moon_json *list = moon_json_array(arena);
    for (size_t i = 0; i < descriptor->device_count; i++) {
        char gid[MOON_GID_TEXT_BYTES];
        moon_gid_write(descriptor->devices[i].gid, gid);
        struct moon_json *one = moon_json_push(list, moon_json_object(arena));
        moon_json_set(arena, one, "gid", moon_json_string(arena, gid));
        moon_json_set(arena, one, "lid", moon_json_uint(arena, descriptor->devices[i].lid));
        moon_json_set(arena, one, "name", moon_json_string(arena, descriptor->devices[i].name));
    }
    return list;
}

static struct moon_json *priorities_json(struct moon_arena *arena, const struct moon_rdma_descriptor *descriptor) {
    struct moon_json *matrix = moon_json_object(arena);
    for (size_t i = 0; i < descriptor->priority_count; i++) {
        const struct moon_rdma_priority *row = &descriptor->priorities[i];
        struct moon_json *lists = moon_json_set(arena, matrix, row->location, moon_json_array(arena));
        struct moon_json *preferred = moon_json_push(lists, moon_json_array(arena));
        struct moon_json *others = moon_json_push(lists, moon_json_array(arena));
        for (size_t n = 0; n < row->device_count; n++)
            moon_json_push(n < row->preferred ? preferred : others,
                           moon_json_string(arena, descriptor->devices[row->devices[n]].name));
    }
    return matrix;
}

static void write_line(const struct moon_json *object, struct moon_text *out) {
    if (moon_json_broken(object)) {
        out->failed = true;
        return;
    }
    moon_json_write(object, MOON_JSON_COMPACT, out);
    moon_text_char(out, '\n');
}

void moon_rdma_write_descriptor(struct moon_arena *arena, const struct moon_rdma_descriptor *descriptor,
                                struct moon_text *out) {
    struct moon_json *object = moon_json_object(arena); /* members in alphabetical order, as jsoncpp sorts them */
    moon_json_set(arena, object, "buffers", buffers_json(arena, descriptor));
    moon_json_set(arena, object, "devices", devices_json(arena, descriptor));
    moon_json_set(arena, object, "name", moon_json_string(arena, descriptor->name));
    moon_json_set(arena, object, "priority_matrix", priorities_json(arena, descriptor));
    moon_json_set(arena, object, "protocol", moon_json_string(arena, "rdma"));
    moon_json_set(arena, object, "tcp_data_port", moon_json_uint(arena, 0));
    moon_json_set(arena, object, "tcp_proto_version", moon_json_uint(arena, 1));
    moon_json_set(arena, object, "timestamp", moon_json_string(arena, descriptor->timestamp));
    write_line(object, out);
}

/* ---- reaching memory */

/* The first device of the row of `location`, else of the first row that has one. */
static bool choose_device(const struct moon_rdma_descriptor *descriptor, const char *location, size_t *device) {
    const struct moon_rdma_priority *chosen = NULL;
    for (size_t i = 0; i < descriptor->priority_count; i++) {
        const struct moon_rdma_priority *row = &descriptor->priorities[i];
        if (row->device_count == 0)
            continue;
        if (strcmp(row->location, location) == 0) {
            chosen = row;
            break;
        }
        if (!chosen)
            chosen = row;
    }
    if (chosen)
        *device = chosen->devices[0];
    return chosen != NULL;
}

bool moon_rdma_reach(const struct moon_rdma_descriptor *descriptor, uint64_t address, uint64_t length, size_t *device,
                     uint32_t *rkey) {
    for (size_t i = 0; i < descriptor->buffer_count; i++) {
        const struct moon_rdma_buffer *buffer = &descriptor->buffers[i];
        if (address < buffer->address || length > buffer->length ||
            address - buffer->address > buffer->length - length || !buffer->rkeys)
            continue;
        if (!choose_device(descriptor, buffer->location, device))
            return false;
        *rkey = buffer->rkeys[*device];
        return true;
    }
    return false;
}

/* ---- Connection messages */

static const char *text_member(const struct moon_json *object, const char *name) {
    const char *text = "";
    /* Of another type, or with a NUL inside: as if it were absent. */
    return moon_json_get_string(source, object, name, false, &text, NULL, NULL) ? "" : text;
}

static void read_numbers(const struct moon_json *list, struct moon_rdma_connection *into) {
    if (!list)
        return;
    if (list->type != MOON_JSON_ARRAY) {
        into->numbers_bad = true;
        return;
    }
    into->number_count = list->count;
    for (const struct moon_json *one = list->first; one; one = one->next) {
        if (one->type != MOON_JSON_INTEGER || !one->fits || one->integer < 0 || one->integer > number_max)
            into->numbers_bad = true;
        else if (one->index < MOON_RDMA_NUMBERS_MAX)
            into->numbers[one->index] = (uint32_t)one->integer;
    }
}

int moon_rdma_read_connection(struct moon_arena *arena, const char *json, size_t length,
                              struct moon_rdma_connection *connection, struct moon_error *error) {
    struct moon_rdma_connection read = {.ready_ack = -1};
    struct moon_json *tree = NULL;
    int64_t lid = 0;
    bool ready = false;
    int status = moon_json_read(arena, "connection", json, length, MOON_JSON_PYTHON, &tree, error);
    if (status)
        return status;
    if (!moon_json_is(tree, MOON_JSON_OBJECT))
        tree = NULL;
    read.gid = text_member(tree, "local_gid");
    read.local_path = text_member(tree, "local_nic_path");
    read.peer_path = text_member(tree, "peer_nic_path");
    read.reply = text_member(tree, "reply_msg");
    if (!moon_json_get_int(source, tree, "local_lid", false, 0, UINT16_MAX, &lid, NULL))
        read.lid = (uint16_t)lid;
    read_numbers(moon_json_member(tree, "qp_num"), &read);
    if (moon_json_member(tree, "ready_ack"))
        read.ready_ack = !moon_json_get_bool(source, tree, "ready_ack", false, &ready, NULL) && ready;
    *connection = read;
    return MOON_OK;
}

void moon_rdma_write_connection(struct moon_arena *arena, const struct moon_rdma_connection *connection,
                                struct moon_text *out) {
    struct moon_json *object = moon_json_object(arena), *numbers = moon_json_array(arena);
    for (size_t i = 0; i < connection->number_count; i++)
        moon_json_push(numbers, moon_json_uint(arena, connection->numbers[i]));
    moon_json_set(arena, object, "local_gid", moon_json_string(arena, connection->gid));
    moon_json_set(arena, object, "local_lid", moon_json_uint(arena, connection->lid));
    moon_json_set(arena, object, "local_nic_path", moon_json_string(arena, connection->local_path));
    moon_json_set(arena, object, "payload", moon_json_string(arena, ""));
    moon_json_set(arena, object, "peer_nic_path", moon_json_string(arena, connection->peer_path));
    moon_json_set(arena, object, "qp_num", numbers);
    if (connection->ready_ack >= 0)
        moon_json_set(arena, object, "ready_ack", moon_json_bool(arena, connection->ready_ack));
    moon_json_set(arena, object, "reply_msg", moon_json_string(arena, connection->reply));
    write_line(object, out);
}
