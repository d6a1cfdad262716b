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
import threading
import unittest
from unittest import mock

import numpy

import core_store
import payload
import release_process
import vectors
from adapter import ReleaseProcess
from release import HERE, BadCase, Stuck, check_members
from release_process import SUITES
from suite_hash import Strings, sampled, token_ids
from suite_layout import sampled_ranks
from torch_standin import DTYPES, STORAGE_SPACING_BYTES, Storage, Tensor, contiguous_tensor

FIXTURES = os.path.join(HERE, "..", "..", "..", "fixtures", "vectors")
RELEASE, PROFILE = "0.33.0", "vllm-0.33"
HASH_GIVEN = {"algo": "sha256", "python_hash_seed": "0", "block_size": 2, "prompt_token_ids": [1, 2, 3]}
POOL_KEY_GIVEN = {"op": "pool_key", "chunk_hash": "ab", "metadata": {
    "model_name": "m", "tp_rank": 0, "pcp_rank": 0, "dcp_rank": 0, "pp_rank": 0}}
HASHES = [bytes([number] * 16).hex() for number in range(1, 9)]
ENGINE = {"topology": {"tp": 1}, "groups": [{"kind": "full", "block_size": 16, "num_kv_heads": 8}], "model": "m"}
LOOKUP_GIVEN = {**ENGINE, "num_tokens": 40, "num_computed_tokens": 0, "block_hashes": HASHES}
LOAD_GIVEN = {**ENGINE, "num_tokens": 40, "hit_tokens_in_store": 32, "num_computed_tokens": 0, "page_bytes": 1024,
              "block_hashes": HASHES, "block_ids": [[4, 9, 7]]}
CORE_GIVEN = {**ENGINE, "total_kv_heads": 8, "num_gpu_blocks": 32, "max_tokens_per_step": 256}
PROMPT = {"start": 0, "step": 7, "mod": 1000, "count": 40}
sources = None


def key(number: int) -> str:
    """Key of the block that HASHES has under this number."""
    return f"m@tp_rank:0@pcp0@dcp0@pp_rank:0@group:0@{HASHES[number]}"


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
        self.assertIn("suite: 'wire'", self.talk.ask("wire", {})["skip"])
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


class Connector(unittest.TestCase):
    """Suites that ask scheduler side and workers of a fetched release."""

    @classmethod
    def setUpClass(cls):
        need_release()
        cls.talk = Talk(sources, RELEASE)
        cls.addClassCleanup(cls.talk.end)

    def lookup(self, **more) -> dict:
        return self.talk.ask("lookup", {**LOOKUP_GIVEN, **more})

    def save(self, *steps: dict, **more) -> dict:
        requests = {"r": {"prompt_len": 40, "block_hashes": HASHES}}
        return self.talk.ask("save", {**ENGINE, "requests": requests, "steps": list(steps), **more})

    def test_lookup_offers_what_every_key_of_the_prefix_is_there_for(self):
        answer = self.lookup(existing_keys=[key(0), key(1)])["result"]
        self.assertEqual([answer["new_matched_tokens"], answer["load_async"], answer["hit_tokens"]], [32, True, 32])
        self.assertEqual(answer["queried_keys"], [key(0), key(1)])
        self.assertEqual(answer["tail_key_boundaries"], [[0, 32]])

    def test_lookup_that_the_store_refuses_offers_nothing(self):
        answer = self.lookup(existing_keys=[key(0)], exist_raises=True)["result"]
        self.assertEqual([answer["new_matched_tokens"], answer["hit_tokens"], answer["queried_count"]], [0, None, 2])

    def test_lookup_takes_an_answer_other_than_1_for_absence(self):
        answer = self.lookup(existing_keys=[key(0), key(1)], exist_result_override={key(1): -1})["result"]
        self.assertEqual(answer["new_matched_tokens"], 16)

    def test_block_hashes_that_do_not_cover_the_tokens_are_named(self):
        self.assertIn("has 1 block hashes", self.lookup(block_hashes=HASHES[:1])["error"])

    def test_engine_that_the_connector_refuses_is_its_error(self):
        groups = ENGINE["groups"] + [{"kind": "mamba", "block_size": 16, "mamba_cache_mode": "all"}]
        self.assertEqual(self.lookup(groups=groups)["result"]["error"],
                         {"class": "ValueError", "message": "MooncakeStoreConnector does not support: group 1: "
                                                            "mamba_cache_mode='all' != 'align'"})

    def test_match_unit_that_does_not_divide_the_block_is_the_releases_error(self):
        self.assertIn("prefix_match_unit=5", self.lookup(prefix_match_unit=5)["result"]["error"]["message"])

    def test_chunked_local_and_retained_groups_are_built(self):
        groups = ENGINE["groups"] + [
            {"kind": "chunked_local", "block_size": 16, "attention_chunk_size": 32},
            {"kind": "sliding_window", "block_size": 16, "sliding_window": 32, "extra_retained_tokens": 16}]
        self.assertEqual(self.lookup(groups=groups)["result"]["new_matched_tokens"], 0)

    def test_load_reads_into_the_blocks_of_the_request(self):
        answer = self.talk.ask("load", LOAD_GIVEN)["result"]
        self.assertEqual(answer["ranks"], [{"rank": 0, "get_calls": [{
            "keys": [key(0), key(1)], "buffers": [[[0, 4 * 1024, 1024]], [[0, 9 * 1024, 1024]]],
            "results": [1024, 1024]}], "invalid_block_ids": [], "failed_requests": []}])

    def test_load_that_fails_is_reported_by_block(self):
        answer = self.talk.ask("load", {**LOAD_GIVEN, "get_results": {key(1): -1}})["result"]
        self.assertEqual(answer["ranks"][0]["invalid_block_ids"], [9])
        answer = self.talk.ask("load", {**LOAD_GIVEN, "get_raises_on_call": 0})["result"]
        self.assertEqual([answer["ranks"][0]["get_calls"][0]["results"], answer["ranks"][0]["invalid_block_ids"]],
                         [None, [4, 9]])

    def test_block_tables_that_do_not_fit_the_groups_are_named(self):
        self.assertIn("given.block_ids", self.talk.ask("load", {**LOAD_GIVEN, "block_ids": []})["error"])

    def test_staging_ratio_of_a_case_is_gone_in_the_next(self):
        many = {**LOAD_GIVEN, "page_bytes": 1 << 28, "store_config": {
            "metadata_server": "P2PHANDSHAKE", "master_server_address": "127.0.0.1:1", "protocol": "tcp",
            "enable_offload": True}}
        calls = [len(self.talk.ask("load", given)["result"]["ranks"][0]["get_calls"]) for given in (
            {**many, "env": {"VLLM_MOONCAKE_DISK_STAGING_USABLE_RATIO": "0.25"}}, many)]
        self.assertEqual(calls, [2, 1])

    def test_save_puts_each_full_block_once_in_the_step_that_fills_it(self):
        steps = self.save(
            {"new": [{"req": "r", "num_computed": 0, "num_scheduled": 20, "block_ids": [[3, 5]]}]},
            {"cached": [{"req": "r", "num_computed": 20, "num_scheduled": 20, "new_block_ids": [[6]]}]})["result"]
        puts = [[put["keys"], put["source_blocks"]] for step in steps["steps"] for put in step[0]["puts"]]
        self.assertEqual(puts, [[[key(0)], [3]], [[key(1)], [5]]])
        self.assertEqual([steps["unreleased_store_jobs"], steps["stored_keys_total"]], [0, 2])

    def test_save_that_waits_keeps_its_blocks_referenced(self):
        answer = self.save({"new": [{"req": "r", "num_computed": 0, "num_scheduled": 40, "block_ids": [[3, 5, 6]]}],
                            "process_jobs": False})["result"]
        self.assertEqual([answer["steps"], answer["unreleased_store_jobs"]], [[[]], 1])

    def test_unknown_request_and_member_of_a_step_are_named(self):
        self.assertIn("'x' is missing", self.save({"finished": ["x"]})["error"])
        self.assertEqual(self.save({"dance": 1})["error"], "given.steps[0].dance: unknown member")


class Core(unittest.TestCase):
    """Suites that run the core scheduler of a fetched release, with the connector's own threads."""

    @classmethod
    def setUpClass(cls):
        need_release()
        cls.talk = Talk(sources, RELEASE)
        cls.addClassCleanup(cls.talk.end)

    def run_script(self, *steps: list, **more) -> dict:
        given = {**CORE_GIVEN, "extra_config": {"lookup_async": True}, "steps": list(steps), **more}
        return self.talk.ask("lookup-async", given)

    def decode(self, **more) -> dict:
        given = {**CORE_GIVEN, "prompt": PROMPT, "max_tokens": 20, "num_steps": 22, **more}
        return self.talk.ask("save-lcm", given)["result"]

    def test_question_is_pending_until_the_script_answers(self):
        answer = self.run_script([{"add": "r", "prompt": PROMPT, "max_tokens": 1}], [], [{"lookup_answers": 1}], [])
        lookups = [lookup["result"] for step in answer["result"]["steps"] for lookup in step["lookups"]]
        self.assertEqual(lookups, [None, None, 0])
        self.assertEqual([answer["result"]["stored_keys_total"], answer["result"]["wrong_bytes"]], [2, 0])

    def test_what_was_stored_before_is_loaded_with_the_right_bytes(self):
        add = [{"add": "r", "prompt": PROMPT, "max_tokens": 1}]
        first = self.run_script(add, [], [])["result"]
        stored = [put["key"] for step in first["steps"] for put in step["puts"]]
        answer = self.run_script(add, [], [], [], stored_before=stored)["result"]
        self.assertEqual([get["result"] for step in answer["steps"] for get in step["gets"]], [2048, 2048])
        self.assertEqual([answer["steps"][3]["scheduled"], answer["wrong_bytes"]], [{"r": 8}, 0])
        self.assertEqual(self.run_script(add, [], [], stored_before=stored, exist_raises=True)["result"]["steps"][1][
            "lookups"][0]["result"], 0)

    def test_lookup_of_an_aborted_request_is_not_sent(self):
        adds = [{"add": name, "prompt": {**PROMPT, "start": start}, "max_tokens": 1}
                for start, name in enumerate(("r", "s"))]
        answer = self.run_script(adds, [{"abort": "s"}], [{"lookup_answers": 1}], [])["result"]
        self.assertEqual([answer["futures_after_abort"], answer["lookups_that_reached_the_store"]], [1, 1])

    def test_prompt_that_was_delivered_is_filled_back(self):
        answer = self.decode(kv_role="kv_consumer", behind_multi_connector=True, delivered_out_of_band=True,
                             extra_config={"save_decode_cache": True})
        self.assertEqual([(step["step"], len(step["puts"])) for step in answer["steps_with_store_calls"]],
                         [(2, 2), (9, 1)])
        self.assertEqual(answer["wrong_bytes"], 0)

    def test_ranks_put_the_shards_of_a_common_store(self):
        answer = self.decode(topology={"tp": 2}, extra_config={"store_tp_size": 4}, groups=[
            {"kind": "full", "block_size": 16, "num_kv_heads": 4, "num_layers": 2}])
        self.assertEqual([answer["store_tp_size"], answer["layout"]], [4, "LBHNCStoreLayout"])
        self.assertEqual([(put["rank"], put["bytes"], put["segments"])
                          for put in answer["steps_with_store_calls"][0]["puts"]],
                         [(0, 1024, 2)] * 4 + [(1, 1024, 2)] * 4)

    def test_instance_that_is_not_built_here_is_skipped(self):
        self.assertIn("given.topology.pp", self.run_script([], topology={"tp": 1, "pp": 2})["skip"])
        self.assertIn("given.groups", self.run_script([], groups=ENGINE["groups"] * 2)["skip"])

    def test_wrong_script_is_named(self):
        self.assertIn("given.steps[0][0]: no known action", self.run_script([{"dance": 1}])["error"])
        self.assertIn("'r' is there already", self.run_script(*2 * [[{"add": "r", "prompt": PROMPT, "max_tokens": 1}]])[
            "error"])

    def test_threads_end_with_their_case(self):
        counts = []
        for _ in range(8):
            self.run_script([{"add": "r", "prompt": PROMPT, "max_tokens": 1}], [{"dance": 1}])
            self.run_script([{"add": "r", "prompt": PROMPT, "max_tokens": 1}], [])
            pid = self.talk.process.pid
            with open(f"/proc/{pid}/task/{pid}/children") as children:
                counts.append(len(os.listdir(f"/proc/{children.read().split()[0]}/task")))
        self.assertLessEqual(counts[-1], counts[0] + 3)  # one that has ended may still be seen for a moment


class Bounds(unittest.TestCase):
    def test_call_that_is_not_let_through_is_stuck(self):
        gate = core_store.Gate("lookup")
        with mock.patch.object(core_store, "WAIT_SECONDS", 0.01), self.assertRaisesRegex(Stuck, "lookup: not let"):
            gate.enter()

    def test_gate_lets_as_many_through_as_it_is_told(self):
        gate, passed = core_store.Gate("lookup"), threading.Semaphore(0)
        threads = [threading.Thread(target=lambda: (gate.enter(), passed.release())) for _ in range(2)]
        for thread in threads:
            thread.start()
        gate.let_one_through()
        self.assertTrue(passed.acquire(timeout=5))
        self.assertFalse(passed.acquire(timeout=0.01))
        gate.open()
        self.assertTrue(passed.acquire(timeout=5))
        for thread in threads:
            thread.join(5)

    def test_case_that_lasts_too_long_is_interrupted(self):
        with mock.patch.object(release_process, "CASE_SECONDS_MAX", 0.01):
            with self.assertRaisesRegex(Stuck, "did not end"), release_process.time_limit():
                threading.Event().wait()

    def test_process_that_is_stuck_is_replaced(self):
        program = ("import os, sys\nsys.stdin.readline()\n"
                   "print('{\"seq\":1,\"error\":\"%d\",\"replace\":true}' % os.getpid(), flush=True)")

        class Stand(ReleaseProcess):
            def _start(self):
                return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE)

        process = Stand("")
        answers = [json.loads(process.ask(b"{}\n")) for _ in range(2)]
        self.assertEqual([sorted(answer) for answer in answers], [["error", "seq"]] * 2)
        self.assertNotEqual(answers[0]["error"], answers[1]["error"])


class Recording(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def record(self, *arguments: str, releases: str | None = None) -> subprocess.CompletedProcess:
        return subprocess.run([sys.executable, os.path.join(HERE, "record.py"), "--sources", releases or sources,
                               "--vectors", self.folder.name, *arguments], capture_output=True, text=True)

    def copy_fixtures(self) -> None:
        """Those of some suites: all of them are recorded anew by record.py itself."""
        need_release()
        for name in os.listdir(FIXTURES):
            if name.startswith(("keys", "segments", "save-lcm")):
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
        old = [case for file in vectors.read_folder(FIXTURES, SUITES) if file.suite == "segments"
               for case in file.cases]
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

    def test_kv_bytes_are_those_of_the_definition(self):
        def mix(x):
            x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & payload.MASK
            x = (x ^ x >> 27) * 0x94D049BB133111EB & payload.MASK
            return x ^ x >> 31

        text = payload.Text(payload.places(2, 3))
        text.cells([5])
        cell = text.cells([5, 6])[1, 1, 2]
        prefix = int(text._prefixes[1])
        words = [mix(mix((prefix + payload.GOLDEN * (1 + (1 << 24 | 2 << 8 | half))) & payload.MASK))
                 for half in (0, 1)]
        self.assertEqual(cell.tobytes(), b"".join(word.to_bytes(8, "little") for word in words))
        self.assertEqual(text.next_token([5, 6]), mix(prefix) % payload.VOCABULARY)
        self.assertTrue((payload.Text(payload.places(2, 3)).cells([5, 6])[1, 1, 2] == cell).all())
        self.assertFalse(numpy.array_equal(text.cells([5, 6])[0], text.cells([5, 6])[1]))

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
