/* SPDX-License-Identifier: Apache-2.0 */
/* Plays a scenario: begins what is ready, does what is due, until all has ended or nothing happens any more. */
#include "conformance/worlds/runner.h"

#include "conformance/io.h"
#include "conformance/process.h"
#include "conformance/worlds/run.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SETUP_ATTEMPTS_MAX = 600 };
/* A lease is over for sure when a little more time has passed: clocks of nodes drift by up to 100 millionths. */
static const moon_ns LEASE_MARGIN_NS = MOON_NS_PER_MS;
enum { LEASE_MARGIN_PART = 1000 };
/* Releases look once a second whether a time of theirs is over. */
static const moon_ns FLAG_MARGIN_NS = 1500 * MOON_NS_PER_MS;

void moon_run_end(struct moon_run *run, enum moon_outcome outcome, const char *format, ...) {
    char text[2048];
    va_list arguments;
    if (run->failed)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    run->failed = true;
    run->play->outcome = outcome;
    run->play->reason = moon_arena_copy(run->arena, text, strlen(text));
}

static const char *node_name(const struct moon_run *run, size_t node) {
    return run->scenario->nodes[node].name;
}

/* ---- nodes ---- */

static int set_up(struct moon_run *run, size_t index, struct moon_error *error) {
    struct moon_run_node *node = &run->nodes[index];
    node->state = MOON_RUN_SETTING_UP;
    node->attempts++;
    node->setup = (struct moon_world_call){
        .node = index, .what = MOON_DO_SETUP, .results = &node->setup_result, .digests = &node->setup_digest};
    return run->world->kind->submit(run->world, &node->setup, error);
}

static void is_ready(struct moon_run *run, size_t index) {
    struct moon_run_node *node = &run->nodes[index];
    node->state = MOON_RUN_READY;
    if (node->restarting != MOON_SCENARIO_NONE)
        run->actions[node->restarting].done = true;
    node->restarting = MOON_SCENARIO_NONE;
}

int moon_run_boot(struct moon_run *run, size_t index, size_t action, struct moon_error *error) {
    struct moon_run_node *node = &run->nodes[index];
    if (node->state != MOON_RUN_DOWN && moon_run_act(run, MOON_ACT_KILL, index, 0, error) != 0)
        return error->status;
    node->restarting = action;
    node->starts++;
    node->attempts = 0;
    int status = run->world->kind->boot(run->world, index, error);
    if (status == 0 && index > 0)
        return set_up(run, index, error);
    if (status == 0)
        is_ready(run, index);
    return status;
}

int moon_run_act(struct moon_run *run, enum moon_scenario_act what, size_t node, size_t other,
                 struct moon_error *error) {
    int status = run->world->kind->act(run->world, what, node, other, error);
    if (what == MOON_ACT_KILL)
        run->nodes[node].state = MOON_RUN_DOWN;
    return status;
}

static size_t node_token(const struct moon_run *run, size_t node) {
    return run->scenario->operation_count + run->scenario->action_count + node;
}

/* Faults may hit a set-up, too: then it is tried again, as whoever starts the process would. */
static int setup_ended(struct moon_run *run, size_t index, struct moon_error *error) {
    struct moon_run_node *node = &run->nodes[index];
    if (node->setup.lost)
        return 0;
    if (node->setup_result == 0) {
        is_ready(run, index);
        return 0;
    }
    if (run->faults && node->attempts < SETUP_ATTEMPTS_MAX)
        return run->world->kind->wake(run->world, MOON_NS_PER_S, node_token(run, index), error);
    moon_run_end(run, MOON_OUTCOME_FAIL, "the set-up of %s gave %lld", node_name(run, index),
                 (long long)node->setup_result);
    return 0;
}

/* ---- operations ---- */

static bool are_met(const struct moon_run *run, const struct moon_condition *after, size_t count) {
    for (size_t i = 0; i < count; i++) {
        size_t index = after[i].index;
        bool met = after[i].kind == MOON_CONDITION_OPERATION ? run->operations[index].ended
                   : after[i].kind == MOON_CONDITION_ACTION  ? run->actions[index].done
                                                             : run->anchors[index];
        if (!met)
            return false;
    }
    return true;
}

/* The next repetition of an operation. */
static int ask(struct moon_run *run, size_t index, struct moon_error *error) {
    const struct moon_scenario_operation *asked = &run->scenario->operations[index];
    struct moon_run_operation *operation = &run->operations[index];
    const char **keys = moon_arena_array(run->arena, asked->key_count, sizeof *keys);
    for (size_t i = 0; keys && i < asked->key_count; i++) {
        keys[i] = moon_scenario_key(run->arena, asked->keys[i], operation->repetition);
        if (!keys[i])
            return moon_no_memory(error);
    }
    if (!keys)
        return moon_no_memory(error);
    operation->call = (struct moon_world_call){
        .node = asked->node,
        .what = asked->what,
        .keys = keys,
        .key_count = asked->key_count,
        .bytes = asked->bytes,
        .fill = asked->fill + (uint64_t)operation->repetition * asked->key_count,
        .force = asked->force,
        .results = operation->results + operation->result_count,
        .digests = operation->digests + operation->result_count,
    };
    operation->running = true;
    int status = run->world->kind->submit(run->world, &operation->call, error);
    return status == 0 ? moon_run_draw_faults(run, asked->node, error) : status;
}

static int begin_operation(struct moon_run *run, size_t index, struct moon_error *error) {
    struct moon_run_operation *operation = &run->operations[index];
    const struct moon_scenario_operation *asked = &run->scenario->operations[index];
    size_t room = (size_t)asked->repeat * (asked->key_count > 0 ? asked->key_count : 1);
    operation->begun = true;
    operation->results = moon_arena_array(run->arena, room, sizeof *operation->results);
    operation->digests = moon_arena_array(run->arena, room, sizeof *operation->digests);
    if (!operation->results || !operation->digests)
        return moon_no_memory(error);
    if (asked->pause_ns == 0 || !run->world->kind->virtual_time)
        return ask(run, index, error);
    operation->paused = true;
    return run->world->kind->wake(run->world, asked->pause_ns, index, error);
}

static int call_ended(struct moon_run *run, struct moon_world_call *call, struct moon_error *error) {
    if (call->what == MOON_DO_SETUP)
        return setup_ended(run, call->node, error);
    size_t index = 0;
    while (&run->operations[index].call != call)
        index++;
    struct moon_run_operation *operation = &run->operations[index];
    size_t results = call->key_count > 0 ? call->key_count : 1;
    for (size_t i = 0; i < results && call->lost; i++)
        call->results[i] = MOON_CODE_LOST;
    operation->running = false;
    operation->result_count += results;
    operation->repetition++;
    operation->ended = operation->repetition == run->scenario->operations[index].repeat;
    return 0;
}

/* ---- actions ---- */

static int wait_for(struct moon_run *run, size_t action, moon_ns time_ns, struct moon_error *error) {
    return run->world->kind->wake(run->world, time_ns, run->scenario->operation_count + action, error);
}

static int do_action(struct moon_run *run, size_t index, struct moon_error *error) {
    const struct moon_scenario_action *action = &run->scenario->actions[index];
    run->actions[index].begun = true;
    if (action->what == MOON_ACT_EXPIRE)
        return wait_for(run, index, action->of_ns + FLAG_MARGIN_NS, error);
    if (action->what == MOON_ACT_RESTART)
        return moon_run_boot(run, action->node, index, error);
    run->actions[index].done = true;
    return moon_run_act(run, action->what, action->node, action->other, error);
}

/* True if `action` waits for the lease that this anchor's record tells. */
static bool waits_for_lease(const struct moon_scenario_action *action, size_t anchor) {
    bool named = action->before == anchor;
    for (size_t i = 0; i < action->after_count; i++)
        named |= action->after[i].kind == MOON_CONDITION_ANCHOR && action->after[i].index == anchor;
    return named && action->what == MOON_ACT_EXPIRE && action->of_ns == MOON_NS_NEVER;
}

static int wait_for_lease(struct moon_run *run, size_t action, const struct moon_world_event *event,
                          struct moon_error *error) {
    moon_ns left = event->lease_left_ns;
    if (left == MOON_NS_NEVER) {
        moon_run_end(run, MOON_OUTCOME_ERROR, "action %s: the record \"%s\" of %s tells no lease",
                     run->scenario->actions[action].id, run->scenario->anchors[event->anchor].what,
                     node_name(run, run->scenario->anchors[event->anchor].node));
        return 0;
    }
    left = left > 0 ? left : 0;
    left += left / LEASE_MARGIN_PART + LEASE_MARGIN_NS;
    return wait_for(run, action, left, error);
}

/* ---- what is ready ---- */

static int begin_ready(struct moon_run *run, bool *any, struct moon_error *error) {
    const struct moon_scenario *scenario = run->scenario;
    for (size_t i = 0; i < scenario->action_count; i++) {
        const struct moon_scenario_action *action = &scenario->actions[i];
        if (run->actions[i].begun || action->before != MOON_SCENARIO_NONE ||
            (action->what == MOON_ACT_EXPIRE && action->of_ns == MOON_NS_NEVER) ||
            !are_met(run, action->after, action->after_count))
            continue;
        *any = true;
        if (do_action(run, i, error) != 0)
            return error->status;
    }
    for (size_t i = 0; i < scenario->operation_count && run->started; i++) {
        struct moon_run_operation *operation = &run->operations[i];
        const struct moon_scenario_operation *asked = &scenario->operations[i];
        if (run->nodes[asked->node].state != MOON_RUN_READY || operation->ended || operation->running ||
            operation->paused || (!operation->begun && !are_met(run, asked->after, asked->after_count)))
            continue;
        *any = true;
        int status = operation->begun ? ask(run, i, error) : begin_operation(run, i, error);
        if (status != 0)
            return status;
    }
    return 0;
}

static int start_next(struct moon_run *run, struct moon_error *error) {
    while (run->next_start == 0 ||
           (run->next_start < run->scenario->node_count && run->nodes[run->next_start - 1].state == MOON_RUN_READY)) {
        int status = moon_run_boot(run, run->next_start++, MOON_SCENARIO_NONE, error);
        if (status != 0)
            return status;
    }
    run->started |=
        run->next_start == run->scenario->node_count && run->nodes[run->next_start - 1].state == MOON_RUN_READY;
    return 0;
}

static int pump(struct moon_run *run, struct moon_error *error) {
    int status = run->started ? 0 : start_next(run, error);
    for (bool any = true; any && status == 0 && !run->failed;) {
        any = false;
        status = begin_ready(run, &any, error);
    }
    return status;
}

/* ---- events ---- */

static int stepped(struct moon_run *run, const struct moon_world_event *event, struct moon_error *error) {
    const struct moon_scenario *scenario = run->scenario;
    size_t node = scenario->anchors[event->anchor].node, starts = run->nodes[node].starts;
    bool waits = false;
    int status = 0;
    run->anchors[event->anchor] = true;
    for (size_t i = 0; i < scenario->action_count && status == 0; i++) {
        const struct moon_scenario_action *action = &scenario->actions[i];
        if (waits_for_lease(action, event->anchor)) {
            waits |= action->before == event->anchor;
            status = wait_for_lease(run, i, event, error);
        } else if (action->before == event->anchor) {
            waits |= action->what == MOON_ACT_EXPIRE;
            status = do_action(run, i, error);
        }
    }
    if (status == 0)
        status = pump(run, error);
    bool same = run->nodes[node].state != MOON_RUN_DOWN && run->nodes[node].starts == starts;
    return status == 0 && same && !waits && !run->failed ? run->world->kind->go(run->world, event->anchor, error)
                                                         : status;
}

/* The lease is over for which this action waits. */
static int expired(struct moon_run *run, size_t index, struct moon_error *error) {
    const struct moon_scenario_action *action = &run->scenario->actions[index];
    run->actions[index].begun = true;
    run->actions[index].done = are_met(run, action->after, action->after_count);
    if (action->before == MOON_SCENARIO_NONE)
        return 0;
    size_t node = run->scenario->anchors[action->before].node;
    return run->nodes[node].state == MOON_RUN_DOWN ? 0 : run->world->kind->go(run->world, action->before, error);
}

static int woke(struct moon_run *run, size_t token, struct moon_error *error) {
    size_t operations = run->scenario->operation_count, actions = run->scenario->action_count;
    if (token < operations) {
        const struct moon_run_node *node = &run->nodes[run->scenario->operations[token].node];
        run->operations[token].paused = false;
        return node->state == MOON_RUN_READY ? ask(run, token, error) : 0;
    }
    if (token < operations + actions)
        return expired(run, token - operations, error);
    token -= operations + actions;
    if (token >= MOON_SCENARIO_NODES_MAX)
        return moon_run_fault(run, token - MOON_SCENARIO_NODES_MAX, error);
    return run->nodes[token].state == MOON_RUN_SETTING_UP ? set_up(run, token, error) : 0;
}

static bool all_ended(const struct moon_run *run) {
    bool all = run->started && run->faults_open == 0;
    for (size_t i = 0; i < run->scenario->operation_count && all; i++)
        all = run->operations[i].ended;
    for (size_t i = 0; i < run->scenario->action_count && all; i++)
        all = run->actions[i].done;
    return all;
}

/* Nothing happens any more: what was waited for? */
static void tell_quiet(struct moon_run *run) {
    const struct moon_scenario *scenario = run->scenario;
    if (!run->started) {
        moon_run_end(run, MOON_OUTCOME_TIMEOUT, "the set-up of %s did not end", node_name(run, run->next_start - 1));
        return;
    }
    for (size_t i = 0; i < scenario->operation_count; i++)
        if (!run->operations[i].ended) {
            moon_run_end(run, MOON_OUTCOME_TIMEOUT, "operation %s (%s of %s) %s", scenario->operations[i].id,
                         moon_scenario_do_name(scenario->operations[i].what),
                         node_name(run, scenario->operations[i].node),
                         run->operations[i].begun ? "did not end"
                                                  : "did not begin: what it waits for did not happen, or its node "
                                                    "is down");
            return;
        }
    for (size_t i = 0; i < scenario->action_count; i++)
        if (!run->actions[i].done)
            moon_run_end(run, MOON_OUTCOME_TIMEOUT, "action %s (%s) was not done: what it waits for did not happen",
                         scenario->actions[i].id, moon_scenario_act_name(scenario->actions[i].what));
    moon_run_end(run, MOON_OUTCOME_TIMEOUT, "a fault did not end");
}

static int go_through(struct moon_run *run, struct moon_error *error) {
    int status = pump(run, error);
    while (status == 0 && !run->failed && !all_ended(run)) {
        struct moon_world_event event = {.kind = MOON_WORLD_QUIET};
        status = run->world->kind->advance(run->world, &event, error);
        if (status != 0)
            break;
        if (event.kind == MOON_WORLD_QUIET)
            tell_quiet(run);
        else if (event.kind == MOON_WORLD_ENDED)
            status = call_ended(run, event.call, error);
        else if (event.kind == MOON_WORLD_STEP)
            status = stepped(run, &event, error);
        else
            status = woke(run, event.token, error);
        if (status == 0 && event.kind != MOON_WORLD_STEP)
            status = pump(run, error);
    }
    return status;
}

/* ---- a whole run ---- */

static int open_run(struct moon_run *run, const struct moon_scenario *scenario, struct moon_error *error) {
    struct moon_random root, mix;
    struct moon_scenario *own = moon_arena_alloc(run->arena, sizeof *own);
    if (!own)
        return moon_no_memory(error);
    *own = *scenario;
    own->strict |= run->setting->strict;
    moon_random_seed(&root, run->setting->seed);
    mix = moon_random_split(&root, "mix");
    run->random = moon_random_split(&root, "faults");
    run->scenario = own;
    int status = moon_scenario_draw(run->arena, own, &mix, error);
    run->operations = moon_arena_array(run->arena, own->operation_count, sizeof *run->operations);
    run->actions = moon_arena_array(run->arena, own->action_count, sizeof *run->actions);
    run->anchors = moon_arena_array(run->arena, own->anchor_count, sizeof *run->anchors);
    for (size_t i = 0; i < MOON_SCENARIO_NODES_MAX; i++)
        run->nodes[i].restarting = MOON_SCENARIO_NONE;
    return status == 0 && (!run->operations || !run->actions || !run->anchors) ? moon_no_memory(error) : status;
}

/* A failure of the world itself: no memory ends all; the rest is told as what came of the run. */
static int settle(struct moon_run *run, int status, const struct moon_error *error) {
    if (status == 0 || status == MOON_ERR_MEMORY)
        return status;
    moon_run_end(run, MOON_OUTCOME_ERROR, "%s%s%s", error->where, error->where[0] ? ": " : "", error->message);
    return 0;
}

static const char *reproduce(const struct moon_run *run) {
    const struct moon_play_setting *setting = run->setting;
    const char *mode = setting->strict ? " --mode strict" : "", *client = "", *master = "";
    if (setting->kind == &moon_world_sim)
        return moon_arena_format(run->arena, "mooncheck sim %s --seed %llu%s", run->scenario->source,
                                 (unsigned long long)setting->seed, mode);
    if (setting->client)
        client = moon_arena_format(run->arena, " --client 'cmd:%s'", setting->client);
    if (setting->master)
        master = moon_arena_format(run->arena, " --target wire:%s", setting->master);
    if (!client || !master)
        return NULL;
    return moon_arena_format(run->arena, "mooncheck run --world %s %s --seed %llu%s%s%s", setting->kind->name,
                             run->scenario->source, (unsigned long long)setting->seed, mode, client, master);
}

static int play_in_world(struct moon_run *run, const char *folder, struct moon_error *error) {
    const struct moon_play_setting *setting = run->setting;
    struct moon_world_setting world = {.memory = moon_memory_heap(),
                                       .seed = setting->seed,
                                       .programs = setting->programs,
                                       .folder = folder,
                                       .client = setting->client,
                                       .master = setting->master};
    const char *why = setting->kind->cannot(&world, run->scenario, run->arena);
    if (why) {
        moon_run_end(run, MOON_OUTCOME_SKIP, "%s", why);
        return 0;
    }
    int status = settle(run, setting->kind->open(&world, run->scenario, &run->world, error), error);
    if (status == 0 && run->world)
        status = settle(run, go_through(run, error), error);
    if (status == 0 && run->world)
        status = settle(run, setting->kind->history(run->world, &run->play->history, error), error);
    if (status == 0 && !run->failed)
        status = moon_run_judge(run, error);
    run->play->account = moon_run_account(run);
    if (run->world)
        setting->kind->close(run->world);
    return status;
}

static int write_artefacts(struct moon_run *run, const char *folder, struct moon_error *error) {
    struct moon_text text;
    const char *history = moon_arena_format(run->arena, "%s/history.jsonl", folder),
               *account = moon_arena_format(run->arena, "%s/account.txt", folder),
               *copy = moon_arena_format(run->arena, "%s/scenario.json", folder);
    if (!history || !account || !copy || !run->play->account)
        return moon_no_memory(error);
    moon_text_open(&text, moon_memory_heap());
    moon_history_write_json(&run->play->history, &text);
    int status =
        text.failed ? moon_no_memory(error) : moon_io_write(history, moon_text_value(&text), text.length, error);
    if (status == 0)
        status = moon_io_write(account, run->play->account, strlen(run->play->account), error);
    moon_text_clear(&text);
    if (status == 0 && moon_io_read(run->scenario->source, MOON_JSON_INPUT_BYTES_MAX, &text, error) == 0)
        status = moon_io_write(copy, moon_text_value(&text), text.length, error);
    moon_text_close(&text);
    return status;
}

/* The folder of this run, without what an earlier run left there. */
static int make_folder(struct moon_arena *arena, const char *folder, struct moon_error *error) {
    const char *const *paths = NULL;
    size_t count = 0;
    int status = moon_io_make_folder(folder, error);
    if (status == 0)
        status = moon_io_list(arena, folder, &paths, &count, error);
    for (size_t i = 0; i < count && status == 0; i++)
        unlink(paths[i]);
    return status;
}

int moon_play(struct moon_arena *arena, const struct moon_scenario *scenario, const struct moon_play_setting *setting,
              struct moon_play *play, struct moon_error *error) {
    struct moon_run run = {.arena = arena, .setting = setting, .play = play};
    uint64_t began_ns = moon_now_ns();
    const char *folder = NULL;
    int status = 0;
    *play = (struct moon_play){.outcome = MOON_OUTCOME_PASS, .reason = "", .requirement = "WORLD-001"};
    play->required = play->done = play->expected = play->seen = play->account = "";
    moon_history_open(&play->history, moon_memory_heap());
    if (setting->out) {
        folder = moon_arena_format(arena, "%s/%s.%s", setting->out, scenario->id, setting->kind->name);
        status = folder ? make_folder(arena, folder, error) : moon_no_memory(error);
    }
    if (status == 0)
        status = open_run(&run, scenario, error);
    if (status == 0)
        status = play_in_world(&run, folder, error);
    if (status == 0) {
        play->reproduce = reproduce(&run);
        play->digest = moon_history_digest(&play->history, moon_memory_heap());
        play->duration_ns = moon_now_ns() - began_ns;
        if (folder && play->outcome != MOON_OUTCOME_SKIP)
            status = write_artefacts(&run, folder, error);
    }
    return status == 0 && (!play->reason || !play->reproduce || !play->account) ? moon_no_memory(error) : status;
}

void moon_play_close(struct moon_play *play) {
    moon_history_close(&play->history);
}
