"""graphgrad as an array library with values, for the public tests of the Python array API.

    git clone --recurse-submodules https://github.com/data-apis/array-api-tests
    cd array-api-tests && pip install -r requirements.txt
    export ARRAY_API_TESTS_MODULE=array_api ARRAY_API_TESTS_VERSION=2024.12
    export PYTHONPATH=ROOT:ROOT/tools/vocabulary
    python -m pytest array_api_tests --max-examples=20 --disable-deadline \
        --xfails-file ROOT/tools/vocabulary/array_api_xfails.txt

An `Array` holds a NumPy array. What is done with it is done in a graph of its own: its arguments
become placeholders of their types, a function or method of graphgrad builds nodes, and the graph is
run. Nothing is computed here: functions, operators, dtypes, constants and errors are graphgrad's.

GRAPHGRAD_BACKEND: "numpy" (the default) or "llvm".
"""

from __future__ import annotations

import os
import sys
from functools import cache, wraps
from inspect import isroutine
from types import ModuleType
from typing import Any

import numpy as np

import graphgrad as gg

BACKEND = os.environ.get("GRAPHGRAD_BACKEND", "numpy")


class Array:
    """A NumPy array whose operators, methods and attributes are those of graphgrad's tensors."""

    __array_priority__ = 1e9
    __array_ufunc__ = None

    def __init__(self, value: np.ndarray) -> None:
        self.value = value

    @property
    def shape(self) -> tuple[int, ...]:
        """Its lengths."""
        return self.value.shape

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        _tensor(self).__array_namespace__(api_version=api_version)
        return sys.modules[__name__]

    def __iter__(self) -> Any:
        return iter(run(lambda x: tuple(x), self))

    def __repr__(self) -> str:
        return f"Array({self.value!r})"

    def __hash__(self) -> int:
        raise TypeError("arrays are not hashed")

    # What asks for a value: NumPy's answer, which is what gg.evaluate would give.

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __complex__(self) -> complex:
        return complex(self.value)

    def __index__(self) -> int:
        return self.value.__index__()


def _tensor(x: Array) -> gg.Tensor:
    """Its value as a constant, where no graph is run."""
    with gg.Graph():
        return gg.constant(x.value)


def run(fn: Any, *args: Any, **kwargs: Any) -> Any:
    """fn of tensors in place of arrays, and arrays in place of the tensors that it returns."""
    feeds: dict[gg.Tensor, np.ndarray] = {}

    def fed(thing: Any) -> Any:
        if isinstance(thing, Array):
            tensor = gg.placeholder(thing.value.shape, thing.value.dtype)
            feeds[tensor] = thing.value
            return tensor
        if type(thing) in (list, tuple):
            return type(thing)(map(fed, thing))
        return thing

    with gg.Graph():
        found = fn(*fed(args), **{name: fed(value) for name, value in kwargs.items()})
        if not _holds_tensors(found):
            return found
        values = gg.compile(list(feeds), found, backend=BACKEND)(*feeds.values())
    return _mapped(values)


def _holds_tensors(found: Any) -> bool:
    parts = found if isinstance(found, list | tuple) else (found,)
    return any(isinstance(part, gg.Tensor) for part in parts)


def _mapped(values: Any) -> Any:
    if isinstance(values, np.ndarray):
        return Array(values)
    made = [_mapped(v) for v in values]
    return type(values)(*made) if hasattr(values, "_fields") else type(values)(made)


def _wrapped(fn: Any) -> Any:
    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return run(fn, *args, **kwargs)

    return call


def _of_constant(method: Any) -> Any:
    """A method that asks for a value, which constants have."""

    @wraps(method)
    def call(self: Array, *args: Any, **kwargs: Any) -> Any:
        return method(_tensor(self), *args, **kwargs)

    return call


def _delegated(name: str) -> Any:
    """A property: the attribute of a tensor, as an array if it is a tensor."""
    return property(lambda self: run(lambda x: getattr(x, name), self))


def _install() -> None:
    Array.__dlpack__ = _of_constant(gg.Tensor.__dlpack__)
    for name, member in vars(gg.Tensor).items():
        if name in vars(Array) or name in ("__slots__", "__module__", "__init__", "__reduce__"):
            continue
        if isinstance(member, property):
            setattr(Array, name, _delegated(name))
        elif isroutine(member) and (name[:2] == "__" or name in ("astype", "to_device")):
            setattr(Array, name, _wrapped(member))


_install()


def _faced(member: Any) -> Any:
    """What stands here for a member of graphgrad."""
    if isinstance(member, ModuleType):
        face = ModuleType(member.__name__)
        for name in dir(member):
            setattr(face, name, _faced(getattr(member, name)))
        return face
    return _wrapped(member) if isroutine(member) else member


@cache
def __getattr__(name: str) -> Any:
    return _faced(getattr(gg, name))
