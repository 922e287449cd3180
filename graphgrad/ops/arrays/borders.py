"""Borders: tensors with numbers, or with elements of their own, around them."""

from __future__ import annotations

from ...base.errors import ShapeError
from ..base import (
    Any,
    Tensor,
    TensorLike,
    apply,
    array_of,
    as_tensor,
    cast,
    kind_of,
    like,
    np,
    whole,
)
from ..elementwise.rounding import floor, rint
from ..reduce.reductions import max as max_of
from ..reduce.reductions import mean
from ..reduce.reductions import min as min_of
from ..reduce.sorting import sort
from ..shape.indexing import take
from ..shape.joining import Concat
from ..shape.padding import EnsureLength, Flip, Pad, repeat_by_numbers
from ..shape.reshaping import normal_axis
from ..shape.slicing import FULL, Slice

__all__ = ["pad"]


def pad(
    x: TensorLike,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = None,
    end_values: Any = None,
    stat_length: Any = None,
    reflect_type: str | None = None,
) -> Tensor:
    """x with borders.

    Parameters:
        x: any shape and dtype.
        pad_width: a number, (before, after), or one such pair for each axis; or a dict from axes to
            these.
        mode: "constant" or "empty" (a number); "linear_ramp" (from the outermost element to a
            number); "maximum", "mean", "median", "minimum" (of the elements along the axis);
            "edge" (the outermost element), "reflect" (mirrored at it), "symmetric" (mirrored beside
            it), "wrap" (from the other end). Of these three an axis of unknown length has to be as
            long as its borders, which is checked when run.
        constant_values: for "constant", as pad_width: numbers, 0 unless given.
        end_values: for "linear_ramp", as pad_width: numbers, 0 unless given.
        stat_length: for "maximum" and so on, as pad_width: of how many elements next to the border;
            None: of all.
        reflect_type: for "reflect" and "symmetric", "even", or "odd": twice the outermost element
            less the mirrored one.

    Returns: x with the longer axes, of its dtype.

    Raises: ShapeError for a negative width, another mode, or a border that the mode cannot fill;
    ValueError for widths that do not fit the axes, or what is not for this mode.

    Gradient: dx = dy without the borders, whose gradients are added where they were taken from.

    Source: numpy.pad.

    >>> gg.evaluate(gg.pad([1, 2, 3], (1, 2), "reflect"))
    array([2, 1, 2, 3, 2, 1])
    """
    x = as_tensor(x)
    widths = [(whole("a width", a), whole("a width", b)) for a, b in _widths(x, pad_width)]
    if any(a < 0 or b < 0 for a, b in widths):
        raise ShapeError(f"pad by {pad_width}: a width is never negative; use a slice to crop")
    given = {
        "constant_values": constant_values,
        "end_values": end_values,
        "stat_length": stat_length,
        "reflect_type": reflect_type,
    }
    said = {name: value for name, value in given.items() if value is not None}
    if mode not in _FOR_MODE:
        raise ShapeError(f"pad has no mode {mode!r}; there are {', '.join(_FOR_MODE)}")
    if wrong := set(said) - {_FOR_MODE[mode]}:
        raise ValueError(f"pad with mode {mode!r} does not take {', '.join(sorted(wrong))}")
    value = next(iter(said.values()), None)
    if not any(a or b for a, b in widths):
        return x
    if mode in ("constant", "empty"):
        return _with_constants(x, tuple(widths), 0 if value is None else value)
    if mode in ("edge", "reflect", "symmetric", "wrap"):
        return _with_own_elements(x, widths, mode, value or "even")
    return _with_layers(x, widths, mode, value)


_FOR_MODE = {
    "constant": "constant_values",
    "empty": None,
    "edge": None,
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "wrap": None,
    "linear_ramp": "end_values",
    **dict.fromkeys(("maximum", "mean", "median", "minimum"), "stat_length"),
}
"""What each mode takes beside the widths."""


def _widths(x: Tensor, given: Any) -> list[Any]:
    """A pair for each axis of x."""
    if isinstance(given, dict):
        pairs: list[Any] = [(0, 0)] * x.ndim
        for axis, width in given.items():
            pairs[normal_axis(axis, x.ndim)] = tuple(np.broadcast_to(width, 2).tolist())
        return pairs
    widths = array_of(given)
    if widths.shape not in ((), (1,), (2,), (1, 1), (1, 2), (x.ndim, 1), (x.ndim, 2)):
        raise ShapeError(f"pad of {x.type!r}: a number, or a pair for each axis, got {given!r}")
    return np.broadcast_to(widths, (x.ndim, 2)).tolist()  # type: ignore[no-any-return]


def _with_constants(x: Tensor, widths: tuple[tuple[int, int], ...], values: Any) -> Tensor:
    constants = array_of(values, x.dtype)
    if constants.size == 1:
        return apply(Pad(widths, constants.reshape(()).item()), x)
    for axis, (low, high) in enumerate(_widths(x, constants)):
        for side, value in ((0, low), (1, high)):
            pairs = [(0, 0)] * x.ndim
            pairs[axis] = (widths[axis][0], 0) if side == 0 else (0, widths[axis][1])
            x = apply(Pad(tuple(pairs), value), x) if any(pairs[axis]) else x
    return x


def _with_own_elements(x: Tensor, widths: Any, mode: str, reflect_type: str) -> Tensor:
    """The borders made of elements of x, axis by axis."""
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"reflect_type is 'even' or 'odd', got {reflect_type!r}")
    for axis, (a, b) in enumerate(widths):
        if not a and not b:
            continue
        length = x.shape[axis]
        if reflect_type == "odd":
            x = _odd(x, axis, a, b, mode)
        elif isinstance(length, int) and 0 < length < max(a, b) + (mode == "reflect"):
            x = take(x, np.pad(np.arange(length), (a, b), mode), axis)  # type: ignore[call-overload]
        else:
            x = _bordered(x, axis, a, b, mode)
    return x


def _odd(x: Tensor, axis: int, a: int, b: int, mode: str) -> Tensor:
    """x with borders mirrored at a point: piece by piece where they are longer than x."""
    length = x.shape[axis]
    piece = max(a, b) if not isinstance(length, int) else length - (mode == "reflect")
    if piece < 1:
        raise ShapeError(f"{mode!r} padding by ({a}, {b}) of axis {axis} of {x.type!r}: too short")
    first, last = min(a, piece), min(b, piece)
    mirrored = _bordered(x, axis, first, last, mode)
    before = (FULL,) * axis
    parts = [x]
    if first:
        edge = apply(Slice((*before, (None, 1, None))), x)
        parts.insert(0, 2 * edge - apply(Slice((*before, (None, first, None))), mirrored))
    if last:
        edge = apply(Slice((*before, (-1, None, None))), x)
        parts.append(2 * edge - apply(Slice((*before, (-last, None, None))), mirrored))
    x = apply(Concat(axis), *parts)
    return x if (a, b) == (first, last) else _odd(x, axis, a - first, b - last, mode)


def _with_layers(x: Tensor, widths: Any, mode: str, value: Any) -> Tensor:
    """The borders made of one layer each: a ramp to a number, or a statistic."""
    values = _widths(x, 0 if value is None and mode == "linear_ramp" else value)
    for axis, ((a, b), (low, high)) in enumerate(zip(widths, values)):
        if not a and not b:
            continue
        if mode == "linear_ramp":
            parts = [_ramp(x, axis, a, low, 0), x, _ramp(x, axis, b, high, -1)]
        else:
            parts = [_statistic(x, axis, a, low, mode, 0), x, _statistic(x, axis, b, high, mode, 1)]
        x = apply(Concat(axis), *parts)
    return x


def _ramp(x: Tensor, axis: int, width: int, end: Any, place: int) -> Tensor:
    """From a number outside to the outermost element, without that."""
    edge = take(x, [place], axis)
    weight = np.linspace(0.0, 1.0, width, endpoint=False)
    weight = (weight if place == 0 else weight[::-1]).reshape(-1, *(1,) * (x.ndim - 1 - axis))
    if kind_of(x.dtype) in "iu":
        return cast(floor(edge * weight + end * (1 - weight)), x.dtype)
    weight = weight.astype(x.dtype)
    return edge * weight + like(end, x) * (1 - weight)


def _statistic(x: Tensor, axis: int, width: int, length: Any, mode: str, side: int) -> Tensor:
    """A statistic of the elements next to a border, as often as that is wide."""
    if length is not None:
        count = whole("a stat_length", length)
        if count < 1:
            raise ValueError(f"stat_length={length}: {mode!r} of no elements")
        cut = (-count, None, None) if side else (None, count, None)
        known = x.shape[axis]
        if not isinstance(known, int) or count < known:
            x = apply(Slice((*(FULL,) * axis, cut)), x)
    layer = _STATISTICS[mode](x, axis)
    if kind_of(x.dtype) in "iu":
        layer = cast(rint(layer), x.dtype)
    return repeat_by_numbers(layer, width, axis)


def _median(x: Tensor, axis: int) -> Tensor:
    count = x.shape[axis]
    if not isinstance(count, int):
        raise ShapeError(f"'median' padding of axis {axis} of {x.type!r}: of unknown length")
    ordered = sort(x, axis)
    return mean(take(ordered, [(count - 1) // 2, count // 2], axis), axis, True)


_STATISTICS = {
    "maximum": lambda x, axis: max_of(x, axis, True),
    "minimum": lambda x, axis: min_of(x, axis, True),
    "mean": lambda x, axis: mean(x, axis, True),
    "median": _median,
}


def _bordered(x: Tensor, axis: int, a: int, b: int, mode: str) -> Tensor:
    """x with a places before and b after along the axis, made of its own elements."""
    needed = 1 if mode == "edge" else max(a, b) + (mode == "reflect")
    ensured = EnsureLength(axis, needed, f"{mode!r} padding by ({a}, {b})")
    if isinstance(x.shape[axis], int):
        ensured.infer(x.type)
    else:
        x = apply(ensured, x)
    before, after = _border(x, axis, a, -1, mode), _border(x, axis, b, 1, mode)
    return apply(Concat(axis), *before, x, *after)


def _border(x: Tensor, axis: int, width: int, side: int, mode: str) -> list[Tensor]:
    """What comes before (side -1) or after x, made of its own elements; nothing for width 0."""
    if width == 0:
        return []
    skip = 1 if mode == "reflect" else 0
    start = {"edge": 1, "wrap": width}.get(mode, width + skip)
    if (side < 0) == (mode != "wrap"):
        cut: Any = (skip or None, start, None)
    else:
        cut = (-start, -skip or None, None)
    part = apply(Slice((*(FULL,) * axis, cut)), x)
    if mode == "edge":
        return [part] * width
    return [part] if mode == "wrap" else [apply(Flip((axis,)), part)]
