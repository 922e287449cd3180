"""`tf.contrib.image`: turned and moved images."""

from __future__ import annotations

from typing import Any

import numpy as np

import graphgrad as gg

from ..create import apply, convert_to_tensor
from ..definition import define
from ..graph import Operation, Tensor
from ..ops import array as A
from ..ops import math as M
from ..registry import RegisterGradient

__all__ = ["angles_to_projective_transforms", "rotate", "transform", "translate"]


@define("ImageProjectiveTransformV2", "images:A transforms:A", no_gradient=[1],
        infer=lambda i, a: i[0]._shape)  # fmt: skip
def _projected(trace: Any, op: Any, images: Any, t: Any) -> Any:
    """Each element from where (t0 x + t1 y + t2, t3 x + t4 y + t5) / (t6 x + t7 y + 1) is."""
    batch, height, width, channels = images.shape
    y, x = (a.reshape(1, -1).astype("float32") for a in np.indices((height, width)))
    n = [t[:, i : i + 1] for i in range(8)]
    scale = n[6] * x + n[7] * y + 1.0
    across, down = (n[0] * x + n[1] * y + n[2]) / scale, (n[3] * x + n[4] * y + n[5]) / scale
    flat = gg.reshape(images, (batch, height * width, channels))

    def element(row: Any, column: Any) -> Any:
        inside = gg.logical_and(
            gg.logical_and(gg.greater_equal(row, 0), gg.less(row, height)),
            gg.logical_and(gg.greater_equal(column, 0), gg.less(column, width)),
        )
        place = gg.clip(row, 0, height - 1) * width + gg.clip(column, 0, width - 1)
        place = gg.expand_dims(gg.cast(place, "int64"), -1)
        found = gg.take_along_axis(flat, gg.broadcast_to(place, flat.shape), 1)
        return gg.where(gg.expand_dims(inside, -1), found, gg.zeros_like(found))

    if op.attrs["interpolation"] == b"NEAREST":
        made = element(gg.floor(down + 0.5), gg.floor(across + 0.5))
    else:
        top, left = gg.floor(down), gg.floor(across)
        lower, right = (gg.expand_dims(v, -1) for v in (down - top, across - left))
        above = element(top, left) * (1 - right) + element(top, left + 1) * right
        below = element(top + 1, left) * (1 - right) + element(top + 1, left + 1) * right
        made = above * (1 - lower) + below * lower
    return gg.reshape(gg.cast(made, images.dtype), images.shape)


@RegisterGradient("ImageProjectiveTransformV2")
def _ImageProjectiveTransformGrad(op: Operation, grad: Tensor) -> list[Any]:
    """dy, moved back: by the inverse of the transform, not by its adjoint, as in TensorFlow."""
    numbers = op.inputs[1]
    matrices = A.reshape(A.concat([numbers, A.ones_like(numbers[:, :1])], 1), [-1, 3, 3])
    back = A.reshape(apply("MatrixInverse", matrices, adjoint=False), [-1, 9])
    back = (back / back[:, 8:])[:, :8]
    kind = op.attrs["interpolation"]
    return [apply("ImageProjectiveTransformV2", grad, back, interpolation=kind), None]


def angles_to_projective_transforms(
    angles: Any, image_height: Any, image_width: Any, name: Any = None
) -> Tensor:
    """The eight numbers of turning images by angles, against the clock, about their middles."""
    angle = M.cast(A.reshape(convert_to_tensor(angles, preferred_dtype="float32"), [-1]), "float32")
    h, w = (M.subtract(M.cast(n, "float32"), 1.0) for n in (image_height, image_width))
    cos, sin = M.cos(angle), M.sin(angle)
    across = (w - (cos * w - sin * h)) / 2.0
    down = (h - (sin * w + cos * h)) / 2.0
    zero = A.zeros_like(angle)
    return A.stack([cos, -sin, across, sin, cos, down, zero, zero], axis=1)


def transform(
    images: Any, transforms: Any, interpolation: str = "NEAREST", output_shape: Any = None,
    name: Any = None,
) -> Tensor:  # fmt: skip
    """Images, each element from where eight numbers say; zeros beyond their edges."""
    if output_shape is not None:
        raise NotImplementedError("transform keeps the shape: use tf.image.resize_images")
    if interpolation not in ("NEAREST", "BILINEAR"):
        raise ValueError(f"interpolation is NEAREST or BILINEAR, got {interpolation!r}")
    x = convert_to_tensor(images, name="images")
    numbers = convert_to_tensor(transforms, preferred_dtype="float32")
    if numbers.shape.ndims == 1:
        numbers = A.expand_dims(numbers, 0)
    rank = x.shape.ndims
    if rank not in (2, 3, 4):
        raise TypeError(f"Images should have rank between 2 and 4, got {rank}")
    wide = x[None, :, :, None] if rank == 2 else x[None] if rank == 3 else x
    made = apply("ImageProjectiveTransformV2", wide, numbers, name=name,
                 interpolation=interpolation.encode())  # fmt: skip
    return made[0, :, :, 0] if rank == 2 else made[0] if rank == 3 else made


def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: Any = None) -> Tensor:
    """Images turned against the clock about their middles; one angle, or one for each."""
    x = convert_to_tensor(images, name="images")
    lengths = A.shape(x)
    at = {2: 0, 3: 0, 4: 1}[len(x.shape)]
    numbers = angles_to_projective_transforms(angles, lengths[at], lengths[at + 1])
    return transform(x, numbers, interpolation, name=name)


def translate(
    images: Any, translations: Any, interpolation: str = "NEAREST", name: Any = None
) -> Tensor:
    """Images moved by (dx, dy)."""
    moved = A.reshape(convert_to_tensor(translations, preferred_dtype="float32"), [-1, 2])
    zero, one = A.zeros_like(moved[:, 0]), A.ones_like(moved[:, 0])
    rows = [one, zero, -moved[:, 0], zero, one, -moved[:, 1], zero, zero]
    return transform(images, A.stack(rows, axis=1), interpolation, name=name)
