"""Medians, quantiles, weighted means and covariances."""

from __future__ import annotations

from types import SimpleNamespace

from ...base.errors import ShapeError
from ...base.flags import truth
from ...base.kinds import accumulated_in
from ..base import (
    Any,
    Constant,
    DTypeError,
    Tensor,
    TensorLike,
    apply,
    as_dtype,
    as_tensor,
    cast,
    inexact,
    is_floating,
    is_inexact,
    kind_of,
    like,
    np,
    operand_dtypes,
    promoted,
    real_dtype,
    result_dtype,
    type_of,
)
from ..contract.products import matmul
from ..create.diagonal import diagonal
from ..elementwise.arithmetic import multiply
from ..elementwise.bounds import clip, maximum, minimum
from ..elementwise.complex_parts import conj, real
from ..elementwise.exponential import sqrt
from ..elementwise.logic import (
    equal,
    isinf,
    isnan,
    less,
    logical_and,
    logical_not,
    logical_or,
    where,
)
from ..elementwise.rounding import ceil, floor, rint
from ..reduce.cumulative import cumsum
from ..reduce.reductions import Axes, Flat, max, mean, min, normal_axes, size_over, sum
from ..reduce.sorting import argsort, sort, take_along_axis
from ..shape.indexing import take
from ..shape.joining import concat, stack
from ..shape.reshaping import (
    broadcast_like,
    expand_dims,
    matrix_transpose,
    permute_dims,
    reshape,
    squeeze,
)

__all__ = [
    "average",
    "corrcoef",
    "cov",
    "median",
    "nanmedian",
    "nanpercentile",
    "nanquantile",
    "percentile",
    "ptp",
    "quantile",
]

INT64 = as_dtype("int64")


# --- medians -----------------------------------------------------------------------------------


def median(a: TensorLike, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The middle element over axes, or the mean of the two in the middle; NaN if there is one.

    Parameters:
        a: any shape; bools and integers become float64; complex numbers go by the real part, ties
            by the imaginary one.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.

    Returns: a without the axes, or with length 1 there; NaN over nothing, if that is known.

    Raises: ShapeError if a has no such axis, or axis names one twice. A
        run raises IndexError over nothing that had an unknown length.

    Gradient: dy to the middle element, or half of it to each of two; of equal elements, those count
        that a stable sort puts there.

    Source: numpy.median.

    >>> x = gg.constant([7.0, 1.0, 3.0, 2.0])
    >>> gg.evaluate([gg.median(x), *gg.gradients([gg.median(x)], [x])])
    [array(2.5), array([0. , 0. , 0.5, 0.5])]
    """
    truth("keepdims", keepdims)
    rows, axes = _rows(a, axis)
    n = rows.shape[-1]
    if n == 0:
        return _laid_out(mean(rows, -1), axes, keepdims)
    rows = sort(rows)
    if isinstance(n, int):
        middle = rows[..., (n - 1) // 2 : n // 2 + 1]
    else:
        size = size_over(rows, (rows.ndim - 1,), INT64)
        middle = take(rows, stack([(size - 1) // 2, size // 2]), -1)
    return _laid_out(_unless_nan(rows, mean(middle, -1)), axes, keepdims)


def nanmedian(a: TensorLike, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The median over axes, ignoring NaN.

    Parameters:
        a: any shape; bools and integers become float64; complex numbers go by the real part, ties
            by the imaginary one.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.

    Returns: a without the axes, or with length 1 there; NaN where all are NaN.

    Raises: ShapeError if a has no such axis, or axis names one twice.

    Gradient: dy to the middle element, or half of it to each of two; of equal elements, those count
        that a stable sort puts there.

    Source: numpy.nanmedian.

    >>> gg.evaluate(gg.nanmedian([1.0, np.nan, 2.0]))
    array(1.5)
    """
    truth("keepdims", keepdims)
    a = as_tensor(a)
    rows, axes = _rows(a, axis)
    if not is_inexact(a.dtype) or rows.shape[-1] == 0:
        return median(a, axis, keepdims=keepdims)
    count = sum(logical_not(isnan(rows)), -1, True)
    places = concat([(count - 1) // 2, count // 2], -1)  # -1 and 0 where all are NaN
    return _laid_out(mean(take_along_axis(sort(rows), places, axis=-1), -1), axes, keepdims)


# --- quantiles ---------------------------------------------------------------------------------

DISCRETE = ["inverted_cdf", "closest_observation", "lower", "higher", "nearest"]
"""Methods that pick an element."""
CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
"""Methods that lie at n q + alpha + q (1 - alpha - beta) - 1, by alpha and beta."""
METHODS = (*DISCRETE, *CONTINUOUS, "linear", "averaged_inverted_cdf", "midpoint")


def quantile(
    a: TensorLike,
    q: TensorLike,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: TensorLike | None = None,
) -> Tensor:
    """The q-th quantile over axes: where a part q of the elements is below; NaN if there is one.

    Between two elements, y = (1 - t) lower + t upper; methods say where it lies, and so what t is.

    Parameters:
        a: any shape; bool, integer or floating.
        q: from 0 to 1, 0-d or 1-d; where it is computed, NaN beyond.
        axis: an int, several in a tuple, or None for all of them.
        method: "linear" (at (n - 1) q), "inverted_cdf", "averaged_inverted_cdf",
            "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull",
            "median_unbiased", "normal_unbiased", "lower", "higher", "midpoint" or "nearest".
        keepdims: whether the axes stay, with length 1.
        weights: how much each element counts, of the shape of a, or of its one axis; takes
            method="inverted_cdf". Has no gradient.

    Returns: the shape of q, then a without the axes, or with length 1 there; of the dtype of a
        where elements are picked, else floating.

    Raises: ShapeError if a has no such axis or nothing along it, or for a q or weights of another
        shape; ValueError for an unknown method, and a q beyond 0 and 1; DTypeError if a is complex.

    Gradient: dy to the two elements, times 1 - t and t; of equal elements, those count that a
        stable sort puts there. dq = dy * (upper - lower) * dt/dq, 0 where elements are picked.

    Source: numpy.quantile; Hyndman and Fan 1996, "Sample Quantiles in Statistical Packages".

    >>> x = gg.constant([4.0, 1.0, 2.0])
    >>> y = gg.quantile(x, 0.75)
    >>> gg.evaluate([y, *gg.gradients([y], [x])])
    [array(3.), array([0.5, 0. , 0.5])]
    """
    return _quantile(a, q, axis, method, keepdims, weights, skip=False)


def percentile(
    a: TensorLike,
    q: TensorLike,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: TensorLike | None = None,
) -> Tensor:
    """The q-th percentile over axes: quantile(a, q / 100).

    Parameters:
        a: any shape; bool, integer or floating.
        q: from 0 to 100, 0-d or 1-d.
        axis: an int, several in a tuple, or None for all of them.
        method: as of quantile.
        keepdims: whether the axes stay, with length 1.
        weights: as of quantile.

    Returns: as quantile.

    Raises: as quantile.

    Gradient: as of quantile.

    Source: numpy.percentile.

    >>> gg.evaluate(gg.percentile([4.0, 1.0, 2.0], [50, 75]))
    array([2., 3.])
    """
    return quantile(a, _parts(a, q), axis, method=method, keepdims=keepdims, weights=weights)


def nanquantile(
    a: TensorLike,
    q: TensorLike,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: TensorLike | None = None,
) -> Tensor:
    """The q-th quantile over axes, ignoring NaN.

    Parameters:
        a: any shape; bool, integer or floating.
        q: from 0 to 1, 0-d or 1-d; where it is computed, NaN beyond.
        axis: an int, several in a tuple, or None for all of them.
        method: as of quantile.
        keepdims: whether the axes stay, with length 1.
        weights: as of quantile.

    Returns: as quantile; NaN where all are NaN.

    Raises: as quantile.

    Gradient: as of quantile; 0 at a NaN.

    Source: numpy.nanquantile.

    >>> gg.evaluate(gg.nanquantile([4.0, np.nan, 1.0], 0.5))
    array(2.5)
    """
    return _quantile(a, q, axis, method, keepdims, weights, skip=True)


def nanpercentile(
    a: TensorLike,
    q: TensorLike,
    axis: Any = None,
    *,
    method: str = "linear",
    keepdims: bool = False,
    weights: TensorLike | None = None,
) -> Tensor:
    """The q-th percentile over axes, ignoring NaN: nanquantile(a, q / 100).

    Parameters:
        a: any shape; bool, integer or floating.
        q: from 0 to 100, 0-d or 1-d.
        axis: an int, several in a tuple, or None for all of them.
        method: as of quantile.
        keepdims: whether the axes stay, with length 1.
        weights: as of quantile.

    Returns: as quantile; NaN where all are NaN.

    Raises: as quantile.

    Gradient: as of quantile; 0 at a NaN.

    Source: numpy.nanpercentile.

    >>> gg.evaluate(gg.nanpercentile([4.0, np.nan, 1.0], 50))
    array(2.5)
    """
    return nanquantile(a, _parts(a, q), axis, method=method, keepdims=keepdims, weights=weights)


def _parts(a: TensorLike, q: TensorLike) -> Tensor:
    """Percent as parts of one."""
    return _as_float(a, q) / 100


def _as_float(a: TensorLike, q: TensorLike) -> Tensor:
    """q as a floating tensor; a Python number takes the dtype of a floating a."""
    dtypes = operand_dtypes(a if type(q) in (int, float) else q)
    return cast(q, inexact(result_dtype(dtypes)))


def _quantile(
    a: TensorLike,
    q: TensorLike,
    axis: Any,
    method: str,
    keepdims: bool,
    weights: TensorLike | None,
    skip: bool,
) -> Tensor:
    truth("keepdims", keepdims)
    a, q = as_tensor(a), _as_float(a, q)
    rows, axes = _rows(a, axis)
    _check_quantile(a, q, method, rows)
    if weights is not None:
        y = _weighted(a, q, axes, method, weights, skip)
    elif skip and is_floating(a.dtype):
        rows = sort(rows)
        n = sum(logical_not(isnan(rows)), -1, True)
        y = _between(rows, method, cast(n, _index_dtype(q)), q)
    else:
        rows = sort(rows)
        y = _between(rows, method, size_over(rows, (rows.ndim - 1,), _index_dtype(q)), q)
        y = _unless_nan(rows, y, column=True)
    if _values(q) is None and is_floating(y.dtype):
        inside = logical_and(q >= 0, q <= 1)
        y = where(inside, y, like(np.nan, y))
    if not q.ndim:
        y = squeeze(y, -1)
    else:
        y = permute_dims(y, (y.ndim - 1, *range(y.ndim - 1)))
    return _laid_out(y, axes, keepdims, q.ndim)


def _check_quantile(a: Tensor, q: Tensor, method: str, rows: Tensor) -> None:
    if kind_of(a.dtype) == "c":
        raise DTypeError(f"quantiles are of real numbers, got {a.type!r}")
    if method not in METHODS:
        raise ValueError(f"method={method!r} of a quantile; there are {', '.join(METHODS)}")
    if not is_floating(q.dtype) or q.ndim > 1:
        raise ShapeError(f"a quantile is at a real number or a vector of these, got {q.type!r}")
    if rows.shape[-1] == 0:
        raise ShapeError(f"quantile of {a.type!r}, built at {a.where}: there are no elements")
    known = _values(q)
    if known is not None and not np.all((known >= 0) & (known <= 1)):
        raise ValueError(f"quantiles lie from 0 to 1 (percentiles to 100), got {known.tolist()}")


def _values(q: Tensor) -> Any:
    """The numbers that q is known to be, or None."""
    op = q.node.op
    if op.type in ("Cast", "Divide"):  # what _as_float and _parts put around a constant
        inner = [_values(t) for t in q.node.inputs]
        if any(v is None for v in inner):
            return None
        return inner[0].astype(q.dtype) if op.type == "Cast" else inner[0] / inner[1]
    return op.value if isinstance(op, Constant) else None


def _index_dtype(q: Tensor) -> Any:
    return as_dtype("float32") if q.dtype.itemsize < 4 else q.dtype


_GRAPH = SimpleNamespace(
    floor=floor, ceil=ceil, rint=rint, where=where, maximum=maximum, minimum=minimum
)


def _between(rows: Tensor, method: str, n: Tensor, q: Tensor) -> Tensor:
    """The quantiles of sorted rows of n elements, which may differ in that; q last."""
    dtype, q = q.dtype, cast(reshape(q, (-1,)), n.dtype)
    sizes, points = _values(n), _values(q)
    if sizes is None or points is None:
        lower, upper, t = _places(_GRAPH, method, n, q)
    else:
        lower, upper, t = _places(np, method, sizes, points)
    low = _picked(rows, lower)
    if t is None:
        return low
    return _interpolated(low, _picked(rows, upper), cast(t, dtype))


def _picked(rows: Tensor, places: Any) -> Tensor:
    """Elements of rows at these places: the same ones of all, or others of each."""
    places = cast(as_tensor(places), INT64)
    return take(rows, places, -1) if places.ndim == 1 else take_along_axis(rows, places, axis=-1)


def _places(xp: Any, method: str, n: Any, q: Any) -> tuple[Any, Any, Any]:
    """The places of the elements below and above a quantile, and how far it lies between them.

    No such distance where a method picks an element.
    """
    last = n - 1
    if method in DISCRETE:
        at = _nearest_place(xp, method, n, q)
        return xp.maximum(xp.minimum(at, last), 0), None, None
    if method == "linear":
        v = last * q
    elif method == "averaged_inverted_cdf":
        v = n * q - 1
    elif method == "midpoint":
        v = 0.5 * (xp.floor(last * q) + xp.ceil(last * q))
    else:
        alpha, beta = CONTINUOUS[method]
        v = n * q + (alpha + q * (1 - alpha - beta)) - 1
    below = xp.floor(v)
    t = v - below
    if method == "averaged_inverted_cdf":
        t = xp.where(t == 0, t + 0.5, t * 0 + 1)
    bounded = [xp.maximum(xp.minimum(at, last), 0) for at in (below, below + 1)]
    return *bounded, t


def _nearest_place(xp: Any, method: str, n: Any, q: Any) -> Any:
    if method in ("lower", "higher", "nearest"):
        step = {"lower": xp.floor, "higher": xp.ceil, "nearest": xp.rint}[method]
        return step((n - 1) * q)
    v = n * q - (1 if method == "inverted_cdf" else 1.5)
    below = xp.floor(v)
    exact = v == below
    if method == "closest_observation":  # the even one of two, counted from 1
        exact = exact & (below % 2 == 1)
    return xp.where(exact, below, below + 1)


def _interpolated(low: Tensor, high: Tensor, t: Tensor) -> Tensor:
    """(1 - t) low + t high, monotonous in t; an infinity that does not count makes no NaN."""
    low, high, t = promoted(low, high, t, floating=True)
    end = logical_or(logical_or(equal(t, 0), equal(t, 1)), equal(low, high))
    alone = logical_and(logical_or(isinf(low), isinf(high)), end)
    distance = where(alone, like(0, low), high - low)
    return where(t >= 0.5, high - distance * (1 - t), low + distance * t)


def _weighted(
    a: Tensor, q: Tensor, axes: Axes, method: str, weights: TensorLike, skip: bool
) -> Tensor:
    """Quantiles of elements that count as much as their weights, the first to reach q of these."""
    if method != "inverted_cdf":
        raise ValueError(f'weights take method="inverted_cdf", got {method!r}')
    rows = _rows(a, axes)[0]
    shares = _rows(_fitted_weights(a, weights, axes), axes)[0]
    if skip and is_floating(a.dtype):
        shares = where(isnan(rows), like(0, shares), shares)
    order = argsort(rows)
    rows = take_along_axis(rows, order, axis=-1)
    total = cumsum(cast(take_along_axis(shares, order, axis=-1), "float64"), -1)
    reached = cast(total / total[..., -1:], q.dtype)
    reached = where(reached == 0, like(-1, reached), reached)
    below = less(expand_dims(reached, -2), expand_dims(reshape(q, (-1,)), -1))
    n = size_over(rows, (rows.ndim - 1,), INT64)
    y = take_along_axis(rows, minimum(sum(below, -1), n - 1), axis=-1)
    if not is_floating(a.dtype):
        return y
    return where(
        isnan(total[..., -1:] / total[..., -1:]) if skip else isnan(rows[..., -1:]), np.nan, y
    )


def _fitted_weights(a: Tensor, weights: TensorLike, axes: Axes) -> Tensor:
    """Weights of the shape of a, or of its axes, broadcast to a."""
    w = as_tensor(weights)
    if w.ndim == a.ndim:
        return w if w.type.shape == a.type.shape else broadcast_like(w, a)
    if w.ndim != len(axes):
        raise ShapeError(
            f"weights {w.type!r} of {a.type!r}: they have its shape, or that of the axes {axes}"
        )
    others = tuple([i for i in range(a.ndim) if i not in axes])
    return broadcast_like(expand_dims(w, others), a)


def _rows(a: TensorLike, axis: Any) -> tuple[Tensor, Axes]:
    """a with the axes as one in the end, and the axes."""
    a = as_tensor(a)
    axes = normal_axes(axis, a.ndim)
    if axes == (a.ndim - 1,):
        return a, axes
    kept = [i for i in range(a.ndim) if i not in axes]
    moved = permute_dims(a, (*kept, *axes)) if kept and axes else a
    return (moved if len(axes) == 1 else apply(Flat(len(kept)), moved)), axes


def _laid_out(y: Tensor, axes: Axes, keepdims: bool, behind: int = 0) -> Tensor:
    return expand_dims(y, tuple([a + behind for a in axes])) if keepdims and axes else y


def _unless_nan(rows: Tensor, y: Tensor, column: bool = False) -> Tensor:
    """y, or the NaN that stands last in its sorted row; column: y has one more axis."""
    if not is_inexact(rows.dtype):
        return y
    last = rows[..., -1:] if column else rows[..., -1]
    return where(isnan(last), last, y)


def ptp(a: TensorLike, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """Peak to peak: the largest less the smallest element over axes.

    Parameters:
        a: any shape; integer or floating.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.

    Returns: a without the axes, or with length 1 there.

    Raises: ShapeError if a has no such axis, or nothing along it.

    Gradient: da = dy in equal shares to the largest elements, -dy to the smallest.

    Source: numpy.ptp.

    >>> gg.evaluate(gg.ptp([[1, 5], [7, 2]], axis=1))
    array([4, 5])
    """
    a = as_tensor(a)
    return max(a, axis, keepdims) - min(a, axis, keepdims)


# --- weighted means and covariances ------------------------------------------------------------


def average(
    a: TensorLike,
    axis: Any = None,
    weights: TensorLike | None = None,
    returned: bool = False,
    *,
    keepdims: bool = False,
) -> Any:
    """Weighted mean over axes: y = sum w a / sum w.

    Parameters:
        a: any shape; floating or complex, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        weights: of the shape of a, or of its axes; None: all are 1.
        returned: whether the sum of the weights is returned, too.
        keepdims: whether the axes stay, with length 1.

    Returns: y; or (y, sum of the weights), of one shape. NaN or infinite where the weights add up
        to 0, where NumPy raises an error.

    Raises: ShapeError if a has no such axis, or for weights of another shape.

    Gradient: da = dy * w / sum w, dw = dy * (a - y) / sum w.

    Source: numpy.average.

    >>> gg.evaluate(gg.average([1.0, 2.0, 4.0], weights=[1, 1, 2]))
    array(2.75)
    """
    truth("returned", returned)
    a = as_tensor(a)
    axes = normal_axes(axis, a.ndim)
    if weights is None:
        y = mean(a, axes, keepdims)
        return (y, broadcast_like(size_over(a, axes, y.dtype), y)) if returned else y
    w = as_tensor(weights)
    if w.ndim != a.ndim and axis is None:
        raise ShapeError(f"weights {w.type!r} of {a.type!r}: give the axis that they are for")
    dtype = inexact(result_dtype(operand_dtypes(a, w)))
    w = cast(_fitted_weights(a, w, axes), accumulated_in(dtype))
    total = sum(w, axes, keepdims)
    y = cast(sum(multiply(cast(a, w.dtype), w), axes, keepdims) / total, dtype)
    return (y, cast(total, dtype)) if returned else y


def cov(
    m: TensorLike,
    y: TensorLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: TensorLike | None = None,
    aweights: TensorLike | None = None,
    *,
    dtype: Any = None,
) -> Tensor:
    """Covariances of variables: c[i, j] = sum w (x[i] - mean x[i]) conj(x[j] - mean x[j]) / n.

    n is the sum of the weights, less ddof (times the mean of aweights under the weights).

    Parameters:
        m: one variable (1-d), or one in each row (2-d).
        y: more of them.
        rowvar: whether rows are variables, and not columns.
        bias: whether ddof is 0 where it is not given, and not 1.
        ddof: what is taken off n.
        fweights: how often each observation counts; integers.
        aweights: how much each observation counts.
        dtype: the dtype that m and y are cast to first; None: at least float64.

    Returns: a matrix of the covariances; 0-d for one variable.

    Raises: ShapeError for more axes, or weights of another shape; DTypeError for fweights that are
        not integers.

    Gradient: of the composition; fweights have none.

    Source: numpy.cov.

    >>> gg.evaluate(gg.cov([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    truth("rowvar", rowvar)
    truth("bias", bias)
    x = _variables(m, y, rowvar, dtype)
    less_ = ddof if ddof is not None else 0 if bias else 1
    w = _observation_weights(x, fweights, aweights)
    if w is None:
        x = x - mean(x, 1, True)
        scaled, n = x, size_over(x, (1,), real_dtype(x.dtype)) - less_
    else:
        total = sum(w)
        x = x - expand_dims(sum(x * w, 1) / total, 1)
        scaled = x * w
        if aweights is None or not less_:
            n = total - less_
        else:
            n = total - less_ * sum(w * like(aweights, w)) / total
    c = matmul(x, conj(matrix_transpose(scaled))) / maximum(n, 0)
    return c if x.shape[0] != 1 else reshape(c, ())


def _variables(m: TensorLike, y: TensorLike | None, rowvar: bool, dtype: Any) -> Tensor:
    """The variables as rows."""
    given = [as_tensor(t) for t in (m, y) if t is not None]
    if any(t.ndim > 2 for t in given):
        raise ShapeError(f"cov of {given[0].type!r}: variables are rows of a matrix, or one vector")
    target = np.result_type(*[t.dtype for t in given], np.float64) if dtype is None else dtype
    rows: list[Tensor] = []
    for t in given:
        t = cast(t, target)
        t = expand_dims(t, 0) if t.ndim == 1 else reshape(t, (1, 1)) if t.ndim == 0 else t
        rows.append(t if rowvar or given[len(rows)].ndim < 2 else matrix_transpose(t))
    return rows[0] if len(rows) == 1 else concat(rows, 0)


def _observation_weights(
    x: Tensor, fweights: TensorLike | None, aweights: TensorLike | None
) -> Tensor | None:
    """The product of both weights, in the real dtype of x; None for none."""
    if fweights is not None and kind_of(type_of(fweights).dtype) not in "iu":
        raise DTypeError(f"fweights count observations: integers, got {type_of(fweights)!r}")
    given = [cast(as_tensor(w), real_dtype(x.dtype)) for w in (fweights, aweights) if w is not None]
    for w in given:
        if w.ndim != 1:
            raise ShapeError(f"weights of observations are a vector, got {w.type!r}")
    return None if not given else given[0] if len(given) == 1 else given[0] * given[1]


def corrcoef(
    x: TensorLike, y: TensorLike | None = None, rowvar: bool = True, *, dtype: Any = None
) -> Tensor:
    """Correlations of variables: r[i, j] = c[i, j] / sqrt(c[i, i] c[j, j]), of covariances c.

    Parameters:
        x: one variable (1-d), or one in each row (2-d).
        y: more of them.
        rowvar: whether rows are variables, and not columns.
        dtype: the dtype that x and y are cast to first; None: at least float64.

    Returns: a matrix of the correlations, from -1 to 1; 0-d for one variable.

    Raises: ShapeError for more axes.

    Gradient: of the composition; 0 where rounding led beyond -1 or 1.

    Source: numpy.corrcoef.

    >>> gg.evaluate(gg.corrcoef([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    c = cov(x, y, rowvar, dtype=dtype)
    if c.ndim == 0:
        return c / c
    deviation = sqrt(real(diagonal(c)))
    r = c / expand_dims(deviation, 1) / deviation
    return r if kind_of(r.dtype) == "c" else clip(r, -1, 1)
