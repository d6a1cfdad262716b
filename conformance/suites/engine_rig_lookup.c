/* SPDX-License-Identifier: Apache-2.0 */
/* The rig's lookup channel: frames to the server of rank 0 and back, held as long as the case wants it. */
#include "conformance/suites/engine_rig_internal.h"

static struct moon_rig *rig_of(struct moon_lookup_channel *channel) {
    return (struct moon_rig *)((char *)channel - offsetof(struct moon_rig, channel));
}

/* A request goes out: its frames are kept until the server reads them. */
static int send_frames(struct moon_lookup_channel *self, const struct moon_rpc_frame *frames, size_t count,
                       struct moon_error *error) {
    struct moon_rig *rig = rig_of(self);
    rig->frame_count = count;
    rig->arrived = true;
    for (size_t i = 0; i < count; i++) {
        moon_text_clear(&rig->frames[i]);
        moon_text_bytes(&rig->frames[i], frames[i].bytes, frames[i].length);
        if (rig->frames[i].failed) {
            rig->arrived = false;
            rig->lookup_status = MOON_ERR_MEMORY;
            return moon_fail(error, MOON_ERR_IO, NULL, "out of memory");
        }
    }
    return 0;
}

/* The core waits: whatever is out is served now. */
static void wait_for_reply(struct moon_lookup_channel *self, const struct moon_channel_wait *wait) {
    struct moon_rig *rig = rig_of(self);
    struct moon_error error;
    (void)wait;
    if (moon_rig_lookup_serve(rig, true, &error))
        rig->lookup_status = MOON_ERR_MEMORY;
}

static int begin_request(struct moon_rig *rig) {
    struct moon_rpc_frame frames[MOON_RPC_FRAMES_MAX];
    for (size_t i = 0; i < rig->frame_count; i++)
        frames[i] = (struct moon_rpc_frame){(const uint8_t *)moon_text_value(&rig->frames[i]), rig->frames[i].length};
    rig->arrived = false;
    return moon_lookup_server_request(&rig->server, frames, rig->frame_count);
}

static int ask_store(struct moon_rig *rig, struct moon_error *error) {
    const struct moon_store_call *call = rig->server.call;
    rig->asked_store++;
    if (rig->in_step && rig->observer->looked_up)
        rig->observer->looked_up(rig->observer, call->count);
    if (rig->its->exist_raises)
        return moon_lookup_server_raised(&rig->server);
    int status = moon_rig_store_call(rig, NULL, call, error);
    return status ? status : moon_lookup_server_answer(&rig->server, rig->values, call->count);
}

/* The reply goes back, which may bring the next request. */
static int send_reply(struct moon_rig *rig) {
    struct moon_text reply;
    moon_text_open(&reply, rig->arena->memory);
    moon_text_bytes(&reply, moon_text_value(&rig->server.reply), rig->server.reply.length);
    moon_lookup_server_sent(&rig->server);
    int status = reply.failed ? MOON_ERR_MEMORY : 0;
    moon_lookup_client_reply(rig->client, moon_text_value(&reply), reply.length);
    moon_text_close(&reply);
    return status;
}

int moon_rig_lookup_serve(struct moon_rig *rig, bool may_answer, struct moon_error *error) {
    int status = 0;
    while (!status) {
        if (rig->server.need == MOON_SERVER_REPLY) {
            status = send_reply(rig);
        } else if (rig->server.need == MOON_SERVER_ASK_STORE) {
            if (!may_answer && rig->permits == 0)
                break;
            rig->permits -= !may_answer;
            status = ask_store(rig, error);
        } else if (rig->server.need == MOON_SERVER_IDLE && rig->arrived) {
            status = begin_request(rig);
        } else if (rig->server.need == MOON_SERVER_DRAIN || rig->server.need == MOON_SERVER_REMOVE_KEYS) {
            status = moon_lookup_server_done(&rig->server, false); /* nobody resets the store in these suites */
        } else {
            break;
        }
    }
    return status ? moon_fail(error, (enum moon_status)status, NULL, "out of memory") : 0;
}

int moon_rig_lookup_open(struct moon_rig *rig, struct moon_error *error) {
    const struct moon_connector *connector = &rig->its->its.connector;
    rig->channel = (struct moon_lookup_channel){send_frames, wait_for_reply};
    for (size_t i = 0; i < MOON_RPC_FRAMES_MAX; i++)
        moon_text_open(&rig->frames[i], rig->arena->memory);
    moon_lookup_server_open(&rig->server, connector, rig->arena->memory);
    return moon_lookup_client_open(&rig->client, connector, &rig->channel, rig->arena->memory, error);
}

void moon_rig_lookup_close(struct moon_rig *rig) {
    moon_lookup_client_close(rig->client);
    moon_lookup_server_close(&rig->server);
    for (size_t i = 0; i < MOON_RPC_FRAMES_MAX; i++)
        moon_text_close(&rig->frames[i]);
}

int moon_rig_answer(struct moon_rig *rig, int64_t count, struct moon_error *error) {
    rig->permits = count;
    rig->in_step = false;
    int status = moon_rig_lookup_serve(rig, false, error);
    rig->permits = 0;
    return status;
}

size_t moon_rig_futures(const struct moon_rig *rig) {
    return moon_lookup_client_futures(rig->client);
}

size_t moon_rig_waiting_lookups(const struct moon_rig *rig) {
    return moon_lookup_client_waiting(rig->client, NULL);
}

size_t moon_rig_asked_store(const struct moon_rig *rig) {
    return rig->asked_store;
}
