"""Roots, lengths, reciprocals and exponentials that cancel."""

from __future__ import annotations

from ..identity import peephole, regimes, scaling
from ..rules.differences import (
    difference_of_exponentials,
    difference_of_reciprocals,
    difference_of_roots,
    root_that_cancels,
)
from ..rules.lengths import over_own_length, root_of_squares
from .sources import DLMF_4, GOLDBERG, HIGHAM, INF, POSITIVE, UNIT, V

ROOTS = (
    peephole(
        "root_square_less_one",
        "sqrt(x**2 - 1) -> sqrt(|x| - 1) sqrt(|x| + 1)",
        "rounds near 1, overflows from 1e154",
        GOLDBERG,
        stable="root_square_less(x)",
        ranges=((1, INF),),
    ),
    peephole(
        "root_one_less_square",
        "sqrt(1 - x**2) -> sqrt(1 - x) sqrt(1 + x)",
        "rounds near 1",
        GOLDBERG,
        stable="root_less_square(x)",
        ranges=UNIT,
    ),
    scaling(
        "abs", "sqrt(x**2) -> |x|", "x**2 overflows or underflows", HIGHAM, rule=root_of_squares
    ),
    scaling(
        "hypot",
        "sqrt(x**2 + y**2) -> hypot(x, y)",
        "x**2 overflows or underflows; the gradient is 0 / 0 at 0",
        HIGHAM,
        rule=root_of_squares,
    ),
    scaling(
        "scaled_root",
        "sqrt(x y - z w) -> s sqrt((x / s) (y / s) - (z / s) (w / s))",
        "products overflow or underflow",
        HIGHAM,
        naive="sqrt(x * x + y * z)",
        stable="scaled_root((1, 1), x, x, y, z)",
        ranges=((-INF, INF), (0, INF), (0, INF)),
        rule=root_of_squares,
    ),
    scaling(
        "norm",
        "sqrt(sum(x**2)) -> s sqrt(sum((x / s)**2)) with s = max|x|",
        "x**2 overflows or underflows; the gradient is 0 / 0 at 0",
        HIGHAM,
        stable="norm(0, False, x)",
        shapes=V,
        rule=root_of_squares,
    ),
    scaling(
        "unit_vector",
        "x / sqrt(sum(x**2)) -> x / norm(x); 0 at 0",
        "0 / 0 at 0",
        HIGHAM,
        stable="x / whole_norm(norm(0, True, x))",
        shapes=V,
        rule=over_own_length,
    ),
    regimes(
        "root_that_cancels",
        "sqrt(b**2 + r) - b -> r / (sqrt(b**2 + r) + b) for b > 0",
        "cancels where b**2 is much larger than r",
        GOLDBERG,
        naive="(-b + sqrt(b * b - 4 * a * c)) / (2 * a)",
        stable="larger_root(a, b, c)",
        ranges=((0, INF), (-INF, INF), (-INF, 0)),
        rule=root_that_cancels,
    ),
    peephole(
        "difference_of_roots",
        "sqrt(x + 1) - sqrt(x) -> 1 / (sqrt(x + 1) + sqrt(x))",
        "cancels for large x",
        GOLDBERG,
        ranges=POSITIVE,
        rule=difference_of_roots,
    ),
    peephole(
        "difference_of_reciprocals",
        "1 / x - 1 / (x + 1) -> 1 / x / (x + 1)",
        "cancels for large x",
        GOLDBERG,
        rule=difference_of_reciprocals,
    ),
    peephole("sinh", "exp(x) - exp(-x) -> 2 sinh(x)", "cancels near 0", DLMF_4),
    peephole(
        "cosh", "exp(x) + exp(-x) -> 2 cosh(x)", "its quotients are infinity over infinity", DLMF_4
    ),
    regimes(
        "difference_of_exponentials",
        "exp(x) - exp(y) -> exp(y) expm1(x - y)",
        "cancels where x is near y",
        HIGHAM,
        stable="exp_difference(x, y)",
        rule=difference_of_exponentials,
    ),
)
