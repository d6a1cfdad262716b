/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the receiver: calls, failures, deviations and strict mode, the tier log, misuse, refused memory. */
#include "ref/connector/receiver.h"

#include "ref/base/unit.h"
#include "ref/connector/load_rig_internal.h"

#define PLAN(...) (&(const struct rig_plan){.release = "0.33", __VA_ARGS__})
enum { COST = 12288 }; /* staging bytes of a key with one page */

/* What the store does in a test: the result of a key is that of its block, 0 there means all bytes.
 *   raise_at   number of the GET that raises, or -1;  replicas_raise  the question for replicas raises
 *   replicas   kind of the first replica of every key */
struct script {
    struct moon_receiver_setting setting;
    int64_t results[RIG_BLOCKS];
    int raise_at;
    bool replicas_raise;
    int64_t replicas;
};

/* Answers one call, and writes it down: "get 1 2 " or "tiers 1 2 " with the first block numbers. */
static void answer(struct moon_receiver *receiver, const struct script *script, const struct moon_store_call *call,
                   int *gets, struct moon_text *out) {
    int64_t values[RIG_BLOCKS];
    moon_text_string(out, call->kind == MOON_CALL_GET ? "get" : "tiers");
    for (size_t i = 0; i < call->count; i++) {
        values[i] = script->replicas;
        if (call->kind == MOON_CALL_GET) {
            int64_t result = script->results[call->blocks[i]];
            values[i] = result ? result : (int64_t)call->buffers_per_key * (int64_t)call->buffers[0].size_bytes;
            moon_text_format(out, " %d", (int)call->blocks[i]);
        }
    }
    moon_text_string(out, "; ");
    if (call->kind == MOON_CALL_GET ? (*gets)++ == script->raise_at : script->replicas_raise)
        moon_receiver_raised(receiver);
    else
        MOON_CHECK_INT(moon_receiver_answer(receiver, values, call->count, NULL), 0);
}

static void write_reports(struct moon_receiver *receiver, struct moon_text *out) {
    struct moon_error error;
    uint64_t block;
    uint32_t slot;
    while (moon_receiver_take_raised(receiver, &error))
        moon_text_format(out, "%s ", error.type);
    while (moon_receiver_take_failed_block(receiver, &block))
        moon_text_format(out, "bad %d ", (int)block);
    while (moon_receiver_take_failed_request(receiver, &slot))
        moon_text_format(out, "failed %u ", slot);
    while (moon_receiver_take_finished(receiver, &slot))
        moon_text_format(out, "done %u ", slot);
    if (moon_receiver_queued(receiver))
        moon_text_format(out, "left %zu ", moon_receiver_queued(receiver));
}

/* Runs what is queued to the end. */
static void run(struct moon_receiver *receiver, const struct script *script, struct moon_text *out) {
    const struct moon_store_call *call;
    int gets = 0;
    MOON_CHECK_INT(moon_receiver_next(receiver, &call, NULL), 0);
    while (call) {
        answer(receiver, script, call, &gets, out);
        MOON_CHECK_INT(moon_receiver_next(receiver, &call, NULL), 0);
    }
    write_reports(receiver, out);
}

/* Runs one load of request 5 from `local` to `hit`; `noted` is the deviation that happens, -1 for none. */
static void check_load(const struct rig_plan *plan, const struct script *script, int64_t local, int64_t hit,
                       const char *expected, int noted) {
    struct rig rig;
    struct moon_text out;
    struct moon_receiver *receiver = NULL;
    rig_open(&rig, plan);
    moon_text_open(&out, moon_memory_heap());
    struct moon_receiver_setting setting = script->setting;
    setting.segments = &rig.segments;
    setting.engine_groups = setting.engine_groups ? setting.engine_groups : rig.model.group_count;
    MOON_CHECK_INT(moon_receiver_open(&receiver, &rig.connector, &rig.rank, &setting, moon_memory_heap(), NULL), 0);
    struct moon_job *job = rig_job(&rig, moon_memory_heap(), 5, local, hit);
    MOON_CHECK_INT(moon_receiver_queue(receiver, job), 0);
    moon_job_release(job);
    MOON_CHECK_INT(moon_receiver_queued(receiver), 1);
    run(receiver, script, &out);
    MOON_CHECK_TEXT(moon_text_value(&out), expected);
    for (int i = 0; i < MOON_DEVIATION_COUNT; i++)
        MOON_CHECK_INT(moon_deviation_noted(&rig.notes, (enum moon_deviation)i), i == noted);
    moon_receiver_close(receiver);
    moon_text_close(&out);
    rig_close(&rig);
}

#define SCRIPT(...) (&(const struct script){.raise_at = -1, __VA_ARGS__})
/* Staging of so many keys, and of so many for one key. */
#define STAGING(usable, raw) .setting = {.offload = true, .staging = {(usable)*COST, (raw)*COST}}

static struct moon_profile strict(const char *release) {
    struct moon_profile profile;
    moon_profile_strict(moon_profile_find(release, NULL), &profile);
    return profile;
}

static void a_load_is_one_get(void) {
    check_load(PLAN(.tp = 1), SCRIPT(.replicas = 0), 0, 48, "get 1 2 3; done 5 ", -1);
    check_load(PLAN(.tp = 2, .tp_rank = 1), SCRIPT(.replicas = 0), 16, 64, "get 3 4 2; done 5 ", -1);
}

static void staging_cuts_a_load(void) {
    check_load(PLAN(.tp = 1), SCRIPT(STAGING(2, 4)), 0, 80, "get 1 2; get 3 4; get 5; done 5 ", -1);
    check_load(PLAN(.tp = 1), SCRIPT(STAGING(5, 5)), 0, 80, "get 1 2 3 4 5; done 5 ", -1);
    check_load(PLAN(.tp = 2, .tp_rank = 1), SCRIPT(STAGING(2, 4)), 0, 64, "get 2 3; get 4 1; done 5 ", -1);
}

static void without_offload_nothing_is_cut(void) {
    const struct script script = {.setting = {.staging = {1, 1}}, .raise_at = -1};
    check_load(PLAN(.tp = 1), &script, 0, 80, "get 1 2 3 4 5; done 5 ", -1);
    const struct script offload = {.setting = {.offload = true, .staging = {1, 1}}, .raise_at = -1};
    check_load(&(const struct rig_plan){.release = "0.21"}, &offload, 0, 80, "get 1 2 3 4 5; done 5 ", -1);
}

static void keys_above_the_usable_bytes_are_alone(void) {
    const struct script script = {.setting = {.offload = true, .staging = {COST - 1, COST}}, .raise_at = -1};
    check_load(PLAN(.tp = 1), &script, 0, 32, "get 1; get 2; done 5 ", -1);
}

static void a_key_above_the_raw_bytes_fails_the_load_unread(void) {
    const struct script script = {.setting = {.offload = true, .staging = {COST - 1, COST - 1}}, .raise_at = -1};
    check_load(PLAN(.tp = 1), &script, 0, 48, "bad 1 bad 2 bad 3 done 5 ", -1);
    const struct script groups = {.setting = {.offload = true, .staging = {COST - 1, COST - 1}, .engine_groups = 2},
                                  .raise_at = -1};
    check_load(PLAN(.tp = 1), &groups, 0, 48, "failed 5 done 5 ", -1);
}

static void failed_keys_are_reported(void) {
    check_load(PLAN(.tp = 1), SCRIPT(.results = {[2] = -1, [3] = -704}), 0, 64, "get 1 2 3 4; bad 2 bad 3 done 5 ", -1);
    check_load(PLAN(.tp = 2, .store_tp = "4", .heads = 4), SCRIPT(.results = {[2] = -1}), 0, 32,
               "get 1 1 2 2; bad 2 done 5 ", -1);
}

static void a_get_that_raises_fails_its_keys(void) {
    check_load(PLAN(.tp = 1), &(const struct script){.raise_at = 0}, 0, 48, "get 1 2 3; bad 1 bad 2 bad 3 done 5 ", -1);
}

static void after_a_failed_batch_the_rest_is_dropped(void) {
    check_load(PLAN(.tp = 1), SCRIPT(STAGING(2, 4), .results = {[2] = -1}), 0, 80, "get 1 2; bad 2 done 5 ",
               MOON_DEVIATION_BATCHES_DROPPED);
    check_load(PLAN(.tp = 1), SCRIPT(STAGING(2, 4), .results = {[5] = -1}), 0, 80,
               "get 1 2; get 3 4; get 5; bad 5 done 5 ", -1);
    check_load(PLAN(.tp = 1), &(const struct script){STAGING(2, 4), .raise_at = 1}, 0, 80,
               "get 1 2; get 3 4; bad 3 bad 4 done 5 ", MOON_DEVIATION_BATCHES_DROPPED);
}

static void strict_mode_reads_on_after_a_failed_batch(void) {
    const struct moon_profile profile = strict("0.33");
    check_load(&(const struct rig_plan){.profile = &profile}, SCRIPT(STAGING(2, 4), .results = {[2] = -1, [5] = -1}), 0,
               80, "get 1 2; get 3 4; get 5; bad 2 bad 5 done 5 ", -1);
    check_load(&(const struct rig_plan){.profile = &profile}, &(const struct script){STAGING(2, 4), .raise_at = 0}, 0,
               80, "get 1 2; get 3 4; get 5; bad 1 bad 2 done 5 ", -1);
}

static void an_empty_load_never_ends(void) {
    check_load(PLAN(.tp = 1), SCRIPT(.replicas = 0), 48, 48, "ZeroDivisionError left 1 ",
               MOON_DEVIATION_EMPTY_LOAD_HANGS);
}

static void strict_mode_ends_an_empty_load_at_once(void) {
    const struct moon_profile profile = strict("0.33");
    check_load(&(const struct rig_plan){.profile = &profile}, SCRIPT(.replicas = 0), 48, 48, "done 5 ", -1);
}

static void short_reads_pass_and_fail_in_strict_mode(void) {
    const struct moon_profile profile = strict("0.30");
    check_load(PLAN(.tp = 1), SCRIPT(.results = {[2] = 1}), 0, 32, "get 1 2; done 5 ",
               MOON_DEVIATION_SHORT_READ_PASSES);
    check_load(&(const struct rig_plan){.profile = &profile}, SCRIPT(.results = {[2] = 1}), 0, 32,
               "get 1 2; bad 2 done 5 ", -1);
}

static void release_0_21_only_logs(void) {
    const struct moon_profile profile = strict("0.21");
    check_load(&(const struct rig_plan){.release = "0.21"}, SCRIPT(.results = {[2] = -1}), 0, 32, "get 1 2; done 5 ",
               MOON_DEVIATION_LOAD_ERRORS_LOGGED);
    check_load(&(const struct rig_plan){.profile = &profile}, SCRIPT(.results = {[2] = -1}), 0, 32,
               "get 1 2; bad 2 done 5 ", -1);
}

static void several_groups_are_told_by_release(void) {
    const struct rig_plan groups = {
        .release = "0.30", .groups = {{.inner_count = 0}, {.inner_count = 0}}, .group_count = 2};
    check_load(&groups, SCRIPT(.results = {[2] = -1}), 0, 32, "get 1 2 63 62; bad 2 done 5 ",
               MOON_DEVIATION_BLOCKS_OF_GROUPS);
    check_load(PLAN(.groups = {{.inner_count = 0}, {.inner_count = 0}}, .group_count = 2),
               SCRIPT(.results = {[2] = -1, [63] = -1}), 0, 32, "get 1 2 63 62; failed 5 done 5 ", -1);
}

/* ---- tier log ---- */

static void tiers_are_asked_before_each_get(void) {
    const struct script script = {.setting = {.offload = true, .tier_log = true, .staging = {2 * COST, 4 * COST}},
                                  .raise_at = -1};
    check_load(PLAN(.tp = 1), &script, 0, 48, "tiers; get 1 2; tiers; get 3; done 5 ", -1);
    check_load(&(const struct rig_plan){.release = "0.21"}, &script, 0, 48, "get 1 2 3; done 5 ", -1);
}

/* The line of one load, and what else is done. */
static void check_line(const struct script *script, const char *expected) {
    struct rig rig;
    struct moon_text out;
    struct moon_tier_summary summary;
    struct moon_receiver *receiver = NULL;
    uint32_t slot = 0;
    rig_open(&rig, PLAN(.tp = 1));
    moon_text_open(&out, moon_memory_heap());
    const struct moon_receiver_setting setting = {.segments = &rig.segments, .tier_log = true, .engine_groups = 1};
    MOON_CHECK_INT(moon_receiver_open(&receiver, &rig.connector, &rig.rank, &setting, moon_memory_heap(), NULL), 0);
    struct moon_job *job = rig_job(&rig, moon_memory_heap(), 5, 0, 48);
    MOON_CHECK_INT(moon_receiver_queue(receiver, job), 0);
    moon_job_release(job);
    CU_ASSERT(!moon_receiver_take_tiers(receiver, &summary, &slot));
    run(receiver, script, &out);
    moon_text_clear(&out);
    if (moon_receiver_take_tiers(receiver, &summary, &slot)) {
        MOON_CHECK_INT(slot, 5);
        moon_tier_summary_write(&summary, moon_key_text("x"), &out);
        CU_ASSERT(!moon_receiver_take_tiers(receiver, &summary, &slot));
    }
    MOON_CHECK_TEXT(moon_text_value(&out), expected);
    moon_receiver_close(receiver);
    moon_text_close(&out);
    rig_close(&rig);
}

static void each_get_that_returned_has_a_line(void) {
    check_line(SCRIPT(.replicas = MOON_REPLICA_MEMORY, .results = {[2] = -1}),
               "Mooncake load tier summary: req_id=x batch_keys=3 memory_keys=3 disk_keys=0 unknown_keys=0 "
               "success_keys=2 failed_keys=1 bytes_by_tier={'memory': 2048, 'disk': 0, 'unknown': 0}");
    check_line(SCRIPT(.replicas_raise = true, .replicas = MOON_REPLICA_MEMORY),
               "Mooncake load tier summary: req_id=x batch_keys=3 memory_keys=0 disk_keys=0 unknown_keys=3 "
               "success_keys=3 failed_keys=0 bytes_by_tier={'memory': 0, 'disk': 0, 'unknown': 3072}");
    check_line(&(const struct script){.replicas = MOON_REPLICA_DISK, .raise_at = 0}, "");
}

/* ---- queue and misuse ---- */

static void loads_run_in_order_and_end_once(void) {
    struct rig rig;
    struct moon_text out;
    struct moon_receiver *receiver = NULL;
    rig_open(&rig, PLAN(.tp = 1));
    moon_text_open(&out, moon_memory_heap());
    const struct moon_receiver_setting setting = {.segments = &rig.segments, .engine_groups = 1};
    MOON_CHECK_INT(moon_receiver_open(&receiver, &rig.connector, &rig.rank, &setting, moon_memory_heap(), NULL), 0);
    static const uint32_t slots[] = {7, 3, 7};
    for (uint32_t i = 0; i < 3; i++) {
        struct moon_job *job = rig_job(&rig, moon_memory_heap(), slots[i], 16 * i, 48);
        MOON_CHECK_INT(moon_receiver_queue(receiver, job), 0);
        moon_job_release(job);
    }
    MOON_CHECK_INT(moon_receiver_queued(receiver), 3);
    run(receiver, SCRIPT(.results = {[3] = -1}), &out);
    MOON_CHECK_TEXT(moon_text_value(&out), "get 1 2 3; get 2 3; get 3; bad 3 done 3 done 7 ");
    moon_receiver_close(receiver);
    moon_text_close(&out);
    rig_close(&rig);
}

static void calls_are_answered_in_full_or_not_at_all(void) {
    struct rig rig;
    struct moon_receiver *receiver = NULL;
    struct moon_error error = {0};
    const struct moon_store_call *call, *again;
    static const int64_t values[] = {RIG_PAGE_BYTES, RIG_PAGE_BYTES, RIG_PAGE_BYTES};
    rig_open(&rig, PLAN(.tp = 1));
    const struct moon_receiver_setting setting = {.segments = &rig.segments, .engine_groups = 1};
    MOON_CHECK_INT(moon_receiver_open(&receiver, &rig.connector, &rig.rank, &setting, moon_memory_heap(), NULL), 0);
    MOON_CHECK_INT(moon_receiver_answer(receiver, values, 0, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.where, "results");
    moon_receiver_raised(receiver); /* nothing is asked: nothing happens */
    struct moon_job *job = rig_job(&rig, moon_memory_heap(), 1, 0, 32);
    MOON_CHECK_INT(moon_receiver_queue(receiver, job), 0);
    MOON_CHECK_INT(moon_receiver_queue(receiver, job), 0);
    moon_job_release(job);
    MOON_CHECK_INT(moon_receiver_next(receiver, &call, &error), 0);
    MOON_CHECK_INT(moon_receiver_answer(receiver, values, 3, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "3 results for 2 keys");
    MOON_CHECK_INT(moon_receiver_next(receiver, &again, &error), 0);
    CU_ASSERT(call == again);
    MOON_CHECK_INT(moon_receiver_queued(receiver), 2);
    MOON_CHECK_INT(moon_receiver_answer(receiver, values, 2, &error), 0);
    MOON_CHECK_INT(moon_receiver_queued(receiver), 1);
    moon_receiver_close(receiver); /* with a job in it */
    moon_receiver_close(NULL);
    rig_close(&rig);
}

static void a_job_that_makes_no_sense_is_given_up(void) {
    struct rig rig;
    struct moon_receiver *receiver = NULL;
    struct moon_error error = {0};
    struct moon_text out;
    const struct moon_store_call *call;
    rig_open(&rig, PLAN(.tp = 1));
    moon_text_open(&out, moon_memory_heap());
    const struct moon_receiver_setting setting = {.segments = &rig.segments, .engine_groups = 1};
    MOON_CHECK_INT(moon_receiver_open(&receiver, &rig.connector, &rig.rank, &setting, moon_memory_heap(), NULL), 0);
    for (uint32_t slot = 1; slot <= 3; slot++) {
        struct moon_job *job = rig_job(&rig, moon_memory_heap(), slot, 0, 32);
        if (slot < 3)
            job->tables->groups[0].count = 1;
        MOON_CHECK_INT(moon_receiver_queue(receiver, job), 0);
        moon_job_release(job);
    }
    MOON_CHECK_INT(moon_receiver_next(receiver, &call, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.where, "tables");
    CU_ASSERT_PTR_NULL(call);
    MOON_CHECK_INT(moon_receiver_next(receiver, &call, NULL), MOON_ERR_RANGE);
    run(receiver, SCRIPT(.replicas = 0), &out);
    MOON_CHECK_TEXT(moon_text_value(&out), "get 1 2; done 3 ");
    moon_receiver_close(receiver);
    moon_text_close(&out);
    rig_close(&rig);
}

static void settings_of_another_rank_are_refused(void) {
    struct rig rig, other;
    struct moon_receiver *receiver = NULL;
    struct moon_error error = {0};
    rig_open(&rig, PLAN(.tp = 2, .store_tp = "4"));
    const struct rig_plan others[] = {{.release = "0.33", .tp = 2},
                                      {.release = "0.33", .tp = 2, .tp_rank = 1, .store_tp = "4"},
                                      {.release = "0.33", .tp = 2, .store_tp = "8"}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        rig_open(&other, &others[i]);
        const struct moon_receiver_setting setting = {.segments = &other.segments, .engine_groups = 1};
        MOON_CHECK_INT(moon_receiver_open(&receiver, &rig.connector, &rig.rank, &setting, moon_memory_heap(), &error),
                       MOON_ERR_RANGE);
        MOON_CHECK_TEXT(error.where, "segments");
        rig_close(&other);
    }
    const struct moon_receiver_setting bad[] = {
        {.engine_groups = 1},
        {.segments = &rig.segments},
        {.segments = &rig.segments, .engine_groups = 1, .offload = true, .staging = {0, 1}},
    };
    static const char *const where[] = {"segments", "engine_groups", "staging"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        MOON_CHECK_INT(moon_receiver_open(&receiver, &rig.connector, &rig.rank, &bad[i], moon_memory_heap(), &error),
                       MOON_ERR_RANGE);
        MOON_CHECK_TEXT(error.where, where[i]);
    }
    rig_close(&rig);
}

/* Opens, queues two loads (the second empty) and runs them; calls that memory refused are made again. */
static int run_with(struct moon_memory_failing *failing, const struct rig *rig, struct moon_text *out) {
    const struct moon_receiver_setting setting = {.segments = &rig->segments,
                                                  .offload = true,
                                                  .tier_log = true,
                                                  .staging = {2 * COST, 2 * COST},
                                                  .engine_groups = 1};
    const struct script script = {.setting = setting, .raise_at = -1, .results = {[3] = -1}};
    struct moon_receiver *receiver = NULL;
    const struct moon_store_call *call;
    int gets = 0, refused = 0;
    int status = moon_receiver_open(&receiver, &rig->connector, &rig->rank, &setting, &failing->memory, NULL);
    for (int64_t local = 0; local <= 48 && !status; local += 48) {
        struct moon_job *job = rig_job(rig, moon_memory_heap(), 5, local, 48);
        status = moon_receiver_queue(receiver, job);
        moon_job_release(job);
    }
    while (!status) {
        int next = moon_receiver_next(receiver, &call, NULL);
        if (next == MOON_ERR_MEMORY) {
            CU_ASSERT_PTR_NULL(call);
            failing->fail_at = 0; /* memory is there again */
            refused = next;
            continue;
        }
        MOON_CHECK_INT(next, 0);
        if (!call)
            break;
        answer(receiver, &script, call, &gets, out);
    }
    if (!status)
        write_reports(receiver, out);
    moon_receiver_close(receiver);
    return status ? status : refused;
}

static void refused_memory_loses_no_load(void) {
    struct rig rig;
    rig_open(&rig, PLAN(.tp = 1));
    for (uint64_t at = 1;; at++) {
        struct moon_memory_failing failing;
        struct moon_text out;
        moon_memory_failing_init(&failing, moon_memory_heap(), at);
        moon_text_open(&out, moon_memory_heap());
        int status = run_with(&failing, &rig, &out);
        CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
        MOON_CHECK_INT(failing.held_bytes, 0);
        if (out.length > 0)
            MOON_CHECK_TEXT(moon_text_value(&out),
                            "tiers; get 1 2; tiers; get 3; ZeroDivisionError bad 3 done 5 left 1 ");
        moon_text_close(&out);
        if (status == 0)
            break;
    }
    rig_close(&rig);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"a load is one get", a_load_is_one_get},
        {"staging cuts a load", staging_cuts_a_load},
        {"without offload, and in 0.21, nothing is cut", without_offload_nothing_is_cut},
        {"keys above the usable bytes are alone", keys_above_the_usable_bytes_are_alone},
        {"a key above the raw bytes fails the load unread", a_key_above_the_raw_bytes_fails_the_load_unread},
        {"failed keys are reported", failed_keys_are_reported},
        {"a get that raises fails its keys", a_get_that_raises_fails_its_keys},
        {"after a failed batch the rest is dropped", after_a_failed_batch_the_rest_is_dropped},
        {"strict mode reads on after a failed batch", strict_mode_reads_on_after_a_failed_batch},
        {"an empty load never ends", an_empty_load_never_ends},
        {"strict mode ends an empty load at once", strict_mode_ends_an_empty_load_at_once},
        {"short reads pass, and fail in strict mode", short_reads_pass_and_fail_in_strict_mode},
        {"0.21 only logs", release_0_21_only_logs},
        {"several groups are told by release", several_groups_are_told_by_release},
        {"tiers are asked before each get", tiers_are_asked_before_each_get},
        {"each get that returned has a line", each_get_that_returned_has_a_line},
        {"loads run in order and end once", loads_run_in_order_and_end_once},
        {"calls are answered in full or not at all", calls_are_answered_in_full_or_not_at_all},
        {"a job that makes no sense is given up", a_job_that_makes_no_sense_is_given_up},
        {"settings of another rank are refused", settings_of_another_rank_are_refused},
        {"refused memory loses no load", refused_memory_loses_no_load},
        {NULL, NULL},
    };
    return moon_unit_main("receiver", cases, argc, argv);
}
