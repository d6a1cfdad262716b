# SPDX-License-Identifier: Apache-2.0
"""Configuration of an instance that the release's core scheduler drives.

The release's own configuration classes are filled from a case without an engine's checks, which need a platform and a
model.
"""
import dataclasses
from types import SimpleNamespace
from typing import Any

from engine import COMMON_MEMBERS, Attributes, known_fields
from payload import CELL_BYTES
from placeholders import StandinLimit
from release import BadCase, NotHere, check_members
from torch_standin import DTYPES

CORE_MEMBERS = COMMON_MEMBERS + " max_tokens_per_step behind_multi_connector stored_before exist_raises"
GROUP_MEMBERS = "kind block_size num_kv_heads num_layers layer_names"
KV_BYTES_MAX = 64 << 20  # of one instance
REQUESTS_MAX = 16  # of one step
STEP_TOKENS = 256
_classes: dict[type, tuple[type, dict, dict]] = {}


def bare(cls: type, **values):
    """A configuration object with its declared defaults. Reading what has none is a limit of this stand-in."""
    made_class, defaults, factories = _prepared(cls)
    made: Any = object.__new__(made_class)
    made.__dict__.update(defaults)
    for name, factory in factories.items():
        if name not in values:
            made.__dict__[name] = factory()
    made.__dict__.update(values)
    return made


def _prepared(cls: type) -> tuple[type, dict, dict]:
    """A subclass of `cls` that names what it lacks; its plain defaults, and the factories that work here."""
    if cls in _classes:
        return _classes[cls]

    def lacks(self, name):
        raise StandinLimit(f"{cls.__name__} here has no {name}")

    defaults, factories = {}, {}
    for field in dataclasses.fields(cls):
        default, factory = field.default, field.default_factory
        if type(default).__name__ == "FieldInfo":
            factory, default = default.default_factory, default.default
        if factory not in (None, dataclasses.MISSING):
            try:
                factory()
            except Exception:  # it needs a platform: nothing here reads it
                continue
            factories[field.name] = factory
        elif default is not dataclasses.MISSING and type(default).__name__ != "PydanticUndefinedType":
            defaults[field.name] = default
    made_class = type(cls.__name__, (cls,), {"__getattr__": lacks, "__module__": __name__})
    _classes[cls] = made_class, defaults, factories
    return _classes[cls]


class Shape:
    """Sizes of an instance, from `given`."""

    def __init__(self, given: dict):
        topology, groups = given["topology"], given["groups"]
        check_members("given.topology", topology, "tp pp pcp dcp")
        for name in ("pp", "pcp", "dcp"):
            if topology.get(name, 1) != 1:
                raise NotHere(f"given.topology.{name}: instances on the core scheduler are built for 1")
        for index, group in enumerate(groups):
            check_members(f"given.groups[{index}]", group, GROUP_MEMBERS)
        if len(groups) != 1 or groups[0]["kind"] != "full":
            raise NotHere("given.groups: instances on the core scheduler are built for one full attention group")
        for name in ("speculative", "retention_interval", "prefix_match_unit", "use_mla"):
            if given.get(name):
                raise NotHere(f"given.{name}: instances on the core scheduler are built without it")
        if given.get("delivered_out_of_band") and not given.get("behind_multi_connector"):
            raise BadCase("given.delivered_out_of_band: only behind a MultiConnector")
        self.tp, self.kv_heads = topology.get("tp", 1), given.get("total_kv_heads", 8)
        self.block_size = groups[0]["block_size"]
        self.layer_names = groups[0].get("layer_names") or [
            f"model.layers.{layer}.self_attn.attn" for layer in range(groups[0].get("num_layers", 1))]
        self.num_layers = len(self.layer_names)
        self.num_blocks, self.layout = given.get("num_gpu_blocks", 96), given.get("kv_cache_layout") or "LBHNC"
        self.local_heads = max(1, self.kv_heads // self.tp)
        if self.layout not in ("LBHNC", "LBNHC"):
            raise NotHere(f"given.kv_cache_layout: {self.layout!r} is not laid out here")
        if max(self.tp, self.kv_heads) % min(self.tp, self.kv_heads):
            raise NotHere("given.total_kv_heads: heads and ranks do not divide each other")
        if groups[0].get("num_kv_heads", self.local_heads) != self.local_heads:
            raise BadCase(f"given.groups[0].num_kv_heads: a rank has {self.local_heads} heads")
        if self.tp * self.layer_bytes() * self.num_layers > KV_BYTES_MAX:
            raise NotHere(f"given.num_gpu_blocks: more than {KV_BYTES_MAX >> 20} MiB of KV caches")

    def layer_bytes(self) -> int:
        """Bytes of one layer's cache on one rank."""
        return self.num_blocks * self.local_heads * self.block_size * CELL_BYTES

    def heads_of(self, rank: int) -> list[int]:
        first = rank * self.kv_heads // self.tp
        return list(range(first, first + self.local_heads))


class CoreConfig:
    """The configuration objects of one instance."""

    def __init__(self, vllm: SimpleNamespace, given: dict, shape: Shape):
        self._config, self._interface, self._given, self._shape = vllm.config, vllm.interface, given, shape
        self.transfer = self._transfer()
        self.kv_cache = self._kv_cache()

    def _transfer(self):
        """The store connector alone, or as the second child of a MultiConnector, after the out-of-band delivery."""
        role = self._given.get("kv_role", "kv_both")
        store = dict(kv_connector="MooncakeStoreConnector", kv_role=role,
                     kv_connector_extra_config=dict(self._given.get("extra_config") or {}))
        if not self._given.get("behind_multi_connector"):
            return self._config.KVTransferConfig(**store)
        delivery = dict(kv_connector="OutOfBandConnector", kv_role=role, kv_connector_module_path="out_of_band")
        return self._config.KVTransferConfig(kv_connector="MultiConnector", kv_role=role,
                                             kv_connector_extra_config={"connectors": [delivery, store]})

    def _kv_cache(self):
        shape, interface = self._shape, self._interface
        attention = interface.FullAttentionSpec(block_size=shape.block_size, num_kv_heads=shape.local_heads,
                                                head_size=CELL_BYTES // 4, dtype=DTYPES["bfloat16"])
        return interface.KVCacheConfig(**known_fields(
            interface.KVCacheConfig, num_blocks=shape.num_blocks, kv_cache_tensors=[],
            kv_cache_groups=[interface.KVCacheGroupSpec(shape.layer_names, attention)], kv_cache_layout=shape.layout,
            hash_block_size=shape.block_size))

    def vllm_config(self, rank: int):
        """VllmConfig of the worker of a rank; the scheduler's is that of rank 0."""
        config, given, shape = self._config, self._given, self._shape
        step_tokens = given.get("max_tokens_per_step", STEP_TOKENS)
        model = Attributes(
            model=given.get("model", "org/model-x"), max_model_len=1 << 16, uses_mrope=False, uses_xdrope=False,
            is_encoder_decoder=False, runner_type="generate", is_diffusion=False, supports_multimodal_inputs=False,
            multimodal_config=None, return_sampling_mask=False, is_hybrid=False, use_mla=False,
            enable_sleep_mode=False, enable_cumem_allocator=False, dtype="bfloat16",
            enable_return_routed_experts=False, is_multimodal_model=False, enforce_eager=True,
            get_num_layers=lambda parallel: shape.num_layers, get_total_num_kv_heads=lambda: shape.kv_heads)
        parallel = bare(config.ParallelConfig, tensor_parallel_size=shape.tp, pipeline_parallel_size=1, rank=rank,
                        world_size=shape.tp, data_parallel_index=0, data_parallel_rank=0, data_parallel_rank_local=0)
        cache = bare(config.CacheConfig, block_size=shape.block_size, num_gpu_blocks=shape.num_blocks,
                     enable_prefix_caching=True, prefix_caching_hash_algo="sha256", kv_cache_layout=shape.layout)
        scheduler = bare(config.SchedulerConfig, max_num_batched_tokens=step_tokens, max_num_seqs=REQUESTS_MAX,
                         max_num_scheduled_tokens=step_tokens, enable_chunked_prefill=True, async_scheduling=False,
                         disable_hybrid_kv_cache_manager=False)
        return bare(config.VllmConfig, model_config=model, parallel_config=parallel, cache_config=cache,
                    scheduler_config=scheduler, kv_transfer_config=self.transfer, instance_id="case")
