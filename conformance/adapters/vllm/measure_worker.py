# SPDX-License-Identifier: Apache-2.0
"""Asks the workers of real releases what no vector shows: counters, closing, events of puts that fail or raise.

    usage: measure_worker.py --sources DIR [VERSION]...      default: every release in DIR

Prints one line a release and question, and compares it with what SPEC.md says of that release line (METRIC-002,
METRIC-004, EVENT-001, EVENT-002).
Exit: 0 all as expected, 1 something differs, 2 usage or a release that does not answer.
"""
import argparse
import os
import subprocess
import sys
from types import SimpleNamespace

import engine
from adapter import releases_in, version_order
from release import Release
from steps import Rank, Step, scheduler_output

RELEASE_WAIT_SECONDS = 60.0
CLOSE_MS, LOOK_MS = 5000, 50
GIVEN = {"topology": {"tp": 1}, "groups": [{"kind": "full", "block_size": 16, "num_kv_heads": 8}], "model": "m",
         "total_kv_heads": 8}
HASHES = [bytes([number] * 32).hex() for number in (1, 2)]
LABELS = ["engine", "operation", "status"]
NAMES = [f"vllm:mooncake_store_operation_{name}" for name in ("time_seconds", "total", "keys_total", "bytes_total",
                                                              "failed_keys_total")]
BOUNDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0]


class Metric:
    """A metric class of Prometheus that keeps how it was made."""

    def __init__(self, kind: str, made: list):
        self._kind, self._made = kind, made

    def __call__(self, name, documentation="", labelnames=(), buckets=None):
        self._made.append((self._kind, name, list(labelnames), buckets))
        return SimpleNamespace(labels=lambda *values: None)


def metrics(release: Release) -> list | None:
    """Every counter that is registered; None: the release has none."""
    try:
        module = release.store_module("metrics")
    except ModuleNotFoundError:
        return None
    types = release.module(module.KVConnectorPromMetrics.__module__)
    made: list = []
    config = SimpleNamespace(kv_transfer_config=None)
    module.MooncakeStorePromMetrics(config, {getattr(types, kind): Metric(kind, made)
                                             for kind in ("Gauge", "Counter", "Histogram")}, ["engine"], {0: ["0"]})
    return made


def close(vllm: SimpleNamespace, unfinished: list[list[int]], raises: bool = False) -> dict | None:
    """Closes a worker twice. unfinished: per thread the jobs it shows each time that it is asked; the last stays."""
    cls = vllm.worker.MooncakeStoreWorker
    if not hasattr(cls, "close"):
        return None
    looks: list[int] = []  # how long was slept each time, in ms
    log: list[tuple] = []
    closed: list[bool] = []

    class Queue:
        def __init__(self, counts):
            self._counts = list(counts)

        @property
        def unfinished_tasks(self):
            return self._counts.pop(0) if len(self._counts) > 1 else self._counts[0]

    def store_close():
        closed.append(True)
        if raises:
            raise RuntimeError("close")

    threads = [SimpleNamespace(name=f"t{number}", request_queue=Queue(counts))
               for number, counts in enumerate(unfinished)]
    worker = object.__new__(cls)
    worker.store = SimpleNamespace(close=store_close)
    worker.kv_send_thread, worker.kv_recv_threads = threads[0], threads[1:]
    kept = vllm.worker.time, vllm.worker.logger
    vllm.worker.time = SimpleNamespace(monotonic=lambda: sum(looks) / 1000,
                                       sleep=lambda seconds: looks.append(round(seconds * 1000)))
    vllm.worker.logger = SimpleNamespace(warning=lambda text, *arguments: log.append(arguments))
    try:
        worker.close()
        worker.close()
    finally:
        vllm.worker.time, vllm.worker.logger = kept
    return {"looks_ms": looks, "closed": len(closed), "warned": [list(map(str, arguments)) for arguments in log]}


def events(vllm: SimpleNamespace, results: list[int] | None) -> int:
    """Events of one step that puts two blocks. results: of the put; None: it raises."""
    class WithEvents(engine.Engine):
        def vllm_config(self, rank):
            config = super().vllm_config(rank)
            config.kv_events_config = SimpleNamespace(enable_kv_cache_events=True)
            return config

    its = WithEvents(vllm, GIVEN)
    worker = its.add_worker(0)
    its.register_caches(0)
    its.add_scheduler()
    request = its.request("r", 32, HASHES)
    blocks = [[4, 5]]
    its.scheduler.update_state_after_alloc(request, its.blocks(blocks), 0)

    def put(keys, addresses, sizes, *more):
        if results is None:
            raise RuntimeError("store unreachable")
        return list(results)

    worker.store.batch_put_from_multi_buffers = put
    step = Step(scheduled={"r": 32}, tables={"r": blocks}, new=[(request, 0, blocks, None)])
    Rank(its, 0).step(its.scheduler.build_connector_meta(scheduler_output(its, step)))
    return len(worker.get_kv_events())


def questions(release: Release, vllm: SimpleNamespace, minor: int):
    """Name, outcome, and what SPEC.md says of the releases 0.`minor`."""
    yield "metrics", metrics(release), None if minor < 22 else [
        ("Histogram" if number == 0 else "Counter", name, LABELS, BOUNDS if number == 0 else None)
        for number, name in enumerate(NAMES)]
    for name, unfinished, looks, warned in (
            ("nothing to wait for", [[0]], 0, []),
            ("two queues never end", [[3], [2], [0]], CLOSE_MS // LOOK_MS, [["t0", "3"], ["t1", "2"]]),
            ("a queue ends after two looks", [[1, 1, 0]], 2, [])):
        patient = minor >= 30
        yield f"close, {name}", close(vllm, unfinished), None if minor < 24 else {
            "looks_ms": [LOOK_MS] * looks if patient else [], "closed": 1, "warned": warned if patient else []}
    yield "close, the store raises", close(vllm, [[0]], raises=True), None if minor < 24 else {
        "looks_ms": [], "closed": 1, "warned": [["close"]]}
    told_before_the_answer = minor < 29
    yield "events of a put", events(vllm, [0, 0]), 2
    yield "events of a put of which one key fails", events(vllm, [0, -1]), 2 if told_before_the_answer else 1
    yield "events of a put that raises", events(vllm, None), 2 if told_before_the_answer else 0


def run_release(sources: str, version: str) -> int:
    release = Release(os.path.join(sources, version))
    differing = 0
    for name, seen, expected in questions(release, engine.prepare(release), version_order(version)[1]):
        same = seen == expected
        differing += not same
        print(f"{version} {name}: {'as expected' if same else f'{seen}, expected {expected}'}"
              f"{' (not there)' if seen is None else ''}")
    return 1 if differing else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--sources", required=True, metavar="DIR", help="folder with one folder per release")
    parser.add_argument("--release", help=argparse.SUPPRESS)  # what this program runs for each release
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="releases; default: all in --sources")
    options = parser.parse_args()
    if options.release:
        return run_release(options.sources, options.release)
    there = releases_in(options.sources) if os.path.isdir(options.sources) else []
    versions = options.versions or there
    if not versions or set(versions) - set(there):
        parser.error(f"{options.sources} has no such release; fetch.sh fetches it")
    worst = 0
    for version in sorted(versions, key=version_order):
        command = [sys.executable, os.path.abspath(__file__), "--sources", options.sources, "--release", version]
        worst = max(worst, subprocess.run(command, timeout=RELEASE_WAIT_SECONDS, check=False).returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
