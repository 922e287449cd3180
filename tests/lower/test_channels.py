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
