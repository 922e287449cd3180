"""What an op type is: its arguments, the types and shapes of its results, what it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .dtypes import DType, as_dtype
from .graph import KNOWN_TYPES

__all__ = ["DEFINITIONS", "Argument", "Definition", "define", "definition_of"]


@dataclass(frozen=True)
class Argument:
    """An argument of an op type.

    name    TensorFlow's
    kind    "T": all of the kind have one type of elements; a type such as "int32": of that type
            where it is converted; "": of any type
    many    whether it is a list of tensors
    """

    name: str
    kind: str
    many: bool

    @property
    def fixed(self) -> DType | None:
        """The type that what is converted for it has."""
        return as_dtype(self.kind) if len(self.kind) > 1 else None


@dataclass(eq=False)
class Definition:
    """An op type.

    type        TensorFlow's name
    arguments   its inputs
    lower       lower(trace, op, *tensors): what it is in graphgrad, one tensor or several
    host        host(run, op, *arrays): what it does between compiled steps, where it has no lower
    infer       infer(inputs, attrs): the shapes of its results; tried out where there is none
    types       types(inputs, attrs): the types of its results; that of the first input by default
    stateful    whether it does something, or gives other values each time
    kinds       kinds of elements that inputs of kind T may have, as NumPy's letters; "" for all
    no_gradient places of inputs that never receive a gradient
    """

    type: str
    arguments: tuple[Argument, ...] = ()
    lower: Callable[..., Any] | None = None
    host: Callable[..., Any] | None = None
    infer: Callable[..., Any] | None = None
    types: Callable[..., Sequence[DType]] | None = None
    stateful: bool = False
    kinds: str = ""
    no_gradient: frozenset[int] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        self.uniform = all(a.kind == "T" for a in self.arguments)


DEFINITIONS: dict[str, Definition] = {}


def _arguments(text: str) -> tuple[Argument, ...]:
    """Of "x y", "input axis:int32", "values* axis:int32"."""
    found = []
    for word in text.split():
        name, _, kind = word.partition(":")
        found.append(Argument(name.rstrip("*"), kind or "T", name.endswith("*")))
    return tuple(found)


def define(
    type: str,
    arguments: str = "",
    *,
    lower: Callable[..., Any] | None = None,
    native: Callable[..., Any] | None = None,
    host: Callable[..., Any] | None = None,
    infer: Callable[..., Any] | None = None,
    dtype: Any = None,
    like: int | Sequence[int] | None = None,
    types: Callable[..., Sequence[DType]] | None = None,
    stateful: bool = False,
    kinds: str = "",
    no_gradient: Iterable[int] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Define an op type; as a decorator, of what lowers it.

    native  the function of tensors alone that it is in graphgrad, in place of `lower`
    dtype   the type of its result, or those of its results, in place of `types`
    like    the place of the input whose type its result has, or those for its results
    """
    if native is not None:
        lower = _of_tensors(native)
    if dtype is not None:
        fixed = [as_dtype(d) for d in (dtype if isinstance(dtype, list) else [dtype])]

        def types(inputs: Any, attrs: Any) -> Sequence[DType]:
            return fixed

    elif like is not None:
        places = [like] if isinstance(like, int) else like

        def types(inputs: Any, attrs: Any) -> Sequence[DType]:
            return [inputs[i].dtype.base_dtype for i in places]

    made = Definition(
        type, _arguments(arguments), lower, host, infer, types, stateful, kinds,
        frozenset(no_gradient),
    )  # fmt: skip
    DEFINITIONS[type] = made
    KNOWN_TYPES.add(type)

    def with_lower(function: Callable[..., Any]) -> Callable[..., Any]:
        made.lower = function
        return function

    return with_lower


def _of_tensors(native: Callable[..., Any]) -> Callable[..., Any]:
    return lambda trace, op, *tensors: native(*tensors)


def definition_of(type: str) -> Definition:
    """The definition of an op type. Raises NotImplementedError where there is none."""
    try:
        return DEFINITIONS[type]
    except KeyError:
        raise NotImplementedError(f"graphgrad.tf1 has no op of type {type!r}") from None
