"""Compiled functions as built-in functions of Python: about 40 ns a call, a tenth of a ufunc's."""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

from .jit import Loaded

Function = Callable[..., Any]
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


class _MethodDef(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


class _Held:
    """What must live as long as the function: its code and its definition. It is its `self`.

    Called, it is `otherwise`: the code calls it for arguments that it does not take.
    """

    def __init__(self, loaded: Loaded, definition: _MethodDef, otherwise: Function | None) -> None:
        self.loaded = loaded
        self.definition = definition
        self.otherwise = otherwise

    def __call__(self, *args: Any) -> Any:
        assert self.otherwise is not None
        return self.otherwise(*args)


def built_in(loaded: Loaded, name: str, otherwise: Function | None = None) -> Function:
    """The function of this name, of the C type `ptr (ptr self, ptr args, i64 count)`."""
    definition = _MethodDef(name.encode(), loaded.address(name), FASTCALL, None)
    held = _Held(loaded, definition, otherwise)
    found: Function = _new(ctypes.addressof(definition), held, None)
    return found
