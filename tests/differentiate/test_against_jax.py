"""Rules that are no derivatives, against JAX: regions as functions with `custom_vjp`.

A program is a list of steps, each a smooth op of earlier values, with blocks around runs of them,
nested at random: regions, also with declared inputs and outputs or with outputs that escape,
functions with a custom gradient, stamped nodes, branches of a choice. In
JAX a block is a function of the values that it reads. Its rule there gets what it gets in
graphgrad: the inputs, the outputs (which its own rule answers for), values of the inside (for which
the inside does), the gradients and the default. So the two agree at every order in which JAX calls
a rule once for the sum of what arrives: at order 2 for any rule, beyond for linear ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.graph import current

jax = pytest.importorskip("jax")
jnp = jax.numpy

INPUTS = 3
POINT = (0.4, -0.7, 1.1)
WEIGHTS = np.random.default_rng(7).normal(size=32)
"""Of what is differentiated, in order of use."""

OPS: dict[str, int] = {"sin": 1, "cos": 1, "tanh": 1, "add": 2, "multiply": 2}
TYPES = {"sin": "Sin", "cos": "Cos", "tanh": "Tanh", "add": "Add", "multiply": "Multiply"}

ANY_RULE = ("region", "region", "declared", "custom_gradient", "stamp")
HOWS = (*ANY_RULE, "escaping", "cond")


@dataclass
class Step:
    """One op of earlier values, by number."""

    number: int
    op: str
    reads: list[int]


@dataclass
class Block:
    """Steps and blocks, and how they are marked.

    inner    the numbers of the values inside
    inputs   those read inside and made outside, in order of first use; of a stamp, by place
    outputs  those read outside, or nowhere; if declared, in some order
    escaping outputs that are not declared
    rule     its name, and for each input a factor, two choices and a value of the inside
    """

    how: str
    body: list[Step | Block]
    inner: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    escaping: list[int] = field(default_factory=list)
    rule: str = ""
    details: list[tuple[float, int, int, int]] = field(default_factory=list)
    order: str = "again"


Body = list[Step | Block]


def steps_of(body: Body) -> Iterator[Step]:
    for item in body:
        if isinstance(item, Step):
            yield item
        else:
            yield from steps_of(item.body)


def blocks_of(body: Body) -> Iterator[Block]:
    for item in body:
        if isinstance(item, Block):
            yield item
            yield from blocks_of(item.body)


def reads_of(body: Body) -> Iterator[int]:
    """What is read, in order; a region reads its declared inputs at its start."""
    for item in body:
        if isinstance(item, Step):
            yield from item.reads
        else:
            yield from item.inputs
            yield from reads_of(item.body)


# --- rules, for both ------------------------------------------------------------------------------


@dataclass
class Called:
    """What a rule is given, as arrays of JAX or as tensors."""

    block: Block
    xs: Sequence[Any]
    ys: Sequence[Any]
    inside: Callable[[int], Any]
    dys: Sequence[Any]
    default: Callable[..., Sequence[Any]]
    tanh: Callable[[Any], Any]

    def entries(self) -> list[Any]:
        """One gradient for each input."""
        return [RULES[self.block.rule](self, *detail) for detail in self.block.details]

    def of(self, i: int) -> Any:
        return self.default(*self.dys)[i % len(self.xs)]


def twice(call: Called, c: float, y: int, x: int, inside: int) -> Any:
    """Two calls of the default, which count apart."""
    first = call.default(*[dy * call.xs[x] for dy in call.dys])
    second = call.default(*[dy * call.ys[y] for dy in call.dys])
    return first[x] * c + second[0]


LINEAR: dict[str, Callable[..., Any]] = {
    "inputs": lambda call, c, y, x, inside: c * call.dys[y] * call.xs[x],
    "outputs": lambda call, c, y, x, inside: c * call.dys[y] * call.ys[y - 1],
    "inside": lambda call, c, y, x, inside: c * call.dys[y] * call.inside(inside),
    "default": lambda call, c, y, x, inside: c * call.of(x) + call.dys[y] * call.ys[y],
    "mixed": lambda call, c, y, x, inside: c * call.of(x) * call.inside(inside),
    "twice": twice,
}
RULES = {
    **LINEAR,
    "square": lambda call, c, y, x, inside: c * call.dys[y] * call.dys[y - 1] * call.ys[y],
    "squashed": lambda call, c, y, x, inside: c * call.tanh(call.of(x)),
    "crossed": lambda call, c, y, x, inside: call.of(x) * call.of(x + 1) * call.inside(inside),
}
OF_CUSTOM_GRADIENT = ("inputs", "outputs", "inside")
"""Their grad_fn has no site; results it closes over are of the inside."""


# --- programs -------------------------------------------------------------------------------------


class Program:
    """A random program; outputs are some of its values."""

    def __init__(
        self, seed: int, rules: Sequence[str], hows: Sequence[str], length: int = 8
    ) -> None:
        self.rng = np.random.default_rng(seed)
        self.rules, self.hows = rules, hows
        self.count = INPUTS
        self.body = self._body(length, 3)
        self.outputs = sorted({self.count - 1, int(self.rng.integers(INPUTS, self.count))})
        self._settle(self.body)

    def _pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def _step(self) -> Step:
        op = self._pick(list(OPS))
        first = max(0, self.count - 4) if self.rng.random() < 0.7 else 0
        reads = [int(i) for i in self.rng.integers(first, self.count, size=OPS[op])]
        self.count += 1
        return Step(self.count - 1, op, reads)

    def _body(self, length: int, depth: int) -> Body:
        found: Body = []
        while length > 0:
            part = 1
            if depth and length > 1 and self.rng.random() < 0.45:
                how = self._pick(self.hows)
                part = 1 if how == "stamp" else int(self.rng.integers(1, min(length, 5) + 1))
                inner = [self._step()] if how == "stamp" else self._body(part, depth - 1)
                found.append(Block(how, inner))
            else:
                found.append(self._step())
            length -= part
        return found

    def _settle(self, body: Body) -> None:
        for block in (item for item in body if isinstance(item, Block)):
            inner = list(steps_of(block.body))
            numbers = {s.number for s in inner}
            block.inner = [s.number for s in inner]
            self._settle(block.body)
            block.inputs = [i for i in reads_of(block.body) if i not in numbers]
            if block.how != "stamp":
                block.inputs = list(dict.fromkeys(block.inputs))
            everything = steps_of(self.body)
            left = {i for s in everything if s.number not in numbers for i in s.reads}
            left.update(self.outputs)
            used = {i for s in inner for i in s.reads}
            block.outputs = [i for i in block.inner if i in left or i not in used]
            self._declare(block)
            self._mark(block)

    def _declare(self, block: Block) -> None:
        if block.how in ("declared", "escaping"):
            self.rng.shuffle(block.inputs)
            self.rng.shuffle(block.outputs)
        if block.how == "escaping":
            kept = int(self.rng.integers(1, len(block.outputs) + 1))
            block.outputs, block.escaping = block.outputs[:kept], block.outputs[kept:]

    def _mark(self, block: Block) -> None:
        shown = [i for i in block.inner if shows(block, i)]
        block.rule = self._pick(self.rules)
        if block.how == "custom_gradient" and block.rule not in OF_CUSTOM_GRADIENT:
            block.rule = "inside"
        if block.how == "custom_gradient" or (block.how == "region" and self.rng.random() < 0.2):
            block.order = "through"
        block.details = [
            (
                float(self.rng.normal()),
                int(self.rng.integers(len(block.outputs))),
                int(self.rng.integers(len(block.inputs))),
                self._pick(shown),
            )
            for _ in block.inputs
        ]


def shows(block: Block, number: int) -> bool:
    """Whether a value inside a block can be read there: no block in it hides it."""
    for item in block.body:
        if isinstance(item, Block) and number in item.inner:
            left = number in (*item.outputs, *item.escaping)
            return left and (item.how == "cond" or shows(item, number))
    return True


# --- in JAX ---------------------------------------------------------------------------------------


def in_jax(body: Body, known: dict[int, Any]) -> dict[int, Any]:
    """The values that can be read after a body."""
    for item in body:
        if isinstance(item, Step):
            known[item.number] = getattr(jnp, item.op)(*(known[i] for i in item.reads))
        elif item.how == "cond":
            inside = in_jax(item.body, dict(known))
            known.update({i: inside[i] for i in item.outputs})
        else:
            given = [known[i] for i in item.inputs]
            known.update(zip(item.outputs, as_function(item)(*given), strict=True))
            if item.escaping:
                inside = in_jax(item.body, dict(zip(item.inputs, given, strict=True)))
                known.update({i: inside[i] for i in item.escaping})
    return known


def as_function(block: Block) -> Any:
    """A block as a function of its inputs, with its rule."""

    def plain(*xs: Any) -> Any:
        if block.how == "stamp":
            (step,) = block.body
            assert isinstance(step, Step)
            return (getattr(jnp, step.op)(*xs),), {}
        known = in_jax(block.body, dict(zip(block.inputs, xs, strict=True)))
        return tuple(known[i] for i in block.outputs), known

    function = jax.custom_vjp(lambda *xs: plain(*xs)[0])

    def forward(*xs: Any) -> Any:
        ys = function(*xs)
        own, default, known = jax.vjp(plain, *xs, has_aux=True)
        return ys, (xs, ys if block.order == "again" else own, default, known)

    def backward(kept: Any, dys: Any) -> Any:
        xs, ys, default, known = kept
        outer = dict(zip(block.outputs, ys, strict=True))
        call = Called(
            block,
            xs,
            ys,
            lambda i: outer[i] if i in outer else known[i],
            dys,
            lambda *dys: default(tuple(dys)),
            jnp.tanh,
        )
        return tuple(call.entries())

    function.defvjp(forward, backward)
    return function


def by_jax(program: Program, order: int) -> list[float]:
    """The outputs and their derivatives: at each order those of a weighted sum of the last ones."""
    weights = iter(WEIGHTS)

    def last(*xs: Any) -> list[Any]:
        known = in_jax(program.body, dict(enumerate(xs)))
        return [known[i] for i in program.outputs]

    with jax.enable_x64(True):
        found = [float(y) for y in last(*POINT)]
        count = len(found)
        for _ in range(order):
            last = slopes(last, [float(next(weights)) for _ in range(count)])
            found += [float(dx) for dx in last(*POINT)]
            count = INPUTS
    return found


def slopes(f: Callable[..., Any], weights: Sequence[float]) -> Callable[..., Any]:
    def total(*xs: Any) -> Any:
        return sum(w * y for w, y in zip(weights, f(*xs), strict=True))

    found: Callable[..., Any] = jax.grad(total, argnums=tuple(range(INPUTS)))
    return found


# --- in graphgrad ---------------------------------------------------------------------------------


Later = list[tuple[Block, dict[int, Any], Sequence[gg.Node]]]
"""Regions to be marked when everything is built, inner ones first."""


def in_graphgrad(body: Body, known: dict[int, Any], later: Later | None = None) -> dict[int, Any]:
    """The values that can be read after a body."""
    for item in body:
        if isinstance(item, Step):
            known[item.number] = getattr(gg, item.op)(*(known[i] for i in item.reads))
        else:
            BUILT[item.how](item, known, later)
    return known


def rule_of(block: Block, known: dict[int, Any]) -> Callable[..., Any]:
    def rule(site: Any, *dys: Any) -> Any:
        assert (len(site.inputs), len(dys)) == (len(block.inputs), len(block.outputs))
        inputs, outputs, inside = site.inputs, site.outputs, known.__getitem__
        return Called(block, inputs, outputs, inside, dys, site.default, gg.tanh).entries()

    return rule


def as_region(block: Block, known: dict[int, Any], later: Later | None) -> None:
    """Marked as it is built, or later; what is declared is declared."""
    if later is not None:
        graph = current().graph
        start = len(graph)
        in_graphgrad(block.body, known, later)
        nodes = [n for n in graph.nodes[start:] if not n.op.source]  # captures of a branch are none
        later.append((block, known, nodes))
        return
    inputs = [known[i] for i in block.inputs]
    with gg.override_gradient(rule_of(block, known), **options(block, inputs)) as region:
        in_graphgrad(block.body, known)
        if block.how != "region":
            region.declare(outputs=[known[i] for i in block.outputs])


def options(block: Block, inputs: list[gg.Tensor]) -> dict[str, Any]:
    found: dict[str, Any] = {"order": block.order}
    if block.how != "region":
        found |= {"inputs": inputs, "escape": "default" if block.escaping else "error"}
    return found


def mark(block: Block, known: dict[int, Any], nodes: Sequence[gg.Node]) -> None:
    graph = nodes[0].graph
    assert graph is not None
    inputs = [known[i] for i in block.inputs]
    given = options(block, [t if t.graph is graph else graph.adopt(t) for t in inputs])
    if block.how != "region":
        given["outputs"] = [known[i] for i in block.outputs]
    graph.mark(gg.select.nodes(nodes), rule_of(block, known), allow_inside=True, **given)


def as_stamp(block: Block, known: dict[int, Any], later: Later | None) -> None:
    (step,) = block.body
    assert isinstance(step, Step)
    with gg.gradient_override_map({TYPES[step.op]: rule_of(block, known)}):
        in_graphgrad(block.body, known)


def as_custom_gradient(block: Block, known: dict[int, Any], later: Later | None) -> None:
    inner = dict(known)

    @gg.custom_gradient
    def f(*xs: gg.Tensor) -> Any:
        in_graphgrad(block.body, inner, later)
        ys = [inner[i] for i in block.outputs]

        def grad_fn(*dys: gg.Tensor) -> Any:
            return Called(block, xs, ys, inner.__getitem__, dys, no_default, gg.tanh).entries()

        return ys, grad_fn

    found = f(*(known[i] for i in block.inputs))
    known.update(zip(block.outputs, found, strict=True))


def no_default(*dys: Any) -> Any:
    raise AssertionError("a grad_fn has no site")


def as_choice(block: Block, known: dict[int, Any], later: Later | None) -> None:
    inner = dict(known)

    def then() -> list[gg.Tensor]:
        in_graphgrad(block.body, inner, later)
        return [inner[i] for i in block.outputs]

    def otherwise() -> list[gg.Tensor]:
        return [gg.sin(known[block.inputs[0]])] * len(block.outputs)

    found = gg.cond(gg.constant(True), then, otherwise)
    # each by a node of its own: an unread sibling of a result would be no output of a region
    known.update(zip(block.outputs, map(gg.identity, found), strict=True))


BUILT: dict[str, Callable[[Block, dict[int, Any], Later | None], None]] = {
    "region": as_region,
    "declared": as_region,
    "escaping": as_region,
    "stamp": as_stamp,
    "custom_gradient": as_custom_gradient,
    "cond": as_choice,
}


def outputs_of(
    program: Program, xs: Sequence[gg.Tensor], later: Later | None = None
) -> list[gg.Tensor]:
    known = in_graphgrad(program.body, dict(enumerate(xs)), later)
    return [gg.identity(known[i]) for i in program.outputs]


def results(ys: list[gg.Tensor], xs: Sequence[gg.Tensor], order: int) -> list[Any]:
    """The same list of tensors, from the outputs on."""
    weights = iter(WEIGHTS)
    found = list(ys)
    for _ in range(order):
        dys = [np.float64(next(weights)) for _ in ys]
        ys = gg.gradients(ys, list(xs), dys, unconnected="zero")
        found += ys
    return found


def evaluated(order: int, build: Callable[[list[gg.Tensor]], list[gg.Tensor]]) -> list[Any]:
    with gg.Graph():
        xs = [gg.placeholder(()) for _ in range(INPUTS)]
        found = results(build(xs), xs, order)
        return list(gg.evaluate(found, dict(zip(xs, POINT, strict=True))))


def as_built(program: Program, order: int) -> list[Any]:
    return evaluated(order, lambda xs: outputs_of(program, xs))


def marked_afterwards(program: Program, order: int) -> list[Any]:
    def build(xs: list[gg.Tensor]) -> list[gg.Tensor]:
        later: Later = []
        ys = outputs_of(program, xs, later)
        for each in reversed(later):
            mark(*each)
        return ys

    return evaluated(order, build)


def recomputed(program: Program, order: int) -> list[Any]:
    """Only the inputs are kept for the backward pass."""
    again = gg.rules.checkpoint(lambda *xs: outputs_of(program, xs))
    return evaluated(order, lambda xs: list(again(*xs)))


def elsewhere(program: Program, order: int, go: Callable[..., Any]) -> list[Any]:
    with gg.Graph() as g:
        xs = [gg.placeholder(()) for _ in range(INPUTS)]
        ys = outputs_of(program, xs)
    graph, moved = go(g)
    xs, ys = [moved(x) for x in xs], [moved(y) for y in ys]
    with graph:
        found = results(ys, xs, order)
        return list(gg.evaluate(found, dict(zip(xs, POINT, strict=True))))


def copied(program: Program, order: int) -> list[Any]:
    def go(g: gg.Graph) -> Any:
        new = g.copy()
        return new, lambda t: new.nodes[t.node.index].outputs[t.index]

    return elsewhere(program, order, go)


def imported_into_a_region(program: Program, order: int) -> list[Any]:
    """Whose rule is its default; the results are read outside."""

    def go(g: gg.Graph) -> Any:
        with gg.Graph() as new:
            gg.placeholder((3,))  # so that nodes have other places
            with gg.override_gradient(lambda site, *dys: site.default(*dys)):
                here = gg.import_graph(g)
        return new, here.__getitem__

    return elsewhere(program, order, go)


def in_a_batch(program: Program, order: int) -> list[Any]:
    def alone(*xs: gg.Tensor) -> list[Any]:
        return results(outputs_of(program, xs), xs, order)

    with gg.Graph():
        xs = [gg.placeholder((2,)) for _ in range(INPUTS)]
        points = np.array([POINT, (-0.3, 0.2, 0.8)]).T
        found = gg.evaluate(gg.vmap(alone)(*xs), dict(zip(xs, points, strict=True)))
        return [a[0] for a in found]


# --- the property ---------------------------------------------------------------------------------

WAYS = (as_built, marked_afterwards, copied, imported_into_a_region, in_a_batch, recomputed)


def around_a_function_alone(program: Program) -> bool:
    """Whether some block holds nothing but a function with a custom gradient."""
    blocks = list(blocks_of(program.body))
    functions = [b.inner for b in blocks if b.how == "custom_gradient"]
    return any(b.inner in functions for b in blocks if b.how != "custom_gradient")


def check(
    seeds: range, rules: Sequence[str], order: int, hows: Sequence[str] = HOWS, ways: Any = WAYS
) -> None:
    for seed in seeds:
        program = Program(seed, rules, hows)
        expected = by_jax(program, order)
        for way in ways:
            if way is marked_afterwards and around_a_function_alone(program):
                continue  # such a mark would be inside of that function's region
            found = way(program, order)
            message = f"seed {seed}, {way.__name__}"
            np.testing.assert_allclose(found, expected, 1e-8, 1e-10, err_msg=message)


def test_S23_any_rules_at_second_order_are_those_of_jax():
    check(range(8), list(RULES), 2, ANY_RULE)


def test_S23_linear_rules_at_third_order_are_those_of_jax():
    check(range(100, 104), list(LINEAR), 3, ways=(as_built,))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 1_400, 100))
def test_S23_any_rules_at_second_order_are_those_of_jax_in_many_programs(first):
    check(range(first, first + 100), list(RULES), 2, ANY_RULE)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2_000, 2_100, 25))
def test_S23_linear_rules_at_third_order_are_those_of_jax_in_many_programs(first):
    check(range(first, first + 25), list(LINEAR), 3)
