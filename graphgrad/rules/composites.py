"""Rules for the layers of a network by what they are: a convolution, dense, or the first."""

from __future__ import annotations

from typing import Any

from ..base.domains import FINITE, NON_NEGATIVE
from ..base.flags import truth
from ..differentiate.site import Site
from ..ir.node import Node, Tensor
from ..ops.create.creation import ones_like
from ..ops.elementwise.bounds import maximum
from ..ops.elementwise.powers import square
from ..ops.sources import identity
from ..regions.rules import Rule
from .by_sign import lrp_alpha_beta, lrp_flat, lrp_signed_gamma
from .entries import entry, rule
from .layers import carrying_layer, in_shares, keep_bias
from .ledger import ledger
from .propagation import FAMILY, lrp_epsilon, lrp_zbox
from .shares import stabilised
from .sites import BILINEAR, only


@entry(FAMILY, "attribution")
def lrp_wsquare(epsilon: float = 1e-9) -> Rule:
    """Relevance is shared by the squares of the weights, whatever the inputs are.

    R_j = sum_k w_jk**2 R_k / z_k, z_k the sum of the squares with that of the bias
    [Montavon et al. 2017, "Explaining nonlinear classification decisions with deep Taylor
    decomposition"].

    Parameters: epsilon: what is added to the sum, a finite number >= 0.

    Returns: a rule for `relevance`, of layers; it is for the first one.

    Raises: GradientError at a site that is no layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[1.0], [2.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.lrp_wsquare()})
    >>> gg.evaluate(r).round(6)
    array([[1., 4.]])
    """
    NON_NEGATIVE("epsilon", epsilon)

    def lrp_wsquare(site: Site, dy: Tensor) -> Any:
        book = ledger()
        part = carrying_layer(site, book)
        x = identity(ones_like(part.x))
        bias = None if part.bias is None else square(part.bias)
        z = part.applied(x, square(part.w), bias)
        dz = stabilised(book, z, dy, epsilon)
        keep_bias(book, bias, dz)
        (dx,) = in_shares(z, [x], dz)
        return only(site, part.x, dx)

    return rule(lrp_wsquare)


@entry(FAMILY, "attribution")
def lrp_zplus(epsilon: float = 1e-9, by_weight: bool = False) -> Rule:
    """What speaks for the score alone is shared: `lrp_alpha_beta` of 1 and 0.

    R_j = sum_k p_jk R_k / p_k, p_jk the positive part of x_j w_jk, p_k their sum with that part of
    the bias
    [Montavon et al. 2017, "Explaining nonlinear classification decisions with deep Taylor
    decomposition"].

    Parameters:
        epsilon: what is added to the sum, a finite number >= 0.
        by_weight: whether the weight's sign counts, not that of the product, and the bias is as
            it is, as in captum.

    Returns: a rule for `relevance`, of layers.

    Raises: GradientError at a site that is no layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[2.0], [-4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.lrp_zplus()})
    >>> gg.evaluate(r).round(6)
    array([[2., 0.]])
    """
    NON_NEGATIVE("epsilon", epsilon)
    if not truth("by_weight", by_weight):
        return rule(lrp_alpha_beta(1.0, 0.0, epsilon).fn, listed="lrp_zplus")

    def lrp_zplus(site: Site, dy: Tensor) -> Any:
        book = ledger()
        part = carrying_layer(site, book)
        x = identity(part.x)
        z = part.applied(x, maximum(part.w, 0.0), part.bias)
        dz = stabilised(book, z, dy, epsilon)
        keep_bias(book, part.bias, dz)
        (dx,) = in_shares(z, [x], dz)
        return only(site, part.x, dx)

    return rule(lrp_zplus)


def _is_first(site: Site) -> bool:
    """Whether no other layer is before what a layer reads."""
    pending = [t.node for t in site.inputs]
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node.type in BILINEAR:
            return False
        if node not in seen:
            seen.add(node)
            pending += [t.node for t in node.inputs]
    return True


def _by_layer(
    name: str, dense: Rule, conv: Rule, first: Rule | None = None, first_dense: bool = True
) -> Rule:
    def by_layer(site: Site, dy: Tensor) -> Any:
        is_dense = any(n.type == "MatMul" for n in site.nodes)
        if first is not None and (first_dense or not is_dense) and _is_first(site):
            return first.fn(site, dy)
        return (dense if is_dense else conv).fn(site, dy)

    return rule(by_layer, listed=name)


@entry(FAMILY, "attribution")
def epsilon_plus(epsilon: float = 1e-6) -> Rule:
    """`lrp_epsilon` in dense layers, `lrp_zplus` in convolutions.

    R_j by the rule of the layer
    [Lapuschkin et al. 2019, "Unmasking Clever Hans predictors and assessing what machines really
    learn"].

    Parameters: epsilon: what is added to the magnitude of sums, a finite number >= 0.

    Returns: a rule for `relevance`, of layers; ReLUs pass.

    Raises: GradientError at a site that is no layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[2.0], [-4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.epsilon_plus()})
    >>> gg.evaluate(r).round(3)
    array([[ 6., -4.]])
    """
    return _by_layer("epsilon_plus", lrp_epsilon(epsilon), lrp_zplus(epsilon))


@entry(FAMILY, "attribution")
def epsilon_plus_flat(epsilon: float = 1e-6) -> Rule:
    """`epsilon_plus`, but `lrp_flat` in the first layer.

    R_j by the rule of the layer
    [Lapuschkin et al. 2019, "Unmasking Clever Hans predictors and assessing what machines really
    learn"].

    Parameters: epsilon: what is added to the magnitude of sums, a finite number >= 0.

    Returns: a rule for `relevance`, of layers; ReLUs pass.

    Raises: GradientError at a site that is no layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[2.0], [-4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.epsilon_plus_flat()})
    >>> gg.evaluate(r).round(3)
    array([[1., 1.]])
    """
    parts = lrp_epsilon(epsilon), lrp_zplus(epsilon), lrp_flat(epsilon)
    return _by_layer("epsilon_plus_flat", *parts)


@entry(FAMILY, "attribution")
def epsilon_alpha2_beta1(epsilon: float = 1e-6) -> Rule:
    """`lrp_epsilon` in dense layers, `lrp_alpha_beta(2, 1)` in convolutions.

    R_j by the rule of the layer
    [Lapuschkin et al. 2019, "Unmasking Clever Hans predictors and assessing what machines really
    learn"].

    Parameters: epsilon: what is added to the magnitude of sums, a finite number >= 0.

    Returns: a rule for `relevance`, of layers; ReLUs pass.

    Raises: GradientError at a site that is no layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[2.0], [-4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.epsilon_alpha2_beta1()})
    >>> gg.evaluate(r).round(3)
    array([[ 6., -4.]])
    """
    parts = lrp_epsilon(epsilon), lrp_alpha_beta(2.0, 1.0, epsilon)
    return _by_layer("epsilon_alpha2_beta1", *parts)


@entry(FAMILY, "attribution")
def epsilon_gamma_box(low: float, high: float, gamma: float = 0.25, epsilon: float = 1e-6) -> Rule:
    """`lrp_epsilon` if dense, else `lrp_signed_gamma`, and `lrp_zbox` in a first convolution.

    R_j by the rule of the layer
    [Montavon et al. 2019, "Layer-wise relevance propagation: an overview"].

    Parameters:
        low, high: the ends of the inputs' range, finite numbers.
        gamma: how much more what has the sign of the sum counts, a finite number >= 0.
        epsilon: what is added to the magnitude of sums, a finite number >= 0.

    Returns: a rule for `relevance`, of layers; ReLUs pass.

    Raises: GradientError at a site that is no layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[2.0], [-4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.epsilon_gamma_box(0.0, 4.0)})
    >>> gg.evaluate(r).round(3)
    array([[ 6., -4.]])
    """
    FINITE("low", low)
    FINITE("high", high)
    parts = lrp_epsilon(epsilon), lrp_signed_gamma(gamma, epsilon), lrp_zbox(low, high, epsilon)
    return _by_layer("epsilon_gamma_box", *parts, first_dense=False)
