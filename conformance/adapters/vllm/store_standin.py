# SPDX-License-Identifier: Apache-2.0
"""Stands in for the `mooncake` package: a store client that keeps what it is asked, for all ranks of one instance."""
import sys
import types

CONTENTS: set[str] = set()  # keys in the store; shared by the clients of all ranks


class ReplicateConfig:
    group_ids = None
    preferred_segment = None


class MooncakeDistributedStore:
    def __init__(self):
        self.registered: list[tuple[int, int]] = []  # (address, bytes) in order
        self.asked: list[str] = []                   # keys of existence checks
        self.put: list[str] = []                     # keys written

    def setup(self, *args, **kwargs) -> int:
        return 0

    def register_buffer(self, address: int, size_bytes: int) -> int:
        self.registered.append((address, size_bytes))
        return 0

    def batch_is_exist(self, keys) -> list[int]:
        self.asked.extend(keys)
        return [int(key in CONTENTS) for key in keys]

    def batch_put_from_multi_buffers(self, keys, addresses, sizes, config=None) -> list[int]:
        self.put.extend(keys)
        CONTENTS.update(keys)
        return [0] * len(keys)


def install() -> None:
    package = types.ModuleType("mooncake")
    package.__path__ = []
    package.store = types.ModuleType("mooncake.store")
    package.store.MooncakeDistributedStore = MooncakeDistributedStore
    package.store.ReplicateConfig = ReplicateConfig
    sys.modules["mooncake"], sys.modules["mooncake.store"] = package, package.store
