"""Attention of several heads, as operators of `com.microsoft` have it."""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from ....base.bounds import never_equal
from ....base.errors import FileError, ShapeError
from ....base.length import as_length
from ....ir.node import Tensor
from ....ops import nn
from ....ops.base import constant
from ....ops.contract.products import matmul
from ....ops.create.creation import arange
from ....ops.elementwise.logic import greater, greater_equal, less, logical_or, where
from ....ops.shape.indexing import getitem
from ....ops.shape.joining import concat, split, stack
from ....ops.shape.reshaping import expand_dims, reshape, swapaxes, transpose
from ..call import OperatorCall
from ..lengths import GIVE_SHAPES, lengths_of, reshaped
from .common import like
from .fused import MS
from .table import form

NOT_READ = ("do_rotary", "past_present_share_buffer", "rotary_embedding_dim")
"""Attributes that must be 0: what they ask for is not built here."""
INSTEAD = "differentiate the model before it is optimised"


class Heads(NamedTuple):
    """Queries, keys and values, each (N, heads, T, features), and the keys before them."""

    q: Tensor
    k: Tensor
    v: Tensor
    past: Any = 0


@form("Attention", domain=MS)
def _attention(call: OperatorCall) -> Any:
    x, weights, bias = call.tensor(0), call.tensor(1), call.optional(2)
    for name in NOT_READ:
        if call.attribute(name, 0):
            raise FileError(f"its {name} is not supported: {INSTEAD}")
    _left_out(call, {6: "past_sequence_length"})
    heads, z = call.needed("num_heads"), matmul(x, weights)
    z = z if bias is None else z + bias
    sizes = call.attribute("qkv_hidden_sizes") or [_known(z) // 3] * 3
    parts = split(z, np.cumsum(sizes)[:-1].tolist(), -1)
    q, k, v = (_in_heads(part, heads) for part in parts)
    past = call.optional(4)
    here = Heads(q, k, v) if past is None else _after(q, k, v, past[0], past[1])
    y = _attended(call, here, call.optional(3), call.optional(5))
    return y, stack([here.k, here.v]) if call.wants(1) else None


@form("MultiHeadAttention", domain=MS)
def _multi_head(call: OperatorCall) -> Any:
    _left_out(call, {8: "past_sequence_length", 9: "cache_indirection"})
    if call.wants(3):
        raise FileError(f"its output qk is not supported: {INSTEAD}")
    heads = call.needed("num_heads")
    q, k, v = _projected(call, heads)
    here = Heads(q, k, v)
    if call.given(6):
        here = _after(q, k, v, call.tensor(6), call.tensor(7))
    return _attended(call, here, call.optional(4), call.optional(5)), here.k, here.v


def _projected(call: OperatorCall, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values in heads: apart, packed, or keys and values of another step, to
    which no bias is added.
    """
    q, k, v, bias = call.tensor(0), call.optional(1), call.optional(2), call.optional(3)
    if k is None:
        q, k, v = (_flat(q[:, :, :, i]) for i in range(3))
    elif v is None:
        k, v = (_flat(k[:, :, :, i]) for i in range(2))
    if k.ndim == 4:
        row = None if bias is None else bias[: _known(q)]
        return _in_heads(q if row is None else q + row, heads), k, v
    parts = [q, k, v]
    if bias is not None:
        cuts = np.cumsum([_known(x) for x in parts])[:-1].tolist()
        parts = [x + row for x, row in zip(parts, split(bias, cuts, 0), strict=True)]
    made = [_in_heads(x, heads) for x in parts]
    return made[0], made[1], made[2]


def _flat(x: Tensor) -> Tensor:
    """(N, T, heads * features) of (N, T, heads, features)."""
    rows, steps, *_ = lengths_of(x)
    return reshaped(x, [rows, steps, _known(x, 2) * _known(x, 3)])


def _known(x: Tensor, axis: int = 2) -> int:
    """The length of an axis of features."""
    length = x.shape[axis]
    if not isinstance(length, int):
        raise ShapeError(f"{x!r} needs a known number of features. {GIVE_SHAPES}")
    return length


def _in_heads(x: Tensor, heads: int) -> Tensor:
    width = _known(x)
    if width % heads:
        raise ShapeError(f"{x!r} cannot be split into {heads} heads of equal width")
    rows, steps, _ = lengths_of(x)
    return transpose(reshaped(x, [rows, steps, heads, width // heads]), (0, 2, 1, 3))


def _after(q: Tensor, k: Tensor, v: Tensor, old_k: Tensor, old_v: Tensor) -> Heads:
    """Keys and values behind those of before."""
    return Heads(q, concat([old_k, k], 2), concat([old_v, v], 2), _told(old_k, 2))


def _told(x: Tensor, axis: int) -> Any:
    length = x.shape[axis]
    if length is None:
        raise ShapeError(f"{x!r} needs a known length of axis {axis}. {GIVE_SHAPES}")
    return length


def _left_out(call: OperatorCall, inputs: dict[int, str]) -> None:
    """FileError for inputs that are not read."""
    for i, name in inputs.items():
        if call.given(i):
            raise FileError(f"its input {name} is not supported: {INSTEAD}")


def _attended(call: OperatorCall, here: Heads, mask: Tensor | None, bias: Tensor | None) -> Tensor:
    """softmax(q k' scale + masks) v, (N, T, features) with the heads beside each other."""
    q, k, v, past = here
    scale = call.attribute("scale", 0.0) or 1 / sqrt(_known(q, 3))
    scores = matmul(q, swapaxes(k, -1, -2)) * like(scale, q)
    filtered = like(call.attribute("mask_filter_value", -10000.0), q)
    if mask is not None:
        scores = scores + where(_hidden(mask, q, k), filtered, like(0.0, q))
    if bias is not None:
        scores = scores + bias
    if call.attribute("unidirectional", 0):
        if _told(q, 2) + past != _told(k, 2):
            raise FileError(
                f"it is unidirectional, with {_told(q, 2)} queries behind {past} for "
                f"{_told(k, 2)} keys: it is not defined which of them come later"
            )
        later = greater(arange(_told(k, 2)), expand_dims(arange(_told(q, 2)) + past, 1))
        scores = where(later, constant(np.finfo(q.dtype).min, q.dtype), scores)
    return _flat(transpose(matmul(nn.softmax(scores, -1), v), (0, 2, 1, 3)))


def _hidden(mask: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """Where a key is not seen, (N, 1, T or 1, keys): by a mask that is 0 there, or lengths."""
    if mask.ndim == 2:
        return expand_dims(less(mask, 1), (1, 2))
    if mask.ndim == 3:
        return expand_dims(less(mask, 1), 1)
    if mask.ndim != 1:
        raise FileError(f"its mask is {mask.type!r}: {INSTEAD}")
    rows, count = as_length(_told(q, 0)), as_length(_told(mask, 0))
    place = arange(_told(k, 2))
    if count == 2 * rows and count != rows:
        ends, starts = (reshape(part, (-1, 1, 1, 1)) for part in _halves(mask, q.shape[0]))
        return logical_or(greater_equal(place, ends), less(place, starts))
    if never_equal(count, rows):
        raise FileError(f"its mask is {mask.type!r}, for {rows} rows: {INSTEAD}")
    return greater_equal(place, reshape(mask, (-1, 1, 1, 1)))


def _halves(row: Tensor, length: Any) -> tuple[Tensor, Tensor]:
    return getitem(row, slice(None, length)), getitem(row, slice(length, None))
