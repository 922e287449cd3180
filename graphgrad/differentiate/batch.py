"""Tensors with a batch axis in front, and such as all examples share: what ops need of both.

inputs  tensors as they are in the batch
flags   which of them have the batch axis; the others are shared by all examples
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..ir.build import apply
from ..ir.node import Tensor
from ..ir.types import Dim
from ..ops.arithmetic import multiply
from ..ops.base import Full, OnesLike, cast
from ..ops.cumulative import CumSum
from ..ops.reductions import sum
from ..ops.shaping import BroadcastTo, ExpandDims, Reshape, expand_dims, moveaxis
from ..ops.sources import stop_gradient

Inputs = tuple[Tensor, ...]
Flags = tuple[bool, ...]
Batched = Callable[[Any, Inputs, Flags], "Inputs | None"]
"""The outputs of an op for a batch; None where it has no such form for these inputs."""


def aligned(inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> tuple[Tensor, ...]:
    """Operands of one rank behind the batch axis, so that they broadcast as one example's do."""
    ranks = [t.ndim - flag for t, flag in zip(inputs, flags, strict=True)]
    most = max(ranks)
    return tuple(
        apply(ExpandDims(tuple(range(1, 1 + most - rank))), t) if flag and rank < most else t
        for t, flag, rank in zip(inputs, flags, ranks, strict=True)
    )


def every_batched(inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> tuple[Tensor, ...]:
    """All inputs with the batch axis; shared ones are repeated."""
    like = inputs[flags.index(True)]
    return tuple(t if flag else repeated(t, like) for t, flag in zip(inputs, flags, strict=True))


def repeated(t: Tensor, like: Tensor) -> Tensor:
    """t once for every example of `like`, whose first axis counts them."""
    count = like.shape[0]
    if isinstance(count, int) and t.type.static:
        return apply(BroadcastTo((count, *t.shape)), t)  # type: ignore[arg-type]
    row = expand_dims(cast(_ones(like), t.dtype), tuple(range(1, 1 + t.ndim)))
    return multiply(row, expand_dims(t, 0))


def counting(like: Tensor) -> Tensor:
    """A tensor whose first axis counts the examples of `like`, for `repeated`.

    Where it is read for their number, nothing flows to it.
    """
    return like if isinstance(like.shape[0], int) else stop_gradient(_ones(like))


def _ones(like: Tensor) -> Tensor:
    """A one for every example."""
    count = like.shape[0]
    if isinstance(count, int):
        return apply(Full((count,), 1, like.dtype))
    if like.ndim > 1:
        like = sum(like[:, :0], axis=tuple(range(1, like.ndim)))
    return apply(OnesLike(), like)


def places(like: Tensor) -> Tensor:
    """0, 1, 2, ...: the number of every example of `like`, as int64."""
    return apply(CumSum(0, False, True), cast(_ones(like), "int64"))


def merged(x: Tensor, axis: int) -> Tensor:
    """x with an axis and the next one as one."""
    a, b = x.shape[axis : axis + 2]
    length = a * b if isinstance(a, int) and isinstance(b, int) else -1
    kept = _lengths(x)
    return apply(Reshape((*kept[:axis], length, *kept[axis + 2 :])), x)


def parted(x: Tensor, axis: int, *lengths: Dim) -> Tensor:
    """x with an axis cut into several, of which one may have an unknown length."""
    parts = [d if isinstance(d, int) else -1 for d in lengths]
    kept = _lengths(x)
    return apply(Reshape((*kept[:axis], *parts, *kept[axis + 1 :])), x)


def _lengths(x: Tensor) -> list[Any]:
    return [d if isinstance(d, int) else ("axis", i) for i, d in enumerate(x.shape)]


def folded(x: Tensor, axis: int, groups: int = 1) -> Tensor:
    """x with its batch axis as part of an axis of the example, in each group of that."""
    if groups == 1:
        return merged(moveaxis(x, 0, axis), axis)
    length = x.shape[axis + 1]
    x = parted(x, axis + 1, groups, length // groups if isinstance(length, int) else None)
    return merged(merged(moveaxis(x, 0, axis + 1), axis + 1), axis)


def unfolded(y: Tensor, axis: int, count: Dim, length: Dim, groups: int = 1) -> Tensor:
    """What was folded, with its batch axis in front: `count` examples whose axis has a length."""
    if groups == 1:
        return moveaxis(parted(y, axis, count, length), axis, 0)
    y = parted(y, axis, groups, count, length // groups if isinstance(length, int) else None)
    return merged(moveaxis(y, axis + 1, 0), axis + 1)
