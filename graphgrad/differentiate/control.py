"""The gradient of control flow: the bodies are differentiated where they stand.

The backward choice runs the gradients of the two bodies. They are built in the bodies' own graphs,
so that the rules and regions inside are called at home; nothing is copied. The chosen body's
forward part is run again by it, on the same inputs. Where the gradient is built in another graph
than the choice stands in (a trace of a rule, a branch), it is that of a copy of the bodies there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.build import adopted
from ..ir.graph import current
from ..ir.node import Node, Region, Tensor
from ..ir.op import Gradients
from ..ir.program import Program
from ..ops.base import NO_GRAD, ZeroTensor, is_zero, wants
from ..ops.control import BodyGraph, BodyScope, Cond, choose
from ..regions.index import bodies_of
from .additive import copied_steps, note_twin
from .gradients import gradients
from .travel.transplant import Plain, copy_into


def cond_vjp(op: Cond, node: Node, *dys: Tensor | None) -> Gradients:
    """One gradient for each input of the choice: none for the bool, of captures by branch."""
    pred, *captured = node.inputs
    wanted = [i for i, x in enumerate(captured) if x.type.differentiable and wants(x)]
    programs = [_here(program) for program in op.programs]
    branches = [
        _branch(program, reads, wanted, dys)
        for program, reads in zip(programs, op.reads, strict=True)
    ]
    flows = [i for i in wanted if any(i in found for found in branches)]
    if not flows:
        return [NO_GRAD] * len(node.inputs)
    bodies = [_body(program) for program in programs]
    outputs = []
    for body, found in zip(bodies, branches, strict=True):
        with BodyScope(body):
            outputs.append([found[i] if i in found else _zero(body, captured[i]) for i in flows])
    given = dict(zip(flows, choose(pred, bodies, outputs), strict=True))
    return [NO_GRAD, *(given.get(i, NO_GRAD) for i in range(len(captured)))]


def _body(program: Program) -> BodyGraph:
    body = program.outputs[0].graph
    assert isinstance(body, BodyGraph)
    return body


class Here(Plain):
    """Carries what a body captured into the current graph."""

    def tensor(self, t: Tensor) -> Tensor:
        """The tensor as the current graph knows it."""
        return adopted((t,))[0]

    def region(self, region: Region) -> Region:
        """The region itself."""
        return region


def _here(program: Program) -> Program:
    """The program, in a body of the graph in which nodes are being built now."""
    body, graph = _body(program), current().graph
    if body.outer is graph:
        return program
    here = Here()
    copy = copy_into(body, BodyGraph(graph, ""), here)
    for outer, inner in list(body.captures.items()):
        copy.graph.captures[here.tensor(outer)] = copy.tensor(inner)
    for old, new in zip(bodies_of(body), bodies_of(copy.graph), strict=True):
        for first, step in copied_steps(old, new):
            note_twin(step, first)
    return Program(map(copy.tensor, program.inputs), map(copy.tensor, program.outputs))


def _branch(
    program: Program, reads: Sequence[int], wanted: Sequence[int], dys: Sequence[Tensor | None]
) -> dict[int, Tensor]:
    """The gradients of one body with respect to the captures it reads, where something flows."""
    body = _body(program)
    inner = dict(zip(reads, program.inputs, strict=True))
    at = [i for i in wanted if i in inner]
    pairs = [
        (y, dy)
        for y, dy in zip(program.outputs, dys, strict=True)
        if dy is not None and y.type.differentiable
    ]
    with BodyScope(body):
        found = gradients(
            [y for y, _ in pairs],
            [inner[i] for i in at],
            grad_ys=[ZeroTensor(y) if is_zero(dy) else body.adopt(dy) for y, dy in pairs],
        )
    return {i: dx for i, dx in zip(at, found, strict=True) if dx is not None}


def _zero(body: BodyGraph, x: Tensor) -> Tensor:
    """The gradient of a capture that a branch does not read."""
    zero = ZeroTensor(x if x.type.static else body.adopt(x))
    zero.node  # noqa: B018
    return zero


Cond.vjp = cond_vjp  # type: ignore[method-assign, assignment]
