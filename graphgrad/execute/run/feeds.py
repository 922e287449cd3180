"""The arrays of a call: found, converted and checked against what the inputs promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...base.errors import DTypeError, ShapeError, did_you_mean
from ...base.kinds import can_cast, kind_of
from ...base.solving import Assumption, solved
from ...base.words import visible
from ...ir.node import Tensor
from ...ir.types import Array, TensorType, check_unmasked, compatible, type_of_array

MANY = 1000  # sets of shapes that are remembered as right


class Feeds:
    """The inputs of a compiled function: the user's arguments become checked arrays.

    fit_together: called with the types of arguments whose shapes are new; raises what is wrong.
    taken: types of arrays that are taken as they are, beside NumPy's.
    assumptions: what is stated of the lengths of arguments.
    """

    def __init__(
        self,
        inputs: Sequence[Tensor],
        fit_together: Callable[[list[TensorType]], object] = lambda types: None,
        taken: tuple[Any, ...] = (),
        assumptions: Sequence[Assumption] = (),
    ) -> None:
        self.inputs = tuple(inputs)
        self.assumptions = tuple(assumptions)
        self._taken = taken
        self._fit_together = fit_together
        self._dtypes = [t.dtype for t in inputs]
        self._shapes = [t.shape if t.type.static else None for t in inputs]
        self._static = None not in self._shapes
        self._fitted: set[Any] = set()
        self._last: Any = None
        self._places = {t.node.name: i for i, t in enumerate(inputs) if t.index == 0}
        self._places |= {t.name: i for i, t in enumerate(inputs)}

    @property
    def signature(self) -> str:
        """`(x: float64[N, 3], y: float64[])`."""
        return visible(f"({', '.join(f'{t.node.name}: {t.type!r}' for t in self.inputs)})")

    @property
    def fit(self) -> Callable[[tuple[Any, ...]], bool]:
        """What tells whether positional arguments are known to be right as they are."""
        if self._static and len({t.type for t in self.inputs}) < 2:
            return _all_alike(len(self.inputs), self.inputs[0].type) if self.inputs else _none
        return self._fit

    def _fit(self, args: tuple[Any, ...]) -> bool:
        if len(args) != len(self._dtypes):
            return False
        ndarray = np.ndarray
        for a, dtype, shape in zip(args, self._dtypes, self._shapes):
            if type(a) is not ndarray or a.dtype is not dtype:
                return False
            if a.shape != shape and shape is not None:
                return False
        if self._static:
            return True
        shapes = [a.shape for a in args]
        if shapes == self._last:
            return True
        if tuple(shapes) not in self._fitted:
            return False
        self._last = shapes
        return True

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Array, ...]:
        """Arrays in the order of the inputs, each of its input's dtype and shape."""
        placed = self.placed(args, kwargs)
        arrays = []
        for t, value in zip(self.inputs, placed, strict=True):
            array = self._array(t, value)
            if not compatible(t.type.shape, array.shape):
                raise ShapeError(f"{_input(t)} got an array of shape {array.shape}")
            arrays.append(array)
        if not self._static:
            self.check_together([type_of_array(a) for a in arrays])
        return tuple(arrays)

    def _array(self, t: Tensor, value: Any) -> Any:
        """An array of the input's dtype; one on a device stays there."""
        if self._taken and isinstance(value, self._taken) and value.dtype == t.type.dtype:
            return value
        return as_array(t, value)

    def check_lengths(self, shapes: Sequence[Sequence[Any]]) -> None:
        """ShapeError where arguments of these shapes give a length two values, or one that is not
        as `gg.assume` has it."""
        sizes = solved(
            (d, n, f"in {_input(t)}")
            for t, shape in zip(self.inputs, shapes, strict=True)
            for d, n in zip(t.type.shape, shape, strict=True)
        )
        for assumption in self.assumptions:
            assumption.check(sizes)

    def check_together(self, types: list[TensorType]) -> None:
        """Whether arguments of these types fit the program; raises what is wrong."""
        shapes = tuple([t.shape for t in types])
        if shapes in self._fitted:
            return
        self.check_lengths(shapes)
        self._fit_together(types)
        if len(self._fitted) < MANY:
            self._fitted.add(shapes)

    def placed(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """Positional and named arguments in one order; TypeError as for a Python function."""
        if len(args) > len(self.inputs):
            raise TypeError(f"takes {len(self.inputs)} arrays {self.signature}, got {len(args)}")
        placed: list[Any] = [*args, *[_MISSING] * (len(self.inputs) - len(args))]
        for name, value in kwargs.items():
            at = self._places.get(name)
            if at is None:
                hint = did_you_mean(name, [t.node.name for t in self.inputs])
                raise TypeError(f"no input is called {name!r} in {self.signature}. {hint}".rstrip())
            if placed[at] is not _MISSING:
                raise TypeError(f"two arrays for input {name!r} of {self.signature}")
            placed[at] = value
        missing = [t.node.name for t, a in zip(self.inputs, placed, strict=True) if a is _MISSING]
        if missing:
            raise TypeError(f"missing {', '.join(map(repr, missing))} of {self.signature}")
        return tuple(placed)


def _none(args: tuple[Any, ...]) -> bool:
    """Whether there are no arguments, where none is asked for."""
    return not args


def _all_alike(count: int, type_: TensorType) -> Callable[[tuple[Any, ...]], bool]:
    """What tells whether so many arguments are arrays of one type."""
    ndarray, dtype, shape = np.ndarray, type_.dtype, type_.shape

    def alike(args: tuple[Any, ...]) -> bool:
        if len(args) != count:
            return False
        for a in args:
            if type(a) is not ndarray or a.dtype is not dtype or a.shape != shape:
                return False
        return True

    def vectors(args: tuple[Any, ...]) -> bool:  # half of what `shape` costs
        if len(args) != count:
            return False
        for a in args:
            if type(a) is ndarray and a.dtype is dtype and a.ndim == 1 and len(a) == length:
                continue
            return False
        return True

    if len(shape) != 1:
        return alike
    (length,) = shape
    return vectors


_MISSING = object()


def as_array(t: Tensor, value: Any) -> Array:
    """value as an array of t's dtype; DTypeError unless NumPy casts it, ints kept."""
    check_unmasked(value, f"{_input(t)}: ")
    try:
        array = np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise ShapeError(
            f"{_input(t)} takes an array, got a {type(value).__name__}: {error}"
        ) from None
    wanted = t.type.dtype
    if array.dtype == wanted:
        return array if array.dtype is wanted else array.astype(wanted)
    if kind_of(array.dtype) not in "biufc":
        raise DTypeError(f"{_input(t)} takes numbers, got {type(value).__name__} {array.dtype}")
    number = type(value) in (int, float, complex) and kind_of(array.dtype) in "iufc"
    unsigned = number and kind_of(array.dtype) == "i" and kind_of(wanted) == "u"
    if not unsigned and not can_cast(array.dtype, wanted, "same_kind"):
        raise DTypeError(
            f"{_input(t)} cannot take {array.dtype}: cast it with .astype({wanted.name!r}) if "
            "losing information is intended"
        )
    if kind_of(wanted) in "iu" and kind_of(array.dtype) in "iu":
        new = array.astype(wanted)
        if not np.array_equal(new, array):
            raise DTypeError(f"{_input(t)} cannot hold the values it was given")
        return new
    return array.astype(wanted)


def _input(t: Tensor) -> str:
    return f"{t.node.name!r} ({t.type!r}, built at {t.where})"
