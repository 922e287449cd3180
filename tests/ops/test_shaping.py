import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import ShapeError
from graphgrad.ops.arrays import borders as B
from graphgrad.ops.create import creation as N
from graphgrad.ops.reduce import reductions as R
from graphgrad.ops.shape import joining as J
from graphgrad.ops.shape import padding as P
from graphgrad.ops.shape import reshaping as S
from graphgrad.ops.sources import placeholder

from .against_numpy import difference, gradient, run, same

X = np.random.default_rng(0).normal(size=(2, 3, 4))
EMPTY = np.zeros((2, 0, 3))


@pytest.mark.parametrize("x", [X, EMPTY])
@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (-1, 0, 1), (1, 0, 2)])
def test_permute_dims(x, axes):
    same(lambda t: S.permute_dims(t, axes), lambda t: np.permute_dims(t, axes), x)
    same(lambda t: S.transpose(t, axes), lambda t: np.transpose(t, axes), x)


def test_other_permutations():
    same(S.transpose, np.transpose, X)
    same(S.transpose, np.transpose, np.array(1.0))
    same(S.matrix_transpose, np.matrix_transpose, X)
    same(lambda t: S.swapaxes(t, 0, -1), lambda t: np.swapaxes(t, 0, -1), X)
    for places in [(0, -1), (-1, 0), ((0, 1), (-1, -2)), ((2, 0), (0, 1)), (1, 1)]:
        same(lambda t, p=places: S.moveaxis(t, *p), lambda t, p=places: np.moveaxis(t, *p), X)


def test_a_permutation_that_changes_nothing_is_no_node():
    with gg.Graph():
        x = placeholder((2, 3))
        assert S.permute_dims(x, (0, 1)) is x
        assert S.moveaxis(x, 1, -1) is x
        assert S.squeeze(x) is x
        assert S.flatten(placeholder((3,))).node.type == "Placeholder"


def test_permutations_that_do_not_fit():
    with gg.Graph():
        x = placeholder((2, 3))
        for axes in [(0,), (0, 0), (0, 2), (0, 1, 2)]:
            with pytest.raises(ShapeError):
                S.permute_dims(x, axes)
        with pytest.raises(ShapeError):
            S.matrix_transpose(placeholder((2,)))


@pytest.mark.parametrize("axis", [0, -1, (0, 2), None])
def test_squeeze(axis):
    x = np.ones((1, 3, 1))
    same(lambda t: S.squeeze(t, axis), lambda t: np.squeeze(t, axis), x, static=axis is None)


def test_squeeze_takes_only_length_1():
    with gg.Graph(), pytest.raises(ShapeError, match="length 1"):
        S.squeeze(placeholder((1, 3)), 1)


@pytest.mark.parametrize("x", [X, EMPTY, np.array(3.0), np.zeros((3,))])
def test_flatten(x):
    same(S.flatten, np.ravel, x)
    same(S.ravel, np.ravel, x)


def test_names_of_lengths_stay():
    with gg.Graph():
        x = placeholder(("batch", 3, "time"))
        assert S.transpose(x).shape == ("time", 3, "batch")
        assert P.flip(x, 0).shape == ("batch", 3, "time")
        assert J.concat([x, x], axis=1).shape == ("batch", 6, "time")
        assert J.stack([x, x]).shape == (2, "batch", 3, "time")
        assert J.split(x, 3, axis=1)[0].shape == ("batch", 1, "time")
        assert B.pad(x, ((0, 0), (1, 1), (0, 0))).shape == ("batch", 5, "time")
        assert P.tile(x, (1, 2, 1)).shape == ("batch", 6, "time")


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)])
@pytest.mark.parametrize("x", [X, EMPTY])
def test_flip(axis, x):
    same(lambda t: P.flip(t, axis), lambda t: np.flip(t, axis), x)


@pytest.mark.parametrize(
    ("shift", "axis"), [(1, None), (-2, 0), (5, -1), ((1, 2), (0, 2)), (1, (0, 1)), (0, 1)]
)
@pytest.mark.parametrize("x", [X, EMPTY])
def test_roll(shift, axis, x):
    same(lambda t: P.roll(t, shift, axis), lambda t: np.roll(t, shift, axis), x)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
def test_concat(axis):
    same(lambda *ts: J.concat(ts, axis=axis), lambda *ts: np.concat(ts, axis=axis), X, 2 * X, X + 1)


def test_concat_of_different_lengths_and_dtypes():
    same(
        lambda *ts: J.concatenate(ts, axis=1),
        lambda *ts: np.concatenate(ts, axis=1),
        X,
        X[:, :0].astype("float32"),
        np.ones((2, 5, 4), "int64"),
    )


@pytest.mark.parametrize("forms", [[(2,), (3,), (0,)], [(None,), ("n",), (None,)]])
def test_the_gradient_of_concat_gives_each_its_part(forms):
    with gg.Graph():
        xs = [placeholder(s) for s in forms]
        y = J.concat(xs)
        w = np.arange(1.0, 6.0)
        dxs = gg.gradients([R.sum(y * w * y)], xs)
        ddx = gg.gradients([R.sum(d * w[: d.size]) if d.size else R.sum(d) for d in dxs], xs)
        values = [np.ones(2), 2 * np.ones(3), np.ones(0)]
        found = run([*dxs, *ddx], dict(zip(xs, values, strict=True)))
    np.testing.assert_array_equal(np.concat(found[:3]), 2 * w * np.concat(values))
    assert [d.shape for d in found] == [(2,), (3,), (0,)] * 2


def test_concat_that_does_not_fit():
    with gg.Graph():
        x, y = placeholder((2, 3)), placeholder((2, 4))
        with pytest.raises(ShapeError, match="3 and 4"):
            J.concat([x, y])
        with pytest.raises(ShapeError, match="rank"):
            J.concat([x, placeholder((2,))])
        with pytest.raises(ShapeError, match="at least one"):
            J.concat([])
        assert J.concat([x]) is x


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_stack_and_unstack(axis):
    same(lambda *ts: J.stack(ts, axis), lambda *ts: np.stack(ts, axis), X, 2 * X)
    same(lambda t: J.unstack(t, axis=axis), lambda t: np.unstack(t, axis=axis), X, static=True)


def test_unstack_needs_a_known_length():
    with gg.Graph():
        with pytest.raises(ShapeError, match="known"):
            J.unstack(placeholder(("n", 2)))
        assert J.unstack(placeholder((0, 2))) == ()


def test_the_gradient_through_one_output_of_many():
    for fn in (lambda t: J.unstack(t)[1], lambda t: J.split(t, 2)[1]):
        got = gradient(lambda t, f=fn: R.sum(f(t)), np.ones((2, 3)))
        np.testing.assert_array_equal(got, [[0, 0, 0], [1, 1, 1]])


@pytest.mark.parametrize("at", [1, 2, 4, [1], [0, 2], [1, 1, 3], []])
def test_split(at):
    same(lambda t: J.split(t, at, axis=-1), lambda t: np.split(t, at, axis=-1), X)


@pytest.mark.parametrize("at", [[-1], [2, 9], [-3, -1]])
def test_split_counts_from_the_end_of_a_known_length(at):
    same(lambda t: J.split(t, at, axis=2), lambda t: np.split(t, at, axis=2), X, static=True)


def test_split_that_does_not_fit():
    with gg.Graph():
        x = placeholder((4, "n"))
        for at, axis in [(3, 0), (0, 0), ([1], 2)]:
            with pytest.raises(ShapeError):
                J.split(x, at, axis)


@pytest.mark.parametrize(
    "width", [1, (1, 2), ((0, 0), (1, 2), (3, 0)), ((0, 1),), [[1, 0], [0, 0], [0, 2]]]
)
def test_pad(width):
    same(lambda t: B.pad(t, width), lambda t: np.pad(t, width), X)
    same(
        lambda t: B.pad(t, width, constant_values=7),
        lambda t: np.pad(t, width, constant_values=7),
        X.astype("float32"),
    )
    same(lambda t: B.pad(t, width), lambda t: np.pad(t, width), EMPTY)


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("width", [1, ((0, 0), (2, 1), (0, 3)), ((1, 0), (0, 0), (2, 2))])
def test_pad_with_its_own_elements(mode, width):
    same(lambda t: B.pad(t, width, mode), lambda t: np.pad(t, width, mode=mode), X)
    w = np.random.default_rng(1).normal(size=np.pad(X, width).shape)
    got = gradient(lambda t: B.pad(t, width, mode), X, weights=w)
    np.testing.assert_allclose(
        got, difference(lambda t: B.pad(t, width, mode), X, w), rtol=1e-5, atol=1e-6
    )


def test_pad_that_does_not_fit():
    with gg.Graph():
        x = placeholder((2,))
        for width, mode in [(-1, "constant"), ((0, -1), "reflect"), (1, "mirror")]:
            with pytest.raises(ShapeError):
                B.pad(x, width, mode)


SHORT = [("reflect", 3, 3), ("reflect", 2, 2), ("symmetric", 3, 2), ("wrap", (0, 4), 3)]


@pytest.mark.parametrize(("mode", "width", "length"), [*SHORT, ("edge", 1, 0)])
@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
@pytest.mark.parametrize("optimize", [False, True])
def test_pad_of_an_axis_that_is_too_short_when_run(mode, width, length, backend, optimize):
    """The same error as where the length is known; and none where it is long enough."""
    x = placeholder(("N",))
    y = B.pad(x, width, mode) * 2.0
    (dx,) = gg.gradients([gg.sum(y * y)], [x])
    run = gg.compile(x, [y, dx], backend=backend, optimize=optimize)
    for outputs in (run, gg.compile(x, dx, backend=backend, optimize=optimize)):
        with pytest.raises(ShapeError, match=f"'{mode}' padding by .* of axis 0 .*: too short"):
            outputs(np.arange(float(length)))
    values = np.arange(length + 1.0)
    np.testing.assert_allclose(run(values)[0], 2 * np.pad(values, width, mode))


@pytest.mark.parametrize("how", ["branch", "vmap"])
def test_pad_of_an_axis_that_is_too_short_inside(how):
    x = placeholder((2, "N"))

    def f(row):
        return B.pad(row, ((0, 3),) if row.ndim == 1 else ((0, 0), (0, 3)), "reflect")

    made = {
        "branch": lambda: gg.cond(gg.sum(x) > 0, lambda: f(x), lambda: gg.concat([x, x], 1)),
        "vmap": lambda: gg.vmap(f)(x),
    }[how]()
    run = gg.compile(x, made)
    with pytest.raises(ShapeError, match="too short"):
        run(np.ones((2, 3)))
    assert run(np.ones((2, 4))).shape == (2, 7)
    if how == "branch":
        assert run(-np.ones((2, 3))).shape == (2, 6)


@pytest.mark.parametrize("reps", [2, (2,), (1, 2), (2, 1, 3), (2, 1, 1, 1), 0, (0, 1, 2), 1])
def test_tile(reps):
    same(lambda t: P.tile(t, reps), lambda t: np.tile(t, reps), X)
    same(lambda t: P.tile(t, reps), lambda t: np.tile(t, reps), np.array(2.0))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_repeat(count, axis):
    same(lambda t: gg.repeat(t, count, axis), lambda t: np.repeat(t, count, axis), X)


def test_repeat_each_place_so_often():
    counts = [2, 0, 1]
    same(lambda t: gg.repeat(t, counts, 1), lambda t: np.repeat(t, counts, 1), X, static=True)
    np.testing.assert_array_equal(gradient(lambda t: gg.repeat(t, counts), [1.0, 1, 1]), counts)
    with gg.Graph(), pytest.raises(ShapeError):
        gg.repeat(placeholder(("n",)), counts, 0)
    with pytest.raises(ShapeError, match="one for each place"):
        gg.repeat(np.ones(4), counts, 0)


def test_broadcast_arrays():
    same(S.broadcast_arrays, np.broadcast_arrays, X[:, :1], X[0], static=True)


def test_creation():
    with gg.Graph():
        for mine, numpys in [
            (N.full((2, 3), 7), np.full((2, 3), 7)),
            (N.full((), 1.5, dtype="float32"), np.full((), 1.5, "float32")),
            (N.full(3, True), np.full(3, True)),
            (N.zeros((0, 2)), np.zeros((0, 2))),
            (N.ones(3, dtype="int32"), np.ones(3, "int32")),
            (N.arange(5), np.arange(5)),
            (N.arange(1.0, 2.0, 0.25), np.arange(1.0, 2.0, 0.25)),
            (N.arange(3, dtype="float32"), np.arange(3, dtype="float32")),
            (N.linspace(0, 1, 5), np.linspace(0, 1, 5)),
            (N.eye(3), np.eye(3)),
            (N.eye(2, 4, k=-1, dtype="int64"), np.eye(2, 4, k=-1, dtype="int64")),
            (N.asarray([[1, 2], [3, 4]], dtype="float32"), np.array([[1, 2], [3, 4]], "float32")),
            (N.diag([1.0, 2.0], 1), np.diag([1.0, 2.0], 1)),
        ]:
            (found,) = run(mine, {})
            assert found.dtype == numpys.dtype
            np.testing.assert_array_equal(found, numpys)
        with pytest.raises(ShapeError, match="like"):
            N.zeros((None, 2))


@pytest.mark.parametrize("x", [X, EMPTY, np.array(1.0)])
def test_in_the_likeness_of_another(x):
    same(N.zeros_like, np.zeros_like, x)
    same(lambda t: N.ones_like(t, dtype="int64"), lambda t: np.ones_like(t, dtype="int64"), x)
    same(lambda t: N.full_like(t, 3), lambda t: np.full_like(t, 3), x)


def test_nothing_flows_to_what_only_lends_its_shape():
    for shape in [(2,), (None,), ("n",)]:
        with gg.Graph():
            x = placeholder(shape)
            assert gg.gradients([R.sum(N.ones_like(x))], [x]) == [None]
            assert gg.gradients([R.sum(N.full_like(x, 2.0))], [x]) == [None]


@pytest.mark.parametrize("k", [-1, 0, 2])
def test_triangles_and_diagonals(k):
    same(lambda t: N.tril(t, k=k), lambda t: np.tril(t, k), X)
    same(lambda t: N.triu(t, k=k), lambda t: np.triu(t, k), X)
    same(lambda t: N.diag(t, k), lambda t: np.diag(t, k), X[0])
    same(lambda t: N.diag(t, k), lambda t: np.diag(t, k), X[0, 0])


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid(indexing):
    for arrays in [(X[0, 0], X[0, :, 0], X[:, 0, 0]), (X[0, 0], X[0, :, 0]), (X[0, 0],)]:
        same(
            lambda *ts: N.meshgrid(*ts, indexing=indexing),
            lambda *ts: np.meshgrid(*ts, indexing=indexing),
            *arrays,
            static=True,
        )


def test_linspace_between_tensors():
    w = np.array([1.0, 2.0, 3.0])
    got = gradient(lambda t: N.linspace(t[0], t[1], 3), [1.0, 5.0], weights=w)
    np.testing.assert_array_equal(got, [2, 4])


def test_what_is_out_of_bounds_is_an_index_error_as_the_array_api_says():
    with gg.Graph():
        x = gg.placeholder((3,))
        for wrong in (lambda: gg.expand_dims(x, 3), lambda: x[gg.placeholder((2,), bool)]):
            with pytest.raises(IndexError):
                wrong()


def test_what_is_left_over_of_known_lengths_is_known():
    """The batch cancels, whoever counts it; what it does not leave whole stays unknown."""
    x = gg.placeholder(("N", 3, 2, 2), name="x")
    assert gg.reshape(x, ("N", 3, -1)).shape == ("N", 3, 4)
    assert gg.reshape(x, (-1, "N")).shape == (12, "N")
    assert gg.reshape(x, (6, -1)).shape == (6, "2*N")
    value = gg.evaluate(gg.reshape(x, ("N", 3, -1)), {x: np.arange(24.0).reshape(2, 3, 2, 2)})
    np.testing.assert_array_equal(value, np.arange(24.0).reshape(2, 3, 4))
