# SPDX-License-Identifier: Apache-2.0
"""Suite keys: pool keys, chunk enumeration and group ids of a release."""
import inspect

from release import BadCase, NotHere, Release, check_members

METADATA = "model_name tp_rank pcp_rank dcp_rank pp_rank group_id cache_prefix store_namespace"
CHUNK_OPTIONS = ("chunk_mask", "put_step", "put_step_rank")  # 0.25 on


class KeysSuite:
    def __init__(self, release: Release):
        self._release = release
        self._data = release.store_module("data")

    def answer(self, given: dict) -> dict:
        operations = {"pool_key": self._pool_key, "chunk_keys": self._chunk_keys,
                      "mooncake_group_id": self._group_id}
        if given.get("op") not in operations:
            raise BadCase(f"given.op: {given.get('op')!r} is unknown")
        return operations[given["op"]](given)

    def _metadata(self, given: dict):
        check_members("given.metadata", given["metadata"], METADATA)
        known = inspect.signature(self._data.KeyMetadata.__init__).parameters
        for name in given["metadata"]:
            if name not in known:
                raise NotHere(f"given.metadata.{name}: this release does not know it")
        return self._data.KeyMetadata(**given["metadata"])

    def _pool_key(self, given: dict) -> dict:
        check_members("given", given, "op metadata chunk_hash override_ranks")
        metadata = self._metadata(given)
        answer = {"key": self._data.PoolKey(metadata, given["chunk_hash"]).to_string()}
        if hasattr(self._data.PoolKey, "build_prefix"):  # 0.25 on
            answer["prefix"] = self._data.PoolKey.build_prefix(metadata, **given.get("override_ranks", {}))
        return answer

    def _chunk_keys(self, given: dict) -> dict:
        check_members("given", given, "op metadata block_size hash_block_size token_len block_hashes mask_num "
                      + " ".join(CHUNK_OPTIONS))
        database_class = self._data.ChunkedTokenDatabase
        sizes = {"block_size": given["block_size"]}
        if "hash_block_size" in inspect.signature(database_class.__init__).parameters:  # 0.22 on
            sizes["hash_block_size"] = given.get("hash_block_size", given["block_size"])
        options = {name: given[name] for name in CHUNK_OPTIONS if name in given}
        known = inspect.signature(database_class.process_tokens).parameters
        for name in options:
            if name not in known:
                raise NotHere(f"given.{name}: this release does not know it")
        hashes = [bytes.fromhex(block_hash) for block_hash in given["block_hashes"]]
        database = database_class(self._metadata(given), **sizes)
        chunks = database.process_tokens(given["token_len"], hashes, given.get("mask_num", 0), **options)
        return {"chunks": [[start, end, self._key(database, found)] for start, end, found in chunks]}

    @staticmethod
    def _key(database, found) -> str:
        """Up to 0.24 the enumeration yields whole keys, later the hash that keys the chunk."""
        return found.to_string() if hasattr(found, "to_string") else database.key_for(found)

    def _group_id(self, given: dict) -> dict:
        check_members("given", given, "op metadata chunk_hash")
        worker = self._release.store_module("worker")
        if not hasattr(worker, "_make_mooncake_group_id"):
            raise NotHere("mooncake_group_id: releases before 0.28 have none")
        return {"group_id": worker._make_mooncake_group_id(self._metadata(given), given["chunk_hash"])}
