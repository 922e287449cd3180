"""Activations: functions of one number."""

from __future__ import annotations

import math

from ...base.domains import FINITE, POSITIVE
from ...base.flags import truth
from ..base import (
    ZERO,
    Any,
    Derivative,
    Gradients,
    Node,
    Onnx,
    Tensor,
    TensorLike,
    Traits,
    Unary,
    apply,
    as_tensor,
    np,
    promoted,
)
from ..documented import documented
from ..elementwise.arithmetic import negative
from ..elementwise.exponential import SIGMOID_SLOPE, Sigmoid, exp, expm1
from ..elementwise.logic import greater, where
from ..elementwise.magnitudes import absolute, hypot
from ..elementwise.powers import reciprocal, square
from ..elementwise.trigonometry import tanh
from ..families import Kinds, RealBinary, RealUnary, floating_unary
from ..special.logistic import expit
from ..special.normal import ndtr
from .operands import check_real, real_operands

__all__ = [
    "celu",
    "elu",
    "gelu",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "mish",
    "relu",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softplus",
    "squareplus",
]


class Relu(Kinds, Unary):
    """y = max(x, 0); relu(-0.0) is 0.0. Gradient: dx = dy where x > 0, else 0: at 0 too."""

    kinds = "iuf"
    onnx = Onnx("Relu")
    traits = Traits(idempotent=True)
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.maximum(x, 0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(RELU_GRAD, dy, node.inputs[0]),)


class ReluGrad(RealBinary):
    """z = dy where x > 0, else 0. Gradient: that of dy is dz where x > 0, else 0; of x zero."""

    linear = (0,)

    def kernel(self, xp: Any, dy: Any, x: Any) -> Any:
        return xp.where(x > 0, dy, 0)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        return apply(RELU_GRAD, dz, node.inputs[1]), ZERO


RELU = Relu()
RELU_GRAD = ReluGrad()


class LeakyRelu(RealUnary):
    """y = x where x > 0, else alpha * x.

    Gradient: dx = dy where x > 0, else alpha * dy: at 0 too.
    """

    alpha: float = 0.01
    onnx = Onnx("LeakyRelu", alpha="alpha")
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.where(x > 0, x, self.alpha * x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (where(greater(x, 0), dy, dy * self.alpha),)


class Elu(RealUnary):
    """y = x where x > 0, else alpha * (exp(x) - 1).

    Gradient: dx = dy where x > 0, else dy * alpha * exp(x).
    """

    alpha: float = 1.0
    onnx = Onnx("Elu", alpha="alpha")
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.where(x > 0, x, self.alpha * xp.expm1(xp.minimum(x, 0)))

    def to_onnx(self, to: Any, x: Any) -> None:
        """What the kernel does: of small x, runtimes' own Elu has no digit left."""

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        above = greater(x, 0)
        return (where(above, dy, dy * (self.alpha * exp(where(above, 0, x)))),)


class Softplus(RealUnary):
    """y = log(1 + exp(x)) without overflow. Gradient: dx = dy * sigmoid(x)."""

    onnx = Onnx("Softplus")
    traits = Traits(value_range=(0.0, np.inf), guards=True)
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.log1p(xp.exp(-xp.abs(x))) + xp.maximum(x, 0)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(Sigmoid(), node.inputs[0]),)


class Silu(RealUnary):
    """y = x * sigmoid(x). Gradient: dx = dy * (s + y (1 - s)) with s = sigmoid(x)."""

    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        e = xp.exp(-xp.abs(x))
        return x * (xp.where(x >= 0, 1, e) / (1 + e))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        return (dy * (apply(Sigmoid(), x) + x * apply(SIGMOID_SLOPE, x)),)


class Log1mExp(RealUnary):
    """y = log(1 - exp(-x)) for x >= 0. Gradient: dx = dy / (exp(x) - 1)."""

    domain = (0.1, 3.0)
    derivative = Derivative(singular=0)
    traits = Traits(value_range=(-np.inf, 0.0))

    def kernel(self, xp: Any, x: Any) -> Any:
        near = x < math.log(2)
        small, large = xp.where(near, x, 1), xp.where(near, 1, x)
        return xp.where(near, xp.log(-xp.expm1(-small)), xp.log1p(-xp.exp(-large)))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(Log1mExpSlope(), *node.inputs),)


class Log1mExpSlope(RealUnary):
    """y = 1 / (exp(x) - 1). Gradient: dx = -dy * y * (1 + y): the slope of Log1mExp."""

    domain = (0.1, 3.0)
    derivative = Derivative(singular=0)

    def kernel(self, xp: Any, x: Any) -> Any:
        return 1 / xp.expm1(x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (y,) = node.outputs
        return (-dy * (y * (1.0 + y)),)


class SoftSign(RealUnary):
    """y = x / (1 + |x|). Gradient: dx = dy / (1 + |x|)**2."""

    traits = Traits(value_range=(-1.0, 1.0))
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        return x / (1 + xp.abs(x))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * square(reciprocal(1.0 + absolute(node.inputs[0]))),)


class SquarePlus(RealUnary):
    """y = (x + sqrt(x**2 + b)) / 2, b > 0, without cancellation.

    Gradient: dx = dy * y / sqrt(x**2 + b).
    """

    b: float = 4.0
    traits = Traits(value_range=(0.0, np.inf), guards=True)
    derivative = Derivative(relevance="passed")

    def kernel(self, xp: Any, x: Any) -> Any:
        root = xp.hypot(x, math.sqrt(self.b))
        total = xp.abs(x) / 2 + root / 2
        return xp.where(x >= 0, total, self.b / 4 / total)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (dy * apply(SquarePlusSlope(self.b), *node.inputs),)


class SquarePlusSlope(RealUnary):
    """y = (1 + x / h) / 2 with h = sqrt(x**2 + b), without cancellation.

    Gradient: dx = dy * b / (2 h**3).
    """

    b: float = 4.0
    traits = Traits(value_range=(0.0, 1.0))

    def kernel(self, xp: Any, x: Any) -> Any:
        root = xp.hypot(x, math.sqrt(self.b))
        most = float(np.finfo(x.dtype).max) ** 0.5  # from where on x is its own root
        far = (xp.minimum(xp.abs(x), most) / xp.minimum(root, most) + 1) / 2
        return xp.where(x >= 0, far, self.b / 4 / root / (root * far))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        root = hypot(node.inputs[0], math.sqrt(self.b))
        return (dy * (square(math.sqrt(self.b) / root) * (0.5 / root)),)


@documented(Relu)
def relu(x: TensorLike) -> Tensor:
    """y = max(x, 0), element by element.

    Parameters: x: any shape; integer or floating.

    Raises: DTypeError if x is bool or complex.

    Source: Glorot, Bordes and Bengio 2011, "Deep sparse rectifier neural networks".

    >>> gg.evaluate(gg.nn.relu([-1.0, 0.0, 2.0]))
    array([0., 0., 2.])
    """
    return apply(RELU, as_tensor(x))


@documented(LeakyRelu)
def leaky_relu(x: TensorLike, alpha: float = 0.01) -> Tensor:
    """y = x where x > 0, else alpha * x, element by element.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        alpha: a Python number.

    Source: Maas, Hannun and Ng 2013, "Rectifier nonlinearities improve neural network acoustic
        models".

    >>> gg.evaluate(gg.nn.leaky_relu([-1.0, 0.0, 2.0], 0.1))
    array([-0.1,  0. ,  2. ])
    """
    FINITE("alpha", alpha)
    return floating_unary(LeakyRelu(float(alpha)), x)


@documented(Elu)
def elu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """y = x where x > 0, else alpha * (exp(x) - 1), element by element.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        alpha: a Python number.

    Source: Clevert, Unterthiner and Hochreiter 2016, "Fast and accurate deep network learning by
        exponential linear units (ELUs)".

    >>> gg.evaluate(gg.nn.elu([-1.0, 0.0, 2.0])).round(4)
    array([-0.6321,  0.    ,  2.    ])
    """
    FINITE("alpha", alpha)
    return floating_unary(Elu(float(alpha)), x)


@documented(Sigmoid)
def sigmoid(x: TensorLike) -> Tensor:
    """The logistic function: y = 1 / (1 + exp(-x)), element by element, without overflow.

    >>> gg.evaluate(gg.nn.sigmoid([0.0, -1000.0]))
    array([0.5, 0. ])
    """
    return expit(x)


@documented(Softplus)
def softplus(x: TensorLike) -> Tensor:
    """y = log(1 + exp(x)), element by element, without overflow.

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


@documented(Silu)
def silu(x: TensorLike) -> Tensor:
    """y = x * sigmoid(x), element by element; also called swish.

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
    truth("approximate", approximate)
    (x,) = promoted(x, floating=True)
    check_real("gelu", x)
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return x * expit(2.0 * inner)
    return x * ndtr(x)


def celu(x: TensorLike, alpha: float = 1.0) -> Tensor:
    """y = x where x > 0, else alpha * (exp(x / alpha) - 1), element by element.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        alpha: a Python number > 0.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex; ValueError for another alpha.

    Gradient: dx = dy where x > 0, else dy * exp(x / alpha).

    Source: Barron 2017, "Continuously differentiable exponential linear units".

    >>> gg.evaluate(gg.nn.celu([-2.0, 0.0, 2.0], 2.0)).round(4)
    array([-1.2642,  0.    ,  2.    ])
    """
    POSITIVE("alpha", alpha)
    (x,) = real_operands("celu", x)
    return where(greater(x, 0), x, alpha * expm1(where(greater(x, 0), 0.0, x) / alpha))


SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
"""Those for which activations keep mean 0 and variance 1 [Klambauer et al. 2017, eq. 14]."""


def selu(x: TensorLike) -> Tensor:
    """y = s * x where x > 0, else s * a * (exp(x) - 1), with s = 1.0507... and a = 1.6732...

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * s where x > 0, else dy * s * a * exp(x).

    Source: Klambauer et al. 2017, "Self-normalizing neural networks".

    >>> gg.evaluate(gg.nn.selu([-1.0, 0.0, 1.0])).round(4)
    array([-1.1113,  0.    ,  1.0507])
    """
    return SELU_SCALE * elu(x, SELU_ALPHA)


def mish(x: TensorLike) -> Tensor:
    """y = x * tanh(softplus(x)), element by element.

    Parameters: x: any shape; floating, ints and bools become float64.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError if x is complex.

    Gradient: dx = dy * (t + x * (1 - t**2) * sigmoid(x)) with t = tanh(softplus(x)).

    Source: Misra 2019, "Mish: a self regularized non-monotonic activation function".

    >>> gg.evaluate(gg.nn.mish([-1.0, 0.0, 1.0])).round(4)
    array([-0.3034,  0.    ,  0.8651])
    """
    (x,) = real_operands("mish", x)
    return x * tanh(softplus(x))


@documented(SoftSign)
def soft_sign(x: TensorLike) -> Tensor:
    """y = x / (1 + |x|), element by element.

    Source: Bergstra et al. 2009, "Quadratic polynomials learn better image features".

    >>> gg.evaluate(gg.nn.soft_sign([-1.0, 0.0, 3.0]))
    array([-0.5 ,  0.  ,  0.75])
    """
    return floating_unary(SoftSign(), x)


@documented(SquarePlus)
def squareplus(x: TensorLike, b: float = 4.0) -> Tensor:
    """y = (x + sqrt(x**2 + b)) / 2, element by element, to all digits on the left too.

    Parameters:
        x: any shape; floating, ints and bools become float64.
        b: a Python number > 0: how wide the bend at 0 is.

    Raises: DTypeError if x is complex; ValueError for another b.

    Source: Barron 2021, "Squareplus: a softplus-like algebraic rectifier".

    >>> gg.evaluate(gg.nn.squareplus([-1.5, 0.0, 1.5]))
    array([0.5, 1. , 2. ])
    """
    POSITIVE("b", b)
    return floating_unary(SquarePlus(float(b)), x)


@documented(Log1mExp)
def log1mexp(x: TensorLike) -> Tensor:
    """y = log(1 - exp(-x)) for x >= 0, element by element, to all digits; NaN for x < 0.

    Source: Maechler 2012, "Accurately computing log(1 - exp(-|a|))".

    >>> gg.evaluate(gg.nn.log1mexp([1e-20, 1.0])).round(4)
    array([-46.0517,  -0.4587])
    """
    return floating_unary(Log1mExp(), x)
