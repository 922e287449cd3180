"""Rules that are right on average: means over many seeds, with their standard errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..ir.node import Tensor
from ..ir.program import needed
from ..ops.random.draws import Draw
from .target import Evaluator, flat
from .trial import Trial

DRAWS = 4000
STEP = 0.1
ERRORS = 5.0


def seeds_of(trial: Trial) -> list[Tensor]:
    """The seeds of everything random that the site or the rule reads, apart from its inputs."""
    target = trial.target
    dxs = [d for d in trial.dxs if d is not None]
    nodes = needed([*target.inputs, *trial.dys], [*target.outputs, *dxs])
    seeds = [n.inputs[0] for n in nodes if isinstance(n.op, Draw)]
    return [t for t in dict.fromkeys(seeds) if t not in set(target.inputs)]


def seed_inputs(trial: Trial) -> list[int]:
    """The places of inputs that are seeds."""
    nodes = needed(trial.target.inputs, trial.target.outputs)
    read = {n.inputs[0] for n in nodes if isinstance(n.op, Draw)}
    return [i for i, t in enumerate(trial.target.inputs) if t in read]


def check_estimator(trial: Trial) -> None:
    """The mean of <rule, v> against the mean slope along v, over the same seeds, at one point."""
    seeds, places = seeds_of(trial), seed_inputs(trial)
    if not seeds and not places:
        trial.report.note(
            "nothing random is read, so there is no mean to compare with: only shapes, missing "
            "gradients and linearity were checked"
        )
        return
    drawn = _Drawn(trial, seeds, places)
    point = trial.points[0]
    grads = [drawn.gradients(point, k) for k in range(DRAWS)]
    for k, x in enumerate(trial.target.xs):
        mine = np.array([flat([g[k]]) for g in grads])
        v = _direction(trial, mine.mean(axis=0))
        i = drawn.place[x]
        step = np.asarray(STEP * v.reshape(point[i].shape)).astype(point[i].dtype)
        right, left = ([*point[:i], point[i] + s * step, *point[i + 1 :]] for s in (1, -1))
        slopes = [(drawn.value(right, n) - drawn.value(left, n)) / (2 * STEP) for n in range(DRAWS)]
        _compare_means(trial, x, np.array(slopes), mine @ v)
    trial.report.checked.append(f"mean over {DRAWS} draws")


class _Drawn:
    """Outputs and gradients for one draw of everything random."""

    def __init__(self, trial: Trial, seeds: list[Tensor], places: list[int]) -> None:
        target = trial.target
        dxs = [d for d in trial.dxs if d is not None]
        self.place = {t: i for i, t in enumerate(target.inputs)}
        self._seeds, self._places = len(seeds), set(places)
        self._dys = trial.seeds(0)
        self._weights = flat(self._dys)
        self._present = [d is not None for d in trial.dxs]
        self._xs = [self.place[x] for x in target.xs]
        fed = [*target.inputs, *trial.dys, *seeds]
        self._forward = Evaluator(fed, target.ys, trial.held, trial.rng)
        self._backward = Evaluator(fed, dxs, trial.held, trial.rng)

    def _fed(self, point: Sequence[Any], draw: int) -> list[Any]:
        given = [draw if i in self._places else a for i, a in enumerate(point)]
        return [*given, *self._dys, *[draw + 7919 * k for k in range(self._seeds)]]

    def value(self, point: Sequence[Any], draw: int) -> float:
        """<dys, outputs>."""
        return float(self._weights @ flat(self._forward(self._fed(point, draw))))

    def gradients(self, point: Sequence[Any], draw: int) -> list[Any]:
        """What the rule gives for each floating input."""
        dxs = iter(self._backward(self._fed(point, draw)))
        return [
            next(dxs) if here else np.zeros_like(point[i])
            for i, here in zip(self._xs, self._present, strict=True)
        ]


def _direction(trial: Trial, gradient: Any) -> Any:
    """A direction in which the parts of a gradient do not cancel."""
    signs = np.where(gradient == 0, trial.rng.choice([-1.0, 1.0], gradient.shape), gradient)
    return np.sign(signs) * trial.rng.uniform(0.5, 1.0, gradient.shape)


def _compare_means(trial: Trial, x: Tensor, slopes: Any, gradients: Any) -> None:
    difference = gradients - slopes
    error = ERRORS * float(np.std(difference)) / np.sqrt(DRAWS)
    allowed = error + 0.02 * max(abs(float(np.mean(slopes))), abs(float(np.mean(gradients))))
    if abs(float(np.mean(difference))) > allowed + 1e-9:
        trial.find(
            "truth",
            f"the mean gradient of {x.name} over {DRAWS} draws, along a random direction, is not "
            "the derivative of the mean",
            expected=float(np.mean(slopes)),
            got=float(np.mean(gradients)),
        )
