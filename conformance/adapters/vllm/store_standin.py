# SPDX-License-Identifier: Apache-2.0
"""Stands in for the `mooncake` package: a store client that answers as a case says and keeps what it was asked."""
import sys
import types
from typing import NamedTuple


class Call(NamedTuple):
    """One call of a rank. A get that raised has results None; existence checks have neither buffers nor results."""

    what: str  # exist, put or get
    keys: list[str]
    addresses: list[list[int]] = []
    sizes: list[list[int]] = []
    results: list[int] | None = None
    group_ids: list[str] | None = None


class World:
    """The store that the ranks of one instance share, and what it answers out of the ordinary."""

    def __init__(self):
        self.keys: set[str] = set()
        self.first_hashes: set[str] | None = None  # if set: keys that end in one of them are all there is
        self.exist_answers: dict[str, int] = {}
        self.exist_raises = False
        self.put_results: dict[str, int] = {}
        self.get_results: dict[str, int] = {}
        self.get_raises_on_call: int | None = None  # number of the call, counted on each rank

    def exist(self, key: str) -> int:
        if key in self.exist_answers:
            return self.exist_answers[key]
        if self.first_hashes is not None:
            return int(key.rpartition("@")[2] in self.first_hashes)
        return int(key in self.keys)

    def put(self, key: str) -> int:
        result = self.put_results.get(key, 0)
        if result >= 0:
            self.keys.add(key)
        return result


current = World()  # the world of clients that are made from now on


class ReplicateConfig:
    group_ids = None
    preferred_segment = None


class MooncakeDistributedStore:
    def __init__(self):
        self.world = current
        self.registered: list[tuple[int, int]] = []  # (address, bytes) in order
        self.calls: list[Call] = []
        self._gets = 0

    def setup(self, *args, **kwargs) -> int:
        return 0

    def register_buffer(self, address: int, size_bytes: int) -> int:
        self.registered.append((address, size_bytes))
        return 0

    def batch_is_exist(self, keys) -> list[int]:
        self.calls.append(Call("exist", list(keys)))
        if self.world.exist_raises:
            raise RuntimeError("store unreachable")
        return [self.world.exist(key) for key in keys]

    def batch_put_from_multi_buffers(self, keys, addresses, sizes, config=None) -> list[int]:
        results = [self.world.put(key) for key in keys]
        group_ids = getattr(config, "group_ids", None)
        self.calls.append(Call("put", list(keys), list(addresses), list(sizes), results,
                               list(group_ids) if group_ids else None))
        return list(results)

    def batch_get_into_multi_buffers(self, keys, addresses, sizes) -> list[int]:
        raises = self.world.get_raises_on_call == self._gets
        self._gets += 1
        results = [self.world.get_results.get(key, sum(size)) for key, size in zip(keys, sizes, strict=True)]
        self.calls.append(Call("get", list(keys), list(addresses), list(sizes), None if raises else results))
        if raises:
            raise RuntimeError("transfer failed")
        return list(results)

    def close(self) -> None:
        pass

    def asked(self) -> list[str]:
        """Keys of all existence checks, in order."""
        return [key for call in self.calls if call.what == "exist" for key in call.keys]

    def put_keys(self) -> list[str]:
        return [key for call in self.calls if call.what == "put" for key in call.keys]


def new_world() -> World:
    """An empty store for the clients that are made next."""
    global current
    current = World()
    return current


def install() -> None:
    package = types.ModuleType("mooncake")
    package.__path__ = []
    package.store = types.ModuleType("mooncake.store")
    package.store.MooncakeDistributedStore = MooncakeDistributedStore
    package.store.ReplicateConfig = ReplicateConfig
    sys.modules["mooncake"], sys.modules["mooncake.store"] = package, package.store
