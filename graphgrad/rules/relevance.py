"""Relevance: rules that hand a score back to the inputs, share by share.

In layer-wise relevance propagation what flows back is no derivative but relevance itself: a rule
gets the relevances of the outputs and shares them among the inputs, so that nothing is made or
lost except what a bias or a stabiliser keeps. `relevance` starts it with the score itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..differentiate.gradients import gradients
from ..differentiate.site import Site
from ..ir.errors import GradientError
from ..ir.node import Node, Tensor, enclosing
from ..ops.arithmetic import absolute, copysign, maximum, minimum
from ..ops.base import NO_GRAD, TensorLike, as_tensor, is_zero
from ..ops.logic import where
from ..ops.shaping import broadcast_like
from ..ops.sources import identity
from ..regions.rules import Rule
from .library import entry, rule
from .sites import BILINEAR, alike, layer, number, only

FAMILY = "relevance"
ACTIVATIONS = (
    "Relu",
    "LeakyRelu",
    "Elu",
    "Softplus",
    "Silu",
    "Tanh",
    "Sigmoid",
    "Erf",
)
SHARING = ("Add", "Subtract", "ReduceSum", "ReduceMean", "AvgPool")


def _steady(z: Tensor, epsilon: float) -> Tensor:
    """z, kept away from zero."""
    return z + copysign(number(epsilon, z), z)


def _shared(z: Tensor, xs: Sequence[Tensor], relevance: Tensor, epsilon: float) -> list[Tensor]:
    """What each x has of the relevance of z, which is linear in the xs."""
    slopes = gradients(z, list(xs), relevance / _steady(z, epsilon), unconnected="zero")
    return [x * slope for x, slope in zip(xs, slopes, strict=True)]


@entry(FAMILY, "attribution")
def lrp_epsilon(epsilon: float = 1e-6) -> Rule:
    """Relevance is shared in proportion to each input's part in the sum; epsilon keeps some.

    R_j = sum_k x_j w_jk R_k / (z_k + epsilon * sign(z_k)), for a layer (its first input is x) and
    for any other linear op (all its inputs share)
    [Bach et al. 2015, "On pixel-wise explanations for non-linear classifier decisions by
    layer-wise relevance propagation"].
    """

    def lrp_epsilon(site: Site, dy: Tensor) -> Any:
        (z,) = site.outputs
        of_layer = any(n.type in BILINEAR for n in site.nodes)
        speaks_for = [layer(site).x] if of_layer else list(site.inputs)
        slopes = site.default(dy / _steady(z, epsilon))
        return [
            slope
            if slope is NO_GRAD or is_zero(slope)
            else x * slope
            if any(x is t for t in speaks_for)
            else NO_GRAD
            for x, slope in zip(site.inputs, slopes, strict=True)
        ]

    return rule(lrp_epsilon, epsilon=epsilon)


@entry(FAMILY, "attribution")
def lrp_gamma(gamma: float = 0.25, epsilon: float = 1e-9) -> Rule:
    """Positive weights count more, which favours what speaks for the score.

    R_j = sum_k x_j v_jk R_k / z'_k, v = w + gamma * max(w, 0), z' the layer's output with v
    [Montavon et al. 2019, "Layer-wise relevance propagation: an overview"].
    """

    def raised(w: Tensor) -> Tensor:
        return w + gamma * maximum(w, 0.0)

    def lrp_gamma(site: Site, dy: Tensor) -> Any:
        part = layer(site)
        x = identity(part.x)
        bias = None if part.bias is None else raised(part.bias)
        (dx,) = _shared(part.applied(x, raised(part.w), bias), [x], dy, epsilon)
        return only(site, part.x, dx)

    return rule(lrp_gamma, gamma=gamma)


@entry(FAMILY, "attribution")
def lrp_zbox(low: TensorLike = 0.0, high: TensorLike = 1.0, epsilon: float = 1e-9) -> Rule:
    """For a first layer whose inputs lie in a box, as pixels do.

    R_j = sum_k p_jk R_k / (sum_j p_jk), p_jk = x_j w_jk - low * max(w_jk, 0) - high * min(w_jk, 0)
    [Montavon et al. 2017, "Explaining nonlinear classification decisions with deep Taylor
    decomposition"; 2019, "Layer-wise relevance propagation: an overview"].
    """

    def lrp_zbox(site: Site, dy: Tensor) -> Any:
        part = layer(site)
        x = identity(part.x)
        lows, highs = [identity(broadcast_like(number(b, x), x)) for b in (low, high)]
        z = (
            part.applied(x, part.w, None)
            - part.applied(lows, maximum(part.w, 0.0), None)
            - part.applied(highs, minimum(part.w, 0.0), None)
        )
        of_x, of_lows, of_highs = _shared(z, [x, lows, highs], dy, epsilon)
        return only(site, part.x, of_x + of_lows + of_highs)

    return rule(lrp_zbox, low=low, high=high)


@entry(FAMILY, "attribution")
def lrp_pass() -> Rule:
    """Relevance passes an activation unchanged.

    R_in = R_out
    [Bach et al. 2015, "On pixel-wise explanations for non-linear classifier decisions by
    layer-wise relevance propagation"].
    """

    def lrp_pass(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        return only(site, x, dy)

    return rule(lrp_pass)


@entry(FAMILY, "attribution")
def relevance(score: Tensor, x: Tensor, rules: Mapping[Any, Any] | None = None) -> Tensor:
    """How much of a score comes from each element of x, by layer-wise relevance propagation.

    R(x), with R(score) = score; rules: {op type, node or region: rule} over those for the usual
    ops: epsilon for layers and sums, unchanged through activations; marked regions keep theirs
    [Bach et al. 2015, "On pixel-wise explanations for non-linear classifier decisions by
    layer-wise relevance propagation"].
    """
    usual: dict[Any, Any] = dict.fromkeys((*BILINEAR, *SHARING), lrp_epsilon())
    usual |= dict.fromkeys(ACTIVATIONS, lrp_pass())
    assert score.graph is not None
    opened = [key for key, rule in (rules or {}).items() if rule is None]
    built = {
        n.type
        for n in score.graph.nodes
        if n.origin is None and all(region in opened for region in enclosing(n.region))
    }
    chosen = {t: rule for t, rule in usual.items() if t in built} | dict(rules or {})
    found: Tensor = gradients(score, x, score, overrides=chosen or None)
    return found


# --- differences from a reference --------------------------------------------------------------


@entry(FAMILY, "attribution")
def rescale(reference_x: TensorLike, reference_y: TensorLike, near: float = 1e-7) -> Rule:
    """For an activation: the slope from its reference instead of the derivative.

    dx = dy * (y - reference_y) / (x - reference_x); the derivative where these are near
    [Shrikumar, Greenside, Kundaje 2017, "Learning important features through propagating
    activation differences"].
    """

    def rescale(site: Site, dy: Tensor) -> Any:
        x, y = alike(site)
        across = x - number(reference_x, x)
        far = absolute(across) > near
        slope = (y - number(reference_y, y)) / where(far, across, 1.0)
        (own, *_) = site.default(dy)
        return only(site, x, where(far, dy * slope, own))

    return rule(rescale)


@entry(FAMILY, "attribution")
def deeplift(f: Callable[[Tensor], Tensor], x: Tensor, reference: TensorLike) -> Tensor:
    """How much each element of x contributes to f(x) - f(reference), by the rescale rule.

    (x - reference) * m, m the gradient of f with `rescale` on every activation: for networks of
    linear layers and activations of one input the contributions add up to the difference
    [Shrikumar, Greenside, Kundaje 2017, "Learning important features through propagating
    activation differences"].
    """
    at = identity(x)
    base = broadcast_like(as_tensor(reference, x.dtype), x)
    before, _ = _activations(f, base)
    now, y = _activations(f, at)
    if [n.type for n in before] != [n.type for n in now]:
        raise GradientError(
            f"deeplift() calls {getattr(f, '__name__', f)} twice, and it built other activations "
            f"the second time: {[n.type for n in before]}, then {[n.type for n in now]}"
        )
    rules: dict[Any, Any] = {
        n: rescale(r.inputs[0], r.outputs[0]) for r, n in zip(before, now, strict=True)
    }
    slope: Tensor = gradients(y, at, unconnected="zero", overrides=rules or None)
    return (x - base) * slope


def _activations(f: Callable[[Tensor], Tensor], x: Tensor) -> tuple[list[Node], Tensor]:
    """The nodes of one floating input, element by element, that f builds, and its result."""
    graph = x.graph
    assert graph is not None
    start = len(graph.nodes)
    y = f(x)
    found = [
        n for n in graph.nodes[start:] if n.op.elementwise and len(n.inputs) == 1 and _floating(n)
    ]
    return found, y


def _floating(node: Node) -> bool:
    return all(t.type.differentiable for t in (*node.inputs, *node.outputs))
