"""The path on one screen: tensors -> program -> optimise -> backend -> function of arrays."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from .execute.backend import Backend, Compiled, load_backend
from .execute.feeds import Feeds
from .execute.timed import Clock, timed_runs
from .inspect.profile import Profile
from .ir.collector import collector_paused, having
from .ir.depth import Bounded
from .ir.errors import DTypeError, ExecutionError, GraphError, StateError
from .ir.first_tries import answer
from .ir.flags import truth
from .ir.graph import Graph, GraphScope, restored
from .ir.held import any_gone
from .ir.lazy import LazyMethod
from .ir.node import Node, Tensor
from .ir.notebook import show_as_graph
from .ir.program import Program, needed
from .ir.state import RUN, State
from .ir.tree import flatten, tree_map
from .ir.types import TensorType
from .ir.words import visible_lines
from .lower.plan import Plan
from .lower.specialise import specialise
from .ops.base import as_tensor, cast
from .ops.python_function import check_function
from .ops.random.keys import draws_keys
from .ops.sources import Assign, Placeholder, Variable, check_update
from .optimise.fitting import Fitting, Peak
from .optimise.passes.loops import drop_unread
from .optimise.pipeline import Change, Watch, optimise

__all__ = ["CompiledFunction", "compile", "evaluate"]

Passes = Callable[..., tuple[Program, list[Change]]]

REFINED = 16  # sets of lengths whose optimisation `explain` tells


@restored
@collector_paused
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
    memory: int | None = None,
    **options: Any,
) -> CompiledFunction:
    """A function of arrays that computes outputs from inputs.

    Updates, and what `assign` writes among the nodes needed, are written together after a run has
    succeeded. Every read in the run sees the values before. Runs that write one state come one
    after the other, so threads lose no update; runs that only read wait for nobody, and see the
    values of one moment. A program of unknown lengths is optimised again when a call brings new
    ones.

    Parameters:
        inputs: a tensor, or a list or tuple of tensors. Any tensor may be given, not only
            placeholders; what computes it does not run then.
        outputs: a tensor, or any nesting of lists, tuples and dicts of tensors. None stays None.
        backend: "auto" (LLVM where it is installed, else NumPy), "numpy", "llvm", "jax", the name
            of an installed one, or a Backend object.
        updates: {variable: new value}, of the variable's shape, cast to its dtype where NumPy calls
            that a same-kind cast, as float64 to float32. For another kind write gg.cast.
        state: where variables live; the graph's own by default.
        optimize: False runs every node as it was built.
        verify: check the program after every pass.
        watch: called as watch(pass name, program) after each pass.
        memory: a limit of the bytes that a run takes, as `peak_bytes` counts them. Gradients of
            loops keep as much of the runs as fits and compute the rest again, if need be from the
            state of every so many runs. "jax" is given what fits by the count of "numpy"; what XLA
            takes may be more. Within a limit "llvm" packs no matrices for products in loops.
        **options: of the backend: `num_threads`; `fast_math=True` for the algebra of real numbers,
            where NaN, infinities, signs of zero and last bits may change, for "numpy" and "llvm";
            `check=True` verifies every kernel's result and every use of memory there, slowly;
            `mesh`, `shardings` and `donate` for "jax": see docs/scale.md; `bounds="jax"` for "jax"
            leaves out the checks behind a run's IndexError, LinAlgError and the like: see
            docs/jax.md.

    Returns: a CompiledFunction.

    Raises: GraphError for an input given twice, a placeholder that is needed and not given, or
    tensors of two graphs; StateError for two updates of one variable; UnknownBackendError;
    DTypeError for outputs that are no tensors; TypeError for an unknown option; ExecutionError,
    with the bytes that are needed, where `memory` is not enough: of unknown lengths when a call
    brings them. A run raises StateError where it would write a state that its thread is writing: in
    a py_function or signal handler.

    >>> x = gg.placeholder(("N",))
    >>> f = gg.compile(x, [gg.sum(x), gg.max(x)])
    >>> f([1.0, 2.0, 3.0])
    [array(6.), array(3.)]
    """
    truth("optimize", optimize)
    truth("verify", verify)
    with Bounded():
        chosen = load_backend(backend, **options)
        passes = _passes(optimize, verify, chosen)
        if memory is not None:
            chosen = getattr(chosen, "frugal", lambda: chosen)()
            passes = _within(_bytes(memory), passes, chosen)
        return _compile(inputs, outputs, chosen, updates or {}, state, passes, watch)


def _passes(optimize: bool, verify: bool, backend: Backend) -> Passes:
    """What is done to a program before it runs."""
    if not optimize:
        return lambda program, watch=None, policy=None: (program, [])
    fast_math, joining = getattr(backend, "fast_math", False), getattr(backend, "joining", True)
    return partial(optimise, verify=verify, fast_math=fast_math, joining=joining)


def _bytes(memory: object) -> int:
    if isinstance(memory, bool) or not isinstance(memory, int | float | np.number):
        raise TypeError(f"memory is a number of bytes, got {memory!r}")
    if not memory > 0:
        raise ValueError(f"memory is a number of bytes above 0, got {memory!r}")
    return int(memory)


def _within(limit: int, passes: Passes, backend: Any) -> Passes:
    """The passes, within a limit of memory; a program of unknown lengths stays as it was built."""
    plan = getattr(backend, "plan", None) or load_backend("numpy").plan  # type: ignore[attr-defined]

    def peak_of(program: Program) -> Peak:
        found = plan(program)
        return Peak(found.peak, found.exact)

    fitting = Fitting(limit, passes, peak_of)

    def fitted(program: Program, watch: Watch | None = None) -> tuple[Program, list[Change]]:
        if all(t.type.static for t in program.inputs):
            return fitting(program, watch)
        if not hasattr(backend, "plan"):
            raise ExecutionError(
                f"memory= on the {backend.name!r} backend needs inputs of known lengths"
            )
        return program, []

    return fitted


def _compile(
    inputs: Any,
    outputs: Any,
    backend: Backend,
    updates: Mapping[Tensor, Any],
    state: State | None,
    passes: Passes,
    watch: Watch | None,
) -> CompiledFunction:
    given = _inputs(inputs)
    leaves = _outputs(outputs)
    wanted = [t for t in leaves if t is not None]
    _check_variables(updates)
    graph = _one_graph([*given, *wanted, *updates])
    writes = _updates(graph, updates)

    asked = {v.outputs[0]: new for v, new in writes.items()}
    start, variables = _as_built(given, wanted, writes)
    counted = draws_keys(start)
    program, log = passes(start, watch=watch)
    program, written = _without_dead_updates(program, list(writes), variables)
    run = _compiled_by(backend, program, given, variables, written)
    refined = _let_refine(run, passes, watch)
    where = state if state is not None else graph.state if graph is not None else State()
    where.concerns(graph)

    def fit_together(types: list[TensorType]) -> None:
        """What does not fit in the program as it was built, whatever was optimised away."""
        if program is not start or not hasattr(run, "refine"):
            specialise(start, [*types, *(v.outputs[0].type for v in variables)])

    feeds = Feeds(given, fit_together, getattr(run, "takes", ()))
    return CompiledFunction(
        feeds,
        outputs,
        leaves,
        run,
        where,
        variables,
        written,
        program,
        log,
        refined,
        backend,
        counted,
        asked,
        [*wanted, *(writes[v] for v in written)],
        passes,
    )


def _compiled_by(
    backend: Any, program: Program, given: list[Tensor], read: list[Node], written: list[Node]
) -> Compiled:
    """The program as a function; by a backend that can, with variables that stay where it runs.

    What loops keep is left out where nobody reads it, whether or not anything else is optimised.
    """
    program = drop_unread(program)
    with_state = getattr(backend, "compile_with_state", None)
    run: Compiled = (
        backend.compile(program)
        if with_state is None
        else with_state(program, given, read, written)
    )
    return run


def _as_built(
    given: list[Tensor], wanted: list[Tensor], writes: dict[Node, Tensor]
) -> tuple[Program, list[Node]]:
    """The program from what is given, and the variables it reads, to what is wanted and written.

    Assigns among the nodes needed are added to writes.
    """
    nodes = needed(given, [*wanted, *writes.values()])
    check_placeholders(nodes, wanted)
    _add_assigns(nodes, writes)
    variables = [n for n in nodes if type(n.op) is Variable]
    inputs = [*given, *(v.outputs[0] for v in variables)]
    return Program(inputs, [*wanted, *writes.values()]), variables


def _let_refine(
    run: Any, passes: Passes, watch: Watch | None
) -> deque[tuple[Program, list[Change]]]:
    """Optimise again for lengths that become known; what that did, of the latest ones."""
    refined: deque[tuple[Program, list[Change]]] = deque(maxlen=REFINED)

    def refine(specialised: Program) -> Program:
        refined.append(passes(specialised, watch=watch))
        return refined[-1][0]

    if hasattr(run, "refine"):
        run.refine = refine
    return refined


class CompiledFunction:
    """What `compile` returns: call it with arrays. Safe to call from many threads.

    inputs   the tensors of its arguments, in order
    outputs  the tensors it computes, in the structure they were asked in
    updates  {variable: the tensor that is written to it}, as they were given
    program  what runs, after optimisation; with unknown lengths, it is optimised once more for
             those of a call
    log      what each pass did

    >>> x = gg.placeholder((), name="x")
    >>> f = gg.compile(x, {"square": x * x})
    >>> f(3.0), f(x=4.0)
    ({'square': array(9.)}, {'square': array(16.)})
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
        refined: deque[tuple[Program, list[Change]]],
        backend: Backend,
        counted: bool,
        updates: dict[Tensor, Tensor],
        results: Sequence[Tensor],
        passes: Passes,
    ) -> None:
        self.inputs = feeds.inputs
        self.outputs = outputs
        self.updates = updates
        self.program = program
        self.log = log
        self._refined = refined
        self.backend = backend
        self._feeds = feeds
        self._fit = feeds.fit
        self._count = sum(t is not None for t in leaves)
        self._packed = packer(outputs)
        self._compiled: Any = run
        self._run: Any = getattr(run, "call", run)
        self._state = state
        self._variables = tuple(variables)
        self._written = tuple(written)
        self._counted = counted
        self._changes = counted or bool(written)
        self._stays = getattr(run, "keeps_state", False)
        self._lends = [self._variables[i] for i in getattr(run, "lends", ())]
        self._results = tuple(results)  # as they were built: what is differentiated
        self._passes = passes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run: arrays in the order of the inputs, or by name; the outputs' structure of arrays.

        Inputs are never modified, and no result shares memory with them. Raises TypeError for
        missing or unknown arguments, DTypeError and ShapeError for arrays that do not fit.
        """
        arrays = args if not kwargs and self._fit(args) else self._feeds(args, kwargs)
        if self._changes:
            return self._state.turn.take(self._update, arrays)
        if self._stays and self._variables:
            return self._packed(self._run_where_it_is(arrays))
        if self._variables:
            arrays = (*arrays, *self._state.read(self._variables))
        return self._packed(self._run(*arrays))

    def _run_where_it_is(self, arrays: tuple[Any, ...]) -> Sequence[Any]:
        """A run that only reads, of values that stay on a device: after a run that took them."""
        state = self._state
        values = state.held(self._variables)
        try:
            results: Sequence[Any] = self._run(*arrays, *values)
        except Exception:
            if not any_gone(values):
                raise
            there = partial(state.there, self._variables)
            results = state.turn.take(lambda: self._run(*arrays, *there()))
        return results

    def _update(self, arrays: tuple[Any, ...]) -> Any:
        """A run that writes; it is this thread's turn."""
        update = self._update_in_place if self._lends else self._update_anew
        return self._packed(having(RUN, self._state.runs, update, arrays))

    def _update_anew(self, arrays: tuple[Any, ...]) -> Sequence[Any]:
        state = self._state
        values = (state.there if self._stays else state.read)(self._variables)
        results: Sequence[Any] = self._run(*arrays, *values)
        state.commit(self._written_of(results), self._counted, own=self._stays)
        return results

    def _update_in_place(self, arrays: tuple[Any, ...]) -> Sequence[Any]:
        """A run that writes, and takes the memory of what it writes anew."""
        state, run = self._state, self._run
        values = state.there(self._variables)
        with state.lent(self._lends) as alone:
            give_back = partial(state.commit, own=True)
            results: Sequence[Any] = run(*arrays, *values, alone=alone, give_back=give_back)
            state.commit(self._written_of(results), self._counted, own=True)
        return results

    def _written_of(self, results: Sequence[Any]) -> dict[Node, Any]:
        return dict(zip(self._written, results[self._count :], strict=True))

    def release(self) -> None:
        """Give back the memory that is kept for the next run: the arena, and old large results.

        Returns: nothing.
        """
        release = getattr(self._compiled, "release", None)
        if release is not None:
            release()

    def profile(self, *args: Any, repeat: int = 10, **kwargs: Any) -> Profile:
        """Where a call's time goes: by op, direction and override, and as a trace file.

        It writes no variable.

        Parameters:
            *args, **kwargs: those of a call.
            repeat: how often to run.

        Returns: a Profile.

        Raises: what a call raises; ExecutionError for a backend that runs a program as a whole.
        """
        arrays = (*self._feeds(args, kwargs), *self._state.read(self._variables))
        known = getattr(self._compiled, "program_for", None)
        program = self.program if known is None else known([a.shape for a in arrays])
        clock = Clock()
        timed = partial(timed_runs, self.backend, program, arrays, repeat, clock)
        runs = having(RUN, self._state.runs, timed)
        return Profile(runs, program, self.backend, clock.loops)

    def explain(self) -> str:
        """What the passes did, what runs as one, where values are, and how much memory it takes.

        Returns: text, of several lines.

        >>> x = gg.placeholder((2,))
        >>> f = gg.compile(x, gg.exp(x), backend="numpy")
        >>> f.explain().startswith("backend numpy")
        True
        """
        describe = getattr(self.backend, "describe", None)
        rows = [f"backend {describe() if describe else self.backend.name}"]
        rows += [_shown(change) for change in self.log] or ["not optimised"]
        for program, log in tuple(self._refined):
            types = ", ".join(repr(t.type) for t in program.inputs)
            rows += [f"for ({types}), {_shown(change)}" for change in log if change.changed]
        notes = getattr(self.backend, "notes", None)
        for plan in self.plans:
            rows += plan.explain() + (notes(plan) if notes else [])
        rows += self._compiled.notes() if self._stays else []
        if self._variables:
            rows.append(f"reads {', '.join(v.name for v in self._variables)}")
        if self._written:
            rows.append(f"writes {', '.join(v.name for v in self._written)}")
        if self._counted:
            rows.append("counts its runs: it draws random numbers without a seed")
        return visible_lines("\n".join(rows))

    @property
    def plans(self) -> list[Plan]:
        """How it runs: one plan, or one for each set of shapes that came; none is known of JAX."""
        found: list[Plan] = getattr(self._compiled, "plans", [])
        if not found and hasattr(self.backend, "plan"):
            found = [self.backend.plan(self.program)]
        return found

    @property
    def peak_bytes(self) -> int | None:
        """Bytes that a run takes at most, beyond inputs, variables, constants and what kernels need
        inside. For the largest shapes that came; None where it is not known."""
        peaks = [plan.peak for plan in self.plans if plan.exact]
        return max(peaks, default=None)

    if TYPE_CHECKING:  # graphgrad.interop puts them in place

        def as_jax(self, gradients: int = 1, *, dtype: Any = None) -> Callable[..., Any]:
            """A pure function of JAX arrays."""

        def export_stablehlo(
            self,
            path: str | os.PathLike[str],
            gradients: int = 0,
            *,
            platforms: Sequence[str] | None = None,
            shapes: Mapping[Any, Sequence[Any]] | None = None,
            dtype: Any = None,
        ) -> None:
            """Write a file with what it computes, for XLA: who runs it needs JAX alone."""

        def state_tree(self, dtype: Any = None) -> dict[str, Any]:
            """The variables that it reads or writes, by name."""

        def commit(self, tree: Mapping[str, Any]) -> None:
            """Write such a tree."""

    else:
        as_jax = LazyMethod("graphgrad.interop.jax_functions")
        commit = LazyMethod("graphgrad.interop.jax_functions")
        export_stablehlo = LazyMethod("graphgrad.interop.stablehlo")
        state_tree = LazyMethod("graphgrad.interop.jax_functions")

    def __repr__(self) -> str:
        return f"<compiled: {self._feeds.signature} -> {self._count} outputs>"


def evaluate(tensors: Any, feeds: Mapping[Any, Any] | None = None) -> Any:
    """The values of tensors, once; every node as it was built.

    Parameters:
        tensors: a tensor, or any nesting of list, tuple and dict of tensors.
        feeds: {tensor or name: array}; any tensor can be fed.

    Returns: NumPy arrays in the structure of tensors; None stays None.

    Raises: GraphError for a placeholder that is needed and not fed, or tensors of two graphs;
    ShapeError and DTypeError for an array that does not fit; DTypeError for what is no tensor.

    >>> x = gg.placeholder((2,), name="x")
    >>> gg.evaluate({"y": 2 * x}, {"x": [1.0, 2.0]})
    {'y': array([2., 4.])}
    """
    leaves = _outputs(tensors)
    graph = _one_graph([t for t in leaves if t is not None])
    given = feeds_of(graph, feeds or {})
    return compile(list(given), tensors, optimize=False)(*given.values())


def feeds_of(graph: Graph | None, feeds: Mapping[Any, Any]) -> dict[Tensor, Any]:
    """A feed by tensor; GraphError where two keys mean one tensor."""
    given: dict[Tensor, Any] = {}
    keys: dict[Tensor, Any] = {}
    for key, value in feeds.items():
        t = _feed_tensor(graph, key)
        if t in given:
            first, second = (repr(k) if isinstance(k, str) else "itself" for k in (keys[t], key))
            raise GraphError(
                f"{t.name} (built at {t.where}) is fed twice: as {first} and as {second}"
            )
        given[t], keys[t] = value, key
    return given


def _feed_tensor(graph: Graph | None, key: Any) -> Tensor:
    """The tensor that a key of a feed means: itself, or its name."""
    if isinstance(key, Tensor):
        return key
    if isinstance(key, str) and graph is not None:
        return graph.tensor(key)
    raise GraphError(f"a feed is keyed by a tensor or its name, got {key!r}")


def packer(tree: Any) -> Callable[[Sequence[Any]], Any]:
    """What puts a flat sequence of values in place of the leaves of a tree; None stays None."""
    places = count()

    def pack(tree: Any) -> Callable[[Sequence[Any]], Any]:
        return (lambda values: None) if tree is None else itemgetter(next(places))

    return _assembled(tree_map(pack, tree))


def _assembled(tree: Any) -> Callable[[Sequence[Any]], Any]:
    """What builds a tree, given functions in place of its leaves."""
    if isinstance(tree, dict):
        items = [(k, _assembled(child)) for k, child in tree.items()]
        return lambda values: {k: part(values) for k, part in items}
    if isinstance(tree, list | tuple):
        parts = [_assembled(child) for child in tree]
        if hasattr(tree, "_fields"):
            return lambda values: type(tree)(*[part(values) for part in parts])
        if type(tree) is list:
            return lambda values: [part(values) for part in parts]
        return lambda values: type(tree)([part(values) for part in parts])
    leaf: Callable[[Sequence[Any]], Any] = tree
    return leaf


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


def _without_dead_updates(
    program: Program, written: list[Node], read: Sequence[Node]
) -> tuple[Program, list[Node]]:
    """Without those that write what a variable was: the last outputs are what is written."""
    count = len(program.outputs) - len(written)
    pairs = zip(written, program.outputs[count:], strict=True)
    same = {v.outputs[0] for v in read}
    live = [(v, t) for v, t in pairs if t is not v.outputs[0] or t not in same]
    if len(live) == len(written):
        return program, written
    outputs = [*program.outputs[:count], *(t for _, t in live)]
    return Program(program.inputs, outputs, program.nodes), [v for v, _ in live]


def _add_assigns(nodes: Sequence[Node], writes: dict[Node, Tensor]) -> None:
    for node in nodes:
        if "fn" in node.op.fields:
            check_function(node)
        if type(node.op) is not Assign:
            continue
        variable = node.inputs[0].node
        if writes.get(variable, node.outputs[0]) is not node.outputs[0]:
            raise StateError(
                f"{variable.name} (built at {variable.where}) is written twice in one run: by "
                f"{node.name} (built at {node.where}) and by {writes[variable].name} "
                f"(built at {writes[variable].where})"
            )
        writes[variable] = node.outputs[0]


def check_placeholders(nodes: Sequence[Node], wanted: Sequence[Tensor]) -> None:
    """GraphError for a placeholder among nodes that a run needs."""
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


answer(CompiledFunction)
show_as_graph(CompiledFunction)
