"""Several gradients into one: x is handed to several tasks, the rule sees what they give."""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any, Literal

from ...base.domains import NON_NEGATIVE, PROBABILITY
from ...ir.node import Tensor
from . import maths as m
from .needs import Need, shapes
from .row import Count, Draw, Places, Uniform
from .rows import together

FAMILY = "aggregation"
QUINTON = "Quinton and Rey 2024, Jacobian descent for multi-objective optimization"
FEW = Need("times is at most 8, of which all subsets are tried", lambda times: times <= 8)


def _rows(ds: list[Tensor]) -> Tensor:
    """The gradients as rows of a matrix."""
    return m.stack([m.reshape(d, (-1,)) for d in ds])


def _weighted(ds: list[Tensor], weights: Tensor) -> Tensor:
    return m.reshape(m.matmul(weights[None], _rows(ds))[0], ds[0].shape)


def _gramian(ds: list[Tensor]) -> Tensor:
    j = _rows(ds)
    return m.matmul(j, m.swapaxes(j, 0, 1))


def _even(ds: list[Tensor]) -> Tensor:
    return m.as_tensor([1.0 / len(ds)] * len(ds), ds[0].dtype)


def _diagonal(g: Tensor) -> Tensor:
    return m.sum(g * m.eye(m.length(g, 0), dtype=g.dtype), -1)


@together("the sum of gradients, as in differentiation", fan=True, linear=True)
def jd_sum(ds: list[Tensor]) -> Tensor:
    """The sum."""
    return sum(ds[1:], ds[0])


@together("Caruana 1997, Multitask learning", fan=True, linear=True)
def jd_mean(ds: list[Tensor]) -> Tensor:
    """The mean."""
    return sum(ds[1:], ds[0]) / float(len(ds))


@together(
    "Caruana 1997, Multitask learning", fan=True, linear=True, needs=(shapes(weights="times"),)
)
def jd_constant(ds: list[Tensor], *, weights: Draw) -> Tensor:
    """A weighted sum."""
    return _weighted(ds, weights)


def _in_dual_cone(g: Tensor, u: Tensor) -> Tensor:
    """For each row of u the weights w >= u of the least w' g w, by trying all that may be bound."""
    count = m.length(g, 0)
    trace = m.sum(_diagonal(g))
    one = m.eye(count, dtype=g.dtype)
    g = g / m.where(trace > 1e-4, trace, 1.0) * m.where(trace > 1e-4, 1.0, 0.0) + 1e-4 * one
    bound = m.as_tensor(list(product((0.0, 1.0), repeat=count)), g.dtype)
    system = bound[:, :, None] * one + (1.0 - bound[:, :, None]) * g
    right = bound[:, :, None] * m.swapaxes(u, 0, 1)[None]
    w = m.swapaxes(m.solve(system, right), -1, -2)
    gw = m.matmul(w, g)
    short = m.maximum(u - w, 0.0) + m.maximum(-gw * bound[:, None, :], 0.0)
    cost = m.sum(short, -1) * 1e6 + m.sum(w * gw, -1)
    best = m.cast(m.one_hot(m.argmin(cost, 0), 2**count), g.dtype)
    return m.sum(m.swapaxes(best, 0, 1)[:, :, None] * w, 0)


@together(
    QUINTON, fan=True, traps="a quadratic program: another solver differs near 1e-6", needs=(FEW,)
)
def jd_upgrad(ds: list[Tensor]) -> Tensor:
    """The mean of the gradients, each projected so that it conflicts with none."""
    weights = _even(ds)[:, None] * m.eye(len(ds), dtype=ds[0].dtype)
    return _weighted(ds, m.sum(_in_dual_cone(_gramian(ds), weights), 0))


@together(
    "Lopez-Paz and Ranzato 2017, Gradient episodic memory for continual learning",
    fan=True,
    traps="a quadratic program: another solver differs near 1e-6",
    needs=(FEW,),
)
def jd_dualproj(ds: list[Tensor]) -> Tensor:
    """The mean, projected so that it conflicts with no gradient."""
    return _weighted(ds, _in_dual_cone(_gramian(ds), _even(ds)[None])[0])


@together(
    "Sener and Koltun 2018, Multi-task learning as multi-objective optimization; Desideri 2012",
    fan=True,
    traps="Frank-Wolfe stopped early is not the minimum",
)
def jd_mgda(
    ds: list[Tensor], *, epsilon: Annotated[float, NON_NEGATIVE] = 1e-3, iterations: Count = 100
) -> Tensor:
    """The convex combination of least norm, found by Frank-Wolfe."""
    g, start = _gramian(ds), _even(ds)

    def turn(_: Any, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        w, done = state
        gw = m.matvec(g, w)
        e = m.cast(m.one_hot(m.argmin(gw, 0), len(ds)), w.dtype)
        a, b, c = m.sum(e * gw), m.sum(w * gw), m.sum(e * m.matvec(g, e))
        inner = (b - a) / m.where(b + c - 2.0 * a == 0, 1.0, b + c - 2.0 * a)
        gamma = m.where(c <= a, 1.0, m.where(b <= a, 0.0, inner))
        moved = (1.0 - gamma) * w + gamma * e
        return m.where(done > 0, w, moved), m.where(gamma < epsilon, 1.0 + 0.0 * done, done)

    w, _ = m.fori_loop(0, iterations, turn, (start, 0.0 * start[0]))
    return _weighted(ds, w)


@together(
    "Yu et al. 2020, Gradient surgery for multi-task learning",
    fan=True,
    needs=(shapes(orders="times times"),),
)
def jd_pcgrad(ds: list[Tensor], *, orders: Draw) -> Tensor:
    """The sum of the gradients, each without its conflicts with the others, in random order."""
    j = _rows(ds)
    squares = m.sum(m.square(j), -1)
    total = m.zeros_like(j[0])
    for i in range(len(ds)):
        g = j[i]
        for k in range(len(ds)):
            place = orders[i, k]
            other, square = m.take(j, place, axis=0), m.take(squares, place, axis=0)
            along = m.sum(g * other)
            meets = m.logical_and(along < 0, place != i)
            g = g - m.where(meets, along / m.where(square > 0, square, 1.0), 0.0) * other
        total = total + g
    return m.reshape(total, ds[0].shape)


@together(
    "Chen et al. 2020, Just pick a sign: optimizing deep multitask models with gradient sign "
    "dropout",
    fan=True,
    traps="0/0 where all are 0",
    needs=(shapes(x="...", uniform="..."),),
)
def jd_graddrop(
    ds: list[Tensor], *, uniform: Uniform, leak: Annotated[float, PROBABILITY] = 0.0
) -> Tensor:
    """For each element, the values of one sign, picked at random by the purity of the signs."""
    j = m.stack(ds)
    purity = 0.5 * (1.0 + m.sum(j, 0) / m.sum(m.abs(j), 0))
    up, down = m.logical_and(purity > uniform, j > 0), m.logical_and(purity < uniform, j < 0)
    kept = m.where(m.logical_or(up, down), 1.0, 0.0)
    return m.sum((leak + (1.0 - leak) * kept) * j, 0)


@together("Liu et al. 2021, Conflict-averse gradient descent", fan=True, needs=(FEW,))
def jd_cagrad(ds: list[Tensor], *, c: Annotated[float, NON_NEGATIVE] = 0.5) -> Tensor:
    """The mean, moved by c times its norm to improve the worst gradient most."""
    g, one = _gramian(ds), m.eye(len(ds), dtype=ds[0].dtype)
    b = m.matvec(g, _even(ds))
    radius = c * m.root(m.mean(b))
    small = 1e-12 if g.dtype == "float64" else 1e-6
    w = _least_of_norm(g + small * m.maximum(m.sum(_diagonal(g)), small) * one, b, radius)
    length = m.root(m.maximum(m.sum(w * m.matvec(g, w)), 0.0))
    moved = m.where(length > 0, radius / m.where(length > 0, length, 1.0), 0.0)
    return _weighted(ds, _even(ds) + moved * w)


def _least_of_norm(g: Tensor, b: Tensor, radius: Tensor) -> Tensor:
    """The weights w >= 0 of sum 1 with the least b w + radius * sqrt(w' g w): of all sets of
    weights that may be positive, where the gradient in them is one number, the best.
    """
    one = m.eye(m.length(g, 0), dtype=g.dtype)
    free = m.as_tensor([s for s in product((0.0, 1.0), repeat=m.length(g, 0)) if any(s)], g.dtype)
    system = free[:, :, None] * free[:, None, :] * g + (1.0 - free[:, :, None]) * one
    u, v = [m.solve(system, (free * t)[:, :, None])[..., 0] for t in (m.ones_like(b), b)]
    a, p, q = m.sum(u, -1), m.sum(v, -1), m.sum(v * b, -1)
    inside = p * p - a * (q - radius * radius)
    root = m.sqrt(m.where(inside > 0, inside, 1.0))
    w = (((p + root) / a)[:, None] * u - v) / root[:, None]
    short = m.sum(m.maximum(-w, 0.0), -1) + m.where(inside > 0, 0.0, 1.0)
    cost = m.matvec(w, b) + radius * m.sqrt(m.maximum(m.sum(w * m.matmul(w, g), -1), 0.0))
    best = m.argmin(m.where(short > 1e-9, float("inf"), cost), 0)
    return m.maximum(m.take(w, best, axis=0), 0.0)


@together(
    "Senushkin et al. 2023, Independent component alignment for multi-task learning",
    fan=True,
    traps="rank by tolerance: not continuous",
)
def jd_aligned_mtl(ds: list[Tensor], *, scale: Literal["min", "median", "rmse"] = "min") -> Tensor:
    """The mean of the gradients after their principal components are scaled to the same length."""
    g, one = _gramian(ds), m.eye(len(ds), dtype=ds[0].dtype)
    total = m.sum(_diagonal(g))
    g = g / m.where(total > 0, total, 1.0)
    least = len(ds) * (2.2e-16 if g.dtype == "float64" else 1.2e-7)
    values = m.eigvalsh(g)
    kept = values > least
    count = m.sum(m.cast(kept, g.dtype))
    place = m.cast(m.arange(len(ds)), g.dtype)
    middle = len(ds) - count + m.floor((count - 1.0) / 2.0)
    length = {
        "min": m.min(m.where(kept, values, m.max(values))),
        "rmse": m.sum(m.where(kept, values, 0.0)) / m.maximum(count, 1.0),
        "median": m.sum(m.where(place == middle, values, 0.0)),
    }[scale]
    inverse = m.matrix_function(
        g, lambda v: m.where(v > least, 1.0 / m.sqrt(m.where(v > least, v, 1.0)), 0.0)
    )
    balance = m.where(count > 0, m.root(m.maximum(length, 0.0)) * inverse, one)
    return _weighted(ds, m.matvec(balance, _even(ds)))


@together("Liu et al. 2021, Towards impartial multi-task learning", fan=True)
def jd_imtlg(ds: list[Tensor]) -> Tensor:
    """The combination that has equal projections on all gradients."""
    g = _gramian(ds)
    v = m.matvec(m.pinv(g), m.root(_diagonal(g)))
    total = m.sum(v)
    there = m.abs(total) >= 1e-12
    return _weighted(ds, m.where(there, v / m.where(there, total, 1.0), 0.0))


@together("Liu et al. 2024, ConFIG: towards conflict-free training of PINNs", fan=True)
def jd_config(ds: list[Tensor]) -> Tensor:
    """The direction with equal cosines to all gradients, as long as the sum of projections."""
    j = _rows(ds)
    length = m.root(m.sum(m.square(j), -1, keepdims=True))
    units = m.where(length > 0, j / m.where(length > 0, length, 1.0), 0.0)
    best = m.sum(m.pinv(units), -1)
    way = best / m.maximum(m.root(m.sum(m.square(best))), 1e-12)
    return m.reshape(m.sum(m.matvec(j, way)) * way, ds[0].shape)


@together(
    "Yin et al. 2018, Byzantine-robust distributed learning",
    fan=True,
    needs=(Need("times is at least 2 trim + 1", lambda times, trim: times > 2 * trim),),
)
def jd_trimmed_mean(ds: list[Tensor], *, trim: Places = 1) -> Tensor:
    """The mean of each element without its largest and smallest values."""
    return m.mean(m.sort(m.stack(ds), axis=0)[trim : len(ds) - trim], 0)


@together(
    "Blanchard et al. 2017, Machine learning with adversaries",
    fan=True,
    needs=(
        Need("times is at least byzantine + 3", lambda times, byzantine: times >= byzantine + 3),
        Need("times is at least selected", lambda times, selected: times >= selected),
    ),
)
def jd_krum(ds: list[Tensor], *, byzantine: Places = 1, selected: Count = 1) -> Tensor:
    """The mean of the gradients that are closest to their neighbours."""
    count = len(ds)
    g = _gramian(ds)
    squares = _diagonal(g)
    far = m.sqrt(m.maximum(squares[:, None] + squares[None] - 2.0 * g, 0.0))
    near = m.sum(m.sort(far, axis=-1)[:, 1 : count - byzantine - 1], -1)
    chosen = m.topk(-near, selected)[1]
    weights = m.cast(m.sum(m.one_hot(chosen, count), 0), g.dtype) / float(selected)
    return _weighted(ds, weights)


__all__ = ["jd_aligned_mtl", "jd_cagrad", "jd_config", "jd_constant", "jd_dualproj", "jd_graddrop"]
__all__ += ["jd_imtlg", "jd_krum", "jd_mean", "jd_mgda", "jd_pcgrad", "jd_sum"]
__all__ += ["jd_trimmed_mean", "jd_upgrad"]
