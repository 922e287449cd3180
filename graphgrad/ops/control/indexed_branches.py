"""Conditionals with many branches, selected by an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...base.errors import DTypeError, ShapeError
from ...ir.typed import X
from ..base import as_tensor, kind_of
from ..elementwise.logic import less
from .branches import chosen

__all__ = ["switch"]


def switch(index: Any, branches: Sequence[Callable[..., X]], *operands: Any) -> X:
    """Compute branches[index](*operands); the other branches are not computed.

    The index is clipped to the range of branches.

    Parameters:
        index: a scalar integer tensor; an int selects the branch while the graph is built.
        branches: functions of the operands that return tensors, with the same structure and dtypes.
            They may read tensors of the surrounding graph.
        operands: the arguments of the branches.

    Returns: the structure of tensors that the branches return; lengths in which they differ are
    unknown.

    Raises: ShapeError for an index with axes, no branch, or branches whose structures or ranks
    differ; DTypeError for an index that is not an integer, or branches whose dtypes differ.

    Gradient: that of the branch that is taken.

    Source: [Bradbury et al. 2018, JAX, jax.lax.switch].

    >>> x = gg.constant(3.0)
    >>> gg.evaluate(gg.switch(gg.constant(1), [gg.negative, gg.square, gg.sin], x))
    array(9.)
    """
    if callable(branches) or not isinstance(branches, Iterable):
        raise TypeError(f"switch() takes a list of functions, got {branches!r}")
    branches = list(branches)
    if not branches:
        raise ShapeError("switch() needs a branch to choose")
    for branch in branches:
        if not callable(branch):
            raise TypeError(f"the branches of switch() are functions, got {branch!r}")
    last = len(branches) - 1
    if isinstance(index, int) and not isinstance(index, bool):
        return branches[min(max(index, 0), last)](*operands)
    number = as_tensor(index)
    if kind_of(number.dtype) not in "iu":
        raise DTypeError(f"switch() goes by an integer, got {number.type!r} ({number.where})")
    if number.ndim:
        raise ShapeError(
            f"switch() goes by one integer, got {number.name}: {number.type!r} (built at "
            f"{number.where})"
        )

    def among(first: int, end: int) -> Any:
        """One of branches[first:end]."""
        if end - first == 1:
            return branches[first](*operands)
        middle = (first + end) // 2
        return chosen(
            "switch()",
            f"branches {first} and {middle}",
            less(number, middle),
            lambda: among(first, middle),
            lambda: among(middle, end),
        )

    y: X = among(0, last + 1)
    return y
