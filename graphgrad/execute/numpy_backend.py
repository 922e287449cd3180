"""NumPy: always there, no compiler."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir.node import Node
from ..ir.op import Op
from ..ir.program import Program
from ..ir.types import Array
from ..lower.schedule import Plan, schedule
from ..ops.control import Cond
from ..ops.reductions import ReduceSum
from .backend import Compiled, Kernel, Kernels, loop
from .checked import checked_loop
from .numpy_kernels import KERNELS, direct
from .results import check_promise, own
from .straight import straight_line

LONG = 20_000  # steps; from here on a loop is cheaper than compiling a function


class NumpyBackend:
    """Runs a plan with NumPy, by IEEE rules: NumPy's floating-point warnings are off.

    check: verify every kernel's result, and that no kernel writes into what it reads. Slow.
    """

    name = "numpy"
    kernels: Kernels = KERNELS

    def __init__(self, check: bool = False) -> None:
        self.check = check

    def compile(self, program: Program) -> Compiled:
        """The program as a function of arrays, safe to call from many threads."""
        run = self.body(program)
        wanted = program.outputs

        def call(*arrays: Array) -> tuple[Array, ...]:
            with np.errstate(all="ignore"):
                return own(run(*arrays), arrays, wanted)

        return call

    def body(self, program: Program) -> Compiled:
        """The program as a function whose results may share memory with its arguments."""
        bind = Binding(self.kernels)
        plan = self.plan(program, bind)
        if self.check:
            return checked_loop(plan, self.kernels.of)
        if len(plan.steps) > LONG or len(plan.constants) > LONG:
            return loop(plan, self.kernels.of)
        return straight_line(
            plan,
            [bind.step(s.node) for s in plan.steps],
            [self.kernels.of(n.op)() for _, n in plan.constants],
        )

    def plan(self, program: Program, bind: Binding | None = None) -> Plan:
        """How the program will run."""
        bind = bind or Binding(self.kernels)
        return schedule(program, bind.ufunc, bind.is_fresh)


class Binding:
    """Kernels of the ops of one program, each bound once."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._ufuncs: dict[tuple[Op, int], Kernel | None] = {}
        self._bound: dict[Op, Kernel] = {}

    def ufunc(self, node: Node) -> Kernel | None:
        """The one element-wise ufunc that the node is, which can be told where to write."""
        if not node.op.elementwise:
            return None
        key = (node.op, len(node.inputs))
        if key not in self._ufuncs:
            self._ufuncs[key] = direct(*key)
        return self._ufuncs[key]

    def is_fresh(self, node: Node) -> bool:
        """Whether the kernel surely returns new memory."""
        return type(node.op) is ReduceSum

    def step(self, node: Node) -> Kernel:
        """What runs for a node."""
        found = self.ufunc(node)
        if found is not None:
            return found
        found = self._bound.get(node.op)
        if found is None:
            found = self._bound[node.op] = self._kernels.of(node.op)
        return found if all(t.type.static for t in node.outputs) else promised(found, node)


def promised(kernel: Kernel, node: Node) -> Kernel:
    """kernel, with the part of the promise checked that was not known when the node was built."""

    def run(*arrays: Any) -> Any:
        made = kernel(*arrays)
        for i, one in enumerate(made if len(node.outputs) > 1 else (made,)):
            check_promise(node, i, one)
        return made

    return run


@KERNELS.override(Cond)
def _cond(op: Cond) -> Kernel:
    then, other = (NumpyBackend().body(p) for p in op.programs)
    then_reads, other_reads = op.reads

    def run(pred: Any, *arrays: Any) -> Any:
        if pred:
            found = then(*[arrays[i] for i in then_reads])
        else:
            found = other(*[arrays[i] for i in other_reads])
        return found[0] if len(found) == 1 else found

    return run
