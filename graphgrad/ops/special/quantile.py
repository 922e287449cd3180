"""The inverse of the normal distribution, in float64: one definition for all backends."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from ..base import Any, DTypeError, Gradients, Node, Samples, Tensor, TensorType, Types, np
from ..elementwise.exponential import exp
from ..families import RealUnary

__all__ = ["NormalPoint", "NormalQuantile", "quantile", "quantile_in_blocks"]

_CENTRE = (
    (
        3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
        1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
        3.3430575583588128105e4, 2.5090809287301226727e3,
    ),
    (
        1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
        2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
        5.2264952788528545610e3,
    ),
)  # fmt: skip
_TAIL = (
    (
        1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
        3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
        2.27238449892691845833e-2, 7.74545014278341407640e-4,
    ),
    (
        1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
        1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
        1.05075007164441684324e-9,
    ),
)  # fmt: skip
_FAR = (
    (
        6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
        2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
        2.71155556874348757815e-5, 2.01033439929228813265e-7,
    ),
    (
        1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
        7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
        2.04426310338993978564e-15,
    ),
)  # fmt: skip
SPLIT, FAR = 0.425, 5.0  # of |p - 1/2|; of sqrt(-log p)
BLOCK = 1 << 13


class _Share(NamedTuple):
    """p(x) / q(x) as first + x * top(x) / below(x): so rounding errors of parts hardly count."""

    first: float
    top: tuple[float, ...]
    below: tuple[float, ...]

    def __call__(self, x: Any) -> Any:
        return self.first + x * (_polynomial(self.top, x) / _polynomial(self.below, x))


def _share(p: tuple[float, ...], q: tuple[float, ...]) -> _Share:
    first = Fraction(p[0])
    pairs = zip(p[1:], q[1:], strict=True)
    return _Share(p[0], tuple([float(Fraction(a) - first * Fraction(b)) for a, b in pairs]), q)


def _polynomial(coefficients: tuple[float, ...], x: Any) -> Any:
    *rest, polynomial = coefficients
    for c in reversed(rest):
        polynomial = polynomial * x + c
    return polynomial


CENTRE, TAIL, END = _share(*_CENTRE), _share(*_TAIL), _share(*_FAR)


def quantile(xp: Any, q: Any, tail: Any) -> Any:
    """z with P(normal < z) = 1/2 + q; tail = 1/2 - |q|, float64 both, as precisely as it is known.

    [Wichura 1988, "Algorithm AS 241: the percentage points of the normal distribution"].
    """
    r = xp.sqrt(-xp.log(tail))
    far, size = r > FAR, xp.abs(q)
    near = size <= SPLIT
    x = xp.where(near, 0.180625 - q * q, xp.where(far, r - FAR, r - 1.6))

    def chosen(*parts: Any) -> Any:
        return xp.where(near, parts[0], xp.where(far, parts[2], parts[1]))

    shares = CENTRE, TAIL, END
    top, below = (chosen(*[_polynomial(s[i], x) for s in shares]) for i in (1, 2))  # type: ignore[arg-type]
    z = xp.where(near, CENTRE.first, xp.where(far, END.first, TAIL.first)) + x * (top / below)
    return xp.copysign(xp.where(near, size * z, z), q)


def quantile_in_blocks(q: Any) -> Any:
    """The same of a NumPy array, which is written over: a block at a time, tails where they are."""
    flat = q.reshape(-1)
    for start in range(0, flat.size, BLOCK):
        part = flat[start : start + BLOCK]
        at = np.flatnonzero(np.abs(part) > SPLIT)
        ends = part[at]
        x = part * part
        np.subtract(0.180625, x, out=x)
        top, below = (_in_place(coefficients, x) for coefficients in CENTRE[1:])
        top /= below
        top *= x
        top += CENTRE.first
        part *= top
        part[at] = _of_tails(ends)
    return q


def _in_place(coefficients: tuple[float, ...], x: Any) -> Any:
    """A polynomial, in one array."""
    *rest, last = coefficients
    polynomial = x * last
    polynomial += rest.pop()
    for c in reversed(rest):
        polynomial *= x
        polynomial += c
    return polynomial


def _of_tails(q: Any) -> Any:
    r = np.sqrt(-np.log(0.5 - np.abs(q)))
    z = TAIL(r - 1.6)
    far = r > FAR
    if far.any():
        z[far] = END(r[far] - FAR)
    return np.copysign(z, q)


class NormalQuantile(RealUnary):
    """z with P(normal < z) = 1/2 + q. Gradient: dq = dz * sqrt(2 pi) * exp(z**2 / 2).

    [Wichura 1988, "Algorithm AS 241: the percentage points of the normal distribution"], whose
    relative error is 1e-16, in float64.
    """

    domain = (-0.49, 0.49)

    def infer(self, *types: TensorType) -> Types:
        if types[0].dtype.name != "float64":
            raise DTypeError(f"NormalQuantile takes float64, got {types[0]!r}")
        return super().infer(*types)

    def kernel(self, xp: Any, q: Any) -> Any:
        return quantile(xp, q, 0.5 - xp.abs(q))

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        (z,) = node.outputs
        return (dz * (math.sqrt(2 * math.pi) * exp(0.5 * z * z)),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.uniform(*cls.domain, size=(2, 3))]


class NormalPoint(NormalQuantile):
    """z with P(normal < z) = p.

    Gradient: dp = dz * sqrt(2 pi) * exp(z**2 / 2): precise for the least p.

    Of p that rounds to 0 or 1 it makes the z that is farthest out of those that do not.
    """

    domain = (0.01, 0.99)

    def kernel(self, xp: Any, q: Any) -> Any:
        p = xp.minimum(xp.maximum(q, 1e-308), 1 - 2.0**-53)
        return quantile(xp, p - 0.5, xp.where(p < 0.5, p, 1.0 - p))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.uniform(*cls.domain, size=(2, 3))]
