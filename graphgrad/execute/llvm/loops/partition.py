"""How the work of a group is divided. It depends on shapes alone, and so do the results."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..emit.types import BITS, Target
from .access import bytes_of, element, wide_enough
from .nest import LANES, Nest, cost_of
from .reductions import CHAIN
from .spills import LONG

BLOCK_COST = 400_000  # instructions for a block: some 50 microseconds
BLOCK_BYTES = 1 << 20  # from memory, which take twice as long
NEAR = 1 << 21  # bytes that may be in a cache
BLOCKS = 256  # at most
SHARE = 8  # partial results are at most this fraction of the elements
TOGETHER = 4  # registers computed with at once: while one waits for a result, others go on
FEWER = 2  # in long bodies of little work: LLVM takes a third of the time for them, runs half more
LITTLE = 1 << 16  # elements
LINE = 64  # bytes; what different threads write is in different lines


class PartialResult(NamedTuple):
    """Where a reduction is in a block's partial results: from which byte on, how many numbers."""

    offset: int
    size: int


class RowBlocks(NamedTuple):
    """Rows, and blocks of rows that any thread may run.

    lanes    of the main vectors
    rows     how many rows there are; where they are lanes, how many vectors of rows
    piece    elements in a row, where the one axis is cut into rows; else 0
    number   how many blocks
    step     rows in a block
    regions  where each reduction that ends with the last row is in a block's partial results
    bytes    of a block's partial results
    """

    lanes: int
    rows: int
    piece: int
    number: int
    step: int
    regions: dict[int, PartialResult]
    bytes: int


def divide(nest: Nest, target: Target) -> RowBlocks:
    """The work of a nest in blocks that take about as long each."""
    lanes = _lanes(nest, target)
    regions, size = _regions(nest)
    elements = math.prod(nest.lengths)
    count = -(-elements * _cost(nest) // (BLOCK_COST * lanes))
    if (moved := nest.moved) > NEAR:
        count = max(count, -(-moved // BLOCK_BYTES))
    count = min(count, BLOCKS)
    if size:
        count = min(count, max(1, 8 * elements // SHARE // size))
    if nest.split:
        length = nest.lengths[-1]
        unit = CHAIN * lanes
        piece = -(-length // (count * unit)) * unit
        rows = -(-length // piece)
        return RowBlocks(lanes, rows, piece, rows, 1, regions, size)
    rows = elements // nest.size(nest.row_axes)
    if nest.outer_lanes:
        length = nest.lengths[nest.rows - 1]
        rows = rows // length * -(-length // lanes)
    step = -(-rows // min(count, rows))
    return RowBlocks(lanes, rows, 0, -(-rows // step), step, regions, size)


def _cost(nest: Nest) -> int:
    """Roughly how many instructions a vector of elements takes."""
    cost = 4 + sum(cost_of(nest.items[i].name) for step in nest.passes for i in step.computes)
    if not nest.outer_lanes:
        return cost
    of_rows = sum(cost_of(nest.items[i].name) for i in nest.across - nest.inner - nest.final)
    return cost + of_rows // nest.size(nest.row_axes)


def _lanes(nest: Nest, target: Target) -> int:
    """Some registers full of the widest floats that are computed, no more than there is to do."""
    kinds = [element(nest.items[i]) for i in nest.inner] or ["i64"]
    floats = [k for k in kinds if k in ("float", "double")]
    widest = max(floats or kinds, key=BITS.__getitem__)
    length = nest.lengths[nest.rows - 1] if nest.outer_lanes else max(nest.lengths[-1:], default=1)
    long = sum(len(step.computes) for step in nest.passes) > LONG
    together = FEWER if long and math.prod(nest.lengths) <= LITTLE else TOGETHER
    lanes = min(together * target.lanes(widest), wide_enough(length))
    return min(lanes, LANES) if nest.outer_lanes else lanes


def _regions(nest: Nest) -> tuple[dict[int, PartialResult], int]:
    regions = {}
    end = 0
    for i in sorted(nest.ends):
        size = nest.size(nest.left[i])
        regions[i] = PartialResult(end, size)
        end += -(-size * bytes_of(element(nest.items[i])) // LINE) * LINE
    return regions, end
