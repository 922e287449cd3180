"""Laws: vmap of an op is the op on every example, and so is its gradient."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..base.kinds import is_inexact
from ..compiled import compile, evaluate
from ..differentiate.forward.jvp import jvp
from ..differentiate.gradients import gradients
from ..differentiate.vmap.vmap import vmap
from ..ir.build import build
from ..ir.graph import Graph
from ..ir.node import Node, Tensor
from ..ir.op import Op
from ..ir.types import Array
from ..ops.base import constant
from ..ops.sources import placeholder, placeholder_of
from .trying import (
    Arrays,
    NotTried,
    close,
    differentiable,
    drawn,
    equal,
    is_double,
    of_type,
    paired,
    require,
)

NODES = 16  # that an op may take to be batched


def examples(arrays: Arrays, count: int) -> list[Array]:
    """`count` examples of every input: the sample's own, slightly changed where it is floating."""
    return [
        np.stack([a + a.dtype.type(0.01 * i) if is_inexact(a.dtype) else a for i in range(count)])
        for a in arrays
    ]


def patterns(count: int) -> list[list[bool]]:
    """Which inputs have the batch axis: all, and one of a few alone, or of many all but an end."""
    every = [True] * count
    if count == 1:
        return [every]
    if count <= 3:
        return [every, *[[i == k for i in range(count)] for k in range(count)]]
    return [every, [*every[:-1], False], [False, *every[1:]]]


def _patterns_of(arrays: Arrays) -> list[list[bool]]:
    if not arrays:
        raise NotTried("it has no inputs")
    return patterns(len(arrays))


def _batched(op: Op, xs: list[Tensor], flags: list[bool]) -> list[Tensor]:
    axes = [0 if f else None for f in flags]
    outputs: list[Tensor] = vmap(lambda *ts: list(build(op, ts).outputs), axes)(*xs)
    return outputs


def nodes_of_a_batch(op: Op, arrays: Arrays, flags: list[bool]) -> list[Node]:
    """What vmap builds of it."""
    with Graph() as g:
        shapes = [(3, *a.shape) if f else a.shape for a, f in zip(arrays, flags, strict=True)]
        xs = [placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
        start = len(g.nodes)
        _batched(op, xs, flags)
    return g.nodes[start:]


def few_nodes(op: Op, arrays: Arrays) -> None:
    """A batch of it is a few nodes, whatever its length."""
    looped = []
    for flags in _patterns_of(arrays):
        made = nodes_of_a_batch(op, arrays, flags)
        if any(n.type == "PerExample" for n in made):
            looped.append(flags)
        require(len(made) <= NODES, f"a batch of it takes {len(made)} nodes, over {NODES}")
    if looped:
        raise NotTried(
            f"vmap runs it for one example after the other (batched inputs: {looped}); write "
            "`batch`, or say `axis_attrs` or `stacks`",
            told=True,
        )


def any_number_of_examples(op: Op, arrays: Arrays) -> None:
    """A batch whose length is known when it is run: two examples, and none at all."""
    with Graph():
        rows = evaluate(list(build(op, tuple([constant(a) for a in arrays])).outputs))
    for flags in _patterns_of(arrays)[:2]:
        with Graph():
            shapes = [
                (None, *a.shape) if f else a.shape for a, f in zip(arrays, flags, strict=True)
            ]
            xs = [placeholder(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
            run = compile(xs, _batched(op, xs, flags))
        for count in (2, 0):
            batch = [
                np.repeat(a[None], count, 0) if f else a for a, f in zip(arrays, flags, strict=True)
            ]
            for array, one in zip(run(*batch), rows, strict=True):
                want = np.broadcast_to(one, (count, *one.shape))
                of_type(array, want, f"the batch of {count} examples")
                close(array, want)


def is_a_loop(op: Op, arrays: Arrays) -> None:
    """Values and gradients of a batch are those of one example after the other."""
    every = _patterns_of(arrays)
    one, _ = _with_gradients(op, lambda xs: list(build(op, tuple(xs)).outputs), arrays)
    for flags in every:
        pairs = zip(arrays, examples(arrays, 3), flags, strict=True)
        batch = [b if f else a for a, b, f in pairs]
        together, seeds = _with_gradients(op, partial(_batched, op, flags=flags), batch)
        given = [*zip(batch, flags, strict=True), *[(seed, True) for seed in seeds]]
        rows = [one(*[a[i] if f else a for a, f in given]) for i in range(3)]
        values, dxs = together(*[a for a, _ in given])
        for array, parts in zip(values, zip(*[r[0] for r in rows], strict=True), strict=True):
            _alike(array, np.stack(parts))
        own = [f for a, f in zip(batch, flags, strict=True) if is_inexact(a.dtype)][: len(dxs)]
        for array, parts, f in zip(dxs, zip(*[r[1] for r in rows], strict=True), own, strict=True):
            _alike(array, np.stack(parts) if f else sum(parts))


def _alike(array: Any, want: Any) -> None:
    of_type(array, want, "what vmap gives")
    close(array, want)


def _with_gradients(
    op: Op, make: Callable[[list[Tensor]], list[Tensor]], arrays: Arrays
) -> tuple[Any, list[Array]]:
    """Outputs, and gradients where there are such, as a function of inputs and seeds; seeds."""
    with Graph():
        xs = [placeholder(a.shape, a.dtype) for a in arrays]
        ys = make(xs)
        wrt, smooth = differentiable(xs), differentiable(ys)
        if not (wrt and smooth and op.differentiable):
            return compile(xs, [ys, []]), []
        seeds = [placeholder_of(y.type) for y in smooth]
        dxs = gradients(smooth, wrt, seeds, unconnected="zero")
        f = compile([*xs, *seeds], [ys, dxs])
    return f, [np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype) for y in smooth]  # type: ignore[arg-type]


def forward_is_reverse(op: Op, arrays: Arrays) -> None:
    """<dy, jvp(v)> = <vjp(dy), v>, for a batch."""
    rng = np.random.default_rng(5)
    batch = examples(arrays, 3)
    if not arrays or not op.differentiable:
        raise NotTried("it has no gradient")
    with Graph():
        xs = [placeholder(b.shape, b.dtype) for b in batch]
        ys = differentiable(_batched(op, xs, [True] * len(xs)))
        wrt = [(x, b) for x, b in zip(xs, batch, strict=True) if x.type.differentiable]
        if not ys or not wrt:
            raise NotTried("it has no gradient")
        vs = [drawn(rng, b) for _, b in wrt]
        dys = [drawn(rng, y) for y in ys]
        forward = jvp(ys, [x for x, _ in wrt], vs)
        backward = gradients(ys, [x for x, _ in wrt], dys, unconnected="zero")
        tangents, dxs = compile(xs, [forward, backward])(*batch)
    left, right = paired(dys, tangents), paired(dxs, vs)
    tolerance = 1e-9 if is_double([*vs, *dys]) else 1e-4
    equal(left, right, "the slope is {} forward and {} in reverse", tolerance)
