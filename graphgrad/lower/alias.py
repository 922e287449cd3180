"""Alias analysis: what nodes do to memory. They write, call, look at what is there, or nothing.

A value has memory of its own, or it is a view of its *root*. A view of memory whose layout is
settled before a run can be made before any run. What cannot be known is not trusted: an op that is
not of this library may keep what it reads, and return it.
"""

from __future__ import annotations

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
from .binding import Binding
from .plan import Kernel


class Effect(Enum):
    """How a node is run."""

    WRITE = "write"  # kernel(*inputs, *outputs)
    CALL = "call"  # outputs = kernel(*inputs), in new memory
    LOOK = "look"  # outputs = kernel(*inputs), which may be views of the first input
    FIXED = "fixed"  # outputs = kernel(input), views of it; the same ones for the same memory


class Action(NamedTuple):
    """A node, how it is run, what is called, and the values that this reads."""

    node: Node
    kind: Effect
    kernel: Kernel
    inputs: tuple[Tensor, ...]


class AliasAnalysis:
    """What each node of a program does.

    actions    in the order of the program; a node that passes values on has none
    same       value -> the value that it is
    root       view -> the value in whose memory it is
    constants  value -> its array
    written    values that a kernel writes where it is told to
    kept       values whose memory somebody may look at after the last node that reads them
    """

    def __init__(self, program: Program, binding: Binding) -> None:
        self.program = program
        self.actions: list[Action] = []
        self.same: dict[Tensor, Tensor] = {}
        self.root: dict[Tensor, Tensor] = {}
        self.constants: dict[Tensor, Array] = {}
        self.written: set[Tensor] = set()
        self.kept: set[Tensor] = set()
        self._binding = binding
        self._given = frozenset(program.inputs)
        self._layouts: dict[Tensor, Array] = {}
        self._canvas = np.empty(0, np.uint8)
        self._strange: dict[Op, bool] = {}
        for node in program.nodes:
            self._visit(node)

    def layout(self, t: Tensor) -> Array | None:
        """An array that lies in memory as t will, where that is settled before a run."""
        layout = self._layouts.get(t)
        if layout is None and t in self.written:
            layout = self._layouts[t] = self._contiguous(t)
        return layout

    def likely(self, t: Tensor) -> Array:
        """An array that lies in memory as t will, where arguments are in row-major order."""
        looks: list[Tensor] = []
        while self.layout(t) is None and t in self.root:
            looks.append(t)
            t = self.same.get(t.node.inputs[0], t.node.inputs[0])
        array = self.layout(t)
        array = self._contiguous(t) if array is None else array
        for view in reversed(looks):
            others = [_shaped(x.type) for x in view.node.inputs[1:]]
            made = self._binding.kernel(view.node)(array, *others)
            array = made if len(view.node.outputs) == 1 else made[view.index]
        return array

    def _visit(self, node: Node) -> None:
        op = node.op
        if type(op) is Constant or type(op) is Full:
            (y,) = node.outputs
            self._layouts[y] = self.constants[y] = self._binding.kernel(node)()
            return
        static, strange = is_static(node), self._strange.get(op)
        if strange is None:
            strange = self._strange[op] = is_strange(op)
        inputs = tuple([self.same.get(t, t) for t in node.inputs]) if self.same else node.inputs
        if op.memory.view and not strange and self._makes_nothing(node, inputs, static):
            return
        writer = self._binding.writer(node) if static else None
        if writer is not None:
            self.written.update(node.outputs)
            self.actions.append(Action(node, Effect.WRITE, writer, inputs))
            return
        if strange:
            self.kept.update([self.root.get(t, t) for t in inputs])
        self.actions.append(Action(node, Effect.CALL, self._binding.kernel(node), inputs))

    def _makes_nothing(self, node: Node, inputs: tuple[Tensor, ...], static: bool) -> bool:
        """Whether the node passes on what it reads, or views of it; then that is noted."""
        if not is_view(node):
            places = _passed_on(node)
            self._note_same(node, [inputs[i] for i in places])
            return bool(places)
        kernel = self._binding.kernel(node)
        if not static:
            self._note_views(node, Effect.LOOK, kernel, inputs)
            return True
        base = inputs[0]
        known = self.layout(base)
        model = self._contiguous(base) if known is None else known
        others = [_shaped(t.type) for t in inputs[1:]]
        made = kernel(model, *others)
        parts = made if len(node.outputs) > 1 else (made,)
        if all(part is model for part in parts):
            self._note_same(node, [base] * len(parts))
            return True
        if known is None:
            self._note_views(node, Effect.LOOK, kernel, inputs)
            return True
        if not all(looks_into(part, known) for part in parts):
            return False  # it has to copy
        pairs = [(t, p) for t, p in zip(node.outputs, parts, strict=True) if t not in self._given]
        self._layouts.update(pairs)
        if base in self.constants:
            self.constants.update(pairs)
        else:
            self._note_views(node, Effect.FIXED, _with_others(kernel, others), (base,))
        return True

    def _contiguous(self, t: Tensor) -> Array:
        """An array of t's type, in memory that nobody reads."""
        size = nbytes(t.type) or 0
        if size > self._canvas.nbytes:
            self._canvas = np.empty(size, np.uint8)
        shape: Any = t.shape
        return np.ndarray(shape, t.dtype, self._canvas)

    def _note_same(self, node: Node, values: list[Tensor]) -> None:
        pairs = zip(node.outputs, values, strict=False)
        self.same.update([(t, v) for t, v in pairs if t not in self._given])

    def _note_views(
        self, node: Node, kind: Effect, kernel: Kernel, inputs: tuple[Tensor, ...]
    ) -> None:
        root = self.root.get(inputs[0], inputs[0])
        self.root.update([(t, root) for t in node.outputs if t not in self._given])
        self.actions.append(Action(node, kind, kernel, inputs))


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
