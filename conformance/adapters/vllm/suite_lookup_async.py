# SPDX-License-Identifier: Apache-2.0
"""Suite lookup-async: a script of requests, answers and aborts; what the core asks, schedules and transfers."""
from core_config import CORE_MEMBERS
from core_engine import Instance
from release import BadCase, check_members
from suite_hash import token_ids


class LookupAsyncSuite:
    def __init__(self, release, vllm, parts):
        self._release, self._vllm, self._parts = release, vllm, parts

    def answer(self, given: dict) -> dict:
        check_members("given", given, CORE_MEMBERS + " steps")
        with Instance(self._release, self._vllm, self._parts, given) as instance:
            return Script(instance, given).run()


class Script:
    def __init__(self, instance: Instance, given: dict):
        self._instance, self._given = instance, given
        self._held = any("lookup_answers" in action for step in given["steps"] for action in step)
        self._futures_after_abort: int | None = None

    def run(self) -> dict:
        instance = self._instance
        steps = [self._step(number, actions) for number, actions in enumerate(self._given["steps"])]
        answer = {"block_hashes": {name: [block_hash.hex() for block_hash in request.block_hashes]
                                   for name, request in instance.requests.items()},
                  "steps": steps, "stored_keys_total": len(instance.store.objects),
                  "wrong_bytes": instance.wrong_bytes()}
        if self._futures_after_abort is not None:
            answer["futures_after_abort"] = self._futures_after_abort
        if any(future.cancelled() for future in instance.lookups_sent):  # aborted before its turn came
            answer["lookups_that_reached_the_store"] = len(instance.store.lookups)
        return answer

    def _step(self, number: int, actions: list[dict]) -> dict:
        instance = self._instance
        aborts = [self._act(f"given.steps[{number}][{index}]", action) for index, action in enumerate(actions)]
        before = len(instance.store.lookups)
        scheduled, preempted = instance.step()
        if not self._held:
            instance.answer_lookups()
        if any(aborts):
            self._futures_after_abort = len(instance.client.futures)
        _, puts, gets = instance.take_transfers()
        asked, instance.asked = instance.asked, []
        requests = instance.requests
        return {"lookups": asked, "scheduled": scheduled, "preempted": preempted,
                "lookup_exist_calls": instance.store.lookups[before:], "gets": gets, "puts": puts,
                "status_after": {name: request.status.name for name, request in requests.items()},
                "computed_after": {name: request.num_computed_tokens for name, request in requests.items()},
                "output_after": {name: request.num_output_tokens for name, request in requests.items()}}

    def _act(self, place: str, action: dict) -> bool:
        """Does one action; whether it was an abort."""
        instance = self._instance
        if "add" in action:
            check_members(place, action, "add prompt max_tokens")
            instance.add(action["add"], token_ids(action["prompt"]), action["max_tokens"])
        elif "lookup_answers" in action:
            check_members(place, action, "lookup_answers")
            instance.answer_lookups(action["lookup_answers"])
        elif "abort" in action:
            check_members(place, action, "abort")
            if action["abort"] not in instance.requests:
                raise BadCase(f"{place}.abort: no request {action['abort']!r} was added")
            instance.abort(action["abort"])
            return True
        elif "reset_local_prefix_cache" in action:
            check_members(place, action, "reset_local_prefix_cache")
            instance.reset_local_prefix_cache()
        else:
            raise BadCase(f"{place}: no known action")
        return False
