"""Differences from a reference: contributions that add up to what a function changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.domains import ANY, NON_NEGATIVE
from ..base.errors import GradientError
from ..base.position import caller
from ..differentiate.choices import OTHERS
from ..differentiate.gradients import gradients
from ..differentiate.site import NodeSite, Site
from ..ir.node import Node, Tensor
from ..ops.base import NO_GRAD, ZERO, TensorLike, apply, as_tensor, is_zero
from ..ops.demands import within
from ..ops.elementwise.bounds import maximum
from ..ops.elementwise.exponential import exp
from ..ops.elementwise.logic import where
from ..ops.elementwise.magnitudes import absolute
from ..ops.nn.operands import known_length
from ..ops.reduce.reductions import logsumexp
from ..ops.reduce.reductions import sum as reduce_sum
from ..ops.shape.reshaping import broadcast_like, sum_to
from ..ops.sources import identity, stop_gradient
from ..regions.contracts import Contract
from ..regions.rules import Rule
from .entries import entry, rule
from .ledger import Ledger, asking
from .shares import bare, is_linear
from .sites import alike, number, only

FAMILY = "relevance"
NEAR = 1e-7
LOOPS = ("Scan", "While")
POOLS = ("MaxPool", "ReduceMax")


@entry(FAMILY, "attribution")
def rescale(reference_x: TensorLike, reference_y: TensorLike, near: float = NEAR) -> Rule:
    """For an activation: the slope between x and its reference instead of the derivative.

    dx = dy * (y - reference_y) / (x - reference_x); the derivative where these are near
    [Shrikumar, Greenside, Kundaje 2017, "Learning important features through propagating activation
    differences"].

    Parameters:
        reference_x, reference_y: input and output for the reference; broadcast to x.
        near: how close to its reference x counts as there, a finite number >= 0.

    Returns: a rule for a site of one floating input and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([2.0, -2.0])
    >>> gg.evaluate(gg.gradients(gg.square(x), x, overrides={"Square": gg.rules.rescale(0.0, 0.0)}))
    array([ 2., -2.])
    """
    within(ANY, "reference_x", reference_x)
    within(ANY, "reference_y", reference_y)
    NON_NEGATIVE("near", near)

    def rescale(site: Site, dy: Tensor) -> Any:
        x, y = alike(site)
        rise, run = y - number(reference_y, y), x - number(reference_x, x)
        (own, *_) = site.default(dy)
        return only(site, x, _ratio(dy * rise, run, own, near))

    return rule(rescale)


def _ratio(rise: Tensor, run: Tensor, otherwise: Tensor, near: float) -> Tensor:
    """rise / run; what is said otherwise where run is near zero."""
    far = absolute(run) > near
    return where(far, rise / where(far, run, 1.0), otherwise)


@entry(FAMILY, "attribution")
def deeplift(
    f: Callable[[Tensor], Tensor], x: Tensor, reference: TensorLike, unknown: str = "error"
) -> Tensor:
    """The contribution of each element of x to f(x) - f(reference), by the rescale rule.

    (x - reference) * m, m the gradient of f with `rescale` on every activation; on two inputs that
    both change, the mean over the two orders in which they may do so (their Shapley values). The
    contributions add up to the difference
    [Shrikumar, Greenside, Kundaje 2017, "Learning important features through propagating activation
    differences"; two inputs: Lundberg and Lee 2017, "A unified approach to interpreting model
    predictions"].

    Marked regions and nodes keep their rules.

    Parameters:
        f: a function of a tensor that builds the same nodes each time it is called.
        x: a floating tensor.
        reference: broadcasts to x, and is cast to its dtype.
        unknown: what happens at an op that is neither linear, a softmax, a maximum nor element by
            element, and at a loop: "error", or "gradient": its derivative, and the sum is off.

    Returns: a tensor of the shape and dtype of x.

    Raises: ValueError for another unknown; GradientError that names all unknown ops, or where f
    builds other nodes the second time.

    >>> x = gg.constant([3.0, -1.0])
    >>> gg.evaluate(gg.rules.deeplift(lambda x: gg.nn.relu(gg.sum(x)), x, [0.0, 0.0]))
    array([ 3., -1.])
    """
    if unknown not in ("error", "gradient"):
        raise ValueError(f"unknown is 'error' or 'gradient', got {unknown!r}")
    within(ANY, "reference", reference)
    at = identity(x)
    base = broadcast_like(as_tensor(reference, x.dtype), x)
    before, _ = _built(f, base)
    now, y = _built(f, at)
    if [n.type for n in before] != [n.type for n in now]:
        raise GradientError(
            f"deeplift() calls {getattr(f, '__name__', f)} twice, and it built other nodes the "
            f"second time: {[n.type for n in before]}, then {[n.type for n in now]}"
        )
    book = Ledger([at])
    twins = dict(zip(now, before, strict=True))
    others = {OTHERS: _by_differences(book, twins, unknown == "gradient")}
    slope: Tensor = asking(book, lambda: gradients(y, at, unconnected="zero", overrides=others))
    book.check_known("deeplift()")
    return (x - base) * slope


@entry(FAMILY, "attribution")
def deep_shap(f: Callable[[Tensor], Tensor], x: Tensor, references: TensorLike) -> Tensor:
    """The contribution of each element of x to f(x) minus the mean of f at references.

    The mean over references r of (x - r) * m, m the gradient of f with `rescale` on every
    activation
    [Lundberg and Lee 2017, "A unified approach to interpreting model predictions"; Shrikumar,
    Greenside, Kundaje 2017].

    Parameters:
        f: a function of a tensor that builds the same nodes each time it is called.
        x: a floating tensor.
        references: (references, ...), each of which broadcasts to x; how many is known.

    Returns: a tensor of the shape and dtype of x.

    Raises: what `deeplift` raises.

    >>> x = gg.constant([3.0, -1.0])
    >>> gg.evaluate(gg.rules.deep_shap(lambda x: gg.nn.relu(gg.sum(x)), x, np.zeros((2, 2))))
    array([ 3., -1.])
    """
    within(ANY, "references", references)
    each = as_tensor(references, x.dtype)
    parts = [deeplift(f, x, each[i]) for i in range(known_length("deep_shap()", each, 0))]
    return sum(parts[1:], parts[0]) / float(len(parts))


def _built(f: Callable[[Tensor], Tensor], x: Tensor) -> tuple[list[Node], Tensor]:
    """The nodes with inputs that f builds, and its result."""
    graph = x.graph
    assert graph is not None
    start = len(graph.nodes)
    y = f(x)
    return [n for n in graph.nodes[start:] if n.inputs], y


def _by_differences(book: Ledger, twins: dict[Node, Node], by_gradient: bool) -> Rule:
    """The rule of every node that has no other; twins: node -> the one for the reference."""

    def deeplift(site: NodeSite, *dys: Tensor | None) -> Any:
        book.check_at_home(site)
        at, op = book.places(site), bare(site.op)
        if not at or all(dy is None or is_zero(dy) for dy in dys):
            return [ZERO] * len(site.inputs)
        picked = any(book.varies(x) for x in site.inputs if not x.type.differentiable)
        if not picked and (is_linear(op, at) or (op.bodies and op.type not in LOOPS)):
            return site.default(*dys)
        twin = twins.get(site.node)
        (dy,) = dys if len(dys) == 1 else (None,)
        if twin is not None and dy is not None and not picked:
            if op.linear == "each" and len(at) == 2:
                return _midway(site, twin, dy, at)
            if site.type == "Softmax":
                return _softmax(site, twin, dy)
            if site.type in POOLS:
                return _pooled(site, twin, dy)
            if op.elementwise and len(at) <= 2:
                return _either_order(site, twin, dy, at)
        return site.default(*dys) if by_gradient else book.stuck(site)

    return Rule(deeplift, contract=Contract("attribution"), linear=True, position=caller())


def _midway(site: NodeSite, twin: Node, dy: Tensor, at: Sequence[int]) -> list[Any]:
    """Of a product: its gradient halfway between the reference and here."""
    xs = list(site.inputs)
    for i in at:
        xs[i] = identity(0.5 * (xs[i] + twin.inputs[i]))
    z = apply(site.op, *xs)
    dxs = gradients(z, [xs[i] for i in at], dy, unconnected="zero", overrides={})
    return [dxs[at.index(i)] if i in at else NO_GRAD for i in range(len(xs))]


def _either_order(site: NodeSite, twin: Node, dy: Tensor, at: Sequence[int]) -> list[Any]:
    """Element by element: how y changes with each input, on the mean over the orders of change."""
    own = site.default(dy)
    (y,), (y0,) = site.outputs, twin.outputs
    dxs: list[Any] = [NO_GRAD] * len(site.inputs)
    for i in at:
        x, x0 = site.inputs[i], twin.inputs[i]
        rise = y - y0
        if len(at) == 2:
            ahead = apply(site.op, *[x if j == i else t for j, t in enumerate(twin.inputs)])
            behind = apply(site.op, *[x0 if j == i else t for j, t in enumerate(site.inputs)])
            rise = 0.5 * ((ahead - y0) + (y - behind))
        dxs[i] = _ratio(sum_to(dy * rise, like=x), x - x0, own[i], NEAR)
    return dxs


def _pooled(site: NodeSite, twin: Node, dy: Tensor) -> list[Any]:
    """Of a largest element: y rises to the greater of both at the place of x's, then falls to where
    it is now at the place of the reference's, as in DeepLIFT's authors' own program.
    """
    (x,), (x0,), (y,), (y0,) = site.inputs, twin.inputs, site.outputs, twin.outputs
    most = maximum(y, y0)
    (own,), (up,) = site.default(dy), site.default(dy * (most - y0))
    (down,) = gradients(y0, [x0], dy * (y - most), unconnected="zero", overrides={})
    return [_ratio(up + down, x - x0, own, NEAR)]


def _softmax(site: NodeSite, twin: Node, dy: Tensor) -> list[Any]:
    """As exp(x - t), t = log(sum(exp(x))), each exp and log by its slope from the reference."""
    (x,), (x0,), (y,), (y0,) = site.inputs, twin.inputs, site.outputs, twin.outputs
    axis = site.op.attrs["axis"]
    t, t0 = logsumexp(x, axis, keepdims=True), logsumexp(x0, axis, keepdims=True)
    dz = dy * _ratio(y - y0, (x - t) - (x0 - t0), y, NEAR)
    most = stop_gradient(maximum(t, t0))
    e, e0, s, s0 = [exp(u - most) for u in (x, x0, t, t0)]
    of_e = _ratio(e - e0, x - x0, e, NEAR) / _ratio(s - s0, t - t0, s, NEAR)
    return [dz - of_e * reduce_sum(dz, axis, True)]
