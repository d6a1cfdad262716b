# SPDX-License-Identifier: Apache-2.0
"""The process of one release: answers cases, one JSON object a line. adapter.py starts it; it never runs by itself.

    usage: release_process.py SOURCE        SOURCE holds vllm/
"""
import ctypes
import json
import os
import signal
import sys

from engine import prepare
from release import BadCase, NotHere, Release, error_answer

PR_SET_PDEATHSIG = 1
EXACT_INTEGER_MAX = 1 << 53
SUITES = ("hash", "keys", "layout", "segments", "config")


class Answerer:
    """Answers cases from one release. A suite's modules are imported when its first case comes."""

    def __init__(self, source: str):
        self._release = Release(source)
        self._suites: dict[str, object] = {}
        self._vllm = None

    def answer(self, case: dict) -> dict:
        """The answer's member besides `seq`: result, skip or error."""
        try:
            suite, given = self._suite(case["suite"]), case["given"]
            return {"result": exact(self._result(suite, given))}
        except NotHere as reason:
            return {"skip": str(reason)}
        except BadCase as reason:
            return {"error": str(reason)}
        except KeyError as missing:
            return {"error": f"given: {missing} is missing"}
        except Exception as fault:
            return {"error": f"adapter: {type(fault).__name__}: {fault}"}

    def _result(self, suite, given: dict) -> dict:
        try:
            return suite.answer(given)
        except Exception as error:
            if self._release.raised(error):
                return error_answer(error)
            raise

    def _suite(self, name: str):
        if name not in self._suites:
            self._suites[name] = self._load(name)
        return self._suites[name]

    def _load(self, name: str):
        if name == "hash":
            from suite_hash import HashSuite
            return HashSuite(self._release)
        if name == "keys":
            from suite_keys import KeysSuite
            return KeysSuite(self._release)
        if name == "config":
            from suite_config import ConfigSuite
            return ConfigSuite(self._release)
        if name in ("layout", "segments"):
            self._vllm = self._vllm or prepare(self._release)
        if name == "layout":
            from suite_layout import LayoutSuite
            return LayoutSuite(self._vllm)
        if name == "segments":
            from suite_segments import SegmentsSuite
            return SegmentsSuite(self._release, self._vllm)
        raise NotHere(f"suite {name!r}: not answered here")


def exact(value):
    """Integers beyond 2^53 are decimal strings in an answer."""
    if type(value) is int:
        return str(value) if abs(value) > EXACT_INTEGER_MAX else value
    if isinstance(value, list):
        return [exact(element) for element in value]
    if isinstance(value, dict):
        return {name: exact(member) for name, member in value.items()}
    return value


def main() -> None:
    # A case may keep the release busy for ever; then only the death of adapter.py ends this process.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # What the release prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    answerer = Answerer(sys.argv[1])
    for line in sys.stdin.buffer:
        case = json.loads(line)
        answer = {"seq": case["seq"], **answerer.answer(case)}
        print(json.dumps(answer, separators=(",", ":")), file=answers, flush=True)


if __name__ == "__main__":
    main()
