"""What holds of every rule, whatever derivative it gives: no truth is needed to check it."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from ..base.kinds import is_inexact
from ..ir.node import Tensor
from ..ir.types import Array
from ..ops.base import ZeroTensor
from .target import Evaluator
from .trial import Trial


def check_laws(trial: Trial) -> None:
    """Missing gradients, fan-out, determinism, forward values, linearity."""
    _missing(trial)
    _repeated(trial)
    _forward_unchanged(trial)
    _linearity(trial)


def _missing(trial: Trial) -> None:
    """Every pattern of missing, and of structurally zero, output gradients."""
    ys, point, seeds = trial.target.ys, trial.points[0], trial.seeds(0)
    for present in _patterns(len(ys)):
        zeros = [s if i in present else 0 * s for i, s in enumerate(seeds)]
        expected = trial.backward(point, zeros)
        given = [trial.dys[i] for i in present]
        asked: list[tuple[str, list[Tensor], list[Any]]] = [
            ("a structural zero", ys, [
                trial.dys[i] if i in present else ZeroTensor(y) for i, y in enumerate(ys)
            ])
        ]  # fmt: skip
        if present:
            asked.append(("missing", [ys[i] for i in present], given))
        for how, at, dys in asked:
            absent = [ys[i].name for i in range(len(ys)) if i not in present]
            when = f"with {how} gradient of {', '.join(absent)}"
            dxs = trial.asked(at, dys, when)
            if dxs is None:
                continue
            gradients = trial.function(dxs, given)(point, [seeds[i] for i in present])
            _alike(trial, "missing gradients", when, expected, gradients)
    twice = trial.asked([*ys, *ys], [*trial.dys, *trial.dys], "read twice")
    if twice is not None:
        doubled = trial.backward(point, [2 * s for s in seeds])
        gradients = trial.function(twice, trial.dys)(point, seeds)
        _alike(trial, "fan-out", "with every output read twice", doubled, gradients)
    trial.report.checked.append("missing gradients")


def _alike(trial: Trial, kind: str, when: str, expected: list[Array], dxs: list[Array]) -> None:
    for x, e, g in zip(trial.target.xs, expected, dxs, strict=True):
        if np.isfinite(e).all() or not np.array_equal(e, g, equal_nan=True):
            what = f"the gradient of {x.name} {when} is not what zeros give"
            trial.compare(kind, what, e, g, rtol=64 * trial.precision.eps)


def _repeated(trial: Trial) -> None:
    """Two runs, and two calls of the rule, give the same bits."""
    again = trial.asked(trial.target.ys, trial.dys, "when it was called again")
    if again is None:
        return
    twin = trial.function(again, trial.dys)
    point, seeds = trial.points[-1], trial.seeds(-1)
    first, second = trial.backward(point, seeds), trial.backward(point, seeds)
    third = twin(point, seeds)
    for x, a, b, c in zip(trial.target.xs, first, second, third, strict=True):
        for how, other in (("two runs", b), ("two calls of the rule", c)):
            if not np.array_equal(a, other, equal_nan=True):
                trial.find("determinism", f"{how} give different gradients of {x.name}")
    trial.report.checked.append("determinism")


def _forward_unchanged(trial: Trial) -> None:
    """The outputs computed beside the gradients are those computed without, bit for bit."""
    dxs = [d for d in trial.dxs if d is not None]
    both = Evaluator(
        [*trial.target.inputs, *trial.dys], [*trial.target.outputs, *dxs], trial.held, trial.rng
    )
    after = both([*trial.points[0], *trial.seeds(0)])
    for y, a, b in zip(trial.target.outputs, trial.before[0], after, strict=False):
        if not np.array_equal(a, b, equal_nan=is_inexact(y.dtype)):
            trial.find("forward", f"the value of {y.name} changes when its gradient is taken")
    trial.report.checked.append("forward values")


def _linearity(trial: Trial) -> None:
    """f(a u + b v) = a f(u) + b f(v), and zero to zero."""
    free = trial.kind in ("attribution", "policy") or trial.linear is False
    if free and trial.linear is not True:
        trial.report.note("linearity is not checked: the rule does not declare linear=True")
        return
    a, b = 0.75, -1.5
    for i, point in enumerate(trial.points):
        u, v = trial.seeds(i), trial.seeds(i)
        mixed = trial.backward(point, [a * p + b * q for p, q in zip(u, v, strict=True)])
        parts = zip(trial.backward(point, u), trial.backward(point, v), strict=True)
        none = trial.backward(point, [0 * p for p in u])
        for x, m, (p, q), z in zip(trial.target.xs, mixed, parts, none, strict=True):
            what = f"the gradient of {x.name} is not linear in the gradients of the outputs"
            noise = 1e3 * trial.precision.eps * (np.abs(p) + np.abs(q))
            trial.compare("linearity", what, a * p + b * q, m, noise)
            zero = f"zero gradients of the outputs do not give a zero gradient of {x.name}"
            trial.compare("linearity", zero, np.zeros_like(z), z)
    trial.report.checked.append("linearity")


def _patterns(n: int) -> list[tuple[int, ...]]:
    """Which outputs have a gradient, but for all of them: every subset, of many the simple ones."""
    sizes = range(n) if n <= 4 else (0, 1, n - 1)
    return [p for size in sizes for p in combinations(range(n), size)]
