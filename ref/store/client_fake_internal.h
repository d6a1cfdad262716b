/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for remote calls and transfers below the client: a test sees each question and each transfer, and ends them
 * as it likes. For the client's unit tests and client_fuzz.c alone; it defines the functions, so only one file of a
 * program includes it. */
#ifndef MOON_STORE_CLIENT_FAKE_INTERNAL_H
#define MOON_STORE_CLIENT_FAKE_INTERNAL_H

#include "ref/store/client.h"

#include <assert.h>

enum { FAKE_OPEN_MAX = 64, FAKE_REMOTE_BYTES = 1 << 12 };

/* Announced address of fake.remote. */
static const uint64_t FAKE_REMOTE = 0x100000000;

struct moon_rpc_client {
    struct moon_environment *environment;
    const struct moon_wire_protocol *protocol;
};

/* A question that is open. `arguments` is what would be on the wire, decoded again. */
struct fake_question {
    struct moon_rpc_call *call;
    const struct moon_wire_call *function;
    struct moon_arena arena;
    struct moon_wire_value *arguments;
};

struct moon_transfer {
    struct moon_environment *environment;
};

/* What there is. refuse_register: what the next registration returns. */
static struct {
    struct moon_rpc_client rpc;
    struct moon_transfer transfer;
    struct fake_question questions[FAKE_OPEN_MAX];
    size_t question_count;
    struct moon_transfer_job *jobs[FAKE_OPEN_MAX];
    size_t job_count;
    int registered, refuse_register;
    uint8_t remote[FAKE_REMOTE_BYTES];
} fake;

/* ---- remote calls */

struct moon_rpc_client *moon_rpc_client_open(struct moon_environment *environment,
                                             const struct moon_wire_protocol *protocol,
                                             const struct moon_rpc_client_settings *settings) {
    assert(strlen(settings->endpoint) > 0 && settings->timeout_ns > 0);
    struct moon_rpc_client *client = environment->memory->resize(environment->memory, NULL, 0, sizeof *client);
    if (client)
        *client = (struct moon_rpc_client){environment, protocol};
    return client;
}

static void fake_drop_question(size_t at) {
    moon_arena_close(&fake.questions[at].arena);
    memmove(&fake.questions[at], &fake.questions[at + 1], (--fake.question_count - at) * sizeof *fake.questions);
}

void moon_rpc_client_close(struct moon_rpc_client *client) {
    if (!client)
        return;
    while (fake.question_count > 0)
        fake_drop_question(0);
    client->environment->memory->resize(client->environment->memory, client, sizeof *client, 0);
}

moon_ns moon_rpc_client_deadline(const struct moon_rpc_client *client) {
    (void)client;
    return MOON_NS_NEVER;
}

void moon_rpc_client_tick(struct moon_rpc_client *client) {
    (void)client;
}

int moon_rpc_client_ask(struct moon_rpc_client *client, struct moon_rpc_call *call, const char *name,
                        const struct moon_wire_value *arguments) {
    struct moon_memory *memory = client->environment->memory;
    struct fake_question *question = &fake.questions[fake.question_count];
    struct moon_text body;
    int status = MOON_ERR_MEMORY;
    if (fake.question_count == FAKE_OPEN_MAX)
        return MOON_ERR_MEMORY;
    *question = (struct fake_question){.call = call, .function = moon_wire_call_by_name(client->protocol, name)};
    assert(question->function && (!arguments || arguments->type == question->function->function->arguments));
    moon_arena_open(&question->arena, memory);
    moon_text_open(&body, memory);
    if (arguments)
        moon_wire_encode(arguments, true, true, &body);
    char *kept = body.failed ? NULL : moon_arena_copy(&question->arena, moon_text_value(&body), body.length);
    if (kept) /* a decoder's strings borrow the message */
        status = moon_wire_decode(&question->arena, question->function->function->arguments, true, kept, body.length,
                                  NULL, &question->arguments, NULL);
    moon_text_close(&body);
    assert(status == 0 || status == MOON_ERR_MEMORY);
    if (status)
        moon_arena_close(&question->arena);
    else
        fake.question_count++;
    return status;
}

/* Ends a question. sent: the request has left. */
static void fake_end_question(size_t at, moon_ns now_ns, bool sent, int status, unsigned rpc_error,
                              const struct moon_wire_value *result) {
    struct moon_rpc_call *call = fake.questions[at].call;
    assert(at < fake.question_count);
    fake_drop_question(at);
    if (sent)
        call->sent_ns = now_ns;
    call->done(call, status, rpc_error, result);
}

/* ---- transfers */

int moon_transfer_register(struct moon_transfer *transfer, void *memory, uint64_t address, size_t length, bool remote) {
    (void)transfer;
    assert(memory && address && length && remote);
    if (fake.refuse_register == 0)
        fake.registered++;
    return fake.refuse_register;
}

int moon_transfer_unregister(struct moon_transfer *transfer, uint64_t address) {
    (void)transfer;
    assert(address && fake.registered > 0);
    fake.registered--;
    return 0;
}

const char *moon_transfer_endpoint(const struct moon_transfer *transfer) {
    (void)transfer;
    return "10.0.0.9:15000";
}

const char *moon_transfer_protocol(const struct moon_transfer *transfer) {
    (void)transfer;
    return "tcp";
}

int moon_transfer_submit(struct moon_transfer *transfer, struct moon_transfer_job *job) {
    struct moon_memory *memory = transfer->environment->memory;
    assert(strlen(job->endpoint) > 0 && strlen(job->endpoint) < MOON_ENDPOINT_BYTES);
    if (fake.job_count == FAKE_OPEN_MAX)
        return MOON_ERR_MEMORY;
    char *asked = memory->resize(memory, NULL, 0, 1);
    if (!asked)
        return MOON_ERR_MEMORY;
    memory->resize(memory, asked, 1, 0);
    fake.jobs[fake.job_count++] = job;
    return 0;
}

static void fake_drop_job(struct moon_transfer_job *job) {
    size_t at = 0;
    while (at < fake.job_count && fake.jobs[at] != job)
        at++;
    assert(at < fake.job_count);
    memmove(&fake.jobs[at], &fake.jobs[at + 1], (--fake.job_count - at) * sizeof *fake.jobs);
}

void moon_transfer_cancel(struct moon_transfer *transfer, struct moon_transfer_job *job) {
    (void)transfer;
    fake_drop_job(job);
}

/* Ends a transfer; with code 0 its bytes are moved, as far as they lie in fake.remote. */
static void fake_end_job(size_t at, int code) {
    struct moon_transfer_job *job = fake.jobs[at];
    uint64_t offset = job->remote - FAKE_REMOTE;
    fake_drop_job(job);
    for (size_t i = 0; code == 0 && i < job->piece_count; i++) {
        size_t length = job->pieces[i].length;
        if (length == 0 || offset > FAKE_REMOTE_BYTES || length > FAKE_REMOTE_BYTES - offset)
            continue;
        if (job->write)
            memcpy(fake.remote + offset, job->pieces[i].data, length);
        else
            memcpy(job->pieces[i].data, fake.remote + offset, length);
        offset += length;
    }
    job->done(job, code);
}

#endif
