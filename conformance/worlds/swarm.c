/* SPDX-License-Identifier: Apache-2.0 */
/* Swarm: workers by fork, each with every n-th play; what they find comes through pipes. */
#include "conformance/worlds/swarm.h"

#include "conformance/io.h"
#include "conformance/process.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SILENT_MS = 300 * 1000, FAILURE_BYTES_MAX = 8192 };

/* What a worker writes for each play: before it (ended false), and after it with the words behind. */
struct report {
    uint64_t index;
    int32_t outcome;
    uint32_t ended, length;
};

struct worker {
    pid_t pid;
    int in;
    bool playing;
    uint64_t index; /* of the play under way, or the last one */
};

struct swarm {
    const struct moon_swarm_setting *setting;
    struct moon_swarm_result *result;
    uint64_t total;
    uint8_t *done; /* of each play */
    size_t done_count;
    int file; /* resume; -1: none */
    struct worker workers[MOON_SWARM_JOBS_MAX];
};

/* Play number `index`: all scenarios of the first seed, then of the next. */
static const struct moon_scenario *scenario_of(const struct moon_swarm_setting *setting, uint64_t index) {
    return &setting->scenarios[index % setting->scenario_count];
}
static uint64_t seed_of(const struct moon_swarm_setting *setting, uint64_t index) {
    return setting->first + index / setting->scenario_count;
}

/* ---- workers ---- */

static bool write_all(int fd, const void *bytes, size_t length) {
    const char *at = bytes;
    while (length > 0) {
        ssize_t put = write(fd, at, length);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        length -= (size_t)put;
    }
    return true;
}

static bool play_one(const struct moon_swarm_setting *setting, uint64_t index, int out) {
    struct moon_arena arena;
    struct moon_play play;
    struct moon_error error;
    struct moon_text words;
    struct moon_play_setting how = {
        .kind = &moon_world_sim, .seed = seed_of(setting, index), .with_faults = true, .strict = setting->strict};
    struct report report = {.index = index, .ended = 0};
    bool written = write_all(out, &report, sizeof report);
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&words, moon_memory_heap());
    int status = moon_play(&arena, scenario_of(setting, index), &how, &play, &error);
    report.outcome = status == 0 ? (int32_t)play.outcome : MOON_OUTCOME_ERROR;
    report.ended = 1;
    if (status != 0)
        moon_text_format(&words, "error %s seed %llu: %s\n", scenario_of(setting, index)->id,
                         (unsigned long long)how.seed, error.message);
    else if (moon_outcome_is_failure(play.outcome))
        setting->tell(scenario_of(setting, index), &play, &words);
    report.length = words.length < FAILURE_BYTES_MAX ? (uint32_t)words.length : FAILURE_BYTES_MAX;
    written =
        written && write_all(out, &report, sizeof report) && write_all(out, moon_text_value(&words), report.length);
    moon_play_close(&play);
    moon_text_close(&words);
    moon_arena_close(&arena);
    return written;
}

/* In the child: never returns. */
static void work(const struct swarm *swarm, size_t number, uint64_t from, int out, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    bool written = true;
    for (uint64_t i = from; i < swarm->total && written; i++)
        if (i % swarm->setting->jobs == number && !swarm->done[i])
            written = play_one(swarm->setting, i, out);
    _exit(written ? 0 : 1);
}

static int start(struct swarm *swarm, size_t number, uint64_t from, struct moon_error *error) {
    struct worker *worker = &swarm->workers[number];
    int ends[2];
    pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC) != 0)
        return moon_fail(error, MOON_ERR_IO, NULL, "cannot make a pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid == 0)
        work(swarm, number, from, ends[1], parent);
    close(ends[1]);
    *worker = (struct worker){.pid = pid, .in = ends[0], .index = from};
    if (pid > 0)
        return 0;
    close(ends[0]);
    worker->in = -1;
    return moon_fail(error, MOON_ERR_IO, NULL, "cannot start a process: %s", strerror(errno));
}

static void end(struct worker *worker, int *status) {
    if (worker->in < 0)
        return;
    kill(worker->pid, SIGKILL);
    waitpid(worker->pid, status, 0);
    close(worker->in);
    worker->in = -1;
}

/* ---- what they find ---- */

static void count(struct swarm *swarm, enum moon_outcome outcome) {
    struct moon_swarm_result *result = swarm->result;
    if (outcome == MOON_OUTCOME_PASS)
        result->passed++;
    else if (moon_outcome_is_failure(outcome))
        result->failed++;
    else
        result->skipped++;
}

static int note(struct swarm *swarm, uint64_t index, enum moon_outcome outcome, const char *words, size_t length,
                struct moon_error *error) {
    char line[256];
    bool first = !swarm->done[index];
    swarm->done[index] = 1;
    if (!first)
        return 0;
    count(swarm, outcome);
    swarm->done_count++;
    if (moon_outcome_is_failure(outcome) && swarm->result->failed <= MOON_SWARM_FAILURES_MAX)
        moon_text_bytes(&swarm->result->failures, words, length);
    if (swarm->setting->progress)
        swarm->setting->progress(swarm->done_count, swarm->total);
    int used = snprintf(line, sizeof line, "%s %llu %s\n", scenario_of(swarm->setting, index)->id,
                        (unsigned long long)seed_of(swarm->setting, index), moon_outcome_name(outcome));
    if (swarm->file >= 0 && !write_all(swarm->file, line, (size_t)used))
        return moon_fail(error, MOON_ERR_IO, swarm->setting->resume, "cannot write: %s", strerror(errno));
    return 0;
}

/* The worker has ended: well, or under the play that it had begun, which then is a failure; the rest goes on. */
static int bury(struct swarm *swarm, size_t number, bool silent, struct moon_error *error) {
    struct worker *worker = &swarm->workers[number];
    char words[512];
    int fate = 0;
    bool playing = worker->playing;
    uint64_t index = worker->index;
    if (silent)
        kill(worker->pid, SIGKILL);
    waitpid(worker->pid, &fate, 0);
    close(worker->in);
    worker->in = -1;
    if (!playing)
        return 0;
    int used = snprintf(words, sizeof words, "%s %s\n  seen       %s %d\n  reproduce  mooncheck sim %s --seed %llu\n",
                        silent ? "timeout" : "crash", scenario_of(swarm->setting, index)->id,
                        silent              ? "nothing for so many seconds:"
                        : WIFSIGNALED(fate) ? "the process died by signal"
                                            : "the process ended with status",
                        silent              ? SILENT_MS / 1000
                        : WIFSIGNALED(fate) ? WTERMSIG(fate)
                                            : WEXITSTATUS(fate),
                        scenario_of(swarm->setting, index)->source, (unsigned long long)seed_of(swarm->setting, index));
    size_t length = used < (int)sizeof words ? (size_t)used : sizeof words - 1;
    int status = note(swarm, index, silent ? MOON_OUTCOME_TIMEOUT : MOON_OUTCOME_CRASH, words, length, error);
    return status == 0 ? start(swarm, number, index + 1, error) : status;
}

/* Reads exactly so much; false at the end of the pipe. */
static bool read_all(int fd, void *bytes, size_t length) {
    char *at = bytes;
    while (length > 0) {
        ssize_t got = read(fd, at, length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += got;
        length -= (size_t)got;
    }
    return true;
}

static int listen_to(struct swarm *swarm, size_t number, struct moon_error *error) {
    struct worker *worker = &swarm->workers[number];
    struct report report;
    char words[FAILURE_BYTES_MAX];
    if (!read_all(worker->in, &report, sizeof report) || report.length > sizeof words ||
        !read_all(worker->in, words, report.length))
        return bury(swarm, number, false, error);
    worker->index = report.index;
    worker->playing = !report.ended;
    return report.ended ? note(swarm, report.index, (enum moon_outcome)report.outcome, words, report.length, error) : 0;
}

static int listen_to_all(struct swarm *swarm, struct moon_error *error) {
    int status = 0;
    for (size_t open = 1; open > 0 && status == 0;) {
        struct pollfd fds[MOON_SWARM_JOBS_MAX];
        open = 0;
        for (size_t i = 0; i < swarm->setting->jobs; i++) {
            fds[i] = (struct pollfd){.fd = swarm->workers[i].in, .events = POLLIN};
            open += swarm->workers[i].in >= 0;
        }
        int ready = open > 0 ? poll(fds, swarm->setting->jobs, SILENT_MS) : 0;
        for (size_t i = 0; i < swarm->setting->jobs && status == 0 && open > 0; i++)
            if (ready == 0 ? fds[i].fd >= 0 : fds[i].revents != 0)
                status = ready == 0 ? bury(swarm, i, true, error) : listen_to(swarm, i, error);
    }
    return status;
}

/* ---- what is done already ---- */

static int take_line(struct swarm *swarm, char *line, struct moon_error *error) {
    char *id = strtok(line, " "), *seed = strtok(NULL, " "), *outcome = strtok(NULL, " "), *end = NULL;
    unsigned long long number = seed ? strtoull(seed, &end, 10) : 0;
    if (!outcome || strtok(NULL, " ") || !end || *end)
        return moon_fail(error, MOON_ERR_SYNTAX, swarm->setting->resume,
                         "is no file of a swarm: its lines are SCENARIO SEED OUTCOME");
    const struct moon_swarm_setting *setting = swarm->setting;
    for (size_t i = 0; i < setting->scenario_count; i++) {
        if (strcmp(setting->scenarios[i].id, id) != 0 || number < setting->first || number > setting->last)
            continue;
        uint64_t index = (number - setting->first) * setting->scenario_count + i;
        bool failed = strcmp(outcome, "pass") != 0 && strcmp(outcome, "skip") != 0;
        if (swarm->done[index])
            continue;
        swarm->done[index] = 1;
        swarm->done_count++;
        swarm->result->resumed++;
        count(swarm, failed ? MOON_OUTCOME_FAIL : outcome[0] == 'p' ? MOON_OUTCOME_PASS : MOON_OUTCOME_SKIP);
        if (failed)
            moon_text_format(&swarm->result->failures, "%s %s\n  reproduce  mooncheck sim %s --seed %llu\n", outcome,
                             id, setting->scenarios[i].source, number);
    }
    return 0;
}

static int read_done(struct swarm *swarm, struct moon_error *error) {
    const char *path = swarm->setting->resume;
    struct moon_text content;
    int status = 0;
    if (!path)
        return 0;
    moon_text_open(&content, moon_memory_heap());
    if (access(path, F_OK) == 0)
        status = moon_io_read(path, MOON_JSON_INPUT_BYTES_MAX, &content, error);
    for (char *line = content.data, *end; status == 0 && line && (end = strchr(line, '\n')); line = end + 1) {
        *end = '\0';
        status = take_line(swarm, line, error);
    }
    moon_text_close(&content);
    if (status != 0)
        return status;
    swarm->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return swarm->file >= 0 ? 0 : moon_fail(error, MOON_ERR_IO, path, "cannot open: %s", strerror(errno));
}

int moon_swarm(const struct moon_swarm_setting *setting, struct moon_swarm_result *result, struct moon_error *error) {
    struct moon_memory *memory = moon_memory_heap();
    struct swarm swarm = {.setting = setting, .result = result, .file = -1};
    size_t capacity = 0;
    assert(setting->jobs >= 1 && setting->jobs <= MOON_SWARM_JOBS_MAX && setting->first <= setting->last);
    *result = (struct moon_swarm_result){.passed = 0};
    moon_text_open(&result->failures, memory);
    for (size_t i = 0; i < setting->jobs; i++)
        swarm.workers[i].in = -1;
    if (__builtin_mul_overflow(setting->last - setting->first + 1, setting->scenario_count, &swarm.total) ||
        swarm.total > SIZE_MAX / 4)
        return moon_fail(error, MOON_ERR_LIMIT, NULL, "too many seeds");
    swarm.done = moon_memory_grow_zeroed(memory, NULL, &capacity, (size_t)swarm.total, 1, 1);
    if (!swarm.done)
        return moon_no_memory(error);
    int status = read_done(&swarm, error);
    for (size_t i = 0; i < setting->jobs && status == 0; i++)
        status = start(&swarm, i, 0, error);
    if (status == 0)
        status = listen_to_all(&swarm, error);
    for (size_t i = 0; i < setting->jobs; i++)
        end(&swarm.workers[i], NULL);
    if (swarm.file >= 0)
        close(swarm.file);
    memory->resize(memory, swarm.done, capacity, 0);
    return status == 0 && result->failures.failed ? moon_no_memory(error) : status;
}

void moon_swarm_close(struct moon_swarm_result *result) {
    moon_text_close(&result->failures);
}
