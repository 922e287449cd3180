"""Views as strides: the elements that NumPy's own views have."""

from __future__ import annotations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir.build import build
from graphgrad.lower.views import VIEWS, View, keeps_order, memory_of, row_major, viewed


def _cases():
    for name, cls in sorted(gg.op_types().items()):
        if cls in VIEWS:
            for i, (op, arrays) in enumerate(cls.samples(np.random.default_rng(0))):
                yield pytest.param(op, arrays[0], id=f"{name}-{i}")


@pytest.mark.parametrize(("op", "array"), list(_cases()))
def test_the_elements_of_a_view(op, array):
    with gg.Graph():
        x = gg.placeholder(array.shape, array.dtype)
        (y,) = build(op, (x,)).outputs
    view = viewed(op, y.type, memory_of(array.shape))
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
    assert viewed(y.node.op, y.type, View((4, 3), (6, 1), 0)) is None
    assert viewed(y.node.op, y.type, memory_of((4, 3))) == memory_of((12,))


def test_whole():
    assert memory_of((2, 1, 3)).whole
    assert View((2, 1, 3), (3, 99, 1), 0).whole
    assert not View((2, 3), (3, 1), 1).whole
    assert not View((3, 2), (1, 3), 0).whole
    assert row_major((2, 3, 4)) == (12, 4, 1)


def test_order_of_axes():
    with gg.Graph():
        x = gg.placeholder((2, 3))
        moved = [gg.reshape(x, (2, 1, 3)), gg.reshape(x, (3, 2)), gg.transpose(x), x[None]]
    found = [keeps_order(t.node.op, (2, 3), t.shape) for t in moved]
    assert found[:3] == [True, False, False]
