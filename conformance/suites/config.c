/* SPDX-License-Identifier: Apache-2.0 */
/* Suite config: how the connector reads its configuration file and its environment. */
#include "conformance/suites/config.h"

#include "conformance/suites/refusal.h"
#include "ref/config/environment.h"
#include "ref/config/python_repr.h"
#include "ref/config/store_config.h"

#include <string.h>

/* Everything that one function of the suite passes to the next. */
struct call {
    struct moon_arena *arena;
    const struct moon_profile *profile;
    const char *source;
    const struct moon_json *given;
    struct moon_exception raised;
    struct moon_error *error;
};

/* ---- store_config ---- */

struct file_given {
    const struct moon_json *json; /* file_json, or NULL */
    const char *text;             /* file_text, or NULL */
    size_t text_bytes;
    bool env_set, missing;
    const char *env_value; /* NULL: the file's path */
};

static int read_file_given(const struct call *call, struct file_given *file) {
    static const char *const names[] = {"op", "file_json", "file_text", "env_set", "env_value", "file_missing", NULL};
    *file = (struct file_given){.env_set = true};
    int status = moon_json_closed(call->source, call->given, names, call->error);
    if (!status)
        status = moon_json_get_bool(call->source, call->given, "env_set", false, &file->env_set, call->error);
    if (!status)
        status = moon_json_get_bool(call->source, call->given, "file_missing", false, &file->missing, call->error);
    if (!status)
        status =
            moon_json_get_string(call->source, call->given, "env_value", false, &file->env_value, NULL, call->error);
    if (!status)
        status = moon_json_get_string(call->source, call->given, "file_text", false, &file->text, &file->text_bytes,
                                      call->error);
    if (status)
        return status;
    file->json = moon_json_member(call->given, "file_json");
    if ((file->json != NULL) == (file->text != NULL))
        return moon_json_fail(call->error, MOON_ERR_SCHEMA, call->source, call->given,
                              "exactly one of \"file_json\" and \"file_text\" is needed");
    return MOON_OK;
}

static const char *config_path(void *context, const char *name) {
    const struct file_given *file = context;
    (void)name; /* the one variable that is asked for */
    return !file->env_set ? NULL : file->env_value ? file->env_value : "<file>";
}

/* Loads as the release does; `config` is filled when 0 is returned. */
static int load_store_config(struct call *call, struct moon_store_config *config) {
    struct file_given file;
    const char *path = NULL;
    const struct moon_json *document = NULL;
    int status = read_file_given(call, &file);
    if (!status)
        status =
            moon_store_config_path(call->arena, &(struct moon_environment){config_path, &file}, &path, &call->raised);
    if (status)
        return status;
    if (file.missing || file.env_value)
        return moon_raise(call->arena, &call->raised, "FileNotFoundError", "[Errno 2] No such file or directory: '%s'",
                          path);
    if (file.json)
        return moon_store_config_load(call->arena, call->profile, file.json, config, &call->raised);
    return moon_store_config_read(call->arena, call->profile, call->source, file.text, file.text_bytes, &document,
                                  config, &call->raised, call->error);
}

/* ---- preferred_segment, requester_hostname ---- */

static const char *variable_of_object(void *context, const char *name) {
    const struct moon_json *value = moon_json_member(context, name);
    return value ? value->bytes : NULL;
}

/* Reads member "env": an object of texts that environment variables can have. */
static int read_env(const struct call *call, struct moon_environment *environment) {
    struct moon_json *env = NULL;
    int status = moon_json_get(call->source, call->given, "env", false, MOON_JSON_OBJECT, &env, call->error);
    for (const struct moon_json *one = env ? env->first : NULL; one && !status; one = one->next)
        if (one->type != MOON_JSON_STRING || memchr(one->bytes, '\0', one->length))
            status = moon_json_fail(call->error, MOON_ERR_SCHEMA, call->source, one,
                                    "a text without NUL is needed, not %s", moon_json_type_name(one));
    *environment = (struct moon_environment){variable_of_object, env};
    return status;
}

/* Begins an operation that has an environment; both came with 0.22. */
static int open_operation(const struct call *call, const char *const names[], struct moon_environment *environment) {
    if (!call->profile->config_mode)
        return moon_json_fail(call->error, MOON_ERR_UNSUPPORTED, call->source, call->given, "%s does not read this",
                              call->profile->name);
    int status = moon_json_closed(call->source, call->given, names, call->error);
    return status ? status : read_env(call, environment);
}

static int answer_segment(struct call *call, struct moon_json **value) {
    static const char *const names[] = {"op", "env", "extra_config", NULL};
    struct moon_environment environment;
    struct moon_json *extra = NULL;
    const char *segment = NULL;
    size_t length = 0;
    int status = open_operation(call, names, &environment);
    if (!status)
        status = moon_json_get(call->source, call->given, "extra_config", false, MOON_JSON_OBJECT, &extra, call->error);
    if (!status)
        status = moon_preferred_segment(call->arena, &environment, extra, &segment, &length, &call->raised);
    if (!status)
        *value = segment ? moon_json_bytes(call->arena, segment, length) : moon_json_null(call->arena);
    return status;
}

static int answer_hostname(struct call *call, struct moon_json **value) {
    static const char *const names[] = {"op", "env", "local_ip", NULL};
    struct moon_environment environment;
    const char *local_ip = NULL, *hostname = NULL;
    size_t length = 0;
    int status = open_operation(call, names, &environment);
    if (!status)
        status = moon_json_get_string(call->source, call->given, "local_ip", true, &local_ip, NULL, call->error);
    if (status)
        return status;
    moon_requester_hostname(&environment, local_ip, &hostname, &length);
    *value = moon_json_bytes(call->arena, hostname, length);
    return MOON_OK;
}

/* ---- answer ---- */

static int answer_store_config(struct call *call, struct moon_json **value) {
    struct moon_store_config config;
    int status = load_store_config(call, &config);
    if (!status)
        *value = moon_store_config_json(call->arena, &config);
    return status;
}

static int answer_call(struct call *call, struct moon_json **result) {
    const char *op = NULL;
    struct moon_json *value = NULL;
    int status = moon_json_get_string(call->source, call->given, "op", true, &op, NULL, call->error);
    if (status)
        return status;
    if (strcmp(op, "store_config") == 0)
        status = answer_store_config(call, &value);
    else if (strcmp(op, "preferred_segment") == 0)
        status = answer_segment(call, &value);
    else if (strcmp(op, "requester_hostname") == 0)
        status = answer_hostname(call, &value);
    else
        return moon_json_fail(call->error, MOON_ERR_SCHEMA, call->source, moon_json_member(call->given, "op"),
                              "\"%s\" is none of store_config, preferred_segment, requester_hostname", op);
    if (status && status != MOON_ERR_REFUSED)
        return status;
    if (status) {
        *result = moon_exception_answer(call->arena, call->raised.type, call->raised.message, call->raised.length);
    } else {
        *result = moon_json_object(call->arena);
        moon_json_set(call->arena, *result, "value", value);
    }
    return moon_json_broken(*result) ? moon_fail(call->error, MOON_ERR_MEMORY, NULL, "out of memory") : MOON_OK;
}

static int answer(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                  const char *source, const struct moon_json *given, struct moon_json **result,
                  struct moon_error *error) {
    (void)world; /* a case holds its whole environment */
    struct call call = {arena, profile, source, given, {0}, error};
    return answer_call(&call, result);
}

/* ---- explain ---- */

/* Which rule made a member of the loaded configuration what it is. */
static const char *rule_of(const char *name, bool given) {
    static const struct {
        const char *name, *rule;
    } rules[] = {
        {"mode", "CONFIG-013: exactly embedded or standalone-store; since 0.22"},
        {"global_segment_size", "CONFIG-010, -011: size rule; CONFIG-014: against mode from 0.22"},
        {"local_buffer_size", "CONFIG-010, -011: size rule; CONFIG-014: above 0 from 0.22"},
        {"enable_offload", "CONFIG-017: Python's truth of the value; since 0.22"},
        {"tenant_id", "CONFIG-019: stripped; since 0.28"},
    };
    if (!given)
        return "CONFIG-007: default";
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (strcmp(name, rules[i].name) == 0)
            return rules[i].rule;
    return "CONFIG-009: passed through as it is";
}

static void explain_fields(const struct call *call, const struct moon_json *value, struct moon_text *out) {
    const struct moon_json *file = moon_json_member(call->given, "file_json");
    const struct moon_json *text = moon_json_member(call->given, "file_text");
    struct moon_json *tree = NULL;
    if (text &&
        moon_json_read(call->arena, call->source, text->bytes, text->length, MOON_JSON_PYTHON, &tree, NULL) == MOON_OK)
        file = tree;
    for (const struct moon_json *field = value->first; field; field = field->next) {
        const struct moon_json *written = moon_json_member(file, field->name);
        moon_text_format(out, "%-22s ", field->name);
        moon_python_repr(field, out);
        if (written) {
            moon_text_string(out, "   from ");
            moon_python_repr(written, out);
        }
        moon_text_format(out, "   (%s)\n", rule_of(field->name, written != NULL));
    }
    for (const struct moon_json *written = file ? file->first : NULL; written; written = written->next)
        if (!moon_json_member(value, written->name))
            moon_text_format(out, "%-22s ignored   (CONFIG-008: %s does not read it)\n", written->name,
                             call->profile->name);
}

static int explain(const struct moon_suite_world *world, struct moon_arena *arena, const struct moon_profile *profile,
                   const char *source, const struct moon_json *given, struct moon_text *out, struct moon_error *error) {
    (void)world;
    struct call call = {arena, profile, source, given, {0}, error};
    struct moon_json *result = NULL;
    int status = answer_call(&call, &result);
    if (status)
        return status;
    const struct moon_json *value = moon_json_member(result, "value"), *op = moon_json_member(given, "op");
    moon_text_format(out, "%s, %s\n", profile->name, op->bytes);
    if (!value) {
        moon_text_format(out, "raises %s: ", call.raised.type);
        moon_text_bytes(out, call.raised.message, call.raised.length);
        moon_text_format(out, "\n%s%s", call.raised.member ? "about " : "",
                         call.raised.member ? call.raised.member : "");
        moon_text_string(out, "   (CONFIG-020: the first fault in the release's order)\n");
    } else if (value->type == MOON_JSON_OBJECT) {
        explain_fields(&call, value, out);
    } else {
        moon_python_repr(value, out);
        moon_text_string(
            out, moon_json_is_string(op, "preferred_segment")
                     ? "   (CONFIG-021: extra config before MOONCAKE_PREFERRED_SEGMENT, stripped)\n"
                     : "   (CONFIG-022: MOONCAKE_REQUESTER_LOCAL_HOSTNAME stripped, else the host's address)\n");
    }
    return out->failed ? moon_fail(error, MOON_ERR_MEMORY, NULL, "out of memory") : MOON_OK;
}

const struct moon_suite moon_suite_config = {"config", answer, explain, moon_config_draw, NULL};
