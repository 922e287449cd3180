"""Graphs as flat lists, and which rules hold on to tensors."""

import functools
import pickle

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.errors import GraphError
from graphgrad.base.position import full
from graphgrad.ir.flat import closes_over, flatten_graph, holds, restore_graph
from graphgrad.ir.verify import verify_graph


@pytest.fixture
def graph():
    with gg.Graph("g") as g:
        yield g


def restored(graph):
    """The graph through bytes: nothing of the old one can be in it."""
    return restore_graph(gg.Graph(), pickle.loads(pickle.dumps(flatten_graph(graph))))


def default(site, *dys):
    """A rule that holds nothing, by a name that pickle finds."""
    return site.default(*dys)


# --- there and back ------------------------------------------------------------------------------


def test_every_field_of_every_node_and_region_comes_back(graph):
    x = gg.placeholder(("N", 4), name="x")
    v = gg.variable(np.ones(4), name="v")
    graph.state[v] = [1.0, 2.0, 3.0, 4.0]
    with gg.name_scope("a"), gg.override_gradient(default, scale=2.0) as outer:
        h = gg.tanh(x * v)
        with gg.override_gradient(default, order="through", escape="default"):
            a, b = gg.split(h, 2, axis=1)
        outer.declare(inputs=[v, x])
    with gg.gradient_override_map({"Exp": "Identity"}):
        y = gg.sum(gg.exp(a * b))
    gg.gradients([y], [x, v])
    new = restored(graph)
    verify_graph(new)
    assert (new.name, len(new)) == ("g", len(graph))
    for n, m in zip(graph.nodes, new.nodes, strict=True):
        assert (m.graph, m.op.type, m.attrs.keys()) == (new, n.op.type, n.attrs.keys())
        assert m.op is n.op or n.op.type in ("Constant", "Residual", "Variable")
        for field in ("index", "name", "scope", "stamp", "where"):
            assert getattr(m, field) == getattr(n, field), field
        assert full(m.position) == full(n.position)
        for tensors, others in [(m.inputs, n.inputs), (m.outputs, n.outputs)]:
            assert [(t.name, t.type) for t in tensors] == [(t.name, t.type) for t in others]
            assert all(t.graph is new for t in tensors)
        assert (m.region and m.region.index) == (n.region and n.region.index)
        assert [c.index for c in m.controls] == [c.index for c in n.controls]
        assert repr(m.origin) == repr(n.origin)
    for r, s in zip(graph.regions, new.regions, strict=True):
        for field in ("rule", "kind", "attrs", "escape", "order", "late", "index", "where", "name"):
            assert getattr(s, field) == getattr(r, field), field
        assert (s.parent and s.parent.index) == (r.parent and r.parent.index)
        assert (s.graph, s.open) == (new, False)
        for pinned in ("pinned_inputs", "pinned_outputs"):
            assert repr(getattr(s, pinned)) == repr(getattr(r, pinned))
        assert repr(s.settled) == repr(r.settled)
    assert new.state[new.tensor("v")].tolist() == [1.0, 2.0, 3.0, 4.0]
    assert new.node("a/Tanh_3") is new.nodes[3]


def test_what_gradients_left_on_the_graph_comes_back(graph):
    """Calls of rules, regions that they opened, groups that a call named, what was marked later."""

    def rule(site, dy):
        with gg.override_gradient("Identity"):
            dx = gg.sin(dy)
        return dx * site.outputs[0]

    x = gg.placeholder((), name="x")
    y = gg.exp(gg.tanh(x))
    z = gg.cos(gg.exp(y))
    graph.mark(gg.select.nodes([y.node]), rule)
    named = gg.select.nodes([z.node, z.node.inputs[0].node])
    gg.gradients([z], [x], overrides={named: default})
    z.node.controls = (x.node,)
    flat = flatten_graph(graph, lambda rule, owner: "Identity")
    new = restore_graph(gg.Graph(), pickle.loads(pickle.dumps(flat)))
    verify_graph(new)
    calls = {
        n.origin: m.origin for n, m in zip(graph.nodes, new.nodes) if hasattr(n.origin, "outer")
    }
    assert calls
    for call, other in calls.items():
        assert (other.rule, other.site.index) == (call.rule, call.site.index)
        assert {t.name for t in other.outer} == {t.name for t in call.outer}
    assert any(call.outer for call in calls)
    assert [r.index for r in new.scattered] == [r.index for r in graph.scattered] != []
    opened = [(r.index, r.origin.rule, r.origin.site.index) for r in graph.regions if r.origin]
    assert opened == [
        (r.index, r.origin.rule, r.origin.site.index) for r in new.regions if r.origin
    ]
    assert opened
    assert all(r.graph is new for r in new.regions)
    for r, s in zip(graph.regions, new.regions, strict=True):
        assert (r.group and r.group.label) == (s.group and s.group.label)
        if r.group is not None:
            assert [t.name for t in s.group.tensors] == [t.name for t in r.group.tensors] != []
            assert all(t.graph is new for t in s.group.tensors)
    assert any(r.group for r in new.regions)
    assert new.nodes[z.node.index].controls == (new.nodes[0],)


def test_the_copy_has_nothing_in_common_that_changes(graph):
    x = gg.placeholder((), name="x")
    v = gg.variable(np.ones(2), name="v")
    graph.state[v] = [3.0, 4.0]
    with gg.override_gradient("Identity", scale=2.0):
        gg.tanh(x)
    flat = flatten_graph(graph)
    new = restore_graph(gg.Graph(), flat)
    new.regions[0].attrs["scale"] = 5.0
    new.state[new.tensor("v")] = [5.0, 6.0]
    with new:
        gg.exp(new.tensor("x"))
    assert graph.regions[0].attrs == {"scale": 2.0}
    assert graph.state[v].tolist() == [3.0, 4.0]
    assert len(graph) == 3
    again = restore_graph(gg.Graph(), flat)
    assert (len(again), again.regions[0].attrs) == (3, {"scale": 2.0})


def test_names_go_on_where_they_were(graph):
    gg.placeholder((), name="x")
    new = restored(graph)
    with new:
        assert gg.placeholder((), name="x").node.name == "x_1"


def test_a_rule_that_holds_tensors_cannot_leave_unless_it_is_carried(graph):
    x, k = gg.placeholder((), name="x"), gg.placeholder((), name="k")
    with gg.override_gradient(lambda site, dy: dy * k):
        gg.tanh(x)
    with pytest.raises(GraphError, match=r"the rule of <region .*test_flat.py:.* cannot leave it"):
        flatten_graph(graph)
    asked = []
    flat = flatten_graph(graph, lambda rule, owner: asked.append(owner) or "Identity")
    assert asked == graph.regions
    assert restore_graph(gg.Graph(), flat).regions[0].rule == "Identity"


def test_a_long_chain_does_not_recurse(graph):
    t = gg.placeholder((), name="x")
    for _ in range(10_000):
        t = gg.tanh(t)
    new = restored(graph)
    assert len(new) == 10_001
    assert new.nodes[-1].inputs[0].node is new.nodes[-2]


# --- what a rule holds on to ---------------------------------------------------------------------

OUTSIDE = {}
"""A global that a rule below reads."""


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held

    def __call__(self, site, dy):
        return dy * self.held


class Text(Slotted):
    __slots__ = "more"

    def __init__(self, held):
        self.held, self.more = 2.0, held

    def __call__(self, site, dy):
        return dy * self.more


class Bound:
    def __init__(self, held):
        self.held = held

    def rule(self, site, dy):
        return dy * self.held


def by_closure(k):
    return lambda site, dy: dy * k


def by_closure_of_a_closure(k):
    def inner(dy):
        return dy * k

    return lambda site, dy: inner(dy)


def by_containers(k):
    held = {"a": [(0, {"k": k})]}
    return lambda site, dy: dy * held["a"][0][1]["k"]


def by_default(k):
    def rule(site, dy, k=k):
        return dy * k

    return rule


def by_keyword_default(k):
    def rule(site, dy, *, k=k):
        return dy * k

    return rule


def by_partial(k):
    return functools.partial(lambda k, site, dy: dy * k, k)


def by_partial_keyword(k):
    return functools.partial(lambda site, dy, k: dy * k, k=k)


def by_attribute(k):
    def rule(site, dy):
        return dy * rule.k

    rule.k = k
    return rule


def by_global(k):
    OUTSIDE["k"] = k
    return lambda site, dy: dy * OUTSIDE["k"]


def by_global_in_a_nested_function(k):
    OUTSIDE["k"] = k
    return lambda site, dy: (lambda: dy * OUTSIDE["k"])()


WAYS = [
    by_closure,
    by_closure_of_a_closure,
    by_containers,
    by_default,
    by_keyword_default,
    by_partial,
    by_partial_keyword,
    by_attribute,
    by_global,
    by_global_in_a_nested_function,
    Slotted,
    Text,
    lambda k: Bound(k).rule,
]


@pytest.fixture(autouse=True)
def nothing_outside():
    yield
    OUTSIDE.clear()


@pytest.mark.parametrize("way", WAYS)
def test_a_tensor_that_a_rule_holds_in_any_way_is_seen(graph, way):
    x, k = gg.placeholder((), name="x"), gg.placeholder((), name="k")
    node = gg.tanh(x).node
    assert k in list(holds(way(k)))
    assert closes_over(way(k), node)
    assert list(holds(way(2.0))) == []
    assert not closes_over(way(2.0), node)


@pytest.mark.parametrize("way", WAYS)
def test_such_a_rule_means_the_same_in_a_copy(graph, way):
    x, k = gg.placeholder((), name="x"), gg.placeholder((), name="k")
    with gg.override_gradient(way(k)):
        y = gg.tanh(x)
    new = graph.copy()
    x, k, y = new.tensor("x"), new.tensor("k"), new.nodes[y.node.index].outputs[0]
    with new:
        (dx,) = gg.gradients([y], [x])
    assert gg.evaluate(dx, {x: 2.0, k: 3.0}) == 3.0


def test_what_a_custom_gradient_returned_is_taken_for_a_closure(graph):
    @gg.custom_gradient
    def f(x):
        return gg.tanh(x), by_closure(2.0)

    f(gg.placeholder(()))
    (region,) = graph.regions
    assert closes_over("Identity", region)
    assert not closes_over("Identity", graph.nodes[0])


def test_nodes_and_regions_count_as_what_is_held(graph):
    node = gg.tanh(gg.placeholder(())).node
    with gg.override_gradient("Identity") as region:
        gg.tanh(node.outputs[0])
    assert list(holds(by_closure([node, {region}]))) == [node, region]


def test_a_rules_own_jvp_holds_too(graph):
    k = gg.placeholder((), name="k")

    class Rule:
        fn = staticmethod(by_closure(2.0))
        jvp = staticmethod(by_closure(k))

    assert list(holds(Rule())) == [k]


def test_containers_and_functions_that_hold_themselves_come_to_an_end(graph):
    k = gg.placeholder((), name="k")
    circle = [k]
    circle.append(circle)

    def rule(site, dy):
        return rule, circle

    assert list(holds(rule)) == [k]


def test_a_name_that_is_not_bound_yet_holds_nothing():
    def rule(site, dy):
        return later

    assert list(holds(rule)) == []
    later = 1
