/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of lint share among themselves. Nobody else includes it. */
#ifndef MOON_CONFIG_LINT_INTERNAL_H
#define MOON_CONFIG_LINT_INTERNAL_H

#include "ref/config/kv_transfer.h"
#include "ref/config/lint.h"
#include "ref/config/store_config.h"
#include "ref/layout/store_tp.h"

/* A value and the file that it stands in. */
struct lint_place {
    const char *source;
    const struct moon_json *json; /* never NULL */
};

/* One flag of a command line, in the order given. */
struct lint_flag {
    const char *name, *value; /* value "true" for a switch without one */
    const struct moon_json *at;
    struct lint_flag *next;
};

/* A master or an owner. */
struct lint_daemon {
    bool present;
    struct lint_place at;
    const struct moon_json *env; /* object, or NULL */
    const char *host;            /* "" when not told */
    struct lint_flag *flags;
    struct lint_daemon *next;
};

/* One engine, as far as it is told. Numbers are 0 and texts NULL where it is not.
 *   env_told   the description has "env", so what it lacks is not set
 *   described  it stands in a deployment; else it is a lone kv-transfer-config
 *   config     mooncake_config.json, with `loaded` filled when config_ok */
struct lint_engine {
    const char *name;
    struct lint_place at;
    const struct moon_profile *profile;
    bool described, env_told;
    const struct moon_json *env;
    struct moon_connector *connectors;
    const struct moon_connector *store, *p2p;
    struct lint_place transfer; /* json NULL when not told */
    struct lint_place config;   /* json NULL when not told */
    bool config_ok;
    struct moon_store_config loaded;
    const char *host, *model, *hash_algo, *kv_layout;
    int64_t tp, pp, pcp, dcp, kv_heads, dp_index, block_size, http_port;
    bool kv_events;
    const char *socket;                    /* path of its lookup socket, NULL when it has none */
    struct moon_store_selection selection; /* of its store connector, with defaults where nothing is told */
    struct lint_engine *next;
};

/* One run. */
struct lint {
    struct moon_arena *arena;
    const struct moon_profile *profile;
    const struct moon_lint_input *inputs;
    size_t input_count, input_at; /* input_at: the one being read */
    struct moon_lint_report *report;
    struct lint_engine *engines, *last_engine;
    struct lint_daemon master, *owners, *last_owner;
    struct lint_place policy; /* tenant_quota_policy; json NULL when not told */
    size_t engine_count, owner_count;
    int status; /* first failure; then nothing more is found */
};

/* Adds a finding at a value. */
void lint_find(struct lint *lint, const char *rule, const char *source, const struct moon_json *at, const char *format,
               ...) __attribute__((format(printf, 5, 6)));
/* The same with a milder severity than the rule's. */
void lint_find_as(struct lint *lint, const char *rule, enum moon_lint_severity severity, const char *source,
                  const struct moon_json *at, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* The same at a line and column. */
void lint_find_at(struct lint *lint, const char *rule, const char *source, uint32_t line, uint32_t column,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));

/* A value in one line for messages, as compact JSON, cut when it is long. Arena text, "" when memory refused. */
const char *lint_show(struct lint *lint, const struct moon_json *value);
/* "; did you mean \"x\"?" or "". */
const char *lint_hint(struct lint *lint, const char *suggestion);
/* True for texts that people write for "off": false, no, off, 0, n, f in any case. */
bool lint_reads_as_off(const char *text);
/* True for a text HOST:PORT with a port in 1..65535; bracketed IPv6 hosts too. */
bool lint_is_host_port(const char *text, size_t length);
/* Port of HOST:PORT, 0 if the text is none. */
int64_t lint_port_of(const char *text);
/* A whole number in min..max written in the text. */
bool lint_is_number(const char *text, int64_t min, int64_t max, int64_t *out);
/* Member of an environment as text, NULL if not set. Non-texts are reported by the reader of the description. */
const struct moon_json *lint_variable(const struct moon_json *env, const char *name);
/* Adapter: struct moon_environment over an environment object. */
const char *lint_environment_get(void *context, const char *name);

/* lint_store_config.c */
void lint_store_config_file(struct lint *lint, const struct moon_lint_input *input);
/* Checks a document and fills engine->loaded; `engine` NULL for a lone file. */
void lint_store_config(struct lint *lint, const struct moon_profile *profile, struct lint_place config,
                       struct lint_engine *engine);
void lint_repeated_members(struct lint *lint, const struct moon_lint_input *input);

/* lint_extra.c, lint_kv_transfer.c, lint_environment.c, lint_engine.c: one engine */
void lint_extra(struct lint *lint, const struct lint_engine *engine, const struct moon_connector *connector);
void lint_kv_transfer(struct lint *lint, struct lint_engine *engine);
void lint_environment(struct lint *lint, const struct lint_engine *engine);
void lint_engine(struct lint *lint, struct lint_engine *engine);

/* lint_deployment.c: reads descriptions; lint_command.c: makes them from command lines */
void lint_deployment(struct lint *lint, const char *source, const struct moon_json *document);
bool lint_looks_like_commands(const struct moon_lint_input *input);
struct moon_json *lint_commands(struct lint *lint, const struct moon_lint_input *input);

/* lint_flags.c: flags of mooncake_master and mooncake_client */
enum lint_program { LINT_MASTER, LINT_OWNER };
void lint_flags_read(struct lint *lint, enum lint_program program, const char *source, const struct moon_json *list,
                     struct lint_flag **out);
/* Value of a flag (the last one given counts), or its default. Never NULL. */
const char *lint_flag_value(enum lint_program program, const struct lint_flag *flags, const char *name);
bool lint_flag_on(enum lint_program program, const struct lint_flag *flags, const char *name);
/* Where a flag was given, or `otherwise`. */
const struct moon_json *lint_flag_place(const struct lint_flag *flags, const char *name,
                                        const struct moon_json *otherwise);

/* lint_daemons.c, lint_tenants.c, lint_cluster.c: everything together */
void lint_daemons(struct lint *lint);
void lint_tenants(struct lint *lint);
void lint_cluster(struct lint *lint);
/* lint_engine.c: questions about an engine; all answer no where its configuration is not known or not loaded */
bool lint_uses_rdma(const struct lint_engine *engine);
bool lint_standalone(const struct lint_engine *engine);
bool lint_offloads(const struct lint_engine *engine);
/* Preferred segment that it really uses; NULL for none. */
const char *lint_preferred_segment(struct lint *lint, const struct lint_engine *engine);
/* lint_environment.c: variables of the transfer engine, on engines and owners */
void lint_rdma_variables(struct lint *lint, const char *source, const struct moon_json *env, bool rdma);
/* Tenant that an engine really uses: "default" for releases that know none. NULL when its configuration is not known.
 */
const char *lint_tenant_of(const struct lint_engine *engine);
/* True if a master is described and no configuration file of its own may hold further flags. */
bool lint_master_certain(const struct lint *lint);
/* Port that an owner listens on. */
int64_t lint_owner_port(const struct lint_daemon *owner);
/* Port that the master listens on for RPC. */
int64_t lint_master_port(const struct lint *lint);

#endif
