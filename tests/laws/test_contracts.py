"""Laws over the table of contracts: one error on every backend, wherever the function stands."""

import functools
import importlib.util
import warnings
from typing import NamedTuple

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.tree import flatten

from ..each import each
from .contracts import ALL, CONTRACTS

PACKAGES = {"numpy": "numpy", "llvm": "llvmlite", "jax": "jax"}
BACKENDS = [b for b in ALL if importlib.util.find_spec(PACKAGES[b]) is not None]
FEW = ("x[i]", "x[i, j]", "at.set, 2", "power", "cholesky", "while_loop", "while_loop, its test")
"""XLA takes half a second for each row: by default it is given these."""
CASES = [(c.name, c.name, b) for c in CONTRACTS for b in BACKENDS if b in c.backends]


class Part(NamedTuple):
    """The function in one place of a program: its inputs, arrays that it takes, and one it refuses.

    passed  what it is given where the refused array is not looked at
    """

    inputs: list
    right: list
    wrong: list
    outputs: list
    passed: list | None = None


def number(y):
    """The sum of y, in float64."""
    return gg.sum(gg.cast(gg.real(y), "float64"))


def of_call(row, wrong, stack):
    """The arrays of a call; of several calls, of which the second is wrong."""
    if not stack:
        return row.given(wrong)
    rows = [row.given(wrong and i == 1) for i in range(stack)]
    return [np.stack(arrays) for arrays in zip(*rows, strict=True)]


def placeholders(row, stack):
    types = row.types or [np.shape(a) for a in row.right]
    before = (stack,) if stack else ()
    arrays = row.given(False)
    return [gg.placeholder((*before, *t), a.dtype) for t, a in zip(types, arrays, strict=True)]


def part(row, build, stack=0):
    xs = placeholders(row, stack)
    return Part(xs, of_call(row, False, stack), of_call(row, True, stack), flatten(build(*xs)))


def gradient(row):
    """Of all that has one."""

    def build(*xs):
        floating = [x for x in xs if x.dtype.kind == "f"]
        y = row.build(*xs)
        moving = y.dtype.kind in "fc" and floating
        return gg.gradients(number(y), floating, unconnected="zero") if moving else []

    return part(row, build)


def choice(row):
    holds = gg.placeholder((), "bool")
    made = part(row, lambda *xs: gg.cond(holds, lambda: number(row.build(*xs)), lambda: 0.0))
    taken, other = np.asarray(True), np.asarray(False)
    return Part(
        [holds, *made.inputs],
        [taken, *made.right],
        [taken, *made.wrong],
        made.outputs,
        [other, *made.wrong],
    )


def loop(row):
    def step(carry, rows):
        return carry + number(row.build(*rows)), carry

    return part(row, lambda *xs: gg.scan(step, gg.constant(0.0), xs), 3)


def batch(row):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gg.PerformanceWarning)  # of functions of Python
        return part(row, lambda *xs: gg.vmap(lambda *one: number(row.build(*one)))(*xs), 2)


PLACES = {
    "plain": lambda row: part(row, row.build),
    "gradient": gradient,
    "choice": choice,
    "loop": loop,
    "batch": batch,
}


@functools.cache
def program(row_name):
    """The parts of a row, and its graph's inputs and outputs."""
    row = next(c for c in CONTRACTS if c.name == row_name)
    with gg.Graph():
        parts = {
            name: place(row)
            for name, place in PLACES.items()
            if row.inside or name not in ("loop", "batch")
        }
    return row, {name: p for name, p in parts.items() if p.outputs}


def compiled(parts, backend):
    inputs = [t for p in parts.values() for t in p.inputs]
    return gg.compile(inputs, {name: p.outputs for name, p in parts.items()}, backend=backend)


def arrays_of(parts, **other):
    return [a for name, p in parts.items() for a in other.get(name, p.right)]


@functools.cache
def by_numpy(row_name):
    """What NumPy makes of what is right, and where the wrong one is not looked at."""
    _, parts = program(row_name)
    run = compiled(parts, "numpy")
    return run(*arrays_of(parts)), run(*arrays_of(parts, choice=parts["choice"].passed))


def family(name):
    return name.partition(",")[0]


@each([case for case in CASES if case[2] != "jax" or case[1] in FEW], family, sample=2)
def test_what_a_run_refuses_is_one_error_on_every_backend(row_name, backend):
    """On the plain value, in the gradient, in a branch that is taken, a loop and a batch; a run
    before and after it is not disturbed."""
    check(row_name, backend)


@pytest.mark.ci
@each([case for case in CASES if case[2] == "jax" and case[1] not in FEW], family)
def test_what_a_run_refuses_is_the_same_error_on_jax(row_name, backend):
    check(row_name, backend)


def check(row_name, backend):
    row, parts = program(row_name)
    run = compiled(parts, backend)
    right, passed = by_numpy(row_name)
    for name, p in parts.items():
        with pytest.raises(row.error, match=row.words) as error:
            run(*arrays_of(parts, **{name: p.wrong}))
        notes = "".join(error.value.__notes__)
        assert "contracts.py" in notes, f"{name}: {notes}"
    same(run(*arrays_of(parts)), right)
    if backend != "jax" or row.types is None:  # JAX traces both branches for the lengths of a call
        same(run(*arrays_of(parts, choice=parts["choice"].passed)), passed)


def same(found, want):
    for got, expected in zip(flatten(found), flatten(want), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
