"""Forms of what works number by number.

`out` is the dtype in which torch computes: that of the result, or of what is compared.
"""

from __future__ import annotations

from functools import cache, reduce
from importlib import import_module
from typing import Any

import numpy as np

from ...base.length import Length
from ...ir.node import Tensor
from ...ops.base import LengthValue, apply
from ..opened import Form, gg, of

torch: Any = import_module("torch")

__all__ = ["FORMS", "is_read", "to"]


def to(x: Any, dtype: Any) -> Any:
    """A tensor or a length as this dtype; a Python number is what the other operand makes of it."""
    if isinstance(x, Length):
        return apply(LengthValue(x, np.dtype(dtype)))
    if not isinstance(x, Tensor) or x.dtype == dtype:
        return x
    if x.dtype.kind == "c" and np.dtype(dtype).kind != "c":
        x = gg.real(x)
    return gg.cast(x, dtype)


def is_read(node: Any, place: int) -> bool:
    """Whether something reads this result of a node that has several."""
    return any(len(user.args) < 2 or user.args[1] == place for user in node.users)


def within(name: str) -> Form:
    """A public function of operands that are first cast to the dtype of the result."""
    fn = of(name)

    def call(*xs: Any, out: Any, **_: Any) -> Any:
        return fn(*[to(x, out) for x in xs])

    return call


def _first(name: str) -> Form:
    """A function of the first argument, which is cast."""
    fn = of(name)
    return lambda x, *_, out, **__: fn(to(x, out))


def as_it_is(name: str) -> Form:
    """A public function of the first argument, whatever the dtype of the result."""
    fn = of(name)
    return lambda x, *_, **__: fn(x)


def _scaled_sum(sign: int) -> Form:
    def call(x: Any, y: Any, alpha: Any = 1, *, out: Any, **kwargs: Any) -> Any:
        alpha = kwargs.get("alpha", alpha)
        x, y = to(x, out), to(y, out)
        y = y if alpha == 1 else y * to(alpha, out)
        return gg.add(x, y) if sign > 0 else gg.subtract(x, y)

    return call


def _rsub(x: Any, y: Any, alpha: Any = 1, *, out: Any, **_: Any) -> Any:
    return gg.subtract(to(y, out), to(x, out) if alpha == 1 else to(x, out) * alpha)


def _divide(x: Any, y: Any, *, out: Any, rounding_mode: Any = None, **_: Any) -> Any:
    x, y = to(x, out), to(y, out)
    if rounding_mode is None:
        return gg.divide(x, y)
    if rounding_mode == "floor":
        return gg.floor_divide(x, y)
    if np.dtype(out).kind == "f":
        return gg.trunc(gg.divide(x, y))
    if np.dtype(out).kind == "u":
        return gg.floor_divide(x, y)
    down = gg.floor_divide(x, y)
    off = gg.logical_and(gg.not_equal(down * y, x), gg.not_equal(gg.less(x, 0), gg.less(y, 0)))
    return gg.where(off, down + 1, down)


def _round(x: Any, *, out: Any, decimals: int = 0, **_: Any) -> Any:
    return gg.round(to(x, out), decimals)


def _truth(x: Any) -> Any:
    if not isinstance(x, Tensor):
        return bool(x)
    return x if x.dtype.kind == "b" else gg.not_equal(x, 0)


def _logical(name: str) -> Form:
    return lambda *xs, **_: getattr(gg, name)(*map(_truth, xs))


def _bits(logical: str, bitwise: str) -> Form:
    def call(*xs: Any, out: Any, **_: Any) -> Any:
        return getattr(gg, logical if out == "bool" else bitwise)(*[to(x, out) for x in xs])

    return call


def _clamp(x: Any, low: Any = None, high: Any = None, *, out: Any, **_: Any) -> Any:
    x, low, high = to(x, out), to(low, out), to(high, out)
    y = gg.clip(x, low, high)
    if _passes_at_its_ends() or isinstance(low, Tensor) or isinstance(high, Tensor):
        return y
    ends = [gg.greater(x, low)] if low is not None else []
    ends += [gg.less(x, high)] if high is not None else []
    return gg.where(reduce(gg.logical_and, ends), x, gg.stop_gradient(y)) if ends else y


@cache
def _passes_at_its_ends() -> bool:
    """Whether torch hands a gradient on where the argument is an end: until PyTorch 2.13."""
    x = torch.zeros((), requires_grad=True)
    (dx,) = torch.autograd.grad(x.clamp(0.0, 1.0), x)
    return bool(dx)


def _clamp_min(x: Any, low: Any, *, out: Any, **_: Any) -> Any:
    return _clamp(x, low, out=out)


def _clamp_max(x: Any, high: Any, *, out: Any, **_: Any) -> Any:
    return _clamp(x, None, high, out=out)


def _where(which: Any, x: Any, y: Any, *, out: Any, **_: Any) -> Any:
    return gg.where(_truth(which), gg.asarray(to(x, out)), to(y, out))


def _masked_fill(x: Any, mask: Any, value: Any, *, out: Any, **_: Any) -> Any:
    value = to(value, out) if isinstance(value, Tensor) else gg.constant(value, out)
    return gg.where(mask, value, x)


def _rsqrt(x: Any, *, out: Any, **_: Any) -> Any:
    return gg.reciprocal(gg.sqrt(to(x, out)))


def _converted(x: Any, *_: Any, out: Any, **__: Any) -> Any:
    """To integers towards 0; to bool whether it is not 0."""
    if out == "bool":
        return _truth(x)
    return to(x, out)


def _nan_to_num(x: Any, nan: Any, high: Any, low: Any, *, out: Any, **_: Any) -> Any:
    if x.dtype.kind not in "fc":
        return x
    return gg.nan_to_num(x, nan=0.0 if nan is None else nan, posinf=high, neginf=low)


def _addcmul(x: Any, a: Any, b: Any, *, out: Any, value: Any = 1, **_: Any) -> Any:
    return to(x, out) + to(a, out) * to(b, out) * value


def _addcdiv(x: Any, a: Any, b: Any, *, out: Any, value: Any = 1, **_: Any) -> Any:
    return to(x, out) + to(a, out) / to(b, out) * value


def _lerp(x: Any, y: Any, weight: Any, *, out: Any, **_: Any) -> Any:
    return x + to(weight, out) * (y - x)


def _polygamma(n: int, x: Any, *, out: Any, **_: Any) -> Any:
    return gg.special.polygamma(n, to(x, out))


def _sign(x: Any, **_: Any) -> Any:
    """0 of NaN."""
    y = gg.sign(x)
    return gg.where(gg.isnan(x), 0.0, y) if x.dtype.kind == "f" else y


def _frexp(x: Any, **_: Any) -> Any:
    part, exponent = gg.frexp(x)
    return part, gg.cast(exponent, "int32")


_UNARY = """
    acos acosh asin asinh atan atanh ceil cos cosh exp exp2 expm1 floor log log10 log1p log2 sin
    sinh sqrt tan tanh trunc square reciprocal deg2rad rad2deg sinc
"""
_BINARY = """
    atan2 copysign maximum minimum fmax fmin fmod remainder hypot logaddexp logaddexp2 nextafter gcd
    lcm ldexp heaviside floor_divide
"""
_SPECIAL = """
    erf erfc erfcx erfinv digamma gammaln i0e i1 i1e ndtri log_ndtr entr
"""
_COMPARED = {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}
_SPECIAL_NAMES = {
    "bessel_j0": "j0",
    "bessel_j1": "j1",
    "bessel_y0": "y0",
    "bessel_y1": "y1",
    "modified_bessel_k0": "k0",
    "modified_bessel_k1": "k1",
}

FORMS: dict[str, Form] = {
    **{name: _first(name) for name in _UNARY.split()},
    **{name: within(name) for name in _BINARY.split()},
    **{name: within(ours) for name, ours in _COMPARED.items()},
    **{f"special_{n}": _first(f"special.{n}") for n in _SPECIAL.split()},
    **{f"special_{n}": _first(f"special.{ours}") for n, ours in _SPECIAL_NAMES.items()},
    **{n: _first(f"special.{n}") for n in ("erf", "erfc", "erfinv", "digamma", "i0")},
    "lgamma": _first("special.gammaln"),
    "polygamma": _polygamma,
    "mvlgamma": lambda x, p, *, out, **_: gg.special.multigammaln(to(x, out), p),
    "xlogy": within("special.xlogy"),
    "special_xlog1py": within("special.xlog1py"),
    "special_zeta": within("special.zeta"),
    "igamma": within("special.gammainc"),
    "igammac": within("special.gammaincc"),
    "logit": lambda x, eps=None, *, out, **_: gg.special.logit(
        to(x, out) if eps is None else gg.clip(to(x, out), eps, 1 - eps)
    ),
    "neg": _first("negative"),
    "positive": as_it_is("positive"),
    "abs": as_it_is("abs"),
    "sign": _sign,
    "sgn": _sign,
    "signbit": as_it_is("signbit"),
    "round": _round,
    "frac": lambda x, **_: x - gg.trunc(x),
    "frexp": _frexp,
    "rsqrt": _rsqrt,
    "add": _scaled_sum(1),
    "sub": _scaled_sum(-1),
    "rsub": _rsub,
    "mul": within("multiply"),
    "div": _divide,
    "max.other": within("maximum"),
    "min.other": within("minimum"),
    "pow": within("power"),
    "float_power": within("power"),
    "addcmul": _addcmul,
    "addcdiv": _addcdiv,
    "lerp": _lerp,
    "clamp": _clamp,
    "clamp_min": _clamp_min,
    "clamp_max": _clamp_max,
    "where": _where,
    "masked_fill": _masked_fill,
    "nan_to_num": _nan_to_num,
    "isinf": as_it_is("isinf"),
    "isnan": as_it_is("isnan"),
    "isfinite": as_it_is("isfinite"),
    "isneginf": as_it_is("isneginf"),
    "isposinf": as_it_is("isposinf"),
    "logical_and": _logical("logical_and"),
    "logical_or": _logical("logical_or"),
    "logical_xor": _logical("logical_xor"),
    "logical_not": _logical("logical_not"),
    "bitwise_and": _bits("logical_and", "bitwise_and"),
    "bitwise_or": _bits("logical_or", "bitwise_or"),
    "bitwise_xor": _bits("logical_xor", "bitwise_xor"),
    "bitwise_not": _bits("logical_not", "bitwise_invert"),
    "bitwise_left_shift": within("bitwise_left_shift"),
    "bitwise_right_shift": within("bitwise_right_shift"),
    "__lshift__": within("bitwise_left_shift"),
    "__rshift__": within("bitwise_right_shift"),
    "_to_copy": _converted,
    "to": _converted,
    "_conj": as_it_is("conj"),
    "_conj_physical": as_it_is("conj"),
    "conj_physical": as_it_is("conj"),
    "angle": as_it_is("angle"),
    "complex": lambda x, y, **_: x + y * 1j,
    "polar": lambda x, angle, **_: x * gg.cos(angle) + x * gg.sin(angle) * 1j,
    "view_as_real": lambda x, **_: gg.stack([gg.real(x), gg.imag(x)], axis=-1),
    "view_as_complex": lambda x, **_: x[..., 0] + x[..., 1] * 1j,
    "real": as_it_is("real"),
    "imag": as_it_is("imag"),
    "detach": as_it_is("stop_gradient"),
}
