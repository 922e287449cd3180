"""Loops with rows: what a group may read again, and what it may not."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.program import Program
from graphgrad.ir.verify import verify_program
from graphgrad.lower.fused import fuse_loops
from graphgrad.lower.loop_ir import Fused, Loop
from graphgrad.optimise.pipeline import optimise

from .fusing import same_values

FREE = ("Constant", "Full", "ExpandDims", "Squeeze", "BroadcastTo", "Reshape", "Slice")


def _loop_of(node):
    """Element-wise nodes, and sums and means; lengths of 1 do not count."""
    op = node.op
    if op.elementwise:
        shape = node.outputs[0].shape
        return Loop(tuple(d for d in shape if d != 1), shape)
    if node.type not in ("ReduceSum", "ReduceMean", "ReduceMax"):
        return None
    frame = node.inputs[0].shape
    kept = [a for a, d in enumerate(frame) if d != 1]
    gone = [i for i, a in enumerate(kept) if a in op.axes]
    shape = tuple(frame[a] for a in kept)
    if gone == list(range(len(shape) - len(gone), len(shape))):
        return Loop(shape, frame, tuple(gone), ends=True)
    if gone[0] == 0:
        return Loop(shape, frame, ends=True)
    return Loop(shape, frame, tuple(gone))


def _fused(inputs, outputs):
    return _groups(optimise(Program(inputs, outputs))[0])


def _groups(plain, **options):
    fused = fuse_loops(plain, _loop_of, lambda n: n.type in FREE, **options)
    verify_program(fused)
    same_values(plain, fused)
    return [
        [n.type for n in f.op.program.nodes if n.type not in FREE]
        for f in fused.nodes
        if type(f.op) is Fused
    ]


def test_a_row_is_read_again():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        e = gg.exp(x - gg.max(x, 1, True))
        groups = _fused([x], [e / gg.sum(e, 1, True)])
    assert groups == [["ReduceMax", "Subtract", "Exp", "ReduceSum", "Divide"]]


def test_a_column_is_not():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        e = gg.exp(x - gg.max(x, 0, True))
        groups = _fused([x], [e / gg.sum(e, 0, True)])
    assert groups == [["Subtract", "Exp", "ReduceSum"]]


def test_rows_may_lie_in_the_middle():
    with gg.Graph():
        x = gg.placeholder((4, 5, 6))
        e = gg.exp(x - gg.max(x, 1, True))
        total = gg.sum(e, 1)
        groups = _fused([x], [e / gg.expand_dims(total, 1), gg.sqrt(total), gg.sum(gg.sqrt(total))])
    assert groups == [["ReduceMax", "Subtract", "Exp", "ReduceSum", "Divide", "Sqrt", "ReduceSum"]]


def test_rows_over_several_axes_apart():
    with gg.Graph():
        x, b = gg.placeholder((4, 5, 6, 7)), gg.placeholder((4, 6))
        total = gg.sum(gg.exp(x), (1, 3)) * b
        groups = _fused([x, b], [x * gg.expand_dims(total, (1, 3))])
    assert groups == [["Exp", "ReduceSum", "Multiply", "Multiply"]]


def test_rows_of_another_kind_are_a_loop_of_their_own():
    with gg.Graph():
        x = gg.placeholder((4, 5, 6))
        y = gg.exp(x)
        last = y / gg.sum(y, 2, True) - gg.max(y, 2, True)
        middle = gg.sqrt(gg.sum(y, 1)) + 1.0
        groups = _fused([x], [last, middle])
    assert groups == [
        ["ReduceSum", "Divide", "ReduceMax", "Subtract"],
        ["ReduceSum", "Sqrt", "Add"],
    ]


def test_what_may_end_over_any_rows_ends_beside_those_of_another_kind():
    with gg.Graph():
        x = gg.placeholder((4, 5, 6))
        y = gg.exp(x)
        (group,) = _fused([x], [y / gg.sum(y, 1, True) - gg.sum(y * y, 1, True), gg.max(y, 2)])
    assert "ReduceMax" in group


def test_numbers_of_rows_are_computed_among_the_rows():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        scale = 1.0 / gg.sqrt(gg.mean(x * x, 1) + 1.0)
        groups = _fused([x], [x * gg.expand_dims(scale, 1), scale, gg.sum(scale)])
    assert len(groups) == 1
    assert "Sqrt" in groups[0]
    assert groups[0].count("ReduceSum") == 1


def test_equal_lengths_do_not_confuse_rows_and_columns():
    with gg.Graph():
        x = gg.placeholder((4, 4))
        row = gg.sum(x * 2.0, 1)  # read as a row of columns below
        groups = _fused([x], [x + row])
    assert groups == [["Multiply", "ReduceSum"]]


def test_what_leaves_little_is_computed_with_what_it_reads():
    with gg.Graph():
        x, w = gg.placeholder((4, 4)), gg.placeholder((4, 4))
        y = gg.tanh(x @ w)
        loss = gg.sum(y * y)
        groups = _fused([x, w], [loss, y @ w])
    assert groups == [["Tanh", "Multiply", "ReduceSum"]] or groups == [
        ["Tanh", "Square", "ReduceSum"]
    ]


def test_a_view_reads_nothing_by_itself():
    with gg.Graph():
        x, w = gg.placeholder((4, 4)), gg.placeholder((4, 4))
        y = gg.tanh(x @ w)
        groups = _fused([x, w], [gg.sum(gg.expand_dims(gg.sin(y), 0)), y @ w])
    assert groups == [["Tanh", "Sin", "ReduceSum"]]


def test_a_gradient_is_computed_where_the_values_are_that_it_reads():
    """Although the loss is scaled after its sum, which comes later than both."""
    with gg.Graph():
        x = gg.placeholder((64, 3))
        loss = gg.sum(gg.exp(x) * gg.sin(x), 0) * 2.0
        first, *rest = _fused([x], [loss, gg.gradients(loss, x)])
    assert {"Exp", "Sin", "Cos", "ReduceSum"} <= set(first)
    assert rest == [["Multiply"]]


def test_a_total_is_computed_where_its_elements_are_although_nothing_waits_for_it():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        e = gg.exp(x)
        first, *_ = _fused([x], [e / gg.sum(e, 0), gg.max(e, 0)])
    assert first == ["Exp", "ReduceSum", "ReduceMax"]


def test_what_leaves_more_than_is_kept_for_it_is_computed_later():
    with gg.Graph():
        x = gg.placeholder((64, 3))
        e = gg.exp(x)
        groups = _fused([x], [gg.sum(e, 0) * 2.0, gg.sin(e), gg.cos(e)])
    assert ["Exp", "ReduceSum"] in groups
    assert ["Sin", "Cos"] in groups


def test_views_are_looked_through():
    with gg.Graph():
        x = gg.placeholder((4, 6))
        y = gg.tanh(gg.reshape(gg.exp(x), (4, 1, 6))) + x[:, None, :]
        groups = _fused([x], [y])
    assert groups == [["Exp", "Tanh", "Add"]]


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_keep_their_values(seed):
    rng = np.random.default_rng(seed)
    n, m = [(4, 4), (3, 5), (1, 4), (4, 1)][rng.integers(4)]
    with gg.Graph():
        xs = [gg.placeholder((n, m)) for _ in range(3)]
        made = list(xs)
        for _ in range(40):
            a, b = (made[rng.integers(len(made))] for _ in range(2))
            made.append(
                [
                    lambda a, b: a + gg.tanh(b),
                    lambda a, b: a - gg.sum(b, axis=0),
                    lambda a, b: a * gg.mean(b, axis=1, keepdims=True),
                    lambda a, b: gg.tanh(a) + gg.expand_dims(gg.tanh(gg.max(b, axis=1)), 1),
                    lambda a, b: gg.tanh(a - gg.mean(b)),
                    lambda a, b: gg.reshape(gg.reshape(a, (n * m,)) * 0.5, (n, m)) - b,
                    lambda a, b: gg.tanh(a @ gg.transpose(b) @ a),
                ][rng.integers(7)](a, b)
            )
        total = gg.sum(gg.tanh(made[-1]))
        _fused(xs, [made[-1], total, made[20], *gg.gradients(total, xs, unconnected="zero")])


def test_what_waits_for_another_node_is_not_computed_before_it():
    with gg.Graph():
        x = gg.placeholder((64, 64), "float32")
        a = gg.exp(x)
        s = a @ a
        late = gg.constant(np.full((64, 64), 2, "float32"))
        late.node.controls = (s.node,)
        groups = _fused([x], [gg.sum(gg.tanh(a) * late), s @ s])
    assert not any({"Exp", "Multiply"} <= set(g) for g in groups)


def test_a_node_may_wait_for_a_view_of_which_a_later_loop_has_a_copy():
    with gg.Graph():
        x = gg.placeholder((4, 4))
        view = gg.expand_dims(gg.exp(x), 0)
        product = x @ x
        product.node.controls = (view.node,)
        plain = Program([x], [gg.sin(view), product, gg.cos(view) * product])
    assert _groups(plain) == [["Sin", "Cos", "Multiply"]]


def test_a_chain_is_one_loop_beside_rows_too():
    """Rows elsewhere do not make a row of what has one number an element."""
    with gg.Graph():
        x, y = gg.placeholder((4, 5)), gg.placeholder((7,))
        groups = _fused([x, y], [x / gg.sum(x, 1, True), gg.sqrt(gg.exp(y))])
    assert sorted(groups) == [["Exp", "Sqrt"], ["ReduceSum", "Divide"]]


def test_readers_of_other_pieces_of_one_tensor_are_loops_of_their_own():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        groups = _fused([x], [gg.sqrt(gg.exp(x[:1])), gg.cos(gg.sin(x[1:]))])
    assert sorted(groups) == [["Exp", "Sqrt"], ["Sin", "Cos"]]


def test_a_view_that_was_not_in_order_is_looked_through_no_more():
    """Although it is of one number for each row again, as a loop would have it."""
    with gg.Graph():
        x = gg.placeholder((4, 5))
        e = gg.exp(x)
        wide = gg.broadcast_to(gg.max(e, 1, True), (4, 5))
        y = e / gg.expand_dims(wide[:, 0], 1)
        plain = Program([x], [y, e])
    assert _groups(plain) == [["Exp", "ReduceMax"], ["Divide"]]


def test_what_is_given_is_no_view_of_what_it_was_made_from():
    """A node of the program may make it too."""
    with gg.Graph():
        x = gg.placeholder((2, 3))
        y = gg.reshape(gg.exp(x), (2, 1, 3))
        z = gg.sin(y)
        plain = Program([x, y], [y.node.inputs[0], z], [y.node.inputs[0].node, y.node, z.node])
    assert _groups(plain) == []


def _rows(x):
    """Numbers of rows, by hand: nothing is simplified."""
    return gg.sum(gg.exp(x), 1)


def test_parts_of_a_long_group_keep_rows_with_the_elements_that_read_them():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        plain = Program([x], [x / gg.expand_dims(gg.sqrt(_rows(x)), 1)])
    whole = ["Exp", "ReduceSum", "Sqrt", "Divide"]
    assert _groups(plain) == [whole]
    assert _groups(plain, parts=(36, 33)) == [whole]
    assert _groups(plain, parts=(35, 33)) == [["ReduceSum", "Sqrt", "Divide"]]
    assert _groups(plain, parts=(35, 34)) == [["Exp", "ReduceSum"], ["Sqrt", "Divide"]]


def test_rows_that_another_part_has_make_no_row_of_this_one():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        plain = Program([x], [x / gg.expand_dims(gg.sqrt(_rows(x)), 1)])
    parted = fuse_loops(plain, _loop_of, lambda n: n.type in FREE, parts=(35, 34))
    spaces = [n.op.space for n in parted.nodes if type(n.op) is Fused]
    assert spaces == [((4, 5), ()), ((4, 5), ())]


def test_a_loop_has_its_row_whatever_comes_after_what_reads_that_again():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        plain = Program([x], [x / gg.expand_dims(gg.sqrt(_rows(x)), 1), gg.sin(x)])
    (whole,) = fuse_loops(plain, _loop_of, lambda n: n.type in FREE).nodes
    assert whole.op.space == ((4, 5), (1,))


def test_what_reads_the_same_rows_of_another_part_is_no_loop_for_that():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        s = _rows(x)
        plain = Program([x], [gg.sqrt(s), x / gg.expand_dims(s, 1)])
    assert _groups(plain, parts=(35, 34)) == [["Exp", "ReduceSum"], ["Divide"]]
