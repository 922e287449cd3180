"""Nodes, tensors and regions: what they say of themselves, and the tree of regions."""

import copy
import pickle
import random

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import GraphError, RegionError, SymbolicError
from graphgrad.ir.graph import Graph
from graphgrad.ir.node import Region, RuleCall, common_region, enclosing

HOSTILE = ["two\nlines", "turned \u202e round", "<b>&amp;</b>", "half \ud800", "x" * 10_000, "a:0"]


@pytest.fixture(autouse=True)
def graph():
    with gg.Graph("g") as g:
        yield g


def region_in(graph, parent=None, rule="rule"):
    region = Region(graph, rule, parent=parent, origin=None, position=("model.py", 40))
    graph.regions.append(region)
    return region


# --- what a node and a tensor say ----------------------------------------------------------------


def test_a_node_and_its_tensor_say_what_they_are(graph):
    x = gg.placeholder(("N", 3), "float32", name="x")
    with gg.name_scope("layer"):
        y = gg.sum(x, axis=1)
    node = y.node
    assert (node.name, y.name, x.name) == ("layer/ReduceSum_1", "layer/ReduceSum_1:0", "x:0")
    assert (node.type, node.index, node.graph, node.scope) == ("ReduceSum", 1, graph, "layer/")
    assert (y.shape, y.dtype, y.ndim, y.size) == (("N",), np.dtype("float32"), 1, None)
    assert (y.op, y.graph, y.where) == (node, graph, node.where)
    assert gg.placeholder((2, 3)).size == 6
    assert node.get_attr("axes") == node.attrs["axes"] == (1,)
    with pytest.raises(KeyError, match=r"ReduceSum has no attribute 'axis', it has \['axes'"):
        node.get_attr("axis")
    assert repr(y).startswith("<layer/ReduceSum_1:0: float32[N], test_node.py:")
    assert "= ReduceSum(axes=(1,)" in repr(node)
    assert "(x:0), test_node.py:" in repr(node)


def test_consumers_are_the_nodes_that_read_an_output():
    x = gg.placeholder((4,))
    a, b = gg.split(x, 2)
    first, second, third = gg.tanh(a), gg.tanh(x), x[:2] * b
    assert a.node.consumers == [first.node, third.node]
    assert x.node.consumers == [a.node, second.node, third.node.inputs[0].node]
    assert third.node.consumers == []


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_any_kind_are_shown_on_one_short_line(name, graph):
    x = gg.placeholder((2, "N\n\u202e"), name=name)
    y = gg.tanh(x)
    region = region_in(graph, rule=name)
    call = RuleCall(x.node, name, frozenset())
    for thing in (x, y, x.node, y.node, region, call, gg.Graph(name)):
        shown = repr(thing)
        assert shown.isprintable(), shown
        assert len(shown) < 800, len(shown)
        shown.encode()
    assert graph.node(name) is x.node
    assert graph.tensor(f"{name}:0") is x


def test_a_node_with_many_inputs_is_shown_shortened():
    x = gg.placeholder(())
    assert len(repr(gg.stack([x] * 3000).node)) < 800


def test_nodes_tensors_and_regions_are_pickled_by_their_place_in_the_graph(graph):
    x = gg.placeholder((4,), name="x")
    _, b = gg.split(x, 2)
    region_in(graph)
    region = region_in(graph)
    found, node, tensor, again = pickle.loads(pickle.dumps((graph, b.node, b, region)))
    assert found is not graph
    assert node is found.nodes[1]
    assert tensor is node.outputs[1]
    assert again is found.regions[1]


@pytest.mark.parametrize("take", [pickle.dumps, copy.deepcopy])
def test_a_node_of_a_compiled_program_is_in_no_graph_to_be_pickled_with(take):
    x = gg.placeholder((2,), name="x")
    (loose,) = gg.compile([x], [gg.exp(x * 1.0)]).program.outputs
    with pytest.raises(GraphError, match=r"built at test_node.py:\d+\) is part of a compiled"):
        take(loose)


# --- a tensor has no value -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (bool, "gg.where or gg.cond"),
        (float, "gg.evaluate"),
        (int, "t.astype to cast"),
        (complex, "gg.evaluate"),
        (lambda x: [1, 2][x], "gg.take"),
        (np.asarray, "gg.stack or gg.concat"),
        (lambda x: f"{x:.3f}", "gg.evaluate"),
        (lambda x: 1.0 in x, "gg.any"),
    ],
)
def test_a_use_that_needs_a_value_says_what_to_do_instead(use, said, graph):
    x = gg.placeholder((3,), name="weights")
    with pytest.raises(SymbolicError) as error:
        use(x)
    for part in ["weights:0 (float64[3], built at test_node.py:", "is symbolic", said]:
        assert part in str(error.value)
    assert len(graph) == 1
    assert isinstance(error.value, TypeError)


def test_formatting_without_a_spec_is_the_repr():
    x = gg.placeholder((3,), name="x")
    assert f"{x}" == repr(x)


def test_a_length_and_the_rows_are_there_where_they_are_known(graph):
    x = gg.placeholder((3, 2), name="x")
    assert len(x) == 3
    assert [row.shape for row in x] == [(2,)] * 3
    scalar, rows = gg.placeholder((), name="s"), gg.placeholder(("N",), name="rows")
    count = len(graph)
    for use, said in [
        (lambda: len(scalar), "s:0 is 0-d and has no length"),
        (lambda: iter(scalar), r"s:0 \(built at test_node.py:\d+\) is 0-d and cannot be iterated"),
        (lambda: len(rows), "first length is N, only known at run time"),
        (lambda: iter(rows), "iterating over a tensor of unknown length is not possible"),
    ]:
        with pytest.raises(SymbolicError, match=said):
            use()
    assert len(graph) == count


# --- where ---------------------------------------------------------------------------------------


def test_where_of_a_derived_node_is_that_of_what_it_was_derived_from(graph):
    x = gg.placeholder((), name="x")
    y = gg.tanh(x)
    (dx,) = gg.gradients([y], [x])
    (ddx,) = gg.gradients([dx], [x])
    assert ddx.node.index > dx.node.index
    for derived in graph.nodes[2:]:
        assert derived.where == f"gradient of {y.node.name} ({y.where})"


def test_where_of_what_a_rule_built_is_that_of_its_site(graph):
    x = gg.placeholder((), name="x")
    with gg.override_gradient(lambda site, dy: gg.sin(dy)) as region:
        y = gg.tanh(x)
    gg.gradients([y], [x])
    (built,) = (n for n in graph.nodes if n.type == "Sin")
    assert isinstance(built.origin, RuleCall)
    assert built.where == f"gradient of {region.name} ({region.where})"


def test_where_of_a_region_that_a_rule_opened(graph):
    x = gg.placeholder((), name="x")
    region = Region(graph, "inner", parent=None, origin=x.node, position=None)
    assert region.where == f"gradient of x ({x.where})"
    region.origin = RuleCall(x.node, "r", frozenset())
    assert region.where == f"gradient of x ({x.where})"
    region.origin = None
    assert region.where == "<unknown>"


def test_a_region_is_called_by_its_rule(graph):
    class Named:
        name = "by attribute"

    def rule():
        """Has a name of its own."""

    assert [region_in(graph, rule=r).name for r in ("text", Named(), rule)] == [
        "text",
        "by attribute",
        "rule",
    ]


# --- the tree of regions -------------------------------------------------------------------------


def slowly(region):
    chain = []
    while region is not None:
        chain.insert(0, region)
        region = region.parent
    return tuple(chain)


def test_chains_of_random_trees_while_parents_change():
    random_ = random.Random(1)
    graph = Graph()
    regions = [region_in(graph)]
    for step in range(300):
        if random_.random() < 0.5:
            regions.append(region_in(graph, random_.choice([None, *regions])))
        else:  # a new parent that is older: so there is no circle
            i = random_.randrange(len(regions))
            regions[i].parent = random_.choice([None, *regions[:i]])
        for _ in range(3):
            a, b = random_.choices(regions, k=2)
            chain, other = slowly(a), slowly(b)
            assert enclosing(a) == chain, step
            assert a.contains(b) == (a in other)
            common = [r for r in chain if r in other]
            assert common_region(a, b) is (common[-1] if common else None)
    assert enclosing(None) == ()
    assert common_region(None, regions[0]) is common_region(regions[0], None) is None
    assert not regions[0].contains(None)


def test_a_deep_nest_does_not_recurse():
    graph, at = Graph(), None
    for _ in range(3000):
        at = region_in(graph, at)
    assert len(enclosing(at)) == 3000
    assert graph.regions[0].contains(at)
    assert not at.contains(graph.regions[0])


# --- declaring a boundary ------------------------------------------------------------------------


def test_a_boundary_is_declared_in_its_block_only(graph):
    x, y = gg.placeholder(()), gg.placeholder(())
    region = region_in(graph)
    region.declare(inputs={"b": x, "a": [y]})
    region.declare(outputs=x)
    assert region.pinned_inputs == (y, x)
    assert region.pinned_outputs == (x,)
    region.open = False
    with pytest.raises(RegionError, match=r"<region 'rule' #0, model.py:40> is declared inside"):
        region.declare(inputs=[x])
    region.open, region.settled = True, ((x,), (y,))
    with pytest.raises(RegionError, match="before it is used"):
        region.declare(outputs=[y])
    assert (region.pinned_inputs, region.pinned_outputs) == ((y, x), (x,))


def test_a_node_of_nowhere_says_so():
    with gg.Graph():
        node = gg.exp(gg.placeholder(())).node
    node.position = None
    assert node.where == "<unknown>"
