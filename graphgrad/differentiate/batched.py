"""Ops for a batch: what one op is for every example, as few nodes with the batch axis first.

inputs  tensors as they are in the batch
flags   which of them have the batch axis; the others are shared by all examples
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..ir.build import apply, build
from ..ir.node import Tensor
from ..ir.op import Op
from ..ir.residual import Residual
from ..ops.accumulate import EnsureLike
from ..ops.arithmetic import multiply
from ..ops.base import Full, OnesLike, ZerosLike, cast
from ..ops.joining import Concat, Stack
from ..ops.nn import Softmax
from ..ops.per_example import PerExample
from ..ops.products import MatMul
from ..ops.reductions import ArgMax, ReduceSum, Reduction, sum
from ..ops.sequencing import After
from ..ops.shaping import (
    BroadcastLike,
    BroadcastTo,
    ExpandDims,
    Reshape,
    Squeeze,
    SumToShape,
    Transpose,
    expand_dims,
)
from ..ops.slicing import FULL, Slice
from ..ops.sources import Identity, stop_gradient


def batched_outputs(
    op: Op, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]
) -> tuple[Tensor, ...]:
    """The outputs of an op for a batch: one node where the op has a batched form."""
    for kinds, rule in RULES:
        if isinstance(op, kinds):
            found = rule(op, inputs, flags)
            if found is not None:
                return (found,)
    if op.elementwise and op.broadcasts:
        return build(op, aligned(inputs, flags)).outputs
    shapes = {t.shape[flag:] for t, flag in zip(inputs, flags, strict=True)}
    if len(shapes) == 1 and (op.elementwise or isinstance(op, ALIKE)):
        return build(op, every_batched(inputs, flags)).outputs
    return build(PerExample(op, flags), inputs).outputs


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


def _shifted(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + 1 for a in axes)


def _axes(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    """Ops whose attribute `axes` counts the axes of their one input."""
    return apply(type(op)(**{**op.attrs, "axes": _shifted(op.axes)}), *inputs)


def _axis(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    """Ops with one `axis`; all inputs have the batch axis."""
    return apply(type(op)(**{**op.attrs, "axis": op.axis + 1}), *every_batched(inputs, flags))


def _transpose(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    return apply(Transpose((0, *_shifted(op.axes))), *inputs)


def _reshape(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    (x,) = inputs
    dims = [("axis", d[1] + 1) if isinstance(d, tuple) else d for d in op.shape]
    if -1 in dims and isinstance(x.shape[0], int) and not x.shape[0]:
        return apply(PerExample(op, flags), x)  # no elements: nothing tells what is left over
    return apply(Reshape((("axis", 0), *dims)), x)


def _broadcast_to(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor | None:
    (x,) = inputs
    if not isinstance(x.shape[0], int):
        return None
    extra = len(op.shape) - (x.ndim - 1)
    row = apply(ExpandDims(tuple(range(1, 1 + extra))), x) if extra else x
    return apply(BroadcastTo((x.shape[0], *op.shape)), row)


def _sum_to_shape(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    (x,) = inputs
    extra = x.ndim - 1 - len(op.shape)
    ones = [extra + i for i, d in enumerate(op.shape) if d == 1]
    axes = _shifted([*range(extra), *ones])
    total = apply(ReduceSum(axes, True), x) if axes else x
    return apply(Reshape((("axis", 0), *op.shape)), total)


def _slice(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    return apply(Slice((FULL, *op.key)), *inputs)


def _matmul(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor | None:
    ranks = [t.ndim - flag for t, flag in zip(inputs, flags, strict=True)]
    return apply(op, *aligned(inputs, flags)) if min(ranks) >= 2 else None


def _broadcast_like(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    x, like = inputs
    target = like if flags[1] else repeated(like, x)
    row = aligned((x, target), (flags[0], True))[0]
    return apply(op, row, target)


def _after(op: Any, inputs: tuple[Tensor, ...], flags: tuple[bool, ...]) -> Tensor:
    x, *others = inputs
    return apply(op, x if flags[0] else repeated(x, inputs[flags.index(True)]), *others)


RULES: tuple[tuple[Any, Callable[..., Tensor | None]], ...] = (
    ((Reduction, ExpandDims, Squeeze), _axes),
    ((ArgMax, Softmax, Concat, Stack), _axis),
    (Transpose, _transpose),
    (Reshape, _reshape),
    (BroadcastTo, _broadcast_to),
    (BroadcastLike, _broadcast_like),
    (SumToShape, _sum_to_shape),
    (Slice, _slice),
    (MatMul, _matmul),
    (After, _after),
)
ALIKE = (Residual, Identity, ZerosLike, EnsureLike)
"""Ops that treat inputs of one shape element by element, though they are not arithmetic."""
