/* SPDX-License-Identifier: Apache-2.0 */
/* The master's remote calls: arguments of a release to a call of master.h, its outcome to a result. */
#ifndef MOON_STORE_MASTER_SERVICE_H
#define MOON_STORE_MASTER_SERVICE_H

#include "ref/store/master.h"
#include "ref/store/rpc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Serves ServiceReady, GetStorageConfig, GetFsdir, MountSegment, ReMountSegment, UnmountSegment, Ping, FetchTasks
 * (none), ExistKey, GetReplicaList, PutStart, PutEnd, PutRevoke, Remove, RemoveAll and the Batch forms of those that
 * have one. Fill it with moon_master_service_open; pass &service->service to a server. */
struct moon_master_service {
    struct moon_rpc_service service;
    struct moon_master *master;
    const struct moon_wire_protocol *protocol;
};

void moon_master_service_open(struct moon_master_service *service, struct moon_master *master,
                              const struct moon_wire_protocol *protocol);

#ifdef __cplusplus
}
#endif
#endif
