/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the suite hash: defaults, bad cases with their place, what releases raise, explanations, drawn cases. */
#include "conformance/suites/hash.h"

#include "conformance/suites/suite_check.h"

struct world {
    const char *seed;
    bool no_entropy;
};

static const char *environment(void *context, const char *name) {
    const struct world *world = context;
    return strcmp(name, "PYTHONHASHSEED") == 0 ? world->seed : NULL;
}

static int entropy(void *context, void *bytes, size_t length) {
    const struct world *world = context;
    memset(bytes, 0x5a, length);
    return world->no_entropy ? MOON_ERR_IO : 0;
}

static struct world outside;
static const struct moon_suite_world suite_world = {environment, entropy, &outside, NULL};
static struct moon_arena arena;
static struct moon_error error;
static struct moon_text text;

static void begin(void) {
    outside = (struct world){.seed = NULL};
    memset(&error, 0, sizeof error);
    moon_arena_open(&arena, moon_memory_heap());
    moon_text_open(&text, moon_memory_heap());
}

static void end(void) {
    moon_arena_close(&arena);
    moon_text_close(&text);
}

/* Single quotes stand for double ones. */
static struct moon_json *read_given(const char *quoted) {
    struct moon_json *given = NULL;
    char *document = moon_arena_copy(&arena, quoted, strlen(quoted));
    for (char *c = document; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    MOON_CHECK_INT(moon_json_read(&arena, "case", document, strlen(document), MOON_JSON_STRICT, &given, &error), 0);
    return given;
}

static int ask(const char *release, const char *quoted, struct moon_json **answer) {
    *answer = NULL;
    return moon_suite_hash.answer(&suite_world, &arena, moon_profile_find(release, &error), "case", read_given(quoted),
                                  answer, &error);
}

static const char *compact(const struct moon_json *value) {
    moon_text_clear(&text);
    moon_json_write(value, MOON_JSON_COMPACT, &text);
    return moon_text_value(&text);
}

static void check_answer(const char *release, const char *quoted, const char *expected) {
    struct moon_json *answer;
    begin();
    MOON_CHECK_INT(ask(release, quoted, &answer), 0);
    struct moon_json *wanted = read_given(expected);
    for (const struct moon_json *member = wanted->first; member; member = member->next) {
        const struct moon_json *seen = moon_json_member(answer, member->name);
        if (!moon_json_equal(seen, member))
            fprintf(stderr, "%s of %s is %s\n", member->name, quoted, seen ? compact(seen) : "missing");
        CU_ASSERT(moon_json_equal(seen, member));
    }
    end();
}

static void defaults(void) {
    check_answer("0.33", "{}",
                 "{'random':false,'none_hash_len':32,'block_hashes':[],'block_counts':[0],'preimages':[],"
                 "'none_hash':'066b1e8987e027138e98701c46128929378935f9b6cd1549105ae6b4f0d71198',"
                 "'none_hash_preimage':'80059512000000000000008c0e766c6c6d2d6e6f6e652d68617368942e'}");
    check_answer(
        "0.33",
        "{'prompt_token_ids':[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16],'append_token_ids':[],'lora':null,'mm_features'"
        ":null,"
        "'python_hash_seed':null,'cache_salt':null,'prompt_embeds':null,'prompt_is_token_ids':null}",
        "{'block_hashes':['fe8fa5dda3210d0ca2031e37cbe3b001186773cd1c710beb2d45fcb51d434798'],'block_counts':[1]}");
}

static void environment_seed(void) {
    struct moon_json *answer;
    begin();
    outside.seed = "0";
    MOON_CHECK_INT(ask("0.28", "{}", &answer), 0);
    CU_ASSERT(moon_json_is_string(moon_json_member(answer, "none_hash"),
                                  "1973e23848344dc43a988a9b478663803cfffe1243480253f9a3cf004b14aa7c"));
    outside.seed = "\xff";
    MOON_CHECK_INT(ask("0.28", "{}", &answer), MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.where, "PYTHONHASHSEED");
    MOON_CHECK_INT(ask("0.28", "{'python_hash_seed':null}", &answer), 0);
    end();
}

static void random_none_hash(void) {
    check_answer("0.28", "{'python_hash_seed':null,'algo':'xxhash'}",
                 "{'random':true,'none_hash_len':32,"
                 "'none_hash':'5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a'}");
    check_answer("0.29", "{'algo':'xxhash','prompt_token_ids':[1],'block_size':1}",
                 "{'random':true,'none_hash_len':16,'block_counts':[1]}");
    struct moon_json *answer;
    begin();
    outside.no_entropy = true;
    MOON_CHECK_INT(ask("0.28", "{}", &answer), MOON_ERR_IO);
    end();
}

static void token_rules(void) {
    check_answer(
        "0.33", "{'prompt_token_ids':{'start':7,'step':5,'mod':9,'count':4},'block_size':4,'algo':'sha256_cbor'}",
        "{'preimages':['8358209bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef08407030804f6']}");
    check_answer("0.33",
                 "{'prompt_token_ids':{'start':-1,'step':-9223372036854775808,'mod':9223372036854775807,'count':2},'"
                 "block_size':2,"
                 "'algo':'sha256_cbor'}",
                 "{'preimages':['"
                 "8358209bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0821b7ffffffffffffffe1b7ffffff"
                 "ffffffffdf6']}");
}

static void long_chains(void) {
    check_answer(
        "0.33", "{'prompt_token_ids':{'start':0,'step':1,'mod':1000,'count':66},'block_size':1,'python_hash_seed':'0'}",
        "{'block_hash_count':66,'block_counts':[66]}");
    struct moon_json *answer;
    begin();
    MOON_CHECK_INT(
        ask("0.33", "{'prompt_token_ids':{'start':0,'step':1,'mod':1000,'count':67},'block_size':1}", &answer), 0);
    const struct moon_json *samples = moon_json_member(answer, "block_hashes_sampled");
    MOON_CHECK_INT(samples->count, 4);
    CU_ASSERT(moon_json_member(samples, "0") && moon_json_member(samples, "1") && moon_json_member(samples, "33") &&
              moon_json_member(samples, "66"));
    CU_ASSERT(moon_json_member(answer, "block_hashes") == NULL);
    MOON_CHECK_INT(ask("0.33",
                       "{'prompt_token_ids':{'start':70000,'step':0,'mod':80000,'count':400000},'block_size':100000}",
                       &answer),
                   0);
    CU_ASSERT(moon_json_member(answer, "preimages") == NULL); /* 2 MB */
    CU_ASSERT(moon_json_member(answer, "none_hash_preimage") != NULL);
    end();
}

static void refusals(void) {
    check_answer("0.33", "{'algo':'md5'}",
                 "{'error':{'class':'ValueError','message':'Unsupported hash function: md5'}}");
    check_answer("0.33", "{'lora':{'name':'x','path':''}}",
                 "{'error':{'class':'AssertionError','message':'lora_path cannot be empty'}}");
    check_answer(
        "0.33", "{'prompt_token_ids':null}",
        "{'error':{'class':'ValueError','message':'Neither prompt_token_ids nor prompt_embeds were defined.'}}");
    check_answer("0.33",
                 "{'prompt_token_ids':[1,2],'prompt_embeds':{'dtype':'float16','num_tokens':1,'hidden_size':1,'data_"
                 "hex':'0000'}}",
                 "{'error':{'class':'ValueError','message':'Prompt token ids and prompt embeds had different lengths "
                 "prompt_token_ids=2 prompt_embeds=1'}}");
    check_answer("0.33", "{'prompt_token_ids':[1],'block_size':1,'algo':'sha256_cbor','cache_salt':'\\ud800'}",
                 "{'error':{'class':'UnicodeEncodeError','message':'\\u0027utf-8\\u0027 codec can\\u0027t encode "
                 "character \\u0027"
                 "\\\\ud800\\u0027 in position 0: surrogates not allowed'}}");
}

static void check_bad(const char *release, const char *quoted, int status, const char *where, const char *message) {
    struct moon_json *answer;
    begin();
    MOON_CHECK_INT(ask(release, quoted, &answer), status);
    CU_ASSERT(strstr(error.where, where) != NULL);
    CU_ASSERT(strstr(error.message, message) != NULL);
    if (!strstr(error.where, where) || !strstr(error.message, message))
        fprintf(stderr, "%s gives \"%s\": \"%s\"\n", quoted, error.where, error.message);
    end();
}

static void bad_cases(void) {
    static const struct {
        const char *given;
        int status;
        const char *where, *message;
    } rows[] = {
        {"[]", MOON_ERR_SCHEMA, "$", "object"},
        {"{'block_sise':16}", MOON_ERR_SCHEMA, "block_sise", "block_size"},
        {"{'algo':1}", MOON_ERR_SCHEMA, "$.algo", "string"},
        {"{'block_size':0}", MOON_ERR_RANGE, "$.block_size", ""},
        {"{'block_size':1048577}", MOON_ERR_RANGE, "$.block_size", ""},
        {"{'block_size':1.5}", MOON_ERR_SCHEMA, "$.block_size", ""},
        {"{'hash_lookahead_tokens':-1}", MOON_ERR_RANGE, "$.hash_lookahead_tokens", ""},
        {"{'python_hash_seed':7}", MOON_ERR_SCHEMA, "$.python_hash_seed", "a string or null, not integer"},
        {"{'prompt_token_ids':7}", MOON_ERR_SCHEMA, "$.prompt_token_ids", "list"},
        {"{'prompt_token_ids':[1,'2']}", MOON_ERR_SCHEMA, "$.prompt_token_ids[1]", "a token id, not string"},
        {"{'prompt_token_ids':[9223372036854775808]}", MOON_ERR_RANGE, "$.prompt_token_ids[0]", "64 bits"},
        {"{'prompt_token_ids':{'start':0,'step':1,'mod':0,'count':1}}", MOON_ERR_RANGE, "mod", ""},
        {"{'prompt_token_ids':{'start':0,'step':1,'mod':1,'count':4194305}}", MOON_ERR_RANGE, "count", ""},
        {"{'prompt_token_ids':{'start':0,'step':1,'mod':1,'count':4194304},'append_token_ids':[[1]]}", MOON_ERR_RANGE,
         "$.prompt_token_ids", "at most 4194304 tokens"},
        {"{'prompt_token_ids':{'start':0,'step':1,'mod':1}}", MOON_ERR_SCHEMA, "$.prompt_token_ids", "count"},
        {"{'prompt_token_ids':{'start':0,'step':1,'mod':1,'count':1,'x':1}}", MOON_ERR_SCHEMA, "$.prompt_token_ids",
         "x"},
        {"{'append_token_ids':[1]}", MOON_ERR_SCHEMA, "$.append_token_ids[0]", "list"},
        {"{'append_token_ids':{}}", MOON_ERR_SCHEMA, "$.append_token_ids", "list"},
        {"{'append_token_ids':[[null]]}", MOON_ERR_SCHEMA, "$.append_token_ids[0][0]", "token id, not null"},
        {"{'lora':'x'}", MOON_ERR_SCHEMA, "$.lora", "object"},
        {"{'lora':{'name':'x'}}", MOON_ERR_SCHEMA, "$.lora", "path"},
        {"{'lora':{'name':1,'path':'x'}}", MOON_ERR_SCHEMA, "$.lora.name", "string"},
        {"{'lora':{'name':'x','path':[]}}", MOON_ERR_SCHEMA, "$.lora.path", "string"},
        {"{'cache_salt':true}", MOON_ERR_SCHEMA, "$.cache_salt", "string"},
        {"{'mm_features':1}", MOON_ERR_SCHEMA, "$.mm_features", "list"},
        {"{'mm_features':[1]}", MOON_ERR_SCHEMA, "$.mm_features[0]", "object"},
        {"{'mm_features':[{'identifier':'a','offset':-1,'length':1}]}", MOON_ERR_RANGE, "$.mm_features[0].offset", ""},
        {"{'mm_features':[{'identifier':'a','offset':1,'length':-1}]}", MOON_ERR_RANGE, "$.mm_features[0].length", ""},
        {"{'mm_features':[{'identifier':'a','offset':5,'length':1},{'identifier':'b','offset':4,'length':1}]}",
         MOON_ERR_RANGE, "$.mm_features[1]", "sorted"},
        {"{'prompt_embeds':1}", MOON_ERR_SCHEMA, "$.prompt_embeds", "object"},
        {"{'prompt_embeds':{'dtype':'int8','num_tokens':1,'hidden_size':1,'data_hex':'00'}}", MOON_ERR_RANGE,
         "$.prompt_embeds.dtype", "float32"},
        {"{'prompt_embeds':{'dtype':'float32','num_tokens':1,'hidden_size':0,'data_hex':''}}", MOON_ERR_RANGE,
         "hidden_size", ""},
        {"{'prompt_embeds':{'dtype':'float32','num_tokens':1,'hidden_size':1,'data_hex':'0000000'}}", MOON_ERR_RANGE,
         "data_hex", "need 8"},
        {"{'prompt_embeds':{'dtype':'float32','num_tokens':1,'hidden_size':1,'data_hex':'0000000x'}}", MOON_ERR_SCHEMA,
         "data_hex", "hexadecimal"},
        {"{'prompt_embeds':{'dtype':'float32','num_tokens':1,'hidden_size':1,'data_hex':1}}", MOON_ERR_SCHEMA,
         "data_hex", "string"},
        {"{'prompt_token_ids':[1],'prompt_is_token_ids':[true,false]}", MOON_ERR_RANGE, "$.prompt_is_token_ids",
         "2 entries"},
        {"{'prompt_token_ids':[1],'prompt_is_token_ids':[1]}", MOON_ERR_SCHEMA, "$.prompt_is_token_ids[0]", "boolean"},
        {"{'prompt_is_token_ids':1}", MOON_ERR_SCHEMA, "$.prompt_is_token_ids", "list"},
        {"{'share_equal_strings':1}", MOON_ERR_SCHEMA, "$.share_equal_strings", "true or false"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_bad("0.33", rows[i].given, rows[i].status, rows[i].where, rows[i].message);
    check_bad("0.32", "{'hash_lookahead_tokens':1}", MOON_ERR_UNSUPPORTED, "$.hash_lookahead_tokens", "no look-ahead");
}

/* A command line may hold what JSON cannot. */
static void not_utf8(void) {
    struct moon_json *answer = NULL;
    begin();
    struct moon_json *given = moon_json_object(&arena), *items = moon_json_array(&arena),
                     *item = moon_json_object(&arena);
    moon_json_set(&arena, given, "cache_salt", moon_json_bytes(&arena, "a\xff", 2));
    MOON_CHECK_INT(moon_suite_hash.answer(&suite_world, &arena, moon_profile_find("0.33", &error), "flags", given,
                                          &answer, &error),
                   MOON_ERR_RANGE);
    MOON_CHECK_TEXT(error.message, "is not UTF-8");
    moon_json_set(&arena, item, "identifier", moon_json_bytes(&arena, "\xc3", 1));
    moon_json_set(&arena, item, "offset", moon_json_int(&arena, 0));
    moon_json_set(&arena, item, "length", moon_json_int(&arena, 1));
    moon_json_push(items, item);
    given = moon_json_object(&arena);
    moon_json_set(&arena, given, "mm_features", items);
    MOON_CHECK_INT(
        moon_suite_hash.answer(&suite_world, &arena, moon_profile_find("0.33", &error), "flags", given, &answer, NULL),
        MOON_ERR_RANGE);
    end();
}

static void check_explained(const char *release, const char *quoted, const char *const expected[]) {
    begin();
    MOON_CHECK_INT(moon_suite_hash.explain(&suite_world, &arena, moon_profile_find(release, &error), "case",
                                           read_given(quoted), &text, &error),
                   0);
    suite_check_parts(&text, expected);
    CU_ASSERT(strstr(moon_text_value(&text), "not well-formed") == NULL);
    end();
}

static void explanations(void) {
    static const char everything[] =
        "{'prompt_token_ids':[1,2,3],'block_size':1,'append_token_ids':[[4,5,6]],'lora':{'name':'n','path':'p'},'cache_"
        "salt':'s',"
        "'mm_features':[{'identifier':'img','offset':0,'length':2}],"
        "'prompt_embeds':{'dtype':'float16','num_tokens':3,'hidden_size':1,'data_hex':'000102030405'},"
        "'prompt_is_token_ids':[true,false,true]}";
    check_explained("0.33", everything,
                    (const char *const[]){"HASH-062", "HASH-064", "HASH-066", "HASH-068", "HASH-069", "HASH-071",
                                          "HASH-013", "HASH-028", "string of 3 bytes \"img\"", "2 more blocks", NULL});
    check_explained("0.28", everything,
                    (const char *const[]){"HASH-061", "HASH-067", "HASH-012", "another process", NULL});
    check_explained("0.29", "{'algo':'xxhash_cbor'}",
                    (const char *const[]){"XXH3-128", "canonical CBOR", "HASH-014", NULL});
    check_explained("0.33", "{'python_hash_seed':'0','hash_lookahead_tokens':2,'cache_salt':''}",
                    (const char *const[]){"HASH-010", "HASH-080", "empty, so none", NULL});
    check_explained(
        "0.33",
        "{'algo':'sha256_cbor','prompt_token_ids':null,'mm_features':[{'identifier':'i','offset':0,'length':1}],"
        "'prompt_embeds':{'dtype':'float32','num_tokens':0,'hidden_size':1,'data_hex':''}}",
        (const char *const[]){"HASH-070", NULL});
    check_explained("0.33",
                    "{'prompt_token_ids':{'start':70000,'step':0,'mod':80000,'count':40000},'block_size':20000}",
                    (const char *const[]){"bytes is not shown", NULL});
    check_explained("0.33",
                    "{'prompt_token_ids':{'start':70000,'step':0,'mod':80000,'count':400000},'block_size':20000}",
                    (const char *const[]){"more than 1 MiB", NULL});
    check_explained("0.33", "{'algo':'crc'}", (const char *const[]){"raises ValueError: Unsupported", NULL});
    begin();
    outside.seed = "3";
    MOON_CHECK_INT(moon_suite_hash.explain(&suite_world, &arena, moon_profile_find("0.33", &error), "case",
                                           read_given("{}"), &text, &error),
                   0);
    CU_ASSERT(strstr(moon_text_value(&text), "taken from the environment") != NULL);
    MOON_CHECK_INT(moon_suite_hash.explain(&suite_world, &arena, moon_profile_find("0.33", &error), "case",
                                           read_given("[]"), &text, NULL),
                   MOON_ERR_SCHEMA);
    end();
}

/* Every drawn case is valid, and is answered; equal seeds give equal cases. */
static void drawn_cases(void) {
    size_t count;
    const struct moon_profile *profiles = moon_profiles(&count);
    for (size_t i = 0; i < count; i++)
        for (uint64_t seed = 0; seed < 60; seed++) {
            struct moon_json *given = NULL, *again = NULL, *answer = NULL;
            struct moon_random random;
            begin();
            moon_random_seed(&random, seed);
            MOON_CHECK_INT(moon_suite_hash.draw(&arena, &random, &profiles[i], &given), 0);
            moon_random_seed(&random, seed);
            MOON_CHECK_INT(moon_suite_hash.draw(&arena, &random, &profiles[i], &again), 0);
            CU_ASSERT(moon_json_equal(given, again));
            int status = moon_suite_hash.answer(&suite_world, &arena, &profiles[i], "case", given, &answer, &error);
            if (status)
                fprintf(stderr, "seed %llu: %s: %s\n", (unsigned long long)seed, error.where, error.message);
            MOON_CHECK_INT(status, 0);
            CU_ASSERT(!moon_json_member(answer, "random") || !moon_json_member(answer, "random")->boolean);
            end();
        }
}

static int do_everything(struct moon_arena *small, const struct moon_json *given, struct moon_text *out) {
    const struct moon_profile *profile = moon_profile_find("0.33", &error);
    struct moon_json *answer = NULL, *drawn = NULL;
    struct moon_random random;
    moon_random_seed(&random, 3);
    int status = moon_suite_hash.answer(&suite_world, small, profile, "case", given, &answer, &error);
    if (status == 0)
        status = moon_suite_hash.explain(&suite_world, small, profile, "case", given, out, &error);
    if (status == 0)
        status = moon_suite_hash.draw(small, &random, profile, &drawn);
    return status;
}

static void memory_refused(void) {
    static const char *const cases[] = {
        "{'prompt_token_ids':[1,2,3],'block_size':2,'append_token_ids':[[4,5,6]],'lora':{'name':'n','path':'p'},'cache_"
        "salt':'s',"
        "'mm_features':[{'identifier':'img','offset':0,'length':2}],'share_equal_strings':true,"
        "'prompt_embeds':{'dtype':'float16','num_tokens':3,'hidden_size':1,'data_hex':'000102030405'},"
        "'prompt_is_token_ids':[true,false,true]}",
        "{'prompt_token_ids':{'start':0,'step':1,'mod':9,'count':200},'block_size':1}",
        "{'prompt_token_ids':{'start':0,'step':1,'mod':9,'count':2000},'block_size':40,'algo':'sha512'}"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int status = MOON_ERR_MEMORY;
        for (uint64_t n = 1; status; n++) {
            struct moon_memory_failing failing;
            struct moon_arena small;
            struct moon_text out;
            begin();
            const struct moon_json *given = read_given(cases[i]);
            outside.seed = "0";
            moon_memory_failing_init(&failing, moon_memory_heap(), n);
            moon_arena_open(&small, &failing.memory);
            moon_text_open(&out, &failing.memory);
            status = do_everything(&small, given, &out);
            CU_ASSERT(status == 0 || status == MOON_ERR_MEMORY);
            moon_text_close(&out);
            moon_arena_close(&small);
            MOON_CHECK_INT(failing.held_bytes, 0);
            end();
            CU_ASSERT_FATAL(n < 1000);
        }
    }
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"members left out have natural defaults", defaults},
        {"without python_hash_seed the environment's PYTHONHASHSEED counts", environment_seed},
        {"a random NONE_HASH is said to be random, and is answered", random_none_hash},
        {"tokens by rule are never negative and never overflow", token_rules},
        {"more than 64 blocks are told by samples; pre-images of over 1 MiB are left out", long_chains},
        {"what the release raises is an answer (HASH-002, HASH-042, HASH-072, HASH-073)", refusals},
        {"bad cases are refused with their place", bad_cases},
        {"strings that are not UTF-8 are refused", not_utf8},
        {"explanations cite rule and release of each part", explanations},
        {"drawn cases are valid for every release and repeat by seed", drawn_cases},
        {"refused memory is reported and leaks nothing", memory_refused},
        {NULL, NULL}};
    return moon_unit_main("suite hash", cases, argc, argv);
}
