"""`function`: from a Python function of tensors and example arrays to a function of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from types import MethodType
from typing import Any, Generic, overload

import numpy as np

from .base.errors import DTypeError, StateError
from .base.tree import flatten, paths, unflatten
from .compiled import CompiledFunction, compile
from .ir.build import note_match
from .ir.graph import Graph, current
from .ir.node import Node, Tensor
from .ir.typed import K, Named, OfAny, OfMore, OfOne, OfTwo, P, R, T_co
from .ir.types import Array, as_dtype
from .ops.base import as_tensor
from .ops.sources import Assign, placeholder
from .regions.rules import temporary_rules
from .regions.scopes import OnBehalf, gradient_override_map, maps_in_force

__all__ = ["Function", "function"]


@overload
def function(
    fn: None = None, *, graph: Graph | None = None, **options: Any
) -> Callable[[Callable[..., R]], Function[R]]: ...
@overload
def function(
    fn: OfOne[R], *examples: Any, graph: Graph | None = None, **options: Any
) -> Function[R]: ...
@overload
def function(
    fn: OfTwo[R], *examples: Any, graph: Graph | None = None, **options: Any
) -> Function[R]: ...
@overload
def function(
    fn: OfMore[P, R], *examples: Any, graph: Graph | None = None, **options: Any
) -> Function[R]: ...
@overload
def function(
    fn: OfAny[R], *examples: Any, graph: Graph | None = None, **options: Any
) -> Function[R]: ...
def function(
    fn: Callable[..., Any] | None = None,
    *examples: Any,
    graph: Graph | None = None,
    **options: Any,
) -> Any:
    """A function of arrays, compiled from a function of tensors; also a decorator.

    With examples, the graph is built immediately, on placeholders of their shapes and dtypes.
    Without examples, it is built on the first call for each new set of shapes and dtypes, and
    cached. Op-type maps and temporary rules that are in force at the call apply to the graph, and a
    call with other maps or rules builds another graph. Regions and name scopes of the caller do not
    extend into it. fn runs once for each graph: side effects such as printing or reading a clock
    happen only then.

    Parameters:
        fn: a function of tensors, or of any nesting of them, that returns tensors; None to use
            function as a decorator with options.
        *examples: arrays, numbers, or any nesting of list, tuple and dict of them.
        graph: the graph of the variables that fn reads or writes. Nodes are added to it, and a run
            carries out the assignments of fn, whether or not fn returns them. None: a new graph.
        **options: those of gg.compile: backend=, optimize=, ...

    Returns: a function that takes and returns arrays where fn takes and returns tensors.

    Raises: TypeError if fn is not a function; on a call, DTypeError for a non-numeric argument;
    StateError if fn writes a variable twice, or if it is built again and writes a variable that it
    creates itself.

    >>> w = gg.variable(3.0)
    >>> @gg.function(graph=w.graph)
    ... def train(x):
    ...     loss = gg.mean((w - x) ** 2)
    ...     gg.optimizers.SGD(0.5).minimize(loss)
    ...     return loss
    >>> float(train(np.array([1.0]))), float(train(np.array([1.0])))
    (4.0, 0.0)
    >>> step = gg.function(gg.value_and_grad(lambda w: gg.sum(w * w)))
    >>> step(np.array([1.0, 2.0]))
    (array(5.), array([2., 4.]))
    """
    if fn is None:
        return lambda given: function(given, graph=graph, **options)
    if not callable(fn):
        raise TypeError(f"function() takes a function and example arrays, got {fn!r}")
    if not isinstance(graph, Graph | None):
        raise TypeError(f"function() takes graph= as a Graph, got {graph!r}")
    made = Function(fn, options, graph)
    if examples:
        made.build(*examples)
    return made


class Function(Generic[T_co]):
    """What `function` returns: call it with arrays in the structure of the examples.

    compiled  the compiled functions by what they were built for

    >>> double = gg.function(lambda x: 2 * x)
    >>> double(np.array([1.0, 2.0])), len(double.compiled)
    (array([2., 4.]), 1)
    """

    def __init__(
        self, fn: Callable[..., T_co], options: dict[str, Any], graph: Graph | None = None
    ) -> None:
        update_wrapper(self, fn)
        self.fn = fn
        self.options = options
        self.graph = graph
        self.compiled: dict[Any, CompiledFunction[T_co]] = {}
        self._matched: dict[Any, dict[str, bool]] = {}

    @overload
    def __call__(self: Function[Named], *args: Any) -> Any: ...
    @overload
    def __call__(self: Function[Tensor], *args: Any) -> Array: ...
    @overload
    def __call__(self: Function[list[Tensor]], *args: Any) -> list[Array]: ...
    @overload
    def __call__(self: Function[dict[K, Tensor]], *args: Any) -> dict[K, Array]: ...
    @overload
    def __call__(self: Function[tuple[Tensor, Tensor]], *args: Any) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self: Function[tuple[Tensor, Tensor, Tensor]], *args: Any
    ) -> tuple[Array, Array, Array]: ...
    @overload
    def __call__(self: Function[list[Any]], *args: Any) -> list[Any]: ...
    @overload
    def __call__(self: Function[dict[K, Any]], *args: Any) -> dict[K, Any]: ...
    @overload
    def __call__(self: Function[tuple[Any, ...]], *args: Any) -> tuple[Any, ...]: ...
    @overload
    def __call__(self, *args: Any) -> Any: ...
    def __call__(self, *args: Any) -> Any:
        """Run on arrays; builds first where shapes, dtypes, structure or rules are new."""
        signature, leaves = _signature(args)
        return self._for(args, signature, leaves)(*leaves)

    def build(self, *examples: Any) -> CompiledFunction[T_co]:
        """The compiled function for arrays like these; it takes the leaves, flat."""
        return self._for(examples, *_signature(examples))

    def _for(
        self, args: tuple[Any, ...], signature: Any, leaves: list[Any]
    ) -> CompiledFunction[T_co]:
        """What was built for this call, now or before: the maps of the call matched either way."""
        maps = maps_in_force()
        key = signature, _rules_of(maps)
        if key not in self.compiled:
            matched: dict[str, bool] = {}
            noting = [each.copied(matched=matched) for each in maps]
            built = self._built(args, leaves, noting)
            self._matched[key], self.compiled[key] = matched, built
        for op_type, acts in self._matched[key].items():
            note_match((current().stamps or {})[op_type], op_type, acts)
        return self.compiled[key]

    def _built(
        self, args: tuple[Any, ...], leaves: list[Any], maps: Sequence[gradient_override_map]
    ) -> CompiledFunction:
        graph = self.graph
        if graph is None:
            graph = Graph(getattr(self.fn, "__name__", "function"), seed=current().graph.seed)
        start = len(graph.nodes)
        with graph, OnBehalf(maps):
            inputs = [placeholder(a.shape, a.dtype) for a in leaves]
            outputs = self.fn(*unflatten(args, inputs))
            tensors = [t if t is None else as_tensor(t) for t in flatten(outputs)]
            single = not isinstance(outputs, list | tuple | dict)
            wanted = tensors[0] if single and tensors else unflatten(outputs, tensors)
            options = dict(self.options)
            if self.graph is not None:
                options["updates"] = self._written(graph.nodes[start:])
            return compile(inputs, wanted, **options)

    def _written(self, nodes: Sequence[Node]) -> dict[Tensor, Tensor]:
        """What fn assigned, by variable; StateError for what cannot be meant."""
        writes: dict[Tensor, Tensor] = {}
        for node in nodes:
            if type(node.op) is not Assign:
                continue
            variable = node.inputs[0]
            if variable in writes:
                raise StateError(
                    f"{variable.name} (built at {variable.where}) is written twice in one run of "
                    f"{self!r}: at {writes[variable].where} and at {node.where}"
                )
            if self.compiled and variable.node.index >= nodes[0].index:
                raise StateError(
                    f"{self!r} creates {variable.name} (built at {variable.where}) and writes it, "
                    "and is built again for other shapes, dtypes or rules: each build would have "
                    "its own.\n"
                    "Make it outside the function (of an optimiser: updates = "
                    "optimizer.updates(...) for gg.compile), or pass arrays of one shape "
                    "(gg.training.batches(..., drop_last=True))."
                )
            writes[variable] = node.outputs[0]
        return writes

    def __repr__(self) -> str:
        return f"<function {getattr(self.fn, '__name__', self.fn)}, {len(self.compiled)} graphs>"


class _RuleKey:
    """A rule as a key: equal to itself only, a bound method to one of the same object."""

    def __init__(self, rule: Any) -> None:
        self.rule = rule

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _RuleKey):
            return NotImplemented
        same = isinstance(self.rule, MethodType) and isinstance(other.rule, MethodType)
        return bool(self.rule == other.rule) if same else self.rule is other.rule

    def __hash__(self) -> int:
        return hash(self.rule) if isinstance(self.rule, MethodType) else id(self.rule)


def _rules_of(maps: Sequence[gradient_override_map]) -> Any:
    """The entries of maps and the temporary rules in force, as a key."""
    entries = [
        (t, r if isinstance(r, str) else _RuleKey(r)) for m in maps for t, r in m.map.items()
    ]
    return tuple(entries), frozenset((n, _RuleKey(r.fn)) for n, r in temporary_rules().items())


def _signature(args: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """What a graph is built for, and the leaves as arrays."""
    leaves = flatten(args)
    arrays = []
    for leaf, path in zip(leaves, paths(args, "argument"), strict=True):
        if isinstance(leaf, Tensor):
            raise DTypeError(f"{path} is {leaf!r}; a compiled function takes arrays")
        arrays.append(np.asarray(leaf))
        as_dtype(arrays[-1].dtype)
    shape = repr(unflatten(args, range(len(leaves))))
    return (shape, *((a.shape, a.dtype) for a in arrays)), arrays
