"""Alias analysis: what nodes do to memory. They write, call, look at what is there, or nothing.

A value has memory of its own, or it is a view of its *root*. A view of memory whose layout is
settled before a run can be made before any run. What cannot be known is not trusted: an op that is
not of this library may keep what it reads, and return it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ..ir.node import Node, Tensor
from ..ir.op import Op, Types
from ..ir.program import Program
from ..ir.types import Array, TensorType, size_of
from ..ops.base import Constant, Full
from ..ops.python_function import PyFunction
from .binding import Binding, Pairs
from .plan import Kernel


class Effect(Enum):
    """How a node is run."""

    WRITE = "write"  # kernel(*inputs, *outputs)
    CALL = "call"  # outputs = kernel(*inputs), in new memory
    LOOK = "look"  # outputs = kernel(*inputs), which may be views of the first input
    FIXED = "fixed"  # outputs = kernel(input), views of it; the same ones for the same memory


class Action(NamedTuple):
    """A node, how it is run, and what is called.

    inputs      the values that this reads
    made        the values that its outputs are, one after the other
    overwrites  (output, input) places that may be one buffer
    """

    node: Node
    kind: Effect
    kernel: Kernel
    inputs: tuple[int, ...]
    made: Sequence[int]
    overwrites: Pairs = ()


Fields = tuple[Node, Effect, Kernel, tuple[int, ...], Sequence[int], Pairs]
"""Those of an action: of the many that are plain, nothing else is made."""


class AliasAnalysis:
    """What each node of a program does. Values are numbers: first the inputs, then what nodes make.

    actions    in the order of the program; a node that passes values on has none
    others     those that may run a program, or take memory beside that of their results, by place
    number     tensor -> its value; of one that is passed on that which it is, and of one that is
               given as well as made that which is given
    types      of the values
    last       place of the last action that reads a value, or -1
    root       view -> the value in whose memory it is
    constants  value -> its array
    kept       values whose memory somebody may look at after the last node that reads them
    """

    def __init__(self, program: Program, binding: Binding) -> None:
        self.program = program
        self.actions: list[Fields] = []
        self.others: dict[int, Action] = {}
        self.number: dict[Tensor, int] = {t: i for i, t in enumerate(program.inputs)}
        self.types: list[TensorType] = [t.type for t in program.inputs]
        self.last: list[int] = [-1] * len(self.types)
        self.root: dict[int, int] = {}
        self.constants: dict[int, Array] = {}
        self.kept: set[int] = set()
        self._binding = binding
        self._anywhere = set(range(len(self.types)))  # values whose layout a run settles
        self._looks: dict[int, tuple[Node, int, int]] = {}
        self._layouts: dict[int, Array] = {}
        self._canvas = np.empty(0, np.uint8)
        self._strange = set(filter(is_strange, program.ops))
        self._walk(all(t.static for t in program.types))

    def layout(self, value: int) -> Array | None:
        """An array that lies in memory as a value will, where that is settled before a run."""
        layout = self._layouts.get(value)
        if layout is None and value not in self._anywhere:
            layout = self._layouts[value] = self._contiguous(value)
        return layout

    def likely(self, value: int) -> Array:
        """An array that lies in memory as a value will, of arguments in row-major order."""
        looks: list[tuple[Node, int]] = []
        while value in self._looks:
            node, base, place = self._looks[value]
            looks.append((node, place))
            value = base
        array = self.layout(value)
        array = self._contiguous(value) if array is None else array
        for view, place in reversed(looks):
            others = [_shaped(x.type) for x in view.inputs[1:]]
            made = self._binding.kernel(view)(array, *others)
            array = made if len(view.outputs) == 1 else made[place]
        return array

    def _walk(self, static: bool) -> None:
        """Note what every node does. static: whether all lengths are known.

        Element-wise ops are most of a large program: they write one output, and that is all.
        """
        ops = self.program.ops
        plain = {op for op in ops if op.elementwise and not op.memory.view} - self._strange
        actions, types, last, number = self.actions, self.types, self.last, self.number
        writer_of, value_of, write = self._binding.writer, number.__getitem__, Effect.WRITE
        for node in self.program.nodes:
            writer = writer_of(node) if static and node.op in plain else None
            if writer is None:
                self._visit(node, static or is_static(node))
                continue
            reads, at, made = node.inputs, len(actions), len(types)
            if len(reads) == 2:  # a map takes longer
                a, b = number[reads[0]], number[reads[1]]
                inputs: tuple[int, ...] = a, b
                last[a] = last[b] = at
            else:
                inputs = tuple(map(value_of, reads))
                for value in inputs:
                    last[value] = at
            (y,) = node.outputs
            number.setdefault(y, made)
            types.append(y.type)
            last.append(-1)
            kernel, overwrites = writer
            actions.append((node, write, kernel, inputs, (made,), overwrites))

    def _visit(self, node: Node, static: bool) -> None:
        op = node.op
        if type(op) is Constant or type(op) is Full:
            (value,) = self._new(node)
            self._layouts[value] = self.constants[value] = self._binding.kernel(node)()
            return
        inputs = tuple([self.number[t] for t in node.inputs])
        strange = op in self._strange
        if op.memory.view and not strange and self._makes_nothing(node, inputs, static):
            return
        writer = self._binding.writer(node) if static else None
        if writer is not None:
            kernel, overwrites = writer
            action = self._act(node, Effect.WRITE, kernel, inputs, overwrites)
        else:
            if strange:
                self.kept.update([self.root.get(value, value) for value in inputs])
            action = self._act(node, Effect.CALL, self._binding.kernel(node), inputs)
            self._anywhere.update(action.made)
        self.others[len(self.actions) - 1] = action

    def _act(
        self,
        node: Node,
        kind: Effect,
        kernel: Kernel,
        inputs: tuple[int, ...],
        overwrites: Pairs = (),
    ) -> Action:
        """Note an action."""
        last, at = self.last, len(self.actions)
        for value in inputs:
            last[value] = at
        action = Action(node, kind, kernel, inputs, self._new(node), overwrites)
        self.actions.append(action)
        return action

    def _new(self, node: Node) -> range:
        """New values for the outputs of a node; what is given stays what it is."""
        made = range(len(self.types), len(self.types) + len(node.outputs))
        for t, value in zip(node.outputs, made, strict=True):
            self.number.setdefault(t, value)
            self.types.append(t.type)
            self.last.append(-1)
        return made

    def _makes_nothing(self, node: Node, inputs: tuple[int, ...], static: bool) -> bool:
        """Whether the node passes on what it reads, or views of it; then that is noted."""
        if not is_view(node):
            places = _passed_on(node)
            self._note_same(node, [inputs[i] for i in places])
            return bool(places)
        kernel = self._binding.kernel(node)
        if not static:
            self._note_looks(node, kernel, inputs)
            return True
        base = inputs[0]
        known = self.layout(base)
        model = self._contiguous(base) if known is None else known
        others = [_shaped(t.type) for t in node.inputs[1:]]
        made = kernel(model, *others)
        parts = made if len(node.outputs) > 1 else (made,)
        if all(part is model for part in parts):
            self._note_same(node, [base] * len(parts))
            return True
        if known is None:
            self._note_looks(node, kernel, inputs)
            return True
        if not all(looks_into(part, known) for part in parts):
            return False  # it has to copy
        if base in self.constants:
            views: Sequence[int] = self._new(node)
            self.constants.update(zip(views, parts, strict=True))
        else:
            views = self._act(node, Effect.FIXED, _with_others(kernel, others), (base,)).made
            self.root.update(dict.fromkeys(views, self.root.get(base, base)))
        self._layouts.update(zip(views, parts, strict=True))
        return True

    def _contiguous(self, value: int) -> Array:
        """An array of a value's type, in memory that nobody reads."""
        type = self.types[value]
        size = nbytes(type) or 0
        if size > self._canvas.nbytes:
            self._canvas = np.empty(size, np.uint8)
        shape: Any = type.shape
        return np.ndarray(shape, type.dtype, self._canvas)

    def _note_same(self, node: Node, values: list[int]) -> None:
        for t, value in zip(node.outputs, values, strict=False):
            self.number.setdefault(t, value)

    def _note_looks(self, node: Node, kernel: Kernel, inputs: tuple[int, ...]) -> None:
        base = inputs[0]
        views = self._act(node, Effect.LOOK, kernel, inputs).made
        self.root.update(dict.fromkeys(views, self.root.get(base, base)))
        self._anywhere.update(views)
        self._looks.update([(view, (node, base, place)) for place, view in enumerate(views)])


@lru_cache(maxsize=4096)
def nbytes(type: TensorType) -> int | None:
    """Bytes of a value, None where a length is unknown."""
    size = size_of(type.shape)
    return None if size is None else size * type.dtype.itemsize


def is_static(node: Node) -> bool:
    """Whether all lengths of what a node reads and makes are known."""
    return all(t.type.static for t in (*node.inputs, *node.outputs))


def is_strange(op: Op) -> bool:
    """Whether an op, one that it runs, or a body of it, is not of this library.

    Such code may keep what it is given.
    """
    pending = [op]
    for each in pending:
        if isinstance(each, PyFunction) or not type(each).__module__.startswith("graphgrad."):
            return True
        pending += each.runs
        pending += [n.op for p in each.bodies for n in p.nodes]
    return False


def looks_into(part: Array, base: Array) -> bool:
    """Whether an array has no memory of its own, only that of another.

    An array without elements has none at all: wherever it lies, it says nothing about its kernel.
    """
    return part.size == 0 or np.may_share_memory(part, base)


def is_view(node: Node) -> bool:
    """Whether the kernel does nothing but look at its first input in another way."""
    return node.op.aliases(_types(node.inputs), _types(node.outputs))


def _types(tensors: tuple[Tensor, ...]) -> Types:
    return tuple([t.type for t in tensors])


def _shaped(type: TensorType) -> Array:
    """An array of a type that takes no memory, for kernels that look at the shape alone."""
    shape: Any = type.shape
    return np.broadcast_to(np.empty((), type.dtype), shape)


def _with_others(kernel: Kernel, others: list[Array]) -> Kernel:
    """kernel of its first input, when the others are settled."""
    return (lambda x: kernel(x, *others)) if others else kernel


def _passed_on(node: Node) -> list[int]:
    """Places of the inputs that the kernel returns as they are; none where it does more."""
    args = [object() for _ in node.inputs]
    try:
        made = node.op.kernel(np, *args)
    except Exception:  # whatever a kernel does with a thing that is no array
        return []
    parts = made if len(node.outputs) > 1 else (made,)
    places = [i for part in parts for i, arg in enumerate(args) if part is arg]
    return places if len(places) == len(node.outputs) else []
