"""`check_gradient`: one rule, held to what it says it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ..ir.errors import GradientError, GraphGradError, ShapeError
from ..ir.node import Node, Region, Tensor
from ..ir.position import of_function, show
from ..ir.types import Array
from ..ops.base import ZeroTensor
from ..regions.contracts import Contract, as_contract
from ..regions.rules import BuiltinRule, Rule
from .differences import along_direction, partials, precision_of, slope, worst
from .estimate import check_estimator
from .report import Finding, Report
from .second import check_second_order
from .target import (
    DOMAINS,
    Target,
    Values,
    as_arrays,
    built,
    draw,
    flat,
    given_values,
    near,
)
from .truth import Truth

__all__ = ["check_gradient"]

FULL = 64
"""Up to so many entries of inputs, and of outputs, the whole Jacobian is compared."""
POINTS = 3
HINT = (
    "If the rule is meant to differ, let it declare what it is: contract=gg.surrogate_of(f), "
    'gg.scaled(s), "stop", "estimator", "attribution" or "policy".'
)


def check_gradient(
    target: Any,
    *args: Any,
    rule: Any = None,
    values: Any = None,
    seed: int = 0,
    order: int = 2,
    expect: Any = None,
    variants: bool = False,
) -> Report:
    """Check one gradient rule by itself, against what it declares itself to be.

    Compared are: the rule with finite differences of the site alone (the truth; for surrogate_of(f)
    those of f, for scaled(s) s times them, for "stop" zero, for "estimator" the mean over seeds);
    every pattern of missing and zero output gradients; linearity; a second run and a second call;
    the forward values with and without it; and the derivative of what it built with differences of
    the values of that. A rule without a contract is held to the truth. "attribution" and "policy"
    are held to no derivative. The nodes this builds count as derived.

    Parameters:
        target: a region; a node (with or without a stamp); or a function, which opens one region
            (custom_gradient, gg.override) or is put into one with rule=. check_gradient(rule,
            function, *arrays) says the same.
        *args: example arrays for a function, at least one of them floating.
        rule: checked in place of the rule that is marked.
        values: for a region or node: an array for each input, in order, or {tensor or name: array};
            random ones are found otherwise.
        seed: of everything random.
        order: 2 also checks the derivative of what the rule built; 1 does not.
        expect: what to hold it to, in place of the contract that the rule declares.
        variants: for a function: also with lengths of 1, one axis at a time, where it takes them.

    Returns: a Report, which is true where nothing was found.

    Raises: GradientError for a target that is none, and where a function marks no site or several;
    ValueError for another order.

    >>> gg.check_gradient(lambda site, dy: 2 * dy, gg.square, np.array([1.0, 3.0])).findings[0].kind
    'truth'
    """
    if order not in (1, 2):
        raise ValueError(f"check_gradient checks order 1 or 2, got {order!r}")
    if args and callable(args[0]):
        rule, target, args = target, args[0], args[1:]
    options = {"seed": seed, "order": order, "expect": expect}
    if isinstance(target, Region | Node):
        if args:
            raise GradientError("give the arrays of a region or node as values=[...]")
        return _Check(Target(target, rule), values, **options).run()
    if not callable(target) or isinstance(target, Rule):
        raise GradientError(
            "check_gradient takes a region, a node, a function with example arrays, or "
            f"(rule, function, *arrays), got {target!r}"
        )
    arrays = as_arrays(args if args or values is None else values)
    if not any(a.dtype.kind == "f" for a in arrays):
        raise GradientError(
            f"check_gradient takes example arrays, at least one of them floating, got {args!r}"
        )
    report = _Check(built(target, arrays, rule), arrays, **options).run()
    return _with_variants(report, target, arrays, rule, options) if variants else report


def _with_variants(
    report: Report, function: Any, arrays: Sequence[Array], rule: Any, options: dict[str, Any]
) -> Report:
    """The same check with one axis of one argument cut to length 1, wherever that can be built."""
    for i, a in enumerate(arrays):
        for axis in range(a.ndim):
            if a.shape[axis] < 2:
                continue
            cut = [*arrays[:i], np.take(a, [0], axis), *arrays[i + 1 :]]
            try:
                target = built(function, cut, rule)
            except ShapeError:
                continue
            other = _Check(target, cut, **options).run()
            shapes = ", ".join(str(c.shape) for c in cut)
            report.findings += other.findings
            report.checked.append(f"shapes {shapes}")
    return report


class _Check:
    """One target under check; what is found goes to the report."""

    def __init__(self, target: Target, values: Any, seed: int, order: int, expect: Any) -> None:
        self.target = target
        self.rng = np.random.default_rng(seed)
        self.order = order
        self.contract: Contract | None = as_contract(expect) or target.contract
        self.linear = target.rule.linear
        self.given = given_values(target, values)
        self.precision = precision_of(target.dtypes)
        self.held: dict[Tensor, Array] = {}
        self.wrong: set[Tensor] = set()
        self.compared: set[Tensor] = set()
        self.masked = False
        own = isinstance(target.rule, BuiltinRule)
        where = "own gradient of the op type" if own else f"defined at {target.rule.where}"
        self.report = Report(
            repr(target),
            f"rule {target.rule.name!r} ({where})",
            _shown(self.contract),
        )

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

    # --- the way through ---------------------------------------------------------------------

    def run(self) -> Report:
        """All checks, in the order in which a failure explains the later ones."""
        target, report = self.target, self.report
        if not target.xs or not target.ys:
            report.note("no floating input or output: no gradient is ever asked of this rule")
            return report
        self.held.update((t, draw(t.type, self.rng, DOMAINS[0], POINTS)) for t in target.fixed)
        self.forward = Values(target.inputs, target.outputs, self.held, self.rng)
        self.points = self._points()
        if not self.points:
            return report
        self.before = [self.forward(p) for p in self.points]
        self.dys = target.gradients_of(target.ys)
        dxs = self.asked(target.ys, self.dys, "with a gradient for every output")
        if dxs is None:
            return report
        self.dxs = dxs
        self.backward = self.function(self.dxs, self.dys)
        report.checked += ["shapes and dtypes"]
        self._missing()
        self._repeated()
        self._forward_unchanged()
        self._linearity()
        self._first_order()
        if self.order == 2 and self.kind != "estimator":
            check_second_order(self)
        return report

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
        run = Values(fed, [d for d in dxs if d is not None], self.held, self.rng)
        places = [i for i, t in enumerate(self.target.inputs) if t.type.differentiable]

        def backward(point: Sequence[Any], seeds: Sequence[Any]) -> list[Array]:
            found = iter(run([*point, *seeds]))
            return [
                np.zeros_like(point[i]) if d is None else next(found)
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

    # --- what needs no truth -----------------------------------------------------------------

    def _missing(self) -> None:
        """Every pattern of missing, and of structurally zero, output gradients."""
        ys, point, seeds = self.target.ys, self.points[0], self.seeds(0)
        for present in _patterns(len(ys)):
            zeros = [s if i in present else 0 * s for i, s in enumerate(seeds)]
            expected = self.backward(point, zeros)
            given = [self.dys[i] for i in present]
            asked: list[tuple[str, list[Tensor], list[Any]]] = [
                ("a structural zero", ys, [
                    self.dys[i] if i in present else ZeroTensor(y) for i, y in enumerate(ys)
                ])
            ]  # fmt: skip
            if present:
                asked.append(("missing", [ys[i] for i in present], given))
            for how, at, dys in asked:
                absent = [ys[i].name for i in range(len(ys)) if i not in present]
                when = f"with {how} gradient of {', '.join(absent)}"
                dxs = self.asked(at, dys, when)
                if dxs is None:
                    continue
                found = self.function(dxs, given)(point, [seeds[i] for i in present])
                self._alike("missing gradients", when, expected, found)
        twice = self.asked([*ys, *ys], [*self.dys, *self.dys], "read twice")
        if twice is not None:
            doubled = self.backward(point, [2 * s for s in seeds])
            found = self.function(twice, self.dys)(point, seeds)
            self._alike("fan-out", "with every output read twice", doubled, found)
        self.report.checked.append("missing gradients")

    def _alike(self, kind: str, when: str, expected: list[Array], found: list[Array]) -> None:
        for x, e, g in zip(self.target.xs, expected, found, strict=True):
            if np.isfinite(e).all() or not np.array_equal(e, g, equal_nan=True):
                what = f"the gradient of {x.name} {when} is not what zeros give"
                self.compare(kind, what, e, g, rtol=64 * self.precision.eps)

    def _repeated(self) -> None:
        """Two runs, and two calls of the rule, give the same bits."""
        again = self.asked(self.target.ys, self.dys, "when it was called again")
        if again is None:
            return
        twin = self.function(again, self.dys)
        point, seeds = self.points[-1], self.seeds(-1)
        first, second = self.backward(point, seeds), self.backward(point, seeds)
        third = twin(point, seeds)
        for x, a, b, c in zip(self.target.xs, first, second, third, strict=True):
            for how, other in (("two runs", b), ("two calls of the rule", c)):
                if not np.array_equal(a, other, equal_nan=True):
                    self.find("determinism", f"{how} give different gradients of {x.name}")
        self.report.checked.append("determinism")

    def _forward_unchanged(self) -> None:
        """The outputs computed beside the gradients are those computed without, bit for bit."""
        dxs = [d for d in self.dxs if d is not None]
        both = Values(
            [*self.target.inputs, *self.dys], [*self.target.outputs, *dxs], self.held, self.rng
        )
        after = both([*self.points[0], *self.seeds(0)])
        for y, a, b in zip(self.target.outputs, self.before[0], after, strict=False):
            if not np.array_equal(a, b, equal_nan=y.dtype.kind in "fc"):
                self.find("forward", f"the value of {y.name} changes when its gradient is taken")
        self.report.checked.append("forward values")

    def _linearity(self) -> None:
        """f(a u + b v) = a f(u) + b f(v), and zero to zero."""
        free = self.kind in ("attribution", "policy") or self.linear is False
        if free and self.linear is not True:
            self.report.note("linearity is not checked: the rule does not declare linear=True")
            return
        a, b = 0.75, -1.5
        for i, point in enumerate(self.points):
            u, v = self.seeds(i), self.seeds(i)
            mixed = self.backward(point, [a * p + b * q for p, q in zip(u, v, strict=True)])
            parts = zip(self.backward(point, u), self.backward(point, v), strict=True)
            none = self.backward(point, [0 * p for p in u])
            for x, m, (p, q), z in zip(self.target.xs, mixed, parts, none, strict=True):
                what = f"the gradient of {x.name} is not linear in the gradients of the outputs"
                noise = 1e3 * self.precision.eps * (np.abs(p) + np.abs(q))
                self.compare("linearity", what, a * p + b * q, m, noise)
                zero = f"zero gradients of the outputs do not give a zero gradient of {x.name}"
                self.compare("linearity", zero, np.zeros_like(z), z)
        self.report.checked.append("linearity")

    # --- first order ---------------------------------------------------------------------------

    def _first_order(self) -> None:
        """The rule against the derivative that its contract names."""
        kind = self.kind
        if kind in ("attribution", "policy"):
            self.report.note(f"no derivative is compared: the rule is declared {kind!r}")
        elif kind == "stop":
            self._stops()
        elif kind == "estimator":
            check_estimator(self)
        else:
            try:
                truth = Truth(self.target, self.contract, self.held, self.rng)
            except Exception as error:
                self.find("error", f"surrogate_of(f): {type(error).__name__}: {error}")
                return
            self._against(truth)

    def _stops(self) -> None:
        for i, point in enumerate(self.points):
            for x, dx in zip(self.target.xs, self.backward(point, self.seeds(i)), strict=True):
                what = f'the rule is declared "stop" but a gradient flows to {x.name}'
                self.compare("truth", what, np.zeros_like(dx), dx)
        self.report.checked.append("zero gradients")

    def _against(self, truth: Truth) -> None:
        """The whole Jacobian where it is small; random directions at every point."""
        for i, point in enumerate(self.points):
            try:
                f = truth.at(point)
            except Exception as error:
                self.find("error", f"surrogate_of(f): {type(error).__name__}: {error}")
                return
            sizes = [self._size(point), flat(self.seeds(i)).size]
            if (i == 0 or self.masked) and max(sizes) <= FULL:
                self._jacobian(f, truth.factor, point)
            self._directions(f, truth.factor, point, i)
            if any(f.kind == "truth" for f in self.report.findings):
                break
        for x in self.target.xs:
            if x not in self.compared:
                self.report.note(
                    f"the gradient of {x.name} was not compared: differences are not to be trusted "
                    "at any of the points (kinks, jumps). Give other values=[...]."
                )
        self.report.checked.append("first order")

    def _size(self, point: Sequence[Array]) -> int:
        return sum(v.size for v in point if v.dtype.kind == "f")

    def _jacobian(self, f: Any, factor: float, point: list[Array]) -> None:
        rows = [self.backward(point, unit) for unit in _units(self.seeds(0))]
        places = [i for i, t in enumerate(self.target.inputs) if t.type.differentiable]
        self.masked = False
        for k, (i, x) in enumerate(zip(places, self.target.xs, strict=True)):
            expected, noise = partials(f, point, i, self.precision)
            self.masked |= bool(np.isnan(expected).any())
            got = np.array([np.ravel(r[k]).astype(float) for r in rows])
            self._first(x, factor * expected, got.reshape(expected.shape), abs(factor) * noise)

    def _directions(self, f: Any, factor: float, point: list[Array], index: int) -> None:
        """<rule(dy), v> against the slope of <dy, f> along v, for random dy and v."""
        for _ in range(2):
            dys = self.seeds(index)
            weights = flat(dys)
            got = self.backward(point, dys)
            for k, x in enumerate(self.target.xs):
                if x in self.wrong:
                    continue
                v = self.direction(point, x)
                along = along_direction(lambda p, w=weights: np.array([w @ f(p)]), point, v)
                expected, noise = slope(along, self.precision)
                here = next(d for d in v if d is not None)
                dot = np.array([flat([got[k]]) @ flat([here])])
                noise = noise + 1e3 * self.precision.eps * float(np.abs(flat([got[k]])).sum())
                self._first(x, factor * expected, dot, noise, along=True)

    def direction(self, point: list[Array], x: Tensor) -> list[Array | None]:
        """A random direction of one input, of about the length that differences want."""
        return [
            np.asarray(self.rng.uniform(-1, 1, p.shape)) if t is x else None
            for t, p in zip(self.target.inputs, point, strict=True)
        ]

    def _first(
        self, x: Tensor, expected: Array, got: Array, noise: Any, along: bool = False
    ) -> None:
        names = {"surrogate": "the derivative of f", "scaled": "the scaled derivative"}
        of = names.get(self.kind or "", "the derivative of the site")
        how = " along a random direction" if along else " (row: output entry, column: input entry)"
        right = self.compare(
            "truth",
            f"the gradient of {x.name} is not {of}{how}",
            expected,
            got,
            noise,
            suggestion="" if self.contract else HINT,
        )
        if not right:
            self.wrong.add(x)
        if np.isfinite(expected).any() or expected.size == 0:
            self.compared.add(x)


def _shown(contract: Contract | None) -> str:
    if contract is None:
        return "the true derivative (no contract declared)"
    if contract.kind != "surrogate":
        return repr(contract)
    name = getattr(contract.of, "__name__", repr(contract.of))
    return f"surrogate of {name!r} ({show(of_function(contract.of))})"


def _patterns(n: int) -> list[tuple[int, ...]]:
    """Which outputs have a gradient, but for all of them: every subset, of many the simple ones."""
    sizes = range(n) if n <= 4 else (0, 1, n - 1)
    return [p for size in sizes for p in combinations(range(n), size)]


def _units(seeds: Sequence[Array]) -> list[list[Array]]:
    """A one in each entry of each array in turn."""
    units = []
    for k, s in enumerate(seeds):
        for i in range(s.size):
            unit = [np.zeros_like(t) for t in seeds]
            unit[k].flat[i] = 1
            units.append(unit)
    return units
