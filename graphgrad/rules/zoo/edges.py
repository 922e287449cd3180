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
from .rows import formula, pulled

FAMILY = "stable"
Undefined = Annotated[float, NUMBER]
TENSORFLOW = "TensorFlow, Abadi et al. 2016"
WHERE = 'the "double where" of autodiff folklore'
SOFTJAX = f"{WHERE}; Paulus et al. 2026, SoftJax"


def _safe(t: Tensor, there: Tensor) -> Tensor:
    return m.where(there, t, 1.0)


@pulled(SOFTJAX, lambda x: m.where(x > 0, m.sqrt(_safe(x, x > 0)), 0.0), contract="exact")
def safe_sqrt(dy: Tensor, x: Tensor, undefined: Undefined = 0.0) -> Tensor:
    """The square root, 0 for negative x, with a finite gradient at 0."""
    return m.where(x > 0, dy / (2.0 * m.sqrt(_safe(x, x > 0))), undefined)


@formula(SOFTJAX, traps="the value is changed as well: log(0) is 0")
def safe_log(x: Tensor) -> Tensor:
    """The logarithm, and 0 for arguments that are not positive."""
    return m.where(x > 0, m.log(_safe(x, x > 0)), 0.0)


@formula(SOFTJAX)
def safe_arcsin(x: Tensor) -> Tensor:
    """The arc sine, without a gradient at 1 and -1."""
    inside = m.abs(x) < 1
    return m.where(inside, m.arcsin(m.where(inside, x, 0.0)), m.sign(x) * (pi / 2))


@formula(f"{TENSORFLOW}; Paulus et al. 2026, SoftJax")
def divide_no_nan(x: Tensor, y: Tensor) -> Tensor:
    """x / y, and 0 where y is 0."""
    return m.where(y != 0, x / _safe(y, y != 0), 0.0)


@pulled(
    TENSORFLOW,
    lambda x, y: m.where(y != 0, _safe(x, y != 0) * y, 0.0),
    contract="exact",
    linear=False,
)
def multiply_no_nan(dy: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    """x y, and 0 where y is 0, even if x is not finite."""
    return m.where(y != 0, dy * y, 0.0), m.where(dy != 0, x * dy, 0.0)


@formula(TENSORFLOW)
def xdivy(x: Tensor, y: Tensor) -> Tensor:
    """x / y, and 0 where x is 0, whatever y is."""
    return m.where(x != 0, x / _safe(y, x != 0), 0.0)


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


@formula(TENSORFLOW)
def xlog1py(x: Tensor, y: Tensor) -> Tensor:
    """x log(1 + y), and 0 where x is 0."""
    return m.where(x != 0, x * m.log1p(m.where(x != 0, y, 0.0)), 0.0)


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


def _at_least(squares: Tensor, least: NonNegative) -> Tensor:
    """The root of a sum of squares where it is over a number, else that number."""
    below = m.sqrt(squares) <= least
    return m.where(below, least, m.sqrt(m.where(below, 1.0, squares)))


@formula("optax, DeepMind 2020")
def safe_norm(x: Tensor, least: NonNegative = 0.0, axis: Axis | None = -1) -> Tensor:
    """The norm, bounded from below; the gradient is 0 at the bound."""
    return _at_least(m.sum(m.square(x), axis), least)


@formula("optax, DeepMind 2020")
def safe_rms(x: Tensor, least: NonNegative = 0.0) -> Tensor:
    """The root mean square, bounded from below; the gradient is 0 at the bound."""
    return _at_least(m.mean(m.square(x)), least)


@formula(
    "torch, Paszke et al. 2019",
    traps="TensorFlow bounds the squared norm, and over all axes (of_square=True, axis=None)",
)
def l2_normalise(
    x: Tensor, epsilon: Positive = 1e-12, axis: Axis | None = -1, of_square: bool = False
) -> Tensor:
    """x over its norm, which is at least epsilon."""
    squares = m.sum(m.square(x), axis, keepdims=True)
    least = epsilon if of_square else epsilon**2
    return x / m.sqrt(m.where(squares <= least, least, squares))


@formula("torch, Paszke et al. 2019")
def cosine(x: Tensor, y: Tensor, epsilon: Positive = 1e-8) -> Tensor:
    """The cosine similarity of x and y along the last axis, with norms of at least epsilon."""
    return m.sum(l2_normalise(x, epsilon) * l2_normalise(y, epsilon), -1)


__all__ = ["arctan2", "cosine", "divide_no_nan", "hypot", "l2_normalise", "logaddexp"]
__all__ += ["maximum_first", "multiply_no_nan", "power", "safe_arcsin", "safe_log", "safe_norm"]
__all__ += ["safe_rms", "safe_sqrt", "xdivy", "xlog1py", "xlogy"]
