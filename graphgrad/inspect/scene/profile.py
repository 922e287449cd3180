"""Where the time of a compiled function goes: by op, by direction, by region, and as a trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from ...execute.backend import Backend
from ...execute.run.timed import Clock, LoopRuns, Run, Span, timed_runs
from ...ir.node import Node, RuleCall, Tensor
from ...ir.program import Program
from ...ir.types import Dim
from ...lower.blocks import ConvolvedLoop
from ...lower.loop_ir import nodes_within
from .flops import flops_of
from .limits import Limits
from .wording import Lines, call_title, region_title, short_type, shortened, visible

__all__ = ["LoopTime", "Profile", "Share"]

_ROWS = 12
_SHOWN = 34


class StepTime(NamedTuple):
    """A step of the plan: median seconds over runs, bytes read and written.

    node   what runs: a node of the program, or a group of them as one
    nodes  the node itself, or those of the group that compute something: no constants, no views
    flops  of each of these; 0 where an op does not say
    """

    node: Node
    nodes: Sequence[Node]
    seconds: float
    bytes: int
    flops: Sequence[int]


class Share(NamedTuple):
    """What nodes that belong together take in one call.

    bytes  read and written
    flops  floating point operations, as `gg.inspect.flops` counts them
    least  seconds that the machine needs for them at least, if its limits were measured, else 0

    >>> x = gg.placeholder((2,))
    >>> (share,) = gg.compile(x, gg.exp(x)).profile(np.ones(2)).by_op()
    >>> share.name, share.nodes
    ('Exp', 1)
    """

    name: str
    nodes: int
    seconds: float
    bytes: float
    flops: float = 0.0
    least: float = 0.0


class LoopTime:
    """What a loop takes in one call.

    node     the loop
    runs     how often its body ran
    seconds  of all of them

    >>> x = gg.placeholder((5,))
    >>> y, _ = gg.scan(lambda s, x: (gg.sin(s) * x, None), 0.5, x)
    >>> (loop,) = gg.compile(x, y).profile(np.ones(5)).loops
    >>> loop.runs, loop.per_run <= loop.seconds
    (5, True)
    """

    def __init__(self, runs: LoopRuns, seconds: float, backend: Backend) -> None:
        self.node, self.runs, self.seconds = runs.node, runs.runs, seconds
        self._first, self._backend = runs.first, backend

    @property
    def per_run(self) -> float:
        """Seconds of one run, on average."""
        return self.seconds / max(1, self.runs)

    def body(self, repeat: int = 10) -> Profile:
        """A profile of the body by itself, on what its first run took.

        Its steps are called one by one, which a compiled loop does not do: they show where the time
        of a run goes, and take longer.

        Parameters: repeat: how often to run it.

        Returns: a Profile; that of loops in the body is in its `loops`.

        Raises: ValueError for a loop that did not run.
        """
        if self._first is None:
            raise ValueError(f"the body of {self.node.name} did not run: there is nothing to time")
        program, clock = self.node.op.bodies[-1], Clock()
        runs = timed_runs(self._backend, program, self._first, repeat, clock)
        return Profile(runs, program, self._backend, clock.loops)

    def __repr__(self) -> str:
        times = f"{self.seconds * 1e6:.1f} us, {self.per_run * 1e6:.3f} a run"
        return f"<{self.node.name}: {self.runs} runs in {times}>"


class Profile:
    """Median times of one call of a compiled function.

    seconds  of the whole call
    steps    in the order in which they ran
    limits   of the machine, where they were asked for
    loops    those among the steps: how often they ran, and a profile of their bodies

    A group that runs as one loop is one step; its nodes share its time and bytes in equal parts.
    The clock itself takes about 0.3 us a step, most of it in `seconds` but not in the steps.
    `print` shows the tables.

    >>> x = gg.placeholder((2,))
    >>> profile = gg.compile(x, gg.exp(x), optimize=False).profile(np.ones(2))
    >>> profile.seconds > 0, [share.name for share in profile.by_op()]
    (True, ['Exp'])
    """

    def __init__(
        self,
        runs: Sequence[Run],
        program: Program,
        backend: Backend | None = None,
        loops: Sequence[LoopRuns] = (),
        limits: Limits | None = None,
    ) -> None:
        if not runs:
            raise ValueError("a profile needs at least one run")
        self.runs = tuple(runs)
        self.limits = limits
        self.seconds = median(r.end - r.start for r in runs) / 1e9
        self.steps = tuple(map(_step, zip(*(r.spans for r in runs), strict=True)))
        self._directions = _directions(program)
        seconds = {step.node: step.seconds for step in self.steps}
        self.loops = tuple(
            [LoopTime(loop, seconds[loop.node], backend) for loop in loops if backend is not None]
        )

    def by(self, key: Callable[[Node], str]) -> list[Share]:
        """Nodes with the same key together, those that take longest first."""
        shares: dict[str, Share] = {}
        for step in self.steps:
            parts = len(step.nodes)
            least = 0.0
            if self.limits is not None:
                least = self.limits.least(step.nodes, step.bytes, sum(step.flops))
            for node, flops in zip(step.nodes, step.flops, strict=True):
                was = shares.get(name := key(node), Share(name, 0, 0.0, 0.0))
                shares[name] = Share(
                    name,
                    was.nodes + 1,
                    was.seconds + step.seconds / parts,
                    was.bytes + step.bytes / parts,
                    was.flops + flops,
                    was.least + least / parts,
                )
        return sorted(shares.values(), key=lambda share: -share.seconds)

    def by_op(self) -> list[Share]:
        """By op type."""
        return self.by(lambda node: node.type)

    def by_direction(self) -> list[Share]:
        """forward, backward (with its order from the second on), and what is built from those."""
        return self.by(self.direction)

    def by_region(self) -> list[Share]:
        """By the innermost region a node is in, or the call of a rule that built it."""
        return self.by(region_of)

    def by_rule(self) -> list[Share]:
        """By the name of the rule: the insides of its regions, and what its calls built."""
        return self.by(_rule_of)

    def direction(self, node: Node) -> str:
        """Which direction a node belongs to."""
        return self._directions.get(node.name, "forward" if node.origin is None else "backward")

    def write_trace(self, path: str | PathLike[str]) -> None:
        """All runs as a JSON file in the Trace Event Format, for Perfetto or chrome://tracing."""
        Path(path).write_text(json.dumps(self.trace()), encoding="utf-8")

    def trace(self) -> dict[str, Any]:
        """What write_trace writes. Times are microseconds from the start of the first run."""
        zero = self.runs[0].start
        events = [_named("process_name", "graphgrad"), _named("thread_name", "one call")]
        about = [self._about(step) for step in self.steps]
        for number, run in enumerate(self.runs, 1):
            events.append(_event(f"call {number}", "call", run.start - zero, run.end - run.start))
            for span, (name, direction, args) in zip(run.spans, about, strict=True):
                took = span.end - span.start
                events.append({**_event(name, direction, span.start - zero, took), "args": args})
        return {"traceEvents": events, "displayTimeUnit": "ns"}

    def _about(self, step: StepTime) -> tuple[str, str, dict[str, Any]]:
        """Name, category and arguments of a step's events."""
        types = list(dict.fromkeys(n.type for n in step.nodes))
        lines = Lines()
        args = {
            "nodes": [visible(n.name) for n in step.nodes[:_ROWS]],
            "outputs": [short_type(t.type) for t in step.node.outputs],
            "built": visible(lines.why(step.nodes[-1])),
            "region": region_of(step.nodes[-1]),
            "bytes": step.bytes,
            "flops": sum(step.flops),
        }
        return shortened(", ".join(types), 80), self.direction(step.nodes[-1]), args

    def __repr__(self) -> str:
        inside = sum(step.seconds for step in self.steps)
        unit, factor = ("us", 1e6) if self.seconds < 0.01 else ("ms", 1e3)
        whole, steps, rest = (
            f"{seconds * factor:.1f} {unit}"
            for seconds in (self.seconds, inside, self.seconds - inside)
        )
        head = (
            f"{whole} a call (median of {len(self.runs)}): {steps} in {len(self.steps)} steps, "
            f"{rest} around them"
        )
        tables = [("op", self.by_op()), ("direction", self.by_direction())]
        rules = self.by_rule()
        if [share.name for share in rules] not in ([], [NO_RULE]):
            tables.append(("override", rules))
            regions = self.by_region()
            if len(regions) > len(rules):
                tables.append(("region", regions))
        if self.limits is not None:
            head += f"\nlimits of the machine: {self.limits!r}"
        limited = self.limits is not None
        shown = [_table(*table, inside, unit, factor, limited) for table in tables]
        if self.loops:
            shown.append(_loop_table(self.loops, unit, factor))
        return "\n\n".join([head, *shown])


NO_RULE = "(none)"


def _step(spans: Sequence[Span]) -> StepTime:
    """A step by its spans in all runs."""
    node = spans[0].node
    nodes = _working(node)
    seconds = median(s.end - s.start for s in spans) / 1e9
    flops = [flops_of(n, _known) or 0 for n in nodes]
    return StepTime(node, nodes, seconds, spans[0].bytes, flops)


def _known(d: Dim) -> int:
    """A length; of one that is not known, none."""
    return d if isinstance(d, int) else 0


def _working(node: Node) -> Sequence[Node]:
    """The nodes that share its time; a loop behind a convolution takes next to none."""
    if isinstance(node.op, ConvolvedLoop):
        return node.op.program.nodes[:1]
    working = [n for n in nodes_within(node) if n.inputs and not n.op.memory.view]
    return working or (node,)


def region_of(node: Node) -> str:
    """The title of the call of the rule that built a node, or of the innermost region around it."""
    if isinstance(node.origin, RuleCall):
        return visible(call_title(node.origin))
    return NO_RULE if node.region is None else visible(region_title(node.region))


def _rule_of(node: Node) -> str:
    if isinstance(node.origin, RuleCall):
        return visible(f'built by "{node.origin.rule}"')
    return NO_RULE if node.region is None else visible(f'inside "{node.region.name}"')


def _directions(program: Program) -> dict[str, str]:
    """The direction of every node by its name, which a node keeps when it becomes part of a group.

    What the user built from gradients, such as the update of a parameter, is neither.
    """
    directions: dict[str, str] = {}
    after: set[Tensor] = set()
    for node in program.nodes:
        order = _order(node)
        if order or not after.isdisjoint(node.inputs):
            after.update(node.outputs)
        if order:
            directions[node.name] = "backward" if order == 1 else f"backward, order {order}"
        else:
            derived = node.outputs and node.outputs[0] in after
            directions[node.name] = "built from gradients" if derived else "forward"
    return directions


def _order(node: Node) -> int:
    """How many derivatives lie between a node and what the user built."""
    order = 0
    step: Any = node
    while (origin := step.origin) is not None:
        order += 1
        step = origin.site if isinstance(origin, RuleCall) else origin
    return order


def _table(
    title: str, shares: Sequence[Share], whole: float, unit: str, factor: float, limited: bool
) -> str:
    """The longest ones a row each, the rest together. whole: seconds that are 100 %."""
    shown = list(shares[:_ROWS])
    if rest := shares[_ROWS:]:
        numbers = [sum(column) for column in list(zip(*rest, strict=True))[1:]]
        shown.append(Share(f"{len(rest)} others", *numbers))
    limit = f" {'limit':>6}" if limited else ""
    rows = [
        f"{title:<{_SHOWN}} {'nodes':>6} {unit:>9} {'%':>5} {'MB':>9} {'GB/s':>6} {'MFLOP':>9} "
        f"{'GFLOP/s':>7}{limit}"
    ]
    for share in shown:
        part = 100 * share.seconds / whole if whole else 0.0
        moved, computed = (_rate(n, share.seconds) for n in (share.bytes, share.flops))
        limit = f" {_percent(share.least, share.seconds):>6}" if limited else ""
        rows.append(
            f"{shortened(share.name, _SHOWN):<{_SHOWN}} {share.nodes:>6} "
            f"{share.seconds * factor:>9.2f} {part:>5.1f} {share.bytes / 1e6:>9.3g} {moved:>6} "
            f"{share.flops / 1e6:>9.3g} {computed:>7}{limit}"
        )
    return "\n".join(rows)


def _rate(count: float, seconds: float) -> str:
    """Billions in a second."""
    return f"{count / seconds / 1e9:.1f}" if seconds else "-"


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _loop_table(loops: Sequence[LoopTime], unit: str, factor: float) -> str:
    """The loops that take longest, a row each: all runs, and one of them in microseconds."""
    rows = [f"{'loop':<{_SHOWN}} {'runs':>9} {unit:>9} {'us per run':>12}"]
    for loop in sorted(loops, key=lambda loop: -loop.seconds)[:_ROWS]:
        name = shortened(visible(loop.node.name), _SHOWN)
        times = f"{loop.seconds * factor:>9.2f} {loop.per_run * 1e6:>12.3f}"
        rows.append(f"{name:<{_SHOWN}} {loop.runs:>9} {times}")
    return "\n".join(rows)


def _named(what: str, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": 1, "tid": 1, "args": {"name": name}}


def _event(name: str, category: str, start: int, took: int) -> dict[str, Any]:
    """A complete event; nanoseconds become microseconds."""
    times = {"ts": start / 1e3, "dur": took / 1e3}
    return {"name": name, "cat": category, "ph": "X", "pid": 1, "tid": 1, **times}
