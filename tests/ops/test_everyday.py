"""NumPy's everyday functions: stacks, parts, borders, choices, grids: values, types, gradients."""

import numpy as np
import pytest

import graphgrad as gg

from .against_numpy import difference, gradient, run, same

RNG = np.random.default_rng(3)
X, Y, V = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 3)), RNG.normal(size=3)
I3, K = np.array([[2, 0, 1], [1, 1, 5]]), np.array([1, 0, 2])
CONDITION = X > 0
BEHIND = {-1: (1, 2)}  # which np.pad takes since 2.3

SHAPED = {
    "hstack": lambda p, x: p.hstack([x, 2 * x]),
    "hstack of vectors": lambda p, x: p.hstack([x[0], x[1], 1.0]),
    "hstack of a tensor": lambda p, x: p.hstack(x),
    "vstack": lambda p, x: p.vstack((x, x[0], p.ones_like(x))),
    "dstack": lambda p, x: p.dstack([x, x]),
    "column_stack": lambda p, x: p.column_stack([x.T, x[0]]),
    "as float32": lambda p, x: p.vstack([x, x], dtype="float32"),
    "concat as float32": lambda p, x: p.concat([x, x], axis=1, dtype="float32"),
    "block": lambda p, x: p.block([[x, x[:, :1]], [p.zeros_like(x), x[:, 1:2]]]),
    "append": lambda p, x: p.append(x, x, axis=1),
    "append flat": lambda p, x: p.append(x, [1.0, 2.0]),
    "atleast": lambda p, x: p.concatenate([p.atleast_3d(x), p.atleast_3d(x)], axis=2),
    "atleast_2d": lambda p, x: p.atleast_2d(x[0]),
    "hsplit": lambda p, x: p.hsplit(x, [1])[1],
    "vsplit": lambda p, x: p.vsplit(x, 2)[1],
    "dsplit": lambda p, x: p.dsplit(x[:, :, None] * V, 3)[2],
    "rot90": lambda p, x: p.rot90(x),
    "rot90 backwards": lambda p, x: p.rot90(x, -1, axes=(1, 0)),
    "rot90 twice": lambda p, x: p.rot90(x, 2),
    "fliplr": lambda p, x: p.fliplr(p.flipud(x)),
    "rollaxis": lambda p, x: p.rollaxis(x[:, :, None], 2, 1),
    "diagflat": lambda p, x: p.diagflat(x, -1),
    "kron": lambda p, x: p.kron(x, p.asarray(Y)[0]),
    "cross": lambda p, x: p.cross(x, Y),
    "pad ramp": lambda p, x: p.pad(x, ((1, 2), (0, 3)), "linear_ramp", end_values=(1, 2)),
    "pad mean": lambda p, x: p.pad(x, 1, "mean"),
    "pad maximum": lambda p, x: p.pad(x, (1, 2), "maximum", stat_length=2),
    "pad constants": lambda p, x: p.pad(x, (1, 2), constant_values=((1, 2), (3, 4))),
    "pad dict": lambda p, x: p.pad(x, BEHIND if isinstance(x, gg.Tensor) else ((0, 0), (1, 2))),
    "reshape by columns": lambda p, x: p.reshape(x, (3, 2), order="F"),
    "ravel by columns": lambda p, x: p.ravel(x, order="F"),
    "take wrap": lambda p, x: p.take(x, I3, axis=1, mode="wrap"),
    "take clip": lambda p, x: p.take(x, [5, -7], axis=0, mode="clip"),
    "linspace": lambda p, x: p.linspace(x, Y, 4, axis=1),
    "linspace open": lambda p, x: p.linspace(0.5, x[0], 4, endpoint=False, retstep=True)[1],
    "meshgrid": lambda p, x: p.meshgrid(x[0], V, sparse=True)[1] * x[0],
}
"""With p for numpy or gg; lengths may be unknown where they are not read."""

KNOWN = {
    "array_split": lambda p, x: p.array_split(x, 2, axis=1)[0],
    "insert": lambda p, x: p.insert(x, 1, x[:, 0], axis=1),
    "insert many": lambda p, x: p.insert(x, [3, 0, 0], [[1.0, 2.0, 3.0]], axis=1),
    "insert flat": lambda p, x: p.insert(x, -1, [7.0, 8.0]),
    "insert mask": lambda p, x: p.insert(x, np.array([True, False, True]), 5.0, axis=1),
    "delete": lambda p, x: p.delete(x, [0, -1], axis=1),
    "delete slice": lambda p, x: p.delete(x, slice(None, None, 2)),
    "resize": lambda p, x: p.resize(x, (2, 4)),
    "pad reflect far": lambda p, x: p.pad(x, ((0, 0), (5, 7)), "reflect"),
    "pad odd": lambda p, x: p.pad(x, ((1, 0), (5, 2)), "reflect", reflect_type="odd"),
    "pad odd symmetric": lambda p, x: p.pad(x, 4, "symmetric", reflect_type="odd"),
    "pad median": lambda p, x: p.pad(x, 1, "median"),
    "choose": lambda p, x: p.choose(K, [x, 2 * x, V]),
    "choose wrap": lambda p, x: p.choose(I3, (x, -x, x), mode="wrap"),
    "piecewise": lambda p, x: p.piecewise(x, [CONDITION], [lambda t: t * t, lambda t: -t]),
    "apply_along_axis": lambda p, x: p.apply_along_axis(lambda v: p.outer(v, v), 1, x),
    "apply_over_axes": lambda p, x: p.apply_over_axes(p.sum, x, (0, -1)),
    "geomspace": lambda p, x: p.geomspace(x * x + 1, 9 + p.exp(x), 4, axis=-1),
    "geomspace below": lambda p, x: p.geomspace(-1e-200, -(x[0] ** 2), 3),
    "logspace": lambda p, x: p.logspace(x, Y, 3, base=2.0),
}


@pytest.mark.parametrize("fn", [*SHAPED.values(), *KNOWN.values()], ids=[*SHAPED, *KNOWN])
def test_is_what_numpy_does_and_so_is_the_gradient(fn):
    expected = fn(np, X)
    with gg.Graph():
        x = gg.placeholder(X.shape)
        for made in (fn(gg, x), fn(np, x)):
            (found,) = run(made, {x: X})
            assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
            np.testing.assert_allclose(found, expected, rtol=1e-6 if found.dtype == "f4" else 1e-12)
    if expected.dtype == np.float64:
        weights = np.cos(np.arange(expected.size)).reshape(expected.shape)
        wanted = difference(lambda t: fn(gg, t), X, weights)
        found = gradient(lambda t: fn(gg, t), X, 1, weights)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-7)


UNSHAPED = ("meshgrid", "hstack of a tensor", "diagflat", "kron", "block", "cross", "dsplit")


@pytest.mark.parametrize("name", sorted(set(SHAPED) - set(UNSHAPED)))
def test_of_lengths_that_are_known_when_run(name):
    if name in ("hstack of vectors", "linspace"):
        pytest.skip("joins what has to be known to broadcast")
    with gg.Graph():
        x = gg.placeholder((2, None))
        (found,) = run(SHAPED[name](gg, x), {x: X})
    np.testing.assert_allclose(found, SHAPED[name](np, X), rtol=1e-6)


def test_where_first_is_numpy_select():
    def fn(p, x):
        return p([x > 1, x < 0, x > 0.2], [x, 2 * x, Y], 7)

    same(lambda x: fn(gg.where_first, x), lambda x: fn(np.select, x), X)
    same(lambda x: fn(np.select, x), lambda x: fn(np.select, x), X)
    with gg.Graph():
        with pytest.raises(gg.DTypeError, match="is bool"):
            gg.where_first([X], [X])
        with pytest.raises(gg.ShapeError, match="a choice for each"):
            gg.where_first([CONDITION], [X, Y])


def test_a_function_sees_no_element_outside_of_its_condition():
    """Though sqrt has no slope at 0."""
    x = np.array([0.0, 4.0])
    found = gradient(lambda t: gg.piecewise(t, [x > 0], [gg.sqrt, lambda v: -v]), x)
    np.testing.assert_array_equal(found, [-1.0, 0.25])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(7,), (2, 3), (2, 3, 4)])
def test_flat_indices_and_back(shape, order):
    numbers = RNG.integers(0, np.prod(shape), size=(2, 2))
    wanted = np.unravel_index(numbers, shape, order)
    same(lambda n: gg.unravel_index(n, shape, order), lambda n: wanted, numbers)
    back = [w + 9 for w in wanted]
    for mode in ("wrap", "clip"):
        same(
            lambda *i, m=mode: gg.ravel_multi_index(i, shape, m, order),
            lambda *i, m=mode: np.ravel_multi_index(i, shape, m, order),
            *back,
        )
    same(lambda *i: gg.ravel_multi_index(i, shape, order=order), lambda *i: numbers, *wanted)
    for bad in (np.int64(np.prod(shape)), np.int64(-1)):
        with gg.Graph(), pytest.raises(IndexError):
            gg.evaluate(gg.unravel_index(gg.constant(bad), shape))
    with gg.Graph(), pytest.raises(IndexError):
        gg.evaluate(gg.ravel_multi_index([gg.constant(-1)] * len(shape), shape))


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("indices", ((2, 3),)),
        ("indices", ((2, 3), "int32", True)),
        ("tri", (3, 4, 1)),
        ("tril_indices", (3, 1, 4)),
        ("triu_indices", (3, -1)),
        ("diag_indices", (3, 3)),
        ("mask_indices", (3, np.triu, 1)),
        ("ix_", ([0, 1], [True, False, True])),
        ("tril_indices_from", (X,)),
        ("triu_indices_from", (X, 1)),
        ("diag_indices_from", (np.eye(2),)),
    ],
)
def test_grids_are_numpys(name, args):
    wanted, found = getattr(np, name)(*args), gg.evaluate(getattr(gg, name)(*args))
    assert isinstance(found, tuple) == isinstance(wanted, tuple)
    for f, w in (
        zip(np.atleast_1d(found), np.atleast_1d(wanted), strict=True)
        if not isinstance(wanted, tuple)
        else zip(found, wanted, strict=True)
    ):
        assert f.dtype == w.dtype
        np.testing.assert_array_equal(f, w)


def test_what_depends_on_values_says_so():
    with gg.Graph():
        x, i = gg.placeholder((3,)), gg.placeholder((), "int64")
        for call in (
            lambda: gg.delete(x, i),
            lambda: gg.insert(x, [i], 1.0),
            lambda: gg.ix_(x > 0),
            lambda: gg.mask_indices(3, gg.triu),
        ):
            with pytest.raises(gg.SymbolicError):
                call()
        for call in (
            lambda: gg.array_split(gg.nonzero(x)[0], 2),
            lambda: gg.insert(gg.placeholder((None,)), 0, 1.0),
            lambda: gg.resize(gg.nonzero(x)[0], 3),
            lambda: gg.block([x, [x]]),
            lambda: gg.block([]),
            lambda: gg.hsplit(gg.constant(1.0), 2),
            lambda: gg.choose(gg.placeholder((2,), "int64"), [x, x]),
            lambda: gg.rot90(x),
            lambda: gg.cross(x, gg.ones(2)),
        ):
            with pytest.raises(gg.ShapeError):
                call()
        with pytest.raises(IndexError):
            gg.evaluate(gg.choose(gg.constant([-1, 0, 1]), [x, x]), {x: V})


@pytest.mark.parametrize(
    "change",
    [
        lambda x: np.put(x, [0], 1.0),
        lambda x: np.place(x, CONDITION, 1.0),
        lambda x: np.putmask(x, CONDITION, 1.0),
        lambda x: np.fill_diagonal(x, 1.0),
        lambda x: np.put_along_axis(x, I3, 1.0, axis=1),
        lambda x: np.copyto(x, 1.0),
        lambda x: np.add.at(x, [0], 1.0),
        lambda x: np.put(np.zeros(6), [0], x),
    ],
)
def test_what_would_change_a_tensor_names_gg_at(change):
    with gg.Graph(), pytest.raises(TypeError, match=r"gg\.at"):
        change(gg.placeholder((2, 3)))
