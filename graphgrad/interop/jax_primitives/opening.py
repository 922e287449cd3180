"""A function of JAX with its arguments: traced, and built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import jax
import numpy as np

from ...ir.build import adopted, graph_elsewhere
from ...ir.context import bodies_around
from ...ir.graph import Graph, current
from ...ir.node import Tensor
from ...ir.types import TensorType, tensor_type, type_of_array
from ...ops.base import Constant, constant
from ...ops.sources import placeholder, variable
from ..reports import OpenReport, Tally
from ..signatures import names_of_leaves
from .building import Building
from .tracing import INSTEAD, WHO, is_key, note_unknown, wide

__all__ = ["is_array", "opened", "reported"]

_JAX: Any = jax


class Opening(NamedTuple):
    """A function with its arguments, traced.

    closed  its program
    types   of what the program takes
    leaves  that
    names   of it, by the paths
    layout  the structure of what the function returns
    """

    closed: Any
    types: list[TensorType]
    leaves: list[Any]
    names: list[str]
    layout: Any


def opened(
    fn: Callable[..., Any], args: Sequence[Any], parameters: str, weak: Sequence[bool] = ()
) -> Any:
    """What `open_jax` returns. weak: which of the arrays have the type of a Python number."""
    elsewhere = graph_elsewhere(_JAX.tree.leaves(args))
    with elsewhere.as_default() if elsewhere is not None else nullcontext():
        opening = _opening(fn, args, weak)
        for leaf in opening.leaves:
            if isinstance(leaf, _JAX.ShapeDtypeStruct):
                raise TypeError(f"{WHO} takes tensors and arrays, got {leaf!r}: pass a placeholder")
        with wide(opening.types):
            tried(opening, parameters)[0].check(WHO, INSTEAD)
            made = _built(opening, opening.leaves, parameters)
        return _JAX.tree.unflatten(opening.layout, made)


def reported(fn: Callable[..., Any], args: Sequence[Any], parameters: str) -> OpenReport:
    """What `open_report` returns."""
    opening = _opening(fn, args)
    with wide(opening.types):
        tally, weights = tried(opening, parameters)
    return tally.report(weights)


def _opening(fn: Callable[..., Any], args: Sequence[Any], weak: Sequence[bool] = ()) -> Opening:
    given, structure = _JAX.tree_util.tree_flatten_with_path((fn, tuple(args)))
    places = [i for i, (_, leaf) in enumerate(given) if is_array(leaf)]
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
        avals = Building(types).avals
        for i, is_weak in enumerate(weak):
            avals[i] = _JAX.ShapeDtypeStruct(avals[i].shape, avals[i].dtype, weak_type=is_weak)
        closed = _JAX.make_jaxpr(flat)(*avals)
    names = names_of_leaves(fn, len(args), [path for path, _ in chosen])
    return Opening(closed, types, [leaf for _, leaf in chosen], names, layout[0])


def tried(opening: Opening, parameters: str) -> tuple[Tally, dict[str, TensorType]]:
    """What becomes of a program, and its variables: it is built once in a graph of its own.

    So an error that a form raises leaves nothing in the user's graph.
    """
    tally = Tally()
    note_unknown(opening.closed.jaxpr, tally)
    home = current().graph
    with Graph("tally") as graph:
        graph.assumptions = [a for each in bodies_around(home) for a in each.assumptions]
        leaves = list(map(_stand_in, opening.leaves, opening.types))
        try:
            _built(opening, leaves, parameters, tally)
        except Exception:
            tally.check(WHO, INSTEAD)
            raise
        return tally, {t.node.name: t.type for t in graph.variables}


def _stand_in(leaf: Any, t: TensorType) -> Any:
    """What has the type of an argument, in another graph; constants are known there, too."""
    if isinstance(leaf, _JAX.ShapeDtypeStruct):
        return placeholder(t.shape, t.dtype)
    if isinstance(leaf, Tensor):
        known = leaf.node.op.value if isinstance(leaf.node.op, Constant) else None
        return placeholder(t.shape, t.dtype) if known is None else constant(known)
    return leaf


def _built(
    opening: Opening, leaves: Sequence[Any], parameters: str, tally: Tally | None = None
) -> list[Tensor]:
    """The outputs for these arguments, in the current graph."""
    given = iter(adopted(tuple([leaf for leaf in leaves if isinstance(leaf, Tensor)])))
    inputs = [
        next(given) if isinstance(leaf, Tensor) else _input(name, leaf, parameters)
        for name, leaf in zip(opening.names, leaves, strict=True)
    ]
    closed = opening.closed
    return Building(opening.types, tally).run(closed.jaxpr, closed.consts, inputs)


def is_array(leaf: Any) -> bool:
    """Whether JAX traces a leaf; others, such as functions, are what they are."""
    if isinstance(leaf, Tensor):
        return True
    kind = getattr(getattr(leaf, "dtype", None), "kind", None)
    return kind in tuple("biufcV") and hasattr(leaf, "shape") and not is_key(leaf.dtype)


def _type_of(leaf: Any) -> TensorType:
    if isinstance(leaf, Tensor):
        return leaf.type
    if isinstance(leaf, _JAX.ShapeDtypeStruct):
        return tensor_type(leaf.shape, leaf.dtype)
    return type_of_array(np.asarray(leaf))


def _input(name: str, leaf: Any, parameters: str) -> Tensor:
    """An array as a variable or a constant of this name."""
    array = np.asarray(leaf)
    if parameters == "constants" or array.dtype.kind not in "fcV":
        return constant(array, name=name)
    return variable(array, name=name)
