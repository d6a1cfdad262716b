/* SPDX-License-Identifier: Apache-2.0 */
/* Random calls against a second, naive form of the master's rules; against the rule that memory in use is not used
 * again; with memory that refuses; and many objects. */
#include "ref/store/master_rig_internal.h"

#include "ref/base/error.h"

#include <stdlib.h>

/* ---- puts, leases and removal against a model. There is room for all and nothing is evicted. */

enum { KEYS = 30, WRITERS = 4 };
struct model_object {
    bool there, complete;
    uint64_t writer, length, created;
    moon_ns start_ns, lease_ns;
};
struct model {
    struct model_object objects[KEYS];
    uint64_t created;
    moon_ns now_ns, ttl_ns, discard_ns, release_ns;
};

static void pass_time(struct model *model, moon_ns now_ns) {
    model->now_ns = now_ns;
    for (int i = 0; i < KEYS; i++) {
        struct model_object *o = &model->objects[i];
        if (o->there && !o->complete && o->start_ns + 2 * model->release_ns <= now_ns)
            o->there = false;
    }
}

static int model_start(struct model *model, struct model_object *o, uint64_t writer, uint64_t length) {
    if (length == 0)
        return -600;
    if (o->there && (o->complete || model->now_ns - o->start_ns < model->discard_ns))
        return -705;
    *o = (struct model_object){
        .there = true, .writer = writer, .length = length, .created = model->created++, .start_ns = model->now_ns};
    return 0;
}

static int model_end(struct model *model, struct model_object *o, uint64_t writer) {
    if (!o->there)
        return -704;
    if (o->writer != writer)
        return -601;
    if (!o->complete)
        o->lease_ns = model->now_ns;
    o->complete = true;
    return 0;
}

static int model_revoke(struct model_object *o, uint64_t writer) {
    if (!o->there)
        return -704;
    if (o->writer != writer)
        return -601;
    if (o->complete)
        return -700;
    o->there = false;
    return 0;
}

static int model_remove(const struct model *model, struct model_object *o, bool force) {
    if (!o->there)
        return -704;
    if (o->complete && o->lease_ns > model->now_ns && !force)
        return -706;
    if (!o->complete)
        return -703;
    o->there = false;
    return 0;
}

static int model_read(const struct model *model, struct model_object *o) {
    if (!o->there)
        return -704;
    if (!o->complete)
        return -703;
    if (model->now_ns + model->ttl_ns > o->lease_ns)
        o->lease_ns = model->now_ns + model->ttl_ns;
    return 0;
}

static void check_remove_all(struct rig *rig, struct model *model, bool force) {
    int64_t removed = 0;
    for (int i = 0; i < KEYS; i++)
        removed += model_remove(model, &model->objects[i], force) == 0;
    MOON_CHECK_INT(rig_remove_all(rig, force), removed);
}

static void one_call(struct rig *rig, struct model *model, struct moon_random *random) {
    char key[16];
    int number = (int)moon_random_below(random, KEYS);
    struct model_object *o = &model->objects[number];
    snprintf(key, sizeof key, "key%d", number);
    uint64_t writer = 10 + moon_random_below(random, WRITERS), length = moon_random_below(random, 3000);
    bool force = moon_random_chance(random, 1, 3);
    uint64_t pick = moon_random_below(random, 64);
    if (pick < 20) {
        MOON_CHECK_INT(rig_start(rig, writer, key, length), model_start(model, o, writer, length));
    } else if (pick < 32) {
        MOON_CHECK_INT(rig_end(rig, writer, key), model_end(model, o, writer));
    } else if (pick < 36) {
        MOON_CHECK_INT(rig_revoke(rig, writer, key), model_revoke(o, writer));
    } else if (pick < 44) {
        MOON_CHECK_INT(rig_exist(rig, key), model_read(model, o) == 0);
    } else if (pick < 54) {
        int code = rig_query(rig, key);
        MOON_CHECK_INT(code, model_read(model, o));
        if (code == 0)
            MOON_CHECK_INT(rig->list.replicas[0].size, o->length);
    } else if (pick < 63) {
        MOON_CHECK_INT(rig_remove(rig, key, force), model_remove(model, o, force));
    } else if (moon_random_chance(random, 1, 4)) {
        check_remove_all(rig, model, force);
    }
}

static void check_counts(struct rig *rig, const struct model *model) {
    size_t objects = 0;
    uint64_t bytes = 0;
    for (int i = 0; i < KEYS; i++) {
        objects += model->objects[i].there;
        bytes += model->objects[i].there ? model->objects[i].length : 0;
    }
    struct moon_master_counts counts = moon_master_count(rig->master);
    MOON_CHECK_INT(counts.objects, objects);
    MOON_CHECK_INT(counts.allocated_bytes, bytes);
}

static void random_calls_agree_with_the_model(void) {
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct moon_master_settings settings = moon_master_defaults();
        settings.client_ttl_ns = 1000000 * S;
        settings.put_start_discard_ns = 3 * S;
        settings.put_start_release_ns = 12 * S;
        settings.lease_ttl_ns = seed == 5 ? 0 : 2 * S;
        struct rig *rig = rig_open(&settings);
        struct model model = {.ttl_ns = settings.lease_ttl_ns, .discard_ns = 3 * S, .release_ns = 12 * S};
        struct moon_random random;
        moon_random_seed(&random, seed);
        MOON_CHECK_INT(rig_mount(rig, 1, 1024 * MiB), 0);
        for (int step = 0; step < 10000; step++) {
            /* Mostly little time, in steps that meet the borders exactly. */
            rig_wait(rig, moon_random_chance(&random, 1, 3) ? moon_random_between(&random, 0, 3) * S / 2 : 0);
            pass_time(&model, rig->environment.now_ns);
            one_call(rig, &model, &random);
            check_counts(rig, &model);
        }
        rig_wait(rig, 700 * S);
        MOON_CHECK_INT(moon_master_count(rig->master).held_bytes, 0);
        rig_close(rig);
    }
}

/* ---- memory in use, with little of it, owners that come and go, and eviction. The recorder checks. */

enum { OWNERS = 5, SOME_KEYS = 200 };

static void owner_call(struct rig *rig, struct moon_random *random) {
    uint64_t owner = 1 + moon_random_below(random, OWNERS);
    switch (moon_random_below(random, 8)) {
    case 0:
        rig_mount(rig, owner, MiB);
        break;
    case 1:
        moon_master_unmount(rig->master, rig_client(owner), rig_segment_id(owner));
        break;
    case 2: { /* another process at the same place, with as much memory or more */
        char endpoint[16];
        snprintf(endpoint, sizeof endpoint, "owner%d", (int)owner);
        struct moon_segment other = rig_segment(100 + moon_random_u64(random) % 1000, endpoint, UINT64_C(1) << 32,
                                                moon_random_chance(random, 1, 2) ? MiB : 2 * MiB);
        moon_master_remount(rig->master, rig_client(owner + 50 + moon_random_below(random, 3)), &other, 1);
        break;
    }
    default:
        rig_ping(rig, owner);
    }
}

static void object_call(struct rig *rig, struct moon_random *random) {
    char key[16];
    snprintf(key, sizeof key, "key%d", (int)moon_random_below(random, SOME_KEYS));
    uint64_t writer = 10 + moon_random_below(random, WRITERS);
    struct moon_put_options options = {.replica_num = 1 + moon_random_below(random, 2),
                                       .with_hard_pin = moon_random_chance(random, 1, 50)};
    uint64_t length = 1 + moon_random_below(random, UINT64_C(1) << moon_random_below(random, 19));
    uint64_t pick = moon_random_below(random, 10);
    if (pick < 4) {
        if (rig_start_with(rig, writer, key, length, options) == 0 && moon_random_chance(random, 3, 4))
            rig_end(rig, writer, key);
    } else if (pick == 4) {
        rig_end(rig, writer, key);
    } else if (pick == 5) {
        rig_revoke(rig, writer, key);
    } else if (pick == 6) {
        rig_exist(rig, key);
    } else if (pick == 7) {
        rig_query(rig, key);
    } else {
        rig_remove(rig, key, moon_random_chance(random, 1, 2));
    }
}

static void memory_in_use_is_never_given_to_another(void) {
    uint64_t taken = 0;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct moon_master_settings settings = moon_master_defaults();
        settings.client_ttl_ns = 5 * S;
        settings.put_start_discard_ns = 2 * S;
        settings.put_start_release_ns = 8 * S;
        settings.lease_ttl_ns = 3 * S;
        settings.watermark_millionths = 700000;
        struct rig *rig = rig_open(&settings);
        struct moon_random random;
        moon_random_seed(&random, seed);
        for (int step = 0; step < 8000; step++) {
            rig_wait(rig, moon_random_below(&random, 4) ? 0 : moon_random_between(&random, 1, 200) * MS);
            if (moon_random_chance(&random, 1, 12))
                owner_call(rig, &random);
            else
                object_call(rig, &random);
            struct moon_master_counts counts = moon_master_count(rig->master);
            CU_ASSERT(counts.allocated_bytes + counts.held_bytes <= counts.capacity_bytes);
        }
        rig_wait(rig, 100 * S); /* all owners are silent: all of it ends */
        MOON_CHECK_INT(moon_master_count(rig->master).clients, 0);
        MOON_CHECK_INT(moon_master_count(rig->master).objects, 0);
        MOON_CHECK_INT(rig->master->gone_count, 0);
        CU_ASSERT(moon_master_deadline(rig->master) == MOON_NS_NEVER);
        taken += rig->master->replica_id;
        rig_close(rig);
    }
    CU_ASSERT(taken > 4000); /* or nothing was looked at */
}

/* ---- refused memory */

/* All calls that take memory, whatever they answer. 1 if any was refused memory. */
static int script(struct rig *rig) {
    int refused = 0;
#define TRY(call) refused |= (call) == MOON_STORE_INTERNAL_ERROR
    char key[16];
    struct moon_segment replaced = rig_segment(3, "owner1", UINT64_C(1) << 32, 2 * MiB);
    TRY(rig_mount(rig, 1, 2 * MiB));
    TRY(rig_mount(rig, 2, 2 * MiB));
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "k%d", i);
        TRY(rig_start_with(rig, 9, key, 4096, (struct moon_put_options){.replica_num = 2}));
        if (i % 3)
            TRY(rig_end(rig, 9, key));
        if (i % 4 == 1)
            TRY(rig_query(rig, key));
    }
    TRY(rig_revoke(rig, 9, "k0"));
    TRY(rig_remove(rig, "k1", true));
    TRY(rig_remove(rig, "k2", false));
    rig_live(rig, 2, 31 * S);
    TRY(rig_start(rig, 9, "k3", 4096)); /* takes over */
    rig_exist(rig, "k4");
    rig_exist(rig, "k5");
    int64_t before = (int64_t)moon_master_count(rig->master).objects;
    int64_t removed = rig_remove_all(rig, true);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, before - removed);
    TRY(rig_start(rig, 9, "k6", 4096));
    TRY(moon_master_mount(rig->master, rig_client(4), &replaced));
    TRY(moon_master_unmount(rig->master, rig_client(2), rig_segment_id(2)));
    TRY(rig_mount(rig, 2, 2 * MiB));
    rig_wait(rig, 60 * S); /* they expire, if need be at a second try */
#undef TRY
    return refused;
}

static void refused_memory_leaks_nothing_and_the_master_goes_on(void) {
    struct moon_master_settings defaults = moon_master_defaults();
    uint64_t refusals = 0;
    bool refused = true;
    for (uint64_t at = 1; refused; at++) {
        struct rig *rig = rig_open_with(&defaults, at);
        if (rig->master) {
            refusals += (uint64_t)script(rig);
            refused = rig->memory.requests >= at;
            rig->memory.fail_at = 0; /* memory is there again: the same script works, in the same master */
            MOON_CHECK_INT(script(rig), 0);
            rig_wait(rig, 1300 * S);
            MOON_CHECK_INT(moon_master_count(rig->master).objects, 0);
            MOON_CHECK_INT(moon_master_count(rig->master).clients, 0);
        }
        rig_close(rig);
    }
    CU_ASSERT(refusals > 50);
}

/* ---- many */

static void forty_thousand_objects(void) {
    enum { MANY = 40000 };
    struct moon_master_settings settings = moon_master_defaults();
    settings.client_ttl_ns = 1000000 * S;
    struct rig *rig = rig_open(&settings);
    rig->environment.recorder = NULL;
    MOON_CHECK_INT(rig_mount(rig, 1, 4096 * MiB), 0);
    uint64_t calls_to_memory = 0, most = 0;
    char key[64];
    for (int i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "model@tp_rank:0@group:0@%016x", i);
        uint64_t before = rig->memory.requests;
        CU_ASSERT(rig_put(rig, key, 4096 + (uint64_t)(i % 7) * 512) == 0);
        most = rig->memory.requests - before > most ? rig->memory.requests - before : most;
        rig->environment.now_ns += 1000;
    }
    calls_to_memory = rig->memory.requests;
    CU_ASSERT(most <= 5); /* object, replica, region, and a segment of the table with its directory */
    CU_ASSERT(calls_to_memory < 4 * MANY);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, MANY);
    for (int i = 0; i < MANY; i += 2) {
        snprintf(key, sizeof key, "model@tp_rank:0@group:0@%016x", i);
        CU_ASSERT(rig_exist(rig, key) == 1);
    }
    MOON_CHECK_INT(rig->memory.requests, calls_to_memory); /* reading needs none */
    MOON_CHECK_INT(rig_start(rig, 9, "huge", 4096 * MiB), -200);
    rig_wait(rig, 10 * MS);
    MOON_CHECK_INT(moon_master_count(rig->master).objects, MANY - MANY / 20); /* of those that were not read */
    MOON_CHECK_INT(rig_remove_all(rig, false), MANY / 2 - MANY / 20);
    MOON_CHECK_INT(rig_remove_all(rig, true), MANY / 2);
    MOON_CHECK_INT(rig_start(rig, 9, "huge", 4096 * MiB), -200);
    rig_wait(rig, 10 * S);
    MOON_CHECK_INT(rig_start(rig, 9, "huge", 4096 * MiB), 0);
    rig_close(rig);
}

int main(int argc, char *argv[]) {
    static const struct moon_unit_case cases[] = {
        {"random calls agree with the model", random_calls_agree_with_the_model},
        {"memory in use is never given to another", memory_in_use_is_never_given_to_another},
        {"refused memory leaks nothing and the master goes on", refused_memory_leaks_nothing_and_the_master_goes_on},
        {"forty thousand objects", forty_thousand_objects},
        {0},
    };
    return moon_unit_main("master at random", cases, argc, argv);
}
