"""The error function and its complement."""

from __future__ import annotations

from ..emit.values import Value, polynomial
from .exponential import exp

_ERF = {  # erf x / x - 1 as a function of x**2, for x <= 1
    "float": (
        0.12837916612625122, -0.3761262595653534, 0.11283578723669052, -0.026853347197175026,
        0.005187162198126316, -0.0007997852517291903, 7.806897338014096e-05,
    ),
    "double": (
        0.1283791670955126, -0.37612638903183987, 0.1128379167096424, -0.026866170646825015,
        0.005223977642523514, -0.0008548328042249781, 0.0001205537116572816,
        -1.4926582256237725e-05, 1.6477111935367218e-06, -1.652305429517535e-07,
        1.582911662208249e-08, -1.5904299852824326e-09, 1.361879801667602e-10,
    ),
}  # fmt: skip
_CENTRE = {"float": 3.0, "double": 4.0}
_ERFC = {  # erfc(x) e**(x**2) (x + c) as a function of (x - c) / (x + c)
    "float": (
        1.0740069150924683, -0.8833944201469421, 0.5902275443077087, -0.31046822667121887,
        0.11954007297754288, -0.026815852150321007, -0.001273215631954372, 0.0029721283353865147,
        -0.0004461599455680698, -0.0001558018702780828, 8.269915997516364e-05,
    ),
    "double": (
        1.095995661000491, -0.976548729080882, 0.7732087022652551, -0.5408538313132425,
        0.33085158787708463, -0.17401093723979424, 0.07638151492808537, -0.02637005333923754,
        0.006112055462092495, -0.0002809589145111885, -0.0004550515353113647,
        0.0001768133280473794, -3.6393169764090193e-06, -1.886350865163088e-05,
        4.703596533989417e-06, 1.4317959722121322e-06, -8.581388851532438e-07,
        -8.816108686596825e-08, 1.3191171325168336e-07, 1.2102877954762965e-08,
        -1.639617724014582e-08, -4.0155859492496965e-09,
    ),
}  # fmt: skip
_ZERO = {"float": 10.1, "double": 27.3}  # beyond, erfc rounds to 0


def _complement(a: Value) -> Value:
    """erfc a for a >= 0. The bits that a**2 loses are put right: e**-(s + d) = e**-s (1 - d)."""
    a = a.at_most(_ZERO[a.element])
    c = _CENTRE[a.element]
    square = a * a
    lost = a.fma(a, -square)
    share = 1.0 / (a + c)
    scaled = polynomial((a - c) * share, _ERFC[a.element]) * share
    power = exp(-square)
    return scaled * (-lost).fma(power, power)


def _bent(x: Value) -> Value:
    """erf x / x - 1 for |x| <= 1."""
    return polynomial(x * x, _ERF[x.element])


def erf(x: Value) -> Value:
    """2 / sqrt(pi) times the integral of e**(-t**2) from 0 to x."""
    a = x.abs()
    far = (1.0 - _complement(a)).with_sign_of(x)
    return (a > 1.0).where(far, _bent(x).fma(x, x))


def erfc(x: Value) -> Value:
    """1 - erf x; near 0 it is (1 - x) less something small."""
    a = x.abs()
    tail = _complement(a)
    far = (x < 0.0).where(2.0 - tail, tail)
    return (a < 1.0).where((-x).fma(_bent(x), 1.0 - x), far)
