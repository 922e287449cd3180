"""A length where a count is taken: what comes out is what comes out of the int that it is."""

import pickle
from typing import NamedTuple

import numpy as np
import pytest

import graphgrad as gg

from ..each import every

N, B = gg.Length("N"), gg.Length("B")
nn, random = gg.nn, gg.random
V, M, IMAGE, LINE = ((N,),), ((N, 3),), ((1, N + 3, 4, 2),), ((2, N + 3, 2),)


class Row(NamedTuple):
    """A function of N and of tensors, the shapes of these, and what N is tried as.

    kinds     "f" or "i", for each tensor
    batched   whether it has a batched form
    """

    build: object
    shapes: tuple = V
    sizes: tuple = (0, 1, 2, 5)
    kinds: str = "ff"
    batched: bool = True


SOME = (1, 2, 5)


def weights(*shape):
    return gg.constant(np.cos(np.arange(np.prod(shape))).reshape(shape))


def turned(total, size, corners=False):
    theta = gg.constant([[[1.0, 0.2, 0.0], [0.1, 1.0, 0.3]]]) * total
    return nn.affine_grid(theta, size, corners)


ROWS = {
    # --- made from nothing
    "zeros": Row(lambda n, x: gg.zeros((n, 2)) + x[:, None]),
    "full of a tensor": Row(lambda n, x: gg.full((n, 2), gg.sum(x))),
    "linspace": Row(lambda n, x: gg.linspace(0, 1, n) * x),
    "linspace of ints": Row(lambda n, x: gg.linspace(0, 10, n, dtype="int64")),
    "linspace without its end": Row(lambda n, x: gg.linspace(0.0, 1, n, endpoint=False) * x),
    "linspace between tensors": Row(lambda n, x: gg.linspace(x, 2 * x, n + 1)),
    "linspace and its step": Row(lambda n, x: gg.linspace(gg.sum(x), 2.0, n, retstep=True)),
    "linspace and a fixed step": Row(lambda n, x: gg.linspace(1.0, 2.0, n, retstep=True)),
    "geomspace": Row(lambda n, x: gg.geomspace(1.0, 8.0, n) * x),
    "geomspace from a tensor": Row(lambda n, x: gg.geomspace(gg.sum(x * x) + 1, 8.0, n)),
    "logspace": Row(lambda n, x: gg.logspace(1.0, 3.0, n) * x),
    "logspace from a tensor": Row(lambda n, x: gg.logspace(gg.sum(x * x) + 1, 2.0, n)),
    "eye": Row(lambda n, x: gg.eye(n, n + 1).mT @ x),
    "tri": Row(lambda n, x: gg.tri(n, n + 1, -1) * x[:, None]),
    "tri of fixed rows": Row(lambda n, x: gg.tri(2, n, 1, dtype="int64") * x),
    "vander": Row(lambda n, x: gg.vander(x), sizes=(0, 1, 2, 4)),
    "vander of more": Row(lambda n, x: gg.vander(x, n + 1, increasing=True), sizes=(0, 1, 2, 4)),
    "indices": Row(lambda n, x: gg.indices((n, 2)) * x[:, None]),
    "sparse indices": Row(lambda n, x: gg.indices((n, 2), sparse=True)),
    "fromfunction": Row(lambda n, x: gg.fromfunction(lambda i, j: i + j * gg.sum(x), (n, 2))),
    "diag_indices": Row(lambda n, x: gg.diag_indices(n)),
    "diag_indices_from": Row(lambda n, x: gg.diag_indices_from(gg.eye(n))),
    "tril_indices": Row(lambda n, x: gg.tril_indices(n)),
    "tril_indices below": Row(lambda n, x: gg.tril_indices(n, -2, 2 * n)),
    "triu_indices": Row(lambda n, x: gg.triu_indices(n, 1, n + 1)),
    "triu_indices of few rows": Row(lambda n, x: gg.triu_indices(3, -1, n)),
    "tril_indices_from": Row(lambda n, x: gg.tril_indices_from(gg.eye(n))),
    "unravel_index": Row(lambda n, x: gg.unravel_index(gg.arange(n * 2), (n, 2))),
    "unravel_index by columns": Row(lambda n, x: gg.unravel_index(gg.arange(n * 2), (2, n), "F")),
    "ravel_multi_index": Row(
        lambda n, x: gg.ravel_multi_index((gg.arange(n), gg.arange(n) % 2), (n, 2))
    ),
    "ravel_multi_index clipped": Row(
        lambda n, x: gg.ravel_multi_index((gg.arange(n) + 1, gg.arange(n)), (n, 2), mode="clip")
    ),
    "meshgrid": Row(lambda n, x: gg.meshgrid(x, gg.arange(2.0), x)),
    "bartlett": Row(lambda n, x: gg.bartlett(n) * x),
    "blackman": Row(lambda n, x: gg.blackman(n) * x),
    "hamming": Row(lambda n, x: gg.hamming(n) * x),
    "hanning": Row(lambda n, x: gg.hanning(n) * x),
    "kaiser": Row(lambda n, x: gg.kaiser(n, 3.0) * x),
    "kaiser of a tensor": Row(lambda n, x: gg.kaiser(n, gg.sum(x))),
    # --- shapes
    "broadcast_to": Row(lambda n, x: gg.broadcast_to(x, (2, n))),
    "broadcast_to of a number": Row(lambda n, x: gg.broadcast_to(gg.sum(x), (n, 2))),
    "broadcast_arrays": Row(lambda n, x: gg.broadcast_arrays(x[:, None], gg.constant([1.0, 2.0]))),
    "tile": Row(lambda n, x: gg.tile(x, n), M),
    "tile of new axes": Row(lambda n, x: gg.tile(x, (n, 2, 1)), M),
    "tile of one": Row(lambda n, x: gg.tile(gg.sum(x, 0), (n, 1)), M),
    "repeat": Row(lambda n, x: gg.repeat(x, n, axis=0), M),
    "repeat along the last axis": Row(lambda n, x: gg.repeat(x, n + 1, axis=1), M),
    "repeat to a length": Row(
        lambda n, x: gg.repeat(x, gg.full(n, 2), axis=0, total_repeat_length=n * 2), M
    ),
    "pad": Row(lambda n, x: gg.pad(x, ((n, 1), (0, n + 2))), M),
    "pad by one width": Row(lambda n, x: gg.pad(x, n), M),
    "pad of one axis": Row(lambda n, x: gg.pad(x, {0: (n, 0)}), M),
    "pad with several numbers": Row(
        lambda n, x: gg.pad(x, ((n, 1), (0, n)), constant_values=((1.0, 2.0), (3.0, 4.0))), M
    ),
    "edges": Row(lambda n, x: gg.pad(x, ((0, 0), (n, 1)), "edge"), M),
    "open edges": Row(lambda n, x: gg.pad(x, ((n, 1), (0, 0)), "edge"), M, SOME),
    "reflected": Row(lambda n, x: gg.pad(x, ((n - 1, 0), (0, 0)), "reflect"), M, SOME),
    "reflected at a point": Row(
        lambda n, x: gg.pad(x, ((n - 1, 0), (0, 0)), "reflect", reflect_type="odd"), M, SOME
    ),
    "symmetric": Row(lambda n, x: gg.pad(x, ((n, n), (0, 0)), "symmetric"), M, SOME),
    "wrapped": Row(lambda n, x: gg.pad(x, ((n, 1), (0, 0)), "wrap"), M, SOME),
    "maxima around": Row(lambda n, x: gg.pad(x, ((0, 0), (n, 1)), "maximum"), M),
    "medians around": Row(lambda n, x: gg.pad(x, ((1, 1), (0, n)), "median"), M, SOME),
    "ramps": Row(lambda n, x: gg.pad(x, ((0, 0), (n, 1)), "linear_ramp", end_values=4.0), M),
    "roll": Row(lambda n, x: gg.roll(x, (n - 1, n), (1, 0)), M),
    "roll of all": Row(lambda n, x: gg.roll(x, n), M),
    "split": Row(lambda n, x: gg.split(x, [1, n + 1]), ((2 * N + 3, 2),)),
    "split out of order": Row(lambda n, x: gg.split(x, [n, 1]), ((2 * N + 3, 2),)),
    "array_split": Row(lambda n, x: gg.array_split(x, 3), M),
    "array_split at places": Row(lambda n, x: gg.array_split(x, [n // 2, n]), M),
    "resize": Row(lambda n, x: gg.resize(x, (n + 1, 2)), M),
    "resize of a known size": Row(lambda n, x: gg.resize(gg.sum(x, 0), (n, 2)), M),
    "dynamic_slice": Row(
        lambda n, x: gg.dynamic_slice(x, [gg.constant(1), 0], [n, 3]), ((N + 2, 3),)
    ),
    "dynamic_update_slice": Row(
        lambda n, x, u: gg.dynamic_update_slice(x, u, [0, gg.constant(1)]), ((N + 2, 3), (N, 2))
    ),
    "one_hot": Row(
        lambda n, x, i: gg.one_hot(i, n, axis=0) * gg.sum(x), ((N, 3), (4,)), kinds="fi"
    ),
    "put_along_axis": Row(
        lambda n, x: gg.put_along_axis(x, gg.zeros((n, 1), "int64"), 9.0, 1), M
    ),
    "topk": Row(lambda n, x: gg.topk(x, n)),
    "nonzero": Row(lambda n, x: gg.nonzero(x > 0, size=n)),
    "kron": Row(lambda n, x: gg.kron(x, x)),
    "block_diag": Row(lambda n, x: gg.block_diag(x, [[1.0]], x), ((3, N),)),
    "bincount": Row(lambda n, x, i: gg.bincount(i, x, length=n), ((N,), (N,)), kinds="fi"),
    "histogram": Row(lambda n, x: gg.histogram(x, n + 1, range=(-2.0, 2.0))),
    # --- matrices
    "lu": Row(lambda n, x: gg.linalg.lu(x), ((N + 2, 2 * N),)),
    "lu of fixed columns": Row(lambda n, x: gg.linalg.lu(x)[1:], M),
    "lu_factor": Row(lambda n, x: gg.linalg.lu_factor(x)[0], ((2, 4, 2 * N),)),
    "matrix_rank": Row(lambda n, x: gg.linalg.matrix_rank(x), M, SOME),
    "tensorinv": Row(
        lambda n, x: gg.linalg.tensorinv(x + 3 * gg.reshape(gg.eye(2 * n), (2, n, 2 * n))),
        ((2, N, 2 * N),),
    ),
    "pdist": Row(lambda n, x: gg.nn.pdist(x), M),
    "packbits": Row(lambda n, x: gg.packbits(x > 0, 0), M),
    "unpackbits": Row(lambda n, x: gg.unpackbits(gg.cast(x > 0, "uint8"), 0) * x[:1, :1], M),
    "so many bits": Row(lambda n, x: gg.unpackbits(gg.cast(x > 0, "uint8"), count=11)),
    "ctc_loss": Row(
        lambda n, x: nn.ctc_loss(
            nn.log_softmax(x), [[1, 2], [3, 1]], [2, 1], [1, 1], reduction="none"
        ),
        ((N + 1, 2, 4),),
        sizes=SOME,
    ),
    "ctc_loss of open targets": Row(
        lambda n, x, i: nn.ctc_loss(nn.log_softmax(x), i * 0 + 1, [4, 3], [1, 1], reduction="sum"),
        ((4, 2, 3), (2, N)),
        kinds="fi",
        sizes=SOME,
    ),
    # --- signals
    "fft": Row(lambda n, x: gg.real(gg.fft.fft(x, n + 1))),
    "rfft": Row(lambda n, x: gg.real(gg.fft.rfft(x, n + 2))),
    "irfft": Row(lambda n, x: gg.fft.irfft(x, 2 * n + 1), sizes=SOME),
    "fftfreq": Row(lambda n, x: gg.fft.fftfreq(n) * x, sizes=SOME),
    "rfftfreq": Row(lambda n, x: gg.fft.rfftfreq(2 * n), sizes=SOME),
    "fftshift": Row(lambda n, x: gg.fft.ifftshift(gg.fft.fftshift(x * x), 1), M),
    # --- loops
    "scan": Row(lambda n, x: gg.scan(lambda c, _: (c * 0.9 + gg.sum(x), c), 1.0, length=n)),
    "scan of a state": Row(
        lambda n, x: gg.scan(
            lambda c, r: (c * 0.5 + r, gg.sum(c)), gg.zeros(n), gg.broadcast_to(x, (4, n))
        )
    ),
    "scan unrolled": Row(lambda n, x: gg.scan(lambda c, r: (c * 0.5 + r, c), 1.0, x, n, unroll=2)),
    "scan unrolled backwards": Row(
        lambda n, x: gg.scan(lambda c, r: (c * 0.5 + r, c), 1.0, x, reverse=True, unroll=3)
    ),
    "in a body": Row(
        lambda n, x: gg.scan(
            lambda c, r: (c + gg.sum(gg.tile(x, n)) * r, gg.linspace(0.0, 1.0, n) * r), 1.0, x
        )
    ),
    "fori_loop": Row(lambda n, x: gg.fori_loop(0, n, lambda i, c: c * 0.9 + x[i] * i, 1.0)),
    "fori_loop between": Row(
        lambda n, x: gg.fori_loop(n, 2 * n + 1, lambda i, c: c * 0.9 + gg.sum(x) * i, 1.0)
    ),
    "cond": Row(
        lambda n, x: gg.cond(
            gg.sum(x) > 0, lambda: gg.tile(x, n), lambda: gg.zeros(n * n) + gg.sum(x)
        )
    ),
    # --- random numbers
    "normal": Row(lambda n, x: random.normal((n, 2), seed=3) * x[:, None]),
    "bernoulli": Row(lambda n, x: random.bernoulli((n, 2), 0.3, seed=3)),
    "integers": Row(lambda n, x: random.integers(0, 5, (n, 2), seed=3)),
    "gamma": Row(lambda n, x: random.gamma((n, 2), 2.0, seed=3)),
    "poisson": Row(lambda n, x: random.poisson((n, 2), 2.0, seed=3)),
    "permutation": Row(lambda n, x: random.permutation(n, seed=3)),
    "shuffle": Row(lambda n, x: random.shuffle(x, axis=1, seed=3), ((3, N),)),
    "choice": Row(lambda n, x: random.choice(x, (n, 2), seed=3), sizes=SOME),
    "choice of a number": Row(lambda n, x: random.choice(n, (4,), seed=3), sizes=SOME),
    "choice of each": Row(lambda n, x: random.choice(x, (n,), replace=False, seed=3)),
    "keys": Row(lambda n, x: random.split(3, n)),
    # --- images
    "conv3d": Row(lambda n, x: nn.conv(x, weights(2, 2, 2, 2, 3), 2), ((1, N + 3, 3, 4, 2),)),
    "conv_transpose same": Row(lambda n, x: nn.conv_transpose(x, weights(3, 3, 2), 2), LINE),
    "conv_transpose": Row(
        lambda n, x: nn.conv_transpose(x, weights(3, 2, 3, 2), (2, 1), 1), IMAGE
    ),
    "conv_transpose 3d": Row(
        lambda n, x: nn.conv_transpose(x, weights(2, 2, 2, 3, 2), 2, "VALID"),
        ((1, N + 2, 3, 4, 2),),
    ),
    "max_pool rounded up": Row(lambda n, x: nn.max_pool(x, 3, 2, 1, ceil_mode=True), IMAGE),
    "avg_pool rounded up": Row(lambda n, x: nn.avg_pool(x, 2, ceil_mode=True), IMAGE),
    "avg_pool with its border": Row(
        lambda n, x: nn.avg_pool(x, 3, 2, "SAME", count_include_pad=True), IMAGE
    ),
    "lp_pool": Row(lambda n, x: nn.lp_pool(x, 2, 2, padding="SAME"), IMAGE),
    "max_pool_with_indices": Row(lambda n, x: nn.max_pool_with_indices(x, 3, 2, 1), IMAGE),
    "max_unpool": Row(
        lambda n, x: nn.max_unpool(*nn.max_pool_with_indices(x, 2), (n + 3, 4)), IMAGE
    ),
    "means of all": Row(lambda n, x: nn.adaptive_avg_pool(x, 1), IMAGE),
    "adaptive_avg_pool": Row(lambda n, x: nn.adaptive_avg_pool(x, (2, None)), IMAGE),
    "adaptive_max_pool": Row(lambda n, x: nn.adaptive_max_pool_with_indices(x, (2, 3)), IMAGE),
    "as many windows": Row(lambda n, x: nn.adaptive_max_pool(x, (n + 1, 2)), IMAGE),
    "unfold": Row(lambda n, x: nn.unfold(x, 3, 2, "SAME"), IMAGE),
    "fold": Row(lambda n, x: nn.fold(nn.unfold(x, 3, 2, 1), (n + 3, 4), 3, 2, 1), IMAGE),
    "pixel_unshuffle": Row(lambda n, x: nn.pixel_unshuffle(x, 2), ((1, 2 * N, 4, 3),)),
    "nearest": Row(lambda n, x: nn.interpolate(x, (7, 5)), IMAGE),
    "linear": Row(lambda n, x: nn.interpolate(x, (2 * n + 1, 5), mode="linear"), IMAGE),
    "linear between corners": Row(
        lambda n, x: nn.interpolate(x, (2 * n + 1, 5), mode="linear", align_corners=True), IMAGE
    ),
    "cubic by a factor": Row(
        lambda n, x: nn.interpolate(x, scale_factor=1.5, mode="cubic"), IMAGE
    ),
    "affine_grid": Row(lambda n, x: turned(gg.sum(x), (n, 3), corners=True), sizes=SOME),
    "grid_sample": Row(
        lambda n, x: nn.grid_sample(x, turned(gg.mean(x), (n, 4)), "bilinear"), IMAGE, SOME
    ),
    "grid_sample reflected": Row(
        lambda n, x: nn.grid_sample(x, turned(1.0, (3, 4)), "bicubic", "reflection", True), IMAGE
    ),
}  # fmt: skip


def values(shape, n, place, kind):
    dims = [lengths_at(d, {"N": n}) for d in shape]
    flat = np.arange(np.prod(dims, dtype=int))
    made = np.sin(flat * 1.7 + 0.3 + place) * 1.5 if kind == "f" else flat % 3
    return made.reshape(dims)


def built(row, n, batch=False):
    """Inputs, and outputs with gradients of the first and the second order, in a graph of n."""
    xs = [
        gg.placeholder(
            (*((B if n is N else 3,) if batch else ()), *(
                d if n is N or not isinstance(d, gg.Length) else d.at({"N": n}) for d in shape
            )),
            "float64" if kind == "f" else "int64",
        )
        for shape, kind in zip(row.shapes, row.kinds)
    ]  # fmt: skip
    of = (
        gg.vmap(lambda *rows: leaves(row.build(n, *rows)))
        if batch
        else lambda *ts: row.build(n, *ts)
    )
    ys = leaves(of(*xs))
    wanted = [x for x in xs if x.dtype.kind == "f"]
    first = derivative([gg.sum(gg.sin(y)) for y in ys if y.dtype.kind == "f"], wanted)
    second = derivative([gg.sum(dx * dx) for dx in first], wanted)
    return xs, ys, [*first, *second]


def leaves(made):
    made = made if isinstance(made, tuple | list) else [made]
    return tuple([t for part in made for t in (part if isinstance(part, tuple) else (part,))])


def derivative(ys, xs):
    dxs = gg.gradients(ys, xs) if ys else [None] * len(xs)
    return [gg.zeros_like(x) if dx is None else dx for x, dx in zip(xs, dxs)]


def check(row, backend, sizes, batch=False):
    """The program of open lengths against one of each size."""
    with gg.Graph():
        xs, ys, more = built(row, N, batch)
        promised = [y.shape for y in ys]
        opened = gg.compile(xs, [*ys, *more], backend=backend)
    assert all(None not in shape for shape in promised), promised
    for n in sizes:
        with gg.Graph():
            fixed, ys, more = built(row, n, batch)
            known = gg.compile(fixed, [*ys, *more], backend=backend)
        arrays = [values(s, n, i, k) for i, (s, k) in enumerate(zip(row.shapes, row.kinds))]
        if batch:
            arrays = [
                np.stack([a, a[...] // 2 if a.dtype.kind == "i" else a / 2, a]) for a in arrays
            ]
        made, wanted = opened(*arrays), known(*arrays)
        for a, b in zip(made, wanted, strict=True):
            np.testing.assert_array_equal(a.shape, b.shape)
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, 1e-9, 1e-9)
        for a, shape in zip(made, promised):
            assert a.shape == tuple([lengths_at(d, {"N": n, "B": 3}) for d in shape])


@pytest.mark.parametrize("name", every(3, ROWS))
def test_a_length_is_what_the_int_is(name):
    check(ROWS[name], "numpy", ROWS[name].sizes[::3])


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_so_it_is_of_other_sizes(name):
    check(ROWS[name], "numpy", [n for i, n in enumerate(ROWS[name].sizes) if i % 3])


BATCHED = [name for name, row in ROWS.items() if row.batched]


@pytest.mark.parametrize("name", every(6, BATCHED))
def test_in_a_batch(name):
    check(ROWS[name], "numpy", ROWS[name].sizes[1:3], batch=True)


@pytest.mark.parametrize("name", every(8, ROWS))
def test_on_llvm(name):
    check(ROWS[name], "llvm", ROWS[name].sizes[1:3])


STORED = ["tile", "pad", "split", "linspace", "scan", "cond", "normal", "one_hot", "unfold", "fold"]


@pytest.mark.parametrize("name", STORED)
def test_in_files_pickles_copies_and_imports(name, tmp_path):
    row = ROWS[name]
    arrays = [values(s, 2, i, k) for i, (s, k) in enumerate(zip(row.shapes, row.kinds))]
    with gg.Graph() as graph:
        xs, ys, more = built(row, N)
        wanted = gg.compile(xs, [*ys, *more])(*arrays)
    gg.save(tmp_path / "g.gg", graph)
    tensors = [(t.node.index, t.index) for t in (*xs, *ys, *more)]
    for copy in (gg.load(tmp_path / "g.gg").graph, pickle.loads(pickle.dumps(graph)), graph.copy()):
        found = [copy.nodes[i].outputs[j] for i, j in tensors]
        made = gg.compile(found[: len(xs)], found[len(xs) :])(*arrays)
        for a, b in zip(made, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
    with gg.Graph():
        rows = {"N": gg.Length("rows")}
        given = {x: gg.placeholder([lengths_at(d, rows) for d in x.shape], x.dtype) for x in xs}
        here = gg.import_graph(graph, given)
        made = gg.compile([*given.values()], [here[t] for t in (*ys, *more)])(*arrays)
    for a, b in zip(made, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def lengths_at(d, sizes):
    return d.at(sizes) if isinstance(d, gg.Length) else d


def test_in_the_derivative_forwards():
    with gg.Graph():
        x = gg.placeholder(("N", 2))
        y = gg.tile(gg.pad(x, ((N, 0), (0, 0))), (N, 1))
        dy = gg.jvp(y, x, x * x)
        made = gg.compile(x, [y, dy])(np.array([[1.0, 2.0], [3.0, 4.0]]))
    half = np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(made[0], np.tile(half, (2, 1)))
    np.testing.assert_array_equal(made[1], np.tile(half**2, (2, 1)))


def test_in_a_region_with_a_rule():
    with gg.Graph():
        x = gg.placeholder(("N", 1))
        with gg.override_gradient(lambda site, dy: tuple(2 * dx for dx in site.default(dy))):
            y = gg.tile(x, (N, 1))
        (dx,) = gg.gradients([gg.sum(y)], [x])
        assert dx.shape == x.shape
        np.testing.assert_array_equal(gg.compile(x, dx)(np.ones((3, 1))), np.full((3, 1), 6.0))


REFUSED = {
    "unstack": (
        lambda x: gg.unstack(x),
        "the number of rows, N, is only known at run time.*gg.scan",
    ),
    "split into N": (lambda x: gg.split(x, N), "into N parts.*only known at run time"),
    "insert": (lambda x: gg.insert(x, 0, 1.0, axis=0), "has to be an int"),
    "polyval": (lambda x: gg.polyval(x[:, 0], 2.0), "give the length as an int"),
    "strides": (lambda x: nn.conv(x[None], weights(2, 3, 1), N), "ints, for they say how"),
    "scale": (lambda x: nn.interpolate(x[None], scale_factor=0.7), "not a multiple of 1/1024"),
    "mask_indices": (lambda x: gg.mask_indices(N, np.triu), "n = N is open"),
    "tile by fewer than none": (lambda x: gg.tile(x, -N - 1), "never negative"),
    "associative_scan": (lambda x: gg.associative_scan(gg.add, x), "gg.scan goes over"),
    "range": (lambda x: range(N), "gg.fori_loop or gg.scan"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_says_so(name):
    build, said = REFUSED[name]
    with gg.Graph(), pytest.raises((gg.ShapeError, TypeError), match=said):
        build(gg.placeholder(("N", 3)))


AT_RUN = {
    "negative widths": lambda x: gg.pad(x, ((N - 3, 0), (0, 0))),
    "negative copies": lambda x: gg.tile(x, (N - 3, 1)),
    "negative shapes": lambda x: gg.zeros((N - 3, 3)) + gg.sum(x),
    "negative runs": lambda x: gg.scan(lambda c, _: (c, None), gg.sum(x), length=N - 3)[0],
    "too short to reflect": lambda x: gg.pad(x, ((2 * N - 2, 0), (0, 0)), "reflect"),
    "too many to choose": lambda x: random.choice(x, (2 * N - 1,), replace=False, seed=1),
    "none to choose from": lambda x: random.choice(N - 2, (3,), seed=1) + 0 * gg.sum(x),
    "windows too long": lambda x: gg.dynamic_slice(x, [gg.constant(0), 0], [2 * N - 1, 3]),
    "too many of the largest": lambda x: gg.topk(x, 2 * N - 1, axis=0)[0],
    "parts that are not equal": lambda x: gg.split(x[:-1], 2)[0],
    "a negative length is not what is left over": lambda x: gg.reshape(x[:0], (N - 3, 0)),
}


@pytest.mark.parametrize("backend", ["numpy", "llvm"])
@pytest.mark.parametrize("name", AT_RUN)
def test_what_only_a_run_knows_is_wrong(name, backend):
    with gg.Graph():
        x = gg.placeholder(("N", 3))
        run = gg.compile(x, AT_RUN[name](x), backend=backend)
    with pytest.raises((gg.ShapeError, ValueError, IndexError)):
        run(np.ones((2, 3)))


def test_a_batch_repeats_by_one_node():
    with gg.Graph() as graph:
        x = gg.placeholder(("B", "N"))
        gg.vmap(lambda x: gg.stack([x, gg.zeros(N)]))(x)
    assert [node.type for node in graph.nodes].count("BroadcastTo") == 1
    assert "Multiply" not in [node.type for node in graph.nodes]


def test_filters_of_a_batch_over_an_open_image_are_one_convolution():
    def gradients(x, w):
        return gg.gradients([gg.sum(gg.sin(nn.conv(x, w, 1, "VALID")))], [x, w])

    arrays = [np.stack([values(IMAGE[0], 2, i, "f") for i in range(3)]), np.ones((3, 2, 2, 2, 1))]
    made = []
    for high in ("H", 5):
        with gg.Graph():
            x, w = gg.placeholder((3, 1, high, 4, 2)), gg.placeholder((3, 2, 2, 2, 1))
            made.append(gg.compile([x, w], gg.vmap(gradients)(x, w))(*arrays))
    for a, b in zip(*made):
        np.testing.assert_allclose(a, b)
