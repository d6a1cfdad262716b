# SPDX-License-Identifier: Apache-2.0
"""Records vectors anew from real releases, through the adapter, and says case by case what changed.

    usage: record.py --sources DIR --vectors DIR [--check] [VERSION]...

A release whose profile is in the vectors: the expectations of its cases are recorded again, and a file that changed is
written. Any other release: it gets the cases of the newest profile, in new files. --check writes nothing. Without a
VERSION: every release in --sources. Exit: 0 nothing differs (or it was written), 1 it differs, 2 usage or no answer.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

import vectors
from adapter import HERE, PROTOCOL, profile_of, releases_in, version_order
from release_process import SUITES

# Members of an expectation that only some cases keep, for the size of the files.
KEPT_WHERE_PRESENT = {"hash": ("none_hash_preimage", "preimages")}
SHOWN_CHARACTERS = 200


class Refusal(Exception):
    """Nothing can be recorded; the text says why."""


class Asker:
    """Asks one release through adapter.py."""

    def __init__(self, sources: str, version: str, folder: str):
        self._process = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "adapter.py"), "--sources", sources, "--release", version],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._exchange({"do": "start", "protocol": PROTOCOL, "folder": folder})

    def expectation(self, suite: str, model: dict, profile: str) -> dict:
        """What the release answers to the case `model`, in the form of an expectation of that case."""
        answer = self._exchange({"do": "case", "seq": 0, "suite": suite, "profile": profile, "given": model["given"]})
        if "result" not in answer:
            raise Refusal(f"{model['id']} ({profile}): the adapter gives no answer: {answer}")
        result = answer["result"]
        if result.get("random"):
            return {**result, "none_hash": None, "block_hashes": None}
        left_out = [name for name in KEPT_WHERE_PRESENT.get(suite, ()) if name not in model["expect"]]
        return {name: value for name, value in result.items() if name not in left_out}

    def stop(self) -> None:
        self._exchange({"do": "stop"})
        self._process.communicate()

    def _exchange(self, message: dict) -> dict:
        self._process.stdin.write(json.dumps(message).encode("ascii") + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise Refusal(f"the adapter ended with status {self._process.wait()}")
        return json.loads(line)


class Recorder:
    """Records one release into the files of a folder."""

    def __init__(self, files: list[vectors.VectorFile], folder: str, version: str, asker: Asker):
        self._files, self._folder, self._version, self._asker = files, folder, version, asker
        self._profile = profile_of(version)
        self.equal = 0
        self.differing: list[str] = []  # ids
        self.changed: dict[str, vectors.VectorFile] = {}

    def record(self) -> None:
        for suite in SUITES:
            files = [file for file in self._files if file.suite == suite]
            profiles = {case["profile"] for file in files for case in file.cases}
            if self._profile in profiles:
                self._again(suite, files)
            elif profiles and version_order(profile_number(self._profile)) > max(map(profile_order, profiles)):
                self._first_time(suite, files, max(profiles, key=profile_order))

    def _again(self, suite: str, files: list[vectors.VectorFile]) -> None:
        for file in files:
            for case in file.cases:
                if case["profile"] != self._profile:
                    continue
                expect = self._asker.expectation(suite, case, self._profile)
                if json.dumps(expect) == json.dumps(case["expect"]):
                    self.equal += 1
                    continue
                print(f"differs: {case['id']} ({self._profile}): {first_difference(case['expect'], expect)}")
                self.differing.append(case["id"])
                self.changed[file.path] = file
                case["expect"] = expect

    def _first_time(self, suite: str, files: list[vectors.VectorFile], model_profile: str) -> None:
        """Cases of the newest profile, asked of a newer release: same givens, new ids."""
        last: dict[str, int] = {}
        models = []
        for case in (case for file in files for case in file.cases):
            kind, number = case["id"].rsplit(".", 1)
            last[kind] = max(last.get(kind, 0), int(number))
            if case["profile"] == model_profile:
                models.append((kind, case))
        cases = []
        for kind, model in models:
            last[kind] += 1
            expect = self._asker.expectation(suite, model, self._profile)
            if json.dumps(expect) != json.dumps(model["expect"]):
                print(f"new: {kind}.{last[kind]:04} ({self._profile}) against {model['id']} ({model_profile}): "
                      f"{first_difference(model['expect'], expect)}")
            cases.append({**model, "id": f"{kind}.{last[kind]:04}", "profile": self._profile, "expect": expect})
        self.differing.extend(case["id"] for case in cases)
        path = os.path.join(self._folder, f"{suite}-{profile_number(self._profile)}.json.zst")
        head = {"schema": vectors.SCHEMA, "suite": suite, "source": [{"package": "vllm", "version": self._version}]}
        self.changed[path] = vectors.VectorFile(path, head, cases)


def profile_number(profile: str) -> str:
    """0.33 for vllm-0.33."""
    return re.sub(r"^vllm-", "", profile)


def profile_order(profile: str) -> list[int]:
    return version_order(profile_number(profile))


def first_difference(recorded, now, path: str = "expect") -> str:
    """Where two expectations part, with both sides."""
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in [*recorded, *(name for name in now if name not in recorded)]:
            if name not in recorded or name not in now:
                return f"{path}.{name}: only in what {'was recorded' if name in recorded else 'the release says now'}"
            if recorded[name] != now[name]:
                return first_difference(recorded[name], now[name], f"{path}.{name}")
        return f"{path}: members in another order"
    if isinstance(recorded, list) and isinstance(now, list):
        for number, (one, other) in enumerate(zip(recorded, now)):
            if one != other:
                return first_difference(one, other, f"{path}[{number}]")
        if len(recorded) != len(now):
            return f"{path}: {len(recorded)} elements recorded, {len(now)} now"
    return f"{path}: recorded {shown(recorded)}, now {shown(now)}"


def shown(value) -> str:
    text = json.dumps(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "..."


def parse_arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0], allow_abbrev=False)
    parser.add_argument("--sources", required=True, metavar="DIR", help="folder with one folder per release")
    parser.add_argument("--vectors", required=True, metavar="DIR", help="folder of the vector files")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if something would change")
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="releases; default: all in --sources")
    options = parser.parse_args(arguments)
    for name in ("sources", "vectors"):
        if not os.path.isdir(getattr(options, name)):
            parser.error(f"--{name}: {getattr(options, name)} is no folder")
    options.versions = options.versions or releases_in(options.sources)
    missing = [version for version in options.versions if version not in releases_in(options.sources)]
    if missing or not options.versions:
        parser.error(f"{options.sources} has no release {' '.join(missing) or 'at all'}; fetch.sh fetches it")
    return options


def record_release(options: argparse.Namespace, files: list[vectors.VectorFile], version: str) -> Recorder:
    with tempfile.TemporaryDirectory() as folder:
        asker = Asker(options.sources, version, folder)
        recorder = Recorder(files, options.vectors, version, asker)
        recorder.record()
        asker.stop()
    print(f"{version}: {recorder.equal} equal, {len(recorder.differing)} differ or are new")
    return recorder


def main() -> int:
    options = parse_arguments(sys.argv[1:])
    equal = differing = 0
    try:
        files = vectors.read_folder(options.vectors, SUITES)
        for version in options.versions:
            recorder = record_release(options, files, version)
            equal += recorder.equal
            differing += len(recorder.differing)
            for path, file in recorder.changed.items() if not options.check else ():
                file.write()
                print(f"written: {path}")
    except (Refusal, ValueError, OSError) as reason:
        print(f"record: {reason}", file=sys.stderr)
        return 2
    print(f"{equal} passed, {differing if options.check else 0} failed, 0 skipped")
    return 1 if options.check and differing else 0


if __name__ == "__main__":
    sys.exit(main())
