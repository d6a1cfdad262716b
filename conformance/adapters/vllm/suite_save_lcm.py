# SPDX-License-Identifier: Apache-2.0
"""Suite save-lcm: one request decoded to its end; the store layout, and what is checked, put and read step by step."""
from core_config import CORE_MEMBERS
from core_engine import Instance
from release import NotHere, check_members
from suite_hash import token_ids

REQUEST = "r1"


class SaveLcmSuite:
    def __init__(self, release, vllm, parts):
        self._release, self._vllm, self._parts = release, vllm, parts

    def answer(self, given: dict) -> dict:
        check_members("given", given, CORE_MEMBERS + " prompt max_tokens delivered_out_of_band num_steps")
        with Instance(self._release, self._vllm, self._parts, given) as instance:
            selected = self._selected(instance.ranks[0].worker)
            instance.add(REQUEST, token_ids(given["prompt"]), given["max_tokens"],
                         given.get("delivered_out_of_band", False))
            steps = [self._step(instance, number) for number in range(given["num_steps"])]
            block_hashes = [block_hash.hex() for block_hash in instance.requests[REQUEST].block_hashes]
            return {**selected, "block_hashes": block_hashes,
                    "steps_with_store_calls": [step for step in steps if step],
                    "stored_keys_total": len(instance.store.objects), "wrong_bytes": instance.wrong_bytes()}

    @staticmethod
    def _selected(worker) -> dict:
        if not hasattr(worker, "store_tp_size"):
            raise NotHere("the release has no store layouts that TP sizes share (they came with 0.30)")
        if not worker.token_dbs:
            raise NotHere("given.extra_config: a capacity-only instance selects no layout")
        database = worker.token_dbs[0]
        return {"store_tp_size": worker.store_tp_size, "namespace": database.metadata.store_namespace,
                "lookup_prefixes": list(worker._lookup_key_prefixes[0]), "layout": type(database.store_layout).__name__}

    @staticmethod
    def _step(instance: Instance, number: int) -> dict | None:
        """One step; None if no rank saved or loaded in it."""
        scheduled, _ = instance.step()
        instance.answer_lookups()
        checks, puts, gets = instance.take_transfers()
        if not (checks or puts or gets):
            return None
        return {"step": number, "puts": puts, "exist_checks": sorted(checks, key=lambda check: check["keys"]),
                "scheduled": scheduled, "gets": gets}
