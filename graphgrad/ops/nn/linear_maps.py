"""Linear layers, embeddings, and the mean of exponentials."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...ir.types import compatible
from ..base import Any, Tensor, TensorLike, as_tensor, cast, promoted
from ..contract.einsum import einsum
from ..contract.products import matmul
from ..elementwise.exponential import log
from ..elementwise.logic import equal, logical_not, where
from ..reduce.reductions import any as any_of
from ..reduce.reductions import argmax, logsumexp, mean, normal_axes, size_over, sum
from ..reduce.sorting import take_along_axis
from ..shape.indexing import take
from ..shape.reshaping import expand_dims, matrix_transpose, squeeze
from ..sources import stop_gradient
from .operands import known_length, one_of, real_operands

__all__ = ["bilinear", "embedding", "embedding_bag", "linear", "logmeanexp"]


def linear(x: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Tensor:
    """y = x @ weight.T + bias.

    Parameters:
        x: (..., in); floating or complex, ints and bools become float64.
        weight: (out, in), or (in,), which makes one number.
        bias: None, or what broadcasts with y, as (out,).

    Returns: (..., out), or (...,); dtypes promoted.

    Raises: ShapeError where the shapes do not fit.

    Gradient: dx = dy @ weight, dweight = dy.T @ x summed over what is in front, dbias = dy.

    Source: PyTorch, torch.nn.functional.linear.

    >>> gg.evaluate(gg.nn.linear([1.0, 2.0], [[1.0, 1.0], [0.0, 1.0]], [0.5, 0.0]))
    array([3.5, 2. ])
    """
    x, w = promoted(x, weight, floating=True)
    if w.ndim not in (1, 2):
        raise ShapeError(f"linear takes weight (out, in) or (in,), got {w.type!r}")
    y = matmul(x, w if w.ndim == 1 else matrix_transpose(w))
    return y if bias is None else y + bias


def bilinear(
    x: TensorLike, y: TensorLike, weight: TensorLike, bias: TensorLike | None = None
) -> Tensor:
    """z[..., k] = sum over i, j of x[..., i] * weight[k, i, j] * y[..., j], plus bias.

    Parameters:
        x: (..., I); floating or complex, ints and bools become float64.
        y: (..., J), with the same axes in front.
        weight: (K, I, J).
        bias: None, or (K,).

    Returns: z, (..., K); dtypes promoted.

    Raises: ShapeError where the shapes do not fit.

    Gradient: that of the sum of products: it is linear in each of x, y and weight.

    Source: PyTorch, torch.nn.functional.bilinear.

    >>> gg.evaluate(gg.nn.bilinear([1.0, 2.0], [3.0], [[[1.0], [1.0]]]))
    array([9.])
    """
    x, y, w = promoted(x, y, weight, floating=True)
    z = einsum("...i,kij,...j->...k", x, w, y)
    return z if bias is None else z + bias


def embedding(indices: TensorLike, weight: TensorLike, padding_idx: int | None = None) -> Tensor:
    """The rows of weight that indices name.

    Parameters:
        indices: integers of any shape, from -V to V - 1.
        weight: (V, D).
        padding_idx: None, or the number of a row that has no gradient, which is read all the same.

    Returns: the shape of indices, and D; dtype of weight.

    Raises: ShapeError if weight is not a matrix, or there is no such padding row; DTypeError for
        indices that are not integers. A run raises IndexError for one that is out of bounds.

    Gradient: dweight = dy added up at the rows, 0 at padding_idx.

    Source: PyTorch, torch.nn.functional.embedding.

    >>> gg.evaluate(gg.nn.embedding([1, 0], [[1.0, 2.0], [3.0, 4.0]]))
    array([[3., 4.],
           [1., 2.]])
    """
    table, places = as_tensor(weight), as_tensor(indices)
    if table.ndim != 2:
        raise ShapeError(f"embedding takes a matrix of rows, got {table.type!r}")
    rows = take(table, places, 0)
    padding = _padding_row(table, padding_idx)
    if padding is None:
        return rows
    return where(expand_dims(_names(places, table, padding), -1), stop_gradient(rows), rows)


def _padding_row(table: Tensor, row: int | None) -> int | None:
    """The number of the padding row, counted from the front."""
    if row is None:
        return None
    count = known_length("padding_idx", table, 0)
    if not -count <= row < count:
        raise ShapeError(f"padding_idx {row} is not a row of {table.type!r}")
    return row % count


def _names(places: Tensor, table: Tensor, row: int) -> Tensor:
    """Where indices name a row, from the front or from the end."""
    numbers = cast(places, "int64")
    count = known_length("padding_idx", table, 0)
    return equal(where(numbers < 0, numbers + count, numbers), row)


def embedding_bag(
    indices: TensorLike,
    weight: TensorLike,
    mode: str = "mean",
    *,
    weights: TensorLike | None = None,
    padding_idx: int | None = None,
) -> Tensor:
    """The mean, sum or maximum of the rows of weight that each bag of indices names.

    Parameters:
        indices: (..., L), integers: bags in the last axis.
        weight: (V, D).
        mode: "mean", "sum" or "max".
        weights: for the sum: None, or a factor for each index, of the shape of indices.
        padding_idx: None, or the number of a row that does not count: a shorter bag is filled with
            it. A bag of nothing else is 0.

    Returns: (..., D); dtype of weight, promoted with that of weights.

    Raises: ShapeError if weight is not a matrix, indices have no axis, weights do not fit, or there
        is no such padding row; DTypeError for indices that are not integers; ValueError for an
        unknown mode, or weights without "sum". A run raises IndexError for an index that is out of
        bounds.

    Gradient: dweight = dy added up at the rows that count, in shares or times their factors; of a
        maximum at the first row that has it.

    Source: PyTorch, torch.nn.functional.embedding_bag.

    >>> gg.evaluate(gg.nn.embedding_bag([[1, 0]], [[1.0, 2.0], [3.0, 4.0]]))
    array([[2., 3.]])
    """
    one_of("mode", mode, ("mean", "sum", "max"))
    if weights is not None and mode != "sum":
        raise ValueError(f"embedding_bag takes weights for mode 'sum', got {mode!r}")
    table, places = promoted(weight, floating=True)[0], as_tensor(indices)
    if places.ndim == 0:
        raise ShapeError(f"embedding_bag takes bags in the last axis, got {places.type!r}")
    rows, padding = embedding(places, table), _padding_row(table, padding_idx)
    if weights is not None:
        factors = as_tensor(weights)
        if not compatible(factors.shape, places.shape):
            raise ShapeError(f"weights {factors.type!r} for indices {places.type!r}")
        rows = rows * expand_dims(factors, -1)
    if padding is None:
        if mode == "max":
            return _first_largest(rows)
        return mean(rows, -2) if mode == "mean" else sum(rows, -2)
    counts = expand_dims(logical_not(_names(places, table, padding)), -1)
    some = any_of(counts, -2)
    if mode == "max":
        return where(some, _first_largest(where(counts, rows, -float("inf"))), 0.0)
    total = sum(where(counts, rows, 0.0), -2)
    if mode == "sum":
        return total
    number = sum(cast(counts, rows.dtype), -2)
    return total / where(some, number, 1.0)


def _first_largest(rows: Tensor) -> Tensor:
    return squeeze(take_along_axis(rows, argmax(rows, -2, True), axis=-2), -2)


def logmeanexp(x: TensorLike, axis: Any = None, keepdims: bool = False) -> Tensor:
    """log of the mean of exp(x) over axes, without overflow.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.

    Returns: x without the axes, or with length 1 there.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Gradient: dx = dy * softmax(x) over the axes.

    Source: jax.nn.logmeanexp.

    >>> gg.evaluate(gg.nn.logmeanexp([999.0, 999.0]))
    array(999.)
    """
    (x,) = real_operands("logmeanexp", x)
    axes = normal_axes(axis, x.ndim)
    return logsumexp(x, axes, keepdims) - log(size_over(x, axes, x.dtype))
