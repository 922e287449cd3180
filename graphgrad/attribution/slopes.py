"""Methods that are gradients: of one point, of many, and through ReLUs that let less pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.domains import ANY, FROM_ONE, FROM_ZERO, NON_NEGATIVE
from ..base.errors import GradientError
from ..differentiate.gradients import gradients
from ..ir.types import Array
from ..ops.demands import within
from ..rules.zoo.saliency import deconvnet as deconvnet_rule
from ..rules.zoo.saliency import guided as guided_rule
from .explained import Explained
from .found import Found


def gradient(asked: Explained) -> Found:
    """The derivative of the score."""
    return Found(_slopes(asked))


def saliency(asked: Explained) -> Found:
    """The magnitude of the derivative."""
    return Found({name: np.abs(dx) for name, dx in _slopes(asked).items()})


def input_times_gradient(asked: Explained) -> Found:
    """The input times the derivative."""
    return Found({name: asked.arrays[name] * dx for name, dx in _slopes(asked).items()})


def guided_backprop(asked: Explained, activations: Sequence[str] = ("Relu",)) -> Found:
    """The derivative, through ReLUs that pass positive gradients of active units alone."""
    return Found(_slopes(asked, {name: guided_rule() for name in _there(asked, activations)}))


def deconvnet(asked: Explained, activations: Sequence[str] = ("Relu",)) -> Found:
    """The derivative, through ReLUs that pass positive gradients alone."""
    return Found(_slopes(asked, {name: deconvnet_rule() for name in _there(asked, activations)}))


def integrated_gradients(asked: Explained, baseline: Any = 0.0, steps: int = 50) -> Found:
    """The way from a baseline times the mean of the derivative along it."""
    FROM_ONE("steps", steps)
    starts = baselines(asked, baseline)
    places, weights = np.polynomial.legendre.leggauss(steps)
    slopes = _compiled_slopes(asked)
    total = {name: np.zeros_like(x) for name, x in asked.arrays.items()}
    for at, weight in zip((places + 1) / 2, weights / 2, strict=True):
        point = {n: (b + at * (asked.arrays[n] - b)).astype(b.dtype) for n, b in starts.items()}
        for name, dx in slopes(point).items():
            total[name] += weight * dx
    attributions = {n: ((asked.arrays[n] - starts[n]) * dx) for n, dx in total.items()}
    return Found(attributions, balance_from(asked, attributions, starts))


def smoothgrad(
    asked: Explained, samples: int = 50, stdev: float | None = None, seed: int = 0
) -> Found:
    """The mean of the derivative at points around the input."""
    FROM_ONE("samples", samples)
    NON_NEGATIVE.if_given("stdev", stdev)
    FROM_ZERO("seed", seed)
    rng, slopes = np.random.default_rng(seed), _compiled_slopes(asked)
    total = {name: np.zeros_like(x) for name, x in asked.arrays.items()}
    for _ in range(samples):
        point = {}
        for name, x in asked.arrays.items():
            spread = 0.15 * np.ptp(x) if stdev is None else stdev
            point[name] = (x + rng.normal(scale=spread, size=x.shape)).astype(x.dtype)
        for name, dx in slopes(point).items():
            total[name] += dx / samples
    return Found(total)


def _slopes(asked: Explained, overrides: Any = None) -> dict[str, Array]:
    slopes: dict[str, Array] = _compiled_slopes(asked, overrides)({})
    return slopes


def _compiled_slopes(asked: Explained, overrides: Any = None) -> Any:
    """A function of {name: array} that gives the derivative by each input."""
    with asked.graph:
        dxs = gradients(
            asked.score, list(asked.xs.values()), unconnected="zero", overrides=overrides or {}
        )
    run = asked.compiled(dxs)
    return lambda point: dict(zip(asked.xs, run(**point), strict=True))


def _there(asked: Explained, activations: Sequence[str]) -> list[str]:
    """The op types that the graph has; GradientError where it has none of them."""
    types = {node.type for node in asked.graph.nodes}
    op_types = [name for name in activations if name in types]
    if not op_types:
        raise GradientError(
            f"the model has no {' and no '.join(activations)}, the op types that the method "
            "replaces, so the result would be the plain gradient. Name other op types with "
            "activations="
        )
    return op_types


def baselines(asked: Explained, baseline: Any) -> dict[str, Array]:
    """The baseline of each input, an array of its shape and dtype."""
    given = baseline if isinstance(baseline, dict) else dict.fromkeys(asked.xs, baseline)
    if given.keys() != asked.xs.keys():
        raise GradientError(
            f"baseline= takes an entry for each of {list(asked.xs)}, got {list(given)}"
        )
    for value in given.values():
        within(ANY, "baseline", value)
    return {
        name: np.broadcast_to(np.asarray(given[name], x.dtype), x.shape)
        for name, x in asked.arrays.items()
    }


def balance_from(
    asked: Explained, attributions: dict[str, Array], starts: dict[str, Array]
) -> dict[str, float]:
    """What was to be attributed, the change of the score from the baselines, and what was."""
    run = asked.compiled(asked.score)
    change = float(np.sum(run()) - np.sum(run(**starts)))
    attributed = float(sum(a.sum() for a in attributions.values()))
    return {"score": change, "attributed": attributed, "rest": change - attributed}
