"""Functions of images: `tf.image`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import graphgrad as gg

from ..create import apply, convert_to_tensor, name_scope
from ..definition import define
from ..dtypes import as_dtype
from ..graph import Tensor
from ..refused import refuses
from ..shapes import TensorShape, unknown_shape
from ..static import constant_shape
from . import array as A
from . import math as M
from .array_types import sized
from .random import random_uniform

__all__ = [
    "ResizeMethod", "adjust_brightness", "adjust_contrast", "central_crop", "convert_image_dtype",
    "crop_to_bounding_box", "extract_image_patches", "flip_left_right", "flip_up_down",
    "grayscale_to_rgb", "pad_to_bounding_box", "per_image_standardization", "random_brightness",
    "random_contrast", "random_flip_left_right", "random_flip_up_down", "resize", "resize_bilinear",
    "resize_image_with_crop_or_pad", "resize_images", "resize_nearest_neighbor", "rgb_to_grayscale",
    "rot90", "total_variation", "transpose_image",
]  # fmt: skip
Name = str | None


class ResizeMethod:
    """How images are resized."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def _resized(inputs: Any, attrs: Any) -> TensorShape:
    shape, size = inputs[0]._shape, constant_shape(inputs[1])
    if shape.lengths is None:
        return unknown_shape(4)
    space = [None, None] if size.lengths is None else list(size.lengths)
    return TensorShape([shape.lengths[0], *space, shape.lengths[3]])


def _places(op: Any, n: int, m: int) -> np.ndarray[Any, Any]:
    """Where each of m new places lies among n old ones."""
    if op.attrs["align_corners"] and m > 1:
        return np.arange(m) * (n - 1) / (m - 1)
    if op.attrs["half_pixel_centers"]:
        return np.maximum((np.arange(m) + 0.5) * n / m - 0.5, 0)
    return np.arange(m) * n / m


@define("ResizeBilinear", "images:A size:int32", infer=_resized, dtype="float32")
def _bilinear(trace: Any, op: Any, x: Any, size: Any) -> Any:
    x = gg.cast(x, "float32")
    for axis, m in zip((1, 2), sized(trace, op.inputs[1]), strict=True):
        n = x.shape[axis]
        at = _places(op, n, m)
        low = np.minimum(np.floor(at).astype("int64"), n - 1)
        high = np.minimum(low + 1, n - 1)
        shape = [1, 1, 1, 1]
        shape[axis] = m
        share = (at - low).astype("float32").reshape(shape)
        below, above = gg.take(x, low, axis=axis), gg.take(x, high, axis=axis)
        x = below + (above - below) * share
    return x


@define("ResizeNearestNeighbor", "images:A size:int32", infer=_resized)
def _nearest(trace: Any, op: Any, x: Any, size: Any) -> Any:
    for axis, m in zip((1, 2), sized(trace, op.inputs[1]), strict=True):
        n = x.shape[axis]
        at = _places(op, n, m)
        if op.attrs["align_corners"]:
            at = np.floor(at + 0.5)
        elif op.attrs["half_pixel_centers"]:
            at = (np.arange(m) + 0.5) * n / m
        x = gg.take(x, np.minimum(np.floor(at).astype("int64"), n - 1), axis=axis)
    return x


def _resizer(type: str, name_of: str, what: str) -> Callable[..., Tensor]:
    def function(
        images: Any, size: Any, align_corners: bool = False, name: Name = None,
        half_pixel_centers: bool = False,
    ) -> Tensor:  # fmt: skip
        return apply(
            type, images, A._shape_value(size), name=name, align_corners=align_corners,
            half_pixel_centers=half_pixel_centers,
        )  # fmt: skip

    function.__name__ = function.__qualname__ = name_of
    function.__doc__ = f"Images of another size, {what}."
    return function


resize_bilinear = _resizer("ResizeBilinear", "resize_bilinear", "between neighbours")
resize_nearest_neighbor = _resizer(
    "ResizeNearestNeighbor", "resize_nearest_neighbor", "by the nearest element"
)


@refuses("preserve_aspect_ratio")
def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: Name = None,
) -> Tensor:
    """Images of another size; one image or a batch of them."""
    with name_scope(name, "resize", [images]):
        x = convert_to_tensor(images)
        single = x.shape.ndims == 3
        if single:
            x = A.expand_dims(x, 0)
        if method in (ResizeMethod.BILINEAR, "bilinear"):
            made = resize_bilinear(x, size, align_corners)
        elif method in (ResizeMethod.NEAREST_NEIGHBOR, "nearest"):
            made = resize_nearest_neighbor(x, size, align_corners)
        else:
            raise NotImplementedError("images are resized by BILINEAR or NEAREST_NEIGHBOR")
        return A.squeeze(made, [0]) if single else made


resize = resize_images


def flip_left_right(image: Any) -> Tensor:
    """With columns in reverse order."""
    x = convert_to_tensor(image)
    return A.reverse(x, [len(x.shape) - 2])


def flip_up_down(image: Any) -> Tensor:
    """With rows in reverse order."""
    x = convert_to_tensor(image)
    return A.reverse(x, [len(x.shape) - 3])


def _sometimes(image: Any, axis: int, seed: Any) -> Tensor:
    x = convert_to_tensor(image)
    flipped = A.reverse(x, [len(x.shape) + axis])
    chosen = M.less(random_uniform([], seed=seed), 0.5)
    return apply("SelectV2", chosen, flipped, x)


def random_flip_left_right(image: Any, seed: Any = None) -> Tensor:
    """With columns in reverse order, half of the time."""
    return _sometimes(image, -2, seed)


def random_flip_up_down(image: Any, seed: Any = None) -> Tensor:
    """With rows in reverse order, half of the time."""
    return _sometimes(image, -3, seed)


def rot90(image: Any, k: int = 1, name: Name = None) -> Tensor:
    """Turned by 90 degrees, k times."""
    x = convert_to_tensor(image)
    for _ in range(k % 4):
        x = A.reverse(transpose_image(x), [len(x.shape) - 3])
    return x


def transpose_image(image: Any, name: Name = None) -> Tensor:
    """With rows and columns exchanged."""
    x = convert_to_tensor(image)
    n = len(x.shape)
    perm = list(range(n))
    perm[n - 3], perm[n - 2] = n - 2, n - 3
    return A.transpose(x, perm)


def crop_to_bounding_box(image: Any, top: Any, left: Any, height: Any, width: Any) -> Tensor:
    """A part of images."""
    x = convert_to_tensor(image)
    lead = len(x.shape) - 3
    begin = [*[0] * lead, top, left, 0]
    return A.slice_(x, begin, [*[-1] * lead, height, width, -1])


def pad_to_bounding_box(image: Any, top: Any, left: Any, height: Any, width: Any) -> Tensor:
    """Images with zeros around."""
    x = convert_to_tensor(image)
    h, w = x.shape.as_list()[-3:-1]
    around = [[top, height - h - top], [left, width - w - left], [0, 0]]
    return A.pad(x, [*[[0, 0]] * (len(x.shape) - 3), *around])


def resize_image_with_crop_or_pad(image: Any, height: int, width: int) -> Tensor:
    """Images of another size, cut or with zeros around."""
    x = convert_to_tensor(image)
    h, w = x.shape.as_list()[-3:-1]
    top, left = max(0, (h - height) // 2), max(0, (w - width) // 2)
    x = crop_to_bounding_box(x, top, left, min(h, height), min(w, width))
    return pad_to_bounding_box(
        x, max(0, (height - h) // 2), max(0, (width - w) // 2), height, width
    )


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The middle of images."""
    x = convert_to_tensor(image)
    h, w = x.shape.as_list()[-3:-1]
    top, left = int((h - h * central_fraction) / 2), int((w - w * central_fraction) / 2)
    return crop_to_bounding_box(x, top, left, h - 2 * top, w - 2 * left)


def per_image_standardization(image: Any) -> Tensor:
    """Each image less its mean, over its deviation."""
    x = M.cast(image, "float32")
    axes = [-3, -2, -1]
    n = float(np.prod(x.shape.as_list()[-3:]))
    mean = M.reduce_mean(x, axes, keepdims=True)
    spread = M.sqrt(M.reduce_mean(M.square(x - mean), axes, keepdims=True))
    return (x - mean) / M.maximum(spread, 1.0 / np.sqrt(n))


def total_variation(images: Any, name: Name = None) -> Tensor:
    """Sums of the differences of neighbours."""
    with name_scope(name, "total_variation"):
        x = convert_to_tensor(images)
        rows = x[..., 1:, :, :] - x[..., :-1, :, :]
        columns = x[..., :, 1:, :] - x[..., :, :-1, :]
        axes = None if x.shape.ndims == 3 else [1, 2, 3]
        return M.add(M.reduce_sum(M.abs(rows), axes), M.reduce_sum(M.abs(columns), axes))


def rgb_to_grayscale(images: Any, name: Name = None) -> Tensor:
    """One channel of three."""
    x = M.cast(images, "float32")
    weights = np.array([0.2989, 0.587, 0.114], "float32")
    return M.reduce_sum(x * weights, -1, keepdims=True)


def grayscale_to_rgb(images: Any, name: Name = None) -> Tensor:
    """Three channels of one."""
    x = convert_to_tensor(images)
    return A.tile(x, [*[1] * (len(x.shape) - 1), 3])


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Brighter."""
    return convert_to_tensor(image) + delta


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Farther from the mean."""
    x = convert_to_tensor(images)
    mean = M.reduce_mean(x, [-3, -2], keepdims=True)
    return (x - mean) * contrast_factor + mean


def random_brightness(image: Any, max_delta: float, seed: Any = None) -> Tensor:
    """Brighter or darker, by chance."""
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image: Any, lower: float, upper: float, seed: Any = None) -> Tensor:
    """Farther from the mean, or nearer to it, by chance."""
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


@refuses("saturate")
def convert_image_dtype(
    image: Any, dtype: Any, saturate: bool = False, name: Name = None
) -> Tensor:
    """Of another type, scaled from its integers to [0, 1] or back."""
    x, kind = convert_to_tensor(image), as_dtype(dtype)
    if x.dtype.is_integer and kind.is_floating:
        return M.multiply(M.cast(x, kind), 1.0 / float(x.dtype.max))
    if x.dtype.is_floating and kind.is_integer:
        return M.saturate_cast(x * (float(kind.max) + 0.5), kind)
    return M.cast(x, kind)


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str = "VALID",
    name: Name = None,
    sizes: Any = None,
) -> Tensor:
    """Windows of images, as channels."""
    return apply(
        "ExtractImagePatches", images, name=name, ksizes=list(sizes if ksizes is None else ksizes),
        strides=list(strides), rates=list(rates or [1, 1, 1, 1]), padding=padding.upper().encode(),
    )  # fmt: skip
