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
from ..ir.residual import vantage
from ..ir.tree import flatten, paths, unflatten
from ..ir.types import check_unmasked, compatible
from ..ops.base import Full, OnesLike, ZeroTensor, constant
from ..ops.control import BodyGraph, around
from ..regions.rules import as_rule
from .choosing import choice_of
from .levels import Hidden, Key, Off, key_of, level
from .plan import SweepPlan
from .question import Question, asking
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
    graphs = nested([*y_list, *x_list, *stops])
    seeds = _seeds(ys, y_list, grad_ys)
    outer = current()
    for graph in around(outer.graph):
        if isinstance(graph, BodyGraph):
            graph.before_gradients()
    question = Question(outer.question, y_list, x_list, seeds, stops)
    choice = choice_of(overrides, graphs[-1], outer.question)
    question.choose(choice)
    anew = isinstance(overrides, Mapping)
    if anew:  # what is chosen by this very call has to have an effect
        question.asked, question.opened = set(), set()
    with asking(question):
        found = _flow(question, graphs)
        with Within(_ambient(graphs[0])) as context, collector_paused():
            pairs = zip(found, x_list, strict=True)
            answer = unflatten(xs, [_answer(dx, x, unconnected, context) for dx, x in pairs])
    if anew and choice is not None and question.asked is not None:
        choice.check_reached(question.asked, question.opened or set())
    return answer


def _flow(question: Question, graphs: Sequence[Graph]) -> list[Tensor | None]:
    """The answer, where some of ys and xs may be in a body of control flow and some around it.

    graphs: those of the tensors, the innermost first. What flows to a body's captures flows on to
    what they stand for.
    """
    check_room()
    body, *beyond = graphs
    if not beyond:
        return _flow_within(body, question)
    assert isinstance(body, BodyGraph)
    inner, outer = _parted(question, body)
    captured = {o: p for o, p in body.captures.items() if p.type.differentiable}
    found: dict[Tensor, Tensor | None] = {}
    if inner.ys:
        inner.xs = [*inner.xs, *captured.values()]
        inner.through = _entering(body, question.xs, question.stops)
        found = dict(zip(inner.xs, _flow_within(body, inner), strict=True))
        flows = {o: found[p] for o, p in captured.items() if found[p] is not None}
        outer.ys, outer.seeds = [*outer.ys, *flows], [*outer.seeds, *flows.values()]
    if outer.ys and outer.xs:
        graphs = nested([*outer.ys, *outer.xs, *outer.stops])
        found.update(zip(outer.xs, _flow(outer, graphs), strict=True))
    return [found.get(x) for x in question.xs]


def _parted(question: Question, body: Graph) -> tuple[Question, Question]:
    """What a question asks in a body, and what it asks in the graphs around."""
    parts = []
    for inside in (True, False):
        pairs = zip(question.ys, question.seeds, strict=True)
        within = [(y, dy) for y, dy in pairs if (y.graph is body) is inside]
        xs = [x for x in question.xs if (x.graph is body) is inside]
        stops = [t for t in question.stops if (t.graph is body) is inside]
        ys, seeds = [y for y, _ in within], [dy for _, dy in within]
        parts.append(Question(question, ys, xs, seeds, stops))
    return parts[0], parts[1]


def _entering(body: BodyGraph, xs: Sequence[Tensor], stops: Sequence[Tensor]) -> list[Tensor]:
    """The complex captures of a body that depend on xs, which lie around it."""
    taken = {o: p for o, p in body.captures.items() if p.type.complex}
    return [taken[o] for o in _depending(body.outer, list(taken), xs, stops)]


def _depending(
    graph: Graph, ts: list[Tensor], xs: Sequence[Tensor], stops: Sequence[Tensor]
) -> list[Tensor]:
    """Those of ts, tensors of the graph, that depend on xs, which lie in it or around it."""
    if not ts:
        return []
    sources = [x for x in xs if x.graph is graph]
    if isinstance(graph, BodyGraph):
        outer = _depending(graph.outer, list(graph.captures), xs, stops)
        sources += [graph.captures[o] for o in outer]
    with Within(_ambient(graph)) as context:
        complexes = [t for t in sources if t.type.complex]
        question = Question(context.question, ts, sources, stops=stops, through=complexes)
        question.off = _off(question, ts, context)
        views = [vantage(t, context) for t in ts]
        keys = [key_of(*pair, question.off, question.tree) for pair in zip(ts, views, strict=True)]
        live = SweepPlan(question, keys).live
        return [t for t, key in zip(ts, keys, strict=True) if key in live]


def _flow_within(graph: Graph, question: Question) -> list[Tensor | None]:
    """The answer, where all of ys and xs are of one graph; maybe structural zeros."""
    with Within(_ambient(graph)) as context, collector_paused():
        ys, xs, stops = question.ys, question.xs, question.stops
        question.off = off = _off(question, [*ys, *xs, *stops], context)
        keys = [_visible(y, "of", context, off) for y in ys]
        for t in xs:
            _visible(t, "with respect to", context, off)
        for t in stops:
            _visible(t, "that stops at", context, off)
        starts = [_seed(y, dy, context) for y, dy in zip(ys, question.seeds, strict=True)]
        if not xs and not question.through:
            return []
        return Sweep(question, keys).run(list(zip(keys, starts, strict=True)))


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


def nested(tensors: Sequence[Tensor]) -> list[Graph]:
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
    found = level(t, vantage(t, context), off, context.question.tree)
    if isinstance(found, Hidden):
        raise found.error(f"a gradient is wanted {what}")
    return t if found is None else (t, found)


def _off(question: Question, tensors: Sequence[Tensor], context: Context) -> Off:
    """The marks that do not count: those of running rules, and what the call switched off.

    Regions that hide a tensor of the question, and whose rule is declared exact, are opened.
    """
    choice, tree = question.choice, question.tree
    running = frozenset(question.running)
    off: Off = running if choice is None else choice.off | running
    for t in tensors:
        while isinstance(found := level(t, vantage(t, context), off, tree), Hidden):
            region = found.region
            if not as_rule(question.rule_of(region, region.rule)).exact:
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
