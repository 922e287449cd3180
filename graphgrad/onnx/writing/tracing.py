"""A kernel run on tensors in place of arrays: what it computes, as a program of other ops."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from ...base.errors import GraphGradError
from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import Tensor
from ...ir.onnx import NoOnnxForm
from ...ir.op import Op, Types
from ...ir.program import Program
from ...ir.types import TensorType, as_dtype
from ...ops.base import as_tensor, cast
from ...ops.protocols.numpy_protocol import UFUNCS
from ...ops.sources import Placeholder

__all__ = ["kernel_program", "program_of"]

_OPERATORS = """
    add sub mul truediv floordiv mod pow matmul and or xor lshift rshift
    radd rsub rmul rtruediv rfloordiv rmod rpow rmatmul rand ror rxor rlshift rrshift
    neg pos abs invert eq ne lt le gt ge getitem
""".split()  # noqa: SIM905


class Traced:
    """What a kernel takes for an array: a tensor, of whose lengths it reads those that are known.

    Anything else that a kernel did by a length would be done for good.
    """

    __array_ufunc__ = None  # NumPy's scalars leave operators to it
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    @property
    def shape(self) -> tuple[Any, ...]:
        """Ints, and what only stands for a length."""
        return tuple([d if isinstance(d, int) else TracedLength(d) for d in self._tensor.shape])

    @property
    def size(self) -> Any:
        """The number of elements."""
        size = self._tensor.size
        return TracedLength(None) if size is None else size

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._tensor, name)
        return partial(_called, attribute) if callable(attribute) else _wrapped(attribute)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise NoOnnxForm("its kernel computes with NumPy alone")

    def __bool__(self) -> bool:
        raise NoOnnxForm("its kernel depends on values")

    __iter__ = __int__ = __float__ = __index__ = __bool__


def _operator(name: str) -> Callable[..., Any]:
    def forward(self: Traced, *others: Any) -> Any:
        return _called(getattr(self._tensor, f"__{name}__"), *others)

    return forward


for _name in _OPERATORS:
    setattr(Traced, f"__{_name}__", _operator(_name))


class TracedLength:
    """A length that is not known: it can be passed on, and nothing can depend on it."""

    def __init__(self, dim: Any) -> None:
        self.dim = dim

    def _refused(self, *_: Any) -> Any:
        raise NoOnnxForm("its kernel depends on unknown lengths")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        return self._refused()

    __bool__ = __eq__ = __lt__ = __gt__ = __le__ = __ge__ = __int__ = __index__ = _refused
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __mod__ = _refused
    __floordiv__ = __rfloordiv__ = __truediv__ = _refused
    __hash__ = None  # type: ignore[assignment]


class Namespace:
    """What a kernel calls as `xp`: the graph functions of NumPy's names.

    What is known without a tensor (shapes, places, tables) NumPy computes.
    """

    def __getattr__(self, name: str) -> Any:
        theirs = getattr(np, name, None)
        if isinstance(theirs, type) and issubclass(theirs, np.generic):
            return _Scalar(theirs)
        if isinstance(theirs, ModuleType):
            return _Submodule(theirs, getattr(sys.modules["graphgrad"], name, None))
        if isinstance(theirs, type) or (theirs is not None and not callable(theirs)):
            return theirs
        if name in _OWN:
            return partial(_called, _OWN[name])
        ours = UFUNCS.get(theirs, name) if theirs is not None else name
        return _Either(theirs, getattr(sys.modules["graphgrad"], ours, None))


class _Submodule:
    """`xp.linalg` and `xp.fft`."""

    def __init__(self, theirs: Any, ours: Any) -> None:
        self._theirs = theirs
        self._ours = ours

    def __getattr__(self, name: str) -> Any:
        return _Either(getattr(self._theirs, name), getattr(self._ours, name, None))


class _Either:
    """A function of NumPy where there is no tensor among its arguments, else of the graph."""

    def __init__(self, theirs: Any, ours: Any) -> None:
        self._theirs = theirs
        self._ours = ours

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        of_graph = self._theirs is None or _of_tensors((*args, *kwargs.values()))
        if of_graph and self._ours is None:
            raise NoOnnxForm(f"its kernel calls {self._theirs}, which is not a function of graphs")
        return _called(self._ours if of_graph else self._theirs, *args, **kwargs)

    def __getattr__(self, method: str) -> Any:
        return partial(_called, getattr(self._theirs, method))


class _Scalar:
    """A dtype as it is called: of a tensor, a cast."""

    def __init__(self, scalar: Any) -> None:
        self._scalar = scalar
        self.dtype = np.dtype(scalar)

    def __call__(self, x: Any = 0, *args: Any) -> Any:
        if not isinstance(x, Traced | Tensor):
            return self._scalar(x, *args)
        return _called(partial(cast, dtype=as_dtype(self._scalar)), x)


def _called(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What it returns of tensors, as kernels see it."""
    returned = function(*map(_bare, args), **{k: _bare(v) for k, v in kwargs.items()})
    return _wrapped(returned)


def _wrapped(x: Any) -> Any:
    if isinstance(x, Tensor):
        return Traced(x)
    if isinstance(x, tuple):
        return tuple(map(_wrapped, x))  # named ones too
    return list(map(_wrapped, x)) if type(x) is list else x


def _bare(x: Any) -> Any:
    """What a graph function is given."""
    if isinstance(x, Traced):
        return x._tensor
    if isinstance(x, TracedLength):
        return x.dim
    if isinstance(x, _Scalar):
        return x._scalar
    if type(x) in (list, tuple):
        return type(x)(map(_bare, x))
    if callable(x) and not isinstance(x, type | np.dtype | np.generic | np.ndarray):
        return lambda *args: _bare(x(*_wrapped(args)))
    return x


def _of_tensors(args: Any) -> bool:
    return any(
        isinstance(a, Tensor | Traced) or (isinstance(a, list | tuple) and _of_tensors(a))
        for a in args
    )


def _asarray(x: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """A tensor stays one."""
    if not isinstance(x, Tensor):
        return np.asarray(x, dtype)
    return x if dtype is None else cast(x, as_dtype(dtype))


def _copy(x: Any) -> Any:
    """Tensors never change."""
    return x if isinstance(x, Tensor) else np.copy(x)


_OWN: dict[str, Callable[..., Any]] = {
    "asarray": _asarray,
    "array": _asarray,
    "ascontiguousarray": _asarray,
    "copy": _copy,
}


def program_of(name: str, function: Callable[..., Any], types: Sequence[TensorType]) -> Program:
    """The program that function(xp, *tensors) builds for inputs of these types; NoOnnxForm.

    name: of the op that it is of.
    """
    try:
        with Graph(), np.errstate(all="ignore"):
            xs = [apply(Placeholder(t.shape, t.dtype)) for t in types]
            made = function(Namespace(), *map(Traced, xs))
            made = made if isinstance(made, tuple | list) else (made,)
            return Program(xs, [as_tensor(_bare(y)) for y in made])
    except (GraphGradError, NoOnnxForm, AttributeError, TypeError, ValueError, IndexError) as error:
        why = f": {error}" if isinstance(error, NoOnnxForm) else ""
        raise NoOnnxForm(f"{name} has no form in ONNX{why}") from error


def kernel_program(op: Op, types: Types) -> Program:
    """The program that the kernel of an op is for inputs of these types; NoOnnxForm."""
    if not op.pure:
        raise NoOnnxForm(f"{op.type} has no form in ONNX: it is more than a function of its inputs")
    program = program_of(op.type, op.kernel, types)
    if any(node.op is op for node in program.nodes):
        raise NoOnnxForm(f"{op.type} has no form in ONNX")
    promised, made = op.infer(*types), [t.type for t in program.outputs]
    if [(t.dtype, len(t.shape)) for t in made] != [(t.dtype, len(t.shape)) for t in promised]:
        raise NoOnnxForm(f"{op.type} has no form in ONNX: its kernel returns {made} for tensors")
    return program
