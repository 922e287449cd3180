"""Methods of NumPy's ufuncs, of a function of two tensors: outer, reduce, accumulate, reduceat."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import reduce
from inspect import signature
from itertools import accumulate

from ...base.errors import SymbolicError
from ..base import Any, Sequence, Tensor, as_tensor, cast, np
from ..shape.joining import concat, stack, unstack
from ..shape.reshaping import expand_dims, normal_axis

__all__: list[str] = []

Fold = Callable[[Any, Any], Any]
LONGEST = 256
"""How many elements are folded one by one: each is a node."""


def outer_of(who: str, _: Any, function: Fold, x: Any, y: Any) -> Any:
    """function of every element of x with every element of y."""
    x, y = as_tensor(x), as_tensor(y)
    return function(expand_dims(x, tuple(range(x.ndim, x.ndim + y.ndim))), y)


def reduce_with(
    who: str, whole: Any, function: Fold, x: Any, *, axis: Any = 0, **chosen: Any
) -> Any:
    """function folded over axes: by what does it in one node, or element by element."""
    x = as_tensor(x)
    if whole is not None:
        _refuse(who, chosen, signature(whole).parameters)
        return whole(x, axis=axis, **chosen)
    keepdims = chosen.pop("keepdims", False)
    _refuse(who, chosen, ())
    if isinstance(axis, tuple) or axis is None:
        raise SymbolicError(f"{who}() of a graphgrad tensor takes one axis, got {axis}")
    y = reduce(function, _layers(who, x, axis))
    return expand_dims(y, normal_axis(axis, x.ndim)) if keepdims else y


def accumulate_with(
    who: str, whole: Any, function: Fold, x: Any, *, axis: int = 0, dtype: Any = None
) -> Any:
    """function folded along an axis, with what it was after each element."""
    x = as_tensor(x) if dtype is None else cast(x, dtype)
    if whole is not None:
        return whole(x, axis=axis)
    return stack(list(accumulate(_layers(who, x, axis), function)), normal_axis(axis, x.ndim))


def reduceat_with(
    who: str,
    whole: Any,
    function: Fold,
    x: Any,
    indices: Any,
    *,
    axis: int = 0,
    dtype: Any = None,
) -> Any:
    """function folded over x[i:j] for neighbours i, j of the indices; x[i] where i >= j."""
    x = as_tensor(x) if dtype is None else cast(x, dtype)
    axis = normal_axis(axis, x.ndim)
    if isinstance(indices, Tensor):
        raise SymbolicError(f"{who}() takes indices that are known: an array or a list of ints")
    starts = np.asarray(indices).tolist()
    before = (slice(None),) * axis
    parts = []
    for i, j in zip(starts, [*starts[1:], None], strict=True):
        alone = j is not None and i >= j
        part = x[(*before, slice(i, i + 1 if alone else j))]
        parts.append(reduce_with(who, whole, function, part, axis=axis, keepdims=True))
    return concat(parts, axis)


def _layers(who: str, x: Tensor, axis: int) -> Sequence[Tensor]:
    """x taken apart along an axis."""
    length = x.shape[normal_axis(axis, x.ndim)]
    if not isinstance(length, int) or not 0 < length <= LONGEST:
        raise SymbolicError(
            f"{who}() of {x.name} ({x.type!r}, built at {x.where}) is a node for every element: it "
            f"takes from 1 to {LONGEST} along axis {axis}"
        )
    return unstack(x, axis)


def _refuse(who: str, chosen: dict[str, Any], taken: Collection[str]) -> None:
    for name in chosen:
        if name not in taken:
            raise SymbolicError(f"{who}() of a graphgrad tensor does not take {name}=")
