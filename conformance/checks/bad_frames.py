#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad frames over real sockets: every recorded request cut at every byte, every length field at 0, the largest number and one off.

usage: bad_frames.py BIN_FOLDER MESSAGES.json[.zst]

Starts mooncheck-master and an owner, and sends to the master's port, the owner's handshake port and its data port. After
each bad frame the connection must be closed or answered, and a good question on another connection must be answered; at
the end both processes live, hold as many descriptors as before, and not much more memory. Last line: "N passed, N failed,
0 skipped".
"""
import errno
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import time

ANSWER_S = 20
MEMORY_KIB_MAX = 8 * 1024
RESPONSE_BYTES = 16
CLOSED = (errno.ECONNRESET, errno.ENOTCONN, errno.EPIPE)  # what a closed connection looks like while one still writes


def messages_of(path):
    raw = subprocess.run(["zstdcat", path], check=True, stdout=subprocess.PIPE).stdout if path.endswith(".zst") else open(path, "rb").read()
    return json.loads(raw)["messages"]


def start(command, pattern):
    """A process, and what its first line says of where it listens."""
    # What AddressSanitizer keeps aside of memory that was given back would count as held.
    environment = dict(os.environ, ASAN_OPTIONS="quarantine_size_mb=1")
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    line = process.stdout.readline()
    found = re.search(pattern, line)
    if not found:
        process.kill()
        sys.exit(f"bad_frames: {command[0]} said {line!r}")
    return process, found.group(1)


def address(text):
    host, port = text.rsplit(":", 1)
    return ("127.0.0.1" if host == "0.0.0.0" else host, int(port))


def resources(process):
    with open(f"/proc/{process.pid}/status") as file:
        kib = int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))
    return len(os.listdir(f"/proc/{process.pid}/fd")), kib


def read_exactly(connection, count):
    data = b""
    while len(data) < count:
        got = connection.recv(count - len(data))
        if not got:
            break
        data += got
    return data


class Dead(Exception):
    """A port serves nobody any more: nothing else can be seen."""


class Port:
    """One listening port, a good question and how its answer begins."""

    def __init__(self, name, where, good, answer_bytes):
        self.name, self.where, self.good, self.answer_bytes = name, where, good, answer_bytes
        self.line = socket.create_connection(where, ANSWER_S)
        self.passed, self.failed = 0, []

    def serves_others(self):
        """Asks on the other connection, which stays open where the protocol lets it."""
        try:
            if self.name == "handshake":
                self.line.close()
                self.line = socket.create_connection(self.where, ANSWER_S)
            self.line.sendall(self.good)
            return len(read_exactly(self.line, self.answer_bytes)) == self.answer_bytes
        except OSError:
            return False

    def send(self, sentence, frame, whole):
        """A bad frame: cut ones are ended by us, whole ones must be answered or closed."""
        try:
            with socket.create_connection(self.where, ANSWER_S) as connection:
                connection.settimeout(ANSWER_S)
                connection.sendall(frame)
                connection.shutdown(socket.SHUT_WR)
                if whole:
                    while connection.recv(65536):
                        pass
        except OSError as error:
            if error.errno not in CLOSED:
                self.failed.append(f"{self.name}: {sentence}: {error}")
                return
        if self.serves_others():
            self.passed += 1
        else:
            self.failed.append(f"{self.name}: {sentence}: others are not served any more")
            raise Dead

    def lengths(self, sentence, frame, at, size):
        """The little-endian number at that place at 0, its largest, and one off."""
        value = int.from_bytes(frame[at:at + size], "little")
        for other in sorted({0, (1 << 8 * size) - 1, value + 1, max(0, value - 1)} - {value}):
            bad = frame[:at] + (other & ((1 << 8 * size) - 1)).to_bytes(size, "little") + frame[at + size:]
            self.send(f"{sentence}, number at {at} is {other} for {value}", bad, True)

    def cuts(self, sentence, frame, step=1):
        for count in range(0, len(frame), step):
            self.send(f"{sentence}, cut after {count} bytes", frame[:count], False)


def ask_master(port, messages):
    seen = set()
    for message in messages:
        if message["direction"] != "request" or not message.get("function_id") or message["rpc"] in seen or "::" in message["rpc"]:
            continue
        seen.add(message["rpc"])
        frame = bytes.fromhex(message["hex"])
        if len(frame) > 400:
            continue
        port.cuts(message["rpc"], frame, 1 if message["rpc"] in ("PutStart", "Ping", "MountSegment") else 7)
        for at in (12, 16):
            port.lengths(message["rpc"], frame, at, 4)
        for at in range(20, len(frame)):
            for other in {0, 255, frame[at] ^ 1} - {frame[at]}:
                if message["rpc"] in ("PutStart", "BatchPutStart", "MountSegment", "PutEnd"):
                    port.send(f"{message['rpc']}, byte {at} is {other}", frame[:at] + bytes([other]) + frame[at + 1:], True)


def ask_owner(handshake, data, descriptor):
    frame = handshake.good
    handshake.cuts("Metadata", frame)
    handshake.lengths("Metadata", frame, 0, 8)
    for kind in (0, 2, 3, 4, 255):
        handshake.send(f"type {kind}", frame[:8] + bytes([kind]) + frame[9:], True)
    buffer = descriptor["buffers"][0]
    write = struct.pack("<QQB7x", 64, buffer["addr"], 0x81) + b"x" * 64
    data.cuts("write", write)
    for at in (0, 8):
        data.lengths("read", data.good, at, 8)
        data.lengths("write", write, at, 8)
    data.lengths("read", struct.pack("<QQB7x", buffer["length"], buffer["addr"], 0x80), 0, 8)
    for opcode in (2, 5, 0x7f, 0xff):
        data.send(f"opcode {opcode}", data.good[:16] + bytes([opcode]) + data.good[17:], True)


def descriptor_of(where):
    with socket.create_connection(where, ANSWER_S) as connection:
        connection.sendall(struct.pack("<QB", 3, 1) + b"{}")
        length = struct.unpack("<Q", read_exactly(connection, 8))[0]
        return json.loads(read_exactly(connection, length)[1:])


def settle(process, before):
    """Waits until the process has let go of its connections."""
    end = time.monotonic() + 10
    while time.monotonic() < end and resources(process)[0] > before[0]:
        time.sleep(0.05)
    return resources(process)


def main():
    folder, path = sys.argv[1:3]
    messages = messages_of(path)
    master, where = start([os.path.join(folder, "mooncheck-master"), "--rpc_address=127.0.0.1", "--rpc_port=0"], r"listening on (\S+)")
    owner, endpoint = start([os.path.join(folder, "mooncheck-client"), "owner", "--master", where, "--segment", str(32 << 20)], r" at (\S+)$")
    ports = []
    try:
        descriptor = descriptor_of(address(endpoint))
        good = bytes.fromhex(next(m["hex"] for m in messages if m["rpc"] == "ServiceReady" and m["direction"] == "request"))
        read = struct.pack("<QQB7x", 16, descriptor["buffers"][0]["addr"], 0x80)
        ports = [Port("master", address(where), good, RESPONSE_BYTES + 17),
                 Port("handshake", address(endpoint), struct.pack("<QB", 3, 1) + b"{}", 9),
                 Port("data", ("127.0.0.1", descriptor["tcp_data_port"]), read, 8 + 16)]
        for port in ports:
            if not port.serves_others():
                port.failed.append(f"{port.name}: a good question is not answered")
        before = [resources(p) for p in (master, owner)]
        ask_master(ports[0], messages)
        ask_owner(ports[1], ports[2], descriptor)
        for process, name, was in zip((master, owner), ("master", "owner"), before):
            now = settle(process, was)
            for what, ok in (("lives", process.poll() is None), (f"has as many descriptors as before ({was[0]}, {now[0]})", now[0] <= was[0]),
                             (f"has not much more memory ({was[1]}, {now[1]} KiB)", now[1] <= was[1] + MEMORY_KIB_MAX)):
                if ok:
                    ports[0].passed += 1
                else:
                    ports[0].failed.append(f"the {name} {what}: no")
    except Dead:
        pass
    finally:
        for process in (owner, master):
            process.send_signal(signal.SIGTERM)
        for process in (owner, master):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    failed = [f for port in ports for f in port.failed]
    print("\n".join(failed[:20]))
    print(f"{sum(port.passed for port in ports)} passed, {len(failed)} failed, 0 skipped")
    return 1 if failed or not ports else 0


if __name__ == "__main__":
    sys.exit(main())
