"""What `gg.onnx.load` returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...base.errors import GraphError, did_you_mean
from ...base.words import shortened, visible
from ...files.entries import EntryPoint
from ...ir.graph import Graph
from ...ir.node import Tensor
from ...ir.properties import ModelProperties

__all__ = ["OnnxModel"]


class OnnxModel:
    """What gg.onnx.load returns: a graph, and what its tensors are called in the file.

    graph      the graph; the weights are in graph.variables if they were loaded as such
    inputs     {name: placeholder}, in the order of the file
    outputs    {name: tensor}, likewise
    tensors    {name: tensor} of all values of the file's main graph
    operators  {name: how often it is in the file}, functions opened
    properties what the file says of its model: a ModelProperties, which graph.properties is too
    opset      {domain: version}, "" for ONNX's own operators
    producer   what wrote the file, with its version
    metadata   {key: text}, as it stands in the file
    trainable  {name of a weight that is a variable: what reads it, as "Conv input 1"}

    Pictures take the model itself: gg.write_html(path, model). Printed, it is a table. A call runs
    it on arrays, or builds it in the current graph for tensors of it: all outputs in a tuple, or
    the only one.

    >>> import os, tempfile, onnx
    >>> node = onnx.helper.make_node("Relu", ["x"], ["y"])
    >>> x, y = (onnx.helper.make_tensor_value_info(n, 1, [2]) for n in "xy")
    >>> graph = onnx.helper.make_graph([node], "g", [x], [y])
    >>> model = gg.onnx.load(onnx.helper.make_model(graph))
    >>> model([-1.0, 2.0])
    array([0., 2.], dtype=float32)
    """

    def __init__(
        self,
        graph: Graph,
        inputs: dict[str, Tensor],
        outputs: dict[str, Tensor],
        tensors: dict[str, Tensor],
        operators: dict[str, int],
        properties: ModelProperties,
        trainable: dict[str, str],
    ) -> None:
        self.graph = graph
        self.inputs = inputs
        self.outputs = outputs
        self.tensors = tensors
        self.operators = operators
        self.properties = properties
        self.opset = dict(properties.opset)
        self.producer = properties.made_by
        self.metadata = dict(properties.metadata)
        self.trainable = trainable
        self._again: Callable[[], OnnxModel] | None = None
        only = len(outputs) == 1
        leaves = tuple(outputs.values())
        self.entry = EntryPoint(tuple(inputs.values()), leaves[0] if only else leaves)

    @property
    def _shown(self) -> list[Tensor]:
        """What pictures show of it."""
        return list(self.outputs.values())

    def compile(self, **options: Any) -> Any:
        """The compiled function of its inputs.

        Parameters: **options: those of gg.compile: backend=, state=, ...

        Returns: a CompiledFunction.

        Raises: the errors of gg.compile.
        """
        return self.entry.compile(**options)

    def unrolled(self) -> OnnxModel:
        """The model with its loops and recurrent layers step by step, where the file says as much.

        Returns: what gg.onnx.load(path, unroll=True) does; the model itself where it has no loop,
        was not loaded from a path, or has marks or weights that are variables.

        Raises: the errors of gg.onnx.load.

        >>> import onnx
        >>> node = onnx.helper.make_node("Relu", ["x"], ["y"])
        >>> x, y = (onnx.helper.make_tensor_value_info(n, 1, [2]) for n in "xy")
        >>> graph = onnx.helper.make_graph([node], "g", [x], [y])
        >>> model = gg.onnx.load(onnx.helper.make_model(graph))
        >>> model.unrolled() is model
        True
        """
        nodes = self.graph.nodes
        own = any(n.stamp is not None or n.region is not None for n in nodes) or self.trainable
        if self._again is None or own or not any(n.op.bodies for n in nodes):
            return self
        return self._again()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arrays, or build in the current graph for tensors of it, as an EntryPoint does."""
        return self.entry(*args, **kwargs)

    def __getitem__(self, name: str) -> Tensor:
        """The tensor that the file calls so."""
        try:
            return self.tensors[name]
        except KeyError:
            near = did_you_mean(name, self.tensors)
            raise GraphError(f"the file has no tensor {name!r}. {near}".rstrip()) from None

    def __str__(self) -> str:
        rows = [("name", self.graph.name), *self.properties.rows()]
        rows += [(f"input {name}", repr(t.type)) for name, t in self.inputs.items()]
        rows += [(f"output {name}", repr(t.type)) for name, t in self.outputs.items()]
        found = sorted(self.operators.items(), key=lambda row: (-row[1], row[0]))
        rows += [("operators", ", ".join(f"{count} {name}" for name, count in found))]
        rows += [(f"metadata {key}", text) for key, text in self.metadata.items()]
        shown = [(shortened(visible(a), 40), shortened(visible(b), 200)) for a, b in rows]
        width = max(len(name) for name, _ in shown)
        return "\n".join(f"{name:<{width}}  {text}" for name, text in shown)

    def __repr__(self) -> str:
        takes = ", ".join(f"{name}: {t.type!r}" for name, t in self.inputs.items())
        gives = ", ".join(f"{name}: {t.type!r}" for name, t in self.outputs.items())
        return f"<ONNX model of {len(self.graph)} nodes: ({takes}) -> {gives}>"
