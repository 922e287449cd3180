"""gg.associative_scan gives what the runs one after the other give."""

import numpy as np
import pytest

import graphgrad as gg

from .helpers import value, values

RNG = np.random.default_rng(7)


def product(a, b):
    return a @ b


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_prefixes_of_sums_and_of_what_does_not_commute(n, reverse):
    x, m = RNG.normal(size=(2, n)), RNG.normal(size=(n, 2, 2))
    found = values(
        [
            gg.associative_scan(gg.add, gg.constant(x), reverse, axis=-1),
            gg.associative_scan(product, gg.constant(m), reverse),
        ]
    )
    order = range(n)[::-1] if reverse else range(n)
    want, carry = np.empty((n, 2, 2)), np.eye(2)
    for i in order:
        carry = want[i] = carry @ m[i]
    sums = np.cumsum(x[:, ::-1], 1)[:, ::-1] if reverse else np.cumsum(x, 1)
    np.testing.assert_allclose(found[0], sums, atol=1e-12)
    np.testing.assert_allclose(found[1], want, atol=1e-12)


def affine(one, other):
    """x -> a x + b, one after the other."""
    return {"a": one["a"] * other["a"], "b": one["b"] * other["a"] + other["b"]}


def test_a_linear_recurrence_and_its_gradients_are_those_of_a_scan():
    a, b = gg.constant(RNG.normal(size=(6, 3))), gg.constant(RNG.normal(size=(6, 3)))
    fast = gg.associative_scan(affine, {"a": a, "b": b})["b"]

    def run(s, row):
        s = s * row[0] + row[1]
        return s, s

    slow = gg.scan(run, np.zeros(3), (a, b))[1]
    one, other = [fast], [slow]
    for _ in range(2):
        for found in (one, other):
            dxs = gg.gradients(gg.sum(gg.sin(found[-1])), [a, b], unconnected="zero")
            found += dxs
    for x, y in zip(values(one), values(other), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def test_unknown_lengths_beside_the_axis_and_a_batch():
    x = gg.placeholder((None, 5, None))
    feed = RNG.normal(size=(2, 5, 3))
    y = gg.associative_scan(gg.maximum, x, axis=1)
    np.testing.assert_array_equal(value(y, {x: feed}), np.maximum.accumulate(feed, 1))
    z = gg.vmap(lambda row: gg.associative_scan(gg.add, row, axis=-2))(x)
    np.testing.assert_allclose(value(z, {x: feed}), np.cumsum(feed, 1))


def test_the_graph_grows_with_the_logarithm():
    with gg.Graph() as g:
        gg.associative_scan(gg.add, gg.placeholder((1 << 12,)))
        assert len(g.nodes) < 300


def test_a_rule_in_the_function_counts_in_every_call():
    x = gg.constant([1.0, 2.0, 3.0, 4.0])

    def fn(a, b):
        with gg.override_gradient(lambda site, dy: (dy, 0.0 * dy)):
            return a + b

    dx = gg.gradients(gg.associative_scan(fn, x)[-1], x)
    assert value(dx).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("error", "call", "words"),
    [
        (TypeError, lambda: gg.associative_scan(3, np.ones(2)), "takes a function"),
        (TypeError, lambda: gg.associative_scan(gg.add, np.ones(2), axis=0.5), "axis"),
        (TypeError, lambda: gg.associative_scan(gg.add, np.ones(2), "no"), "reverse is True or"),
        (
            gg.ShapeError,
            lambda: gg.associative_scan(gg.add, gg.placeholder((None,))),
            r"has to be known.*gg\.scan",
        ),
        (
            gg.ShapeError,
            lambda: gg.associative_scan(gg.add, [np.ones(2), np.ones(3)]),
            "the same number",
        ),
        (gg.ShapeError, lambda: gg.associative_scan(gg.add, []), "no tensor"),
        (gg.ShapeError, lambda: gg.associative_scan(lambda a, b: (a, b), np.ones(2)), "structure"),
        (gg.ShapeError, lambda: gg.associative_scan(lambda a, b: gg.sum(a), np.ones(4)), "takes"),
        (gg.DTypeError, lambda: gg.associative_scan(lambda a, b: a < b, np.ones(2)), "bool"),
        (gg.ShapeError, lambda: gg.associative_scan(lambda a, b: None, np.ones(2)), "structure"),
        (
            gg.ShapeError,
            lambda: gg.associative_scan(gg.add, (np.ones((2, 2)), np.ones(2)), axis=1),
            r"associative_scan\(\) at .*axis of elems\[1\], which is float64\[2\]",
        ),
    ],
)
def test_what_cannot_be_scanned_is_an_error_that_says_so(error, call, words):
    with pytest.raises(error, match=words):
        call()
