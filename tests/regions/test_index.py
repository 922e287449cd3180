"""The index of a graph: it finds what a look at every node would find, and looks at each once."""

from __future__ import annotations

import pytest

import graphgrad as gg
from graphgrad.ops.control import cond
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.trigonometry import sin
from graphgrad.ops.sources import placeholder
from graphgrad.regions.index import Index, bodies_of, has_gradient, index_of
from graphgrad.regions.select import as_selection, select

from ..differentiate.helpers import calls_of, default, scaled
from ..interrupting import interrupted, places


def everything(graph):
    """What an index of the graph says, from a look at every node."""
    forward = [n for n in graph.nodes if n.origin is None and has_gradient(n)]
    return {
        "forward": forward,
        "types": {t: [n for n in forward if n.type == t] for t in {n.type for n in forward}},
        "stamped": [n for n in graph.nodes if n.stamp is not None],
        "readers": {
            n: [r for r in graph.nodes if any(t.node is n for t in r.inputs)] for n in graph.nodes
        },
    }


def known(graph):
    index = index_of(graph)
    return {
        "forward": index.forward,
        "types": index.types,
        "stamped": [n for n in index.stamped if n.stamp is not None],
        "readers": {n: index.readers_of([n]) for n in graph.nodes},
    }


def test_it_knows_what_a_look_at_every_node_would_show(graph):
    x = y = placeholder(())
    for i in range(4):
        with gg.gradient_override_map({"Sin": scaled(2.0)}):
            y = sin(y) * x
        y = cond(y > 0, lambda y=y: exp(y), lambda y=y: y) * 1.0
        assert known(graph) == everything(graph)
        dx = gg.gradients(y, x, overrides={"Sin": default})
        graph.mark(select.nodes(y).each(), scaled(1.0))
        if i:
            graph.unmark(select.nodes(y).each())
        assert known(graph) == everything(graph)
        y = y + dx * 0.0
    for body in bodies_of(graph):
        assert known(body) == everything(body)
    assert len(bodies_of(graph)) == 9


def test_nodes_are_looked_at_once(monkeypatch):
    looked = []
    take_in = Index.take_in

    def counting(index):
        looked.append(len(index.graph.nodes) - index.seen)
        take_in(index)

    monkeypatch.setattr(Index, "take_in", counting)
    with gg.Graph() as graph:
        x = y = placeholder(())
        for _ in range(50):
            y = sin(exp(y))
            gg.gradients(y, x, overrides={"Sin": default, select.name("nobody", "Exp*"): default})
        index_of(graph)
    assert sum(looked) == len(graph)


SELECTIONS = {
    "op": lambda x, y: select.op("Sin") & y.node,
    "name": lambda x, y: select.name("there", "Sin_1"),
    "scope": lambda x, y: select.scope("enc"),
    "between": lambda x, y: select.between(x, y),
    "nodes": lambda x, y: select.nodes(y),
    "pattern": lambda x, y: select.pattern(("Sin", None)),
    "node": lambda x, y: as_selection(y.node),
}


@pytest.mark.parametrize("kind", SELECTIONS)
def test_S37_a_selection_looks_at_what_is_new_alone(kind):
    def cost(n):
        with gg.Graph() as graph:
            with gg.name_scope("enc"):
                x = placeholder(())
                y = sin(x)
            z = gg.identity(y, name="there")
            selection = SELECTIONS[kind](x, y)

            def once():
                exp(exp(z))
                assert len(selection.find(graph)) in (1, 2)

            return calls_of(lambda: [once() for _ in range(n)])

    assert cost(100) < 1.3 * 4 * cost(25)


def test_an_interrupted_look_takes_nothing_in_twice():
    def look(graph):
        index_of(graph).readers_of(graph.nodes)
        return as_selection(select.op("Sin")).find(graph)

    def built():
        with gg.Graph() as graph:
            x = placeholder(())
            with gg.gradient_override_map({"Sin": default}):
                y = sin(x) * sin(x)
            cond(y > 0.0, lambda: sin(y), lambda: exp(y))
        return graph

    graph = built()
    found = [p for p in places(lambda: look(graph)) if p.code[0].endswith("index.py")]
    assert len(found) > 20
    for place in found:
        graph = built()
        assert interrupted(lambda graph=graph: look(graph), place)
        assert [n.type for n in look(graph)] == ["Sin"] * 3
        index, want = index_of(graph), everything(graph)
        assert (index.forward, index.types) == (want["forward"], want["types"]), place
        readers = {n: index.readers.get(n, []) for n in graph.nodes}
        assert (readers, [*index.stamped]) == (want["readers"], want["stamped"]), place
        assert len(index.runs) == 2
