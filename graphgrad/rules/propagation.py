"""Relevance: rules that hand a score back to the inputs, share by share.

In layer-wise relevance propagation what flows back is no derivative but relevance itself: a rule
gets the relevances of the outputs and shares them among the inputs, so that nothing is made or
lost except what a bias or a stabiliser keeps. `relevance` starts it with the score itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..base.domains import FINITE, NON_NEGATIVE
from ..base.errors import GradientError
from ..base.flags import truth
from ..base.position import caller
from ..base.tree import flatten
from ..differentiate.choices import OTHERS
from ..differentiate.gradients import gradients
from ..differentiate.site import NodeSite, Site
from ..ir.node import Tensor
from ..ops.base import NO_GRAD, TensorLike, apply, cast
from ..ops.demands import in_order, within
from ..ops.elementwise.accumulate import AddN
from ..ops.elementwise.bounds import maximum, minimum
from ..ops.shape.reshaping import broadcast_like
from ..ops.sources import identity
from ..regions.contracts import Contract
from ..regions.rules import Rule
from .entries import entry, rule
from .layers import carrying_layer, in_shares, keep_bias
from .ledger import Ledger, asking, ledger
from .shares import bare, is_linear, product, slopes_of, stabilised, taylor, usual
from .shares import linear as in_proportion
from .sites import BILINEAR, SIGNAL, alike, number, only, total

FAMILY = "relevance"


@entry(FAMILY, "attribution")
def lrp_epsilon(epsilon: float = 1e-6) -> Rule:
    """Relevance is shared in proportion to each input's part in the sum; epsilon absorbs some.

    R_j = sum_k x_j w_jk R_k / (z_k + epsilon * sign(z_k)), for a layer (its first input is x, or
    the one that carries relevance) and for any other linear op (all its inputs share); of an op
    that is not linear, w is its derivative
    [Bach et al. 2015, "On pixel-wise explanations for non-linear classifier decisions by layer-wise
    relevance propagation"].

    Parameters: epsilon: what is added to the sum's magnitude, a finite number >= 0.

    Returns: a rule for `relevance`.

    Raises: GradientError at a region with a product that is not a layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[2.0], [4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.lrp_epsilon(1e-9)})
    >>> gg.evaluate(r).round(6)
    array([[6., 4.]])
    """
    NON_NEGATIVE("epsilon", epsilon)

    def lrp_epsilon(site: Site, dy: Tensor) -> Any:
        book = ledger()
        at = book.places(site)
        if isinstance(site, NodeSite) and bare(site.op).linear == "each":
            alone = site.type in BILINEAR and not book.asks
            return product(book, site, dy, [SIGNAL[site.type]] if alone else at, epsilon)
        if not any(n.type in BILINEAR for n in site.nodes):
            linear = not isinstance(site, NodeSite) or is_linear(bare(site.op), at)
            return (in_proportion if linear else taylor)(book, site, dy, at, epsilon)
        part = carrying_layer(site, book)
        dz = stabilised(book, site.outputs[0], dy, epsilon)
        keep_bias(book, part.bias, dz)
        slopes = slopes_of(site, dz)
        return [
            x * slope if x is part.x else NO_GRAD
            for x, slope in zip(site.inputs, slopes, strict=True)
        ]

    return rule(lrp_epsilon, epsilon=epsilon)


@entry(FAMILY, "attribution")
def lrp_gamma(gamma: float = 0.25, epsilon: float = 1e-9, bias: bool = True) -> Rule:
    """Positive weights count more, which favours positive contributions to the score.

    R_j = sum_k x_j v_jk R_k / z'_k, v = w + gamma * max(w, 0), z' the layer's output with v
    [Montavon et al. 2019, "Layer-wise relevance propagation: an overview"].

    Parameters:
        gamma: how much more, a finite number >= 0.
        epsilon: what is added to the sum's magnitude, a finite number >= 0.
        bias: whether a positive bias counts more, too, which it does not in captum.

    Returns: a rule for `relevance`, of layers.

    Raises: GradientError at a site that is not a layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[2.0], [-4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.lrp_gamma(1.0)})
    >>> gg.evaluate(r).round(6)
    array([[ 3., -1.]])
    """
    NON_NEGATIVE("gamma", gamma)
    NON_NEGATIVE("epsilon", epsilon)

    raises_bias = truth("bias", bias)

    def raised(w: Tensor) -> Tensor:
        return w + gamma * maximum(w, 0.0)

    def lrp_gamma(site: Site, dy: Tensor) -> Any:
        book = ledger()
        part = carrying_layer(site, book)
        x = identity(part.x)
        b = part.bias if part.bias is None or not raises_bias else raised(part.bias)
        z = part.applied(x, raised(part.w), b)
        dz = stabilised(book, z, dy, epsilon)
        keep_bias(book, b, dz)
        (dx,) = in_shares(z, [x], dz)
        return only(site, part.x, dx)

    return rule(lrp_gamma, gamma=gamma)


@entry(FAMILY, "attribution")
def lrp_zbox(low: TensorLike = 0.0, high: TensorLike = 1.0, epsilon: float = 1e-9) -> Rule:
    """For a first layer whose inputs lie in a box, as pixels do.

    R_j = sum_k p_jk R_k / (sum_j p_jk), p_jk = x_j w_jk - low * max(w_jk, 0) - high * min(w_jk, 0)
    [Montavon et al. 2017, "Explaining nonlinear classification decisions with deep Taylor
    decomposition"; 2019, "Layer-wise relevance propagation: an overview"].

    Parameters:
        low, high: the ends of the box, finite, low <= high; they broadcast to x.
        epsilon: what is added to the sum's magnitude, a finite number >= 0.

    Returns: a rule for `relevance`, of layers.

    Raises: ValueError for an empty box, which a run raises for tensors; GradientError at a site
    that is not a layer.

    >>> x, w = gg.constant([[0.5, 0.5]]), gg.constant([[2.0], [-2.0]])
    >>> r = gg.rules.relevance(x @ w + 1.0, x, {"MatMul": gg.rules.lrp_zbox(0.0, 1.0)})
    >>> gg.evaluate(r).round(6)
    array([[0., 0.]])
    """
    low, high = within(FINITE, "low", low), within(FINITE, "high", high)
    low, high = in_order("low", low, "high", high)
    NON_NEGATIVE("epsilon", epsilon)

    def lrp_zbox(site: Site, dy: Tensor) -> Any:
        book = ledger()
        part = carrying_layer(site, book)
        x = identity(part.x)
        lows, highs = [identity(broadcast_like(number(b, x), x)) for b in (low, high)]
        z = (
            part.applied(x, part.w, None)
            - part.applied(lows, maximum(part.w, 0.0), None)
            - part.applied(highs, minimum(part.w, 0.0), None)
        )
        dz = stabilised(book, z, dy, epsilon)
        of_x, of_lows, of_highs = in_shares(z, [x, lows, highs], dz)
        return only(site, part.x, of_x + of_lows + of_highs)

    return rule(lrp_zbox, low=low, high=high)


@entry(FAMILY, "attribution")
def lrp_pass() -> Rule:
    """Relevance passes an activation unchanged.

    R_in = R_out
    [Bach et al. 2015, "On pixel-wise explanations for non-linear classifier decisions by layer-wise
    relevance propagation"].

    Returns: a rule for `relevance`, of a site of one floating input and an output of its shape.

    Raises: GradientError at another site.

    >>> x = gg.constant([3.0, 1.0])
    >>> y = gg.square(x)
    >>> gg.evaluate(gg.rules.relevance(y, x, {"Square": gg.rules.lrp_pass()}))
    array([9., 1.])
    """

    def lrp_pass(site: Site, dy: Tensor) -> Any:
        x, _ = alike(site)
        return only(site, x, dy)

    return rule(lrp_pass)


@entry(FAMILY, "attribution")
def lrp_product(gated: bool = True, epsilon: float = 1e-6) -> Rule:
    """Factors that carry relevance get equal parts, and gates get none.

    R_x = R_y = R / 2 for z = x * y, for a product of matrices x * (the gradient of z at R / 2 z);
    R_x = R, R_y = 0 where y is a gate (sigmoid, 1 + tanh, clip), an attention weight (softmax) or
    one over a denominator; gated=False: equal parts whatever they are
    [Arras et al. 2017, "Explaining recurrent neural network predictions in sentiment analysis"; Ali
    et al. 2022, "XAI for transformers: better explanations through conservative propagation"; equal
    parts: Achtibat et al. 2024, "AttnLRP: attention-aware layer-wise relevance propagation for
    transformers"].

    Parameters:
        gated: whether gates get nothing.
        epsilon: what is added to a denominator's magnitude, a finite number >= 0.

    Returns: a rule for `relevance`, of nodes that are products.

    Raises: GradientError at a site that is not a product.

    >>> x, y = gg.constant(3.0), gg.constant(2.0)
    >>> [round(float(r), 6) for r in gg.evaluate(gg.rules.relevance(x * y, [x, y]))]
    [3.0, 3.0]
    """
    truth("gated", gated)
    NON_NEGATIVE("epsilon", epsilon)

    def lrp_product(site: Site, dy: Tensor) -> Any:
        if not isinstance(site, NodeSite) or bare(site.op).linear != "each":
            raise GradientError(
                f"this rule is for a node that is a product, such as Multiply or MatMul, not for "
                f"{site!r}"
            )
        book = ledger()
        return product(book, site, dy, book.places(site), epsilon, gated)

    return rule(lrp_product, gated=gated, epsilon=epsilon)


# --- the question -----------------------------------------------------------------------------


@entry(FAMILY, "attribution")
def relevance(
    score: Tensor,
    x: Any,
    rules: Mapping[Any, Any] | None = None,
    unknown: str = "error",
    epsilon: float = 1e-6,
) -> Any:
    """The part of a score that comes from each element of x, by layer-wise relevance propagation.

    R(x), with R(score) = score. Layers, sums and pooling share in proportion to their terms, with
    epsilon; what moves elements or picks them moves their relevance; activations pass it on;
    products as by `lrp_product`, denominators and so the norms' get none; softmax by its Taylor
    expansion
    [Bach et al. 2015, "On pixel-wise explanations for non-linear classifier decisions by layer-wise
    relevance propagation"; Ali et al. 2022, "XAI for transformers: better explanations through
    conservative propagation"; Achtibat et al. 2024, "AttnLRP: attention-aware layer-wise relevance
    propagation for transformers"].

    Parameters:
        score: a floating tensor.
        x: a floating tensor, or any nesting of list, tuple and dict of them.
        rules: {op type, node, region or selection: rule, or None for its derivative}, which go over
            all others; None switches a region's mark off. Marked regions and nodes keep theirs.
        unknown: what relevance does at an op without a rule: "error", or "gradient": it is
            multiplied by the derivative, and not conserved.
        epsilon: of the rules that share in proportion, a finite number >= 0.

    Returns: the structure of x, of tensors of their shapes and dtypes.

    Raises: GradientError that names all ops without a rule; ValueError for another unknown.

    >>> x = gg.constant([3.0, 1.0])
    >>> r = gg.rules.relevance(gg.nn.relu(gg.sum(x * np.array([2.0, -1.0]))), x)
    >>> gg.evaluate(r).round(3)
    array([ 6., -1.])
    """
    return _asked(score, x, rules, unknown, epsilon, Ledger(_tensors(x)))


class Conservation(NamedTuple):
    """Where a score has gone: its sum is that of all these.

    relevance   of x, in the structure of x
    biases      what constants keep, such as biases, means and the borders of padding; a scalar
    stabiliser  what the stabilisers of the rules keep; a scalar
    rest        what is left: zero, unless rules of one's own or derivatives make or lose some

    >>> x = gg.constant([3.0, 1.0])
    >>> found = gg.rules.conservation(gg.sum(x) + 2.0, x)
    >>> round(float(gg.evaluate(found.biases)), 3)
    2.0
    """

    relevance: Any
    biases: Tensor
    stabiliser: Tensor
    rest: Tensor


@entry(FAMILY, "attribution")
def conservation(
    score: Tensor,
    x: Any,
    rules: Mapping[Any, Any] | None = None,
    unknown: str = "error",
    epsilon: float = 1e-6,
) -> Conservation:
    """`relevance`, including the relevance that does not reach x: shares of biases and stabilisers.

    sum of score = sum of R(x) + biases + stabiliser + rest, where rest is zero if all the rules are
    those of the library
    [Bach et al. 2015, "On pixel-wise explanations for non-linear classifier decisions by layer-wise
    relevance propagation"].

    Parameters: score, x, rules, unknown, epsilon: as for `relevance`.

    Returns: a Conservation.

    Raises: what `relevance` raises; GradientError where something is kept in a branch of cond().

    >>> x = gg.constant([3.0, 1.0])
    >>> found = gg.rules.conservation(gg.sum(x) + 2.0, x)
    >>> round(float(gg.evaluate(gg.sum(found.relevance) + found.biases + found.stabiliser)), 6)
    6.0
    """
    book = Ledger(_tensors(x), counts=True)
    relevances = _asked(score, x, rules, unknown, epsilon, book)
    all_of = total(score)
    biases, stabiliser = [_sum(kept, all_of) for kept in (book.biases, book.stabiliser)]
    reached = _sum([total(r) for r in flatten(relevances)], all_of)
    return Conservation(relevances, biases, stabiliser, all_of - reached - biases - stabiliser)


def _sum(parts: Sequence[Tensor], like: Tensor) -> Tensor:
    return apply(AddN(), *[cast(t, like.dtype) for t in parts]) if parts else number(0, like)


def _tensors(x: Any) -> list[Tensor]:
    return [t for t in flatten(x) if isinstance(t, Tensor)]


def _asked(score: Tensor, x: Any, rules: Any, unknown: str, epsilon: float, book: Ledger) -> Any:
    NON_NEGATIVE("epsilon", epsilon)
    if unknown not in ("error", "gradient"):
        raise ValueError(f"unknown is 'error' or 'gradient', got {unknown!r}")
    chosen = {OTHERS: _usual(book, unknown == "gradient", epsilon), **(rules or {})}
    relevances = asking(
        book, lambda: gradients(score, x, score, unconnected="zero", overrides=chosen)
    )
    book.check_known("relevance()")
    return relevances


def _usual(book: Ledger, by_gradient: bool, epsilon: float) -> Rule:
    """The rule of every node that has no other."""

    def lrp(site: NodeSite, *dys: Tensor | None) -> Any:
        book.check_at_home(site)
        entries = usual(book, site, dys, epsilon)
        if entries is None and by_gradient:
            return site.default(*dys)
        return book.stuck(site) if entries is None else entries

    return Rule(lrp, contract=Contract("attribution"), linear=True, position=caller())
