# SPDX-License-Identifier: Apache-2.0
"""Suite config: mooncake_config.json and the environment variables, as a release reads them."""
import contextlib
import dataclasses
import json
import os
import tempfile

from release import BadCase, NotHere, Release, check_members, error_answer

VARIABLES = ("MOONCAKE_CONFIG_PATH", "MOONCAKE_PREFERRED_SEGMENT", "MOONCAKE_REQUESTER_LOCAL_HOSTNAME")


@contextlib.contextmanager
def environment(values: dict):
    """Sets the connector's variables to `values` and no others; puts everything back."""
    for name, value in values.items():
        if name not in VARIABLES or not isinstance(value, str):
            raise BadCase(f"given.env.{name}: not a text of a variable that is read here")
        if "\0" in value or not _can_be_set(value):
            raise NotHere(f"given.env.{name}: no environment variable can hold this text")
    kept = {name: os.environ.pop(name, None) for name in VARIABLES}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in kept.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _can_be_set(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


class ConfigSuite:
    def __init__(self, release: Release):
        self._release = release
        worker = release.store_module("worker")
        self._store_config_class = worker.MooncakeStoreConfig
        self._names = tempfile.TemporaryDirectory()

    def answer(self, given: dict) -> dict:
        operations = {"store_config": self._store_config, "preferred_segment": self._preferred_segment,
                      "requester_hostname": self._requester_hostname}
        if given.get("op") not in operations:
            raise BadCase(f"given.op: {given.get('op')!r} is unknown")
        return operations[given["op"]](given)

    def _store_config(self, given: dict) -> dict:
        check_members("given", given, "op file_json file_text env_set env_value file_missing")
        path = os.path.join(self._names.name, "mooncake.json")
        self._write(path, given)
        variables = {"MOONCAKE_CONFIG_PATH": given.get("env_value", path)} if given.get("env_set", True) else {}
        cls = self._store_config_class
        load = getattr(cls, "load_from_config", None) or cls.load_from_env  # 0.21 has the second name
        try:
            with environment(variables):
                return {"value": dataclasses.asdict(load())}
        except Exception as error:
            if not self._release.raised(error):
                raise
            answer = error_answer(error)
            answer["error"]["message"] = answer["error"]["message"].replace(path, "<file>")
            return answer

    @staticmethod
    def _write(path: str, given: dict) -> None:
        text = given["file_text"] if "file_text" in given else json.dumps(given.get("file_json", {}))
        with open(path, "w", encoding="utf-8", errors="surrogatepass", newline="") as file:
            file.write(text)
        if given.get("file_missing"):
            os.unlink(path)

    def _helpers(self):
        try:
            return self._release.module("vllm.distributed.kv_transfer.kv_connector.v1.mooncake.rdma_utils")
        except ModuleNotFoundError:
            raise NotHere("releases before 0.22 read no such override") from None

    def _preferred_segment(self, given: dict) -> dict:
        check_members("given", given, "op env extra_config")
        with environment(given.get("env", {})):
            return {"value": self._helpers().get_configured_preferred_segment(given.get("extra_config", {}))}

    def _requester_hostname(self, given: dict) -> dict:
        check_members("given", given, "op env local_ip")
        with environment(given.get("env", {})):
            return {"value": self._helpers().get_requester_local_hostname(given.get("local_ip", "127.0.0.1"))}
