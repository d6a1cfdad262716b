/* SPDX-License-Identifier: Apache-2.0 */
/* The adapter protocol of a store: takes lines, keeps requests under way, writes answers. */
#include "ref/daemon/agent.h"

#include "ref/base/endpoint.h"
#include "ref/base/suggest.h"
#include "ref/base/version.h"
#include "ref/daemon/agent_call.h"
#include "ref/daemon/duration.h"
#include "ref/daemon/segment_memory.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

enum { PROTOCOL = 1 };

static const char SOURCE[] = "stdin";

/* One call under way. call NULL: setup. All it needs lives in its arena. */
struct request {
    struct moon_client_operation operation;
    struct moon_agent *agent;
    struct moon_agent_client *client;
    const struct moon_agent_call *call;
    struct moon_arena arena;
    struct moon_list link;
    int64_t seq;
    bool want_hex;
};

/* ---- answers */

/* Writes one line, all of it; a reader that is gone ends the agent. */
static void say(struct moon_agent *agent, const struct moon_json *answer) {
    static const char no_memory[] = "{\"error\":\"out of memory\"}\n";
    struct moon_text text;
    moon_text_open(&text, moon_memory_heap());
    moon_json_write(answer, MOON_JSON_COMPACT, &text);
    moon_text_char(&text, '\n');
    bool failed = moon_json_broken(answer) || text.failed;
    const char *bytes = failed ? no_memory : text.data;
    size_t length = failed ? sizeof no_memory - 1 : text.length;
    while (length > 0 && !agent->stopped) {
        ssize_t count = write(agent->out, bytes, length);
        struct pollfd wait = {agent->out, POLLOUT, 0};
        if (count < 0 && errno == EAGAIN)
            poll(&wait, 1, -1);
        else if (count < 0 && errno != EINTR)
            agent->stopped = true;
        bytes += count > 0 ? count : 0;
        length -= count > 0 ? (size_t)count : 0;
    }
    moon_text_close(&text);
}

static struct moon_json *answer_to(struct moon_arena *arena, int64_t seq) {
    struct moon_json *answer = moon_json_object(arena);
    if (seq >= 0)
        moon_json_set(arena, answer, "seq", moon_json_int(arena, seq));
    return answer;
}

static void say_error(struct moon_agent *agent, struct moon_arena *arena, int64_t seq, const struct moon_error *error) {
    struct moon_json *answer = answer_to(arena, seq);
    const char *text = moon_arena_format(arena, "%s%s%s", error->where, error->where[0] ? ": " : "", error->message);
    moon_json_set(arena, answer, "error", moon_json_string(arena, text));
    say(agent, answer);
}

/* ---- requests */

static void drop(struct request *request) {
    struct moon_memory *memory = moon_memory_heap();
    moon_list_remove(&request->link);
    request->agent->request_count--;
    moon_arena_close(&request->arena);
    memory->resize(memory, request, sizeof *request, 0);
}

static void ended(struct moon_client_operation *operation) {
    struct request *request = (struct request *)operation;
    struct moon_agent_client *client = request->client;
    struct moon_json *answer = answer_to(&request->arena, request->seq), *result;
    if (request->call) {
        result = moon_agent_call_result(request->call, &request->arena, operation, request->want_hex);
        client->gone = client->leaving && operation->kind == MOON_CLIENT_UNMOUNT;
    } else {
        result = moon_json_object(&request->arena);
        moon_json_set(&request->arena, result, "code", moon_json_int(&request->arena, operation->result));
        client->gone = operation->result != 0;
    }
    moon_json_set(&request->arena, answer, "result", result);
    say(request->agent, answer);
    drop(request);
}

static struct request *new_request(struct moon_agent *agent, struct moon_arena *arena, int64_t seq) {
    struct moon_memory *memory = moon_memory_heap();
    struct request *request = memory->resize(memory, NULL, 0, sizeof *request);
    if (!request)
        return NULL;
    *request = (struct request){.agent = agent, .arena = *arena, .seq = seq};
    moon_list_add(&agent->requests, &request->link);
    agent->request_count++;
    return request;
}

static int submit(struct request *request, struct moon_error *error) {
    request->operation.done = ended;
    int status = moon_session_submit(request->client->session, &request->operation);
    if (status == MOON_ERR_MEMORY)
        return moon_fail(error, status, NULL, "out of memory");
    if (status != 0)
        return moon_fail(error, status, NULL, "client \"%s\" cannot do this now: it is not set up yet, or leaving",
                         request->client->name);
    return 0;
}

/* ---- clients */

static struct moon_agent_client *find_client(struct moon_agent *agent, const char *name) {
    for (size_t i = 0; i < MOON_AGENT_CLIENTS_MAX; i++)
        if (agent->clients[i].session && strcmp(agent->clients[i].name, name) == 0)
            return &agent->clients[i];
    return NULL;
}

/* A size is a number, or text with a unit. */
static int read_size(const struct moon_json *args, const char *name, int64_t *out, struct moon_error *error) {
    const struct moon_json *value = moon_json_member(args, name);
    int status = 0;
    if (moon_json_is(value, MOON_JSON_STRING))
        status = moon_size_read(name, value->bytes, out, error);
    else
        status = moon_json_get_int(SOURCE, args, name, false, 0, INT64_MAX, out, error);
    if (status == 0 && *out > MOON_SEGMENT_BYTES_MAX)
        status = moon_json_fail(error, MOON_ERR_LIMIT, SOURCE, value, "more than %lld bytes",
                                (long long)MOON_SEGMENT_BYTES_MAX);
    return status;
}

/* Names that Mooncake's setup takes, with what they mean here. */
static int read_setup(struct moon_arena *arena, const struct moon_json *args, struct moon_session_settings *settings,
                      struct moon_error *error) {
    static const char *const names[] = {
        "local_hostname", "master_server_addr", "global_segment_size", "local_buffer_size",
        "protocol",       "rdma_devices",       "tenant_id",           NULL};
    const char *hostname = "", *protocol = "tcp", *devices = "";
    int64_t buffer_bytes = 0;
    settings->master = "127.0.0.1:50051";
    settings->segment_bytes = 16 * 1024 * 1024;
    int status = moon_json_closed(SOURCE, args, names, error);
    if (status == 0)
        status = moon_json_get_string(SOURCE, args, "local_hostname", true, &hostname, NULL, error);
    if (status == 0)
        status = moon_json_get_string(SOURCE, args, "master_server_addr", false, &settings->master, NULL, error);
    if (status == 0)
        status = moon_json_get_string(SOURCE, args, "protocol", false, &protocol, NULL, error);
    if (status == 0)
        status = moon_json_get_string(SOURCE, args, "rdma_devices", false, &devices, NULL, error);
    if (status == 0)
        status = moon_json_get_string(SOURCE, args, "tenant_id", false, &settings->tenant, NULL, error);
    if (status == 0)
        status = read_size(args, "global_segment_size", &settings->segment_bytes, error);
    if (status == 0)
        status = read_size(args, "local_buffer_size", &buffer_bytes, error);
    if (status == 0 && (strcmp(protocol, "tcp") != 0 || devices[0]))
        status = moon_json_fail(error, MOON_ERR_UNSUPPORTED, SOURCE,
                                moon_json_member(args, devices[0] ? "rdma_devices" : "protocol"),
                                "this program moves bytes over tcp");
    if (status != 0)
        return status;
    char *host = moon_arena_alloc(arena, MOON_HOST_BYTES);
    uint16_t port;
    if (!host)
        return moon_no_memory(error);
    bool with_port = moon_endpoint_split(hostname, host, &port);
    settings->host = with_port ? host : hostname;
    settings->hostname = with_port ? hostname : NULL;
    return 0;
}

/* Makes a client and begins its setup. */
static int set_up(struct request *request, const char *name, const struct moon_json *args, struct moon_error *error) {
    struct moon_agent *agent = request->agent;
    struct moon_session_settings settings = {.protocol = agent->protocol};
    struct moon_agent_client *client = agent->clients;
    if (find_client(agent, name))
        return moon_fail(error, MOON_ERR_RANGE, NULL, "client \"%.80s\" is set up already", name);
    while (client < agent->clients + MOON_AGENT_CLIENTS_MAX && client->session)
        client++;
    if (client == agent->clients + MOON_AGENT_CLIENTS_MAX)
        return moon_fail(error, MOON_ERR_LIMIT, NULL, "more than %d clients", MOON_AGENT_CLIENTS_MAX);
    int status = read_setup(&request->arena, args, &settings, error);
    if (status != 0)
        return status;
    *client = (struct moon_agent_client){.name = moon_arena_copy(&agent->arena, name, strlen(name))};
    if (!client->name)
        return moon_no_memory(error);
    client->session = moon_session_open(agent->daemon, &settings, error);
    if (!client->session)
        return (int)error->status;
    request->client = client;
    request->operation.kind = MOON_CLIENT_SETUP;
    status = submit(request, error);
    client->gone = status != 0;
    return status;
}

static int begin_call(struct request *request, const struct moon_json *message, struct moon_error *error) {
    const char *name = "", *call = "";
    struct moon_json *args = NULL;
    int status = moon_json_get_string(SOURCE, message, "client", true, &name, NULL, error);
    if (status == 0)
        status = moon_json_get_string(SOURCE, message, "call", true, &call, NULL, error);
    if (status == 0)
        status = moon_json_get(SOURCE, message, "args", true, MOON_JSON_OBJECT, &args, error);
    if (status != 0)
        return status;
    if (strcmp(call, "setup") == 0)
        return set_up(request, name, args, error);
    request->call = moon_agent_call_find(call);
    request->client = find_client(request->agent, name);
    const char *near = moon_suggest(call, moon_agent_call_names);
    if (!request->call)
        return moon_json_fail(error, MOON_ERR_SCHEMA, SOURCE, moon_json_member(message, "call"),
                              near ? "no call \"%.40s\"; did you mean \"%s\"?" : "no call \"%.40s\"%s", call,
                              near ? near : "");
    if (!request->client)
        return moon_json_fail(error, MOON_ERR_RANGE, SOURCE, moon_json_member(message, "client"),
                              "client \"%.80s\" is not set up", name);
    status = moon_agent_call_read(request->call, &request->arena, SOURCE, args, request->agent->folder,
                                  &request->operation, &request->want_hex, error);
    bool keyless = request->operation.kind == MOON_CLIENT_UNMOUNT || request->operation.kind == MOON_CLIENT_REMOVE_ALL;
    if (status == 0 && request->operation.item_count == 0 && !keyless) {
        ended(&request->operation); /* nothing is asked: nothing to do */
        return 0;
    }
    if (status == 0)
        status = submit(request, error);
    if (status == 0 && request->operation.kind == MOON_CLIENT_UNMOUNT)
        request->client->leaving = true;
    return status;
}

/* ---- messages */

static void start(struct moon_agent *agent, struct moon_arena *arena, const struct moon_json *message) {
    static const char *const names[] = {"do", "protocol", "folder", NULL};
    struct moon_error error;
    int64_t protocol = 0;
    const char *folder = ".";
    if (moon_json_closed(SOURCE, message, names, &error) != 0 ||
        moon_json_get_int(SOURCE, message, "protocol", true, PROTOCOL, PROTOCOL, &protocol, &error) != 0 ||
        moon_json_get_string(SOURCE, message, "folder", false, &folder, NULL, &error) != 0) {
        say_error(agent, arena, -1, &error);
        return;
    }
    const char *copy = moon_arena_copy(&agent->arena, folder, strlen(folder));
    agent->folder = copy ? copy : agent->folder;
    struct moon_json *answer = moon_json_object(arena), *ok = moon_json_object(arena),
                     *profiles = moon_json_array(arena);
    const char *release = moon_arena_format(arena, "mooncake-%s", agent->protocol->release->name);
    moon_json_push(profiles, moon_json_string(arena, release));
    moon_json_set(arena, ok, "name", moon_json_string(arena, "mooncheck client"));
    moon_json_set(arena, ok, "version", moon_json_string(arena, MOON_VERSION));
    moon_json_set(arena, ok, "homepage", moon_json_string(arena, ""));
    moon_json_set(arena, ok, "profiles", profiles);
    moon_json_set(arena, ok, "suites", moon_json_array(arena));
    moon_json_set(arena, ok, "store", moon_json_bool(arena, true));
    moon_json_set(arena, answer, "ok", ok);
    say(agent, answer);
}

/* A store call. The arena, with the message in it, becomes the request's. */
static void store_call(struct moon_agent *agent, struct moon_arena *arena, const struct moon_json *message) {
    static const char *const names[] = {"do", "seq", "client", "call", "args", NULL};
    struct moon_error error;
    int64_t seq = -1;
    if (moon_json_get_int(SOURCE, message, "seq", true, 0, INT64_MAX, &seq, &error) != 0 ||
        moon_json_closed(SOURCE, message, names, &error) != 0) {
        say_error(agent, arena, seq, &error);
        moon_arena_close(arena);
        return;
    }
    struct request *request = new_request(agent, arena, seq);
    if (!request) {
        moon_fail(&error, MOON_ERR_MEMORY, NULL, "out of memory");
        say_error(agent, arena, seq, &error);
        moon_arena_close(arena);
    } else if (begin_call(request, message, &error) != 0) {
        say_error(agent, &request->arena, seq, &error);
        drop(request);
    }
}

void moon_agent_take(struct moon_agent *agent, const char *line, size_t length) {
    struct moon_arena arena;
    struct moon_error error;
    struct moon_json *message = NULL;
    const char *order = "";
    int64_t seq = -1;
    moon_arena_open(&arena, moon_memory_heap());
    if (moon_json_read(&arena, SOURCE, line, length, MOON_JSON_STRICT, &message, &error) != 0 ||
        moon_json_get_string(SOURCE, message, "do", true, &order, NULL, &error) != 0) {
        say_error(agent, &arena, -1, &error);
    } else if (strcmp(order, "store") == 0) {
        store_call(agent, &arena, message);
        return;
    } else if (strcmp(order, "start") == 0) {
        start(agent, &arena, message);
    } else if (strcmp(order, "stop") == 0) {
        struct moon_json *answer = moon_json_object(&arena);
        moon_json_set(&arena, answer, "ok", moon_json_object(&arena));
        say(agent, answer);
        agent->stopped = true;
    } else {
        (void)moon_json_get_int(SOURCE, message, "seq", false, 0, INT64_MAX, &seq, &error);
        moon_json_fail(&error, MOON_ERR_SCHEMA, SOURCE, moon_json_member(message, "do"),
                       "is \"start\", \"store\" or \"stop\", not \"%.40s\"", order);
        say_error(agent, &arena, seq, &error);
    }
    moon_arena_close(&arena);
}

void moon_agent_refuse_line(struct moon_agent *agent) {
    struct moon_arena arena;
    struct moon_error error;
    moon_arena_open(&arena, moon_memory_heap());
    moon_fail(&error, MOON_ERR_LIMIT, SOURCE, "a line of more than %d bytes", MOON_AGENT_LINE_BYTES_MAX);
    say_error(agent, &arena, -1, &error);
    moon_arena_close(&arena);
}

/* ---- life */

void moon_agent_open(struct moon_agent *agent, struct moon_daemon *daemon, const struct moon_wire_protocol *protocol,
                     int out) {
    *agent = (struct moon_agent){.daemon = daemon, .protocol = protocol, .folder = ".", .out = out};
    moon_arena_open(&agent->arena, moon_memory_heap());
    moon_list_open(&agent->requests);
}

/* Closes a client. Its requests will not end any more. */
static void close_client(struct moon_agent *agent, struct moon_agent_client *client, bool answer) {
    struct moon_error error;
    moon_session_close(client->session);
    client->session = NULL;
    for (struct moon_list *at = agent->requests.next, *next; at != &agent->requests; at = next) {
        struct request *request = MOON_HOLDER(at, struct request, link);
        next = at->next;
        if (request->client != client)
            continue;
        moon_fail(&error, MOON_ERR_IO, NULL, "client \"%s\" is closed", client->name);
        if (answer)
            say_error(agent, &request->arena, request->seq, &error);
        drop(request);
    }
}

void moon_agent_reap(struct moon_agent *agent) {
    for (size_t i = 0; i < MOON_AGENT_CLIENTS_MAX; i++)
        if (agent->clients[i].session && agent->clients[i].gone)
            close_client(agent, &agent->clients[i], true);
}

void moon_agent_close(struct moon_agent *agent) {
    for (size_t i = 0; i < MOON_AGENT_CLIENTS_MAX; i++)
        if (agent->clients[i].session)
            close_client(agent, &agent->clients[i], false);
    moon_arena_close(&agent->arena);
}
