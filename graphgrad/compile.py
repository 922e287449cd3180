"""The path on one screen: tensors -> program -> optimise -> backend -> function of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .execute.backend import Backend, Compiled, load_backend
from .execute.feeds import Feeds
from .ir.collector import collector_paused
from .ir.errors import DTypeError, GraphError, StateError
from .ir.graph import Graph, GraphScope
from .ir.node import Node, Tensor
from .ir.program import Program, needed
from .ir.state import State
from .ir.tree import flatten, unflatten
from .ir.types import Array
from .lower.schedule import Plan, peak_bytes, schedule
from .ops.base import as_tensor, cast
from .ops.sources import Assign, Placeholder, Variable, check_update
from .optimise.pipeline import Change, Watch, optimise

__all__ = ["CompiledFunction", "compile", "evaluate"]


def compile(
    inputs: Any,
    outputs: Any,
    *,
    backend: str | Backend = "auto",
    updates: Mapping[Tensor, Any] | None = None,
    state: State | None = None,
    optimize: bool = True,
    verify: bool = False,
    watch: Watch | None = None,
) -> CompiledFunction:
    """A function of arrays that computes outputs from inputs.

    inputs: a tensor, or a list or tuple of tensors. Any tensor may be given, not only
        placeholders; what computes it does not run then.
    outputs: a tensor, or any nesting of lists, tuples and dicts of tensors. None stays None.
    backend: "auto" (NumPy), "numpy", "jax", the name of an installed one, or a Backend object.
    updates: {variable: new value}. These, and what `assign` writes among the nodes needed, are
        written together after a run has succeeded. Every read in the run sees the values before.
    state: where variables live; the graph's own by default.
    optimize: False runs every node as it was built.
    verify, watch: check every pass; called as watch(pass name, program) after each.

    Raises GraphError for an input given twice, a placeholder that is needed and not given, or
    tensors of two graphs, and StateError for two updates of one variable.
    """
    with collector_paused():
        return _compile(inputs, outputs, backend, updates or {}, state, optimize, verify, watch)


def _compile(
    inputs: Any,
    outputs: Any,
    backend: str | Backend,
    updates: Mapping[Tensor, Any],
    state: State | None,
    optimize: bool,
    verify: bool,
    watch: Watch | None,
) -> CompiledFunction:
    given = _inputs(inputs)
    leaves = _outputs(outputs)
    wanted = [t for t in leaves if t is not None]
    _check_variables(updates)
    graph = _one_graph([*given, *wanted, *updates])
    writes = _updates(graph, updates)

    nodes = needed(given, [*wanted, *writes.values()])
    _check_placeholders(nodes, wanted)
    _add_assigns(nodes, writes)
    variables = [n for n in nodes if type(n.op) is Variable]

    start = Program([*given, *(v.outputs[0] for v in variables)], [*wanted, *writes.values()])
    program, log = optimise(start, verify=verify, watch=watch) if optimize else (start, [])
    chosen = load_backend(backend)
    run = chosen.compile(program)
    where = state if state is not None else graph.state if graph is not None else State()
    feeds = Feeds(given)
    return CompiledFunction(
        feeds, outputs, leaves, run, where, variables, list(writes), program, log, chosen
    )


class CompiledFunction:
    """What `compile` returns: call it with arrays. Safe to call from many threads.

    program  what runs, after optimisation
    log      what each pass did
    """

    def __init__(
        self,
        feeds: Feeds,
        outputs: Any,
        leaves: Sequence[Tensor | None],
        run: Compiled,
        state: State,
        variables: Sequence[Node],
        written: Sequence[Node],
        program: Program,
        log: list[Change],
        backend: Backend,
    ) -> None:
        self.program = program
        self.log = log
        self.backend = backend
        self._feeds = feeds
        self._single = isinstance(outputs, Tensor)
        self._outputs = outputs
        self._present = [t is not None for t in leaves]
        self._count = sum(self._present)
        self._run = run
        self._state = state
        self._variables = tuple(variables)
        self._written = tuple(written)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run: arrays in the order of the inputs, or by name; the outputs' structure of arrays.

        Inputs are never modified, and no result shares memory with them. Raises TypeError for
        missing or unknown arguments, DTypeError and ShapeError for arrays that do not fit.
        """
        arrays = self._feeds(args, kwargs)
        if self._variables:
            arrays = (*arrays, *self._state.read(self._variables))
        results = self._run(*arrays)
        if self._written:
            self._state.commit(dict(zip(self._written, results[self._count :], strict=True)))
        return results[0] if self._single else self._packed(results)

    def _packed(self, results: tuple[Array, ...]) -> Any:
        supply = iter(results)
        return unflatten(self._outputs, [next(supply) if here else None for here in self._present])

    def explain(self) -> str:
        """What the passes did, how the program runs, and how much memory it holds."""
        plan = self.plan()
        rows = [f"backend {getattr(self.backend, 'name', type(self.backend).__name__)}"]
        rows += [_shown(change) for change in self.log] or ["not optimised"]
        views = sum(s.node.op.view for s in plan.steps)
        again = sum(s.into >= 0 for s in plan.steps)
        rows.append(
            f"{len(plan.steps)} steps, {len(plan.constants)} constants, {plan.slots} slots; "
            f"{views} views, {again} results written over an old buffer"
        )
        peak, exact = peak_bytes(plan)
        least = "" if exact else "at least "
        rows.append(f"peak {least}{peak:,} bytes beyond inputs, variables and constants")
        if self._variables:
            rows.append(f"reads {', '.join(v.name for v in self._variables)}")
        if self._written:
            rows.append(f"writes {', '.join(v.name for v in self._written)}")
        return "\n".join(rows)

    def plan(self) -> Plan:
        """The order of steps, and the slots their values are in."""
        own = getattr(self.backend, "plan", schedule)
        plan: Plan = own(self.program)
        return plan

    def __repr__(self) -> str:
        return f"<compiled: {self._feeds.signature} -> {self._count} outputs>"


def evaluate(tensors: Any, feeds: Mapping[Any, Any] | None = None) -> Any:
    """The values of tensors (any nesting), once. feeds: {tensor or name: array}."""
    leaves = _outputs(tensors)
    graph = _one_graph([t for t in leaves if t is not None])
    given = {feed_tensor(graph, key): value for key, value in (feeds or {}).items()}
    return compile(list(given), tensors, optimize=False)(*given.values())


def feed_tensor(graph: Graph | None, key: Any) -> Tensor:
    """The tensor that a key of a feed means: itself, or its name."""
    if isinstance(key, Tensor):
        return key
    if isinstance(key, str) and graph is not None:
        return graph.tensor(key)
    raise GraphError(f"a feed is keyed by a tensor or its name, got {key!r}")


def _inputs(inputs: Any) -> list[Tensor]:
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    seen: set[Tensor] = set()
    for t in given:
        if not isinstance(t, Tensor):
            raise DTypeError(f"inputs are tensors, got {t!r}")
        if t in seen:
            raise GraphError(f"{t.name} (built at {t.where}) is given twice among the inputs")
        seen.add(t)
    return given


def _outputs(outputs: Any) -> list[Tensor | None]:
    leaves = flatten(outputs)
    for t in leaves:
        if not (t is None or isinstance(t, Tensor)):
            raise DTypeError(f"outputs are tensors, in lists, tuples and dicts; got {t!r}")
    return leaves


def _one_graph(tensors: Sequence[Tensor]) -> Graph | None:
    graph = None
    for t in tensors:
        here = t.node.graph
        if graph is not None and here is not graph:
            raise GraphError(
                f"{tensors[0].name} is in {graph!r}, but {t.name} (built at {t.where}) in {here!r}"
            )
        graph = here
    return graph


def _check_variables(updates: Mapping[Tensor, Any]) -> None:
    for variable in updates:
        if not isinstance(variable, Tensor) or type(variable.node.op) is not Variable:
            raise StateError(f"updates are for variables, got {variable!r}")


def _updates(graph: Graph | None, updates: Mapping[Tensor, Any]) -> dict[Node, Tensor]:
    """Variable -> its next value, of the variable's type."""
    if not updates or graph is None:
        return {}
    writes: dict[Node, Tensor] = {}
    with GraphScope(graph):
        for variable, value in updates.items():
            new = as_tensor(value)
            check_update(variable, new)
            writes[variable.node] = cast(new, variable.dtype)
    return writes


def _add_assigns(nodes: Sequence[Node], writes: dict[Node, Tensor]) -> None:
    for node in nodes:
        if type(node.op) is not Assign:
            continue
        variable = node.inputs[0].node
        if variable in writes:
            raise StateError(
                f"{variable.name} (built at {variable.where}) is written twice in one run: by "
                f"{node.name} (built at {node.where}) and by {writes[variable].name} "
                f"(built at {writes[variable].where})"
            )
        writes[variable] = node.outputs[0]


def _check_placeholders(nodes: Sequence[Node], wanted: Sequence[Tensor]) -> None:
    missing = [n.outputs[0] for n in nodes if type(n.op) is Placeholder]
    if missing:
        rows = "".join(f"\n  {t.name}: {t.type!r}, built at {t.where}" for t in missing)
        raise GraphError(
            f"the outputs need placeholders that are not among the inputs:{rows}\n"
            "Add them to the inputs."
        )


def _shown(change: Change) -> str:
    fired = ", ".join(f"{name} {n}x" for name, n in sorted(change.fired.items()))
    done = f"{change.before} -> {change.after} nodes" if change.changed else "nothing to do"
    return f"{change.name}: {done}" + (f" ({fired})" if fired else "")
