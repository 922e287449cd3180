"""Functions of arithmetic, and the operators of tensors."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from ..create import apply, constant, convert_n_to_tensor, convert_to_tensor, name_scope
from ..dtypes import as_dtype
from ..graph import Tensor
from . import elementwise as _elementwise
from .elementwise import *
from .elementwise import bessel_i0e, bessel_i1e, left_shift, nextafter, right_shift

__all__ = [
    "abs", "accumulate_n", "add_n", "arg_max", "arg_min", "argmax", "argmin", "batch_matmul",
    "bincount", "cast", "clip_by_average_norm", "clip_by_global_norm", "clip_by_norm",
    "clip_by_value", "complex", "conj", "count_nonzero", "cumprod", "cumsum", "div", "div_no_nan",
    "divide", "einsum", "global_norm", "imag", "lbeta", "lin_space", "linspace", "logical_xor",
    "matmul", "range", "real", "reduce_all", "reduce_any", "reduce_logsumexp", "reduce_max",
    "reduce_mean", "reduce_min", "reduce_prod", "reduce_std", "reduce_sum", "reduce_variance",
    "round", "saturate_cast", "scalar_mul", "segment_mean", "segment_sum", "sparse_matmul",
    "tensordot", "to_bfloat16", "to_double", "to_float", "to_int32", "to_int64", "truediv",
    "unsorted_segment_sum",
]  # fmt: skip
__all__ += _elementwise.__all__
Name = str | None


def logical_xor(x: Any, y: Any, name: str = "LogicalXor") -> Tensor:
    """Where one of two truth values holds."""
    return logical_and(logical_or(x, y), logical_not(logical_and(x, y)), name=name)


def abs(x: Any, name: Name = None) -> Tensor:
    """|x|, element by element."""
    x = convert_to_tensor(x)
    type = "ComplexAbs" if x.dtype.is_complex else "Abs"
    return apply(type, x, name=name or "Abs")


def _quotients(x: Any, y: Any, name: str, whole: str, real: str = "RealDiv") -> Tensor:
    with name_scope(name, values=[x, y]) as scope:
        x = convert_to_tensor(x, name="x", preferred_dtype=_kind(y))
        y = convert_to_tensor(y, name="y", dtype=x.dtype.base_dtype)
        if x.dtype.base_dtype != y.dtype.base_dtype:
            raise TypeError(f"x and y must have the same dtype, got {x.dtype!r} != {y.dtype!r}")
        if not (x.dtype.is_floating or x.dtype.is_complex):
            if whole == real:
                wide = as_dtype("float32" if x.dtype.size < 4 else "float64")
                x, y = cast(x, wide), cast(y, wide)
            made: Tensor = apply(whole, x, y, name=scope)
        else:
            made = apply(real, x, y, name=scope)
        return made


def _kind(value: Any) -> Any:
    kind = getattr(value, "dtype", None)
    return as_dtype(kind).base_dtype if kind is not None and hasattr(kind, "base_dtype") else None


def truediv(x: Any, y: Any, name: Name = None) -> Tensor:
    """x / y; integers are made floating ones first."""
    return _quotients(x, y, name or "truediv", "RealDiv")


def div(x: Any, y: Any, name: Name = None) -> Tensor:
    """x / y; of integers the floor of it."""
    return _quotients(x, y, name or "div", "FloorDiv")


def divide(x: Any, y: Any, name: Name = None) -> Tensor:
    """x / y, as the operator."""
    if name is not None:
        return truediv(x, y, name)
    return convert_to_tensor(x) / y


def div_no_nan(x: Any, y: Any, name: Name = None) -> Tensor:
    """x / y, and 0 where y is; integers are made floating ones first."""
    return _quotients(x, y, name or "div_no_nan", "DivNoNan", "DivNoNan")


def round(x: Any, name: Name = None) -> Tensor:
    """To the nearest integer, the even one of two; integers stay the tensor they are."""
    x = convert_to_tensor(x, name="x")
    return x if x.dtype.is_integer else apply("Round", x, name=name)


def scalar_mul(scalar: Any, x: Any, name: Name = None) -> Tensor:
    """A number times x."""
    x = convert_to_tensor(x)
    return multiply(convert_to_tensor(scalar, x.dtype.base_dtype), x, name=name)


def cast(x: Any, dtype: Any, name: Name = None) -> Tensor:
    """x as elements of another type."""
    kind = as_dtype(dtype).base_dtype
    if isinstance(x, Tensor) and x.dtype.base_dtype is kind:
        return x
    with name_scope(name, "Cast", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        if x.dtype.base_dtype is kind:
            return x
        return apply("Cast", x, name=scope, DstT=kind, SrcT=x.dtype.base_dtype)


def saturate_cast(value: Any, dtype: Any, name: Name = None) -> Tensor:
    """x as elements of another type, clipped to what that can hold."""
    value, kind = convert_to_tensor(value), as_dtype(dtype)
    low, high = (np.array(v).astype(value.dtype.numpy) for v in (kind.min, kind.max))
    return cast(minimum(maximum(value, low), high), kind, name)


def _to(dtype: str, name: str) -> Callable[..., Tensor]:
    def function(x: Any, name: str = name) -> Tensor:
        return cast(x, dtype, name)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"x as {dtype}."
    return function


to_float, to_double = _to("float32", "ToFloat"), _to("float64", "ToDouble")
to_int32, to_int64 = _to("int32", "ToInt32"), _to("int64", "ToInt64")
to_bfloat16 = to_float


# reductions


def _axes(x: Tensor, axis: Any) -> Any:
    """The axes of a reduction: all of them as a constant where none are given."""
    if axis is not None:
        return axis
    rank = x.shape.ndims
    if rank is not None:
        return constant(np.arange(rank, dtype="int32"))
    return apply("Range", 0, apply("Rank", x), 1, name="range")


def _reduced(type: str, x: Any, axis: Any, keep: Any, name: Name, dtype: Any = None) -> Tensor:
    x = convert_to_tensor(x, dtype, name="input_tensor")
    made: Tensor = apply(type, x, _axes(x, axis), name=name, keep_dims=bool(keep))
    if axis is None and not keep:
        made.set_shape(())
    return made


def _reduction(type: str, dtype: Any = None) -> Callable[..., Tensor]:
    def function(
        input_tensor: Any,
        axis: Any = None,
        keepdims: Any = None,
        name: Name = None,
        reduction_indices: Any = None,
        keep_dims: Any = None,
    ) -> Tensor:
        axis = reduction_indices if axis is None else axis
        return _reduced(type, input_tensor, axis, keepdims or keep_dims, name, dtype)

    function.__name__ = function.__qualname__ = f"reduce_{type.lower()}"
    function.__doc__ = f"An op of type {type} over axes, all of them by default."
    return function


reduce_sum, reduce_mean, reduce_max = map(_reduction, ("Sum", "Mean", "Max"))
reduce_min, reduce_prod = map(_reduction, ("Min", "Prod"))
reduce_all, reduce_any = _reduction("All", "bool"), _reduction("Any", "bool")


def reduce_logsumexp(
    input_tensor: Any,
    axis: Any = None,
    keepdims: Any = None,
    name: Name = None,
    reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:
    """log(sum(exp(x))) over axes."""
    axis = reduction_indices if axis is None else axis
    keep = bool(keepdims or keep_dims)
    with name_scope(name, "ReduceLogSumExp", [input_tensor]) as scope:
        x = convert_to_tensor(input_tensor)
        raw = reduce_max(x, axis, keepdims=True)
        top = apply(
            "StopGradient",
            apply("SelectV2", is_finite(raw), raw, apply("ZerosLike", raw, name="zeros_like")),
        )
        total = reduce_sum(exp(subtract(x, top)), axis, keepdims=keep)
        if not keep:
            shape = (
                total.shape
                if total.shape.is_fully_defined()
                else apply("Shape", total, out_type="int32")
            )
            top = apply("Reshape", top, shape)
        return add(log(total), top, name=scope)


def reduce_variance(x: Any, axis: Any = None, keepdims: bool = False, name: Name = None) -> Tensor:
    """The mean of squared distances to the mean, over axes."""
    with name_scope(name or "reduce_variance"):
        x = convert_to_tensor(x)
        return reduce_mean(square(x - reduce_mean(x, axis, keepdims=True)), axis, keepdims)


def reduce_std(x: Any, axis: Any = None, keepdims: bool = False, name: Name = None) -> Tensor:
    """The root of the mean of squared distances to the mean, over axes."""
    with name_scope(name or "reduce_std"):
        return sqrt(reduce_variance(x, axis, keepdims))


def count_nonzero(
    input_tensor: Any,
    axis: Any = None,
    keepdims: Any = None,
    dtype: Any = "int64",
    name: Name = None,
    reduction_indices: Any = None,
    keep_dims: Any = None,
) -> Tensor:
    """How many elements are not zero, over axes."""
    axis = reduction_indices if axis is None else axis
    with name_scope(name, "count_nonzero", [input_tensor]):
        x = convert_to_tensor(input_tensor)
        found = to_int64(not_equal(x, np.zeros((), x.dtype.numpy)))
        return cast(reduce_sum(found, axis, keepdims or keep_dims), dtype)


def _arg(type: str, which: str) -> Callable[..., Tensor]:
    def function(
        input: Any,
        axis: Any = None,
        name: Name = None,
        dimension: Any = None,
        output_type: Any = "int64",
    ) -> Tensor:
        axis = dimension if axis is None else axis
        kind = as_dtype(output_type)
        return apply(type, input, 0 if axis is None else axis, name=name, output_type=kind)

    function.__name__ = function.__qualname__ = type.lower()
    function.__doc__ = f"Where the {which} element is along an axis, the first by default."
    return function


arg_max = argmax = _arg("ArgMax", "greatest")
arg_min = argmin = _arg("ArgMin", "least")


# products


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: Name = None,
) -> Tensor:
    """The product of matrices, or of stacks of matrices."""
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        raise ValueError("Only one of transpose and adjoint can be True.")
    with name_scope(name, "MatMul", [a, b]) as scope:
        a = convert_to_tensor(a, name="a", preferred_dtype=_kind(b))
        b = convert_to_tensor(b, name="b", preferred_dtype=a.dtype.base_dtype)
        ranks = [t.shape.ndims for t in (a, b)]
        if any(r is not None and r > 2 for r in ranks) or None in ranks:
            return apply(
                "BatchMatMulV2", a, b, name=scope, adj_x=bool(transpose_a or adjoint_a),
                adj_y=bool(transpose_b or adjoint_b),
            )  # fmt: skip
        if adjoint_a and a.dtype.is_complex:
            a, transpose_a = conj(a), True
        if adjoint_b and b.dtype.is_complex:
            b, transpose_b = conj(b), True
        return apply(
            "MatMul", a, b, name=scope, transpose_a=bool(transpose_a or adjoint_a),
            transpose_b=bool(transpose_b or adjoint_b),
        )  # fmt: skip


batch_matmul = sparse_matmul = matmul


def tensordot(a: Any, b: Any, axes: Any, name: Name = None) -> Tensor:
    """The product summed over axes of both."""
    with name_scope(name, "Tensordot", [a, b]):
        a = convert_to_tensor(a, name="a")
        b = convert_to_tensor(b, name="b", dtype=a.dtype.base_dtype)
        ranks = len(a.shape), len(b.shape)
        if isinstance(axes, int):
            first, second = (
                list(builtins.range(ranks[0] - axes, ranks[0])),
                list(builtins.range(axes)),
            )
        else:
            first, second = ([x] if isinstance(x, int) else [int(i) for i in x] for x in axes)
            first = [i % ranks[0] for i in first]
            second = [i % ranks[1] for i in second]
        letters = "abcdefghijklmnopqrstuvwxyz"
        left = list(letters[: ranks[0]])
        right = list(letters[ranks[0] : ranks[0] + ranks[1]])
        for i, j in zip(first, second, strict=True):
            right[j] = left[i]
        rest = [c for i, c in enumerate(left) if i not in first]
        rest += [c for j, c in enumerate(right) if j not in second]
        return einsum(f"{''.join(left)},{''.join(right)}->{''.join(rest)}", a, b)


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Sums of products, by letters of axes."""
    return apply(
        "Einsum", convert_n_to_tensor(inputs), name=kwargs.get("name") or "einsum/Einsum",
        equation=equation.replace(" ", ""),
    )  # fmt: skip


def add_n(inputs: Any, name: Name = None) -> Tensor:
    """The sum of a list of tensors."""
    if not isinstance(inputs, list | tuple) or not inputs:
        raise ValueError("inputs must be an iterable of at least one Tensor/IndexedSlices with the "
                         "same dtype and shape")  # fmt: skip
    tensors = convert_n_to_tensor(inputs)
    if len(tensors) == 1:
        return apply("Identity", tensors[0], name=name) if name else tensors[0]
    return apply("AddN", *tensors, name=name)


def accumulate_n(
    inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: Name = None
) -> Any:
    """The sum of a list of tensors."""
    return add_n(inputs, name)


def _cumulative(type: str, what: str) -> Callable[..., Tensor]:
    def function(
        x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: Name = None
    ) -> Tensor:
        return apply(type, x, axis, name=name, exclusive=bool(exclusive), reverse=bool(reverse))

    function.__name__ = function.__qualname__ = type.lower()
    function.__doc__ = f"{what} of all elements up to each, along an axis."
    return function


cumsum, cumprod = _cumulative("Cumsum", "Sums"), _cumulative("Cumprod", "Products")


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: Name = None) -> Any:
    """Sums of the rows that have one number."""
    return apply("UnsortedSegmentSum", data, segment_ids, num_segments, name=name)


def segment_sum(data: Any, segment_ids: Any, name: Name = None) -> Any:
    """Sums of the rows that have one number; the numbers are sorted."""
    return apply("SegmentSum", data, segment_ids, name=name)


def segment_mean(data: Any, segment_ids: Any, name: Name = None) -> Any:
    """Means of the rows that have one number; the numbers are sorted."""
    return apply("SegmentMean", data, segment_ids, name=name)


def range(
    start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range"
) -> Tensor:
    """start, start + delta, ... below limit."""
    if limit is None:
        start, limit = 0, start
    with name_scope(name, "Range", [start, limit, delta]) as scope:
        tensors = [
            convert_to_tensor(v, dtype, n)
            for v, n in zip((start, limit, delta), ("start", "limit", "delta"), strict=True)
        ]
        if dtype is None:
            order = ["int32", "int64", "float32", "float64"]
            kinds = [t.dtype.base_dtype.name for t in tensors]
            widest = max((k for k in kinds if k in order), key=order.index, default=kinds[0])
            tensors = [cast(t, widest) for t in tensors]
        return apply("Range", *tensors, name=scope)


def linspace(start: Any, stop: Any, num: Any, name: Name = None) -> Tensor:
    """So many numbers from start to stop."""
    return apply("LinSpace", start, stop, num, name=name)


lin_space = linspace


def real(input: Any, name: Name = None) -> Tensor:
    """The real part."""
    x = convert_to_tensor(input)
    return apply("Real", x, name=name) if x.dtype.is_complex else x


def imag(input: Any, name: Name = None) -> Tensor:
    """The imaginary part."""
    x = convert_to_tensor(input)
    return apply("Imag" if x.dtype.is_complex else "ZerosLike", x, name=name)


def conj(x: Any, name: Name = None) -> Tensor:
    """The conjugate."""
    x = convert_to_tensor(x)
    return apply("Conj", x, name=name) if x.dtype.is_complex else x


def complex(real: Any, imag: Any, name: Name = None) -> Tensor:
    """real + i imag."""
    return apply("Complex", real, imag, name=name)


def lbeta(x: Any, name: Name = None) -> Tensor:
    """log of the multivariate beta function, along the last axis."""
    with name_scope(name, "lbeta", [x]):
        x = convert_to_tensor(x)
        return subtract(reduce_sum(lgamma(x), -1), lgamma(reduce_sum(x, -1)))


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = "int32",
) -> Tensor:
    """How often each integer comes."""
    arr = cast(arr, "int32")
    any_there = cast(greater(apply("Size", arr, out_type="int32"), 0), "int32")
    size = any_there * (reduce_max(arr) + 1)
    size = size if minlength is None else maximum(minlength, size)
    size = size if maxlength is None else minimum(maxlength, size)
    return apply("Bincount", arr, size, constant([], dtype) if weights is None else weights)


# clipping


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: Name = None) -> Tensor:
    """t, between two bounds."""
    with name_scope(name, "clip_by_value", [t, clip_value_min, clip_value_max]) as scope:
        t = convert_to_tensor(t, name="t")
        return maximum(minimum(t, clip_value_max), clip_value_min, name=scope)


def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: Name = None) -> Tensor:
    """t, scaled down to a norm where it has a greater one."""
    with name_scope(name, "clip_by_norm", [t, clip_norm]) as scope:
        values = convert_to_tensor(t, name="t")
        total = reduce_sum(multiply(values, values), axes, keepdims=True)
        positive = greater(total, 0.0 if values.dtype.name == "float32" else
                           np.zeros((), values.dtype.numpy))  # fmt: skip
        safe = apply("Select", positive, total, apply("OnesLike", total, name="ones_like"),
                     name="Select")  # fmt: skip
        norm = apply("Select", positive, sqrt(safe), total, name="Select_1")
        clipped = truediv(multiply(values, clip_norm), maximum(norm, clip_norm))
        return apply("Identity", clipped, name=scope)


def global_norm(t_list: Any, name: Name = None) -> Tensor:
    """The norm of all tensors of a list together."""
    with name_scope(name, "global_norm", [t for t in t_list if t is not None]):
        halves = [apply("L2Loss", t) for t in t_list if t is not None]
        total = reduce_sum(apply("Pack", *halves, axis=0, name="stack"))
        two = constant(2.0, dtype=total.dtype)
        return sqrt(multiply(total, two, name="mul"), name="global_norm")


def clip_by_global_norm(
    t_list: Any, clip_norm: Any, use_norm: Any = None, name: Name = None
) -> tuple[list[Any], Tensor]:
    """All tensors of a list, scaled down to a norm together; and the norm they had."""
    if not isinstance(t_list, list | tuple):
        raise TypeError("t_list should be a sequence")
    norm = global_norm(t_list, name) if use_norm is None else use_norm
    with name_scope(name, "clip_by_global_norm", [t for t in t_list if t is not None]) as scope:
        limit = convert_to_tensor(clip_norm, norm.dtype.base_dtype)
        one = constant(1.0, norm.dtype.base_dtype)
        scale = multiply(limit, minimum(truediv(one, norm), truediv(one, limit)), name="mul")
        scale = add(scale, subtract(norm, norm, name="sub"), name="add")
        clipped = [
            t
            if t is None
            else apply("Identity", multiply(t, scale, name="mul"), name=f"{scope}_{i}")
            for i, t in enumerate(t_list)
        ]
    return clipped, norm


def clip_by_average_norm(t: Any, clip_norm: Any, name: Name = None) -> Tensor:
    """t, scaled down to an average norm where it has a greater one."""
    with name_scope(name, "clip_by_average_norm", [t, clip_norm]):
        t = convert_to_tensor(t)
        count = cast(apply("Size", t, out_type="int32"), t.dtype)
        mean = divide(sqrt(reduce_sum(square(t))), count)
        return (
            t
            * clip_norm
            * minimum(
                divide(constant(1.0, t.dtype), mean), divide(constant(1.0, t.dtype), clip_norm)
            )
        )


# operators


def _operator(function: Callable[..., Any], name: Name) -> Any:
    def forward(self: Any, other: Any) -> Any:
        if not isinstance(other, Tensor) and not _is_operand(other):
            return NotImplemented
        return function(self, other, name=name)

    def reverse(self: Any, other: Any) -> Any:
        with name_scope(name, values=[self]) as scope:
            kind = self.dtype.base_dtype
            left = convert_to_tensor(other, dtype=kind, name="x")
            return function(left, self, name=scope)

    return forward, reverse


def _is_operand(other: Any) -> bool:
    return not isinstance(other, str | dict | set) and other is not None


def _apply_op(type: str) -> Callable[..., Any]:
    return lambda x, y, name: apply(type, x, y, name=name)


def _both(boolean: str, whole: str) -> Callable[..., Any]:
    def function(x: Any, y: Any, name: Any) -> Any:
        kind = x.dtype.base_dtype
        return apply(boolean if kind.is_bool else whole, x, y, name=name)

    return function


OPERATORS: dict[str, tuple[Callable[..., Any], str]] = {
    "add": (_apply_op("AddV2"), "add"),
    "sub": (_apply_op("Sub"), "sub"),
    "mul": (_apply_op("Mul"), "mul"),
    "truediv": (truediv, "truediv"),
    "div": (div, "div"),
    "floordiv": (floordiv, "floordiv"),
    "mod": (_apply_op("FloorMod"), "mod"),
    "pow": (_apply_op("Pow"), "pow"),
    "matmul": (matmul, "matmul"),
    "and": (_both("LogicalAnd", "BitwiseAnd"), "and"),
    "or": (_both("LogicalOr", "BitwiseOr"), "or"),
    "xor": (logical_xor, "xor"),
}
COMPARISONS: dict[str, str] = {
    "lt": "Less", "le": "LessEqual", "gt": "Greater", "ge": "GreaterEqual",
}  # fmt: skip


def operators() -> dict[str, Any]:
    """The methods of tensors and variables that are operators, by name."""
    found: dict[str, Any] = {}
    for name, (function, label) in OPERATORS.items():
        forward, reverse = _operator(function, label)
        found[f"__{name}__"], found[f"__r{name}__"] = forward, reverse
    for name, type in COMPARISONS.items():
        found[f"__{name}__"] = _operator(_elementwise.of_two(type), type)[0]
    found["__neg__"] = lambda self: negative(self)
    found["__abs__"] = lambda self: abs(self)
    found["__invert__"] = lambda self: logical_not(self, name="LogicalNot")
    return found


for _name, _method in operators().items():
    setattr(Tensor, _name, _method)
Tensor.OVERLOADABLE_OPERATORS = set(operators())
