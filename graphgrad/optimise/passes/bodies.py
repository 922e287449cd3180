"""Bodies of control flow: programs inside ops, optimised as the program around them is."""

from __future__ import annotations

from collections import Counter

from ...ir.node import Node, Tensor
from ...ir.op import Op
from ...ir.program import Program, derive, with_inputs
from ...ops.base import Constant
from ...ops.control import Cond
from ..rewrite import Pass
from ..rule import Step


def optimise_bodies(program: Program, optimised: Pass) -> Program:
    """The program with every body of its ops optimised.

    Bodies within bodies come first. What neither body of a Cond reads any more is not computed. A
    body of unknown lengths waits until they are known: what does not fit in it is an error only
    where it is chosen, and would be gone by then.
    """
    done: dict[Op, Op] = {}
    ops = _ops_with_bodies(program)
    for op in reversed(ops):
        bodies = {
            p: optimised(with_ops(p, done)) if _settled(p) else with_ops(p, done) for p in op.bodies
        }
        if any(new is not old for old, new in bodies.items()):
            done[op] = op.replace_bodies([bodies[p] for p in op.bodies])
    return with_ops(program, done)


def outer_first(program: Program, step: Pass) -> Program:
    """The program after a step, with every body of its ops after it, those within bodies last."""
    stepped: dict[Program, Program] = {}
    done: dict[Op, Op] = {}
    made: dict[Program, Program] = {}
    stack = [program]
    while stack:
        each = stack[-1]
        if each not in stepped:
            stepped[each] = step(each)
        after = stepped[each]
        ops = [op for op in after.ops if op.bodies]
        inside = [body for op in ops for body in op.bodies if body not in made]
        if inside:  # which another program may hold, too, at another depth
            stack += inside
            continue
        stack.pop()
        if each in made:
            continue
        for op in ops:
            if any(made[body] is not body for body in op.bodies):
                done[op] = op.replace_bodies([made[body] for body in op.bodies])
        made[each] = with_ops(after, done)
    return made[program]


def _settled(program: Program) -> bool:
    return all(t.type.static for t in program.inputs)


def _ops_with_bodies(program: Program) -> list[Op]:
    """The ops with bodies of a program and of the bodies, outer ones before inner ones."""
    ops: dict[Op, None] = {}
    stack = [program]
    while stack:
        for op in dict.fromkeys([node.op for node in stack.pop().nodes]):
            if op.bodies and op not in ops:
                ops[op] = None
                stack += op.bodies
    return list(ops)


def with_ops(program: Program, done: dict[Op, Op]) -> Program:
    """The program with other ops in the place of some."""
    if not done:
        return program

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        op = done.get(node.op)
        return None if op is None else derive(node, op, node.inputs).outputs

    return program.rebuild(visit)


def choosing(fired: Counter[str]) -> Step:
    """The step that puts the chosen body in the place of a Cond whose condition is constant.

    Of other Conds it takes away what neither body reads.
    """

    def visit(node: Node) -> tuple[Tensor, ...] | None:
        op, test = node.op, node.inputs[0].node.op
        if node.controls or type(op) is not Cond:
            return None
        if type(test) is Constant:
            name, outputs = "cond_of_constant", _inlined(node, op, 0 if test.value else 1)
        else:
            name, outputs = "unread_by_cond", _read(node, op)
        if outputs is not None:
            fired[name] += 1
        return outputs

    return lambda op_class: visit if op_class is Cond else None


def _inlined(node: Node, op: Cond, branch: int) -> tuple[Tensor, ...] | None:
    """The outputs of a body computed from what the Cond reads; None if their types are others."""
    body = op.bodies[branch]
    if any(a.type is not b.type for a, b in zip(body.outputs, node.outputs, strict=True)):
        return None
    if any(inner.controls for inner in body.nodes):
        return None
    stands = {t: node.inputs[1 + i] for t, i in zip(body.inputs, op.reads[branch], strict=True)}
    for inner in body.nodes:
        made = with_inputs(inner, tuple([stands[t] for t in inner.inputs]))
        stands.update(zip(inner.outputs, made.outputs, strict=True))
    return tuple([stands[t] for t in body.outputs])


def _read(node: Node, op: Cond) -> tuple[Tensor, ...] | None:
    """The Cond without inputs that no body reads; None where each is read."""
    bodies: list[Program] = []
    reads: list[list[int]] = []
    for body, taken in zip(op.bodies, op.reads, strict=True):
        read = {t for n in body.nodes for t in n.inputs} | set(body.outputs)
        kept = [(t, i) for t, i in zip(body.inputs, taken, strict=True) if t in read]
        bodies.append(Program([t for t, _ in kept], body.outputs, body.nodes))
        reads.append([i for _, i in kept])
    used = sorted({i for taken in reads for i in taken})
    if len(used) == len(node.inputs) - 1:
        return None
    place = {i: at for at, i in enumerate(used)}
    then, other = [tuple([place[i] for i in taken]) for taken in reads]
    fewer = Cond((bodies[0], bodies[1]), (then, other))
    return derive(node, fewer, (node.inputs[0], *(node.inputs[1 + i] for i in used))).outputs
