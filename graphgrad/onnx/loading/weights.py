"""Which initializers of a model are its weights: by the inputs of operators that read them.

A file does not say what was learned. Statistics, bounds, divisors, masks and literals are
initializers like weights; what tells them apart is what reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.kinds import is_inexact
from ...ir.types import Array
from .attributes import subgraphs_of
from .survey import functions_of, key_of

__all__ = ["weights_of"]

SLOTS: Mapping[str, Sequence[int]] = {
    "Conv": (1, 2),
    "ConvTranspose": (1, 2),
    "DeformConv": (1, 3),
    "MatMul": (0, 1),
    "Gemm": (0, 1, 2),
    "Einsum": range(8),
    "LSTM": (1, 2, 3, 7),
    "GRU": (1, 2, 3),
    "RNN": (1, 2, 3),
    "BatchNormalization": (1, 2),
    "InstanceNormalization": (1, 2),
    "GroupNormalization": (1, 2),
    "LayerNormalization": (1, 2),
    "RMSNormalization": (1,),
    "SimplifiedLayerNormalization": (1,),
    "FusedConv": (1, 2),
    "FusedMatMul": (0, 1),
    "FusedGemm": (0, 1, 2),
    "BiasGelu": (1,),
    "FastGelu": (1,),
    "Attention": (1, 2),
    "MultiHeadAttention": (3,),
    "EmbedLayerNormalization": (2, 3, 4, 5, 6),
    "SkipLayerNormalization": (2, 3, 4),
    "SkipSimplifiedLayerNormalization": (2, 3),
    "Gather": (0,),
    "PRelu": (1,),
}
"""{operator: its inputs that are weights}: filters, matrices, tables, slopes, biases, scales."""

FACTORS = {"Mul": "scale", "Add": "bias"}
PRODUCTS = (
    *("MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum"),
    *("FusedMatMul", "FusedGemm", "FusedConv"),
)
DATA = {"Div": 1, "Gather": 1, "Slice": 1, "Reshape": 1, "Expand": 1, "Unsqueeze": 1, "Squeeze": 1}
DATA |= {"Pow": 1, "Cast": 1, "Transpose": 1, "Identity": 1, "Split": 1, "Tile": 1, "Pad": 1}
"""How many first inputs of an operator hold the numbers of a weight; not named: all of them."""
SPREADS = ("Sqrt", "Reciprocal")
STATISTICS = {"BatchNormalization": (3, 4)}
"""{operator: its inputs that are none}: what is read there too stays a constant."""

MASKED = -1e4
"""Added numbers as small as this are those of a mask."""


class _Read(NamedTuple):
    """A node, with names that are unique in the file."""

    type: str
    inputs: list[str]
    outputs: list[str]


def weights_of(model: Any, arrays: Mapping[str, Array]) -> dict[str, str]:
    """{name of an initializer that is a weight: what reads it, as "Conv input 1"}.

    These are the floating initializers that the inputs in SLOTS read, as they are or by way of what
    is computed from initializers alone; and behind such an operator a vector that is added or
    multiplied, an array that is added (positions), and rows put beside (a token). No literal of
    rank 0 is one.
    """
    return _Roles(arrays).of(_flat(model.graph.node, {}, functions_of(model), ""))


class _Roles:
    """One look for weights."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        self.arrays = arrays
        self.makers: dict[str, _Read] = {}
        self.fixed = set(arrays)
        self.learned: dict[str, str] = {}
        self.found: dict[str, str] = {}
        self.statistics: set[str] = set()

    def of(self, nodes: Iterable[_Read]) -> dict[str, str]:
        """The weights among the initializers."""
        for node in nodes:
            self._read(node)
            data = node.inputs if node.type == "Gather" else node.inputs[: DATA.get(node.type)]
            moving = any(name and name not in self.fixed for name in data)
            for name in node.outputs:
                self.makers[name] = node
                if not moving:
                    self.fixed.add(name)
        return {n: role for n, role in self.found.items() if n not in self.statistics}

    def _read(self, node: _Read) -> None:
        """Note the weights that a node reads, and whether it is behind any."""
        fixed = [name in self.fixed for name in node.inputs]
        if all(fixed):
            return
        before = [self.learned.get(name, "") for name in node.inputs]
        slots = [i for i in SLOTS.get(node.type, ()) if i < len(fixed) and fixed[i]]
        for i in slots:
            self._take(node.inputs[i], f"{node.type} input {i}")
        for i in STATISTICS.get(node.type, ()):
            if i < len(fixed) and fixed[i]:
                self.statistics.update(self._sources(node.inputs[i]))
        if node.type in FACTORS and any(before) and any(fixed):
            i = fixed.index(True)
            self._take_factor(node, node.inputs[i], before[1 - i])
        if node.type == "Concat" and any(before):
            for name in node.inputs:
                if name in self.fixed:
                    self._take(name, "Concat, a row")
        if slots or any(before):
            kind = node.type if slots else "moved" if any(before) else ""
            self.learned.update(dict.fromkeys(node.outputs, kind))

    def _take_factor(self, node: _Read, name: str, before: str) -> None:
        """A bias or scale behind a layer, with the shape of one, which is none of a mask."""
        for array in self._sources(name).values():
            long = [n for n in array.shape if n != 1]
            vector = len(long) == 1 or (not long and array.ndim and before in PRODUCTS)
            added = node.type == "Add" and long and float(np.min(array)) > MASKED
            if array.size and np.isfinite(array).all() and (vector or added):
                self._take(name, f"{node.type}, a {FACTORS[node.type]}")

    def _take(self, name: str, role: str) -> None:
        for source in self._sources(name):
            self.found.setdefault(source, role)

    def _sources(self, name: str) -> dict[str, Array]:
        """The floating initializers that hold the numbers of a value, literals apart."""
        sources, pending, seen = {}, [name], set()
        while pending:
            at = pending.pop()
            if at in seen:
                continue
            seen.add(at)
            array, maker = self.arrays.get(at), self.makers.get(at)
            if array is not None and array.ndim and is_inexact(array.dtype):
                sources[at] = array
            if maker is not None and maker.type not in SPREADS:
                pending += maker.inputs[: DATA.get(maker.type)]
        return sources


def _flat(
    nodes: Any, names: dict[str, str], functions: Mapping[Any, Any], path: str
) -> Iterator[_Read]:
    """The nodes of a graph, of the functions that it calls and of the graphs inside of nodes."""
    for i, node in enumerate(nodes):
        inputs = [names.get(name, name) for name in node.input]
        outputs = [f"{path}{name}" for name in node.output if name]
        names.update((name, f"{path}{name}") for name in node.output if name)
        within = f"{path}{i}/"
        function = functions.get(key_of(node))
        if function is not None:
            inner = dict(zip(function.input, inputs, strict=False))
            yield from _flat(function.node, inner, functions, within)
            ends = zip(function.output, node.output, strict=False)
            for end, name in ends:
                if name:
                    yield _Read("Identity", [inner.get(end, end)], [f"{path}{name}"])
            continue
        for body in subgraphs_of(node):
            inner = {**names, **{t.name: f"{within}{t.name}" for t in body.input}}
            yield from _flat(body.node, inner, functions, within)
        yield _Read(node.op_type, inputs, outputs)
