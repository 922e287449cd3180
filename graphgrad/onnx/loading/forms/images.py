"""Images in other sizes, and at other points."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any, NamedTuple

import numpy as np

from ....base.errors import FileError, ShapeError
from ....base.length import Length, divided_exactly
from ....ir.build import apply
from ....ir.node import Tensor
from ....ir.types import Array, as_dtype
from ....ops import nn
from ....ops.arrays.taking import take
from ....ops.base import cast, constant, is_floating
from ....ops.create.creation import counting
from ....ops.elementwise.arithmetic import add
from ....ops.elementwise.bounds import clip, maximum
from ....ops.elementwise.logic import logical_and, logical_or, where
from ....ops.elementwise.magnitudes import absolute
from ....ops.elementwise.rounding import ceil, floor
from ....ops.elementwise.rounding import round as round_
from ....ops.nn.resizing import FINEST, resized, scaled_length
from ....ops.shape.padding import EnsureLength
from ....ops.shape.reshaping import moveaxis, normal_axis, reshape
from ..call import OperatorCall
from ..lengths import GIVE_SHAPES, RunLength, lengths_of, reshaped
from .common import few
from .table import form

WHOLE = (0.0, 1.0)
"""The region of an axis of which all is taken."""

TIE = 1e-6
"""How near to the middle of two pixels a place is in the middle, as onnxruntime has it."""


@form("Resize", "Upsample")
def _resize(call: OperatorCall) -> Tensor:
    x = call.tensor(0)
    plan = _plan(call, x)
    for axis in plan.before:
        if _is_open(plan, axis):
            x = _tapped(x, axis_taps(plan, axis), axis)
            continue
        weights = axis_weights(plan, axis)
        if weights is not None:
            x = _mixed(x, weights, axis)
    return _extrapolated(x, plan)


class Resizing(NamedTuple):
    """How an image changes its size.

    before, after  lengths of the axes that are resized
    scales         the factors that places are counted by: floats, tensors where lengths tell them
    region         of each axis, which part of the image is taken, for tf_crop_and_resize
    mode           nearest, linear or cubic; rounding is for nearest, cubic and exclude for cubic
    places         how places of the result lie on the image
    outside        what stands where a place lies outside
    """

    before: dict[int, Any]
    after: dict[int, Any]
    scales: dict[int, Any]
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
    if scales is None and sizes is None:
        raise FileError("it has neither scales nor sizes")
    old = call.type == "Upsample" or call.opset < 11
    places = call.attribute("coordinate_transformation_mode", "asymmetric" if old else "half_pixel")
    policy = call.attribute("keep_aspect_ratio_policy", "stretch")
    regions = dict.fromkeys(axes, WHOLE)
    if region and places == "tf_crop_and_resize":
        regions = {a: (region[i], region[i + len(axes)]) for i, a in enumerate(axes)}
    lengths = lengths_of(x)
    kept = []
    for i, a in enumerate(axes):
        same = scales[i] == 1 if scales is not None else sizes[i] == lengths[a]
        stays = same and policy == "stretch" and regions[a] == WHOLE
        if isinstance(lengths[a], int) or not stays:  # an axis that stays may be of any length
            kept.append(i)
    axes = [axes[i] for i in kept]
    if scales is not None:
        scales = [float(scales[i]) for i in kept]
    else:
        sizes = [sizes[i] for i in kept]
    before = {a: _told_length(x, a) for a in axes}
    if scales is None:
        scales = [_ratio(n, before[a]) for n, a in zip(sizes, axes, strict=True)]
        if policy != "stretch":
            if not all(isinstance(s, float) for s in scales):
                raise FileError(
                    f"it keeps the ratio of {x!r}, whose lengths are only known at run time. "
                    f"{GIVE_SHAPES}"
                )
            one = min(scales) if policy == "not_larger" else max(scales)
            scales = [one] * len(axes)
            sizes = [_rounded_length(before[a], one) for a in axes]
    else:
        sizes = [_scaled(before[a], s) for a, s in zip(axes, scales, strict=True)]
    mode = call.attribute("mode", "nearest")
    return Resizing(
        before,
        dict(zip(axes, sizes or (), strict=True)),
        dict(zip(axes, scales, strict=True)),
        regions,
        {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode),
        places,
        call.attribute("nearest_mode", "floor" if old else "round_prefer_floor"),
        call.attribute("cubic_coeff_a", -0.75),
        bool(call.attribute("exclude_outside", 0)),
        bool(call.attribute("antialias", 0)),
        call.attribute("extrapolation_value", 0.0),
    )


def _ratio(after: Any, before: Any) -> Any:
    """What a length is times: a float, or a tensor where it is known only at run time."""
    if isinstance(after, int) and isinstance(before, int):
        return after / before
    times = divided_exactly(after, before)
    return float(times) if isinstance(times, int) else after / Length.max(before, 1)


def _sizes(call: OperatorCall) -> tuple[Any, Any, Any]:
    """Region, scales and sizes: lists, None where they are not said."""
    if call.type == "Upsample" and call.opset < 9:
        return None, call.needed("scales"), None
    if call.type == "Upsample" or call.opset < 11:
        return None, call.known(1, "scales").tolist(), None
    rows = [call.known(i, "scales").tolist() if call.given(i) else [] for i in (1, 2)]
    region, scales = (row or None for row in rows)
    sizes = call.dims(3, "sizes") if call.given(3) else None
    if sizes and any(isinstance(d, RunLength) for d in sizes):
        raise FileError(f"its sizes, {sizes}, depend on data")
    return region, scales, sizes or None


def _rounded_length(n: Any, scale: float) -> Any:
    """n * scale, rounded to the nearest."""
    if isinstance(n, int):
        return int(np.floor(scale * n + 0.5))
    return (_scaled(2 * n, scale) + 1) // 2


def _scaled(n: Any, scale: float) -> Any:
    """n * scale, rounded down; a product of float32, as runtimes have it: 10 * 0.7 is 7."""
    if isinstance(n, int):
        return int(np.float32(n) * np.float32(scale))
    try:
        return scaled_length(n, scale)
    except ShapeError:
        raise FileError(
            f"its scale {scale} of the open length {n} is not a multiple of 1/{FINEST}. "
            f"{GIVE_SHAPES}"
        ) from None


def _told_length(x: Tensor, axis: int) -> int | Length:
    length = x.shape[axis]
    if length is None:
        raise ShapeError(f"{x!r} is resized along axis {axis}, whose length is not known")
    return length


def _is_open(plan: Resizing, axis: int) -> bool:
    """Whether an axis is resized from a length or to one that is known only at run time."""
    return not (isinstance(plan.before[axis], int) and isinstance(plan.after[axis], int))


def points(plan: Resizing, axis: int) -> Any:
    """Where each place of the result lies along an axis of the image: an array, or a tensor where
    a length is known only at run time.
    """
    n, m, scale = plan.before[axis], plan.after[axis], plan.scales[axis]
    at = (OpenPlaces if _is_open(plan, axis) else np).arange(m) * 1.0
    if plan.mode == "nearest" and plan.places != "align_corners":
        at, scale = _single(at), _single(scale)  # as runtimes have it, which decides ties
    several = Length.min(Length.max(m - 1, 0), 1)  # 0 where the one place is the first
    match plan.places:
        case "half_pixel":
            return (at + 0.5) / scale - 0.5
        case "half_pixel_symmetric":
            adjusted = m / _times(n, scale, at.dtype)
            return n / 2 * (1 - adjusted) + (at + 0.5) / scale - 0.5
        case "pytorch_half_pixel":
            return ((at + 0.5) / scale - 0.5) * several
        case "align_corners":
            return at * ((n - 1) / _one_or_more(_times(n, scale, at.dtype) - 1))
        case "asymmetric":
            return at / scale
        case "tf_half_pixel_for_nn":
            return (at + 0.5) / scale
        case "tf_crop_and_resize":
            low, high = plan.region[axis]
            along = low * (n - 1) + at * (high - low) * (n - 1) / Length.max(m - 1, 1)
            return along * several + 0.5 * (low + high) * (n - 1) * (1 - several)
    raise FileError(f"its coordinates {plan.places!r:.40} are unknown")


def _single(number: Any) -> Any:
    """A number, an array or a tensor in float32."""
    wanted = as_dtype("float32")
    return cast(number, wanted) if isinstance(number, Tensor) else np.asarray(number, wanted)[()]


def _times(n: Any, scale: Any, dtype: Any) -> Any:
    """A length, times a scale: a float, or a tensor where one of them is known only at run time."""
    known = isinstance(n, int) or isinstance(scale, Tensor)
    return n * scale if known else constant(scale, dtype) * n


def _one_or_more(number: Any) -> Any:
    return maximum(number, 1) if isinstance(number, Tensor) else max(number, 1)


class OpenPlaces:
    """The functions that places and weights are made of, for tensors."""

    arange, floor, ceil, clip = counting, floor, ceil, clip
    abs, maximum, where = absolute, maximum, where


def axis_taps(plan: Resizing, axis: int) -> list[tuple[Any, Any]]:
    """Which places of the image those of the result take along an axis, with which weights (None:
    of 1), as tensors: for lengths that are known only at run time.
    """
    n, scale = plan.before[axis], plan.scales[axis]
    at = points(plan, axis)
    last = Length.max(n - 1, 0)
    if plan.mode == "nearest":
        return [(clip(_rounded(at, plan.rounding, OpenPlaces), 0, last), None)]
    if plan.antialias and isinstance(scale, Tensor):
        raise FileError(
            f"it is resized with antialias along axis {axis}, from {n} to {plan.after[axis]}: the "
            f"number of elements in its window is only known at run time. {GIVE_SHAPES}"
        )
    shrink = min(scale, 1.0) if plan.antialias else 1.0
    kernel, reach = _kernel(plan, OpenPlaces)
    wide = int(np.ceil(reach / shrink))
    first = floor(at) - (wide - 1)
    taken = [first + k for k in range(2 * wide)]
    weights = [kernel((place - at) * shrink) for place in taken]
    if plan.exclude:
        pairs = zip(weights, taken, strict=True)
        weights = [where(logical_and(p >= 0, p <= last), w, 0.0) for w, p in pairs]
    if plan.exclude or plan.antialias:
        total = reduce(add, weights)
        weights = [w / total for w in weights]
    return [(clip(p, 0, last), w) for p, w in zip(taken, weights, strict=True)]


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
        nearest: Array = np.clip(_rounded(at, plan.rounding, np).astype(int), 0, n - 1)
        return nearest
    shrink = min(plan.scales[axis], 1.0) if plan.antialias else 1.0
    kernel, reach = _kernel(plan, np)
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


def _rounded(at: Any, how: str, xp: Any) -> Any:
    ways: dict[str, Callable[[Any], Any]] = {
        "round_prefer_floor": lambda x: xp.ceil(x - 0.5 - TIE),
        "round_prefer_ceil": lambda x: xp.floor(x + 0.5 + TIE),
        "floor": xp.floor,
        "ceil": xp.ceil,
    }
    if how not in ways:
        raise FileError(f"its nearest_mode {how!r:.40} is unknown")
    return ways[how](at.astype("float64"))


def _kernel(plan: Resizing, xp: Any) -> tuple[Callable[[Any], Any], int]:
    """How much a pixel counts by its distance, and from which distance on it does not."""
    if plan.mode not in ("linear", "cubic"):
        raise FileError(f"its mode {plan.mode!r:.40} is unknown")
    if plan.mode == "linear":
        return partial(_linear, xp), 1
    return partial(_cubic, xp, plan.cubic), 2


def _linear(xp: Any, x: Any) -> Any:
    return xp.maximum(0.0, 1 - xp.abs(x))


def _cubic(xp: Any, a: float, x: Any) -> Any:
    """Keys's kernel."""
    x = xp.abs(x)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * (x**3 - 5 * x**2 + 8 * x - 4)
    return xp.where(x <= 1, near, xp.where(x < 2, far, 0.0))


def _mixed(x: Tensor, weights: Array, axis: int) -> Tensor:
    """x with the places of an axis mixed by (m, n) weights, or taken at (m,) places."""
    if weights.ndim == 1:
        return take(x, constant(weights, "int64"), axis)
    wide = x if is_floating(x.dtype) else cast(x, as_dtype("float64"))
    last = moveaxis(wide, axis, -1) @ constant(weights.T, wide.dtype)
    made = moveaxis(last, -1, axis)
    return made if made.dtype is x.dtype else cast(round_(made), x.dtype)


def _tapped(x: Tensor, taps: list[tuple[Any, Any]], axis: int) -> Tensor:
    """x with the places of an axis mixed as `axis_taps` says."""
    wide = x if is_floating(x.dtype) or taps[0][1] is None else cast(x, as_dtype("float64"))
    x_or_more = apply(EnsureLength(axis, 1, "Resize"), wide)
    made = resized(x_or_more, axis, taps)
    return made if made.dtype is x.dtype else cast(round_(made), x.dtype)


def _extrapolated(x: Tensor, plan: Resizing) -> Tensor:
    """With a number where a place lies outside of the image."""
    if plan.places != "tf_crop_and_resize":
        return x
    for axis in plan.before:
        at = points(plan, axis)
        shape = [1] * x.ndim
        shape[axis] = -1
        last = plan.before[axis] - 1
        if _is_open(plan, axis):
            outside = reshape(logical_or(at < 0, at > last), tuple(shape))
        elif ((at < 0) | (at > last)).any():
            outside = constant(((at < 0) | (at > last)).reshape(shape))
        else:
            continue
        x = where(outside, constant(plan.outside, x.dtype), x)
    return x


@form("GridSample")
def _grid_sample(call: OperatorCall) -> Tensor:
    x, grid = call.tensors
    (n, *_), (count, *rest) = lengths_of(x), lengths_of(grid)
    if n != count and not (isinstance(n, int) and isinstance(count, int)):
        grid = reshaped(grid, [n, *rest])  # as many as images, which a run checks
    mode = call.attribute("mode", "linear" if call.opset >= 20 else "bilinear")
    mode = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    aligned = bool(call.attribute("align_corners", 0))
    return nn.grid_sample(x, grid, mode, call.attribute("padding_mode", "zeros"), aligned, "NCHW")


@form("AffineGrid")
def _affine_grid(call: OperatorCall) -> Tensor:
    size = call.dims(1, "size")[2:]
    return nn.affine_grid(call.tensor(0), tuple(size), bool(call.attribute("align_corners", 0)))
