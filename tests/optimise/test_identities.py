"""What only differentiation needs goes."""

import graphgrad as gg
from graphgrad.ops.sources import assign_together, identity, stop_gradient, zero_gradient

from .helpers import program, remove_residuals_and_identities, types, verified


def test_identities_go():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        y = gg.exp(zero_gradient(stop_gradient(identity(x))))
    after = verified(remove_residuals_and_identities(gg.Program([x], [y, identity(x)])))
    assert types(after) == ["Exp"]
    assert after.outputs[1] is x


def test_an_identity_that_is_waited_with_stays():
    with gg.Graph():
        x = gg.placeholder((2,), name="x")
        first = gg.exp(x)
        y = identity(x)
        y.node.controls = (first.node,)
    p = gg.Program([x], [y])
    assert remove_residuals_and_identities(p) is p


def test_residuals_and_own_reads_go():
    with gg.Graph():
        x = gg.placeholder((), name="x")
        with gg.override_gradient(lambda site, dy: 2.0 * site.default(dy)[0]):
            y = gg.exp(gg.sin(x))
        with gg.gradient_override_map({"Exp": lambda site, dy: 3.0 * site.default(dy)[0]}):
            z = gg.exp(y)
        dx = gg.gradients(gg.gradients(z, x), x)
    before = gg.Program([x], [dx])
    after = verified(remove_residuals_and_identities(before))
    assert {"Residual", "Own"} <= set(types(before))
    assert not {"Residual", "Own", "Identity"} & set(types(after))


def test_an_assignment_is_its_value():
    with gg.Graph():
        v = gg.variable(1.0)
        p = gg.Program([v], [gg.assign(v, gg.exp(v))])
    assert types(verified(remove_residuals_and_identities(p))) == ["Exp"]


def test_of_assignments_that_are_made_together_the_last_is_the_value():
    with gg.Graph():
        v, w = gg.variable(1.0), gg.variable(2.0)
        p = gg.Program([v, w], [assign_together({v: gg.exp(v), w: gg.sin(w)})])
    assert types(verified(remove_residuals_and_identities(p))) == ["Sin"]


def test_nothing_to_do_is_the_same_object():
    p = program(lambda x: gg.exp(x) * 3.0, x=(2,))
    assert remove_residuals_and_identities(p) is p
