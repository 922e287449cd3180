"""How far rounding moves the values of a program: the yardstick for comparing backends.

A program is run node by node by the ops' own kernels, and once more with every float that a node
makes moved by a few units in its last place, at random. What moves far is ill-conditioned there,
and two right backends may differ as much. What a sum goes over is moved too, for its error is one
of its terms. (Stochastic arithmetic: Vignes 2004, "Discrete stochastic arithmetic".)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import graphgrad as gg

UNITS = 16  # in the last place, by which values move
MARGIN = 20  # how much further than what was seen two backends may differ
SUMS = frozenset([
    "ReduceSum", "ReduceMean", "ReduceProd", "ReduceLogSumExp", "SumToShape", "MatMul", "Einsum",
    "AddN", "CumulativeSum", "Softmax", "LogSoftmax", "SoftmaxCrossEntropyWithLogits", "AvgPool",
    "SparseSoftmaxCrossEntropyWithLogits", "ScatterAdd", "AddAt", "Cond",
    "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "AvgPoolGrad",
])  # fmt: skip
"""Ops that sum, whose error is one of the terms."""
SIGNS = frozenset([
    "Maximum", "Minimum", "Clip", "ReduceMax", "ReduceMin", "Relu", "Elu", "MatMul", "Einsum",
])  # fmt: skip
"""Ops that leave the sign of a zero open: 0.0 and -0.0 are equal, and either is the greater.
The sign of NaN is open everywhere."""
LOGS = frozenset([
    "LogSoftmax", "ReduceLogSumExp", "SoftmaxCrossEntropyWithLogits", "Softplus", "LogSigmoid",
    "SparseSoftmaxCrossEntropyWithLogits", "LogAddExp",
])  # fmt: skip
"""Ops that take the logarithm of a number near 1, which is as exact as that number."""


def run(program: gg.Program, arrays: Sequence[Any], rng: Any = None) -> list[np.ndarray]:
    """The outputs of a program; with values that move where there is a generator."""

    def moved(x: Any) -> np.ndarray:
        x = np.asarray(x)
        if rng is None or x.dtype.kind != "f":
            return x
        by = UNITS * np.finfo(x.dtype).eps * rng.uniform(-1, 1, x.shape)
        x = np.asarray(x * (1 + by).astype(x.dtype), x.dtype)
        return np.where(np.isnan(x), np.copysign(x, by.astype(x.dtype)), x)

    def turned(x: Any) -> np.ndarray:
        x = np.asarray(x)
        if rng is None or x.dtype.kind != "f":
            return x
        return np.where(x == 0, np.copysign(x, rng.choice(np.array([-1, 1], x.dtype), x.shape)), x)

    values = dict(zip(program.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for node in program.nodes:
            args = [values[t] for t in node.inputs]
            if node.type in SUMS:
                args = [moved(a) for a in args]
            made = node.op.kernel(np, *args)
            parts = made if len(node.outputs) > 1 else (made,)
            if node.type in SIGNS:
                parts = [turned(p) for p in parts]
            if node.type in LOGS:
                parts = [p + moved(np.ones_like(p)) - 1 for p in parts]
            if node.inputs:
                parts = [moved(p) for p in parts]
            values.update(zip(node.outputs, parts, strict=True))
    return [np.asarray(values[t]) for t in program.outputs]


class Expected:
    """The values of a program, and how far they may be off."""

    def __init__(self, program: gg.Program, arrays: Sequence[Any], seed: int) -> None:
        self.program, self.arrays = program, arrays
        self.values = run(program, arrays)
        self._rng = np.random.default_rng(seed)
        self._spread = [np.zeros(v.shape) for v in self.values]
        self._unsure = [np.zeros(v.shape, bool) for v in self.values]
        self._move(3)

    def _move(self, times: int) -> None:
        """Find out more about how values move. Unsure is what becomes, or stops being, a number."""
        for _ in range(times):
            found = run(self.program, self.arrays, self._rng)
            for i, (a, b) in enumerate(zip(self.values, found, strict=True)):
                if a.dtype.kind != "f":
                    self._unsure[i] |= a != b
                    continue
                finite = np.isfinite(a) & np.isfinite(b)
                same = (a == b) | (np.isnan(a) & np.isnan(b))
                zeros = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
                self._unsure[i] |= ~finite & ~same | zeros
                with np.errstate(all="ignore"):
                    gap = np.where(finite, np.abs(a.astype(float) - b), 0)
                self._spread[i] = np.maximum(self._spread[i], gap)

    def wrong(self, found: Sequence[Any]) -> str | None:
        """What is wrong with a backend's values, None where nothing is."""
        said = self._wrong(found)
        if said is not None:  # perhaps bad luck
            self._move(40)
            said = self._wrong(found)
        return said

    def _wrong(self, found: Sequence[Any]) -> str | None:
        for i, (a, b) in enumerate(zip(self.values, found, strict=True)):
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                return f"output {i} is {b.dtype}{b.shape}, not {a.dtype}{a.shape}"
            bad = ~self._unsure[i] & ~self._near(a, b, self._spread[i])
            if bad.any():
                at = tuple(int(n[0]) for n in np.nonzero(np.atleast_1d(bad)))
                x, y = np.atleast_1d(a)[at], np.atleast_1d(b)[at]
                off = np.atleast_1d(self._spread[i])[at]
                return (
                    f"output {i} ({a.dtype}{a.shape}): {bad.sum()} wrong, at {at} {y!r}, not {x!r} "
                    f"(rounding moves that by {off:.2g})"
                )
        return None

    @staticmethod
    def _near(a: np.ndarray, b: np.ndarray, spread: np.ndarray) -> np.ndarray:
        if a.dtype.kind != "f":
            return np.asarray(a == b)
        limits = np.finfo(a.dtype)
        with np.errstate(all="ignore"):
            a, b = a.astype(float), b.astype(float)
            room = MARGIN * spread + 4 * UNITS * limits.eps * np.abs(a) + float(limits.tiny)
            close = np.abs(a - b) <= room
        zeros = (a != 0) | (b != 0) | (np.signbit(a) == np.signbit(b)) | (spread > 0)
        return np.asarray((a == b) & zeros | (np.isnan(a) & np.isnan(b)) | close & zeros)
