"""Convolutions of images with their channels first, by way of those with their channels last.

The image is looked at turned; what loops read and write next to it can be turned as they go.
"""

from __future__ import annotations

from ..ir.node import Tensor
from ..ops.shaping import Transpose
from ..ops.windows import Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput, Convolution
from .making import Making

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_IMAGES = {Conv2D: (0,), Conv2DBackpropInput: (1,), Conv2DBackpropFilter: (0, 1)}
"""Which of the inputs are images."""


def channels_last(op: Convolution, make: Making) -> Tensor | None:
    """The same convolution of turned images, turned back."""
    if op.data_format != "NCHW" or len(make.inputs) > 2:
        return None
    inputs = [
        make(Transpose(LAST), t) if i in _IMAGES[type(op)] else t for i, t in enumerate(make.inputs)
    ]
    made = make(type(op)(**{**op.attrs, "data_format": "NHWC"}), *inputs)
    return made if type(op) is Conv2DBackpropFilter else make(Transpose(FIRST), made)
