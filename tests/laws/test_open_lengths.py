"""A law over the registry: on open lengths an op promises the shapes that come out, and computes,
with its gradients, what it computes on fixed ones.

Axes of equal lengths in a sample have one name, and are resized together.
"""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.base.length import Length
from graphgrad.ir.build import build
from graphgrad.ir.types import sized

from ..each import each
from .cases import CASES

SIZES = {2: (5,), 3: (4,), 4: (6,), 5: (2,)}
"""Of a length in a sample: what it becomes; of others, one more."""
MORE = (0, 1, 2, 4, 7)


def first_of_each(cases):
    """The first sample with a length of each op type."""
    firsts = {}
    for name, op, arrays in cases:
        if any(a.ndim for a in arrays):
            firsts.setdefault(name.rpartition("-")[0], (name, op, arrays))
    return list(firsts.values())


def resized(array, n, length):
    """The array with its axes of length n resized, its elements again and again."""
    for axis in range(array.ndim):
        if array.shape[axis] == n:
            array = np.take(array, np.arange(length) % n, axis) if n else np.zeros((length,))
    return array


def placed(op, types):
    """Inputs and outputs of the op on placeholders, and its first and second gradients."""
    with gg.Graph():
        xs = [gg.placeholder(t.shape, t.dtype, name=f"x{i}") for i, t in enumerate(types)]
        outputs = list(build(op, tuple(xs)).outputs)
        by = [x for x in xs if x.type.differentiable]
        of = [y for y in outputs if y.type.differentiable]
        total = [gg.sum(gg.real(gg.sin(y))) for y in of]
        dxs = gg.gradients(total, by) if op.differentiable and of and by else []
        smooth = [gg.sum(gg.real(dx * dx)) for dx in dxs if dx is not None]
        seconds = gg.gradients(smooth, by) if smooth else [None] * len(dxs)
        pairs = zip([*dxs, *seconds], [*by, *by], strict=False)
        return xs, outputs, [gg.zeros_like(x) if d is None else d for d, x in pairs]


def run(placement, arrays, backend):
    xs, outputs, gradients = placement
    with np.errstate(all="ignore"):
        return gg.compile(xs, [*outputs, *gradients], backend=backend)(*arrays)


def check(op, arrays, sizes, backend):
    """The law, for arrays of which one length after the other is resized."""
    names = {n: Length(f"L{n}") for a in arrays for n in a.shape}
    types = [gg.extend.tensor_type(tuple(map(names.get, a.shape)), a.dtype) for a in arrays]
    try:
        placement = placed(op, types)
    except (gg.ShapeError, gg.GradientError) as error:
        pytest.skip(str(error))
    tried = 0
    for n in names:
        for length in sizes(n):
            given = [resized(a, n, length) for a in arrays]
            try:
                fixed = run(placed(op, [gg.extend.type_of_array(a) for a in given]), given, backend)
            except Exception:  # the op is not for these, whatever it says
                continue
            made = run(placement, given, backend)
            assert len(made) == len(fixed)
            known = {f"L{m}": length if m == n else m for m in names}
            for t, y in zip(placement[1], made):
                shape = sized(t.shape, known)
                assert len(shape) == y.ndim
                assert all(d in (None, m) for d, m in zip(shape, y.shape)), (t.type, y.shape)
            for a, b in zip(made, fixed, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-9, equal_nan=True)
            tried += 1
    if not tried:
        pytest.skip("its samples are of the only lengths that it takes")


@each(first_of_each(CASES), sample=2)
def test_an_op_on_open_lengths_is_that_on_fixed_ones(op, arrays):
    check(op, arrays, lambda n: SIZES.get(n, (n + 1,)), "numpy")


@pytest.mark.slow
@each(first_of_each(CASES))
@pytest.mark.parametrize("backend", ["numpy", "llvm", "jax"])
def test_an_op_on_open_lengths_is_that_on_fixed_ones_for_five_sizes(op, arrays, backend):
    check(op, arrays, lambda n: MORE, backend)
