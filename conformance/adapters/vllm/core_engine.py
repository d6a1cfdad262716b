# SPDX-License-Identifier: Apache-2.0
"""One vLLM instance that the release's core scheduler drives, with the connector's threads and its ZeroMQ lookup.

What is vLLM's: Scheduler, KVCacheManager, block hashing, Request, MooncakeStoreConnector in both roles with its
transfer threads and its lookup channel, MultiConnector, KVOutputAggregator. What is ours: the store (core_store.py),
the configuration (core_config.py), the connector that delivers prompts (out_of_band.py), and the model runner, which
writes payload.py's bytes where a model would write attention caches and checks every byte that vLLM takes for present.
"""
import contextlib
import inspect
import itertools
import os
import queue
import sys
import threading
import urllib.parse
from concurrent import futures
from types import SimpleNamespace
from typing import Any

import numpy
import zmq

import core_store
import payload
from core_config import CoreConfig, Shape
from core_store import WAIT_SECONDS, ByteStore, Client
from engine import STORE_CONFIG, write_store_config
from release import BadCase, NotHere, Release, Stuck
from suite_hash import engine_start
from torch_standin import DTYPES, Storage, contiguous_tensor


SOCKET_FOLDERS = 64


class _End:
    """A job whose handling ends the thread: the release's loop goes on after an Exception only."""

    def __getattr__(self, name):
        raise SystemExit


class Transfers:
    """The transfer threads of all ranks: how many jobs they were given, and how many they have handled."""

    def __init__(self, release: Release):
        self._release, self._changed = release, threading.Condition()
        self._given = self._handled = 0
        self._faults: list[Exception] = []
        self._threads: list[tuple[threading.Thread, queue.Queue]] = []

    def watch(self, worker) -> None:
        if hasattr(worker, "kv_recv_threads"):  # a pool of threads on one queue
            threads = [worker.kv_send_thread, *worker.kv_recv_threads]
        else:
            threads = [worker.kv_send_thread, worker.kv_recv_thread]
        threads = [thread for thread in threads if thread is not None]
        for jobs in {id(thread.request_queue): thread.request_queue for thread in threads}.values():
            self._count(jobs)
        for thread in threads:
            self._watch_thread(thread)

    def _count(self, jobs) -> None:
        put = jobs.put

        def counted(job):
            with self._changed:
                self._given += 1
            put(job)

        jobs.put = counted

    def _watch_thread(self, thread) -> None:
        handle = thread._handle_request

        def handled(job):
            try:
                handle(job)
            except Exception as error:
                if not self._release.raised(error):
                    self._faults.append(error)
                raise
            finally:
                with self._changed:
                    self._handled += 1
                    self._changed.notify_all()

        thread._handle_request = handled
        self._threads.append((thread, thread.request_queue))

    def wait(self) -> None:
        """Until every job is handled. Raises what went wrong on our side in one of them."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._handled == self._given, WAIT_SECONDS):
                raise Stuck(f"transfers: {self._given - self._handled} jobs are not done within {WAIT_SECONDS:g} s")
        if self._faults:
            raise self._faults[0]

    def end(self) -> None:
        for _, jobs in self._threads:
            jobs.put(_End())
        for thread, _ in self._threads:
            thread.join(WAIT_SECONDS)
            if thread.is_alive():
                raise Stuck(f"{thread.name}: does not end within {WAIT_SECONDS:g} s")
        for _, jobs in self._threads:
            jobs.unfinished_tasks = 0  # else the connector waits for the last jobs when it is closed


class Rank:
    """KV memory of one rank and its worker-role connector."""

    def __init__(self, instance: "Instance", rank: int):
        shape = instance.shape
        self.rank, self._heads, self._instance = rank, shape.heads_of(rank), instance
        self._allocate(shape)
        vllm_config = instance.config.vllm_config(rank)
        instance.set_rank(rank)
        self.connector = instance.parts.factory.KVConnectorFactory.create_connector(
            config=vllm_config, role=instance.parts.role.WORKER, kv_cache_config=instance.config.kv_cache)
        self.worker = store_child(self.connector).connector_worker
        self.connector.register_kv_caches(dict(zip(instance.shape.layer_names, self._tensors, strict=True)))

    def _allocate(self, shape: Shape) -> None:
        """One array a rank: layer, block, then head and token (or token and head), then the bytes of a cell."""
        inner = (shape.local_heads, shape.block_size)
        heads_outside = shape.layout == "LBHNC"
        physical = numpy.full((shape.num_layers, shape.num_blocks, *(inner if heads_outside else inner[::-1]),
                               payload.CELL_BYTES), payload.CANARY, dtype=numpy.uint8)
        self.memory = physical if heads_outside else physical.transpose(0, 1, 3, 2, 4)
        self._tensors = []
        for layer in range(shape.num_layers):
            number = self.rank * shape.num_layers + layer
            self._instance.store.memory[number] = memoryview(physical[layer].reshape(-1))
            tensor = contiguous_tensor(Storage(number, physical[layer].nbytes), DTYPES["bfloat16"],
                                       (*physical.shape[1:-1], payload.CELL_BYTES // 2))
            self._tensors.append(tensor if heads_outside else tensor.permute(0, 2, 1, 3))

    def _places(self, blocks: list[int], start: int, end: int):
        position = numpy.arange(start, end)
        return numpy.asarray(blocks)[position // self._instance.shape.block_size], \
            position % self._instance.shape.block_size

    def write(self, blocks: list[int], cells: numpy.ndarray, start: int, end: int) -> None:
        """What the forward pass over tokens [start, end) leaves in this rank's memory."""
        block, offset = self._places(blocks, start, end)
        self.memory[:, block, :, offset] = cells[start:end][:, :, self._heads]

    def wrong_bytes(self, blocks: list[int], cells: numpy.ndarray, end: int) -> int:
        """Over tokens [0, end)."""
        block, offset = self._places(blocks, 0, end)
        return int((self.memory[:, block, :, offset] != cells[:end][:, :, self._heads]).sum())

    def poison(self) -> None:
        """Makes a later check fail unless the bytes are loaded or computed again."""
        self.memory[:] = payload.CANARY

    def step(self, scheduled, forward):
        """The worker's part of one engine step, in the release's order. Returns the connector's output."""
        connector = self.connector
        connector.handle_preemptions(scheduled.kv_connector_metadata)
        connector.bind_connector_metadata(scheduled.kv_connector_metadata)
        load_first = not hasattr(scheduled, "has_sync_kv_loads") or scheduled.has_sync_kv_loads
        if load_first:
            connector.start_load_kv(None)
        forward(self)
        if not load_first:
            connector.start_load_kv(None)
        connector.wait_for_save()
        output = self._instance.vllm.outputs.KVConnectorOutput()
        if hasattr(connector, "get_transfer_results"):  # 0.31 on
            results = connector.get_transfer_results(scheduled.finished_req_ids)
            sent, received = results.finished_sending, results.finished_recving
            output.failed_recving = results.failed_recving
        else:
            sent, received = connector.get_finished(scheduled.finished_req_ids)
        output.finished_sending, output.finished_recving = sent or None, received or None
        output.invalid_block_ids = connector.get_block_ids_with_load_errors()
        output.kv_connector_worker_meta = connector.build_connector_worker_meta()
        connector.clear_connector_metadata()
        return output


class Runner:
    """Keeps block tables as a worker does; writes and checks KV bytes instead of computing attention."""

    def __init__(self, instance: "Instance"):
        self._instance, self._ranks = instance, instance.ranks
        self._aggregator = instance.parts.utils.KVOutputAggregator.from_connector(self._ranks[0].connector,
                                                                                 instance.shape.tp)
        self._blocks: dict[str, list[int]] = {}
        self._computed: dict[str, int] = {}
        self.wrong_bytes = 0

    def step(self, scheduled):
        for name in scheduled.finished_req_ids:
            self._blocks.pop(name, None)
            self._computed.pop(name, None)
        starting = []
        for new in scheduled.scheduled_new_reqs:
            self._blocks[new.req_id] = list(new.block_ids[0])
            self._computed[new.req_id] = new.num_computed_tokens
            starting.append(new.req_id)
        cached = scheduled.scheduled_cached_reqs
        for index, name in enumerate(cached.req_ids):
            fresh = cached.new_block_ids[index]
            self._computed[name] = cached.num_computed_tokens[index]
            if name in cached.resumed_req_ids:
                self._blocks[name] = list(fresh[0])
                starting.append(name)
            elif fresh:
                self._blocks[name] += fresh[0]
        counts = scheduled.num_scheduled_tokens
        names = list(counts)
        sampled = [self._sample(name, counts[name]) for name in names]
        make = self._instance.vllm.outputs.ModelRunnerOutput
        return self._aggregator.aggregate([make(
            req_ids=names, req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=sampled,
            kv_connector_output=rank.step(scheduled, lambda r: self._forward(r, counts, starting)))
            for rank in self._ranks])

    def _forward(self, rank: Rank, counts: dict[str, int], starting: list[str]) -> None:
        """Computes the step's tokens. What requests that start have cached must be there then: it may be another
        request's work of the same step."""
        for name, count in counts.items():
            start = self._computed[name]
            rank.write(self._blocks[name], self._instance.cells(name), start, start + count)
        for name in starting:
            self.wrong_bytes += rank.wrong_bytes(self._blocks[name], self._instance.cells(name), self._computed[name])

    def _sample(self, name: str, count: int) -> list[int]:
        tokens = self._instance.requests[name].all_token_ids
        if self._computed[name] + count < len(tokens):
            return []
        return [self._instance.texts[name].next_token(tokens)]


class Instance:
    """The instance of a case. To be used as a context: its threads and sockets are its own."""

    def __init__(self, release: Release, vllm: SimpleNamespace, parts: SimpleNamespace, given: dict):
        if "non_block" not in inspect.signature(vllm.real.LookupKeyClient.lookup).parameters:
            raise NotHere("the release's lookup cannot be asynchronous (from 0.24 on it can)")
        self.vllm, self.parts, self.given, self.shape = vllm, parts, given, Shape(given)
        self.config = CoreConfig(vllm, given, self.shape)
        self.requests: dict = {}
        self.texts: dict[str, payload.Text] = {}
        self.asked: list[dict] = []  # questions of the core to the connector since last taken
        self.lookups_sent: list[futures.Future] = []
        self._pending_lookups: list[futures.Future] = []
        self._blocks: dict[str, tuple[str, int]] = {}  # request and number of each block hash that was looked for
        self._where = payload.places(self.shape.num_layers, self.shape.kv_heads)
        self._transfers = Transfers(release)
        self.store = ByteStore(vllm.real.KVTransferThread, given.get("stored_before") or [], self._content_of)
        self.store.lookups_raise = given.get("exist_raises", False)
        if not (given.get("extra_config") or {}).get("lookup_async", False):
            self.store.lookup_gate.open()  # the core waits for every answer inside its step
        self.ranks: list[Rank] = []
        self.lookup_ends = SimpleNamespace(clients=[], servers=[])  # ends of the lookup channel, as they are made

    def __enter__(self) -> "Instance":
        try:
            self._start()
        except Exception:
            self._end()
            raise
        return self

    def __exit__(self, kind, *error) -> None:
        if kind is None or issubclass(kind, Exception):  # after Stuck the process ends
            self._end()

    def _start(self) -> None:
        core_store.current = self.store
        with self._environment(), self.parts.real_threads(self.lookup_ends):
            self._hasher = self._start_hashing()
            for number in range(self.shape.tp):
                self.ranks.append(Rank(self, number))
                self._transfers.watch(self.ranks[-1].worker)
            self.runner = Runner(self)
            self.scheduler = self._make_scheduler()
        child = store_child(self.scheduler.connector)
        self.client = child.connector_scheduler.client
        self._watch(child)
        if self.given.get("behind_multi_connector"):
            for rank in self.ranks:
                self.parts.out_of_band().deliver[rank.rank] = self._delivery(rank)

    def _end(self) -> None:
        """Ends every thread of the instance and closes its sockets."""
        self.store.lookup_gate.open()
        self.store.transfer_gate.open()
        self._wait_for_lookups(self.lookups_sent)
        self._transfers.end()
        for rank in self.ranks:
            rank.connector.shutdown()
        for client in self.lookup_ends.clients:
            client.executor.shutdown(wait=True)
            client.socket.close(linger=0)
        for server in self.lookup_ends.servers:
            self._end_lookup_server(server)

    def _end_lookup_server(self, server) -> None:
        """The server looks whether to go on after each message; it answers one that it does not know."""
        server.running = False
        with self.parts.sockets.socket(zmq.REQ) as socket:
            socket.linger = 0
            socket.connect(f"ipc://{server._ipc_path}")
            socket.send(b"end")
            server.thread.join(WAIT_SECONDS)
        if server.thread.is_alive():
            raise Stuck(f"lookup server: does not end within {WAIT_SECONDS:g} s")
        server.close()

    @contextlib.contextmanager
    def _environment(self):
        # A socket's file may vanish a little after the socket: the next case uses another folder.
        folder = os.path.join(self.vllm.folder.name, f"sockets{next(self.parts.numbers) % SOCKET_FOLDERS}")
        os.makedirs(folder, exist_ok=True)
        write_store_config(self.vllm, STORE_CONFIG)
        values = {"VLLM_RPC_BASE_PATH": folder, "VLLM_USE_V2_MODEL_RUNNER": "1"}
        kept = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in kept.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def _start_hashing(self):
        function = self.parts.hashing.get_hash_fn_by_name("sha256")
        with engine_start({"python_hash_seed": "0"}):
            self.vllm.utils.init_none_hash(function)
        return self.vllm.utils.get_request_block_hasher(self.shape.block_size, function)

    def set_rank(self, rank: int) -> None:
        """Process groups are plain numbers."""
        worker, tp = self.vllm.worker, self.shape.tp
        one = SimpleNamespace(world_size=1, rank_in_group=0)
        worker.get_tensor_model_parallel_rank = lambda: rank
        worker.get_tensor_model_parallel_world_size = lambda: tp
        worker.get_pcp_group = worker.get_dcp_group = lambda: one

    def _make_scheduler(self):
        scheduler = self.parts.scheduler.Scheduler(
            vllm_config=self.config.vllm_config(0), kv_cache_config=self.config.kv_cache,
            structured_output_manager=object.__new__(self.parts.structured.StructuredOutputManager),
            block_size=self.shape.block_size, hash_block_size=self.shape.block_size, log_stats=False)
        scheduler.connector.bind_gpu_block_pool(scheduler.kv_cache_manager.block_pool)
        return scheduler

    def _watch(self, child) -> None:
        """Notes the core's questions and the lookups that are handed to the client's thread."""
        offer, submit = child.get_num_new_matched_tokens, self.client.executor.submit

        def get_num_new_matched_tokens(request, computed):
            matched, load_async = offer(request, computed)
            self.asked.append({"req": request.request_id, "num_tokens": request.num_tokens, "num_computed": computed,
                               "result": matched, "load_async": load_async})
            return matched, load_async

        def submitted(*arguments):
            future = submit(*arguments)
            self.lookups_sent.append(future)
            self._pending_lookups.append(future)
            return future

        child.get_num_new_matched_tokens = get_num_new_matched_tokens
        self.client.executor.submit = submitted

    def _delivery(self, rank: Rank):
        return lambda name, blocks, start, end: rank.write(blocks, self.cells(name), start, end)

    def cells(self, name: str) -> numpy.ndarray:
        """KV cells of all tokens that a request has now."""
        return self.texts[name].cells(self.requests[name].all_token_ids)

    def _content_of(self, key: str) -> bytes:
        """What a key promises: the bytes of the block that has its hash, on the heads of its shard."""
        name, index = self._block_of(key.rpartition("@")[2])
        block = self.cells(name)[index * self.shape.block_size:(index + 1) * self.shape.block_size]
        return self._object(block[:, :, self._heads_of_key(key)])

    def _block_of(self, block_hash: str) -> tuple[str, int]:
        if block_hash not in self._blocks:
            self._blocks = {each.hex(): (name, index) for name, request in self.requests.items()
                            for index, each in enumerate(request.block_hashes)}
        if block_hash not in self._blocks:
            raise ValueError(f"no request has a block of the hash {block_hash}")
        return self._blocks[block_hash]

    def _heads_of_key(self, key: str) -> list[int]:
        """The heads of a store shard, or of the ranks that share a key."""
        parts = dict(part.split(":", 1) for part in key.split("@") if ":" in part)
        shards = int(parts.get("store_tp", min(self.shape.tp, self.shape.kv_heads)))
        count = self.shape.kv_heads // shards
        return list(range(int(parts["tp_rank"]) * count, (int(parts["tp_rank"]) + 1) * count))

    def _object(self, cells: numpy.ndarray) -> bytes:
        """Cells (token, layer, head, byte) in the order of the layout."""
        return cells.transpose((1, 2, 0, 3) if self.shape.layout == "LBHNC" else (1, 0, 2, 3)).tobytes()

    # -- what a script does
    def add(self, name: str, tokens: list[int] | None, max_tokens: int, delivered: bool = False) -> None:
        if name in self.requests:
            raise BadCase(f"given: request {name!r} is there already")
        if not tokens:
            raise BadCase(f"given: request {name!r} has no prompt")
        extra = {"kv_transfer_params": {"do_remote_prefill": True}} if delivered else None
        parameters = self.vllm.sampling.SamplingParams(max_tokens=max_tokens, ignore_eos=True, extra_args=extra)
        request = self.vllm.request.Request(
            request_id=name, prompt_token_ids=tokens, sampling_params=parameters, pooling_params=None,
            block_hasher=self._hasher)
        self.requests[name], self.texts[name] = request, payload.Text(self._where)
        self.scheduler.add_request(request)

    def abort(self, name: str) -> None:
        self.scheduler.finish_requests(name, self.vllm.request.RequestStatus.FINISHED_ABORTED)

    def reset_local_prefix_cache(self) -> None:
        if self.scheduler.kv_cache_manager.reset_prefix_cache():
            for rank in self.ranks:
                rank.poison()

    def _waiting(self) -> list[futures.Future]:
        """Lookups without an answer that were not cancelled, the oldest first."""
        self._pending_lookups = [future for future in self._pending_lookups if not future.done()]
        return self._pending_lookups

    def answer_lookups(self, count: int | None = None) -> None:
        """Lets waiting lookups be answered, the oldest first, and waits until the answers have arrived."""
        for future in self._waiting()[:count]:
            self.store.lookup_gate.let_one_through()
            self._wait_for_lookups([future])
            self.store.lookup_gate.close()
        self._settle_lookups()

    def _settle_lookups(self) -> None:
        """Until the oldest lookup that waits has reached the store; the others then wait behind it, in order."""
        for future in self._waiting()[:1]:
            self.store.lookup_gate.wait_for_call(future)

    @staticmethod
    def _wait_for_lookups(waiting: list[futures.Future]) -> None:
        if futures.wait(waiting, WAIT_SECONDS).not_done:
            raise Stuck(f"lookup: no answer within {WAIT_SECONDS:g} s")

    def step(self):
        """One step of the engine, and then its transfers. Returns what the core scheduled."""
        scheduled = self.scheduler.schedule()
        preempted = sorted(scheduled.preempted_req_ids or ())
        counts = dict(scheduled.num_scheduled_tokens)
        output = self.runner.step(scheduled)
        self.scheduler.update_from_output(scheduled, output)
        self.store.transfer_gate.open()
        self._transfers.wait()
        self.store.transfer_gate.close()
        self._settle_lookups()
        return counts, preempted

    def wrong_bytes(self) -> int:
        """In memory where vLLM takes them for present, and in what was put."""
        return self.runner.wrong_bytes + self.store.wrong_bytes

    def take_transfers(self) -> tuple[list[dict], list[dict], list[dict]]:
        """Existence checks before saving, puts and gets of all ranks since the last call, by rank."""
        checks: list[dict] = []
        puts: list[dict] = []
        gets: list[dict] = []
        for client in self.store.clients:
            for all_of_them, taken in zip((checks, puts, gets), client.take(), strict=True):
                all_of_them += taken
        return checks, puts, gets


def store_child(connector):
    """The MooncakeStoreConnector itself, or the one inside a MultiConnector."""
    for child in getattr(connector, "_connectors", [connector]):
        if hasattr(child, "connector_worker"):
            return child
    raise RuntimeError("no store connector")


def shared_context() -> tuple[zmq.Context, Any]:
    """A ZeroMQ context of all cases (ending one sometimes takes for ever), and zmq as the connector sees it then."""
    sockets = zmq.Context()

    class Zmq:
        Context = staticmethod(lambda: sockets)

        def __getattr__(self, name):
            return getattr(zmq, name)

    return sockets, Zmq()


def stand_in_parse_url(release: Release) -> None:
    network: Any = release.module("vllm.utils.network_utils")
    if isinstance(network.parse_url, type):  # a placeholder: urllib3 is not installed
        network.parse_url = urllib.parse.urlsplit


def prepare_core(release: Release, vllm: SimpleNamespace) -> SimpleNamespace:
    """Imports what an instance on the core scheduler needs besides what engine.prepare() imports."""
    connectors = "vllm.distributed.kv_transfer.kv_connector."
    sockets, shared = shared_context()

    @contextlib.contextmanager
    def real_threads(lookup_ends):
        """Puts back the connector's threads and its lookup channel, which engine.prepare() replaces; notes its ends."""
        def noted(cls, ends):
            def make(*arguments):
                ends.append(cls(*arguments))
                return ends[-1]
            return make

        stood_in = [(vllm.worker.KVTransferThread, "start", vllm.real.start),
                    (vllm.worker, "LookupKeyServer", noted(vllm.real.LookupKeyServer, lookup_ends.servers)),
                    (vllm.scheduler, "LookupKeyClient", noted(vllm.real.LookupKeyClient, lookup_ends.clients)),
                    (vllm.worker, "zmq", shared), (sys.modules["mooncake.store"], "MooncakeDistributedStore", Client)]
        kept = [getattr(owner, name) for owner, name, _ in stood_in]
        for owner, name, value in stood_in:
            setattr(owner, name, value)
        try:
            yield
        finally:
            for (owner, name, _), value in zip(stood_in, kept, strict=True):
                setattr(owner, name, value)

    stand_in_parse_url(release)
    return SimpleNamespace(
        real_threads=real_threads, sockets=sockets, numbers=itertools.count(),
        factory=release.module(connectors + "factory"), role=release.module(connectors + "v1.base").KVConnectorRole,
        utils=release.module(connectors + "utils"),
        scheduler=release.module("vllm.v1.core.sched.scheduler"),
        structured=release.module("vllm.v1.structured_output"), hashing=release.module("vllm.utils.hashing"),
        out_of_band=lambda: release.module("out_of_band"))
