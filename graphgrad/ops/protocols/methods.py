"""Operators and methods of Tensor. The tensor is declared in ir, which knows no ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.first_tries import answer, listed
from ...base.length import Length
from ...ir.node import Tensor
from ..arrays.nonzero import nonzero, repeat
from ..arrays.taking import take
from ..contract.products import dot, matmul
from ..create.diagonal import diagonal, trace
from ..dtypes import DEVICE, astype, dlpack, to_device
from ..elementwise.arithmetic import add, divide, multiply, negative, positive, subtract
from ..elementwise.bounds import clip
from ..elementwise.complex_parts import conj, imag, real
from ..elementwise.logic import (
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    not_equal,
)
from ..elementwise.magnitudes import abs
from ..elementwise.powers import power
from ..elementwise.remainders import divmod, floor_divide, remainder
from ..elementwise.rounding import round
from ..reduce.cumulative import cumprod, cumsum
from ..reduce.reductions import all, any, argmax, argmin, max, mean, min, prod, std, sum, var
from ..reduce.sorting import argsort
from ..shape.indexing import getitem
from ..shape.joining import unstack
from ..shape.reshaping import flatten, matrix_transpose, reshape, squeeze, swapaxes, transpose
from .numpy_protocol import array_function, array_namespace, array_ufunc

__all__: list[str] = []

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "truediv": divide,
    "floordiv": floor_divide,
    "mod": remainder,
    "divmod": divmod,
    "pow": power,
    "matmul": matmul,
    "and": bitwise_and,
    "or": bitwise_or,
    "xor": bitwise_xor,
    "lshift": bitwise_left_shift,
    "rshift": bitwise_right_shift,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": equal,
    "ne": not_equal,
    "lt": less,
    "le": less_equal,
    "gt": greater,
    "ge": greater_equal,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": negative,
    "pos": positive,
    "abs": abs,
    "invert": bitwise_invert,
}
_FUNCTIONS = (
    *(all, any, argmax, argmin, argsort, clip, cumprod, cumsum, diagonal, dot, flatten, max, mean),
    *(min, nonzero, prod, repeat, squeeze, std, sum, swapaxes, take, trace, var),
)
"""Methods that are the functions of the same name, with the tensor first."""
_IN_PLACE = "fill itemset partition put resize setfield sort"
_VALUES = "item tolist tobytes tofile dump dumps"


def _reflected(fn: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: fn(other, self)


def _refusal(what: str, instead: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        raise self._symbolic(what, instead)

    return method


def _reshape(self: Tensor, *shape: Any, order: str = "C", copy: bool | None = None) -> Tensor:
    """gg.reshape: lengths one by one, or as one tuple."""
    return reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def _transpose(self: Tensor, *axes: Any) -> Tensor:
    """gg.transpose: axes one by one, or as one tuple; none of them: reversed."""
    return transpose(self, (axes[0] if len(axes) == 1 else axes) or None)


def _round(self: Tensor, ndigits: int | None = None) -> Tensor:
    """round(t, ndigits)."""
    return round(self, ndigits or 0)


def _device(self: Tensor) -> str:
    """The only one, the host."""
    return DEVICE


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    """The host, as DLPack counts devices."""
    return 1, 0


def _install() -> None:
    Length.operators = _BINARY
    members: dict[str, Any] = {
        "__getitem__": getitem,
        "__round__": _round,
        "round": round,
        "astype": astype,
        "to_device": to_device,
        "device": property(_device, doc="Where its arrays come from and go to."),
        "__dlpack__": dlpack,
        "__dlpack_device__": _dlpack_device,
        "unstacked": unstack,
        "ravel": flatten,
        "reshape": _reshape,
        "transpose": _transpose,
        "conj": conj,
        "conjugate": conj,
        "T": property(transpose, doc="The axes in reverse order."),
        "mT": property(matrix_transpose, doc="The last two axes exchanged."),
        "real": property(real, doc="The real part."),
        "imag": property(imag, doc="The imaginary part."),
        "__array_ufunc__": array_ufunc,
        "__array_function__": array_function,
        "__array_namespace__": array_namespace,
    }
    for name, fn in _BINARY.items():
        members[f"__{name}__"] = fn
        members[f"__r{name}__"] = _reflected(fn)
    members |= {f"__{name}__": fn for name, fn in (*_COMPARISONS.items(), *_UNARY.items())}
    members |= {fn.__name__: fn for fn in _FUNCTIONS}
    for name in (*_IN_PLACE.split(), "__setitem__", "__delitem__"):
        members[name] = _refusal(
            f"changing a tensor in place ({name})",
            "A tensor never changes: use the function of that name, gg.where to choose between old "
            "and new elements, or gg.add_at.",
        )
    for name in _VALUES.split():
        members[name] = _refusal(f"{name}()", "Use gg.evaluate(t, feeds) for a value.")
    members["__dir__"] = lambda self: listed(Tensor, object.__dir__(self))
    for name, member in members.items():
        setattr(Tensor, name, member)
    answer(Tensor)


_install()
