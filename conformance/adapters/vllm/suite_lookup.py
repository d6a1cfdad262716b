# SPDX-License-Identifier: Apache-2.0
"""Suite lookup: how many tokens of a waiting request the scheduler side offers, and which keys rank 0 asks for."""
import hashlib

from engine import COMMON_MEMBERS, Engine
from release import check_members

QUERIED_KEYS_MAX = 24


class LookupSuite:
    def __init__(self, vllm):
        self._vllm = vllm

    def answer(self, given: dict) -> dict:
        check_members("given", given, COMMON_MEMBERS + " num_tokens num_computed_tokens block_hashes existing_keys "
                                                       "exist_result_override exist_raises")
        engine = Engine(self._vllm, given)
        world = engine.world
        world.keys.update(given.get("existing_keys") or ())
        world.exist_answers = given.get("exist_result_override") or {}
        world.exist_raises = given.get("exist_raises", False)
        engine.check_connector()
        worker = engine.add_worker(0)
        scheduler = engine.add_scheduler(with_pool=False)
        request = engine.request("case", given["num_tokens"], given["block_hashes"])
        matched, load_async = scheduler.get_num_new_matched_tokens(request, given.get("num_computed_tokens", 0))
        return {**answer_of_lookup(engine, request, matched, load_async), **queried(worker.store.asked()),
                **tail_key_boundaries(scheduler.load_specs.get("case"))}


def answer_of_lookup(engine: Engine, request, matched: int, load_async: bool) -> dict:
    scheduler_block_size, hash_block_size = engine.block_sizes()
    load = engine.scheduler.load_specs.get(request.request_id)
    return {"scheduler_block_size": scheduler_block_size, "hash_block_size": hash_block_size,
            "new_matched_tokens": matched, "load_async": load_async,
            "hit_tokens": None if load is None else load.kvpool_cached_tokens}


def queried(keys: list[str]) -> dict:
    answer = {"queried_count": len(keys), "queried_sha256": hashlib.sha256("\n".join(keys).encode()).hexdigest()}
    return {**answer, "queried_keys": keys} if len(keys) <= QUERIED_KEYS_MAX else answer


def tail_key_boundaries(load) -> dict:
    """Which hash keys the last block of each group (0.29 on); nothing when nothing is to be loaded."""
    if load is None or not hasattr(load, "tail_key_boundaries"):
        return {}
    return {"tail_key_boundaries": [[boundary.group_id, boundary.num_tokens] for boundary in load.tail_key_boundaries]}
