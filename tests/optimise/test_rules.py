"""Every rewrite rule: before, after, the values it keeps, and twins on which it must not fire."""

from dataclasses import dataclass, field

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.op import op_types
from graphgrad.ops import nn
from graphgrad.ops.base import Cast, Full, OnesLike, ZerosLike, as_dtype
from graphgrad.ops.base import apply as node
from graphgrad.ops.contract.einsum import Einsum
from graphgrad.ops.contract.products import MatMul
from graphgrad.ops.elementwise import arithmetic, bounds, logic, powers
from graphgrad.ops.elementwise.accumulate import AddN, EnsureLike
from graphgrad.ops.elementwise.exponential import EXPM1, LOG1P, SQRT, SigmoidSlope, TanhSlope
from graphgrad.ops.nn import activations, classes
from graphgrad.ops.reduce.reductions import (
    ReduceAll,
    ReduceAny,
    ReduceLogSumExp,
    ReduceMax,
    ReduceMean,
    ReduceSum,
    SizeOf,
)
from graphgrad.ops.shape import reshaping as shaping
from graphgrad.ops.shape.indexing import AT, AddAt, Gather, ScatterAdd
from graphgrad.ops.shape.joining import Concat, ConcatPart
from graphgrad.ops.shape.padding import EnsureLength, Flip, Pad
from graphgrad.ops.shape.reshaping import (
    BroadcastTo,
    ExpandDims,
    Reshape,
    Squeeze,
    SumToShape,
    Transpose,
    broadcast_like,
    broadcast_to,
    reshape,
)
from graphgrad.ops.shape.slicing import Slice, Unslice, UnsliceLike
from graphgrad.optimise.rewrite import rewrite
from graphgrad.optimise.rule import EXACT, FAST, LEVELS, ROUNDING
from graphgrad.optimise.rules.catalogue import FASTER, RULES

from ..each import each
from .helpers import check_bits, check_close, check_rounding, program, text, verified

F = {"x": (3,), "y": (3,)}
I = {"x": ((3,), "int64"), "y": ((3,), "int64")}  # noqa: E741
B = {"x": ((3,), "bool"), "y": ((3,), "bool")}
ONE = {"x": (3,)}
MATRIX = {"x": (2, 3)}
NAMED = {"x": (("N", 3), "float64"), "y": (("N", 3), "float64")}
UNKNOWN = {"x": ((None, 3), "float64"), "y": ((None, 3), "float64")}
OPEN = slice(None)
FULL = (None, None, None)


@dataclass
class Case:
    """A rewrite, and programs that the rule leaves as they are.

    before, after   functions of the inputs
    inputs          as for `program`
    twins           functions of the same inputs, or (function, other inputs)
    """

    before: object
    after: object
    inputs: dict = field(default_factory=lambda: F)
    twins: list = field(default_factory=list)


def chain(x, *ops):
    for op in ops:
        x = node(op, x)
    return x


def number(value, x):
    return gg.constant(value, x.dtype)


def plus_zero(x):
    return node(arithmetic.ADD, x, number(0.0, x))


def put(x, key, shape):
    return node(Unslice(key, shape), x)


def rows(a, b):
    return ((a, b, None),)


def one_less_square(y):
    return 1.0 - y * y


def times_rest(y):
    return y * (1.0 - y)


def square(x):
    return node(powers.SQUARE, x)


def total(x, *axes, keepdims=False):
    return node(ReduceSum(axes, keepdims), x)


def embedded(k):
    """Updates at k places, added into a table of zeros."""

    def build(*args):
        zeros = zeros_of_table()
        pairs = [args[2 * i : 2 * i + 2] for i in range(k)]
        return node(AddN(), *[node(ScatterAdd(0), zeros, at % 5, u) for at, u in pairs])

    return build


def zeros_of_table():
    return broadcast_to(gg.constant(0.0), (5, 2))


def added_at(k):
    """Updates at places, added into k tables of zeros."""

    def build(*updates):
        places = gg.constant([4, 0, 4])
        terms = [node(AddAt((AT,)), zeros_of_table(), u, places) for u in updates[:k]]
        return node(AddN(), *terms)

    return build


def chained_additions(u, v):
    places = gg.constant([4, 0, 4])
    return node(AddAt((AT,)), node(AddAt((AT,)), zeros_of_table(), u, places), v, places)


UPDATES = {"u": (3, 2), "v": (3, 2)}
SCATTERED = {"i": ((3,), "int64"), "u": (3, 2), "j": ((2,), "int64"), "v": (2, 2)}


def known(shape):
    """A tensor whose lengths were filled in, as the second operand of an op that asks for one."""
    return gg.constant(np.zeros(shape))


CASES = {
    # --- shapes that are known
    "like_a_known_shape": [
        Case(
            lambda x: node(shaping.BroadcastLike(), x, known((2, 3))),
            lambda x: broadcast_to(x, (2, 3)),
            ONE,
            [(lambda x, y: node(shaping.BroadcastLike(), x, y), {"x": (3,), "y": UNKNOWN["y"]})],
        ),
        Case(
            lambda x: node(shaping.ReshapeLike(), x, known((3, 2))),
            lambda x: chain(x, Reshape((3, 2))),
            MATRIX,
        ),
        Case(
            lambda x: node(shaping.SumTo(), x, known((3,))),
            lambda x: chain(x, SumToShape((3,))),
            MATRIX,
        ),
        Case(
            lambda x: node(UnsliceLike((1,)), x, known((2, 3))),
            lambda x: put(x, (1,), (2, 3)),
            ONE,
        ),
        Case(
            lambda i: node(classes.OneHotLike(1), i, known((3, 4))),
            lambda i: node(classes.OneHot(4, 1, as_dtype("float64")), i),
            {"i": ((3,), "int64")},
        ),
    ],
    "known_size": [
        Case(
            lambda x: x * node(SizeOf((0, 1), as_dtype("float64")), x),
            lambda x: x * 6.0,
            MATRIX,
            [(lambda x, y: node(SizeOf((0,), as_dtype("float64")), x), NAMED)],
        )
    ],
    "reshape_to_known_lengths": [
        Case(
            lambda x: chain(x, Reshape((-1, ("axis", 0)))),
            lambda x: chain(x, Reshape((3, 2))),
            MATRIX,
            [lambda x: chain(x, Reshape((3, 2))), (lambda x, y: reshape(x, (-1,)), NAMED)],
        )
    ],
    "known_part": [
        Case(
            lambda x, y: node(ConcatPart(0, 1), gg.exp(gg.concat([x, y])), x, y),
            lambda x, y: gg.exp(gg.concat([x, y]))[3:6],
            twins=[(lambda x, y: node(ConcatPart(0, 1), gg.concat([x, y]), x, y), NAMED)],
        )
    ],
    "ensured_shape": [
        Case(
            lambda x, y: node(EnsureLike("as said"), x, y),
            lambda x, y: x,
            twins=[(lambda x, y: node(EnsureLike("as said"), x, y), UNKNOWN)],
        )
    ],
    "ensured_length": [
        Case(
            lambda x, y: node(EnsureLength(0, 2, "as said"), x),
            lambda x, y: x,
            twins=[(lambda x, y: node(EnsureLength(0, 2, "as said"), x), UNKNOWN)],
        )
    ],
    # --- neutral elements
    "times_one": [
        Case(
            lambda x, y: x * 1.0,
            lambda x, y: x,
            twins=[
                lambda x, y: x * 0.0,
                lambda x, y: x * np.nan,
                lambda x, y: x * gg.constant(np.linspace(1, 2, 3)),
                lambda x, y: x * gg.constant(np.ones((4, 3))),
                (lambda x: x * gg.constant(np.ones(3)), {"x": ((None,), "float64")}),
                (lambda x: gg.multiply(x, 1.0), {"x": ((3,), "complex128")}),
                (lambda x, y: node(arithmetic.MULTIPLY, x, broadcast_like(1.0, y)), UNKNOWN),
            ],
        ),
        Case(lambda x, y: 1 * x, lambda x, y: x, I),
        Case(lambda x: x * gg.constant(np.ones((2, 3))), lambda x: x, MATRIX),
        Case(lambda x, y: x * broadcast_like(1.0, x), lambda x, y: x, NAMED),
    ],
    "over_one": [
        Case(
            lambda x, y: x / 1.0,
            lambda x, y: x,
            twins=[
                lambda x, y: 1.0 / x,
                lambda x, y: x / x,
                (lambda x: gg.divide(x, 1.0), {"x": ((3,), "complex128")}),
            ],
        )
    ],
    "plus_zero": [
        Case(
            lambda x, y: x + -0.0,
            lambda x, y: x,
            twins=[lambda x, y: x + 0.0, (lambda x: x + 0, {"x": ((3,), "complex128")})],
        ),
        Case(lambda x, y: x + 0, lambda x, y: x, I),
    ],
    "minus_zero": [
        Case(
            lambda x, y: x - 0.0,
            lambda x, y: x,
            twins=[lambda x, y: x - -0.0, lambda x, y: 0.0 - x],
        ),
        Case(lambda x, y: x - 0, lambda x, y: x, I),
    ],
    "power_one": [
        Case(
            lambda x, y: node(powers.POWER, x, number(1.0, x)),
            lambda x, y: x,
            twins=[
                lambda x, y: node(powers.POWER, number(1.0, x), x),
                lambda x, y: node(powers.POWER, x, number(-1.0, x)),
            ],
        )
    ],
    "beyond_infinity": [
        Case(
            lambda x, y: gg.maximum(x, -np.inf),
            lambda x, y: x,
            twins=[lambda x, y: gg.maximum(x, np.inf), lambda x, y: gg.maximum(x, -1e308)],
        ),
        Case(lambda x, y: gg.minimum(np.inf, x), lambda x, y: x),
    ],
    "clip_with_one_bound": [
        Case(
            lambda x, y: node(bounds.CLIP, x, number(-np.inf, x), y),
            lambda x, y: node(bounds.MINIMUM, x, y),
            twins=[
                lambda x, y: node(bounds.CLIP, x, number(0, x), y),
                lambda x, y: node(bounds.CLIP, number(0, x), number(-np.inf, x), y),
            ],
        ),
        Case(
            lambda x, y: node(bounds.CLIP, x, y, number(np.inf, x)),
            lambda x, y: node(bounds.MAXIMUM, x, y),
        ),
    ],
    "with_true_or_false": [
        Case(lambda x, y: x & True, lambda x, y: x, B, [lambda x, y: x & y]),
        Case(lambda x, y: x | False, lambda x, y: x, B),
        Case(lambda x, y: x & False, lambda x, y: broadcast_to(False, (3,)), B),
        Case(lambda x, y: x | True, lambda x, y: broadcast_to(True, (3,)), B),
        Case(lambda x, y: x ^ True, lambda x, y: gg.logical_not(x), B),
        Case(lambda x, y: x ^ False, lambda x, y: x, B),
    ],
    "integer_times_zero": [
        Case(
            lambda x, y: x * 0,
            lambda x, y: broadcast_to(0, (3,)),
            I,
            [lambda x, y: x * 2, (lambda x: x * 0.0, ONE)],
        ),
        Case(lambda x, y: x & 0, lambda x, y: broadcast_to(0, (3,)), I),
    ],
    # --- signs
    "times_minus_one": [
        Case(lambda x, y: x * -1.0, lambda x, y: -x, twins=[lambda x, y: x * -2.0]),
        Case(lambda x, y: x / -1.0, lambda x, y: -x, twins=[lambda x, y: -1.0 / x]),
        Case(lambda x, y: -1 * x, lambda x, y: -x, I),
    ],
    "from_zero": [
        Case(lambda x, y: -0.0 - x, lambda x, y: -x, twins=[lambda x, y: 0.0 - x]),
        Case(lambda x, y: 0 - x, lambda x, y: -x, I),
    ],
    "plus_negative": [
        Case(
            lambda x, y: x + -y, lambda x, y: x - y, twins=[lambda x, y: x + y, lambda x, y: -x - y]
        ),
        Case(lambda x, y: -x + y, lambda x, y: y - x),
    ],
    "minus_negative": [Case(lambda x, y: x - -y, lambda x, y: x + y, twins=[lambda x, y: -x - y])],
    "two_negatives": [
        Case(lambda x, y: -x * -y, lambda x, y: x * y, twins=[lambda x, y: -x * y]),
        Case(
            lambda x, y: -x / -y,
            lambda x, y: x / y,
            twins=[(lambda x: -x * -x, {"x": ((3,), "complex128")})],
        ),
    ],
    "negative_times_number": [
        Case(
            lambda x, y: -x * 3.0,
            lambda x, y: x * -number(3.0, x),
            twins=[lambda x, y: -x * y, lambda x, y: -x * gg.constant([1.0, 2.0, 3.0])],
        ),
        Case(lambda x, y: -x / 3.0, lambda x, y: x / -number(3.0, x)),
        Case(lambda x, y: 3.0 / -x, lambda x, y: -number(3.0, x) / x),
    ],
    "negative_of_multiple": [
        Case(
            lambda x, y: -(x * 3.0),
            lambda x, y: x * -number(3.0, x),
            twins=[lambda x, y: -(x * y), lambda x, y: -(x - 3.0), lambda x, y: -(x + 3.0)],
        ),
        Case(lambda x, y: -(3.0 / x), lambda x, y: -number(3.0, x) / x),
    ],
    "sign_that_is_lost": [
        Case(
            lambda x, y: gg.abs(-x),
            lambda x, y: gg.abs(x),
            twins=[
                lambda x, y: gg.abs(gg.abs(x)),
                (lambda x: gg.abs(-x), {"x": ((3,), "uint8")}),
                lambda x, y: gg.exp(-x),
            ],
        ),
        Case(lambda x, y: square(-x), lambda x, y: square(x)),
        Case(lambda x, y: square(gg.abs(x)), lambda x, y: square(x)),
        Case(lambda x, y: gg.abs(-x), lambda x, y: gg.abs(x), I),
    ],
    # --- the same twice
    "double_negative": [
        Case(lambda x, y: gg.negative(-x), lambda x, y: x, twins=[lambda x, y: -x])
    ],
    "there_and_back": [
        Case(
            lambda x, y: gg.logical_not(gg.logical_not(x)),
            lambda x, y: x,
            B,
            [lambda x, y: gg.logical_not(x)],
        ),
        Case(lambda x, y: ~~x, lambda x, y: x, I),
        Case(
            lambda x: chain(x, Flip((0,)), Flip((0,))),
            lambda x: x,
            MATRIX,
            [lambda x: chain(x, Flip((0,)), Flip((1,)))],
        ),
    ],
    "once_is_enough": [
        Case(
            lambda x, y: gg.abs(gg.abs(x)),
            lambda x, y: gg.abs(x),
            twins=[
                lambda x, y: gg.abs(gg.sign(x)),
                lambda x, y: gg.exp(gg.exp(x)),
                (lambda x: gg.sign(gg.sign(x)), {"x": ((3,), "complex128")}),
            ],
        ),
        Case(lambda x, y: nn.relu(nn.relu(x)), lambda x, y: nn.relu(x)),
        Case(lambda x, y: gg.floor(gg.ceil(x)), lambda x, y: gg.ceil(x)),
    ],
    "with_itself": [
        Case(lambda x, y: gg.maximum(x, x), lambda x, y: x, twins=[lambda x, y: gg.maximum(x, y)]),
        Case(lambda x, y: x & x, lambda x, y: x, B),
        Case(lambda x, y: x | x, lambda x, y: x, I),
    ],
    "times_itself": [
        Case(
            lambda x, y: x * x,
            lambda x, y: square(x),
            twins=[lambda x, y: x * y, (lambda x: x * x, {"x": ((3,), "complex128")})],
        )
    ],
    "integer_minus_itself": [
        Case(
            lambda x, y: x - x,
            lambda x, y: broadcast_to(0, (3,)),
            I,
            [lambda x, y: x - y, (lambda x: x - x, ONE)],
        ),
        Case(lambda x, y: x ^ x, lambda x, y: broadcast_to(False, (3,)), B),
    ],
    # --- comparisons and choices
    "not_of_comparison": [
        Case(
            lambda x, y: gg.logical_not(x == y),
            lambda x, y: x != y,
            twins=[lambda x, y: gg.logical_not(x < y)],
        ),
        Case(lambda x, y: gg.logical_not(x < y), lambda x, y: x >= y, I),
    ],
    "compared_with_itself": [
        Case(
            lambda x, y: x < x,
            lambda x, y: broadcast_to(False, (3,)),
            twins=[lambda x, y: x == x, lambda x, y: x <= x, lambda x, y: x < y],
        ),
        Case(lambda x, y: x <= x, lambda x, y: broadcast_to(True, (3,)), I),
        Case(lambda x, y: x != x, lambda x, y: broadcast_to(False, (3,)), I),
    ],
    "where_of_the_same": [
        Case(
            lambda x, y: gg.where(y > 0, x, x),
            lambda x, y: x,
            twins=[
                lambda x, y: gg.where(y > 0, x, y),
                (lambda c, x: gg.where(c, x, x), {"c": ((2, 3), "bool"), "x": (3,)}),
            ],
        )
    ],
    "where_of_constant": [
        Case(
            lambda x, y: gg.where(gg.constant(True), x, y),
            lambda x, y: x,
            twins=[
                lambda x, y: gg.where(gg.constant([True, False, True]), x, y),
                (lambda x, y: gg.where(gg.constant(True), x, y), {"x": (3,), "y": (2, 3)}),
            ],
        ),
        Case(lambda x, y: gg.where(gg.constant(False), x, y), lambda x, y: y),
    ],
    "where_of_not": [
        Case(
            lambda c, x: gg.where(gg.logical_not(c), x, 0.0),
            lambda c, x: node(logic.WHERE, c, number(0.0, x), x),
            {"c": ((3,), "bool"), "x": (3,)},
            [lambda c, x: gg.where(c, x, 0.0)],
        )
    ],
    # --- powers, quotients, casts
    "power_zero": [
        Case(
            lambda x, y: node(powers.POWER, x, number(0.0, x)),
            lambda x, y: broadcast_to(1.0, (3,)),
            twins=[
                lambda x, y: node(powers.POWER, number(0.0, x), x),
                lambda x, y: node(powers.POWER, x, gg.constant([0.0, 0.0, 1.0])),
            ],
        ),
        Case(
            lambda x, y: node(powers.POWER, x, number(0.0, x)),
            lambda x, y: broadcast_like(gg.constant(1.0), x),
            NAMED,
        ),
    ],
    "over_power_of_two": [
        Case(
            lambda x, y: x / -4.0,
            lambda x, y: x * -0.25,
            twins=[
                lambda x, y: x / 3.0,
                lambda x, y: x / 0.0,
                lambda x, y: x / np.inf,
                lambda x, y: x / np.nan,
                lambda x, y: x / 5e-324,
                lambda x, y: 4.0 / x,
            ],
        )
    ],
    "cast_to_own_dtype": [
        Case(
            lambda x: chain(x, Cast(as_dtype("float64"))),
            lambda x: x,
            ONE,
            [lambda x: chain(x, Cast(as_dtype("float32")))],
        )
    ],
    "cast_of_cast": [
        Case(
            lambda x: chain(x, Cast(as_dtype("float64")), Cast(as_dtype("float32"))),
            lambda x: x,
            {"x": ((3,), "float32")},
            [
                lambda x: chain(x, Cast(as_dtype("float16")), Cast(as_dtype("float32"))),
                lambda x: chain(x, Cast(as_dtype("float64")), Cast(as_dtype("int32"))),
                (
                    lambda x: chain(x, Cast(as_dtype("float64")), Cast(as_dtype("int64"))),
                    {"x": ((3,), "int64")},
                ),
                (
                    lambda x: chain(x, Cast(as_dtype("float64")), Cast(as_dtype("int8"))),
                    {"x": ((3,), "int32")},
                ),
            ],
        ),
        Case(
            lambda x: chain(x, Cast(as_dtype("float64")), Cast(as_dtype("float16"))),
            lambda x: chain(x, Cast(as_dtype("float16"))),
            {"x": ((3,), "int16")},
        ),
    ],
    # --- transposes
    "transpose_to_the_same": [
        Case(lambda x: chain(x, Transpose((0, 1))), lambda x: x, MATRIX, [gg.transpose])
    ],
    "transpose_of_ones": [
        Case(
            lambda x: chain(x, Transpose((1, 2, 0))),
            lambda x: chain(x, Reshape((2, 3, 1))),
            {"x": (1, 2, 3)},
            [
                lambda x: chain(x, Transpose((0, 2, 1))),
                (gg.transpose, {"x": ((1, "N"), "float64")}),
            ],
        )
    ],
    "transpose_of_transpose": [
        Case(
            lambda x: chain(x, Transpose((1, 2, 0)), Transpose((1, 2, 0))),
            lambda x: chain(x, Transpose((2, 0, 1))),
            {"x": (2, 3, 4)},
            [lambda x: chain(x, Transpose((1, 2, 0)))],
        )
    ],
    "matmul_of_transpose": [
        Case(
            lambda x, y: gg.transpose(x) @ y,
            lambda x, y: node(MatMul(True, False), x, y),
            {"x": (3, 2), "y": (3, 4)},
            [(lambda x: gg.transpose(x @ x), {"x": (3, 3)})],
        ),
        Case(
            lambda x, y: node(MatMul(False, True), x, gg.transpose(y)),
            lambda x, y: node(MatMul(False, False), x, y),
            {"x": (2, 3), "y": (3, 4)},
        ),
        Case(
            lambda x, y: x @ gg.transpose(y, (1, 2, 0)),
            lambda x, y: node(MatMul(False, True), x, gg.transpose(y, (1, 0, 2))),
            {"x": (5, 2, 3), "y": (4, 5, 3)},
            [
                (lambda x, y: gg.transpose(x, (0, 2, 1)) @ y, {"x": (2, 3, 4), "y": (3, 5)}),
                lambda x, y: x @ gg.transpose(gg.transpose(y, (1, 2, 0)), (0, 1, 2)),
            ][:1],
        ),
    ],
    # --- reshapes
    "reshape_to_the_same": [
        Case(
            lambda x: chain(x, Reshape((2, 3))),
            lambda x: x,
            MATRIX,
            [lambda x: chain(x, Reshape((3, 2)))],
        )
    ],
    "squeeze_of_expand_dims": [
        Case(
            lambda x: chain(x, ExpandDims((1,)), Squeeze((1,))),
            lambda x: x,
            {"x": (("N",), "float64")},
            [
                (lambda x: chain(x, ExpandDims((0,)), Squeeze((1,))), {"x": (1,)}),
                (lambda x: chain(x, ExpandDims((1,)), Squeeze((1,))), {"x": ((None,), "float64")}),
            ],
        )
    ],
    "expand_dims_of_squeeze": [
        Case(
            lambda x: chain(x, Squeeze((1,)), ExpandDims((1,))),
            lambda x: x,
            {"x": (("N", 1), "float64")},
            [
                (
                    lambda x: chain(x, Squeeze((1,)), ExpandDims((1,))),
                    {"x": ((3, None), "float64")},
                ),
                lambda x: chain(x, Squeeze((1,)), ExpandDims((0,))),
            ],
        )
    ],
    "reshape_of_reshape": [
        Case(
            lambda x: chain(x, Reshape((6,)), Reshape((3, 2))),
            lambda x: chain(x, Reshape((3, 2))),
            MATRIX,
            [(lambda x: reshape(reshape(x, (-1,)), (-1, 1)), {"x": (("N", 3), "float64")})],
        ),
        Case(
            lambda x: chain(x, ExpandDims((0,)), Squeeze((0,)), ExpandDims((1,))),
            lambda x: chain(x, Reshape((2, 1, 3))),
            MATRIX,
        ),
    ],
    # --- broadcasts
    "full_is_broadcast": [
        Case(
            lambda x: x + node(Full((3,), 2.0, as_dtype("float64"))),
            lambda x: x + broadcast_to(2.0, (3,)),
            ONE,
            [lambda x: x + node(Full((), 2.0, as_dtype("float64")))],
        )
    ],
    "like_is_broadcast": [
        Case(lambda x, y: node(ZerosLike(), x), lambda x, y: broadcast_to(0.0, (3,))),
        Case(
            lambda x, y: node(OnesLike(), x),
            lambda x, y: broadcast_like(gg.constant(1.0), x),
            NAMED,
            [lambda x, y: broadcast_like(gg.constant(1.0), x)],
        ),
    ],
    "to_own_shape": [
        Case(
            lambda x: chain(x, BroadcastTo((3,)), SumToShape((3,))),
            lambda x: x,
            ONE,
            [lambda x: chain(x, BroadcastTo((2, 3)))],
        )
    ],
    "broadcast_of_broadcast": [
        Case(
            lambda x: broadcast_to(broadcast_to(x, (2, 3)), (4, 2, 3)),
            lambda x: broadcast_to(x, (4, 2, 3)),
            ONE,
            [
                (
                    lambda x: broadcast_to(broadcast_to(x, (2, 3)), (4, 2, 3)),
                    {"x": ((None,), "float64")},
                )
            ],
        )
    ],
    "broadcast_of_leading_ones": [
        Case(
            lambda x: broadcast_to(gg.expand_dims(x, 0), (2, 3)),
            lambda x: broadcast_to(x, (2, 3)),
            ONE,
            [lambda x: broadcast_to(gg.expand_dims(x, 1), (3, 2))],
        )
    ],
    "broadcast_into_elementwise": [
        Case(
            lambda x, y: broadcast_to(x, (2, 3)) * y,
            lambda x, y: x * y,
            {"x": (3,), "y": (2, 3)},
            [
                (lambda x, y: broadcast_like(x, y) * y, {"x": (3,), "y": ((None, 3), "float64")}),
                (lambda x, y: broadcast_to(x, (2, 3)) * y, {"x": (3,), "y": (2, 1)}),
                (lambda x: gg.exp(broadcast_to(x, (2, 3))), ONE),
            ],
        ),
        Case(
            lambda x, y: broadcast_like(gg.constant(2.0), y) * y,
            lambda x, y: node(arithmetic.MULTIPLY, gg.constant(2.0), y),
            NAMED,
        ),
        Case(
            lambda x, y: node(activations.RELU_GRAD, broadcast_to(y, (2, 3)), x),
            lambda x, y: node(activations.RELU_GRAD, y, x),
            {"x": (2, 3), "y": (3,)},
        ),
    ],
    "elementwise_of_broadcast": [
        Case(
            lambda x: gg.exp(broadcast_to(x, (2, 3))),
            lambda x: broadcast_to(gg.exp(x), (2, 3)),
            ONE,
            [
                (lambda x, y: broadcast_to(x, (2, 3)) + y, {"x": (3,), "y": (2, 1)}),
                (lambda x: gg.exp(broadcast_to(x, (0, 3))), ONE),
                (lambda x: gg.exp(broadcast_to(x, (2, 3))), {"x": ((None,), "float64")}),
            ],
        ),
        Case(
            lambda x, y: broadcast_to(x, (2, 3)) + broadcast_to(y, (2, 3)),
            lambda x, y: broadcast_to(x + y, (2, 3)),
        ),
        Case(
            lambda x, y: gg.exp(broadcast_like(x, y)) * 2.0,
            lambda x, y: broadcast_like(gg.exp(x) * 2.0, y),
            {"x": (3,), "y": (("N", 3), "float64")},
            [
                lambda x, y: broadcast_like(x, y) * y,
                (lambda x, y: broadcast_like(x, y) * x, {"x": (3,), "y": (("N", 3), "float64")}),
            ],
        ),
    ],
    "reshape_of_broadcast": [
        Case(
            lambda x: gg.expand_dims(broadcast_to(x, (2, 3)), 1),
            lambda x: broadcast_to(chain(x, Reshape((1, 1, 3))), (2, 1, 3)),
            ONE,
            [lambda x: chain(broadcast_to(x, (2, 3)), Reshape((6,)))],
        ),
        Case(
            lambda x: chain(broadcast_to(x, (2, 3)), Reshape((6,))),
            lambda x: broadcast_to(x, (6,)),
            {"x": ()},
        ),
    ],
    "transpose_of_broadcast": [
        Case(
            lambda x: gg.transpose(broadcast_to(x, (2, 3))),
            lambda x: broadcast_to(gg.transpose(chain(x, Reshape((1, 3)))), (3, 2)),
            ONE,
            [(lambda x: gg.transpose(broadcast_to(x, (2, 3))), {"x": ((None,), "float64")})],
        )
    ],
    "shape_from_an_input": [
        Case(
            lambda x, y: node(shaping.BroadcastLike(), y, gg.exp(gg.sin(x)) * 2.0),
            lambda x, y: node(shaping.BroadcastLike(), y, x),
            {"x": (("N", 3), "float64"), "y": (3,)},
            [
                lambda x, y: node(shaping.BroadcastLike(), y, x),
                lambda x, y: node(shaping.BroadcastLike(), y, gg.cumsum(x, 0)),
                (
                    lambda x, y: node(shaping.BroadcastLike(), y, gg.exp(x)),
                    {"x": ((None, 3), "float64"), "y": (3,)},
                ),
            ],
        )
    ],
    # --- slices
    "slice_in_one_spelling": [
        Case(
            lambda x: chain(x, Slice((-1, (0, 3, None)))),
            lambda x: chain(x, Slice((1,))),
            MATRIX,
            [lambda x: x[1], (lambda x: x[-1], {"x": ((None,), "float64")})],
        ),
        Case(lambda x: chain(x, Slice((FULL, (0, 3, 1)))), lambda x: x, MATRIX),
        Case(
            lambda x: chain(x, Slice(((None, None, -1), (5, 1, None)))),
            lambda x: chain(x, Slice(((1, None, -1), (0, 0, None)))),
            MATRIX,
        ),
    ],
    "slice_of_ones": [
        Case(
            lambda x: x[0, None],
            lambda x: chain(x, Reshape((1, 3))),
            {"x": (1, 3)},
            [lambda x: x[0, 1:], (lambda x: x[::-1], ONE)],
        )
    ],
    "slice_of_slice": [
        Case(
            lambda x: x[1:, ::2][2, 1:],
            lambda x: chain(x, Slice((3, (2, 5, 2)))),
            {"x": (5, 5)},
            [(lambda x: x[1:][0], {"x": ((None, 5), "float64")})],
        ),
        Case(
            lambda x: x[::-1, None][1:, 0],
            lambda x: chain(x, Slice(((3, None, -1),))),
            {"x": (5,)},
            [lambda x: x[None][0:0]],
        ),
        Case(
            lambda x: x[None, 2][:, None, 1],
            lambda x: chain(x, Slice((None, 2, None, 1))),
            {"x": (3, 4)},
        ),
    ],
    "slice_of_broadcast": [
        Case(
            lambda x: broadcast_to(x, (4, 3))[1:3, 2],
            lambda x: broadcast_to(chain(x, Reshape((1, 3)), Slice((FULL, 2))), (2,)),
            ONE,
            [(lambda x: broadcast_to(x, (4, 3))[1], {"x": ((None,), "float64")})],
        )
    ],
    "cuts_of_broadcast": [
        Case(
            lambda x: gg.unstack(broadcast_to(x, (2, 3))),
            lambda x: [node(Slice((i,)), t) for t in [broadcast_to(x, (2, 3))] for i in (0, 1)],
            ONE,
            [lambda x: gg.unstack(x)],
        ),
        Case(
            lambda x: gg.split(broadcast_to(x, (2, 3)), [1], 1),
            lambda x: [
                node(Slice((FULL, (a, b, None))), t)
                for t in [broadcast_to(x, (2, 3))]
                for a, b in ((0, 1), (1, 3))
            ],
            ONE,
        ),
    ],
    "slice_of_concat": [
        Case(
            lambda x, y: gg.concat([x, y])[4],
            lambda x, y: y[1],
            twins=[
                lambda x, y: gg.concat([x, y])[2:5],
                lambda x, y: gg.concat([x, y])[::-1],
                lambda x, y: gg.concat([x, y])[None, 0],
            ],
        ),
        Case(
            lambda x, y: gg.concat([x, y, x])[1:5],
            lambda x, y: gg.concat([x, y])[1:5],
        ),
        Case(
            lambda x, y: gg.concat([x, y, x, y, x])[2:5:2],
            lambda x, y: gg.concat([x, x])[2:5:2],
            {"x": (3,), "y": (0,)},
        ),
        Case(
            lambda x, y: gg.concat([x, y], 1)[0, 3:],
            lambda x, y: node(Slice((0, (1, 3, None))), y),
            {"x": (2, 2), "y": (2, 3)},
        ),
    ],
    "slice_of_stack": [
        Case(
            lambda x, y: gg.stack([x, y], 1)[2, 1],
            lambda x, y: y[2],
            twins=[lambda x, y: gg.stack([x, y])[:1], lambda x, y: gg.stack([x, y], 1)[1]],
        )
    ],
    "gather_in_a_row": [
        Case(
            lambda x: gg.take(x, np.array([1, -1]), 1),
            lambda x: chain(x, Slice((FULL, (1, 3, None)))),
            MATRIX,
            [
                lambda x: gg.take(x, np.array([2, 1]), 1),
                lambda x: node(Gather(1), x, gg.constant([2, 3])),
                lambda x: gg.take(x, np.zeros((0,), int), 1),
            ],
        ),
        Case(
            lambda x: gg.take(x, np.array([[1], [2]]), 1),
            lambda x: chain(x, Slice((FULL, (1, 3, None))), Reshape((2, 2, 1))),
            MATRIX,
        ),
    ],
    # --- joins
    "concat_of_one": [
        Case(
            lambda x, y: node(Concat(0), x, gg.constant(np.zeros((0,))), y),
            lambda x, y: node(Concat(0), x, y),
            twins=[lambda x, y: node(Concat(0), x, y)],
        ),
        Case(lambda x, y: node(Concat(0), x), lambda x, y: x),
    ],
    "concat_of_concat": [
        Case(
            lambda x, y: gg.concat([x, gg.concat([y, x])]),
            lambda x, y: gg.concat([x, y, x]),
            twins=[
                (
                    lambda x, y: gg.concat([x, gg.concat([y, x], 1)], 0),
                    {"x": (2, 2), "y": (2, 0)},
                )
            ],
        )
    ],
    "concat_of_cuts": [
        Case(
            lambda x, y: gg.concat([x[:1], x[1:3], y]),
            lambda x, y: gg.concat([x, y]),
            twins=[
                lambda x, y: gg.concat([x[:1], x[2:]]),
                lambda x, y: gg.concat([x[:1], y[1:]]),
                lambda x, y: gg.concat([x[1:], x[:1]]),
            ],
        ),
        Case(
            lambda x: gg.concat([x[1], x[2]]),
            lambda x: chain(x, Slice(rows(1, 3)), Reshape((6,))),
            {"x": (4, 3)},
            [
                lambda x: gg.concat([x[:, 1], x[:, 2]]),
                (lambda x: gg.concat([x[1], x[2]], 1), {"x": (4, 3, 2)}),
                lambda x: gg.concat([x[2], x[1]]),
            ],
        ),
        Case(lambda x: gg.concat(gg.split(x, [1], 1), 1), lambda x: x, MATRIX),
        Case(
            lambda x: gg.concat(gg.unstack(x, 1), 1),
            lambda x: chain(x, Reshape((2, 12))),
            {"x": (2, 3, 4)},
        ),
    ],
    "stack_of_cuts": [
        Case(
            lambda x: gg.stack(gg.unstack(x, 1), 1),
            lambda x: x,
            MATRIX,
            [lambda x: gg.stack(gg.unstack(x, 1)), lambda x: gg.stack([x[1], x[0]])],
        ),
        Case(
            lambda x: gg.stack([x[1], x[2]]), lambda x: chain(x, Slice(rows(1, 3))), {"x": (4, 3)}
        ),
    ],
    "unstack_of_stack": [
        Case(
            lambda x, y: gg.unstack(gg.stack([x, y], 1), 1)[::-1],
            lambda x, y: (y, x),
            twins=[lambda x, y: gg.unstack(gg.stack([x, y], 1))],
        )
    ],
    "split_of_concat": [
        Case(
            lambda x, y: gg.split(gg.concat([x, y]), [3])[::-1],
            lambda x, y: (y, x),
            twins=[
                lambda x, y: gg.split(gg.concat([x, y]), [2]),
                lambda x, y: gg.split(gg.concat([x, y]), 3),
            ],
        )
    ],
    # --- pieces put into zeros
    "pad_is_unslice": [
        Case(
            lambda x: chain(x, Pad(((1, 2), (0, 0)))),
            lambda x: put(x, rows(1, 3), (5, 3)),
            MATRIX,
            [
                lambda x: chain(x, Pad(((1, 2), (0, 0)), 1.0)),
                lambda x: chain(x, Pad(((1, 2), (0, 0)), -0.0)),
            ],
        )
    ],
    "unslice_of_everything": [
        Case(
            lambda x: put(x, (0,), (1, 3)),
            lambda x: chain(x, Reshape((1, 3))),
            ONE,
            [lambda x: put(x, (1,), (2, 3)), lambda x: put(x, ((None, None, -1),), (3,))],
        )
    ],
    "unslice_of_unslice": [
        Case(
            lambda x: put(put(x, rows(1, 4), (5,)), (FULL, 2), (5, 4)),
            lambda x: put(x, (rows(1, 4)[0], 2), (5, 4)),
            ONE,
            [lambda x: put(gg.exp(put(x, rows(1, 4), (5,))), (FULL, 2), (5, 4))],
        )
    ],
    "slice_of_unslice": [
        Case(
            lambda x: put(x, rows(1, 4), (5,))[2:4],
            lambda x: x[1:3],
            ONE,
            [
                lambda x: put(x, rows(1, 4), (5,))[0:2],
                lambda x: put(x, rows(1, 4), (5,))[::-1],
                lambda x: put(x, ((0, None, 2),), (5,))[2:],
            ],
        ),
        Case(
            lambda x: put(x, (1,), (2, 3))[1, 1:],
            lambda x: chain(x, Reshape((1, 3)), Slice((0, (1, 3, None)))),
            ONE,
        ),
        Case(lambda x: put(x, (1,), (2, 3))[0], lambda x: broadcast_to(0.0, (3,)), ONE),
    ],
    "sum_of_unslices": [
        Case(
            lambda x, y: put(y, rows(4, 7), (8,)) + put(x, rows(0, 3), (8,)),
            lambda x, y: gg.concat(
                [plus_zero(x), broadcast_to(0.0, (1,)), plus_zero(y), broadcast_to(0.0, (1,))]
            ),
            twins=[
                lambda x, y: put(x, rows(0, 3), (5,)) + put(y, rows(2, 5), (5,)),
                lambda x, y: put(x, rows(0, 3), (6,)) + put(y, ((0, None, 2),), (6,)),
                (
                    lambda x, y: put(x, (0,), (2, 3)) + put(y, (FULL, 0), (2, 3)),
                    {"x": (3,), "y": (2,)},
                ),
                lambda x, y: put(x, rows(0, 3), (3,)) + y,
            ],
        ),
        Case(
            lambda x, y: node(AddN(), *[put(t, (i,), (2, 3)) for t, i in [(x, 0), (y, 1), (x, 1)]]),
            lambda x, y: gg.concat(
                [plus_zero(chain(x, Reshape((1, 3)))), plus_zero(_rows(y) + _rows(x))]
            ),
        ),
        Case(
            lambda x, y, z: node(
                AddN(), put(gg.exp(x), rows(0, 3), (6,)), z, put(y, rows(3, 6), (6,))
            ),
            lambda x, y, z: node(arithmetic.ADD, gg.concat([gg.exp(x), plus_zero(y)]), z),
            {"x": (3,), "y": (3,), "z": (6,)},
        ),
        Case(
            lambda x, y: put(x, rows(0, 3), (6,)) + put(y, rows(3, 6), (6,)),
            lambda x, y: gg.concat([x, y]),
            I,
        ),
        Case(  # windows that overlap, each of two lists apart
            lambda x, y: node(
                AddN(), *[put(t, rows(i, i + 3), (7,)) for i, t in enumerate([x, y, y, x, x])]
            ),
            lambda x, y: node(
                AddN(),
                gg.concat([x, x, broadcast_to(0, (1,))]),
                gg.concat([broadcast_to(0, (1,)), y, x]),
                put(y, rows(2, 5), (7,)),
            ),
            I,
        ),
    ],
    # --- sums
    "sum_of_few": [
        Case(
            lambda x, y: node(AddN(), x, y),
            lambda x, y: x + y,
            twins=[lambda x, y: node(AddN(), x, y, x)],
        ),
        Case(lambda x, y: node(AddN(), x), lambda x, y: x),
    ],
    "sum_to_shape_is_sum": [
        Case(
            lambda x: chain(x, SumToShape((4,))),
            lambda x: total(x, 0, 1),
            {"x": (2, 3, 4)},
            [(lambda x: chain(x, SumToShape((4,))), {"x": ((None, 4), "float64")})],
        ),
        Case(
            lambda x: chain(x, SumToShape((2, 1, 4))),
            lambda x: total(x, 1, keepdims=True),
            {"x": (2, 3, 4)},
        ),
        Case(
            lambda x: chain(x, SumToShape((1, 4))),
            lambda x: chain(total(x, 0, 1, keepdims=True), Reshape((1, 4))),
            {"x": (2, 3, 4)},
        ),
    ],
    "sum_of_broadcast": [
        Case(
            lambda x: total(broadcast_to(x, (4, 3)), 0),
            lambda x: broadcast_to(
                chain(plus_zero(chain(x, Reshape((1, 3))) * 4.0), Reshape((3,))), (3,)
            ),
            ONE,
            [
                lambda x: total(broadcast_to(x, (4, 3)), 1),
                (lambda x: total(broadcast_to(x, (70_000,)), 0), {"x": ((1,), "float16")}),
                (lambda x: total(broadcast_to(x, (4, 3)), 0), {"x": ((None,), "float64")}),
            ],
        ),
        Case(
            lambda x: total(broadcast_to(x, (4, 3)), 0, 1, keepdims=True),
            lambda x: broadcast_to(
                plus_zero(total(chain(x, Reshape((1, 3))), 1, keepdims=True) * 4.0), (1, 1)
            ),
            ONE,
        ),
        Case(
            lambda x: total(broadcast_to(x, (4, 3)), 0),
            lambda x: broadcast_to(chain(chain(x, Reshape((1, 3))) * 4, Reshape((3,))), (3,)),
            {"x": ((3,), "int64")},
        ),
        Case(lambda x: total(broadcast_to(x, (0, 3)), 0), lambda x: broadcast_to(0.0, (3,)), ONE),
    ],
    "extremum_of_broadcast": [
        Case(
            lambda x: node(ReduceMax((0,)), broadcast_to(x, (4, 3))),
            lambda x: broadcast_to(chain(x, Reshape((1, 3)), Reshape((3,))), (3,)),
            ONE,
            [lambda x: node(ReduceMax((1,)), broadcast_to(x, (4, 3)))],
        ),
        Case(
            lambda x, y: node(ReduceAny((0,)), broadcast_to(x, (4, 3))),
            lambda x, y: broadcast_to(chain(x, Reshape((1, 3)), Reshape((3,))), (3,)),
            B,
            [lambda x, y: node(ReduceAny((0,)), broadcast_to(x, (0, 3)))],
        ),
    ],
    "reduction_of_reduction": [
        Case(
            lambda x: node(ReduceAll((0,)), node(ReduceAll((1,)), x)),
            lambda x: node(ReduceAll((0, 1)), x),
            {"x": ((2, 3), "bool")},
            [
                lambda x: node(ReduceAll((0,)), node(ReduceAny((1,)), x)),
                (lambda x: node(ReduceMax((0,)), node(ReduceMax((1,)), x)), MATRIX),
            ],
        ),
        Case(
            lambda x: node(ReduceMax((1,)), node(ReduceMax((0,), True), x)),
            lambda x: chain(node(ReduceMax((0, 1), False), x), Reshape((1, 4))),
            {"x": ((2, 3, 4), "int64")},
        ),
    ],
    "sum_of_sum": [
        Case(
            lambda x: total(total(x, 1), 1),
            lambda x: total(x, 1, 2),
            {"x": (2, 3, 4)},
            [lambda x: total(gg.exp(total(x, 1)), 1)],
        ),
        Case(
            lambda x: total(total(x, 1, keepdims=True), 0, keepdims=True),
            lambda x: total(x, 0, 1, keepdims=True),
            {"x": (2, 3, 4)},
        ),
    ],
    "sum_of_scatters": [
        Case(
            embedded(2),
            lambda i, u, j, v: node(
                ScatterAdd(0),
                zeros_of_table(),
                gg.concat([chain(i % 5, Reshape((3,))), chain(j % 5, Reshape((2,)))]),
                gg.concat([chain(u, Reshape((3, 2))), chain(v, Reshape((2, 2)))]),
            ),
            SCATTERED,
            [
                embedded(1),
                (embedded(2), {**SCATTERED, "j": ((2,), "int32")}),
            ],
        )
    ],
    "sum_of_additions_at": [
        Case(
            added_at(2),
            chained_additions,
            UPDATES,
            [added_at(1)],
        ),
    ],
    # --- contractions
    "einsum_of_one": [
        Case(
            lambda x: node(Einsum("abc->ca"), x),
            lambda x: gg.transpose(total(x, 1)),
            {"x": (2, 3, 4)},
            [(lambda x, y: node(Einsum("a,a->a"), x, y), F)],
        )
    ],
    "einsum_of_many": [
        Case(
            lambda x, y, z: node(Einsum("ab,bc,cd->ad"), x, y, z),
            lambda x, y, z: node(Einsum("ab,bc->ac"), node(Einsum("ab,bc->ac"), x, y), z),
            {"x": (2, 3), "y": (3, 4), "z": (4, 5)},
            [
                (lambda x, y: node(Einsum("ab,bc->ac"), x, y), {"x": (2, 3), "y": (3, 4)}),
                (lambda x, y: node(Einsum("a,a,a->a"), x, x, y), F),
                (
                    lambda x, y, z: node(Einsum("ab,bc,cd->ad"), x, y, z),
                    {"x": ((None, 3), "float64"), "y": (3, 4), "z": (4, 5)},
                ),
            ],
        ),
        Case(
            lambda x, y, z: node(Einsum("ab,bc,dac->d"), x, y, z),
            lambda x, y, z: node(Einsum("ab,cab->c"), node(Einsum("ab,bc->ac"), x, y), z),
            {"x": (20, 30), "y": (30, 40), "z": (5, 20, 40)},
            [(lambda x, y: node(Einsum("a,a,->a"), x, x, y), {"x": (3,), "y": ()})],
        ),
    ],
    "einsum_of_two": [
        Case(
            lambda x, y: node(Einsum("ab,bc->ac"), x, y),
            lambda x, y: chain(
                node(MatMul(), _same(x, (0, 1), (2, 3)), _same(y, (0, 1), (3, 4))),
                Reshape((2, 4)),
                Transpose((0, 1)),
            ),
            {"x": (2, 3), "y": (3, 4)},
            [
                (lambda x, y: node(Einsum("ab,bc->ac"), x, y), {"x": (2, 1), "y": (3, 4)}),
                (
                    lambda x, y: node(Einsum("ab,bc->ac"), x, y),
                    {"x": ((None, 3), "float64"), "y": (3, 4)},
                ),
                (lambda x: node(Einsum("ab,bc,cd->ad"), x, x, x), {"x": (2, 2)}),
            ],
        ),
        Case(
            lambda x, y: node(Einsum("abc,abd->cd"), x, y),
            lambda x, y: chain(
                node(
                    MatMul(True, False),
                    _same(x, (0, 1, 2), (6, 4)),
                    _same(y, (0, 1, 2), (6, 5)),
                ),
                Reshape((4, 5)),
                Transpose((0, 1)),
            ),
            {"x": (2, 3, 4), "y": (2, 3, 5)},
        ),
        Case(
            lambda x, y: node(Einsum("abc,dac->adb"), x, y),
            lambda x, y: chain(
                node(
                    MatMul(),
                    _same(x, (0, 1, 2), (2, 3, 4)),
                    _same(y, (1, 2, 0), (2, 4, 5)),
                ),
                Reshape((2, 3, 5)),
                Transpose((0, 2, 1)),
            ),
            {"x": (2, 3, 4), "y": (5, 2, 4)},
        ),
    ],
    # --- stable forms
    "log_of_one_plus": [
        Case(
            lambda x, y: gg.log(1.0 + gg.exp(x)),
            lambda x, y: node(LOG1P, gg.exp(x)),
            twins=[
                lambda x, y: gg.log(2.0 + x),
                (lambda x: gg.log(1.0 + x), {"x": ((3,), "complex128")}),
                lambda x, y: gg.log(gg.constant(np.ones((2, 3))) + x),
            ],
        ),
        Case(lambda x, y: gg.log(x + 1.0), lambda x, y: plus_zero(node(LOG1P, x))),
    ],
    "log_of_one_minus": [
        Case(
            lambda x, y: gg.log(1.0 - x),
            lambda x, y: plus_zero(node(LOG1P, -x)),
            twins=[lambda x, y: gg.log(x - 1.0)],
        )
    ],
    "exp_minus_one": [
        Case(
            lambda x, y: gg.exp(x) - 1.0,
            lambda x, y: plus_zero(node(EXPM1, x)),
            twins=[
                lambda x, y: gg.exp(x) - 2.0,
                lambda x, y: gg.exp(x) + 1.0,
                (lambda x: gg.exp(x) - 1.0, {"x": ((3,), "complex128")}),
            ],
        ),
        Case(lambda x, y: gg.exp(x) + -1.0, lambda x, y: plus_zero(node(EXPM1, x))),
        Case(
            lambda x, y: 1.0 - gg.exp(x),
            lambda x, y: node(arithmetic.SUBTRACT, number(0.0, x), node(EXPM1, x)),
        ),
    ],
    "power_as_square": [
        Case(
            lambda x, y: node(powers.POWER, x, number(2.0, x)),
            lambda x, y: square(x),
            twins=[
                lambda x, y: node(powers.POWER, x, number(3.0, x)),
                lambda x, y: node(powers.POWER, x, number(0.5, x)),
                lambda x, y: node(powers.POWER, number(2.0, x), x),
            ],
        ),
        Case(
            lambda x, y: node(powers.POWER, x, number(-1.0, x)),
            lambda x, y: node(powers.RECIPROCAL, x),
            twins=[(lambda x: node(powers.POWER, x, number(-1, x)), {"x": ((3,), "int64")})],
        ),
        Case(
            lambda x, y: node(powers.POWER, gg.exp(x), number(0.5, x)),
            lambda x, y: node(SQRT, gg.exp(x)),
        ),
        Case(lambda x, y: node(powers.POWER, x, number(2, x)), lambda x, y: square(x), I),
    ],
}


def _rows(x):
    return chain(x, Reshape((1, 3)))


def _same(x, order, shape):
    return chain(x, Transpose(order), Reshape(shape))


FAST_CASES = {
    "times_zero": [
        Case(lambda x, y: x * 0.0, lambda x, y: broadcast_to(0.0, (3,)), twins=[lambda x, y: x * y])
    ],
    "plus_any_zero": [
        Case(lambda x, y: x + 0.0, lambda x, y: x, twins=[lambda x, y: x + 1.0]),
        Case(lambda x, y: x - -0.0, lambda x, y: x),
        Case(lambda x, y: 0.0 - x, lambda x, y: -x),
    ],
    "with_its_like": [
        Case(lambda x, y: x - x, lambda x, y: broadcast_to(0.0, (3,)), twins=[lambda x, y: x - y]),
        Case(lambda x, y: x / x, lambda x, y: broadcast_to(1.0, (3,))),
    ],
    "over_number": [
        Case(
            lambda x, y: x / 3.0,
            lambda x, y: x * (1 / 3.0),
            twins=[lambda x, y: x / 0.0, lambda x, y: x / 1e-320, lambda x, y: 3.0 / x],
        )
    ],
    "factors_together": [
        Case(lambda x, y: x * 3.0 * 5.0, lambda x, y: x * 15.0, twins=[lambda x, y: x * y * 5.0])
    ],
    "numbers_together": [
        Case(lambda x, y: x + 3.0 + 5.0, lambda x, y: x + 8.0, twins=[lambda x, y: x + y + 5.0]),
        Case(lambda x, y: x - 3.0 + 5.0, lambda x, y: x + 2.0),
        Case(lambda x, y: (3.0 - x) - 5.0, lambda x, y: -2.0 - x, twins=[lambda x, y: x - y]),
    ],
    "common_number": [
        Case(
            lambda x, y: x * 3.0 + y * 3.0,
            lambda x, y: (x + y) * 3.0,
            twins=[lambda x, y: x * 3.0 + y * 2.0, lambda x, y: x * 3.0 + y],
        )
    ],
    "negative_of_difference": [
        Case(lambda x, y: -(x - y), lambda x, y: y - x, twins=[lambda x, y: -(x + y)])
    ],
    "power_as_products": [
        Case(
            lambda x, y: node(powers.POWER, x, number(3.0, x)),
            lambda x, y: square(x) * x,
            twins=[lambda x, y: node(powers.POWER, x, number(5.0, x))],
        ),
        Case(lambda x, y: node(powers.POWER, x, number(4.0, x)), lambda x, y: square(square(x))),
        Case(lambda x, y: node(powers.POWER, x, number(0.5, x)), lambda x, y: gg.sqrt(x)),
        Case(
            lambda x, y: node(powers.POWER, x, number(-0.5, x)),
            lambda x, y: node(powers.RECIPROCAL, gg.sqrt(x)),
        ),
        Case(
            lambda x, y: node(powers.POWER, x, number(-2.0, x)),
            lambda x, y: node(powers.RECIPROCAL, square(x)),
        ),
    ],
    "root_of_square": [
        Case(
            lambda x, y: gg.sqrt(square(x)), lambda x, y: gg.abs(x), twins=[lambda x, y: gg.sqrt(x)]
        )
    ],
    "log_of_exp": [
        Case(
            lambda x, y: gg.log(gg.exp(x)), lambda x, y: x, twins=[lambda x, y: gg.log(gg.log(x))]
        ),
        Case(
            lambda x, y: gg.exp(gg.log(x)),
            lambda x, y: x,
            twins=[(lambda x: gg.log(gg.exp(x)), {"x": ((3,), "complex128")})],
        ),
    ],
    "log_of_one_plus_exp": [
        Case(
            lambda x, y: gg.log1p(gg.exp(x)),
            lambda x, y: nn.softplus(x),
            twins=[lambda x, y: gg.log1p(x)],
        )
    ],
    "log_of_sum_of_exp": [
        Case(
            lambda x: gg.log(total(gg.exp(x), 1)),
            lambda x: node(ReduceLogSumExp((1,), False), x),
            MATRIX,
            [lambda x: gg.log(total(x, 1))],
        )
    ],
    "log_of_softmax": [
        Case(
            lambda x: gg.log(nn.softmax(x, 0)),
            lambda x: nn.log_softmax(x, 0),
            MATRIX,
            [lambda x: gg.log(gg.exp(nn.softmax(x, 0)))],
        )
    ],
    "exp_over_sum": [
        Case(
            lambda x: (e := gg.exp(x)) / total(e, 1, keepdims=True),
            lambda x: nn.softmax(x, 1),
            MATRIX,
            [
                lambda x: (e := gg.exp(x)) / total(e, 0, 1, keepdims=True),
                lambda x: x / total(x, 1, keepdims=True),
            ],
        ),
    ],
    "one_over_one_plus_exp": [
        Case(
            lambda x, y: 1.0 / (1.0 + gg.exp(-x)),
            lambda x, y: nn.sigmoid(x),
            twins=[lambda x, y: 1.0 / (2.0 + gg.exp(-x)), lambda x, y: 2.0 / (1.0 + gg.exp(-x))],
        ),
        Case(lambda x, y: node(powers.RECIPROCAL, gg.exp(x) + 1.0), lambda x, y: nn.sigmoid(-x)),
    ],
    "exp_times_quotient": [
        Case(
            lambda x, y: (e := gg.exp(x)) * (y / (1.0 + e)),
            lambda x, y: y * nn.sigmoid(x),
            twins=[
                lambda x, y: gg.exp(x) * (y / (2.0 + gg.exp(x))),
                lambda x, y: gg.exp(x) * (y / (1.0 + gg.exp(y))),
                lambda x, y: gg.exp(x) * nn.sigmoid(-y),
            ],
        ),
        Case(lambda x, y: gg.exp(x) * nn.sigmoid(-x), lambda x, y: nn.sigmoid(x)),
        Case(lambda x, y: nn.sigmoid(x) * gg.exp(-x), lambda x, y: nn.sigmoid(-x)),
        Case(
            lambda x, y: (e := gg.exp(x)) * (y / total(e, 1, keepdims=True)),
            lambda x, y: y * nn.softmax(x, 1),
            {"x": (2, 3), "y": (2, 1)},
            [lambda x, y: gg.exp(x) * (y / total(gg.exp(y), 1, keepdims=True))],
        ),
        Case(
            lambda x, y: node(ExpandDims((0,)), y / total(e := gg.exp(x), 0)) * e,
            lambda x, y: node(ExpandDims((0,)), y) * nn.softmax(x, 0),
            {"x": (2, 3), "y": (3,)},
            [lambda x, y: node(ExpandDims((0,)), y / total(gg.exp(x)[:, ::-1], 0)) * gg.exp(x)],
        ),
    ],
    "times_divisor": [
        Case(lambda x, y: (x / y) * y, lambda x, y: x, twins=[lambda x, y: (x / y) * x]),
        Case(
            lambda x, y: y * (x / y - 3.0),
            lambda x, y: x - 3.0 * y,
            twins=[lambda x, y: y * (y / x - 3.0), lambda x, y: y * (3.0 - x / y)],
        ),
    ],
    "softmax_of_shifted": [
        Case(
            lambda x, y: nn.softmax(x - y, 1),
            lambda x, y: nn.softmax(x, 1),
            {"x": (2, 3), "y": (2, 1)},
            [lambda x, y: nn.softmax(x - y, 0), lambda x, y: nn.softmax(y - x, 1)],
        ),
        Case(
            lambda x, y: nn.log_softmax(y + x, 0),
            lambda x, y: nn.log_softmax(x, 0),
            {"x": (2, 3), "y": (3,)},
        ),
    ],
    "slope_of_value": [
        Case(
            lambda x, y: node(TanhSlope(), x),
            lambda x, y: one_less_square(gg.tanh(x)),
            twins=[lambda x, y: gg.tanh(x)],
        ),
        Case(
            lambda x, y: node(SigmoidSlope(), x),
            lambda x, y: times_rest(gg.nn.sigmoid(x)),
            twins=[lambda x, y: gg.nn.sigmoid(x)],
        ),
    ],
    "number_out_of_sum": [
        Case(
            lambda x: total(x * 3.0, 1),
            lambda x: total(x, 1) * 3.0,
            MATRIX,
            [lambda x: total(x * x, 1)],
        ),
        Case(lambda x: gg.mean(x * 3.0), lambda x: gg.mean(x) * 3.0, MATRIX),
    ],
    "sum_of_negative": [
        Case(lambda x: total(-x, 1), lambda x: -total(x, 1), MATRIX, [lambda x: total(x, 1)])
    ],
    "mean_of_broadcast": [
        Case(
            lambda x: node(ReduceMean((0, 1)), broadcast_to(x, (4, 3))),
            lambda x: broadcast_to(
                chain(x, Reshape((1, 3)), ReduceMean((1,), True), Reshape(())), ()
            ),
            ONE,
            [lambda x: node(ReduceMean((0,)), broadcast_to(x, (0, 3)))],
        )
    ],
    "extremum_of_extremum": [
        Case(
            lambda x: node(ReduceMax((0,)), node(ReduceMax((1,)), x)),
            lambda x: node(ReduceMax((0, 1)), x),
            MATRIX,
            [lambda x: gg.max(gg.min(x, 1), 0)],
        )
    ],
}

ALL = {r.name: r for r in (*RULES, *FASTER)}
EXAMPLES = {**CASES, **FAST_CASES}
TIDY = rewrite(*(ALL[n] for n in ("reshape_to_the_same", "to_own_shape", "transpose_to_the_same")))
CHECKS = {EXACT: check_bits, ROUNDING: check_rounding, FAST: check_close}


LISTED = [(f"{name}-{i}", name, c) for name, cases in EXAMPLES.items() for i, c in enumerate(cases)]
TWINS = [(f"{at}-{j}", name, c, twin) for at, name, c in LISTED for j, twin in enumerate(c.twins)]


def test_every_rule_has_an_example_and_a_twin():
    assert list(EXAMPLES) == list(ALL)
    assert all(any(case.twins for case in cases) for cases in EXAMPLES.values())


def test_every_rule_says_its_algebra_and_names_what_there_is():
    for rule in ALL.values():
        assert "->" in rule.__doc__, rule
        assert rule.level in LEVELS
        assert set(rule.ops) <= set(op_types().values()), rule
        assert rule.over is None or any(map(rule.over, op_types().values())), rule
        assert rule.ops or rule.fits


@each(LISTED)
def test_before_becomes_after(name, case):
    before, after = (program(f, **case.inputs) for f in (case.before, case.after))
    found = verified(rewrite(ALL[name])(before))
    assert found is not before
    assert text(TIDY(found)) == text(TIDY(after))
    CHECKS[ALL[name].level](before, found, np.random.default_rng(0))


@each(TWINS)
def test_the_twin_stays(name, case, twin):
    build, inputs = twin if isinstance(twin, tuple) else (twin, case.inputs)
    before = program(build, **inputs)
    assert rewrite(ALL[name])(before) is before


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: gg.log(1 + gg.exp(x)),
        lambda x: gg.log(gg.sum(gg.exp(x), axis=-1)),
        lambda x: gg.log(gg.sum(gg.exp(x), axis=-1, keepdims=True)),
        lambda x: gg.log(nn.softmax(x))[:, 0],
        lambda x: 1 / (1 + gg.exp(-x)),
    ],
)
def test_gradients_of_what_no_longer_overflows_are_numbers_too(fn):
    with gg.Graph():
        x = gg.placeholder((3, 4))
        y = fn(x)
        f = gg.compile(x, [y, gg.gradients(gg.sum(y * y), x)], fast_math=True)
    large = np.array([[0.0, 900, 0, 0], [800, 800, -800, 1], [-900, 0, 3, 2]])
    assert all(np.isfinite(found).all() for found in f(large))


@pytest.mark.parametrize(
    ("fn", "shapes"),
    [
        (lambda x, y: gg.exp(x) * gg.expand_dims(y / total(gg.exp(x), 1), 1), [(3, 3), (3, 3)]),
        (lambda x, y: gg.exp(x) * gg.expand_dims(y / total(gg.exp(x), 1), 1), [(3, 3), (3, 1)]),
        (lambda x, y: gg.exp(x) * gg.expand_dims(y / total(gg.exp(x), 1), 1), [(3, 3), ()]),
        (lambda x, y: gg.exp(x) * gg.expand_dims(y / total(gg.exp(x), 1), 1), [(4, 5, 5), (5,)]),
        (lambda x, y: gg.exp(x) * (y / total(gg.exp(x), 1, keepdims=True)), [(3, 3), (4, 3, 3)]),
        (lambda x, y: gg.exp(x) * (y / (1 + gg.exp(x))), [(3,), (2, 3)]),
        (lambda x, y: (x / y) * y, [(3,), (2, 3)]),
        (lambda x, y: (x / y) * y, [(2, 3), ()]),
        (lambda x, y: y * (x / y - 1.0), [(3,), (2, 1)]),
        (lambda x, y: nn.softmax(x - y, 1), [(3,), (4, 1)]),
        (lambda x, y: nn.softmax(x + y, 1), [(4,), (3, 1)]),
        (lambda x, y: nn.log_softmax(x - y, 0), [(4, 1), (3,)]),
        (lambda x, y: nn.softmax(x - y, 1), [(2, 1, 3), (2, 4, 1)]),
    ],
)
def test_fast_rules_on_operands_that_broadcast(fn, shapes):
    with gg.Graph():
        x, y = (gg.placeholder(s) for s in shapes)
        z = fn(x, y)
        f, plain = (gg.compile([x, y], z, fast_math=fast) for fast in (True, False))
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) + 3 for s in shapes]
    np.testing.assert_allclose(f(*arrays), plain(*arrays), rtol=1e-12)
