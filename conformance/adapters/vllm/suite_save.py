# SPDX-License-Identifier: Apache-2.0
"""Suite save: scheduler steps of some requests; what every rank checks and puts in each of them."""
from engine import COMMON_MEMBERS, Engine
from release import BadCase, check_members
from steps import Rank, Step, report, scheduler_output
from torch_standin import place_of

OUTPUT_TOKEN = 7  # which token is generated decides nothing: hashes are given


class SaveSuite:
    def __init__(self, vllm):
        self._vllm = vllm

    def answer(self, given: dict) -> dict:
        check_members("given", given, COMMON_MEMBERS + " requests steps existing_keys put_results")
        engine = Engine(self._vllm, given)
        engine.check_connector()
        for rank in range(engine.num_ranks):
            engine.add_worker(rank)
            engine.register_caches(rank)
        engine.add_scheduler()
        existing = set(given.get("existing_keys") or ())
        engine.world.keys.update(existing)
        engine.world.put_results = given.get("put_results") or {}
        run = Run(engine)
        steps = [run.step(number, step) for number, step in enumerate(given["steps"])]
        scheduler_block_size, hash_block_size = engine.block_sizes()
        errors = run.errors()
        return {"scheduler_block_size": scheduler_block_size, "hash_block_size": hash_block_size, "steps": steps,
                **({"worker_errors": errors} if errors else {}), **run.unreleased(),
                "stored_keys_total": len(engine.world.keys - existing)}


class Run:
    """The requests of a case, and the ranks, through its steps."""

    def __init__(self, engine: Engine):
        self._engine = engine
        self._ranks = [Rank(engine, rank) for rank in engine.workers]
        self._tables: dict[str, list[list[int]]] = {}
        self._requests: dict = {}
        for name, request in engine.given["requests"].items():
            check_members(f"given.requests.{name}", request, "prompt_len block_hashes")
            self._requests[name] = engine.request(name, request["prompt_len"], request["block_hashes"])

    def step(self, number: int, given: dict) -> list[dict]:
        """Runs one step; the answer's entry for it."""
        place = f"given.steps[{number}]"
        check_members(place, given, "new cached preempted finished output_tokens process_jobs boundary_offloads")
        seen = [len(rank.worker.store.calls) for rank in self._ranks]
        step = self._scheduled(place, given)
        metadata = self._engine.scheduler.build_connector_meta(scheduler_output(self._engine, step))
        run_jobs = given.get("process_jobs", True)
        report(self._engine, [rank.step(metadata, step.finished, run_jobs) for rank in self._ranks])
        self._end(step, given)
        calls = [rank.worker.store.calls[start:] for rank, start in zip(self._ranks, seen, strict=True)]
        return [self._entry(rank.rank, made) for rank, made in zip(self._ranks, calls, strict=True)] \
            if any(calls) else []

    def _scheduled(self, place: str, given: dict) -> Step:
        """Tells the scheduler side what was allocated, and gathers what it is told of the step."""
        step = Step(scheduled={}, preempted=given.get("preempted") or [], finished=given.get("finished") or [],
                    offloads={name: [tuple(entry) for entry in entries]
                              for name, entries in (given.get("boundary_offloads") or {}).items()})
        for name in step.preempted + step.finished:
            self._tables.pop(name, None)
            self._requests[name].num_computed_tokens = 0
        for index, entry in enumerate(given.get("new") or ()):
            check_members(f"{place}.new[{index}]", entry, "req num_computed num_scheduled block_ids prefill_len")
            request = self._allocated(f"{place}.new[{index}]", entry, entry["block_ids"])
            length = entry.get("prefill_len")
            prefill = None if length is None else list(request.all_token_ids[:length])
            step.new.append((request, entry["num_computed"], entry["block_ids"], prefill))
            step.scheduled[entry["req"]] = entry["num_scheduled"]
        for index, entry in enumerate(given.get("cached") or ()):
            check_members(f"{place}.cached[{index}]", entry, "req num_computed num_scheduled new_block_ids resumed")
            self._run_on(f"{place}.cached[{index}]", entry)
            step.cached.append((entry["req"], entry["num_computed"], entry["new_block_ids"],
                                entry.get("resumed", False)))
            step.scheduled[entry["req"]] = entry["num_scheduled"]
        step.tables = self._tables
        return step

    def _allocated(self, place: str, entry: dict, blocks: list[list[int]]):
        """A request that starts or resumes: it gets a whole table, of which nothing is loaded from outside."""
        request, groups = self._requests[entry["req"]], len(self._engine.given["groups"])
        if len(blocks) != groups:
            raise BadCase(f"{place}: has {len(blocks)} block tables for {groups} groups")
        request.num_computed_tokens = entry["num_computed"]
        self._engine.scheduler.update_state_after_alloc(request, self._engine.blocks(blocks), 0)
        self._tables[entry["req"]] = [list(group) for group in blocks]
        return request

    def _run_on(self, place: str, entry: dict) -> None:
        blocks = entry["new_block_ids"]
        if entry.get("resumed"):
            self._allocated(place, entry, blocks)
            return
        self._requests[entry["req"]].num_computed_tokens = entry["num_computed"]
        if blocks is None:
            return
        for group, more in zip(self._tables[entry["req"]], blocks, strict=True):
            group.extend(more)

    def _end(self, step: Step, given: dict) -> None:
        for name, count in step.scheduled.items():
            self._requests[name].num_computed_tokens += count
        for name, count in (given.get("output_tokens") or {}).items():
            self._requests[name].append_output_token_ids([OUTPUT_TOKEN] * count)

    def _entry(self, rank: int, calls: list) -> dict:
        return {"rank": rank, "exist_check_sizes": [len(call.keys) for call in calls if call.what == "exist"],
                "puts": [self._put(rank, call) for call in calls if call.what == "put"]}

    def _put(self, rank: int, call) -> dict:
        return {"keys": call.keys, "source_blocks": [self._block(addresses[0]) for addresses in call.addresses],
                "results": call.results, **({"group_ids": call.group_ids} if call.group_ids else {})}

    def _block(self, address: int) -> int:
        """The block that an address lies in."""
        number, offset = place_of(address)
        return offset // self._engine.block_bytes[number]

    def errors(self) -> list[str]:
        return [error for rank in self._ranks for error in rank.errors]

    def unreleased(self) -> dict:
        """Jobs whose blocks the scheduler side still references (0.28 on)."""
        jobs = getattr(self._engine.scheduler, "_pinned_saves", None)
        return {} if jobs is None else {"unreleased_store_jobs": len(jobs)}
