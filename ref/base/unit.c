/* SPDX-License-Identifier: Apache-2.0 */
/* Frame of the unit tests: runs CUnit and prints the closing line. */
#include "ref/base/unit.h"

#include "ref/base/error.h"

#include <CUnit/Basic.h>

void moon_unit_refuse_memory(int (*make)(struct moon_memory *memory, const void *context), const void *context) {
    struct moon_memory_failing failing;
    uint64_t at = 1;
    do {
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        int status = make(&failing.memory, context);
        MOON_CHECK_INT(failing.held_bytes, 0);
        MOON_CHECK_INT(status, failing.requests >= at ? MOON_ERR_MEMORY : 0);
    } while (failing.requests >= at++);
}

int moon_unit_main(const char *subject, const struct moon_unit_case cases[], int argc, char *argv[]) {
    if (CU_initialize_registry() != CUE_SUCCESS)
        return 1;
    CU_pSuite suite = CU_add_suite(subject, NULL, NULL);
    for (const struct moon_unit_case *c = cases; suite && c->sentence; c++)
        if (argc < 2 || strstr(c->sentence, argv[1]))
            CU_add_test(suite, c->sentence, c->run);
    CU_basic_set_mode(CU_BRM_SILENT);
    CU_basic_run_tests();
    unsigned ran = CU_get_number_of_tests_run(), failed = CU_get_number_of_tests_failed();
    for (CU_pFailureRecord f = CU_get_failure_list(); f; f = f->pNext)
        fprintf(stderr, "%s:%u: FAILED in \"%s\": %s\n", f->strFileName, f->uiLineNumber,
                f->pTest ? f->pTest->pName : subject, f->strCondition);
    int no_failure_frame = suite != NULL && ran > 0;
    printf("%s: %u passed, %u failed, 0 skipped\n", subject, ran - failed, failed);
    CU_cleanup_registry();
    return failed == 0 && no_failure_frame ? 0 : 1;
}
