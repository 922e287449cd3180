"""Programs: closed pieces of a graph, in an order in which they run, and how they are rebuilt."""

import random

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.build import build
from graphgrad.ir.op import OP_TYPES
from graphgrad.ir.program import Program, derive, needed, with_inputs
from graphgrad.ir.verify import verify_program

Exp, Tanh = OP_TYPES["Exp"], OP_TYPES["Tanh"]


@pytest.fixture(autouse=True)
def graph():
    with gg.Graph() as g:
        yield g


def chain(n):
    """(x, y): n nodes from x to y, in no graph, so that nothing is known of their order."""
    x = t = gg.placeholder((), name="x")
    first = gg.tanh(x).node
    for _ in range(n):
        (t,) = with_inputs(first, (t,)).outputs
    return x, t


# --- what a program holds ------------------------------------------------------------------------


def test_it_holds_what_the_outputs_need_beyond_the_inputs(graph):
    x, w = gg.placeholder((), name="x"), gg.placeholder((), name="w")
    a = gg.tanh(x)
    b = a * w
    c = gg.exp(b)
    gg.exp(a)  # nobody asks for it
    nodes = [a.node, b.node, c.node]
    assert Program([x, w], [c]).nodes == tuple(nodes)
    assert Program([x, w], [c, a]).nodes == tuple(nodes)
    assert Program([a, w], [c]).nodes == (b.node, c.node)
    assert Program([b], [b, c]).nodes == (c.node,)
    assert Program([c], [c]).nodes == ()
    assert Program([], [c]).nodes == tuple(graph.nodes[:5])  # it says what is missing
    assert repr(Program([x, w], [c])) == "<program: 2 inputs, 3 nodes, 1 outputs>"


def test_an_output_that_is_given_stops_nothing_on_the_other_outputs_of_its_node():
    x = gg.placeholder((4,))
    a, b = gg.split(x, 2)
    program = Program([x, a], [gg.tanh(a), gg.tanh(b)])
    assert [n.type for n in program.nodes] == ["Split", "Tanh", "Tanh"]
    assert [n.type for n in Program([a], [gg.tanh(a)]).nodes] == ["Tanh"]


def test_what_runs_before_a_node_is_needed_too():
    x = gg.placeholder(())
    early, late = gg.exp(x), gg.tanh(x)
    node = with_inputs(late.node, (x,))
    node.controls = (early.node,)
    assert Program([x], node.outputs).nodes == (early.node, node)
    assert needed([x], [early, *node.outputs]) == [early.node, node]
    assert needed([x, early], node.outputs) == [early.node, node]


def test_what_runs_before_a_node_of_a_graph_is_needed_too():
    x = gg.placeholder(())
    first, early, late = gg.sin(x), gg.exp(x), gg.tanh(x)
    early.node.controls, late.node.controls = (first.node,), (early.node,)
    assert Program([x], [late]).nodes == (first.node, early.node, late.node)


def test_nodes_of_no_graph_are_put_in_an_order_in_which_they_run():
    random_ = random.Random(3)
    x = gg.placeholder((), name="x")
    add = (x + x).node
    made = [x]
    for _ in range(60):
        made.append(with_inputs(add, tuple(random_.choices(made[-6:], k=2))).outputs[0])
        if random_.random() < 0.3:
            made[-1].node.controls = (random_.choice(made[1:-1] or [gg.exp(x)]).node,)
    outputs = random_.sample(made, 5)
    program = Program([x], outputs)
    verify_program(program)
    assert program.nodes == Program([x], outputs).nodes


def test_a_long_chain_does_not_recurse():
    x, y = chain(10_000)
    program = Program([x], [y])
    assert len(program.nodes) == 10_000
    assert program.nodes[0].inputs == (x,)
    longer = program.rebuild(
        lambda node: derive(node, Exp(), node.inputs).outputs if node.inputs[0] is x else None
    )
    assert [longer.nodes[0].type, longer.nodes[1].type] == ["Exp", "Tanh"]
    assert len(longer.nodes) == 10_000


def test_a_long_chain_made_by_one_visit_does_not_recurse():
    x, y = chain(10_000)
    old = gg.exp(x)
    program = Program([x], [old]).rebuild(lambda node: (y,))
    assert (len(program.nodes), program.outputs) == (10_000, (y,))
    assert program.nodes[-1] is y.node


# --- rebuilding ----------------------------------------------------------------------------------


def test_a_program_in_which_nothing_changes_is_itself():
    x = gg.placeholder(())
    program = Program([x], [gg.exp(gg.tanh(x))])
    seen = []
    assert program.rebuild(lambda node: seen.append(node)) is program
    assert seen == list(program.nodes)
    assert program.rebuild(lambda node: node.outputs) is program


def test_what_reads_a_change_is_made_anew_and_the_rest_stays(graph):
    x = gg.placeholder((), name="x")
    a, b = gg.tanh(x), gg.sin(x)
    y, z = gg.exp(a), gg.exp(b)
    program = Program([x], [y, z])
    after = program.rebuild(
        lambda node: derive(node, Exp(), node.inputs).outputs if node is a.node else None
    )
    verify_program(after)
    assert [n.type for n in after.nodes] == ["Exp", "Sin", "Exp", "Exp"]
    assert after.inputs == program.inputs
    assert after.outputs[1] is z
    new = after.outputs[0].node
    assert (new.graph, new.op, new.name, new.where) == (None, y.node.op, y.node.name, y.where)
    assert program.outputs == (y, z)  # the program is as it was
    assert y.node.inputs == (a,)
    assert graph.nodes[3] is y.node


def test_a_node_is_seen_with_the_inputs_it_has_by_then():
    x = gg.placeholder(())
    y = gg.exp(gg.tanh(gg.sin(x)))
    seen = []

    def visit(node):
        seen.append((node.type, node.inputs[0].node.type))
        return node.inputs if node.type == "Tanh" else None

    after = Program([x], [y]).rebuild(visit)
    assert seen == [("Sin", "Placeholder"), ("Tanh", "Sin"), ("Exp", "Sin")]
    assert [n.type for n in after.nodes] == ["Sin", "Exp"]
    verify_program(after)


def test_what_nothing_needs_any_more_is_gone():
    x = gg.placeholder(())
    a, b = gg.tanh(x), gg.sin(x)
    after = Program([x], [a * b, a]).rebuild(lambda n: (b,) if n.type == "Multiply" else None)
    assert [n.type for n in after.nodes] == ["Tanh", "Sin"]
    after = Program([x], [a * b]).rebuild(lambda n: (b,) if n.type == "Multiply" else None)
    assert [n.type for n in after.nodes] == ["Sin"]


def test_several_nodes_in_place_of_one_each_after_what_it_reads():
    x = gg.placeholder(())
    y = gg.exp(x)

    def visit(node):
        if node is not y.node:
            return None
        (a,) = derive(node, Tanh(), (x,)).outputs
        (b,) = derive(node, Exp(), (a,)).outputs
        (late,) = derive(node, Tanh(), (x,)).outputs
        last = derive(node, Exp(), (b,))
        last.controls = (late.node,)
        return last.outputs

    after = Program([x], [gg.sin(y), y]).rebuild(visit)
    verify_program(after)
    assert [n.type for n in after.nodes] == ["Tanh", "Exp", "Tanh", "Exp", "Sin"]
    assert [t.node.type for t in after.outputs] == ["Sin", "Exp"]


def test_a_given_tensor_keeps_its_value_whatever_its_node_becomes():
    x = gg.placeholder((4,))
    a, b = gg.split(x, 2)
    program = Program([x, a], [gg.exp(a), gg.exp(b), a])
    swap = program.rebuild(lambda n: n.outputs[::-1] if n.type == "Split" else None)
    verify_program(swap)
    assert swap.outputs[0].node.inputs == (a,)  # given: it still means what is fed
    assert swap.outputs[1].node.inputs == (a,)  # b became a
    assert swap.outputs[2] is a


def test_what_makes_a_given_tensor_does_not_run_for_who_reads_that():
    x, y = gg.placeholder((4,)), gg.placeholder((2,))
    first = gg.tanh(y)
    a, b = gg.split(x, 2)
    program = Program([x, y, a], [first, gg.exp(b)])
    after = program.rebuild(lambda n: derive(n, Exp(), (a,)).outputs if n.type == "Tanh" else None)
    verify_program(after)
    assert [n.type for n in after.nodes] == ["Exp", "Split", "Exp"]
    assert after.nodes[0].inputs == (a,)


def test_what_only_a_given_tensor_needed_is_gone():
    x = gg.placeholder((4,))
    a, b = gg.split(x, 2)
    program = Program([x, a], [a * b, gg.exp(a * b)])
    after = program.rebuild(lambda n: n.inputs[:1] if n.type == "Multiply" else None)
    verify_program(after)
    assert [n.type for n in after.nodes] == ["Exp"]
    assert (after.outputs[0], after.nodes[0].inputs) == (a, (a,))


def test_what_runs_before_a_node_is_replaced_with_what_stands_for_it():
    x = gg.placeholder(())
    early, late = gg.exp(x), gg.tanh(x)
    node = with_inputs(late.node, (x,))
    node.controls = (early.node,)
    program = Program([x], node.outputs)
    after = program.rebuild(
        lambda n: derive(n, Tanh(), n.inputs).outputs if n is early.node else None
    )
    verify_program(after)
    new = after.outputs[0].node
    assert new.controls == (after.nodes[0],)
    assert (after.nodes[0].type, len(after.nodes)) == ("Tanh", 2)
    assert node.controls == (early.node,)
    assert program.rebuild(lambda n: None) is program
    gone = program.rebuild(lambda n: (x,) if n is early.node else None)
    assert (gone.nodes[-1].controls, len(gone.nodes)) == ((), 1)  # x is given: nothing to wait for


# --- nodes that passes make ----------------------------------------------------------------------


def test_a_derived_node_keeps_who_it_is_and_infers_its_types_anew():
    x, other = gg.placeholder(("N",), name="x"), gg.placeholder((3,), "float32", name="o")
    with gg.name_scope("a"), gg.override_gradient("Identity"):
        y = build(Tanh(), (x,), "h").outputs[0]
    y.node.controls = (x.node,)
    for new in (with_inputs(y.node, (other,)), derive(y.node, Exp(), (other,))):
        assert repr(new.outputs[0].type) == "float32[3]"
        for field in ("name", "where", "region", "scope", "stamp", "origin", "controls", "index"):
            assert getattr(new, field) == getattr(y.node, field), field
        assert (new.graph, new.inputs) == (None, (other,))
        assert new.outputs[0].node is new
        assert new is not y.node
    assert derive(y.node, gg.sum(x).node.op, (x,)).outputs[0].shape == ()
    same = with_inputs(y.node, (gg.placeholder(("N",)),))
    assert same.outputs[0].type is y.type
    assert same.outputs[0].node is same


def test_a_node_that_ignores_what_its_type_says_keeps_the_types_it_has():
    """The same op on inputs of the same types is not asked again."""
    x = gg.placeholder((4,))
    node = gg.split(x, 2)[0].node
    new = with_inputs(node, (gg.exp(x),))
    assert [(t.node, t.index, t.type) for t in new.outputs] == [
        (new, t.index, t.type) for t in node.outputs
    ]


def test_a_program_runs_to_the_value_of_its_graph():
    x = gg.placeholder((3,), name="x")
    y = gg.exp(gg.tanh(x)) * x
    run = gg.compile([x], [y])
    values = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(run(values)[0], np.exp(np.tanh(values)) * values)
