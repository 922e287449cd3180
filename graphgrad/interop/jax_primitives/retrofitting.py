"""The way back: a function of JAX, opened, marked and compiled, as a function of JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ...compiled import compile
from ...ir.graph import Graph
from ...ops.sources import placeholder
from ..jax_calls import has_64_bits
from ..jax_functions import without_state
from ..signatures import Fixed, names_of_leaves
from .opening import is_array, opened
from .tracing import is_key

__all__ = ["Retrofitted"]

_JAX: Any = jax


class Taken(NamedTuple):
    """A call, taken apart.

    structure  of the function, its arguments and those by name
    leaves     of it
    places     of the arrays among them, random keys included
    arrays     these, keys as their words
    names      of the arrays, by their paths
    """

    structure: Any
    leaves: list[Any]
    places: list[int]
    arrays: list[Any]
    names: list[str]

    @property
    def weak(self) -> list[bool]:
        """Which of the arrays have the type of a Python number."""
        return [_JAX.typeof(a).weak_type for a in self.arrays]

    @property
    def signature(self) -> Any:
        """What it is opened for."""
        places = set(self.places)
        types = [(a.shape, str(a.dtype)) for a in self.arrays]
        fixed = [Fixed(x) for i, x in enumerate(self.leaves) if i not in places]
        arrays = tuple(self.places), tuple(types), tuple(self.weak)
        return self.structure, arrays, tuple(fixed), has_64_bits()


class Retrofitted:
    """`retrofit`: called as the function is.

    made  signature -> the function of flat arrays, and how to lay out what it returns
    """

    def __init__(
        self, fn: Callable[..., Any], mark: Callable[[Graph], object], gradients: int
    ) -> None:
        update_wrapper(self, fn)
        self.fn, self.mark, self.gradients = fn, mark, gradients
        self.made: dict[Any, tuple[Callable[..., Any], Callable[[Sequence[Any]], Any]]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What fn returns, with the gradients of the rules."""
        taken = _taken(self.fn, args, kwargs)
        run, laid_out = self._for(taken)
        return laid_out(run(*taken.arrays))

    def open(self, *examples: Any) -> None:
        """Open it for arguments like these."""
        self._for(_taken(self.fn, examples, {}))

    def _for(self, taken: Taken) -> Any:
        key = taken.signature
        if key not in self.made:
            self.made[key] = self._opened(taken)
        return self.made[key]

    def _opened(self, taken: Taken) -> Any:
        layout: list[Any] = []

        def flat(*arrays: Any) -> list[Any]:
            leaves = list(taken.leaves)
            for i, x in zip(taken.places, arrays, strict=True):
                leaves[i] = _as_given(x, taken.leaves[i])
            fn, args, kwargs = _JAX.tree.unflatten(taken.structure, leaves)
            made, structure = _JAX.tree.flatten(fn(*args, **kwargs))
            layout[:] = [structure, [_key_of(y) for y in made]]
            return [_JAX.random.key_data(y) if is_array_of_keys(y) else y for y in made]

        with Graph(getattr(self.fn, "__name__", type(self.fn).__name__)) as graph:
            inputs = [
                placeholder(a.shape, a.dtype, name=name)
                for a, name in zip(taken.arrays, taken.names, strict=True)
            ]
            outputs = opened(flat, inputs, "constants", taken.weak)
            self.mark(graph)
            compiled = compile(inputs, outputs, backend="numpy")
            run = without_state(compiled, self.gradients, not has_64_bits(), "retrofit")
        structure, keys = layout

        def laid_out(made: Sequence[Any]) -> Any:
            wrapped = [_wrapped(y, key) for y, key in zip(made, keys, strict=True)]
            return _JAX.tree.unflatten(structure, wrapped)

        return run, laid_out


def _taken(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Taken:
    given, structure = _JAX.tree_util.tree_flatten_with_path((fn, tuple(args), kwargs))
    leaves = [leaf for _, leaf in given]
    places = [i for i, x in enumerate(leaves) if is_array(x) or is_array_of_keys(x)]
    arrays = [
        _JAX.random.key_data(leaves[i]) if is_array_of_keys(leaves[i]) else jnp.asarray(leaves[i])
        for i in places
    ]
    names = names_of_leaves(fn, len(args), [given[i][0] for i in places])
    return Taken(structure, leaves, places, arrays, names)


def is_array_of_keys(x: Any) -> bool:
    """Whether these are random keys."""
    return hasattr(x, "dtype") and hasattr(x, "shape") and is_key(x.dtype)


def _key_of(x: Any) -> Any:
    """The kind of random keys; None of what is none."""
    return _JAX.random.key_impl(x) if is_array_of_keys(x) else None


def _wrapped(x: Any, kind: Any) -> Any:
    return x if kind is None else _JAX.random.wrap_key_data(x, impl=kind)


def _as_given(x: Any, leaf: Any) -> Any:
    return _wrapped(x, _key_of(leaf))
