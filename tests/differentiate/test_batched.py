"""S27: everyday functions under vmap, on random shapes, in every mixture of batched and shared."""

from itertools import product

import numpy as np
import pytest

import graphgrad as gg
from graphgrad import linalg, nn

from ..each import every

RNG = np.random.default_rng(0)


def positive(*shape):
    x = RNG.normal(size=shape)
    return x @ np.swapaxes(x, -1, -2) + 2.0 * np.eye(shape[-1])


def some(*shape):
    return RNG.normal(size=shape)


def places(high, *shape):
    return RNG.integers(-high, high, size=shape)


def windows(data_format):
    def f(x, w):
        z = nn.conv(x, w, strides=(2, 1), padding="SAME", data_format=data_format)
        return nn.max_pool(z, 2, 1, data_format=data_format) + nn.avg_pool(
            z, 2, 1, data_format=data_format
        )

    return f


def per_filter(x, w):
    """Adjoints of a convolution under vmap."""
    z = nn.conv(x, w, groups=2)
    return gg.concat([gg.flatten(d) for d in gg.gradients(z * z, [x, w])], 0)


FUNCTIONS = {
    "cumsum": (lambda x: gg.cumsum(x, axis=1), some(2, 3)),
    "cumprod": (lambda x: gg.cumprod(x, axis=0), some(3, 2)),
    "sort": (lambda x: gg.sort(x, 0, descending=True), some(4, 2)),
    "topk": (lambda x: gg.topk(x, 2, 0)[0], some(4, 2)),
    "argsort": (lambda x: gg.take_along_axis(x, gg.argsort(x, 1), axis=1) * x, some(2, 3)),
    "argmax": (lambda x: gg.take(x, gg.argmax(x, 1), 1), some(2, 3)),
    "take": (lambda x, i: gg.take(x, i, 1), some(2, 4, 2), places(4, 3)),
    "take rows": (lambda x, i: gg.take(x, i, 0), some(4, 2), places(4, 2, 3)),
    "take_along_axis": (lambda x, i: gg.take_along_axis(x, i, axis=1), some(2, 4), places(4, 2, 3)),
    "scatter_add": (
        lambda x, i, u: gg.scatter_add(x, i, u, 1),
        some(2, 4),
        places(4, 3),
        some(2, 3),
    ),
    "index": (lambda x, i, j: x[i, :, j], some(3, 2, 4), places(3, 2, 1), places(4, 3)),
    "index together": (lambda x, i, j: x[:, i, j], some(2, 3, 4), places(3, 2, 1), places(4, 3)),
    "index behind an axis": (lambda x, i: x[None, 1:, i, 0], some(3, 4, 2), places(4, 2)),
    "add_at": (
        lambda x, i, u: gg.add_at(x, (slice(None), i, 1), u),
        some(2, 3, 2),
        places(3, 4),
        some(2, 4),
    ),
    "einsum": (lambda a, b: gg.einsum("ij,kj->ki", a, b), some(2, 3), some(4, 3)),
    "einsum of three": (
        lambda a, b, c: gg.einsum("i,ij,j->", a, b, c),
        some(2),
        some(2, 3),
        some(3),
    ),
    "conv": (windows("NHWC"), some(2, 5, 4, 2), some(3, 2, 2, 3)),
    "conv, channels first": (windows("NCHW"), some(1, 2, 4, 5), some(2, 2, 2, 2)),
    "conv, groups": (lambda x, w: nn.conv(x, w, groups=2), some(1, 3, 4, 4), some(2, 2, 2, 4)),
    "conv_transpose": (
        lambda x, w: nn.conv_transpose(x, w, strides=2),
        some(1, 2, 3, 2),
        some(2, 2, 3, 2),
    ),
    "gradients of conv": (per_filter, some(1, 3, 3, 2), some(2, 2, 1, 2)),
    "solve": (linalg.solve, positive(3, 3), some(3, 2)),
    "solve a vector": (linalg.solve, positive(3, 3), some(3)),
    "solve a stack": (linalg.solve, positive(2, 3, 3), some(3, 2)),
    "inv": (linalg.inv, positive(2, 3, 3)),
    "det": (linalg.det, positive(3, 3)),
    "slogdet": (lambda x: linalg.slogdet(x)[1], positive(2, 2, 2)),
    "cholesky": (linalg.cholesky, positive(3, 3)),
    "eigh": (lambda x: linalg.eigh(x)[0], positive(3, 3)),
    "qr": (lambda x: linalg.qr(x)[1], some(3, 2)),
    "svdvals": (linalg.svdvals, some(3, 2)),
    "pinv": (linalg.pinv, some(3, 2)),
    "matmul": (gg.matmul, some(2, 2, 3), some(3, 2)),
    "one_hot": (lambda x, i: nn.one_hot(i, 3, axis=0) * x, some(2), places(3, 2)),
    "logsumexp": (lambda x: gg.logsumexp(x, 1), some(2, 3)),
    "softmax": (lambda x: nn.softmax(x, 0) + nn.log_softmax(x, 1), some(2, 3)),
    "cross entropy": (
        lambda x, i: nn.cross_entropy(x, i),
        some(2, 3),
        np.array([2, 0]),
    ),
    "pad": (lambda x: gg.pad(x, ((1, 0), (2, 1)), constant_values=0.5), some(2, 3)),
    "reflect": (lambda x: gg.pad(x, 1, mode="reflect"), some(2, 3)),
    "flip": (lambda x: gg.flip(x, 1), some(2, 3)),
    "roll": (lambda x: gg.roll(x, (1, -2), (0, 1)), some(2, 3)),
    "roll flat": (lambda x: gg.roll(x, 2), some(2, 3)),
    "tile": (lambda x: gg.tile(x, (2, 3)), some(2, 1)),
    "repeat": (lambda x: gg.repeat(x, 2, 1), some(2, 2)),
    "where": (lambda x, y: gg.where(x > y, x * y, y), some(2, 3), some(3)),
    "clip": (lambda x: gg.clip(x, -0.5, 0.5), some(2, 3)),
    "triangles": (lambda x: gg.tril(x) @ gg.triu(x, k=1), some(3, 3)),
    "diagonal": (lambda x: gg.diagonal(x, 1) * gg.sum(x), some(3, 4)),
    "diag": (lambda x: gg.diag(x) @ gg.diag(x), some(3)),
    "max": (lambda x: gg.max(x, 1) * gg.prod(x, 1), some(2, 3)),
    "var": (lambda x: gg.var(x, 0), some(3, 2)),
    "split": (lambda x: gg.split(x, [1], 1)[1] * gg.unstack(x, 1)[0][:, None], some(2, 3)),
    "reshape": (lambda x: gg.reshape(x, (3, -1)) * gg.flatten(x)[:2], some(2, 3)),
    "broadcast_to": (lambda x: gg.broadcast_to(x, (2, 4, 3)), some(4, 1)),
}


def derivatives(ys, xs):
    """Values, first and second derivatives by what is floating."""
    wrt = [x for x in xs if x.type.differentiable]
    first = gg.gradients(gg.sum(ys * gg.sin(ys)), wrt, unconnected="zero")
    second = gg.gradients(sum(gg.sum(d * d) for d in first), wrt, unconnected="zero")
    return [ys, first, second]


def one_by_one(f, axes):
    def mapped(*xs):
        pairs = [(x if a is None else gg.moveaxis(x, a, 0), a) for x, a in zip(xs, axes)]
        count = next(x.shape[0] for x, a in pairs if a is not None)
        return gg.stack([f(*[x if a is None else x[i] for x, a in pairs]) for i in range(count)])

    return mapped


def drawn(arrays, axes):
    """Up to three examples of each array that has an axis for them, and the others as they are."""
    count = int(RNG.integers(1, 4))
    noise = [1.0 + 0.1 * RNG.random(count) if a.dtype.kind == "f" else None for a in arrays]
    batch = []
    for a, axis, scale in zip(arrays, axes, noise, strict=True):
        rows = np.stack([a if scale is None else a * scale[i] for i in range(count)])
        batch.append(a if axis is None else np.moveaxis(rows, 0, axis))
    return batch


def answers(over, shapes, batch, backend, loops=True):
    with gg.Graph() as g:
        xs = [gg.placeholder(s, b.dtype) for s, b in zip(shapes, batch, strict=True)]
        asked = derivatives(over(*xs), xs)
        assert loops or all(n.type != "PerExample" for n in g.nodes)
        return gg.base.tree.flatten(gg.compile(xs, asked, backend=backend)(*batch))


def check(f, arrays, axes, backend):
    """vmap is the loop, whether the number of examples is known or not."""
    batch = drawn(arrays, axes)
    shapes = [b.shape for b in batch]
    wanted = answers(one_by_one(f, axes), shapes, batch, backend)
    loose = [
        s if axis is None else (*s[:axis], None, *s[axis + 1 :])
        for s, axis in zip(shapes, axes, strict=True)
    ]
    for lengths in (shapes, loose):
        found = answers(gg.vmap(f, axes), lengths, batch, backend, loops=lengths is loose)
        for a, b in zip(found, wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore::graphgrad.PerformanceWarning")
@pytest.mark.parametrize("name", every(3, FUNCTIONS))
def test_S27_everyday_functions_under_vmap(name):
    f, *arrays = FUNCTIONS[name]
    for flags in product([True, False], repeat=len(arrays)):
        if any(flags):
            places = [
                int(RNG.integers(a.ndim + 1)) if flag else None for a, flag in zip(arrays, flags)
            ]
            check(f, arrays, places, "numpy")


@pytest.mark.filterwarnings("ignore::graphgrad.PerformanceWarning")  # said once in a process
@pytest.mark.parametrize(
    "name", ["cumsum", "sort", "take", "index", "einsum", "conv", "softmax", "solve"]
)
def test_S27_everyday_functions_under_vmap_compiled(name):
    f, *arrays = FUNCTIONS[name]
    check(f, arrays, [0] * len(arrays), "llvm")
