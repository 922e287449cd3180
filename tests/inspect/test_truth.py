"""Every picture says what is so: read back, and compared with the graph."""

from __future__ import annotations

import random
import re

import pytest

import graphgrad as gg
from graphgrad.inspect.write.svg import can_render
from graphgrad.ir.residual import Residual
from tests.each import together

from .random_nets import random_net
from .seeing import log1pexp, marked, nested, network
from .truth import (
    is_number,
    is_private,
    line_of,
    marks_around,
    names,
    of_dot,
    of_mermaid,
    of_page,
    of_svg,
    of_text,
    rows_of_dot,
    same_boxes,
    shown,
    told,
    type_text,
)


def no_slope(site, *dys):
    """A rule that reads no dy."""
    return [2.0 * gg.ones_like(x) for x in site.inputs]


def twice(site, *dys):
    return [2.0 * dx for dx in site.default(*dys)]


OPS = (
    lambda x, y: x + y,
    lambda x, y: y - x,
    lambda x, y: x * x,
    lambda x, y: x / (y * y + 2.0),
    lambda x, y: 1.0 - x,
    lambda x, y: x - gg.tanh(x),
    lambda x, y: gg.where(x > y, x, y),
    lambda x, y: gg.concat([x, y, x])[1:4],
    lambda x, y: gg.split(gg.sin(x), 3)[1] * y,
    lambda x, y: gg.maximum(x, x),
    lambda x, y: gg.exp(gg.minimum(x, 1.0)),
)


def random_graph(seed):
    """Ops of two things, in regions and scopes within each other, and gradients of two orders."""
    dice = random.Random(seed)
    with gg.Graph():
        xs = [gg.placeholder((3,), name=name) for name in ("x", "y")]
        values = list(xs)

        def some(count):
            for _ in range(count):
                values.append(dice.choice(OPS)(*dice.choices(values[-4:], k=2)))

        for i in range(dice.randint(1, 3)):
            with gg.name_scope(f"part{i}"), gg.override_gradient(dice.choice((twice, no_slope))):
                some(dice.randint(1, 2))
                if dice.random() < 0.5:
                    with gg.override_gradient(dice.choice((twice, no_slope))):
                        some(1)
            some(dice.randint(0, 2))
        loss = gg.sum(values[-1] * values[-2])
        first = [dx for dx in gg.gradients(loss, xs) if dx is not None]
        results = [loss, *first]
        if first and dice.random() < 0.7:
            again = gg.gradients(gg.sum(first[0] * values[-1]), xs)
            results += [dx for dx in again if dx is not None]
    return dice.sample(results, dice.randint(1, len(results)))


GRAPHS = {
    "log1pexp": lambda: log1pexp(2),
    "marked": lambda: [t for ts in marked()[1:] for t in (ts if isinstance(ts, list) else [ts])],
    "nested": nested,
    "network": lambda: network(3),
    **{f"net{seed}": lambda seed=seed: random_net(seed)[0] for seed in range(4)},
    **{f"random{seed}": lambda seed=seed: random_graph(seed) for seed in range(12)},
}


def faults(results):
    """What DOT, page, Mermaid, text and SVG say that is not so."""
    so = told(results)
    dot, chart = (
        make(results, saved_edges=True, collapse="none") for make in (gg.to_dot, gg.to_mermaid)
    )
    tellers = {
        "dot": of_dot(dot, results),
        "page": of_page(gg.to_html(results), results),
        "mermaid": of_mermaid(chart, results),
    }
    for name, tells in tellers.items():
        for fact in ("nodes", "edges"):
            wanted, found = getattr(so, fact), getattr(tells, fact)
            if wanted != found:
                odd = {k: (wanted.get(k), found.get(k)) for k in {*wanted, *found}}
                yield name, fact, {k: v for k, v in odd.items() if v[0] != v[1]}
        if not same_boxes(so.inside, tells.inside):
            yield name, "inside", tells.inside
        if so.counts != tells.counts:
            yield name, "counts", tells.counts
    yield from text_faults(results, so)


def text_faults(results, so):
    made, inside, counts = of_text(results)
    if counts != (len(shown(results)), *so.counts):
        yield "text", "counts", counts
    own = {n.name if n.origin is None else n.name.rpartition("/")[2]: n for n in shown(results)}
    if own.keys() != made.keys():
        yield "text", "nodes", {*own} ^ {*made}
        return
    for name, node in own.items():
        types, op, args, why = made[name]
        if (types, op) != (", ".join(type_text(t.type) for t in node.outputs), node.type):
            yield "text", name, (types, op)
        read = [short(t) for t in node.inputs]
        if read and args.split(", ")[: len(read)] != read:
            yield "text", name, args
        if not why.endswith(line_of(node)):
            yield "text", name, why
        if is_private(node):
            continue
        titles, marks = inside[name], marks_around(node.region, node.origin)
        if len(titles) != len(marks) or not all(map(names, titles, marks)):
            yield "text", name, titles


def short(t):
    """How a listing names what is read."""
    inside = type(t.node.op) is Residual
    while type(t.node.op) is Residual:
        t = t.node.inputs[0]
    name = t.node.name if t.node.origin is None else t.node.name.rpartition("/")[2]
    name = name if len(t.node.outputs) == 1 else f"{name}:{t.index}"
    return f"~{name}" if inside else name


def svg_faults(results):
    """Edges that are not drawn, and nodes that stand in other boxes than the DOT text says."""
    dot = gg.to_dot(results, saved_edges=True, collapse="none")
    edges, inside = of_svg(gg.to_svg(results, saved_edges=True, collapse="none"))
    wanted = told(results).edges
    place = {n.name: f"n{n.index}" for n in shown(results)}
    ends = {frozenset((place[a], place[b])) for a, b, _ in wanted if not a.startswith("=")}
    numbers = {f"n{n.index}" for n in shown(results) if is_number(n)}
    found = {frozenset(pair) for pair in edges if not numbers.intersection(pair)}
    if found != ends:
        yield "svg", "edges", found ^ ends
    for around, row in rows_of_dot(dot):
        found = re.match(r"(n\d+(?:_\d+)?) \[label", row)
        if found and inside[found[1]] != {box for box, _ in around}:
            yield "svg", found[1], inside[found[1]]


@together([(name,) for name in GRAPHS])
def test_pictures_say_what_is_so(name):
    assert list(faults(GRAPHS[name]())) == []


@pytest.mark.ci
@together([(seed,) for seed in range(100, 190)])
def test_pictures_of_random_graphs_say_what_is_so(seed):
    assert list(faults(random_graph(seed))) == []


@pytest.mark.ci
@pytest.mark.skipif(not can_render(), reason="no Graphviz")
@together([(name,) for name in GRAPHS])
def test_what_is_laid_out_is_what_is_so(name):
    assert list(svg_faults(GRAPHS[name]())) == []


def test_a_comparison_counts_what_there_is():
    results = network()
    plain = gg.gradients(results[0], results[0].graph.tensor("x"), overrides="none")
    difference = gg.graph_diff([results[0], plain], results)
    assert difference.removed
    heads = [gg.graph_text(shown).splitlines()[0] for shown in (difference, results)]
    assert heads[0] == heads[1]
    assert gg.summary(difference).total.nodes == gg.summary(results).total.nodes
