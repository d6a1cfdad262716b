/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the RDMA handshake's JSON: descriptors, Connection messages, GIDs. */
#include "ref/transfer/rdma_message.h"

#include "ref/base/unit.h"

#include <inttypes.h>

/* A store client's descriptor as 0.3.13.post1 sent it (put-get of the recorded packets). */
static const char recorded[] =
    "{\"buffers\":[{\"addr\":139879988047936,\"length\":16777216,\"lkey\":[744],\"name\":\"cpu:0\",\"rkey\":[]},"
    "{\"addr\":139879887405056,\"length\":67108864,\"lkey\":[994],\"name\":\"*\",\"rkey\":[994]}],\"devices\":[{"
    "\"gid\":\"00:00:00:00:00:00:00:00:00:00:ff:ff:0a:07:00:02\",\"lid\":0,\"name\":\"rxe0\"}],\"name\":"
    "\"10.7.0.2:16145\",\"priority_matrix\":{\"cpu:0\":[[],[\"rxe0\"]]},\"protocol\":\"rdma\",\"tcp_data_port\":0,"
    "\"tcp_proto_version\":1,\"timestamp\":\"2026-11-29 14:02:13.077358\"}\n";

static int read_text(struct moon_arena *arena, const char *json, struct moon_rdma_descriptor *descriptor) {
    struct moon_error error;
    return moon_rdma_read_descriptor(arena, json, strlen(json), descriptor, &error);
}

static void recorded_descriptor_comes_back(void) {
    struct moon_rdma_descriptor descriptor;
    struct moon_arena arena;
    struct moon_text out;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&out, moon_memory_heap());
    MOON_CHECK_INT(read_text(&arena, recorded, &descriptor), MOON_OK);
    MOON_CHECK_TEXT(descriptor.name, "10.7.0.2:16145");
    MOON_CHECK_INT(descriptor.buffer_count, 2);
    CU_ASSERT_PTR_NULL(descriptor.buffers[0].rkeys);
    MOON_CHECK_INT(descriptor.buffers[1].rkeys[0], 994);
    MOON_CHECK_INT(descriptor.buffers[0].lkeys[0], 744);
    MOON_CHECK_INT(descriptor.devices[0].gid[15], 2);
    moon_rdma_write_descriptor(&arena, &descriptor, &out);
    MOON_CHECK_TEXT(moon_text_value(&out), recorded);
    moon_text_close(&out);
    moon_arena_close(&arena);
}

#define DEVICES "\"devices\":[{\"gid\":\"00:00:00:00:00:00:00:00:00:00:ff:ff:0a:07:00:01\",\"lid\":3,\"name\":\"d\"}]"
#define BUFFER  "{\"addr\":4096,\"length\":10,\"lkey\":[1],\"name\":\"*\",\"rkey\":[2]}"
#define HEAD    "{\"name\":\"n:1\",\"protocol\":\"rdma\","

static void broken_descriptors_are_refused(void) {
    static const struct {
        const char *json;
        int status;
    } rows[] = {
        {HEAD DEVICES "}", MOON_OK},
        {HEAD DEVICES ",\"more\":[1],\"buffers\":[" BUFFER "],\"priority_matrix\":{}}", MOON_OK},
        {HEAD, MOON_ERR_SYNTAX},
        {"[]", MOON_ERR_SCHEMA},
        {"{\"name\":\"n:1\"," DEVICES "}", MOON_ERR_SCHEMA},
        {"{\"name\":\"n:1\",\"protocol\":\"tcp\"," DEVICES "}", MOON_ERR_SCHEMA},
        {"{\"protocol\":\"rdma\"," DEVICES "}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"timestamp\":1}", MOON_ERR_SCHEMA},
        {HEAD "\"devices\":[]}", MOON_ERR_SCHEMA},
        {HEAD "\"devices\":{}}", MOON_ERR_SCHEMA},
        {HEAD "\"devices\":[1]}", MOON_ERR_SCHEMA},
        {HEAD "\"devices\":[{\"gid\":\"00\",\"lid\":0,\"name\":\"d\"}]}", MOON_ERR_SCHEMA},
        {HEAD "\"devices\":[{\"lid\":0,\"name\":\"d\"}]}", MOON_ERR_SCHEMA},
        {HEAD "\"devices\":[{\"lid\":0}]}", MOON_ERR_SCHEMA},
        {HEAD "\"devices\":[{\"gid\":\"\",\"lid\":65536,\"name\":\"d\"}]}", MOON_ERR_RANGE},
        {HEAD DEVICES ",\"buffers\":{}}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"buffers\":[1]}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"buffers\":[{\"name\":1}]}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":1,\"lkey\":[1],\"name\":\"\"}]}", MOON_ERR_RANGE},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":0,\"length\":1,\"lkey\":[1],\"name\":\"*\"}]}", MOON_ERR_RANGE},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":0,\"lkey\":[1],\"name\":\"*\"}]}", MOON_ERR_RANGE},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":1,\"name\":\"*\"}]}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":1,\"lkey\":[],\"name\":\"*\"}]}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":1,\"lkey\":[1,2],\"name\":\"*\"}]}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":1,\"lkey\":[-1],\"name\":\"*\"}]}", MOON_ERR_RANGE},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":1,\"lkey\":[4294967296],\"name\":\"*\"}]}", MOON_ERR_RANGE},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":1,\"lkey\":[99999999999999999999],\"name\":\"*\"}]}",
         MOON_ERR_RANGE},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":1,\"lkey\":[\"1\"],\"name\":\"*\"}]}", MOON_ERR_RANGE},
        {HEAD DEVICES ",\"buffers\":[{\"addr\":1,\"length\":1,\"lkey\":[1],\"name\":\"*\",\"rkey\":[1,2]}]}",
         MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"priority_matrix\":[]}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"priority_matrix\":{\"cpu:0\":[[]]}}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"priority_matrix\":{\"cpu:0\":{}}}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"priority_matrix\":{\"cpu:0\":[1,[]]}}", MOON_ERR_SCHEMA},
        {HEAD DEVICES ",\"priority_matrix\":{\"cpu:0\":[[],1]}}", MOON_ERR_SCHEMA},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_rdma_descriptor descriptor;
        struct moon_arena arena;
        moon_arena_open(&arena, moon_memory_heap());
        int status = read_text(&arena, rows[i].json, &descriptor);
        if (status != rows[i].status)
            fprintf(stderr, "%s\n", rows[i].json);
        MOON_CHECK_INT(status, rows[i].status);
        moon_arena_close(&arena);
    }
}

static void devices_are_bounded(void) {
    struct moon_rdma_descriptor descriptor;
    struct moon_arena arena;
    struct moon_text json;
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&json, moon_memory_heap());
    moon_text_string(&json, HEAD "\"devices\":[{}");
    for (int i = 0; i < MOON_RDMA_DEVICES_MAX; i++)
        moon_text_string(&json, ",{}");
    moon_text_string(&json, "]}");
    MOON_CHECK_INT(read_text(&arena, json.data, &descriptor), MOON_ERR_LIMIT);
    moon_text_close(&json);
    moon_arena_close(&arena);
}

#define DEVICE(name) "{\"gid\":\"00:00:00:00:00:00:00:00:00:00:ff:ff:0a:07:00:01\",\"lid\":0,\"name\":\"" name "\"}"

static void device_comes_from_the_matrix(void) {
    static const struct {
        const char *matrix;
        int rkey; /* -1: no device; rkeys are 10, 11 and 12 of a, b and c */
    } rows[] = {
        {"{\"cpu:0\":[[\"b\"],[\"a\"]]}", 11},
        {"{\"cpu:0\":[[],[\"c\",\"a\"]]}", 12},
        {"{\"cpu:0\":[[\"unknown\"],[\"a\"]]}", 10},
        {"{\"other\":[[\"b\"],[]],\"cpu:0\":[[\"a\"],[]]}", 10},
        {"{\"other\":[[\"b\"],[]]}", 11},
        {"{\"other\":[[],[]],\"cpu:1\":[[],[\"c\"]]}", 12},
        {"{\"cpu:0\":[[],[]],\"cpu:1\":[[],[\"c\"]]}", 12},
        {"{\"cpu:0\":[[7],[]]}", -1},
        {"{}", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_rdma_descriptor descriptor;
        struct moon_arena arena;
        char json[1000];
        size_t device = 99;
        uint32_t rkey = 0;
        moon_arena_open(&arena, moon_memory_heap());
        snprintf(json, sizeof json,
                 HEAD "\"devices\":[" DEVICE("a") "," DEVICE("b") "," DEVICE(
                     "c") "],\"buffers\":[{\"addr\":4096,\"length\":10,\"lkey\":[1,2,3],\"name\":\"cpu:0\",\"rkey\":"
                          "[10,11,12]}],\"priority_matrix\":%s}",
                 rows[i].matrix);
        MOON_CHECK_INT(read_text(&arena, json, &descriptor), MOON_OK);
        bool reached = moon_rdma_reach(&descriptor, 4096, 10, &device, &rkey);
        MOON_CHECK_INT(reached ? (int)rkey : -1, rows[i].rkey);
        moon_arena_close(&arena);
    }
}

static void range_must_lie_in_one_buffer_with_an_rkey(void) {
    static const struct {
        uint64_t address, length;
        int rkey;
    } rows[] = {{4096, 10, 5}, {4105, 1, 5},           {4096, 11, -1},      {4095, 2, -1}, {4106, 1, 6}, {4105, 2, -1},
                {8192, 1, -1}, {4096, UINT64_MAX, -1}, {UINT64_MAX, 1, -1}, {4106, 4, 6},  {4110, 1, -1}};
    struct moon_rdma_descriptor descriptor;
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(read_text(&arena,
                             HEAD DEVICES
                             ",\"buffers\":[{\"addr\":4096,\"length\":10,\"lkey\":[1],\"name\":\"*\",\"rkey\":[5]},"
                             "{\"addr\":4106,\"length\":4,\"lkey\":[1],\"name\":\"*\",\"rkey\":[6]},{\"addr\":8192,"
                             "\"length\":4096,\"lkey\":[1],\"name\":\"*\",\"rkey\":[]}],"
                             "\"priority_matrix\":{\"cpu:0\":[[\"d\"],[]]}}",
                             &descriptor),
                   MOON_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t device;
        uint32_t rkey;
        bool reached = moon_rdma_reach(&descriptor, rows[i].address, rows[i].length, &device, &rkey);
        if ((reached ? (int)rkey : -1) != rows[i].rkey)
            fprintf(stderr, "%" PRIu64 " %" PRIu64 "\n", rows[i].address, rows[i].length);
        MOON_CHECK_INT(reached ? (int)rkey : -1, rows[i].rkey);
    }
    moon_arena_close(&arena);
}

static void gid_is_sixteen_bytes(void) {
    static const char *const bad[] = {"", "zz", "00:00:00:00:00:00:00:00:00:00:ff:ff:0a:07:00:0g",
                                      "00:00:00:00:00:00:00:00:00:00:ff:ff:0a:07:00-01",
                                      "00:00:00:00:00:00:00:00:00:00:ff:ff:0a:07:00:01:"};
    uint8_t gid[MOON_GID_BYTES];
    char text[MOON_GID_TEXT_BYTES];
    CU_ASSERT(moon_gid_read("fe:80:00:00:00:00:00:00:D8:6d:99:ff:fe:4f:01:fb", gid));
    moon_gid_write(gid, text);
    MOON_CHECK_TEXT(text, "fe:80:00:00:00:00:00:00:d8:6d:99:ff:fe:4f:01:fb");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CU_ASSERT(!moon_gid_read(bad[i], gid));
}

static void connection_of_any_shape_is_read(void) {
    static const struct {
        const char *json;
        bool bad;
        size_t numbers;
        int ready_ack;
    } rows[] = {
        {"{}", false, 0, -1},
        {"[]", false, 0, -1},
        {"7", false, 0, -1},
        {"{\"qp_num\":[1,2],\"ready_ack\":true}", false, 2, 1},
        {"{\"qp_num\":[1,2],\"ready_ack\":false}", false, 2, 0},
        {"{\"qp_num\":[1,2],\"ready_ack\":1}", false, 2, 0},
        {"{\"qp_num\":[\"1\",2]}", true, 2, -1},
        {"{\"qp_num\":[1.5]}", true, 1, -1},
        {"{\"qp_num\":[-1]}", true, 1, -1},
        {"{\"qp_num\":[16777215]}", false, 1, -1},
        {"{\"qp_num\":[16777216]}", true, 1, -1},
        {"{\"qp_num\":[99999999999999999999]}", true, 1, -1},
        {"{\"qp_num\":{}}", true, 0, -1},
        {"{\"qp_num\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]}", false, 17, -1},
        {"{\"local_nic_path\":7,\"local_gid\":null,\"local_lid\":\"x\",\"reply_msg\":[],\"peer_nic_path\":"
         "\"a\\u0000\"}",
         false, 0, -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct moon_rdma_connection connection;
        struct moon_arena arena;
        moon_arena_open(&arena, moon_memory_heap());
        MOON_CHECK_INT(moon_rdma_read_connection(&arena, rows[i].json, strlen(rows[i].json), &connection, NULL),
                       MOON_OK);
        MOON_CHECK_INT(connection.numbers_bad, rows[i].bad);
        MOON_CHECK_INT(connection.number_count, rows[i].numbers);
        MOON_CHECK_INT(connection.ready_ack, rows[i].ready_ack);
        MOON_CHECK_TEXT(connection.local_path, "");
        MOON_CHECK_TEXT(connection.peer_path, "");
        MOON_CHECK_TEXT(connection.gid, "");
        MOON_CHECK_INT(connection.lid, 0);
        moon_arena_close(&arena);
    }
}

static int round_trip(struct moon_memory *memory, const void *context) {
    struct moon_rdma_descriptor descriptor;
    struct moon_arena arena;
    struct moon_text out;
    moon_arena_open(&arena, memory);
    moon_text_open(&out, memory);
    int status = read_text(&arena, context, &descriptor);
    if (!status)
        moon_rdma_write_descriptor(&arena, &descriptor, &out);
    status = status || out.failed ? MOON_ERR_MEMORY : MOON_OK;
    moon_text_close(&out);
    moon_arena_close(&arena);
    return status;
}

static void refused_memory_leaks_nothing(void) {
    moon_unit_refuse_memory(round_trip, recorded);
}

static const struct moon_unit_case cases[] = {
    {"a recorded descriptor comes back byte for byte", recorded_descriptor_comes_back},
    {"broken descriptors are refused", broken_descriptors_are_refused},
    {"devices of a descriptor are bounded", devices_are_bounded},
    {"the device comes from the priority matrix", device_comes_from_the_matrix},
    {"a range must lie in one buffer that has an rkey", range_must_lie_in_one_buffer_with_an_rkey},
    {"a GID is sixteen bytes in hex with colons", gid_is_sixteen_bytes},
    {"a Connection message of any shape is read", connection_of_any_shape_is_read},
    {"refused memory leaks nothing", refused_memory_leaks_nothing},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    return moon_unit_main("transfer/rdma_message", cases, argc, argv);
}
