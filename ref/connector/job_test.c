/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of jobs and block tables: sharing, growth, copies, and memory that is refused. */
#include "ref/connector/job.h"

#include "ref/base/unit.h"

static const int64_t numbers[64] = {1, 2, 3, 4, 5, 6, 7, 8};

static void tables_are_shared_and_grow_for_all(void) {
    const struct moon_block_table first[] = {{numbers, 2}, {NULL, 0}}, more[] = {{numbers + 2, 40}, {numbers + 5, 1}};
    struct moon_tables *tables = NULL;
    MOON_CHECK_INT(moon_tables_create(moon_memory_heap(), first, 2, &tables), 0);
    struct moon_tables *other = moon_tables_hold(tables);
    CU_ASSERT_PTR_EQUAL(other, tables);
    MOON_CHECK_INT(moon_tables_append(tables, more), 0);
    moon_tables_release(tables);
    MOON_CHECK_INT(other->groups[0].count, 42);
    MOON_CHECK_INT(other->groups[0].blocks[2], 3);
    MOON_CHECK_INT(other->groups[1].count, 1);
    MOON_CHECK_INT(other->groups[1].blocks[0], 6);
    moon_tables_release(other);
    moon_tables_release(NULL);
}

static void tables_do_not_see_the_source_change(void) {
    int64_t source[] = {7};
    const struct moon_block_table given = {source, 1};
    struct moon_tables *tables = NULL;
    MOON_CHECK_INT(moon_tables_create(moon_memory_heap(), &given, 1, &tables), 0);
    source[0] = 8;
    MOON_CHECK_INT(tables->groups[0].blocks[0], 7);
    moon_tables_release(tables);
}

static void sizes_that_overflow_are_refused_memory(void) {
    const struct moon_block_table one = {numbers, 1}, huge = {numbers, SIZE_MAX}, large = {numbers, SIZE_MAX / 8};
    struct moon_tables *tables = NULL;
    MOON_CHECK_INT(moon_tables_create(moon_memory_heap(), &one, 1, &tables), 0);
    MOON_CHECK_INT(moon_tables_append(tables, &huge), MOON_ERR_MEMORY);
    MOON_CHECK_INT(moon_tables_append(tables, &large), MOON_ERR_MEMORY);
    MOON_CHECK_INT(tables->groups[0].count, 1);
    moon_tables_release(tables);
    struct moon_job *job = moon_job_create(moon_memory_heap(), 1);
    const struct moon_boundary_put put = {0, 1, 16};
    MOON_CHECK_INT(moon_job_set_boundary(job, &put, SIZE_MAX / 2), MOON_ERR_MEMORY);
    moon_job_release(job);
}

static void a_job_copies_what_it_is_given(void) {
    struct moon_boundary_put puts[] = {{0, 5, 16}, {1, 6, 32}};
    int64_t tokens[] = {16, 32};
    struct moon_job *job = moon_job_create(moon_memory_heap(), 2);
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    MOON_CHECK_INT(moon_job_set_boundary(job, puts, 2), 0);
    MOON_CHECK_INT(moon_job_set_tail_boundaries(job, tokens), 0);
    puts[1].block = 0;
    tokens[1] = 0;
    MOON_CHECK_INT(job->boundary[1].block, 6);
    MOON_CHECK_INT(job->tail_boundaries[1], 32);
    MOON_CHECK_INT(moon_job_set_boundary(job, puts, 1), 0);
    MOON_CHECK_INT(moon_job_set_tail_boundaries(job, tokens), 0);
    MOON_CHECK_INT(job->boundary_count, 1);
    MOON_CHECK_INT(job->tail_boundaries[1], 0);
    MOON_CHECK_INT(moon_job_set_boundary(job, NULL, 0), 0);
    CU_ASSERT_PTR_NULL(job->boundary);
    struct moon_job *other = moon_job_hold(job);
    moon_job_release(job);
    MOON_CHECK_INT(other->tail_boundaries[0], 16);
    moon_job_release(other);
    moon_job_release(NULL);
}

static int make_all(struct moon_memory *memory, const void *context) {
    (void)context;
    const struct moon_block_table first[] = {{numbers, 2}, {numbers, 3}};
    const struct moon_boundary_put put = {0, 5, 16};
    const int64_t tokens[] = {16, 32};
    struct moon_job *job = moon_job_create(memory, 2);
    if (!job)
        return MOON_ERR_MEMORY;
    int status = moon_tables_create(memory, first, 2, &job->tables);
    if (!status)
        status = moon_tables_append(job->tables, first);
    if (!status)
        status = moon_job_set_boundary(job, &put, 1);
    if (!status)
        status = moon_job_set_tail_boundaries(job, tokens);
    moon_job_release(job);
    return status;
}

static void refused_memory_is_told_and_nothing_leaks(void) {
    moon_unit_refuse_memory(make_all, NULL);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"tables are shared, and grow for all who hold them", tables_are_shared_and_grow_for_all},
        {"tables do not see their source change", tables_do_not_see_the_source_change},
        {"sizes that overflow are refused as memory", sizes_that_overflow_are_refused_memory},
        {"a job copies what it is given", a_job_copies_what_it_is_given},
        {"refused memory is told and nothing leaks", refused_memory_is_told_and_nothing_leaks},
        {NULL, NULL},
    };
    return moon_unit_main("job", cases, argc, argv);
}
