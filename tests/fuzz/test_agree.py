"""Random programs: backends compute what the ops' own kernels do. `tools/fuzz.py` runs more."""

import importlib.util

import numpy as np
import pytest

import graphgrad as gg

from .agree import check
from .rounding import Expected

BACKENDS = [b for b in ("numpy", "llvm") if b == "numpy" or importlib.util.find_spec("llvmlite")]


def run_seeds(first, last, backend):
    for seed in range(first, last):
        try:
            check(seed, backend)
        except Exception as error:
            error.add_note(f"seed {seed}: python tools/fuzz.py {seed} --backend {backend}")
            raise


@pytest.mark.parametrize(
    "first", [0, pytest.param(10, marks=pytest.mark.ci), pytest.param(20, marks=pytest.mark.ci)]
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_random_programs(backend, first):
    run_seeds(first, first + 10, backend)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 15_000, 100))
@pytest.mark.parametrize("backend", BACKENDS)
def test_thousands_of_random_programs(backend, first):
    run_seeds(first, first + 100, backend)


def test_what_rounding_explains_is_right_and_nothing_else():
    with gg.Graph():
        x = gg.placeholder((3,))
        y = [x * 3.0, gg.exp(x) - gg.exp(x + 0.0), x > 0, gg.maximum(x, 0.0), x / gg.abs(x)]
        program = gg.Program([x], y)
    expected = Expected(program, [np.array([1.0, -0.0, 5.0])], seed=0)
    good = [a.copy() for a in expected.values]
    assert expected.wrong(good) is None
    good[0][0] += 4e-16
    good[1][0] += 1e-16  # of numbers near 3
    good[3][1] = np.copysign(0.0, -np.copysign(1.0, good[3][1]))
    assert expected.wrong(good) is None
    for place, at, value in [(0, 0, 3.0000001), (0, 1, 0.0), (1, 0, 1e-9), (2, 1, True)]:
        bad = [a.copy() for a in good]
        bad[place][at] = value
        assert f"output {place}" in expected.wrong(bad)
    for wrong in (np.float32([3, 0, 15]), np.array([[3.0, -0.0, 15.0]])):
        assert "output 0 is" in expected.wrong([wrong, *good[1:]])
    nothing = [a.copy() for a in good]
    nothing[4][1] = 0.0  # not NaN
    assert "output 4" in expected.wrong(nothing)
