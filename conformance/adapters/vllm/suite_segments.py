# SPDX-License-Identifier: Apache-2.0
"""Suite segments: one rank registers its caches, and builds the buffer lists of chunks and of single blocks."""
from engine import COMMON_MEMBERS, Engine
from release import BadCase, NotHere, Release, check_members, error_answer
from torch_standin import DTYPES, Storage, Tensor, place_of

DTYPE_OF_ITEMSIZE = {1: DTYPES["uint8"], 2: DTYPES["float16"], 4: DTYPES["float32"], 8: DTYPES["float64"]}


class SegmentsSuite:
    def __init__(self, release: Release, vllm):
        self._release, self._vllm = release, vllm

    def answer(self, given: dict) -> dict:
        check_members("given", given, COMMON_MEMBERS + " rank storages layers requests single_blocks")
        engine = Engine(self._vllm, given)
        worker = engine.add_worker(given.get("rank", 0))
        storages = [Storage(number, storage["nbytes"]) for number, storage in enumerate(given["storages"])]
        try:
            worker.register_kv_caches(caches(given["layers"], storages))
        except Exception as error:
            if not self._release.raised(error):
                raise
            return {**error_answer(error), "registered_buffers": buffers(*zip(*worker.store.registered))}
        answer = {"registered_buffers": buffers(*zip(*worker.store.registered))}
        databases = worker.token_dbs if hasattr(worker, "token_dbs") else [worker.token_database]
        if hasattr(databases[0], "store_layout"):  # 0.30 on
            answer["layout"] = type(databases[0].store_layout).__name__
        answer["results"] = [self._result(databases, number, request)
                             for number, request in enumerate(given["requests"])]
        if given["single_blocks"] and hasattr(databases[0], "prepare_value_for_block"):  # 0.27 on
            answer["single_blocks"] = [buffers(*databases[0].prepare_value_for_block(block))
                                       for block in given["single_blocks"]]
        return answer

    def _result(self, databases, number: int, request: dict) -> dict:
        check_members(f"given.requests[{number}]", request, "group chunks block_ids shard_ids")
        database = databases[request.get("group", 0)]
        chunks = [tuple(chunk) for chunk in request["chunks"]]
        try:
            addresses, sizes, block_ids = prepare(database, chunks, request["block_ids"], request["shard_ids"])
        except Exception as error:
            if not self._release.raised(error):
                raise
            return error_answer(error)
        return {"segments": [buffers(*chunk) for chunk in zip(addresses, sizes, strict=True)],
                "block_ids": block_ids}


def prepare(database, chunks, block_ids: list[int], shard_ids: list[int]):
    """Addresses and sizes of each chunk and its block, with the call that the release has."""
    if hasattr(database, "store_layout"):  # 0.30 on
        return database.store_layout.prepare_values(chunks, block_ids, shard_ids)
    if hasattr(database, "prepare_values"):
        return database.prepare_values(chunks, block_ids)
    values = [database.prepare_value(start, end, block_ids) for start, end in chunks]
    return [value[0] for value in values], [value[1] for value in values], [value[2] for value in values]


def caches(layers: list[dict], storages: list[Storage]) -> dict[str, Tensor]:
    made = {}
    for number, layer in enumerate(layers):
        place = f"given.layers[{number}]"
        check_members(place, layer, "name storage byte_offset shape strides itemsize")
        if layer["itemsize"] not in DTYPE_OF_ITEMSIZE:
            raise BadCase(f"{place}.itemsize: {layer['itemsize']!r} is no element size")
        if layer["byte_offset"] % layer["itemsize"]:
            raise NotHere(f"{place}.byte_offset: a tensor starts at a whole element of its storage")
        storage = storages[layer["storage"]]
        last = sum((size - 1) * stride for size, stride in zip(layer["shape"], layer["strides"], strict=True))
        if 0 not in layer["shape"] and layer["byte_offset"] + (last + 1) * layer["itemsize"] > storage.nbytes():
            raise NotHere(f"{place}: a tensor ends inside its storage")
        made[layer["name"]] = Tensor(storage, DTYPE_OF_ITEMSIZE[layer["itemsize"]], layer["shape"], layer["strides"],
                                     layer["byte_offset"])
    return made


def buffers(addresses=(), sizes=()) -> list[dict]:
    """Addresses as places in storages."""
    places = [place_of(address) for address in addresses]
    return [{"tensor": tensor, "offset": offset, "size": size}
            for (tensor, offset), size in zip(places, sizes, strict=True)]
