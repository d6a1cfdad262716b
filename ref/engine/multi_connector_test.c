/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of composed connectors: who is asked, who wins, who is told, when a request is sent; and of the delivery. */
#include "ref/engine/multi_connector.h"

#include "ref/base/unit.h"
#include "ref/engine/delivery.h"

/* A child that answers as it is told and remembers. */
struct child {
    struct moon_engine_port port; /* first member */
    struct moon_engine_match answer;
    int status;
    bool delays, resets;
    int asked, stepped, reset_calls, told;
    int64_t external_tokens;
    bool saw_blocks;
    uint64_t job;
};

static int match(struct moon_engine_port *self, const struct moon_request *request, int64_t computed_tokens,
                 struct moon_engine_match *out, struct moon_error *error) {
    struct child *child = (struct child *)self;
    (void)request;
    (void)computed_tokens;
    child->asked++;
    *out = child->answer;
    return child->status ? moon_fail(error, (enum moon_status)child->status, NULL, "told to") : 0;
}

static int allocated(struct moon_engine_port *self, const struct moon_request *request,
                     const struct moon_block_table *tables, int64_t external_tokens, struct moon_error *error) {
    struct child *child = (struct child *)self;
    (void)request;
    child->told++;
    child->external_tokens = external_tokens;
    child->saw_blocks = tables != NULL;
    return child->status ? moon_fail(error, (enum moon_status)child->status, NULL, "told to") : 0;
}

static int step(struct moon_engine_port *self, const struct moon_step *what, struct moon_error *error) {
    struct child *child = (struct child *)self;
    (void)what;
    child->stepped++;
    return child->status ? moon_fail(error, (enum moon_status)child->status, NULL, "told to") : 0;
}

static bool finished(struct moon_engine_port *self, const struct moon_request *request, bool has_blocks) {
    (void)request;
    (void)has_blocks;
    return ((struct child *)self)->delays;
}

static int report(struct moon_engine_port *self, size_t place, uint64_t job, int64_t ranks, struct moon_error *error) {
    (void)place;
    (void)ranks;
    (void)error;
    ((struct child *)self)->job = job;
    return 0;
}

static bool reset(struct moon_engine_port *self) {
    ((struct child *)self)->reset_calls++;
    return ((struct child *)self)->resets;
}

static const struct moon_engine_port child_port = {match, allocated, step, finished, report, reset};
static const struct moon_request request = {.slot = 40, .prompt_tokens = 10, .known_tokens = 10};

struct family {
    struct child children[3];
    struct moon_multi_connector multi;
};

static void open_family(struct family *family, const char *profile, struct moon_memory *memory) {
    struct moon_engine_port *ports[3];
    *family = (struct family){0};
    for (size_t i = 0; i < 3; i++) {
        family->children[i] = (struct child){.port = child_port, .resets = true};
        ports[i] = &family->children[i].port;
    }
    moon_multi_connector_open(&family->multi, moon_profile_find(profile, NULL), ports, 3, memory);
}

static int ask(struct family *family, struct moon_engine_match *out, struct moon_error *error) {
    return family->multi.port.match(&family->multi.port, &request, 0, out, error);
}

static void the_first_with_tokens_wins_and_all_are_asked(void) {
    struct family family;
    struct moon_engine_match out;
    struct moon_error error;
    static const struct moon_block_table table = {NULL, 0};
    open_family(&family, "0.33", moon_memory_heap());
    family.children[1].answer = (struct moon_engine_match){.tokens = 5, .load_async = true};
    family.children[2].answer = (struct moon_engine_match){.tokens = 9};
    MOON_CHECK_INT(ask(&family, &out, &error), 0);
    MOON_CHECK_INT(out.tokens, 5);
    CU_ASSERT(out.load_async && !out.pending);
    MOON_CHECK_INT(family.children[2].asked, 1);
    MOON_CHECK_INT(family.multi.port.allocated(&family.multi.port, &request, &table, 5, &error), 0);
    MOON_CHECK_INT(family.children[0].external_tokens, 0);
    MOON_CHECK_INT(family.children[1].external_tokens, 5);
    MOON_CHECK_INT(family.children[2].external_tokens, 0);
    CU_ASSERT(family.children[0].saw_blocks && family.children[1].saw_blocks);
    MOON_CHECK_INT(family.multi.port.step(&family.multi.port, NULL, &error), 0);
    MOON_CHECK_INT(family.children[2].stepped, 1);
    moon_multi_connector_close(&family.multi);
}

static void up_to_0_25_losers_see_no_blocks(void) {
    struct family family;
    struct moon_engine_match out;
    struct moon_error error;
    static const struct moon_block_table table = {NULL, 0};
    open_family(&family, "0.25", moon_memory_heap());
    family.children[1].answer.tokens = 5;
    MOON_CHECK_INT(ask(&family, &out, &error), 0);
    MOON_CHECK_INT(family.multi.port.allocated(&family.multi.port, &request, &table, 5, &error), 0);
    CU_ASSERT(!family.children[0].saw_blocks && family.children[1].saw_blocks && !family.children[2].saw_blocks);
    moon_multi_connector_close(&family.multi);
}

static void a_pending_child_makes_the_question_pending(void) {
    struct family family;
    struct moon_engine_match out;
    struct moon_error error;
    open_family(&family, "0.33", moon_memory_heap());
    family.children[0].answer.tokens = 4;
    family.children[1].answer.pending = true;
    MOON_CHECK_INT(ask(&family, &out, &error), 0);
    CU_ASSERT(out.pending && !out.load_async);
    MOON_CHECK_INT(out.tokens, 0);
    MOON_CHECK_INT(family.children[2].asked, 0);
    moon_multi_connector_close(&family.multi);
}

static void nobody_has_tokens(void) {
    struct family family;
    struct moon_engine_match out;
    struct moon_error error;
    open_family(&family, "0.33", moon_memory_heap());
    MOON_CHECK_INT(ask(&family, &out, &error), 0);
    CU_ASSERT(!out.pending && out.tokens == 0);
    MOON_CHECK_INT(family.multi.port.allocated(&family.multi.port, &request, NULL, 0, &error), 0);
    MOON_CHECK_INT(family.children[2].told, 1);
    moon_multi_connector_close(&family.multi);
}

static void the_last_of_the_delaying_children_ends_the_sending(void) {
    struct family family;
    open_family(&family, "0.27", moon_memory_heap());
    struct moon_engine_port *port = &family.multi.port;
    CU_ASSERT(!port->finished(port, &request, true));
    family.children[1].delays = true;
    CU_ASSERT(port->finished(port, &request, true));
    CU_ASSERT(moon_multi_connector_sent(&family.multi, request.slot));
    family.children[0].delays = family.children[2].delays = true;
    CU_ASSERT(port->finished(port, &request, true));
    CU_ASSERT(!moon_multi_connector_sent(&family.multi, request.slot));
    CU_ASSERT(!moon_multi_connector_sent(&family.multi, request.slot));
    CU_ASSERT(moon_multi_connector_sent(&family.multi, request.slot));
    moon_multi_connector_close(&family.multi);
}

static void reports_go_to_the_child_that_they_name(void) {
    struct family family;
    struct moon_error error;
    open_family(&family, "0.33", moon_memory_heap());
    struct moon_engine_port *port = &family.multi.port;
    MOON_CHECK_INT(port->report(port, 1, 7, 2, &error), 0);
    MOON_CHECK_INT(family.children[1].job, 7);
    MOON_CHECK_INT(family.children[0].job, 0);
    MOON_CHECK_INT(port->report(port, 3, 7, 2, &error), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "a worker reports for connector 3 of 3");
    moon_multi_connector_close(&family.multi);
}

static void one_failed_reset_fails_all_and_stops_none(void) {
    struct family family;
    open_family(&family, "0.33", moon_memory_heap());
    CU_ASSERT(family.multi.port.reset(&family.multi.port));
    family.children[0].resets = false;
    CU_ASSERT(!family.multi.port.reset(&family.multi.port));
    MOON_CHECK_INT(family.children[2].reset_calls, 2);
    moon_multi_connector_close(&family.multi);
}

static void a_child_that_fails_ends_the_call(void) {
    struct family family;
    struct moon_engine_match out;
    struct moon_error error;
    open_family(&family, "0.33", moon_memory_heap());
    family.children[0].status = MOON_ERR_REFUSED;
    MOON_CHECK_INT(ask(&family, &out, &error), MOON_ERR_REFUSED);
    MOON_CHECK_INT(family.children[1].asked, 0);
    MOON_CHECK_INT(family.multi.port.allocated(&family.multi.port, &request, NULL, 0, &error), MOON_ERR_REFUSED);
    MOON_CHECK_INT(family.multi.port.step(&family.multi.port, NULL, &error), MOON_ERR_REFUSED);
    MOON_CHECK_INT(family.children[1].told + family.children[1].stepped, 0);
    moon_multi_connector_close(&family.multi);
}

/* ---- delivery ---- */

static void a_wanted_prompt_is_offered_once_and_told_in_a_step(void) {
    struct moon_delivery delivery;
    struct moon_engine_match out;
    struct moon_error error;
    moon_delivery_open(&delivery, moon_memory_heap());
    struct moon_engine_port *port = &delivery.port;
    MOON_CHECK_INT(port->match(port, &request, 0, &out, &error), 0);
    MOON_CHECK_INT(out.tokens, 0); /* nobody wants it */
    MOON_CHECK_INT(moon_delivery_want(&delivery, request.slot), 0);
    MOON_CHECK_INT(port->match(port, &request, 4, &out, &error), 0);
    MOON_CHECK_INT(out.tokens, 6);
    CU_ASSERT(out.load_async);
    MOON_CHECK_INT(port->match(port, &request, 10, &out, &error), 0);
    MOON_CHECK_INT(out.tokens, 0); /* all of it is there */
    MOON_CHECK_INT(port->allocated(port, &request, NULL, 0, &error), 0);
    MOON_CHECK_INT(port->allocated(port, &request, NULL, 6, &error), 0);
    MOON_CHECK_INT(port->allocated(port, &request, NULL, 6, &error), 0); /* no more */
    MOON_CHECK_INT(port->step(port, NULL, &error), 0);
    MOON_CHECK_INT(delivery.count, 1);
    MOON_CHECK_INT(delivery.items[0].slot, 40);
    MOON_CHECK_INT(delivery.items[0].first_tokens, 4);
    MOON_CHECK_INT(port->step(port, NULL, &error), 0);
    MOON_CHECK_INT(delivery.count, 0);
    MOON_CHECK_INT(port->report(port, 0, 1, 1, &error), MOON_ERR_RANGE);
    CU_ASSERT(port->reset(port) && !port->finished(port, &request, true));
    moon_delivery_close(&delivery);
    moon_delivery_close(&delivery);
}

static void many_prompts_come_in_one_step(void) {
    struct moon_delivery delivery;
    struct moon_error error;
    struct moon_request one = request;
    moon_delivery_open(&delivery, moon_memory_heap());
    for (int round = 0; round < 2; round++) {
        for (one.slot = 0; one.slot < 9; one.slot++) {
            MOON_CHECK_INT(moon_delivery_want(&delivery, one.slot), 0);
            MOON_CHECK_INT(delivery.port.allocated(&delivery.port, &one, NULL, 10, &error), 0);
            MOON_CHECK_INT(delivery.count, round == 0 ? 0 : 9); /* those of the step before are still there */
        }
        MOON_CHECK_INT(delivery.port.step(&delivery.port, NULL, &error), 0);
        MOON_CHECK_INT(delivery.count, 9);
        MOON_CHECK_INT(delivery.items[8].slot, 8);
    }
    moon_delivery_close(&delivery);
}

/* One request from a wish to its step, and one child's victory. */
static int live(struct moon_memory *memory, const void *context) {
    (void)context;
    struct moon_delivery delivery;
    struct family family;
    struct moon_error error;
    struct moon_engine_match out;
    moon_delivery_open(&delivery, memory);
    open_family(&family, "0.33", memory);
    family.children[0].answer.tokens = 3;
    family.children[0].delays = family.children[1].delays = true;
    int status = ask(&family, &out, &error);
    family.multi.port.finished(&family.multi.port, &request, true);
    if (!status)
        status = moon_delivery_want(&delivery, request.slot);
    if (!status)
        status = delivery.port.allocated(&delivery.port, &request, NULL, 10, &error);
    moon_delivery_close(&delivery);
    moon_multi_connector_close(&family.multi);
    return status;
}

static void refused_memory_is_told_and_leaks_nothing(void) {
    moon_unit_refuse_memory(live, NULL);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"the first with tokens wins, and all are asked", the_first_with_tokens_wins_and_all_are_asked},
        {"up to 0.25 children that load nothing see no blocks", up_to_0_25_losers_see_no_blocks},
        {"a pending child makes the question pending", a_pending_child_makes_the_question_pending},
        {"if nobody has tokens all are told of none", nobody_has_tokens},
        {"the last of the delaying children ends the sending", the_last_of_the_delaying_children_ends_the_sending},
        {"reports go to the child that they name", reports_go_to_the_child_that_they_name},
        {"one failed reset fails all and stops none", one_failed_reset_fails_all_and_stops_none},
        {"a child that fails ends the call", a_child_that_fails_ends_the_call},
        {"a wanted prompt is offered once and told in a step", a_wanted_prompt_is_offered_once_and_told_in_a_step},
        {"many prompts come in one step", many_prompts_come_in_one_step},
        {"refused memory is told and leaks nothing", refused_memory_is_told_and_leaks_nothing},
        {NULL, NULL}};
    return moon_unit_main("composed connectors", cases, argc, argv);
}
