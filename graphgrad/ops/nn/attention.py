"""Attention: averages of values, weighted by how well queries match keys."""

from __future__ import annotations

import math

from ...base.domains import BELOW_ONE, FINITE
from ...base.errors import ShapeError
from ...base.flags import truth
from ..arrays.nonzero import repeat
from ..base import DTypeError, Tensor, TensorLike, as_tensor, cast, kind_of, promoted
from ..contract.products import matmul
from ..create.creation import arange, ones_like
from ..elementwise.logic import greater_equal, less_equal, logical_and, not_equal, where
from ..reduce.cumulative import cumulative_sum
from ..reduce.reductions import any as any_of
from ..reduce.reductions import sum
from ..shape.reshaping import expand_dims, matrix_transpose, moveaxis
from .dropouts import dropout
from .operands import check_real, known_length
from .softmaxes import softmax

__all__ = ["dot_product_attention", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    attn_mask: TensorLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
    *,
    seed: TensorLike | None = None,
) -> Tensor:
    """softmax(query @ key.T * scale + mask) @ value.

    A query for which everything is masked out takes 0, and its gradients are 0.

    Parameters:
        query: (..., L, E); floating, ints and bools become float64.
        key: (..., S, E), value: (..., S, F): axes in front broadcast with those of query.
        value: (..., S, F).
        attn_mask: None, or what broadcasts to (..., L, S): bool, True where the query takes part of
            the value; or floating, added to the scores.
        dropout_p: how likely a weight is dropped, 0 <= dropout_p < 1.
        is_causal: whether query i takes part of values 0 to i only.
        scale: a Python number; None: 1 / sqrt(E).
        enable_gqa: whether the third axis from the end counts heads, and each head of key and value
            is shared by as many neighbouring heads of query as are there.
        seed: for dropout: an int or a scalar integer tensor; None: another mask in every run.

    Returns: (..., L, F); dtypes promoted.

    Raises: ShapeError where the shapes do not fit, or E is unknown and no scale is given;
        DTypeError for complex operands, or a mask of integers; ValueError
        for both a mask and is_causal, as in PyTorch.

    Gradient: that of the formula.

    Source: Vaswani et al. 2017, "Attention is all you need", eq. 1; Ainslie et al. 2023, "GQA".

    >>> x = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> gg.evaluate(gg.nn.scaled_dot_product_attention(x, x, x, is_causal=True)).round(4)
    array([[1.    , 0.    ],
           [0.3302, 0.6698]])
    """
    BELOW_ONE("dropout_p", dropout_p)
    FINITE.if_given("scale", scale)
    truth("is_causal", is_causal)
    truth("enable_gqa", enable_gqa)
    q, k, v = promoted(query, key, value, floating=True)
    check_real("scaled_dot_product_attention", q)
    for t in (q, k, v):
        if t.ndim < 2:
            raise ShapeError(f"attention takes (..., length, features), got {t.type!r}")
    if attn_mask is not None and is_causal:
        raise ValueError("attention takes a mask or is_causal, not both; combine them in the mask")
    if enable_gqa:
        k, v = _shared_heads(q, k), _shared_heads(q, v)
    if scale is None:
        scale = 1.0 / math.sqrt(known_length("attention without a scale", q, q.ndim - 1))
    scores = matmul(q * scale, matrix_transpose(k))
    keep = None
    if is_causal:
        keep = greater_equal(_numbers(q), matrix_transpose(_numbers(k)))
    elif attn_mask is not None:
        mask = as_tensor(attn_mask)
        if kind_of(mask.dtype) not in "bf":
            raise DTypeError(f"a mask is bool or floating, got {mask.type!r}")
        if kind_of(mask.dtype) == "b":
            keep = mask
        else:
            scores = scores + cast(mask, scores.dtype)
            keep = not_equal(scores, -math.inf)
    weights = _weights(scores, keep)
    if dropout_p:
        weights = dropout(weights, dropout_p, seed=seed)
    return matmul(weights, v)


def _weights(scores: Tensor, keep: Tensor | None) -> Tensor:
    """Softmax over the last axis of what is kept; 0 where that is nothing."""
    if keep is None:
        return softmax(scores, -1)
    kept = where(keep, scores, -math.inf)
    some = any_of(not_equal(kept, -math.inf), -1, True)
    return where(some, softmax(where(some, kept, 0.0), -1), 0.0)


def _numbers(x: Tensor) -> Tensor:
    """1, 2, 3, ... as a column, as many as x has along its last axis but one."""
    count = x.shape[-2]
    if isinstance(count, int):
        return expand_dims(arange(1, count + 1), 1)
    line = sum(x, (*range(x.ndim - 2), x.ndim - 1))
    return expand_dims(cumulative_sum(ones_like(line, dtype="int64"), axis=0), 1)


def _shared_heads(q: Tensor, t: Tensor) -> Tensor:
    """Each head of keys or values as often as there are heads of queries for it."""
    if q.ndim < 3 or t.ndim < 3:
        raise ShapeError(f"enable_gqa takes (..., heads, length, features), got {t.type!r}")
    many, few = (known_length("enable_gqa", x, x.ndim - 3) for x in (q, t))
    if few == 0 or many % few:
        raise ShapeError(f"enable_gqa of {many} heads of queries and {few} of {t.type!r}")
    return repeat(t, many // few, t.ndim - 3)


def dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    bias: TensorLike | None = None,
    mask: TensorLike | None = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    query_seq_lengths: TensorLike | None = None,
    key_value_seq_lengths: TensorLike | None = None,
    local_window_size: int | tuple[int, int] | None = None,
) -> Tensor:
    """Attention with heads behind the places, as jax.nn has it: softmax over keys, for each head.

    A query for which everything is masked out takes 0, and its gradients are 0; so does one beyond
    its sequence's length.

    Parameters:
        query: (B, T, N, H), or without B; floating, ints and bools become float64.
        key: (B, S, K, H), or without B, K dividing N: each of its heads is shared by N / K of
            query.
        value: the shape of key, but for H.
        bias: None, or what broadcasts to (B, N, T, S), added to the scores.
        mask: None, or bools that broadcast to (B, N, T, S), True where a value takes part.
        scale: a Python number; None: 1 / sqrt(H).
        is_causal: whether query i takes part of values 0 to i only.
        query_seq_lengths: None, or integers (B,): how many queries of each example are there.
        key_value_seq_lengths: likewise for keys and values.
        local_window_size: None, or (left, right): how far values may be from a query; an int for
            both.

    Returns: (B, T, N, H of value), or without B; dtypes promoted.

    Raises: ShapeError where the shapes do not fit; DTypeError for complex operands, and for a mask
        that is not bool.

    Gradient: that of the formula.

    Source: jax.nn.dot_product_attention.

    >>> x = np.ones((2, 1, 4))
    >>> gg.nn.dot_product_attention(x, x, x, is_causal=True).shape
    (2, 1, 4)
    """
    FINITE.if_given("scale", scale)
    truth("is_causal", is_causal)
    q, k, v = promoted(query, key, value, floating=True)
    check_real("dot_product_attention", q)
    if q.ndim not in (3, 4) or not q.ndim == k.ndim == v.ndim:
        raise ShapeError(
            f"attention takes (B, T, N, H), or three axes, got {q.type!r}, {k.type!r}, {v.type!r}"
        )
    q, k, v = (moveaxis(t, -2, -3) for t in (q, k, v))
    k, v = _shared_heads(q, k), _shared_heads(q, v)
    if scale is None:
        scale = 1.0 / math.sqrt(known_length("attention without a scale", q, q.ndim - 1))
    scores = matmul(q * scale, matrix_transpose(k))
    scores = scores if bias is None else scores + cast(as_tensor(bias), scores.dtype)
    rows, columns = _numbers(q), matrix_transpose(_numbers(k))
    kept: list[Tensor] = [] if bias is None else [not_equal(scores, -math.inf)]
    if mask is not None:
        given = as_tensor(mask)
        if kind_of(given.dtype) != "b":
            raise DTypeError(f"a mask is bool, got {given.type!r}; numbers to add are a bias")
        kept.append(given)
    if is_causal:
        kept.append(greater_equal(rows, columns))
    if local_window_size is not None:
        both = local_window_size
        left, right = both if isinstance(both, tuple) else (both, both)
        kept += [less_equal(rows, columns + left), less_equal(columns, rows + right)]
    for lengths, numbers in ((query_seq_lengths, rows), (key_value_seq_lengths, columns)):
        if lengths is not None:
            kept.append(less_equal(numbers, _each(lengths, q)))
    weights = _weights(scores, _all(kept))
    return moveaxis(matmul(weights, v), -3, -2)


def _each(lengths: TensorLike, q: Tensor) -> Tensor:
    """Lengths of sequences, as what broadcasts with scores (B, N, T, S)."""
    sizes = as_tensor(lengths)
    if kind_of(sizes.dtype) not in "iu" or sizes.ndim != q.ndim - 3:
        raise ShapeError(f"lengths of sequences are integers (B,), got {sizes.type!r}")
    return expand_dims(cast(sizes, "int64"), (-3, -2, -1)) if sizes.ndim else cast(sizes, "int64")


def _all(kept: list[Tensor]) -> Tensor | None:
    """Where all hold."""
    mask = None
    for t in kept:
        mask = t if mask is None else logical_and(mask, t)
    return mask
