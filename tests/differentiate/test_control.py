"""Rules in the branches of a choice mean there what they mean anywhere."""

import pytest

import graphgrad as gg

from .helpers import Spy, value, values


def straight(f, x):
    return f()


def in_a_branch(f, x):
    return gg.cond(x > 0.0, f, lambda: gg.stop_gradient(x))


def in_the_other(f, x):
    return gg.cond(x < 0.0, lambda: gg.stop_gradient(x), f)


WAYS = [straight, in_a_branch, in_the_other]


@pytest.mark.parametrize("way", WAYS)
def test_S21_a_rule_speaks_for_inputs_that_the_value_does_not_need(way):
    """Swapped gradients: the gradient of k comes from y, which does not depend on it."""
    x, k = gg.placeholder(()), gg.placeholder(())

    def f():
        with gg.override_gradient(lambda site, dy, dz: (dz + 1.0 * dy, 5.0 * dy)) as region:
            y = gg.exp(x)
            z = gg.sin(k)
            region.declare(outputs=[y, z])
        return y

    y = way(f, x)
    assert values(gg.gradients(y, [x, k]), {x: 1.0, k: 2.0}) == [1, 5]


@pytest.mark.parametrize("way", WAYS)
def test_S28_an_argument_that_the_value_does_not_need(way):
    """A slope given as an argument, which only the gradient reads and has a gradient for."""
    x, slope = gg.placeholder(()), gg.placeholder(())

    @gg.custom_gradient
    def step(x, slope):
        return gg.sign(x), lambda dy: (dy * slope, dy * x)

    y = way(lambda: step(x, slope), x)
    assert values(gg.gradients(y, [x, slope]), {x: 2.0, slope: 3.0}) == [3, 2]
    dx = gg.gradients(y, x)
    assert value(gg.gradients(dx, slope), {x: 2.0, slope: 3.0}) == 1


@pytest.mark.parametrize("way", WAYS)
def test_S10_a_declared_input_that_is_computed_in_the_branch(way):
    x, k = gg.placeholder(()), gg.placeholder(())

    def f():
        h = gg.square(k)
        with gg.override_gradient(lambda site, dy: (dy, 7.0 * dy), inputs=[x, h]):
            return gg.exp(x)

    y = way(f, x)
    assert values(gg.gradients(y, [x, k]), {x: 1.0, k: 3.0}) == [1, 42]


@pytest.mark.parametrize("way", WAYS)
def test_S09_what_a_branch_returns_is_read_outside_of_its_regions(way):
    """Although it is read inside, too."""
    x, rule = gg.placeholder(()), Spy(lambda site, dy, dz: 3.0 * dy + 2.0 * dz)

    def f():
        with gg.override_gradient(rule):
            y = gg.exp(x)
            gg.sin(y)
        return y

    y = way(f, x)
    y = gg.identity(y)  # a reader, where there is no branch
    assert value(gg.gradients(y, x), {x: 1.0}) == 3
    assert rule.calls == 1
