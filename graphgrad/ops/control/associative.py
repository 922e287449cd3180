"""Parallel prefix scans with an associative function, in logarithmic depth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...base.errors import DTypeError, ShapeError
from ...base.flags import truth
from ...base.position import caller, show
from ...base.tree import flatten, paths, unflatten
from ...ir.build import adopted
from ...ir.node import Tensor
from ...ir.types import compatible
from ..base import as_tensor
from ..shape.joining import concat, stack
from ..shape.reshaping import normal_axis, reshape, reshape_like

__all__ = ["associative_scan"]

Elements = list[Tensor]


def associative_scan(
    fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0
) -> Any:
    """All prefixes of elems under fn: e[0], fn(e[0], e[1]), fn(fn(e[0], e[1]), e[2]), ...

    Built of slices and about 2 log2(n) calls of fn, each on many elements at once: less than the n
    runs of gg.scan one after the other, where fn is cheap on long tensors.

    Parameters:
        fn: takes two stacks of elements (the structure of elems, any length along the axis) and
            combines them element by element; it must be associative, and returns the structure,
            shapes and dtypes that it takes.
        elems: tensors of one known length along the axis, in any nesting.
        reverse: all suffixes instead: fn(e[n - 1], e[n - 2]) at n - 2, and so on.
        axis: along which the elements are stacked.

    Returns: the structure, shapes and dtypes of elems.

    Raises: ShapeError for no tensors, an axis that does not fit, lengths that are unknown or
    differ, and for an fn that changes structure or shape; DTypeError for one that changes a dtype;
    TypeError for an fn that is not a function, or a reverse that is not a bool.

    Gradient: that of what fn is built of.

    Source: [Blelloch 1990, "Prefix sums and their applications", sec. 1.2], with the arguments of
    jax.lax.associative_scan.

    >>> x = gg.constant([1.0, 2.0, 3.0, 4.0])
    >>> gg.evaluate(gg.associative_scan(gg.multiply, x))
    array([ 1.,  2.,  6., 24.])
    """
    if not callable(fn):
        raise TypeError(f"associative_scan() takes a function of two stacks, got {fn!r}")
    backwards = truth("reverse", reverse)
    at = show(caller())
    tensors = list(adopted(tuple([as_tensor(x) for x in flatten(elems)])))
    names = list(paths(elems, "elems"))
    axes = [_axis(at, axis, *row) for row in zip(names, tensors, strict=True)]
    _check_lengths(at, names, tensors, axes)
    prefixes = _Prefixes(fn, elems, axes, at)
    if backwards:
        tensors = prefixes.cut(tensors, None, None, -1)
    scanned = prefixes.of(tensors)
    return unflatten(elems, prefixes.cut(scanned, None, None, -1) if backwards else scanned)


def _axis(at: str, axis: Any, name: str, x: Tensor) -> int:
    try:
        return normal_axis(axis, x.ndim)
    except ShapeError as error:
        raise ShapeError(
            f"associative_scan() at {at} goes along an axis of {name}, which is {x.type!r}: {error}"
        ) from None


def _check_lengths(
    at: str, names: Sequence[str], tensors: Sequence[Tensor], axes: Sequence[int]
) -> None:
    lengths = {name: x.shape[a] for name, x, a in zip(names, tensors, axes, strict=True)}
    if not lengths:
        raise ShapeError(f"associative_scan() at {at} has no tensor to go over")
    if any(not isinstance(n, int) for n in lengths.values()):
        raise ShapeError(
            f"associative_scan() at {at} halves the length again and again, so it has to be known; "
            f"got {lengths}. gg.scan goes over any number of rows"
        )
    if len(set(lengths.values())) > 1:
        raise ShapeError(
            f"associative_scan() at {at} needs the same number of elements in every array: "
            f"{lengths}"
        )


class _Prefixes:
    """Prefixes under fn of tensors that are stacked along these axes."""

    def __init__(self, fn: Callable[[Any, Any], Any], tree: Any, axes: list[int], at: str) -> None:
        self.fn, self.tree, self.axes, self.at = fn, tree, axes, at

    def of(self, elems: Elements) -> Elements:
        """Those of pairs of neighbours are every other one; the rest is one step from these."""
        n = elems[0].shape[self.axes[0]]
        assert isinstance(n, int)
        if n < 2:
            return elems
        odd = self.of(self._combined(self.cut(elems, 0, n - 1, 2), self.cut(elems, 1, n, 2)))
        first = self.cut(elems, 0, 1)
        if n == 2:
            return self._joined(first, odd)
        before = odd if n % 2 else self.cut(odd, 0, n // 2 - 1)
        even = self._joined(first, self._combined(before, self.cut(elems, 2, n, 2)))
        woven = [
            self._woven(a, b, k)
            for a, b, k in zip(self.cut(even, 0, n // 2), odd, self.axes, strict=True)
        ]
        return self._joined(woven, self.cut(even, n // 2, None)) if n % 2 else woven

    def cut(self, elems: Elements, start: int | None, stop: int | None, step: int = 1) -> Elements:
        """A slice of each along its axis."""
        return [
            x[(*[slice(None)] * k, slice(start, stop, step))]
            for x, k in zip(elems, self.axes, strict=True)
        ]

    def _woven(self, even: Tensor, odd: Tensor, axis: int) -> Tensor:
        """The elements of both in turn."""
        pairs = stack([even, odd], axis + 1)
        shape = list(even.shape)
        shape[axis] = 2 * even.shape[axis]  # type: ignore[operator]
        if None in shape:
            return reshape_like(pairs, concat([even, odd], axis))
        return reshape(pairs, shape)

    def _joined(self, one: Elements, other: Elements) -> Elements:
        rows = zip(one, other, self.axes, strict=True)
        return [concat([a, b], k) for a, b, k in rows]

    def _combined(self, one: Elements, other: Elements) -> Elements:
        """fn of two stacks, checked to be a stack of the same."""
        made = self.fn(unflatten(self.tree, one), unflatten(self.tree, other))
        names = list(paths(self.tree, "elems"))
        if made is None or list(paths(made, "elems")) != names:
            raise ShapeError(
                f"the function of associative_scan() at {self.at} returns another structure than "
                f"it takes: {made!r} for {self.tree!r}"
            )
        combined = [as_tensor(x) for x in flatten(made)]
        for name, a, b in zip(names, one, combined, strict=True):
            if a.dtype is not b.dtype or not compatible(a.shape, b.shape):
                error = DTypeError if a.dtype is not b.dtype else ShapeError
                raise error(
                    f"the function of associative_scan() at {self.at} takes {name} as {a.type!r} "
                    f"and returns {b.type!r} ({b.name}, built at {b.where}); it combines element "
                    "by element: use axes, not shapes, and cast what it returns"
                )
        return combined
