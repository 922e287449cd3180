"""Images with their channels last: the same values, whatever the order of their axes meets."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.ir.build import build
from graphgrad.ir.verify import verify_program
from graphgrad.lower.channels_last import channels_last
from graphgrad.ops.nn.conv2d import Conv2DBackpropInput

AXES = [axes for count in range(5) for axes in combinations(range(4), count)]
BROADCAST = [
    (),
    (5,),
    (4, 5),
    (4, 1),
    (3, 1, 1),
    (3, 4, 1),
    (1, 3, 1, 1),
    (2, 1, 1, 5),
    (2, 3, 4, 5),
    (6, 1, 1, 1, 1),
]


def _same(made, high=4, wide=5):
    """Checks made(h) of an image h = (2, 3, high, wide) that a convolution makes; the new nodes."""
    rng = np.random.default_rng(0)
    with gg.Graph():
        x, w = gg.placeholder((2, 2, high, wide)), gg.placeholder((3, 3, 2, 3))
        program = gg.Program([x, w], made(gg.nn.conv(x, w, 1, 1, "NCHW"), x, w))
    turned = channels_last(program)
    verify_program(turned)
    arrays = rng.normal(size=x.shape), rng.normal(size=w.shape)
    runs = [one_call_per_node(p, Kernels(np))(*arrays) for p in (turned, program)]
    for found, wanted in zip(*runs, strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, 1e-12, 1e-12)
    return [n.type for n in turned.nodes]


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axes", AXES)
def test_reductions_over_any_axes(axes, keepdims):
    _same(lambda h, x, w: [gg.max(h, axes, keepdims), gg.sum(h * h, axes, keepdims)])


@pytest.mark.parametrize("axes", list(permutations(range(4))))
def test_transpositions_of_any_order(axes):
    _same(lambda h, x, w: [gg.permute_dims(gg.tanh(h), axes)])
    _same(lambda h, x, w: [gg.exp(gg.permute_dims(gg.tanh(h), axes))], 3, 3)
    _same(lambda h, x, w: [h, gg.exp(gg.permute_dims(x, axes))])


@pytest.mark.parametrize("shape", BROADCAST)
def test_operands_that_broadcast(shape):
    b = np.random.default_rng(1).normal(size=shape)
    names = _same(lambda h, x, w: [gg.exp(h - b) * b, gg.where(b > 0, h, b)])
    assert names.count("Conv2D") == 1


@pytest.mark.parametrize("shape", [(3, 3, 3), (2, 3, 3, 3), (3, 1, 3), (3, 3, 1)])
def test_operands_of_as_many_channels_as_rows_and_columns(shape):
    b = np.random.default_rng(1).normal(size=shape)
    _same(lambda h, x, w: [h * b, gg.exp(h)], 3, 3)


@pytest.mark.parametrize(("high", "wide"), [(1, 1), (4, 1), (1, 5), (4, 5)])
def test_reshapes_of_one_pixel_and_more(high, wide):
    _same(lambda h, x, w: [gg.reshape(h, (2, -1)), gg.reshape(gg.exp(h), (3, -1))], high, wide)


@pytest.mark.parametrize("axis", range(4))
def test_joined_and_padded_along_any_axis(axis):
    widths = [(0, 0)] * 4
    widths[axis] = (1, 2)
    _same(lambda h, x, w: [gg.pad(h, widths), gg.concat([h, gg.exp(h)], axis)])


@pytest.mark.parametrize("axis", range(4))
def test_what_else_reads_an_image_reads_it_as_it_was(axis):
    def made(h, x, w):
        h = gg.tanh(h)
        parts = gg.split(gg.flip(h, axis=axis), [1], axis=axis)
        return [*parts, gg.nn.softmax(h, axis), gg.cumsum(h, axis), gg.matmul(h, h.mT)]

    _same(made)


def test_images_of_either_order():
    def made(h, x, w):
        last = gg.nn.conv(x, w, 2, "SAME", "NHWC")
        pooled = gg.nn.max_pool(gg.exp(h), 2, padding="VALID", data_format="NHWC")
        return [gg.tanh(last), pooled, gg.nn.avg_pool(h, 2, data_format="NCHW")]

    _same(made, 4, 2)


def test_gradients_of_both_orders():
    def made(h, x, w):
        first = gg.gradients(gg.sum(gg.tanh(h) ** 2), [x, w])
        return [*first, *gg.gradients(gg.sum(first[0] ** 2) + gg.sum(first[1] ** 2), [x, w])]

    _same(made)


def test_the_fewer_of_what_is_joined_are_turned():
    """What came with its channels first stays so beside fewer images that were turned."""
    many = _same(lambda h, x, w: [gg.concat([h, h + 1, x[:, :, :4]], 1)])
    few = _same(lambda h, x, w: [gg.concat([h, x, x * 2], 1)])
    assert (many.count("Transpose"), few.count("Transpose")) == (3, 2)
    even = _same(lambda h, x, w: [h + gg.concat([x, x[:, :1]], 1)])
    assert even.count("Transpose") == 3


def test_gradients_that_read_an_image_for_its_lengths():
    def made(h, x, w):
        return build(Conv2DBackpropInput(*h.node.op.attributes()), (w, h, x)).outputs

    _same(made)


def test_pools_alone_stay():
    with gg.Graph():
        x = gg.placeholder((1, 2, 4, 5))
        program = gg.Program([x], [gg.nn.max_pool(x, 2, data_format="NCHW")])
    assert channels_last(program) is program


def test_open_lengths_and_controls_stay():
    with gg.Graph():
        x, w = gg.placeholder(("N", 2, 4, 5)), gg.placeholder((3, 3, 2, 3))
        z = gg.tanh(gg.nn.conv(x, w, 1, 1, "NCHW"))
        n = gg.placeholder((1, 2, 4, 5))
        first = gg.exp(n)
        late = gg.nn.conv(n, w, 1, 1, "NCHW")
        late.node.controls = (first.node,)
        program = gg.Program([x, w, n], [z, *gg.gradients(gg.sum(z * z), [x, w]), late])
    made = channels_last(program)
    assert [n.type for n in made.nodes] == [n.type for n in program.nodes]
