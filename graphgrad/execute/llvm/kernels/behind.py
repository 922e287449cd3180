"""Loops that run block by block behind convolutions, while what these made is near."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....ir.node import Node
from ....ir.program import Program
from ....ir.types import lengths
from ....lower.loop_ir import LoopGroup
from ....ops.nn.conv2d import Conv2D
from ....ops.shape.reshaping import Transpose
from ..emit.call import possible
from ..loops.groups import Kernel
from ..loops.launch import in_order, runner
from .convolving import Convolving, convolution_writer, convolving
from .swept import is_swept, swept


def goes_behind(conv: Node, loop: Node, group: LoopGroup, kernel: Kernel) -> bool:
    """Whether a loop can run block by block behind a convolution: over its places, in place.

    Without reductions or transpositions, its places are its rows, in the order of its shape.
    """
    if type(conv.op) is not Conv2D or not possible():
        return False
    if not is_swept(conv) and convolution_writer(conv, 1) is None:
        return False
    shared = kernel.shared
    (z,) = conv.outputs
    at = [i for i, t in enumerate(loop.inputs) if t is z]
    return (
        len(at) == 1
        and any(place == at[0] for _, place in shared.overwrites)
        and (shared.rows, shared.run) == (math.prod(lengths(z.type)[:3]), lengths(z.type)[3])
        and not (shared.ranges or group.space.row)
        and group.space.shape == tuple([d for d in lengths(z.type) if d != 1])
        and not any(isinstance(member.op, Transpose) for member in group.members)
    )


def writer_with_loop(
    node: Node, kernel: Kernel, threads: int, keep: bool, exact: bool
) -> Callable[..., None]:
    """What writes the results of a ConvolvedLoop; kernel: that of its loop."""
    program: Program = node.op.program  # type: ignore[attr-defined]
    conv, loop = program.nodes
    (z,) = conv.outputs
    image, filters, run, few = _convolving(conv, threads, keep, exact)
    number = {t: i for i, t in enumerate(program.inputs)}
    at_x, at_w = (number[t] for t in conv.inputs)
    at_z = next(i for i, t in enumerate(loop.inputs) if t is z)
    over = next(out for out, place in kernel.shared.overwrites if place == at_z)
    count, others = len(program.inputs), [number[t] for t in loop.inputs if t is not z]
    whole = runner(kernel, threads)
    behind = kernel.loaded.address(kernel.shared.plain[0]), kernel.shared.workspace

    def write(*arrays: Any) -> None:
        outs = arrays[count:]
        z = outs[over]
        given = list(in_order(tuple([arrays[i] for i in others])))
        given.insert(at_z, z)
        x, w = image(arrays[at_x]), filters(arrays[at_w])
        if few:
            run(x, w, z)
            whole(*given, *outs)
        else:
            run(x, w, z, *behind, *given, *outs)

    return write


def _convolving(conv: Node, threads: int, keep: bool, exact: bool) -> Convolving:
    if not is_swept(conv):
        return convolving(conv, threads, keep, exact)
    return Convolving(np.ascontiguousarray, np.ascontiguousarray, swept(conv, threads), False)
