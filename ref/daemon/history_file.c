/* SPDX-License-Identifier: Apache-2.0 */
/* A history on disk, appended line by line. */
#include "ref/daemon/history_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int moon_history_file_open(struct moon_history_file *file, const char *path, struct moon_error *error) {
    *file = (struct moon_history_file){.path = path, .descriptor = -1};
    if (!path)
        return 0;
    file->descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (file->descriptor < 0)
        return moon_fail(error, MOON_ERR_IO, path, "cannot open: %s", strerror(errno));
    return 0;
}

void moon_history_file_close(struct moon_history_file *file) {
    if (file->descriptor >= 0)
        close(file->descriptor);
    file->descriptor = -1;
}

void moon_history_file_write(struct moon_history_file *file, const struct moon_text *line) {
    size_t done = 0;
    int reason = line->failed ? ENOMEM : 0;
    if (file->descriptor < 0 || file->failed)
        return;
    while (reason == 0 && done < line->length) {
        ssize_t count = write(file->descriptor, line->data + done, line->length - done);
        if (count < 0 && errno != EINTR)
            reason = errno;
        done += count > 0 ? (size_t)count : 0;
    }
    if (reason == 0)
        return;
    fprintf(stderr, "mooncheck: %s: the history cannot be written: %s\n", file->path, strerror(reason));
    file->failed = true;
}
