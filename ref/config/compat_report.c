/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of compat, for people and for programs. */
#include "ref/config/compat.h"

#include <string.h>

static const char *headline(enum moon_compat_verdict verdict) {
    static const char *const lines[] = {
        [MOON_COMPAT_FULLY] = "share fully",
        [MOON_COMPAT_PARTLY] = "share partly",
        [MOON_COMPAT_NOT] = "share nothing",
        [MOON_COMPAT_DANGER] = "DANGER: equal keys with different bytes",
    };
    return lines[verdict];
}

/* Appends a text from outside; control characters, which could end the line or move the cursor, become '?'. */
static void append_clean(struct moon_text *out, const char *text) {
    for (const char *c = text; *c; c++)
        moon_text_char(out, (unsigned char)*c < ' ' || *c == 0x7F ? '?' : *c);
}

static void write_side(const struct moon_compat_summary *side, struct moon_text *out) {
    moon_text_string(out, "  ");
    append_clean(out, side->name);
    moon_text_format(out, ": %s, ", side->release);
    if (side->derived)
        moon_text_format(out, "hash block %lld, scheduler block %lld tokens, ", (long long)side->hash_block_tokens,
                         (long long)side->scheduler_block_tokens);
    moon_text_format(out, "%s, %s%s\n    keys begin ", side->stores ? "stores" : "does not store",
                     side->loads ? "loads" : "does not load", side->random_hashes ? ", random hashes" : "");
    append_clean(out, side->key_prefix);
    moon_text_char(out, '\n');
}

/* "text fully; lora, mm, salt, embeds not": kinds by state, best first. */
static void write_kinds(const struct moon_compat_report *report, const struct moon_compat_direction *direction,
                        struct moon_text *out) {
    const char *between = "    requests: ";
    for (int state = MOON_COMPAT_ALL; state >= MOON_COMPAT_NONE; state--) {
        const char *separator = between;
        for (int kind = 0; kind < MOON_COMPAT_KIND_COUNT; kind++) {
            if ((report->judged >> kind & 1) == 0 || direction->kinds[kind] != (enum moon_compat_state)state)
                continue;
            moon_text_format(out, "%s%s", separator, moon_compat_kind_name((enum moon_compat_kind)kind));
            separator = ", ";
        }
        if (separator == between)
            continue;
        moon_text_format(out, " %s", moon_compat_state_name((enum moon_compat_state)state));
        between = "; ";
    }
    moon_text_char(out, '\n');
}

static void write_direction(const struct moon_compat_report *report, int way, struct moon_text *out) {
    const struct moon_compat_direction *direction = &report->directions[way];
    moon_text_string(out, "  ");
    append_clean(out, report->sides[way].name);
    moon_text_string(out, " stores, ");
    append_clean(out, report->sides[!way].name);
    moon_text_format(out, " finds: %s", moon_compat_state_name(direction->state));
    if (direction->state == MOON_COMPAT_IDLE) {
        moon_text_char(out, '\n');
        return;
    }
    if (direction->prompts > 0)
        moon_text_format(out, "; of a stored prompt of %lld tokens %lld, of its own it would find %lld",
                         (long long)direction->longest.prompt_tokens, (long long)direction->longest.found_tokens,
                         (long long)direction->longest.own_tokens);
    moon_text_char(out, '\n');
    if (direction->short_prompts > 0 && direction->state == MOON_COMPAT_SOME)
        moon_text_format(out,
                         "    %zu of %zu prefixes are short, the first of %lld tokens: finds %lld instead of %lld\n",
                         direction->short_prompts, direction->prompts, (long long)direction->first_short.prompt_tokens,
                         (long long)direction->first_short.found_tokens, (long long)direction->first_short.own_tokens);
    if (direction->state == MOON_COMPAT_SOME)
        write_kinds(report, direction, out);
    if (direction->missing_key) {
        moon_text_string(out, "    asks in vain for ");
        append_clean(out, direction->missing_key);
        moon_text_char(out, '\n');
    }
}

static void write_finding(const struct moon_compat_report *report, const struct moon_compat_finding *finding,
                          size_t number, struct moon_text *out) {
    moon_text_format(out, "  %zu. %s (%s", number, moon_compat_effect_name(finding->effect),
                     moon_compat_subject_name(finding->subject));
    if (finding->directions != MOON_COMPAT_BOTH_WAYS) {
        int way = finding->directions == MOON_COMPAT_A_TO_B ? 0 : 1;
        moon_text_string(out, ", ");
        append_clean(out, report->sides[way].name);
        moon_text_string(out, " to ");
        append_clean(out, report->sides[!way].name);
    }
    moon_text_string(out, "): ");
    append_clean(out, finding->text);
    if (finding->fix)
        moon_text_format(out, "\n     fix: %s", finding->fix);
    moon_text_format(out, "\n     rule: %s%s%s%s%s\n", finding->requirement, finding->guide[0] ? "; guide " : "",
                     finding->guide, finding->report ? "; resembles " : "", finding->report ? finding->report : "");
}

void moon_compat_write(const struct moon_compat_report *report, struct moon_text *out) {
    append_clean(out, report->sides[0].name);
    moon_text_string(out, " and ");
    append_clean(out, report->sides[1].name);
    moon_text_format(out, ": %s\n", headline(report->verdict));
    if (report->first) {
        moon_text_string(out, "first reason: ");
        append_clean(out, report->first->text);
        moon_text_char(out, '\n');
    }
    if (report->verdict == MOON_COMPAT_DANGER && report->same_key) {
        moon_text_string(out, "a key of both: ");
        append_clean(out, report->same_key);
        moon_text_char(out, '\n');
    }
    moon_text_string(out, "\nsides\n");
    for (int side = 0; side < 2; side++)
        write_side(&report->sides[side], out);
    moon_text_string(out, "\ndirections\n");
    for (int way = 0; way < 2; way++)
        write_direction(report, way, out);
    size_t number = 0;
    for (const struct moon_compat_finding *each = report->findings; each; each = each->next) {
        if (number == 0)
            moon_text_string(out, "\nfindings\n");
        write_finding(report, each, ++number, out);
    }
}

/* ---- JSON ---- */

static struct moon_json *text_or_null(struct moon_arena *arena, const char *text) {
    return text ? moon_json_string(arena, text) : moon_json_null(arena);
}

static struct moon_json *side_json(struct moon_arena *arena, const struct moon_compat_summary *side) {
    struct moon_json *out = moon_json_object(arena);
    moon_json_set(arena, out, "name", moon_json_string(arena, side->name));
    moon_json_set(arena, out, "profile", moon_json_string(arena, side->release));
    moon_json_set(arena, out, "derived", moon_json_bool(arena, side->derived));
    moon_json_set(arena, out, "stores", moon_json_bool(arena, side->stores));
    moon_json_set(arena, out, "loads", moon_json_bool(arena, side->loads));
    moon_json_set(arena, out, "random_hashes", moon_json_bool(arena, side->random_hashes));
    moon_json_set(arena, out, "scheduler_block_size", moon_json_int(arena, side->scheduler_block_tokens));
    moon_json_set(arena, out, "hash_block_size", moon_json_int(arena, side->hash_block_tokens));
    moon_json_set(arena, out, "store_namespace", moon_json_string(arena, side->store_namespace));
    moon_json_set(arena, out, "key_prefix", moon_json_string(arena, side->key_prefix));
    return out;
}

static struct moon_json *hit_json(struct moon_arena *arena, const struct moon_compat_hit *hit) {
    struct moon_json *out = moon_json_object(arena);
    moon_json_set(arena, out, "prompt_tokens", moon_json_int(arena, hit->prompt_tokens));
    moon_json_set(arena, out, "found_tokens", moon_json_int(arena, hit->found_tokens));
    moon_json_set(arena, out, "own_tokens", moon_json_int(arena, hit->own_tokens));
    return out;
}

static struct moon_json *direction_json(struct moon_arena *arena, const struct moon_compat_report *report, int way) {
    const struct moon_compat_direction *direction = &report->directions[way];
    struct moon_json *out = moon_json_object(arena), *kinds = moon_json_object(arena);
    moon_json_set(arena, out, "writer", moon_json_string(arena, way == 0 ? "a" : "b"));
    moon_json_set(arena, out, "reader", moon_json_string(arena, way == 0 ? "b" : "a"));
    moon_json_set(arena, out, "state", moon_json_string(arena, moon_compat_state_name(direction->state)));
    for (int kind = 0; kind < MOON_COMPAT_KIND_COUNT; kind++)
        if ((report->judged >> kind & 1) != 0)
            moon_json_set(arena, kinds, moon_compat_kind_name((enum moon_compat_kind)kind),
                          moon_json_string(arena, moon_compat_state_name(direction->kinds[kind])));
    moon_json_set(arena, out, "requests", kinds);
    moon_json_set(arena, out, "prompts", moon_json_uint(arena, direction->prompts));
    moon_json_set(arena, out, "short_prompts", moon_json_uint(arena, direction->short_prompts));
    moon_json_set(arena, out, "longest",
                  direction->prompts ? hit_json(arena, &direction->longest) : moon_json_null(arena));
    moon_json_set(arena, out, "first_short",
                  direction->short_prompts ? hit_json(arena, &direction->first_short) : moon_json_null(arena));
    moon_json_set(arena, out, "missing_key", text_or_null(arena, direction->missing_key));
    return out;
}

static struct moon_json *finding_json(struct moon_arena *arena, const struct moon_compat_finding *finding) {
    struct moon_json *out = moon_json_object(arena), *ways = moon_json_array(arena);
    moon_json_set(arena, out, "effect", moon_json_string(arena, moon_compat_effect_name(finding->effect)));
    moon_json_set(arena, out, "subject", moon_json_string(arena, moon_compat_subject_name(finding->subject)));
    if (finding->directions & MOON_COMPAT_A_TO_B)
        moon_json_push(ways, moon_json_string(arena, "a_to_b"));
    if (finding->directions & MOON_COMPAT_B_TO_A)
        moon_json_push(ways, moon_json_string(arena, "b_to_a"));
    moon_json_set(arena, out, "directions", ways);
    moon_json_set(arena, out, "text", moon_json_string(arena, finding->text));
    moon_json_set(arena, out, "fix", text_or_null(arena, finding->fix));
    moon_json_set(arena, out, "requirement", moon_json_string(arena, finding->requirement));
    moon_json_set(arena, out, "guide", moon_json_string(arena, finding->guide));
    moon_json_set(arena, out, "report", text_or_null(arena, finding->report));
    return out;
}

struct moon_json *moon_compat_json(struct moon_arena *arena, const struct moon_compat_report *report) {
    struct moon_json *out = moon_json_object(arena), *sides = moon_json_object(arena);
    struct moon_json *directions = moon_json_array(arena), *findings = moon_json_array(arena);
    moon_json_set(arena, out, "schema", moon_json_string(arena, "mooncheck-compat/1"));
    moon_json_set(arena, out, "verdict", moon_json_string(arena, moon_compat_verdict_name(report->verdict)));
    moon_json_set(arena, out, "first", report->first ? finding_json(arena, report->first) : moon_json_null(arena));
    moon_json_set(arena, out, "same_key", text_or_null(arena, report->same_key));
    moon_json_set(arena, sides, "a", side_json(arena, &report->sides[0]));
    moon_json_set(arena, sides, "b", side_json(arena, &report->sides[1]));
    moon_json_set(arena, out, "sides", sides);
    for (int way = 0; way < 2; way++)
        moon_json_push(directions, direction_json(arena, report, way));
    moon_json_set(arena, out, "directions", directions);
    for (const struct moon_compat_finding *each = report->findings; each; each = each->next)
        moon_json_push(findings, finding_json(arena, each));
    moon_json_set(arena, out, "findings", findings);
    return out;
}
