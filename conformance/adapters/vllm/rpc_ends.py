# SPDX-License-Identifier: Apache-2.0
"""Ends of a lookup channel: a release's client with a server of ours, a release's server with a client of ours."""
import inspect
import os
import threading
import time
from types import SimpleNamespace
from typing import Any, Callable

import zmq

from release import Stuck

WAIT_SECONDS = 2.0  # for anything that a release should do at once
DEAD_WAIT_SECONDS = 0.1  # for an answer of a server whose thread has ended
NO_HIT = "00000000"


class Call(threading.Thread):
    """A call of the release that waits for a reply: runs beside us."""

    def __init__(self, function: Callable, *arguments):
        super().__init__(daemon=True)
        self._function, self._arguments = function, arguments
        self.outcome: Any = None
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self.outcome = self._function(*self._arguments)
        except Exception as error:  # the release's, and part of the answer
            self.error = error

    def end(self) -> None:
        self.join(WAIT_SECONDS)
        if self.is_alive():
            raise Stuck(f"a call does not end within {WAIT_SECONDS:g} s")


def until(condition: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > end:
            raise Stuck(f"{what}: not within {WAIT_SECONDS:g} s")
        time.sleep(0.001)


class Wire:
    """How a release writes a request. Asked of the release, not of its number."""

    def __init__(self, vllm: SimpleNamespace):
        self.tagged = hasattr(vllm.worker, "LOOKUP_MSG")  # 0.23 on
        self.binary = hasattr(vllm.data, "BlobBlockHashes")  # 0.24 on
        self.tails = hasattr(vllm.data, "MooncakeLookupResult")  # 0.29 on
        self.asynchronous = "non_block" in inspect.signature(vllm.real.LookupKeyClient.lookup).parameters  # 0.24 on

    def after_tag(self, *frames: str) -> list[str]:
        return ([b"lookup".hex()] if self.tagged else []) + list(frames)

    def lookup(self, tokens: int, hashes: list[str]) -> list[str]:
        """A request as the release's client sends it (the cases `request` show that it does)."""
        if self.binary:
            length = len(hashes[0]) // 2 if hashes else 0
            return self.after_tag(f"{tokens:08x}", f"{length:04x}", "".join(hashes))
        return self.after_tag(f"{tokens:08x}", packed_array([packed_text(each.encode()) for each in hashes]))


def packed_text(text: bytes) -> str:
    head = f"{0xa0 + len(text):02x}" if len(text) < 32 else f"d9{len(text):02x}"
    return head + text.hex()


def packed_array(items: list[str]) -> str:
    return f"{0x90 + len(items):02x}" + "".join(items)


class Channel:
    """A folder for the sockets of one case; the release's client or server, or both ends of ours, are in it."""

    def __init__(self, run):
        self.folder = os.path.join(run.folder, str(next(run.channels)))
        os.mkdir(self.folder)
        os.environ["VLLM_RPC_BASE_PATH"] = self.folder
        self.path = run.vllm.worker.get_zmq_rpc_path_lookup(run.config)


class Client(Channel):
    """The release's client and a server of ours."""

    def __init__(self, run, make: Callable):
        super().__init__(run)
        self._wire = run.wire
        self._socket = run.sockets.socket(zmq.REP)
        self._socket.bind(self.path)
        self._owes = False  # a request was taken and not answered
        self.client = make()
        self.sent: list[Any] = []  # futures in the order of their submission
        if run.wire.asynchronous:
            submit = self.client.executor.submit
            self.client.executor.submit = lambda *arguments: self._submitted(submit(*arguments))

    def _submitted(self, future):
        self.sent.append(future)
        return future

    def ask(self, name: str, tokens: int, hashes: list[str], non_block: bool = False):
        keys = [bytes.fromhex(each) for each in hashes]
        if self._wire.asynchronous:
            return self.client.lookup(name, tokens, keys, non_block)
        return self.client.lookup(tokens, keys)

    def take(self) -> list[str]:
        """The next request."""
        if not self._socket.poll(WAIT_SECONDS * 1000):
            raise Stuck(f"no request within {WAIT_SECONDS:g} s")
        self._owes = True
        return [frame.hex() for frame in self._socket.recv_multipart()]

    def reply(self, payload: str) -> None:
        out = [future for future in self.sent if not future.done()][:1]
        self._socket.send(bytes.fromhex(payload))
        self._owes = False
        for future in out:
            until(future.done, "a reply is read")

    def serve(self, call: Call, replies: list[str]) -> list[list[str]]:
        """Answers requests until the call ends; what was asked."""
        asked, left = [], list(replies)
        end = time.monotonic() + WAIT_SECONDS
        while call.is_alive() or self._socket.poll(0):
            if time.monotonic() > end:
                raise Stuck(f"a call does not end within {WAIT_SECONDS:g} s")
            if self._socket.poll(1):
                asked.append(self.take())
                self._socket.send(bytes.fromhex(left.pop(0)))
                self._owes = False
        if left:
            raise Stuck(f"{len(left)} replies were not asked for")
        return asked

    def end(self) -> None:
        """Answers what is still asked, so that the client's thread ends."""
        while not all(future.done() for future in self.sent):
            if not self._owes:
                self.take()
            self.reply(NO_HIT)
        if self._wire.asynchronous:
            self.client.executor.shutdown(wait=True)
        self.client.socket.close(linger=0)
        self._socket.close(linger=0)


class Server(Channel):
    """The release's server and a client of ours."""

    def __init__(self, run, worker):
        super().__init__(run)
        self._run = run
        self._server = run.vllm.real.LookupKeyServer(worker, run.config)
        self._ended_by: BaseException | None = None

    def ask(self, frames: list[str]) -> str | None:
        """The reply, or None: the server's thread has ended, or nothing came in time."""
        with self._run.sockets.socket(zmq.REQ) as socket:
            socket.linger = 0
            socket.connect(self.path)
            socket.send_multipart([bytes.fromhex(frame) for frame in frames])
            end = time.monotonic() + WAIT_SECONDS
            while time.monotonic() < end and self._server.thread.is_alive():
                if socket.poll(5):
                    return socket.recv().hex()
            return socket.recv().hex() if socket.poll(DEAD_WAIT_SECONDS * 1000) else None

    def goes_on(self, next_frames: list[str]) -> dict:
        """Whether the next request is answered; what ended the server."""
        answer = {"goes_on": self.ask(next_frames) is not None}
        if not self._server.thread.is_alive():
            answer["ended_by"] = self._run.thread_errors[self._server.thread]
        return answer

    def end(self, frames: list[str]) -> None:
        """The server looks whether to go on after each message."""
        self._server.running = False
        if self._server.thread.is_alive():
            self.ask(frames)
            self._server.thread.join(WAIT_SECONDS)
        if self._server.thread.is_alive():
            raise Stuck("the server does not end")
        self._server.close()
