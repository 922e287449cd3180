"""Functions with gradients of their own, Python functions in the graph, checks and prints."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .create import apply, build, convert_to_tensor, name_scope
from .definition import DEFINITIONS, define
from .derived import derived_gradient
from .dtypes import as_dtype
from .errors import (
    InvalidArgumentError,
    OutOfRangeError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
)
from .graph import Operation, Tensor, get_default_graph
from .nest import flatten, pack_sequence_as
from .registry import RegisterGradient, gradient_registry
from .scope import changed
from .shapes import unknown_shape
from .variables import trainable_variables

__all__ = [
    "Assert", "Print", "custom_gradient", "grad_pass_through", "numpy_function", "py_func",
    "recompute_grad",
]  # fmt: skip

_uid = [0]


def uid() -> int:
    """A number that nobody else has."""
    _uid[0] += 1
    return _uid[0]


# custom_gradient


def custom_gradient(f: Callable[..., Any] | None = None) -> Any:
    """A function f(*x) -> (y, grad_fn) becomes one of y, whose gradient is grad_fn(*dy).

    Variables that f reads are inputs too: grad_fn takes them as `variables=`, and gives a second
    list of gradients for them.
    """
    if f is None:
        return custom_gradient

    return Bound(f)


class Bound:
    """A decorated function, which is a method where it stands in a class."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__wrapped__ = function
        self.__name__ = getattr(function, "__name__", "decorated")
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return _with_gradient(self.__wrapped__, args, kwargs)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return Bound(partial(self.__wrapped__, instance))


def _with_gradient(f: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    if kwargs:
        raise ValueError(
            "The custom_gradient decorator currently supports keywords arguments only when eager "
            "execution is enabled."
        )
    graph = get_default_graph()
    given = [a if a is None else convert_to_tensor(a) for a in flatten(list(args))]
    with changed(graph, maps={}):
        inputs = [a if a is None else apply("Identity", a) for a in given]
    before = set(graph.get_collection("variables"))
    first = graph.version
    result = f(*pack_sequence_as(list(args), inputs))
    if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
        raise TypeError(
            f"{getattr(f, '__name__', f)} must return (result, function of gradients), got "
            f"{result!r}"
        )
    value, grad_fn = result
    flat = [convert_to_tensor(v) for v in flatten(value)]
    made_by = graph._ops[first:]
    inside = {t for t in inputs if t is not None}
    variables = _variables_read(graph, made_by, inside, before, flat)
    wants = _takes_variables(grad_fn)
    if variables and not wants:
        raise TypeError(
            "@tf.custom_gradient grad_fn must accept keyword argument 'variables', since function "
            f"uses variables: {variables}"
        )
    there = [t for t in inputs if t is not None]
    reads = [v._ref() for v in variables]
    name = f"CustomGradient-{uid()}"

    def gradient(op: Operation, *dys: Any) -> list[Any]:
        given = list(dys[: len(flat)])
        extra = {"variables": variables} if variables else {}
        found = grad_fn(*given, **extra)
        dvars: list[Any] = []
        if variables:
            found, dvars = found
            dvars = list(dvars) if isinstance(dvars, list | tuple) else [dvars]
            if len(dvars) != len(variables):
                raise ValueError("Must return gradient for each variable from @custom_gradient "
                                 "grad_fn.")  # fmt: skip
        grads = flatten(found) if isinstance(found, list | tuple | dict) else [found]
        if len(grads) != len(there):
            raise ValueError(
                f"Num gradients: custom_gradient function expected to return "
                f"{len(there)} gradients, but returned {len(grads)} instead."
            )
        return [None] * len(flat) + grads + dvars

    gradient.__module__ = getattr(grad_fn, "__module__", None) or "a program"
    gradient_registry.register(gradient, name)
    with graph.gradient_override_map({"IdentityN": name}):
        op = build("IdentityN", *flat, *there, *reads, _reads=_outside(set(made_by), inside, flat))
    outputs = op.outputs[: len(flat)]
    return pack_sequence_as(value, outputs)


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    try:
        names = inspect.signature(grad_fn).parameters
    except (TypeError, ValueError):
        return False
    return "variables" in names or any(p.kind is p.VAR_KEYWORD for p in names.values())


def _variables_read(
    graph: Any, ops: list[Operation], inside: set[Tensor], before: set[Any], flat: list[Tensor]
) -> list[Any]:
    """The trainable variables that the function read, in the order in which they were made."""
    made = set(ops)
    used: set[Operation] = set()
    stack = [t.op for t in flat]
    seen: set[Operation] = set()
    while stack:
        op = stack.pop()
        if op in seen:
            continue
        seen.add(op)
        for t in op._inputs:
            if t.dtype._is_ref_dtype and t.op.type == "VariableV2":
                used.add(t.op)
            elif t.op in made or _is_read(t):
                stack.append(t.op)
    return [v for v in trainable_variables() if v.op in used]


def _outside(made: set[Operation], inside: set[Tensor], flat: list[Tensor]) -> list[Tensor]:
    """What the function read beyond its arguments and variables, and a gradient might go to."""
    found: dict[Tensor, None] = {}
    stack, seen = list(flat), set()
    while stack:
        t = stack.pop()
        if t in seen or t in inside or _is_read(t):
            continue
        seen.add(t)
        if t.op not in made:
            found[t] = None
        elif gradient_registry._registry.get(t.op.type, {}).get("type", t) is not None:
            stack += [s for s in t.op._inputs if s.dtype.is_trainable and not s.dtype._is_ref_dtype]
    return list(found)


def _is_read(t: Tensor) -> bool:
    return t.op.type == "Identity" and t.op._inputs[0].op.type == "VariableV2"


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose gradient is dy as it comes."""

    @custom_gradient
    def wrapped(*args: Any) -> Any:
        def grad(*dys: Any, variables: Any = None) -> Any:
            if variables:
                return dys, [None] * len(variables)
            return dys[0] if len(dys) == 1 else list(dys)

        return f(*args), grad

    return wrapped


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: what is kept for gradients is a question of the run here."""
    return f


# functions of Python


KINDS: dict[Any, Any] = {
    StopIteration: OutOfRangeError, MemoryError: ResourceExhaustedError,
    NotImplementedError: UnimplementedError, ValueError: InvalidArgumentError,
    TypeError: InvalidArgumentError, IndexError: InvalidArgumentError,
}  # fmt: skip
"""What an error in a function of Python's becomes in a run."""


def _call_python(run: Any, op: Any, *arrays: Any) -> Any:
    try:
        made = op.attrs["_function"](*arrays)
    except Exception as error:
        kind = next((k for e, k in KINDS.items() if isinstance(error, e)), UnknownError)
        raise kind(op.node_def, op, f"{type(error).__name__}: {error}") from error
    count = len(op.outputs)
    if count == 0:
        return []
    if not isinstance(made, list | tuple) or (
        op.attrs["_single"]
        and not (isinstance(made, list | tuple) and len(made) == 1 and count == 1)
    ):
        made = [made]
    if len(made) != count:
        raise InvalidArgumentError(
            op.node_def, op, f"pyfunc returns {len(made)} values, but expects to see {count}"
        )
    found = []
    for a, t in zip(made, op.outputs, strict=True):
        array = np.asarray(a)
        wanted = t.dtype.base_dtype.numpy
        if array.dtype != wanted and wanted.kind != "O":
            given = getattr(array.dtype, "name", array.dtype)
            raise InvalidArgumentError(
                op.node_def,
                op,
                f"{list(op.outputs).index(t)}-th value returned by pyfunc is {given}, but expects "
                f"{t.dtype.name}",
            )
        found.append(array)
    return found


for _type, _stateful in (("PyFunc", True), ("PyFuncStateless", False)):
    define(
        _type, "input*:A", host=_call_python, types=lambda i, a: a["Tout"], stateful=_stateful,
        infer=lambda i, a: [unknown_shape() for _ in a["Tout"]],
    )  # fmt: skip


def py_func(
    func: Callable[..., Any], inp: Any, Tout: Any, stateful: bool = True, name: Any = None
) -> Any:
    """An op that calls a Python function of arrays; its results have the types Tout."""
    single = not isinstance(Tout, list | tuple)
    kinds = [as_dtype(t) for t in ([Tout] if single else Tout)]
    type = "PyFunc" if stateful else "PyFuncStateless"
    attrs = {"Tout": kinds, "_function": func, "_single": single, "token": f"pyfunc_{uid()}"}
    op = build(type, *[convert_to_tensor(v) for v in inp], name=name, **attrs)
    if single:
        return op.outputs[0]
    return op.outputs if kinds else op


def numpy_function(func: Any, inp: Any, Tout: Any, name: Any = None, stateful: bool = True) -> Any:
    """`py_func`."""
    return py_func(func, inp, Tout, stateful, name)


# Print and Assert


def _print(run: Any, op: Any, value: Any, *data: Any) -> Any:
    count = op.attrs["first_n"]
    shown = op.attrs["_shown"]
    if count is None or count < 0 or shown[0] < count:
        shown[0] += 1
        limit = op.attrs["summarize"] or 3
        parts = "".join(f"[{_summary(d, limit)}]" for d in data)
        print(f"{op.attrs['message']}{parts}", file=sys.stderr)
    return [value]


def _summary(array: Any, limit: int) -> str:
    flat = array.reshape(-1)
    rest = "..." if flat.size > limit >= 0 else ""
    return " ".join(str(v) for v in (flat if limit < 0 else flat[:limit])) + rest


define("Print", "input:A data*:A", host=_print, infer=lambda i, a: i[0]._shape, stateful=True)


@RegisterGradient("Print")
def _PrintGrad(op: Operation, *grad: Any) -> list[Any]:
    """dy to the value, nothing to what is printed."""
    return [*grad, *[None] * (len(op.inputs) - 1)]


def Print(
    input_: Any,
    data: Any,
    message: Any = None,
    first_n: Any = None,
    summarize: Any = None,
    name: Any = None,
) -> Tensor:
    """The value; a run prints data on standard error."""
    return apply(
        "Print", convert_to_tensor(input_), *[convert_to_tensor(d) for d in data], name=name,
        message=message or "", first_n=first_n, summarize=summarize, _shown=[0],
    )  # fmt: skip


def _print_line(run: Any, op: Any, *data: Any) -> Any:
    words, values = [], iter(data)
    for part in op.attrs["parts"]:
        words.append(str(next(values)) if part is None else str(part))
    print(op.attrs["sep"].join(words), file=op.attrs["stream"], end=op.attrs["end"])
    return []


define("PrintV2", "data*:A", host=_print_line, infer=lambda i, a: [], dtype=[],
       stateful=True)  # fmt: skip


def print_line(*inputs: Any, **kwargs: Any) -> Operation:
    """An op that prints tensors and other things: `tf.print`."""
    tensors = [i for i in inputs if isinstance(i, Tensor) or hasattr(i, "_tensor_of")]
    parts = [None if any(i is t for t in tensors) else i for i in inputs]
    stream = kwargs.get("output_stream", sys.stderr)
    return build(
        "PrintV2", *[convert_to_tensor(t) for t in tensors], name=kwargs.get("name"), parts=parts,
        sep=kwargs.get("sep", " "), end=kwargs.get("end", "\n"), stream=stream,
    )  # fmt: skip


def _assert(run: Any, op: Any, condition: Any, *data: Any) -> Any:
    if not np.all(condition):
        limit = op.attrs["summarize"] or 3
        shown = "".join(f" [{_summary(d, limit)}]" for d in data)
        raise InvalidArgumentError(op.node_def, op, f"assertion failed:{shown}")
    return []


define("Assert", "condition:bool data*:A", host=_assert, infer=lambda i, a: [],
       dtype=[], stateful=True)  # fmt: skip


def Assert(condition: Any, data: Any, summarize: Any = None, name: Any = None) -> Operation:
    """An op that raises InvalidArgumentError in a run where the condition does not hold."""
    return build("Assert", convert_to_tensor(condition, "bool"),
                 *[convert_to_tensor(d) for d in data], name=name or "Assert/Assert",
                 summarize=summarize)  # fmt: skip


# Defun


class Defun:
    """A decorator: calls of the function are one op, of the function's name as its type.

    python_grad_func  its gradient: python_grad_func(op, *dys)
    grad_func         its gradient as another Defun, of inputs and dys
    """

    def __init__(self, *types: Any, **kwargs: Any) -> None:
        self._types = [as_dtype(t) for t in types]
        self._name = kwargs.pop("func_name", None)
        self._python_grad = kwargs.pop("python_grad_func", None)
        self._grad = kwargs.pop("grad_func", None)
        self._shape = kwargs.pop("shape_func", None)
        kwargs.pop("out_names", None)
        kwargs.pop("noinline", None)
        self._rest = kwargs
        if self._python_grad is not None and self._grad is not None:
            raise ValueError("Gradient defined twice")

    def __call__(self, function: Callable[..., Any]) -> DefinedFunction:
        return DefinedFunction(
            function, self._types, self._name or function.__name__, self._python_grad, self._grad,
            self._shape,
        )  # fmt: skip


class DefinedFunction:
    """A function whose calls are one op each."""

    def __init__(
        self, function: Any, types: Any, name: str, python_grad: Any, grad: Any, shape: Any
    ) -> None:
        self._function, self._types, self.name = function, types, name
        self._python_grad, self._grad, self._shape = python_grad, grad, shape
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = kwargs.pop("name", None)
        tensors = [
            convert_to_tensor(a, None if isinstance(a, Tensor) else t)
            for a, t in zip(args, self._types or [None] * len(args), strict=True)
        ]
        graph = tensors[0].graph if tensors else get_default_graph()
        with name_scope(name, self.name, tensors) as scope:
            with changed(graph, maps={}, controls=()):
                inner = [apply("Identity", t) for t in tensors]
                result = self._function(*inner)
                flat = [convert_to_tensor(v) for v in flatten(result)]
            if self.name not in DEFINITIONS:
                define(self.name, "input*:A", lower=_call)
            elif DEFINITIONS[self.name].lower is not _call:
                raise ValueError(f"a Defun is named {self.name!r}, which is the type of other ops")
            shapes = [t.shape for t in flat] if self._shape is None else None
            op = build(
                self.name, *tensors, name=scope, dtypes=[t.dtype.base_dtype for t in flat],
                shapes=shapes or [unknown_shape()] * len(flat), _inner=inner, _results=flat,
                _gradient=self._gradient,
            )  # fmt: skip
            if self._shape is not None:
                for t, shape in zip(op.outputs, self._shape(op), strict=True):
                    t.set_shape(shape)
        return op.outputs[0] if len(op.outputs) == 1 else op.outputs

    def _gradient(self, op: Operation, *dys: Any) -> Any:
        """The gradient of a call: the one that was given, else what the inside means."""
        if self._python_grad is not None:
            return self._python_grad(op, *dys)
        if self._grad is not None:
            return self._grad(*op.inputs, *dys)
        return derived_gradient(op, *dys)


def _call(trace: Any, op: Any, *args: Any) -> Any:
    """The inside of a call, for its arguments."""
    return trace.inside(op.attrs["_inner"], args, op.attrs["_results"])
