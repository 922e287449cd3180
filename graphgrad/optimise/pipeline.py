"""The passes in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..base.errors import GraphError
from ..ir.build import without_graph
from ..ir.program import WRITE, Program
from ..ir.types import alike
from ..ir.verify import verify_program
from .passes.bodies import choosing, optimise_bodies, outer_first
from .passes.common import merging
from .passes.fold import Folding
from .passes.identities import identities
from .passes.leave_loops import leave_loops
from .passes.loops import drop_unread
from .passes.products import join_products
from .passes.relu import ReluGrads
from .passes.segments import Segmenting
from .passes.stored_runs import store_runs
from .rewrite import Pass, settle, standing_alone
from .room import FREELY, Policy, Room
from .rule import EXACT, ROUNDING, Fired, Step, applying
from .rules.catalogue import FASTER, RULES

Watch = Callable[[str, Program], None]
Named = tuple[str, Pass]

OTHERS: dict[str, tuple[str, str]] = {
    "identities": ("nodes that only differentiation needs -> their input", EXACT),
    "folded": ("nodes that depend only on constants, up to a size -> a constant", EXACT),
    "merged": ("equal nodes, such as x + y and y + x, or x > y and y < x -> one of them", EXACT),
    "cond_of_constant": ("cond(True, f, g) -> f()", EXACT),
    "unread_by_cond": ("cond of inputs that neither body reads -> without them", EXACT),
    "relu_grad_of_output": ("the gradient of y = relu(x), where x > 0 -> where y > 0", EXACT),
    "stored_runs": ("values that a gradient recomputes in each step -> rows of the loop", EXACT),
    "segments": ("the values stored of n steps -> sqrt(n) of them; the rest is recomputed", EXACT),
    "left_loops": (
        "work that need not be in a loop, such as x_t @ w of all rows -> outside of it",
        ROUNDING,
    ),
    "summed_runs": ("x_t^T @ y_t, or scattered rows, summed in a loop -> after it", ROUNDING),
    "summed_products": ("x1^T @ y1 + x2^T @ y2 + ... -> [x1; x2; ...]^T @ [y1; y2; ...]", ROUNDING),
    "shared_products": ("x1 @ w, x2 @ w, ... -> the rows of [x1; x2; ...] @ w", ROUNDING),
}
"""What passes do beside applying rules, as it is counted: the algebra, and the level."""


class Change(NamedTuple):
    """What one pass did: nodes before and after, and how often each of its rules fired."""

    name: str
    before: int
    after: int
    changed: bool
    fired: dict[str, int]


def optimise(
    program: Program,
    *,
    verify: bool = False,
    watch: Watch | None = None,
    fast_math: bool = False,
    policy: Policy = FREELY,
    joining: bool = True,
) -> tuple[Program, list[Change]]:
    """The program with the same values and less work, and what was done.

    verify: check the invariants after every pass. watch: called with the name of each pass and the
    program after it; its `rewrote`, where it has one, as Rewrote is called.
    fast_math: rewrite by the algebra of real numbers, too; without it, NaN,
    infinities and the signs of zeros stay, and the last bits change only where docs/optimisation.md
    says so. policy: how much memory loops may take to save time. joining: whether products of many
    steps may become one, which lays their operands side by side: where these are divided among
    devices, they would have to be moved for it.

    A program whose ops have open lengths stays as it is until these are known.
    """
    if program.open_lengths:
        return program, []
    fired = Fired(getattr(watch, "rewrote", None))
    passes = pipeline(fired, fast_math, policy, joining)
    return run_passes(program, passes, fired, verify=verify, watch=watch)


def pipeline(
    fired: Counter[str], fast_math: bool = False, policy: Policy = FREELY, joining: bool = True
) -> list[Named]:
    """The passes in their order: the bodies of control flow first, each by the same passes."""
    room, inside = Room(policy.room), Counter[str]()
    body = _passes(inside, fast_math, room, joining)
    segmenting = Segmenting(policy.segments, fired)
    segments: list[Named] = (
        [("segments", lambda p: _less_read(p, segmenting))] if policy.segments else []
    )
    of_bodies: list[Named] = [
        ("drop unread", drop_unread),
        *segments,
        ("store runs", lambda p: _less_read(p, lambda p: store_runs(p, fired, room))),
        ("optimise bodies", lambda p: optimise_bodies(p, lambda b: _one_by_one(b, body))),
    ]
    return [
        *[(name, _where_bodies(step)) for name, step in of_bodies],
        *_passes(fired, fast_math, room, joining),
        ("drop unread again", _where_bodies(drop_unread)),
    ]


def _where_bodies(step: Pass) -> Pass:
    """A pass that is about bodies of ops: nothing is to be done where no op has any."""
    return lambda p: step(p) if any(op.bodies for op in p.ops) else p


def _less_read(program: Program, step: Pass) -> Program:
    """A step over a program and its bodies, after which more may be read by nobody."""
    after = outer_first(program, step)
    return program if after is program else drop_unread(after)


def _passes(fired: Counter[str], fast_math: bool, room: Room, joining: bool) -> list[Named]:
    """The passes over one program. `simplify` and what joins settle every node that they touch."""
    always: list[Named] = [
        ("stand alone", standing_alone),
        ("simplify", lambda p: settle(p, *normal_form(fired, fast_math))),
    ]
    if not joining:
        return always
    return [
        ("leave loops", _where_bodies(lambda p: leave_loops(p, fired, room))),
        *always,
        ("join products", lambda p: join_products(p, fired, normal_form(fired, fast_math))),
    ]


def _one_by_one(program: Program, passes: Sequence[Named]) -> Program:
    for _, step in passes:
        program = step(program)
    return program


def normal_form(fired: Counter[str], fast_math: bool = False) -> tuple[Step, ...]:
    """The steps that take away identities, fold constants, apply every rule, and merge equals.

    fired: counts how often each of these did something.
    """
    rules = (*RULES, *FASTER) if fast_math else RULES
    return (
        identities(fired),
        Folding(fired),
        choosing(fired),
        applying(rules, fired),
        ReluGrads(fired),
        merging(fired),
    )


def run_passes(
    program: Program,
    passes: Sequence[Named],
    fired: Counter[str] | None = None,
    *,
    verify: bool = False,
    watch: Watch | None = None,
) -> tuple[Program, list[Change]]:
    """One pass after the other. An error keeps its type and gains a note naming the pass."""
    log: list[Change] = []
    counts: Counter[str] = Counter() if fired is None else fired
    for name, step in passes:
        counts.clear()
        try:
            after = without_graph(WRITE, step, program)
            if verify:
                _verify(program, after)
        except Exception as error:
            done = ", ".join(c.name for c in log) or "none"
            error.add_note(f"in pass {name!r}, after: {done}")
            raise
        before, now = len(program.nodes), len(after.nodes)
        log.append(Change(name, before, now, after is not program, dict(counts)))
        program = after
        if watch:
            watch(name, program)
    return program, log


def _verify(before: Program, after: Program) -> None:
    if after is before:
        return
    verify_program(after)
    # an open length may be known by another name that it is checked to equal, as rows of two inputs
    for kind in ("inputs", "outputs"):
        old, new = ([t.type for t in getattr(p, kind)] for p in (before, after))
        if len(old) != len(new) or any(alike(*pair) is None for pair in zip(old, new)):
            raise GraphError(f"the pass changed the types of the {kind}: {old} became {new}")
