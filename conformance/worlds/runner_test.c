/* SPDX-License-Identifier: Apache-2.0 */
/* The runner on small scenarios, in worlds mem and sim. */
#include "conformance/worlds/runner.h"

#include "ref/base/unit.h"

#define HEAD                                                                                                           \
    "{'schema':'mooncheck-scenario/1','id':'t','title':'It works','guide':[],'store':{'release':"                      \
    "'mooncake-0.3.13.post1','flags':{'default_kv_lease_ttl':2000,'client_ttl':3}},"                                   \
    "'owners':[{'name':'o','memory_bytes':1048576}],'requesters':[{'name':'a'},{'name':'b'}],"

static const struct moon_world_kind *const both[] = {&moon_world_mem, &moon_world_sim};

/* Plays the rest of a scenario, in single quotes. */
static void play(struct moon_arena *arena, const struct moon_world_kind *kind, const char *rest, uint64_t seed,
                 struct moon_play *out) {
    struct moon_scenario scenario;
    struct moon_error error = {.message = ""};
    struct moon_play_setting setting = {.kind = kind, .seed = seed, .with_faults = true};
    char *text = moon_arena_format(arena, "%s%s}", HEAD, rest);
    for (char *c = text; *c; c++)
        if (*c == '\'')
            *c = '"';
    int status = moon_scenario_read(arena, "t.json", text, strlen(text), &scenario, &error);
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_INT(status, 0);
    status = moon_play(arena, &scenario, &setting, out, &error);
    MOON_CHECK_INT(status, 0);
}

/* The play passes in both worlds. */
static void passes(const char *rest) {
    for (size_t i = 0; i < 2; i++) {
        struct moon_arena arena;
        struct moon_play played;
        moon_arena_open(&arena, moon_memory_heap());
        play(&arena, both[i], rest, 1, &played);
        if (played.outcome != MOON_OUTCOME_PASS)
            fprintf(stderr, "%s: %s, %s: expected %s, seen %s\n", both[i]->name, played.reason, played.done,
                    played.expected, played.seen);
        MOON_CHECK_INT(played.outcome, MOON_OUTCOME_PASS);
        moon_play_close(&played);
        moon_arena_close(&arena);
    }
}

/* It comes to this outcome in that world, with these words. */
static void comes_to(const struct moon_world_kind *kind, const char *rest, enum moon_outcome outcome,
                     const char *words) {
    struct moon_arena arena;
    struct moon_play played;
    moon_arena_open(&arena, moon_memory_heap());
    play(&arena, kind, rest, 1, &played);
    if (played.outcome != outcome)
        fprintf(stderr, "%s: %s, %s: expected %s, seen %s\n", kind->name, played.reason, played.done, played.expected,
                played.seen);
    MOON_CHECK_INT(played.outcome, outcome);
    bool told = strstr(played.seen, words) || strstr(played.reason, words);
    if (!told)
        fprintf(stderr, "says \"%s\" and \"%s\", not \"%s\"\n", played.seen, played.reason, words);
    CU_ASSERT(told);
    moon_play_close(&played);
    moon_arena_close(&arena);
}

#define PUT  "{'id':'p','node':'a','do':'put','key':'k','bytes':1000,'fill':5}"
#define GET  "{'id':'g','node':'b','do':'get','key':'k','bytes':1000,'after':['p']}"
#define LATE "{'id':'late','node':'b','do':'get','key':'k','bytes':1000,'after':['x']}"

static void plays_operations_in_their_order(void) {
    passes("'operations':[" PUT "," GET ",{'id':'n','node':'b','do':'exist','key':'n-{i}','repeat':3},"
           "{'id':'m','node':'a','do':'batch_put','keys':['x-{i}','y-{i}'],'bytes':10,'fill':20,'repeat':2,"
           "'after':['g']},{'id':'mg','node':'b','do':'batch_get','keys':['x-1','y-1'],'bytes':10,'after':['m']}],"
           "'expect':{'codes':{'p':0,'g':1000,'n':{'each':[0,0,0]},'mg':10},'digests':{'g':5,'mg':22}}");
}

static void tells_what_was_expected_and_seen(void) {
    comes_to(&moon_world_mem, "'operations':[" PUT "," GET "],'expect':{'codes':{'g':999}}", MOON_OUTCOME_FAIL, "1000");
    comes_to(&moon_world_mem, "'operations':[" PUT "," GET "],'expect':{'digests':{'g':6}}", MOON_OUTCOME_FAIL,
             "1000 bytes with digest");
    comes_to(&moon_world_mem,
             "'operations':[{'id':'e','node':'a','do':'exist','key':'k','repeat':2}],"
             "'expect':{'codes':{'e':{'each':[0]}}}",
             MOON_OUTCOME_FAIL, "0, 0");
}

static void kills_before_a_message_leaves(void) {
    passes("'operations':[" PUT "," LATE "],'schedule':[{'id':'x','before':{'node':'a','what':'PutEnd','kind':'send'},"
           "'do':'kill','node':'a'}],'expect':{'codes':{'p':'lost','late':-703}}");
    passes("'operations':[" PUT "," LATE
           "],'schedule':[{'id':'x','before':{'node':'a','what':'PutStart','kind':'send'},"
           "'do':'kill','node':'a'}],'expect':{'codes':{'p':'lost','late':-704}}");
}

/* The client records and sends more in the event that it is killed in: none of it has happened. */
static void shows_nothing_after_the_record_of_a_kill(void) {
    for (size_t i = 0; i < 2; i++) {
        struct moon_arena arena;
        struct moon_play played;
        size_t sends = 0, kills = 0;
        moon_arena_open(&arena, moon_memory_heap());
        play(&arena, both[i],
             "'operations':[" PUT "," LATE "],'schedule':[{'id':'x','before':{'node':'a','what':'put','kind':'invoke'},"
             "'do':'kill','node':'a'}],'expect':{'codes':{'p':'lost','late':-704}}",
             1, &played);
        MOON_CHECK_INT(played.outcome, MOON_OUTCOME_PASS);
        for (size_t r = 0; r < played.history.count; r++) {
            sends += strcmp(played.history.records[r].what, "PutStart") == 0;
            kills += strcmp(played.history.records[r].what, "kill") == 0;
        }
        MOON_CHECK_INT(sends, 0);
        MOON_CHECK_INT(kills, 1);
        moon_play_close(&played);
        moon_arena_close(&arena);
    }
}

static void kills_when_a_message_has_arrived(void) {
    passes("'operations':[" PUT "," LATE "],'schedule':[{'id':'x','after':[{'node':'master','what':'PutEnd','kind':"
           "'recv'}],'do':'kill','node':'a'}],'expect':{'codes':{'p':'lost','late':1000},'digests':{'late':5}}");
}

static void starts_a_node_again(void) {
    passes("'operations':[" PUT "," GET ",{'id':'late','node':'a','do':'put','key':'k2','bytes':10,'fill':1,"
           "'after':['back']},{'id':'master-new','node':'b','do':'exist','key':'k','after':['new']}],"
           "'schedule':[{'id':'x','after':['g'],'do':'kill','node':'a'},{'id':'back','after':['x'],'do':'restart',"
           "'node':'a'},{'id':'new','after':['late'],'do':'restart','node':'master'}],"
           "'expect':{'codes':{'p':0,'g':1000,'late':0,'master-new':[0,-900]}}");
}

static void waits_for_a_lease(void) {
    passes("'operations':[" PUT "," GET ",{'id':'early','node':'a','do':'remove','key':'k','after':['g']},"
           "{'id':'late','node':'a','do':'remove','key':'k','after':['x','early']}],"
           "'schedule':[{'id':'x','after':[{'node':'master','what':'lease','kind':'state','key':'k'}],'do':'expire'}],"
           "'expect':{'codes':{'early':-706,'late':0}}");
}

/* The reader is held at the answer until its lease is over: what it then reads comes too late. */
static void holds_a_node_while_time_passes(void) {
    static const char rest[] =
        "'operations':[" PUT "," GET "],'schedule':[{'id':'x','before':{'node':'b','what':'lease','kind':'state'},"
        "'do':'expire'}],'expect':{'codes':{'g':-707}}";
    comes_to(&moon_world_sim, rest, MOON_OUTCOME_PASS, "");
    comes_to(&moon_world_mem, rest, MOON_OUTCOME_SKIP, "cannot hold a node");
}

static void stops_and_parts_in_the_simulator(void) {
    static const char stop[] =
        "'operations':[" PUT "," GET "],'schedule':[{'id':'s','before':{'node':'b','what':'GetReplicaList','kind':"
        "'send'},'do':'stop','node':'o'},{'id':'c','after':[{'node':'master','what':'expire','kind':'state'}],"
        "'do':'continue','node':'o'}],'expect':{'codes':{'g':[1000,-800,-707]}}";
    static const char part[] =
        "'operations':[" PUT "," GET "],'schedule':[{'id':'s','after':['p'],'do':'partition','node':'b','other':"
        "'master'},{'id':'h','after':[{'node':'b','what':'GetReplicaList','kind':'send'}],'do':'heal','node':'b',"
        "'other':'master'},{'id':'d','after':['h'],'do':'drop','node':'b','other':'o'}],"
        "'expect':{'codes':{'g':[1000,-800,-900]}}";
    comes_to(&moon_world_sim, stop, MOON_OUTCOME_PASS, "");
    comes_to(&moon_world_sim, part, MOON_OUTCOME_PASS, "");
    comes_to(&moon_world_mem, part, MOON_OUTCOME_SKIP, "has no \"partition\"");
}

static void ends_when_nothing_happens(void) {
    comes_to(&moon_world_mem,
             "'operations':[" PUT
             ",{'id':'g','node':'b','do':'exist','key':'k','after':[{'node':'a','what':'never'}]}]",
             MOON_OUTCOME_TIMEOUT, "operation g (exist of b) did not begin");
    comes_to(&moon_world_mem,
             "'operations':[" PUT "],'schedule':[{'id':'x','after':[{'node':'a','what':'PutEnd','occurrence':9}],'do':"
             "'kill','node':'a'}]",
             MOON_OUTCOME_TIMEOUT, "action x (kill) was not done");
    comes_to(&moon_world_mem,
             "'operations':[" PUT "],'schedule':[{'id':'x','after':[{'node':'a','what':'PutEnd'}],'do':'expire'}]",
             MOON_OUTCOME_ERROR, "tells no lease");
}

static void same_seed_same_history(void) {
    static const char rest[] =
        "'mix':{'clients':['a','b','o'],'keys':3,'operations':40,'sizes':[1,5000],'pause_ms_max':300,'rates':{'put':5,"
        "'get':5,'remove':2,'exist':1,'batch_put':1,'batch_get':1}},'faults':{'crash':60,'stop':60,'partition':60,"
        "'drop':60,'nodes':['o','a','b'],'length_ms_max':8000}";
    for (size_t i = 0; i < 2; i++) {
        uint64_t digests[3];
        for (uint64_t run = 0; run < 3; run++) {
            struct moon_arena arena;
            struct moon_play played;
            moon_arena_open(&arena, moon_memory_heap());
            play(&arena, both[i], rest, run == 2 ? 8 : 7, &played);
            MOON_CHECK_TEXT(played.reason, "");
            MOON_CHECK_INT(played.outcome, MOON_OUTCOME_PASS);
            digests[run] = played.digest;
            moon_play_close(&played);
            moon_arena_close(&arena);
        }
        CU_ASSERT_EQUAL(digests[0], digests[1]);
        CU_ASSERT_NOT_EQUAL(digests[0], digests[2]);
    }
}

static const struct moon_unit_case cases[] = {
    {"operations are played in the order of their conditions, with what each gave", plays_operations_in_their_order},
    {"a failure tells what was expected and what was seen", tells_what_was_expected_and_seen},
    {"a node killed before a message leaves has not sent it", kills_before_a_message_leaves},
    {"nothing shows that a killed node would have done after the record", shows_nothing_after_the_record_of_a_kill},
    {"a node killed when its message has arrived has sent it", kills_when_a_message_has_arrived},
    {"a node that was killed starts again", starts_a_node_again},
    {"an action waits for the lease that a record tells", waits_for_a_lease},
    {"a node is held at a record while time passes", holds_a_node_while_time_passes},
    {"the simulator stops nodes and parts the network; other worlds skip that", stops_and_parts_in_the_simulator},
    {"a run in which nothing happens any more ends and says what it waited for", ends_when_nothing_happens},
    {"the same seed gives the same history, another seed another", same_seed_same_history},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    return moon_unit_main("runner", cases, argc, argv);
}
