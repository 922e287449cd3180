"""What `to_onnx` of an op writes with: operators of ONNX, other ops, functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from ...base.length import Length
from ...ir.op import Op
from ...ir.program import Program
from ...ir.types import DType, Shape, TensorType, as_dtype, broadcast, tensor_type
from .lengths import ToldLengths
from .values import OnnxBlock, OnnxCall, OnnxValue

__all__ = ["Operators", "type_of"]

BOOL, INT64, DOUBLE = np.dtype("bool"), np.dtype("int64"), np.dtype("float64")
# fmt: off
_OF_BOOL = frozenset((
    "And", "Or", "Xor", "Not", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual",
    "IsNaN", "IsInf",
))
# fmt: on
_OF_PLACES = frozenset(["Shape", "Size", "ArgMax", "ArgMin", "NonZero"])
_CHOSEN = tuple(map(np.dtype, ("uint8", "int32", "int64")))
"""What `Where` of onnxruntime takes beside floating numbers."""
_TYPED_BY = {"Where": 1, "OneHot": 2}
"""Operators whose result has the dtype of another input than the first."""

# fmt: off
_ELEMENTWISE = frozenset((
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift",
    "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "Ceil", "Cos", "Cosh", "Div",
    "Elu", "Equal", "Erf", "Exp", "Floor", "Greater", "GreaterOrEqual", "Identity", "IsInf",
    "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Min", "Mod", "Mul", "Neg",
    "Not", "Or", "Pow", "Reciprocal", "Relu", "Round", "Sigmoid", "Sign", "Sin", "Sinh",
    "Softplus", "Sqrt", "Sub", "Sum", "Tan", "Tanh", "Where", "Xor",
))
# fmt: on
"""Operators whose result has the shape to which the inputs broadcast."""


def type_of(value: OnnxValue) -> TensorType:
    """The type of a value of known rank."""
    assert value.shape is not None, f"{value} has no known rank; pass shape= where it is built"
    return tensor_type(value.shape, value.dtype)


class Applying(Protocol):
    """What writes ops, functions of tensors and programs.

    told  the lengths that inputs tell
    """

    told: ToldLengths

    def place(self, block: OnnxBlock, op: Op, inputs: Sequence[OnnxValue]) -> tuple[OnnxValue, ...]:
        """The outputs of an op."""

    def traced(
        self, block: OnnxBlock, function: Callable[..., Any], inputs: Sequence[OnnxValue]
    ) -> tuple[OnnxValue, ...]:
        """What a kernel builds of tensors."""

    def program(
        self, block: OnnxBlock, program: Program, inputs: Sequence[OnnxValue]
    ) -> tuple[OnnxValue, ...]:
        """The outputs of a program."""


class Operators:
    """Calls of operators, one after the other, in a block.

    to.Mul(x, 2.0) is to("Mul", x, 2.0): operators of values. Numbers take the dtype of the values,
    arrays have their own, lists and tuples of integers and open lengths are int64. None is an input
    left out.
    """

    def __init__(self, block: OnnxBlock, applying: Applying) -> None:
        self.block = block
        self.applying = applying

    def __call__(
        self,
        operator: str,
        *inputs: Any,
        outputs: int = 1,
        shape: Any = None,
        types: Sequence[TensorType] = (),
        domain: str = "",
        **attributes: Any,
    ) -> Any:
        """The value that an operator makes, or the tuple of `outputs`, or of those of `types`.

        shape: where it is known, and not told by the inputs.
        """
        like = _number_dtype(operator, inputs)
        values = [None if x is None else self.value(x, like) for x in inputs]
        while values and values[-1] is None:
            values.pop()
        if types:
            known = [(t.dtype, t.shape) for t in types]
            return self.put(operator, values, attributes, known, domain)
        dtypes = _types(operator, values, outputs, attributes)
        if shape is None and operator in _ELEMENTWISE:
            shape = _broadcast(values)
        made = self.put(operator, values, attributes, [(t, shape) for t in dtypes], domain)
        return made[0] if outputs == 1 else made

    def put(
        self,
        operator: str,
        values: Sequence[OnnxValue | None],
        attributes: Mapping[str, Any],
        types: Sequence[tuple[DType, Shape | None]],
        domain: str = "",
        version: int = 1,
    ) -> tuple[OnnxValue, ...]:
        """A call of whatever operator, and the values of these types that it makes."""
        if not domain and any(v is not None and v.dtype == DOUBLE for v in values):
            self.block.root.doubles.add(operator)
        made = tuple([OnnxValue(self.block.names.fresh(operator.lower()), *t) for t in types])
        given = tuple(["" if v is None else v.name for v in values])
        names = tuple([v.name for v in made])
        self.block.calls.append(
            OnnxCall(operator, given, names, attributes, domain, version=version)
        )
        return made

    def __getattr__(self, operator: str) -> Callable[..., Any]:
        return partial(self, operator)

    def value(self, x: Any, dtype: DType | None = None) -> OnnxValue:
        """What stands for a number, a length, an array, or a list; a value is itself."""
        if isinstance(x, OnnxValue):
            return x
        if isinstance(x, bool | int | float) and dtype is not None:
            return self.block.constant(np.asarray(x, dtype))
        if isinstance(x, Length):
            scalar: OnnxValue = self.Squeeze(self.lengths(x), [0], shape=())
            return scalar
        if isinstance(x, list | tuple) and any(isinstance(n, Length) for n in x):
            return self.lengths(*x)
        if isinstance(x, list | tuple):
            return self.block.constant(np.asarray(x, INT64))
        return self.block.constant(x)

    def type_of(self, x: OnnxValue) -> TensorType:
        """The type of a value of known rank."""
        return type_of(x)

    # --- other forms ----------------------------------------------------------------------------

    def apply(self, op: Op, *inputs: Any) -> Any:
        """What another op makes of values; a tuple of several outputs."""
        like = _number_dtype("", inputs)
        made = self.applying.place(self.block, op, [self.value(x, like) for x in inputs])
        return made[0] if len(made) == 1 else made

    def traced(self, function: Callable[..., Any], *inputs: OnnxValue) -> Any:
        """What function(xp, *tensors) builds, as a kernel does; a tuple of several outputs."""
        made = self.applying.traced(self.block, function, inputs)
        return made[0] if len(made) == 1 else made

    def in_double(self, function: Callable[..., Any], *inputs: OnnxValue) -> Any:
        """traced(function, *inputs) in float64; what it makes of floats in their dtype again."""
        dtype = inputs[0].dtype
        made = self.traced(function, *[self.cast(x, DOUBLE) for x in inputs])
        back = [self.cast(y, dtype) if y.dtype == DOUBLE else y for y in _listed(made)]
        return back[0] if len(back) == 1 else tuple(back)

    def program(self, program: Program, *inputs: OnnxValue) -> tuple[OnnxValue, ...]:
        """The outputs of a program of values."""
        return self.applying.program(self.block, program, inputs)

    def subgraph(self, make: Callable[..., Any], *given: tuple[str, Any, Any]) -> OnnxBlock:
        """A subgraph, for the attribute of an operator of control flow.

        make(to, *values) writes it and returns its results; given: names, dtypes and shapes of
        what the operator gives it. It reads the values around it too.
        """
        block = OnnxBlock(self.block)
        to = Operators(block, self.applying)
        values = [block.give(*each) for each in given]
        own: set[str] = set()
        for value in make(to, *values):
            made = {n for call in block.calls for n in call.outputs}
            result = value if value.name in made - own else to.Identity(value, shape=value.shape)
            own.add(result.name)
            block.results.append(result)
        return block

    def where(self, condition: OnnxValue, x: Any, y: Any) -> OnnxValue:
        """x where the condition holds, else y, of any dtype: runtimes choose among few."""
        like = _number_dtype("Where", (condition, x, y))
        a, b = self.value(x, like), self.value(y, like)
        if a.dtype.kind in "f" or a.dtype in _CHOSEN:
            return self.Where(condition, a, b)  # type: ignore[no-any-return]
        if a.dtype == BOOL:
            return self.Or(self.And(condition, a), self.And(self.Not(condition), b))  # type: ignore[no-any-return]
        return self.cast(self.Where(condition, self.cast(a, INT64), self.cast(b, INT64)), a.dtype)

    # --- shapes ---------------------------------------------------------------------------------

    def cast(self, x: OnnxValue, dtype: Any) -> OnnxValue:
        """The value in another dtype."""
        target = as_dtype(dtype)
        if x.dtype == target:
            return x
        made: OnnxValue = self.Cast(x, to=target, shape=x.shape)
        return made

    def wide(self, x: OnnxValue) -> OnnxValue:
        """x as int32 or int64 in the same order, where runtimes do not order its dtype."""
        if x.dtype == np.dtype("uint64"):
            return self.cast(self.BitwiseXor(x, np.uint64(1 << 63)), INT64)
        if x.dtype.kind in "biu" and x.dtype not in (INT64, np.dtype("int32")):
            return self.cast(x, "int32" if x.dtype.itemsize < 4 else "int64")
        return x

    def shape(self, x: OnnxValue) -> OnnxValue:
        """The lengths of all axes, int64."""
        if x.static:
            return self.value(list(x.shape or ()))
        made: OnnxValue = self.Shape(x)
        return made

    def length(self, x: OnnxValue, axis: int) -> OnnxValue:
        """The length of an axis, as a vector of one element."""
        known = None if x.shape is None else x.shape[axis]
        if isinstance(known, int):
            return self.value([known])
        made: OnnxValue = self.Shape(x, start=axis, end=axis + 1)
        return made

    def lengths(self, *parts: Any) -> OnnxValue:
        """A vector of numbers, lengths and vectors, one after the other."""
        row: list[Any] = []
        for part in parts:
            if isinstance(part, Length):
                row.append(self.applying.told.of(self, part))
                continue
            known = part if isinstance(part, int) else self.block.known(part)
            if known is None:
                row.append(part)
            elif row and isinstance(row[-1], list):
                row[-1] += np.ravel(known).tolist()
            else:
                row.append(np.ravel(known).tolist())
        if not row:
            return self.value([])
        if len(row) == 1:
            return self.value(row[0])
        made: OnnxValue = self.Concat(*row, axis=0)
        return made

    def reshape(self, x: OnnxValue, *parts: Any, shape: Any = None) -> OnnxValue:
        """x in the shape that numbers and vectors of lengths say."""
        made: OnnxValue = self.Reshape(x, self.lengths(*parts), allowzero=1, shape=shape)
        return made


def _listed(made: Any) -> Any:
    return made if isinstance(made, tuple) else (made,)


def _broadcast(values: Sequence[OnnxValue | None]) -> Shape | None:
    """The common shape of values, where it is known."""
    shapes = [v.shape for v in values if v is not None]
    known = [s for s in shapes if s is not None]
    return broadcast(known) if len(known) == len(shapes) else None


def _number_dtype(operator: str, inputs: Sequence[Any]) -> DType | None:
    """The dtype that a Python number among the inputs takes."""
    values = [
        x.dtype for x in inputs[1 if operator == "Where" else 0 :] if isinstance(x, OnnxValue)
    ]
    arrays = [x.dtype for x in inputs if isinstance(x, np.ndarray | np.generic)]
    return next(iter([*values, *arrays]), None)


def _types(
    operator: str, values: Sequence[OnnxValue | None], outputs: int, attributes: dict[str, Any]
) -> list[DType]:
    """The dtypes of what an operator makes."""
    if operator in _OF_BOOL:
        return [BOOL]
    if operator in _OF_PLACES:
        return [INT64]
    if operator == "Cast":
        return [attributes["to"]]
    if operator == "ConstantOfShape":
        return [attributes["value"].dtype]
    first = values[_TYPED_BY.get(operator, 0)]
    assert first is not None
    rest = [INT64] if operator in ("TopK", "MaxPool") else [first.dtype]
    return [first.dtype, *rest * (outputs - 1)]
