# SPDX-License-Identifier: Apache-2.0
"""Suite load: one request's hit is loaded on every rank; which reads that makes, and what is reported as failed."""
from engine import COMMON_MEMBERS, Engine
from release import BadCase, check_members
from steps import Rank, Step, scheduler_output
from torch_standin import place_of

REQUEST = "r"  # reported as failed under this name


class LoadSuite:
    def __init__(self, vllm):
        self._vllm = vllm

    def answer(self, given: dict) -> dict:
        check_members("given", given, COMMON_MEMBERS + " page_bytes num_tokens hit_tokens_in_store num_computed_tokens "
                                                       "store_config env block_hashes block_ids get_results "
                                                       "get_raises_on_call")
        engine = Engine(self._vllm, given)
        engine.check_connector()
        tensors: list[str] = []
        for rank in range(engine.num_ranks):
            engine.add_worker(rank)
            tensors = engine.register_caches(rank, given["page_bytes"])
        scheduler = engine.add_scheduler(with_pool=False)
        scheduler_block_size, hash_block_size = engine.block_sizes()
        self._fill(engine, given, hash_block_size)
        request = engine.request(REQUEST, given["num_tokens"], given["block_hashes"])
        matched, load_async = scheduler.get_num_new_matched_tokens(request, given.get("num_computed_tokens", 0))
        ranks = self._loaded(engine, request, matched, load_async) if matched else []
        return {"scheduler_block_size": scheduler_block_size, "hash_block_size": hash_block_size,
                "new_matched_tokens": matched, "load_async": load_async, "ranks": ranks, "tensors": tensors}

    @staticmethod
    def _fill(engine: Engine, given: dict, hash_block_size: int) -> None:
        world = engine.world
        world.first_hashes = set(given["block_hashes"][:given["hit_tokens_in_store"] // hash_block_size])
        world.get_results = given.get("get_results") or {}
        world.get_raises_on_call = given.get("get_raises_on_call")

    def _loaded(self, engine: Engine, request, matched: int, load_async: bool) -> list[dict]:
        given, name = engine.given, request.request_id
        blocks = given["block_ids"]
        if len(blocks) != len(given["groups"]):
            raise BadCase(f"given.block_ids: has {len(blocks)} tables for {len(given['groups'])} groups")
        engine.scheduler.update_state_after_alloc(request, engine.blocks(blocks), matched)
        step = Step(scheduled={}, tables={name: blocks})
        if not load_async:  # the core schedules the rest of the prompt in the same step
            computed = given.get("num_computed_tokens", 0) + matched
            step.scheduled[name] = request.num_tokens - computed
            step.new.append((request, computed, blocks, None))
        metadata = engine.scheduler.build_connector_meta(scheduler_output(engine, step))
        return [self._rank(Rank(engine, rank), metadata) for rank in engine.workers]

    @staticmethod
    def _rank(rank: Rank, metadata) -> dict:
        rank.step(metadata)
        gets = [call for call in rank.worker.store.calls if call.what == "get"]
        return {"rank": rank.rank, "get_calls": [{"keys": call.keys, "buffers": buffers(call), "results": call.results}
                                                 for call in gets], **rank.load_errors()}


def buffers(call) -> list[list[list[int]]]:
    """Per key, where its segments go: [tensor, offset, size]."""
    return [[[*place_of(address), size] for address, size in zip(addresses, sizes, strict=True)]
            for addresses, sizes in zip(call.addresses, call.sizes, strict=True)]
