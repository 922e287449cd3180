"""What is known of an expression of a kernel before it runs.

A kernel is Python source. Its op, the array namespace, globals, the number of its inputs and what
is known of their types are settled when a file is written; the values of its inputs are not.
"""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import math
import operator
import zlib
from collections.abc import Iterator, Mapping
from inspect import signature
from types import FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..base.lazy import LazyModule
from ..ir.types import TensorType
from ..ops.linalg import lapack
from ..ops.shape.updates import never_changes
from ..ops.special.scipy_functions import need_scipy
from .syntax import Refused, free_names

__all__ = [
    "FALSE_HERE",
    "KernelNames",
    "Local",
    "NotKnown",
    "is_local",
    "is_own_function",
    "refuse",
    "unwrapped",
]


class NotKnown(Exception):
    """An expression depends on what is known when the program runs."""


class Local:
    """A value that is computed when the file runs, by its name there. Its type may be known.

    Whoever asks more of it than this gets NotKnown.
    """

    __slots__ = ("name", "type")

    def __init__(self, name: str, type: TensorType | None = None) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "type", type)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype, which is always known of an input."""
        return self.promise.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.promise.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, if every length is known."""
        if not self.promise.static:
            raise NotKnown
        return self.promise.shape  # type: ignore[return-value]

    @property
    def promise(self) -> TensorType:
        """The type that is known."""
        if self.type is None:
            raise NotKnown
        return self.type

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # isinstance() asks for it
        raise NotKnown

    def __getattr__(self, name: str) -> NoReturn:
        raise NotKnown

    def _unknown(self, *_: Any) -> Any:
        raise NotKnown

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = _unknown
    __iter__ = __len__ = __getitem__ = __call__ = __index__ = __float__ = __int__ = _unknown
    __array__ = _unknown


def is_local(value: object) -> bool:
    """Whether it is a Local, which does not answer to isinstance()."""
    return type(value) is Local


class KernelNames(NamedTuple):
    """The names of a function: what they are, where that is known.

    bound    what is known of parameters and of names that are set once
    moving   names whose value is made when it runs
    globals  of its module, with the closure
    """

    bound: dict[str, Any]
    moving: frozenset[str]
    globals: Mapping[str, Any]

    def without(self, names: set[str]) -> KernelNames:
        """The scope inside a comprehension or a lambda, which has names of its own."""
        return self._replace(moving=self.moving | names)

    def value(self, name: str) -> Any:
        """What a name stands for; NotKnown."""
        if name in self.moving:
            raise NotKnown
        if name in self.bound:
            return self.bound[name]
        if name in self.globals:
            return _in_a_world_of_numpy(self.globals[name])
        if hasattr(builtins, name):
            return getattr(builtins, name)
        raise NotKnown

    def known(self, node: ast.expr) -> Any:
        """The value of an expression; NotKnown. Refused where it cannot be had without SciPy."""
        names = {name: self.value(name) for name in sorted(free_names(node))}
        for call in _calls(node):
            self._check(call)
        names = {name: _uncached(value) for name, value in names.items()}
        code = compile(ast.fix_missing_locations(ast.Expression(node)), "<kernel>", "eval")
        try:
            return eval(code, {"__builtins__": builtins.__dict__, **names})
        except (NotKnown, Refused):
            raise
        except Exception:
            raise NotKnown from None

    def _check(self, call: ast.Call) -> None:
        """NotKnown for a call that is not to be made before it runs."""
        called = self.known(call.func)
        refuse(called)
        if not _may_be_called(called):
            raise NotKnown
        for part in (*call.args, *(k.value for k in call.keywords)):
            if isinstance(part, ast.Name) and self._is_namespace(part.id):
                raise NotKnown

    def _is_namespace(self, name: str) -> bool:
        """Whether a name is NumPy: what is given it computes arrays."""
        try:
            return self.value(name) is np
        except NotKnown:
            return False


def _uncached(value: Any) -> Any:
    """A function that has a cache as it was written: what is known when it runs has no hash."""
    if is_local(value) or not hasattr(value, "cache_info"):
        return value
    return unwrapped(value) if is_own_function(unwrapped(value)) else value


def _in_a_world_of_numpy(value: Any) -> Any:
    """What a global is where only NumPy is installed."""
    return None if isinstance(value, LazyModule) else value


NEEDS = {need_scipy: "SciPy", lapack.needed: "SciPy"}


def refuse(called: Any) -> None:
    """Refused for what says that it needs more than NumPy."""
    what = NEEDS.get(called) if isinstance(called, FunctionType) else None
    if what is not None:
        raise Refused(f"its kernel needs {what}")


def unwrapped(value: Any) -> Any:
    """A function as it was written, without what caches it."""
    return getattr(value, "__wrapped__", value) if callable(value) else value


def is_own_function(value: Any) -> bool:
    """Whether it is written in Python, and not a part of NumPy or the standard library."""
    if not isinstance(value, FunctionType):
        return False
    top = value.__module__.partition(".")[0]
    return top != "numpy" and top not in _STANDARD


_STANDARD = {"math", "functools", "itertools", "operator", "zlib", "builtins", "collections"}
_MODULES: tuple[ModuleType, ...] = (math, operator, functools, itertools, zlib)
_BUILTINS = {
    *(abs, all, any, bool, dict, divmod, enumerate, float, getattr, int, isinstance, len, list),
    *(map, max, min, next, iter, range, reversed, round, set, slice, sorted, str, sum, tuple),
    *(type, zip, complex),
}
_OF_TYPES = {np.dtype, np.finfo, np.iinfo, np.issubdtype, np.result_type, np.broadcast_shapes}
_PLAIN = (str, tuple, frozenset, np.dtype)


def _may_be_called(called: Any) -> bool:
    """Whether a call of it with what is known has no effect, and no array as its result."""
    if isinstance(called, functools.partial) and called.func is super:
        return True
    if hasattr(called, "cache_info") and not signature(called).parameters:
        return False  # what lives as long as a process is made where the file runs
    called = unwrapped(called)
    if isinstance(called, MethodType):
        return is_own_function(called.__func__)
    if is_own_function(called):
        return True
    if isinstance(called, type):
        own = called.__module__.partition(".")[0] not in ("numpy", *_STANDARD)
        return own or called in _BUILTINS or called in _OF_TYPES
    if not getattr(called, "__hash__", None):
        return False
    if called in _BUILTINS or called in _OF_TYPES:
        return True
    if any(getattr(m, getattr(called, "__name__", ""), None) is called for m in _MODULES):
        return True
    owner = getattr(called, "__self__", None)
    return isinstance(owner, _PLAIN) or (isinstance(owner, dict | list) and _looks(called))


def _looks(method: Any) -> bool:
    return method.__name__ in ("count", "get", "index", "items", "keys", "values")


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls in an expression, those in comprehensions too."""
    return (each for each in ast.walk(node) if isinstance(each, ast.Call))


FALSE_HERE = {never_changes}
"""Questions about an array that NumPy's always answer with no."""
