"""The passes in their order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from ..ir.errors import GraphError
from ..ir.program import Program
from ..ir.verify import verify_program
from .algebra import simplify
from .common import eliminate_common_subexpressions
from .fold import fold_constants
from .identities import remove_residuals_and_identities
from .rewrite import Pass

Watch = Callable[[str, Program], None]


class Change(NamedTuple):
    """What one pass did: nodes before and after, and how often each of its rules fired."""

    name: str
    before: int
    after: int
    changed: bool
    fired: dict[str, int]


def optimise(
    program: Program, *, verify: bool = False, watch: Watch | None = None
) -> tuple[Program, list[Change]]:
    """The program with the same values and less work, and what was done.

    verify: check the invariants after every pass. watch: called with the name of each pass and the
    program after it.
    """
    fired: Counter[str] = Counter()
    passes: list[tuple[str, Pass]] = [
        ("remove residuals and identities", remove_residuals_and_identities),
        ("fold constants", fold_constants),
        ("simplify", lambda p: simplify(p, fired)),
        ("merge common subexpressions", eliminate_common_subexpressions),
    ]
    return run_passes(program, passes, fired, verify=verify, watch=watch)


def run_passes(
    program: Program,
    passes: list[tuple[str, Pass]],
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
            after = step(program)
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
    for kind in ("inputs", "outputs"):
        old, new = ([t.type for t in getattr(p, kind)] for p in (before, after))
        if old != new:
            raise GraphError(f"the pass changed the types of the {kind}: {old} became {new}")
