"""Outer vectorisation: reductions over axes in the middle, and rows too short for a vector."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.loops.expressions import DIALECT
from graphgrad.execute.llvm.loops.launch import plain_runner, runner
from graphgrad.execute.llvm.loops.nest import Nest
from graphgrad.lower.items import lower

from ...each import every
from .test_kernels import Group, guarded, recompiled

DTYPES = ["float32", "float64", "int32", "uint8", "bool"]


def outer(group):
    """Whether the rows of a group are lanes of a vector."""
    return Nest(lower(group.group, DIALECT), group.group.space.row).outer_lanes


def both(fn, *types, seed=0):
    """fn by LLVM and by NumPy: equal but for rounding."""
    with gg.Graph():
        xs = [gg.placeholder(*t) for t in types]
        made = fn(*xs)
        by_llvm, by_numpy = (gg.compile(xs, made, backend=b) for b in ("llvm", "numpy"))
    arrays = inputs(*types, seed=seed)
    near(by_llvm(*arrays), by_numpy(*arrays), types[0][1])


def inputs(*types, seed=0):
    """Arrays of these shapes and dtypes, of small numbers."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(1, 0.5, size=s).astype(d)
        if np.dtype(d).kind == "f"
        else rng.integers(0, 2 if d == "bool" else 4, size=s).astype(d)
        for s, d in types
    ]


def near(found, wanted, dtype):
    """Equal but for rounding."""
    tol = {"float32": 2e-5, "float64": 1e-12}.get(dtype, 1e-12)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tol, atol=tol)


def every_kind(x, axes):
    """All reductions of x that its dtype has."""
    yes = x if x.dtype == bool else x > 1
    made = [gg.any(yes, axis=axes), gg.all(yes, axis=axes)]
    made += [gg.max(x, axis=axes), gg.min(x, axis=axes, keepdims=True)]
    if x.dtype != bool:
        made += [gg.sum(x, axis=axes), gg.mean(x, axis=axes), gg.prod(x, axis=axes)]
    return made


MIDDLE = [
    ((3, 5, 7), 1),
    ((2, 33, 64), 1),
    ((2, 17, 65), 1),
    ((4, 16, 1), 1),
    ((1, 6, 5), 1),
    ((2, 40, 129), (1,)),
    ((3, 4, 5, 6), (1, 2)),
    ((3, 4, 5, 6), (1, 3)),
    ((2, 3, 1, 70), (1, 2)),
    ((5, 3, 2, 100), (0, 2)),
    ((3, 130), 0),
    ((2, 100_000), 0),
    ((2, 1000, 3), 1),
    ((3, 4, 5, 2, 9), (1, 3)),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("shape", "axes"), MIDDLE)
def test_every_reduction_over_axes_in_the_middle(shape, axes, dtype):
    group = Group(lambda x: every_kind(x, axes), (shape, dtype))
    arrays = inputs((shape, dtype))
    near(group.run(*arrays), group.numpy(*arrays), dtype)


SHORT = [(64, 2), (65, 3), (1003, 3), (333, 4), (129, 5), (100, 6), (4097, 7), (130, 8), (97, 10)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHORT)
def test_short_rows(shape, dtype):
    def fn(x, b):
        y = x if x.dtype == bool else x * b
        total = gg.sum(y, axis=1, keepdims=True)
        return [*every_kind(y, 1), y == b, gg.max(y, axis=0), total * total, gg.sum(total)]

    types = (shape, dtype), (shape[1:], dtype)
    group = Group(fn, *types)
    assert outer(group) or shape[1] > 8
    arrays = inputs(*types)
    near(group.run(*arrays), group.numpy(*arrays), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", every(2, [*range(2, 18), 24, 31, 32]))
def test_numbers_of_rows_and_what_is_left_in_the_end(n, dtype, monkeypatch):
    """For all lengths, whether columns pay or not."""
    monkeypatch.setattr("graphgrad.execute.llvm.loops.nest.MOVED", 1 << 20)
    monkeypatch.setattr("graphgrad.execute.llvm.loops.groups._kernels", {})

    def loss(x):
        return gg.sum(1.0 / gg.square(gg.sum(x * x, axis=1) + 1.0))

    def fn(x):
        return [loss(x), gg.gradients(loss(x), x), gg.sum(gg.tanh(x), axis=0)]

    for rows in (4 * n, 257):
        assert outer(Group(lambda x: [loss(x)], ((rows, n), dtype)))
        both(fn, ((rows, n), dtype), seed=n)


def test_short_rows_stay_apart_where_columns_do_not_pay():
    assert outer(Group(lambda x: gg.sum(x, axis=1), ((1000, 3), "float32")))
    assert not outer(Group(lambda x: gg.sum(x, axis=1), ((1000, 10), "float32")))
    assert outer(Group(lambda x: 1.0 / gg.sum(x, axis=1), ((1000, 10), "float32")))
    assert not outer(Group(lambda x: gg.sum(x, axis=1), ((10, 3), "float32")))


@pytest.mark.parametrize("m", [4, 37, 150])
def test_differences_of_all_pairs(m):
    def fn(x):
        squares = gg.sum(gg.square(gg.expand_dims(x, 1) - x), axis=-1)
        loss = gg.sum(1.0 / (squares + 1.0))
        return [loss, gg.gradients(loss, x), gg.min(squares, axis=1)]

    both(fn, ((m, 3), "float64"))


def normal(x, axes):
    """x, less its mean, by its deviation."""
    rest = x - gg.mean(x, axis=axes, keepdims=True)
    return rest / gg.sqrt(gg.mean(rest * rest, axis=axes, keepdims=True) + 1e-3)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 5, 7), 1),
        ((2, 33, 65), 1),
        ((2, 9, 11, 40), (1, 2)),
        ((200, 2, 3), (1, 2)),
        ((3, 70), 0),
    ],
)
def test_rows_that_are_read_again(shape, axes):
    def fn(x, b):
        y = normal(gg.exp(x * b), axes)
        return [y, gg.sum(y * b), *gg.gradients(gg.sum(y * y * x), [x])]

    both(fn, (shape, "float64"), ((*shape[:-1], 1), "float64"))


def test_softmax_over_channels_is_one_loop():
    group = Group(lambda x: gg.nn.softmax(x, axis=1), ((4, 21, 100), "float32"))
    assert outer(group)
    (x,) = inputs(((4, 21, 100), "float32"))
    x[1, :, 5] = 1000.0
    x[2, 3] = -np.inf
    (found,) = group.run(x)
    np.testing.assert_allclose(found, group.numpy(x)[0], rtol=1e-6)
    np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("shape", [(2, 40, 70), (300, 3)])
def test_not_a_number_and_infinity(shape):
    axis = 1
    group = Group(
        lambda x: [f(x, axis=axis) for f in (gg.sum, gg.max, gg.min, gg.prod)], (shape, "float64")
    )
    assert outer(group)
    (x,) = inputs((shape, "float64"))
    flat = x.reshape(-1)
    flat[::37] = np.inf
    flat[5::41] = -np.inf
    flat[7::53] = np.nan
    for a, b in zip(group.run(x), group.numpy(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 5000, 70), (3, 2500, 40), (2, 30_000, 3)])
def test_sums_over_the_middle_are_as_exact_as_numpys(shape, dtype):
    group = Group(lambda x: [gg.sum(x, axis=1), gg.mean(x, axis=1)], (shape, dtype))
    assert outer(group)
    x = np.random.default_rng(0).normal(1, 3, size=shape).astype(dtype)
    total, mean = group.run(x)
    columns = x.transpose(0, 2, 1).reshape(-1, shape[1]).tolist()
    exact = np.array([math.fsum(c) for c in columns]).reshape(total.shape)
    size = np.array([math.fsum(map(abs, c)) for c in columns]).reshape(total.shape)
    eps = np.finfo(dtype).eps
    assert (np.abs(total - exact) <= 2 * eps * size).all()
    assert (np.abs(mean - exact / shape[1]) <= 2 * eps * size / shape[1]).all()
    assert (
        np.abs(total - exact).max()
        <= np.abs(x.sum(1) - exact).max() + 2 * eps * np.abs(exact).max()
    )


VIEWS = {
    "transposed": lambda x, y: gg.sum(gg.transpose(x, (0, 2, 1)), axis=1),
    "transposed and plain": lambda x, y: gg.sum(gg.transpose(x, (0, 2, 1)) * y, axis=1),
    "flipped": lambda x, y: gg.sum(gg.flip(x, axis=(1, 2)) * x, axis=1),
    "sliced": lambda x, y: gg.max(x[:, 1:, ::2], axis=1),
    "broadcast": lambda x, y: gg.sum(x * x[:, :1] + x[:1, :, :1], axis=1),
    "an outer product": lambda x, y: gg.sum(
        gg.expand_dims(x[0], 1) * gg.expand_dims(y[0, :5], 2), axis=1
    ),
    "short rows, sliced": lambda x, y: gg.sqrt(gg.sum(gg.square(y[:, :, 1:4]), axis=2)),
    "short rows, flipped": lambda x, y: (
        gg.exp(gg.flip(y, axis=2)) / gg.sum(gg.square(y), axis=2, keepdims=True)
    ),
    "short rows, two axes": lambda x, y: gg.sum(gg.exp(y[:, :2] * y[:, :2, :1]), axis=(1, 2)),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views(name):
    both(lambda x, y: [VIEWS[name](x, y)], ((40, 5, 60), "float64"), ((40, 60, 5), "float64"))


def test_what_lies_across_memory_decides():
    """Where the rows themselves lie in order, vectors go along them."""
    shape, reads = (8, 50, 60), [((8, 60, 50), "float32"), ((8, 50, 60), "float32")]

    def rows(x, y):
        return gg.sum(gg.transpose(x, (0, 2, 1)), axis=1)

    def both(x, y):
        return gg.sum(gg.transpose(x, (0, 2, 1)) * y * y[:1], axis=1)

    assert outer(Group(lambda y: gg.sum(y, axis=1), (shape, "float32")))
    assert not outer(Group(rows, *reads))
    assert outer(Group(both, *reads))


def test_picks_among_rows():
    def fn(x, b, i):
        logits = x + b
        shifted = logits - gg.max(logits, axis=1, keepdims=True)
        logs = gg.log(gg.sum(gg.exp(shifted), axis=1))
        at = gg.expand_dims(i, 1)
        picked = gg.squeeze(gg.take_along_axis(x, at, axis=1), axis=1)
        return [logs - picked, gg.mean(logs - picked)]

    for shape in ((300, 5), (6, 7, 70)):
        index = (shape[0], *shape[2:])
        both(fn, (shape, "float64"), (shape[1:], "float64"), (index, "int64"))


def costly(x, axis):
    """Values, numbers of rows, and what is left in the end."""
    y = gg.exp(x)
    rows = gg.sum(y, axis=axis, keepdims=True)
    return [y / rows, gg.tanh(rows), gg.sum(gg.tanh(rows)), gg.sum(y * rows), gg.max(y, axis=0)]


LARGE = [((3000, 30, 20), 1), ((60, 50, 300), 1), ((1_000_001, 3), 1), ((100_000, 10), 1)]


@pytest.mark.parametrize(("shape", "axis"), LARGE)
def test_threads_change_nothing(shape, axis):
    group = Group(lambda x: costly(x, axis), (shape, "float32"))
    assert outer(group)
    assert group.kernel.shared.blocks > 1
    (x,) = inputs((shape, "float32"))
    one = group.run(x)
    for threads in (2, 3):
        for a, b in zip(one, group.run(x, threads=threads), strict=True):
            np.testing.assert_array_equal(a, b)
    near(one, group.numpy(x), "float32")


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 5, 7), 1), ((2, 20, 65), 1), ((67, 3), 1), ((40, 6), 1)]
)
def test_nothing_outside_is_written_and_nothing_outside_matters(shape, axis, dtype):
    def fn(x, y):
        total = gg.max(x * y, axis=axis, keepdims=True)
        return y - total, total + 1, gg.sum(total), gg.max(x)

    group = Group(fn, (shape, dtype), (shape, dtype))
    assert outer(group)
    plain = inputs((shape, dtype), (shape, dtype))
    wanted = group.run(*plain)
    kernel = recompiled(group, [*group.kernel.shared.built_in, *group.kernel.shared.plain])
    for make in (runner, plain_runner):
        ins = [guarded(shape, dtype, a) for a in plain]
        outs = [guarded(t.shape, t.dtype, 0) for t in group.types]
        made = group.kernel if make is runner else kernel
        make(made, 1)(*[ins[i][0] for i in group.inputs], *[a for a, _ in outs])
        assert all(untouched() for _, untouched in (*ins, *outs))
        for a, b in zip([outs[i][0] for i in group.order], wanted, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("shape", "axis"), [((2, 50, 70), 1), ((300, 3), 1)])
def test_a_long_body(shape, axis):
    def fn(x):
        total = gg.sum(x, axis=axis, keepdims=True)
        y = x
        for i in range(350):
            y = gg.sin(y) if i % 9 == 0 else y * total if i % 3 == 1 else y * x + 0.1
        return [y, gg.sum(y * total, axis=axis)]

    group = Group(fn, (shape, "float64"))
    assert outer(group)
    (x,) = inputs((shape, "float64"))
    x /= shape[axis] * 2
    near(group.run(x), group.numpy(x), "float64")
