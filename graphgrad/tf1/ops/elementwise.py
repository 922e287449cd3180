"""Functions of each element by itself: an op type, what it is in graphgrad, and a function."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

import graphgrad as gg

from ..create import apply
from ..definition import define
from ..graph import Tensor
from ..shapes import TensorShape, broadcast

__all__ = [
    "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_or",
    "bitwise_xor", "ceil", "cos", "cosh", "cross", "digamma", "equal", "erf", "erfc", "erfinv",
    "exp", "expm1", "floor", "floor_div", "floordiv", "floormod", "greater", "greater_equal",
    "igamma", "igammac", "inv", "invert", "is_finite", "is_inf", "is_nan", "less", "less_equal",
    "lgamma", "log", "log1p", "logical_and", "logical_not", "logical_or", "maximum", "minimum",
    "mod", "mul", "multiply", "ndtri", "neg", "negative", "not_equal", "polygamma", "pow",
    "realdiv", "reciprocal", "rint", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "square",
    "squared_difference", "sub", "subtract", "tan", "tanh", "truncatediv", "truncatemod", "xdivy",
    "xlogy", "zeta",
]  # fmt: skip
Name = str | None
Function = Callable[..., Tensor]
Native = Callable[..., Any]


def unary(type: str, native: Native, kinds: str = "fc", dtype: Any = None) -> Function:
    """Define an op type of one tensor; the function that makes such ops."""
    define(type, "x", native=native, infer=same, kinds=kinds, dtype=dtype)

    def function(x: Any = None, name: Name = None, **kwargs: Any) -> Tensor:
        for old in ("features", "input", "tensor", "logits"):
            if x is None and old in kwargs:
                x = kwargs.pop(old)
        if kwargs:
            raise TypeError(f"{type} got unexpected arguments {sorted(kwargs)}")
        return apply(type, x, name=name)

    return named(function, type, "element by element")


def binary(
    type: str,
    native: Native | None = None,
    kinds: str = "fciuO",
    *,
    lower: Native | None = None,
    dtype: Any = None,
    name: Name = None,
) -> Function:
    """Define an op type of two tensors; the function that makes such ops, under a name."""
    define(type, "x y", native=native, lower=lower, infer=both, kinds=kinds, dtype=dtype)
    return of_two(type, name)


def of_two(type: str, default: Name = None) -> Function:
    """The function that makes ops of a type of two tensors."""

    def function(x: Any, y: Any, name: Name = None) -> Tensor:
        return apply(type, x, y, name=name or default)

    return named(function, type, "element by element; shapes are broadcast", default)


def activation(type: str, native: Callable[..., Any], kinds: str = "f") -> Callable[..., Tensor]:
    """Define an op type of one tensor, its features; the function that makes such ops."""
    define(type, "features", native=native, infer=same, kinds=kinds)

    def function(features: Any, name: Name = None) -> Tensor:
        return apply(type, features, name=name)

    return named(function, type, "element by element")


def named(function: Function, type: str, manner: str, name: Name = None) -> Function:
    """A function with the name of the ops that it makes, and a docstring."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name or type)
    function.__name__ = function.__qualname__ = words.lower()
    function.__doc__ = f"An op of type {type}, {manner}."
    return function


def same(inputs: Any, attrs: Any) -> TensorShape:
    """The shape of the first input."""
    return inputs[0]._shape


def both(inputs: Any, attrs: Any) -> TensorShape:
    """The shape of two inputs broadcast against each other."""
    return broadcast(inputs[0]._shape, inputs[1]._shape)


# of one tensor


for _type, _native in {"Abs": gg.abs, "Round": gg.rint, "Conj": gg.conj}.items():
    unary(_type, _native, "")
neg = negative = unary("Neg", gg.negative, "")
sign, square = unary("Sign", gg.sign, ""), unary("Square", gg.square, "")
floor, ceil = unary("Floor", gg.floor, "f"), unary("Ceil", gg.ceil, "f")
rint, invert = unary("Rint", gg.rint, "f"), unary("Invert", gg.bitwise_invert, "")
sqrt, rsqrt = unary("Sqrt", gg.sqrt), unary("Rsqrt", lambda x: 1.0 / gg.sqrt(x))
exp, expm1 = unary("Exp", gg.exp), unary("Expm1", gg.expm1)
log, log1p = unary("Log", gg.log), unary("Log1p", gg.log1p)
sin, cos, tan = unary("Sin", gg.sin), unary("Cos", gg.cos), unary("Tan", gg.tan)
asin, acos, atan = unary("Asin", gg.arcsin), unary("Acos", gg.arccos), unary("Atan", gg.arctan)
sinh, cosh, tanh = unary("Sinh", gg.sinh), unary("Cosh", gg.cosh), unary("Tanh", gg.tanh)
asinh, acosh = unary("Asinh", gg.arcsinh), unary("Acosh", gg.arccosh)
atanh, sigmoid = unary("Atanh", gg.arctanh), unary("Sigmoid", gg.nn.sigmoid)
erf, erfc = unary("Erf", gg.special.erf), unary("Erfc", gg.special.erfc)
erfinv, ndtri = unary("Erfinv", gg.special.erfinv), unary("Ndtri", gg.special.ndtri)
lgamma, digamma = unary("Lgamma", gg.special.gammaln), unary("Digamma", gg.special.digamma)
bessel_i0e, bessel_i1e = unary("BesselI0e", gg.special.i0e), unary("BesselI1e", gg.special.i1e)
reciprocal, inv = unary("Reciprocal", gg.reciprocal), unary("Inv", gg.reciprocal)
logical_not = unary("LogicalNot", gg.logical_not, "b", "bool")
is_finite = unary("IsFinite", gg.isfinite, "f", "bool")
is_inf, is_nan = unary("IsInf", gg.isinf, "f", "bool"), unary("IsNan", gg.isnan, "f", "bool")
relu, relu6 = activation("Relu", gg.nn.relu, "fiu"), activation("Relu6", gg.nn.relu6, "fiu")
elu, selu = activation("Elu", gg.nn.elu), activation("Selu", gg.nn.selu)
softplus = activation("Softplus", gg.nn.softplus)
softsign = activation("Softsign", gg.nn.soft_sign)


# of two


def _divide(x: Any, y: Any) -> Any:
    return _toward_zero(x, y) if x.dtype.kind in "iu" else x / y


def _floor_divide(x: Any, y: Any) -> Any:
    return gg.floor_divide(x, y) if x.dtype.kind in "iu" else gg.floor(x / y)


def _toward_zero(x: Any, y: Any) -> Any:
    if x.dtype.kind not in "iu":
        return gg.trunc(x / y)
    quotient = gg.floor_divide(x, y)
    inexact = gg.not_equal(quotient * y, x)
    negative = gg.not_equal(gg.less(x, 0), gg.less(y, 0))
    return quotient + gg.cast(gg.logical_and(inexact, negative), x.dtype)


def _no_nan(x: Any, y: Any) -> Any:
    zero = gg.equal(y, 0)
    return gg.where(zero, gg.zeros_like(x * y), x / gg.where(zero, gg.ones_like(y), y))


def _or_zero(x: Any, y: Any) -> Any:
    """y; zero where x is, even where y is not a number."""
    return gg.where(gg.equal(x, 0), gg.zeros_like(y), y)


def _by_no_zero(function: Callable[..., Any]) -> Callable[..., Any]:
    """A division; an error where integers are divided by a constant that holds a zero."""

    def lower(trace: Any, op: Any, x: Any, y: Any) -> Any:
        divisor = trace.constant(op.inputs[1]) if y.dtype.kind in "iu" else None
        if divisor is not None and x.size and not np.all(divisor):
            raise ValueError("Integer division by zero")
        return function(x, y)

    return lower


binary("Add", gg.add)
add = binary("AddV2", gg.add, name="Add")
sub = subtract = binary("Sub", gg.subtract)
mul = multiply = binary("Mul", gg.multiply)
realdiv, pow = binary("RealDiv", gg.divide), binary("Pow", gg.power)
binary("Div", lower=_by_no_zero(_divide), kinds="fciu")
floordiv = binary("FloorDiv", lower=_by_no_zero(_floor_divide), kinds="fciu", name="floordiv")
floor_div = floordiv
mod = floormod = binary("FloorMod", lower=_by_no_zero(gg.remainder), kinds="fciu")
binary("Mod", lower=_by_no_zero(gg.fmod), kinds="fciu")
truncatediv = binary("TruncateDiv", lower=_by_no_zero(_toward_zero), kinds="fciu")
truncatemod = binary("TruncateMod", lower=_by_no_zero(gg.fmod), kinds="fciu")
binary("DivNoNan", _no_nan, "fc")
binary("MulNoNan", lambda x, y: gg.where(gg.equal(y, 0), gg.zeros_like(x * y), x * y), "fc")
xlogy = binary("Xlogy", lambda x, y: _or_zero(x, x * gg.log(y)), "fc")
xdivy = binary("Xdivy", lambda x, y: _or_zero(x, x / y), "fc")
maximum, minimum = binary("Maximum", gg.maximum), binary("Minimum", gg.minimum)
squared_difference = binary("SquaredDifference", lambda x, y: gg.square(x - y))
atan2, nextafter = binary("Atan2", gg.arctan2, "fc"), binary("NextAfter", gg.nextafter, "fc")
igamma = binary("Igamma", gg.special.gammainc, "f")
igammac = binary("Igammac", gg.special.gammaincc, "f")
bitwise_and = binary("BitwiseAnd", gg.bitwise_and, "iu")
bitwise_or = binary("BitwiseOr", gg.bitwise_or, "iu")
bitwise_xor = binary("BitwiseXor", gg.bitwise_xor, "iu")
left_shift = binary("LeftShift", gg.bitwise_left_shift, "iu")
right_shift = binary("RightShift", gg.bitwise_right_shift, "iu")
equal = binary("Equal", gg.equal, "", dtype="bool")
not_equal = binary("NotEqual", gg.not_equal, "", dtype="bool")
less = binary("Less", gg.less, "fiu", dtype="bool")
less_equal = binary("LessEqual", gg.less_equal, "", dtype="bool")
greater = binary("Greater", gg.greater, "fiu", dtype="bool")
greater_equal = binary("GreaterEqual", gg.greater_equal, "", dtype="bool")
logical_and = binary("LogicalAnd", gg.logical_and, "b", dtype="bool")
logical_or = binary("LogicalOr", gg.logical_or, "b", dtype="bool")
binary("LogicalXor", gg.logical_xor, "b", dtype="bool")
zeta, cross, polygamma = map(of_two, ("Zeta", "Cross", "Polygamma"))
