"""A function of JAX with its arguments: traced, and built."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ...ir.node import Tensor
from ...ir.types import TensorType, type_of_array
from ...ops.base import constant
from ...ops.sources import variable
from .building import Building
from .tracing import clean, is_key, traced, wide

__all__ = ["opened"]

_JAX: Any = jax


def opened(fn: Callable[..., Any], args: Sequence[Any], parameters: str) -> Any:
    """What `open_jax` returns."""
    given, structure = _JAX.tree_util.tree_flatten_with_path((fn, tuple(args)))
    places = [i for i, (_, leaf) in enumerate(given) if _is_traced(leaf)]
    layout: list[Any] = []

    def flat(*xs: Any) -> list[Any]:
        values = [leaf for _, leaf in given]
        for i, value in zip(places, xs, strict=True):
            values[i] = value
        called, arguments = _JAX.tree.unflatten(structure, values)
        made, out = _JAX.tree.flatten(called(*arguments))
        layout[:] = [out]
        return list(made)

    chosen = [given[i] for i in places]
    types = [_type_of(leaf) for _, leaf in chosen]
    names = _argument_names(fn, len(args))
    with wide(types):
        building = Building(types)
        closed = traced(flat, building.avals)
        inputs = [_input(path, leaf, parameters, names) for path, leaf in chosen]
        made = building.run(closed.jaxpr, closed.consts, inputs)
    return _JAX.tree.unflatten(layout[0], made)


def _is_traced(leaf: Any) -> bool:
    """Whether JAX traces a leaf; others, such as functions, are what they are."""
    if isinstance(leaf, Tensor):
        return True
    kind = getattr(getattr(leaf, "dtype", None), "kind", None)
    return kind in tuple("biufcV") and hasattr(leaf, "shape") and not is_key(leaf.dtype)


def _type_of(leaf: Any) -> TensorType:
    return leaf.type if isinstance(leaf, Tensor) else type_of_array(np.asarray(leaf))


def _input(path: Any, leaf: Any, parameters: str, names: Sequence[str]) -> Tensor:
    """A tensor as it is; an array as a variable or a constant that its path names."""
    if isinstance(leaf, Tensor):
        return leaf
    array = np.asarray(leaf)
    name = _name_of(path, names)
    if parameters == "constants" or array.dtype.kind not in "fcV":
        return constant(array, name=name)
    return variable(array, name=name)


def _argument_names(fn: Callable[..., Any], count: int) -> list[str]:
    try:
        known = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        known = []
    named = [p.name for p in known if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [named[i] if i < len(named) else f"arg{i}" for i in range(count)]


def _name_of(path: Any, names: Sequence[str]) -> str:
    """The keys that lead to a leaf; the argument's name where it is all of an argument."""
    keys = [_key(entry) for entry in path]
    inside = keys[1:] if keys[0] == "0" else keys[2:]
    return clean("/".join(inside)) if inside else names[int(keys[1])]


def _key(entry: Any) -> str:
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)
