"""Graphs: names, what is found by them, and which graph is the current one."""

import contextlib

import pytest

import graphgrad as gg
from graphgrad.base.errors import GraphError, ScopeError
from graphgrad.ir.context import CONTEXT
from graphgrad.ir.graph import current, default_graph, name_scope, reset_default_graph
from graphgrad.ir.verify import verify_graph

from ..interrupting import LIBRARY, interrupted, places
from .racing import race


@pytest.fixture
def graph():
    with gg.Graph("g") as g:
        yield g


@pytest.fixture
def fresh():
    """No graph was entered in this context, and the default graph is new."""
    token = CONTEXT.set(gg.ir.context.Context(gg.Graph(), implicit=True))
    yield current().graph
    CONTEXT.reset(token)


# --- names ---------------------------------------------------------------------------------------


def test_a_name_that_is_taken_gets_a_number(graph):
    names = [gg.placeholder((), name=n).node.name for n in ["x", "x_1", "x", "x", "x_1", "y"]]
    assert names == ["x", "x_1", "x_2", "x_3", "x_1_1", "y"]
    assert [graph.node(n).index for n in names] == [*range(6)]


def test_a_scope_is_part_of_the_name(graph):
    with name_scope("a") as outer, name_scope("/b/") as inner:
        first = gg.placeholder((), name="x")
    with name_scope("a"):
        second = gg.placeholder((), name="b/x")
        third = gg.tanh(first)
    assert (outer, inner) == ("a", "a/b")
    assert [t.node.name for t in (first, second, third)] == ["a/b/x", "a/b/x_1", "a/Tanh_2"]
    assert graph.node("a/Tanh_2") is third.node
    verify_graph(graph)


@pytest.mark.parametrize("scope", ["", "a/"])
def test_a_name_that_is_an_op_type_never_becomes_that_of_an_unnamed_node(graph, scope):
    x = gg.placeholder((), name="x")
    with name_scope("a"):
        unnamed = [gg.tanh(x)]  # a/Tanh_1
    unnamed.append(gg.tanh(x))  # Tanh_2
    named = [gg.placeholder((), name=f"{scope}Tanh") for _ in range(9)]
    verify_graph(graph)
    assert [graph.node(name) for name in ("a/Tanh_1", "Tanh_2")] == [t.node for t in unnamed]
    assert len({t.name for t in named}) == 9


@pytest.mark.parametrize("name", ["Tanh_1", "MatMul_20", "a/Tanh_7", "Tanh_007"])
def test_the_names_of_unnamed_nodes_are_reserved(graph, name):
    with pytest.raises(GraphError, match=f"the name '{name}' is reserved.*Choose another"):
        gg.placeholder((), name=name)
    assert len(graph) == 0
    assert gg.placeholder((), name="x_1").node.name == "x_1"
    assert gg.placeholder((), name="Tanh_x").node.name == "Tanh_x"


@pytest.mark.parametrize("name", ["", "/", "/x", "x/"])
def test_what_is_no_name_is_refused(graph, name):
    with pytest.raises(GraphError, match="is not a name"):
        gg.placeholder((), name=name)
    assert len(graph) == 0


@pytest.mark.parametrize("name", [3, b"x", ("x",)])
def test_a_name_is_a_string(graph, name):
    for use in [
        lambda: gg.placeholder((), name=name),
        lambda: gg.Graph(name),
        lambda: graph.node(name),
        lambda: graph.tensor(name),
        lambda: graph.find(name),
    ]:
        with pytest.raises(GraphError, match="a name is a string, got "):
            use()
    for wrong in (name, "", "//"):
        with pytest.raises(ValueError, match="a name scope needs a name"):
            name_scope(wrong)
    assert len(graph) == 0


def test_threads_that_give_one_name_get_names_of_their_own(graph):
    def work():
        with graph:
            for _ in range(50):
                gg.tanh(gg.placeholder((), name="x"))

    race(work)
    assert len(graph) == 800
    verify_graph(graph)
    assert all(graph.node(n.name) is n for n in graph.nodes)


# --- what is found by a name ---------------------------------------------------------------------


def test_nodes_and_tensors_by_name(graph):
    x = gg.placeholder((4,), name="x")
    a, b = gg.split(x, 2)
    assert graph.node("x") is x.node
    assert graph.tensor("x") is graph.tensor("x:0") is x
    assert (graph.tensor("Split_1:0"), graph.tensor("Split_1:1")) == (a, b)
    assert graph.find("*") == graph.nodes
    assert graph.find("Sp*_1") == [a.node]
    assert graph.find("sp*") == []


@pytest.mark.parametrize(
    "name", ["x:1", "x:", "x:-1", "x:zero", "x:²", "x: 0", "x:00", "Split_1", "Split_1:2"]
)
def test_an_output_that_is_not_there_is_an_error_that_names_those_that_are(graph, name):
    gg.split(gg.placeholder((4,), name="x"), 2)
    made = "'x' makes 'x:0'" if name[0] == "x" else "'Split_1' makes 'Split_1:0', 'Split_1:1'"
    with pytest.raises(GraphError) as error:
        graph.tensor(name)
    assert str(error.value) == f"no tensor is named {name!r} in {graph!r}. {made}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("wieghts", "Did you mean 'weights'?"),
        ("tanh_1", "Did you mean 'Tanh_1'?"),
        ("Tanh_0", "Did you mean 'Tanh_1'?"),
        ("a/Tanh_1", "Did you mean 'Tanh_1'?"),
        ("", ""),
        ("?", ""),
        ("_" + "9" * 5000, ""),
        ("weights_٣", "Did you mean 'weights'?"),
        ("weights_²", "Did you mean 'weights'?"),
    ],
)
def test_a_node_that_is_not_there_is_an_error_with_the_nearest_name(graph, name, hint):
    gg.tanh(gg.placeholder((), name="weights"))
    for find in (graph.node, graph.tensor):
        with pytest.raises(GraphError) as error:
            find(name)
        assert str(error.value) == f"no node is named {name!r} in {graph!r}. {hint}".rstrip()


# --- the graph as a whole ------------------------------------------------------------------------


def test_a_graph_says_what_is_in_it(graph):
    assert repr(graph) == "<graph 'g': 0 nodes>"
    assert bool(graph)  # though nothing is in it
    x = gg.placeholder(())
    assert (repr(graph), len(graph)) == ("<graph 'g': 1 node>", 1)
    with gg.override_gradient("Identity"):
        gg.tanh(x)
    assert repr(graph) == "<graph 'g': 2 nodes, 1 region>"
    y = gg.exp(x)
    gg.gradients(y, x, overrides={gg.select.nodes([y.node]): "Identity"})
    assert (len(graph.regions), repr(graph).endswith(" nodes, 1 region>")) == (2, True)
    assert repr(gg.Graph()) == "<graph 'graph': 0 nodes>"


def test_a_view_for_algorithms_has_an_edge_for_every_read(graph):
    x = gg.placeholder((4,), name="x")
    a, b = gg.split(x, 2)
    y = a * a
    view = graph.to_networkx()
    assert view.name == "g"
    assert list(view) == graph.nodes
    assert view.nodes[y.node] == {"type": "Multiply", "name": y.node.name}
    edges = [(u, v, data["tensor"], data["input"]) for u, v, data in view.edges(data=True)]
    assert edges == [
        (x.node, a.node, x, 0),
        (a.node, y.node, a, 0),
        (a.node, y.node, a, 1),
    ]
    assert b.node is a.node


# --- the current graph ---------------------------------------------------------------------------


def test_nodes_go_to_the_graph_that_was_entered_last(fresh):
    first, second = gg.Graph("first"), gg.Graph("second")
    assert default_graph() is fresh
    with first as entered, second.as_default() as inner, first:
        assert (entered, inner) == (first, second)
        assert default_graph() is first
    assert default_graph() is fresh


def test_a_graph_entered_twice_is_left_twice(fresh):
    g = gg.Graph()
    with g, g:
        assert default_graph() is g
    assert default_graph() is fresh
    with pytest.raises(ScopeError, match="was left in the wrong order"):
        g.__exit__(None, None, None)
    assert g._scopes == []


def test_graphs_left_in_the_wrong_order_can_still_be_left_in_the_right_one(fresh):
    outer, inner = gg.Graph("outer"), gg.Graph("inner")
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(ScopeError, match="<graph 'outer': 0 nodes> was left in the wrong order"):
        outer.__exit__(None, None, None)
    assert default_graph() is inner
    inner.__exit__(None, None, None)
    outer.__exit__(None, None, None)
    assert default_graph() is fresh


def test_another_graph_begins_without_the_scopes_of_the_one_around(graph):
    x = gg.placeholder(())
    with name_scope("a"), gg.override_gradient("Identity", allow_empty=True):
        with gg.Graph():
            assert (current().scope, current().region) == ("", None)
            other = gg.placeholder((), name="x")
        with graph:  # the same one: it is as it was
            inside = gg.tanh(x)
    assert other.node.name == "x"
    assert inside.node.scope == "a/"
    assert inside.node.region is graph.regions[0]


def test_a_new_default_graph(fresh):
    gg.placeholder(())
    reset_default_graph()
    assert default_graph() is not fresh
    assert len(default_graph()) == 0
    assert current().implicit


@pytest.mark.parametrize(
    "scope",
    [
        lambda: gg.Graph(),
        lambda: default_graph().as_default(),
        lambda: name_scope("a"),
        lambda: gg.gradient_override_map({"Tanh": "Identity"}, allow_empty=True),
        lambda: gg.gradient_override_map({"Tanh": None}, allow_empty=True),
        lambda: gg.override_gradient("Identity", allow_empty=True),
    ],
)
def test_there_is_no_new_default_graph_inside_a_scope(fresh, scope):
    with scope():
        before = current()
        with pytest.raises(ScopeError, match="inside an open scope; leave the scope first"):
            reset_default_graph()
        assert current() is before
    assert default_graph() is fresh


def test_there_is_no_new_default_graph_while_a_gradient_is_built(fresh):
    def rule(site, dy):
        with pytest.raises(ScopeError, match="inside an open scope"):
            reset_default_graph()
        return dy

    x = gg.placeholder(())
    with gg.override_gradient(rule):
        y = gg.tanh(x)
    gg.gradients([y], [x])
    assert default_graph() is fresh


def test_a_tensor_of_another_graph_is_an_error_that_says_where_it_is_from(graph):
    with gg.Graph("other"):
        x = gg.placeholder((2,), name="x")
    with pytest.raises(GraphError) as error:
        gg.tanh(x)
    for part in [
        "x:0 (float64[2], built at test_graph.py:",
        "<graph 'other': 1 node>",
        "<graph 'g'",
    ]:
        assert part in str(error.value)
    assert error.value.__notes__[0].startswith("at test_graph.py:")
    assert len(graph) == 0


def test_a_graph_is_entered_and_left_or_neither_wherever_it_is_interrupted():
    outer, inner = gg.Graph("outer"), gg.Graph("inner")

    def action():
        with inner, inner.as_default(), inner:
            pass

    found = [p for p in places(action) if p.code[0].startswith(LIBRARY)]
    assert len(found) > 20
    for place in found:
        with outer:
            before = CONTEXT.get()
            with contextlib.suppress(KeyboardInterrupt), gg.name_scope("around"):
                interrupted(action, place)
                raise KeyboardInterrupt
            assert CONTEXT.get() is before, place
        assert not any(s.is_around() for s in (*inner._scopes, *outer._scopes)), place
