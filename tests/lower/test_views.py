"""Views as strides: the elements that NumPy's own views have."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.build import build
from graphgrad.ir.op import Op
from graphgrad.ir.strided import Strided, contiguous, row_major
from graphgrad.lower.loop_ir import axes_through, viewed
from graphgrad.ops.base import apply
from graphgrad.ops.shape.reshaping import Transpose
from graphgrad.ops.shape.slicing import Slice


def _cases():
    for name, cls in sorted(gg.op_types().items()):
        if cls.strided is not Op.strided or cls.memory.reshapes:
            for i, (op, arrays) in enumerate(cls.samples(np.random.default_rng(0))):
                yield pytest.param(op, arrays[0], id=f"{name}-{i}")


@pytest.mark.parametrize(("op", "array"), list(_cases()))
def test_the_elements_of_a_view(op, array):
    with gg.Graph():
        x = gg.placeholder(array.shape, array.dtype)
        (y,) = build(op, (x,)).outputs
    view = viewed(op, y.type, contiguous(array.shape))
    wanted = op.kernel(np, array)
    if view is None:  # a reshape of nothing
        assert array.size == 0
        return
    assert view.shape == wanted.shape
    places = [sum(i * s for i, s in zip(at, view.strides)) for at in np.ndindex(view.shape)]
    found = array.ravel()[[view.offset + p for p in places]] if places else []
    np.testing.assert_array_equal(found, wanted.ravel())


def test_a_reshape_of_part_of_the_memory_is_no_view():
    with gg.Graph():
        x = gg.placeholder((4, 3))
        y = gg.reshape(x, (12,))
    assert viewed(y.node.op, y.type, Strided((4, 3), (6, 1), 0)) is None
    assert viewed(y.node.op, y.type, contiguous((4, 3))) == contiguous((12,))


def test_whole():
    assert contiguous((2, 1, 3)).whole
    assert Strided((2, 1, 3), (3, 99, 1), 0).whole
    assert not Strided((2, 3), (3, 1), 1).whole
    assert not Strided((3, 2), (1, 3), 0).whole
    assert row_major((2, 3, 4)) == (12, 4, 1)


IN_ORDER = {
    "a length of 1 comes": (lambda x: gg.reshape(x, (2, 1, 3)), (0, None, 1)),
    "by a slice": (lambda x: x[None], (None, 0, 1)),
    "all of it": (lambda x: apply(Slice(((0, 2, None),)), x), (0, 1)),
    "repeated": (lambda x: gg.broadcast_to(x, (4, 2, 3)), (None, 0, 1)),
    "the axes where they were": (lambda x: apply(Transpose((0, 1)), x), (0, 1)),
}
OTHERS = {
    "other lengths": lambda x: gg.reshape(x, (3, 2)),
    "another order": gg.transpose,
    "a part": lambda x: x[:1],
    "every second": lambda x: x[::2],
    "backwards": lambda x: gg.flip(x, 1),
    "nothing of it": lambda x: gg.exp(x),
}


@pytest.mark.parametrize("name", IN_ORDER)
def test_what_has_all_of_it_in_order_is_looked_through(name):
    view, axes = IN_ORDER[name]
    with gg.Graph():
        y = view(gg.placeholder((2, 3)))
    assert axes_through(y.node.op, (2, 3), y.shape) == axes


@pytest.mark.parametrize("name", OTHERS)
def test_what_has_not_is_not(name):
    with gg.Graph():
        y = OTHERS[name](gg.placeholder((2, 3)))
    assert axes_through(y.node.op, (2, 3), y.shape) is None


def test_a_length_of_1_may_be_read_backwards():
    with gg.Graph():
        y = gg.flip(gg.placeholder((1, 3)), 0)
    assert axes_through(y.node.op, (1, 3), y.shape) == (None, 1)
