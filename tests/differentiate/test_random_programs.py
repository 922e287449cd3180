"""Random programs: regions whose rules are exact change no derivative, at orders 1, 2 and 3.

A program is a list of steps, each a smooth op of earlier values. Regions lie around runs of steps,
nested at random. The rule of each re-emits the inside's own derivative in one of several styles, so
that the derivatives of the program must be those of the same program without any region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphgrad as gg
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.trigonometry import cos, sin, tanh
from graphgrad.ops.sources import identity, placeholder

from ..each import each
from .helpers import values

INPUTS = 3

OPS: dict[str, tuple[int, Callable[..., gg.Tensor]]] = {
    "sin": (1, sin),
    "cos": (1, cos),
    "tanh": (1, tanh),
    "exp": (1, lambda a: exp(0.5 * sin(a))),
    "square": (1, lambda a: 0.3 * a * a),
    "identity": (1, identity),
    "add": (2, lambda a, b: a + 0.5 * b),
    "subtract": (2, lambda a, b: a - b),
    "multiply": (2, lambda a, b: 0.5 * a * b),
    "divide": (2, lambda a, b: a / (2.0 + b * b)),
}


# --- programs -------------------------------------------------------------------------------------


@dataclass
class Step:
    """One op of earlier values, given by place."""

    op: str
    reads: tuple[int, ...]


@dataclass
class Block:
    """A region around steps and further blocks, whose rule is written in one style."""

    style: str
    body: list[Step | Block] = field(default_factory=list)


Body = list[Step | Block]


def build(body: Body, known: list[gg.Tensor], with_regions: bool) -> None:
    """Build a body; every step's value is added to those known."""
    for item in body:
        if isinstance(item, Step):
            known.append(OPS[item.op][1](*(known[i] for i in item.reads)))
        elif with_regions:
            STYLES[item.style](item.body, known)
        else:
            build(item.body, known, False)


# --- styles of exact rules ------------------------------------------------------------------------


def in_region(rule: Any, **options: Any) -> Callable[[Body, list[gg.Tensor]], None]:
    def style(body: Body, known: list[gg.Tensor]) -> None:
        with gg.override_gradient(rule, **options):
            build(body, known, True)

    return style


def by_default(site: Any, *dys: Any) -> Any:
    return tuple(site.default(*dys))


def by_entries(site: Any, *dys: Any) -> Any:
    return [gg.DEFAULT] * len(site.inputs)


def by_mapping(site: Any, *dys: Any) -> Any:
    return dict.fromkeys(site.inputs, gg.DEFAULT)


def by_gradients(site: Any, *dys: Any) -> Any:
    return partials(site.outputs, site.inputs, dys)


def by_linearity(site: Any, *dys: Any) -> Any:
    """One call of the default for each output."""
    total: list[Any] = [gg.NO_GRAD] * len(site.inputs)
    for i, dy in enumerate(dys):
        only = site.default(*(dy if i == j else None for j in range(len(dys))))
        total = [b if a is gg.NO_GRAD else a + b for a, b in zip(total, only, strict=True)]
    return total


def by_halves(site: Any, *dys: Any) -> Any:
    """Half by the default, half by a nested call of gradients."""
    pairs = zip(site.default(*dys), by_gradients(site, *dys), strict=True)
    return [a if b is gg.NO_GRAD else 0.5 * a + 0.5 * b for a, b in pairs]


def by_a_region(site: Any, *dys: Any) -> Any:
    """The rule opens a region itself."""
    with gg.override_gradient(by_default, allow_empty=True):
        return tuple(site.default(*dys))


def reads_of(body: Body, first: int) -> list[int]:
    """The earlier values that a body reads, in order."""
    found: dict[int, None] = {}
    for item in body:
        if isinstance(item, Step):
            found.update(dict.fromkeys(i for i in item.reads if i < first))
        else:
            found.update(dict.fromkeys(reads_of(item.body, first)))
    return list(found)


def as_custom_gradient(second_order: bool) -> Callable[[Body, list[gg.Tensor]], None]:
    """A function whose grad_fn differentiates its inner values; results are all its values."""

    def style(body: Body, known: list[gg.Tensor]) -> None:
        reads = reads_of(body, len(known))

        @gg.custom_gradient
        def f(*args: gg.Tensor) -> Any:
            inside = list(known)
            for i, arg in zip(reads, args, strict=True):
                inside[i] = arg
            build(body, inside, True)
            results = inside[len(known) :]

            def grad(*dys: gg.Tensor) -> Any:
                dxs = partials(results, args, dys)

                def grad2(*ddxs: gg.Tensor) -> Any:
                    real = [dx for dx in dxs if dx is not gg.NO_GRAD]
                    return partials(real, args, ddxs, constant=dys)

                return (dxs, grad2) if second_order else dxs

            return tuple(results), grad

        known.extend(f(*(known[i] for i in reads)))

    return style


def partials(ys: Any, xs: Any, dys: Any, constant: Any = ()) -> list[Any]:
    """Partial derivatives: one x may depend on another, and what is constant on all."""
    found = gg.gradients(list(ys), list(xs), list(dys), stop_gradients=[*xs, *constant])
    return [gg.NO_GRAD if dx is None else dx for dx in found]


def as_stamps(body: Body, known: list[gg.Tensor]) -> None:
    """No region: every op gets an exact rule of its own."""
    types = ("Sin", "Cos", "Tanh", "Exp", "Identity", "Add", "Subtract", "Multiply", "Divide")
    with gg.gradient_override_map(dict.fromkeys(types, by_default), allow_empty=True):
        build(body, known, True)


STYLES: dict[str, Callable[[Body, list[gg.Tensor]], None]] = {
    "default": in_region(by_default),
    "entries": in_region(by_entries),
    "mapping": in_region(by_mapping),
    "gradients": in_region(by_gradients),
    "linearity": in_region(by_linearity),
    "halves": in_region(by_halves),
    "through": in_region(by_default, order="through"),
    "opening": in_region(by_a_region),
    "custom_gradient": as_custom_gradient(second_order=False),
    "second_order": as_custom_gradient(second_order=True),
    "stamps": as_stamps,
}


# --- the property ---------------------------------------------------------------------------------


def derivatives(body: Body, with_regions: bool, order: int, outputs: list[int]) -> list[Any]:
    """The value of a program and what derivatives of it up to an order are."""
    rng = np.random.default_rng(7)
    with gg.Graph():
        xs = [placeholder(()) for _ in range(INPUTS)]
        known = list(xs)
        build(body, known, with_regions)
        ys = [identity(known[i]) for i in outputs]  # read outside, so no region hides them
        wanted = list(ys)
        for _ in range(order):
            weights = rng.normal(size=len(ys))
            found = gg.gradients(ys, xs, [np.float64(w) for w in weights], unconnected="zero")
            wanted += found
            ys = found
        return values(wanted, dict(zip(xs, (0.3, -0.6, 0.9), strict=True)))


def steps_of(body: Body) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """What a body computes, whatever regions lie around it."""
    steps: list[Any] = []
    for item in body:
        steps += [(item.op, item.reads)] if isinstance(item, Step) else steps_of(item.body)
    return tuple(steps)


@cache
def plainly(steps: tuple[Any, ...], order: int, outputs: tuple[int, ...]) -> list[Any]:
    """The derivatives of the program without any region."""
    return derivatives([Step(*step) for step in steps], False, order, list(outputs))


def check(body: Body, order: int, outputs: list[int]) -> None:
    plain = plainly(steps_of(body), order, tuple(outputs))
    found = derivatives(body, True, order, outputs)
    assert found == pytest.approx(plain, rel=1e-12, abs=1e-12)


def random_program(rng: np.random.Generator) -> tuple[Body, list[int]]:
    """Some steps in nested blocks; the outputs are values of any of them."""
    count = INPUTS

    def body(depth: int, room: int) -> Body:
        nonlocal count
        items: Body = []
        for _ in range(rng.integers(1, room + 1)):
            if depth < 4 and rng.random() < 0.4:
                style = str(rng.choice(list(STYLES)))
                items.append(Block(style, body(depth + 1, max(1, room - 1))))
            else:
                op = str(rng.choice(list(OPS)))
                near = max(0, count - 4) if rng.random() < 0.7 else 0
                reads = tuple(int(i) for i in rng.integers(near, count, size=OPS[op][0]))
                items.append(Step(op, reads))
                count += 1
        return items

    program = body(0, 5)
    last = count - 1
    return program, sorted({last, int(rng.integers(INPUTS - 1, count))})


def run_seeds(first: int, last: int, order: int) -> None:
    for seed in range(first, last):
        program, outputs = random_program(np.random.default_rng(seed))
        try:
            check(program, order, outputs)
        except Exception as error:
            error.add_note(f"seed {seed}, outputs {outputs}\n{program}")
            raise


@pytest.mark.parametrize(
    "first", [0, pytest.param(40, marks=pytest.mark.ci), pytest.param(80, marks=pytest.mark.ci)]
)
def test_S23_exact_rules_change_no_derivative_of_orders_1_to_3(first):
    run_seeds(first, first + 40, 3)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(10_000, 14_000, 500))
def test_S23_exact_rules_change_no_derivative_of_thousands_of_programs(first):
    run_seeds(first, first + 500, 3)


@pytest.mark.slow
def test_S23_exact_rules_change_no_derivative_of_order_4():
    run_seeds(20_000, 20_300, 4)


def outermost(name):
    return name.partition(",")[0]


@pytest.mark.parametrize("style", STYLES)
def test_S17_every_style_of_exact_rule_alone(style):
    steps: Body = [Step("exp", (0,)), Step("multiply", (3, 1)), Step("divide", (4, 3))]
    check([Block(style, steps), Step("sin", (5,)), Step("multiply", (6, 4))], 4, [7])


NESTED = [(f"{outer}, around {inner}", outer, inner) for outer in STYLES for inner in STYLES]


@each(NESTED, outermost)
def test_S07_every_style_inside_every_other(outer, inner):
    steps: Body = [Step("exp", (0,)), Step("multiply", (3, 1))]
    body: Body = [Block(outer, [Block(inner, steps), Step("sin", (4,)), Step("multiply", (5, 3))])]
    order = 3 if "second_order" in (outer, inner) or outer == inner else 2
    check([*body, Step("divide", (6, 4))], order, [7, 5])


# --- the same, with programs that shrink --------------------------------------------------------


@st.composite
def programs(draw: Any) -> tuple[Body, list[int]]:
    count = INPUTS

    def body(depth: int) -> Body:
        nonlocal count
        items: Body = []
        for _ in range(draw(st.integers(1, 3))):
            if depth < 3 and draw(st.booleans()):
                items.append(Block(draw(st.sampled_from(sorted(STYLES))), body(depth + 1)))
            else:
                op = draw(st.sampled_from(sorted(OPS)))
                reads = tuple(draw(st.integers(0, count - 1)) for _ in range(OPS[op][0]))
                items.append(Step(op, reads))
                count += 1
        return items

    return body(0), [count - 1]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(programs())
def test_S23_exact_rules_change_no_derivative_of_drawn_programs(program):
    check(program[0], 3, program[1])


@pytest.mark.slow
@settings(max_examples=3_000, deadline=None)
@given(programs())
def test_S23_exact_rules_change_no_derivative_of_many_drawn_programs(program):
    check(program[0], 3, program[1])


# --- rules that are not exact: one program, two ways to say it ------------------------------------


def run_scaled(seed: int) -> None:
    """Regions that scale their default agree with factors written into the program.

    The factor is an op with a stamped gradient of its own: value 1, gradient k.
    """
    rng = np.random.default_rng(seed)
    ops = [str(rng.choice([o for o in OPS if OPS[o][0] == 1])) for _ in range(8)]
    factors = [float(k) for k in rng.choice([1.0, 2.0, 0.5], size=8)]

    def chain(by_region: bool) -> list[Any]:
        with gg.Graph():
            y = x = placeholder(())
            for op, k in zip(ops, factors, strict=True):
                if by_region:
                    with gg.override_gradient(
                        lambda site, dy, k=k: tuple(k * dx for dx in site.default(dy))
                    ):
                        y = OPS[op][1](y)
                else:
                    with gg.gradient_override_map({"Identity": lambda s, dy, k=k: k * dy}):
                        y = identity(y)
                    with gg.gradient_override_map({"Identity": None}, allow_empty=True):
                        y = OPS[op][1](y)
            return values([y, gg.gradients(y, x)], {x: 0.4})

    assert chain(True) == pytest.approx(chain(False), rel=1e-12)


def test_S17_scaled_regions_agree_with_stamped_factors():
    for seed in range(50):
        run_scaled(seed)
