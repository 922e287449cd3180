"""Processes that fork while other threads are at work: their children do the same work."""

from __future__ import annotations

import os

import pytest

from .base.test_locks import passes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

PLANNING = """
import numpy as np
import graphgrad as gg
from graphgrad.execute.numpy.backend import NumpyBackend

parent, planning, end = os.getpid(), threading.Event(), threading.Event()

class Slow(NumpyBackend):
    def fuse(self, program):
        if os.getpid() == parent and program.inputs[0].shape == (5,):
            planning.set()
            assert end.wait(60)
        return super().fuse(program)

with gg.Graph():
    x = gg.placeholder((None,))
    f = gg.compile([x], gg.sum(gg.tanh(x) * gg.exp(x)), backend=Slow())

def call(n):
    want = n * np.tanh(1.0) * np.e
    np.testing.assert_allclose(f(np.ones(n)), want)

call(3)
thread = threading.Thread(target=call, args=(5,), daemon=True)
thread.start()
assert planning.wait(60)
child(lambda: [call(n) for n in (3, 4, 5)] and f.release())
end.set()
thread.join(60)
call(5)
"""


@pytest.mark.ci
def test_children_plan_though_a_thread_of_the_parent_was_planning():
    passes(PLANNING)


WORKING = """
import numpy as np
import graphgrad as gg

def differentiate():
    with gg.Graph():
        x = h = gg.placeholder(())
        for _ in range(60):
            with gg.override_gradient(lambda site, dy: dy * 2.0):
                h = gg.sin(h)
        (dx,) = gg.gradients([h], [x])

def register():
    with gg.temporary_gradient("forked", lambda site, dy: dy):
        assert gg.is_registered("forked")

with gg.Graph() as graph:
    v = gg.variable(np.zeros(3))

def state():
    graph.state[v] = graph.state[v] + 1.0
    assert len(set(graph.state[v])) == 1

for work in (differentiate, register, state):
    work()
    stop = threading.Event()

    def again(begun):
        begun.set()
        while not stop.is_set():
            work()

    thread = busy(again)
    for _ in range(8):
        child(work)
        time.sleep(0.003)
    stop.set()
    thread.join(60)
"""


@pytest.mark.ci
def test_children_differentiate_though_a_thread_of_the_parent_was_differentiating():
    """And they register rules and write states."""
    passes(WORKING)


HELD = """
import graphgrad as gg
from graphgrad.ir import state
from graphgrad.regions import boundary, rules

held = [boundary.LOCK, rules._lock, state._lock]
try:
    from graphgrad.execute.llvm.emit.jit import COMPILING
    held.append(COMPILING)
except ImportError:
    pass
for lock in held:
    def work(begun):
        with lock:
            begun.set()
            time.sleep(0.1)

    thread = busy(work)
    child(lambda: lock.acquire(timeout=60) or os._exit(2))
    thread.join(60)
"""


def test_children_find_the_locks_of_all_modules_free():
    passes(HELD)


WRITING = """
import numpy as np
import graphgrad as gg

inside, end, children = threading.Event(), threading.Event(), []

def meanwhile():
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        assert end.wait(60)
    elif children:
        children.pop()()
    return 1.0

with gg.Graph() as g:
    w = gg.variable(np.zeros(()))
    one = gg.py_function(meanwhile, [], [((), "float64")])
    f = gg.compile([], w, updates={w: w + one})

thread = threading.Thread(target=f, daemon=True)
thread.start()
assert inside.wait(60)
child(lambda: [f(), f()] and g.state[w] == 2 or os._exit(2))
end.set()
thread.join(60)
assert g.state[w] == 1

def refused():
    try:
        f()
    except gg.StateError:
        return
    os._exit(3)

children.append(lambda: child(refused))  # one that is in the run, as its parent is
f()
assert g.state[w] == 2
"""


@pytest.mark.ci
def test_children_write_though_a_thread_of_the_parent_was_writing():
    passes(WRITING)
