"""Groups of element-wise nodes as one node: same values, no circle, close to the old order."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.node import Node
from graphgrad.ir.program import Program
from graphgrad.ir.verify import verify_program
from graphgrad.lower.fused import fuse_loops
from graphgrad.lower.fusion import REDUCED
from graphgrad.lower.loop_ir import Fused, Loop, nodes_within
from graphgrad.ops.elementwise.exponential import Tanh, TanhSlope
from graphgrad.optimise.pipeline import optimise

from .fusing import fuse, same_values


def _elementwise(node: Node) -> bool:
    return node.op.elementwise


def _sums(node: Node) -> bool:
    return node.type in ("ReduceSum", "SumToShape")


def _fused(inputs, outputs) -> tuple[Program, Program]:
    plain, _ = optimise(Program(inputs, outputs))
    return plain, fuse(plain, _elementwise, _sums)


def _groups(program: Program) -> list[list[str]]:
    return [[n.type for n in f.op.program.nodes] for f in program.nodes if type(f.op) is Fused]


def test_a_chain_and_its_sum_are_one_node():
    with gg.Graph():
        x = gg.placeholder((4, 5))
        y = gg.sum(gg.tanh(x) * 2.0 + x)
        plain, fused = _fused([x], [y])
    assert _groups(fused) == [["Tanh", "Multiply", "Add", "ReduceSum"]]
    verify_program(fused)
    same_values(plain, fused)


def test_a_path_that_leaves_a_group_and_comes_back_divides_it():
    with gg.Graph():
        x = gg.placeholder((4, 4))
        a = gg.exp(x)
        y = gg.sin(a @ a) + gg.cos(a)  # a -> matmul -> sin
        plain, fused = _fused([x], [y])
    assert _groups(fused) == [["Sin", "Cos", "Add"]]
    same_values(plain, fused)


def test_what_only_the_backward_pass_reads_is_computed_there():
    with gg.Graph():
        x, w = gg.placeholder((4, 4)), gg.placeholder((4, 4))
        y = gg.tanh(x @ w) @ w
        plain, fused = _fused([x, w], gg.gradients(gg.sum(y * y), [x, w]))
    assert any("TanhSlope" in g and "Tanh" not in g for g in _groups(fused))
    same_values(plain, fused)


def test_what_costs_little_beside_another_is_computed_there_if_it_is_kept_instead():
    with gg.Graph():
        x, w = gg.placeholder((4, 4)), gg.placeholder((4, 4))
        z = x @ w
        y = gg.tanh(z) @ w
        inputs, grads = [x, w], gg.gradients(gg.sum(y * y), [x, w])
        plain, _ = optimise(Program(inputs, grads))
        kept, _ = optimise(Program(inputs, [*grads, z]))
    twins = {Tanh: (TanhSlope,)}
    for program, together in ((plain, True), (kept, False)):
        fused = fuse(program, _elementwise, _sums, twins=twins)
        assert any({"Tanh", "TanhSlope"} <= {*g} for g in _groups(fused)) is together
        same_values(program, fused)


def test_values_of_a_group_that_others_read_are_its_outputs():
    with gg.Graph():
        x = gg.placeholder((3,))
        a = gg.exp(x)
        b = a * 2.0
        plain, fused = _fused([x], [a, b + 1.0, b])
    (node,) = [n for n in fused.nodes if type(n.op) is Fused]
    assert len(node.outputs) == 3
    same_values(plain, fused)


def test_groups_stand_where_their_last_node_stood():
    with gg.Graph():
        x = gg.placeholder((4, 4))
        a = gg.exp(x)
        product = x @ x
        b = a * 2.0
        plain, fused = _fused([x], [product, b])
    assert [n.type for n in fused.nodes if n.type != "Constant"] == ["MatMul", "Fused"]
    same_values(plain, fused)


def test_unknown_lengths_are_left_alone():
    with gg.Graph():
        x = gg.placeholder(("N",))
        plain, fused = _fused([x], [gg.exp(x) * 2.0])
    assert fused is plain


def test_random_nodes_and_their_readers():
    with gg.Graph():
        x = gg.placeholder((3,))
        noise = gg.random.normal((3,), seed=1)
        plain, fused = _fused([x], [x * noise + noise, gg.sum(noise * 2.0)])
    same_values(plain, fused)


@pytest.mark.ci
def test_a_long_chain_needs_no_deep_stack():
    with gg.Graph():
        x = gg.placeholder((2,))
        y = x
        for i in range(20_000):
            y = gg.sin(y) if i % 2 else y + x
        _, fused = _fused([x], [y])
    (node,) = fused.nodes
    assert len(nodes_within(node)) == 20_000


def test_what_is_left_of_a_divided_group_without_its_rows_is_a_part_of_its_own():
    """A row alone does not say over how many elements its loop would go."""
    with gg.Graph():
        x = gg.placeholder((4, 5))
        s = gg.sum(gg.exp(x), axis=1)
        y = gg.sin(s)
        z = gg.tanh(x)
        plain = Program([x], [y, z])

    def loop_of(node):
        shape = node.inputs[0].shape
        return Loop(shape, shape, row=(1,) if node.type == "ReduceSum" else ())

    assert _groups(fuse_loops(plain, loop_of)) == [["Exp", "ReduceSum", "Sin", "Tanh"]]
    divided = fuse_loops(plain, loop_of, parts=(REDUCED, REDUCED + 2))
    assert _groups(divided) == [["Exp", "ReduceSum"]]
    same_values(plain, divided)


def test_an_input_that_a_node_of_the_program_also_makes_keeps_its_given_value():
    with gg.Graph():
        x = gg.placeholder((6,))
        a, b = gg.split(x, 2)
        plain = Program([x, a], [gg.exp(a) * b, a[::-1], a])
    fused = fuse(plain, _elementwise, _sums)
    assert _groups(fused) == [["Exp", "Multiply"]]
    verify_program(fused)
    same_values(plain, fused)


def test_a_node_and_its_copy_of_a_constant_are_no_group_of_two():
    with gg.Graph():
        x = gg.placeholder((3,))
        plain = Program([x], [x * 2.0])
    assert fuse(plain, _elementwise, _sums, free=("Constant",)) is plain


def test_nodes_that_wait_for_nothing_stay_in_order():
    with gg.Graph():
        x = gg.placeholder((4, 4))
        outputs = [x @ x, gg.sin(gg.exp(x)), gg.sort(x), x.T @ x, gg.sort(x, axis=0)]
        plain = Program([x], outputs)
    fused = fuse(plain, _elementwise, _sums)
    assert [n.type for n in fused.nodes] == [
        "MatMul",
        "Fused",
        "Sort",
        "Transpose",
        "MatMul",
        "Sort",
    ]


def test_what_waits_for_a_node_of_a_group_runs_after_the_group():
    with gg.Graph():
        x = gg.placeholder((4, 4))
        a = gg.exp(x)
        product = x @ x
        product.node.controls = (a.node,)
        plain = Program([x], [gg.sin(a), product])
    fused = fuse(plain, _elementwise, _sums)
    assert [n.type for n in fused.nodes] == ["Fused", "MatMul"]
    verify_program(fused)


def test_a_node_of_several_outputs_is_in_no_group():
    with gg.Graph():
        x = gg.placeholder((6,))
        a, b = gg.split(x, 2)
        plain = Program([x], [gg.sin(gg.exp(a)), b])
    fused = fuse(plain, lambda node: True, _sums)
    assert _groups(fused) == [["Exp", "Sin"]]


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_keep_their_values(seed):
    rng = np.random.default_rng(seed)
    with gg.Graph():
        xs = [gg.placeholder((4, 4)) for _ in range(3)]
        made = list(xs)
        for _ in range(60):
            a, b = (made[rng.integers(len(made))] for _ in range(2))
            made.append(
                [
                    lambda a, b: a + b,
                    lambda a, b: gg.tanh(a) * b,
                    lambda a, b: gg.tanh(a @ b),
                    lambda a, b: a - gg.sum(b, axis=0),
                    lambda a, b: a * gg.mean(b, axis=1, keepdims=True),
                    lambda a, b: gg.maximum(a.T, b),
                ][rng.integers(6)](a, b)
            )
        outputs = [made[-1], gg.sum(made[-2]), made[20]]
        plain, fused = _fused(
            xs, [*outputs, *gg.gradients(gg.sum(made[-1]), xs, unconnected="zero")]
        )
    verify_program(fused)
    same_values(plain, fused)
