# SPDX-License-Identifier: Apache-2.0
"""One vLLM release made importable in this process, and which exceptions are the release's own."""
import importlib
import importlib.metadata
import logging
import os
import sys
import traceback
import types

import placeholders
import store_standin
import torch_standin

HERE = os.path.dirname(os.path.abspath(__file__))
STORE = "vllm.distributed.kv_transfer.kv_connector.v1.mooncake.store."


def profile_of(version: str) -> str:
    """vllm-0.33 for 0.33.0."""
    return "vllm-" + ".".join(version.split(".")[:2])


class BadCase(Exception):
    """The case cannot be understood; the text names the member."""


class NotHere(Exception):
    """The case is right, but this adapter cannot ask the release for it; the text says why."""


class Stuck(BaseException):
    """Something did not happen within its bound. Threads of the case may still run, so the process must be replaced.
    No Exception: no release may take it for a failed transfer or lookup."""


class Release:
    """The release in `source` (the folder that holds `vllm/`). A process can load only one."""

    def __init__(self, source: str):
        self.source = os.path.abspath(source)
        if not os.path.isfile(os.path.join(self.source, "vllm", "__init__.py")):
            raise SystemExit(f"adapter: no vLLM package in {self.source}")
        os.environ.update(VLLM_NO_USAGE_STATS="1", VLLM_CONFIGURE_LOGGING="0", VLLM_TARGET_DEVICE="cpu")
        logging.disable(logging.CRITICAL)
        sys.path.insert(0, self.source)
        torch_standin.install()
        store_standin.install()
        self._stand_in_versions()
        placeholders.install()

    @staticmethod
    def _stand_in_versions() -> None:
        """vLLM asks for the versions of packages that are replaced."""
        real = importlib.metadata.version
        importlib.metadata.version = lambda name: (
            sys.modules["torch"].__version__ if name == "torch" else "999" if name in placeholders.replaced
            else real(name))

    def module(self, name: str) -> types.ModuleType:
        return importlib.import_module(name)

    def store_module(self, name: str) -> types.ModuleType:
        """A module of the store connector: data, worker, scheduler, protocol."""
        return importlib.import_module(STORE + name)

    def raised(self, error: BaseException) -> bool:
        """Whether an exception is the release's own behaviour: raised by its code, or by something that it called, but
        not by this adapter or for want of something in a stand-in."""
        if isinstance(error, placeholders.StandinLimit):
            return False
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        inside = [number for number, file in enumerate(files) if file.startswith(self.source + os.sep)]
        if not inside:
            return False
        last = files[-1]
        return os.path.dirname(last) != HERE or last == torch_standin.__file__ or (
            last == store_standin.__file__ and isinstance(error, RuntimeError))  # a call that the case makes fail


def error_answer(error: BaseException) -> dict:
    return {"error": {"class": type(error).__name__, "message": str(error)}}


def check_members(place: str, members: dict, known: str) -> None:
    """Refuses members that are not in the space-separated list `known`."""
    if not isinstance(members, dict):
        raise BadCase(f"{place}: must be an object")
    unknown = sorted(set(members) - set(known.split()))
    if unknown:
        raise BadCase(f"{place}.{unknown[0]}: unknown member")
