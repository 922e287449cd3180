"""Bodies of control flow are healed; conditions and steps ask what was written."""

import numpy as np
import pytest

import graphgrad as gg

AT = np.array([800.0, 1.0, 2.0])


def softplus_of(x):
    return gg.log(1 + gg.exp(x))


def by_cond(x):
    return gg.cond(gg.sum(x) > 0, lambda: softplus_of(x), lambda: gg.sqrt(x * x))


def by_scan(x):
    return gg.scan(lambda c, a: (softplus_of(c + a), c), gg.constant(0.0), x)


def by_map(x):
    return gg.map(softplus_of, x)


def by_while(x):
    return gg.while_loop(lambda a: gg.sum(gg.exp(a) - 1) < 1.0, lambda a: a + softplus_of(a), x)


def by_cond_in_scan(x):
    def step(c, a):
        return gg.cond(a > 0, lambda: gg.log(gg.exp(c) + gg.exp(a)), lambda: c), c

    return gg.scan(step, gg.constant(0.0), x)[0]


@pytest.mark.parametrize(
    ("f", "names"),
    [
        (by_cond, ["log1pexp", "abs"]),
        (by_scan, ["log1pexp"]),
        (by_map, ["log1pexp"]),
        (by_cond_in_scan, ["logaddexp"]),
    ],
)
def test_what_is_written_in_a_body_is_healed(f, names):
    x = gg.placeholder((3,))
    y = f(x)
    made = gg.heal(y)
    assert [site.name for site in made.sites] == names
    assert "test_healed_bodies.py" in made.sites[0].where
    leaves = made.ys if isinstance(made.ys, tuple | list) else [made.ys]
    (dx,) = gg.gradients(gg.sum(leaves[0]), [x])
    values = gg.compile(x, [*leaves, dx])(AT)
    assert all(np.isfinite(v).all() for v in values)
    before = gg.compile(x, y)(AT / 100)
    np.testing.assert_allclose(
        np.ravel(gg.compile(x, leaves[0])(AT / 100)),
        np.ravel(before[0] if isinstance(before, tuple | list) else before),
        rtol=1e-12,
    )
    assert gg.heal(made.ys).sites == ()


def test_the_test_of_a_loop_asks_what_was_written():
    x = gg.placeholder((3,))
    sites = {site.name: site.now for site in gg.heal(by_while(x)).sites}
    assert sites == {
        "expm1": "left alone: used only by a condition or a step function",
        "log1pexp": "softplus(x)",
    }


def test_a_body_is_left_alone_where_a_rule_speaks_for_it_or_at_knows_nothing():
    x = gg.placeholder((3,))
    y = by_scan(x)[0]
    with gg.override_gradient(lambda site, dy: 7.0 * dy):
        z = by_map(x)
    assert {s.now for s in gg.heal(z).sites} == {"left alone: marked"}
    assert gg.heal(z).ys is z
    pytest.importorskip("mpmath")
    made = gg.heal(y, at={x: AT})
    assert made.ys is y
    assert {s.now for s in made.sites} == {"left alone: in a body, for which at= has no values"}


@pytest.mark.parametrize("step", [gg.floor, gg.sign, gg.round, lambda x: gg.cast(x > 0, "float64")])
def test_steps_and_conditions_ask_what_was_written(step):
    x = gg.placeholder(())
    y = step(gg.exp(x) - 1)
    made = gg.heal(y)
    assert made.ys is y
    assert [s.now for s in made.sites] == [
        "left alone: used only by a condition or a step function"
    ]
    both = gg.heal([y, gg.exp(x) - 1]).ys
    values = gg.compile(x, both, optimize=False)(-1e-18)
    assert values == [0.0, -1e-18]


@pytest.mark.parametrize(
    ("at", "error", "words"),
    [
        ([1], TypeError, "takes a dict"),
        ("x", TypeError, "takes a dict"),
        ({3: 1.0}, gg.GraphError, "as keys, got 3"),
        ({"x": 1.0}, gg.GraphError, "as keys, got 'x'"),
    ],
)
def test_feeds_that_are_none_are_errors(at, error, words):
    x = gg.placeholder((), name="x")
    with pytest.raises(error, match=words):
        gg.heal(gg.exp(x) - 1, at=at)


def test_feeds_that_do_not_fit_are_errors():
    x = gg.placeholder((2,), name="x")
    for array in (np.ones(3), np.ones(()), "a", ["a", "b"], np.ones(2) * 1j):
        with pytest.raises(gg.ShapeError, match="feeds x:0") as error:
            gg.heal(gg.exp(x) - 1, at={x: array})
        assert "test_healed_bodies.py" in str(error.value)
