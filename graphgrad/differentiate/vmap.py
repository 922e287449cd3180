"""`vmap`: what a function builds for one example, built for a batch of them.

Rules are called for one example, at home, and what they built is batched: one that normalises its
dy does so per example, never over the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.build import adopted, apply, build
from ..ir.collector import collector_paused
from ..ir.context import CONTEXT
from ..ir.errors import GraphError, ShapeError
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, Tensor
from ..ir.op import Gradients, Op
from ..ir.residual import Residual
from ..ir.tree import flatten, unflatten
from ..ops.accumulate import EnsureLike
from ..ops.arithmetic import multiply
from ..ops.base import NO_GRAD, ZERO, Marker, OnesLike, ZerosLike, as_tensor, cast, is_zero
from ..ops.control import BodyGraph, BodyScope, Cond
from ..ops.joining import Concat, Stack
from ..ops.nn import Softmax
from ..ops.per_example import PerExample
from ..ops.products import MatMul
from ..ops.reductions import ArgMax, ReduceSum, Reduction, sum
from ..ops.shaping import (
    BroadcastLike,
    BroadcastTo,
    ExpandDims,
    Reshape,
    Squeeze,
    SumToShape,
    Transpose,
    expand_dims,
    moveaxis,
    reshape,
)
from ..ops.slicing import FULL, Slice
from ..ops.sources import Identity, Placeholder
from ..regions.boundary import take_in_pins
from .builtin import builtin
from .importing import Importer
from .trace import Carrier, TraceGraph, carried
from .transplant import Plain, Transplant

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


class Batcher(Importer):
    """A transplant into a batch: what depends on a batched tensor has the batch axis first.

    batched  the new tensors that have it; shared with the batchers of the rules inside
    """

    def __init__(
        self, source: Graph, given: dict[Tensor, Tensor], outer: Carrier, batched: set[Tensor]
    ) -> None:
        super().__init__(source, given, outer)
        self.batched = batched

    def build_all(self) -> None:
        """Build everything, in the current graph."""
        token = CONTEXT.set(current().copy())
        try:
            with collector_paused():
                self.run()
        finally:
            CONTEXT.reset(token)

    # --- as a carrier of rules ---------------------------------------------------------------

    def transplant(self, source: Graph, given: dict[Tensor, Tensor]) -> Transplant:
        """What a rule built for one example, built for the batch."""
        return Batcher(source, given, self, self.batched)

    def note(self, dy: Tensor, y: Tensor) -> None:
        """The gradient of a batched tensor is batched."""
        if y in self.batched:
            self.batched.add(dy)

    def fitted(self, dx: Any, x: Tensor) -> Any:
        """The entry of a rule: summed over the examples for a shared input, repeated else."""
        if dx is None or isinstance(dx, Marker):
            return dx
        if isinstance(dx, Tensor) and dx in self.batched:
            return dx if x in self.batched else sum(dx, axis=0)
        if x not in self.batched or isinstance(dx, int | float):
            return dx  # a number is broadcast anyway
        return repeated(cast(as_tensor(dx), x.dtype), x)

    def tensor(self, t: Tensor) -> Tensor:
        """What stands for a tensor; a read of a batched one is batched."""
        found = super().tensor(t)
        if found not in self.batched and self._is_batched(found):
            self.batched.add(found)
        return found

    def _is_batched(self, t: Tensor) -> bool:
        while t not in self.batched:
            if isinstance(t.node.op, Residual):
                t = t.node.inputs[0]
            elif isinstance(t.graph, BodyGraph) and (home := t.graph.home_of(t)) is not None:
                t = home
            else:
                return False
        return True

    def _rule(self, rule: Any, owner: Node | Region) -> Any:
        return carried(rule, owner, self)

    # --- nodes -----------------------------------------------------------------------------------

    def place(self, node: Node) -> None:
        """Build one node for the batch."""
        inputs = tuple(self.tensor(t) for t in node.inputs)
        flags = tuple(t in self.batched for t in inputs)
        if not any(flags):
            super().place(node)
            return
        graph = CONTEXT.get().graph
        start = len(graph.nodes)
        if node.stamp is None:
            outputs = batched_outputs(self._op(node), inputs, flags)
        else:
            outputs = self._stamped(node, inputs, flags)
        self.batched.update(outputs)
        self.tensors.update(zip(node.outputs, outputs, strict=True))
        for new in graph.nodes[start:]:
            self._settle_provenance(node, new)

    def _stamped(
        self, node: Node, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]
    ) -> tuple[Tensor, ...]:
        """A stamped node as a region, since it may take several nodes to batch it."""
        context = CONTEXT.get()
        region = Region(
            context.graph,
            carried(node.stamp, node, self),
            parent=context.region,
            origin=context.origin,
            position=node.position,
        )
        context.graph.regions.append(region)
        context.region = region
        outputs = batched_outputs(node.op, inputs, flags)
        context.region = region.parent
        region.pinned_inputs, region.pinned_outputs = inputs, outputs
        take_in_pins(region)
        region.open = False
        return outputs


# --- ops -----------------------------------------------------------------------------------------


def batched_outputs(
    op: Op, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]
) -> tuple[Tensor, ...]:
    """The outputs of an op for a batch: one node where the op has a batched form."""
    if isinstance(op, Cond):
        raise GraphError(
            "vmap over a cond() whose branches read what differs between examples: use gg.where"
        )
    for kinds, rule in RULES:
        if isinstance(op, kinds):
            found = rule(op, inputs, flags)
            if found is not None:
                return (found,)
    if op.elementwise and op.broadcasts:
        return build(op, aligned(inputs, flags)).outputs
    shapes = {t.shape[flag:] for t, flag in zip(inputs, flags, strict=True)}
    if len(shapes) == 1 and (op.elementwise or isinstance(op, ALIKE)):
        return build(op, every_batched(inputs, flags)).outputs
    return build(PerExample(op, flags), inputs).outputs


def aligned(inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> tuple[Tensor, ...]:
    """Operands of one rank behind the batch axis, so that they broadcast as one example's do."""
    ranks = [t.ndim - flag for t, flag in zip(inputs, flags, strict=True)]
    most = max(ranks)
    return tuple(
        apply(ExpandDims(tuple(range(1, 1 + most - rank))), t) if flag and rank < most else t
        for t, flag, rank in zip(inputs, flags, ranks, strict=True)
    )


def every_batched(inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> tuple[Tensor, ...]:
    """All inputs with the batch axis; shared ones are repeated."""
    like = inputs[flags.index(True)]
    return tuple(t if flag else repeated(t, like) for t, flag in zip(inputs, flags, strict=True))


def repeated(t: Tensor, like: Tensor) -> Tensor:
    """t once for every example of `like`, whose first axis counts them."""
    count = like.shape[0]
    if isinstance(count, int) and t.type.static:
        return apply(BroadcastTo((count, *t.shape)), t)  # type: ignore[arg-type]
    ones = reshape(apply(OnesLike(), like[(slice(None), *[0] * (like.ndim - 1))]), (-1,))
    row = expand_dims(cast(ones, t.dtype), tuple(range(1, 1 + t.ndim)))
    return multiply(row, expand_dims(t, 0))


def _shifted(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + 1 for a in axes)


def _axes(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    """Ops whose attribute `axes` counts the axes of their one input."""
    return apply(type(op)(**{**op.attrs, "axes": _shifted(op.axes)}), *inputs)


def _axis(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    """Ops with one `axis`; all inputs have the batch axis."""
    return apply(type(op)(**{**op.attrs, "axis": op.axis + 1}), *every_batched(inputs, flags))


def _transpose(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    return apply(Transpose((0, *_shifted(op.axes))), *inputs)


def _reshape(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    (x,) = inputs
    dims = [("axis", d[1] + 1) if isinstance(d, tuple) else d for d in op.shape]
    if -1 in dims and isinstance(x.shape[0], int) and not x.shape[0]:
        return apply(PerExample(op, flags), x)  # no elements: nothing tells what is left over
    return apply(Reshape((("axis", 0), *dims)), x)


def _broadcast_to(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor | None:
    (x,) = inputs
    if not isinstance(x.shape[0], int):
        return None
    extra = len(op.shape) - (x.ndim - 1)
    row = apply(ExpandDims(tuple(range(1, 1 + extra))), x) if extra else x
    return apply(BroadcastTo((x.shape[0], *op.shape)), row)


def _sum_to_shape(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    (x,) = inputs
    extra = x.ndim - 1 - len(op.shape)
    ones = [extra + i for i, d in enumerate(op.shape) if d == 1]
    axes = _shifted([*range(extra), *ones])
    total = apply(ReduceSum(axes, True), x) if axes else x
    return apply(Reshape((("axis", 0), *op.shape)), total)


def _slice(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    return apply(Slice((FULL, *op.key)), *inputs)


def _matmul(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor | None:
    ranks = [t.ndim - flag for t, flag in zip(inputs, flags, strict=True)]
    return apply(op, *aligned(inputs, flags)) if min(ranks) >= 2 else None


def _broadcast_like(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    x, like = inputs
    target = like if flags[1] else repeated(like, x)
    row = aligned((x, target), (flags[0], True))[0]
    return apply(op, row, target)


RULES: tuple[tuple[Any, Callable[..., Tensor | None]], ...] = (
    ((Reduction, ExpandDims, Squeeze), _axes),
    ((ArgMax, Softmax, Concat, Stack), _axis),
    (Transpose, _transpose),
    (Reshape, _reshape),
    (BroadcastTo, _broadcast_to),
    (BroadcastLike, _broadcast_like),
    (SumToShape, _sum_to_shape),
    (Slice, _slice),
    (MatMul, _matmul),
)
ALIKE = (Residual, Identity, ZerosLike, EnsureLike)
"""Ops that treat inputs of one shape element by element, though they are not arithmetic."""


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
        NO_GRAD if dx is None else ZERO if is_zero(dx) else batcher.fitted(batcher.tensor(dx), x)
        for dx, x in zip(dxs, node.inputs, strict=True)
    ]


PerExample.vjp = per_example_vjp  # type: ignore[method-assign, assignment]
