"""First order: the rule against the derivative that its contract names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.kinds import is_floating
from ..ir.node import Tensor
from ..ir.types import Array
from .differences import along_direction, partials, slope
from .estimate import check_estimator
from .target import flat
from .trial import Trial
from .truth import Truth

FULL = 64
"""Up to so many entries of inputs, and of outputs, the whole Jacobian is compared."""
HINT = (
    "If the rule is meant to differ, let it declare what it is: contract=gg.surrogate_of(f), "
    'gg.scaled(s), "stop", "estimator", "attribution" or "policy".'
)


def check_first_order(trial: Trial) -> None:
    """A finding where the rule is not that derivative."""
    if trial.kind in ("attribution", "policy"):
        trial.report.note(f"no derivative is compared: the rule is declared {trial.kind!r}")
    elif trial.kind == "stop":
        _check_stop(trial)
    elif trial.kind == "estimator":
        check_estimator(trial)
    else:
        try:
            truth = Truth(trial.target, trial.contract, trial.held, trial.rng)
        except Exception as error:
            trial.find("error", f"surrogate_of(f): {type(error).__name__}: {error}")
            return
        _FirstOrder(trial, truth).run()


def _check_stop(trial: Trial) -> None:
    for i, point in enumerate(trial.points):
        for x, dx in zip(trial.target.xs, trial.backward(point, trial.seeds(i)), strict=True):
            what = f'the rule is declared "stop" but a gradient flows to {x.name}'
            trial.compare("truth", what, np.zeros_like(dx), dx)
    trial.report.checked.append("zero gradients")


class _FirstOrder:
    """A rule beside the truth.

    wrong     inputs whose gradient was found to be wrong
    compared  inputs for which differences could be trusted somewhere
    masked    whether some of the Jacobian could not be trusted at the last point
    """

    def __init__(self, trial: Trial, truth: Truth) -> None:
        self.trial = trial
        self.truth = truth
        self.wrong: set[Tensor] = set()
        self.compared: set[Tensor] = set()
        self.masked = False

    def run(self) -> None:
        """The whole Jacobian where it is small; random directions at every point."""
        for i, point in enumerate(self.trial.points):
            try:
                f = self.truth.at(point)
            except Exception as error:
                self.trial.find("error", f"surrogate_of(f): {type(error).__name__}: {error}")
                return
            sizes = [self._size(point), flat(self.trial.seeds(i)).size]
            if (i == 0 or self.masked) and max(sizes) <= FULL:
                self._jacobian(f, self.truth.factor, point)
            self._directions(f, self.truth.factor, point, i)
            if any(f.kind == "truth" for f in self.trial.report.findings):
                break
        for x in self.trial.target.xs:
            if x not in self.compared:
                self.trial.report.note(
                    f"the gradient of {x.name} was not compared: differences are not to be trusted "
                    "at any of the points (kinks, jumps). Give other values=[...]."
                )
        self.trial.report.checked.append("first order")

    def _size(self, point: Sequence[Array]) -> int:
        return sum(v.size for v in point if is_floating(v.dtype))

    def _jacobian(self, f: Any, factor: float, point: list[Array]) -> None:
        rows = [self.trial.backward(point, unit) for unit in _units(self.trial.seeds(0))]
        places = [i for i, t in enumerate(self.trial.target.inputs) if t.type.differentiable]
        self.masked = False
        for k, (i, x) in enumerate(zip(places, self.trial.target.xs, strict=True)):
            expected, noise = partials(f, point, i, self.trial.precision)
            self.masked |= bool(np.isnan(expected).any())
            got = np.array([np.ravel(r[k]).astype(float) for r in rows])
            self._first(x, factor * expected, got.reshape(expected.shape), abs(factor) * noise)

    def _directions(self, f: Any, factor: float, point: list[Array], index: int) -> None:
        """<rule(dy), v> against the slope of <dy, f> along v, for random dy and v."""
        for _ in range(2):
            dys = self.trial.seeds(index)
            weights = flat(dys)
            got = self.trial.backward(point, dys)
            for k, x in enumerate(self.trial.target.xs):
                if x in self.wrong:
                    continue
                v = self.trial.direction(point, x)
                along = along_direction(lambda p, w=weights: np.array([w @ f(p)]), point, v)
                expected, noise = slope(along, self.trial.precision)
                here = next(d for d in v if d is not None)
                dot = np.array([flat([got[k]]) @ flat([here])])
                noise = noise + 1e3 * self.trial.precision.eps * float(np.abs(flat([got[k]])).sum())
                self._first(x, factor * expected, dot, noise, along=True)

    def _first(
        self, x: Tensor, expected: Array, got: Array, noise: Any, along: bool = False
    ) -> None:
        names = {"surrogate": "the derivative of f", "scaled": "the scaled derivative"}
        of = names.get(self.trial.kind or "", "the derivative of the site")
        how = " along a random direction" if along else " (row: output entry, column: input entry)"
        right = self.trial.compare(
            "truth",
            f"the gradient of {x.name} is not {of}{how}",
            expected,
            got,
            noise,
            suggestion="" if self.trial.contract else HINT,
        )
        if not right:
            self.wrong.add(x)
        if np.isfinite(expected).any() or expected.size == 0:
            self.compared.add(x)


def _units(seeds: Sequence[Array]) -> list[list[Array]]:
    """A one in each entry of each array in turn."""
    units = []
    for k, s in enumerate(seeds):
        for i in range(s.size):
            unit = [np.zeros_like(t) for t in seeds]
            unit[k].flat[i] = 1
            units.append(unit)
    return units
