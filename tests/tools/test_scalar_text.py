"""Programs as text for other code generators, and the errors that are reported of them."""

import ctypes
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import graphgrad as gg

COSTS = Path(__file__).parents[2] / "tools" / "costs"


@pytest.fixture
def text():
    """What scalar_text.py defines."""
    return runpy.run_path(str(COSTS / "scalar_text.py"))


@pytest.fixture
def generators(monkeypatch):
    """What code_generators.py defines."""
    monkeypatch.setattr(sys, "path", [str(COSTS), *sys.path])
    return runpy.run_path(str(COSTS / "code_generators.py"))


def _program(build, x):
    with gg.Graph():
        t = gg.placeholder(x.shape, x.dtype)
        return gg.compile([t], build(t), backend="numpy")


KERNELS = ["gelu chain with gradient", "polynomial with gradient", "exp", "sum", "softmax of rows"]


@pytest.mark.ci
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpy_and_c_compute_the_program(name, dtype, generators, text, tmp_path):
    kernel = next(
        k for n, k in generators["kernels"]().items() if n.startswith(name) and dtype in n
    )
    x = kernel.x[:64, :32].copy() if kernel.x.ndim == 2 else kernel.x[:: len(kernel.x) // 999]
    x = np.ascontiguousarray(x)
    f = _program(kernel.build, x)
    right = f(x)
    for found, wanted in zip(text["numpy_function"](f.program)(x), right, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-6)
        assert found.dtype == dtype
    if not shutil.which("gcc"):
        pytest.skip("gcc is not installed")
    (tmp_path / "k.c").write_text(text["c_source"](f.program))
    library = tmp_path / "k.so"
    command = ["gcc", "-shared", "-fPIC", "k.c", "-o", library, "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)
    ys, sums = np.zeros_like(x), np.zeros(1, dtype)
    where = [ctypes.c_void_p(a.ctypes.data) for a in (x, ys, sums)]
    ctypes.CDLL(str(library)).run(*where, ctypes.c_long(x.size), ctypes.c_long(x.shape[-1]))
    for wanted in right:
        found = ys if wanted.shape else sums[0]
        np.testing.assert_allclose(found, wanted, rtol=2e-4, atol=1e-6)


def test_a_constant_of_several_numbers_has_no_text(text):
    x = np.ones(3)
    f = _program(lambda t: [t * np.array([1.0, 2.0, 3.0])], x)
    with pytest.raises(ValueError, match="more than one number"):
        text["numpy_function"](f.program)


def test_errors_are_counted_in_last_places(generators):
    x = np.linspace(0.5, 2, 64).astype("float32")
    kernel = generators["Kernel"](x, lambda t: [gg.exp(t)])
    f = _program(kernel.build, x)
    y = np.exp(x.astype("float64")).astype("float32")
    assert float(generators["errors"]([y], kernel, f.program)) <= 0.5
    assert float(generators["errors"]([y + 3 * np.spacing(y)], kernel, f.program)) > 2
