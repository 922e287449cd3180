"""Functions of one example that broadcast: values, axes, rules, and what does not fit."""

import numpy as np
import pytest

import graphgrad as gg

RNG = np.random.default_rng(0)
CALLS = (
    ("(m,n),(n)->(m)", lambda a, b: a @ b, ((4, 1, 2, 3), (5, 3))),
    ("(m,n),(n)->(m)", lambda a, b: a @ b, ((2, 3), (3,))),
    ("(m,n),(n)->(m)", lambda a, b: a @ b, ((1, 1, 2, 3), (1, 3))),
    ("(m,n),(n)->(m)", lambda a, b: a @ b, ((6, 1, 2, 3), (1, 7, 3))),
    ("(n)->(),(n)", lambda a: (np.sum(a), a + 1.0), ((4, 1, 3),)),
    (None, lambda a, b: a * b, ((4, 1), (5,))),
    (None, lambda a, b: a * b, ((), (3,))),
    (None, lambda a, b: a * b, ((1, 1), (1,))),
)


def test_values_and_axes_are_numpys():
    for signature, fn, shapes in CALLS:
        arrays = [RNG.normal(size=s) for s in shapes]
        wanted = np.vectorize(fn, signature=signature)(*arrays)
        with gg.Graph():
            xs = [gg.placeholder(a.shape) for a in arrays]
            unknown = [gg.placeholder((None,) * a.ndim) for a in arrays]
            vectorized = gg.vectorize(fn, signature=signature)
            run = [gg.compile(t, vectorized(*t), backend="numpy") for t in (xs, unknown)]
        known = run[0](*arrays)
        for got, want in zip(several(known), several(wanted), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
            assert got.shape == np.shape(want), (signature, shapes)
        if all(1 not in s for s in shapes):
            np.testing.assert_allclose(run[1](*arrays), known)


def several(found):
    return list(found) if isinstance(found, tuple | list) else [found]


def test_without_a_signature_a_function_is_given_numbers():
    shapes = []

    def fn(a, b):
        shapes.append((a.shape, b.shape))
        return a * b

    gg.vectorize(fn)(np.ones((2, 1)), np.ones(3))
    assert shapes == [((), ())]


def test_an_axis_in_front_is_replaced_by_those_of_what_the_function_makes():
    x = RNG.normal(size=(3, 2, 4))
    for fn in (lambda p, v: p.outer(v, v), lambda p, v: p.sum(v), lambda p, v: v[1:]):
        for axis in range(3):
            found = gg.evaluate(gg.apply_along_axis(lambda v, f=fn: f(gg, v), axis, x))
            wanted = np.apply_along_axis(lambda v, f=fn: f(np, v), axis, x)
            np.testing.assert_allclose(found, wanted)


def test_a_rule_is_that_of_one_example_and_other_arguments_are_handed_on():
    @gg.register_gradient("test_vectorize_unit")
    def unit(site, dy):
        return dy / gg.linalg.norm(dy)

    def fn(x, power, *, offset):
        assert (power, offset) == (2, 1.0)
        with gg.override_gradient("test_vectorize_unit"):
            return x**power + offset

    with gg.Graph():
        x = gg.placeholder((2, 3))
        y = gg.vectorize(fn, excluded={1}, signature="(n)->(n)")
        with pytest.raises(gg.ShapeError, match="there are 1"):
            gg.vectorize(fn, excluded={1}, signature="(n),()->(n)")(x, 2, offset=1.0)
        dx = gg.gradients(y(x, 2, offset=1.0), x)
        found = gg.evaluate(dx, {x: np.ones((2, 3))})
    np.testing.assert_allclose(found, np.full((2, 3), 3**-0.5))


def test_what_does_not_fit_is_an_error():
    for signature in ("(m->(m)", "m,n->m", "(m)", "(m,,n)->()", "->()"):
        with pytest.raises(ValueError, match="a signature looks like"):
            gg.vectorize(gg.sum, signature=signature)
    fit = gg.vectorize(lambda a, b: a @ b, signature="(m,n),(n)->(m)")
    with gg.Graph():
        for shapes, what in [
            (((2, 3), (4,)), "axis n of the signature is 3 long, but has length 4 in argument 1"),
            (((3,), (3,)), r"argument 0 has axes \(m,n\)"),
            (((2, 2, 3), (5, 3)), "2 and 5"),
        ]:
            with pytest.raises(gg.ShapeError, match=what):
                fit(*map(gg.placeholder, shapes))
        with pytest.raises(gg.ShapeError, match="result 0 has axes"):
            gg.vectorize(gg.sum, signature="(n)->(n)")(gg.placeholder((3,)))
