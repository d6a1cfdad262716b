# SPDX-License-Identifier: Apache-2.0
"""Scheduler steps: what the engine core tells the connector of one step, and what every rank then does."""
import dataclasses

from engine import Engine, known_fields


@dataclasses.dataclass
class Step:
    """One step of the core: its requests, as (request, tokens computed before, ...) in the order they are scheduled."""

    scheduled: dict[str, int]  # tokens of this step
    tables: dict[str, list[list[int]]] = dataclasses.field(default_factory=dict)  # of requests that have blocks
    new: list[tuple[object, int, list[list[int]], list[int] | None]] = dataclasses.field(default_factory=list)
    cached: list[tuple[str, int, list[list[int]] | None, bool]] = dataclasses.field(default_factory=list)
    preempted: list[str] = dataclasses.field(default_factory=list)
    finished: list[str] = dataclasses.field(default_factory=list)
    offloads: dict[str, list[tuple[int, int, int]]] = dataclasses.field(default_factory=dict)


def scheduler_output(engine: Engine, step: Step):
    """The release's SchedulerOutput of a step."""
    output = engine.vllm.output
    made = output.SchedulerOutput(**known_fields(
        output.SchedulerOutput, scheduled_new_reqs=[_new(output, *new) for new in step.new],
        scheduled_cached_reqs=output.CachedRequestData(
            req_ids=[name for name, *_ in step.cached],
            resumed_req_ids={name for name, _, _, resumed in step.cached if resumed},
            new_token_ids=[], all_token_ids={},
            new_block_ids=[None if blocks is None else _table(blocks) for _, _, blocks, _ in step.cached],
            num_computed_tokens=[computed for _, computed, _, _ in step.cached],
            num_output_tokens=[0 for _ in step.cached]),
        num_scheduled_tokens=dict(step.scheduled), total_num_scheduled_tokens=sum(step.scheduled.values()),
        scheduled_spec_decode_tokens={}, scheduled_encoder_inputs={}, finished_req_ids=set(step.finished),
        free_encoder_mm_hashes=[], num_common_prefix_blocks=[0] * len(engine.given["groups"]),
        preempted_req_ids=set(step.preempted),
        partial_tail_offloads=dict(step.offloads) or None))  # up to 0.28
    state = getattr(output, "KVConnectorBlockState", None)
    if state is not None:  # 0.29 on: block tables are the core's, not the connector's copies
        tables = {name: _table(blocks) for name, blocks in step.tables.items()}
        made.kv_connector_block_state = state(boundary_state_offloads=dict(step.offloads), **known_fields(
            state, req_ids=set(tables), resolve_block_ids=tables.__getitem__, block_ids=tables))
    return made


def _new(output, request, computed: int, blocks: list[list[int]], prefill_token_ids: list[int] | None):
    more = {} if prefill_token_ids is None else {"prefill_token_ids": prefill_token_ids}
    return output.NewRequestData(
        req_id=request.request_id, prompt_token_ids=request.prompt_token_ids, mm_features=[], sampling_params=None,
        pooling_params=None, block_ids=_table(blocks), num_computed_tokens=computed, lora_request=None, **more)


def _table(blocks: list[list[int]]) -> tuple[list[int], ...]:
    return tuple(map(list, blocks))


class Rank:
    """One worker in the engine's steps."""

    def __init__(self, engine: Engine, rank: int):
        self._vllm, self.rank, self.worker = engine.vllm, rank, engine.workers[rank]
        self.errors: list[str] = []  # of the transfer threads' handlers

    def step(self, metadata, finished: list[str] = [], run_jobs: bool = True):
        """The rank's part of a step, in the core's order. Returns what it reports to the scheduler side (0.28 on)."""
        for hook in ("start_load_kv", "wait_for_save"):
            if hasattr(self.worker, hook):
                getattr(self.worker, hook)(metadata)
        if run_jobs:
            self._run_jobs()
        self.worker.get_finished(set(finished), metadata)
        if run_jobs:
            self._run_jobs()
        build = getattr(self.worker, "build_connector_worker_meta", None)
        return build() if build else None

    def _run_jobs(self) -> None:
        """The body of the transfer threads for the jobs that are queued; like them, it goes on after a failed one."""
        for jobs, thread in (self._sending(), self._receiving()):
            while thread is not None and not jobs.empty():
                try:
                    thread._handle_request(jobs.get())
                except Exception as error:
                    if not self._vllm.raised(error):
                        raise
                    self.errors.append(f"{type(error).__name__}: {error}")

    def _sending(self):
        thread = getattr(self.worker, "kv_send_thread", None)
        return (thread.request_queue if thread else None), thread

    def _receiving(self):
        if hasattr(self.worker, "recv_request_queue"):  # a pool of threads
            return self.worker.recv_request_queue, next(iter(self.worker.kv_recv_threads), None)
        thread = getattr(self.worker, "kv_recv_thread", None)
        return (thread.request_queue if thread else None), thread

    def load_errors(self) -> dict:
        """Blocks (0.22 on) and requests (0.31 on) whose load failed, as the rank reports them after a step."""
        answer = {}
        if hasattr(self.worker, "get_block_ids_with_load_errors"):
            answer["invalid_block_ids"] = sorted(self.worker.get_block_ids_with_load_errors())
        if hasattr(self.worker, "get_transfer_results"):
            failed = [name for thread in self.worker.kv_recv_threads for name in thread.get_and_clear_failed_requests()]
            answer["failed_requests"] = sorted(failed)
        return answer


def report(engine: Engine, metadatas: list) -> None:
    """Hands to the scheduler side what the ranks reported of their finished jobs."""
    told = [metadata for metadata in metadatas if metadata is not None]
    if not told:
        return
    total = told[0]
    for metadata in told[1:]:
        total = total.aggregate(metadata)
    engine.scheduler.update_connector_output(
        engine.vllm.outputs.KVConnectorOutput(kv_connector_worker_meta=total))
