"""Graphs as descriptions, and their ops made anew in other graphs."""

from __future__ import annotations

from typing import Any

from .create import convert_to_tensor
from .graph import Graph, NodeDef, Operation, Tensor, get_default_graph
from .scope import changed

__all__ = ["GraphDef", "import_graph_def"]


class GraphDef:
    """What `graph.as_graph_def()` gives: the ops that were there then."""

    def __init__(self, ops: Any = ()) -> None:
        self._ops: list[Operation] = list(ops)

    @property
    def node(self) -> list[NodeDef]:
        """A description of each op."""
        return [op.node_def for op in self._ops]

    def ByteSize(self) -> int:
        """Something that grows with it."""
        return sum(len(str(n)) for n in self.node)

    def CopyFrom(self, other: GraphDef) -> None:
        """Become the same as another."""
        self._ops = list(other._ops)

    def SerializeToString(self) -> bytes:
        """Not there."""
        raise NotImplementedError("a GraphDef is no file here: save a graph of graphgrad's own "
                                  "(gg.save), or the program that builds it")  # fmt: skip

    ParseFromString = FromString = SerializeToString


def _as_graph_def(self: Graph, from_version: Any = None, add_shapes: bool = False) -> GraphDef:
    """A description of its ops."""
    return GraphDef(self.get_operations())


setattr(Graph, "as_graph_def", _as_graph_def)  # noqa: B010


def import_graph_def(
    graph_def: Any,
    input_map: Any = None,
    return_elements: Any = None,
    name: Any = None,
    op_dict: Any = None,
    producer_op_list: Any = None,
) -> Any:
    """Make the ops of a description in the default graph, with `name` (import) before theirs.

    input_map        {name of a tensor there: a tensor here that stands in its place}
    return_elements  names of tensors ("x:0") and ops ("x") whose copies are given back
    Maps of gradients that are in force stamp the new ops; their names win over older stamps.
    """
    if not isinstance(graph_def, GraphDef):
        raise TypeError(f"graph_def must be a GraphDef, got {type(graph_def).__name__}")
    graph = get_default_graph()
    given = {str(k).removeprefix("^"): convert_to_tensor(v) for k, v in (input_map or {}).items()}
    given = {k if ":" in k else f"{k}:0": v for k, v in given.items()}
    unused = set(given) - {t.name for op in graph_def._ops for t in op._inputs}
    if unused:
        raise ValueError(
            "Attempted to map inputs that were not found in graph_def: "
            f"[{', '.join(sorted(unused))}]"
        )
    prefix = _prefix(graph, "import" if name is None else name)
    known: dict[Tensor, Tensor] = {}
    made: dict[str, Operation] = {}
    back: dict[Operation, Operation] = {}
    for op in graph_def._ops:
        inputs = tuple([given.get(t.name, known.get(t, t)) for t in op._inputs])
        attrs = {k: known.get(v, v) if isinstance(v, Tensor) else v for k, v in op.attrs.items()}
        with changed(graph, controls=(), prefix=""):
            new = graph._make(
                op.type, inputs, [t.dtype for t in op.outputs], [t.shape for t in op.outputs],
                attrs, prefix + op.name + "/",
            )  # fmt: skip
        new.control_inputs += [back[c] for c in op.control_inputs if c in back]
        new._control_flow_context = op._control_flow_context
        made[op.name], back[op] = new, new
        graph._names.setdefault(new.name.lower(), 1)
        known.update(zip(op.outputs, new.outputs, strict=True))
    if return_elements is None:
        return None
    return [_element(e, made) for e in return_elements]


def _prefix(graph: Graph, name: str) -> str:
    if not name:
        return ""
    if name.endswith("/"):
        return name
    return graph.unique_name(name) + "/"


def _element(element: str, made: dict[str, Operation]) -> Any:
    name, colon, index = element.partition(":")
    if name not in made:
        raise ValueError(f"Requested return_element {element!r} not found in graph_def.")
    return made[name].outputs[int(index)] if colon else made[name]
