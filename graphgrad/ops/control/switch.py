"""A choice between many bodies, by a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.errors import DTypeError, ShapeError
from ..base import as_tensor, kind_of
from ..logic import less
from .cond import cond

__all__ = ["switch"]


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """branches[index](*operands): only that one is computed.

    An index below 0 chooses the first branch, one beyond the last the last.

    Parameters:
        index: a scalar integer tensor; an int decides at once.
        branches: functions of the operands, which return tensors in one structure and of the same
            dtypes. They may read tensors of the graph around.
        operands: what the branches are given.

    Returns: their structure of tensors; lengths in which they differ are unknown.

    Raises: ShapeError for an index with axes, no branch, or branches whose structures or ranks
    differ; DTypeError for an index that is no integer, or branches whose dtypes differ.

    Gradient: that of the branch that is taken.

    Source: [Bradbury et al. 2018, JAX, jax.lax.switch].

    >>> x = gg.constant(3.0)
    >>> gg.evaluate(gg.switch(gg.constant(1), [gg.negative, gg.square, gg.sin], x))
    array(9.)
    """
    branches = list(branches)
    if not branches:
        raise ShapeError("switch() needs a branch to choose")
    chosen = as_tensor(index)
    if kind_of(chosen.dtype) not in "iu":
        raise DTypeError(f"switch() goes by an integer, got {chosen.type!r} ({chosen.where})")
    if chosen.ndim:
        raise ShapeError(
            f"switch() goes by one integer, got {chosen.name}: {chosen.type!r} (built at "
            f"{chosen.where})"
        )
    last = len(branches) - 1
    if isinstance(index, int):
        return branches[min(max(index, 0), last)](*operands)

    def among(first: int, end: int) -> Any:
        """One of branches[first:end]."""
        if end - first == 1:
            return branches[first](*operands)
        middle = (first + end) // 2
        return cond(less(chosen, middle), lambda: among(first, middle), lambda: among(middle, end))

    return among(0, last + 1)
