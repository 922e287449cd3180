"""Builds in a graph what a plan says, beside what is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..differentiate.additive import note_built_again
from ..differentiate.travel.transplant import Tensors, Transplant
from ..ir.build import build
from ..ir.context import Within
from ..ir.graph import entering
from ..ir.node import Graph, HealedForm, Node, Region, Tensor
from ..ir.op import Op
from ..ir.program import Program
from ..ops.base import apply, constant
from ..ops.shape.reshaping import (
    BroadcastTo,
    Reshape,
    broadcast_like,
    broadcast_to,
    expand_dims,
    squeeze,
)
from .forms import StableForm
from .guard import guarded
from .plan import HealingPlan, closed_around, smooth_inputs
from .reading import Fit, OutputOf, is_elementwise
from .terms import ATOM, CALL, SUM, Term

MOST_FACTORS = 4
"""Of so many factors a product is built one by one, so that no power overflows."""


def healed(graph: Graph, plan: HealingPlan, ys: Sequence[Tensor]) -> list[Tensor]:
    """What stands for tensors of a graph, built in it by a plan.

    Of what is open where this is called, nothing counts but the calls of rules around.
    """
    context = entering(graph)
    context.without_maps()
    context.region = None
    with Within(context):
        made = HealedBuild(graph, plan)
        made.run(plan.built)
        return [made.tensors.get(y, y) for y in ys]


class HealedBuild(Transplant):
    """Builds a healed graph within itself; made: term -> the tensor of it."""

    def __init__(self, graph: Graph, plan: HealingPlan) -> None:
        super().__init__(graph, {})
        self.plan = plan
        self.made: dict[Term, Tensor] = {}

    def outside(self, t: Tensor) -> Tensor:
        """What is not rewritten, as it is."""
        return t

    def owns(self, region: Region) -> bool:
        """A region that is open goes on."""
        return super().owns(region) and not region.open

    def outside_region(self, region: Region) -> Region:
        """The open region."""
        return region

    def controls(self, node: Node) -> tuple[Node, ...]:
        """What runs before a node, healed or as it is."""
        return tuple(dict.fromkeys(self.tensor(t).node for c in node.controls for t in c.outputs))

    def opened(self, region: Region, new: Region) -> None:
        """What is chosen for a region is for the new one."""
        note_built_again(new, region)

    def place(self, node: Node, inputs: Tensors) -> Tensors:
        """The rewritten node, or the node on inputs of which some are rewritten."""
        plan, start = self.plan, len(self.graph.nodes)
        name = ""
        of: tuple[int, ...] = (node.index,)
        if node in plan.terms:
            made = self._make(plan.terms[node], node)
            outputs: Tensors = (self._fitted(made, node.outputs[0]),)
            name = plan.fired[node][0].name
            of = tuple(sorted(n.index for n in plan.within(node) if n.inputs))
        elif node in plan.spectral:
            found = plan.spectral[node]
            outputs = (found.build(self.tensor(found.x)),)
            name, of = found.identity.name, tuple(sorted(n.index for n in found.inside))
        elif node in plan.guards:
            made, copies = guarded(*inputs)
            outputs, name, of = (made,), "where", ()
            for new, old in [(made.node, node), *copies]:
                note_built_again(new, old)
        else:
            new = self.anew(node, self._as_planned(node, inputs))
            note_built_again(new, node)
            outputs = new.outputs
        self._note(node, start, name, of)
        return outputs

    def _note(self, node: Node, start: int, name: str, of: tuple[int, ...]) -> None:
        """Where the new nodes are from."""
        nodes = self.graph.nodes
        for new in nodes[start:]:
            new.position, new.scope = node.position, node.scope
        if len(nodes) > start:
            self.graph.healed.append(HealedForm(start, len(nodes), name, of))

    def _as_planned(self, node: Node, inputs: Tensors) -> Tensors:
        """The inputs of a node that is built anew: conditions and steps ask what was written.

        In a region they ask what enters it.
        """
        if closed_around(node) is not None:
            return inputs
        smooth = set(smooth_inputs(node))
        pairs = zip(node.inputs, inputs, strict=True)
        return tuple([new if t in smooth else t for t, new in pairs])

    def op(self, node: Node) -> Op:
        """The op of a node, with healed bodies."""
        op = super().op(node)
        if node not in self.plan.inner or not self.plan.heals_within(node):
            return op
        return op.replace_bodies([_healed_body(body) for body in op.bodies])

    def _fitted(self, made: Tensor, y: Tensor) -> Tensor:
        assert made.dtype is y.dtype, (made, y)
        different = made.shape != y.shape
        return (
            broadcast_like(made, y) if different and None in y.shape else _in_shape(made, y.shape)
        )

    def _get(self, term: Term, node: Node) -> Tensor:
        """The tensor of a term, which is made where there is none."""
        t = self.plan.standing(term, node)
        if t is not None:
            return self.tensor(t)
        made = self.made.get(term)
        if made is None:
            made = self.made[term] = self._make(term, node)
        return made

    def _make(self, term: Term, node: Node) -> Tensor:
        if term.kind == ATOM:
            return self.tensor(term.key)
        if term.kind == CALL:
            return self._call(term, node)
        if term.kind == SUM:
            return self._sum(term, node)
        return self._product(term, node)

    def _product(self, term: Term, node: Node) -> Tensor:
        """The product; above a quotient powers are multiplied one by one, between the divisions."""
        below = [(self._get(b, node), -e) for b, e in term.parts if e < 0]
        above = [(self._get(b, node), e) for b, e in term.parts if e > 0]
        if not below or sum(e for _, e in above) > MOST_FACTORS:
            factors = [x if e == 1 else x**e for x, e in above]
        else:
            factors = [x for x, e in above for _ in range(e)]
        made = factors.pop(0) if factors else None
        for x, e in below:
            for divisor in [x] * e if e <= MOST_FACTORS else [x**e]:
                made = 1.0 / divisor if made is None else made / divisor
                if factors:
                    made = made * factors.pop(0)
        assert made is not None
        for x in factors:
            made = made * x
        return made

    def _sum(self, term: Term, node: Node) -> Tensor:
        """The sum, of which what is added comes before what is taken away."""
        written, rest, number = self.plan.as_written(term, node)
        pieces = [(self.tensor(t), c) for t, c in written]
        pieces += [(self._get(part, node), c) for part, c in rest]
        if not pieces:
            return self._number(number, node)
        made: Tensor | None = self._number(number, node) if number > 0 else None
        for x, c in sorted(pieces, key=lambda item: item[1] < 0):
            size = x if abs(c) == 1 else x * abs(c)
            if made is None:
                made = -size if c < 0 else size
            else:
                made = made - size if c < 0 else made + size
        assert made is not None
        return made - (-number) if number < 0 else made

    def _number(self, c: float, node: Node) -> Tensor:
        return constant(c, node.outputs[0].dtype)

    def _call(self, term: Term, node: Node) -> Tensor:
        key: Any = term.key
        if isinstance(key, Fit):
            return _in_shape(self._get(term.parts[0], node), key.shape)
        args = [self._get(t, node) for t in term.parts]
        if not is_elementwise(key):  # axes are those of the term
            args = [_in_shape(x, t.shape) for x, t in zip(args, term.parts, strict=True)]
        if isinstance(key, StableForm):
            return key(*args)
        if isinstance(key, OutputOf):
            return build(key.op, tuple(args)).outputs[key.index]
        return apply(key, *args)


def _healed_body(body: Program) -> Program:
    """The program of a body, which is nobody else's, with what it gives healed."""
    graph: Any = body.outputs[0].graph
    outputs = healed(graph, HealingPlan(list(body.nodes), body.outputs), body.outputs)
    return Program(body.inputs, outputs)


def _in_shape(x: Tensor, shape: Any) -> Tensor:
    """x with other axes of length 1, or broadcast."""
    if x.shape == shape:
        return x
    if all(isinstance(d, int) for d in (*x.shape, *shape)):
        if _size(x.shape) == _size(shape):
            return apply(Reshape(tuple(shape)), x)
        return apply(BroadcastTo(tuple(shape)), x)
    ones = tuple([i for i, d in enumerate(x.shape) if d == 1])
    longer = [d for i, d in enumerate(x.shape) if i not in ones]
    if longer == [d for d in shape if d != 1]:
        return expand_dims(squeeze(x, ones), tuple([i for i, d in enumerate(shape) if d == 1]))
    return broadcast_to(x, shape)


def _size(shape: Any) -> int:
    n = 1
    for d in shape:
        n *= d
    return n
