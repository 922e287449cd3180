"""The LLVM backend as a whole: programs have NumPy's values, whatever joins what."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg

from ..each import every

pytest.importorskip("llvmlite")

from graphgrad.execute import loading
from graphgrad.execute.loading import automatic, load_backend
from graphgrad.lower.loop_ir import nodes_within

SHAPES = [(3, 4), (40, 70), (300, 700), (1, 9), (5, 1)]


def same(fn, *shapes, dtype="float64", rounding=1e-11):
    """fn of placeholders of these shapes, and its gradients, have NumPy's values."""
    rng = np.random.default_rng(0)
    with gg.Graph():
        xs = [gg.placeholder(s, dtype) for s in shapes]
        y = fn(*xs)
        asked = [y, *gg.gradients(gg.sum(y * y), xs, unconnected="zero")]
        plain = gg.compile(xs, asked, backend="numpy", optimize=False)
        fast = gg.compile(xs, asked, backend="llvm")
    arrays = [rng.normal(size=s).astype(dtype) for s in shapes]
    for _ in range(2):
        for a, b in zip(plain(*arrays), fast(*arrays), strict=True):
            scale = np.max(np.abs(a), initial=1.0)
            np.testing.assert_allclose(b / scale, a / scale, rounding, rounding)


@pytest.mark.parametrize(("n", "m"), SHAPES)
def test_what_is_computed_from_sums_and_other_inputs(n, m):
    same(lambda x, s: gg.sum(x * 2) + s * 3, (n, m), ())
    same(lambda x, b: gg.sum(x * 2, axis=0) + b, (n, m), (m,))
    same(lambda x, b: gg.sum(x * 2, axis=0) * b + gg.sum(x, axis=0), (n, m), (m,))
    same(lambda x, b, s: gg.sum(x * 2, axis=1) * b + s, (n, m), (n,), ())
    same(lambda x, b: gg.sum(gg.exp(x), axis=(0, 2)) + b[::-1], (n, m, 6), (m,))
    same(lambda x, b: gg.sum(gg.exp(x), axis=0) + b.T, (n, m, 6), (6, m))
    same(lambda x, b: gg.sum(gg.exp(x), axis=0) * b, (n, m, 6), (m, 1))


def test_sums_of_what_rows_leave():
    same(lambda x, s: gg.sum(gg.sum(x, axis=3) * s, axis=2, keepdims=True), (38, 2, 2, 2), (1,))
    same(lambda x: gg.sum(gg.sum(x, axis=2), axis=0), (5, 3, 4))
    same(lambda x: gg.sum(gg.sum(x, axis=2), axis=1), (5, 3, 4))
    same(lambda x: gg.sum(gg.sum(x, axis=(2, 3)), axis=0), (5, 3, 4, 6))


def test_what_rows_leave_is_repeated_and_summed():
    def fn(x):
        rows = gg.sum(x, axis=1, keepdims=True)
        return gg.sum(gg.broadcast_to(rows, x.shape), axis=0), gg.sum(rows, axis=0), rows * x

    with gg.Graph():
        x = gg.placeholder((6, 5))
        run = gg.compile(x, fn(x), backend="llvm", optimize=False)
    a = np.random.default_rng(0).normal(size=(6, 5))
    total = np.sum(a)
    for found, right in zip(run(a), [np.full(5, total), [total], a.sum(1)[:, None] * a]):
        np.testing.assert_allclose(found, right, 1e-12)


def test_the_sum_of_one_number_is_never_minus_zero():
    with gg.Graph():
        x = gg.placeholder((1, 3))
        sums = [gg.sum(x, axis=0), gg.mean(x, axis=0), gg.sum(x[0, 0]), gg.mean(x[0, 0])]
        run = gg.compile(x, [*sums, gg.max(x, axis=0)], backend="llvm", optimize=False)
    *found, largest = run(np.full((1, 3), -0.0))
    assert not any(np.signbit(a).any() for a in found)
    assert np.signbit(largest).all()


@pytest.mark.parametrize(("n", "m"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_that_are_gone_through_again(n, m, dtype):
    rounding = 1e-4 if dtype == "float32" else 1e-10

    def norm(x, g):
        centred = x - gg.mean(x, axis=-1, keepdims=True)
        spread = gg.mean(centred * centred, axis=-1, keepdims=True)
        return centred / gg.sqrt(spread + 0.1) * g

    same(gg.nn.softmax, (n, m), dtype=dtype, rounding=rounding)
    same(gg.nn.log_softmax, (n, m), dtype=dtype, rounding=rounding)
    same(norm, (n, m), (m,), dtype=dtype, rounding=rounding)


@pytest.mark.parametrize("each", [2, 3, 5, 8])
def test_parts_of_what_goes_over_elements_and_over_rows(each, monkeypatch):
    monkeypatch.setattr("graphgrad.execute.llvm.backend.PARTS", (each, each))

    def fn(x):
        rows, y = gg.sum(gg.sin(x), axis=1, keepdims=True), x
        for _ in range(5):
            rows = gg.tanh(rows) * 1.1
            y = gg.exp(-y * y)
        return y * rows, gg.sum(rows * rows)

    same(lambda x: gg.sum(fn(x)[0]) + fn(x)[1], (6, 5))
    same(lambda x: gg.sum(fn(x)[0], axis=0), (6, 5))


@pytest.mark.parametrize("at", every(2, [lambda x, i: x[i : i + 3], lambda x, i: x[i]]))
def test_gradients_of_many_slices_run_in_loops_of_a_bounded_length(at):
    def longest(n):
        with gg.Graph():
            x = gg.placeholder((n + 3, 4))
            y = sum(gg.sum(gg.tanh(at(x, i)) * float(i)) for i in range(n))
            f = gg.compile([x], [y, gg.gradients(y, x)], backend="llvm")
        return max(len(nodes_within(s.node)) for s in f.plans[0].steps)

    assert longest(400) <= longest(200)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_networks(dtype):
    rounding = 1e-4 if dtype == "float32" else 1e-10

    def dense(x, w, v):
        return gg.nn.gelu(gg.nn.relu(x @ w) @ v)

    def attention(q, k, v):
        return gg.nn.softmax(q @ gg.matrix_transpose(k) * 0.3) @ v

    def convolved(x, w):
        return gg.nn.max_pool(gg.nn.relu(gg.nn.conv(x, w)), 2)

    same(dense, (32, 20), (20, 30), (30, 10), dtype=dtype, rounding=rounding)
    same(attention, (2, 4, 9, 8), (2, 4, 9, 8), (2, 4, 9, 8), dtype=dtype, rounding=rounding)
    same(convolved, (2, 8, 8, 3), (3, 3, 3, 5), dtype=dtype, rounding=rounding)


def test_one_tensor_read_twice_by_a_node_of_its_own():
    with gg.Graph():
        x = gg.placeholder((5, 4))
        y = x @ x.T
        run = gg.compile(x, [y, y + y, (y + y) @ y, y * y], backend="llvm")
    a = np.random.default_rng(0).normal(size=(5, 4))
    b = a @ a.T
    for found, right in zip(run(a), [b, b + b, (b + b) @ b, b * b], strict=True):
        np.testing.assert_allclose(found, right, 1e-12, 1e-12)


def test_hessian_vector_products():
    with gg.Graph():
        x, w, v = gg.placeholder((6, 5)), gg.placeholder((5, 4)), gg.placeholder((5, 4))
        z = x @ w
        with gg.override_gradient(lambda site, dy: dy * gg.special.expit(site.inputs[0])):
            h = gg.log1p(gg.exp(z))
        (dw,) = gg.gradients(gg.sum(h * h) * 0.5, [w])
        along = gg.sum(dw * v)
        asked = [along, *gg.gradients(along, [w, x])]
        runs = [gg.compile([x, w, v], asked, backend=b) for b in ("numpy", "llvm")]
    arrays = [np.random.default_rng(0).normal(size=s) for s in ((6, 5), (5, 4), (5, 4))]
    for a, b in zip(*[run(*arrays) for run in runs], strict=True):
        np.testing.assert_allclose(a, b, 1e-11, 1e-11)


def test_lengths_that_are_known_only_when_it_runs():
    with gg.Graph():
        x = gg.placeholder(("N", 3))
        y = gg.sum(gg.tanh(x) * 2.0, axis=0)
        run = gg.compile(x, [y, *gg.gradients(y, [x])], backend="llvm")
    for n in (0, 1, 5, 400):
        value, grad = run(np.ones((n, 3)))
        np.testing.assert_allclose(value, 2 * n * np.tanh(np.ones(3)))
        assert grad.shape == (n, 3)


def test_auto_is_what_the_environment_names_or_llvm(monkeypatch):
    monkeypatch.setenv("GRAPHGRAD_BACKEND", "numpy")
    assert automatic() == "numpy"
    monkeypatch.delenv("GRAPHGRAD_BACKEND")
    assert automatic() == "llvm"
    assert load_backend().name == "llvm"


def test_llvmlite_that_does_not_load_is_done_without_and_told(monkeypatch):
    def broken(name):
        raise OSError("libllvmlite.so: cannot open shared object file")

    monkeypatch.delenv("GRAPHGRAD_BACKEND", raising=False)
    monkeypatch.setattr(loading, "_own", broken)
    loading._best_installed.cache_clear()
    with pytest.warns(RuntimeWarning, match="cannot be loaded, so programs run on NumPy: libllvm"):
        assert automatic() == "numpy"
    assert automatic() == "numpy"  # told once
    loading._best_installed.cache_clear()


def test_explain_says_what_is_left_to_numpy():
    with gg.Graph():
        x = gg.placeholder((4, 6))
        y = gg.tanh(x @ gg.transpose(x))
        f = gg.compile(x, [gg.sort(y), gg.sort(-y), gg.argsort(y)], backend="llvm")
        compiled = gg.compile(x, y, backend="llvm")
    assert "run by NumPy: ArgSort, 2 Sort" in f.explain().splitlines()
    assert "run by NumPy" not in compiled.explain()
