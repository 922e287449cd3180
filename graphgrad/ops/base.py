"""What ops share: families, operands, structural zeros, and what a gradient may be."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from ..base.errors import DTypeError, GraphGradError
from ..base.kinds import accumulated_in, is_floating, is_inexact, kind_of
from ..base.length import Length
from ..ir.build import apply, build
from ..ir.context import CONTEXT
from ..ir.facts import Derivative, Memory, Traits
from ..ir.graph import current
from ..ir.node import Node, Tensor
from ..ir.onnx import Onnx
from ..ir.op import Gradients, Op, Samples, Types
from ..ir.region_tree import sites_at
from ..ir.types import (
    Array,
    DType,
    Shape,
    TensorType,
    as_dtype,
    broadcast,
    check_unmasked,
    inexact,
    result_dtype,
    small_float,
    tensor_type,
    type_of_array,
)
from .documented import documented

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "DEFAULT",
    "NO_GRAD",
    "ZERO",
    "Any",
    "Array",
    "Binary",
    "Cast",
    "Comparison",
    "Constant",
    "DType",
    "DTypeError",
    "Derivative",
    "Elementwise",
    "Gradients",
    "GraphGradError",
    "Marker",
    "Memory",
    "Node",
    "Onnx",
    "Op",
    "Samples",
    "Sequence",
    "Shape",
    "Tensor",
    "TensorLike",
    "TensorType",
    "Traits",
    "Types",
    "Unary",
    "ZeroTensor",
    "apply",
    "array_of",
    "as_dtype",
    "as_tensor",
    "broadcast",
    "build",
    "cast",
    "constant",
    "count",
    "inexact",
    "is_floating",
    "is_inexact",
    "is_zero",
    "kind_of",
    "like",
    "np",
    "operand_dtypes",
    "promoted",
    "result_dtype",
    "tensor_type",
    "type_of",
    "type_of_array",
    "wants",
    "whole",
]


TensorLike: TypeAlias = "Tensor | npt.ArrayLike"
"""What functions take for a tensor: a tensor, a number, an array, nested lists of numbers."""


class Marker:
    """What a rule may return for an input instead of a tensor."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name

    def __reduce__(self) -> str:
        return self._name


NO_GRAD: Final = Marker("NO_GRAD")
"""Nothing flows to this input."""
ZERO: Final = Marker("ZERO")
"""A gradient flows to this input, and it is zero; built only if somebody reads it."""
DEFAULT: Final = Marker("DEFAULT")
"""The gradient this input would have without the rule."""


# --- constants and casts ---------------------------------------------------------------------


class Constant(Op, interned=False):
    """A fixed array. Inside a region it is a member; it has no gradient."""

    value: Array
    differentiable = False
    flop_free = True

    def infer(self) -> Types:
        return (type_of_array(self.value),)

    def kernel(self, xp: Any) -> Any:
        return xp.asarray(self.value)

    def __repr__(self) -> str:
        small = self.value.size <= 4
        return f"Constant({self.value.tolist() if small else type_of_array(self.value)})"


def array_of(value: Any, dtype: DType | None = None) -> Array:
    """np.asarray of the value; DTypeError where it is not an array, or does not fit the dtype."""
    try:
        return np.asarray(value, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, GraphGradError):
            raise
        no = "is not an array of numbers" if dtype is None else f"does not fit {dtype}"
        raise DTypeError(f"{reprlib.repr(value)} {no}: {error}") from None


def constant(value: Any, dtype: Any = None, name: str | None = None) -> Tensor:
    """A fixed array: a copy of value, so later changes of it do not matter.

    Parameters:
        value: a number, an array, nested lists of numbers.
        dtype: the dtype to cast it to; None: its own, where Python numbers become bool, int64,
            float64 or complex128.
        name: the node's name.

    Returns: a tensor of value's shape.

    Raises: DTypeError for non-numeric input, or no dtype, for a number that does not fit
    it, and if an imaginary part would be dropped.

    >>> gg.constant([1, 2], "float32").type
    float32[2]
    """
    if isinstance(value, Tensor):
        raise DTypeError(f"constant() takes a value, got {value!r}; use gg.cast to change a dtype")
    array = as_array(value, dtype)
    array.flags.writeable = False
    return build(Constant(array), (), name).outputs[0]


def as_array(value: Any, dtype: Any = None) -> Array:
    """A copy of a number, an array or nested lists, cast to a dtype if one is given."""
    check_unmasked(value)
    array = array_of(value)
    target = as_dtype(array.dtype if dtype is None else dtype)
    if kind_of(array.dtype) == "c" and kind_of(target) != "c":
        raise DTypeError(f"{value!r} as {target} would drop the imaginary part; use its real part")
    return np.array(array_of(value, target))  # an error, not a wrapped number


def scalar(value: Any, dtype: DType) -> Tensor:
    """A 0-d constant. What rules build is shared within a graph and region."""
    context = current()
    if context.origin is None:
        return constant(value, dtype)
    key = ("scalar", repr(value), dtype, context.region)
    cached = context.graph.residuals.get(key)
    if cached is None:
        cached = context.graph.residuals[key] = constant(value, dtype)
    return cached


class LengthValue(Op):
    """A length as a 0-d tensor. Gradient: none."""

    length: Any
    dtype: DType
    differentiable = False
    flop_free = True

    def infer(self) -> Types:
        return (tensor_type((), self.dtype),)

    def kernel(self, xp: Any) -> Any:
        return xp.asarray(self.length, dtype=self.dtype)

    def to_onnx(self, to: Any) -> Any:
        return to.cast(to.value(self.length, as_dtype("int64")), self.dtype)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(5, as_dtype("int64")), []
        yield cls(3, as_dtype("float32")), []


class Cast(Op):
    """y = x as another dtype.

    Gradient: dx = dy cast back, its real part where a real x was made complex; none through
        integers and bools.
    """

    dtype: DType
    elementwise = True
    linear = "joint"
    derivative = Derivative(relevance="moved")
    flop_free = True

    def infer(self, x: TensorType) -> Types:
        if kind_of(x.dtype) == "c" and kind_of(self.dtype) != "c":
            raise DTypeError(f"casting {x} to {self.dtype} would drop the imaginary part")
        return (tensor_type(x.shape, self.dtype),)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.astype(x, self.dtype)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.cast(x, self.dtype)

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        (x,) = node.inputs
        if not x.type.differentiable:
            return (NO_GRAD,)
        if kind_of(self.dtype) == "c" and kind_of(x.dtype) != "c":
            dy = apply(Real(), dy)
        return (cast(dy, x.dtype),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(as_dtype("float32")), [rng.normal(size=(2, 3))]
        yield cls(as_dtype("float64")), [rng.normal(size=(3,)).astype("float32")]
        yield cls(as_dtype("int64")), [rng.normal(size=(3,)) * 5]
        yield cls(as_dtype("float64")), [np.arange(3)]
        yield cls(as_dtype("complex128")), [rng.normal(size=(2, 3))]
        yield cls(as_dtype("complex64")), [rng.normal(size=3) + 1j * rng.normal(size=3)]


@documented(Cast)
def cast(x: TensorLike, dtype: Any) -> Tensor:
    """x as another dtype; x itself where it already is that. Floats become integers by truncation.

    Parameters:
        x: any shape and dtype.
        dtype: what numpy.dtype takes, for bools and numbers.

    Returns: same shape as x, of that dtype.

    Raises: DTypeError for an unsupported dtype, or if the imaginary part of x would be dropped.

    Source: the array API standard, astype.

    >>> gg.evaluate(gg.cast([1.7, -1.7], "int64"))
    array([ 1, -1])
    """
    x, dtype = as_tensor(x), as_dtype(dtype)
    return x if x.dtype is dtype else apply(Cast(dtype), x)


def rounded_once(formula: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """formula(x); of 16 bits, that of x as float32, rounded at the end."""
    wide = accumulated_in(x.dtype)
    return formula(x) if wide is x.dtype else cast(formula(cast(x, wide)), x.dtype)


# --- operands --------------------------------------------------------------------------------


def as_tensor(x: TensorLike, dtype: Any = None) -> Tensor:
    """A tensor of x: itself, or a constant. DTypeError for input that is not a number or array."""
    if isinstance(x, Tensor):
        return x if dtype is None else cast(x, dtype)
    if isinstance(x, Length):
        return apply(LengthValue(x, as_dtype("int64" if dtype is None else dtype)))
    if isinstance(x, list | tuple) and any(isinstance(item, Tensor) for item in x):
        raise DTypeError("a list of tensors is not a tensor; use gg.stack or gg.concat")
    return constant(x, dtype)


def promoted(
    *operands: TensorLike, floating: bool = False, small: bool = False
) -> tuple[Tensor, ...]:
    """The operands as tensors of one dtype, by NumPy 2's rules: Python numbers are weak.

    floating: integers and bools become float64 (as for np.true_divide).
    small: those of 8 bits become float16 and of 16 bits float32 (as for np.sqrt).
    """
    first = operands[0]
    if isinstance(first, Tensor):
        dtype = first.type.dtype
        if not floating or first.type.differentiable:
            same = tuple([o for o in operands if isinstance(o, Tensor) and o.type.dtype is dtype])
            if len(same) == len(operands):
                return same
            if first.type.differentiable:
                weak = [o for o in operands if type(o) in (float, int)]
                if len(same) + len(weak) == len(operands):
                    return tuple([_as(o, dtype) for o in operands])
    held = [_held(o) for o in operands]
    dtypes = operand_dtypes(*held)
    dtype = result_dtype(dtypes)
    if floating:
        dtype = small_float(dtypes) if small else inexact(dtype)
    return tuple([_as(o, dtype) for o in held])


def operand_dtypes(*operands: TensorLike) -> list[Any]:
    """The dtypes of operands; Python numbers, which are weak, as they are."""
    held = [_held(o) for o in operands]
    return [_dtype_of(o) for o in held]


def _dtype_of(o: Any) -> Any:
    """The dtype of an operand; of a number, which is weak, itself, and of a length an int."""
    if isinstance(o, Tensor | np.ndarray):
        return o.dtype
    return 0 if isinstance(o, Length) else o


def _held(o: Any) -> Any:
    """A tensor, an array, or a Python number or a length (which are weak)."""
    if isinstance(o, Tensor | Length) or type(o) in (bool, int, float, complex):
        return o
    if isinstance(o, list | tuple) and any(isinstance(item, Tensor) for item in o):
        raise DTypeError("a list of tensors is not a tensor; use gg.stack or gg.concat")
    check_unmasked(o)
    array = array_of(o)
    as_dtype(array.dtype)
    return array


def type_of(x: TensorLike) -> TensorType:
    """The type of a tensor, or of the constant that x would be; nothing is built."""
    held = _held(x)
    if isinstance(held, Length):
        return tensor_type((), "int64")
    return held.type if isinstance(held, Tensor) else type_of_array(np.asarray(held))


def _as(o: Any, dtype: DType) -> Tensor:
    if isinstance(o, Tensor):
        return o if o.type.dtype is dtype else apply(Cast(dtype), o)
    if isinstance(o, np.ndarray):
        return constant(o, dtype)
    return apply(LengthValue(o, dtype)) if isinstance(o, Length) else scalar(o, dtype)


def like(x: TensorLike, t: Tensor) -> Tensor:
    """A number or array as a constant of t's dtype; a tensor as it is, cast if need be."""
    return _as(_held(x), t.dtype)


def whole(what: str, n: Any) -> int:
    """n as an int; TypeError, which says what it is, for floats, bools and all that is not an
    int."""
    if isinstance(n, bool | np.bool) or not hasattr(n, "__index__"):
        raise TypeError(f"{what} is an int, got {n!r}")
    return operator.index(n)


def count(what: str, n: Any) -> Any:
    """n as an int, or the length that it is; TypeError, which says what it is, for others."""
    return n if isinstance(n, Length) else whole(what, n)


def wants(x: Tensor) -> bool:
    """Whether the running gradient has a use for the gradient of x. True outside gradients."""
    live = CONTEXT.get().answering.live
    return live is None or x in live or x.node.region is not None or bool(sites_at(x))


# --- structural zeros --------------------------------------------------------------------------


class ZeroTensor(Tensor):
    """A gradient known to be zero. It becomes a node when somebody reads it, not before.

    asked  whether a rule was told so: what it builds may depend on it
    """

    __slots__ = ("_like", "_made", "asked")

    def __init__(self, like: Tensor) -> None:
        self.index = 0
        self.type = like.type
        self._like = like
        self._made: Node | None = None
        self.asked = False

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node, built on first use."""
        if self._made is None:
            from_type = self.type
            made = (
                build(Full(from_type.shape, 0, from_type.dtype), ())
                if from_type.static
                else build(ZerosLike(), (self._like,))
            )
            made.outputs, self._made = (self,), made
        return self._made

    def __repr__(self) -> str:
        return f"<structural zero: {self.type!r}>" if self._made is None else super().__repr__()


def is_zero(dy: Any) -> bool:
    """Whether dy is a structural zero: known to be zero without looking at a value."""
    return dy is ZERO or isinstance(dy, ZeroTensor)


class Full(Op):
    """An array of one number. Gradient: none."""

    shape: tuple[Any, ...]
    value: Any
    dtype: DType
    differentiable = False
    flop_free = True

    def infer(self) -> Types:
        return (tensor_type(self.shape, self.dtype),)

    def kernel(self, xp: Any) -> Any:
        return xp.full(self.shape, self.value, dtype=self.dtype)

    def to_onnx(self, to: Any) -> Any:
        if not self.open_lengths and np.prod(self.shape) <= 16:
            return to.value(np.full(self.shape, self.value, self.dtype))
        return to.ConstantOfShape(list(self.shape), value=np.full(1, self.value, self.dtype))

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls((2, 3), 1.5, as_dtype("float64")), []
        yield cls((), 3, as_dtype("int32")), []
        yield cls((0, 2), 0.0, as_dtype("float32")), []


class ZerosLike(Op):
    """Zeros of the shape and dtype of x. Gradient: none to x, of which only the shape is read."""

    shape_only = (0,)
    flop_free = True

    def infer(self, x: TensorType) -> Types:
        return (x,)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.zeros_like(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.ConstantOfShape(to.shape(x), value=self.kernel(np, np.empty(1, x.dtype)))

    def vjp(self, node: Node, dy: Tensor) -> Gradients:
        return (ZERO,)

    def batch(self, batch: Any) -> Any:
        return batch.build(self, *batch.inputs)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        yield cls(), [rng.normal(size=(2, 3))]


class OnesLike(ZerosLike):
    """Ones of the shape and dtype of x."""

    shape_only = (0,)
    to_onnx = ZerosLike.to_onnx

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.ones_like(x)


# --- families ----------------------------------------------------------------------------------


class Elementwise(Op, abstract=True):
    """Family: one output, NumPy broadcasting; the inputs have one dtype, which the output has."""

    elementwise = True
    broadcasts = True

    def infer(self, *types: TensorType) -> Types:
        first = types[0]
        if any(t.dtype is not first.dtype for t in types):
            raise DTypeError(f"{self.type} takes operands of one dtype, got {_shown(types)}")
        self.check(first.dtype)
        return (tensor_type(broadcast([t.shape for t in types]), self.result(first.dtype)),)

    def result(self, dtype: DType) -> DType:
        """The dtype of the output."""
        return dtype

    def check(self, dtype: DType) -> None:
        """DTypeError where the op does not take this dtype."""


class Unary(Elementwise, abstract=True):
    """Family: one operand.

    Parameters: x: any shape and dtype.

    Returns: y, of the shape and dtype of x.

    Raises: DTypeError for non-numeric input.
    """

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 3), (), (0, 2)]:
            yield cls(), [rng.uniform(*cls.domain, size=shape)]
        yield cls(), [rng.uniform(*cls.domain, size=(2, 3)).astype("float32")]


class Binary(Elementwise, abstract=True):
    """Family: two operands.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for non-numeric input.
    """

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for left, right in [
            ((2, 3), (2, 3)),
            ((2, 3), (3,)),
            ((2, 1), (1, 3)),
            ((), (2,)),
            ((0, 1), (1, 2)),
        ]:
            yield cls(), [rng.uniform(*cls.domain, size=s) for s in (left, right)]
        yield cls(), [rng.uniform(*cls.domain, size=(2, 3)).astype("float32") for _ in range(2)]


class Real(Unary):
    """y = the real part of x. Gradient: dx = dy, as a complex number of complex x."""

    memory = Memory(view=True, alias=True)
    linear = "joint"
    flop_free = True

    def check(self, dtype: DType) -> None:
        if kind_of(dtype) != "c":
            raise DTypeError(f"{self.type} takes complex operands, got {dtype}; use gg.cast")

    def result(self, dtype: DType) -> DType:
        return real_dtype(dtype)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.real(x)

    def vjp(self, node: Node, dx: Tensor) -> Gradients:
        return (cast(dx, node.inputs[0].dtype),)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 3), (), (0, 2)]:
            yield cls(), [rng.normal(size=shape) + 1j * rng.normal(size=shape)]


def real_dtype(dtype: DType) -> DType:
    """The dtype of the parts of a complex number; any other dtype is itself."""
    return as_dtype(f"f{dtype.itemsize // 2}") if kind_of(dtype) == "c" else dtype


class Comparison(Binary, abstract=True):
    """Family: two operands, a bool.

    Parameters:
        x, y: shapes that broadcast; dtypes promoted as NumPy 2 does; integers by value.

    Returns: bool, of the broadcast shape.

    Gradient: none, the result is bool.
    """

    differentiable = False

    def result(self, dtype: DType) -> DType:
        return as_dtype(bool)


def _shown(types: Sequence[TensorType]) -> str:
    return ", ".join(map(repr, types))
