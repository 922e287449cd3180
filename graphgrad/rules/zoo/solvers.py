"""Solvers as layers: `solve` is a function of costs (..., n) that returns tensors, asked again."""

from __future__ import annotations

from math import pi
from typing import Any, Literal

from ...ir.node import Tensor
from ..implicit import fixed_point
from . import maths as m
from .needs import shapes
from .row import Count, Draw, Function, NonNegative, Positive, Solver
from .rows import formula, learned, pulled, soft

FAMILY = "solvers"
SAMPLES = shapes(x="... n", noise="... samples n", target="... n")
BERTHET = "Berthet et al. 2020, Learning with differentiable perturbed optimizers"
TANG = "Tang and Khalil 2022, PyEPO, for what it adds to the strength"


@pulled(
    f"Vlastelica et al. 2020, Differentiation of blackbox combinatorial solvers; {TANG}",
    lambda x, solve: solve(x),
    linear=False,
    contract="estimator",
)
def interpolated(
    dy: Tensor, x: Tensor, solve: Solver, strength: Positive = 10.0, epsilon: NonNegative = 0.0
) -> Tensor:
    """The solution; backward, its change if the costs are moved along the gradient."""
    return (solve(x + strength * dy) - solve(x)) / (strength + epsilon)


@learned(
    "Sahoo et al. 2023, Backpropagation through combinatorial algorithms: identity with projection "
    "works",
    lambda x, solve: solve(x),
)
def identity_solver(
    x: Tensor, solve: Solver, sense: Literal["argmin", "argmax"] = "argmin"
) -> Tensor:
    """The solution; backward, -dy of an argmin, dy of an argmax."""
    return m.ones_like(x) * (-1.0 if sense == "argmin" else 1.0)


def _moved(x: Tensor, noise: Tensor, sigma: Positive) -> Tensor:
    return m.expand_dims(x, -2) + sigma * noise


def _scores(ys: Tensor, dy: Tensor, baseline: str, centre: Any) -> Tensor:
    """What each solution is worth to the gradient, less a baseline."""
    worth = m.sum(ys * m.expand_dims(dy, -2), -1, keepdims=True)
    n = m.length(ys, -2)
    if baseline == "others":
        return (worth - m.mean(worth, -2, keepdims=True)) * (n / (n - 1.0))
    if baseline == "centre":
        return worth - m.expand_dims(m.sum(centre() * dy, -1, keepdims=True), -2)
    return worth


@pulled(
    BERTHET,
    lambda x, noise, solve, sigma: m.mean(solve(_moved(x, noise, sigma)), -2),
    contract="estimator",
    needs=(SAMPLES,),
    traps='pyepo has a leave-one-out baseline ("others"), jaxopt that of the unmoved costs '
    '("centre")',
)
def perturbed(
    dy: Tensor,
    x: Tensor,
    noise: Draw,
    solve: Solver,
    sigma: Positive = 1.0,
    density: Literal["normal", "gumbel"] = "normal",
    baseline: Literal["none", "others", "centre"] = "none",
) -> Tensor:
    """The mean solution for costs moved by noise (..., samples, n)."""
    scores = _scores(solve(_moved(x, noise, sigma)), dy, baseline, lambda: solve(x))
    way = noise if density == "normal" else 1.0 - m.exp(-noise)
    return m.mean(scores * way, -2) / sigma


def _times(x: Tensor, noise: Tensor, sigma: Positive) -> Tensor:
    return m.expand_dims(x, -2) * m.exp(sigma * noise - 0.5 * sigma**2)


@pulled(
    "Dalle et al. 2022, Learning with combinatorial optimization layers",
    lambda x, noise, solve, sigma: m.mean(solve(_times(x, noise, sigma)), -2),
    contract="estimator",
    needs=(SAMPLES,),
)
def perturbed_times(
    dy: Tensor,
    x: Tensor,
    noise: Draw,
    solve: Solver,
    sigma: Positive = 1.0,
    baseline: Literal["none", "others", "centre"] = "none",
) -> Tensor:
    """The mean solution for costs times exp(sigma noise - sigma**2 / 2)."""
    scores = _scores(solve(_times(x, noise, sigma)), dy, baseline, lambda: solve(x))
    return m.mean(scores * noise, -2) / (sigma * x)


def _fenchel_young(x: Tensor, noise: Tensor, target: Tensor, solve: Any, sigma: Any) -> Tensor:
    at = _moved(x, noise, sigma)
    return m.sum(x * target, -1) - m.mean(m.sum(at * solve(at), -1), -1)


@pulled(
    f"{BERTHET}; Blondel, Martins, Niculae 2020, Learning with Fenchel-Young losses",
    lambda x, noise, target, solve, sigma, sense: (
        _fenchel_young(x, noise, target, solve, sigma) * (1.0 if sense == "argmin" else -1.0)
    ),
    contract="estimator",
    needs=(SAMPLES,),
)
def fenchel_young(
    dy: Tensor,
    x: Tensor,
    noise: Draw,
    target: Draw,
    solve: Solver,
    sigma: Positive = 1.0,
    sense: Literal["argmin", "argmax"] = "argmin",
) -> Tensor:
    """The excess cost of a target over noisy solutions; backward, the target minus their mean."""
    way = target - m.mean(solve(_moved(x, noise, sigma)), -2)
    return m.expand_dims(dy, -1) * (way if sense == "argmin" else -way)


@pulled(
    "Niepert, Minervini, Franceschi 2021, Implicit MLE: backpropagating through discrete "
    f"exponential family distributions; {TANG}",
    lambda x, noise, solve, sigma: m.mean(solve(_moved(x, noise, sigma)), -2),
    linear=False,
    contract="estimator",
    needs=(SAMPLES,),
)
def imle(
    dy: Tensor,
    x: Tensor,
    noise: Draw,
    solve: Solver,
    sigma: Positive = 1.0,
    strength: Positive = 10.0,
    two_sides: bool = False,
    epsilon: NonNegative = 0.0,
) -> Tensor:
    """The mean solution for noisy costs; backward, its change along the gradient."""
    at, way = _moved(x, noise, sigma), m.expand_dims(strength * dy, -2)
    ahead, behind = solve(at + way), solve(at - way) if two_sides else solve(at)
    far = 2.0 * strength if two_sides else strength
    return m.mean(ahead - behind, -2) / (far + epsilon)


@pulled(
    "Minervini, Franceschi, Niepert 2023, Adaptive perturbation-based gradient estimation for "
    "discrete latent variable models",
    lambda x, noise, solve, sigma: m.mean(solve(_moved(x, noise, sigma)), -2),
    linear=False,
    contract="estimator",
    needs=(SAMPLES,),
    traps="the authors' program has one strength for a batch, and lets alpha rise until as many "
    "elements change as there are examples",
)
def aimle(
    dy: Tensor,
    x: Tensor,
    noise: Draw,
    solve: Solver,
    sigma: Positive = 1.0,
    alpha: Positive = 1.0,
    two_sides: bool = True,
) -> Tensor:
    """Like `imle`, with a strength of alpha times the norm of costs over that of the gradient."""
    lengths = [m.sqrt(m.sum(m.square(t), -1, keepdims=True)) for t in (x, dy)]
    strength = alpha * lengths[0] / m.where(lengths[1] > 0, lengths[1], 1.0)
    at, way = _moved(x, noise, sigma), m.expand_dims(strength * dy, -2)
    ahead, behind = solve(at + way), solve(at - way) if two_sides else solve(at)
    far = 2.0 * strength if two_sides else strength
    return m.mean(ahead - behind, -2) / m.where(far > 0, far, 1.0)


def _spo(x: Tensor, cost: Tensor, solution: Tensor, objective: Tensor, solve: Any) -> Tensor:
    moved = 2.0 * x - cost
    return 2.0 * m.sum(x * solution, -1) - m.sum(moved * solve(moved), -1) - objective[..., 0]


@pulled(
    "Elmachtoub and Grigas 2022, Smart predict, then optimize",
    _spo,
    needs=(shapes(x="... n", cost="... n", solution="... n", objective="... 1"),),
)
def spo_plus(
    dy: Tensor, x: Tensor, cost: Draw, solution: Draw, objective: Draw, solve: Solver
) -> Tensor:
    """The loss of predicted costs x; true costs, their solution and its objective (..., 1)."""
    return 2.0 * (solution - solve(2.0 * x - cost)) * m.expand_dims(dy, -1)


@soft(
    "Suh et al. 2022, Bundled gradients through contact via randomized smoothing",
    lambda x, f: f(x),
    needs=(SAMPLES,),
)
def bundled(x: Tensor, noise: Draw, f: Function, sigma: Positive = 1.0) -> Tensor:
    """f of x (..., n); backward, the mean gradient at x and noise (..., samples, n)."""
    return m.mean(f(_moved(x, noise, sigma)), -2)


@pulled(
    "Chen, Amos, Nickel 2021, Learning neural event functions for ordinary differential equations",
    lambda time: m.identity(time),
    contract="exact",
    needs=(shapes(x="... n", time="..."),),
)
def event_time(dy: Tensor, x: Tensor, time: Draw, event: Function, f: Function) -> Tensor:
    """When event(time, x) is 0 for states x (..., n) of dx/dt = f(time, x), found elsewhere."""
    at, t = m.identity(x), m.identity(time)
    slopes = m.gradients(event(t, at), [at, t], overrides={}, unconnected="zero")
    rate = slopes[1] + m.sum(slopes[0] * f(time, x), -1)
    return -m.expand_dims(dy / rate, -1) * slopes[0]


@formula("Fung et al. 2022, JFB: Jacobian-free backpropagation for implicit networks")
def jacobian_free(start: Draw, f: Function) -> Tensor:
    """The fixed point z = f(z); backward, the gradient of one application of f."""
    return f(m.stop_gradient(fixed_point(f, start)))


@formula("Geng et al. 2021, On training implicit models")
def phantom(start: Draw, f: Function, layers: Count = 5, damping: Positive = 0.5) -> Tensor:
    """The fixed point z = f(z); backward, some damped steps from it."""
    z = m.stop_gradient(fixed_point(f, start))
    for _ in range(layers):
        z = (1.0 - damping) * z + damping * f(z)
    return z


# --- sorting networks -------------------------------------------------------------------------

Distribution = Literal["cauchy", "logistic", "logistic_phi", "gaussian", "reciprocal", "optimal"]


def _less(v: Tensor, distribution: str, steepness: Positive, phi: Positive) -> Tensor:
    """The probability that a <= b, v being b - a."""
    u = steepness * v
    if distribution == "logistic":
        return m.sigmoid(u)
    if distribution == "logistic_phi":
        return m.sigmoid(u / (m.abs(v) + 1e-10) ** phi)
    if distribution == "gaussian":
        return 0.5 + 0.5 * m.erf(u / 2.0**0.5)
    if distribution == "reciprocal":
        return 0.5 * (u / (2.0 + m.abs(u)) + 1.0)
    if distribution == "cauchy":
        return m.arctan(u) / pi + 0.5
    outside = m.sign(u) * (0.5 - 1.0 / (16.0 * m.maximum(m.abs(u), 0.25)))
    return 0.5 + m.where(m.abs(u) <= 0.25, u, outside)


def _swaps(n: int, network: str) -> list[tuple[int, int, int, int]]:
    """Of each swap the two places that are compared, and those of the lesser and the larger."""
    if network == "odd_even":
        return [(i, i + 1, i, i + 1) for turn in range(n) for i in range(turn % 2, n - 1, 2)]
    blocks, swaps = (n - 1).bit_length(), []
    missing = 2**blocks - n
    for block in range(blocks):
        for apart in (2**k for k in range(block, -1, -1)):
            for i in range(2**blocks):
                a, b = i - missing, i + apart - missing
                if i // apart % 2 == 0 and a >= 0:
                    turned = i // 2 ** (block + 1) % 2 == 1
                    swaps.append((a, b, b, a) if turned else (a, b, a, b))
    return swaps


@formula("Petersen et al. 2021, Differentiable sorting networks; 2022, Monotonic ones")
def sorting_network(
    x: Tensor,
    distribution: Distribution = "cauchy",
    steepness: Positive = 10.0,
    phi: Positive = 0.25,
    network: Literal["odd_even", "bitonic"] = "odd_even",
) -> tuple[Tensor, ...]:
    """x (..., n) sorted by soft swaps, and the permutation (..., n, n)."""
    n = m.length(x)
    columns = [x[..., i] for i in range(n)]
    one = m.eye(n, dtype=x.dtype)
    parts = [one[i] + 0.0 * x for i in range(n)]
    for i, k, least, most in _swaps(n, network):
        a, b = columns[i], columns[k]
        p = _less(b - a, distribution, steepness, phi)
        columns[least], columns[most] = p * a + (1.0 - p) * b, (1.0 - p) * a + p * b
        q, low, high = p[..., None], parts[i], parts[k]
        parts[least], parts[most] = q * low + (1.0 - q) * high, (1.0 - q) * low + q * high
    return m.stack(columns, axis=-1), m.stack(parts, axis=-1)


__all__ = ["bundled", "fenchel_young", "identity_solver", "imle", "interpolated", "jacobian_free"]
__all__ += ["aimle", "event_time", "perturbed", "phantom"]
__all__ += ["perturbed_times", "sorting_network", "spo_plus"]
