"""Functions whose gradient is finite at an edge, where a formula gives NaN or infinity.

What a gradient is where it is undefined is a parameter, 0 unless a package's way is wanted.
"""

from __future__ import annotations

from math import pi
from typing import Annotated, Literal

from ...base.domains import NUMBER
from ...ir.node import Tensor
from . import maths as m
from .row import Axis, NonNegative, Positive
from .rows import pulled

FAMILY = "stable"
Undefined = Annotated[float, NUMBER]
TENSORFLOW = "TensorFlow, Abadi et al. 2016"
WHERE = 'the "double where" of autodiff folklore'


def _safe(t: Tensor, there: Tensor) -> Tensor:
    return m.where(there, t, 1.0)


@pulled(
    f"{WHERE}; Paulus et al. 2026, SoftJax",
    lambda x: m.where(x > 0, m.sqrt(_safe(x, x > 0)), 0.0),
    contract="exact",
)
def safe_sqrt(dy: Tensor, x: Tensor, undefined: Undefined = 0.0) -> Tensor:
    """The square root, 0 for negative x, with a finite gradient at 0."""
    return m.where(x > 0, dy / (2.0 * m.sqrt(_safe(x, x > 0))), undefined)


@pulled(
    f"{WHERE}; Paulus et al. 2026, SoftJax",
    lambda x: m.where(x > 0, m.log(_safe(x, x > 0)), 0.0),
    contract="exact",
    traps="the value is changed as well: log(0) is 0",
)
def safe_log(dy: Tensor, x: Tensor) -> Tensor:
    """The logarithm, and 0 for arguments that are not positive."""
    return m.where(x > 0, dy / _safe(x, x > 0), 0.0)


@pulled(
    f"{WHERE}; Paulus et al. 2026, SoftJax",
    lambda x: m.where(m.abs(x) < 1, m.arcsin(m.where(m.abs(x) < 1, x, 0.0)), m.sign(x) * (pi / 2)),
    contract="exact",
)
def safe_arcsin(dy: Tensor, x: Tensor) -> Tensor:
    """The arc sine, without a gradient at 1 and -1."""
    inside = m.abs(x) < 1
    return m.where(inside, dy / m.sqrt(1.0 - m.square(m.where(inside, x, 0.0))), 0.0)


@pulled(
    f"{TENSORFLOW}; Paulus et al. 2026, SoftJax",
    lambda x, y: m.where(y != 0, x / _safe(y, y != 0), 0.0),
    contract="exact",
)
def divide_no_nan(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """x / y, and 0 where y is 0."""
    there = y != 0
    low = _safe(y, there)
    return m.where(there, dy / low, 0.0), m.where(there, -dy * x / (low * low), 0.0)


@pulled(
    TENSORFLOW,
    lambda x, y: m.where(y != 0, _safe(x, y != 0) * y, 0.0),
    contract="exact",
    linear=False,
)
def multiply_no_nan(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """x y, and 0 where y is 0, even if x is not finite."""
    return m.where(y != 0, dy * y, 0.0), m.where(dy != 0, x * dy, 0.0)


@pulled(TENSORFLOW, lambda x, y: m.where(x != 0, x / y, 0.0), contract="exact")
def xdivy(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """x / y, and 0 where x is 0, whatever y is."""
    there = x != 0
    low = _safe(y, there)
    return m.where(there, dy / low, 0.0), m.where(there, -dy * x / (low * low), 0.0)


@pulled(
    f"{TENSORFLOW}; torch, Paszke et al. 2019",
    lambda x, y: m.where(x != 0, x * m.log(_safe(y, x != 0)), 0.0),
    contract="exact",
    traps='dx is 0 where x is 0 in TensorFlow, where y is, too, in torch (zero="both"), nowhere in '
    'JAX ("none"); dy of 0 / 0 is NaN in both (undefined)',
)
def xlogy(
    dy: Tensor,
    x: Tensor,
    y: Tensor,
    zero: Literal["x", "both", "none"] = "x",
    undefined: Undefined = 0.0,
) -> tuple[Tensor, ...]:
    """x log(y), and 0 where x is 0."""
    off = {"x": x == 0, "both": m.logical_and(x == 0, y <= 0), "none": x != x}[zero]
    dx = m.where(off, 0.0, dy * m.log(m.where(off, 1.0, y)))
    lost = m.logical_and(x == 0, y == 0)
    return dx, m.where(lost, undefined, dy * x / m.where(lost, 1.0, y))


@pulled(
    TENSORFLOW,
    lambda x, y: m.where(x != 0, x * m.log1p(m.where(x != 0, y, 0.0)), 0.0),
    contract="exact",
)
def xlog1py(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """x log(1 + y), and 0 where x is 0."""
    there = x != 0
    low = m.where(there, y, 0.0)
    return m.where(there, dy * m.log1p(low), 0.0), m.where(there, dy * x / (1.0 + low), 0.0)


def _hypot(x: Tensor, y: Tensor) -> Tensor:
    """No square overflows, or is lost: both are over the larger."""
    most = m.maximum(m.abs(x), m.abs(y))
    most = m.where(m.logical_and(most > 0, m.isfinite(most)), most, 1.0)
    return most * m.sqrt(m.square(x / most) + m.square(y / most))


@pulled(
    f"{WHERE}; torch, Paszke et al. 2019",
    _hypot,
    contract="exact",
    traps="NaN at the origin in torch (undefined)",
)
def hypot(dy: Tensor, x: Tensor, y: Tensor, undefined: Undefined = 0.0) -> tuple[Tensor, ...]:
    """sqrt(x**2 + y**2), with a subgradient at the origin."""
    length = _hypot(x, y)
    there = length > 0
    d = dy / _safe(length, there)
    return m.where(there, d * x, undefined), m.where(there, d * y, undefined)


@pulled(
    f"{WHERE}; torch, Paszke et al. 2019",
    lambda y, x: m.arctan2(y, x),
    contract="exact",
    traps="0 at the origin in torch, NaN in TensorFlow (undefined)",
)
def arctan2(dy: Tensor, y: Tensor, x: Tensor, undefined: Undefined = 0.0) -> tuple[Tensor, ...]:
    """The angle of (x, y), with a defined gradient at the origin."""
    squares = m.square(x) + m.square(y)
    there = squares > 0
    d = dy / _safe(squares, there)
    return m.where(there, d * x, undefined), m.where(there, -d * y, undefined)


@pulled(
    f"{TENSORFLOW}; torch, Paszke et al. 2019",
    lambda x, y: x**y,
    contract="exact",
    traps="dx of 0**0 is NaN in TensorFlow (undefined)",
)
def power(dy: Tensor, x: Tensor, y: Tensor, undefined: Undefined = 0.0) -> tuple[Tensor, ...]:
    """x**y, with gradients at 0."""
    lost = m.logical_and(x == 0, y == 0)
    at = m.where(lost, 1.0, x)
    dx = m.where(lost, undefined, m.where(y == 0, 0.0 * x, y * at ** (y - 1.0)))
    flat = m.logical_and(x == 0, y >= 0)
    return dy * dx, m.where(flat, 0.0, dy * x**y * m.log(m.where(flat, 1.0, x)))


@pulled(
    "torch, Paszke et al. 2019",
    lambda x, y: m.maximum(x, y) + m.log1p(m.exp(-m.abs(m.where(x == y, 0.0, x - y)))),
    contract="exact",
    traps="NaN where both are -infinity (undefined)",
)
def logaddexp(dy: Tensor, x: Tensor, y: Tensor, undefined: Undefined = 0.5) -> tuple[Tensor, ...]:
    """log(exp(x) + exp(y)); if both are -infinity, each gets a part of the gradient."""
    lost = m.logical_and(x == y, x == -float("inf"))
    far = m.where(x == y, 0.0, x - y)
    return (
        dy * m.where(lost, undefined, m.sigmoid(far)),
        dy * m.where(lost, undefined, m.sigmoid(-far)),
    )


@pulled(TENSORFLOW, lambda x, y: m.maximum(x, y), contract="exact")
def maximum_first(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """The maximum; if both are equal, x gets the whole gradient."""
    return m.where(x >= y, dy, 0.0), m.where(x >= y, 0.0, dy)


def _norm(x: Tensor, least: NonNegative, axis: int | None) -> Tensor:
    squares = m.sum(m.square(x), axis)
    return m.maximum(m.sqrt(squares), least)


@pulled("optax, DeepMind 2020", _norm, contract="exact")
def safe_norm(dy: Tensor, x: Tensor, least: NonNegative = 0.0, axis: Axis | None = -1) -> Tensor:
    """The norm, bounded from below; the gradient is 0 at the bound."""
    squares = m.sum(m.square(x), axis, keepdims=True)
    there = m.sqrt(squares) > least
    wide = m.reshape(dy, squares.shape)
    return m.where(there, wide * x / m.sqrt(_safe(squares, there)), 0.0)


@pulled(
    "optax, DeepMind 2020",
    lambda x, least: m.maximum(m.sqrt(m.mean(m.square(x))), least),
    contract="exact",
)
def safe_rms(dy: Tensor, x: Tensor, least: NonNegative = 0.0) -> Tensor:
    """The root mean square, bounded from below; the gradient is 0 at the bound."""
    squares = m.mean(m.square(x))
    there = m.sqrt(squares) > least
    return m.where(there, dy * x / (m.sqrt(_safe(squares, there)) * float(m.count(x))), 0.0)


def _unit(x: Tensor, epsilon: Positive, axis: int | None, of_square: bool) -> Tensor:
    squares = m.sum(m.square(x), axis, keepdims=True)
    least = epsilon if of_square else epsilon**2
    return x / m.sqrt(m.maximum(squares, least))


@pulled(
    "torch, Paszke et al. 2019",
    _unit,
    contract="exact",
    traps="TensorFlow bounds the squared norm, and over all axes (of_square=True, axis=None)",
)
def l2_normalise(
    dy: Tensor,
    x: Tensor,
    epsilon: Positive = 1e-12,
    axis: Axis | None = -1,
    of_square: bool = False,
) -> Tensor:
    """x over its norm, which is at least epsilon."""
    squares = m.sum(m.square(x), axis, keepdims=True)
    least = epsilon if of_square else epsilon**2
    length = m.sqrt(m.maximum(squares, least))
    along = m.where(squares > least, m.sum(dy * x, axis, keepdims=True), 0.0)
    return dy / length - x * along / (length * length * length)


def _cosine(x: Tensor, y: Tensor, epsilon: Positive) -> Tensor:
    return m.sum(_unit(x, epsilon, -1, False) * _unit(y, epsilon, -1, False), -1)


@pulled("torch, Paszke et al. 2019", _cosine, contract="exact")
def cosine(dy: Tensor, x: Tensor, y: Tensor, epsilon: Positive = 1e-8) -> tuple[Tensor, ...]:
    """The cosine similarity of x and y along the last axis, with norms of at least epsilon."""
    d = m.expand_dims(dy, -1)
    parts = []
    for a, b in ((x, y), (y, x)):
        squares = m.sum(m.square(a), -1, keepdims=True)
        length = m.sqrt(m.maximum(squares, epsilon**2))
        g = d * _unit(b, epsilon, -1, False)
        along = m.where(squares > epsilon**2, m.sum(g * a, -1, keepdims=True), 0.0)
        parts.append(g / length - a * along / (length * length * length))
    return tuple(parts)


__all__ = ["arctan2", "cosine", "divide_no_nan", "hypot", "l2_normalise", "logaddexp"]
__all__ += ["maximum_first", "multiply_no_nan", "power", "safe_arcsin", "safe_log", "safe_norm"]
__all__ += ["safe_rms", "safe_sqrt", "xdivy", "xlog1py", "xlogy"]
