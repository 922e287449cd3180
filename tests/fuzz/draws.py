"""What rules draw, noted while a program runs, so that a tape can draw it again.

A call of a rule is named by a number that it computes from its inputs and gradients. The op below
passes a draw on and notes it with the name of its call. The tape replays the same calls and asks
for the draw of each. The notes have to keep the law: one call has one draw, however often it is
computed; two calls never share one, nor do two runs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphgrad import extend


class Noted(extend.Elementwise):
    """A draw as it is, noted with the name of the call that drew it. No gradient."""

    differentiable = False

    def kernel(self, xp: Any, draw: Any, call: Any) -> Any:
        both = np.broadcast_arrays(call, draw)
        notes.extend(zip(*(a.ravel().tolist() for a in both), strict=True))
        return both[1] + 0.0

    def vjp(self, node: Any, dy: Any) -> extend.Gradients:
        return (extend.NO_GRAD, extend.NO_GRAD)

    @classmethod
    def samples(cls, rng: np.random.Generator) -> extend.Samples:
        yield cls(), [rng.normal(size=3), rng.normal(size=())]


Note = tuple[float, float]
notes: list[Note] = []
"""(call, draw) as they were computed."""
calls: list[float] = []
"""The calls of the tape."""


def clear() -> None:
    notes.clear()
    calls.clear()


def of_call(call: float) -> set[float]:
    return {draw for other, draw in notes if near(call, other)}


def near(call: float, other: float) -> bool:
    return abs(call - other) <= 1e-7 * (1.0 + abs(call))


def again(call: float) -> float:
    """The draw of a call. One that no run needed may be anything."""
    calls.append(call)
    return min(of_call(call), default=0.5)


def check_apart(earlier: list[Note], exact: bool) -> bool:
    """The law; whether each call is told from all others by its name.

    exact  no run is computed under the name of a call but that call, as in a bounded while
    """
    assert not {d for _, d in earlier} & {d for _, d in notes}, "two runs share a draw"
    names: dict[float, float] = {}
    for call, draw in notes:
        other = names.setdefault(draw, call)
        assert near(call, other), f"two calls share a draw: {call} and {other}"
    alone = True
    for call in set(calls):
        count = sum(near(call, other) for other in calls)
        assert len(of_call(call)) <= count or not exact, f"{count} calls {call}: {of_call(call)}"
        alone &= count == 1 and len(of_call(call)) < 2
    return alone
