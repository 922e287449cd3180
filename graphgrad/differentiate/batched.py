"""Ops for a batch: what one op is for every example, as few nodes with the batch axis first.

inputs  tensors as they are in the batch
flags   which of them have the batch axis; the others are shared by all examples
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any

from ..ir.build import apply, build
from ..ir.op import Op
from ..ir.residual import Residual
from ..ir.types import TensorType
from ..ops.accumulate import EnsureLike
from ..ops.base import Full, ZerosLike, tensor_type
from ..ops.creation import Diag, Tril
from ..ops.cumulative import Cumulative, Recurrence, Shift
from ..ops.decompositions import Eigh, Inverted, PseudoInverse, Qr, SingularValues, Svd
from ..ops.diagonal import Diagonal, DiagonalGrad
from ..ops.einsum import Einsum, contract, einsum_terms
from ..ops.indexing import AddAt, Gather, GetItem, ScatterAdd
from ..ops.joining import Concat, ConcatPart, Split, Stack, Unstack
from ..ops.matrices import (
    Cholesky,
    Cofactors,
    CofactorsGrad,
    Det,
    Inverse,
    LowerHalf,
    Mirrored,
    SLogDet,
    Solve,
)
from ..ops.nn import (
    OneHot,
    OneHotLike,
    Softmax,
    SoftmaxCrossEntropyWithLogits,
    SparseSoftmaxCrossEntropyWithLogits,
)
from ..ops.padding import Flip, Pad, Repeat, Roll, Tile, Unrepeat, Untile
from ..ops.per_example import PerExample
from ..ops.products import MatMul
from ..ops.reductions import ArgMax, ExpShares, Flat, ReduceSum, Reduction, SizeOf, TieShares
from ..ops.sequencing import After
from ..ops.shaping import (
    BroadcastLike,
    BroadcastTo,
    ExpandDims,
    Reshape,
    ReshapeLike,
    Squeeze,
    SumTo,
    SumToShape,
    Transpose,
)
from ..ops.slicing import FULL, Slice, Unslice, UnsliceLike
from ..ops.sorting import ArgSort, GatherElements, ScatterElements, Sort, TopK
from ..ops.sources import Identity
from ..ops.windows import Conv2D, Conv2DBackpropFilter, Conv2DBackpropInput, Pool
from .batch import Batched, Flags, Inputs, aligned, every_batched, repeated
from .batched_picks import add_at, gather, get_item, scatter_add
from .batched_windows import conv, conv_filter, conv_input, pool
from .forward import Unread


def batched_outputs(op: Op, inputs: Inputs, flags: Flags) -> Inputs:
    """The outputs of an op for a batch: a node or few where the op has a batched form."""
    for kinds, rule in RULES:
        if isinstance(op, kinds):
            found = rule(op, inputs, flags)
            if found is not None:
                return found
    if op.elementwise and op.broadcasts:
        return build(op, aligned(inputs, flags)).outputs
    shapes = {t.shape[flag:] for t, flag in zip(inputs, flags, strict=True)}
    if len(shapes) == 1 and (op.elementwise or isinstance(op, ALIKE)):
        return build(op, every_batched(inputs, flags)).outputs
    return build(PerExample(op, flags), inputs).outputs


def _shifted(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + 1 for a in axes)


def _with(op: Any, **attrs: Any) -> Any:
    return type(op)(**{**op.attrs, **attrs})


# --- ops that count axes -------------------------------------------------------------------------


def _axes(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    return build(_with(op, axes=_shifted(op.axes)), inputs).outputs


def _axis(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    return build(_with(op, axis=op.axis + 1), every_batched(inputs, flags)).outputs


def _two_axes(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    moved = _with(op, axis1=op.axis1 + 1, axis2=op.axis2 + 1)
    return build(moved, every_batched(inputs, flags)).outputs


def _size_of(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    (x,) = inputs
    return (repeated(apply(_with(op, axes=_shifted(op.axes)), x), x),)


def _each_axis(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    """Ops with something for each axis, and what that is where nothing is done."""
    name, nothing = EACH_AXIS[type(op)]
    return build(_with(op, **{name: (nothing, *getattr(op, name))}), inputs).outputs


def _transpose(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    return (apply(Transpose((0, *_shifted(op.axes))), *inputs),)


# --- the last axes of a stack --------------------------------------------------------------------


def _stack(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    return build(op, inputs).outputs


def _matrices(op: Any, inputs: Inputs, flags: Flags) -> Inputs | None:
    ranks = [t.ndim - flag for t, flag in zip(inputs, flags, strict=True)]
    return build(op, aligned(inputs, flags)).outputs if min(ranks) >= 2 else None


def _einsum(op: Any, inputs: Inputs, flags: Flags) -> Inputs | None:
    terms, out = einsum_terms(op.equation)
    letter = next((c for c in string.ascii_letters if c not in op.equation), None)
    if letter is None:
        return None
    left = [letter * flag + term for term, flag in zip(terms, flags, strict=True)]
    return (contract(f"{','.join(left)}->{letter}{out}", *inputs),)


# --- shapes --------------------------------------------------------------------------------------


def _one(op: Op, inputs: Inputs) -> TensorType:
    """What the op makes of one example of its first input."""
    x = inputs[0]
    return op.infer(tensor_type(x.shape[1:], x.dtype), *(t.type for t in inputs[1:]))[0]


def _reshape(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    one = _one(op, inputs)
    dims = [("axis", d[1] + 1) if isinstance(d, tuple) else d for d in op.shape]
    return (apply(Reshape((("axis", 0), *(one.shape if one.static else dims))), *inputs),)


def _broadcast_to(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    (x,) = inputs
    extra = len(op.shape) - (x.ndim - 1)
    row = apply(ExpandDims(tuple(range(1, 1 + extra))), x) if extra else x
    if isinstance(x.shape[0], int):
        return (apply(BroadcastTo((x.shape[0], *op.shape)), row),)
    return (apply(BroadcastLike(), row, repeated(apply(Full(op.shape, 0, x.dtype)), x)),)


def _sum_to_shape(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    (x,) = inputs
    extra = x.ndim - 1 - len(op.shape)
    ones = [extra + i for i, d in enumerate(op.shape) if d == 1]
    axes = _shifted([*range(extra), *ones])
    total = apply(ReduceSum(axes, True), x) if axes else x
    return (apply(Reshape((("axis", 0), *op.shape)), total),)


def _sum_to(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    x, like = every_batched(inputs, flags)
    extra = tuple(range(1, 1 + x.ndim - like.ndim))
    if not extra:
        return (apply(op, x, like),)
    return (apply(Squeeze(extra), apply(op, x, apply(ExpandDims(extra), like))),)


def _like(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    """Ops that give their first input the shape of the second."""
    return (apply(op, *every_batched(inputs, flags)),)


def _broadcast_like(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    x, like = inputs
    target = like if flags[1] else repeated(like, x)
    row = aligned((x, target), (flags[0], True))[0]
    return (apply(op, row, target),)


def _slice(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    return build(_with(op, key=(FULL, *op.key)), every_batched(inputs, flags)).outputs


def _unslice(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    (x,), key = inputs, (FULL, *op.key)
    if isinstance(x.shape[0], int):
        return (apply(Unslice(key, (x.shape[0], *op.shape)), x),)
    return (apply(UnsliceLike(key), x, repeated(apply(Full(op.shape, 0, x.dtype)), x)),)


def _after(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    x, *others = inputs
    return (apply(op, x if flags[0] else repeated(x, inputs[flags.index(True)]), *others),)


def _for_every(op: Any, inputs: Inputs, flags: Flags) -> Inputs:
    return build(op, every_batched(inputs, flags)).outputs


EACH_AXIS: dict[type[Op], tuple[str, Any]] = {
    Pad: ("widths", (0, 0)),
    Tile: ("repeats", 1),
    Untile: ("repeats", 1),
}
RULES: tuple[tuple[Any, Batched], ...] = (
    ((Reduction, ExpandDims, Squeeze, Flip, Roll, TieShares, ExpShares), _axes),
    ((ArgMax, Softmax, Concat, ConcatPart, Stack, Unstack, Split, Flat, OneHot, OneHotLike), _axis),
    ((Cumulative, Shift, Recurrence, Sort, ArgSort, TopK, Repeat, Unrepeat), _axis),
    ((GatherElements, ScatterElements), _axis),
    ((SoftmaxCrossEntropyWithLogits, SparseSoftmaxCrossEntropyWithLogits), _axis),
    ((Diagonal, DiagonalGrad), _two_axes),
    (SizeOf, _size_of),
    (tuple(EACH_AXIS), _each_axis),
    ((Inverse, Det, SLogDet, Cholesky, LowerHalf, Eigh, Svd, SingularValues, Qr), _stack),
    ((PseudoInverse, Inverted, Tril, Diag, Cofactors, Mirrored), _stack),
    ((MatMul, Solve), _matrices),
    (Einsum, _einsum),
    (Transpose, _transpose),
    (Reshape, _reshape),
    (ReshapeLike, _like),
    (BroadcastTo, _broadcast_to),
    (BroadcastLike, _broadcast_like),
    (SumToShape, _sum_to_shape),
    (SumTo, _sum_to),
    ((Slice, UnsliceLike), _slice),
    (Unslice, _unslice),
    (Gather, gather),
    (ScatterAdd, scatter_add),
    (GetItem, get_item),
    (AddAt, add_at),
    (Conv2D, conv),
    (Conv2DBackpropInput, conv_input),
    (Conv2DBackpropFilter, conv_filter),
    (Pool, pool),
    (After, _after),
    ((Unread, CofactorsGrad), _for_every),
)
ALIKE = (Residual, Identity, ZerosLike, EnsureLike)
"""Ops that treat inputs of one shape element by element, though they are not arithmetic."""
