"""A graph run in many digits, by the kernels that it is run by in few.

Kernels are written for an array namespace, so arrays of many-digit numbers run through them, and
through the gradients. Functions that kernels have no formula for are mpmath's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import ExecutionError, MissingBackendError
from ..base.lazy import lazy_module
from ..ir.node import Node, Tensor
from ..ir.program import Program
from ..ops.base import Constant, Full

mp = lazy_module("mpmath")


def needed_package(who: str) -> None:
    """MissingBackendError without mpmath."""
    if mp is None:
        raise MissingBackendError(f"{who} needs the package 'mpmath': pip install mpmath")


class LongReal:
    """A number of many digits that divides by 0 and leaves domains as IEEE 754 says."""

    __slots__ = ("v",)
    v: Any

    def __init__(self, v: Any) -> None:
        if isinstance(v, np.ndarray):
            v = v.item()
        self.v = v.v if isinstance(v, LongReal) else mp.mpf(v)

    def __add__(self, other: Any) -> LongReal:
        return LongReal(self.v + LongReal(other).v)

    def __sub__(self, other: Any) -> LongReal:
        return LongReal(self.v - LongReal(other).v)

    def __rsub__(self, other: Any) -> LongReal:
        return LongReal(other) - self

    def __mul__(self, other: Any) -> LongReal:
        return LongReal(self.v * LongReal(other).v)

    def __truediv__(self, other: Any) -> LongReal:
        below = LongReal(other).v
        if below == 0:
            return LongReal(
                math.nan if self.v == 0 or mp.isnan(self.v) else mp.inf * mp.sign(self.v)
            )
        return LongReal(self.v / below)

    def __rtruediv__(self, other: Any) -> LongReal:
        return LongReal(other) / self

    def __pow__(self, other: Any) -> LongReal:
        e = LongReal(other).v
        if self.v == 0 and e < 0:
            return LongReal(mp.inf)
        power = self.v**e
        return LongReal(math.nan if isinstance(power, mp.mpc) else power)

    def __rpow__(self, other: Any) -> LongReal:
        return LongReal(other) ** self

    def __neg__(self) -> LongReal:
        return LongReal(-self.v)

    def __abs__(self) -> LongReal:
        return LongReal(abs(self.v))

    def __float__(self) -> float:
        try:
            return float(self.v)
        except OverflowError:
            return math.copysign(math.inf, self.v)

    def __eq__(self, other: object) -> bool:
        return bool(self.v == LongReal(other).v)

    def __lt__(self, other: Any) -> bool:
        return bool(self.v < LongReal(other).v)

    def __le__(self, other: Any) -> bool:
        return bool(self.v <= LongReal(other).v)

    def __gt__(self, other: Any) -> bool:
        return bool(self.v > LongReal(other).v)

    def __ge__(self, other: Any) -> bool:
        return bool(self.v >= LongReal(other).v)

    __hash__ = None  # type: ignore[assignment]
    __radd__, __rmul__ = __add__, __mul__

    def __repr__(self) -> str:
        return str(mp.nstr(self.v, 20))


HUGE = 4500
"""Bits: mpmath takes as many digits as an argument has, and that of exp(exp(x)) may have a million.
"""


def _real(f: Callable[..., Any], steep: bool = False) -> Callable[..., Any]:
    """A function of mpmath for each element; NaN outside its domain, infinite at its poles.

    Of one that is steep, arguments beyond 2**HUGE are infinite.
    """

    def one(*xs: Any) -> LongReal:
        vs = [LongReal(x).v for x in xs]
        if steep:
            vs = [mp.sign(v) * mp.inf if v and mp.mag(v) > HUGE else v for v in vs]
        if any(mp.isnan(v) for v in vs):
            return LongReal(math.nan)
        try:
            y = f(*vs)
        except (ValueError, ZeroDivisionError, OverflowError):
            return LongReal(math.nan)
        return LongReal(math.nan if isinstance(y, mp.mpc) else y)

    made: Callable[..., Any] = np.frompyfunc(one, _arity(f), 1)
    return made


def _arity(f: Any) -> int:
    return f.__code__.co_argcount if hasattr(f, "__code__") else 1


def _exp(x: Any) -> Any:
    """mpmath takes powers of e where x is whole, which is slow where that is large."""
    half = mp.mpf(0.5)
    return mp.exp(x) if abs(x) < 1e9 or mp.isinf(x) else mp.exp(x - half) * mp.exp(half)


def _log(x: Any) -> Any:
    return mp.log(x) if x > 0 else (-mp.inf if x == 0 else mp.nan)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _bessel(n: int) -> Callable[..., Any]:
    def j(x: Any) -> Any:
        if abs(x) < 2 + n:
            term = x**n / mp.fac2(2 * n + 1)
            total, k = mp.mpf(0), 0
            while abs(term) > mp.eps * abs(total) and k < 10000:
                total += term
                k += 1
                term *= -x * x / 2 / (k * (2 * n + 2 * k + 1))
            return total
        return (
            mp.sqrt(mp.pi / 2 / x) * mp.besselj(n + mp.mpf(1) / 2, x)
            if x > 0
            else (-1) ** n * j(-x)
        )

    return j


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "exp": _exp,
    "log": _log,
    "log2": lambda x: _log(x) / mp.log(2),
    "log10": lambda x: _log(x) / mp.log(10),
    "exp2": lambda x: mp.mpf(2) ** x,
    "expm1": lambda x: mp.expm1(x) if abs(x) < 1 else _exp(x) - 1,
    "log1p": lambda x: _log(1 + x),
    "sqrt": lambda x: mp.sqrt(x),
    "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
    "sin": lambda x: mp.sin(x),
    "cos": lambda x: mp.cos(x),
    "tan": lambda x: mp.tan(x),
    "arcsin": lambda x: mp.asin(x),
    "arccos": lambda x: mp.acos(x),
    "arctan": lambda x: mp.atan(x),
    "sinh": lambda x: mp.sinh(x),
    "cosh": lambda x: mp.cosh(x),
    "tanh": lambda x: mp.tanh(x),
    "arcsinh": lambda x: mp.asinh(x),
    "arccosh": lambda x: mp.acosh(x),
    "arctanh": lambda x: mp.atanh(x),
    "sign": lambda x: mp.sign(x),
    "floor": lambda x: mp.floor(x),
    "ceil": lambda x: mp.ceil(x),
    "rint": lambda x: mp.nint(x),
    "trunc": lambda x: mp.floor(x) if x > 0 else mp.ceil(x),
    "arctan2": lambda y, x: mp.atan2(y, x),
    "hypot": lambda x, y: mp.hypot(x, y),
    "logaddexp": lambda x, y: (
        max(x, y) + mp.log1p(mp.exp(-abs(x - y))) if x != y else x + mp.log(2)
    ),
    "copysign": lambda x, y: abs(x) * (1 if y >= 0 else -1),
    "maximum": lambda x, y: max(x, y),
    "minimum": lambda x, y: min(x, y),
}
"""What a namespace calls them -> the function."""
STEEP = ("exp", "exp2", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh")

OPS: dict[str, Callable[..., Any]] = {
    "Erf": lambda x: mp.erf(x),
    "Erfc": lambda x: mp.erfc(x),
    "Erfcx": lambda x: mp.exp(x * x) * mp.erfc(x),
    "Gaussian": lambda x: mp.exp(-x * x),
    "GammaLn": lambda x: mp.loggamma(x),
    "Digamma": lambda x: mp.digamma(x),
    "BetaLn": lambda x, y: mp.loggamma(x) + mp.loggamma(y) - mp.loggamma(x + y),
    "PolyGammaDifference": lambda x, y: mp.digamma(x) - mp.digamma(x + y),
    "LogNdtr": lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2),
    "Sigmoid": _sigmoid,
    "SigmoidSlope": lambda x: _sigmoid(x) * _sigmoid(-x),
    "TanhSlope": lambda x: 1 / mp.cosh(x) ** 2,
    "Softplus": lambda x: mp.log1p(mp.exp(-abs(x))) + max(x, 0),
    "Log1mExp": lambda x: (
        mp.log(-FUNCTIONS["expm1"](-x)) if x > 0 else (-mp.inf if x == 0 else mp.nan)
    ),
    "AtanSlope": lambda x: 1 / (1 + x * x),
}
"""Op types whose kernels are not formulas of these -> the function."""


def _matrices(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function of mpmath's matrices for each of a stack."""

    def each(a: Any, *bs: Any) -> Any:
        if a.ndim > 2:
            return np.stack([each(*rows) for rows in zip(a, *bs, strict=True)])
        return _array(
            f(_matrix(a), *[_matrix(b) if b.ndim == 2 else _matrix(b[:, None]) for b in bs])
        )

    return each


def _matrix(a: Any) -> Any:
    return mp.matrix([[x.v for x in row] for row in a])


def _back(m: Any) -> Any:
    out = np.empty((m.rows, m.cols), dtype=object)
    for at in np.ndindex(m.rows, m.cols):
        out[at] = LongReal(m[at])
    return out


def _solve(a: Any, b: Any) -> Any:
    made = _matrices(lambda m, n: _back(mp.lu_solve(m, n) if n.cols == 1 else mp.inverse(m) * n))(
        a, b
    )
    return made[..., 0] if b.ndim < a.ndim else made


MATRICES: dict[str, Callable[..., Any]] = {
    "Det": _matrices(lambda m: LongReal(mp.det(m))),
    "Inverse": _matrices(lambda m: _back(mp.inverse(m))),
    "Cofactors": _matrices(lambda m: _back(mp.det(m) * mp.inverse(m).T)),
    "Solve": _solve,
}


class ManyDigits:
    """NumPy's names for arrays of many-digit numbers."""

    def __init__(self) -> None:
        for name, f in FUNCTIONS.items():
            setattr(self, name, _real(f, name in STEEP))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def isfinite(self, x: Any) -> Any:
        """Whether elements are finite numbers."""
        return self._test(x, lambda v: mp.isfinite(v))

    def isnan(self, x: Any) -> Any:
        """Whether elements are NaN."""
        return self._test(x, lambda v: mp.isnan(v))

    def isinf(self, x: Any) -> Any:
        """Whether elements are infinite."""
        return self._test(x, lambda v: mp.isinf(v))

    def signbit(self, x: Any) -> Any:
        """Whether elements are below 0."""
        return self._test(x, lambda v: v < 0)

    def _test(self, x: Any, f: Callable[[Any], bool]) -> Any:
        return np.asarray(np.frompyfunc(lambda a: bool(f(LongReal(a).v)), 1, 1)(x), dtype=bool)

    def ldexp(self, x: Any, n: Any) -> Any:
        """x * 2**n."""
        return np.frompyfunc(lambda a, k: LongReal(mp.ldexp(LongReal(a).v, int(k))), 2, 1)(x, n)


def run(
    xs: Sequence[Tensor], ys: Sequence[Tensor], arrays: Sequence[Any], digits: int = 1000
) -> list[Any]:
    """Arrays of many-digit numbers for ys.

    Parameters:
        xs, arrays: the inputs, and the floating arrays that they are given.
        ys: what to compute of them.
        digits: decimal ones that are carried.

    Raises: ExecutionError for a node that has no value in many digits: a draw, a loop.
    """
    return list(values(xs, ys, arrays, digits).values())


def values(
    xs: Sequence[Tensor], ys: Sequence[Tensor], arrays: Sequence[Any], digits: int = 1000
) -> dict[Tensor, Any]:
    """The same by tensor; of all tensors on the way, too, if ys are all of them."""
    xp = ManyDigits()
    with mp.workdps(digits):
        known: dict[Tensor, Any] = {x: lifted(a) for x, a in zip(xs, arrays, strict=True)}
        for node in Program(xs, ys).nodes:
            outputs = _node(xp, node, [known[t] for t in node.inputs])
            known.update(zip(node.outputs, outputs, strict=True))
    return {y: known[y] for y in ys}


def lifted(array: Any) -> Any:
    """An array of many-digit numbers of a floating one; others as they are."""
    array = np.asarray(array)
    if array.dtype.kind not in "fV":
        return array
    out = np.empty(array.shape, dtype=object)
    for at in np.ndindex(array.shape):
        out[at] = LongReal(float(array[at]))
    return out


def _node(xp: ManyDigits, node: Node, inputs: list[Any]) -> tuple[Any, ...]:
    op: Any = node.op
    if isinstance(op, Constant):
        return (lifted(op.value),)
    if isinstance(op, Full):
        return (lifted(np.full(op.shape, op.value, op.dtype)),)
    if op.type == "Cast":
        return (_cast(inputs[0], node.outputs[0].dtype),)
    if op.type in MATRICES:
        return (_array(MATRICES[op.type](*inputs)),)
    if op.type == "SLogDet":
        det = MATRICES["Det"](*inputs)
        size = _real(_log)(abs(det))
        return _array(_real(lambda x: mp.sign(x))(det)), _array(size)
    special = OPS.get(op.type) or (_bessel(op.order) if op.type == "SphericalBessel" else None)
    if special is not None:
        return (_array(_real(special, steep=True)(*inputs)),)
    if op.type == "Exponent":
        whole = np.frompyfunc(lambda a: int(mp.frexp(LongReal(a).v)[1]), 1, 1)
        return (np.asarray(whole(inputs[0]), dtype=node.outputs[0].dtype),)
    try:
        made = op.kernel(xp, *inputs)
    except Exception as error:
        raise ExecutionError(
            f"{node.name} ({node.type}, built at {node.where}) has no value in many digits: {error}"
        ) from error
    return tuple(map(_array, made)) if isinstance(made, tuple) else (_array(made),)


def _cast(x: Any, dtype: Any) -> Any:
    if dtype.kind in "fV":
        return x if x.dtype == object else lifted(np.asarray(x, dtype=float))
    return np.asarray([float(a) for a in x.reshape(-1)]).reshape(x.shape).astype(dtype)


def _array(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, LongReal | float | int) and not isinstance(x, bool):
        out = np.empty((), dtype=object)
        out[()] = LongReal(x)
        return out
    return np.asarray(x)


def floats(array: Mapping[Any, Any] | Any) -> Any:
    """The nearest float64 of an array of many-digit numbers."""
    array = np.asarray(array)
    if array.dtype != object:
        return array
    return np.asarray([float(a) for a in array.reshape(-1)]).reshape(array.shape)
