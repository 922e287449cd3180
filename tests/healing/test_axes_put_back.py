"""Sums over an axis that is put back afterwards, in any spelling, are those that keep it."""

import numpy as np
import pytest

import graphgrad as gg

from .test_heal import healed

X = np.array([[800.0, 799.0, -5.0], [1e200, 0.0, 1.0]])
W = np.array([0.5, 2.0, 1.0])
PUT_BACK = {
    "None": lambda t: t[:, None],
    "ellipsis": lambda t: t[..., None],
    "expand_dims": lambda t: gg.expand_dims(t, 1),
    "reshape": lambda t: gg.reshape(t, (2, 1)),
}
FORMS = {
    "unit_vector": lambda x, put, **kw: x / put(gg.sqrt(gg.sum(x * x, 1, **kw))),
    "softmax": lambda x, put, **kw: gg.exp(x) / put(gg.sum(gg.exp(x), 1, **kw)),
    "log_softmax": lambda x, put, **kw: x - put(gg.log(gg.sum(gg.exp(x), 1, **kw))),
    "weighted": lambda x, put, **kw: W * gg.exp(x) / put(gg.sum(W * gg.exp(x), 1, **kw)),
    "root": lambda x, put, **kw: x / put(gg.sqrt(gg.mean(x * x, 1, **kw) + 1e-6)),
    "variance": lambda x, put, **kw: put(gg.mean(x * x, 1, **kw) - gg.mean(x, 1, **kw) ** 2),
}


@pytest.mark.parametrize("spelling", PUT_BACK)
@pytest.mark.parametrize("name", FORMS)
def test_axes_that_are_put_back_are_kept(name, spelling):
    f = FORMS[name]
    value, (slope,), names = healed(lambda x: f(x, PUT_BACK[spelling]), X)
    wanted, (kept,), known = healed(lambda x: f(x, lambda t: t, keepdims=True), X)
    assert names == known
    np.testing.assert_array_equal(value, wanted)
    np.testing.assert_array_equal(slope, kept)


@pytest.mark.parametrize("open_rows", [False, True])
def test_axes_put_elsewhere_and_parts_of_a_sum_are_others(open_rows):
    x = gg.placeholder(("N" if open_rows else 3, 3))
    sums = gg.sum(gg.exp(x), 1)
    for below in (sums[None, :], sums[::-1, None], gg.transpose(sums[:, None])):
        assert gg.heal(gg.exp(x) / below).sites == ()


def test_programs_of_jax_put_axes_back():
    pytest.importorskip("jax")
    import jax.numpy as jnp

    def shares(x):
        return jnp.exp(x) / jnp.sum(jnp.exp(x), 1, keepdims=True)

    x = gg.placeholder((2, 3))
    assert [s.name for s in gg.heal(gg.interop.open_jax(shares, x)).sites] == ["softmax"]


LOST = {
    "logsumexp": lambda n: gg.log(gg.sum(gg.exp(0.3 * n + 1))),
    "softmax": lambda n: gg.exp(n) / gg.sum(gg.exp(n)),
    "norm": lambda n: gg.sqrt(gg.sum((n - 1) ** 2)),
    "variance": lambda n: gg.mean(n * n) - gg.mean(n) ** 2,
    "product_by_logs": lambda n: gg.exp(gg.sum(gg.log(n))),
}


@pytest.mark.parametrize("name", LOST)
def test_what_lost_its_first_axis_is_met(name):
    names = healed(lambda x: LOST[name](gg.sqrt(gg.sum(x * x, 0))), X)[2]
    assert names == ["norm", name]


def test_forms_along_axes_take_arguments_of_the_shape_of_the_term():
    x = np.array([[0.1, 0.2], [0.3, 0.4]])
    value, slopes, names = healed(
        lambda x, w: gg.log(gg.sum(w * gg.exp(gg.sum(gg.sum(x, 1, keepdims=True), 0)))), x, [[2.0]]
    )
    assert names == ["log_of_weighted_sum"]
    np.testing.assert_allclose(value, 1.0 + np.log(2.0))
    np.testing.assert_allclose(slopes[0], np.ones((2, 2)))


def test_new_axes_after_a_long_chain():
    x = gg.placeholder((3, 4))
    s = gg.sum(x, 1)
    for _ in range(3000):
        s = gg.sin(s)
    assert gg.heal(s[:, None] * x).sites == ()
