"""Second order: the derivative of what a rule built, against differences of the values of that.

What the rule read as the site's outputs is answered for by the rule again; what it read as a
residual, by the inside. So differences are taken with the outer reads of the outputs held, and the
rule is applied once more, to the differences with respect to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir.node import Node, Region, Tensor
from ..ir.program import needed
from ..ir.types import Array
from ..regions.rules import as_rule
from .differences import along_direction, partials, slope
from .target import Checked, Evaluator, flat, stopped
from .trial import Trial

FULL = 24
DIRECTIONS = 3


def check_second_order(trial: Trial) -> None:
    """A finding where the second derivative is not that of the emitted gradient."""
    pairs = [(x, d) for x, d in zip(trial.target.xs, trial.dxs, strict=True) if d is not None]
    site = trial.target.site
    if isinstance(site, Region) and site.order == "error":
        trial.report.note("second order is not checked: the region says order='error'")
        return
    if not pairs:
        trial.report.note("second order is not checked: the rule returned no gradient at all")
        return
    emitted = [d for _, d in pairs]
    reason = _rules_inside(trial.target, emitted)
    if reason:
        trial.report.note(f"second order is not checked: {reason}")
        return
    target = trial.target
    wanted = [*target.xs, *trial.dys]
    ddxs = target.gradients_of(emitted)
    try:
        derivatives = target.ask(emitted, wanted, ddxs)
    except Exception as error:
        trial.report.note(f"second order is not checked: {type(error).__name__}: {error}")
        return
    _compare(trial, _Emitted(trial, emitted), wanted, derivatives, ddxs)
    trial.report.checked.append("second order")


def _rules_inside(target: Checked, emitted: Sequence[Tensor]) -> str:
    """Why differences cannot speak for the derivative: other rules are used on the way."""
    for node in needed(target.inputs, emitted):
        if node is target.site:
            continue
        if node.stamp is not None:
            return f"{node.name} ({node.where}) has a rule of its own"
        region = node.region
        while region is not None and not (
            region is target.site or region in target.overrides or region.kind == "second"
        ):
            if not as_rule(region.rule).exact:
                return f"{region!r} has a rule of its own"
            region = region.parent
    return ""


class _Emitted:
    """The gradient that a rule built, as a function of the site's inputs, dys and outputs.

    outer  the outputs that it reads as outputs
    """

    def __init__(self, trial: Trial, emitted: Sequence[Tensor]) -> None:
        target = self.target = trial.target
        self.trial = trial
        given = [*target.inputs, *trial.dys]
        residuals = [n.outputs[0] for n in needed(given, emitted) if target.holds(n.outputs[0])]
        fed = [*given, *residuals]
        reads = {t for n in needed(fed, emitted) if not _inside(n, target) for t in n.inputs}
        reads |= set(emitted)
        loose = [y for y in target.outputs if y in reads]
        held_in_rule: list[Tensor] = []
        if trial.kind in ("surrogate", "policy", "attribution"):
            held_in_rule = stopped(needed([*fed, *loose], emitted))
        inside = stopped(needed(given, [*loose, *residuals]))
        self.constant = list(dict.fromkeys([*inside, *held_in_rule]))
        fixed = set(self.constant)
        self.moving = [t for t in residuals if t not in fixed]
        self.loose = [t for t in loose if t not in fixed]
        self.run = Evaluator(
            [*given, *self.loose, *self.moving, *self.constant], emitted, trial.held, trial.rng
        )
        self.stopped = Evaluator(given, self.constant, trial.held, trial.rng)
        self.inside = Evaluator(
            [*given, *self.constant], [*self.loose, *self.moving], trial.held, trial.rng
        )
        self.outer = [y for y in self.loose if y.type.differentiable]

    def at(
        self, point: Sequence[Array], dys: Sequence[Array], ddxs: Sequence[Array]
    ) -> tuple[Callable[[list[Array]], Array], list[Array]]:
        """phi(inputs, dys, outer outputs) = <ddxs, dxs>, and the point to take it at."""
        given = [*point, *dys]
        constant = self.stopped(given)
        n, k = len(given), len(self.loose)
        weights = flat(ddxs)

        def phi(arrays: list[Array]) -> Array:
            here, outer = arrays[:n], arrays[n:]
            moving = self.inside([*here, *constant])[k:]
            return np.array([weights @ flat(self.run([*here, *outer, *moving, *constant]))])

        return phi, [*given, *self.inside([*given, *constant])[:k]]


def _inside(node: Node, target: Checked) -> bool:
    if isinstance(target.site, Node):
        return node is target.site
    return target.site.contains(node.region)


def _compare(
    trial: Trial,
    emitted: _Emitted,
    wanted: Sequence[Tensor],
    derivatives: Sequence[Tensor | None],
    ddxs: Sequence[Tensor],
) -> None:
    target = trial.target
    index = 0 if trial.given is None else -1  # given values may be at a kink
    point, dys = trial.points[index], trial.seeds(index)
    present = [i for i, d in enumerate(trial.dxs) if d is not None]
    gradients = trial.backward(point, dys)
    seeds = [
        np.asarray(trial.rng.normal(size=gradients[i].shape)).astype(gradients[i].dtype)
        for i in present
    ]
    phi, start = emitted.at(point, dys, seeds)
    if not np.isfinite(phi(start)).all():
        return
    again = _rule_again(trial, emitted, phi, start, point)
    run = Evaluator(
        [*target.inputs, *trial.dys, *ddxs],
        [d for d in derivatives if d is not None],
        trial.held,
        trial.rng,
    )
    values = iter(run([*point, *dys, *seeds]))
    places = {t: i for i, t in enumerate((*target.inputs, *trial.dys))}
    for t, d in zip(wanted, derivatives, strict=True):
        i = places[t]
        got = np.zeros_like(start[i]) if d is None else next(values)
        more = again.get(t, np.zeros_like(start[i]))
        _entry(trial, t, phi, start, i, more, got)


def _rule_again(
    trial: Trial, emitted: _Emitted, phi: Any, start: list[Array], point: list[Array]
) -> dict[Tensor, Array]:
    """What the rule gives for the differences with respect to the outputs it read."""
    if not emitted.outer:
        return {}
    target = trial.target
    first = len(target.inputs) + len(trial.dys)
    seeds, dys = [], []
    places = {y: first + i for i, y in enumerate(emitted.loose)}
    given = dict(zip(target.ys, trial.dys, strict=True))
    for y in emitted.outer:
        i = places[y]
        dys.append(given[y])
        slopes, _ = partials(phi, start, i, trial.precision)
        seeds.append(np.nan_to_num(slopes).reshape(start[i].shape).astype(start[i].dtype))
    dxs = trial.asked(emitted.outer, dys, "when its own gradient is differentiated")
    if dxs is None:
        return {}
    return dict(zip(target.xs, trial.function(dxs, dys)(point, seeds), strict=True))


def _entry(
    trial: Trial, t: Tensor, phi: Any, start: list[Array], i: int, more: Array, got: Array
) -> None:
    """One second derivative: every entry where they are few, else along directions."""
    what = f"input {t.name}" if t in set(trial.target.xs) else "the gradient of an output"
    message = f"the derivative of the emitted gradient with respect to {what} is not that of its"
    rtol = 100 * trial.precision.rtol
    blur = 100 * trial.precision.rtol * float(np.max(np.abs(more), initial=0.0)) * 0.01
    if start[i].size <= FULL:
        expected, noise = partials(phi, start, i, trial.precision)
        expected, noise = expected.reshape(got.shape), noise.reshape(got.shape)
        trial.compare("second order", f"{message} values", expected + more, got, noise + blur,
                      rtol=rtol)  # fmt: skip
        return
    for _ in range(DIRECTIONS):
        v = np.asarray(trial.rng.uniform(-1, 1, start[i].shape))
        along = along_direction(phi, start, [v if j == i else None for j in range(len(start))])
        expected, noise = slope(along, trial.precision)
        dots = np.array([flat([got]) @ flat([v])])
        expected = expected + flat([more]) @ flat([v])
        trial.compare("second order", f"{message} values", expected, dots, noise + blur, rtol=rtol)
