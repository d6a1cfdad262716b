# SPDX-License-Identifier: Apache-2.0
"""Suite hash: NONE_HASH and the block hash chain of one request, from a release's own Request and block hasher."""
import contextlib
import hashlib
import inspect
import os

from release import BadCase, NotHere, Release, check_members
from torch_standin import DTYPES, Storage, contiguous_tensor

MEMBERS = ("algo python_hash_seed block_size prompt_token_ids append_token_ids lora cache_salt mm_features "
           "prompt_embeds prompt_is_token_ids hash_lookahead_tokens share_equal_strings")
SEED = "PYTHONHASHSEED"
LISTED_BLOCKS_MAX = 64
PREIMAGE_BYTES_MAX = 1 << 16


class Digests:
    """Stands between `vllm.utils.hashing` and the digest libraries, and keeps what is hashed."""

    def __init__(self, hashing):
        self.seen: list[bytes] = []
        self._libraries = {name: getattr(hashing, name) for name in ("hashlib", "_xxhash")}
        for name in self._libraries:
            setattr(hashing, name, self)

    def sha256(self, content: bytes):
        self.seen.append(content)
        return self._libraries["hashlib"].sha256(content)

    def xxh3_128_digest(self, content: bytes) -> bytes:
        self.seen.append(content)
        return self._libraries["_xxhash"].xxh3_128_digest(content)

    def __getattr__(self, name):
        return getattr(self._libraries["hashlib"], name)

    def take(self) -> list[bytes]:
        taken, self.seen = self.seen, []
        return taken


class Strings:
    """The strings of a case as Python objects: separate ones, or one for equal texts."""

    def __init__(self, share_equal: bool):
        self._shared: dict[str, str] | None = {} if share_equal else None

    def object_of(self, text: str | None) -> str | None:
        if text is None:
            return None
        if self._shared is not None:
            return self._shared.setdefault(text, text)
        return (text + "*")[:-1]  # a new object, except for the texts of which Python itself keeps only one


def token_ids(value) -> list[int] | None:
    """A list of tokens, or {"start","step","mod","count"}. Integers beyond 2^53 may come as decimal strings."""
    if isinstance(value, dict):
        check_members("given.prompt_token_ids", value, "start step mod count")
        start, step, mod = value["start"], value["step"], value["mod"]
        return [(start + step * number) % mod for number in range(value["count"])]
    return value if value is None else [int(token) for token in value]


@contextlib.contextmanager
def engine_start(given: dict):
    """The environment of an engine's start: PYTHONHASHSEED as the case has it; the process's own if it is not named."""
    kept = os.environ.get(SEED)
    if "python_hash_seed" in given:
        os.environ.pop(SEED, None)
        if given["python_hash_seed"] is not None:
            try:
                os.environ[SEED] = given["python_hash_seed"]
            except (ValueError, UnicodeEncodeError):
                raise NotHere("given.python_hash_seed: no environment variable can hold this text") from None
    try:
        yield
    finally:
        os.environ.pop(SEED, None)
        if kept is not None:
            os.environ[SEED] = kept


class HashSuite:
    def __init__(self, release: Release):
        self._utils = release.module("vllm.v1.core.kv_cache_utils")
        self._hashing = release.module("vllm.utils.hashing")
        self._request_class = release.module("vllm.v1.request").Request
        self._sampling = release.module("vllm.sampling_params").SamplingParams(max_tokens=1)
        self._lora_class = release.module("vllm.lora.request").LoRARequest
        inputs = release.module("vllm.multimodal.inputs")
        self._feature_class, self._range_class = inputs.MultiModalFeatureSpec, inputs.PlaceholderRange
        self._digests = Digests(self._hashing)

    def answer(self, given: dict) -> dict:
        check_members("given", given, MEMBERS)
        if given.get("block_size", 1) < 1:  # the release would never end
            raise BadCase("given.block_size: must be at least 1")
        hash_function = self._hashing.get_hash_fn_by_name(given["algo"])
        random = self._start(given, hash_function)
        none_hash, none_preimages = bytes(self._utils.NONE_HASH), self._digests.take()
        hashes, counts = self._chain(given, hash_function)
        preimages = self._digests.take()
        answer = {"random": random, "none_hash_len": len(none_hash), "none_hash": none_hash.hex()}
        if random:
            return {**answer, "block_hashes": [block_hash.hex() for block_hash in hashes]}
        if none_preimages:
            answer["none_hash_preimage"] = none_preimages[-1].hex()
        if len(hashes) > LISTED_BLOCKS_MAX:
            return {**answer, "block_counts": counts, **sampled(hashes)}
        answer.update(block_hashes=[block_hash.hex() for block_hash in hashes], block_counts=counts)
        if all(len(preimage) <= PREIMAGE_BYTES_MAX for preimage in preimages):
            answer["preimages"] = [preimage.hex() for preimage in preimages]
        return answer

    def _start(self, given: dict, hash_function) -> bool:
        """Starts an engine twice; whether the two drew different NONE_HASH values."""
        with engine_start(given):
            self._utils.init_none_hash(hash_function)
            first = self._utils.NONE_HASH
            self._utils.init_none_hash(hash_function)
        return first != self._utils.NONE_HASH

    def _chain(self, given: dict, hash_function) -> tuple[list[bytes], list[int]]:
        """All block hashes, and their number after the prompt and after each append."""
        hasher_options = {}
        if given.get("hash_lookahead_tokens"):
            if "num_hash_lookahead_tokens" not in inspect.signature(self._utils.get_request_block_hasher).parameters:
                raise NotHere("given.hash_lookahead_tokens: this release has none")
            hasher_options["num_hash_lookahead_tokens"] = given["hash_lookahead_tokens"]
        hasher = self._utils.get_request_block_hasher(given["block_size"], hash_function, **hasher_options)
        request = self._request(given, hasher)
        counts = [len(request.block_hashes)]
        for appended in given.get("append_token_ids") or []:
            request.append_output_token_ids(token_ids(appended))
            counts.append(len(request.block_hashes))
        return [bytes(block_hash) for block_hash in request.block_hashes], counts

    def _request(self, given: dict, hasher):
        parameters = inspect.signature(self._request_class.__init__).parameters
        strings = Strings(given.get("share_equal_strings", False))
        options = {"eos_token_id": None} if "eos_token_id" in parameters else {}
        if given.get("prompt_is_token_ids") is not None and "prompt_is_token_ids" in parameters:
            options["prompt_is_token_ids"] = given["prompt_is_token_ids"]
        return self._request_class(
            request_id="case", prompt_token_ids=token_ids(given.get("prompt_token_ids")), pooling_params=None,
            sampling_params=self._sampling, lora_request=self._lora(given.get("lora"), strings),
            cache_salt=strings.object_of(given.get("cache_salt")), block_hasher=hasher,
            mm_features=[self._feature(feature, strings) for feature in given.get("mm_features") or []],
            prompt_embeds=self._embeds(given.get("prompt_embeds")), **options)

    def _lora(self, lora: dict | None, strings: Strings):
        if lora is None:
            return None
        check_members("given.lora", lora, "name path")
        return self._lora_class(lora_name=strings.object_of(lora["name"]), lora_int_id=1,
                                lora_path=strings.object_of(lora["path"]))

    def _feature(self, feature: dict, strings: Strings):
        check_members("given.mm_features", feature, "identifier offset length")
        return self._feature_class(data=None, modality="image", identifier=strings.object_of(feature["identifier"]),
                                   mm_position=self._range_class(offset=feature["offset"], length=feature["length"]))

    @staticmethod
    def _embeds(embeds: dict | None):
        if embeds is None:
            return None
        check_members("given.prompt_embeds", embeds, "dtype num_tokens hidden_size data_hex")
        if embeds["dtype"] not in DTYPES:
            raise BadCase(f"given.prompt_embeds.dtype: {embeds['dtype']!r} is unknown")
        dtype, content = DTYPES[embeds["dtype"]], bytes.fromhex(embeds["data_hex"])
        shape = (embeds["num_tokens"], embeds["hidden_size"])
        if shape[0] * shape[1] * dtype.itemsize != len(content):
            raise BadCase("given.prompt_embeds.data_hex: its length does not fit the shape")
        return contiguous_tensor(Storage(0, len(content), content), dtype, shape)


def sampled(hashes: list[bytes]) -> dict:
    """The short form of a long chain."""
    places = (0, 1, len(hashes) // 2, len(hashes) - 1)
    return {"block_hash_count": len(hashes), "block_hashes_sampled": {str(n): hashes[n].hex() for n in places},
            "block_hashes_sha256": hashlib.sha256(b"".join(hashes)).hexdigest()}
