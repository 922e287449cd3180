"""Element-wise groups on NumPy, block by block: what a block needs stays in a processor's cache.

Which nodes make a group, and what writes its outputs: for a small one a function of ufunc calls;
for a large one such a function called for one block after the other, on several threads if there is
much to do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ...ir.node import Node, Tensor
from ...ir.op import lasting
from ...ir.program import Program
from ...ir.types import TensorType, lengths, size_of
from ...lower.calls import calls_of
from ...lower.fused import fuse_loops
from ...lower.loop_ir import (
    Fused,
    Loop,
    LoopGroup,
    group_of_fused,
    group_of_one,
    is_number,
)
from ...ops.shape.reshaping import BroadcastTo
from .blockwise import InBlocks
from .body import Writer, output_names, writing
from .elements import REDUCTIONS, Elements, ReductionStep, elements_of
from .partition import Shape, blocks_of
from .reduce import Reduce, means, reducer
from .sums import is_long_sum, long_sum

BLOCK = 1 << 17  # bytes of one value in a block
SCRATCH = 1 << 21  # bytes of all values in a block
LEAST = 1 << 11  # elements of a block, below which calls cost more than what they do
LARGE = BLOCK // 8  # elements
MOST = 1500  # operands in a group; longer ones are divided
KEPT = 4096  # groups whose writers are kept, for equal ones to come
WORTH_SHARING = 1 << 21  # elements times steps; below this one thread does it sooner


# --- what may be in a group ------------------------------------------------------------------


def fuse_large(program: Program) -> Program:
    """The program with groups of nodes over many elements as Fused nodes.

    Below a block's size nothing is won: what one node writes is still in the cache for the next.
    """
    if not any(_loop_of(node) for node in program.nodes):
        return program
    return fuse_loops(program, _loop_of, _is_free, parts=(MOST, MOST))


def _loop_of(node: Node) -> Loop | None:
    """How a node runs as a loop, if it does and is worth it."""
    y, of = node.outputs[0], _looped_over(node)
    if not _is_large(of.type) or not y.type.static:
        return None
    if not (fusible(node) if of is y else reducible(node)):
        return None
    shape: Any = of.shape
    return Loop(shape, shape, ends=of is not y)


def _looped_over(node: Node) -> Tensor:
    """What has the shape that a node runs over: what it reduces, or makes."""
    return node.inputs[0] if node.op.traits.reduction in REDUCTIONS else node.outputs[0]


@lru_cache(maxsize=4096)
def _is_large(type: TensorType) -> bool:
    size = size_of(type.shape)
    return size is not None and size > LARGE


def _is_free(node: Node) -> bool:
    """Whether a node costs nothing in a group: one number, and what is broadcast."""
    return is_number(node.op) or (type(node.op) is BroadcastTo and _is_static(node))


def _is_static(node: Node) -> bool:
    return all(t.type.static for t in (*node.inputs, *node.outputs))


def fusible(node: Node) -> bool:
    """Whether the kernel of a node is element by element, in calls that can be told where to
    write.
    """
    if not node.op.elementwise or len(node.outputs) != 1:
        return False
    dtypes = tuple([t.dtype for t in node.inputs])
    return calls_of(node.op, dtypes, node.outputs[0].dtype) is not None


def reducible(node: Node) -> bool:
    """Whether a node reduces its input, and little of every block is left to add up."""
    if node.op.traits.reduction not in REDUCTIONS or not node.inputs[0].type.static:
        return False
    x = node.inputs[0].type
    axes = node.op.reduced_axes(x.shape)
    if not axes:
        return False
    blocks = blocks_of(x.shape, BLOCK // x.dtype.itemsize)
    return blocks is None or 8 * math.prod(blocks.results(axes)) <= math.prod(blocks.shape)


# --- writers ---------------------------------------------------------------------------------


class Written(NamedTuple):
    """What writes the outputs of a group.

    on          a function of a number of threads that returns run(*inputs, *outputs)
    overwrites  (output, input) places that may be one buffer
    """

    on: Callable[[int], Callable[..., object]]
    overwrites: tuple[tuple[int, int], ...]


def written(node: Node) -> Written | None:
    """What writes the outputs of a node of static types; None where its kernel cannot be told
    where to write. Equal groups have one.
    """
    if isinstance(node.op, Fused):
        return _of_group(group_of_fused(node.op))
    if not node.op.elementwise and node.op.traits.reduction not in REDUCTIONS:
        return None
    if is_long_sum(node) and _is_one_block(node.outputs[0].type):
        run, overwrites = long_sum(node)
        return Written(lambda threads: run, overwrites)
    kind = kind_of(node)
    try:
        return _of_single_nodes[kind]
    except KeyError:
        shape: Any = _looped_over(node).shape
        wanted = fusible(node) or reducible(node)
        writer = _of_group(group_of_one(node, shape)) if wanted else None
    if not lasting(node.op):
        return writer
    if len(_of_single_nodes) >= KEPT:
        _of_single_nodes.clear()
    _of_single_nodes[kind] = writer
    return writer


def _is_one_block(type: TensorType) -> bool:
    return blocks_of(lengths(type), BLOCK // type.dtype.itemsize) is None


_of_single_nodes: dict[Any, Written | None] = {}


def kind_of(node: Node) -> tuple[Any, ...]:
    """What nodes that one group computes have in common: the op, the types of its inputs, and for
    each input the first place where the same tensor is.
    """
    inputs = node.inputs
    if len(inputs) == 1:
        return node.op, inputs[0].type
    if len(inputs) == 2:
        x, y = inputs
        return node.op, x.type, y.type, x is y
    first: dict[Tensor, int] = {}
    places = [first.setdefault(t, i) for i, t in enumerate(inputs)]
    return node.op, *[t.type for t in inputs], *places


def _of_group(group: LoopGroup) -> Written:
    known = all(lasting(member.op) for member in group.members)
    return (_written if known else _written.__wrapped__)(group)


@lru_cache(maxsize=KEPT)
def _written(group: LoopGroup) -> Written:
    elements = elements_of(group)
    limit = BLOCK // max(v.dtype.itemsize for v in elements.values)
    blocks = blocks_of(elements.loop, limit)
    if blocks is None:
        return _alone(elements) or _whole(elements)
    in_blocks = InBlocks(elements, blocks)
    if in_blocks.scratch_bytes > SCRATCH:  # many values at a time: less of each
        smaller = blocks_of(elements.loop, max(limit * SCRATCH // in_blocks.scratch_bytes, LEAST))
        in_blocks = InBlocks(elements, smaller or blocks)
    shared = math.prod(elements.loop) * len(elements.steps) >= WORTH_SHARING
    return Written(
        lambda threads: partial(in_blocks.run, threads if shared else 1),
        in_blocks.body.overwrites,
    )


def _alone(elements: Elements) -> Written | None:
    """The one ufunc that a group is, as it is. What one node reads twice is an input twice, and its
    loop reads the first."""
    fn, operands, _ = elements.steps[0]
    if len(elements.steps) > 1 or not isinstance(fn, np.ufunc):
        return None
    first = [i if i in operands else operands[0] for i in range(elements.arity)]
    if operands != tuple(first):
        return None
    run = writing(fn)
    *inputs, y = elements.values
    return Written(lambda threads: run, tuple([(0, a) for a, x in enumerate(inputs) if x == y]))


def _whole(elements: Elements) -> Written:
    """A small group as one function of all inputs and outputs."""
    names = {v: f"a{v}" for v in range(elements.arity)}
    reduces = {
        s.fn.output: _whole_reduction(s.fn, elements.loop)
        for s in elements.steps
        if isinstance(s.fn, ReductionStep)
    }
    if reduces and len(elements.steps) == 1 and elements.arity == 1:
        (alone,) = reduces.values()
        return Written(lambda threads: alone, ())
    writer = Writer(elements, elements.steps, names, reduces, elements.values.__getitem__, True)
    body = writer.write([*names.values(), *output_names(elements)])
    return Written(lambda threads: body.run, body.overwrites)


def _whole_reduction(fn: ReductionStep, loop: Shape) -> Reduce:
    kept = tuple([d for a, d in enumerate(loop) if a not in fn.axes])
    reduce = reducer(fn.ufunc, fn.axes, loop, fn.dtype)
    if fn.divisor is not None:
        reduce = means(reduce, fn.divisor, fn.dtype)
    return reduce if fn.shape == kept else lambda x, out: reduce(x, out.reshape(kept))
