"""Softmax and its logarithm."""

from __future__ import annotations

from ...base.domains import POSITIVE
from ...base.flags import truth
from ...base.kinds import limits_of
from ...ir.types import elements
from .. import special
from ..base import (
    Any,
    Derivative,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Traits,
    Types,
    apply,
    is_floating,
    np,
    promoted,
)
from ..documented import documented
from ..elementwise.arithmetic import DIVIDE, SUBTRACT, negative
from ..elementwise.exponential import EXP, LOG, exp, log
from ..elementwise.logic import where
from ..making import Making
from ..random import uniform
from ..reduce.reductions import ReduceMax, ReduceSum, argmax, normal_axes
from ..shape.reshaping import normal_axis
from ..sources import stop_gradient
from .classes import OneHotLike
from .operands import real_operands

__all__ = ["gumbel_softmax", "log_softmax", "softmax", "softmin"]


class Softmax(Op):
    """y = exp(x) / sum of exp(x) along an axis, without overflow.

    Gradient: dx = y * (dy - sum(dy * y)), the sum over the axes.
    """

    axis: int
    onnx = Onnx("Softmax", axis="axis")
    traits = Traits(value_range=(0.0, 1.0), guards=True)
    derivative = Derivative(relevance="taylor")
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        if not is_floating(x.dtype) or not 0 <= self.axis < len(x.shape):
            raise DTypeError(f"{self!r} takes a floating tensor with that axis, got {x!r}")
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        e = xp.exp(x - xp.max(x, axis=self.axis, keepdims=True, initial=-np.inf))
        return e / xp.sum(e, axis=self.axis, keepdims=True)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (y * (dy - apply(ReduceSum((self.axis,), True), dy * y)),)

    def decompose(self, make: Making) -> Tensor | None:
        _, e, total = exponentials(make, make.inputs[0], self.axis)
        return make(DIVIDE, e, total)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Five for each element."""
        return 5 * elements(outputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for axis, shape in [(0, (3,)), (1, (2, 3)), (0, (2, 3)), (1, (2, 3, 2)), (0, (2, 0))]:
            yield cls(axis), [rng.normal(size=shape)]
        yield cls(1), [rng.normal(size=(2, 0))]
        yield cls(1), [rng.normal(size=(2, 3)).astype("float32")]


class LogSoftmax(Softmax):
    """y = log(softmax(x)) along an axis, without overflow.

    Gradient: dx = dy - exp(y) * sum(dy), the sum over the axes.
    """

    onnx = Onnx("LogSoftmax", axis="axis")

    def kernel(self, xp: Any, x: Any) -> Any:
        return log_softmax_of(xp, x, self.axis)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy - exp(y) * apply(ReduceSum((self.axis,), True), dy),)

    def decompose(self, make: Making) -> Tensor | None:
        return decomposed_log_softmax(make, self.axis)


def log_softmax_of(xp: Any, x: Any, axis: int) -> Any:
    shifted = x - xp.max(x, axis=axis, keepdims=True, initial=-np.inf)
    total = xp.sum(xp.exp(shifted), axis=axis, keepdims=True)
    return shifted - (xp.log(total) if x.shape[axis] else total)


def exponentials(make: Making, x: Tensor, axis: int) -> tuple[Tensor, Tensor, Tensor]:
    """x less its largest along an axis; e to that; the sum of these."""
    shifted = make(SUBTRACT, x, make(ReduceMax((axis,), True), x))
    e = make(EXP, shifted)
    return shifted, e, make(ReduceSum((axis,), True), e)


def decomposed_log_softmax(make: Making, axis: int) -> Tensor:
    """log(softmax(x)) of the first input."""
    shifted, _, total = exponentials(make, make.inputs[0], axis)
    return make(SUBTRACT, shifted, make(LOG, total))


@documented(Softmax)
def softmax(x: TensorLike, axis: Any = -1) -> Tensor:
    """y = exp(x) / sum exp(x) over axes, without overflow.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        axis: the axis over which y adds up to 1, several in a tuple, or None for all of them.

    Returns: y, of the shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Source: Bridle 1990, "Probabilistic interpretation of feedforward classification network
        outputs".

    >>> gg.evaluate(gg.nn.softmax([0.0, 0.0, 999.0, 999.0]))
    array([0. , 0. , 0.5, 0.5])
    """
    (x,) = promoted(x, floating=True)
    return _over(Softmax, x, axis)


@documented(LogSoftmax)
def log_softmax(x: TensorLike, axis: Any = -1) -> Tensor:
    """y = log(softmax(x)) over axes, without overflow or log of zero.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        axis: the axis over which exp(y) adds up to 1, several in a tuple, or None for all of
            them.

    Returns: y, of the shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Source: Blanchard, Higham and Higham 2021, "Accurately computing the log-sum-exp and softmax
        functions".

    >>> gg.evaluate(gg.nn.log_softmax([0.0, 0.0])).round(4)
    array([-0.6931, -0.6931])
    """
    (x,) = promoted(x, floating=True)
    return _over(LogSoftmax, x, axis)


def _over(op: type[Softmax], x: Tensor, axis: Any) -> Tensor:
    """op of x; over several axes, or none, as of `special`."""
    axes = normal_axes(axis, x.ndim)
    if len(axes) == 1:
        return apply(op(axes[0]), x)
    if not is_floating(x.dtype):
        raise DTypeError(f"softmax takes floating tensors, got {x.type!r}")
    return (special.log_softmax if op is LogSoftmax else special.softmax)(x, axes)


def softmin(x: TensorLike, axis: Any = -1) -> Tensor:
    """y = exp(-x) / sum exp(-x) over axes, without overflow.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        axis: the axis over which y adds up to 1, several in a tuple, or None for all of them.

    Returns: y, of the shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Gradient: dx = y * (sum(dy * y) - dy), the sum over the axes.

    Source: Bridle 1990, "Probabilistic interpretation of feedforward classification network
        outputs", of -x.

    >>> gg.evaluate(gg.nn.softmin([0.0, 0.0, 999.0]))
    array([0.5, 0.5, 0. ])
    """
    (x,) = promoted(x, floating=True)
    return softmax(negative(x), axis)


def gumbel_softmax(
    logits: TensorLike,
    tau: float = 1.0,
    hard: bool = False,
    axis: int = -1,
    *,
    seed: TensorLike | None = None,
) -> Tensor:
    """A class drawn along an axis, as softmax((logits + Gumbel noise) / tau).

    Parameters:
        logits: x, at least one axis; floating, ints and bools become float64.
        tau: a Python number > 0; the smaller, the nearer to one-hot.
        hard: whether the result is one-hot, with the gradient of the soft one.
        axis: that of the classes.
        seed: an int or a scalar integer tensor; None: another draw in every run.

    Returns: shape and dtype of logits.

    Raises: ShapeError if there is no such axis; DTypeError for complex logits, or another seed;
        ValueError for another tau.

    Gradient: that of the softmax, of both forms ("straight through").

    Source: Jang, Gu and Poole 2017, "Categorical reparameterization with Gumbel-softmax".

    >>> gg.evaluate(gg.nn.gumbel_softmax([0.0, 99.0, 0.0], hard=True, seed=0))
    array([0., 1., 0.])
    """
    POSITIVE("tau", tau)
    truth("hard", hard)
    (x,) = real_operands("gumbel_softmax", logits)
    at = normal_axis(axis, x.ndim)
    u = uniform(x, seed=seed, dtype=x.dtype)
    tiny = float(limits_of(x.dtype).tiny)
    noise = negative(log(negative(log(where(u > 0, u, tiny)))))
    soft = softmax((x + noise) / tau, at)
    if not hard:
        return soft
    one = apply(OneHotLike(at), argmax(soft, at), soft)
    return one + (soft - stop_gradient(soft))
