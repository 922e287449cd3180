"""Laws: gradients are differences, to second order, and of the right type."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..compiled import compile
from ..differentiate.gradients import gradients
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.types import Array
from ..ops.create.creation import ones_like
from ..ops.elementwise.complex_parts import real
from .trying import (
    DOUBLE,
    Arrays,
    NotTried,
    differentiable,
    drawn,
    equal,
    home,
    paired,
    placed,
    placed_unknown,
    require,
)

STEP = 1e-6


def is_smooth(op: Op, arrays: Arrays) -> bool:
    """Whether its gradient is that of its value, and some input is in double precision."""
    follows = op.differentiable and op.pure and not op.derivative.withholds
    return follows and any(a.dtype in DOUBLE for a in arrays)


def need_smooth(op: Op, arrays: Arrays) -> None:
    """NotTried where that is not so."""
    if not is_smooth(op, arrays):
        raise NotTried("it has no gradient in double precision that is that of its value")


def differences(op: Op, arrays: Arrays, order: int = 1) -> None:
    """<dy, J v> from two evaluations equals <vjp(dy), v> for random dy and v."""
    need_smooth(op, arrays)
    xs, node = placed(op, arrays)
    rng = np.random.default_rng(1)
    with home(node):
        wrt = [
            x for i, x in enumerate(xs) if x.type.differentiable and i not in op.derivative.jumps
        ]
        ys = [t for t in node.outputs if t.dtype in DOUBLE]
        for _ in range(order - 1):
            ys = _derived(ys, wrt, rng)
        if not ys or not wrt:
            raise NotTried("there is nothing to differentiate")
        cotangents = [drawn(rng, y) for y in ys]
        dxs = gradients(ys, wrt, grad_ys=cotangents)
    active = [(x, dx) for x, dx in zip(wrt, dxs, strict=True) if dx is not None]
    for x, dx in active:
        require(dx.type is x.type, f"the gradient of {x.type!r} is {dx.type!r}")
    directions = {x: drawn(rng, x) for x in wrt}
    f = compile(xs, [ys, [dx for _, dx in active]])
    moved = _central_difference(lambda *moved: f(*moved)[0], xs, arrays, directions)
    by_difference = paired(cotangents, moved)
    by_rule = paired(f(*arrays)[1], [directions[x] for x, _ in active])
    equal(by_rule, by_difference, "the slope is {} by vjp and {} by differences", 2e-5, 2e-6)


second_differences = partial(differences, order=2)


def _derived(ys: list[Tensor], wrt: list[Tensor], rng: np.random.Generator) -> list[Tensor]:
    """The gradients of a quadratic form of ys, so that they depend on everything."""
    weighted = [real(y * drawn(rng, y).real * y) for y in ys]
    return [d for d in gradients(weighted, wrt) if d is not None]


def _central_difference(
    f: Any, xs: list[Tensor], arrays: Arrays, directions: dict[Tensor, Array]
) -> list[Array]:
    def at(step: float) -> Any:
        pairs = zip(xs, arrays, strict=True)
        return f(*[a + step * directions[x] if x in directions else a for x, a in pairs])

    return [(p - m) / (2 * STEP) for p, m in zip(at(STEP), at(-STEP), strict=True)]


def with_unknown_lengths(op: Op, arrays: Arrays) -> None:
    """Gradients built with unknown lengths are the same."""
    need_smooth(op, arrays)
    unknown = _summed_gradients(placed_unknown(op, arrays), arrays)
    if not unknown:
        raise NotTried("there is nothing to differentiate")
    for a, b in zip(_summed_gradients(placed(op, arrays), arrays), unknown, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def _summed_gradients(placement: tuple[list[Tensor], Node], arrays: Arrays) -> Any:
    xs, node = placement
    with home(node):
        ys = differentiable(node.outputs)
        dxs = gradients(ys, differentiable(xs), [ones_like(y) for y in ys])
        return compile(xs, [d for d in dxs if d is not None])(*arrays)
