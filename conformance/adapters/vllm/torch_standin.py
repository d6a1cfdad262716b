# SPDX-License-Identifier: Apache-2.0
"""The few things of torch that hashing, registration and layouts touch: dtypes, strided views, storages, an event.

A storage is an address range, with content only where something reads it: buffer lists are arithmetic on addresses, so
no memory stands behind a KV cache.
"""
import importlib.machinery
import math
import sys

import numpy

from placeholders import InertModule, StandinLimit, inert

# Storages lie this far apart, so that an address beyond the end of one still tells which one it was counted from.
STORAGE_SPACING_BYTES = 1 << 44


class DType:
    def __init__(self, name: str, itemsize: int, floating: bool):
        self.name, self.itemsize, self.is_floating_point = name, itemsize, floating

    def __repr__(self):
        return f"torch.{self.name}"

    def __deepcopy__(self, memo):
        return self


DTYPES = {name: DType(name, itemsize, floating) for name, itemsize, floating in (
    ("uint8", 1, False), ("int8", 1, False), ("bool", 1, False), ("int16", 2, False), ("int32", 4, False),
    ("int64", 8, False), ("uint16", 2, False), ("uint32", 4, False), ("uint64", 8, False), ("float16", 2, True),
    ("bfloat16", 2, True), ("float32", 4, True), ("float64", 8, True), ("float8_e4m3fn", 1, True),
    ("float8_e5m2", 1, True), ("float8_e4m3fnuz", 1, True), ("float8_e5m2fnuz", 1, True),
    ("float8_e8m0fnu", 1, True), ("float4_e2m1fn_x2", 1, True), ("complex64", 8, False))}


class Storage:
    """An address range. `number` picks the place: storages that live together need different numbers."""

    def __init__(self, number: int, size_bytes: int, content: bytes | None = None):
        self._address = (number + 1) * STORAGE_SPACING_BYTES if size_bytes else 0
        self._size_bytes, self.content = size_bytes, content

    def data_ptr(self) -> int:
        return self._address

    def nbytes(self) -> int:
        return self._size_bytes


def place_of(address: int) -> tuple[int, int]:
    """Number of the storage that an address was counted from, and the offset in it."""
    return address // STORAGE_SPACING_BYTES - 1, address % STORAGE_SPACING_BYTES


class _TensorType(type):
    """Methods that modules name while they are imported are placeholders."""

    def __getattr__(cls, name):
        if name[:2] == "__":
            raise AttributeError(name)
        return inert(f"Tensor.{name}")


class Tensor(metaclass=_TensorType):
    """A strided view of a Storage: shape and strides in elements, offset in bytes."""

    is_cuda = False
    device = "cpu"

    def __init__(self, storage: Storage, dtype: DType, shape, strides, offset_bytes: int = 0):
        self._storage, self.dtype, self._offset_bytes = storage, dtype, offset_bytes
        self.shape, self._strides = tuple(shape), tuple(strides)

    def __getattr__(self, name):
        if name[:2] == "__":
            raise AttributeError(name)
        raise StandinLimit(f"torch.Tensor.{name} is not stood in")

    ndim = property(lambda self: len(self.shape))
    nbytes = property(lambda self: self.numel() * self.element_size())

    def __len__(self):
        return self.shape[0]

    def numel(self) -> int:
        return math.prod(self.shape)

    def stride(self, dim=None):
        return self._strides if dim is None else self._strides[dim]

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._storage.data_ptr() + self._offset_bytes

    def untyped_storage(self) -> Storage:
        return self._storage

    def permute(self, *dims):
        return self._view([self.shape[d] for d in dims], [self._strides[d] for d in dims], self._offset_bytes)

    def unflatten(self, dim: int, sizes):
        known = math.prod(size for size in sizes if size != -1)
        sizes = [self.shape[dim] // known if size == -1 else size for size in sizes]
        if math.prod(sizes) != self.shape[dim]:
            raise RuntimeError(f"unflatten: Provided sizes {sizes} don't multiply up to the size of dim {dim} "
                               f"({self.shape[dim]}) in the input tensor")
        strides, step = [], self._strides[dim]
        for size in reversed(sizes):
            strides.insert(0, step)
            step *= size
        return self._view([*self.shape[:dim], *sizes, *self.shape[dim + 1:]],
                          [*self._strides[:dim], *strides, *self._strides[dim + 1:]], self._offset_bytes)

    def __getitem__(self, index):
        index = index if isinstance(index, tuple) else (index,)
        shape, strides, offset_bytes = [], [], self._offset_bytes
        for axis, item in enumerate(index):
            size, stride = self.shape[axis], self._strides[axis]
            if isinstance(item, int):
                if not -size <= item < size:
                    raise IndexError(f"index {item} is out of bounds for dimension {axis} with size {size}")
                offset_bytes += item % size * stride * self.dtype.itemsize
            elif isinstance(item, slice) and item.step is None:
                start, stop, _ = item.indices(size)
                offset_bytes += start * stride * self.dtype.itemsize
                shape.append(max(0, stop - start))
                strides.append(stride)
            else:
                raise StandinLimit(f"index {item!r} of a tensor is not stood in")
        return self._view([*shape, *self.shape[len(index):]], [*strides, *self._strides[len(index):]], offset_bytes)

    def flatten(self):
        if self._strides != contiguous_strides(self.shape):
            raise StandinLimit("flatten of a tensor that is not contiguous is not stood in")
        return self._view([self.numel()], [1], self._offset_bytes)

    def cpu(self):
        return self

    def contiguous(self):
        return self

    def view(self, dtype: DType):
        count = self.nbytes // dtype.itemsize
        return Tensor(self._storage, dtype, [count], [1], self._offset_bytes)

    def numpy(self):
        if self.dtype is not DTYPES["uint8"] or self._storage.content is None:
            raise StandinLimit("only bytes with content have a numpy form here")
        return numpy.frombuffer(self._storage.content, numpy.uint8, self.numel(), self._offset_bytes)

    def _view(self, shape, strides, offset_bytes):
        return Tensor(self._storage, self.dtype, shape, strides, offset_bytes)

    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema
        return core_schema.any_schema()


def contiguous_strides(shape) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.insert(0, step)
        step *= size
    return tuple(strides)


def contiguous_tensor(storage: Storage, dtype: DType, shape) -> Tensor:
    return Tensor(storage, dtype, shape, contiguous_strides(shape))


class Event:
    """There is no device: work is complete when it is recorded."""

    def __init__(self, *args, **kwargs):
        pass

    def record(self, *args):
        pass

    def synchronize(self):
        pass


def _submodule(name: str, **members) -> InertModule:
    module = InertModule(f"torch.{name}")
    module.__path__ = []
    for member, value in members.items():
        setattr(module, member, value)
    sys.modules[module.__name__] = module
    return module


def install() -> None:
    """Puts the stand-in into sys.modules as torch."""
    torch = InertModule("torch")
    torch.__path__ = []
    torch.__version__ = "2.12.0"
    torch.__spec__ = importlib.machinery.ModuleSpec("torch", None, is_package=True)
    for name, dtype in DTYPES.items():
        setattr(torch, name, dtype)
    torch.float, torch.half, torch.int, torch.long = (DTYPES[n] for n in ("float32", "float16", "int32", "int64"))
    torch.dtype, torch.Tensor, torch.Event, torch.device = DType, Tensor, Event, str
    torch.cuda = _submodule("cuda", Event=Event, is_available=lambda: False, device_count=lambda: 0)
    torch.accelerator = _submodule("accelerator", is_available=lambda: False)
    torch.version = _submodule("version", cuda=None, hip=None, xpu=None)
    torch.distributed = _submodule("distributed", is_initialized=lambda: False, is_available=lambda: False)
    torch.library = _submodule("library", infer_schema=lambda *args, **kwargs: "() -> ()")
    sys.modules["torch"] = torch
