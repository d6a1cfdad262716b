/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of scenarios: what it reads, and how it refuses what is wrong. */
#include "conformance/worlds/scenario.h"

#include "ref/base/unit.h"

/* A good scenario in single quotes, and where tests put their own. */
#define HEAD                                                                                                           \
    "{'schema':'mooncheck-scenario/1','id':'t','title':'It works','guide':['G1'],"                                     \
    "'store':{'release':'mooncake-0.3.13.post1'%s},'owners':[{'name':'o','memory_bytes':65536}],"                      \
    "'requesters':[{'name':'a'},{'name':'b'}]%s}"
#define PUT "{'id':'p','node':'a','do':'put','key':'k','bytes':10,'fill':1}"
#define GET "{'id':'g','node':'b','do':'get','key':'k-{i}','bytes':10,'repeat':3,'after':['p']}"

static int read_text(struct moon_arena *arena, const char *store, const char *rest, struct moon_scenario *scenario,
                     struct moon_error *error) {
    char *text = moon_arena_format(arena, HEAD, store, rest);
    for (char *c = text; c && *c; c++)
        if (*c == '\'')
            *c = '"';
    return text ? moon_scenario_read(arena, "t.json", text, strlen(text), scenario, error) : MOON_ERR_MEMORY;
}

static void reads_all_members(void) {
    struct moon_arena arena;
    struct moon_scenario scenario;
    struct moon_error error = {.message = ""};
    moon_arena_open(&arena, moon_memory_heap());
    int status = read_text(
        &arena, ",'mode':'strict','flags':{'client_ttl':3,'default_kv_lease_ttl':7,'eviction_ratio':0.05}",
        ",'operations':[" PUT "," GET
        ",{'id':'m','node':'o','do':'batch_put','keys':['x','y'],'bytes':1,'fill':7,'after':['dies',"
        "{'node':'master','what':'lease','kind':'state','key':'k*','occurrence':2}]}],"
        "'schedule':[{'id':'dies','before':{'node':'a','what':'PutEnd'},'do':'kill','node':'a'},"
        "{'id':'over','after':['p'],'do':'expire','of':'client_ttl'}],"
        "'expect':{'codes':{'p':[0,'lost'],'g':{'each':[1,2,3]}},'digests':{'g':1},'deviations':['mooncake.5.1']}",
        &scenario, &error);
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_INT(status, 0);
    if (status == 0) {
        MOON_CHECK_INT(scenario.node_count, 4);
        MOON_CHECK_TEXT(scenario.nodes[0].name, "master");
        MOON_CHECK_INT(scenario.nodes[1].memory_bytes, 65536);
        CU_ASSERT(scenario.strict);
        MOON_CHECK_INT(scenario.master.client_ttl_ns, 3 * MOON_NS_PER_S);
        MOON_CHECK_INT(scenario.master.lease_ttl_ns, 7 * MOON_NS_PER_MS);
        MOON_CHECK_INT(scenario.master.eviction_millionths, 50000);
        MOON_CHECK_INT(scenario.anchor_count, 2);
        MOON_CHECK_INT(scenario.anchors[0].before, false);
        MOON_CHECK_INT(scenario.anchors[0].kind, MOON_RECORD_STATE);
        MOON_CHECK_INT(scenario.anchors[0].occurrence, 2);
        MOON_CHECK_INT(scenario.anchors[1].before, true);
        MOON_CHECK_INT(scenario.anchors[1].node, 2);
        MOON_CHECK_INT(scenario.actions[0].before, 1);
        MOON_CHECK_INT(scenario.actions[1].of_ns, 3 * MOON_NS_PER_S);
        MOON_CHECK_INT(scenario.operations[1].after[0].kind, MOON_CONDITION_OPERATION);
        MOON_CHECK_INT(scenario.operations[2].after[0].kind, MOON_CONDITION_ACTION);
        MOON_CHECK_INT(scenario.operations[2].after[1].kind, MOON_CONDITION_ANCHOR);
        MOON_CHECK_INT(scenario.codes[0].allowed[1] == MOON_CODE_LOST, true);
        MOON_CHECK_INT(scenario.codes[1].each, true);
        MOON_CHECK_TEXT(moon_scenario_key(&arena, "k-{i}-x", 12), "k-12-x");
        MOON_CHECK_TEXT(moon_scenario_key(&arena, "plain", 12), "plain");
    }
    moon_arena_close(&arena);
}

/* store members, members of the root, place, words of the message. */
struct fault {
    const char *store, *rest, *where, *message;
};

static const struct fault faults[] = {
    {"", ",'operation':[]", "t.json:1:", "did you mean \"operations\""},
    {"", ",'operations':[]", "$", "needs \"operations\" or \"mix\""},
    {",'mode':'loose'", ",'operations':[" PUT "]", "$.store.mode", "is none of: compat, strict"},
    {",'flags':{'clientttl':3}", ",'operations':[" PUT "]", "$.store.flags", "did you mean \"client_ttl\""},
    {",'flags':{'client_ttl':0}", ",'operations':[" PUT "]", "$.store.flags.client_ttl", "1"},
    {",'flags':{'eviction_ratio':2}", ",'operations':[" PUT "]", "$.store.flags.eviction_ratio", "0 to 1"},
    {",'flags':{'put_start_release_timeout_sec':30}", ",'operations':[" PUT "]", "$.store.flags", "must be more than"},
    {"", ",'operations':[{'id':'p','node':'z','do':'put','key':'k','bytes':1,'fill':1}]", "$.operations[0].node",
     "is none of the clients: o, a, b"},
    {"", ",'operations':[{'id':'p','node':'master','do':'exist','key':'k'}]", "$.operations[0].node",
     "is none of the clients"},
    {"", ",'operations':[{'id':'p','node':'a','do':'putt','key':'k'}]", "$.operations[0].do", "did you mean \"put\""},
    {"", ",'operations':[{'id':'p','node':'a','do':'put','key':'k','bytes':1}]", "$.operations[0]",
     "\"put\" needs \"fill\""},
    {"", ",'operations':[{'id':'p','node':'a','do':'exist','key':'k','bytes':1}]", "$.operations[0].bytes",
     "\"bytes\" does not go with \"exist\""},
    {"", ",'operations':[{'id':'p','node':'a','do':'put','key':'k','bytes':0,'fill':1}]", "$.operations[0].bytes", "1"},
    {"", ",'operations':[{'id':'p','node':'a','do':'batch_get','keys':[],'bytes':1}]", "$.operations[0].keys",
     "1 to 256"},
    {"", ",'operations':[{'id':'p','node':'a','do':'exist','key':'k','repeat':20000}]", "$.operations[0].repeat",
     "10000"},
    {"", ",'operations':[" PUT "," PUT "]", "$.operations[1].id", "is there already"},
    {"", ",'operations':[{'id':'p','node':'a','do':'exist','key':'k','after':['q']}]", "$.operations[0].after[0]",
     "is no operation and no action"},
    {"",
     ",'operations':[{'id':'p','node':'a','do':'exist','key':'k','after':['q']},{'id':'q','node':'a','do':'exist',"
     "'key':'k','after':['p']}]",
     "$.operations[0].after", "for itself"},
    {"", ",'operations':[" PUT "],'schedule':[{'id':'x','after':['p'],'do':'kil','node':'a'}]", "$.schedule[0].do",
     "did you mean \"kill\""},
    {"", ",'operations':[" PUT "],'schedule':[{'id':'x','do':'kill','node':'a'}]", "$.schedule[0]",
     "needs one of \"before\" and \"after\""},
    {"", ",'operations':[" PUT "],'schedule':[{'id':'x','after':['p'],'do':'kill'}]", "$.schedule[0]",
     "\"kill\" needs \"node\""},
    {"", ",'operations':[" PUT "],'schedule':[{'id':'x','after':['p'],'do':'partition','node':'a','other':'a'}]",
     "$.schedule[0].other", "another node"},
    {"", ",'operations':[" PUT "],'schedule':[{'id':'x','after':['p'],'do':'expire'}]", "$.schedule[0]",
     "needs an anchor"},
    {"",
     ",'operations':[" PUT "],'schedule':[{'id':'x','before':{'node':'a','what':'put','kind':'sent'},'do':'kill',"
     "'node':'a'}]",
     "$.schedule[0].before.kind", "did you mean \"send\""},
    {"", ",'operations':[" PUT "],'schedule':[{'id':'p','after':['p'],'do':'kill','node':'a'}]", "$.schedule[0].id",
     "is there already"},
    {"", ",'operations':[" PUT "],'schedule':[{'id':'x','after':['x'],'do':'kill','node':'a'}]", "$.schedule",
     "wait for each other"},
    {"", ",'operations':[" PUT "],'expect':{'codes':{'q':0}}", "$.expect.codes.q", "is no operation"},
    {"", ",'operations':[" PUT "],'expect':{'codes':{'p':'gone'}}", "$.expect.codes.p", "\"lost\""},
    {"", ",'operations':[" PUT "],'expect':{'codes':{'p':{'rising':true}}}", "$.expect.codes.p",
     "\"any\" and \"each\""},
    {"", ",'operations':[" PUT "],'expect':{'digests':{'p':1}}", "$.expect.digests.p", "only get and batch_get"},
    {"", ",'mix':{'clients':[],'keys':1,'operations':1,'sizes':[1],'rates':{'put':1}}", "$.mix.clients",
     "must not be empty"},
    {"", ",'mix':{'clients':['a'],'keys':1,'operations':1,'sizes':[0],'rates':{'put':1}}", "$.mix.sizes[0]", "1 to"},
    {"", ",'mix':{'clients':['a'],'keys':1,'operations':1,'sizes':[1],'rates':{}}", "$.mix.rates", "above 0"},
    {"", ",'operations':[" PUT "],'faults':{'crash':1,'length_ms_max':1}", "$.faults", "need \"nodes\""},
};

static void refuses_what_is_wrong_with_its_place(void) {
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct moon_arena arena;
        struct moon_scenario scenario;
        struct moon_error error = {.message = "", .where = ""};
        moon_arena_open(&arena, moon_memory_heap());
        int status = read_text(&arena, faults[i].store, faults[i].rest, &scenario, &error);
        bool told = status != 0 && strstr(error.where, faults[i].where) && strstr(error.message, faults[i].message);
        if (!told)
            fprintf(stderr, "%s%s: %s: %s, expected %s: %s\n", faults[i].store, faults[i].rest, error.where,
                    error.message, faults[i].where, faults[i].message);
        CU_ASSERT(told);
        CU_ASSERT_EQUAL(strncmp(error.where, "t.json:1:", 9), 0);
        moon_arena_close(&arena);
    }
}

static void refuses_a_node_twice(void) {
    static const char text[] =
        "{\"schema\":\"mooncheck-scenario/1\",\"id\":\"t\",\"title\":\"t\",\"guide\":[],"
        "\"store\":{\"release\":\"mooncake-9\"},\"owners\":[],\"requesters\":[{\"name\":\"%s\"}]}";
    struct moon_arena arena;
    struct moon_scenario scenario;
    struct moon_error error;
    moon_arena_open(&arena, moon_memory_heap());
    char *master = moon_arena_format(&arena, text, "master"), *other = moon_arena_format(&arena, text, "a");
    MOON_CHECK_INT(moon_scenario_read(&arena, "t.json", master, strlen(master), &scenario, &error), MOON_ERR_SCHEMA);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "every scenario has it"));
    MOON_CHECK_INT(moon_scenario_read(&arena, "t.json", other, strlen(other), &scenario, &error), MOON_ERR_SCHEMA);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "is none of: mooncake-0.3.13"));
    moon_arena_close(&arena);
}

static void draws_the_same_operations_from_a_seed(void) {
    struct moon_arena arena;
    struct moon_scenario first, second;
    struct moon_error error;
    struct moon_random random;
    static const char mix[] = ",'mix':{'clients':['a','b'],'keys':3,'operations':50,'sizes':[1,100],'pause_ms_max':5,"
                              "'rates':{'put':1,'get':1,'remove':1,'remove_all':1,'batch_put':1,'batch_get':1}}";
    moon_arena_open(&arena, moon_memory_heap());
    MOON_CHECK_INT(read_text(&arena, "", mix, &first, &error), 0);
    second = first;
    moon_random_seed(&random, 5);
    MOON_CHECK_INT(moon_scenario_draw(&arena, &first, &random, &error), 0);
    moon_random_seed(&random, 5);
    MOON_CHECK_INT(moon_scenario_draw(&arena, &second, &random, &error), 0);
    MOON_CHECK_INT(first.operation_count, 50);
    for (size_t i = 0; i < first.operation_count; i++) {
        const struct moon_scenario_operation *a = &first.operations[i], *b = &second.operations[i];
        CU_ASSERT(a->what == b->what && a->key_count == b->key_count && a->pause_ns == b->pause_ns);
        CU_ASSERT(a->what == MOON_DO_REMOVE_ALL || a->key_count >= 1);
        for (size_t k = 0; k < a->key_count; k++)
            MOON_CHECK_TEXT(a->keys[k], b->keys[k]);
        CU_ASSERT(i < 2 ? a->after_count == 0 : a->after[0].index == i - 2);
    }
    moon_arena_close(&arena);
}

static int make(struct moon_memory *memory, const void *context) {
    struct moon_arena arena;
    struct moon_scenario scenario;
    struct moon_error error;
    (void)context;
    moon_arena_open(&arena, memory);
    int status = read_text(&arena, "", ",'operations':[" PUT "," GET "],'expect':{'codes':{'p':0}}", &scenario, &error);
    moon_arena_close(&arena);
    return status;
}

static void leaves_nothing_when_memory_is_refused(void) {
    moon_unit_refuse_memory(make, NULL);
}

static const struct moon_unit_case cases[] = {
    {"all members of a scenario are read", reads_all_members},
    {"what is wrong is refused with file, place, member and what is allowed", refuses_what_is_wrong_with_its_place},
    {"a node called master and an unknown release are refused", refuses_a_node_twice},
    {"a mix draws the same operations from a seed", draws_the_same_operations_from_a_seed},
    {"nothing leaks when memory is refused", leaves_nothing_when_memory_is_refused},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    return moon_unit_main("scenario", cases, argc, argv);
}
