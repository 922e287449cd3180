"""Sixteen bits: what adds up is accumulated in float32 and rounded once, on every backend."""

import importlib.util

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.tree import flatten
from graphgrad.execute.kernels import one_call_per_node
from graphgrad.execute.numpy.kernels import KERNELS
from graphgrad.ir.program import Program
from graphgrad.ops.elementwise.accumulate import AddN

from ..each import each, grouped, judge
from .cases import CASES, placed

HALF = np.dtype(np.float16)
INSTALLED = {"llvm": "llvmlite", "jax": "jax"}
BACKENDS = ["numpy", *[b for b, package in INSTALLED.items() if importlib.util.find_spec(package)]]
MANY = 5000  # ones, which added up in float16 stay at 2048


def as_half(op, arrays, dtype):
    """An op on numbers that float16 holds, where it has floats, as another dtype."""
    if op._interned:
        floats = [n for n, v in op.attrs.items() if isinstance(v, np.dtype) and v.kind == "f"]
        op = op.replace(**dict.fromkeys(floats, np.dtype(dtype)))
    with np.errstate(over="ignore"):
        return op, [a.astype(HALF).astype(dtype) if a.dtype.kind == "f" else a for a in arrays]


def adding():
    """Samples, of float16, of all ops but those that go element by element and add nothing up."""
    for name, op, arrays in CASES:
        read = [a for i, a in enumerate(arrays) if i not in op.shape_only]
        if op.bodies or (op.elementwise and type(op) is not AddN):
            continue
        if any(a.dtype.kind == "f" for a in read):
            half = as_half(op, arrays, HALF)
            try:
                placed(*half)
            except (gg.DTypeError, gg.ShapeError):  # it does not take float16
                continue
            yield name, *half, *as_half(op, arrays, np.float32)


ADDING = list(adding())


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


def rounded(op, arrays, outputs):
    """What an op makes, in the dtypes of these tensors."""
    xs, node = placed(op, arrays)
    made = one_call_per_node(Program(xs, node.outputs), KERNELS)(*arrays)
    return [a.astype(t.dtype) for a, t in zip(made, outputs, strict=True)]


@each(ADDING)
def test_what_an_op_makes_of_float16_is_that_of_float32_rounded_once(op, halves, wide, floats):
    xs, node = placed(op, halves)
    expected = rounded(wide, floats, node.outputs)
    for backend in [b for b in BACKENDS if b != "jax"]:
        found = gg.compile(xs, list(node.outputs), backend=backend)(*halves)
        for got, want in zip(found, expected, strict=True):
            assert got.dtype == want.dtype
            np.testing.assert_array_equal(got, want)


JAX_CASES = grouped(ADDING if "jax" in BACKENDS else [])


@pytest.mark.ci
@pytest.mark.filterwarnings("ignore::DeprecationWarning:jax")
@pytest.mark.parametrize("cases", JAX_CASES.values(), ids=JAX_CASES)
def test_on_jax_too(cases):
    """But for the order of additions in float32: the last place of float16 may be another."""
    with gg.Graph():
        xs = [[gg.placeholder(a.shape, a.dtype) for a in halves] for _, (_, halves, *_) in cases]
        ys = [
            list(gg.ir.build.build(op, tuple(x)).outputs)
            for x, (_, (op, *_)) in zip(xs, cases, strict=True)
        ]
    feeds = [a for _, (_, halves, *_) in cases for a in halves]
    found = gg.compile(flatten(xs), ys, backend="jax")(*feeds)
    wanted = [rounded(wide, floats, y) for (_, (_, _, wide, floats)), y in zip(cases, ys)]

    def near(found, wanted):
        for got, want in zip(found, wanted, strict=True):
            assert got.dtype == want.dtype
            if got.dtype == HALF:
                np.testing.assert_allclose(got.astype(float), want.astype(float), 2**-10, 1e-7)
            elif got.dtype.kind == "c":
                np.testing.assert_allclose(got, want, 1e-5, 1e-5)
            else:
                np.testing.assert_array_equal(got, want)

    pairs = zip(cases, found, wanted, strict=True)
    judge([(name, pair) for (name, _), *pair in pairs], near)


def gradient_of(f):
    """A function of x that makes the gradient of the sum of f(x, y), read in float32, by y."""

    def dy(x, y):
        return gg.gradients(gg.sum(gg.cast(f(x, y), "float32")), y)

    return dy


def gathered(x, y):
    return y[np.zeros(MANY, int)]


IMAGE = (1, MANY, 3, 1)
SUMS = {
    "sum": lambda x, y: gg.sum(x, 0),
    "sum of the last axis": lambda x, y: gg.sum(gg.transpose(x), 1),
    "sum, where": lambda x, y: gg.sum(x, 0, where=x > 0),
    "sum to a shape": lambda x, y: gg.sum(x, 0, keepdims=True),
    "nansum": lambda x, y: gg.nansum(x, 0),
    "cumsum": lambda x, y: gg.cumsum(x, 0)[-1],
    "matmul": lambda x, y: gg.transpose(x) @ x,
    "dot": lambda x, y: gg.dot(x[:, 0], x[:, 1]),
    "vdot": lambda x, y: gg.vdot(x[:, 0], x[:, 1]),
    "tensordot": lambda x, y: gg.tensordot(x, x, ([0], [0])),
    "einsum": lambda x, y: gg.einsum("ij->j", x),
    "einsum of two": lambda x, y: gg.einsum("ij,ik->jk", x, x),
    "einsum of three": lambda x, y: gg.einsum("ij,ik,il->jkl", x, x, x),
    "scatter_add": lambda x, y: gg.scatter_add(y, np.zeros(MANY, int), x)[0] - 1,
    "convolution": lambda x, y: gg.nn.conv(
        gg.reshape(gg.transpose(x), (1, 3, 1, MANY)), gg.ones((1, 1, MANY, 1), HALF)
    ),
    "gradient of a bias": gradient_of(lambda x, y: x + y[0]),
    "gradient of what all runs of a loop read": gradient_of(
        lambda x, y: gg.map(lambda row: row * y[0], x)
    ),
    "gradient of weights": gradient_of(lambda x, y: x @ gg.transpose(y)),
    "gradient of a gather": gradient_of(gathered),
    "gradient of take": gradient_of(lambda x, y: gg.take(y, np.zeros(MANY, int), 0)),
    "gradient of a filter": gradient_of(
        lambda x, y: gg.nn.conv(gg.reshape(x, IMAGE), gg.reshape(y[0], (1, 3, 1, 1))) / 2
    ),
    "gradient of many readers": gradient_of(lambda x, y: gg.concat([y[:1] * 1.0] * 3000) * 5 / 3),
}
MEANS = {
    "mean": lambda x, y: gg.mean(x, 0),
    "mean, where": lambda x, y: gg.mean(x, 0, where=x > 0),
    "nanmean": lambda x, y: gg.nanmean(x, 0),
    "average": lambda x, y: gg.average(x, 0, weights=x[:, 0]),
    "avg_pool": lambda x, y: gg.nn.avg_pool(gg.reshape(x, IMAGE), (MANY, 1)),
    "norm": lambda x, y: gg.linalg.norm(x, axis=0) ** 2 / MANY,
    "norm of order 3": lambda x, y: gg.linalg.norm(x, 3, 0) ** 3 / MANY,
    "logsumexp": lambda x, y: gg.logsumexp(x, 0) - float(np.log(MANY)),
    "var": lambda x, y: gg.var(x * 2, 0, mean=gg.ones((1, 3), HALF)),
    "std": lambda x, y: gg.std(x * 200, 0, mean=gg.zeros((1, 3), HALF)) / 200,
    "moments": lambda x, y: gg.nn.batch_norm(x * 300)[1] / 300,
    "rms_norm": lambda x, y: gg.nn.rms_norm(x * 300, axis=0),
    "logmeanexp": lambda x, y: gg.nn.logmeanexp(x, 0),
    "gradient of cumulative_logsumexp": lambda x, y: (
        gg.gradients(gg.cumulative_logsumexp(x, 0)[-1], x)[0] * MANY
    ),
    "gradient of a mean": lambda x, y: gg.gradients(
        gg.mean(gg.broadcast_to(x[:1, :1], (400_000, 1))), x
    )[0, 0],
}


EVERY = {**SUMS, **MEANS}
FEW = ("sum", "matmul", "gradient of a bias")
TRIED = [
    *[(b, FEW if b == "jax" else tuple(EVERY)) for b in BACKENDS],
    *[pytest.param(b, tuple(EVERY), marks=pytest.mark.ci) for b in BACKENDS if b == "jax"],
]


@pytest.mark.parametrize(("backend", "names"), TRIED)
def test_five_thousand_ones_are_five_thousand(backend, names):
    """In every way to add up; all of them in one program."""
    ones = np.ones((MANY, 3), HALF), np.ones((2, 3), HALF)
    with gg.Graph():
        x, y = (gg.placeholder(a.shape, HALF) for a in ones)
        made = {n: EVERY[n](x, y) for n in names}
        found = gg.compile([x, y], made, backend=backend)(*ones)
    for name, value in found.items():
        assert value.dtype == HALF, name
        want = MANY if name in SUMS else 1
        np.testing.assert_allclose(float(np.ravel(value)[0]), want, 2e-3, err_msg=name)
