"""custom_gradient: its boundary, its arguments and results, what it captures."""

from __future__ import annotations

from functools import partial, wraps

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ops.elementwise.exponential import exp
from graphgrad.ops.elementwise.trigonometry import cos, sin
from graphgrad.ops.reduce.reductions import sum as reduce_sum
from graphgrad.ops.sources import identity, placeholder, stop_gradient, variable

from .helpers import Spy, message_of, scaled, value, values

# --- S3 ------------------------------------------------------------------------------------------


def test_S03_the_nodes_that_f_builds_are_marked_per_call(graph):
    @gg.custom_gradient
    def f(x):
        return sin(exp(x)), lambda dy: 7.0 * dy

    x = placeholder(())
    y, z = f(x), f(x)
    assert len(graph.regions) == 2
    assert y.node.region is not z.node.region
    assert value(gg.gradients(f(f(x)), x)) == 49
    assert value(sin(exp(x)), {x: 0.3}) == value(y, {x: 0.3})


def test_S03_one_Identity_node_per_result():
    inner = []

    @gg.custom_gradient
    def f(x):
        inner.append(exp(x))
        return inner[0], lambda dy: dy

    y = f(placeholder(()))
    assert y is not inner[0]
    assert y.node.type == "Identity"
    assert y.node.inputs == (inner[0],)


def test_S03_a_returned_argument_is_reversed():
    @gg.custom_gradient
    def reverse(x):
        return x, lambda dy: -dy

    x = placeholder(())
    y = reverse(x)
    assert y is not x
    assert value(y, {x: 3.0}) == 3
    assert values(gg.gradients([y, x * x], x), {x: 3.0}) == 5
    assert value(gg.gradients(reverse(reverse(x)), x)) == 1


def test_S03_a_captured_tensor_may_be_returned():
    x = placeholder(())
    h = exp(x)

    @gg.custom_gradient
    def f(x):
        return h, lambda dy: 7.0 * dy

    y = f(x)
    assert value(y, {x: 0.0}) == 1
    z = placeholder(())
    assert value(gg.gradients(f(z), z)) == 7


def test_S03_the_same_tensor_may_be_returned_twice():
    @gg.custom_gradient
    def f(x):
        y = exp(x)
        return (y, y), lambda da, db: 2.0 * da + 3.0 * db

    x = placeholder(())
    a, b = f(x)
    assert a is not b
    found = [gg.gradients(t, x) for t in (a, b, [a, b])]
    assert values(found, {x: 0.0}) == [2, 3, 5]


def test_S03_arguments_keep_one_slot_per_position():
    spy = Spy()

    @gg.custom_gradient
    def f(a, b, c):
        return a * b * c, lambda dy: [2.0 * dy, 3.0 * dy, 5.0 * dy]

    x, z = placeholder(()), placeholder(())
    y = f(x, z, x)
    assert values(gg.gradients(y, [x, z])) == [7, 3]
    gg.gradients(y, x, overrides={y.node.region: spy})
    assert spy.sites[0].inputs == (x, z, x)


def test_S03_an_argument_that_is_not_used_keeps_its_slot():
    @gg.custom_gradient
    def f(a, b):
        return exp(b), lambda dy: [2.0 * dy, 3.0 * dy]

    x, z = placeholder(()), placeholder(())
    assert values(gg.gradients(f(x, z), [x, z])) == [2, 3]


def test_S03_numbers_and_arrays_among_the_arguments_have_a_slot():
    @gg.custom_gradient
    def f(a, b, c):
        return a * b * c, lambda dy: [2.0 * dy, None, None]

    x = placeholder(())
    assert value(gg.gradients(f(x, 3.0, np.float64(2.0)), x)) == 2


def test_S03_nested_arguments_and_results():
    @gg.custom_gradient
    def f(params, xs):
        def grad(*dys):
            da, db = dys
            return [2.0 * da, 3.0 * da, 5.0 * db, 7.0 * db]  # b, w, xs[0], xs[1]

        return {"b": params["w"] * xs[0], "a": params["b"] * xs[1]}, grad

    w, b, x0, x1 = (placeholder(()) for _ in range(4))
    out = f({"w": w, "b": b}, (x0, x1))
    assert set(out) == {"a", "b"}
    assert values(out["b"], {w: 2.0, x0: 5.0}) == 10
    found = gg.gradients([out["a"], out["b"]], [b, w, x0, x1])
    assert values(found) == [2, 3, 5, 7]


def test_S03_keyword_arguments_that_hold_tensors_are_positional():
    @gg.custom_gradient
    def f(x, scale=1.0, power=2):
        assert power == 2
        return x * scale, lambda dy: [7.0 * dy, 11.0 * dy]

    x, s = placeholder(()), placeholder(())
    assert values(gg.gradients(f(x, scale=s), [x, s])) == [7, 11]


def test_S03_grad_fn_may_close_over_anything():
    x, strength = placeholder(()), placeholder(())

    @gg.custom_gradient
    def f(x):
        h = exp(x)
        return sin(h), lambda dy: dy * h * strength * 2.0

    found = gg.gradients(f(x), x)
    assert value(found, {x: 0.0, strength: 5.0}) == 10
    assert value(gg.gradients(found, strength), {x: 0.0}) == 2


def test_S03_gradients_inside_the_forward():
    @gg.custom_gradient
    def f(x):
        y = x * x * x
        dx = gg.gradients(y, x)  # the inside's own derivative
        return y, lambda dy: dy * dx

    x = placeholder(())
    y = f(x)
    g1 = gg.gradients(y, x)
    g2 = gg.gradients(g1, x)
    g3 = gg.gradients(g2, x)
    assert values([y, g1, g2, g3], {x: 2.0}) == [8, 12, 12, 6]


def test_S03_gradients_inside_grad_fn():
    @gg.custom_gradient
    def f(x):
        h = exp(x)
        y = sin(h)

        def grad(dy):
            return gg.gradients(y, x, grad_ys=dy)

        return y, grad

    x = placeholder(())
    t, plain = f(x), sin(exp(x))
    for _ in range(3):
        t, plain = gg.gradients(t, x), gg.gradients(plain, x)
        assert value(t, {x: 0.2}) == pytest.approx(value(plain, {x: 0.2}), rel=1e-12)


def test_S03_nested_custom_gradients():
    @gg.custom_gradient
    def inner(x):
        return x * x, lambda dy: 11.0 * dy

    @gg.custom_gradient
    def outer(x):
        y = inner(x)
        return y * 2.0, lambda dy: gg.gradients(y * 2.0, x, grad_ys=dy)

    x = placeholder(())
    assert value(gg.gradients(outer(x), x)) == 22


def test_S03_a_result_that_is_no_pair_is_an_error():
    def only(x):
        return exp(x)

    def three(x):
        return exp(x), exp(x), lambda da, db: da

    def nothing(x):
        return ()

    x = placeholder(())
    for f in (only, three, nothing):
        with pytest.raises(gg.GradientError, match="pair") as error:
            gg.custom_gradient(f)(x)
        assert f.__name__ in str(error.value)
        assert "test_custom_gradient.py" in str(error.value)
    with pytest.raises(gg.GradientError, match="Group the results"):
        gg.custom_gradient(three)(x)


def test_S03_a_result_that_is_no_tensor_is_an_error():
    @gg.custom_gradient
    def f(x):
        return (exp(x), 3.0), lambda da, db: da

    with pytest.raises(gg.GradientError, match=r"3\.0"):
        f(placeholder(()))


def test_S03_the_wrong_number_of_gradients_names_the_function():
    @gg.custom_gradient
    def my_function(x, z):
        return x * z, lambda dy: dy

    x, z = placeholder(()), placeholder(())
    with pytest.raises(gg.GradientError, match="1 gradient for 2 inputs") as error:
        gg.gradients(my_function(x, z), x)
    assert "my_function" in str(error.value)


def test_S03_a_grad_fn_of_the_wrong_arity():
    @gg.custom_gradient
    def my_function(x):
        return (exp(x), sin(x)), lambda dy: dy

    x = placeholder(())
    with pytest.raises((gg.GradientError, TypeError)) as error:
        gg.gradients(my_function(x)[0], x)
    assert "my_function" in message_of(error.value)


def test_S03_an_error_in_the_forward_restores_the_state():
    @gg.custom_gradient
    def f(x):
        exp(x)
        raise ZeroDivisionError

    x = placeholder(())
    with pytest.raises(ZeroDivisionError):
        f(x)
    assert exp(x).node.region is None


def test_S03_the_function_keeps_its_name_and_docstring():
    @gg.custom_gradient
    def f(x):
        """The docstring."""
        return x, lambda dy: dy

    assert (f.__name__, f.__doc__) == ("f", "The docstring.")


def test_S03_grad_pass_through():
    x = placeholder(())
    f = gg.grad_pass_through(lambda t: gg.cast(gg.cast(t, "int64"), "float64"))
    y = f(x)
    assert values([y, gg.gradients(y * y, x)], {x: 2.7}) == [2, 4]


def test_S03_within_a_region_it_is_an_inner_region():
    @gg.custom_gradient
    def f(x):
        return x * x, lambda dy: 7.0 * dy

    x = placeholder(())
    with gg.override_gradient(scaled(3.0)):
        y = f(x)
    with gg.override_gradient(lambda site, dy: 11.0 * dy):
        z = f(x)
    assert values([gg.gradients(y, x), gg.gradients(z, x)]) == [21, 11]


# --- S28 -----------------------------------------------------------------------------------------


def test_S28_its_inputs_are_the_arguments_and_its_outputs_the_identities():
    spy = Spy()
    w = placeholder(())

    @gg.custom_gradient
    def f(x):
        exp(x)  # read by nothing
        return sin(x) * w, lambda dy: dy

    x = placeholder(())
    y = f(x)
    gg.gradients(y, x, overrides={y.node.region: spy})
    assert spy.sites[0].inputs == (x,)
    assert spy.sites[0].outputs == (y,)


def test_S28_what_f_itself_returned_is_a_residual():
    kept = []

    @gg.custom_gradient
    def f(x):
        kept.append(x * x)
        return kept[0], lambda dy: dy * kept[0]

    x = placeholder(())
    y = f(x)
    g1 = gg.gradients(y, x)
    assert values([g1, gg.gradients(g1, x)], {x: 3.0}) == [9, 6]
    with pytest.raises(gg.GradientError, match="hidden"):
        gg.gradients(kept[0] * 1.0, x)


def test_S28_a_captured_tensor_needs_a_gradient_from_the_rule():
    w = placeholder(())
    h = exp(w)

    @gg.custom_gradient
    def f(x):
        return x * h, lambda dy: 7.0 * dy

    x = placeholder(())
    y = f(x)
    assert value(gg.gradients(y, x)) == 7
    for asked in (w, h, [x, w]):
        with pytest.raises(gg.GradientError, match="not among its inputs") as error:
            gg.gradients(y, asked)
        assert h.name in str(error.value)
        assert "test_custom_gradient.py" in str(error.value)
    assert gg.gradients(y, w, stop_gradients=[h]) is None


def test_S28_a_captured_and_returned_tensor_needs_one_too():
    w = placeholder(())
    h = exp(w)

    @gg.custom_gradient
    def f(x):
        return h, lambda dy: 7.0 * dy

    x = placeholder(())
    with pytest.raises(gg.GradientError, match="not among its inputs"):
        gg.gradients(f(x), w)


def test_S28_a_mapping_gives_one():
    w = placeholder(())
    h = exp(w)
    x = placeholder(())

    @gg.custom_gradient
    def f(x):
        return x * h, lambda dy: {x: 7.0 * dy, h: 11.0 * dy}

    assert values(gg.gradients(f(x), [x, w]), {w: 0.0}) == [7, 11]


def test_S28_a_captured_variable_needs_one():
    w = variable(2.0)

    @gg.custom_gradient
    def f(x):
        return x * w, lambda dy: 7.0 * dy

    x = placeholder(())
    y = f(x)
    with pytest.raises(gg.GradientError, match="variables"):
        gg.gradients(y, w)
    assert value(gg.gradients(y, x)) == 7


def test_S28_the_variables_protocol():
    v, w = variable(2.0), variable(3.0)
    asked = []

    @gg.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            asked.append(variables)
            return dy * w * v, [5.0 * dy, 11.0 * dy]

        return x * w * v, grad

    x = placeholder(())
    found = gg.gradients(f(x), [x, v, w])
    assert asked == [[w, v]]  # in order of first use
    assert values(found, {x: 1.0}) == [6, 11, 5]


def test_S28_variables_built_in_the_function_count():
    made = []

    @gg.custom_gradient
    def dense(x):
        w = variable([2.0, 3.0])
        made.append(w)
        return x * w, lambda dy, variables: (dy * w, [dy * x * 10.0])

    x = placeholder((2,))
    y = dense(x)
    found = gg.gradients(y, [x, *made])
    assert [v.tolist() for v in values(found, {x: [1.0, 2.0]})] == [[2, 3], [10, 20]]


def test_S28_without_variables_the_protocol_passes_an_empty_list():
    asked = []

    @gg.custom_gradient
    def f(x):
        def grad(dy, variables=None):
            asked.append(variables)
            return 7.0 * dy

        return exp(x), grad

    x = placeholder(())
    assert value(gg.gradients(f(x), x)) == 7
    assert asked == [[]]


def test_S28_without_variables_the_protocol_takes_the_pair_of_gradients_and_an_empty_list():
    @gg.custom_gradient
    def f(x):
        return exp(x), lambda dy, variables: (7.0 * dy, [])

    x = placeholder(())
    assert value(gg.gradients(f(x), x)) == 7


def test_S28_who_takes_variables_is_read_off_the_signature():
    w = variable(2.0)

    def taking(dy, variables):
        return dy, [5.0 * dy for _ in variables]

    def only_naming(dy):
        variables = 7.0
        return variables * dy

    @wraps(taking)
    def wrapping(*args, **more):
        return taking(*args, **more)

    for grad_fn in (wrapping, partial(taking)):
        f = gg.custom_gradient(lambda x, grad_fn=grad_fn: (x * w, grad_fn))
        assert value(gg.gradients(f(placeholder(())), w)) == 5
    x = placeholder(())
    assert value(gg.gradients(gg.custom_gradient(lambda x: (x * w, only_naming))(x), x)) == 7


def test_S28_the_wrong_number_of_variable_gradients_is_an_error_that_lists_them():
    w = variable(2.0, name="weight")

    @gg.custom_gradient
    def f(x):
        return x * w, lambda dy, variables: (dy, [])

    x = placeholder(())
    with pytest.raises(gg.GradientError, match="weight"):
        gg.gradients(f(x), w)

    for wrong in (lambda dy, variables: dy, lambda dy, variables: (dy, [dy], dy)):
        g = gg.custom_gradient(lambda x, wrong=wrong: (x * w, wrong))
        with pytest.raises(gg.GradientError, match=r"\(dxs, dvars\)"):
            gg.gradients(g(x), w)


def test_S28_constants_and_weights_built_inside_are_inside():
    @gg.custom_gradient
    def f(x):
        w = gg.constant([[1.0, 2.0], [3.0, 4.0]])
        return reduce_sum(x * w), lambda dy: dy * w * 10.0

    x = placeholder((2, 2))
    found = value(gg.gradients(f(x), x))
    assert found.tolist() == [[10, 20], [30, 40]]


def test_S28_a_region_opened_by_the_rule_may_capture_what_is_hidden():
    # an inner custom_gradient of an argument it does not use, over values of the outer function
    @gg.custom_gradient
    def f(x):
        h = exp(x)

        def grad(dy):
            @gg.custom_gradient
            def inner(unused):
                return h * cos(h), lambda ddx: 5.0 * ddx

            return dy * inner(x)

        return sin(h), grad

    x = placeholder(())
    g1 = gg.gradients(f(x), x)
    g2 = gg.gradients(g1, x)
    assert values([g1, g2], {x: 0.0}) == pytest.approx([np.cos(1.0), 5])


def test_S28_a_plain_region_opened_by_the_rule_may_capture_what_is_hidden():
    def rule(site, dy):
        (h,) = site.nodes[0].outputs
        with gg.override_gradient(lambda s, dd: 5.0 * dd, inputs=[site.inputs[0]]):
            z = site.inputs[0] * 0.0 + h
        return dy * z

    x = placeholder(())
    with gg.override_gradient(rule):
        y = sin(exp(x))
    g1 = gg.gradients(y, x)
    assert values([g1, gg.gradients(g1, x)], {x: 0.0}) == [1, 5]


def test_S28_a_stopped_capture_is_harmless():
    w = placeholder(())
    h = stop_gradient(exp(w))

    @gg.custom_gradient
    def f(x):
        return x * h, lambda dy: 7.0 * dy

    x = placeholder(())
    assert gg.gradients(f(x), w) is None


def test_S28_an_argument_of_no_outputs_effect_counts_as_reaching_every_output():
    @gg.custom_gradient
    def f(x, z):
        return (exp(x), sin(z)), lambda da, db: [2.0 * da, 3.0]

    x, z = placeholder(()), placeholder(())
    a, _b = f(x, z)
    assert value(gg.gradients(a, z)) == 3


def test_S28_an_integer_argument_gets_no_gradient():
    @gg.custom_gradient
    def f(x, n):
        return x * gg.cast(n, "float64"), lambda dy: [7.0 * dy, None]

    x, n = placeholder(()), placeholder((), "int64")
    assert value(gg.gradients(f(x, n), x)) == 7


def test_S28_the_boundary_of_a_function_of_nothing():
    @gg.custom_gradient
    def f():
        return gg.constant(3.0), lambda dy: []

    x = placeholder(())
    y = f() * x
    assert value(gg.gradients(y, x)) == 3
    assert value(identity(y), {x: 2.0}) == 6


# --- methods -------------------------------------------------------------------------------------


def test_S28_on_a_method_the_error_names_self_and_says_what_to_do():
    class Layer:
        def __init__(self, factor):
            self.factor = factor
            self.bound = gg.custom_gradient(self.plain)

        @gg.custom_gradient
        def call(this, x):
            return this.factor * x, lambda dy: 7.0 * dy

        def plain(self, x):
            return self.factor * x, lambda dy: 7.0 * dy

        def inner(self, x):
            @gg.custom_gradient
            def times(x):
                return self.factor * x, lambda dy: 7.0 * dy

            return times(x)

    layer, x = Layer(3.0), placeholder(())
    with pytest.raises(gg.DTypeError) as error:
        layer.call(x)
    message = str(error.value)
    for part in (
        "the argument 'this' of call (test_custom_gradient.py:",
        "called at test_custom_gradient.py:",
        "Decorate a function of the tensors inside the method",
        "self.call = gg.custom_gradient(self.call)",
    ):
        assert part in message
    for y in (layer.bound(x), layer.inner(x)):
        assert values([y, gg.gradients(y, x)], {x: 2.0}) == [6, 7]


def test_S28_a_function_made_of_another_is_known_by_the_line_that_decorates_it():
    def scaled(factor, x):
        return x * factor, lambda dy: (dy, dy)

    x = placeholder(())
    f = gg.custom_gradient(partial(scaled, 3.0))
    with pytest.raises(gg.GradientError, match=r"test_custom_gradient\.py:\d+") as error:
        gg.gradients(f(x), x)
    assert "2 gradients for 1 input" in str(error.value)


def test_S28_an_argument_that_is_no_tensor_is_named():
    @gg.custom_gradient
    def f(x, how):
        return x, lambda dy: [dy, gg.NO_GRAD]

    with pytest.raises(gg.DTypeError, match=r"the argument 'how' of f .* is 'same'") as error:
        f(placeholder(()), "same")
    assert "functools.partial" in str(error.value)


def test_S28_a_mapping_beside_the_gradients_of_variables():
    with gg.Graph():
        x, c = gg.placeholder(()), gg.placeholder(())
        v = gg.variable(0.7)

        @gg.custom_gradient
        def f(x):
            def grad_fn(dy, variables=None):
                return {x: 3.0 * dy, c: 2.0 * dy}, [5.0 * dy for _ in variables]

            return x * c * v, grad_fn

        found = gg.evaluate(gg.gradients(f(x), [x, c, v]), {x: 2.0, c: 3.0})
    assert found == [3.0, 2.0, 5.0]


def test_S24_a_second_rule_beside_a_mapping():
    with gg.Graph():
        x, c = gg.placeholder(()), gg.placeholder(())

        def of(second):
            @gg.custom_gradient
            def f(x):
                return x * c, lambda dy: ({x: dy * c * x, c: dy * x}, second)

            return gg.gradients(f(x), x)

        dx = of(lambda ddx, ddc: 100.0 * ddx)
        assert gg.evaluate([dx, gg.gradients(dx, x)], {x: 2.0, c: 3.0}) == [6.0, 100.0]
        dx = of(lambda ddx, ddc: {x: ddx})
        with pytest.raises(gg.GradientError, match="returned a mapping; it gives one gradient"):
            gg.gradients(dx, x)


def test_S28_a_grad_fn_for_fewer_gradients_than_results_is_told_what_it_gets():
    @gg.custom_gradient
    def two(x):
        return (gg.sin(x), gg.cos(x)), lambda dy: dy

    x = gg.placeholder(())
    a, b = two(x)
    with pytest.raises(gg.GradientError, match="gets 2 gradients, one per result, but it is"):
        gg.gradients(a + b, x)
