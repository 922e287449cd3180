"""A rule on trial: its gradients as functions of arrays, points to try them at, what is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.errors import GraphGradError
from ..base.position import of_function, show
from ..ir.node import Tensor
from ..ir.types import Array
from ..regions.contracts import Contract, as_contract
from ..regions.rules import BuiltinRule
from .differences import precision_of, worst
from .report import Finding, Report
from .target import DOMAINS, Checked, Evaluator, draw, given_values, near

POINTS = 3


class Trial:
    """One target under check; what is found goes to the report.

    held      what the site reads besides its inputs, at one value
    points    inputs for which every output is finite; before: the outputs there
    dys, dxs  the gradients of the outputs, and what the rule made of them
    backward  f(point, dys) -> the gradients as arrays
    """

    forward: Evaluator
    points: list[list[Array]]
    before: list[list[Array]]
    dys: list[Tensor]
    dxs: list[Tensor | None]
    backward: Callable[[Sequence[Any], Sequence[Any]], list[Array]]

    def __init__(self, target: Checked, values: Any, seed: int, expect: Any) -> None:
        self.target = target
        self.rng = np.random.default_rng(seed)
        self.contract: Contract | None = as_contract(expect) or target.contract
        self.linear = target.rule.linear
        self.given = given_values(target, values)
        self.precision = precision_of(target.dtypes)
        self.held: dict[Tensor, Array] = {}
        own = isinstance(target.rule, BuiltinRule)
        where = "own gradient of the op type" if own else f"defined at {target.rule.where}"
        self.report = Report(
            repr(target),
            f"rule {target.rule.name!r} ({where})",
            _shown(self.contract),
        )

    def begin(self) -> bool:
        """Find points and call the rule; False where there is nothing more to check."""
        target, report = self.target, self.report
        if not target.xs or not target.ys:
            report.note("no floating input or output: this rule is never called for a gradient")
            return False
        self.held.update((t, draw(t.type, self.rng, DOMAINS[0], POINTS)) for t in target.fixed)
        self.forward = Evaluator(target.inputs, target.outputs, self.held, self.rng)
        self.points = self._points()
        if not self.points:
            return False
        self.before = [self.forward(p) for p in self.points]
        self.dys = target.gradients_of(target.ys)
        dxs = self.asked(target.ys, self.dys, "with a gradient for every output")
        if dxs is None:
            return False
        self.dxs = dxs
        self.backward = self.function(self.dxs, self.dys)
        report.checked += ["shapes and dtypes"]
        return True

    @property
    def kind(self) -> str | None:
        """The kind of the contract."""
        return self.contract.kind if self.contract else None

    def find(self, kind: str, message: str, suggestion: str = "", **values: Any) -> None:
        """Add a finding; one of a kind about one thing is enough."""
        if not any((f.kind, f.message) == (kind, message) for f in self.report.findings):
            line = self.target.site.where
            self.report.findings.append(Finding(kind, message, line, suggestion, **values))

    def compare(
        self, kind: str, what: str, expected: Array, got: Array, noise: Any = 0.0, **how: Any
    ) -> bool:
        """A finding where two arrays differ; whether they agree."""
        rtol = how.pop("rtol", self.precision.rtol)
        if expected.size == 0:
            return True
        at = worst(expected, got, noise, rtol)
        if at is None:
            return True
        e, g = (np.broadcast_to(a, np.broadcast(expected, got).shape)[at] for a in (expected, got))
        self.find(kind, what, expected=float(e), got=float(g), at=at, **how)
        return False

    def asked(
        self, ys: Sequence[Tensor], dys: Sequence[Any], when: str
    ) -> list[Tensor | None] | None:
        """The gradients of the inputs; a finding where the rule fails."""
        try:
            return self.target.ask(ys, self.target.xs, dys)
        except Exception as error:
            notes = "".join(f"\n{n}" for n in getattr(error, "__notes__", []))
            self.find("error", f"{when}: {type(error).__name__}: {error}{notes}")
            return None

    def function(
        self, dxs: Sequence[Tensor | None], dys: Sequence[Tensor]
    ) -> Callable[[Sequence[Any], Sequence[Any]], list[Array]]:
        """f(point, dys) -> an array for each floating input, zeros for None."""
        fed = [*self.target.inputs, *dys]
        run = Evaluator(fed, [d for d in dxs if d is not None], self.held, self.rng)
        places = [i for i, t in enumerate(self.target.inputs) if t.type.differentiable]

        def backward(point: Sequence[Any], seeds: Sequence[Any]) -> list[Array]:
            gradients = iter(run([*point, *seeds]))
            return [
                np.zeros_like(point[i]) if d is None else next(gradients)
                for i, d in zip(places, dxs, strict=True)
            ]

        return backward

    # --- points and directions ---------------------------------------------------------------

    def _points(self) -> list[list[Array]]:
        """Points where every output is finite; a finding where there is none."""
        trials = [self._near_given] if self.given is not None else [self._drawn(d) for d in DOMAINS]
        last: Exception | None = None
        for trial in trials:
            points, tried = [], 0
            for i in range(POINTS):
                try:
                    point = trial(i)
                    finite = self._finite(point)
                except (GraphGradError, ValueError, IndexError, np.linalg.LinAlgError) as error:
                    last = error  # such a length, or such an index, does not fit
                    continue
                tried += 1
                points += [point] if finite else []
            if points and (len(points) == tried or self.given is not None):
                return points
        why = f": {last}" if last else ""
        self.find(
            "no values",
            f"no random values were found for which every output is finite{why}",
            "Give values=[...], an array for each input.",
        )
        return []

    def _drawn(self, domain: tuple[float, float]) -> Callable[[int], list[Array]]:
        def at(i: int) -> list[Array]:
            return [draw(t.type, self.rng, domain, POINTS - i) for t in self.target.inputs]

        return at

    def _near_given(self, i: int) -> list[Array]:
        assert self.given is not None
        return [near(v, self.rng) if i else v for v in self.given]

    def _finite(self, point: list[Array]) -> bool:
        return all(np.isfinite(y).all() for y in self.forward(point))

    def seeds(self, index: int) -> list[Array]:
        """Random gradients of the floating outputs, for the point of this index."""
        return [
            np.asarray(self.rng.normal(size=y.shape)).astype(y.dtype)
            for y, t in zip(self.before[index], self.target.outputs, strict=True)
            if t.type.differentiable
        ]

    def direction(self, point: list[Array], x: Tensor) -> list[Array | None]:
        """A random direction of one input, of about the length that differences want."""
        return [
            np.asarray(self.rng.uniform(-1, 1, p.shape)) if t is x else None
            for t, p in zip(self.target.inputs, point, strict=True)
        ]


def _shown(contract: Contract | None) -> str:
    if contract is None:
        return "the true derivative (no contract declared)"
    if contract.kind != "surrogate":
        return repr(contract)
    name = getattr(contract.of, "__name__", repr(contract.of))
    return f"surrogate of {name!r} ({show(of_function(contract.of))})"
