# SPDX-License-Identifier: Apache-2.0
"""A vLLM connector that delivers a whole prompt's KV out of band, as a peer-to-peer connector would.

The scheduler side claims every prompt token that is not cached locally, asynchronously; the worker side has the bytes
written into the allocated blocks and reports the request as received. It saves nothing. MultiConnector imports this
module by name, after a release was made importable.
"""
from collections.abc import Callable
from dataclasses import dataclass, field

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    SupportsHMA,
)

WANTED = "do_remote_prefill"
deliver: dict[int, Callable] = {}  # rank -> function(request name, blocks, first token, end) that fills its memory


@dataclass
class Deliveries(KVConnectorMetadata):
    items: list[tuple[str, list[int], int, int]] = field(default_factory=list)  # arguments of `deliver`


class OutOfBandConnector(KVConnectorBase_V1, SupportsHMA):
    def __init__(self, vllm_config, role, kv_cache_config=None):
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        self._pending: list[tuple[str, list[int], int, int]] = []
        self._received: set[str] = set()
        if role == KVConnectorRole.WORKER:
            self._rank = vllm_config.parallel_config.rank

    # scheduler side
    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        missing = request.num_prompt_tokens - num_computed_tokens
        return (missing, True) if (request.kv_transfer_params or {}).get(WANTED) and missing > 0 else (0, False)

    def update_state_after_alloc(self, request, blocks, num_external_tokens):
        if num_external_tokens > 0 and (request.kv_transfer_params or {}).get(WANTED):
            end = request.num_prompt_tokens
            self._pending.append((request.request_id, list(blocks.get_block_ids()[0]), end - num_external_tokens, end))
            request.kv_transfer_params[WANTED] = False

    def build_connector_meta(self, scheduler_output):
        items, self._pending = self._pending, []
        return Deliveries(items)

    def request_finished(self, request, block_ids):
        return False, None

    def request_finished_all_groups(self, request, block_ids):
        return False, None

    # worker side
    def start_load_kv(self, forward_context, **kwargs):
        for item in self._get_connector_metadata().items:
            deliver[self._rank](*item)
            self._received.add(item[0])

    def get_finished(self, finished_req_ids):
        received, self._received = self._received, set()
        return None, received

    def wait_for_layer_load(self, layer_name):
        return

    def save_kv_layer(self, layer_name, kv_layer, attn_metadata, **kwargs):
        return

    def wait_for_save(self):
        return
