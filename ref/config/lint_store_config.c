/* SPDX-License-Identifier: Apache-2.0 */
/* Lint of mooncake_config.json: what the release refuses, and what it takes in another sense than meant. */
#include "ref/config/lint_internal.h"

#include "ref/base/suggest.h"
#include "ref/config/python_number.h"
#include "ref/config/python_repr.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SMALL_BYTES         (1024.0 * 1024)
#define SEGMENT_BYTES_MIN   (16.0 * 1024 * 1024)
#define SEGMENT_BYTES_LARGE (1024.0 * 1024 * 1024 * 1024)
#define BUFFER_BYTES_LARGE  (256.0 * 1024 * 1024 * 1024)

/* ---- sizes ---- */

/* A remark on a size text that the release refuses: which unit or form was probably meant. */
static const char *size_hint(const char *text) {
    static const struct {
        const char *part, *hint;
    } hints[] = {
        {"ib", "; GiB, MiB and KiB are not understood, but GB, MB and KB count in powers of 1024"},
        {"t", "; there is no TB: write 1024GB"},
        {",", "; no commas"},
        {"-", "; no sign"},
        {"b", ""},
        {"g", "; write GB"},
        {"m", "; write MB"},
        {"k", "; write KB"},
    };
    for (size_t i = 0; i < sizeof hints / sizeof hints[0]; i++)
        if (strcasestr(text, hints[i].part))
            return hints[i].hint;
    return "";
}

static void check_amount(struct lint *lint, const char *source, const struct moon_json *at, double bytes, bool unit) {
    bool segment = strcmp(at->name, "global_segment_size") == 0;
    const char *shown = lint_show(lint, at);
    if (segment && bytes < 0)
        lint_find(lint, "LINT-014", source, at, "global_segment_size is %s", shown);
    else if (segment && bytes > 0 && bytes < SEGMENT_BYTES_MIN)
        lint_find(lint, "LINT-015", source, at, "global_segment_size %s is %.0f bytes, less than 16 MiB", shown, bytes);
    else if (bytes > 0 && bytes < SMALL_BYTES && !unit)
        lint_find(lint, "LINT-016", source, at, "%s %s is %.0f bytes", at->name, shown, bytes);
    if (bytes > (segment ? SEGMENT_BYTES_LARGE : BUFFER_BYTES_LARGE))
        lint_find(lint, "LINT-017", source, at, "%s %s is %.0f GiB", at->name, shown, bytes / (1024.0 * 1024 * 1024));
}

/* A size that the release reads: what is cut off, and is it a likely amount? */
static void check_value(struct lint *lint, const char *source, const struct moon_json *value,
                        const struct moon_json *size) {
    struct moon_size_text text = {0, false, false};
    struct moon_exception raised;
    if (value->type == MOON_JSON_STRING &&
        moon_python_size_text(lint->arena, value->bytes, value->length, &text, &raised) == MOON_ERR_MEMORY)
        lint->status = MOON_ERR_MEMORY;
    bool cut = value->type == MOON_JSON_BOOL || value->type == MOON_JSON_REAL || text.fraction;
    double bytes = size->type == MOON_JSON_BOOL ? size->boolean : size->real;
    if (cut)
        lint_find(lint, "LINT-013", source, value, "%s %s counts as %.0f bytes", value->name, lint_show(lint, value),
                  bytes);
    check_amount(lint, source, value, bytes, text.unit);
}

/* Sign of a size as the release reads it, 1 for the default; -2 and a finding when it cannot be read. */
static int check_size(struct lint *lint, const char *source, const struct moon_json *document, const char *name) {
    const struct moon_json *value = moon_json_member(document, name);
    struct moon_json *size = NULL;
    struct moon_exception raised = {0};
    if (!value)
        return 1;
    int status = moon_python_size(lint->arena, value, &size, &raised);
    if (status == MOON_ERR_MEMORY)
        lint->status = status;
    else if (status)
        lint_find(lint, "LINT-003", source, value, "%s raises %s: %s%s", name, raised.type, raised.message,
                  value->type == MOON_JSON_STRING ? size_hint(value->bytes) : "");
    if (status)
        return -2;
    check_value(lint, source, value, size);
    return moon_python_sign(size);
}

/* ---- mode ---- */

static void check_mode(struct lint *lint, const char *source, const struct moon_json *document, int segment,
                       int buffer) {
    static const char *const modes[] = {"embedded", "standalone-store", NULL};
    const struct moon_json *mode = moon_json_member(document, "mode");
    const struct moon_json *size = moon_json_member(document, "global_segment_size");
    bool embedded = !mode || moon_json_is_string(mode, "embedded");
    if (buffer == 0 || buffer == -1)
        lint_find(lint, "LINT-006", source, moon_json_member(document, "local_buffer_size"), "local_buffer_size is %s",
                  lint_show(lint, moon_json_member(document, "local_buffer_size")));
    if (!embedded && !moon_json_is_string(mode, "standalone-store"))
        lint_find(lint, "LINT-004", source, mode, "mode is %s%s", lint_show(lint, mode),
                  lint_hint(lint, moon_json_is(mode, MOON_JSON_STRING) ? moon_suggest(mode->bytes, modes) : NULL));
    else if (embedded && segment == 0)
        lint_find(lint, "LINT-005", source, size, "embedded mode and global_segment_size %s", lint_show(lint, size));
    else if (!embedded && (segment == 1 || segment == -1))
        lint_find(lint, "LINT-005", source, size ? size : mode, "standalone-store mode and global_segment_size %s",
                  size ? lint_show(lint, size) : "missing, so 4 GiB");
}

/* ---- connection members ---- */

static const struct moon_json *text_member(const struct moon_json *document, const char *name) {
    const struct moon_json *value = moon_json_member(document, name);
    return moon_json_is(value, MOON_JSON_STRING) ? value : NULL;
}

static void check_metadata_server(struct lint *lint, const char *source, const struct moon_json *document) {
    const struct moon_json *given = moon_json_member(document, "metadata_server");
    const struct moon_json *text = text_member(document, "metadata_server");
    if (!text || text->length == 0) {
        lint_find(lint, "LINT-018", source, given ? given : document, "metadata_server is %s",
                  given ? lint_show(lint, given) : "missing");
        return;
    }
    if (strcmp(text->bytes, "P2PHANDSHAKE") == 0)
        return;
    lint_find(lint, "LINT-019", source, text, "metadata_server is %s", lint_show(lint, text));
    if (moon_python_truth(moon_json_member(document, "enable_offload")))
        lint_find(lint, "LINT-020", source, text, "enable_offload with metadata_server %s", lint_show(lint, text));
}

static bool is_ha_address(const char *text) {
    return strncmp(text, "etcd://", 7) == 0 || strncmp(text, "redis://", 8) == 0 || strncmp(text, "k8s://", 6) == 0;
}

static void check_master(struct lint *lint, const char *source, const struct moon_json *document) {
    const struct moon_json *given = moon_json_member(document, "master_server_address");
    const struct moon_json *text = text_member(document, "master_server_address");
    if (!text || text->length == 0)
        lint_find(lint, "LINT-021", source, given ? given : document, "master_server_address is %s",
                  given ? lint_show(lint, given) : "missing");
    else if (!is_ha_address(text->bytes) && !lint_is_host_port(text->bytes, text->length))
        lint_find(lint, "LINT-021", source, text, "master_server_address %s is not HOST:PORT", lint_show(lint, text));
}

static void check_protocol(struct lint *lint, const char *source, const struct moon_json *document) {
    static const char *const names[] = {"rdma", "tcp", NULL};
    const struct moon_json *given = moon_json_member(document, "protocol"), *text = text_member(document, "protocol");
    if (given && (!text || text->length == 0)) {
        lint_find(lint, "LINT-022", source, given, "protocol is %s", lint_show(lint, given));
        return;
    }
    if (!text || strcmp(text->bytes, "rdma") == 0 || strcmp(text->bytes, "tcp") == 0)
        return;
    const char *suggestion = moon_suggest(text->bytes, names);
    if (suggestion || strcmp(text->bytes, "rpc_only") == 0)
        lint_find(lint, "LINT-022", source, text, "protocol is %s%s", lint_show(lint, text),
                  lint_hint(lint, suggestion));
    else
        lint_find_as(lint, "LINT-022", MOON_LINT_WARNING, source, text,
                     "protocol is %s; only rdma and tcp are part of every build", lint_show(lint, text));
}

/* Network interfaces as Linux names them; RDMA devices of soft-RoCE may be called rxe_eth0 and the like. */
static bool looks_like_interface(const char *name, size_t length) {
    static const char *const prefixes[] = {"eth", "ens", "enp", "eno", "wlan", "bond", "docker"};
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        size_t prefix = strlen(prefixes[i]);
        if (length > prefix && strncmp(name, prefixes[i], prefix) == 0 && isdigit((unsigned char)name[prefix]))
            return true;
    }
    return length == 2 && strncmp(name, "lo", 2) == 0;
}

static void check_device_list(struct lint *lint, const struct moon_profile *profile, const char *source,
                              const struct moon_json *text) {
    for (const char *at = text->bytes, *end = text->bytes + text->length; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end, *name = at;
        size_t length = (size_t)(stop - at);
        moon_python_strip(&name, &length);
        if (length == 0)
            lint_find_as(lint, "LINT-026", profile->device_by_gpu ? MOON_LINT_ERROR : MOON_LINT_WARNING, source, text,
                         "device_name %s has an empty element", lint_show(lint, text));
        else if (name != at || name + length != stop)
            lint_find_as(lint, "LINT-026", MOON_LINT_WARNING, source, text, "device_name %s has blanks around a name",
                         lint_show(lint, text));
        if (looks_like_interface(name, length))
            lint_find(lint, "LINT-027", source, text, "device_name holds \"%.*s\"", (int)length, name);
        at = stop + 1;
    }
}

static void check_device(struct lint *lint, const struct moon_profile *profile, const char *source,
                         const struct moon_json *document) {
    const struct moon_json *given = moon_json_member(document, "device_name"),
                           *text = text_member(document, "device_name");
    const struct moon_json *protocol = moon_json_member(document, "protocol");
    bool rdma = !protocol || moon_json_is_string(protocol, "rdma");
    if (given && !text) {
        lint_find(lint, "LINT-026", source, given, "device_name is %s", lint_show(lint, given));
    } else if (text && text->length > 0) {
        check_device_list(lint, profile, source, text);
        if (moon_json_is_string(protocol, "tcp"))
            lint_find(lint, "LINT-024", source, text, "device_name %s with protocol tcp", lint_show(lint, text));
    } else if (rdma) {
        lint_find(lint, "LINT-025", source, given ? given : document, "protocol rdma and no device_name");
    }
}

/* ---- members ---- */

static void check_names(struct lint *lint, const struct moon_profile *profile, const char *source,
                        const struct moon_json *document) {
    const char *const *names = moon_store_config_names(profile);
    for (const struct moon_json *member = document->first; member; member = member->next) {
        int since = moon_store_config_since(member->name);
        if (since == 0)
            lint_find(lint, "LINT-008", source, member, "%s does not know \"%s\"%s", profile->name, member->name,
                      lint_hint(lint, moon_suggest(member->name, names)));
        else if (since > profile->minor)
            lint_find(lint, "LINT-009", source, member, "%s does not know \"%s\": it came with 0.%d", profile->name,
                      member->name, since);
    }
}

static void check_offload(struct lint *lint, const struct moon_profile *profile, const char *source,
                          const struct moon_json *document) {
    const struct moon_json *value = moon_json_member(document, "enable_offload");
    if (!value || !profile->config_mode || value->type == MOON_JSON_BOOL)
        return;
    if (value->type == MOON_JSON_STRING && lint_reads_as_off(value->bytes))
        lint_find(lint, "LINT-011", source, value, "enable_offload %s switches offload on", lint_show(lint, value));
    else
        lint_find(lint, "LINT-012", source, value, "enable_offload %s counts as %s", lint_show(lint, value),
                  moon_python_truth(value) ? "true" : "false");
}

static bool valid_tenant(const char *name, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((uint8_t)name[i] < ' ' || name[i] == 0x7F)
            return false;
    return name[0] != '_';
}

static void check_tenant(struct lint *lint, const struct moon_profile *profile, const char *source,
                         const struct moon_json *document) {
    const struct moon_json *given = moon_json_member(document, "tenant_id"),
                           *tenant = text_member(document, "tenant_id");
    if (given && !tenant && given->type != MOON_JSON_NULL && profile->config_tenant)
        lint_find(lint, "LINT-007", source, given, "tenant_id is %s", lint_show(lint, given));
    const char *name = tenant ? tenant->bytes : "";
    size_t length = tenant ? tenant->length : 0;
    moon_python_strip(&name, &length);
    if (length == 0 || (length == strlen("default") && memcmp(name, "default", length) == 0))
        return;
    if (!valid_tenant(name, length))
        lint_find(lint, "LINT-135", source, tenant, "tenant_id %s", lint_show(lint, tenant));
    if (profile->config_tenant)
        lint_find(lint, "LINT-138", source, tenant, "tenant_id %s", lint_show(lint, tenant));
    else
        lint_find(lint, "LINT-130", source, tenant, "%s ignores tenant_id %s", profile->name, lint_show(lint, tenant));
}

/* What no member alone explains: the top level, and integers that Python does not read. */
static void report_document(struct lint *lint, struct lint_place config, const struct moon_exception *raised) {
    lint_find(lint, config.json->type == MOON_JSON_OBJECT ? "LINT-003" : "LINT-002", config.source, config.json,
              "raises %s: %s", raised->type, raised->message);
}

void lint_store_config(struct lint *lint, const struct moon_profile *profile, struct lint_place config,
                       struct lint_engine *engine) {
    struct moon_store_config loaded;
    struct moon_exception raised;
    int status = moon_store_config_load(lint->arena, profile, config.json, &loaded, &raised);
    if (status == MOON_ERR_MEMORY)
        lint->status = status;
    else if (status && !raised.member)
        report_document(lint, config, &raised);
    if (engine && !status) {
        engine->loaded = loaded;
        engine->config_ok = true;
    }
    if (config.json->type != MOON_JSON_OBJECT)
        return;
    check_names(lint, profile, config.source, config.json);
    int segment = check_size(lint, config.source, config.json, "global_segment_size");
    int buffer = check_size(lint, config.source, config.json, "local_buffer_size");
    if (profile->config_mode)
        check_mode(lint, config.source, config.json, segment, buffer);
    check_metadata_server(lint, config.source, config.json);
    check_master(lint, config.source, config.json);
    check_protocol(lint, config.source, config.json);
    check_device(lint, profile, config.source, config.json);
    check_offload(lint, profile, config.source, config.json);
    check_tenant(lint, profile, config.source, config.json);
}

/* ---- files ---- */

/* Line and column from an error of a reader that was told no source: ":LINE:COLUMN ...". */
static void place_of_error(const struct moon_error *error, uint32_t *line, uint32_t *column) {
    if (sscanf(error->where, ":%" SCNu32 ":%" SCNu32, line, column) != 2)
        *line = *column = 1;
}

void lint_store_config_file(struct lint *lint, const struct moon_lint_input *input) {
    struct moon_store_config loaded;
    struct moon_exception raised;
    struct moon_error error = {0};
    const struct moon_json *document = NULL;
    int status = moon_store_config_read(lint->arena, lint->profile, "", input->bytes, input->length, &document, &loaded,
                                        &raised, &error);
    uint32_t line, column;
    if (status == MOON_ERR_MEMORY) {
        lint->status = status;
    } else if (document) {
        lint_store_config(lint, lint->profile, (struct lint_place){input->name, document}, NULL);
    } else {
        place_of_error(&error, &line, &column);
        lint_find_at(lint, "LINT-001", input->name, line, column, "raises %s: %s", raised.type, error.message);
    }
}

void lint_repeated_members(struct lint *lint, const struct moon_lint_input *input) {
    struct moon_json *document = NULL;
    struct moon_error error = {0};
    uint32_t line, column;
    int status = moon_json_read(lint->arena, "", input->bytes, input->length, MOON_JSON_STRICT, &document, &error);
    if (status == MOON_ERR_MEMORY) {
        lint->status = status;
    } else if (status) {
        place_of_error(&error, &line, &column);
        lint_find_at(lint, "LINT-010", input->name, line, column, "%s", error.message);
    }
}
