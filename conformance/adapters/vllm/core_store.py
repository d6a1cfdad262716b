# SPDX-License-Identifier: Apache-2.0
"""A store of bytes in this process for instances that run their own threads, and the gates that hold its calls back.

Calls of transfer threads wait until the step that gave them their jobs is over; existence checks of a lookup wait until
the script of the case lets them answer. So what a step sees never depends on which thread is faster.
"""
import threading
from collections.abc import Callable
from concurrent.futures import Future

from release import Stuck
from torch_standin import place_of

WAIT_SECONDS = 5.0  # the bound of every single wait


class Gate:
    """Lets calls through while it is open, and otherwise as many as it was told."""

    def __init__(self, name: str):
        self._name, self._changed = name, threading.Condition()
        self._open, self._permits, self._waiting = False, 0, 0

    def enter(self) -> None:
        with self._changed:
            self._waiting += 1
            self._changed.notify_all()
            if not self._changed.wait_for(lambda: self._open or self._permits, WAIT_SECONDS):
                raise Stuck(f"{self._name}: not let through within {WAIT_SECONDS:g} s")
            self._waiting -= 1
            if not self._open:
                self._permits -= 1

    def wait_for_call(self, future: Future) -> None:
        """Until a call waits here, or `future`, which was to make one, is done without."""
        future.add_done_callback(lambda done: self._notify())
        with self._changed:
            if not self._changed.wait_for(lambda: self._waiting or future.done(), WAIT_SECONDS):
                raise Stuck(f"{self._name}: no call within {WAIT_SECONDS:g} s")

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def open(self) -> None:
        self._set(True, 0)

    def close(self) -> None:
        """Closes it; permits that nobody used are gone."""
        self._set(False, 0)

    def let_one_through(self) -> None:
        self._set(False, 1)

    def _set(self, is_open: bool, permits: int) -> None:
        with self._changed:
            self._open, self._permits = is_open, permits
            self._changed.notify_all()


class ByteStore:
    """What the ranks of an instance share. `content_of` gives the bytes that a key promises: those of a key that was
    there before the case, and those that a put must bring."""

    def __init__(self, transfer_thread_class: type, stored_before: list[str], content_of: Callable[[str], bytes]):
        self.transfer_thread_class = transfer_thread_class
        self.objects: dict[str, bytes | None] = dict.fromkeys(stored_before)
        self.content_of = content_of
        self.memory: dict[int, memoryview] = {}  # by number of the storage
        self.lookup_gate, self.transfer_gate = Gate("lookup"), Gate("transfer")
        self.wrong_bytes = 0  # that were put
        self.lookups: list[int] = []  # keys of each existence call of a lookup
        self.lookups_raise = False
        self.clients: list["Client"] = []  # in order of the ranks

    def segment(self, address: int, size: int) -> memoryview:
        number, offset = place_of(address)
        return self.memory[number][offset:offset + size]

    def write(self, key: str, content: bytes) -> None:
        right = self.content_of(key)
        if content != right:
            self.wrong_bytes += sum(one != other for one, other in zip(content, right)) + abs(len(content) - len(right))
        self.objects[key] = content

    def read(self, key: str) -> bytes | None:
        if key not in self.objects:
            return None
        content = self.objects[key]
        return self.content_of(key) if content is None else content


current: ByteStore | None = None  # the store of clients that are made from now on


class Client:
    """Stands in for MooncakeDistributedStore."""

    def __init__(self):
        assert current is not None
        self._store = current
        self.exist_checks: list[dict] = []
        self.puts: list[dict] = []
        self.gets: list[dict] = []
        self._rank = len(current.clients)
        current.clients.append(self)

    def setup(self, *args, **kwargs) -> int:
        return 0

    def register_buffer(self, address: int, size_bytes: int) -> int:
        return 0

    def batch_is_exist(self, keys) -> list[int]:
        store, keys = self._store, list(keys)
        if isinstance(threading.current_thread(), store.transfer_thread_class):
            store.transfer_gate.enter()
            present = [int(key in store.objects) for key in keys]
            self.exist_checks.append({"keys": keys, "present": present})
            return list(present)
        store.lookup_gate.enter()
        store.lookups.append(len(keys))
        if store.lookups_raise:
            raise RuntimeError("store unreachable")
        return [int(key in store.objects) for key in keys]

    def batch_put_from_multi_buffers(self, keys, addresses, sizes, config=None) -> list[int]:
        self._store.transfer_gate.enter()
        for key, starts, lengths in zip(keys, addresses, sizes, strict=True):
            parts = [self._store.segment(start, length) for start, length in zip(starts, lengths, strict=True)]
            self._store.write(key, b"".join(parts))
            self.puts.append({"rank": self._rank, "key": key, "bytes": sum(lengths), "segments": len(parts)})
        return [0] * len(keys)

    def batch_get_into_multi_buffers(self, keys, addresses, sizes) -> list[int]:
        self._store.transfer_gate.enter()
        return [self._get(*each) for each in zip(keys, addresses, sizes, strict=True)]

    def _get(self, key: str, addresses, sizes) -> int:
        content = self._store.read(key)
        result = -1 if content is None else len(content)
        if content is not None:
            if len(content) != sum(sizes):
                raise ValueError(f"{key}: {len(content)} bytes are stored, {sum(sizes)} are asked for")
            offset = 0
            for address, size in zip(addresses, sizes, strict=True):
                self._store.segment(address, size)[:] = content[offset:offset + size]
                offset += size
        self.gets.append({"rank": self._rank, "key": key, "result": result})
        return result

    def take(self) -> tuple[list[dict], list[dict], list[dict]]:
        """Existence checks before saving, puts and gets since the last call."""
        taken = self.exist_checks, self.puts, self.gets
        self.exist_checks, self.puts, self.gets = [], [], []
        return taken

    def remove_all(self, force: bool = False) -> int:
        self._store.objects.clear()
        return 0

    def close(self) -> None:
        pass
