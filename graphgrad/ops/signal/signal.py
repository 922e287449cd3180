"""Signals: convolution, differences, integrals and phases along an axis."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.kinds import can_cast
from ...base.length import Length
from ...ir.types import alike, computed, lengths
from ..arrays.differences import diff
from ..base import (
    NO_GRAD,
    Any,
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
    as_tensor,
    cast,
    inexact,
    is_floating,
    kind_of,
    like,
    np,
    promoted,
    result_dtype,
    tensor_type,
    wants,
)
from ..documented import documented
from ..elementwise.complex_parts import conj
from ..elementwise.logic import equal, greater, less, logical_and, where
from ..elementwise.magnitudes import abs
from ..elementwise.remainders import remainder
from ..reduce.cumulative import cumsum
from ..reduce.reductions import sum
from ..shape.joining import concat
from ..shape.padding import Flip, Pad, flip
from ..shape.reshaping import distinct_axes, flatten, normal_axis, reshape

__all__ = ["convolve", "correlate", "ediff1d", "gradient", "trapezoid", "unwrap"]

MODES = ("full", "same", "valid")


# --- convolution -------------------------------------------------------------------------------


class Convolve(Op):
    """y[k] = sum of a[i] v[k - i], along the last axis; the axes before are those of a stack.

    Gradient: da[i] = sum of dy[k] v[k - i], dv accordingly.

    mode  "full": every k for which there is a term; "valid": for which no term is missing; "same":
          as many as the longer of a and v has, in the middle
    """

    mode: str
    linear = "each"
    stacks = True

    def infer(self, a: TensorType, v: TensorType) -> Types:
        stacks = [tensor_type(t.shape[:-1], t.dtype) for t in (a, v)]
        stack = alike(*stacks) if a.shape and v.shape else None
        if stack is None:
            raise ShapeError(f"convolve takes two vectors of one dtype, got {a!r} and {v!r}")
        if 0 in (a.shape[-1], v.shape[-1]):
            raise ShapeError(f"convolve of {a!r} and {v!r}: one of them is empty")
        m, n = a.shape[-1], v.shape[-1]
        length = computed(self._length, m, n)
        return (tensor_type((*stack.shape, length), a.dtype),)

    def _length(self, m: Any, n: Any) -> Any:
        longest = Length.max(m, n)
        valid = longest - Length.min(m, n) + 1
        return {"full": m + n - 1, "same": longest, "valid": valid}[self.mode]

    def kernel(self, xp: Any, a: Any, v: Any) -> Any:
        mode = self.mode
        y = _rowwise(xp, lambda x, w: xp.convolve(x, w, mode=mode), a, v)
        return xp.asarray(y, dtype=a.dtype)

    def to_onnx(self, to: Any, a: Any, v: Any) -> Any:
        """A convolution with a channel for each row; of integers, products of neighbours."""
        if not (a.static and v.static):
            return None
        m, n = a.shape[-1], v.shape[-1]
        if n > m:
            a, v, m, n = v, a, n, m
        rows = int(np.prod(a.shape[:-1]))
        low, high = {"full": (n - 1, n - 1), "valid": (0, 0), "same": (n // 2, (n - 1) // 2)}[
            self.mode
        ]
        turned, count = to.apply(Flip((v.rank - 1,)), v), m + low + high - n + 1
        if is_floating(a.dtype):
            image, filters = to.reshape(a, 1, rows, m), to.reshape(turned, rows, 1, n)
            y = to.Conv(image, filters, group=rows, pads=[low, high])
            return to.reshape(y, *a.shape[:-1], count)
        widths = [0] * (a.rank - 1)
        places = np.arange(count)[:, None] + np.arange(n)
        parts = to.Gather(to.Pad(a, [*widths, low, *widths, high]), places, axis=a.rank - 1)
        return to.ReduceSum(to.Mul(parts, to.Unsqueeze(turned, [-2])), [-1], keepdims=0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        a, v = node.inputs
        back = Unconvolve(self.mode)
        return (
            apply(back, dy, v, a) if wants(a) else NO_GRAD,
            apply(back, dy, a, v) if wants(v) else NO_GRAD,
        )

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each product of an element of a and one of v."""
        a, v = map(lengths, inputs)
        return 2 * int(np.prod(a)) * v[-1]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls("full"), [rng.normal(size=(4,)), rng.normal(size=(3,))]
        yield cls("same"), [rng.normal(size=(3,)), rng.normal(size=(4,))]
        yield cls("valid"), [rng.normal(size=(2, 5)), rng.normal(size=(2, 2))]
        yield cls("valid"), [rng.normal(size=(2,)), rng.normal(size=(5,))]
        yield cls("full"), [np.arange(3), np.arange(2)]


class Unconvolve(Op):
    """The adjoint of convolving x with v: dx[i] = sum of dy[k] v[k - i].

    Gradient: ddy = x' convolved with v; dv = its adjoint for x'.

    Inputs: dy, v, and x, of which the shape is read.
    """

    mode: str
    linear = "each"
    shape_only = (2,)
    stacks = True

    def infer(self, dy: TensorType, v: TensorType, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, dy: Any, v: Any, x: Any) -> Any:
        n, m, mode = x.shape[-1], v.shape[-1], self.mode

        def row(g: Any, w: Any) -> Any:
            before = missing(mode, n, m)
            after = n + m - 1 - before - g.shape[0]
            whole = xp.concatenate(
                [xp.zeros(before, dtype=g.dtype), g, xp.zeros(after, dtype=g.dtype)]
            )
            return xp.convolve(whole, w[::-1], mode="valid")

        return xp.asarray(_rowwise(xp, row, dy, v), dtype=x.dtype)

    def to_onnx(self, to: Any, dy: Any, v: Any, x: Any) -> Any:
        if not (dy.static and v.static and x.static):
            return None
        n, m = x.shape[-1], v.shape[-1]
        before = missing(self.mode, n, m)
        after = n + m - 1 - before - dy.shape[-1]
        whole = to.apply(Pad(((0, 0),) * (dy.rank - 1) + ((before, after),)), dy)
        return to.apply(Convolve("valid"), whole, to.apply(Flip((v.rank - 1,)), v))

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        dy, v, _ = node.inputs
        return (
            apply(Convolve(self.mode), dx, v) if wants(dy) else NO_GRAD,
            apply(Unconvolve(self.mode), dy, dx, v) if wants(v) else NO_GRAD,
            NO_GRAD,
        )

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each product of an element of x and one of v."""
        x, v = lengths(outputs[0]), lengths(inputs[1])
        return 2 * int(np.prod(x)) * v[-1]

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls("full"), [rng.normal(size=(n,)) for n in (6, 3, 4)]
        yield cls("same"), [rng.normal(size=(n,)) for n in (4, 2, 4)]
        yield cls("valid"), [rng.normal(size=(2, n)) for n in (3, 4, 2)]


def missing(mode: str, n: int, m: int) -> int:
    """How many places of the full convolution of n and m places stand before those of a mode."""
    return {"full": 0, "same": (min(n, m) - 1) // 2, "valid": min(n, m) - 1}[mode]


def _rowwise(xp: Any, fn: Any, a: Any, v: Any) -> Any:
    """fn of two vectors, or of every pair of rows."""
    if a.ndim == 1:
        return fn(a, v)
    if 0 in a.shape[:-1]:
        length = fn(xp.zeros(a.shape[-1:], a.dtype), xp.zeros(v.shape[-1:], v.dtype)).shape[0]
        return xp.zeros((*a.shape[:-1], length), a.dtype)
    return xp.vectorize(fn, signature="(n),(m)->(k)")(a, v)


@documented(Convolve)
def convolve(a: TensorLike, v: TensorLike, mode: str = "full") -> Tensor:
    """Convolution of two vectors: y[k] = sum of a[i] v[k - i].

    Parameters:
        a, v: vectors; any dtypes.
        mode: "full": every k for which there is a term; "valid": for which no term is missing;
            "same": as many as the longer of a and v has, in the middle.

    Returns: a vector, of the promoted dtype.

    Raises: ShapeError for input that is not a vector, or empty; ValueError for an unknown mode.

    Source: numpy.convolve.

    >>> gg.evaluate([gg.convolve([1, 2, 3], [1, 1], mode) for mode in ("full", "valid")])
    [array([1, 3, 5, 3]), array([3, 5])]
    """
    a, v = _vectors("convolve", a, v, mode)
    return apply(Convolve(mode), a, v)


def correlate(a: TensorLike, v: TensorLike, mode: str = "valid") -> Tensor:
    """Correlation of two vectors: y[k] = sum of a[k + i] conj(v[i]).

    Parameters:
        a, v: vectors; any dtypes.
        mode: "full": every k for which there is a term; "valid": for which no term is missing;
            "same": as many as the longer of a and v has, in the middle.

    Returns: a vector, of the promoted dtype.

    Raises: ShapeError for input that is not a vector, or empty, or for "same" of unknown lengths;
        ValueError for an unknown mode.

    Gradient: da[k + i] = sum of dy[k] conj(v[i]), dv accordingly.

    Source: numpy.correlate.

    >>> gg.evaluate(gg.correlate([1, 2, 3], [0, 1, 0.5], "full"))
    array([0.5, 2. , 3.5, 3. , 0. ])
    """
    a, v = _vectors("correlate", a, v, mode)
    n, m = a.shape[0], v.shape[0]
    if mode == "same" and not (isinstance(n, int) and isinstance(m, int)):
        raise ShapeError(f"correlate of {a.type!r} and {v.type!r}: which is longer is not known")
    if mode == "same" and n < m:  # type: ignore[operator]
        return flip(apply(Convolve(mode), conj(v), flip(a)))
    return apply(Convolve(mode), a, flip(conj(v)))


def _vectors(who: str, a: TensorLike, v: TensorLike, mode: str) -> tuple[Tensor, ...]:
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} of {who}; there are {', '.join(MODES)}")
    a, v = (reshape(t, (1,)) if t.ndim == 0 else t for t in promoted(a, v))
    if a.ndim != 1 or v.ndim != 1:
        raise ShapeError(f"{who} takes two vectors, got {a.type!r} and {v.type!r}")
    return a, v


# --- differences and integrals -----------------------------------------------------------------


def ediff1d(
    ary: TensorLike, to_end: TensorLike | None = None, to_begin: TensorLike | None = None
) -> Tensor:
    """Differences of neighbours of the flattened ary: y[k] = ary[k + 1] - ary[k].

    Parameters:
        ary: any shape and dtype but bool.
        to_end, to_begin: what stands behind and before the differences, flattened.

    Returns: a vector of the dtype of ary.

    Raises: DTypeError for bools, and for ends of a dtype that ary does not hold.

    Gradient: dary[k] = dy[k - 1] - dy[k].

    Source: numpy.ediff1d.

    >>> gg.evaluate(gg.ediff1d([1, 2, 4], to_begin=0))
    array([0, 1, 2])
    """
    x = flatten(ary)
    if kind_of(x.dtype) == "b":
        raise DTypeError(f"ediff1d takes numbers, got {x.type!r}; use gg.diff")
    parts = [_end(to_begin, x), diff(x), _end(to_end, x)]
    return concat([p for p in parts if p is not None], 0)


def _end(values: TensorLike | None, x: Tensor) -> Tensor | None:
    if values is None:
        return None
    end = flatten(as_tensor(values))
    if not can_cast(end.dtype, x.dtype, "same_kind"):
        raise DTypeError(f"ediff1d of {x.type!r} cannot be joined to ends of {end.type!r}")
    return cast(end, x.dtype)


def gradient(f: TensorLike, /, *varargs: TensorLike, axis: Any = None, edge_order: int = 1) -> Any:
    """Numerical derivative along axes, by central differences, one-sided at the ends.

    This differentiates sampled values; gg.gradients differentiates a graph.

    Parameters:
        f: samples, of any shape; ints become float64.
        *varargs: how samples are spaced: nothing for 1, a number for all axes, or for each axis a
            number or a vector of the places.
        axis: an int, several in a tuple, or None for all of them.
        edge_order: 1 or 2: of how high an order the difference at the ends is exact.

    Returns: the derivative, of the shape of f; a tuple of them for several axes.

    Raises: ShapeError if f has no such axis, or fewer than edge_order + 1 elements along it, or for
        spacings that do not fit; ValueError for another edge_order.

    Gradient: that of the differences, which are linear in f; the spacings have theirs.

    Source: numpy.gradient; Fornberg 1988, "Generation of finite difference formulas on arbitrarily
        spaced grids".

    >>> gg.evaluate(gg.gradient([1.0, 2.0, 4.0, 7.0]))
    array([1. , 1.5, 2.5, 3. ])
    """
    f = as_tensor(f)
    f = cast(f, inexact(f.dtype))
    if edge_order not in (1, 2):
        raise ValueError(f"edge_order is 1 or 2, got {edge_order!r}")
    axes = tuple(range(f.ndim)) if axis is None else distinct_axes(axis, f.ndim)
    spacings = [like(h, f) for h in varargs or (1.0,)]
    if len(spacings) == 1 and spacings[0].ndim == 0:
        spacings *= len(axes)
    if len(spacings) != len(axes):
        raise ShapeError(f"gradient along {len(axes)} axes takes as many spacings: {len(spacings)}")
    derivatives = [_slope(f, a, h, edge_order) for a, h in zip(axes, spacings, strict=True)]
    return derivatives[0] if len(derivatives) == 1 else tuple(derivatives)


def _slope(f: Tensor, axis: int, h: Tensor, edge_order: int) -> Tensor:
    length = f.shape[axis]
    if isinstance(length, int) and length < edge_order + 1:
        raise ShapeError(f"gradient of {f.type!r} along axis {axis}: too few elements")
    before = (slice(None),) * axis

    def at(start: Any, stop: Any) -> Tensor:
        return f[(*before, slice(start, stop))]

    if h.ndim:
        return _uneven_slope(f, at, axis, h, edge_order)
    middle = (at(2, None) - at(None, -2)) / (2 * h)
    if edge_order == 1:
        first, last = (at(1, 2) - at(0, 1)) / h, (at(-1, None) - at(-2, -1)) / h
    else:
        first = (-1.5 * at(0, 1) + 2 * at(1, 2) - 0.5 * at(2, 3)) / h
        last = (0.5 * at(-3, -2) - 2 * at(-2, -1) + 1.5 * at(-1, None)) / h
    return concat([first, middle, last], axis)


def _uneven_slope(f: Tensor, at: Any, axis: int, places: Tensor, edge_order: int) -> Tensor:
    """The same between places that have other distances."""
    if places.ndim != 1:
        raise ShapeError(f"the places of samples are a vector, got {places.type!r}")
    steps = reshape(diff(places), (*(1,) * axis, -1, *(1,) * (f.ndim - axis - 1)))
    before = (slice(None),) * axis

    def step(start: Any, stop: Any) -> Tensor:
        return steps[(*before, slice(start, stop))]

    h, k = step(None, -1), step(1, None)
    a, b, c = -k / (h * (h + k)), (k - h) / (h * k), h / (k * (h + k))
    middle = a * at(None, -2) + b * at(1, -1) + c * at(2, None)
    if edge_order == 1:
        first = (at(1, 2) - at(0, 1)) / step(0, 1)
        last = (at(-1, None) - at(-2, -1)) / step(-1, None)
        return concat([first, middle, last], axis)
    h, k = step(0, 1), step(1, 2)
    a, b, c = -(2 * h + k) / (h * (h + k)), (h + k) / (h * k), -h / (k * (h + k))
    first = a * at(0, 1) + b * at(1, 2) + c * at(2, 3)
    h, k = step(-2, -1), step(-1, None)
    a, b, c = k / (h * (h + k)), -(k + h) / (h * k), (2 * k + h) / (k * (h + k))
    last = a * at(-3, -2) + b * at(-2, -1) + c * at(-1, None)
    return concat([first, middle, last], axis)


def trapezoid(
    y: TensorLike, x: TensorLike | None = None, dx: TensorLike = 1.0, axis: int = -1
) -> Tensor:
    """Integral along an axis by the trapezoidal rule: sum of (x[k+1] - x[k]) (y[k] + y[k+1]) / 2.

    Parameters:
        y: samples, at least one axis.
        x: their places: a vector for the axis, or of a shape that broadcasts with y.
        dx: the distance of the places where x is not given.
        axis: an int.

    Returns: y without the axis.

    Raises: ShapeError if y has no such axis, or x does not broadcast.

    Gradient: that of the sum, for y, x and dx.

    Source: numpy.trapezoid.

    >>> gg.evaluate(gg.trapezoid([1.0, 2.0, 3.0], dx=2.0))
    array(8.)
    """
    y = as_tensor(y)
    axis = normal_axis(axis, y.ndim)
    before = (slice(None),) * axis
    width: Any = dx if isinstance(dx, int | float) else as_tensor(dx)
    if x is not None:
        places = as_tensor(x)
        if places.ndim == 1:
            width = reshape(diff(places), (-1, *(1,) * (y.ndim - axis - 1)))
        else:
            width = diff(places, axis=normal_axis(axis - y.ndim, places.ndim))
    both = y[(*before, slice(1, None))] + y[(*before, slice(None, -1))]
    return sum(width * both / 2.0, axis)


def unwrap(
    p: TensorLike,
    discont: float | None = None,
    axis: int = -1,
    *,
    period: float = 6.283185307179586,
) -> Tensor:
    """Phases along an axis without jumps: multiples of the period are added where one is too large.

    Parameters:
        p: at least one axis; integer or floating.
        discont: how large a jump has to be at least; None: half a period, which is the least.
        axis: an int.
        period: after which phases repeat.

    Returns: shape of p; an integer p stays so for an integer period.

    Raises: ShapeError if p has no such axis; DTypeError if p is complex.

    Gradient: dp = dy: what is added is constant.

    Source: numpy.unwrap.

    >>> gg.evaluate(gg.unwrap([0, 1, 2, -1, 0], period=4))
    array([0, 1, 2, 3, 4])
    """
    p = as_tensor(p)
    axis = normal_axis(axis, p.ndim)
    step = diff(p, axis=axis)
    exact = kind_of(p.dtype) in "iu" and isinstance(period, int)
    if not exact:
        step = cast(step, inexact(step.dtype))
    half: Any = period // 2 if exact else period / 2
    even = not exact or period % 2 == 0
    low, high = -half, half if even else half + 1
    moved = remainder(step - low, like(period, step)) + low
    if even:  # on the edge, a jump keeps its sign
        moved = where(logical_and(equal(moved, low), greater(step, 0)), like(high, moved), moved)
    least = max(half, 0 if discont is None else discont)
    correction = where(less(abs(step), least), like(0, step), moved - step)
    before = (slice(None),) * axis
    p = cast(p, result_dtype([p.dtype, step.dtype]))
    rest = p[(*before, slice(1, None))] + cumsum(correction, axis)
    return concat([p[(*before, slice(None, 1))], rest], axis)
