/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table of options that several commands have: they describe a release, a model and an engine. */
#ifndef MOON_CONFORMANCE_ENGINE_OPTIONS_H
#define MOON_CONFORMANCE_ENGINE_OPTIONS_H

#include "conformance/suites/engine.h"
#include "ref/base/options.h"

/* Each fills the static variable that it is given: text, or int64_t for numbers. */
#define MOON_CLI_PROFILE_ROW(profile)                                                                                  \
    {                                                                                                                  \
        .name = "profile", .kind = MOON_OPTION_TEXT, .into = &(profile), .value = "NAME",                              \
        .help = "vLLM release, as vllm-0.30 or 0.30.0 (default: the newest)"                                           \
    }
#define MOON_CLI_MODEL_ROW(model)                                                                                      \
    {                                                                                                                  \
        .name = "model", .kind = MOON_OPTION_TEXT, .into = &(model), .value = "PATH",                                  \
        .help = "model name or path as configured (default: model)"                                                    \
    }
#define MOON_CLI_PREFIX_ROW(prefix)                                                                                    \
    {                                                                                                                  \
        .name = "prefix", .kind = MOON_OPTION_TEXT, .into = &(prefix), .value = "TEXT",                                \
        .help = "cache_prefix of the extra config (default: none)"                                                     \
    }
#define MOON_CLI_TP_ROW(tp)                                                                                            \
    {                                                                                                                  \
        .name = "tp", .kind = MOON_OPTION_INTEGER, .into = &(tp), .value = "N", .min = 1,                              \
        .max = MOON_ENGINE_WORLD_MAX, .help = "tensor parallel size (default: 1)"                                      \
    }
#define MOON_CLI_PP_ROW(pp)                                                                                            \
    {                                                                                                                  \
        .name = "pp", .kind = MOON_OPTION_INTEGER, .into = &(pp), .value = "N", .min = 1,                              \
        .max = MOON_ENGINE_WORLD_MAX, .help = "pipeline parallel size (default: 1)"                                    \
    }
#define MOON_CLI_HEADS_ROW(heads)                                                                                      \
    {                                                                                                                  \
        .name = "kv-heads", .kind = MOON_OPTION_INTEGER, .into = &(heads), .value = "N", .min = 1,                     \
        .max = INT64_C(1) << 32, .help = "KV heads of the whole model (default: 8)"                                    \
    }
#define MOON_CLI_LAYOUT_ROW(layout)                                                                                    \
    {                                                                                                                  \
        .name = "layout", .kind = MOON_OPTION_CHOICE, .into = &(layout), .value = "NAME",                              \
        .choices = "LBHNC|LBNHC|LHBNC|BLHNC|BLNHC|BHLNC", .help = "KV cache layout of the engine (default: LBHNC)"     \
    }

#endif
