"""Laws: an op is linear where it says so, and every gradient is linear in dy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.kinds import is_inexact
from ..compiled import compile
from ..differentiate.forward.jvp import jvp
from ..differentiate.gradients import gradients
from ..differentiate.linearity import check_linear
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.types import Array
from ..ops.sources import placeholder_of
from .gradients import need_smooth
from .trying import (
    DOUBLE,
    Arrays,
    NotTried,
    compiled,
    differentiable,
    drawn,
    equal,
    home,
    is_double,
    paired,
    placed,
    placed_unknown,
)


def linear_places(op: Op, arrays: Arrays) -> list[list[int]]:
    """The sets of inputs, by place, that may vary together while the op stays linear."""
    floating = [i for i, a in enumerate(arrays) if is_inexact(a.dtype)]
    if op.linear == "joint":
        groups = [floating]
    elif op.linear == "each":
        groups = [[i] for i in floating if i not in op.shape_only]
    else:
        groups = [[i for i in op.linear if i in floating]]
    return [places for places in groups if places]


def _every_place(op: Op, arrays: Arrays) -> list[list[int]]:
    places = linear_places(op, arrays)
    if not places:
        raise NotTried("it is not declared linear")
    return places


def as_said(op: Op, arrays: Arrays) -> None:
    """f(a x + b y) = a f(x) + b f(y), for the inputs in which it is said to be linear."""
    if not any(is_inexact(t.dtype) for t in placed(op, arrays)[1].outputs):
        raise NotTried("its output is no longer counted as linear")
    for places in _every_place(op, arrays):
        _superposed(op, _in_double(arrays), places)


def _in_double(arrays: Arrays) -> list[Array]:
    return [a.astype("float64") if a.dtype == np.float32 else a for a in arrays]


def _superposed(op: Op, arrays: Arrays, places: list[int]) -> None:
    rng = np.random.default_rng(2)
    f = compiled(placed(op, arrays), optimize=False)

    def at(varied: dict[int, Any]) -> Any:
        return f(*[varied.get(i, a) for i, a in enumerate(arrays)])

    x, y = ({i: drawn(rng, arrays[i]) for i in places} for _ in range(2))
    a, b = 1.75, -0.625
    sums = at({i: a * x[i] + b * y[i] for i in places})
    for got, fx, fy in zip(sums, at(x), at(y), strict=True):
        if not is_inexact(got.dtype):
            continue
        tolerance = 1e-10 if got.dtype in DOUBLE else 1e-5
        np.testing.assert_allclose(got, a * fx + b * fy, rtol=tolerance, atol=tolerance)


def adjoint(op: Op, arrays: Arrays) -> None:
    """<dy, f(x)> = <vjp(dy), x> where it is linear, which forward mode relies on."""
    if op.derivative.withholds:
        raise NotTried("it is transposed through its value, whose gradient it blocks")
    for places in _every_place(op, arrays):
        _transposed(op, _in_double(arrays), places)


def _transposed(op: Op, arrays: Arrays, places: list[int]) -> None:
    rng = np.random.default_rng(3)
    xs, node = placed(op, arrays)
    ys = [t for t in node.outputs if t.dtype in DOUBLE]
    if not ys:
        raise NotTried("it has no output in double precision")
    dys = [drawn(rng, y) for y in ys]
    with home(node):
        dxs = gradients(ys, [xs[i] for i in places], grad_ys=dys, unconnected="zero")
    values = compile(xs, [ys, dxs])(*arrays)
    left, right = paired(dys, values[0]), paired(values[1], [arrays[i] for i in places])
    equal(left, right, "<dy, f(x)> is {}, and <vjp(dy), x> is {}", 1e-10)


def _both(op: Op, arrays: Arrays, known: bool) -> tuple[list[Tensor], Node]:
    need_smooth(op, arrays)
    return placed(op, arrays) if known else placed_unknown(op, arrays)


def by_structure(op: Op, arrays: Arrays, known: bool = True) -> None:
    """Every gradient that it builds is linear in its dys, which is read off the nodes."""
    xs, node = _both(op, arrays, known)
    with home(node):
        ys = differentiable(node.outputs)
        dys = [placeholder_of(y.type) for y in ys]
        dxs = [t for t in gradients(ys, differentiable(xs), grad_ys=dys) if t is not None]
        if not dxs:
            raise NotTried("there is nothing to differentiate")
        check_linear(dxs, dys)


def forward_is_reverse(op: Op, arrays: Arrays, known: bool = True) -> None:
    """<dy, jvp(v)> = <vjp(dy), v>."""
    xs, node = _both(op, arrays, known)
    rng = np.random.default_rng(4)
    with home(node):
        ys = differentiable(node.outputs)
        if not ys:
            raise NotTried("there is nothing to differentiate")
        wrt = [(x, a) for x, a in zip(xs, arrays, strict=True) if x.type.differentiable]
        vs = [drawn(rng, a) for _, a in wrt]
        shown = ys if known else compile(xs, ys)(*arrays)
        dys = [drawn(rng, y) for y in shown]
        forward = jvp(ys, [x for x, _ in wrt], vs)
        seeds = [placeholder_of(y.type) for y in ys]
        reverse = gradients(ys, [x for x, _ in wrt], seeds, unconnected="zero")
        f = compile([*xs, *seeds], [forward, reverse])
    tangents, dxs = f(*arrays, *dys)
    left, right = paired(dys, tangents), paired(dxs, vs)
    tolerance = 1e-9 if is_double([*vs, *dys]) else 1e-4
    equal(left, right, "the slope is {} forward and {} in reverse", tolerance)
