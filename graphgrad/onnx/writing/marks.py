"""Marks in a model: a region as a local function, and its rule as a second one that nothing calls.

So any runtime computes the values, and whoever loads the model here has the regions with their
rules again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...base.errors import GraphError, GraphGradError
from ...differentiate.levels import Step
from ...differentiate.travel.trace import Trace
from ...ir.node import Node, Region, Tensor
from ...ir.onnx import NoOnnxForm
from ...ir.op import Op
from ...ir.program import Program
from ...ir.residual import Residual
from ...ops.base import Constant, is_zero
from ...regions.boundary import boundary_of
from ...regions.index import marked_regions
from .forms import Forms, Story
from .values import FreshNames, OnnxBlock, OnnxCall, OnnxValue

__all__ = ["REGION", "RULE", "Marked"]

REGION, RULE = "graphgrad.region", "graphgrad.rule"
"""The domains of functions that are regions, and of those that are their rules."""

Values = dict[Tensor, OnnxValue]
Refuse = Callable[[Node | Region, str], None]


class Marked:
    """Writes nodes as they were built, and regions as calls of functions.

    functions  {(domain, name): body}
    refuse     called with what cannot be written, and why
    """

    def __init__(self, forms: Forms, story: Callable[[Node], Story], refuse: Refuse) -> None:
        self.forms = forms
        self.story = story
        self.refuse = refuse
        self.functions: dict[tuple[str, str], OnnxBlock] = {}
        self._names = FreshNames()

    def write(
        self, block: OnnxBlock, values: Values, outputs: Sequence[Tensor], around: Region | None
    ) -> None:
        """The nodes that outputs need beyond the values, into a block; what they make is added."""
        for step in _in_order(values, outputs, around):
            made = self._region(block, values, step) if isinstance(step, Region) else None
            if made is None and isinstance(step, Node):
                made = self._node(block, values, step)
            if made is None:
                return
            values.update(made)

    def _node(self, block: OnnxBlock, values: Values, node: Node) -> Values:
        try:
            if isinstance(node.op, Residual):
                raise NoOnnxForm(
                    "it is part of a gradient, and marks=True writes no gradients, only the "
                    "marks that they are derived from"
                )
            if inside := _marked_inside(node.op):
                raise NoOnnxForm(f"there is a mark inside it, {inside}, in a loop or a branch")
            if node.stamp is not None:
                raise NoOnnxForm("it has a rule by its op type: mark it with a region instead")
            ys = self.forms.place(
                block, node.op, [values[t] for t in node.inputs], self.story(node)
            )
        except NoOnnxForm as error:
            self.refuse(node, str(error))
            ys = tuple([OnnxValue(t.name, t.dtype, t.shape) for t in node.outputs])
        return {
            t: OnnxValue(v.name, t.dtype, t.shape) for t, v in zip(node.outputs, ys, strict=True)
        }

    # --- regions --------------------------------------------------------------------------------

    def _region(self, block: OnnxBlock, values: Values, region: Region) -> Values:
        """A call of the function of a region."""
        boundary = boundary_of(region)
        inputs, outputs = (*boundary.inputs, *boundary.undeclared), boundary.outputs
        name = self._names.fresh(f"{_identifier(region.name)}_1")
        body, inside = OnnxBlock(), {}
        for t in inputs:
            inside[t] = body.give(t.node.name, t.dtype, t.shape)
        self.write(body, inside, outputs, region)
        body.results = [_own(body, inside[t]) for t in outputs if t in inside]
        body.metadata = {
            "graphgrad.rule": region.name,
            "graphgrad.order": region.order,
            "graphgrad.escape": region.escape,
            "graphgrad.inputs": str(len(boundary.inputs)),
            "graphgrad.where": region.where,
        }
        self.functions[REGION, name] = body
        self._told(region, body, inside, name)
        made = {t: OnnxValue(block.names.fresh(t.node.name), t.dtype, t.shape) for t in outputs}
        given = tuple([values[t].name for t in inputs])
        story = {"graphgrad.region": region.name, "graphgrad.where": region.where}
        results = tuple([v.name for v in made.values()])
        block.calls.append(OnnxCall(name, given, results, {}, REGION, story))
        return made

    def _told(self, region: Region, body: OnnxBlock, inside: Values, name: str) -> None:
        """The attributes of a region, and the function of its rule."""
        try:
            body.metadata["graphgrad.attributes"] = json.dumps(dict(region.attrs))
        except (TypeError, ValueError):
            self.refuse(region, f"its attributes {region.attrs} are not JSON")
            return
        try:
            self.functions[RULE, name] = self._rule(region, inside)
        except NoOnnxForm as error:
            self.refuse(region, str(error))

    def _rule(self, region: Region, inside: Values) -> OnnxBlock:
        """What the rule of a region builds, from inputs, outputs, residuals and gradients."""
        try:
            trace = Trace(region, region.rule)
        except GraphGradError as error:
            raise NoOnnxForm(f"its rule cannot be traced: {error}") from error
        if trace.rule.jvp is not None:
            raise NoOnnxForm("its rule has a forward mode of its own")
        if any(True for _ in marked_regions(trace.graph)):
            raise NoOnnxForm("its rule opens regions of its own")
        return _RuleWriter(self, region, trace, inside).body()


class _RuleWriter:
    """The function of one rule."""

    def __init__(self, marked: Marked, region: Region, trace: Trace, inside: Values) -> None:
        self.marked = marked
        self.region = region
        self.trace = trace
        self.inside = inside
        self.block = OnnxBlock()
        self.values: Values = {}
        self.residuals: list[str] = []

    def body(self) -> OnnxBlock:
        """Its inputs are those of the site, its outputs, residuals, gradients of the outputs."""
        boundary, block = boundary_of(self.region), self.block
        own = {t: block.give(t.node.name, t.dtype, t.shape) for t in boundary.inputs}
        made = [block.give(t.node.name, t.dtype, t.shape) for t in boundary.outputs]
        for t, value in zip(boundary.outputs, made, strict=True):
            own.setdefault(t, value)
        for stands, captured in self.trace.graph.captures.items():
            self.values[stands] = self._captured(captured, own)
        for dy in self.trace.given:
            if dy is not None:
                self.values[dy] = block.give("dy", dy.dtype, dy.shape)
        entries = [(t, d) for t, d in self.trace.entries]
        cotangents = [d for _, d in entries if isinstance(d, Tensor) and not is_zero(d)]
        self._build(cotangents)
        returns = []
        for t, d in entries[: len(boundary.inputs)]:
            returns.append(self._entry(t, d))
        if len(entries) > len(boundary.inputs):
            raise NoOnnxForm("its rule gives gradients of tensors that are not its inputs")
        block.metadata = {
            "graphgrad.residuals": json.dumps(self.residuals),
            "graphgrad.returns": json.dumps(returns),
        }
        return block

    def _build(self, outputs: Sequence[Tensor]) -> None:
        program = Program(list(self.values), outputs)
        inputs = [self.values[t] for t in program.inputs]
        made = self.marked.forms.program(self.block, program, inputs)
        for t, value in zip(outputs, made, strict=True):
            self.values[t] = value

    def _entry(self, t: Tensor, d: Any) -> str:
        if is_zero(d):
            return "zero"
        if isinstance(d, Tensor):
            self.block.results.append(_own(self.block, self.values[d]))
            return "dx"
        if isinstance(d, int | float) and not isinstance(d, bool):
            raise NoOnnxForm(f"its rule returns the number {d}: return a tensor")
        return "none"

    def _captured(self, t: Tensor, own: Mapping[Tensor, OnnxValue]) -> OnnxValue:
        """What a tensor of the home is here."""
        base = t.node.inputs[0] if isinstance(t.node.op, Residual) else t
        if base in own:
            return own[base]
        if isinstance(base.node.op, Constant):
            return self.block.constant(base.node.op.value, base.node.name)
        if base not in self.inside:
            raise NoOnnxForm(
                f"its rule reads {base.name}, which is neither read nor built directly inside"
            )
        self.residuals.append(self.inside[base].name)
        return self.block.give(base.node.name, base.dtype, base.shape)


def _marked_inside(op: Op) -> str:
    """Where something is marked in the bodies of an op; "" where nothing is."""
    pending = list(op.bodies)
    for body in pending:
        for node in body.nodes:
            if node.stamp is not None or (node.region is not None and node.origin is None):
                return str(node.where if node.region is None else node.region.where)
            pending += node.op.bodies
    return ""


def _own(block: OnnxBlock, value: OnnxValue) -> OnnxValue:
    """A result that is not an input, and no other result."""
    name = block.names.fresh(value.name)
    block.calls.append(OnnxCall("Identity", (value.name,), (name,)))
    return OnnxValue(name, value.dtype, value.shape)


def _identifier(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_") or "rule"


# --- order -------------------------------------------------------------------------------------


def _in_order(
    given: Iterable[Tensor], outputs: Sequence[Tensor], around: Region | None
) -> list[Step]:
    """The nodes and regions directly inside a region that outputs need, inputs first; GraphError
    where regions need each other in a circle."""
    known = set(given)
    order: list[Step] = []
    state: dict[Step, bool] = {}
    stack = [_step_of(t.node, around) for t in reversed(outputs) if t not in known]
    while stack:
        step = stack[-1]
        if step in state:
            stack.pop()
            if not state[step]:
                state[step] = True
                order.append(step)
            continue
        state[step] = False
        for t in _reads(step):
            if t in known:
                continue
            before = _step_of(t.node, around)
            if state.get(before) is False and before is not step:
                raise GraphError(f"{before!r} and {step!r} depend on each other in a cycle")
            if before not in state:
                stack.append(before)
    return order


def _reads(step: Step) -> Iterator[Tensor]:
    if isinstance(step, Node):
        yield from step.inputs
        for node in step.controls:
            yield from node.outputs[:1]
    else:
        boundary = boundary_of(step)
        yield from (*boundary.inputs, *boundary.undeclared)


def _step_of(node: Node, around: Region | None) -> Step:
    """The node, or the region that holds it directly inside another."""
    step: Step = node
    region = node.region
    while region is not around:
        if region is None:
            raise GraphError(f"{node!r} is read inside {around!r}, and is not an input of it")
        step, region = region, region.parent
    return step
