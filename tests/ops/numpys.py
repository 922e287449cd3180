"""NumPy's functions called with tensors, held to what they give for arrays."""

import warnings

import numpy as np
import pytest

import graphgrad as gg


def values(fn, *arrays):
    """What NumPy gives for the arrays, as a list of arrays."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        found = fn(*arrays)
    return [np.asarray(v) for v in (found if isinstance(found, tuple | list) else [found])]


def listed(found):
    return list(found) if isinstance(found, tuple | list) else [found]


def agrees(fn, *arrays, static=False, rtol=1e-12):
    """fn of tensors has the shapes, dtypes and values of fn of arrays.

    static: only of known lengths.
    """
    wanted = values(fn, *arrays)
    for unknown in (False, True)[: 1 if static else 2]:
        with gg.Graph():
            ts = [gg.placeholder((None,) * a.ndim if unknown else a.shape, a.dtype) for a in arrays]
            ys = listed(fn(*ts))
            assert all(isinstance(y, gg.Tensor) for y in ys)
            found = gg.evaluate(ys, dict(zip(ts, arrays, strict=True)))
        assert len(found) == len(wanted)
        for y, got, want in zip(ys, found, wanted, strict=True):
            assert y.dtype == got.dtype == want.dtype
            assert got.shape == want.shape
            assert unknown or y.shape == want.shape
            close(got, want, rtol, arrays)


def close(got, want, rtol, arrays):
    """Equal but for rounding, which is that of the least exact of them."""
    single = any(a.dtype in ("float32", "complex64") for a in (want, *arrays))
    tolerance = 2e-6 if single else rtol
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def gradient_holds(fn, *arrays):
    """The gradients of fn are those of finite differences, at orders 1 and 2."""

    def default(site, *dys):
        return site.default(*dys)

    report = gg.check_gradient(default, fn, *arrays)
    assert report, str(report)


def backends_agree(cases, backend):
    """The values of many cases, all in one program, are those of NumPy on another backend."""
    if backend == "jax":
        pytest.importorskip("jax")
    wanted, feeds, ys = [], [], []
    with gg.Graph():
        xs = []
        for fn, *arrays in cases:
            ts = [gg.placeholder(a.shape, a.dtype) for a in arrays]
            xs += ts
            feeds += arrays
            ys += listed(fn(*ts))
            wanted += [(want, arrays) for want in values(fn, *arrays)]
        found = gg.compile(xs, ys, backend=backend)(*feeds)
    for got, (want, arrays) in zip(found, wanted, strict=True):
        assert got.dtype == want.dtype
        close(got, want, 1e-10, arrays)
