"""The path on one screen: tensors -> program -> optimise -> backend -> function of arrays."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import isfunction
from itertools import count, starmap, zip_longest
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Never, overload

import numpy as np

from .base.collector import collector_paused, having
from .base.depth import Bounded
from .base.errors import DTypeError, ExecutionError, GraphError, StateError
from .base.first_tries import answer
from .base.flags import truth
from .base.lazy import LazyMethod, lazy_module
from .base.solving import told_names
from .base.tree import flatten, tree_map
from .base.words import visible_lines
from .execute.backend import Backend, Compiled
from .execute.loading import load_backend
from .execute.run.feeds import Feeds
from .execute.run.timed import Clock, timed_runs
from .inspect.scene.limits import measured
from .inspect.scene.profile import Profile
from .ir.graph import Graph, GraphScope, restored
from .ir.held import any_gone
from .ir.node import Node, Tensor
from .ir.notebook import show_as_graph
from .ir.program import Program
from .ir.state import RUN, State
from .ir.typed import K, Named, T_co, Y
from .ir.types import Array, TensorType
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

_healing: Any = lazy_module("graphgrad.healing.heal")

Passes = Callable[..., tuple[Program, list[Change]]]

REFINED = 16  # sets of lengths whose optimisation `explain` tells


@overload
def compile(
    inputs: Tensor | Iterable[Tensor],
    outputs: list[Never],
    *,
    backend: str | Backend = "auto",
    updates: Mapping[Tensor, Any] | None = None,
    state: State | None = None,
    optimize: bool = True,
    verify: bool = False,
    watch: Watch | None = None,
    memory: float | None = None,
    heal: bool = False,
    **options: Any,
) -> CompiledFunction[list[Any]]: ...
@overload
def compile(
    inputs: Tensor | Iterable[Tensor],
    outputs: Y,
    *,
    backend: str | Backend = "auto",
    updates: Mapping[Tensor, Any] | None = None,
    state: State | None = None,
    optimize: bool = True,
    verify: bool = False,
    watch: Watch | None = None,
    memory: float | None = None,
    heal: bool = False,
    **options: Any,
) -> CompiledFunction[Y]: ...
@restored
@collector_paused
def compile(
    inputs: Tensor | Iterable[Tensor],
    outputs: Any = ...,
    *,
    backend: str | Backend = "auto",
    updates: Mapping[Tensor, Any] | None = None,
    state: State | None = None,
    optimize: bool = True,
    verify: bool = False,
    watch: Watch | None = None,
    memory: float | None = None,
    heal: bool = False,
    **options: Any,
) -> CompiledFunction:
    """Compile a graph to a function of arrays that computes outputs from inputs.

    Updates, including those of `assign` nodes, are written together after a run has succeeded.
    Every read in the run sees the old values. Runs that write the same state run one at a time, so
    threads lose no update; runs that only read do not wait, and see a consistent state. A program
    with open lengths is optimized again for each new set of lengths.

    Parameters:
        inputs: a tensor, or a list or tuple of tensors. Any tensor can be an input, not only a
            placeholder; the nodes that compute it then do not run.
        outputs: a tensor, or any nesting of lists, tuples and dicts of tensors. None stays None.
        backend: "auto" (LLVM if it is installed, otherwise NumPy), "numpy", "llvm", "jax", the name
            of an installed backend, or a Backend object.
        updates: {variable: new value}, with the variable's shape. Same-kind casts, such as float64
            to float32, are implicit; for other casts use gg.cast.
        state: the state with the values of variables; by default that of the graph.
        optimize: False runs every node as it was built.
        verify: check the program after every pass.
        watch: called as watch(pass name, program) after each pass.
        memory: the maximum number of bytes of a run, as counted by `peak_bytes`. Gradients of loops
            store as many values as fit and recompute the rest, if necessary from checkpoints of the
            carry. For "jax", the limit is applied to NumPy's count; XLA may use more. With a limit,
            "llvm" packs no matrices for products in loops.
        heal: compute outputs and updates with stable forms, as gg.heal(outputs).ys does; an error
            where they were differentiated.
        **options: of the backend: `num_threads`; `fast_math=True` for the algebra of real numbers,
            where NaN, infinities, signs of zero and last bits may change, for "numpy" and "llvm";
            `exact=True` computes float32 convolutions of 3 x 3 by their definition, as "numpy"
            always does, where "llvm" would use Winograd's algorithm: see docs/optimisation.md;
            `check=True` verifies every kernel's result and every use of memory there, slowly;
            `mesh`, `shardings` and `donate` for "jax": see docs/scale.md; `bounds="jax"` for "jax"
            leaves out the checks behind a run's IndexError, LinAlgError and the like: see
            docs/jax.md.

    Returns: a CompiledFunction.

    Raises: GraphError for an input given twice, a placeholder that is needed and not given, or
    tensors in different graphs; StateError for two updates of one variable; UnknownBackendError;
    DTypeError for outputs that are not tensors; TypeError for an unknown option; ExecutionError,
    with the bytes that are needed, where `memory` is not enough: of unknown lengths when a call
    brings them. A run raises StateError where it would write a state that its thread is writing: in
    a py_function or signal handler.

    >>> x = gg.placeholder(("N",))
    >>> f = gg.compile(x, [gg.sum(x), gg.max(x)])
    >>> f([1.0, 2.0, 3.0])
    [array(6.), array(3.)]
    """
    if isfunction(inputs):
        raise TypeError(
            f"gg.compile takes tensors as inputs and outputs, got the function {inputs.__name__}: "
            "use gg.function(fn), which traces and compiles a function at its first call"
        )
    if outputs is ...:
        raise TypeError("gg.compile takes inputs and outputs, got only inputs")
    truth("optimize", optimize)
    truth("verify", verify)
    if truth("heal", heal):
        outputs, updates = _healed(outputs, updates or {})
    with Bounded():
        chosen = load_backend(backend, **options)
        passes = _passes(optimize, verify, chosen)
        if memory is not None:
            chosen = chosen.frugal()
            passes = _within(_bytes(memory), passes, chosen)
        return _compile(inputs, outputs, chosen, updates or {}, state, passes, watch)


def _healed(outputs: Any, updates: Mapping[Tensor, Any]) -> tuple[Any, dict[Tensor, Any]]:
    """Outputs and updates by stable forms."""
    news = [t for t in updates.values() if isinstance(t, Tensor)]
    if not any(isinstance(t, Tensor) for t in [*flatten(outputs), *news]):
        return outputs, dict(updates)
    outputs, made = _healing.heal((outputs, news)).ys
    now = iter(made)
    return outputs, {v: next(now) if isinstance(t, Tensor) else t for v, t in updates.items()}


def _passes(optimize: bool, verify: bool, backend: Backend) -> Passes:
    """What is done to a program before it runs."""
    if not optimize:
        return lambda program, watch=None, policy=None: (program, [])
    return partial(optimise, verify=verify, fast_math=backend.fast_math, joining=backend.joining)


def _bytes(memory: object) -> int:
    if isinstance(memory, bool) or not isinstance(memory, int | float | np.number):
        raise TypeError(f"memory is a number of bytes, got {memory!r}")
    if not memory > 0:
        raise ValueError(f"memory is a number of bytes above 0, got {memory!r}")
    return int(memory)


def _within(limit: int, passes: Passes, backend: Backend) -> Passes:
    """The passes, within a limit of memory; a program of unknown lengths stays as it was built."""
    whole = backend.bind() is None
    planning = load_backend("numpy") if whole else backend

    def peak_of(program: Program) -> Peak:
        plan: Any = planning.plan(program)
        return Peak(plan.peak, plan.exact)

    fitting = Fitting(limit, passes, peak_of)

    def fitted(program: Program, watch: Watch | None = None) -> tuple[Program, list[Change]]:
        if all(t.type.static for t in program.inputs):
            return fitting(program, watch)
        if whole:
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
    wanted = [t for t in _outputs(outputs) if t is not None]
    _check_variables(updates)
    graph = _one_graph([*given, *wanted, *updates])
    writes = _updates(graph, updates)

    updated = {v.outputs[0]: new for v, new in writes.items()}
    start, read = _as_built(given, wanted, writes)
    counted = draws_keys(start)
    program, log = passes(start, watch=watch)
    program, written = _without_dead_updates(program, list(writes), read)
    # what loops keep and nobody reads is left out, whether or not anything else is optimised
    run = backend.compile_with_state(drop_unread(program), given, read, written)
    refined = _let_refine(run, passes, watch)
    where = state if state is not None else graph.state if graph is not None else State()
    where.concerns(graph)

    def fit_together(types: list[TensorType]) -> None:
        """What does not fit in the program as it was built, whatever was optimised away."""
        if program is not start or not run.refines:
            specialise(start, [*types, *(v.outputs[0].type for v in read)])

    stated = () if graph is None else tuple(graph.assumptions)
    feeds = Feeds(given, fit_together, run.takes, stated)
    results = (*wanted, *(writes[v] for v in written))
    return CompiledFunction(
        Request(feeds, outputs, updated, results, len(wanted)),
        Executable(backend, passes, program, log, refined, run),
        StateAccess(where, tuple(read), tuple(written), counted),
    )


def _as_built(
    given: list[Tensor], wanted: list[Tensor], writes: dict[Node, Tensor]
) -> tuple[Program, list[Node]]:
    """The program from what is given, and the variables it reads, to what is wanted and written.

    Assigns among the nodes needed are added to writes.
    """
    program = Program(given, [*wanted, *writes.values()])
    nodes = program.nodes
    kinds = {type(op) for op in program.ops}
    if Placeholder in kinds:
        check_placeholders(nodes, wanted)
    if program.open_lengths:
        check_open_lengths(given, nodes)
    if Assign in kinds or any("fn" in kind.fields for kind in kinds):
        _add_assigns(nodes, writes)
    if not kinds & {Variable, Assign}:
        return program, []
    variables = [n for n in nodes if type(n.op) is Variable]
    inputs = [*given, *(v.outputs[0] for v in variables)]
    return Program(inputs, [*wanted, *writes.values()]), variables


def _let_refine(
    run: Compiled, passes: Passes, watch: Watch | None
) -> deque[tuple[Program, list[Change]]]:
    """Optimise again for lengths that become known; what that did, of the latest ones."""
    refined: deque[tuple[Program, list[Change]]] = deque(maxlen=REFINED)

    def refine(specialised: Program) -> Program:
        refined.append(passes(specialised, watch=watch))
        return refined[-1][0]

    run.refine = refine
    return refined


class Request(NamedTuple):
    """What `compile` was asked for.

    feeds    the inputs, and how the arguments of a call become their arrays
    outputs  the tensors, in their structure
    updates  {variable: the tensor that is written to it}
    results  the outputs without None, then the next values of variables, as they were built: what
             is differentiated
    arity    how many of these are outputs
    """

    feeds: Feeds
    outputs: Any
    updates: dict[Tensor, Tensor]
    results: tuple[Tensor, ...]
    arity: int


class Executable(NamedTuple):
    """What runs.

    backend  that of `run`
    passes   how programs are optimised
    program  the program after that
    log      what each pass did
    refined  programs of known lengths, and what each pass did to them; the latest ones
    run      the program as the backend's function of arrays
    """

    backend: Backend
    passes: Passes
    program: Program
    log: list[Change]
    refined: deque[tuple[Program, list[Change]]]
    run: Compiled


class StateAccess(NamedTuple):
    """What a run has to do with state.

    state    where the values of variables are
    read     the variables whose values follow the arguments
    written  those whose next values follow the outputs
    counted  whether runs are counted: they draw random numbers without a seed
    """

    state: State
    read: tuple[Node, ...]
    written: tuple[Node, ...]
    counted: bool

    @property
    def variables(self) -> list[Node]:
        """Those that are read or written, each once."""
        return list(dict.fromkeys((*self.read, *self.written)))

    @property
    def changes(self) -> bool:
        """Whether a run writes the state."""
        return self.counted or bool(self.written)


class CompiledFunction(Generic[T_co]):
    """What `compile` returns: call it with arrays. Safe to call from many threads.

    >>> x = gg.placeholder((), name="x")
    >>> f = gg.compile(x, {"square": x * x})
    >>> f(3.0), f(x=4.0)
    ({'square': array(9.)}, {'square': array(16.)})
    """

    def __init__(self, request: Request, executable: Executable, access: StateAccess) -> None:
        self._request, self._executable, self._access = request, executable, access
        self._feeds, self._fit = request.feeds, request.feeds.fit
        self._packed = packer(request.outputs)
        self._run: Any = executable.run.call
        self._stays = executable.run.keeps_state
        self._lends = [access.read[i] for i in executable.run.lends]
        self._state, self._read = access.state, access.read
        self._changes = access.changes
        pairs = zip_longest(access.read, access.written)
        self._reads_again = access.read if all(starmap(is_, pairs)) else ()
        self._advances = executable.run.seals and bool(self._reads_again)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors of its arguments, in order."""
        return self._feeds.inputs

    @property
    def outputs(self) -> T_co:
        """The tensors that it computes, in the structure in which they were given."""
        outputs: T_co = self._request.outputs
        return outputs

    @property
    def updates(self) -> dict[Tensor, Tensor]:
        """{variable: the tensor that is written to it}, as they were given."""
        return self._request.updates

    @property
    def program(self) -> Program:
        """What runs, after optimisation; of unknown lengths it is optimised again in a call."""
        return self._executable.program

    @property
    def log(self) -> list[Change]:
        """What each pass did."""
        return self._executable.log

    @property
    def backend(self) -> Backend:
        """What it runs on."""
        return self._executable.backend

    @overload
    def __call__(self: CompiledFunction[Named], *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self: CompiledFunction[Tensor], *args: Any, **kwargs: Any) -> Array: ...
    @overload
    def __call__(
        self: CompiledFunction[list[Tensor]], *args: Any, **kwargs: Any
    ) -> list[Array]: ...
    @overload
    def __call__(
        self: CompiledFunction[dict[K, Tensor]], *args: Any, **kwargs: Any
    ) -> dict[K, Array]: ...
    @overload
    def __call__(
        self: CompiledFunction[tuple[Tensor, Tensor]], *args: Any, **kwargs: Any
    ) -> tuple[Array, Array]: ...
    @overload
    def __call__(
        self: CompiledFunction[tuple[Tensor, Tensor, Tensor]], *args: Any, **kwargs: Any
    ) -> tuple[Array, Array, Array]: ...
    @overload
    def __call__(self: CompiledFunction[list[Any]], *args: Any, **kwargs: Any) -> list[Any]: ...
    @overload
    def __call__(
        self: CompiledFunction[dict[K, Any]], *args: Any, **kwargs: Any
    ) -> dict[K, Any]: ...
    @overload
    def __call__(
        self: CompiledFunction[tuple[Any, ...]], *args: Any, **kwargs: Any
    ) -> tuple[Any, ...]: ...
    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run: arrays in the order of the inputs, or by name; the outputs' structure of arrays.

        Inputs are never modified, and no result shares memory with them. Raises TypeError for
        missing or unknown arguments, DTypeError and ShapeError for arrays that do not fit.
        """
        arrays = args if not kwargs and self._fit(args) else self._feeds(args, kwargs)
        if self._changes:
            return self._state.turn.take(self._update, arrays)
        if self._stays and self._read:
            return self._packed(self._run_where_it_is(arrays))
        if self._read:
            arrays = arrays + self._state.for_run(self._read)
        return self._packed(self._run(*arrays))

    def _run_where_it_is(self, arrays: tuple[Any, ...]) -> Sequence[Any]:
        """A run that only reads, of values that stay on a device: after a run that took them."""
        state = self._state
        values = state.held(self._read)
        try:
            results: Sequence[Any] = self._run(*arrays, *values)
        except Exception:
            if not any_gone(values):
                raise
            there = partial(state.there, self._read)
            results = state.turn.take(lambda: self._run(*arrays, *there()))
        return results

    def _update(self, arrays: tuple[Any, ...]) -> Any:
        """A run that writes; it is this thread's turn."""
        update = self._update_in_place if self._lends else self._update_anew
        runs = self._state.runs
        if RUN.get() is runs:
            return self._packed(update(arrays))
        return self._packed(having(RUN, runs, update, arrays))

    def _update_anew(self, arrays: tuple[Any, ...]) -> Sequence[Any]:
        state = self._state
        if self._stays:
            results: tuple[Any, ...] = self._run(*arrays, *state.there(self._read))
        else:
            results = self._run(*(arrays + state.for_run(self._read)))
        if self._advances:
            state.advance(self._read, results[self._request.arity :], self._access.counted)
            return results
        written = self._written_of(results)
        state.commit(written, self._access.counted, own=self._stays, read=self._reads_again)
        return results

    def _update_in_place(self, arrays: tuple[Any, ...]) -> Sequence[Any]:
        """A run that writes, and takes the memory of what it writes anew."""
        state, run = self._state, self._run
        values = state.there(self._read)
        with state.lent(self._lends) as alone:
            give_back = partial(state.commit, own=True)
            results: Sequence[Any] = run(*arrays, *values, alone=alone, give_back=give_back)
            state.commit(self._written_of(results), self._access.counted, own=True)
        return results

    def _written_of(self, results: Sequence[Any]) -> dict[Node, Any]:
        return dict(zip(self._access.written, results[self._request.arity :], strict=True))

    def release(self) -> None:
        """Give back the memory that is kept for the next run: the arena, and old large results.

        Returns: nothing.
        """
        self._executable.run.release()

    def profile(self, *args: Any, repeat: int = 10, limits: bool = False, **kwargs: Any) -> Profile:
        """Where a call's time goes: by op, direction and override, and as a trace file.

        It writes no variable.

        Parameters:
            *args, **kwargs: those of a call.
            repeat: how often to run.
            limits: measure what the machine does at most, too, by NumPy's sum of two large arrays
                and its product of matrices, and show which share of it each row reaches: the least
                time that its bytes or its operations need there, over that which it took. What
                lies in a cache may pass 100 %. It takes about a second, once in a process.

        Returns: a Profile.

        Raises: what a call raises; ExecutionError for a backend that runs a program as a whole.
        """
        arrays = (*self._feeds(args, kwargs), *self._state.read(self._read))
        program = self._executable.run.program_for([a.shape for a in arrays]) or self.program
        clock = Clock()
        timed = partial(timed_runs, self.backend, program, arrays, repeat, clock)
        runs = having(RUN, self._state.runs, timed)
        most = measured(self.backend.threads) if limits else None
        return Profile(runs, program, self.backend, clock.loops, most)

    def explain(self) -> str:
        """What the passes did, what runs as one, where values are, and how much memory it takes.

        Returns: text, of several lines.

        >>> x = gg.placeholder((2,))
        >>> f = gg.compile(x, gg.exp(x), backend="numpy")
        >>> f.explain().startswith("backend numpy")
        True
        """
        rows = [f"backend {self.backend.describe()}"]
        rows += [_shown(change) for change in self.log] or ["not optimised"]
        for program, log in tuple(self._executable.refined):
            types = ", ".join(repr(t.type) for t in program.inputs)
            rows += [f"for ({types}), {_shown(change)}" for change in log if change.changed]
        plans = self.plans
        for plan in plans:
            rows += plan.explain() + self.backend.notes(plan)
        if not plans and self.program.open_lengths:
            names = ", ".join(sorted(self.program.open_lengths))
            rows.append(f"planned for each set of shapes, when they tell {names}")
        rows += self._executable.run.notes()
        if self._read:
            rows.append(f"reads {', '.join(v.name for v in self._read)}")
        if self._access.written:
            rows.append(f"writes {', '.join(v.name for v in self._access.written)}")
        if self._access.counted:
            rows.append("counts its runs: it draws random numbers without a seed")
        return visible_lines("\n".join(rows))

    @property
    def plans(self) -> list[Plan]:
        """How it runs: one plan, or one for each set of shapes that came; none is known of JAX."""
        plans = self._executable.run.plans
        later = plans or self.program.open_lengths
        plan = None if later else self.backend.plan(self.program)
        return plans if plan is None else [plan]

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
        return f"<compiled: {self._feeds.signature} -> {self._request.arity} outputs>"


@overload
def evaluate(tensors: Named, feeds: Mapping[Any, Any] | None = None) -> Any: ...
@overload
def evaluate(tensors: Tensor | Literal[0], feeds: Mapping[Any, Any] | None = None) -> Array: ...
@overload
def evaluate(tensors: list[Tensor], feeds: Mapping[Any, Any] | None = None) -> list[Array]: ...
@overload
def evaluate(
    tensors: dict[K, Tensor], feeds: Mapping[Any, Any] | None = None
) -> dict[K, Array]: ...
@overload
def evaluate(
    tensors: tuple[Tensor, Tensor], feeds: Mapping[Any, Any] | None = None
) -> tuple[Array, Array]: ...
@overload
def evaluate(
    tensors: tuple[Tensor, Tensor, Tensor], feeds: Mapping[Any, Any] | None = None
) -> tuple[Array, Array, Array]: ...
@overload
def evaluate(tensors: list[Any], feeds: Mapping[Any, Any] | None = None) -> list[Any]: ...
@overload
def evaluate(tensors: dict[K, Any], feeds: Mapping[Any, Any] | None = None) -> dict[K, Any]: ...
@overload
def evaluate(
    tensors: tuple[Any, ...], feeds: Mapping[Any, Any] | None = None
) -> tuple[Any, ...]: ...
@overload
def evaluate(tensors: None, feeds: Mapping[Any, Any] | None = None) -> None: ...
def evaluate(tensors: Any, feeds: Mapping[Any, Any] | None = None) -> Any:
    """The values of tensors, once; every node as it was built.

    Parameters:
        tensors: a tensor, or any nesting of list, tuple and dict of tensors.
        feeds: {tensor or name: array}; any tensor can be fed.

    Returns: NumPy arrays in the structure of tensors; None stays None.

    Raises: GraphError for a placeholder that is needed and not fed, or tensors in different graphs;
    ShapeError and DTypeError for an array that does not fit; DTypeError for input that is not a
    tensor.

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


def check_open_lengths(given: Sequence[Tensor], nodes: Sequence[Node]) -> None:
    """GraphError for a named length in an op that the inputs of a run do not tell."""
    needed_by: dict[str, Node] = {}
    for node in nodes:
        for name in node.op.open_lengths:
            needed_by.setdefault(name, node)
    if not needed_by:
        return
    known = told_names(d for t in given for d in t.shape)
    for name, node in needed_by.items():
        if name not in known:
            inputs = ", ".join(f"{t.name}: {t.type!r}" for t in given) or "none"
            raise GraphError(
                f"{node.name} = {node.op!r}, built at {node.where}, needs the length {name!r}, "
                f"which no input determines ({inputs}).\n"
                "Add an input with an axis of that length."
            )


def _shown(change: Change) -> str:
    fired = ", ".join(f"{name} {n}x" for name, n in sorted(change.fired.items()))
    done = f"{change.before} -> {change.after} nodes" if change.changed else "nothing to do"
    return f"{change.name}: {done}" + (f" ({fired})" if fired else "")


answer(CompiledFunction)
show_as_graph(CompiledFunction)
