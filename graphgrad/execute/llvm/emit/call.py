"""Compiled functions as built-in functions of Python: about 40 ns a call, a tenth of a ufunc's."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

import numpy as np

from .jit import Loaded

Function = Callable[..., Any]
FASTCALL = 0x80  # METH_FASTCALL: (self, array of arguments, how many)

_WORDS = 4  # of a PyMethodDef: name, method, flags, doc

_new = ctypes.pythonapi.PyCFunction_NewEx
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)


def possible() -> bool:
    """Whether objects lie in memory as the code expects: CPython with 64 bits and its lock."""
    return (
        sys.implementation.name == "cpython"
        and sys.maxsize > 1 << 32
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
    )


class _Held:
    """What must live as long as the function, its code for one. It is its `self`.

    Called, it is `otherwise`: the code calls it for arguments that it does not take.
    """

    def __init__(self, loaded: Loaded, otherwise: Function | None) -> None:
        self.loaded = loaded
        self.otherwise = otherwise

    def __call__(self, *args: Any) -> Any:
        assert self.otherwise is not None
        return self.otherwise(*args)


def built_in(loaded: Loaded, name: str, otherwise: Function | None = None) -> Function:
    """The function of this name, of the C type `ptr (ptr self, ptr args, i64 count)`."""
    definition = _definition(name, loaded.address(name))
    function: Function = _new(definition.ctypes.data, _Held(loaded, otherwise), definition)
    return function


def _definition(name: str, address: int) -> Any:
    """A PyMethodDef. The function holds it as its module, and reads it until it is freed.

    An array, for the garbage collector knows nothing of arrays: it takes objects of Python apart
    in any order, and what a function reads must still be there when its turn comes.
    """
    text = name.encode() + b"\0"
    words = np.zeros(_WORDS + -(-len(text) // 8), np.uint64)
    words[:3] = words[_WORDS:].ctypes.data, address, FASTCALL
    words[_WORDS:].view(np.uint8)[: len(text)] = np.frombuffer(text, np.uint8)
    return words
