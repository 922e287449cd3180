"""Named functions of a graph: what they take, give and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..base.errors import FileError, GraphError
from ..base.tree import flatten, tree_map
from ..compiled import CompiledFunction, compile
from ..differentiate.travel.importing import cut_out, import_graph
from ..functions import Function
from ..ir.graph import Graph, current
from ..ir.node import Tensor
from .tables import Tables
from .values import DEEPEST, Unwritten, read, written

PLAIN = (list, tuple, dict)


class EntryPoint:
    """A function of a graph that was saved under a name: it compiles, and can be called.

    Parameters:
        inputs: the tensors of its arguments, in order.
        outputs: a tensor, or any nesting of lists, tuples and dicts of tensors and None.
        updates: {variable: the tensor that is written to it}; None: it writes nothing.

    >>> x = gg.placeholder((), name="x")
    >>> square = gg.EntryPoint([x], x * x)
    >>> square(3.0)
    array(9.)
    """

    def __init__(
        self, inputs: Any, outputs: Any, updates: Mapping[Tensor, Tensor] | None = None
    ) -> None:
        self.inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
        self.outputs = outputs
        self.updates = dict(updates or {})
        self._compiled: CompiledFunction | None = None

    def compile(self, **options: Any) -> CompiledFunction:
        """The compiled function.

        Parameters: **options: those of gg.compile: backend=, state=, optimize=, ...

        Returns: a CompiledFunction.

        Raises: the errors of gg.compile.
        """
        return compile(self.inputs, self.outputs, updates=self.updates, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arrays, or build in the current graph for tensors of it.

        Arguments come in the order of the inputs, or by their names. The function is compiled with
        the first call on arrays, as gg.compile does without options. On tensors the nodes that the
        outputs need are imported, with marks and rules, as by gg.import_graph: each such call has
        variables of its own, which begin with the present values.

        Returns: arrays, or tensors, in the structure of the outputs.

        Raises: TypeError for arguments that are missing or too many; on tensors GraphError for
        an unsupported dtype or shape, within the function's own graph, and where the function
        writes variables.

        >>> x = gg.placeholder((), name="x")
        >>> square = gg.EntryPoint([x], x * x)
        >>> with gg.Graph():
        ...     gg.evaluate(square(gg.constant(2.0)) + 1.0)
        array(5.)
        """
        if any(isinstance(a, Tensor) for a in (*args, *kwargs.values())):
            return self._on_tensors(self._bound(args, kwargs))
        if self._compiled is None:
            self._compiled = self.compile()
        return self._compiled(*args, **kwargs)

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The arguments in the order of the inputs; arrays among them with the inputs' dtypes."""
        names = [t.node.name for t in self.inputs]
        given = {**dict(zip(names, args)), **kwargs}
        if set(given) != set(names) or len(args) + len(kwargs) != len(names):
            got = ", ".join([f"{len(args)} by position", *kwargs])
            raise TypeError(f"{self!r} takes {', '.join(names)}, each once; got {got}")
        return [_fitting(given[name], t) for name, t in zip(names, self.inputs, strict=True)]

    def _on_tensors(self, values: Sequence[Any]) -> Any:
        if self.updates:
            raise GraphError(
                f"{self!r} writes variables, which a call on tensors cannot do: compile it, or "
                "import its graph with gg.import_graph"
            )
        home = self.inputs[0].graph
        if home is current().graph:
            raise GraphError(
                f"{self!r} belongs to the graph in which nodes are being built. Read its outputs, "
                "or call it in another graph: `with gg.Graph():`"
            )
        leaves = [t for t in flatten(self.outputs) if t is not None]
        part, there = cut_out(home, self.inputs, leaves)
        inputs = [there[t] for t in self.inputs]
        here = import_graph(part, dict(zip(inputs, values, strict=True)))
        return tree_map(lambda t: None if t is None else here[there[t]], self.outputs)

    def __repr__(self) -> str:
        takes = ", ".join(t.name for t in self.inputs)
        writes = f", writes {len(self.updates)} variables" if self.updates else ""
        return f"<entry point: ({takes}) -> {len(flatten(self.outputs))} outputs{writes}>"


def _fitting(value: Any, t: Tensor) -> Any:
    """A tensor as it is, and an array cast to the dtype of an input where that is the same kind."""
    return (
        value
        if isinstance(value, Tensor)
        else np.asarray(value).astype(t.dtype, casting="same_kind")
    )


def entries_of(functions: Any, graph: Graph) -> dict[str, EntryPoint]:
    """Entry points by name; FileError for what is none."""
    if not isinstance(functions, Mapping) or not all(type(name) is str for name in functions):
        raise FileError(f"functions is {{name: function}}, got {functions!r:.120}")
    return {name: as_entry(name, given, graph) for name, given in functions.items()}


def as_entry(name: str, given: Any, graph: Graph) -> EntryPoint:
    """What was given as a function, as an entry point of a graph."""
    if isinstance(given, CompiledFunction):
        given = EntryPoint(given.inputs, given.outputs, given.updates)
    elif isinstance(given, Function):
        raise FileError(
            f"the function {name!r} was made by gg.function, which builds a separate graph for "
            "each set of argument types: build it for one, f.build(*examples), and save the "
            "graph of the outputs, f.build(*examples).outputs"
        )
    elif isinstance(given, tuple) and len(given) in (2, 3):
        given = EntryPoint(*given)
    elif not isinstance(given, EntryPoint):
        raise FileError(
            f"the function {name!r} is {given!r:.80}; give what gg.compile returned, an EntryPoint "
            "or (inputs, outputs)"
        )
    tensors = [*given.inputs, *flatten(given.outputs), *given.updates, *given.updates.values()]
    for t in tensors:
        if t is not None and not (isinstance(t, Tensor) and t.graph is graph):
            raise FileError(f"the function {name!r} has {t!r:.120}, which is not in {graph!r}")
    entry: EntryPoint = given
    return entry


def write_entry(name: str, entry: EntryPoint, tables: Tables) -> dict[str, Any]:
    """An entry point as JSON."""
    return {
        "inputs": [_ref(t) for t in entry.inputs],
        "outputs": _written(name, entry.outputs, tables),
        "updates": [[_ref(v), _ref(t)] for v, t in entry.updates.items()],
    }


def _ref(t: Tensor) -> list[int]:
    return [t.node.index, t.index]


def _written(name: str, tree: Any, tables: Tables, depth: int = 0) -> Any:
    """The structure of outputs, with tensors by place."""
    if depth > DEEPEST:
        raise FileError(
            f"the function {name!r} returns more than {DEEPEST} structures inside one another"
        )
    deeper = depth + 1
    if tree is None:
        return None
    if isinstance(tree, Tensor):
        return {"tensor": _ref(tree)}
    if type(tree) not in PLAIN:
        raise FileError(
            f"the function {name!r} returns a {type(tree).__name__}, whose class cannot be stored "
            "in a file: compile it with lists, tuples or dicts"
        )
    if isinstance(tree, dict):
        try:
            return {
                "dict": [
                    [written(k, tables), _written(name, v, tables, deeper)] for k, v in tree.items()
                ]
            }
        except Unwritten as error:
            raise FileError(f"the function {name!r} returns a dict with the key {error}") from None
    kind = "list" if isinstance(tree, list) else "tuple"
    return {kind: [_written(name, child, tables, deeper) for child in tree]}


def read_entry(said: dict[str, Any], tensor: Callable[[Any], Tensor], by: Any) -> EntryPoint:
    """The entry point that was written so; tensor: what stands at a place of the graph."""
    updates = {tensor(v): tensor(t) for v, t in said["updates"]}
    inputs = [tensor(ref) for ref in said["inputs"]]
    return EntryPoint(inputs, _read(said["outputs"], tensor, by), updates)


def _read(said: Any, tensor: Callable[[Any], Tensor], by: Any) -> Any:
    if said is None:
        return None
    ((kind, inside),) = said.items()
    if kind == "tensor":
        return tensor(inside)
    if kind == "dict":
        return {read(k, by): _read(v, tensor, by) for k, v in inside}
    if kind not in ("list", "tuple"):
        raise FileError(f"{kind!r:.40} is not a structure of outputs")
    children = [_read(child, tensor, by) for child in inside]
    return children if kind == "list" else tuple(children)
