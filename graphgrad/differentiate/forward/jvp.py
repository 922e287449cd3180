"""`jvp`: forward mode, as the transpose of reverse mode.

Gradients are linear in the gradients they start from: g = J.T u. With u a placeholder of zeros,
differentiating g with respect to u gives J t [Townsend 2017, "A new trick for calculating Jacobian
vector products"]. That is right only where every rule on the way is linear in its dys. So each
rule that is called is judged: it is linear by its structure (linearity.py) or by its declaration,
or it has its own `jvp=`, or there is an error. A rule with its own jvp is not called at all: in its
place stands a marked region from dys to dxs whose own rule, its transpose, is that jvp.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.errors import DTypeError, GradientError
from ...base.kinds import kind_of
from ...base.tree import flatten, paths, unflatten
from ...ir.build import apply
from ...ir.context import Within
from ...ir.graph import Graph, current, entering, restored
from ...ir.node import Node, Region, Tensor, enclosing
from ...ir.typed import MaybeNone, Tree, X
from ...ir.types import compatible
from ...ops.base import Full, ZerosLike, as_tensor, is_zero
from ...ops.control import around
from ...ops.elementwise.accumulate import EnsureLike
from ...ops.sources import RuleInput, RuleOutput, UndefinedGradient
from ...regions.rules import Rule
from ..choosing import resolved, running_groups
from ..gradients import array_type, gradients, nested
from ..levels import Step
from ..linearity import NonLinear, check_linear
from ..question import Question, asking
from ..site import Site
from .judge import Judge, judging
from .jvp_rule import PIECE

__all__ = ["jvp"]


@restored
def jvp(
    ys: X,
    xs: Tree,
    tangents: Any = None,
    stop_gradients: Any = None,
    unconnected: str = "zero",
    overrides: Mapping[Any, Any] | str | None = None,
) -> X | MaybeNone:
    """Forward mode: the derivative of ys along tangents of xs, as new nodes of the graph.

    Marks apply as in gradients(). The tangent of a site comes from its rule's `jvp=`; without one,
    if the rule is linear in its dys (detected, or declared linear=True), from the transpose of the
    rule. stop_gradient and marks inside a rule are ignored by the transpose.

    Parameters:
        ys, xs: floating or complex tensors, or any nesting of list, tuple and dict of them.
        tangents: directions of xs, in the structure of xs, of their shapes and dtypes; None (for
            all or for one): ones.
        stop_gradients, overrides: as for gradients().
        unconnected: the tangent of a y that does not depend on xs: "zero" (zeros), or "none"
            (None).

    Returns: the structure of ys, with a tensor of y's shape and dtype, or None, for each y.

    Raises: GradientError that names a rule that has no jvp and is not linear, its site, and the
    node that is not linear, or tangents that do not fit; DTypeError for integers and
    bools; ValueError for an unknown unconnected.

    Source: [Townsend 2017, "A new trick for calculating Jacobian vector products"].

    >>> x = gg.constant([1.0, 2.0])
    >>> gg.evaluate(gg.jvp(x * x, x, np.array([1.0, 10.0])))
    array([ 2., 40.])
    """
    y_list, x_list = _tensors(ys, "ys"), _tensors(xs, "xs")
    if unconnected not in ("none", "zero"):
        raise ValueError(f"unconnected is 'none' or 'zero', got {unconnected!r}")
    given = [_as_typed(*pair) for pair in zip(x_list, _tangents(x_list, tangents), strict=True)]
    us = [_zeros(y) for y in y_list]
    judge = Judge()
    with judging(judge):
        gs = gradients(y_list, x_list, us, stop_gradients, overrides=overrides)
    real = [(g, t) for g, t in zip(gs, given, strict=True) if g is not None and not is_zero(g)]
    dys = _transposed([g for g, _ in real], us, [t for _, t in real], judge, overrides)
    if unconnected == "zero":
        return unflatten(ys, [u if dy is None else dy for dy, u in zip(dys, us, strict=True)])
    if any(g is not None and is_zero(g) for g in gs):
        dys = [_zero_or_none(*pair, x_list) for pair in zip(dys, y_list, us, strict=True)]
    return unflatten(ys, dys)


def _tensors(tree: Any, what: str) -> list[Tensor]:
    leaves = flatten(tree)
    for leaf, path in zip(leaves, paths(tree, what), strict=True):
        if not isinstance(leaf, Tensor):
            raise GradientError(f"{path} of jvp() is {leaf!r}, not a tensor")
    return leaves


def _tangents(xs: Sequence[Tensor], tangents: Any) -> list[Any]:
    """One tangent for each x, of its shape and dtype; None stands for ones."""
    directions = [None] * len(xs) if tangents is None else flatten(tangents)
    if len(directions) != len(xs):
        raise GradientError(f"jvp() got {len(directions)} tangents for {len(xs)} xs")
    for x, t in zip(xs, directions, strict=True):
        if t is None:
            continue
        weak = not isinstance(t, Tensor | np.ndarray | np.generic)
        shape, dtype = (t.shape, t.dtype) if not weak else array_type(t, x)
        if not compatible(tuple(shape), x.shape) or dtype != x.dtype:
            raise (DTypeError if kind_of(np.dtype(dtype)) == "c" else GradientError)(
                f"a tangent of {x.name} ({x.type!r}, built at {x.where}) must have its shape and "
                f"dtype, got {dtype}{list(shape)}"
            )
    return directions


def _as_typed(x: Tensor, t: Any) -> Any:
    """A tangent at x's own type: a length that is not known yet is checked at run time."""
    if t is None or x.type.static:
        return t
    with deriving(x):
        t = as_tensor(t, x.dtype)
        message = f"a tangent of {x.name} (built at {x.where})"
        return t if t.type is x.type and None not in x.shape else apply(EnsureLike(message), t, x)


def _zeros(y: Tensor) -> Tensor:
    """Zeros like y, as a node of its own."""
    with deriving(y):
        if y.type.static:
            return apply(Full(y.shape, 0, y.dtype))
        return apply(ZerosLike(), y)


def deriving(t: Tensor) -> Within:
    """Nodes built in this block are derived from t, and no op-type map stamps them."""
    assert t.graph is not None
    outer = current()
    context = outer.copy() if t.graph in around(outer.graph) else entering(t.graph)
    context.without_maps()
    context.scope, context.origin = "gradients/", t.node
    return Within(context)


def _zero_or_none(dy: Tensor | None, y: Tensor, u: Tensor, xs: Sequence[Tensor]) -> Tensor | None:
    """Where nothing flows: zeros if what leads from an x to y has a gradient of zero."""
    if dy is not None or all(g is None for g in gradients(y, list(xs), u)):
        return dy
    return u


# --- transposing ------------------------------------------------------------------------------


def _transposed(
    gs: Sequence[Tensor],
    us: Sequence[Tensor],
    tangents: Sequence[Any],
    judge: Judge,
    overrides: Mapping[Any, Any] | str | None,
) -> list[Tensor | None]:
    """J t from g = J.T u; None where nothing flows."""
    if not gs:
        return [None] * len(us)
    try:
        check_linear(gs, us, judge.known)
    except NonLinear as error:
        raise GradientError(
            "forward mode transposes reverse mode, whose gradients must be linear in the "
            f"gradients that they start from, but {error}"
        ) from None
    outer = current()
    if overrides is None and outer.question.choice is not None:
        overrides = outer.question.choice.overrides
    by_value = _by_value(gs, us, judge, outer.region)
    chosen = {**(overrides if isinstance(overrides, Mapping) else {}), **by_value}
    graph = nested([*gs, *us])[-1]
    with asking(outer.question, running=(*outer.answering.running, *judge.final)) as here:
        groups = running_groups(here.answering)
        here.question = Question.under(resolved(chosen, graph, inherited=True, running=groups))
        return gradients(list(gs), list(us), list(tangents))


def _closed(site: Site, dy: Tensor) -> Tensor:
    assert isinstance(site.op, RuleInput)  # type: ignore[attr-defined]
    return apply(RuleOutput(site.op.message), dy)  # type: ignore[attr-defined]


AGAIN_AN_ERROR = Rule(_closed, "order='error'", linear=True)
"""What a rule that says order="error" gives by transposition is not to be differentiated either."""


def _by_value(
    gs: Sequence[Tensor], us: Sequence[Tensor], judge: Judge, at: Region | None
) -> dict[Step, str | Rule | None]:
    """Overrides under which what the rules built is transposed as the map it is by value."""
    overrides: dict[Step, str | Rule | None] = {}
    for node in _built(gs, us):
        for region in enclosing(node.region):
            if region.kind != PIECE and not region.contains(at):
                overrides[region] = None
        if isinstance(node.op, RuleInput):
            overrides[node] = AGAIN_AN_ERROR
        elif node.op.derivative.withholds or isinstance(node.op, UndefinedGradient):
            overrides[node] = "Identity"
        elif node.stamp is not None:
            overrides[node] = None
    return overrides


def _built(gs: Sequence[Tensor], us: Sequence[Tensor]) -> list[Node]:
    """The nodes between us and gs, those in bodies of control flow included."""
    lowest: dict[Graph | None, int] = {}
    for u in us:
        lowest[u.graph] = min(u.node.index, lowest.get(u.graph, u.node.index))
    seen = {g.node for g in gs}
    stack = list(seen)
    while stack:
        node = stack.pop()
        before = [t.node for t in node.inputs]
        before += [t.node for program in node.op.bodies for t in program.outputs]
        for n in before:
            if n not in seen and n.index >= lowest.get(n.graph, 0):
                seen.add(n)
                stack.append(n)
    return list(seen)
