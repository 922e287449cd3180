"""Convolutions with channels first are turned; others, and those that read a shape, stay."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.backend import Kernels, one_call_per_node
from graphgrad.ir.build import build
from graphgrad.ir.program import Program
from graphgrad.lower.decompose import decompose
from graphgrad.ops.nn.convolution import Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput


@pytest.mark.parametrize("op_type", [Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput])
def test_channels_come_last(op_type):
    turned = 0
    for op, arrays in op_type.samples(np.random.default_rng(0)):
        with gg.Graph():
            xs = [gg.placeholder(a.shape, a.dtype) for a in arrays]
            program = Program(xs, build(op, tuple(xs)).outputs)
        parts = decompose(program)
        if any(n.op.type == "Multiply" for n in parts.nodes):  # a filter for each channel
            continue
        first = op.data_format == "NCHW" and len(arrays) == 2
        assert (parts is not program) == first
        if not first:
            continue
        turned += 1
        (node,) = [n for n in parts.nodes if n.type == op.type]
        assert node.op.data_format == "NHWC"
        (found,), (wanted,) = (one_call_per_node(p, Kernels(np))(*arrays) for p in (parts, program))
        np.testing.assert_array_equal(found, wanted)
    assert turned


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((2, 0), (1, 1))])
def test_filters_of_single_channels_are_taken_apart_and_give_the_same(padding, layout):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, 6, 3) if layout == "NHWC" else (2, 3, 5, 6))
    w = rng.normal(size=(3, 2, 1, 3))
    with gg.Graph():
        a, b = gg.placeholder(x.shape), gg.placeholder(w.shape)
        z = gg.nn.conv(a, b, 1, padding, layout, groups=3)
        outputs = [z, *gg.gradients([gg.sum(z * z)], [a, b])]
        left = {n.op.type for n in decompose(Program([a, b], outputs)).nodes}
        found = gg.compile([a, b], outputs, backend="llvm")(x, w)
        plain = gg.compile([a, b], outputs, backend="numpy")(x, w)
    assert not {t for t in left if t.startswith("Conv2D")}
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
