# SPDX-License-Identifier: Apache-2.0
"""Records the lookup channel of real releases: what their client sends and takes, what their server takes and answers.

    usage: record_rpc.py --sources DIR --out FILE [--check] [VERSION]...

FILE is fixtures/lookup-rpc/frames.json.zst. Without a VERSION: every release in --sources, all of FILE anew; with them:
the cases of these releases in FILE. --check writes nothing. Exit: 0 nothing differs (or it was written), 1 it differs,
2 usage or a release that does not answer.

Every case is a question of ours to the release's own LookupKeyClient, LookupKeyServer, MooncakeStoreScheduler or
MooncakeStoreWorker, over ZeroMQ sockets in a temporary folder. What differs between releases is asked of the release.
"""
import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from types import SimpleNamespace

import engine
import vectors
from adapter import profile_of, releases_in, version_order
from core_engine import shared_context, stand_in_parse_url
from release import Release, Stuck
from rpc_ends import NO_HIT, Call, Client, Server, Wire, packed_array, packed_text

SCHEMA = "mooncheck-lookup-rpc/1"
RELEASE_WAIT_SECONDS = 180.0
EXACT_INTEGER_MAX = 2 ** 53
H16 = [bytes([number] * 16).hex() for number in (0xfe, 0x8b, 0x01)]
H32 = [bytes([number] * 32).hex() for number in (0xfe, 0x8b, 0x01)]
GIVEN = {"topology": {"tp": 1}, "groups": [{"kind": "full", "block_size": 16, "num_kv_heads": 8}], "model": "m",
         "total_kv_heads": 8}


def number(value: int) -> int | str:
    """An integer of an expectation: beyond 2^53 a decimal string."""
    return value if abs(value) <= EXACT_INTEGER_MAX else str(value)


def told(hashes):
    """What a lookup is called with. 0.21 hands on what the request held; other things than text go by their type."""
    if isinstance(hashes, Sequence) and not isinstance(hashes, str):
        return [each if isinstance(each, str) else bytes(each).hex() if isinstance(each, (bytes, memoryview))
                else {"type": type(each).__name__} for each in hashes]
    return {"type": type(hashes).__name__}


def error_class(error: BaseException) -> dict:
    return {"error": type(error).__name__}


class ReleaseRun:
    """All cases of one release, in a process of its own."""

    def __init__(self, source: str, profile: str, folder: str):
        release = Release(source)
        self.vllm = engine.prepare(release)
        stand_in_parse_url(release)
        self.sockets, self.vllm.worker.zmq = shared_context()
        self.folder, self.channels, self._profile = folder, itertools.count(), profile
        self.wire = Wire(self.vllm)
        self.config = engine.Engine(self.vllm, GIVEN).vllm_config(0)
        self.thread_errors: dict[threading.Thread, str] = {}
        threading.excepthook = lambda fault: self.thread_errors.__setitem__(fault.thread, fault.exc_type.__name__)
        self.cases: list[dict] = []

    def run(self) -> list[dict]:
        for part in (self._requests, self._replies, self._scripts, self._questions, self._served, self._resets,
                     self._workers):
            part()
        return self.cases

    def _note(self, do: str, name: str, given: dict, expect: dict) -> None:
        self.cases.append({"profile": self._profile, "do": do, "name": name, "given": given, "expect": expect})

    # -- the client
    def _client(self) -> Client:
        return Client(self, lambda: self.vllm.real.LookupKeyClient(self.config))

    def _result(self, result) -> dict:
        """A hit, in the form that the release's client gives it."""
        if result is None:
            return {"pending": True}
        if not self.wire.tails:
            return {"hit": number(result)}
        return {"hit": number(result.hit_length),
                "boundaries": [[each.group_id, each.num_tokens] for each in result.tail_key_boundaries]}

    def _requests(self) -> None:
        for name, tokens, hashes in (
                ("no hashes", 0, []), ("no hashes, tokens", 16, []), ("one hash of 32 bytes", 16, H32[:1]),
                ("two hashes of 32 bytes", 32, H32[:2]), ("three hashes of 16 bytes", 48, H16),
                ("fifteen hashes of 2 bytes", 240, ["beef"] * 15), ("sixteen hashes of 2 bytes", 256, ["beef"] * 16),
                ("a hash of 15 bytes", 1, ["0a" * 15]), ("a hash of 128 bytes", 1, ["0a" * 128]),
                ("unaligned tokens", 37, H32[:2]), ("the most tokens", 2 ** 32 - 1, H16[:1]),
                ("too many tokens", 2 ** 32, H16[:1]), ("a negative number of tokens", -1, H16[:1])):
            end = self._client()
            call = Call(end.ask, "r", tokens, hashes)
            fits = 0 <= tokens < 2 ** 32
            frames = end.serve(call, [NO_HIT] if fits else [])
            expect = {"frames": frames[0] if frames else None}
            if not fits:
                expect.update(error_class(call.error) if call.error else self._result(call.outcome))
            self._note("request", name, {"tokens": tokens, "hashes": hashes}, expect)
            end.end()
        if hasattr(self.vllm.real.LookupKeyClient, "reset"):
            end = self._client()
            frames = end.serve(Call(end.client.reset), ["01"])
            self._note("request", "reset", {"reset": True}, {"frames": frames[0]})
            end.end()

    def _replies(self) -> None:
        ramp = bytes(range(1, 18)).hex()
        payloads = [ramp[:2 * length] for length in range(18)]
        payloads += ["00000000", "00000010", "7fffffff", "ffffffff", "000000100000000000000010",
                     "0000002000000000000000200000000200000008", "000000200000000100000020000000000000001000000001"
                     "00000008", "00000000" "0000000000000010", "0000001000000000000000100000000000000008",
                     "00000010000000000000001000", "7fffffffffffffff", "8000000000000000"]
        for payload in payloads:
            end = self._client()
            call = Call(end.ask, "r", 16, H16[:1])
            end.serve(call, [payload])
            self._note("reply", f"{len(payload) // 2} bytes", {"reply": payload},
                       error_class(call.error) if call.error else self._result(call.outcome))
            end.end()
        if not hasattr(self.vllm.real.LookupKeyClient, "reset"):
            return
        for payload in ("01", "00", "", "0100", "02", "ff", "00000001"):
            end = self._client()
            call = Call(end.client.reset)
            end.serve(call, [payload])
            self._note("reply", f"{len(payload) // 2} bytes to a reset", {"reset": True, "reply": payload},
                       error_class(call.error) if call.error else {"good": call.outcome})
            end.end()

    # -- the client's queue (0.24 on)
    def _scripts(self) -> None:
        if not self.wire.asynchronous:
            return

        def ask(name: str, blocks: int, *replies: str, non_block: bool = True) -> dict:
            return {"ask": name, "tokens": 16 * blocks, "hashes": H16[:blocks], "non_block": non_block,
                    "replies": list(replies)}

        take = {"take": True}
        one, two = "00000010", "00000020"
        malformed = "0000001000"  # refused from 0.29 on; a number of five bytes before
        for name, steps in (
                ("an answer is used up", [ask("a", 1), take, {"reply": one}, ask("a", 1), ask("a", 2), take,
                                          {"reply": two}, ask("a", 1)]),
                ("what was queued counts", [ask("a", 1), ask("a", 2), take, ask("a", 3), {"reply": one}, ask("a", 3)]),
                ("one at a time, in order", [ask("a", 1), ask("b", 2), ask("c", 3), take, {"reply": one}, take,
                                             {"reply": two}, ask("c", 3), ask("b", 2), ask("a", 1), take,
                                             {"reply": one}, ask("c", 3)]),
                ("a blocking question waits for those before", [ask("a", 1), ask("b", 2, one, two, non_block=False),
                                                                ask("a", 1)]),
                ("a reset waits for those before", [ask("a", 1), {"reset": True, "replies": [two, "01"]}, ask("a", 1),
                                                    {"reset": True, "replies": ["00"]}]),
                ("a queued lookup is discarded", [ask("a", 1), take, ask("b", 2), ask("c", 3), {"discard": "b"},
                                                  {"reply": one}, take, {"reply": two}, ask("c", 3), ask("b", 1), take,
                                                  {"reply": one}, ask("b", 1), ask("a", 1)]),
                ("a lookup that is out is discarded", [ask("a", 1), take, {"discard": "a"}, ask("a", 2),
                                                       {"reply": one}, ask("a", 2), take, {"reply": two},
                                                       ask("a", 2)]),
                ("an answer is discarded", [ask("a", 1), take, {"reply": one}, {"discard": "a"}, ask("a", 2), take,
                                            {"reply": two}, ask("a", 2), {"discard": "a"}, {"discard": "z"}]),
                ("a bad reply disturbs no other", [ask("a", 1), ask("b", 2), take, {"reply": malformed}, take,
                                                   {"reply": two}, ask("a", 1), ask("b", 2), ask("a", 1), take,
                                                   {"reply": one}, ask("a", 1)]),
                ("what cannot be sent disturbs no other", [ask("a", 1), take, {**ask("b", 1), "tokens": -1},
                                                           ask("c", 3), {"reply": one}, take, {"reply": two},
                                                           ask("b", 1), ask("c", 3), ask("a", 1), ask("b", 2), take,
                                                           {"reply": two}, ask("b", 2)])):
            end = self._client()
            expect = [self._step(end, step) for step in steps]
            self._note("script", name, {"steps": steps}, {"steps": expect})
            end.end()

    def _step(self, end: Client, step: dict) -> dict:
        """One thing that happens to a client; lookups that it knows afterwards."""
        expect: dict = {}
        if "take" in step:
            expect["frames"] = end.take()
        elif "reply" in step:
            end.reply(step["reply"])
        elif "discard" in step:
            end.client.discard(step["discard"])
        elif "reset" in step:
            call = Call(end.client.reset)
            expect["sent"] = end.serve(call, step["replies"])
            expect["good"] = call.outcome
        elif step["non_block"]:
            expect.update(self._result(end.ask(step["ask"], step["tokens"], step["hashes"], True)))
        else:
            call = Call(end.ask, step["ask"], step["tokens"], step["hashes"])
            expect["sent"] = end.serve(call, step["replies"])
            expect.update(self._result(call.outcome))
        return {**expect, "known": len(end.client.futures)}

    # -- the scheduler side: which number of tokens goes over the wire, and what a hit becomes
    def _questions(self) -> None:
        for name, tokens, reply in (
                ("fewer tokens than a block", 15, None), ("a block", 16, "00000010"),
                ("unaligned tokens", 37, "00000020"), ("all tokens are there", 32, "00000020"),
                ("no hit", 48, "00000000"),
                ("a bad reply", 37, "0000001000"), ("a reply with a tail", 37, "000000200000000000000020")):
            if reply and len(reply) != 8 and not self.wire.tails:
                continue  # one huge number, that is refused as a load or not, depending on the release
            self._question(name, tokens, reply)

    def _question(self, name: str, tokens: int, reply: str | None) -> None:
        instance = engine.Engine(self.vllm, GIVEN)
        instance.add_worker(0)  # which knows the block sizes
        hashes = [bytes([number + 1] * 32).hex() for number in range(tokens // 16)]
        request = instance.request("r", tokens, hashes)

        def make():
            self.vllm.scheduler.LookupKeyClient = self.vllm.real.LookupKeyClient
            instance.add_scheduler(with_pool=False)
            return instance.scheduler.client

        end = Client(self, make)
        call = Call(instance.scheduler.get_num_new_matched_tokens, request, 0)
        frames = end.serve(call, [] if reply is None else [reply])
        if call.error:
            raise call.error
        self._note("question", name, {"tokens": tokens, "hashes": hashes, "reply": reply},
                   {"frames": frames[0] if frames else None, "matched": call.outcome[0], "load_async": call.outcome[1]})
        end.end()

    # -- the server, with a lookup that answers what the case says
    def _serve(self, name: str, frames: list[str], answer: dict | None = None) -> None:
        answer = answer or {"hit": 16}
        asked: list[dict] = []

        def lookup(tokens, hashes):
            asked.append({"tokens": number(tokens), "hashes": told(hashes)})
            if answer.get("raises") and len(asked) == 1:
                raise ValueError("the lookup raises")
            if not self.wire.tails:
                return answer["hit"]
            data = self.vllm.data
            return data.MooncakeLookupResult(answer["hit"], tuple(
                data.TailKeyBoundary(group_id=group, num_tokens=boundary)
                for group, boundary in answer.get("boundaries", ())))

        end = Server(self, SimpleNamespace(lookup=lookup))
        reply = end.ask(frames)
        first = asked[0] if asked else None
        self._note("serve", name, {"frames": frames, "lookup": answer},
                   {"asked": first, "reply": reply, **end.goes_on(self._usual())})
        end.end(self._usual())

    def _usual(self) -> list[str]:
        return self.wire.lookup(16, H16[:1])

    def _served(self) -> None:
        for name, tokens, hashes, answer in (
                ("a hit", 37, H32[:2], {"hit": 32}), ("no hit", 37, H32[:2], {"hit": 0}),
                ("no hashes", 16, [], {"hit": 0}), ("the largest hit", 2 ** 32 - 1, H16[:1], {"hit": 2 ** 32 - 1}),
                ("a hit that does not fit", 16, H16[:1], {"hit": 2 ** 32}),
                ("a negative hit", 16, H16[:1], {"hit": -1}), ("a lookup that raises", 16, H16[:1], {"raises": True})):
            self._serve(name, self.wire.lookup(tokens, hashes), answer)
        if self.wire.tails:
            for name, answer in (("one tail", {"hit": 16, "boundaries": [[0, 16]]}),
                                 ("two tails, one group without", {"hit": 32, "boundaries": [[0, 32], [2, 8]]}),
                                 ("a boundary that does not fit", {"hit": 16, "boundaries": [[0, 2 ** 32]]})):
                self._serve(name, self._usual(), answer)
        rest = self._usual()[1 + self.wire.tagged:]
        for width in range(10):
            self._serve(f"tokens in {width} bytes", self.wire.after_tag("0" * (2 * width - 2) + "25" if width else "",
                                                                        *rest))
        for tokens in ("0100000000", "7fffffffffffffff", "8000000000000000", "0100000000000000000000"):
            self._serve(f"tokens {tokens}", self.wire.after_tag(tokens, *rest))
        for count in range(len(self._usual())):
            if count > 0:
                self._serve(f"{count} frames", self._usual()[:count])
        self._serve("no frames but an empty one", [""])
        self._serve("an empty frame more", [*self._usual(), ""])
        self._serve("three frames more", [*self._usual(), "00", "c1", "ff"])
        self._served_binary() if self.wire.binary else self._served_lists()
        if self.wire.tagged:
            for tag in ("lookups", "LOOKUP", "resets", "end", "\0"):
                self._serve(f"tag {tag!r}", [tag.encode().hex(), *self._usual()[1:]])

    def _served_binary(self) -> None:
        blob = "".join(H32)
        for length in ("", "00", "0000", "20", "0020", "000020", "0000000000000020", "0001", "001f", "0021", "0060",
                       "0061", "ffff", "010000", "7fffffffffffffff", "ffffffffffffffffff"):
            self._serve(f"hash length {length}", self.wire.after_tag("00000030", length, blob))
        self._serve("a part of a hash at the end", self.wire.after_tag("00000030", "0020", blob + "abcd"))
        self._serve("a part of a hash only", self.wire.after_tag("00000030", "0020", "abcd"))
        self._serve("a length without hashes", self.wire.after_tag("00000030", "0020", ""))

    def _served_lists(self) -> None:
        one, two = packed_text(H16[0].encode()), packed_text(H16[1].encode())
        for name, packed in (
                ("an empty array", "90"), ("array of 16 bits", "dc0001" + one),
                ("array of 32 bits", "dd00000002" + one + two),
                ("string of 16 bits", "91da0020" + one[4:]), ("string of 32 bits", "91db00000020" + one[4:]),
                ("upper case", packed_array([packed_text(H16[0].upper().encode())])),
                ("hashes of two lengths", packed_array([one, packed_text(H32[0].encode())])),
                ("an empty string", packed_array([packed_text(b"")])),
                ("blanks", packed_array([packed_text(b"fe 8b")])),
                ("no hex", packed_array([packed_text(b"xy")])), ("an odd digit", packed_array([packed_text(b"abc")])),
                ("an integer in it", "9105"), ("nil in it", "91c0"),
                ("an array in it", "9190"), ("bad UTF-8 in it", "91a2ff31"), ("a string", packed_text(b"fe")),
                ("a map of hashes", "81" + one + "01"), ("nil", "c0"), ("an integer", "05"), ("true", "c3"),
                ("an unused byte", "c1"), ("an empty frame", ""), ("an array that ends early", "92" + one),
                ("a head that ends early", "dc00"), ("a string that ends early", "91a4fe"),
                ("bytes after it", "91" + one + "00"), ("an array of 4 billion", "ddffffffff" + one)):
            self._serve(f"list: {name}", self.wire.after_tag("00000010", packed))

    def _resets(self) -> None:
        """Only releases that have it. Which calls are made, in order."""
        if not hasattr(self.vllm.real.LookupKeyClient, "reset"):
            return
        reset = b"reset".hex()
        for name, frames, fails in (("reset", [reset], None), ("reset with further frames", [reset, "00", "01"], None),
                                    ("reset, remove_all raises", [reset], "remove_all"),
                                    ("reset, the wait raises", [reset], "join")):
            calls: list[str] = []

            def call(name, calls=calls, fails=fails):
                calls.append(name)
                if name == fails:
                    raise RuntimeError(name)

            worker = SimpleNamespace(
                lookup=None, kv_send_thread=SimpleNamespace(request_queue=SimpleNamespace(join=lambda: call("join"))),
                store=SimpleNamespace(remove_all=lambda force=False: call("remove_all" if force is True else "other")))
            end = Server(self, worker)
            reply = end.ask(frames)
            self._note("reset", name, {"frames": frames, "raises": fails},
                       {"calls": list(calls), "reply": reply, **end.goes_on([reset])})
            end.end([b"end".hex()])

    def _workers(self) -> None:
        """The server with the release's own worker: one group of full attention, blocks of 16 tokens, one rank."""
        for name, tokens, exist in (
                ("both are there", 37, [1, 1]), ("the first is there", 37, [1, 0]), ("the second is there", 37, [0, 1]),
                ("none is there", 37, [0, 0]), ("other answers than 0 and 1", 37, [1, -5]),
                ("all tokens are there", 32, [1, 1]), ("less than a block", 15, None),
                ("the call raises", 37, "raises"), ("too few answers", 37, [1])):
            aligned = tokens if self._workers_align() else tokens // 16 * 16
            self._worker(name, self.wire.lookup(aligned, H32[:tokens // 16]), exist)
        if not self.wire.binary:
            for name, packed in (("no hex", packed_array([packed_text(b"xy")])), ("an integer", "9105"), ("nil", "c0")):
                self._worker(f"list: {name}", self.wire.after_tag("00000010", packed), [0])

    def _worker(self, name: str, frames: list[str], exist: list[int] | str | None) -> None:
        worker = engine.Engine(self.vllm, GIVEN).add_worker(0)
        keys: list[int] = []

        def batch_is_exist(asked):
            keys.append(len(asked))
            if exist == "raises":
                raise RuntimeError("store unreachable")
            return list(exist or ())

        worker.store.batch_is_exist = batch_is_exist
        end = Server(self, worker)
        reply = end.ask(frames)
        first = keys[0] if keys else None
        no_hashes = self.wire.lookup(0, [])
        self._note("worker", name, {"frames": frames, "exist": exist},
                   {"keys": first, "reply": reply, **end.goes_on(no_hashes)})
        end.end(no_hashes)

    def _workers_align(self) -> bool:
        """Whether the worker, and not the scheduler side, aligns the tokens (0.27 on)."""
        coordinator = getattr(engine.Engine(self.vllm, GIVEN).add_worker(0), "coord", None)
        return hasattr(coordinator, "align_lookup_length")


def record_release(sources: str, version: str) -> list[dict]:
    """The cases of one release, recorded in a process of its own."""
    command = [sys.executable, os.path.abspath(__file__), "--sources", sources, "--release", version]
    done = subprocess.run(command, stdout=subprocess.PIPE, timeout=RELEASE_WAIT_SECONDS, check=False)
    if done.returncode != 0:
        raise Stuck(f"{version}: no answer, status {done.returncode}")
    return json.loads(done.stdout)


def run_release(sources: str, version: str) -> int:
    output = os.dup(1)
    os.dup2(2, 1)  # what a release prints is no answer
    with tempfile.TemporaryDirectory(prefix="rpc") as folder:
        cases = ReleaseRun(os.path.join(sources, version), profile_of(version), folder).run()
    with os.fdopen(output, "w") as file:
        json.dump(cases, file)
    return 0


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--sources", required=True, metavar="DIR", help="folder with one folder per release")
    parser.add_argument("--out", metavar="FILE", help="the record: .json or .json.zst")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something would change")
    parser.add_argument("--release", help=argparse.SUPPRESS)  # what this program runs for each release
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="releases; default: all in --sources")
    options = parser.parse_args()
    there = releases_in(options.sources) if os.path.isdir(options.sources) else []
    missing = [version for version in options.versions if version not in there]
    if missing or not there:
        parser.error(f"{options.sources} has no release {' '.join(missing) or 'at all'}; fetch.sh fetches it")
    if not options.release and not options.out:
        parser.error("--out is missing")
    return options


def main() -> int:
    options = parse_arguments()
    if options.release:
        return run_release(options.sources, options.release)
    recorded = ""
    head, old = {"schema": SCHEMA, "source": []}, []
    if os.path.exists(options.out):
        recorded = vectors.read_text(options.out)
        old = json.loads(recorded)["cases"] if options.versions else []
        head = {name: value for name, value in json.loads(recorded).items() if name != "cases"}
    versions = options.versions or releases_in(options.sources)
    cases = {case["profile"]: [] for case in old}
    for case in old:
        cases[case["profile"]].append(case)
    for version in versions:
        cases[profile_of(version)] = record_release(options.sources, version)
        print(f"{version}: {len(cases[profile_of(version)])} cases")
    known = {each["version"] for each in head["source"]} if options.versions else set()
    head["source"] = [{"package": "vllm", "version": version}
                      for version in sorted(known | set(versions), key=version_order)]
    ordered = [case for version in head["source"] for case in cases[profile_of(version["version"])]]
    file = vectors.VectorFile(options.out, head, ordered)
    equal = file.text() == recorded
    print("nothing differs" if equal else "something differs")
    if not equal and not options.check:
        file.write()
        print(f"written: {options.out}")
    return 1 if options.check and not equal else 0


if __name__ == "__main__":
    try:
        status = main()
    except (Stuck, OSError, ValueError, subprocess.TimeoutExpired) as reason:
        print(f"record_rpc: {reason}", file=sys.stderr)
        status = 2
    sys.stdout.flush()
    os._exit(status)  # no thread of a release is waited for
