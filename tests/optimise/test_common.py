"""Common subexpressions: what is the same, and what only looks so."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.op import Op
from graphgrad.ir.types import tensor_type
from graphgrad.ops.base import apply as node
from graphgrad.ops.shape.reshaping import ExpandDims, Reshape

from .helpers import eliminate_common_subexpressions, program, types, verified


class NoiseForTest(Op):
    """A new number each time."""

    pure = False

    def infer(self):
        return (tensor_type((), "float64"),)

    def kernel(self, xp):
        return xp.asarray(0.5)


def merged(build, **inputs):
    """How many nodes two results take together."""
    return len(verified(eliminate_common_subexpressions(program(build, **inputs))).nodes)


def test_equal_nodes_merge():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        y = gg.exp(x * 2.0) + gg.exp(x * 2.0)
    after = verified(eliminate_common_subexpressions(gg.Program([x], [y])))
    assert types(after) == ["Constant", "Multiply", "Exp", "Add"]


def test_nothing_to_do_is_the_same_object():
    p = program(lambda x: gg.exp(x) * 3.0, x=(2,))
    assert eliminate_common_subexpressions(p) is p


def test_equal_nodes_merge_through_chains_of_equal_nodes():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        a = b = x
        for _ in range(100):
            a, b = gg.exp(a), gg.exp(b)
    assert len(eliminate_common_subexpressions(gg.Program([x], [a, b])).nodes) == 100


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1.0, 1.0, True),
        (np.nan, np.nan, True),
        (0.0, -0.0, False),
        (1.0, 1, False),
        (1.0, np.float32(1), False),
        (np.ones(2), np.ones(1), False),
        (np.ones((2, 1)), np.ones((1, 2)), False),
        (np.arange(100.0), np.arange(100.0), True),
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)), True),
    ],
)
def test_constants_merge_by_their_bytes(a, b, same):
    with gg.Graph():
        p = gg.Program([], [gg.constant(a), gg.constant(b)])
    assert (len(eliminate_common_subexpressions(p).nodes) == 1) is same


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("at", [None, 0, 12_345])
def test_large_constants_merge_by_all_their_bytes(at, turned):
    a = np.zeros((200, 300))
    b = np.asfortranarray(a) if turned else a.copy()
    if at is not None:
        b[divmod(at, 300)] = -0.0
    with gg.Graph():
        p = gg.Program([], [gg.constant(a), gg.constant(b)])
    assert (len(eliminate_common_subexpressions(p).nodes) == 1) is (at is None)


def test_impure_nodes_never_merge():
    with gg.Graph():
        p = gg.Program([], [node(NoiseForTest()), node(NoiseForTest())])
    assert eliminate_common_subexpressions(p) is p


F = {"x": (3,), "y": (3,)}
C = {"x": ((3,), "complex128"), "y": ((3,), "complex128")}
B = {"x": ((3,), "bool"), "y": ((3,), "bool")}


def test_operands_in_another_order_are_the_same():
    assert merged(lambda x, y: (x + y, y + x), **F) == 1
    assert merged(lambda x, y: (x * y, y * x), **F) == 1
    assert merged(lambda x, y: (x == y, y == x), **F) == 1
    assert merged(lambda x, y: (x & y, y & x), **B) == 1


def test_comparisons_turned_round_are_the_same():
    assert merged(lambda x, y: (x > y, y < x), **F) == 1
    assert merged(lambda x, y: (x <= y, y >= x), **F) == 1
    assert merged(lambda x, y: (x > y, x < y), **F) == 2
    assert merged(lambda x, y: (x > y, y <= x), **F) == 2


def test_operands_in_another_order_are_not_always_the_same():
    assert merged(lambda x, y: (x - y, y - x), **F) == 2
    assert merged(lambda x, y: (gg.maximum(x, y), gg.maximum(y, x)), **F) == 2  # 0.0 or -0.0
    assert merged(lambda x, y: (x * y, y * x), **C) == 2


def test_all_ways_to_write_a_reshape_are_one():
    spellings = (ExpandDims((1,)), Reshape((3, 1)))
    assert merged(lambda x: [node(op, x) for op in spellings], x=(3,)) == 1
    assert merged(lambda x: [node(op, x) for op in spellings], x=((None,), "float64")) == 2


def test_a_squeeze_to_which_a_run_gives_no_axis_of_length_1_fails_beside_a_reshape():
    """(5, 0) can be reshaped to (0,), and not squeezed."""
    m = gg.placeholder((5,), "bool", name="m")
    x = gg.compress(m, np.ones((5, 0)), 0)
    f = gg.compile(m, [gg.reshape(x, (0,)), gg.squeeze(x, 0)], backend="numpy")
    assert [y.shape for y in f([True, False, False, False, False])] == [(0,), (0,)]
    with pytest.raises(ValueError, match="squeeze"):
        f(np.ones(5, bool))


def test_what_waits_for_others_merges_only_with_what_waits_for_the_same():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        first, a, b, c = gg.exp(x), gg.sin(x), gg.sin(x), gg.sin(x)
        for t in (a, b):
            t.node.controls = (first.node,)
    after = verified(eliminate_common_subexpressions(gg.Program([x], [a, b, c])))
    assert types(after) == ["Exp", "Sin", "Sin"]
    assert after.outputs[0] is after.outputs[1]
