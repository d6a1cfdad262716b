/* SPDX-License-Identifier: Apache-2.0 */
/* GIDs: reading a device's table, and choosing the row for an address. */
#include "ref/fabric/verbs_internal.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

static bool is_mapped(const struct moon_verbs_gid *row) {
    return memcmp(row->gid, mapped_prefix, sizeof mapped_prefix) == 0;
}

static bool is_link_local(const struct moon_verbs_gid *row) {
    return row->gid[0] == 0xfe && (row->gid[1] & 0xc0) == 0x80;
}

bool moon_verbs_host_gid(const char *host, uint8_t gid[MOON_GID_BYTES]) {
    uint8_t v4[4];
    if (inet_pton(AF_INET, host, v4) == 1) {
        memcpy(gid, mapped_prefix, sizeof mapped_prefix);
        memcpy(gid + sizeof mapped_prefix, v4, sizeof v4);
        return true;
    }
    return inet_pton(AF_INET6, host, gid) == 1;
}

/* The lower the better; -1: does not do. */
static int rank(const struct moon_verbs_gid *row, const uint8_t host[MOON_GID_BYTES]) {
    if (row->roce_v1)
        return -1;
    if (host)
        return memcmp(row->gid, host, MOON_GID_BYTES) == 0 ? 0 : -1;
    if (is_mapped(row))
        return 0;
    return is_link_local(row) ? 2 : 1;
}

int moon_verbs_choose_gid(const struct moon_verbs_gid rows[], size_t count, const uint8_t host[MOON_GID_BYTES]) {
    int chosen = -1, best = 0;
    for (size_t i = 0; i < count; i++) {
        int its = rank(&rows[i], host);
        if (its >= 0 && (chosen < 0 || its < best)) {
            chosen = (int)i;
            best = its;
        }
    }
    return chosen;
}

size_t moon_verbs_read_gids(struct ibv_context *device, uint8_t port, struct moon_verbs_gid rows[MOON_VERBS_GIDS_MAX]) {
    struct ibv_gid_entry entries[MOON_VERBS_GIDS_MAX];
    ssize_t found = ibv_query_gid_table(device, entries, MOON_VERBS_GIDS_MAX, 0);
    size_t count = 0;
    for (ssize_t i = 0; i < found; i++) {
        if (entries[i].port_num != port)
            continue;
        memcpy(rows[count].gid, entries[i].gid.raw, MOON_GID_BYTES);
        rows[count].index = entries[i].gid_index;
        rows[count].roce_v1 = entries[i].gid_type == IBV_GID_TYPE_ROCE_V1;
        count++;
    }
    return count;
}
