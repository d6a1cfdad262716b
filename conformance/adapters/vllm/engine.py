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
from typing import Any

import store_standin
from placeholders import InertModule, StandinLimit
from release import BadCase, NotHere, Release, check_members
from torch_standin import DTYPES, Storage, Tensor, contiguous_tensor

COMMON_MEMBERS = ("topology total_kv_heads use_mla groups extra_config kv_role kv_cache_layout model num_gpu_blocks "
                  "speculative retention_interval prefix_match_unit")
GROUP_MEMBERS = ("kind block_size num_kv_heads head_size dtype sliding_window attention_chunk_size "
                 "extra_retained_tokens is_eagle num_layers layer_names inner mamba_cache_mode")
ENVIRONMENT = ("VLLM_PREFIX_CACHE_RETENTION_INTERVAL", "VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO",
               "MOONCAKE_PREFERRED_SEGMENT", "MOONCAKE_REQUESTER_LOCAL_HOSTNAME")
POOL_BLOCKS_MAX = 1 << 20
STORE_CONFIG = {"metadata_server": "P2PHANDSHAKE", "master_server_address": "127.0.0.1:1", "protocol": "tcp"}


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

    def discard(self, request_id: str) -> None:
        """Nothing is ever under way here."""

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
    real = SimpleNamespace(KVTransferThread=worker.KVTransferThread, start=worker.KVTransferThread.start,
                           LookupKeyServer=worker.LookupKeyServer, LookupKeyClient=scheduler.LookupKeyClient)
    worker.get_ip = lambda: "127.0.0.1"
    worker.KVTransferThread.start = lambda thread: thread.ready_event.set()
    worker.LookupKeyServer = lambda *arguments, **more: None
    scheduler.LookupKeyClient = DirectLookup
    try:
        DirectLookup.protocol = release.store_module("protocol")
    except ModuleNotFoundError:  # releases up to 0.22 have no encoding of their own
        DirectLookup.protocol = None
    folder = tempfile.TemporaryDirectory()  # lives as long as what is returned
    return SimpleNamespace(
        real=real, raised=release.raised, worker=worker, scheduler=scheduler, data=release.store_module("data"),
        connector=release.store_module("connector"), folder=folder, written=None,
        interface=release.module("vllm.v1.kv_cache_interface"), utils=release.module("vllm.v1.core.kv_cache_utils"),
        config=release.module("vllm.config"), output=release.module("vllm.v1.core.sched.output"),
        manager=release.module("vllm.v1.core.kv_cache_manager"), pool=release.module("vllm.v1.core.block_pool"),
        request=release.module("vllm.v1.request"), sampling=release.module("vllm.sampling_params"),
        outputs=release.module("vllm.v1.outputs"), layout=_optional(release, "vllm.v1.kv_cache_layout"))


def _optional(release: Release, name: str):
    try:
        module = release.module(name)
    except ModuleNotFoundError:
        return None
    return None if isinstance(module, InertModule) else module


def write_store_config(vllm: SimpleNamespace, store_config: dict) -> None:
    """Makes the store's configuration file that the workers of the next instance read."""
    path = os.path.join(vllm.folder.name, "mooncake.json")
    if vllm.written != store_config:  # writing takes longer than the rest of a small case
        with open(path, "w") as file:
            json.dump(store_config, file)
        vllm.written = store_config
    os.environ["MOONCAKE_CONFIG_PATH"] = path


def group_spec(vllm: SimpleNamespace, group: dict, layers: str = ""):
    """The release's KV cache spec of one group; `layers` begins the names of a uniform group's layers."""
    interface, kind, block_size = vllm.interface, group.get("kind"), group.get("block_size")
    attention = dict(block_size=block_size, num_kv_heads=group.get("num_kv_heads", 1),
                     head_size=group.get("head_size", 8), dtype=DTYPES[group.get("dtype", "bfloat16")])
    window = dict(sliding_window=group.get("sliding_window"))
    if kind == "full":
        return interface.FullAttentionSpec(**attention)
    if kind == "full_with_window":
        return interface.FullAttentionSpec(**attention, **window)
    if kind == "sliding_window":
        return interface.SlidingWindowSpec(**attention, **window, **_retained(interface.SlidingWindowSpec, group))
    if kind == "mla":
        return interface.MLAAttentionSpec(**{**attention, "num_kv_heads": 1})
    if kind == "sliding_window_mla":
        return interface.SlidingWindowMLASpec(**{**attention, "num_kv_heads": 1}, **window,
                                              **_retained(interface.SlidingWindowMLASpec, group))
    if kind == "chunked_local":
        return interface.ChunkedLocalAttentionSpec(**attention, attention_chunk_size=group["attention_chunk_size"])
    if kind == "mamba":
        return interface.MambaSpec(block_size=block_size, shapes=((4, 4),), dtypes=(DTYPES["float32"],),
                                   mamba_cache_mode=group.get("mamba_cache_mode", "align"))
    if kind == "uniform":
        inner = {f"{layers}u{number}": group_spec(vllm, {**spec, "block_size": block_size})
                 for number, spec in enumerate(group["inner"])}
        return interface.UniformTypeKVCacheSpecs(block_size=block_size, kv_cache_specs=inner)
    raise BadCase(f"given.groups.kind: {kind!r} is unknown")


def _retained(cls, group: dict) -> dict:
    retained = group.get("extra_retained_tokens")
    if not retained:
        return {}
    if not known_fields(cls, extra_retained_tokens=retained):
        raise NotHere("given.groups.extra_retained_tokens: the release does not know it")
    return {"extra_retained_tokens": retained}


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
        self.workers: dict[int, Any] = {}
        self.block_bytes: list[int] = []  # of each layer's cache, by the number of its storage
        self._set_environment()
        self.world = store_standin.new_world()
        self.kv_cache_config = self._kv_cache_config()
        # As the engine core does: one layer's spec stands for a uniform group on the scheduler's side.
        self._scheduler_kv_cache_config = vllm.utils.generate_scheduler_kv_cache_config([self.kv_cache_config])
        self._transfer_config = vllm.config.KVTransferConfig(
            kv_connector="MooncakeStoreConnector", kv_role=given.get("kv_role", "kv_both"),
            kv_connector_extra_config=dict(given.get("extra_config") or {}))
        self._resolve_alignment()

    def _set_environment(self) -> None:
        given_environment = self.given.get("env") or {}
        check_members("given.env", given_environment, " ".join(ENVIRONMENT))
        for name in ENVIRONMENT:
            os.environ.pop(name, None)
        os.environ.update(given_environment)
        write_store_config(self.vllm, self.given.get("store_config") or STORE_CONFIG)

    def _kv_cache_config(self):
        interface = self.vllm.interface
        groups = []
        for number, group in enumerate(self.given["groups"]):
            check_members(f"given.groups[{number}]", group, GROUP_MEMBERS)
            first = not any(each["kind"] == "uniform" for each in self.given["groups"][:number])
            spec = group_spec(self.vllm, group, "" if first else f"g{number}.")
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
        given, match_unit = self.given, self.given.get("prefix_match_unit")
        drafter = Attributes(use_eagle=lambda: True, use_eagle_block_drop=lambda: True)
        return Attributes(
            model_config=Attributes(
                model=given.get("model", "model"), max_model_len=1 << 20, use_mla=bool(given.get("use_mla")),
                enable_sleep_mode=False, enable_cumem_allocator=False, is_hybrid=False,
                get_num_layers=lambda parallel: 2, get_total_num_kv_heads=lambda: given.get("total_kv_heads", 8)),
            cache_config=Attributes(
                block_size=given["groups"][0]["block_size"], num_gpu_blocks=self.num_blocks, enable_prefix_caching=True,
                prefix_match_unit=match_unit, hash_block_size=match_unit,  # the name up to 0.28 is the second
                get_resolved_kv_cache_layout=self._kv_cache_layout),
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

    def add_scheduler(self, with_pool: bool = True):
        """Builds the release's scheduler side, with a block pool where the release binds one (only saves use it)."""
        self.scheduler = self._build(self.vllm.scheduler.MooncakeStoreScheduler, 0, self._scheduler_kv_cache_config)
        if with_pool and hasattr(self.scheduler, "bind_gpu_block_pool"):
            if self.num_blocks > POOL_BLOCKS_MAX:
                raise NotHere(f"given.num_gpu_blocks: more than {POOL_BLOCKS_MAX} blocks")
            block_size = getattr(self.scheduler, "_hash_block_size", self.given["groups"][0]["block_size"])
            self.scheduler.bind_gpu_block_pool(self.vllm.pool.BlockPool(self.num_blocks, True, block_size))
        return self.scheduler

    def _build(self, cls, rank: int, kv_cache_config):
        arguments = [self.vllm_config(rank)]
        if "kv_cache_config" in inspect.signature(cls.__init__).parameters:  # 0.22 on
            arguments.append(kv_cache_config)
        return cls(*arguments)

    def register_caches(self, rank: int, page_bytes: int | None = None) -> list[str]:
        """Registers one cache a layer, page_bytes a block (small ones without), only to give every block an address.
        Returns the names of the layers, in the order of their numbers as storages."""
        worker, sharded = self.workers[rank], self._is_sharded(self.workers[rank])
        caches: dict[str, Tensor] = {}
        for group in self.kv_cache_config.kv_cache_groups:
            for name in group.layer_names:
                if name not in caches:  # the layers of two uniform groups have the same names
                    caches[name] = self._cache(len(caches), group.kv_cache_spec.block_size, sharded, page_bytes)
        self.block_bytes = [cache.nbytes // self.num_blocks for cache in caches.values()]
        worker.register_kv_caches(caches)
        return list(caches)

    def _is_sharded(self, worker) -> bool:
        databases = getattr(worker, "token_dbs", None)
        cls = getattr(self.vllm.data, "TPShardedStoreLayout", None)  # 0.30 on
        return bool(databases and cls and isinstance(databases[0].store_layout, cls))

    def _cache(self, number: int, block_size: int, sharded: bool, page_bytes: int | None):
        if not sharded:
            shape: tuple[int, ...] = (self.num_blocks, page_bytes or block_size * 64)
            return contiguous_tensor(Storage(number, shape[0] * shape[1]), DTYPES["uint8"], shape)
        heads = self.given["total_kv_heads"] // self.tp
        content_bytes = page_bytes // (heads * block_size) if page_bytes else 8
        if page_bytes and content_bytes * heads * block_size != page_bytes:
            raise BadCase(f"given.page_bytes: {page_bytes} is no multiple of {heads} heads of {block_size} tokens")
        storage = Storage(number, self.num_blocks * heads * block_size * content_bytes)
        if self.given.get("kv_cache_layout") == "LBNHC":
            tokens_outside = (self.num_blocks, block_size, heads, content_bytes)
            return contiguous_tensor(storage, DTYPES["uint8"], tokens_outside).permute(0, 2, 1, 3)
        return contiguous_tensor(storage, DTYPES["uint8"], (self.num_blocks, heads, block_size, content_bytes))

    def check_connector(self) -> None:
        """What the release's connector refuses before it builds its scheduler side or its workers (0.22 on)."""
        check = getattr(self.vllm.connector.MooncakeStoreConnector, "_validate_kv_cache_config", None)
        if check is None or self._is_capacity_only():
            return
        vllm_config = self.vllm_config(0)
        # Up to 0.29 a Mamba group counts as aligned if its blocks are the configured ones, as the engine sees to.
        vllm_config.cache_config.block_size = next(
            (group["block_size"] for group in self.given["groups"] if group["kind"] == "mamba"),
            vllm_config.cache_config.block_size)
        check(vllm_config, self._scheduler_kv_cache_config)

    def _is_capacity_only(self) -> bool:
        extra_config = self.given.get("extra_config") or {}
        return (self.given.get("kv_role") == "kv_consumer" and not extra_config.get("enable_lookup", True)
                and not extra_config.get("save_decode_cache", False))

    def block_sizes(self) -> tuple[int, int]:
        """Scheduler block and hash block in tokens, as rank 0 resolved them; 0.21 hashes per scheduler block."""
        worker = self.workers[0]
        return worker.block_size, getattr(worker, "hash_block_size", worker.block_size)

    def request(self, name: str, num_tokens: int, block_hashes: list[str]):
        """The release's Request of num_tokens tokens that has these block hashes."""
        hash_block_size = self.block_sizes()[1]
        if num_tokens // hash_block_size > len(block_hashes):
            raise BadCase(f"given: request {name!r} of {num_tokens} tokens has {len(block_hashes)} block hashes")
        hashes = [self.vllm.utils.BlockHash(bytes.fromhex(block_hash)) for block_hash in block_hashes]

        def hasher(request):
            count = request.num_tokens // hash_block_size
            if count > len(hashes):  # tokens were appended
                raise BadCase(f"given: request {name!r} of {request.num_tokens} tokens has {len(hashes)} block hashes")
            return hashes[len(request.block_hashes):count]

        cls = self.vllm.request.Request
        more = {"eos_token_id": None} if "eos_token_id" in inspect.signature(cls.__init__).parameters else {}
        return cls(request_id=name, prompt_token_ids=list(range(1, num_tokens + 1)), pooling_params=None,
                   sampling_params=self.vllm.sampling.SamplingParams(max_tokens=4096), block_hasher=hasher, **more)

    def blocks(self, block_ids: list[list[int]]):
        """The core's form of a block table, one list a group."""
        return self.vllm.manager.KVCacheBlocks(tuple(
            [self.vllm.utils.KVCacheBlock(block_id=block) for block in group] for group in block_ids))
