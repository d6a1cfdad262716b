/* SPDX-License-Identifier: Apache-2.0 */
/* Store calls: one table of what each takes and gives (DAEMON-022). */
#include "ref/daemon/agent_call.h"

#include "ref/daemon/store_value.h"

/* Arguments: members that a call may have, and must. */
enum {
    KEY = 1 << 0,    /* "key" */
    KEYS = 1 << 1,   /* "keys" */
    VALUE = 1 << 2,  /* "value" */
    VALUES = 1 << 3, /* "values", one a key */
    BYTES = 1 << 4,  /* "bytes": room */
    ROOMS = 1 << 5,  /* "bytes": room of each key */
    SIZES = 1 << 6,  /* "sizes": parts of each key */
    FORCE = 1 << 7,  /* "force", may be left out */
    WANT = 1 << 8,   /* "want", may be left out */
};

/* Results. */
enum shape { CODE, CODES, READ, READS };

struct moon_agent_call {
    const char *name;
    enum moon_client_do kind;
    unsigned takes;
    enum shape gives;
    bool batched; /* else: if there is more than one key */
};

static const struct moon_agent_call calls[] = {
    {"put", MOON_CLIENT_PUT, KEY | VALUE, CODE, false},
    {"get", MOON_CLIENT_GET, KEY | BYTES | WANT, READ, false},
    {"exist", MOON_CLIENT_EXIST, KEYS, CODES, false},
    {"size", MOON_CLIENT_SIZE, KEYS, CODES, false},
    {"remove", MOON_CLIENT_REMOVE, KEYS | FORCE, CODES, false},
    {"remove_all", MOON_CLIENT_REMOVE_ALL, FORCE, CODE, false},
    {"batch_put", MOON_CLIENT_PUT, KEYS | VALUES, CODES, true},
    {"batch_get", MOON_CLIENT_GET, KEYS | ROOMS, READS, true},
    {"multi_put", MOON_CLIENT_PUT, KEYS | VALUES | SIZES, CODES, true},
    {"multi_get", MOON_CLIENT_GET, KEYS | SIZES, READS, true},
    {"close", MOON_CLIENT_UNMOUNT, 0, CODE, false},
};

const char *const moon_agent_call_names[] = {"setup",     "put",        "get",       "exist",     "size",
                                             "remove",    "remove_all", "batch_put", "batch_get", "multi_put",
                                             "multi_get", "close",      NULL};

static const struct {
    unsigned takes;
    const char *name;
} members[] = {{KEY, "key"},     {KEYS, "keys"},   {VALUE, "value"}, {VALUES, "values"}, {BYTES, "bytes"},
               {ROOMS, "bytes"}, {SIZES, "sizes"}, {FORCE, "force"}, {WANT, "want"}};

const struct moon_agent_call *moon_agent_call_find(const char *name) {
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (strcmp(calls[i].name, name) == 0)
            return &calls[i];
    return NULL;
}

/* What reading a call needs. left: bytes that the call may still have. */
struct reading {
    struct moon_arena *arena;
    const char *source, *folder;
    const struct moon_json *args;
    struct moon_client_operation *operation;
    size_t left;
    struct moon_error *error;
};

static int out_of_memory(struct reading *r) {
    return moon_json_fail(r->error, MOON_ERR_MEMORY, r->source, r->args, "out of memory");
}

static int read_members(struct reading *r, const struct moon_agent_call *call) {
    const char *names[sizeof members / sizeof *members + 1] = {NULL};
    size_t count = 0;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (call->takes & members[i].takes)
            names[count++] = members[i].name;
    int status = moon_json_closed(r->source, r->args, names, r->error);
    if (status == 0)
        status = moon_json_get_bool(r->source, r->args, "force", false, &r->operation->force, r->error);
    return status;
}

static int read_keys(struct reading *r, const struct moon_agent_call *call) {
    struct moon_json *list = NULL;
    const struct moon_json *key = NULL;
    int status = 0;
    if (call->takes & KEYS)
        status = moon_json_get(r->source, r->args, "keys", true, MOON_JSON_ARRAY, &list, r->error);
    else if (call->takes & KEY && !(key = moon_json_member(r->args, "key")))
        status = moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, r->args, "\"key\" is missing");
    if (status != 0 || !(call->takes & (KEY | KEYS)))
        return status;
    size_t count = list ? list->count : 1;
    if (count > MOON_AGENT_KEYS_MAX)
        return moon_json_fail(r->error, MOON_ERR_LIMIT, r->source, list, "more than %d keys", MOON_AGENT_KEYS_MAX);
    r->operation->items = moon_arena_array(r->arena, count, sizeof *r->operation->items);
    r->operation->item_count = count;
    if (!r->operation->items)
        return out_of_memory(r);
    if (list)
        key = list->first;
    for (size_t i = 0; i < count && key && status == 0; i++, key = key->next)
        status = moon_store_key_read(r->arena, r->source, key, &r->operation->items[i].key, r->error);
    return status;
}

/* An array of the call with one element a key. */
static int read_list(struct reading *r, const char *name, struct moon_json **out) {
    int status = moon_json_get(r->source, r->args, name, true, MOON_JSON_ARRAY, out, r->error);
    if (status == 0 && (*out)->count != r->operation->item_count)
        status = moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, *out, "%zu elements for %zu keys", (*out)->count,
                                r->operation->item_count);
    return status;
}

/* One piece for an item. */
static int add_piece(struct reading *r, struct moon_client_item *item, struct moon_piece piece) {
    struct moon_piece *copy = moon_arena_alloc(r->arena, sizeof *copy);
    if (!copy)
        return out_of_memory(r);
    *copy = piece;
    item->pieces = copy;
    item->piece_count = 1;
    return 0;
}

static int read_value(struct reading *r, const struct moon_json *value, struct moon_client_item *item) {
    struct moon_piece piece;
    int status = moon_store_value_read(r->arena, r->source, value, r->folder, &r->left, &piece, r->error);
    return status ? status : add_piece(r, item, piece);
}

static int read_length(struct reading *r, const struct moon_json *value, size_t *length) {
    if (!moon_json_is(value, MOON_JSON_INTEGER))
        return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, value, "must be integer, not %s",
                              moon_json_type_name(value));
    if (!value->fits || value->integer < 0 || (uint64_t)value->integer > MOON_VALUE_CALL_BYTES_MAX)
        return moon_json_fail(r->error, MOON_ERR_LIMIT, r->source, value, "must be within 0 and %zu",
                              MOON_VALUE_CALL_BYTES_MAX);
    *length = (size_t)value->integer;
    return 0;
}

static int make_room(struct reading *r, const struct moon_json *value, struct moon_piece *piece) {
    *piece = (struct moon_piece){NULL, 0};
    int status = read_length(r, value, &piece->length);
    if (status != 0)
        return status;
    if (piece->length > r->left)
        return moon_json_fail(r->error, MOON_ERR_LIMIT, r->source, value, "more than %zu bytes in one call",
                              MOON_VALUE_CALL_BYTES_MAX);
    r->left -= piece->length;
    piece->data = moon_arena_alloc(r->arena, piece->length);
    return piece->data ? 0 : out_of_memory(r);
}

static int read_room(struct reading *r, const struct moon_json *value, struct moon_client_item *item) {
    struct moon_piece piece;
    int status = make_room(r, value, &piece);
    return status ? status : add_piece(r, item, piece);
}

/* Cuts an item's value into parts of these sizes, or makes room of them when it has none. */
static int read_parts(struct reading *r, const struct moon_json *sizes, struct moon_client_item *item) {
    if (!moon_json_is(sizes, MOON_JSON_ARRAY))
        return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, sizes, "must be array, not %s",
                              moon_json_type_name(sizes));
    struct moon_piece *parts = moon_arena_array(r->arena, sizes->count, sizeof *parts);
    struct moon_piece rest = item->pieces ? item->pieces[0] : (struct moon_piece){NULL, 0};
    size_t count = 0;
    if (!parts)
        return out_of_memory(r);
    for (const struct moon_json *size = sizes->first; size; size = size->next) {
        struct moon_piece *part = &parts[count++];
        int status = item->pieces ? read_length(r, size, &part->length) : make_room(r, size, part);
        if (status != 0)
            return status;
        if (!item->pieces)
            continue;
        if (part->length > rest.length)
            return moon_json_fail(r->error, MOON_ERR_RANGE, r->source, size, "the parts are more than the value");
        part->data = rest.data;
        rest = (struct moon_piece){(char *)rest.data + part->length, rest.length - part->length};
    }
    if (item->pieces && rest.length > 0)
        return moon_json_fail(r->error, MOON_ERR_RANGE, r->source, sizes, "the parts are less than the value");
    item->pieces = parts;
    item->piece_count = count;
    return 0;
}

/* Reads element i of the list for item i. */
static int read_each(struct reading *r, const char *name,
                     int (*read)(struct reading *, const struct moon_json *, struct moon_client_item *)) {
    struct moon_json *list = NULL;
    int status = read_list(r, name, &list);
    const struct moon_json *element = status == 0 ? list->first : NULL;
    for (size_t i = 0; element && status == 0; i++, element = element->next)
        status = read(r, element, &r->operation->items[i]);
    return status;
}

/* A member of a call with one key. */
static int read_one(struct reading *r, const char *name,
                    int (*read)(struct reading *, const struct moon_json *, struct moon_client_item *)) {
    const struct moon_json *member = moon_json_member(r->args, name);
    if (!member)
        return moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, r->args, "\"%s\" is missing", name);
    return read(r, member, &r->operation->items[0]);
}

static int read_want(struct reading *r, bool *want_hex) {
    const char *want = "digest";
    int status = moon_json_get_string(r->source, r->args, "want", false, &want, NULL, r->error);
    *want_hex = strcmp(want, "hex") == 0;
    if (status == 0 && !*want_hex && strcmp(want, "digest") != 0)
        status = moon_json_fail(r->error, MOON_ERR_SCHEMA, r->source, moon_json_member(r->args, "want"),
                                "is \"digest\" or \"hex\", not \"%.40s\"", want);
    if (status == 0 && *want_hex && r->operation->items[0].pieces[0].length > MOON_VALUE_HEX_BYTES_MAX)
        status = moon_json_fail(r->error, MOON_ERR_LIMIT, r->source, moon_json_member(r->args, "bytes"),
                                "over %zu bytes: ask for the digest", MOON_VALUE_HEX_BYTES_MAX);
    return status;
}

int moon_agent_call_read(const struct moon_agent_call *call, struct moon_arena *arena, const char *source,
                         const struct moon_json *args, const char *folder, struct moon_client_operation *operation,
                         bool *want_hex, struct moon_error *error) {
    struct reading r = {arena, source, folder, args, operation, MOON_VALUE_CALL_BYTES_MAX, error};
    *operation = (struct moon_client_operation){.kind = call->kind};
    *want_hex = false;
    int status = read_members(&r, call);
    if (status == 0)
        status = read_keys(&r, call);
    if (status == 0 && call->takes & VALUE)
        status = read_one(&r, "value", read_value);
    if (status == 0 && call->takes & BYTES)
        status = read_one(&r, "bytes", read_room);
    if (status == 0 && call->takes & VALUES)
        status = read_each(&r, "values", read_value);
    if (status == 0 && call->takes & ROOMS)
        status = read_each(&r, "bytes", read_room);
    if (status == 0 && call->takes & SIZES)
        status = read_each(&r, "sizes", read_parts);
    if (status == 0 && call->takes & WANT)
        status = read_want(&r, want_hex);
    operation->batched = call->batched || operation->item_count > 1;
    return status;
}

/* ---- results */

static struct moon_json *digest_of(struct moon_arena *arena, const struct moon_client_item *item) {
    char digest[17];
    if (item->result < 0)
        return moon_json_null(arena);
    moon_store_digest(item->pieces, item->piece_count, (size_t)item->result, digest);
    return moon_json_string(arena, digest);
}

static void set_lists(struct moon_arena *arena, const struct moon_client_operation *operation, bool digests,
                      struct moon_json *result) {
    struct moon_json *codes = moon_json_set(arena, result, "codes", moon_json_array(arena));
    struct moon_json *list = digests ? moon_json_set(arena, result, "digests", moon_json_array(arena)) : NULL;
    for (size_t i = 0; i < operation->item_count; i++) {
        moon_json_push(codes, moon_json_int(arena, operation->items[i].result));
        if (digests)
            moon_json_push(list, digest_of(arena, &operation->items[i]));
    }
}

struct moon_json *moon_agent_call_result(const struct moon_agent_call *call, struct moon_arena *arena,
                                         const struct moon_client_operation *operation, bool want_hex) {
    struct moon_json *result = moon_json_object(arena);
    if (call->gives == CODES || call->gives == READS) {
        set_lists(arena, operation, call->gives == READS, result);
        return result;
    }
    if (operation->item_count == 0) {
        moon_json_set(arena, result, "code", moon_json_int(arena, operation->result));
        return result;
    }
    const struct moon_client_item *item = &operation->items[0];
    moon_json_set(arena, result, "code", moon_json_int(arena, item->result));
    if (call->gives == READ && want_hex && item->result >= 0)
        moon_json_set(arena, result, "hex", moon_json_hex(arena, item->pieces[0].data, (size_t)item->result));
    else if (call->gives == READ && item->result >= 0)
        moon_json_set(arena, result, "digest", digest_of(arena, item));
    return result;
}
