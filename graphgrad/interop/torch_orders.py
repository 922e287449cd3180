"""The orders of a compiled function, run on tensors of torch."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextvars import Context
from copy import copy
from itertools import count
from typing import Any

from ..base.collector import having
from ..base.errors import StateError
from ..compiled import CompiledFunction
from ..differentiate.forward.jvp import jvp
from ..differentiate.travel.importing import cut_out, import_graph
from ..differentiate.vmap.vmap import vmap
from ..ir.graph import Graph
from ..ir.node import Tensor
from ..ir.program import Program
from ..ir.state import RUN
from ..ops.foreign.torch_arrays import array_of, dense, tensor_of
from ..ops.sources import placeholder, placeholder_of
from .orders import Order, first_order

__all__ = ["TorchOrder"]

Places = tuple[int, ...]


class TorchOrder:
    """An order that takes tensors of torch and gives such. What it leads to is made when asked for.

    order  which
    """

    def __init__(self, order: Order, lock: Any = None) -> None:
        self.order = order
        self._lock = threading.RLock() if lock is None else lock
        self._run: Callable[..., Any] | None = None
        self._made: dict[Any, Any] = {}

    @classmethod
    def first(cls, f: CompiledFunction, gradients: int, how: str) -> TorchOrder:
        """The function itself; how: what users call for it."""
        order = cls(first_order(f, gradients, how))
        order._run = f._executable.run.call
        return order

    @property
    def differentiable(self) -> list[bool]:
        """Which outputs have gradients."""
        return [y.type.differentiable for y in self.order.outputs]

    def run(self, number: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs, in memory of their own."""
        dense(tensors, "an input of a graphgrad function:")
        arrays = [array_of(t) for t in tensors]
        made = having(RUN, 0 if number is None else int(number), self._compiled(), *arrays)
        return tuple([tensor_of(a) for a in made])

    def _compiled(self) -> Callable[..., Any]:
        with self._lock:
            if self._run is None:
                f = self.order.family.f
                program = self.order.program
                run = f.backend.compile_with_state(program, program.inputs, (), ())
                run.refine = lambda program: f._executable.passes(program)[0]
                self._run = run.call
            return self._run

    def backward(self, of: Places, by: Places) -> tuple[TorchOrder | None, list[int]]:
        """Gradients of inputs, given those of outputs, by place; and of which inputs there are."""

        def make() -> Any:
            order, found = self.order.derivative(of, by)
            return None if order is None else TorchOrder(order, self._lock), found

        found: tuple[TorchOrder | None, list[int]] = self._once(("backward", of, by), make)
        return found

    def forward(self, by: Places) -> TorchOrder:
        """How the outputs that have gradients move when these inputs do."""

        def make() -> Any:
            order = Context().run(_pushed, self.order, by)
            return TorchOrder(order, self._lock)

        pushed: TorchOrder = self._once(("forward", by), make)
        return pushed

    def batched(self, flags: tuple[bool, ...]) -> TorchOrder:
        """For a batch of examples: the inputs that have its axis have it in front, outputs too."""

        def make() -> Any:
            return TorchOrder(Context().run(_batched, self.order, flags), self._lock)

        batched: TorchOrder = self._once(("batched", flags), make)
        return batched

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            return self._made[key]

    def __deepcopy__(self, memo: Any) -> TorchOrder:
        return self  # it never changes

    def __reduce__(self) -> Any:
        raise TypeError(
            "a graphgrad function is not pickled with a module of torch: save its state_dict(), "
            "and the graph with gg.save"
        )


_batches = count()


def _batched(order: Order, flags: tuple[bool, ...]) -> Order:
    """In a graph of its own, where rules work for each example."""
    if order.counted:
        raise StateError(
            f"{order.family.f!r} draws random numbers without a seed, which torch.func.vmap would "
            "draw anew in each order: give the draws a seed, as gg.random.normal(..., seed=key)"
        )
    family, home = copy(order.family), order.family.graph
    assert home is not None

    part, there = cut_out(home, order.inputs, order.outputs)

    def one_example(*xs: Tensor) -> list[Tensor]:
        inputs = [there[x] for x in order.inputs]
        here = import_graph(part, dict(zip(inputs, xs, strict=True)))
        return [here[there[y]] for y in order.outputs]

    with Graph() as family.graph:
        axis = f"batch {next(_batches)}"
        inputs = [
            placeholder((axis, *x.shape) if flag else x.shape, x.dtype)
            for x, flag in zip(order.inputs, flags, strict=True)
        ]
        outputs = vmap(one_example, [0 if flag else None for flag in flags])(*inputs)
        program, _ = family.f._executable.passes(Program(inputs, outputs))
    return Order(family, order.number, inputs, outputs, program)


def _pushed(order: Order, by: Places) -> Order:
    """Takes what the order takes, and then the tangents of some of it."""
    order.check_number()
    ys = [y for y in order.outputs if y.type.differentiable]
    xs = [order.inputs[i] for i in by]
    with order.building():
        tangents = [placeholder_of(x.type) for x in xs]
        pushed = jvp(ys, xs, tangents, stop_gradients=order.stops)
        return order.following([*order.inputs, *tangents], pushed)
