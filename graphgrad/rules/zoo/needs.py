"""What rows ask of what they are given, as data: shapes by letters, conditions in words.

@soft(OORD, nearest, needs=(shapes(x="... features", codebook="* codes features"),))
@gate(MIKOLOV, needs=(Need("low < high", lambda low, high: low < high),))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from math import inf
from typing import Any

import numpy as np

from ...base.errors import ShapeError
from ...base.position import of_function, show
from ...ir.node import Tensor
from ...ir.types import compatible
from ...ops.base import Constant, apply, as_tensor
from ...ops.demands import Demand
from ...ops.shape.reshaping import normal_axis


class Need:
    """A condition: ValueError where it does not hold, of a run where that is not known before.

    said   what holds, in words
    holds  a function of some names of a row: operators and NumPy's functions
    """

    def __init__(self, said: str, holds: Callable[..., Any]) -> None:
        self.said = said
        self.holds = holds
        self.names = list(signature(holds).parameters)

    def check(self, given: dict[str, Any]) -> None:
        """What a run has to check becomes the tensor that it has checked."""
        args = {name: _known(given.get(name)) for name in self.names}
        if any(value is None for value in args.values()):
            return
        with np.errstate(all="ignore"):
            held = self.holds(**args)
        if isinstance(held, Tensor):
            name = next(n for n, value in args.items() if isinstance(value, Tensor))
            given[name] = apply(Demand(self.said), args[name], held)
        elif not np.all(held):
            got = [f"{n} {_shown(v)}" for n, v in args.items() if not isinstance(v, list)]
            raise ValueError(f"{self.said}{', got ' * bool(got)}{', '.join(got)}")


ORDERED = Need("low < high", lambda low, high: low < high)


class shapes:
    """Shapes by letters: ShapeError where a length differs from that of the same letter.

    `...` are leading axes, alike in all, or none where that is the whole; `*` are any. A letter
    may be a number, or a parameter that is an int.
    """

    def __init__(self, **patterns: str) -> None:
        self.patterns = {name: pattern.split() for name, pattern in patterns.items()}

    def check(self, given: dict[str, Any]) -> None:
        """Unknown lengths fit."""
        lengths: dict[str, Any] = {name: n for name, n in given.items() if type(n) is int}
        for name, pattern in self.patterns.items():
            if given.get(name) is not None:
                self._check_one(name, pattern, as_tensor(given[name]).shape, lengths)

    def _check_one(
        self, name: str, pattern: Sequence[str], shape: tuple[Any, ...], lengths: dict[str, Any]
    ) -> None:
        letters = [letter for letter in pattern if letter not in ("...", "*")]
        if not letters and not shape:
            return
        leading = len(shape) - len(letters)
        parts: list[tuple[str, Any]] = [*zip(letters, shape[max(leading, 0) :], strict=False)]
        if pattern[0] == "...":
            parts.append(("...", shape[: max(leading, 0)]))
        lengths |= {letter: int(letter) for letter in letters if letter.isdigit()}
        known = ", ".join(
            f"{k} is {lengths[k]}"
            for k in dict.fromkeys(pattern)
            if k in lengths and not k.isdigit()
        )
        fits = leading == 0 or (leading > 0 and letters != list(pattern))
        if not fits or not all(_same(lengths.setdefault(k, n), n) for k, n in parts):
            where = f", where {known}" if known else ""
            raise ShapeError(f"{name} must have shape ({', '.join(pattern)}){where}, got {shape}")


def _same(a: Any, b: Any) -> bool:
    return compatible(a, b) if isinstance(a, tuple) else compatible((a,), (b,))


class Gives:
    """What a function that is a parameter gives, by the shape of what it takes."""

    def __init__(self, said: str, shape: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> None:
        self.said = said
        self.shape = shape


AS_TAKEN = Gives("of the shape of what it takes", lambda shape: shape)
WITHOUT_LAST = Gives("of the shape of what it takes without its last axis", lambda s: s[:-1])


class ShapedFunction:
    """A function, of whose answers the shape is checked."""

    def __init__(self, what: str, fn: Callable[..., Any], gives: Gives) -> None:
        self.__wrapped__ = fn
        self.__name__ = str(getattr(fn, "__name__", type(fn).__name__))
        self.what = what
        self.gives = gives

    def __call__(self, x: Tensor) -> Tensor:
        """What it gives for x; ShapeError if that is none or of another shape."""
        y = self.__wrapped__(x)
        y = y if y is None else as_tensor(y)
        wanted = self.gives.shape(x.shape)
        if y is None or not compatible(y.shape, wanted):
            raise ShapeError(
                f"{self.what} ({show(of_function(self))}) gives a tensor {self.gives.said}, "
                f"{wanted}, got {'None' if y is None else y.shape}"
            )
        return y


def length(x: Any, axis: int = -1) -> Any:
    """The length of an axis, infinite where it is not known."""
    known = x.shape[normal_axis(axis, x.ndim)]
    return known if isinstance(known, int) else inf


def _known(value: Any) -> Any:
    """The array that a constant is."""
    if isinstance(value, Tensor) and isinstance(value.node.op, Constant):
        return value.node.op.value
    return value


def _shown(value: Any) -> str:
    shape = getattr(value, "shape", ())
    return f"of shape {shape}" if shape else str(value)
