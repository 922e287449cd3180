"""The question: which score of a model, for which inputs; and its graph, a copy of the model's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base.errors import GradientError, GraphError, ShapeError, did_you_mean
from ..base.kinds import is_floating
from ..base.tree import flatten
from ..compiled import compile
from ..ir.graph import Graph
from ..ir.node import Tensor
from ..ir.types import Array
from ..ops.base import constant
from ..ops.reduce import reductions
from ..ops.shape.indexing import getitem

__all__ = ["Explained"]


class Explained:
    """A score of a model for arrays, in a graph of its own.

    graph     a copy of the model's, in which methods build what they need
    xs        {name: Tensor}: the floating inputs, which are what the score is attributed to
    arrays    {name: Array}: what they are
    fed       {Tensor: Array}: all inputs
    y         the output in question, called `output`; note: that others were not asked about
    target    which of its numbers, for each example
    score     (N,): that number, or the sum of those
    """

    def __init__(self, model: Any, inputs: Any, output: Any, target: Any) -> None:
        home, named, outputs = _parts(model)
        self.output, self.note = _output(outputs, output)
        chosen = outputs[self.output]
        given = _given(named, inputs)
        self.graph: Graph = home.copy()
        self.fed = {self.here(t): np.asarray(given[name]) for name, t in named.items()}
        self.xs = {name: self.here(t) for name, t in named.items() if is_floating(t.dtype)}
        self.arrays = {n: self.fed[t].astype(t.dtype) for n, t in self.xs.items()}
        if not self.xs:
            raise GradientError(
                f"no input of the model is floating: {list(named)}. Attribute to a floating "
                "tensor that is computed from them, such as an embedding, and pass its values: "
                "gg.attribute(gg.compile(embedding, output), values, ...)"
            )
        self.y = self.here(chosen)
        self.target = self._target(target)
        with self.graph:
            self.score = self.scored(self.y)

    def here(self, t: Tensor) -> Tensor:
        """A tensor of the model, in this graph."""
        return self.graph.nodes[t.node.index].outputs[t.index]

    def scored(self, y: Tensor) -> Tensor:
        """(N,): the score of each example, where y is the output."""
        if y.ndim == 0:
            return y
        if self.target is None:
            return y if y.ndim == 1 else reductions.sum(y, tuple(range(1, y.ndim)))
        rows = constant(np.arange(len(self.target)), "int64")
        places = [constant(column, "int64") for column in self.target.T]
        picked = getitem(y, (rows, *places))
        return picked if picked.ndim == 1 else reductions.sum(picked, tuple(range(1, picked.ndim)))

    def run(self, tensors: Any, **changed: Array) -> Any:
        """Values of tensors, where some inputs have other arrays."""
        f = self.compiled(tensors)
        return f(**changed)

    def compiled(self, tensors: Any) -> Any:
        """A function of arrays by the name of an input, those of the question unless given."""
        f = compile(list(self.fed), tensors)
        names = {t: name for name, t in self.xs.items()}

        def run(**changed: Array) -> Any:
            arrays = [changed.get(names.get(t, ""), a) for t, a in self.fed.items()]
            return f(*arrays)

        return run

    def _target(self, target: Any) -> Array | None:
        """(N, K): a place of the axes behind the first, for each example; None: there is one score.

        Without a target it is the largest number of an example; an int, one class for all; a tuple,
        one place; a list or array, one for each example.
        """
        y = compile(list(self.fed), self.y)(*self.fed.values())
        if y.ndim == 0 or (y.ndim == 1 and target is None):
            return None
        if y.ndim == 1:
            raise ShapeError(
                f"the output is {self.y.type!r}, one number per example, so it takes no target"
            )
        count = len(y)
        if target is None:
            flat = y.reshape(count, -1).argmax(1)
            return np.stack(np.unravel_index(flat, y.shape[1:]), 1)
        if isinstance(target, tuple | int | np.integer):
            rows = np.tile(np.atleast_1d(target), (count, 1))
        else:
            rows = np.asarray(target).reshape(count, -1)
        lengths = np.array(y.shape[1 : 1 + rows.shape[1]])
        fits = rows.shape[1] < y.ndim and rows.dtype.kind in "iu"
        if not fits or (rows < -lengths).any() or (rows >= lengths).any():
            raise ShapeError(f"target {target!r:.80} is not an index of an output {list(y.shape)}")
        return rows


def _parts(model: Any) -> tuple[Graph, dict[str, Tensor], dict[str, Tensor]]:
    """The graph, inputs and outputs of a model, by name."""
    inputs, outputs = getattr(model, "inputs", None), getattr(model, "outputs", None)
    if inputs is None or outputs is None:
        raise GradientError(
            "attribute() takes a model with inputs and outputs: the result of gg.onnx.load or "
            f"gg.compile, or an EntryPoint; got {model!r:.120}"
        )
    named = inputs if isinstance(inputs, Mapping) else {t.node.name: t for t in inputs}
    leaves = [t for t in flatten(outputs) if t is not None]
    given = outputs if isinstance(outputs, Mapping) else {t.node.name: t for t in leaves}
    tensors = [*named.values(), *given.values()]
    graphs = {t.graph for t in tensors if isinstance(t, Tensor)}
    if len(graphs) != 1 or None in graphs:
        raise GraphError(f"{model!r:.120} does not have all its inputs and outputs in one graph")
    (graph,) = graphs
    assert graph is not None
    return graph, dict(named), dict(given)


def _output(outputs: dict[str, Tensor], name: Any) -> tuple[str, str]:
    """The output in question, the first floating one unless it is named, and a note on others."""
    floating = {n: t for n, t in outputs.items() if is_floating(t.dtype)}
    if name is None and floating:
        first, *others = floating
        listed = ", ".join(map(repr, others))
        return first, f"of output {first!r}; output= names another: {listed}" if others else ""
    if name not in floating:
        near = did_you_mean(str(name), floating, f"It has {', '.join(floating) or 'none'}.")
        raise GradientError(f"output= names a floating output of the model, got {name!r}. {near}")
    return name, ""


def _given(named: dict[str, Tensor], inputs: Any) -> dict[str, Any]:
    """{name: array} of all inputs."""
    if isinstance(inputs, Mapping):
        given = dict(inputs)
    elif isinstance(inputs, tuple | list) and len(named) > 1:
        given = dict(zip(named, inputs, strict=False))
    else:
        given = dict(zip(named, [inputs], strict=False))
    if given.keys() != named.keys():
        raise GradientError(f"the model takes {list(named)}, got {list(given)}")
    return given
