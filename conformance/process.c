/* SPDX-License-Identifier: Apache-2.0 */
/* A child process that is talked to line by line, in a process group of its own, and that never outlives its owner. */
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
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024 };

/* Process groups that run now, for the signal handler; 0 is a free place. */
static volatile pid_t live[MOON_PROCESS_LIVE_MAX];
/* Temporary folders of theirs, likewise; NULL is a free place. */
static const char *volatile folders[MOON_PROCESS_LIVE_MAX];

uint64_t moon_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

static void interrupted(int signal_number) {
    for (size_t i = 0; i < MOON_PROCESS_LIVE_MAX; i++)
        if (live[i] > 0)
            kill(-live[i], SIGKILL);
    for (size_t i = 0; i < MOON_PROCESS_LIVE_MAX; i++)
        if (folders[i])
            rmdir(folders[i]);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void catch_signals(void) {
    static bool done;
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    if (done)
        return;
    done = true;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct sigaction action = {.sa_handler = interrupted}, old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            sigaction(numbers[i], &action, NULL);
    }
}

static bool remember(pid_t old, pid_t new) {
    for (size_t i = 0; i < MOON_PROCESS_LIVE_MAX; i++) {
        if (live[i] == old) {
            live[i] = new;
            return true;
        }
    }
    return false;
}

void moon_process_folder(const char *old, const char *new) {
    for (size_t i = 0; i < MOON_PROCESS_LIVE_MAX; i++) {
        if (folders[i] == old) {
            folders[i] = new;
            return;
        }
    }
}

/* In the child, after fork: never returns. */
static void become(const char *command, const struct moon_process_setting *setting, const int ends[3], pid_t parent) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    static const int defaults[] = {SIGPIPE, SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof defaults / sizeof *defaults; i++)
        signal(defaults[i], SIG_DFL);
    for (int i = 0; i < 3; i++)
        if (dup2(ends[i], i) < 0)
            _exit(127);
    if (setting && setting->folder && chdir(setting->folder) != 0) {
        perror(setting->folder);
        _exit(127);
    }
    for (const char *const *one = setting ? setting->environment : NULL; one && *one; one++) {
        char *copy = strdup(*one);
        if (!copy || (strchr(copy, '=') ? putenv(copy) : unsetenv(copy)) != 0)
            _exit(127);
    }
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

static void close_pair(int pair[2]) {
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

int moon_process_start(struct moon_process *process, const char *command, const struct moon_process_setting *setting,
                       struct moon_error *error) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1};
    memset(process, 0, sizeof *process);
    process->in = process->out = process->err = -1;
    moon_text_open(&process->outgoing, moon_memory_heap());
    moon_text_open(&process->incoming, moon_memory_heap());
    catch_signals();
    pid_t parent = getpid(), pid = -1;
    if (pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 && remember(0, -1))
        pid = fork();
    if (pid == 0)
        become(command, setting, (const int[]){in[0], out[1], err[1]}, parent);
    if (pid < 0) {
        int status = moon_fail(error, MOON_ERR_IO, NULL, "cannot start a process: %s", strerror(errno));
        remember(-1, 0);
        close_pair(in);
        close_pair(out);
        close_pair(err);
        return status;
    }
    setpgid(pid, pid); /* both sides do it: whoever comes first */
    remember(-1, pid);
    process->pid = pid;
    process->in = in[1];
    process->out = out[0];
    process->err = err[0];
    close(in[0]);
    close(out[1]);
    close(err[1]);
    const int ours[] = {process->in, process->out, process->err};
    for (int i = 0; i < 3; i++)
        fcntl(ours[i], F_SETFL, O_NONBLOCK);
    return 0;
}

void moon_process_send(struct moon_process *process, const void *bytes, size_t length) {
    if (process->outgoing_offset == process->outgoing.length) {
        moon_text_clear(&process->outgoing);
        process->outgoing_offset = 0;
    }
    moon_text_bytes(&process->outgoing, bytes, length);
}

static void close_input(struct moon_process *process) {
    if (process->in >= 0)
        close(process->in);
    process->in = -1;
}

static void write_some(struct moon_process *process) {
    struct moon_text *queue = &process->outgoing;
    if (queue->length == process->outgoing_offset)
        return;
    ssize_t put = write(process->in, queue->data + process->outgoing_offset, queue->length - process->outgoing_offset);
    if (put > 0)
        process->outgoing_offset += (size_t)put;
    else if (put < 0 && errno != EAGAIN && errno != EINTR)
        close_input(process); /* it reads no more; its output will tell why */
}

static void keep_log(struct moon_process *process, const char *bytes, size_t length) {
    size_t room = sizeof process->log - 1;
    if (length > room) {
        bytes += length - room;
        length = room;
    }
    size_t over = process->log_length + length > room ? process->log_length + length - room : 0;
    memmove(process->log, process->log + over, process->log_length - over);
    memcpy(process->log + process->log_length - over, bytes, length);
    process->log_length += length - over;
    process->log[process->log_length] = '\0';
}

static void read_log(struct moon_process *process) {
    char buffer[READ_BYTES];
    ssize_t got = read(process->err, buffer, sizeof buffer);
    if (got > 0) {
        keep_log(process, buffer, (size_t)got);
    } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
        close(process->err);
        process->err = -1;
    }
}

static void read_some(struct moon_process *process) {
    char buffer[READ_BYTES];
    ssize_t got = read(process->out, buffer, sizeof buffer);
    if (got > 0)
        moon_text_bytes(&process->incoming, buffer, (size_t)got);
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        process->ended = true;
}

/* Takes a whole line out of what was read. */
static bool take_line(struct moon_process *process, char **line, size_t *length) {
    struct moon_text *text = &process->incoming;
    char *end = NULL;
    if (text->length > process->incoming_scanned)
        end = memchr(text->data + process->incoming_scanned, '\n', text->length - process->incoming_scanned);
    if (!end) {
        if (process->incoming_offset > 0) { /* move the unfinished line to the front, once a buffer */
            size_t left = text->length - process->incoming_offset;
            memmove(text->data, text->data + process->incoming_offset, left);
            text->length = left;
            process->incoming_offset = 0;
        }
        process->incoming_scanned = text->length;
        return false;
    }
    *line = text->data + process->incoming_offset;
    *length = (size_t)(end - *line);
    *end = '\0';
    process->incoming_offset = process->incoming_scanned = (size_t)(end + 1 - text->data);
    return true;
}

static int milliseconds_until(uint64_t deadline_ns) {
    uint64_t now = moon_now_ns();
    uint64_t left = deadline_ns > now ? (deadline_ns - now + 999999U) / 1000000U : 0;
    return left > 1000000 ? 1000000 : (int)left;
}

/* One round of poll over what is open. */
static void poll_once(struct moon_process *process, int timeout_ms) {
    bool writing = process->in >= 0 && process->outgoing.length > process->outgoing_offset;
    struct pollfd fds[3] = {
        {.fd = process->ended ? -1 : process->out, .events = POLLIN},
        {.fd = process->err, .events = POLLIN},
        {.fd = writing ? process->in : -1, .events = POLLOUT},
    };
    if (poll(fds, 3, timeout_ms) <= 0)
        return;
    if (fds[2].revents)
        write_some(process);
    if (fds[1].revents)
        read_log(process);
    if (fds[0].revents)
        read_some(process);
}

enum moon_process_event moon_process_wait(struct moon_process *process, uint64_t deadline_ns, char **line,
                                          size_t *length) {
    for (;;) {
        if (take_line(process, line, length))
            return MOON_PROCESS_LINE;
        if (process->incoming.failed || process->outgoing.failed ||
            process->incoming.length > MOON_PROCESS_LINE_BYTES_MAX)
            return MOON_PROCESS_TOO_LONG;
        if (process->ended)
            return MOON_PROCESS_END;
        int timeout_ms = milliseconds_until(deadline_ns);
        if (timeout_ms == 0)
            return MOON_PROCESS_SILENT;
        poll_once(process, timeout_ms);
    }
}

void moon_process_send_end(struct moon_process *process) {
    while (process->in >= 0 && process->outgoing.length > process->outgoing_offset && !process->ended)
        poll_once(process, 1000);
    close_input(process);
}

/* Waits without blocking for at most grace_ms, reading what it still says, so that a full pipe does not hold it. */
static bool wait_for_exit(struct moon_process *process, int grace_ms) {
    uint64_t deadline_ns = moon_now_ns() + (uint64_t)grace_ms * 1000000U;
    for (;;) {
        siginfo_t seen = {0}; /* it stays a zombie, so that its group's number is not used again before the kill */
        if (waitid(P_PID, (id_t)process->pid, &seen, WEXITED | WNOHANG | WNOWAIT) != 0 || seen.si_pid == process->pid)
            return true;
        if (milliseconds_until(deadline_ns) == 0)
            return false;
        poll_once(process, 2);
        moon_text_clear(&process->incoming);
    }
}

void moon_process_end(struct moon_process *process, int grace_ms) {
    if (process->pid <= 0)
        return;
    int status = 0;
    close_input(process);
    bool killed = !wait_for_exit(process, grace_ms);
    kill(-process->pid, SIGKILL); /* also what it left behind */
    waitpid(process->pid, &status, 0);
    while (process->err >= 0 && process->log_length < sizeof process->log - 1) {
        size_t before = process->log_length;
        read_log(process);
        if (process->log_length == before)
            break;
    }
    if (killed)
        snprintf(process->fate, sizeof process->fate, "had to be killed");
    else if (WIFSIGNALED(status))
        snprintf(process->fate, sizeof process->fate, "killed by signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) > 128) /* what a shell makes of a signal */
        snprintf(process->fate, sizeof process->fate, "exit status %d (signal %d)", WEXITSTATUS(status),
                 WEXITSTATUS(status) - 128);
    else
        snprintf(process->fate, sizeof process->fate, "exit status %d", WEXITSTATUS(status));
    remember(process->pid, 0);
    process->pid = 0;
    process->ended = true;
    close(process->out);
    if (process->err >= 0)
        close(process->err);
    process->out = process->err = -1;
    moon_text_close(&process->outgoing);
    moon_text_close(&process->incoming);
    process->outgoing_offset = process->incoming_offset = process->incoming_scanned = 0;
}

const char *moon_process_log(const struct moon_process *process) {
    return process->log;
}
