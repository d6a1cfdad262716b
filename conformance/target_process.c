/* SPDX-License-Identifier: Apache-2.0 */
/* The harness's side of the adapter protocol: one program under test, its messages checked, its deaths survived. */
#include "conformance/target_process.h"

#include <assert.h>
#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GRACE_MS = 2000, QUOTED_BYTES = 120 };

static uint64_t deadline_after(int64_t timeout_ms) {
    return moon_now_ns() + (uint64_t)timeout_ms * 1000000U;
}

static void send_json(struct moon_adapter *adapter, const struct moon_json *message) {
    struct moon_text line;
    moon_text_open(&line, moon_memory_heap());
    moon_json_write(message, MOON_JSON_COMPACT, &line);
    moon_text_char(&line, '\n');
    moon_process_send(&adapter->process, moon_text_value(&line), line.length);
    moon_text_close(&line);
}

/* The end of the process in words, with the last of what it said on stderr. */
static const char *obituary(struct moon_adapter *adapter, struct moon_arena *arena, const char *what) {
    const char *log = moon_process_log(&adapter->process);
    size_t length = strlen(log);
    while (length > 0 && (log[length - 1] == '\n' || log[length - 1] == ' '))
        length--;
    const char *start = length > 600 ? log + length - 600 : log;
    char *text = moon_arena_format(arena, "%s (%s)%s%.*s", what, adapter->process.fate,
                                   length > 0 ? "; its stderr ends: " : "", (int)(log + length - start), start);
    for (char *c = text; c && *c; c++)
        if (*c == '\n')
            *c = ' ';
    return text;
}

static void end_process(struct moon_adapter *adapter, int grace_ms) {
    if (adapter->running)
        moon_process_end(&adapter->process, grace_ms);
    adapter->running = false;
}

/* `to` names what the message answers. */
static int read_message(struct moon_arena *arena, const char *to, const char *line, size_t length,
                        struct moon_json **message, struct moon_error *error) {
    struct moon_error why;
    if (moon_json_read(arena, "line", line, length, MOON_JSON_STRICT, message, &why) == 0)
        return 0;
    return moon_fail(error, MOON_ERR_SYNTAX, NULL,
                     "the adapter's fault: its answer to %s is no JSON: %s: %s; it begins %.*s", to, why.where,
                     why.message, length > QUOTED_BYTES ? QUOTED_BYTES : (int)length, line);
}

/* Checks a message against a definition of the protocol. */
static int check_message(struct moon_adapter *adapter, const char *definition, const char *to,
                         const struct moon_json *message, struct moon_error *error) {
    struct moon_error why;
    if (moon_schema_check(&adapter->protocol, definition, "line", message, &why) == 0)
        return 0;
    return moon_fail(error, MOON_ERR_SCHEMA, NULL, "the adapter's fault: its answer to %s, %s: %s", to, why.where,
                     why.message);
}

/* One message sent and its answer awaited, with nothing else in flight. */
static int exchange(struct moon_adapter *adapter, struct moon_arena *arena, const struct moon_json *question,
                    const char *name, const char *definition, int64_t timeout_ms, struct moon_json **message,
                    struct moon_error *error) {
    char *line = NULL, to[32];
    size_t length = 0;
    snprintf(to, sizeof to, "\"%s\"", name);
    send_json(adapter, question);
    enum moon_process_event event = moon_process_wait(&adapter->process, deadline_after(timeout_ms), &line, &length);
    if (event == MOON_PROCESS_LINE) {
        int status = read_message(arena, to, line, length, message, error);
        return status == 0 ? check_message(adapter, definition, to, *message, error) : status;
    }
    end_process(adapter, event == MOON_PROCESS_END ? GRACE_MS : 0);
    const char *what = event == MOON_PROCESS_END      ? "the adapter ended instead of answering"
                       : event == MOON_PROCESS_SILENT ? "the adapter did not answer in time"
                                                      : "the adapter's line is too long in its answer to";
    const char *text = obituary(adapter, arena, moon_arena_format(arena, "%s %s", what, to));
    return moon_fail(error, MOON_ERR_IO, NULL, "%s", text ? text : what);
}

/* {"do":NAME,...} */
static struct moon_json *order(struct moon_arena *arena, const char *name) {
    struct moon_json *message = moon_json_object(arena);
    moon_json_set(arena, message, "do", moon_json_string(arena, name));
    return message;
}

static int make_folder(struct moon_adapter *adapter, struct moon_error *error) {
    if (adapter->folder[0])
        return 0;
    const char *base = getenv("TMPDIR");
    if (!base || strlen(base) > sizeof adapter->folder - 24)
        base = "/tmp";
    snprintf(adapter->folder, sizeof adapter->folder, "%s/mooncheck-XXXXXX", base);
    if (mkdtemp(adapter->folder)) {
        moon_process_folder(NULL, adapter->folder);
        return 0;
    }
    int status = moon_fail(error, MOON_ERR_IO, adapter->folder, "cannot make a temporary folder: %s", strerror(errno));
    adapter->folder[0] = '\0';
    return status;
}

static void remove_folder(struct moon_adapter *adapter) {
    char *roots[] = {adapter->folder, NULL};
    FTS *tree = adapter->folder[0] ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
    if (!tree)
        return;
    for (FTSENT *entry = fts_read(tree); entry; entry = fts_read(tree)) {
        if (entry->fts_info == FTS_DP)
            rmdir(entry->fts_accpath);
        else if (entry->fts_info != FTS_D)
            unlink(entry->fts_accpath);
    }
    fts_close(tree);
    moon_process_folder(adapter->folder, NULL);
    adapter->folder[0] = '\0';
}

static int start(struct moon_adapter *adapter, struct moon_error *error) {
    struct moon_process_setting setting = {adapter->setting.folder, adapter->setting.environment};
    struct moon_json *message = NULL;
    int status = make_folder(adapter, error);
    if (status == 0)
        status = moon_process_start(&adapter->process, adapter->command, &setting, error);
    if (status != 0)
        return status;
    adapter->running = true;
    struct moon_json *question = order(&adapter->arena, "start");
    moon_json_set(&adapter->arena, question, "protocol", moon_json_int(&adapter->arena, 1));
    moon_json_set(&adapter->arena, question, "folder", moon_json_string(&adapter->arena, adapter->folder));
    if (moon_json_broken(question))
        return moon_no_memory(error);
    int64_t timeout_ms = adapter->setting.case_timeout_ms;
    if (timeout_ms < MOON_TARGET_START_TIMEOUT_MS_MIN)
        timeout_ms = MOON_TARGET_START_TIMEOUT_MS_MIN;
    status = exchange(adapter, &adapter->arena, question, "start", "start_answer", timeout_ms, &message, error);
    if (status != 0)
        end_process(adapter, 0);
    else if (!adapter->about)
        adapter->about = moon_json_member(message, "ok");
    return status;
}

static int open_schemas(struct moon_adapter *adapter, struct moon_error *error) {
    size_t count = 0;
    while (moon_suites()[count])
        count++;
    int status = moon_schema_open(&adapter->protocol, &adapter->arena, "protocol", error);
    adapter->suite_schemas = moon_arena_array(&adapter->arena, count, sizeof *adapter->suite_schemas);
    if (status == 0 && !adapter->suite_schemas)
        status = moon_no_memory(error);
    for (size_t i = 0; i < count && status == 0; i++)
        status = moon_schema_open(&adapter->suite_schemas[i], &adapter->arena, moon_suites()[i]->name, error);
    return status;
}

int moon_adapter_open(struct moon_adapter *adapter, const char *command, const struct moon_target_setting *setting,
                      struct moon_error *error) {
    memset(adapter, 0, sizeof *adapter);
    adapter->command = command;
    adapter->setting = *setting;
    if (adapter->setting.case_timeout_ms == 0)
        adapter->setting.case_timeout_ms = MOON_TARGET_CASE_TIMEOUT_MS_DEFAULT;
    if (adapter->setting.window == 0)
        adapter->setting.window = MOON_TARGET_WINDOW_DEFAULT;
    assert(adapter->setting.window <= MOON_TARGET_WINDOW_MAX);
    moon_arena_open(&adapter->arena, moon_memory_heap());
    int status = open_schemas(adapter, error);
    return status == 0 ? start(adapter, error) : status;
}

void moon_adapter_close(struct moon_adapter *adapter) {
    struct moon_error ignored;
    if (adapter->running)
        moon_adapter_stop(adapter, &ignored);
    remove_folder(adapter);
    moon_schema_close(&adapter->protocol);
    for (size_t i = 0; adapter->suite_schemas && moon_suites()[i]; i++)
        moon_schema_close(&adapter->suite_schemas[i]);
    moon_arena_close(&adapter->arena);
}

int moon_adapter_stop(struct moon_adapter *adapter, struct moon_error *error) {
    struct moon_json *message = NULL;
    struct moon_json *question = order(&adapter->arena, "stop");
    if (moon_json_broken(question))
        return moon_no_memory(error);
    if (!adapter->running)
        return moon_fail(error, MOON_ERR_IO, NULL, "the adapter does not run any more");
    int status = exchange(adapter, &adapter->arena, question, "stop", "stop_answer", GRACE_MS, &message, error);
    end_process(adapter, GRACE_MS);
    if (status == 0 && strcmp(adapter->process.fate, "exit status 0") != 0)
        status = moon_fail(error, MOON_ERR_IO, NULL, "the adapter answered \"stop\" but then did not end well: %s",
                           adapter->process.fate);
    return status;
}

/* ---- cases */

/* Cases that were sent and not yet answered. */
struct flight {
    struct moon_question *questions;
    size_t seqs[MOON_TARGET_WINDOW_MAX]; /* indexes into questions; the protocol's seq is index + 1 */
    size_t count;
    uint64_t progress_ns; /* when the last answer came, or the first question went out */
};

static void send_case(struct moon_adapter *adapter, const struct moon_question *question, size_t seq) {
    struct moon_arena arena;
    moon_arena_open(&arena, moon_memory_heap());
    struct moon_json *message = order(&arena, "case");
    moon_json_set(&arena, message, "seq", moon_json_uint(&arena, seq + 1));
    moon_json_set(&arena, message, "suite", moon_json_string(&arena, question->suite->name));
    moon_json_set(&arena, message, "profile", moon_json_string(&arena, question->profile->name));
    moon_json_set(&arena, message, "given", moon_json_clone(&arena, question->given));
    send_json(adapter, message);
    moon_arena_close(&arena);
}

static void settle(struct moon_question *question, enum moon_reply reply, const char *reason, uint64_t since_ns) {
    question->reply = reply;
    question->reason = reason ? reason : "out of memory";
    question->duration_ns = moon_now_ns() - since_ns;
}

static struct moon_schema *schema_of(struct moon_adapter *adapter, const struct moon_suite *suite) {
    size_t i = 0;
    while (moon_suites()[i] != suite)
        i++;
    return &adapter->suite_schemas[i];
}

/* Takes a checked message apart into the question it answers. */
static void take_answer(struct moon_adapter *adapter, struct moon_arena *arena, struct moon_question *question,
                        const struct moon_json *message, uint64_t since_ns) {
    const struct moon_json *result = moon_json_member(message, "result"), *skip = moon_json_member(message, "skip"),
                           *fault = moon_json_member(message, "error");
    struct moon_error why;
    if (!!result + !!skip + !!fault != 1) {
        settle(question, MOON_REPLY_ERROR,
               "the adapter's fault: an answer must have exactly one of \"result\", \"skip\" and \"error\"", since_ns);
    } else if (skip) {
        settle(question, MOON_REPLY_SKIP, skip->bytes, since_ns);
    } else if (fault) {
        settle(question, MOON_REPLY_ERROR, moon_arena_format(arena, "the adapter says: %.*s", 800, fault->bytes),
               since_ns);
    } else if (moon_schema_check(schema_of(adapter, question->suite), "expect", "line", result, &why) != 0) {
        settle(question, MOON_REPLY_ERROR,
               moon_arena_format(arena, "the adapter's fault: %s: %s", why.where, why.message), since_ns);
    } else {
        settle(question, MOON_REPLY_RESULT, "", since_ns);
        question->answer = result;
    }
}

/* Place in the flight of the case that a message answers; flight->count when it answers none. */
static size_t place_of(const struct flight *flight, const struct moon_json *message) {
    struct moon_error ignored;
    int64_t seq = 0;
    if (!moon_json_is(message, MOON_JSON_OBJECT) ||
        moon_json_get_int("line", message, "seq", false, 1, INT64_MAX, &seq, &ignored) != 0)
        return flight->count;
    size_t i = 0;
    while (i < flight->count && (int64_t)flight->seqs[i] + 1 != seq)
        i++;
    return i;
}

/* Reads an answer and lands the flight that it belongs to. Fails, with the adapter's fault, when it belongs to none. */
static int land(struct moon_adapter *adapter, struct moon_arena *arena, struct flight *flight, const char *line,
                size_t length, struct moon_error *error) {
    struct moon_json *message = NULL;
    if (read_message(arena, "a case", line, length, &message, error) != 0)
        return error->status;
    size_t i = place_of(flight, message);
    int status = check_message(adapter, "case_answer", "a case", message, error);
    if (i == flight->count && status != 0)
        return status;
    if (i == flight->count)
        return moon_fail(error, MOON_ERR_SCHEMA, NULL,
                         "the adapter's fault: it answers seq %s, which is not waiting for an answer",
                         moon_json_member(message, "seq")->bytes);
    struct moon_question *question = &flight->questions[flight->seqs[i]];
    if (status != 0)
        settle(question, MOON_REPLY_ERROR, moon_arena_format(arena, "%s", error->message), flight->progress_ns);
    else
        take_answer(adapter, arena, question, message, flight->progress_ns);
    flight->progress_ns = moon_now_ns();
    memmove(&flight->seqs[i], &flight->seqs[i + 1], (flight->count - i - 1) * sizeof flight->seqs[0]);
    flight->count--;
    adapter->deaths = 0;
    return 0;
}

/* Why a conversation broke off. */
struct breakage {
    enum moon_reply reply;
    const char *reason;
};

/* Asks questions[*next .. count) until all are answered or the conversation breaks. Returns false when it broke: then
 * the flight holds what was not answered, and *next the first that was not sent. */
static bool converse(struct moon_adapter *adapter, struct moon_arena *arena, struct flight *flight, size_t *next,
                     size_t count, size_t window, struct breakage *breakage) {
    struct moon_error error;
    flight->progress_ns = moon_now_ns();
    while (*next < count || flight->count > 0) {
        for (; *next < count && flight->count < window; (*next)++) {
            send_case(adapter, &flight->questions[*next], *next);
            flight->seqs[flight->count++] = *next;
        }
        char *line = NULL;
        size_t length = 0;
        uint64_t deadline_ns = flight->progress_ns + (uint64_t)adapter->setting.case_timeout_ms * 1000000U;
        enum moon_process_event event = moon_process_wait(&adapter->process, deadline_ns, &line, &length);
        if (event == MOON_PROCESS_LINE && land(adapter, arena, flight, line, length, &error) == 0)
            continue;
        end_process(adapter, event == MOON_PROCESS_END ? GRACE_MS : 0);
        adapter->deaths++;
        if (event == MOON_PROCESS_LINE)
            *breakage = (struct breakage){MOON_REPLY_ERROR, moon_arena_format(arena, "%s", error.message)};
        else if (event == MOON_PROCESS_END)
            *breakage = (struct breakage){MOON_REPLY_CRASH, obituary(adapter, arena, "the adapter died")};
        else if (event == MOON_PROCESS_SILENT)
            *breakage = (struct breakage){MOON_REPLY_TIMEOUT,
                                          obituary(adapter, arena,
                                                   moon_arena_format(arena, "no answer within %lld ms",
                                                                     (long long)adapter->setting.case_timeout_ms))};
        else
            *breakage = (struct breakage){MOON_REPLY_ERROR, "the adapter's fault: its line is longer than 64 MiB"};
        return false;
    }
    return true;
}

/* Makes sure that a process runs. False, with the reason, when it can't be had any more. */
static bool ready(struct moon_adapter *adapter, struct moon_arena *arena, const char **reason) {
    struct moon_error error;
    if (adapter->running)
        return true;
    if (adapter->deaths >= MOON_TARGET_DEATHS_MAX) {
        *reason = moon_arena_format(arena, "not asked: the adapter died %d times in a row", MOON_TARGET_DEATHS_MAX);
        return false;
    }
    if (start(adapter, &error) == 0)
        return true;
    adapter->deaths++;
    *reason = moon_arena_format(arena, "the adapter does not start again: %s", error.message);
    return false;
}

/* Asks one question with nothing else in flight, so that what breaks is its own doing. */
static void ask_alone(struct moon_adapter *adapter, struct moon_arena *arena, struct moon_question *questions,
                      size_t index) {
    struct flight flight = {.questions = questions};
    struct breakage breakage;
    const char *reason = NULL;
    size_t next = index;
    uint64_t since_ns = moon_now_ns();
    if (!ready(adapter, arena, &reason))
        settle(&questions[index], MOON_REPLY_ERROR, reason, since_ns);
    else if (!converse(adapter, arena, &flight, &next, index + 1, 1, &breakage))
        settle(&questions[index], breakage.reply, breakage.reason, since_ns);
}

int moon_adapter_ask(struct moon_adapter *adapter, struct moon_arena *arena, struct moon_question questions[],
                     size_t count, struct moon_error *error) {
    size_t next = 0;
    while (next < count) {
        struct flight flight = {.questions = questions};
        struct breakage breakage = {MOON_REPLY_ERROR, NULL};
        if (!ready(adapter, arena, &breakage.reason)) {
            settle(&questions[next++], MOON_REPLY_ERROR, breakage.reason, moon_now_ns());
            continue;
        }
        if (converse(adapter, arena, &flight, &next, count, (size_t)adapter->setting.window, &breakage))
            break;
        if (flight.count == 1)
            settle(&questions[flight.seqs[0]], breakage.reply, breakage.reason, flight.progress_ns);
        for (size_t i = 0; flight.count > 1 && i < flight.count; i++)
            ask_alone(adapter, arena, questions, flight.seqs[i]);
    }
    for (size_t i = 0; i < count; i++)
        if (questions[i].reply != MOON_REPLY_RESULT && !questions[i].reason)
            return moon_no_memory(error);
    return 0;
}

/* True if the line is an object with this seq. */
static bool carries_seq(const char *line, size_t length, int64_t seq) {
    struct moon_arena arena;
    struct moon_json *message = NULL;
    struct moon_error ignored;
    int64_t found = 0;
    moon_arena_open(&arena, moon_memory_heap());
    bool carries = moon_json_read(&arena, "line", line, length, MOON_JSON_STRICT, &message, &ignored) == 0 &&
                   moon_json_is(message, MOON_JSON_OBJECT) &&
                   moon_json_get_int("line", message, "seq", true, 0, INT64_MAX, &found, &ignored) == 0 && found == seq;
    moon_arena_close(&arena);
    return carries;
}

const char *moon_adapter_raw(struct moon_adapter *adapter, struct moon_arena *arena, const char *text, int64_t seq,
                             const char **reason) {
    enum { LINES_MAX = 5 };
    struct moon_error error;
    char *line = NULL;
    size_t length = 0;
    *reason = NULL;
    if (!adapter->running && start(adapter, &error) != 0) {
        *reason = moon_arena_format(arena, "%s", error.message);
        return NULL;
    }
    moon_process_send(&adapter->process, text, strlen(text));
    moon_process_send(&adapter->process, "\n", 1);
    uint64_t deadline_ns = deadline_after(adapter->setting.case_timeout_ms);
    enum moon_process_event event = MOON_PROCESS_LINE;
    for (int i = 0; i < LINES_MAX && event == MOON_PROCESS_LINE; i++) {
        event = moon_process_wait(&adapter->process, deadline_ns, &line, &length);
        if (event == MOON_PROCESS_LINE && carries_seq(line, length, seq))
            return moon_arena_copy(arena, line, length);
    }
    end_process(adapter, event == MOON_PROCESS_END ? GRACE_MS : 0);
    *reason = obituary(adapter, arena,
                       event == MOON_PROCESS_END      ? "the adapter ended"
                       : event == MOON_PROCESS_SILENT ? "no answer with the seq of the question in time"
                                                      : "no answer with the seq of the question among the next lines");
    return NULL;
}
