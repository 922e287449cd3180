"""What flows in a file of ONNX while it is written: values with names, calls of operators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...ir.types import Array, DType, Shape

__all__ = ["FreshNames", "OnnxBlock", "OnnxCall", "OnnxValue"]


class OnnxValue:
    """A name with what is known of the array behind it.

    shape  None: not even the rank is known, of what a form makes on its way
    """

    __slots__ = ("dtype", "name", "shape")

    def __init__(self, name: str, dtype: DType, shape: Shape | None = None) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        assert self.shape is not None, f"{self.name} has no known rank"
        return len(self.shape)

    @property
    def static(self) -> bool:
        """Whether every length is known."""
        return self.shape is not None and all(isinstance(d, int) for d in self.shape)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.dtype}{'' if self.shape is None else list(self.shape)}>"


class FreshNames:
    """Names that no two values of one graph share, subgraphs included."""

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self._numbers = dict.fromkeys(taken, 1)

    def fresh(self, base: str) -> str:
        """The name, with a number where it is taken."""
        name = base
        while name in self._numbers:
            self._numbers[base] += 1
            name = f"{base}_{self._numbers[base]}"
        self._numbers[name] = 1
        return name


@dataclass(frozen=True)
class OnnxCall:
    """One node of ONNX: an operator, or a local function, of values by name.

    version  of its domain, where that is not ONNX's own
    """

    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    domain: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    version: int = 1


class OnnxBlock:
    """Calls in their order: a graph, a subgraph, or the body of a local function.

    root     the block around all, which has the constants
    given    the inputs
    results  the outputs
    doubles  on the root: the operators that are given float64
    typed    values whose types a graph says
    metadata of a function
    lengths  open lengths that were computed in it
    """

    def __init__(self, outer: OnnxBlock | None = None) -> None:
        self.names: FreshNames = FreshNames() if outer is None else outer.names
        self.root: OnnxBlock = self if outer is None else outer.root
        self.calls: list[OnnxCall] = []
        self.given: list[OnnxValue] = []
        self.results: list[OnnxValue] = []
        self.doubles: set[str] = set()
        self.typed: list[OnnxValue] = []
        self.metadata: dict[str, str] = {}
        self.lengths: dict[Any, OnnxValue] = {}
        self._constants: dict[Any, OnnxValue] = {}
        self.constants: dict[str, Array] = {}

    def give(self, name: str, dtype: DType, shape: Shape | None) -> OnnxValue:
        """A new input."""
        value = OnnxValue(self.names.fresh(name), dtype, shape)
        self.given.append(value)
        return value

    def constant(self, array: Any, hint: str = "constant") -> OnnxValue:
        """The value of an array, the same for equal ones."""
        array = np.asarray(array)
        root = self.root
        key = (array.dtype, array.shape, array.tobytes())
        cached = root._constants.get(key)
        if cached is None:
            name = root.names.fresh(hint)
            cached = root._constants[key] = OnnxValue(name, array.dtype, array.shape)
            root.constants[name] = array
        return cached

    def own_constant(self, array: Array, name: str) -> OnnxValue:
        """The value of an array that is named, whatever others equal it."""
        value = OnnxValue(self.root.names.fresh(name), array.dtype, array.shape)
        self.root.constants[value.name] = array
        return value

    def known(self, value: OnnxValue) -> Array | None:
        """The array of a value that is a constant."""
        return self.root.constants.get(value.name)
