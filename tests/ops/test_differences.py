"""Differences of neighbours are np.diff's, and their gradients those of differences."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.program import Program

from .against_numpy import difference, gradient, same

X = np.random.default_rng(0).normal(size=(3, 4))

FORMS = [
    {},
    {"n": 2},
    {"n": 3, "axis": 0},
    {"n": 5},
    {"n": 0, "prepend": 1.0},
    {"axis": 0},
    {"prepend": 2.0},
    {"append": 1},
    {"axis": 0, "prepend": X[:2], "append": X[:1]},
    {"n": 2, "prepend": 0.0, "append": X},
]


@pytest.mark.parametrize("kwargs", FORMS)
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint8", "bool"])
def test_diff_is_numpys(kwargs, dtype):
    x = (X * 5).astype(dtype)
    for fn in (gg.diff, np.diff):
        same(lambda t, fn=fn: fn(t, **kwargs), lambda a: np.diff(a, **kwargs), x)


@pytest.mark.parametrize("kwargs", FORMS)
def test_the_gradient_of_diff(kwargs):
    weights = np.random.default_rng(1).normal(size=np.diff(X, **kwargs).shape)
    found = gradient(lambda t: gg.diff(t, **kwargs), X, weights=weights)
    want = difference(lambda t: gg.diff(t, **kwargs), X, weights)
    np.testing.assert_allclose(found, want, atol=1e-8)
    again = gradient(lambda t: gg.diff(t, **kwargs) ** 2, X, order=2)
    two = np.ones_like(weights)
    np.testing.assert_allclose(
        again, difference(lambda t: gg.diff(t, **kwargs) ** 2, X, two, order=2), atol=1e-7
    )


def test_np_diff_of_a_tensor_takes_its_arguments_by_place_and_by_name():
    same(lambda t: np.diff(t, 2), lambda a: np.diff(a, 2), X)
    same(lambda t: np.diff(t, 1, 0), lambda a: np.diff(a, 1, 0), X)
    same(lambda t: np.diff(t, n=1, axis=0), lambda a: np.diff(a, n=1, axis=0), X)
    x = gg.placeholder((3,))
    same(lambda s, t: np.diff(s, prepend=t), lambda a, b: np.diff(a, prepend=b), X[0], X[1])
    assert np.diff(x, append=x).shape == (5,)


def test_diff_refuses_what_numpy_refuses():
    x = gg.placeholder((3,))
    with pytest.raises(ValueError, match="n >= 0"):
        gg.diff(x, -1)
    with pytest.raises(gg.ShapeError):
        gg.diff(gg.placeholder(()))
    with pytest.raises(gg.ShapeError):
        gg.diff(x, axis=1)


def test_diff_of_graphs_says_how_graphs_are_compared():
    with gg.Graph() as graph:
        x = gg.placeholder((3,))
        y = gg.sin(x)
        program = Program([x], [y])
        for wrong in (
            lambda: gg.diff(graph, graph),
            lambda: gg.diff(graph),
            lambda: gg.diff(program, program),
            lambda: gg.diff([x, y], [y]),
            lambda: gg.diff(x, y),
        ):
            with pytest.raises(gg.DTypeError, match="graph_diff"):
                wrong()
        assert not gg.graph_diff(graph, graph)
