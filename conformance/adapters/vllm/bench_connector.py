# SPDX-License-Identifier: Apache-2.0
"""The Python side of `mooncheck bench connector`: the release's own functions for the same questions, timed.

    usage: bench_connector.py --sources DIR --release VERSION

One JSON object a line on standard input: {"subject", "runs"}; one a line on standard output: {"ns"}, the median CPU time,
or {"skip"} for a subject that the release does not have. The store answers at once. What the engine does around the
connector (its own step output, requests, block tables) is made before the clock starts, as in the C side.
"""
import argparse
import json
import os
import statistics
import sys
import time

from engine import Engine, prepare
from release import Release
from steps import Rank, Step, scheduler_output

BLOCK, LAYERS, HEADS, CONTENT_BYTES = 16, 32, 8, 512
REQUESTS, PROMPT_TOKENS = 1000, 1024
LOOKUP_TOKENS, SHARDS = 131072, 8
JOB_TOKENS = 8192
SEGMENT_CHUNKS, SEGMENT_TP, SEGMENT_STORE_TP = 64, 2, 4
MODEL = "Llama-3.1-8B-Instruct"


def hashes(tokens: int) -> list[str]:
    return [f"{number * 2654435761:064x}" for number in range(1, tokens // BLOCK + 1)]


def given(tp: int, blocks: int, **more) -> dict:
    group = {"kind": "full", "block_size": BLOCK, "num_kv_heads": HEADS // tp, "head_size": 128, "num_layers": LAYERS}
    return {"topology": {"tp": tp}, "total_kv_heads": HEADS, "groups": [group], "model": MODEL, "kv_role": "kv_both",
            "kv_cache_layout": "LBHNC", "num_gpu_blocks": blocks, "extra_config": {}, **more}


class Clock:
    """CPU times of what is done in `with` blocks."""

    def __init__(self):
        self.times: list[int] = []

    def __enter__(self):
        self._before = time.process_time_ns()

    def __exit__(self, *exception):
        self.times.append(time.process_time_ns() - self._before)


def expect(what: str, seen: int, expected: int) -> None:
    """A time of something else than what was asked for is worth nothing."""
    if seen != expected:
        raise SystemExit(f"{what}: {seen}, not {expected}: the measurement is void")


class Bench:
    """One release's connector, in the situations that are measured."""

    def __init__(self, vllm):
        self._vllm = vllm
        self._steps: dict[str, list[int]] | None = None

    def measure(self, subject: str, runs: int) -> list[int] | None:
        """Times of a subject; None if the release does not have it."""
        if subject.startswith("step."):
            self._steps = self._steps or self._measure_steps(runs)
            return self._steps[subject]
        return {"lookup": self._lookup, "lookup.text": self._lookup, "save": self._save, "load": self._load,
                "segments": self._segments}[subject](runs)

    def _measure_steps(self, runs: int) -> dict[str, list[int]]:
        """Decode steps of all requests in lock step, by what happens in them."""
        engine = Engine(self._vllm, given(1, LOOKUP_TOKENS // BLOCK, extra_config={"save_decode_cache": True}))
        engine.add_worker(0)
        scheduler = engine.add_scheduler()
        prompt_blocks = list(range(1, PROMPT_TOKENS // BLOCK + 1))
        all_hashes = hashes(PROMPT_TOKENS + (runs + 1) * BLOCK)
        requests = {f"r{number}": engine.request(f"r{number}", PROMPT_TOKENS, all_hashes) for number in range(REQUESTS)}
        tables = {name: [list(prompt_blocks)] for name in requests}
        for request in requests.values():
            scheduler.update_state_after_alloc(request, engine.blocks([prompt_blocks]), 0)
        step = Step(scheduled=dict.fromkeys(requests, PROMPT_TOKENS), tables=tables,
                    new=[(request, 0, tables[name], None) for name, request in requests.items()])
        times: dict[str, list[int]] = {"step.plain": [], "step.block": [], "step.save": []}
        self._plan(engine, step, REQUESTS)
        for number in range(runs * BLOCK):
            kind = {0: "step.block", BLOCK - 1: "step.save"}.get(number % BLOCK, "step.plain")
            computed = PROMPT_TOKENS + number
            new_blocks = [[computed // BLOCK + 1]] if kind == "step.block" else None
            for name, request in requests.items():
                request.num_computed_tokens = computed
                request.append_output_token_ids([7])
                if new_blocks:
                    tables[name][0].extend(new_blocks[0])
            step = Step(scheduled=dict.fromkeys(requests, 1), tables=tables,
                        cached=[(name, computed, new_blocks, False) for name in requests])
            times[kind].append(self._plan(engine, step, REQUESTS if kind == "step.save" else 0))
        return times

    @staticmethod
    def _plan(engine: Engine, step: Step, jobs: int) -> int:
        output, clock = scheduler_output(engine, step), Clock()
        with clock:
            metadata = engine.scheduler.build_connector_meta(output)
        expect("jobs of a step", sum(bool(request.can_save) for request in metadata.requests), jobs)
        for job in list(getattr(engine.scheduler, "_pinned_saves", None) or ()):
            engine.scheduler._pinned_saves.pop(job)  # as if every rank had reported it
        return clock.times[0]

    def _lookup(self, runs: int) -> list[int]:
        engine = Engine(self._vllm, given(SHARDS, 64, extra_config={"store_tp_size": SHARDS}))
        worker, clock = engine.add_worker(0), Clock()
        present, asked = [1] * (LOOKUP_TOKENS // BLOCK * SHARDS), []

        def batch_is_exist(keys):
            asked.append(len(keys))
            return present

        worker.store.batch_is_exist = batch_is_exist
        block_hashes = [self._vllm.utils.BlockHash(bytes.fromhex(each)) for each in hashes(LOOKUP_TOKENS)]
        for _ in range(runs):
            with clock:
                worker.lookup(LOOKUP_TOKENS, list(block_hashes))
            expect("keys of a lookup", asked.pop(), len(present))
        return clock.times

    def _job_engine(self) -> tuple:
        engine = Engine(self._vllm, given(1, JOB_TOKENS // BLOCK + 2))
        worker = engine.add_worker(0)
        engine.register_caches(0, BLOCK * HEADS * CONTENT_BYTES)
        engine.add_scheduler()
        self._moved: list[int] = []  # buffers of each put and get

        def move(keys, addresses, *_):
            self._moved.append(sum(map(len, addresses)))
            return [0] * len(keys)

        worker.store.batch_put_from_multi_buffers = worker.store.batch_get_into_multi_buffers = move
        return engine, worker, Rank(engine, 0)

    def _step_of(self, engine: Engine, name: str, request, computed: int, scheduled: int, matched: int):
        blocks = [list(range(1, JOB_TOKENS // BLOCK + 2))]
        engine.scheduler.update_state_after_alloc(request, engine.blocks(blocks), matched)
        step = Step(scheduled={name: scheduled} if scheduled else {}, tables={name: blocks})
        if scheduled:
            step.new.append((request, computed, blocks, None))
        return engine.scheduler.build_connector_meta(scheduler_output(engine, step))

    def _run(self, clock: Clock, worker, metadata, queue_and_thread) -> None:
        for hook in ("start_load_kv", "wait_for_save"):
            if hasattr(worker, hook):
                getattr(worker, hook)(metadata)
        jobs, thread = queue_and_thread()
        if thread is None or jobs.empty():  # up to 0.28 jobs are queued by get_finished
            worker.get_finished(set(), metadata)
            jobs, thread = queue_and_thread()
        with clock:
            while not jobs.empty():
                thread._handle_request(jobs.get())
        expect("buffers of a job", sum(self._moved), JOB_TOKENS // BLOCK * LAYERS)
        self._moved.clear()

    def _save(self, runs: int) -> list[int]:
        engine, worker, rank = self._job_engine()
        clock, block_hashes = Clock(), hashes(JOB_TOKENS)
        worker.store.batch_is_exist = lambda keys: [0] * len(keys)
        for number in range(runs):
            request = engine.request(f"s{number}", JOB_TOKENS, block_hashes)
            metadata = self._step_of(engine, f"s{number}", request, 0, JOB_TOKENS, 0)
            self._run(clock, worker, metadata, rank._sending)
        return clock.times

    def _load(self, runs: int) -> list[int]:
        engine, worker, rank = self._job_engine()
        clock, block_hashes = Clock(), hashes(JOB_TOKENS)
        worker.store.batch_is_exist = lambda keys: [1] * len(keys)
        for number in range(runs):
            request = engine.request(f"l{number}", JOB_TOKENS + 1, block_hashes)
            matched, _ = engine.scheduler.get_num_new_matched_tokens(request, 0)
            metadata = self._step_of(engine, f"l{number}", request, 0, 0, matched)
            self._run(clock, worker, metadata, rank._receiving)
        return clock.times

    def _segments(self, runs: int) -> list[int] | None:
        if not hasattr(self._vllm.data, "TPShardedStoreLayout"):  # 0.30 on
            return None
        engine = Engine(self._vllm, given(SEGMENT_TP, JOB_TOKENS // BLOCK + 1, kv_cache_layout="LBNHC",
                                          extra_config={"store_tp_size": SEGMENT_STORE_TP}))
        worker, clock = engine.add_worker(0), Clock()
        engine.register_caches(0, BLOCK * HEADS // SEGMENT_TP * CONTENT_BYTES)
        layout, shards = worker.token_dbs[0].store_layout, SEGMENT_STORE_TP // SEGMENT_TP
        chunks = [(chunk * BLOCK, (chunk + 1) * BLOCK) for chunk in range(SEGMENT_CHUNKS) for _ in range(shards)]
        shard_ids = list(range(shards)) * SEGMENT_CHUNKS
        blocks = list(range(1, SEGMENT_CHUNKS + 1))
        for _ in range(runs):
            with clock:
                addresses, _, _ = layout.prepare_values(chunks, blocks, shard_ids)
            expect("segments", sum(map(len, addresses)), len(chunks) * LAYERS * BLOCK)
        return clock.times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--sources", required=True, metavar="DIR", help="folder with one folder per release")
    parser.add_argument("--release", required=True, metavar="VERSION", help="the release to measure")
    options = parser.parse_args()
    source = os.path.join(options.sources, options.release)
    if not os.path.isfile(os.path.join(source, "vllm", "__init__.py")):
        print(json.dumps({"missing": f"vLLM {options.release} in {options.sources}"}), flush=True)
        return
    bench = Bench(prepare(Release(source)))
    for line in sys.stdin:
        asked = json.loads(line)
        times = bench.measure(asked["subject"], asked["runs"])
        answer = {"skip": "the release has no such thing"} if times is None else {"ns": int(statistics.median(times))}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
