"""Forms of products, convolutions, factorisations and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...ir.node import Tensor
from ..opened import Form, gg
from .indices import padded

__all__ = ["FORMS"]


def _dot_general(
    x: Tensor, y: Tensor, *, dimension_numbers: Any, preferred_element_type: Any = None, **_: Any
) -> Any:
    (left, right), (left_batch, right_batch) = dimension_numbers
    if preferred_element_type is not None:
        dtype = np.dtype(preferred_element_type)
        x, y = (t if t.dtype == dtype else gg.cast(t, dtype) for t in (x, y))
    last, first = x.ndim - 1, len(left_batch)
    rows = list(range(first))
    plain_batch = list(left_batch) == rows and list(right_batch) == rows
    if plain_batch and x.ndim == y.ndim == first + 2 and list(left) == [last]:
        if list(right) == [first]:
            return gg.matmul(x, y)
        if list(right) == [last]:
            return gg.matmul(x, gg.matrix_transpose(y))
    if not rows and not left_batch and list(left) == [last] and list(right) == [0] and y.ndim == 2:
        return gg.matmul(x, y)
    letters = iter("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    names = [next(letters) for _ in range(x.ndim)]
    others = [next(letters) for _ in range(y.ndim)]
    for a, b in zip((*left_batch, *left), (*right_batch, *right), strict=True):
        others[b] = names[a]
    free = [names[a] for a in range(x.ndim) if a not in (*left_batch, *left)]
    free += [others[a] for a in range(y.ndim) if a not in (*right_batch, *right)]
    batch = [names[a] for a in left_batch]
    return gg.einsum(f"{''.join(names)},{''.join(others)}->{''.join((*batch, *free))}", x, y)


def _conv(
    x: Tensor,
    w: Tensor,
    *,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any,
    rhs_dilation: Any,
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    preferred_element_type: Any = None,
    **_: Any,
) -> Any:
    """A convolution over one to three axes, the image in the order (N, ..., C)."""
    if not 1 <= x.ndim - 2 <= 3:
        raise NotImplementedError(f"{x.ndim - 2} spatial axes")
    if preferred_element_type is not None:
        dtype = np.dtype(preferred_element_type)
        x, w = (t if t.dtype == dtype else gg.cast(t, dtype) for t in (x, w))
    image, filters, result = dimension_numbers
    if batch_group_count != 1:  # parts of the batch, each with filters of its own, are channels
        x = _moved(x, image)
        rows: Any = gg.size(x, 0) // batch_group_count
        x = gg.swapaxes(gg.reshape(x, (batch_group_count, rows, *x.shape[1:])), 0, 1)
        x = gg.reshape(x, (rows, batch_group_count * gg.size(x, 2), *x.shape[3:]))
        image, feature_group_count = tuple(range(x.ndim)), batch_group_count
    first_channels = tuple(image) == tuple(result) == tuple(range(x.ndim))
    if not first_channels:
        x = _moved(x, (image[0], *image[2:], image[1]))
    start = 2 if first_channels else 1
    config: list[Any] = [(0, 0, 0)] * x.ndim
    for a, ((lo, hi), step) in enumerate(zip(padding, lhs_dilation, strict=True), start):
        config[a] = (min(lo, 0), min(hi, 0), step - 1)
    if any(c != (0, 0, 0) for c in config):
        x = padded(x, gg.constant(0, x.dtype), config)
    around = tuple((max(lo, 0), max(hi, 0)) for lo, hi in padding)
    w = _moved(w, (*filters[2:], filters[1], filters[0]))
    layout = "NCHW" if first_channels else "NHWC"
    steps, spread = tuple(window_strides), tuple(rhs_dilation)
    y = gg.nn.conv(x, w, steps, around, layout, spread, feature_group_count)
    if first_channels:
        return y
    places = [0] * y.ndim
    for now, there in enumerate((result[0], *result[2:], result[1])):
        places[there] = now
    return _moved(y, places)


def _moved(x: Tensor, axes: Sequence[int]) -> Any:
    return x if tuple(axes) == tuple(range(x.ndim)) else gg.transpose(x, tuple(axes))


def _cholesky(x: Tensor, *, symmetrize_input: bool = False, **_: Any) -> Any:
    if symmetrize_input:
        x = (x + gg.conj(gg.matrix_transpose(x))) * 0.5
    return gg.linalg.cholesky(x)


def _eigh(x: Tensor, *, lower: bool = True, subset_by_index: Any = None, **_: Any) -> Any:
    if subset_by_index is not None and tuple(subset_by_index) != (0, x.shape[-1]):
        raise NotImplementedError("subset_by_index")
    values, vectors = gg.linalg.eigh(x, UPLO="L" if lower else "U")
    return vectors, values


def _svd(
    x: Tensor, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any = None, **_: Any
) -> Any:
    if subset_by_index is not None:
        raise NotImplementedError("subset_by_index")
    if not compute_uv:
        return (gg.linalg.svdvals(x),)
    u, s, vh = gg.linalg.svd(x, full_matrices=full_matrices)
    return s, u, vh


def _qr(x: Tensor, *, pivoting: bool = False, full_matrices: bool, **_: Any) -> Any:
    if pivoting:
        raise NotImplementedError("pivoting")
    return tuple(gg.linalg.qr(x, mode="complete" if full_matrices else "reduced"))


def _triangular_solve(
    a: Tensor,
    b: Tensor,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
    **_: Any,
) -> Any:
    if conjugate_a:
        a = gg.conj(a)
    if transpose_a:
        a, lower = gg.matrix_transpose(a), not lower
    if left_side:
        return _solve(a, b, lower, unit_diagonal)
    x = _solve(gg.matrix_transpose(a), gg.matrix_transpose(b), not lower, unit_diagonal)
    return gg.matrix_transpose(x)


def _solve(a: Tensor, b: Tensor, lower: bool, unit: bool) -> Any:
    return gg.linalg.solve_triangular(a, b, lower=lower, unit_diagonal=unit)


def _lu(x: Tensor, **_: Any) -> Any:
    packed, pivots = gg.linalg.lu_factor(x)
    n = x.shape[-2]
    order = gg.broadcast_to(gg.cast(gg.arange(n), "int32"), (*x.shape[:-2], n))
    for i in range(gg.size(pivots, -1)):
        order = _swapped(order, i, pivots[..., i : i + 1])
    return packed, gg.cast(pivots, "int32"), order


def _householder_product(a: Tensor, taus: Tensor, **_: Any) -> Any:
    """The product of the reflections I - tau v v^H, v below the diagonal of each column."""
    m, n = a.shape[-2:]
    below = gg.tril(a, -1) + gg.eye(m, n, dtype=a.dtype)
    q = gg.broadcast_to(gg.eye(m, n, dtype=a.dtype), (*a.shape[:-2], m, n))
    for i in reversed(range(gg.size(taus, -1))):
        v = below[..., :, i : i + 1]
        q = q - taus[..., i : i + 1, None] * (v @ (gg.conj(gg.matrix_transpose(v)) @ q))
    return q


def _tridiagonal_solve(low: Tensor, diagonal: Tensor, high: Tensor, b: Tensor, **_: Any) -> Any:
    n = diagonal.shape[-1]
    rows = gg.arange(n)[:, None]
    columns = gg.arange(n)

    def band(line: Tensor, offset: int) -> Any:
        return gg.where(columns - rows == offset, line[..., :, None], gg.constant(0, line.dtype))

    return gg.linalg.solve(band(low, -1) + band(diagonal, 0) + band(high, 1), b)


def _swapped(order: Tensor, i: int, j: Tensor) -> Any:
    """A row of places with those at i and j exchanged."""
    here, there = order[..., i : i + 1], gg.take_along_axis(order, gg.cast(j, "int64"), axis=-1)
    places = gg.arange(order.shape[-1])
    made = gg.where(places == gg.cast(j, "int64"), here, order)
    return gg.where(places == i, there, made)


def _fft(x: Tensor, *, fft_type: Any, fft_lengths: Sequence[int], **_: Any) -> Any:
    kind = getattr(fft_type, "name", str(fft_type)).upper()
    axes = tuple(range(x.ndim - len(fft_lengths), x.ndim))
    name = {"FFT": "fftn", "IFFT": "ifftn", "RFFT": "rfftn", "IRFFT": "irfftn"}[kind]
    sizes = {"s": tuple(fft_lengths)} if kind == "IRFFT" else {}
    return getattr(gg.fft, name)(x, axes=axes, **sizes)


FORMS: dict[str, Form] = {
    "dot_general": _dot_general,
    "conv_general_dilated": _conv,
    "cholesky": _cholesky,
    "eigh": _eigh,
    "svd": _svd,
    "qr": _qr,
    "lu": _lu,
    "householder_product": _householder_product,
    "tridiagonal_solve": _tridiagonal_solve,
    "triangular_solve": _triangular_solve,
    "fft": _fft,
}
