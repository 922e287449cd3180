"""Relevance of layers whose weights count by their sign, or not at all."""

from __future__ import annotations

from typing import Any

from ..base.domains import FINITE, NON_NEGATIVE
from ..differentiate.site import Site
from ..ir.node import Tensor
from ..ops.create.creation import ones_like
from ..ops.elementwise.arithmetic import multiply
from ..ops.elementwise.bounds import maximum, minimum
from ..ops.elementwise.logic import where
from ..ops.sources import identity
from ..regions.rules import Rule
from .entries import entry, rule
from .layers import carrying_layer, in_shares, keep_bias
from .ledger import Ledger, ledger
from .propagation import FAMILY
from .shares import stabilised
from .sites import Layer, only


@entry(FAMILY, "attribution")
def lrp_alpha_beta(alpha: float = 2.0, beta: float = 1.0, epsilon: float = 1e-9) -> Rule:
    """Positive and negative contributions to the score are shared separately and weighted.

    R_j = sum_k (alpha * p_jk / p_k - beta * n_jk / n_k) R_k, p_jk and n_jk the positive and the
    negative part of x_j w_jk, p_k and n_k their sums with that part of the bias
    [Bach et al. 2015, "On pixel-wise explanations for non-linear classifier decisions by layer-wise
    relevance propagation"].

    Parameters:
        alpha, beta: the weights, finite numbers: alpha - beta = 1, beta >= 0; 1 and 0 are the z+
            rule.
        epsilon: what is added to the magnitude of the sums, a finite number >= 0.

    Returns: a rule for `relevance`, of layers.

    Raises: ValueError unless alpha - beta = 1 and beta >= 0; GradientError at a site that is
    not a layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[2.0], [-4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.lrp_alpha_beta(1.0, 0.0)})
    >>> gg.evaluate(r).round(6)
    array([[2., 0.]])
    """
    FINITE("alpha", alpha)
    NON_NEGATIVE("beta", beta)
    NON_NEGATIVE("epsilon", epsilon)
    if abs(alpha - beta - 1) > 1e-9:
        raise ValueError(f"alpha - beta = 1, got alpha={alpha} and beta={beta}")

    def lrp_alpha_beta(site: Site, dy: Tensor) -> Any:
        book = ledger()
        part = carrying_layer(site, book)
        relevance = _of_sign(book, part, dy * alpha, epsilon, positive=True)
        if beta:
            relevance = relevance + _of_sign(book, part, dy * -beta, epsilon, positive=False)
        return only(site, part.x, relevance)

    return rule(lrp_alpha_beta, alpha=alpha, beta=beta)


def _of_sign(book: Ledger, part: Layer, dy: Tensor, epsilon: float, positive: bool) -> Tensor:
    """What the terms of one sign have of dy."""
    same, other = (maximum, minimum) if positive else (minimum, maximum)
    up, down = identity(maximum(part.x, 0.0)), identity(minimum(part.x, 0.0))
    bias = None if part.bias is None else same(part.bias, 0.0)
    z = part.applied(up, same(part.w, 0.0), bias) + part.applied(down, other(part.w, 0.0), None)
    return _shared_apart(book, z, [up, down], bias, dy, epsilon)


def _shared_apart(
    book: Ledger, z: Tensor, xs: list[Tensor], bias: Tensor | None, dy: Tensor, epsilon: float
) -> Tensor:
    dz = stabilised(book, z, dy, epsilon)
    keep_bias(book, bias, dz)
    first, second = in_shares(z, xs, dz)
    return first + second


@entry(FAMILY, "attribution")
def lrp_signed_gamma(gamma: float = 0.25, epsilon: float = 1e-9) -> Rule:
    """`lrp_gamma` for inputs of both signs: terms with the sign of the output count more.

    R_j = sum_k v_jk R_k / z'_k, v_jk = x_j w_jk, times 1 + gamma where it has the sign of z_k, and
    z'_k the sum of these with the bias, which counts likewise
    [Andeol, Kawakami, Wada, Kanamori, Mueller, Montavon 2021, "Learning domain invariant
    representations by joint Wasserstein distance minimization"].

    Parameters:
        gamma: how much more, a finite number >= 0.
        epsilon: what is added to the sum's magnitude, a finite number >= 0.

    Returns: a rule for `relevance`, of layers.

    Raises: GradientError at a site that is not a layer.

    >>> x, w = gg.constant([[3.0, -1.0]]), gg.constant([[2.0], [4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.lrp_signed_gamma(1.0)})
    >>> gg.evaluate(r).round(6)
    array([[ 3., -1.]])
    """
    NON_NEGATIVE("gamma", gamma)
    NON_NEGATIVE("epsilon", epsilon)

    def lrp_signed_gamma(site: Site, dy: Tensor) -> Any:
        book = ledger()
        part = carrying_layer(site, book)
        (y,) = site.outputs
        for_it = _raised(book, part, where(y > 0.0, dy, 0.0), gamma, epsilon, positive=True)
        against = _raised(book, part, where(y < 0.0, dy, 0.0), gamma, epsilon, positive=False)
        return only(site, part.x, for_it + against)

    return rule(lrp_signed_gamma, gamma=gamma)


def _raised(
    book: Ledger, part: Layer, dy: Tensor, gamma: float, epsilon: float, positive: bool
) -> Tensor:
    """What the inputs have of dy, where terms of one sign count more."""
    same, other = (maximum, minimum) if positive else (minimum, maximum)

    def more(w: Tensor, of: Any) -> Tensor:
        return w + multiply(gamma, of(w, 0.0))

    up, down = identity(maximum(part.x, 0.0)), identity(minimum(part.x, 0.0))
    bias = None if part.bias is None else more(part.bias, same)
    z = part.applied(up, more(part.w, same), bias)
    z = z + part.applied(down, more(part.w, other), None)
    return _shared_apart(book, z, [up, down], bias, dy, epsilon)


@entry(FAMILY, "attribution")
def lrp_flat(epsilon: float = 1e-9) -> Rule:
    """Relevance is shared equally among all inputs that an output reads.

    R_j = sum_k R_k / n_k, n_k the number of inputs of z_k; nothing depends on x or w
    [Lapuschkin et al. 2019, "Unmasking Clever Hans predictors and assessing what machines really
    learn"].

    Parameters: epsilon: what is added to the number, a finite number >= 0.

    Returns: a rule for `relevance`, of layers; it is for the first one.

    Raises: GradientError at a site that is not a layer.

    >>> x, w = gg.constant([[3.0, 1.0]]), gg.constant([[2.0], [-4.0]])
    >>> r = gg.rules.relevance(x @ w, x, {"MatMul": gg.rules.lrp_flat()})
    >>> gg.evaluate(r).round(6)
    array([[1., 1.]])
    """
    NON_NEGATIVE("epsilon", epsilon)

    def lrp_flat(site: Site, dy: Tensor) -> Any:
        book = ledger()
        part = carrying_layer(site, book)
        x = identity(ones_like(part.x))
        z = part.applied(x, ones_like(part.w), None)
        (dx,) = in_shares(z, [x], stabilised(book, z, dy, epsilon))
        return only(site, part.x, dx)

    return rule(lrp_flat)
