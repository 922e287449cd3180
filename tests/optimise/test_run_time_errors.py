"""Optimising takes away no run-time error of shape, whatever it takes away."""

import numpy as np
import pytest

import graphgrad as gg

BACKENDS = ["numpy", "llvm", "jax"]


def dropped():
    """What is made of a broken sum c or a broken comparison b, so that neither is read."""
    return {
        "x ^ x": lambda c, b: gg.logical_xor(b, b),
        "x & False": lambda c, b: gg.logical_and(b, False),
        "x | True": lambda c, b: gg.logical_or(b, True),
        "x < x": lambda c, b: c < c,
        "x ** 0": lambda c, b: c**0,
        "where(True, 1, x)": lambda c, b: gg.where(True, gg.ones((1, 3)), c),
        "n - n": lambda c, b: (n := gg.cast(c, "int64")) - n,
        "n * 0": lambda c, b: gg.cast(c, "int64") * 0,
    }


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("optimize", [False, True])
@pytest.mark.parametrize("name", dropped())
def test_lengths_that_do_not_broadcast_are_an_error(name, optimize, backend):
    with gg.Graph():
        x, y = gg.placeholder((None,)), gg.placeholder((1, 3))
        z = dropped()[name](x + y, x >= y)
        run = gg.compile([x, y], z, optimize=optimize, backend=backend)
        run(np.ones(3), np.ones((1, 3)))
        for _ in range(2):
            with pytest.raises(gg.ShapeError, match="lengths 2 and 3"):
                run(np.ones(2), np.ones((1, 3)))
        run(np.ones(1), np.ones((1, 3)))


@pytest.mark.parametrize("optimize", [False, True])
def test_the_difference_of_a_sum_with_itself_is_an_error_with_fast_math_too(optimize):
    with gg.Graph():
        x, y = gg.placeholder(("n",)), gg.placeholder(("m",))
        c = x + y
        run = gg.compile([x, y], c - c, optimize=optimize, backend="numpy", fast_math=True)
        assert run(np.ones(2), np.ones(2)).shape == (2,)
        with pytest.raises(gg.ShapeError):
            run(np.ones(2), np.ones(3))


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("optimize", [False, True])
def test_a_branch_that_does_not_fit_is_an_error_where_it_is_chosen(optimize, backend):
    with gg.Graph():
        flag, x, y = gg.placeholder((), "bool"), gg.placeholder((None,)), gg.placeholder((1, 3))

        def broken():
            b = x >= y
            return gg.cast(gg.logical_xor(b, b), "float64")

        z = gg.cond(flag, broken, lambda: y)
        run = gg.compile([flag, x, y], z, optimize=optimize, backend=backend)
        assert run(False, np.ones(2), np.ones((1, 3))).tolist() == [[1, 1, 1]]
        with pytest.raises((gg.ShapeError, ValueError)):
            run(True, np.ones(2), np.ones((1, 3)))
