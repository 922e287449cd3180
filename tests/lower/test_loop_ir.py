"""What fusion says of loops: axes and rows; groups without names and places."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.program import Program
from graphgrad.lower.fusion import fusions
from graphgrad.lower.loop_ir import Loop, Space, group_of_one
from graphgrad.optimise.pipeline import optimise

FREE = ("Constant", "Full", "ExpandDims", "Squeeze", "BroadcastTo", "Reshape")


def _loop_of(node):
    """Element-wise nodes, and reductions whose rows may be read again."""
    shape = node.inputs[0].shape if node.type.startswith("Reduce") else node.outputs[0].shape
    if node.type.startswith("Reduce"):
        return Loop(shape, shape, node.op.axes, ends=True)
    return Loop(tuple(d for d in shape if d != 1), shape) if node.op.elementwise else None


def _spaces(fn, *shapes, parts=None, loop_of=_loop_of):
    with gg.Graph():
        xs = [gg.placeholder(s) for s in shapes]
        program, _ = optimise(Program(xs, fn(*xs)))
    free = [n for n in program.nodes if n.type in FREE]
    return [f.space for f in fusions(program, loop_of, free, parts)]


def _shares(x):
    e = gg.exp(x)
    return [e / gg.sum(e, 1, True)]


def test_a_row_is_what_is_read_again_for_its_elements():
    assert _spaces(_shares, (4, 5)) == [Space((4, 5), (1,))]
    assert _spaces(lambda x: [gg.exp(x) / gg.sum(gg.exp(x))], (5,)) == [Space((5,), (0,))]


def test_so_it_is_by_way_of_numbers_that_rows_have():
    def roots(x):
        return [gg.exp(x) * gg.expand_dims(gg.sqrt(gg.sum(gg.exp(x), 1)), 1)]

    assert _spaces(roots, (4, 5)) == [Space((4, 5), (1,))]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: [gg.exp(x), gg.sum(gg.exp(x), 1)],
        lambda x: [gg.sqrt(gg.sum(gg.exp(x), 1))],
        lambda x: [gg.sum(gg.sqrt(gg.sum(gg.exp(x), 1)))],
        lambda x: [gg.exp(x) * 2.0],
    ],
)
def test_what_nobody_reads_again_needs_no_row(fn):
    assert _spaces(fn, (4, 5)) == [Space((4, 5))]


def test_a_row_that_others_reduced_is_not_gone_through_again():
    """In the other part of a group what rows have is read from memory."""
    first, second = _spaces(_shares, (4, 5), parts=(2, 34))
    assert {first, second} == {Space((4, 5))}


def test_what_is_left_of_the_rows_alone_runs_over_these():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        s = gg.sum(gg.exp(x), axis=1)
        program = Program([x], [gg.sin(gg.sqrt(s)), gg.tanh(x)])
    found = [f.space for f in fusions(program, _loop_of, (), (32, 34))]
    assert found == [Space((4, 5)), Space((4, 5)), Space((4,))]


def test_a_node_is_asked_once_how_it_would_run():
    asked = Counter()

    def loop_of(node):
        asked[node] += 1
        return _loop_of(node)

    _spaces(
        lambda x, y: [gg.tanh(x + y), *_shares(x)], (4, 5), (4, 5), parts=(2, 1), loop_of=loop_of
    )
    assert set(asked.values()) == {1}


def _group(op, *inputs, constant=None):
    with gg.Graph():
        xs = [gg.placeholder((3,)) for _ in range(inputs[0])]
        y = op(*xs) if constant is None else gg.constant(constant)
    return group_of_one(y.node, (3,))


def test_groups_that_compute_the_same_are_equal():
    assert _group(gg.add, 2) == _group(gg.add, 2) != _group(gg.multiply, 2)
    assert _group(lambda x: x + x, 1) != _group(gg.add, 2)


@pytest.mark.parametrize(("a", "b"), [(0.0, -0.0), (1.0, 2.0), (np.float32(1), np.float64(1))])
def test_numbers_that_differ_in_a_bit_or_in_type_make_other_groups(a, b):
    one, other, again = (_group(None, 0, constant=np.asarray(c)) for c in (a, b, a))
    assert one == again != other


def test_equal_nans_make_equal_groups():
    one, other = (_group(None, 0, constant=float("nan")) for _ in range(2))
    assert one == other
