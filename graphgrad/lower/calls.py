"""The kernel of an element-wise op as calls of NumPy's ufuncs, each of which can be told where to
write.

A kernel is run once on symbols that note what is called. Whatever a kernel does that is not a
ufunc, a choice or a cast makes no sense of it, and the op stays whole.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ..base.kinds import kind_of
from ..ir.op import Op, lasting
from ..ir.types import Array, DType, as_dtype

CHOOSE = "choose"
CAST = "cast"
Operand = int | Array
"""A value by number, or a 0-d array that the kernel itself brings."""


class Call(NamedTuple):
    """One step: fn is a ufunc, CHOOSE (condition, x, y) or CAST (x); dtype that of the result."""

    fn: Any
    operands: tuple[Operand, ...]
    dtype: DType


class Calls(NamedTuple):
    """A kernel taken apart. Values are numbered: the inputs, then the result of each call.

    result: the value that the kernel returns.
    """

    steps: tuple[Call, ...]
    result: int


def name_of(fn: Any) -> str:
    """What a function is called."""
    return fn if isinstance(fn, str) else str(fn.__name__)


def calls_of(op: Op, inputs: tuple[DType, ...], output: DType) -> Calls | None:
    """The calls that the kernel of an element-wise op makes on inputs of these dtypes.

    None where it does anything else, or makes something else than the output promised.
    """
    if not op.elementwise:
        return None
    return (_known if lasting(op) else _calls)(op, inputs, output)


def _calls(op: Op, inputs: tuple[DType, ...], output: DType) -> Calls | None:
    trace = _Trace(inputs)
    try:
        with np.errstate(all="ignore"):
            result = op.kernel(_NAMESPACE, *trace.inputs)
    except Exception:  # whatever a kernel does with a thing that is no array
        return None
    if not isinstance(result, _Symbol) or result.dtype is not output:
        return None
    return Calls(tuple(trace.steps), result.at)


_known = lru_cache(maxsize=4096)(_calls)


class _NotAnArray(TypeError):
    """What a kernel meets that asks a symbol for more than its dtype."""


class _Trace:
    """What a kernel has called so far."""

    def __init__(self, inputs: tuple[DType, ...]) -> None:
        self.inputs = [_Symbol(self, at, dtype) for at, dtype in enumerate(inputs)]
        self.steps: list[Call] = []
        self._made: dict[Any, _Symbol] = {}

    def call(self, fn: Any, operands: tuple[Any, ...], expected: Any, dtype: DType) -> _Symbol:
        """Note a call whose operands NumPy takes as `expected` dtypes; equal ones are one."""
        taken = tuple([_operand(o, want) for o, want in zip(operands, expected, strict=True)])
        key = (fn, tuple([o if isinstance(o, int) else (o.dtype, o.tobytes()) for o in taken]))
        if key not in self._made:
            at = len(self.inputs) + len(self.steps)
            self.steps.append(Call(fn, taken, dtype))
            self._made[key] = _Symbol(self, at, dtype)
        return self._made[key]


class _Symbol(NDArrayOperatorsMixin):
    """An array of which only the dtype is known. Operators and ufuncs of it are noted."""

    def __init__(self, trace: _Trace, at: int, dtype: DType) -> None:
        self.trace, self.at, self.dtype = trace, at, dtype

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs or ufunc.nout != 1 or ufunc.signature is not None:
            raise _NotAnArray(f"{ufunc} {method}")
        kinds = [_kind(o) for o in operands]
        *expected, made = ufunc.resolve_dtypes((*kinds, None))
        return self.trace.call(ufunc, operands, expected, as_dtype(made))

    def __array_function__(self, *args: Any) -> Any:
        raise _NotAnArray("a function of NumPy that is not a ufunc")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise _NotAnArray("the values")

    def astype(self, dtype: Any) -> _Symbol:
        return _Namespace.astype(self, dtype)

    def __bool__(self) -> bool:
        raise _NotAnArray("a decision by values")

    def __pow__(self, exponent: Any) -> Any:
        raise _NotAnArray("x ** y, which NumPy computes in several ways")


def _kind(operand: Any) -> Any:
    """What NumPy's rules of promotion go by: a dtype, or the type of a Python number."""
    if isinstance(operand, _Symbol | np.ndarray | np.generic):
        return operand.dtype
    if type(operand) in (bool, int, float, complex):
        return np.dtype(bool) if type(operand) is bool else type(operand)
    raise _NotAnArray(repr(operand))


def _operand(operand: Any, expected: Any) -> Operand:
    if isinstance(operand, _Symbol):
        return operand.at
    weak = type(operand) in (int, float, complex)
    array = np.array(operand, expected if weak else None)
    if array.ndim:
        raise _NotAnArray("an array of the kernel's own")
    array.flags.writeable = False
    return array


# --- the namespace ---------------------------------------------------------------------------


class _Namespace:
    """NumPy for a kernel that is being traced: ufuncs and constants, and what stands below."""

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(np, name)
        if isinstance(attribute, np.ufunc | float):
            return attribute
        raise _NotAnArray(f"np.{name}")

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> _Symbol:
        """Each element of x where the condition holds, else of y."""
        if not isinstance(condition, _Symbol) or kind_of(condition.dtype) != "b":
            raise _NotAnArray("a condition that is not a bool")
        dtype = as_dtype(np.result_type(*[_sample(_kind(o)) for o in (x, y)]))
        if any(isinstance(o, _Symbol) and o.dtype is not dtype for o in (x, y)):
            raise _NotAnArray("a choice between two dtypes")
        kinds = (condition.dtype, dtype, dtype)
        return condition.trace.call(CHOOSE, (condition, x, y), kinds, dtype)

    @staticmethod
    def astype(x: _Symbol, dtype: Any) -> _Symbol:
        """x as another dtype."""
        dtype = as_dtype(dtype)
        return x if x.dtype is dtype else x.trace.call(CAST, (x,), (x.dtype,), dtype)

    @staticmethod
    def asarray(x: _Symbol, dtype: Any = None) -> _Symbol:
        """x, which is an array, as the dtype if one is given."""
        return x if dtype is None else _Namespace.astype(x, dtype)

    @staticmethod
    def zeros_like(x: _Symbol) -> Array:
        """One zero will do."""
        return np.zeros((), x.dtype)

    @staticmethod
    def ones_like(x: _Symbol) -> Array:
        """One one will do."""
        return np.ones((), x.dtype)


def _sample(kind: Any) -> Any:
    """What np.result_type takes for a kind of operand."""
    return kind if isinstance(kind, np.dtype) else kind(0)


_NAMESPACE: Any = _Namespace()
