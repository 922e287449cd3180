"""A group as calls of ufuncs and reductions over the axes of one loop.

Every axis of every value starts out on its own; what is computed element by element makes axes one.
What remains are the axes of the loop. So lengths of 1, and where they are put, do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.kinds import is_floating
from ..ir.op import Op
from ..ir.strided import Strided, contiguous
from ..ir.types import DType, TensorType, broadcast, lengths
from ..ops.reduce.sorting import GatherElements
from ..ops.special.error import Erf, Erfc
from .calls import Call, calls_of
from .gathers import GATHERS, Range, first_index, gathering
from .loop_ir import LoopGroup, Member, Number, axes_through, viewed

REDUCTIONS = frozenset({"sum", "prod", "max", "min", "any", "all"})
_WHOLE: dict[type[Op], str] = {Erf: "erf", Erfc: "erfc"}
"""Ops that are one function here, whatever their kernels call."""

_INT64: DType = np.dtype("int64")
_BOOL: DType = np.dtype(bool)

Dims = tuple[int | None, ...]
"""Along each axis of a value: the axis of the loop, or None where it stays the same."""


class Item(NamedTuple):
    """A value.

    name  of a ufunc, "choose" or "cast"; one of REDUCTIONS; "load", "gather" or "number"
    args  items by number; of a gather, indices as int64
    data  load: (place, ((axis, stride), ...), offset); number: the number; reductions: the axes;
          gather: as load, and of each index (stride, length)
    left  reductions: the axes of what they make, in order
    """

    name: str
    args: tuple[int, ...]
    dtype: DType
    data: Any = None
    left: tuple[int, ...] = ()

    @property
    def reduces(self) -> bool:
        """Whether it is a reduction."""
        return self.name in REDUCTIONS


class Output(NamedTuple):
    """What an output holds: an item; axes: those of the loop that it has, in order."""

    item: int
    axes: tuple[int, ...]


class Lowered(NamedTuple):
    """items come after what they read. lengths: of the loop's axes, from the outermost on.

    ranges: the indices that have to be in range before anything is computed.
    """

    lengths: tuple[int, ...]
    items: tuple[Item, ...]
    outputs: tuple[Output, ...]
    ranges: tuple[Range, ...]


class Ref(NamedTuple):
    """An item with axes put in, taken out or repeated."""

    item: int
    dims: Dims


def calls(op: Op, inputs: tuple[DType, ...], made: DType) -> Sequence[Call] | None:
    """The calls that an element-wise op makes; the last one makes its result. None: not known."""
    name = _WHOLE.get(type(op))
    if name is not None:
        return [Call(name, (0,), made)]
    traced = calls_of(op, inputs, made)
    if traced is None:
        return None
    steps = traced.steps
    if traced.result == len(inputs) + len(steps) - 1:
        return steps
    return [*steps, Call("cast", (traced.result,), made)]


def name_of(call: Call) -> str:
    """What a call is called here."""
    return call.fn if isinstance(call.fn, str) else call.fn.__name__


def lower(group: LoopGroup) -> Lowered:
    """The items of a group whose members can all run in one loop."""
    return _LoopLowering(group).run()


class _LoopLowering:
    def __init__(self, group: LoopGroup) -> None:
        self.group = group
        self.items: list[Item] = []
        self.shape = group.space.shape
        self.loop = tuple(range(len(self.shape)))  # its axes, before all others
        self.parent = [*self.loop]  # of each axis: itself, or an axis that is the same
        self.lengths = [*self.shape]
        self.ranges: list[Range] = []
        self.types = [*group.inputs, *(m.type for m in group.members)]
        self.values: list[Ref | tuple[int, Strided]] = [
            (place, contiguous(lengths(t))) for place, t in enumerate(group.inputs)
        ]

    def run(self) -> Lowered:
        """Member by member."""
        for member in self.group.members:
            self.values.append(self._member(member))
        refs = []
        for o in self.group.outputs:
            value = self.values[o]
            assert isinstance(value, Ref)
            refs.append(value)
        return self._resolved(refs)

    # --- members -----------------------------------------------------------------------------

    def _member(self, member: Member) -> Ref | tuple[int, Strided]:
        op, type_ = member.op, member.type
        if isinstance(op, Number):
            number = self._item("number", (), op.dtype, op.array().item())
            return Ref(number, (None,) * len(type_.shape))
        if type(op) in GATHERS:
            return self._gather(op, member)
        if op.elementwise:
            return self._elementwise(op, [self._read(r) for r in member.reads], type_)
        first = member.reads[0]
        value, of = self.values[first], lengths(self.types[first])
        if op.reduction is not None:
            return self._reduction(op, op.reduction, self._read(first), of, type_)
        if isinstance(value, Ref):
            return self._view(op, value, of, lengths(type_))
        view = viewed(op, type_, value[1])
        assert view is not None
        return value[0], view

    def _read(self, number: int) -> Ref:
        """A value; of an input each reader has its own axes, since it may see others there."""
        value = self.values[number]
        if isinstance(value, Ref):
            return value
        place, (shape, strides, offset) = value
        dims = tuple([None if d == 1 else self._axis(d) for d in shape])
        steps = [(a, s) for a, s in zip(dims, strides, strict=True) if a is not None and s]
        data = (place, tuple(steps), offset)
        return Ref(self._item("load", (), self.group.inputs[place].dtype, data), dims)

    def _elementwise(self, op: Op, reads: list[Ref], made: TensorType) -> Ref:
        steps = calls(op, tuple([self.items[r.item].dtype for r in reads]), made.dtype)
        assert steps is not None
        dims = self._together([r.dims for r in reads], lengths(made))
        numbers = [r.item for r in reads]
        for call in steps:
            args = [self._operand(o, numbers) for o in call.operands]
            name = name_of(call)
            if name in _SAME_TYPE:
                self._agree(args, 1 if name == "choose" else 0)
            numbers.append(self._item(name, tuple(args), call.dtype))
        return Ref(numbers[-1], dims)

    def _operand(self, operand: Any, numbers: list[int]) -> int:
        if isinstance(operand, int):
            return numbers[operand]
        return self._item("number", (), operand.dtype, operand.item())

    def _agree(self, args: list[int], first: int) -> None:
        """Cast operands from `first` on to the dtype they have together."""
        dtype = np.result_type(*[self.items[a].dtype for a in args[first:]])
        for i in range(first, len(args)):
            if self.items[args[i]].dtype != dtype:
                args[i] = self._item("cast", (args[i],), dtype)

    def _gather(self, op: Any, member: Member) -> Ref:
        of, *at = member.reads
        value = self.values[of]
        view = contiguous(lengths(self.types[of])) if isinstance(value, Ref) else value[1]
        refs = [self._read(i) for i in at]
        offset, gathers, kept = gathering(op, view)
        if type(op) is GatherElements:
            dims = self._together([refs[0].dims], self._broadcast(at))
            own = dims[: op.axis] + dims[op.axis + 1 :]
        else:
            own = tuple([None if d == 1 else self._axis(d) for d, _ in kept])
            shared = self._together([r.dims for r in refs], self._broadcast(at))
            before = first_index(op)
            dims = own[:before] + shared + own[before:]
        dims = self._framed(dims)
        indices, steps = [], []
        for ref, i, (axis, length, stride) in zip(refs, at, gathers, strict=True):
            item, index = self.items[ref.item], self.values[i]
            if isinstance(index, Ref):
                offset += item.data % length * stride
                continue
            self.ranges.append(Range(*index, axis, length))
            indices.append(self._item("cast", (ref.item,), _INT64))
            steps.append((stride, length))
        if isinstance(value, Ref):  # one number, wherever it is read
            return Ref(value.item, dims)
        along = [(a, s) for a, (_, s) in zip(own, kept, strict=True) if a is not None and s]
        data = (value[0], tuple(along), offset, tuple(steps))
        dtype = self.group.inputs[value[0]].dtype
        return Ref(self._item("gather", tuple(indices), dtype, data), dims)

    def _broadcast(self, values: Sequence[int]) -> tuple[int, ...]:
        shape: Any = broadcast([self.types[i].shape for i in values])
        shared: tuple[int, ...] = shape
        return shared

    def _reduction(
        self, op: Op, kind: str, read: Ref, shape: tuple[int, ...], made: TensorType
    ) -> Ref:
        dims = self._together([read.dims], shape)
        item = read.item
        axes = op.reduced_axes(shape)
        gone = tuple([a for i, a in enumerate(dims) if i in axes and a is not None])
        left = [a for i, a in enumerate(dims) if i not in axes and a is not None]
        how = "sum" if kind == "mean" else kind
        if gone:
            dtype = _BOOL if kind in ("any", "all") else self.items[item].dtype
            item = self._item(how, (item,), dtype, gone, tuple(left))
        elif how == "sum" and is_floating(made.dtype) and (axes or not op.view):
            item = self._plus_zero(item)
        if kind == "mean":
            dtype = self.items[item].dtype
            count = math.prod([self.lengths[a] for a in gone])
            item = self._item("divide", (item, self._item("number", (), dtype, count)), dtype)
        if self.items[item].dtype != made.dtype:
            item = self._item("cast", (item,), made.dtype)
        left.reverse()
        return Ref(item, tuple([None if d == 1 else left.pop() for d in lengths(made)]))

    def _plus_zero(self, item: int) -> int:
        """The sum of one number, which starts from 0.0 as any: so it is never -0.0."""
        dtype = self.items[item].dtype
        return self._item("add", (item, self._item("number", (), dtype, 0)), dtype)

    def _view(self, op: Op, value: Ref, of: tuple[int, ...], shape: tuple[int, ...]) -> Ref:
        """A view of what the loop computes: axes of length 1 come and go, or it is repeated."""
        if self.items[value.item].name == "number":
            return Ref(value.item, (None,) * len(shape))
        through = axes_through(op, of, shape)
        assert through is not None, op
        axes = [None if a is None else value.dims[a] for a in through]
        pairs = zip(axes, shape, strict=True)
        return Ref(
            value.item, tuple([self._axis(d) if a is None and d != 1 else a for a, d in pairs])
        )

    # --- axes --------------------------------------------------------------------------------

    def _axis(self, length: int) -> int:
        self.parent.append(len(self.parent))
        self.lengths.append(length)
        return len(self.parent) - 1

    def _root(self, axis: int) -> int:
        parent = self.parent
        while parent[axis] != axis:
            parent[axis] = axis = parent[parent[axis]]
        return axis

    def _same(self, a: int, b: int) -> int:
        a, b = sorted([self._root(a), self._root(b)])
        assert self.lengths[a] == self.lengths[b], "axes of different lengths run together"
        self.parent[b] = a
        return a

    def _together(self, all_dims: Sequence[Dims], shape: tuple[int, ...]) -> Dims:
        """The axes of what is computed element by element from values broadcast to a shape."""
        first = all_dims[0]
        if all(d == first for d in all_dims) and len(first) == len(shape) and None not in first:
            return self._framed(first)
        axes: list[int | None] = []
        for at in range(-len(shape), 0):
            axis = None
            for dims in all_dims:
                here = dims[at] if -at <= len(dims) else None
                if here is not None:
                    axis = here if axis is None else self._same(axis, here)
            axes.append(self._axis(shape[at]) if axis is None and shape[at] != 1 else axis)
        return self._framed(tuple(axes))

    def _framed(self, dims: Dims) -> Dims:
        """Axes of what is computed; all those of the loop, where there are as many."""
        if dims == self.loop or sum(a is not None for a in dims) != len(self.loop):
            return dims
        axes = iter(self.loop)
        return tuple([None if a is None else self._same(next(axes), a) for a in dims])

    # --- items -------------------------------------------------------------------------------

    def _item(
        self,
        name: str,
        args: tuple[int, ...],
        dtype: DType,
        data: Any = None,
        left: tuple[int, ...] = (),
    ) -> int:
        self.items.append(Item(name, args, dtype, data, left))
        return len(self.items) - 1

    def _resolved(self, refs: list[Ref]) -> Lowered:
        """Axes by their place in the loop, and equal items once."""

        def axes_of(axes: Sequence[int]) -> tuple[int, ...]:
            return tuple([self._root(a) for a in axes])

        known: dict[Any, int] = {}
        items: list[Item] = []
        new: list[int] = []
        for name, args, dtype, data, left in self.items:
            if name in ("load", "gather"):
                at, steps, *rest = data
                data = (at, tuple(sorted((self._root(a), s) for a, s in steps)), *rest)
            elif data is not None and name != "number":
                data = tuple(sorted(axes_of(data)))
            item = Item(name, tuple([new[a] for a in args]), dtype, data, axes_of(left))
            key = item._replace(data=repr(data)) if name == "number" else item
            if key not in known:
                known[key] = len(items)
                items.append(item)
            new.append(known[key])
        outputs = []
        for ref in refs:
            axes = axes_of([a for a in ref.dims if a is not None])
            assert list(axes) == sorted(axes), "an output has its axes in another order"
            outputs.append(Output(new[ref.item], axes))
        ranges = tuple(dict.fromkeys(self.ranges))
        return Lowered(self.shape, tuple(items), tuple(outputs), ranges)


_SAME_TYPE = frozenset(
    [
        *("add", "subtract", "multiply", "divide", "maximum", "minimum", "floor_divide", "power"),
        *("remainder", "fmod", "copysign", "hypot", "logaddexp", "equal", "not_equal", "less"),
        *("less_equal", "greater", "greater_equal", "choose"),
    ]
)
