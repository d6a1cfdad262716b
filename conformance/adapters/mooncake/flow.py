#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One flow of store calls, played by clients of either kind on a master of either kind, with the same expectations for all.

    flow.py --master real|ours --owner real|ours --requester real|ours [--mooncheck FOLDER] [--python PYTHON] [--only TEXT]

FOLDER has mooncheck-master and mooncheck-client; PYTHON has the mooncake wheel. Three client processes (an owner with a
segment, a writer and a reader without) and one master, all on loopback, all ended by this program. Exit 0 if all passed,
1 if not, 77 if the wheel is not there. The last line is `N passed, N failed, N skipped`.
"""
import argparse
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time

from adapter import digest, fill

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
SEGMENT = 256 * MIB
ANSWER_S = 100
SIZES = (1, 15, 255, 256, 4095, 4096, 5000, 65536, MIB - 1, MIB, 16 * MIB - 16, 16 * MIB - 15, 16 * MIB + 1, 64 * MIB)


class Broken(Exception):
    pass


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process, what):
    end = time.monotonic() + 20
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Broken(f"{what} ended with {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise Broken(f"{what} does not listen after 20 s")


def shortened(value):
    text = json.dumps(value)
    return text if len(text) <= 600 else text[:600] + " ..."


class Agent:
    """A client process that speaks the adapter protocol."""

    def __init__(self, name, command, log):
        self.name, self.seq, self.buffer = name, 0, b""
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.process.stdout, selectors.EVENT_READ)
        self.ask({"do": "start", "protocol": 1, "folder": tempfile.gettempdir()})

    def ask(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        end = time.monotonic() + ANSWER_S
        while b"\n" not in self.buffer:
            if not self.selector.select(max(0, end - time.monotonic())):
                raise Broken(f"{self.name} did not answer {message} in {ANSWER_S} s")
            got = os.read(self.process.stdout.fileno(), 65536)
            if not got:
                raise Broken(f"{self.name} died at {message} ({self.process.wait()})")
            self.buffer += got
        line, self.buffer = self.buffer.split(b"\n", 1)
        answer = json.loads(line)
        if "error" in answer:
            raise Broken(f"{self.name} answered {message} with the error {answer['error']}")
        return answer.get("result", answer)

    def call(self, call, **args):
        self.seq += 1
        return self.ask({"do": "store", "seq": self.seq, "client": self.name, "call": call, "args": args})

    def stop(self):
        try:
            self.process.stdin.close()
            self.process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Flow:
    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.passed, self.failed, self.started = 0, [], []
        self.port = free_port()

    # ---- processes
    def log(self, name):
        return open(os.path.join(self.folder, name + ".log"), "wb")

    def start_master(self):
        if self.options.master == "real":
            import mooncake

            program = os.path.join(os.path.dirname(mooncake.__file__), "mooncake_master")
            os.chmod(program, os.stat(program).st_mode | 0o111)
            command = [program, f"--rpc_port={self.port}", f"--metrics_port={free_port()}", "--rpc_address=127.0.0.1",
                       "--logtostderr=true", "--enable_metric_reporting=false"]
        else:
            command = [os.path.join(self.options.mooncheck, "mooncheck-master"), f"--rpc_port={self.port}", "--rpc_address=127.0.0.1"]
        log = self.log("master")
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.started.append(process)
        wait_for_port(self.port, process, "the master")

    def agent(self, name, kind):
        command = [self.options.python, os.path.join(HERE, "adapter.py")] if kind == "real" else \
            [os.path.join(self.options.mooncheck, "mooncheck-client"), "agent"]
        agent = Agent(name, command, self.log(name))
        self.started.append(agent.process)
        return agent

    # ---- judging
    def expect(self, sentence, seen, expected):
        if seen == expected:
            self.passed += 1
        else:
            self.failed.append(sentence)
            print(f"FAILED {sentence}\n  expected {shortened(expected)}\n  seen     {shortened(seen)}", flush=True)

    def value(self, key, seed, length):
        self.expected[key] = (length, digest(fill(seed, length)))
        return {"fill": seed, "bytes": length}

    def reads(self, agent, key, sentence, room=None):
        length, whole = self.expected[key]
        self.expect(sentence, agent.call("get", key=key, bytes=length if room is None else room), {"code": length, "digest": whole})

    # ---- the flow
    def set_up(self):
        self.start_master()
        self.expected = {}
        self.owner = self.agent("owner", self.options.owner)
        self.writer = self.agent("writer", self.options.requester)
        self.reader = self.agent("reader", self.options.requester)
        for agent, segment in ((self.owner, SEGMENT), (self.writer, 0), (self.reader, 0)):
            code = agent.call("setup", local_hostname=f"127.0.0.1:{free_port()}", master_server_addr=f"127.0.0.1:{self.port}",
                              global_segment_size=segment, local_buffer_size=128 * MIB)
            self.expect(f"setup of the {agent.name}", code, {"code": 0})

    def sizes(self):
        for n, length in enumerate(SIZES):
            key = f"size-{length}"
            self.expect(f"{key} is put", self.writer.call("put", key=key, value=self.value(key, n + 1, length)), {"code": 0})
            self.expect(f"{key} exists for another process", self.reader.call("exist", keys=[key]), {"codes": [1]})
            self.expect(f"{key} has its size", self.reader.call("size", keys=[key]), {"codes": [length]})
            self.reads(self.reader, key, f"{key} is read by another process")
            self.reads(self.owner, key, f"{key} is read by its owner")

    def batches(self):
        keys = [f"batch-{i}" for i in range(32)]
        values = [self.value(key, 100 + i, 4096 + i) for i, key in enumerate(keys)]
        self.expect("a batch of 32 is put", self.writer.call("batch_put", keys=keys, values=values), {"codes": [0] * 32})
        self.expect("a batch exists, but for one", self.reader.call("exist", keys=keys + ["batch-none"]), {"codes": [1] * 32 + [0]})
        asked = [keys[0], "batch-none", keys[1], keys[2]]
        rooms = [4096, 4096, 100, 8192]
        self.expect("a batch is read: whole, missing, no room, more room", self.reader.call("batch_get", keys=asked, bytes=rooms),
                    {"codes": [4096, -704, -600, 4098],
                     "digests": [self.expected[keys[0]][1], None, None, self.expected[keys[2]][1]]})
        seen = self.reader.call("batch_get", keys=keys, bytes=[4096 + i for i in range(32)])
        self.expect("a batch of 32 is read", seen, {"codes": [4096 + i for i in range(32)], "digests": [self.expected[k][1] for k in keys]})
        twice = ["twice", "once", "twice"]
        values = [{"fill": 1, "bytes": 5000}, self.value("once", 2, 5000), self.value("twice", 3, 5000)]
        self.expect("a key twice in a batch", self.writer.call("batch_put", keys=twice, values=values), {"codes": [0, 0, 0]})
        self.reads(self.reader, "twice", "of a key twice in a batch the last value is there")
        self.reads(self.reader, "once", "and the other key's own")

    def parts(self):
        sizes = [[4096, 65536, 100000, 1, 300000], [1], [MIB] * 3]
        keys = [f"parts-{i}" for i in range(3)]
        values = [self.value(key, 200 + i, sum(s)) for i, (key, s) in enumerate(zip(keys, sizes))]
        self.expect("values of several parts are put", self.writer.call("multi_put", keys=keys, sizes=sizes, values=values), {"codes": [0] * 3})
        whole = [self.expected[k] for k in keys]
        self.expect("they are read into the same parts", self.reader.call("multi_get", keys=keys, sizes=sizes),
                    {"codes": [w[0] for w in whole], "digests": [w[1] for w in whole]})
        other = [[sum(s)] for s in sizes]
        self.expect("and into one part each", self.reader.call("multi_get", keys=keys, sizes=other),
                    {"codes": [w[0] for w in whole], "digests": [w[1] for w in whole]})

    def life(self):
        w, r = self.writer, self.reader
        self.expect("a new key is put", w.call("put", key="life", value=self.value("life", 300, 5000)), {"code": 0})
        self.expect("put again with other bytes gives 0", r.call("put", key="life", value={"fill": 301, "bytes": 5000}), {"code": 0})
        self.reads(r, "life", "and the first bytes stay")
        self.expect("it is under a lease now", w.call("remove", keys=["life"]), {"codes": [-706]})
        self.expect("which force passes over", w.call("remove", keys=["life"], force=True), {"codes": [0]})
        self.expect("removed again it is not there", w.call("remove", keys=["life"]), {"codes": [-704]})
        self.expect("nor for a reader", r.call("get", key="life", bytes=5000), {"code": -704})
        self.expect("nor has it a size", r.call("size", keys=["life"]), {"codes": [-704]})
        self.expect("nor does it exist", r.call("exist", keys=["life"]), {"codes": [0]})
        self.expect("it is put anew", w.call("put", key="life", value=self.value("life", 302, 70000)), {"code": 0})
        self.reads(r, "life", "and has the new bytes")
        self.expect("a key that nobody read", w.call("put", key="unread", value=self.value("unread", 303, 10)), {"code": 0})
        self.expect("is removed without force", w.call("remove", keys=["unread"]), {"codes": [0]})
        self.expect("less room than the object", r.call("get", key="life", bytes=69999), {"code": -600})
        self.reads(r, "life", "more room than the object", 80000)
        self.expect("an empty value is refused", w.call("put", key="empty", value={"hex": ""}), {"code": -600})
        self.expect("an empty key is refused", w.call("put", key="", value={"fill": 1, "bytes": 10}), {"code": -600})
        long = "k" * 300
        self.expect("a key of 300 bytes is put", w.call("put", key=long, value=self.value(long, 304, 100)), {"code": 0})
        self.reads(r, long, "and read")

    def both_own(self):
        """A second owner in the reader's place: values land on both and are read from both."""
        second = self.agent("second", self.options.requester)
        code = second.call("setup", local_hostname=f"127.0.0.1:{free_port()}", master_server_addr=f"127.0.0.1:{self.port}",
                           global_segment_size=64 * MIB, local_buffer_size=64 * MIB)
        self.expect("setup of a second owner", code, {"code": 0})
        keys = [f"both-{i}" for i in range(40)]
        for i, key in enumerate(keys):
            self.expect(f"{key} is put", self.writer.call("put", key=key, value=self.value(key, 400 + i, 30000)), {"code": 0})
        for agent in (self.reader, self.owner, second):
            codes = agent.call("batch_get", keys=keys, bytes=[30000] * len(keys))
            self.expect(f"the {agent.name} reads all 40", codes, {"codes": [30000] * 40, "digests": [self.expected[k][1] for k in keys]})
        self.expect("the second owner leaves", second.call("close"), {"code": 0})
        second.stop()
        time.sleep(0.2)
        left = self.reader.call("exist", keys=keys)["codes"]
        self.expect("some of them went with it, some stay", (0 < sum(left) < 40, set(left) <= {0, 1}), (True, True))

    def end(self):
        # This arms the eviction of real masters and of ours: nothing may be expected to be there afterwards.
        big = self.writer.call("batch_put", keys=["big"], values=[{"fill": 1, "bytes": SEGMENT + MIB}])
        self.expect("a value beyond all memory", big, {"codes": [-200]})
        count = self.writer.call("remove_all", force=True)["code"]
        self.expect("remove_all counts what it removed", count > 40, True)
        self.expect("nothing is left", self.reader.call("exist", keys=["life", "once", "twice", "batch-0"]), {"codes": [0] * 4})
        for agent in (self.reader, self.writer, self.owner):
            self.expect(f"the {agent.name} closes", agent.call("close"), {"code": 0})

    def run(self):
        for part in (self.set_up, self.sizes, self.batches, self.parts, self.life, self.both_own, self.end):
            if self.options.only and self.options.only not in part.__name__ and part != self.set_up:
                continue
            part()

    def stop(self):
        for process in self.started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.started:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], allow_abbrev=False)
    for part in ("master", "owner", "requester"):
        parser.add_argument("--" + part, choices=("real", "ours"), required=True)
    parser.add_argument("--mooncheck", default="build/gcc", metavar="FOLDER")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--only", metavar="TEXT", help="only parts of the flow whose name contains TEXT")
    options = parser.parse_args()
    try:
        import mooncake.store  # noqa: F401
    except ImportError as error:
        print(f"SKIP: the mooncake wheel is not here: {error}")
        print("0 passed, 0 failed, 1 skipped")
        return 77
    with tempfile.TemporaryDirectory(prefix="mooncheck-flow-") as folder:
        flow = Flow(options, folder)
        try:
            flow.run()
        except Broken as error:
            flow.failed.append(str(error))
            print(f"FAILED {error}", flush=True)
        finally:
            flow.stop()
        if flow.failed:
            for name in sorted(os.listdir(folder)):
                with open(os.path.join(folder, name), errors="replace") as file:
                    tail = file.readlines()[-8:]
                print(f"--- {name}\n{''.join(tail)}", end="")
        print(f"{flow.passed} passed, {len(flow.failed)} failed, 0 skipped")
        return 1 if flow.failed else 0


if __name__ == "__main__":
    sys.exit(main())
