# SPDX-License-Identifier: Apache-2.0
"""Tests of the adapter, the recorder and the stand-ins.

    usage: adapter_test.py [SOURCES]      SOURCES has releases as fetch.sh makes it; without it those tests are skipped
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import vectors
from release import HERE, BadCase, check_members
from release_process import SUITES
from suite_hash import Strings, sampled, token_ids
from suite_layout import sampled_ranks
from torch_standin import DTYPES, STORAGE_SPACING_BYTES, Storage, Tensor, contiguous_tensor

FIXTURES = os.path.join(HERE, "..", "..", "..", "fixtures", "vectors")
RELEASE, PROFILE = "0.33.0", "vllm-0.33"
HASH_GIVEN = {"algo": "sha256", "python_hash_seed": "0", "block_size": 2, "prompt_token_ids": [1, 2, 3]}
POOL_KEY_GIVEN = {"op": "pool_key", "chunk_hash": "ab", "metadata": {
    "model_name": "m", "tp_rank": 0, "pcp_rank": 0, "dcp_rank": 0, "pp_rank": 0}}
sources = None


def need_release() -> None:
    if sources is None or not os.path.isdir(os.path.join(sources, RELEASE)):
        raise unittest.SkipTest(f"vLLM {RELEASE} is not fetched")


class Talk:
    """An adapter process, talked to line by line."""

    def __init__(self, folder: str, *releases: str, environment: dict | None = None):
        options = [word for release in releases for word in ("--release", release)]
        self.process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "adapter.py"), "--sources", folder, *options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})})

    def say(self, message) -> dict:
        line = message if isinstance(message, bytes) else json.dumps(message).encode("ascii")
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def ask(self, suite: str, given: dict, profile: str = PROFILE) -> dict:
        return self.say({"do": "case", "seq": 1, "suite": suite, "profile": profile, "given": given})

    def end(self) -> int:
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait(30)


class Protocol(unittest.TestCase):
    """What needs no release: an empty package stands for one."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        store = os.path.join(self.folder.name, RELEASE, "vllm", "distributed", "kv_transfer", "kv_connector", "v1",
                             "mooncake", "store")
        os.makedirs(store)
        open(os.path.join(self.folder.name, RELEASE, "vllm", "__init__.py"), "w").close()
        with open(os.path.join(store, "data.py"), "w") as file:
            file.write("import os\nos._exit(7)\n")
        self.talk = Talk(self.folder.name)
        self.addCleanup(self.talk.end)

    def test_start_is_answered_with_profiles_and_suites(self):
        about = self.talk.say({"do": "start", "protocol": 1, "folder": self.folder.name})["ok"]
        self.assertEqual(about["profiles"], [PROFILE])
        self.assertEqual(about["suites"], list(SUITES))
        self.assertIs(about["store"], False)

    def test_start_with_another_protocol_is_refused(self):
        self.assertIn("protocol: 2", self.talk.say({"do": "start", "protocol": 2, "folder": self.folder.name})["error"])

    def test_start_without_a_folder_is_refused(self):
        self.assertIn("folder", self.talk.say({"do": "start", "protocol": 1})["error"])

    def test_line_that_is_not_json_is_named_and_survived(self):
        for line in (b"{nope", b"\xff\xfe", b"[" * 100000, b"7"):
            self.assertIn("line", self.talk.say(line)["error"])
        self.assertIn("ok", self.talk.say({"do": "start", "protocol": 1, "folder": self.folder.name}))

    def test_unknown_do_is_named(self):
        self.assertEqual(self.talk.say({"do": "dance", "seq": 4}), {"seq": 4, "error": "do: 'dance' is not offered"})
        self.assertIn("do: 'store'", self.talk.say({"do": "store", "seq": 5})["error"])

    def test_unknown_suite_and_profile_are_skipped(self):
        self.assertIn("suite: 'lookup'", self.talk.ask("lookup", {})["skip"])
        self.assertIn("profile: 'vllm-0.1'", self.talk.ask("hash", {}, "vllm-0.1")["skip"])

    def test_missing_member_of_a_case_is_named(self):
        self.assertEqual(self.talk.say({"do": "case", "seq": 2, "suite": "hash", "profile": PROFILE}),
                         {"seq": 2, "error": "given: missing or of the wrong type"})

    def test_death_of_a_release_process_is_told_and_survived(self):
        for _ in range(2):
            self.assertEqual(self.talk.ask("keys", POOL_KEY_GIVEN),
                             {"seq": 1, "error": f"the process of {PROFILE} ended with status 7"})

    def test_stop_ends_the_process(self):
        self.assertEqual(self.talk.say({"do": "stop"}), {"ok": {}})
        self.assertEqual(self.talk.process.wait(30), 0)

    def test_folder_without_releases_is_bad_usage(self):
        with tempfile.TemporaryDirectory() as empty:
            run = subprocess.run([sys.executable, os.path.join(HERE, "adapter.py"), "--sources", empty],
                                 capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("has no release", run.stderr)


class RealRelease(unittest.TestCase):
    """What needs a fetched release."""

    @classmethod
    def setUpClass(cls):
        need_release()
        cls.talk = Talk(sources, RELEASE)
        cls.addClassCleanup(cls.talk.end)

    def test_unknown_member_of_given_is_named(self):
        self.assertEqual(self.talk.ask("hash", {**HASH_GIVEN, "salt": "x"})["error"], "given.salt: unknown member")
        self.assertEqual(self.talk.ask("keys", {"op": "sing"})["error"], "given.op: 'sing' is unknown")

    def test_missing_member_of_given_is_named(self):
        self.assertEqual(self.talk.ask("hash", {"block_size": 2})["error"], "given: 'algo' is missing")

    def test_block_size_that_no_engine_has_is_refused(self):
        self.assertIn("given.block_size", self.talk.ask("hash", {**HASH_GIVEN, "block_size": 0})["error"])

    def test_exception_of_the_release_is_the_result(self):
        answer = self.talk.ask("hash", {**HASH_GIVEN, "algo": "md5"})
        self.assertEqual(answer["result"]["error"],
                         {"class": "ValueError", "message": "Unsupported hash function: md5"})

    def test_lone_surrogates_are_answered(self):
        answer = self.talk.ask("hash", {**HASH_GIVEN, "cache_salt": "\ud800"})
        self.assertIn("eda080", answer["result"]["preimages"][0])
        answer = self.talk.ask("hash", {**HASH_GIVEN, "algo": "sha256_cbor", "cache_salt": "\ud800"})
        self.assertEqual(answer["result"]["error"]["class"], "UnicodeEncodeError")

    def test_token_ids_of_any_size_are_answered(self):
        number = self.talk.ask("hash", {**HASH_GIVEN, "prompt_token_ids": [1 << 80, -5]})["result"]
        text = self.talk.ask("hash", {**HASH_GIVEN, "prompt_token_ids": [str(1 << 80), -5]})["result"]
        self.assertEqual(number, text)
        self.assertEqual(len(number["block_hashes"]), 1)

    def test_seed_that_no_environment_holds_is_skipped(self):
        answer = self.talk.ask("hash", {**HASH_GIVEN, "python_hash_seed": "a\0"})
        self.assertIn("given.python_hash_seed", answer["skip"])

    def test_seed_is_text(self):
        one, other = (self.talk.ask("hash", {**HASH_GIVEN, "python_hash_seed": seed})["result"]["none_hash"]
                      for seed in ("7", "007"))
        self.assertNotEqual(one, other)

    def test_seed_of_the_process_counts_when_the_case_names_none(self):
        unnamed = {name: value for name, value in HASH_GIVEN.items() if name != "python_hash_seed"}
        talk = Talk(sources, RELEASE, environment={"PYTHONHASHSEED": "0"})
        self.addCleanup(talk.end)
        self.assertEqual(talk.ask("hash", unnamed), self.talk.ask("hash", HASH_GIVEN))

    def test_random_none_hash_differs_between_starts(self):
        given = {**HASH_GIVEN, "algo": "xxhash", "python_hash_seed": None}
        one, other = (self.talk.ask("hash", given)["result"] for _ in range(2))
        self.assertTrue(one["random"] and other["random"])
        self.assertNotEqual(one["block_hashes"], other["block_hashes"])
        self.assertEqual(sorted(one), ["block_hashes", "none_hash", "none_hash_len", "random"])

    def test_cases_leave_the_environment_as_it_was(self):
        given = {"op": "store_config", "file_json": {}, "env_set": False}
        self.talk.ask("config", {"op": "store_config", "file_json": {}, "env_set": True})
        self.assertIn("MOONCAKE_CONFIG_PATH", self.talk.ask("config", given)["result"]["error"]["message"])
        self.talk.ask("config", {"op": "requester_hostname", "env": {"MOONCAKE_REQUESTER_LOCAL_HOSTNAME": "h"}})
        answer = self.talk.ask("config", {"op": "requester_hostname", "env": {}, "local_ip": "10.0.0.9"})
        self.assertEqual(answer["result"], {"value": "10.0.0.9"})

    def test_layer_that_no_tensor_can_be_is_skipped(self):
        given = {"topology": {}, "groups": [{"kind": "full", "block_size": 16, "layer_names": ["l"]}],
                 "storages": [{"nbytes": 64}], "requests": [], "single_blocks": [], "num_gpu_blocks": 8}
        layer = {"name": "l", "storage": 0, "byte_offset": 0, "shape": [8, 16], "strides": [16, 1], "itemsize": 1}
        self.assertIn("given.layers[0]", self.talk.ask("segments", {**given, "layers": [layer]})["skip"])


class Recording(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def record(self, *arguments: str, releases: str | None = None) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, os.path.join(HERE, "record.py"), "--sources", releases or sources,
                               "--vectors", self.folder.name, *arguments], capture_output=True, text=True)

    def copy_fixtures(self) -> None:
        need_release()
        for name in os.listdir(FIXTURES):
            shutil.copy(os.path.join(FIXTURES, name), self.folder.name)

    def test_files_are_written_as_they_were_read(self):
        for file in vectors.read_folder(FIXTURES, SUITES):
            before = vectors.read_text(file.path)
            self.assertEqual(file.text(), before)
            for ending in vectors.ENDINGS if file.suite == "segments" else ():
                file.path = os.path.join(self.folder.name, "again" + ending)
                file.write()
                self.assertEqual(vectors.read_text(file.path), before)

    def test_changed_expectation_is_found_named_and_recorded_again(self):
        self.copy_fixtures()
        file = vectors.read(os.path.join(self.folder.name, "keys.json.zst"))
        before = file.text()
        case = next(case for case in file.cases if case["profile"] == PROFILE)
        case["expect"]["key"] = "wrong"
        file.write()
        check = self.record("--check", RELEASE)
        self.assertEqual(check.returncode, 1, check.stderr)
        self.assertIn(f'differs: {case["id"]} ({PROFILE}): expect.key: recorded "wrong", now ', check.stdout)
        self.assertNotEqual(vectors.read_text(file.path), before)
        self.assertEqual(self.record(RELEASE).returncode, 0)
        self.assertEqual(vectors.read_text(file.path), before)

    def test_new_release_gets_the_cases_of_the_newest_profile(self):
        self.copy_fixtures()
        with tempfile.TemporaryDirectory() as releases:
            os.symlink(os.path.abspath(os.path.join(sources, RELEASE)), os.path.join(releases, "0.34.0"))
            run = self.record("0.34.0", releases=releases)
            self.assertEqual(run.returncode, 0, run.stderr)
            check = self.record("--check", "0.34.0", releases=releases)
        self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        new = vectors.read(os.path.join(self.folder.name, "segments-0.34.json.zst"))
        old = [case for file in vectors.read_folder(FIXTURES, SUITES) if file.suite == "segments" for case in file.cases]
        self.assertEqual(new.head["source"], [{"package": "vllm", "version": "0.34.0"}])
        self.assertFalse({case["id"] for case in old} & {case["id"] for case in new.cases})
        models = [case for case in old if case["profile"] == PROFILE]
        self.assertEqual([case["expect"] for case in new.cases], [case["expect"] for case in models])

    def test_folder_that_is_missing_is_bad_usage(self):
        run = self.record(releases="/nowhere")
        self.assertEqual(run.returncode, 2)
        self.assertIn("--sources", run.stderr)


class Parts(unittest.TestCase):
    def test_equal_strings_are_shared_only_on_demand(self):
        apart, shared = Strings(False), Strings(True)
        self.assertIsNot(apart.object_of("tenant"), apart.object_of("tenant"))
        self.assertIs(shared.object_of("tenant"), shared.object_of("".join(["ten", "ant"])))
        self.assertIs(apart.object_of("é"), apart.object_of("é"))

    def test_token_rule_is_spelled_out(self):
        self.assertEqual(token_ids({"start": 5, "step": 4, "mod": 7, "count": 3}), [5, 2, 6])

    def test_long_chain_is_sampled(self):
        hashes = [bytes([number]) for number in range(65)]
        self.assertEqual(list(sampled(hashes)["block_hashes_sampled"]), ["0", "1", "32", "64"])
        self.assertEqual(sampled_ranks(8), list(range(8)))
        self.assertEqual(sampled_ranks(16), [0, 1, 8, 15])

    def test_unknown_members_are_named(self):
        with self.assertRaisesRegex(BadCase, "given.b: unknown member"):
            check_members("given", {"a": 1, "b": 2}, "a c")

    def test_tensor_views_are_torchs(self):
        cache = Tensor(Storage(0, 4096), DTYPES["float16"], [32, 2, 8], [16, 8, 1], 64)
        self.assertEqual((cache[3].data_ptr() - STORAGE_SPACING_BYTES, cache[3].stride()), (64 + 3 * 32, (8, 1)))
        grouped = cache.unflatten(0, (8, -1))
        self.assertEqual((grouped.shape, grouped.stride()), ((8, 4, 2, 8), (64, 16, 8, 1)))
        self.assertEqual((cache[:, 1].shape, cache[:, 1].stride(0)), ((32, 8), 16))
        self.assertEqual(cache.permute(1, 0, 2).stride(), (8, 16, 1))
        with self.assertRaises(IndexError):
            cache[32]
        with self.assertRaises(RuntimeError):
            cache.unflatten(0, (5, -1))

    def test_tensor_content_is_sliced_as_bytes(self):
        rows = contiguous_tensor(Storage(0, 12, bytes(range(12))), DTYPES["float16"], (3, 2))
        part = rows[1:9].flatten().cpu().contiguous().view(DTYPES["uint8"]).numpy().data
        self.assertEqual(bytes(part), bytes(range(4, 12)))
        self.assertEqual(bytes(rows[5:9].flatten().view(DTYPES["uint8"]).numpy().data), b"")


def main() -> int:
    global sources
    if len(sys.argv) > 1:
        sources = sys.argv[1]
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    result = unittest.TextTestRunner(verbosity=1).run(tests)
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
