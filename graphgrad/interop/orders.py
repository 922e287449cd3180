"""A compiled function and its derivatives, as functions of flat arrays, order by order.

Order 0 is the function itself: its inputs are those of the user and the variables that it reads,
its outputs those of the user and what is written. The derivative of an order takes what the order
takes, and gradients of some of its outputs; it gives gradients of some of its inputs. It is made by
`gradients` on the graph of the function, so rules count in it as in any gradient, and it is an
order that can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import Context

from ..base.collector import collector_paused
from ..base.depth import Bounded
from ..base.errors import GradientError, StateError, counted
from ..compiled import CompiledFunction, check_placeholders
from ..differentiate.gradients import gradients
from ..ir.graph import Graph, GraphScope
from ..ir.node import Node, Tensor
from ..ir.program import Program, needed
from ..ops.random.keys import drawn_anew
from ..ops.sources import Assign, Variable, placeholder_of
from ..regions.rules import Rule, temporary_gradient, temporary_rules

__all__ = ["Order", "first_order"]


class Family:
    """What all orders of a function have in common.

    f          the function
    graph      where derivatives are built; None for a function of nothing
    gradients  how many orders of derivatives there are to be
    rules      the temporary rules that count in derivatives: those in force when this was made
    how        what users call the form of the function: the name of its maker
    """

    def __init__(self, f: CompiledFunction, gradients: int, how: str) -> None:
        self.f = f
        self.how = how
        self.gradients = gradients
        self.rules: dict[str, Rule] = temporary_rules()
        tensors = [*f.inputs, *(v.outputs[0] for v in f._access.read)]
        self.graph: Graph | None = tensors[0].graph if tensors else None


class Order:
    """A function of flat arrays: one of the orders.

    number   which derivative it is: 0 is the function itself
    inputs   what it takes
    outputs  what it gives
    program  what runs, after optimisation
    counted  whether it takes the number of the run, too, as the last argument
    """

    def __init__(
        self,
        family: Family,
        number: int,
        inputs: Sequence[Tensor],
        outputs: Sequence[Tensor],
        program: Program,
    ) -> None:
        self.family = family
        self.number = number
        self.inputs = tuple(inputs)
        self.outputs = tuple(outputs)
        self.program = program
        self.counted = family.f._access.counted

    def derivative(self, of: Sequence[int], by: Sequence[int]) -> tuple[Order | None, list[int]]:
        """The gradients of inputs, given those of outputs.

        Parameters:
            of: places of the outputs whose gradients are given.
            by: places of the inputs whose gradients are asked for.

        Returns: the order, None where nothing flows to any; and the inputs, by place, whose
        gradients it gives. To the others nothing flows.

        Raises: GradientError beyond the orders that there are to be; what gradients() raises;
        StateError for rules that read or write what the function does not.
        """
        self.check_number()
        return Context().run(self._derivative, of, by)

    def check_number(self) -> None:
        """GradientError where there is to be no order after this one."""
        family = self.family
        if self.number >= family.gradients:
            raise GradientError(
                f"{family.f!r} was declared to be differentiated "
                f"{counted(family.gradients, 'time')} at most, but is differentiated "
                f"{self.number + 1} times: write {family.how}(gradients={self.number + 1}). "
                "Otherwise its overrides would be lost."
            )

    @collector_paused
    def _derivative(self, of: Sequence[int], by: Sequence[int]) -> tuple[Order | None, list[int]]:
        """In a context of its own: no scope that happens to be open counts."""
        ys, xs = [self.outputs[i] for i in of], [self.inputs[i] for i in by]
        if not ys or not xs:
            return None, []
        with self.building():
            dys = [placeholder_of(y.type) for y in ys]
            dxs = gradients(ys, xs, dys, stop_gradients=self.stops)
            reached = {i: dx for i, dx in zip(by, dxs, strict=True) if dx is not None}
            if not reached:
                return None, []
            order = self.following([*self.inputs, *dys], list(reached.values()))
        return order, list(reached)

    @property
    def stops(self) -> list[Tensor]:
        """Inputs that are computed from others in the graph, and are given here."""
        return [x for x in self.inputs if not x.node.op.source and x.type.differentiable]

    @contextmanager
    def building(self) -> Iterator[None]:
        """Build in the graph of the function, with the rules that counted when it was made."""
        family = self.family
        assert family.graph is not None
        with ExitStack() as stack:
            for scope in (GraphScope(family.graph), Bounded()):
                stack.enter_context(scope)
            for name, rule in family.rules.items():
                stack.enter_context(temporary_gradient(name, rule.fn))
            yield

    def following(self, inputs: list[Tensor], outputs: list[Tensor]) -> Order:
        """The next order, which takes and gives these."""
        self._check(inputs, outputs)
        program, _ = self.family.f._executable.passes(Program(inputs, outputs))
        return Order(self.family, self.number + 1, inputs, outputs, program)

    def _check(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
        """StateError where a rule reads or writes what the function does not."""
        nodes = needed(inputs, outputs)
        check_placeholders(nodes, outputs)
        new = [n for n in nodes if type(n.op) in (Variable, Assign)]
        if new:
            raise StateError(
                f"a gradient of {self.family.f!r} reads or writes variables that the function "
                f"does not:{_listed(new)}\n"
                "Let the function read them too, in one more output, and write no variable in a "
                "rule."
            )
        drawn = [] if self.counted else [n for n in nodes if drawn_anew(n.op)]
        if drawn:
            raise StateError(
                f"a gradient of {self.family.f!r} draws random numbers without a seed, and the "
                f"function does not, so its runs are not counted:{_listed(drawn)}\nGive the draws "
                "a seed, as in gg.random.normal(..., seed=3)."
            )


def _listed(nodes: Sequence[Node]) -> str:
    return "".join(f"\n  {n.name} = {n.op!r}, built at {n.where}" for n in nodes)


def first_order(f: CompiledFunction, gradients: int, how: str) -> Order:
    """The function itself, which gives what is written behind its outputs."""
    inputs = [*f.inputs, *(v.outputs[0] for v in f._access.read)]
    return Order(Family(f, gradients, how), 0, inputs, f._request.results, f.program)
