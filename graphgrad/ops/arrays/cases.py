"""Selection among several tensors, and piecewise functions."""

from __future__ import annotations

from collections.abc import Callable

from ...base.errors import ShapeError
from ...ir.types import broadcast
from ..base import (
    Any,
    DTypeError,
    Tensor,
    TensorLike,
    as_tensor,
    cast,
    constant,
    kind_of,
    like,
    np,
    promoted,
)
from ..create.creation import zeros_like
from ..elementwise.logic import less, logical_not, logical_or, where
from ..reduce.reductions import argmax
from ..reduce.sorting import take_along_axis
from ..shape.indexing import as_places, take
from ..shape.joining import stack, tensors_of
from ..shape.reshaping import broadcast_to, expand_dims, flatten, listed, squeeze
from ..sources import stop_gradient
from .at import indices_in_bounds

__all__ = ["apply_over_axes", "choose", "piecewise", "where_first"]


def where_first(condlist: Any, choicelist: Any, default: TensorLike = 0) -> Tensor:
    """Of several choices the first whose condition holds, element by element: numpy.select.

    Parameters:
        condlist: a sequence of bool tensors.
        choicelist: a sequence of as many tensors; dtypes are promoted, shapes broadcast.
        default: what stands where no condition holds.

    Returns: a tensor of the broadcast shape and the promoted dtype.

    Raises: ShapeError unless there is a choice for each condition, or if shapes do not broadcast;
        DTypeError for a condition that is not bool.

    Gradient: to each choice, dy where it was taken, zeros elsewhere.

    Source: numpy.select; gg.select is for marking nodes.

    >>> x = np.array([1, 2, 3])
    >>> gg.evaluate(gg.where_first([x < 2, x < 3], [x, 10 * x], -1))
    array([ 1, 20, -1])
    """
    conditions, choices = list(condlist), list(choicelist)
    if len(conditions) != len(choices) or not conditions:
        raise ShapeError(
            f"where_first takes a choice for each condition, got {len(conditions)} conditions and "
            f"{len(choices)} choices"
        )
    *values, chosen = promoted(*choices, default)
    for condition, value in zip(reversed(conditions), reversed(values)):
        chosen = where(_condition("where_first", condition), value, chosen)
    return chosen


def _condition(what: str, condition: TensorLike) -> Tensor:
    tensor = as_tensor(condition)
    if kind_of(tensor.dtype) != "b":
        raise DTypeError(
            f"a condition of {what} is bool, got {tensor.type!r}, built at {tensor.where}"
        )
    return tensor


def choose(x: TensorLike, choices: Any, mode: str = "raise") -> Tensor:
    """Of several choices that with the number x, element by element.

    Parameters:
        x: integers; broadcast with the choices, to a shape of known lengths.
        choices: a sequence of tensors, or a tensor of which axis 0 numbers the choices; dtypes are
            promoted.
        mode: what a number out of bounds means: "raise", "wrap" (modulo the length) or "clip"
            (the nearest choice).

    Returns: a tensor of the broadcast shape and the promoted dtype.

    Raises: ShapeError for no choices, or shapes that do not broadcast; DTypeError unless x is of
        integers; ValueError for an unknown mode. A run raises IndexError for a number out of
        bounds.

    Gradient: to each choice, dy where it was taken, zeros elsewhere.

    Source: numpy.choose.

    >>> gg.evaluate(gg.choose([1, 0, 1], [[1, 2, 3], [10, 20, 30]]))
    array([10,  2, 30])
    """
    x = as_tensor(x)
    if kind_of(x.dtype) not in "iu":
        raise DTypeError(f"choose takes the number of a choice, an integer, got {x.type!r}")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode is 'raise', 'wrap' or 'clip', got {mode!r}")
    tensors = promoted(*tensors_of(choices, "choose"))
    numbers, count = cast(as_places(x), "int64"), len(tensors)
    if mode != "raise":
        numbers = indices_in_bounds(x, constant(count), mode)
    else:
        numbers = where(less(numbers, 0), count, numbers)
    shape = broadcast([numbers.shape, *[c.shape for c in tensors]])
    layers = stack([broadcast_to(c, shape) for c in tensors])
    places = expand_dims(broadcast_to(numbers, shape), 0)
    return squeeze(take_along_axis(layers, places, axis=0), 0)


def piecewise(x: TensorLike, condlist: Any, funclist: Any, *args: Any, **kw: Any) -> Tensor:
    """Functions applied where their conditions hold; the last one that holds counts.

    Parameters:
        x: any shape and dtype.
        condlist: a sequence of bool tensors, or one; they broadcast to the shape of x.
        funclist: a function of a tensor, or a number, for each condition, and one more for where
            none holds (0 without it).
        *args, **kw: further arguments of the functions.

    Returns: same shape and dtype as x: what the functions give is cast to it.

    Raises: ShapeError for another number of functions; DTypeError for a condition that is not bool.

    Gradient: that of the function that was taken. Each function is applied to a tensor of the shape
        of x, in which elements outside of its condition are replaced by one inside, if there is.

    Source: numpy.piecewise.

    >>> gg.evaluate(gg.piecewise([-1.0, 4.0], [np.array([False, True])], [gg.sqrt, gg.negative]))
    array([1., 2.])
    """
    x = as_tensor(x)
    conditions = [_condition("piecewise", c) for c in _conditions(condlist)]
    functions = list(listed(funclist))
    if len(functions) == len(conditions) + 1:
        some = conditions[0]
        for c in conditions[1:]:
            some = logical_or(some, c)
        conditions.append(logical_not(some))
    if len(functions) != len(conditions):
        raise ShapeError(
            f"piecewise takes a function for each of {len(conditions)} conditions, and one more "
            f"for elements where none holds, got {len(functions)}"
        )
    y = zeros_like(x)
    for condition, fn in zip(conditions, functions):
        value = fn(_inside(x, condition), *args, **kw) if callable(fn) else fn
        y = where(condition, like(value, x), y)
    return y


def _conditions(condlist: Any) -> list[Any]:
    """Several conditions, or one."""
    if isinstance(condlist, Tensor):
        return [condlist]
    many = isinstance(condlist, list | tuple) and any(
        isinstance(c, Tensor) or np.ndim(c) for c in condlist
    )
    if many or (isinstance(condlist, np.ndarray) and condlist.ndim > 1):
        return list(condlist)
    return [condlist]


def _inside(x: Tensor, condition: Tensor) -> Tensor:
    """x where the condition holds, elsewhere one element where it does, if x is known to have any.

    So a function sees nothing that is outside of its condition, of which the slope may be infinite.
    """
    if not x.size or condition.shape != x.shape:
        return x
    element = take(flatten(x), argmax(cast(flatten(condition), "int64")), 0)
    return where(condition, x, stop_gradient(element))


def apply_over_axes(func: Callable[[Tensor, int], Any], x: TensorLike, axes: Any) -> Tensor:
    """func(x, axis) over several axes, one after the other.

    Parameters:
        func: gives a tensor of the rank of its argument, or of one axis less, which is put back
            with length 1.
        x: any shape and dtype.
        axes: an axis of x, or several.

    Returns: what the last call gives, of the rank of x.

    Raises: ShapeError where func gives another rank.

    Gradient: that of the calls.

    Source: numpy.apply_over_axes.

    >>> gg.evaluate(gg.apply_over_axes(gg.sum, np.ones((2, 3, 4)), [0, 2]))
    array([[[8.],
            [8.],
            [8.]]])
    """
    x = as_tensor(x)
    for axis in listed(axes):
        axis = axis + x.ndim if axis < 0 else axis
        y = as_tensor(func(x, axis))
        y = expand_dims(y, axis) if y.ndim == x.ndim - 1 else y
        if y.ndim != x.ndim:
            raise ShapeError(
                f"apply_over_axes: func returned {y.type!r} for {x.type!r} over axis {axis}"
            )
        x = y
    return x
