"""Images in other sizes, and at other points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ....base.errors import FileError, ShapeError
from ....ir.node import Tensor
from ....ir.types import Array, as_dtype
from ....ops import nn
from ....ops.arrays.taking import take
from ....ops.base import cast, constant, is_floating
from ....ops.elementwise.logic import where
from ....ops.elementwise.rounding import round as round_
from ....ops.shape.reshaping import moveaxis, normal_axis
from ..call import OperatorCall
from .common import few
from .table import form


@form("Resize", "Upsample")
def _resize(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    plan = _plan(call, x)
    for axis in plan.before:
        weights = axis_weights(plan, axis)
        if weights is not None:
            x = _mixed(x, weights, axis)
    return _extrapolated(x, plan)


class Resizing(NamedTuple):
    """How an image changes its size.

    before, after  lengths of the axes that are resized
    scales         the factors that places are counted by
    region         of each axis, which part of the image is taken, for tf_crop_and_resize
    mode           nearest, linear or cubic; rounding is for nearest, cubic and exclude for cubic
    places         how places of the result lie on the image
    outside        what stands where a place lies outside
    """

    before: dict[int, int]
    after: dict[int, int]
    scales: dict[int, float]
    region: dict[int, tuple[float, float]]
    mode: str
    places: str
    rounding: str
    cubic: float
    exclude: bool
    antialias: bool
    outside: float


def _plan(call: OperatorCall, x: Tensor) -> Resizing:
    named = call.attribute("axes")
    axes = list(range(x.ndim)) if named is None else [normal_axis(a, x.ndim) for a in named]
    region, scales, sizes = _sizes(call)
    if scales is not None:  # an axis that stays may be as long as it likes
        kept = [i for i, a in enumerate(axes) if scales[i] != 1 or isinstance(x.shape[a], int)]
        axes, scales = [axes[i] for i in kept], [float(scales[i]) for i in kept]
    before = {a: _known_length(x, a) for a in axes}
    policy = call.attribute("keep_aspect_ratio_policy", "stretch")
    if scales is None and sizes is None:
        raise FileError("it has neither scales nor sizes")
    if scales is None:
        scales = [n / before[a] for n, a in zip(sizes, axes, strict=True)]
        if policy != "stretch":
            one = min(scales) if policy == "not_larger" else max(scales)
            scales = [one] * len(axes)
            sizes = [int(np.floor(one * before[a] + 0.5)) for a in axes]
    else:
        sizes = [int(np.floor(before[a] * s)) for a, s in zip(axes, scales, strict=True)]
    old = call.type == "Upsample" or call.opset < 11
    places = "asymmetric" if old else "half_pixel"
    mode = call.attribute("mode", "nearest")
    return Resizing(
        before,
        dict(zip(axes, map(int, sizes or ()), strict=True)),
        dict(zip(axes, scales, strict=True)),
        {a: (region[i], region[i + len(axes)]) for i, a in enumerate(axes)} if region else {},
        {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
        call.attribute("coordinate_transformation_mode", places),
        call.attribute("nearest_mode", "floor" if old else "round_prefer_floor"),
        call.attribute("cubic_coeff_a", -0.75),
        bool(call.attribute("exclude_outside", 0)),
        bool(call.attribute("antialias", 0)),
        call.attribute("extrapolation_value", 0.0),
    )


def _sizes(call: OperatorCall) -> tuple[Any, Any, Any]:
    """Region, scales and sizes: lists, None where they are not said."""
    if call.type == "Upsample" and call.opset < 9:
        return None, call.needed("scales"), None
    if call.type == "Upsample" or call.opset < 11:
        return None, call.known(1, "scales").tolist(), None
    rows = [call.known(i, "sizes").tolist() if call.given(i) else [] for i in (1, 2, 3)]
    region, scales, sizes = (row or None for row in rows)
    return region, scales, sizes


def _known_length(x: Tensor, axis: int) -> int:
    length = x.shape[axis]
    if not isinstance(length, int):
        raise ShapeError(f"{x!r} is resized along axis {axis}, whose length is not known")
    return length


def points(plan: Resizing, axis: int) -> Array:
    """Where each place of the result lies along an axis of the image."""
    n, m, scale = plan.before[axis], plan.after[axis], plan.scales[axis]
    at = np.arange(m, dtype=np.float64)
    match plan.places:
        case "half_pixel":
            return (at + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            adjusted = m / (n * scale)
            return n / 2 * (1 - adjusted) + (at + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return (at + 0.5) / scale - 0.5 if m > 1 else np.zeros(m)
        case "align_corners":
            return at * (n - 1) / (n * scale - 1) if m > 1 else np.zeros(m)
        case "asymmetric":
            return at / scale
        case "tf_half_pixel_for_nn":
            return (at + 0.5) / scale
        case "tf_crop_and_resize":
            low, high = plan.region.get(axis, (0.0, 1.0))
            if m == 1:
                return np.full(m, 0.5 * (low + high) * (n - 1))
            return low * (n - 1) + at * (high - low) * (n - 1) / (m - 1)
    raise FileError(f"its coordinates {plan.places!r:.40} are none that are known")


def axis_weights(plan: Resizing, axis: int) -> Array | None:
    """What each place of the result takes of each place of the image, (m, n), or the one place that
    it takes, (m,); None: its own.
    """
    n, m = plan.before[axis], plan.after[axis]
    few(m, 1 if plan.mode == "nearest" else n)
    if n == m and plan.scales[axis] == 1 and plan.places != "tf_crop_and_resize":
        return None
    at = points(plan, axis)
    if plan.mode == "nearest":
        nearest: Array = np.clip(_rounded(at, plan.rounding), 0, n - 1)
        return nearest
    shrink = min(plan.scales[axis], 1.0) if plan.antialias else 1.0
    kernel, reach = _kernel(plan)
    wide = int(np.ceil(reach / shrink))
    first = np.floor(at).astype(int) - wide + 1
    taken = first[:, None] + np.arange(2 * wide)
    weights = kernel((taken - at[:, None]) * shrink)
    if plan.exclude:
        weights = np.where((taken < 0) | (taken >= n), 0, weights)
    if plan.exclude or plan.antialias:
        weights = weights / weights.sum(1, keepdims=True)
    matrix = np.zeros((m, n))
    np.add.at(matrix, (np.arange(m)[:, None], np.clip(taken, 0, n - 1)), weights)
    return matrix


def _rounded(at: Array, how: str) -> Array:
    ways: dict[str, Callable[[Array], Array]] = {
        "round_prefer_floor": lambda x: np.ceil(x - 0.5),
        "round_prefer_ceil": lambda x: np.floor(x + 0.5),
        "floor": np.floor,
        "ceil": np.ceil,
    }
    if how not in ways:
        raise FileError(f"its nearest_mode {how!r:.40} is none that is known")
    rounded: Array = ways[how](at).astype(int)
    return rounded


def _kernel(plan: Resizing) -> tuple[Callable[[Array], Array], int]:
    """How much a pixel counts by its distance, and from which distance on it does not."""
    if plan.mode not in ("linear", "cubic"):
        raise FileError(f"its mode {plan.mode!r:.40} is none that is known")
    return (_linear, 1) if plan.mode == "linear" else (partial(_cubic, plan.cubic), 2)


def _linear(x: Array) -> Array:
    weights: Array = np.maximum(0, 1 - np.abs(x))
    return weights


def _cubic(a: float, x: Array) -> Array:
    """Keys's kernel."""
    x = np.abs(x)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * (x**3 - 5 * x**2 + 8 * x - 4)
    weights: Array = np.where(x <= 1, near, np.where(x < 2, far, 0))
    return weights


def _mixed(x: Tensor, weights: Array, axis: int) -> Tensor:
    """x with the places of an axis mixed by (m, n) weights, or taken at (m,) places."""
    if weights.ndim == 1:
        return take(x, constant(weights, "int64"), axis)
    wide = x if is_floating(x.dtype) else cast(x, as_dtype("float64"))
    last = moveaxis(wide, axis, -1) @ constant(weights.T, wide.dtype)
    made = moveaxis(last, -1, axis)
    return made if made.dtype is x.dtype else cast(round_(made), x.dtype)


def _extrapolated(x: Tensor, plan: Resizing) -> Tensor:
    """With a number where a place lies outside of the image."""
    if plan.places != "tf_crop_and_resize":
        return x
    for axis in plan.before:
        at = points(plan, axis)
        shape = [1] * x.ndim
        shape[axis] = -1
        outside = ((at < 0) | (at > plan.before[axis] - 1)).reshape(shape)
        if outside.any():
            x = where(constant(outside), constant(plan.outside, x.dtype), x)
    return x


@form("GridSample")
def _grid_sample(call: OperatorCall) -> Tensor:
    x, grid = call.tensors
    mode = call.attribute("mode", "linear" if call.opset >= 20 else "bilinear")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    aligned = bool(call.attribute("align_corners", 0))
    return nn.grid_sample(x, grid, mode, call.attribute("padding_mode", "zeros"), aligned, "NCHW")


@form("AffineGrid")
def _affine_grid(call: OperatorCall) -> Tensor:
    size = tuple(int(n) for n in call.known(1, "size"))[2:]
    return nn.affine_grid(call.tensor(0), size, bool(call.attribute("align_corners", 0)))
