"""Counts of values, and histograms."""

from __future__ import annotations

import builtins
from math import prod

from ...base.bounds import at_least
from ...base.errors import ShapeError
from ...base.flags import truth_if_given
from ...base.length import Length
from ...ir.types import compatible, elements, is_negative
from ..base import (
    NO_GRAD,
    ZERO,
    Any,
    Constant,
    DType,
    DTypeError,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_dtype,
    as_tensor,
    cast,
    constant,
    count,
    inexact,
    is_floating,
    kind_of,
    like,
    np,
    promoted,
    result_dtype,
    tensor_type,
)
from ..batching import Batch, Outputs
from ..create.creation import arange, full
from ..documented import documented
from ..elementwise.bounds import maximum, minimum
from ..elementwise.logic import equal, greater_equal, less, less_equal, logical_and, where
from ..reduce.reductions import max, min, sum
from ..shape.indexing import as_places, scatter_add, take
from ..shape.joining import concat
from ..shape.padding import EnsureLength, Pad
from ..shape.places import Counted
from ..shape.reshaping import broadcast_like, expand_dims, flatten, reshape
from ..shape.updates import never_changes
from .differences import diff
from .searching import searchsorted

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]

INT64 = as_dtype("int64")


class BinCount(Op):
    """How often each of 0 ... length - 1 is in a vector, or the sums of its weights.

    Gradient: dweights = dy[x], 0 where x does not count.

    Numbers from length on do not count; negative ones are an error, and where nothing is checked
    they do not count.
    """

    length: Any
    linear = (1,)

    def infer(self, x: TensorType, *weights: TensorType) -> Types:
        return (tensor_type((self.length,), _counted_type(self, x, *weights)),)

    def kernel(self, xp: Any, x: Any, *weights: Any) -> Any:
        if never_changes(x):
            ones = weights[0] if weights else xp.ones(x.shape, dtype=x.dtype)
            places = xp.where(x < 0, self.length, x)
            return xp.zeros(self.length, dtype=ones.dtype).at[places].add(ones, mode="drop")
        if x.size and np.maximum.reduce(x) >= self.length:
            inside = x < self.length
            x, weights = x[inside], tuple([w[inside] for w in weights])
        return _numpy_counts(x, weights, self.length)

    def to_onnx(self, to: Any, x: Any, *weights: Any) -> Any:
        """Added up at places, one more than there are for what does not count."""
        ones = weights[0] if weights else to.Expand(np.ones(1, "int64"), to.shape(x))
        zeros = to.value(np.zeros(self.length + 1, ones.dtype))
        counted = to.And(to.Less(x, self.length), to.Not(to.Less(x, 0)))
        places = to.where(counted, x, self.length)
        total = to.ScatterElements(zeros, to.cast(places, "int64"), ones, axis=0, reduction="add")
        return to.Slice(total, [0], [self.length], [0])

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x = node.inputs[0]
        if self.length == 0:
            return NO_GRAD, ZERO
        if isinstance(self.length, Length):  # one place more, where nothing came from
            dy = apply(Pad(((0, 1),)), dy)
            return NO_GRAD, take(dy, where(less(x, 0), self.length, minimum(x, self.length)), 0)
        places = minimum(maximum(x, 0), self.length - 1)
        return NO_GRAD, where(equal(x, places), take(dy, places, 0), like(0, dy))

    def batch(self, batch: Batch) -> Outputs | None:
        """One count for all examples: numbers of example b count from b (length + 1) on, the last
        of them for what does not count. Negative ones stay negative, and an error.
        """
        x, *weights = batch.every()
        size, row = x.shape[0], self.length + 1
        if size is None:
            return None
        if isinstance(size, Length) or isinstance(row, Length):
            starts = expand_dims(arange(size), 1) * row
        else:
            starts = constant(np.arange(size)[:, None] * row)
        places = where(less(x, 0), x, minimum(x, self.length) + starts)
        every = apply(BinCount(size * row), *map(flatten, (places, *weights)))
        return (reshape(every, (size, row))[:, : self.length],)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element of the vector."""
        return elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(4), [np.array([0, 3, 3, 9])]
        yield cls(4), [np.array([1, 0, 1, 4]), rng.normal(size=4)]
        yield cls(0), [np.array([1, 0])]


class BinCountOfAll(Counted):
    """How often each number up to the largest of a vector is in it, or the sums of its weights.

    Gradient: dweights = dy[x].
    """

    minlength: Any
    differentiable = True
    linear = (1,)

    def infer(self, x: TensorType, *weights: TensorType) -> Types:
        return (tensor_type((None,), _counted_type(self, x, *weights)),)

    def kernel(self, xp: Any, x: Any, *weights: Any) -> Any:
        return _numpy_counts(x, weights, self.minlength)

    def to_onnx(self, to: Any, x: Any, *weights: Any) -> Any:
        ones = weights[0] if weights else to.Expand(np.ones(1, "int64"), to.shape(x))
        places = to.cast(x, "int64")
        last = to.ReduceMax(to.Concat(places, [self.minlength - 1], axis=0), [0], keepdims=1)
        zeros = to.ConstantOfShape(to.Add(last, 1), value=np.zeros(1, ones.dtype))
        return to.ScatterElements(zeros, places, ones, axis=0, reduction="add")

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return NO_GRAD, take(dy, node.inputs[0], 0)


def _counted_type(op: Op, x: TensorType, *weights: TensorType) -> DType:
    """The dtype of the counts; DTypeError or ShapeError for what cannot be counted."""
    if x.dtype != np.int64 or any(w.dtype != np.float64 for w in weights):
        raise DTypeError(f"{op!r} takes int64, and float64 weights, got {x!r}, {weights!r}")
    if len(x.shape) != 1 or any(not compatible(w.shape, x.shape) for w in weights):
        raise ShapeError(f"{op!r} takes a vector, and weights of its shape, got {x!r}, {weights!r}")
    return weights[0].dtype if weights else INT64


def _numpy_counts(x: Any, weights: tuple[Any, ...], minlength: int) -> Any:
    """np.bincount, with an error that says what was counted."""
    try:
        counts = np.bincount(x, weights[0] if weights else None, minlength)
    except ValueError:
        raise IndexError(f"bincount counts integers >= 0, got {int(x.min())}") from None
    return counts if x.size or not weights else counts.astype("float64")


@documented(BinCount)
def bincount(
    x: TensorLike,
    weights: TensorLike | None = None,
    minlength: int = 0,
    *,
    length: Any = None,
) -> Tensor:
    """How often each number is in x: y[i] = how often i is, or the sum of its weights.

    Parameters:
        x: a vector of integers, >= 0.
        weights: the weight of each element, of the shape of x; None: 1.
        minlength: how long the result is at least, where there is no length.
        length: how long it is, an int or a length; larger x do not count. None: one more than the
            largest x, known only at run time (not on JAX, nor under vmap), or if x is a constant.

    Returns: a vector, int64, or float64 with weights.

    Raises: ShapeError for input that is not a vector; DTypeError for non-integer input; ValueError
        for negative constants. A run raises IndexError for negative x.

    Source: numpy.bincount; jax.numpy.bincount for length.

    >>> gg.evaluate(gg.bincount([0, 1, 1, 3], length=3))
    array([1, 2, 0])
    """
    x = as_tensor(x)
    if x.ndim != 1:
        raise ShapeError(f"bincount takes a vector, got {x.type!r}")
    if kind_of(x.dtype) not in "biu":
        raise DTypeError(f"bincount takes integers, got {x.type!r}")
    if length is None and isinstance(x.node.op, Constant) and not isinstance(minlength, Length):
        length = _needed(x.node.op.value, minlength)
    inputs = _countable(cast(as_places(x), INT64), _floats(weights))
    if length is None:
        return apply(BinCountOfAll(count("minlength", minlength)), *inputs)
    return apply(BinCount(count("length", length)), *inputs)


def _needed(values: Any, minlength: int) -> int:
    """How long the counts of a constant are."""
    if values.size and values.min() < 0:
        raise ValueError(f"bincount counts integers >= 0, got {int(values.min())}")
    least: int = count("minlength", minlength)
    return builtins.max(least, int(values.max()) + 1 if values.size else 0)


def _floats(weights: TensorLike | None) -> Tensor | None:
    return None if weights is None else cast(weights, "float64")


def _countable(places: Tensor, weights: Tensor | None) -> list[Tensor]:
    """The places as a vector, with the weights of each."""
    if weights is None:
        return [flatten(places)]
    if weights.shape != places.shape:
        weights = broadcast_like(weights, places)
    return [flatten(places), flatten(weights)]


def _counts(places: Tensor, bins: Any, weights: Tensor | None) -> Tensor:
    """Sums of weights, or of ones, at places from 0 to bins; those at `bins` are left out."""
    inputs = _countable(cast(places, INT64), weights)
    if weights is None or weights.dtype == np.float64:
        return apply(BinCount(bins), *inputs)
    zeros = full(bins + 1, 0, weights.dtype)
    return scatter_add(zeros, inputs[0], inputs[1])[:bins]


# --- histograms --------------------------------------------------------------------------------


def histogram_bin_edges(
    a: TensorLike,
    bins: Any = 10,
    range: tuple[TensorLike, TensorLike] | None = None,
    weights: TensorLike | None = None,
) -> Tensor:
    """The edges of bins of equal width, from the least to the largest element, or over a range.

    Parameters:
        a: any shape; bool, integer or floating.
        bins: how many, an int or a length; or their edges, in ascending order.
        range: (least, largest); None: those of a, less and more by 0.5 where they are equal.
        weights: as in NumPy; it means nothing here.

    Returns: a vector of one edge more than there are bins.

    Raises: ValueError for known edges that do not ascend, for less than one bin, and for names of
        estimators, whose number of bins depends on values; ShapeError for edges that are not
        vector.

    Gradient: that of the ends.

    Source: numpy.histogram_bin_edges.

    >>> gg.evaluate(gg.histogram_bin_edges([1.0, 2.0, 5.0], bins=2))
    array([1., 3., 5.])
    """
    a = as_tensor(a)
    if isinstance(bins, str):
        raise ValueError(
            f"the number of bins of {bins!r} depends on values; give a number or edges"
        )
    if _are_edges(bins):
        return _given_edges(as_tensor(bins))
    number = count("bins", bins)
    if is_negative(number - 1):
        raise ValueError(f"a histogram has at least one bin, got {number}")
    low, high = _ends(a, range)
    dtype = inexact(result_dtype([low.dtype, high.dtype, a.dtype]))
    low, high = cast(low, dtype), cast(high, dtype)
    places = arange(number)
    if not at_least(number, 1):
        places = apply(EnsureLength(0, 1, "bins of a histogram"), places)
    inner = places * ((high - low) / number) + low
    return concat([cast(inner, dtype), expand_dims(high, 0)])


def _are_edges(bins: Any) -> bool:
    """Whether bins are given by their edges, not by how many they are."""
    return isinstance(bins, Tensor) or not (isinstance(bins, Length) or np.ndim(bins) == 0)


def _ends(a: Tensor, given: tuple[TensorLike, TensorLike] | None) -> tuple[Tensor, Tensor]:
    if given is None and a.type.static and 0 in a.shape:
        return constant(0.0), constant(1.0)
    if given is None:
        low, high = (as_tensor(f(a)) for f in (min, max))
    else:
        plain = is_floating(a.dtype) and all(isinstance(g, int | float) for g in given)
        low, high = (as_tensor(g, a.dtype if plain else None) for g in given)
        numbers = [t.node.op.value for t in (low, high) if isinstance(t.node.op, Constant)]
        if len(numbers) == 2 and not (np.isfinite(numbers).all() and numbers[0] <= numbers[1]):
            raise ValueError(f"the range of a histogram is (least, largest), got {given}")
    low, high = promoted(low, high, floating=True)
    same = equal(low, high)
    return where(same, low - 0.5, low), where(same, high + 0.5, high)


def _given_edges(edges: Tensor) -> Tensor:
    length = edges.shape[0] if edges.ndim == 1 else None
    if length is None or length == 0:
        raise ShapeError(
            f"edges of bins are a vector of a length that has a name, got {edges.type!r}"
        )
    op = edges.node.op
    if isinstance(op, Constant) and (op.value[1:] < op.value[:-1]).any():
        raise ValueError(f"edges of bins ascend, got {op.value.tolist()}")
    return edges


def _bin_count(edges: Tensor) -> Any:
    assert edges.shape[0] is not None
    return edges.shape[0] - 1


def _bins_of(x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """The number of the bin of each element, and whether it is in any."""
    x, edges = promoted(x, edges)
    behind = searchsorted(edges, x, side="right") - 1
    place = where(equal(x, edges[-1]), _bin_count(edges) - 1, behind)
    return place, logical_and(greater_equal(x, edges[0]), less_equal(x, edges[-1]))


def _even_bins_of(x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
    """_bins_of for bins of equal width: where arithmetic says, or next to it, as the edges say."""
    count = _bin_count(edges)
    x, edges = promoted(x, edges)
    low, high = edges[0], edges[-1]
    inside = logical_and(greater_equal(x, low), less_equal(x, high))
    x = where(inside, x, low)
    guess = cast((x - low) * (count / (high - low)), INT64)
    guess = maximum(minimum(guess, count - 1), 0)  # of edges that are no numbers, anything
    below = less(x, take(edges, guess, 0))
    above = logical_and(greater_equal(x, take(edges, guess + 1, 0)), less(guess, count - 1))
    return guess - cast(below, INT64) + cast(above, INT64), inside


def histogram(
    a: TensorLike,
    bins: Any = 10,
    range: tuple[TensorLike, TensorLike] | None = None,
    density: bool | None = None,
    weights: TensorLike | None = None,
) -> tuple[Tensor, Tensor]:
    """How many elements fall into each bin, which is closed on the left; the last on both sides.

    Parameters:
        a: any shape; bool, integer or floating. NaN falls into none.
        bins: how many of equal width; or their edges, in ascending order.
        range: where bins of equal width lie; None: from the least to the largest element.
        density: whether to divide so that the integral over the bins is 1.
        weights: the weight of each element, of the shape of a; None: 1.

    Returns: (counts, edges): int64, or the dtype of weights, or floating for a density; as of
        histogram_bin_edges.

    Raises: as histogram_bin_edges.

    Gradient: dweights = the dy of the bin that each is in; a has none through the counts.

    Source: numpy.histogram.

    >>> gg.evaluate(gg.histogram([1.0, 2.0, 1.0], bins=[0, 1, 2, 3]))
    (array([0, 2, 1]), array([0, 1, 2, 3]))
    """
    truth_if_given("density", density)
    x = as_tensor(a)
    edges = histogram_bin_edges(x, bins, range)
    even = not _are_edges(bins)
    place, inside = (_even_bins_of if even else _bins_of)(x, edges)
    count = _bin_count(edges)
    amounts = None if weights is None else as_tensor(weights)
    y = _counts(where(inside, place, count), count, amounts)
    return (y / diff(edges) / sum(y) if density else y), edges


def histogram2d(
    x: TensorLike,
    y: TensorLike,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: TensorLike | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """How many points fall into each bin of a plane.

    Parameters:
        x, y: the coordinates: vectors of one length.
        bins: how many, or their edges, for both axes; or a list of that for x and for y.
        range: where bins of equal width lie: a pair for x and one for y, or None.
        density: whether to divide so that the integral over the bins is 1.
        weights: the weight of each point; None: 1.

    Returns: (counts, edges of x, edges of y); the counts are floating.

    Raises: as histogramdd.

    Gradient: dweights = the dy of the bin that each is in.

    Source: numpy.histogram2d.

    >>> gg.evaluate(gg.histogram2d([0.0, 1.0, 1.0], [0.0, 1.0, 0.0], bins=2)[0])
    array([[1., 0.],
           [1., 1.]])
    """
    given = _listed_bins(bins)
    if len(given) not in (1, 2):
        edges = as_tensor(bins)
        given = [edges, edges]
    counts, (first, second) = histogramdd([x, y], given * (3 - len(given)), range, density, weights)
    return counts, first, second


def _listed_bins(bins: Any) -> list[Any]:
    return [bins] if isinstance(bins, Tensor | Length) or np.ndim(_plain(bins)) == 0 else list(bins)


def _plain(bins: Any) -> Any:
    return [0] if isinstance(bins, list | tuple | np.ndarray) else bins


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    density: bool | None = None,
    weights: TensorLike | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """How many points fall into each bin of a space of D dimensions.

    Parameters:
        sample: (N, D), or a list of D vectors.
        bins: how many for every dimension; or a list with a number or edges for each.
        range: where bins of equal width lie: a list with a pair or None for each dimension.
        density: whether to divide so that the integral over the bins is 1.
        weights: the weight of each point; None: 1.

    Returns: (counts, list of the edges of each dimension); the counts are floating.

    Raises: ShapeError for points of another shape, or another number of bins or ranges; else as
        histogram_bin_edges.

    Gradient: dweights = the dy of the bin that each is in.

    Source: numpy.histogramdd.

    >>> gg.evaluate(gg.histogramdd([[0.0, 1.0, 1.0], [0.0, 1.0, 0.0]], bins=2)[0])
    array([[1., 0.],
           [1., 1.]])
    """
    truth_if_given("density", density)
    columns = _columns(sample)
    dimensions = len(columns)
    given = _listed_bins(bins)
    given = given * dimensions if len(given) == 1 and not isinstance(bins, list | tuple) else given
    ranges = [None] * dimensions if range is None else list(range)
    if len(given) != dimensions or len(ranges) != dimensions:
        raise ShapeError(f"points have {dimensions} coordinates, got {len(given)} bins")
    ranges = [None if r is None else tuple(map(_double, r)) for r in ranges]
    edges = [histogram_bin_edges(c, b, r) for c, b, r in zip(columns, given, ranges, strict=True)]
    counts = [_bin_count(e) for e in edges]
    total = prod(counts)
    place: Any = 0
    inside: Any = True
    for column, e, n in zip(columns, edges, counts, strict=True):
        at, within = _bins_of(column, e)
        place, inside = place * n + at, logical_and(within, inside)
    y = _counts(where(inside, place, total), total, _floats(weights))
    y = reshape(cast(y, "float64"), tuple(counts))
    if density:
        y = y / sum(y)
        for axis, e in enumerate(edges):
            y = y / expand_dims(diff(e), tuple(builtins.range(1, dimensions - axis)))
    return y, edges


def _double(end: Any) -> Any:
    """A Python number as an array, for the edges of a space are float64 where ends are given."""
    return np.asarray(end, np.float64) if isinstance(end, int | float) else end


def _columns(sample: Any) -> list[Tensor]:
    """The coordinates of points, one vector for each dimension."""
    if isinstance(sample, list | tuple):
        columns = [as_tensor(c) for c in sample]
        if any(c.ndim != 1 for c in columns):
            raise ShapeError("points are (N, D), or a list of D vectors")
        return list(promoted(*columns)) if columns else columns
    t = as_tensor(sample)
    if t.ndim == 1:
        return [t]
    if t.ndim != 2 or not isinstance(t.shape[1], int):
        raise ShapeError(f"points are (N, D) with a known D, got {t.type!r}")
    return [t[:, i] for i in builtins.range(t.shape[1])]
