"""Vectors in memory: as many numbers are read and written as there are, never more."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce

from ....lower.items import Item
from ....lower.loop_ir import Number
from ..emit.module import Body
from ..emit.types import BITS, element_of, stored, vector
from ..emit.values import Value
from .expressions import Operands, cast, express
from .nest import Nest

Values = dict[int, Value]
ORDERED = "volatile "  # reads and writes that LLVM is not to look for a better order of


def element(item: Item) -> str:
    """LLVM's type of an item."""
    kind = element_of(item.dtype)
    assert kind is not None
    return kind


def bytes_of(kind: str) -> int:
    """Bytes of a number in memory."""
    return BITS[stored(kind)] // 8


def computed(nest: Nest, i: int, args: Sequence[Value], inline: bool) -> Value:
    """An item that is neither read nor a number nor a reduction, from its arguments."""
    items = nest.items
    item = items[i]
    if item.name == "cast":
        return cast(args[0], items[item.args[0]].dtype, item.dtype)
    numbers = [n.value if isinstance(n := items[a].data, Number) else None for a in item.args]
    flags = args[0].body.module.flags
    kind = items[item.args[-1]].dtype.kind
    return express(item.name, Operands(args, kind, numbers, flags, inline, i in nest.twins))


def place(body: Body, base: str, kind: str, at: str | int) -> str:
    """The address of the number at this place after an address."""
    return body(f"getelementptr {stored(kind)}, ptr {base}, i64 {at}")


def load(body: Body, kind: str, lanes: int, valid: int, where: str, order: str = "") -> Value:
    """The numbers at an address: `valid` of them are read, the lanes after them are 0."""
    memory = stored(kind)
    few = vector(memory, valid)
    name = body(f"load {order}{few}, ptr {where}, align {bytes_of(kind)}")
    if valid == 1 != lanes:
        zeros = f"{vector(memory, lanes)} zeroinitializer"
        name = body(f"insertelement {zeros}, {memory} {name}, i32 0")
    elif valid != lanes:
        picks = ", ".join(f"i32 {min(i, valid)}" for i in range(lanes))
        zeros = f"{few} zeroinitializer"
        name = body(f"shufflevector {few} {name}, {zeros}, <{lanes} x i32> <{picks}>")
    value = Value(body, memory, lanes, name)
    return value if memory == kind else value.compare("ne", 0)


def store(x: Value, valid: int, where: str, order: str = "") -> None:
    """Write the first lanes to an address."""
    body = x.body
    if stored(x.element) != x.element:
        x = x.convert("zext", stored(x.element))
    name = x.name
    if valid == 1 != x.lanes:
        name = body(f"extractelement {x.type} {name}, i32 0")
    elif valid != x.lanes:
        picks = ", ".join(f"i32 {i}" for i in range(valid))
        name = body(f"shufflevector {x.type} {name}, {x.type} poison, <{valid} x i32> <{picks}>")
    few = vector(x.element, valid)
    body.do(f"store {order}{few} {name}, ptr {where}, align {bytes_of(x.element)}")


def spread(x: Value, lanes: int) -> Value:
    """A scalar in every lane."""
    body, kind = x.body, vector(x.element, lanes)
    if lanes == 1:
        return x
    if not x.name.startswith("%"):
        return Value(body, x.element, lanes, f"splat ({x.element} {x.name})")
    one = body(f"insertelement {kind} poison, {x.element} {x.name}, i32 0")
    zeros = f"<{lanes} x i32> zeroinitializer"
    name = body(f"shufflevector {kind} {one}, {kind} poison, {zeros}")
    return Value(body, x.element, lanes, name)


def gathered(body: Body, kind: str, lanes: int, valid: int, first: str, stride: int) -> Value:
    """Numbers `stride` apart, from an address on; the lanes after `valid` are 0."""
    if lanes == 1:
        return load(body, kind, 1, 1, first)
    memory, size = stored(kind), bytes_of(kind)
    name = "zeroinitializer"
    for lane in range(valid):
        where = body.at(first, lane * stride * size)
        one = body(f"load {memory}, ptr {where}, align {size}")
        name = body(f"insertelement {vector(memory, lanes)} {name}, {memory} {one}, i32 {lane}")
    value = Value(body, memory, lanes, name)
    return value if memory == kind else value.compare("ne", 0)


def from_start(index: Value, length: int) -> Value:
    """Indices of an axis, those below 0 counted from its end."""
    return (index < 0).where(index + length, index)


def scattered(body: Body, kind: str, valid: int, first: str, offsets: Value) -> Value:
    """Numbers so many bytes after an address; the lanes after `valid` are 0."""
    memory, size, lanes = stored(kind), bytes_of(kind), offsets.lanes
    if lanes == 1:
        return load(body, kind, 1, 1, body.at(first, offsets.name))
    name = "zeroinitializer"
    for lane in range(valid):
        offset = body(f"extractelement {offsets.type} {offsets.name}, i32 {lane}")
        one = body(f"load {memory}, ptr {body.at(first, offset)}, align {size}")
        name = body(f"insertelement {vector(memory, lanes)} {name}, {memory} {one}, i32 {lane}")
    value = Value(body, memory, lanes, name)
    return value if memory == kind else value.compare("ne", 0)


def indexed(
    body: Body,
    kind: str,
    valid: int,
    base: str,
    stride: int,
    terms: Sequence[tuple[Value, int, int]],
) -> Value:
    """Numbers at the places that indices say: (index of each lane, stride, length of the axis).

    The lanes lie `stride` apart besides; those after `valid` are 0.
    """
    size = bytes_of(kind)
    offsets = [from_start(x, length) * (step * size) for x, step, length in terms]
    lanes = offsets[0].lanes
    if stride and lanes > 1:
        own = ", ".join(f"i64 {lane * stride * size}" for lane in range(lanes))
        offsets.append(Value(body, "i64", lanes, f"<{own}>"))
    return scattered(body, kind, valid, base, reduce(operator.add, offsets))


def read(
    body: Body, kind: str, lanes: int, valid: int, base: str, stride: int, order: str = ""
) -> Value:
    """Numbers that lie `stride` apart, from an address on."""
    if stride == 1:
        return load(body, kind, lanes, valid, base, order)
    if stride == 0:
        return spread(load(body, kind, 1, 1, base), lanes)
    return gathered(body, kind, lanes, valid, base, stride)


def whole(length: int, lanes: int) -> int:
    """How many numbers are in whole vectors."""
    return length - length % lanes


def wide_enough(count: int) -> int:
    """The lanes of a vector for this many numbers: a power of two."""
    return 1 << (count - 1).bit_length()


def along(body: Body, length: int, lanes: int, write: Callable[[str, int, int], None]) -> None:
    """write(place, lanes, valid) for all of an axis: whole vectors, then what is left."""
    main = whole(length, lanes)
    if main:
        body.loop(0, main, lanes, lambda at: write(at, lanes, lanes))
    if main < length:
        write(str(main), wide_enough(length - main), length - main)
