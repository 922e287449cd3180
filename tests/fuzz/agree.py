"""Whether a backend computes what the ops' own kernels do, however it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import graphgrad as gg

from .programs import Case, random_case
from .rounding import Expected

WAYS: dict[str, list[dict[str, Any]]] = {
    "numpy": [{"optimize": False}, {}, {"num_threads": 2}, {"check": True}],
    "llvm": [{"optimize": False}, {"num_threads": 1}, {"num_threads": 2}, {"check": True}],
}
"""Options of `compile` for each backend."""


def check(seed: int, backend: str = "llvm") -> None:
    """Every way of running the program of a seed gives its values. AssertionError where not."""
    case = random_case(seed)
    with case.graph:
        wanted = [*case.outputs, *case.updates.values()]
        plain = gg.compile(case.inputs, wanted, backend="numpy", optimize=False)
    initial = [t.node.op.initial for t in plain.program.inputs[len(case.inputs) :]]
    expected = Expected(plain.program, [*case.arrays, *initial], seed)
    with _limits(seed, backend):
        runs = [Run(case, backend, options) for options in WAYS[backend]]
        for run in runs:
            run.check(expected, np.random.default_rng(seed))
    for a, b in zip(runs[1].found, runs[2].found, strict=True):
        assert a.tobytes() == b.tobytes(), "the number of threads shows in a result"


LIMITS: list[dict[str, Any]] = [
    {},
    {
        "llvm.loops.partition.BLOCK_COST": 1_000,
        "llvm.loops.nest.MOVED": 1 << 20,
        "llvm.loops.nest.BESIDE": 1,
    },
    {"llvm.loops.spills.LONG": 4, "llvm.loops.spills.FAR": 2, "llvm.loops.kernel.ON_STACK": 64},
    {"llvm.loops.spills.LONG": 4, "llvm.loops.spills.FAR": 2, "llvm.loops.nest.MOVED": 1 << 20},
    {"llvm.loops.nest.CHEAP": 0, "llvm.loops.kernel.INLINED": 0, "llvm.loops.policy.ROW": 64},
    {"llvm.backend.PARTS": (24, 8)},
    {"llvm.loops.nest.BUFFERS": 0, "llvm.loops.kernel.ON_HEAP": 64, "llvm.loops.tiling.LEFT": 2},
]
"""Limits of the LLVM backend, set so that small programs go beyond them."""


@contextmanager
def _limits(seed: int, backend: str) -> Iterator[None]:
    """Some limits set low, each time others."""
    with ExitStack() as stack:
        if backend == "llvm":
            stack.enter_context(patch("graphgrad.execute.llvm.loops.groups._kernels", {}))
            for name, value in LIMITS[seed % len(LIMITS)].items():
                stack.enter_context(patch(f"graphgrad.execute.{name}", value))
        yield


class Run:
    """The program of a case compiled in one way, and the values that it gave first."""

    def __init__(self, case: Case, backend: str, options: dict[str, Any]) -> None:
        self.case = case
        self.how = f"{backend} {options}"
        self.state = gg.State()
        with case.graph:
            self.f = gg.compile(
                case.inputs,
                case.outputs,
                backend=backend,
                updates=case.updates,
                state=self.state,
                **options,
            )
        self.found = self.values(case.arrays)

    def values(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Outputs and then what is written to variables, of a call from the initial state on."""
        before = [a.copy() for a in arrays]
        self.state.reset()
        found = self.f(*arrays)
        for a, b in zip(arrays, before, strict=True):
            assert a.tobytes() == b.tobytes(), f"{self.how}: an argument changed"
        for i, x in enumerate(found):
            others = (*arrays, *found[:i])
            assert not any(np.shares_memory(x, o) for o in others), f"{self.how}: shared memory"
        return [*found, *[self.state[v] for v in self.case.updates]]

    def check(self, expected: Expected, rng: np.random.Generator) -> None:
        """What was found, what a second call finds, and what is found of other layouts."""
        said = expected.wrong(self.found)
        assert said is None, f"{self.how}: {said}\n{self.f.explain()}"
        kept = [a.copy() for a in self.found]
        for a, b in zip(kept, self.values(self.case.arrays), strict=True):
            assert a.tobytes() == b.tobytes(), f"{self.how}: a second call differs"
        for _ in range(2):
            arrays = [LAYOUTS[int(rng.integers(len(LAYOUTS)))](a) for a in self.case.arrays]
            said = expected.wrong(self.values(arrays))
            assert said is None, f"{self.how}, other layouts: {said}\n{self.f.explain()}"
        for a, b in zip(kept, self.found, strict=True):
            assert a.tobytes() == b.tobytes(), f"{self.how}: a later call changed an earlier result"


# --- layouts --------------------------------------------------------------------------------------


def _same(a: np.ndarray) -> np.ndarray:
    return a


def _fortran(a: np.ndarray) -> np.ndarray:
    return np.array(a, order="F")


def _read_only(a: np.ndarray) -> np.ndarray:
    a = a.copy()
    a.flags.writeable = False
    return a


def _reversed(a: np.ndarray) -> np.ndarray:
    return np.flip(np.flip(a).copy())


def _spaced(a: np.ndarray) -> np.ndarray:
    """Every second number of a larger array."""
    room = np.zeros((*a.shape, 2), a.dtype)
    room[..., 1] = a
    return room[..., 1]


def _unaligned(a: np.ndarray) -> np.ndarray:
    room = np.zeros(a.nbytes + 1, np.uint8)
    found = room[1:].view(a.dtype).reshape(a.shape)
    found[...] = a
    return found


def _part(a: np.ndarray) -> np.ndarray:
    """In the middle of a larger array, whose last axis goes on."""
    if a.ndim == 0:
        return a
    room = np.zeros((*a.shape[:-1], a.shape[-1] + 3), a.dtype)
    room[..., 1:-2] = a
    return room[..., 1:-2]


LAYOUTS = (_same, _fortran, _read_only, _reversed, _spaced, _unaligned, _part)
