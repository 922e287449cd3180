"""Convolution and pooling agree with PyTorch on images of digits, and their gradients do."""

import numpy as np
import pytest

import graphgrad as gg

torch = pytest.importorskip("torch")
datasets = pytest.importorskip("sklearn.datasets")
functional = torch.nn.functional


def digits(count=20):
    """Images (N, 1, 8, 8) of whole numbers from 0 to 16, in which there are ties everywhere."""
    return datasets.load_digits().images[:count, None].astype("float64")


def ours(fn, *arrays, backend):
    """The value, and the gradients of the sum of value * weights."""
    with gg.Graph():
        ts = [gg.placeholder(a.shape) for a in arrays]
        y = fn(*ts)
        weights = np.random.default_rng(1).normal(size=y.shape)
        dxs = gg.gradients(y, ts, weights)
        return gg.compile(ts, [y, *dxs], backend=backend)(*arrays)


def theirs(fn, *arrays):
    ts = [torch.tensor(a, requires_grad=True) for a in arrays]
    y = fn(*ts)
    weights = np.random.default_rng(1).normal(size=tuple(y.shape))
    dxs = torch.autograd.grad(y, ts, torch.tensor(weights))
    return [t.detach().numpy() for t in (y, *dxs)]


def agree(ours_, theirs_):
    for a, b in zip(ours_, theirs_, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("window", [2, 3, (4, 2)])
@pytest.mark.parametrize("strides", [None, 1, (2, 3)])
@pytest.mark.parametrize("pad", [0, 1])
def test_max_pool(window, strides, pad, backend):
    x = digits()
    padding = ((pad, pad), (pad, pad))
    agree(
        ours(lambda t: gg.nn.max_pool(t, window, strides, padding, "NCHW"), x, backend=backend),
        theirs(lambda t: functional.max_pool2d(t, window, strides, pad), x),
    )


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("strides", [1, 2, (2, 3)])
@pytest.mark.parametrize("ceil", [False, True])
def test_max_pool_of_dilated_windows(strides, ceil, backend):
    x = digits()
    given = {"padding": 1, "dilation": (2, 3), "ceil_mode": ceil}

    def pool(t):
        y, places = gg.nn.max_pool_with_indices(t, 2, strides, data_format="NCHW", **given)
        return y + gg.stop_gradient(gg.cast(places, "float64"))

    def torchs(t):
        y, places = functional.max_pool2d_with_indices(t, 2, strides, **given)
        return y + places

    agree(ours(pool, x, backend=backend), theirs(torchs, x))
    deep = x.reshape(4, 5, 8, 8)[:, None]
    given["dilation"] = (2, 3, 1)
    agree(
        ours(lambda t: gg.nn.max_pool(t, 2, 1, data_format="NCHW", **given), deep, backend=backend),
        theirs(lambda t: functional.max_pool3d(t, 2, 1, **given), deep),
    )


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("strides", [1, (2, 3)])
@pytest.mark.parametrize("padding", ["SAME", "VALID", (1, 2)])
@pytest.mark.parametrize("dilation", [1, 2, (1, 3)])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.filterwarnings("ignore:Using padding")
def test_conv(strides, padding, dilation, groups, backend):
    rng = np.random.default_rng(0)
    x = np.concatenate([digits(), digits()[::-1]], axis=1)
    w = rng.normal(size=(4, 2 // groups, 3, 2))
    pads = ((padding[0],) * 2, (padding[1],) * 2) if isinstance(padding, tuple) else padding

    def conv(t, w):
        filters = gg.permute_dims(w, (2, 3, 1, 0))
        return gg.nn.conv(t, filters, strides, pads, "NCHW", dilation, groups)

    if padding == "SAME" and strides != 1:
        pytest.skip("PyTorch has SAME without strides only")
    given = padding.lower() if isinstance(padding, str) else padding
    agree(
        ours(conv, x, w, backend=backend),
        theirs(lambda t, w: functional.conv2d(t, w, None, strides, given, dilation, groups), x, w),
    )


@pytest.mark.parametrize(("size", "ratio"), [((3, 5), None), (None, (0.6, 0.5)), ((1, 7), None)])
def test_fractional_max_pool(size, ratio):
    rng = np.random.default_rng(0)
    x = np.concatenate([digits(), digits()[::-1]], axis=1)
    u = rng.random(size=(20, 2, 2))
    given = {"output_size": size, "output_ratio": ratio}

    def pool(t):
        y, places = gg.nn.fractional_max_pool_with_indices(
            t, 2, data_format="NCHW", samples=u, **given
        )
        return y + gg.stop_gradient(gg.cast(places, "float64"))

    def torchs(t):
        samples = torch.tensor(u[..., ::-1].copy())  # theirs are of the width first
        y, places = functional.fractional_max_pool2d_with_indices(
            t, 2, size, ratio, _random_samples=samples
        )
        return y + places

    agree(ours(pool, x, backend="numpy"), theirs(torchs, x))


def test_fractional_max_pool_over_other_axes():
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=(2, 3, 5, 6, 7)), rng.random(size=(2, 3, 3))
    found = gg.nn.fractional_max_pool(x, (2, 1, 3), (3, 2, 4), data_format="NCHW", samples=u)
    wanted = functional.fractional_max_pool3d(
        torch.tensor(x), (2, 1, 3), (3, 2, 4), _random_samples=torch.tensor(u)
    )
    np.testing.assert_array_equal(gg.evaluate(found), wanted.numpy())
    line = gg.placeholder((None, 9, 2))
    y = gg.nn.fractional_max_pool(line, 2, output_ratio=0.5, seed=3)
    values = rng.normal(size=(4, 9, 2))
    assert gg.evaluate(y, {line: values}).shape == (4, 4, 2)
    assert np.isin(gg.evaluate(y, {line: values}), values).all()
    with pytest.raises(gg.ShapeError, match="do not fit"):
        gg.nn.fractional_max_pool(line, 3, 8)
    with pytest.raises(gg.ShapeError, match="either"):
        gg.nn.fractional_max_pool(line, 3)
