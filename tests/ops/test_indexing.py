import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import DTypeError, ShapeError
from graphgrad.ops.reduce import reductions as R
from graphgrad.ops.reduce import sorting as O
from graphgrad.ops.shape import indexing as I
from graphgrad.ops.sources import placeholder

from .against_numpy import difference, gradient, run, same

X = np.random.default_rng(0).normal(size=(3, 4, 5))
MASK = X[:, :, 0] > 0
s = np.s_

BASIC = [
    s[0],
    s[-1],
    s[1, 2, 3],
    s[1:],
    s[:, 1:3],
    s[:-1, ::2],
    s[::-1],
    s[:, ::-2, 1:4],
    s[-2:, 3:0:-1],
    s[5:],
    s[2:1],
    s[:100],
    s[-100:2],
    s[...],
    s[..., 0],
    s[0, ..., 1],
    s[..., None],
    s[None, 0, None],
    s[:, None, :, 1:2],
    s[:],
    s[:, :, -1],
    s[-10:-20:-1],
    (),
]


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_indexing(key):
    same(lambda x: I.getitem(x, key), lambda x: x[key], X)
    weights = np.random.default_rng(1).normal(size=X[key].shape)
    expected = np.zeros_like(X)
    expected[key] = weights
    got = gradient(lambda x: I.getitem(x, key), X, weights=weights)
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_the_gradient_of_a_slice_of_unknown_length(key):
    with gg.Graph():
        x = placeholder((None, "n", None))
        y = I.getitem(x, key)
        (dx,) = gg.gradients([R.sum(y * y)], [x])
        (ddx,) = gg.gradients([R.sum(dx * dx)], [x])
        found = run([dx, ddx], {x: X})
    expected = np.zeros_like(X)
    expected[key] = 2 * X[key]
    np.testing.assert_allclose(found[0], expected)
    np.testing.assert_allclose(found[1], 4 * expected)


def test_one_node_each():
    with gg.Graph() as g:
        x = placeholder((7, 3, 8))
        for key in (0, s[:, 2:5], s[0, :, 1], s[..., None]):
            before = len(g.nodes)
            I.getitem(x, key)
            assert len(g.nodes) == before + 1
        before = len(g.nodes)
        y = I.getitem(x, 0)
        gg.gradients([y], [x], grad_ys=[gg.constant(np.ones((3, 8)))])
        assert [n.type for n in g.nodes[before:]] == ["Slice", "Constant", "Unslice"]


def test_equal_slices_are_equal_ops():
    with gg.Graph():
        x = placeholder((4, 3))
        ops = {
            I.getitem(x, key).node.op for key in (s[1:], s[1:4], s[-3:], s[1:9:1, :], s[1:, ...])
        }
        assert len(ops) == 1
        assert I.getitem(x, s[:]) is x
        assert I.getitem(x, ...) is x
        assert I.getitem(x, s[0:4, :]) is x


def test_an_index_out_of_bounds():
    with gg.Graph():
        x = placeholder((3, "n"))
        for key in (3, -4, s[:, 0, 0], s[..., 5, 0, 0], np.array([0, 3]), (np.array([0]), 0, 0)):
            with pytest.raises(ShapeError):
                I.getitem(x, key)
        with pytest.raises(ShapeError):
            I.take(x, [3], axis=0)
        with pytest.raises(ShapeError):
            I.getitem(x, (np.array(3), []))
        assert I.getitem(x, s[:, 99]).shape == (3,)
        assert I.getitem(x, s[1:]).shape == I.getitem(x, s[1:, ::-1]).shape == (2, "n")
        with pytest.raises(ShapeError, match="Ellipsis"):
            I.getitem(x, (..., ...))
        with pytest.raises(ShapeError, match="step"):
            I.getitem(x, s[::0])


i, j = np.array([0, 2, 0, -1]), np.array([[1], [3], [-2]])

ADVANCED = [
    s[i],
    s[[0, 2]],
    s[[]],
    s[:, i],
    s[..., i],
    s[:, j],
    s[i, i],
    s[i, :, i],
    s[:, i, i],
    s[i, None, i],
    s[None, i, 1],
    s[0, :, i],
    s[0, i],
    s[1:, i, ::-1],
    s[1:, i[:, None], [0, 1]],
    s[:, j, i],
    s[i, ..., 0],
    s[i, 0, ...],
    s[:, i, ..., i],
    s[:, j, ..., i],
    s[:, ..., i, i],
    s[:, 0, ..., i],
    s[:, i, ..., 1],
    s[:, :, i, ...],
    s[None, i, ..., i, 1:],
    s[:, i, None, ..., i],
    s[np.int64(1), [0, 1]],
    s[np.array(1)],
    s[np.array(1), :, np.array(2)],
    s[np.array([1], "uint8")],
]
MASKS = [
    s[MASK],
    s[MASK, 1:],
    s[MASK, None, 0],
    s[:, MASK[0]],
    s[X > 0],
    s[np.array([True, False, True]), 1],
    s[np.array([True, False, True]), :, [0, 1]],
    s[np.zeros((3,), bool)],
    s[[True, False, True]],
    s[:, MASK[0], ..., [1, 2]],
    s[True, 1],
    s[:, True, i],
    s[0, ..., np.array(True), np.array(False)],
    s[True, [[9]], [[]]],
]


@pytest.mark.parametrize("key", ADVANCED, ids=str)
def test_indexing_with_arrays(key):
    same(lambda x: I.getitem(x, key), lambda x: x[key], X)
    check_gradient_at(key)


@pytest.mark.parametrize("key", MASKS, ids=str)
def test_indexing_with_masks(key):
    same(lambda x: I.getitem(x, key), lambda x: x[key], X, static=True)
    check_gradient_at(key)


def check_gradient_at(key):
    weights = np.random.default_rng(1).normal(size=X[key].shape)
    expected = np.zeros_like(X)
    np.add.at(expected, np.zeros(0, int) if isinstance(key, list) and not key else key, weights)
    got = gradient(lambda x: I.getitem(x * x, key), X, weights=weights)
    np.testing.assert_allclose(got, 2 * expected * X, atol=1e-12)
    got = gradient(lambda x: I.getitem(x * x, key), X, 2, weights)
    np.testing.assert_allclose(got, 2 * expected, atol=1e-12)


@pytest.mark.parametrize("forms", [((3, 4, 5), (4,)), ((None, "n", None), (None,))])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_indexing_with_index_tensors(forms, dtype):
    with gg.Graph():
        x, k = placeholder(forms[0]), placeholder(forms[1], dtype)
        ys = [
            I.getitem(x, k),
            I.getitem(x, s[:, k]),
            I.getitem(x, s[k, :, k]),
            I.getitem(x, s[0, k]),
        ]
        value = np.array([0, 2, 0, 1]).astype(dtype)
        wanted = [X[value], X[:, value], X[value, :, value], X[0, value]]
        for got, want in zip(run(ys, {x: X, k: value}), wanted, strict=True):
            np.testing.assert_array_equal(got, want)
        (dx,) = gg.gradients([R.sum(ys[2])], [x])
        expected = np.zeros_like(X)
        np.add.at(expected, s[value, :, value], 1.0)
        np.testing.assert_array_equal(run(dx, {x: X, k: value})[0], expected)


def test_a_row_that_is_read_twice_has_both_gradients():
    got = gradient(lambda x: I.take(x, [1, 1, 1, 0], axis=0), np.ones((3, 2)))
    np.testing.assert_array_equal(got, [[1, 1], [3, 3], [0, 0]])


def test_what_is_no_index():
    with gg.Graph():
        x = placeholder((3, 4))
        for key in (1.0, "a", placeholder((2,)), [placeholder((), "int64")], [0.5]):
            with pytest.raises((DTypeError, ShapeError)):
                I.getitem(x, key)
        for mask in (np.ones((4,), bool), np.ones((3, 5), bool)):
            with pytest.raises(ShapeError, match="mask"):
                I.getitem(x, mask)
        with pytest.raises(ShapeError, match="mask"):
            I.getitem(placeholder(("n",)), np.ones((4,), bool))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("indices", [[0, 2, -1], [[0], [1]], 1, np.zeros((0,), int)])
def test_take(indices, axis):
    same(lambda x: I.take(x, indices, axis), lambda x: np.take(x, indices, axis), X)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_along_axis(axis):
    order = np.argsort(X, axis=axis)
    same(
        lambda x, k: O.take_along_axis(x, k, axis=axis),
        lambda x, k: np.take_along_axis(x, k, axis=axis),
        X,
        order,
    )
    fewer = np.take(order, [0, -1, 0], axis=axis)
    w = np.random.default_rng(1).normal(size=fewer.shape)

    def fn(x):
        return O.take_along_axis(x * x, fewer, axis=axis)

    np.testing.assert_allclose(gradient(fn, X, weights=w), difference(fn, X, w), atol=1e-6)


def test_take_along_axis_broadcasts():
    same(
        lambda x, k: O.take_along_axis(x, k, axis=1),
        lambda x, k: np.take_along_axis(x, k, axis=1),
        X,
        np.array([[[3], [0]]]),
        static=True,
    )


def test_take_along_axis_of_lengths_that_only_a_run_knows():
    k = np.array([[3, 0], [1, 1], [2, 0]])
    with gg.Graph():
        x, known = gg.placeholder((None, 4)), gg.placeholder((3, 4))
        open_ = gg.placeholder((None, 2), "int64")
        assert gg.extend.apply(O.GatherElements(1), known, open_).shape == (3, 2)
        f = gg.compile(x, O.take_along_axis(x, k, axis=1), backend="numpy")
    for rows in (3, 1):
        a = np.arange(4.0 * rows).reshape(rows, 4)
        np.testing.assert_array_equal(f(a), np.take_along_axis(np.broadcast_to(a, (3, 4)), k, 1))


def test_there_is_nothing_along_an_axis_that_is_not_there():
    with gg.Graph():
        x, k = gg.placeholder((3,)), gg.placeholder((2,), "int64")
        for op, inputs in ((O.GatherElements(1), (x, k)), (O.Sort(1), (x,)), (O.ArgSort(1), (x,))):
            with pytest.raises(ShapeError, match="along axis 1"):
                gg.extend.apply(op, *inputs)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_add(axis):
    k = np.array([0, 2, 0, -1])
    updates = np.random.default_rng(1).normal(size=np.take(X, k, axis).shape)

    def expected(x, k, u):
        y = x.copy()
        np.add.at(y, (slice(None),) * (axis % 3) + (k,), u)
        return y

    same(lambda x, k, u: I.scatter_add(x, k, u, axis), expected, X, k, updates)
    same(lambda x, k, u: I.scatter_add(x, k, u, axis), expected, X, k[:0], updates.take([], axis))


def test_scatter_add_to_the_transpose_of_an_array():
    same(
        lambda x: I.scatter_add(x, [0, 0], [[1.0], [2.0]]),
        lambda x: x + np.array([3.0, 0, 0, 0])[:, None],
        X[:, :, 0].T,
        static=True,
    )


def test_scatter_add_out_of_bounds_never_writes_elsewhere():
    with gg.Graph():
        x, k = placeholder((3, 2)), placeholder((1,), "int64")
        y = I.scatter_add(x, k, np.ones((1, 2)))
        for bad in (3, -4):
            with pytest.raises(IndexError):
                run(y, {x: np.zeros((3, 2)), k: np.array([bad])})


@pytest.mark.parametrize("key", [s[1], s[:, i], s[i, :, i], s[0, ..., ::2], s[MASK]], ids=str)
def test_add_at(key):
    updates = np.random.default_rng(1).normal(size=X[key].shape)

    def expected(x, u):
        y = x.copy()
        np.add.at(y, key, u)
        return y

    same(lambda x, u: I.add_at(x, key, u), expected, X, updates, static=True)
    same(lambda x: I.add_at(x, key, 2), lambda x: expected(x, 2.0), X, static=True)


def test_the_gradient_of_adding_is_read_at_the_key():
    with gg.Graph():
        x, u = placeholder((3, 4, 5)), placeholder((4,))
        y = I.add_at(x, s[i, i, 0], u)
        dx, du = gg.gradients([R.sum(y * y)], [x, u])
        updates = np.arange(4.0)
        found = run([y, dx, du], {x: X, u: updates})
    np.testing.assert_allclose(found[1], 2 * found[0])
    np.testing.assert_allclose(found[2], 2 * found[0][i, i, 0])


# --- order


TIES = np.array([[3.0, 1.0, 3.0, 1.0], [2.0, 2.0, 2.0, -1.0]])


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("x", [X, TIES, np.zeros((2, 0)), np.array([[3, 1], [2, 2]], "int32")])
def test_sort_and_argsort(axis, x):
    if axis == 1 and x.ndim < 2:
        return
    same(lambda t: O.sort(t, axis), lambda t: np.sort(t, axis), x)
    same(lambda t: O.argsort(t, axis), lambda t: np.argsort(t, axis, stable=True), x)
    same(
        lambda t: O.sort(t, axis, descending=True),
        lambda t: np.flip(np.sort(t, axis), -1 if axis is None else axis),
        x,
    )
    if x.dtype.kind == "f":
        same(
            lambda t: O.argsort(t, axis, descending=True),
            lambda t: np.argsort(-t, axis, stable=True),
            x,
        )


def test_of_a_tie_the_first_has_the_gradient():
    w = np.array([1.0, 2.0, 3.0])
    x = np.array([5.0, 5.0, 1.0])
    np.testing.assert_array_equal(gradient(O.sort, x, weights=w), [2, 3, 1])
    got = gradient(lambda t: O.sort(t, descending=True), x, weights=w)
    np.testing.assert_array_equal(got, [1, 2, 3])
    np.testing.assert_array_equal(gradient(lambda t: O.topk(t, 1)[0], x), [1, 0, 0])
    got = gradient(lambda t: O.topk(t, 1, largest=False)[0], [2.0, 1.0, 1.0])
    np.testing.assert_array_equal(got, [0, 1, 0])


@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [True, False])
def test_topk(k, axis, largest):
    def expected(x):
        places = np.argsort(-x if largest else x, axis=axis, stable=True)
        places = np.take(places, range(k), axis=axis)
        return np.take_along_axis(x, places, axis=axis), places

    same(lambda t: O.topk(t, k, axis, largest=largest), expected, X)


def test_topk_of_too_few():
    with gg.Graph():
        for k in (4, -1):
            with pytest.raises(ShapeError):
                O.topk(placeholder((3,)), k)


@pytest.mark.parametrize("fn", [O.sort, lambda t: O.topk(t, 2, 0)[0]])
def test_gradients_of_order_can_be_differentiated_again(fn):
    w = np.random.default_rng(1).normal(size=(2, 4))
    for order in (1, 2):
        got = gradient(lambda t: fn(t * t * t), X[:2, :, 0], order, w)
        wanted = difference(lambda t: fn(t * t * t), X[:2, :, 0], w, order)
        np.testing.assert_allclose(got, wanted, atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("dtype", ["float64", "float32", "bool"])
def test_one_hot(axis, dtype):
    k = np.array([[0, 2], [-1, 3]])

    def expected(k):
        return np.moveaxis((k[..., None] == np.arange(3)).astype(dtype), -1, axis)

    same(lambda t: gg.one_hot(t, 3, dtype, axis), expected, k)
    same(lambda t: gg.one_hot(t, 3), lambda t: np.eye(3)[t], np.array(1, "uint8"))


@pytest.mark.parametrize(
    ("dtype", "updates"),
    [
        ("int64", 1.5),
        ("int64", [1.5, 2.5]),
        ("int8", np.float32(2.0)),
        ("bool", 1),
        ("bool", [0.5, 1.0]),
        ("float64", 1j),
        ("float32", np.array([1j, 2.0])),
        ("int64", 1j),
    ],
)
@pytest.mark.parametrize("as_tensor", [False, True])
def test_what_is_added_is_never_cut_to_the_kind_of_x(dtype, updates, as_tensor):
    with gg.Graph():
        x = gg.placeholder((3,), dtype, name="x")
        given = gg.constant(updates) if as_tensor else updates
        for add in (lambda: I.add_at(x, [0, 1], given), lambda: I.scatter_add(x, [0, 1], given)):
            with pytest.raises(DTypeError):
                add()


@pytest.mark.parametrize(
    ("dtype", "updates", "wanted"),
    [
        ("float32", [1, 2], [1, 2, 0]),
        ("float32", np.array([1.5, 2.5]), [1.5, 2.5, 0]),
        ("int8", np.array([1, 2]), [1, 2, 0]),
        ("uint8", 3, [3, 3, 0]),
        ("int64", True, [1, 1, 0]),
        ("complex128", 1.5, [1.5, 1.5, 0]),
    ],
)
def test_what_is_added_may_be_narrower_or_of_a_lesser_kind(dtype, updates, wanted):
    x = gg.constant(np.zeros(3, dtype))
    for y in (I.add_at(x, [0, 1], updates), I.scatter_add(x, [0, 1], updates)):
        found = gg.evaluate(y)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_a_computed_index_out_of_bounds_of_what_is_empty_is_refused_too(backend):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    with gg.Graph():
        x, k = placeholder((0, 3)), placeholder((1,), "int64")
        f = gg.compile([x, k], I.getitem(x, s[:, k]), backend=backend)
        assert f(np.zeros((0, 3)), [2]).shape == (0, 1)
        for index in (3, -4):
            with pytest.raises(IndexError, match="out of bounds"):
                f(np.zeros((0, 3)), [index])


WORDS = np.array([2**64 - 1, 2**63, 2**63 + 7, 2**63 - 1, 3], "uint64")
OF_WORDS = {  # what takes a mode, of row 0 .. 4 and of an index array
    "take": lambda x, i, mode: gg.take(x, i, mode=mode),
    "at.get": lambda x, i, mode: gg.at(x)[i].get(mode=mode),
    "choose": lambda x, i, mode: gg.choose(i, list(x), mode=mode),
    "ravel_multi_index": lambda x, i, mode: gg.ravel_multi_index((i,), (5,), mode=mode),
}
COUNTED = {"clip": [4, 4, 4, 4, 3], "wrap": [int(w) % 5 for w in WORDS]}


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
@pytest.mark.parametrize("fed", [True, False])
def test_modes_count_indices_of_uint64_by_their_value(fed, backend):
    pytest.importorskip({"llvm": "llvmlite"}.get(backend, backend))
    with gg.Graph():
        x, i = placeholder((5,), "int64"), placeholder((5,), "uint64")
        index = i if fed else gg.constant(WORDS)
        found = {(n, m): f(x, index, m) for n, f in OF_WORDS.items() for m in COUNTED}
        found = gg.compile([x, i], found, backend=backend)(np.arange(5), WORDS)
    assert {key: y.tolist() for key, y in found.items()} == {
        (name, mode): want for name in OF_WORDS for mode, want in COUNTED.items()
    }


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_an_index_of_uint64_beyond_int64_is_said_to_be_so(backend):
    pytest.importorskip({"llvm": "llvmlite"}.get(backend, backend))
    with gg.Graph():
        x, i = placeholder((5,)), placeholder((1,), "uint64")
        f = gg.compile([x, i], x[i], backend=backend)
    for index, said in ((2**64 - 1, True), (2**40, False)):
        with pytest.raises(IndexError, match="axis 0 with size 5") as error:
            f(np.arange(5.0), np.array([index], "uint64"))
        text = "".join(error.value.__notes__)
        assert ("of uint64 that is greater than 9223372036854775807" in text) is said
        assert said or f"index {index}" in str(error.value)
