"""Convolutions with channels first are turned; others, and those that read a shape, stay."""

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.execute.kernels import Kernels, one_call_per_node
from graphgrad.ir.build import build
from graphgrad.ir.program import Program
from graphgrad.lower.decompose import decompose
from graphgrad.ops.nn.conv2d import Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput


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


BY_CHANNEL = {
    "same": {"padding": "SAME"},
    "valid": {"padding": "VALID"},
    "borders": {"padding": ((2, 0), (1, 1))},
    "more border than window": {"padding": ((3, 0), (1, 1))},
    "strides": {"strides": (2, 3), "padding": ((1, 2), (1, 0))},
    "strides longer than the window": {"strides": (4, 3), "padding": "VALID"},
    "strides and dilation": {"strides": (2, 3), "dilation": (3, 2), "padding": ((2, 4), 1)},
    "strides of a common factor": {"strides": 2, "dilation": 2, "padding": 3},
}


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("each", "case"), [*((1, c) for c in BY_CHANNEL), (2, "same")])
def test_filters_of_single_channels_are_taken_apart_and_give_the_same(case, each, layout):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2, 5, 6, 3) if layout == "NHWC" else (2, 3, 5, 6))
    w = rng.normal(size=(3, 2, 1, 3 * each))
    with gg.Graph():
        a, b = gg.placeholder(x.shape), gg.placeholder(w.shape)
        z = gg.nn.conv(a, b, data_format=layout, groups=3, **BY_CHANNEL[case])
        outputs = [z, *gg.gradients([gg.sum(z * z)], [a, b])]
        left = {n.op.type for n in decompose(Program([a, b], outputs)).nodes}
        found = gg.compile([a, b], outputs, backend="llvm")(x, w)
        plain = gg.compile([a, b], outputs, backend="numpy")(x, w)
    assert not {t for t in left if t.startswith("Conv2D")}
    for one, other in zip(found, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
