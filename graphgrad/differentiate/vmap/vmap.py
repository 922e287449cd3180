"""`vmap`: what a function builds for one example, built for a batch of them.

Rules are called for one example, at home, and what they built is batched: one that normalises its
dy does so per example, never over the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

from ...base.collector import collector_paused
from ...base.errors import ShapeError
from ...base.tree import flatten, unflatten
from ...ir.build import adopted, apply, build, graph_elsewhere, read_here
from ...ir.context import CONTEXT, Within
from ...ir.graph import current, restored
from ...ir.node import Node, Region, Tensor
from ...ir.op import Gradients
from ...ir.typed import OfAny, OfMore, OfOne, OfTwo, P, X
from ...ops.base import NO_GRAD, ZERO, as_tensor, is_zero
from ...ops.control import BodyScope, Cond, Scan, While, read_outside
from ...ops.per_example import PerExample
from ...ops.shape.reshaping import moveaxis
from ...ops.sources import Identity, Placeholder, apart
from ..builtin import builtin
from ..travel.carrier import Carrier
from ..travel.trace import TraceGraph
from .batch import counting
from .batched_choice import batched_choice
from .batched_loop import batched_scan, batched_while
from .batcher import Batcher, Examples, Rule

__all__ = ["vmap"]

CONTROL: Mapping[type[Any], Rule] = {
    Cond: batched_choice,
    Scan: batched_scan,
    While: batched_while,
}
"""What control flow is for a batch; other ops say it themselves, as `Op.batch`."""


@overload
def vmap(fn: OfOne[X], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., X]: ...
@overload
def vmap(fn: OfTwo[X], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., X]: ...
@overload
def vmap(fn: OfMore[P, X], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., X]: ...
@overload
def vmap(fn: OfAny[X], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., X]: ...
def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """Vectorize a function of one example to a function of a batch.

    Values and derivatives equal those of a loop over the examples. Marks and their rules are
    batched too: a rule applies to each example. This also holds for a site that reads only tensors
    shared by all examples, unless its rule is known to be linear in its cotangents (declared
    linear=True, built-in, or detected): such a rule is called once, with the sum. Gradients of
    shared tensors are summed over the examples. An op without a batched form runs in a loop, with a
    PerformanceWarning for each op type.

    Parameters:
        fn: takes tensors (or nestings of them) of one example and returns tensors. It may call
            gradients(), and it may read tensors of the surrounding graph, which all examples share.
        in_axes: the batch axis of the arguments: an int for all, or one int or None (shared) for
            each.
        out_axes: the batch axis of the results.

    Returns: a function with the same arguments; arguments and results have a batch axis.

    Raises: on a call, ShapeError if an argument has no such axis, if batches differ in length, or
    if in_axes are all None or do not match the arguments.

    Source: [Bradbury et al. 2018, JAX, jax.vmap].

    >>> rows = gg.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gg.evaluate(gg.vmap(lambda x: gg.gradients(gg.prod(x), x))(rows))
    array([[2., 1.],
           [4., 3.]])
    """

    @restored
    def mapped(*args: Any) -> Any:
        elsewhere = graph_elsewhere(flatten(args))
        if elsewhere is not None:
            with elsewhere.as_default():
                return mapped(*args)
        axes = in_axes if isinstance(in_axes, list | tuple) else [in_axes] * len(args)
        if len(axes) != len(args):
            raise ShapeError(f"vmap got {len(args)} arguments and in_axes for {len(axes)}")
        sizes = [len(flatten(arg)) for arg in args]
        places = [axis for axis, size in zip(axes, sizes, strict=True) for _ in range(size)]
        with _unstamped():
            leaves = read_here(tuple([as_tensor(leaf) for leaf in flatten(args)]))
            _check_axes(leaves, places)
            whole = apart([_first(t, axis) for t, axis in zip(leaves, places, strict=True)])
            batched = [t for t, axis in zip(whole, places, strict=True) if axis is not None]
            examples = Examples(batched, counting(batched[0]), CONTROL)
            scratch = TraceGraph(current().graph, f"one example of {getattr(fn, '__name__', 'fn')}")
        with BodyScope(scratch):
            single = [_single(t, axis) for t, axis in zip(leaves, places, strict=True)]
            returned = fn(*unflatten(args, single))
            results = adopted(tuple(as_tensor(t) for t in flatten(returned)))
            results = tuple(map(read_outside, results))
        with _unstamped():
            given = dict(zip(single, whole, strict=True))
            batcher = Batcher(scratch, given, Around(), examples)
            collector_paused(batcher.run)()
            ready = [examples.repeated(batcher.tensor(t)) for t in results]
            return unflatten(returned, [moveaxis(t, 0, out_axes) if out_axes else t for t in ready])

    return mapped


def _unstamped() -> Within:
    """What op-type maps stamp in this block is stamped already."""
    context = current().copy()
    context.stamps = None
    return Within(context)


def _check_axes(leaves: Sequence[Tensor], axes: Sequence[int | None]) -> None:
    for t, axis in zip(leaves, axes, strict=True):
        if axis is not None and not -t.ndim <= axis < t.ndim:
            raise ShapeError(f"vmap over axis {axis} of {t.name}: {t.type!r} (built at {t.where})")
    if all(axis is None for axis in axes):
        raise ShapeError("vmap needs an argument with a batch axis: in_axes are all None")


def _single(t: Tensor, axis: int | None) -> Tensor:
    """A placeholder for one example of t."""
    shape = list(t.shape)
    if axis is not None:
        del shape[axis]
    return build(Placeholder(tuple(shape), t.dtype), ()).outputs[0]


def _first(t: Tensor, axis: int | None) -> Tensor:
    """t with its batch axis first: a tensor of its own, since all examples may read t whole."""
    if axis is None:
        return t
    if axis % t.ndim == 0:
        return apply(Identity(), t)
    return t.transpose(axis % t.ndim, *(i for i in range(t.ndim) if i != axis % t.ndim))


class Around(Carrier):
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
        context = CONTEXT.get()
        context.answering = context.answering.within()  # of one example every gradient is wanted
        singles = [_single(t, 0 if flag else None) for t, flag in zip(node.inputs, op.batched)]
        inner = build(op.op, tuple(singles))
        seeds = [None if dy is None else _single(dy, 0) for dy in dys]
        dxs = builtin(op.op, inner, seeds)
    inputs = [_first(t, 0) if flag else t for t, flag in zip(node.inputs, op.batched, strict=True)]
    given = dict(zip((*singles, *inner.outputs), (*inputs, *node.outputs), strict=True))
    batched = [t for t, flag in zip(inputs, op.batched, strict=True) if flag]
    batched += node.outputs
    for seed, dy in zip(seeds, dys, strict=True):
        if seed is not None and dy is not None:
            given[seed] = dy
            batched.append(dy)
    examples = Examples(batched, counting(node.outputs[0]), CONTROL)
    batcher = Batcher(scratch, given, Around(), examples)
    batcher.run()
    return [
        NO_GRAD if dx is None else ZERO if is_zero(dx) else examples.summed(batcher.tensor(dx), x)
        for dx, x in zip(dxs, inputs, strict=True)
    ]


PerExample.vjp = per_example_vjp
