#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real Mooncake store clients behind the adapter protocol: JSON lines on standard input and output, `store` calls.

    python3 adapter.py                          a harness starts it: mooncheck run --client "cmd:python3 adapter.py" ...

Each `client` of a call is a MooncakeDistributedStore of this process, made by its first setup. Which method of the wheel
a call uses stands in METHODS of README.md beside this file.
"""
import ctypes
import json
import os
import sys

import numpy
import xxhash

PROTOCOL = 1
HEX_BYTES_MAX = 64 * 1024
VALUE_BYTES_MAX = 1 << 30
GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


class Bad(Exception):
    """A call that is not what the protocol says; the text names the member."""


def mix(x):
    """Of an array of 64-bit words: the mixing function of the KV bytes."""
    x = (x ^ (x >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return x ^ (x >> numpy.uint64(31))


def fill(seed, length):
    """The bytes that a seed stands for: word j is mix(seed * G + j), little-endian, cut at the length."""
    words = numpy.arange((length + 7) // 8, dtype=numpy.uint64) + numpy.uint64(seed * GOLDEN & MASK)
    return mix(words).astype("<u8").view(numpy.uint8)[:length]


def member(args, name, kinds):
    if name not in args:
        raise Bad(f"args.{name} is missing")
    if not isinstance(args[name], kinds) or isinstance(args[name], bool) and bool not in (kinds if isinstance(kinds, tuple) else (kinds,)):
        raise Bad(f"args.{name} has the wrong type")
    return args[name]


def key_of(value, where="args.key"):
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(value.get("hex"), str):
        return bytes.fromhex(value["hex"])
    raise Bad(f'{where} is neither text nor {{"hex"}}')


def value_of(value, where="args.value"):
    """The bytes of a value as an array."""
    if not isinstance(value, dict):
        raise Bad(f"{where} is no object")
    if "hex" in value:
        return numpy.frombuffer(bytes.fromhex(value["hex"]), numpy.uint8)
    if "fill" in value:
        if not isinstance(value.get("bytes"), int) or not 0 <= value["bytes"] <= VALUE_BYTES_MAX:
            raise Bad(f"{where}.bytes is not a number of 0 to {VALUE_BYTES_MAX}")
        return fill(int(value["fill"]), value["bytes"])
    if "file" in value:
        with open(value["file"], "rb") as file:
            file.seek(value.get("offset", 0))
            data = file.read(value["length"])
        if len(data) != value["length"]:
            raise Bad(f"{where}: the file is shorter than offset and length say")
        return numpy.frombuffer(data, numpy.uint8)
    raise Bad(f'{where} has none of "hex", "fill", "file"')


def digest(data):
    return f"{xxhash.xxh3_64_intdigest(memoryview(data)):016x}"


class Client:
    """One store client and the buffers that its calls use."""

    def __init__(self):
        from mooncake.store import MooncakeDistributedStore

        self.store = MooncakeDistributedStore()

    def setup(self, args):
        code = self.store.setup(
            member(args, "local_hostname", str), args.get("metadata_server", "P2PHANDSHAKE"),
            member(args, "global_segment_size", int), args.get("local_buffer_size", 128 << 20),
            args.get("protocol", "tcp"), args.get("rdma_devices", ""), member(args, "master_server_addr", str),
            tenant_id=args.get("tenant_id", "default"))
        return {"code": code}

    def buffer(self, length):
        """Registered memory that a call may use; give it back with release."""
        data = numpy.full(max(length, 1), 0xC7, numpy.uint8)
        self.store.register_buffer(data.ctypes.data, data.nbytes)
        return data

    def release(self, data):
        self.store.unregister_buffer(data.ctypes.data)

    def put(self, args):
        data = value_of(args.get("value"))
        return {"code": self.store.put(key_of(args.get("key")), memoryview(data) if data.size else b"")}

    def get(self, args):
        room = member(args, "bytes", int)
        data = self.buffer(room)
        try:
            code = self.store.get_into(key_of(args.get("key")), data.ctypes.data, room)
            if code < 0:
                return {"code": code}
            if args.get("want", "digest") == "hex":
                return {"code": code, "hex": bytes(data[:code]).hex()}
            return {"code": code, "digest": digest(data[:code])}
        finally:
            self.release(data)

    def exist(self, args):
        keys = [key_of(k, "args.keys") for k in member(args, "keys", list)]
        return {"codes": [self.store.is_exist(keys[0])] if len(keys) == 1 else list(self.store.batch_is_exist(keys))}

    def size(self, args):
        return {"codes": [self.store.get_size(key_of(k, "args.keys")) for k in member(args, "keys", list)]}

    def remove(self, args):
        return {"codes": [self.store.remove(key_of(k, "args.keys"), bool(args.get("force"))) for k in member(args, "keys", list)]}

    def remove_all(self, args):
        return {"code": self.store.remove_all(bool(args.get("force")))}

    def batch_put(self, args):
        keys = [key_of(k, "args.keys") for k in member(args, "keys", list)]
        values = [value_of(v, "args.values") for v in member(args, "values", list)]
        buffers = [self.buffer(v.size) for v in values]
        for into, data in zip(buffers, values):
            into[:data.size] = data
        try:
            codes = self.store.batch_put_from(keys, [b.ctypes.data for b in buffers], [v.size for v in values])
            return {"codes": list(codes)}
        finally:
            for data in buffers:
                self.release(data)

    def batch_get(self, args):
        keys = [key_of(k, "args.keys") for k in member(args, "keys", list)]
        sizes = member(args, "bytes", list)
        buffers = [self.buffer(n) for n in sizes]
        try:
            codes = list(self.store.batch_get_into(keys, [b.ctypes.data for b in buffers], sizes))
            return {"codes": codes, "digests": [digest(b[:c]) if c >= 0 else None for b, c in zip(buffers, codes)]}
        finally:
            for data in buffers:
                self.release(data)

    def parts(self, sizes):
        """For each key its parts: one buffer, addresses one behind the other with a gap, and their lengths."""
        gap = 64
        buffers = [self.buffer(sum(s) + gap * len(s)) for s in sizes]
        places = []
        for data, lengths in zip(buffers, sizes):
            at, row = 0, []
            for n in lengths:
                row.append(at)
                at += n + gap
            places.append(row)
        return buffers, places

    def multi_put(self, args):
        keys = [key_of(k, "args.keys") for k in member(args, "keys", list)]
        sizes = member(args, "sizes", list)
        values = [value_of(v, "args.values") for v in member(args, "values", list)]
        buffers, places = self.parts(sizes)
        for data, value, lengths, row in zip(buffers, values, sizes, places):
            taken = 0
            for n, at in zip(lengths, row):
                data[at:at + n] = value[taken:taken + n]
                taken += n
        try:
            codes = self.store.batch_put_from_multi_buffers(
                keys, [[b.ctypes.data + at for at in row] for b, row in zip(buffers, places)], sizes)
            return {"codes": list(codes)}
        finally:
            for data in buffers:
                self.release(data)

    def multi_get(self, args):
        keys = [key_of(k, "args.keys") for k in member(args, "keys", list)]
        sizes = member(args, "sizes", list)
        buffers, places = self.parts(sizes)
        try:
            codes = list(self.store.batch_get_into_multi_buffers(
                keys, [[b.ctypes.data + at for at in row] for b, row in zip(buffers, places)], sizes))
            digests = []
            for data, lengths, row, code in zip(buffers, sizes, places, codes):
                whole = numpy.concatenate([data[at:at + n] for n, at in zip(lengths, row)]) if code >= 0 else None
                digests.append(digest(whole[:code]) if whole is not None else None)
            return {"codes": codes, "digests": digests}
        finally:
            for data in buffers:
                self.release(data)

    def close(self, args):
        return {"code": self.store.close()}


CALLS = ("setup", "put", "get", "exist", "size", "remove", "remove_all", "batch_put", "batch_get", "multi_put", "multi_get", "close")


class Adapter:
    def __init__(self):
        self.clients = {}

    def store(self, message):
        call, name = message.get("call"), message.get("client")
        args = message.get("args", {})
        if call not in CALLS:
            raise Bad(f"call {call!r} is none of {', '.join(CALLS)}")
        if not isinstance(name, str):
            raise Bad("client is no text")
        if not isinstance(args, dict):
            raise Bad("args is no object")
        if call == "setup" and name not in self.clients:
            self.clients[name] = Client()
        if name not in self.clients:
            raise Bad(f"client {name!r} has had no setup")
        result = getattr(self.clients[name], call)(args)
        if call == "close":
            del self.clients[name]
        return result

    def start(self, message):
        if message.get("protocol") != PROTOCOL:
            raise Bad(f"protocol {message.get('protocol')!r} is not {PROTOCOL}")
        import importlib.metadata

        version = importlib.metadata.version("mooncake-transfer-engine-non-cuda")
        return {"name": "mooncake", "version": version, "homepage": "https://github.com/kvcache-ai/Mooncake",
                "profiles": [f"mooncake-{version}"], "suites": [], "store": True}

    def answer(self, line):
        """The answer to one line, and whether it was the last."""
        try:
            message = json.loads(line)
        except ValueError as error:
            return {"error": f"not JSON: {error}"}, False
        if not isinstance(message, dict):
            return {"error": "not an object"}, False
        tag = {"seq": message["seq"]} if "seq" in message else {}
        try:
            if message.get("do") == "start":
                return {"ok": self.start(message)}, False
            if message.get("do") == "stop":
                return {"ok": {}}, True
            if message.get("do") == "store":
                return {**tag, "result": self.store(message)}, False
            return {**tag, "error": f"do {message.get('do')!r} is none of start, store, stop"}, False
        except (Bad, ValueError, OSError, TypeError) as error:
            return {**tag, "error": str(error)}, False


def main():
    # The client library logs to file descriptors 1 and 2: answers keep a descriptor of their own.
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    adapter = Adapter()
    for line in sys.stdin:
        answer, last = adapter.answer(line)
        out.write(json.dumps(answer) + "\n")
        out.flush()
        if last:
            break
    for client in adapter.clients.values():
        client.store.close()
    out.close()
    ctypes.CDLL(None).fflush(None)
    os._exit(0)  # the library's threads must not run destructors


if __name__ == "__main__":
    main()
