/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the lookup channel of the reference with what real releases were recorded to send, take and answer
 * (fixtures/lookup-rpc). Each case is run on the reference, its outcome is written in the form of the record, and both
 * must be equal. Runs in the root of the repository. */
#include "conformance/io.h"
#include "ref/base/unit.h"
#include "ref/connector/lookup_client.h"
#include "ref/connector/lookup_server.h"
#include "ref/connector/scheduler.h"
#include "ref/layout/model_check_internal.h"

#define RECORD            "fixtures/lookup-rpc/frames.json.zst"
#define EXACT_INTEGER_MAX (INT64_C(1) << 53)
enum { SERVER_FRAMES_MAX = 8, SENT_MAX = 32, RELEASES = 13 };

static struct moon_arena arena;
static const struct moon_json *record;

/* One case, and what is built for it. */
static const struct moon_json *its;
static struct moon_profile profile;
static struct moon_layout_group group;
static struct moon_layout_model model;
static struct moon_connector connector;

static const struct moon_json *member(const struct moon_json *object, const char *name) {
    const struct moon_json *found = moon_json_member(object, name);
    CU_ASSERT_PTR_NOT_NULL_FATAL(found);
    return found;
}

static bool absent(const struct moon_json *value) {
    return !value || moon_json_is(value, MOON_JSON_NULL);
}

static const struct moon_json *given(const char *name) {
    return moon_json_member(member(its, "given"), name);
}

static const struct moon_json *expected(const char *name) {
    return moon_json_member(member(its, "expect"), name);
}

static struct moon_json *object(void) {
    return moon_json_object(&arena);
}

static void set(struct moon_json *to, const char *name, struct moon_json *value) {
    moon_json_set(&arena, to, name, value);
}

/* The record writes what is beyond 2^53 as text. */
static struct moon_json *number(int64_t value) {
    if (value <= EXACT_INTEGER_MAX)
        return moon_json_int(&arena, value);
    return moon_json_string(&arena, moon_arena_format(&arena, "%lld", (long long)value));
}

static struct moon_rpc_frame frame_of(const struct moon_json *hex) {
    uint8_t *bytes = moon_arena_alloc(&arena, hex->length / 2 + 1);
    CU_ASSERT_EQUAL_FATAL(moon_hex_decode(hex->bytes, hex->length, bytes), 0);
    return (struct moon_rpc_frame){bytes, hex->length / 2};
}

static size_t frames_of(const struct moon_json *list, struct moon_rpc_frame frames[SERVER_FRAMES_MAX]) {
    size_t count = 0;
    for (const struct moon_json *one = list->first; one; one = one->next) {
        CU_ASSERT_FATAL(count < SERVER_FRAMES_MAX);
        frames[count++] = frame_of(one);
    }
    return count;
}

static struct moon_hashes hashes_of(const struct moon_json *list) {
    struct moon_hashes hashes = {NULL, 0, 0};
    if (!list->first)
        return hashes;
    size_t bytes = list->first->length / 2;
    uint8_t *all = moon_arena_alloc(&arena, bytes * list->count);
    for (const struct moon_json *one = list->first; one; one = one->next)
        memcpy(all + bytes * one->index, frame_of(one).bytes, bytes);
    return (struct moon_hashes){all, bytes, list->count};
}

static struct moon_json *hex_of_frames(const struct moon_rpc_frame *frames, size_t count) {
    struct moon_json *list = moon_json_array(&arena);
    for (size_t i = 0; i < count; i++)
        moon_json_push(list, moon_json_hex(&arena, frames[i].bytes, frames[i].length));
    return list;
}

static bool tells_tails(void) {
    return profile.lookup_rpc == MOON_RPC_TAILS;
}

/* A result as the record has it. A group without boundary is left out. */
static void set_result(struct moon_json *to, const struct moon_lookup_result *result) {
    struct moon_json *boundaries = moon_json_array(&arena);
    set(to, "hit", number(result->hit_tokens));
    if (!tells_tails())
        return;
    for (size_t i = 0; i < result->boundary_count; i++) {
        if (result->tail_boundaries[i] == 0)
            continue;
        struct moon_json *pair = moon_json_push(boundaries, moon_json_array(&arena));
        CU_ASSERT_PTR_NOT_NULL_FATAL(pair);
        moon_json_push(pair, moon_json_int(&arena, (int64_t)i));
        moon_json_push(pair, moon_json_int(&arena, result->tail_boundaries[i]));
    }
    set(to, "boundaries", boundaries);
}

static const char *text_of(const struct moon_json *value) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_json_write(value, MOON_JSON_COMPACT, &text);
    const char *copy = moon_arena_copy(&arena, moon_text_value(&text), text.length);
    moon_text_close(&text);
    return copy;
}

/* Compares with the expectation, of which only the members in `seen` count. */
static void check_seen(const struct moon_json *seen) {
    CU_ASSERT_FALSE_FATAL(moon_json_broken(seen));
    for (const struct moon_json *one = seen->first; one; one = one->next) {
        const struct moon_json *other = expected(one->name);
        bool same = other && moon_json_equal(one, other);
        if (!same)
            fprintf(stderr, "%s %s \"%s\": %s is\n  %s, recorded\n  %s\n", member(its, "profile")->bytes,
                    member(its, "do")->bytes, member(its, "name")->bytes, one->name, text_of(one),
                    other ? text_of(other) : "nothing");
        CU_ASSERT_TRUE(same);
    }
}

static bool is_named(const char *name) {
    return moon_json_is_string(member(its, "name"), name);
}

/* The instance of all cases: one group of full attention, blocks of 16 tokens, one rank. */
static void open_connector(void) {
    const struct moon_connector_options options = {
        .role = MOON_ROLE_BOTH, .load_async = true, .enable_lookup = true, .discard_partial_chunks = true};
    const struct moon_profile *known = moon_profile_find(member(its, "profile")->bytes, NULL);
    CU_ASSERT_PTR_NOT_NULL_FATAL(known);
    profile = *known;
    group = group_of(MOON_SPEC_FULL, 16, 0);
    model = model_of(&group, 1, 1, 8);
    CU_ASSERT_EQUAL_FATAL(moon_connector_open(&connector, &profile, &model, &options, NULL), 0);
}

/* Runs `check` on every case of that kind; which are of so many releases. */
static void each(const char *kind, void (*check)(void), size_t releases) {
    size_t seen = 0;
    const struct moon_json *before = NULL;
    if (!record)
        return;
    for (its = record->first; its; its = its->next) {
        if (!moon_json_is_string(member(its, "do"), kind))
            continue;
        seen += !before || !moon_json_equal(before, member(its, "profile"));
        before = member(its, "profile");
        open_connector();
        check();
    }
    MOON_CHECK_INT(seen, releases);
}

/* ---- the client */

/* A transport that keeps what is sent. `replies` are what a blocking call gets, `during` what is sent while it waits.
 */
static struct {
    struct moon_lookup_channel channel; /* first member */
    struct moon_lookup_client *client;
    struct moon_json *sent[SENT_MAX];
    size_t count, taken;
    const struct moon_json *replies;
    struct moon_json *during;
} transport;

static int keep(struct moon_lookup_channel *channel, const struct moon_rpc_frame *frames, size_t count,
                struct moon_error *error) {
    (void)channel;
    (void)error;
    CU_ASSERT_FATAL(transport.count < SENT_MAX);
    transport.sent[transport.count++] = hex_of_frames(frames, count);
    return 0;
}

static void reply(const struct moon_json *hex) {
    struct moon_rpc_frame frame = frame_of(hex);
    moon_lookup_client_reply(transport.client, frame.bytes, frame.length);
}

static void wait_for_reply(struct moon_lookup_channel *channel, const struct moon_channel_wait *wait) {
    (void)channel;
    (void)wait;
    CU_ASSERT_FATAL(transport.replies && transport.taken < transport.count);
    moon_json_push(transport.during, transport.sent[transport.taken++]);
    const struct moon_json *hex = transport.replies;
    transport.replies = hex->next;
    reply(hex);
}

static struct moon_lookup_port *open_client(void) {
    memset(&transport, 0, sizeof transport);
    transport.channel = (struct moon_lookup_channel){keep, wait_for_reply};
    transport.during = moon_json_array(&arena);
    CU_ASSERT_EQUAL_FATAL(
        moon_lookup_client_open(&transport.client, &connector, &transport.channel, moon_memory_heap(), NULL), 0);
    return moon_lookup_client_port(transport.client);
}

static struct moon_request request_of(uint32_t slot, const struct moon_json *tokens, const struct moon_json *hashes) {
    return (struct moon_request){
        .slot = slot, .prompt_tokens = tokens->integer, .known_tokens = tokens->integer, .hashes = hashes_of(hashes)};
}

static void a_request(void) {
    struct moon_json *seen = object();
    struct moon_rpc_message message;
    struct moon_error error;
    struct moon_lookup_result none = {.hit_tokens = 0};
    moon_rpc_message_open(&message, moon_memory_heap());
    int status = 0;
    if (given("reset")) {
        moon_rpc_encode_reset(&message);
    } else {
        struct moon_hashes hashes = hashes_of(given("hashes"));
        status = moon_rpc_encode_lookup(&profile, given("tokens")->integer, &hashes, &message, &error);
    }
    set(seen, "frames", status ? moon_json_null(&arena) : hex_of_frames(message.frames, message.count));
    if (status && profile.lookup_rpc < MOON_RPC_BINARY)
        set(seen, "error", moon_json_string(&arena, error.type));
    else if (status)
        set_result(seen, &none); /* from 0.24 on the client takes it for that; the scripts show that ours does */
    check_seen(seen);
    moon_rpc_message_close(&message);
}

static void requests_are_those_of_the_releases(void) {
    each("request", a_request, RELEASES);
}

/* Of two entries for a group the later counts, and ours come in the order of the groups. False: a group that we do not
 * know. */
static bool recorded_result(struct moon_lookup_result *result) {
    *result = (struct moon_lookup_result){.hit_tokens = expected("hit")->integer};
    const struct moon_json *boundaries = expected("boundaries");
    for (const struct moon_json *one = boundaries ? boundaries->first : NULL; one; one = one->next) {
        int64_t at = one->first->integer;
        if (at >= MOON_STORE_GROUPS_MAX)
            return false;
        result->tail_boundaries[at] = one->last->integer;
        if (result->boundary_count <= (size_t)at)
            result->boundary_count = (size_t)at + 1;
    }
    return true;
}

static void a_reply(void) {
    struct moon_rpc_frame frame = frame_of(given("reply"));
    struct moon_lookup_result result, recorded;
    struct moon_json *seen = object();
    if (given("reset")) {
        set(seen, "good", moon_json_bool(&arena, moon_rpc_decode_status(frame.bytes, frame.length)));
        check_seen(seen);
        return;
    }
    int status = moon_rpc_decode_reply(&connector, frame.bytes, frame.length, &result, NULL);
    set_result(seen, &result);
    if (status == MOON_ERR_RANGE) { /* a hit beyond 63 bits; no request is that long */
        CU_ASSERT_TRUE(moon_json_is(expected("hit"), MOON_JSON_STRING));
        CU_ASSERT(strcmp(expected("hit")->bytes, "9223372036854775807") > 0 || expected("hit")->length > 19);
    } else if (status == MOON_ERR_LIMIT) {
        CU_ASSERT_FALSE(recorded_result(&recorded));
    } else if (tells_tails()) {
        CU_ASSERT_TRUE(recorded_result(&recorded));
        struct moon_json *ordered = object();
        set_result(ordered, &recorded);
        if (!moon_json_equal(ordered, seen))
            check_seen(seen); /* says both sides */
        CU_ASSERT_TRUE(moon_json_equal(ordered, seen));
    } else {
        check_seen(seen);
    }
}

static void replies_are_read_as_releases_read_them(void) {
    each("reply", a_reply, RELEASES);
}

static void set_answer(struct moon_json *to, bool pending, const struct moon_lookup_result *result) {
    if (pending)
        set(to, "pending", moon_json_bool(&arena, true));
    else
        set_result(to, result);
}

/* One step of a script; what it shows. */
static struct moon_json *a_step(struct moon_lookup_port *port, const struct moon_json *step) {
    struct moon_json *seen = object();
    const struct moon_json *name = moon_json_member(step, "ask"), *reset = moon_json_member(step, "reset");
    bool blocks = reset || (name && !member(step, "non_block")->boolean);
    if (blocks) {
        transport.during = moon_json_array(&arena);
        transport.replies = member(step, "replies")->first;
    }
    if (moon_json_member(step, "take")) {
        CU_ASSERT_FATAL(transport.taken < transport.count);
        set(seen, "frames", transport.sent[transport.taken++]);
    } else if (moon_json_member(step, "reply")) {
        reply(member(step, "reply"));
    } else if (moon_json_member(step, "discard")) {
        port->discard(port, (uint32_t)(member(step, "discard")->bytes[0] - 'a'));
    } else if (reset) {
        bool good = port->reset(port);
        set(seen, "sent", transport.during);
        set(seen, "good", moon_json_bool(&arena, good));
    } else {
        static struct moon_request asked[26];
        struct moon_lookup_result result;
        bool pending = false;
        uint32_t slot = (uint32_t)(name->bytes[0] - 'a');
        asked[slot] = request_of(slot, member(step, "tokens"), member(step, "hashes"));
        port->lookup(port, &asked[slot], member(step, "tokens")->integer, !blocks, &result, &pending, NULL);
        if (blocks)
            set(seen, "sent", transport.during);
        set_answer(seen, pending, &result);
    }
    set(seen, "known", moon_json_int(&arena, (int64_t)moon_lookup_client_futures(transport.client)));
    return seen;
}

static void a_script(void) {
    struct moon_lookup_port *port = open_client();
    struct moon_json *seen = object(), *steps = moon_json_array(&arena);
    for (const struct moon_json *step = given("steps")->first; step; step = step->next)
        moon_json_push(steps, a_step(port, step));
    set(seen, "steps", steps);
    check_seen(seen);
    moon_lookup_client_close(transport.client);
}

static void the_queue_is_that_of_the_releases(void) {
    each("script", a_script, RELEASES - 3);
}

static void a_question(void) {
    struct moon_lookup_port *port = open_client();
    struct moon_scheduler *scheduler;
    struct moon_match match;
    struct moon_request request = request_of(0, given("tokens"), given("hashes"));
    struct moon_json *seen = object();
    CU_ASSERT_EQUAL_FATAL(moon_scheduler_open(&scheduler, &connector, port, NULL, 1, moon_memory_heap(), NULL), 0);
    transport.replies = absent(given("reply")) ? NULL : given("reply");
    MOON_CHECK_INT(moon_scheduler_match(scheduler, &request, 0, &match, NULL), 0);
    set(seen, "frames", transport.count ? moon_json_clone(&arena, transport.sent[0]) : moon_json_null(&arena));
    set(seen, "matched", moon_json_int(&arena, match.tokens));
    set(seen, "load_async", moon_json_bool(&arena, match.load_async));
    check_seen(seen);
    moon_scheduler_close(scheduler);
    moon_lookup_client_close(transport.client);
}

static void the_scheduler_side_asks_as_the_releases_ask(void) {
    each("question", a_question, RELEASES);
}

/* ---- the server */

static struct moon_lookup_server server;

/* What came out of it: a reply that is sent, or none. */
static void set_outcome(struct moon_json *to) {
    bool replies = server.need == MOON_SERVER_REPLY;
    set(to, "reply", replies ? moon_json_hex(&arena, server.reply.data, server.reply.length) : moon_json_null(&arena));
    set(to, "goes_on", moon_json_bool(&arena, server.need != MOON_SERVER_STOPPED));
    if (replies)
        moon_lookup_server_sent(&server);
}

/* The lookup is stood in by what the case says; so is ours. */
static void set_served(struct moon_json *seen, const struct moon_rpc_request *request) {
    struct moon_json *asked = object(), *list = moon_json_array(&arena);
    const struct moon_json *boundaries = moon_json_member(given("lookup"), "boundaries");
    struct moon_lookup_result result = {0};
    struct moon_text text;
    set(asked, "tokens", number(request->num_tokens));
    for (size_t i = 0; i < request->hashes.count; i++)
        moon_json_push(list, moon_json_hex(&arena, request->hashes.bytes + i * request->hashes.hash_bytes,
                                           request->hashes.hash_bytes));
    set(asked, "hashes", list);
    set(seen, "asked", asked);
    if (moon_json_member(given("lookup"), "raises")) {
        /* In 0.21 the lookup itself catches everything, so that ours never raises: the cases of `worker` show it. */
        if (profile.raised_stops_server)
            set(seen, "goes_on", moon_json_bool(&arena, false));
        return;
    }
    result.hit_tokens = member(given("lookup"), "hit")->integer;
    for (const struct moon_json *one = boundaries ? boundaries->first : NULL; one; one = one->next) {
        result.tail_boundaries[one->first->integer] = one->last->integer;
        result.boundary_count = (size_t)one->first->integer + 1;
    }
    moon_text_open(&text, moon_memory_heap());
    int status = moon_rpc_encode_reply(&profile, &result, &text, NULL);
    set(seen, "reply", status ? moon_json_null(&arena) : moon_json_hex(&arena, text.data, text.length));
    set(seen, "goes_on", moon_json_bool(&arena, !status || !profile.malformed_stops_server));
    moon_text_close(&text);
}

/* Where the reference is narrower (RPC-004): it answers a hit of 0, and goes on. */
static void check_narrower(int status) {
    if (status == MOON_ERR_SCHEMA)
        CU_ASSERT_FALSE(profile.raised_stops_server);
    CU_ASSERT_TRUE(member(member(its, "expect"), "goes_on")->boolean);
    CU_ASSERT_FALSE(absent(expected("asked")));
    CU_ASSERT_EQUAL(server.need, MOON_SERVER_REPLY);
    MOON_CHECK_INT(server.reply.length, 4);
}

static void a_served_request(void) {
    struct moon_rpc_frame frames[SERVER_FRAMES_MAX];
    struct moon_rpc_request request;
    struct moon_json *seen = object();
    size_t count = frames_of(given("frames"), frames);
    if (profile.lookup_rpc == MOON_RPC_LIST && !profile.raised_stops_server &&
        (is_named("list: upper case") || is_named("list: blanks")))
        return; /* 0.21 makes keys of the text as it comes; no release writes such hashes */
    moon_lookup_server_open(&server, &connector, moon_memory_heap());
    moon_rpc_request_open(&request, moon_memory_heap());
    int status = moon_rpc_decode_request(&profile, frames, count, &request, NULL);
    MOON_CHECK_INT(moon_lookup_server_request(&server, frames, count), 0);
    if (status == MOON_ERR_LIMIT || (status == MOON_ERR_SCHEMA && !absent(expected("asked")))) {
        check_narrower(status);
    } else {
        if (!status && request.kind == MOON_RPC_LOOKUP) {
            set_served(seen, &request);
        } else {
            set(seen, "asked", moon_json_null(&arena));
            set_outcome(seen);
        }
        check_seen(seen);
    }
    moon_rpc_request_close(&request);
    moon_lookup_server_close(&server);
}

static void requests_are_read_and_answered_as_by_releases(void) {
    each("serve", a_served_request, RELEASES);
}

static void a_reset(void) {
    struct moon_rpc_frame frames[SERVER_FRAMES_MAX];
    struct moon_json *seen = object(), *calls = moon_json_array(&arena);
    const struct moon_json *raises = given("raises");
    moon_lookup_server_open(&server, &connector, moon_memory_heap());
    MOON_CHECK_INT(moon_lookup_server_request(&server, frames, frames_of(given("frames"), frames)), 0);
    while (server.need == MOON_SERVER_DRAIN || server.need == MOON_SERVER_REMOVE_KEYS) {
        const char *call = server.need == MOON_SERVER_DRAIN ? "join" : "remove_all";
        moon_json_push(calls, moon_json_string(&arena, call));
        MOON_CHECK_INT(moon_lookup_server_done(&server, !moon_json_is_string(raises, call)), 0);
    }
    set(seen, "calls", calls);
    set_outcome(seen);
    check_seen(seen);
    moon_lookup_server_close(&server);
}

static void resets_are_those_of_the_releases(void) {
    each("reset", a_reset, RELEASES - 2);
}

static void answer_of_store(void) {
    int64_t values[SENT_MAX];
    size_t count = 0;
    if (moon_json_is_string(given("exist"), "raises")) {
        MOON_CHECK_INT(moon_lookup_server_raised(&server), 0);
        return;
    }
    for (const struct moon_json *one = given("exist")->first; one; one = one->next)
        values[count++] = one->integer;
    MOON_CHECK_INT(moon_lookup_server_answer(&server, values, count), 0);
}

static void a_worker(void) {
    struct moon_rpc_frame frames[SERVER_FRAMES_MAX];
    size_t count = frames_of(given("frames"), frames);
    if (is_named("too few answers"))
        return; /* for us a mistake of the caller, which is told (MOON_ERR_RANGE); shows what a raise does (RPC-009) */
    moon_lookup_server_open(&server, &connector, moon_memory_heap());
    for (int turn = 0; turn < 2 && server.need == MOON_SERVER_IDLE; turn++) { /* the same again, if it goes on */
        struct moon_json *seen = object();
        MOON_CHECK_INT(moon_lookup_server_request(&server, frames, count), 0);
        if (server.need == MOON_SERVER_ASK_STORE) {
            set(seen, "keys", moon_json_int(&arena, (int64_t)server.call->count));
            answer_of_store();
        } else if (absent(expected("keys"))) {
            set(seen, "keys", moon_json_null(&arena));
        } else { /* 0.21 calls the store for no key, and for the key of a text that is no hex */
            MOON_CHECK_INT(expected("keys")->integer, is_named("list: no hex"));
        }
        set_outcome(seen);
        check_seen(seen);
    }
    moon_lookup_server_close(&server);
}

static void the_server_with_its_worker_answers_as_the_releases(void) {
    each("worker", a_worker, RELEASES);
}

/* Reads the record. In a tree without fixtures nothing is compared. Returns 0, or -1 and says why. */
static int load(void) {
    struct moon_json *root;
    struct moon_error error;
    if (!moon_io_is_folder("fixtures"))
        return 0;
    if (moon_io_read_json(&arena, RECORD, MOON_JSON_STRICT, &root, &error)) {
        fprintf(stderr, "%s: %s: %s\n", RECORD, error.where, error.message);
        return -1;
    }
    record = moon_json_member(root, "cases");
    return moon_json_is_string(moon_json_member(root, "schema"), "mooncheck-lookup-rpc/1") && record ? 0 : -1;
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a request has the frames that its release sends", requests_are_those_of_the_releases},
        {"a reply of any length is read as its release reads it", replies_are_read_as_releases_read_them},
        {"lookups and resets are queued, sent, taken and discarded as by releases", the_queue_is_that_of_the_releases},
        {"the scheduler side asks for the tokens its release asks for", the_scheduler_side_asks_as_the_releases_ask},
        {"the server reads, answers and ends as its release", requests_are_read_and_answered_as_by_releases},
        {"a reset makes the calls of its release", resets_are_those_of_the_releases},
        {"server and worker answer as those of the release", the_server_with_its_worker_answers_as_the_releases},
        {NULL, NULL},
    };
    moon_arena_open(&arena, moon_memory_heap());
    int status = load() ? 1 : moon_unit_main("lookup_rpc_fixture", cases, argc, argv);
    moon_arena_close(&arena);
    return status;
}
