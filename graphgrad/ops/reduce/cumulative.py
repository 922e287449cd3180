"""Cumulative sums and products along an axis."""

from __future__ import annotations

from ...base.errors import ShapeError
from ...base.flags import truth
from ...ir.types import alike, elements
from ..base import (
    NO_GRAD,
    Any,
    Derivative,
    DTypeError,
    Gradients,
    Memory,
    Node,
    OnesLike,
    Onnx,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    as_tensor,
    cast,
    is_floating,
    kind_of,
    np,
    promoted,
    rounded_once,
    wants,
)
from ..documented import documented
from ..elementwise.arithmetic import multiply
from ..elementwise.exponential import LOGADDEXP, exp
from ..elementwise.logic import equal, where
from ..onnx_loops import along, filled_beside
from ..shape.padding import Pad
from ..shape.reshaping import flatten, normal_axis

__all__ = ["cumprod", "cumsum", "cumulative_logsumexp", "cumulative_prod", "cumulative_sum"]


class Cumulative(Op, abstract=True):
    """Family: y[k] made of x[0] to x[k] along an axis.

    reverse    from x[k] to the last instead
    exclusive  without x[k]
    """

    axis: int
    reverse: bool = False
    exclusive: bool = False
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        if self.axis >= len(x.shape):
            raise ShapeError(f"{self.type} along axis {self.axis} of {x!r}")
        return (x,)

    def run(self, xp: Any, x: Any, accumulate: Any, neutral: int) -> Any:
        """The value, by the accumulation of the array namespace."""
        if self.exclusive:
            x = _shifted(xp, x, self.axis, -1 if self.reverse else 1, neutral)
        x = xp.flip(x, axis=self.axis) if self.reverse else x
        y = accumulate(x, axis=self.axis, dtype=x.dtype)
        return xp.flip(y, axis=self.axis) if self.reverse else y

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """One for each element of x."""
        return elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.uniform(*cls.domain, size=(4,))]
        yield cls(1, True), [rng.uniform(*cls.domain, size=(2, 3))]
        yield cls(0, False, True), [rng.uniform(*cls.domain, size=(3, 2))]
        yield cls(0, True, True), [rng.uniform(*cls.domain, size=(3,)).astype("float32")]
        yield cls(1), [rng.uniform(*cls.domain, size=(2, 0))]


class CumSum(Cumulative):
    """y[k] = x[0] + ... + x[k] along an axis. Gradient: dx[k] = dy[k] + ... + dy[last]."""

    onnx = Onnx("CumSum")
    linear = "joint"

    def kernel(self, xp: Any, x: Any) -> Any:
        return self.run(xp, x, xp.cumsum, 0)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.CumSum(x, np.int64(self.axis), exclusive=self.exclusive, reverse=self.reverse)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(CumSum(self.axis, not self.reverse, self.exclusive), dy),)


class CumProd(Cumulative):
    """y[k] = x[0] * ... * x[k] along an axis.

    Gradient: dx[k] = e[k] * y[k - 1] with e[k] = dy[k] + x[k + 1] * e[k + 1]: no division, so
        right where x is 0.
    """

    def kernel(self, xp: Any, x: Any) -> Any:
        return self.run(xp, x, xp.cumprod, 1)

    def to_onnx(self, to: Any, x: Any) -> Any:

        def step(to: Any, so_far: Any, row: Any) -> Any:
            made = to.Mul(so_far, row)
            return made, so_far if self.exclusive else made

        first = filled_beside(to, x, self.axis, 1)
        return along(to, step, first, (x,), self.axis, self.reverse)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, (y,) = node.inputs[0], node.outputs
        step = -1 if not self.reverse else 1
        recur = Recurrence(self.axis, not self.reverse)
        if self.exclusive:
            arrived = apply(recur, dy, x)
            return (multiply(apply(Shift(self.axis, step), arrived), y),)
        before = apply(CumProd(self.axis, self.reverse, True), x)
        return (multiply(apply(recur, dy, apply(Shift(self.axis, step), x)), before),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield from super().samples(rng)
        yield cls(0), [np.array([2.0, 0.0, 3.0, 0.0, 5.0])]
        yield cls(0, True, True), [np.array([2.0, 0.0, 3.0])]


class CumLogSumExp(Op):
    """y[k] = log(exp(x[0]) + ... + exp(x[k])) along an axis, without overflow.

    Gradient: dx[k] = the sum of dy[j] * exp(x[k] - y[j]) over j >= k; 0 where y[j] is -inf.

    reverse  from x[k] to the last instead

    The sum is exp(x[k] - y[k]) * h[k] with h[k] = dy[k] + exp(y[k] - y[k + 1]) * h[k + 1]: no
    exponent is above 0.
    """

    axis: int
    reverse: bool = False
    memory = Memory(view=True)
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        if not is_floating(x.dtype):
            raise DTypeError(f"CumLogSumExp takes real floating operands, got {x!r}")
        if self.axis >= len(x.shape):
            raise ShapeError(f"{self.type} along axis {self.axis} of {x!r}")
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        """In log2(n) steps that each double the reach."""
        reach = 1
        while reach < x.shape[self.axis]:
            by = -reach if self.reverse else reach
            x = xp.logaddexp(x, _shifted(xp, x, self.axis, by, -np.inf))
            reach *= 2
        return x

    def to_onnx(self, to: Any, x: Any) -> Any:

        def step(to: Any, so_far: Any, row: Any) -> Any:
            made = to.apply(LOGADDEXP, so_far, row)
            return made, made

        first = filled_beside(to, x, self.axis, -np.inf)
        return along(to, step, first, (x,), self.axis, self.reverse)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,), (y,) = node.inputs, node.outputs
        after = _moved(y, self.axis, 1 if self.reverse else -1, y)
        arrived = apply(Recurrence(self.axis, not self.reverse), dy, _exp_of_gap(y, after))
        return (multiply(_exp_of_gap(x, y), arrived),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Four for each element of x."""
        return 4 * elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(4,))]
        yield cls(1, True), [rng.normal(size=(2, 3))]
        yield cls(0), [rng.normal(size=(3, 2)).astype("float32")]
        yield cls(1), [rng.normal(size=(2, 0))]


def _moved(x: Tensor, axis: int, by: int, fill: TensorLike) -> Tensor:
    """x moved by places along an axis, with fill where nothing came from."""
    filled = equal(apply(Shift(axis, by), apply(OnesLike(), x)), 0)
    return where(filled, fill, apply(Shift(axis, by), x))


def _exp_of_gap(x: Tensor, y: Tensor) -> Tensor:
    """exp(x - y) of an x that is no greater; 0 where both are -inf."""
    return exp(x - where(equal(y, -np.inf), 0, y))


class Shift(Op):
    """y[k] = x[k - by] along an axis, 0 where there is none. Gradient: dx = dy shifted back."""

    axis: int
    by: int
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return _shifted(xp, x, self.axis, self.by, 0)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """Zeros on one side, and as many places of the other side less."""
        front, by = [0] * x.rank, abs(self.by)
        if by:
            start, end = (0, -by) if self.by > 0 else (by, np.iinfo(np.int64).max)
            front[self.axis] = by
            zeros = [0] * x.rank
            pads = [*front, *zeros] if self.by > 0 else [*zeros, *front]
            padded = to.Pad(to.Slice(x, [start], [end], [self.axis]), pads)
            x = to.Slice(padded, [0], to.length(x, self.axis), [self.axis])
        return to.Identity(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(Shift(self.axis, -self.by), dy),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0, 1), [rng.normal(size=(3,))]
        yield cls(1, -1), [rng.normal(size=(2, 3))]
        yield cls(0, 2), [rng.normal(size=(1, 2))]


class Recurrence(Op):
    """y[k] = b[k] + c[k] * y[k - 1] along an axis; c[0] does not matter.

    Gradient: a recurrence the other way: db[k] = dy[k] + c[k + 1] * db[k + 1] and dc[k] = db[k]
        * y[k - 1].

    reverse  y[k] = b[k] + c[k] * y[k + 1]; the last of c does not matter

    Computed in log2(n) steps that each double the reach [Blelloch 1990, "Prefix sums and their
    applications", sec. 1.4].
    """

    axis: int
    reverse: bool = False
    memory = Memory(view=True)
    linear = (0,)
    axis_attrs = ("axis",)

    def infer(self, b: TensorType, c: TensorType) -> Types:
        made = alike(b, c)
        if made is None:
            raise ShapeError(f"a recurrence takes two of one type, got {b!r} and {c!r}")
        return (made,)

    def kernel(self, xp: Any, b: Any, c: Any) -> Any:
        if self.reverse:
            b, c = xp.flip(b, axis=self.axis), xp.flip(c, axis=self.axis)
        reach = 1
        while reach < b.shape[self.axis]:
            first, rest = _cut(b, self.axis, reach), _cut(b, self.axis, reach, None)
            factor = _cut(c, self.axis, reach, None)
            reached = _cut(b, self.axis, -reach)
            # products of c may overflow where there is nothing to multiply
            rest = rest + xp.where(reached == 0, reached, factor * reached)
            b = xp.concatenate([first, rest], axis=self.axis)
            parts = [_cut(c, self.axis, reach), factor * _cut(c, self.axis, -reach)]
            c = xp.concatenate(parts, axis=self.axis)
            reach *= 2
        return xp.flip(b, axis=self.axis) if self.reverse else b

    def to_onnx(self, to: Any, b: Any, c: Any) -> Any:
        """A loop that carries y; nothing where it is 0, whatever c is, as at the first place."""

        def step(to: Any, y: Any, b: Any, c: Any) -> Any:
            made = to.Add(b, to.Where(to.Equal(y, 0.0), y, to.Mul(c, y)))
            return made, made

        first = filled_beside(to, b, self.axis, 0)
        return along(to, step, first, (b, c), self.axis, self.reverse)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        c, (y,) = node.inputs[1], node.outputs
        step = 1 if self.reverse else -1
        shifted = apply(Shift(self.axis, step), c)
        db = apply(Recurrence(self.axis, not self.reverse), dy, shifted)
        if not wants(c):
            return db, NO_GRAD
        return db, multiply(db, apply(Shift(self.axis, -step), y))

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Two for each element of x."""
        return 2 * elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(0), [rng.normal(size=(5,)), rng.normal(size=(5,))]
        yield cls(1, True), [rng.normal(size=(2, 4)), rng.normal(size=(2, 4))]
        yield cls(0), [rng.normal(size=(0,)), rng.normal(size=(0,))]


def _cut(x: Any, axis: int, *ends: int | None) -> Any:
    return x[(slice(None),) * axis + (slice(*ends),)]


def _shifted(xp: Any, x: Any, axis: int, by: int, fill: float) -> Any:
    """x moved by places along an axis, with fill where nothing came from."""
    edge = xp.full((*x.shape[:axis], abs(by), *x.shape[axis + 1 :]), fill, dtype=x.dtype)
    parts, start = ([edge, x], 0) if by > 0 else ([x, edge], -by)
    return _cut(xp.concatenate(parts, axis=axis), axis, start, start + x.shape[axis])


@documented(CumSum)
def cumulative_sum(
    x: TensorLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Running sum along an axis: y[k] = x[0] + ... + x[k].

    Parameters:
        x: any shape and dtype; small ints and bools are summed as 64 bits.
        axis: an int; may be left out for one-dimensional x.
        dtype: the dtype that x is cast to first.
        include_initial: whether to begin with 0, so that the result is one longer.

    Returns: shape of x, but for include_initial.

    Raises: ShapeError if x has no such axis, or more than one and none is given; DTypeError if
        dtype would drop the imaginary part.

    Source: the array API standard, cumulative_sum.

    >>> gg.evaluate(gg.cumulative_sum([1, 2, 3], include_initial=True))
    array([0, 1, 3, 6])
    """
    truth("include_initial", include_initial)
    x, axis = _prepared(x, axis, dtype)
    return _accumulated(CumSum, x, axis, 0 if include_initial else None)


@documented(CumProd)
def cumulative_prod(
    x: TensorLike, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """Running product along an axis: y[k] = x[0] * ... * x[k].

    Parameters:
        x: any shape and dtype; small ints and bools are multiplied as 64 bits.
        axis: an int; may be left out for one-dimensional x.
        dtype: the dtype that x is cast to first.
        include_initial: whether to begin with 1, so that the result is one longer.

    Returns: shape of x, but for include_initial.

    Raises: ShapeError if x has no such axis, or more than one and none is given; DTypeError if
        dtype would drop the imaginary part.

    Source: the array API standard, cumulative_prod.

    >>> gg.evaluate(gg.cumulative_prod([1, 2, 3, 4]))
    array([ 1,  2,  6, 24])
    """
    truth("include_initial", include_initial)
    x, axis = _prepared(x, axis, dtype)
    return _accumulated(CumProd, x, axis, 1 if include_initial else None)


@documented(CumSum)
def cumsum(x: TensorLike, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Running sum along an axis: y[k] = x[0] + ... + x[k].

    Parameters:
        x: any shape and dtype; small ints and bools are summed as 64 bits.
        axis: an int, or None for the flattened x.
        dtype: the dtype that x is cast to first.

    Returns: shape of x, or of the flattened x.

    Raises: ShapeError if x has no such axis; DTypeError if dtype would drop the imaginary part.

    Source: numpy.cumsum.

    >>> gg.evaluate(gg.cumsum([[1, 2], [3, 4]], axis=1))
    array([[1, 3],
           [3, 7]])
    """
    x = as_tensor(x)
    return cumulative_sum(flatten(x) if axis is None else x, axis=axis, dtype=dtype)


def cumprod(x: TensorLike, axis: int | None = None, dtype: Any = None) -> Tensor:
    """Running product along an axis: y[k] = x[0] * ... * x[k].

    Parameters:
        x: any shape and dtype; small ints and bools are multiplied as 64 bits.
        axis: an int, or None for the flattened x.
        dtype: the dtype that x is cast to first.

    Returns: shape of x, or of the flattened x.

    Raises: ShapeError if x has no such axis; DTypeError if dtype would drop the imaginary part.

    Gradient: as of cumulative_prod, right where x is 0.

    Source: numpy.cumprod.

    >>> x = gg.constant([2.0, 0.0, 3.0])
    >>> gg.evaluate([gg.cumprod(x), *gg.gradients([gg.cumprod(x)], [x])])
    [array([2., 0., 0.]), array([1., 8., 0.])]
    """
    x = as_tensor(x)
    return cumulative_prod(flatten(x) if axis is None else x, axis=axis, dtype=dtype)


@documented(CumLogSumExp)
def cumulative_logsumexp(
    x: TensorLike, axis: int | None = None, *, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """Running log(sum(exp(x))) along an axis, without overflow.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        axis: an int, or None for the flattened x.
        exclusive: whether y[k] is made of what is before x[k] alone: the first is -inf.
        reverse: whether to begin at the last element.

    Returns: y, of the shape of x, or of the flattened x; -inf where all of x are -inf so far.

    Raises: ShapeError if x has no such axis; DTypeError for complex x.

    Source: tf.math.cumulative_logsumexp; jax.lax.cumlogsumexp.

    >>> gg.evaluate(gg.cumulative_logsumexp([999.0, 999.0, 1000.0])).round(4)
    array([ 999.    ,  999.6931, 1000.5514])
    """
    (x,) = promoted(x, floating=True)
    x = flatten(x) if axis is None else x
    axis = normal_axis(0 if axis is None else axis, x.ndim)
    if truth("exclusive", exclusive):
        x = _moved(x, axis, -1 if truth("reverse", reverse) else 1, -np.inf)
    op = CumLogSumExp(axis, truth("reverse", reverse))
    return rounded_once(lambda x: apply(op, x), x)


def _prepared(x: TensorLike, axis: int | None, dtype: Any) -> tuple[Tensor, int]:
    """x in the dtype to add up in: as asked for, else small ints and bools as 64 bits."""
    x = as_tensor(x)
    if axis is None and x.ndim != 1:
        raise ShapeError(f"of {x.type!r}, give the axis along which to accumulate")
    if dtype is not None:
        x = cast(x, dtype)
    elif kind_of(x.dtype) in "biu":
        x = cast(x, "uint64" if kind_of(x.dtype) == "u" else "int64")
    return x, normal_axis(0 if axis is None else axis, x.ndim)


def _accumulated(op: type[Cumulative], x: Tensor, axis: int, initial: int | None) -> Tensor:
    if initial is not None:
        widths = tuple((1 if i == axis else 0, 0) for i in range(x.ndim))
        x = apply(Pad(widths, initial), x)
    return apply(op(axis), x)
