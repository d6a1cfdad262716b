/* SPDX-License-Identifier: Apache-2.0 */
/* mooncheck-rdma: looks at RDMA devices, offers and moves memory over verbs, reads objects of a store over verbs. */
#include "ref/base/fill.h"
#include "ref/base/list.h"
#include "ref/base/number.h"
#include "ref/daemon/rdma_node.h"
#include "ref/daemon/segment_memory.h"
#include "ref/daemon/store_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DONE = 0, REFUSED = 1, USAGE = 2, NO_DEVICE = 77, OPERANDS_MAX = 64 };
#define BYTES_MAX ((int64_t)1 << 34)
static const char program[] = "mooncheck-rdma";

/* What the command line says, whatever the command. */
static struct moon_daemon_options daemon_options = {.node = "rdma", .control = -1};
static const char *device, *host, *peer, *address_text, *operation = "read", *master = "127.0.0.1:50051", *key;
static int64_t port, bytes = 1 << 20, fill = 1, gid_port = 1;

/* One command at work. */
struct run {
    struct moon_daemon daemon;
    struct moon_rdma_node_settings settings;
    struct moon_rdma_node *node;
    struct moon_wire_protocol protocol;
    uint8_t *memory;
    size_t memory_bytes;
    uint64_t address; /* that the memory is announced at */
    struct moon_piece piece;
    struct moon_transfer_job job;
    struct moon_client_item item;
    struct moon_client_operation operation;
};

static int fail(const struct moon_error *error) {
    fprintf(stderr, "%s: %s%s%s\n", program, error->where, *error->where ? ": " : "", error->message);
    return error->status == MOON_ERR_IO || error->status == MOON_ERR_MEMORY ? REFUSED : USAGE;
}

/* ---- what all commands that use a device do */

/* Loop, device, transfer engine and client. */
static int open_run(struct run *run, struct moon_error *error) {
    run->settings.verbs = (struct moon_verbs_settings){device, host, (uint8_t)gid_port};
    run->settings.client.client = moon_client_defaults();
    run->settings.client.transfer = moon_transfer_defaults();
    if (port)
        run->settings.client.transfer.min_port = run->settings.client.transfer.max_port = (uint16_t)port;
    run->settings.client.client.master_endpoint = master;
    run->settings.client.client.protocol = &run->protocol;
    int status = host ? MOON_OK : moon_fail(error, MOON_ERR_SCHEMA, NULL, "--host is missing");
    if (!status && moon_wire_protocol_open(&run->protocol, moon_wire_releases[0], moon_memory_heap()))
        status = moon_no_memory(error);
    if (!status)
        status = moon_daemon_open(&run->daemon, &daemon_options, error);
    if (status)
        return status;
    run->node = moon_rdma_node_open(&run->daemon, &run->settings, error);
    if (!run->node)
        moon_daemon_close(&run->daemon);
    return run->node ? MOON_OK : error->status;
}

static void close_run(struct run *run) {
    moon_rdma_node_close(run->node);
    moon_daemon_close(&run->daemon);
    moon_segment_memory_close(run->memory, run->memory_bytes);
}

/* Memory that the device knows under `address`. */
static int offer(struct run *run, size_t size, uint64_t address, bool remote, struct moon_error *error) {
    run->memory = moon_segment_memory_open(size);
    run->memory_bytes = size;
    run->address = address ? address : (uintptr_t)run->memory;
    if (!run->memory)
        return moon_fail(error, MOON_ERR_MEMORY, NULL, "no memory for %zu bytes", size);
    run->piece = (struct moon_piece){run->memory, size};
    if (moon_transfer_register(moon_rdma_node_transfer(run->node), run->memory, run->address, size, remote))
        return moon_fail(error, MOON_ERR_IO, NULL, "the device does not register %zu bytes (ulimit -l?)", size);
    return MOON_OK;
}

static void print_digest(const struct run *run, const char *what, size_t size) {
    char digest[17];
    moon_store_digest(&run->piece, 1, size, digest);
    printf("%s bytes=%zu digest=%s\n", what, size, digest);
    fflush(stdout);
}

static int read_address(uint64_t *address, struct moon_error *error) {
    char end;
    if (!address_text || sscanf(address_text, "%" SCNx64 "%c", address, &end) != 1)
        return moon_fail(error, MOON_ERR_SCHEMA, NULL, "--address must be a number in hex");
    return MOON_OK;
}

/* ---- doctor */

static int doctor(void) {
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    int usable = moon_verbs_doctor(&out);
    fputs(moon_text_value(&out), stdout);
    moon_text_close(&out);
    return usable > 0 ? DONE : NO_DEVICE;
}

/* ---- owner: offers memory until it is told to end, then says what became of it */

static int owner(struct run *run) {
    struct moon_error error = {.status = MOON_OK};
    uint64_t address = 0;
    if (address_text && read_address(&address, &error))
        return fail(&error);
    if (open_run(run, &error))
        return fail(&error);
    int status = DONE;
    if (offer(run, (size_t)bytes, address, true, &error)) {
        status = fail(&error);
    } else {
        moon_fill((uint64_t)fill, 0, run->memory, run->memory_bytes);
        printf("owner endpoint=%s address=%" PRIx64 "\n", moon_transfer_endpoint(moon_rdma_node_transfer(run->node)),
               run->address);
        print_digest(run, "offered", run->memory_bytes);
        status = moon_daemon_run(&run->daemon);
        print_digest(run, "left", run->memory_bytes);
    }
    close_run(run);
    return status;
}

/* ---- requester: one READ or WRITE */

static void job_done(struct moon_transfer_job *job, int code) {
    struct run *run = MOON_HOLDER(job, struct run, job);
    if (code)
        fprintf(stderr, "%s: the transfer failed: %s\n", program, moon_wire_status_name(code));
    moon_daemon_end(&run->daemon, code ? REFUSED : DONE);
}

static int requester(struct run *run) {
    struct moon_error error = {.status = MOON_OK};
    bool write = strcmp(operation, "write") == 0;
    uint64_t address = 0;
    if (read_address(&address, &error) || (!peer && moon_fail(&error, MOON_ERR_SCHEMA, NULL, "--peer is missing")) ||
        open_run(run, &error))
        return fail(&error);
    int status = DONE;
    if (offer(run, (size_t)bytes, 0, false, &error)) {
        status = fail(&error);
    } else {
        if (write)
            moon_fill((uint64_t)fill, 0, run->memory, run->memory_bytes);
        run->job = (struct moon_transfer_job){.endpoint = peer,
                                              .remote = address,
                                              .write = write,
                                              .pieces = &run->piece,
                                              .piece_count = 1,
                                              .done = job_done};
        moon_rdma_node_enter(run->node);
        int submitted = moon_transfer_submit(moon_rdma_node_transfer(run->node), &run->job);
        moon_rdma_node_leave(run->node);
        status = submitted ? REFUSED : moon_daemon_run(&run->daemon);
        if (status == DONE)
            print_digest(run, operation, run->memory_bytes);
    }
    close_run(run);
    return status;
}

/* ---- fetch: one object of a store */

static void operation_done(struct moon_client_operation *done);

/* Submits the next operation on the key. */
static void submit(struct run *run, enum moon_client_do kind) {
    run->item = (struct moon_client_item){.key = moon_bytes_of(key), .pieces = &run->piece, .piece_count = 1};
    run->operation = (struct moon_client_operation){.kind = kind, .done = operation_done};
    if (kind != MOON_CLIENT_SETUP) {
        run->operation.items = &run->item;
        run->operation.item_count = 1;
    }
    if (moon_client_submit(moon_rdma_node_client(run->node), &run->operation))
        moon_daemon_end(&run->daemon, REFUSED);
}

/* SETUP, then SIZE, then GET into as much memory. */
static void operation_done(struct moon_client_operation *done) {
    struct run *run = MOON_HOLDER(done, struct run, operation);
    int64_t result = done->kind == MOON_CLIENT_SETUP ? done->result : run->item.result;
    struct moon_error error = {.status = MOON_OK};
    if (result < 0 || (result == 0 && done->kind != MOON_CLIENT_SETUP)) {
        fprintf(stderr, "%s: %s: %s\n", program, key, result ? moon_wire_status_name(result) : "empty");
        moon_daemon_end(&run->daemon, REFUSED);
    } else if (done->kind == MOON_CLIENT_SETUP) {
        submit(run, MOON_CLIENT_SIZE);
    } else if (done->kind == MOON_CLIENT_GET) {
        print_digest(run, "fetched", (size_t)result);
        moon_daemon_end(&run->daemon, DONE);
    } else if (offer(run, (size_t)moon_smaller(result, BYTES_MAX), 0, false, &error)) {
        moon_daemon_end(&run->daemon, fail(&error));
    } else {
        submit(run, MOON_CLIENT_GET);
    }
}

static int fetch(struct run *run) {
    struct moon_error error = {.status = MOON_OK};
    if ((!key && moon_fail(&error, MOON_ERR_SCHEMA, NULL, "--key is missing")) || open_run(run, &error))
        return fail(&error);
    moon_rdma_node_enter(run->node);
    submit(run, MOON_CLIENT_SETUP);
    moon_rdma_node_leave(run->node);
    int status = moon_daemon_run(&run->daemon);
    close_run(run);
    return status;
}

/* ---- the command line */

#define NUMBER(option, variable, low, high, text)                                                                      \
    {                                                                                                                  \
        .name = (option), .kind = MOON_OPTION_INTEGER, .into = &(variable), .value = "N", .min = (low), .max = (high), \
        .help = (text)                                                                                                 \
    }
#define TEXT(option, variable, placeholder, words)                                                                     \
    { .name = (option), .kind = MOON_OPTION_TEXT, .into = &(variable), .value = (placeholder), .help = (words) }
#define DEVICE_OPTIONS                                                                                                 \
    TEXT("device", device, "NAME", "the RDMA device; else the first one"),                                             \
        TEXT("host", host, "ADDRESS", "own address: peers dial it, and the GID is found by it"),                       \
        NUMBER("device-port", gid_port, 1, 255, "port of the device (1)"), MOON_DAEMON_OPTIONS(daemon_options)

static const struct moon_option doctor_options[] = {{.name = NULL}};
static const struct moon_option owner_options[] = {
    DEVICE_OPTIONS,
    NUMBER("port", port, 0, UINT16_MAX, "handshake port (0: a free one)"),
    NUMBER("bytes", bytes, 1, BYTES_MAX, "size of the memory (1 MiB)"),
    NUMBER("fill", fill, 0, INT64_MAX, "its content is made from this number (1)"),
    TEXT("address", address_text, "HEX", "announced address; else the pointer"),
    {.name = NULL}};
static const struct moon_option requester_options[] = {
    DEVICE_OPTIONS,
    TEXT("peer", peer, "HOST:PORT", "the owner's endpoint"),
    TEXT("address", address_text, "HEX", "what is read or written there"),
    NUMBER("bytes", bytes, 1, BYTES_MAX, "how much (1 MiB)"),
    NUMBER("fill", fill, 0, INT64_MAX, "what is written is made from this number (1)"),
    {.name = "op",
     .kind = MOON_OPTION_CHOICE,
     .into = &operation,
     .value = "OP",
     .choices = "read|write",
     .help = "read (the default) or write"},
    {.name = NULL}};
static const struct moon_option fetch_options[] = {DEVICE_OPTIONS,
                                                   TEXT("master", master, "HOST:PORT", "the store (127.0.0.1:50051)"),
                                                   TEXT("key", key, "KEY", "the object"),
                                                   {.name = NULL}};

static const struct moon_command commands[] = {
    {.name = "doctor",
     .operands = "",
     .summary = "say what RDMA devices there are, and what stands in the way of using them",
     .options = doctor_options},
    {.name = "owner", .operands = "", .summary = "offer memory to peers until SIGTERM", .options = owner_options},
    {.name = "requester", .operands = "", .summary = "read or write an owner's memory", .options = requester_options},
    {.name = "fetch", .operands = "", .summary = "read an object of a store, over verbs", .options = fetch_options},
    {.name = NULL}};

static int help(const struct moon_command *command) {
    struct moon_text out;
    moon_text_open(&out, moon_memory_heap());
    if (command)
        moon_options_usage(program, command, &out);
    else
        moon_options_overview(program, commands, &out);
    fputs(moon_text_value(&out), stdout);
    moon_text_close(&out);
    return DONE;
}

static int run_command(const struct moon_command *command) {
    static struct run run;
    switch (command - commands) {
    case 0:
        return doctor();
    case 1:
        return owner(&run);
    case 2:
        return requester(&run);
    default:
        return fetch(&run);
    }
}

int main(int argc, char *argv[]) {
    const struct moon_command *command = NULL;
    const char *operands[OPERANDS_MAX];
    struct moon_error error = {.status = MOON_OK};
    int count = 0;
    for (size_t i = 0; argc > 1 && commands[i].name; i++)
        if (strcmp(argv[1], commands[i].name) == 0)
            command = &commands[i];
    if (argc < 2 || argc > OPERANDS_MAX || strcmp(argv[1], "--help") == 0)
        return argc < 2 || argc > OPERANDS_MAX ? help(NULL), USAGE : help(NULL);
    if (!command) {
        fprintf(stderr, "%s: no command \"%s\"; see %s --help\n", program, argv[1], program);
        return USAGE;
    }
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0)
            return help(command);
    if (moon_options_parse(command, argc - 2, argv + 2, operands, &count, &error))
        return fail(&error);
    return run_command(command);
}
