"""`gradients`: the question, checked, and the answer in the structure it was asked in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..ir.build import build
from ..ir.collector import collector_paused
from ..ir.context import Context, Within
from ..ir.depth import check_room
from ..ir.errors import DTypeError, GradientError, GraphError
from ..ir.graph import Graph, current, entering
from ..ir.node import Tensor
from ..ir.region_tree import MARKED
from ..ir.residual import vantage
from ..ir.tree import flatten, paths, unflatten
from ..ir.types import check_unmasked, compatible
from ..ops.base import Full, OnesLike, ZeroTensor, constant
from ..ops.control import BodyGraph, around
from ..regions.rules import as_rule
from .choices import Choice, choice_of
from .levels import Hidden, Key, Off, key_of, level
from .sweep import NOTHING, Sweep

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

    It is the total derivative, where a marked region or node has the gradient of its rule. Nodes go
    to the graph of ys, into the region that is open there.

    Parameters:
        ys, xs: floating tensors, or any nesting of list, tuple and dict of them.
        grad_ys: gradients of ys, in the structure of ys, of their shapes and dtypes; None (for all
            or for one): ones.
        stop_gradients: tensors through which nothing flows, in any nesting.
        unconnected: what an x gets to which nothing flows: "none" (None) or "zero" (zeros).
        overrides: rules for this call only: {op type, node, region or selection: rule, or None for
            the own gradient}; "none" switches all marks off. A selection that makes one region of
            its nodes does so for this call, marked or not.

    Returns: the structure of xs, with a tensor of x's shape and dtype, or None, for each x.

    Raises: DTypeError for tensors that are not floating; GradientError for tensors hidden inside a
    region, grad_ys that do not fit, and for rules that break their contract; RegionError where
    regions need each other in a circle; ValueError for another unconnected.

    Source: reverse accumulation [Griewank and Walther 2008, "Evaluating Derivatives", chapter 3].

    >>> x = gg.constant([1.0, 2.0])
    >>> gg.evaluate(gg.gradients(gg.sum(x**3), x))
    array([ 3., 12.])
    >>> gg.evaluate(gg.gradients(gg.sum(x**3), x, overrides={"ReduceSum": lambda site, dy: 0.0}))
    array([0., 0.])
    """
    y_list, x_list = _tensors(ys, "ys"), _tensors(xs, "xs")
    if unconnected not in ("none", "zero"):
        raise ValueError(f"unconnected is 'none' or 'zero', got {unconnected!r}")
    stops = _tensors(stop_gradients, "stop_gradients") if stop_gradients is not None else []
    if not y_list or not x_list:
        return unflatten(xs, [None] * len(x_list))
    for what, tensors in (("ys", y_list), ("xs", x_list)):
        _check_differentiable(what, tensors)
    graphs = _nested([*y_list, *x_list, *stops])
    seeds = _seeds(ys, y_list, grad_ys)
    for graph in around(current().graph):
        if isinstance(graph, BodyGraph):
            graph.before_gradients()
    choice = choice_of(overrides, graphs[-1], current())
    anew = isinstance(overrides, Mapping)
    with Within(_question(choice, anew)) as question:
        found = _flow(y_list, seeds, x_list, stops, graphs)
        with Within(_ambient(graphs[0])) as context, collector_paused():
            pairs = zip(found, x_list, strict=True)
            answer = unflatten(xs, [_answer(dx, x, unconnected, context) for dx, x in pairs])
    if anew and choice is not None and question.asked is not None:
        choice.check_reached(question.asked, question.opened or set())
    return answer


def _flow(
    ys: list[Tensor],
    seeds: list[Any],
    xs: list[Tensor],
    stops: list[Tensor],
    graphs: Sequence[Graph],
) -> list[Tensor | None]:
    """The gradients of ys, some of which may be in a body of control flow and some around it.

    graphs: those of the tensors, the innermost first. What flows to a body's captures flows on to
    what they stand for.
    """
    check_room()
    body = graphs[0]
    if len(graphs) == 1:
        return _flow_within(body, ys, seeds, xs, stops, [])
    assert isinstance(body, BodyGraph)
    within = [(y, dy) for y, dy in zip(ys, seeds, strict=True) if y.graph is body]
    beyond = [(y, dy) for y, dy in zip(ys, seeds, strict=True) if y.graph is not body]
    captured = {o: p for o, p in body.captures.items() if p.type.differentiable}
    asked = [x for x in xs if x.graph is body]
    found: dict[Tensor, Tensor | None] = {}
    if within:
        wanted = [*asked, *captured.values()]
        halts = [t for t in stops if t.graph is body]
        through = _entering(body, xs, stops)
        flowed = _flow_within(body, *_columns(within), wanted, halts, through)
        found = dict(zip(wanted, flowed, strict=True))
        beyond += [(o, found[p]) for o, p in captured.items() if found[p] is not None]
    rest = [x for x in xs if x.graph is not body]
    if beyond and rest:
        halts = [t for t in stops if t.graph is not body]
        graphs = _nested([*(y for y, _ in beyond), *rest, *halts])
        flowed = _flow(*_columns(beyond), rest, halts, graphs)
        found.update(zip(rest, flowed, strict=True))
    return [found.get(x) for x in xs]


def _entering(body: BodyGraph, xs: list[Tensor], stops: list[Tensor]) -> list[Tensor]:
    """The complex captures of a body that depend on xs, which lie around it."""
    taken = {o: p for o, p in body.captures.items() if p.type.complex}
    return [taken[o] for o in _depending(body.outer, list(taken), xs, stops)]


def _depending(
    graph: Graph, ts: list[Tensor], xs: list[Tensor], stops: list[Tensor]
) -> list[Tensor]:
    """Those of ts, tensors of the graph, that depend on xs, which lie in it or around it."""
    if not ts:
        return []
    sources = [x for x in xs if x.graph is graph]
    if isinstance(graph, BodyGraph):
        outer = _depending(graph.outer, list(graph.captures), xs, stops)
        sources += [graph.captures[o] for o in outer]
    with Within(_ambient(graph)) as context:
        off = _off(context, ts)
        choice = NOTHING if context.choice is None else context.choice
        sweep = Sweep(context, off, frozenset(stops), choice)
        keys = [key_of(t, vantage(t, context), off, context.tree) for t in ts]
        if sources:
            sweep.reach(keys, sources, [t for t in sources if t.type.complex])
        return [t for t, key in zip(ts, keys, strict=True) if key in sweep.live]


def _columns(pairs: list[tuple[Tensor, Any]]) -> tuple[list[Tensor], list[Any]]:
    return [y for y, _ in pairs], [dy for _, dy in pairs]


def _flow_within(
    graph: Graph,
    ys: list[Tensor],
    seeds: list[Any],
    xs: list[Tensor],
    stops: list[Tensor],
    through: list[Tensor],
) -> list[Tensor | None]:
    """The gradients of ys with respect to xs, all of one graph; maybe structural zeros.

    through: complex tensors that depend on what is asked about in graphs around.
    """
    with Within(_ambient(graph)) as context, collector_paused():
        off = _off(context, [*ys, *xs, *stops])
        keys = [_visible(y, "of", context, off) for y in ys]
        for t in xs:
            _visible(t, "with respect to", context, off)
        for t in stops:
            _visible(t, "that stops at", context, off)
        choice = NOTHING if context.choice is None else context.choice
        sweep = Sweep(context, off, frozenset(stops), choice)
        starts = [_seed(y, dy, context) for y, dy in zip(ys, seeds, strict=True)]
        return sweep.run(list(zip(keys, starts, strict=True)), xs, through)


def _question(choice: Choice | None, anew: bool) -> Context:
    """The record in which what is chosen counts, in the calls of gradients() there too.

    The sweeps in it, one for each graph, are one question, or part of the one that is running.

    anew: chosen by this very call, which checks that each choice had an effect.
    """
    context = current().copy()
    if context.called is None:
        context.called = {}
    context.choice = choice
    context.overrides = None if choice is None else choice.overrides
    context.tree = MARKED if choice is None else choice.tree
    if anew:
        context.asked, context.opened = set(), set()
    return context


def _ambient(graph: Graph) -> Context:
    """The record of this call: same graph, region and running rules; no stamps, no name scope.

    Inside a body of the graph (a branch, a trace) nodes go on being built there.
    """
    outer = current()
    context = outer.copy() if graph in around(outer.graph) else entering(graph)
    context.without_maps()
    context.scope = "gradients/"
    return context


def _tensors(tree: Any, what: str) -> list[Tensor]:
    leaves = flatten(tree)
    for leaf, path in zip(leaves, paths(tree, what), strict=True):
        if not isinstance(leaf, Tensor):
            raise GradientError(
                f"{path} is {leaf!r}, not a tensor. gradients() takes tensors, or lists, tuples "
                "and dicts of them."
            )
    return leaves


def _nested(tensors: Sequence[Tensor]) -> list[Graph]:
    """The graphs of tensors, innermost first; GraphError unless each lies in the next."""
    graphs = {t.graph: t for t in tensors}
    order = sorted(graphs, key=lambda g: -len(around(g)))  # type: ignore[arg-type]
    for inner, outer in pairwise(order):
        if outer not in around(inner):  # type: ignore[arg-type]
            first, t = graphs[inner], graphs[outer]
            raise GraphError(
                f"{first.name} ({first.where}) is in {first.graph!r}, {t.name} ({t.where}) in "
                f"{t.graph!r}: gradients() works within one graph"
            )
    return order  # type: ignore[return-value]


def _check_differentiable(what: str, tensors: Sequence[Tensor]) -> None:
    for t in tensors:
        if not t.type.differentiable:
            remedy = (
                "There are no gradients of complex numbers: use gg.real(t), gg.imag(t) or abs(t)"
                if t.type.complex
                else "Cast it first: t.astype('float64')"
            )
            raise DTypeError(
                f"{what} of gradients() are floating tensors, got {t.name}: {t.type!r} (built at "
                f"{t.where}). {remedy}."
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
        shape, dtype = (dy.shape, dy.dtype) if isinstance(dy, Tensor) else array_type(dy, y)
        if not compatible(shape, y.shape) or dtype != y.dtype:
            raise (DTypeError if np.dtype(dtype).kind == "c" else GradientError)(
                f"a gradient of {y.name} ({y.type!r}, built at {y.where}) has its shape and "
                f"dtype, got {dtype}{list(shape)}"
            )
    return seeds


def _listed(grad_ys: Any) -> bool:
    """Whether the gradient of a single y was put in a list, as legacy programs do."""
    return isinstance(grad_ys, list | tuple) and any(isinstance(dy, Tensor) for dy in grad_ys)


def array_type(dy: Any, y: Tensor) -> tuple[Any, Any]:
    """Numbers and lists take the dtype of y; arrays have their own."""
    check_unmasked(dy)
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


def _visible(t: Tensor, what: str, context: Context, off: Off) -> Key:
    """The key of a tensor as the caller sees it; GradientError where a region hides it."""
    found = level(t, vantage(t, context), off, context.tree)
    if isinstance(found, Hidden):
        raise found.error(f"a gradient is wanted {what}")
    return t if found is None else (t, found)


def _off(context: Context, tensors: Sequence[Tensor]) -> Off:
    """The marks that do not count: those of running rules, and what the call switched off.

    Regions that hide a tensor of the question, and whose rule is declared exact, are opened.
    """
    choice: Choice | None = context.choice
    running = frozenset(context.running)
    off: Off = running if choice is None else choice.off | running
    for t in tensors:
        while isinstance(found := level(t, vantage(t, context), off, context.tree), Hidden):
            region = found.region
            rule = region.rule if choice is None else choice.get(region, region.rule)
            if not as_rule(rule).exact:
                break
            off |= frozenset([region])
    return off


def _answer(dx: Tensor | None, x: Tensor, unconnected: str, context: Context) -> Tensor | None:
    if dx is None and unconnected == "zero":
        dx = ZeroTensor(x)
    if isinstance(dx, ZeroTensor):  # one that is handed out becomes a node now
        outer, context.origin = context.origin, x.node
        dx.node  # noqa: B018
        context.origin = outer
    return dx
