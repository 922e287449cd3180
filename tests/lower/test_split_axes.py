"""Element-wise nodes and sums in front of a reshape that joins axes: the same values, one loop."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.program import Program
from graphgrad.ir.verify import verify_program
from graphgrad.lower.loop_ir import Fused
from graphgrad.lower.split_axes import DEPTH, LONG, split_axes

from .fusing import same_values

APART, WHOLE = (2, 3, 2, 5, 2, LONG), (2, 6, 10, LONG)


def _split(inputs, outputs) -> list[tuple[str, tuple[int, ...]]]:
    """The ops and shapes of the program, split, in order; its values are those of the program."""
    plain = Program(inputs, outputs)
    split = split_axes(plain)
    verify_program(split)
    same_values(plain, split)
    return [(n.type, n.outputs[0].shape) for n in split.nodes]


def _same(inputs, outputs) -> bool:
    plain = Program(inputs, outputs)
    return split_axes(plain) is plain


def _spread(of=APART, to=WHOLE):
    """What has the places of windows as axes, and it as an image."""
    small = tuple([1 if i in (2, 4) else d for i, d in enumerate(of)])
    a, b = gg.placeholder(of), gg.placeholder(small)
    return [a, b], gg.reshape(a * b, to)


def test_an_operand_is_split_and_the_result_joined():
    with gg.Graph():
        inputs, t = _spread()
        z = gg.placeholder(WHOLE)
        nodes = _split([*inputs, z], [t + z])
    assert nodes == [("Multiply", APART), ("Reshape", APART), ("Add", APART), ("Reshape", WHOLE)]


@pytest.mark.parametrize("shape", [(4, *WHOLE), (2, *WHOLE[1:])])
def test_what_broadcasts_to_more_than_the_image_stays(shape):
    with gg.Graph():
        inputs, t = _spread((1, *APART[1:]), (1, *WHOLE[1:]))
        z = gg.placeholder(shape)
        assert [shape for _, shape in _split([*inputs, z], [t + z])][-1] == shape


def test_what_waits_for_another_node_stays_and_waits():
    with gg.Graph():
        inputs, t = _spread()
        z = gg.placeholder(WHOLE)
        y = t + z
        y.node.controls = (gg.exp(z).node,)
        assert _same([*inputs, z], [y])


def test_what_broadcasts_is_split_where_it_has_lengths():
    with gg.Graph():
        inputs, t = _spread()
        row, column = gg.placeholder((LONG,)), gg.placeholder((6, 1, LONG))
        nodes = _split([*inputs, row, column], [t * row - column])
    assert nodes == [
        ("Multiply", APART),
        ("Multiply", APART),
        ("Reshape", (3, 2, 1, 1, LONG)),
        ("Subtract", APART),
        ("Reshape", WHOLE),
    ]


@pytest.mark.parametrize(
    ("axis", "axes"), [((0, 1, 2), (0, 1, 2, 3, 4)), ((1,), (1, 2)), ((0, 3), (0, 5)), ((), ())]
)
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_go_over_all_parts_of_an_axis(axis, axes, keepdims):
    with gg.Graph():
        inputs, t = _spread()
        y = gg.sum(t, axis, keepdims)
        plain = Program(inputs, [y])
        split = split_axes(plain)
        same = [n.op.axes for n in split.nodes if n.type == "ReduceSum"]
    assert same == [axes] * len(same)
    verify_program(split)
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, x.shape).astype(float) for x in inputs]  # any order is exact
    expected = (arrays[0] * arrays[1]).reshape(WHOLE).sum(axis, keepdims=keepdims)
    found = gg.compile(inputs, y, backend="llvm", num_threads=1)(*arrays)
    np.testing.assert_array_equal(found, expected)


def test_what_only_the_node_reads_moves_with_it():
    with gg.Graph():
        inputs, t = _spread()
        z = gg.placeholder(WHOLE)
        nodes = _split([*inputs, z], [gg.where(gg.exp(z) > 1.0, t, 0.0)])
    assert [n for n in nodes if n[1] == WHOLE] == [("Reshape", WHOLE)]


def test_what_others_read_stays():
    with gg.Graph():
        inputs, t = _spread()
        z = gg.placeholder(WHOLE)
        h = gg.exp(z)
        nodes = _split([*inputs, z], [t * h, h])
    assert ("Exp", WHOLE) in nodes
    assert ("Exp", APART) not in nodes


def test_a_long_chain_moves_in_part():
    with gg.Graph():
        inputs, t = _spread()
        z = y = gg.placeholder(WHOLE)
        for _ in range(DEPTH + 3):
            y = gg.sin(y)
        nodes = _split([*inputs, z], [t * y])
    assert nodes.count(("Sin", APART)) == DEPTH
    assert nodes.count(("Sin", WHOLE)) == 3


def test_a_short_or_joined_last_axis_stays():
    with gg.Graph():
        inputs, t = _spread((2, 3, 2, 5, 2, LONG - 1), (2, 6, 10, LONG - 1))
        assert _same(inputs, [t + 1.0])
    with gg.Graph():
        inputs, t = _spread((2, 3, 2, 5, 2, LONG), (2, 6, 5, 2 * LONG))
        assert _same(inputs, [t + 1.0])


def test_axes_that_are_not_joined_stay():
    with gg.Graph():
        inputs, t = _spread((2, 3, 2, 5, 2, LONG), (3, 4, 10, LONG))
        assert _same(inputs, [t + 1.0])


def test_what_is_given_is_no_reshape():
    with gg.Graph():
        _, t = _spread()
        assert _same([t], [t + 1.0])


def test_other_axes_stay_other_axes():
    with gg.Graph():
        inputs, t = _spread()
        others, u = _spread((2, 2, 3, 2, 5, LONG))
        nodes = _split([*inputs, *others], [t + u])
    assert ("Add", WHOLE) in nodes


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("pool", [gg.nn.max_pool, gg.nn.avg_pool])
def test_the_gradient_of_an_activation_is_in_the_loop_of_the_pool(layout, pool):
    rng = np.random.default_rng(0)
    image, out = (2, 8, 6, 32), (32, 32)
    image = image if layout == "NHWC" else (2, 32, 8, 6)
    with gg.Graph():
        x, w = gg.placeholder(image), gg.placeholder((3, 3, *out))
        y = gg.nn.relu(gg.nn.conv(x, w, data_format=layout))
        y = pool(y, 2, data_format=layout)
        outputs = [y, *gg.gradients(gg.sum(y * y), [x, w])]
        f = gg.compile([x, w], outputs, backend="llvm", num_threads=1)
        plain = gg.compile([x, w], outputs, backend="numpy", optimize=False)
    (plan,) = f.plans
    loops = [s.node.op.program for s in plan.steps if type(s.node.op) is Fused]
    assert any("ReluGrad" in ops and ops != ["ReluGrad"] for ops in map(_ops, loops))
    arrays = [rng.normal(size=t.shape) for t in (x, w)]
    for a, b in zip(f(*arrays), plain(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def _ops(program):
    return [n.type for n in program.nodes if not n.op.memory.view]
