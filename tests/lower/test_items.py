"""Groups as items, and what a dialect makes of them."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import extend
from graphgrad.ir.program import Program
from graphgrad.lower.items import Dialect, Output, Read, Reduced, lower
from graphgrad.lower.loop_ir import Fused, Space, group_of_fused
from graphgrad.ops.shape.reshaping import SumToShape
from graphgrad.ops.special.error import Erf

OF_NUMBERS = Dialect({Erf: "erf"}, casts=True, scalar=True)


def lowered(fn, *shapes, dialect=OF_NUMBERS, dtype="float32"):
    """A function of tensors as one group over the shape of the first."""
    with gg.Graph():
        xs = [gg.placeholder(s, dtype) for s in shapes]
        group = group_of_fused(Fused(Program(xs, [fn(*xs)]), Space(shapes[0])))
    return lower(group, dialect)


def names(*args, **options):
    return [item.name for item in lowered(*args, **options).items]


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 3), (1, 2, 3, 1)])
def test_lengths_of_one_do_not_matter(shape):
    assert lowered(gg.exp, shape) == lowered(gg.exp, (2, 3))


def test_what_varies_along_which_axes():
    made = lowered(lambda x, b: gg.exp(x + b), (2, 3), (3,))
    assert made.lengths == (2, 3)
    assert [item.name for item in made.items] == ["load", "load", "add", "exp"]
    assert [item.data for item in made.items[:2]] == [
        Read(0, ((0, 3), (1, 1)), 0),
        Read(1, ((1, 1),), 0),
    ]
    assert made.outputs == (Output(3, (0, 1)),)


def test_equal_items_are_one():
    assert names(lambda x: gg.exp(x) * gg.exp(x) + 2.0 * gg.exp(x) + 2.0, (3,)) == [
        *("load", "exp", "multiply", "number", "multiply", "add", "add")
    ]


def test_views_are_looked_through():
    def spread(x, b):
        return (
            (x + b) * gg.broadcast_to(b, (2, 3)) * gg.broadcast_to(gg.constant(2.0, x.dtype), (3,))
        )

    def centred(x):
        return gg.squeeze(gg.expand_dims(x - gg.broadcast_to(gg.mean(x, 1, True), (2, 3)), 1), 1)

    made = lowered(spread, (2, 3), (3,))
    assert [item.name for item in made.items] == [
        *("load", "load", "add", "multiply", "number", "multiply")
    ]
    assert made.outputs == (Output(5, (0, 1)),)
    made = lowered(centred, (2, 3))
    assert [item.name for item in made.items] == [*("load", "sum", "number", "divide", "subtract")]
    assert made.outputs == (Output(4, (0, 1)),)


def test_a_ufunc_is_there_as_it_is():
    assert lowered(gg.exp, (3,)).items[1].fn is np.exp


def test_a_mean_is_a_sum_that_is_divided_where_a_dialect_is_of_numbers():
    def mean(x):
        return gg.mean(x, axis=0)

    *_, whole = lowered(mean, (2, 3), dialect=Dialect()).items
    assert (whole.fn, whole.data, whole.reduces) == ("mean", Reduced((0,), (1,)), True)
    _, total, count, divided = lowered(mean, (2, 3)).items
    assert (total.fn, total.data, total.reduces) == ("sum", Reduced((0,), (1,)), True)
    assert (count.data.value, divided.fn, divided.args) == (2.0, np.divide, (1, 2))


def test_the_sum_of_one_number_starts_from_zero():
    def total(x):
        return gg.sum(x, axis=0)

    _, zero, added = lowered(total, (1, 3)).items
    assert (zero.data.value, added.fn) == (0.0, np.add)
    assert names(total, (1, 3), dialect=Dialect()) == ["load", "sum"]
    assert names(total, (1, 3), dtype="int64") == ["load"]
    assert names(lambda x: gg.max(x, axis=0), (1, 3)) == ["load"]
    assert names(lambda x: gg.sum(x, axis=()), (3,)) == ["load", "number", "add"]
    assert names(lambda x: extend.apply(SumToShape((3,)), x), (3,)) == ["load"]  # a view
    assert names(lambda x: extend.apply(SumToShape((3,)), x), (1, 3)) == ["load", "number", "add"]


def test_whether_any_number_is_not_zero_is_a_bool():
    def some(x):
        return gg.any(x, axis=0)

    assert [str(i.dtype) for i in lowered(some, (2, 3)).items] == ["float32", "bool"]
    assert names(some, (2, 3)) == ["load", "any"]
    assert names(some, (1, 3)) == ["load", "cast"]


def test_operands_are_cast_to_one_dtype_where_a_dialect_says_so():
    class Scaled(gg.Op):
        """x of integers by a number that is none."""

        elementwise = True

        def infer(self, x):
            return (extend.tensor_type(x.shape, "float64"),)

        def kernel(self, xp, x):
            return xp.multiply(x, np.float64(0.5))

    def scaled(x):
        return extend.apply(Scaled(), x)

    assert names(scaled, (3,), dtype="int32") == ["load", "number", "cast", "multiply"]
    assert names(scaled, (3,), dtype="int32", dialect=Dialect()) == ["load", "number", "multiply"]
    assert "cast" not in names(lambda x: gg.where(x > 0, x, 0.0), (3,))


def test_an_op_that_is_one_function_of_a_dialect():
    made = lowered(gg.special.erf, (3,))
    assert [item.fn for item in made.items] == ["load", "erf"]
    assert made.outputs == (Output(1, (0,)),)
