"""The gradients of loops: a scan from the last run to the first, over the same body graph.

Each of its runs takes what the run of the loop took, which the loop has kept, computes that run
again, and gives the gradients of what it took from those of what it carried on and made
[Griewank and Walther 2008, "Evaluating Derivatives", chapter 12]. Gradients of what all runs read
are added up on the way. It is a scan like any other, so that orders repeat this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base.errors import GradientError
from ...base.kinds import accumulated_in
from ...ir.graph import current
from ...ir.node import Node, Region, Tensor
from ...ir.op import Gradients
from ...ir.program import Program
from ...ir.types import Dim, tensor_type
from ...ops.base import NO_GRAD, ZERO, ZeroTensor, cast, constant, is_zero, wants
from ...ops.control import (
    BodyGraph,
    BodyScope,
    Scan,
    While,
    around,
    given_here,
    looped,
    needed,
    row_numbers,
)
from ...ops.elementwise.logic import less, where
from ...ops.sources import Placeholder
from ...regions.boundary import boundary_of
from ..gradients import gradients
from ..plan import stops
from ..travel.closures import held_in
from ..travel.trace import TraceGraph
from .bodies import body_of, here, zero_in

Dys = Sequence[Tensor | None]


class OneRun(NamedTuple):
    """One run of a loop, as its body has it.

    taken      the carries that it takes
    after      the carries that it leaves; of the last run they are `left`, around the body
    rows       what it makes
    kept       what it takes -> where that is kept for every run
    constants  what every run reads -> what that stands for
    length     how many runs there are, where that is known
    backward   whether the loop goes from the last row to the first
    active     which rows of what is kept are those of runs; None: all
    """

    body: BodyGraph
    taken: Sequence[Tensor]
    after: Sequence[Tensor]
    left: Sequence[Tensor]
    rows: Sequence[Tensor]
    kept: Mapping[Tensor, Tensor]
    constants: Mapping[Tensor, Tensor]
    length: Dim
    backward: bool = False
    active: Tensor | None = None


class Carry(NamedTuple):
    """What the scan of a gradient carries on: a cotangent of a carry, or a sum over the runs.

    of     the tensor that it is the gradient of
    given  what a run takes of it
    after  what it leaves
    first  what the first run takes
    """

    of: Tensor
    given: Tensor
    after: Tensor
    first: Tensor


def scan_vjp(op: Scan, node: Node, *dys: Tensor | None) -> Gradients:
    """One gradient for each input: of the first carries, the stacked tensors and the constants."""
    program = here(*op.programs)
    taken, slices, read = op.parts(program.inputs)
    _, stacked, constants = op.parts(node.inputs)
    c, end = op.carries, len(program.outputs)
    run = OneRun(
        body_of(program),
        taken,
        program.outputs[:c],
        node.outputs[:c],
        program.outputs[c:],
        dict(zip((*taken, *slices), (*node.outputs[end:], *stacked), strict=True)),
        dict(zip(read, constants, strict=True)),
        op.runs_of([t.type for t in node.inputs]),
        op.reverse,
    )
    return Reverse(run, dys[:c], dys[c:end], dys[end:]).gradients(program.inputs, node.inputs)


def while_vjp(op: While, node: Node, *dys: Tensor | None) -> Gradients:
    """One gradient for each input: of the first carries and the constants."""
    program = here(op.programs[1])
    c, active = op.carries, None
    if op.max_trips is not None:
        active = less(constant(np.arange(op.max_trips)), node.outputs[-1])
    elif any(isinstance(graph, TraceGraph) for graph in around(current().graph)):
        active = less(
            row_numbers(None, node.outputs[c]), node.outputs[-1]
        )  # of examples that go on
    run = OneRun(
        body_of(program),
        program.inputs[:c],
        program.outputs,
        node.outputs[:c],
        (),
        dict(zip(program.inputs[:c], node.outputs[c:-1], strict=True)),
        dict(zip(program.inputs[c:], node.inputs[c:], strict=True)),
        op.max_trips,
        active=active,
    )
    return Reverse(run, dys[:c], (), dys[c:-1]).gradients(program.inputs, node.inputs)


class Reverse:
    """The scan that gives the gradients of a loop, as it is built.

    left    gradients of the carries behind the last run
    rows    of what the runs made, by place
    begun   of what the runs took, as it was kept, by place
    moving  the carries, by place, through which a gradient may flow
    slices  placeholder of the body -> the stack whose rows it stands for
    """

    def __init__(self, run: OneRun, left: Dys, rows: Dys, begun: Dys) -> None:
        self.run = run
        self.left = left
        self.rows = _flowing(rows, run.rows)
        self.begun = _flowing(begun, run.taken)
        self.moving = self._moving()
        self.slices = dict(run.kept)
        self.active = None if run.active is None else self._slice(run.active)

    def gradients(self, inputs: Sequence[Tensor], given: Sequence[Tensor]) -> Gradients:
        """One for each tensor that is given for an input of the body."""
        pairs = zip(inputs, given, strict=True)
        wanted = {t for t, x in pairs if x.type.differentiable and wants(x)}
        if not wanted or not (self.moving or self.rows):
            return [NO_GRAD] * len(inputs)
        others = wanted.difference(self.run.taken)
        answers = self._answers([t for t in inputs if t in others])
        return [answers.get(t, NO_GRAD) if t in wanted else NO_GRAD for t in inputs]

    def _answers(self, others: list[Tensor]) -> dict[Tensor, Any]:
        """The gradients of the carries that move, and of what else runs read."""
        run = self.run
        moving = [run.taken[i] for i in self.moving]
        cotangents = given_here(run.body, [t.type for t in moving])
        grads = self._differentiated(cotangents, [*moving, *others])
        flows = {t: dx for t in others if (dx := grads[t]) is not None and not is_zero(dx)}
        rows = {t: dx for t, dx in flows.items() if t in run.kept}
        terms = {t: dx for t, dx in flows.items() if t in run.constants}
        carries = self._carries(cotangents, [grads[t] for t in moving], terms)
        outputs = self._scan(carries, [*rows.values()]) if carries or rows else ()
        zeros = dict.fromkeys((t for t in others if grads[t] is not None), ZERO)
        pairs = zip((*(carry.of for carry in carries), *rows), outputs, strict=False)
        return {**zeros, **{t: cast(dx, t.dtype) for t, dx in pairs}}

    def _carries(
        self, cotangents: Sequence[Tensor], dxs: Dys, terms: Mapping[Tensor, Tensor]
    ) -> list[Carry]:
        """The cotangents of the carries that move, of which a run gives dxs; then sums of terms."""
        run = self.run
        wide = [tensor_type(t.shape, accumulated_in(t.dtype)) for t in terms]
        totals = given_here(run.body, wide)
        given = [*cotangents, *totals]
        with BodyScope(run.body):
            after = [self._before(i, dx) for i, dx in zip(self.moving, dxs, strict=True)]
            pairs = zip(totals, terms.values(), strict=True)
            after += [total + cast(dx, total.dtype) for total, dx in pairs]
            if self.active is not None:
                after = [where(self.active, *pair) for pair in zip(after, given, strict=True)]
        first = [self._first(i) for i in self.moving]
        first += [cast(_zeros(run.constants[t]), to.dtype) for t, to in zip(terms, wide)]
        of = [*(run.taken[i] for i in self.moving), *terms]
        return list(map(Carry, of, given, after, first))

    def _moving(self) -> list[int]:
        run, leads = self.run, _leads(self.run)
        some = [i for i, t in enumerate(run.taken) if t.type.differentiable]
        moving = {i for i in some if self.left[i] is not None or i in self.begun}
        reach = {t for i in self.rows for t in leads[run.rows[i]]}
        while True:
            reach |= {t for i in moving for t in leads[run.after[i]]}
            more = {i for i in some if run.taken[i] in reach} - moving
            if not more:
                return sorted(moving)
            moving |= more

    def _differentiated(
        self, carried: Sequence[Tensor], xs: Sequence[Tensor]
    ) -> dict[Tensor, Tensor | None]:
        """Gradients of what a run leaves and makes, with respect to what it takes and reads."""
        run = self.run
        ys = [run.after[i] for i in self.moving] + [run.rows[i] for i in self.rows]
        seeds = [*carried, *(self._row(run.rows[i], dy) for i, dy in self.rows.items())]
        with BodyScope(run.body):
            dxs = gradients(ys, list(xs), grad_ys=seeds)
        return dict(zip(xs, dxs, strict=True))

    def _before(self, i: int, dx: Tensor | None) -> Tensor:
        """The gradient of a carry that a run took: through the run, and of what was kept of it."""
        taken, dy = self.run.taken[i], self.begun.get(i)
        kept = None if dy is None else self._row(taken, dy)
        if dx is None or is_zero(dx):
            return zero_in(self.run.body, taken) if kept is None or is_zero(kept) else kept
        return dx if kept is None or is_zero(kept) else dx + kept

    def _first(self, i: int) -> Tensor:
        dy = self.left[i]
        return _zeros(self.run.left[i]) if dy is None or is_zero(dy) else dy

    def _row(self, t: Tensor, stack: Tensor) -> Tensor:
        """The gradient of one row, where those of all are stacked."""
        return ZeroTensor(t) if is_zero(stack) else self._slice(stack)

    def _slice(self, stack: Tensor) -> Tensor:
        """What stands for a row in the body."""
        (row,) = given_here(self.run.body, [tensor_type(stack.shape[1:], stack.dtype)])
        self.slices[row] = stack
        return row

    def _scan(self, carries: Sequence[Carry], rows: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """The outputs of the scan, which reads no more than it and its derivatives need."""
        run = self.run
        given = [carry.given for carry in carries]
        after = [carry.after for carry in carries]
        read = needed(run.body, [*after, *rows, *held_in(run.body)], [*given, *self.slices])
        slices = {t: stack for t, stack in self.slices.items() if t in read}
        length = run.length if isinstance(run.length, int) or not slices else None
        if length is None and not slices:  # whose rows are counted
            slices = dict([next(iter(self.slices.items()))])
        given += slices
        inputs = [*(carry.first for carry in carries), *slices.values()]
        _check_closed(Program([*given, *run.body.captures], [*after, *rows]), run.body)
        return looped(run.body, given, after, rows, inputs, length, not run.backward)


def _check_closed(program: Program, body: BodyGraph) -> None:
    """GradientError where the loop backward reads what the loop had and it was not given."""
    for node in program.nodes:
        if isinstance(node.op, Placeholder):
            raise GradientError(
                f"a gradient rule in the {body.name} reads {node.outputs[0]!r}, which the "
                "gradient of that loop did not store, because the rule did not show that it "
                "needs it.\n"
                "Close over the tensor itself, or declare it: override_gradient(rule, "
                "inputs=[...])."
            )


def _flowing(dys: Dys, ts: Sequence[Tensor]) -> dict[int, Tensor]:
    """The gradients that flow, by place."""
    pairs = enumerate(zip(dys, ts, strict=True))
    return {i: dy for i, (dy, t) in pairs if dy is not None and t.type.differentiable}


def _zeros(x: Tensor) -> Tensor:
    """Zeros like x, as a node."""
    zero = ZeroTensor(x)
    zero.node  # noqa: B018
    return zero


def _leads(run: OneRun) -> dict[Tensor, set[Tensor]]:
    """Tensor of a run -> the carries that it took to which a gradient may flow from there.

    The rule of a region may lead from anything that leaves it to anything that it reads.
    """
    ends = [*run.after, *run.rows]
    nodes: Sequence[Node] = Program([*run.kept, *run.constants], ends).nodes
    question: Any = current().question
    tree = question.tree
    around = {n: tree.chain(tree.around(n)) for n in run.body.nodes}
    regions = {region: _reads(region) for chain in around.values() for region in chain}
    if regions:
        nodes = run.body.nodes
    leads: defaultdict[Tensor, set[Tensor]] = defaultdict(set, {t: {t} for t in run.taken})
    known, count = -1, 0
    while known != count:
        for node in nodes:
            reads = [] if stops(node, question) else [*node.inputs]
            reads += [t for region in around[node] for t in regions[region]]
            reached = set().union(*(leads[t] for t in reads if t.type.differentiable))
            for t in node.outputs:
                leads[t] |= reached
        known, count = count, sum(map(len, leads.values()))
        if not regions:  # nodes read what was built before them
            break
    return leads


def _reads(region: Region) -> list[Tensor]:
    """What a region reads, declared or not."""
    boundary = boundary_of(region)
    return [*boundary.inputs, *boundary.reads]


Scan.vjp = scan_vjp
While.vjp = while_vjp
