"""Columns: a mark is edited after a journey, there or at home.

What is edited there counts there, as on any graph; what is edited at home counts at home alone.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import graphgrad as gg
from graphgrad.ir.node import rule_name
from graphgrad.ir.verify import verify_graph
from graphgrad.regions.select import members_of, nodes_of

from .overrides import AsItIs, Made, Override
from .spelled import Spelling
from .transforms import (
    EXAMPLES,
    WEIGHTS,
    Body,
    Journey,
    Pairs,
    Spell,
    Transform,
    X,
    by_example,
    first,
    known,
    marked,
    pairs,
    plainly,
    recomputed,
    second,
    stay,
    through_file,
    times_weights_too,
    world,
)


def times_inputs(ins: Any, *dys: Any) -> list[Any]:
    """The gradients of another rule: for input i, (2 + i) x dy, where it has the shape of dy."""
    dy = sum(d for d in dys if d is not None)
    return [(2.0 + i) * x * dy if x.shape == dy.shape else 0.0 * x for i, x in enumerate(ins)]


def another(site: Any, *dys: Any) -> Any:
    """That rule."""
    found = times_inputs([x for x in site.inputs if x.type.differentiable], *dys)
    gives = iter(found)
    return [next(gives) if x.type.differentiable else gg.NO_GRAD for x in site.inputs]


# --- where ----------------------------------------------------------------------------------------


def site_of(row: Override, graph: gg.Graph) -> Any:
    """The one outermost site of the row, found again in the graph in which it is now."""
    if row.name == "BlackBox":
        (site,) = (n for n in graph.nodes if n.type in ("PyFunction", "PerExample"))
        return site
    regions = [r for r in graph.regions if members_of(r) and not is_checkpoint(r)]
    outer = [r for r in regions if r.parent not in regions]
    stamped = [n for n in graph.nodes if n.stamp is not None and n.type == row.op_type]
    (site,) = [*outer, *stamped]
    return site


def is_checkpoint(region: Any) -> bool:
    return rule_name(region.rule) == "gg.rules.checkpoint"


def inner_of(row: Override, site: Any) -> Any:
    """What is marked inside: the first node of a type; of a site that is an op, one next to it."""
    if row.name == "BlackBox":
        return next(n for n in site.graph.nodes if site.outputs[0] in set(n.inputs))
    if row.op_type:
        return next(t.node for t in reads(site) if t.node.type == row.inner_type)
    return next(n for n in members_of(site) if n.type == row.inner_type)


def reads(site: Any) -> list[Any]:
    return [t for n in nodes_of(site) for t in n.inputs]


# --- how, and what it means -----------------------------------------------------------------------


@dataclass(frozen=True)
class Edit:
    """A change of what is marked, and what the program means then."""

    act: Callable[[Override, gg.Graph], Any]
    spell: Spell


def _take_off(row: Override, graph: gg.Graph) -> None:
    graph.unmark(site_of(row, graph))


def _without(row: Override, h: Any, k: Any, spelling: Spelling) -> Made:
    made = row.bare(h, row.prepared(k), spelling)
    made.ys = row.outside(made.raws)
    return made


def _replace(row: Override, graph: gg.Graph) -> None:
    graph.mark(site_of(row, graph), another, replace=True, allow_inside=True)


def _replaced(row: Override, h: Any, k: Any, spelling: Spelling) -> Made:
    made = row.bare(h, row.prepared(k), spelling)
    made.ys = row.placed(made, spelling, lambda *dys: times_inputs(made.ins, *dys))
    return made


def _mark_inside(row: Override, graph: gg.Graph) -> None:
    graph.mark(inner_of(row, site_of(row, graph)), another, allow_inside=True)


def _marked_inside(row: Override, h: Any, k: Any, spelling: Spelling) -> Made:
    return row.spelled(h, k, spelling, Placed(spelling))


class Placed(AsItIs):
    """The node inside has the other rule."""

    def __init__(self, spelling: Spelling) -> None:
        self.spelling = spelling

    def __call__(self, t: Any, *ins: Any) -> Any:
        self.ins = ins
        (y,) = self.spelling.place(ins, [t], lambda dy: times_inputs(ins, dy))
        return y

    def back(self, derivative: Any) -> Any:
        return lambda dy: times_inputs(self.ins, dy)


UNMARKED = Edit(_take_off, _without)
REPLACED = Edit(_replace, _replaced)
INSIDE = Edit(_mark_inside, _marked_inside)


# --- columns --------------------------------------------------------------------------------------


def edited(edit: Edit, go: Journey, body: Body = marked) -> Transform:
    """Marked here, carried away, edited there and differentiated."""

    def run(row: Override) -> Pairs:
        with gg.Graph() as g:
            w = world(row, body)
        w = go(g, w)
        edit.act(row, w.x.graph)
        with w.x.graph as there:
            found = plainly(second(w), {w.x: X})
        verify_graph(there)
        return pairs(found, known(row, second, tuple(X), edit.spell))

    return run


def edited_checkpoint(edit: Edit) -> Transform:
    return edited(edit, stay, recomputed)


def edited_batch(edit: Edit) -> Transform:
    """Batched, and edited in the batch."""

    def run(row: Override) -> Pairs:
        with gg.Graph() as g:
            xs = gg.placeholder((2, 3), name="xs")
            losses = gg.vmap(lambda x: world(row, x=x).loss)(xs)
            edit.act(row, g)
            dx = gg.gradients(losses, xs, unconnected="zero")
            ddx = gg.gradients(gg.sum(WEIGHTS * dx), xs, unconnected="zero")
            found = plainly([losses, dx, ddx], {xs: EXAMPLES})
        return pairs(found, by_example(row, times_weights_too, edit.spell))

    return run


def chosen(go: Journey) -> Transform:
    """Carried away, with another rule for some calls: at both orders, and in no other call."""

    def run(row: Override) -> Pairs:
        with gg.Graph() as g:
            w = world(row)
        w = go(g, w)
        with w.x.graph:
            others = replace(w, ask=choosing(row, w.x.graph))
            found = plainly([*second(others), *first(w)], {w.x: X})
        replaced = known(row, second, tuple(X), REPLACED.spell)
        return pairs(found, [*replaced, *known(row, first)])

    return run


def choosing(row: Override, graph: gg.Graph) -> Callable[..., list[Any]]:
    """gradients() with another rule for the site."""
    overrides = {site_of(row, graph): another}

    def ask(ys: Any, xs: Any) -> list[Any]:
        found: list[Any] = gg.gradients(ys, xs, overrides=overrides, unconnected="zero")
        return found

    return ask


def chosen_in_a_batch(row: Override) -> Pairs:
    """The same for a batch, from outside and from within."""
    with gg.Graph() as g:
        xs = gg.placeholder((2, 3), name="xs")

        def one_slope(x: Any) -> Any:
            w = world(row, x=x)
            return choosing(row, x.graph)([w.loss], [x])[0]

        within = gg.vmap(one_slope)(xs)
    with gg.Graph() as g:
        ys = gg.placeholder((2, 3), name="ys")
        losses = gg.vmap(lambda x: world(row, x=x).loss)(ys)
        ask = choosing(row, g)
        (dy,) = ask([losses], [ys])
        found = plainly([losses, dy, *ask([gg.sum(WEIGHTS * dy)], [ys])], {ys: EXAMPLES})
    expected = by_example(row, times_weights_too, REPLACED.spell)
    found += plainly([within], {xs: EXAMPLES})
    return pairs(found, [*expected, expected[1]])


def batch_carried(way: Callable[[gg.Graph, Any, Any], tuple[Any, Any]]) -> Transform:
    """Batched, and carried away."""

    def run(row: Override) -> Pairs:
        with gg.Graph() as g:
            xs = gg.placeholder((2, 3), name="xs")
            losses = gg.identity(gg.vmap(lambda x: world(row, x=x).loss)(xs), name="losses")
        xs, losses = way(g, xs, losses)
        with xs.graph:
            dx = gg.gradients(losses, xs, unconnected="zero")
            ddx = gg.gradients(gg.sum(WEIGHTS * dx), xs, unconnected="zero")
            found = plainly([losses, dx, ddx], {xs: EXAMPLES})
        return pairs(found, by_example(row, times_weights_too))

    return run


def copied(g: gg.Graph, x: Any, y: Any) -> tuple[Any, Any]:
    return by_name(g.copy(), x, y)


def stored(g: gg.Graph, x: Any, y: Any) -> tuple[Any, Any]:
    return by_name(pickle.loads(pickle.dumps(g)), x, y)


def saved(g: gg.Graph, x: Any, y: Any) -> tuple[Any, Any]:
    return by_name(through_file(g), x, y)


def cut_out(g: gg.Graph, x: Any, y: Any) -> tuple[Any, Any]:
    return by_name(g.subgraph([x], [y]), x, y)


def imported(g: gg.Graph, x: Any, y: Any) -> tuple[Any, Any]:
    with gg.Graph():
        there = gg.import_graph(g)
        return there[x], there[y]


def by_name(g: gg.Graph, x: Any, y: Any) -> tuple[Any, Any]:
    return g.tensor(x.name), g.tensor(y.name)


def home_edited(go: Journey) -> Transform:
    """What happens at home afterwards counts there, and changes nothing here."""

    def run(row: Override) -> Pairs:
        with gg.Graph() as g:
            w = world(row)
        there = go(g, w)
        INSIDE.act(row, g)
        with there.x.graph:
            found = plainly(second(there), {there.x: X})
        g.unmark(inner_of(row, site_of(row, g)))
        REPLACED.act(row, g)
        with there.x.graph:
            found += plainly(second(there), {there.x: X})
        with g:
            found += plainly(first(w), {w.x: X})
        here = known(row, first, tuple(X), REPLACED.spell)
        return pairs(found, [*known(row, second), *known(row, second), *here])

    return run


# --- names ----------------------------------------------------------------------------------------


def named_anew(go: Journey, keeps: bool = False) -> Transform:
    """The name is registered anew after a journey, and again as it was; a file keeps its rule."""

    def run(row: Override) -> Pairs:
        with gg.Graph() as g:
            w = world(row)
        w = go(g, w)
        found = []
        with w.x.graph:
            found += plainly(first(w), {w.x: X})
            with registered_anew(row):
                found += plainly(first(w), {w.x: X})
            found += plainly(first(w), {w.x: X})
        return pairs(found, expected_by_name(row, lambda spell: _first(row, spell), keeps))

    return run


def _first(row: Override, spell: Spell | None) -> list[Any]:
    return known(row, first) if spell is None else known(row, first, tuple(X), spell)


def named_anew_in_a_batch(row: Override) -> Pairs:
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")
        losses = gg.vmap(lambda x: world(row, x=x).loss)(xs)
        asked = [gg.gradients(losses, xs, unconnected="zero")]
        with registered_anew(row):
            asked.append(gg.gradients(losses, xs, unconnected="zero"))
        asked.append(gg.gradients(losses, xs, unconnected="zero"))
        found = plainly(asked, {xs: EXAMPLES})

    def by_row(spell: Spell | None) -> list[Any]:
        answers = by_example(row, first) if spell is None else by_example(row, first, spell)
        return answers[1:2]

    return pairs(found, expected_by_name(row, by_row))


def expected_by_name(
    row: Override, answers: Callable[[Spell | None], list[Any]], keeps: bool = False
) -> list[Any]:
    """Before, while the name stands for another rule, and after that."""
    changes = has_name(row) and not keeps
    return [*answers(None), *answers(REPLACED.spell if changes else None), *answers(None)]


def has_name(row: Override) -> bool:
    """Whether the row's mark is a name of its own."""
    return row.reference() == f"survival/{row.name}" and gg.is_registered(row.reference())


@contextmanager
def registered_anew(row: Override) -> Iterator[None]:
    """Another rule under the row's name; where it has none, nothing."""
    if not has_name(row):
        yield
        return
    gg.register_gradient(row.reference(), replace=True)(another)
    try:
        yield
    finally:
        row.register()
