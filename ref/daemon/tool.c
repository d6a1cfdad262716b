/* SPDX-License-Identifier: Apache-2.0 */
/* The shell tool: sets a client up, does one thing after the other, ends. */
#include "ref/daemon/tool.h"

#include "ref/daemon/command.h"
#include "ref/daemon/store_value.h"
#include "ref/wire/status.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static const char PROGRAM[] = "mooncheck-client";

/* One operation, waited for. */
struct wait {
    struct moon_client_operation operation;
    struct moon_daemon *daemon;
    bool ended;
};

static void ended(struct moon_client_operation *operation) {
    struct wait *wait = (struct wait *)operation;
    wait->ended = true;
    uv_stop(&wait->daemon->loop);
}

/* Submits and runs the loop until it has ended. False: the process is asked to end, or memory was refused. */
static bool finish(struct moon_session *session, struct wait *wait) {
    wait->operation.done = ended;
    if (moon_session_submit(session, &wait->operation) != 0) {
        moon_daemon_complain(PROGRAM, "out of memory");
        return false;
    }
    while (!wait->ended && !wait->daemon->ending)
        uv_run(&wait->daemon->loop, UV_RUN_DEFAULT);
    return wait->ended;
}

/* A code of the store, said: a negative one is a refusal. */
static int judge(const char *what, const char *key, int64_t code) {
    if (code >= 0)
        return MOON_DAEMON_DONE;
    fprintf(stderr, "%s: %s%s%s: %s (%" PRId64 ")\n", PROGRAM, what, key[0] ? " " : "", key,
            moon_wire_status_name(code), code);
    return MOON_DAEMON_REFUSED;
}

/* A client that is set up; NULL: it was said why not, in *status. */
static struct moon_session *begin(struct moon_daemon *daemon, const struct moon_session_settings *settings,
                                  int *status) {
    struct moon_error error;
    struct moon_session *session = moon_session_open(daemon, settings, &error);
    if (!session) {
        *status = moon_daemon_fail(PROGRAM, &error);
        return NULL;
    }
    struct wait setup = {.operation = {.kind = MOON_CLIENT_SETUP}, .daemon = daemon};
    *status = finish(session, &setup) ? judge("setup at", settings->master, setup.operation.result) : MOON_DAEMON_BAD;
    if (*status == MOON_DAEMON_DONE)
        return session;
    moon_session_close(session);
    return NULL;
}

/* ---- files */

static int complain_file(const char *path, const char *what) {
    return moon_daemon_complain(PROGRAM, "%s: cannot %s: %s", path ? path : "-", what, strerror(errno));
}

static bool is_standard(const char *path) {
    return !path || strcmp(path, "-") == 0;
}

/* All of a file or of standard input. */
static int read_all(const char *path, struct moon_text *out) {
    char bytes[64 * 1024];
    int status = MOON_DAEMON_DONE;
    int file = is_standard(path) ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return complain_file(path, "open");
    for (ssize_t count = 1; count != 0 && status == MOON_DAEMON_DONE;) {
        count = read(file, bytes, sizeof bytes);
        if (count < 0 && errno != EINTR)
            status = complain_file(path, "read");
        if (count > 0)
            moon_text_bytes(out, bytes, (size_t)count);
        if (out->length > MOON_VALUE_CALL_BYTES_MAX)
            status = moon_daemon_complain(PROGRAM, "%s: over %zu bytes", path ? path : "-", MOON_VALUE_CALL_BYTES_MAX);
    }
    if (file != STDIN_FILENO)
        close(file);
    if (status == MOON_DAEMON_DONE && out->failed)
        status = moon_daemon_complain(PROGRAM, "out of memory");
    return status;
}

static int write_all(const char *path, const char *bytes, size_t length) {
    int file = is_standard(path) ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int status = MOON_DAEMON_DONE;
    if (file < 0)
        return complain_file(path, "open");
    while (length > 0 && status == MOON_DAEMON_DONE) {
        ssize_t count = write(file, bytes, length);
        if (count < 0 && errno != EINTR)
            status = complain_file(path, "write");
        bytes += count > 0 ? count : 0;
        length -= count > 0 ? (size_t)count : 0;
    }
    if (file != STDOUT_FILENO && close(file) != 0 && status == MOON_DAEMON_DONE)
        status = complain_file(path, "write");
    return status;
}

/* ---- operations */

/* One operation on one key. Returns the exit status; the code is in item->result. */
static int do_one(struct moon_session *session, struct moon_daemon *daemon, enum moon_client_do kind, bool force,
                  struct moon_client_item *item, const char *what) {
    struct wait wait = {.operation = {.kind = kind, .force = force, .items = item, .item_count = 1}, .daemon = daemon};
    return finish(session, &wait) ? judge(what, item->key.data, item->result) : MOON_DAEMON_BAD;
}

int moon_tool_put(struct moon_daemon *daemon, const struct moon_session_settings *settings, const char *key,
                  const char *path) {
    struct moon_text value;
    struct moon_session *session = NULL;
    moon_text_open(&value, moon_memory_heap());
    int status = read_all(path, &value);
    if (status == MOON_DAEMON_DONE)
        session = begin(daemon, settings, &status);
    if (session) {
        struct moon_piece piece = {value.data, value.length};
        struct moon_client_item item = {.key = moon_bytes_of(key), .pieces = &piece, .piece_count = 1};
        status = do_one(session, daemon, MOON_CLIENT_PUT, false, &item, "put");
        moon_session_close(session);
    }
    moon_text_close(&value);
    return status;
}

/* Asks for the size, then for the bytes. */
static int fetch(struct moon_session *session, struct moon_daemon *daemon, const char *key, struct moon_text *value) {
    struct moon_client_item item = {.key = moon_bytes_of(key)};
    int status = do_one(session, daemon, MOON_CLIENT_SIZE, false, &item, "get");
    if (status != MOON_DAEMON_DONE)
        return status;
    if ((uint64_t)item.result > MOON_VALUE_CALL_BYTES_MAX)
        return moon_daemon_complain(PROGRAM, "get %s: over %zu bytes", key, MOON_VALUE_CALL_BYTES_MAX);
    moon_text_repeat(value, '\0', (size_t)item.result);
    if (value->failed)
        return moon_daemon_complain(PROGRAM, "out of memory");
    struct moon_piece piece = {value->data, value->length};
    item = (struct moon_client_item){.key = moon_bytes_of(key), .pieces = &piece, .piece_count = 1};
    status = do_one(session, daemon, MOON_CLIENT_GET, false, &item, "get");
    if (status == MOON_DAEMON_DONE)
        value->length = (size_t)item.result;
    return status;
}

int moon_tool_get(struct moon_daemon *daemon, const struct moon_session_settings *settings, const char *key,
                  const char *path) {
    struct moon_text value;
    int status;
    struct moon_session *session = begin(daemon, settings, &status);
    if (!session)
        return status;
    moon_text_open(&value, moon_memory_heap());
    status = fetch(session, daemon, key, &value);
    if (status == MOON_DAEMON_DONE)
        status = write_all(path, moon_text_value(&value), value.length);
    moon_text_close(&value);
    moon_session_close(session);
    return status;
}

/* The same for each key, also behind one that was refused. */
static int do_each(struct moon_daemon *daemon, const struct moon_session_settings *settings, const char *const keys[],
                   int count, enum moon_client_do kind, bool force) {
    int status, worst = MOON_DAEMON_DONE;
    struct moon_session *session = begin(daemon, settings, &status);
    if (!session)
        return status;
    for (int i = 0; i < count && !daemon->ending; i++) {
        struct moon_client_item item = {.key = moon_bytes_of(keys[i])};
        status = do_one(session, daemon, kind, force, &item, kind == MOON_CLIENT_EXIST ? "exist" : "rm");
        if (status == MOON_DAEMON_DONE && kind == MOON_CLIENT_EXIST) {
            printf("%s %s\n", item.result ? "yes" : "no", keys[i]);
            status = item.result ? MOON_DAEMON_DONE : MOON_DAEMON_REFUSED;
        }
        worst = status > worst ? status : worst;
    }
    moon_session_close(session);
    if (fflush(stdout) != 0)
        return moon_daemon_complain(PROGRAM, "standard output cannot be written: %s", strerror(errno));
    return worst;
}

int moon_tool_exist(struct moon_daemon *daemon, const struct moon_session_settings *settings, const char *const keys[],
                    int count) {
    return do_each(daemon, settings, keys, count, MOON_CLIENT_EXIST, false);
}

int moon_tool_remove(struct moon_daemon *daemon, const struct moon_session_settings *settings, const char *const keys[],
                     int count, bool force) {
    return do_each(daemon, settings, keys, count, MOON_CLIENT_REMOVE, force);
}

/* ---- owner */

/* The memory is given back first. */
static void stop_owning(void *context) {
    struct moon_daemon *daemon = context;
    uv_stop(&daemon->loop);
}

int moon_tool_own(struct moon_daemon *daemon, const struct moon_session_settings *settings) {
    int status;
    struct moon_session *session = begin(daemon, settings, &status);
    if (!session)
        return status;
    daemon->stop = stop_owning;
    daemon->context = daemon;
    printf("%s: lending %" PRId64 " bytes as %s at %s\n", PROGRAM, settings->segment_bytes,
           moon_session_hostname(session), moon_session_endpoint(session));
    fflush(stdout);
    moon_control_ready(&daemon->control, moon_session_endpoint(session));
    while (!daemon->asked && !daemon->ending)
        uv_run(&daemon->loop, UV_RUN_ONCE);
    daemon->stop = NULL;
    status = daemon->status;
    if (!daemon->ending) {
        struct wait leave = {.operation = {.kind = MOON_CLIENT_UNMOUNT}, .daemon = daemon};
        status = finish(session, &leave) ? MOON_DAEMON_DONE : MOON_DAEMON_BAD;
    }
    moon_session_close(session);
    return status;
}
