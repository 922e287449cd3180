"""`vmap`: what a function builds for one example, built for a batch of them.

Rules are called for one example, at home, and what they built is batched: one that normalises its
dy does so per example, never over the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.build import adopted, build
from ..ir.context import CONTEXT
from ..ir.errors import GraphError, ShapeError
from ..ir.graph import Graph
from ..ir.node import Node, Region, Tensor
from ..ir.op import Gradients
from ..ir.tree import flatten, unflatten
from ..ops.base import NO_GRAD, ZERO, as_tensor, is_zero
from ..ops.control import BodyScope, read_outside
from ..ops.per_example import PerExample
from ..ops.shaping import moveaxis
from ..ops.sources import Placeholder
from .batched import repeated
from .batcher import Batcher
from .builtin import builtin
from .trace import TraceGraph
from .transplant import Plain

__all__ = ["vmap"]


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """fn of one example as a function of a batch of them.

    fn        takes tensors (or nestings of them) of one example and returns tensors; it may call
              gradients() and read tensors of the graph around, which all examples share
    in_axes   the batch axis of the arguments: an int for all, or one int or None (shared) for each
    out_axes  where the batch axis stands in the results

    Regions, stamps and their rules are batched with the rest: a rule works per example. Gradients
    of the result are those of the batch; those of shared tensors are summed over the examples.
    """

    def mapped(*args: Any) -> Any:
        axes = in_axes if isinstance(in_axes, list | tuple) else [in_axes] * len(args)
        if len(axes) != len(args):
            raise ShapeError(f"vmap got {len(args)} arguments and in_axes for {len(axes)}")
        leaves = [[as_tensor(leaf) for leaf in flatten(arg)] for arg in args]
        scratch = TraceGraph(_home(leaves), f"one example of {getattr(fn, '__name__', 'fn')}")
        whole = [[_first(t, axis) for t in group] for group, axis in zip(leaves, axes, strict=True)]
        batched = {t for ts, axis in zip(whole, axes, strict=True) if axis is not None for t in ts}
        if not batched:
            raise ShapeError("vmap needs an argument with a batch axis: in_axes are all None")
        with BodyScope(scratch):
            single = [[_single(t, axis) for t in ts] for ts, axis in zip(leaves, axes, strict=True)]
            returned = fn(*(unflatten(a, ts) for a, ts in zip(args, single, strict=True)))
            results = adopted(tuple(as_tensor(t) for t in flatten(returned)))
            results = tuple(map(read_outside, results))
        given = dict(zip(flatten(single), flatten(whole), strict=True))
        like = next(t for ts, axis in zip(whole, axes, strict=True) if axis is not None for t in ts)
        batcher = Batcher(scratch, given, Around(), batched)
        batcher.build_all()
        found = [batcher.tensor(t) for t in results]
        ready = [t if t in batched else repeated(t, like) for t in found]
        return unflatten(returned, [moveaxis(t, 0, out_axes) if out_axes else t for t in ready])

    return mapped


def _home(leaves: Sequence[Sequence[Tensor]]) -> Graph:
    graphs = {t.graph for group in leaves for t in group}
    if len(graphs) != 1:
        raise GraphError("vmap needs tensors of one graph as arguments")
    (graph,) = graphs
    assert graph is not None
    return graph


def _single(t: Tensor, axis: int | None) -> Tensor:
    """A placeholder for one example of t."""
    shape = list(t.shape)
    if axis is not None:
        if not -t.ndim <= axis < t.ndim:
            raise ShapeError(f"vmap over axis {axis} of {t.name}: {t.type!r} (built at {t.where})")
        del shape[axis]
    return build(Placeholder(tuple(shape), t.dtype), ()).outputs[0]


def _first(t: Tensor, axis: int | None) -> Tensor:
    """t with its batch axis first, built outside of the scratch graph."""
    if axis is None or axis % t.ndim == 0:
        return t
    return t.transpose(axis % t.ndim, *(i for i in range(t.ndim) if i != axis % t.ndim))


class Around(Plain):
    """Carries what a body captured back to the graph around it: everything is itself."""

    def tensor(self, t: Tensor) -> Tensor:
        """The tensor itself."""
        return t

    def region(self, region: Region) -> Region:
        """The region itself."""
        return region


def per_example_vjp(op: PerExample, node: Node, *dys: Tensor | None) -> Gradients:
    """The op's own gradient for one example, batched."""
    graph = node.graph
    assert graph is not None
    scratch = TraceGraph(graph, f"gradient of one {op.op.type}")
    with BodyScope(scratch):
        CONTEXT.get().live = None
        singles = [_single(t, 0 if flag else None) for t, flag in zip(node.inputs, op.batched)]
        inner = build(op.op, tuple(singles))
        seeds = [None if dy is None else _single(dy, 0) for dy in dys]
        dxs = builtin(op.op, inner, seeds)
    given = dict(zip((*singles, *inner.outputs), (*node.inputs, *node.outputs), strict=True))
    batched = {t for t, flag in zip(node.inputs, op.batched, strict=True) if flag}
    batched.update(node.outputs)
    for seed, dy in zip(seeds, dys, strict=True):
        if seed is not None and dy is not None:
            given[seed] = dy
            batched.add(dy)
    batcher = Batcher(scratch, given, Around(), batched)
    batcher.build_all()
    return [
        NO_GRAD if dx is None else ZERO if is_zero(dx) else batcher.summed(batcher.tensor(dx), x)
        for dx, x in zip(dxs, node.inputs, strict=True)
    ]


PerExample.vjp = per_example_vjp  # type: ignore[method-assign, assignment]
