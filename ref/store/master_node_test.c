/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of a master as a program: recorded requests of a real client are answered as the real master answered. */
#include "ref/store/master_node.h"

#include "ref/base/unit.h"
#include "ref/store/rpc_rig_internal.h"
#include "ref/wire/frame.h"

static struct moon_wire_protocol protocol;
static const char address[] = "10.0.0.1:50051";

/* Recorded between clients and the master of mooncake-transfer-engine-non-cuda 0.3.13.post1 (fixtures/wire, run plain,
 * GetFsdir of run tasks), in their order but for the last six. Whole frames: request, response. */
static const struct golden {
    const char *name, *request, *response;
} goldens[] = {
    {"ServiceReady", "150000000000000056bb817b0000000000000000",
     "1500000000000000110000000000000035ccb31c0487800c01000105322e302e30"},
    {"GetStorageConfig", "1500000001000000a6b0a98d0000000000000000",
     "15000000010000001900000000000000eb68b59c0487fd800c0b04ff01000100010000000000000000"},
    {"GetFsdir", "15000000060000002351583e0000000000000000",
     "15000000060000000c0000000000000035ccb31c0487800c01000100"},
    {"MountSegment",
     "1500000002000000bbc47e3e7500000000000000af0df79e04fdfdfd04048989ff800c0404800c800c800cfffd040489"
     "89ffff0032a15296a68f411aa6e142bae11581f90f3132372e302e302e313a313330343700000051367f000000000004"
     "000000000f3132372e302e302e313a31353031320374637000f4466528e28340918f19c0c4a79d985e",
     "15000000020000000a00000000000000cd6828af0487fa010001"},
    {"FetchTasks",
     "1500000003000000441814df2700000000000000859b9a7504fdfd04048989ff04ff00f4466528e28340918f19c0c4a7"
     "9d985e1000000000000000",
     "150000000300000018000000000000002745e159048784fdfd04048989ff01800c0302ff01000100"},
    {"Ping", "1500000000000000e5dac2d61c00000000000000e1836d3c04fd04048989ff00f4466528e28340918f19c0c4a79d985e",
     "15000000000000001900000000000000538f2a740487fd0301ff010001000000000000000002000000"},
    {"ReMountSegment",
     "1500000001000000723b050b7700000000000000896bc6c604fd84fdfd04048989ff800c0404800c800c800cfffd0404"
     "8989ffff000132a15296a68f411aa6e142bae11581f90f3132372e302e302e313a313330343700000051367f00000000"
     "0004000000000f3132372e302e302e313a31353031320374637000f4466528e28340918f19c0c4a79d985e",
     "15000000010000000a00000000000000cd6828af0487fa010001"},
    {"PutStart",
     "1500000002000000c19aea6571000000000000000fbd85e304fdfd04048989ff800c04fd0404040685040b84800c800c"
     "84800c0b06800c8584800cff800cff006766fbf06876482ea9f582615df8e037026b3105000000000000000100000000"
     "00000000000000000000000000000000000000000000000000000000000764656661756c74",
     "15000000020000006e00000000000000a72739c4048784fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd80"
     "0c04fffdfd04048989ff04800cfffd800c04040401ffff01ff0100010101000000000000000005000000000000000000"
     "0051367f0000037463700f3132372e302e302e313a323530313202000000"},
    {"PutEnd",
     "150000000300000099208b8e3700000000000000239281d104fdfd04048989fffd800c8504ff01800cff006766fbf068"
     "76482ea9f582615df8e037026b3100040000000764656661756c74",
     "15000000030000000a00000000000000cd6828af0487fa010001"},
    {"PutStart",
     "1500000004000000c19aea6571000000000000000fbd85e304fdfd04048989ff800c04fd0404040685040b84800c800c"
     "84800c0b06800c8584800cff800cff006766fbf06876482ea9f582615df8e037026b3105000000000000000100000000"
     "00000000000000000000000000000000000000000000000000000000000764656661756c74",
     "15000000040000004000000000000000a72739c4048784fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd80"
     "0c04fffdfd04048989ff04800cfffd800c04040401ffff01ff0100003ffdffff"},
    {"GetReplicaList", "150000000500000074f17e1f1700000000000000d91ef97c04fd800c800cff00026b310764656661756c74",
     "15000000050000007c000000000000006d27c6880487fd84fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd"
     "800c04fffdfd04048989ff04800cfffd800c04040401ffff01ff048504ff010001010100000000000000000500000000"
     "00000000000051367f0000037463700f3132372e302e302e313a323530313203000000102700000000000000"},
    {"GetReplicaList",
     "150000000600000074f17e1f1c00000000000000d91ef97c04fd800c800cff00076d697373696e670764656661756c74",
     "150000000600000045000000000000006d27c6880487fd84fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd"
     "800c04fffdfd04048989ff04800cfffd800c04040401ffff01ff048504ff01000040fdffff"},
    {"ExistKey", "1500000007000000095f38891700000000000000d91ef97c04fd800c800cff00026b310764656661756c74",
     "15000000070000000b00000000000000d300e89004870b01000101"},
    {"ExistKey", "1500000008000000095f38891c00000000000000d91ef97c04fd800c800cff00076d697373696e670764656661756c74",
     "15000000080000000b00000000000000d300e89004870b01000100"},
    {"BatchPutStart",
     "150000000d0000002218be568000000000000000a5c0705804fdfd04048989ff84800c8404fd0404040685040b84800c"
     "800c84800c0b06800c8584800cff800cff006766fbf06876482ea9f582615df8e0370202623102623202030000000000"
     "000003000000000000000100000000000000000000000000000000000000000000000000000000000000000007646566"
     "61756c74",
     "150000000d000000a300000000000000036d00ad04848784fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd"
     "800c04fffdfd04048989ff04800cfffd800c04040401ffff01ff01000201010300000000000000000300000000000000"
     "09000051367f0000037463700f3132372e302e302e313a32353031320200000001010400000000000000000300000000"
     "0000000c000051367f0000037463700f3132372e302e302e313a323530313202000000"},
    {"BatchPutEnd",
     "150000000e000000ab20e0803d00000000000000c9a77ef504fdfd04048989ff84fd800c8504ff01800cff006766fbf0"
     "6876482ea9f582615df8e037020262310002623200040000000764656661756c74",
     "150000000e0000000d00000000000000cf52fc39048487fa0100020101"},
    {"BatchGetReplicaList",
     "150000000f000000ff200d1b2400000000000000638df70004fd84800c800cff0003026231026232076d697373696e67"
     "0764656661756c74",
     "150000000f000000bf000000000000003b45c520048487fd84fd0486fdfd0404800c800cfffffdfd0404800c800cffff"
     "fd800c04fffdfd04048989ff04800cfffd800c04040401ffff01ff048504ff0100030101030000000000000000030000"
     "000000000009000051367f0000037463700f3132372e302e302e313a3235303132030000001027000000000000000101"
     "04000000000000000003000000000000000c000051367f0000037463700f3132372e302e302e313a3235303132030000"
     "001027000000000000000040fdffff"},
    {"PutStart",
     "150000001d000000c19aea658f000000000000000fbd85e304fdfd04048989ff800c04fd0404040685040b84800c800c"
     "84800c0b06800c8584800cff800cff006766fbf06876482ea9f582615df8e03704636667314000000000000000010000"
     "000000000000000000000000000000000000000000010160ea00000000000001010f3132372e302e302e313a31333034"
     "37000000010001010267310764656661756c74",
     "150000001d0000006e00000000000000a72739c4048784fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd80"
     "0c04fffdfd04048989ff04800cfffd800c04040401ffff01ff010001010a000000000000000040000000000000003f00"
     "0051367f0000037463700f3132372e302e302e313a323530313202000000"},
    {"PutStart",
     "1500000026000000c19aea656f000000000000000fbd85e304fdfd04048989ff800c04fd0404040685040b84800c800c"
     "84800c0b06800c8584800cff800cff006766fbf06876482ea9f582615df8e03700010000000000000001000000000000"
     "0000000000000000000000000000000000000000000000000000000764656661756c74",
     "15000000260000004000000000000000a72739c4048784fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd80"
     "0c04fffdfd04048989ff04800cfffd800c04040401ffff01ff010000a8fdffff"},
    {"BatchExistKey",
     "150000002a000000b0a69fb82400000000000000638df70004fd84800c800cff0003026b31026231076d697373696e67"
     "0764656661756c74",
     "150000002a00000011000000000000005d8c5f2a0484870b010003010101010100"},
    {"BatchPutStart",
     "150000003b0000002218be568000000000000000a5c0705804fdfd04048989ff84800c8404fd0404040685040b84800c"
     "800c84800c0b06800c8584800cff800cff006766fbf06876482ea9f582615df8e0370202733102733202080000000000"
     "000008000000000000000100000000000000000000000000000000000000000000000000000000000000000007646566"
     "61756c74",
     "150000003b000000a300000000000000036d00ad04848784fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd"
     "800c04fffdfd04048989ff04800cfffd800c04040401ffff01ff01000201011600000000000000000800000000000000"
     "bd000051367f0000037463700f3132372e302e302e313a32353031320200000001011700000000000000000800000000"
     "000000c5000051367f0000037463700f3132372e302e302e313a323530313202000000"},
    {"ExistKey", "150000003c000000095f38891700000000000000d91ef97c04fd800c800cff000273310764656661756c74",
     "150000003c0000000b00000000000000d300e89004870b01000100"},
    {"GetReplicaList", "150000003d00000074f17e1f1700000000000000d91ef97c04fd800c800cff000273310764656661756c74",
     "150000003d00000045000000000000006d27c6880487fd84fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd"
     "800c04fffdfd04048989ff04800cfffd800c04040401ffff01ff048504ff01000041fdffff"},
    {"Remove", "150000003e0000007497b0f11900000000000000ef9fe81804fd800c0b800cff00027331000764656661756c74",
     "150000003e0000000e00000000000000cd6828af0487fa01000041fdffff"},
    {"BatchPutEnd",
     "150000003f000000ab20e0803900000000000000c9a77ef504fdfd04048989ff84fd800c8504ff01800cff006766fbf0"
     "6876482ea9f582615df8e0370102733100000000000764656661756c74",
     "150000003f0000000c00000000000000cf52fc39048487fa01000101"},
    {"BatchPutRevoke",
     "1500000040000000aa6725b83400000000000000455dee9404fdfd04048989ff84800c01800cff006766fbf06876482e"
     "a9f582615df8e03701027332040000000764656661756c74",
     "15000000400000000c00000000000000cf52fc39048487fa01000101"},
    {"BatchRemove",
     "15000000480000007d4002592300000000000000a19c7a1904fd84800c0b800cff0002026231076d697373696e670107"
     "64656661756c74",
     "15000000480000001100000000000000cf52fc39048487fa010002010040fdffff"},
    {"PutStart",
     "1500000002000000c19aea6574000000000000000fbd85e304fdfd04048989ff800c04fd0404040685040b84800c800c"
     "84800c0b06800c8584800cff800cff001b0b2290c4bb4d5aa55e73bee213825905646561643101000000000000000100"
     "00000000000000000000000000000000000000000000000000000000000000000764656661756c74",
     "15000000020000006e00000000000000a72739c4048784fd0486fdfd0404800c800cfffffdfd0404800c800cfffffd80"
     "0c04fffdfd04048989ff04800cfffd800c04040401ffff01ff010001011e000000000000000001000000000000000000"
     "00a4147f0000037463700f3132372e302e302e313a323533343202000000"},
    {"PutRevoke",
     "1500000003000000447c76a035000000000000008b227a1b04fdfd04048989ff800c01800cff001b0b2290c4bb4d5aa5"
     "5e73bee2138259056465616431040000000764656661756c74",
     "15000000030000000a00000000000000cd6828af0487fa010001"},
    {"Remove",
     "15000000290000007497b0f11d00000000000000ef9fe81804fd800c0b800cff0006746f6f626967010764656661756c"
     "74",
     "15000000290000000e00000000000000cd6828af0487fa01000040fdffff"},
    {"RemoveAll", "1500000005000000b0ce78d9150000000000000075c2a64804fd0b800cff00010874656e616e742d61",
     "15000000050000000f00000000000000356866860403001300000000000000"},
    {"UnmountSegment",
     "150000000200000065b4106f3400000000000000e112c5d404fdfd04048989fffd04048989ffff0048a2644c0e7b4619"
     "ba2807c1635459eca3e44fed61b04a6e98470b6893ca7a06",
     "15000000020000000a00000000000000cd6828af0487fa010001"},
};
enum { GOLDENS = sizeof goldens / sizeof *goldens };

struct world {
    struct rig rig;
    struct rig_node node;
    void *instance;
};

static int open_world(struct world *world, uint64_t fail_at, struct moon_error *error) {
    struct moon_master_node_settings settings = {
        .master = moon_master_defaults(), .protocol = &protocol, .with_text = true, .endpoint = address};
    rig_init(&world->rig);
    rig_node_init(&world->node, &world->rig, fail_at);
    world->instance = moon_master_program.boot(&settings, &world->node.environment, error);
    return world->instance ? MOON_OK : (int)error->status;
}

static void close_world(struct world *world) {
    if (world->instance)
        moon_master_program.halt(world->instance);
    rig_close(&world->rig);
    MOON_CHECK_INT(world->node.memory.held_bytes, 0);
}

/* Answers have the same form: all is equal but numbers and names that the other master gave. */
static bool same_form(const struct moon_wire_value *a, const struct moon_wire_value *b, const char *name) {
    static const char *const given[] = {"id", "address", "transport_endpoint", "RemoveAll"};
    bool same = a->type == b->type && a->count == b->count;
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (strcmp(name, given[i]) == 0)
            return same;
    same = same && a->number == b->number && a->second == b->second &&
           moon_bytes_equal(moon_wire_bytes(a), moon_wire_bytes(b));
    const struct moon_wire_member *member = a->type->kind == MOON_WIRE_STRUCT ? a->type->members : NULL;
    const struct moon_wire_value *x = a->first, *y = b->first;
    for (; same && x; x = x->next, y = y->next) {
        same = same_form(x, y, member ? member->name : "");
        if (member)
            member++;
    }
    return same;
}

static struct moon_wire_value *result_of(struct moon_arena *arena, const char *name, const void *bytes, size_t length,
                                         struct moon_wire_frame *frame) {
    struct moon_wire_value *value = NULL;
    struct moon_error error;
    size_t used = 0, needed = 0;
    MOON_CHECK_INT(moon_wire_read_frame(MOON_WIRE_RESPONSE, bytes, length, MOON_RPC_FRAME_BYTES_MAX, frame, &used,
                                        &needed, &error),
                   0);
    MOON_CHECK_INT(used, length);
    if (used > 0)
        moon_wire_decode(arena, moon_wire_call_by_name(&protocol, name)->function->result, false, frame->body,
                         frame->body_length, NULL, &value, &error);
    return value;
}

static void show(struct moon_arena *arena, const char *who, const struct moon_wire_value *value) {
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    if (value)
        moon_json_write(moon_wire_to_json(arena, value), MOON_JSON_COMPACT, &text);
    fprintf(stderr, "  %s: %s\n", who, moon_text_value(&text));
    moon_text_close(&text);
}

static void check_golden(struct world *world, struct rig_raw *raw, const struct golden *golden) {
    uint8_t request[1024], response[1024];
    struct moon_wire_frame frame = {.sequence = 0}, expected_frame = {.sequence = 0};
    struct moon_arena arena;
    CU_ASSERT_FATAL(strlen(golden->request) < 2048 && strlen(golden->response) < 2048);
    moon_hex_decode(golden->request, strlen(golden->request), request);
    moon_hex_decode(golden->response, strlen(golden->response), response);
    moon_text_clear(&raw->in);
    rig_raw_send(raw, request, strlen(golden->request) / 2);
    rig_run(&world->rig);
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_wire_value *seen = result_of(&arena, golden->name, raw->in.data, raw->in.length, &frame);
    struct moon_wire_value *expected =
        result_of(&arena, golden->name, response, strlen(golden->response) / 2, &expected_frame);
    bool same =
        seen && expected && frame.sequence == expected_frame.sequence && same_form(seen, expected, golden->name);
    if (!same) {
        fprintf(stderr, "%s\n", golden->name);
        show(&arena, "seen", seen);
        show(&arena, "expected", expected);
    }
    CU_ASSERT(same);
    moon_arena_close(&arena);
}

static void recorded_requests_are_answered_as_by_the_real_master(void) {
    struct world world;
    struct moon_error error;
    struct rig_raw raw;
    MOON_CHECK_INT(open_world(&world, 0, &error), 0);
    MOON_CHECK_TEXT(moon_master_node_address(world.instance), address);
    rig_raw_open(&raw, &world.rig, address);
    for (size_t i = 0; i < GOLDENS; i++)
        check_golden(&world, &raw, &goldens[i]);
    MOON_CHECK_INT(moon_master_count(moon_master_node_master(world.instance)).segments, 1);
    rig_raw_close(&raw);
    close_world(&world);
}

static void ticks_are_the_masters(void) {
    struct world world;
    struct moon_error error;
    struct rig_raw raw;
    MOON_CHECK_INT(open_world(&world, 0, &error), 0);
    struct moon_master *master = moon_master_node_master(world.instance);
    rig_raw_open(&raw, &world.rig, address);
    for (size_t i = 0; i < 7; i++) /* MountSegment, Ping, ReMountSegment are among them */
        check_golden(&world, &raw, &goldens[i]);
    MOON_CHECK_INT(moon_master_count(master).segments, 1);
    for (int i = 0; i < 100 && moon_master_program.deadline(world.instance) != MOON_NS_NEVER; i++) {
        MOON_CHECK_INT(moon_master_program.deadline(world.instance), moon_master_deadline(master));
        world.node.environment.now_ns = moon_master_program.deadline(world.instance);
        moon_master_program.tick(world.instance);
    }
    MOON_CHECK_INT(moon_master_count(master).segments, 0); /* its client did not ping */
    rig_raw_close(&raw);
    close_world(&world);
}

static void a_boot_that_fails_says_why(void) {
    struct moon_error error;
    struct world world;
    MOON_CHECK_TEXT(moon_master_program.name, "master");
    MOON_CHECK_INT(open_world(&world, 0, &error), 0);
    struct moon_master_node_settings settings = {
        .master = moon_master_defaults(), .protocol = &protocol, .endpoint = address};
    CU_ASSERT_PTR_NULL(moon_master_program.boot(&settings, &world.node.environment, &error));
    MOON_CHECK_INT(error.status, MOON_ERR_IO);
    close_world(&world);
}

/* The recorded requests, each on a connection of its own if the last one was lost. */
static bool serve_goldens(uint64_t fail_at) {
    struct world world;
    struct moon_error error = {0};
    struct rig_raw raw;
    int status = open_world(&world, fail_at, &error);
    CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
    for (size_t i = 0; status == 0 && i < GOLDENS; i++) {
        uint8_t request[1024];
        moon_hex_decode(goldens[i].request, strlen(goldens[i].request), request);
        rig_raw_open(&raw, &world.rig, address);
        rig_raw_send(&raw, request, strlen(goldens[i].request) / 2);
        rig_run(&world.rig);
        CU_ASSERT(raw.ended || raw.in.length > 0);
        rig_raw_close(&raw);
        rig_run(&world.rig);
    }
    bool refused = fail_at > 0 && world.node.memory.requests >= fail_at;
    world.node.memory.fail_at = 0;
    if (status == 0) { /* the machine is usable */
        rig_raw_open(&raw, &world.rig, address);
        check_golden(&world, &raw, &goldens[0]);
        rig_raw_close(&raw);
    }
    close_world(&world);
    return refused;
}

static void refused_memory_is_survived(void) {
    uint64_t fail_at = 1;
    while (serve_goldens(fail_at))
        fail_at++;
    CU_ASSERT(fail_at > 50);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"recorded requests are answered as by the real master", recorded_requests_are_answered_as_by_the_real_master},
        {"ticks are the master's", ticks_are_the_masters},
        {"a boot that fails says why", a_boot_that_fails_says_why},
        {"refused memory is survived", refused_memory_is_survived},
        {NULL, NULL},
    };
    if (moon_wire_protocol_open(&protocol, moon_wire_release_find("0.3.13.post1"), moon_memory_heap()))
        return 1;
    return moon_unit_main("master node", cases, argc, argv);
}
