"""Laws over the registry: gradients are differences, to second order, and of the right type."""

import numpy as np
import pytest

import graphgrad as gg

from ..each import each
from .cases import CASES, drawn, paired, placed

EPS = 1e-6
DOUBLE = (np.float64, np.complex128)
ON_PURPOSE = {"StopGradient", "ZeroGradient"}  # their gradient is not the derivative


def smooth(cases):
    """Cases with an input in double precision whose type has a gradient."""
    return [
        (name, op, arrays)
        for name, op, arrays in cases
        if op.differentiable and op.pure and op.type not in ON_PURPOSE
        if any(a.dtype in DOUBLE for a in arrays)
    ]


SMOOTH = smooth(CASES)


@pytest.mark.parametrize("order", [1, 2])
@each(SMOOTH)
def test_vjp_matches_central_differences(op, arrays, order):
    """<dy, J v> from two evaluations equals <vjp(dy), v> for random dy and v."""
    xs, node = placed(op, arrays)
    rng = np.random.default_rng(1)
    with xs[0].graph if xs else gg.Graph():
        wrt = [x for i, x in enumerate(xs) if x.type.differentiable and i not in op.jumps]
        ys = [t for t in node.outputs if t.dtype in DOUBLE]
        for _ in range(order - 1):
            weighted = [gg.real(y * rng.normal(size=y.shape) * y) for y in ys]
            ys = [d for d in gg.gradients(weighted, wrt) if d is not None]
        if not ys or not wrt:
            pytest.skip("nothing to differentiate")
        cotangents = [drawn(rng, y) for y in ys]
        dxs = gg.gradients(ys, wrt, grad_ys=cotangents)
    active = [(x, dx) for x, dx in zip(wrt, dxs, strict=True) if dx is not None]
    for x, dx in active:
        assert dx.type is x.type
    f = gg.compile(xs, [ys, [dx for _, dx in active]])
    directions = {x: drawn(rng, x) for x, _ in active}
    (plus, _), (minus, _) = (
        f(*[a + s * EPS * directions[x] if x in directions else a for x, a in zip(xs, arrays)])
        for s in (1, -1)
    )
    moved = [(p - m) / (2 * EPS) for p, m in zip(plus, minus, strict=True)]
    by_difference = paired(cotangents, moved)
    if not active:
        assert abs(by_difference) < 1e-7
        return
    by_rule = paired(f(*arrays)[1], [directions[x] for x, _ in active])
    np.testing.assert_allclose(by_rule, by_difference, rtol=2e-5, atol=2e-6)


@each(SMOOTH)
def test_gradients_with_unknown_lengths_are_the_same(op, arrays):
    results = []
    for known in (True, False):
        with gg.Graph():
            xs = [gg.placeholder(a.shape if known else (None,) * a.ndim, a.dtype) for a in arrays]
            try:
                node = gg.ir.build.build(op, tuple(xs))
            except gg.ShapeError:
                pytest.skip("the op says that it needs known lengths")
            ys = [t for t in node.outputs if t.type.differentiable]
            wrt = [x for x in xs if x.type.differentiable]
            seeds = [gg.ones_like(y) for y in ys]
            dxs = [d for d in gg.gradients(ys, wrt, seeds) if d is not None]
            results.append(gg.compile(xs, dxs)(*arrays))
    for a, b in zip(*results, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
