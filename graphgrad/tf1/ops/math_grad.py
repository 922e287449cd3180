"""TensorFlow's gradients of arithmetic, made of ops of this graph, so that maps reach them too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..create import apply, constant
from ..graph import Operation, Tensor
from ..registry import RegisterGradient

__all__ = ["sum_to"]

Grads = list[Any]


def sum_to(dy: Tensor, like: Tensor) -> Tensor:
    """dy, added up over the axes along which `like` was broadcast."""
    if dy.shape.is_fully_defined() and dy.shape == like.shape:
        return dy
    return apply("SumLike", dy, like, name="Reshape")


def _mul(x: Any, y: Any, name: str = "Mul") -> Tensor:
    return apply("Mul", x, y, name=name)


def _neg(x: Any) -> Tensor:
    return apply("Neg", x)


@RegisterGradient("Add")
@RegisterGradient("AddV2")
def _AddGrad(op: Operation, grad: Tensor) -> Grads:
    """dy to both, added up where they were broadcast."""
    x, y = op.inputs
    return [sum_to(grad, x), sum_to(grad, y)]


@RegisterGradient("Sub")
def _SubGrad(op: Operation, grad: Tensor) -> Grads:
    """dy and -dy."""
    x, y = op.inputs
    return [sum_to(grad, x), sum_to(_neg(grad), y)]


@RegisterGradient("Mul")
def _MulGrad(op: Operation, grad: Tensor) -> Grads:
    """dy y and dy x."""
    x, y = op.inputs
    return [sum_to(_mul(grad, _conj(y)), x), sum_to(_mul(_conj(x), grad), y)]


def _conj(x: Tensor) -> Tensor:
    return apply("Conj", x) if x.dtype.is_complex else x


@RegisterGradient("Div")
@RegisterGradient("RealDiv")
def _RealDivGrad(op: Operation, grad: Tensor) -> Grads:
    """dy / y and dy (-x / y) / y."""
    x, y = _conj(op.inputs[0]), _conj(op.inputs[1])
    dx = apply("RealDiv", grad, y)
    dy = _mul(grad, apply("RealDiv", apply("RealDiv", _neg(x), y), y), "mul")
    return [sum_to(dx, op.inputs[0]), sum_to(dy, op.inputs[1])]


@RegisterGradient("Neg")
def _NegGrad(op: Operation, grad: Tensor) -> Tensor:
    """-dy."""
    return _neg(grad)


@RegisterGradient("Square")
def _SquareGrad(op: Operation, grad: Tensor) -> Tensor:
    """dy 2 x."""
    x = _conj(op.inputs[0])
    return _mul(grad, _mul(x, constant(2.0, x.dtype)))


@RegisterGradient("Exp")
def _ExpGrad(op: Operation, grad: Tensor) -> Tensor:
    """dy y."""
    return _mul(grad, _conj(op.outputs[0]), "mul")


@RegisterGradient("Log")
def _LogGrad(op: Operation, grad: Tensor) -> Tensor:
    """dy / x."""
    return _mul(grad, apply("Reciprocal", _conj(op.inputs[0])), "mul")


def _of_output(type: str, doc: str) -> Callable[..., Tensor]:
    """A gradient that is one op, of y and dy."""

    def gradient(op: Operation, grad: Tensor) -> Tensor:
        return apply(f"{type}Grad", op.outputs[0], grad)

    gradient.__name__ = gradient.__qualname__ = f"_{type}Grad"
    gradient.__doc__ = doc
    return RegisterGradient(type)(gradient)


_SqrtGrad = _of_output("Sqrt", "dy / (2 y).")
_SigmoidGrad = _of_output("Sigmoid", "dy y (1 - y).")
_TanhGrad = _of_output("Tanh", "dy (1 - y y).")


@RegisterGradient("SqrtGrad")
def _SqrtGradGrad(op: Operation, grad: Tensor) -> Grads:
    """-dy s / y where s is the gradient that was made, and dy / (2 y)."""
    through = apply("RealDiv", grad, op.inputs[0])
    return [_mul(_neg(_conj(through)), op.outputs[0], "mul"), _mul(0.5, through, "mul")]


@RegisterGradient("Abs")
def _AbsGrad(op: Operation, grad: Tensor) -> Tensor:
    """dy sign(x)."""
    return _mul(grad, apply("Sign", op.inputs[0]), "mul")


def _NoGrad(op: Operation, *_: Tensor) -> Grads:
    """None, by a rule of its own."""
    return [None] * len(op.inputs)


for _type in ("ArgMax", "ArgMin", "Ceil", "Floor", "FloorDiv", "Rint", "Round", "TruncateDiv"):
    RegisterGradient(_type)(_NoGrad)


@RegisterGradient("Sign")
def _SignGrad(op: Operation, _: Tensor) -> Tensor:
    """Zeros: not None."""
    return apply("ZerosLike", op.inputs[0], name="zeros_like")


def _largest(op: Operation, grad: Tensor, compare: str) -> Grads:
    """All of dy to the first where both are equal."""
    x, y = op.inputs
    first = apply(compare, x, y)
    zeros = apply("ZerosLike", grad, name="zeros_like")
    dx = apply("SelectV2", first, grad, zeros)
    dy = apply("SelectV2", first, zeros, grad)
    return [sum_to(dx, x), sum_to(dy, y)]


@RegisterGradient("Maximum")
def _MaximumGrad(op: Operation, grad: Tensor) -> Grads:
    """dy to the greater; to the first where both are equal."""
    return _largest(op, grad, "GreaterEqual")


@RegisterGradient("Minimum")
def _MinimumGrad(op: Operation, grad: Tensor) -> Grads:
    """dy to the lesser; to the first where both are equal."""
    return _largest(op, grad, "LessEqual")


def _extreme(op: Operation, grad: Tensor) -> Grads:
    """dy, in equal parts to all elements that are the greatest or least."""
    x, axes = op.inputs

    def spread(t: Tensor) -> Tensor:
        return apply("SpreadLike", t, x, axes, name="Reshape")

    chosen = apply("Cast", apply("Equal", spread(op.outputs[0]), x), DstT=grad.dtype)
    count = apply("Sum", chosen, axes, keep_dims=op.get_attr("keep_dims"))
    return [_mul(apply("RealDiv", chosen, spread(count), name="truediv"), spread(grad)), None]


@RegisterGradient("Max")
def _MaxGrad(op: Operation, grad: Tensor) -> Grads:
    """dy, in equal parts to the greatest elements."""
    return _extreme(op, grad)


@RegisterGradient("Min")
def _MinGrad(op: Operation, grad: Tensor) -> Grads:
    """dy, in equal parts to the least elements."""
    return _extreme(op, grad)


def _is_there(x: Tensor) -> Tensor:
    return apply("Cast", apply("NotEqual", x, apply("ZerosLike", x)), DstT=x.dtype.base_dtype)


@RegisterGradient("Xlogy")
def _XLogyGrad(op: Operation, grad: Tensor) -> Grads:
    """dy log y and dy x / y; zero where x is."""
    x, y = op.inputs
    dx, dy = apply("Xlogy", _is_there(x), y), apply("Xdivy", x, y)
    return [sum_to(_mul(dx, grad), x), sum_to(_mul(dy, grad), y)]


@RegisterGradient("Xdivy")
def _XDivyGrad(op: Operation, grad: Tensor) -> Grads:
    """dy / y and -dy x / y^2; zero where x is."""
    x, y = op.inputs
    dx, dy = apply("Xdivy", _is_there(x), y), apply("Xdivy", _neg(x), apply("Square", y))
    return [sum_to(_mul(dx, grad), x), sum_to(_mul(dy, grad), y)]


@RegisterGradient("MulNoNan")
def _MulNoNanGrad(op: Operation, grad: Tensor) -> Grads:
    """dy y and x dy; zero where the second factor is."""
    x, y = op.inputs
    return [sum_to(apply("MulNoNan", grad, y), x), sum_to(apply("MulNoNan", x, grad), y)]


@RegisterGradient("NextAfter")
def _NextAfterGrad(op: Operation, grad: Tensor) -> Grads:
    """dy, and zeros for what it goes towards."""
    x, y = op.inputs
    return [sum_to(grad, x), apply("ZerosLike", y, name="zeros_like")]


@RegisterGradient("Polygamma")
def _PolygammaGrad(op: Operation, grad: Tensor) -> Grads:
    """None for the order, dy polygamma(a + 1, x)."""
    a, x = op.inputs
    return [None, sum_to(_mul(grad, apply("Polygamma", apply("AddV2", a, 1.0), x)), x)]


@RegisterGradient("Zeta")
def _ZetaGrad(op: Operation, grad: Tensor) -> Grads:
    """None for the exponent, -dy x zeta(x + 1, q)."""
    x, q = op.inputs
    dq = _mul(_neg(x), apply("Zeta", apply("AddV2", x, 1.0), q))
    return [None, sum_to(_mul(grad, dq), q)]


@RegisterGradient("MatMul")
def _MatMulGrad(op: Operation, grad: Tensor) -> Grads:
    """dy b^T and a^T dy."""
    a, b = (_conj(t) for t in op.inputs)
    ta, tb = op.get_attr("transpose_a"), op.get_attr("transpose_b")
    if not ta and not tb:
        return [_matmul(grad, b, False, True), _matmul(a, grad, True, False)]
    if not ta:
        return [_matmul(grad, b, False, False), _matmul(grad, a, True, False)]
    if not tb:
        return [_matmul(b, grad, False, True), _matmul(a, grad, False, False)]
    return [_matmul(b, grad, True, True), _matmul(grad, a, True, True)]


def _matmul(a: Tensor, b: Tensor, ta: bool, tb: bool) -> Tensor:
    return apply("MatMul", a, b, transpose_a=ta, transpose_b=tb)


@RegisterGradient("Sum")
def _SumGrad(op: Operation, grad: Tensor) -> Grads:
    """dy, for each element that was added up."""
    return [apply("SpreadLike", grad, op.inputs[0], op.inputs[1], name="Tile"), None]


@RegisterGradient("Mean")
def _MeanGrad(op: Operation, grad: Tensor) -> Grads:
    """dy / count, for each element that was added up."""
    spread = _SumGrad(op, grad)[0]
    x, y = op.inputs[0], op.outputs[0]
    whole, part = x.shape.num_elements(), y.shape.num_elements()
    if whole is not None and part is not None:
        return [apply("RealDiv", spread, float(whole // max(part, 1)), name="truediv"), None]
    sizes = [apply("Size", t, out_type="int32") for t in (x, y)]
    factor = apply("FloorDiv", sizes[0], apply("Maximum", sizes[1], 1), name="floordiv")
    factor = apply("Cast", factor, DstT=x.dtype.base_dtype)
    return [apply("RealDiv", spread, factor, name="truediv"), None]


@RegisterGradient("AddN")
def _AddNGrad(op: Operation, grad: Tensor) -> Grads:
    """dy to each."""
    return [grad] * len(op.inputs)


@RegisterGradient("Cast")
def _CastGrad(op: Operation, grad: Tensor) -> Any:
    """dy, of the type of x; None where one of the two is not a floating type."""
    kind, to = op.inputs[0].dtype.base_dtype, grad.dtype.base_dtype
    if not (kind.is_trainable and to.is_trainable):
        return None
    return apply("Cast", grad, DstT=kind)


@RegisterGradient("Pow")
def _PowGrad(op: Operation, grad: Tensor) -> Grads:
    """dy y x^(y - 1), and dy x^y log x where x > 0."""
    x, y, z = _conj(op.inputs[0]), _conj(op.inputs[1]), _conj(op.outputs[0])
    one = constant(1.0, y.dtype)
    dx = _mul(_mul(grad, y), apply("Pow", x, apply("Sub", y, one)))
    positive = apply("Greater", x, apply("ZerosLike", x)) if not x.dtype.is_complex else (
        apply("NotEqual", x, apply("ZerosLike", x)))  # fmt: skip
    ones, zeros = apply("OnesLike", x), apply("ZerosLike", x)
    log = apply("SelectV2", positive, apply("Log", apply("SelectV2", positive, x, ones)), zeros)
    return [sum_to(dx, op.inputs[0]), sum_to(_mul(_mul(grad, z), log), op.inputs[1])]


@RegisterGradient("FloorMod")
def _FloorModGrad(op: Operation, grad: Tensor) -> Grads:
    """dy and -dy floor(x / y)."""
    x, y = op.inputs
    floor = apply("FloorDiv", x, y, name="floordiv")
    return [sum_to(grad, x), sum_to(_mul(grad, _neg(floor), "mul"), y)]
