"""The walk that settles every node: what a rule may look at, what counts, where it ends."""

from collections import Counter

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.op import Op
from graphgrad.ops.base import Cast, OnesLike, ZerosLike, as_dtype
from graphgrad.ops.base import apply as node
from graphgrad.ops.elementwise.arithmetic import ADD, NEGATIVE, Negative
from graphgrad.ops.elementwise.exponential import Exp, Sqrt
from graphgrad.optimise.build import beside, instead
from graphgrad.optimise.rewrite import rewrite, standing_alone
from graphgrad.optimise.rule import rule
from graphgrad.optimise.rules.catalogue import ALGEBRA
from graphgrad.optimise.rules.neutral import times_one
from graphgrad.optimise.rules.signs import double_negative

from .helpers import program, run, types, verified


def test_what_an_input_stands_for_is_not_looked_at():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        y = -x
        z = -y
        c = gg.constant(1.0)
        w = x * c
    fed = gg.Program([y, x, c], [z, w])
    assert rewrite(*ALGEBRA)(fed) is fed
    z_value, w_value = run(fed, [np.ones(2), np.ones(2), np.array(5.0)])
    np.testing.assert_array_equal(z_value, [-1, -1])
    np.testing.assert_array_equal(w_value, [5, 5])


def test_a_program_stands_alone_without_what_its_inputs_are_made_of():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        y = gg.exp(x)
        z = gg.sin(y) + y
    alone = verified(standing_alone(gg.Program([y], [z, y])))
    assert types(alone) == ["Sin", "Add"]
    assert alone.inputs[0].node.type == "Placeholder"
    assert alone.outputs[1] is alone.inputs[0]
    closed = gg.Program([x], [y])
    assert standing_alone(closed) is closed


def test_what_fired_is_counted():
    fired = Counter()
    rewrite(*ALGEBRA, fired=fired)(program(lambda x: gg.negative(-(x * 1.0 * 1.0)), x=(3,)))
    assert fired == {"times_one": 2, "double_negative": 1}


def test_nothing_to_do_is_the_same_object():
    p = program(lambda x: gg.exp(x) * 3.0, x=(3,))
    assert rewrite(*ALGEBRA)(p) is p


def test_rules_that_undo_each_other_end_in_an_error():
    @rule(Negative)
    def again(n):
        """-x -> -x"""
        return instead(n, NEGATIVE, *n.inputs)

    with pytest.raises(RuntimeError, match="does not come to an end"):
        rewrite(again)(program(lambda x: -x, x=(3,)))


def test_rules_that_never_end_inside_what_they_build_end_in_an_error():
    @rule(Negative)
    def deeper(n):
        """-x -> -(-x) + -x"""
        return instead(n, ADD, beside(n, NEGATIVE, *n.inputs), *n.inputs)

    with pytest.raises(RuntimeError, match="does not come to an end"):
        rewrite(deeper)(program(lambda x: -x, x=(3,)))


def test_what_a_rule_builds_is_rewritten_too():
    @rule(Exp)
    def twice_turned(n):
        """exp(x) -> -(-x) * 1"""
        return beside(n, NEGATIVE, beside(n, NEGATIVE, *n.inputs))

    fired = Counter()
    p = program(lambda x: gg.exp(x), x=(3,))
    after = rewrite(twice_turned, double_negative, fired=fired)(p)
    assert after.outputs == after.inputs
    assert fired == {"twice_turned": 1, "double_negative": 1}


def test_a_rule_over_a_node_takes_it():
    @rule(Exp, of=(Negative, Sqrt))
    def exp_of(n, inner):
        """exp(-x), exp(sqrt(x)) -> -x"""
        seen.append((n.type, inner.type))
        return instead(n, NEGATIVE, *inner.inputs)

    seen = []
    p = program(lambda x: gg.exp(-x) + gg.exp(gg.sqrt(x)) + gg.exp(gg.sin(x)), x=(3,))
    after = rewrite(exp_of)(p)
    assert seen == [("Exp", "Negative"), ("Exp", "Sqrt")]
    assert types(after) == ["Negative", "Negative", "Add", "Sin", "Exp", "Add"]


def test_a_class_that_inherits_from_an_op_is_another_op():
    @rule(ZerosLike)
    def on_zeros(n):
        """zeros_like(x) -> x"""
        return n.inputs[0]

    @rule(Negative, of=ZerosLike)
    def over_zeros(n, inner):
        """-zeros_like(x) -> x"""
        return inner.inputs[0]

    def negated(op):
        return program(lambda x: -node(op, x), x=(3,))

    ones, zeros = negated(OnesLike()), negated(ZerosLike())
    assert issubclass(OnesLike, ZerosLike)
    for each in (on_zeros, over_zeros):
        assert rewrite(each)(ones) is ones
        assert rewrite(each)(zeros) is not zeros


def test_a_rewrite_of_another_type_does_not_count():
    @rule(Exp)
    def narrower(n):
        """exp(x) -> x as float32"""
        return instead(n, Cast(as_dtype("float32")), *n.inputs)

    p = program(lambda x: gg.exp(x), x=(3,))
    assert rewrite(narrower)(p) is p


def test_a_node_that_waits_for_others_is_left_alone():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        first = gg.exp(x)
        y = x * 1.0
        y.node.controls = (first.node,)
    p = gg.Program([x], [y, first])
    assert rewrite(times_one)(p) is p


def test_what_a_node_waits_for_is_followed():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        first = gg.exp(x * 1.0)
        gone = x * 1.0
        y = gg.sin(x)
        y.node.controls = (first.node, gone.node)
    after = verified(rewrite(times_one)(gg.Program([x], [y])))
    assert types(after) == ["Exp", "Sin"]
    assert after.nodes[1].controls == (after.nodes[0],)


def test_the_order_of_nodes_stays():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        a, b, c = gg.exp(x * 1.0), gg.sin(x), gg.cos(x)
    after = rewrite(times_one)(gg.Program([x], [c, b, a]))
    assert types(after) == ["Exp", "Sin", "Cos"]


def test_names_and_lines_survive():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        y = gg.identity(gg.exp(x) * 1.0, name="kept")
        after = gg.compile(x, gg.exp(y * 1.0) - 0.0).program
    assert [n.where.partition(":")[0] for n in after.nodes] == ["test_rewrite.py"] * 2


def test_helpers_do_not_take_the_name():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        y = gg.identity(x, name="kept")
    made = beside(y.node, NEGATIVE, x)
    assert (made.node.name, made.node.where) != ("kept", None)
    assert instead(y.node, NEGATIVE, x).node.name == "kept"


class NotPureForTest(Op):
    """Nothing that a rule knows."""

    pure = False

    def infer(self, x):
        return (x,)

    def kernel(self, xp, x):
        return x


def test_ops_that_no_rule_knows_stay():
    p = program(lambda x: node(NotPureForTest(), x), x=(3,))
    assert rewrite(*ALGEBRA)(p) is p


@pytest.mark.parametrize("classes", [(), ("Exp",), (Exp(),), (Exp, int)])
def test_a_rule_is_for_op_classes(classes):
    with pytest.raises(TypeError, match="a rewrite rule is for op classes"):
        rule(*classes)(lambda node: None)


def test_nor_is_what_stands_behind_anything_else():
    for behind in ({"of": "Exp"}, {"over": (Exp, "Sqrt")}):
        with pytest.raises(
            TypeError, match=r"for op classes, as rule\(Exp\), got \['(Exp|Sqrt)'\]"
        ):
            rule(Negative, **behind)(lambda *nodes: None)


@pytest.mark.parametrize("made", [2.0, (1, 2), "raise"])
def test_a_rule_that_fails_is_named_with_the_node(made):
    @rule(Exp)
    def clumsy(node):
        """Returns what is not a tensor, or raises."""
        return 1 / 0 if made == "raise" else made

    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        p = gg.Program([x], [gg.exp(x)])
    with pytest.raises((AttributeError, ValueError, ZeroDivisionError)) as error:
        rewrite(clumsy)(p)
    assert "in the rewrite rule 'clumsy', for Exp_1 (" in error.value.__notes__[0]
    assert "test_rewrite.py" in error.value.__notes__[0]
