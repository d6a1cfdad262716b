/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the client of the lookup channel against a scripted transport. */
#include "ref/connector/lookup_client.h"

#include "ref/base/unit.h"

enum { SENT_MAX = 64 };

/* A transport that keeps what was sent. answer: replies that wait() still delivers; -1: as many as asked for. */
struct transport {
    struct moon_lookup_channel channel; /* first member */
    struct moon_lookup_client *client;
    uint32_t tokens[SENT_MAX]; /* of each lookup sent; 0: a reset */
    size_t hash_bytes[SENT_MAX];
    size_t sent;
    int answers;
    bool broken;
    char waits[128];
    int64_t bound_ms;
};

static int keep(struct moon_lookup_channel *channel, const struct moon_rpc_frame *frames, size_t count,
                struct moon_error *error) {
    struct transport *transport = (struct transport *)channel;
    if (transport->broken)
        return moon_fail(error, MOON_ERR_IO, NULL, "broken");
    const uint8_t *number = count > 1 ? frames[1].bytes : NULL;
    transport->tokens[transport->sent] = number ? (uint32_t)(number[2] << 8 | number[3]) : 0;
    transport->hash_bytes[transport->sent++] = count > 3 ? frames[3].length : 0;
    return 0;
}

/* Answers what is out: a lookup with its own number of tokens, less one; a reset with 01. */
static void answer(struct transport *transport) {
    uint32_t tokens = transport->tokens[transport->sent - 1];
    uint8_t hit[4] = {0, 0, (uint8_t)((tokens - 1) >> 8), (uint8_t)(tokens - 1)}, good = 1;
    if (tokens)
        moon_lookup_client_reply(transport->client, hit, sizeof hit);
    else
        moon_lookup_client_reply(transport->client, &good, 1);
}

static void await(struct moon_lookup_channel *channel, const struct moon_channel_wait *wait) {
    struct transport *transport = (struct transport *)channel;
    size_t used = strlen(transport->waits);
    snprintf(transport->waits + used, sizeof transport->waits - used, "%s;", wait->name);
    transport->bound_ms = wait->bound_ms;
    if (transport->answers == 0)
        return;
    transport->answers -= transport->answers > 0;
    answer(transport);
}

static struct moon_connector connector;
static struct transport transport;
static struct moon_lookup_client *client;
static struct moon_lookup_port *port;
static const uint8_t hashes[64];

static void begin(const char *release) {
    connector = (struct moon_connector){.profile = moon_profile_find(release, NULL)};
    transport = (struct transport){.channel = {keep, await}, .answers = -1};
    CU_ASSERT_EQUAL_FATAL(moon_lookup_client_open(&client, &connector, &transport.channel, moon_memory_heap(), NULL),
                          0);
    transport.client = client;
    port = moon_lookup_client_port(client);
}

static void end(void) {
    moon_lookup_client_close(client);
}

enum { PENDING = -1 };

/* Asks for slot and tokens; returns the hit, PENDING, or the error below that. */
static int64_t ask(uint32_t slot, int64_t tokens, bool non_block) {
    struct moon_request request = {.slot = slot, .hashes = {hashes, 16, 2}};
    struct moon_lookup_result result = {.hit_tokens = 99};
    struct moon_error error = {0};
    bool pending = true;
    int status = port->lookup(port, &request, tokens, non_block, &result, &pending, &error);
    if (pending)
        return PENDING;
    MOON_CHECK_INT(error.status, status);
    if (status)
        MOON_CHECK_INT(result.hit_tokens, 0);
    return status ? 10 * status : result.hit_tokens;
}

static void a_question_blocks_until_its_answer(void) {
    begin("vllm-0.33");
    MOON_CHECK_INT(ask(0, 33, false), 32);
    MOON_CHECK_INT(transport.hash_bytes[0], 32);
    MOON_CHECK_INT(ask(0, 33, false), 32);
    MOON_CHECK_INT(transport.sent, 2);
    MOON_CHECK_TEXT(transport.waits, "reply to a lookup;reply to a lookup;");
    MOON_CHECK_INT(transport.bound_ms, MOON_LOOKUP_WAIT_MS);
    MOON_CHECK_INT(moon_lookup_client_futures(client), 0);
    CU_ASSERT_FALSE(moon_lookup_client_waiting(client, NULL));
    end();
}

static void an_answer_is_used_up_by_who_takes_it(void) {
    begin("vllm-0.33");
    MOON_CHECK_INT(ask(3, 33, true), PENDING);
    MOON_CHECK_INT(ask(3, 50, true), PENDING); /* asks for the same answer */
    MOON_CHECK_INT(transport.sent, 1);
    MOON_CHECK_INT(moon_lookup_client_futures(client), 1);
    answer(&transport);
    MOON_CHECK_INT(moon_lookup_client_futures(client), 1);
    MOON_CHECK_INT(ask(3, 50, true), 32);
    MOON_CHECK_INT(moon_lookup_client_futures(client), 0);
    MOON_CHECK_INT(ask(3, 50, true), PENDING); /* anew */
    MOON_CHECK_INT(transport.tokens[1], 50);
    answer(&transport);
    MOON_CHECK_INT(ask(3, 50, true), 49);
    end();
}

static void one_is_out_and_the_others_follow_in_order(void) {
    begin("vllm-0.30");
    for (uint32_t slot = 0; slot < 9; slot++)
        MOON_CHECK_INT(ask(8 - slot, 100 + slot, true), PENDING);
    MOON_CHECK_INT(transport.sent, 1);
    for (uint32_t i = 0; i < 9; i++) {
        MOON_CHECK_INT(transport.sent, i + 1);
        MOON_CHECK_INT(transport.tokens[i], 100 + i);
        answer(&transport);
    }
    moon_lookup_client_reply(client, "", 0); /* nothing is out */
    for (uint32_t slot = 0; slot < 9; slot++)
        MOON_CHECK_INT(ask(8 - slot, 1, true), 99 + slot);
    end();
}

static void who_must_not_wait_is_not_held_back_by_who_may(void) {
    begin("vllm-0.30");
    MOON_CHECK_INT(ask(1, 20, true), PENDING);
    MOON_CHECK_INT(ask(2, 30, true), PENDING);
    MOON_CHECK_INT(ask(5, 40, false), 39); /* waits for those before it */
    MOON_CHECK_INT(ask(1, 20, true), 19);
    MOON_CHECK_INT(ask(2, 30, false), 29);
    end();
}

static void what_was_discarded_while_queued_is_never_sent(void) {
    begin("vllm-0.33");
    for (uint32_t slot = 0; slot < 5; slot++)
        MOON_CHECK_INT(ask(slot, 10 + slot, true), PENDING);
    port->discard(port, 2);
    port->discard(port, 4); /* the last one */
    port->discard(port, 1); /* the first one queued */
    port->discard(port, 1); /* nothing is known of it */
    port->discard(port, 77);
    MOON_CHECK_INT(moon_lookup_client_futures(client), 2);
    MOON_CHECK_INT(ask(4, 60, true), PENDING);
    answer(&transport);
    answer(&transport);
    answer(&transport);
    MOON_CHECK_INT(transport.sent, 3);
    MOON_CHECK_INT(transport.tokens[1], 13);
    MOON_CHECK_INT(transport.tokens[2], 60);
    MOON_CHECK_INT(ask(0, 1, true), 9);
    MOON_CHECK_INT(ask(3, 1, true), 12);
    MOON_CHECK_INT(ask(4, 1, true), 59);
    end();
}

static void what_was_discarded_while_out_is_dropped_when_it_answers(void) {
    begin("vllm-0.33");
    MOON_CHECK_INT(ask(0, 20, true), PENDING);
    port->discard(port, 0);
    MOON_CHECK_INT(moon_lookup_client_futures(client), 0);
    CU_ASSERT_TRUE(moon_lookup_client_waiting(client, NULL));
    MOON_CHECK_INT(ask(0, 30, true), PENDING); /* another request of the same name */
    MOON_CHECK_INT(transport.sent, 1);
    answer(&transport);
    MOON_CHECK_INT(transport.sent, 2);
    MOON_CHECK_INT(ask(0, 30, true), PENDING);
    answer(&transport);
    MOON_CHECK_INT(ask(0, 30, true), 29);
    MOON_CHECK_INT(ask(1, 40, true), PENDING); /* discarded when it is answered already */
    answer(&transport);
    port->discard(port, 1);
    MOON_CHECK_INT(moon_lookup_client_futures(client), 0);
    MOON_CHECK_INT(ask(1, 41, true), PENDING);
    end();
}

static void failures_are_used_up_too_and_disturb_nobody(void) {
    begin("vllm-0.33");
    MOON_CHECK_INT(ask(0, 20, true), PENDING);
    MOON_CHECK_INT(ask(1, INT64_C(1) << 32, true), PENDING); /* cannot be written */
    MOON_CHECK_INT(ask(2, 40, true), PENDING);
    moon_lookup_client_reply(client, "12345", 5);
    MOON_CHECK_INT(transport.sent, 2);
    answer(&transport);
    MOON_CHECK_INT(ask(0, 20, true), 10 * MOON_ERR_REFUSED);
    MOON_CHECK_INT(ask(1, 30, true), 10 * MOON_ERR_REFUSED);
    MOON_CHECK_INT(ask(2, 40, true), 39);
    transport.broken = true;
    MOON_CHECK_INT(ask(0, 20, true), 10 * MOON_ERR_IO);
    MOON_CHECK_INT(moon_lookup_client_futures(client), 0);
    end();
}

static void a_wait_ends_when_its_time_is_up(void) {
    struct moon_channel_wait wait;
    begin("vllm-0.33");
    transport.answers = 0;
    MOON_CHECK_INT(ask(0, 20, false), 10 * MOON_ERR_IO);
    CU_ASSERT_FALSE(moon_lookup_client_waiting(client, &wait));
    transport.answers = 1;
    MOON_CHECK_INT(ask(0, 20, true), PENDING);
    MOON_CHECK_INT(ask(1, 30, true), PENDING);
    CU_ASSERT_TRUE(moon_lookup_client_waiting(client, &wait));
    MOON_CHECK_TEXT(wait.name, "reply to a lookup");
    moon_lookup_client_time_up(client);
    MOON_CHECK_INT(transport.sent, 3);
    MOON_CHECK_INT(ask(0, 20, true), 10 * MOON_ERR_IO);
    MOON_CHECK_INT(ask(1, 30, false), 29);
    moon_lookup_client_time_up(client); /* nothing is out */
    end();
}

static void a_reset_waits_in_the_queue(void) {
    begin("vllm-0.23");
    MOON_CHECK_INT(ask(0, 20, true), PENDING);
    CU_ASSERT_TRUE(port->reset(port));
    MOON_CHECK_INT(transport.sent, 2);
    MOON_CHECK_INT(transport.tokens[1], 0);
    MOON_CHECK_TEXT(transport.waits, "reply to a lookup;reply to a reset;");
    MOON_CHECK_INT(transport.bound_ms, MOON_RESET_WAIT_MS);
    MOON_CHECK_INT(moon_lookup_client_futures(client), 1);
    MOON_CHECK_INT(ask(0, 20, true), 19);
    transport.answers = 0;
    CU_ASSERT_FALSE(port->reset(port));
    end();
    begin("vllm-0.22");
    CU_ASSERT_FALSE(port->reset(port));
    MOON_CHECK_INT(transport.sent, 0);
    end();
}

static void refused_memory_is_told_and_leaves_nothing(void) {
    struct moon_memory_failing failing;
    connector = (struct moon_connector){.profile = moon_profile_find("vllm-0.22", NULL)};
    uint64_t n = 1, refusals = 0;
    for (bool refused = true; refused; n++) {
        refused = false;
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        transport = (struct transport){.channel = {keep, await}, .answers = -1};
        if (moon_lookup_client_open(&client, &connector, &transport.channel, &failing.memory, NULL)) {
            CU_ASSERT_PTR_NULL(client);
            refused = true;
        } else {
            transport.client = client;
            port = moon_lookup_client_port(client);
            for (uint32_t slot = 0; slot < 20 && !refused; slot++)
                refused = ask(slot, 20, false) == 10 * MOON_ERR_MEMORY;
            connector.profile = moon_profile_find("vllm-0.33", NULL);
            for (uint32_t slot = 0; slot < 20 && !refused; slot++)
                refused = ask(slot, 20, true) == 10 * MOON_ERR_MEMORY;
            port->reset(port);
            connector.profile = moon_profile_find("vllm-0.22", NULL);
        }
        moon_lookup_client_close(client);
        MOON_CHECK_INT(failing.held_bytes, 0);
        refusals += refused;
    }
    CU_ASSERT(refusals >= 5);
}

static void a_reset_without_memory_has_failed(void) {
    struct moon_memory_failing failing;
    connector = (struct moon_connector){.profile = moon_profile_find("vllm-0.33", NULL)};
    transport = (struct transport){.channel = {keep, await}, .answers = -1};
    moon_memory_failing_init(&failing, moon_memory_heap(), 2);
    CU_ASSERT_EQUAL_FATAL(moon_lookup_client_open(&client, &connector, &transport.channel, &failing.memory, NULL), 0);
    port = moon_lookup_client_port(client);
    CU_ASSERT_FALSE(port->reset(port));
    moon_lookup_client_close(client);
    moon_lookup_client_close(NULL);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a question that may block waits for its answer", a_question_blocks_until_its_answer},
        {"an answer is used up by who takes it", an_answer_is_used_up_by_who_takes_it},
        {"one request is out, the others follow in order of arrival", one_is_out_and_the_others_follow_in_order},
        {"a question that may block waits for those before it", who_must_not_wait_is_not_held_back_by_who_may},
        {"what is discarded while queued is never sent", what_was_discarded_while_queued_is_never_sent},
        {"what is discarded while out is dropped when it answers",
         what_was_discarded_while_out_is_dropped_when_it_answers},
        {"a failure is used up too, and disturbs nobody", failures_are_used_up_too_and_disturb_nobody},
        {"a wait ends when its time is up", a_wait_ends_when_its_time_is_up},
        {"a reset waits in the queue", a_reset_waits_in_the_queue},
        {"refused memory is told and leaves nothing behind", refused_memory_is_told_and_leaves_nothing},
        {"a reset without memory has failed", a_reset_without_memory_has_failed},
        {NULL, NULL},
    };
    return moon_unit_main("lookup_client", cases, argc, argv);
}
