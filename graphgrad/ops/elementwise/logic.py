"""Comparisons, logical and bitwise operations, tests of numbers, and a choice of two tensors."""

from __future__ import annotations

from ...base.errors import SymbolicError
from ...ir.op import OP_TYPES
from ..base import (
    NO_GRAD,
    Any,
    Binary,
    Comparison,
    Derivative,
    DTypeError,
    Gradients,
    Node,
    Onnx,
    Op,
    Real,
    Samples,
    Tensor,
    TensorLike,
    TensorType,
    Traits,
    Types,
    Unary,
    apply,
    as_dtype,
    as_tensor,
    broadcast,
    cast,
    is_floating,
    kind_of,
    like,
    np,
    operand_dtypes,
    promoted,
    result_dtype,
    tensor_type,
    wants,
)
from ..documented import documented
from ..families import Kinds, Ordering, Predicate, binary

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "equal",
    "greater",
    "greater_equal",
    "isfinite",
    "isinf",
    "isnan",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "signbit",
    "where",
]


# --- comparisons -------------------------------------------------------------------------------


class Equal(Comparison):
    """x == y."""

    onnx = Onnx("Equal")
    traits = Traits(commutes=True, negated_type="NotEqual")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.equal(x, y)


class NotEqual(Comparison):
    """x != y."""

    traits = Traits(commutes=True, negated_type="Equal")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.not_equal(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        return to.Not(to.Equal(x, y))


class Less(Ordering):
    """x < y."""

    onnx = Onnx("Less")
    traits = Traits(mirror_type="Greater", negated_type="GreaterEqual")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.less(x, y)


class LessEqual(Ordering):
    """x <= y."""

    onnx = Onnx("LessOrEqual")
    traits = Traits(mirror_type="GreaterEqual", negated_type="Greater")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.less_equal(x, y)


class Greater(Ordering):
    """x > y."""

    onnx = Onnx("Greater")
    traits = Traits(mirror_type="Less", negated_type="LessEqual")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.greater(x, y)


class GreaterEqual(Ordering):
    """x >= y."""

    onnx = Onnx("GreaterOrEqual")
    traits = Traits(mirror_type="LessEqual", negated_type="Less")

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.greater_equal(x, y)


EQUAL = Equal()
NOT_EQUAL = NotEqual()
LESS = Less()
LESS_EQUAL = LessEqual()
GREATER = Greater()
GREATER_EQUAL = GreaterEqual()


def _compared(op: Comparison, x: TensorLike, y: TensorLike) -> Tensor:
    """op of the operands, promoted; of uint64 and signed integers by value, as NumPy compares.

    No integer type holds both, and float64, to which they promote, not all of their digits.
    """
    if isinstance(x, Tensor) and isinstance(y, Tensor) and x.type.dtype is y.type.dtype:
        return _of_one_dtype(op, x, y)
    dtypes = operand_dtypes(x, y)
    kinds = [kind_of(d) if isinstance(d, np.dtype) else "" for d in dtypes]
    if sorted(kinds) != ["i", "u"] or not is_floating(result_dtype(dtypes)):
        return _of_one_dtype(op, *promoted(x, y))
    if kinds[0] == "i":
        mirrored: Any = OP_TYPES[op.traits.mirror_type]() if op.traits.mirror_type else op
        return _compared(mirrored, y, x)
    left, right = as_tensor(x), as_tensor(y)
    exact = apply(op, left, cast(right, left.dtype))
    negative = less(right, 0)
    if op in (GREATER, GREATER_EQUAL, NOT_EQUAL):
        return logical_or(negative, exact)
    return logical_and(logical_not(negative), exact)


def _of_one_dtype(op: Comparison, x: Tensor, y: Tensor) -> Tensor:
    """op; complex numbers in NumPy's order: by the real part, ties by the imaginary one."""
    if kind_of(x.dtype) != "c" or not isinstance(op, Ordering):
        return binary(op, x, y)
    (a, b), (c, d) = [[apply(part, t) for part in (Real(), OP_TYPES["Imag"]())] for t in (x, y)]
    known = logical_not(logical_or(isnan(b), isnan(d)))
    strict = LESS if op in (LESS, LESS_EQUAL) else GREATER
    tie = logical_and(apply(EQUAL, a, c), apply(op, b, d))
    return logical_or(logical_and(apply(strict, a, c), known), tie)


@documented(Equal)
def equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether x == y, element by element; NaN equals nothing.

    >>> gg.evaluate(gg.equal([1.0, np.nan], [1.0, np.nan]))
    array([ True, False])
    """
    return _compared(EQUAL, x, y)


@documented(NotEqual)
def not_equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether x != y, element by element; NaN differs from everything.

    >>> gg.evaluate(gg.not_equal([1.0, np.nan], [1.0, np.nan]))
    array([False,  True])
    """
    return _compared(NOT_EQUAL, x, y)


@documented(Less)
def less(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether x < y, element by element; never where one is NaN.

    >>> gg.evaluate(gg.less([1, 2, 3], 2))
    array([ True, False, False])
    """
    return _compared(LESS, x, y)


@documented(LessEqual)
def less_equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether x <= y, element by element; never where one is NaN.

    >>> gg.evaluate(gg.less_equal([1, 2, 3], 2))
    array([ True,  True, False])
    """
    return _compared(LESS_EQUAL, x, y)


@documented(Greater)
def greater(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether x > y, element by element; never where one is NaN.

    >>> gg.evaluate(gg.greater([1, 2, 3], 2))
    array([False, False,  True])
    """
    return _compared(GREATER, x, y)


@documented(GreaterEqual)
def greater_equal(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Whether x >= y, element by element; never where one is NaN.

    >>> gg.evaluate(gg.greater_equal([1, 2, 3], 2))
    array([False,  True,  True])
    """
    return _compared(GREATER_EQUAL, x, y)


# --- bools -------------------------------------------------------------------------------------


class Logical(Comparison, Kinds, abstract=True):
    """Family: two bools, a bool.

    Parameters:
        x, y: shapes that broadcast; a number of any dtype is true where it is not 0.
    """

    kinds = "b"

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for left, right in [((2, 3), (3,)), ((), (2,)), ((0, 1), (1, 2))]:
            yield cls(), [rng.uniform(size=s) < 0.5 for s in (left, right)]


class LogicalAnd(Logical):
    """x and y."""

    onnx = Onnx("And")
    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.logical_and(x, y)


class LogicalOr(Logical):
    """x or y."""

    onnx = Onnx("Or")
    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.logical_or(x, y)


class LogicalXor(Logical):
    """Either x or y."""

    onnx = Onnx("Xor")
    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.logical_xor(x, y)


class LogicalNot(Predicate):
    """Not x."""

    kinds = "b"
    onnx = Onnx("Not")
    traits = Traits(involution=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.logical_not(x)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 3), (), (0, 2)]:
            yield cls(), [rng.uniform(size=shape) < 0.5]


LOGICAL_AND = LogicalAnd()
LOGICAL_OR = LogicalOr()
LOGICAL_XOR = LogicalXor()
LOGICAL_NOT = LogicalNot()


@documented(LogicalAnd)
def logical_and(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x and y as bools, element by element.

    >>> gg.evaluate(gg.logical_and([True, False], [2, 2]))
    array([ True, False])
    """
    return apply(LOGICAL_AND, _bool(x), _bool(y))


@documented(LogicalOr)
def logical_or(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x or y as bools, element by element.

    >>> gg.evaluate(gg.logical_or([True, False], [2, 0]))
    array([ True, False])
    """
    return apply(LOGICAL_OR, _bool(x), _bool(y))


@documented(LogicalXor)
def logical_xor(x: TensorLike, y: TensorLike, /) -> Tensor:
    """Either x or y as bools, not both, element by element.

    >>> gg.evaluate(gg.logical_xor([True, False], [2, 2]))
    array([False,  True])
    """
    return apply(LOGICAL_XOR, _bool(x), _bool(y))


@documented(LogicalNot)
def logical_not(x: TensorLike, /) -> Tensor:
    """Not x as a bool, element by element.

    Parameters: x: any shape; a number of any dtype is true where it is not 0.

    >>> gg.evaluate(gg.logical_not([True, False]))
    array([False,  True])
    """
    return apply(LOGICAL_NOT, _bool(x))


def _bool(x: TensorLike) -> Tensor:
    """x as a bool tensor: where it is not zero."""
    x = as_tensor(x)
    return x if kind_of(x.dtype) == "b" else not_equal(x, like(0, x))


# --- bits --------------------------------------------------------------------------------------


class Bitwise(Kinds, Binary, abstract=True):
    """Family: two integers, an integer.

    Parameters:
        x, y: shapes that broadcast; integers, dtypes promoted, or bools.

    Raises: ShapeError if the shapes do not broadcast; DTypeError for floating and complex operands.

    Gradient: none, the result is not floating.
    """

    kinds = "iu"
    differentiable = False

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for left, right in [((2, 3), (3,)), ((), (2,)), ((0, 1), (1, 2))]:
            yield cls(), [rng.integers(0, 20, size=s) for s in (left, right)]
        yield cls(), [rng.integers(0, 7, size=3).astype("uint8") for _ in range(2)]


class BitwiseAnd(Bitwise):
    """The bits set in x and in y."""

    onnx = Onnx("BitwiseAnd")
    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.bitwise_and(x, y)


class BitwiseOr(Bitwise):
    """The bits set in x or in y."""

    onnx = Onnx("BitwiseOr")
    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.bitwise_or(x, y)


class BitwiseXor(Bitwise):
    """The bits in which x and y differ."""

    onnx = Onnx("BitwiseXor")
    traits = Traits(commutes=True)

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.bitwise_xor(x, y)


class BitwiseLeftShift(Bitwise):
    """The bits of x, y places up."""

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.left_shift(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        """Of unsigned words, for others are not shifted; 0 where all bits leave."""
        words = as_dtype(f"u{x.dtype.itemsize}")
        places, bits = to.cast(y, words), 8 * x.dtype.itemsize
        shifted = to.BitShift(to.cast(x, words), to.Min(places, bits - 1), direction="LEFT")
        return to.where(to.Less(places, bits), to.cast(shifted, x.dtype), 0)


class BitwiseRightShift(Bitwise):
    """The bits of x, y places down; the sign stays."""

    def kernel(self, xp: Any, x: Any, y: Any) -> Any:
        return xp.right_shift(x, y)

    def to_onnx(self, to: Any, x: Any, y: Any) -> Any:
        """Of unsigned words, for others are not shifted; those of numbers below 0 turned over."""
        words, bits = as_dtype(f"u{x.dtype.itemsize}"), 8 * x.dtype.itemsize
        places = to.Min(to.cast(y, words), bits - 1)
        over = to.Less(x, 0) if kind_of(x.dtype) == "i" else None
        plain = x if over is None else to.where(over, to.BitwiseNot(x), x)
        shifted = to.cast(to.BitShift(to.cast(plain, words), places, direction="RIGHT"), x.dtype)
        if over is not None:
            return to.where(over, to.BitwiseNot(shifted), shifted)
        return to.where(to.Less(to.cast(y, words), bits), shifted, 0)


class BitwiseNot(Kinds, Unary):
    """Every bit of x turned over. Gradient: none, the result is not floating."""

    kinds = "iu"
    differentiable = False
    onnx = Onnx("BitwiseNot")
    traits = Traits(involution=True)

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.invert(x)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shape in [(2, 3), (), (0, 2)]:
            yield cls(), [rng.integers(-20, 20, size=shape)]


@documented(BitwiseAnd)
def bitwise_and(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x & y, bit by bit.

    >>> gg.evaluate(gg.bitwise_and([12, 10], 6))
    array([4, 2])
    """
    return _bitwise(BitwiseAnd(), LOGICAL_AND, x, y)


@documented(BitwiseOr)
def bitwise_or(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x | y, bit by bit.

    >>> gg.evaluate(gg.bitwise_or([12, 10], 6))
    array([14, 14])
    """
    return _bitwise(BitwiseOr(), LOGICAL_OR, x, y)


@documented(BitwiseXor)
def bitwise_xor(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x ^ y, bit by bit.

    >>> gg.evaluate(gg.bitwise_xor([12, 10], 6))
    array([10, 12])
    """
    return _bitwise(BitwiseXor(), LOGICAL_XOR, x, y)


@documented(BitwiseLeftShift)
def bitwise_left_shift(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x << y: the bits of x, y places up.

    Parameters:
        x, y: shapes that broadcast; integers, dtypes promoted.

    Raises: ShapeError if the shapes do not broadcast; DTypeError unless the promoted dtype is an
        integer's.

    >>> gg.evaluate(gg.bitwise_left_shift([1, 3], 2))
    array([ 4, 12])
    """
    return binary(BitwiseLeftShift(), x, y)


@documented(BitwiseRightShift)
def bitwise_right_shift(x: TensorLike, y: TensorLike, /) -> Tensor:
    """x >> y: the bits of x, y places down; the sign stays.

    Parameters:
        x, y: shapes that broadcast; integers, dtypes promoted.

    Raises: ShapeError if the shapes do not broadcast; DTypeError unless the promoted dtype is an
        integer's.

    >>> gg.evaluate(gg.bitwise_right_shift([12, -12], 2))
    array([ 3, -3])
    """
    return binary(BitwiseRightShift(), x, y)


@documented(BitwiseNot)
def bitwise_invert(x: TensorLike, /) -> Tensor:
    """~x: every bit of x turned over.

    Parameters: x: any shape; integers or bools.

    Raises: DTypeError for floating and complex x.

    >>> gg.evaluate(gg.bitwise_invert([0, 5]))
    array([-1, -6])
    """
    x = as_tensor(x)
    return apply(LOGICAL_NOT if kind_of(x.dtype) == "b" else BitwiseNot(), x)


def _bitwise(op: Op, of_bools: Op, x: TensorLike, y: TensorLike) -> Tensor:
    x, y = promoted(x, y)
    return apply(of_bools if kind_of(x.dtype) == "b" else op, x, y)


# --- tests of numbers --------------------------------------------------------------------------


class IsNan(Predicate):
    """Whether x is not a number."""

    onnx = Onnx("IsNaN")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.isnan(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.IsNaN(x) if is_floating(x.dtype) else to.Not(to.Equal(x, x))


class IsInf(Predicate):
    """Whether x is infinite, of either sign."""

    onnx = Onnx("IsInf")

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.isinf(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.IsInf(x) if is_floating(x.dtype) else to.Not(to.Equal(x, x))


class IsFinite(Predicate):
    """Whether x is neither infinite nor NaN."""

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.isfinite(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        return to.Not(to.Or(to.IsNaN(x), to.IsInf(x))) if is_floating(x.dtype) else to.Equal(x, x)


class SignBit(Predicate):
    """Whether the sign of x is minus, of -0.0 too."""

    kinds = "f"

    def kernel(self, xp: Any, x: Any) -> Any:
        return xp.signbit(x)

    def to_onnx(self, to: Any, x: Any) -> Any:
        """Less than 0, or -0.0, whose reciprocal is."""
        if not is_floating(x.dtype):
            return to.Less(to.cast(x, "int64"), 0)
        return to.Or(to.Less(x, 0.0), to.Less(to.Reciprocal(x), 0.0))


@documented(IsNan)
def isnan(x: TensorLike, /) -> Tensor:
    """Whether each element is NaN.

    >>> gg.evaluate(gg.isnan([1.0, np.nan, np.inf]))
    array([False,  True, False])
    """
    return apply(IsNan(), as_tensor(x))


@documented(IsInf)
def isinf(x: TensorLike, /) -> Tensor:
    """Whether each element is infinite, of either sign.

    >>> gg.evaluate(gg.isinf([1.0, np.nan, -np.inf]))
    array([False, False,  True])
    """
    return apply(IsInf(), as_tensor(x))


@documented(IsFinite)
def isfinite(x: TensorLike, /) -> Tensor:
    """Whether each element is neither infinite nor NaN.

    >>> gg.evaluate(gg.isfinite([1.0, np.nan, np.inf]))
    array([ True, False, False])
    """
    return apply(IsFinite(), as_tensor(x))


@documented(SignBit)
def signbit(x: TensorLike, /) -> Tensor:
    """Whether the sign of each element is minus, of -0.0 too.

    Parameters: x: any shape; bool, integer or floating.

    Raises: DTypeError if x is complex.

    >>> gg.evaluate(gg.signbit([0.0, -0.0, -1.0]))
    array([False,  True,  True])
    """
    x = as_tensor(x)
    return less(x, like(0, x)) if kind_of(x.dtype) in "biu" else apply(SignBit(), x)


# --- choice ------------------------------------------------------------------------------------


class Where(Op):
    """z = x where the condition holds, else y.

    Gradient: dx = dz where the condition holds, else 0; dy the other way.

    The condition is bool and has no gradient; x and y have one dtype; all three broadcast.
    """

    elementwise = True
    broadcasts = True
    onnx = Onnx("Where")
    linear = (1, 2)
    derivative = Derivative(relevance="moved")

    def infer(self, condition: TensorType, x: TensorType, y: TensorType) -> Types:
        if kind_of(condition.dtype) != "b":
            raise DTypeError(f"the condition of Where is bool, got {condition!r}")
        if x.dtype is not y.dtype:
            raise DTypeError(f"Where takes operands of one dtype, got {x!r} and {y!r}")
        return (tensor_type(broadcast([condition.shape, x.shape, y.shape]), x.dtype),)

    def kernel(self, xp: Any, condition: Any, x: Any, y: Any) -> Any:
        return xp.where(condition, x, y)

    def to_onnx(self, to: Any, condition: Any, x: Any, y: Any) -> Any:
        return to.where(condition, x, y)

    def vjp(self, node: Node, dz: Tensor) -> Gradients:
        condition, x, y = node.inputs
        zero = like(0, dz)
        return (
            NO_GRAD,
            apply(WHERE, condition, dz, zero) if wants(x) else NO_GRAD,
            apply(WHERE, condition, zero, dz) if wants(y) else NO_GRAD,
        )

    @classmethod
    def samples(cls, rng: np.random.Generator) -> Samples:
        for shapes in [((2, 3), (2, 3), (2, 3)), ((2, 1), (3,), ()), ((), (2,), (2,))]:
            condition, x, y = (rng.normal(size=s) for s in shapes)
            yield cls(), [condition > 0, x, y]
        yield cls(), [np.ones((0, 2), bool), np.ones((0, 2)), np.ones(2)]
        yield cls(), [np.array([True, False]), np.ones(2, np.float32), np.zeros(2, np.float32)]
        yield cls(), [np.array([True, False]), np.arange(2), np.arange(2)]


WHERE = Where()


@documented(Where)
def where(condition: TensorLike, x: Any = None, y: Any = None, /) -> Tensor:
    """z = x where the condition holds, else y, element by element.

    The gradient of a branch is zero where the other was taken; mind that 0 * inf is NaN: give a
    function that has no value there a harmless argument with a second `where` inside.

    Parameters:
        condition: bool, or a number, which holds where it is not 0.
        x, y: shapes that broadcast with the condition's; dtypes promoted.

    Returns: z, of the broadcast shape and the promoted dtype.

    Raises: SymbolicError without x and y; ShapeError if the shapes do not broadcast; DTypeError for
        non-numeric input.

    Source: numpy.where.

    >>> x = np.array([4.0, 0.0])
    >>> gg.evaluate(gg.where(x > 0, gg.log(gg.where(x > 0, x, 1.0)), 0.0)).round(4)
    array([1.3863, 0.    ])
    """
    if x is None or y is None:
        raise SymbolicError(
            "where() with a condition alone has a shape that depends on values; give x and y, or "
            "use gg.nonzero(condition)"
        )
    x, y = promoted(x, y)
    condition = as_tensor(condition)
    return apply(WHERE, condition if kind_of(condition.dtype) == "b" else _bool(condition), x, y)
