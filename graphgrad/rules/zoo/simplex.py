"""Projections: sparse softmaxes, and the nearest points of simplices, balls and polytopes."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from ...base.domains import Domain
from ...ir.node import Tensor
from . import maths as m
from .needs import Need, length, shapes
from .row import Axis, Count, Draw, Positive, Sums
from .rows import formula, pulled

FAMILY = "projections"
MARTINS = "Martins and Astudillo 2016, From softmax to sparsemax"
PETERS = "Peters, Niculae, Martins 2019, Sparse sequence-to-sequence models"
OVER_ONE = Domain(1, ends="(]")
Alphas = Annotated[Tensor, OVER_ONE]
Alpha = Annotated[float, OVER_ONE]
STEPS = 64
LABELS = shapes(x="... classes", target="...")


def _kept(x: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """x sorted downwards along an axis, its running sums, and the counts."""
    u = m.flip(m.sort(x, axis=axis), axis=axis)
    return u, m.cumsum(u, axis=axis), m.cumsum(m.ones_like(u), axis=axis)


def _sparsemax(x: Tensor, axis: int, total: float | Tensor = 1.0) -> Tensor:
    u, sums, count = _kept(x, axis)
    inside = count * u > sums - total
    k = m.sum(m.cast(inside, x.dtype), axis, keepdims=True)
    theta = (m.sum(m.where(inside, u, 0.0), axis, keepdims=True) - total) / k
    return m.maximum(x - theta, 0.0)


def _entmax15(x: Tensor, axis: int) -> Tensor:
    x = (x - m.max(x, axis, keepdims=True)) / 2.0
    u, sums, count = _kept(x, axis)
    mean, square = sums / count, m.cumsum(m.square(u), axis=axis) / count
    root = m.sqrt(m.maximum((1.0 - count * (square - m.square(mean))) / count, 0.0))
    theta = mean - root
    k = m.sum(m.cast(theta <= u, x.dtype), axis, keepdims=True)
    chosen = m.sum(m.where(count == k, theta, 0.0), axis, keepdims=True)
    return m.square(m.maximum(x - chosen, 0.0))


def _entmax(x: Tensor, alpha: float | Tensor, axis: int) -> Tensor:
    """By bisection of the threshold."""
    x = x * (alpha - 1.0)
    most = m.max(x, axis, keepdims=True)
    size = float(m.length(x, axis))
    low = most - 1.0 + 0.0 * (alpha - 1.0)
    high = most - m.exp((1.0 - alpha) * m.log(m.as_tensor(size, x.dtype)))

    def value(theta: Tensor) -> Tensor:
        over = x - theta
        return m.where(over > 0, m.where(over > 0, over, 1.0) ** (1.0 / (alpha - 1.0)), 0.0)

    def halved(_: Tensor, ends: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        low, high = ends
        middle = (low + high) / 2.0
        above = m.sum(value(middle), axis, keepdims=True) >= 1.0
        return m.where(above, middle, low), m.where(above, high, middle)

    low, high = m.fori_loop(0, STEPS, halved, (low, high))
    p = value((low + high) / 2.0)
    return p / m.sum(p, axis, keepdims=True)


def _pulled(d: Tensor, q: Tensor, axis: int) -> Tensor:
    """The derivative of what sums to a constant, q being how much each gives way."""
    total = m.sum(q, axis, keepdims=True)
    mean = m.sum(q * d, axis, keepdims=True) / m.where(total > 0, total, 1.0)
    return q * (d - mean)


def _powers(p: Tensor, exponent: float | Tensor) -> Tensor:
    return m.where(p > 0, m.where(p > 0, p, 1.0) ** exponent, 0.0)


@pulled(MARTINS, _sparsemax, contract="exact")
def sparsemax(dy: Tensor, x: Tensor, axis: Axis = -1) -> Tensor:
    """The nearest point in the simplex: sparse probabilities."""
    return _pulled(dy, m.where(_sparsemax(x, axis) > 0, 1.0, 0.0), axis)


@pulled(PETERS, _entmax15, contract="exact")
def entmax15(dy: Tensor, x: Tensor, axis: Axis = -1) -> Tensor:
    """Halfway between softmax and sparsemax: alpha is 1.5."""
    return _pulled(dy, m.sqrt(_entmax15(x, axis)), axis)


@pulled(PETERS, _entmax, contract="exact")
def entmax(dy: Tensor, x: Tensor, alpha: Alpha = 1.5, axis: Axis = -1) -> Tensor:
    """Between softmax (alpha 1) and sparsemax (alpha 2), and beyond."""
    return _pulled(dy, _powers(_entmax(x, alpha, axis), 2.0 - alpha), axis)


@pulled("Correia, Niculae, Martins 2019, Adaptively sparse transformers", _entmax, contract="exact")
def entmax_learned(dy: Tensor, x: Tensor, alpha: Alphas, axis: Axis = -1) -> tuple[Tensor, ...]:
    """entmax with a learned alpha per row."""
    p = _entmax(x, alpha, axis)
    q = _powers(p, 2.0 - alpha)
    skewed = q / m.sum(q, axis, keepdims=True)
    s = p * m.log(m.where(p > 0, p, 1.0))
    rest = (p - skewed) / m.square(alpha - 1.0)
    entropy = (s - skewed * m.sum(s, axis, keepdims=True)) / (alpha - 1.0)
    return _pulled(dy, q, axis), dy * (rest - entropy)


def _budget(x: Tensor, budget: float | Tensor, axis: int) -> Tensor:
    low = m.min(x, axis, keepdims=True) - 1.0
    high = m.max(x, axis, keepdims=True)

    def halved(_: Tensor, ends: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        low, high = ends
        middle = (low + high) / 2.0
        above = m.sum(m.clip(x - middle, 0.0, 1.0), axis, keepdims=True) >= budget
        return m.where(above, middle, low), m.where(above, high, middle)

    low, high = m.fori_loop(0, STEPS, halved, (low, high))
    return m.clip(x - (low + high) / 2.0, 0.0, 1.0)


@pulled(
    "Malaviya, Ferreira, Martins 2018, Sparse and constrained attention for neural machine "
    "translation",
    _budget,
    contract="exact",
    needs=(
        Need(
            "budget is at most the length of the axis",
            lambda budget, x, axis: budget <= length(x, axis),
        ),
    ),
)
def budget(dy: Tensor, x: Tensor, budget: Positive, axis: Axis = -1) -> Tensor:
    """The nearest point whose elements are in [0, 1] and sum to the budget."""
    p = _budget(x, budget, axis)
    return _pulled(dy, m.where(m.logical_and(p > 1e-12, p < 1 - 1e-12), 1.0, 0.0), axis)


@formula(MARTINS, needs=(LABELS,))
def sparsemax_loss(x: Tensor, target: Draw) -> Tensor:
    """The loss of labels (...) for scores x (..., classes) whose gradient is sparsemax - target."""
    p = sparsemax(x)
    omega = (1.0 - m.sum(m.square(p), -1)) / 2.0
    return _fenchel_young(x, p, omega, target)


@formula(PETERS, needs=(LABELS,))
def entmax15_loss(x: Tensor, target: Draw) -> Tensor:
    """The loss of labels (...) for scores x (..., classes) whose gradient is entmax15 - target."""
    p = entmax15(x)
    omega = (1.0 - m.sum(p * m.sqrt(p), -1)) / 0.75
    return _fenchel_young(x, p, omega, target)


def _fenchel_young(x: Tensor, p: Tensor, omega: Tensor, target: Tensor) -> Tensor:
    """omega(p) + <p - target, x>, whose gradient in x is p - target: p is a constant of it."""
    way = m.stop_gradient(p) - m.cast(m.one_hot(target, m.length(x)), x.dtype)
    return m.stop_gradient(omega) + m.sum(way * x, -1)


# --- sets -------------------------------------------------------------------------------------


@pulled(
    "Duchi et al. 2008, Efficient projections onto the l1-ball for learning in high dimensions",
    lambda x, radius: _sparsemax(x, -1, radius),
    contract="exact",
)
def project_simplex(dy: Tensor, x: Tensor, radius: Positive = 1.0) -> Tensor:
    """The nearest point in the simplex along the last axis."""
    return _pulled(dy, m.where(_sparsemax(x, -1, radius) > 0, 1.0, 0.0), -1)


def _l1_ball(x: Tensor, radius: Positive) -> Tensor:
    size = m.abs(x)
    inside = m.sum(size, -1, keepdims=True) <= radius
    return m.where(inside, x, m.sign(x) * _sparsemax(size, -1, radius))


@pulled(
    "Duchi et al. 2008, Efficient projections onto the l1-ball for learning in high dimensions",
    _l1_ball,
    contract="exact",
)
def project_l1_ball(dy: Tensor, x: Tensor, radius: Positive = 1.0) -> Tensor:
    """The nearest point in the L1 ball of a radius, along the last axis."""
    kept = m.where(_sparsemax(m.abs(x), -1, radius) > 0, 1.0, 0.0)
    outside = m.sign(x) * _pulled(m.sign(x) * dy, kept, -1)
    return m.where(m.sum(m.abs(x), -1, keepdims=True) <= radius, dy, outside)


@formula("Boyd and Vandenberghe 2004, Convex optimization")
def project_l2_ball(x: Tensor, radius: Positive = 1.0) -> Tensor:
    """The nearest point in the L2 ball of a radius, along the last axis."""
    squares = m.sum(m.square(x), -1, keepdims=True)
    outside = squares > radius * radius
    length = m.sqrt(m.where(outside, squares, 1.0))
    return m.where(outside, x * radius / length, x)


def _transported(
    x: Tensor, rows: Tensor, columns: Tensor, temperature: Positive, iterations: int
) -> Tensor:
    """A plan of given sums, by Sinkhorn's iterations from exp(x / t), in logarithms."""
    k = x / temperature
    f, g = m.sum(0.0 * k, -1), m.sum(0.0 * k, -2)

    def turn(_: Tensor, duals: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        f = m.log(rows) - m.logsumexp(k + duals[1][..., None, :], axis=-1)
        g = m.log(columns) - m.logsumexp(k + f[..., :, None], axis=-2)
        return f, g

    f, g = m.fori_loop(0, iterations, turn, (f, g))
    return m.exp(k + f[..., :, None] + g[..., None, :])


def _transport_vjp(dy: Tensor, plan: Tensor, temperature: Positive) -> Tensor:
    """By the implicit function theorem: what is left of dy without what the duals take."""
    n, k = m.length(plan, -2), m.length(plan)
    a = plan * dy
    rows, columns = m.sum(plan, -1), m.sum(plan, -2)
    top = m.concat([rows[..., :, None] * m.eye(n, dtype=plan.dtype), plan], axis=-1)
    low = m.concat(
        [m.swapaxes(plan, -1, -2), columns[..., :, None] * m.eye(k, dtype=plan.dtype)], axis=-1
    )
    both = m.concat([m.sum(a, -1), m.sum(a, -2)], axis=-1)
    duals = m.matvec(m.pinv(m.concat([top, low], axis=-2)), both)
    u, v = duals[..., :n, None], duals[..., None, n:]
    return plan * (dy - u - v) / temperature


@pulled(
    "Cuturi 2013, Sinkhorn distances: lightspeed computation of optimal transport",
    _transported,
    contract="exact",
    needs=(
        shapes(x="* n k", rows="* n", columns="* k"),
        Need(
            "rows and columns have one sum",
            lambda rows, columns: np.abs(np.sum(rows, -1) - np.sum(columns, -1)) < 1e-4,
        ),
    ),
)
def sinkhorn(
    dy: Tensor,
    x: Tensor,
    rows: Sums,
    columns: Sums,
    temperature: Positive = 1.0,
    iterations: Count = 2000,
) -> Tensor:
    """The transport plan of similarities x (n, k) with given sums of rows and columns."""
    plan = _transported(x, rows, columns, temperature, iterations)
    return _transport_vjp(dy, plan, temperature)


def _ones(x: Tensor) -> Tensor:
    return m.ones((m.length(x),), dtype=x.dtype)


@pulled(
    "Sinkhorn and Knopp 1967, Concerning nonnegative matrices and doubly stochastic matrices",
    lambda x, iterations: _transported(x, _ones(x), _ones(x), 1.0, iterations),
    contract="exact",
    needs=(shapes(x="* n n"),),
)
def project_birkhoff(dy: Tensor, x: Tensor, iterations: Count = 2000) -> Tensor:
    """The doubly stochastic matrix closest to exp(x) in Kullback-Leibler divergence."""
    return _transport_vjp(dy, _transported(x, _ones(x), _ones(x), 1.0, iterations), 1.0)


# --- orders -----------------------------------------------------------------------------------


def _segments(s: Tensor, w: Tensor, mode: str) -> Tensor:
    """Of each run of places, from a to b, what an isotonic regression of s - w has there."""
    n = m.length(s)
    place = m.arange(n)
    inside = m.logical_and(place[:, None, None] <= place, place[None, :, None] >= place)
    if mode == "c0":
        count = m.maximum(m.sum(m.cast(inside, s.dtype), -1), 1.0)
        return m.sum(m.where(inside, (s - w)[..., None, None, :], 0.0), -1) / count
    low = -1e300 if s.dtype == "float64" else -1e30
    over, under = [
        m.logsumexp(m.where(inside, t[..., None, None, :], low), axis=-1) for t in (s, w)
    ]
    return over - under


def permutahedron(z: Tensor, w: Tensor, mode: str) -> Tensor:
    """The nearest point to z of the hull of w's orders, along the last axis: z less an isotonic
    regression, which is the least over starts of the largest over ends of runs
    [Blondel et al. 2020, "Fast differentiable sorting and ranking"].
    """
    if mode not in ("smooth", "c0"):
        raise ValueError(f"mode is 'smooth' or 'c0' for the permutahedron, got {mode!r}")
    order = m.argsort(-z, axis=-1)
    s = m.take_along_axis(z, order, -1)
    w = m.take_along_axis(w, m.argsort(-w, axis=-1), -1)
    place = m.arange(m.length(z))
    runs = _segments(s, w, mode)
    start, at, end = place[:, None, None], place[:, None], place
    most = m.max(m.where(end >= m.maximum(start, at), runs[..., :, None, :], -float("inf")), -1)
    v = m.min(m.where(place[:, None] <= place, most, float("inf")), -2)
    return m.take_along_axis(s - v, m.argsort(order, axis=-1), -1)


__all__ = ["budget", "entmax", "entmax15", "entmax15_loss", "entmax_learned", "project_birkhoff"]
__all__ += ["project_l1_ball", "project_l2_ball", "project_simplex", "sinkhorn", "sparsemax"]
__all__ += ["sparsemax_loss"]
