"""The first columns: what may happen to an override between its mark and its gradient.

Each returns pairs (found, expected): arrays that were computed through the override, and what its
meaning, spelled out in a plain graph, gives.
"""

from __future__ import annotations

import copy
import functools
import pickle
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import graphgrad as gg
from graphgrad import rules
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.execute.loading import load_backend
from graphgrad.ir.program import Program
from graphgrad.ir.verify import verify_graph

from .overrides import Made, Override
from .spelled import Spelling

X = np.array([0.4, -0.7, 1.1])
EXAMPLES = np.array([[0.4, -0.7, 1.1], [-0.2, 0.9, 0.5]])
SEEDS = np.array([[1.0, -0.5, 2.0], [0.3, 0.8, -0.6]])
BESIDE = np.array([0.3, 0.2, -0.4])
DIRECTION = np.array([0.6, -1.0, 0.8])
WEIGHTS = np.array([0.7, -1.2, 0.4])
FED = np.array([0.25, -0.5, 0.75])

Pairs = list[tuple[Any, Any]]
Transform = Callable[[Override], Pairs]
Body = Callable[[Override, Any, Any], Made]


@dataclass
class World:
    """A program with an override in its middle.

    x     what goes in
    h     what the override reads
    made  what the override built
    loss  quadratic in what it gives, so that gradients arrive that depend on it; h goes past it
    ask   gradients(ys, xs, seeds), by marks or by meaning
    """

    x: Any
    h: Any
    made: Made
    loss: Any
    ask: Callable[..., list[Any]]

    @property
    def wrt(self) -> list[Any]:
        """What gradients are asked for."""
        return [self.x, *self.made.extra]

    @property
    def ys(self) -> list[Any]:
        """What is read of the override."""
        return self.made.ys

    def moved(self, to: Callable[[Any], Any]) -> World:
        """The same, of another graph."""
        made = replace(
            self.made, ys=[to(y) for y in self.ys], extra=[to(t) for t in self.made.extra]
        )
        return World(to(self.x), to(self.h), made, to(self.loss), self.ask)


def asked(ys: Any, xs: Any, seeds: Any = None) -> list[Any]:
    """By marks: zeros where nothing flows, as in the spelling."""
    found: list[Any] = gg.gradients(ys, xs, seeds, unconnected="zero")
    return found


def before(x: Any) -> tuple[Any, Any]:
    """What the override reads, of the input."""
    return 0.5 * x * x + x, np.cos(x)


def behind(h: Any, ys: Sequence[Any]) -> Any:
    """The loss."""
    terms = [gg.sum(seed * y * y) for seed, y in zip(SEEDS, ys)]
    return functools.reduce(lambda a, b: a + b, terms, gg.sum(BESIDE * h))


def marked(row: Override, h: Any, k: Any) -> Made:
    """As the user marks it."""
    return row.marked(h, k)


def world(row: Override, body: Body = marked, x: Any = None) -> World:
    """The program with the override built by a body, in the current graph."""
    x = gg.placeholder((3,), name="x") if x is None else x
    h, k = before(x)
    made = body(row, h, k)
    return World(x, h, made, gg.identity(behind(h, made.ys), name="loss"), asked)


Spell = Callable[[Override, Any, Any, Spelling], Made]
"""How the middle of the program is spelled out."""


def by_its_meaning(row: Override, h: Any, k: Any, spelling: Spelling) -> Made:
    """As it was marked."""
    return row.spelled(h, k, spelling)


def spelled(row: Override, spell: Spell = by_its_meaning) -> World:
    """The program with the meaning of the override, in the current graph."""
    spelling = Spelling()
    found = world(row, lambda row, h, k: spell(row, h, k, spelling))
    found.ask = spelling.gradients
    return found


def orders(w: World, count: int) -> list[Any]:
    """The loss and its derivatives; each order is of the weighted sum of the one before."""
    found, y = [w.loss], w.loss
    for _ in range(count):
        dxs = w.ask([y], w.wrt)
        found += dxs
        y = gg.sum(WEIGHTS * dxs[0])
        for dx in dxs[1:]:
            y = y + 0.9 * dx
    return found


Question = Callable[[World], list[Any]]


@functools.cache
def known(
    row: Override,
    question: Question,
    x: tuple[float, ...] = tuple(X),
    spell: Spell = by_its_meaning,
) -> list[Any]:
    """The answer to a question by meaning."""
    try:
        with gg.Graph():
            w = spelled(row, spell)
            return plainly(question(w), {w.x: np.array(x)})
    except gg.GraphGradError as error:
        raise AssertionError(f"the reference of {row.name} is at fault: {error}") from error


def first(w: World) -> list[Any]:
    """The loss and its gradient."""
    return orders(w, 1)


def second(w: World) -> list[Any]:
    """And the second order."""
    return orders(w, 2)


def third(w: World) -> list[Any]:
    """And the third."""
    return orders(w, 3)


def plainly(tensors: Sequence[Any], feeds: Mapping[Any, Any]) -> list[Any]:
    """Values by NumPy's functions, one node after the other: no plan, nothing compiled."""
    graph = tensors[0].graph
    variables = [n for n in graph.nodes if n.type == "Variable"]
    program = Program([*feeds, *(n.outputs[0] for n in variables)], tensors)
    run = one_call_per_node(program, Kernels(np))
    return list(run(*feeds.values(), *graph.state.read(variables)))


def ran(tensors: list[Any], w: World) -> list[Any]:
    """Values, every node run as it was built."""
    found: list[Any] = gg.evaluate(tensors, {w.x: X})
    return found


def pairs(found: Sequence[Any], expected: Sequence[Any]) -> Pairs:
    """Side by side."""
    assert len(found) == len(expected)
    return list(zip(found, expected))


def by_marks(row: Override, question: Question = first, body: Body = marked) -> Pairs:
    """A question by marks against the same by meaning."""
    with gg.Graph() as g:
        w = world(row, body)
        found = ran(question(w), w)
    verify_graph(g)
    return pairs(found, known(row, question))


# --- questions --------------------------------------------------------------------------------


def gradients(row: Override) -> Pairs:
    return by_marks(row)


def second_order(row: Override) -> Pairs:
    return by_marks(row, second)


def third_order(row: Override) -> Pairs:
    return by_marks(row, third)


def grad_ys(row: Override) -> Pairs:
    return by_marks(row, seeded)


def seeded(w: World) -> list[Any]:
    """Seeds of one's own for what the override gives."""
    return w.ask(w.ys, w.wrt, [gg.constant(seed) for seed in SEEDS[: len(w.ys)]])


def stop_gradients(row: Override) -> Pairs:
    """Stopped at h, h still gets its own gradient and x nothing; stopped at ys, what goes past."""
    with gg.Graph():
        w = world(row)
        stops = [w.h, *row_stops(w)]
        at_h = gg.gradients(w.loss, [w.x, w.h], stop_gradients=stops, unconnected="zero")
        at_y = gg.gradients(w.loss, w.wrt, stop_gradients=w.ys, unconnected="zero")
        found = ran([*at_h, *at_y], w)
    beside = BESIDE * (1.0 + X)
    expected = [np.zeros(3), known(row, partial_of_h)[0], beside, *[0.0 for _ in w.made.extra]]
    return pairs(found, expected)


def row_stops(w: World) -> list[Any]:
    """What else comes from x: the second input, where there is one."""
    return [w.made.k] if w.made.k is not None else [t for t in w.made.ins[1:] if t is not w.h]


def partial_of_h(w: World) -> list[Any]:
    """The gradient with respect to h."""
    return w.ask([w.loss], [w.h])


def fan_out(row: Override) -> Pairs:
    """What arrives on two paths is added before the rule sees it."""
    return by_marks(row, fanned)


def fanned(w: World) -> list[Any]:
    terms = [gg.sum(seed * (3.0 * y + 4.0 * y)) for seed, y in zip(SEEDS, w.ys)]
    return w.ask(terms, w.wrt)


Journey = Callable[[gg.Graph, World], World]


def stay(g: gg.Graph, w: World) -> World:
    return w


def one_of_two(go: Journey = stay, body: Body = marked) -> Transform:
    """Only one of the outputs gets a gradient, after a journey or without one."""

    def run(row: Override) -> Pairs:
        found: list[Any] = []
        expected: list[Any] = []
        for question in (of_the_first, of_the_last):
            with gg.Graph() as g:
                w = world(row, body)
            w = go(g, w)
            with w.x.graph:
                found += plainly(question(w), {w.x: X})
            expected += known(row, question)
        return pairs(found, expected)

    return run


def of_the_first(w: World) -> list[Any]:
    return of_one(w, 0)


def of_the_last(w: World) -> list[Any]:
    return of_one(w, -1)


def of_one(w: World, place: int) -> list[Any]:
    """Both orders of a loss that reads one output alone."""
    dxs = w.ask([gg.sum(SEEDS[place] * w.ys[place] * w.ys[place])], w.wrt)
    return [*dxs, *w.ask([gg.sum(WEIGHTS * dxs[0])], w.wrt)]


def jvp_one_of_two(row: Override) -> Pairs:
    """One input moves, the other one does not: what h gives alone, and what k does."""
    with gg.Graph():
        w = world(row)
        found = ran([t for x in moving(w) for t in gg.jvp(w.ys, [x], [DIRECTION])], w)
    if hasattr(row, "tangent"):
        return pairs(found, [row.tangent(DIRECTION)])
    rows = known(row, rows_of_each)
    return pairs(found, [np.array(rows[i : i + 3]) @ DIRECTION for i in range(0, len(rows), 3)])


def moving(w: World) -> list[Any]:
    """The inputs of the override that a tangent of three elements fits."""
    return [t for t in w.made.ins if t.shape == (3,)]


def rows_of_each(w: World) -> list[Any]:
    """The same with respect to each input."""
    return [w.ask(w.ys, [t], seeds)[0] for t in moving(w) for seeds in units(w)]


def hidden_fed(row: Override) -> Pairs:
    """A value inside the site is fed: the rule and what it reads see what was fed."""
    found = []
    for make in (world, spelled):
        with gg.Graph() as g:
            w = make(row)
            feeds = {w.x: X, w.made.m: FED}
            answers = first(w)
            found.append(gg.evaluate(answers, feeds))
            found.append(gg.Session(g).run(answers, feeds))
    by_evaluate, by_session, expected, again = found
    return pairs([*by_evaluate, *by_session], [*expected, *again])


def jvp(row: Override) -> Pairs:
    with gg.Graph():
        w = world(row)
        found = ran(jvp_of(w), w)
    return pairs(found, tangents(row))


def jvp_of(w: World) -> list[Any]:
    """The tangents of what the override gives."""
    found: list[Any] = gg.jvp(w.ys, [w.x], [DIRECTION])
    return found


def tangents(row: Override, x: Any = X) -> list[Any]:
    """What they are by meaning: the rule's own, or the matrix that the rule gives, times dx."""
    if hasattr(row, "tangent"):
        return [row.tangent((1.0 + x) * DIRECTION)]
    rows = known(row, transposed_rows, tuple(x))
    return [np.array(rows[i : i + 3]) @ DIRECTION for i in range(0, len(rows), 3)]


def transposed_rows(w: World) -> list[Any]:
    """The rule as a linear function of the gradients of all outputs, which all arrive."""
    return [w.ask(w.ys, [w.x], seeds)[0] for seeds in units(w)]


def units(w: World) -> list[list[Any]]:
    """For each element of each output: that one is 1 and all others 0."""
    eye = np.eye(3 * len(w.ys)).reshape(-1, len(w.ys), 3)
    return [[gg.constant(seed) for seed in seeds] for seeds in eye]


def jvp_after_copy(row: Override) -> Pairs:
    """Forward mode of a copy."""
    with gg.Graph() as g:
        w = world(row)
    w = w.moved(by_index(g.copy()))
    with w.x.graph:
        found = ran(jvp_of(w), w)
    return pairs(found, tangents(row))


def jvp_after_import(row: Override) -> Pairs:
    """Forward mode of what was imported."""
    with gg.Graph() as g:
        w = world(row)
    with gg.Graph():
        w = brought_in(g, w)
        found = ran(jvp_of(w), w)
    return pairs(found, tangents(row))


def jvp_after_pickle(row: Override) -> Pairs:
    """Forward mode of what was stored."""
    return jvp_after(row, stored)


def jvp_after_file(row: Override) -> Pairs:
    """Forward mode of what was saved."""
    return jvp_after(row, saved)


def jvp_after(row: Override, go: Journey) -> Pairs:
    """Forward mode of what was carried away."""
    with gg.Graph() as g:
        w = world(row)
    w = go(g, w)
    with w.x.graph:
        found = ran(jvp_of(w), w)
    return pairs(found, tangents(row))


def jvp_of_gradients(row: Override) -> Pairs:
    """Forward over reverse."""
    with gg.Graph():
        w = world(row)
        (dx,) = asked([w.loss], [w.x])
        found = ran([gg.jvp(dx, w.x, DIRECTION)], w)
    if hasattr(row, "tangent"):
        return pairs(found, [tangent_of_gradient(row)])
    return pairs(found, [np.array(known(row, hessian_rows)) @ DIRECTION])


def tangent_of_gradient(row: Any) -> Any:
    """By hand, where forward mode is not the transpose: dx = h' R(dy), dy = 2 seed y."""
    y = np.exp(np.sin(before(X)[0]))
    g, dg = 2.0 * SEEDS[0] * y, 2.0 * SEEDS[0] * row.tangent((1.0 + X) * DIRECTION)
    (r,) = row.meaning(None, None, g)
    return DIRECTION * (BESIDE + r) + (1.0 + X) * row.change(g, dg)


def vmap_of_jvp(row: Override) -> Pairs:
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")
        found = gg.evaluate(gg.vmap(lambda x: jvp_of(world(row, x=x)))(xs), {xs: EXAMPLES})
    return pairs(found, [np.stack(ts) for ts in zip(*(tangents(row, x) for x in EXAMPLES))])


def jvp_of_vmap(row: Override) -> Pairs:
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")
        ys = gg.vmap(lambda x: world(row, x=x).ys)(xs)
        found = gg.evaluate(gg.jvp(ys, xs, np.stack([DIRECTION] * 2)), {xs: EXAMPLES})
    return pairs(found, [np.stack(ts) for ts in zip(*(tangents(row, x) for x in EXAMPLES))])


def jacobian_rows(w: World) -> list[Any]:
    """The rule, asked for one element at a time."""
    return [
        w.ask([y], [w.x], [gg.constant(np.eye(3)[place])])[0] for y in w.ys for place in range(3)
    ]


def jacobian(row: Override) -> Pairs:
    with gg.Graph():
        w = world(row)
        found = ran([gg.jacobian(y, w.x, unconnected="zero") for y in w.ys], w)
    rows = known(row, jacobian_rows)
    return pairs(found, [np.array(rows[i : i + 3]) for i in range(0, len(rows), 3)])


def hvp(row: Override) -> Pairs:
    with gg.Graph():
        w = world(row)
        found = ran([gg.hvp(w.loss, w.x, WEIGHTS, unconnected="zero")], w)
    return pairs(found, known(row, times_weights))


def times_weights(w: World) -> list[Any]:
    (dx,) = w.ask([w.loss], [w.x])
    return w.ask([dx], [w.x], [gg.constant(WEIGHTS)])


def hessian(row: Override) -> Pairs:
    with gg.Graph():
        w = world(row)
        found = ran([gg.hessian(w.loss, w.x, unconnected="zero")], w)
    return pairs(found, [np.array(known(row, hessian_rows))])


def hessian_rows(w: World) -> list[Any]:
    (dx,) = w.ask([w.loss], [w.x])
    return [w.ask([dx], [w.x], [gg.constant(np.eye(3)[place])])[0] for place in range(3)]


# --- where it stands ----------------------------------------------------------------------------


def cse_twins(row: Override) -> Pairs:
    """Two equal sites: each rule sees what arrives there, whatever is merged afterwards."""
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        h, k = before(x)
        twins = [row.marked(h, k) for _ in range(2)]
        wrt = [x, *twins[0].extra]
        found = gg.compile(x, asked(twin_terms(twins), wrt))(X)
    with gg.Graph():
        spelling = Spelling()
        x = gg.placeholder((3,), name="x")
        h, k = before(x)
        twins = [row.spelled(h, k, spelling) for _ in range(2)]
        expected = gg.evaluate(spelling.gradients(twin_terms(twins), [x, *twins[0].extra]), {x: X})
    return pairs(found, expected)


def twin_terms(twins: Sequence[Made]) -> list[Any]:
    return [
        gg.sum(factor * seed * y)
        for factor, made in zip((3.0, 4.0), twins)
        for seed, y in zip(SEEDS, made.ys)
    ]


def two_in_a_row(row: Override) -> Pairs:
    """One site behind the other."""
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        h, k = before(x)
        ys = row.marked(summed(row.marked(h, k).ys), k).ys
        found = gg.evaluate(first_and_second(behind(h, ys), x, asked), {x: X})
    with gg.Graph():
        spelling = Spelling()
        x = gg.placeholder((3,), name="x")
        h, k = before(x)
        ys = row.spelled(summed(row.spelled(h, k, spelling).ys), k, spelling).ys
        answers = first_and_second(behind(h, ys), x, spelling.gradients)
        expected = gg.evaluate(answers, {x: X})
    return pairs(found, expected)


def summed(ys: Sequence[Any]) -> Any:
    return functools.reduce(lambda a, b: 0.5 * (a + b), ys)


def first_and_second(loss: Any, x: Any, ask: Callable[..., list[Any]]) -> list[Any]:
    (dx,) = ask([loss], [x])
    return [loss, dx, *ask([gg.sum(WEIGHTS * dx)], [x])]


def in_a_branch(row: Override) -> Pairs:
    """In a branch of a choice, which is differentiated from outside."""
    return by_marks(row, second, within_cond)


def within_cond(row: Override, h: Any, k: Any, pred: Any = None) -> Made:
    kept: list[Made] = []

    def then() -> Any:
        kept.append(row.marked(h, k))
        return kept[0].ys

    def other() -> Any:
        return [gg.stop_gradient(h)] * outputs_of(row)  # so that nothing flows where it is taken

    ys = gg.cond(gg.sum(k) > -100.0 if pred is None else pred, then, other)
    (made,) = kept
    return replace(made, ys=list(ys))


def outputs_of(row: Override) -> int:
    with gg.Graph():
        x = gg.placeholder((3,))
        return len(row.outside(row.inside(x, row.prepared(x)).raws))


def asked_in_a_branch(row: Override) -> Pairs:
    """Built and differentiated in a branch."""
    count = len(known(row, first))
    with gg.Graph():
        x = gg.placeholder((3,), name="x")

        def then() -> Any:
            return first(world(row, x=gg.identity(x)))

        def other() -> Any:
            return [gg.sum(x), x, gg.sum(x)][:count]

        found = gg.evaluate(list(gg.cond(gg.sum(x) > -100.0, then, other)), {x: X})
    return pairs(found, known(row, first))


def around_a_choice(row: Override) -> Pairs:
    """A choice inside of what is marked."""
    return by_marks(row, second, around_cond)


def around_cond(row: Override, h: Any, k: Any) -> Made:
    def last(step: Callable[[], Any], instead: Any) -> Any:
        return gg.cond(gg.sum(instead) > -100.0, step, lambda: instead)

    return row.marked(h, k, last)


def in_a_scan(row: Override) -> Pairs:
    """In the one run of a scan that h is a row of, and k the carry of."""
    return by_marks(row, second, within_scan)


def within_scan(row: Override, h: Any, k: Any) -> Made:
    kept: list[Made] = []

    def run(k: Any, h: Any) -> Any:
        kept.append(row.marked(h, k))
        return k, kept[0].ys

    _, ys = gg.scan(run, k, gg.expand_dims(h, 0))
    return replace(kept[0], ys=[gg.squeeze(y, 0) for y in ys])


def in_a_while(row: Override) -> Pairs:
    """In the one run of a loop with a test, which carries on what is read outside."""
    return by_marks(row, second, within_while)


def within_while(row: Override, h: Any, k: Any) -> Made:
    kept: list[Made] = []
    with gg.Graph():
        x = gg.placeholder((3,))
        types = [y.type for y in row.outside(row.inside(x, row.prepared(x)).raws)]

    def body(carry: Any) -> Any:
        runs, h, k, _ = carry
        kept.append(row.marked(h, k))
        return runs + 1, h, k, kept[0].ys

    blank = [gg.constant(np.zeros(t.shape, t.dtype)) for t in types]
    *_, ys = gg.while_loop(lambda carry: carry[0] < 1, body, (0, h, k, blank))
    return replace(kept[0], ys=list(ys))


def in_a_map(row: Override) -> Pairs:
    """In a map over two rows, of which the second takes and gives no gradient."""
    return by_marks(row, second, within_map)


def within_map(row: Override, h: Any, k: Any) -> Made:
    kept: list[Made] = []

    def run(rows: Any) -> Any:
        kept.append(row.marked(*rows))
        return kept[0].ys

    ys = gg.map(run, [gg.stack([t, gg.stop_gradient(0.5 * t)]) for t in (h, k)])
    return replace(kept[0], ys=[y[0] for y in ys])


def around_a_loop(row: Override) -> Pairs:
    """A loop inside of what is marked."""
    return by_marks(row, second, around_scan)


def around_scan(row: Override, h: Any, k: Any) -> Made:
    def last(step: Callable[[], Any], instead: Any) -> Any:
        return gg.scan(lambda before, _: (step(), None), instead, length=2)[0]

    return row.marked(h, k, last)


def inside_a_region(row: Override) -> Pairs:
    """Inside a region whose rule is its default."""
    return by_marks(row, second, within_region)


def within_region(row: Override, h: Any, k: Any) -> Made:
    with gg.override_gradient(transparent):
        made = row.marked(h, k)
        ys = [gg.identity(y) for y in made.ys]
    return replace(made, ys=ys)


def transparent(site: Any, *dys: Any) -> Any:
    """A rule that changes nothing."""
    return site.default(*dys)


def checkpoint(row: Override) -> Pairs:
    """In a part that is computed again going backward."""
    return by_marks(row, second, recomputed)


def recomputed(row: Override, h: Any, k: Any) -> Made:
    kept: list[Made] = []

    def part(h: Any, k: Any) -> Any:
        kept.append(row.marked(h, k))
        return kept[-1].ys

    ys = rules.checkpoint(part)(h, k)
    return replace(kept[0], ys=list(ys))


def checkpoint_of_gradients(row: Override) -> Pairs:
    """What is computed again is a gradient."""
    with gg.Graph():
        x = gg.placeholder((3,), name="x")
        dx = rules.checkpoint(lambda x: asked([world(row, x=x).loss], [x])[0])(x)
        found = gg.evaluate([dx, *asked([dx], [x], [gg.constant(WEIGHTS)])], {x: X})
    return pairs(found, known(row, times_weights_too)[1:])


def retrofit(row: Override) -> Pairs:
    """On a graph that was built without any mark."""
    with gg.Graph() as g:
        w = world(row, later)
        found = ran(first(w), w)
    verify_graph(g)
    return pairs(found, known(row, first))


def later(row: Override, h: Any, k: Any) -> Made:
    graph = gg.default_graph()
    k = row.prepared(k)
    start = len(graph.nodes)
    made = row.inside(h, k)
    nodes = [n for n in graph.nodes[start:] if n.type != "Variable"]
    row.mark_later(graph, made, nodes)
    return replace(made, ys=row.outside(made.raws))


def call_overrides(row: Override) -> Pairs:
    """overrides= of the one call; the next call does not see it."""
    chosen: dict[Any, Any] = {}

    def body(row: Override, h: Any, k: Any) -> Made:
        made, overrides = row.call_override(h, k)
        chosen.update(overrides)
        return made

    with gg.Graph():
        w = world(row, body)
        found = ran(gg.gradients([w.loss], w.wrt, overrides=chosen, unconnected="zero"), w)
    return pairs(found, known(row, first)[1:])


# --- vmap ---------------------------------------------------------------------------------------


def by_example(row: Override, question: Question, spell: Spell = by_its_meaning) -> list[Any]:
    """The answers for one example after the other."""
    rows = [known(row, question, tuple(x), spell) for x in EXAMPLES]
    return [np.stack(answers) for answers in zip(*rows)]


def vmap_of_grad(row: Override) -> Pairs:
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")
        asked_for = gg.vmap(lambda x: second(world(row, x=x)))(xs)
        found = gg.evaluate(list(asked_for), {xs: EXAMPLES})
    return pairs(found, by_example(row, second))


def grad_of_vmap_of_grad(row: Override) -> Pairs:
    """Gradients of gradients that were taken inside."""
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")
        dx = gg.vmap(lambda x: asked([world(row, x=x).loss], [x])[0])(xs)
        ddx = gg.gradients(gg.sum(WEIGHTS * dx), xs, unconnected="zero")
        found = gg.evaluate([dx, ddx], {xs: EXAMPLES})
    return pairs(found, by_example(row, times_weights_too)[1:])


def vmap_of_vmap(row: Override) -> Pairs:
    """Gradients inside of a batch of batches."""
    with gg.Graph():
        xs = gg.placeholder((1, 2, 3), name="xs")
        asked_for = gg.vmap(gg.vmap(lambda x: first(world(row, x=x))))(xs)
        found = gg.evaluate(list(asked_for), {xs: EXAMPLES[None]})
    return pairs(found, [answer[None] for answer in by_example(row, first)])


def grad_of_vmap(row: Override) -> Pairs:
    """Of the batch: rules work per example; what all examples share gets the sum."""
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")
        shared: list[Any] = []

        def one(x: Any) -> Any:
            w = world(row, x=x)
            shared.extend(w.made.extra)
            return w.loss

        losses = gg.vmap(one)(xs)
        dx = gg.gradients(losses, xs, unconnected="zero")
        ddx = gg.gradients(gg.sum(WEIGHTS * dx), xs, unconnected="zero")
        found = gg.evaluate([losses, dx, ddx], {xs: EXAMPLES})
    expected = by_example(row, times_weights_too)
    return pairs(found, expected)


def of_a_batch_of_choices(row: Override) -> Pairs:
    """Where each example chooses, both orders of vmap and gradients: as its own branch has it."""
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")
        within = gg.vmap(lambda x: second(world(row, each_its_own, x=x)))(xs)
        losses = gg.vmap(lambda x: world(row, each_its_own, x=x).loss)(xs)
        dx = gg.gradients(losses, xs, unconnected="zero")
        ddx = gg.gradients(gg.sum(WEIGHTS * dx), xs, unconnected="zero")
        found = gg.evaluate([*within, losses, dx, ddx], {xs: EXAMPLES})
    expected = []
    for question in (second, times_weights_too):
        chosen, other = known(row, question, tuple(EXAMPLES[0])), without(row, question)
        expected += [np.stack(answers) for answers in zip(chosen, other)]
    return pairs(found, expected)


def each_its_own(row: Override, h: Any, k: Any) -> Made:
    """The first example takes the branch with the override, the second one the other."""
    return within_cond(row, h, k, gg.sum(k) < 2.3)


def without(row: Override, question: Question) -> list[Any]:
    """The answers for the second example, where the branch without the override is taken."""
    with gg.Graph():
        w = world(row, stopped)
        found: list[Any] = gg.evaluate(question(w), {w.x: EXAMPLES[1]})
        return found


def stopped(row: Override, h: Any, k: Any) -> Made:
    made = row.inside(h, row.prepared(k))
    return replace(made, ys=[gg.stop_gradient(h)] * len(row.outside(made.raws)))


def of_a_choice_of_batches(row: Override) -> Pairs:
    """Where all examples choose alike, there is still a choice."""
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")
        pred = gg.sum(xs) > -100.0

        def body(row: Override, h: Any, k: Any) -> Made:
            return within_cond(row, h, k, pred)

        within = gg.vmap(lambda x: second(world(row, body, x=x)))(xs)
        losses = gg.vmap(lambda x: world(row, body, x=x).loss)(xs)
        dx = gg.gradients(losses, xs, unconnected="zero")
        ddx = gg.gradients(gg.sum(WEIGHTS * dx), xs, unconnected="zero")
        found = gg.evaluate([*within, losses, dx, ddx], {xs: EXAMPLES})
    expected = [*by_example(row, second), *by_example(row, times_weights_too)]
    return pairs(found, expected)


def of_a_batch_around_choices(row: Override) -> Pairs:
    """What is marked has a choice inside, which each example makes."""
    with gg.Graph():
        xs = gg.placeholder((2, 3), name="xs")
        within = gg.vmap(lambda x: second(world(row, around_cond, x=x)))(xs)
        losses = gg.vmap(lambda x: world(row, around_cond, x=x).loss)(xs)
        dx = gg.gradients(losses, xs, unconnected="zero")
        ddx = gg.gradients(gg.sum(WEIGHTS * dx), xs, unconnected="zero")
        found = gg.evaluate([*within, losses, dx, ddx], {xs: EXAMPLES})
    expected = [*by_example(row, second), *by_example(row, times_weights_too)]
    return pairs(found, expected)


def times_weights_too(w: World) -> list[Any]:
    (dx,) = w.ask([w.loss], [w.x])
    return [w.loss, dx, *w.ask([dx], [w.x], [gg.constant(WEIGHTS)])]


# --- compiling ------------------------------------------------------------------------------------


def compiled(row: Override, **options: Any) -> Pairs:
    with gg.Graph():
        w = world(row)
        found = gg.compile(w.x, second(w), verify=True, **options)(X)
    return pairs(found, known(row, second))


def as_function(row: Override) -> Pairs:
    """Built by gg.function for the arrays that come."""
    function = gg.function(lambda x: second(world(row, x=x)))
    return pairs([*function(X), *function(X)], known(row, second) * 2)


def numpy_optimised(row: Override) -> Pairs:
    return compiled(row, backend="numpy", optimize=True)


def numpy_plain(row: Override) -> Pairs:
    return compiled(row, backend="numpy", optimize=False)


def jax_optimised(row: Override) -> Pairs:
    return compiled(row, backend="jax", optimize=True)


def jax_plain(row: Override) -> Pairs:
    return compiled(row, backend="jax", optimize=False)


def one_pass(step: Callable[[Program], Program]) -> Transform:
    """A single pass alone."""

    def run(row: Override) -> Pairs:
        with gg.Graph() as g:
            w = world(row)
            given = [w.x, *w.made.extra]
            program = step(Program(given, second(w)))
            values = [X, *g.state.read([t.node for t in w.made.extra])]
            found = load_backend("numpy").compile(program)(*values)
        return pairs(found, known(row, second))

    return run


# --- travelling -----------------------------------------------------------------------------------


def by_index(new: gg.Graph) -> Callable[[Any], Any]:
    return lambda t: new.nodes[t.node.index].outputs[t.index]


def after_journey(row: Override, go: Journey, body: Body = marked) -> Pairs:
    """Marked here, carried away, differentiated there."""
    with gg.Graph() as g:
        w = world(row, body)
    w = go(g, w)
    with w.x.graph as there:
        found = plainly(second(w), {w.x: X})
    verify_graph(there)
    return pairs(found, known(row, second))


def copied(row: Override) -> Pairs:
    return after_journey(row, copy_of)


def copy_of(g: gg.Graph, w: World) -> World:
    return w.moved(by_index(g.copy()))


def copied_twice(row: Override) -> Pairs:
    return after_journey(row, lambda g, w: w.moved(by_index(g.copy().copy())))


def deep_copied(row: Override) -> Pairs:
    return after_journey(row, lambda g, w: w.moved(by_index(copy.deepcopy(g))))


def pickled(row: Override) -> Pairs:
    return after_journey(row, stored)


def stored(g: gg.Graph, w: World) -> World:
    return w.moved(by_index(pickle.loads(pickle.dumps(g))))


def in_file(row: Override) -> Pairs:
    return after_journey(row, saved)


def saved(g: gg.Graph, w: World) -> World:
    return w.moved(by_index(through_file(g)))


def through_file(g: gg.Graph) -> gg.Graph:
    """The graph of a file, of which nothing is left then."""
    with tempfile.TemporaryDirectory() as folder:
        gg.save(f"{folder}/a.gg", g)
        return gg.load(f"{folder}/a.gg", mmap=False).graph


def copied_around_cond(row: Override) -> Pairs:
    """A choice inside of what is marked, carried away."""
    return after_journey(row, copy_of, around_cond)


def pickled_around_cond(row: Override) -> Pairs:
    return after_journey(row, stored, around_cond)


def pickled_in_a_branch(row: Override) -> Pairs:
    return after_journey(row, stored, within_cond)


def pickled_imported(row: Override) -> Pairs:
    """Stored, and brought into a graph in which there is something else already."""

    def go(g: gg.Graph, w: World) -> World:
        w = stored(g, w)
        with gg.Graph():
            gg.sin(gg.placeholder((2,)))
            return brought_in(w.x.graph, w)

    return after_journey(row, go)


def with_gradient(go: Journey) -> Transform:
    """Differentiated once, carried away, and differentiated again there."""

    def run(row: Override) -> Pairs:
        with gg.Graph() as g:
            w = world(row)
            w = replace(w, loss=gg.identity(once(w), name="loss"))
        w = go(g, w)
        with w.x.graph:
            found = plainly([w.loss, *w.ask([w.loss], w.wrt)], {w.x: X})
        return pairs(found, known(row, of_once))

    return run


def once(w: World) -> Any:
    """The weighted sum of the first gradients."""
    dxs = w.ask([w.loss], w.wrt)
    return functools.reduce(lambda a, b: a + 0.9 * b, dxs[1:], gg.sum(WEIGHTS * dxs[0]))


def of_once(w: World) -> list[Any]:
    """That, and its gradients."""
    dx = once(w)
    return [dx, *w.ask([dx], w.wrt)]


def stored_part_of(g: gg.Graph, w: World) -> World:
    """Stored, and cut out there."""
    w = stored(g, w)
    return part_of(w.x.graph, w)


def brought_in(g: gg.Graph, w: World) -> World:
    x = gg.placeholder((3,), name="given")
    there = gg.import_graph(g, {w.x: x})
    return w.moved(lambda t: there[t])


def imported(row: Override) -> Pairs:
    return after_journey(row, import_of)


def import_of(g: gg.Graph, w: World) -> World:
    with gg.Graph():
        return brought_in(g, w)


def never(site: Any, *dys: Any) -> Any:
    """A rule of the importing side that must not speak for what is marked already."""
    return [1000.0 * dy for dy in dys]


def imported_under_scopes(row: Override) -> Pairs:
    """Into a name scope and an op-type map that would stamp what is marked, were it not marked."""
    types = {"OpType": "Exp", "Builtin": "Round"}

    def go(g: gg.Graph, w: World) -> World:
        with gg.Graph(), gg.name_scope("there"):
            names = {types.get(row.name, "Erf"): never}
            with gg.gradient_override_map(names, allow_empty=True):
                return brought_in(g, w)

    return after_journey(row, go)


def imported_into_a_region(row: Override) -> Pairs:
    """Into a region whose rule is its default."""

    def go(g: gg.Graph, w: World) -> World:
        with gg.Graph():
            x = gg.placeholder((3,), name="given")
            with gg.override_gradient(transparent):
                there = gg.import_graph(g, {w.x: x})
            return replace(w.moved(lambda t: there[t]), loss=gg.identity(there[w.loss]))

    return after_journey(row, go)


def copied_imported_copied(row: Override) -> Pairs:
    """A long way round."""

    def go(g: gg.Graph, w: World) -> World:
        copy_of = g.copy()
        w = w.moved(by_index(copy_of))
        with gg.Graph() as there:
            w = brought_in(copy_of, w)
        return w.moved(by_index(there.copy()))

    return after_journey(row, go)


def cut_out_of_stored(row: Override) -> Pairs:
    return after_journey(row, stored_part_of)


def cut_out(row: Override) -> Pairs:
    """A subgraph of its own."""
    return after_journey(row, part_of)


def part_of(g: gg.Graph, w: World) -> World:
    new = g.subgraph([w.x], [w.loss])
    made = replace(w.made, extra=[new.tensor("w:0") for _ in w.made.extra], ys=[])
    return World(new.tensor("x:0"), None, made, new.tensor(w.loss.name), w.ask)


def threads(row: Override) -> Pairs:
    """Many threads, each with a graph of its own, and all with one compiled function."""
    with gg.Graph():
        w = world(row)
        shared = gg.compile(w.x, first(w))
    found: list[Any] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            found.extend(by_marks(row, second))
            found.extend(pairs(shared(X), known(row, first)))
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for error in errors:
        raise error
    return found
