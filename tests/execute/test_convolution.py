"""Convolutions tile by tile: the sums of their definition, whatever the tiles and the threads."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest

from graphgrad.execute.numpy import convolution
from graphgrad.execute.numpy.convolution import convolve, gradient_of_filter, gradient_of_image
from graphgrad.ops.nn.conv2d import Conv2D, geometries

from ..each import every

CASES = [
    *geometries(),
    (Conv2D((1, 1), "SAME", "NHWC"), (2, 9, 8, 16), (3, 3, 16, 10)),
    (Conv2D((1, 1), "VALID", "NHWC"), (3, 9, 8, 16), (1, 1, 16, 10)),
    (Conv2D((1, 1), ((0, 3), (4, 1)), "NHWC", (1, 2)), (2, 9, 8, 16), (3, 3, 16, 10)),
    (Conv2D((1, 1), ((5, 6), (4, 1)), "NHWC"), (2, 9, 8, 16), (3, 3, 16, 10)),
    (Conv2D((1, 1), "SAME", "NHWC", (1, 1), 4), (2, 9, 8, 64), (3, 3, 16, 12)),
    (Conv2D((2, 2), "SAME", "NCHW", (1, 1), 2), (2, 64, 9, 8), (3, 3, 32, 12)),
    (Conv2D((1, 1), "SAME", "NCHW"), (2, 16, 5, 7), (2, 4, 16, 3)),
    (Conv2D((3, 2), "VALID", "NHWC", (2, 1)), (3, 11, 8, 2), (3, 2, 2, 4)),
    (Conv2D((1, 1), "SAME", "NHWC", (1, 1), 6), (1, 6, 6, 6), (3, 3, 1, 6)),
    (Conv2D((1, 1), "VALID", "NHWC"), (2, 3, 3, 2), (4, 2, 2, 3)),  # nothing comes out
    (Conv2D((1, 1), "SAME", "NHWC"), (2, 3, 3, 0), (2, 2, 0, 3)),
]


def naive(op, x, w):
    """z[n, i, j, o] by its sum, for images with the channels last."""
    kh, kw, per_group, out = w.shape
    window = op.moved(x.shape[1:3], (kh, kw), op.dilation)
    down, across = window.axes
    z = np.zeros((len(x), down.out, across.out, out))
    for i, j, k, m in itertools.product(*map(range, (down.out, across.out, kh, kw))):
        row = i * op.strides[0] + k * op.dilation[0] - down.low
        column = j * op.strides[1] + m * op.dilation[1] - across.low
        if 0 <= row < down.length and 0 <= column < across.length:
            for g in range(op.groups):
                some = slice(g * per_group, (g + 1) * per_group)
                outs = slice(g * out // op.groups, (g + 1) * out // op.groups)
                z[:, i, j, outs] += x[:, row, column, some] @ w[k, m, :, outs]
    return z


@pytest.fixture(params=[1 << 20, 256], ids=["one tile", "many tiles"])
def tiles(request, monkeypatch):
    monkeypatch.setattr(convolution, "PATCHES", request.param)


@pytest.fixture(params=[8, 0], ids=["by spreading", "by convolving"])
def few(request, monkeypatch):
    monkeypatch.setattr(convolution, "FEW", request.param)


def channels_last(op, a):
    return a.transpose(0, 2, 3, 1) if op.data_format == "NCHW" else a


@pytest.mark.parametrize("threads", every(2, [3, 1]))
@pytest.mark.parametrize(("op", "image", "filters"), CASES, ids=str)
def test_the_three_are_what_they_say(op, image, filters, threads, tiles, few):
    rng = np.random.default_rng(0)
    x, w = channels_last(op, rng.normal(size=image)), rng.normal(size=filters)
    window = op.moved(x.shape[1:3], w.shape[:2], op.dilation)
    wanted = naive(op, x, w)
    z = channels_last(op, np.full_like(wanted.transpose(0, 3, 1, 2), 7).copy())
    z = z if op.data_format == "NCHW" else np.full_like(wanted, 7)
    convolve(window, op.groups, x, w, z, threads)
    np.testing.assert_allclose(z, wanted, atol=1e-10)

    dz = rng.normal(size=z.shape)
    dx, dw = np.full(x.shape, 7.0), np.full(w.shape, 7.0)
    gradient_of_image(window, op.groups, w, dz, dx, threads)
    gradient_of_filter(window, op.groups, x, dz, dw, threads)
    u, v = rng.normal(size=x.shape), rng.normal(size=w.shape)
    np.testing.assert_allclose((dx * u).sum(), (dz * naive(op, u, w)).sum(), atol=1e-8)
    np.testing.assert_allclose((dw * v).sum(), (dz * naive(op, x, v)).sum(), atol=1e-8)


@pytest.mark.parametrize(
    "change", [np.asfortranarray, lambda a: a[::-1, ::-1], lambda a: a[..., ::-1]]
)
def test_layouts(change):
    rng = np.random.default_rng(0)
    op = Conv2D((1, 1), "SAME", "NHWC")
    x, w, dz = (change(rng.normal(size=s)) for s in [(2, 5, 6, 9), (3, 3, 9, 8), (2, 5, 6, 8)])
    window = op.moved((5, 6), (3, 3), (1, 1))
    for f, a, b, shape in [
        (convolve, x, w, dz.shape),
        (gradient_of_image, w, dz, x.shape),
        (gradient_of_filter, x, dz, w.shape),
    ]:
        found, wanted = np.empty(shape), np.empty(shape)
        f(window, 1, a, b, found, 1)
        f(window, 1, np.array(a, order="C"), np.array(b, order="C"), wanted, 1)
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    op = Conv2D((1, 1), "SAME", "NHWC")
    x, w, dz = (
        rng.normal(size=s).astype("float32")
        for s in [(8, 16, 16, 16), (3, 3, 16, 24), (8, 16, 16, 24)]
    )
    window = op.moved((16, 16), (3, 3), (1, 1))
    for f, a, b, shape in [
        (convolve, x, w, dz.shape),
        (gradient_of_image, w, dz, x.shape),
        (gradient_of_filter, x, dz, w.shape),
    ]:
        wanted = np.empty(shape, "float32")
        f(window, 1, a, b, wanted, 1)
        for threads in (2, 5):
            found = np.empty(shape, "float32")
            f(window, 1, a, b, found, threads)
            assert found.tobytes() == wanted.tobytes()


def test_the_patches_of_a_batch_never_exist():
    rng = np.random.default_rng(0)
    op = Conv2D((1, 1), "SAME", "NHWC")
    x, w = (rng.normal(size=s).astype("float32") for s in [(32, 32, 32, 16), (3, 3, 16, 16)])
    window = op.moved((32, 32), (3, 3), (1, 1))
    dw, z = np.empty_like(w), np.empty_like(x)
    tracemalloc.start()
    convolve(window, 1, x, w, z, 2)
    gradient_of_image(window, 1, w, z, x, 2)
    gradient_of_filter(window, 1, x, z, dw, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * x.nbytes  # all patches are 9
