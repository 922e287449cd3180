"""What an op of somebody else's says of its kernel is used as of the library's own."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.extend import Memory, Op, Strided, Traits, apply, tensor_type
from graphgrad.ir.op import OP_TYPES

A = np.random.default_rng(0).normal(size=(300, 400))


@pytest.fixture(autouse=True)
def _forgotten():
    """No other test meets the ops of these."""
    before = dict(OP_TYPES)
    yield
    OP_TYPES.clear()
    OP_TYPES.update(before)


def ops():
    class RowTotals(Op):
        traits = Traits(reduction="sum")
        linear = "joint"

        def infer(self, x):
            return (tensor_type(x.shape[:1], x.dtype),)

        def kernel(self, xp, x):
            return xp.sum(x, axis=1)

        def reduced_axes(self, shape):
            return (1,)

    class ReadBackwards(Op):
        memory = Memory(view=True, alias=True)
        linear = "joint"

        def infer(self, x):
            return (x,)

        def kernel(self, xp, x):
            return x[:, ::-1]

        def strided(self, x, shape):
            last = (x.shape[1] - 1) * x.strides[1]
            return Strided(shape, (x.strides[0], -x.strides[1]), x.offset + last)

    class TwiceTheTotals(RowTotals):
        def kernel(self, xp, x):
            return 2 * xp.sum(x, axis=1)

    class Shifted(ReadBackwards):
        def kernel(self, xp, x):
            return xp.roll(x, 1, axis=1)

    return RowTotals(), ReadBackwards(), TwiceTheTotals(), Shifted()


@pytest.mark.parametrize("optimize", [True, False])
@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_reductions_and_views_from_elsewhere(backend, optimize):
    if backend != "numpy":
        pytest.importorskip({"llvm": "llvmlite"}.get(backend, backend))
    total, mirrored, twice, shifted = ops()
    x = gg.placeholder(A.shape)
    ys = [apply(total, gg.exp(apply(mirrored, x)) * x)]
    ys += [apply(twice, gg.exp(apply(shifted, x)) * x), apply(mirrored, x) + x]
    found = gg.compile([x], ys, backend=backend, optimize=optimize)(A)
    rolled = np.roll(A, 1, axis=1)
    wanted = [(np.exp(A[:, ::-1]) * A).sum(1), 2 * (np.exp(rolled) * A).sum(1), A[:, ::-1] + A]
    for y, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(y, want, rtol=1e-10)


def test_they_share_a_loop_and_what_has_another_kernel_does_not():
    pytest.importorskip("llvmlite")
    total, mirrored, twice, shifted = ops()
    assert twice.traits.reduction is None
    assert shifted.strided(Strided((2, 3), (3, 1), 0), (2, 3)) is None
    x = gg.placeholder(A.shape)
    for ours, y in [
        (True, apply(total, gg.exp(apply(mirrored, x)) * x)),
        (False, apply(twice, gg.exp(apply(shifted, x)) * x)),
    ]:
        text = gg.compile([x], y, backend="llvm").explain()
        assert ("RowTotals" in text and "1 steps" in text) is ours
