# SPDX-License-Identifier: Apache-2.0
"""Suite layout: which layout a release selects, and the keys that every rank of an instance writes and looks up."""
from engine import COMMON_MEMBERS, Engine
from release import NotHere, check_members
from steps import Rank, Step, scheduler_output

LISTED_RANKS_MAX = 8
SAMPLE_HASH = b"\xab" * 16


class LayoutSuite:
    def __init__(self, vllm):
        self._vllm = vllm

    def answer(self, given: dict) -> dict:
        check_members("given", given, COMMON_MEMBERS + " num_chunks block_hashes block_ids")
        engine = Engine(self._vllm, given)
        ranks = sampled_ranks(engine.num_ranks)
        for rank in ranks:
            worker = engine.add_worker(rank)
            if getattr(worker, "_capacity_only", False):
                raise NotHere("given.extra_config: a capacity-only instance selects no layout")
            engine.register_caches(rank)
        scheduler_block_size, hash_block_size = engine.block_sizes()
        answer = {"scheduler_block_size": scheduler_block_size, "hash_block_size": hash_block_size}
        if self._has_layouts(engine.workers[0]):
            answer["selected"] = self._selected(engine.workers[0])
        answer["ranks"] = self._ranks(engine, ranks, scheduler_block_size)
        if self._has_layouts(engine.workers[0]):
            answer.update(self._lookup_prefixes(engine, ranks))
        answer["lookup_keys_first_block"] = self._looked_up(engine, scheduler_block_size)
        return answer

    @staticmethod
    def _has_layouts(worker) -> bool:
        return hasattr(worker, "_select_store_layout")  # 0.30 on

    def _selected(self, worker) -> dict:
        layout = worker.token_dbs[0].store_layout
        return {"layout": getattr(layout, "store_format", "rank_local"), "store_tp_size": worker.store_tp_size,
                "store_namespace": worker.token_dbs[0].metadata.store_namespace}

    def _ranks(self, engine: Engine, ranks, scheduler_block_size: int) -> list[dict]:
        """One step computes the whole prompt; every rank saves it into an empty store."""
        given, scheduler = engine.given, engine.add_scheduler()
        request = engine.request("case", given["num_chunks"] * scheduler_block_size, given["block_hashes"])
        scheduler.update_state_after_alloc(request, engine.blocks(given["block_ids"]), 0)
        step = Step(scheduled={"case": request.num_tokens}, tables={"case": given["block_ids"]},
                    new=[(request, 0, given["block_ids"], None)])
        metadata = scheduler.build_connector_meta(scheduler_output(engine, step))
        return [self._rank(engine, rank, metadata) for rank in ranks]

    def _rank(self, engine: Engine, rank: int, metadata) -> dict:
        worker = engine.workers[rank]
        engine.world.keys.clear()
        Rank(engine, rank).step(metadata)
        answer = {"rank": rank, "tp_rank": worker.tp_rank, "pcp_rank": worker.pcp_rank, "dcp_rank": worker.dcp_rank,
                  "key_pp_rank": worker.pp_rank, "puts": worker.store.put_keys()}
        if self._has_layouts(worker):
            answer["groups"] = [self._group(database.store_layout, factor) for database, factor in
                                zip(worker.token_dbs, worker.group_tp_replication_factors, strict=True)]
        return answer

    def _group(self, layout, factor: int) -> dict:
        block_hash = self._vllm.utils.BlockHash(SAMPLE_HASH)
        shards = list(layout.local_shard_ids)
        return {"local_shard_ids": shards, "replication_factor": factor,
                "sample_keys": [layout.key_for(shard, block_hash) for shard in shards]}

    @staticmethod
    def _lookup_prefixes(engine: Engine, ranks) -> dict:
        per_rank = [[list(prefixes) for prefixes in engine.workers[rank]._lookup_key_prefixes] for rank in ranks]
        if all(prefixes == per_rank[0] for prefixes in per_rank):
            return {"lookup_key_prefixes": per_rank[0]}
        return {"lookup_key_prefixes_per_rank": per_rank}

    @staticmethod
    def _looked_up(engine: Engine, scheduler_block_size: int) -> list[str]:
        store = engine.workers[0].store
        before = len(store.asked())
        request = engine.request("lookup", scheduler_block_size + 1, engine.given["block_hashes"])
        engine.scheduler.get_num_new_matched_tokens(request, 0)
        return store.asked()[before:]


def sampled_ranks(num_ranks: int) -> list[int]:
    if num_ranks <= LISTED_RANKS_MAX:
        return list(range(num_ranks))
    return [0, 1, num_ranks // 2, num_ranks - 1]
