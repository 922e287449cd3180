"""Convolutions with the loops that read them, as one node: block by block, while that is near."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ..ir.node import Node
from ..ir.program import Program
from ..ops.nn.conv2d import Conv2D
from .fused import gathered
from .loop_ir import Fused, Fusion, Space


class ConvolvedLoop(Fused, interned=False):
    """A convolution and the one loop that reads what it makes: the two nodes of its program."""


def with_loops(program: Program, fits: Callable[[Node, Node], bool]) -> Program:
    """The program with convolutions and loops as one, where that fits; the same one without any.

    fits: asked of a convolution and the only node that reads it.
    """
    reads = Counter([*program.outputs, *(t for n in program.nodes for t in n.inputs)])
    pairs = []
    for node in program.nodes:
        convs = [t.node for t in node.inputs if type(t.node.op) is Conv2D and reads[t] == 1]
        conv = next((c for c in reversed(convs) if not c.controls and fits(c, node)), None)
        if conv is not None and not node.controls:
            pairs.append(Fusion((conv, node), Space(())))
    return gathered(program, pairs, kind=ConvolvedLoop) if pairs else program
