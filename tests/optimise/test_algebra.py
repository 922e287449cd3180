"""Every rule: before, after, and the twin on which it must not fire."""

from collections import Counter

import numpy as np
import pytest

import graphgrad.ops.methods  # noqa: F401  (operators)
from graphgrad.execute.numpy_backend import NumpyBackend
from graphgrad.ir.graph import Graph
from graphgrad.ir.program import Program
from graphgrad.ir.verify import verify_program
from graphgrad.ops.arithmetic import divide, multiply, negative, power, subtract
from graphgrad.ops.base import Cast, apply, as_dtype, constant
from graphgrad.ops.exponential import exp
from graphgrad.ops.shaping import (
    ExpandDims,
    Squeeze,
    Transpose,
    broadcast_like,
    broadcast_to,
    reshape,
)
from graphgrad.ops.sources import placeholder
from graphgrad.optimise.algebra import ALGEBRA, simplify
from graphgrad.optimise.rewrite import rewrite, rule

GRID = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.5, -2.0])


def program(build, **inputs):
    """The program of build(x=..., ...), a placeholder for each: shape or (shape, dtype)."""
    with Graph():
        xs = [
            placeholder(*(s if s and isinstance(s[0], tuple) else (s,)), name=n)
            for n, s in inputs.items()
        ]
        y = build(*xs)
    return Program(xs, [y])


def text(p):
    """One line per node, whatever the nodes are called."""
    names = {t: f"in{i}" for i, t in enumerate(p.inputs)}
    lines = []
    for i, n in enumerate(p.nodes):
        names.update((t, f"{i}.{t.index}") for t in n.outputs)
        types = [t.type for t in n.outputs]
        lines.append(f"{i} = {n.op!r}({', '.join(names[t] for t in n.inputs)}): {types}")
    return "\n".join([*lines, f"return {', '.join(names[t] for t in p.outputs)}"])


def becomes(before, after):
    now = simplify(before)
    verify_program(now)
    assert text(now) == text(after)
    assert simplify(now) is now


def stays(before):
    assert simplify(before) is before


def same_bits(before, *arrays):
    after = simplify(before)
    assert after is not before
    (a,), (b,) = (NumpyBackend().compile(p)(*arrays) for p in (before, after))
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
    ok = ~np.isnan(a)
    assert a[ok].tobytes() == b[ok].tobytes()


NEUTRAL = {
    "x * 1": lambda x: x * 1.0,
    "1 * x": lambda x: 1.0 * x,
    "x / 1": lambda x: x / 1.0,
    "x + -0.0": lambda x: x + (-0.0),
    "x - 0.0": lambda x: x - 0.0,
    "x ** 1": lambda x: power(x, 1.0),
    "-(-x)": lambda x: negative(negative(x)),
}


@pytest.mark.parametrize("build", NEUTRAL.values(), ids=NEUTRAL)
def test_neutral_elements_go_and_keep_every_value(build):
    before = program(lambda x: exp(build(x)), x=(len(GRID),))
    becomes(before, program(lambda x: exp(x), x=(len(GRID),)))
    same_bits(program(build, x=(len(GRID),)), GRID)


NOT_NEUTRAL = {
    "x * 0 is NaN at inf": lambda x: x * 0.0,
    "x + 0.0 loses -0.0": lambda x: x + 0.0,
    "x - -0.0 loses -0.0": lambda x: x - (-0.0),
    "1 / x": lambda x: 1.0 / x,
    "0 - x is not -x at 0": lambda x: 0.0 - x,
    "x - x is NaN at inf": lambda x: x - x,
    "x / x": lambda x: x / x,
    "1 ** x": lambda x: power(1.0, x),
    "x ** -1": lambda x: power(x, -1.0),
    "x * -1": lambda x: x * -1.0,
    "x * NaN": lambda x: x * np.nan,
    "-x": lambda x: negative(x),
    "mixed constant": lambda x: x * constant(np.linspace(1, 2, 3)),
}


@pytest.mark.parametrize("build", NOT_NEUTRAL.values(), ids=NOT_NEUTRAL)
def test_what_would_change_a_value_stays(build):
    stays(program(build, x=(3,)))


@pytest.mark.parametrize("build", [lambda x: x * 1, lambda x: x + 0, lambda x: x - 0])
def test_integers_have_one_zero(build):
    becomes(program(build, x=((3,), "int64")), program(lambda x: x, x=((3,), "int64")))


def test_complex_products_mix_their_parts():
    stays(program(lambda x: multiply(x, 1.0), x=((3,), "complex128")))
    stays(program(lambda x: divide(x, 1.0), x=((3,), "complex128")))
    stays(program(lambda x: subtract(x, 0.0), x=((3,), "complex128")))


def test_a_product_that_broadcasts_stays():
    stays(program(lambda x: x * constant(np.ones((4, 3))), x=(3,)))
    stays(program(lambda x: x * constant(np.ones((3,))), x=((None,), "float64")))


def test_a_product_with_ones_of_the_same_shape_goes():
    after = program(lambda x: x, x=(2, 3))
    becomes(program(lambda x: x * constant(np.ones((2, 3))), x=(2, 3)), after)
    becomes(program(lambda x: x * broadcast_to(1.0, (2, 3)), x=(2, 3)), after)
    named = (("N", 3), "float64")
    becomes(program(lambda x: x * broadcast_like(1.0, x), x=named), program(lambda x: x, x=named))


def test_ones_of_another_unknown_length_stay():
    stays(
        program(
            lambda x, y: x * broadcast_like(1.0, y), x=((None,), "float64"), y=((None,), "float64")
        )
    )


def test_casts_that_lose_nothing_go():
    def through(*dtypes):
        return lambda x: chain(x, [Cast(as_dtype(d)) for d in dtypes])

    f4 = ((3,), "float32")
    becomes(program(through("float64", "float32"), x=f4), program(lambda x: x, x=f4))
    becomes(program(through("float32"), x=f4), program(lambda x: x, x=f4))
    stays(program(through("float32", "float64"), x=(3,)))
    stays(program(through("float64", "int64"), x=((3,), "int64")))
    stays(program(through("float16", "float32"), x=f4))


def chain(x, ops):
    for op in ops:
        x = apply(op, x)
    return x


def test_transposes_join():
    becomes(
        program(lambda x: chain(x, [Transpose((1, 2, 0)), Transpose((2, 0, 1))]), x=(2, 3, 4)),
        program(lambda x: x, x=(2, 3, 4)),
    )
    before = program(lambda x: chain(x, [Transpose((1, 2, 0))] * 2), x=(2, 3, 4))
    becomes(before, program(lambda x: apply(Transpose((2, 0, 1)), x), x=(2, 3, 4)))
    same_bits(before, np.arange(24.0).reshape(2, 3, 4))
    stays(program(lambda x: apply(Transpose((1, 0)), x), x=(2, 3)))


def test_axes_put_in_and_taken_out():
    both = [ExpandDims((1,)), Squeeze((1,))]
    becomes(program(lambda x: chain(x, both), x=(3,)), program(lambda x: x, x=(3,)))
    becomes(program(lambda x: chain(x, both[::-1]), x=(3, 1)), program(lambda x: x, x=(3, 1)))
    stays(program(lambda x: chain(x, [ExpandDims((0,)), Squeeze((1,))]), x=(1,)))
    stays(program(lambda x: chain(x, both[::-1]), x=((3, None), "float64")))


def test_reshapes_join():
    becomes(
        program(lambda x: reshape(reshape(x, (6,)), (3, 2)), x=(2, 3)),
        program(lambda x: reshape(x, (3, 2)), x=(2, 3)),
    )
    becomes(
        program(lambda x: reshape(reshape(x, (6,)), (2, 3)), x=(2, 3)),
        program(lambda x: x, x=(2, 3)),
    )
    stays(program(lambda x: reshape(reshape(x, (-1,)), (-1, 1)), x=(("N", 3), "float64")))


def test_broadcasts_go_into_elementwise_ops():
    becomes(
        program(lambda x, y: broadcast_to(x, (2, 3)) * y, x=(3,), y=(2, 3)),
        program(lambda x, y: x * y, x=(3,), y=(2, 3)),
    )
    unknown = ((None, 3), "float64")
    stays(program(lambda x, y: broadcast_like(x, y) * y, x=(3,), y=unknown))
    stays(program(lambda x: exp(broadcast_to(x, (2, 3))), x=(3,)))


def test_a_broadcast_to_nothing_new_goes():
    after = program(lambda x: broadcast_to(x, (4, 2, 3)), x=(3,))
    becomes(program(lambda x: broadcast_to(broadcast_to(x, (2, 3)), (4, 2, 3)), x=(3,)), after)


def test_what_an_input_stands_for_is_not_looked_at():
    with Graph():
        x = placeholder((2,), name="x")
        y = negative(x)
        z = negative(y)
        c = constant(1.0)
        w = x * c
    fed = Program([y, x, c], [z, w])
    stays(fed)
    z_value, w_value = NumpyBackend().compile(fed)(np.ones(2), np.ones(2), np.array(5.0))
    np.testing.assert_array_equal(z_value, [-1, -1])
    np.testing.assert_array_equal(w_value, [5, 5])


def test_what_fired_is_counted():
    fired = Counter()
    simplify(program(lambda x: negative(negative(x * 1.0 * 1.0)), x=(3,)), fired)
    assert fired == {"times_one": 2, "double_negative": 1}


def test_rules_that_undo_each_other_end_in_an_error():
    @rule("Negative")
    def again(node):
        """-x -> -x"""
        return node.outputs[0]

    with pytest.raises(RuntimeError, match="does not come to an end"):
        rewrite(again)(program(lambda x: negative(x), x=(3,)))


def test_every_rule_says_its_algebra():
    assert all(r.__doc__ and "->" in r.__doc__ for r in ALGEBRA)
