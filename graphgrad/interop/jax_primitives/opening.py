"""A function of JAX with its arguments: traced, and built."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np

from ...ir.build import adopted, graph_elsewhere
from ...ir.context import bodies_around
from ...ir.graph import Graph, current
from ...ir.node import Tensor
from ...ir.types import TensorType, type_of_array
from ...ops.base import Constant, constant
from ...ops.sources import placeholder, variable
from ..reports import OpenReport, Survey
from .building import Building
from .tracing import INSTEAD, WHO, clean, is_key, note_unknown, wide

__all__ = ["opened", "reported"]

_JAX: Any = jax


class Opening(NamedTuple):
    """A function with its arguments, traced.

    closed  its program
    types   of what the program takes
    paths   of that, with the leaves
    names   of the arguments of the function
    layout  the structure of what it returns
    """

    closed: Any
    types: list[TensorType]
    paths: list[Any]
    names: list[str]
    layout: Any


def opened(fn: Callable[..., Any], args: Sequence[Any], parameters: str) -> Any:
    """What `open_jax` returns."""
    elsewhere = graph_elsewhere(_JAX.tree.leaves(args))
    with elsewhere.as_default() if elsewhere is not None else nullcontext():
        opening = _opening(fn, args)
        with wide(opening.types):
            surveyed(opening, parameters)[0].check(WHO, INSTEAD)
            made = _built(opening, [leaf for _, leaf in opening.paths], parameters)
        return _JAX.tree.unflatten(opening.layout, made)


def reported(fn: Callable[..., Any], args: Sequence[Any], parameters: str) -> OpenReport:
    """What `open_report` returns."""
    opening = _opening(fn, args)
    with wide(opening.types):
        survey, weights = surveyed(opening, parameters)
    return survey.report(weights)


def _opening(fn: Callable[..., Any], args: Sequence[Any]) -> Opening:
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
    with wide(types):
        closed = _JAX.make_jaxpr(flat)(*Building(types).avals)
    return Opening(closed, types, chosen, _argument_names(fn, len(args)), layout[0])


def surveyed(opening: Opening, parameters: str) -> tuple[Survey, dict[str, TensorType]]:
    """What becomes of a program, and its variables: it is built once in a graph of its own.

    So an error that a form raises leaves nothing in the user's graph.
    """
    survey = Survey()
    note_unknown(opening.closed.jaxpr, survey)
    home = current().graph
    with Graph("survey") as graph:
        graph.assumptions = [a for each in bodies_around(home) for a in each.assumptions]
        leaves = [
            _stand_in(leaf, t) for (_, leaf), t in zip(opening.paths, opening.types, strict=True)
        ]
        try:
            _built(opening, leaves, parameters, survey)
        except Exception:
            survey.check(WHO, INSTEAD)
            raise
        return survey, {t.node.name: t.type for t in graph.variables}


def _stand_in(leaf: Any, t: TensorType) -> Any:
    """What has the type of an argument, in another graph; constants are known there, too."""
    if isinstance(leaf, Tensor):
        known = leaf.node.op.value if isinstance(leaf.node.op, Constant) else None
        return placeholder(t.shape, t.dtype) if known is None else constant(known)
    return leaf


def _built(
    opening: Opening, leaves: Sequence[Any], parameters: str, survey: Survey | None = None
) -> list[Tensor]:
    """The outputs for these arguments, in the current graph."""
    given = iter(adopted(tuple([leaf for leaf in leaves if isinstance(leaf, Tensor)])))
    inputs = [
        next(given) if isinstance(leaf, Tensor) else _input(path, leaf, parameters, opening.names)
        for (path, _), leaf in zip(opening.paths, leaves, strict=True)
    ]
    closed = opening.closed
    return Building(opening.types, survey).run(closed.jaxpr, closed.consts, inputs)


def _is_traced(leaf: Any) -> bool:
    """Whether JAX traces a leaf; others, such as functions, are what they are."""
    if isinstance(leaf, Tensor):
        return True
    kind = getattr(getattr(leaf, "dtype", None), "kind", None)
    return kind in tuple("biufcV") and hasattr(leaf, "shape") and not is_key(leaf.dtype)


def _type_of(leaf: Any) -> TensorType:
    return leaf.type if isinstance(leaf, Tensor) else type_of_array(np.asarray(leaf))


def _input(path: Any, leaf: Any, parameters: str, names: Sequence[str]) -> Tensor:
    """An array as a variable or a constant that its path names."""
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
