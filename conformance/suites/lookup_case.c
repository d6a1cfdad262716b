/* SPDX-License-Identifier: Apache-2.0 */
/* Suite lookup: reading a case. */
#include "conformance/suites/hashes.h"
#include "conformance/suites/lookup.h"

static int read_store(struct moon_arena *arena, const char *source, const struct moon_json *given,
                      struct moon_lookup_case *out, struct moon_error *error) {
    moon_key_set_open(&out->answers, arena);
    int status = moon_key_set_read_list(&out->answers, source, given, "existing_keys", error);
    if (!status)
        status = moon_key_set_read_numbers(&out->answers, source, given, "exist_result_override", error);
    return status ? status : moon_json_get_bool(source, given, "exist_raises", false, &out->raises, error);
}

static int read_request(struct moon_arena *arena, const char *source, const struct moon_json *given,
                        struct moon_lookup_case *out, struct moon_error *error) {
    const struct moon_layout_model *model = &out->its.engine.model;
    struct moon_request *request = &out->request;
    int64_t tokens = model->scheduler_block_tokens + 1;
    int status = moon_json_get_int(source, given, "num_tokens", false, 1, MOON_LOOKUP_TOKENS_MAX, &tokens, error);
    if (!status)
        status =
            moon_json_get_int(source, given, "num_computed_tokens", false, 0, tokens, &out->computed_tokens, error);
    if (!status)
        status = moon_hashes_read(arena, source, given, false, &request->hashes, error);
    int64_t needed = tokens / model->hash_block_tokens;
    if (!status && !request->hashes.bytes)
        status = moon_hashes_number(arena, needed, &request->hashes, error);
    if (status)
        return status;
    if ((int64_t)request->hashes.count < needed)
        return moon_json_fail(error, MOON_ERR_RANGE, source, moon_json_member(given, "block_hashes"),
                              "a request of %lld tokens has %lld block hashes", (long long)tokens, (long long)needed);
    request->hashes.count = (size_t)needed; /* only full blocks are hashed */
    request->prompt_tokens = request->known_tokens = tokens;
    return 0;
}

int moon_lookup_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                          const struct moon_json *given, struct moon_lookup_case *out, struct moon_error *error) {
    static const char *const names[] = {MOON_CONNECTOR_MEMBERS, "num_tokens",
                                        "num_computed_tokens",  "block_hashes",
                                        "existing_keys",        "exist_result_override",
                                        "exist_raises",         NULL};
    *out = (struct moon_lookup_case){.raises = false};
    int status = moon_json_closed(source, given, names, error);
    if (!status)
        status = read_store(arena, source, given, out, error);
    if (!status)
        status = moon_connector_case_read(arena, profile, source, given, &out->its, error);
    return status ? status : read_request(arena, source, given, out, error);
}

int moon_lookup_case_ask(const struct moon_lookup_case *its, struct moon_lookup_direct *direct, moon_exist_store *store,
                         void *context, struct moon_memory *memory, struct moon_match *match,
                         struct moon_error *error) {
    struct moon_scheduler *scheduler = NULL;
    moon_lookup_direct_open(direct, &its->its.connector, memory, store, context);
    int status = moon_scheduler_open(&scheduler, &its->its.connector, &direct->port, NULL,
                                     moon_world_size(&its->its.engine.model), memory, error);
    if (!status)
        status = moon_scheduler_match(scheduler, &its->request, its->computed_tokens, match, error);
    if (!status && direct->raised.status) {
        *error = direct->raised;
        status = direct->raised.status;
    }
    moon_scheduler_close(scheduler);
    return status;
}

int64_t moon_lookup_case_answer(const struct moon_lookup_case *its, struct moon_key_text key) {
    const int64_t *answer = moon_key_set_find(&its->answers, key);
    return answer ? *answer : 0;
}
