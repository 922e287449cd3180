"""Whatever is interrupted, wherever: nothing is half done, and the next question is answered right.

Each case is interrupted once at every place where Python lets an interrupt come through; in the
ordinary run of the tests, at some of them.
"""

from __future__ import annotations

import contextlib
import contextvars
import gc
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphgrad as gg
from graphgrad.ir import state as states
from graphgrad.ir.context import CONTEXT, Scope
from graphgrad.ir.verify import verify_graph
from graphgrad.regions import boundary, rules
from graphgrad.regions.index import bodies_of

from .differentiate.helpers import default, scaled
from .each import every
from .interrupting import Line, Place, interrupted, lines, places, signalled

POINT = np.array([0.3, 0.5])


@dataclass
class Case:
    """A graph, what is interrupted on it, and a question whose answer is as before or as after."""

    graph: gg.Graph
    action: Callable[[], Any]
    question: Callable[[], Any]


def answer(tensors: Any, feeds: Any) -> Any:
    return [a.round(9).tolist() for a in gg.base.tree.flatten(gg.evaluate(tensors, feeds))]


def numbers(f: Any, *args: Any) -> Any:
    return [np.round(a, 9).tolist() for a in gg.base.tree.flatten(f(*args))]


# --- cases ---------------------------------------------------------------------------------------


def net(x, marked=True):
    """sin and exp in nested regions, a map, and what reads them."""
    with gg.override_gradient(scaled(3.0)):
        a = gg.sin(x)
        with gg.override_gradient(scaled(5.0), inputs=[a, x]) as inner:
            b = gg.exp(a) * x
            inner.declare(outputs=[b])
    with gg.gradient_override_map({"Tanh": default}):
        c = gg.tanh(b)
    return c * b


def asked(graph, x, y, order=1, **options):
    with graph:
        dx = y
        for _ in range(order):
            dx = gg.gradients(gg.sum(dx), x, **options)
        return answer(dx, {x: POINT})


def new():
    graph = gg.Graph()
    with graph:
        return graph, gg.placeholder((2,), name="x")


def built():
    graph, x = new()
    with graph:
        return graph, x, net(x)


def building():
    graph, x = new()

    def question():
        with graph, gg.name_scope("named"):
            y = net(x * gg.variable(np.ones(2), name="w"))
            assert all(graph.node(n.name) is n for n in graph.nodes)
            return asked(graph, x, y, 2)

    def build():
        with graph, gg.name_scope("named"):
            net(x * gg.variable(np.ones(2), name="w"))

    return Case(graph, build, question)


@gg.custom_gradient
def cube(x):
    y = x * x * x

    def grad(dy):
        return dy * 3.0 * x * x, lambda ddx: dy * 6.0 * x * ddx

    return y, grad


def building_custom_gradients():
    graph, x = new()

    def question():
        with graph:
            return asked(graph, x, cube(gg.sin(x)), 2)

    def build():
        with graph:
            cube(gg.sin(x))

    return Case(graph, build, question)


def building_choices_and_batches():
    graph, x = new()

    def build():
        with graph, gg.gradient_override_map({"Sin": scaled(2.0)}):
            y = gg.cond(gg.sum(x) > 0.0, lambda: net(x), lambda: gg.sin(x))
            return y + gg.vmap(lambda row: net(gg.sin(row)))(x)

    return Case(graph, build, lambda: asked(graph, x, build()))


def loops(x):
    """A rule in each run of a loop, and a loop with a test in it."""

    def run(s, row):
        with gg.override_gradient(scaled(3.0)):
            t = gg.sin(s * row)
        far = gg.while_loop(lambda c: gg.abs(c) < 2.0, lambda c: c * 1.5 + row, t)
        return t + far, gg.cond(t > 0.0, lambda: t, lambda: row)

    s, rows = gg.scan(run, gg.sum(x), x)
    return s * gg.map(gg.tanh, rows)


def building_loops():
    graph, x = new()

    def build():
        with graph, gg.gradient_override_map({"Sin": scaled(2.0)}):
            return loops(x)

    return Case(graph, build, lambda: asked(graph, x, build()))


def asking_of_loops():
    graph, x = new()
    with graph:
        y = loops(x)
    return Case(graph, *[lambda: asked(graph, x, y)] * 2)


def running_loops(backend="numpy"):
    graph, x = new()
    with graph:
        y = loops(x)
        f = gg.compile([x], [y, gg.gradients(gg.sum(y), x)], backend=backend)

    def question():
        return [numbers(f, POINT), numbers(f, 3.0 * POINT)]

    return Case(graph, question, question)


def asking(order=1, **options):
    graph, x, y = built()
    return Case(graph, *[lambda: asked(graph, x, y, order, **options)] * 2)


def asking_of_a_group():
    graph, x = new()
    with graph:
        a = gg.sin(x)
        y = gg.tanh(gg.exp(a) * a) * x
    chosen = gg.select.nodes(*graph.nodes[2:4])

    def question():
        named = asked(graph, x, y, 2, overrides={chosen: scaled(2.0), "Tanh": default})
        return named, asked(graph, x, y)

    return Case(graph, question, question)


def asking_of_a_choice():
    graph, x = new()
    with graph:
        y = gg.cond(gg.sum(x) > 0.0, lambda: net(x), lambda: gg.sin(x))

    def question():
        other = graph.copy()
        twins = [other.nodes[t.node.index].outputs[0] for t in (x, y)]
        return asked(graph, x, y, 2), asked(other, *twins, 2)

    return Case(graph, lambda: asked(graph, x, y, 2), question)


def asking_custom_gradients():
    graph, x = new()
    with graph:
        y = cube(gg.sin(x)) * x
    return Case(graph, *[lambda: asked(graph, x, y, 3)] * 2)


def asking_forward():
    graph, x, y = built()

    def question():
        with graph:
            return answer(gg.jvp([y], [x], [x * 2.0]), {x: POINT})

    return Case(graph, question, question)


def marking():
    graph, x = new()
    with graph:
        with gg.override_gradient(scaled(11.0)):
            b = gg.tanh(gg.sin(x)) * 2.0
        y = gg.exp(b + gg.sin(b)) * x

    def mark():
        graph.mark(gg.select.op("Sin", "Exp"), scaled(3.0))

    return Case(graph, mark, lambda: asked(graph, x, y, 2))


def marking_a_region():
    graph, x = new()
    with graph, gg.override_gradient(scaled(7.0)):
        a = gg.sin(x)
        b = gg.tanh(a) * x
        y = gg.exp(b)

    def mark():
        selection = gg.select.nodes(a, b.node.inputs[0])
        graph.mark(selection, scaled(5.0), inputs=[x], allow_inside=True)

    return Case(graph, mark, lambda: asked(graph, x, y, 2))


def marking_many_regions():
    graph, x = new()
    with graph:
        y = x
        for _ in range(3):
            y = gg.tanh(gg.sin(y) * 0.5)
    pattern = gg.select.op("Sin", "Tanh").each()

    def mark():
        graph.mark(pattern, scaled(2.0), order="through")

    return Case(graph, mark, lambda: asked(graph, x, y))


def marking_tensors():
    graph = gg.Graph()
    with graph:
        x = gg.placeholder((2,), name="x")
        h = gg.sin(x)
        y = gg.exp(h * x)
    graph.mark(h, scaled(2.0), together=True)

    def mark():
        graph.mark([x], scaled(3.0), together=True)

    return Case(graph, mark, lambda: asked(graph, x, y, 2))


def unmarking_tensors():
    graph = gg.Graph()
    with graph:
        x = gg.placeholder((2,), name="x")
        y = gg.exp(gg.sin(x))
    graph.mark(x, scaled(2.0), together=True)
    (site,) = graph.mark(x, scaled(3.0), together=True)
    return Case(graph, lambda: graph.unmark(site), lambda: asked(graph, x, y, 2))


def unmarking():
    graph, x, y = built()
    asked(graph, x, y, 2)

    def unmark():
        graph.unmark(gg.select.rule("times") | "Tanh")

    return Case(graph, unmark, lambda: asked(graph, x, y, 2))


def compiling(backend="numpy"):
    graph, x, y = built()
    with graph:
        dx = gg.gradients(gg.sum(y), x)

    def question():
        return numbers(gg.compile([x], [y, dx], backend=backend), POINT)

    return Case(graph, question, question)


def running(backend="numpy"):
    graph = gg.Graph()
    with graph:
        x = gg.placeholder((None,), name="x")
        y = net(x)
        f = gg.compile([x], [y, gg.gradients(gg.sum(y), x)], backend=backend)

    def question():
        return [numbers(f, POINT), numbers(f, POINT[:1])]

    return Case(graph, question, question)


def updating():
    graph = gg.Graph()
    with graph:
        v, w = (gg.variable(np.zeros(2), name=n) for n in "vw")
        f = gg.compile([], [v, w], updates={v: v + 1.0, w: w + 2.0})
    session = gg.Session(graph)
    session.state = graph.state

    def question():
        first, second = session.run([v, w])
        assert (first * 2 == second).all()
        return first.tolist()

    return Case(graph, f, question)


def session():
    graph = gg.Graph()
    with graph:
        v = gg.variable(np.zeros(2), name="v")
        add = gg.assign(v, v + 1.0)
        add_all = [add, gg.sum(add)]
    kept = gg.Session(graph)

    def run():
        with gg.Session(graph) as own:
            own.run(add_all)
        kept.run(add_all)

    return Case(graph, run, lambda: kept.run(v).tolist())


def training():
    graph, x, y = built()
    with graph:
        w = gg.variable(np.ones(2), name="w")
        loss = gg.sum(gg.square(y * w))

    def step():
        with graph:
            updates = gg.optimizers.Adam(0.1).updates([w], gg.gradients(loss, [w]))
            f = gg.compile([x], loss, updates=updates)
        return [numbers(f, POINT), numbers(f, POINT)]

    def question():
        graph.state.reset()
        return step()

    return Case(graph, step, question)


def five(site, dy):
    return dy * 5.0


def copying():
    graph, x = new()
    with graph:
        with gg.override_gradient(five):
            y = gg.sin(x)
        y = gg.cond(gg.sum(y) > 0.0, lambda: gg.exp(y), lambda: y)

    def action():
        return [graph.copy(), pickle.loads(pickle.dumps(graph)), gg.import_graph(graph)]

    def question():
        here = asked(graph, x, y)
        for other in action()[:2]:
            twins = [other.nodes[t.node.index].outputs[0] for t in (x, y)]
            assert asked(other, *twins) == here
        return here

    return Case(graph, action, question)


def importing():
    graph, x, y = built()
    other = gg.Graph()
    with other:
        u = gg.placeholder((2,), name="x")

    def action():
        with other:
            return gg.import_graph(graph, {x: u})[y]

    return Case(other, action, lambda: asked(other, u, action(), 2))


def batching():
    graph, x = new()

    def batch():
        with graph:
            z = gg.vmap(net)(gg.sin(x))
            return gg.gradients(gg.sum(z), x)

    def question():
        with graph:
            return answer(batch(), {x: POINT})

    return Case(graph, batch, question)


def saving():
    graph, x = new()
    with graph, gg.override_gradient(five):
        y = gg.sin(x)
    folder = Path(tempfile.mkdtemp())

    def action():
        gg.save(folder / "net.gg", graph, functions={"sin": ([x], [y, gg.gradients(y, x)])})
        return gg.load(folder / "net.gg").functions["sin"]

    def question():
        found = numbers(action(), POINT)
        assert os.listdir(folder) == ["net.gg"]
        return found

    return Case(graph, action, question)


def keeping_checkpoints():
    graph = gg.Graph()
    with graph:
        gg.variable(POINT, name="w")
    checkpoints = gg.Checkpoints(tempfile.mkdtemp(), keep=1)

    def action():
        checkpoints.save(1, graph)
        return checkpoints.resume(graph)

    return Case(graph, action, lambda: action().step)


def registering():
    graph, x = new()
    with graph, gg.override_gradient("interrupted", late=True):
        y = gg.sin(x)
    gg.register_gradient("interrupted", replace=True)(scaled(2.0))

    def action():
        with gg.temporary_gradient("interrupted", scaled(3.0)):
            pass
        gg.register_gradient("interrupted", replace=True)(scaled(4.0))

    return Case(graph, action, lambda: asked(graph, x, y))


CASES = {
    "build": building,
    "build custom_gradient": building_custom_gradients,
    "build cond, vmap": building_choices_and_batches,
    "build loops": building_loops,
    "gradients": asking,
    "second order": lambda: asking(2),
    "overrides": lambda: asking(2, overrides={"Sin": default, gg.select.rule("times"): None}),
    "overrides of a group": asking_of_a_group,
    "gradients of cond": asking_of_a_choice,
    "gradients of loops": asking_of_loops,
    "gradients of custom_gradient": asking_custom_gradients,
    "jvp": asking_forward,
    "mark nodes": marking,
    "mark a region": marking_a_region,
    "mark regions": marking_many_regions,
    "mark tensors": marking_tensors,
    "unmark tensors": unmarking_tensors,
    "unmark": unmarking,
    "compile": compiling,
    "compile llvm": lambda: compiling("llvm"),
    "run": running,
    "run llvm": lambda: running("llvm"),
    "run loops": running_loops,
    "run loops llvm": lambda: running_loops("llvm"),
    "update": updating,
    "session": session,
    "train": training,
    "copy, pickle": copying,
    "import": importing,
    "save, load": saving,
    "checkpoints": keeping_checkpoints,
    "vmap": batching,
    "register": registering,
}

# --- checking ------------------------------------------------------------------------------------


class Way(NamedTuple):
    """How an action is interrupted: where it can be, and what does it."""

    places: Callable[[Callable[[], Any]], list[Any]]
    interrupted: Callable[..., bool]


BETWEEN = Way(places, interrupted)
BY_LINE = Way(lines, signalled)


class Around(Scope):
    """A block of the user's that the interrupt leaves, and that is itself left for sure."""

    def __enter__(self):
        self._push(CONTEXT.get().copy())

    def __exit__(self, kind, *exc):
        if self.is_around():
            self._pop(kind)


def inside(action: Callable[[], Any]) -> None:
    with Around():
        action()


def check(name: str, some: Callable[[list[Any]], list[Any]], way: Way = BETWEEN) -> None:
    make = CASES[name]
    case = make()
    fine = [case.question()]
    case = make()
    case.action()
    fine.append(case.question())
    make().action()  # what is made once, for good, is made
    found, wrong = [p for p in way.places(make().action) if not out_of_reach(p)], []
    assert found
    for place in some(found):
        try:
            contextvars.copy_context().run(
                check_at, make(), lambda act, at=place: way.interrupted(act, at), fine
            )
        except Exception as error:
            wrong.append(f"{place}: {type(error).__name__}: {str(error)[:300]}")
    assert not wrong, "\n".join([f"{len(wrong)} places", *wrong])


def out_of_reach(place: Place | Line) -> bool:
    """Before an `__exit__` begins nothing can be done; here nobody around does it either."""
    code = place.program
    begins = (
        place.offset == 2 if isinstance(place, Place) else place.line <= code.co_firstlineno + 1
    )
    return begins and code.co_qualname == "temporary_gradient.__exit__"


def state_of_process() -> dict[Any, Any]:
    """What a process and a thread have one of, and every context variable."""
    return {
        **{v: id(value) for v, value in contextvars.copy_context().items()},
        "collector": (gc.isenabled(), gc.get_threshold()),
        "errors of numpy": np.geterr(),
        "signals": (signal.pthread_sigmask(signal.SIG_BLOCK, ()), signal.getsignal(signal.SIGINT)),
        "limit of recursion": sys.getrecursionlimit(),
        "filters of warnings": list(warnings.filters),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "mask of files": mask_of_files(),
    }


def mask_of_files() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def check_at(case: Case, interrupt: Callable[..., bool], fine: list[Any]) -> None:
    for variable in CONTEXT, rules._temporary:
        variable.set(variable.get())  # in this context its default is as good as set
    was = state_of_process()
    interrupt(lambda: inside(case.action))
    assert not (changed := [k for k, v in state_of_process().items() if v != was.get(k)]), changed
    for graph in bodies_of(case.graph):
        assert not [r for r in graph.regions if r.open], "a region is open"
        assert all(n.region is None or n.region in graph.regions for n in graph.nodes)
        verify_graph(graph)
    free_locks(case.graph)
    assert case.question() in fine, (case.question(), fine)


def free_locks(graph: gg.Graph) -> None:
    locks = [boundary.LOCK, rules._lock, states._lock, graph.state.turn.lock]

    def take():
        for i, lock in enumerate(locks):
            assert lock.acquire(timeout=60), f"lock {i} is held"
            lock.release()

    failed: list[BaseException] = []

    def run():
        try:
            take()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert not failed


IN_CLOSE = "ignore::pytest.PytestUnraisableExceptionWarning"
"""Python prints an interrupt of a generator that is closed because nobody has it any more, and of a
file that was opened and is not in a `with` yet."""


def in_the_middle(found: list[Any]) -> list[Any]:
    return found[len(found) // 2 :][:1]


def those_between(found: list[Any]) -> list[Any]:
    """Places at equal distances between these."""
    step = max(1, len(found) // 4)
    return found[step // 2 :: step]


@pytest.mark.parametrize("name", every(3, CASES))
def test_S30_nothing_is_half_done_where_it_is_interrupted(name):
    contextvars.copy_context().run(check, name, in_the_middle)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_S30_nothing_is_half_done_at_more_places(name):
    contextvars.copy_context().run(check, name, those_between)


@pytest.mark.slow
@pytest.mark.filterwarnings(IN_CLOSE)
@pytest.mark.parametrize("name", CASES)
def test_S30_nothing_is_half_done_wherever_it_is_interrupted(name):
    contextvars.copy_context().run(check, name, list)


STRUCK = ["gradients of loops", "second order", "compile", "run", "save, load", "vmap"]


@pytest.mark.filterwarnings(IN_CLOSE)
@pytest.mark.parametrize("name", STRUCK)
def test_S30_the_process_is_as_it_was_after_a_signal_at_a_line(name):
    contextvars.copy_context().run(check, name, in_the_middle, BY_LINE)


def test_S30_a_rule_may_ask_again_for_a_default_that_was_interrupted():
    """What is asked and known is as it was then, though nobody but the rule has left anything."""

    def known():
        context = CONTEXT.get()
        return context.question, context.answering, context.origin, context.region

    def patient(site, dy):
        before = known()
        try:
            return site.default(dy)
        except KeyboardInterrupt:
            assert all(now is then for now, then in zip(known(), before, strict=True))
            return site.default(dy)

    graph, x = new()
    with graph, gg.override_gradient(patient):
        y = net(x)
    functions = ("Sweep.run", "Answering.", "_wanted")
    found = [p for p in places(lambda: gg.gradients(y, x)) if p.code[1].startswith(functions)]
    assert len(found) > 10
    for place in (replace(p, time=nth) for p in found for nth in (2, 3)):
        contextvars.copy_context().run(interrupted, lambda: gg.gradients(y, x), place)


@pytest.mark.slow
@pytest.mark.filterwarnings(IN_CLOSE)
@pytest.mark.parametrize("name", CASES)
def test_S30_the_process_is_as_it_was_after_a_signal_at_more_lines(name):
    contextvars.copy_context().run(check, name, those_between, BY_LINE)


@pytest.mark.slow
@pytest.mark.filterwarnings(IN_CLOSE)
@pytest.mark.parametrize("name", CASES)
def test_S30_the_process_is_as_it_was_after_a_signal_at_each_line(name):
    contextvars.copy_context().run(check, name, list, BY_LINE)


def bear_interrupts(name: str, count: int) -> None:
    """Run a case again and again until signals of another process have come through so often."""
    make, fine = CASES[name], []
    for act in (False, True):
        case = make()
        if act:
            case.action()
        fine.append(case.question())
    came, armed = 0, False

    def handle(*_: object) -> None:
        nonlocal came, armed
        if armed:
            came, armed = came + 1, False
            raise KeyboardInterrupt

    def arm(action: Callable[[], Any]) -> None:
        nonlocal armed
        armed = True
        action()
        armed = False

    def interrupt(action: Callable[[], Any]) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            action()

    signal.signal(signal.SIGINT, handle)
    while came < count:
        print(came, flush=True)
        case = make()
        case = replace(case, action=partial(arm, case.action))
        contextvars.copy_context().run(check_at, case, interrupt, fine)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@pytest.mark.slow
@pytest.mark.parametrize("name", STRUCK)
def test_S30_the_process_is_as_it_was_after_signals_of_another_process(name):
    program = f"from tests.test_interrupts import *; bear_interrupts({name!r}, 12)"
    delays = np.random.default_rng(0).uniform(0.0, 0.02, 10_000)
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    child.stdout.readline()  # it is ready
    for delay in delays:
        time.sleep(delay)
        if child.poll() is not None:
            break
        child.send_signal(signal.SIGINT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 0, said
