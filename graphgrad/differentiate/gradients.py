"""`gradients`: the question, checked, and the answer in the structure it was asked in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, overload

import numpy as np

from ..base.collector import collector_paused
from ..base.depth import check_room
from ..base.errors import DTypeError, GradientError, GraphError
from ..base.flags import truth
from ..base.kinds import kind_of
from ..base.tree import flatten, paths, unflatten
from ..ir.build import build
from ..ir.context import Context, Within
from ..ir.graph import Graph, current, entering, restored
from ..ir.node import Tensor
from ..ir.region_tree import sites_at
from ..ir.residual import vantage
from ..ir.tensor_sites import crossed
from ..ir.typed import MaybeNone, Total, X
from ..ir.types import check_unmasked, compatible
from ..ops.base import Full, OnesLike, ZeroTensor, constant
from ..ops.control import BodyGraph, around
from ..regions.rules import as_rule
from .choosing import choice_of
from .healed import check_not_healed_away
from .levels import Hidden, Key, Off, Step, level
from .question import Question, asking
from .sweep import Sweep

__all__ = [
    "gradients",
]


@overload
def gradients(
    ys: Total,
    xs: X,
    grad_ys: Any = None,
    stop_gradients: Any = None,
    *,
    unconnected: Literal["zero"],
    overrides: Mapping[Any, Any] | str | None = None,
    holomorphic: bool = False,
) -> X: ...
@overload
def gradients(
    ys: Total,
    xs: X,
    grad_ys: Any = None,
    stop_gradients: Any = None,
    unconnected: str = "none",
    overrides: Mapping[Any, Any] | str | None = None,
    holomorphic: bool = False,
) -> X | MaybeNone: ...
@restored
def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    stop_gradients: Any = None,
    unconnected: str = "none",
    overrides: Mapping[Any, Any] | str | None = None,
    holomorphic: bool = False,
) -> Any:
    """Sum over ys of the gradients with respect to xs, as new nodes of the graph.

    This is the total derivative, with the rules of marked regions and nodes in place of their
    gradients. New nodes are built in the graph of ys, in the region that is open there.

    For a complex x = a + ib, the gradient of a real y is dy/da - i dy/db; if y is a holomorphic
    function of x, the gradient is dy times its derivative. Gradients are not conjugated: the
    direction of steepest descent is -conj(gradient). JAX uses the same convention; PyTorch and
    TensorFlow return the conjugate.

    Parameters:
        ys, xs: floating or complex tensors, or any nesting of list, tuple and dict of them.
        grad_ys: gradients of ys, in the structure of ys, of their shapes and dtypes; None (for all
            or for one): ones, for a complex y only with holomorphic=True.
        stop_gradients: tensors that are treated as constants, in any nesting.
        unconnected: the gradient with respect to an x that ys do not depend on: "none" (None) or
            "zero" (zeros).
        overrides: rules for this call only: {op type, node, region or selection: rule, or None for
            the built-in gradient}; "none" switches all marks off. A selection of several nodes as
            one region acts as a region in this call, whether it is marked or not.
        holomorphic: promises that complex ys are holomorphic functions of complex xs; this is not
            checked.

    Returns: the structure of xs, with a tensor of x's shape and dtype, or None, for each x.

    Raises: DTypeError for integers and bools, for a complex y without its gradient, and for
    holomorphic=True with tensors that are not complex; GradientError for tensors hidden inside a
    region, grad_ys that do not fit, and rules that break their contract; RegionError if regions
    depend on each other in a cycle; ValueError for an unknown value of unconnected.

    Source: reverse accumulation [Griewank and Walther 2008, "Evaluating Derivatives", chapter 3].

    >>> x = gg.constant([1.0, 2.0])
    >>> gg.evaluate(gg.gradients(gg.sum(x**3), x))
    array([ 3., 12.])
    >>> gg.evaluate(gg.gradients(gg.sum(x**3), x, overrides={"ReduceSum": lambda site, dy: 0.0}))
    array([0., 0.])
    """
    truth("holomorphic", holomorphic)
    y_list, x_list = _tensors(ys, "ys"), _tensors(xs, "xs")
    if unconnected not in ("none", "zero"):
        raise ValueError(f"unconnected is 'none' or 'zero', got {unconnected!r}")
    stops = _tensors(stop_gradients, "stop_gradients") if stop_gradients is not None else []
    if not y_list or not x_list:
        return unflatten(xs, [None] * len(x_list))
    for what, tensors in (("ys", y_list), ("xs", x_list)):
        _check_differentiable(what, tensors)
    if holomorphic:
        check_holomorphic("gradients", [*y_list, *x_list])
    graphs = nested([*y_list, *x_list, *stops])
    _check_open(graphs, [*y_list, *x_list, *stops])
    stops += [dy for dy in current().answering.given if dy.graph in graphs]
    seeds = _seeds(ys, y_list, grad_ys)
    if not holomorphic:
        check_seeded(y_list, seeds)
    outer = current()
    crossed = set(around(graphs[0])).difference(around(graphs[-1]))
    for graph in around(outer.graph):
        if isinstance(graph, BodyGraph):
            graph.before_gradients(leaving=graph in crossed)
    choice = choice_of(overrides, graphs[-1], outer)
    question = Question.under(choice, y_list, x_list, seeds, stops)
    reached: dict[str, set[Step]] = {}
    if isinstance(overrides, Mapping) or any(graph.healed for graph in graphs):
        reached = {"asked": set(), "opened": set()}  # what is chosen has to have an effect
    with asking(question, **reached):
        pairs = zip(_flow(question, graphs), x_list, strict=True)
        answer = unflatten(xs, [_answer(dx, x, unconnected, graphs[0]) for dx, x in pairs])
    if reached:
        if isinstance(overrides, Mapping) and choice is not None:
            choice.check_reached(**reached)
        check_not_healed_away(choice, reached["asked"])
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
    captured = {p: outer for p, outer in body.captures.items() if p.type.differentiable}
    grads: dict[Tensor, Tensor | None] = {}
    if inner.ys:
        inner = inner._replace(xs=[*inner.xs, *captured])
        grads = dict(zip(inner.xs, _flow_within(body, inner), strict=True))
        flows = [(t, grads[p]) for p, t in captured.items() if grads[p] is not None]
        outer = outer._replace(
            ys=[*outer.ys, *[t for t, _ in flows]],
            seeds=[*outer.seeds, *[dx for _, dx in flows]],
        )
    if outer.ys and outer.xs:
        graphs = nested([*outer.ys, *outer.xs, *outer.stops])
        grads.update(zip(outer.xs, _flow(outer, graphs), strict=True))
    return [grads.get(x) for x in question.xs]


def _parted(question: Question, body: Graph) -> tuple[Question, Question]:
    """What a question asks in a body, and what it asks in the graphs around."""
    parts = []
    for inside in (True, False):
        pairs = zip(question.ys, question.seeds, strict=True)
        within = [(y, dy) for y, dy in pairs if (y.graph is body) is inside]
        xs = [x for x in question.xs if (x.graph is body) is inside]
        stops = [t for t in question.stops if (t.graph is body) is inside]
        ys, seeds = [y for y, _ in within], [dy for _, dy in within]
        parts.append(question._replace(ys=ys, xs=xs, seeds=seeds, stops=stops))
    return parts[0], parts[1]


@collector_paused
def _flow_within(graph: Graph, question: Question) -> list[Tensor | None]:
    """The answer, where all of ys and xs are of one graph; maybe structural zeros."""
    with Within(_ambient(graph)) as context:
        ys, xs, stops = question.ys, question.xs, question.stops
        off = _off(question, [*ys, *xs, *stops], context)
        question = question.without(off)
        keys = [_visible(y, "of", context, off) for y in ys]
        for t in xs:
            _visible(t, "with respect to", context, off)
        for t in stops:
            _visible(t, "that stops at", context, off)
        starts = [_seed(y, dy, context) for y, dy in zip(ys, question.seeds, strict=True)]
        if not xs:
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


def _check_open(graphs: Sequence[Graph], tensors: Sequence[Tensor]) -> None:
    """GraphError where tensors of a body are asked of together with some around it, from outside.

    graphs: those of the tensors, innermost first.
    """
    if len(graphs) > 1 and graphs[0] not in around(current().graph):
        t = next(t for t in tensors if t.graph is graphs[0])
        raise GraphError(
            f"{t.name} ({t.where}) is in {t.graph!r} and has a value only while that runs: "
            "gradients() works within one graph.\n"
            "Call gradients() inside the body, or return the tensor from it."
        )


def _check_differentiable(what: str, tensors: Sequence[Tensor]) -> None:
    for t in tensors:
        if not t.type.differentiable:
            raise DTypeError(
                f"{what} of gradients() are floating or complex tensors, got {t.name}: {t.type!r} "
                f"(built at {t.where}). Cast it first: t.astype('float64')."
            )


def check_holomorphic(who: str, tensors: Sequence[Tensor]) -> None:
    """DTypeError where what is said to be holomorphic has to do with real numbers."""
    for t in tensors:
        if not t.type.complex:
            raise DTypeError(
                f"{who}(holomorphic=True) is for complex ys and xs, got {t.name}: {t.type!r} "
                f"(built at {t.where}). Cast it to a complex dtype, or leave holomorphic out."
            )


def check_seeded(ys: Sequence[Tensor], seeds: Sequence[Any]) -> None:
    """DTypeError for a complex y that has no gradient to start from."""
    for y, dy in zip(ys, seeds, strict=True):
        if dy is None and y.type.complex:
            raise DTypeError(
                f"gradients() of a complex y needs grad_ys=, got {y.name}: {y.type!r} (built at "
                f"{y.where}) without it. Pass grad_ys=, or holomorphic=True if ys are holomorphic "
                "functions of complex xs; or differentiate gg.real(y), gg.imag(y) or abs(y)."
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
            raise (DTypeError if kind_of(np.dtype(dtype)) == "c" else GradientError)(
                f"the gradient of {y.name} ({y.type!r}, built at {y.where}) must have its shape "
                f"and dtype, got {dtype}{list(shape)}"
            )
    return seeds


def _listed(grad_ys: Any) -> bool:
    """Whether the gradient of a single y was put in a list, as legacy programs do."""
    return isinstance(grad_ys, list | tuple) and any(isinstance(dy, Tensor) for dy in grad_ys)


def array_type(dy: Any, y: Tensor) -> tuple[Any, Any]:
    """Numbers and lists take the dtype of y; arrays have their own."""
    check_unmasked(dy)
    array = np.asarray(dy)
    kinds = "bifc" if y.type.complex else "bif"
    weak = not isinstance(dy, np.ndarray | np.generic) and kind_of(array.dtype) in kinds
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
            return build(Full(y.shape, 1, y.dtype), ()).outputs[0]
        return build(OnesLike(), (y,)).outputs[0]
    finally:
        context.origin = outer


def _visible(t: Tensor, what: str, context: Context, off: Off) -> Key:
    """The key of a tensor as the caller sees it; GradientError where a region hides it."""
    owner = level(t, vantage(t, context), off, context.question.tree)
    if isinstance(owner, Hidden):
        raise owner.error(f"gradients() needs the gradient {what}")
    return t if owner is None else (t, owner)


def _off(question: Question, tensors: Sequence[Tensor], context: Context) -> Off:
    """The marks that do not count: those of running rules, and what the call switched off.

    Regions that hide a tensor of the question, and whose rule is declared exact, are opened.
    """
    tree, off = question.tree, question.off | frozenset(context.answering.running)
    for t in tensors:
        while isinstance(hidden := level(t, vantage(t, context), off, tree), Hidden):
            region = hidden.region
            if not as_rule(question.rule_of(region, region.rule)).exact:
                break
            off |= frozenset([region])
    for x in question.xs:
        at, sites = vantage(x, context), sites_at(x)
        if at in sites:  # the rule of a site asks: x is what that reads
            off |= frozenset([s for s in crossed(x, at, sites, tree) if s.on_tensors])
    return off


def _answer(dx: Tensor | None, x: Tensor, unconnected: str, graph: Graph) -> Tensor | None:
    if dx is None and unconnected == "zero":
        dx = ZeroTensor(x)
    if isinstance(dx, ZeroTensor):  # one that is handed out becomes a node now
        with Within(_ambient(graph)) as context:
            context.origin = x.node
            dx.node  # noqa: B018
    return dx
