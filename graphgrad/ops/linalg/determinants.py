"""Determinants and their logarithms, and cofactors."""

from __future__ import annotations

from ..base import (
    NO_GRAD,
    Any,
    Gradients,
    Node,
    Op,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Types,
    apply,
    build,
    is_zero,
    np,
    promoted,
    real_dtype,
    tensor_type,
    wants,
)
from ..documented import documented
from ..elementwise.complex_parts import imag
from ..reduce.reductions import sum
from ..shape.reshaping import expand_dims, matrix_transpose
from . import stepwise
from .inverses import Inverse
from .matrices import check_square, dense, normal, positive, product
from .results import SlogdetResult

__all__ = ["det", "slogdet"]


class Det(Op):
    """y = det(x).

    Gradient: dx = dy * det(x) x.T**-1, the cofactors [Giles 2008, "An extended collection of
        matrix derivative results", sec. 2.2.4]; first and second derivatives are there for singular
        matrices too, higher ones are not.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("det", x)
        return (tensor_type(x.shape[:-2], x.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.linalg.det(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(lambda xp, x: stepwise.slogdet(xp, x)[2], x)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (expand_dims(dy, (-2, -1)) * apply(Cofactors(), *node.inputs),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """2/3 n**3."""
        return dense(inputs[0], 0, 2 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]
        yield cls(), [np.array([[1.0, 2.0], [2.0, 4.0]])]


class Cofactors(Op):
    """y = det(x) * x.T**-1, and its limit where x is singular; NaN where x is not finite.

    Gradient: dx = CofactorsGrad of x and dy.

    x = u @ diag(s) @ vh: y = det(u @ vh) * conj(u) @ diag(the products of all other s) @ conj(vh)
    [Giles 2008, sec. 2.2.4; Golub and Van Loan 2013, sec. 2.4].
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("cofactors", x)
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        finite, u, s, vh = _finite_svd(xp, x)
        y = (xp.conj(u) * _others(xp, s)[..., None, :]) @ xp.conj(vh)
        return xp.where(finite, _turn(xp, u, vh) * y, xp.nan)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (apply(CofactorsGrad(), *node.inputs, dy),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """24 n**3, most of them for the factors."""
        return dense(inputs[0], 0, 24)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(4, 4), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]


class CofactorsGrad(Op):
    """dx of y = Cofactors(x): det(x) * (<a, dy> * a - a @ dy.T @ a), a = x.T**-1, or its limit.

    Gradient: it is linear in dy and its own adjoint there; the gradient in x needs an
        invertible x.

    With d = u.H @ dy @ vh.H and p[i, k] the product of all s but i and k, u.T @ dx @ vh.T has
    -det(u @ vh) * p[i, k] * d[k, i] beside the diagonal and sums of p * d[i, i] on it.
    """

    linear = (1,)
    stacks = True

    def infer(self, x: TensorType, dy: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any, dy: Any) -> Any:
        finite, u, s, vh = _finite_svd(xp, x)
        u, vh = xp.conj(u), xp.conj(vh)
        d = u.mT @ dy @ vh.mT
        one = xp.eye(s.shape[-1], dtype=s.dtype)
        rest = _others(xp, xp.where(one == 1, one, s[..., None, :])) * (1 - one)
        on = rest @ xp.sum(d * one, axis=-1, keepdims=True)
        dx = u @ (on * one - rest * d.mT) @ vh
        return xp.where(finite, xp.conj(_turn(xp, u, vh)) * dx, xp.nan)

    def vjp(self, node: Node, ddx: Tensor) -> Gradients:
        x, dy = node.inputs
        return (
            _third(x, dy, ddx) if wants(x) else NO_GRAD,
            apply(CofactorsGrad(), x, ddx) if wants(dy) else NO_GRAD,
        )

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """30 n**3, most of them for the factors."""
        return dense(inputs[0], 0, 30)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(4, 4), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape), rng.normal(size=shape)]


def _third(x: Tensor, g: Tensor, h: Tensor) -> Tensor:
    """The gradient of <h, CofactorsGrad(x, g)> in x: the third derivative of det along g and h."""

    def along(t: Tensor) -> Tensor:
        return sum(a * t, (-2, -1), True)

    a = matrix_transpose(apply(Inverse(), x))
    ag, ah = (product(a, matrix_transpose(t)) for t in (g, h))
    both = along(g) * along(h) - sum(h * product(ag, a), (-2, -1), True)
    twice = product(ag, ah, a) + product(ah, ag, a)
    inner = both * a - along(h) * product(ag, a) - along(g) * product(ah, a) + twice
    return expand_dims(apply(Det(), x), (-2, -1)) * inner


def _finite_svd(xp: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Which matrices are finite, and the factors of these."""
    finite = xp.all(xp.isfinite(x), axis=(-2, -1), keepdims=True)
    return finite, *xp.linalg.svd(xp.where(finite, x, 0))


def _turn(xp: Any, u: Any, vh: Any) -> Any:
    """det(u @ vh), of modulus 1."""
    return xp.sign(xp.linalg.det(u @ vh))[..., None, None]


def _others(xp: Any, s: Any) -> Any:
    """The products of all other elements along the last axis."""

    def before(s: Any) -> Any:
        ones = xp.ones_like(s[..., :1])
        return xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)

    return before(s) * xp.flip(before(xp.flip(s, axis=-1)), axis=-1)


class SLogDet(Op):
    """The sign of det(x), and log |det(x)|.

    Gradient: dx = dlog * x.T**-1 [Giles 2008, "An extended collection of matrix derivative
        results", sec. 2.2.4]; of a real sign 0, of a complex one i im(dsign * sign) * x.T**-1.
    """

    stacks = True

    def infer(self, x: TensorType) -> Types:
        check_square("slogdet", x)
        stack = x.shape[:-2]
        return tensor_type(stack, x.dtype), tensor_type(stack, real_dtype(x.dtype))

    def kernel(self, xp: Any, x: Any) -> Any:
        return tuple(xp.linalg.slogdet(x))

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.in_double(lambda xp, x: stepwise.slogdet(xp, x)[:2], x)

    def vjp(self, node: Node, dsign: Tensor, dlog: Tensor) -> Gradients:
        (x,), (sign, _) = node.inputs, node.outputs
        scale = dlog
        if x.type.complex and not is_zero(dsign):
            scale = dlog + imag(dsign * sign) * 1j
        return (expand_dims(scale, (-2, -1)) * matrix_transpose(apply(Inverse(), x)),)

    def flops(self, inputs: Types, outputs: Types) -> float | None:
        """2/3 n**3."""
        return dense(inputs[0], 0, 2 / 3)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 2), (2, 3, 3)]:
            yield cls(), [positive(rng, *shape)]
        yield cls(), [normal(rng, 2, 2)]


@documented(Det)
def det(x: TensorLike, /) -> Tensor:
    """The determinants of square matrices: y = det x.

    Parameters: x: (..., N, N); floating or complex, ints become float64.

    Returns: (...), dtype of x.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    >>> x = gg.constant([[1.0, 2.0], [2.0, 4.0]])
    >>> gg.evaluate(gg.gradients([gg.linalg.det(x)], [x])[0]).round(4)
    array([[ 4., -2.],
           [-2.,  1.]])
    """
    return apply(Det(), *promoted(x, floating=True))


@documented(SLogDet)
def slogdet(x: TensorLike, /) -> SlogdetResult:
    """The sign of the determinants of square matrices, and y = log |det x|.

    Parameters: x: (..., N, N); floating or complex, ints become float64.

    Returns: sign, which is det x / |det x|, and logabsdet, which is real, each (...); 0 and -inf of
        a singular matrix.

    Raises: ShapeError if the matrices are not square; DTypeError if x is float16.

    >>> sign, y = gg.linalg.slogdet([[1.0, 0.0], [0.0, -1.0]])
    >>> gg.evaluate((sign, y))
    (array(-1.), array(0.))
    """
    return SlogdetResult(*build(SLogDet(), promoted(x, floating=True)).outputs)
