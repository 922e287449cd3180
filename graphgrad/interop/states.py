"""The state of a compiled function as a tree of arrays, and back: `state_tree` and `commit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import DTypeError, ShapeError, StateError
from ..base.kinds import can_cast
from ..compiled import CompiledFunction
from ..ir.node import Node
from ..ir.types import as_dtype, check_unmasked
from ..ir.variables import near
from ..lower.narrow import narrow_dtype

__all__ = ["RUNS", "commit", "is_single", "state_names", "state_tree"]

RUNS = "/runs"
"""The key under which runs are counted, of what draws without a seed: no variable is named so."""


def is_single(dtype: Any) -> bool:
    """Whether computing in single precision is asked for; ValueError for what cannot be asked."""
    if dtype is None:
        return False
    if as_dtype(dtype) != np.float32:
        raise ValueError(f'dtype is None or "float32", got {dtype!r}')
    return True


def state_names(f: CompiledFunction) -> list[str]:
    """The keys of the tree: names of variables, and the count of runs where it matters."""
    return [*(v.name for v in f._access.variables), *([RUNS] if f._access.counted else [])]


def state_tree(f: CompiledFunction, dtype: Any = None) -> dict[str, Any]:
    """The variables that it reads or writes, by name, as `as_jax` takes them.

    Where it draws random numbers without a seed, "/runs" counts its runs.

    Parameters:
        f: that of `f.state_tree`.
        dtype: "float32" for float64 in single precision, complex128 too, as
            `as_jax(dtype="float32")` returns it; None: as they are.

    Returns: {name: array}, copies of one moment, which a donation may take.

    Raises: ValueError for an unsupported dtype.

    >>> w = gg.variable([1.0, 2.0], name="w")
    >>> f = gg.compile([], [], updates={w: 2.0 * w})
    >>> f.state_tree()
    {'w': array([1., 2.])}
    """
    single, nodes, state = is_single(dtype), f._access.variables, f._access.state
    values, runs = state.read(nodes), state.runs
    tree: dict[str, Any] = {}
    for v, value in zip(nodes, values, strict=True):
        wanted = narrow_dtype(value.dtype) if single else value.dtype
        tree[v.name] = value.copy() if wanted == value.dtype else value.astype(wanted)
    if f._access.counted:
        tree[RUNS] = np.array(runs)
    return tree


def commit(f: CompiledFunction, tree: Mapping[str, Any]) -> None:
    """Write a tree, as what `as_jax` makes returns it, to the variables: all of it, or nothing.

    Parameters:
        f: that of `f.commit`.
        tree: {name: array of the variable's shape, of a dtype that is cast to its by same-kind
            casting}: all that `state_tree` has, and nothing else.

    Returns: nothing.

    Raises: StateError that lists what is missing, unknown or does not fit.

    >>> w = gg.variable([1.0, 2.0], name="w")
    >>> f = gg.compile([], [], updates={w: 2.0 * w})
    >>> f.commit({"w": np.array([3.0, 4.0])})
    >>> w.graph.state["w"]
    array([3., 4.])
    """
    state, nodes = f._access.state, {v.name: v for v in f._access.variables}
    wrong = misfits(state_names(f), tree)
    values: dict[Node, Any] = {}
    for name, node in nodes.items():
        if name in tree:
            try:
                values[node] = _fitting(node, tree[name])
            except (DTypeError, ShapeError) as error:
                wrong.append(f"does not fit: {error}")
    runs = tree.get(RUNS, 0)
    if f._access.counted and (np.shape(runs) != () or np.asarray(runs).dtype.kind not in "iu"):
        wrong.append(f"does not fit: {RUNS!r} is the number of runs, got {runs!r}")
    if wrong:
        rows = "\n  ".join(wrong)
        raise StateError(
            f"the tree does not fit the state of {f!r}; nothing was written.\n  {rows}"
        )

    def write() -> None:
        state.commit(values, int(runs) - state.runs if f._access.counted else 0)

    state.turn.take(write)


def misfits(names: Sequence[str], tree: Mapping[str, Any]) -> list[str]:
    """What is missing in a tree, and what is unknown."""
    if not isinstance(tree, Mapping):
        return [f"it is a dict by name of variable, got {type(tree).__name__}"]
    missing = [f"missing: {name!r}" for name in names if name not in tree]
    unknown = [name for name in tree if name not in names]
    return missing + [f"unknown: {n!r}. {near(str(n), names)}".rstrip() for n in unknown]


def _fitting(node: Node, value: Any) -> Any:
    """A value as an array of a variable's type that is the state's own."""
    check_unmasked(value, f"{node.name}: ")
    new, promised = np.array(value), node.outputs[0].type
    if not can_cast(new.dtype, promised.dtype, "same_kind"):
        raise DTypeError(f"{node.name!r} is {promised.dtype}, cannot take {new.dtype}")
    if new.shape != promised.shape:
        raise ShapeError(f"{node.name!r} is {promised!r}, cannot take shape {new.shape}")
    return new.astype(promised.dtype)
