# SPDX-License-Identifier: Apache-2.0
"""Inert placeholders for packages that vLLM imports and that no answer depends on, and the hooks that hand them out.

A placeholder lets decorators, annotations and base classes of code that never runs pass an import. A call of a
placeholder while no vLLM module is being imported is an error: an answer never rests on one.
"""
import abc
import importlib.abc
import importlib.machinery
import sys
import types


class StandinLimit(AttributeError):
    """The release needs something of a replaced package that its stand-in does not have."""


def _check(name: str) -> None:
    if not _importing():
        raise StandinLimit(f"{name} is only a placeholder")


def _importing() -> bool:
    """Whether the body of a vLLM module is being executed further up the stack."""
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__", "").startswith("vllm"):
            return True
        frame = frame.f_back
    return False


class _InertType(abc.ABCMeta):
    """Class of placeholder classes: any attribute is another placeholder."""

    def __getattr__(cls, name):
        if name[:2] == "__":
            raise AttributeError(name)
        child = inert(f"{cls.__name__}.{name}")
        setattr(cls, name, child)
        return child

    def __or__(cls, other):
        return cls

    __ror__ = __or__

    def __iter__(cls):
        return iter(())

    def __len__(cls):
        return 0

    def __contains__(cls, item):
        return False

    def __lt__(cls, other):
        return False

    __gt__ = __le__ = __ge__ = __lt__


class Inert(metaclass=_InertType):
    """A value that accepts any use and has no effect. As a decorator it returns what it decorates."""

    def __init__(self, *args, **kwargs):
        _check(type(self).__name__)

    def __init_subclass__(cls, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        _check(type(self).__name__)
        if len(args) == 1 and not kwargs and callable(args[0]):
            return args[0]
        return Inert()

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        return Inert()

    def __class_getitem__(cls, item):
        return cls

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False

    def __iter__(self):
        return iter(())

    def __bool__(self):
        return False

    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema
        return core_schema.any_schema()


def _give_inert(self, *other):
    return Inert()


for _name in "add sub mul truediv floordiv mod pow lshift rshift and or xor".split():
    setattr(Inert, f"__{_name}__", _give_inert)
    setattr(Inert, f"__r{_name}__", _give_inert)
for _name in "neg pos abs invert getitem".split():
    setattr(Inert, f"__{_name}__", _give_inert)


def inert(name: str) -> type:
    return _InertType(name, (Inert,), {"__module__": __name__})


class InertModule(types.ModuleType):
    """A module whose every attribute is a placeholder class."""

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        value = inert(f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


# Packages whose mere presence makes vLLM choose a platform or an optional code path: they stay missing.
ABSENT = frozenset((
    "libtpu", "tpu_inference", "tpu_commons", "torch_xla", "amdsmi", "pynvml", "habana_frameworks", "ray", "aiter",
    "flashinfer", "flashinfer_cubin", "flash_attn", "intel_extension_for_pytorch", "lmcache", "nixl", "rixl",
    "nixl_cu13", "nixl_ep", "triton", "triton_kernels", "opentelemetry", "modelscope", "runai_model_streamer",
    "numba", "scipy", "pandas", "pytorch-triton-xpu"))
# Compiled parts of vLLM: not in a source distribution.
COMPILED = ("vllm._C", "vllm._moe_C", "vllm._flashmla_C", "vllm._core_C", "vllm._rs", "vllm.vllm_flash_attn",
            "vllm.cumem_allocator", "vllm._C_stable_libtorch", "vllm._rocm_C")
# Neural network code that modules on the way import: 0.30's core scheduler takes one class from the layers, for a
# feature that is off; 0.21's request module ends at operators that register themselves with torch.
LAYERS = ("vllm.model_executor.layers.fused_moe", "vllm.ir.ops")

replaced: set[str] = set()


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Last finder in the chain: called only for modules that nothing else provides."""

    def find_spec(self, fullname, path=None, target=None):
        top = fullname.partition(".")[0]
        if top == "vllm":
            if not fullname.startswith(COMPILED):
                return None
        elif top != "torch":
            if top in ABSENT or top in sys.stdlib_module_names:
                return None
            if top not in replaced and not self._asked_by_vllm():
                return None
            parent = sys.modules.get(top)
            if parent is not None and not isinstance(parent, InertModule):
                return None
        replaced.add(top)
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    @staticmethod
    def _asked_by_vllm() -> bool:
        frame = sys._getframe(2)
        while frame is not None:
            name = frame.f_globals.get("__name__", "")
            if not name.startswith("importlib") and frame.f_code.co_filename != __file__:
                return name.startswith("vllm.") and not name.startswith("vllm.platforms")
            frame = frame.f_back
        return False

    def create_module(self, spec):
        module = InertModule(spec.name)
        module.__path__ = []
        module.__version__ = "999"
        return module

    def exec_module(self, module):
        pass


class _LayerFinder(_Finder):
    """First finder in the chain, for the few vLLM modules that are model layers."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith(LAYERS):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None


def install() -> None:
    sys.meta_path.insert(0, _LayerFinder())
    sys.meta_path.append(_Finder())
