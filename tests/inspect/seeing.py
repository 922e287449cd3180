"""Graphs that the tests of pictures show, and what reads a picture back."""

from __future__ import annotations

import html
import re
import warnings
from functools import cache

import networkx as nx
import numpy as np
import pydot
import pyparsing
import pytest

import graphgrad as gg

HOSTILE = [
    'quote " and \\ and \\N',
    "back\\",
    "line\nbreak\r\ttab",
    "</script><!-- &lt; & <b>",
    "bidi \u202e txt \u2066 \u200f",
    "null \x00 esc \x1b[31m",
    "n" * 1000,
    "größe 形 \U0001f600",
    "graph } subgraph { a -> b; // # /*",
    "%s {} {0} \\l\\r\\G",
    "#quot; `md` %%{init}%% ]]> end",
    "e\u0301 \ud800 \u2028",
]
ONE_HOSTILE_NAME = [
    pytest.param(name, id=str(i), marks=() if i in (0, 11) else pytest.mark.ci)
    for i, name in enumerate(HOSTILE)
]
"""By default those with quotes, and of what is not text."""

pyparsing.ParserElement.enable_packrat()  # by which pydot reads twice as fast


def ste(site, dy):
    return tuple(gg.sum_to(gg.where(abs(x) <= 1.0, dy, 0.0), like=x) for x in site.inputs)


def twice(site, *dys):
    return [2.0 * dx for dx in site.default(*dys)]


def marked():
    """sign under a region, exp under a stamp, and the gradients of both."""
    with gg.Graph() as g:
        x = gg.placeholder(("N", 4), "float32", name="x")
        w = gg.variable(np.ones(4, np.float32), name="w")
        with gg.override_gradient(ste):
            s = gg.sign(x * w)
        with gg.gradient_override_map({"Exp": lambda op, dy: gg.maximum(dy, 0.0)}):
            e = gg.exp(s)
        loss = gg.sum(e * 2.0)
        grads = gg.gradients([loss], [x, w])
    return g, loss, grads


def log1pexp(order):
    """log(1 + exp(x)) with a gradient of its own, and its derivatives up to an order."""

    @gg.custom_gradient
    def log1pexp(x):
        e = gg.exp(x)
        return gg.log(1.0 + e), lambda dy: dy * (1.0 - 1.0 / (1.0 + e))

    with gg.Graph():
        x = gg.placeholder((), name="x")
        tensors = [log1pexp(x)]
        for _ in range(order):
            tensors += gg.gradients([tensors[-1]], [x])
    return tensors


def network(layers=2):
    """A network of layers in scopes, the first of them with a straight-through sign."""
    with gg.Graph("network"):
        x = h = gg.placeholder(("batch", 4), "float32", name="x")
        weights = []
        for i in range(layers):
            with gg.name_scope(f"layer{i}"):
                w = gg.variable(np.ones((4, 4), np.float32), name="w")
                h = h @ w
                weights.append(w)
                if i == 0:
                    with gg.override_gradient(ste):
                        h = gg.sign(h)
        with gg.name_scope("loss"):
            loss = gg.mean(h * h)
        grads = gg.gradients(loss, [x, *weights])
    return [loss, *grads]


def nested():
    """A region in a region, inside a scope, differentiated twice."""
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.name_scope("block"), gg.override_gradient(twice):
            a = gg.exp(x)
            with gg.override_gradient(twice):
                b = gg.tanh(a)
            y = b * a
        loss = gg.sum(y)
        (dx,) = gg.gradients([loss], [x])
        (ddx,) = gg.gradients([gg.sum(dx)], [x])
    return [loss, dx, ddx]


def choice():
    """A choice with a region in the one body and a choice in the other, and its gradient."""
    with gg.Graph("choice"):
        x = gg.placeholder((3,), name="x")
        positive = gg.sum(x) > 0

        def then():
            with gg.override_gradient(lambda site, dy: dy * 2.0):
                e = gg.exp(x)
            return e * 2.0

        def other():
            return gg.cond(positive, lambda: gg.sin(x), lambda: x * 3.0)

        loss = gg.sum(gg.cond(positive, then, other))
        return [loss, gg.gradients(loss, x)]


def chain(length, scopes=0):
    """A chain and its gradient, in so many scopes."""
    with gg.Graph():
        x = y = gg.placeholder((3,), name="x")
        for i in range(length):
            with gg.name_scope(f"part{i * scopes // length}") if scopes else gg.name_scope("s"):
                y = gg.exp(y)
        (dx,) = gg.gradients([y], [x])
    return [y, dx]


def hostile(name):
    """A graph in which everything that can have a name has this one."""

    def rule(site, dy):
        return dy * 2.0

    rule.__name__ = name
    plain = name.strip("/").replace("/", "|")
    with gg.Graph(name) as g:
        x = gg.placeholder((name, 3), name=plain)
        with gg.name_scope(plain), gg.override_gradient(rule):
            y = gg.exp(x)
        with gg.gradient_override_map({"Tanh": rule}):
            z = gg.tanh(y)
        gg.gradients([z], [x])
    return g


# --- reading back ------------------------------------------------------------------------------


@cache
def parsed(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pydot's own calls of pyparsing
        (graph,) = pydot.graph_from_dot_data(text)
    return graph


def read(label):
    """What Graphviz shows for a label, its lines joined by line ends."""
    if label.startswith("<"):
        return html.unescape(re.sub(r"<[^>]*>", "", label[1:-1]))
    inside = re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), label[1:-1], flags=re.DOTALL)
    return html.unescape(inside)


def subgraphs(graph):
    found, stack = [], [graph]
    while stack:
        here = stack.pop()
        found.append(here)
        stack += here.get_subgraphs()
    return found


def boxes(graph):
    """Every subgraph cluster by its title, with the ids of the nodes directly inside."""
    found = {}
    for here in subgraphs(graph):
        if here.get_name().startswith("cluster"):
            names = {n.get_name() for n in here.get_nodes()} - {"node", "edge", "graph"}
            found[read(here.get_label())] = names
    return found


def labels(graph):
    """What stands on each node, by its id."""
    return {
        node.get_name(): read(node.get("label"))
        for here in subgraphs(graph)
        for node in here.get_nodes()
        if node.get("label") is not None and node.get("style") != "invis"
    }


def edges(graph):
    return [e for e in graph.get_edges() if e.get("style") != "invis"]


def titled(found, start):
    (names,) = [names for title, names in found.items() if title.startswith(start)]
    return names


def contradiction(text):
    """Nodes that a DOT text puts above each other, both ways; None where there are none."""
    leader = {}

    def find(name):
        while name in leader:
            name = leader[name]
        return name

    for row in re.findall(r"^\{rank=\w+; (.*?) \[style=invis\];\}", text, re.MULTILINE):
        first, *others = row.split(" -> ")
        for name in others:
            if find(name) != find(first):
                leader[find(name)] = find(first)
    above = nx.DiGraph()
    for a, b, rest in re.findall(r"^(\w+) -> (\w+) \[(.*)\];$", text, re.MULTILINE):
        if "constraint=false" not in rest:
            above.add_edge(find(a), find(b))
    try:
        return nx.find_cycle(above)
    except nx.NetworkXNoCycle:
        return None


def inner_region():
    """A rule that opens a region, and reads what is saved in it."""

    def outer(site, dy):
        with gg.override_gradient("Tanh"):
            slope = gg.tanh(site.inputs[0])
        return [dy * slope]

    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        with gg.override_gradient(outer):
            y = gg.exp(x)
        return y, gg.gradients(y, x)
