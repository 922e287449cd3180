"""Forms of products, convolutions, factorisations and Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir.node import Tensor
from ..opened import Form, gg
from .numbers import is_read, to

__all__ = ["FORMS", "spatial"]


def spatial(value: Any, rank: int) -> tuple[Any, ...]:
    """A number for each spatial axis."""
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    return values * rank if len(values) == 1 else values


def _convolution(
    x: Tensor,
    w: Tensor,
    bias: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    **_: Any,
) -> Any:
    """Over one to three axes, channels first; filters (out, in, ...), transposed (in, out, ...)."""
    rank = x.ndim - 2
    if not 1 <= rank <= 3:
        raise NotImplementedError(f"{rank} spatial axes")
    stride, padding, dilation = (spatial(v, rank) for v in (stride, padding, dilation))
    around = tuple((p, p) for p in padding)
    filters = gg.transpose(w, (*range(2, w.ndim), 1, 0))
    if transposed:
        more = spatial(output_padding, rank)
        y = gg.nn.conv_transpose(x, filters, stride, around, "NCHW", dilation, groups, more)
    else:
        y = gg.nn.conv(x, filters, stride, around, "NCHW", dilation, groups)
    return y if bias is None else y + gg.reshape(bias, (-1, *(1,) * rank))


def _product(x: Tensor, y: Tensor, *_: Any, out: Any, **__: Any) -> Any:
    return gg.matmul(to(x, out), to(y, out))


def _added(product: str) -> Form:
    def call(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1, **_: Any) -> Any:
        y = gg.matmul(a, b) if product == "matmul" else gg.outer(a, b)
        y = y if alpha == 1 else y * alpha
        return y if beta == 0 else (x if beta == 1 else x * beta) + y

    return call


def _addbmm(x: Tensor, a: Tensor, b: Tensor, *, beta: Any = 1, alpha: Any = 1, **_: Any) -> Any:
    return x * beta + gg.sum(gg.matmul(a, b), axis=0) * alpha


def _linear(x: Tensor, w: Tensor, bias: Any = None, **_: Any) -> Any:
    y = gg.matmul(x, gg.transpose(w))
    return y if bias is None else y + bias


def _cdist(x: Tensor, y: Tensor, p: float, *_: Any, **__: Any) -> Any:
    """Distances of rows; where it is 0 no gradient."""
    apart = gg.expand_dims(x, -2) - gg.expand_dims(y, -3)
    return gg.linalg.vector_norm(apart, axis=-1, ord=p)


def _norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, out: Any, **_: Any
) -> Any:
    x = x if x.dtype.kind == "c" else to(x, out)
    axes = tuple(range(x.ndim)) if dim is None else tuple(spatial(dim, 1))
    if not x.ndim:
        return gg.abs(x)
    ord = 2 if ord is None else ord
    return gg.linalg.vector_norm(x, axis=axes, keepdims=keepdim, ord=ord)


def _trilinear(
    a: Tensor, b: Tensor, c: Tensor, on_a: Any, on_b: Any, on_c: Any, dims: Any, *_: Any, **__: Any
) -> Any:
    """The sum of a product of three, with new axes in each."""
    pairs = ((a, on_a), (b, on_b), (c, on_c))
    a, b, c = (gg.expand_dims(t, tuple(new)) if new else t for t, new in pairs)
    return gg.sum(a * b * c, axis=tuple(dims)) if dims else a * b * c


def _pinv(
    x: Tensor, *, atol: Any = None, rtol: Any = None, hermitian: bool = False, **_: Any
) -> Any:
    if isinstance(atol, Tensor) or atol:
        raise NotImplementedError("atol")
    return gg.linalg.pinv(x, hermitian=hermitian, rtol=rtol)


def _zeros(x: Tensor) -> Any:
    return gg.zeros(x.shape[:-2], "int32")


def _cholesky(x: Tensor, *, upper: bool = False, **_: Any) -> Any:
    return gg.linalg.cholesky(x, upper=upper), _zeros(x)


def _inv(x: Tensor, **_: Any) -> Any:
    return gg.linalg.inv(x), _zeros(x)


def _lu_factor(x: Tensor, *, pivot: bool = True, **_: Any) -> Any:
    if not pivot:
        raise NotImplementedError("pivot=False")
    packed, pivots = gg.linalg.lu_factor(x)
    return packed, gg.cast(pivots, "int32") + 1, _zeros(x)


def _factors(x: Tensor, node: Any, place: int) -> Any:
    """LU, pivots and info, where something reads them: they are for the gradient of torch."""
    read = any(is_read(node, place + i) for i in range(3))
    return _lu_factor(x) if read else (None, None, _zeros(x))


def _solve_ex(a: Tensor, b: Tensor, *, left: bool = True, node: Any, **_: Any) -> Any:
    packed, pivots, info = _factors(a, node, 1)
    vector = b.ndim == 1 or (b.ndim + 1 == a.ndim and tuple(b.shape) == tuple(a.shape[:-1]))
    rows = gg.expand_dims(b, -1) if vector else b
    if left:
        x = gg.linalg.solve(a, rows)
    else:
        x = gg.matrix_transpose(gg.linalg.solve(gg.matrix_transpose(a), gg.matrix_transpose(rows)))
    return (gg.squeeze(x, -1) if vector else x), packed, pivots, info


def _det(x: Tensor, *, node: Any, **_: Any) -> Any:
    packed, pivots, _ = _factors(x, node, 1)
    return gg.linalg.det(x), packed, pivots


def _slogdet(x: Tensor, *, node: Any, **_: Any) -> Any:
    sign, size = gg.linalg.slogdet(x)
    packed, pivots, _ = _factors(x, node, 2)
    return sign, size, packed, pivots


def _eigh(x: Tensor, UPLO: str = "L", compute_v: bool = True, **_: Any) -> Any:
    return tuple(gg.linalg.eigh(x, UPLO=UPLO))


def _svd(x: Tensor, full_matrices: bool = False, *_: Any, **__: Any) -> Any:
    return tuple(gg.linalg.svd(x, full_matrices=full_matrices))


def _qr(x: Tensor, mode: str = "reduced", **_: Any) -> Any:
    if mode == "r":
        raise NotImplementedError('mode="r"')
    return tuple(gg.linalg.qr(x, mode=mode))


def _solve_triangular(
    a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, **_: Any
) -> Any:
    if left:
        return gg.linalg.solve_triangular(a, b, lower=not upper, unit_diagonal=unitriangular)
    turned = [gg.matrix_transpose(t) for t in (a, b)]
    x = gg.linalg.solve_triangular(*turned, lower=upper, unit_diagonal=unitriangular)
    return gg.matrix_transpose(x)


def _triangular_solve(
    b: Tensor,
    a: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    **_: Any,
) -> Any:
    given = a
    if transpose:
        a, upper = gg.matrix_transpose(a), not upper
    return _solve_triangular(a, b, upper=upper, unitriangular=unitriangular), given


def _cholesky_solve(b: Tensor, factor: Tensor, upper: bool = False, **_: Any) -> Any:
    low = gg.matrix_transpose(factor) if upper else factor
    y = gg.linalg.solve_triangular(low, b, lower=True)
    return gg.linalg.solve_triangular(gg.matrix_transpose(low), y, lower=False)


# --- Fourier transforms ------------------------------------------------------------------------


def _scaled(y: Any, x: Any, dims: Sequence[int], normalization: int, forward: bool) -> Any:
    """0 is unscaled, 1 is by the root of the count, 2 is by the count; inverses come scaled."""
    count: Any = 1
    for d in dims:
        count = count * x.shape[d]
    if not isinstance(count, int):
        raise NotImplementedError("lengths that are open")
    powers = {0: 0.0, 1: 0.5, 2: 1.0}
    wanted, have = powers[normalization], 0.0 if forward else 1.0
    return y if wanted == have else y * float(count) ** (have - wanted)


def _r2c(x: Tensor, dim: Any, normalization: int, onesided: bool, **_: Any) -> Any:
    y = gg.fft.rfftn(x, axes=tuple(dim)) if onesided else gg.fft.fftn(x + 0j, axes=tuple(dim))
    return _scaled(y, x, dim, normalization, True)


def _c2c(x: Tensor, dim: Any, normalization: int, forward: bool, **_: Any) -> Any:
    y = (gg.fft.fftn if forward else gg.fft.ifftn)(x, axes=tuple(dim))
    return _scaled(y, x, dim, normalization, forward)


def _c2r(x: Tensor, dim: Any, normalization: int, last: Any, **_: Any) -> Any:
    sizes = tuple(last if d == dim[-1] else x.shape[d] for d in dim)
    y = gg.fft.irfftn(x, s=sizes, axes=tuple(dim))
    return _scaled(y, y, dim, normalization, False)


FORMS: dict[str, Form] = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "matmul"), _product),
    "vdot": lambda x, y, **_: gg.matmul(gg.conj(x), y),
    "linear": _linear,
    "addmm": _added("matmul"),
    "addmv": _added("matmul"),
    "baddbmm": _added("matmul"),
    "addr": _added("outer"),
    "addbmm": _addbmm,
    "convolution": _convolution,
    "_cdist_forward": _cdist,
    "linalg_vector_norm": _norm,
    "norm.ScalarOpt_dim": _norm,
    "norm.Scalar": _norm,
    "dist": lambda x, y, p=2, *, out, **_: _norm(x - y, p, out=out),
    "linalg_pinv.atol_rtol_tensor": _pinv,
    "linalg_pinv.atol_rtol_float": _pinv,
    "_trilinear": _trilinear,
    "linalg_cross": lambda x, y, *, dim=-1, **_: gg.linalg.cross(x, y, axis=dim),
    "linalg_cholesky_ex": _cholesky,
    "linalg_inv_ex": _inv,
    "linalg_lu_factor_ex": _lu_factor,
    "_linalg_solve_ex": _solve_ex,
    "_linalg_det": _det,
    "_linalg_slogdet": _slogdet,
    "_linalg_eigh": _eigh,
    "_linalg_svd": _svd,
    "linalg_qr": _qr,
    "linalg_solve_triangular": _solve_triangular,
    "triangular_solve": _triangular_solve,
    "cholesky_solve": _cholesky_solve,
    "cholesky": lambda x, upper=False, **_: gg.linalg.cholesky(x, upper=upper),
    "linalg_matrix_exp": lambda x, **_: gg.linalg.expm(x),
    "matrix_exp": lambda x, **_: gg.linalg.expm(x),
    "trace": lambda x, **_: gg.trace(x),
    "_fft_r2c": _r2c,
    "_fft_c2c": _c2c,
    "_fft_c2r": _c2r,
}
