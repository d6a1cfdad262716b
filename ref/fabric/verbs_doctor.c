/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the machine's RDMA devices and says in words what can be used, and what stands in the way. */
#include "ref/fabric/verbs_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/resource.h>

static const rlim_t pinned_bytes_min = (rlim_t)1 << 30;

static const char *address_text(const struct moon_verbs_gid *row, char text[INET6_ADDRSTRLEN]) {
    return inet_ntop(AF_INET6, row->gid, text, INET6_ADDRSTRLEN);
}

static bool look_at_port(struct ibv_context *device, uint8_t number, struct moon_text *out) {
    struct moon_verbs_gid rows[MOON_VERBS_GIDS_MAX];
    struct ibv_port_attr port;
    char text[INET6_ADDRSTRLEN];
    int status = ibv_query_port(device, number, &port);
    if (status) {
        moon_text_format(out, "  port %u: cannot be read: %s\n", number, strerrordesc_np(status));
        return false;
    }
    moon_text_format(out, "  port %u: %s, MTU %u bytes, LID %u\n", number, ibv_port_state_str(port.state),
                     128u << port.active_mtu, port.lid);
    size_t count = moon_verbs_read_gids(device, number, rows);
    int chosen = moon_verbs_choose_gid(rows, count, NULL);
    for (size_t i = 0; i < count; i++)
        moon_text_format(out, "    GID %u: %s%s%s\n", rows[i].index, address_text(&rows[i], text),
                         rows[i].roce_v1 ? ", RoCE v1: does not do" : "",
                         (int)i == chosen ? ", used if no address is named" : "");
    if (chosen < 0)
        moon_text_string(out, "    no GID that does: has the network interface an address?\n");
    if (port.state != IBV_PORT_ACTIVE)
        moon_text_string(out, "    not active: is the network interface up?\n");
    return chosen >= 0 && port.state == IBV_PORT_ACTIVE;
}

static int look_at_device(struct ibv_device *one, struct moon_text *out) {
    struct ibv_device_attr attributes;
    int usable = 0;
    moon_text_format(out, "device %s\n", ibv_get_device_name(one));
    struct ibv_context *device = ibv_open_device(one);
    if (!device) {
        moon_text_format(out, "  cannot be opened: %s (may this user open /dev/infiniband?)\n", strerrordesc_np(errno));
        return 0;
    }
    if (ibv_query_device(device, &attributes) == 0) {
        moon_text_format(out, "  at most %d queue pairs, %d completions a queue, %d regions\n", attributes.max_qp,
                         attributes.max_cqe, attributes.max_mr);
        for (uint8_t port = 1; port <= attributes.phys_port_cnt; port++)
            usable += look_at_port(device, port, out);
    }
    ibv_close_device(device);
    return usable;
}

static void look_at_limits(struct moon_text *out) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        moon_text_string(out, "memory that may be pinned: no limit\n");
    else
        moon_text_format(out, "memory that may be pinned: %llu bytes%s\n", (unsigned long long)limit.rlim_cur,
                         limit.rlim_cur < pinned_bytes_min
                             ? "; larger memory cannot be registered: ulimit -l unlimited, or LimitMEMLOCK=infinity"
                             : "");
}

int moon_verbs_doctor(struct moon_text *out) {
    int count = 0, usable = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    for (int i = 0; list && i < count; i++)
        usable += look_at_device(list[i], out);
    if (count == 0)
        moon_text_string(out, "no RDMA device. For soft-RoCE: modprobe crc32_generic rdma_rxe, then\n"
                              "  rdma link add rxe0 type rxe netdev eth0\n");
    if (list)
        ibv_free_device_list(list);
    look_at_limits(out);
    moon_text_format(out, "%d usable port%s\n", usable, usable == 1 ? "" : "s");
    return usable;
}
