"""`--check` of a derivative: both models in onnxruntime, and differences of the first one."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..base.errors import counted
from ..base.kinds import kind_of
from ..base.lazy import lazy_module
from ..base.length import Length
from ..ir.node import Tensor
from ..ir.types import Array
from ..onnx.differentiating import differentiate
from ..onnx.loading.model import OnnxModel
from ..onnx.package import onnx

__all__ = ["check_derivative"]

onnxruntime: Any = lazy_module("onnxruntime")

SIZES = (3, 32, 64)
"""What open lengths are, the larger one where a model does not run with the smaller."""
STEPS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
"""Those of differences, of which the median is taken: long ones bend, short ones are rounded."""
NEAR, SAME = 1e-2, 1e-3
"""Relative errors that pass: of differences in float32, and of two files."""
FLOOR = 5e-2
"""What differences can tell, of the values that they are of."""
KINKS, POINTS = 0.05, 3
"""The share of elements that may be off, where a step leads over a kink, and how many random points
are tried until at one no more are."""
MOST = 256
"""Elements of which a Laplacian is compared."""

Values = dict[str, Array]
Run = Callable[[Values], Values]


def check_derivative(original: Path, derived: Path, answer: OnnxModel) -> tuple[bool, list[str]]:
    """Whether all that could be compared agrees, and a row for each comparison."""
    if onnxruntime is None:
        return False, ["not checked: that needs onnxruntime (pip install onnxruntime)"]
    told = json.loads(answer.metadata["graphgrad.derivative"])
    right, rows = False, list[str]()
    for seed in range(POINTS):
        right, rows = _verdict(_Check(original, derived, answer, told, seed))
        if right:
            break
    return right, rows


def _verdict(check: _Check) -> tuple[bool, list[str]]:
    rows, right = [], True
    for what, errors, limit in check.rows():
        if errors is None:
            rows.append(f"not compared: {what}")
            continue
        off = errors > limit
        passed = off.sum() <= (KINKS if limit == NEAR else 0) * errors.size
        right &= bool(passed)
        error = errors[~off].max(initial=0) if passed else errors.max()
        verdict = "" if passed else f", more than {limit:g}"
        verdict += f" at {off.sum()} of {counted(errors.size, 'element')}" if off.any() else ""
        rows.append(f"{what}: relative difference {error:.1e}{verdict}")
    return right, rows


class _Check:
    """One comparison of two files.

    told  the metadata of the derivative
    """

    def __init__(
        self,
        original: Path,
        derived: Path,
        answer: OnnxModel,
        told: Mapping[str, Any],
        seed: int,
    ) -> None:
        self.original = original
        self.answer = answer
        self.told = told
        self.names = dict(zip(told["wrt"], told["outputs"], strict=False))
        self.before = _runner(_with_output(original, told["of"]))
        self.after = _runner(str(derived))
        self.rng = np.random.default_rng(seed)
        self.feeds, self.values = self._fed()

    def _fed(self) -> tuple[Values, Values]:
        """Random feeds with which both run, and all outputs are finite, if there are such."""
        feeds: Values = {}
        values: Values = {}
        for size in SIZES:
            for positive in (False, True):
                inputs = self.answer.inputs.items()
                feeds = {n: self._random(t, size, positive) for n, t in inputs}
                try:
                    values = self.after(feeds)
                except Exception:  # of onnxruntime, whose errors have no other base
                    continue
                if all(np.isfinite(v).all() for v in values.values() if v.dtype.kind == "f"):
                    return feeds, values
        return feeds, values

    def _random(self, t: Tensor, size: int, positive: bool) -> Array:
        shape = [_number(d, size) for d in t.shape]
        kind = kind_of(t.dtype)
        if kind == "b":
            return self.rng.random(shape) < 0.5
        if kind in "iu":
            return np.zeros(shape, t.dtype)
        draws = self.rng.uniform(0.2, 0.9, shape) if positive else self.rng.normal(size=shape)
        return np.asarray(draws).astype(t.dtype)

    def rows(self) -> Iterator[tuple[str, Array | None, float]]:
        """(what was compared, the errors of its elements or None, the most that is right)."""
        if not self.values:
            yield "the model does not run with random input", None, 0
            return
        before = self.before(self.feeds)
        for name, value in before.items():
            if name in self.values and value.dtype.kind == "f":
                yield f"output {name} of both", _relative(self.values[name], value), SAME
        reason = self._not_compared()
        if reason:
            yield reason, None, 0
        else:
            yield f"{self.told['kind']} and differences", self._errors(), NEAR

    def _not_compared(self) -> str:
        told = self.told
        inside = [name for name in told["wrt"] if name not in self.feeds]
        if told["rules"]:
            return "rules answer on the way, so differences are no reference"
        if inside:
            return f"{', '.join(inside)} cannot be moved: no input"
        if told["order"] > 2:
            return f"differences of order {told['order']}"
        if not all(np.isfinite(self.values[name]).all() for name in told["outputs"]):
            return "the derivative is not finite for random input"
        if told["kind"] == "laplacian" and self._elements() > MOST:
            return f"a Laplacian of {self._elements()} elements"
        return ""

    def _elements(self) -> int:
        return sum(self.feeds[name].size for name in self.told["wrt"])

    # --- differences ----------------------------------------------------------------------------

    def _errors(self) -> Array:
        """One for each element that could be compared."""
        told = self.told
        if told["kind"] not in ("hvp", "hessian", "laplacian") and told["order"] != 2:
            return self._first()
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/gradient.onnx"
            made = differentiate(
                self.original, told["of"], told["wrt"], path=path, forward=False, unconnected="zero"
            )
            gradient = _runner(path)
            named = dict(zip(made.outputs, told["wrt"], strict=True))

            def slopes(feeds: Values) -> Values:
                return {named[n]: v for n, v in gradient(feeds).items()}

            return self._second(slopes)

    def _along(self) -> Values:
        """The directions that are fed, or others."""
        added = self.told["inputs"] if self.told["kind"] in ("jvp", "hvp") else []
        added = added or (self.told["inputs"] if self.told["order"] == 2 else [])
        directions = added[-len(self.told["wrt"]) :]
        if directions:
            return {n: self.feeds[d] for n, d in zip(self.told["wrt"], directions, strict=True)}
        rng = np.random.default_rng(1)
        shapes = {name: self.feeds[name].shape for name in self.told["wrt"]}
        return {n: rng.normal(size=s).astype(self.feeds[n].dtype) for n, s in shapes.items()}

    def _moved(self, run: Run, along: Values) -> Values:
        """Central differences of what runs: of each element the median of the steps."""
        found = [self._differences(run, along, step) for step in STEPS]
        return {n: np.median([row[n] for row in found], 0) for n in found[0]}

    def _differences(self, run: Run, along: Values, step: float) -> Values:
        ends = []
        for sign in (step, -step):
            moved = {n: (self.feeds[n] + sign * v).astype(v.dtype) for n, v in along.items()}
            ends.append(run({**self.feeds, **moved}))
        pairs = {n: (ends[0][n], ends[1][n]) for n in ends[0] if ends[0][n].dtype.kind == "f"}
        return {n: (a.astype("f8") - b.astype("f8")) / (2 * step) for n, (a, b) in pairs.items()}

    def _first(self) -> Array:
        along, told = self._along(), self.told
        moved = self._moved(self.before, along)[told["of"]]
        y = self.before(self.feeds)[told["of"]]
        if told["kind"] == "jvp":
            return _relative(self.values[told["outputs"][0]], moved, y)
        if told["kind"] == "jacobian":
            return _relative(self._times(told["outputs"], moved.ndim, along), moved, y)
        seed = self.feeds[told["inputs"][0]] if told["inputs"] else np.ones_like(moved)
        terms = [self.values[self.names[n]].astype("f8") * v for n, v in along.items()]
        scale = max(sum(np.abs(t).sum() for t in terms), FLOOR * np.abs(seed * y).sum(), 1e-6)
        return np.reshape(abs(sum(t.sum() for t in terms) - np.vdot(seed, moved)) / scale, (1,))

    def _times(self, outputs: list[str], front: int, along: Values) -> Array:
        """Matrices by name times the directions, added up; front: the axes of their rows."""
        total: Any = 0
        for name, v in zip(outputs, along.values(), strict=True):
            matrix = self.values[name].astype("f8")
            if self.told["per_example"]:
                rows = matrix.reshape(len(v), -1, prod(v.shape[1:]))
                product = np.einsum("boi,bi->bo", rows, v.reshape(len(v), -1))
            else:
                product = matrix.reshape(-1, v.size) @ v.reshape(-1)
            total = total + product.reshape(matrix.shape[:front])
        return np.asarray(total)

    def _second(self, slopes: Run) -> Array:
        if self.told["kind"] == "laplacian":
            return np.concatenate([self._traced(slopes, name) for name in self.told["wrt"]])
        along = self._along()
        moved, errors = self._moved(slopes, along), []
        firsts = slopes(self.feeds)
        count = len(along)
        for i, name in enumerate(self.told["wrt"]):
            if self.told["kind"] == "hessian":
                blocks = self.told["outputs"][i * count : (i + 1) * count]
                found = self._times(blocks, moved[name].ndim, along)
            else:
                found = self.values[self.names[name]]
            errors.append(_relative(found, moved[name], firsts[name]))
        return np.concatenate(errors)

    def _traced(self, slopes: Run, name: str) -> Array:
        x = self.feeds[name]
        lead = len(x) if self.told["per_example"] else 1
        columns = np.eye(x.size // lead, dtype=x.dtype)
        total: Any = 0
        for column in columns:
            along = np.broadcast_to(column, (lead, column.size)).reshape(x.shape)
            moved = self._moved(slopes, {name: along})[name]
            total = total + (moved * along).reshape(lead, -1).sum(1)
        return _relative(self.values[self.names[name]], np.asarray(total), slopes(self.feeds)[name])


def _number(length: Any, size: int) -> int:
    """What stands for a length: an open one is of this size."""
    known = length.at(dict.fromkeys(length.names, size)) if isinstance(length, Length) else length
    return int(size if known is None else known)


def _relative(found: Array, expected: Array, of: Array | None = None) -> Array:
    """The error of each element over the largest element; of: what differences were taken of."""
    if not expected.size:
        return np.zeros(0)
    least = 1e-3 if of is None else max(FLOOR * float(np.abs(of).max(initial=0)), 1e-6)
    scale = max(float(np.abs(expected).max()), least)
    errors: Array = np.abs(np.ravel(found).astype("f8") - np.ravel(expected)) / scale
    return errors


def _runner(model: Any) -> Run:
    """What runs a model in onnxruntime: {output: array} of feeds, of which it takes its own."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    given = [each.name for each in session.get_inputs()]
    names = [each.name for each in session.get_outputs()]

    def run(feeds: Values) -> Values:
        found = session.run(names, {name: feeds[name] for name in given})
        return dict(zip(names, found, strict=True))

    return run


def _with_output(path: Path, name: str) -> Any:
    """The file, or a model that gives a tensor inside too."""
    if any(each.name == name for each in onnx.load(path, load_external_data=False).graph.output):
        return str(path)
    model = onnx.load(path)
    model.graph.output.add(name=name)
    return model.SerializeToString()
