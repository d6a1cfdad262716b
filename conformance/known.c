/* SPDX-License-Identifier: Apache-2.0 */
/* Known-failure files: which cases may fail, why, and until when. */
#include "conformance/known.h"

#include "conformance/io.h"
#include "conformance/schema.h"

#include <fnmatch.h>
#include <string.h>

static const char *text_of(const struct moon_json *object, const char *name) {
    const struct moon_json *value = moon_json_member(object, name);
    return value ? value->bytes : "";
}

static int add_entry(struct moon_known *known, struct moon_arena *arena, const struct moon_json *place,
                     struct moon_error *error) {
    struct moon_known_entry *entry = moon_arena_alloc(arena, sizeof *entry);
    if (!entry)
        return moon_fail(error, MOON_ERR_MEMORY, known->source, "out of memory");
    entry->id = text_of(place, "id");
    entry->profile = text_of(place, "profile");
    entry->reason = text_of(place, "reason");
    entry->link = text_of(place, "link");
    entry->expires = text_of(place, "expires");
    entry->place = place;
    if (known->last)
        known->last->next = entry;
    else
        known->first = entry;
    known->last = entry;
    return 0;
}

int moon_known_load(struct moon_known *known, struct moon_arena *arena, const char *path, struct moon_error *error) {
    struct moon_schema schema;
    struct moon_json *document = NULL;
    *known = (struct moon_known){.source = moon_io_source(path)};
    int status = moon_io_read_json(arena, path, MOON_JSON_STRICT, &document, error);
    if (status != 0)
        return status;
    status = moon_schema_open(&schema, arena, "known", error);
    if (status == 0)
        status = moon_schema_check(&schema, NULL, known->source, document, error);
    moon_schema_close(&schema);
    const struct moon_json *list = status == 0 ? moon_json_member(document, "known") : NULL;
    for (const struct moon_json *one = list ? list->first : NULL; one && status == 0; one = one->next)
        status = add_entry(known, arena, one, error);
    return status;
}

static bool expired(const struct moon_known_entry *entry, const char *today) {
    return strcmp(entry->expires, today) < 0; /* both are YYYY-MM-DD */
}

const struct moon_known_entry *moon_known_find(struct moon_known *known, const char *id, const char *profile,
                                               const char *today) {
    for (struct moon_known_entry *entry = known ? known->first : NULL; entry; entry = entry->next) {
        if (fnmatch(entry->id, id, 0) != 0 || (entry->profile[0] && strcmp(entry->profile, profile) != 0))
            continue;
        entry->matched++;
        if (!expired(entry, today))
            return entry;
    }
    return NULL;
}

const struct moon_known_entry *moon_known_fault(const struct moon_known *known, const struct moon_known_entry *after,
                                                const char *today, struct moon_arena *arena, const char **why) {
    for (const struct moon_known_entry *entry = after ? after->next : known->first; entry; entry = entry->next) {
        if (expired(entry, today))
            *why =
                moon_arena_format(arena, "%s:%u: the entry for %s ended on %s: fix the case or renew the entry (%s)",
                                  known->source, (unsigned)entry->place->line, entry->id, entry->expires, entry->link);
        else if (entry->matched == 0)
            *why = moon_arena_format(arena, "%s:%u: the entry for %s matches no case that was run", known->source,
                                     (unsigned)entry->place->line, entry->id);
        else
            continue;
        return entry;
    }
    return NULL;
}
