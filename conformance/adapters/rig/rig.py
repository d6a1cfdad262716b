#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drives clusters of real vLLM connectors on real Mooncake store clients against any master at HOST:PORT.

    python rig.py --master 127.0.0.1:50051 --vllm sources/vllm-0.33.0 --scenario all --out results
"""
import argparse
import importlib.metadata
import json
import os
import shutil
import socket
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True  # leave the folder as it is
import cluster  # noqa: E402
import payload  # noqa: E402
import scenarios  # noqa: E402

SKIPPED = 77



class Run:
    """One scenario: its instances, the requests they served, the objects they left, the checks made."""

    def __init__(self, options, name, parameters):
        self.options, self.name, self.parameters = options, name, parameters
        self.instances, self.requests, self.checks, self.auditors = {}, [], [], {}
        self.objects, self.notes = {}, []

    # -- building
    def start(self, **instances):
        """Starts instances in parallel: name=dict(settings)."""
        fresh = [cluster.Instance(self.options, name, **settings) for name, settings in instances.items()]
        for one in fresh:
            self.instances[one.name] = one
        for one in fresh:
            one.wait_ready()
        return fresh if len(fresh) != 1 else fresh[0]

    def auditor(self, tenant=None):
        if tenant not in self.auditors:
            self.auditors[tenant] = cluster.Auditor(self.options, tenant)
        return self.auditors[tenant]

    def prompt(self, seed, length):
        return payload.prompt(1000 * self.options.seed + seed, length)

    def release(self, instance):
        """Release of an instance as a tuple of numbers."""
        return tuple(int(n) for n in cluster.release_of(instance.source).split(".")[:2])

    def serve(self, instance, request_id, tokens, max_tokens=1, expect_wrong=None, **more):
        """One request; notes everything about it and checks the bytes it loaded and the objects it stored."""
        got = instance.generate(request_id, tokens, max_tokens, **more)
        record = {
            "instance": instance.name, "request": request_id, "prompt": list(tokens), "max_tokens": max_tokens,
            **{k: v for k, v in more.items()}, "output_tokens": got["output_tokens"],
            "block_hashes": got["block_hashes"], "local_tokens": got.get("local_tokens", 0),
            "offered_tokens": got.get("offered_tokens", 0), "taken_tokens": got.get("taken_tokens", 0),
            "verified_bytes": got["verified_bytes"], "wrong_bytes": got["wrong_bytes"],
            "stored": [[p["rank"], p["key"]] for p in sorted(got["puts"], key=lambda p: p["rank"])],
            "loaded": [[g["rank"], g["key"]] for g in sorted(got["gets"], key=lambda g: g["rank"])]}
        self.requests.append(record)
        title = f"{instance.name}/{request_id}"
        self.check(f"{title} ends normally", got["status"] == "FINISHED_LENGTH_CAPPED", got["status"])
        if expect_wrong is None:
            self.check(f"{title} no wrong byte on any rank", not any(got["wrong_bytes"]), got["wrong_bytes"])
        else:
            self.equal(f"{title} wrong bytes on each rank", got["wrong_bytes"], expect_wrong)
        self.check(f"{title} no block reported invalid", got["invalid_blocks"] == 0, got["invalid_blocks"])
        self.check(f"{title} store calls succeed", all(x["result"] >= 0 for x in got["puts"] + got["gets"]),
                   [x for x in got["puts"] + got["gets"] if x["result"] < 0][:3])
        self._audit(instance, record, got)
        return record

    def _audit(self, instance, record, got):
        """Reads every object this request stored with a client of the rig's own."""
        if not got["puts"]:
            return
        spec, auditor = instance.spec, self.auditor(instance.tenant)
        prefix = payload.prefixes(record["prompt"] + record["output_tokens"])
        index = {h: i for i, h in enumerate(record["block_hashes"])}
        wrong = []
        for put in got["puts"]:
            data = auditor.read(put["key"])
            want = cluster.object_bytes(spec, put["key"], prefix, index[cluster.parse_key(put["key"])["hash"]])
            if data != want:
                wrong.append([put["key"], len(data), len(want)])
            self.objects[(instance.tenant or "default", put["key"])] = {
                "key": put["key"], "bytes": len(data), "segments": put["segments"], "sha256": cluster.sha256(data),
                "writer": [instance.name, put["rank"]],
                **({"tenant": instance.tenant} if instance.tenant is not None else {})}
        self.check(f"{instance.name}/{record['request']} {len(got['puts'])} stored objects hold the right bytes",
                   not wrong, wrong[:3])

    # -- judging
    def check(self, name, passed, detail=None):
        self.checks.append({"name": name, "pass": bool(passed), **({} if passed else {"detail": detail})})
        return bool(passed)

    def equal(self, name, got, want):
        return self.check(f"{name} = {want}", got == want, {"got": got, "want": want})

    def hit(self, record, tokens):
        """The request took exactly `tokens` from the store and every rank verified each of their bytes."""
        name = f"{record['instance']}/{record['request']}"
        self.equal(f"{name} hit tokens", record["taken_tokens"], tokens)
        if tokens:
            spec = self.instances[record["instance"]].spec
            heads = max(1, spec["kv_heads"] // spec["tp"])
            each = (record["local_tokens"] + tokens) * heads * spec["layers"] * 2 * spec["half_bytes"]
            self.equal(f"{name} verified bytes a rank", record["verified_bytes"], [each] * spec["tp"])

    def stored(self, record, count):
        name = f"{record['instance']}/{record['request']}"
        keys = [k for _, k in record["stored"]]
        self.equal(f"{name} objects stored", len(keys), count)
        self.check(f"{name} no object stored twice", len(set(keys)) == len(keys), len(keys) - len(set(keys)))

    # -- ending
    def finish(self, broken):
        """Stops every instance as vLLM does; then their segments, and the objects in them, must be gone."""
        for one in self.instances.values():
            one.start_close()
        for one in self.instances.values():
            one.end()
        for tenant, auditor in self.auditors.items():
            kept = [key for name, key in self.objects if name == (tenant or "default")]
            if kept and not broken:
                left = sum(auditor.exist(kept))
                self.check(f"no object outlives the instances (tenant {tenant or 'default'})", left == 0, left)
            auditor.close()

    def masked(self, value):
        """The value with the digests of volatile instances replaced by their block numbers, to compare runs."""
        hashes = {}
        for record in self.requests:
            if self.instances[record["instance"]].volatile:
                hashes.update({h: f"random-{record['instance']}-{i}" for i, h in enumerate(record["block_hashes"])})
        for one in self.instances.values():
            if one.volatile and one.about:
                hashes[one.about["none_hash"]] = f"random-{one.name}-none"
        if not hashes:
            return value
        text = json.dumps(value)
        for digest, name in hashes.items():
            text = text.replace(digest, name)
        return json.loads(text)

    def result(self):
        result = self.masked({
            "schema": "mooncheck-cluster-run/1", "scenario": self.name, "seed": self.options.seed,
            "source": {"vllm": self.options.vllm_release, "mooncake_client": self.options.client_release,
                       "master": self.options.master_release, "protocol": self.options.protocol},
            "parameters": self.parameters,
            "instances": [
                {"name": i.name, "release": cluster.release_of(i.source), **i.spec, "environment": i.environment,
                 **({"tenant": i.tenant} if i.tenant is not None else {}),
                 **{k: v for k, v in (i.about or {}).items() if k != "segment_names"}}
                for i in self.instances.values()],
            "requests": self.requests,
            "objects": list(self.objects.values()),
            "notes": self.notes, "checks": self.checks, "pass": all(c["pass"] for c in self.checks)})
        result["objects"].sort(key=lambda o: (o.get("tenant", ""), o["key"]))
        return result


def reach(address):
    """Raises RigError at once if nothing listens there (a store client would retry for a minute and a half)."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), 5).close()
    except OSError as error:
        raise cluster.RigError(f"nothing listens on {address}: {error.strerror or error}") from None


def run_scenario(options, name, golden):
    function = scenarios.ALL[name]
    parameters = {**scenarios.parameters(function), **options.settings}
    run = Run(options, name, parameters)
    begin = time.monotonic()
    skipped, broken = None, False
    try:
        reach(options.master)
        run.auditor().clear()
        function(run, **parameters)
    except scenarios.Skip as reason:
        skipped = str(reason)
    except Exception as error:
        broken = True
        if not isinstance(error, cluster.RigError):
            traceback.print_exc()
        run.check(f"rig: {error if isinstance(error, cluster.RigError) else repr(error)}", False)
    finally:
        run.finish(broken)
    result = run.result()
    if skipped is not None:
        result.update(skipped=skipped)
    elif golden is not None and not broken:
        compare(result, golden)
    return result, time.monotonic() - begin


# What two runs of one scenario must have in common, whatever the releases and the master.
COMPARED = ("seed", "parameters", "requests", "objects")


def compare(result, golden):
    """Adds checks against the golden run of the same scenario."""
    mine = json.loads(json.dumps(result))
    if result["scenario"] == "mixed_releases" and releases(mine) != releases(golden):
        result["notes"].append("the golden run is of other releases: not compared")
        return
    for part in COMPARED:
        same = mine[part] == golden[part]
        check = {"name": f"{part} equal to the golden run", "pass": same}
        if not same:
            check["detail"] = difference(mine[part], golden[part], part)
        result["checks"].append(check)
    result["pass"] = all(c["pass"] for c in result["checks"])


def releases(result):
    return [one["release"] for one in result["instances"]]


def difference(got, want, place):
    """The first place where two JSON values differ."""
    if isinstance(got, dict) and isinstance(want, dict):
        for name in sorted(set(got) | set(want)):
            if got.get(name) != want.get(name):
                return difference(got.get(name), want.get(name), f"{place}.{name}")
    if isinstance(got, list) and isinstance(want, list):
        for i, (a, b) in enumerate(zip(got, want)):
            if a != b:
                return difference(a, b, f"{place}[{i}]")
        if len(got) != len(want):
            return {"place": place, "got": f"{len(got)} elements", "want": f"{len(want)} elements"}
    return {"place": place, "got": got, "want": want}


def write_result(result, path):
    """JSON with one request, object or instance a line."""
    with open(path, "w") as file:
        file.write("{")
        for n, (name, value) in enumerate(result.items()):
            file.write(f"{',' if n else ''}\n {json.dumps(name)}: ")
            if isinstance(value, list) and value:
                file.write("[\n  " + ",\n  ".join(json.dumps(v) for v in value) + "\n ]")
            else:
                file.write(json.dumps(value))
        file.write("\n}\n")


def show(result, seconds, out):
    word = "SKIP" if "skipped" in result else "PASS" if result["pass"] else "FAIL"
    hits = [r["taken_tokens"] for r in result["requests"]]
    verified = sum(sum(r["verified_bytes"]) for r in result["requests"])
    print(f"{word} {result['scenario']}: {len(result['instances'])} instances, {len(result['requests'])} requests, "
          f"{len(result['objects'])} objects stored, hit tokens {hits}, {verified} bytes verified, "
          f"{sum(c['pass'] for c in result['checks'])}/{len(result['checks'])} checks, {seconds:.1f} s", file=out)
    if "skipped" in result:
        print(f"     reason: {result['skipped']}", file=out)
    for note in result["notes"]:
        print(f"     note: {note}", file=out)
    for check in result["checks"]:
        if not check["pass"]:
            print(f"     failed: {check['name']}  {json.dumps(check.get('detail'))}", file=out)


def setting(text):
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError("want NAME=VALUE")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--master", required=True, metavar="HOST:PORT", help="any store master that speaks the protocol")
    parser.add_argument("--master-release", default="", help="text for the report, e.g. the master's own version")
    parser.add_argument("--vllm", metavar="DIR", help="folder that holds an unpacked release (DIR/vllm)")
    parser.add_argument("--vllm-version", metavar="V", help="release V under --sources, instead of --vllm")
    parser.add_argument("--sources", metavar="DIR", help="folder of releases (DIR/V/vllm), as make deps-check makes build/deps/vllm")
    parser.add_argument("--other", metavar="DIR", help="a second unpacked release, for mixed_releases")
    parser.add_argument("--scenario", default="all", help="names separated by commas, or all")
    parser.add_argument("--set", action="append", default=[], type=setting, dest="settings", metavar="NAME=VALUE",
                        help="changes one parameter of the scenario (JSON value)")
    parser.add_argument("--protocol", default="tcp", choices=("tcp", "rdma"))
    parser.add_argument("--device", default="", help="RDMA device name, e.g. rxe0")
    parser.add_argument("--host", default="127.0.0.1", help="address of this machine that store clients announce")
    parser.add_argument("--seed", type=int, default=0, help="changes every prompt of every scenario")
    parser.add_argument("--like", metavar="FILE", action="append", default=[],
                        help="repeats the run recorded in FILE (scenario, parameters, seed) and checks that keys, bytes "
                             "and hits are the same; may be given several times, replaces --scenario")
    parser.add_argument("--out", metavar="DIR", help="writes DIR/SCENARIO.json")
    parser.add_argument("--logs", metavar="DIR", help="keeps the instances' logs there (default: removed if all pass)")
    parser.add_argument("--json", action="store_true", help="one JSON result a line on standard output")
    parser.add_argument("--list", action="store_true", help="names, purposes and parameters of the scenarios")
    options = parser.parse_args(arguments)
    options.settings = dict(options.settings)
    if bool(options.vllm) == bool(options.vllm_version):
        parser.error("give either --vllm or --vllm-version")
    if options.vllm_version:
        if not options.sources:
            parser.error("--vllm-version needs --sources")
        options.vllm = os.path.join(options.sources, options.vllm_version)
    if not options.master.rpartition(":")[2].isdigit():
        parser.error("--master wants HOST:PORT")
    options.source = os.path.abspath(options.vllm)
    options.vllm_release = cluster.release_of(options.source)
    if options.other:
        options.other = os.path.abspath(options.other)
    for folder in filter(None, (options.source, options.other)):
        if cluster.release_of(folder) is None:
            parser.error(f"no vLLM release in {folder}")
    return options, jobs(parser, options)


def jobs(parser, options):
    """What to run: (scenario, settings, seed, golden run or None)."""
    if options.like:
        listed = []
        for path in options.like:
            with open(path) as file:
                golden = json.load(file)
            listed.append((golden["scenario"], golden["parameters"], golden["seed"], golden))
    else:
        names = list(scenarios.ALL) if options.scenario == "all" else options.scenario.split(",")
        listed = [(name, options.settings, options.seed, None) for name in names]
    for name, settings, _, _ in listed:
        if name not in scenarios.ALL:
            parser.error(f"no scenario {name}; there are {', '.join(scenarios.ALL)}")
        unknown = set(settings) - set(scenarios.parameters(scenarios.ALL[name]))
        if unknown:
            parser.error(f"scenario {name} has no parameter {', '.join(sorted(unknown))}")
    return listed


def main(arguments):
    if "--list" in arguments:
        for name, function in scenarios.ALL.items():
            print(f"{name}: {function.__doc__.strip().splitlines()[0]}\n    {scenarios.parameters(function)}")
        return 0
    options, listed = parse(arguments)
    options.client_release = importlib.metadata.version("mooncake-transfer-engine-non-cuda")
    base = options.logs or tempfile.mkdtemp(prefix="rig-logs-")
    out = sys.stderr if options.json else sys.stdout
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    for number, (name, options.settings, options.seed, golden) in enumerate(listed):
        options.logs = os.path.join(base, f"{number:02d}-{name}")
        os.makedirs(options.logs, exist_ok=True)
        result, seconds = run_scenario(options, name, golden)
        show(result, seconds, out)
        out.flush()
        counts["skipped" if "skipped" in result else "passed" if result["pass"] else "failed"] += 1
        if options.json:
            print(json.dumps(result), flush=True)
        if options.out:
            os.makedirs(options.out, exist_ok=True)
            write_result(result, os.path.join(options.out, f"{name}.json"))
    if counts["failed"] or "--logs" in arguments:
        print(f"logs: {base}", file=out)
    else:
        shutil.rmtree(base, ignore_errors=True)
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts), file=out)
    return 1 if counts["failed"] else 0 if counts["passed"] else SKIPPED


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # store client threads of the auditors must not keep the process
