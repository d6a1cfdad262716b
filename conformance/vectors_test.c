/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the loader of vector files and of the schemas it uses. */
#include "conformance/vectors.h"

#include "conformance/io.h"
#include "conformance/requirements.h"
#include "conformance/schema.h"
#include "conformance/suites/world.h"
#include "ref/base/unit.h"
#include "reports/result.h"

#include <stdlib.h>

static char folder[64];

static const char head[] = "{\"schema\":\"mooncheck-vectors/1\",\"suite\":\"keys\",\"source\":[],\n\"cases\":[\n";
static const char good[] = "{\"id\":\"keys.pool.a.0001\",\"profile\":\"vllm-0.33\",\"given\":{\"op\":\"pool_key\"},"
                           "\"expect\":{\"key\":\"k\"}}";

static const char *in_folder(const char *name) {
    static char path[2][128];
    static int turn;
    turn = 1 - turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void put(const char *name, const char *text) {
    struct moon_error error;
    MOON_CHECK_INT(moon_io_write(in_folder(name), text, strlen(text), &error), 0);
}

/* Writes head + body + end and loads that file. */
static int load(const char *body, struct moon_vectors *vectors, struct moon_error *error) {
    char text[4096];
    snprintf(text, sizeof text, "%s%s\n]}\n", head, body);
    put("v.json", text);
    return moon_vectors_load(vectors, in_folder("v.json"), error);
}

static struct moon_arena arena;
static struct moon_vectors vectors;
static struct moon_error error;

static void begin(void) {
    moon_arena_open(&arena, moon_memory_heap());
    moon_vectors_open(&vectors, &arena);
    error = (struct moon_error){0};
}

static void end(void) {
    moon_arena_close(&arena);
}

/* Loads a faulty case and compares the end of the place and the message. */
static void expect_fault(const char *body, const char *place, const char *message) {
    begin();
    CU_ASSERT(load(body, &vectors, &error) < 0);
    size_t length = strlen(error.where), tail = strlen(place);
    MOON_CHECK_TEXT(length > tail ? error.where + length - tail : error.where, place);
    MOON_CHECK_TEXT(error.message, message);
    end();
}

static void loads_a_case_with_all_its_parts(void) {
    begin();
    MOON_CHECK_INT(load(good, &vectors, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_INT(vectors.count, 1);
    MOON_CHECK_TEXT(vectors.first->id, "keys.pool.a.0001");
    MOON_CHECK_TEXT(vectors.first->kind, "keys.pool.a");
    MOON_CHECK_TEXT(vectors.first->suite->name, "keys");
    MOON_CHECK_TEXT(vectors.first->profile->name, "vllm-0.33");
    MOON_CHECK_TEXT(vectors.first->comment, "");
    MOON_CHECK_INT(moon_vectors_check_ids(&vectors, &error), 0);
    CU_ASSERT(vectors.digest != 0);
    end();
}

static void a_fault_names_line_column_member_and_case(void) {
    expect_fault("{\"id\":\"keys.pool.a.0001\",\"profile\":\"vllm-0.33\",\"given\":{\"op\":\"pool_key\"},\"expect\":{"
                 "\"kee\":\"k\"}}",
                 ":3:90 $.cases[0].expect.kee",
                 "unknown member \"kee\"; did you mean \"key\"? (case keys.pool.a.0001)");
    expect_fault(
        "{\"id\":\"keys.pool.a.0001\",\"profile\":\"vllm-0.33\",\"given\":{\"opp\":\"pool_key\"},\"expect\":{}}",
        "$.cases[0].given.opp", "unknown member \"opp\"; did you mean \"op\"? (case keys.pool.a.0001)");
    expect_fault("{\"id\":\"keys.pool.a.0001\",\"given\":{},\"expect\":{}}", "$.cases[0]",
                 "member \"profile\" is missing (case keys.pool.a.0001)");
}

static void values_of_the_wrong_type_are_refused(void) {
    expect_fault("{\"id\":\"keys.a.1\",\"profile\":\"vllm-0.33\",\"given\":{\"op\":\"pool_key\",\"mask_num\":\"3\"},"
                 "\"expect\":{}}",
                 "$.cases[0].given.mask_num", "must be integer, is string (case keys.a.1)");
    expect_fault("{\"id\":\"keys.a.1\",\"profile\":\"vllm-0.33\",\"given\":{\"op\":\"pool_kay\"},\"expect\":{}}",
                 "$.cases[0].given.op", "\"pool_kay\" is not allowed here; did you mean \"pool_key\"? (case keys.a.1)");
    expect_fault("{\"id\":\"keys.a.1\",\"profile\":\"vllm-0.33\",\"given\":{\"op\":\"pool_key\",\"block_hashes\":["
                 "\"0G\"]},\"expect\":{}}",
                 "$.cases[0].given.block_hashes[0]", "\"0G\" does not have the form ^([0-9a-f]{2})*$ (case keys.a.1)");
    expect_fault("{\"id\":\"keys\",\"profile\":\"vllm-0.33\",\"given\":{},\"expect\":{}}", "$.cases[0].id",
                 "\"keys\" does not have the form ^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)+$ (case keys)");
    expect_fault("7", "$.cases[0]", "must be object, is integer");
}

static void an_unknown_release_is_refused(void) {
    begin();
    MOON_CHECK_INT(load("{\"id\":\"keys.a.1\",\"profile\":\"vllm-0.99\",\"given\":{\"op\":\"pool_key\"},\"expect\":{}}",
                        &vectors, &error),
                   MOON_ERR_UNSUPPORTED);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.where, "$.cases[0].profile"));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "(case keys.a.1)"));
    end();
}

static void the_same_id_twice_is_refused_with_both_places(void) {
    char text[1024];
    begin();
    snprintf(text, sizeof text, "%s,\n%s", good, good);
    MOON_CHECK_INT(load(text, &vectors, &error), 0);
    MOON_CHECK_INT(moon_vectors_check_ids(&vectors, &error), MOON_ERR_SCHEMA);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.where, ":4:"));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "the id keys.pool.a.0001 is used twice"));
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "v.json:3"));
    end();
}

static void other_json_is_refused_by_name_and_skipped_in_a_folder(void) {
    begin();
    MOON_CHECK_INT(moon_io_make_folder(in_folder("other"), &error), 0);
    put("other/x.json", "{\"a\":1}");
    put("other/y.json", "{\"schema\":\"mooncheck-vectors/1\",\"suite\":\"store\",\"source\":[],\"cases\":[]}");
    put("other/notes.txt", "not looked at");
    MOON_CHECK_INT(moon_vectors_load(&vectors, in_folder("other/x.json"), &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "is no vector file: member \"schema\" is not \"mooncheck-vectors/1\"");
    MOON_CHECK_INT(moon_vectors_load(&vectors, in_folder("other"), &error), 0);
    MOON_CHECK_TEXT(vectors.first_skip ? vectors.first_skip->reason : "", "is no vector file");
    MOON_CHECK_TEXT(vectors.last_skip ? vectors.last_skip->reason : "", "suite store is not part of this program");
    MOON_CHECK_INT(vectors.count, 0);
    end();
}

static void a_suite_without_a_name_is_refused(void) {
    begin();
    put("v.json", "{\"schema\":\"mooncheck-vectors/1\",\"suite\":\"\",\"source\":[],\"cases\":[]}");
    MOON_CHECK_INT(moon_vectors_load(&vectors, in_folder("v.json"), &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "must not be empty");
    put("v.json", "{\"schema\":\"mooncheck-vectors/1\",\"source\":[],\"cases\":[]}");
    MOON_CHECK_INT(moon_vectors_load(&vectors, in_folder("v.json"), &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "member \"suite\" is missing");
    put("v.json", "{\"schema\":\"mooncheck-vectors/1\",\"suite\":7,\"source\":[],\"cases\":[]}");
    MOON_CHECK_INT(moon_vectors_load(&vectors, in_folder("v.json"), &error), MOON_ERR_SCHEMA);
    MOON_CHECK_TEXT(error.message, "must be string, is integer");
    end();
}

static void a_cut_file_is_an_error_also_in_a_folder(void) {
    begin();
    MOON_CHECK_INT(moon_io_make_folder(in_folder("cut"), &error), 0);
    put("cut/a.json", "{\"schema\":\"mooncheck-vectors/1\",\"sui");
    MOON_CHECK_INT(moon_vectors_load(&vectors, in_folder("cut"), &error), MOON_ERR_SYNTAX);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.where, "cut/a.json:1:"));
    end();
}

static void memory_that_refuses_is_an_error_and_nothing_leaks(void) {
    struct moon_memory_failing failing;
    char text[4096];
    snprintf(text, sizeof text, "%s%s\n]}\n", head, good);
    put("v.json", text);
    bool done = false;
    for (uint64_t n = 1; !done && n < 2000; n++) {
        moon_memory_failing_init(&failing, moon_memory_heap(), n);
        moon_arena_open(&arena, &failing.memory);
        moon_vectors_open(&vectors, &arena);
        int status = moon_vectors_load(&vectors, in_folder("v.json"), &error);
        if (status == 0)
            status = moon_vectors_check_ids(&vectors, &error);
        done = status == 0;
        if (!done)
            MOON_CHECK_INT(status, MOON_ERR_MEMORY);
        moon_arena_close(&arena);
        MOON_CHECK_INT(failing.held_bytes, 0);
    }
    CU_ASSERT(done);
}

/* ---- schemas */

/* True if some release's reader of the suite, for this op (NULL: the suite has none), does not call the member unknown.
 */
static bool reader_knows_with(const struct moon_suite *suite, const char *op, const char *name) {
    size_t count = 0;
    const struct moon_profile *profiles = moon_profiles(&count);
    bool known = false;
    for (size_t i = 0; i < count; i++) {
        struct moon_json *given = moon_json_object(&arena), *answer = NULL;
        struct moon_error why = {0};
        if (op)
            moon_json_set(&arena, given, "op", moon_json_string(&arena, op));
        if (strcmp(name, "op") != 0)
            moon_json_set(&arena, given, name, moon_json_object(&arena));
        suite->answer(moon_suite_world_system(), &arena, &profiles[i], "given", given, &answer, &why);
        known |= why.status != MOON_ERR_UNSUPPORTED && !strstr(why.message, "unknown member");
    }
    return known;
}

static bool reader_knows(const struct moon_suite *suite, const struct moon_json *given, const char *name) {
    const struct moon_json *ops =
        moon_json_member(moon_json_member(moon_json_member(given, "properties"), "op"), "enum");
    bool known = false;
    if (!ops)
        return reader_knows_with(suite, NULL, name);
    for (const struct moon_json *op = ops->first; op; op = op->next)
        known |= reader_knows_with(suite, op->bytes, name);
    return known;
}

static void every_member_of_a_schema_is_one_that_the_suite_reads(void) {
    for (size_t i = 0; moon_suites()[i]; i++) {
        struct moon_schema schema;
        begin();
        MOON_CHECK_INT(moon_schema_open(&schema, &arena, moon_suites()[i]->name, &error), 0);
        const struct moon_json *given = moon_json_member(moon_json_member(schema.root, "$defs"), "given");
        CU_ASSERT_FALSE(reader_knows(moon_suites()[i], given, "no_such_member"));
        for (const struct moon_json *one = moon_json_member(given, "properties")->first; one; one = one->next) {
            bool known = reader_knows(moon_suites()[i], given, one->name);
            if (!known)
                fprintf(stderr, "suite %s does not read the member \"%s\" of its schema\n", moon_suites()[i]->name,
                        one->name);
            CU_ASSERT(known);
        }
        moon_schema_close(&schema);
        end();
    }
}

static void every_object_of_a_schema_says_what_else_is_allowed(void) {
    for (size_t i = 0; moon_schema_texts[i].name; i++) {
        struct moon_schema schema;
        begin();
        MOON_CHECK_INT(moon_schema_open(&schema, &arena, moon_schema_texts[i].name, &error), 0);
        const struct moon_json *at = schema.root;
        while (at) {
            if (moon_json_member(at, "properties") && moon_json_is(at, MOON_JSON_OBJECT))
                CU_ASSERT_PTR_NOT_NULL(moon_json_member(at, "additionalProperties"));
            if (at->first) {
                at = at->first;
                continue;
            }
            while (at->parent && !at->next)
                at = at->parent;
            at = at->next;
        }
        moon_schema_close(&schema);
        end();
    }
}

/* Every property that the schema allows in `value` is there. */
static void check_all_there(const struct moon_json *rule, const struct moon_json *value) {
    for (const struct moon_json *one = moon_json_member(rule, "properties")->first; one; one = one->next) {
        if (!moon_json_member(value, one->name))
            fprintf(stderr, "the writer of results never writes \"%s\"\n", one->name);
        CU_ASSERT_PTR_NOT_NULL(moon_json_member(value, one->name));
    }
}

static void the_schema_of_results_is_what_is_written_and_read(void) {
    struct moon_schema schema;
    struct moon_text text;
    struct moon_json *document = NULL;
    begin();
    struct moon_result again, result = {.arena = &arena,
                                        .command = "c",
                                        .harness_version = "v",
                                        .target = "t",
                                        .target_name = "n",
                                        .target_version = "v",
                                        .target_homepage = "h",
                                        .mode = "strict",
                                        .seed = "1",
                                        .host = "h",
                                        .started = "s",
                                        .digest = "d",
                                        .incomplete_why = "i"};
    struct moon_result_case *one = moon_result_add(&result);
    CU_ASSERT_PTR_NOT_NULL_FATAL(one);
    one->id = one->suite = one->profile = one->requirement = one->reason = one->required = one->done = "x";
    one->expected = one->seen = one->reproduce = one->resembles = "x";
    one->level = "MUST";
    one->deviations = &one->id;
    one->deviation_count = 1;
    one->outcome = MOON_OUTCOME_FAIL;
    moon_result_count(&result, one);
    moon_text_open(&text, moon_memory_heap());
    moon_report_json(&result, &text);
    MOON_CHECK_INT(
        moon_json_read(&arena, "r", moon_text_value(&text), text.length, MOON_JSON_STRICT, &document, &error), 0);
    MOON_CHECK_INT(moon_schema_open(&schema, &arena, "results", &error), 0);
    MOON_CHECK_INT(moon_schema_check(&schema, NULL, "r", document, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_INT(moon_result_read(&arena, "r", document, &again, &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    const struct moon_json *rules = moon_json_member(schema.root, "properties");
    const struct moon_json *rule = moon_json_member(moon_json_member(schema.root, "$defs"), "case");
    const struct moon_json *written = moon_json_at(moon_json_member(document, "cases"), 0);
    check_all_there(schema.root, document);
    check_all_there(moon_json_member(rules, "harness"), moon_json_member(document, "harness"));
    check_all_there(moon_json_member(rules, "target"), moon_json_member(document, "target"));
    check_all_there(moon_json_member(rules, "counts"), moon_json_member(document, "counts"));
    check_all_there(rule, written);
    check_all_there(moon_json_member(moon_json_member(rule, "properties"), "failure"),
                    moon_json_member(written, "failure"));
    moon_schema_close(&schema);
    moon_text_close(&text);
    end();
}

static void there_is_no_schema_of_another_name(void) {
    struct moon_schema schema;
    begin();
    MOON_CHECK_INT(moon_schema_open(&schema, &arena, "nothing", &error), MOON_ERR_UNSUPPORTED);
    end();
}

/* ---- recorded vectors, when they are there */

static void every_kind_of_recorded_case_has_a_requirement(void) {
    begin();
    if (!moon_io_is_folder("fixtures/vectors")) {
        end();
        return;
    }
    MOON_CHECK_INT(moon_vectors_load(&vectors, "fixtures/vectors", &error), 0);
    MOON_CHECK_TEXT(error.message, "");
    MOON_CHECK_INT(moon_vectors_check_ids(&vectors, &error), 0);
    for (const struct moon_vector *one = vectors.first; one; one = one->next) {
        const struct moon_requirement *found = moon_requirement_of(one->kind, one->profile);
        if (!found)
            fprintf(stderr, "no requirement for %s covers %s\n", one->profile->name, one->kind);
        CU_ASSERT_PTR_NOT_NULL(found);
    }
    end();
}

static void the_longest_glob_is_cited(void) {
    for (size_t i = 0; i < moon_requirements_count; i++)
        for (const char *const *glob = moon_requirements[i].globs; *glob; glob++)
            if (!strpbrk(*glob, "*?[")) {
                const struct moon_requirement *found = moon_requirement_of(*glob, NULL);
                CU_ASSERT_PTR_NOT_NULL_FATAL(found);
                bool same = found == &moon_requirements[i];
                for (const char *const *other = found->globs; *other && !same; other++)
                    same = strcmp(*other, *glob) == 0 || strlen(*other) > strlen(*glob);
                CU_ASSERT(same);
            }
    CU_ASSERT_PTR_NULL(moon_requirement_of("no.such.kind", NULL));
}

static const struct moon_unit_case cases[] = {
    {"loads a case with all its parts", loads_a_case_with_all_its_parts},
    {"a fault names line, column, member and case", a_fault_names_line_column_member_and_case},
    {"values of the wrong type are refused", values_of_the_wrong_type_are_refused},
    {"an unknown release is refused", an_unknown_release_is_refused},
    {"the same id twice is refused with both places", the_same_id_twice_is_refused_with_both_places},
    {"other JSON is refused by name and skipped in a folder", other_json_is_refused_by_name_and_skipped_in_a_folder},
    {"a suite without a name is refused", a_suite_without_a_name_is_refused},
    {"a cut file is an error also in a folder", a_cut_file_is_an_error_also_in_a_folder},
    {"memory that refuses is an error and nothing leaks", memory_that_refuses_is_an_error_and_nothing_leaks},
    {"every member of a schema is one that the suite reads", every_member_of_a_schema_is_one_that_the_suite_reads},
    {"every object of a schema says what else is allowed", every_object_of_a_schema_says_what_else_is_allowed},
    {"the schema of results is what is written and read", the_schema_of_results_is_what_is_written_and_read},
    {"there is no schema of another name", there_is_no_schema_of_another_name},
    {"every kind of recorded case has a requirement", every_kind_of_recorded_case_has_a_requirement},
    {"the longest glob is cited", the_longest_glob_is_cited},
    {NULL, NULL},
};

int main(int argc, char *argv[]) {
    snprintf(folder, sizeof folder, "/tmp/mooncheck-vectors-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    int status = moon_unit_main("vectors", cases, argc, argv);
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 ? status : 1;
}
