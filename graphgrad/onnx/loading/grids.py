"""QuantizeLinear and DequantizeLinear as the regions of grids that they were written from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import FileError, did_you_mean
from ...ir.build import build
from ...ir.node import Tensor
from ...ir.types import Array, DType
from ...ops.base import as_tensor
from ...ops.sources import Variable
from ...rules.quantisation import fake_quantise, lsq, lsq_plus
from .attributes import subgraphs_of, values_of
from .call import OperatorCall, Value
from .forms.table import Form
from .names import clean, rename
from .narrow import narrow_of_dtype, widened

__all__ = ["KEY", "StoredGrids", "learned_names", "rule_of_grids"]

KEY = "QuantizeLinear"
"""What the rule of grids is called among regions, which are named by local functions else."""

RULES = {rule.__name__: rule for rule in (fake_quantise, lsq, lsq_plus)}
QUANTIZE, DEQUANTIZE = KEY, "DequantizeLinear"
SCALE, ZERO_POINT = "DequantizeLinear input 1", "DequantizeLinear input 2"
MOST = 1 << 16
"""Integers beyond it are those of a bias, which has no region."""


def rule_of_grids(rule: Any) -> str:
    """The name of a rule of grids, of itself or of its name; FileError for another."""
    name = rule if isinstance(rule, str) else getattr(rule, "__name__", repr(rule))
    if name not in RULES or not (isinstance(rule, str) or rule is RULES[name]):
        near = did_you_mean(name, RULES, f"They are {', '.join(RULES)}.")
        raise FileError(f"regions: {name:.80} is not a rule of grids. {near}")
    return str(name)


class OnGrid:
    """What QuantizeLinear made: a tensor that DequantizeLinear is to put on a grid."""

    def __init__(self, x: Tensor) -> None:
        self.x = x


class StoredGrids:
    """The grids of one file.

    rule     the name of what builds them
    learned  whether the initializer of this name becomes a variable
    found    {name of a variable: what reads it}
    names    of what is read of grids
    """

    def __init__(self, graph: Any, rule: str, learned: Callable[[str], bool]) -> None:
        self.rule = rule
        self.learned = learned
        self.found: dict[str, str] = {}
        of_grids = (n for n in graph.node if n.op_type in (QUANTIZE, DEQUANTIZE))
        self.names = {name for node in of_grids for name in node.input}
        self._pairs = _pairs(graph)
        self._variables: dict[str, Tensor] = {}

    def form(self, node: Any, values: list[Value]) -> Form | None:
        """How a node is read that is of a grid; None where it is of none."""
        if node.op_type == "Shape" and isinstance(values[0], OnGrid):
            values[0] = values[0].x
        if node.op_type == QUANTIZE and node.output[0] in self._pairs and _fixed(values):
            return Form(lambda call: OnGrid(call.tensor(0)), folded=False)
        stored = values[:1] and isinstance(values[0], np.ndarray)
        if node.op_type == DEQUANTIZE and (stored or isinstance(values[0], OnGrid)):
            return Form(self._grid, folded=False) if _fixed(values) else None
        return None

    def _grid(self, call: OperatorCall) -> Tensor | Array:
        """What DequantizeLinear makes: of weights, or of what is on a grid."""
        axis, block = call.attribute("axis", 1), call.attribute("block_size", 0)
        call.unread.clear()  # the rest says the dtype, which scale and zero do too
        numbers, scale, zero = [*call.values, None][:3]
        if zero is None:
            zero = np.zeros(scale.shape, getattr(numbers, "dtype", "uint8"))
        low, high = _ends(zero.dtype)
        stored = _Stored([*call.node.input, ""][1:3], scale, widened(zero).astype("int64"))
        stored = stored._replace(low=low, high=high, axis=axis, block=block)
        if isinstance(numbers, OnGrid):
            return self._region(numbers.x, stored)
        name = call.node.input[0].removesuffix("_quantized")
        x = self._value(name, stored.values(widened(numbers)), "DequantizeLinear input 0")
        return x if high > MOST else self._region(as_tensor(x), stored)

    def _region(self, x: Tensor, stored: _Stored) -> Tensor:
        scale, zero, low, high = stored.scale, stored.zero, stored.low, stored.high
        step, offset = stored.names
        bits, rank = (high - low).bit_length(), x.ndim
        if self.rule == "lsq_plus":
            moved: Any = 0.0
            if zero.any():
                moved = self._value(offset, stored.own(zero.astype(scale.dtype)), ZERO_POINT)
            first = self._value(step, stored.own(scale), SCALE)
            return lsq_plus(x, first, moved, bits=bits, signed=low < 0, **stored.sharing)
        if stored.block:
            raise FileError(f"regions: {self.rule} has no groups of neighbours: lsq_plus has")
        scale, zero = stored.spread(scale, rank), stored.spread(zero, rank)
        if self.rule == "fake_quantise":
            base = step.removesuffix("_scale")
            first, last = (
                self._value(f"{base}_{said}", (scale * (end - zero)).astype(scale.dtype), SCALE)
                for end, said in ((low, "low"), (high, "high"))
            )
            return fake_quantise(x, first, last, bits=bits)
        signed = bool((zero - low == 1 << (bits - 1)).all())
        if not signed and not (zero == low).all():
            raise FileError("regions: lsq has no zero but 0, which this grid has: lsq_plus has")
        return lsq(x, self._value(step, scale, SCALE), bits=bits, signed=signed)

    def _value(self, name: str, array: Array, role: str) -> Any:
        """What an initializer says as a variable, one for all that read it, or as an array."""
        if not name or not self.learned(name):
            return array
        if name not in self._variables:
            frozen = np.array(array)
            frozen.flags.writeable = False
            t = build(Variable(frozen, True, False), ()).outputs[0]
            rename(t, clean(name) or "grid")
            self._variables[name] = t
            self.found[name] = role
        return self._variables[name]


class _Stored(NamedTuple):
    """A grid of a file.

    names      of scale and zero
    low, high  the ends of its integers
    axis       along which there are several scales, if there are
    block      how many neighbours share one; 0: each place along the axis has its own
    """

    names: Sequence[str]
    scale: Array
    zero: Array
    low: int = 0
    high: int = 0
    axis: int = 1
    block: int = 0

    @property
    def sharing(self) -> dict[str, int]:
        """That, as lsq_plus takes it."""
        if self.block:
            return {"axis": self.axis, "group": self.block}
        return {} if self.scale.size == 1 else {"axis": self.axis}

    def own(self, a: Array) -> Array:
        """Scales or zeros as lsq_plus takes them."""
        return a if self.sharing else a.reshape(())

    def spread(self, a: Array, rank: int) -> Array:
        """Scales or zeros that broadcast with what they are of."""
        if not self.sharing:
            return a.reshape(())
        return a.reshape([-1 if i == self.axis % rank else 1 for i in range(rank)])

    def values(self, numbers: Array) -> Array:
        """What integers stand for."""
        rank = numbers.ndim
        if self.block:
            axis = self.axis % rank
            rows = [np.repeat(a, self.block, axis) for a in (self.scale, self.zero)]
        else:
            rows = [self.spread(a, rank) for a in (self.scale, self.zero)]
        values: Array = (numbers - rows[1]).astype(self.scale.dtype) * rows[0]
        return values


def _ends(dtype: DType) -> tuple[int, int]:
    """The least and the greatest integer of a grid; FileError for floats."""
    narrow = narrow_of_dtype(dtype)
    if narrow is None:
        return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    if narrow.wide == "float32":
        raise FileError("regions: a grid of floats of eight bits has no rule that learns it")
    return int(narrow.low), int(narrow.high)


def _fixed(values: Sequence[Value]) -> bool:
    """Whether scale and zero are known."""
    return all(v is None or isinstance(v, np.ndarray) for v in values[1:])


def _pairs(graph: Any) -> set[str]:
    """What QuantizeLinear makes that only DequantizeLinear of the same grid reads, and Shape."""
    readers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
    ends = {value.name for value in graph.output}
    ends.update(_read_inside(graph.node))
    found = set()
    for node in graph.node:
        if node.op_type != QUANTIZE or node.output[0] in ends:
            continue
        reading = [n for n in readers.get(node.output[0], []) if n.op_type != "Shape"]
        if reading and all(_of_one_grid(node, each) for each in reading):
            found.add(node.output[0])
    return found


def _read_inside(nodes: Any) -> Iterator[str]:
    """The names that graphs inside of nodes read."""
    for body in (body for node in nodes for body in subgraphs_of(node)):
        yield from (value.name for value in body.output)
        yield from (name for node in body.node for name in node.input)
        yield from _read_inside(body.node)


def _of_one_grid(quantize: Any, other: Any) -> bool:
    keys = ("axis", "block_size")
    first, second = (values_of(n.attribute, {}, None) for n in (quantize, other))
    return (
        other.op_type == DEQUANTIZE
        and list(quantize.input[1:]) == list(other.input[1:])
        and [first.get(k) for k in keys] == [second.get(k) for k in keys]
    )


def learned_names(trainable: Any) -> Callable[[str], bool]:
    """Whether an initializer becomes a variable, by what was said to be trainable."""
    if isinstance(trainable, bool):
        return lambda name: trainable
    patterns = tuple(trainable)
    return lambda name: any(fnmatchcase(name, pattern) for pattern in patterns)
