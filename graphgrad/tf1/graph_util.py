"""Parts of graphs, and graphs whose variables are constants: `tf.graph_util`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Graph, Operation, Tensor
from .graph_def import GraphDef
from .refused import refuses
from .schedule import needed_ops

__all__ = ["convert_variables_to_constants", "extract_sub_graph", "remove_training_nodes"]


def extract_sub_graph(graph_def: GraphDef, dest_nodes: Any) -> GraphDef:
    """The ops that some need, by name."""
    byname = {op.name: op for op in graph_def._ops}
    needed = set(needed_ops([], [byname[n] for n in dest_nodes], []))
    return GraphDef([op for op in graph_def._ops if op in needed])


def remove_training_nodes(input_graph: GraphDef, protected_nodes: Any = None) -> GraphDef:
    """The same: nothing has to be removed here."""
    return input_graph


@refuses("variable_names_whitelist", "variable_names_blacklist")
def convert_variables_to_constants(
    sess: Any,
    input_graph_def: GraphDef,
    output_node_names: Any,
    variable_names_whitelist: Any = None,
    variable_names_blacklist: Any = None,
) -> GraphDef:
    """The ops that some need, in a graph where variables are constants with their values."""
    part = extract_sub_graph(input_graph_def, output_node_names)
    graph = Graph()
    known: dict[Tensor, Tensor] = {}
    for op in part._ops:
        new = _copy(graph, op, known, sess)
        known.update(zip(op.outputs, new.outputs, strict=True))
    return GraphDef(graph.get_operations())


def _copy(graph: Graph, op: Operation, known: dict[Tensor, Tensor], sess: Any) -> Operation:
    inputs = tuple([known[t] for t in op._inputs])
    type, attrs = op.type, dict(op.attrs)
    if type == "VariableV2":
        value = np.asarray(sess.run(op.outputs[0]))
        value.flags.writeable = False
        type, attrs = "Const", {"value": value, "dtype": op.outputs[0].dtype.base_dtype}
    kinds = [t.dtype.base_dtype for t in op.outputs]
    return graph._make(type, inputs, kinds, [t.shape for t in op.outputs], attrs, op.name + "/")
