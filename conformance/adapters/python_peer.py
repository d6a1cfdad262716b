# SPDX-License-Identifier: Apache-2.0
# The Python side of `mooncheck bench hash`: the same block hash chains with pickle, hashlib, cbor2 and xxhash, timed.
#
# One JSON object a line on stdin: {"algo", "block_size", "tokens", "runs"}; token i is i * 70217 mod 151936, NONE_HASH is the digest of
# the seed "0". One a line on stdout: {"ns", "last"}: median CPU time of hashing the whole prompt, last block hash. The work for each
# block is that of an engine: look for extra keys, take the slice, make the tuple, serialise, digest, keep the hash. Answers {"missing": module} once
# and ends when a module is not installed.
import hashlib
import json
import pickle
import statistics
import sys
import time

try:
    import cbor2
    import xxhash
except ImportError as missing:
    print(json.dumps({"missing": missing.name}), flush=True)
    sys.exit(0)

ALGORITHMS = {
    "sha256": lambda value: hashlib.sha256(pickle.dumps(value, protocol=5)).digest(),
    "sha256_cbor": lambda value: hashlib.sha256(cbor2.dumps(value, canonical=True)).digest(),
    "xxhash": lambda value: xxhash.xxh3_128_digest(pickle.dumps(value, protocol=5)),
    "xxhash_cbor": lambda value: xxhash.xxh3_128_digest(cbor2.dumps(value, canonical=True)),
}


class Request:
    def __init__(self, tokens):
        self.tokens = tokens
        self.lora = None
        self.items = []
        self.salt = None
        self.embeds = None


def extra_keys(request, start):
    keys = []
    if request.lora is not None:
        keys.append(("lora", *request.lora))
    keys.extend(("mm", identifier, offset - start) for identifier, offset in request.items)
    if start == 0 and request.salt:
        keys.append(("cache_salt", request.salt))
    if request.embeds is not None:
        keys.append(("prompt_embeds", request.embeds))
    return tuple(keys) if keys else None


def chain(digest, none_hash, request, block_size):
    hashes = []
    parent = none_hash
    for start in range(0, len(request.tokens) - block_size + 1, block_size):
        tokens = tuple(request.tokens[start:start + block_size])
        parent = digest((parent, tokens, extra_keys(request, start)))
        hashes.append(parent)
    return hashes


for line in sys.stdin:
    asked = json.loads(line)
    digest = ALGORITHMS[asked["algo"]]
    request = Request([i * 70217 % 151936 for i in range(asked["tokens"])])
    none_hash = digest("0")
    times = []
    for _ in range(asked["runs"]):
        before = time.process_time_ns()
        hashes = chain(digest, none_hash, request, asked["block_size"])
        times.append(time.process_time_ns() - before)
    print(json.dumps({"ns": int(statistics.median(times)), "last": hashes[-1].hex()}), flush=True)
