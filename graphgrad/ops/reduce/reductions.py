"""Sums, means, products, extrema and counts over axes."""

from __future__ import annotations

import builtins
from math import prod as product

from ...base.errors import ShapeError
from ...base.flags import truth
from ...base.kinds import accumulated_in
from ...ir.types import Dim, broadcast, compatible, count_of, elements, size_of
from ..base import (
    ZERO,
    Any,
    Cast,
    Derivative,
    DType,
    DTypeError,
    Gradients,
    Memory,
    Node,
    Onnx,
    Op,
    Samples,
    Shape,
    Tensor,
    TensorLike,
    TensorType,
    Traits,
    Types,
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
    promoted,
    rounded_once,
    scalar,
    tensor_type,
)
from ..batching import Batch, Outputs
from ..documented import documented
from ..elementwise.arithmetic import ADD, DIVIDE, SUBTRACT
from ..elementwise.bounds import maximum, minimum
from ..elementwise.complex_parts import conj, imag, real
from ..elementwise.exponential import EXP, LOG, exp, log, sqrt
from ..elementwise.logic import (
    EQUAL,
    LOGICAL_OR,
    NOT_EQUAL,
    WHERE,
    IsFinite,
    equal,
    isnan,
    logical_and,
    not_equal,
    where,
)
from ..families import known_number
from ..making import Making
from ..shape.padding import Pad
from ..shape.reshaping import (
    Squeeze,
    broadcast_like,
    expand_dims,
    normal_axis,
    permute_dims,
    reshape,
    reshape_like,
)
from ..sources import stop_gradient
from .cumulative import CumProd
from .sorting import GatherElements

__all__ = [
    "all",
    "any",
    "argmax",
    "argmin",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "var",
]

INT64 = as_dtype("int64")
Axes = tuple[int, ...]


def normal_axes(axis: Any, ndim: int) -> Axes:
    """Axes as sorted non-negative ints, all of them for None; ShapeError where they do not fit."""
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple | list) else (axis,)
    axes = sorted(normal_axis(a, ndim) for a in given)
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {axis} names one axis twice")
    return tuple(axes)


def reduced(shape: Shape, axes: Axes, keepdims: bool) -> Shape:
    """The shape after a reduction."""
    if keepdims:
        one: Dim = 1
        return tuple(one if i in axes else d for i, d in enumerate(shape))
    return tuple(d for i, d in enumerate(shape) if i not in axes)


class Reduction(Op, abstract=True):
    """Family: axes are sorted and non-negative.

    Returns: x without the axes, or with length 1 there.
    """

    axes: Axes
    keepdims: bool = False
    axis_attrs = ("axes",)

    def infer(self, x: TensorType) -> Types:
        if self.axes and self.axes[-1] >= len(x.shape):
            raise ShapeError(f"{self.type} over axes {self.axes} of {x!r}")
        self.check(x)
        return (tensor_type(reduced(x.shape, self.axes, self.keepdims), self.result(x.dtype)),)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """The operator of its name over these axes; over none of them x itself."""
        if self.onnx is None:
            return None
        if not self.axes:
            return to.Identity(x)
        return to(self.onnx.name, x, list(self.axes), keepdims=self.keepdims)

    def result(self, dtype: DType) -> DType:
        """The dtype of the output."""
        return dtype

    def check(self, x: TensorType) -> None:
        """ShapeError or DTypeError where the op does not take such an x."""

    def reduced_axes(self, shape: Shape) -> Axes:
        """Its axes."""
        return self.axes

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element of x."""
        return elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for axes, keep in [((0, 1), False), ((1,), True), ((0,), False), ((), False)]:
            yield cls(axes, keep), [rng.uniform(*cls.domain, size=(2, 3))]
        yield cls((), False), [rng.uniform(*cls.domain, size=())]

    def spread(self, t: Tensor, x: Tensor) -> Tensor:
        """t, of the reduced shape, broadcast back to the shape of x."""
        return broadcast_like(t if self.keepdims else expand_dims(t, self.axes), x)


class ReduceSum(Reduction):
    """y = sum of x over axes. Gradient: dx = dy, broadcast."""

    onnx = Onnx("ReduceSum")
    traits = Traits(reduction="sum")
    linear = "joint"

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.sum(x, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (self.spread(dy, node.inputs[0]),)


@documented(ReduceSum)
def sum(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: TensorLike | None = None,
    where: Any = True,
) -> Tensor:
    """Sum over axes: y = sum x.

    Parameters:
        x: any shape and dtype; small ints and bools are summed as 64 bits.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        dtype: the dtype that x is cast to first.
        initial: a number to begin with.
        where: bools that broadcast to x: only these elements count.

    Raises: ShapeError if x has no such axis, or axis names one twice, or where does not broadcast;
        DTypeError for a dtype, initial or where that does not fit.

    Source: numpy.sum.

    >>> gg.evaluate(gg.sum([[1, 2], [3, 4]], axis=0))
    array([4, 6])
    """
    x = only(_summed_as(x, dtype), where, 0)
    y = apply(ReduceSum(normal_axes(axis, x.ndim), truth("keepdims", keepdims)), x)
    return y if initial is None else y + _initial(initial, x)


# --- dtype=, initial= and where= ---------------------------------------------------------------


def only(x: Tensor, mask: Any, neutral: Any) -> Tensor:
    """x where the mask holds, else what changes nothing; x itself for True."""
    return x if mask is True else where(fitted_mask(mask, x), x, like(neutral, x))


def fitted_mask(mask: TensorLike, x: Tensor) -> Tensor:
    """The mask as a tensor; an error where it is not bool, or would make x larger."""
    mask = as_tensor(mask)
    if kind_of(mask.dtype) != "b":
        raise DTypeError(f"where= takes bools, got {mask.type!r}; use where=condition != 0")
    if not compatible(broadcast([mask.shape, x.shape]), x.shape):
        raise ShapeError(
            f"where={mask.type!r} does not broadcast to {x.type!r}, built at {x.where}"
        )
    return mask


def counted(x: Tensor, mask: Any, axes: Axes, keepdims: bool, dtype: DType) -> Tensor:
    """How many elements of x are reduced where the mask holds, in this dtype."""
    if mask is True:
        return size_over(x, axes, dtype)
    ones = cast(broadcast_like(fitted_mask(mask, x), x), INT64)
    return cast(apply(ReduceSum(axes, truth("keepdims", keepdims)), ones), dtype)


def _initial(value: TensorLike, x: Tensor) -> Tensor:
    """What a reduction begins with, in the dtype of x; DTypeError where that would lose a part."""
    if type(value) in (bool, int) or (isinstance(value, float) and _holds(x, value)):
        return like(value, x)
    value = promoted(value, x)[0]
    if value.dtype is not x.dtype:
        raise DTypeError(f"initial= is {value.dtype}, which {x.type!r} does not hold; cast x first")
    return value


def _holds(x: Tensor, number: float) -> bool:
    """Whether a float is one of the integers that x's dtype has."""
    if kind_of(x.dtype) not in "iu" or not number.is_integer():
        return False
    limits = np.iinfo(x.dtype)
    return int(limits.min) <= number <= int(limits.max)


def _summed_as(x: TensorLike, dtype: Any) -> Tensor:
    """x in the dtype to add up in: as asked for, else small ints and bools as 64 bits."""
    return widened(as_tensor(x)) if dtype is None else cast(x, dtype)


def widened(x: Tensor) -> Tensor:
    """Small ints and bools as 64 bits, unsigned ones unsigned, as NumPy sums them."""
    if kind_of(x.dtype) not in "biu" or x.dtype.itemsize == 8:
        return x
    return cast(x, "uint64" if kind_of(x.dtype) == "u" else "int64")


class SizeOf(Op):
    """The number of elements that axes of x have together, known only at run time; 0-d.

    Gradient: zero.
    """

    axes: Axes
    dtype: DType
    shape_only = (0,)
    flop_free = True

    def infer(self, x: TensorType) -> Types:
        if self.axes and self.axes[-1] >= len(x.shape):
            raise ShapeError(f"the size of axes {self.axes} of {x!r}")
        return (tensor_type((), self.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.asarray(_size(x.shape, self.axes), dtype=self.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        size = to.ReduceProd(to.Gather(to.shape(x), list(self.axes)), keepdims=0)
        return to.cast(size, self.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (ZERO,)

    def batch(self, batch: Batch) -> Outputs:
        (x,) = batch.inputs
        axes = tuple([a + 1 for a in self.axes])
        return (batch.repeated(apply(self.replace(axes=axes), x)),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((0, 1), as_dtype("float64")), [rng.normal(size=(2, 3))]
        yield cls((), as_dtype("float32")), [rng.normal(size=(2, 0)).astype("float32")]


def _size(shape: tuple[int, ...], axes: Axes) -> int:
    return product([shape[a] for a in axes])


def size_over(x: Tensor, axes: Axes, dtype: DType) -> Tensor:
    """How many elements are reduced over these axes, as a 0-d tensor."""
    known = size_of([x.shape[a] for a in axes])
    return apply(SizeOf(axes, dtype), x) if known is None else scalar(known, dtype)


class ReduceMean(Reduction):
    """y = mean of x over axes. Gradient: dx = dy / n, broadcast."""

    onnx = Onnx("ReduceMean")
    traits = Traits(reduction="mean")
    linear = "joint"

    def check(self, x: TensorType) -> None:
        if not is_inexact(x.dtype):
            raise DTypeError(f"ReduceMean takes floating operands, got {x!r}; use gg.mean to cast")

    def kernel(self, xp: Any, x: Any) -> Any:
        total = xp.sum(x, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype)
        return xp.asarray(total / xp.asarray(_size(x.shape, self.axes), dtype=x.dtype))

    def to_onnx(self, to: Any, x: Any) -> Any:
        """Of whole images by their operator, beside which convolutions keep their layout."""
        if x.rank != 4 or self.axes != (2, 3) or x.dtype != np.dtype("float32") or 0 in x.shape:
            return super().to_onnx(to, x)
        mean = to.GlobalAveragePool(x)
        return mean if self.keepdims else to.Squeeze(mean, [2, 3])

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        wide = accumulated_in(x.dtype)  # which has the count
        dx = cast(dy, wide) / size_over(x, self.axes, wide)
        return (self.spread(cast(dx, x.dtype), x),)


@documented(ReduceMean)
def mean(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    where: Any = True,
) -> Tensor:
    """Mean over axes: y = sum x / n; NaN where n is 0.

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        dtype: the dtype that x is cast to first, floating or complex.
        where: bools that broadcast to x: only these elements count.

    Raises: ShapeError if x has no such axis, or axis names one twice, or where does not broadcast;
        DTypeError for a dtype that is not floating, or a where that is not bool.

    Source: numpy.mean.

    >>> gg.evaluate(gg.mean([[1, 2], [3, 4]], axis=0))
    array([2., 3.])
    """
    x = _floating(as_tensor(x), dtype)
    axes = normal_axes(axis, x.ndim)
    if where is True:
        return apply(ReduceMean(axes, truth("keepdims", keepdims)), x)

    def mean_of_some(x: Tensor) -> Tensor:
        total = sum(only(x, where, 0), axes, keepdims)
        return total / counted(x, where, axes, keepdims, x.dtype)

    return rounded_once(mean_of_some, x)


def _floating(x: Tensor, dtype: Any = None) -> Tensor:
    """x in a floating or complex dtype: as asked for, else its own, or float64."""
    target = inexact(x.dtype) if dtype is None else as_dtype(dtype)
    if not is_inexact(target):
        raise DTypeError(f"a mean of {x.type!r} as {target} would be cut off; cast the result")
    return cast(x, target)


def var(
    x: TensorLike,
    axis: Any = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    dtype: Any = None,
    where: Any = True,
    mean: TensorLike | None = None,
) -> Tensor:
    """Variance over axes: y = sum |x - mean x|**2 / (n - correction).

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        correction: 0 for the variance of the numbers, 1 for the unbiased estimate from a sample.
        keepdims: whether the axes stay, with length 1.
        ddof: NumPy's other name of correction, which counts if given.
        dtype: the dtype that x is cast to first, floating.
        where: bools that broadcast to x: only these elements count.
        mean: the mean of x, if it is known already, with keepdims.

    Returns: x without the axes, or with length 1 there; floating.

    Raises: ShapeError if x has no such axis, or where or mean do not broadcast; DTypeError for
        non-numeric input, or a dtype that is not floating.

    Gradient: dx = dy * 2 conj(x - mean x) / (n - correction).

    Source: numpy.var; the array API standard, var.

    >>> gg.evaluate(gg.var([1.0, 2.0, 6.0], correction=1))
    array(7.)
    """
    x = _floating(as_tensor(x), dtype)
    axes, less = normal_axes(axis, x.ndim), correction if ddof is None else ddof
    return rounded_once(lambda x: _variance(x, axes, less, keepdims, where, mean), x)


def _variance(
    x: Tensor, axes: Axes, less: float, keepdims: bool, where: Any, mean: TensorLike | None
) -> Tensor:
    """The variance, computed in the dtype of x."""
    x = only(x, where, 0)
    centre = _mean(x, axes, True, where) if mean is None else like(mean, x)
    distance = only(x - centre, where, 0)
    square = real(distance * conj(distance))
    if less == 0:
        return _mean(square, axes, keepdims, where)
    n = size_of([x.shape[a] for a in axes])
    if n is not None and where is True:
        return sum(square, axes, keepdims) / scalar(builtins.max(n - less, 0), square.dtype)
    left = counted(x, where, axes, keepdims, square.dtype) - like(less, square)
    return sum(square, axes, keepdims) / maximum(left, 0)


def std(
    x: TensorLike,
    axis: Any = None,
    *,
    correction: float = 0.0,
    keepdims: bool = False,
    ddof: float | None = None,
    dtype: Any = None,
    where: Any = True,
    mean: TensorLike | None = None,
) -> Tensor:
    """Standard deviation over axes: y = sqrt(var(x)).

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        correction: 0 for the deviation of the numbers, 1 for that of a sample.
        keepdims: whether the axes stay, with length 1.
        ddof: NumPy's other name of correction, which counts if given.
        dtype: the dtype that x is cast to first, floating.
        where: bools that broadcast to x: only these elements count.
        mean: the mean of x, if it is known already, with keepdims.

    Returns: x without the axes, or with length 1 there; floating.

    Raises: ShapeError if x has no such axis, or where or mean do not broadcast; DTypeError for
        non-numeric input, or a dtype that is not floating.

    Gradient: dx = dy * conj(x - mean x) / ((n - correction) y); NaN where y is 0.

    Source: numpy.std; the array API standard, std.

    >>> gg.evaluate(gg.std([1.0, 3.0]))
    array(1.)
    """
    x = _floating(as_tensor(x), dtype)
    axes, less = normal_axes(axis, x.ndim), correction if ddof is None else ddof
    return rounded_once(lambda x: sqrt(_variance(x, axes, less, keepdims, where, mean)), x)


def _mean(x: Tensor, axes: Axes, keepdims: bool, where: Any) -> Tensor:
    return mean(x, axes, keepdims, where=where)


# --- extrema ---------------------------------------------------------------------------------


class ReduceMax(Reduction):
    """y = largest of x over axes (NaN if there is one).

    Gradient: dx = dy in equal shares to the elements that are the largest; of complex numbers
        to the first.

    0.0 and -0.0 are equal: the last is the largest, or in long rows any, as of NumPy.
    """

    onnx = Onnx("ReduceMax")
    traits = Traits(reduction="max")
    derivative = Derivative(relevance="moved")

    def check(self, x: TensorType) -> None:
        if kind_of(x.dtype) == "c":
            raise DTypeError(f"complex numbers have no order, got {x!r}")
        if 0 in [x.shape[a] for a in self.axes]:
            raise ShapeError(f"{self.type} over axes {self.axes} of {x!r}: there are no elements")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.max(x, axis=self.axes, keepdims=self.keepdims)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        shares = apply(TieShares(self.axes, type(self) is ReduceMax), x)
        return (self.spread(dy, x) * shares,)


class ReduceMin(ReduceMax):
    """y = smallest of x over axes (NaN if there is one).

    Gradient: dx = dy in equal shares to the elements that are the smallest; of complex numbers
        to the first.
    """

    onnx = Onnx("ReduceMin")
    to_onnx = Reduction.to_onnx
    traits = Traits(reduction="min")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.min(x, axis=self.axes, keepdims=self.keepdims)


class TieShares(Op):
    """1 / n at the n elements of x that are its largest (or smallest) over axes, else 0.

    Gradient: zero.

    NaN counts as the extremum.
    """

    axes: Axes
    largest: bool
    axis_attrs = ("axes",)

    def infer(self, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        extremum = (xp.max if self.largest else xp.min)(x, axis=self.axes, keepdims=True)
        best = xp.astype((x == extremum) | (x != x), x.dtype)
        return best / xp.sum(best, axis=self.axes, keepdims=True, dtype=x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (ZERO,)

    def decompose(self, make: Making) -> Tensor | None:
        (x,) = make.inputs
        extremum = make((ReduceMax if self.largest else ReduceMin)(self.axes, True), x)
        best = make(LOGICAL_OR, make(EQUAL, x, extremum), make(NOT_EQUAL, x, x))
        counted = make(Cast(x.dtype), best)
        return make(DIVIDE, counted, make(ReduceSum(self.axes, True), counted))

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each element of x."""
        return 2 * elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((0,), True), [rng.normal(size=(3, 2))]
        yield cls((0, 1), False), [rng.normal(size=(3, 2)).astype("float32")]


@documented(ReduceMax)
def max(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    initial: TensorLike | None = None,
    where: Any = True,
) -> Tensor:
    """Largest element over axes; NaN if there is one.

    Parameters:
        x: any shape and dtype; complex numbers go by the real part, ties by the imaginary one.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        initial: a number to begin with; with it, there may be nothing along an axis.
        where: bools that broadcast to x: only these elements count; takes an initial.

    Raises: ShapeError if x has no such axis, nothing along it, or a where without initial;
        DTypeError for an initial or where that does not fit.

    Source: numpy.max.

    >>> x = gg.constant([1.0, 3.0, 3.0])
    >>> gg.evaluate([gg.max(x), *gg.gradients([gg.max(x)], [x])])
    [array(3.), array([0. , 0.5, 0.5])]
    """
    return _extremum(ReduceMax, as_tensor(x), axis, keepdims, initial, where)


@documented(ReduceMin)
def min(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    initial: TensorLike | None = None,
    where: Any = True,
) -> Tensor:
    """Smallest element over axes; NaN if there is one.

    Parameters:
        x: any shape and dtype; complex numbers go by the real part, ties by the imaginary one.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        initial: a number to begin with; with it, there may be nothing along an axis.
        where: bools that broadcast to x: only these elements count; takes an initial.

    Raises: ShapeError if x has no such axis, nothing along it, or a where without initial;
        DTypeError for an initial or where that does not fit.

    Source: numpy.min.

    >>> gg.evaluate(gg.min([[1, 2], [3, 0]], axis=1))
    array([1, 0])
    """
    return _extremum(ReduceMin, as_tensor(x), axis, keepdims, initial, where)


def _extremum(
    op: type[ReduceMax], x: Tensor, axis: Any, keepdims: bool, initial: Any, where: Any
) -> Tensor:
    axes = normal_axes(axis, x.ndim)
    if initial is None:
        if where is not True:
            raise ShapeError(
                "the extremum of what where= picks may be that of nothing: give initial="
            )
        return _extremum_over(op, x, axes, truth("keepdims", keepdims))
    first = _initial(initial, x)
    x = only(x, where, first)
    if not size_of([x.shape[a] for a in axes]):  # there may be nothing: begin with one layer
        number = known_number(first)
        if number is None:
            raise ShapeError(f"initial= of {x.type!r}, which may be empty, has to be a number")
        x = apply(Pad(tuple((int(a in axes), 0) for a in range(x.ndim)), number), x)
    y = _extremum_over(op, x, axes, truth("keepdims", keepdims))
    return (maximum if op is ReduceMax else minimum)(y, first)


def _extremum_over(op: type[ReduceMax], x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """op of x; of complex numbers the first of the extrema, which has all of the gradient."""
    if kind_of(x.dtype) != "c" or not axes:
        return apply(op(axes, keepdims), x)
    kept = tuple([a for a in range(x.ndim) if a not in axes])
    last = len(kept)
    rows = apply(Flat(last), permute_dims(x, (*kept, *axes)))
    y = apply(GatherElements(last), rows, _place_of_complex(op, rows, last))
    y = apply(Squeeze((last,)), y)
    return expand_dims(y, axes) if keepdims else y


def _place_of_complex(op: type[ReduceMax], x: Tensor, axis: int) -> Tensor:
    """The first extremum along an axis, by the real part, ties by the imaginary one; first NaN."""
    extremum, lost = op((axis,), True), isnan(x)
    first, second = real(x), imag(x)
    ahead = equal(first, apply(extremum, first))
    nothing = like(-np.inf if op is ReduceMax else np.inf, second)
    second = where(ahead, second, nothing)
    hits = logical_and(ahead, equal(second, apply(extremum, second)))
    flags = where(apply(ReduceAny((axis,), True), lost), lost, hits)
    return apply(ArgMax(axis, True), flags)


class ArgMax(Op):
    """The place (int64) of the first largest element of x along an axis.

    Gradient: none, the result is not floating.
    """

    axis: int
    keepdims: bool = False
    differentiable = False
    onnx = Onnx("ArgMax")
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        if self.axis >= len(x.shape) or x.shape[self.axis] == 0:
            raise ShapeError(f"{self.type} along axis {self.axis} of {x!r}")
        if kind_of(x.dtype) == "c":
            raise DTypeError(f"complex numbers have no order, got {x!r}")
        return (tensor_type(reduced(x.shape, (self.axis,), self.keepdims), INT64),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.asarray(xp.argmax(x, axis=self.axis, keepdims=self.keepdims), dtype=INT64)

    def to_onnx(self, to: Any, x: Any) -> Any:
        assert self.onnx is not None
        return to(self.onnx.name, to.wide(x), axis=self.axis, keepdims=self.keepdims)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element of x."""
        return elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(3,))]
        yield cls(1, True), [rng.integers(0, 2, size=(2, 5))]
        yield cls(0), [rng.normal(size=(2, 0))]


class ArgMin(ArgMax):
    """The place (int64) of the first smallest element of x along an axis.

    Gradient: none, the result is not floating.
    """

    onnx = Onnx("ArgMin")
    to_onnx = ArgMax.to_onnx

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.asarray(xp.argmin(x, axis=self.axis, keepdims=self.keepdims), dtype=INT64)


@documented(ArgMax)
def argmax(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first largest element along an axis; of the first NaN if there is one.

    Parameters:
        x: any shape and dtype; complex numbers go by the real part, ties by the imaginary one.
        axis: an int, or None for the place in the flattened x.
        keepdims: whether the axes stay, with length 1.

    Returns: int64, x without the axes, or with length 1 there.

    Raises: ShapeError if x has no such axis, or nothing along it.

    Source: numpy.argmax.

    >>> gg.evaluate(gg.argmax([[1, 5], [7, 2]], axis=1))
    array([1, 0])
    """
    return _argextremum(ArgMax, as_tensor(x), axis, keepdims)


@documented(ArgMin)
def argmin(x: TensorLike, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The place of the first smallest element along an axis; of the first NaN if there is one.

    Parameters:
        x: any shape and dtype; complex numbers go by the real part, ties by the imaginary one.
        axis: an int, or None for the place in the flattened x.
        keepdims: whether the axes stay, with length 1.

    Returns: int64, x without the axes, or with length 1 there.

    Raises: ShapeError if x has no such axis, or nothing along it.

    Source: numpy.argmin.

    >>> gg.evaluate(gg.argmin([[1, 5], [7, 2]], axis=1))
    array([0, 1])
    """
    return _argextremum(ArgMin, as_tensor(x), axis, keepdims)


def _argextremum(op: type[ArgMax], x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    keepdims = truth("keepdims", keepdims)
    if axis is not None:
        return _place(op, x, normal_axis(axis, x.ndim), keepdims)
    place = _place(op, reshape(x, (-1,)) if x.ndim else expand_dims(x, 0), 0, False)
    return expand_dims(place, tuple(range(x.ndim))) if keepdims and x.ndim else place


def _place(op: type[ArgMax], x: Tensor, axis: int, keepdims: bool) -> Tensor:
    if kind_of(x.dtype) != "c":
        return apply(op(axis, keepdims), x)
    place = _place_of_complex(ReduceMin if op is ArgMin else ReduceMax, x, axis)
    return place if keepdims else apply(Squeeze((axis,)), place)


# --- products --------------------------------------------------------------------------------


class ReduceProd(Reduction):
    """y = product of x over axes.

    Gradient: dx = dy * the product of all others, without division: right where x is 0.
    """

    onnx = Onnx("ReduceProd")
    traits = Traits(reduction="prod")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.prod(x, axis=self.axes, keepdims=self.keepdims, dtype=x.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        dy = self.spread(dy, x)
        return (dy * _others(x, self.axes) if self.axes else dy,)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        yield cls((0,)), [np.array([2.0, 0.0, 3.0])]
        yield cls((0, 2)), [np.array([[[0.0, 1.0], [2.0, 3.0]], [[4.0, 0.0], [5.0, 0.0]]])]


def _others(x: Tensor, axes: Axes) -> Tensor:
    """At every element, the product of all other elements over axes."""
    if len(axes) == 1:
        before = apply(CumProd(axes[0], False, True), x)
        return before * apply(CumProd(axes[0], True, True), x)
    kept = [i for i in range(x.ndim) if i not in axes]
    order = (*kept, *axes)
    moved = permute_dims(x, order)
    rows = apply(Flat(len(kept)), moved)
    back = tuple(sorted(range(x.ndim), key=order.__getitem__))
    return permute_dims(reshape_like(_others(rows, (len(kept),)), moved), back)


class Flat(Op):
    """x with its last axes, from `axis` on, as one. Gradient: dx = dy with the axes back."""

    axis: int
    memory = Memory(view=True, alias=True, reshapes=True)
    linear = "joint"
    derivative = Derivative(relevance="moved")
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        return (tensor_type((*x.shape[: self.axis], count_of(x.shape[self.axis :])), x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        last = tuple(range(self.axis, x.ndim))
        return xp.reshape(x, (*x.shape[: self.axis], _size(x.shape, last)))

    def to_onnx(self, to: Any, x: Any) -> Any:
        front = [to.length(x, a) for a in range(self.axis)]
        last = to.ReduceProd(to.Shape(x, start=self.axis), [0], keepdims=1)
        return to.reshape(x, *front, last)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (reshape_like(dy, node.inputs[0]),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(1), [rng.normal(size=(2, 3, 2))]
        yield cls(0), [rng.normal(size=())]


@documented(ReduceProd)
def prod(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    initial: TensorLike | None = None,
    where: Any = True,
) -> Tensor:
    """Product over axes: y = prod x.

    Parameters:
        x: any shape and dtype; small ints and bools are multiplied as 64 bits.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        dtype: the dtype that x is cast to first.
        initial: a number to begin with.
        where: bools that broadcast to x: only these elements count.

    Raises: ShapeError if x has no such axis, or axis names one twice, or where does not broadcast;
        DTypeError for a dtype, initial or where that does not fit.

    Source: numpy.prod.

    >>> x = gg.constant([2.0, 0.0, 3.0])
    >>> gg.evaluate([gg.prod(x), *gg.gradients([gg.prod(x)], [x])])
    [array(0.), array([0., 6., 0.])]
    """
    x = only(_summed_as(x, dtype), where, 1)
    y = apply(ReduceProd(normal_axes(axis, x.ndim), truth("keepdims", keepdims)), x)
    return y if initial is None else y * _initial(initial, x)


# --- exponentials ----------------------------------------------------------------------------


class ReduceLogSumExp(Reduction):
    """y = log of the sum of exp(x) over axes, without overflow.

    Gradient: dx = dy * exp(x - y), the softmax of x; 0 where all of x are -inf [Blanchard,
        Higham and Higham 2021, "Accurately computing the log-sum-exp and softmax functions"].

    -inf over no elements, or where all of them are -inf.
    """

    onnx = Onnx("ReduceLogSumExp")
    derivative = Derivative(relevance="taylor")

    def check(self, x: TensorType) -> None:
        if not is_floating(x.dtype):
            raise DTypeError(f"ReduceLogSumExp takes real floating operands, got {x!r}")

    def kernel(self, xp: Any, x: Any) -> Any:
        shift, _, total = _exponentials(xp, x, self.axes)
        y = xp.log(total) + shift
        return y if self.keepdims else xp.squeeze(y, axis=self.axes)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (self.spread(dy, x) * apply(ExpShares(self.axes), x),)

    def decompose(self, make: Making) -> Tensor | None:
        (x,) = make.inputs
        if not self.axes:
            return make(ADD, x, make.zero(x))  # 0.0 for -0.0
        shift, _, total = _decomposed_exponentials(make, self.axes)
        y = make(ADD, make(LOG, total), shift)
        return y if self.keepdims else make(Squeeze(self.axes), y)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Four for each element of x."""
        return 4 * elements(inputs[0])


class ExpShares(Op):
    """s = exp(x) / the sum of exp(x) over axes, without overflow; 0 where all of x are -inf.

    Gradient: dx = s * (ds - sum of ds * s).
    """

    axes: Axes
    axis_attrs = ("axes",)

    def infer(self, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        _, e, total = _exponentials(xp, x, self.axes)
        return e / xp.where(total == 0, 1, total)

    def vjp(self, node: Node, ds: Tensor) -> Gradients:
        (s,) = node.outputs
        return (s * (ds - apply(ReduceSum(self.axes, True), ds * s)),)

    def decompose(self, make: Making) -> Tensor | None:
        if not self.axes:
            return None
        _, e, total = _decomposed_exponentials(make, self.axes)
        empty = make(EQUAL, total, make.zero(total))
        return make(DIVIDE, e, make(WHERE, empty, make.number(1, e.dtype), total))

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Five for each element."""
        return 5 * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((1,)), [rng.normal(size=(2, 3))]
        yield cls((0, 2)), [rng.normal(size=(2, 3, 2)).astype("float32")]
        yield cls((0,)), [rng.normal(size=(0, 2))]


def _exponentials(xp: Any, x: Any, axes: Axes) -> tuple[Any, Any, Any]:
    """The largest x over axes, 0 for infinite ones; e to x less that; the sum of these."""
    shift = xp.max(x, axis=axes, keepdims=True, initial=-xp.inf)
    shift = xp.where(xp.isfinite(shift), shift, xp.zeros_like(shift))
    e = xp.exp(x - shift)
    return shift, e, xp.sum(e, axis=axes, keepdims=True, dtype=x.dtype)


def _decomposed_exponentials(make: Making, axes: Axes) -> tuple[Tensor, Tensor, Tensor]:
    """The same of the first input, of other ops."""
    (x,) = make.inputs
    largest = make(ReduceMax(axes, True), x)
    shift = make(WHERE, make(IsFinite(), largest), largest, make.zero(x))
    e = make(EXP, make(SUBTRACT, x, shift))
    return shift, e, make(ReduceSum(axes, True), e)


@documented(ReduceLogSumExp)
def logsumexp(
    x: TensorLike, axis: Any = None, keepdims: bool = False, *, where: Any = True
) -> Tensor:
    """y = log(sum(exp(x))) over axes, without overflow.

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        where: bools that broadcast to x: only these elements count.

    Returns: x without the axes, or with length 1 there; -inf over nothing.

    Raises: ShapeError if x has no such axis or where does not broadcast; DTypeError for a where
        that is not bool.

    >>> gg.evaluate(gg.logsumexp([[99.0, 99.0]], axis=1)).round(4)
    array([99.6931])
    """
    x = only(_floating(as_tensor(x)), where, -np.inf)
    axes = normal_axes(axis, x.ndim)
    if kind_of(x.dtype) == "c":
        return _logsumexp_of_complex(x, axes, truth("keepdims", keepdims))
    return apply(ReduceLogSumExp(axes, truth("keepdims", keepdims)), x)


def _logsumexp_of_complex(x: Tensor, axes: Axes, keepdims: bool) -> Tensor:
    """log(sum(exp(x))), less the largest real part within, which has no gradient."""
    most = apply(ReduceMax(axes, True), real(stop_gradient(x)))
    most = where(apply(IsFinite(), most), most, like(0, most))
    y = log(apply(ReduceSum(axes, True), exp(x - most))) + most
    return y if keepdims else apply(Squeeze(axes), y)


# --- truth, and what is not a number -----------------------------------------------------------


class ReduceAny(Reduction):
    """Whether any element over axes is true (not 0). Gradient: none, the result is bool."""

    differentiable = False
    traits = Traits(reduction="any")

    def result(self, dtype: DType) -> DType:
        return as_dtype(np.bool_)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.any(x, axis=self.axes, keepdims=self.keepdims)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """Whether there is one that is."""
        true = to.cast(x, "bool") if x.dtype != "bool" else x
        if not self.axes:
            return to.Identity(true)
        count = to.ReduceSum(to.cast(true, "int64"), list(self.axes), keepdims=self.keepdims)
        return to.Greater(count, 0)


class ReduceAll(ReduceAny):
    """Whether all elements over axes are true (not 0). Gradient: none, the result is bool."""

    traits = Traits(reduction="all")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.all(x, axis=self.axes, keepdims=self.keepdims)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """Whether there is none that is not."""
        return to.Not(to.apply(ReduceAny(self.axes, self.keepdims), to.Not(to.cast(x, "bool"))))


@documented(ReduceAny)
def any(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Tensor:
    """Whether any element over axes is true, that is not 0.

    Parameters:
        x: any shape and dtype.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        where: bools that broadcast to x: only these elements count.

    Returns: bool, x without the axes, or with length 1 there; False over nothing.

    Raises: ShapeError if x has no such axis, or axis names one twice, or where does not broadcast;
        DTypeError for a where that is not bool.

    Source: numpy.any.

    >>> gg.evaluate(gg.any([[0, 1], [0, 0]], axis=1))
    array([ True, False])
    """
    x = only(as_tensor(x), where, False)
    return apply(ReduceAny(normal_axes(axis, x.ndim), truth("keepdims", keepdims)), x)


@documented(ReduceAll)
def all(
    x: TensorLike,
    axis: Any = None,
    keepdims: bool = False,
    *,
    where: Any = True,
) -> Tensor:
    """Whether all elements over axes are true, that is not 0.

    Parameters:
        x: any shape and dtype.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.
        where: bools that broadcast to x: only these elements count.

    Returns: bool, x without the axes, or with length 1 there; True over nothing.

    Raises: ShapeError if x has no such axis, or axis names one twice, or where does not broadcast;
        DTypeError for a where that is not bool.

    Source: numpy.all.

    >>> gg.evaluate(gg.all([[0, 1], [1, 1]], axis=1))
    array([False,  True])
    """
    x = only(as_tensor(x), where, True)
    return apply(ReduceAll(normal_axes(axis, x.ndim), truth("keepdims", keepdims)), x)


def count_nonzero(x: TensorLike, axis: Any = None, keepdims: bool = False) -> Tensor:
    """How many elements over axes are not 0; NaN is not 0.

    Parameters:
        x: any shape and dtype.
        axis: an int, several in a tuple, or None for all of them.
        keepdims: whether the axes stay, with length 1.

    Returns: int64, x without the axes, or with length 1 there.

    Raises: ShapeError if x has no such axis, or axis names one twice.

    Gradient: none, the result is not floating.

    Source: numpy.count_nonzero.

    >>> gg.evaluate(gg.count_nonzero([[0, 1], [2, 3]], axis=1))
    array([1, 2])
    """
    return sum(not_equal(x, 0), axis, keepdims)
