"""A group as items over the axes of one loop: what it reads, calls and reduces.

Every axis of every value starts out on its own; what is computed element by element makes axes one.
What remains are the axes of the loop. So lengths of 1, and where they are put, do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ..base.kinds import is_floating
from ..ir.op import Op
from ..ir.strided import Strided, contiguous
from ..ir.types import DType, TensorType, broadcast, lengths
from ..ops.reduce.sorting import GatherElements
from .calls import CAST, CHOOSE, Call, Calls, calls_of, name_of
from .gathers import GATHERS, Range, first_index, gathering
from .loop_ir import LoopGroup, Member, Number, axes_through, viewed

_INT64: DType = np.dtype("int64")
_BOOL: DType = np.dtype(bool)

Dims = tuple[int | None, ...]
"""Along each axis of a value: the axis of the loop, or None where it stays the same."""


class Dialect(NamedTuple):
    """How what a backend calls differs from NumPy's functions; by default in nothing.

    functions  ops that are one function there, whatever their kernels call, and its name
    casts      operands of several dtypes are cast to one before a call
    scalar     reductions keep the dtype of what they reduce, a mean is a sum that is divided, and
               one number is not reduced
    """

    functions: Mapping[type[Op], str] = MappingProxyType({})
    casts: bool = False
    scalar: bool = False

    def calls(self, op: Op, inputs: tuple[DType, ...], output: DType) -> Calls | None:
        """The calls that an element-wise op makes. None: not known."""
        if type(op) in self.functions:
            return Calls((Call(self.functions[type(op)], (0,), output),), 1)
        return calls_of(op, inputs, output)


class Read(NamedTuple):
    """Where an input is read.

    place    of the input
    along    (axis, stride) of the axes along which it varies
    offset   where it begins
    indexed  of a gather, (stride, length) of each index
    """

    place: int
    along: tuple[tuple[int, int], ...]
    offset: int
    indexed: tuple[tuple[int, int], ...] = ()


class Reduced(NamedTuple):
    """The axes over which a reduction goes, and those of what it makes, in order."""

    axes: tuple[int, ...]
    left: tuple[int, ...]


Data = Read | Reduced | Number | None


class Item(NamedTuple):
    """A value.

    fn    a ufunc or a function of the dialect, CHOOSE or CAST; "sum", "prod", "max", "min", "any",
          "all" or "mean"; "load", "gather" or "number"
    args  items by number; of a gather, indices as int64
    data  of a load or gather where it reads, of a reduction its axes, of a number itself
    """

    fn: Any
    args: tuple[int, ...]
    dtype: DType
    data: Data = None

    @property
    def name(self) -> str:
        """What it is called."""
        return name_of(self.fn)

    @property
    def reduces(self) -> bool:
        """Whether it is a reduction."""
        return isinstance(self.data, Reduced)

    def on(self, axis: Callable[[int], int]) -> Item:
        """With other numbers for axes."""
        fn, args, dtype, data = self
        if isinstance(data, Read):
            data = data._replace(along=tuple(sorted([(axis(a), s) for a, s in data.along])))
        elif isinstance(data, Reduced):
            data = Reduced(tuple(sorted(map(axis, data.axes))), tuple(map(axis, data.left)))
        return Item(fn, args, dtype, data)


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


def lower(group: LoopGroup, dialect: Dialect) -> Lowered:
    """The items of a group whose members can all run in one loop."""
    return _LoopLowering(group, dialect).run()


class _LoopLowering:
    def __init__(self, group: LoopGroup, dialect: Dialect) -> None:
        self.group, self.dialect = group, dialect
        self.items: list[Item] = []
        self.shape = tuple([d for d in group.space.shape if d != 1])
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
        return self._resolved([self._read(o) for o in self.group.outputs])

    # --- members -----------------------------------------------------------------------------

    def _member(self, member: Member) -> Ref | tuple[int, Strided]:
        op, type_ = member.op, member.type
        if isinstance(op, Number):
            return Ref(self._item("number", (), op.dtype, op), (None,) * len(type_.shape))
        if type(op) in GATHERS:
            return self._gather(op, member)
        if op.elementwise:
            return self._elementwise(op, [self._read(r) for r in member.reads], type_)
        first = member.reads[0]
        value, of = self.values[first], lengths(self.types[first])
        if op.traits.reduction is not None:
            return self._reduction(op, self._read(first), of, type_)
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
        where = Read(place, tuple(steps), offset)
        return Ref(self._item("load", (), self.group.inputs[place].dtype, where), dims)

    def _elementwise(self, op: Op, reads: list[Ref], made: TensorType) -> Ref:
        dtypes = tuple([self.items[r.item].dtype for r in reads])
        calls = self.dialect.calls(op, dtypes, made.dtype)
        assert calls is not None
        dims = self._together([r.dims for r in reads], lengths(made))
        numbers = [r.item for r in reads]
        for fn, operands, dtype in calls.steps:
            args = [
                numbers[o] if isinstance(o, int) else self._number(o, o.dtype) for o in operands
            ]
            if self.dialect.casts:
                self._agree(args, 1 if fn is CHOOSE else 0)
            numbers.append(self._item(fn, tuple(args), dtype))
        return Ref(numbers[calls.result], dims)

    def _agree(self, args: list[int], first: int) -> None:
        """Cast operands from `first` on to the dtype they have together."""
        dtype = np.result_type(*[self.items[a].dtype for a in args[first:]])
        for i in range(first, len(args)):
            if self.items[args[i]].dtype != dtype:
                args[i] = self._item(CAST, (args[i],), dtype)

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
                assert isinstance(item.data, Number)
                offset += item.data.value % length * stride
                continue
            self.ranges.append(Range(*index, axis, length))
            indices.append(self._item(CAST, (ref.item,), _INT64))
            steps.append((stride, length))
        if isinstance(value, Ref):  # one number, wherever it is read
            return Ref(value.item, dims)
        along = [(a, s) for a, (_, s) in zip(own, kept, strict=True) if a is not None and s]
        where = Read(value[0], tuple(along), offset, tuple(steps))
        dtype = self.group.inputs[value[0]].dtype
        return Ref(self._item("gather", tuple(indices), dtype, where), dims)

    def _broadcast(self, values: Sequence[int]) -> tuple[int, ...]:
        shape: Any = broadcast([self.types[i].shape for i in values])
        shared: tuple[int, ...] = shape
        return shared

    def _reduction(self, op: Op, read: Ref, shape: tuple[int, ...], made: TensorType) -> Ref:
        dims = self._together([read.dims], shape)
        axes = op.reduced_axes(shape)
        gone = tuple([a for i, a in enumerate(dims) if i in axes and a is not None])
        left = [a for i, a in enumerate(dims) if i not in axes and a is not None]
        kind, reduced = op.traits.reduction, Reduced(gone, tuple(left))
        if self.dialect.scalar:
            item = self._scalar(kind, read.item, reduced, op.memory.view and not axes)
            if self.items[item].dtype != made.dtype:
                item = self._item(CAST, (item,), made.dtype)
        else:
            item = self._item(kind, (read.item,), made.dtype, reduced)
        left.reverse()
        return Ref(item, tuple([None if d == 1 else left.pop() for d in lengths(made)]))

    def _scalar(self, kind: str | None, item: int, reduced: Reduced, view: bool) -> int:
        """A reduction as steps of numbers. The sum of one starts from 0.0 as any, so it is never
        -0.0; but for a view.
        """
        dtype = self.items[item].dtype
        if reduced.axes:
            result = _BOOL if kind in ("any", "all") else dtype
            item = self._item("sum" if kind == "mean" else kind, (item,), result, reduced)
        elif kind in ("sum", "mean") and is_floating(dtype) and not view:
            item = self._item(np.add, (item, self._number(0, dtype)), dtype)
        if kind == "mean":
            count = self._number(math.prod([self.lengths[a] for a in reduced.axes]), dtype)
            item = self._item(np.divide, (item, count), dtype)
        return item

    def _view(self, op: Op, value: Ref, of: tuple[int, ...], shape: tuple[int, ...]) -> Ref:
        """A view of what the loop computes: axes of length 1 come and go, or it is repeated."""
        if isinstance(self.items[value.item].data, Number):
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
        same = all_dims.count(first) == len(all_dims)
        if same and len(first) == len(shape) and None not in first:
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

    def _number(self, value: Any, dtype: DType) -> int:
        return self._item("number", (), dtype, Number.of(value, dtype))

    def _item(self, fn: Any, args: tuple[int, ...], dtype: DType, data: Data = None) -> int:
        self.items.append(Item(fn, args, dtype, data))
        return len(self.items) - 1

    def _resolved(self, refs: list[Ref]) -> Lowered:
        """Axes by their place in the loop, and equal items once."""
        known: dict[Item, int] = {}
        new: list[int] = []
        for item in self.items:
            fn, args, dtype, data = item.on(self._root) if item.data else item
            item = Item(fn, tuple([new[a] for a in args]), dtype, data)
            new.append(known.setdefault(item, len(known)))
        outputs = []
        for ref in refs:
            axes = tuple([self._root(a) for a in ref.dims if a is not None])
            assert list(axes) == sorted(axes), "an output has its axes in another order"
            outputs.append(Output(new[ref.item], axes))
        ranges = tuple(dict.fromkeys(self.ranges))
        return Lowered(self.shape, tuple(known), tuple(outputs), ranges)
