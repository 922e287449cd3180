"""Element-wise ops: dtypes, values at kinks, gradients there, and hostile operands."""

import math

import numpy as np
import pytest

import graphgrad as gg

from ..each import crossed

INF, NAN = math.inf, math.nan


def value(tensor, **feeds):
    """The tensor's value, with feeds by placeholder name."""
    with np.errstate(all="ignore"):
        return gg.evaluate(tensor, {tensor.graph.tensor(k): v for k, v in feeds.items()})


def gradients_at(fn, *points, order=1):
    """Gradients of fn at the points; above order 1, those of the derivative by the first."""
    with gg.Graph():
        xs = [
            gg.placeholder(np.shape(p), "float64", name=f"x{i}")
            for i, p in enumerate(map(arr, points))
        ]
        y = fn(*xs)
        for _ in range(order - 1):
            y = gg.gradients(y, xs[0])
        grads = gg.gradients(y, xs, unconnected="zero")
    with np.errstate(all="ignore"):
        return gg.evaluate(grads, dict(zip(xs, map(arr, points), strict=True)))


def arr(point):
    return np.asarray(point, "float64")


# --- dtypes ------------------------------------------------------------------------------------

DTYPES = ["bool", "uint8", "int32", "int64", "float32", "float64", "complex64"]
NUMBERS = [True, 2, 2.5, 1 + 2j]


@crossed(DTYPES, NUMBERS)
def test_python_numbers_are_weak(dtype, number):
    with gg.Graph():
        x = gg.placeholder((3,), dtype)
        assert (x + number).dtype == np.result_type(np.dtype(dtype), number)
        assert (number * x).dtype == np.result_type(np.dtype(dtype), number)


@crossed(DTYPES, DTYPES)
def test_tensors_promote_as_numpy_does(dtype, other):
    a, b = np.ones(3, dtype), np.ones(3, other)
    with gg.Graph():
        x, y = gg.placeholder((3,), dtype), gg.placeholder((3,), other)
        for ours, theirs in [(gg.add, np.add), (gg.divide, np.divide), (gg.equal, np.equal)]:
            expected = theirs(a, b).dtype
            assert ours(x, y).dtype == expected
            assert ours(x, b).dtype == expected
            assert ours(a, y).dtype == expected


def test_numpy_scalars_are_strong():
    with gg.Graph():
        x = gg.placeholder((3,), "float32")
        assert (x * np.float64(2)).dtype == np.float64
        assert (np.float64(2) * x).dtype == np.float64
        assert (np.float32(2) * x).dtype == np.float32
        assert (x * np.array([1, 2, 3])).dtype == np.float64


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round", "sign", "square", "abs"])
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float64"])
def test_dtype_is_kept(name, dtype):
    with gg.Graph():
        assert getattr(gg, name)(gg.placeholder((2,), dtype)).dtype == dtype


@pytest.mark.parametrize("name", ["exp", "sqrt", "log1p", "sin", "tanh", "atan", "rint", "deg2rad"])
@pytest.mark.parametrize(
    ("dtype", "made"), [("bool", "float16"), ("int16", "float32"), ("int64", "float64")]
)
def test_integers_become_the_float_that_holds_them(name, dtype, made):
    with gg.Graph():
        assert getattr(gg, name)(gg.placeholder((2,), dtype)).dtype == made


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "power", "square"])
def test_bools_count_as_int8_as_in_numpy(name):
    with gg.Graph():
        x = gg.placeholder((2,), "bool", name="x")
        args = (x,) if name == "square" else (x, x)
        y = getattr(gg, name)(*args)
    a = np.array([True, True])
    expected = getattr(np, name)(*(a for _ in args))
    assert y.dtype == expected.dtype
    np.testing.assert_array_equal(value(y, x=a), expected)


def test_bools_have_logic_and_integers_have_bits():
    with gg.Graph():
        b, k = gg.placeholder((2,), "bool"), gg.placeholder((2,), "int32")
        assert [(b & b).node.type, (b | True).node.type, (~b).node.type] == [
            "LogicalAnd",
            "LogicalOr",
            "LogicalNot",
        ]
        assert [(k ^ 3).node.type, (k << 1).node.type, (~k).node.type] == [
            "BitwiseXor",
            "BitwiseLeftShift",
            "BitwiseNot",
        ]
        assert (k & 1).dtype == np.int32
        assert gg.logical_and(k, 2.5).dtype == bool


def test_complex_parts():
    z = np.array([3 + 4j, -1j], "complex64")
    with gg.Graph():
        x = gg.placeholder((2,), "complex64", name="x")
        parts = [abs(x), x.real, x.imag, x.conj()]
    assert [p.dtype for p in parts] == ["float32", "float32", "float32", "complex64"]
    for part, expected in zip(parts, [abs(z), z.real, z.imag, z.conj()], strict=True):
        np.testing.assert_allclose(value(part, x=z), expected)


# --- values ------------------------------------------------------------------------------------

GRID = np.array([NAN, INF, -INF, 0.0, -0.0, 1e-300, -1e300, 0.5, 1.5, 2.5, -0.5, -1.0, 3.0])
UNARY = [
    "exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal abs sign floor ceil trunc",
    "round rint sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh isnan isinf isfinite",
    "signbit logical_not negative positive deg2rad rad2deg nan_to_num fabs",
]
BINARY = [
    "add subtract multiply divide floor_divide remainder fmod power maximum minimum fmax fmin",
    "logaddexp logaddexp2 hypot atan2 copysign nextafter heaviside equal not_equal less less_equal",
    "greater greater_equal logical_and logical_or logical_xor isclose float_power",
]


@pytest.mark.parametrize("name", " ".join(UNARY).split())
def test_unary_values_are_numpys_on_hostile_numbers(name):
    with gg.Graph():
        x = gg.placeholder(GRID.shape, name="x")
        run = gg.compile(x, getattr(gg, name)(x), backend="numpy")
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(GRID), getattr(np, name)(GRID))


@pytest.mark.parametrize("name", " ".join(BINARY).split())
def test_binary_values_are_numpys_on_hostile_numbers(name):
    left, right = (g.ravel() for g in np.meshgrid(GRID, GRID))
    with gg.Graph():
        x, y = (gg.placeholder(left.shape, name=n) for n in "xy")
        z = getattr(gg, name)(x, y)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(left, right)
    np.testing.assert_allclose(value(z, x=left, y=right), expected, rtol=1e-15)


def test_round_takes_halves_to_even_and_decimals():
    points = np.array([0.5, 1.5, 2.5, -0.5, 1234.567])
    with gg.Graph():
        x = gg.placeholder((5,), name="x")
        ys = [gg.round(x), gg.round(x, 1), gg.round(x, -2), round(x, 2)]
    for y, decimals in zip(ys, [0, 1, -2, 2], strict=True):
        np.testing.assert_array_equal(value(y, x=points), np.round(points, decimals))


@pytest.mark.parametrize("bounds", [(0, 1), (None, 1), (0, None), (None, None), (2, 1), (NAN, 1)])
def test_clip_is_numpys(bounds):
    with gg.Graph():
        x = gg.placeholder(GRID.shape, name="x")
        y = gg.clip(x, *bounds)
    np.testing.assert_array_equal(value(y, x=GRID), np.clip(GRID, *bounds))


def test_clip_of_integers_keeps_the_dtype_and_takes_open_ends():
    with gg.Graph():
        x = gg.placeholder((3,), "uint8", name="x")
        y = gg.clip(x, max=7)
        assert y.dtype == np.uint8
        assert gg.clip(x, 0.5, 2.5).dtype == np.float64
    np.testing.assert_array_equal(value(y, x=np.array([0, 7, 255], "uint8")), [0, 7, 7])


def test_divmod_of_integers():
    a, b = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    with gg.Graph():
        x, y = (gg.placeholder((4,), "int64", name=n) for n in "xy")
        q, r = divmod(x, y)
    np.testing.assert_array_equal(value(q, x=a, y=b), a // b)
    np.testing.assert_array_equal(value(r, x=a, y=b), a % b)


# --- gradients at kinks ------------------------------------------------------------------------


def test_abs_and_sign_have_gradient_zero_at_zero():
    assert gradients_at(gg.abs, 0.0) == [0.0]
    assert gradients_at(gg.sign, 0.0) == [0.0]
    assert gradients_at(gg.abs, -2.0) == [-1.0]


@pytest.mark.parametrize("name", ["sign", "round", "floor", "ceil", "trunc", "rint"])
def test_steps_have_gradient_zero_and_are_connected(name):
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        dx = gg.gradients(getattr(gg, name)(x), x)
    assert dx is not None
    np.testing.assert_array_equal(value(dx, x=np.array([0.4, 0.5, -1.0])), np.zeros(3))


@pytest.mark.parametrize("fn", [gg.maximum, gg.minimum])
def test_ties_share_the_gradient(fn):
    assert gradients_at(fn, 1.0, 1.0) == [0.5, 0.5]
    assert gradients_at(lambda x: fn(x, x), 1.0) == [1.0]
    assert gradients_at(fn, INF, INF) == [0.5, 0.5]
    assert sum(gradients_at(fn, 1.0, 2.0)) == 1.0


def test_maximum_with_zero_is_half_at_zero():
    np.testing.assert_array_equal(
        gradients_at(lambda x: gg.maximum(x, 0), [-1.0, 0.0, 2.0])[0], [0, 0.5, 1]
    )


def test_clip_passes_inside_its_closed_bounds():
    (dx,) = gradients_at(lambda x: gg.clip(x, 0, 1), [-1.0, 0.0, 0.5, 1.0, 2.0])
    np.testing.assert_array_equal(dx, [0, 1, 1, 1, 0])
    (dx,) = gradients_at(lambda x: gg.clip(x, None, 1), [-INF, 0.0, 1.0, 2.0])
    np.testing.assert_array_equal(dx, [1, 1, 1, 0])


@pytest.mark.parametrize(
    ("point", "shares"),
    [
        ((0.5, 0.0, 1.0), (1, 0, 0)),
        ((-1.0, 0.0, 1.0), (0, 1, 0)),
        ((2.0, 0.0, 1.0), (0, 0, 1)),
        ((0.0, 0.0, 1.0), (1, 0, 0)),
        ((0.5, 2.0, 1.0), (0, 0, 1)),
    ],
)
def test_clip_gives_its_bounds_what_lies_beyond(point, shares):
    assert tuple(gradients_at(gg.clip, *point)) == shares


def test_power_at_zero_base():
    for exponent, slope in [(0.0, 0.0), (1.0, 1.0), (2.0, 0.0), (3.0, 0.0), (0.5, INF)]:
        assert gradients_at(lambda x, e=exponent: x**e, 0.0) == [slope]
        assert gradients_at(gg.power, 0.0, exponent) == [slope, 0.0]


def test_power_of_negative_base():
    dx, dy = gradients_at(gg.power, -2.0, 3.0)
    assert dx == 12.0
    assert np.isnan(dy)
    assert gradients_at(lambda x: x**3, -2.0) == [12.0]


def test_power_second_order_with_a_tensor_exponent_of_zero():
    """d2/dxdy x**y = x**(y-1) (1 + y ln x)."""
    _, mixed = gradients_at(gg.power, 2.0, 0.0, order=2)
    assert mixed == pytest.approx(0.5)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, 0.5])
def test_power_with_a_number_second_order(exponent):
    (d2,) = gradients_at(lambda x: x**exponent, 2.0, order=2)
    assert d2 == pytest.approx(exponent * (exponent - 1) * 2.0 ** (exponent - 2))


@pytest.mark.parametrize(
    ("point", "shares"),
    [
        ((-INF, -INF), (0.5, 0.5)),
        ((INF, INF), (0.5, 0.5)),
        ((INF, 1.0), (1.0, 0.0)),
        ((-INF, 1.0), (0.0, 1.0)),
        ((1e300, -1e300), (1.0, 0.0)),
        ((800.0, 0.0), (1.0, 0.0)),
    ],
)
def test_logaddexp_shares_at_infinity(point, shares):
    assert gradients_at(gg.logaddexp, *point) == pytest.approx(shares)
    second = gradients_at(gg.logaddexp, *point, order=2)
    assert np.all(np.isfinite(second))


def test_logaddexp_second_order_at_a_tie():
    assert gradients_at(gg.logaddexp, 1.0, 1.0, order=2) == pytest.approx([0.25, -0.25])


def test_remainder_gradients():
    assert gradients_at(gg.remainder, 7.5, 2.0) == [1.0, -3.0]
    assert gradients_at(gg.remainder, -7.5, 2.0) == [1.0, 4.0]
    assert gradients_at(gg.fmod, -7.5, 2.0) == [1.0, 3.0]
    assert gradients_at(gg.floor_divide, 7.5, 2.0) == [0.0, 0.0]


def test_hypot_at_the_origin_is_flat_and_far_away_is_finite():
    assert gradients_at(gg.hypot, 0.0, 0.0) == [0.0, 0.0]
    assert gradients_at(gg.hypot, 3e300, 4e300) == pytest.approx([0.6, 0.8])
    assert gradients_at(gg.atan2, 3e-300, 4e-300) == pytest.approx([1.6e299, -1.2e299])


def test_where_gives_each_branch_its_own():
    cond = np.array([True, False])
    dx, dy = gradients_at(lambda x, y: gg.where(cond, x, y), [1.0, 2.0], 3.0)
    np.testing.assert_array_equal(dx, [1, 0])
    assert dy == 1.0


def test_a_second_where_keeps_nan_out():
    def safe_log(x):
        positive = x > 0
        return gg.where(positive, gg.log(gg.where(positive, x, 1)), 0)

    np.testing.assert_array_equal(gradients_at(safe_log, [2.0, -1.0, 0.0])[0], [0.5, 0, 0])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradients_have_the_dtype_of_their_input(dtype):
    fns = [lambda x: x**2.5, lambda x: x % 0.7, lambda x: gg.clip(x, 0, 1), gg.tanh, gg.expm1]
    fns += [gg.log2, gg.asinh, gg.cbrt, lambda x: gg.logaddexp(x, 1), lambda x: gg.hypot(x, 2)]
    with gg.Graph():
        x = gg.placeholder((2,), dtype)
        for fn in fns:
            y = fn(x)
            assert y.dtype == dtype
            assert gg.gradients(y, x).dtype == dtype


# --- shapes ------------------------------------------------------------------------------------


def test_unknown_and_named_lengths_go_through():
    with gg.Graph():
        x, y = gg.placeholder(("n", None), name="x"), gg.placeholder((None,), name="y")
        assert gg.where(x > y, x, y).shape == ("n", None)
        assert gg.clip(x, 0, y).shape == ("n", None)
        assert (x**2 + gg.logaddexp(x, 1.0)).shape == ("n", "x.1")
        dx, dy = gg.gradients(gg.maximum(x, y), [x, y])
    feeds = {"x": np.ones((2, 3)), "y": np.zeros(3)}
    np.testing.assert_array_equal(value(dx, **feeds), np.ones((2, 3)))
    np.testing.assert_array_equal(value(dy, **feeds), np.zeros(3))


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1)])
def test_empty_and_0d(shape):
    with gg.Graph():
        x = gg.placeholder(shape, name="x")
        y = gg.maximum(gg.clip(x, 0, 1) ** 2, gg.where(x > 0, x, 0.0))
        dx = gg.gradients(y, x)
    assert value(dx, x=np.full(shape, 0.5)).shape == shape


# --- errors ------------------------------------------------------------------------------------


def test_integers_to_negative_powers_and_reciprocals_are_errors():
    with gg.Graph():
        k = gg.placeholder((3,), "int64")
        with pytest.raises(gg.DTypeError, match="float_power"):
            k**-1
        with pytest.raises(gg.DTypeError, match=r"gg\.divide"):
            gg.reciprocal(k)
        assert gg.float_power(k, -1).dtype == np.float64


@pytest.mark.parametrize(
    ("fn", "dtype"),
    [
        (gg.negative, "bool"),
        (gg.positive, "bool"),
        (gg.sign, "bool"),
        (gg.floor, "complex128"),
        (gg.logaddexp, "complex128"),
        (gg.copysign, "complex128"),
        (gg.bitwise_and, "float64"),
        (gg.bitwise_invert, "float64"),
        (gg.bitwise_left_shift, "bool"),
    ],
)
def test_kinds_without_meaning_are_refused(fn, dtype):
    with gg.Graph():
        x = gg.placeholder((3,), dtype)
        with pytest.raises(gg.DTypeError, match=r"test_elementwise\.py|bools|complex"):
            fn(x) if fn in (gg.negative, gg.positive, gg.sign, gg.floor, gg.bitwise_invert) else fn(
                x, x
            )


@pytest.mark.parametrize("other", [None, "a", object(), [None], np.array(["a"]), b"x", {}])
def test_operands_that_are_no_numbers_are_type_errors(other):
    with gg.Graph():
        x = gg.placeholder((3,))
        for build in (
            lambda: x + other,
            lambda: other * x,
            lambda: x == other,
            lambda: gg.where(x > 0, x, other) if other is not None else x + None,
        ):
            with pytest.raises(TypeError):
                build()


def test_where_needs_both_branches():
    with gg.Graph():
        x = gg.placeholder((3,))
        with pytest.raises(TypeError, match="shape that depends on values"):
            gg.where(x > 0)


def test_shapes_that_do_not_broadcast_say_where():
    with gg.Graph():
        x, y = gg.placeholder((2, 3)), gg.placeholder((3, 2))
        with pytest.raises(gg.ShapeError, match=r"\[2, 3\] and \[3, 2\]") as error:
            x + y
    assert any("test_elementwise.py" in note for note in error.value.__notes__)
