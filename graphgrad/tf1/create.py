"""How an op is made: values become tensors, types are checked, shapes are worked out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import numpy as np

from .definition import DEFINITIONS, Argument, Definition, definition_of
from .dtypes import DType, as_dtype
from .graph import Graph, Operation, Tensor, get_default_graph
from .scope import pushed
from .shapes import Dimension, TensorShape
from .trial import tried

__all__ = [
    "constant", "convert_to_tensor", "convert_to_tensor_or_indexed_slices", "name_scope",
    "register_tensor_conversion_function",
]  # fmt: skip

_conversions: list[tuple[Any, Callable[..., Any]]] = []


def register_tensor_conversion_function(
    base_type: Any, conversion_func: Callable[..., Any], priority: int = 100
) -> None:
    """Values of a class become tensors by conversion_func(value, dtype, name, as_ref)."""
    _conversions.append((base_type, conversion_func))


def constant(
    value: Any, dtype: Any = None, shape: Any = None, name: str = "Const", verify_shape: Any = False
) -> Tensor:
    """A tensor that always has this value.

    Python's floats are float32 and its ints int32; arrays keep their type. With a shape, the last
    value is repeated.
    """
    array = numpy_value(value, None if dtype is None else as_dtype(dtype).base_dtype)
    if shape is not None:
        array = _filled(array, [int(n) for n in TensorShape(shape).as_list() or []])
    kind = as_dtype(array.dtype)
    array = array.copy() if array is value else array
    if array.dtype != object:
        array.flags.writeable = False
    graph = get_default_graph()
    attrs = {"value": array, "dtype": kind}
    return graph._make("Const", (), [kind], [TensorShape(array.shape)], attrs, name).outputs[0]


def _filled(array: np.ndarray[Any, Any], shape: list[int]) -> Any:
    if list(array.shape) == shape:
        return array
    total = int(np.prod(shape))
    if array.size > total or (array.size == 0 and total):
        raise ValueError(f"{array.size} values do not fill the shape {shape}")
    flat = array.reshape(-1)
    return np.concatenate([flat, np.full(total - flat.size, flat[-1], flat.dtype)]).reshape(shape)


def numpy_value(value: Any, dtype: DType | None) -> np.ndarray[Any, Any]:
    """The array that a Python value stands for. Raises TypeError where it does not fit the type."""
    if isinstance(value, TensorShape):
        value = value.as_list()
        if None in value:
            raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {value}")
        dtype = dtype or as_dtype("int32")
    value = _plain(value)
    numpy_given = isinstance(value, np.ndarray | np.generic)
    array = np.asarray(value)
    if array.dtype.kind in "SU" and not numpy_given:
        _all_text(value)
    if array.dtype.kind in "SU":
        array = _bytes(array)
    if array.dtype == object and (dtype is None or dtype.name != "string"):
        if not all(isinstance(v, str | bytes) for v in array.reshape(-1)):
            wanted = "" if dtype is None else f" of dtype {dtype.name}"
            raise (TypeError if value is not None and array.size == 1 else ValueError)(
                f"Failed to convert {value!r} (of type {type(value).__name__}) to a Tensor{wanted}"
            )
    if dtype is None:
        if not numpy_given:
            wide: Any = {"float64": np.float32, "int64": np.int32}.get(array.dtype.name)
            if array.size == 0 and isinstance(value, list | tuple):
                wide = np.float32
            if wide is np.int32 and array.size and np.abs(array).max() > np.iinfo(np.int32).max:
                wide = np.int64
            if wide is not None and not _holds_numpy(value):
                return array.astype(wide)
        return array
    _check_fits(value, array, dtype, numpy_given)
    with np.errstate(all="ignore"):
        return array.astype(dtype.numpy)


def _all_text(value: Any) -> None:
    """Raises TypeError for a list of text and other things."""
    if isinstance(value, list | tuple):
        for v in value:
            _all_text(v)
    elif not isinstance(value, str | bytes | np.ndarray | np.generic):
        raise TypeError(f"Cannot convert {value!r} to a tensor of strings")


def _bytes(array: Any) -> Any:
    """Text as bytes, as TensorFlow's strings are."""
    made = np.empty(array.shape, object)
    flat = [v.encode() if isinstance(v, str) else bytes(v) for v in array.reshape(-1)]
    for place, value in zip(np.ndindex(*array.shape), flat, strict=True):
        made[place] = value
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, Dimension):
        return value.__index__()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value


def _holds_numpy(value: Any) -> bool:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return isinstance(value, np.ndarray | np.generic)


def _check_fits(value: Any, array: Any, dtype: DType, numpy_given: bool) -> None:
    kind, wanted = array.dtype.kind, dtype.numpy.kind
    if array.size == 0:
        return
    narrowed = (kind == "f" and wanted in "iu") or (kind == "b") != (wanted == "b")
    if (narrowed and not numpy_given) or (kind == "O") != (wanted == "O"):
        raise TypeError(
            f"Expected {dtype.name}, got {value!r} of type {_name_of(value)!r} instead."
        )


def _name_of(value: Any) -> str:
    while isinstance(value, list | tuple) and value:
        value = value[0]
    return type(value).__name__


def convert_to_tensor(
    value: Any,
    dtype: Any = None,
    name: str | None = None,
    preferred_dtype: Any = None,
    dtype_hint: Any = None,
    as_ref: bool = False,
) -> Tensor:
    """The tensor that a value stands for: itself, a variable's value, a constant, a Pack of them.

    Raises ValueError for a tensor of another type than dtype.
    """
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    if isinstance(value, Tensor):
        return _checked(value, wanted)
    read = getattr(value, "_tensor_of", None)
    if read is not None:
        return _checked(read(as_ref), wanted)
    for base, convert in _conversions:
        if isinstance(value, base):
            made = convert(value, wanted, name, as_ref)
            if made is not NotImplemented and made is not None:
                return _checked(made, wanted)
    if isinstance(value, list | tuple) and _holds_tensor(value):
        return _packed(value, wanted, name)
    hint = preferred_dtype or dtype_hint
    if wanted is None and hint is not None:
        try:
            return constant(value, hint, name=name or "Const")
        except (TypeError, ValueError):
            pass
    return constant(value, wanted, name=name or "Const")


def convert_to_tensor_or_indexed_slices(value: Any, dtype: Any = None, name: Any = None) -> Any:
    """As `convert_to_tensor`; gradients of gathers are dense tensors here."""
    return convert_to_tensor(value, dtype, name)


def convert_n_to_tensor(values: Any, dtype: Any = None, name: str | None = None) -> list[Tensor]:
    """The tensors that values stand for."""
    return [convert_to_tensor(v, dtype, name) for v in values]


def _checked(t: Tensor, wanted: DType | None) -> Tensor:
    if wanted is not None and t.dtype.base_dtype is not wanted:
        raise ValueError(
            f"Tensor conversion requested dtype {wanted.name} for Tensor with dtype "
            f"{t.dtype.name}: {t!r}"
        )
    return t


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(_holds_tensor(v) for v in value)
    return isinstance(value, Tensor) or hasattr(value, "_tensor_of")


def _packed(values: Any, wanted: DType | None, name: str | None) -> Tensor:
    """A list that holds tensors, as one tensor."""
    kind = wanted or _type_in(values)
    with name_scope(name, "packed") as scope:
        parts = [
            _packed(v, kind, None)
            if isinstance(v, list | tuple) and _holds_tensor(v)
            else convert_to_tensor(v, kind, str(i))
            for i, v in enumerate(values)
        ]
        return apply("Pack", parts, name=scope, axis=0)


def _type_in(values: Any) -> DType | None:
    for v in values:
        if isinstance(v, list | tuple):
            found = _type_in(v)
            if found is not None:
                return found
        elif _holds_tensor(v):
            return v.dtype.base_dtype
    return None


@contextmanager
def name_scope(name: Any, default_name: Any = None, values: Any = None) -> Any:
    """Names of ops made in the block have this before them, within the graph of `values`."""
    graph = graph_of(values or ())
    with pushed("graph", graph), graph.name_scope(default_name if name is None else name) as scope:
        yield scope


def graph_of(values: Any) -> Graph:
    """The graph of the first tensor among values, or the default one."""
    for v in values:
        if isinstance(v, Tensor | Operation) or hasattr(v, "_tensor_of"):
            return v.graph
    return get_default_graph()


def apply(
    type: str,
    *inputs: Any,
    name: str | None = None,
    dtypes: Any = None,
    shapes: Any = None,
    **attrs: Any,
) -> Any:
    """The tensor of a new op, or the list of its tensors where it has several."""
    outputs = build(type, *inputs, name=name, dtypes=dtypes, shapes=shapes, **attrs)._outputs
    return outputs[0] if len(outputs) == 1 else list(outputs)


def build(
    type: str,
    *inputs: Any,
    name: str | None = None,
    dtypes: Any = None,
    shapes: Any = None,
    **attrs: Any,
) -> Operation:
    """A new op. What is not a tensor among its inputs becomes a constant under the op's name."""
    definition = DEFINITIONS.get(type) or definition_of(type)
    first: Any = None
    plain = True
    for v in inputs:
        if not isinstance(v, Tensor):
            plain = False
        elif first is None:
            first = v
    graph = first.op.graph if first is not None else _graph_in(inputs)
    if plain:
        return _made(graph, definition, inputs, name, dtypes, shapes, attrs)
    with pushed("graph", graph), graph.name_scope(name or type) as scope:
        tensors = _converted(definition, inputs)
        return _made(graph, definition, tensors, scope, dtypes, shapes, attrs)


def _graph_in(inputs: Any) -> Graph:
    flat: list[Any] = []
    for v in inputs:
        flat.extend(v) if isinstance(v, list | tuple) else flat.append(v)
    return graph_of(flat)


def _converted(definition: Definition, inputs: tuple[Any, ...]) -> tuple[Tensor, ...]:
    """Inputs as tensors; those of kind T take the type that the tensors among them have."""
    kind = _common(definition, inputs)
    found: list[Tensor] = []
    for i, value in enumerate(inputs):
        argument = definition.arguments[min(i, len(definition.arguments) - 1)]
        if not argument.many:
            made = _one(argument, value, kind, argument.name)
            found.append(made)
            kind = kind or (made.dtype.base_dtype if argument.kind == "T" else None)
            continue
        for j, v in enumerate(value):
            made = _one(argument, v, kind, f"{argument.name}_{j}")
            found.append(made)
            kind = kind or (made.dtype.base_dtype if argument.kind == "T" else None)
    return tuple(found)


def _common(definition: Definition, inputs: tuple[Any, ...]) -> DType | None:
    for i, value in enumerate(inputs):
        argument = definition.arguments[min(i, len(definition.arguments) - 1)]
        if argument.kind != "T":
            continue
        for v in value if argument.many else (value,):
            if isinstance(v, Tensor) or hasattr(v, "_tensor_of"):
                return v.dtype.base_dtype
    return None


def _one(argument: Argument, value: Any, kind: DType | None, name: str) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if hasattr(value, "_tensor_of"):
        return convert_to_tensor(value, as_ref=argument.kind == "R")
    wanted = kind if argument.kind == "T" else argument.fixed
    if argument.kind == "T" or argument.kind in ("", "A", "R"):
        return convert_to_tensor(value, wanted, name)
    return convert_to_tensor(value, name=name, preferred_dtype=wanted)


def _made(
    graph: Graph,
    definition: Definition,
    inputs: tuple[Tensor, ...],
    name: str | None,
    dtypes: Any,
    shapes: Any,
    attrs: dict[str, Any],
) -> Operation:
    for t in inputs:
        if t.op.graph is not graph:
            raise ValueError(
                f"Tensor {t} must be from the same graph as {inputs[0]} (graphs are {t.op.graph} "
                f"and {graph})."
            )
    _check_types(definition, inputs, attrs, name)
    if dtypes is None:
        if definition.types is not None:
            dtypes = definition.types(inputs, attrs)
        else:
            kind = inputs[0]._dtype
            dtypes = [kind.base_dtype if kind._reference else kind]
    if shapes is None:
        infer = definition.infer
        try:
            if infer is not None:
                shapes = infer(inputs, attrs)
            else:
                shapes = tried(definition, inputs, attrs, dtypes)
        except ValueError as error:
            types = ", ".join(f"{t.dtype.name}{t.shape}" for t in inputs)
            raise ValueError(f"{error} for '{name or definition.type}' (op: '{definition.type}') "
                             f"with inputs {types}") from error  # fmt: skip
        if isinstance(shapes, TensorShape):
            shapes = [shapes] * len(dtypes)
    return graph._make(definition.type, inputs, dtypes, shapes, attrs, name)


def _check_types(
    definition: Definition, inputs: tuple[Tensor, ...], attrs: dict[str, Any], name: str | None
) -> None:
    """Inputs of kind T have one type."""
    if definition.uniform and inputs:
        kind_of_first = inputs[0]._dtype
        if not definition.kinds or kind_of_first.kind in definition.kinds:
            for t in inputs:
                if t._dtype is not kind_of_first:
                    break
            else:
                return
    arguments = definition.arguments
    kind: Tensor | None = None
    first = ""
    many = next((i for i, a in enumerate(arguments) if a.many), None)
    extra = len(inputs) - len(arguments)
    for i, t in enumerate(inputs):
        place = i
        if many is not None and i > many:
            place = max(many, i - extra)
        if place >= len(arguments):
            place = -1
        argument = arguments[place] if arguments else None
        if argument is None or argument.kind != "T":
            continue
        if kind is None:
            kind, first = t, argument.name
            if definition.kinds and t.dtype.kind not in definition.kinds:
                raise TypeError(
                    f"Value passed to parameter '{argument.name}' has DataType "
                    f"{t.dtype.base_dtype.name} not in list of allowed values of "
                    f"'{definition.type}' Op."
                )
        elif t.dtype.base_dtype is not kind.dtype.base_dtype:
            raise TypeError(
                f"Input '{argument.name}' of '{definition.type}' Op has type "
                f"{t.dtype.base_dtype.name} that does not match type "
                f"{kind.dtype.base_dtype.name} of argument '{first}'."
            )
