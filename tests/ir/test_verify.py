"""The invariants: each is broken here once, by hand, and found."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import GraphError
from graphgrad.ir.node import Tensor
from graphgrad.ir.program import Program, with_inputs
from graphgrad.ir.types import tensor_type
from graphgrad.ir.verify import verify_graph, verify_program


@pytest.fixture
def graph():
    """x (0), y = tanh(x) (1), z = x + y (2), pair = split(z) (3), in a region each"""
    with gg.Graph() as g:
        x = gg.placeholder((4,), name="x")
        with gg.override_gradient("Identity"):
            y = gg.tanh(x)
        gg.split(x + y, 2)
    verify_graph(g)
    return g


@pytest.fixture
def other():
    with gg.Graph() as g:
        gg.tanh(gg.placeholder((4,), name="x"))
    return g


def swapped(g, other):
    g.nodes[1], g.nodes[2] = g.nodes[2], g.nodes[1]


def elsewhere(g, other):
    g.nodes[2].graph = other


def reads_later(g, other):
    g.nodes[1].inputs = (g.nodes[2].outputs[0],)


def reads_itself(g, other):
    g.nodes[1].inputs = g.nodes[1].outputs


def reads_another_graph(g, other):
    g.nodes[1].inputs = (other.nodes[0].outputs[0],)


def waits_for_later(g, other):
    g.nodes[1].controls = (g.nodes[2],)


def waits_for_another_graph(g, other):
    g.nodes[1].controls = (other.nodes[0],)


def named_twice(g, other):
    g.nodes[2]._name = "x"


def named_as_an_unnamed_one(g, other):
    g.nodes[2]._name = "Tanh_1"


def region_of_another_graph(g, other):
    with other, gg.override_gradient("Identity", allow_empty=True) as region:
        g.nodes[1].region = region


def output_of_another_node(g, other):
    g.nodes[1].outputs = g.nodes[2].outputs


def outputs_in_another_order(g, other):
    g.nodes[3].outputs = g.nodes[3].outputs[::-1]


def too_few_outputs(g, other):
    g.nodes[3].outputs = g.nodes[3].outputs[:1]


def another_type(g, other):
    node = g.nodes[1]
    node.outputs = (Tensor(node, 0, tensor_type((4,), "float32")),)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (swapped, "stands at 1 but says 2"),
        (elsewhere, "stands at 2 but says 2"),
        (reads_later, "reads what was built after it, or in another graph"),
        (reads_itself, "reads what was built after it, or in another graph"),
        (reads_another_graph, "reads what was built after it, or in another graph"),
        (waits_for_later, "waits for what was built after it, or in another graph"),
        (waits_for_another_graph, "waits for what was built after it, or in another graph"),
        (named_twice, "the name 'x' is used twice"),
        (named_as_an_unnamed_one, "the name 'Tanh_1' is used twice"),
        (region_of_another_graph, "is in a region of another graph"),
        (output_of_another_node, "output 0 of .* belongs to"),
        (outputs_in_another_order, "output 0 of .* belongs to"),
        (too_few_outputs, "is not of the types its op infers"),
        (another_type, "is not of the types its op infers"),
    ],
)
def test_a_broken_graph_is_found(graph, other, broken, said):
    broken(graph, other)
    with pytest.raises(GraphError, match=said):
        verify_graph(graph)


@pytest.fixture
def made(graph):
    """(x, y, z, pair) and the program of pair[0] from x."""
    x, y, z = (graph.nodes[i].outputs[0] for i in range(3))
    pair = graph.nodes[3].outputs
    return x, y, z, pair


def test_a_program_is_closed_and_holds_what_it_needs_once_and_in_order(made):
    x, y, z, pair = made
    nodes = [y.node, z.node, pair[0].node]
    verify_program(Program([x], [pair[0]], nodes))
    verify_program(Program([x], [x], []))
    verify_program(Program([x, y], [pair[1], y], nodes[1:]))
    for inputs, outputs, wrong, said in [
        ([], [pair[0]], nodes, "reads x:0, which nothing before it computes"),
        ([x], [pair[0]], nodes[1:], "reads Tanh_1:0, which nothing before it computes"),
        ([x], [pair[0]], [nodes[1], nodes[0], nodes[2]], "reads Tanh_1:0, which nothing before it"),
        ([x], [pair[0]], nodes[:2], "<Add_2: .* is in the program but nothing needs it"),
        ([x], [pair[0]], [], "nothing in the program computes its output Split_3:0"),
        ([x], [z], nodes, "<Split_3: .* is in the program but nothing needs it"),
        ([x], [pair[0]], [nodes[0], *nodes], "<Tanh_1: .* is in the program twice"),
    ]:
        with pytest.raises(GraphError, match=said):
            verify_program(Program(inputs, outputs, wrong))


def test_what_a_node_waits_for_runs_before_it(made):
    x, y, z, _ = made
    late = with_inputs(z.node, (x, x))
    late.controls = (y.node,)
    verify_program(Program([x], late.outputs, [y.node, late]))
    verify_program(Program([x], late.outputs))
    for nodes in ([late], [late, y.node]):
        with pytest.raises(
            GraphError, match=r"waits for <Tanh_1: .*, which does not run before it"
        ):
            verify_program(Program([x], late.outputs, nodes))


def test_a_node_of_a_program_is_of_the_types_its_op_infers(made):
    x, y, _, _ = made
    wrong = with_inputs(y.node, (x,))
    wrong.outputs = (Tensor(wrong, 0, tensor_type((5,), np.float64)),)
    with pytest.raises(GraphError, match="is not of the types its op infers"):
        verify_program(Program([x], wrong.outputs, [wrong]))
