"""Arguments that NumPy refuses are refused: no number comes of them, and the error says which."""

import inspect

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import DTypeError, ExecutionError, GraphGradError, ShapeError

from ..each import together

X = np.arange(1.0, 7).reshape(2, 3)
SQUARE = np.array([[1.0, 2.0], [0.0, 1.0]])
IMAGE, FILTERS = np.ones((1, 3, 3, 2)), np.ones((2, 2, 1, 2))
NAN, INF = np.nan, np.inf


@pytest.fixture(autouse=True)
def graph():
    with gg.Graph() as g:
        yield g


# --- axes --------------------------------------------------------------------------------------

OPERANDS = {
    "append": (X, X),
    "array_split": (X, 1),
    "argpartition": (X, 1),
    "associative_scan": (gg.add, X),
    "concat": ([X, X],),
    "concatenate": ([X, X],),
    "cosine_similarity": (X, X),
    "cross": (X, X),
    "cross_entropy": (X, X),
    "delete": (X, 0),
    "geomspace": (X, X),
    "group_norm": (X, 1),
    "insert": (X, 0, 0.0),
    "linspace": (X, X),
    "local_response_norm": (X, 1),
    "logspace": (X, X),
    "nanpercentile": (X, 50),
    "nanquantile": (X, 0.5),
    "nll_loss": (X, [0, 1]),
    "prelu": (X, [0.5, 0.5, 0.5]),
    "one_hot": ([0, 2], 3),
    "packbits": (np.ones((2, 3), bool),),
    "partition": (X, 1),
    "percentile": (X, 50),
    "quantile": (X, 0.5),
    "put_along_axis": (X, np.array([[0], [0]]), 1.0),
    "repeat": (X, 2),
    "roll": (X, 1),
    "scatter_add": (X, [0], X[:1]),
    "split": (X, 1),
    "stack": ([X, X],),
    "take": (X, [0]),
    "take_along_axis": (X, np.array([[0], [0]])),
    "topk": (X, 1),
    "unpackbits": (np.ones((2, 3), "uint8"),),
    "vecdot": (X, X),
}
AXES = ("axis", "axis1", "axis2")


def with_axes():
    """Public functions that take axes by name, with what to call them with."""
    for module in (gg, gg.nn, gg.linalg, gg.special):
        for name in getattr(module, "__all__", dir(module)):
            found = getattr(module, name)
            if not inspect.isfunction(found) or name in ("apply_along_axis", "compress"):
                continue  # of which x is not the first argument
            for parameter in AXES:
                if parameter in inspect.signature(found).parameters:
                    yield found, OPERANDS.get(name, (X,)), parameter


@together(with_axes())
def test_an_axis_is_an_int_that_is_there(fn, operands, parameter):
    other = {"axis1": {"axis2": 0}, "axis2": {"axis1": 0}}.get(parameter, {})
    if fn is gg.nn.gumbel_softmax:
        other = {"seed": 0}
    twice = [] if fn is gg.roll else [(0, 0)]  # which moves x twice, as in NumPy
    for axis in (7, -7, *twice):
        with pytest.raises((ShapeError, TypeError), match=r"ax[ei]s"):
            fn(*operands, **{parameter: axis}, **other)
    for axis in (1.5, 1.0, True, np.True_, "x", 1j):
        with pytest.raises(TypeError, match=r"an axis is an int, got"):
            fn(*operands, **{parameter: axis}, **other)


@pytest.mark.parametrize("axis", [7, -7, (0, 0), 1.5, True, "x"])
def test_the_axis_of_vectors_is_an_int_that_is_there(axis):
    with pytest.raises((ShapeError, TypeError), match=r"ax[ei]s"):
        gg.apply_along_axis(gg.sort, axis, X)


@pytest.mark.parametrize("axis", [(0, 1), (0,), [0], None, ()])
@pytest.mark.parametrize(
    "fn",
    [
        gg.nn.glu,
        lambda x, axis: gg.nn.cross_entropy(x, x, axis),
        lambda x, axis: gg.nn.batch_norm(x, axis=axis),
        lambda x, axis: gg.one_hot([0], 3, axis=axis),
        lambda x, axis: gg.vecdot(x, x, axis=axis),
        lambda x, axis: gg.diagonal(x, 0, axis, 1),
    ],
)
def test_what_takes_one_axis_takes_no_several(fn, axis):
    with pytest.raises(TypeError, match="an axis is an int"):
        fn(X, axis=axis)


def test_several_axes_still_may_be_a_tuple_a_list_or_an_array():
    for axes in ((1, 0), [1, 0], np.array([1, 0])):
        np.testing.assert_array_equal(gg.evaluate(gg.permute_dims(X, axes)), X.T)
        assert gg.evaluate(gg.expand_dims(X, axes)).shape == (1, 1, 2, 3)
    assert gg.evaluate(gg.nn.layer_norm(X, axis=(0, 1))).shape == (2, 3)
    assert gg.evaluate(gg.logsumexp(X, axis=np.array(0))).shape == (3,)
    assert gg.evaluate(gg.sum(X, np.int64(-1))).shape == (2,)


# --- products ----------------------------------------------------------------------------------

OF_VECTORS = [
    gg.matmul,
    gg.dot,
    gg.vdot,
    gg.linalg.inner,
    gg.vecdot,
    lambda x, y: gg.tensordot(x, y, 1),
    lambda x, y: gg.constant(x) @ gg.constant(y),
]


@pytest.mark.parametrize("fn", OF_VECTORS)
@pytest.mark.parametrize(("x", "y"), [([1, 2], [5]), ([5], [1, 2]), ([1, 2], [1, 2, 3]), ([], [1])])
def test_a_vector_of_length_1_is_not_repeated_in_a_product(fn, x, y):
    with pytest.raises(ShapeError, match="differ in length"):
        fn(x, y)


@pytest.mark.parametrize("fn", OF_VECTORS[:3])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_nor_is_one_whose_length_is_known_when_run(fn, backend):
    x, y = gg.placeholder((None,), name="x"), gg.placeholder((None,), name="y")
    z = fn(x, y)
    run = gg.compile([x, y], [z, *gg.gradients([z], [x, y])], backend=backend)
    for got, wanted in zip(
        run([1.0, 2.0], [3.0, 4.0]), (11.0, [3.0, 4.0], [1.0, 2.0]), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)
    with pytest.raises(ExecutionError, match="test_wrong_arguments"):
        run([1.0, 2.0], [3.0])


def test_the_square_of_a_vector_of_any_length_is_not_checked(graph):
    x, named = gg.placeholder((None,)), [gg.placeholder(("N",)) for _ in range(2)]
    gg.matmul(x, x), gg.matmul(*named)
    assert "EnsureLike" not in {node.op.type for node in graph.nodes}


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("shapes", [((2,), (2, 2)), ((2, 2), (2,)), ((2, 2, 2), (2, 2))])
def test_vecdot_takes_its_axis_from_each_operand(axis, shapes):
    x, y = (np.arange(1.0, 1 + np.prod(s)).reshape(s) for s in shapes)
    found = gg.evaluate(gg.vecdot(x, y, axis=axis))
    np.testing.assert_allclose(found, np.vecdot(x, y, axis=axis))


AXES_OF_TENSORDOT = [
    ([4], [1]),
    ([-3], [0]),
    ([1, 1], [0, 0]),
    ([0, 1], [0]),
    3,
    -1,
]


@pytest.mark.parametrize("axes", AXES_OF_TENSORDOT)
def test_tensordot_takes_axes_that_are_there_once_and_in_pairs(axes):
    with pytest.raises(ShapeError, match=r"ax[ei]s"):
        gg.tensordot(X, X.T, axes)


@pytest.mark.parametrize("axes", [1.5, True, "x", None, (1,), ([0], [1], [2])])
def test_tensordot_takes_an_int_or_a_pair(axes):
    with pytest.raises(TypeError, match="tensordot"):
        gg.tensordot(X, X.T, axes)


@pytest.mark.parametrize("axes", [(1, 0), ([1], [0]), np.array([[1], [0]]), ((-1,), 0), 1, 0, 2])
def test_tensordot_takes_the_axes_that_numpy_takes(axes):
    y = X if isinstance(axes, int) and axes == 2 else X.T
    found = gg.evaluate(gg.tensordot(X, y, axes))
    np.testing.assert_allclose(found, np.tensordot(X, y, axes))


@pytest.mark.parametrize("arrays", [[], [SQUARE], [SQUARE, [1.0, 2.0], SQUARE], [SQUARE, 1.0]])
def test_multi_dot_takes_two_matrices_or_more(arrays):
    with pytest.raises(ShapeError, match="multi_dot takes"):
        gg.linalg.multi_dot(arrays)


@pytest.mark.parametrize(("x", "y"), [(X, [1.0]), ([1.0], 2.0), (1.0, 2.0)])
def test_linalgs_outer_takes_vectors_and_the_other_flattens(x, y):
    with pytest.raises(ShapeError, match="two vectors"):
        gg.linalg.outer(x, y)
    np.testing.assert_array_equal(gg.evaluate(gg.outer(x, y)), np.outer(x, y))
    np.testing.assert_array_equal(gg.evaluate(gg.linalg.outer([1, 2], [3, 4])), [[3, 4], [6, 8]])


# --- windows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("channels", [1, 3])
def test_conv_transpose_takes_images_of_as_many_channels_as_the_filters(layout, channels):
    x = np.ones((1, 3, 3, channels) if layout == "NHWC" else (1, channels, 3, 3))
    with pytest.raises(ShapeError, match=f"conv_transpose of {channels} channels"):
        gg.nn.conv_transpose(x, np.ones((2, 2, 5, 2)), data_format=layout)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"groups": 0}, ShapeError),
        ({"groups": -2}, ShapeError),
        ({"groups": 2.0}, TypeError),
        ({"groups": True}, TypeError),
        ({"groups": 2, "strides": True}, ShapeError),
        ({"groups": 2, "padding": -1}, ShapeError),
        ({"groups": 2, "padding": 1.5}, ShapeError),
        ({"groups": 2, "padding": None}, ShapeError),
        ({"groups": 2, "padding": ((1.5, 0), (0, 0))}, ShapeError),
        ({"groups": 2, "padding": ((1, 0), (0,))}, ShapeError),
        ({"groups": 2, "padding": ((1, 0), (0, -1))}, ShapeError),
    ],
)
def test_conv_says_which_choice_is_none(wrong, error):
    with pytest.raises(error, match=" ".join(wrong).split()[-1]):
        gg.nn.conv(IMAGE, FILTERS, **wrong)


def test_conv_in_groups_makes_as_many_outputs_in_each():
    with pytest.raises(ShapeError, match="conv in 2 groups"):
        gg.nn.conv(IMAGE, np.ones((2, 2, 1, 3)), groups=2)


@pytest.mark.parametrize("dtype", [bool, complex])
def test_max_pool_takes_numbers_that_have_an_order(dtype):
    with pytest.raises(DTypeError, match="MaxPool takes"):
        gg.nn.max_pool(IMAGE.astype(dtype), 2)


# --- complex numbers and bools -----------------------------------------------------------------


@pytest.mark.parametrize(
    "fn",
    [
        gg.nn.gelu,
        lambda x: gg.nn.gelu(x, approximate=True),
        gg.nn.layer_norm,
        gg.nn.batch_norm,
        gg.nn.softmax,
        gg.nn.log_sigmoid,
        lambda x: gg.nn.cross_entropy(x, [0, 1]),
        lambda x: gg.nn.cross_entropy(x, X),
    ],
)
def test_what_is_of_real_numbers_refuses_complex_ones(fn):
    with pytest.raises(DTypeError, match=r"complex|real|floating"):
        fn(X + 1j)


def test_log_sigmoid_takes_bools_as_its_neighbours_do():
    for x in ([True, False], [1, 0]):
        found = gg.evaluate(gg.nn.log_sigmoid(x))
        np.testing.assert_allclose(found, -np.log1p(np.exp(-np.array(x, float))))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("instead", [{}, {"nan": 2.0}, {"posinf": 3.0, "neginf": -4.0}])
@pytest.mark.parametrize("backend", ["numpy", "llvm"])
def test_nan_to_num_of_complex_numbers_is_numpys(dtype, instead, backend):
    parts = [NAN, INF, -INF, 0.0, -2.5]
    z = np.array([complex(a, b) for a in parts for b in parts], dtype)
    x = gg.placeholder(z.shape, dtype)
    run = gg.compile(x, gg.nan_to_num(x, **instead), backend=backend)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(z), np.nan_to_num(z, **instead))


def test_nan_to_num_puts_no_infinity_into_complex_numbers():
    with pytest.raises(ValueError, match="finite"):
        gg.nan_to_num([1j], posinf=INF)
    assert gg.evaluate(gg.nan_to_num([INF], posinf=INF)) == [INF]


# --- counts and orders -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fn", "said"),
    [
        (lambda n: gg.one_hot([0], n), "depth"),
        (lambda n: gg.linalg.matrix_power(SQUARE, n), "power"),
        (lambda n: gg.special.polygamma(n, X), "order of polygamma"),
        (lambda n: gg.diagonal(X, n), "offset"),
        (lambda n: gg.eye(2, k=n), "k is an int"),
        (lambda n: gg.tril(X, k=n), "k is an int"),
        (lambda n: gg.diag(X, n), "k is an int"),
        (lambda n: gg.topk(X, n), "k is an int"),
        (lambda n: gg.linspace(0, 1, n), "num"),
        (lambda n: gg.roll(X, n), "shift"),
        (lambda n: gg.tile(X, n), "copies"),
        (lambda n: gg.split(X, [n], 1), "split"),
    ],
)
@pytest.mark.parametrize("n", [1.5, 1.0, True, "x", None, 1j])
def test_a_count_is_an_int(fn, said, n):
    with pytest.raises(TypeError, match=f"{said}.* is an int|{said}"):
        fn(n)


def test_counts_are_not_negative():
    with pytest.raises(ShapeError, match="depth >= 0"):
        gg.one_hot([0], -1)
    with pytest.raises(ValueError, match="n >= 0"):
        gg.special.polygamma(-1, X)
    assert gg.one_hot([0], 0).shape == (1, 0)
    assert gg.evaluate(gg.linalg.matrix_power(SQUARE, np.int8(3)))[0, 1] == 6


@pytest.mark.parametrize("order", ["fro", "nuc", "x", 1j, (2,)])
def test_an_order_that_is_none_of_vectors_is_refused(order):
    with pytest.raises(ShapeError, match="order"):
        gg.linalg.norm([1.0, 2.0], order)
    with pytest.raises(ShapeError, match="order"):
        gg.linalg.vector_norm([1.0, 2.0], ord=order)


@pytest.mark.parametrize("axis", [(0, 0), (0, 1, 2), ()])
def test_norm_takes_one_axis_or_two(axis):
    with pytest.raises(ShapeError, match=r"ax[ei]s"):
        gg.linalg.norm(np.ones((2, 2, 2)), axis=axis)


def test_a_tensor_for_an_int_says_that_it_has_no_value_yet():
    with pytest.raises(GraphGradError, match="index"):
        gg.sum(X, gg.placeholder((), "int64"))


# --- what is not an array ----------------------------------------------------------------------

RAGGED = [1.0, [2.0]]


@pytest.mark.parametrize(
    "fn",
    [
        gg.constant,
        gg.sum,
        gg.exp,
        gg.nn.relu,
        gg.linalg.inv,
        gg.special.erf,
        lambda x: gg.add(X, x),
    ],
)
@pytest.mark.parametrize("value", [RAGGED, [[1.0, 2.0], [3.0]]])
def test_lists_of_different_lengths_are_no_array_of_numbers(fn, value):
    with pytest.raises(DTypeError, match="not an array of numbers"):
        fn(value)


def test_a_tensor_inside_lists_still_says_what_to_do():
    with pytest.raises(GraphGradError, match=r"gg\.stack"):
        gg.constant([[gg.placeholder(())]])


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (-1, "uint8"),
        (256, "uint8"),
        (2**70, "int64"),
        (1j, "float64"),
        (NAN, "int64"),
        ("a", "int8"),
    ],
)
def test_a_number_that_does_not_fit_its_dtype_is_refused_and_not_wrapped(value, dtype):
    for make in (
        lambda: gg.full((2,), value, dtype=dtype),
        lambda: gg.full_like(np.zeros(2, dtype), value),
        lambda: gg.constant(value, dtype),
        lambda: gg.constant([value], dtype),
        lambda: gg.pad(np.zeros(2, dtype), 1, constant_values=value),
    ):
        with pytest.raises(DTypeError):
            make()


def test_full_still_truncates_as_numpy():
    assert gg.evaluate(gg.full((2,), 1.5, dtype="int64")).tolist() == [1, 1]
    assert gg.evaluate(gg.full_like([1, 2], True)).tolist() == [1, 1]


@pytest.mark.parametrize(
    "fn", [gg.broadcast_like, gg.reshape_like, lambda x, y: gg.sum_to(x, like=y)]
)
def test_what_lends_its_shape_may_be_an_array(fn):
    assert gg.evaluate(fn(np.ones((1, 2)), np.zeros((1, 2)))).tolist() == [[1.0, 1.0]]
    with pytest.raises(DTypeError):
        fn(X, "x")


@pytest.mark.parametrize("width", [[1, 2, 3], [[1, 2], [3, 4], [5, 6]], [], RAGGED, [[[1]]]])
def test_pad_takes_a_width_or_pairs(width):
    with pytest.raises((ShapeError, DTypeError)):
        gg.pad(X, width)
    with pytest.raises(ShapeError, match="a pair for each axis"):
        gg.pad(X, 1, constant_values=[1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="does not take end_values"):
        gg.pad(X, 1, end_values=1.0)


@pytest.mark.parametrize("width", [1, [2], (1, 2), ((1, 2),), ((1,), (2,)), ((1, 2), (0, 1))])
def test_pad_takes_the_widths_that_numpy_takes(width):
    np.testing.assert_array_equal(gg.evaluate(gg.pad(X, width)), np.pad(X, width))


def test_arrays_of_counts_are_taken_as_by_numpy():
    for given, wanted in [
        (gg.reshape(X, np.array([3, -1])), X.reshape(np.array([3, -1]))),
        (gg.tile(X, np.array([2, 1])), np.tile(X, np.array([2, 1]))),
        (gg.roll(X, 1, np.array([0, 1])), np.roll(X, 1, np.array([0, 1]))),
    ]:
        np.testing.assert_array_equal(gg.evaluate(given), wanted)


def test_a_product_of_nothing_and_a_range_to_nowhere_are_refused():
    with pytest.raises(ShapeError, match="at least one operand"):
        gg.einsum("ij")
    with pytest.raises(DTypeError, match="arange"):
        gg.arange(None)
    with pytest.raises(ShapeError, match="at least one class"):
        gg.nn.cross_entropy(np.zeros((2, 0)), [0, 1])


# --- random numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: gg.random.bernoulli((2,), 1.5, seed=1),
        lambda: gg.random.bernoulli((2,), -0.5, seed=1),
        lambda: gg.random.bernoulli((2,), NAN, seed=1),
        lambda: gg.random.normal((2,), 0.0, -1.0, seed=1),
    ],
)
def test_there_is_no_such_distribution(make):
    with pytest.raises(ValueError, match="at least 0"):
        make()


@pytest.mark.parametrize(("low", "high"), [(0.5, 3), (0, 2.5), (True, 3), ("a", 3)])
def test_bounds_of_random_integers_are_ints(low, high):
    with pytest.raises(TypeError, match="is an int"):
        gg.random.integers(low, high, (2,), seed=1)


# --- dtypes --------------------------------------------------------------------------------------

LAPACK = [
    "cholesky",
    "det",
    "eigh",
    "eigvalsh",
    "inv",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "svd",
]


@pytest.mark.parametrize("name", [*LAPACK, "svdvals"])
def test_matrices_of_16_bits_are_refused_when_built(name):
    fn, a = getattr(gg.linalg, name), np.eye(2)
    with gg.Graph():
        with pytest.raises(
            DTypeError, match=r"of 32 or 64 bits, got float16\[2, 2\]; use gg\.cast"
        ):
            fn(a.astype("float16"))
        gg.evaluate(fn(a.astype("float32")))


def test_solve_refuses_them_too_and_products_do_not():
    half = np.eye(2, dtype="float16")
    with gg.Graph():
        with pytest.raises(DTypeError, match="of 32 or 64 bits"):
            gg.linalg.solve(half, half)
        assert gg.linalg.matrix_power(half, 3).dtype == "float16"
        assert gg.linalg.matrix_norm(half).dtype == "float16"


RANDOM = [n for n in dir(gg.initializers) if n not in ("zeros", "ones")]


@pytest.mark.parametrize("name", RANDOM)
def test_random_initial_values_are_no_integers(name):
    fn = getattr(gg.initializers, name)
    for dtype in ("int32", "bool"):
        with pytest.raises(DTypeError, match=f"floating or complex, not {dtype}"):
            fn((3, 3), seed=0, dtype=dtype)
    assert fn((3, 3), seed=0, dtype="float32").dtype == "float32"
