"""Functions on tensors compared with NumPy's on arrays, with known, unknown and named lengths."""

import numpy as np

import graphgrad as gg
from graphgrad.execute.numpy.backend import NumpyBackend
from graphgrad.ir.program import Program
from graphgrad.ops.sources import placeholder


def run(outputs, feeds):
    """The values of tensors; every kernel is checked to keep its promises."""
    outputs = list(outputs) if isinstance(outputs, tuple | list) else [outputs]
    program = Program(list(feeds), outputs)
    return NumpyBackend(check=True).compile(program)(*feeds.values())


def shapes(array):
    """The shapes under which an array can be fed: known, unknown, named."""
    names = tuple(f"n{d}" for d in array.shape)
    return [array.shape, (None,) * array.ndim, names][: 3 if array.ndim else 1]


def same(fn, expected, *arrays, static=False):
    """Check that fn of tensors has the values, shapes and dtypes of `expected`.

    static: the function needs known lengths.
    """
    arrays = [np.asarray(a) for a in arrays]
    with np.errstate(all="ignore"):
        wanted = expected(*arrays)
    wanted = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
    for forms in [[shapes(a)[min(k, len(shapes(a)) - 1)] for a in arrays] for k in range(3)]:
        with gg.Graph():
            ts = [placeholder(s, a.dtype) for s, a in zip(forms, arrays, strict=True)]
            found = run(fn(*ts), dict(zip(ts, arrays, strict=True)))
        assert len(found) == len(wanted)
        for got, want in zip(found, wanted, strict=True):
            assert got.dtype == np.asarray(want).dtype
            np.testing.assert_allclose(got, want, rtol=1e-6 if got.dtype == "f4" else 1e-12)
            assert got.shape == np.shape(want)
        if static:
            return


def gradient(fn, x, order=1, weights=None):
    """The gradient of sum(weights * fn(x)), or that of its own sum for order 2, and so on."""
    x = np.asarray(x, dtype="float64")
    with gg.Graph():
        t = placeholder(x.shape)
        y = fn(t)
        grad_ys = None if weights is None else gg.constant(np.asarray(weights, dtype="float64"))
        (dx,) = gg.gradients([y], [t], grad_ys=None if grad_ys is None else [grad_ys])
        for _ in range(order - 1):
            (dx,) = gg.gradients([dx], [t], unconnected="zero")
        return run(dx, {t: x})[0]


def difference(fn, x, weights, order=1, step=1e-6):
    """Central differences for `gradient`."""
    x = np.asarray(x, dtype="float64")
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        if order == 1:
            out[i] = (_value(fn, up, weights) - _value(fn, down, weights)) / (2 * step)
        else:
            high, low = (gradient(fn, z, order - 1, weights).sum() for z in (up, down))
            out[i] = (high - low) / (2 * step)
    return out


def _value(fn, x, weights):
    with gg.Graph():
        t = placeholder(x.shape)
        return (run(fn(t), {t: x})[0] * weights).sum()
