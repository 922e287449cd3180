"""gg.at(x)[key]: elements changed in a new tensor."""

import numpy as np
import pytest

import graphgrad as gg

from ..each import every
from .against_numpy import difference, gradient, same

X = np.random.default_rng(0).normal(size=(3, 4))
MASK = np.array([True, False, True])
KEYS = {
    "int": 1,
    "negative": (-1, 0),
    "slice": np.s_[:, 1:],
    "step": np.s_[::-2, None, ::2],
    "ellipsis": np.s_[..., 0],
    "array": [2, 0, 2],
    "arrays": ([0, 2], [[1], [-1]]),
    "mixed": np.s_[[0, 0, 1], 1:3],
    "apart": np.s_[None, [0, 2, 0], None, [1, 1, 1]],
    "kept apart by nothing": np.s_[None, [0, 2, 0], ..., [1, 1, 1]],
    "no axis": np.s_[..., True, 0],
    "mask": MASK,
    "mask and array": (MASK, [3, 3]),
    "nothing": np.s_[3:],
}
UFUNCS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def updated(name, x, key, values):
    x = x.copy()
    if name == "set":
        x[key] = values
    else:
        UFUNCS[name].at(x, key, values)
    return x


def values_for(key):
    shape = X[key].shape
    return np.random.default_rng(1).normal(size=shape)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
@pytest.mark.parametrize("name", ["set", *UFUNCS])
def test_is_what_numpy_does_in_place(name, key):
    masked = any(isinstance(k, np.ndarray) for k in (key if isinstance(key, tuple) else (key,)))
    for values in (values_for(key), np.float64(0.5)):
        same(
            lambda x, v: getattr(gg.at(x)[key], name)(v),
            lambda x, v: updated(name, x, key, v),
            X,
            values,
            static=masked,
        )


@pytest.mark.parametrize(
    "key", ["slice", "arrays", "apart", "kept apart by nothing", "no axis", "mask", "nothing"]
)
@pytest.mark.parametrize(
    "change",
    every(
        3,
        [
            ("set", 1),
            ("add", 1),
            ("min", 1),
            ("multiply", 2),
            ("max", 1),
            ("divide", 1),
            ("power", 1),
        ],
    ),
    ids=str,
)
def test_gradients_of_both(change, key):
    name, order = change
    key = KEYS[key]
    shape, v = X.shape, values_for(key)
    v = np.abs(v) + 0.5 if name == "divide" else v
    weights = np.cos(np.arange(X.size)).reshape(shape)
    flat = np.concatenate([np.abs(X).ravel() + 0.5, v.ravel()])

    def fn(t):
        x, values = t[: X.size].reshape(shape), t[X.size :].reshape(v.shape)
        return getattr(gg.at(x)[key], name)(values)

    wanted = difference(fn, flat, weights, order)
    np.testing.assert_allclose(gradient(fn, flat, order, weights), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_the_last_of_repeated_indices_is_set_on_every_backend(backend):
    if backend == "jax":
        pytest.importorskip("jax")
    i = np.asfortranarray([[0, 1, 0], [2, 0, 1]])
    with gg.Graph():
        x, v = gg.placeholder((3,)), gg.placeholder((2, 3))
        y = gg.at(x)[gg.constant(i)].set(v)
        dv = gg.gradients(y, v, np.array([1.0, 2.0, 3.0]))
        f = gg.compile([x, v], [y, dv], backend=backend)
        found = f(np.zeros(3), np.arange(6.0).reshape(2, 3).T.copy().T)
    np.testing.assert_array_equal(found[0], [4, 5, 3])
    np.testing.assert_array_equal(found[1], [[0, 0, 0], [3, 1, 2]])


def test_products_keep_their_derivatives_at_zeros():
    """y = x v0 v1 v2 at one place: with one zero and with two."""
    for v in ([0.0, 2.0, 3.0], [0.0, 0.0, 3.0]):
        with gg.Graph():
            t = gg.constant(v)
            y = gg.at(gg.constant([5.0, 1.0]))[[0, 0, 0]].multiply(t)
            dv = gg.gradients(y, t)
            second = gg.jacobian(dv, t)
        a, b, c = v
        found, hessian = gg.evaluate([dv, second])
        np.testing.assert_array_equal(found, [5 * b * c, 5 * a * c, 5 * a * b])
        wanted = [[0, 5 * c, 5 * b], [5 * c, 0, 5 * a], [5 * b, 5 * a, 0]]
        np.testing.assert_array_equal(hessian, wanted)


def test_ties_share_the_gradient():
    with gg.Graph():
        x, v = gg.constant([1.0, 2.0]), gg.constant([1.0, 0.0, 1.0])
        y = gg.at(x)[[0, 0, 0]].max(v)
        dx, dv = gg.gradients(y, [x, v], np.array([3.0, 1.0]))
    np.testing.assert_array_equal(gg.evaluate(dx), [1, 1])
    np.testing.assert_array_equal(gg.evaluate(dv), [1, 0, 1])


def test_a_computed_mask_takes_values_that_are_the_same_everywhere():
    for name in ["set", *UFUNCS]:
        same(
            lambda x, n=name: getattr(gg.at(x)[x > 0], n)(0.5),
            lambda x, n=name: updated(n, x, x > 0, 0.5),
            X,
        )
    same(
        lambda x: gg.at(x)[x[:, 0] > 0].set([1.0, 2.0, 3.0, 4.0]),
        lambda x: updated("set", x, x[:, 0] > 0, [1.0, 2.0, 3.0, 4.0]),
        X,
    )
    with gg.Graph():
        places = gg.at(X[0])[gg.constant([True, False, True, True])]
        with pytest.raises(gg.ShapeError, match=r"gg\.where\(mask, new, x\)"):
            places.set([1.0, 2.0])


def test_reading_out_of_bounds():
    same(lambda x, i: gg.at(x)[i].get(mode="clip"), lambda x, i: x[[2, 0, 2, 1]], X, [7, -9, -1, 1])
    same(lambda x, i: gg.at(x)[:, i].get(mode="wrap"), lambda x, i: x[:, [3, 3, 0]], X, [7, -9, 4])
    same(
        lambda x, i: gg.at(x)[..., None, i].get(mode="clip"), lambda x, i: x[:, None, [-1]], X, [9]
    )
    wanted = np.where(np.array([False, True])[:, None], X[[0, 2]], 9.0)
    same(lambda x, i: gg.at(x)[i].get(mode="fill", fill_value=9), lambda x, i: wanted, X, [5, -1])
    apart = np.where([False, True], X[2, 1], np.nan)
    same(lambda x, i: gg.at(x)[-1, i].get(mode="fill"), lambda x, i: apart, X, [-5, 1])
    key, inside = np.s_[None, [0, 9, 1], ..., [1, 1, 2]], [[True], [False], [True]]
    parted = np.where(inside, X[None, [0, 2, 1], ..., [1, 1, 2]], np.nan)
    same(lambda x: gg.at(x)[key].get(mode="fill"), lambda x: parted, X, static=True)
    wanted = np.where([True, False, True], X[:, [0, 0, 1]], np.nan)
    same(lambda x: gg.at(x)[:, [0, 9, 1]].get(mode="fill"), lambda x: wanted, X)
    with gg.Graph():
        x = gg.constant([1, 2])
        for mask in (True, gg.constant([True, False])):
            with pytest.raises(gg.DTypeError, match="never out of bounds"):
                gg.at(x)[mask].get(mode="clip")
        assert gg.evaluate(gg.at(x)[gg.constant(3)].get(mode="fill")) == 0
        for bad in ({"mode": "drop"}, {"fill_value": 3}, {"mode": "clip", "fill_value": 3}):
            with pytest.raises(ValueError, match="mode"):
                gg.at(x)[0].get(**bad)
        with pytest.raises(IndexError):
            gg.evaluate(gg.at(x)[gg.constant(3)].get())


def test_what_does_not_fit_is_an_error():
    with gg.Graph():
        x = gg.placeholder((2, 3), "int64", name="x")
        with pytest.raises(gg.DTypeError, match="float64 do not fit x:0: int64"):
            gg.at(x)[0].set(1.5)
        with pytest.raises(gg.ShapeError):
            gg.at(x)[0].set([1, 2])
        with pytest.raises(gg.ShapeError):
            gg.at(x)[0, 0, 0].set(1)
        with pytest.raises(gg.DTypeError, match="quotient"):
            gg.at(x)[0].divide(2)
        with pytest.raises(gg.SymbolicError, match=r"gg\.at\(x\)\[key\]\.set\(values\)"):
            gg.at(x)[0] = 1
        assert gg.at(x)[0].set(True).dtype == "int64"


def test_a_batch_is_a_loop_over_examples():
    rng = np.random.default_rng(2)
    xs, vs = rng.normal(size=(5, 4)), rng.normal(size=(5, 3))
    indices = rng.integers(0, 4, size=(5, 3))
    for name in ("set", "multiply", "max"):
        with gg.Graph():
            fn = gg.vmap(lambda x, v, i, n=name: getattr(gg.at(x)[i], n)(v))
            found = gg.evaluate(fn(gg.constant(xs), gg.constant(vs), gg.constant(indices)))
        wanted = [updated(name, x, i, v) for x, v, i in zip(xs, vs, indices, strict=True)]
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("starts", [(0, 1), (2, -3), (-9, 9)])
def test_windows_that_move(starts):
    lax = pytest.importorskip("jax.lax")
    sizes, update = (2, 3), np.arange(6.0).reshape(2, 3)
    read = np.asarray(lax.dynamic_slice(X, starts, sizes))
    written = np.asarray(lax.dynamic_update_slice(X, update, starts))
    with gg.Graph():
        x, at = gg.placeholder((3, 4)), gg.placeholder((2,), "int64")
        y = gg.dynamic_slice(x, at, sizes)
        z = gg.dynamic_update_slice(x, update, [at[0], at[1]])
        dx = gg.gradients(z, x)
        f = gg.compile([x, at], [y, z, dx])
        found = f(X, np.array(starts))
    np.testing.assert_allclose(found[0], read, rtol=1e-7)
    np.testing.assert_allclose(found[1], written, rtol=1e-6)
    np.testing.assert_array_equal(found[2], found[1] == X)


def test_a_method_that_is_not_there_is_an_error_that_lists_those_that_are():
    with pytest.raises(AttributeError, match=r"no method 'mul'. It has .*multiply"):
        gg.at([1.0])[0].mul(2.0)
    with pytest.raises(AttributeError, match="Did you mean 'subtract'"):
        gg.at([1.0])[0].substract(2.0)
