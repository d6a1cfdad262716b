/* SPDX-License-Identifier: Apache-2.0 */
/* The client as owner: setup, pings, remount, tasks, unmount (CLIENT-001 to CLIENT-008). */
#include "ref/store/client_internal.h"
#include "ref/store/master.h"

enum { TASKS_A_FETCH = 16 /* batch_size of FetchTasks */ };

/* ---- the segment */

static void describe_segment(const struct moon_client *client, struct moon_wire_value *segment) {
    const struct moon_client_settings *settings = &client->settings;
    moon_wire_set_uuid(moon_wire_at(segment, "id"), client->segment_id);
    moon_wire_set_bytes(moon_wire_at(segment, "name"), moon_bytes_of(settings->hostname));
    moon_wire_set_number(moon_wire_at(segment, "base"), settings->segment_address);
    moon_wire_set_number(moon_wire_at(segment, "size"), settings->segment_bytes);
    moon_wire_set_bytes(moon_wire_at(segment, "te_endpoint"), moon_bytes_of(moon_transfer_endpoint(client->transfer)));
    moon_wire_set_bytes(moon_wire_at(segment, "protocol"), moon_bytes_of(moon_transfer_protocol(client->transfer)));
    moon_wire_set_bytes(moon_wire_at(segment, "host_id"), moon_bytes_of(settings->host_id));
}

/* Returns 0 or the code of setup. */
static int64_t offer(struct moon_client *client) {
    const struct moon_client_settings *settings = &client->settings;
    int status = moon_transfer_register(client->transfer, settings->segment, settings->segment_address,
                                        settings->segment_bytes, true);
    client->offered = status == 0;
    return status == 0 ? 0 : status == MOON_ERR_MEMORY ? MOON_STORE_INTERNAL_ERROR : MOON_STORE_INVALID_PARAMS;
}

void moon_client_owner_withdraw(struct moon_client *client) {
    if (client->offered)
        moon_transfer_unregister(client->transfer, client->settings.segment_address);
    client->offered = client->mounted = false;
}

/* ---- questions of an owner */

static void ask_remount(struct moon_client *client, struct moon_client_question *question, uint64_t op,
                        void (*answered)(struct moon_client_question *question,
                                         const struct moon_client_answer *answer)) {
    struct moon_client_message message;
    moon_client_message_open(client, &message, "ReMountSegment");
    struct moon_wire_value *segments = moon_wire_at(message.arguments, "segments");
    struct moon_wire_value *segment = segments ? moon_wire_append(&message.arena, segments) : NULL;
    describe_segment(client, segment);
    if (!segment)
        message.arguments = NULL;
    moon_client_ask(client, question, op, "ReMountSegment", &message, answered);
}

static void ask_ping(struct moon_client *client, struct moon_client_question *question, uint64_t op,
                     void (*answered)(struct moon_client_question *question, const struct moon_client_answer *answer)) {
    struct moon_client_message message;
    client->next_ping_ns = client->environment->now_ns + client->settings.ping_ns;
    moon_client_message_open(client, &message, "Ping");
    moon_client_ask(client, question, op, "Ping", &message, answered);
}

static bool is_told_to_remount(const struct moon_client_answer *answer) {
    struct moon_client_answer ping = moon_client_expect(answer);
    return ping.code == 0 && moon_wire_number(moon_wire_at(ping.result, "client_status")) == MOON_CLIENT_NEED_REMOUNT;
}

/* ---- setup */

static void set_up(struct moon_client_operation_state *state, int64_t code) {
    struct moon_client *client = state->client;
    client->phase = code ? MOON_CLIENT_NEW : MOON_CLIENT_READY;
    if (code)
        moon_client_owner_withdraw(client);
    state->operation->result = code;
    moon_client_operation_end(state);
}

static void setup_remounted(struct moon_client_question *question, const struct moon_client_answer *answer) {
    (void)answer; /* if it failed, the next ping says so again */
    set_up((struct moon_client_operation_state *)question, 0);
}

static void setup_pinged(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    if (is_told_to_remount(answer))
        ask_remount(state->client, question, state->op, setup_remounted);
    else
        set_up(state, 0);
}

static void setup_mounted(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    struct moon_client_answer mount = moon_client_expect(answer);
    moon_client_record(state->client, moon_client_end_of(mount.code, mount.arrived), "mount", state->op, &mount.code);
    state->client->mounted = mount.code == 0;
    if (mount.code)
        set_up(state, mount.code);
    else
        ask_ping(state->client, question, state->op, setup_pinged);
}

static void setup_configured(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    struct moon_client *client = state->client;
    struct moon_client_message message;
    (void)answer; /* about disks, which we do not have; a master may leave it out (CLIENT-003) */
    int64_t code = client->settings.segment_bytes > 0 ? offer(client) : 0;
    if (code || !client->offered) {
        set_up(state, code);
        return;
    }
    client->segment_id = moon_client_draw_uuid(&client->environment->random);
    moon_client_record(client, MOON_RECORD_INVOKE, "mount", state->op, NULL);
    moon_client_message_open(client, &message, "MountSegment");
    describe_segment(client, moon_wire_at(message.arguments, "segment"));
    moon_client_ask(client, question, state->op, "MountSegment", &message, setup_mounted);
}

static void setup_ready(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    struct moon_client_answer version = moon_client_expect(answer);
    struct moon_bytes ours = moon_bytes_of(state->client->settings.protocol->release->version);
    struct moon_client_message message;
    if (!version.code && !moon_bytes_equal(moon_wire_bytes(version.result), ours))
        version.code = MOON_STORE_INVALID_VERSION;
    if (version.code) {
        set_up(state, version.code);
        return;
    }
    moon_client_message_open(state->client, &message, "GetStorageConfig");
    moon_client_ask(state->client, question, state->op, "GetStorageConfig", &message, setup_configured);
}

void moon_client_setup(struct moon_client_operation_state *state) {
    struct moon_client_message message;
    state->client->phase = MOON_CLIENT_SETTING_UP;
    moon_client_message_open(state->client, &message, "ServiceReady");
    moon_client_ask(state->client, &state->question, state->op, "ServiceReady", &message, setup_ready);
}

/* ---- unmount */

static void unmounted(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client_operation_state *state = (struct moon_client_operation_state *)question;
    struct moon_client *client = state->client;
    struct moon_client_answer its = moon_client_expect(answer);
    moon_client_record(client, moon_client_end_of(its.code, its.arrived), "unmount", state->op, &its.code);
    if (!its.code)
        moon_client_owner_withdraw(client);
    client->leaving = NULL;
    state->operation->result = its.code;
    moon_client_operation_end(state);
}

static void ask_unmount(struct moon_client_operation_state *state) {
    struct moon_client *client = state->client;
    struct moon_client_message message;
    moon_client_message_open(client, &message, "UnmountSegment");
    moon_wire_set_uuid(moon_wire_at(message.arguments, "segment_id"), client->segment_id);
    moon_client_ask(client, &state->question, state->op, "UnmountSegment", &message, unmounted);
}

void moon_client_unmount(struct moon_client_operation_state *state) {
    struct moon_client *client = state->client;
    if (!client->mounted) {
        moon_client_operation_end(state);
        return;
    }
    client->leaving = state;
    moon_client_record(client, MOON_RECORD_INVOKE, "unmount", state->op, NULL);
    if (!client->remount.question.asked) /* else it follows the answer, so that no remount comes after it */
        ask_unmount(state);
}

/* ---- each second */

static void remounted(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client *client = ((struct moon_client_chore *)question)->client;
    int64_t code = moon_client_expect(answer).code;
    moon_client_record(client, MOON_RECORD_STATE, "remount", 0, &code);
    if (client->leaving)
        ask_unmount(client->leaving);
}

static void pinged(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client *client = ((struct moon_client_chore *)question)->client;
    if (client->mounted && !client->leaving && !client->remount.question.asked && is_told_to_remount(answer))
        ask_remount(client, &client->remount.question, 0, remounted);
}

static void fetched(struct moon_client_question *question, const struct moon_client_answer *answer) {
    struct moon_client *client = ((struct moon_client_chore *)question)->client;
    struct moon_client_answer tasks = moon_client_expect(answer);
    int64_t count = tasks.code ? 0 : (int64_t)tasks.result->count;
    if (count > 0)
        moon_client_record(client, MOON_RECORD_NOTE, "tasks", 0, &count);
}

static void ask_tasks(struct moon_client *client) {
    struct moon_client_message message;
    moon_client_message_open(client, &message, "FetchTasks");
    moon_wire_set_number(moon_wire_at(message.arguments, "batch_size"), TASKS_A_FETCH);
    moon_client_ask(client, &client->tasks.question, 0, "FetchTasks", &message, fetched);
}

void moon_client_owner_open(struct moon_client *client) {
    client->ping.client = client->remount.client = client->tasks.client = client;
}

static bool is_owner(const struct moon_client *client) {
    return client->mounted && client->phase == MOON_CLIENT_READY && !client->leaving;
}

moon_ns moon_client_owner_deadline(const struct moon_client *client) {
    return is_owner(client) ? client->next_ping_ns : MOON_NS_NEVER;
}

void moon_client_owner_tick(struct moon_client *client) {
    if (!is_owner(client) || client->environment->now_ns < client->next_ping_ns)
        return;
    client->next_ping_ns = client->environment->now_ns + client->settings.ping_ns;
    if (!client->tasks.question.asked)
        ask_tasks(client);
    if (!client->ping.question.asked)
        ask_ping(client, &client->ping.question, 0, pinged);
}
