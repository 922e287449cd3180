"""Law over the element-wise ops: gradients have the digits that values have, to second order.

The op, its gradient and the gradient of that are compared with mpmath where they are hard: at tiny
and huge numbers, in tails, near singular points and near their own zeros. An error is counted in
units in the last place of the exact result for the very number given. Gradients may have four more
than the value, whose worst is some two, but of a few functions of SciPy.
"""

from functools import cache
from importlib.util import find_spec
from itertools import product

import mpmath as mp
import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.op import OP_TYPES
from graphgrad.ops.base import apply
from graphgrad.ops.special.scipy_functions import OfScipy

ULPS = 4
PRECISION = 1400  # bits; differences lose 160 of them
STEP = 80  # how many bits a step is smaller than what it may change

LINES = {
    *("Abs", "Cast", "Clip", "CopySign", "Fmod", "LeakyRelu", "Maximum", "Minimum", "NextAfter"),
    *("Ldexp", "Relu", "ReluGrad", "Remainder", "Where", "FakeFloat8", "FakeQuantise"),
}
"""Made of straight lines, so that their derivatives are numbers."""

UNPROVEN = {
    "read by other ops alone": "NormalPoint NormalQuantile SphericalBessel",
    "derivatives of others, tried with them": "ErfInvSlope ErfcInvSlope NdtrInvSlope",
    "differences of digammas": "Beta BetaLn Binomial Pochhammer",
    "differences of neighbours, which grow alike": "BesselIScaled BesselKScaled",
    "as exact as SciPy is between zeros": "BesselJ",
    "as exact as SciPy's function of neighbouring parameters": "ExpN Hyp2F1",
    "the second derivative loses digits in between, 1 < |x| < 12": "Dawson Erfcx Faddeeva",
    "the second derivative loses digits around 1": "Spence",
    "of integrals and series, to 2e-9 or better": "GammaInc GammaIncC GammaIncInv GammaIncCInv "
    "BetaInc BetaIncInv OwensT",
    "of orders that are tensors, which have points of their own": "BesselIOfOrders BesselJOfOrders "
    "BesselIScaledOfOrders BesselKOfOrders BesselKScaledOfOrders BesselYOfOrders ExpNOfOrders "
    "Hyp1F1OfOrders Hyp2F1OfOrders PolyGammaDifference PolyGammaOfOrders ZetaOfOrders",
    "of complex numbers": "ComplexErf ComplexErfc ComplexGamma ComplexLogGamma ComplexPolyGamma",
}
"""Whose derivatives are not held to the law, and why: they lose more than it allows somewhere.
tests/ops/test_special_functions.py tries them."""

REAL = (1e-30, -1e-30, 1e-9, -1e-9, 1e-3, 0.3, -0.7, 1.5, -2.5, 5.3, -5.3)
TAILS = (9.1, -9.1, 17.3, -17.3, 33.3, -33.3, 87.1, -87.1)
POSITIVE = (1e-30, 1e-9, 0.1, 0.999, 1.001, 2.5, 1e9, 1e30)
INSIDE = (1e-30, 1e-9, 0.3, -0.7, 0.999, -0.99999, 1 - 2.0**-20, 2.0**-20 - 1)
UNIT = (1e-15, 1e-9, 0.1, 0.24, 0.26, 0.5 - 2.0**-20, 0.5 + 2.0**-20, 0.74, 0.76, 0.9, 1 - 2.0**-20)
DECAYS = (1e-30, 1e-9, 0.1, 0.69, 0.7, 2.5, 17.3, 43.0, 87.1)
POWERS = {"Cbrt": 6, "ErfcInv": 2}
"""Gradients made of a power of the value: its error, and that of each product, count so often."""

SLOPES = {"AtanSlope", "DirectionCosine", "Gaussian", "LogitSlope", "SigmoidSlope", "TanhSlope"}
SLOPES |= {"Log1mExpSlope", "SquarePlusSlope"}
"""First derivatives of others: their second ones are of third order."""

ARGUMENTS = {"Hyp1F1": (0.7, 1.8), "PolyGamma": (1,), "SineIntegral": (0,), "Zeta": (2.5,)}
ARGUMENTS |= {"Fresnel": (0,)}
ARGUMENTS |= dict.fromkeys(("BesselI", "BesselK", "BesselY"), (0.0,))
"""Attributes of the ops that have some."""

PAIRS = tuple(product((1e-15, 0.3, 2.9, 1e12), (1e-15, 0.7, 9.3, 1e12)))


def _sigmoid(x):
    return 1 / (1 + mp.exp(-x))


FUNCTIONS = {
    "Acos": (mp.acos, INSIDE, (-1, 1)),
    "Acosh": (mp.acosh, (1 + 2.0**-20, 1.001, 1.7, 9.3, 1e9, 1e30), (1,)),
    "Asin": (mp.asin, INSIDE, (-1, 1)),
    "Asinh": (mp.asinh, (*REAL, 1e9, -1e30), ()),
    "Atan": (mp.atan, (*REAL, 1e9, -1e12), ()),
    "AtanSlope": (lambda x: 1 / (1 + x * x), (*REAL, 1e9, -1e12), ()),
    "Atanh": (mp.atanh, INSIDE, (-1, 1)),
    "Cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), (*POSITIVE, -1e-9, -2.5), (0,)),
    "Cos": (mp.cos, (*REAL, 99.7, 1e5), ()),
    "Cosh": (mp.cosh, (*REAL, 20.0, -80.0), ()),
    "Digamma": (mp.digamma, (0.1, 0.9, 1.7, 5.3, 99.0), (0,)),
    "Elu": (lambda x: x if x > 0 else mp.expm1(x), (*REAL, *TAILS), (0,)),
    "Erf": (mp.erf, (*REAL, 3.1, -7.3), ()),
    "Erfc": (mp.erfc, (*REAL, 3.1, -4.3, 8.7), ()),
    "Exp": (mp.exp, (*REAL, *TAILS), ()),
    "Exp2": (lambda x: mp.mpf(2) ** x, (*REAL, *TAILS), ()),
    "Expm1": (mp.expm1, (*REAL, *TAILS), ()),
    "GammaLn": (lambda x: mp.log(abs(mp.gamma(x))), (0.1, 0.9, 1.7, 5.3, 99.0), (0,)),
    "Gaussian": (lambda x: mp.exp(-x * x), (*REAL, 3.1, -7.3, 9.1), ()),
    "Log": (mp.log, POSITIVE, (0,)),
    "Log10": (mp.log10, POSITIVE, (0,)),
    "Log1mExp": (lambda x: mp.log(-mp.expm1(-x)), DECAYS, (0,)),
    "Log1mExpSlope": (lambda x: 1 / mp.expm1(x), DECAYS, (0,)),
    "Log1p": (mp.log1p, (*REAL[:6], -0.7, -0.99, 2.0**-20 - 1, 1e9), (-1,)),
    "Log2": (lambda x: mp.log(x, 2), POSITIVE, (0,)),
    "Logit": (lambda x: mp.log(x / (1 - x)), UNIT, (0, 1)),
    "LogitSlope": (lambda x: 1 / (x * (1 - x)), UNIT, (0, 1)),
    "PolyGamma": (lambda x: mp.polygamma(1, x), (0.1, 0.9, 1.7, 5.3, 99.0), (0,)),
    "Reciprocal": (lambda x: 1 / x, (*POSITIVE[1:-1], -2.5), (0,)),
    "Sigmoid": (_sigmoid, (*REAL, *TAILS), ()),
    "SigmoidSlope": (lambda x: _sigmoid(x) * _sigmoid(-x), (*REAL, *TAILS), ()),
    "Silu": (lambda x: x * _sigmoid(x), (*REAL, *TAILS), ()),
    "Sin": (mp.sin, (*REAL, 99.7, 1e5), ()),
    "Sinh": (mp.sinh, (*REAL, 20.0, -80.0), ()),
    "SoftSign": (lambda x: x / (1 + abs(x)), (*REAL[2:], 1e9, -1e12), (0,)),
    "Softplus": (lambda x: mp.log1p(mp.exp(x)), (*REAL, *TAILS), ()),
    "Sqrt": (mp.sqrt, POSITIVE[1:-1], (0,)),
    "Square": (lambda x: x * x, (*REAL, 1e9, -1e12), ()),
    "SquareComplement": (lambda x: (1 - x) * (1 + x), INSIDE, ()),
    "SquarePlus": (lambda x: (x + mp.hypot(x, 2)) / 2, (*REAL, 1e9, -1e9), ()),
    "SquarePlusSlope": (lambda x: (1 + x / mp.hypot(x, 2)) / 2, (*REAL, 1e9, -1e9), ()),
    "Tan": (mp.tan, (*REAL[:8], 1.57, -1.5707), (mp.pi / 2, -mp.pi / 2)),
    "Tanh": (mp.tanh, (*REAL, *TAILS[:6], 43.0, -43.0), ()),
    "TanhSlope": (lambda x: mp.sech(x) ** 2, (*REAL, *TAILS[:6], 43.0, -43.0), ()),
    "Atan2": (mp.atan2, PAIRS, (0,)),
    "DirectionCosine": (lambda x, y: x / mp.hypot(x, y), PAIRS, (0,)),
    "Divide": (lambda x, y: x / y, PAIRS, (0,)),
    "Hypot": (mp.hypot, PAIRS, (0,)),
    "LogAddExp": (
        lambda x, y: mp.log(mp.exp(x) + mp.exp(y)),
        ((1.5, 0.25), (0.5, 40.5), (-30.25, 2.5), (7.0, 7.0), (80.0, -3.0)),
        (),
    ),
    "Multiply": (lambda x, y: x * y, PAIRS, ()),
    "Power": (
        lambda x, y: x**y,
        ((0.3, 2.5), (1e-9, 0.5), (2.5, -3.5), (7.3, 1.0), (1.001, 30.5), (1e9, 3.0)),
        (0,),
    ),
    "XDivY": (lambda x, y: x / y, PAIRS, (0,)),
    "XLog1pY": (lambda x, y: x * mp.log1p(y), PAIRS, (-1,)),
    "XLogY": (lambda x, y: x * mp.log(y), PAIRS, (0,)),
}
ROUND_NUMBERS = (1e-9, 0.1, 0.9, 1.7, 5.3, 30.0)
OF_SCIPY = {
    "BesselI": (lambda x: mp.besseli(0, x), ROUND_NUMBERS, ()),
    "BesselK": (lambda x: mp.besselk(0, x), (1.7, 5.3), (0,)),
    "BesselY": (lambda x: mp.bessely(0, x), (0.1, 1.7, 5.3), (0,)),
    "BoxCox": (
        lambda x, p: mp.expm1(p * mp.log(x)) / p,
        ((0.3, -1.5), (5.0, 1e-9), (1.001, 2.0), (2.5, 0.5)),
        (0,),
    ),
    "BoxCox1p": (
        lambda x, p: mp.expm1(p * mp.log1p(x)) / p,
        ((1e-9, -1.5), (5.0, 1e-9), (0.001, 2.0), (2.5, 0.5)),
        (-1, 0),
    ),
    "ErfInv": (mp.erfinv, (1e-30, 1e-3, -0.3, 0.49, 0.51, -0.9999, 1 - 2.0**-20), (-1, 1)),
    "ErfcInv": (lambda x: mp.erfinv(1 - x), (1e-30, 1e-9, 0.1, 0.49, 1.1, 2 - 2.0**-20), (0, 2)),
    "Entropy": (lambda x: -x * mp.log(x), (1e-30, 1e-9, 0.1, 0.36, 0.9, 2.5, 1e9), (0,)),
    "Exp1": (mp.e1, ROUND_NUMBERS, (0,)),
    "ExpIntegral": (mp.ei, (*ROUND_NUMBERS, -0.7, -17.3), (0,)),
    "Fresnel": (mp.fresnels, (1e-9, 0.1, 0.9, 1.3, 5.3, -17.3), ()),
    "Gamma": (mp.gamma, (*ROUND_NUMBERS, -1.5), (0, -1)),
    "Hyp1F1": (lambda x: mp.hyp1f1(*ARGUMENTS["Hyp1F1"], x), (-5.3, -0.7, 0.1, 2.5), ()),
    "KlDivergence": (
        lambda x, y: x * mp.log(x / y) - x + y,
        ((0.3, 0.7), (1e-9, 0.3), (1e9, 0.7), (0.7, 1.3)),
        (0,),
    ),
    "LogNdtr": (lambda x: mp.log(mp.ncdf(x)), (-87.1, -17.3, -5.3, -0.7, 1e-9, 2.5, 5.3), ()),
    "NdtrInv": (
        lambda x: mp.sqrt(2) * mp.erfinv(2 * x - 1),
        (1e-30, 1e-9, 0.1, 0.49, 0.5 - 2.0**-20, 0.51, 0.99, 1 - 2.0**-20),
        (0, 1),
    ),
    "RelativeEntropy": (
        lambda x, y: x * mp.log(x / y),
        ((0.3, 0.7), (2.9, 3.0), (1e-9, 0.3), (1e9, 0.7)),
        (0,),
    ),
    "SineIntegral": (mp.si, ROUND_NUMBERS, ()),
    "Zeta": (lambda x: mp.zeta(2.5, x), (0.1, 0.9, 1.7, 5.3, 30.0), (0,)),
}
"""Those whose values are SciPy's: in float64, which SciPy computes in."""

FUNCTIONS |= OF_SCIPY if find_spec("scipy") else {}
"""By op type: the function of mpmath, where it is tried, and where it or a slope is infinite.

Points are numbers of few bits or ordinary decimals; what a float makes of them is what counts.
"""


def test_every_op_with_a_curve_is_tried():
    """A new element-wise op belongs into FUNCTIONS; into LINES if its slopes are numbers; or into
    UNPROVEN if there is a reason."""
    curved = {
        name
        for name, cls in OP_TYPES.items()
        if cls.__module__.startswith("graphgrad.")
        and cls.elementwise
        and cls.differentiable
        and not cls.traits.stepwise
        and cls.linear != "joint"
    }
    of_scipy = {name for name in curved if issubclass(OP_TYPES[name], OfScipy)}
    unproven = set(" ".join(UNPROVEN.values()).split())
    assert unproven <= curved
    assert curved - LINES - unproven == set(FUNCTIONS) | set(OF_SCIPY)
    assert of_scipy - unproven == set(OF_SCIPY)


CASES = [(n, d) for n in sorted(FUNCTIONS) for d in ("float64", "float32")[: 2 - (n in OF_SCIPY)]]
LONG = ("BesselK",)  # for mpmath


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        pytest.param(n, d, marks=pytest.mark.ci if n in LONG or d != "float64" or i % 4 else ())
        for i, (n, d) in enumerate(CASES)
    ],
)
def test_gradients_have_the_digits_of_values(name, dtype):
    wanted, points = exact(name, dtype)
    found = computed(name, dtype, points)
    count = 1 + len(points[0]) if name in SLOPES else len(found)
    off = [units(got, want, dtype) for got, want in zip(found[:count], wanted, strict=False)]
    worst = [np.nanmax(o) for o in off]
    allowed = ULPS + worst[0] * POWERS.get(name, 1)
    at = [points[int(np.nanargmax(o))] for o in off]
    assert max(worst) <= allowed, f"{worst} units in the last place, at {at}; allowed: {allowed}"


@cache
def exact(name, dtype):
    """The value and all its first and second derivatives at each point, and the points."""
    fn, points, poles = FUNCTIONS[name]
    points = tuple(tuple(map(float, np.atleast_1d(p).astype(dtype))) for p in points)
    with mp.workprec(PRECISION if name not in OF_SCIPY else PRECISION // 2):
        rows = [derivatives(fn, tuple(map(mp.mpf, p)), poles) for p in points]
    return list(zip(*rows, strict=True)), points


def derivatives(fn, at, poles):
    """fn there, its first derivatives and its second ones, by central differences."""
    steps = [step(x, poles) for x in at]
    places = range(len(at))
    value = cache(lambda moves: fn(*[x + m * h for x, m, h in zip(at, moves, steps, strict=True)]))

    def moved(*which):
        return value(tuple(sum(s for i, s in which if i == j) for j in places))

    first = [(moved((i, 1)) - moved((i, -1))) / (2 * steps[i]) for i in places]
    second = [
        sum(s * t * moved((i, s), (j, t)) for s in (1, -1) for t in (1, -1))
        / (4 * steps[i] * steps[j])
        for i in places
        for j in places
    ]
    return [moved(), *first, *second]


def step(x, poles):
    """So small that differences are exact, by how near what is infinite lies."""
    return mp.ldexp(min([max(abs(x), 1), *(abs(x - p) for p in poles)]), -STEP)


def computed(name, dtype, points, backend="numpy"):
    """What graphgrad makes of the same."""
    arrays = [np.array(column, dtype) for column in zip(*points, strict=True)]
    cls = OP_TYPES[name]
    op = cls(*ARGUMENTS.get(name, ()))
    with gg.Graph():
        xs = [gg.placeholder(a.shape, dtype) for a in arrays]
        y = apply(op, *xs)
        first = gg.gradients(y, xs)
        second = [d for dx in first for d in gg.gradients(dx, xs, unconnected="zero")]
        run = gg.compile(xs, [y, *first, *second], backend=backend)
    with np.errstate(all="ignore"):
        return run(*arrays)


def units(got, want, dtype):
    """How far off, in units in the last place; NaN where the exact number is not of the dtype."""
    with mp.workprec(PRECISION):
        return np.array([_units(g, w, np.finfo(dtype)) for g, w in zip(got, want, strict=True)])


def _units(got, want, info):
    size = abs(want)
    if size > float(info.max) or 0 < size < float(info.tiny):
        return np.nan
    if not np.isfinite(got):
        return np.inf
    unit = mp.ldexp(1, mp.frexp(size)[1] - info.nmant - 1) if size else mp.mpf(float(info.tiny))
    return float(abs(mp.mpf(float(got)) - want) / unit)
