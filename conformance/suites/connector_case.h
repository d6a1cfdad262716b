/* SPDX-License-Identifier: Apache-2.0 */
/* Members of `given` that describe an engine with its store connector, shared by the suites lookup, save and load. */
#ifndef MOON_CONFORMANCE_SUITES_CONNECTOR_CASE_H
#define MOON_CONFORMANCE_SUITES_CONNECTOR_CASE_H

#include "conformance/suites/engine.h"
#include "ref/connector/connector.h"

/* Names of the members, for a suite's closed list. */
#define MOON_CONNECTOR_MEMBERS MOON_ENGINE_MEMBERS

/* One connector as read. It points into itself (connector.model is &engine.model): read it where it stays. */
struct moon_connector_case {
    struct moon_engine engine;
    struct moon_connector_options options; /* as the user gave them, before the release had its say */
    struct moon_connector connector;
};

/* Reads the options of the connector: kv_role (as moon_engine_read checked it) and extra_config, each option with the
 * truth that the release gives to its value. Never fails. `extra_config` may be NULL. */
void moon_connector_options_read(const char *kv_role, const struct moon_json *extra_config,
                                 struct moon_connector_options *out);

/* Reads engine and options, and opens the connector. Returns 0; MOON_ERR_SCHEMA or MOON_ERR_RANGE with the place;
 * MOON_ERR_UNSUPPORTED for an engine that the release does not run; MOON_ERR_REFUSED with what the release raises;
 * MOON_ERR_MEMORY. Everything borrows from the arena and the document. */
int moon_connector_case_read(struct moon_arena *arena, const struct moon_profile *profile, const char *source,
                             const struct moon_json *given, struct moon_connector_case *out, struct moon_error *error);

#endif
