# SPDX-License-Identifier: Apache-2.0
"""The process of one release: answers cases, one JSON object a line. adapter.py starts it; it never runs by itself.

    usage: release_process.py SOURCE        SOURCE holds vllm/
"""
import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
from types import SimpleNamespace

from engine import prepare
from release import BadCase, NotHere, Release, Stuck, error_answer

PR_SET_PDEATHSIG = 1
REPLACE = "replace"  # last member of an answer after which this process is no longer to be used
EXACT_INTEGER_MAX = 1 << 53
CASE_SECONDS_MAX = 20  # a case takes milliseconds; where threads of the release run, each wait has a bound of its own
SUITES = ("hash", "keys", "layout", "segments", "config", "lookup", "save", "load", "lookup-async",
          "save-lcm")


@contextlib.contextmanager
def time_limit():
    """Interrupts a case that lasts too long, even where the release waits without a bound."""
    def interrupt(*signal_and_frame):
        raise Stuck(f"the release did not end within {CASE_SECONDS_MAX} s")

    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, CASE_SECONDS_MAX)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


class Answerer:
    """Answers cases from one release. A suite's modules are imported when its first case comes."""

    def __init__(self, source: str):
        self._release = Release(source)
        self._suites: dict[str, object] = {}
        self._vllm: SimpleNamespace | None = None
        self._parts: SimpleNamespace | None = None

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
        except Stuck as reason:
            return {"error": str(reason), REPLACE: True}

    def _result(self, suite, given: dict) -> dict:
        try:
            with time_limit():
                return suite.answer(given)
        except Exception as error:
            if self._release.raised(error):
                return error_answer(error)
            raise

    def _suite(self, name: str):
        if name not in self._suites:
            self._suites[name] = self._load(name)
            gc.collect()
            gc.freeze()  # the release's modules stay; looking at them again and again takes most of a case's time
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
        if name in ("layout", "segments", "lookup", "save", "load"):
            return self._load_on_engine(name)
        if name in ("lookup-async", "save-lcm"):
            return self._load_on_core(name)
        raise NotHere(f"suite {name!r}: not answered here")

    def _load_on_engine(self, name: str):
        """A suite that asks an instance whose transfers are called directly."""
        self._vllm = self._vllm or prepare(self._release)
        if name == "layout":
            from suite_layout import LayoutSuite
            return LayoutSuite(self._vllm)
        if name == "segments":
            from suite_segments import SegmentsSuite
            return SegmentsSuite(self._release, self._vllm)
        if name == "lookup":
            from suite_lookup import LookupSuite
            return LookupSuite(self._vllm)
        if name == "save":
            from suite_save import SaveSuite
            return SaveSuite(self._vllm)
        from suite_load import LoadSuite
        return LoadSuite(self._vllm)

    def _load_on_core(self, name: str):
        """A suite that asks an instance which the core scheduler drives, with threads of its own."""
        from core_engine import prepare_core
        self._vllm = self._vllm or prepare(self._release)
        self._parts = self._parts or prepare_core(self._release, self._vllm)
        if name == "lookup-async":
            from suite_lookup_async import LookupAsyncSuite
            return LookupAsyncSuite(self._release, self._vllm, self._parts)
        from suite_save_lcm import SaveLcmSuite
        return SaveLcmSuite(self._release, self._vllm, self._parts)


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
        if REPLACE in answer:
            os._exit(1)  # its threads may still run, and would keep the process


if __name__ == "__main__":
    main()
