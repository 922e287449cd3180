"""What index arrays pick in compiled loops: any key, any view, indices that are out of range."""

import numpy as np
import pytest

import graphgrad as gg

pytest.importorskip("llvmlite")

from graphgrad.execute.llvm.loops.launch import plain_runner, runner

from .test_kernels import Group, recompiled


def compiled(fn, *arrays):
    """A function of arrays on LLVM, and what it gives."""
    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
        f = gg.compile(xs, fn(*xs), backend="llvm")
    assert "run by NumPy" not in str(f.explain())
    return f, f(*arrays)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


X = np.random.default_rng(1).normal(size=(4, 5, 6))
AT, TO = np.array([3, 0, -1, -4]), np.array([[1], [-5]])
KEYS = {
    "first": lambda x, i, j: x[i],
    "last": lambda x, i, j: x[..., j],
    "middle": lambda x, i, j: x[:, i],
    "two": lambda x, i, j: x[i, j],
    "apart": lambda x, i, j: x[i, :, j],
    "three": lambda x, i, j: x[i, j, i],
    "integers": lambda x, i, j: x[-1, j, 2],
    "an integer apart": lambda x, i, j: x[1, :, i],
    "slices": lambda x, i, j: x[::-2, i, 1:5:3],
    "new axes": lambda x, i, j: x[None, i, None, :, j],
    "along": lambda x, i, j: x[i, 1:, 0][:, None],
}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "bool"])
def test_keys_pick_what_numpy_picks(key, dtype):
    x = (10 * X).astype(dtype)
    fn = KEYS[key]
    _, found = compiled(lambda *a: gg.where(fn(*a) > 0, fn(*a), fn(*a)), x, AT, TO)
    np.testing.assert_array_equal(found, fn(x, AT, TO))


@pytest.mark.parametrize("dtype", [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)])
def test_indices_of_any_integers(dtype, rng):
    i = rng.integers(0 if dtype[0] == "u" else -50, 50, (33,)).astype(dtype)
    x = rng.normal(size=(50, 3))
    _, found = compiled(lambda x, i: gg.exp(gg.take(x, i, axis=0)), x, i)
    np.testing.assert_allclose(found, np.exp(x[i]), rtol=1e-15)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_along_an_axis(axis, rng):
    x = rng.normal(size=(3, 4, 70)).astype("float32")
    shape = [*x.shape]
    shape[axis] = 5
    i = rng.integers(-x.shape[axis], x.shape[axis], shape)
    _, found = compiled(lambda x, i: gg.take_along_axis(x, i, axis=axis) * 2, x, i)
    np.testing.assert_array_equal(found, np.take_along_axis(x, i, axis) * 2)


def test_views_of_what_is_picked_from_and_of_indices(rng):
    x = rng.normal(size=(6, 40))
    i = rng.integers(-40, 40, (7, 3))

    def fn(x, i):
        table = gg.transpose(x)[:, ::-1]
        turned = gg.flip(gg.transpose(i), 0)
        row = gg.broadcast_to(x[:1], (9, 40))
        return [
            gg.tanh(gg.take(table, turned, axis=0)),
            gg.negative(gg.take(row, i[1:, 1:], axis=1)),
        ]

    _, (a, b) = compiled(fn, x, i)
    np.testing.assert_allclose(a, np.tanh(x.T[:, ::-1][i.T[::-1]]), rtol=1e-15)
    np.testing.assert_array_equal(b, -np.broadcast_to(x[:1], (9, 40))[:, i[1:, 1:]])


def test_what_is_picked_from_is_complete_before(rng):
    """A value of the loop's own shape, which each element reads elsewhere."""
    x, i = rng.normal(size=200), rng.permutation(200)

    def fn(x, i):
        y = x * 2
        z = gg.take(y, i, axis=0) + y
        return [z, gg.take(z, i + 0, axis=0) * z]

    _, (a, b) = compiled(fn, x, i)
    wanted = 2 * x[i] + 2 * x
    np.testing.assert_array_equal(a, wanted)
    np.testing.assert_array_equal(b, wanted[i] * wanted)


def test_indices_known_before(rng):
    x = rng.normal(size=(5, 4))
    at = np.array([[2]])
    _, found = compiled(lambda x: [gg.exp(gg.take(x, at, axis=0)), gg.negative(x[at, [[1]]])], x)
    np.testing.assert_allclose(found[0], np.exp(x[at]), rtol=1e-15)
    np.testing.assert_array_equal(found[1], -x[at, [[1]]])


def test_softmax_of_rows_that_are_picked(rng):
    x, i = rng.normal(size=(100, 33)), rng.integers(-100, 100, 57)
    _, found = compiled(lambda x, i: gg.nn.softmax(gg.take(x, i, axis=0)), x, i)
    e = np.exp(x[i] - x[i].max(1, keepdims=True))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-13)


@pytest.mark.parametrize("wrong", [50, -51, 2**40])
@pytest.mark.parametrize("length", [8, 40_000])
def test_an_index_out_of_range_is_an_error_with_its_place(wrong, length, rng):
    x, i = rng.normal(size=(50, 8)), rng.integers(-50, 50, (length,))
    f, _ = compiled(lambda x, i: gg.tanh(gg.take(x, i, axis=0)) + 1, x, i)
    i[length // 2] = wrong
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for axis 0") as error:
        f(x, i)
    assert "Gather(axis=0), built at test_gathers.py" in error.value.__notes__[0]


@pytest.mark.parametrize("make", [runner, plain_runner])
@pytest.mark.parametrize("rows", [7, 30_000])
def test_nothing_is_written_where_an_index_is_out_of_range(make, rows, rng):
    def fn(x, i):
        return gg.tanh(gg.take(x, i, axis=0))

    group = Group(fn, ((50, 8), "float64"), ((rows,), "uint16"))
    shared = group.kernel.shared
    group.kernel = recompiled(group, [*shared.built_in, *shared.plain])
    x, i = rng.normal(size=(50, 8)), rng.integers(0, 50, rows).astype("uint16")
    order = {0: x, 1: i}
    given = [order[k] for k in group.inputs]
    out = np.zeros((rows, 8))
    make(group.kernel, 2)(*given, out)
    np.testing.assert_allclose(out, np.tanh(x[i]), rtol=1e-15)
    i[-1] = 50
    out[...] = 7
    with pytest.raises(IndexError, match="index 50 is out of bounds for axis 0 with size 50"):
        make(group.kernel, 2)(*given, out)
    assert (out == 7).all()


def test_inputs_that_lie_otherwise(rng):
    x, i = rng.normal(size=(8, 50)).T, rng.integers(0, 50, (6, 4))[::2, ::-1]
    f, _ = compiled(lambda x, i: gg.tanh(gg.take(x, i, axis=0)), x.copy(), i.copy())
    np.testing.assert_allclose(f(x, i), np.tanh(x[i]), rtol=1e-15)


def test_results_never_lie_over_what_is_picked_from(rng):
    """An input that is not needed any more is still read by the next elements."""
    x, i = rng.normal(size=300), rng.permutation(300)

    def fn(x, i):
        y = gg.cumsum(x)
        return gg.sum(gg.cumsum(gg.take(y, i, axis=0) + 1))

    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in (x, i)]
        f = gg.compile(xs, fn(*xs), backend="llvm")
    np.testing.assert_allclose(f(x, i), np.cumsum(np.cumsum(x)[i] + 1).sum(), rtol=1e-12)


def test_what_is_picked_from_may_be_one_number(rng):
    x, i = rng.normal(size=(5, 3)), np.array([[0, 3, -5]])

    def fn(x, i):
        table = gg.full((5, 3), 2.5, dtype=x.dtype)
        return [gg.take(table, i, axis=0), gg.take(table, i, axis=0) * x[:3]]

    with gg.Graph():
        xs = [gg.placeholder(a.shape, a.dtype) for a in (x, i)]
        f = gg.compile(xs, fn(*xs), backend="llvm", optimize=False)
    a, b = f(x, i)
    np.testing.assert_array_equal(a, np.full((1, 3, 3), 2.5))
    np.testing.assert_array_equal(b, 2.5 * x[None, :3])
    i[0, 1] = 5
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        f(x, i)


INDEX = {
    "full": lambda i: gg.full(i.shape, 2, dtype="int64"),
    "zeros": lambda i: gg.zeros(i.shape, dtype="int32"),
    "one constant": lambda i: gg.broadcast_to(gg.constant(np.array(-1)), i.shape),
}


@pytest.mark.parametrize("index", INDEX)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("optimize", [False, True])
def test_one_index_for_all(index, axis, optimize, rng):
    """Along an axis and in keys: alone, with more in the loop, reduced."""
    x, i = rng.normal(size=(5, 4)), np.zeros((5, 3) if axis else (3, 4), int)

    def fn(x):
        at = INDEX[index](i)
        y = gg.take_along_axis(x, at, axis=axis)
        return [y, y * 2, gg.sum(y, axis=0), gg.take(x, at, axis=axis), x[at, at] + 1]

    with gg.Graph():
        g = gg.placeholder(x.shape, x.dtype)
        outputs = fn(g)
        outputs += gg.gradients(gg.sum(outputs[0] * outputs[1]), [g])
        found, wanted = (
            gg.compile(g, outputs, backend=b, optimize=optimize)(x) for b in ("llvm", "numpy")
        )
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_the_node_that_is_named_raised_the_like(rng):
    with gg.Graph():
        a, x, i = gg.placeholder((3,)), gg.placeholder((4,)), gg.placeholder((3,), "int64")
        f = gg.compile([a, x, i], gg.log(a) * gg.take(x, i, axis=0) + 1.0, backend="llvm")
    with np.errstate(all="raise"), pytest.raises(IndexError) as error:
        f(-np.ones(3), np.ones(4), np.array([0, 4, 0]))
    assert "Gather" in error.value.__notes__[0]
