"""Borders: tensors with numbers, or with elements of their own, around them."""

from __future__ import annotations

from ...base.bounds import at_least
from ...base.errors import ShapeError
from ...base.length import Length
from ...ir.types import is_negative
from ..base import (
    Any,
    Tensor,
    TensorLike,
    apply,
    array_of,
    as_tensor,
    cast,
    count,
    kind_of,
    like,
    np,
)
from ..create.creation import linspace
from ..elementwise.rounding import floor, rint
from ..reduce.reductions import max as max_of
from ..reduce.reductions import mean
from ..reduce.reductions import min as min_of
from ..reduce.sorting import sort
from ..shape.indexing import take
from ..shape.joining import Concat, stack
from ..shape.padding import EnsureLength, Flip, Pad, flip, repeat_by_numbers
from ..shape.reshaping import expand_dims, normal_axis
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
        pad_width: an int or a length, (before, after), or one such pair for each axis; or a dict
            from axes to these.
        mode: "constant" or "empty" (a number); "linear_ramp" (from the outermost element to a
            number); "maximum", "mean", "median", "minimum" (of the elements along the axis);
            "edge" (the outermost element), "reflect" (mirrored at it), "symmetric" (mirrored beside
            it), "wrap" (from the other end). Of these three an axis has to be as long as its
            borders where one or the other is open, which is checked at run time.
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
    widths = [(count("a width", a), count("a width", b)) for a, b in _widths(x, pad_width)]
    if any(is_negative(d) for pair in widths for d in pair):
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
    if all(pair == (0, 0) for pair in widths):
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
            pairs[normal_axis(axis, x.ndim)] = _each(width, (2,))
        return pairs
    widths = array_of(_numbered(given, []))
    if widths.shape not in ((), (1,), (2,), (1, 1), (1, 2), (x.ndim, 1), (x.ndim, 2)):
        raise ShapeError(f"pad of {x.type!r}: a number, or a pair for each axis, got {given!r}")
    each: list[Any] = _each(given, (x.ndim, 2))
    return each


def _each(given: Any, shape: tuple[int, ...]) -> Any:
    """Numbers and lengths, which no array holds, broadcast to a shape; in tuples of tuples."""
    leaves: list[Any] = []
    places = np.broadcast_to(np.asarray(_numbered(given, leaves)), shape)
    rows = [tuple([leaves[i] for i in row]) for row in places.reshape(-1, shape[-1]).tolist()]
    return rows if len(shape) > 1 else rows[0]


def _numbered(given: Any, leaves: list[Any]) -> Any:
    """The number of each leaf in its place; the leaves are put into the list."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, list | tuple):
        return [_numbered(item, leaves) for item in given]
    leaves.append(given)
    return len(leaves) - 1


def _with_constants(x: Tensor, widths: tuple[tuple[Any, Any], ...], values: Any) -> Tensor:
    constants = array_of(values, x.dtype)
    if constants.size == 1:
        return apply(Pad(widths, constants.reshape(()).item()), x)
    for axis, (low, high) in enumerate(_widths(x, constants)):
        for side, value in ((0, low), (1, high)):
            pairs = [(0, 0)] * x.ndim
            pairs[axis] = (widths[axis][0], 0) if side == 0 else (0, widths[axis][1])
            x = x if pairs[axis] == (0, 0) else apply(Pad(tuple(pairs), value), x)
    return x


def _with_own_elements(x: Tensor, widths: Any, mode: str, reflect_type: str) -> Tensor:
    """The borders made of elements of x, axis by axis."""
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"reflect_type is 'even' or 'odd', got {reflect_type!r}")
    for axis, (a, b) in enumerate(widths):
        if (a, b) == (0, 0):
            continue
        length, longer = x.shape[axis], Length.max(a, b) + int(mode == "reflect")
        if reflect_type == "odd":
            x = _odd(x, axis, a, b, mode)
        elif isinstance(length, int) and isinstance(longer, int) and 0 < length < longer:
            x = take(x, np.pad(np.arange(length), (a, b), mode), axis)  # type: ignore[call-overload]
        else:
            x = _bordered(x, axis, a, b, mode)
    return x


def _odd(x: Tensor, axis: int, a: Any, b: Any, mode: str) -> Tensor:
    """x with borders mirrored at a point: piece by piece where they are longer than x."""
    length, piece = x.shape[axis], Length.max(a, b)
    if isinstance(length, int) and isinstance(piece, int):
        piece = length - (mode == "reflect")
    if isinstance(piece, int) and piece < 1:
        raise ShapeError(f"{mode!r} padding by ({a}, {b}) of axis {axis} of {x.type!r}: too short")
    first, last = Length.min(a, piece), Length.min(b, piece)
    mirrored = _bordered(x, axis, first, last, mode)
    before = (FULL,) * axis
    parts = [x]
    if first != 0:
        edge = _outermost(x, axis, 0)
        parts.insert(0, 2 * edge - apply(Slice((*before, (None, first, None))), mirrored))
    if last != 0:
        edge = _outermost(x, axis, -1)
        cut = (_before_end(mirrored, axis, last), None, None)
        parts.append(2 * edge - apply(Slice((*before, cut)), mirrored))
    x = apply(Concat(axis), *parts)
    return x if (a, b) == (first, last) else _odd(x, axis, a - first, b - last, mode)


def _outermost(x: Tensor, axis: int, place: int) -> Tensor:
    """The first or the last element along an axis, which stays."""
    if not isinstance(x.shape[axis], int):
        return take(x, [place], axis)
    return apply(Slice((*(FULL,) * axis, (place or None, place + 1 or None, None))), x)


def _before_end(x: Tensor, axis: int, count: Any) -> Any:
    """The place that is `count` before the end of an axis, as a bound of a slice."""
    if isinstance(count, int):
        return -count
    length = x.shape[axis]
    if length is None:
        raise ShapeError(
            f"{count} places at the end of axis {axis} of {x.type!r}: neither is known before the "
            "run; give one of them as an int"
        )
    return Length.max(length - count, 0)


def _with_layers(x: Tensor, widths: Any, mode: str, value: Any) -> Tensor:
    """The borders made of one layer each: a ramp to a number, or a statistic."""
    values = _widths(x, 0 if value is None and mode == "linear_ramp" else value)
    for axis, ((a, b), (low, high)) in enumerate(zip(widths, values)):
        if (a, b) == (0, 0):
            continue
        if mode == "linear_ramp":
            parts = [_ramp(x, axis, a, low, 0), x, _ramp(x, axis, b, high, -1)]
        else:
            parts = [_statistic(x, axis, a, low, mode, 0), x, _statistic(x, axis, b, high, mode, 1)]
        x = apply(Concat(axis), *parts)
    return x


def _ramp(x: Tensor, axis: int, width: Any, end: Any, place: int) -> Tensor:
    """From a number outside to the outermost element, without that."""
    edge = take(x, [place], axis)
    weight = linspace(0.0, 1.0, width, endpoint=False)
    weight = weight if place == 0 else flip(weight)
    weight = expand_dims(weight, tuple(range(1, x.ndim - axis)))
    if kind_of(x.dtype) in "iu":
        return cast(floor(edge * weight + end * (1 - weight)), x.dtype)
    weight = cast(weight, x.dtype)
    return edge * weight + like(end, x) * (1 - weight)


def _statistic(x: Tensor, axis: int, width: Any, length: Any, mode: str, side: int) -> Tensor:
    """A statistic of the elements next to a border, as often as that is wide."""
    if length is not None:
        taken = count("a stat_length", length)
        if is_negative(taken - 1):
            raise ValueError(f"stat_length={length}: {mode!r} of no elements")
        known = x.shape[axis]
        if known is None or not at_least(taken, known):
            cut = (_before_end(x, axis, taken), None, None) if side else (None, taken, None)
            x = apply(Slice((*(FULL,) * axis, cut)), x)
    layer = _STATISTICS[mode](x, axis)
    if kind_of(x.dtype) in "iu":
        layer = cast(rint(layer), x.dtype)
    return repeat_by_numbers(layer, width, axis)


def _median(x: Tensor, axis: int) -> Tensor:
    n = x.shape[axis]
    if n is None:
        raise ShapeError(f"'median' padding of axis {axis} of {x.type!r}: of unknown length")
    middle = stack([as_tensor((n - 1) // 2), as_tensor(n // 2)])
    return mean(take(sort(x, axis), middle, axis), axis, True)


_STATISTICS = {
    "maximum": lambda x, axis: max_of(x, axis, True),
    "minimum": lambda x, axis: min_of(x, axis, True),
    "mean": lambda x, axis: mean(x, axis, True),
    "median": _median,
}


def _bordered(x: Tensor, axis: int, a: Any, b: Any, mode: str) -> Tensor:
    """x with a places before and b after along the axis, made of its own elements."""
    needed = 1 if mode == "edge" else Length.max(a, b) + int(mode == "reflect")
    length = x.shape[axis]
    if length is None or not at_least(length, needed):
        ensured = EnsureLength(axis, needed, f"{mode!r} padding by ({a}, {b})")
        x = apply(ensured, x)
    before, after = _border(x, axis, a, -1, mode), _border(x, axis, b, 1, mode)
    return apply(Concat(axis), *before, x, *after)


def _border(x: Tensor, axis: int, width: Any, side: int, mode: str) -> list[Tensor]:
    """What comes before (side -1) or after x, made of its own elements; nothing for width 0."""
    if width == 0:
        return []
    skip = 1 if mode == "reflect" else 0
    start = {"edge": 1, "wrap": width}.get(mode, width + skip)
    if (side < 0) == (mode != "wrap"):
        cut: Any = (skip or None, start, None)
    else:
        cut = (_before_end(x, axis, start), -skip or None, None)
    part = apply(Slice((*(FULL,) * axis, cut)), x)
    if mode == "edge":
        return [part] * width if isinstance(width, int) else [repeat_by_numbers(part, width, axis)]
    return [part] if mode == "wrap" else [apply(Flip((axis,)), part)]
