"""Images with their channels last: what turns them is moved behind all that does not mind.

A convolution or pool of images (N, C, H, W) is one of (N, H, W, C) between two transpositions. The
one behind moves on through what works element by element, reduces, joins and pads, until it meets
the one before the next convolution, and both are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.build import without_graph
from ..ir.node import Node, Tensor
from ..ir.program import WRITE, Program
from ..ir.types import lengths
from ..ops.making import Making
from ..ops.nn.conv2d import FIRST, LAST, Convolution
from ..ops.nn.moving_windows import Windowed
from ..ops.reduce.reductions import Reduction
from ..ops.shape.joining import Concat
from ..ops.shape.padding import Pad
from ..ops.shape.reshaping import Reshape, Transpose

Moved = Callable[[Node, Making], Tensor | None]
RANK = 4
OPERANDS = 2  # of a convolution whose lengths are all known


def channels_last(program: Program) -> Program:
    """The program with its images so; the very same one without convolutions of (N, C, H, W)."""
    if not any(_first(n) for n in program.nodes if isinstance(n.op, Convolution)):
        return program
    return without_graph(WRITE, program.rebuild, _visit)


def _first(node: Node) -> bool:
    op = node.op
    return isinstance(op, Windowed) and op.data_format == "NCHW"


def _visit(node: Node) -> tuple[Tensor, ...] | None:
    op = node.op
    if len(node.outputs) != 1 or node.controls or not node.inputs:
        return None
    if any(not t.type.static for t in (*node.inputs, *node.outputs)):
        return None
    if _first(node):
        move: Moved | None = _windowed
    elif not any(_turned(t) for t in node.inputs):
        return None
    elif op.elementwise:
        move = _elementwise
    else:
        kinds = [kind for kind in _MOVES if isinstance(op, kind)]
        move = _MOVES[kinds[0]] if kinds else None
    made = move and move(node, Making(node))
    return None if made is None else (made,)


def _turned(t: Tensor) -> bool:
    """Whether it is an image that was turned so that its channels come first."""
    op = t.node.op
    return type(op) is Transpose and op.axes == FIRST


def _last(make: Making, t: Tensor) -> Tensor:
    return t.node.inputs[0] if _turned(t) else make(Transpose(LAST), t)


def _windowed(node: Node, make: Making) -> Tensor | None:
    op: Any = node.op
    of_conv = isinstance(op, Convolution)
    if of_conv and len(node.inputs) > OPERANDS:
        return None
    images = op.images if of_conv else range(len(node.inputs))
    inputs = [_last(make, t) if i in images else t for i, t in enumerate(node.inputs)]
    made = make(op.replace(data_format="NHWC"), *inputs)
    return make(Transpose(FIRST), made) if not of_conv or op.makes_image else made


def _elementwise(node: Node, make: Making) -> Tensor | None:
    """f(turned x, b) -> turned f(x, b with its channels last)"""
    shape = node.outputs[0].shape
    whole = [t for t in node.inputs if t.shape == shape]
    if len(shape) != RANK or 2 * sum(map(_turned, whole)) < len(whole):
        return None
    return make(Transpose(FIRST), make(node.op, *[_operand(make, t) for t in node.inputs]))


def _operand(make: Making, t: Tensor) -> Tensor:
    """An operand that broadcasts to images with their channels last."""
    shape = lengths(t.type)
    if not shape or _turned(t):
        return _last(make, t) if shape else t
    padded = (*(1,) * (RANK - len(shape)), *shape)
    long = [a for a in LAST if padded[a] != 1]
    if long == sorted(long):
        return make(Reshape(tuple([padded[a] for a in LAST])), t)
    return make(Transpose(LAST), t if padded == shape else make(Reshape(padded), t))


def _reduced(node: Node, make: Making) -> Tensor | None:
    """Reduced along height and width, or along channels, or all; or with lengths of 1 there."""
    op: Any = node.op
    (x,) = node.inputs
    axes = tuple(sorted([LAST.index(a) for a in op.axes]))
    made = make(op.replace(axes=axes), x.node.inputs[0])
    if op.keepdims:
        return make(Transpose(FIRST), made)
    kept = [a for a in LAST if a not in op.axes]
    return made if kept == sorted(kept) else None


def _concat(node: Node, make: Making) -> Tensor | None:
    if 2 * sum(map(_turned, node.inputs)) < len(node.inputs):
        return None
    op: Any = node.op
    made = make(op.replace(axis=LAST.index(op.axis)), *[_last(make, t) for t in node.inputs])
    return make(Transpose(FIRST), made)


def _padded(node: Node, make: Making) -> Tensor:
    op: Any = node.op
    widths = tuple([op.widths[a] for a in LAST])
    return make(Transpose(FIRST), make(op.replace(widths=widths), _last(make, node.inputs[0])))


def _reshaped(node: Node, make: Making) -> Tensor | None:
    """What has one pixel lies in the same order either way."""
    (x,) = node.inputs
    return make(node.op, x.node.inputs[0]) if x.shape[2:] == (1, 1) else None


def _again(node: Node, make: Making) -> Tensor | None:
    """Turned back is not turned at all."""
    op: Any = node.op
    return node.inputs[0].node.inputs[0] if op.axes == LAST else None


_MOVES: dict[type, Moved] = {
    Reduction: _reduced,
    Concat: _concat,
    Pad: _padded,
    Reshape: _reshaped,
    Transpose: _again,
}
