"""Programs within a limit of memory: of those that fit, one that keeps what it has room for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..base.errors import ExecutionError
from ..ir.program import Program
from .room import FREELY, Policy

Optimised = Callable[..., tuple[Program, Any]]
DEEPEST = 2  # segments within segments
TRIES = 3  # sizes of room, each of which fits better


class Peak(NamedTuple):
    """Bytes that a run of a program takes at most; `exact` where that is known."""

    bytes: int
    exact: bool


class Fitting:
    """What optimises programs so that a run takes no more than so many bytes.

    optimised(program, watch=, policy=): the program, and what was done to it
    peak_of(program): the memory of a run
    """

    def __init__(
        self, limit: int, optimised: Optimised, peak_of: Callable[[Program], Peak]
    ) -> None:
        self.limit, self.optimised, self.peak_of = limit, optimised, peak_of

    def __call__(self, program: Program, watch: Any = None) -> tuple[Program, Any]:
        """The program; ExecutionError, with the bytes that are needed, where none fits."""
        tries = _Tries(self, program)
        policy = tries.chosen()
        if policy is None:
            raise ExecutionError(
                f"memory={self.limit:,} bytes are not enough: a run needs at least "
                f"{min(tries.peaks.values()):,} beyond inputs, variables and constants, even if "
                "everything that can be recomputed is"
            )
        return self.optimised(program, watch=watch, policy=policy)


class _Tries:
    """The policies that were tried for one program, and the bytes that it takes by each."""

    def __init__(self, fitting: Fitting, program: Program) -> None:
        self.fitting, self.program = fitting, program
        self.peaks: dict[Policy, int] = {}

    def chosen(self) -> Policy | None:
        """One that fits: without segments, if there is one."""
        if self._over(FREELY) <= 0:
            return FREELY
        if not any(op.bodies for op in self.program.ops):
            return None
        policies = (self._with_room(segments) for segments in range(1 + DEEPEST))
        return next((policy for policy in policies if policy is not None), None)

    def _with_room(self, segments: int) -> Policy | None:
        """With as much room as fits."""
        least = Policy(0, segments)
        over = self._over(least)
        if over > 0:
            return None
        room = -over
        for _ in range(TRIES):
            policy = Policy(room, segments)
            over = self._over(policy)
            if over <= 0:
                return policy
            room -= over
            if room <= 0:
                break
        return least

    def _over(self, policy: Policy) -> int:
        """By how many bytes it takes more than it may."""
        after, _ = self.fitting.optimised(self.program, policy=policy)
        peak = self.fitting.peak_of(after)
        if not peak.exact:
            raise ExecutionError(_unknown(after))
        self.peaks[policy] = peak.bytes
        return peak.bytes - self.fitting.limit


def _unknown(program: Program) -> str:
    """What to say of a program whose memory nobody knows."""
    stack = [program]
    for each in stack:
        for node in each.nodes:
            if any(not t.type.static for t in node.outputs):
                return (
                    "memory= needs lengths that are known before a run, and those of "
                    f"{node.name} = {node.op!r} (built at {node.where}) are not: give its inputs "
                    "known lengths, a while_loop() max_trips=, a fori_loop() bounds that are ints, "
                    "or leave memory= out"
                )
            stack += node.op.bodies
    return "memory= needs lengths that are known before a run, but those of a kernel are not"
