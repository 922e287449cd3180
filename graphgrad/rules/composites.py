"""Rules for the layers of a network by what they are: a convolution, dense, or the first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ParamSpec

from ..base.domains import NON_NEGATIVE
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
from .zoo.row import Number, ZooRow

P = ParamSpec("P")
Least = Annotated[float, NON_NEGATIVE]


@entry(FAMILY, "attribution")
def lrp_wsquare(epsilon: float = 1e-9) -> Rule:
    """Relevance is shared by the squares of the weights, whatever the inputs are.

    R_j = sum_k w_jk**2 R_k / z_k, z_k the sum of the squares with that of the bias
    [Montavon et al. 2017, "Explaining nonlinear classification decisions with deep Taylor
    decomposition"].

    Parameters: epsilon: what is added to the sum, a finite number >= 0.

    Returns: a rule for `relevance`, of layers; it is for the first one.

    Raises: GradientError at a site that is not a layer.

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
    """Only positive contributions are shared: `lrp_alpha_beta` with 1 and 0.

    R_j = sum_k p_jk R_k / p_k, p_jk the positive part of x_j w_jk, p_k their sum with that part of
    the bias
    [Montavon et al. 2017, "Explaining nonlinear classification decisions with deep Taylor
    decomposition"].

    Parameters:
        epsilon: what is added to the sum, a finite number >= 0.
        by_weight: whether the weight's sign counts, not that of the product, and the bias is as
            it is, as in captum.

    Returns: a rule for `relevance`, of layers.

    Raises: GradientError at a site that is not a layer.

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


def composed(
    source: str, *, first_dense: bool = True
) -> Callable[[Callable[P, tuple[Rule, ...]]], Callable[P, Rule]]:
    """A rule by the kind of a layer: fn gives those of dense ones, convolutions and the first.

    first_dense: whether a first layer that is dense has the rule of the first.
    """

    def decorated(fn: Any) -> Any:
        row = ZooRow(fn, source, {}, "dense, convolution, first: ", 0, None)

        def make(given: dict[str, Any]) -> Rule:
            _, given = row.split(given)
            dense, conv, *first = fn(**given)

            def by_layer(site: Site, dy: Tensor) -> Any:
                is_dense = any(n.type == "MatMul" for n in site.nodes)
                if first and (first_dense or not is_dense) and _is_first(site):
                    return first[0].fn(site, dy)
                return (dense if is_dense else conv).fn(site, dy)

            return row.rule(by_layer, given)

        return row.public(make, "attribution", linear=True)

    return decorated


HANS = (
    "Lapuschkin et al. 2019, Unmasking Clever Hans predictors and assessing what machines really "
    "learn"
)


@composed(HANS)
def epsilon_plus(epsilon: Least = 1e-6) -> tuple[Rule, ...]:
    """`lrp_epsilon` in dense layers, `lrp_zplus` in convolutions."""
    return lrp_epsilon(epsilon), lrp_zplus(epsilon)


@composed(HANS)
def epsilon_plus_flat(epsilon: Least = 1e-6) -> tuple[Rule, ...]:
    """`epsilon_plus`, but `lrp_flat` in the first layer."""
    return lrp_epsilon(epsilon), lrp_zplus(epsilon), lrp_flat(epsilon)


@composed(HANS)
def epsilon_alpha2_beta1(epsilon: Least = 1e-6) -> tuple[Rule, ...]:
    """`lrp_epsilon` in dense layers, `lrp_alpha_beta(2, 1)` in convolutions."""
    return lrp_epsilon(epsilon), lrp_alpha_beta(2.0, 1.0, epsilon)


@composed(HANS)
def epsilon_alpha2_beta1_flat(epsilon: Least = 1e-6) -> tuple[Rule, ...]:
    """`epsilon_alpha2_beta1`, but `lrp_flat` in the first layer."""
    return lrp_epsilon(epsilon), lrp_alpha_beta(2.0, 1.0, epsilon), lrp_flat(epsilon)


@composed("Montavon et al. 2019, Layer-wise relevance propagation: an overview", first_dense=False)
def epsilon_gamma_box(
    low: Number, high: Number, gamma: Least = 0.25, epsilon: Least = 1e-6
) -> tuple[Rule, ...]:
    """`lrp_epsilon` if dense, else `lrp_signed_gamma`, and `lrp_zbox` in a first convolution."""
    gammas, box = lrp_signed_gamma(gamma, epsilon), lrp_zbox(low, high, epsilon)
    return lrp_epsilon(epsilon), gammas, box
