"""Which nodes run as loops of compiled code, and how."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ....base.kinds import is_bfloat16
from ....ir.node import Node, Tensor
from ....ir.op import Op, lasting
from ....ir.program import Program
from ....ir.strided import Strided, contiguous, row_major
from ....ir.types import DType
from ....lower.calls import name_of
from ....lower.fusion import Twins
from ....lower.gathers import GATHERS, in_range
from ....lower.loop_ir import Loop, is_number, viewed
from ....ops.elementwise.exponential import Sigmoid, SigmoidSlope, Tanh, TanhSlope
from ....ops.elementwise.trigonometry import Cos, Sin
from ....ops.nn.activations import Softplus
from ..emit.types import Target, element_of
from .expressions import DIALECT, supported
from .nest import cost_of
from .tiling import is_last, leaves_little

ROW = 1 << 14  # elements of a row that stay at hand while it is gone through again
LONG = {"erf": 40, "erfc": 40, "tanh_slope": 30}  # instructions, more than others take
TWINS: Twins = {
    Tanh: (TanhSlope,),
    Sigmoid: (SigmoidSlope,),
    Softplus: (Sigmoid, SigmoidSlope),
    Sin: (Cos,),
    Cos: (Sin,),
}
"""What shares an exponential, or a reduction to a quarter of a turn."""


def loops(target: Target) -> Callable[[Node], Loop | None]:
    """How a node runs as a loop on a machine: a function of the node, None where it cannot."""

    def loop_of(node: Node) -> Loop | None:
        if len(node.outputs) != 1 or not node.inputs or node.controls:
            return None
        if any(not t.type.static or 0 in t.shape for t in (*node.inputs, *node.outputs)):
            return None
        if node.op.traits.reduction is not None:
            return _reduction(node)
        if type(node.op) in GATHERS:
            return _gather(node)
        if not node.op.elementwise:
            return None
        dtypes = tuple([t.dtype for t in node.inputs])
        writable = _known if lasting(node.op) else _writable
        if not writable(node.op, dtypes, node.outputs[0].dtype, target):
            return None
        shape: Any = node.outputs[0].shape
        return Loop(tuple([d for d in shape if d != 1]), shape)

    return loop_of


def _writable(op: Op, dtypes: tuple[DType, ...], made: DType, target: Target) -> bool:
    """Whether every call of an element-wise op's kernel can be written."""
    calls = DIALECT.calls(op, dtypes, made)
    if calls is None:
        return False
    known = list(dtypes)
    for call in calls.steps:
        of = [known[o] if isinstance(o, int) else o.dtype for o in call.operands]
        if not supported(name_of(call.fn), of, call.dtype, target):
            return False
        known.append(call.dtype)
    return True


_known = lru_cache(maxsize=4096)(_writable)


def cost(node: Node) -> int:
    """Roughly how many instructions an element-wise node takes for a vector of elements."""
    dtypes = tuple([t.dtype for t in node.inputs])
    calls: Any = DIALECT.calls(node.op, dtypes, node.outputs[0].dtype)
    return sum(LONG.get(n := name_of(call.fn), cost_of(n)) for call in calls.steps)


def _reduction(node: Node) -> Loop | None:
    x: Any = node.inputs[0]
    if element_of(x.dtype) is None or is_bfloat16(x.dtype):
        return None
    shape = tuple([d for d in x.shape if d != 1])
    gone = node.op.reduced_axes(x.shape)
    places = [a for a, d in enumerate(x.shape) if d != 1]
    reduced = [i for i, a in enumerate(places) if a in gone]
    row = tuple(reduced)
    if not row:
        return Loop(shape, x.shape)
    if is_last(row, shape) and math.prod([shape[i] for i in row]) <= ROW:
        return Loop(shape, x.shape, row, ends=True)
    if leaves_little(row, shape):
        return Loop(shape, x.shape, ends=True)
    return Loop(shape, x.shape, row)


def _gather(node: Node) -> Loop | None:
    if any(element_of(t.dtype) is None for t in node.inputs) or not in_range(node):
        return None
    shape: Any = node.outputs[0].shape
    return Loop(tuple([d for d in shape if d != 1]), shape, gathers=True)


def free_nodes(program: Program) -> set[Node]:
    """Constants of one number, and views that a loop can look through for nothing."""
    views: dict[Tensor, Strided] = {}
    free: set[Node] = set()
    for node in program.nodes:
        if len(node.outputs) != 1 or node.controls:
            continue
        (y,) = node.outputs
        if is_number(node.op):
            if element_of(y.dtype) is not None and not is_bfloat16(y.dtype):
                free.add(node)
        elif node.op.memory.view and (t := node.inputs[0]).type.static:
            shape: Any = t.shape
            view = viewed(node.op, y.type, views.get(t) or contiguous(shape))
            if view is not None and _looked_through(view):
                views[y] = view
                free.add(node)
    return free


def _looked_through(view: Strided) -> bool:
    """Whether loops read a view themselves. What lies in one piece, but is not all there is, is
    left as it is: so loops over other pieces are the same.
    """
    shape, strides, offset = view.squeezed
    return offset == 0 or strides != row_major(shape)
