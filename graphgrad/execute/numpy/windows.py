"""Convolution and pooling of nodes on NumPy: the window of each, and its images channels last."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.node import Node
from ...ir.op import Op
from ...ops.nn.conv2d import Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput, Convolution
from ...ops.nn.moving_windows import Window
from ...ops.nn.pool2d import MaxPool, MaxPoolGrad, Pool
from ..kernels import Kernel, MakeWriter
from .convolution import convolve, gradient_of_filter, gradient_of_image
from .pooling import max_pool, max_pool_gradient


def _window(op: Convolution, image: Any, size: Any) -> Window:
    """The window of a convolution with filters of this size over an image of this shape."""
    return op.moved(op.spatial(image), tuple(size), op.dilation)


def _conv(node: Node, threads: int) -> Kernel:
    op, (x, w) = node.op, node.inputs
    assert isinstance(op, Conv2D)
    window = _window(op, x.shape, w.shape[:2])
    return lambda x, w, z: convolve(window, op.groups, op.last(np, x), w, op.last(np, z), threads)


def _conv_input(node: Node, threads: int) -> Kernel:
    op, w, (dx,) = node.op, node.inputs[0], node.outputs
    assert isinstance(op, Conv2DBackpropInput)
    window = _window(op, dx.shape, w.shape[:2])

    def run(w: Any, dz: Any, *others: Any) -> None:
        dz, dx = op.last(np, dz), op.last(np, others[-1])
        gradient_of_image(window, op.groups, w, dz, dx, threads)

    return run


def _conv_filter(node: Node, threads: int) -> Kernel:
    op, x, (dw,) = node.op, node.inputs[0], node.outputs
    assert isinstance(op, Conv2DBackpropFilter)
    window = _window(op, x.shape, dw.shape[:2])

    def run(x: Any, dz: Any, *others: Any) -> None:
        x, dz = op.last(np, x), op.last(np, dz)
        gradient_of_filter(window, op.groups, x, dz, others[-1], threads)

    return run


def _max_pool(node: Node, threads: int) -> Kernel:
    op = node.op
    assert isinstance(op, Pool)
    window = op.over(node.inputs[0])
    return lambda x, y: max_pool(window, op.last(np, x), op.last(np, y), threads)


def _max_pool_grad(node: Node, threads: int) -> Kernel:
    op = node.op
    assert isinstance(op, MaxPoolGrad)
    window, first = op.over(node.inputs[1]), op.ties == "first"

    def run(*arrays: Any) -> None:
        dy, x, y, dx = (op.last(np, a) for a in arrays)
        max_pool_gradient(window, dy, x, y, dx, threads, first)

    return run


WRITERS: dict[type[Op], MakeWriter] = {
    Conv2D: _conv,
    Conv2DBackpropFilter: _conv_filter,
    Conv2DBackpropInput: _conv_input,
    MaxPool: _max_pool,
    MaxPoolGrad: _max_pool_grad,
}
