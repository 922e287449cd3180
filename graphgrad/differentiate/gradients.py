"""`gradients`: the question, checked, and the answer in the structure it was asked in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..ir.build import build
from ..ir.collector import collector_paused
from ..ir.context import CONTEXT, Context
from ..ir.errors import DTypeError, GradientError, GraphError, RegionError, did_you_mean
from ..ir.graph import Graph, current
from ..ir.node import Node, Region, Tensor
from ..ir.op import OP_TYPES
from ..ir.residual import vantage
from ..ir.tree import flatten, paths, unflatten
from ..ir.types import compatible
from ..ops.base import Full, OnesLike, ZeroTensor, constant
from ..regions.rules import as_rule, check_reference
from .levels import Hidden, Key, Step, level
from .sweep import Sweep

__all__ = [
    "gradients",
]


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    stop_gradients: Any = None,
    unconnected: str = "none",
    overrides: Mapping[Any, Any] | str | None = None,
) -> Any:
    """Sum over ys of the gradients with respect to xs, as new nodes of the graph.

    ys, xs          floating tensors, or any nesting of list, tuple and dict of them
    grad_ys         gradients of ys, in the structure of ys, of their shapes and dtypes; None (for
                    all or for one): ones
    stop_gradients  tensors through which nothing flows
    unconnected     what an x gets to which nothing flows: "none" (None) or "zero"
    overrides       rules for this call only: {op type, node or region: rule, or None for the own
                    gradient}; "none" switches all marks off

    Returns the structure of xs, with a tensor of x's shape and dtype, or None, for each x: the
    total derivative, where a marked region or node has the gradient of its rule. Nodes go to the
    graph of ys, into the region that is open there. Raises DTypeError for integer or bool tensors,
    GradientError for tensors hidden inside a region and for rules that break their contract,
    RegionError where regions need each other in a circle.
    """
    y_list, x_list = _tensors(ys, "ys"), _tensors(xs, "xs")
    if unconnected not in ("none", "zero"):
        raise ValueError(f"unconnected is 'none' or 'zero', got {unconnected!r}")
    stops = _tensors(stop_gradients, "stop_gradients") if stop_gradients is not None else []
    if not y_list or not x_list:
        return unflatten(xs, [None] * len(x_list))
    graph = _one_graph([*y_list, *x_list, *stops])
    for what, tensors in (("ys", y_list), ("xs", x_list)):
        _check_differentiable(what, tensors)
    seeds = _seeds(ys, y_list, grad_ys)
    with _ambient(graph) as context:
        inherited = overrides is None
        context.overrides = context.overrides if inherited else overrides
        off, chosen = _overrides(context.overrides, graph, inherited)
        off |= frozenset(context.running)
        off = _exact_regions_opened(context, [*y_list, *x_list, *stops], off)
        keys = [_visible(y, "of", context, off) for y in y_list]
        for t in x_list:
            _visible(t, "with respect to", context, off)
        for t in stops:
            _visible(t, "that stops at", context, off)
        sweep = Sweep(context, off, frozenset(stops), chosen)
        found = sweep.run(
            [(key, _seed(y, dy, context)) for key, y, dy in zip(keys, y_list, seeds, strict=True)],
            x_list,
        )
        answers = [
            _answer(dx, x, unconnected, context) for dx, x in zip(found, x_list, strict=True)
        ]
        return unflatten(xs, answers)


@contextmanager
def _ambient(graph: Graph) -> Iterator[Context]:
    """The record of this call: same graph, region and running rules; no stamps, no name scope."""
    outer = current()
    context = outer.copy()
    if outer.graph is not graph:
        context.graph, context.region, context.implicit = graph, None, False
    context.stamps, context.scope = None, "gradients/"
    token = CONTEXT.set(context)
    try:
        with collector_paused():
            yield context
    finally:
        CONTEXT.reset(token)


def _tensors(tree: Any, what: str) -> list[Tensor]:
    leaves = flatten(tree)
    for leaf, path in zip(leaves, paths(tree, what), strict=True):
        if not isinstance(leaf, Tensor):
            raise GradientError(
                f"{path} is {leaf!r}, not a tensor. gradients() takes tensors, or lists, tuples "
                "and dicts of them."
            )
    return leaves


def _one_graph(tensors: Sequence[Tensor]) -> Graph:
    first = tensors[0]
    for t in tensors:
        if t.graph is not first.graph:
            raise GraphError(
                f"{first.name} ({first.where}) is in {first.graph!r}, {t.name} ({t.where}) in "
                f"{t.graph!r}: gradients() works within one graph"
            )
    assert first.graph is not None
    return first.graph


def _check_differentiable(what: str, tensors: Sequence[Tensor]) -> None:
    for t in tensors:
        if not t.type.differentiable:
            raise DTypeError(
                f"{what} of gradients() are floating tensors, got {t.name}: {t.type!r} (built at "
                f"{t.where}). Cast it first: t.astype('float64')."
            )


def _seeds(ys: Any, y_list: list[Tensor], grad_ys: Any) -> list[Any]:
    if grad_ys is None:
        return [None] * len(y_list)
    seeds = [grad_ys] if isinstance(ys, Tensor) and not _listed(grad_ys) else flatten(grad_ys)
    if len(seeds) != len(y_list):
        raise GradientError(f"gradients() got {len(seeds)} grad_ys for {len(y_list)} ys")
    for y, dy in zip(y_list, seeds, strict=True):
        if dy is None:
            continue
        shape, dtype = (dy.shape, dy.dtype) if isinstance(dy, Tensor) else _array_type(dy, y)
        if not compatible(shape, y.shape) or dtype != y.dtype:
            raise GradientError(
                f"a gradient of {y.name} ({y.type!r}, built at {y.where}) has its shape and "
                f"dtype, got {dtype}{list(shape)}"
            )
    return seeds


def _listed(grad_ys: Any) -> bool:
    """Whether the gradient of a single y was put in a list, as legacy programs do."""
    return isinstance(grad_ys, list | tuple) and any(isinstance(dy, Tensor) for dy in grad_ys)


def _array_type(dy: Any, y: Tensor) -> tuple[Any, Any]:
    """Numbers and lists take the dtype of y; arrays have their own."""
    array = np.asarray(dy)
    weak = not isinstance(dy, np.ndarray | np.generic) and array.dtype.kind in "bif"
    return array.shape, y.dtype if weak else array.dtype


def _seed(y: Tensor, dy: Any, context: Context) -> Tensor:
    """The gradient that y starts with; ones where none was given."""
    outer, context.origin = context.origin, y.node
    try:
        if isinstance(dy, Tensor):
            return dy
        if dy is not None:
            return constant(dy, y.dtype)
        if y.type.static:
            return build(Full(y.shape, 1, y.dtype), ()).outputs[0]  # type: ignore[arg-type]
        return build(OnesLike(), (y,)).outputs[0]
    finally:
        context.origin = outer


def _visible(t: Tensor, what: str, context: Context, off: frozenset[Step]) -> Key:
    """The key of a tensor as the caller sees it; GradientError where a region hides it."""
    found = level(t, vantage(t, context), off)
    if isinstance(found, Hidden):
        raise found.error(f"a gradient is wanted {what}")
    return t if found is None else (t, found)


def _exact_regions_opened(
    context: Context, tensors: Sequence[Tensor], off: frozenset[Step]
) -> frozenset[Step]:
    """Regions that hide a tensor of the question, and whose rule is declared exact, are opened."""
    for t in tensors:
        found = level(t, vantage(t, context), off)
        while isinstance(found, Hidden) and as_rule(found.region.rule).exact:
            off |= {found.region}
            found = level(t, vantage(t, context), off)
    return off


def _answer(dx: Tensor | None, x: Tensor, unconnected: str, context: Context) -> Tensor | None:
    if dx is None and unconnected == "zero":
        dx = ZeroTensor(x)
    if isinstance(dx, ZeroTensor):  # one that is handed out becomes a node now
        outer, context.origin = context.origin, x.node
        dx.node  # noqa: B018
        context.origin = outer
    return dx


# --- overrides of the call --------------------------------------------------------------------


def _overrides(
    overrides: Mapping[Any, Any] | str | None, graph: Graph, inherited: bool
) -> tuple[frozenset[Step], dict[Step, Any]]:
    """The sites that are switched off, and the rules chosen for this call.

    inherited: by a call within the call, in whose graph there may be nothing of what is selected.
    """
    if overrides is None:
        return frozenset(), {}
    if overrides == "none":
        marked: list[Step] = [n for n in graph.nodes if n.stamp is not None]
        return frozenset([*marked, *graph.regions]), {}
    if not isinstance(overrides, Mapping):
        raise GradientError(f'overrides is a mapping of sites to rules, or "none": {overrides!r}')
    off: set[Step] = set()
    chosen: dict[Step, Any] = {}
    for selection, rule in overrides.items():
        if rule is not None:
            check_reference(rule, lambda: "named in overrides= of gradients()", late=False)
        for step in _selected(selection, graph, inherited):
            if step in chosen or step in off:
                raise RegionError(f"two entries of overrides= are for {step!r}")
            if rule is None:
                off.add(step)
            else:
                chosen[step] = rule
    return frozenset(off), chosen


def _selected(selection: Any, graph: Graph, inherited: bool) -> list[Step]:
    """The sites of one entry: a region, a node, or the forward nodes of an op type."""
    if isinstance(selection, Region | Node):
        if selection.graph is not graph and inherited:
            return []
        if selection.graph is not graph:
            raise GraphError(f"overrides= names {selection!r}, which is not in {graph!r}")
        return [selection]
    if isinstance(selection, str):
        if selection not in OP_TYPES:
            hint = did_you_mean(selection, OP_TYPES)
            raise RegionError(f"overrides= names op type {selection!r}. {hint}".rstrip())
        found: list[Step] = [n for n in graph.nodes if n.type == selection and n.origin is None]
        if not found and not inherited:
            raise RegionError(f"overrides= names op type {selection!r}, of which there is no node")
        return found
    raise GradientError(f"overrides= takes op types, nodes and regions as keys, got {selection!r}")
