# SPDX-License-Identifier: Apache-2.0
"""Real vLLM releases behind the adapter protocol: newline-delimited JSON on standard input and output.

    usage: adapter.py --sources DIR [--release VERSION]...

DIR holds one folder per release, DIR/VERSION/vllm (fetch.sh makes it). Without --release all of them are offered. A
process can import only one release, so each answers from a process of its own, started at its first case.
"""
import argparse
import json
import os
import subprocess
import sys

from release import HERE, profile_of
from release_process import REPLACE, SUITES

PROTOCOL = 1
LAST_ANSWER = f',"{REPLACE}":true}}\n'.encode()  # end of the line after which a release's process ends itself
HOMEPAGE = "https://github.com/vllm-project/vllm"


class ReleaseProcess:
    """The process of one release; started when first asked, and again after it died."""

    folder: str | None = None  # for temporary files, named by the harness, which removes it

    def __init__(self, source: str):
        self._source = source
        self._process: subprocess.Popen | None = None

    def ask(self, line: bytes) -> bytes | None:
        """The answer to one case, as a line; None if the process died."""
        process = self._process = self._process or self._start()
        try:
            process.stdin.write(line)
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if answer.endswith(LAST_ANSWER):
            self.reap()
            answer = answer.removesuffix(LAST_ANSWER) + b"}\n"
        return answer or None

    def end_input(self) -> None:
        """Tells the process that no case follows."""
        try:
            if self._process:
                self._process.stdin.close()
        except BrokenPipeError:
            pass

    def reap(self) -> int:
        """Waits for the end of the process; returns its exit status, negative for a signal."""
        self.end_input()
        process, self._process = self._process, None
        return process.wait() if process else 0

    def _start(self) -> subprocess.Popen:
        environment = {**os.environ, "PYTHONUTF8": "1"}
        if self.folder:
            environment["TMPDIR"] = self.folder
        program = os.path.join(HERE, "release_process.py")
        return subprocess.Popen([sys.executable, "-W", "ignore", program, self._source], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, env=environment)


class Adapter:
    """Reads the harness's messages and has the releases answer them."""

    def __init__(self, sources: str, releases: list[str]):
        self._versions = releases
        self._processes = {profile_of(version): ReleaseProcess(os.path.join(sources, version)) for version in releases}

    def serve(self, messages, answers) -> None:
        """Answers until `stop` or the end of input."""
        number, going_on = 0, True
        while going_on and (line := messages.readline()):
            number += 1
            answer, going_on = self._answer(line, number)
            answers.write(answer)
            answers.flush()
        for process in self._processes.values():
            process.end_input()
        for process in self._processes.values():
            process.reap()

    def _answer(self, line: bytes, number: int) -> tuple[bytes, bool]:
        """The answer as a line, and whether another message may follow."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError) as fault:
            return as_line({"error": f"line {number} is not JSON: {fault}"}), True
        if not isinstance(message, dict):
            return as_line({"error": f"line {number} is not a JSON object"}), True
        what = message.get("do")
        if what == "start":
            return as_line(self._hello(message)), True
        if what == "stop":
            return as_line({"ok": {}}), False
        seq = {"seq": message["seq"]} if "seq" in message else {}
        if what == "case":
            return self._case(message, seq), True
        return as_line({**seq, "error": f"do: {what!r} is not offered"}), True

    def _hello(self, message: dict) -> dict:
        if message.get("protocol") != PROTOCOL:
            return {"error": f"protocol: {message.get('protocol')!r} is not spoken here, {PROTOCOL} is"}
        if not os.path.isdir(message.get("folder") or ""):
            return {"error": f"folder: {message.get('folder')!r} is no folder"}
        ReleaseProcess.folder = message["folder"]
        return {"ok": {"name": "vLLM", "version": ", ".join(self._versions), "homepage": HOMEPAGE,
                       "profiles": list(self._processes), "suites": list(SUITES), "store": False}}

    def _case(self, message: dict, seq: dict) -> bytes:
        for member, kind in (("seq", int), ("suite", str), ("profile", str), ("given", dict)):
            if not isinstance(message.get(member), kind):
                return as_line({**seq, "error": f"{member}: missing or of the wrong type"})
        if message["suite"] not in SUITES:
            return as_line({**seq, "skip": f"suite: {message['suite']!r} is not answered here"})
        process = self._processes.get(message["profile"])
        if process is None:
            return as_line({**seq, "skip": f"profile: {message['profile']!r} is not here, "
                                           f"{', '.join(self._processes)} are"})
        answer = process.ask(as_line(message))
        if answer is None:
            return as_line({**seq, "error": f"the process of {message['profile']} ended with status {process.reap()}"})
        return answer


def as_line(message: dict) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode("ascii") + b"\n"


def releases_in(sources: str) -> list[str]:
    """Versions of the releases in a folder, oldest first."""
    found = [name for name in os.listdir(sources) if os.path.isfile(os.path.join(sources, name, "vllm", "__init__.py"))]
    return sorted((name for name in found if not name.endswith(".part")), key=version_order)


def version_order(version: str) -> list[int]:
    return [int(part) if part.isdigit() else 0 for part in version.split(".")]


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--sources", required=True, metavar="DIR", help="folder with one folder per release")
    parser.add_argument("--release", action="append", metavar="VERSION", help="a release to offer; repeatable")
    options = parser.parse_args(arguments)
    if not os.path.isdir(options.sources):
        parser.error(f"--sources: {options.sources} is no folder")
    here = releases_in(options.sources)
    options.release = options.release or here
    missing = [version for version in options.release if version not in here]
    if missing or not options.release:
        parser.error(f"{options.sources} has no release {' '.join(missing) or 'at all'}; fetch.sh fetches it")
    if len({profile_of(version) for version in options.release}) != len(options.release):
        parser.error("two releases have the same profile; name the wanted ones with --release")
    return options


def main() -> None:
    options = parse_arguments(sys.argv[1:])
    try:
        Adapter(options.sources, options.release).serve(sys.stdin.buffer, sys.stdout.buffer)
    except (BrokenPipeError, KeyboardInterrupt):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the harness is gone: nobody reads what is left
        sys.exit(1)


if __name__ == "__main__":
    main()
