/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of jobs: what goes out, over which connections, and what becomes of a job when something breaks. */
#include "ref/transfer/transfer.h"

#include "ref/base/unit.h"
#include "ref/transfer/net_internal.h"
#include "ref/wire/handshake.h"

/* mooncake-transfer-engine-non-cuda 0.3.13.post1 (fixtures/wire): the owner's descriptor, and what requesters sent to
 * its data port: run "plain", connection 5, and run "v1", connection 5. */
static const char recorded_descriptor[] =
    "{\"buffers\":[{\"addr\":139871364575296,\"length\":16777216,\"name\":\"127.0.0.1:15012\"},"
    "{\"addr\":139871263916032,\"length\":67108864,\"name\":\"127.0.0.1:15012\"}],\"name\":\"127.0.0.1:15012\","
    "\"protocol\":\"tcp\",\"rdma_server_name\":\"\",\"tcp_data_host\":\"127.0.0.1\",\"tcp_data_port\":16637,"
    "\"tcp_proto_version\":2,\"timestamp\":\"2026-11-29 12:37:58.125307\"}\n";
static const char owner_endpoint[] = "127.0.0.1:15012", owner_data[] = "127.0.0.1:16637";
static const uint64_t plain_address = 139871263916032, v1_address = 140338945589248;
static const char plain_write[] = "050000000000000000000051367f0000810000000000000068656c6c6f";
static const char plain_write_answer[] = "000000005654434d";
static const char plain_read[] = "050000000000000000000051367f00008000000000000000";
static const char plain_read_answer[] = "000000005654434d68656c6c6f";
static const char v1_write[] = "050000000000000000000035a37f0000010000000000000068656c6c6f";
static const char v1_read[] = "050000000000000000000035a37f00000000000000000000";
static const char v1_read_answer[] = "68656c6c6f";
static const char refusal[] = "010000005654434d";

/* One engine, and an owner of which both ports are spoken by the test. */
struct scene {
    struct net net;
    struct net_node *node, *owner;
    struct raw handshake, data;
    struct net_job job;
    uint8_t memory[64];
    struct moon_piece piece;
    char frame[2048];
    uint8_t answer[64];
};

static struct scene *open_scene(unsigned data_version) {
    struct scene *scene = calloc(1, sizeof *scene);
    assert(scene);
    net_open(&scene->net, data_version + 1);
    scene->node = net_add(&scene->net, "10.0.0.1", moon_memory_heap());
    scene->owner = net_add(&scene->net, "127.0.0.1", moon_memory_heap());
    net_start(scene->node, data_version);
    raw_listen(&scene->handshake, scene->owner, owner_endpoint);
    raw_listen(&scene->data, scene->owner, owner_data);
    scene->piece = (struct moon_piece){scene->memory, 5};
    memcpy(scene->memory, "hello", 5);
    return scene;
}

static void close_scene(struct scene *scene) {
    if (scene->node->transfer)
        net_stop(scene->node);
    net_settle(&scene->net);
    net_close(&scene->net);
    free(scene);
}

static void submit(struct scene *scene, bool write, uint64_t address) {
    MOON_CHECK_INT(net_submit(scene->node, &scene->job, owner_endpoint, write, address, &scene->piece, 1), 0);
    MOON_CHECK_INT(scene->job.done_count, 0);
    net_settle(&scene->net);
}

/* The owner answers the question that is there. */
static void describe(struct scene *scene, const char *json) {
    size_t length = strlen(json) + 1;
    CU_ASSERT(scene->handshake.length > 9 && scene->handshake.bytes[8] == MOON_WIRE_HANDSHAKE_METADATA);
    memset(scene->frame, 0, 9);
    scene->frame[0] = (char)(length & 0xff);
    scene->frame[1] = (char)(length >> 8);
    scene->frame[8] = MOON_WIRE_HANDSHAKE_METADATA;
    memcpy(scene->frame + 9, json, length - 1);
    raw_send(&scene->handshake, scene->frame, length + 8);
    net_settle(&scene->net);
}

static void check_request(struct scene *scene, const char *hex) {
    char heard[sizeof scene->frame];
    if (!scene->data.stream || scene->data.length > 512) {
        CU_FAIL("nothing was asked for");
        return;
    }
    for (size_t i = 0; i < scene->data.length; i++)
        snprintf(heard + 2 * i, 3, "%02x", scene->data.bytes[i]);
    heard[2 * scene->data.length] = '\0';
    MOON_CHECK_TEXT(heard, hex);
    scene->data.length = 0;
}

static void answer(struct scene *scene, const char *hex) {
    moon_hex_decode(hex, strlen(hex), scene->answer);
    raw_send(&scene->data, scene->answer, strlen(hex) / 2);
    net_settle(&scene->net);
}

static void check_done(struct scene *scene, int code) {
    MOON_CHECK_INT(scene->job.done_count, 1);
    MOON_CHECK_INT(scene->job.code, code);
}

/* A write that succeeds, so that there is a lane. */
static void warm_up(struct scene *scene) {
    submit(scene, true, plain_address);
    describe(scene, recorded_descriptor);
    check_request(scene, plain_write);
    answer(scene, plain_write_answer);
    check_done(scene, 0);
}

static void asks_as_recorded(void) {
    struct scene *scene = open_scene(0);
    warm_up(scene);
    memset(scene->memory, 0, 5);
    submit(scene, false, plain_address);
    check_request(scene, plain_read);
    answer(scene, plain_read_answer);
    check_done(scene, 0);
    CU_ASSERT(memcmp(scene->memory, "hello", 5) == 0);
    MOON_CHECK_INT(scene->handshake.accepted_count, 1);
    MOON_CHECK_INT(scene->data.accepted_count, 1);
    CU_ASSERT(!net_wait(&scene->net)); /* an idle lane has no end */
    close_scene(scene);
}

static void asks_in_version_1_as_recorded(void) {
    struct scene *scene = open_scene(1);
    submit(scene, true, v1_address);
    describe(scene, recorded_descriptor);
    check_request(scene, v1_write);
    check_done(scene, 0);
    memset(scene->memory, 0, 5);
    submit(scene, false, v1_address);
    check_request(scene, v1_read);
    answer(scene, v1_read_answer);
    check_done(scene, 0);
    CU_ASSERT(memcmp(scene->memory, "hello", 5) == 0);
    MOON_CHECK_INT(scene->data.accepted_count, 1);
    close_scene(scene);
}

/* What the release's client does with each of these was measured, but for the last ones. */
static void takes_descriptors_as_the_release(void) {
    static const struct {
        const char *json;
        int version; /* 0: the job fails */
    } rows[] = {
        {"{\"name\":\"x\",\"protocol\":\"tcp\",\"tcp_data_port\":16637,\"buffers\":[]}", 1},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":16637}", 1},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":16637,\"tcp_proto_version\":1}", 1},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":16637,\"tcp_proto_version\":2,\"new\":{}}", 2},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":16637,\"tcp_proto_version\":3,\"tcp_data_host\":\"\"}", 2},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":16637,\"tcp_data_host\":\"127.0.0.2\"}", 0},
        {"{\"tcp_data_port\":16637}", 0},
        {"{\"protocol\":\"tcp\"}", 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":0}", 0},
        {"{\"protocol\":\"rdma\",\"tcp_data_port\":0}", 0},
        {"{\"protocol\":\"tcp\",\"tcp_data_port\":1}", 0},
        {"{\"protocol\":", 0},
        {"[]", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene *scene = open_scene(0);
        submit(scene, true, plain_address);
        describe(scene, rows[i].json);
        if (rows[i].version) {
            MOON_CHECK_INT(scene->data.length, 29);
            MOON_CHECK_INT(scene->data.bytes[16], rows[i].version == 2 ? 0x81 : 1);
        } else {
            check_done(scene, MOON_STORE_TRANSFER_FAIL);
        }
        close_scene(scene);
    }
}

static void dials_where_the_descriptor_says(void) {
    static const struct {
        const char *endpoint, *data_host, *data;
    } rows[] = {
        {"10.1.1.1:9", "", "10.1.1.1:77"},
        {"10.1.1.1:9", "10.1.1.2", "10.1.1.2:77"},
        {"[fe80::1]:9", "", "[fe80::1]:77"},
        {"[fe80::1]:9", "fe80::2", "[fe80::2]:77"},
        {"[fe80::1]:9", "[fe80::2]", "[fe80::2]:77"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct scene *scene = open_scene(0);
        struct raw handshake, data;
        char json[256];
        raw_listen(&handshake, scene->owner, rows[i].endpoint);
        raw_listen(&data, scene->owner, rows[i].data);
        snprintf(json, sizeof json, "{\"protocol\":\"tcp\",\"tcp_data_port\":77,\"tcp_data_host\":\"%s\"}",
                 rows[i].data_host);
        MOON_CHECK_INT(net_submit(scene->node, &scene->job, rows[i].endpoint, true, 5, &scene->piece, 1), 0);
        net_settle(&scene->net);
        scene->handshake.stream = handshake.stream;
        memcpy(scene->handshake.bytes, handshake.bytes, handshake.length);
        scene->handshake.length = handshake.length;
        describe(scene, json);
        MOON_CHECK_INT(data.length, 29);
        scene->handshake.stream = NULL;
        close_scene(scene);
    }
}

static void fails_without_a_descriptor_and_asks_again(void) {
    struct scene *scene = open_scene(0);
    submit(scene, true, plain_address);
    raw_close(&scene->handshake);
    net_settle(&scene->net);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    warm_up(scene);
    MOON_CHECK_INT(scene->handshake.accepted_count, 2);
    close_scene(scene);
}

static void opens_an_idle_lane_that_broke_again(void) {
    struct scene *scene = open_scene(0);
    warm_up(scene);
    for (int round = 0; round < 2; round++) {
        if (round == 0)
            raw_close(&scene->data);
        else
            net_break((struct net_stream *)scene->data.stream);
        net_settle(&scene->net);
        submit(scene, true, plain_address);
        check_request(scene, plain_write);
        answer(scene, plain_write_answer);
        check_done(scene, 0);
    }
    MOON_CHECK_INT(scene->handshake.accepted_count, 1);
    MOON_CHECK_INT(scene->data.accepted_count, 3);
    close_scene(scene);
}

/* The answer of a read cut at every byte, and two that are wrong. */
static void fails_once_when_a_lane_breaks(void) {
    static const char *const wrong[] = {refusal, "00000000ffffffff"};
    size_t whole = strlen(plain_read_answer) / 2;
    for (size_t length = 0; length < whole + 2; length++) {
        struct scene *scene = open_scene(0);
        warm_up(scene);
        submit(scene, false, plain_address);
        check_request(scene, plain_read);
        if (length >= whole) {
            answer(scene, wrong[length - whole]);
        } else {
            char cut[64];
            snprintf(cut, sizeof cut, "%.*s", (int)(2 * length), plain_read_answer);
            if (length > 0)
                answer(scene, cut);
            MOON_CHECK_INT(scene->job.done_count, 0);
            raw_close(&scene->data);
            net_settle(&scene->net);
        }
        check_done(scene, MOON_STORE_TRANSFER_FAIL);
        MOON_CHECK_INT(net_count(scene->node, false), 0);
        raw_close(&scene->handshake);
        net_settle(&scene->net);
        warm_up(scene); /* asks for the descriptor again */
        MOON_CHECK_INT(scene->handshake.accepted_count, 2);
        close_scene(scene);
    }
}

static void closes_a_lane_that_says_what_nobody_asked(void) {
    struct scene *scene = open_scene(0);
    warm_up(scene);
    answer(scene, "00");
    CU_ASSERT(scene->data.ended);
    submit(scene, true, plain_address);
    MOON_CHECK_INT(scene->data.accepted_count, 2);
    /* more than was asked for, behind an answer */
    answer(scene, "000000005654434d00");
    check_done(scene, 0);
    CU_ASSERT(scene->data.ended);
    close_scene(scene);
}

static void fails_after_thirty_seconds_without_progress(void) {
    struct scene *scene = open_scene(0);
    warm_up(scene);
    moon_ns begin = scene->node->environment.now_ns;
    submit(scene, false, plain_address);
    net_set_time(&scene->net, begin + 20 * MOON_NS_PER_S);
    answer(scene, "0000"); /* progress */
    CU_ASSERT(net_wait(&scene->net));
    MOON_CHECK_INT(scene->node->environment.now_ns - begin, 50 * MOON_NS_PER_S);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    CU_ASSERT(scene->data.ended);
    raw_close(&scene->handshake);
    net_settle(&scene->net);
    warm_up(scene);
    begin = scene->node->environment.now_ns;
    scene->net.wire_bytes_max = 0; /* the request does not even leave */
    submit(scene, false, plain_address);
    CU_ASSERT(net_wait(&scene->net));
    MOON_CHECK_INT(scene->node->environment.now_ns - begin, 30 * MOON_NS_PER_S);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    close_scene(scene);
}

static void fails_when_nobody_accepts(void) {
    struct scene *scene = open_scene(0);
    moon_ns begin = scene->node->environment.now_ns;
    scene->owner->streams.close(&scene->owner->streams, scene->handshake.listener);
    submit(scene, false, plain_address);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    raw_listen(&scene->handshake, scene->owner, owner_endpoint);
    submit(scene, false, plain_address); /* silence */
    CU_ASSERT(net_wait(&scene->net));
    MOON_CHECK_INT(scene->node->environment.now_ns - begin, 60 * MOON_NS_PER_S);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    scene->owner->streams.close(&scene->owner->streams, scene->data.listener);
    submit(scene, false, plain_address); /* no data port */
    describe(scene, recorded_descriptor);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    scene->net.refuse_all = true;
    submit(scene, false, plain_address);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    close_scene(scene);
}

/* A data port that takes connections slowly or not at all. */
static void a_lane_that_never_stands_fails(void) {
    struct scene *scene = open_scene(0);
    submit(scene, false, plain_address);
    scene->net.refuse_all = true; /* from now on: the lane is refused at once */
    describe(scene, recorded_descriptor);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    close_scene(scene);
}

static void moves_to_a_new_data_port(void) {
    struct scene *scene = open_scene(0);
    struct raw moved;
    raw_listen(&moved, scene->owner, "127.0.0.1:16638");
    warm_up(scene);
    raw_close(&scene->handshake);
    net_settle(&scene->net);
    submit(scene, false, plain_address);
    answer(scene, refusal);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    submit(scene, false, plain_address);
    describe(scene, "{\"protocol\":\"tcp\",\"tcp_data_port\":16638,\"tcp_proto_version\":2}");
    MOON_CHECK_INT(moved.length, 24);
    raw_close(&moved);
    net_settle(&scene->net);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    close_scene(scene);
}

/* A lane to the old port ends what it has under way, and is then closed. */
static void a_busy_lane_moves_when_it_is_free(void) {
    struct scene *scene = open_scene(0);
    struct net_job second, third;
    struct raw moved;
    raw_listen(&moved, scene->owner, "127.0.0.1:16638");
    warm_up(scene);
    submit(scene, false, plain_address);
    struct moon_stream *first = scene->data.stream;
    MOON_CHECK_INT(net_submit(scene->node, &second, owner_endpoint, false, 5, &scene->piece, 1), 0);
    net_settle(&scene->net);
    answer(scene, refusal);
    MOON_CHECK_INT(second.code, MOON_STORE_TRANSFER_FAIL);
    MOON_CHECK_INT(net_submit(scene->node, &third, owner_endpoint, false, 5, &scene->piece, 1), 0);
    net_settle(&scene->net);
    describe(scene, "{\"protocol\":\"tcp\",\"tcp_data_port\":16638,\"tcp_proto_version\":2}");
    MOON_CHECK_INT(moved.length, 24);
    CU_ASSERT(((struct net_stream *)first)->other != NULL);
    scene->data.stream = first;
    scene->data.ended = false;
    answer(scene, plain_read_answer);
    check_done(scene, 0);
    CU_ASSERT(scene->data.ended);
    MOON_CHECK_INT(third.done_count, 0);
    close_scene(scene);
}

/* While a lane stands, one that was refused is tried again after a second; without any the job fails. */
static void a_lane_beside_others_may_be_refused(void) {
    struct scene *scene = open_scene(0);
    struct net_job second, third;
    warm_up(scene);
    submit(scene, false, plain_address);
    scene->owner->streams.close(&scene->owner->streams, scene->data.listener);
    MOON_CHECK_INT(net_submit(scene->node, &second, owner_endpoint, false, 5, &scene->piece, 1), 0);
    net_settle(&scene->net);
    MOON_CHECK_INT(net_submit(scene->node, &third, owner_endpoint, false, 5, &scene->piece, 1), 0);
    MOON_CHECK_INT(net_count(scene->node, false), 1);
    net_settle(&scene->net);
    MOON_CHECK_INT(second.done_count + third.done_count, 0);
    for (int i = 0; i < 3; i++)
        answer(scene, plain_read_answer);
    check_done(scene, 0);
    MOON_CHECK_INT(second.code + third.code, 0);
    close_scene(scene);
}

static void a_cancelled_job_leaves_its_memory_alone(void) {
    struct scene *scene = open_scene(0);
    submit(scene, false, plain_address); /* while the descriptor is asked for */
    moon_transfer_cancel(scene->node->transfer, &scene->job.job);
    describe(scene, recorded_descriptor);
    MOON_CHECK_INT(scene->job.done_count, 0);
    submit(scene, false, plain_address); /* while a request is under way */
    answer(scene, "0000");
    net_event_once(&scene->net);
    moon_transfer_cancel(scene->node->transfer, &scene->job.job);
    CU_ASSERT(!net_uses(scene->node, scene->memory, sizeof scene->memory));
    net_settle(&scene->net);
    CU_ASSERT(scene->data.ended);
    MOON_CHECK_INT(scene->job.done_count, 0);
    scene->piece.length = 0; /* when it has ended, and is not told yet */
    MOON_CHECK_INT(net_submit(scene->node, &scene->job, owner_endpoint, true, 5, &scene->piece, 1), 0);
    moon_transfer_cancel(scene->node->transfer, &scene->job.job);
    net_settle(&scene->net);
    MOON_CHECK_INT(scene->job.done_count, 0);
    close_scene(scene);
}

static void closes_with_jobs_under_way(void) {
    struct scene *scene = open_scene(0);
    struct net_job second, third;
    warm_up(scene);
    submit(scene, false, plain_address);
    MOON_CHECK_INT(net_submit(scene->node, &second, "127.0.0.1:4", false, 5, &scene->piece, 1), 0);
    MOON_CHECK_INT(net_submit(scene->node, &third, owner_endpoint, false, 5, NULL, 0), 0);
    net_stop(scene->node);
    CU_ASSERT(!net_uses(scene->node, scene->memory, sizeof scene->memory));
    net_settle(&scene->net);
    MOON_CHECK_INT(scene->job.done_count + second.done_count + third.done_count, 0);
    close_scene(scene);
}

/* ---- the own endpoint, and jobs that are none */

static void serves_itself_by_copying(void) {
    struct scene *scene = open_scene(0);
    uint8_t region[16] = {0};
    const char *own = moon_transfer_endpoint(scene->node->transfer);
    struct moon_piece pieces[] = {{scene->memory, 2}, {NULL, 0}, {scene->memory + 2, 3}};
    MOON_CHECK_INT(moon_transfer_register(scene->node->transfer, region, 0x1000, sizeof region, false), 0);
    MOON_CHECK_INT(net_submit(scene->node, &scene->job, own, true, 0x1004, pieces, 3), 0);
    MOON_CHECK_INT(region[4], 0); /* not before the next tick */
    MOON_CHECK_INT(moon_transfer_deadline(scene->node->transfer), scene->node->environment.now_ns);
    net_settle(&scene->net);
    check_done(scene, 0);
    CU_ASSERT(memcmp(region, "\0\0\0\0hello", 9) == 0);
    memset(scene->memory, 0, 5);
    MOON_CHECK_INT(net_submit(scene->node, &scene->job, own, false, 0x1004, pieces, 3), 0);
    net_settle(&scene->net);
    check_done(scene, 0);
    CU_ASSERT(memcmp(scene->memory, "hello", 5) == 0);
    MOON_CHECK_INT(net_submit(scene->node, &scene->job, own, true, 0x100d, pieces, 3), 0);
    net_settle(&scene->net);
    check_done(scene, MOON_STORE_TRANSFER_FAIL); /* larger than the region */
    MOON_CHECK_INT(net_count(scene->node, false), 0);
    close_scene(scene);
}

static void jobs_without_bytes_and_beyond_all_addresses(void) {
    struct scene *scene = open_scene(0);
    char endpoint[MOON_ENDPOINT_BYTES + 10];
    struct moon_piece pieces[] = {{scene->memory, 0}, {NULL, 0}};
    MOON_CHECK_INT(net_submit(scene->node, &scene->job, owner_endpoint, true, 5, pieces, 2), 0);
    net_settle(&scene->net);
    check_done(scene, 0);
    MOON_CHECK_INT(net_submit(scene->node, &scene->job, owner_endpoint, true, UINT64_MAX - 4, &scene->piece, 1), 0);
    net_settle(&scene->net);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    memset(endpoint, '1', sizeof endpoint);
    endpoint[sizeof endpoint - 1] = '\0';
    MOON_CHECK_INT(net_submit(scene->node, &scene->job, endpoint, true, 5, &scene->piece, 1), 0);
    net_settle(&scene->net);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    MOON_CHECK_INT(net_submit(scene->node, &scene->job, "nonsense", true, 5, &scene->piece, 1), 0);
    net_settle(&scene->net);
    check_done(scene, MOON_STORE_TRANSFER_FAIL);
    MOON_CHECK_INT(scene->handshake.accepted_count, 0);
    close_scene(scene);
}

static void has_a_limit_of_peers(void) {
    enum { MANY = 1100 };
    static struct net_job jobs[MANY];
    static char endpoints[MANY][32];
    struct scene *scene = open_scene(0);
    scene->net.refuse_all = true;
    for (int i = 0; i < MANY; i++) {
        snprintf(endpoints[i], sizeof endpoints[i], "10.1.0.1:%d", i + 1);
        MOON_CHECK_INT(net_submit(scene->node, &jobs[i], endpoints[i], true, 5, &scene->piece, 1), 0);
        if (i < 600) /* the others stay open, so they cannot be forgotten */
            net_tick(&scene->net);
    }
    net_settle(&scene->net);
    for (int i = 0; i < MANY; i++)
        MOON_CHECK_INT(jobs[i].code, MOON_STORE_TRANSFER_FAIL);
    close_scene(scene);
}

static void outlives_its_listeners(void) {
    struct scene *scene = open_scene(0);
    struct raw raw;
    raw_dial(&raw, scene->owner, moon_transfer_endpoint(scene->node->transfer));
    for (size_t i = 0; i < scene->net.stream_count; i++)
        if (scene->net.streams[i]->node == scene->node)
            net_break(scene->net.streams[i]);
    net_settle(&scene->net);
    CU_ASSERT(raw.ended);
    warm_up(scene);
    close_scene(scene);
}

static void takes_a_free_port_or_none(void) {
    struct net net;
    struct moon_transfer_settings settings = moon_transfer_defaults();
    struct moon_transfer *transfer = NULL;
    struct moon_error error;
    char host[MOON_ENDPOINT_BYTES + 1];
    net_open(&net, 1);
    struct net_node *node = net_add(&net, "10.0.0.1", moon_memory_heap());
    settings.host = "::1";
    settings.min_port = settings.max_port = 15000;
    MOON_CHECK_INT(moon_transfer_open(&node->environment, &settings, &transfer, &error), MOON_ERR_IO);
    settings.max_port = 15001;
    MOON_CHECK_INT(moon_transfer_open(&node->environment, &settings, &transfer, &error), 0);
    CU_ASSERT(strncmp(moon_transfer_endpoint(transfer), "[::1]:1500", 10) == 0);
    MOON_CHECK_TEXT(moon_transfer_protocol(transfer), "tcp");
    moon_transfer_close(transfer);
    memset(host, 'a', sizeof host);
    host[sizeof host - 1] = '\0';
    settings.host = host;
    MOON_CHECK_INT(moon_transfer_open(&node->environment, &settings, &transfer, &error), MOON_ERR_RANGE);
    moon_transfer_close(NULL);
    net_close(&net);
}

int main(int argc, char *argv[]) {
    const struct moon_unit_case cases[] = {
        {"a write and a read go out as recorded, over one lane", asks_as_recorded},
        {"so they do in version 1, where a write has no answer", asks_in_version_1_as_recorded},
        {"descriptors are taken as the release takes them", takes_descriptors_as_the_release},
        {"the data port is at tcp_data_host, or at the endpoint's host", dials_where_the_descriptor_says},
        {"no answer fails the job, and the next one asks again", fails_without_a_descriptor_and_asks_again},
        {"an idle lane that broke is opened again without a failure", opens_an_idle_lane_that_broke_again},
        {"a lane that breaks under way fails its job once", fails_once_when_a_lane_breaks},
        {"bytes that nobody asked for close the lane", closes_a_lane_that_says_what_nobody_asked},
        {"30 s without progress fail the job", fails_after_thirty_seconds_without_progress},
        {"a peer that refuses or is silent fails the job", fails_when_nobody_accepts},
        {"a lane that is refused at once fails the job", a_lane_that_never_stands_fails},
        {"after a failure lanes follow the new descriptor", moves_to_a_new_data_port},
        {"a busy lane to an old data port ends its job first", a_busy_lane_moves_when_it_is_free},
        {"a lane that is refused beside others fails nothing", a_lane_beside_others_may_be_refused},
        {"a cancelled job leaves its memory alone and is not told", a_cancelled_job_leaves_its_memory_alone},
        {"closing forgets jobs and leaves their memory alone", closes_with_jobs_under_way},
        {"the own endpoint is served by copying, at the next tick", serves_itself_by_copying},
        {"empty jobs succeed, impossible ones fail", jobs_without_bytes_and_beyond_all_addresses},
        {"peers without jobs are forgotten beyond a limit", has_a_limit_of_peers},
        {"an engine that lost its listeners can still ask", outlives_its_listeners},
        {"ports are drawn from the range until one is free", takes_a_free_port_or_none},
        {NULL, NULL},
    };
    return moon_unit_main("transfer jobs", cases, argc, argv);
}
