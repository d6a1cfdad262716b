/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: made by the scheduler side, held by every worker that has one queued. */
#include "ref/connector/job.h"

#include <assert.h>
#include <string.h>

struct moon_job *moon_job_create(struct moon_memory *memory, size_t group_count) {
    struct moon_job *job = memory->resize(memory, NULL, 0, sizeof *job);
    if (!job)
        return NULL;
    memset(job, 0, sizeof *job);
    job->memory = memory;
    job->references = 1;
    job->group_count = group_count;
    return job;
}

int moon_job_set_boundary(struct moon_job *job, const struct moon_boundary_put *puts, size_t count) {
    struct moon_boundary_put *copy = NULL;
    size_t bytes;
    if (__builtin_mul_overflow(count, sizeof *copy, &bytes))
        return MOON_ERR_MEMORY;
    if (count > 0) {
        copy = job->memory->resize(job->memory, NULL, 0, bytes);
        if (!copy)
            return MOON_ERR_MEMORY;
        memcpy(copy, puts, bytes);
    }
    job->memory->resize(job->memory, job->boundary, job->boundary_count * sizeof *copy, 0);
    job->boundary = copy;
    job->boundary_count = count;
    return 0;
}

int moon_job_set_tail_boundaries(struct moon_job *job, const int64_t *tokens) {
    size_t bytes = job->group_count * sizeof *tokens;
    int64_t *copy = job->memory->resize(job->memory, job->tail_boundaries, job->tail_boundaries ? bytes : 0, bytes);
    if (!copy)
        return MOON_ERR_MEMORY;
    memcpy(copy, tokens, bytes);
    job->tail_boundaries = copy;
    return 0;
}

struct moon_job *moon_job_hold(struct moon_job *job) {
    job->references++;
    return job;
}

void moon_job_release(struct moon_job *job) {
    if (!job)
        return;
    assert(job->references > 0);
    if (--job->references > 0)
        return;
    struct moon_memory *memory = job->memory;
    moon_tables_release(job->tables);
    memory->resize(memory, job->boundary, job->boundary_count * sizeof *job->boundary, 0);
    if (job->tail_boundaries)
        memory->resize(memory, job->tail_boundaries, job->group_count * sizeof *job->tail_boundaries, 0);
    memory->resize(memory, job, sizeof *job, 0);
}
