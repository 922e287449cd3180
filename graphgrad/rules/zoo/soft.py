"""Soft operators: a hard value, and the gradient of a smoother one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ...base.domains import PROBABILITY
from ...ir.node import Tensor
from . import maths as m
from .row import Axis, Count, NonNegative, Positive
from .rows import formula, smooth, soft
from .simplex import entmax, entmax15, permutahedron, sparsemax

FAMILY = "soft operators"
PAULUS = "Paulus et al. 2026, SoftJax: soft surrogates of hard operators"
Mode = Literal["smooth", "c0", "c1", "c2"]
Small = NonNegative


def step(x: Tensor, softness: Positive, mode: str) -> Tensor:
    """From 0 to 1: a logistic function, or a polynomial within 5 softness."""
    u = x / softness
    if mode == "smooth":
        return m.sigmoid(u)
    v = u / 5.0
    if mode == "c0":
        y = 0.5 + v / 2.0
    elif mode == "c1":
        y = 0.5 + v * (3.0 - v * v) / 4.0
    else:
        y = 0.5 + v * (15.0 - 10.0 * v * v + 3.0 * v**4) / 16.0
    return m.where(v < -1, 0.0, m.where(v < 1, y, 1.0))


def ramp(x: Tensor, softness: Positive, mode: str, gated: bool = False) -> Tensor:
    """The integral of `step`, or, gated, x times it."""
    if gated:
        return x * step(x, softness, mode)
    if mode == "smooth":
        return softness * m.softplus(x / softness)
    v = x / (5.0 * softness)
    if mode == "c0":
        y = (v + 1.0) ** 2 / 4.0
    elif mode == "c1":
        y = v / 2.0 + 3.0 * v**2 / 8.0 - v**4 / 16.0 + 3.0 / 16.0
    else:
        y = v / 2.0 + 15.0 * v**2 / 32.0 - 5.0 * v**4 / 32.0 + v**6 / 32.0 + 5.0 / 32.0
    return m.where(v < -1, 0.0, m.where(v < 1, 5.0 * softness * y, x))


def _soft_abs(x: Tensor, softness: Positive, mode: str) -> Tensor:
    return x * (2.0 * step(x, softness, mode) - 1.0)


@smooth(PAULUS)
def soft_heaviside(x: Tensor, softness: Positive = 0.1, mode: Mode = "smooth") -> Tensor:
    """For steps: the slope of a smooth one."""
    return step(x, softness, mode)


@smooth(PAULUS)
def soft_sign(x: Tensor, softness: Positive = 0.1, mode: Mode = "smooth") -> Tensor:
    """For sign: the slope of a smooth one."""
    return 2.0 * step(x, softness, mode) - 1.0


@smooth(PAULUS)
def soft_abs(x: Tensor, softness: Positive = 0.1, mode: Mode = "smooth") -> Tensor:
    """For |x|: the slope of x times a smooth sign."""
    return _soft_abs(x, softness, mode)


@smooth(PAULUS)
def soft_relu(
    x: Tensor, softness: Positive = 0.1, mode: Mode = "smooth", gated: bool = False
) -> Tensor:
    """For ReLU: the slope of the integral of a smooth step, or of x times the step."""
    return ramp(x, softness, mode, gated)


@smooth(
    f"{PAULUS}; Agustsson and Theis 2020, Universally quantized neural compression",
    traps="neighbours are counted from floor(x): wrong for a softness near 1",
)
def soft_round(
    x: Tensor, softness: Positive = 0.1, mode: Mode = "smooth", radius: Count = 5
) -> Tensor:
    """For rounding: the slope of a staircase of smooth steps at the nearest integers."""
    centre = m.stop_gradient(m.floor(x))
    y = m.zeros_like(x)
    for i in range(-radius, radius + 1):
        n = centre + float(i)
        up, down = step(x - n + 0.5, softness, mode), step(x - n - 0.5, softness, mode)
        y = y + n * (up - down)
    return y


@soft(PAULUS, lambda x, low, high: m.minimum(m.maximum(x, low), high))
def soft_clip(
    x: Tensor,
    low: Tensor,
    high: Tensor,
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    gated: bool = False,
) -> Tensor:
    """x clipped to two bounds, which get gradients."""
    return low + ramp(x - low, softness, mode, gated) - ramp(x - high, softness, mode, gated)


# --- comparisons, as numbers ------------------------------------------------------------------


@soft(PAULUS, lambda x, y: x > y)
def soft_greater(
    x: Tensor, y: Tensor, softness: Positive = 0.1, mode: Mode = "smooth", epsilon: Small = 1e-10
) -> Tensor:
    """1 where x > y, else 0; the slope of a smooth step of x - y."""
    return step(x - y - epsilon, softness, mode)


@soft(PAULUS, lambda x, y: x >= y)
def soft_greater_equal(
    x: Tensor, y: Tensor, softness: Positive = 0.1, mode: Mode = "smooth", epsilon: Small = 1e-10
) -> Tensor:
    """1 where x >= y, else 0; the slope of a smooth step of x - y."""
    return step(x - y + epsilon, softness, mode)


@soft(PAULUS, lambda x, y: x < y)
def soft_less(
    x: Tensor, y: Tensor, softness: Positive = 0.1, mode: Mode = "smooth", epsilon: Small = 1e-10
) -> Tensor:
    """1 where x < y, else 0; the slope of a smooth step of y - x."""
    return 1.0 - step(x - y + epsilon, softness, mode)


@soft(PAULUS, lambda x, y: x <= y)
def soft_less_equal(
    x: Tensor, y: Tensor, softness: Positive = 0.1, mode: Mode = "smooth", epsilon: Small = 1e-10
) -> Tensor:
    """1 where x <= y, else 0; the slope of a smooth step of y - x."""
    return 1.0 - step(x - y - epsilon, softness, mode)


@soft(PAULUS, lambda x, y: m.cast(x == y, x.dtype))
def soft_equal(
    x: Tensor, y: Tensor, softness: Positive = 0.1, mode: Mode = "smooth", epsilon: Small = 1e-10
) -> Tensor:
    """1 where x == y, else 0; twice a smooth step of -|x - y|."""
    return 2.0 - 2.0 * step(_soft_abs(x - y, softness, mode) - epsilon, softness, mode)


@soft(PAULUS, lambda x, y: m.cast(x != y, x.dtype))
def soft_not_equal(
    x: Tensor, y: Tensor, softness: Positive = 0.1, mode: Mode = "smooth", epsilon: Small = 1e-10
) -> Tensor:
    """1 where x != y, else 0; 1 - soft_equal(x, y)."""
    return 2.0 * step(_soft_abs(x - y, softness, mode) - epsilon, softness, mode) - 1.0


@soft(PAULUS, lambda x, y, rtol, atol: m.abs(x - y) <= atol + rtol * m.abs(y))
def soft_isclose(
    x: Tensor,
    y: Tensor,
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    rtol: NonNegative = 1e-5,
    atol: NonNegative = 1e-8,
    epsilon: NonNegative = 1e-10,
) -> Tensor:
    """1 where x and y are close, else 0; twice a smooth step."""
    far = _soft_abs(x - y, softness, mode) - (atol + rtol * _soft_abs(y, softness, mode))
    return 2.0 - 2.0 * step(far - epsilon, softness, mode)


@formula(PAULUS)
def logical_and_soft(x: Tensor, y: Tensor) -> Tensor:
    """x y, of probabilities."""
    return x * y


@formula(PAULUS)
def logical_or_soft(x: Tensor, y: Tensor) -> Tensor:
    """1 - (1 - x) (1 - y), of probabilities."""
    return 1.0 - (1.0 - x) * (1.0 - y)


@formula(PAULUS)
def logical_xor_soft(x: Tensor, y: Tensor) -> Tensor:
    """x but not y, or y but not x, of probabilities."""
    return 1.0 - (1.0 - x * (1.0 - y)) * (1.0 - (1.0 - x) * y)


# --- orders -----------------------------------------------------------------------------------

Method = Literal["softsort", "neuralsort"]
Sort = Literal["softsort", "neuralsort", "fast_soft_sort"]
SORTS = (
    "Prillo and Eisenschlos 2020, SoftSort; Grover et al. 2019, Stochastic optimization of sorting "
    "networks via continuous relaxations; Blondel et al. 2020, Fast differentiable sorting and "
    "ranking"
)
TRAPS = "standardised: x is standardised and squashed first, so the gradient is not the paper's"


def _spread(x: Tensor, standardised: bool) -> Tensor:
    """x in (0, 1): a logistic function of what is standardised along the last axis."""
    if not standardised:
        return x
    far = x - m.mean(x, -1, keepdims=True)
    return m.sigmoid(far / m.sqrt(m.mean(m.square(far), -1, keepdims=True) + 1e-6))


def _to_simplex(x: Tensor, softness: Positive, mode: str) -> Any:
    """Probabilities along the last axis."""
    x = x / softness
    if mode == "smooth":
        return m.softmax(x, axis=-1)
    if mode == "c0":
        return sparsemax(x)
    return entmax15(2.0 * x) if mode == "c1" else entmax(3.0 * x, 4 / 3)


def _distance(a: Tensor, x: Tensor) -> Tensor:
    """|a_i - x_j|, whose slope at 0 is 1."""
    far = a[..., :, None] - x[..., None, :]
    return m.where(far >= 0, far, -far)


def _neural(x: Tensor, ranks: Any, softness: Positive, mode: str) -> Tensor:
    """The scores of neuralsort for places, counted from 1 for the least."""
    n = m.length(x)
    total = m.sum(_soft_abs(x[..., :, None] - x[..., None, :], softness, mode), -2)
    factors = m.as_tensor([float(n + 1 - 2 * i) for i in ranks], x.dtype)
    return -(factors[:, None] * x[..., None, :] + total[..., None, :])


def permutation(
    x: Tensor, softness: Positive, mode: str, method: str, ranks: Any, standardised: bool
) -> Tensor:
    """Probabilities (..., places, n) of the elements for places, counted from 1 for the least."""
    x = _spread(x, standardised)
    if method == "softsort":
        ordered = m.sort(x, axis=-1)
        at = m.take(ordered, m.as_tensor([i - 1 for i in ranks]), axis=-1)
        return _to_simplex(-_distance(at, x), softness, mode)
    return _to_simplex(_neural(x, ranks, softness, mode), softness, mode)


def _upwards(n: int, descending: bool) -> list[int]:
    return list(range(n, 0, -1) if descending else range(1, n + 1))


def _expected(p: Tensor, x: Tensor, axis: int) -> Tensor:
    return m.moveaxis(m.sum(p * x[..., None, :], -1), -1, axis)


def _hard_sort(x: Tensor, axis: int, descending: bool) -> Tensor:
    ordered = m.sort(x, axis=axis)
    return m.flip(ordered, axis=axis) if descending else ordered


def _fast_sort(x: Tensor, softness: Positive, mode: str, standardised: bool) -> Tensor:
    """By a projection of evenly spaced places, upwards."""
    n = m.length(x)
    anchors = m.as_tensor([i / max(n - 1, 1) for i in range(n)], x.dtype) / softness
    y = permutahedron(anchors + 0.0 * x, _spread(x, standardised), mode)
    if not standardised:
        return y
    least = 1e-10 if x.dtype == "float64" else 1e-6
    y = m.minimum(m.maximum(y, least), 1.0 - least)
    mean = m.mean(x, -1, keepdims=True)
    deviation = m.sqrt(m.mean(m.square(x - mean), -1, keepdims=True) + 1e-6)
    return m.log(y / (1.0 - y)) * deviation + mean


@soft(SORTS, _hard_sort, traps=TRAPS)
def soft_sort(
    x: Tensor,
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    method: Sort = "neuralsort",
    standardised: bool = True,
    descending: bool = False,
    axis: Axis = -1,
) -> Tensor:
    """x sorted along an axis; backward, an expected value for each position."""
    last = m.moveaxis(x, axis, -1)
    if method == "fast_soft_sort":
        y = _fast_sort(last, softness, mode, standardised)
        return m.moveaxis(m.flip(y, axis=-1) if descending else y, -1, axis)
    ranks = _upwards(m.length(last), descending)
    return _expected(permutation(last, softness, mode, method, ranks, standardised), last, axis)


def _hard_rank(x: Tensor, axis: int, descending: bool) -> Tensor:
    order = m.argsort(-x if descending else x, axis=axis)
    return m.argsort(order, axis=axis) + 1


@soft(SORTS, _hard_rank, traps=f"{TRAPS}; ranks count from the largest")
def soft_rank(
    x: Tensor,
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    method: Sort = "neuralsort",
    standardised: bool = True,
    descending: bool = True,
    axis: Axis = -1,
) -> Tensor:
    """The rank of each element along an axis, from 1; backward, an expected rank."""
    last = m.moveaxis(x, axis, -1)
    n = m.length(last)
    ranks = _upwards(n, descending)
    places = m.as_tensor([float(i + 1) for i in range(n)], x.dtype)
    if method == "fast_soft_sort":
        z = (-1.0 if descending else 1.0) * _spread(last, standardised) / softness
        scale = float(max(n - 1, 1))
        return m.moveaxis(permutahedron(z, places / scale + 0.0 * z, mode) * scale, -1, axis)
    if method == "softsort":
        u = _spread(last, standardised)
        ordered = _hard_sort(u, -1, descending)
        p = _to_simplex(-_distance(u, ordered), softness, mode)
        return m.moveaxis(m.sum(p * places, -1), -1, axis)
    p = permutation(last, softness, mode, method, ranks, standardised)
    share = m.maximum(m.sum(p, -2), 1e-10)
    return m.moveaxis(m.sum(p * places[:, None], -2) / share, -1, axis)


def _hot(places: Tensor, x: Tensor, axis: int) -> Tensor:
    return m.cast(m.one_hot(places, m.length(x, axis)), x.dtype)


@soft(SORTS, lambda x: _hot(m.argsort(x, axis=-1), x, -1), traps=TRAPS)
def soft_argsort(
    x: Tensor,
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    method: Method = "neuralsort",
    standardised: bool = True,
) -> Tensor:
    """The permutation matrix (..., n, n) that sorts x along its last axis."""
    return permutation(x, softness, mode, method, _upwards(m.length(x), False), standardised)


def _argmax(x: Tensor, softness: Positive, mode: str, method: str, standardised: bool) -> Tensor:
    if method == "softsort":
        return _to_simplex(_spread(x, standardised), softness, mode)
    n = m.length(x)
    return permutation(x, softness, mode, method, [n], standardised)[..., 0, :]


@soft(SORTS, lambda x: _hot(m.argmax(x, -1), x, -1), traps=TRAPS)
def soft_argmax(
    x: Tensor,
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    method: Method = "softsort",
    standardised: bool = True,
) -> Tensor:
    """One where x is largest along its last axis; backward, probabilities."""
    return _argmax(x, softness, mode, method, standardised)


@soft(SORTS, lambda x: m.max(x, -1), traps=TRAPS)
def soft_max(
    x: Tensor,
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    method: Method = "softsort",
    standardised: bool = True,
) -> Tensor:
    """The largest along the last axis; backward, an expected value."""
    return m.sum(_argmax(x, softness, mode, method, standardised) * x, -1)


def _hard_top_k(x: Tensor, k: int) -> Tensor:
    return m.topk(x, k)[0]


@soft(SORTS, _hard_top_k, traps=TRAPS)
def soft_top_k(
    x: Tensor,
    k: Count,
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    method: Method = "neuralsort",
    standardised: bool = True,
) -> Tensor:
    """The k largest along the last axis, downwards; backward, expected values."""
    n = m.length(x)
    p = permutation(x, softness, mode, method, range(n, n - k, -1), standardised)
    return _expected(p, x, -1)


def _at_quantile(x: Tensor, q: Tensor, of_place: Any) -> Tensor:
    """Between two places; of_place gives what stands at integer places."""
    n = m.length(x)
    place = m.clip(q, 0.0, 1.0) * float(n - 1)
    low = m.stop_gradient(m.floor(place))
    part = place - low
    hot = [
        m.cast(m.one_hot(m.cast(i, "int64"), n), x.dtype)
        for i in (low, m.minimum(low + 1.0, n - 1.0))
    ]
    values = of_place(x)
    below, above = [m.sum(values * h, -1) for h in hot]
    return (1.0 - part) * below + part * above


@soft(SORTS, lambda x, q: _at_quantile(x, q, lambda x: m.sort(x, axis=-1)), traps=TRAPS)
def soft_quantile(
    x: Tensor,
    q: Annotated[Tensor, PROBABILITY],
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    method: Method = "neuralsort",
    standardised: bool = True,
) -> Tensor:
    """A quantile of the last axis, interpolated; q, in [0, 1], gets a gradient."""

    def sorted_softly(x: Tensor) -> Tensor:
        ranks = _upwards(m.length(x), False)
        return _expected(permutation(x, softness, mode, method, ranks, standardised), x, -1)

    return _at_quantile(x, q, sorted_softly)


def _middle(x: Tensor) -> list[int]:
    n = m.length(x)
    return [(n + 1) // 2] if n % 2 else [n // 2, n // 2 + 1]


@soft(
    SORTS,
    lambda x: sum(m.sort(x, axis=-1)[..., i - 1] for i in _middle(x)) / float(len(_middle(x))),
    traps=TRAPS,
)
def soft_median(
    x: Tensor,
    softness: Positive = 0.1,
    mode: Mode = "smooth",
    method: Sort = "neuralsort",
    standardised: bool = True,
) -> Tensor:
    """The median of the last axis; backward, an expected value."""
    if method == "fast_soft_sort":
        y = _fast_sort(x, softness, mode, standardised)
        return m.mean(m.stack([y[..., i - 1] for i in _middle(x)]), 0)
    p = permutation(x, softness, mode, method, _middle(x), standardised)
    return m.mean(_expected(p, x, -1), -1)


__all__ = ["logical_and_soft", "logical_or_soft", "logical_xor_soft", "soft_abs", "soft_argmax"]
__all__ += ["soft_argsort", "soft_clip", "soft_equal", "soft_greater", "soft_greater_equal"]
__all__ += ["soft_heaviside", "soft_isclose", "soft_less", "soft_less_equal", "soft_max"]
__all__ += ["soft_median", "soft_not_equal", "soft_quantile", "soft_rank", "soft_relu"]
__all__ += ["soft_round", "soft_sign", "soft_sort", "soft_top_k"]
