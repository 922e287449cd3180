"""Bodies of control flow are optimised, and chosen where the choice is known."""

import sys
from collections import Counter
from functools import partial

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.flat import _restored_op
from graphgrad.ir.verify import verify_program
from graphgrad.ops.control import Cond
from graphgrad.ops.sources import identity
from graphgrad.optimise.passes.bodies import choosing, optimise_bodies, outer_first, with_ops
from graphgrad.optimise.pipeline import optimise
from graphgrad.optimise.rewrite import settle

from .helpers import program, remove_residuals_and_identities, run, types, verified


def conds(p):
    return [n for n in p.nodes if n.type == "Cond"]


def chosen(p):
    return verified(settle(p, choosing(Counter())))


X = {"c": ((), "bool"), "x": (3,), "y": (3,)}


def test_bodies_are_optimised():
    p = program(
        lambda c, x, y: gg.cond(c, lambda: gg.exp(x * 1.0) + gg.exp(x), lambda: -gg.negative(y)),
        **X,
    )
    after, _ = optimise(p, verify=True)
    (node,) = conds(after)
    then, other = node.op.programs
    assert types(then) == ["Exp", "Add"]
    assert types(other) == []
    for body in (then, other):
        verify_program(body)
    x, y = np.arange(3.0), np.ones(3)
    for c in (True, False):
        (a,), (b,) = (run(q, [np.array(c), x, y]) for q in (p, after))
        np.testing.assert_array_equal(a, b)


def test_nothing_to_do_is_the_same_object():
    p = program(lambda c, x, y: gg.cond(c, lambda: gg.exp(x), lambda: y), **X)
    after, log = optimise(p)
    assert after is p
    assert not any(change.changed for change in log)


def test_bodies_within_bodies():
    def build(c, x, y):
        inner = lambda: gg.cond(c, lambda: x * 1.0, lambda: y)  # noqa: E731
        return gg.cond(gg.logical_not(c), inner, lambda: gg.exp(y))

    after, _ = optimise(program(build, **X), verify=True)
    (outer,) = conds(after)
    (inner,) = conds(outer.op.programs[0])
    assert types(inner.op.programs[0]) == []


def test_deep_bodies_take_no_recursion():
    depth = 300

    def build(c, x, y):
        def body(i):
            return x * 1.0 if i == 0 else gg.cond(c, lambda: body(i - 1), lambda: y)

        return body(depth)

    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(50_000)  # to build it
        p = program(build, **X)
    finally:
        sys.setrecursionlimit(limit)
    after, _ = optimise(p)
    for _ in range(depth):
        (node,) = conds(after)
        after = node.op.programs[0]
    assert types(after) == []


def test_a_constant_choice_is_made():
    def build(x, y):
        return gg.cond(gg.constant(2.0) > 1.0, lambda: (gg.exp(x), y), lambda: (y, y))

    p = program(build, x=(3,), y=(3,))
    after, log = optimise(p, verify=True)
    assert types(after) == ["Exp"]
    assert after.outputs[1] is after.inputs[1]
    assert {k for change in log for k in change.fired} >= {"cond_of_constant"}


def test_a_choice_that_stays_as_it_is_is_not_counted():
    fired = Counter()
    p = program(lambda c, x, y: gg.cond(c, lambda: gg.exp(x), lambda: y), **X)
    assert settle(p, choosing(fired)) is p
    assert not fired


def test_a_body_at_two_depths_stays_one_when_a_body_in_it_changes():
    """Gradients know by that what they compute again."""

    def nested(depth, c, x, y):
        if not depth:
            return identity(x)
        return gg.cond(c, lambda: nested(depth - 1, c, x, y), lambda: y)

    (once,), (twice,) = (conds(program(partial(nested, d), **X)) for d in (2, 3))
    (within,) = conds(twice.op.bodies[0])
    outer = with_ops(
        gg.Program(twice.inputs, twice.outputs),
        {
            twice.op: twice.op.replace_bodies(
                [with_ops(twice.op.bodies[0], {within.op: once.op}), twice.op.bodies[1]]
            )
        },
    )
    p = gg.Program((*once.inputs, *twice.inputs), (*once.outputs, *outer.outputs))
    after = verified(outer_first(p, remove_residuals_and_identities))
    first, second = conds(after)
    (within,) = conds(second.op.bodies[0])
    assert first.op.bodies[0] is within.op.bodies[0] is not once.op.bodies[0]


def test_a_constant_choice_of_another_shape_stays():
    def build(x, y):
        return gg.cond(gg.constant(True), lambda: x, lambda: y)

    p = program(build, x=(3,), y=((None,), "float64"))
    assert chosen(p) is p


def test_a_long_body_is_put_in_place_without_recursion():
    def build(x):
        def body():
            y = x
            for _ in range(2_000):
                y = gg.exp(y) - 0.0
            return y

        return gg.cond(gg.constant(True), body, lambda: x)

    after, _ = optimise(program(build, x=()))
    assert types(after) == ["Exp"] * 2_000


def test_what_no_body_reads_any_more_is_not_computed():
    def build(c, x, y):
        return gg.cond(c, lambda: gg.where(gg.constant(True), x, gg.exp(y)), lambda: x)

    p = program(lambda c, x, y: build(c, gg.sin(x), gg.cos(y)), **X)
    after, _ = optimise(p, verify=True)
    assert "Cos" in types(p)
    assert types(after) == ["Sin", "Cond"]
    (node,) = conds(after)
    assert node.op.reads == ((0,), (0,))


def test_inputs_of_bodies_that_stay_are_found_again():
    def build(c, x, y):
        return gg.cond(c, lambda: gg.sum(x * 0 + 1), lambda: gg.sum(y))

    ints = {"c": ((), "bool"), "x": ((3,), "int64"), "y": ((3,), "int64")}
    p = program(build, **ints)
    after, _ = optimise(p, verify=True)
    (node,) = conds(after)
    assert len(node.inputs) == 2
    for c, expected in ((True, 3), (False, 12)):
        assert run(after, [np.array(c), np.ones(3, int), np.full(3, 4)])[0] == expected


def test_gradients_through_bodies_agree():
    def build(c, x, y):
        z = gg.cond(c, lambda: gg.exp(x * 1.0) * y, lambda: x - -y)
        return [z, *gg.gradients(gg.sum(z), [x, y])]

    p = program(build, **X)
    after, _ = optimise(p, verify=True)
    assert len(after.nodes) < len(p.nodes)
    for c in (True, False):
        arrays = [np.array(c), np.arange(3.0), np.ones(3)]
        for a, b in zip(run(p, arrays), run(after, arrays), strict=True):
            np.testing.assert_array_equal(a, b)


def test_the_bodies_of_an_op():
    p = program(lambda c, x, y: gg.cond(c, lambda: x, lambda: y), **X)
    (node,) = conds(p)
    assert node.op.bodies == node.op.programs
    assert gg.exp(gg.constant(1.0)).node.op.bodies == ()
    assert optimise_bodies(p, lambda body: body) is p
    assert isinstance(node.op, Cond)


@pytest.mark.parametrize("fast_math", [False, True])
def test_fast_math_reaches_bodies(fast_math):
    p = program(lambda c, x, y: gg.cond(c, lambda: x * 0.0, lambda: y), **X)
    after, _ = optimise(p, fast_math=fast_math)
    assert ("Multiply" in types(conds(after)[0].op.programs[0])) is not fast_math


def test_an_op_takes_other_bodies_and_stays_what_it_is():
    p = program(lambda c, x, y: gg.cond(c, lambda: x + y, lambda: x), **X)
    (node,) = conds(p)
    then, other = node.op.bodies
    turned = node.op.replace_bodies([other, then])
    assert turned.bodies == (other, then)
    assert turned.reads == node.op.reads
    assert node.op.bodies == (then, other)


def test_a_file_that_does_not_name_what_holds_the_bodies_is_read():
    p = program(lambda c, x, y: gg.cond(c, lambda: x + y, lambda: x), **X)
    (node,) = conds(p)
    found = _restored_op(("bodies", type(node.op), [], {"reads": node.op.reads}), [], [])
    assert (found.bodies, found.reads) == ((), node.op.reads)
