"""Compiled functions as built-in functions of Python: about 40 ns a call, a tenth of a ufunc's."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from typing import Any

from . import cache
from .jit import VERSION, Loaded, host, object_code

FASTCALL = 0x80  # METH_FASTCALL: (self, array of arguments, how many)

_new = ctypes.pythonapi.PyCFunction_NewEx
_new.restype = ctypes.py_object
_new.argtypes = (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)


def possible() -> bool:
    """Whether objects lie in memory as the code expects: CPython with 64 bits and its lock."""
    return (
        sys.implementation.name == "cpython"
        and sys.maxsize > 1 << 32
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
    )


def load(text: str, names: Sequence[str], level: int = 0) -> dict[str, Callable[..., Any]]:
    """The functions of these names of a module's text, compiled or taken from the cache.

    Each has the C type `ptr (ptr self, ptr args, i64 count)` and returns a new reference. level:
    how hard LLVM tries; 0 where the text is as it should be.
    """
    target = host()
    key = cache.key_of(VERSION, repr(target), str(level), text)
    code = cache.read(key)
    if code is None:
        code = object_code(text, target, level)
        cache.write(key, code)
    loaded = Loaded(code, names)
    return {name: _built_in(name, loaded) for name in names}


class _MethodDef(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Held:
    """What must live as long as the function: its code and its definition. It is its `self`."""

    def __init__(self, loaded: Loaded, definition: _MethodDef) -> None:
        self.loaded = loaded
        self.definition = definition


def _built_in(name: str, loaded: Loaded) -> Callable[..., Any]:
    definition = _MethodDef(name.encode(), loaded.address(name), FASTCALL, None)
    found: Callable[..., Any] = _new(ctypes.addressof(definition), _Held(loaded, definition), None)
    return found
