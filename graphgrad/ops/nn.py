"""Activations, softmax and its losses, dropout, normalisation."""

from __future__ import annotations

import math

from ..ir.errors import ShapeError
from ..ir.types import compatible, elements, lengths
from .arithmetic import DIVIDE, MULTIPLY, NEGATIVE, SUBTRACT, multiply, negative
from .base import (
    NO_GRAD,
    ZERO,
    Any,
    Cast,
    Constant,
    DType,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    Unary,
    apply,
    as_dtype,
    as_tensor,
    cast,
    np,
    promoted,
    tensor_type,
    wants,
    whole,
)
from .exponential import EXP, LOG, SIGMOID_SLOPE, Sigmoid, exp, sqrt
from .families import Kinds, RealBinary, RealUnary, floating_unary
from .logic import EQUAL, WHERE, greater, where
from .making import Making
from .random import bernoulli
from .reductions import ReduceAny, ReduceMax, ReduceSum, mean, normal_axes, reduced, sum
from .shaping import ExpandDims, Squeeze, expand_dims, normal_axis
from .special import expit, ndtr
from .windows import avg_pool, conv, conv_transpose, max_pool

__all__ = [
    "avg_pool",
    "batch_norm",
    "conv",
    "conv_transpose",
    "cross_entropy",
    "dropout",
    "elu",
    "gelu",
    "layer_norm",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "one_hot",
    "relu",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
]


# --- activations -------------------------------------------------------------------------------


class Relu(Kinds, Unary):
    """y = max(x, 0), dx = dy where x > 0, else 0: the derivative at 0 is 0. relu(-0.0) is 0.0."""

    kinds = "iuf"
    onnx = Onnx("Relu")
    idempotent = True
    relevance = "passed"

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.maximum(x, 0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(RELU_GRAD, dy, node.inputs[0]),)


class ReluGrad(RealBinary):
    """z = dy where x > 0, else 0; linear in dy, and x has a gradient of zero."""

    linear = (0,)

    def kernel(self, xp: Any, dy: Any, x: Any) -> Any:
        return xp.where(x > 0, dy, 0)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return apply(RELU_GRAD, dz, node.inputs[1]), ZERO


RELU = Relu()
RELU_GRAD = ReluGrad()


class LeakyRelu(RealUnary):
    """y = x where x > 0, else alpha * x; dx = dy or alpha * dy (at 0: alpha * dy)."""

    alpha: float = 0.01
    onnx = Onnx("LeakyRelu", alpha="alpha")
    relevance = "passed"

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.where(x > 0, x, self.alpha * x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (where(greater(x, 0), dy, dy * self.alpha),)


class Elu(RealUnary):
    """y = x where x > 0, else alpha * (exp(x) - 1); dx = dy or dy * alpha * exp(x)."""

    alpha: float = 1.0
    onnx = Onnx("Elu", alpha="alpha")
    relevance = "passed"

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.where(x > 0, x, self.alpha * xp.expm1(xp.minimum(x, 0)))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        above = greater(x, 0)
        return (where(above, dy, dy * (self.alpha * exp(where(above, 0, x)))),)


class Softplus(RealUnary):
    """y = log(1 + exp(x)) without overflow, dx = dy * sigmoid(x)."""

    onnx = Onnx("Softplus")
    value_range = (0.0, np.inf)
    guards = True
    relevance = "passed"

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(x, 0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(Sigmoid(), node.inputs[0]),)


class Silu(RealUnary):
    """y = x * sigmoid(x), dx = dy * (s + x * s') with s = sigmoid(x)."""

    relevance = "passed"

    def kernel(self, xp: Any, x: Any) -> Any:
        e = xp.exp(-xp.abs(x))
        return x * (xp.where(x >= 0, 1, e) / (1 + e))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (apply(Sigmoid(), x) + x * apply(SIGMOID_SLOPE, x)),)


def relu(x: TensorLike) -> Tensor:
    """y = max(x, 0), element by element.

    Parameters: x: any shape; integer or floating.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is bool or complex.

    Gradient: dx = dy where x > 0, else 0: at 0 too.

    Source: Glorot, Bordes and Bengio 2011, "Deep sparse rectifier neural networks".

    >>> gg.evaluate(gg.nn.relu([-1.0, 0.0, 2.0]))
    array([0., 0., 2.])
    """
    return apply(RELU, as_tensor(x))


def leaky_relu(x: TensorLike, alpha: float = 0.01) -> Tensor:
    """y = x where x > 0, else alpha * x, element by element.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        alpha: a Python number.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy where x > 0, else alpha * dy: at 0 too.

    Source: Maas, Hannun and Ng 2013, "Rectifier nonlinearities improve neural network acoustic
        models".

    >>> gg.evaluate(gg.nn.leaky_relu([-1.0, 0.0, 2.0], 0.1))
    array([-0.1,  0. ,  2. ])
    """
    return floating_unary(LeakyRelu(float(alpha)), x)


def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """y = x where x > 0, else alpha * (exp(x) - 1), element by element.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        alpha: a Python number.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy where x > 0, else dy * alpha * exp(x).

    Source: Clevert, Unterthiner and Hochreiter 2016, "Fast and accurate deep network learning by
        exponential linear units (ELUs)".

    >>> gg.evaluate(gg.nn.elu([-1.0, 0.0, 2.0])).round(4)
    array([-0.6321,  0.    ,  2.    ])
    """
    return floating_unary(Elu(float(alpha)), x)


def sigmoid(x: TensorLike) -> Tensor:
    """The logistic function: y = 1 / (1 + exp(-x)), element by element, without overflow.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * y (1 - y).

    >>> gg.evaluate(gg.nn.sigmoid([0.0, -1000.0]))
    array([0.5, 0. ])
    """
    return expit(x)


def softplus(x: TensorLike) -> Tensor:
    """y = log(1 + exp(x)), element by element, without overflow.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * sigmoid(x).

    Source: Dugas et al. 2001, "Incorporating second-order functional knowledge for better option
        pricing".

    >>> gg.evaluate(gg.nn.softplus([0.0, 99.0])).round(4)
    array([ 0.6931, 99.    ])
    """
    return floating_unary(Softplus(), x)


def log_sigmoid(x: TensorLike) -> Tensor:
    """y = log(sigmoid(x)) = -softplus(-x), element by element, without overflow or log of zero.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * sigmoid(-x).

    >>> gg.evaluate(gg.nn.log_sigmoid([0.0, -99.0])).round(4)
    array([ -0.6931, -99.    ])
    """
    return negative(softplus(negative(*promoted(x, floating=True))))


def silu(x: TensorLike) -> Tensor:
    """y = x * sigmoid(x), element by element; also called swish.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * (s + y (1 - s)) with s = sigmoid(x).

    Source: Elfwing, Uchibe and Doya 2018, "Sigmoid-weighted linear units for neural network
        function approximation in reinforcement learning".

    >>> gg.evaluate(gg.nn.silu([0.0, 1.0])).round(4)
    array([0.    , 0.7311])
    """
    return floating_unary(Silu(), x)


def gelu(x: TensorLike, approximate: bool = False) -> Tensor:
    """y = x * P(a standard normal number < x), element by element.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        approximate: by tanh, y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x**3))), which is
            x * sigmoid(2 sqrt(2/pi) * (x + 0.044715 x**3)).

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * (ndtr(x) + x exp(-x**2 / 2) / sqrt(2 pi)), or that of the formula above.

    Source: Hendrycks and Gimpel 2016, "Gaussian error linear units", sec. 2.

    >>> gg.evaluate(gg.nn.gelu([0.0, 1.0])).round(4)
    array([0.    , 0.8413])
    """
    (x,) = promoted(x, floating=True)
    _check_real("gelu", x)
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return x * expit(2.0 * inner)
    return x * ndtr(x)


def _check_real(what: str, x: Tensor) -> None:
    if x.type.complex:
        raise DTypeError(f"{what} takes a real tensor, got {x.type!r}")


# --- softmax -----------------------------------------------------------------------------------


class Softmax(Op):
    """y = exp(x) / sum of exp(x) along an axis, without overflow; dx = y * (dy - sum of dy * y)."""

    axis: int
    onnx = Onnx("Softmax", axis="axis")
    value_range = (0.0, 1.0)
    guards = True
    relevance = "taylor"
    axis_attrs = ("axis",)

    def infer(self, x: TensorType) -> Types:
        if x.dtype.kind != "f" or not 0 <= self.axis < len(x.shape):
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
    """y = log(softmax(x)) along an axis, without overflow; dx = dy - exp(y) * sum of dy."""

    onnx = Onnx("LogSoftmax", axis="axis")
    guards = False

    def kernel(self, xp: Any, x: Any) -> Any:
        return _log_softmax(xp, x, self.axis)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (dy - exp(y) * apply(ReduceSum((self.axis,), True), dy),)

    def decompose(self, make: Making) -> Tensor | None:
        return decomposed_log_softmax(make, self.axis)


def _log_softmax(xp: Any, x: Any, axis: int) -> Any:
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


def softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """y = exp(x) / sum exp(x) along an axis, without overflow.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        axis: the axis along which y adds up to 1.

    Returns: y, of the shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Gradient: dx = y * (dy - sum(dy * y)), the sum along the axis.

    Source: Bridle 1990, "Probabilistic interpretation of feedforward classification network
        outputs".

    >>> gg.evaluate(gg.nn.softmax([0.0, 0.0, 999.0, 999.0]))
    array([0. , 0. , 0.5, 0.5])
    """
    (x,) = promoted(x, floating=True)
    return apply(Softmax(normal_axis(axis, x.ndim)), x)


def log_softmax(x: TensorLike, axis: int = -1) -> Tensor:
    """y = log(softmax(x)) along an axis, without overflow or log of zero.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        axis: the axis along which exp(y) adds up to 1.

    Returns: y, of the shape and dtype of x.

    Raises: ShapeError if x has no such axis; DTypeError if x is complex.

    Gradient: dx = dy - exp(y) * sum(dy), the sum along the axis.

    Source: Blanchard, Higham and Higham 2021, "Accurately computing the log-sum-exp and softmax
        functions".

    >>> gg.evaluate(gg.nn.log_softmax([0.0, 0.0])).round(4)
    array([-0.6931, -0.6931])
    """
    (x,) = promoted(x, floating=True)
    return apply(LogSoftmax(normal_axis(axis, x.ndim)), x)


# --- classes -----------------------------------------------------------------------------------


class OneHot(Op):
    """y = 1 at the place along a new axis that each label names, else 0. No gradient."""

    length: int
    axis: int
    dtype: DType
    differentiable = False
    flop_free = True
    axis_attrs = ("axis",)

    def infer(self, labels: TensorType) -> Types:
        _check_labels(labels)
        shape = (*labels.shape[: self.axis], self.length, *labels.shape[self.axis :])
        return (tensor_type(shape, self.dtype),)

    def kernel(self, xp: Any, labels: Any) -> Any:
        return _one_hot(xp, labels, self.length, self.axis, self.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (NO_GRAD,)

    def decompose(self, make: Making) -> Tensor | None:
        return make(Cast(self.dtype), _hits(make, make.inputs[0], self.length, self.axis))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(3, 1, as_dtype("float64")), [np.array([0, 2])]
        yield cls(3, 0, as_dtype("float32")), [np.array([[0, 2], [1, -1]])]


class OneHotLike(Op):
    """OneHot of the length and dtype of the second input's axis."""

    axis: int
    shape_only = (1,)
    flop_free = True
    axis_attrs = ("axis",)

    def infer(self, labels: TensorType, like: TensorType) -> Types:
        _check_labels(labels)
        return (like,)

    def kernel(self, xp: Any, labels: Any, like: Any) -> Any:
        return _one_hot(xp, labels, like.shape[self.axis], self.axis, like.dtype)

    def static(self, inputs: Types) -> Op:
        return OneHot(lengths(inputs[1])[self.axis], self.axis, inputs[1].dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return NO_GRAD, ZERO

    def decompose(self, make: Making) -> Tensor | None:
        labels, like = make.inputs
        hits = _hits(make, labels, lengths(like.type)[self.axis], self.axis)
        return make(Cast(like.dtype), hits)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(1), [np.array([0, 2]), rng.normal(size=(2, 3))]


def _one_hot(xp: Any, labels: Any, length: int, axis: int, dtype: DType) -> Any:
    places = xp.reshape(xp.arange(length), (length,) + (1,) * (labels.ndim - axis))
    return xp.astype(xp.expand_dims(labels, axis=axis) == places, dtype)


def _hits(make: Making, labels: Tensor, length: int, axis: int) -> Tensor:
    """Where along a new axis the place is that a label names."""
    after = len(labels.shape) - axis
    if length - 1 > np.iinfo(labels.dtype).max:  # places that labels of this dtype cannot name
        labels = make(Cast(as_dtype("int64")), labels)
    places = np.arange(length, dtype=labels.dtype).reshape((length,) + (1,) * after)
    return make(EQUAL, make(ExpandDims((axis,)), labels), make(Constant(places)))


def _check_labels(labels: TensorType) -> None:
    if labels.dtype.kind not in "iu":
        raise DTypeError(f"class labels are integers, got {labels!r}")


def one_hot(indices: TensorLike, depth: int, dtype: Any = "float64", axis: int = -1) -> Tensor:
    """1 at the index along a new axis, 0 elsewhere.

    Parameters:
        indices: integers of any shape; the row of an index outside of 0 to depth - 1 is all 0.
        depth: the length of the new axis, an int >= 0.
        dtype: that of the result.
        axis: where the new axis stands in the result.

    Returns: shape of indices with the new axis.

    Raises: DTypeError for indices that are no integers; ShapeError if there is no such place, or
        depth < 0.

    Gradient: none, indices are integers.

    >>> gg.evaluate(gg.one_hot([0, 2], 3))
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """
    x = as_tensor(indices)
    place = normal_axis(axis, x.ndim + 1)
    length = whole("depth", depth)
    if length < 0:
        raise ShapeError(f"one_hot takes a depth >= 0, got {length}")
    return apply(OneHot(length, place, as_dtype(dtype)), x)


class SparseSoftmaxCrossEntropyWithLogits(Op):
    """y = -log_softmax(x)[label] along an axis; NaN for a label that is no class.

    x: floating    labels: integers, the shape of x without the axis; y: likewise.
    dx = dy * (softmax(x) - one_hot(label)).
    """

    axis: int
    axis_attrs = ("axis",)

    def infer(self, x: TensorType, labels: TensorType) -> Types:
        _check_labels(labels)
        shape = reduced(x.shape, (self.axis,), False)
        if x.dtype.kind != "f" or not compatible(shape, labels.shape):
            raise ShapeError(f"labels {labels!r} do not fit logits {x!r} along axis {self.axis}")
        return (tensor_type(shape, x.dtype),)

    def kernel(self, xp: Any, x: Any, labels: Any) -> Any:
        known = (labels >= 0) & (labels < x.shape[self.axis])
        at = xp.expand_dims(xp.where(known, labels, 0), axis=self.axis)
        logs = xp.take_along_axis(_log_softmax(xp, x, self.axis), at, axis=self.axis)
        return xp.where(known, -xp.squeeze(logs, axis=self.axis), np.nan)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, labels = node.inputs
        error = apply(Softmax(self.axis), x) - apply(OneHotLike(self.axis), labels, x)
        return expand_dims(dy, self.axis) * error, NO_GRAD

    def decompose(self, make: Making) -> Tensor | None:
        x, labels = make.inputs
        hits = _hits(make, labels, lengths(x.type)[self.axis], self.axis)
        logs = make(WHERE, hits, decomposed_log_softmax(make, self.axis), make.zero(x))
        loss = make(NEGATIVE, make(ReduceSum((self.axis,), False), logs))
        known = make(ReduceAny((self.axis,), False), hits)
        return make(WHERE, known, loss, make.number(np.nan, x.dtype))

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Six for each element of x."""
        return 6 * elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(1), [rng.normal(size=(2, 3)), np.array([2, 0])]
        yield cls(0), [rng.normal(size=(3, 2)), np.array([2, 0], "uint8")]
        yield cls(0), [rng.normal(size=(3,)), np.array(1)]
        yield cls(1), [rng.normal(size=(2, 3)).astype("float32"), np.array([2, 0])]


class SoftmaxCrossEntropyWithLogits(Op):
    """y = -sum of p * log_softmax(x) along an axis, where 0 * -inf is 0.

    dx = dy * (softmax(x) * sum of p - p), dp = -dy * log_softmax(x).
    """

    axis: int
    linear = (1,)
    axis_attrs = ("axis",)

    def infer(self, x: TensorType, p: TensorType) -> Types:
        if x.dtype.kind != "f" or p.dtype is not x.dtype or not compatible(x.shape, p.shape):
            raise ShapeError(f"probabilities {p!r} do not fit logits {x!r}")
        return (tensor_type(reduced(x.shape, (self.axis,), False), x.dtype),)

    def kernel(self, xp: Any, x: Any, p: Any) -> Any:
        logs = xp.where(p == 0, 0, _log_softmax(xp, x, self.axis))
        return -xp.sum(p * logs, axis=self.axis)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        x, p = node.inputs
        dy = expand_dims(dy, self.axis)
        total = apply(ReduceSum((self.axis,), True), p)
        return (
            dy * (apply(Softmax(self.axis), x) * total - p) if wants(x) else NO_GRAD,
            negative(dy * apply(LogSoftmax(self.axis), x)) if wants(p) else NO_GRAD,
        )

    def decompose(self, make: Making) -> Tensor | None:
        _, p = make.inputs
        zero = make.zero(p)
        logs = make(WHERE, make(EQUAL, p, zero), zero, decomposed_log_softmax(make, self.axis))
        return make(NEGATIVE, make(ReduceSum((self.axis,), False), make(MULTIPLY, p, logs)))

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """Six for each element of x."""
        return 6 * elements(inputs[0])

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for axis, shape in [(1, (2, 3)), (0, (3, 2)), (0, (3,))]:
            yield cls(axis), [rng.normal(size=shape), rng.uniform(0.1, 1, size=shape)]
        yield cls(1), [rng.uniform(0.1, 1, size=(2, 3)).astype("float32") for _ in range(2)]


def cross_entropy(
    logits: TensorLike, labels: TensorLike, axis: int = -1, reduction: str = "none"
) -> Tensor:
    """-log of the probability that softmax(logits) along an axis gives the labels.

    Parameters:
        logits: x, at least one axis; floating, ints and bools become float64.
        labels: class numbers, integers of one axis less than logits, NaN for one that is no class;
            or probabilities p (or one-hot) of the shape of logits.
        axis: that of the classes.
        reduction: "none" (one loss an example), "mean" or "sum".

    Returns: shape of logits without the axis, or 0-d; dtype of logits.

    Raises: ShapeError if the labels do not fit, or there is no such axis; DTypeError for complex
        logits and for class numbers that are no integers; ValueError for another reduction.

    Gradient: dx = dy * (softmax(x) - one_hot(label)), or dy * (softmax(x) * sum(p) - p); dp = -dy *
        log_softmax(x) [Bishop 2006, "Pattern recognition and machine learning", sec. 4.3.4].

    >>> gg.evaluate(gg.nn.cross_entropy([[0.0, 0.0], [0.0, 99.0]], [0, 0])).round(4)
    array([ 0.6931, 99.    ])
    """
    (logits,) = promoted(logits, floating=True)
    _check_real("cross_entropy", logits)
    labels = as_tensor(labels)
    at = normal_axis(axis, logits.ndim)
    if labels.ndim == logits.ndim:
        losses = apply(SoftmaxCrossEntropyWithLogits(at), logits, cast(labels, logits.dtype))
    else:
        if logits.shape[at] == 0:
            raise ShapeError(f"cross_entropy takes at least one class, got {logits.type!r}")
        losses = apply(SparseSoftmaxCrossEntropyWithLogits(at), logits, labels)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"reduction is 'none', 'mean' or 'sum', got {reduction!r}")
    return losses if reduction == "none" else mean(losses) if reduction == "mean" else sum(losses)


# --- dropout, normalisation --------------------------------------------------------------------


def dropout(x: TensorLike, rate: float, *, seed: TensorLike, training: bool = True) -> Tensor:
    """x with each element 0 with probability rate, the others divided by 1 - rate.

    Parameters:
        x: any shape; floating or complex, ints and bools become float64.
        rate: a Python number, 0 <= rate < 1.
        seed: an int or a scalar integer tensor; one seed, one mask, forward and backward.
        training: whether to drop at all; if not, the result is x itself.

    Returns: shape and dtype of x.

    Raises: ValueError for another rate; DTypeError for another seed.

    Gradient: dx = dy / (1 - rate) where the element was kept, else 0.

    Source: Srivastava et al. 2014, "Dropout: a simple way to prevent neural networks from
        overfitting"; scaled in training.

    >>> gg.evaluate(gg.nn.dropout(np.ones(6), 0.5, seed=3))
    array([0., 2., 0., 2., 0., 0.])
    """
    (x,) = promoted(x, floating=True)
    if not 0 <= rate < 1:
        raise ValueError(f"a dropout rate is at least 0 and below 1, got {rate}")
    if not training or rate == 0:
        return x
    kept = bernoulli(x, 1.0 - rate, seed=seed)
    return where(kept, x * (1.0 / (1.0 - rate)), 0.0)


def layer_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: Any = -1,
    epsilon: float = 1e-5,
) -> Tensor:
    """y = (x - mean) / sqrt(variance + epsilon) over axes, times scale, plus offset.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        scale, offset: None, or what broadcasts with x.
        axis: an int, several in a tuple, or None for all of them.
        epsilon: a Python number.

    Returns: shape of x.

    Raises: ShapeError if x has no such axis, or scale or offset do not broadcast; DTypeError if x
        is complex.

    Gradient: that of the formula, through mean and variance.

    Source: Ba, Kiros and Hinton 2016, "Layer normalization".

    >>> gg.evaluate(gg.nn.layer_norm([[1.0, 3.0], [5.0, 5.0]], epsilon=0.0001)).round(3)
    array([[-1.,  1.],
           [ 0.,  0.]])
    """
    (x,) = promoted(x, floating=True)
    _check_real("layer_norm", x)
    axes = normal_axes(axis, x.ndim)
    return _scaled(_normalised(x, axes, epsilon)[0], scale, offset)


def batch_norm(
    x: TensorLike,
    scale: TensorLike | None = None,
    offset: TensorLike | None = None,
    axis: int = -1,
    epsilon: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """x normalised over all axes but one, with the mean and the variance that were used.

    For inference use stored moments: (x - mean) / sqrt(variance + epsilon) * scale + offset.

    Parameters:
        x: at least one axis; floating, ints and bools become float64.
        scale, offset: None, or one number for each channel.
        axis: that of the channels.
        epsilon: a Python number.

    Returns: y = (x - mean) / sqrt(variance + epsilon) * scale + offset, of the shape of x; mean and
        variance, each of the length of the axis.

    Raises: ShapeError if x has no such axis, or scale or offset do not fit it; DTypeError if x is
        complex.

    Gradient: that of the formula, through mean and variance.

    Source: Ioffe and Szegedy 2015, "Batch normalization: accelerating deep network training by
        reducing internal covariate shift", alg. 1.

    >>> y, mean, variance = gg.nn.batch_norm([[1.0, 5.0], [3.0, 5.0]])
    >>> gg.evaluate(mean), gg.evaluate(variance)
    (array([2., 5.]), array([1., 0.]))
    """
    (x,) = promoted(x, floating=True)
    _check_real("batch_norm", x)
    channel = normal_axis(axis, x.ndim)
    axes = tuple([a for a in range(x.ndim) if a != channel])
    y, average, variance = _normalised(x, axes, epsilon)
    after = tuple(range(1, x.ndim - channel))
    scale, offset = (
        None if t is None else expand_dims(t, after) if after else as_tensor(t)
        for t in (scale, offset)
    )
    return _scaled(y, scale, offset), apply(Squeeze(axes), average), apply(Squeeze(axes), variance)


def _normalised(x: Tensor, axes: Any, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    average = mean(x, axes, True)
    centred = x - average
    variance = mean(centred * centred, axes, True)
    return centred / sqrt(variance + epsilon), average, variance


def _scaled(y: Tensor, scale: TensorLike | None, offset: TensorLike | None) -> Tensor:
    y = y if scale is None else multiply(y, scale)
    return y if offset is None else y + offset
