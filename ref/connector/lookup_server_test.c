/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the lookup server: a request goes in as frames, the store is asked, a reply comes out. */
#include "ref/connector/lookup_server.h"

#include "ref/base/unit.h"
#include "ref/layout/model_check_internal.h"

static struct moon_layout_group group;
static struct moon_layout_model model;
static struct moon_profile release;
static struct moon_connector connector;
static struct moon_deviation_notes notes;
static struct moon_lookup_server server;
static const uint8_t hashes[32] = {0xfe, [16] = 0x8b};

/* One group, blocks of 16, one rank: a key for each of the two hashes. */
static void begin_with(const struct moon_profile *profile, struct moon_memory *memory) {
    release = *profile;
    group = group_of(MOON_SPEC_FULL, 16, 0);
    model = model_of(&group, 1, 1, 1);
    const struct moon_connector_options options = {.role = MOON_ROLE_BOTH, .load_async = true, .enable_lookup = true};
    CU_ASSERT_EQUAL_FATAL(moon_connector_open(&connector, &release, &model, &options, NULL), 0);
    notes.taken = 0;
    connector.notes = &notes;
    moon_lookup_server_open(&server, &connector, memory);
}

static void begin(const char *name) {
    begin_with(moon_profile_find(name, NULL), moon_memory_heap());
}

static void end(void) {
    moon_lookup_server_close(&server);
    moon_lookup_server_close(&server);
    MOON_CHECK_INT(server.need, MOON_SERVER_STOPPED);
}

static int ask(int64_t tokens) {
    struct moon_rpc_message message;
    struct moon_hashes both = {hashes, 16, 2};
    moon_rpc_message_open(&message, moon_memory_heap());
    CU_ASSERT_EQUAL_FATAL(moon_rpc_encode_lookup(&release, tokens, &both, &message, NULL), 0);
    int status = moon_lookup_server_request(&server, message.frames, message.count);
    if (server.need == MOON_SERVER_ASK_STORE && server.call) {
        MOON_CHECK_INT(server.call->kind, MOON_CALL_EXIST);
        MOON_CHECK_INT(server.call->count, 2);
    }
    moon_rpc_message_close(&message);
    return status;
}

static void check_reply(const char *hex) {
    struct moon_text text;
    CU_ASSERT_EQUAL_FATAL(server.need, MOON_SERVER_REPLY);
    moon_text_open(&text, moon_memory_heap());
    moon_text_hex(&text, server.reply.data, server.reply.length);
    MOON_CHECK_TEXT(moon_text_value(&text), hex);
    moon_text_close(&text);
    moon_lookup_server_sent(&server);
    MOON_CHECK_INT(server.need, MOON_SERVER_IDLE);
}

static const int64_t both_there[] = {1, 1}, none_there[] = {0, 0}, odd[] = {1, -5};

static void a_lookup_is_answered_with_its_hit(void) {
    begin("vllm-0.33");
    MOON_CHECK_INT(ask(32), 0);
    MOON_CHECK_INT(moon_lookup_server_answer(&server, both_there, 2), 0);
    check_reply("000000100000000000000010");
    MOON_CHECK_INT(ask(33), 0);
    MOON_CHECK_INT(moon_lookup_server_answer(&server, both_there, 2), 0);
    check_reply("000000200000000000000020");
    MOON_CHECK_INT(ask(32), 0);
    MOON_CHECK_INT(moon_lookup_server_answer(&server, none_there, 2), 0);
    check_reply("00000000");
    MOON_CHECK_INT(ask(33), 0);
    MOON_CHECK_INT(moon_lookup_server_answer(&server, odd, 2), 0);
    check_reply("000000100000000000000010");
    end();
    begin("vllm-0.23");
    MOON_CHECK_INT(ask(32), 0);
    MOON_CHECK_INT(moon_lookup_server_answer(&server, both_there, 2), 0);
    check_reply("00000020"); /* the scheduler side cuts a full hit in this release */
    end();
}

static void a_lookup_that_needs_no_store_is_answered_at_once(void) {
    begin("vllm-0.33");
    MOON_CHECK_INT(ask(15), 0);
    check_reply("00000000");
    end();
}

static void a_call_that_raised_is_no_hit(void) {
    begin("vllm-0.33");
    MOON_CHECK_INT(ask(32), 0);
    MOON_CHECK_INT(moon_lookup_server_raised(&server), 0);
    MOON_CHECK_INT(server.warning.status, MOON_ERR_IO);
    check_reply("00000000");
    MOON_CHECK_INT(ask(33), 0);
    MOON_CHECK_INT(server.warning.status, 0);
    end();
}

static void a_wrong_count_leaves_the_call_open(void) {
    begin("vllm-0.33");
    MOON_CHECK_INT(ask(32), 0);
    MOON_CHECK_INT(moon_lookup_server_answer(&server, both_there, 1), MOON_ERR_RANGE);
    MOON_CHECK_INT(server.need, MOON_SERVER_ASK_STORE);
    MOON_CHECK_INT(moon_lookup_server_answer(&server, both_there, 2), 0);
    check_reply("000000100000000000000010");
    end();
}

static void a_reset_drains_then_removes(void) {
    const struct moon_rpc_frame reset = {(const uint8_t *)"reset", 5};
    begin("vllm-0.23");
    MOON_CHECK_INT(moon_lookup_server_request(&server, &reset, 1), 0);
    MOON_CHECK_INT(server.need, MOON_SERVER_DRAIN);
    MOON_CHECK_INT(moon_lookup_server_done(&server, true), 0);
    MOON_CHECK_INT(server.need, MOON_SERVER_REMOVE_KEYS);
    MOON_CHECK_INT(moon_lookup_server_done(&server, true), 0);
    check_reply("01");
    MOON_CHECK_INT(moon_lookup_server_request(&server, &reset, 1), 0);
    MOON_CHECK_INT(moon_lookup_server_done(&server, false), 0);
    MOON_CHECK_TEXT(server.warning.message, "the send queue did not run empty");
    check_reply("00");
    MOON_CHECK_INT(moon_lookup_server_request(&server, &reset, 1), 0);
    MOON_CHECK_INT(moon_lookup_server_done(&server, true), 0);
    MOON_CHECK_INT(moon_lookup_server_done(&server, false), 0);
    MOON_CHECK_TEXT(server.warning.message, "remove_all raised");
    check_reply("00");
    end();
}

static void an_unknown_request_is_answered_with_a_warning(void) {
    const struct moon_rpc_frame frame = {(const uint8_t *)"resets", 6};
    begin("vllm-0.33");
    MOON_CHECK_INT(moon_lookup_server_request(&server, &frame, 1), 0);
    MOON_CHECK_INT(server.warning.status, MOON_ERR_UNSUPPORTED);
    MOON_CHECK_TEXT(server.warning.message, "unknown request of 6 bytes");
    check_reply("00");
    end();
}

static void an_unreadable_request_stops_the_server(void) {
    const struct moon_rpc_frame frame = {(const uint8_t *)"lookup", 6};
    struct moon_profile strict;
    begin("vllm-0.21");
    MOON_CHECK_INT(moon_lookup_server_request(&server, &frame, 1), 0);
    MOON_CHECK_INT(server.need, MOON_SERVER_STOPPED);
    MOON_CHECK_INT(server.warning.status, MOON_ERR_SYNTAX);
    CU_ASSERT_TRUE(moon_deviation_noted(&notes, MOON_DEVIATION_LOOKUP_SERVER_STOPS));
    end();
    moon_profile_strict(moon_profile_find("vllm-0.33", NULL), &strict);
    begin_with(&strict, moon_memory_heap());
    MOON_CHECK_INT(moon_lookup_server_request(&server, &frame, 1), 0);
    check_reply("00000000");
    MOON_CHECK_INT(notes.taken, 0);
    end();
}

/* What a release would read is a hit of 0 here, and ends no server; nor does in 0.21 what is decoded but no hash. */
static void what_cannot_be_looked_up_is_no_hit(void) {
    const struct moon_rpc_frame many[] = {{(const uint8_t *)"lookup", 6},
                                          {(const uint8_t *)"\x7f\xff\xff\xff\xff\xff\xff\xff", 8},
                                          {hashes, 0},
                                          {hashes, 32}};
    const struct moon_rpc_frame number[] = {{(const uint8_t *)"\x20", 1}, {(const uint8_t *)"\x91\x05", 2}};
    begin("vllm-0.33");
    MOON_CHECK_INT(moon_lookup_server_request(&server, many, 4), 0);
    MOON_CHECK_TEXT(server.warning.message, "more than 2^53 tokens");
    check_reply("00000000");
    end();
    begin("vllm-0.21");
    MOON_CHECK_INT(moon_lookup_server_request(&server, number, 2), 0);
    MOON_CHECK_TEXT(server.warning.message, "a hash is no string");
    check_reply("00000000");
    end();
    begin("vllm-0.22");
    MOON_CHECK_INT(moon_lookup_server_request(&server, number, 2), 0);
    MOON_CHECK_INT(server.need, MOON_SERVER_STOPPED);
    end();
}

/* A sliding window of wider blocks in a fine-grained lookup raises in 0.28 (facts of the hit search). */
static void a_lookup_that_raises(const struct moon_profile *profile) {
    static struct moon_layout_group groups[3];
    begin_with(profile, moon_memory_heap());
    for (size_t i = 0; i < 3; i++)
        groups[i] = group;
    groups[1].spec.kind = MOON_SPEC_SLIDING_WINDOW;
    groups[1].spec.window_tokens = 20;
    groups[1].block_tokens = 32;
    groups[2].spec.kind = MOON_SPEC_MAMBA;
    groups[2].block_tokens = 32;
    model.groups = groups;
    model.group_count = 3;
    model.scheduler_block_tokens = 32;
    const struct moon_connector_options options = {.role = MOON_ROLE_BOTH, .load_async = true, .enable_lookup = true};
    CU_ASSERT_EQUAL_FATAL(moon_connector_open(&connector, &release, &model, &options, NULL), 0);
    connector.notes = &notes;
    struct moon_rpc_message message;
    struct moon_hashes both = {hashes, 16, 2};
    int64_t values[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    moon_rpc_message_open(&message, moon_memory_heap());
    moon_rpc_encode_lookup(&release, 33, &both, &message, NULL);
    MOON_CHECK_INT(moon_lookup_server_request(&server, message.frames, message.count), 0);
    if (server.need == MOON_SERVER_ASK_STORE)
        MOON_CHECK_INT(moon_lookup_server_answer(&server, values, server.call->count), 0);
    moon_rpc_message_close(&message);
}

static void what_a_lookup_raises_stops_the_server(void) {
    struct moon_profile strict;
    const struct moon_profile *profile = moon_profile_find("vllm-0.28", NULL);
    a_lookup_that_raises(profile);
    MOON_CHECK_INT(server.need, MOON_SERVER_STOPPED);
    MOON_CHECK_INT(server.warning.status, MOON_ERR_REFUSED);
    CU_ASSERT_TRUE(moon_deviation_noted(&notes, MOON_DEVIATION_LOOKUP_SERVER_STOPS));
    end();
    moon_profile_strict(profile, &strict);
    a_lookup_that_raises(&strict);
    CU_ASSERT_FALSE(moon_deviation_noted(&notes, MOON_DEVIATION_LOOKUP_SERVER_STOPS));
    CU_ASSERT_EQUAL(server.need, MOON_SERVER_REPLY);
    end();
}

/* Blocks of 2^33 tokens: the hit is a number of more than 32 bits. */
static void a_hit_that_does_not_fit_stops_the_server(void) {
    const char *const names[] = {"vllm-0.21", "vllm-0.33"};
    for (size_t i = 0; i < 2; i++) {
        struct moon_rpc_message message;
        struct moon_hashes both = {hashes, 16, 2};
        begin(names[i]);
        group.block_tokens = model.scheduler_block_tokens = model.hash_block_tokens = INT64_C(1) << 33;
        connector.alignment_tokens = INT64_C(1) << 33;
        moon_rpc_message_open(&message, moon_memory_heap());
        moon_rpc_encode_lookup(&release, 0, &both, &message, NULL);
        message.frames[i] = (struct moon_rpc_frame){(const uint8_t *)"\x10\0\0\0\0", 5}; /* 0.21 has no tag */
        MOON_CHECK_INT(moon_lookup_server_request(&server, message.frames, message.count), 0);
        MOON_CHECK_INT(moon_lookup_server_answer(&server, both_there, 2), 0);
        MOON_CHECK_INT(server.need, MOON_SERVER_STOPPED);
        MOON_CHECK_TEXT(server.warning.type, "OverflowError");
        moon_rpc_message_close(&message);
        end();
    }
}

static void refused_memory_is_told_and_answered(void) {
    struct moon_memory_failing failing;
    const char *const names[] = {"vllm-0.33", "vllm-0.23"};
    for (size_t i = 0; i < 2; i++) {
        int status = MOON_ERR_MEMORY;
        for (uint64_t n = 1; status; n++) {
            moon_memory_failing_init(&failing, moon_memory_heap(), n);
            begin_with(moon_profile_find(names[i], NULL), &failing.memory);
            status = ask(33);
            if (!status && server.need == MOON_SERVER_ASK_STORE)
                status = moon_lookup_server_answer(&server, both_there, 2);
            CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
            MOON_CHECK_INT(server.need, MOON_SERVER_REPLY);
            end();
            MOON_CHECK_INT(failing.held_bytes, 0);
            CU_ASSERT_FATAL(n < 100);
        }
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a lookup is answered with its hit and its tails", a_lookup_is_answered_with_its_hit},
        {"a lookup that needs no store is answered at once", a_lookup_that_needs_no_store_is_answered_at_once},
        {"an existence call that raised is no hit", a_call_that_raised_is_no_hit},
        {"a wrong count of answers leaves the call open", a_wrong_count_leaves_the_call_open},
        {"a reset drains the queue, then removes all keys", a_reset_drains_then_removes},
        {"an unknown request is answered, with a warning", an_unknown_request_is_answered_with_a_warning},
        {"an unreadable request stops the server, strict answers it", an_unreadable_request_stops_the_server},
        {"what cannot be looked up here is no hit", what_cannot_be_looked_up_is_no_hit},
        {"what a lookup raises stops the server, strict answers it", what_a_lookup_raises_stops_the_server},
        {"a hit that does not fit stops the server", a_hit_that_does_not_fit_stops_the_server},
        {"refused memory is told, and answered", refused_memory_is_told_and_answered},
        {NULL, NULL},
    };
    return moon_unit_main("lookup_server", cases, argc, argv);
}
