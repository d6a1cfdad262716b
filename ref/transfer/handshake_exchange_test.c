/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of handshake exchanges: an engine answers what real processes ask, and asks as they do. */
#include "ref/base/unit.h"
#include "ref/transfer/handshake.h"
#include "ref/transfer/net_internal.h"

/* mooncake-transfer-engine-non-cuda 0.3.13.post1, a store client's first put to an owner, both frames of the Metadata
 * exchange (fixtures/wire, run "plain", connection 4). Ports of the owner: handshake 15012, data 16637. */
static const char recorded_question[] =
    "\x47\x01\0\0\0\0\0\0\x01"
    "{\"buffers\":[{\"addr\":139941593985088,\"length\":16777216,\"name\":\"127.0.0.1:15576\"},"
    "{\"addr\":139942181208064,\"length\":1048576,\"name\":\"127.0.0.1:15576\"}],\"name\":\"127.0.0.1:15576\","
    "\"protocol\":\"tcp\",\"rdma_server_name\":\"\",\"tcp_data_host\":\"127.0.0.1\",\"tcp_data_port\":16186,"
    "\"tcp_proto_version\":2,\"timestamp\":\"2026-11-29 12:37:58.123294\"}\n";
static const char recorded_answer[] =
    "\x48\x01\0\0\0\0\0\0\x01"
    "{\"buffers\":[{\"addr\":139871364575296,\"length\":16777216,\"name\":\"127.0.0.1:15012\"},"
    "{\"addr\":139871263916032,\"length\":67108864,\"name\":\"127.0.0.1:15012\"}],\"name\":\"127.0.0.1:15012\","
    "\"protocol\":\"tcp\",\"rdma_server_name\":\"\",\"tcp_data_host\":\"127.0.0.1\",\"tcp_data_port\":16637,"
    "\"tcp_proto_version\":2,\"timestamp\":\"2026-11-29 12:37:58.125307\"}\n";
/* The same release, a transfer engine over verbs: probe and notify; and what it answers to a second Connection round.
 */
static const char recorded_probe[] = "\x04\0\0\0\0\0\0\0\x03{}\n";
static const char recorded_probe_answer[] = "\x16\0\0\0\0\0\0\0\x03{\"status\":\"success\"}\n";
static const char recorded_notify[] = "\x24\0\0\0\0\0\0\0\x02{\"name\":\"n1\",\"notify_msg\":\"hello\"}\n";
static const char recorded_notify_answer[] = "\x24\0\0\0\0\0\0\0\x02{\"name\":\"\",\"notify_msg\":\"success\"}\n";
static const char connection_question[] = "\x04\0\0\0\0\0\0\0\0{}\n";
static const char recorded_empty_connection[] =
    "\x6f\0\0\0\0\0\0\0\0{\"local_gid\":\"\",\"local_lid\":0,\"local_nic_path\":\"\",\"payload\":\"\","
    "\"peer_nic_path\":\"\",\"qp_num\":[],\"reply_msg\":\"\"}\n";

/* A node that is asked, with the memory of the recorded owner, and one that asks. */
struct scene {
    struct net net;
    struct net_node *asked, *asker;
    struct raw raw;
};

static struct scene *open_scene(uint64_t seed) {
    static uint8_t memory;
    struct scene *scene = calloc(1, sizeof *scene);
    assert(scene);
    net_open(&scene->net, seed);
    scene->asked = net_add(&scene->net, "127.0.0.1", moon_memory_heap());
    scene->asker = net_add(&scene->net, "10.0.0.2", moon_memory_heap());
    scene->asked->environment.wall_ns += 2013000; /* 12:37:58.125307 */
    net_start(scene->asked, 0);
    MOON_CHECK_INT(moon_transfer_register(scene->asked->transfer, &memory, 139871364575296, 16777216, false), 0);
    MOON_CHECK_INT(moon_transfer_register(scene->asked->transfer, &memory, 139871263916032, 67108864, true), 0);
    return scene;
}

static void close_scene(struct scene *scene) {
    if (scene->asked->transfer)
        net_stop(scene->asked);
    net_settle(&scene->net);
    MOON_CHECK_INT(net_count(scene->asked, true), 0);
    net_close(&scene->net);
    free(scene);
}

static void ask(struct scene *scene, const void *frame, size_t length) {
    raw_dial(&scene->raw, scene->asker, moon_transfer_endpoint(scene->asked->transfer));
    if (length > 0)
        raw_send(&scene->raw, frame, length);
    net_settle(&scene->net);
}

static void check_answer(struct scene *scene, const char *frame, size_t length) {
    if (!raw_has(&scene->raw, frame, length))
        fprintf(stderr, "answered: %.*s\nexpected: %.*s\n", (int)scene->raw.length - 8, scene->raw.bytes + 8,
                (int)length - 8, frame + 8);
    CU_ASSERT(raw_has(&scene->raw, frame, length));
    CU_ASSERT(scene->raw.open); /* the asker closes first */
    raw_close(&scene->raw);
    net_settle(&scene->net);
    MOON_CHECK_INT(net_count(scene->asked, true), 0);
}

/* Replaces the ports of the recording by those of the scene: all have five digits. */
static void replace(char *text, const char *old, const char *new) {
    for (char *at = strstr(text, old); at; at = strstr(at, old))
        memcpy(at, new, strlen(new));
}

static void answers_metadata_as_recorded(void) {
    struct scene *scene = open_scene(1);
    char expected[sizeof recorded_answer];
    memcpy(expected, recorded_answer, sizeof expected);
    replace(expected + 9, "15012", strrchr(moon_transfer_endpoint(scene->asked->transfer), ':') + 1);
    replace(expected + 9, "16637", strrchr(net_data_endpoint(scene->asked), ':') + 1);
    ask(scene, recorded_question, sizeof recorded_question - 1);
    check_answer(scene, expected, sizeof expected - 1);
    close_scene(scene);
}

static void writes_the_time_of_any_day(void) {
    static const struct {
        moon_ns seconds;
        const char *text;
    } rows[] = {
        {0, "\"1970-01-01 00:00:00.000001\""},          {951782399, "\"2000-02-28 23:59:59.000001\""},
        {951782400, "\"2000-02-29 00:00:00.000001\""},  {951868800, "\"2000-03-01 00:00:00.000001\""},
        {1704067199, "\"2023-12-31 23:59:59.000001\""}, {1709251199, "\"2024-02-29 23:59:59.000001\""},
        {4107542400, "\"2100-03-01 00:00:00.000001\""},
    };
    static const char question[] = "\x04\0\0\0\0\0\0\0\x01{}\n";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene *scene = open_scene(i);
        scene->asked->environment.wall_ns = rows[i].seconds * MOON_NS_PER_S + 1999;
        ask(scene, question, sizeof question - 1);
        const char *time = strstr((const char *)scene->raw.bytes + 9, "\"timestamp\":");
        char text[64] = "";
        if (time)
            snprintf(text, sizeof text, "%.28s", time + strlen("\"timestamp\":"));
        MOON_CHECK_TEXT(text, rows[i].text);
        raw_close(&scene->raw);
        close_scene(scene);
    }
}

static void answers_the_other_questions(void) {
    struct scene *scene = open_scene(2);
    ask(scene, recorded_probe, sizeof recorded_probe - 1);
    check_answer(scene, recorded_probe_answer, sizeof recorded_probe_answer - 1);
    ask(scene, recorded_notify, sizeof recorded_notify - 1);
    check_answer(scene, recorded_notify_answer, sizeof recorded_notify_answer - 1);
    ask(scene, connection_question, sizeof connection_question - 1);
    check_answer(scene, recorded_empty_connection, sizeof recorded_empty_connection - 1);
    close_scene(scene);
}

static void answers_an_old_frame_in_its_form(void) {
    static const char question[] = "\x03\0\0\0\0\0\0\0{}\n";
    struct scene *scene = open_scene(3);
    char expected[sizeof recorded_empty_connection];
    memcpy(expected, recorded_empty_connection, sizeof expected);
    expected[0]--;
    memmove(expected + 8, expected + 9, sizeof expected - 9);
    ask(scene, question, sizeof question - 1);
    check_answer(scene, expected, sizeof expected - 2);
    close_scene(scene);
}

static void closes_what_is_no_question(void) {
    static const struct {
        const char *bytes;
        size_t length;
    } rows[] = {
        {"\0\0\0\0\0\0\0\0\x03{}", 11},                 /* length 0 */
        {"\xff\xff\xff\xff\xff\xff\xff\xff\x03{}", 11}, /* length max */
        {"\x01\0\x10\0\0\0\0\0\x03{}", 11},             /* one over 1 MiB */
        {"\x02\0\0\0\0\0\0\0\x03{}\n", 12},             /* one byte of JSON too few, "{" */
        {"\x01\0\0\0\0\0\0\0\x01", 9},                  /* no JSON at all */
        {"\x06\0\0\0\0\0\0\0\x01{\"a\"}", 14},          /* none */
        {"\x05\0\0\0\0\0\0\0\x02zzzz", 13},
        {"GET / HTTP/1.1\r\n", 16}, /* a probe of another protocol */
    };
    struct scene *scene = open_scene(4);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ask(scene, rows[i].bytes, rows[i].length);
        CU_ASSERT(scene->raw.ended);
        MOON_CHECK_INT(scene->raw.length, 0);
        ask(scene, recorded_probe, sizeof recorded_probe - 1);
        check_answer(scene, recorded_probe_answer, sizeof recorded_probe_answer - 1);
    }
    close_scene(scene);
}

static void closes_a_cut_question_after_five_seconds(void) {
    struct scene *scene = open_scene(5);
    for (size_t length = 0; length < sizeof recorded_question - 1; length += length < 16 ? 1 : 19) {
        moon_ns begin = scene->asked->environment.now_ns;
        struct raw other;
        ask(scene, recorded_question, length);
        CU_ASSERT(scene->raw.open);
        raw_dial(&other, scene->asker, moon_transfer_endpoint(scene->asked->transfer));
        raw_send(&other, recorded_probe, sizeof recorded_probe - 1);
        net_settle(&scene->net); /* the silent one blocks nobody */
        CU_ASSERT(raw_has(&other, recorded_probe_answer, sizeof recorded_probe_answer - 1));
        raw_close(&other);
        net_settle(&scene->net);
        CU_ASSERT(net_wait(&scene->net));
        MOON_CHECK_INT(scene->asked->environment.now_ns - begin, 5 * MOON_NS_PER_S);
        CU_ASSERT(scene->raw.ended);
        MOON_CHECK_INT(scene->raw.length, 0);
    }
    for (size_t length = 0; length < 64; length++) { /* cut off */
        ask(scene, recorded_question, length);
        raw_close(&scene->raw);
        net_settle(&scene->net);
        MOON_CHECK_INT(net_count(scene->asked, true), 0);
    }
    close_scene(scene);
}

static void does_not_wait_for_ever_for_the_end(void) {
    struct scene *scene = open_scene(6);
    moon_ns begin = scene->asked->environment.now_ns;
    ask(scene, recorded_probe, sizeof recorded_probe - 1);
    raw_send(&scene->raw, recorded_probe, sizeof recorded_probe - 1); /* is passed over */
    net_settle(&scene->net);
    CU_ASSERT(raw_has(&scene->raw, recorded_probe_answer, sizeof recorded_probe_answer - 1));
    CU_ASSERT(net_wait(&scene->net));
    CU_ASSERT(scene->raw.ended);
    MOON_CHECK_INT(scene->asked->environment.now_ns - begin, 5 * MOON_NS_PER_S);
    close_scene(scene);
}

static void has_a_limit_of_connections(void) {
    enum { MANY = 300 };
    struct scene *scene = open_scene(7);
    struct raw *raws = calloc(MANY, sizeof *raws);
    size_t ended = 0;
    assert(raws);
    for (size_t i = 0; i < MANY; i++)
        raw_dial(&raws[i], scene->asker, moon_transfer_endpoint(scene->asked->transfer));
    net_settle(&scene->net);
    for (size_t i = 0; i < MANY; i++)
        ended += raws[i].ended;
    MOON_CHECK_INT(ended, MANY - 256);
    CU_ASSERT(net_wait(&scene->net));
    ask(scene, recorded_probe, sizeof recorded_probe - 1);
    check_answer(scene, recorded_probe_answer, sizeof recorded_probe_answer - 1);
    close_scene(scene);
    free(raws);
}

/* ---- asking */

struct asked {
    struct moon_handshake_question question; /* first member */
    int done_count;
    bool answered;
    char text[4096];
};

static void on_done(struct moon_handshake_question *question, const char *json, size_t length) {
    struct asked *asked = (struct asked *)question;
    asked->done_count++;
    asked->answered = json;
    assert(length < sizeof asked->text);
    if (json)
        memcpy(asked->text, json, length);
    asked->text[length] = '\0';
}

static struct moon_handshake_client *begin(struct net_node *node, struct asked *asked, const char *endpoint) {
    struct moon_handshake_client *client = moon_handshake_client_open(&node->environment);
    assert(client);
    memset(asked, 0, sizeof *asked);
    asked->question.done = on_done;
    MOON_CHECK_INT(moon_handshake_ask(client, &asked->question, endpoint, MOON_WIRE_HANDSHAKE_METADATA,
                                      recorded_question + 9, sizeof recorded_question - 10),
                   0);
    return client;
}

/* Moves the time of the client's node to its deadline. */
static void wait_for(struct scene *scene, struct moon_handshake_client *client) {
    net_set_time(&scene->net, moon_handshake_client_deadline(client));
    moon_handshake_client_tick(client);
    net_settle(&scene->net);
}

static void asks_and_gets_the_answer(void) {
    struct scene *scene = open_scene(8);
    struct asked asked;
    raw_listen(&scene->raw, scene->asked, "127.0.0.1:999");
    struct moon_handshake_client *client = begin(scene->asker, &asked, "127.0.0.1:999");
    net_settle(&scene->net);
    CU_ASSERT(raw_has(&scene->raw, recorded_question, sizeof recorded_question - 1));
    MOON_CHECK_INT(moon_handshake_client_deadline(client) - scene->asker->environment.now_ns, 60 * MOON_NS_PER_S);
    raw_send(&scene->raw, recorded_answer, sizeof recorded_answer - 1);
    net_settle(&scene->net);
    MOON_CHECK_INT(asked.done_count, 1);
    MOON_CHECK_TEXT(asked.text, recorded_answer + 9);
    CU_ASSERT(scene->raw.ended);
    MOON_CHECK_INT(moon_handshake_client_deadline(client), MOON_NS_NEVER);
    moon_handshake_cancel(client, &asked.question); /* nothing to cancel */
    moon_handshake_client_close(client);
    close_scene(scene);
}

static void tells_that_there_is_no_answer(void) {
    struct scene *scene = open_scene(9);
    struct asked asked;
    /* refused at once, refused by the network, never accepted */
    struct moon_handshake_client *client = begin(scene->asker, &asked, "nonsense");
    MOON_CHECK_INT(asked.done_count, 0);
    wait_for(scene, client);
    MOON_CHECK_INT(asked.done_count, 1);
    moon_handshake_client_close(client);
    client = begin(scene->asker, &asked, "127.0.0.1:1");
    net_settle(&scene->net);
    MOON_CHECK_INT(asked.done_count, 1);
    moon_handshake_client_close(client);
    client = begin(scene->asker, &asked, "127.0.0.1:1");
    MOON_CHECK_INT(moon_handshake_client_deadline(client) - scene->asker->environment.now_ns, 5 * MOON_NS_PER_S);
    wait_for(scene, client);
    MOON_CHECK_INT(asked.done_count, 1);
    CU_ASSERT(!asked.answered);
    moon_handshake_client_close(client);
    /* accepted and silent, cut at every byte, answered with something else */
    raw_listen(&scene->raw, scene->asked, "127.0.0.1:999");
    client = begin(scene->asker, &asked, "127.0.0.1:999");
    net_settle(&scene->net);
    wait_for(scene, client);
    MOON_CHECK_INT(asked.done_count, 1);
    moon_handshake_client_close(client);
    for (size_t length = 0; length < sizeof recorded_answer - 1; length += 7) {
        client = begin(scene->asker, &asked, "127.0.0.1:999");
        net_settle(&scene->net);
        if (length > 0)
            raw_send(&scene->raw, recorded_answer, length);
        net_settle(&scene->net);
        MOON_CHECK_INT(asked.done_count, 0);
        raw_close(&scene->raw);
        net_settle(&scene->net);
        MOON_CHECK_INT(asked.done_count, 1);
        CU_ASSERT(!asked.answered);
        moon_handshake_client_close(client);
    }
    client = begin(scene->asker, &asked, "127.0.0.1:999");
    net_settle(&scene->net);
    raw_send(&scene->raw, recorded_probe_answer, sizeof recorded_probe_answer - 1);
    net_settle(&scene->net);
    CU_ASSERT(asked.done_count == 1 && !asked.answered);
    moon_handshake_client_close(client);
    client = begin(scene->asker, &asked, "127.0.0.1:999");
    net_settle(&scene->net);
    raw_send(&scene->raw, "\0\0\0\0\0\0\0\0", 8);
    net_settle(&scene->net);
    CU_ASSERT(asked.done_count == 1 && !asked.answered);
    moon_handshake_client_close(client);
    close_scene(scene);
}

static void forgets_what_is_cancelled(void) {
    struct scene *scene = open_scene(10);
    struct asked asked;
    raw_listen(&scene->raw, scene->asked, "127.0.0.1:999");
    struct moon_handshake_client *client = begin(scene->asker, &asked, "127.0.0.1:999");
    net_settle(&scene->net);
    moon_handshake_cancel(client, &asked.question);
    net_settle(&scene->net);
    CU_ASSERT(scene->raw.ended && asked.done_count == 0);
    moon_handshake_client_close(client);
    client = begin(scene->asker, &asked, "127.0.0.1:999");
    net_settle(&scene->net);
    moon_handshake_client_close(client); /* with a question under way */
    net_settle(&scene->net);
    CU_ASSERT(scene->raw.ended && asked.done_count == 0);
    moon_handshake_client_close(NULL);
    moon_handshake_server_close(NULL);
    close_scene(scene);
}

/* Answers and asks with memory that refuses: never a leak, and all is as before when memory is back. */
static void survives_refused_memory(void) {
    for (uint64_t fail_at = 1, refused = 1; refused; fail_at++) {
        struct moon_memory_failing failing;
        struct scene *scene = open_scene(fail_at);
        struct asked asked = {.question = {.done = on_done}};
        moon_memory_failing_init(&failing, moon_memory_heap(), 0);
        struct net_node *node = net_add(&scene->net, "10.0.0.3", &failing.memory);
        net_start(node, 0);
        struct moon_handshake_client *client = moon_handshake_client_open(&node->environment);
        assert(client);
        failing.fail_at = failing.requests + fail_at;
        int status = moon_handshake_ask(client, &asked.question, moon_transfer_endpoint(node->transfer),
                                        MOON_WIRE_HANDSHAKE_METADATA, "{}\n", 3);
        net_settle(&scene->net);
        MOON_CHECK_INT(asked.done_count, status == 0);
        refused = failing.requests >= failing.fail_at;
        CU_ASSERT(refused || asked.answered);
        failing.fail_at = 0;
        asked.answered = false;
        MOON_CHECK_INT(moon_handshake_ask(client, &asked.question, moon_transfer_endpoint(node->transfer),
                                          MOON_WIRE_HANDSHAKE_METADATA, "{}\n", 3),
                       0);
        net_settle(&scene->net);
        CU_ASSERT(asked.answered);
        moon_handshake_client_close(client);
        net_stop(node);
        net_settle(&scene->net);
        MOON_CHECK_INT(failing.held_bytes, 0);
        close_scene(scene);
        if (fail_at > 1000)
            break;
    }
}

int main(int argc, char *argv[]) {
    const struct moon_unit_case cases[] = {
        {"a recorded Metadata question is answered byte for byte as recorded", answers_metadata_as_recorded},
        {"the time stamp is the date of any day", writes_the_time_of_any_day},
        {"Probe, Notify and Connection are answered as recorded", answers_the_other_questions},
        {"a frame without type byte is answered without one", answers_an_old_frame_in_its_form},
        {"what is no question is closed, and others are answered", closes_what_is_no_question},
        {"a question that is not whole is closed after 5 s and blocks nobody",
         closes_a_cut_question_after_five_seconds},
        {"an answered peer that does not close is closed after 5 s", does_not_wait_for_ever_for_the_end},
        {"there are at most 256 connections", has_a_limit_of_connections},
        {"a question goes out as recorded, and its answer is told", asks_and_gets_the_answer},
        {"refused, silent, cut and wrong peers give no answer", tells_that_there_is_no_answer},
        {"a cancelled question is forgotten", forgets_what_is_cancelled},
        {"refused memory leaks nothing and leaves all usable", survives_refused_memory},
        {NULL, NULL},
    };
    return moon_unit_main("transfer handshakes", cases, argc, argv);
}
