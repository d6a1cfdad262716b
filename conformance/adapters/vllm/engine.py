# SPDX-License-Identifier: Apache-2.0
"""One vLLM instance of a case: the release's own connector scheduler and workers, on a store that records.

Stood in besides torch and the store client: process groups (plain rank numbers), the engine's configuration object (a
holder of the attributes that the connector reads), the transfer threads' start (their handler is called in order), and
the ZeroMQ hop of the lookup (a direct call).
"""
import dataclasses
import inspect
import json
import os
import tempfile
from types import SimpleNamespace

import store_standin
from placeholders import InertModule, StandinLimit
from release import BadCase, Release, check_members
from torch_standin import DTYPES, Storage, contiguous_tensor

COMMON_MEMBERS = ("topology total_kv_heads use_mla groups extra_config kv_role kv_cache_layout model num_gpu_blocks "
                  "speculative retention_interval")
GROUP_MEMBERS = ("kind block_size num_kv_heads head_size dtype sliding_window extra_retained_tokens is_eagle "
                 "num_layers layer_names inner mamba_cache_mode")
ENVIRONMENT = ("VLLM_PREFIX_CACHE_RETENTION_INTERVAL", "MOONCAKE_PREFERRED_SEGMENT",
               "MOONCAKE_REQUESTER_LOCAL_HOSTNAME")


class Attributes(SimpleNamespace):
    """Stands in for a configuration object or a process group: only what the connector reads."""

    def __getattr__(self, name):
        raise StandinLimit(f"the engine's configuration here has no {name}")


class DirectLookup:
    """The lookup channel without sockets: asks the worker of rank 0 at once, through the release's own encoding."""

    worker = None
    protocol = None

    def __init__(self, vllm_config):
        pass

    def lookup(self, *arguments, **more):
        """Releases differ in arguments: (tokens, hashes), (request, tokens, hashes), with or without a flag."""
        tokens = next(a for a in arguments if isinstance(a, int))
        hashes = next(a for a in arguments if not isinstance(a, (int, str)))
        answer = DirectLookup.worker.lookup(tokens, list(hashes))
        if hasattr(DirectLookup.protocol, "encode_lookup_response"):
            answer = DirectLookup.protocol.decode_lookup_response(DirectLookup.protocol.encode_lookup_response(answer))
        return answer


def prepare(release: Release) -> SimpleNamespace:
    """Imports what an instance needs and puts in the stand-ins named above. Done once a process."""
    worker, scheduler = release.store_module("worker"), release.store_module("scheduler")
    worker.get_ip = lambda: "127.0.0.1"
    worker.KVTransferThread.start = lambda thread: thread.ready_event.set()
    worker.LookupKeyServer = lambda *arguments, **more: None
    scheduler.LookupKeyClient = DirectLookup
    try:
        DirectLookup.protocol = release.store_module("protocol")
    except ModuleNotFoundError:  # releases up to 0.22 have no encoding of their own
        DirectLookup.protocol = None
    folder = tempfile.TemporaryDirectory()  # lives as long as what is returned
    store_config = os.path.join(folder.name, "mooncake.json")
    with open(store_config, "w") as file:
        json.dump({"metadata_server": "P2PHANDSHAKE", "master_server_address": "127.0.0.1:1", "protocol": "tcp"}, file)
    return SimpleNamespace(
        raised=release.raised, worker=worker, scheduler=scheduler, data=release.store_module("data"),
        folder=folder, store_config=store_config,
        interface=release.module("vllm.v1.kv_cache_interface"), utils=release.module("vllm.v1.core.kv_cache_utils"),
        config=release.module("vllm.config"), output=release.module("vllm.v1.core.sched.output"),
        manager=release.module("vllm.v1.core.kv_cache_manager"), pool=release.module("vllm.v1.core.block_pool"),
        request=release.module("vllm.v1.request"), sampling=release.module("vllm.sampling_params"),
        layout=_optional(release, "vllm.v1.kv_cache_layout"))


def _optional(release: Release, name: str):
    try:
        module = release.module(name)
    except ModuleNotFoundError:
        return None
    return None if isinstance(module, InertModule) else module


def group_spec(vllm: SimpleNamespace, group: dict):
    """The release's KV cache spec of one group."""
    interface, kind, block_size = vllm.interface, group.get("kind"), group.get("block_size")
    attention = dict(block_size=block_size, num_kv_heads=group.get("num_kv_heads", 1),
                     head_size=group.get("head_size", 8), dtype=DTYPES[group.get("dtype", "bfloat16")])
    window = dict(sliding_window=group.get("sliding_window"))
    if kind == "full":
        return interface.FullAttentionSpec(**attention)
    if kind == "full_with_window":
        return interface.FullAttentionSpec(**attention, **window)
    if kind == "sliding_window":
        retained = group.get("extra_retained_tokens")
        return interface.SlidingWindowSpec(**attention, **window,
                                           **({"extra_retained_tokens": retained} if retained else {}))
    if kind == "mla":
        return interface.MLAAttentionSpec(**{**attention, "num_kv_heads": 1})
    if kind == "sliding_window_mla":
        return interface.SlidingWindowMLASpec(**{**attention, "num_kv_heads": 1}, **window)
    if kind == "mamba":
        return interface.MambaSpec(block_size=block_size, shapes=((4, 4),), dtypes=(DTYPES["float32"],),
                                   mamba_cache_mode=group.get("mamba_cache_mode", "align"))
    if kind == "uniform":
        inner = {f"u{number}": group_spec(vllm, {**spec, "block_size": block_size})
                 for number, spec in enumerate(group["inner"])}
        return interface.UniformTypeKVCacheSpecs(block_size=block_size, kv_cache_specs=inner)
    raise BadCase(f"given.groups.kind: {kind!r} is unknown")


def known_fields(cls, **values) -> dict:
    """Those of `values` that the release's dataclass has."""
    names = {field.name for field in dataclasses.fields(cls)}
    return {name: value for name, value in values.items() if name in names}


class Engine:
    """Scheduler side and some ranks of the instance that `given` describes."""

    def __init__(self, vllm: SimpleNamespace, given: dict):
        self.vllm, self.given = vllm, given
        check_members("given.topology", given["topology"], "tp pp pcp dcp")
        self.tp, self.pp, self.pcp, self.dcp = (given["topology"].get(n, 1) for n in ("tp", "pp", "pcp", "dcp"))
        self.num_ranks = self.tp * self.pp * self.pcp
        self.num_blocks = given.get("num_gpu_blocks", 64)
        self.workers: dict[int, object] = {}
        for name in ENVIRONMENT:
            os.environ.pop(name, None)
        os.environ["MOONCAKE_CONFIG_PATH"] = vllm.store_config
        store_standin.CONTENTS.clear()
        self.kv_cache_config = self._kv_cache_config()
        # As the engine core does: one layer's spec stands for a uniform group on the scheduler's side.
        self._scheduler_kv_cache_config = vllm.utils.generate_scheduler_kv_cache_config([self.kv_cache_config])
        self._transfer_config = vllm.config.KVTransferConfig(
            kv_connector="MooncakeStoreConnector", kv_role=given.get("kv_role", "kv_both"),
            kv_connector_extra_config=dict(given.get("extra_config") or {}))
        self._resolve_alignment()

    def _kv_cache_config(self):
        interface = self.vllm.interface
        groups = []
        for number, group in enumerate(self.given["groups"]):
            check_members(f"given.groups[{number}]", group, GROUP_MEMBERS)
            spec = group_spec(self.vllm, group)
            names = group.get("layer_names") or [f"g{number}.l{layer}" for layer in range(group.get("num_layers", 1))]
            if group["kind"] == "uniform":
                names = list(spec.kv_cache_specs)
            groups.append(interface.KVCacheGroupSpec(names, spec, **({"is_eagle_group": True} if group.get("is_eagle")
                                                                     else {})))
        retention = self.given.get("retention_interval")
        more = {} if retention is None else known_fields(interface.KVCacheConfig,
                                                         prefix_cache_retention_interval=retention)
        return interface.KVCacheConfig(num_blocks=self.num_blocks, kv_cache_tensors=[], kv_cache_groups=groups, **more)

    def _resolve_alignment(self) -> None:
        """What the engine core resolves before it builds scheduler and workers (0.33 on)."""
        utils, config = self.vllm.utils, self._scheduler_kv_cache_config
        if not hasattr(utils, "resolve_cache_hit_alignment_tokens"):
            return
        vllm_config = self.vllm_config(0)
        scheduler_block_size, hash_block_size = utils.resolve_kv_cache_block_sizes(config, vllm_config)
        alignment_tokens = utils.resolve_cache_hit_alignment_tokens(config, vllm_config, scheduler_block_size,
                                                                    hash_block_size)
        for each in (config, self.kv_cache_config):
            each.hash_block_size, each.cache_hit_alignment_tokens = hash_block_size, alignment_tokens

    def _kv_cache_layout(self):
        """The engine's resolved KV layout; releases before 0.30 do not ask."""
        name = self.given.get("kv_cache_layout") or "LBHNC"
        if name not in self.vllm.layout.KVCacheLayout.__members__:
            raise BadCase(f"given.kv_cache_layout: {name!r} is unknown")
        return self.vllm.layout.KVCacheLayout[name]

    def vllm_config(self, rank: int) -> Attributes:
        given = self.given
        drafter = Attributes(use_eagle=lambda: True, use_eagle_block_drop=lambda: True)
        return Attributes(
            model_config=Attributes(
                model=given.get("model", "org/model-x"), max_model_len=1 << 20, use_mla=bool(given.get("use_mla")),
                enable_sleep_mode=False, enable_cumem_allocator=False, is_hybrid=False,
                get_num_layers=lambda parallel: 2, get_total_num_kv_heads=lambda: given.get("total_kv_heads", 8)),
            cache_config=Attributes(
                block_size=given["groups"][0]["block_size"], num_gpu_blocks=self.num_blocks, enable_prefix_caching=True,
                prefix_match_unit=None, hash_block_size=None, get_resolved_kv_cache_layout=self._kv_cache_layout),
            kv_transfer_config=self._transfer_config, kv_events_config=None,
            speculative_config=drafter if given.get("speculative") else None,
            parallel_config=Attributes(
                pipeline_parallel_size=self.pp, tensor_parallel_size=self.tp, rank=rank, data_parallel_index=0,
                data_parallel_rank=0, data_parallel_rank_local=0, local_engines_only=False,
                decode_context_parallel_size=self.dcp, prefill_context_parallel_size=self.pcp,
                world_size=self.num_ranks))

    def add_worker(self, rank: int):
        """Builds the release's worker of one rank. Rank = (pp * PCP + pcp) * TP + tp."""
        module = self.vllm.worker
        tp_rank, pcp_rank = rank % self.tp, rank // self.tp % self.pcp
        module.get_tensor_model_parallel_rank = lambda: tp_rank
        module.get_tensor_model_parallel_world_size = lambda: self.tp
        module.get_pcp_group = lambda: Attributes(world_size=self.pcp, rank_in_group=pcp_rank)
        module.get_dcp_group = lambda: Attributes(world_size=self.dcp, rank_in_group=tp_rank % self.dcp)
        self.workers[rank] = self._build(module.MooncakeStoreWorker, rank, self.kv_cache_config)
        if rank == 0:
            DirectLookup.worker = self.workers[0]
        return self.workers[rank]

    def add_scheduler(self):
        """Builds the release's scheduler side, with a block pool where the release binds one."""
        self.scheduler = self._build(self.vllm.scheduler.MooncakeStoreScheduler, 0, self._scheduler_kv_cache_config)
        if hasattr(self.scheduler, "bind_gpu_block_pool"):
            block_size = getattr(self.scheduler, "_hash_block_size", self.given["groups"][0]["block_size"])
            self.scheduler.bind_gpu_block_pool(self.vllm.pool.BlockPool(self.num_blocks, True, block_size))
        return self.scheduler

    def _build(self, cls, rank: int, kv_cache_config):
        arguments = [self.vllm_config(rank)]
        if "kv_cache_config" in inspect.signature(cls.__init__).parameters:  # 0.22 on
            arguments.append(kv_cache_config)
        return cls(*arguments)

    def register_small_caches(self, rank: int) -> None:
        """Registers one small cache a layer, only to give every block an address."""
        worker, caches = self.workers[rank], {}
        sharded = self._is_sharded(worker)
        for group in self.kv_cache_config.kv_cache_groups:
            for name in group.layer_names:
                caches[name] = self._small_cache(len(caches), group.kv_cache_spec.block_size, sharded)
        worker.register_kv_caches(caches)

    def _is_sharded(self, worker) -> bool:
        databases = getattr(worker, "token_dbs", None)
        cls = getattr(self.vllm.data, "TPShardedStoreLayout", None)  # 0.30 on
        return bool(databases and cls and isinstance(databases[0].store_layout, cls))

    def _small_cache(self, number: int, block_size: int, sharded: bool):
        if not sharded:
            shape = (self.num_blocks, block_size * 64)
            return contiguous_tensor(Storage(number, shape[0] * shape[1]), DTYPES["uint8"], shape)
        heads, content_bytes = self.given["total_kv_heads"] // self.tp, 8
        storage = Storage(number, self.num_blocks * heads * block_size * content_bytes)
        if self.given.get("kv_cache_layout") == "LBNHC":
            tokens_outside = (self.num_blocks, block_size, heads, content_bytes)
            return contiguous_tensor(storage, DTYPES["uint8"], tokens_outside).permute(0, 2, 1, 3)
        return contiguous_tensor(storage, DTYPES["uint8"], (self.num_blocks, heads, block_size, content_bytes))

    def request(self, name: str, num_tokens: int, block_hashes: list[bytes], hash_block_size: int):
        """The release's Request of num_tokens tokens that has these block hashes."""
        hashes = [self.vllm.utils.BlockHash(block_hash) for block_hash in block_hashes]

        def hasher(request):
            return hashes[len(request.block_hashes):request.num_tokens // hash_block_size]

        cls = self.vllm.request.Request
        more = {"eos_token_id": None} if "eos_token_id" in inspect.signature(cls.__init__).parameters else {}
        return cls(request_id=name, prompt_token_ids=list(range(1, num_tokens + 1)), pooling_params=None,
                   sampling_params=self.vllm.sampling.SamplingParams(max_tokens=4096), block_hasher=hasher, **more)

    def schedule(self, request, block_ids: list[list[int]]):
        """One scheduler step that computes the whole prompt of a new request: the connector's metadata for it."""
        output, name = self.vllm.output, request.request_id
        blocks = self.vllm.manager.KVCacheBlocks(tuple(
            [self.vllm.utils.KVCacheBlock(block_id=block) for block in group] for group in block_ids))
        self.scheduler.update_state_after_alloc(request, blocks, 0)
        new = output.NewRequestData(
            req_id=name, prompt_token_ids=request.prompt_token_ids, mm_features=[], sampling_params=None,
            pooling_params=None, block_ids=tuple(map(list, block_ids)), num_computed_tokens=0, lora_request=None)
        step = output.SchedulerOutput(**known_fields(
            output.SchedulerOutput, scheduled_new_reqs=[new], scheduled_cached_reqs=output.CachedRequestData(
                req_ids=[], resumed_req_ids=set(), new_token_ids=[], all_token_ids={}, new_block_ids=[],
                num_computed_tokens=[], num_output_tokens=[]),
            num_scheduled_tokens={name: request.num_tokens}, total_num_scheduled_tokens=request.num_tokens,
            scheduled_spec_decode_tokens={}, scheduled_encoder_inputs={}, finished_req_ids=set(),
            free_encoder_mm_hashes=[], num_common_prefix_blocks=[0] * len(block_ids), preempted_req_ids=set()))
        self._add_block_state(step, name, block_ids)
        return self.scheduler.build_connector_meta(step)

    def _add_block_state(self, step, name: str, block_ids: list[list[int]]) -> None:
        """The core's block tables, which releases from 0.29 on hand to the connector."""
        cls = getattr(self.vllm.output, "KVConnectorBlockState", None)
        if cls is None:
            return
        tables = {name: tuple(map(list, block_ids))}
        step.kv_connector_block_state = cls(boundary_state_offloads={}, **known_fields(
            cls, req_ids=set(tables), resolve_block_ids=tables.__getitem__, block_ids=tables))

    def run_step(self, rank: int, metadata) -> list[str]:
        """Runs one step on a rank that finds an empty store; returns the keys that it wrote, in order."""
        worker = self.workers[rank]
        store_standin.CONTENTS.clear()
        for hook in ("start_load_kv", "wait_for_save"):
            if hasattr(worker, hook):
                getattr(worker, hook)(metadata)
        self._run_jobs(worker)
        worker.get_finished(set(), metadata)
        self._run_jobs(worker)
        return worker.store.put

    def _run_jobs(self, worker) -> None:
        """The body of the sending thread for the jobs that are queued; like it, it goes on after a failed one."""
        thread = getattr(worker, "kv_send_thread", None)
        while thread is not None and not thread.request_queue.empty():
            try:
                thread._handle_request(thread.request_queue.get())
            except Exception as error:
                if not self.vllm.raised(error):
                    raise
