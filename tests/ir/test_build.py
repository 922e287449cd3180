"""The birth of a node: what it takes on, and that a birth that fails leaves nothing behind."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import GraphError, ScopeError, ShapeError
from graphgrad.ir.build import adopted, apply, build, read_here
from graphgrad.ir.context import CONTEXT, Context
from graphgrad.ir.graph import current
from graphgrad.ir.op import OP_TYPES
from graphgrad.ir.residual import Residual
from graphgrad.ir.verify import verify_graph

from .racing import race

MatMul, Tanh = OP_TYPES["MatMul"], OP_TYPES["Tanh"]


@pytest.fixture
def graph():
    with gg.Graph("g") as g:
        yield g


@pytest.fixture
def nobody():
    """No graph was entered in this context."""
    token = CONTEXT.set(Context(gg.Graph("default"), implicit=True))
    yield current().graph
    CONTEXT.reset(token)


def test_a_node_takes_on_what_is_open(graph):
    x = gg.placeholder((4,), name="x")
    with gg.name_scope("a"), gg.override_gradient("Identity") as region:
        inside = build(Tanh(), (x,), "h")
        source = gg.placeholder((), name="s").node
    assert (inside.name, inside.region, inside.origin, inside.stamp) == ("a/h", region, None, None)
    assert (inside.graph, inside.index, inside.inputs, inside.controls) == (graph, 1, (x,), ())
    assert (source.scope, source.region) == ("a/", None)  # a source is never a member
    assert graph.nodes == [x.node, inside, source]
    assert apply(Tanh(), x).node is graph.nodes[-1]


def test_each_output_knows_its_node_and_place(graph):
    x = gg.placeholder((6,))
    node = gg.split(x, 3)[0].node
    assert [(t.node, t.index, t.shape) for t in node.outputs] == [(node, i, (2,)) for i in range(3)]


def test_a_graph_is_made_where_there_is_none():
    with ThreadPoolExecutor(1) as pool:  # a thread begins with an empty context
        x = pool.submit(gg.placeholder, ()).result()
        again = pool.submit(gg.placeholder, ()).result()
    assert x.graph is again.graph
    assert x.graph is not current().graph


# --- births that fail ----------------------------------------------------------------------------


def test_types_that_do_not_fit_are_an_error_with_the_inputs_and_their_lines(graph):
    x, w = gg.placeholder(("N", 3), name="x"), gg.placeholder((4, 2), name="w")
    with pytest.raises(ShapeError) as error:
        x @ w
    (note,) = error.value.__notes__
    assert note.startswith("in MatMul(transpose_a=False, transpose_b=False) at test_build.py:")
    assert "\n  0: x:0: float64[N, 3], built at test_build.py:" in note
    assert "\n  1: w:0: float64[4, 2], built at test_build.py:" in note
    op, inputs = error.value.failed
    assert (op.type, inputs) == ("MatMul", (x, w))
    assert len(graph) == 2


def test_the_wrong_number_of_inputs_is_an_error_with_a_note(graph):
    x = gg.placeholder((2,), name="x")
    with pytest.raises(TypeError) as error:
        build(MatMul(), (x, x, x))
    assert "2: x:0: float64[2]" in error.value.__notes__[0]
    with pytest.raises(TypeError) as error:
        build(MatMul(), ())
    assert error.value.__notes__[0].startswith("in MatMul(")
    assert "called with" not in error.value.__notes__[0]
    assert len(graph) == 1


def test_a_name_that_is_refused_leaves_nothing_behind(graph):
    x = gg.placeholder((2,))
    with pytest.raises(GraphError, match="reserved"):
        build(Tanh(), (x,), "Tanh_5")
    assert len(graph) == 1
    with pytest.raises(ShapeError):
        build(MatMul(), (x, gg.placeholder((3,))), "product")
    assert build(Tanh(), (x,), "product").name == "product"


def test_an_error_of_types_is_an_error_with_its_note_each_time(graph):
    x = gg.placeholder((2, 3), name="x")
    for _ in range(2):
        with pytest.raises(ShapeError) as error:
            build(MatMul(), (x, x))
        assert len(error.value.__notes__) == 1


def test_nothing_is_built_in_a_block_that_was_left(graph):
    x = gg.placeholder((2,))
    with gg.override_gradient("Identity", allow_empty=True) as region:
        late = current()
    token = CONTEXT.set(late)
    try:
        with pytest.raises(ScopeError) as error:
            gg.tanh(x)
    finally:
        CONTEXT.reset(token)
    assert "at test_build.py:" in str(error.value)
    assert repr(region) in str(error.value)
    assert "Await it inside the block" in str(error.value)
    assert len(graph) == 1


# --- tensors of other graphs ---------------------------------------------------------------------


def test_where_no_graph_was_entered_nodes_go_to_the_graph_of_their_inputs(nobody):
    with gg.Graph("other") as other:
        x = gg.placeholder((2,), name="x")
    y = gg.tanh(x)
    z = x * 2.0  # the number was put into the default graph and is built anew beside x
    assert (y.graph, z.graph) == (other, other)
    assert [t.node.graph for t in z.node.inputs] == [other, other]
    assert current().graph is nobody
    assert gg.evaluate(z, {x: np.ones(2)}).tolist() == [2.0, 2.0]
    verify_graph(other)


def test_what_was_built_in_the_default_graph_does_not_follow(nobody):
    a = gg.placeholder((2,), name="a")
    moved = gg.constant(np.ones(2))
    with gg.Graph("other") as other:
        x = gg.placeholder((2,), name="x")
    with pytest.raises(GraphError, match=r"a:0 .* belongs to <graph 'default'.* in <graph 'other'"):
        x + a
    with pytest.raises(GraphError, match="belongs to <graph 'default'"):
        x + gg.tanh(moved)
    assert (x + moved).graph is other


def test_a_region_of_the_default_graph_takes_no_nodes_of_another(nobody):
    with gg.Graph("other") as other:
        x = gg.placeholder((2,), name="x")
    refused = pytest.raises(GraphError, match=r"x:0 .* belongs to <graph 'other'")
    with gg.override_gradient("Identity", allow_empty=True), refused:
        gg.tanh(x)
    assert len(other) == 1


def test_tensors_of_two_other_graphs_are_an_error(nobody):
    with gg.Graph("one"):
        x = gg.placeholder((2,), name="x")
    with gg.Graph("two"):
        y = gg.placeholder((2,), name="y")
    with pytest.raises(GraphError, match="x:0") as error:
        x + y
    assert error.value.__notes__[0].startswith("at test_build.py:")


@pytest.mark.parametrize("entered", [True, False])
def test_a_tensor_of_a_compiled_program_is_in_no_graph(nobody, entered):
    g = gg.Graph("g")
    with g:
        x = gg.placeholder((2,), name="x")
        program = gg.compile([x], [gg.exp(x * 1.0 + 0.0)]).program
    (loose,) = program.outputs
    assert loose.graph is None  # an optimisation made it
    before = len(g), len(nobody)
    refused = pytest.raises(GraphError, match="is part of a compiled program")
    with g if entered else gg.name_scope("a"), refused as error:
        gg.tanh(loose)
    assert "built at test_build.py:" in str(error.value)
    assert "Build on the tensors of the graph that was compiled" in str(error.value)
    assert (len(g), len(nobody)) == before


def test_a_body_captures_what_is_read_of_the_graph_around(graph):
    x = gg.placeholder((2,), name="x")
    seen = []

    def body():
        inside = current().graph
        seen.append((adopted((x,)), read_here((x,)), adopted((x,)), inside))
        return gg.tanh(x)

    gg.cond(gg.placeholder((), "bool"), body, lambda: x)
    first, second, third, inside = seen[0]
    assert first == second == third
    assert first[0].graph is inside is not graph
    assert adopted((x,)) == read_here((x,)) == (x,)


def test_a_derived_read_of_a_regions_inside_is_residual(graph):
    read = []

    def rule(site, dy):
        inside = site.nodes[0].outputs[0]
        read.extend([inside, *read_here((inside,))])
        return dy * inside

    x = gg.placeholder((), name="x")
    with gg.override_gradient(rule):
        y = gg.exp(gg.tanh(x))
    gg.gradients([y], [x])
    inside, residual = read
    assert read_here((inside,)) == (inside,)
    assert isinstance(residual.node.op, Residual)
    assert residual.node.inputs == (inside,)
    assert [n for n in graph.nodes if isinstance(n.op, Residual)] == [residual.node]


# --- threads -------------------------------------------------------------------------------------


def test_threads_that_build_in_one_graph_leave_it_whole(graph):
    x = gg.placeholder((2,), name="x")

    def work():
        with graph:
            t = x
            for _ in range(150):
                t = gg.tanh(t) if t.node.index % 2 else t + 1.0

    race(work)
    verify_graph(graph)
