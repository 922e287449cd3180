"""A plan as one Python function with a line for each step: nothing is looked up while it runs.

def run(v0, v1):
    v3 = f0(v0, v1)
    v3 = f1(v3)
    return (v3,)
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from ..lower.schedule import NEVER, Plan, Step
from .backend import Compiled, Kernel
from .results import add_note

_FILE = "<graphgrad plan>"


def straight_line(plan: Plan, kernels: Sequence[Kernel], constants: Sequence[Any]) -> Compiled:
    """The function. kernels: one per step; constants: one per constant of the plan."""
    names: dict[int, str] = {}
    space: dict[str, Any] = {}
    for kernel in kernels:
        if id(kernel) not in names:
            names[id(kernel)] = name = f"f{len(names)}"
            space[name] = kernel
    called = {slot: f"c{slot}" for slot, _ in plan.constants}
    for (slot, _), value in zip(plan.constants, constants, strict=True):
        space[called[slot]] = value
    values = [called.get(slot, f"v{slot}") for slot in range(plan.slots)]
    lines = [f"def run({', '.join(values[: len(plan.program.inputs)])}):"]
    lines += [_line(s, names[id(k)], values) for s, k in zip(plan.steps, kernels, strict=True)]
    lines.append(f" return ({''.join(values[slot] + ',' for slot in plan.outputs)})")
    exec(compile("\n".join(lines), _FILE, "exec"), space)
    return _noting(space.pop("run"), plan, values)


def _line(step: Step, kernel: str, values: list[str]) -> str:
    args = [values[slot] for slot in step.inputs]
    if step.into != NEVER:
        args.append(values[step.into])
    made = ", ".join([values[slot] for slot in step.outputs])
    line = f" {made} = {kernel}({', '.join(args)})"
    if step.frees:
        line += f"; {' = '.join([values[slot] for slot in step.frees])} = None"
    return line


def _noting(run: FunctionType, plan: Plan, values: list[str]) -> Compiled:
    """run, whose errors gain a note: the line of the traceback says which step it was."""
    code = run.__code__

    def noting(*arrays: Any) -> Any:
        try:
            return run(*arrays)
        except Exception as error:
            _note(error, code, plan, values)
            raise

    return noting


def _note(error: Exception, code: CodeType, plan: Plan, values: list[str]) -> None:
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    if trace is None or not 2 <= trace.tb_lineno < 2 + len(plan.steps):
        return
    step = plan.steps[trace.tb_lineno - 2]
    here = trace.tb_frame.f_locals | trace.tb_frame.f_globals
    add_note(error, step.node, [here[values[slot]] for slot in step.inputs])
